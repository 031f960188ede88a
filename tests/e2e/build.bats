#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
bats_require_minimum_version 1.5.0
load helper

# build OPTION...: ft-build -q -o $T/x.ftx of standard input.
build() {
    ft-build -q -o "$T/x.ftx" "$@"
}

# fails MESSAGE COMMAND...: exit 1, the message, nothing on standard output.
fails() {
    run -1 --separate-stderr "${@:2}"
    [ -z "$output" ]
    [[ $stderr == "ft-build: "*"$1"* ]] || { echo "$stderr"; false; }
    [ "${#stderr_lines[@]}" = 1 ]
}

# left_behind FOLDER: files in it whose name looks temporary.
left_behind() {
    find "$1" -name '.*' -type f
}

dump() {
    ft-inspect dump "$T/x.ftx"
}

@test "a library comes back as it went in, in every layout" {
    for layout in $layouts; do
        build --layout $layout "$D/small.o200k.txt"
        dump | cmp - "$D/small.o200k.txt"
        zstd -dcq "$D/medium.o200k.txt.zst" > "$T/medium"
        build --layout $layout < "$T/medium"
        dump | cmp - "$T/medium"
    done
}

@test "the first layout that --help names is the default" {
    build --layout "${layouts%% *}" "$D/small.o200k.txt"
    ft-build -q "$D/small.o200k.txt" | cmp - "$T/x.ftx"
}

@test "prefix keys are keys" {
    printf '1\n1 2\n1 2 3\n2 3\n' > "$T/keys"
    build --ids "$T/keys"
    dump | cmp - "$T/keys"
    run -0 ft-inspect lookup "$T/x.ftx" <<< $'2\n2 3\n1 2\n1'
    [ "$output" = $'-\n3\n1\n0' ]
}

@test "unsorted keys name the line, the keys and the way out" {
    fails "line 3: key out of order" build <<< $'1\n2 1\n1 9'
    [[ $stderr == *"'1 9'"*"'2 1'"*"sort -u -V"* ]] || { echo "$stderr"; false; }
    [ ! -e "$T/x.ftx" ]
    printf '10 1\n9 2\n' > "$T/bytewise"
    fails "$T/bytewise: line 2: key out of order" build "$T/bytewise"
    sort -u -V "$T/bytewise" | build
    [ "$(dump)" = $'9 2\n10 1' ]
}

@test "what is no key names line and column" {
    fails "line 2" build <<< $'1\n2 x'
    fails "line 1" build <<< '-1'
    fails "line 1" build <<< '4294967295'
    fails "line 1" build < <(printf '1 \0 2\n')
    fails "line 1" build <<< "$(seq -s ' ' 65536)"
    seq -s ' ' 65535 | build
    seq -s ' ' 65535 | cmp - <(dump)
}

@test "empty lines and duplicates are counted" {
    run -0 --separate-stderr ft-build -o "$T/x.ftx" <<< $'\n1\n1\n\t \n1 2\r\n1 2\n'
    [[ $stderr == "ft-build: $T/x.ftx: 2 keys, 3 nodes, "*" bytes, "*" bits/node, 3 empty lines skipped, 2 duplicates, 0 subtracted, "*" s" ]]
}

@test "text, binary, zstd, an index and several inputs give the same file" {
    local keys=$D/small.o200k.txt
    build "$keys"
    dump | ft-build -q | cmp - "$T/x.ftx"
    ft-inspect dump --binary "$T/x.ftx" > "$T/binary"
    ft-build -q "$T/binary" | cmp - "$T/x.ftx"
    zstd -q "$T/binary" -o "$T/binary.zst"
    ft-build -q - < "$T/binary.zst" | cmp - "$T/x.ftx"
    { head -n 2000 "$keys" | zstd -qc; tail -n +2001 "$keys" | zstd -qc; } |
        ft-build -q | cmp - "$T/x.ftx"
    ft-build -q "$T/x.ftx" | cmp - "$T/x.ftx"
    awk 'NR % 3 == 0' "$keys" > "$T/a"
    awk 'NR % 3 != 0' "$keys" | zstd -qc > "$T/b"
    awk 'NR % 2 == 0' "$keys" | ft-build -q -o "$T/c"
    ft-build -q "$T/a" "$T/b" "$T/c" | cmp - "$T/x.ftx"
    ft-build -q "$T/b" - "$T/c" < "$T/a" | cmp - "$T/x.ftx"
}

