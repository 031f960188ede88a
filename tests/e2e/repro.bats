#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# scripts/repro: each script at its small size, all in one folder, as `all` has it.
#
# Sanitizers see fig3-latency alone. The others run the same programs, without a line of C
# that it or the other files of tests do not run, and take two minutes more.
bats_require_minimum_version 1.5.0
load helper

setup() {
    [[ $BATS_TEST_DESCRIPTION == "fig3-latency: "* ]] || ! sanitized ||
        skip "sanitizers see these programs in other tests"
}

# Runs a script and looks at what each of them leaves: rows with these columns, a status
# in each that says ok or why not, the table, and a plot where there is gnuplot.
repro() { # NAME COLUMNS [OPTION...]
    dir=$BATS_FILE_TMPDIR/repro/results
    tsv=$dir/$1.tsv
    run -0 --separate-stderr "$top/scripts/repro/$1" --quick --dir "${dir%/*}" "${@:3}"
    local column
    for column in $2; do
        rows "$column" >"$T/column"
        [ -s "$T/column" ]
    done
    rows status | grep -vE '^(ok(, superset)?(; counters of [0-9]+)?|(not measured here|unavailable): .+|[0-9]+ of [0-9]+ .+)$' >"$T/odd" &&
        { cat "$T/odd"; false; }
    [[ $output == *"here:  "*"paper: NVIDIA A100"* ]]
    if command -v gnuplot >/dev/null; then
        [ "$(head -c 4 "$dir/$1.png" | tail -c 3)" = PNG ]
        rm "$dir/$1.png"
    else
        [[ $stderr == *"no gnuplot here"* ]]
    fi
}

rows() { # COLUMN [SYSTEM]: its values
    awk -F '\t' -v c="$1" -v s="${2-}" '
        /^#/ { next }
        !head { head = 1; for (i = 1; i <= NF; i++) at[$i] = i; next }
        !(c in at) { exit }
        s == "" || $at["system"] == s { print $at[c] }' "$tsv"
}
values() { # COLUMN SYSTEM: those that are numbers, on one line
    rows "$@" | grep -E '^[0-9.]+$' | tr '\n' ' '
}

@test "fig3-latency: every beam and system, beside the paper" {
    repro fig3-latency "layout threads mean_ms p50_ms p90_ms p95_ms p99_ms fill digest"
    [ "$(values beam marisa-opt)" = "100 1000 " ]
    [ "$(values mean_faster marisa-opt)" = "1.00 1.00 " ]
    [[ $(cat "$dir/fig3-latency.main") == *$'\n1000 '*"marisa-opt "*"46.30 | "* ]]
    [ "$(grep -c '^100 ' "$dir/fig3-latency.main")" = 0 ]
    [ "$(values mean_ms flashtrie-cpu | wc -w)" = 2 ]
    [ "$(rows system paper | wc -l)" = 2 ]
    [[ $output == *"1000      marisa-opt             46.30 | "*" 65.5 | "*" 76.71 | "* ]]
    [[ $output == *" flashtrie-cpu           1.91 | "*" 24.2 | "* ]]
    [ "$(rows digest marisa-opt)" = "$(rows digest flashtrie-cpu)" ]
    [[ $output == *$'\nreference: the oracle\n'* ]]
    [ "$(grep -c '^# expect ' "$tsv")" = 2 ]
}

@test "a system that does not run here has a row that says so, and no figure" {
    repro fig3-latency mean_ms
    if [ "$(ft-bench systems -f tsv | awk -F '\t' '$1 == "paper" { print $5 }')" = ok ]; then
        [ "$(values mean_ms paper | wc -w)" = 2 ]
    else
        [ -z "$(values mean_ms paper)" ]
        [[ $(rows status paper) == "not measured here: "* ]]
        [[ $output == *"1.91 | - "*"not measured here: "* ]]
    fi
}

@test "table6-percentiles takes what fig3-latency has measured" {
    repro fig3-latency mean_ms
    before=$(rows mean_ms)
    repro table6-percentiles "p50_ms p90_ms p95_ms p99_ms sd_ms"
    [ "$(rows mean_ms)" = "$before" ]
    [[ $output == *" 15.08 | "* ]]
    [[ $stderr != *"the oracle answers"* ]]
}

