/* SPDX-License-Identifier: Apache-2.0
 *
 * An index in device memory: its sections as they are, each in an allocation of its
 * own.
 */
#ifndef FT_GPU_DEVICE_INDEX_H
#define FT_GPU_DEVICE_INDEX_H

#include "cuda.h"
#include "lib.h"

typedef struct ft_device_index {
    const ft_index *index;
    const ft_trie *trie;
    uint32_t n_sections;
    void **sections;  /* device memory, by section number */
    uint64_t bytes;   /* of all of them */
    double seconds;   /* that the copy took */
    uint32_t *tables; /* the layout's own (launch.h: make_tables), or NULL; also: */
    void *starts;
    uint32_t *lists;
    uint32_t *leaves; /* before each node of the tree, where it has tails; or NULL */
} ft_device_index;

/* Copy the sections to the current device. FT_ENOMEM names the bytes needed and free.
 */
ft_status ft_device_index_open(ft_device_index *d, const ft_index *index,
                               ft_error *err);
void ft_device_index_close(ft_device_index *d);

/* The device's address of what lies at `host` in a section; NULL for NULL. */
const void *ft_device_address(const ft_device_index *d, const void *host);

/* The same with the type kept: ft_on_device(d, &view.words). */
template <class T> static inline void ft_on_device(const ft_device_index *d, T **p)
{
    *p = static_cast<T *>(const_cast<void *>(ft_device_address(d, *p)));
}

#endif
