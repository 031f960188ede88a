/* SPDX-License-Identifier: Apache-2.0 */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The commands' only state: how they speak. */
static struct {
    const char *program;
    ft_verbosity verbosity;
    bool always_progress;
    bool line_shown;      /* a progress line stands on the terminal */
    double next_progress; /* seconds */
} self = {.program = "flashtrie"};

static const double progress_interval = 0.25;

static volatile sig_atomic_t defers, deferred; /* deferred: the signal, or 0 */
static volatile double deferred_at;

/* timeout(1) sends a signal to its child, and then to the child's group. */
static const double same_signal = 0.5;

/* Remove what is half written, then die of the signal, so that the shell sees it. */
static void on_signal(int number)
{
    const double now = ft_seconds();
    if (defers && !deferred) {
        deferred_at = now;
        deferred = number;
        return;
    }
    if (defers && now - deferred_at < same_signal)
        return;
    ft_sink_abort_all();
    signal(number, SIG_DFL);
    raise(number);
}

void ft_defer_signals(bool on)
{
    defers = on;
    if (!on && deferred)
        on_signal(deferred); /* it does not come back */
}

bool ft_signal_deferred(void)
{
    return deferred != 0;
}

static void catch_signals(void)
{
    static const int fatal[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction act = {.sa_handler = on_signal}, old;
    sigemptyset(&act.sa_mask);
    for (unsigned i = 0; i < sizeof fatal / sizeof fatal[0]; i++)
        sigaddset(&act.sa_mask, fatal[i]);
    for (unsigned i = 0; i < sizeof fatal / sizeof fatal[0]; i++)
        if (sigaction(fatal[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(fatal[i], &act, NULL); /* nohup stays in force */
    signal(SIGPIPE, SIG_IGN); /* writes fail with EPIPE and are cleaned up after */
    signal(SIGXFSZ, SIG_IGN); /* writes fail with EFBIG and get a message */
}

/* A command started with a standard descriptor closed must not have a data file opened
 * in its place. The stand-in refuses the wanted access, so that use is an error. */
static bool fill_standard_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) == -1 &&
            open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            return false;
    return true;
}

static bool processor_fits(void)
{
#if defined(__x86_64__) && defined(__AVX2__) && defined(__BMI2__)
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
#else
    return true;
#endif
}

bool ft_start(const char *program)
{
    self.program = program;
    if (!fill_standard_descriptors())
        return false;
    if (!processor_fits()) {
        ft_say("this build is for processors with AVX2, BMI and FMA (x86-64-v3): build "
               "it anew with ARCH=-march=x86-64");
        return false;
    }
    setlocale(LC_CTYPE, "");
    catch_signals();
    return true;
}

static void wipe_line(void)
{
    if (self.line_shown)
        fputs("\r\033[K", stderr);
    self.line_shown = false;
}

/* One write a message, so that messages of several processes do not mix. */
static void put_line(const char *format, va_list args)
{
    char text[FT_ERROR_BYTES + 256];
    const int used = snprintf(text, sizeof text, "%s: ", self.program);
    const size_t room = sizeof text - (size_t)used - 1;
    const int n = vsnprintf(text + used, room, format, args);
    size_t length = (size_t)used + (n < 0              ? 0
                                    : (size_t)n < room ? (size_t)n
                                                       : room - 1);
    text[length++] = '\n';
    fwrite(text, 1, length, stderr);
    fflush(stderr);
}

void ft_say(const char *format, ...)
{
    va_list args;
    wipe_line();
    va_start(args, format);
    put_line(format, args);
    va_end(args);
}

int ft_finish(ft_status st, const ft_error *err)
{
    ft_progress_end();
    if (st == FT_OK || st == FT_EPIPE)
        return FT_EXIT_DONE;
    ft_say("%s", err->message);
    return st == FT_EUNAVAILABLE ? FT_EXIT_UNAVAILABLE : FT_EXIT_FAILED;
}

void ft_set_verbosity(ft_verbosity v)
{
    self.verbosity = v;
}

void ft_set_progress(bool always)
{
    self.always_progress = always;
}

bool ft_is_quiet(void)
{
    return self.verbosity == FT_QUIET;
}

bool ft_is_verbose(void)
{
    return self.verbosity == FT_VERBOSE;
}

double ft_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool ft_progress_due(void)
{
    double now;
    if (self.verbosity == FT_QUIET || !(self.always_progress || isatty(2)))
        return false;
    now = ft_seconds();
    if (self.next_progress == 0.0)
        self.next_progress = now + progress_interval; /* nothing for what is quick */
    if (now < self.next_progress)
        return false;
    self.next_progress = now + progress_interval;
    return true;
}

void ft_progress(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (isatty(2)) {
        fprintf(stderr, "\r%s: ", self.program);
        vfprintf(stderr, format, args);
        fputs("\033[K", stderr);
        fflush(stderr);
        self.line_shown = true;
    } else {
        put_line(format, args);
    }
    va_end(args);
}

void ft_progress_end(void)
{
    wipe_line();
}

const char *ft_short_count(uint64_t n, char text[FT_COUNT_BYTES])
{
    static const char units[] = "kMGTPE";
    double v = (double)n;
    int u = -1;
    while (v >= 999.95) {
        v /= 1000;
        u++;
    }
    if (u < 0)
        snprintf(text, FT_COUNT_BYTES, "%u", (unsigned)n);
    else
        snprintf(text, FT_COUNT_BYTES, "%.1f%c", v, units[u]);
    return text;
}

static bool is_stdout(const char *path)
{
    return !path || strcmp(path, "-") == 0;
}

bool ft_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return !is_stdout(a) && !is_stdout(b) && stat(a, &x) == 0 && stat(b, &y) == 0 &&
           S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static bool is_terminal(const char *path)
{
    struct stat info;
    bool terminal;
    int fd;
    if (is_stdout(path))
        return isatty(1);
    if (stat(path, &info) != 0 || !S_ISCHR(info.st_mode))
        return false;
    fd = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    terminal = fd >= 0 && isatty(fd);
    if (fd >= 0)
        close(fd);
    return terminal;
}

ft_status ft_output_open(ft_sink **out, const char *path, ft_output_kind kind,
                         ft_error *err)
{
    if (kind == FT_OUTPUT_BINARY && is_terminal(path))
        return ft_fail(err, FT_EINVAL,
                       "%s: is a terminal, and the output is binary: redirect it",
                       is_stdout(path) ? "(standard output)" : path);
    return is_stdout(path) ? ft_sink_open(out, NULL, err)
                           : ft_sink_open_atomic(out, path, err);
}

ft_status ft_output_close(ft_sink *s, ft_status st, ft_error *err)
{
    ft_error second;
    ft_status closed;
    if (!s)
        return st;
    if (st == FT_OK)
        st = ft_sink_commit(s, err);
    closed = ft_sink_close(s, st == FT_OK ? err : &second);
    return st == FT_OK ? closed : st;
}