@test "fig4-breakdown: the paper's phases" {
    repro fig4-breakdown "system"
    [[ $output == *"65.4 | "*"13.5 | "*"15.4 | "*"5.8 | "* ]]
    [ "$(rows system | sort -u | xargs)" = "flashtrie-cuda paper" ]
}

@test "fig4-throughput: every batch, and the best" {
    repro fig4-throughput "batch feed queries_per_s"
    [ "$(values batch marisa-opt)" = "1 8 1 8 " ]
    [[ $output == *"1621 | "*" 70 | "* ]]
    most=$(values queries_per_s flashtrie-cpu | awk '{ print ($1 > $2 ? $1 : $2) }')
    tsv=$dir/fig4-throughput.summary.tsv
    [ "$(values queries_per_s flashtrie-cpu | cut -d ' ' -f 1)" = "$most" ]
    run -0 --separate-stderr "$top/scripts/repro/fig4-throughput" --quick --dir "$T/few" \
        --queries 4 --batches 1,4,8 --beams 100
    tsv=$T/few/results/fig4-throughput.tsv
    [ "$(values batch marisa-opt)" = "1 4 " ]
    [[ $stderr == *"no batches of 8: the grid has 4 queries"* ]]
}

@test "fig5-public and the tables of Appendix K" {
    repro fig5-public "mean_faster p99_faster"
    [[ $output == *"34.23 | "*"20.5 | "*"22.7 | "* ]]
    repro table9-noise-permissive "r mean_ms mean_faster"
    [ "$(values r marisa-opt)" = "0 600 " ]
    [[ $output == *"41.19 | "*"5.66 | "* ]]
    full=$(values fill flashtrie-cpu | cut -d ' ' -f 1)
    repro table10-noise-production "r mean_ms mean_faster"
    [[ $output == *"8.95 | "*"1.54 | "* ]]
    # Its thresholds prune: the beam is less full.
    awk -v a="$full" -v b="$(values fill flashtrie-cpu | cut -d ' ' -f 1)" 'BEGIN { exit !(b < a) }'
}

@test "table1-quality: a wider beam finds more" {
    repro table1-quality "recall_100 recall_200 score_diff exact"
    [[ $output == *"0.53 | "*"0.52 | "* ]]
    values recall_200 flashtrie-cpu | awk '{ exit !(NF == 3 && $1 < $2 && $2 <= $3) }'
    [ "$(rows recall_100 marisa-opt)" = "$(rows recall_100 flashtrie-cpu)" ]
    [ "$(values score_diff flashtrie-cpu | tr ' ' '\n' | sort -u | xargs)" = 0 ]
}

@test "table2-ablations and table8-sweep: the paper's kernel and its variants" {
    repro table2-ablations system
    [[ $output == *"110.2 | "* ]]
    repro table8-sweep system
    [ "$(rows system | sort -u | wc -l)" = 5 ]
    [[ $output == *"110.2 | "* ]]
}

@test "table3-widest-beam: the widest within the limit" {
    repro table3-widest-beam "beam p95_ms"
    [[ $output == *"cannot be run again"* ]]
    [ "$(values beam flashtrie-cpu)" = "100 300 1000 " ]
    repro table3-widest-beam p95_ms --limit-ms 0
    tsv=$dir/table3-widest-beam.summary.tsv
    [ "$(rows widest_beam flashtrie-cpu)" = - ]
    repro table3-widest-beam p95_ms --limit-ms 100000
    tsv=$dir/table3-widest-beam.summary.tsv
    [ "$(rows widest_beam flashtrie-cpu)" = 1000 ]
}

@test "table5-growth: counters, not times, so that the growth is the same anywhere" {
    repro table5-growth "sweep x beams probes candidates"
    tsv=$dir/table5-growth.summary.tsv
    [ "$(rows sweep marisa-opt | xargs)" = "B K keys D" ]
    [[ $output == *"BKlogD/P | "* ]]
    # Two pointers go through K for each beam: in proportion to the beams, but for the first
    # step.
    rows work marisa-opt | awk 'NR == 1 { exit !($1 > 0.8 && $1 <= 1) }'
}

@test "table7-marisa-int is held to its time" {
    repro table7-marisa-int "beam mean_ms"
    [[ $output == *"10997000 | "* ]]
    [[ $(rows status marisa-int) =~ ^ok$|' of ' ]]
}

