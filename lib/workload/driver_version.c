/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/driver_version.h"

#include <stdio.h>
#include <string.h>

static const char start[] = "NVRM version:", blanks[] = " \t\r\n";

/* Numbers with dots between them, at least two. */
static bool is_version(const char *word, size_t n)
{
    size_t dots = 0;
    for (size_t i = 0; i < n; i++) {
        const bool dot = word[i] == '.';
        if (!dot && (word[i] < '0' || word[i] > '9'))
            return false;
        if (dot && (i == 0 || i + 1 == n || word[i - 1] == '.'))
            return false;
        dots += dot;
    }
    return dots > 0;
}

/* The words before it differ between kinds of the module. */
static bool find_version(const char *line, char *version, size_t bytes)
{
    if (strncmp(line, start, strlen(start)) != 0)
        return false;
    for (const char *p = line + strlen(start); *(p += strspn(p, blanks));) {
        const size_t n = strcspn(p, blanks);
        if (n < bytes && is_version(p, n)) {
            snprintf(version, bytes, "%.*s", (int)n, p);
            return true;
        }
        p += n;
    }
    return false;
}

bool ft_driver_version(const char *path, char *version, size_t bytes)
{
    char line[512];
    FILE *in = fopen(path, "re");
    const bool found = in && fgets(line, sizeof line, in) &&
                       strlen(line) + 1 < sizeof line && /* or a word may be cut */
                       find_version(line, version, bytes);
    if (in)
        fclose(in);
    return found;
}
