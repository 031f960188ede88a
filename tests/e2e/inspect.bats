#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
bats_require_minimum_version 1.5.0
load helper

vocab=$D/small.vocab.tsv
r18=$D/small8.T8.K100.r18.ftg
wide_results=$D/small8.T8.K100.r18.B100.N100.a5.tt-20.ts-200.results

# An index of six keys, with numbers (x.ftx) and without (y.ftx), and words for them.
setup() {
    printf '%s\n' 1 '1 2' '1 2 5' '1 3' '7 2' 70000 > "$T/keys"
    ft-build -q --ids -o "$T/x.ftx" "$T/keys"
    ft-build -q --layout wide -o "$T/y.ftx" "$T/keys"
    printf '%s\t%s\n' 1 ' cat' 2 ' "fish"' 3 $'s\e[31m' 5 $'\xff\xc2\x9b' 7 é > "$T/vocab"
}

fails() { # MESSAGE COMMAND...
    run -1 --separate-stderr "${@:2}"
    [[ $stderr == "ft-inspect: "*"$1"* ]] || { echo "$stderr"; false; }
    [ "${#stderr_lines[@]}" = 1 ]
}

@test "stats: figures of the index, its sections and its levels" {
    for layout in $layouts; do
        ft-build -q --ids --layout $layout "$D/small.o200k.txt" -o "$T/s.ftx"
        ft-inspect stats "$T/s.ftx" > "$T/stats"
        figure() { awk -v name="$1" '/^$/ { exit }
            index($0, name " ") == 1 { print $NF }' "$T/stats"; }
        [ "$(figure layout)" = $layout ]
        [ "$(figure keys)" = 5045 ]
        [ "$(figure "key numbers")" = stored ]
        [ "$(figure nodes)" = 17190 ]
        [ "$(figure nodes/key)" = 3.41 ]
        [ "$(figure depth)" = 28 ]
        [ "$(figure "max token")" = 199632 ]
        [ "$(figure bytes)" = "$(stat -c %s "$T/s.ftx")" ]
        # The sections add up to the file, their shares to 100.
        awk -v bytes="$(stat -c %s "$T/s.ftx")" '
            $1 == "section" { inside = 1; next }
            inside && $1 == "all" { exit !($2 == bytes && sum == bytes && int(share + 0.5) == 100) }
            inside { sum += $(NF - 3); share += $NF }' "$T/stats"
        # The levels add up to nodes and keys.
        awk '$1 == "level" && $3 == "keys" { inside = 1; next }
            inside && NF == 0 { exit !(nodes == 17190 && keys == 5045 && levels == 29) }
            inside { nodes += $2; keys += $3; levels++ }' "$T/stats"
        awk -v n="$(cut -d ' ' -f 1 "$D/small.o200k.txt" | sort -u | wc -l)" \
            '$1 == "0" && NF == 6 { exit !($2 == 1 && $6 == n) }' "$T/stats"
        # Of the degrees, the leaves and the nodes.
        awk '$1 == "degree" { inside = 1; next } inside { sum += $2 }
            END { exit sum != 17190 }' "$T/stats"
        grep -q '^ *2 *3526 #\{50\}$' "$T/stats"
    done
}

@test "stats of an empty and of a deep library" {
    ft-build -q -o "$T/e.ftx" < /dev/null 2> /dev/null
    run -0 --separate-stderr ft-inspect stats "$T/e.ftx"
    [[ $output == *"nodes        1"* ]]
    [[ $output != *nan* && $output != *inf* ]]
    seq -s ' ' 65535 | ft-build -q -o "$T/e.ftx"
    run -0 --separate-stderr ft-inspect stats "$T/e.ftx"
    [[ $output == *"depth        65535"* ]]
}

@test "verify: a valid index, a flipped bit, a cut" {
    for layout in $layouts; do
        ft-build -q --ids --layout $layout "$D/small.o200k.txt" -o "$T/s.ftx"
        run -0 --separate-stderr ft-inspect verify "$T/s.ftx"
        [ "$output" = "$T/s.ftx: valid: 5045 keys, 17190 nodes" ]
        for at in 9 40 70 140 2048 5000 20000; do
            cp "$T/s.ftx" "$T/bad.ftx"
            printf '\xa5' | dd of="$T/bad.ftx" bs=1 seek=$at conv=notrunc status=none
            cmp -s "$T/s.ftx" "$T/bad.ftx" && continue
            fails "$T/bad.ftx: " ft-inspect verify "$T/bad.ftx"
            [ -z "$output" ]
        done
        head -c 30000 "$T/s.ftx" > "$T/bad.ftx"
        fails "$T/bad.ftx: " ft-inspect verify "$T/bad.ftx"
    done
}

@test "dump: text, binary, with words" {
    ft-inspect dump "$T/x.ftx" | cmp - "$T/keys"
    ft-inspect dump "$T/y.ftx" | cmp - "$T/keys"
    ft-inspect dump --binary "$T/x.ftx" > "$T/binary"
    [ "$(head -c 7 "$T/binary")" = FTKEYS1 ]
    ft-build -q --ids "$T/binary" -o "$T/z.ftx"
    cmp "$T/z.ftx" "$T/x.ftx"
    run -0 ft-inspect dump --vocab "$T/vocab" "$T/x.ftx"
    [ "$output" = $'1\t cat
1 2\t cat "fish"
1 2 5\t cat "fish"\\xff\\xc2\\x9b
1 3\t cats\\x1b[31m
7 2\té "fish"
70000\t<70000>' ]
}

@test "lookup: number, found, or a dash, a line a key" {
    printf '1 2\n\n7\n70000\n1 2 5 9\n4\n1\n' > "$T/asked"
    run -0 ft-inspect lookup "$T/x.ftx" "$T/asked"
    [ "$output" = $'1\n-\n5\n-\n-\n0' ]
    run -0 ft-inspect lookup "$T/y.ftx" < "$T/asked"
    [ "$output" = $'found\n-\nfound\n-\n-\nfound' ]
    ft-inspect dump --binary "$T/x.ftx" | zstd -qc | ft-inspect lookup "$T/x.ftx" - |
        cmp - <(seq 0 5)
}

@test "lookup: the answers before a bad key are given" {
    run -1 --separate-stderr ft-inspect lookup "$T/x.ftx" <<< $'1\n2 x\n1 2'
    [ "$output" = 0 ]
    [[ $stderr == "ft-inspect: (standard input): line 2"* ]]
}

@test "children: token, key, children, number, words" {
    run -0 ft-inspect children "$T/x.ftx"
    [ "$output" = $'1\tkey\t2\t0\n7\t-\t1\t-\n70000\tkey\t0\t5' ]
    run -0 ft-inspect children "$T/y.ftx" 1
    [ "$output" = $'2\tkey\t1\n3\tkey\t0' ]
    run -0 ft-inspect children --vocab "$T/vocab" "$T/x.ftx" 1
    [ "$output" = $'2\tkey\t1\t1\t "fish"\n3\tkey\t0\t3\ts\\x1b[31m' ]
    run -0 ft-inspect children "$T/x.ftx" 1 2 5
    [ -z "$output" ]
}

@test "predict: the keys that start so, in order" {
    run -0 ft-inspect predict "$T/x.ftx" 1
    [ "$output" = $'1\t0\n1 2\t1\n1 2 5\t2\n1 3\t3' ]
    run -0 ft-inspect predict --limit 2 "$T/y.ftx" 1
    [ "$output" = $'1\n1 2' ]
    run -0 ft-inspect predict --vocab "$T/vocab" "$T/x.ftx" 7
    [ "$output" = $'7 2\t4\té "fish"' ]
    ft-inspect predict "$T/y.ftx" | cmp - "$T/keys"
}

@test "a prefix that no key has is an error, one that is no token is usage" {
    fails "$T/x.ftx: token 1 of the prefix: no key goes on with 9" \
        ft-inspect children "$T/x.ftx" 9 1
    fails "$T/x.ftx: token 3 of the prefix: no key goes on with 6" \
        ft-inspect predict "$T/x.ftx" 1 2 6 6
    for bad in -1 +1 1x "" ' 1' 0x1 4294967295 99999999999 "1 2"; do
        run -2 --separate-stderr ft-inspect predict "$T/x.ftx" -- "$bad"
        [[ ${stderr_lines[0]} == "ft-inspect: '$bad' is not a token: a whole number from 0 to 4294967294" ]]
    done
}

@test "trees: keys, numbers, words, box characters or not" {
    run -0 ft-inspect predict --tree "$T/x.ftx"
    [ "$output" = '.
├── 1 [0]
│   ├── 2 [1]
│   │   └── 5 [2]
│   └── 3 [3]
├── 7
│   └── 2 [4]
└── 70000 [5]' ]
    run -0 ft-inspect predict --tree --ascii --vocab "$T/vocab" "$T/y.ftx" 1
    [ "$output" = '1 " cat" *
|-- 2 " "fish"" *
|   `-- 5 "\xff\xc2\x9b" *
`-- 3 "s\x1b[31m" *' ]
    run -0 ft-inspect children --tree "$T/y.ftx" 1
    [ "$output" = '1 *
├── 2 * (+1)
└── 3 *' ]
    LC_ALL=C run -0 ft-inspect children --tree "$T/y.ftx" 7
    [ "$output" = '7
`-- 2 *' ]
}

@test "trees: --limit counts keys, and dots stand for the rest" {
    run -0 ft-inspect predict --tree --limit 2 "$T/y.ftx" 1
    [ "$output" = '1 *
├── 2 *
│   └── …' ]
    run -0 ft-inspect predict --tree --limit 4 "$T/x.ftx" 1
    [ "${lines[3]}" = '└── 3 [3]' ]
    [ "${#lines[@]}" = 4 ]
    seq -s ' ' 3000 | ft-build -q -o "$T/deep.ftx"
    ft-inspect predict --tree --ascii "$T/deep.ftx" > "$T/tree"
    [ "$(wc -l < "$T/tree")" = 3001 ]
    [ "$(tail -n 1 "$T/tree" | sed 's/^ *//')" = '`-- 3000 *' ]
}

@test "vocabularies: id and text, text alone, zstd, and what is wrong with them" {
    zstd -q "$T/vocab" -o "$T/vocab.zst"
    ft-inspect dump --vocab "$T/vocab.zst" "$T/x.ftx" |
        cmp - <(ft-inspect dump --vocab "$T/vocab" "$T/x.ftx")
    printf 'zero\none\ntwo\r\n\nfour' > "$T/plain"
    run -0 ft-inspect predict --vocab "$T/plain" "$T/y.ftx" 1
    [ "$output" = $'1\tone\n1 2\tonetwo\n1 2 5\tonetwo<5>\n1 3\tone' ]
    printf '5\tfive\n1\tone\n' > "$T/v"
    run -0 ft-inspect predict --vocab "$T/v" "$T/y.ftx" 1 2 5
    [ "$output" = $'1 2 5\tone<2>five' ]
    printf '5\tfive\n1 one\n' > "$T/v"
    fails "$T/v: line 2: not a token id, a tab and a text" \
        ft-inspect dump --vocab "$T/v" "$T/x.ftx"
    printf '5\tfive\n\n' > "$T/v"
    fails "$T/v: line 2: not" ft-inspect dump --vocab "$T/v" "$T/x.ftx"
    printf '5\tfive\n4294967295\tmax\n' > "$T/v"
    fails "$T/v: line 2: not" ft-inspect dump --vocab "$T/v" "$T/x.ftx"
    printf '5\tfive\n1\tone\n5\tcinq\n' > "$T/v"
    fails "$T/v: line 3: token 5 has a text already, on line 1" \
        ft-inspect dump --vocab "$T/v" "$T/x.ftx"
    fails "$T/none: " ft-inspect dump --vocab "$T/none" "$T/x.ftx"
    : > "$T/v"
    run -0 ft-inspect predict --vocab "$T/v" "$T/y.ftx" 7
    [ "$output" = $'7 2\t<7><2>' ]
}

# grid: one query of two positions of four proposals, from here:
#   position 0: 9 at -1, 9 at -0.5, 3 at -2, empty     position 1: 1 at -inf, 3 empty
grid() {
    printf 'FTGRID1\n\2\0\0\0\4\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0'
    head -c 32 /dev/zero
    printf '\11\0\0\0\11\0\0\0\3\0\0\0\377\377\377\377'
    printf '\1\0\0\0\377\377\377\377\377\377\377\377\377\377\377\377'
    printf '\0\0\200\277\0\0\0\277\0\0\0\300\0\0\0\0'
    printf '\0\0\200\377\0\0\0\0\0\0\0\0\0\0\0\0'
}

@test "grid: header and a line a query" {
    run -0 ft-inspect grid <(grid)
    [ "$(grep -v '^$' <<< "$output" | head -n 6 | sed 's/   */:/')" = 'positions:2
proposals:4
vocabulary:unknown
log-probs:binary32
query ids:no
queries:1' ]
    [ "$(tail -n 1 <<< "$output" | awk '{ print $1, $2, $3, $4 }')" = "0 4 1 -0.5" ]
    ft-inspect grid < "$r18" > "$T/out"
    [ "$(tail -n 8 "$T/out" | awk '{ print $1, $2, $3 }')" = \
        "$(for q in {0..7}; do echo $q 800 0; done)" ]
    [ "$(awk '$1 == "vocabulary" { print $2 }' "$T/out")" = 200006 ]
}

@test "grid --query: the proposals as a search takes them, best first" {
    run -0 ft-inspect grid --query 0 <(grid)
    [ "$output" = $'0\t0\t9\t-0.5\n0\t1\t3\t-2\n1\t0\t1\t-inf' ]
    run -0 ft-inspect grid --query 0 --top 1 --vocab "$T/vocab" <(grid)
    [ "$output" = $'0\t0\t9\t-0.5\t<9>\n1\t0\t1\t-inf\t cat' ]
    run -0 ft-inspect grid --query 5 --top 2 --vocab "$vocab" "$r18"
    [ "${#lines[@]}" = 16 ]
    [ "${lines[0]}" = $'0\t0\t5765\t-0.64711833\t American' ]
    fails "has no query 8" ft-inspect grid --query 8 "$r18"
    fails "has no query 1" ft-inspect grid --query 1 < <(grid)
}

@test "grid: damage names the query, what is before it is shown" {
    head -c $((64 + 2 * 6400 + 5)) "$r18" > "$T/cut.ftg"
    run -1 --separate-stderr ft-inspect grid "$T/cut.ftg"
    [ "$(tail -n 1 <<< "$output" | awk '{ print $1 }')" = 1 ]
    [[ $stderr == "ft-inspect: $T/cut.ftg: "*"query 2"* ]]
    run -0 --separate-stderr ft-inspect grid --query 1 "$T/cut.ftg"
    fails "query 2" ft-inspect grid --query 2 "$T/cut.ftg"
    fails "$T/keys: " ft-inspect grid "$T/keys"
    fails "what is '$T/keys' for" ft-inspect grid "$r18" "$T/keys"
}

@test "results: TSV and JSON lines, with words" {
    run -0 ft-inspect results --vocab "$vocab" "$wide_results"
    [ "${lines[0]}" = $'0\t0\t-0.42606965638697147\t457 14996 13728\t Ebro River' ]
    ft-inspect results "$wide_results" | cmp - <(cut -f 1-4 <<< "$output")
    ft-inspect results --json --vocab "$vocab" < "$wide_results" > "$T/jsonl"
    [ "$(head -n 1 "$T/jsonl")" = '{"query":0,"rank":0,"score":-0.42606965638697147,"tokens":[457,14996,13728],"text":" Ebro River"}' ]
    sed 's/,"text":".*"}$/}/' "$T/jsonl" | cmp - <(ft-inspect results --json "$wide_results")
    # One result 1 2 5 7 with the score 1, behind an empty record.
    { head -c 8 /dev/zero
        printf '\1\0\0\0\0\0\0\0\0\0\0\0\0\0\360\77\4\0\0\0\0\0\0\0'
        printf '\1\0\0\0\2\0\0\0\5\0\0\0\7\0\0\0'; } > "$T/one"
    run -0 ft-inspect results --json --vocab "$T/vocab" "$T/one"
    [ "$output" = '{"query":1,"rank":0,"score":1,"tokens":[1,2,5,7],"text":" cat \"fish\"\\xff\\xc2\\x9bé"}' ]
    if command -v python3 > /dev/null; then
        python3 -c 'import json, sys; [json.loads(l) for l in sys.stdin]' < "$T/jsonl"
        python3 -c 'import json, sys; json.loads(sys.stdin.read())' <<< "$output"
    fi
    run -0 ft-inspect results < /dev/null
    [ -z "$output" ]
}

@test "results: damage names the query, what is before it is shown" {
    head -c 1000 "$wide_results" > "$T/cut"
    fails "query 0" ft-inspect results "$T/cut"
    head -c 3000 "$wide_results" > "$T/cut"
    run -1 --separate-stderr ft-inspect results "$T/cut"
    [ "$(cut -f 1 <<< "$output" | tail -n 1)" = 1 ]
    [[ $stderr == "ft-inspect: $T/cut: "*"query 2"* ]] || { echo "$stderr"; false; }
    fails "query 0" ft-inspect results "$T/keys"
}

@test "a program can ask lookup and read in turn" {
    local answer
    coproc LOOKUP { ft-inspect lookup "$T/x.ftx"; }
    for key in "1 2:1" "9:-" "70000:5"; do
        echo "${key%:*}" >&"${LOOKUP[1]}"
        read -r -t 20 answer <&"${LOOKUP[0]}"
        [ "$answer" = "${key#*:}" ]
    done
    local pid=$LOOKUP_PID
    eval "exec ${LOOKUP[1]}>&-"
    wait $pid
}

@test "a closed pipe ends each subcommand quietly, a full disk does not" {
    ft-build -q --ids "$D/medium.o200k.txt.zst" -o "$T/m.ftx"
    ft-inspect dump "$T/m.ftx" > "$T/medium"
    for command in "dump $T/m.ftx" "predict $T/m.ftx" "predict --tree $T/m.ftx" \
        "children $T/m.ftx" "lookup $T/m.ftx $T/medium" "grid --query 0 $r18" \
        "stats $T/x.ftx" "verify $T/x.ftx" "results $wide_results"; do
        run -0 --separate-stderr bash -c '{ ft-inspect $1; echo $? > "$2"; } |
            head -n 1 > /dev/null; cat "$2"' - "$command" "$T/status"
        [ "$output" = 0 ]
        [ -z "$stderr" ]
        [ -c /dev/full ] || continue
        run -1 --separate-stderr bash -c 'ft-inspect $1 > /dev/full' - "$command"
        [[ $stderr == *"(standard output): cannot write: No space left on device" ]]
    done
}

@test "binary is refused on a terminal, text is not" {
    command -v script > /dev/null || skip "no script command"
    run -1 script -qec "ft-inspect dump --binary '$T/x.ftx'" "$T/typescript"
    [[ $output == *"is a terminal, and the output is binary"* ]]
    run -0 script -qec "ft-inspect dump '$T/x.ftx'" "$T/typescript"
    [[ $output == *"1 2 5"* ]]
}
