#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What users of neighbouring tools ran into, one test each. The situations come from
# public issue threads, named at each test.
bats_require_minimum_version 1.5.0
load helper

setup() {
    set -o pipefail
    [ -n "$layouts" ]
    oracle=$(dirname "$(command -v ft-search)")/tests/oracle
}

# library LAYOUT KEY...: $T/keys and $T/x.ftx with key numbers.
library() {
    printf '%s\n' "${@:2}" > "$T/keys"
    ft-build -q --ids --layout "$1" -o "$T/x.ftx" "$T/keys"
}

# grid POSITION...: $T/g.ftg of one query; a position is "TOKEN:LOGP ...".
grid() {
    printf '%s\n' "$@" | "$oracle/ft-mkgrid" > "$T/g.ftg"
}

# search OPTION...: the tokens of the results, best first, a line each.
search() {
    ft-search -f tsv "$@" "$T/x.ftx" "$T/g.ftg" | cut -f 4
}

# agrees OPTION...: the results are the oracle's.
agrees() {
    ft-search "$@" "$T/x.ftx" "$T/g.ftg" > "$T/got"
    "$oracle/ft-oracle" "$@" "$T/keys" "$T/g.ftg" > "$T/want"
    cmp "$T/got" "$T/want"
}

# n_results FILE: the count in the header of a wire file's first record.
n_results() {
    od -A n -t u8 -N 8 "$1" | tr -d ' '
}

@test "R1: proposals of probability zero give no result (HF transformers 22890)" {
    for layout in $layouts; do
        library "$layout" "1" "1 2" "3"
        grid "1:-inf 3:-inf" "2:-inf"
        ft-search "$T/x.ftx" "$T/g.ftg" > "$T/got"
        cmp "$T/got" <(head -c 8 /dev/zero)
        [ -z "$(search)" ]
        grid "1:-1 3:-inf" "2:-inf"
        [ "$(search)" = "1" ]
    done
}

@test "R2: a beam without a valid child dies, nothing outside the library (MiniOneRec 50)" {
    for layout in $layouts; do
        library "$layout" "1 2 3"
        grid "1:-1 9:-0.1" "2:-1 8:-0.1" "7:-1 1:-0.1"
        [ -z "$(search)" ]
        ft-build -q --layout "$layout" -o "$T/x.ftx" "$D/small.o200k.txt"
        cp "$D/small8.T8.K100.r18.ftg" "$T/g.ftg"
        search -b 100 > "$T/got"
        [ "$(wc -l < "$T/got")" -gt 100 ]
        [ -z "$(sort -u "$T/got" | comm -23 - <(sort -u "$D/small.o200k.txt"))" ]
    done
}

@test "R3: paths are not crossed: 1 2 9 is not in {1 2 3; 8 2 9} (OneRec-Think 13)" {
    for layout in $layouts; do
        library "$layout" "1 2 3" "8 2 9"
        grid "1:-0.5 8:-1" "2:-0.5" "3:-2 9:-0.25"
        [ "$(search -b 10)" = $'8 2 9\n1 2 3' ]
        grid "1:-0.5" "2:-0.5" "9:-0.25"
        [ -z "$(search -b 10)" ]
    done
}

@test "R4: tokens that repeat in a key, at any depth (GENRE 51)" {
    # All words over {2, 3} of up to six letters but those that hold 2 2 3.
    for n in 1 2 3 4 5 6; do
        for ((i = 0; i < 1 << n; i++)); do
            w=
            for ((j = n; j-- > 0;)); do
                w+=" $((2 + (i >> j & 1)))"
            done
            echo "${w# }"
        done
    done | grep -v '2 2 3' | sort -u -V > "$T/keys"
    for layout in $layouts; do
        ft-build -q --layout "$layout" -o "$T/x.ftx" "$T/keys"
        grid "2:-0.5 3:-0.7" "2:-1.5 3:-0.5" "2:-0.5 3:-0.5" "3:-0.25 2:-0.3" \
            "2:-1 3:-1" "2:-0.5 3:-0.75"
        agrees -b 100 -n 1000
        [ "$(n_results "$T/got")" = "$(wc -l < "$T/keys")" ]
        agrees -b 5 -n 20 -a 0.6
    done
}

