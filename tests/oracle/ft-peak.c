/* SPDX-License-Identifier: Apache-2.0
 *
 * Peak memory of a command: `ft-peak FILE COMMAND...` runs it, writes its largest
 * resident size in bytes to FILE and exits as it did.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct rusage usage;
    int status;
    if (argc < 3)
        return 2;
    const pid_t child = fork();
    if (child == 0) {
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &usage) != child)
        return 2;
    FILE *out = fopen(argv[1], "w");
    if (!out)
        return 2;
    fprintf(out, "%lld\n", (long long)usage.ru_maxrss * 1024);
    if (fclose(out) != 0)
        return 2;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
