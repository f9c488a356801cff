/* SPDX-License-Identifier: MIT */
/* tests/unit/memory/test_heap.c: allocation, what keeps an object alive, and accounting. */
#include "world.h"

#include "memory/heap_parts.h"

#define N 3 /* a user's own short name: WEIR_TYPE and its like must not meet it */

typedef struct pair {
    void *named, *unnamed;
    uint64_t value;
} pair;
WEIR_TYPE(pair, named);

typedef struct loose {
    uint64_t before;
    uint64_t words[5];
} loose;
WEIR_UNTYPED(loose);

typedef struct leaf {
    uint64_t value;
} leaf;
WEIR_TYPE(leaf);

typedef struct table {
    uint64_t size;
    void *slots[6];
    uint64_t more;
    void *last;
} table;
WEIR_TYPE(table, slots, last);

typedef struct brick {
    uint64_t words[35]; /* 280 of the 312 bytes that a stride of 320 has */
} brick;
WEIR_UNTYPED(brick);

static bool alive(const world *w, uintptr_t word)
{
    return wr_heap_owns(w->heap, word);
}

/* Addresses that must not keep anything alive are remembered inverted, so that no scan finds them. */
static uintptr_t hide(const void *p)
{
    return ~(uintptr_t)p;
}

TEST(heap, size_classes_fit_and_are_monotonic)
{
    for (size_t total = 1; total <= WEIR_SMALL_MAX_; total++) {
        unsigned c = weir_size_class_(total);
        EXPECT(c < WEIR_CLASSES_);
        EXPECT(weir_class_stride_(c) >= total);
        EXPECT(c == 0 || weir_class_stride_(c - 1) < total);
        EXPECT(total <= 128 || total % 16 != 0 || weir_class_stride_(c) % 16 == 0);
    }
    EXPECT_EQ(weir_class_stride_(WEIR_CLASSES_ - 1), WEIR_SMALL_MAX_);
}

TEST(heap, division_by_multiplication_is_exact)
{
    for (unsigned c = 0; c < WEIR_CLASSES_; c++) {
        uint32_t stride = (uint32_t)weir_class_stride_(c), reciprocal = wr_chunk_reciprocal(stride);
        size_t size = wr_chunk_granules_for(stride) * WR_GRANULE;
        for (size_t offset = 0; offset < size; offset++)
            EXPECT_EQ(wr_chunk_divide(offset, reciprocal), offset / stride);
        uint32_t count = (uint32_t)((size - WR_PAYLOAD_OFFSET) / stride);
        EXPECT(count <= 64 * WR_CHUNK_WORDS);
        for (size_t before = 1; before <= WR_PAYLOAD_OFFSET; before++) /* before the first object: no object's number */
            EXPECT(wr_chunk_divide((size_t)0 - before, reciprocal) >= count);
    }
}

TEST(heap, objects_of_every_size_are_zeroed_aligned_and_apart)
{
    world *w = world_open();
    for (int round = 0; round < 3; round++) {
        for (size_t size = 0; size <= 70000; size += size < 300 ? 1 : 977) {
            unsigned char *a = weir_new_bytes(size), *b = weir_new_bytes(size);
            EXPECT_EQ((uintptr_t)a % 16, 0);
            EXPECT_EQ((uintptr_t)b % 16, 0);
            for (size_t i = 0; i < size; i++)
                EXPECT(a[i] == 0 && b[i] == 0);
            memset(a, 0x55, size);
            for (size_t i = 0; i < size; i++)
                EXPECT_EQ(b[i], 0);
            memset(b, 0xAA, size);
            leaf *l = weir_new(leaf);
            EXPECT_EQ((uintptr_t)l % 8, 0);
            EXPECT_EQ(l->value, 0);
            l->value = UINT64_MAX;
        }
        world_collect(w);
        EXPECT_EQ(w->heap->live_bytes, 0);
        EXPECT_EQ(w->heap->held_bytes, 0);
    }
    world_close(w);
}