@test "R5: two valid keys and five beams give two rows (GENRE 47)" {
    for layout in $layouts; do
        library "$layout" "1 2" "1 3"
        grid "1:-1 4:-1 5:-1" "2:-1 3:-2 4:-1"
        ft-search -b 5 -n 5 "$T/x.ftx" "$T/g.ftg" > "$T/got"
        [ "$(n_results "$T/got")" = 2 ]
        [ "$(stat -c %s "$T/got")" = $((8 + 2 * 16 + 4 * 4)) ]
        [ "$(search -b 5 -n 5)" = $'1 2\n1 3' ]
    done
}

@test "R6: results are unique and each score is the sum of its proposals (HF 17812)" {
    for layout in $layouts; do
        library "$layout" "1 1" "1 2" "1 2 1" "2" "2 1 2"
        grid "1:-0.5 2:-0.25 1:-0.75 2:-0.25" "1:-1.5 2:-0.125 1:-3" "2:-2.5 1:-0.0625"
        run -0 ft-search -f tsv -a 0 -b 9 "$T/x.ftx" "$T/g.ftg"
        [ "$(cut -f 2- <<< "$output")" = "$(tr ' ' '\t' <<< "\
0 -0.25 2 3
1 -0.625 1_2 1
2 -0.6875 1_2_1 2
3 -2 1_1 0
4 -4.25 2_1_2 4" | tr _ ' ')" ]
    done
}

@test "R7: a key may be a prefix of another; both come (HF 15761)" {
    for layout in $layouts; do
        library "$layout" "1" "1 2" "1 2 3" "1 4"
        grid "1:-1" "2:-1" "3:-1"
        [ "$(search -b 4 -a 0)" = $'1\n1 2\n1 2 3' ]
    done
}

@test "R8: finished results keep no beam from going on (ParlAI 2058)" {
    for layout in $layouts; do
        library "$layout" "1" "2" "3" "4 5" "4 5 6"
        grid "1:-0.1 2:-0.2 3:-0.3 4:-9" "5:-9" "6:-9"
        [ "$(search -b 1 -n 9 -a 0)" = $'1\n2\n3\n4 5\n4 5 6' ]
    done
}

