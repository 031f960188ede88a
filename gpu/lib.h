/* SPDX-License-Identifier: Apache-2.0
 *
 * The library's C headers, for C++.
 */
#ifndef FT_GPU_LIB_H
#define FT_GPU_LIB_H

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
#include "base/mem.h"
#include "base/score.h"
#include "engine/engine.h"
#include "engine/steps_open.h"
#include "trie/index.h"
}

#endif
