/* SPDX-License-Identifier: Apache-2.0
 *
 * Byte sinks: files, pipes, memory, and files that appear whole or not at all.
 */
#include "io_util.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

static char folder[] = "/tmp/flashtrie-test-sink-XXXXXX";
static char path_text[4096];

static const char *path_of(const char *name)
{
    snprintf(path_text, sizeof path_text, "%s/%s", folder, name);
    return path_text;
}

static void write_file(const char *name, const void *data, size_t bytes)
{
    FILE *f = fopen(path_of(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

static void assert_file(const char *name, const void *data, size_t bytes)
{
    FILE *f = fopen(path_of(name), "rb");
    assert_non_null(f);
    char *got = malloc(bytes + 1);
    assert_int_equal(fread(got, 1, bytes + 1, f), bytes);
    assert_memory_equal(got, data, bytes);
    free(got);
    fclose(f);
}

static int n_files(void)
{
    char command[128];
    snprintf(command, sizeof command, "ls -A %s | wc -l", folder);
    FILE *f = popen(command, "r");
    int n = -1;
    assert_int_equal(fscanf(f, "%d", &n), 1);
    pclose(f);
    return n;
}

static uint8_t *some_bytes(size_t n)
{
    uint8_t *p = malloc(n);
    uint32_t x = 1;
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525 + 1013904223;
        p[i] = (uint8_t)(x >> 24 & 15);
    }
    return p;
}

static void memory_sink(void **state)
{
    (void)state;
    ft_error err = {0};
    ft_buf b = {0};
    assert_ok(ft_buf_append(&b, "before ", 7, &err), err);
    ft_sink *s = sink_into(&b);
    assert_true(ft_sink_seekable(s));
    assert_ok(ft_sink_write(s, "abcdef", 6, &err), err);
    assert_ok(ft_sink_printf(s, &err, "%d", 42), err);
    assert_ok(ft_sink_printf(s, &err, "%1500s", "!"), err);
    assert_int_equal(ft_sink_offset(s), 1508);
    assert_ok(ft_sink_rewrite(s, 1, "BC", 2, &err), err);
    assert_int_equal(ft_sink_rewrite(s, 1507, "xy", 2, &err), FT_EINVAL);
    close_sink(s);
    assert_int_equal(b.len, 1515);
    assert_memory_equal(b.data, "before aBCdef42   ", 18);
    assert_int_equal(b.data[1514], '!');
    ft_buf_free(&b);
    assert_int_equal(ft_sink_close(NULL, &err), FT_OK);
}

static void file_sink(void **state)
{
    (void)state;
    enum { BYTES = 1 << 20 };
    ft_error err = {0};
    ft_sink *s;
    uint8_t *bytes = some_bytes(BYTES);
    write_file("out", "longer than what comes", 22);
    assert_ok(ft_sink_open(&s, path_of("out"), &err), err);
    for (size_t at = 0, n = 1; at < BYTES; at += n, n = n * 3 + 1) {
        n = n < BYTES - at ? n : BYTES - at;
        assert_ok(ft_sink_write(s, bytes + at, n, &err), err);
    }
    assert_int_equal(ft_sink_offset(s), BYTES);
    bytes[7] = 'S';
    assert_true(ft_sink_seekable(s));
    assert_ok(ft_sink_rewrite(s, 7, "S", 1, &err), err);
    close_sink(s);
    assert_file("out", bytes, BYTES);
    free(bytes);
}

static void full_disk(void **state)
{
    (void)state;
    static const uint8_t zeros[300000];
    ft_error err = {0};
    ft_sink *s;
    assert_ok(ft_sink_open(&s, "/dev/full", &err), err);
    assert_false(ft_sink_seekable(s));
    assert_ok(ft_sink_write(s, "x", 1, &err), err);
    assert_int_equal(ft_sink_close(s, &err), FT_EIO); /* the flush is what failed */
    assert_message(err, "/dev/full: cannot write: No space left on device");
    assert_ok(ft_sink_open(&s, "/dev/full", &err), err);
    assert_int_equal(ft_sink_write(s, zeros, sizeof zeros, &err), FT_EIO);
    assert_int_equal(ft_sink_write(s, "x", 1, &err), FT_EIO); /* and so on */
    assert_int_equal(ft_sink_flush(s, &err), FT_EIO);
    assert_int_equal(ft_sink_close(s, &err), FT_EIO);
    assert_int_equal(ft_sink_open(&s, "/nonexistent/x", &err), FT_EIO);
    assert_message(err, "/nonexistent/x: cannot open for writing: No such file");
}

static void closed_pipe(void **state)
{
    (void)state;
    char path[32];
    int ends[2];
    ft_error err = {0};
    ft_sink *s;
    assert_int_equal(pipe(ends), 0);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[1]);
    assert_ok(ft_sink_open(&s, path, &err), err);
    assert_false(ft_sink_seekable(s));
    assert_int_equal(ft_sink_rewrite(s, 0, "", 0, &err), FT_EINVAL);
    close(ends[0]);
    assert_ok(ft_sink_write(s, "x", 1, &err), err);
    assert_int_equal(ft_sink_flush(s, &err), FT_EPIPE);
    assert_int_equal(ft_sink_close(s, &err), FT_EPIPE);
    close(ends[1]);
}

/* Standard output may be a file that was written to before, or is appended to. */
static void standard_output(void **state)
{
    (void)state;
    ft_error err = {0};
    ft_sink *s;
    ft_status st = FT_OK;
    bool seekable[2];
    fflush(stdout);
    const int saved = dup(STDOUT_FILENO);
    for (int i = 0; i < 2; i++) {
        write_file("out", "head ", 5);
        const int fd = open(path_of("out"), O_WRONLY | (i ? O_APPEND : 0));
        lseek(fd, 5, SEEK_SET);
        dup2(fd, STDOUT_FILENO);
        close(fd);
        st = st ? st : ft_sink_open(&s, i ? "-" : NULL, &err);
        seekable[i] = ft_sink_seekable(s);
        st = st ? st : ft_sink_write(s, "abc", 3, &err);
        if (seekable[i])
            st = st ? st : ft_sink_rewrite(s, 0, "A", 1, &err);
        st = st ? st : ft_sink_close(s, &err);
        st = st ? st : fcntl(STDOUT_FILENO, F_GETFD) >= 0 ? FT_OK : FT_EIO;
        dup2(saved, STDOUT_FILENO);
        assert_file("out", i ? "head abc" : "head Abc", 8);
    }
    close(saved);
    assert_ok(st, err);
    assert_true(seekable[0]);
    assert_false(seekable[1]);
    unlink(path_of("out"));
}

static mode_t mode_of(const char *name)
{
    struct stat info;
    assert_int_equal(stat(path_of(name), &info), 0);
    return info.st_mode & 07777;
}

static void atomic_commit(void **state)
{
    (void)state;
    ft_error err = {0};
    ft_sink *s;
    const mode_t mask = umask(027);
    const int before = n_files();
    assert_ok(ft_sink_open_atomic(&s, path_of("new"), &err), err);
    assert_ok(ft_sink_write(s, "first", 5, &err), err);
    assert_int_equal(access(path_of("new"), F_OK), -1); /* not there yet */
    assert_ok(ft_sink_rewrite(s, 0, "F", 1, &err), err);
    assert_ok(ft_sink_commit(s, &err), err);
    assert_ok(ft_sink_commit(s, &err), err); /* again: nothing to do */
    close_sink(s);
    assert_file("new", "First", 5);
    assert_int_equal(mode_of("new"), 0640);
    assert_int_equal(chmod(path_of("new"), 0604), 0);
    assert_ok(ft_sink_open_atomic(&s, path_of("new"), &err), err);
    assert_ok(ft_sink_write(s, "second", 6, &err), err);
    assert_file("new", "First", 5);
    assert_ok(ft_sink_commit(s, &err), err);
    close_sink(s);
    assert_file("new", "second", 6);
    assert_int_equal(mode_of("new"), 0604);
    assert_int_equal(n_files(), before + 1);
    umask(mask);
}

static void atomic_without_commit(void **state)
{
    (void)state;
    ft_error err = {0};
    ft_sink *s, *other;
    char temporary[4200];
    write_file("kept", "old", 3);
    const int before = n_files();
    assert_ok(ft_sink_open_atomic(&s, path_of("kept"), &err), err);
    snprintf(temporary, sizeof temporary, "%s/.kept.%ld.tmp", folder, (long)getpid());
    assert_int_equal(access(temporary, F_OK), 0);
    /* The name is taken: another is found. */
    assert_ok(ft_sink_open_atomic(&other, path_of("kept"), &err), err);
    assert_int_equal(n_files(), before + 2);
    assert_ok(ft_sink_write(s, "new", 3, &err), err);
    close_sink(s);
    assert_int_equal(n_files(), before + 1);
    ft_sink_abort_all(); /* as a signal handler does */
    assert_int_equal(n_files(), before);
    assert_int_equal(ft_sink_commit(other, &err), FT_EIO);
    assert_message(err, "kept: cannot rename to it");
    ft_sink_close(other, &err);
    assert_file("kept", "old", 3);
}

static void atomic_many(void **state)
{
    (void)state;
    ft_error err = {0};
    ft_sink *s[40];
    int n = 0;
    const int before = n_files();
    while (n < 40 && ft_sink_open_atomic(&s[n], path_of("many"), &err) == FT_OK)
        n++;
    assert_int_equal(n, 32);
    assert_message(err, "many: more than 32 output files open at once");
    assert_int_equal(n_files(), before + 32);
    while (n)
        close_sink(s[--n]);
    assert_int_equal(n_files(), before);
}

static void atomic_links_and_devices(void **state)
{
    (void)state;
    ft_error err = {0};
    ft_sink *s;
    char link[4096];
    struct stat info;
    write_file("target", "old", 3);
    snprintf(link, sizeof link, "%s/link", folder);
    assert_int_equal(symlink("target", link), 0);
    for (int dangling = 0; dangling < 2; dangling++) {
        assert_ok(ft_sink_open_atomic(&s, link, &err), err);
        assert_ok(ft_sink_write(s, "new!", 4, &err), err);
        assert_ok(ft_sink_commit(s, &err), err);
        close_sink(s);
        assert_file("target", "new!", 4);
        assert_int_equal(lstat(link, &info), 0);
        assert_true(S_ISLNK(info.st_mode));
        unlink(path_of("target"));
    }
    unlink(link);
    assert_int_equal(symlink("link", link), 0);
    assert_int_equal(ft_sink_open_atomic(&s, link, &err), FT_EIO);
    assert_message(err, "link: cannot open for writing: Too many levels");
    unlink(link);
    assert_ok(ft_sink_open_atomic(&s, "/dev/null", &err), err);
    assert_ok(ft_sink_write(s, "x", 1, &err), err);
    assert_ok(ft_sink_commit(s, &err), err);
    close_sink(s);
    assert_ok(ft_sink_open_atomic(&s, "/dev/full", &err), err);
    assert_ok(ft_sink_write(s, "x", 1, &err), err);
    assert_int_equal(ft_sink_commit(s, &err), FT_EIO);
    assert_int_equal(ft_sink_close(s, &err), FT_EIO);
    assert_int_equal(ft_sink_open_atomic(&s, "/nonexistent/x", &err), FT_EIO);
    assert_message(err, "/nonexistent/x: cannot create a temporary file");
}

/* A name as long as the file system takes leaves no room for a suffix. */
static void atomic_long_name(void **state)
{
    (void)state;
    char name[256] = {0};
    ft_error err = {0};
    ft_sink *s;
    memset(name, 'n', 255);
    assert_ok(ft_sink_open_atomic(&s, path_of(name), &err), err);
    assert_ok(ft_sink_commit(s, &err), err);
    close_sink(s);
    assert_file(name, "", 0);
    unlink(path_of(name));
}

/* Killed by a signal whose handler calls ft_sink_abort_all: the old file, no leftovers.
 */
static void on_signal(int number)
{
    (void)number;
    ft_sink_abort_all();
    _exit(3);
}

static void atomic_killed(void **state)
{
    (void)state;
    ft_error err = {0};
    ft_sink *s;
    int status;
    write_file("kept", "old", 3);
    const int before = n_files();
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGTERM, on_signal);
        if (ft_sink_open_atomic(&s, path_of("kept"), &err) == FT_OK &&
            ft_sink_write(s, "new", 3, &err) == FT_OK && n_files() == before + 1)
            raise(SIGTERM);
        _exit(4);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3);
    assert_int_equal(n_files(), before);
    assert_file("kept", "old", 3);
}

static int set_up(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    alarm(TEST_SECONDS);
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    static const char *const names[] = {"out", "new", "kept"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(path_of(names[i]));
    return rmdir(folder); /* fails if anything was left behind */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_sink),
        cmocka_unit_test(file_sink),
        cmocka_unit_test(full_disk),
        cmocka_unit_test(closed_pipe),
        cmocka_unit_test(standard_output),
        cmocka_unit_test(atomic_commit),
        cmocka_unit_test(atomic_without_commit),
        cmocka_unit_test(atomic_many),
        cmocka_unit_test(atomic_links_and_devices),
        cmocka_unit_test(atomic_long_name),
        cmocka_unit_test(atomic_killed),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