@test "fig2-build-size: every layout, and one thread and two at one size" {
    dir=$BATS_FILE_TMPDIR/fig2/results
    tsv=$dir/fig2-build-size.tsv
    fig2=("$top/scripts/repro/fig2-build-size" --dir "$BATS_FILE_TMPDIR/fig2" --threads 3
        --sizes 20K,30K,40M --keys 30K --scaling 20K)
    run -0 --separate-stderr "${fig2[@]}"
    n=$(($(wc -w <<<"$layouts") + 2))
    [ "$(rows keys | sort | uniq -c | xargs)" = "$((n + 6)) 20000 $n 30000" ]
    [ "$(rows threads compact | xargs)" = "3 1 2 3" ]
    [ "$(rows status | sort | uniq -c | sort -n | tail -n 1 | awk '{ print $2 }')" = ok ]
    command -v marisa-build >/dev/null || [[ $(rows status marisa) == "unavailable: no marisa"* ]]
    [[ $output == *"FlashTrie "*" 13.4 | "*"in the paper alone"*"with two threads than with one: "* ]]
    [ -z "$(find "$BATS_FILE_TMPDIR/fig2" -name '*.ftk' -o -name '*.ftx')" ]
    # What is there is not built again, and what is more is.
    cp "$dir/raw/build.20000-s1.tsv" "$T/before"
    run -0 --separate-stderr "${fig2[@]}" --layouts compact,compact+ids
    [ "$(head -n "$(wc -l <"$T/before")" "$dir/raw/build.20000-s1.tsv")" = "$(cat "$T/before")" ]
    [ "$(rows threads compact+ids | xargs)" = "3 1 2 3" ]
}

@test "stopped, a script says what it has not measured, and goes on when run again" {
    dir=$BATS_FILE_TMPDIR/stop/results
    tsv=$dir/fig3-latency.tsv
    fig3=("$top/scripts/repro/fig3-latency" --quick --dir "${dir%/*}" --systems flashtrie-cpu
        --beams 50,100 --passes 100000 --queries 10)
    run -75 --separate-stderr "${fig3[@]}" --time-limit 60 --stop-after 2
    [[ $stderr == *"not all is measured: run it again to go on" ]]
    [ "$(rows status | uniq -c | xargs)" = "2 not all measured in 2 s" ]
    [ "$SECONDS" -lt 60 ]
    # As a script that was killed would leave it.
    mkdir "${dir%/*}/.work.99999999"
    run -0 --separate-stderr "${fig3[@]}" --time-limit 0.1
    [ "$(values beam flashtrie-cpu)" = "50 100 " ]
    [ ! -e "${dir%/*}/.work.99999999" ]
}

