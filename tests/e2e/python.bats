#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Python at both ends: the programs of flashtrie(7) on real data, and NumPy's own files.
# (scripts/check-examples runs the manual's example as it stands.)
bats_require_minimum_version 1.5.0
load helper

setup() {
    ft-build -q "$D/small.o200k.txt" -o "$T/x.ftx"
    # The here-documents of the manual, as files.
    awk -v to="$T" '
        /^\$ cat > .*\.py <</ { file = to "/" $4; next }
        /^END$/ { file = "" }
        file { gsub(/\\e/, "\\"); gsub(/\\&/, ""); print >file }
    ' "$top/man/flashtrie.7"
}

find_numpy() { # sets $python
    for python in python3 /usr/bin/python3; do
        $python -c 'import numpy' 2>"$T/numpy" && return
    done
    skip "no python3 with NumPy here"
}

@test "the manual's reader of results and ft-inspect agree on real ones" {
    command -v python3 >/dev/null || skip "no python3 here"
    for results in "$D"/small8.*.results; do
        python3 "$T/reader.py" <"$results" >"$T/python"
        ft-inspect results "$results" >"$T/inspect"
        [ "$(wc -l <"$T/inspect")" -gt 20 ]
        diff <(cut -d ' ' -f 1,3- "$T/python") <(cut -f 1,4 "$T/inspect" | tr '\t' ' ')
        # The reader rounds scores to four digits.
        paste <(cut -d ' ' -f 2 "$T/python") <(cut -f 3 "$T/inspect") |
            awk '{ d = $1 - $2 } d > 0.000051 || d < -0.000051 { print; bad = 1 }
                 END { exit bad }'
    done
}

@test "the manual's reader and writer are short" {
    [ "$(grep -c . "$T/model.py")" -le 20 ]
    [ "$(grep -c . "$T/reader.py")" -le 20 ]
}

@test "files that NumPy wrote give the results of the grid they came from" {
    find_numpy
    grid=$D/small8.T8.K100.r18.ftg
    options=(-b 100 -n 100 --token-threshold=-20 --sentence-threshold=-200)
    ft-search "${options[@]}" "$T/x.ftx" "$grid" >"$T/want"
    $python - "$grid" "$T" <<'END'
import sys
import numpy as np
data, to = open(sys.argv[1], "rb").read()[64:], sys.argv[2]
T, K, Q = 8, 100, 8
a = np.frombuffer(data, "<u4").reshape(Q, 2, T, K)
tokens, logp = a[:, 0], a[:, 1].view("<f4")
for kind in "int32", "uint32", "int64":
    np.save(f"{to}/tokens.{kind}.npy", tokens.astype(kind))
np.save(f"{to}/logp.npy", logp)
np.save(f"{to}/logp.half.npy", logp.astype("float16"))
np.save(f"{to}/logp.widened.npy", logp.astype("float16").astype("float32"))
np.save(f"{to}/tokens.one.npy", tokens[3].astype("int64"))
np.save(f"{to}/logp.one.npy", logp[3])
END
    for kind in int32 uint32 int64; do
        ft-search "${options[@]}" "$T/x.ftx" "$T/tokens.$kind.npy" "$T/logp.npy" |
            cmp - "$T/want"
    done
    # binary16 is widened exactly.
    ft-search "${options[@]}" "$T/x.ftx" "$T/tokens.int64.npy" "$T/logp.half.npy" >"$T/half"
    ft-search "${options[@]}" "$T/x.ftx" "$T/tokens.int64.npy" "$T/logp.widened.npy" |
        cmp - "$T/half"
    run -1 cmp -s "$T/half" "$T/want"
    # One query, of shape (T, K).
    ft-search "${options[@]}" -f tsv "$T/x.ftx" "$T/tokens.one.npy" "$T/logp.one.npy" |
        cut -f 2- >"$T/one"
    ft-search "${options[@]}" -f tsv "$T/x.ftx" "$grid" | grep '^3' | cut -f 2- |
        cmp - "$T/one"
}
