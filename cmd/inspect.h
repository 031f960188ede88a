/* SPDX-License-Identifier: Apache-2.0
 *
 * The subcommands of ft-inspect and what they share.
 */
#ifndef FT_CMD_INSPECT_H
#define FT_CMD_INSPECT_H

#include "common.h"
#include "options.h"
#include "vocab.h"

typedef int ft_inspect_run(const ft_subcommand *self, int argc, char **argv);

ft_inspect_run ft_inspect_stats, ft_inspect_verify;     /* inspect_stats.c */
ft_inspect_run ft_inspect_dump, ft_inspect_lookup;      /* inspect_keys.c */
ft_inspect_run ft_inspect_children, ft_inspect_predict; /* inspect_walk.c */
ft_inspect_run ft_inspect_grid;                         /* inspect_grid.c */
ft_inspect_run ft_inspect_results;                      /* inspect_results.c */

/* The rest is in inspect_shared.c.
 *
 * Standard output, an index and a vocabulary, as most subcommands need them; what is
 * not asked for stays NULL. */
typedef struct ft_inspect {
    ft_sink *out;
    ft_index *index;
    ft_vocab *vocab;
} ft_inspect;

/* index_path and vocab_path may be NULL. */
ft_status ft_inspect_open(ft_inspect *in, ft_output_kind kind, const char *index_path,
                          const char *vocab_path, ft_error *err);

/* Close all, report, and return the status to exit with. */
int ft_inspect_close(ft_inspect *in, ft_status st, ft_error *err);

/* Operands as a prefix: free *tokens. A bad one is a usage error; *rc is then the
 * status to exit with, else FT_GO_ON. NULL: *rc says why. */
uint32_t *ft_inspect_prefix(const ft_command *c, const ft_operands *operands,
                            uint32_t first, int *rc);

/* "1 20 300" */
ft_status ft_inspect_tokens(ft_sink *out, const uint32_t *tokens, uint32_t n,
                            ft_error *err);

/* A tab and the texts of the tokens, joined; nothing without a vocabulary. */
ft_status ft_inspect_texts(ft_sink *out, const ft_vocab *vocab, const uint32_t *tokens,
                           uint32_t n, ft_error *err);

#endif
