/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/layout.h"

#include "trie/build.h"
#include "trie/checksum.h"
#include "trie/tails.h"

static const ft_layout *const layouts[] = {
    &ft_layout_compact,      &ft_layout_narrow,     &ft_layout_wide,
    &ft_layout_narrow_tails, &ft_layout_wide_tails, &ft_layout_compact_tails};

enum { N_LAYOUTS = sizeof layouts / sizeof *layouts };

const ft_layout *ft_layout_row(uint32_t i)
{
    return i < N_LAYOUTS ? layouts[i] : NULL;
}

const ft_layout *ft_layout_by_name(const char *name)
{
    if (!name)
        return layouts[0];
    for (uint32_t i = 0; i < N_LAYOUTS; i++)
        if (strcmp(layouts[i]->name, name) == 0)
            return layouts[i];
    return NULL;
}

const ft_layout *ft_layout_by_id(uint32_t id)
{
    for (uint32_t i = 0; i < N_LAYOUTS; i++)
        if (layouts[i]->id == id)
            return layouts[i];
    return NULL;
}

const char *ft_layout_name(uint32_t i)
{
    return i < N_LAYOUTS ? layouts[i]->name : NULL;
}

const char *ft_layout_summary(uint32_t i)
{
    return i < N_LAYOUTS ? layouts[i]->summary : NULL;
}

bool ft_layout_takes_tails(uint32_t i)
{
    return i < N_LAYOUTS && ft_tails_form_over(layouts[i]);
}

static const struct {
    uint32_t type;
    const char *name;
} section_names[] = {
    {FT_SECTION_LOUDS, "louds"},
    {FT_SECTION_LOUDS_RANK, "louds-rank"},
    {FT_SECTION_LOUDS_SELECT, "louds-select"},
    {FT_SECTION_TERMINAL, "terminal"},
    {FT_SECTION_TERMINAL_RANK, "terminal-rank"},
    {FT_SECTION_LABELS, "labels"},
    {FT_SECTION_LABELS_LOW, "labels-low"},
    {FT_SECTION_HIGH_FLAGS, "high-flags"},
    {FT_SECTION_HIGH_RANK, "high-rank"},
    {FT_SECTION_HIGH, "high"},
    {FT_SECTION_IDS, "ids"},
    {FT_SECTION_TAIL, "tail"},
    {FT_SECTION_LINK_FLAGS, "link-flags"},
    {FT_SECTION_LINK_RANK, "link-rank"},
    {FT_SECTION_LINK_HIGH, "link-high"},
    {FT_SECTION_TREE, "tree"},
    {FT_SECTION_REGIONS, "regions"},
    {FT_SECTION_TOKEN_SETS, "token-sets"},
    {FT_SECTION_TOKEN_CLASSES, "token-classes"},
    {FT_SECTION_ROOT_BLOCKS, "root-blocks"},
    {FT_SECTION_BLOCKS, "blocks"},
    {FT_SECTION_SIBLINGS, "siblings"},
    {FT_SECTION_SIBLING_RANK, "sibling-rank"},
    {FT_SECTION_CODES, "codes"},
};

const char *ft_section_name(uint32_t type)
{
    for (size_t i = 0; i < sizeof section_names / sizeof *section_names; i++)
        if (section_names[i].type == type)
            return section_names[i].name;
    return NULL;
}

uint64_t ft_index_front_checksum(const ft_index_front *front)
{
    ft_index_front copy = *front;
    copy.header.checksum = 0;
    return ft_checksum(&copy, sizeof copy);
}

const ft_section_entry *ft_sections_entry(const ft_sections *s, uint32_t type)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->table[i].type == type)
            return &s->table[i];
    return NULL;
}

ft_status ft_sections_find(const ft_sections *s, const ft_section_want *want,
                           const void **data, ft_error *err)
{
    const char *name = ft_section_name(want->type);
    const ft_section_entry *e = ft_sections_entry(s, want->type);
    if (!e)
        return ft_fail(err, FT_EFORMAT, "section %s: missing", name);
    if (e->items != want->items)
        return ft_fail(err, FT_EFORMAT, "section %s: %llu items, %llu expected", name,
                       (unsigned long long)e->items, (unsigned long long)want->items);
    if (e->raw_bytes != want->raw_bytes)
        return ft_fail(err, FT_EFORMAT, "section %s: %llu bytes, %llu expected", name,
                       (unsigned long long)e->raw_bytes,
                       (unsigned long long)want->raw_bytes);
    if (e->param != want->param)
        return ft_fail(err, FT_EFORMAT, "section %s: parameter %u, %u expected", name,
                       e->param, want->param);
    *data = s->data[e - s->table];
    return FT_OK;
}

ft_status ft_sections_only(const ft_sections *s, uint32_t n_known, ft_error *err)
{
    if (s->n != n_known)
        return ft_fail(err, FT_EFORMAT, "%u sections, %u expected", s->n, n_known);
    return FT_OK;
}
