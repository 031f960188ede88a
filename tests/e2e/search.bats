#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
bats_require_minimum_version 1.5.0
load helper

wide=(-b 100 -n 100 -a 5 --token-threshold=-20 --sentence-threshold=-200)
close=(-b 10 -n 10 -a 0.6 --token-threshold=-7 --sentence-threshold=-16)
r18=$D/small8.T8.K100.r18.ftg
r100=$D/small8.T8.K100.r100.ftg
wide_results=$D/small8.T8.K100.r18.B100.N100.a5.tt-20.ts-200.results
close_results=$D/small8.T8.K100.r100.B10.N10.a0.6.tt-7.ts-16.results
header=64
record=6400 # 8 positions of 100 proposals of 8 bytes

setup() {
    ft-build -q "$D/small.o200k.txt" -o "$T/x.ftx"
}

fails() { # MESSAGE COMMAND...
    run -1 --separate-stderr "${@:2}"
    [[ $stderr == "ft-search: "*"$1"* ]] || { echo "$stderr"; false; }
    [ "${#stderr_lines[@]}" = 1 ]
}

# endless N: a grid of N times the 8 queries of r18, until the end of input.
endless() {
    head -c 24 "$r18"
    printf '\377\377\377\377\377\377\377\377'
    head -c 32 /dev/zero
    for ((i = 0; i < $1; i++)); do
        tail -c +$((header + 1)) "$r18"
    done
}

# sections INDEX: offsets of the first, the middle and the last byte of each section, out
# of the section table of ft-index(5).
sections() {
    local n i offset bytes
    n=$(od -A n -t u4 -j 56 -N 4 "$1")
    for ((i = 0; i < n; i++)); do
        read -r offset bytes < <(od -A n -t u8 -j $((128 + 64 * i + 8)) -N 16 "$1")
        echo $offset $((offset + bytes / 2)) $((offset + bytes - 1))
    done
}

@test "goldens: every layout, any number of threads, any batch size" {
    for layout in $layouts; do
        ft-build -q --layout $layout "$D/small.o200k.txt" -o "$T/x.ftx"
        for threads in 1 2 7; do
            for batch in 1 3 64; do
                ft-search -j $threads --batch $batch "${wide[@]}" "$T/x.ftx" "$r18" |
                    cmp - "$wide_results"
                ft-search -j $threads --batch $batch "${close[@]}" "$T/x.ftx" "$r100" |
                    cmp - "$close_results"
            done
        done
    done
}

@test "more positions than any team prepares at the same time" {
    awk 'BEGIN { for (i = 0; i < 400; i++) {
        for (t = 0; t < 40; t++)
            printf "%d ", int(i / (1 + (40 - t) % 40 * 10)) * 7 % (50 + t)
        print "" } }' | ft-build -q --sort -o "$T/long.ftx"
    ft-bench gen-grid -q -n 3 -t 40 -k 90 -o "$T/long.ftg" "$T/long.ftx"
    ft-search -q -e cpu -j 1 -b 60 -o "$T/one" "$T/long.ftx" "$T/long.ftg"
    for j in 2 5 15 16 17 20; do
        ft-search -q -e cpu -j $j --batch 1 -b 60 "$T/long.ftx" "$T/long.ftg" | cmp - "$T/one"
    done
    ft-search -q -e cpu -j 20 --batch 1 -f tsv -b 60 "$T/long.ftx" "$T/long.ftg" >"$T/tsv"
    [ "$(awk 'NF == 43' "$T/tsv" | wc -l)" = 180 ] # all results have 40 tokens
    ft-bench latency -q -j 17 --passes 1 -f tsv "$T/long.ftg" cpu="$T/long.ftx" \
        marisa-opt="$T/long.ftx" >"$T/rows" 2>"$T/warnings"
    [ "$(grep -c $'\tok$' "$T/rows")" = 2 ]
}

