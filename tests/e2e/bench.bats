#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
bats_require_minimum_version 1.5.0
load helper

# fails STATUS MESSAGE COMMAND...: that status, the message, nothing on standard output.
fails() {
    run "-$1" --separate-stderr "${@:3}"
    [ -z "$output" ]
    [[ $stderr == "ft-bench: "*"$2"* ]] || { echo "$stderr"; false; }
}

@test "gen-keys makes exactly N keys, in order, and none twice" {
    for preset in paper titles; do
        ft-bench gen-keys -p $preset -n 50001 >"$T/keys"
        [ "$(wc -l <"$T/keys")" = 50001 ]
        sort -u -V "$T/keys" | cmp - "$T/keys"
    done
}

@test "gen-keys binary and text are the same library" {
    ft-bench gen-keys -n 20000 -o "$T/text"
    ft-bench gen-keys -n 20000 -f binary -o "$T/binary"
    ft-build -q "$T/text" -o "$T/text.ftx"
    ft-build -q "$T/binary" -o "$T/binary.ftx"
    cmp "$T/text.ftx" "$T/binary.ftx"
    ft-inspect dump "$T/binary.ftx" | cmp - "$T/text"
}

@test "gen-keys keeps to the shape asked for" {
    ft-bench gen-keys -n 3905 --vocab 5 --max-length 5 >"$T/all"
    [ "$(head -n 1 "$T/all")" = 0 ]
    [ "$(tail -n 1 "$T/all")" = "4 4 4 4 4" ]
    ft-bench gen-keys -n 1000 -s 7 >"$T/7"
    ft-bench gen-keys -n 1000 -s 7 | cmp - "$T/7"
    for other in "-s 8" "--sharing 0" "--fans 1" "--prefix-keys 0" "--tail 3" \
        "--skew 2" "--id-noise 0" "--vocab 70000"; do
        run -1 cmp -s "$T/7" <(ft-bench gen-keys -n 1000 -s 7 $other)
    done
    # No key is a prefix of another, and none is longer than two tokens.
    ft-bench gen-keys -n 3000 --prefix-keys 0 --max-length 2 >"$T/two"
    [ "$(awk 'NF == 1 { one[$1] } NF > 2 || NF == 2 && $1 in one' "$T/two" | wc -l)" = 0 ]
}

@test "gen-keys says what cannot be made" {
    fails 1 "5 tokens make only 3905 keys of up to 5 tokens" \
        ft-bench gen-keys -n 3906 --vocab 5 --max-length 5
    fails 2 "keys" ft-bench gen-keys -n 0
    fails 2 "preset" ft-bench gen-keys -p papers
    fails 2 "sharing" ft-bench gen-keys --sharing 1.5
    fails 1 "" ft-bench gen-keys -n 100000 -o /dev/full
}

@test "gen-keys ends quietly when its reader goes" {
    run -0 --separate-stderr bash -c \
        'set -o pipefail; ft-bench gen-keys -n 1000000000000 | head -n 3'
    [ "${#lines[@]}" = 3 ]
    [ -z "$stderr" ]
}

@test "gen-grid is the same for every layout, and in parts" {
    ft-bench gen-keys -n 20000 >"$T/keys"
    for layout in $layouts; do
        if [[ $layout == *-tails ]]; then # its nodes are not numbered level by level
            ft-bench gen-keys -n 100 | ft-build -q --layout $layout -o "$T/tails.ftx"
            run -1 --separate-stderr ft-bench gen-grid "$T/tails.ftx"
            [[ $stderr == *"shared tails"* ]]
            continue
        fi
        ft-build -q --layout $layout "$T/keys" -o "$T/$layout.ftx"
        for preset in full popular model noise; do
            ft-bench gen-grid -p $preset -n 5 -k 50 -o "$T/$preset.$layout" "$T/$layout.ftx"
            cmp "$T/$preset.$layout" "$T/$preset.${layouts%% *}"
        done
    done
    # The header is 64 bytes, and a query 8 x 50 tokens and log-probs.
    ft-bench gen-grid -n 2 --first 3 -k 50 "$T/${layouts%% *}.ftx" | tail -c +65 |
        cmp - <(tail -c 6400 "$T/full.${layouts%% *}")
}

