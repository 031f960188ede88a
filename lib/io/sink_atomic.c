/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that appear whole or not at all: written under a temporary name in the same
 * folder, synced, renamed, the folder synced.
 */
#include "io/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MAX_OPEN = 32,
    MAX_LINKS = 40, /* as the kernel's ELOOP */
    MAX_TRIES = 100,
    MAX_NAME = 200 /* of the target's name in the temporary one: NAME_MAX is 255 */
};

/* Paths of temporary files, for a signal handler: memory that is never freed. */
typedef enum slot_state { SLOT_FREE, SLOT_TAKEN, SLOT_ARMED } slot_state;
static struct slot {
    _Atomic int state;
    char path[PATH_MAX];
} slots[MAX_OPEN];

struct ft_sink_atomic {
    struct slot *slot;
    char target[PATH_MAX];
};

static struct slot *take_slot(void)
{
    for (int i = 0; i < MAX_OPEN; i++) {
        int expected = SLOT_FREE;
        if (atomic_compare_exchange_strong(&slots[i].state, &expected, SLOT_TAKEN))
            return &slots[i];
    }
    return NULL;
}

void ft_sink_abort_all(void)
{
    const int saved = errno;
    for (int i = 0; i < MAX_OPEN; i++)
        if (atomic_load(&slots[i].state) == SLOT_ARMED)
            unlink(slots[i].path);
    errno = saved;
}

/* Length of path's folder, its last slash included. */
static int folder_bytes(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash - path) + 1 : 0;
}

/* Follow symbolic links, dangling ones too: the link stays, its target is replaced. */
static ft_status follow_links(char target[PATH_MAX], const char *path, ft_error *err)
{
    char link[PATH_MAX], next[PATH_MAX];
    if (strlen(path) >= PATH_MAX)
        return ft_fail_errno(err, FT_EIO, ENAMETOOLONG, "%s", path);
    strcpy(target, path);
    for (int i = 0; i < MAX_LINKS; i++) {
        const ssize_t n = readlink(target, link, sizeof link - 1);
        if (n < 0)
            return FT_OK; /* no link, or not there: open says what is wrong */
        link[n] = '\0';
        const int folder = link[0] == '/' ? 0 : folder_bytes(target);
        const int k = snprintf(next, sizeof next, "%.*s%s", folder, target, link);
        if (k < 0 || (size_t)k >= sizeof next)
            return ft_fail_errno(err, FT_EIO, ENAMETOOLONG, "%s", path);
        strcpy(target, next);
    }
    return ft_fail_errno(err, FT_EIO, ELOOP, "%s: cannot open for writing", path);
}

/* Create ".NAME.PID.tmp" next to the target; a number more if that is taken. */
static int create_temporary(struct slot *slot, const char *target, mode_t mode)
{
    const int folder = folder_bytes(target);
    const char *base = target + folder;
    for (int i = 0; i < MAX_TRIES; i++) {
        char number[16] = "";
        if (i)
            snprintf(number, sizeof number, ".%d", i);
        const int n = snprintf(slot->path, sizeof slot->path, "%.*s.%.*s.%ld%s.tmp",
                               folder, target, MAX_NAME, base, (long)getpid(), number);
        if (n < 0 || (size_t)n >= sizeof slot->path) {
            errno = ENAMETOOLONG;
            return -1;
        }
        /* Armed first, so that a signal in between leaves nothing behind. */
        atomic_store(&slot->state, SLOT_ARMED);
        const int fd = open(slot->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd >= 0)
            return fd;
        atomic_store(&slot->state, SLOT_TAKEN);
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

static ft_status open_temporary(ft_sink **out, const char *path, ft_sink_atomic *a,
                                const struct stat *old, ft_error *err)
{
    ft_sink *s = NULL;
    ft_status st = FT_OK;
    const int fd =
        create_temporary(a->slot, a->target, old ? old->st_mode & 0777 : 0666);
    if (fd < 0)
        return ft_fail_errno(err, FT_EIO, errno, "%s: cannot create a temporary file",
                             path);
    if (old && fchmod(fd, old->st_mode & 0777) != 0) {
        st = ft_fail_errno(err, FT_EIO, errno, "%s: cannot set permissions", path);
        close(fd);
    } else {
        st = ft_sink_open_fd(&s, path, fd, err);
    }
    if (st != FT_OK) {
        unlink(a->slot->path);
        return st;
    }
    s->atomic = a;
    *out = s;
    return FT_OK;
}

ft_status ft_sink_open_atomic(ft_sink **out, const char *path, ft_error *err)
{
    struct stat old;
    if (!path || strcmp(path, "-") == 0)
        return ft_sink_open(out, path, err);
    const bool exists = stat(path, &old) == 0;
    if (exists && !S_ISREG(old.st_mode))
        return ft_sink_open(out, path, err);
    if (exists && access(path, W_OK) != 0)
        return ft_fail_errno(err, FT_EIO, errno, "%s: cannot open for writing", path);
    ft_sink_atomic *a = ft_new(ft_sink_atomic, err);
    if (!a)
        return FT_ENOMEM;
    ft_status st = follow_links(a->target, path, err);
    if (st == FT_OK && !(a->slot = take_slot()))
        st = ft_fail(err, FT_EINVAL, "%s: more than %d output files open at once", path,
                     MAX_OPEN);
    if (st == FT_OK)
        st = open_temporary(out, path, a, exists ? &old : NULL, err);
    if (st != FT_OK) {
        if (a->slot)
            atomic_store(&a->slot->state, SLOT_FREE);
        free(a);
    }
    return st;
}

static int sync_folder(const char *target)
{
    char folder[PATH_MAX];
    const int n = folder_bytes(target);
    snprintf(folder, sizeof folder, "%.*s", n ? n : 1, n ? target : ".");
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    const int failed = fsync(fd), errnum = errno;
    close(fd);
    errno = errnum;
    return failed;
}

ft_status ft_sink_atomic_commit(ft_sink *s)
{
    ft_sink_atomic *a = s->atomic;
    if (!a->slot)
        return FT_OK; /* done before */
    if (fsync(s->fd) != 0)
        return ft_fail_errno(&s->failure, FT_EIO, errno, "%s: cannot sync", s->name);
    const int fd = s->fd;
    s->fd = -1;
    if (close(fd) != 0 && errno != EINTR)
        return ft_fail_errno(&s->failure, FT_EIO, errno, "%s: cannot write", s->name);
    if (rename(a->slot->path, a->target) != 0)
        return ft_fail_errno(&s->failure, FT_EIO, errno, "%s: cannot rename to it",
                             s->name);
    atomic_store(&a->slot->state, SLOT_FREE);
    a->slot = NULL;
    if (sync_folder(a->target) != 0)
        return ft_fail_errno(&s->failure, FT_EIO, errno, "%s: cannot sync its folder",
                             s->name);
    return FT_OK;
}

void ft_sink_atomic_discard(ft_sink *s)
{
    ft_sink_atomic *a = s->atomic;
    if (a->slot) {
        unlink(a->slot->path);
        atomic_store(&a->slot->state, SLOT_FREE);
    }
    free(a);
}
