/* SPDX-License-Identifier: Apache-2.0 */
#include "options_help.h"

#include <stdio.h>
#include <string.h>

#include "common.h"

const ft_option ft_common_options[] = {
    {FT_OPT_FLAG, 'q', "quiet", NULL, NULL, "say nothing but errors and warnings"},
    {FT_OPT_FLAG, 'v', "verbose", NULL, NULL, "say more"},
    {FT_OPT_FLAG, 0, "progress", NULL, NULL,
     "show progress, also where standard error is no terminal"},
    {FT_OPT_FLAG, 'h', "help", NULL, NULL, "print this help and exit"},
    {FT_OPT_FLAG, 'V', "version", NULL, NULL, "print the version and exit"},
    FT_OPTIONS_END};

static const char *join(const char *const *names, const char *separator, char *text,
                        size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; names[i] && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", i ? separator : "",
                                 names[i]);
    return text;
}

const char *ft_option_wants(const ft_option *o, char text[FT_WANTED_BYTES])
{
    const bool whole = o->kind == FT_OPT_U32 || o->kind == FT_OPT_U64;
    const char *what = whole                    ? "a whole number"
                       : o->kind == FT_OPT_SIZE ? "a size such as 4096, 64K, 512M or 2G"
                                                : "a number";
    const size_t bytes = FT_WANTED_BYTES;
    if (o->kind == FT_OPT_ENUM) {
        const int used = snprintf(text, bytes, "one of ");
        join(o->choices, ", ", text + used, bytes - (size_t)used);
    } else if (o->kind == FT_OPT_LIST) {
        snprintf(text, bytes, "kept: out of memory");
    } else if (o->min != 0 || o->max != 0) {
        snprintf(text, bytes, "%s from %.16g to %.16g", what, o->min, o->max);
    } else if (whole) {
        snprintf(text, bytes, "%s from 0 to %llu", what,
                 (unsigned long long)(o->kind == FT_OPT_U32 ? UINT32_MAX : UINT64_MAX));
    } else {
        snprintf(text, bytes, "%s", what);
    }
    return text;
}

/* "-b, --beam N", "    --compress[=LEVEL]" */
static void spell(const ft_option *o, char *text, size_t bytes)
{
    const char *open = !o->argument ? "" : o->absent ? "[=" : " ";
    char letter[8] = "   ";
    if (o->letter)
        snprintf(letter, sizeof letter, "-%c,", o->letter);
    snprintf(text, bytes, "%s --%s%s%s%s", letter, o->name, open,
             o->argument ? o->argument : "", o->absent ? "]" : "");
}

static ft_status print_row(ft_sink *out, const ft_option *o, ft_error *err)
{
    enum { HELP_COLUMN = 30 };
    char left[128], names[FT_WANTED_BYTES] = "";
    const bool choices = o->kind == FT_OPT_ENUM;
    ft_status st;
    spell(o, left, sizeof left);
    if (choices)
        join(o->choices, ", ", names, sizeof names);
    st = ft_sink_printf(out, err, "  %-*s", HELP_COLUMN - 2, left);
    if (st == FT_OK && strlen(left) >= HELP_COLUMN - 2)
        st = ft_sink_printf(out, err, "\n%*s", HELP_COLUMN, "");
    if (st == FT_OK)
        st = ft_sink_printf(out, err, "%s%s%s\n", o->help, choices ? ": " : "", names);
    return st;
}

static ft_status print_rows(ft_sink *out, const ft_option *rows, ft_error *err)
{
    ft_status st = FT_OK;
    for (; st == FT_OK && rows && rows->kind != FT_OPT_END; rows++)
        st = print_row(out, rows, err);
    return st;
}

static ft_status help_text(ft_sink *out, const ft_command *c, ft_error *err)
{
    ft_status st =
        ft_sink_printf(out, err, "Usage: %s%s%s [OPTION...]%s%s\n%s\n\n", c->program,
                       c->subcommand ? " " : "", c->subcommand ? c->subcommand : "",
                       c->operands[0] ? " " : "", c->operands, c->summary);
    for (const ft_subcommand *s = c->subcommands; st == FT_OK && s && s->name; s++)
        st = ft_sink_printf(out, err, "  %-12s %s\n%s", s->name, s->summary,
                            s[1].name ? "" : "\n");
    if (st == FT_OK)
        st = print_rows(out, c->options, err);
    if (st == FT_OK)
        st = print_rows(out, ft_common_options, err);
    if (st == FT_OK)
        st = ft_sink_printf(out, err, "\nThe manual: man %s\n", c->program);
    return st;
}

static ft_status option_lines(ft_sink *out, const ft_option *rows, const char *of,
                              ft_error *err)
{
    ft_status st = FT_OK;
    for (; st == FT_OK && rows && rows->kind != FT_OPT_END; rows++) {
        const char letter[3] = {'-', rows->letter, '\0'};
        char names[FT_WANTED_BYTES] = "-";
        if (rows->kind == FT_OPT_ENUM)
            join(rows->choices, "|", names, sizeof names);
        st = ft_sink_printf(out, err, "--%s\t%s\t%s%s%s\t%s\t%s\n", rows->name, letter,
                            rows->absent ? "[" : "",
                            rows->argument ? rows->argument : "-",
                            rows->absent ? "]" : "", names, of);
    }
    return st;
}

static int print(const ft_command *c,
                 ft_status (*text)(ft_sink *, const ft_command *, ft_error *))
{
    ft_error err;
    ft_sink *out = NULL;
    ft_status st = ft_output_open(&out, NULL, FT_OUTPUT_TEXT, &err);
    if (st == FT_OK)
        st = text(out, c, &err);
    return ft_finish(ft_output_close(out, st, &err), &err);
}

static ft_status version_text(ft_sink *out, const ft_command *c, ft_error *err)
{
    return ft_sink_printf(out, err, "%s %s\n", c->program, FT_VERSION);
}

static ft_status all_option_lines(ft_sink *out, const ft_command *c, ft_error *err)
{
    const char *of = c->subcommand ? c->subcommand : "-";
    const ft_status st = option_lines(out, c->options, of, err);
    return st == FT_OK ? option_lines(out, ft_common_options, of, err) : st;
}

int ft_print_help(const ft_command *c)
{
    return print(c, help_text);
}

int ft_print_version(const ft_command *c)
{
    return print(c, version_text);
}

/* A subcommand is asked through its own parser: nobody else has its table. */
int ft_print_help_options(const ft_command *c)
{
    int rc = print(c, all_option_lines);
    for (const ft_subcommand *s = c->subcommands; rc == FT_EXIT_DONE && s && s->name;
         s++) {
        char name[64], option[] = "--help-options", *argv[] = {name, option, NULL};
        snprintf(name, sizeof name, "%s", s->name);
        rc = s->run(s, 2, argv);
    }
    return rc;
}