@test "all: every script, options to those that have them, and a summary" {
    run -0 --separate-stderr "$top/scripts/repro/all" --quick --dir "$BATS_FILE_TMPDIR/repro" \
        --sizes 20K --layouts compact,wide --keys 200K
    dir=$BATS_FILE_TMPDIR/repro/results
    for script in "$top"/scripts/repro/{fig,table}*; do
        name=$(basename "$script")
        [[ $output == *"=== $name"*"=== summary"*"$name "*" ok "* ]]
        [ -s "$dir/$name.tsv" ]
    done
    [[ ${output#*=== summary} == *"marisa-opt "*"46.30 | "*"table5-growth"* ]]
    tsv=$dir/all.tsv
    [ "$(rows status | sort -u)" = ok ]
    tsv=$dir/fig2-build-size.tsv
    [ "$(rows keys | xargs)" = "20000 20000" ]
    [ "$(rows system | xargs)" = "compact wide" ]
    [ -z "$(find "$BATS_FILE_TMPDIR/repro" -name '.work*')" ]
    run -75 --separate-stderr "$top/scripts/repro/all" --quick \
        --dir "$BATS_FILE_TMPDIR/repro" --stop-after 1 --sizes 20K
    [[ ${output#*=== summary} == *"fig2-build-size "*" not begun "* ]]
}

@test "all goes on where it stopped, and takes what was well before as it is" {
    local all=("$top/scripts/repro/all" --quick --dir "$BATS_FILE_TMPDIR/repro" --beams 50
        --queries 3 --scripts fig3-latency,table6-percentiles)
    run -0 --separate-stderr "${all[@]}"
    dir=$BATS_FILE_TMPDIR/repro/results
    tsv=$dir/all.tsv
    [ "$(rows experiment | xargs) $(rows status | xargs)" = "fig3-latency table6-percentiles ok ok" ]
    main=$(sed 's/^/    /' "$dir/fig3-latency.main")
    rm "$dir/table6-percentiles.ok"
    run -0 --separate-stderr "${all[@]}"
    [ "$(rows status | paste -sd ,)" = "ok before,ok" ]
    [[ $output != *"=== fig3-latency"* && $output == *"=== table6-percentiles"*"$main"* ]]
    run -0 --separate-stderr "${all[@]}" --seed 2
    [ "$(rows status | paste -sd ,)" = "ok,ok" ]
    run -2 --separate-stderr "${all[@]}" --scripts fig3
    [[ $stderr == *"--scripts: there is no 'fig3'"* ]]
}

@test "stopped while a library is made, a script ends in time" {
    SECONDS=0
    run -75 --separate-stderr "$top/scripts/repro/fig3-latency" --quick --dir "$T/large" \
        --keys 400M --stop-after 2
    [ "$SECONDS" -lt 20 ]
    tsv=$T/large/results/fig3-latency.tsv
    [ "$(rows status flashtrie-cpu | uniq -c | xargs)" = "2 not all measured in 2 s" ]
    [ -z "$(find "$T/large" -name '*.ftx' -o -name '.work*')" ]
}

@test "a system that does not come back has a row that says so, and the others go on" {
    run -0 --separate-stderr "$top/scripts/repro/fig4-throughput" --quick \
        --dir "$BATS_FILE_TMPDIR/repro" --systems marisa-int,flashtrie-cpu --queries 200 \
        --batches 200 --beams 800,900 --time-limit 0.1
    tsv=$BATS_FILE_TMPDIR/repro/results/fig4-throughput.tsv
    [ "$(rows status marisa-int | paste -sd ,)" = "0 of 200 queries in 2 s, not warm, given up,\
not measured here: at 800 it was 0 of 200 queries in 2 s, not warm, given up" ]
    [ "$(values beam flashtrie-cpu)" = "800 900 " ]
    [ "$(values mean_call_ms flashtrie-cpu | wc -w)" = 2 ]
}

# A build folder in $T/build with COMMAND, which has other ARGUMENTS in front.
build_with() { # COMMAND [ARGUMENT...]
    local real file
    real=$(dirname "$(command -v ft-bench)")
    mkdir -p "$T/build/tests/oracle"
    for file in ft-{build,bench,search,inspect} tests/oracle/ft-oracle; do
        ln -sf "$real/$file" "$T/build/$file"
    done
    rm "$T/build/$1"
    printf '#!/bin/sh\nexec %q %s "$@"\n' "$real/$1" "${*:2}" >"$T/build/$1"
    chmod +x "$T/build/$1"
}

# A SCRIPT with such a command has no figure, not even one from before.
has_none() { # SCRIPT COMMAND [ARGUMENT...]
    local results=$T/wrong/results
    build_with "${@:2}"
    mkdir -p "$results"
    touch "$results/$1".{tsv,summary.tsv,txt,main,ok,png}
    FT_BUILD=$T/build run -1 --separate-stderr "$top/scripts/repro/$1" --quick \
        --dir "$T/wrong" --keys 2K --systems flashtrie-cpu,marisa-opt
    [[ $stderr == *"$1: "*": results are not those of the reference, the oracle" ]]
    [ -z "$(find "$results" -name "$1*")" ]
    run -1 grep -r $'\tok' "$results"
}

@test "a result that is not the oracle's stops a script, and no figure stands" {
    # ft-bench compares; with several beams it is the reference that is compared.
    has_none fig3-latency tests/oracle/ft-oracle -a4
    has_none table1-quality ft-search -a4
    rm "$T/build/tests/oracle/ft-oracle"
    FT_BUILD=$T/build run -1 --separate-stderr "$top/scripts/repro/fig3-latency" --quick \
        --dir "$T/wrong"
    [[ $stderr == "fig3-latency: there is no $T/build/tests/oracle/ft-oracle: 'make "* ]]
}

@test "where results are not compared with the oracle's, it is said, and why" {
    local fig3=("$top/scripts/repro/fig3-latency" --quick --systems flashtrie-cpu --beams 50)
    run -0 --separate-stderr "${fig3[@]}" --dir "$T/said" --keys 2K --oracle-keys 1K
    [[ $output == *$'\nreference: engine cpu, not the oracle: of 2000 keys, '* ]]
    run -1 grep '^# expect ' "$T/said/results/fig3-latency.tsv"
    keys_file "$T/lib.txt" 1
    ft-build -q -o "$T/lib.ftx" "$T/lib.txt"
    run -0 --separate-stderr "${fig3[@]}" --dir "$T/said" --library "$T/lib.txt" \
        --oracle-keys 999
    [[ $output == *$'\nreference: engine cpu, not the oracle: of 1000 keys, '* ]]
    run -0 --separate-stderr "${fig3[@]}" --dir "$T/said" --library "$T/lib.ftx"
    [[ $output == *$'\nreference: engine cpu, not the oracle, which does not read '* ]]
}

@test "what is not understood, or was measured otherwise, is refused" {
    fig3=("$top/scripts/repro/fig3-latency" --quick --dir "$BATS_FILE_TMPDIR/repro")
    run -2 --separate-stderr "${fig3[@]}" --beans 3
    [[ $stderr == "fig3-latency: there is no option '--beans'"* ]]
    run -2 --separate-stderr "${fig3[@]}" --beams
    [[ $stderr == *"--beams wants a value"* ]]
    run -2 --separate-stderr "${fig3[@]}" --keys many
    [[ $stderr == *"'many' is not a number of keys"* ]]
    run -2 --separate-stderr "${fig3[@]}" --stop-after 0
    [[ $stderr == *"--stop-after: '0' is not a number"* ]]
    run -2 --separate-stderr "${fig3[@]}" --systems marisa-opt,fast
    [[ $stderr == *"no system is called 'fast'"* ]]
    run -2 --separate-stderr "$top/scripts/repro/all" --beans 3
    run -2 --separate-stderr "$top/scripts/repro/fig3-latency" --quick --dir ""
    [[ $stderr == *"--dir: '' is no folder"* ]]
    "${fig3[@]}"
    run -1 --separate-stderr "${fig3[@]}" --passes 2
    [[ $stderr == *"is of another run"* ]]
    run -0 --separate-stderr "${fig3[@]}" --help
    [[ $output == *"Figure 3 of the paper"*"--time-limit"*"--beams"* ]]
    [ -z "$stderr" ]
}

@test "a folder may have any name" {
    local folder
    cd "$T"
    for folder in "v=1 '2" -x; do
        run -0 --separate-stderr "$top/scripts/repro/fig3-latency" --quick --dir "$folder" \
            --systems flashtrie-cpu --beams 50 --queries 1 --keys 1K
        [ -s "$T/$folder/results/fig3-latency.tsv" ]
    done
}

# Processes with a file of $T/ended among their arguments.
left_running() {
    grep -slF -f <(echo "$T/ended") /proc/[0-9]*/cmdline | cut -d / -f 3
}

@test "a signal to a script alone ends all that it has started, and takes its files away" {
    local script
    for script in fig3-latency "all --scripts fig3-latency"; do
        # shellcheck disable=SC2086
        "$top"/scripts/repro/$script --dir "$T/ended" --keys 400M --systems flashtrie-cpu \
            >"$T/log" 2>&1 3>&- &
        until grep -q building "$T/log" && [ "$(left_running | wc -l)" -gt 2 ]; do sleep 0.1; done
        SECONDS=0
        kill -TERM $!
        while [ -n "$(left_running)" ] && [ $SECONDS -lt 10 ]; do sleep 0.1; done
        left_running | xargs -r kill -KILL
        [ $SECONDS -lt 10 ]
        status=0
        wait $! || status=$?
        [ $status = 130 ]
        [ -z "$(find "$T/ended" -name '.work.*' -o -name '*.ftx')" ]
    done
}

@test "what a script of the same number has left behind is taken away" {
    # shellcheck disable=SC2016
    FT_REPRO_GROUP=1 run -0 --separate-stderr bash -c 'mkdir -p "$2/.work.$$/keys" && exec "$1" --quick \
        --dir "$2" --systems flashtrie-cpu --beams 50 --queries 1 --keys 1K' - \
        "$top/scripts/repro/fig3-latency" "$T/killed"
    [ -z "$(find "$T" -name '.work.*')" ]
}

# Keys that differ with N, of one size, and the file's time with them.
keys_file() { # FILE N
    seq $(($2 * 1000)) $(($2 * 1000 + 999)) | sed 's/.$/& & 5/' >"$1"
    touch -d "2001-01-0$2" "$1"
}

@test "all: a library that has changed is measured, and what takes none is left out" {
    local left="left out: makes its own libraries"
    local all=("$top/scripts/repro/all" --quick --dir "$T/all" --library "$T/lib.txt"
        --systems flashtrie-cpu --scripts table7-marisa-int,table5-growth,fig2-build-size)
    tsv=$T/all/results/all.tsv
    keys_file "$T/lib.txt" 1
    run -0 --separate-stderr "${all[@]}"
    [ "$(rows status | paste -sd ,)" = "ok,$left,$left" ]
    [[ $output == *"table5-growth "*"$left"* ]]
    run -0 --separate-stderr "${all[@]}"
    [ "$(rows status | head -n 1)" = "ok before" ]
    keys_file "$T/lib.txt" 2
    run -0 --separate-stderr "${all[@]}"
    [ "$(rows status | head -n 1)" = ok ]
    [ "$(find "$T/all" -name 'lib.txt-*.compact.ftx' | wc -l)" = 2 ]
    run -2 --separate-stderr "$top/scripts/repro/table5-growth" --library "$T/lib.txt"
    [[ $stderr == *"the libraries are made here"* ]]
}

@test "table1-quality: scores and a grid that have changed are read again" {
    cd "$T"
    seq 150 >keys
    ft-build -q -o x.ftx keys
    ft-bench gen-grid -q -t 1 -k 100 -n 2 -o q.ftg x.ftx
    local table1=("$top/scripts/repro/table1-quality" --quick --dir real --library keys
        --grid q.ftg --scores sc.tsv --systems flashtrie-cpu --beams 100)
    tsv=real/results/table1-quality.tsv
    for score in 1 2; do
        awk -v OFS='\t' -v x=$score '{ print 0, x, $1 }' keys >sc.tsv
        touch -d "2001-01-0$score" sc.tsv
        run -0 --separate-stderr "${table1[@]}"
        [ "$(rows precision_100)" = $score.0000 ]
    done
    ft-bench gen-grid -q -t 1 -k 100 -n 3 -o q.ftg x.ftx
    run -0 --separate-stderr "${table1[@]}"
    grep -q '^# grid .* 3 queries' "$tsv"
    grep -qx '# note reference: the oracle' "$tsv"
}

@test "a head names the seed, and another seed draws other grids from a library" {
    local table7=("$top/scripts/repro/table7-marisa-int" --quick --dir "$T/seed"
        --systems flashtrie-cpu)
    tsv=$T/seed/results/table7-marisa-int.tsv
    run -0 --separate-stderr "${table7[@]}" --keys 1K --seed 3
    grep -q '^# note seed 3 of libraries and grids;' "$tsv"
    keys_file "$T/lib.txt" 1
    for seed in 1 2; do
        run -0 --separate-stderr "${table7[@]}" --library "$T/lib.txt" --seed $seed
        grep -qx "# note seed $seed of grids; reference: the oracle" "$tsv"
        grep '^# grid' "$tsv" >"$T/grid.$seed"
    done
    [ "$(sed 's/.*digest//' "$T"/grid.[12] | sort -u | wc -l)" = 2 ]
}

@test "fig2-build-size: what was not installed is tried again once it is" {
    local all=("$top/scripts/repro/all" --quick --dir "$T/again" --scripts fig2-build-size
        --sizes 2K --threads 2 --layouts compact,marisa)
    tsv=$T/again/results/all.tsv
    mkdir "$T/bin"
    ln -s /usr/bin/* /bin/* "$T/bin" 2>/dev/null || true
    rm -f "$T"/bin/marisa*
    for _ in 1 2; do
        PATH=$T/bin run -0 --separate-stderr "${all[@]}"
        [ "$(rows status)" = ok ]
        grep -q 'unavailable: no marisa' "$T/again/results/fig2-build-size.tsv"
    done
    # No keys are made where nothing new is here.
    [[ $stderr != *"2000 keys, 2 threads"* ]]
    ln -s false "$T/bin/marisa-build"
    ln -s false "$T/bin/marisa-lookup"
    PATH=$T/bin run --separate-stderr "${all[@]}"
    [[ $stderr == *"2000 keys, 2 threads: marisa"* ]]
}
