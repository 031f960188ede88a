#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# ft-bench build and size.
bats_require_minimum_version 1.5.0
load helper

setup() {
    cd "$T" || exit 1
    ft-bench gen-keys -n 3000 -f binary -o keys
}

fails() {
    run "-$1" --separate-stderr "${@:3}"
    [ -z "$output" ]
    [[ $stderr == "ft-bench: "*"$2"* ]] || { echo "$stderr"; false; }
}

column() {
    awk -F '\t' -v name="$1" '/^#/ { next }
        !n++ { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { print $at[name] }'
}

@test "build measures every layout, and its bytes are those of ft-build" {
    ft-bench build -q --lookup keys >out
    [ "$(column layout <out | head -n -2 | paste -sd ' ')" = "$layouts" ]
    [ "$(column layout <out | tail -n 2 | paste -sd ' ')" = "marisa marisa-n1" ]
    for layout in $layouts; do
        ft-build -q --layout $layout -o x.ftx keys
        row=$(grep -P "^$layout\t" out)
        [ "$(cut -f 5 <<<"$row")" = "$(stat -c %s x.ftx)" ]
        [ "$(cut -f 3 <<<"$row")" = 3000 ]
        [ "$(cut -f 15 <<<"$row")" = ok ]
    done
    [ "$(column bits_per_node <out | head -n 1)" = \
        "$(ft-build -q -o x.ftx keys && ft-inspect stats x.ftx | awk '$1 == "bits/node" { print $2; exit }')" ]
    column peak_bytes <out | awk '$1 != "-" && $1 < 1000000 { exit 1 }'
    column lookups_per_s <out | awk '$1 != "-" && $1 < 1000 { exit 1 }'
    if command -v marisa-build >/dev/null; then
        [ "$(column status <out | tail -n 2 | sort -u)" = ok ]
    else
        [[ $(column status <out | tail -n 1) == "unavailable: no marisa-build"* ]]
    fi
}

@test "build gives MARISA every key" {
    command -v marisa-build >/dev/null || skip "no marisa-build"
    # Tokens with all digits: 0, 252, 253 and the largest; and what could be a tab.
    printf '0\n0 8\n0 9\n252\n253\n4097152080\n' >few
    ft-bench build -q --lookup few compact marisa >out
    [ "$(column keys <out | sort -u)" = 6 ]
    [ "$(column status <out | sort -u)" = ok ]
}

@test "build: passes, key numbers, a time limit, and going on with a file" {
    ft-bench build -q --passes 2 -o out keys compact compact+ids
    [ "$(column layout <out | paste -sd ' ')" = "compact compact+ids" ]
    [ "$(column passes <out | sort -u)" = 2 ]
    [ "$(column sd_s <out | grep -c -- '^-$')" = 0 ]
    [ "$(column bytes <out | sort -n | tail -n 1)" = "$(column bytes <out | tail -n 1)" ]
    cp out before
    ft-bench build -q --passes 2 -o out --resume keys compact+ids wide
    [ "$(column layout <out | paste -sd ' ')" = "compact compact+ids wide" ]
    head -n "$(wc -l <before)" out | cmp - before
    ft-bench gen-keys -n 1000000 -o many
    run -0 ft-bench build -q --time-limit 0.01 many wide
    [[ $(column status <<<"$output") == *" of 1000000 keys read in 0.01 s" ]]
    [ "$(column seconds <<<"$output")" = - ]
    [ -z "$(ls -A "$T" | grep ft-bench)" ]
}

@test "build: what the time limit ends says how far it got" {
    ft-bench gen-keys -n 4000000 -o many
    for limit in 0.01 0.02 0.04 0.08 0.16 0.32 0.64 1.28 2.56 5.12; do
        got=$(ft-bench build -q --time-limit $limit many wide | column status)
        [[ $got == "0 of "* ]] || break
    done
    [[ $got == [1-9]*" of 4000000 keys read in $limit s" ]]
    mkdir bin
    cat >bin/marisa-build <<'END'
#!/bin/sh
dd bs=5 count=800 status=none
[ -e twice ] || { touch twice && exit; }
exec sleep 99
END
    printf '#!/bin/sh\ndd bs=5 count=12 status=none\nexec sleep 99\n' >bin/marisa-lookup
    chmod +x bin/*
    PATH=$PWD/bin:$PATH
    seq 10000 10999 >thousand
    run -0 ft-bench build -q --time-limit 0.5 --passes 3 --lookup thousand marisa
    [ "$(column status <<<"$output")" = "1 of 3 passes, then 800 of 1000 keys read in 0.5 s" ]
    [ "$(column passes <<<"$output")$(column sd_s <<<"$output")" = 1- ]
    [[ $(column seconds <<<"$output") == 0.* ]]
    [ "$(column lookups_per_s <<<"$output")" = - ]
    run -0 ft-bench build -q --time-limit 0.5 -f json thousand marisa
    [[ $output == *'"status": "800 of 1000 keys read in 0.5 s"'* ]]
    rm twice
    run -0 ft-bench build -q --time-limit 0.5 --lookup thousand marisa
    [ "$(column status <<<"$output")" = "lookups: 12 of 1000 keys read in 0.5 s" ]
    [[ $(column seconds <<<"$output") == 0.* ]]
}

@test "build: what was unavailable is measured when it is there" {
    cat >later <<'END'
#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" = -o ] && cat >"$2"; shift; done
END
    chmod +x later
    program=$(command -v ft-bench)
    PATH=/nowhere run -0 "$program" build -q -o out keys marisa compact
    [ "$(column status <out | cut -c 1-11 | paste -sd ' ')" = "unavailable ok" ]
    mkdir bin
    mv later bin/marisa-build
    printf '#!/bin/sh\ncat\n' >bin/marisa-lookup
    chmod +x bin/marisa-lookup
    PATH=$PWD/bin:$PATH ft-bench build -q -o out --resume keys marisa compact
    [ "$(column layout <out | paste -sd ' ')" = "compact marisa" ]
    [ "$(column status <out | paste -sd ' ')" = "ok ok" ]
    for lookup in 'cat >/dev/null' "sed 's/^/-1 /'"; do
        printf '#!/bin/sh\n%s\n' "$lookup" >bin/marisa-lookup
        PATH=$PWD/bin:$PATH run -1 --separate-stderr ft-bench build -q --lookup keys marisa
        [ "$(column status <<<"$output")" = \
            "failed: marisa-lookup does not find all keys" ]
    done
}

@test "build: tokens that stock MARISA's keys have no room for" {
    command -v marisa-build >/dev/null || skip "no marisa-build"
    printf '8\n9\n10 4097152080\n' >large
    run -0 ft-bench build -q --lookup large marisa
    [ "$(column status <<<"$output")" = ok ]
    printf '10 4097152081\n' >>large
    run -0 --separate-stderr ft-bench build -q large compact marisa
    [ "$(column status <<<"$output" | paste -sd ,)" = \
        "ok,unavailable: a token is above 4097152080" ]
}

@test "build: another header with other keys and options" {
    ft-bench build -q -o out keys compact
    fails 1 "out: is of another run" ft-bench build -q -o out --resume --lookup keys wide
    fails 1 "out: is of another run" \
        ft-bench build -q -o out --resume --time-limit 9 keys wide
    ft-bench gen-keys -p titles -n "$(column keys <out)" -o other
    cp other keys
    fails 1 "out: is of another run" ft-bench build -q -o out --resume keys wide
    # As many keys and bytes.
    printf '10 11\n12 13\n' >same
    rm out
    ft-bench build -q -o out same compact
    printf '10 13\n12 11\n' >same
    fails 1 "out: is of another run" ft-bench build -q -o out --resume same wide
}

@test "build: keys out of order, no such file, no such layout" {
    printf '2\n1\n' >bad
    fails 1 "bad: line 2: key out of order" ft-bench build -q bad compact
    fails 1 "none" ft-bench build -q none compact
    fails 2 "'narow' is no layout" ft-bench build keys narow
    fails 2 "'marisa+ids' is no layout" ft-bench build keys marisa+ids
    fails 2 "read more than once" ft-bench build - compact
    run -1 --separate-stderr ft-bench build --tmpdir "$T/there-is-none" keys compact
    [[ $stderr == "ft-bench: $T/there-is-none/"*"No such file or directory" ]]
}

@test "size is what ft-inspect says" {
    for layout in $layouts; do
        ft-build -q --layout $layout -o $layout.ftx keys
    done
    ft-bench size -q ./*.ftx >out
    [ "$(column layout <out | sort | paste -sd ' ')" = \
        "$(tr ' ' '\n' <<<"$layouts" | sort | paste -sd ' ')" ]
    [ "$(column keys <out | sort -u)" = 3000 ]
    for layout in $layouts; do
        [ "$(grep -F "./$layout.ftx" out | cut -f 6)" = \
            "$(ft-inspect stats $layout.ftx | awk '$1 == "bits/node" { print $2; exit }')" ]
    done
    fails 1 "keys" ft-bench size keys -o out2
}

@test "build takes no keys from a pipe, which would be empty the second time" {
    fails 2 "KEYS is read more than once" ft-bench build -q <(cat keys) compact
}
