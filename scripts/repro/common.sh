# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What the scripts of this folder share. A script sources this, names its options and the
# paper's figures, measures with ft-bench and shows both side by side:
#
#   option beams 100,1000 100 "B, and K with it"   # NAME, its default, that of --quick
#   begin "$@"                                     # from here on it is ${o[beams]}
#   need_grid 8 100 "${o[queries]}"                # $grid, and $index under it
#   measure latency RAW -b 100                     # rows of all systems, in raw/
#   gather beam=100                                # and from there into $tsv
#   paper=$'beam\tsystem\tmean_ms\n...'            # what the paper's text gives
#   show TITLE beam mean_ms p95_ms                 # "paper | here"
#   headline beam max mean_ms                      # what `all` has in its summary
#   plot NAME beam mean_ms
#
# Libraries, as indexes, and grids go into --dir; into its folder results/ what is small:
# what ft-bench wrote (raw/), and NAME.tsv, NAME.txt, NAME.main and NAME.png of a script.
# What is there is used again, so that a script that was interrupted goes on when it is
# run again; rows of other settings are refused by ft-bench, and another --dir is the way
# out. Names of libraries and grids say how they were made, and by which generators.
#
# No figure is of wrong results: ft-bench compares all of them with a reference, which up to
# --oracle-keys is what the oracle (tests/oracle) answers, else what engine cpu does.
set -euo pipefail -o noglob
export LC_ALL=C
name=$(basename "$0")
repro=$(dirname "$(realpath "$0")")
build=$(cd "$repro/../.." && realpath "${FT_BUILD:-build}")
oracle=$build/tests/oracle/ft-oracle

say() { echo "$name: $*" >&2; }
die() { say "$*"; exit 1; }
usage() { say "$* ($name --help says more)"; exit 2; }

declare -A o=() quick=() about=()
option_names=() given=()
is_quick= # this and given[] are for `all`
option() { # NAME DEFAULT QUICK TEXT; again to replace
    [[ -v o[$1] ]] || option_names+=("$1")
    o[$1]=$2 quick[$1]=$3 about[$1]=$4
}
# The options that name files, whose contents count as the names do.
file_options=(library grid targets scores)
no_option() { # NAME: no longer among those that --help and `all` see
    local n kept=()
    for n in "${option_names[@]}"; do
        [ "$n" = "$1" ] || kept+=("$n")
    done
    option_names=("${kept[@]}")
}
processors=$(nproc)
workers=$((processors < 8 ? processors : 8)) # the paper's 8, where there are as many
option dir "$build/repro" "$build/repro" "folder of libraries, grids and results"
option threads $workers $workers "of the host"
option seed 1 1 "of libraries and grids"
option stop-after "" "" "seconds; what is not measured then is said, and the status 75"

# For those that search a library of PRESET: --keys is for the paper's kind alone, so that
# `all` does not make as many titles.
library_options() { # PRESET DEFAULT_KEYS QUICK_KEYS
    preset=$1 size_option=keys
    [ "$1" = paper ] || size_option=$1
    option "$size_option" "$2" "$3" "keys of the library that is made: 300K, 10M, ..."
    option library "" "" "file of keys to take in its place"
    # A million keys take it 0.2 s, 40 to 60 MB, and 2 to 5 ms a query.
    option oracle-keys 10M 10M "keys of the largest library that the oracle is asked of"
    option queries 1000 4 "in a grid"
    option passes 10 1 "over the queries, after one that warms up"
    option time-limit 600 5 "seconds that a measurement, of one system, may take"
    option systems marisa-opt,paper,flashtrie-cuda,flashtrie-cpu \
        marisa-opt,paper,flashtrie-cuda,flashtrie-cpu "of those that ft-bench systems lists"
}

help() {
    sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$repro/$name" | grep -v '^shellcheck '
    local n
    printf '\n  --%-18s %s\n' quick "the small size, for a try"
    for n in "${option_names[@]}"; do
        printf '  --%-18s %s [%s]\n' "$n" "${about[$n]}" \
            "${o[$n]:-none}$([ "${quick[$n]}" = "${o[$n]}" ] || echo "; quick: ${quick[$n]}")"
    done
}

