#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ft-bench throughput, whatever feeds the device: grids in the host's memory, grids that
# lie on the device, and results that stay there as well. Every pass gives what the CPU
# gives, by cluster, by block and by the whole grid; what is not expected is no figure.
# The commands come from $FT_BUILD (default: build). Prints TAP.
set -u
cd "$(dirname "$0")/../.." || exit 1
PATH=$(realpath "${FT_BUILD:-build}"):$PATH
export LC_ALL=C
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

why=$(ft-bench systems -q -f tsv | awk -F '\t' '$1 == "flashtrie-cuda" { print $NF }')
case $why in
ok) ;;
unavailable:*)
    echo "1..1"
    echo "ok 1 # skip $why"
    exit 0
    ;;
*)
    echo "Bail out! no ft-bench that knows flashtrie-cuda"
    exit 1
    ;;
esac

n=0
status=0
check() { # NAME, then a condition's exit status
    n=$((n + 1))
    if [ "$2" = 0 ]; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1"
        sed 's/^/# /' out err
        status=1
    fi
}

# columns NAME...: of the rows of ./out, side by side.
columns() {
    awk -F '\t' -v names="$*" '/^#/ { next }
        !n { n = split(names, name, " "); for (i = 1; i <= NF; i++) at[$i] = i; next }
        { for (i = 1; i <= n; i++) printf "%s%s", $at[name[i]], i < n ? " " : "\n" }' out
}

# ./out has these rows and no others: SYSTEM:FEED,FEED... for each beam and batch.
has_rows() { # BEAMS BATCHES SYSTEM...
    local beam batch system feed
    for beam in $1; do
        for batch in $2; do
            for system in "${@:3}"; do
                for feed in ${system#*:}; do
                    echo "${system%:*} $beam $batch $feed"
                done
            done
        done
    done | sort >want
    columns system beam batch feed | sort | diff want - >>err
}

all_status() { # STATUS
    [ "$(columns status | sort -u)" = "$1" ]
}

throughput() { # OPTION...
    ft-bench throughput -q --passes 3 "$@" >out 2>err
}

ft-bench gen-keys -q -n 20000 -f binary -o keys
for layout in compact compact-tails narrow; do
    ft-build -q --layout $layout -o $layout.ftx keys
done
ft-bench gen-grid -q -n 40 -k 100 -t 5 -o grid compact.ftx
ft-bench gen-grid -q --half -n 40 -k 100 -t 5 -o half compact.ftx
ft-search -q -e cpu -b 20 -n 20 compact.ftx grid >right
ft-search -q -e cpu -b 20 -n 20 -a 1 compact.ftx grid >wrong

feeds="host device device-only"
for grid in grid half; do
    throughput --batches 1,7,40 --beams 20,300,1500 $grid cpu=compact.ftx \
        cuda=compact.ftx
    check "$grid: every feed runs" $?
    has_rows "20 300 1500" "1 7 40" cpu:host "cuda:$feeds"
    check "$grid: a row for every feed" $?
    all_status ok
    check "$grid: all results are those of the CPU" $?
    [ "$(columns beam digest | sort -u | grep -cE '^[0-9]+ [0-9a-f]{16}$')" = 3 ] &&
        [ "$(columns beam digest | sort -u | wc -l)" = 3 ]
    check "$grid: all results have been compared" $?
    ! columns passes queries_per_s | grep -vE '^3 [0-9]+\.[0-9]$' >>err
    check "$grid: every feed has its figures" $?
done

for layout in compact-tails narrow; do
    throughput --batches 7 --beams 300 --expect <(ft-search -q -e cpu -b 300 -n 300 \
        compact.ftx grid) grid cuda=$layout.ftx && has_rows 300 7 "cuda:$feeds" &&
        all_status ok
    check "$layout: every feed gives what is expected" $?
done

throughput --batches 1,40 --beams 20 --expect right grid cuda=compact.ftx && all_status ok
check "what is expected is found" $?
! throughput --batches 1,40 --beams 20 --expect wrong grid cuda=compact.ftx &&
    has_rows 20 "1 40" "cuda:$feeds" &&
    [ "$(columns passes queries_per_s digest | sort -u)" = "0 - -" ] &&
    [ "$(columns status | cut -d , -f 1 | sort -u)" = "failed: wrong results" ]
check "what is not expected is no figure of any feed" $?
echo "1..$n"
exit $status