@test "standard input, zstd, -o and several grids" {
    ft-search "${wide[@]}" "$T/x.ftx" < "$r18" | cmp - "$wide_results"
    zstd -qc "$r18" | ft-search "${wide[@]}" "$T/x.ftx" - | cmp - "$wide_results"
    ft-search "${wide[@]}" -o "$T/out" "$T/x.ftx" "$r18"
    cmp "$T/out" "$wide_results"
    ft-search "${wide[@]}" -o "$T/out" --no-verify "$T/x.ftx" "$r18" "$r18"
    cat "$wide_results" "$wide_results" | cmp - "$T/out"
    [ -z "$(find "$T" -name '.*' -type f)" ]
}

@test "tsv and jsonl say what wire says" {
    ft-search "${wide[@]}" -f tsv "$T/x.ftx" "$r18" > "$T/tsv"
    ft-inspect results "$wide_results" | cmp - "$T/tsv"
    ft-search "${wide[@]}" -f jsonl "$T/x.ftx" "$r18" > "$T/jsonl"
    ft-inspect results --json "$wide_results" | cmp - "$T/jsonl"
    [ "$(head -n 1 "$T/tsv")" = $'0\t0\t-0.42606965638697147\t457 14996 13728' ]
    [ "$(head -n 1 "$T/jsonl")" = \
        '{"query":0,"rank":0,"score":-0.42606965638697147,"tokens":[457,14996,13728]}' ]
}

@test "key numbers come with the results where the index has them" {
    ft-build -q --ids "$D/small.o200k.txt" -o "$T/ids.ftx"
    ft-search "${wide[@]}" -f tsv "$T/ids.ftx" "$r18" > "$T/tsv"
    awk -F '\t' 'NF != 5 { exit 1 }' "$T/tsv"
    cut -f 4 "$T/tsv" | ft-inspect lookup "$T/ids.ftx" | cmp - <(cut -f 5 "$T/tsv")
    cut -f 1-4 "$T/tsv" | cmp - <(ft-inspect results "$wide_results")
    ft-search "${wide[@]}" -f jsonl "$T/ids.ftx" "$r18" | head -n 1 > "$T/first"
    [ "$(cat "$T/first")" = '{"query":0,"rank":0,"score":-0.42606965638697147,"tokens":[457,14996,13728],"key":'"$(head -n 1 "$T/tsv" | cut -f 5)}" ]
    ft-search "${wide[@]}" "$T/ids.ftx" "$r18" | cmp - "$wide_results"
}

@test "queries are numbered over all grids, or by their ids" {
    ft-search -n 1 -f tsv "$T/x.ftx" "$r18" "$r18" --batch 3 | cut -f 1 |
        cmp - <(seq 0 15)
    # Two queries with ids 7 and 2^64-1: flag 1 in the header, an id before each record.
    {
        head -c 16 "$r18"; printf '\1\0\0\0'; tail -c +21 "$r18" | head -c 4
        printf '\2\0\0\0\0\0\0\0'; head -c 32 /dev/zero
        printf '\7\0\0\0\0\0\0\0'; tail -c +$((header + 1)) "$r18" | head -c $record
        printf '\377\377\377\377\377\377\377\377'
        tail -c +$((header + record + 1)) "$r18" | head -c $record
    } > "$T/ids.ftg"
    run -0 ft-search -n 1 -f tsv "$T/x.ftx" "$T/ids.ftg"
    [ "$(cut -f 1 <<< "$output")" = $'7\n18446744073709551615' ]
    ft-search "$T/x.ftx" "$T/ids.ftg" | cmp - <(ft-search "$T/x.ftx" "$r18" |
        head -c "$(ft-search "$T/x.ftx" "$T/ids.ftg" | wc -c)")
    # A grid without ids behind one with: its queries' places count all before them.
    run -0 ft-search -n 1 -f tsv "$T/x.ftx" "$T/ids.ftg" "$r18"
    [ "$(cut -f 1 <<< "$output" | tail -n 8)" = "$(seq 2 9)" ]
}

