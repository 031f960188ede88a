/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/keygen.h"

#include <stddef.h>
#include <string.h>

#include "base/score.h"

static const struct preset {
    const char *name, *summary;
    ft_keygen_params p;
} presets[] = {
    {"paper",
     "keywords: 2.2 million tokens, about 1.15 nodes a key at 800 million keys",
     {.n_keys = 1000000,
      .seed = 1,
      .vocab = 2200000,
      .max_length = 16,
      .skew = 0.96,
      .id_noise = 1.44,
      .sharing = 0.54,
      .fans = 0.25,
      .prefix_keys = 0.4,
      .tail = 0.03,
      .long_tails = 0.01}},
    {"titles",
     "titles: 200 thousand tokens, about 3 nodes a key, up to 64 tokens",
     {.n_keys = 1000000,
      .seed = 1,
      .vocab = 200000,
      .max_length = 64,
      .skew = 0.98,
      .id_noise = 1.44,
      .sharing = 0.58,
      .fans = 0.08,
      .prefix_keys = 0.34,
      .tail = 1.55,
      .long_tails = 0.03}},
};

enum { N_PRESETS = sizeof presets / sizeof presets[0] };

const char *ft_keygen_preset_name(uint32_t i)
{
    return i < N_PRESETS ? presets[i].name : NULL;
}

const char *ft_keygen_preset_summary(uint32_t i)
{
    return i < N_PRESETS ? presets[i].summary : NULL;
}

ft_status ft_keygen_preset(ft_keygen_params *p, const char *name, ft_error *err)
{
    for (uint32_t i = 0; i < N_PRESETS; i++)
        if (strcmp(presets[i].name, name) == 0) {
            *p = presets[i].p;
            return FT_OK;
        }
    return ft_fail(err, FT_EINVAL, "no preset is called '%s'", name);
}

ft_status ft_keygen_check(const ft_keygen_params *p, ft_error *err)
{
    const struct {
        const char *name;
        double value, max;
    } ranges[] = {{"skew", p->skew, 4},
                  {"id noise", p->id_noise, 8},
                  {"sharing", p->sharing, 1},
                  {"fans", p->fans, 1},
                  {"prefix keys", p->prefix_keys, 1},
                  {"tail", p->tail, 1000},
                  {"long tails", p->long_tails, 1}};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (!(ranges[i].value >= 0 && ranges[i].value <= ranges[i].max))
            return ft_fail(err, FT_EINVAL, "%s must be 0 to %g", ranges[i].name,
                           ranges[i].max);
    if (p->n_keys < 1 || p->n_keys > FT_KEYGEN_MAX_KEYS)
        return ft_fail(err, FT_EINVAL, "keys must be 1 to %llu",
                       (unsigned long long)FT_KEYGEN_MAX_KEYS);
    if (p->vocab < 1)
        return ft_fail(err, FT_EINVAL, "vocab must be at least 1");
    if (p->max_length < 1 || p->max_length > FT_MAX_KEY_TOKENS)
        return ft_fail(err, FT_EINVAL, "max length must be 1 to %d", FT_MAX_KEY_TOKENS);
    return FT_OK;
}
