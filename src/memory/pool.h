/* SPDX-License-Identifier: MIT */
/* memory/pool.h: memory for the runtime's own structures: actors, messages, stores, descriptors.
 *
 * Job        Blocks of a known size, 16-aligned, taken and given on any thread.
 * Invariants Free blocks are listed in magazines, arrays of pointers, never inside themselves. A cache belongs to one
 *            thread at a time. A block may be given through another cache than it was taken from.
 * Threads    With a cache: its thread. With NULL: any, through the lock of the size class. wr_pool_block_of: any.
 * Cost       Take and give: a handful of instructions while the loaded magazine is neither empty nor full; every
 *            magazine's worth of blocks one exchange with the depot under a lock.
 * Design     Magazines and depot after Bonwick and Adams, "Magazines and Vmem" (USENIX 2001): memory freed by a
 *            consumer flows back to the producer in whole magazines, so that use stays flat.
 */
#ifndef WR_MEMORY_POOL_H
#define WR_MEMORY_POOL_H

#include "platform/check.h"
#include "weir/heap.h"
#include <string.h>

#define WR_MAGAZINE_MAX 64u

typedef struct wr_magazine {
    struct wr_magazine *next;
    uint32_t count, capacity;
    void *blocks[WR_MAGAZINE_MAX];
} wr_magazine;

typedef struct wr_pool_slot {    /* one size class; both are always set */
    wr_magazine *loaded, *spare; /* spare is empty or full */
} wr_pool_slot;

typedef struct wr_pool_cache {
    wr_pool_slot slots[WEIR_CLASSES_];
} wr_pool_cache;

void wr_pool_cache_init(wr_pool_cache *cache);
/* Hands all blocks to the depot; the cache is as after init. */
void wr_pool_cache_flush(wr_pool_cache *cache);
/* For wr_arena_close: nothing taken is valid any more. Caches must have been flushed or be dropped. */
void wr_pool_forget(void);

/* Start of the pool block that `word` points into (its start or inside); NULL if it lies in no pool chunk. For any
 * word. */
void *wr_pool_block_of(uintptr_t word);

void *wr_pool_take_slow(wr_pool_cache *cache, unsigned size_class, size_t size);
void wr_pool_give_slow(wr_pool_cache *cache, unsigned size_class, void *block);
void *wr_pool_take_large(size_t size);
void wr_pool_give_large(void *block, size_t size);

WR_INLINE unsigned wr_pool_class(size_t size)
{
    return weir_size_class_((size + 15) & ~(size_t)15);
}

/* A block of `size` bytes (1 or more), not zeroed; NULL when memory is short. */
WR_INLINE void *wr_pool_take(wr_pool_cache *cache, size_t size)
{
    if (WR_UNLIKELY(size > WEIR_SMALL_MAX_))
        return wr_pool_take_large(size);
    unsigned c = wr_pool_class(size);
    if (WR_LIKELY(cache != NULL)) {
        wr_magazine *m = cache->slots[c].loaded;
        if (WR_LIKELY(m->count > 0)) {
            void *block = m->blocks[--m->count];
            WR_UNPOISON(block, size);
            return block;
        }
    }
    return wr_pool_take_slow(cache, c, size);
}

/* `size` as it was when taken. */
WR_INLINE void wr_pool_give(wr_pool_cache *cache, void *block, size_t size)
{
    if (WR_UNLIKELY(size > WEIR_SMALL_MAX_)) {
        wr_pool_give_large(block, size);
        return;
    }
    unsigned c = wr_pool_class(size);
    WR_ASSERT(wr_pool_block_of((uintptr_t)block) == block);
#if WR_DEBUG
    memset(block, 0xDF, size);
#endif
    if (WR_LIKELY(cache != NULL)) {
        wr_magazine *m = cache->slots[c].loaded;
        if (WR_LIKELY(m->count < m->capacity)) {
            WR_POISON(block, size);
            m->blocks[m->count++] = block;
            return;
        }
    }
    WR_POISON(block, size);
    wr_pool_give_slow(cache, c, block);
}

#endif