typedef struct wide {
    _Alignas(16) uint64_t words[4];
} wide;
WEIR_TYPE(wide);

TEST(heap, sixteen_byte_alignment_is_kept)
{
    world *w = world_open();
    for (int i = 0; i < 5000; i++)
        EXPECT_EQ((uintptr_t)weir_new(wide) % 16, 0);
    wide *row = weir_new_array(wide, 3000);
    EXPECT_EQ((uintptr_t)row % 16, 0);
    world_close(w);
}

TEST(heap, object_of_32_bytes_with_its_word_costs_32_bytes)
{
    world *w = world_open();
    pair *a = weir_new(pair), *b = weir_new(pair);
    EXPECT_EQ((char *)b - (char *)a, 32);
    EXPECT_EQ(sizeof(pair) + WEIR_WORD_, 32);
    world_close(w);
}

TEST(heap, roots_keep_and_the_rest_goes)
{
    world *w = world_open();
    uintptr_t gone[1000];
    for (unsigned i = 0; i < 1000; i++) {
        leaf *l = weir_new(leaf);
        l->value = i;
        w->roots[i] = l;
        gone[i] = hide(weir_new(leaf));
    }
    world_collect(w);
    for (unsigned i = 0; i < 1000; i++) {
        EXPECT_EQ(((leaf *)w->roots[i])->value, i);
        EXPECT(!alive(w, ~gone[i]));
    }
    EXPECT_EQ(w->heap->live_bytes, 1000 * 16);
    world_close(w);
}

TEST(heap, precise_types_keep_what_they_name_and_nothing_else)
{
    world *w = world_open();
    pair *p = weir_new(pair);
    w->roots[0] = p;
    p->named = weir_new(leaf);
    p->unnamed = weir_new(leaf);
    uintptr_t unnamed = hide(p->unnamed);
    world_collect(w);
    EXPECT(alive(w, (uintptr_t)p->named));
    EXPECT(!alive(w, ~unnamed));
    world_close(w);
}

TEST(heap, array_fields_and_several_runs_of_fields_are_traced)
{
    world *w = world_open();
    table *t = weir_new(table);
    w->roots[0] = t;
    for (unsigned i = 0; i < 6; i++)
        t->slots[i] = weir_new(leaf);
    t->last = weir_new(leaf);
    uintptr_t more = hide(weir_new(leaf));
    t->more = ~more;
    t->size = ~hide(weir_new(leaf));
    world_collect(w);
    for (unsigned i = 0; i < 6; i++)
        EXPECT(alive(w, (uintptr_t)t->slots[i]));
    EXPECT(alive(w, (uintptr_t)t->last));
    EXPECT(!alive(w, ~more));
    EXPECT(!alive(w, (uintptr_t)t->size));
    world_close(w);
}

TEST(heap, untyped_objects_keep_what_any_word_names)
{
    world *w = world_open();
    loose *l = weir_new_sized(loose, sizeof(loose) + 400);
    w->roots[0] = l;
    uint64_t *words = (uint64_t *)(void *)l;
    size_t count = (sizeof(loose) + 400) / 8;
    for (size_t i = 0; i < count; i++)
        words[i] = (uintptr_t)weir_new(leaf);
    world_collect(w);
    for (size_t i = 0; i < count; i++)
        EXPECT(alive(w, words[i]));
    EXPECT_EQ(w->heap->live_bytes, count * 16 + 512);
    world_close(w);
}

TEST(heap, bytes_behind_a_typed_struct_and_plain_bytes_keep_nothing)
{
    world *w = world_open();
    pair *p = weir_new_sized(pair, sizeof(pair) + 16);
    uint64_t *bytes = weir_new_bytes(64);
    w->roots[0] = p;
    w->roots[1] = bytes;
    bytes[3] = (uintptr_t)weir_new(leaf);
    ((uint64_t *)(void *)(p + 1))[1] = (uintptr_t)weir_new(leaf);
    world_collect(w);
    EXPECT(!alive(w, bytes[3]));
    EXPECT(!alive(w, ((uint64_t *)(void *)(p + 1))[1]));
    world_close(w);
}

