#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
bats_require_minimum_version 1.5.0
load helper

# What does not fit one block of input: some 12 MiB of text.
setup_file() {
    export big=$BATS_FILE_TMPDIR/big.txt
    awk 'BEGIN { for (i = 0; i < 600000; i++) {
        a = int(i / 1000); b = i % 1000 * 77
        print a, b; print a, b, i * 7 % 65521 }
        print "4294967294" }' > "$big"
}

# sums OPTION...: checksums of the indexes that 1, 2 and 7 threads build, each once.
sums() {
    for j in 1 2 7; do
        ft-build -q -j $j "$@" | sha256sum
    done | sort -u
}

@test "the same file on 1, 2 and 7 threads, from any form of input" {
    ft-build -q --layout narrow -o "$T/x.ftx" "$big"
    ft-inspect dump "$T/x.ftx" | cmp - "$big"
    zstd -q "$big" -o "$T/big.zst"
    for layout in $layouts; do
        run -0 sums --layout $layout "$big"
        [ "${#lines[@]}" = 1 ]
        one=$output
        [ "$(sums --layout $layout "$T/big.zst")" = "$one" ]
        [ "$(ft-build -q -j 3 --layout $layout < "$big" | sha256sum)" = "$one" ]
        [ "$(sums --layout $layout "$T/x.ftx")" = "$one" ]
        [ "$(sums --layout $layout "$big" "$T/x.ftx" --subtract /dev/null)" = "$one" ]
    done
}

@test "key numbers and compressed sections, too" {
    for layout in $layouts; do
        run -0 sums --ids --layout $layout --compress "$big"
        [ "${#lines[@]}" = 1 ]
        ft-build -q --ids --layout $layout --compress -o "$T/x.ftx" "$big"
        [ "$(ft-inspect verify "$T/x.ftx")" = \
            "$T/x.ftx: valid: 1200001 keys, 1200602 nodes" ]
        run -0 ft-inspect lookup "$T/x.ftx" <<< $'599 76923 6649\n4294967294'
        [ "$output" = $'1199999\n1200000' ]
    done
}

@test "lines are counted over all blocks" {
    { cat "$big"; printf '\n\n4294967294\n4294967294 1\n'; } > "$T/keys"
    for j in 1 2 7; do
        run -0 --separate-stderr ft-build -j $j -o "$T/x.ftx" "$T/keys"
        [[ $stderr == *" 1200002 keys, "*" 2 empty lines skipped, 1 duplicates, "* ]]
    done
}

@test "a key out of order is named, wherever it is" {
    for line in 1 2 299999 599999 1100000 1200001; do
        awk -v line=$line 'NR == line { print "4294967294 9" } 1' "$big" > "$T/keys"
        for j in 1 2 7; do
            run -1 --separate-stderr ft-build -j $j -o "$T/x.ftx" "$T/keys"
            [[ $stderr == "ft-build: $T/keys: line $((line + 1)): key out of order: "* ]]
            [[ $stderr == *" after '4294967294 9' "* ]]
            [ ! -e "$T/x.ftx" ]
        done
    done
}

@test "what is wrong first is said, though others find more" {
    awk 'NR == 500000 { print "x" } NR == 900000 { print "1" } 1' "$big" > "$T/keys"
    for j in 1 2 7; do
        run -1 --separate-stderr ft-build -j $j -o "$T/x.ftx" "$T/keys"
        [[ $stderr == "ft-build: $T/keys: line 500000, column 1: unexpected 'x'"* ]]
    done
    zstd -q "$T/keys" -o "$T/keys.zst"
    head -c -5 "$T/keys.zst" > "$T/cut.zst"
    run -1 --separate-stderr ft-build -j 7 -o "$T/x.ftx" "$T/cut.zst"
    [[ $stderr == "ft-build: $T/cut.zst: line 500000, column 1: unexpected 'x'"* ]]
    zstd -q "$big" -o "$T/big.zst"
    head -c -5 "$T/big.zst" > "$T/cut.zst"
    run -1 --separate-stderr ft-build -j 7 -o "$T/x.ftx" "$T/cut.zst"
    [[ $stderr == "ft-build: $T/cut.zst: zstd frame cut short"* ]]
}

@test "an error ends the build of a pipe that stays open" {
    mkfifo "$T/pipe"
    { printf '2\n1\n3\n4\n5\n'; exec sleep 20; } > "$T/pipe" &
    local writer=$!
    run -1 --separate-stderr timeout 10 ft-build -j 4 -o "$T/x.ftx" "$T/pipe"
    kill $writer
    [[ $stderr == *"line 2: key out of order"* ]]
}

@test "-j takes 0 to 256" {
    echo 1 | ft-build -q -j 0 -o "$T/x.ftx"
    echo 1 | ft-build -q -j 256 -o "$T/y.ftx"
    cmp "$T/x.ftx" "$T/y.ftx"
    run -2 --separate-stderr ft-build -j 257 -o "$T/x.ftx" /dev/null
    [[ $stderr == *"'257' is not a whole number from 0 to 256"* ]]
}
