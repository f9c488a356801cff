/* SPDX-License-Identifier: MIT */
/* memory/finalise.c: run the finalisers of dead objects while all of them can still be read.
 *
 * Job        Between marking and freeing, call `type->finalise` once for each dead object in chunks of finalisable
 *            objects; at the end of a heap, for each object.
 * Invariants F1 nothing this collection frees is handed out before the last finaliser has returned (see ponyc #4522
 *            for what happens otherwise): allocation uses fresh chunks, freeing comes later; F2 fresh chunks are
 *            passed over: their objects live until the next collection or round; F3 an object's finaliser runs once:
 *            a dead one is freed by the sweep that follows, at exit its chunk is marked as done.
 * Threads    The owner's. Finalisers may allocate, read dead objects, ask for a collection later; the heap is
 *            entered.
 * Cost       A pass over the bitmaps of these chunks, and about 2 ns per dead object beside its finaliser.
 */
#include "memory/heap_parts.h"

#define ROUNDS_MAX 1000

static void finalise(wr_heap *heap, uintptr_t object)
{
    const weir_type *type = wr_word_type(wr_object_word(object));
    WR_ASSERT(type->finalise != NULL && (wr_object_word(object) & WR_WORD_ARRAY) == 0);
    heap->finalised++;
    type->finalise((void *)object);
}

/* Finalises the objects of one chunk that are allocated and, if `dead_only`, not marked. */
static void finalise_chunk(wr_heap *heap, wr_chunk *c, bool dead_only)
{
    uint32_t words = wr_chunk_bit_words(c);
    WR_ASSERT(c->final && !c->finalised);
    for (uint32_t i = 0; i < words; i++) {
        uint64_t todo = c->bits[i].allocated & ~(dead_only ? c->bits[i].marked : 0);
        for (; todo != 0; todo &= todo - 1)
            finalise(heap, (uintptr_t)wr_chunk_payload(c, i * 64 + wr_lowest_bit(todo)));
    }
}

void wr_heap_finalise_dead(wr_heap *heap)
{
    WR_ASSERT(heap->collecting);
    for (uint64_t todo = heap->filled[1]; todo != 0;)
        for (wr_chunk *c = heap->bins[1][wr_next_class(&todo)].first; c != NULL; c = c->next)
            if (!c->fresh)
                finalise_chunk(heap, c, true);
    for (wr_chunk *c = heap->large[1]; c != NULL; c = c->next)
        if (!c->fresh)
            finalise_chunk(heap, c, true);
}

/* One round at exit: what was there when it began. True if there was anything. */
static bool finalise_list(wr_heap *heap, wr_chunk *list)
{
    bool any = false;
    for (wr_chunk *c = list; c != NULL; c = c->next) {
        if (c->fresh || c->finalised)
            continue;
        finalise_chunk(heap, c, false);
        c->finalised = 1;
        any = true;
    }
    return any;
}

static void end_round(wr_chunk *list)
{
    for (wr_chunk *c = list; c != NULL; c = c->next)
        c->fresh = 0;
}

void wr_heap_finalise_all(wr_heap *heap)
{
    bool any = true;
    for (int round = 0; any; round++) {
        WR_CHECK(round < ROUNDS_MAX, "finalisers at exit have made new objects with finalisers %d times over",
                 ROUNDS_MAX);
        any = false;
        wr_heap_retire_cursors(heap);
        wr_heap_begin_fresh(heap);
        for (uint64_t todo = heap->filled[1]; todo != 0;)
            any |= finalise_list(heap, heap->bins[1][wr_next_class(&todo)].first);
        any |= finalise_list(heap, heap->large[1]);
        heap->collecting = false;
        for (int final = 0; final < 2; final++) {
            for (uint64_t todo = heap->filled[final]; todo != 0;)
                end_round(heap->bins[final][wr_next_class(&todo)].first);
            end_round(heap->large[final]);
        }
    }
}