TEST(heap, inner_and_one_past_the_end_pointers_keep)
{
    world *w = world_open();
    for (size_t size = 1; size <= 300000; size = size * 3 / 2 + 1) {
        size_t step = size < 200 ? 1 : size / 7;
        for (size_t next = 0; next <= size + step; next += step) {
            size_t at = next < size ? next : size;
            /* Two neighbours, so that a pointer that names the wrong one is noticed. */
            uintptr_t first = hide(weir_new_bytes(size)), second = hide(weir_new_bytes(size)),
                      third = hide(weir_new_bytes(size));
            w->roots[0] = (char *)~second + at;
            world_collect(w);
            EXPECT(alive(w, ~second));
            EXPECT(alive(w, (uintptr_t)w->roots[0]));
            EXPECT(!alive(w, ~first));
            EXPECT(!alive(w, ~third));
            w->roots[0] = NULL;
        }
        world_collect(w);
    }
    /* With no slack between object and neighbour: a stride filled to its last byte. */
    uintptr_t full[3];
    for (int i = 0; i < 3; i++)
        full[i] = hide(weir_new(pair));
    w->roots[0] = (pair *)~full[1] + 1;
    world_collect(w);
    EXPECT(!alive(w, ~full[0]));
    EXPECT(alive(w, ~full[1]));
    EXPECT(!alive(w, ~full[2]));
    world_close(w);
}

TEST(heap, one_past_the_last_object_of_a_chunk_keeps_it)
{
    world *w = world_open();
    pair *last = NULL;
    for (unsigned i = 0; i < 3 * 2048; i++) {
        pair *p = weir_new(pair);
        uintptr_t offset = (uintptr_t)(p + 1) & (WR_GRANULE - 1);
        if (offset >= WR_GRANULE - 32)
            last = p;
    }
    EXPECT(last != NULL);
    w->roots[0] = last + 1;
    last->value = 77;
    world_collect(w);
    EXPECT_EQ(w->heap->live_bytes, 32);
    EXPECT_EQ(last->value, 77);
    world_close(w);
}

TEST(heap, precise_fields_may_point_inside_outside_and_nowhere)
{
    world *w = world_open();
    static int outside;
    pair *a = weir_new(pair), *b = weir_new(pair), *c = weir_new(pair), *d = weir_new(pair);
    w->roots[0] = a;
    w->roots[1] = c;
    w->roots[2] = d;
    a->named = &b->value;
    c->named = &outside;
    d->named = (void *)(uintptr_t)-1;
    b->value = 5;
    uintptr_t inner = hide(b);
    world_collect(w);
    EXPECT(alive(w, ~inner));
    EXPECT_EQ(*(uint64_t *)a->named, 5);
    world_close(w);
}

TEST(heap, arrays_trace_every_element)
{
    world *w = world_open();
    for (size_t count = 0; count < 40000; count = count * 2 + 1) {
        pair *row = weir_new_array(pair, count);
        void **refs = weir_new_refs(count);
        w->roots[0] = row;
        w->roots[1] = refs;
        for (size_t i = 0; i < count; i++) {
            EXPECT(row[i].named == NULL && refs[i] == NULL);
            row[i].named = weir_new(leaf);
            refs[i] = weir_new(leaf);
            row[i].unnamed = NULL;
        }
        world_collect(w);
        for (size_t i = 0; i < count; i++) {
            EXPECT(alive(w, (uintptr_t)row[i].named));
            EXPECT(alive(w, (uintptr_t)refs[i]));
        }
        w->roots[0] = w->roots[1] = NULL;
        world_collect(w);
        EXPECT_EQ(w->heap->live_bytes, 0);
    }
    world_close(w);
}

