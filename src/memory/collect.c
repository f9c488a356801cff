/* SPDX-License-Identifier: MIT */
/* memory/collect.c: the order of a collection.
 *
 * Job        Retire cursors; mark from the roots; run the finalisers of the dead; free; let the owner give back what
 *            it held of others.
 * Invariants The order of the steps is what the rules R1 to R4 rest on (docs/internals/memory.md). From the end of
 *            marking to the end of freeing allocation uses fresh chunks.
 * Threads    The owner's, between behaviours.
 * Cost       About 0.1 us for a heap with nothing in it, then mark.c's cost per live object, finalise.c's per dead
 *            object with a finaliser, sweep.c's per chunk.
 */
#include "memory/heap_audit.h"
#include "memory/heap_parts.h"

static void mark(wr_heap *heap)
{
    wr_marker marker;
    wr_mark_begin(heap, &marker);
    if (heap->hooks->roots != NULL)
        heap->hooks->roots(heap->owner, heap);
    for (uint32_t i = 0; i < heap->pins.used; i++) {
        const wr_ptrset_entry *pin = wr_ptrset_at(&heap->pins, i);
        if (pin != NULL)
            wr_mark_word(heap, (uintptr_t)pin->pointer);
    }
    wr_mark_drain(heap);
    wr_mark_end(heap);
}

void wr_heap_collect(wr_heap *heap)
{
    WR_CHECK(!heap->collecting, "a collection inside a finaliser");
    uint64_t begun_ns = wr_clock_ns(), finalised = heap->finalised;
    wr_heap *before = wr_heap_current();
    wr_heap_enter(heap);
    heap->soon = false;
    wr_heap_retire_cursors(heap);
    heap->allocated_bytes = heap->charged_bytes = 0;
    heap->external_before = heap->external_bytes;

    mark(heap);
    wr_heap_begin_fresh(heap);
    wr_heap_finalise_dead(heap);
    wr_heap_sweep(heap);
    wr_heap_end_fresh(heap);
    if (heap->external_bytes < heap->external_before)
        heap->external_before = heap->external_bytes; /* finalisers released some */

    heap->threshold = heap->live_bytes > heap->collect_after ? heap->live_bytes : heap->collect_after;
    if (heap->soon)
        heap->threshold = 0;
    heap->collections++;
#if WR_DEBUG
    wr_heap_check(heap);
#endif
    if (heap->hooks->give_back != NULL)
        heap->hooks->give_back(heap->owner);
    wr_heap_enter(before);
    wr_heap_totals_add(1, heap->finalised - finalised);
    uint64_t took_ns = wr_clock_ns() - begun_ns;
    heap->collect_ns_total += took_ns;
    if (took_ns > heap->collect_ns_longest)
        heap->collect_ns_longest = took_ns;
}
