/* SPDX-License-Identifier: MIT */
/* memory/heap_stats.c: figures of the calling actor's heap, and totals of the process.
 *
 * Job        See weir/heap.h and memory/heap.h.
 * Invariants Totals are added to once per collection, so no allocation pays for them.
 * Threads    Totals: any, relaxed.
 * Cost       Two atomic additions per collection.
 */
#include "memory/heap.h"

static _Atomic uint64_t collections_total, finalised_total;

void wr_heap_totals_add(uint64_t collections, uint64_t finalised)
{
    atomic_fetch_add_explicit(&collections_total, collections, memory_order_relaxed);
    atomic_fetch_add_explicit(&finalised_total, finalised, memory_order_relaxed);
}

void wr_heap_totals_reset(void)
{
    atomic_store_explicit(&collections_total, 0, memory_order_relaxed);
    atomic_store_explicit(&finalised_total, 0, memory_order_relaxed);
}

void wr_heap_get_totals(wr_heap_totals *out)
{
    out->collections = atomic_load_explicit(&collections_total, memory_order_relaxed);
    out->finalised = atomic_load_explicit(&finalised_total, memory_order_relaxed);
}

void weir_get_heap_stats(weir_heap_stats *out)
{
    WR_CHECK(out != NULL, "weir_get_heap_stats needs a place for the figures");
    const wr_heap *heap = wr_heap_current();
    *out = (weir_heap_stats){0};
    if (heap == NULL)
        return; /* an actor that never allocated */
    WR_ASSERT(heap->external_bytes >= 0 && heap->collect_ns_longest <= heap->collect_ns_total);
    out->live_bytes = heap->live_bytes;
    out->allocated_bytes = heap->allocated_bytes;
    out->held_bytes = heap->held_bytes;
    out->external_bytes = (uint64_t)heap->external_bytes;
    out->collections = heap->collections;
    out->finalised = heap->finalised;
    out->collect_ns_total = heap->collect_ns_total;
    out->collect_ns_longest = heap->collect_ns_longest;
}