@test "gen-grid makes a grid a head, alike but for that" {
    ft-bench gen-keys -n 20000 -f binary | ft-build -q -o "$T/x.ftx"
    ft-bench gen-grid -q -n 3 -k 40 --head 0,7,40 -o "$T/r{}.grid" "$T/x.ftx"
    for r in 0 7 40; do
        ft-bench gen-grid -q -n 3 -k 40 --head $r "$T/x.ftx" | cmp - "$T/r$r.grid"
    done
    ft-bench gen-grid -q -n 3 -k 40 --head 7 -o "$T/only{}" "$T/x.ftx"
    cmp "$T/only7" "$T/r7.grid"
    run -1 cmp -s "$T/r0.grid" "$T/r7.grid"
    # Log-probs, and tokens of the head, are those of the widest head.
    for at in 65 $((65 + 4 * 40 * 8)); do
        [ "$at" = 65 ] && n=28 || n=$((4 * 40 * 8))
        cmp <(tail -c +$at "$T/r7.grid" | head -c $n) \
            <(tail -c +$at "$T/r40.grid" | head -c $n)
    done
    fails 2 "several heads need an output such as" \
        ft-bench gen-grid --head 0,7 -o "$T/x" "$T/x.ftx"
    for list in "" , 1, 1,,2 x 1001 0,1001; do
        fails 2 "option '--head': '$list' is not numbers from 0 to 1000 (K), such as 0,500,1000" \
            ft-bench gen-grid --head "$list" -o "$T/{}" "$T/x.ftx"
    done
    [ -z "$(find "$T" -name '[01]*')" ]
    fails 2 "'7' is not numbers from 0 to 6 (K), such as 0,3,6" \
        ft-bench gen-grid --head 7 -k 6 "$T/x.ftx"
    ft-bench gen-grid -q -n 1 --head 6 -k 6 "$T/x.ftx" >"$T/whole"
    # What a preset has is cut.
    ft-bench gen-grid -q -n 1 -p model -k 6 "$T/x.ftx" >"$T/cut"
}

@test "gen-grid makes grids that ft-search and ft-inspect read" {
    ft-bench gen-keys -n 20000 -f binary | ft-build -q -o "$T/x.ftx"
    for option in "" --half "--head 10" "-t 3"; do
        ft-bench gen-grid -n 4 -k 30 $option -o "$T/grid" "$T/x.ftx"
        run -0 ft-inspect grid "$T/grid"
        [[ $output == *"queries      4"* ]]
        ft-search -q -e cpu -f tsv "$T/x.ftx" "$T/grid" | cut -f 1 | uniq >"$T/queries"
        [ "$(paste -sd ' ' "$T/queries")" = "0 1 2 3" ]
    done
}

@test "gen-grid --fill speaks on standard error only" {
    ft-bench gen-keys -n 20000 -f binary | ft-build -q -o "$T/x.ftx"
    ft-bench gen-grid -n 4 -k 30 --fill "$T/x.ftx" >"$T/with" 2>"$T/fill"
    ft-bench gen-grid -n 4 -k 30 "$T/x.ftx" 2>"$T/nothing" | cmp - "$T/with"
    mapfile -t said <"$T/fill"
    [[ ${said[0]} == "ft-bench: beam of 30, 4 queries, fill by step (%): "* ]]
    [[ ${said[1]} =~ ^"ft-bench: probes by step:"(" "[0-9]+){8}$ ]]
    [ ! -s "$T/nothing" ]
}

@test "gen-grid takes memory for the library's depth, not for all positions" {
    if sanitized; then skip "a sanitizer's own memory would be measured"; fi
    ft-bench gen-keys -n 2000 -f binary | ft-build -q -o "$T/x.ftx"
    (ulimit -v 500000; ft-bench gen-grid -n 1 -k 4 -t 65535 -o "$T/grid" "$T/x.ftx")
    [ "$(stat -c %s "$T/grid")" = $((64 + 65535 * 4 * 8)) ]
    ft-bench gen-grid -n 1 -k 4 -t 20 "$T/x.ftx" | head -c $((64 + 20 * 4 * 4)) | tail -c +65 |
        cmp - <(tail -c +65 "$T/grid" | head -c $((20 * 4 * 4)))
    seq 20000 | paste -sd ' ' | ft-build -q -o "$T/deep.ftx"
    fails 1 "65536 paths of 20000 tokens take 5242880000 bytes" \
        ft-bench gen-grid -n 1 -k 2 -t 20000 "$T/deep.ftx"
}

@test "gen-grid refuses a library without keys" {
    ft-build -q </dev/null -o "$T/none.ftx" 2>"$T/warning"
    fails 1 "no keys" ft-bench gen-grid "$T/none.ftx"
    fails 1 "there-is-none" ft-bench gen-grid "$T/there-is-none"
    fails 2 "" ft-bench gen-grid
}