@test "R9: the length norm counts generated tokens only (vLLM 2606)" {
    for layout in $layouts; do
        # Equal sums of -2 over 1, 2 and 3 tokens.
        library "$layout" "5" "6 7" "6 8 9"
        grid "5:-2 6:-1" "7:-1 8:-0.5" "9:-0.5"
        run -0 ft-search -f tsv -n 3 "$T/x.ftx" "$T/g.ftg"
        [ "$output" = "\
0	0	-0.474609375	6 8 9	2
0	1	-0.92532873207592048	6 7	1
0	2	-2	5	0" ]
        # Without the norm they tie, and the shorter goes first.
        [ "$(search -a 0 -n 3)" = $'5\n6 7\n6 8 9' ]
        # The empty positions of a longer grid are no tokens.
        grid "5:-2 6:-1" "7:-1 8:-0.5" "9:-0.5" "-" "-" "-" "-"
        [ "$(ft-search -f tsv -n 3 "$T/x.ftx" "$T/g.ftg")" = "$output" ]
    done
}

@test "R10: minus infinity never goes before a finite log-prob (OpenNMT-py 1844)" {
    for layout in $layouts; do
        library "$layout" "1" "2" "3"
        grid "1:-inf 2:-1e30 3:-inf"
        [ "$(search -b 3)" = "2" ]
        grid "1:-inf 2:-3e38 1:-2" "-"
        [ "$(search -b 1)" = "1" ]
    done
}

@test "R11: full result lists, and steps where every beam ends (TensorRT-LLM 15621)" {
    for layout in $layouts; do
        seq 0 299 > "$T/keys"
        ft-build -q --layout "$layout" -o "$T/x.ftx" "$T/keys"
        grid "$(seq -f '%g:-1' 0 299 | tr '\n' ' ')" "1:-1 2:-1" "1:-1"
        for n in 1 2 299 300 301; do
            agrees -b 10 -n $n
        done
        for a in {0..19}; do printf '%s\n' $a; printf "$a %s\n" {0..19}; done > "$T/keys"
        ft-build -q --layout "$layout" -o "$T/x.ftx" "$T/keys"
        grid "$(seq -f '%g:-1' 0 19 | tr '\n' ' ')" \
            "$(seq -f '%g:-0.5' 0 19 | tr '\n' ' ')" "0:-0.1 1:-0.2"
        for n in 1 7 419 420 421; do
            agrees -b 20 -n $n
        done
        [ "$(n_results "$T/got")" = 420 ]
    done
}

@test "R12: beam widths around the powers of two and others (TensorRT-LLM 12071)" {
    for layout in $layouts; do
        for a in {0..1499}; do printf "$a %s\n" 3 700 70000; done > "$T/keys"
        ft-build -q --layout "$layout" -o "$T/x.ftx" "$T/keys"
        awk 'BEGIN { for (i = 0; i < 1500; i++) printf "%d:-%g ", i, i * 7 % 64 / 16
                     print ""; print "3:-1 700:-1.25 70000:-1.5" }' |
            "$oracle/ft-mkgrid" > "$T/g.ftg"
        for b in 1 127 128 129 1000 1023 1024 1025; do
            agrees -b $b
            [ "$(n_results "$T/got")" = $b ]
        done
    done
}

@test "R13: positions with fewer proposals do not shift the others (vLLM 47126)" {
    for layout in $layouts; do
        library "$layout" "1 2 3" "1 4 3" "5 2" "5 4 3"
        grid "1:-1 5:-2" "2:-3 4:-0.5" "3:-1"
        agrees -b 4
        cp "$T/want" "$T/dense"
        for filled in "- - 1:-1 5:-2|2:-3 4:-0.5 - -|3:-1" \
            "1:-1 - - 5:-2|- 2:-3 - 4:-0.5|- - - 3:-1" \
            "1:-1 5:-2 -|2:-3 - 4:-0.5|- 3:-1 -|- - -" \
            "- 1:-1 5:-2|4:-0.5 - 2:-3|3:-1 - -|-"; do
            tr '|' '\n' <<< "$filled" | "$oracle/ft-mkgrid" > "$T/g.ftg"
            agrees -b 4
            cmp "$T/got" "$T/dense"
        done
    done
}

@test "R14: an option or flag that cannot be honoured is an error (vLLM 21546)" {
    library narrow "1"
    grid "1:-1"
    for options in "--no-such-option" "-b" "-b x" "-b -1" "-b 1.5" "-a nan" "-a" \
        "--token-threshold=nan" "--token-threshold=x" "-f csv" "-e abacus" "-j -1" \
        "--batch 0" "-n 99999999999999999999"; do
        run -2 --separate-stderr ft-search "$T/x.ftx" "$T/g.ftg" $options
        [ -z "$output" ]
        [[ $stderr == "ft-search: "* ]]
    done
    run -2 --separate-stderr ft-build --layout spiral -o "$T/y.ftx" "$T/keys"
    [[ $stderr == "ft-build: "*spiral* ]]
    [ ! -e "$T/y.ftx" ]
    # A flag of the grid that nobody knows.
    printf '\4' | dd of="$T/g.ftg" bs=1 seek=16 conv=notrunc status=none
    run -1 --separate-stderr ft-search "$T/x.ftx" "$T/g.ftg"
    [ -z "$output" ]
    [[ $stderr == "ft-search: $T/g.ftg: "*flag* ]]
}

