/* SPDX-License-Identifier: MIT */
/* memory/heap_parts.h: what the files that make up the heap say to each other, and nobody else.
 *
 * Job        The steps of a collection, and the shape of an object's word.
 * Invariants An object's word is the address of its type, with WR_WORD_ARRAY set when it holds a row of that type, or
 *            WR_WORD_SIZED when it is untyped and may have words behind the struct. Only with one of these is
 *            anything behind the struct traced; then it was zeroed up to the end of the stride. The word is valid in
 *            every allocated object once the cursors are retired.
 * Threads    The heap's.
 */
#ifndef WR_MEMORY_HEAP_PARTS_H
#define WR_MEMORY_HEAP_PARTS_H

#include "memory/arena.h"
#include "memory/heap.h"

#define WR_WORD_ARRAY ((uintptr_t)1)
#define WR_WORD_SIZED ((uintptr_t)2)
#define WR_WORD_FLAGS ((uintptr_t)7)
#define WR_RUN_BYTES 8192  /* of one free run: bounds what a cursor holds unused */
#define WR_FREED_BYTE 0xDF /* freed objects in debug builds */

/* A growable stack of objects (payload addresses) to trace: a first part on the C stack, further ones from the arena.
 */
typedef struct wr_mark_segment {
    struct wr_mark_segment *previous;
    wr_chunk *chunk;
    uintptr_t *top_before, *bottom_before, *limit_before;
    uintptr_t objects[];
} wr_mark_segment;

#define WR_MARK_FIRST 448

struct wr_marker {
    uintptr_t *top, *bottom, *limit;
    wr_mark_segment *segment; /* newest from the arena */
    uintptr_t first[WR_MARK_FIRST];
};

WR_INLINE uintptr_t wr_object_word(uintptr_t payload)
{
    return *(const uintptr_t *)(payload - WEIR_WORD_);
}

WR_INLINE const weir_type *wr_word_type(uintptr_t word)
{
    return (const weir_type *)(word & ~WR_WORD_FLAGS);
}

WR_INLINE struct weir_cursor_ *wr_heap_cursor(wr_heap *heap, int final, unsigned size_class)
{
#if WR_ASAN
    return &heap->hidden[final][size_class];
#else
    return &heap->head.cursor[final][size_class];
#endif
}

/* The lowest size class in a set of them, taken out of it. The set may not be empty. */
WR_INLINE unsigned wr_next_class(uint64_t *classes)
{
    unsigned lowest = wr_lowest_bit(*classes);
    *classes &= *classes - 1;
    WR_ASSERT(lowest < WEIR_CLASSES_);
    return lowest;
}

/* Gives the unused rest of every cursor's run back to its chunk. Afterwards allocated bits are exact. */
void wr_heap_retire_cursors(wr_heap *heap);
/* From now on allocation takes fresh chunks; and the end of that, where all chunks are looked at again. */
void wr_heap_begin_fresh(wr_heap *heap);
void wr_heap_end_fresh(wr_heap *heap);

void wr_mark_begin(wr_heap *heap, wr_marker *marker);
void wr_mark_drain(wr_heap *heap);
void wr_mark_end(wr_heap *heap);

/* Runs the finaliser of every dead object (allocated, not marked, not in a fresh chunk). */
void wr_heap_finalise_dead(wr_heap *heap);
/* Runs the finaliser of every object, in rounds until none is left. */
void wr_heap_finalise_all(wr_heap *heap);

/* Frees what is not marked, gives empty chunks to the arena, counts what is alive. */
void wr_heap_sweep(wr_heap *heap);

#endif
