#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What all commands do with their command lines.
bats_require_minimum_version 1.5.0
load helper

commands=(ft-build ft-search ft-inspect)

# usage MESSAGE COMMAND...: a usage error says so on standard error, and only there.
usage() {
    run -2 --separate-stderr "${@:2}" < /dev/null
    [ -z "$output" ]
    [[ ${stderr_lines[0]} == *"$1"* ]] || { echo "$stderr"; false; }
    [[ ${stderr_lines[1]} == "$2: try '$2"*" --help'" ]]
}

@test "--help and --version go to standard output" {
    for c in "${commands[@]}"; do
        run -0 --separate-stderr "$c" --help
        [ -z "$stderr" ]
        [[ ${lines[0]} == "Usage: $c "* ]]
        [[ $output == *"--progress"*"--help"*"--version"* ]]
        run -0 --separate-stderr "$c" -V
        [ -z "$stderr" ]
        [[ $output =~ ^$c\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
    done
    run -0 --separate-stderr ft-inspect predict -h
    [[ ${lines[0]} == "Usage: ft-inspect predict "* ]]
    [[ $output == *"--limit N"* ]]
}

@test "--help goes before all that follows, options before it count" {
    run -0 ft-search -b 3 --help --no-such-option
    run -2 ft-search -b x --help
}

@test "--help to a full disk fails, to a closed pipe it does not" {
    [ -c /dev/full ] || skip "no /dev/full"
    run -1 --separate-stderr bash -c 'ft-build --help > /dev/full'
    [ "$stderr" = "ft-build: (standard output): cannot write: No space left on device" ]
    run -1 --separate-stderr bash -c 'ft-build --version >&-'
    [[ $stderr == *"(standard output): cannot write"* ]]
    run -0 --separate-stderr bash -c '(sleep 0.3; ft-build --help; echo $? > "$1") |
        true; cat "$1"' - "$T/status"
    [ "$output" = 0 ]
    [ -z "$stderr" ]
}

@test "--help-options has each option of --help and no other" {
    for c in "${commands[@]}"; do
        "$c" --help | grep -o -- '--[a-z][a-z-]*' | sort -u > "$T/help"
        "$c" --help-options | awk -F '\t' '$5 == "-" { print $1 }' | sort > "$T/table"
        diff "$T/help" "$T/table"
    done
    ft-inspect --help-options | awk -F '\t' 'NF != 5 { exit 1 }'
    for s in stats verify dump lookup children predict grid results; do
        ft-inspect $s --help | grep -o -- '--[a-z][a-z-]*' | sort -u > "$T/help"
        ft-inspect --help-options | awk -F '\t' -v s=$s '$5 == s { print $1 }' |
            sort > "$T/table"
        diff "$T/help" "$T/table"
    done
    [ "$(ft-build --help-options | grep '^--compress')" = $'--compress\t-\t[LEVEL]\t-\t-' ]
    [ "$(ft-search --help-options | grep '^--engine')" = \
        $'--engine\t-e\tNAME\tauto|cpu|cuda\t-' ]
}

@test "options that are not there, not clear, or not whole" {
    usage "unknown option '--no-such'" ft-build --no-such
    usage "unknown option '--sorted'" ft-build --sorted
    usage "unknown option '-Z'" ft-build -qZ
    usage "option '--su' needs an argument" ft-build --su
    usage "option '-o' needs an argument" ft-build -o
    usage "option '--ids' takes no argument" ft-build --ids=1
    usage "option '--b' is ambiguous" ft-search --b 3 x
    usage "unknown option '--limit'" ft-inspect dump --limit 3 x
}

@test "numbers are strict, and the message has option, value and range" {
    usage "option '--beam': '12x' is not a whole number from 1 to 16777216" \
        ft-search -b 12x x
    usage "option '--beam': '' is not" ft-search -b '' x
    usage "option '--beam': ' 1' is not" ft-search -b ' 1' x
    usage "option '--beam': '+1' is not" ft-search -b +1 x
    usage "option '--beam': '-1' is not" ft-search -b -1 x
    usage "option '--beam': '0' is not" ft-search --beam=0 x
    usage "option '--beam': '0x10' is not" ft-search --beam=0x10 x
    usage "option '--results': '16777217' is not" ft-search -n 16777217 x
    usage "option '--results': '4294967297' is not" ft-search -n 4294967297 x
    usage "option '--threads': '18446744073709551617' is not a whole number from 0 to 1024" \
        ft-search -j 18446744073709551617 x
    usage "option '--alpha': '65' is not a number from -64 to 64" ft-search -a 65 x
    usage "option '--alpha': 'nan' is not" ft-search -a nan x
    usage "option '--alpha': '0x1p3' is not" ft-search -a 0x1p3 x
    usage "option '--alpha': '1e999' is not" ft-search -a 1e999 x
    usage "option '--alpha': '1.5.2' is not" ft-search -a 1.5.2 x
    usage "option '--alpha': '' is not" ft-search -a '' x
    usage "option '--alpha': '-' is not" ft-search -a - x
    usage "option '--token-threshold': 'nan' is not a number from -inf to inf" \
        ft-search --token-threshold nan x
    usage "option '--token-threshold': '-1e40' is not" ft-search --token-threshold=-1e40 x
    usage "option '--sentence-threshold': '' is not" ft-search --sentence-threshold= x
    usage "option '--compress': '20' is not a whole number from 1 to 19" \
        ft-build --compress=20
    usage "option '--compress': '0' is not" ft-build --compress=0
    usage "option '--limit': '0' is not" ft-inspect predict --limit 0 x
    usage "option '--query': '-3' is not" ft-inspect grid --query -3 x
    usage "option '--query': '18446744073709551616' is not a whole number from 0 to 18446744073709551615" \
        ft-inspect grid --query 18446744073709551616 x
}

@test "names are of a list, and the message has it" {
    usage "option '--layout': 'tall' is not one of ${layouts// /, }" ft-build --layout tall
    usage "option '--engine': 'gpu' is not one of auto, cpu, cuda" ft-search -e gpu x
    usage "option '--format': 'csv' is not one of wire, tsv, jsonl" ft-search -f csv x
}

@test "negative values stand behind = or a blank" {
    printf '1 2\n' | ft-build -q -o "$T/x.ftx"
    for a in "-a -1" "-a-1" "--alpha=-1" "--alpha -1" "--token-threshold=-20" \
        "--token-threshold -20" "--sentence-threshold -inf" "--token-threshold=-1e2"; do
        run -0 ft-search $a -f tsv "$T/x.ftx" "$D/small8.T8.K100.r18.ftg"
        [ -z "$output" ]
    done
}

@test "operands: too few, too many, and options behind them" {
    usage "operands are missing: INDEX [GRID...]" ft-search
    usage "operands are missing: INDEX" ft-inspect stats
    usage "one operand too many: 'b'" ft-inspect verify a b
    usage "one operand too many: 'c'" ft-inspect lookup a b c
    usage "a subcommand is missing" ft-inspect
    usage "a subcommand is missing" ft-inspect -q
    usage "unknown subcommand 'list'" ft-inspect list
    printf '1 2\n' | ft-build -q -o "$T/x.ftx"
    run -0 ft-inspect dump "$T/x.ftx" -q
    [ "$output" = "1 2" ]
    run -0 ft-inspect -q dump -- "$T/x.ftx"
    [ "$output" = "1 2" ]
}

@test "options that do not go together" {
    usage "--binary and --vocab exclude each other" ft-inspect dump --binary --vocab v x
    usage "--ascii is for --tree" ft-inspect children --ascii x
    usage "--top is for --query" ft-inspect grid --top 3 x
    usage "--vocab is for --query" ft-inspect grid --vocab v x
    usage "cannot both go to standard output" ft-search --stats - x
    usage "cannot both go to standard output" ft-search --stats=- -o - x
}

@test "-q silences the summary, -v says more, the last one wins" {
    run -0 --separate-stderr ft-build -o "$T/x.ftx" <<< "1 2"
    [[ $stderr == "ft-build: $T/x.ftx: 1 keys, 3 nodes, "*" s" ]]
    run -0 --separate-stderr ft-build -q -o "$T/x.ftx" <<< "1 2"
    [ -z "$stderr" ]
    run -0 --separate-stderr ft-search -q -v -f tsv "$T/x.ftx" \
        "$D/small8.T8.K100.r18.ftg"
    [[ $stderr == *" layout, 1 keys, 3 nodes; engine "*"8 queries in "* ]]
    run -0 --separate-stderr ft-search -v -q -f tsv "$T/x.ftx" \
        "$D/small8.T8.K100.r18.ftg"
    [ -z "$stderr" ]
}

@test "-v of ft-build and ft-inspect" {
    run -0 --separate-stderr ft-build -v --layout narrow -o "$T/x.ftx" <<< $'1\n1\n1 2'
    [[ ${stderr_lines[1]} == "ft-build: narrow layout: "*"; 3 keys read from 8 bytes" ]]
    run -0 --separate-stderr ft-inspect dump -v "$T/x.ftx"
    [[ $stderr == "ft-inspect: $T/x.ftx: narrow layout, 2 keys, 3 nodes; open after "*" ms" ]]
    run -0 --separate-stderr ft-inspect -v dump "$T/x.ftx"
    [[ $stderr == "ft-inspect: $T/x.ftx: narrow layout, 2 keys, "* ]]
}

@test "progress of a search" {
    echo 1 | ft-build -q -o "$T/x.ftx"
    local grid=$D/small8.T8.K100.r18.ftg
    { head -c 20000 "$grid"; sleep 0.4; tail -c +20001 "$grid"; } |
        { run -0 --separate-stderr ft-search --progress --batch 1 -f tsv "$T/x.ftx"
        [[ $stderr == "ft-search: "*" queries, "*" queries/s" ]]; }
    { head -c 20000 "$grid"; sleep 0.4; tail -c +20001 "$grid"; } |
        { run -0 --separate-stderr ft-search -q --progress --batch 1 -f tsv "$T/x.ftx"
        [ -z "$stderr" ]; }
}

@test "progress: only with --progress where standard error is no terminal, not with -q" {
    keys() { sleep 0.4; seq 1 40000; sleep 0.4; seq 40001 80000; }
    keys | { run -0 --separate-stderr ft-build -o "$T/x.ftx"; [[ $stderr != *"B read"* ]]; }
    keys | { run -0 --separate-stderr ft-build --progress -o "$T/x.ftx"
        [[ $stderr == *" keys, "*"B read, "*" keys/s"*"80000 keys"* ]]; }
    keys | { run -0 --separate-stderr ft-build --progress -q -o "$T/x.ftx"
        [ -z "$stderr" ]; }
}

@test "standard descriptors that are closed are not files' to take" {
    echo "1 2" > "$T/keys"
    ft-build -q -o "$T/x.ftx" "$T/keys"
    cp "$T/x.ftx" "$T/before.ftx"
    run -1 --separate-stderr bash -c 'ft-inspect dump "$1" >&-' - "$T/x.ftx"
    [[ $stderr == *"(standard output): cannot write: Bad file descriptor"* ]]
    run -1 --separate-stderr bash -c 'ft-build -q -o "$1" <&-' - "$T/y.ftx"
    [[ $stderr == *"(standard input): "*"Bad file descriptor"* ]]
    [ ! -e "$T/y.ftx" ]
    bash -c 'ft-build -o "$1" "$2" 2>&-' - "$T/x.ftx" "$T/keys"
    cmp "$T/x.ftx" "$T/before.ftx"
}
