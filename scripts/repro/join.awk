# SPDX-License-Identifier: Apache-2.0
#
# awk -f join.awk FILE... FILE...: the rows of all files, which are named twice, under the
# longest of their lines of column names. What a file has no column for is "-".
BEGIN { FS = OFS = "\t" }

FNR == 1 {
    is_second = ++n_files > (ARGC - 1) / 2
    split("", at)
    for (i = 1; i <= NF; i++)
        at[$i] = i
    if (!is_second && NF > n_columns) {
        n_columns = split($0, column)
        head = $0
    }
    if (n_files == (ARGC - 1) / 2 + 1)
        print head
    next
}

is_second {
    for (i = 1; i <= n_columns; i++)
        printf "%s%s", column[i] in at ? $at[column[i]] : "-", i < n_columns ? OFS : "\n"
}
