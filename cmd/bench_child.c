/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

void *ft_bench_share(size_t bytes, ft_error *err)
{
    void *p =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        ft_fail_errno(err, FT_ENOMEM, errno, "%zu bytes to share", bytes);
        return NULL;
    }
    return p;
}

void ft_bench_unshare(void *shared, size_t bytes)
{
    if (shared)
        munmap(shared, bytes);
}

/* The child holds the pipe's other end until it ends, whatever it has become. */
static bool ends_in_time(int fd, double limit)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    const double end = ft_seconds() + limit;
    for (;;) {
        const double left = end - ft_seconds();
        const int ms = limit <= 0   ? -1
                       : left <= 0  ? 0
                       : left > 1e6 ? 1000000000
                                    : (int)(1e3 * left) + 1;
        const int n = poll(&p, 1, ms);
        if (n > 0 || (n < 0 && errno != EINTR))
            return true;
        if (n == 0 && limit > 0 && ft_seconds() >= end)
            return false;
    }
}

static ft_status reap(pid_t child, ft_bench_usage *usage, ft_error *err)
{
    struct rusage r;
    int status;
    while (wait4(child, &status, 0, &r) < 0)
        if (errno != EINTR)
            return ft_fail_errno(err, FT_EIO, errno, "cannot wait for a process");
    usage->peak_bytes = (uint64_t)r.ru_maxrss * 1024;
    if (WIFSIGNALED(status) && !usage->late)
        return ft_fail(err, FT_EIO, "the process died: %s",
                       strsignal(WTERMSIG(status)));
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
        return ft_fail(err, FT_EIO, "the process ended with status %d",
                       WEXITSTATUS(status));
    return FT_OK;
}

ft_status ft_bench_child(bool (*work)(void *arg), void *arg, double limit,
                         ft_bench_usage *usage, ft_error *err)
{
    int ends[2];
    const pid_t parent = getpid();
    *usage = (ft_bench_usage){.seconds = 0};
    if (pipe(ends) != 0)
        return ft_fail_errno(err, FT_EIO, errno, "cannot make a pipe");
    const double start = ft_seconds();
    const pid_t child = fork();
    if (child < 0) {
        close(ends[0]);
        close(ends[1]);
        return ft_fail_errno(err, FT_EIO, errno, "cannot start a process");
    }
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        _exit(getppid() == parent && work(arg) ? 0 : 1);
    }
    close(ends[1]);
    usage->late = !ends_in_time(ends[0], limit);
    usage->seconds = ft_seconds() - start;
    if (usage->late)
        kill(child, SIGKILL);
    close(ends[0]);
    return reap(child, usage, err);
}

ft_status ft_bench_scratch_open(ft_bench_scratch *s, const char *folder, ft_error *err)
{
    char name[4096];
    sigset_t all, before;
    snprintf(name, sizeof name, "%s/ft-bench.XXXXXX", folder);
    sigfillset(&all); /* no signal between the name's coming and going */
    sigprocmask(SIG_SETMASK, &all, &before);
    s->fd = mkstemp(name);
    const int errnum = errno;
    if (s->fd >= 0)
        unlink(name);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (s->fd < 0)
        return ft_fail_errno(err, FT_EIO, errnum, "%s", name);
    snprintf(s->path, sizeof s->path, "/proc/self/fd/%d", s->fd);
    return FT_OK;
}

void ft_bench_scratch_close(ft_bench_scratch *s)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}
