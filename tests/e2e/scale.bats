#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Libraries of many keys. A build with sanitizers takes fewer: it is ten times as slow.
bats_require_minimum_version 1.5.0
load helper

setup() {
    many=10000000 some=300000 sizes=(--quick)
    if sanitized; then
        many=500000 some=30000 sizes=(--sizes "20K,30K")
    fi
}

@test "round trip of 10 million keys (fewer with sanitizers)" {
    ft-bench gen-keys -n $many -f binary | ft-build -q -o "$T/x.ftx"
    ft-inspect dump --binary "$T/x.ftx" |
        cmp - <(ft-bench gen-keys -n $many -f binary)
    [ "$(ft-inspect stats "$T/x.ftx" | awk '$1 == "keys" { print $2 }')" = $many ]
}

@test "peak memory is at most 1.5 times the index and a fixed buffer" {
    ! sanitized || skip "sanitizers take memory"
    peak=$(dirname "$(command -v ft-build)")/tests/oracle/ft-peak
    [ -x "$peak" ]
    for layout in $layouts; do
        ft-bench gen-keys -n $many -f binary |
            "$peak" "$T/peak" ft-build -q -j 2 --layout $layout -o "$T/x.ftx"
        [ $(($(<"$T/peak") * 2)) -le $(($(stat -c %s "$T/x.ftx") * 3 + (128 << 20))) ] ||
            { echo "$layout: $(<"$T/peak")"; false; }
    done
}

@test "every layout gives the same keys and the same results" {
    for preset in paper titles; do
        ft-bench gen-keys -p $preset -n $some -f binary -o "$T/keys"
        for layout in $layouts; do
            ft-build -q --ids --layout $layout -o "$T/$layout.ftx" "$T/keys"
            ft-inspect dump --binary "$T/$layout.ftx" | cmp - "$T/keys"
        done
        first=${layouts%% *}
        for grid in full model noise; do
            ft-bench gen-grid -q -p $grid -n 12 -k 100 -o "$T/grid" "$T/$first.ftx"
            for layout in $layouts; do
                ft-search -q -e cpu -a 0.7 -o "$T/$layout.results" "$T/$layout.ftx" "$T/grid"
                ft-search -q -e cpu -b 10 -f tsv -o "$T/$layout.tsv" "$T/$layout.ftx" "$T/grid"
                cmp "$T/$layout.results" "$T/$first.results"
                cmp "$T/$layout.tsv" "$T/$first.tsv"
            done
            [ "$(wc -c <"$T/$first.results")" -gt 96 ]
        done
    done
}

@test "every layout answers lookup, children and predict alike" {
    ft-bench gen-keys -p titles -n $some -o "$T/keys"
    head -n 3000 "$T/keys" | sed 's/$/ 1/' >"$T/asked"
    awk 'NR % 50 == 0' "$T/keys" >>"$T/asked"
    for layout in $layouts; do
        ft-build -q --ids --layout $layout -o "$T/x.ftx" "$T/keys"
        {
            ft-inspect lookup "$T/x.ftx" "$T/asked"
            for key in $(awk 'NR % 20000 == 1 { print $1 }' "$T/keys"); do
                ft-inspect children "$T/x.ftx" "$key"
                ft-inspect predict --limit 100 "$T/x.ftx" "$key"
            done
            ft-inspect stats "$T/x.ftx" | sed -n '/^level/,$p'
        } >"$T/$layout.answers"
        cmp "$T/$layout.answers" "$T/${layouts%% *}.answers"
    done
    [ "$(wc -l <"$T/$layout.answers")" -gt 3000 ]
}

