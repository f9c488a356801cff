/* SPDX-License-Identifier: MIT */
/* memory/heap.h: an actor's heap, as the layers above see it.
 *
 * Job        Objects of one owner (an actor): allocation, collection, finalisers, pins, accounting.
 * Invariants The rules of a collection, tested one by one (docs/internals/memory.md): all finalisers of a collection
 *            run before any of its memory is freed; dead objects are readable until then; what a finaliser allocates
 *            lives until the next collection; each finaliser runs exactly once, at the latest when the heap is
 *            destroyed.
 * Threads    One at a time: the thread that runs the owner. wr_heap_is_heap_word and the totals: any.
 * Cost       Allocation about 2 ns, collection a few ns per live object; dead objects without finaliser cost nothing
 *            of their own.
 */
#ifndef WR_MEMORY_HEAP_H
#define WR_MEMORY_HEAP_H

#include "memory/chunk.h"
#include "memory/pool.h"
#include "memory/ptrset.h"

#define WR_COLLECT_AFTER_DEFAULT ((size_t)1 << 20)

/* Upcalls of a collection to the layer that owns the heap. Any may be NULL. */
typedef struct wr_heap_hooks {
    void (*roots)(void *owner, wr_heap *heap); /* calls wr_mark_... for every root */
    void (*shared)(
        void *owner, void *block,
        uintptr_t word); /* a marked word lies in this pool block; may come often for one block; marks nothing */
    void (*give_back)(void *owner); /* last step, after dead objects are freed */
} wr_heap_hooks;

typedef struct wr_heap_bin { /* the chunks of one size class, with or without finalisers */
    wr_chunk *first;
    wr_chunk *current; /* where the allocator looks; NULL: take a new one */
} wr_heap_bin;

typedef struct wr_marker wr_marker;

struct wr_heap {
    struct weir_heap_head_ head; /* exposed cursors: must come first */
    wr_heap_bin bins[2][WEIR_CLASSES_];
    uint64_t filled[2]; /* bit c: bins[..][c] has chunks; nothing else need be looked at */
    wr_chunk *large[2];
    void *owner;
    const wr_heap_hooks *hooks;
    size_t collect_after;
    size_t threshold;                        /* collect when what follows reaches it; 0: as soon as possible */
    size_t allocated_bytes;                  /* since the last collection */
    size_t charged_bytes;                    /* since the last collection */
    int64_t external_bytes, external_before; /* now, and at the last collection */
    size_t live_bytes, held_bytes;
    uint64_t collections, finalised, collect_ns_total, collect_ns_longest;
    wr_ptrset pins;    /* count of an entry: how often it is pinned */
    wr_marker *marker; /* while marking */
    bool collecting;   /* allocation takes fresh chunks only */
    bool soon;         /* weir_collect_soon was called during the collection */
#if WR_ASAN
    struct weir_cursor_
        hidden[2][WEIR_CLASSES_]; /* the real cursors: the exposed ones stay empty, so that every object passes us */
#endif
};

/* A heap for `owner`, which is handed to the hooks. `collect_after` bytes allocated make a small heap want a
 * collection; 0: default. 0 or -ENOMEM. The struct comes from `cache`, which is not kept. */
int wr_heap_create(void *owner, const wr_heap_hooks *hooks, wr_pool_cache *cache, size_t collect_after, wr_heap **out);
/* Runs all finalisers, also those of objects that finalisers make, then frees all. Hooks are not called. */
void wr_heap_destroy(wr_heap *heap);
void wr_heap_collect(wr_heap *heap);
/* Counts `bytes` towards the next collection, which forgets them. */
void wr_heap_charge(wr_heap *heap, size_t bytes);
void wr_heap_external(wr_heap *heap, int64_t bytes);

/* Does the word name (payload start, inside, one past the end) an object of this heap? Also dead ones that were not
 * collected yet. */
bool wr_heap_owns(const wr_heap *heap, uintptr_t word);
/* Does it lie in any heap's chunk? */
bool wr_heap_is_heap_word(uintptr_t word);

/* For the roots hook. Marks what the words name in this heap, reports pool blocks to the shared hook, ignores the
 * rest. */
void wr_mark_word(wr_heap *heap, uintptr_t word);
/* The fields of the struct at `base`, which are precise: in debug builds a word that names an object of another heap
 * or a freed one is a failure. */
void wr_mark_fields(wr_heap *heap, const void *base, const weir_field *fields);
/* Conservatively: every aligned word of the range. */
void wr_mark_range(wr_heap *heap, const void *start, size_t size);

/* The heap that allocation on this thread uses; NULL: none. */
wr_heap *wr_heap_current(void);
void wr_heap_enter(wr_heap *heap_or_null);
/* Who makes or finds the heap when something allocates while none is entered: it enters the heap and returns it, or
 * returns NULL when this is no behaviour. */
void wr_heap_set_provider(wr_heap *(*provider)(void));

void wr_heap_pin(wr_heap *heap, void *object);
void wr_heap_unpin(wr_heap *heap, void *object);
bool wr_heap_is_pinned(const wr_heap *heap, const void *object);

/* An object of a type without finaliser with `size` bytes, of which only the struct itself is zeroed. What lies
 * behind must be bytes that the type does not trace. */
void *wr_heap_alloc_uninitialised(const weir_type *type, size_t size);
/* `bytes` bytes as weir_new_bytes, not zeroed. */
void *wr_heap_alloc_bytes_uninitialised(size_t bytes);

/* Totals of the process since wr_heap_totals_reset. Added to at the end of each collection and destruction. Any
 * thread. */
typedef struct wr_heap_totals {
    uint64_t collections, finalised;
} wr_heap_totals;
void wr_heap_totals_reset(void);
void wr_heap_get_totals(wr_heap_totals *out);
void wr_heap_totals_add(uint64_t collections, uint64_t finalised);

WR_INLINE bool wr_heap_wants_collection(const wr_heap *heap)
{
    int64_t grown = heap->external_bytes - heap->external_before;
    return heap->allocated_bytes + heap->charged_bytes + (grown > 0 ? (size_t)grown : 0) >= heap->threshold;
}

extern const weir_type wr_type_bytes, wr_type_refs;

#endif