/* What lies behind an array's elements, or behind the bytes of an untyped object, inside its stride must not show
 * what was there before. */
TEST(heap, nothing_is_kept_by_old_contents_behind_an_object)
{
    world *w = world_open();
    enum { COUNT = 64, WORDS = (320 - 8) / 8 };
    uintptr_t target = hide(weir_new_bytes(1)), at[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        uintptr_t *dirt = weir_new_bytes(WORDS * 8);
        for (unsigned j = 0; j < WORDS; j++)
            dirt[j] = ~target;
        at[i] = hide(dirt);
    }
    w->roots[0] = weir_new_bytes(WORDS * 8); /* keeps the chunk */
    wr_heap_retire_cursors(w->heap);
    wr_chunk *c = wr_arena_record(~at[0]);
    memset(c->bits, 0, sizeof c->bits); /* frees without burying, as release builds do */
    c->scan = 0;
    unsigned again = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        void *p = i % 3 == 0   ? (void *)weir_new_refs(WORDS - 3)
                  : i % 3 == 1 ? (void *)weir_new_sized(loose, (WORDS - 3) * 8)
                               : (void *)weir_alloc_(&brick_weir_type, sizeof(brick), 8, 0);
        w->roots[i] = p;
        for (unsigned j = 0; j < COUNT; j++)
            again += hide(p) == at[j];
    }
    EXPECT_EQ(again, COUNT);
    world_collect(w);
    EXPECT(!alive(w, ~target));
    EXPECT_EQ(w->heap->live_bytes, COUNT * 320);
    world_close(w);
}

TEST(heap, long_list_and_deep_tree_need_no_recursion)
{
    world *w = world_open();
    unsigned length = WR_SANITIZED ? 100000 : 1000000;
    pair *head = NULL;
    for (unsigned i = 0; i < length; i++) {
        pair *p = weir_new(pair);
        p->named = head;
        p->value = i;
        head = p;
    }
    w->roots[0] = head;
    world_collect(w);
    EXPECT_EQ(w->heap->live_bytes, (size_t)length * 32);
    for (pair *p = head; p != NULL; p = p->named)
        EXPECT_EQ(p->value, --length);
    world_close(w);
}

/* More pending objects than the mark stack's first part and several further ones hold. */
TEST(heap, wide_graphs_grow_the_mark_stack_and_give_it_back)
{
    world *w = world_open();
    size_t count = 100000;
    void **refs = weir_new_refs(count);
    for (size_t i = 0; i < count; i++) {
        pair *p = weir_new(pair);
        p->named = weir_new(leaf);
        refs[i] = p;
    }
    w->roots[0] = refs;
    wr_arena_stats before, after;
    wr_arena_get_stats(&before);
    world_collect(w);
    wr_arena_get_stats(&after);
    EXPECT_EQ(w->heap->live_bytes, count * 48 + (count * 8 + 16) / WR_GRANULE * WR_GRANULE + WR_GRANULE);
    EXPECT_EQ(after.used_bytes, before.used_bytes);
    world_close(w);
}

TEST(heap, pins_keep_and_count)
{
    world *w = world_open();
    leaf *l = weir_new(leaf);
    l->value = 3;
    wr_heap_pin(w->heap, l);
    wr_heap_pin(w->heap, l);
    world_collect(w);
    EXPECT_EQ(l->value, 3);
    wr_heap_unpin(w->heap, l);
    world_collect(w);
    EXPECT(alive(w, (uintptr_t)l));
    EXPECT(wr_heap_is_pinned(w->heap, l));
    wr_heap_unpin(w->heap, l);
    EXPECT(!wr_heap_is_pinned(w->heap, l));
    world_collect(w);
    EXPECT(!alive(w, (uintptr_t)l));
    world_close(w);
}

static void unpin_unpinned(void)
{
    world *w = world_open();
    wr_heap_unpin(w->heap, weir_new(leaf));
}

