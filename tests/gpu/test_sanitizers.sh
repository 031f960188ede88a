#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# compute-sanitizer over the small cases of the GPU's tests: memcheck over all of them,
# racecheck (hazards in shared memory), which is many times slower, over the forms of the
# search kernels for the layout that is the default, the paper's kernels, and the steps.
# The programs come from $FT_BUILD (default: build), the tool from PATH or beside nvcc.
# Prints TAP.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${FT_BUILD:-build}
nvcc=$(command -v "${NVCC:-nvcc}") && PATH=$PATH:$(dirname "$(realpath "$nvcc")")
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

skip() {
    echo "1..1"
    echo "ok 1 # skip $*"
    exit 0
}
command -v compute-sanitizer >/dev/null || skip "no compute-sanitizer"
"$build/tests/gpu/test_device_steps" quick >"$work/log" 2>&1 ||
    { echo "Bail out! test_device_steps quick fails by itself"; exit 1; }
! grep -q '^ok 1 # skip' "$work/log" || skip "no CUDA device"

# Side by side: what takes long is the tool's own work, in one thread each.
jobs=()
check() { # TOOL PROGRAM [ARGUMENT...]
    compute-sanitizer --tool "$1" --error-exitcode 9 "$build/tests/gpu/$2" "${@:3}" \
        >"$work/log.${#jobs[@]}" 2>&1 &
    jobs+=("$! $1: ${*:2}")
}

check memcheck test_device_steps quick
check memcheck test_parity quick
check memcheck test_paper quick
check racecheck test_device_steps quick
check racecheck test_parity quick compact
check racecheck test_paper quick

echo "1..${#jobs[@]}"
status=0
for i in "${!jobs[@]}"; do
    name=${jobs[$i]#* }
    if wait "${jobs[$i]%% *}"; then
        echo "ok $((i + 1)) - $name"
    else
        echo "not ok $((i + 1)) - $name"
        tail -n 40 "$work/log.$i" | sed 's/^/# /'
        status=1
    fi
done
exit $status
