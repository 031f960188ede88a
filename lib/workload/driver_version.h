/* SPDX-License-Identifier: Apache-2.0
 *
 * The version of the NVIDIA driver, by what its kernel module says of itself.
 */
#ifndef FT_WORKLOAD_DRIVER_VERSION_H
#define FT_WORKLOAD_DRIVER_VERSION_H

#include <stdbool.h>
#include <stddef.h>

/* The module's file. */
#define FT_DRIVER_FILE "/proc/driver/nvidia/version"

/* "570.86.15", out of the first line of such a file: "NVRM version: NVIDIA UNIX x86_64
 * Kernel Module  570.86.15  Fri ...". False, and `version` as it was: there is no such
 * file, or it has no such line. */
bool ft_driver_version(const char *path, char *version, size_t bytes);

#endif
