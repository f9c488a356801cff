/* SPDX-License-Identifier: MIT */
/* memory/pool.c: the depot of magazines behind the caches, and chunks cut into blocks.
 *
 * Job        See pool.h.
 * Invariants P1 a block is in exactly one place: taken, in one magazine, or not yet carved; P2 magazines in `full`
 *            are full, in `empty` empty; P3 the shared magazine of a class is used under the class's lock only.
 * Threads    Any. Lock order: class, then magazines, then the arena's.
 * Cost       Depot: one lock for up to 64 blocks. Carving writes only a magazine, not the blocks.
 * Limits     Chunks of pools go back to the arena when the arena is closed; blocks above 32 KiB at once.
 */
#include "memory/pool.h"

#include "memory/arena.h"
#include <string.h>

#define MAGAZINE_BYTES 65536u /* blocks of a full magazine, so that large classes hoard little */
#define MAGAZINE_MIN 2u

typedef struct depot {
    WR_ALIGNED(WR_CACHE_LINE) wr_lock lock;
    wr_magazine *full, *empty;
    wr_magazine *shared; /* for callers without a cache */
    wr_chunk *carving;   /* chunk with blocks never handed out */
} depot;

static depot depots[WEIR_CLASSES_];

static struct {
    wr_lock lock;
    char *next, *end; /* room for new magazines */
} magazines;

/* Stands where no magazine was loaded yet: neither can a block be taken from it nor put into it. */
static wr_magazine none;

static uint32_t magazine_capacity(size_t stride)
{
    size_t fit = MAGAZINE_BYTES / stride;
    return fit > WR_MAGAZINE_MAX ? WR_MAGAZINE_MAX : fit < MAGAZINE_MIN ? MAGAZINE_MIN : (uint32_t)fit;
}

static wr_magazine *new_magazine(size_t stride)
{
    wr_lock_take(&magazines.lock);
    if ((size_t)(magazines.end - magazines.next) < sizeof(wr_magazine)) {
        bool zero;
        wr_chunk *c = wr_arena_take(1, WR_CHUNK_RUNTIME, NULL, &zero);
        if (c != NULL) {
            WR_UNPOISON(c->start, WR_GRANULE);
            magazines.next = c->start;
            magazines.end = c->start + WR_GRANULE;
        }
    }
    wr_magazine *m = NULL;
    if ((size_t)(magazines.end - magazines.next) >= sizeof(wr_magazine)) {
        m = (wr_magazine *)(void *)magazines.next;
        magazines.next += sizeof(wr_magazine);
    }
    wr_lock_give(&magazines.lock);
    if (m != NULL) {
        m->next = NULL;
        m->count = 0;
        m->capacity = magazine_capacity(stride);
    }
    return m;
}

static wr_magazine *pop(wr_magazine **list)
{
    wr_magazine *m = *list;
    if (m != NULL) {
        *list = m->next;
        m->next = NULL;
    }
    return m;
}

static void push(wr_magazine **list, wr_magazine *m)
{
    WR_ASSERT(m != &none);
    m->next = *list;
    *list = m;
}

static wr_magazine *take_empty(depot *d, size_t stride)
{
    wr_magazine *m = pop(&d->empty);
    WR_ASSERT(m == NULL || m->count == 0);
    return m != NULL ? m : new_magazine(stride);
}

/* Cuts blocks that were never handed out into `m`, from the class's chunk or a new one. */
static void carve(depot *d, wr_magazine *m, unsigned size_class)
{
    uint32_t stride = (uint32_t)weir_class_stride_(size_class);
    while (m->count < m->capacity) {
        wr_chunk *c = d->carving;
        uint32_t cut = c == NULL ? 0 : WR_CHUNK_LOAD(c, count);
        if (c == NULL || (size_t)(cut + 1) * stride > (size_t)c->granules * WR_GRANULE) {
            if (m->count > 0)
                return;
            bool zero;
            c = wr_arena_take(wr_chunk_granules_for(stride), WR_CHUNK_POOL, NULL, &zero);
            if (c == NULL)
                return;
            WR_POISON(c->start, (size_t)c->granules * WR_GRANULE);
            WR_CHUNK_STORE(c, count, 0);
            WR_CHUNK_STORE(c, stride, stride);
            WR_CHUNK_STORE(c, reciprocal, wr_chunk_reciprocal(stride));
            c->size_class = size_class;
            d->carving = c;
            continue;
        }
        m->blocks[m->count++] = c->start + (size_t)cut * stride;
        WR_CHUNK_STORE(c, count, cut + 1);
    }
}