# Entropies counted by awk over all prefixes of the text of the library.
@test "stats: the entropy is that of the keys" {
    awk '
        function bits(n, p) { return n * log(n ? p / n : 1) / log(2) }
        {
            prefix = ""
            for (i = 1; i <= NF; i++) {
                if (!((prefix " " $i) in node)) {
                    node[prefix " " $i] = i
                    degree[prefix]++
                    label[i, $i]++
                    level[i]++
                }
                prefix = prefix " " $i
            }
            ends[prefix] = 1
        }
        END {
            node[""] = 0
            level[0] = 1
            for (p in node) { n++; count[node[p], degree[p] + 0]++ }
            for (l in label) { split(l, x, SUBSEP); a += bits(label[l], level[x[1]]) }
            for (c in count) { split(c, x, SUBSEP); b += bits(count[c], level[x[1]]) }
            for (p in degree) if (degree[p]) {
                inner++
                inner_ends += p in ends
                for (i = 2; i <= degree[p]; i++) {
                    order += log(i) / log(2)
                    if (p != "" && degree[p] >= 128) hubs += log(i) / log(2)
                }
            }
            b += bits(inner_ends, inner) + bits(inner - inner_ends, inner)
            printf "%.3f %.3f %.3f %.3f", a / n, b / n, (a + b) / n, order / n
            printf " %.3f\n", hubs / n
        }' "$D/small.o200k.txt" >"$T/expected"
    for layout in $layouts; do
        ft-build -q --layout $layout -o "$T/x.ftx" "$D/small.o200k.txt"
        ft-inspect stats "$T/x.ftx" | awk -v bytes="$(stat -c %s "$T/x.ftx")" '
            $1 == "bits/node" && $2 == "entropy" { inside = 1; next }
            !inside || NF == 0 { inside = 0; next }
            $1 == "labels" { line = $2 }
            $1 == "degrees," { line = line " " $3 }
            $1 == "all" { line = line " " $2; all = $3 }
            $1 == "sibling" || $1 == "-" { line = line " " $NF; next }
            $1 != "all" { sum += $(NF - 1) }
            END {
                print line
                exit !(sum - all < 0.003 && all - sum < 0.003 &&
                    all * 17190 / 8 - bytes < 2 && bytes - all * 17190 / 8 < 2)
            }' >"$T/said"
        diff "$T/expected" "$T/said"
    done
}

@test "fig2-build-size measures, goes on where it was, and refuses rows of another run" {
    fig2() { "$top/scripts/repro/fig2-build-size" --dir "$T/fig2" "$@"; }
    tsv=$T/fig2/results/fig2-build-size.tsv
    run -0 --separate-stderr fig2 "${sizes[@]}"
    for layout in $layouts; do
        [ "$(awk -F '\t' -v l=$layout '$2 == l && $NF == "ok" && $5 > 0 && $7 > 10 {
            keys[$1] } END { print length(keys) }' "$tsv")" = 2 ]
    done
    [[ $(<"${tsv%.tsv}.txt") == *compact* ]]
    cp "$tsv" "$T/before"
    run -0 --separate-stderr fig2 "${sizes[@]}"
    cmp "$T/before" "$tsv"
    run -0 --separate-stderr fig2 --sizes 10K --layouts compact
    [ "$(grep -c '^10000.compact' "$tsv")" = 1 ]
    sed -i 's/^# build .*/# build another/' "$T/fig2/results/raw/build.10000-s1.tsv"
    run -1 --separate-stderr fig2 --sizes 10K --layouts narrow
    [[ $stderr == *"is of another run"* ]]
    run -2 --separate-stderr fig2 --sizes ten
    [[ $stderr == *"'ten' is not a number of keys"* ]]
    [ -z "$(find "$T/fig2" -name '.work*')" ]
}

@test "bench-cpu measures made-up libraries to the end" {
    KEYS=20000 RUNS=1 QUERIES=2 run -0 --separate-stderr "$top/scripts/bench-cpu"
    [[ $output == *marisa-opt*wide* ]]
    [[ $output != *DIFFERENT* ]]
    [ "$(grep -c equal <<<"$output")" = $((2 * $(wc -w <<<"$layouts"))) ]
}
