/* SPDX-License-Identifier: Apache-2.0
 *
 * Options are data: a command is a table of rows, and the table parses the arguments,
 * prints --help, feeds completions and the check of the manual (--help-options). A
 * command with subcommands is a table of them, each with an option table of its own.
 *
 *     const ft_option rows[] = {
 *         {FT_OPT_U32, 'b', "beam", &o->beam, "N", "keep the N best prefixes",
 *          .min = 1, .max = 65536},
 *         {FT_OPT_FLAG, 0, "ids", &o->ids, NULL, "store key numbers"},
 *         FT_OPTIONS_END};
 *
 * Every command takes, besides its own rows, -q --quiet, -v --verbose, --progress,
 * -h --help, -V --version and the hidden --help-options; rows leave these alone.
 */
#ifndef FT_CMD_OPTIONS_H
#define FT_CMD_OPTIONS_H

#include <stdint.h>

/* A row names only the trailing fields that it needs. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

typedef enum ft_opt_kind {
    FT_OPT_END,    /* the row behind the last */
    FT_OPT_FLAG,   /* bool: becomes true */
    FT_OPT_U32,    /* uint32_t */
    FT_OPT_U64,    /* uint64_t */
    FT_OPT_SIZE,   /* uint64_t, bytes: 4096, 64K, 512M, 2G */
    FT_OPT_FLOAT,  /* float, rounded once, from decimal to binary32 */
    FT_OPT_DOUBLE, /* double */
    FT_OPT_STRING, /* const char *: the argument itself */
    FT_OPT_ENUM,   /* uint32_t: place of the argument in .choices */
    FT_OPT_LIST    /* ft_list: every occurrence adds its argument */
} ft_opt_kind;

/* Arguments in the order given; a zeroed one is empty. Free items, not the strings. */
typedef struct ft_list {
    const char **items;
    uint32_t n;
} ft_list;

typedef struct ft_option {
    ft_opt_kind kind;
    char letter;          /* short option, or 0 */
    const char *name;     /* long option */
    void *value;          /* where the value goes; what is there is the default */
    const char *argument; /* its argument's name in help; NULL for flags */
    const char *help;     /* lower case, no full stop */

    /* Numbers: the range, both ends allowed (exact up to 2^53). Both 0: all that the
     * type holds, infinities left out. An infinite end lets that infinity in. */
    double min, max;
    const char *const *choices; /* FT_OPT_ENUM: the names, NULL behind the last */

    /* Not NULL: the argument may be left out and is then this. It is given as
     * --name=ARGUMENT only, and the row has no letter. */
    const char *absent;
} ft_option;

#define FT_OPTIONS_END                                                                 \
    {                                                                                  \
        FT_OPT_END                                                                     \
    }

enum { FT_ANY_OPERANDS = 0x7FFFFFFF };

typedef struct ft_subcommand ft_subcommand;

typedef struct ft_command {
    const char *program;    /* "ft-inspect" */
    const char *subcommand; /* "stats"; NULL for a command that has none */
    const char *summary;    /* one line: "print what an index holds" */
    const char *operands;   /* for the usage line: "INDEX [TOKEN...]"; "" for none */
    const ft_option *options;
    int min_operands, max_operands;
    const ft_subcommand *subcommands; /* ft_subcommands_run sets it */
} ft_command;

typedef struct ft_operands {
    char **v; /* part of argv, which parsing reorders */
    uint32_t n;
} ft_operands;

enum { FT_GO_ON = -1 };

/* Parse argv (argv[0] is skipped) into the rows' values. FT_GO_ON: *operands is set and
 * the command goes on; anything else is the status to exit with: help or the version
 * has been printed, or the usage error has. */
int ft_command_parse(const ft_command *c, int argc, char **argv, ft_operands *operands);

/* Report a usage error that the table cannot see ("--binary and --vocab exclude each
 * other"); returns the status to exit with. */
int ft_command_usage(const ft_command *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

struct ft_subcommand {
    const char *name, *summary;

    /* argv[0] is the subcommand's name. Parses its own table with ft_command_parse,
     * before it does anything else, and returns the status to exit with. */
    int (*run)(const ft_subcommand *self, int argc, char **argv);
};

/* Run the subcommand that argv names (rows end with a NULL name); common options may
 * stand before it. Returns the status to exit with. */
int ft_subcommands_run(const char *program, const char *summary,
                       const ft_subcommand *rows, int argc, char **argv);

#endif