/* A magazine with at least one block, or NULL when memory is short. */
static wr_magazine *take_filled(depot *d, unsigned size_class)
{
    wr_magazine *m = pop(&d->full);
    if (m != NULL)
        return m;
    m = take_empty(d, weir_class_stride_(size_class));
    if (m == NULL)
        return NULL;
    carve(d, m, size_class);
    if (m->count > 0)
        return m;
    push(&d->empty, m);
    return NULL;
}

/* Takes a block through the shared magazine, under the lock. */
static void *take_shared(depot *d, unsigned size_class)
{
    if (d->shared == NULL || d->shared->count == 0) {
        wr_magazine *filled = take_filled(d, size_class);
        if (filled == NULL)
            return NULL;
        if (d->shared != NULL)
            push(&d->empty, d->shared);
        d->shared = filled;
    }
    return d->shared->blocks[--d->shared->count];
}

void *wr_pool_take_slow(wr_pool_cache *cache, unsigned size_class, size_t size)
{
    WR_ASSERT(size >= 1 && size_class < WEIR_CLASSES_ && size <= weir_class_stride_(size_class));
    depot *d = &depots[size_class];
    void *block = NULL;
    if (cache == NULL) {
        wr_lock_take(&d->lock);
        block = take_shared(d, size_class);
        wr_lock_give(&d->lock);
    } else {
        wr_pool_slot *slot = &cache->slots[size_class];
        WR_ASSERT(slot->loaded->count == 0);
        if (slot->spare->count > 0) {
            wr_magazine *filled = slot->spare;
            slot->spare = slot->loaded;
            slot->loaded = filled;
        } else {
            wr_lock_take(&d->lock);
            wr_magazine *filled = take_filled(d, size_class);
            if (filled != NULL) {
                if (slot->spare != &none)
                    push(&d->empty, slot->spare);
                slot->spare = slot->loaded;
                slot->loaded = filled;
            }
            wr_lock_give(&d->lock);
        }
        if (slot->loaded->count > 0)
            block = slot->loaded->blocks[--slot->loaded->count];
    }
    if (block != NULL)
        WR_UNPOISON(block, size);
    return block;
}

/* Puts a block into the shared magazine, under the lock. False when no magazine can be had. */
static bool give_shared(depot *d, unsigned size_class, void *block)
{
    if (d->shared == NULL || d->shared->count == d->shared->capacity) {
        wr_magazine *empty = take_empty(d, weir_class_stride_(size_class));
        if (empty == NULL)
            return false;
        if (d->shared != NULL)
            push(&d->full, d->shared);
        d->shared = empty;
    }
    d->shared->blocks[d->shared->count++] = block;
    return true;
}

void wr_pool_give_slow(wr_pool_cache *cache, unsigned size_class, void *block)
{
    WR_ASSERT(size_class < WEIR_CLASSES_ && block != NULL);
    depot *d = &depots[size_class];
    if (cache == NULL) {
        wr_lock_take(&d->lock);
        /* Without memory for a magazine the block is lost until the arena is closed; freeing must not fail. */
        (void)give_shared(d, size_class, block);
        wr_lock_give(&d->lock);
        return;
    }
    wr_pool_slot *slot = &cache->slots[size_class];
    WR_ASSERT(slot->loaded->count == slot->loaded->capacity);
    if (slot->spare != &none && slot->spare->count == 0) {
        wr_magazine *empty = slot->spare;
        slot->spare = slot->loaded;
        slot->loaded = empty;
    } else {
        wr_lock_take(&d->lock);
        wr_magazine *empty = take_empty(d, weir_class_stride_(size_class));
        if (empty != NULL) {
            if (slot->spare != &none)
                push(&d->full, slot->spare);
            slot->spare = slot->loaded;
            slot->loaded = empty;
        }
        wr_lock_give(&d->lock);
        if (empty == NULL)
            return; /* lost until the arena is closed, as above */
    }
    WR_ASSERT(slot->loaded->count < slot->loaded->capacity);
    slot->loaded->blocks[slot->loaded->count++] = block;
}