@test "R15: ids beyond the vocabulary or the library match nothing (xgrammar 694)" {
    for layout in $layouts; do
        library "$layout" "1 9" "1 10" "1 4294967294" "7"
        printf '%s\n' "1:-1 7:-1 4294967294:-0.1 123456789:-0.1" \
            "9:-1 10:-0.5 4294967294:-0.5 4294967293:-0.1" > "$T/text"
        "$oracle/ft-mkgrid" < "$T/text" > "$T/g.ftg"
        [ "$(search -b 9)" = $'1 10\n1 4294967294\n1 9\n7' ]
        "$oracle/ft-mkgrid" --vocab 10 < "$T/text" > "$T/g.ftg"
        [ "$(search -b 9)" = $'1 9\n7' ]
        "$oracle/ft-mkgrid" --vocab 1 < "$T/text" > "$T/g.ftg"
        [ -z "$(search -b 9)" ]
    done
}

@test "R16: equal and near-equal scores, always the same (sglang 36807, FlashInfer 3529)" {
    for layout in $layouts; do
        for a in {0..99}; do printf "$a %s\n$a %s 7\n" {0..19}{,}; done |
            sort -u -V > "$T/keys"
        ft-build -q --layout "$layout" -o "$T/x.ftx" "$T/keys"
        grid "$(seq -f '%g:-1' 0 99 | tr '\n' ' ')" "$(seq -f '%g:-1' 0 99 | tr '\n' ' ')" \
            "7:-1"
        for b in 1 2 31 50 99 100 101; do
            agrees -b $b -n 777
        done
        # Neighbouring floats: sums that differ in the last bit, or no longer do.
        awk 'BEGIN { for (t = 0; t < 3; t++) { for (i = 0; i < 100; i++)
                     printf "%d:-%.9f ", i, 1 + i * 41 % 5 * 1.2e-7; print "" } }' |
            "$oracle/ft-mkgrid" > "$T/g.ftg"
        for b in 1 2 31 50 99 100 101; do
            agrees -b $b -n 777
        done
        for i in {1..100}; do
            ft-search -j $((1 + i % 7)) -b 101 -n 777 "$T/x.ftx" "$T/g.ftg" |
                cmp - "$T/want"
        done
    done
}

@test "R17: NaN and +inf are refused with query, position and rank (onnxruntime 32404)" {
    library narrow "1" "1 2"
    for value in nan inf; do
        for half in "" --half; do
            printf '%s\n' "1:-1 5:-1 6:-1" "2:-1" "" "1:-2 2:-1" "2:-1 4:-1 3:$value" |
                "$oracle/ft-mkgrid" $half > "$T/g.ftg"
            run -1 --separate-stderr ft-search -f tsv -a 0 "$T/x.ftx" "$T/g.ftg"
            [[ $stderr == "ft-search: $T/g.ftg: "*"query 1"*"position 1"*"rank 2"* ]]
            # What came before it has been answered.
            [ "$output" = $'0\t0\t-1\t1\t0\n0\t1\t-2\t1 2\t1' ]
        done
    done
}

@test "R18: memory of a build is bounded by the index, not by the keys (marisa-trie 18)" {
    if sanitized; then skip "a sanitizer's own memory would be measured"; fi
    # A million keys of 43 tokens that share their first 40: 300 MB of text.
    awk 'BEGIN { for (i = 0; i < 40; i++) p = p 100000 + i " "
                 for (i = 0; i < 1000000; i++)
                     print p int(i / 1000), i % 1000, 70000 + i % 17 }' |
        "$oracle/ft-peak" "$T/peak" ft-build -q -o "$T/x.ftx"
    bytes=$(stat -c %s "$T/x.ftx") peak=$(cat "$T/peak")
    echo "index $bytes bytes, peak $peak bytes"
    [ "$peak" -lt $((bytes * 5 / 2 + (64 << 20))) ]
    [ "$(ft-inspect dump "$T/x.ftx" | sed -n '$p')" = \
        "$(seq -s ' ' 100000 100039) 999 999 $((70000 + 999999 % 17))" ]
}

