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

@test "--tails over a layout is the layout with tails" {
    for layout in narrow wide compact; do
        ft-build -q --layout $layout --tails -o "$T/a.ftx" "$T/keys"
        ft-build -q --layout $layout-tails -o "$T/b.ftx" "$T/keys"
        ft-build -q --layout $layout --tails=always -o "$T/c.ftx" "$T/keys"
        cmp "$T/a.ftx" "$T/b.ftx"
        cmp "$T/a.ftx" "$T/c.ftx"
        ft-build -q --layout $layout --tails=never -o "$T/d.ftx" "$T/keys"
        ft-build -q --layout $layout -o "$T/e.ftx" "$T/keys"
        cmp "$T/d.ftx" "$T/e.ftx"
    done
}

@test "the index gives back keys and key numbers" {
    for layout in narrow wide compact; do
        ft-build -q --layout $layout --tails --ids -o "$T/x.ftx" "$T/keys"
        ft-inspect verify "$T/x.ftx"
        ft-inspect dump "$T/x.ftx" | cmp - "$T/keys"
        [ "$(ft-inspect lookup "$T/x.ftx" "$T/keys" | tr '\n' ' ')" = "0 1 2 3 4 5 6 " ]
        [ "$(ft-inspect lookup "$T/x.ftx" <<< '2 3 4')" = - ]
        [ "$(ft-inspect predict "$T/x.ftx" 2 3 4)" = $'2 3 4 5\t4' ]
        [ "$(ft-inspect children "$T/x.ftx" 8)" = $'3\t-\t1\t-' ]
    done
}

@test "stats count the nodes in tails, and say what is shared" {
    for layout in narrow wide compact; do
        for tails in never always; do
            ft-build -q --layout $layout --tails=$tails -o "$T/x.ftx" "$T/keys"
            ft-inspect stats "$T/x.ftx" > "$T/$tails"
            sed -n '/mean degree/,$p' "$T/$tails" > "$T/levels.$tails"
        done
        cmp "$T/levels.never" "$T/levels.always"
        run -1 grep -e ^links -e ^alpha "$T/never"
        sed -n '/^links/,/^alpha/p' "$T/always" > "$T/$layout"
    done
    [ "$(cat "$T/narrow")" = \
"links        4
tail         4 tokens for 12
alpha        0.3333: Equation 1 (alpha < 0.5000) says that tails pay" ]
    [ "$(cat "$T/wide")" = \
"links        4
tail         4 tokens for 12
alpha        0.3333: Equation 1 (alpha < 0.6667) says that tails pay" ]
    [ "$(cat "$T/compact")" = \
"links        4
tail         3 tokens for 8
alpha        0.3750: Equation 1 (alpha < 0.2500) says that tails do not pay" ]
}

@test "--tails=auto goes by Equation 1" {
    run -0 --separate-stderr ft-build -v --layout narrow --tails=auto -o "$T/x.ftx" \
        "$T/keys"
    [[ ${stderr_lines[-1]} == "ft-build: tails: 4 links, 4 tokens for 12; alpha 0.3333, \
Equation 1 wants less than 0.5000: they pay, and are kept" ]]
    for layout in narrow wide compact; do
        run -0 --separate-stderr ft-build -v --layout $layout --tails=auto \
            -o "$T/x.ftx" <<< $'1 2 3\n2 3 4'
        [[ ${stderr_lines[-1]} == \
            *": they do not pay, and are left out: layout $layout" ]]
        ft-build -q --layout $layout -o "$T/y.ftx" <<< $'1 2 3\n2 3 4'
        cmp "$T/x.ftx" "$T/y.ftx"
    done
}

@test "over compact only the tails that pay are folded" {
    run -0 --separate-stderr ft-build -v --layout compact --tails -o "$T/x.ftx" \
        <<< $'1 2 3\n2 3 4\n3 5 6 7\n4 5 6 7'
    [[ ${stderr_lines[-1]} == "ft-build: tails: 2 links, 3 tokens for 6; "* ]]
    [ "$(ft-inspect dump "$T/x.ftx")" = $'1 2 3\n2 3 4\n3 5 6 7\n4 5 6 7' ]
}

@test "no keys, and no chains" {
    for layout in narrow wide compact; do
        ft-build -q --layout $layout --tails -o "$T/x.ftx" < /dev/null
        ft-inspect verify "$T/x.ftx"
        [ -z "$(ft-inspect dump "$T/x.ftx")" ]
        ft-build -q --layout $layout --tails -o "$T/x.ftx" <<< 7
        [ "$(ft-inspect dump "$T/x.ftx")" = 7 ]
    done
}

@test "--tails goes over no layout that has them" {
    for layout in narrow-tails wide-tails compact-tails; do
        run -2 --separate-stderr ft-build --layout $layout --tails -o "$T/x.ftx" "$T/keys"
        [[ $stderr == *"--tails does not go with --layout $layout"* ]]
        [ ! -e "$T/x.ftx" ]
    done
}
