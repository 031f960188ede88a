# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2034
# What every Bats file here loads. The commands come from $FT_BUILD (default: build).
#   $T  an empty folder of this test's own
#   $D  testdata
#   $layouts  those that ft-build knows, the default first
top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
PATH=$(cd "$top" && cd "${FT_BUILD:-build}" && pwd):$PATH
T=${BATS_TEST_TMPDIR:-}
D=$top/testdata
export LC_ALL=C.UTF-8
layouts=$(ft-build --help-options |
    awk -F '\t' '$1 == "--layout" { gsub(/\|/, " ", $4); print $4 }')

# Is this build one with sanitizers, which take time and memory of their own?
sanitized() { grep -q __asan_init "$(command -v ft-build)"; }
