/* SPDX-License-Identifier: Apache-2.0
 *
 * What the commands share: messages, exit statuses, signals, progress, output.
 */
#ifndef FT_CMD_COMMON_H
#define FT_CMD_COMMON_H

#include <stdbool.h>

#include "ft.h"

enum ft_exit { /* SPEC of every command: see flashtrie(7), EXIT STATUS */
               FT_EXIT_DONE = 0,
               FT_EXIT_FAILED = 1,     /* bad data, I/O, memory */
               FT_EXIT_USAGE = 2,      /* the command line makes no sense */
               FT_EXIT_UNAVAILABLE = 3 /* the engine asked for cannot run here */
};

/* First call of every main: program name, locale of characters, signals, the standard
 * descriptors, and whether this processor has what the build was compiled for.
 * False: the error has been printed, exit with FT_EXIT_FAILED. */
bool ft_start(const char *program);

/* Between the two calls an interrupt is only noted, so that what is measured can be
 * written; it takes effect at the second call. Another one, half a second later, does
 * at once. */
void ft_defer_signals(bool on);
bool ft_signal_deferred(void);

/* Print "program: message" on standard error, in one write. */
void ft_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The status to exit with; prints the error, but not that of a closed pipe, which ends
 * a filter quietly and with 0. */
int ft_finish(ft_status st, const ft_error *err);

typedef enum ft_verbosity { FT_QUIET = -1, FT_NORMAL, FT_VERBOSE } ft_verbosity;

/* Set by -q, -v (the last one given wins) and --progress. */
void ft_set_verbosity(ft_verbosity v);
void ft_set_progress(bool always);
bool ft_is_quiet(void);
bool ft_is_verbose(void);

/* Seconds of a steady clock. */
double ft_seconds(void);

/* Progress on standard error: on a terminal or with --progress, never with -q. Ask
 * ft_progress_due often (it costs a clock reading): true at most four times a second,
 * and then ft_progress shows a line in the place of the last one. ft_say and
 * ft_progress_end wipe it. */
bool ft_progress_due(void);
void ft_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void ft_progress_end(void);

/* 10 million, say, as "10.0M". *text has room for FT_COUNT_BYTES. */
enum { FT_COUNT_BYTES = 16 };
const char *ft_short_count(uint64_t n, char text[FT_COUNT_BYTES]);

typedef enum ft_output_kind {
    FT_OUTPUT_TEXT,
    FT_OUTPUT_BINARY /* refused on a terminal */
} ft_output_kind;

/* Whether both names are of one plain file; NULL and "-" name none. */
bool ft_same_file(const char *a, const char *b);

/* Open where data goes: standard output (path NULL or "-"), or a file that appears
 * under its name only when ft_output_close finds *st FT_OK. */
ft_status ft_output_open(ft_sink **out, const char *path, ft_output_kind kind,
                         ft_error *err);

/* Commit if st is FT_OK, close, and return st or the first failure of these. s may be
 * NULL. */
ft_status ft_output_close(ft_sink *s, ft_status st, ft_error *err);

#endif