@test "an index and changes give the file of the changed library" {
    local keys=$D/small.o200k.txt
    awk 'NR % 10 == 1' "$keys" > "$T/gone"
    awk 'NR % 10 != 1' "$keys" | cat - <(printf '200000 1\n200001\n') > "$T/wanted"
    printf '200000 1\n200001\n' > "$T/new"
    ft-build -q --ids "$keys" -o "$T/old.ftx"
    run -0 --separate-stderr ft-build --ids "$T/old.ftx" "$T/new" --subtract "$T/gone" \
        -o "$T/x.ftx"
    [[ $stderr == *" 0 duplicates, 505 subtracted, "* ]]
    ft-build -q --ids "$T/wanted" | cmp - "$T/x.ftx"
    # Two lists, one of them an index, one with keys that are not there.
    head -n 100 "$T/gone" | ft-build -q -o "$T/gone.ftx"
    { tail -n +101 "$T/gone"; echo 200002; } > "$T/more"
    ft-build -q --ids "$T/old.ftx" "$T/new" --subtract "$T/gone.ftx" \
        --subtract="$T/more" | cmp - "$T/x.ftx"
    # In place.
    ft-build -q --ids "$T/old.ftx" "$T/new" --subtract "$T/gone" -o "$T/old.ftx"
    cmp "$T/old.ftx" "$T/x.ftx"
}

@test "--ids: the key number is the line number of the sorted input" {
    build --ids "$D/small.o200k.txt"
    ft-inspect lookup "$T/x.ftx" "$D/small.o200k.txt" | cmp - <(seq 0 5044)
    ft-inspect predict "$T/x.ftx" | cut -f 2 | cmp - <(seq 0 5044)
    build "$D/small.o200k.txt"
    [ "$(ft-inspect lookup "$T/x.ftx" "$D/small.o200k.txt" | sort -u)" = found ]
}

@test "--compress: smaller, the same keys and results" {
    local args=(-b 100 -n 100 -a 5 --token-threshold=-20 --sentence-threshold=-200)
    local plain small
    for layout in $layouts; do
        build --ids --layout $layout "$D/small.o200k.txt"
        plain=$(stat -c %s "$T/x.ftx")
        for level in "" =1 =19; do
            build --ids --layout $layout --compress$level "$D/small.o200k.txt"
            small=$(stat -c %s "$T/x.ftx")
            [ "$small" -lt "$plain" ]
            dump | cmp - "$D/small.o200k.txt"
            ft-inspect verify "$T/x.ftx"
            ft-search "${args[@]}" "$T/x.ftx" "$D/small8.T8.K100.r18.ftg" |
                cmp - "$D/small8.T8.K100.r18.B100.N100.a5.tt-20.ts-200.results"
        done
    done
}

@test "tokens at the borders of the layouts" {
    printf '%s\n' 0 54999 55000 65535 '65535 65536' 65536 2097152 4194304 4294967294 \
        > "$T/keys"
    for layout in $layouts; do
        build --ids --layout $layout "$T/keys"
        dump | cmp - "$T/keys"
        ft-inspect lookup "$T/x.ftx" "$T/keys" | cmp - <(seq 0 8)
        ft-inspect verify "$T/x.ftx"
    done
}

@test "no keys: a valid index and a warning" {
    for empty in "" $'\n\n'; do
        run -0 --separate-stderr ft-build -q -o "$T/x.ftx" <<< "$empty"
        [ "$stderr" = "ft-build: warning: no keys: the library is empty" ]
        [ -z "$(dump)" ]
        ft-inspect verify "$T/x.ftx"
        run -0 ft-inspect lookup "$T/x.ftx" <<< 1
        [ "$output" = - ]
        ft-search "$T/x.ftx" "$D/small8.T8.K100.r18.ftg" | cmp - <(head -c 64 /dev/zero)
    done
    echo 1 > "$T/one"
    run -0 --separate-stderr ft-build -q "$T/one" --subtract "$T/one" -o "$T/x.ftx"
    [[ $stderr == *"the library is empty" ]]
}

