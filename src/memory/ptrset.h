/* SPDX-License-Identifier: MIT */
/* memory/ptrset.h: a set of pointers in the order of insertion, with a count and a mark per entry.
 *
 * Job        Pins of a heap, held lists of actors.
 * Invariants Iteration is in the order of insertion, never of addresses. Entries move when one is added, and in
 *            wr_ptrset_retain; a pointer to an entry is valid until then. A removed entry leaves a hole (pointer
 *            NULL), which adding or retaining closes in time.
 * Threads    The owner's.
 * Cost       Empty: 16 bytes. Up to 8 entries: a linear scan; beyond: a hash operation. All of it in one pool block.
 */
#ifndef WR_MEMORY_PTRSET_H
#define WR_MEMORY_PTRSET_H

#include "memory/pool.h"
#include <stdbool.h>

#define WR_PTRSET_LINEAR 8u

typedef struct wr_ptrset_entry {
    void *pointer;        /* NULL: a hole */
    uint32_t count, mark; /* the owner's */
} wr_ptrset_entry;

typedef struct wr_ptrset_block wr_ptrset_block;

/* All zero: empty. */
typedef struct wr_ptrset {
    wr_ptrset_block *block;
    uint32_t used; /* entries with holes */
    uint32_t live; /* without */
} wr_ptrset;

/* NULL if it is not in the set. */
wr_ptrset_entry *wr_ptrset_find(const wr_ptrset *set, const void *pointer);
/* The entry of `pointer`, added with count and mark 0 if it was not there (`out_new`, may be NULL). NULL when memory
 * is short. */
wr_ptrset_entry *wr_ptrset_add(wr_ptrset *set, wr_pool_cache *cache, void *pointer, bool *out_new);
void wr_ptrset_remove(wr_ptrset *set, wr_ptrset_entry *entry);
/* Keeps the entries for which `keep` returns true; it is called once for each, in order, and may not touch the set. */
void wr_ptrset_retain(wr_ptrset *set, bool (*keep)(void *arg, wr_ptrset_entry *entry), void *arg);
/* Empties the set and gives its memory back. */
void wr_ptrset_clear(wr_ptrset *set, wr_pool_cache *cache);
/* Iteration: i from 0 below set->used; NULL for a hole. */
wr_ptrset_entry *wr_ptrset_at(const wr_ptrset *set, uint32_t i);
void wr_ptrset_check(const wr_ptrset *set);

#endif
