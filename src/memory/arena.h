/* SPDX-License-Identifier: MIT */
/* memory/arena.h: the one address range that all heaps and pools take their granules from.
 *
 * Job        Reserve the range, hand out runs of 64 KiB granules and take them back, give memory back to the system,
 *            and answer "is this word in the range" and "which record describes it" by arithmetic.
 * Invariants wr_arena_holds(w) implies that the record of w can be read. Two free neighbours are never of one kind
 *            (they were joined). committed = used + dirty.
 * Threads    Open and close: while nothing else runs. Everything else: any; one lock guards the free runs.
 * Cost       Take and give: a lock and a few list operations, constant for one granule; a record write for each
 *            further granule.
 */
#ifndef WR_MEMORY_ARENA_H
#define WR_MEMORY_ARENA_H

#include "memory/chunk.h"
#include "platform/os.h"

typedef struct wr_arena_range { /* read by everybody, written at open and when the range grows */
    uintptr_t base;
    wr_chunk *chunks;       /* record of the granule at base */
    _Atomic uintptr_t size; /* bytes from base that are accessible and have records */
} wr_arena_range;

extern wr_arena_range wr_arena;

typedef struct wr_arena_stats {
    size_t committed_bytes; /* used and dirty: what can be resident */
    size_t used_bytes;
    size_t dirty_bytes;            /* free but not yet given back */
    size_t heap_bytes, pool_bytes; /* parts of used_bytes */
    size_t limit_bytes;            /* the reservation */
} wr_arena_stats;

/* 0, -ENOMEM, or -EBUSY when it is open already. */
int wr_arena_open(void);
/* Gives everything back, pools included. No heap may exist any more. */
void wr_arena_close(void);

/* A chunk of `granules` for `kind`, its records' owner set (NULL for pools), its memory accessible; `out_zero`:
 * whether it reads as zero. NULL when memory or address space is short. */
wr_chunk *wr_arena_take(uint32_t granules, wr_chunk_kind kind, wr_heap *owner, bool *out_zero);
/* Takes back chunks linked by `next`, under one take of the lock. */
void wr_arena_give(wr_chunk *list);
/* Gives all dirty free granules back to the system. */
void wr_arena_trim(void);
void wr_arena_get_stats(wr_arena_stats *out);
/* Walks all records; trips a check when an invariant is broken. */
void wr_arena_check(void);

WR_INLINE bool wr_arena_holds(uintptr_t w)
{
    return w - wr_arena.base < atomic_load_explicit(&wr_arena.size, memory_order_relaxed);
}

/* The record of the granule that `w`, which the arena holds, lies in. */
WR_INLINE wr_chunk *wr_arena_record(uintptr_t w)
{
    return wr_arena.chunks + ((w - wr_arena.base) >> WR_GRANULE_SHIFT);
}

WR_INLINE wr_chunk *wr_arena_head(wr_chunk *record)
{
    return record - WR_CHUNK_LOAD(record, back);
}

#endif
