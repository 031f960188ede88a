/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/root_parts.h"

#include "base/bits.h"

enum { RUN = 1024 }; /* labels at a time */

void ft_root_parts_make(ft_root_parts *r, const ft_trie *trie)
{
    const ft_range all = trie->ops->children(trie, 0);
    const unsigned width = ft_bit_width(trie->max_token);
    const unsigned of_part = ft_bit_width(FT_ROOT_PARTS - 1);
    uint32_t tokens[RUN], part = 0;
    r->first = all.first;
    r->max_token = trie->max_token;
    if (trie->ops->code) {
        r->shift = width;
        r->place[0] = 0;
        r->place[1] = (uint32_t)all.count;
        return;
    }
    r->shift = width > of_part ? width - of_part : 0;
    for (uint64_t done = 0; done < all.count; done += RUN) {
        const uint64_t n = all.count - done < RUN ? all.count - done : RUN;
        trie->ops->labels(trie, all.first + done, n, tokens);
        for (uint64_t i = 0; i < n; i++)
            /* An index that nobody verified may have larger tokens. */
            while (part <= tokens[i] >> r->shift && part <= FT_ROOT_PARTS)
                r->place[part++] = (uint32_t)(done + i);
    }
    while (part <= FT_ROOT_PARTS)
        r->place[part++] = (uint32_t)all.count;
}
