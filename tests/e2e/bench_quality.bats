#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
bats_require_minimum_version 1.5.0
load helper

# fails STATUS MESSAGE COMMAND...: that status, and the message on standard error.
fails() {
    run "-$1" --separate-stderr "${@:3}"
    [[ $stderr == *"ft-bench: "*"$2"* ]] || { echo "$stderr"; false; }
}

# figures COLUMNS ARGUMENT...: these columns of the rows.
figures() {
    ft-bench quality -q -j 1 -a 0 -f tsv "${@:2}" 2>"$T/stderr" | grep -v '^#' |
        awk -F '\t' -v columns="$1" '
            BEGIN { n = split(columns, name, " ") }
            NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
            { for (i = 1; i <= n; i++) printf "%s%s", $at[name[i]], i < n ? " " : "\n" }'
}

# Query 7 has keys of scores -1 (1), -2 (1 2), -3 (2 2 and 2 4) and -4 (1 3), of which a
# beam of one sees those that start with 1; query 9 has one key, 2 4.
tiny() {
    printf '%s\n' 1 '1 2' '1 3' '2 2' '2 4' >"$T/keys"
    ft-build -q --layout narrow -o "$T/x.ftx" "$T/keys"
    ft-build -q --layout wide -o "$T/wide.ftx" "$T/keys"
    ft-mkgrid >"$T/grid" <<'GRID'
query 7
1:-1 2:-2
2:-1 3:-3 4:-1

query 9
2:-1
4:-1
GRID
}

setup() {
    PATH=$(dirname "$(command -v ft-build)")/tests/oracle:$PATH
}

