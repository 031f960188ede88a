# SPDX-License-Identifier: Apache-2.0
#
# awk -v keys="KEY,..." -v metrics="METRIC ..." -f side-by-side.awk PAPER HERE: a table
# with a row for each of HERE; each metric as "paper | here", or as it is here where the
# paper gives none; and at the end what only the paper has. Both files are TSV with a line
# of column names, among them "system".
BEGIN {
    twins["paper"] = "FlashTrie"
    twins["marisa-opt"] = twins["wide"] = "MARISA-Opt"
    twins["marisa-int"] = twins["wide-tails"] = "MARISA-Int"
    twins["ppt"] = "PPT"
    twins["paper-linear"] = "Linear-probe"
    twins["paper-two-pointer"] = "Two-pointer"
    twins["paper-per-child"] = "Per-child"
    n_keys = split(keys, key, ",")
    n = split(metrics, metric, " ")
}

/^#/ || NF == 0 { next }

!(FILENAME in head) {
    head[FILENAME] = 1
    split("", at)
    for (i = 1; i <= NF; i++)
        at[$i] = i
    if (FILENAME != ARGV[1])
        print_head()
    else
        for (i = 1; i <= n; i++)
            is_said[i] = metric[i] in at
    next
}

FILENAME == ARGV[1] {
    row = key_cells() SUBSEP cell("system")
    order[++n_said] = row
    for (i = 1; i <= n; i++)
        said[row, i] = cell(metric[i])
    next
}

{
    row = key_cells() SUBSEP twin(cell("system"))
    used[row] = 1
    for (i = 1; i <= n; i++)
        here[i] = short(cell(metric[i]))
    status = cell("status")
    print_row(row, cell("system"), status ~ /^(ok|-)$/ ? "" : "  " status)
}

END {
    for (i = 1; i <= n; i++)
        here[i] = "-"
    for (r = 1; r <= n_said; r++)
        if (!(order[r] in used)) {
            split(order[r], part, SUBSEP)
            print_row(order[r], part[2], "  in the paper alone")
        }
}

function twin(name) { # what the paper calls it, or the system that has this layout
    if (name ~ /^(flashtrie|compact|narrow)(-|$)/)
        return "FlashTrie"
    return name in twins ? twins[name] : name
}

function cell(column) { return column in at && $at[column] != "" ? $at[column] : "-" }

function key_cells(    i, text) {
    for (i = 1; i <= n_keys; i++)
        text = text sprintf("%-9s ", cell(key[i]))
    return text
}

function short(v) {
    if (v !~ /^-?[0-9]*[.][0-9]+$/)
        return v
    return sprintf(v < 1000 ? "%.4g" : "%.0f", v)
}

function print_head(    i, under) {
    for (i = 1; i <= n_keys; i++) {
        printf "%-9s ", key[i]
        under = under sprintf("%10s", "")
    }
    printf "%-17s", "system"
    for (i = 1; i <= n; i++)
        printf is_said[i] ? "  %20s" : "  %11s", metric[i]
    printf "\n%s%17s", under, ""
    for (i = 1; i <= n; i++)
        printf is_said[i] ? "  %9s | %-8s" : "  %.0s%11s", "paper", "here"
    print ""
}

function print_row(row, name, behind,    i, part) {
    split(row, part, SUBSEP)
    printf "%s%-17s", part[1], name
    for (i = 1; i <= n; i++)
        if (is_said[i])
            printf "  %9s | %-8s", (row, i) in said ? said[row, i] : "-", here[i]
        else
            printf "  %11s", here[i]
    print behind
}