@test "NumPy pairs" {
    # The .npy header of version 1: magic, version, length, a dictionary, to 128 bytes.
    npy() { # DTYPE SHAPE
        local d="{'descr': '$1', 'fortran_order': False, 'shape': $2, }"
        printf '\x93NUMPY\1\0\166\0%-117s\n' "$d"
    }
    { npy '<u4' '(8, 8, 100)'; for q in {0..7}; do
        tail -c +$((header + q * record + 1)) "$r18" | head -c 3200; done; } > "$T/t.npy"
    { npy '<f4' '(8, 8, 100)'; for q in {0..7}; do
        tail -c +$((header + q * record + 3201)) "$r18" | head -c 3200; done; } > "$T/l.npy"
    ft-search "${wide[@]}" "$T/x.ftx" "$T/t.npy" "$T/l.npy" | cmp - "$wide_results"
    ft-search "${wide[@]}" "$T/x.ftx" "$r18" "$T/t.npy" "$T/l.npy" "$r18" |
        cmp - <(cat "$wide_results" "$wide_results" "$wide_results")
    fails "name the one of log-probs behind it" ft-search "$T/x.ftx" "$T/t.npy"
    fails "$T/none: " ft-search "$T/x.ftx" "$T/t.npy" "$T/none"
    fails "" ft-search "$T/x.ftx" "$T/t.npy" "$r18"
}

@test "B and N: defaults, more than there is" {
    ft-search -b 100 -n 100 "$T/x.ftx" "$r18" > "$T/k"
    ft-search "$T/x.ftx" "$r18" | cmp - "$T/k"
    ft-search -b 100 "$T/x.ftx" "$r18" | cmp - "$T/k"
    ft-search -n 3 -f tsv "$T/x.ftx" "$r18" | cmp - \
        <(ft-inspect results "$T/k" | awk -F '\t' '$2 < 3')
    printf '5765\n5765 1392\n' | ft-build -q -o "$T/two.ftx"
    run -0 ft-search -b 100000 -n 100000 -f tsv "$T/two.ftx" "$r18"
    [ "$(wc -l <<< "$output")" -le 16 ]
    ft-search --token-threshold=inf "$T/x.ftx" "$r18" | cmp - <(head -c 64 /dev/zero)
}

@test "engines: auto, cpu, and cuda that is not there exits 3" {
    ft-search -e cpu "${wide[@]}" "$T/x.ftx" "$r18" | cmp - "$wide_results"
    ft-search -e auto "${wide[@]}" "$T/x.ftx" "$r18" | cmp - "$wide_results"
    if CUDA_VISIBLE_DEVICES= ft-search -e cuda "$T/x.ftx" "$r18" > "$T/out" 2> /dev/null
    then
        skip "there is a CUDA device"
    fi
    CUDA_VISIBLE_DEVICES= run -3 --separate-stderr ft-search -e cuda -o "$T/none" \
        "$T/x.ftx" "$r18"
    [ -z "$output" ]
    [[ $stderr == "ft-search: "*[Cc][Uu][Dd][Aa]* ]]
    [ ! -e "$T/none" ]
}

@test "--gpu names a GPU, and never falls back" {
    CUDA_VISIBLE_DEVICES= run -3 --separate-stderr ft-search --gpu 0 -o "$T/none" \
        "$T/x.ftx" "$r18"
    [ -z "$output" ]
    [[ $stderr == "ft-search: "*[Cc][Uu][Dd][Aa]* ]]
    CUDA_VISIBLE_DEVICES= run -3 ft-search -e cuda --gpu 7 --slots 2 "$T/x.ftx" "$r18"
    run -2 --separate-stderr ft-search -e cpu --gpu 0 "$T/x.ftx" "$r18"
    [ -z "$output" ]
    [[ $stderr == *"--gpu goes with --engine cuda"* ]]
    run -2 ft-search --gpu -1 "$T/x.ftx" "$r18"
    run -2 ft-search --gpu 1024 "$T/x.ftx" "$r18"
    run -2 ft-search --slots 0 "$T/x.ftx" "$r18"
    run -2 ft-search --slots 17 "$T/x.ftx" "$r18"
    run -2 --separate-stderr ft-search -e cpu --slots 2 "$T/x.ftx" "$r18"
    [ -z "$output" ]
    [[ $stderr == *"--slots goes with --engine cuda"* ]]
    ft-search --slots 16 "${wide[@]}" "$T/x.ftx" "$r18" | cmp - "$wide_results"
}

