/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs files, and the files of folders, through a fuzz harness without a fuzzer: the
 * corpora as tests, under any compiler and sanitizer. Prints how many; fails if none.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static unsigned long n_inputs;

static void fail(const char *path)
{
    fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
    exit(1);
}

static void replay_file(const char *path, size_t bytes)
{
    /* Exactly as long as the input, so that a sanitizer sees a read beyond it. */
    uint8_t *data = malloc(bytes ? bytes : 1);
    FILE *f = fopen(path, "rb");
    if (!data || !f || fread(data, 1, bytes, f) != bytes)
        fail(path);
    fclose(f);
    LLVMFuzzerTestOneInput(data, bytes);
    free(data);
    n_inputs++;
}

static void replay(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        fail(path);
    if (!S_ISDIR(info.st_mode)) {
        replay_file(path, (size_t)info.st_size);
        return;
    }
    struct dirent **entries;
    const int n = scandir(path, &entries, NULL, alphasort);
    if (n < 0)
        fail(path);
    for (int i = 0; i < n; i++) {
        char inner[4096];
        const int k = snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && k > 0 && (size_t)k < sizeof inner)
            replay(inner);
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        replay(argv[i]);
    printf("%s: %lu inputs\n", argv[0], n_inputs);
    return n_inputs ? 0 : 1;
}