begin() { # the script's arguments
    local n arguments=("$@")
    case " $* " in
    *" --help "*) help; exit ;;
    *" --list-options "*) printf '%s\n' "${option_names[@]}"; exit ;;
    *" --quick "*)
        # shellcheck disable=SC2034
        is_quick=1
        for n in "${option_names[@]}"; do o[$n]=${quick[$n]}; done
        ;;
    esac
    while [ $# -gt 0 ]; do
        n=${1#--}
        if [ "$1" != --quick ]; then
            [[ $1 == --* && -v o[$n] ]] || usage "there is no option '$1'"
            [ $# -gt 1 ] || usage "$1 wants a value"
            o[$n]=$2
            given+=("$n")
            shift
        fi
        shift
    done
    for n in time-limit build-limit; do
        [[ ${o[$n]:-1} =~ ^[0-9]{1,9}([.][0-9]{1,9})?$ ]] || usage "--$n: '${o[$n]}' is no time"
    done
    for n in threads stop-after passes queries; do
        [[ ${o[$n]:-1} =~ ^[1-9][0-9]{0,8}$ ]] || usage "--$n: '${o[$n]}' is not a number"
    done
    for n in seed limit-ms; do
        [[ ${o[$n]:-0} =~ ^[0-9]{1,9}$ ]] || usage "--$n: '${o[$n]}' is not a number"
    done
    [ -n "${FT_REPRO_GROUP-}" ] || run_in_group "$repro/$name" "${arguments[@]}"
    prepare
}

# Does not return. The script begins once more, in a process group of its own with all that
# it starts, and those that `all` starts: a signal to one process goes to every one. Bash
# itself would not hear of it before the command that it waits for has ended.
run_in_group() { # COMMAND...
    local group status=0
    set -m
    FT_REPRO_GROUP=1 "$@" &
    group=$!
    trap 'kill -- -$group' HUP INT TERM
    trap 'kill -STOP -- -$group; kill -STOP $$; kill -CONT -- -$group' TSTP
    while kill -0 $group 2>/dev/null; do # a signal ends a wait, too
        status=0
        wait $group || status=$?
    done
    exit $status
}

prepare() {
    [ -x "$build/ft-bench" ] || die "there is no $build/ft-bench: make it first"
    PATH=$build:$PATH
    # With a / in front no command takes it for an option, nor awk for VARIABLE=VALUE.
    dir=$(realpath -m -- "${o[dir]}") || usage "--dir: '${o[dir]}' is no folder"
    results=$dir/results
    mkdir -p "$results/raw"
    clear_left_behind
    work=$dir/.work.$$
    mkdir "$work"
    trap finish EXIT
    trap 'wait; exit 130' INT TERM
    tsv=$results/$name.tsv txt=$results/$name.txt paper=
    : >"$work/head"
    rm -f "$results/$name.main" "$results/$name.ok"
    [ -n "${preset-}" ] || return 0
    [ -x "$oracle" ] || die "there is no $oracle: 'make O=$build $oracle' first"
    oracle_keys=$(number "${o[oracle-keys]}")
    n_keys=$(number "${o[$size_option]}")
    find_systems
    name_library
}

# What scripts that were killed could not take away, which may be large. In a container
# one may have had the number that this one has.
clear_left_behind() {
    local folder
    find "$dir" -maxdepth 1 -name '.work.*' | while read -r folder; do
        [ -e "/proc/${folder##*.}" ] && [ "${folder##*.}" != $$ ] || rm -rf "$folder"
    done
}

is_cut= # --stop-after was there before the last measurement
finish() {
    local status=$?
    rm -rf "$work"
    [ $status != 0 ] || [ -z "$is_cut" ] ||
        { say "not all is measured: run it again to go on"; exit 75; }
}
time_left() { # seconds; nothing where there is no limit; status 1 where none are left
    [ -n "${o[stop-after]}" ] || return 0
    local left=$((${o[stop-after]} - SECONDS)) # once: it passes meanwhile
    [ "$left" -gt 0 ] && echo "$left"
}
out_of_time() { ! time_left >/dev/null; }
until_stop() { # COMMAND...: 124 where it was ended
    local left status=0
    left=$(time_left) || return 124
    # A process with a search under way on a GPU may not listen.
    [ -z "$left" ] || set -- timeout --foreground --kill-after=5 "$left" "$@"
    "$@" || status=$?
    [ $status != 137 ] || status=124
    return $status
}

number() { # 10M, 300K or plain
    [[ $1 =~ ^([1-9][0-9]{0,8})([KMG]?)$ ]] || usage "'$1' is not a number of keys"
    local unit=1
    case ${BASH_REMATCH[2]} in
    K) unit=1000 ;;
    M) unit=1000000 ;;
    G) unit=1000000000 ;;
    esac
    echo $((10#${BASH_REMATCH[1]} * unit))
}

hardware() {
    printf '%s, %d cores, %s; ' \
        "$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)" "$processors" \
        "$(awk '/^MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo)"
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>"$work/log" |
        head -n 1 | grep . || echo "no CUDA device"
}

# Some bytes of what the generators make: another stamp, other libraries and grids. The
# index is in it, so that a new form of it counts as well.
stamp() {
    local sample=$work/stamp.ftx
    [ -e "$sample" ] || ft-bench gen-keys -q -n 1000 | ft-build -q -o "$sample" ||
        die "cannot make a library of 1000 keys"
    ft-bench gen-grid -q -n 1 -k 10 "$sample" | cat "$sample" - | cksum | cut -d ' ' -f 1
}

# FILE as it is now: its size and the time of its last change.
as_it_is() { stat -L -c %s-%Y -- "$1"; }

# The name under which a library's files are kept, and $drawn, that of what is drawn from
# it and measured. $shape has options of gen-keys.
shape=()
name_library() {
    local words="${shape[*]}"
    library=$preset-$n_keys${words:+-}${words//[^a-z0-9.]/}-s${o[seed]}
    [ -z "${o[library]}" ] ||
        library=$(basename -- "${o[library]}")-$(as_it_is "${o[library]}")
    library+=-$(stamp)
    drawn=$library
    [ -z "${o[library]}" ] || drawn+=-s${o[seed]}
}
index_of() { echo "$dir/$library.$1.ftx"; } # LAYOUT
generate() { # PRESET KEYS [OPTION...] of gen-keys; 124 where it was ended
    until_stop ft-bench gen-keys -q -p "$1" -n "$2" -s "${o[seed]}" -f binary "${@:3}"
}

# The library in all layouts that are needed, made where they are not there and there is
# time: side by side, from one run of the generator, whose keys go through pipes and are
# nowhere on the disk. If it ends early, so does this, before an index has its name.
need_indexes() {
    local layout pid from threads status=0 missing=() pipes=() pids=()
    [ ${#here[@]} -gt 0 ] && ! out_of_time || return 0
    for layout in $(printf '%s\n' compact "${layout_of[@]}" | sort -u); do
        [ -e "$(index_of "$layout")" ] || missing+=("$layout")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    say "building $library: ${missing[*]}"
    threads=$((processors / ${#missing[@]}))
    for layout in "${missing[@]}"; do
        from=${o[library]}
        if [ -z "$from" ]; then
            from=$work/keys.$layout
            mkfifo "$from"
            pipes+=("$from")
        fi
        until_stop ft-build -q -j $((threads ? threads : 1)) --layout "$layout" \
            -o "$work/$layout.ftx" <"$from" &
        pids+=($!)
    done
    [ -n "${o[library]}" ] ||
        generate "$preset" "$n_keys" "${shape[@]}" | tee "${pipes[@]}" >/dev/null || status=1
    for pid in "${pids[@]}"; do
        wait "$pid" || status=1
    done
    for layout in "${missing[@]}"; do
        rm -f "$work/keys.$layout"
        [ $status != 0 ] || mv "$work/$layout.ftx" "$(index_of "$layout")"
    done
    [ $status = 0 ] || out_of_time || die "could not build $library"
}

# A grid drawn from the library into $grid, made where it is not there and is wanted.
need_grid() { # T K QUERIES [OPTION...] of gen-grid
    local words="${*:4}"
    grid=$dir/$drawn.T$1.K$2.n$3${words:+.}${words//[^a-z0-9.]/}.ftg
    [ ! -e "$grid" ] && [ ${#here[@]} -gt 0 ] && ! out_of_time || return 0
    need_indexes
    [ -e "$(index_of compact)" ] || return 0
    say "drawing $grid"
    until_stop ft-bench gen-grid -q -t "$1" -k "$2" -n "$3" -s "${o[seed]}" "${@:4}" \
        -o "$grid" "$(index_of compact)" || out_of_time || die "could not draw $grid"
}

# Grids of these K, side by side: to draw one takes a thread.
draw_grids() { # T K,... [OPTION...] of gen-grid
    local k
    need_indexes
    for k in $(tr , '\n' <<<"$2" | sort -u); do
        need_grid "$1" "$k" "${o[queries]}" "${@:3}" &
    done
    wait
}

# Of the systems asked for, those that run here, into here[]; why_not[SYSTEM] says why
# another does not.
find_systems() {
    local system layout status
    here=()
    declare -gA why_not=() layout_of=()
    [ -e "$work/systems" ] || ft-bench systems -q -f tsv >"$work/systems" ||
        die "ft-bench systems failed"
    for system in ${o[systems]//,/ }; do
        IFS=$'\t' read -r layout status < <(awk -F '\t' -v OFS='\t' -v s="$system" \
            '$1 == s { sub(/\|.*/, "", $3); print $3, $5 }' "$work/systems") ||
            usage "no system is called '$system': ft-bench systems lists them"
        if [ "$status" = ok ]; then
            here+=("$system")
            layout_of[$system]=$layout
        else
            why_not[$system]="not measured here: ${status#unavailable: }"
        fi
    done
}

# Those that are worth a try at a SIZE: where no query came back in time at a smaller one,
# none would, and a row says so, as the paper has it of MARISA-Int (Appendix H).
declare -A too_slow=() # SIZE STATUS
choose_systems() { # SIZE
    local system size status rest=()
    find_systems
    for system in "${here[@]}"; do
        read -r size status <<<"${too_slow[$system]-}"
        if [ -n "$size" ] && [ "$1" -gt "$size" ]; then
            why_not[$system]="not measured here: at $size it was $status"
        else
            rest+=("$system")
        fi
    done
    here=("${rest[@]}")
}
note_slow() { # SIZE, of what has been gathered last
    local system status
    while IFS=$'\t' read -r system status; do
        too_slow[$system]=${too_slow[$system]:-"$1 $status"}
    done < <(awk -F '\t' -v OFS='\t' '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["status"] ~ /^0 of / { print $at["system"], $at["status"] }' "${parts[-1]}")
}

# Does the oracle read this file? It knows neither zstd nor indexes.
is_plain() { # KEYS_OR_GRID
    [[ $(head -c 8 -- "$1" | tr -d '\0') =~ ^(FTKEYS1|FTGRID1|[0-9[:space:]]) ]]
}

# Whose results all others have to be, into $reference: the oracle's, or engine cpu's, with
# the reason.
choose_reference() {
    local file n=$n_keys other="engine cpu, not the oracle"
    reference="the oracle"
    if [ -n "${o[library]}" ]; then
        ft-bench size -q -f tsv "$(index_of compact)" >"$work/size" ||
            die "ft-bench size failed"
        # shellcheck disable=SC2016
        n=$(reshape '{ print $at["keys"] }' <"$work/size" | grep -v '^#')
    fi
    [ "$n" -le "$oracle_keys" ] ||
        reference="$other: of $n keys, more than --oracle-keys $oracle_keys"
    for file in "$grid" "${o[library]:-$grid}"; do
        is_plain "$file" || reference="$other, which does not read $file"
    done
}

# What the oracle answers to $grid, kept in $dir, is what ft-bench is to expect. With several
# beams at once it takes no such file: there engine cpu, its reference then, has to give the
# same first. Status 1 where there is no time.
ask_oracle() { # NAME [OPTION...] of measure
    local measured=$1 beam beams='' keys=${o[library]:-$work/$library.ftk} search=() answers
    expect=()
    choose_reference
    [ "$reference" = "the oracle" ] || return 0
    while [ $# -gt 1 ]; do
        shift
        case $1 in
        -b | --beams) beams=${2//,/ } ;;
        -n) search+=(-n "$2") ;;
        --*-threshold=*) search+=("$1") ;;
        esac
    done
    [ -n "$beams" ] || die "$measured: no beam is named" # a mistake of the script
    for beam in $beams; do
        answers="$(cksum <"$oracle") $library $grid $(as_it_is "$grid") $beam ${search[*]}"
        answers=$dir/$(basename -- "$grid").oracle-$(cksum <<<"$answers" | cut -d ' ' -f 1)
        if [ ! -e "$answers" ]; then
            say "the oracle answers: $measured, beam $beam"
            [ -e "$keys" ] || generate "$preset" "$n_keys" "${shape[@]}" -o "$keys" &&
                until_stop "$oracle" -b "$beam" "${search[@]}" "$keys" "$grid" \
                    >"$work/answers" ||
                { out_of_time && return 1; die "the oracle did not answer"; }
            mv "$work/answers" "$answers"
        fi
        expect=(--expect "$answers")
        [ "$beam" = "$beams" ] && break
        expect=()
        until_stop ft-search -q -e cpu -j "${o[threads]}" -b "$beam" "${search[@]}" \
            "$(index_of "${layout_of[${here[0]}]}")" "$grid" | cmp -s - "$answers" ||
            { out_of_time && return 1; wrong "engine cpu, beam $beam, $grid"; }
    done
}

# Ends the script, and takes away what there is of its figures.
wrong() { # WHERE
    rm -f "$results/$name".{tsv,summary.tsv,txt,png}
    die "$*: results are not those of the reference, $reference"
}

# Rows of `ft-bench COMMAND` over $grid and all systems that run here, into $raw, which
# is gone on with where it is there.
measure() { # COMMAND NAME [OPTION...], a beam or several among them
    local system status before reference expect operands=() timing=() made=(--note)
    raw=$results/raw/$2.$drawn.tsv
    unmeasured=("${here[@]}")
    need_indexes
    if [ ${#here[@]} -gt 0 ] && [ -e "$grid" ] && ! out_of_time && ask_oracle "${@:2}" &&
        ! out_of_time; then
        for system in "${here[@]}"; do
            operands+=("$system=$(index_of "${layout_of[$system]}")")
        done
        say "ft-bench $1: $2"
        # Where nothing is timed, there is no limit of time.
        [ "$1" = quality ] || timing=(--time-limit "${o[time-limit]}")
        if [ -z "${o[library]}" ]; then
            made+=("seed ${o[seed]} of libraries and grids")
        elif [ -z "${o[grid]-}" ]; then
            made+=("seed ${o[seed]} of grids")
        else
            made=() # nothing is
        fi
        while # again where it has given up a search, and has a row that says so
            before=$(given_up) status=0
            until_stop ft-bench "$1" -q -f tsv -o "$raw" --resume -j "${o[threads]}" \
                "${timing[@]}" "${made[@]}" --note "reference: $reference" "${expect[@]}" \
                "${@:3}" "$grid" "${operands[@]}" || status=$?
            [ $status = 1 ] && [ "$(given_up)" -gt "$before" ]
        do :; done
        case $status in
        0) unmeasured=() ;;
        124) [ "0$(grep -svc '^#' "$raw")" -gt 1 ] || rm -f "$raw" ;; # a head alone
        *)
            ! grep -qsE $'\tfailed: .*(wrong results|results differ)' "$raw" ||
                wrong "rows of $raw say of which systems"
            die "ft-bench $1 failed, and $raw has what was measured: if that is of" \
                "another run, remove it or take another --dir"
            ;;
        esac
    fi
    [ -e "$raw" ] || { raw=$work/none && printf 'system\tstatus\n' >"$raw"; }
}

given_up() { if [ -e "$raw" ]; then grep -c ', given up$' "$raw" || true; else echo 0; fi; }

# The rows of $raw into $tsv, and one for each system that does not run here or whose turn
# did not come. What ft-bench has no column for becomes one, in front.
parts=()
gather() { # COLUMN=VALUE...
    local system part=$work/part.${#parts[@]}
    {
        for system in "${!why_not[@]}"; do
            printf '%s\t%s\n' "$system" "${why_not[$system]}"
        done | sort
        for system in "${unmeasured[@]}"; do
            printf '%s\t%s\n' "$system" "not all measured in ${o[stop-after]} s"
            is_cut=1
        done
    } >"$work/missing"
    awk -F '\t' -v OFS='\t' -v pairs="$*" -v systems="${o[systems]}" \
        -f "$repro/gather.awk" "$raw" "$work/missing" >"$part"
    parts+=("$part")
    grep '^#' "$raw" >>"$work/head" || true
    {
        awk '!seen[$0]++' "$work/head"
        awk -f "$repro/join.awk" "${parts[@]}" "${parts[@]}"
    } >"$tsv"
}

# A column more in $tsv: how many times the row's METRIC is that of BASE at the same KEY,
# or, with "inverse" behind, the other way round.
times() { # KEY METRIC BASE COLUMN [inverse]
    awk -F '\t' -v OFS='\t' -v k="$1" -v m="$2" -v base="$3" -v column="$4" -v inverse="${5-}" '
        /^#/ { if (FNR != NR) print; next }
        /(^|\t)system(\t|$)/ {
            for (i = 1; i <= NF; i++) at[$i] = i
            if (FNR != NR) print $0, column
            next
        }
        FNR == NR { if ($at["system"] == base && m in at) of[$at[k]] = $at[m]; next }
        {
            x = m in at ? $at[m] + 0 : 0; y = of[$at[k]] + 0
            print $0, (x && y) ? sprintf("%.2f", inverse ? y / x : x / y) : "-"
        }' "$tsv" "$tsv" >"$work/times"
    mv "$work/times" "$tsv"
}

# $tsv beside $paper, which has columns of the same names and the paper's systems. Printed,
# and kept in $txt.
show() { # TITLE KEY[,KEY] METRIC...
    if [ ! -e "$work/shown" ]; then
        printf 'here:  %s\npaper: NVIDIA A100 80 GB, AMD EPYC 7V13, 8 workers\n' \
            "$(hardware)" | tee "$txt"
        sed -n 's/^# note .*\(reference: \)/\1/p' "$work/head" | sort -u | tee -a "$txt"
        : >"$work/shown"
    fi
    {
        printf '\n%s\n\n' "$1"
        printf '%s\n' "$paper" >"$work/paper"
        awk -F '\t' -v keys="$2" -v metrics="${*:3}" -f "$repro/side-by-side.awk" \
            "$work/paper" "$tsv"
    } | tee -a "$txt"
}

# What the rows of $tsv and $paper whose COLUMN is VALUE (max: the largest there is; "": all
# rows) say, for the summary that `all` gives.
headline() { # COLUMN VALUE METRIC...
    local value=$2
    [ "$value" != max ] || value=$(awk -F '\t' -v c="$1" '
        /^#/ { next }
        !at { for (i = 1; i <= NF; i++) if ($i == c) at = i; next }
        $at + 0 > most { most = $at + 0 }
        END { print most }' "$tsv")
    printf '%s\n' "$paper" | only "$1" "$value" >"$work/paper"
    only "$1" "$value" <"$tsv" >"$work/here"
    awk -F '\t' -v keys="$1" -v metrics="${*:3}" -f "$repro/side-by-side.awk" \
        "$work/paper" "$work/here" >"$results/$name.main"
}
only() { # COLUMN VALUE
    awk -F '\t' -v c="$1" -v v="$2" '
        /^#/ { next }
        !head { head = 1; for (i = 1; i <= NF; i++) at[$i] = i; print; next }
        !(c in at) || $at[c] == v'
}
note() { printf '\n%s\n' "$*" | fold -s -w 92 | tee -a "$txt"; }

# What PROGRAM, of awk, makes of rows; at[] has the numbers of the columns.
reshape() { # PROGRAM
    awk -F '\t' -v OFS='\t' '
        /^#/ { print; next }
        !n_columns { n_columns = NF; for (i = 1; i <= NF; i++) at[$i] = i; next }
        '"$1"
}
# The same of $tsv, which is the outcome from here on.
summarise() { # PROGRAM
    local summary=$results/$name.summary.tsv
    reshape "$1" <"$tsv" >"$summary"
    tsv=$summary
}

# METRIC against KEY, a line a system, and the paper's figures as points, into
# results/NAME.png and the terminal.
plot() { # NAME KEY METRIC [COMMANDS of gnuplot]
    local i=0 file system style clauses=
    command -v gnuplot >"$work/log" ||
        { say "no gnuplot here, so no plot: scripts/setup figures installs it"; return 0; }
    printf '%s\n' "$paper" >"$work/paper"
    for file in "$tsv" "$work/paper"; do
        while read -r system; do
            i=$((i + 1))
            points "$system" "$2" "$3" "$file" >"$work/points.$i"
            [ -s "$work/points.$i" ] || continue
            style="linespoints title '$system'"
            [ "$file" = "$tsv" ] || style="points pointsize 2 title 'paper: $system'"
            clauses+="${clauses:+, }'points.$i' with $style"
        done < <(awk -F '\t' '/^#/ { next }
            !at { for (i = 1; i <= NF; i++) if ($i == "system") at = i; next }
            !seen[$at]++ { print $at }' "$file")
    done
    [ -n "$clauses" ] || { say "nothing is there to plot"; return 0; }
    # In its folder: names in a program for gnuplot have no quotes in them then.
    (cd "$work" && exec gnuplot) <<GNUPLOT || die "gnuplot failed"
set xlabel '$2' noenhanced
set ylabel '$3' noenhanced
set key outside right noenhanced
${4-set yrange [0:*]}
set terminal dumb size 100, 24 noenhanced
plot $clauses
set terminal png size 900, 540 noenhanced
set output 'plot.png'
plot $clauses
GNUPLOT
    mv "$work/plot.png" "$results/$1.png"
}

points() { # SYSTEM KEY METRIC FILE
    awk -F '\t' -v s="$1" -v x="$2" -v y="$3" '
        /^#/ { next }
        !head { head = 1; for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["system"] == s && y in at && $at[y] ~ /^[0-9.]+$/ { print $at[x], $at[y] }
    ' "$4" | sort -g
}

# `ft-bench COMMAND` at each of the beams, with K = B, and its rows into $tsv. $kind has
# options of gen-grid.
kind=()
sweep() { # COMMAND NAME T [OPTION...]
    local beam
    draw_grids "$3" "${o[beams]}" "${kind[@]}"
    for beam in ${o[beams]//,/ }; do
        choose_systems "$beam"
        need_grid "$3" "$beam" "${o[queries]}" "${kind[@]}"
        measure "$1" "$2.K$beam" -b "$beam" "${@:4}"
        gather "beam=$beam"
        note_slow "$beam"
    done
}

# Tables 9 and 10: B = K = 600, T = 16, over the head r.
noise_sweep() { # NAME
    local r
    need_indexes
    for r in ${o[heads]//,/ }; do
        need_grid 16 600 "${o[queries]}" --head "$r" &
    done
    wait
    for r in ${o[heads]//,/ }; do
        need_grid 16 600 "${o[queries]}" --head "$r"
        measure latency "noise.$1.r$r" -b 600 --passes "${o[passes]}" \
            "--token-threshold=${o[token-threshold]}" \
            "--sentence-threshold=${o[sentence-threshold]}"
        gather "r=$r" beam=600
    done
    times r mean_ms marisa-opt mean_faster inverse
}
