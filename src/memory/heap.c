/* SPDX-License-Identifier: MIT */
/* memory/heap.c: life of a heap, and allocation where the inlined bump ends.
 *
 * Job        Find the next free run for a cursor: in the current chunk, in the next chunks of the bin, in a new one.
 *            Large objects, arrays, bytes. Accounting of what was handed out.
 * Invariants H1 every object of a run is allocated in the bitmap while a cursor holds the run; H2 while `collecting`,
 *            runs come from fresh chunks only, so that no memory which this collection frees is handed out, and
 *            nothing it hands out is freed; H3 in AddressSanitizer builds the exposed cursors stay empty and a free
 *            object is poisoned as a whole.
 * Threads    The owner's. wr_heap_is_heap_word: any.
 * Cost       A run is at most 8 KiB, so the slow path is about 0.1 ns of a 32-byte object; bounding it keeps what
 *            cursors hold unused, and count as allocated, small beside the trigger.
 */
#include "memory/heap_parts.h"

#include <errno.h>
#include <string.h>

/* What weir_heap_ shows outside a behaviour: nothing can be taken from it. */
static struct weir_heap_head_ nothing;

WEIR_TLS_ struct weir_heap_head_ *weir_heap_ = &nothing;

static wr_heap *(*_Atomic current_provider)(void);

int wr_heap_create(void *owner, const wr_heap_hooks *hooks, wr_pool_cache *cache, size_t collect_after, wr_heap **out)
{
    WR_ASSERT(hooks != NULL);
    *out = NULL;
    wr_heap *heap = wr_pool_take(cache, sizeof *heap);
    if (heap == NULL)
        return -ENOMEM;
    memset(heap, 0, sizeof *heap);
    heap->owner = owner;
    heap->hooks = hooks;
    heap->collect_after = collect_after == 0 ? WR_COLLECT_AFTER_DEFAULT : collect_after;
    heap->threshold = heap->collect_after;
    *out = heap;
    return 0;
}

static wr_chunk *prepend_all(wr_chunk *list, wr_chunk *more)
{
    while (more != NULL) {
        wr_chunk *next = more->next;
        more->next = list;
        list = more;
        more = next;
    }
    return list;
}

void wr_heap_destroy(wr_heap *heap)
{
    WR_CHECK(!heap->collecting, "a heap is destroyed from inside one of its finalisers");
    wr_heap *before = wr_heap_current();
    uint64_t finalised = heap->finalised;
    wr_heap_enter(heap);
    wr_heap_finalise_all(heap);
    wr_heap_enter(before == heap ? NULL : before);
    wr_heap_totals_add(0, heap->finalised - finalised);
    wr_chunk *all = NULL;
    for (int final = 0; final < 2; final++) {
        for (uint64_t todo = heap->filled[final]; todo != 0;)
            all = prepend_all(all, heap->bins[final][wr_next_class(&todo)].first);
        all = prepend_all(all, heap->large[final]);
    }
    if (all != NULL)
        wr_arena_give(all);
    wr_ptrset_clear(&heap->pins, NULL);
    wr_pool_give(NULL, heap, sizeof *heap);
}

wr_heap *wr_heap_current(void)
{
    return weir_heap_ == &nothing ? NULL : (wr_heap *)(void *)weir_heap_;
}

void wr_heap_enter(wr_heap *heap)
{
    weir_heap_ = heap == NULL ? &nothing : &heap->head;
}

void wr_heap_set_provider(wr_heap *(*provider)(void))
{
    atomic_store_explicit(&current_provider, provider, memory_order_release);
}

/* The heap to allocate in; the provider makes one at an actor's first allocation. */
static wr_heap *heap_needed(void)
{
    if (WR_LIKELY(weir_heap_ != &nothing))
        return (wr_heap *)(void *)weir_heap_;
    wr_heap *(*provider)(void) = atomic_load_explicit(&current_provider, memory_order_acquire);
    wr_heap *heap = provider == NULL ? NULL : provider();
    WR_CHECK(heap != NULL, "weir_new outside a behaviour: there is no actor whose heap it could use");
    WR_ASSERT(wr_heap_current() == heap);
    return heap;
}

static WR_COLD WR_NORETURN void out_of_memory(const wr_heap *heap, const weir_type *type, size_t size)
{
    wr_arena_stats stats;
    wr_arena_get_stats(&stats);
    wr_fatal("out of memory: %zu bytes for a %s; the heap holds %zu, the process %zu of %zu bytes", size,
             type == NULL ? "object" : type->name, heap->held_bytes, stats.committed_bytes, stats.limit_bytes);
}

