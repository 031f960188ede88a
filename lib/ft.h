/* SPDX-License-Identifier: Apache-2.0
 *
 * FlashTrie: trie-constrained beam search. The one header that commands include.
 */
#ifndef FT_H
#define FT_H

#include "base/mem.h"
#include "base/score.h"
#include "base/status.h"
#include "engine/engine.h"
#include "engine/steps.h"
#include "io/grid.h"
#include "io/results.h"
#include "io/stream.h"
#include "io/tokens.h"
#include "trie/build.h"
#include "trie/index.h"
#include "trie/keys.h"
#include "trie/trie.h"

#define FT_VERSION "0.1.0"

#endif
