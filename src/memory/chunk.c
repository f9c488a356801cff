/* SPDX-License-Identifier: MIT */
/* memory/chunk.c: dividing a chunk into objects and finding free runs in its bitmap.
 *
 * Job        See chunk.h.
 * Invariants Bits at and above `count` are zero in both bitmaps. What wr_chunk_take_run hands out was free.
 * Threads    The holder of the chunk.
 * Cost       A run: a few bitmap words; a full chunk is passed over in at most 64.
 */
#include "memory/chunk.h"

#include <string.h>

static void make(wr_chunk *c, uint32_t stride, uint32_t count, unsigned size_class, bool final)
{
    WR_ASSERT(WR_CHUNK_LOAD(c, kind) == WR_CHUNK_HEAP && WR_CHUNK_LOAD(c, back) == 0);
    WR_ASSERT(count >= 1 && count <= 64 * WR_CHUNK_WORDS);
    WR_CHUNK_STORE(c, stride, stride);
    WR_CHUNK_STORE(c, reciprocal, stride == 0 ? 0 : wr_chunk_reciprocal(stride));
    WR_CHUNK_STORE(c, count, count);
    c->size_class = size_class;
    c->final = final;
    c->fresh = 0;
    c->finalised = 0;
    c->scan = 0;
    c->live = 0;
    c->large_size = 0;
    c->span = (size_t)count * stride;
    c->next = NULL;
    memset(c->bits, 0, (count + 63) / 64 * sizeof c->bits[0]);
}

void wr_chunk_divide_small(wr_chunk *c, unsigned size_class, bool final)
{
    WR_ASSERT(size_class < WEIR_CLASSES_);
    uint32_t stride = (uint32_t)weir_class_stride_(size_class);
    size_t size = (size_t)c->granules * WR_GRANULE;
    WR_ASSERT(c->granules == wr_chunk_granules_for(stride));
    make(c, stride, (uint32_t)((size - WR_PAYLOAD_OFFSET) / stride), size_class, final);
    WR_POISON(c->start, size);
}

void wr_chunk_make_large(wr_chunk *c, size_t size, bool final)
{
    WR_ASSERT(size > 0 && WR_PAYLOAD_OFFSET + size < (size_t)c->granules * WR_GRANULE);
    make(c, 0, 1, WEIR_CLASSES_, final);
    c->large_size = size;
    c->span = size + 1;
    c->bits[0].allocated = 1;
    c->scan = 1;
    WR_POISON(c->start, (size_t)c->granules * WR_GRANULE);
}

/* Bits [first, end) of one bitmap word. */
static uint64_t mask(uint32_t first, uint32_t end)
{
    WR_ASSERT(first < end && end <= 64);
    return (~(uint64_t)0 >> (64 - (end - first))) << first;
}

/* The first object at or above `from` whose allocated bit, xored with `flip`, is set; `count` if there is none. */
static uint32_t find(const wr_chunk *c, uint32_t from, uint32_t count, uint64_t flip)
{
    if (from >= count)
        return count;
    uint32_t word = from / 64;
    uint64_t bits = (c->bits[word].allocated ^ flip) & (~(uint64_t)0 << (from % 64));
    while (bits == 0) {
        if (++word * 64 >= count)
            return count;
        bits = c->bits[word].allocated ^ flip;
    }
    uint32_t found = word * 64 + wr_lowest_bit(bits);
    return found < count ? found : count;
}

bool wr_chunk_take_run(wr_chunk *c, uint32_t most, uint32_t *out_first, uint32_t *out_end)
{
    WR_ASSERT(most >= 1);
    uint32_t count = WR_CHUNK_LOAD(c, count);
    uint32_t first = find(c, c->scan, count, ~(uint64_t)0);
    if (first == count) {
        c->scan = count;
        return false;
    }
    uint32_t limit = count - first < most ? count : first + most;
    uint32_t end = find(c, first, limit, 0);
    WR_ASSERT(end > first && end <= limit);
    for (uint32_t i = first; i < end;) {
        uint32_t word = i / 64, stop = end - word * 64 < 64 ? end - word * 64 : 64;
        uint64_t bits = mask(i % 64, stop);
        WR_ASSERT((c->bits[word].allocated & bits) == 0);
        c->bits[word].allocated |= bits;
        i = word * 64 + stop;
    }
    c->scan = end;
    *out_first = first;
    *out_end = end;
    return true;
}

void wr_chunk_return_run(wr_chunk *c, uint32_t first, uint32_t end)
{
    WR_ASSERT(first < end && end <= WR_CHUNK_LOAD(c, count));
    for (uint32_t i = first; i < end;) {
        uint32_t word = i / 64, stop = end - word * 64 < 64 ? end - word * 64 : 64;
        uint64_t bits = mask(i % 64, stop);
        WR_ASSERT((c->bits[word].allocated & bits) == bits && (c->bits[word].marked & bits) == 0);
        c->bits[word].allocated &= ~bits;
        i = word * 64 + stop;
    }
}