void *wr_pool_take_large(size_t size)
{
    if (size > WEIR_ALLOC_MAX)
        return NULL;
    bool zero;
    wr_chunk *c = wr_arena_take((uint32_t)((size + WR_GRANULE - 1) / WR_GRANULE), WR_CHUNK_POOL, NULL, &zero);
    if (c == NULL)
        return NULL;
    WR_CHUNK_STORE(c, stride, 0);
    WR_CHUNK_STORE(c, reciprocal, 0);
    WR_CHUNK_STORE(c, count, 1);
    c->size_class = WEIR_CLASSES_;
    WR_POISON(c->start, (size_t)c->granules * WR_GRANULE);
    WR_UNPOISON(c->start, size);
    return c->start;
}

void wr_pool_give_large(void *block, size_t size)
{
    wr_chunk *c = wr_arena_record((uintptr_t)block);
    WR_ASSERT(wr_arena_holds((uintptr_t)block) && c->start == block);
    WR_ASSERT(c->size_class == WEIR_CLASSES_ && (size_t)c->granules * WR_GRANULE >= size);
    (void)size;
    c->next = NULL;
    wr_arena_give(c);
}

void wr_pool_cache_init(wr_pool_cache *cache)
{
    for (unsigned c = 0; c < WEIR_CLASSES_; c++)
        cache->slots[c] = (wr_pool_slot){&none, &none};
}

/* Files a magazine of a flushed cache; the blocks of one that is partly filled go through the shared one. */
static void file_magazine(depot *d, unsigned size_class, wr_magazine *m)
{
    if (m == &none)
        return;
    if (m->count == m->capacity) {
        push(&d->full, m);
        return;
    }
    while (m->count > 0 && give_shared(d, size_class, m->blocks[m->count - 1]))
        m->count--;
    m->count = 0;
    push(&d->empty, m);
}

void wr_pool_cache_flush(wr_pool_cache *cache)
{
    for (unsigned c = 0; c < WEIR_CLASSES_; c++) {
        wr_pool_slot *slot = &cache->slots[c];
        if (slot->loaded == &none && slot->spare == &none)
            continue;
        wr_lock_take(&depots[c].lock);
        file_magazine(&depots[c], c, slot->loaded);
        file_magazine(&depots[c], c, slot->spare);
        wr_lock_give(&depots[c].lock);
        *slot = (wr_pool_slot){&none, &none};
    }
}

void wr_pool_forget(void)
{
    for (unsigned c = 0; c < WEIR_CLASSES_; c++) {
        depot *d = &depots[c];
        wr_lock_take(&d->lock);
        d->full = d->empty = d->shared = NULL;
        d->carving = NULL;
        wr_lock_give(&d->lock);
    }
    wr_lock_take(&magazines.lock);
    magazines.next = magazines.end = NULL;
    wr_lock_give(&magazines.lock);
}

void *wr_pool_block_of(uintptr_t word)
{
    if (!wr_arena_holds(word))
        return NULL;
    wr_chunk *c = wr_arena_record(word);
    if (WR_CHUNK_LOAD(c, kind) != WR_CHUNK_POOL)
        return NULL;
    uint32_t back = WR_CHUNK_LOAD(c, back);
    c -= back;
    uintptr_t start = (word & ~(WR_GRANULE - 1)) - (uintptr_t)back * WR_GRANULE;
    uint32_t number = wr_chunk_divide(word - start, WR_CHUNK_LOAD(c, reciprocal));
    if (number >= WR_CHUNK_LOAD(c, count))
        return NULL;
    return (void *)(start + (size_t)number * WR_CHUNK_LOAD(c, stride));
}