static void retire(wr_heap *heap, struct weir_cursor_ *cursor)
{
    if (cursor->next != cursor->end) {
        wr_chunk *c = wr_arena_head(wr_arena_record((uintptr_t)cursor->next));
        uint32_t reciprocal = WR_CHUNK_LOAD(c, reciprocal);
        size_t from = (size_t)(cursor->next - c->start) - WEIR_WORD_,
               to = (size_t)(cursor->end - c->start) - WEIR_WORD_;
        WR_ASSERT(WR_CHUNK_LOAD(c, owner) == heap && from < to);
        WR_ASSERT(from % WR_CHUNK_LOAD(c, stride) == 0 && to % WR_CHUNK_LOAD(c, stride) == 0);
        uint32_t first = wr_chunk_divide(from, reciprocal);
        wr_chunk_return_run(c, first, wr_chunk_divide(to, reciprocal));
        if (c->scan > first)
            c->scan = first;
        WR_ASSERT(heap->allocated_bytes >= to - from);
        heap->allocated_bytes -= to - from;
    }
    *cursor = (struct weir_cursor_){NULL, NULL};
}

void wr_heap_retire_cursors(wr_heap *heap)
{
    for (int final = 0; final < 2; final++)
        for (uint64_t todo = heap->filled[final]; todo != 0;)
            retire(heap, wr_heap_cursor(heap, final, wr_next_class(&todo)));
}

void wr_heap_begin_fresh(wr_heap *heap)
{
    WR_ASSERT(!heap->collecting);
    heap->collecting = true;
    for (int final = 0; final < 2; final++)
        for (uint64_t todo = heap->filled[final]; todo != 0;) {
            unsigned size_class = wr_next_class(&todo);
            WR_ASSERT(wr_heap_cursor(heap, final, size_class)->next == NULL);
            heap->bins[final][size_class].current = NULL;
        }
}

void wr_heap_end_fresh(wr_heap *heap)
{
    WR_ASSERT(heap->collecting);
    heap->collecting = false;
    for (int final = 0; final < 2; final++)
        for (uint64_t todo = heap->filled[final]; todo != 0;) {
            unsigned size_class = wr_next_class(&todo);
            heap->bins[final][size_class].current = heap->bins[final][size_class].first;
            if (heap->bins[final][size_class].first == NULL)
                heap->filled[final] &= ~((uint64_t)1 << size_class);
        }
}

/* A new chunk for the bin, at the end of its list (current is the last one then) or, while collecting, at its front. */
static wr_chunk *add_chunk(wr_heap *heap, wr_heap_bin *bin, int final, unsigned size_class)
{
    uint32_t granules = wr_chunk_granules_for((uint32_t)weir_class_stride_(size_class));
    bool zero;
    wr_chunk *c = wr_arena_take(granules, WR_CHUNK_HEAP, heap, &zero);
    if (c == NULL)
        return NULL;
    wr_chunk_divide_small(c, size_class, final);
    c->fresh = heap->collecting;
    heap->held_bytes += granules * WR_GRANULE;
    if (heap->collecting || bin->first == NULL) {
        c->next = bin->first;
        bin->first = c;
    } else {
        WR_ASSERT(bin->current != NULL && bin->current->next == NULL);
        bin->current->next = c;
    }
    bin->current = c;
    heap->filled[final] |= (uint64_t)1 << size_class;
    return c;
}

/* Gives an empty cursor the next free run of its bin. */
static bool refill(wr_heap *heap, struct weir_cursor_ *cursor, int final, unsigned size_class)
{
    wr_heap_bin *bin = &heap->bins[final][size_class];
    size_t stride = weir_class_stride_(size_class);
    uint32_t most = stride >= WR_RUN_BYTES ? 1 : (uint32_t)(WR_RUN_BYTES / stride), first, end;
    wr_chunk *c = bin->current;
    WR_ASSERT(cursor->next == cursor->end);
    while (c == NULL || !wr_chunk_take_run(c, most, &first, &end)) {
        if (c != NULL && c->next != NULL && !heap->collecting)
            bin->current = c = c->next;
        else if ((c = add_chunk(heap, bin, final, size_class)) == NULL)
            return false;
    }
    WR_ASSERT(c->fresh == heap->collecting || !heap->collecting);
    cursor->next = wr_chunk_payload(c, first) - WEIR_WORD_;
    cursor->end = wr_chunk_payload(c, end) - WEIR_WORD_;
    heap->allocated_bytes += (end - first) * stride;
    return true;
}

/* The payload of a new small object, its word written, not zeroed. */
static void *take_small(wr_heap *heap, const weir_type *type, size_t size, int final, unsigned size_class)
{
    struct weir_cursor_ *cursor = wr_heap_cursor(heap, final, size_class);
    size_t stride = weir_class_stride_(size_class);
    if (cursor->next == cursor->end && !refill(heap, cursor, final, size_class))
        out_of_memory(heap, type, size);
    char *word = cursor->next;
    WR_ASSERT((size_t)(cursor->end - word) >= stride && size + WEIR_WORD_ <= stride);
    cursor->next = word + stride;
    WR_UNPOISON(word, WEIR_WORD_ + size);
    *(const weir_type **)(void *)word = type;
    return word + WEIR_WORD_;
}