@test "inputs that are not there, or something else" {
    fails "$T/none: " build "$T/none"
    fails "$T: " build "$T"
    fails "$T/none: " build --subtract "$T/none" "$D/small.o200k.txt"
    fails "proposal grid" build "$D/small8.T8.K100.r18.ftg"
    zstd -qc "$D/small.o200k.txt" | head -c 10000 > "$T/cut.zst"
    fails "$T/cut.zst: " build "$T/cut.zst"
    ft-build -q "$D/small.o200k.txt" | head -c 20000 > "$T/cut.ftx"
    fails "$T/cut.ftx: " build "$T/cut.ftx"
    printf 'FTKEYS1\n\0\0\0\0\0\0\0\0\2\0\0\0\1\0\0\0' > "$T/cut"
    fails "$T/cut: " build "$T/cut"
    [ ! -e "$T/x.ftx" ]
    [ -z "$(left_behind "$T")" ]
}

@test "-o: a build that fails leaves the old file and nothing else" {
    build <<< 1
    cp "$T/x.ftx" "$T/before"
    mkdir "$T/here"
    mv "$T/x.ftx" "$T/here/x.ftx"
    run -1 ft-build -o "$T/here/x.ftx" <<< $'2\n1'
    cmp "$T/here/x.ftx" "$T/before"
    [ "$(ls -A "$T/here")" = x.ftx ]
    run -1 --separate-stderr ft-build -o "$T/nowhere/x.ftx" <<< 1
    [[ $stderr == "ft-build: $T/nowhere/x.ftx: "*"No such file"* ]]
    run -1 --separate-stderr ft-build -o "$T/here" <<< 1
    [[ $stderr == "ft-build: $T/here: "*"Is a directory"* ]]
}

@test "-o: permissions stay, links are followed" {
    build <<< 1
    chmod 640 "$T/x.ftx"
    ln -s x.ftx "$T/link"
    ft-build -q -o "$T/link" <<< 2
    [ -L "$T/link" ]
    [ "$(stat -c %a "$T/x.ftx")" = 640 ]
    [ "$(dump)" = 2 ]
}

# interrupted SIGNAL: a build over an old file that the signal ends midway; its status is
# in $status.
interrupted() {
    rm -rf "$T/here"
    mkdir "$T/here"
    ft-build -q -o "$T/here/x.ftx" <<< 1
    cp "$T/here/x.ftx" "$T/before"
    mkfifo "$T/here/keys"
    # A shell's background jobs ignore SIGINT, and ft-build would go on doing so.
    env --default-signal=INT ft-build -q -o "$T/here/x.ftx" "$T/here/keys" &
    local pid=$!
    exec 7> "$T/here/keys"
    seq 1 100000 >&7
    for _ in {1..50}; do
        [ -n "$(left_behind "$T/here")" ] && break
        sleep 0.1
    done
    [ -n "$(left_behind "$T/here")" ]
    kill -s "$1" $pid
    status=0
    wait $pid || status=$?
    exec 7>&-
    rm "$T/here/keys"
}