@test "--stats: a line a query and step, and the results as ever" {
    ft-search "${wide[@]}" --stats "$T/stats" --batch 3 "$T/x.ftx" "$r18" |
        cmp - "$wide_results"
    [ "$(head -n 1 "$T/stats")" = \
        $'query\tstep\tbeams\tprobes\tcandidates\tkept\tseconds\tform' ]
    tail -n +2 "$T/stats" | cut -f 1,2 |
        cmp - <(for q in {0..7}; do for t in {0..7}; do printf '%s\t%s\n' $q $t; done; done)
    awk -F '\t' 'NR > 1 && $2 == 0 && $3 != 1 { exit 1 }      # one beam at the root
        NR > 1 && $2 > 0 && $3 != kept { exit 1 }             # what one step keeps is
        NR > 1 { kept = $6; if ($6 > 100 || $6 > $5) exit 1 } # what the next starts with
        NR > 1 && $3 > 0 && $4 == 0 { exit 1 }
        NF != 8 { exit 1 }
        NR > 1 && $8 !~ /^(threads|cluster|block|grid)$/ { exit 1 }' "$T/stats"
    ft-search "${wide[@]}" --stats - -o "$T/out" "$T/x.ftx" "$r18" > "$T/stats2"
    cut -f 1-6 "$T/stats" | cmp - <(cut -f 1-6 "$T/stats2")
    cmp "$T/out" "$wide_results"
    fails "$T/nowhere/s: " ft-search --stats "$T/nowhere/s" "$T/x.ftx" "$r18"
}

@test "-v says which engine runs and how long it took" {
    run -0 --separate-stderr ft-search -v -o "$T/out" "$T/x.ftx" "$r18"
    [[ ${stderr_lines[0]} == "ft-search: $T/x.ftx: "*" layout, 5045 keys, 17190 nodes; engine "*"; open after "*" ms" ]]
    [[ ${stderr_lines[1]} == "ft-search: 8 queries in "*" s of them searching" ]]
}

@test "a grid cut short: the complete queries are answered, the message has the query" {
    local at
    for cut in $header:0 $((header + 1)):0 $((header + record - 1)):0 \
        $((header + record)):1 $((header + 5 * record + 100)):5 \
        $((header + 8 * record - 1)):7; do
        head -c ${cut%:*} "$r18" > "$T/cut.ftg"
        run -1 --separate-stderr ft-search -n 1 -f tsv "$T/x.ftx" "$T/cut.ftg"
        [ "$(grep -c . <<< "$output")" = "${cut#*:}" ]
        [[ $stderr == "ft-search: $T/cut.ftg: "*"query ${cut#*:}"* ]] || { echo "$stderr"; false; }
        run -1 --separate-stderr ft-search -n 1 -f tsv "$T/x.ftx" - < <(cat "$T/cut.ftg")
        [[ $stderr == "ft-search: (standard input): "*"query ${cut#*:}"* ]]
    done
    for at in 0 1 7 8 63; do
        head -c $at "$r18" > "$T/cut.ftg"
        fails "$T/cut.ftg: " ft-search "$T/x.ftx" "$T/cut.ftg"
        [ -z "$output" ]
    done
}

@test "-o after a bad grid: the answers so far, whole; without any, the old file" {
    echo old > "$T/out"
    head -c $((header + 3 * record + 7)) "$r18" > "$T/cut.ftg"
    fails "query 3" ft-search "${wide[@]}" -o "$T/out" --batch 2 "$T/x.ftx" "$T/cut.ftg"
    [ "$(ft-inspect results "$T/out" | cut -f 1 | sort -u)" = $'0\n1\n2' ]
    cmp <(head -c "$(stat -c %s "$T/out")" "$wide_results") "$T/out"
    echo old > "$T/out"
    head -c $((header + 7)) "$r18" > "$T/cut.ftg"
    fails "query 0" ft-search -o "$T/out" "$T/x.ftx" "$T/cut.ftg"
    [ "$(cat "$T/out")" = old ]
    fails "$T/none: " ft-search -o "$T/out" "$T/none" "$r18"
    [ "$(cat "$T/out")" = old ]
    [ -z "$(find "$T" -name '.*' -type f)" ]
}

