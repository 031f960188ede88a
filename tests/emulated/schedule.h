/* SPDX-License-Identifier: Apache-2.0
 *
 * In which order the emulated threads run.
 */
#ifndef EMULATED_SCHEDULE_H
#define EMULATED_SCHEDULE_H

#include <stdint.h>

/* Whose turn is put off, so that others run ahead. */
typedef enum {
    EMU_HOLD_NOBODY,
    EMU_HOLD_LATE, /* about in the order in which they were woken */
    EMU_HOLD_A_BLOCK,
    EMU_HOLD_A_WARP,
    EMU_HOLD_FEEDERS,
    EMU_HOLD_SETTLERS,
    EMU_N_HOLDS
} emu_hold;

/* A barrier that does not do its work, for a test of the test. */
typedef enum { EMU_NO_FAULT, EMU_NO_SECOND_BARRIER, EMU_NO_WARP_BARRIER } emu_fault;

typedef struct emu_schedule {
    uint64_t seed;
    emu_hold hold;
    emu_fault planted;
} emu_schedule;

#endif
