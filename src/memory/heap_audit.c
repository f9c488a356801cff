/* SPDX-License-Identifier: MIT */
/* memory/heap_audit.c: walk a heap and trip a check when something is wrong.
 *
 * Job        Lists, bitmaps, cursors, accounting, and every precise reference: it must name an allocated object of
 *            this heap, or lie outside all heaps. That finds a dead object stored where a live one can see it.
 * Invariants Changes nothing.
 * Threads    The heap's, not during a collection.
 * Cost       Reads every object.
 */
#include "memory/heap_audit.h"

#include "memory/heap_parts.h"

static void check_reference(const wr_heap *heap, const weir_type *type, uintptr_t object, uintptr_t word)
{
    if (!wr_heap_is_heap_word(word) || (word & (WR_GRANULE - 1)) < WR_PAYLOAD_OFFSET)
        return;
    WR_CHECK(wr_heap_owns(heap, word), "the %s at %p refers to %p, which is no living object of its heap", type->name,
             (void *)object, (void *)word);
}

static void check_element(const wr_heap *heap, const weir_type *type, uintptr_t object, uintptr_t base)
{
    for (const weir_field *f = type->refs; f != NULL && f->count != 0; f++)
        for (uint32_t i = 0; i < f->count; i++)
            check_reference(heap, type, object, ((const uintptr_t *)(base + f->offset))[i]);
}

static void check_object(const wr_heap *heap, const wr_chunk *c, uintptr_t object)
{
    uintptr_t word = wr_object_word(object);
    const weir_type *type = wr_word_type(word);
    WR_CHECK(type != NULL && type->name != NULL, "the object at %p has no type", (void *)object);
    WR_CHECK((type->finalise != NULL) == (c->final != 0), "the %s at %p is in the wrong kind of chunk", type->name,
             (void *)object);
    if ((type->flags & WEIR_TYPE_UNTYPED) != 0)
        return;
    if ((word & WR_WORD_ARRAY) == 0) {
        WR_CHECK(type->size <= wr_chunk_capacity(c), "the %s at %p is too small", type->name, (void *)object);
        check_element(heap, type, object, object);
        return;
    }
    for (size_t at = 0; type->size != 0 && at + type->size <= wr_chunk_capacity(c); at += type->size)
        check_element(heap, type, object, object + at);
}

static size_t check_chunk(wr_heap *heap, const wr_chunk *c, int final, unsigned size_class)
{
    uint32_t count = WR_CHUNK_LOAD(c, count);
    WR_CHECK(WR_CHUNK_LOAD(c, kind) == WR_CHUNK_HEAP, "chunk %p of a heap is of kind %u", (const void *)c,
             WR_CHUNK_LOAD(c, kind));
    WR_CHECK(WR_CHUNK_LOAD(c, owner) == heap, "chunk %p has another owner", (const void *)c);
    WR_CHECK(c->final == final && c->size_class == size_class, "chunk %p is in the wrong bin", (const void *)c);
    WR_CHECK(!c->fresh, "chunk %p is fresh outside a collection", (const void *)c);
    WR_CHECK(c->scan <= count, "chunk %p was scanned to %u of %u", (const void *)c, c->scan, count);
    WR_CHECK((c->large_size != 0) == (size_class == WEIR_CLASSES_), "chunk %p: size %zu", (const void *)c,
             c->large_size);
    for (uint32_t i = 0; i < wr_chunk_bit_words(c); i++) {
        uint64_t allocated = c->bits[i].allocated;
        WR_CHECK(c->bits[i].marked == 0, "chunk %p has marks outside a collection", (const void *)c);
        WR_CHECK(count - i * 64 >= 64 || allocated >> (count - i * 64) == 0, "chunk %p: bits behind its end",
                 (const void *)c);
        for (; allocated != 0; allocated &= allocated - 1) {
            uintptr_t object = (uintptr_t)wr_chunk_payload(c, i * 64 + wr_lowest_bit(allocated));
            if (wr_heap_owns(heap, object)) /* else in a cursor's run, not made yet */
                check_object(heap, c, object);
        }
    }
    return (size_t)c->granules * WR_GRANULE;
}

static void check_cursor(wr_heap *heap, int final, unsigned size_class)
{
    const struct weir_cursor_ *cursor = wr_heap_cursor(heap, final, size_class);
    if (cursor->next == cursor->end)
        return;
    size_t size = (size_t)(cursor->end - cursor->next), stride = weir_class_stride_(size_class);
    WR_CHECK(wr_arena_holds((uintptr_t)cursor->next), "cursor of class %u leaves the arena", size_class);
    const wr_chunk *c = wr_arena_head(wr_arena_record((uintptr_t)cursor->next));
    WR_CHECK(WR_CHUNK_LOAD(c, owner) == heap && c->size_class == size_class && c->final == final,
             "cursor of class %u is in a chunk of class %u", size_class, c->size_class);
    WR_CHECK(size % stride == 0 && size <= (stride > WR_RUN_BYTES ? stride : WR_RUN_BYTES),
             "cursor of class %u has %zu bytes", size_class, size);
    WR_CHECK(size <= heap->allocated_bytes, "cursor of class %u is not accounted for", size_class);
}

void wr_heap_check(wr_heap *heap)
{
    size_t held = 0;
    WR_CHECK(!heap->collecting && heap->marker == NULL, "audit during a collection");
    for (int final = 0; final < 2; final++) {
        for (unsigned size_class = 0; size_class < WEIR_CLASSES_; size_class++) {
            const wr_heap_bin *bin = &heap->bins[final][size_class];
            bool current_seen = bin->current == NULL;
            WR_CHECK((bin->first != NULL) == ((heap->filled[final] >> size_class) & 1), "bin %u is noted wrongly",
                     size_class);
            for (const wr_chunk *c = bin->first; c != NULL; c = c->next) {
                held += check_chunk(heap, c, final, size_class);
                current_seen |= c == bin->current;
            }
            WR_CHECK(current_seen, "bin %u looks at a chunk that is not its own", size_class);
            check_cursor(heap, final, size_class);
            WR_CHECK(!WR_ASAN || heap->head.cursor[final][size_class].next == NULL, "exposed cursor %u is not empty",
                     size_class);
        }
        for (const wr_chunk *c = heap->large[final]; c != NULL; c = c->next)
            held += check_chunk(heap, c, final, WEIR_CLASSES_);
    }
    WR_CHECK(held == heap->held_bytes, "heap holds %zu bytes, notes %zu", held, heap->held_bytes);
    wr_ptrset_check(&heap->pins);
    for (uint32_t i = 0; i < heap->pins.used; i++) {
        const wr_ptrset_entry *pin = wr_ptrset_at(&heap->pins, i);
        WR_CHECK(pin == NULL || (pin->count > 0 && wr_heap_owns(heap, (uintptr_t)pin->pointer)),
                 "pin %u names no object", i);
    }
}