@test "NaN and +inf are refused by query, position and rank" {
    for bits in '\0\0\300\177' '\0\0\200\177'; do
        cp "$r18" "$T/bad.ftg"
        # Query 2, position 3, proposal 4.
        printf "$bits" | dd of="$T/bad.ftg" bs=1 conv=notrunc status=none \
            seek=$((header + 2 * record + 3200 + 4 * 304))
        run -1 --separate-stderr ft-search -n 1 -f tsv "$T/x.ftx" "$T/bad.ftg"
        [ "$(cut -f 1 <<< "$output")" = $'0\n1' ]
        [[ $stderr == "ft-search: $T/bad.ftg: query 2"*"3"*"4"* ]] || { echo "$stderr"; false; }
    done
}

# refused INDEX: exit 1, a message that names it, no results.
refused() {
    local status=0
    ft-search "$1" "$r18" > "$T/out" 2> "$T/err" || status=$?
    [ $status = 1 ]
    [ ! -s "$T/out" ]
    [[ $(< "$T/err") == "ft-search: $1: "* ]]
}

@test "an index that is none" {
    fails "not an index" ft-search "$D/small.o200k.txt" "$r18"
    : > "$T/empty"
    for none in "$r18" "$T/empty" "$T" "$T/none"; do
        refused "$none"
    done
}

@test "an index cut at every section border, or with a bit flipped in every section" {
    local layout options at
    for layout in $layouts; do
        for options in "--ids" "--ids --compress"; do
            ft-build -q --layout $layout $options "$D/small.o200k.txt" -o "$T/x.ftx"
            # Of the header, the table, and the first, middle and last byte of sections.
            for at in 0 7 8 56 127 128 191 2047 $(sections "$T/x.ftx"); do
                head -c $at "$T/x.ftx" > "$T/cut.ftx"
                refused "$T/cut.ftx"
                cp "$T/x.ftx" "$T/flip.ftx"
                byte=$(od -A n -t u1 -j $at -N 1 "$T/x.ftx")
                printf "\\x$(printf %02x $((byte ^ 1 << at % 8)))" |
                    dd of="$T/flip.ftx" bs=1 seek=$at conv=notrunc status=none
                refused "$T/flip.ftx"
            done
            cat "$T/x.ftx" <(printf '\0') > "$T/long.ftx"
            refused "$T/long.ftx"
        done
    done
}

@test "results of a batch are out before the next batch is complete" {
    mkfifo "$T/in" "$T/out"
    ft-search --batch 2 -f tsv -n 1 "$T/x.ftx" < "$T/in" > "$T/out" &
    local pid=$! line
    exec 7> "$T/in" 8< "$T/out"
    endless 1 > "$T/grid"
    head -c $((header + 2 * record)) "$T/grid" >&7
    read -r -t 20 line <&8
    [[ $line == $'0\t'* ]]
    read -r -t 20 line <&8
    [[ $line == $'1\t'* ]]
    # Half a batch, and nothing more is waiting: it is answered as it is.
    tail -c +$((header + 2 * record + 1)) "$T/grid" | head -c $record >&7
    read -r -t 20 line <&8
    [[ $line == $'2\t'* ]]
    # Half a query.
    tail -c +$((header + 3 * record + 1)) "$T/grid" | head -c $((record / 2)) >&7
    run ! read -r -t 0.3 line <&8
    tail -c +$((header + 3 * record + record / 2 + 1)) "$T/grid" |
        head -c $((record / 2)) >&7
    read -r -t 20 line <&8
    [[ $line == $'3\t'* ]]
    exec 7>&-
    wait $pid
}

@test "10,000 grids through a pipe take no more memory than 100" {
    [ -x /usr/bin/time ] || skip "no /usr/bin/time"
    local few many
    # 13 times 8 and 1250 times 8 queries.
    endless 13 | /usr/bin/time -f %M -o "$T/few" ft-search -q -b 10 "$T/x.ftx" |
        wc -c > "$T/few.bytes"
    endless 1250 | /usr/bin/time -f %M -o "$T/many" ft-search -q -b 10 "$T/x.ftx" |
        wc -c > "$T/many.bytes"
    few=$(cat "$T/few") many=$(cat "$T/many")
    echo "KiB: $few $many"
    [ $(($(cat "$T/few.bytes") * 1250)) = $(($(cat "$T/many.bytes") * 13)) ]
    [ "$many" -le $((few + few / 10 + 1024)) ]
}

