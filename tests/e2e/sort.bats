#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ft-build --sort: keys in any order, bounded memory, and nothing left behind.
bats_require_minimum_version 1.5.0
load helper

setup() {
    set -o pipefail
    [ -n "$layouts" ]
    oracle=$(dirname "$(command -v ft-build)")/tests/oracle
    mkdir "$T/tmp"
}

# build OPTION...: ft-build -q --sort -o $T/x.ftx, temporary files in $T/tmp.
build() {
    ft-build -q --sort --tmpdir "$T/tmp" -o "$T/x.ftx" "$@"
}

# fails MESSAGE COMMAND...: exit 1, the message in one line, nothing on standard output.
fails() {
    run -1 --separate-stderr "${@:2}"
    [ -z "$output" ]
    [[ $stderr == "ft-build: "*"$1"* ]] || { echo "$stderr"; false; }
    [ "${#stderr_lines[@]}" = 1 ]
    [ ! -e "$T/x.ftx" ]
}

# scattered N: the same N different keys each time, in no order; about half of them are
# prefixes of others.
scattered() {
    awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) {
        j = i * 7919 % n
        print int(j / 1000), int(j / 10) % 100 (j % 10 ? " " j % 10 * 100000 : "") } }'
}

# in_order: what --sort makes of text, by other means.
in_order() {
    sort -u -V
}

@test "an index is the same from any order, in every layout and form" {
    zstd -dcq "$D/medium.o200k.txt.zst" > "$T/sorted"
    shuf "$T/sorted" > "$T/any"
    run -1 cmp -s "$T/sorted" "$T/any"
    split -n r/3 "$T/any" "$T/part."
    zstd -q "$T/part.aa"
    for layout in $layouts; do
        ft-build -q --ids --layout "$layout" -o "$T/want.ftx" "$T/sorted"
        for memory in 1M 1G; do
            build --ids --layout "$layout" --memory $memory "$T/any"
            cmp "$T/x.ftx" "$T/want.ftx"
            build --ids --layout "$layout" --memory $memory < "$T/any"
            cmp "$T/x.ftx" "$T/want.ftx"
            in_order < "$T/part.ab" | ft-build -q --layout "$layout" -o "$T/part.ftx"
            build --ids --layout "$layout" --memory $memory \
                "$T/part.ac" "$T/part.ftx" "$T/part.aa.zst"
            cmp "$T/x.ftx" "$T/want.ftx"
        done
    done
}

@test "binary keys in any order" {
    for n in 1 2; do # two pieces, in order each, together not
        ft-bench gen-keys -n 20000 -s $n -f binary -o "$T/$n.bin"
        ft-bench gen-keys -n 20000 -s $n -o "$T/$n.txt"
    done
    { cat "$T/2.bin"; tail -c +17 "$T/1.bin"; } > "$T/any"
    fails "record 20000: key out of order" ft-build -o "$T/x.ftx" "$T/any"
    [[ $stderr == *"--sort"* ]]
    cat "$T/1.txt" "$T/2.txt" | in_order | ft-build -q -o "$T/want.ftx"
    build --memory 1M "$T/any"
    cmp "$T/x.ftx" "$T/want.ftx"
}

@test "ascending and descending input, in memory, in runs, in merges of runs" {
    scattered 300000 > "$T/any"
    in_order < "$T/any" > "$T/sorted"
    tac "$T/sorted" > "$T/descending"
    ft-build -q -o "$T/want.ftx" "$T/sorted"
    for memory in 1M 4M 64M; do
        for keys in any sorted descending; do
            build --memory $memory "$T/$keys"
            cmp "$T/x.ftx" "$T/want.ftx"
        done
    done
}

