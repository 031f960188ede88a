/* SPDX-License-Identifier: Apache-2.0
 *
 * Parsing by GNU getopt_long, driven by the rows. What rows look like in words is in
 * options_help.c.
 */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "options_help.h"

/* getopt_long's codes of long options: the common rows in their order, then the row
 * FIRST_ROW + its number. Short options come back as their letter. */
enum {
    CODE_QUIET = 256,
    CODE_VERBOSE,
    CODE_PROGRESS,
    CODE_HELP,
    CODE_VERSION,
    CODE_HELP_OPTIONS,
    FIRST_ROW
};

enum { MAX_ROWS = 64 };

typedef struct getopt_tables {
    struct option longs[MAX_ROWS + 1];
    char shorts[3 * MAX_ROWS];
    unsigned n;
} getopt_tables;

static void add_row(getopt_tables *g, const ft_option *row, int code)
{
    const int argument = row->kind == FT_OPT_FLAG ? no_argument
                         : row->absent            ? optional_argument
                                                  : required_argument;
    char *s = g->shorts + strlen(g->shorts);
    if (g->n == MAX_ROWS)
        abort(); /* a table of ours is too long */
    g->longs[g->n++] = (struct option){row->name, argument, NULL, code};
    if (row->letter) {
        *s++ = row->letter;
        if (argument != no_argument)
            *s++ = ':';
        *s = '\0';
    }
}

/* "+" stops at the first operand (a subcommand's name), ":" tells a missing argument
 * from an unknown option. */
static void make_tables(getopt_tables *g, const ft_option *rows, bool stop)
{
    static const ft_option hidden = {FT_OPT_FLAG, 0, "help-options"};
    memset(g, 0, sizeof *g);
    strcpy(g->shorts, stop ? "+:" : ":");
    for (int i = 0; ft_common_options[i].kind != FT_OPT_END; i++)
        add_row(g, &ft_common_options[i], CODE_QUIET + i);
    add_row(g, &hidden, CODE_HELP_OPTIONS);
    for (int i = 0; rows && rows[i].kind != FT_OPT_END; i++)
        add_row(g, &rows[i], FIRST_ROW + i);
}

static int code_of(const ft_option *rows, int letter)
{
    if (letter >= CODE_QUIET)
        return letter;
    for (int i = 0; ft_common_options[i].kind != FT_OPT_END; i++)
        if (ft_common_options[i].letter == letter)
            return CODE_QUIET + i;
    for (int i = 0; rows && rows[i].kind != FT_OPT_END; i++)
        if (rows[i].letter == letter)
            return FIRST_ROW + i;
    return 0;
}

static bool in_range(const ft_option *o, double v)
{
    if (o->min == 0 && o->max == 0)
        return !isinf(v);
    return v >= o->min && v <= o->max;
}

static bool parse_whole(const ft_option *o, const char *text)
{
    const uint64_t most = o->kind == FT_OPT_U32 ? UINT32_MAX : UINT64_MAX;
    char *end;
    unsigned long long v;
    if (text[0] < '0' || text[0] > '9')
        return false; /* strtoull takes blanks and signs */
    errno = 0;
    v = strtoull(text, &end, 10);
    if (*end || errno || v > most || !in_range(o, (double)v))
        return false;
    if (o->kind == FT_OPT_U32)
        *(uint32_t *)o->value = (uint32_t)v;
    else
        *(uint64_t *)o->value = v;
    return true;
}

static bool parse_size(const ft_option *o, const char *text)
{
    uint64_t v;
    if (!ft_parse_size(text, &v) || !in_range(o, (double)v))
        return false;
    *(uint64_t *)o->value = v;
    return true;
}

/* strtod takes blanks, hexadecimal and nan as well. */
static bool looks_decimal(const char *text)
{
    const char *digits = text + (*text == '-' || *text == '+');
    return strcmp(digits, "inf") == 0 ||
           (strspn(text, "0123456789.eE+-") == strlen(text) &&
            strpbrk(text, "0123456789"));
}

/* A number too large for the type is no infinity: it is out of every range. */
static bool parse_real(const ft_option *o, const char *text)
{
    char *end;
    double v;
    if (!looks_decimal(text))
        return false;
    v = o->kind == FT_OPT_FLOAT ? strtof(text, &end) : strtod(text, &end);
    if (*end || !in_range(o, v) || (isinf(v) && !strstr(text, "inf")))
        return false;
    if (o->kind == FT_OPT_FLOAT)
        *(float *)o->value = (float)v;
    else
        *(double *)o->value = v;
    return true;
}

static bool parse_enum(const ft_option *o, const char *text)
{
    for (uint32_t i = 0; o->choices[i]; i++)
        if (strcmp(o->choices[i], text) == 0) {
            *(uint32_t *)o->value = i;
            return true;
        }
    return false;
}

static bool add_to_list(const ft_option *o, const char *text)
{
    ft_list *list = o->value;
    const char **items =
        ft_realloc(list->items, (uint64_t)list->n + 1, sizeof *items, NULL);
    if (!items)
        return false;
    items[list->n++] = text;
    list->items = items;
    return true;
}