@test "recall is of the best keys that there are" {
    tiny
    [ "$(figures "beam queries exact recall_100 recall_200" --beams 1,2 \
        "$T/grid" cpu="$T/x.ftx")" = "1 2 1.0000 0.8000 0.8000
2 2 1.0000 1.0000 1.0000" ]
}

@test "targets are found among the first results" {
    tiny
    printf '%b' '9\t-\t2 4\n7\t12\t1 2\tmore\n7\t13\t2 2\r\n8\t0\t5\n' >"$T/targets"
    [ "$(figures "beam found_1 found_10 found_1000" --beams 1,2 --targets "$T/targets" \
        "$T/grid" cpu="$T/x.ftx")" = "1 0.3333 0.6667 0.6667
2 0.3333 1.0000 1.0000" ]
    [ "$(figures "found_1 precision_100" "$T/grid" cpu="$T/x.ftx")" = "- -" ]
}

@test "precision is the mean score of what there is" {
    tiny
    printf '%b' '7\t1\t1 2\n7\t0.5\t2 4\n' >"$T/scores"
    [ "$(figures "beam precision_100 precision_200" --beams 1,2 --scores "$T/scores" \
        "$T/grid" cpu="$T/x.ftx")" = "1 0.3333 0.3333
2 0.3000 0.3000" ]
}

@test "cutoffs are 100 and 200, 1 to 1000" {
    seq 150 >"$T/keys"
    ft-build -q -o "$T/x.ftx" "$T/keys"
    seq 150 | awk '{ printf("%s%d:-%d", (NR > 1 ? " " : ""), $1, $1) } END { print "" }' |
        ft-mkgrid >"$T/grid"
    printf '0\t1\t%d\n' $(seq 60) >"$T/scores"
    printf '0\tx\t%d\n' 1 10 11 100 101 >"$T/targets"
    [ "$(figures "recall_100 recall_200 found_1 found_10 found_100 found_1000 \
        precision_100 precision_200" -n 120 --targets "$T/targets" --scores "$T/scores" \
        "$T/grid" cpu="$T/x.ftx")" = \
        "1.0000 0.8000 0.2000 0.4000 0.8000 1.0000 0.6000 0.5000" ]
    [ "$(figures "recall_100 recall_200" -n 50 "$T/grid" cpu="$T/x.ftx")" = \
        "0.5000 0.3333" ]
    [ "$(figures "recall_100 recall_200" "$T/grid" cpu="$T/x.ftx")" = "1.0000 1.0000" ]
}

@test "systems give the same, and one that does not is told" {
    tiny
    [ "$(figures "system score_diff status" "$T/grid" flashtrie-cpu="$T/x.ftx" \
        marisa-opt="$T/wide.ftx" marisa-int="$T/wide.ftx")" = "flashtrie-cpu 0 ok
marisa-opt 0 ok
marisa-int 0 ok" ]
    # A library that passes for the same.
    printf '%s\n' 1 '1 3' '2 2' '2 4' 3 | ft-build -q --layout wide -o "$T/other.ftx"
    run -1 --separate-stderr ft-bench quality -a 0 -f tsv "$T/grid" cpu="$T/x.ftx" \
        marisa-int="$T/other.ftx"
    [[ ${lines[-1]} == marisa-int*$'\t1.0000\t-\t-\t-\t-\t-\t-\t-\t-\t-\t-\tfailed: query 7: results differ'* ]]
}

@test "quality of a real library: exact, and wider beams see more" {
    ft-build -q --layout wide -o "$T/x.ftx" "$D/small.o200k.txt"
    rows=$(figures "beam exact recall_100 score_diff status" --beams 1,10,100 \
        "$D/small8.T8.K100.r18.ftg" cpu="$T/x.ftx" marisa-int="$T/x.ftx")
    [ "$(wc -l <<<"$rows")" = 6 ]
    awk '$2 != 1 || $4 != 0 || $5 != "ok" || $3 < last { exit 1 } { last = $3 }
        END { exit last < 0.5 }' <<<"$rows" || { echo "$rows"; false; }
}

@test "quality goes on with a file" {
    tiny
    ft-bench quality -q -j 1 -o "$T/out" -f tsv --beams 1 "$T/grid" cpu="$T/x.ftx"
    ft-bench quality -q -j 1 -o "$T/out" -f tsv --beams 1,2 --resume "$T/grid" \
        cpu="$T/x.ftx"
    [ "$(grep -vc '^#' "$T/out")" = 3 ]
    printf '9\t1\t2 4\n' >"$T/scores"
    local q=(ft-bench quality -q -o "$T/precise" --scores "$T/scores" "$T/grid"
        cpu="$T/x.ftx")
    "${q[@]}" --beams 1
    printf '9\t8\t2 4\n' >"$T/scores"
    fails 1 "precise: is of another run" "${q[@]}" --beams 1,2 --resume
}

@test "an interrupt keeps the means over the queries so far, which --resume measures again" {
    ft-bench gen-keys -q -n 20000 -o "$T/keys"
    ft-build -q -o "$T/x.ftx" "$T/keys"
    ft-build -q --layout wide -o "$T/wide.ftx" "$T/keys"
    ft-bench gen-grid -q -n 400 -k 300 -t 6 -o "$T/grid" "$T/x.ftx"
    seq 0 399 | paste - <(head -n 400 "$T/keys" | awk '{ print "x\t" $0 }') >"$T/targets"
    sed 's/x/1/' "$T/targets" | sed -n '1~3p' >"$T/scores"
    local q=(ft-bench quality -j 1 --progress --targets "$T/targets" --scores "$T/scores"
        --beams 5,300 "$T/grid" cpu="$T/x.ftx")
    "${q[@]}" -o "$T/out" marisa-int="$T/wide.ftx" 2>"$T/progress" &
    for ((i = 0; i < 1000; i++)); do
        grep -qE 'beam 300: [1-9][0-9]* of 400' "$T/progress" && break
        sleep 0.1
    done
    kill -TERM $!
    status=0
    wait $! || status=$?
    [ $status = 143 ]
    [ "$(grep -c $'\t5\t400\t.*\tok$' "$T/out")" = 2 ]
    row=$(grep $'^cpu\t.*\t300\t' "$T/out")
    n=$(cut -f 5 <<<"$row")
    [ $((n % 64)) = 0 ]
    [[ $row == *$'\t-\tinterrupted: '"$n of 400 queries" ]]
    # They are what these queries alone have.
    "${q[@]}" --queries "$n" --beams 300 2>"$T/stderr" | grep $'^cpu\t' | cut -f 1-15 |
        cmp - <(cut -f 1-15 <<<"$row")
    grep $'\tok$' "$T/out" >"$T/kept"
    "${q[@]}" -o "$T/out" --resume 2>"$T/stderr"
    grep -v '^#' "$T/out" | sed -n '2,3p' | cmp - "$T/kept"
    [[ $(tail -n 1 "$T/out") == cpu*$'\t300\t400\t'*$'\tok' ]]
    [ "$(grep -vc '^#' "$T/out")" = 4 ]
}

@test "quality refuses answers that are none" {
    tiny
    local q=(ft-bench quality "$T/grid" cpu="$T/x.ftx")
    for line in 'x\t1\t2' '7 1 2' '7\t1' '7\tx\t1' '7\t1\t' '7\t1\t1 x' '7\t1\t1  -2' \
        '7\tinf\t1' '7\t\t1'; do
        printf '%b\n' '9\t1\t2 4' "$line" >"$T/scores"
        fails 1 "scores: line 2: not a query, a number and a key" "${q[@]}" \
            --scores "$T/scores"
    done
    printf '%b\n' '9\t1\t2 4' '7\t1\t1' '9\t2\t2 4' >"$T/scores"
    fails 1 "scores: lines 1 and 3: one key twice for a query" "${q[@]}" \
        --scores "$T/scores"
    printf '%b\n' '0\t1\t2 4' >"$T/targets"
    fails 1 "targets: no line is of a query of the grid" "${q[@]}" --targets "$T/targets"
    fails 1 "there-is-none" "${q[@]}" --targets "$T/there-is-none"
    fails 2 "passes" "${q[@]}" --passes 3
    fails 2 "targets" ft-bench latency --targets "$T/targets" "$T/grid" cpu="$T/x.ftx"
}
