# SPDX-License-Identifier: Apache-2.0
#
# awk -v pairs="COLUMN=VALUE ..." -v systems=SYSTEM,... -f gather.awk RAW MISSING: the rows
# of RAW, which ft-bench wrote, that are of these systems; then one for each line "SYSTEM
# STATUS" of MISSING.
BEGIN {
    n_asked = split(systems, part, ",")
    for (i = 1; i <= n_asked; i++)
        asked[part[i]] = 1
    n_pairs = split(pairs, pair, " ")
    for (i = 1; i <= n_pairs; i++) {
        split(pair[i], part, "=")
        extra[i] = part[1]
        value[part[1]] = part[2]
    }
}

/^#/ { next }

FILENAME == ARGV[1] && !n_columns {
    n_columns = split($0, column)
    for (i = 1; i <= n_columns; i++)
        at[column[i]] = i
    for (i = 1; i <= n_pairs; i++)
        if (!(extra[i] in at)) {
            names = names extra[i] OFS
            front = front value[extra[i]] OFS
        }
    print names $0
    next
}

FILENAME == ARGV[1] {
    if ($at["system"] in asked)
        print front $0
    next
}

{
    line = ""
    for (i = 1; i <= n_columns; i++) {
        c = column[i]
        cell = c in value ? value[c] : "-"
        if (c == "system")
            cell = $1
        if (c == "status")
            cell = $2
        line = line (i > 1 ? OFS : "") cell
    }
    print front line
}