@test "a terminal is refused for wire, not for text" {
    command -v script > /dev/null || skip "no script command"
    run -1 script -qec "ft-search '$T/x.ftx' '$r18'" "$T/typescript"
    [[ $output == *"is a terminal, and the output is binary"* ]]
    run -0 script -qec "ft-search -f tsv '$T/x.ftx' '$r18'" "$T/typescript"
    [[ $output == *"457 14996 13728"* ]]
}

@test "a closed pipe ends it quietly" {
    run -0 --separate-stderr bash -c '
        { ft-search -f tsv "$1" "$2" "$2" "$2"; echo $? > "$3"; } | head -n 1
        cat "$3"' - "$T/x.ftx" "$r18" "$T/status"
    [[ ${lines[0]} == $'0\t0\t'* ]]
    [ "${lines[1]}" = 0 ]
    [ "${#lines[@]}" = 2 ]
    [ -z "$stderr" ]
    run -0 --separate-stderr bash -c '
        { ft-search --batch 1 "$1"; echo $? > "$2"; } | true
        cat "$2"' - "$T/x.ftx" "$T/status" < <(endless 100)
    [ "$output" = 0 ]
    [ -z "$stderr" ]
}

@test "a full disk fails and says so" {
    [ -c /dev/full ] || skip "no /dev/full"
    for format in wire tsv jsonl; do
        run -1 --separate-stderr bash -c 'ft-search -f $3 "$1" "$2" > /dev/full' - \
            "$T/x.ftx" "$r18" $format
        [ "$stderr" = \
            "ft-search: (standard output): cannot write: No space left on device" ]
    done
    fails "/dev/full: cannot write: No space left" ft-search -o /dev/full "$T/x.ftx" "$r18"
    fails "/dev/full: cannot write: No space left" \
        ft-search --stats /dev/full -o "$T/out" "$T/x.ftx" "$r18"
    echo old > "$T/out"
    run -1 --separate-stderr bash -c 'ulimit -f 8; ft-search -o "$1" "$2" "$3"' - \
        "$T/out" "$T/x.ftx" "$r18"
    [ "$stderr" = "ft-search: $T/out: cannot write: File too large" ]
    [ "$(cat "$T/out")" = old ]
}

@test "-o: ended by a signal midway, the old file is there and nothing else" {
    mkdir "$T/here"
    echo old > "$T/here/out"
    mkfifo "$T/in"
    ft-search --batch 1 -o "$T/here/out" "$T/x.ftx" < "$T/in" &
    local pid=$! status=0
    exec 7> "$T/in"
    endless 1 >&7
    sleep 0.3
    [ "$(ls -A "$T/here" | wc -l)" = 2 ]
    kill -TERM $pid
    wait $pid || status=$?
    exec 7>&-
    [ $status = 143 ]
    [ "$(ls -A "$T/here")" = out ]
    [ "$(cat "$T/here/out")" = old ]
}

@test "an input is no output" {
    cp "$T/x.ftx" "$T/index"
    cp "$r18" "$T/grid"
    for option in -o --stats; do
        for file in index grid; do
            run -2 --separate-stderr ft-search -e cpu $option "$T/./$file" "$T/index" \
                "$T/grid"
            [[ $stderr == "ft-search: '$T/$file' is also the output"* ]]
        done
    done
    cmp "$T/x.ftx" "$T/index"
    cmp "$r18" "$T/grid"
}

@test "an index that is not verified is searched safely, whatever its tokens" {
    seq 3000 | ft-build -q --layout wide -o "$T/w.ftx"
    at=$(LC_ALL=C grep -obUaP '\x01\0\0\0\x02\0\0\0\x03\0\0\0' "$T/w.ftx" | cut -d : -f 1)
    printf '\377\377\377\360' |
        dd of="$T/w.ftx" bs=1 seek=$((at + 400)) conv=notrunc status=none
    fails "checksum" ft-search -e cpu -o "$T/out" "$T/w.ftx" "$r18"
    ft-search -e cpu -o "$T/out" --no-verify "$T/w.ftx" "$r18"
}