@test "R19: other files, cut files and empty ones are refused at once (pytries marisa 37)" {
    library narrow "1" "1 2" "3 70000 5"
    grid "1:-1" "2:-1"
    for layout in $layouts; do
        ft-build -q --ids --layout "$layout" -o "$T/x.ftx" "$T/keys"
        bytes=$(stat -c %s "$T/x.ftx")
        for ((n = 0; n < bytes; n += n < 128 ? 1 : 37)); do
            head -c $n "$T/x.ftx" > "$T/cut.ftx"
            run -1 --separate-stderr ft-search "$T/cut.ftx" "$T/g.ftg"
            [ -z "$output" ]
            [[ $stderr == "ft-search: $T/cut.ftx: "* ]]
        done
    done
    for other in "$T/keys" "$T/g.ftg" "$D/small8.queries.tsv" "$(command -v ft-search)"; do
        run -1 --separate-stderr ft-search "$other" "$T/g.ftg"
        [ -z "$output" ]
        [[ $stderr == "ft-search: $other: "* ]]
    done
    for other in "$T/x.ftx" "$T/keys"; do
        run -1 --separate-stderr ft-search "$T/x.ftx" "$other"
        [ -z "$output" ]
        [[ $stderr == "ft-search: $other: "* ]]
    done
    run -1 --separate-stderr ft-build -o "$T/y.ftx" "$T/g.ftg"
    [[ $stderr == "ft-build: $T/g.ftg: "* ]]
    [ ! -e "$T/y.ftx" ]
}

@test "R19: a grid cut anywhere is an error that names the query (mairix 35)" {
    library narrow "1" "1 2"
    printf '%s\n' "1:-1" "2:-1" "" "1:-2" "2:-1" | "$oracle/ft-mkgrid" > "$T/g.ftg"
    ft-search "$T/x.ftx" "$T/g.ftg" > "$T/want"
    bytes=$(stat -c %s "$T/g.ftg") record=$((2 * 8))
    for ((n = 0; n < bytes; n++)); do
        head -c $n "$T/g.ftg" > "$T/cut.ftg"
        run -1 --separate-stderr ft-search -o "$T/got" "$T/x.ftx" "$T/cut.ftg"
        [[ $stderr == "ft-search: $T/cut.ftg: "* ]]
        [ $n -lt 64 ] || [[ $stderr == *"query $(((n - 64) / record))"* ]]
    done
    head -c $((64 + record + 3)) "$T/g.ftg" > "$T/cut.ftg"
    run -1 --separate-stderr ft-search -f tsv -a 0 -n 2 "$T/x.ftx" "$T/cut.ftg"
    [ "$output" = $'0\t0\t-1\t1\t0\n0\t1\t-2\t1 2\t1' ]
}

@test "R20: key numbers are line numbers of the sorted library (marisa-trie 41)" {
    for layout in $layouts; do
        ft-build -q --ids --layout "$layout" -o "$T/x.ftx" "$D/small.o200k.txt"
        ft-inspect lookup "$T/x.ftx" "$D/small.o200k.txt" |
            cmp - <(awk '{ print NR - 1 }' "$D/small.o200k.txt")
        ft-search -f tsv -b 100 "$T/x.ftx" "$D/small8.T8.K100.r18.ftg" > "$T/got"
        [ "$(wc -l < "$T/got")" -gt 100 ]
        awk -F '\t' 'NR == FNR { number[$1] = NR - 1; next }
                     !($4 in number) || number[$4] != $5 { print; bad = 1 }
                     END { exit bad }' "$D/small.o200k.txt" "$T/got"
    done
}

