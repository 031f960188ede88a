#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Compare ft-search with the oracle, byte for byte, over random cases.
#
# usage: oracle_loop.sh FIRST LAST [FT-SEARCH-OPTION...]
#
# Each seed FIRST..LAST is one case, searched in every layout, with and without key
# numbers. Threads, batch sizes, formats and ways to hand in the grid go round from case
# to case; every tenth case takes all of them. Further options go to ft-search alone: so
# a test can see that this script notices a wrong answer. The first difference ends the
# run with status 1 and leaves the case where it says.
set -u -o pipefail

BATS_TEST_DIRNAME=$(dirname "$0")
. "$BATS_TEST_DIRNAME/helper.bash"
oracle=${PATH%%:*}/tests/oracle
first=$1 last=$2
shift 2
wrong=("$@")
dir=$(mktemp -d "${TMPDIR:-/tmp}/ft-oracle.XXXXXX") || exit 1
threads=(1 2 7) batches=(1 3 64) formats=(wire tsv jsonl)
n_compared=0

fail() {
    printf 'seed %s: %s (case left in %s)\n' "$seed" "$*" "$dir" >&2
    exit 1
}

# search INDEX THREADS BATCH FORMAT WAY IDS: one search, compared.
search() {
    local index=$1 j=$2 batch=$3 format=$4 way=$5 want=$dir/want.$4
    local command=(ft-search "${args[@]}" "${wrong[@]}" -j "$j" --batch "$batch"
        -f "$format" "$index")
    [ "$format" = wire ] || want+=$6
    case $way in
    0) "${command[@]}" "$dir/grid.ftg" ;;
    1) "${command[@]}" < "$dir/grid.ftg" ;;
    2) "${command[@]}" - < <(cat "$dir/grid.ftg") ;; # a pipe
    esac > "$dir/got" || fail "failed: ${command[*]}"
    cmp -s "$dir/got" "$want" || fail "differs from $want: ${command[*]}"
    n_compared=$((n_compared + 1))
}

# search_all INDEX IDS: all combinations, or one of each three in turn.
search_all() {
    local i j
    if [ $((seed % 10)) = 0 ]; then
        for i in 0 1 2 3 4 5 6 7 8; do
            for j in 0 1 2; do
                search "$1" "${threads[i / 3]}" "${batches[i % 3]}" "${formats[j]}" \
                    $(((i + j) % 3)) "$2"
            done
        done
        return
    fi
    for j in 0 1 2; do
        i=$(((seed + n_compared) % 9))
        search "$1" "${threads[i / 3]}" "${batches[i % 3]}" "${formats[j]}" \
            $(((i + seed) % 3)) "$2"
    done
}

# check_library INDEX IDS: the index gives its keys back.
check_library() {
    ft-inspect dump "$1" | cmp -s - "$dir/keys" || fail "dump differs: $1"
    if [ -n "$2" ]; then
        awk '{ print NR - 1 }' "$dir/keys"
    else
        awk '{ print "found" }' "$dir/keys"
    fi > "$dir/numbers"
    ft-inspect lookup "$1" "$dir/keys" | cmp -s - "$dir/numbers" ||
        fail "lookup differs: $1"
}

for ((seed = first; seed <= last; seed++)); do
    "$oracle/ft-randcase" "$seed" "$dir" || fail "no case"
    read -r -a args < "$dir/args"
    answer() {
        "$oracle/ft-oracle" "${args[@]}" "$@" "$dir/keys" "$dir/grid.ftg"
    }
    answer > "$dir/want.wire" || fail "no oracle"
    for format in tsv jsonl; do
        answer --format $format > "$dir/want.$format"
        answer --format $format --ids > "$dir/want.$format.ids"
    done
    for layout in ${layouts:?none known}; do
        for ids in '' .ids; do
            index=$dir/$layout$ids.ftx
            compress=$([ $((seed % 5)) != 0 ] || echo --compress)
            ft-build -q --layout "$layout" ${ids:+--ids} $compress -o "$index" \
                "$dir/keys" 2> "$dir/log" || fail "no index: $(cat "$dir/log")"
            search_all "$index" "$ids"
            [ $((seed % 3)) != 0 ] || check_library "$index" "$ids"
        done
    done
done
rm -rf "$dir"
printf '%s comparisons\n' "$n_compared"