static void pin_outside(void)
{
    static int outside;
    world *w = world_open();
    wr_heap_pin(w->heap, &outside);
}

TEST(heap, wrong_pins_are_reported)
{
    EXPECT_DEATH(unpin_unpinned(), "which is not pinned");
    EXPECT_DEATH(pin_outside(), "which is no object of this actor");
}

TEST(heap, pool_blocks_are_reported_to_the_shared_hook)
{
    world *w = world_open();
    char *block = wr_pool_take(NULL, 200);
    pair *p = weir_new(pair);
    w->roots[0] = p;
    p->named = block + 150;
    world_collect(w);
    EXPECT_EQ(w->shared_calls, 1);
    EXPECT(w->shared_block == block);
    EXPECT_EQ(w->give_back_calls, 1);
    p->named = NULL;
    world_collect(w);
    EXPECT_EQ(w->shared_calls, 1);
    EXPECT_EQ(w->give_back_calls, 2);
    wr_pool_give(NULL, block, 200);
    world_close(w);
}

static void refer_across(void)
{
    world *w = world_open();
    wr_heap *other;
    EXPECT_OK(wr_heap_create(w, &world_hooks, NULL, 0, &other));
    wr_heap_enter(other);
    leaf *foreign = weir_new(leaf);
    wr_heap_enter(w->heap);
    pair *p = weir_new(pair);
    w->roots[0] = p;
    w->roots[1] = foreign; /* conservative: ignored */
    world_collect(w);
    p->named = foreign;
    wr_heap_collect(w->heap);
#if !WR_DEBUG
    wr_fatal("lies in another actor's heap");
#endif
}

TEST(heap, precise_reference_into_another_heap_is_reported)
{
    EXPECT_DEATH(refer_across(), "lies in another actor's heap");
}

TEST(heap, words_of_other_heaps_mark_nothing)
{
    world *w = world_open();
    wr_heap *other;
    EXPECT_OK(wr_heap_create(w, &world_hooks, NULL, 0, &other));
    wr_heap_enter(other);
    uintptr_t foreign = hide(weir_new(leaf));
    w->roots[0] = (void *)~foreign;
    wr_heap_enter(w->heap);
    world_collect(w);
    EXPECT_EQ(w->heap->live_bytes, 0);
    EXPECT(!wr_heap_owns(w->heap, ~foreign));
    EXPECT(wr_heap_owns(other, ~foreign));
    EXPECT(wr_heap_is_heap_word(~foreign));
    wr_heap_check(other);
    wr_heap_destroy(other);
    EXPECT(!wr_heap_is_heap_word(~foreign));
    world_close(w);
}

TEST(heap, memory_goes_back_when_garbage_is_collected)
{
    world *w = world_open();
    wr_arena_stats before, full, after;
    wr_arena_get_stats(&before);
    for (unsigned i = 0; i < 200000; i++)
        memset(weir_new_bytes(500), 1, 500);
    wr_arena_get_stats(&full);
    EXPECT(full.heap_bytes >= (size_t)95 << 20);
    world_collect(w);
    wr_arena_get_stats(&after);
    EXPECT_EQ(after.heap_bytes, 0);
    EXPECT_EQ(after.used_bytes, before.used_bytes);
    EXPECT(after.dirty_bytes <= (size_t)16 << 20);
    wr_arena_trim();
    wr_arena_get_stats(&after);
    EXPECT_EQ(after.dirty_bytes, 0);
    EXPECT_EQ(after.committed_bytes, after.used_bytes);
    world_close(w);
}