@test "R21: a beam wider than the library is fine (STATIC)" {
    for layout in $layouts; do
        library "$layout" "1 2" "1 3" "4"
        grid "1:-1 4:-2" "2:-1 3:-1.5"
        for b in 1 3 4 1000 65536; do
            [ "$(search -b $b -n 10 -a 0)" = $'4\n1 2\n1 3' ]
        done
    done
}

@test "R22: an index is mapped: its size is what is resident (GENRE 102)" {
    if sanitized; then skip "a sanitizer's own memory would be measured"; fi
    awk 'BEGIN { for (i = 0; i < 8000000; i++) print int(i / 400), i % 400 * 999 }' |
        ft-build -q -o "$T/x.ftx"
    grid "77:-1 9999:-2" "999:-1"
    begin=${EPOCHREALTIME//[.,]/}
    "$oracle/ft-peak" "$T/peak" ft-search -f tsv -o "$T/got" "$T/x.ftx" "$T/g.ftg"
    us=$((${EPOCHREALTIME//[.,]/} - begin))
    [ "$(cut -f 4 "$T/got")" = $'77 999\n9999 999' ]
    bytes=$(stat -c %s "$T/x.ftx") peak=$(cat "$T/peak")
    echo "index $bytes bytes, peak $peak bytes, $us us"
    [ "$bytes" -gt $((8 << 20)) ] # a second copy would be seen
    [ "$peak" -lt $((bytes + (6 << 20))) ]
    [ $us -lt 500000 ]
}

@test "R23: keys out of order name the line, both keys and a way out (Unix sort)" {
    printf '10 1\n9\n' > "$T/keys"
    run -1 --separate-stderr ft-build -o "$T/x.ftx" "$T/keys"
    [ -z "$output" ]
    [ ! -e "$T/x.ftx" ]
    [[ $stderr == "ft-build: $T/keys: line 2: "*"out of order"* ]]
    [[ $stderr == *"10 1"* ]]
    [[ $stderr == *"'9'"* || $stderr == *"\"9\""* || $stderr == *" 9 "* ]]
    [[ $stderr == *"sort -u -V"* ]]
    # And that command works.
    sort -u -V "$T/keys" | ft-build -q -o "$T/x.ftx"
    [ "$(ft-inspect dump "$T/x.ftx")" = $'9\n10 1' ]
}

@test "R24: ids around every width, in every layout (GENRE MarisaTrie)" {
    ids=(0 1 54999 55000 65535 65536 2097152 4194304 4294967294)
    for layout in $layouts; do
        {
            printf '%s\n' "${ids[@]}"
            for a in "${ids[@]}"; do printf "$a %s\n" "${ids[@]}"; done
        } | sort -u -V > "$T/keys"
        ft-build -q --ids --layout "$layout" -o "$T/x.ftx" "$T/keys"
        ft-inspect dump "$T/x.ftx" | cmp - "$T/keys"
        ft-inspect lookup "$T/x.ftx" "$T/keys" | cmp - <(seq 0 89)
        grid "$(printf '%s:-1 ' "${ids[@]}")" "$(printf '%s:-1 ' "${ids[@]}")"
        agrees -b 9 -n 100
        [ "$(n_results "$T/got")" = 90 ]
        # Each one alone: no other id answers for it, nor it for another.
        for id in "${ids[@]}"; do
            grid "$id:-1" "0:-1"
            [ "$(search -a 0 -n 2)" = "$id"$'\n'"$id 0" ]
            printf '%s\n' "$id" | ft-build -q --layout "$layout" -o "$T/1.ftx"
            for other in "${ids[@]}" $(((id + 65536) % 4294967295)) \
                $(((id + 1) % 4294967295)); do
                grid "$other:-1"
                n=$(ft-search -f tsv "$T/1.ftx" "$T/g.ftg" | wc -l)
                [ "$n" = $((other == id)) ]
            done
        done
    done
}
