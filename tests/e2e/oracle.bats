#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Search against the oracle (tests/oracle): the same bytes in every layout, with any
# number of threads, any batch size and every output format.
bats_require_minimum_version 1.5.0
load helper

setup() {
    set -o pipefail
    [ -n "$layouts" ]
    oracle=$(dirname "$(command -v ft-search)")/tests/oracle
    small=$D/small8.T8.K100
}

# compare KIND [SEED]: a large case of ft-randcase, in every layout, with $threads.
threads="1 2 7"
compare() {
    "$oracle/ft-randcase" --kind "$1" "${2-1}" "$T"
    local args layout j
    read -r -a args < "$T/args"
    "$oracle/ft-oracle" "${args[@]}" "$T/keys" "$T/grid.ftg" > "$T/want"
    for layout in $layouts; do
        ft-build -q --layout "$layout" -o "$T/x.ftx" "$T/keys"
        for j in $threads; do
            ft-search "${args[@]}" -j $j "$T/x.ftx" "$T/grid.ftg" > "$T/got"
            cmp "$T/got" "$T/want"
        done
    done
    # A case that finds nothing would say nothing.
    [ "$(stat -c %s "$T/want")" -gt 10000 ]
}

@test "the oracle gives the recorded results of the small library" {
    "$oracle/ft-oracle" -b 100 -n 100 -a 5 --token-threshold=-20 \
        --sentence-threshold=-200 "$D/small.o200k.txt" "$small.r18.ftg" |
        cmp - "$small.r18.B100.N100.a5.tt-20.ts-200.results"
    "$oracle/ft-oracle" -b 10 -n 10 -a 0.6 --token-threshold=-7 \
        --sentence-threshold=-16 "$D/small.o200k.txt" "$small.r100.ftg" |
        cmp - "$small.r100.B10.N10.a0.6.tt-7.ts-16.results"
}

@test "the oracle's two methods agree where the beam holds every prefix" {
    for seed in {1001..1100}; do
        "$oracle/ft-randcase" "$seed" "$T"
        read -r -a args < "$T/args"
        args+=(-b 1000000 -n 100 "$T/keys" "$T/grid.ftg")
        "$oracle/ft-oracle" "${args[@]}" > "$T/beam"
        "$oracle/ft-oracle" --method filter "${args[@]}" > "$T/filter"
        cmp "$T/beam" "$T/filter" || { echo "seed $seed"; false; }
    done
}

@test "every layout gives the recorded results of the small library" {
    for layout in $layouts; do
        ft-build -q --layout "$layout" -o "$T/x.ftx" "$D/small.o200k.txt"
        for j in 1 2; do
            ft-search -j $j -b 100 -n 100 -a 5 --token-threshold=-20 \
                --sentence-threshold=-200 "$T/x.ftx" "$small.r18.ftg" |
                cmp - "$small.r18.B100.N100.a5.tt-20.ts-200.results"
            ft-search -j $j -b 10 -n 10 -a 0.6 --token-threshold=-7 \
                --sentence-threshold=-16 "$T/x.ftx" "$small.r100.ftg" |
                cmp - "$small.r100.B10.N10.a0.6.tt-7.ts-16.results"
        done
    done
}

@test "300 random cases agree with the oracle" {
    cases=${FT_ORACLE_CASES:-300}
    if grep -q -a __asan_init "$(command -v ft-search)"; then
        cases=$((cases / 5)) # slower there
    fi
    loop=$BATS_TEST_DIRNAME/oracle_loop.sh
    TMPDIR=$T "$loop" 1 $((cases / 2)) & first=$!
    TMPDIR=$T "$loop" $((cases / 2 + 1)) "$cases" & second=$!
    wait $first
    wait $second
}

@test "the comparison sees a wrong answer" {
    for wrong in "-n 1" "-b 1" "-a 0.5" "--token-threshold=-0.75" "--no-such-option"; do
        TMPDIR=$T run -1 --separate-stderr \
            "$BATS_TEST_DIRNAME/oracle_loop.sh" 1 40 $wrong
        [[ $stderr == *"seed "*": "*"(case left in $T"* ]]
    done
}

@test "a hub root of 2^21 children" {
    compare hub
}

@test "beams, proposals and results of 65,536" {
    compare wide
}

@test "thousands of ties at the edge of the beam and of the results" {
    for seed in 1 2 3 4 5; do
        compare ties $seed
    done
}

@test "1,024 steps" {
    compare long
}

@test "a key of 65,535 tokens, and a grid as long" {
    threads=1 # the team would meet 65,535 times
    compare key
    for layout in $layouts; do
        ft-build -q --ids --layout "$layout" -o "$T/x.ftx" "$T/keys"
        ft-inspect dump "$T/x.ftx" | cmp - "$T/keys"
        [ "$(ft-inspect lookup "$T/x.ftx" "$T/keys")" = $'0\n1\n2' ]
    done
}

@test "the limits of the widths are kept" {
    ft-build -q -o "$T/x.ftx" <<< '1 2'
    "$oracle/ft-mkgrid" <<< '1:-1' > "$T/g.ftg"
    for options in "-b 65536 -n 65536" "-b 1 -n 1"; do
        ft-search $options "$T/x.ftx" "$T/g.ftg" > "$T/got"
        cmp "$T/got" <(head -c 8 /dev/zero)
    done
    run -2 --separate-stderr ft-search -b 0 "$T/x.ftx" "$T/g.ftg"
    [ -z "$output" ]
    run -2 --separate-stderr ft-search -n 0 "$T/x.ftx" "$T/g.ftg"
    [ -z "$output" ]
}

@test "queries are numbered over all grids given" {
    ft-build -q --ids -o "$T/x.ftx" "$D/small.o200k.txt"
    "$oracle/ft-oracle" -b 20 -n 3 --format tsv --ids "$D/small.o200k.txt" \
        "$small.r18.ftg" "$small.r100.ftg" > "$T/want"
    ft-search -b 20 -n 3 -f tsv "$T/x.ftx" "$small.r18.ftg" "$small.r100.ftg" |
        cmp - "$T/want"
    ft-search --batch 3 -b 20 -n 3 -f tsv "$T/x.ftx" - "$small.r100.ftg" \
        < "$small.r18.ftg" | cmp - "$T/want"
    [ "$(tail -n 1 "$T/want" | cut -f 1)" = 15 ]
}