static bool set_value(const ft_option *o, const char *text)
{
    switch (o->kind) {
    case FT_OPT_FLAG:
        *(bool *)o->value = true;
        return true;
    case FT_OPT_U32:
    case FT_OPT_U64:
        return parse_whole(o, text);
    case FT_OPT_SIZE:
        return parse_size(o, text);
    case FT_OPT_FLOAT:
    case FT_OPT_DOUBLE:
        return parse_real(o, text);
    case FT_OPT_STRING:
        *(const char **)o->value = text;
        return true;
    case FT_OPT_ENUM:
        return parse_enum(o, text);
    case FT_OPT_LIST:
        return add_to_list(o, text);
    case FT_OPT_END:
        break;
    }
    return false;
}

static int bad_value(const ft_command *c, const ft_option *o, const char *text)
{
    char wanted[FT_WANTED_BYTES];
    return ft_command_usage(c, "option '--%s': '%s' is not %s", o->name, text,
                            ft_option_wants(o, wanted));
}

/* getopt_long says only that something is wrong; find out what. optopt is a letter, the
 * code of a long option, or 0 for a long option that it could not tell; `word` is the
 * argument where it is a long one. */
static int bad_option(const ft_command *c, const getopt_tables *g, bool missing,
                      const char *word)
{
    const int length = (int)strcspn(word, "=");
    unsigned matches = 0;
    if (optopt && optopt < CODE_QUIET)
        return ft_command_usage(
            c, missing ? "option '-%c' needs an argument" : "unknown option '-%c'",
            optopt);
    if (missing)
        return ft_command_usage(c, "option '%.*s' needs an argument", length, word);
    if (optopt)
        return ft_command_usage(c, "option '%.*s' takes no argument", length, word);
    for (unsigned i = 0; i < g->n && length > 2; i++)
        matches += strncmp(g->longs[i].name, word + 2, (size_t)length - 2) == 0;
    return ft_command_usage(
        c, matches > 1 ? "option '%.*s' is ambiguous" : "unknown option '%.*s'", length,
        word);
}

static int common_option(const ft_command *c, int code)
{
    switch (code) {
    case CODE_QUIET:
        ft_set_verbosity(FT_QUIET);
        return FT_GO_ON;
    case CODE_VERBOSE:
        ft_set_verbosity(FT_VERBOSE);
        return FT_GO_ON;
    case CODE_PROGRESS:
        ft_set_progress(true);
        return FT_GO_ON;
    case CODE_HELP:
        return ft_print_help(c);
    case CODE_VERSION:
        return ft_print_version(c);
    default:
        return ft_print_help_options(c);
    }
}

/* FT_GO_ON with optind at the first operand, or the status to exit with. */
static int parse_options(const ft_command *c, int argc, char **argv, bool stop)
{
    getopt_tables g;
    int letter, rc = FT_GO_ON;
    make_tables(&g, c->options, stop);
    optind = 0; /* GNU: start anew */
    opterr = 0;
    while (rc == FT_GO_ON &&
           (letter = getopt_long(argc, argv, g.shorts, g.longs, NULL)) != -1) {
        const int code = code_of(c->options, letter);
        if (letter == '?' || letter == ':') {
            rc = bad_option(c, &g, letter == ':', argv[optind - 1]);
        } else if (code < FIRST_ROW) {
            rc = common_option(c, code);
        } else {
            const ft_option *o = &c->options[code - FIRST_ROW];
            const char *text = optarg ? optarg : o->absent;
            if (!set_value(o, text))
                rc = bad_value(c, o, text);
        }
    }
    return rc;
}

int ft_command_parse(const ft_command *c, int argc, char **argv, ft_operands *operands)
{
    const int rc = parse_options(c, argc, argv, false), n = argc - optind;
    if (rc != FT_GO_ON)
        return rc;
    if (n < c->min_operands)
        return ft_command_usage(c, "operands are missing: %s", c->operands);
    if (n > c->max_operands)
        return ft_command_usage(c, "one operand too many: '%s'",
                                argv[optind + c->max_operands]);
    *operands = (ft_operands){argv + optind, (uint32_t)n};
    return FT_GO_ON;
}

int ft_command_usage(const ft_command *c, const char *format, ...)
{
    char text[FT_ERROR_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    ft_say("%s", text);
    ft_say("try '%s%s%s --help'", c->program, c->subcommand ? " " : "",
           c->subcommand ? c->subcommand : "");
    return FT_EXIT_USAGE;
}

int ft_subcommands_run(const char *program, const char *summary,
                       const ft_subcommand *rows, int argc, char **argv)
{
    const ft_command c = {.program = program,
                          .summary = summary,
                          .operands = "SUBCOMMAND [OPERAND...]",
                          .subcommands = rows};
    const int rc = parse_options(&c, argc, argv, true), first = optind;
    if (rc != FT_GO_ON)
        return rc;
    if (first == argc)
        return ft_command_usage(&c, "a subcommand is missing");
    for (const ft_subcommand *s = rows; s->name; s++)
        if (strcmp(s->name, argv[first]) == 0)
            return s->run(s, argc - first, argv + first);
    return ft_command_usage(&c, "unknown subcommand '%s'", argv[first]);
}
