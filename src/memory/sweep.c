/* SPDX-License-Identifier: MIT */
/* memory/sweep.c: free what was not marked.
 *
 * Job        For each chunk: allocated := marked, marked := 0. Empty chunks and dead large objects go to the arena in
 *            one go.
 * Invariants W1 fresh chunks keep all their objects and are fresh no more; W2 afterwards no mark is set anywhere; W3
 *            lists keep their order.
 * Threads    The owner's.
 * Cost       A few bitmap words per chunk, dead objects are not touched (debug builds overwrite, AddressSanitizer
 *            builds poison them).
 */
#include "memory/heap_parts.h"

#include <string.h>

#if WR_DEBUG || WR_ASAN
static void bury(const wr_chunk *c, uint32_t word, uint64_t dead)
{
    size_t size = WR_CHUNK_LOAD(c, stride);
    for (; dead != 0; dead &= dead - 1) {
        char *start = wr_chunk_payload(c, word * 64 + wr_lowest_bit(dead)) - WEIR_WORD_;
        WR_UNPOISON(start, size);
        if (WR_DEBUG)
            memset(start, WR_FREED_BYTE, size);
        WR_POISON(start, size);
    }
}
#else
static void bury(const wr_chunk *c, uint32_t word, uint64_t dead)
{
    (void)c, (void)word, (void)dead;
}
#endif

/* Sums of ever wider groups of bits. The compilers call a library function with a table instead where the processor
 * is not known to count bits. */
static uint32_t count_bits(uint64_t x)
{
    x -= (x >> 1) & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0Fu;
    return (uint32_t)((x * 0x0101010101010101u) >> 56);
}

/* Number of objects of a chunk that are alive. */
static uint32_t sweep_small(wr_chunk *c)
{
    uint32_t live = 0, words = wr_chunk_bit_words(c);
    for (uint32_t i = 0; i < words; i++) {
        wr_chunk_bits *bits = &c->bits[i];
        WR_ASSERT((bits->marked & ~bits->allocated) == 0);
        bury(c, i, bits->allocated & ~bits->marked);
        live += count_bits(bits->marked);
        bits->allocated = bits->marked;
        bits->marked = 0;
    }
    c->scan = 0;
    return live;
}

static void drop(wr_heap *heap, wr_chunk *c, wr_chunk **dead)
{
    size_t size = (size_t)c->granules * WR_GRANULE;
    WR_ASSERT(heap->held_bytes >= size);
    heap->held_bytes -= size;
    c->next = *dead;
    *dead = c;
}

static void sweep_bin(wr_heap *heap, wr_heap_bin *bin, wr_chunk **dead)
{
    wr_chunk **link = &bin->first;
    for (wr_chunk *c; (c = *link) != NULL;) {
        WR_ASSERT(WR_CHUNK_LOAD(c, owner) == heap);
        if (c->fresh) {
            c->fresh = 0;
            link = &c->next;
            continue;
        }
        c->live = sweep_small(c);
        if (c->live == 0) {
            *link = c->next;
            drop(heap, c, dead);
            continue;
        }
        heap->live_bytes += (size_t)c->live * WR_CHUNK_LOAD(c, stride);
        link = &c->next;
    }
}

static void sweep_large(wr_heap *heap, wr_chunk **list, wr_chunk **dead)
{
    wr_chunk **link = list;
    for (wr_chunk *c; (c = *link) != NULL;) {
        WR_ASSERT(c->large_size != 0 && c->bits[0].allocated == 1);
        if (!c->fresh && c->bits[0].marked == 0) {
            *link = c->next;
            drop(heap, c, dead);
            continue;
        }
        if (!c->fresh)
            heap->live_bytes += (size_t)c->granules * WR_GRANULE;
        c->fresh = 0;
        c->bits[0].marked = 0;
        c->live = 1;
        link = &c->next;
    }
}

void wr_heap_sweep(wr_heap *heap)
{
    wr_chunk *dead = NULL;
    heap->live_bytes = 0;
    for (int final = 0; final < 2; final++) {
        for (uint64_t todo = heap->filled[final]; todo != 0;)
            sweep_bin(heap, &heap->bins[final][wr_next_class(&todo)], &dead);
        sweep_large(heap, &heap->large[final], &dead);
    }
    if (dead != NULL)
        wr_arena_give(dead);
}
