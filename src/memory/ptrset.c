/* SPDX-License-Identifier: MIT */
/* memory/ptrset.c: entries in a row, and from 9 on an index of their positions.
 *
 * Job        See ptrset.h.
 * Invariants S1 index slot values are 0 (never used), REMOVED, or position + 1 of a live entry; S2 each live entry
 *            has exactly one slot; S3 at least half of the index is never used, so that a search ends: each position
 *            is given a slot once between two rebuilds.
 * Threads    The owner's.
 * Cost       Linear probing over 4-byte slots; growing doubles and drops holes.
 */
#include "memory/ptrset.h"

#include <string.h>

#define REMOVED UINT32_MAX
#define FIRST_CAPACITY 4u
#define SLOTS_PER_ENTRY 2u
#define CAPACITY_MAX (1u << 28)

struct wr_ptrset_block {
    uint32_t capacity; /* entries, a power of two */
    uint32_t unused;
    wr_ptrset_entry
        entries[]; /* then, if capacity is above WR_PTRSET_LINEAR, the index: uint32_t[capacity * SLOTS_PER_ENTRY] */
};

static size_t block_size(uint32_t capacity)
{
    size_t size = sizeof(wr_ptrset_block) + capacity * sizeof(wr_ptrset_entry);
    return capacity <= WR_PTRSET_LINEAR ? size : size + (size_t)capacity * SLOTS_PER_ENTRY * sizeof(uint32_t);
}

static bool indexed(const wr_ptrset *set)
{
    return set->block != NULL && set->block->capacity > WR_PTRSET_LINEAR;
}

static uint32_t *index_of(const wr_ptrset *set)
{
    WR_ASSERT(indexed(set));
    return (uint32_t *)(void *)&set->block->entries[set->block->capacity];
}

static uint32_t slot_of(const void *pointer, uint32_t slots)
{
    uint64_t mixed = ((uint64_t)(uintptr_t)pointer >> 4) * 0x9E3779B97F4A7C15u;
    return (uint32_t)(mixed >> 32) & (slots - 1);
}

/* The index slot of an entry that is in the set, or of nothing (value 0). */
static uint32_t *search(const wr_ptrset *set, const void *pointer)
{
    uint32_t *index = index_of(set), slots = set->block->capacity * SLOTS_PER_ENTRY;
    for (uint32_t i = slot_of(pointer, slots);; i = (i + 1) & (slots - 1)) {
        uint32_t value = index[i];
        if (value == 0 || (value != REMOVED && set->block->entries[value - 1].pointer == pointer))
            return &index[i];
    }
}

wr_ptrset_entry *wr_ptrset_find(const wr_ptrset *set, const void *pointer)
{
    WR_ASSERT(pointer != NULL);
    if (indexed(set)) {
        uint32_t value = *search(set, pointer);
        return value == 0 ? NULL : &set->block->entries[value - 1];
    }
    for (uint32_t i = 0; i < set->used; i++)
        if (set->block->entries[i].pointer == pointer)
            return &set->block->entries[i];
    return NULL;
}

/* Rebuilds the index from the entries, which have no holes. */
static void reindex(wr_ptrset *set)
{
    WR_ASSERT(set->used == set->live);
    if (!indexed(set))
        return;
    memset(index_of(set), 0, (size_t)set->block->capacity * SLOTS_PER_ENTRY * sizeof(uint32_t));
    for (uint32_t i = 0; i < set->used; i++) {
        uint32_t *slot = search(set, set->block->entries[i].pointer);
        WR_ASSERT(*slot == 0);
        *slot = i + 1;
    }
}

static void close_holes(wr_ptrset *set)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < set->used; i++)
        if (set->block->entries[i].pointer != NULL)
            set->block->entries[kept++] = set->block->entries[i];
    WR_ASSERT(kept == set->live);
    set->used = kept;
}

