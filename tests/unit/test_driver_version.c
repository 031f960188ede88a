/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's version, out of the files that its kernel modules give, and out of none.
 */
#include "io_util.h"

#include "workload/driver_version.h"

static char path[] = "/tmp/flashtrie-test-driver-XXXXXX";

/* What a file with this text says; "?": nothing. */
static const char *version_of(const char *text, size_t bytes, size_t room)
{
    static char version[64];
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
    strcpy(version, "?");
    const bool found = ft_driver_version(path, version, room);
    assert_int_equal(found, strcmp(version, "?") != 0);
    return version;
}

static void assert_version(const char *text, const char *version)
{
    assert_string_equal(version_of(text, strlen(text), 64), version);
}

static void test_modules(void **state)
{
    (void)state;
    assert_version("NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Fri Jan "
                   "17 10:09:50 UTC 2025\nGCC version:  gcc version 12.3.0 (Ubuntu)\n",
                   "570.86.15");
    assert_version(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15 "
        " Release Build  (dvs-builder@U16-A11)  Tue Mar  5 22:15:33 UTC 2024",
        "550.54.15");
    assert_version("NVRM version: NVIDIA UNIX aarch64 Kernel Module\t418.39\r\n",
                   "418.39");
}

static void test_no_version(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "\n",
        "NVRM version:",
        "NVRM version: \n",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module\n570.86.15\n",
        "GCC version:  gcc version 12.3.0\n",
        "GCC version:  gcc 12.3.0\nNVRM version: NVIDIA  570.86.15\n",
        " NVRM version: 570.86.15\n",
        "NVRM version: 570 570. .570 570..86 570.86.x 570,86 v570.86 -570.86 1.2-3\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_version(texts[i], "?");
    char version[8] = "before";
    assert_false(ft_driver_version("/nowhere/version", version, sizeof version));
    assert_false(ft_driver_version("/", version, sizeof version));
    assert_string_equal(version, "before");
}

/* Lines without end, zeros, and words that do not fit. */
static void test_odd_bytes(void **state)
{
    (void)state;
    static const char zero[] = "NVRM version: \0 570.86.15\n";
    static char line[100000] = "NVRM version: ";
    assert_string_equal(version_of(zero, sizeof zero - 1, 64), "?");
    memset(line + strlen(line), '5', sizeof line - strlen(line));
    line[100] = '.';
    assert_string_equal(version_of(line, sizeof line, 64), "?");
    for (size_t at = 490; at < 520; at++) { /* around the end of a buffer */
        memset(line + 14, ' ', sizeof line - 14);
        memcpy(line + at, "570.86.15", 9);
        const char *version = version_of(line, at + 9, 64);
        assert_true(strcmp(version, "?") == 0 || strcmp(version, "570.86.15") == 0);
    }
    static const char good[] = "NVRM version: 570.86.15";
    assert_string_equal(version_of(good, sizeof good - 1, 10), "570.86.15");
    assert_string_equal(version_of(good, sizeof good - 1, 9), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_modules),
        cmocka_unit_test(test_no_version),
        cmocka_unit_test(test_odd_bytes),
    };
    const int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