TEST(heap, holes_are_filled_before_new_chunks_are_taken)
{
    world *w = world_open();
    for (unsigned i = 0; i < 8000; i++) {
        pair *p = weir_new(pair);
        if (i % 2 == 0)
            w->roots[i / 2] = p;
    }
    size_t held = w->heap->held_bytes;
    world_collect(w);
    EXPECT_EQ(w->heap->held_bytes, held);
    for (unsigned i = 0; i < 3900; i++) {
        pair *p = weir_new(pair);
        EXPECT(p->named == NULL && p->unnamed == NULL && p->value == 0);
        p->value = UINT64_MAX;
        p->unnamed = p;
    }
    EXPECT_EQ(w->heap->held_bytes, held);
    for (unsigned i = 0; i < 4000; i++)
        EXPECT(((pair *)w->roots[i])->value == 0);
    world_close(w);
}

TEST(heap, trigger_counts_allocations_charges_and_external_growth)
{
    world *w = world_open();
    EXPECT(!wr_heap_wants_collection(w->heap));
    for (unsigned i = 0; i < (1u << 20) / 1024 + 32; i++)
        weir_new_bytes(1000);
    EXPECT(wr_heap_wants_collection(w->heap));
    world_collect(w);
    EXPECT(!wr_heap_wants_collection(w->heap));
    wr_heap_charge(w->heap, 1u << 20);
    EXPECT(wr_heap_wants_collection(w->heap));
    world_collect(w);
    EXPECT(!wr_heap_wants_collection(w->heap));
    weir_external_bytes(1 << 20);
    EXPECT(wr_heap_wants_collection(w->heap));
    world_collect(w);
    EXPECT(!wr_heap_wants_collection(w->heap));
    weir_external_bytes(-(1 << 20));
    EXPECT(!wr_heap_wants_collection(w->heap));
    weir_collect_soon();
    EXPECT(wr_heap_wants_collection(w->heap));
    world_collect(w);
    EXPECT(!wr_heap_wants_collection(w->heap));
    world_close(w);
}

TEST(heap, threshold_follows_what_is_alive)
{
    world *w = world_open();
    for (unsigned i = 0; i < 4000; i++)
        w->roots[i] = weir_new_bytes(1000);
    world_collect(w);
    size_t live = w->heap->live_bytes;
    EXPECT(live >= 4000 * 1000);
    for (size_t made = 0; made + 32768 < live; made += 1024)
        weir_new_bytes(1000);
    EXPECT(!wr_heap_wants_collection(w->heap));
    for (size_t made = 0; made < 65536; made += 1024)
        weir_new_bytes(1000);
    EXPECT(wr_heap_wants_collection(w->heap));
    world_close(w);
}

TEST(heap, many_size_classes_in_use_do_not_trigger_by_themselves)
{
    world *w = world_open();
    for (int round = 0; round < 5; round++) {
        for (size_t size = 8; size < 4000; size = size * 5 / 4)
            weir_new_bytes(size);
        EXPECT(!wr_heap_wants_collection(w->heap));
    }
    world_collect(w);
    EXPECT(w->heap->allocated_bytes < 65536);
    world_close(w);
}

TEST(heap, statistics_say_what_happened)
{
    world *w = world_open();
    weir_heap_stats stats;
    w->roots[0] = weir_new_bytes(1000);
    weir_external_bytes(5000);
    world_collect(w);
    world_collect(w);
    weir_get_heap_stats(&stats);
    EXPECT_EQ(stats.live_bytes, 1024);
    EXPECT_EQ(stats.held_bytes, WR_GRANULE);
    EXPECT_EQ(stats.external_bytes, 5000);
    EXPECT_EQ(stats.collections, 2);
    EXPECT(stats.collect_ns_longest > 0 && stats.collect_ns_longest <= stats.collect_ns_total);
    wr_heap_totals totals;
    wr_heap_get_totals(&totals);
    EXPECT_EQ(totals.collections, 2);
    wr_heap_totals_reset();
    wr_heap_get_totals(&totals);
    EXPECT_EQ(totals.collections, 0);
    world_close(w);
}

static void allocate_without_heap(void)
{
    EXPECT_OK(wr_arena_open());
    weir_new(leaf);
}

