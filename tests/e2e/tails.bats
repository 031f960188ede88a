#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ft-build --tails. That searches give the same is for oracle.bats, which goes through
# all layouts.
bats_require_minimum_version 1.5.0
load helper

setup() {
    set -o pipefail
    printf '%s\n' '1' '1 2 7' '1 2 9' '1 3 4 5' '2 3 4 5' '2 4 5' '8 3 4 5' > "$T/keys"
}

@test "--tails is the layout narrow-tails" {
    ft-build -q --layout narrow --tails -o "$T/a.ftx" "$T/keys"
    ft-build -q --layout narrow-tails -o "$T/b.ftx" "$T/keys"
    ft-build -q --layout narrow --tails=always -o "$T/c.ftx" "$T/keys"
    cmp "$T/a.ftx" "$T/b.ftx"
    cmp "$T/a.ftx" "$T/c.ftx"
    ft-build -q --layout narrow --tails=never -o "$T/d.ftx" "$T/keys"
    ft-build -q --layout narrow -o "$T/e.ftx" "$T/keys"
    cmp "$T/d.ftx" "$T/e.ftx"
}

@test "the index gives back keys and key numbers" {
    ft-build -q --layout narrow --tails --ids -o "$T/x.ftx" "$T/keys"
    ft-inspect verify "$T/x.ftx"
    ft-inspect dump "$T/x.ftx" | cmp - "$T/keys"
    [ "$(ft-inspect lookup "$T/x.ftx" "$T/keys" | tr '\n' ' ')" = "0 1 2 3 4 5 6 " ]
    [ "$(ft-inspect lookup "$T/x.ftx" <<< '2 3 4')" = - ]
    [ "$(ft-inspect predict "$T/x.ftx" 2 3 4)" = $'2 3 4 5\t4' ]
    [ "$(ft-inspect children "$T/x.ftx" 8)" = $'3\t-\t1\t-' ]
}

@test "stats count the nodes in tails, and say what is shared" {
    for layout in narrow narrow-tails; do
        ft-build -q --layout $layout -o "$T/x.ftx" "$T/keys"
        ft-inspect stats "$T/x.ftx" > "$T/$layout"
        sed -n '/mean degree/,$p' "$T/$layout" > "$T/levels.$layout"
    done
    cmp "$T/levels.narrow" "$T/levels.narrow-tails"
    [ "$(sed -n '/^links/,/^alpha/p' "$T/narrow-tails")" = \
"links        4
tail         4 tokens for 12
alpha        0.3333: Equation 1 (alpha < 0.6667) says that tails pay" ]
    run -1 grep -e ^links -e ^alpha "$T/narrow"
}

@test "--tails=auto goes by Equation 1" {
    run -0 --separate-stderr ft-build -v --layout narrow --tails=auto -o "$T/x.ftx" \
        "$T/keys"
    [[ ${stderr_lines[-1]} == "ft-build: tails: 4 links, 4 tokens for 12; alpha 0.3333, \
Equation 1 wants less than 0.6667: they pay, and are kept" ]]
    run -0 --separate-stderr ft-build -v --layout narrow --tails=auto -o "$T/x.ftx" \
        <<< $'1 2 3\n2 3 4'
    [[ ${stderr_lines[-1]} == *": they do not pay, and are left out: layout narrow" ]]
    [ "$(ft-inspect stats "$T/x.ftx" | awk '$1 == "layout" { print $2 }')" = narrow ]
}

@test "--tails goes with no other layout" {
    for layout in wide compact narrow-tails; do
        run -2 --separate-stderr ft-build --layout $layout --tails -o "$T/x.ftx" "$T/keys"
        [[ $stderr == *"--tails goes with --layout narrow"* ]]
        [ ! -e "$T/x.ftx" ]
    done
}