@test "-o: ended by a signal, the old file is there and nothing else" {
    for signal in INT:130 TERM:143 HUP:129; do
        interrupted ${signal%:*}
        [ $status = ${signal#*:} ]
        cmp "$T/here/x.ftx" "$T/before"
        [ "$(ls -A "$T/here")" = x.ftx ]
    done
}

@test "-o: killed midway, the old file is whole" {
    interrupted KILL
    [ $status = 137 ]
    cmp "$T/here/x.ftx" "$T/before"
    # The next build is not disturbed by what was left.
    ft-build -q -o "$T/here/x.ftx" <<< 2
    [ "$(ft-inspect dump "$T/here/x.ftx")" = 2 ]
}

@test "standard output: a pipe, a file, behind other data" {
    build "$D/small.o200k.txt"
    ft-build -q "$D/small.o200k.txt" | cat | cmp - "$T/x.ftx"
    ft-build -q -o - "$D/small.o200k.txt" > "$T/y"
    cmp "$T/x.ftx" "$T/y"
    { echo before; ft-build -q "$D/small.o200k.txt"; echo behind; } > "$T/y"
    { echo before; cat "$T/x.ftx"; echo behind; } | cmp - "$T/y"
    echo before > "$T/y"
    ft-build -q "$D/small.o200k.txt" >> "$T/y"
    { echo before; cat "$T/x.ftx"; } | cmp - "$T/y"
    mkfifo "$T/fifo"
    ft-build -q -o "$T/fifo" "$D/small.o200k.txt" &
    cmp "$T/x.ftx" "$T/fifo"
    wait $!
    [ -p "$T/fifo" ]
}

@test "the temporary file of a pipe goes to TMPDIR and does not stay" {
    mkdir "$T/tmp"
    TMPDIR=$T/tmp ft-build -q "$D/small.o200k.txt" | cat > "$T/y"
    [ -z "$(ls -A "$T/tmp")" ]
    run -1 --separate-stderr bash -c 'TMPDIR=$1/none ft-build -q <<< 1 | cat > "$1/y"
        exit "${PIPESTATUS[0]}"' - "$T"
    [[ $stderr == "ft-build: $T/none/ft-build."*"No such file or directory" ]]
}

@test "an input that is standard output too is refused" {
    build <<< 1
    cp "$T/x.ftx" "$T/before"
    run -1 --separate-stderr bash -c 'ft-build "$1" >> "$1"' - "$T/x.ftx"
    [[ $stderr == *"input is also standard output: use -o" ]]
    cmp "$T/x.ftx" "$T/before"
}

@test "a terminal is refused" {
    command -v script > /dev/null || skip "no script command"
    run -1 script -qec "ft-build '$D/small.o200k.txt'" "$T/typescript"
    [[ $output == *"ft-build: (standard output): is a terminal, and the output is binary"* ]]
    [[ $output != *FTINDEX* ]]
}

@test "a closed pipe ends it quietly" {
    run -0 --separate-stderr bash -c '
        { ft-build -q "$1"; echo $? > "$2"; } | head -c 1 > /dev/null; cat "$2"' - \
        "$D/small.o200k.txt" "$T/status"
    [ "$output" = 0 ]
    [ -z "$stderr" ]
    zstd -dcq "$D/medium.o200k.txt.zst" > "$T/medium"
    run -0 --separate-stderr bash -c '
        { ft-build -q "$1"; echo $? > "$2"; } | true; cat "$2"' - "$T/medium" "$T/status"
    [ "$output" = 0 ]
    [ -z "$stderr" ]
}

@test "a full disk fails and says so" {
    [ -c /dev/full ] || skip "no /dev/full"
    run -1 --separate-stderr bash -c 'ft-build -q "$1" > /dev/full' - "$D/small.o200k.txt"
    [ "$stderr" = "ft-build: (standard output): cannot write: No space left on device" ]
    run -1 --separate-stderr ft-build -q -o /dev/full "$D/small.o200k.txt"
    [ "$stderr" = "ft-build: /dev/full: cannot write: No space left on device" ]
    [ -c /dev/full ]
}

@test "a file that grows too large fails, says so, and leaves the old one" {
    mkdir "$T/here"
    ft-build -q -o "$T/here/x.ftx" <<< 1
    cp "$T/here/x.ftx" "$T/before"
    run -1 --separate-stderr bash -c 'ulimit -f 8; ft-build -q -o "$1" "$2"' - \
        "$T/here/x.ftx" "$D/small.o200k.txt"
    [ "$stderr" = "ft-build: $T/here/x.ftx: cannot write: File too large" ]
    cmp "$T/here/x.ftx" "$T/before"
    [ "$(ls -A "$T/here")" = x.ftx ]
}

@test "the same file every time" {
    zstd -dcq "$D/medium.o200k.txt.zst" | build --ids
    for _ in 1 2 3; do
        ft-build -q --ids "$D/medium.o200k.txt.zst" | cmp - "$T/x.ftx"
    done
}
