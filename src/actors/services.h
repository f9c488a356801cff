/* SPDX-License-Identifier: MIT */
/* actors/services.h: what the layers above (buffers, streams, protocols) need of the run: memory blocks, options,
 * statistics, a place for a thread's block.
 *
 * Job        A narrow door, so that upper layers need not know schedulers and actors from inside.
 * Threads    Inside a behaviour, unless said otherwise.
 */
#ifndef WR_ACTORS_SERVICES_H
#define WR_ACTORS_SERVICES_H

#include "actors/shared.h"
#include <stdbool.h>

/* A pool block of the running scheduler, not zeroed; NULL when memory is short. `give` also works in destroy functions
 * and finalisers. */
void *wr_block_take(size_t size);
void wr_block_give(void *block, size_t size);

size_t wr_option_buffer_inline_max(void);

typedef struct wr_counters { /* one per scheduler, written by it alone, summed by weir_get_stats */
    _Atomic uint64_t stream_writes, stream_bytes_written, stream_reads, stream_bytes_read;
    _Atomic int64_t store_bytes;
} wr_counters;

wr_counters *wr_counters_here(void);

WR_INLINE void wr_counter_add(_Atomic uint64_t *counter, uint64_t by)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + by, memory_order_relaxed);
}

/* One pointer per scheduler for the stream layer (its shared read block). `release` is called with it when the run
 * ends. */
void **wr_scheduler_slot(void);
void wr_scheduler_slot_release(void (*release)(void *value));

/* Puts a fresh shared thing (count 1, the caller's) on the running actor's held list. */
void wr_hold_here(wr_shared *shared);
/* Something new refers to a thing that the running actor holds. Of use in finalisers: the collection under way has seen
 * no reference to it perhaps, and must not give it back. */
void wr_hold_on_here(const void *shared);
/* Does the running actor hold it. */
bool wr_holds_here(const void *shared);

#endif
