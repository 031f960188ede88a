/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_marisa.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_installed(const char *program)
{
    const char *path = getenv("PATH");
    char name[4096];
    for (const char *p = path ? path : ""; *p; p += strcspn(p, ":")) {
        p += *p == ':';
        snprintf(name, sizeof name, "%.*s/%s", (int)strcspn(p, ":"), p, program);
        if (access(name, X_OK) == 0)
            return true;
    }
    return false;
}

bool ft_bench_has_marisa(void)
{
    return is_installed("marisa-build") && is_installed("marisa-lookup");
}

const char *ft_bench_marisa_tries(const char *name)
{
    return strcmp(name, "marisa") == 0      ? "3"
           : strcmp(name, "marisa-n1") == 0 ? "1"
                                            : NULL;
}

/* MARISA takes strings, a line each; what stands behind a tab is not the key's. A token
 * becomes four digits to the base 253, most significant first, as the bytes 1 to 8 and
 * 11 to 255: no byte ends a line, a key or a C string, and the order stays. */
ft_status ft_bench_marisa_encode(ft_sink *out, const ft_key *key, bool *fits,
                                 ft_error *err)
{
    enum { DIGITS = 4, BASE = 253 };
    ft_status st = FT_OK;
    *fits = true;
    for (uint32_t i = 0; i < key->n && st == FT_OK; i++) {
        uint8_t text[DIGITS];
        uint32_t rest = key->tokens[i];
        for (int d = DIGITS - 1; d >= 0; d--, rest /= BASE) {
            const uint32_t digit = rest % BASE;
            text[d] = (uint8_t)(digit < 8 ? digit + 1 : digit + 3);
        }
        *fits = *fits && key->tokens[i] <= FT_BENCH_MARISA_MAX;
        st = ft_sink_write(out, text, sizeof text, err);
    }
    return st == FT_OK ? ft_sink_write(out, "\n", 1, err) : st;
}

/* Standard input and output of what is executed next. */
static bool redirect(const ft_bench_scratch *in, const char *out)
{
    const int to = open(out, O_WRONLY), silent = open("/dev/null", O_WRONLY);
    return to >= 0 && silent >= 0 && dup2(in->fd, 0) == 0 && dup2(to, 1) == 1 &&
           dup2(silent, 2) == 2;
}

void ft_bench_marisa_build(const ft_bench_scratch *keys, const char *n_tries,
                           const char *index)
{
    if (redirect(keys, "/dev/null"))
        execlp("marisa-build", "marisa-build", "-n", n_tries, "-o", index,
               (char *)NULL);
}

void ft_bench_marisa_look_up(const ft_bench_scratch *keys, const char *index,
                             const char *answers)
{
    if (redirect(keys, answers))
        execlp("marisa-lookup", "marisa-lookup", index, (char *)NULL);
}

uint64_t ft_bench_marisa_lines(const char *text, size_t n)
{
    uint64_t lines = 0;
    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    return lines;
}

uint64_t ft_bench_marisa_n_read(const ft_bench_scratch *keys)
{
    enum { CHUNK = 1 << 16 };
    char text[CHUNK];
    const off_t end = lseek(keys->fd, 0, SEEK_CUR);
    uint64_t n = 0;
    for (off_t at = 0; at < end;) {
        const size_t most = end - at < CHUNK ? (size_t)(end - at) : CHUNK;
        const ssize_t got = pread(keys->fd, text, most, at);
        if (got <= 0)
            break;
        n += ft_bench_marisa_lines(text, (size_t)got);
        at += got;
    }
    return n;
}

/* A line is a number and a key; the number of no key is -1. */
uint64_t ft_bench_marisa_found(const char *text, size_t n)
{
    uint64_t found = 0;
    for (size_t i = 0; i < n; i++)
        found += (i == 0 || text[i - 1] == '\n') && text[i] >= '0' && text[i] <= '9';
    return found;
}
