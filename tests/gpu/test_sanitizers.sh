#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# compute-sanitizer over the small cases of the GPU's tests: memcheck over all of them,
# racecheck (hazards in shared memory), which is many times slower, over the forms of the
# search kernels for the layout that is the default, the paper's kernels, and the steps.
# All side by side, since what takes long is the tool's own work, in one thread each.
# The programs come from $FT_BUILD (default: build), for racecheck from
# $FT_BUILD-racecheck, the tool from PATH or beside nvcc.
# Prints TAP, a line as soon as a check ends.
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

run_check() { # NUMBER TOOL PROGRAM [ARGUMENT...]
    local start=$SECONDS programs=$build
    [ "$2" != racecheck ] || programs+=-racecheck
    if compute-sanitizer --tool "$2" --error-exitcode 9 "$programs/tests/gpu/$3" "${@:4}" \
        >"$work/log.$1" 2>&1; then
        echo "ok $1 - $2: ${*:3}, $((SECONDS - start)) s"
    else
        { echo "not ok $1 - $2: ${*:3}, $((SECONDS - start)) s"; tail -n 40 "$work/log.$1" | sed 's/^/# /'; } |
            tee -a "$work/failed"
    fi
}
n=0
check() { # TOOL PROGRAM [ARGUMENT...]
    n=$((n + 1))
    run_check "$n" "$@" &
}

check memcheck test_device_steps quick
check memcheck test_parity quick
check memcheck test_paper quick
check racecheck test_device_steps quick
check racecheck test_paper quick
for form in "a query alone" "a block a query of few" "a small block a query" \
    "a cluster of 16 a query" "blocks of a cluster apart" "a cluster of 8 a query" "a large block a query" \
    "the grid a query"; do
    check racecheck test_parity "$form" compact
done
wait
echo "1..$n"
[ ! -e "$work/failed" ]