/* The payload of a new large object with granules of its own, zeroed if `zeroed`. */
static void *take_large(wr_heap *heap, const weir_type *type, size_t size, int final, bool zeroed)
{
    WR_CHECK(size <= WEIR_ALLOC_MAX, "an object of %zu bytes is larger than WEIR_ALLOC_MAX", size);
    uint32_t granules = (uint32_t)((WR_PAYLOAD_OFFSET + size) / WR_GRANULE + 1);
    bool reads_zero;
    wr_chunk *c = wr_arena_take(granules, WR_CHUNK_HEAP, heap, &reads_zero);
    if (c == NULL)
        out_of_memory(heap, type, size);
    wr_chunk_make_large(c, size, final);
    c->fresh = heap->collecting;
    c->next = heap->large[final];
    heap->large[final] = c;
    heap->held_bytes += granules * WR_GRANULE;
    heap->allocated_bytes += granules * WR_GRANULE;
    char *payload = c->start + WR_PAYLOAD_OFFSET;
    WR_UNPOISON(payload - WEIR_WORD_, WEIR_WORD_ + size);
    *(const weir_type **)(void *)(payload - WEIR_WORD_) = type;
    if (zeroed && !reads_zero)
        memset(payload, 0, size);
    return payload;
}

void *weir_alloc_slow_(const weir_type *type, size_t size, unsigned size_class, int final)
{
    wr_heap *heap = heap_needed();
    WR_ASSERT(final == (type->finalise != NULL));
    WR_ASSERT(((uintptr_t)type & WR_WORD_FLAGS) == 0);
    if (size_class == WEIR_CLASSES_)
        return take_large(heap, type, size, final, true);
    return memset(take_small(heap, type, size, final, size_class), 0, size);
}

/* Lets the collector look behind the first struct of a new object: notes it in the word, and zeroes what of the
 * stride was not asked for, so that nothing is kept alive by what lay there before. */
static void open_tail(char *p, size_t size, const weir_type *type, uintptr_t flag)
{
    size_t capacity = wr_chunk_capacity(wr_arena_head(wr_arena_record((uintptr_t)p)));
    size_t readable = flag == WR_WORD_ARRAY && type->size != 0 ? capacity / type->size * type->size : size;
    WR_ASSERT(size <= readable && readable <= capacity);
    *(uintptr_t *)(void *)(p - WEIR_WORD_) |= flag;
    WR_UNPOISON(p + size, capacity - size);
    memset(p + size, 0, capacity - size);
    WR_POISON(p + readable, capacity - readable);
}

void *weir_alloc(const weir_type *type, size_t size)
{
    WR_CHECK(size >= type->size, "%zu bytes for a %s, which has %u", size, type->name, type->size);
    WR_CHECK(size <= WEIR_ALLOC_MAX, "an object of %zu bytes is larger than WEIR_ALLOC_MAX", size);
    WR_CHECK(type->align <= 16, "%s is aligned to %u bytes, 16 is the most", type->name, type->align);
    char *p = weir_alloc_(type, size, type->align, type->finalise != NULL);
    if ((type->flags & WEIR_TYPE_UNTYPED) != 0)
        open_tail(p, size, type, WR_WORD_SIZED);
    return p;
}

void *weir_alloc_array(const weir_type *type, size_t count)
{
    size_t bytes;
    WR_CHECK(type->finalise == NULL, "an array of %s, which has a finaliser; make single objects", type->name);
    WR_CHECK(type->align <= 16, "%s is aligned to %u bytes, 16 is the most", type->name, type->align);
    WR_CHECK(!WR_MUL_OVERFLOWS(count, (size_t)type->size, &bytes) && bytes <= WEIR_ALLOC_MAX,
             "an array of %zu %s is larger than WEIR_ALLOC_MAX", count, type->name);
    char *p = weir_alloc_(type, bytes, type->align, 0);
    open_tail(p, bytes, type, WR_WORD_ARRAY);
    return p;
}

void *weir_new_bytes(size_t bytes)
{
    WR_CHECK(bytes <= WEIR_ALLOC_MAX, "%zu bytes are more than WEIR_ALLOC_MAX", bytes);
    return weir_alloc_(&wr_type_bytes, bytes, 16, 0);
}

void **weir_new_refs(size_t count)
{
    return weir_alloc_array(&wr_type_refs, count);
}

