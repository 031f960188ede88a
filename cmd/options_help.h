/* SPDX-License-Identifier: Apache-2.0
 *
 * What option tables look like in words: part of options.c, not for commands.
 */
#ifndef FT_CMD_OPTIONS_HELP_H
#define FT_CMD_OPTIONS_HELP_H

#include "options.h"

extern const ft_option ft_common_options[];

/* What the row takes, to complete "'12x' is not ...". Returns text. */
enum { FT_WANTED_BYTES = 256 };
const char *ft_option_wants(const ft_option *o, char text[FT_WANTED_BYTES]);

/* On standard output; they return the status to exit with. ft_print_help_options gives
 * a line an option: --long, -letter, argument, choices (a|b), subcommand, split by
 * tabs,
 * "-" for what it has not. An argument that may be left out stands in brackets. A
 * command with subcommands gives the options before them, then those of each. */
int ft_print_help(const ft_command *c);
int ft_print_version(const ft_command *c);
int ft_print_help_options(const ft_command *c);

#endif
