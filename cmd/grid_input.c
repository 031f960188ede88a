/* SPDX-License-Identifier: Apache-2.0 */
#include "grid_input.h"

ft_status ft_grid_input_open(ft_grid **out, const ft_operands *operands, uint32_t *i,
                             ft_error *err)
{
    const char *path = *i < operands->n ? operands->v[*i] : NULL;
    ft_stream *first = NULL, *second = NULL;
    bool npy = false;
    ft_status st = ft_stream_open(&first, path, err);
    if (st == FT_OK)
        st = ft_grid_is_npy(first, &npy, err);
    if (st == FT_OK && npy && *i + 1 >= operands->n)
        st = ft_fail(err, FT_EINVAL,
                     "%s: a NumPy file of tokens: name the one of log-probs behind it",
                     ft_stream_name(first));
    if (st == FT_OK && npy)
        st = ft_stream_open(&second, operands->v[++*i], err);
    if (st != FT_OK) {
        ft_stream_close(first);
        return st;
    }
    return npy ? ft_grid_open_npy(out, first, second, err)
               : ft_grid_open(out, first, err);
}
