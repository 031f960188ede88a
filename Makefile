# SPDX-License-Identifier: Apache-2.0
#
# FlashTrie. One Makefile, no recursion into folders.
#   make [all]          the commands, in $(O)/
#   make check          every test, then the same again under ASan and UBSan
#   make check-asan     that second half alone
#   make check-gpu      what needs a GPU; there a skipped test is a failed one
#   make fuzz           libFuzzer on each harness, FUZZ_SECONDS each (clang)
#   make bench demo     figures on this machine; a tour
#   make install uninstall clean
#
#   O=build        output folder            CUDA=auto|1|0   the CUDA engine
#   PREFIX=/usr/local  DESTDIR=             ARCH=           -m flags of host code
#   SANITIZE=      e.g. address,undefined   WERROR=1        warnings are errors
#   CUDA_ARCHS="75 80 86 89 90"             compute capabilities of the CUDA engine
#   BUILT=1        install what is in $(O), building nothing
#   RACECHECK=1    a barrier that compute-sanitizer's racecheck knows: for tests alone

O ?= build
CUDA ?= auto
PREFIX ?= /usr/local
DESTDIR ?=
WERROR ?= 0
BUILT ?= 0
SANITIZE ?=
AR ?= ar
NVCC ?= nvcc
GXX ?= g++
OPT ?= -O2 -g
FUZZ_CC ?= clang
FUZZ_SECONDS ?= 60

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
GPU_CU := $(wildcard gpu/*.cu)
HAVE_NVCC := $(if $(shell command -v $(NVCC) 2>/dev/null),1,0)
ifeq ($(CUDA),auto)
HAVE_CUDA := $(if $(GPU_CU),$(HAVE_NVCC),0)
else ifeq ($(CUDA),1)
HAVE_CUDA := 1
ifeq ($(GPU_CU),)
$(error CUDA=1: there is no gpu/*.cu in this tree)
else ifeq ($(HAVE_NVCC),0)
$(error CUDA=1: no $(NVCC) in PATH; NVCC=/path/to/nvcc names it)
endif
else ifeq ($(CUDA),0)
HAVE_CUDA := 0
else
$(error CUDA=$(CUDA): it is auto, 1 or 0)
endif

LIB_C := $(wildcard lib/base/*.c lib/io/*.c lib/trie/*.c lib/engine/*.c)
CPU_O := $(patsubst %.c,$(O)/%.o,$(LIB_C) gpu/absent.c)
BENCH_C := $(wildcard lib/baseline/*.c lib/workload/*.c)
# cmd/ft-NAME.c is a command, cmd/NAME_*.c belong to it alone, the rest to all of them.
MAIN_C := $(wildcard cmd/ft-*.c)
own_c = $(wildcard cmd/$(1:cmd/ft-%.c=%)_*.c)
CMD_SHARED_C := $(filter-out $(MAIN_C) $(foreach m,$(MAIN_C),$(call own_c,$m)),\
  $(wildcard cmd/*.c))
ifeq ($(HAVE_CUDA),1)
GPU_O := $(GPU_CU:%.cu=$(O)/%.cu.o)
PAPER_O := $(patsubst %.cu,$(O)/%.cu.o,$(wildcard gpu/paper/*.cu))
CUDA_HOME ?= $(patsubst %/bin/,%,$(dir $(realpath $(shell command -v $(NVCC)))))
# The static runtime looks for the driver when it is first used: the commands start on
# machines without one.
LDLIBS += -L$(CUDA_HOME)/lib64 -lcudart_static -lstdc++ -ldl -lrt
else
LIB_C += gpu/absent.c
BENCH_C += gpu/paper/paper_absent.c
endif
# Machine code for these compute capabilities, and PTX of the last for later ones.
CUDA_ARCHS ?= 75 80 86 89 90
gencode = -gencode arch=compute_$(1),code=$(2)_$(1)
CUDA_CODE := $(foreach a,$(CUDA_ARCHS),$(call gencode,$a,sm)) \
  $(call gencode,$(lastword $(CUDA_ARCHS)),compute)
NVCCFLAGS += -std=c++17 -O2 -lineinfo $(CUDA_CODE) --fmad=false -Xcompiler -Wall
ifneq ($(RACECHECK),)
NVCCFLAGS += -DFT_RACECHECK
endif
ifneq ($(WERROR),0)
NVCCFLAGS += -Werror all-warnings
endif

LIB := $(O)/libflashtrie.a
LIB_O := $(LIB_C:%.c=$(O)/%.o) $(GPU_O)
BENCH_O := $(BENCH_C:%.c=$(O)/%.o) $(PAPER_O)
CMD_SHARED_O := $(CMD_SHARED_C:%.c=$(O)/%.o)
BINS := $(MAIN_C:cmd/%.c=$(O)/%)
MAN := $(wildcard man/*.[157])
COMPLETIONS := $(MAIN_C:cmd/%.c=$(O)/completions/%)
UNIT := $(patsubst tests/unit/%.c,$(O)/tests/unit/%,$(wildcard tests/unit/test_*.c))
ORACLE := $(patsubst tests/oracle/%.c,$(O)/tests/oracle/%,$(wildcard tests/oracle/ft-*.c))
FUZZ_C := $(wildcard tests/fuzz/fuzz_*.c)
REPLAY := $(FUZZ_C:tests/fuzz/%.c=$(O)/tests/fuzz/%)
FUZZ := $(FUZZ_C:tests/fuzz/%.c=$(O)/fuzz/%)
RACECHECK_TEST := $(addprefix tests/gpu/test_,device_steps paper parity)
GPU_TEST := $(patsubst tests/gpu/%.c,$(O)/tests/gpu/%,$(wildcard tests/gpu/test_*.c))

# The search kernel on the CPU. Of -fsanitize=thread only the compiler's half is used, so
# SANITIZE leaves it out; g++ 11 and later tell volatile accesses from others.
SEEN = -fsanitize=thread --param tsan-distinguish-volatile=1
GXXFLAGS = -std=c++17 -O2 -g $(ARCH) -ffp-contract=off -fno-pie -U_FORTIFY_SOURCE \
  -Itests/emulated -Wall -Wextra -Wno-unknown-pragmas -Wno-array-bounds \
  -Wno-missing-field-initializers $(if $(filter-out 0,$(WERROR)),-Werror)
EMULATED_CC := $(wildcard tests/emulated/*.cc)
ifeq ($(SANITIZE),)
EMULATED := $(if $(shell $(GXX) $(SEEN) -E -xc++ /dev/null 2>/dev/null),\
  $(O)/tests/emulated/test_kernel)
endif

all: $(BINS)
	@echo "flashtrie: built in $(O)/ with $(CC)$(if $(SANITIZE),$(comma) sanitizers $(SANITIZE)); engines: cpu$(if $(filter 1,$(HAVE_CUDA)),$(comma) cuda,; no CUDA engine (CUDA=$(CUDA)$(if $(GPU_CU),,$(comma) none in this tree)))"
comma := ,

# A stamp changes only when its text does: other flags, or another list of objects, build
# again what depends on them and nothing else.
STAMP_cc = $(CC) $(CPPFLAGS) $(CFLAGS)
STAMP_nvcc = $(NVCC) $(CPPFLAGS) $(NVCCFLAGS)
STAMP_gxx = $(GXX) $(CPPFLAGS) $(GXXFLAGS) $(SEEN)
STAMP_ld = $(CC) $(CFLAGS) $(LDFLAGS) $(LDLIBS)
STAMP_lib = $(LIB_O)
STAMP_cmd = $(CMD_SHARED_O) $(BENCH_O)
quoted = '$(subst ','\'',$(1))'
$(O)/%.stamp: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' $(call quoted,$(STAMP_$*)) | cmp -s - $@ || \
	  printf '%s\n' $(call quoted,$(STAMP_$*)) >$@

$(O)/%.o: %.c $(O)/cc.stamp
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

# The system's xxhash.h where there is one.
$(O)/lib/trie/checksum.o: private CPPFLAGS += -idirafter lib/third_party

$(O)/%.cu.o: %.cu $(O)/nvcc.stamp
	@mkdir -p $(@D)
	$(NVCC) $(CPPFLAGS) $(NVCCFLAGS) -MMD -MP -MF $(@:.o=.d) -c $< -o $@

$(O)/%.o: %.cc $(O)/gxx.stamp
	@mkdir -p $(@D)
	$(GXX) $(CPPFLAGS) $(GXXFLAGS) -MMD -MP -c $< -o $@

$(O)/tests/emulated/kernel.o: private GXXFLAGS += $(SEEN) -fno-strict-aliasing

$(O)/tests/gpu/%.o: private CPPFLAGS += -isystem $(CUDA_HOME)/include

# ft-bench says how it was built.
$(O)/cmd/bench_machine.o: $(O)/nvcc.stamp $(O)/ld.stamp
$(O)/cmd/bench_machine.o: private CPPFLAGS += \
  -DFT_BUILD_COMMAND='"$(CC) $(CFLAGS)$(if $(GPU_O),; $(NVCC) $(NVCCFLAGS))"'

$(LIB): $(LIB_O) $(O)/lib.stamp
	@rm -f $@
	$(AR) rcs $@ $(filter %.o,$^)

LINK = $(CC) $(CFLAGS) $(LDFLAGS) $(filter %.o,$^) $(filter %.a,$^)

$(O)/ft-%: $(O)/cmd/ft-%.o $(CMD_SHARED_O) $(LIB) $(O)/ld.stamp $(O)/cmd.stamp
	$(LINK) $(LDLIBS) -o $@

$(O)/ft-bench: $(BENCH_O)
$(foreach m,$(MAIN_C),$(eval $(m:cmd/%.c=$(O)/%): $(patsubst %.c,$(O)/%.o,$(call own_c,$m))))

$(O)/tests/unit/%: $(O)/tests/unit/%.o $(BENCH_O) $(LIB) $(O)/ld.stamp $(O)/cmd.stamp
	$(LINK) $(LDLIBS) -lcmocka -o $@

$(O)/tests/gpu/%: $(O)/tests/gpu/%.o $(LIB) $(O)/ld.stamp
	$(LINK) $(LDLIBS) -o $@

$(O)/tests/gpu/test_paper: $(BENCH_O)

$(O)/tests/emulated/%: $(O)/tests/emulated/%.o $(EMULATED_CC:%.cc=$(O)/%.o) $(CPU_O)
	$(GXX) -no-pie $(filter %.o,$^) -lzstd -lm -pthread -o $@

$(O)/tests/oracle/%: $(O)/tests/oracle/%.o $(O)/ld.stamp
	$(LINK) -lm -o $@

# The corpora replay under any compiler; `make fuzz` builds the same files with libFuzzer.
$(O)/tests/fuzz/%: $(O)/tests/fuzz/%.o $(O)/tests/fuzz/replay.o $(LIB) $(O)/ld.stamp
	$(LINK) $(LDLIBS) -o $@

$(O)/fuzz/%: $(O)/tests/fuzz/%.o $(LIB) $(O)/ld.stamp
	@mkdir -p $(@D)
	$(LINK) -fsanitize=fuzzer $(LDLIBS) -o $@

# Written beside their place and renamed: several runs may build at once.
$(O)/completions/%: $(O)/% scripts/completions
	@mkdir -p $(@D)
	scripts/completions $< >$@.new
	@mv $@.new $@

# What the tests run: of this configuration, and of both.
.PHONY: tests tests-all
tests: all $(UNIT) $(ORACLE) $(REPLAY) $(EMULATED) $(COMPLETIONS) $(if $(filter 1,$(HAVE_CUDA)),$(GPU_TEST))

ASAN = $(MAKE) O=$(O)-asan SANITIZE=address,undefined OPT='-O1 -g' CUDA=0
tests-all: tests
	+@$(ASAN) tests

check: tests-all
	scripts/run-tests $(O) $(O)-asan

check-asan:
	+@$(ASAN) tests
	scripts/run-tests --programs $(O)-asan

ifeq ($(GPU_CU),)
check-gpu:
	@echo "check-gpu: there is no CUDA engine in this tree, so nothing was checked" >&2
	@false
else
check-gpu:
	@$(MAKE) CUDA=1 tests-gpu
	scripts/run-tests --gpu $(O)
endif
.PHONY: tests-gpu
tests-gpu: all $(GPU_TEST)
	@$(MAKE) O=$(O)-racecheck CUDA=1 RACECHECK=1 $(RACECHECK_TEST:%=$(O)-racecheck/%)

# New inputs go to $(O)-fuzz/corpus, findings to $(O)-fuzz; testdata/fuzz is only read.
fuzz:
	@$(MAKE) O=$(O)-fuzz CC=$(FUZZ_CC) OPT='-O1 -g' CUDA=0 \
	  SANITIZE=address,undefined,fuzzer-no-link fuzzers
	scripts/fuzz $(O)-fuzz $(FUZZ_SECONDS)
.PHONY: fuzzers
fuzzers: $(FUZZ)

bench: all
	scripts/bench-cpu

demo:
	scripts/demo

# install and uninstall go through one list: FILE FOLDER.
BINDIR = $(DESTDIR)$(PREFIX)/bin
SHARE = $(DESTDIR)$(PREFIX)/share
MAN_TO = $(SHARE)/man/man$(patsubst .%,%,$(suffix $(1)))
INSTALLED = $(foreach f,$(BINS),$(BINDIR)/$(notdir $(f))) \
  $(foreach f,$(MAN),$(call MAN_TO,$(f))/$(notdir $(f))) \
  $(foreach f,$(COMPLETIONS),$(SHARE)/bash-completion/completions/$(notdir $(f))) \
  $(SHARE)/doc/flashtrie/README.md $(SHARE)/doc/flashtrie/LICENSE

install: $(if $(filter 1,$(BUILT)),,all $(COMPLETIONS))
	install -d $(sort $(dir $(INSTALLED)))
	install -m 755 $(BINS) $(BINDIR)
	$(foreach f,$(MAN),install -m 644 $(f) $(call MAN_TO,$(f)) &&) :
	install -m 644 $(COMPLETIONS) $(SHARE)/bash-completion/completions
	install -m 644 README.md LICENSE $(SHARE)/doc/flashtrie

uninstall:
	rm -f $(INSTALLED)
	-@rmdir $(SHARE)/doc/flashtrie 2>/dev/null

clean:
	rm -rf $(O) $(O)-asan $(O)-fuzz $(O)-racecheck

.PHONY: all check check-gpu check-asan fuzz bench demo install uninstall clean FORCE
.SECONDARY:
.DELETE_ON_ERROR:

-include $(shell find $(O) -name '*.d' 2>/dev/null)
