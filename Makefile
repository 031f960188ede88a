# FlashTrie. One Makefile, no recursion.
#   make [all] | check | check-gpu | check-asan | fuzz | bench | demo | install | uninstall | clean
#   O=build        output folder            CUDA=auto|1|0   the CUDA engine
#   PREFIX=/usr/local  DESTDIR=             ARCH=           -m flags of host code
#   SANITIZE=      e.g. address,undefined   WERROR=1        warnings are errors

O ?= build
CUDA ?= auto
PREFIX ?= /usr/local
DESTDIR ?=
WERROR ?= 0
SANITIZE ?=
AR ?= ar
NVCC ?= nvcc
OPT ?= -O2 -g

ifeq ($(shell uname -m),x86_64)
ARCH ?= -march=x86-64-v3
endif

CPPFLAGS += -Ilib -D_GNU_SOURCE
CFLAGS += -std=c11 $(OPT) $(ARCH) -ffp-contract=off -pthread \
          -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
LDLIBS += -lzstd -lm -pthread
ifneq ($(WERROR),0)
CFLAGS += -Werror
endif
ifneq ($(SANITIZE),)
CFLAGS += -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer
LDFLAGS += -fsanitize=$(SANITIZE)
endif

# The CUDA engine is built where nvcc is, unless told otherwise.
ifeq ($(CUDA),auto)
HAVE_CUDA := $(if $(shell command -v $(NVCC) 2>/dev/null),1,0)
else
HAVE_CUDA := $(CUDA)
endif
GPU_CU := $(wildcard gpu/*.cu)
ifeq ($(GPU_CU),)
HAVE_CUDA := 0
endif

LIB_C := $(wildcard lib/base/*.c lib/io/*.c lib/trie/*.c lib/engine/*.c)
BASELINE_C := $(wildcard lib/baseline/*.c)
CMD_C := $(wildcard cmd/*.c)
MAIN_C := $(wildcard cmd/ft-*.c)
CMD_SHARED_C := $(filter-out $(MAIN_C),$(CMD_C))
ifeq ($(HAVE_CUDA),1)
GPU_O := $(GPU_CU:%.cu=$(O)/%.cu.o)
else
LIB_C += gpu/absent.c
endif

LIB := $(O)/libflashtrie.a
LIB_O := $(LIB_C:%.c=$(O)/%.o) $(GPU_O)
BASELINE_O := $(BASELINE_C:%.c=$(O)/%.o)
CMD_SHARED_O := $(CMD_SHARED_C:%.c=$(O)/%.o)
BINS := $(MAIN_C:cmd/%.c=$(O)/%)
UNIT := $(patsubst tests/unit/%.c,$(O)/tests/unit/%,$(wildcard tests/unit/test_*.c))
ORACLE := $(patsubst tests/oracle/%.c,$(O)/tests/oracle/%,$(wildcard tests/oracle/ft-*.c))
FUZZ_C := $(wildcard tests/fuzz/fuzz_*.c)
REPLAY := $(FUZZ_C:tests/fuzz/%.c=$(O)/tests/fuzz/%)

all: $(BINS)
	@echo "flashtrie: built in $(O)/ with $(CC); engines: cpu$(if $(filter 1,$(HAVE_CUDA)), cuda,; no CUDA engine (CUDA=$(CUDA)))"

$(O)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(LIB): $(LIB_O)
	@rm -f $@
	$(AR) rcs $@ $^

$(O)/ft-%: $(O)/cmd/ft-%.o $(CMD_SHARED_O) $(LIB)
	$(CC) $(LDFLAGS) $(filter %.o,$^) $(LIB) $(LDLIBS) -o $@

$(O)/ft-bench: $(BASELINE_O)

$(O)/tests/unit/%: $(O)/tests/unit/%.o $(BASELINE_O) $(LIB)
	$(CC) $(LDFLAGS) $(filter %.o,$^) $(LIB) $(LDLIBS) -lcmocka -o $@

$(O)/tests/oracle/%: $(O)/tests/oracle/%.o
	$(CC) $(LDFLAGS) $< -lm -o $@

# The corpora replay under any compiler; `make fuzz` builds the same files with libFuzzer.
$(O)/tests/fuzz/%: $(O)/tests/fuzz/%.o $(O)/tests/fuzz/replay.o $(LIB)
	$(CC) $(LDFLAGS) $(filter %.o,$^) $(LIB) $(LDLIBS) -o $@

clean:
	rm -rf $(O) $(O)-asan $(O)-fuzz

.PHONY: all check check-gpu check-asan fuzz bench demo install uninstall clean
.SECONDARY:

-include $(shell find $(O) -name '*.d' 2>/dev/null)
