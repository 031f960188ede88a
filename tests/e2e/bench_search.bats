#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# ft-bench systems, latency, throughput, breakdown and ablation.
bats_require_minimum_version 1.5.0
load helper

setup() {
    cd "$T" || exit 1
    ft-bench gen-keys -n 5000 -f binary -o keys
    ft-build -q --layout compact -o c.ftx keys
    ft-build -q --layout wide -o w.ftx keys
    ft-bench gen-grid -q -n 10 -k 20 -t 4 -o grid c.ftx
}

# fails STATUS MESSAGE COMMAND...: that status, the message, nothing on standard output.
fails() {
    run "-$1" --separate-stderr "${@:3}"
    [ -z "$output" ]
    [[ $stderr == "ft-bench: "*"$2"* ]] || { echo "$stderr"; false; }
}

# column NAME: of the rows in the TSV on standard input.
column() {
    awk -F '\t' -v name="$1" '/^#/ { next }
        !n++ { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { print $at[name] }'
}

@test "systems lists engines and layouts, and why one cannot run" {
    ft-bench systems -f tsv >s
    [ "$(column system <s | paste -sd ' ')" = "flashtrie-cuda flashtrie-cpu marisa-int \
marisa-opt paper paper-linear paper-two-pointer paper-per-child ppt marisa" ]
    for system in flashtrie-cpu marisa-int marisa-opt; do
        grep "^$system"$'\t' s | grep -q $'\tok$'
    done
    [ "$(column status <s | head -n -1 | grep -cvE '^(ok|unavailable: .+)$')" = 0 ]
}

@test "systems lists stock MARISA, which is not searched" {
    program=$(command -v ft-bench)
    mkdir bin
    printf '#!/bin/sh\n' | tee bin/marisa-build >bin/marisa-lookup
    chmod +x bin/*
    row=$'marisa\t-\tmarisa|marisa-n1\tthe outside reference, stock MARISA: not searched, measured by build\t'
    PATH=$PWD/bin run -0 "$program" systems -f tsv
    [ "${lines[-1]}" = "${row}installed: for build alone" ]
    rm bin/marisa-lookup
    PATH=$PWD/bin run -0 "$program" systems -f tsv
    [ "${lines[-1]}" = "${row}unavailable: no marisa-build and marisa-lookup in PATH" ]
    fails 1 "marisa is not searched: ft-bench build measures it" \
        ft-bench latency -q grid marisa=c.ftx
}

@test "latency: a row a system and beam, all the same results" {
    ft-bench latency -q --passes 2 --beams 5,20 grid flashtrie-cpu=c.ftx marisa-opt=w.ftx \
        marisa-int=w.ftx cpu=w.ftx >out
    [ "$(column system <out | paste -sd ' ')" = "flashtrie-cpu marisa-opt marisa-int cpu \
flashtrie-cpu marisa-opt marisa-int cpu" ]
    [ "$(column beam <out | paste -sd ' ')" = "5 5 5 5 20 20 20 20" ]
    [ "$(column status <out | sort -u)" = ok ]
    [ "$(column passes <out | sort -u)" = 2 ]
    [ "$(column digest <out | sort -u | wc -l)" = 2 ]
    # What is no figure is "-"; a mean of nothing is not 0.
    [ "$(column mean_ms <out | grep -cE '^[0-9]+\.[0-9]{4}$')" = 8 ]
    column mean_ms <out | awk '$1 <= 0 { exit 1 }'
    paste <(column p50_ms <out) <(column p90_ms <out) <(column p99_ms <out) |
        awk '$1 > $2 || $2 > $3 { exit 1 }'
    for fact in command version machine gpu driver build now grid library search; do
        grep -q "^# $fact ..*" out
    done
    driver=$(sed -n 's/^# driver //p' out) file=/proc/driver/nvidia/version
    if [ -e $file ]; then
        [[ $driver == [1-9]*.* ]]
        grep -qwF "$driver" $file
    else
        [ "$driver" = "unknown: no version in $file" ]
    fi
}

@test "latency: the fill of the beam is said, and is a column" {
    run -0 --separate-stderr ft-bench latency --passes 1 grid cpu=c.ftx
    [[ $stderr == *"beam of 20, 10 queries, fill by step (%): 5.0 "* ]]
    mean=$(sed -n 's/.*mean of steps 1 to [0-9]*: //p' <<<"$stderr")
    [ "$(column fill <<<"$output")" = "$mean" ]
}

@test "latency: -v says which query the p99 is" {
    run -0 --separate-stderr ft-bench latency -v --passes 2 grid cpu=c.ftx
    [[ $stderr =~ "cpu, beam 20: p99 is "([0-9.]+)" ms, query "[0-9]($|$'\n') ]]
    [ "${BASH_REMATCH[1]}" = "$(column p99_ms <<<"$output")" ]
}

@test "latency: one pass has no deviation, a system that cannot run no figures" {
    ft-bench latency -q --passes 1 grid cpu=c.ftx paper=c.ftx >out 2>warning || true
    [ "$(column sd_ms <out | head -n 1)" = - ]
    if grep -q $'^paper\t.*\tunavailable: ' out; then
        [ "$(column mean_ms <out | tail -n 1)" = - ]
        run -3 --separate-stderr ft-bench latency -q grid paper=c.ftx
        [[ $stderr == *"nothing can run here"* ]]
        [ "$(column status <<<"$output" | cut -c 1-12)" = unavailable: ]
    fi
}

@test "latency: an index of another layout is warned of, another library refused" {
    run -0 --separate-stderr ft-bench latency -q --passes 1 grid marisa-opt=c.ftx
    [[ $stderr == *"marisa-opt is meant for layout wide, and c.ftx is compact"* ]]
    ft-bench gen-keys -n 4000 | ft-build -q -o other.ftx
    fails 1 "other.ftx: is not the library of c.ftx" \
        ft-bench latency -q grid cpu=c.ftx cpu=other.ftx
}

@test "results that are not the expected ones are no row of figures" {
    ft-search -q -e cpu c.ftx grid >right
    ft-search -q -e cpu -a 1 c.ftx grid >wrong
    ft-bench latency -q --passes 1 --expect right grid cpu=c.ftx | grep -q $'\tok$'
    for command in latency throughput ablation; do
        run -1 --separate-stderr ft-bench $command -q --passes 1 --expect wrong grid \
            cpu=c.ftx marisa-opt=w.ftx
        [ "$(column status <<<"$output" | sort -u | cut -d , -f 1)" = "failed: wrong results" ]
        [[ $stderr == *"rows failed"* ]]
        [[ $(tail -n 1 <<<"$output") != *[0-9].[0-9][0-9][0-9][0-9]* ]]
    done
    head -c 100 right >cut
    fails 1 "cut: query 0" ft-bench latency -q --expect cut grid cpu=c.ftx -o out
    ft-bench latency -q --passes 1 --queries 3 --expect right grid cpu=c.ftx |
        grep -q $'\tok$'
}

@test "a time limit says how far it got" {
    run -0 ft-bench latency -q --time-limit 0.000000001 grid cpu=c.ftx
    [[ $(tail -n 1 <<<"$output") == *$'\t1 of 10 queries in 1e-09 s, not warm' ]]
    [ "$(column passes <<<"$output")" = 0 ]
    run -0 ft-bench latency -q --time-limit 0.3 --passes 100000 grid cpu=c.ftx
    [[ $(column status <<<"$output") == *" of 100000 passes in 0.3 s" ]]
    [ "$(column passes <<<"$output")" -ge 1 ]
}

@test "a search that does not come back is given up, and --resume goes on without it" {
    keys=$(ft-bench gen-keys -q -n 20000)
    ft-build -q -o many.ftx <<<"$keys"
    ft-build -q --layout wide -o many-wide.ftx <<<"$keys"
    ft-bench gen-grid -q -n 40 -k 3000 -t 6 -o many.ftg many.ftx
    slow=(ft-bench throughput -q -o out.tsv --resume --batches 40 --passes 1
        --time-limit 0.01 many.ftg cpu=many.ftx marisa-int=many-wide.ftx cpu=many-wide.ftx)
    fails 1 "marisa-int, beam 3000: a search has not come back in 2 s, so all ends here" "${slow[@]}"
    [ "$(cut -f 1,5,15 <out.tsv | tail -n 1)" = $'marisa-int\t40\t0 of 40 queries in 2 s, not warm, given up' ]
    [ "$(column system <out.tsv | xargs)" = marisa-int ]
    cp out.tsv before.tsv
    run -0 "${slow[@]}"
    head -n "$(wc -l <before.tsv)" out.tsv | cmp - before.tsv
    [ "$(column system <out.tsv | xargs)" = "marisa-int cpu cpu" ]
    [ "$(tail -n 1 out.tsv | cut -f 5)" = 40 ]
    fails 1 "not come back" ft-bench throughput -q -f json -o out.json --batches 40 \
        --time-limit 0.01 many.ftg marisa-int=many-wide.ftx
    python3 -c 'import json; assert len(json.load(open("out.json"))["rows"]) == 1' ||
        ! command -v python3
}

@test "ablation goes on without a base that does not come back" {
    keys=$(ft-bench gen-keys -q -n 60000)
    ft-build -q -o base.ftx <<<"$keys"
    ft-build -q --layout wide -o base-wide.ftx <<<"$keys"
    ft-bench gen-grid -q -n 1 -k 60000 -t 7 -o base.ftg base.ftx
    slow=(ft-bench ablation -q -o base.tsv --resume --passes 1 --time-limit 0.01
        base.ftg marisa-int=base-wide.ftx cpu=base.ftx)
    fails 1 "marisa-int, beam 60000: a search has not come back" "${slow[@]}"
    run -0 "${slow[@]}"
    [ "$(column system <base.tsv | xargs)" = "marisa-int cpu" ]
    [ "$(column mean_times <base.tsv | xargs)" = "- -" ]
    [[ $(column mean_ms <base.tsv | tail -n 1) == [0-9]* ]]
}

@test "the time in which ft-bench itself is stopped is not a search's" {
    keys=$(ft-bench gen-keys -q -n 20000)
    ft-build -q --layout wide -o many-wide.ftx <<<"$keys"
    ft-bench gen-grid -q -n 40 -k 3000 -t 6 -o many.ftg many-wide.ftx
    local begun=${EPOCHREALTIME/./}
    ft-bench throughput -q --batches 40 --time-limit 0.01 many.ftg \
        marisa-int=many-wide.ftx >out.tsv 3>&- &
    sleep 0.5
    kill -STOP $!
    sleep 3
    kill -CONT $!
    status=0
    wait $! || status=$?
    [ "$status" = 1 ]
    [ $((${EPOCHREALTIME/./} - begun)) -ge 5000000 ]
    [[ $(column status <out.tsv) == *", given up" ]]
}

@test "an interrupt keeps what is measured, and --resume goes on" {
    for format in tsv json; do
        ft-bench latency -q -f $format -o out.$format --passes 100000 --beams 5,6,7 \
            --time-limit 0.5 grid cpu=c.ftx &
        pid=$!
        for ((i = 0; i < 200; i++)); do
            grep -q 'passes in' out.$format 2>/dev/null && break
            sleep 0.05
        done
        kill -TERM $pid
        status=0
        wait $pid || status=$?
        [ $status = 143 ]
        grep -q 'passes in 0.5 s' out.$format
    done
    python3 -c 'import json; assert len(json.load(open("out.json"))["rows"]) >= 1' ||
        ! command -v python3
    before=$(column beam <out.tsv | paste -sd ' ')
    [ "$before" != "5 6 7" ]
    grep -v $'\tinterrupted: ' out.tsv >part.tsv
    printf 'cpu\tcom' >>out.tsv # as a crash would leave it
    ft-bench latency -q -o out.tsv --resume --passes 100000 --beams 5,6,7 \
        --time-limit 0.5 grid cpu=c.ftx
    [ "$(column beam <out.tsv | paste -sd ' ')" = "5 6 7" ]
    head -n "$(wc -l <part.tsv)" out.tsv | cmp - <(head -n "$(wc -l <part.tsv)" part.tsv)
    cp out.tsv whole.tsv
    ft-bench latency -q -o out.tsv --resume --passes 100000 --beams 7,5 \
        --time-limit 0.5 grid cpu=c.ftx
    cmp out.tsv whole.tsv
    fails 1 "out.tsv: is of another run, take another file: it has '# search" \
        ft-bench latency -q -o out.tsv --resume --passes 1 grid cpu=c.ftx
    cmp out.tsv whole.tsv
    cp c.ftx other
    fails 1 "other: is of another run" ft-bench latency -q -o other --resume grid cpu=c.ftx
    cmp c.ftx other
    printf 'no line' >other
    fails 1 "other: is of another run" ft-bench latency -q -o other --resume grid cpu=c.ftx
    [ "$(cat other)" = "no line" ]
    cmp c.ftx <(ft-build -q --layout compact keys)
}

@test "an interrupt keeps whole passes, which --resume measures again" {
    ft-bench latency -q -o out --passes 100000 grid cpu=c.ftx &
    pid=$!
    sleep 3
    kill -TERM $pid
    status=0
    wait $pid || status=$?
    [ $status = 143 ]
    [[ $(column status <out) == "interrupted: "[1-9]*" of 100000 passes" ]]
    [ "$(column passes <out)" -ge 1 ]
    timeout -s TERM 3 ft-bench latency -q -o out --resume --passes 100000 grid \
        cpu=c.ftx || [ $? = 124 ]
    [ "$(column status <out | wc -l)" = 1 ]
}

@test "an interrupt keeps whole passes of breakdown" {
    system=$(ft-bench systems -q -f tsv | awk -F '\t' '$1 == "flashtrie-cuda" && $NF == "ok" { print $1 }')
    [ -n "$system" ] || skip "no system here has an instrumented form"
    ft-bench breakdown -q -o out --passes 100000 grid $system=c.ftx &
    sleep 5
    kill -TERM $!
    status=0
    wait $! || status=$?
    [ $status = 143 ]
    [[ $(column status <out) == "interrupted: $(column passes <out) of 100000 passes" ]]
    [ "$(column passes <out)" -ge 1 ]
    [[ $(column total_ms <out) == [0-9]* ]]
}

@test "an interrupt does not wait until ablation has counted all queries" {
    ft-bench ablation -q -o out --passes 100000 grid cpu=c.ftx &
    sleep 3
    kill -TERM $!
    status=0
    wait $! || status=$?
    [ $status = 143 ]
    [[ $(column status <out) == "interrupted: "[1-9]*" of 100000 passes; counters of 1" ]]
}

@test "a table of one library is not gone on with by another" {
    printf '1 2\n3 4\n' | ft-build -q --layout compact -o a.ftx
    printf '1 2\n3 4\n' | ft-build -q --layout wide -o wide.ftx
    ft-bench gen-grid -q -n 3 -k 4 -t 2 -o small a.ftx
    for command in latency throughput ablation quality breakdown; do
        method=(ft-bench $command -q -o $command.tsv)
        [ $command = quality ] || method+=(--passes 1)
        [ $command != throughput ] || method+=(--batches 3)
        "${method[@]}" --beams 4 small cpu=a.ftx || [ $command = breakdown ]
        # Another layout of the library has the same head.
        "${method[@]}" --resume --beams 5 small marisa-opt=wide.ftx || [ $command = breakdown ]
        cp $command.tsv $command.before
    done
    grep -q '^# library 2 keys, of 2 tokens at most, below 5, digest [0-9a-f]*$' latency.tsv
    printf '1 4\n3 2\n' | ft-build -q --layout compact -o a.ftx
    for command in latency throughput ablation quality breakdown; do
        method=(ft-bench $command -q -o $command.tsv --resume)
        [ $command = quality ] || method+=(--passes 1)
        [ $command != throughput ] || method+=(--batches 3)
        for beams in 4 6; do # measured already, and not yet
            fails 1 "$command.tsv: is of another run, take another file: it has '# library 2 keys" \
                "${method[@]}" --beams $beams small cpu=a.ftx
            cmp $command.tsv $command.before
        done
    done
}

@test "a file with failed rows stays a failure when it is gone on with" {
    ft-search -q -e cpu -a 1 c.ftx grid >wrong
    for resume in "" --resume; do
        fails 1 "1 of 1 rows failed" \
            ft-bench latency -q --passes 1 --expect wrong -o out $resume grid cpu=c.ftx
    done
    [ "$(column beam <out)" = 20 ]
}

# resumable FILE: rows of forty beams, of which the first has failed.
resumable() {
    forty=(ft-bench latency -q --passes 1 --queries 1 --beams "$(seq -s , 40)")
    "${forty[@]}" -o "$1" grid cpu=c.ftx
    sed -i '0,/\tok$/s//\tfailed: x/' "$1"
    [ "$(stat -c %s "$1")" -gt 2048 ]
}

@test "--resume writes a file anew beside it, or leaves it as it was" {
    resumable out
    cp out before
    run -1 --separate-stderr bash -c 'ulimit -f 1; trap "" XFSZ; exec "$@"' _ \
        "${forty[@]}" -o out --resume grid cpu=c.ftx
    [[ $stderr == "ft-bench: out: cannot write: File too large" ]]
    cmp out before
    [ -z "$(find . -name '.*tmp')" ]
    "${forty[@]}" -o out --resume grid cpu=c.ftx
    [ "$(column beam <out | paste -sd ,)" = "$(seq -s , 2 40),1" ]
    [ "$(column status <out | sort -u)" = ok ]
}

@test "--resume keeps links, permissions and owners" {
    mkdir real
    resumable real/out
    chmod 0640 real/out
    [ "$(id -u)" != 0 ] || chown 12:34 real/out
    who=$(stat -c '%a %u %g' real/out)
    ln -s real/out link
    "${forty[@]}" -o link --resume grid cpu=c.ftx
    [ -L link ]
    [ "$(stat -c '%a %u %g' real/out)" = "$who" ]
    [ "$(column beam <real/out | wc -l)" = 40 ]
}

@test "three forms of output, notes in the header" {
    for format in table tsv json; do
        ft-bench latency -q -f $format --passes 1 --note 'seed "1"' --note two grid \
            cpu=c.ftx >$format
    done
    grep -qF '# note seed "1"; two' tsv
    grep -q '^note  *seed "1"; two' table
    grep -q '^cpu  *compact ' table
    run -0 python3 -c 'import json
d = json.load(open("json"))
assert d["note"] == "seed \"1\"; two", d
assert d["command"] == "ft-bench latency", d
(row,) = d["rows"]
assert row["system"] == "cpu" and row["beam"] == 20 and row["sd_ms"] is None, row
assert 0 < row["mean_ms"] and row["status"] == "ok", row'
}

@test "throughput: batches of each size, every query once a pass" {
    ft-bench throughput -q --passes 2 --batches 1,3,10 grid cpu=c.ftx marisa-opt=w.ftx >out
    [ "$(column batch <out | paste -sd ' ')" = "1 1 3 3 10 10" ]
    [ "$(column digest <out | sort -u | wc -l)" = 1 ]
    [ "$(column status <out | sort -u)" = ok ]
    # Of one pass, queries/s is what the time of a call makes it (3 leaves a small batch).
    ft-bench throughput -q --passes 1 --batches 1,3,10 grid cpu=c.ftx marisa-opt=w.ftx >out
    paste <(column queries_per_s <out) <(column mean_call_ms <out) <(column batch <out) |
        awk '$3 != 3 && ($1 * $2 / 1000 / $3 < 0.97 || $1 * $2 / 1000 / $3 > 1.03) { exit 1 }'
    fails 1 "a batch of 11, and the grid has 10 queries" \
        ft-bench throughput --batches 11 grid cpu=c.ftx
}

@test "breakdown: a system without phases says so" {
    run -3 --separate-stderr ft-bench breakdown -q grid cpu=c.ftx
    [ "$(column status <<<"$output")" = "unavailable: engine cpu has no instrumented form" ]
    [ "$(column pruning_pct <<<"$output")" = - ]
}

@test "breakdown: a time limit says how far it got, of one query too" {
    system=$(ft-bench systems -q -f tsv | awk -F '\t' '$1 == "flashtrie-cuda" && $NF == "ok" { print $1 }')
    [ -n "$system" ] || skip "no system here has an instrumented form"
    for n in 1 10; do
        run -0 ft-bench breakdown -q --queries $n --time-limit 0.000000001 grid $system=c.ftx
        [[ $(column status <<<"$output") == "1 of $n queries in 1e-09 s, not warm" ]]
        [ "$(column passes <<<"$output") $(column total_ms <<<"$output")" = "0 -" ]
        run -0 ft-bench breakdown -q --queries $n --time-limit 0.3 --passes 100000 grid \
            $system=c.ftx
        [[ $(column status <<<"$output") == "$(column passes <<<"$output") of 100000 passes in 0.3 s" ]]
        [ "$(column passes <<<"$output")" -ge 1 ]
        [[ $(column total_ms <<<"$output") == [0-9]* ]]
    done
}

@test "ablation counts what it can in the time" {
    ft-bench ablation -q -j 1 --time-limit 0.000000001 grid cpu=c.ftx marisa-opt=w.ftx >part
    [ "$(column status <part | sort -u)" = "1 of 10 queries in 1e-09 s, not warm; counters of 1" ]
    ft-bench ablation -q -j 1 --queries 1 --passes 1 grid cpu=c.ftx marisa-opt=w.ftx >one
    for c in beams probes candidates kept; do
        [ "$(column $c <part)" = "$(column $c <one)" ]
        [ "$(column $c <part | head -n 1)" != - ]
    done
}

@test "ablation: times against the first, and work that ft-search counts as well" {
    ft-bench ablation -q --passes 2 grid cpu=c.ftx marisa-opt=w.ftx >out
    [ "$(column mean_times <out | head -n 1)" = 1.00 ]
    ft-search -q -e cpu --stats stats c.ftx grid >/dev/null
    for counter in probes kept; do
        want=$(awk -F '\t' -v name=$counter '!n++ { for (i = 1; i <= NF; i++) at[$i] = i; next }
            { sum += $at[name] } END { printf "%.1f", sum / 10 }' stats)
        [ "$(column $counter <out | head -n 1)" = "$want" ]
    done
    [ "$(column kept <out | sort -u | wc -l)" = 1 ]
    # An index alone: the paper's kernel and its variants.
    ft-bench ablation -q --passes 1 grid c.ftx >all 2>/dev/null || true
    [ "$(column system <all | paste -sd ' ')" = \
        "paper paper-linear paper-two-pointer paper-per-child ppt" ]
}

@test "command lines that make no sense" {
    fails 2 "is not numbers such as" ft-bench latency --beams 1,,2 grid cpu=c.ftx
    fails 2 "is not numbers such as" ft-bench latency --beams 0 grid cpu=c.ftx
    fails 2 "is not numbers such as" ft-bench throughput --batches 8x grid cpu=c.ftx
    fails 2 "unknown option '--batches'" ft-bench latency --batches 8 grid cpu=c.ftx
    fails 2 "exclude each other" ft-bench latency -b 3 --beams 3 grid cpu=c.ftx
    fails 2 "--resume goes with -o FILE" ft-bench latency --resume grid cpu=c.ftx
    fails 2 "TSV only" ft-bench latency --resume -f json -o x grid cpu=c.ftx
    fails 2 "single beam" ft-bench latency --expect x --beams 1,2 grid cpu=c.ftx
    fails 2 "operands are missing" ft-bench latency grid
    fails 2 "'c.ftx' is not SYSTEM=INDEX" ft-bench latency grid c.ftx
    fails 1 "no system is called 'cpus'" ft-bench latency grid cpus=c.ftx
    fails 1 "none.ftx" ft-bench latency grid cpu=none.ftx
    fails 1 "not a proposal grid" ft-bench latency keys cpu=c.ftx
    fails 1 "cannot open for writing" ft-bench latency -q -o none/x grid cpu=c.ftx
    run -1 --separate-stderr ft-bench latency -q -o /dev/full grid cpu=c.ftx
    [[ $stderr == *"/dev/full: cannot write"* ]]
}

@test "an input is no output" {
    cp c.ftx both.ftx
    fails 2 "'cpu=both.ftx' is also the output" \
        ft-bench latency -q -o both.ftx grid cpu=both.ftx
    fails 2 "'both.ftx' is also the output" ft-bench size -q -o ./both.ftx both.ftx
    fails 1 "'both.ftx' is also the output" ft-bench gen-grid -q -o ./both.ftx both.ftx
    cp c.ftx r5.ftx
    fails 1 "'r5.ftx' is also the output" ft-bench gen-grid -q --head 2,5 -o r{}.ftx r5.ftx
    cmp r5.ftx c.ftx
    ft-search -q -e cpu c.ftx grid >right
    cp right expected
    fails 2 "'right' is also the output" \
        ft-bench latency -q --expect right -o right grid cpu=c.ftx
    cmp right expected
    cmp c.ftx both.ftx
}

@test "a disk that is full leaves whole rows" {
    command -v python3 >/dev/null || skip "no python3"
    for format in json tsv; do
        # 40 rows are more than 3 KiB.
        run -1 --separate-stderr bash -c 'ulimit -f 3; trap "" XFSZ; exec "$@"' _ \
            ft-bench latency -q -f $format -o full --passes 1 --queries 1 \
            --beams "$(seq -s , 40)" grid cpu=c.ftx
        [[ $stderr == *"full: cannot write: File too large"* ]]
        [ -z "$(tail -c 1 full)" ]
        if [ $format = json ]; then
            python3 -c 'import json; assert len(json.load(open("full"))["rows"]) > 1'
        else
            [ "$(column status <full | sort -u)" = ok ]
        fi
    done
    ft-bench latency -q -o full --resume --passes 1 --queries 1 \
        --beams "$(seq -s , 40)" grid cpu=c.ftx
    [ "$(column beam <full | paste -sd ,)" = "$(seq -s , 40)" ]
    run -1 --separate-stderr ft-bench latency -q -f json --passes 1 -o /dev/full grid cpu=c.ftx
    [[ $stderr == *"/dev/full: cannot write"* ]]
}

@test "a number that comes twice is measured once" {
    ft-bench throughput -q --passes 1 --beams 9,5,9 --batches 4,1,4,4 grid cpu=c.ftx >out
    [ "$(paste -d : <(column beam <out) <(column batch <out) | xargs)" = "9:4 9:1 5:4 5:1" ]
}

@test "two runs do not write one file" {
    exec 9>shared.tsv
    flock 9
    fails 1 "shared.tsv: another ft-bench is writing it" \
        ft-bench size -q -o shared.tsv c.ftx
    exec 9>&-
    ft-bench size -q -o shared.tsv c.ftx
}

@test "JSON is JSON whatever a note has" {
    command -v python3 >/dev/null || skip "no python3"
    ft-bench size -q -f json --note "$(printf 'a"\\\377\303\251\303')" c.ftx |
        python3 -c 'import json, sys; assert json.load(sys.stdin)["note"] == "a\"\\?\u00e9?"'
}
