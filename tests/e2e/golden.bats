#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The golden files of every format: written as ever, and read as ever.
bats_require_minimum_version 1.5.0
load helper

setup() {
    set -o pipefail
    bin=$(dirname "$(command -v ft-search)")
    PATH=$bin/tests/oracle:$PATH
    golden=$D/golden
    options=(-b 4 -n 8)
}

@test "the commands of the README write the golden files" {
    cp "$golden/keys.txt" "$golden/grid.txt" "$T"
    cd "$T"
    grep '^    ' "$golden/README" > "$BATS_TEST_TMPDIR/commands"
    n=0
    while read -r -u 3 command; do
        bash -e -o pipefail -c "$command" || { echo "failed: $command"; false; }
        n=$((n + 1))
    done 3< "$BATS_TEST_TMPDIR/commands"
    [ "$n" -ge 14 ]
    for file in "$golden"/*; do
        [ "${file##*/}" = README ] || cmp "$file" "${file##*/}"
    done
}

@test "the results are the oracle's" {
    ft-oracle "${options[@]}" "$golden/keys.txt" "$golden/grid.f32.ftg" |
        cmp - "$golden/results.wire"
    for format in tsv jsonl; do
        ft-oracle "${options[@]}" --ids --format $format "$golden/keys.txt" \
            "$golden/grid.ids.ftg" | cmp - "$golden/results.$format"
    done
    # Neither trivial nor all of one kind.
    [ "$(wc -l < "$golden/results.tsv")" -gt 8 ]
}

@test "every golden index gives the golden keys and results" {
    for layout in ${layouts:?none known}; do
        [ -e "$golden/keys.$layout.ftx" ]
        [ "$(ft-inspect stats "$golden/keys.$layout.ftx" |
            awk '$1 == "layout" { print $2 }')" = "$layout" ]
    done
    ft-inspect verify "$golden/shared.compact-tails.ids.ftx"
    ft-inspect dump "$golden/shared.compact-tails.ids.ftx" | cmp - "$golden/shared.txt"
    for index in "$golden"/keys.*.ftx; do
        ft-inspect verify "$index"
        ft-inspect dump "$index" | cmp - "$golden/keys.txt"
        ft-search "${options[@]}" "$index" "$golden/grid.f32.ftg" |
            cmp - "$golden/results.wire"
    done
}

@test "every form of the golden grid gives the golden results" {
    for grid in f32.ftg f16.ftg ids.ftg; do
        ft-search "${options[@]}" "$golden/keys.wide.ftx" "$golden/grid.$grid" |
            cmp - "$golden/results.wire"
    done
    for half in f32 f16; do
        ft-search "${options[@]}" "$golden/keys.wide.ftx" "$golden/grid.$half.tokens.npy" \
            "$golden/grid.$half.logp.npy" | cmp - "$golden/results.wire"
    done
}

@test "text and binary keys give the same index" {
    ft-build -q -o "$T/text.ftx" "$golden/keys.txt"
    ft-build -q -o "$T/binary.ftx" "$golden/keys.ftk"
    cmp "$T/text.ftx" "$T/binary.ftx"
}

@test "results are read back" {
    ft-inspect results "$golden/results.wire" |
        awk -F '\t' '{ print $4 }' | cmp - <(cut -f 4 "$golden/results.tsv")
}