static void too_small(void)
{
    world_open();
    weir_new_sized(table, 8);
}

static void too_large(void)
{
    world_open();
    weir_new_bytes(WEIR_ALLOC_MAX + 1);
}

static void array_too_large(void)
{
    world_open();
    weir_new_array(pair, SIZE_MAX / 4);
}

static void external_below_zero(void)
{
    world_open();
    weir_external_bytes(-1);
}

static void external_too_much(void)
{
    world_open();
    weir_external_bytes(INT64_MAX);
    weir_external_bytes(1);
}

TEST(heap, misuse_is_reported)
{
    EXPECT_DEATH(allocate_without_heap(), "weir_new outside a behaviour");
    EXPECT_DEATH(too_small(), "8 bytes for a table");
    EXPECT_DEATH(too_large(), "WEIR_ALLOC_MAX");
    EXPECT_DEATH(array_too_large(), "WEIR_ALLOC_MAX");
    EXPECT_DEATH(external_below_zero(), "more bytes taken back");
    EXPECT_DEATH(external_too_much(), "more than 2^63 bytes");
}

static world *provided;

static wr_heap *provide(void)
{
    wr_heap_enter(provided->heap);
    return provided->heap;
}

TEST(heap, first_allocation_asks_the_provider)
{
    provided = world_open();
    wr_heap_enter(NULL);
    wr_heap_set_provider(provide);
    leaf *l = weir_new(leaf);
    EXPECT(wr_heap_owns(provided->heap, (uintptr_t)l));
    EXPECT(wr_heap_current() == provided->heap);
    wr_heap_set_provider(NULL);
    world_close(provided);
}

TEST(heap, what_is_not_yet_handed_out_is_not_owned)
{
    world *w = world_open();
    leaf *l = weir_new(leaf);
    EXPECT(alive(w, (uintptr_t)l));
    EXPECT(alive(w, (uintptr_t)(l + 1)));
    EXPECT(!alive(w, (uintptr_t)l + 16));
    EXPECT(!alive(w, (uintptr_t)l + 4096));
    w->roots[0] = (char *)l + 4096;
    world_collect(w);
    EXPECT_EQ(w->heap->live_bytes, 0);
    world_close(w);
}

TEST(heap, uninitialised_objects_have_a_zeroed_head)
{
    world *w = world_open();
    for (size_t extra = 0; extra < 100000; extra = extra * 3 + 1) {
        pair *p = wr_heap_alloc_uninitialised(&pair_weir_type, sizeof(pair) + extra);
        EXPECT(p->named == NULL && p->unnamed == NULL && p->value == 0);
        memset(p + 1, 0xFF, extra);
        p->named = wr_heap_alloc_bytes_uninitialised(extra);
        memset(p->named, 0xFF, extra);
        w->roots[0] = p;
        world_collect(w);
        EXPECT(alive(w, (uintptr_t)p->named));
    }
    world_close(w);
}

#if WR_ASAN
TEST(heap, freed_and_unused_memory_is_poisoned)
{
    world *w = world_open();
    char *tail = weir_new_bytes(13);
    EXPECT(!__asan_address_is_poisoned(tail + 12));
    EXPECT(__asan_address_is_poisoned(tail + 13));
    EXPECT(__asan_address_is_poisoned(tail + 64));
    char *large = weir_new_bytes(100001);
    EXPECT(!__asan_address_is_poisoned(large + 100000));
    EXPECT(__asan_address_is_poisoned(large + 100001));
    w->roots[0] = weir_new_bytes(13);
    world_collect(w);
    EXPECT(__asan_address_is_poisoned(tail));
    EXPECT(__asan_address_is_poisoned(large));
    EXPECT(!__asan_address_is_poisoned(w->roots[0]));
    world_close(w);
}
#else
TEST(heap, freed_and_unused_memory_is_poisoned)
{
    SKIP("needs AddressSanitizer");
}
#endif