@test "duplicates, empty lines and subtracted keys are counted as without --sort" {
    scattered 50000 > "$T/any"
    { cat "$T/any"; head -n 1000 "$T/any"; printf '\n \n'; } > "$T/twice"
    shuf -n 500 "$T/any" > "$T/gone"
    echo 4294967294 >> "$T/gone" # is not there
    grep -v '^[ ]*$' "$T/twice" | sort -V > "$T/sorted"
    printf '\n\n' >> "$T/sorted"
    in_order < "$T/gone" > "$T/gone.sorted"
    run -0 --separate-stderr ft-build -o "$T/want.ftx" "$T/sorted" \
        --subtract "$T/gone.sorted"
    counts=${stderr#*nodes}
    counts=${counts%, *}
    [[ $counts == *" 2 empty lines skipped, 1000 duplicates, 500 subtracted" ]]
    for memory in 2M 1G; do
        run -0 --separate-stderr ft-build --sort --memory $memory -o "$T/x.ftx" \
            "$T/twice" --subtract "$T/gone"
        cmp "$T/x.ftx" "$T/want.ftx"
        [[ $stderr == *"$counts"* ]] || { echo "$stderr"; false; }
    done
    # Both sides spill.
    build --memory 2M "$T/twice" --subtract "$T/any"
    [ -z "$(ft-inspect dump "$T/x.ftx")" ]
}

@test "no keys at all" {
    run -0 --separate-stderr build <<< ''
    [[ $stderr == "ft-build: warning: no keys: the library is empty" ]]
    ft-build -q -o "$T/want.ftx" < /dev/null
    cmp "$T/x.ftx" "$T/want.ftx"
}

@test "the longest keys fit in the least memory" {
    for i in 5 3 9 1 7 3; do
        seq -s ' ' "$i" $((i + 65534))
    done > "$T/any"
    build --memory 1M "$T/any"
    ft-inspect dump "$T/x.ftx" | cut -d ' ' -f 1 | cmp - <(printf '%s\n' 1 3 5 7 9)
    seq -s ' ' 65536 >> "$T/any"
    rm "$T/x.ftx"
    fails "line 7, column" build --memory 1M "$T/any"
}

@test "less memory than any key needs is refused" {
    run -2 --separate-stderr ft-build --sort --memory 1023K < /dev/null
    [[ $stderr == *"--memory"* ]]
    echo 1 > "$T/keys"
    fails "at least 2097152, since keys to subtract are sorted too" \
        build --memory 1M "$T/keys" --subtract "$T/keys"
    build --memory 2M "$T/keys" --subtract "$T/keys"
}

@test "unsorted keys without --sort name it as the way out" {
    fails "line 2: key out of order: '9' after '10'" ft-build -o "$T/x.ftx" \
        <<< $'10\n9'
    [[ $stderr == *"--sort"*"sort -u -V"* ]]
    build <<< $'10\n9'
    [ "$(ft-inspect dump "$T/x.ftx")" = $'9\n10' ]
    rm "$T/x.ftx"
    fails "(standard input): line 3, column 3" build <<< $'10\n9\n8 x'
}

@test "inputs that are not there are found before the others are read" {
    mkfifo "$T/open"
    fails "$T/none: cannot open: No such file or directory" \
        timeout 60 ft-build --sort -o "$T/x.ftx" - "$T/none" <> "$T/open"
}

@test "the folder of temporary files must be one" {
    echo 1 > "$T/keys"
    fails "$T/keys: folder for temporary files: Not a directory" \
        build --tmpdir "$T/keys" "$T/keys"
    fails "$T/none: folder for temporary files: No such file" \
        build --tmpdir "$T/none" "$T/keys"
    TMPDIR=$T/none fails "$T/none: folder for temporary files" \
        ft-build --sort -o "$T/x.ftx" "$T/keys"
    TMPDIR=$T/none build "$T/keys" # --tmpdir comes first
    # It governs the copy of an index that goes to a pipe as well.
    TMPDIR=$T/none ft-build -q --tmpdir "$T/tmp" "$T/keys" | cmp - "$T/x.ftx"
    rm "$T/x.ftx"
    TMPDIR=$T/none fails "$T/none/" bash -o pipefail -c 'ft-build -q "$1" | cat' - \
        "$T/keys"
}

@test "what fits makes no file; what does not leaves none behind, also when killed" {
    scattered 100000 > "$T/any"
    for memory in 64M 1M; do
        mkfifo "$T/$memory"
        ft-build -q --sort --memory $memory --tmpdir "$T/tmp" -o "$T/x.ftx" \
            < "$T/$memory" &
        pid=$!
        exec 5> "$T/$memory"
        cat "$T/any" >&5 # and it waits for more
        spilled=
        for ((i = 0; i < 100; i++)); do
            spilled=$(find "/proc/$pid/fd" -lname "$T/tmp/*" -printf '%l\n')
            [ -z "$spilled" ] || break
            [ $memory = 1M ] || [ $i -lt 10 ] || break
            sleep 0.1
        done
        if [ $memory = 64M ]; then [ -z "$spilled" ]; else [ -n "$spilled" ]; fi
        [ -z "$(ls -A "$T/tmp")" ]
        kill -9 $pid
        wait $pid || true
        exec 5>&-
        [ -z "$(ls -A "$T/tmp")" ]
        rm -f "$T"/.x.ftx.*.tmp # the index that was begun
    done
}

@test "a full disk is an error that names the folder and the way out" {
    scattered 300000 > "$T/any"
    full() { # limits the size of files
        ulimit -f 64
        build --memory 1M "$T/any"
    }
    fails "$T/tmp: cannot write the temporary file" full
    [[ $stderr == *"--tmpdir"*"--memory"*"File too large" ]]
    [ -z "$(ls -A "$T/tmp")" ]
}

@test "a full file system" {
    if ! unshare -m mount -t tmpfs -o size=64k none "$T/tmp" 2> /dev/null; then
        skip "no file system can be mounted here"
    fi
    scattered 300000 > "$T/any"
    fails "$T/tmp: cannot write the temporary file" unshare -m bash -c '
        mount -t tmpfs -o size=64k none "$1/tmp" &&
        ft-build --sort --memory 1M --tmpdir "$1/tmp" -o "$1/x.ftx" "$1/any"' - "$T"
    [[ $stderr == *"No space left on device" ]]
}

@test "a file system that is read-only" {
    if ! unshare -m mount -t tmpfs -o ro none "$T/tmp" 2> /dev/null; then
        skip "no file system can be mounted here"
    fi
    scattered 100000 > "$T/any"
    fails "$T/tmp: cannot create a temporary file" unshare -m bash -c '
        mount -t tmpfs -o ro none "$1/tmp" &&
        ft-build --sort --memory 1M --tmpdir "$1/tmp" -o "$1/x.ftx" "$1/any"' - "$T"
    [[ $stderr == *"--tmpdir"*"Read-only file system" ]]
}

# Such a file system is not at hand: a library in front of the system's refuses.
@test "a file system that has no files without a name" {
    if sanitized; then skip "a sanitizer's library comes first"; fi
    cat > "$T/no.c" << 'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
int open(const char *path, int flags, ...)
{
    int (*next)(const char *, int, ...) =
        (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    va_list args;
    va_start(args, flags);
    const int mode = va_arg(args, int);
    va_end(args);
    if ((flags & O_TMPFILE) != O_TMPFILE)
        return next(path, flags, mode);
    next(getenv("REFUSED"), O_CREAT | O_WRONLY, 0600);
    errno = EOPNOTSUPP;
    return -1;
}
END
    ${CC:-cc} -shared -fPIC -o "$T/no.so" "$T/no.c" -ldl
    scattered 100000 > "$T/any"
    in_order < "$T/any" | ft-build -q -o "$T/want.ftx"
    REFUSED=$T/refused LD_PRELOAD=$T/no.so build --memory 1M "$T/any"
    [ -e "$T/refused" ]
    cmp "$T/x.ftx" "$T/want.ftx"
    [ -z "$(ls -A "$T/tmp")" ]
}

@test "memory is bounded by --memory" {
    if sanitized; then skip "a sanitizer's own memory would be measured"; fi
    scattered 2000000 > "$T/any"
    in_order < "$T/any" > "$T/sorted"
    "$oracle/ft-peak" "$T/peak" ft-build -q -o "$T/want.ftx" "$T/sorted"
    base=$(cat "$T/peak")
    for memory in 1 4 16; do
        "$oracle/ft-peak" "$T/peak" ft-build -q --sort --memory ${memory}M \
            --tmpdir "$T/tmp" -o "$T/x.ftx" "$T/any"
        cmp "$T/x.ftx" "$T/want.ftx"
        echo "--memory ${memory}M: peak $(cat "$T/peak") bytes, $base of sorted keys"
        [ "$(cat "$T/peak")" -lt $((base + (memory + 6 << 20))) ]
    done
}