/* Makes room for one more entry: closes holes if they are half of the entries, doubles otherwise. */
static bool make_room(wr_ptrset *set, wr_pool_cache *cache)
{
    uint32_t capacity = set->block == NULL ? 0 : set->block->capacity;
    if (set->used > 0 && set->live <= set->used / 2) {
        close_holes(set);
        reindex(set);
        return true;
    }
    uint32_t larger = capacity == 0 ? FIRST_CAPACITY : capacity * 2;
    if (larger > CAPACITY_MAX)
        return false;
    wr_ptrset_block *block = wr_pool_take(cache, block_size(larger));
    if (block == NULL)
        return false;
    block->capacity = larger;
    block->unused = 0;
    if (set->block != NULL) {
        close_holes(set);
        memcpy(block->entries, set->block->entries, set->used * sizeof block->entries[0]);
        wr_pool_give(cache, set->block, block_size(capacity));
    }
    set->block = block;
    reindex(set);
    return true;
}

wr_ptrset_entry *wr_ptrset_add(wr_ptrset *set, wr_pool_cache *cache, void *pointer, bool *out_new)
{
    WR_ASSERT(pointer != NULL);
    wr_ptrset_entry *entry = wr_ptrset_find(set, pointer);
    if (out_new != NULL)
        *out_new = entry == NULL;
    if (entry != NULL)
        return entry;
    if ((set->block == NULL || set->used == set->block->capacity) && !make_room(set, cache))
        return NULL;
    WR_ASSERT(set->used < set->block->capacity);
    uint32_t position = set->used++;
    set->live++;
    entry = &set->block->entries[position];
    *entry = (wr_ptrset_entry){.pointer = pointer};
    if (indexed(set)) {
        uint32_t *slot = search(set, pointer);
        WR_ASSERT(*slot == 0);
        *slot = position + 1;
    }
    return entry;
}

void wr_ptrset_remove(wr_ptrset *set, wr_ptrset_entry *entry)
{
    uint32_t position = (uint32_t)(entry - set->block->entries);
    WR_ASSERT(position < set->used && entry->pointer != NULL);
    if (indexed(set)) {
        uint32_t *slot = search(set, entry->pointer);
        WR_ASSERT(*slot == position + 1);
        *slot = REMOVED;
    }
    entry->pointer = NULL;
    set->live--;
    if (!indexed(set) &&
        position + 1 == set->used) /* a position with an index slot is not used again before reindex: S3 */
        set->used--;
}

void wr_ptrset_retain(wr_ptrset *set, bool (*keep)(void *arg, wr_ptrset_entry *entry), void *arg)
{
    uint32_t kept = 0, used = set->used;
    for (uint32_t i = 0; i < used; i++) {
        wr_ptrset_entry *entry = &set->block->entries[i];
        if (entry->pointer != NULL && keep(arg, entry))
            set->block->entries[kept++] = *entry;
    }
    WR_ASSERT(set->used == used && kept <= set->live);
    if (kept == used)
        return;
    set->used = set->live = kept;
    reindex(set);
}

void wr_ptrset_clear(wr_ptrset *set, wr_pool_cache *cache)
{
    if (set->block != NULL)
        wr_pool_give(cache, set->block, block_size(set->block->capacity));
    *set = (wr_ptrset){0};
}

wr_ptrset_entry *wr_ptrset_at(const wr_ptrset *set, uint32_t i)
{
    WR_ASSERT(i < set->used);
    wr_ptrset_entry *entry = &set->block->entries[i];
    return entry->pointer == NULL ? NULL : entry;
}

void wr_ptrset_check(const wr_ptrset *set)
{
    uint32_t live = 0;
    WR_CHECK(set->block == NULL ? set->used == 0 : set->used <= set->block->capacity, "set uses %u entries", set->used);
    for (uint32_t i = 0; i < set->used; i++) {
        const wr_ptrset_entry *entry = &set->block->entries[i];
        if (entry->pointer == NULL)
            continue;
        live++;
        WR_CHECK(wr_ptrset_find(set, entry->pointer) == entry, "entry %u is not found at its place", i);
    }
    WR_CHECK(live == set->live, "set has %u live entries, notes %u", live, set->live);
    if (!indexed(set))
        return;
    uint32_t filled = 0, slots = set->block->capacity * SLOTS_PER_ENTRY;
    for (uint32_t i = 0; i < slots; i++)
        filled += index_of(set)[i] != 0 && index_of(set)[i] != REMOVED;
    WR_CHECK(filled == live, "index has %u entries of %u", filled, live);
}