void *wr_heap_alloc_uninitialised(const weir_type *type, size_t size)
{
    WR_ASSERT(type->finalise == NULL && size >= type->size);
    WR_ASSERT((type->flags & WEIR_TYPE_UNTYPED) == 0);
    WR_CHECK(size <= WEIR_ALLOC_MAX, "%zu bytes are more than WEIR_ALLOC_MAX", size);
    wr_heap *heap = heap_needed();
    size_t total = size + WEIR_WORD_;
    if (type->align > 8)
        total = (total + 15) & ~(size_t)15;
    void *object = total > WEIR_SMALL_MAX_ ? take_large(heap, type, size, 0, false)
                                           : take_small(heap, type, size, 0, weir_size_class_(total));
    return memset(object, 0, type->size);
}

void *wr_heap_alloc_bytes_uninitialised(size_t bytes)
{
    return wr_heap_alloc_uninitialised(&wr_type_bytes, bytes);
}

bool wr_heap_is_heap_word(uintptr_t word)
{
    return wr_arena_holds(word) && WR_CHUNK_LOAD(wr_arena_record(word), kind) == WR_CHUNK_HEAP;
}

bool wr_heap_owns(const wr_heap *heap, uintptr_t word)
{
    if (!wr_arena_holds(word))
        return false;
    wr_chunk *c = wr_arena_record(word);
    if (WR_CHUNK_LOAD(c, owner) != heap)
        return false;
    c = wr_arena_head(c);
    uintptr_t offset = word - (uintptr_t)c->start - WR_PAYLOAD_OFFSET;
    if (c->large_size != 0)
        return offset <= c->large_size;
    uint32_t stride = WR_CHUNK_LOAD(c, stride), count = WR_CHUNK_LOAD(c, count);
    if (offset >= (uintptr_t)count * stride)
        return false;
    uint32_t number = wr_chunk_divide(offset, WR_CHUNK_LOAD(c, reciprocal));
    WR_ASSERT(number < count);
    const struct weir_cursor_ *cursor = wr_heap_cursor((wr_heap *)heap, c->final, c->size_class);
    uintptr_t at = (uintptr_t)wr_chunk_payload(c, number) - WEIR_WORD_;
    if (at >= (uintptr_t)cursor->next && at < (uintptr_t)cursor->end)
        return false; /* allocated with its run, but no object yet */
    return wr_chunk_is_allocated(c, number);
}

void wr_heap_charge(wr_heap *heap, size_t bytes)
{
    heap->charged_bytes += bytes;
}

void wr_heap_external(wr_heap *heap, int64_t bytes)
{
    WR_CHECK(!WR_ADD_OVERFLOWS(heap->external_bytes, bytes, &heap->external_bytes),
             "weir_external_bytes(%lld): more than 2^63 bytes in all", (long long)bytes);
    WR_CHECK(heap->external_bytes >= 0, "weir_external_bytes: more bytes taken back than were announced (%lld)",
             (long long)heap->external_bytes);
}

void weir_external_bytes(int64_t bytes)
{
    wr_heap_external(heap_needed(), bytes);
}

void weir_collect_soon(void)
{
    wr_heap *heap = heap_needed();
    heap->soon = true;
    heap->threshold = 0;
}

/* Dead objects are freed when their finalisers have run, whatever a finaliser pins. */
static bool is_dying(const wr_heap *heap, uintptr_t word)
{
    wr_chunk *c = wr_arena_head(wr_arena_record(word));
    if (!heap->collecting || c->fresh)
        return false;
    return !wr_chunk_is_marked(
        c, wr_chunk_divide(word - (uintptr_t)c->start - WR_PAYLOAD_OFFSET, WR_CHUNK_LOAD(c, reciprocal)));
}

void wr_heap_pin(wr_heap *heap, void *object)
{
    WR_CHECK(wr_heap_owns(heap, (uintptr_t)object), "weir_pin of %p, which is no object of this actor", object);
    WR_CHECK(!is_dying(heap, (uintptr_t)object), "weir_pin of %p inside a finaliser, but the object is dead", object);
    wr_ptrset_entry *entry = wr_ptrset_add(&heap->pins, NULL, object, NULL);
    if (entry == NULL)
        out_of_memory(heap, NULL, sizeof *entry);
    WR_CHECK(entry->count < UINT32_MAX, "%p is pinned too often", object);
    entry->count++;
}

void wr_heap_unpin(wr_heap *heap, void *object)
{
    wr_ptrset_entry *entry = object == NULL ? NULL : wr_ptrset_find(&heap->pins, object);
    WR_CHECK(entry != NULL, "weir_unpin of %p, which is not pinned", object);
    if (--entry->count == 0)
        wr_ptrset_remove(&heap->pins, entry);
}

bool wr_heap_is_pinned(const wr_heap *heap, const void *object)
{
    return wr_ptrset_find(&heap->pins, object) != NULL;
}
