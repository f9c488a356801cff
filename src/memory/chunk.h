/* SPDX-License-Identifier: MIT */
/* memory/chunk.h: the metadata record of each 64 KiB granule, and the arithmetic between words, objects and records.
 *
 * Job        Say what a granule is used for, whose it is, how it is divided, and which of its objects are allocated
 *            and marked. A chunk is a run of granules with one use; the record of its first granule (the head)
 *            describes it, the others lead back to it.
 * Invariants Records lie in a range of their own: at multiples
 *            of 64 KiB inside the chunks they would all fall into one cache set. Object i of a heap chunk has its
 *            word at start + 8 + i * stride and its payload behind it, so a payload is aligned to 16 where the stride
 *            is. A pointer p names object (p - start - 16) / stride: payload start, inside and one past the end. At
 *            least 8 bytes of the chunk follow the last object, so its one-past-the-end pointer is still inside.
 * Threads    Whoever holds a chunk writes its record. Any thread may look at any record because of a conservatively
 *            read word; it reads the atomic fields only (relaxed) and believes the rest only if `owner` is the heap
 *            it collects.
 * Cost       Word to object: a range test, a multiplication for the record, a multiplication instead of a division.
 * Layout     The two bitmaps are interleaved word by word, so that setting a mark touches two lines of the record,
 *            not three.
 */
#ifndef WR_MEMORY_CHUNK_H
#define WR_MEMORY_CHUNK_H

#include "platform/check.h"
#include "weir/heap.h"
#include <stdatomic.h>
#include <stdbool.h>

#define WR_GRANULE_SHIFT 16
#define WR_GRANULE ((size_t)1 << WR_GRANULE_SHIFT)
#define WR_CHUNK_WORDS 64     /* bitmap words: 4096 objects, enough for stride 16 */
#define WR_PAYLOAD_OFFSET 16u /* of object 0 */

typedef struct wr_heap wr_heap;
typedef struct wr_chunk wr_chunk;

typedef enum wr_chunk_kind {
    WR_CHUNK_NEVER = 0, /* above the used part of the arena */
    WR_CHUNK_CLEAN,     /* free, reads as zero */
    WR_CHUNK_DIRTY,     /* free, holds memory of the system with old contents */
    WR_CHUNK_HEAP,
    WR_CHUNK_POOL,
    WR_CHUNK_RUNTIME /* magazines, mark stacks: no block in it is ever named by a word */
} wr_chunk_kind;

typedef struct wr_chunk_bits {
    uint64_t allocated, marked; /* marked is all zero outside a collection */
} wr_chunk_bits;

struct wr_chunk {
    _Atomic(wr_heap *) owner;    /* heap chunks, in each granule's record; NULL otherwise */
    _Atomic uint32_t back;       /* granules back to the head; 0 in the head */
    _Atomic uint32_t stride;     /* bytes from object to object; 0: one large object */
    _Atomic uint32_t reciprocal; /* 2^32 / (stride / 8), rounded up; 0 for a large object */
    _Atomic uint32_t count;      /* objects (pool: blocks carved so far) */
    _Atomic uint8_t kind;        /* wr_chunk_kind */
    uint8_t final;               /* objects have finalisers */
    uint8_t fresh; /* made during the collection or exit round that is under way: neither finalised nor swept by it */
    uint8_t finalised;   /* exit only: finalisers of this chunk have run */
    uint32_t size_class; /* WEIR_CLASSES_ for a large object */
    size_t span; /* offsets from the first payload below this name an object: count * stride, or large_size + 1 */
    char *start;
    size_t large_size;         /* payload bytes of a large object, as asked for; 0 for small ones */
    wr_chunk *next, *previous; /* list it is on; previous only for free runs */
    uint32_t granules; /* in the head; in a free run also in the last record, so that a neighbour finds the first */
    uint32_t scan;     /* objects below were looked at by the allocator since the last collection */
    uint32_t live;     /* objects found alive by the last collection */
    WR_ALIGNED(WR_CACHE_LINE) wr_chunk_bits bits[WR_CHUNK_WORDS];
};

#define WR_CHUNK_LOAD(c, f) atomic_load_explicit(&(c)->f, memory_order_relaxed)
#define WR_CHUNK_STORE(c, f, v) atomic_store_explicit(&(c)->f, (v), memory_order_relaxed)

/* Granules for a chunk of this stride: enough objects to make the take worth while, at most an eighth lost at the
 * end. */
WR_INLINE uint32_t wr_chunk_granules_for(uint32_t stride)
{
    return stride <= 2048 ? 1 : stride <= 8192 ? 2 : 4;
}

/* 2^32 / (stride / 8) rounded up. Offsets and strides are multiples of 8 after the shift, below 2^15 and 2^13: exact.
 */
WR_INLINE uint32_t wr_chunk_reciprocal(uint32_t stride)
{
    uint64_t eighth = stride / 8;
    WR_ASSERT(eighth >= 2 && stride % 8 == 0);
    return (uint32_t)((((uint64_t)1 << 32) + eighth - 1) / eighth);
}

WR_INLINE uint32_t wr_chunk_divide(size_t offset, uint32_t reciprocal)
{
    return (uint32_t)(((uint64_t)(offset >> 3) * reciprocal) >> 32);
}

WR_INLINE char *wr_chunk_payload(const wr_chunk *c, uint32_t number)
{
    return c->start + WR_PAYLOAD_OFFSET + (size_t)number * WR_CHUNK_LOAD(c, stride);
}

/* Bytes behind an object's word that belong to it. */
WR_INLINE size_t wr_chunk_capacity(const wr_chunk *c)
{
    return c->large_size != 0 ? c->large_size : WR_CHUNK_LOAD(c, stride) - WEIR_WORD_;
}

WR_INLINE uint32_t wr_chunk_bit_words(const wr_chunk *c)
{
    return (WR_CHUNK_LOAD(c, count) + 63) / 64;
}

WR_INLINE bool wr_chunk_is_allocated(const wr_chunk *c, uint32_t number)
{
    return (c->bits[number / 64].allocated >> (number % 64)) & 1;
}

WR_INLINE bool wr_chunk_is_marked(const wr_chunk *c, uint32_t number)
{
    return (c->bits[number / 64].marked >> (number % 64)) & 1;
}

/* Makes a taken run of granules a heap chunk of a size class, all objects free; or of one large object, allocated. */
void wr_chunk_divide_small(wr_chunk *c, unsigned size_class, bool final);
void wr_chunk_make_large(wr_chunk *c, size_t size, bool final);

/* The next free run of at most `most` objects at or above c->scan: true, its objects [out_first, out_end) now
 * allocated and scan behind it; false when there is none. */
bool wr_chunk_take_run(wr_chunk *c, uint32_t most, uint32_t *out_first, uint32_t *out_end);
/* Takes objects [first, end) back, all of which are allocated. */
void wr_chunk_return_run(wr_chunk *c, uint32_t first, uint32_t end);

#endif
