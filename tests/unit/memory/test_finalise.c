/* SPDX-License-Identifier: MIT */
/* tests/unit/memory/test_finalise.c: the rules of docs/internals/memory.md about finalisers, one test each. */
#include "world.h"

#define MANY 3000

typedef struct node {
    struct node *next;
    uint64_t number, pattern;
    unsigned *calls;
} node;

static unsigned calls[MANY];
static unsigned seen, made;
static node *kept;
static void (*on_close)(node *self);

static void close_node(node *self)
{
    seen++;
    EXPECT(self->number < MANY);
    calls[self->number]++;
    if (on_close != NULL)
        on_close(self);
}

WEIR_TYPE_FINAL(node, close_node, next);

static node *make(uint64_t number)
{
    node *n = weir_new(node);
    n->number = number;
    n->pattern = ~number;
    return n;
}

static void make_many(void)
{
    for (uint64_t i = 0; i < MANY; i++)
        make(i);
}

static void expect_each_called(unsigned times)
{
    for (unsigned i = 0; i < MANY; i++)
        EXPECT_EQ(calls[i], times);
}

/* R1: what a finaliser allocates is not memory of an object that dies in the same collection. */
static uintptr_t died[MANY];
static uintptr_t born[MANY];

static void remember_and_allocate(node *self)
{
    died[self->number] = (uintptr_t)self;
    born[self->number] = (uintptr_t)weir_new_bytes(sizeof(node));
    memset((void *)born[self->number], 0xAB, sizeof(node));
    EXPECT_EQ(self->pattern, ~self->number);
}

TEST(finalise, all_finalisers_run_before_any_memory_is_used_again)
{
    world *w = world_open();
    make_many();
    on_close = remember_and_allocate;
    world_collect(w);
    on_close = NULL;
    EXPECT_EQ(seen, MANY);
    for (unsigned i = 0; i < MANY; i++) {
        EXPECT(born[i] < (died[i] & ~(WR_GRANULE - 1)) || born[i] >= (died[i] | (WR_GRANULE - 1)));
        for (unsigned j = 0; j < sizeof(node); j++)
            EXPECT_EQ(((unsigned char *)born[i])[j], 0xAB);
    }
    world_close(w);
}

/* R1 for objects that themselves have finalisers: they come from the same size class as the dead. */
static void replace(node *self)
{
    EXPECT_EQ(self->pattern, ~self->number);
    if (made < MANY) {
        node *n = make(self->number);
        n->pattern = ~self->number;
        born[made++] = (uintptr_t)n;
    }
}

TEST(finalise, new_finalisable_objects_do_not_take_the_place_of_dying_ones)
{
    world *w = world_open();
    for (uint64_t i = 0; i < MANY; i++)
        died[i] = (uintptr_t)make(i);
    on_close = replace;
    world_collect(w);
    on_close = NULL;
    EXPECT_EQ(seen, MANY);
    expect_each_called(1);
    for (unsigned i = 0; i < made; i++)
        for (unsigned j = 0; j < MANY; j += 97)
            EXPECT(born[i] != died[j]);
    world_close(w);
}

/* R2: a dead object and what it refers to can be read in its finaliser, also in cycles. */
static void read_neighbour(node *self)
{
    EXPECT(self->next != NULL);
    EXPECT_EQ(self->next->pattern, ~self->next->number);
    EXPECT_EQ(self->next->number, (self->number + 1) % MANY);
}

TEST(finalise, dead_objects_of_a_cycle_can_read_each_other)
{
    world *w = world_open();
    node *first = make(0), *last = first;
    for (uint64_t i = 1; i < MANY; i++) {
        last->next = make(i);
        last = last->next;
    }
    last->next = first;
    on_close = read_neighbour;
    world_collect(w);
    on_close = NULL;
    expect_each_called(1);
    world_close(w);
}

typedef struct holder {
    char *text;
    node *peer;
} holder;

static unsigned holders_read;

static void close_holder(holder *self)
{
    EXPECT_STR(self->text, "still here");
    EXPECT_EQ(self->peer->pattern, ~self->peer->number);
    holders_read++;
}

WEIR_TYPE_FINAL(holder, close_holder, text, peer);

TEST(finalise, dead_plain_objects_are_readable_too)
{
    world *w = world_open();
    for (uint64_t i = 0; i < MANY; i++) {
        holder *h = weir_new(holder);
        h->text = weir_new_bytes(11);
        memcpy(h->text, "still here", 11);
        h->peer = make(i);
    }
    world_collect(w);
    EXPECT_EQ(holders_read, MANY);
    expect_each_called(1);
    world_close(w);
}

/* R3: once, neither never nor twice. */
TEST(finalise, runs_exactly_once)
{
    world *w = world_open();
    make_many();
    world_collect(w);
    expect_each_called(1);
    world_collect(w);
    world_collect(w);
    expect_each_called(1);
    EXPECT_EQ(w->heap->finalised, MANY);
    world_close(w);
    expect_each_called(1);
}

TEST(finalise, live_objects_are_left_alone)
{
    world *w = world_open();
    for (uint64_t i = 0; i < MANY; i++) {
        node *n = make(i);
        if (i % 3 == 0)
            w->roots[i / 3] = n;
    }
    world_collect(w);
    for (uint64_t i = 0; i < MANY; i++) {
        EXPECT_EQ(calls[i], i % 3 == 0 ? 0 : 1);
        if (i % 3 == 0) {
            EXPECT_EQ(((node *)w->roots[i / 3])->number, i);
            EXPECT_EQ(((node *)w->roots[i / 3])->pattern, ~i);
        }
    }
    world_close(w);
    expect_each_called(1);
}

/* R4: what a finaliser allocates lives until the next collection, and what it refers to with it. */
static void allocate_and_keep(node *self)
{
    EXPECT_EQ(self->pattern, ~self->number);
    if (made == MANY)
        return;
    node *n = make(made++);
    n->next = kept;
    kept = n;
}

TEST(finalise, objects_made_by_a_finaliser_live_until_the_next_collection)
{
    world *w = world_open();
    node *chain = NULL;
    for (uint64_t i = 0; i < MANY; i++) {
        node *n = make(i);
        n->next = chain;
        chain = n;
    }
    on_close = allocate_and_keep;
    world_collect(w);
    on_close = NULL;
    EXPECT_EQ(made, MANY);
    uint64_t expected = MANY;
    for (node *n = kept; n != NULL; n = n->next) {
        EXPECT_EQ(n->number, --expected);
        EXPECT_EQ(n->pattern, ~n->number);
        EXPECT_EQ(calls[n->number], 1);
        EXPECT(wr_heap_owns(w->heap, (uintptr_t)n));
    }
    EXPECT_EQ(expected, 0);
    world_collect(w); /* nothing roots them now */
    expect_each_called(2);
    world_close(w);
}

static void allocate_large(node *self)
{
    void **refs = weir_new_refs(20000);
    refs[0] = weir_new_bytes(100000);
    refs[19999] = make((self->number + 1) % MANY);
    memset(refs[0], 1, 100000);
    born[self->number] = (uintptr_t)refs;
    on_close = NULL;
}

TEST(finalise, large_objects_made_by_a_finaliser_live_until_the_next_collection)
{
    world *w = world_open();
    make(7);
    on_close = allocate_large;
    world_collect(w);
    void **refs = (void **)born[7];
    EXPECT(wr_heap_owns(w->heap, (uintptr_t)refs));
    EXPECT(wr_heap_owns(w->heap, (uintptr_t)refs[0]));
    EXPECT_EQ(((node *)refs[19999])->number, 8);
    EXPECT_EQ(calls[8], 0);
    world_collect(w);
    EXPECT(!wr_heap_owns(w->heap, born[7]));
    EXPECT_EQ(calls[8], 1);
    world_close(w);
}

TEST(finalise, object_with_a_finaliser_may_be_large)
{
    world *w = world_open();
    node *n = weir_new_sized(node, 200000);
    n->number = 1;
    w->roots[0] = (char *)n + 150000;
    world_collect(w);
    EXPECT_EQ(calls[1], 0);
    w->roots[0] = NULL;
    world_collect(w);
    EXPECT_EQ(calls[1], 1);
    n = weir_new_sized(node, 200000);
    n->number = 2;
    world_close(w);
    EXPECT_EQ(calls[1], 1);
    EXPECT_EQ(calls[2], 1);
}

/* R5: at the end of the heap all finalisers run, with everything readable, also those of objects that finalisers
 * make. */
TEST(finalise, all_run_when_the_heap_is_destroyed)
{
    world *w = world_open();
    make_many();
    w->roots[0] = make(0);
    world_close(w);
    EXPECT_EQ(seen, MANY + 1);
    EXPECT_EQ(calls[0], 2);
    EXPECT_EQ(calls[MANY - 1], 1);
}

TEST(finalise, at_exit_everything_can_be_read)
{
    world *w = world_open();
    node *first = make(0), *last = first;
    for (uint64_t i = 1; i < MANY; i++) {
        last->next = make(i);
        last = last->next;
    }
    last->next = first;
    w->roots[0] = first;
    on_close = read_neighbour;
    world_close(w);
    expect_each_called(1);
}

static void make_heir(node *self)
{
    if (self->number + 1 < 50)
        make(self->number + 1);
}

TEST(finalise, objects_made_by_finalisers_at_exit_are_finalised_too)
{
    world *w = world_open();
    make(0);
    on_close = make_heir;
    world_close(w);
    for (unsigned i = 0; i < 50; i++)
        EXPECT_EQ(calls[i], 1);
    EXPECT_EQ(seen, 50);
}

static void make_for_ever(node *self)
{
    make(self->number);
}

static void never_ending_exit(void)
{
    world *w = world_open();
    make(0);
    on_close = make_for_ever;
    world_close(w);
}

TEST(finalise, endless_making_at_exit_is_reported)
{
    EXPECT_DEATH(never_ending_exit(), "finalisers at exit have made new objects");
}

static world *current;

static void ask_for_collection(node *self)
{
    (void)self;
    weir_collect_soon();
}

TEST(finalise, collect_soon_in_a_finaliser_is_for_later)
{
    world *w = world_open();
    make(0);
    on_close = ask_for_collection;
    world_collect(w);
    on_close = NULL;
    EXPECT_EQ(seen, 1);
    EXPECT(wr_heap_wants_collection(w->heap));
    world_collect(w);
    EXPECT(!wr_heap_wants_collection(w->heap));
    world_close(w);
}

static void collect_now(node *self)
{
    (void)self;
    wr_heap_collect(current->heap);
}

static void nested_collection(void)
{
    current = world_open();
    make(0);
    on_close = collect_now;
    world_collect(current);
}

TEST(finalise, collection_inside_a_finaliser_is_refused)
{
    EXPECT_DEATH(nested_collection(), "a collection inside a finaliser");
}

static void pin_self(node *self)
{
    wr_heap_pin(current->heap, self);
}

static void pin_the_dead(void)
{
    current = world_open();
    make(0);
    on_close = pin_self;
    world_collect(current);
}

TEST(finalise, pinning_a_dead_object_is_refused)
{
    EXPECT_DEATH(pin_the_dead(), "the object is dead");
}

static void pin_new(node *self)
{
    (void)self;
    kept = make(9);
    wr_heap_pin(current->heap, kept);
}

TEST(finalise, a_finaliser_may_pin_what_it_makes)
{
    current = world_open();
    make(0);
    on_close = pin_new;
    world_collect(current);
    on_close = NULL;
    world_collect(current);
    world_collect(current);
    EXPECT_EQ(calls[9], 0);
    EXPECT_EQ(kept->number, 9);
    wr_heap_unpin(current->heap, kept);
    world_collect(current);
    EXPECT_EQ(calls[9], 1);
    world_close(current);
}

#if WR_DEBUG
static node *survivor;

static void revive(node *self)
{
    survivor->next = self;
}

static void store_dead_in_live(void)
{
    world *w = world_open();
    survivor = make(1);
    w->roots[0] = survivor;
    make(2);
    on_close = revive;
    wr_heap_collect(w->heap);
}

TEST(finalise, dead_object_stored_in_a_live_one_is_reported)
{
    EXPECT_DEATH(store_dead_in_live(), "is no living object of its heap");
}
#else
TEST(finalise, dead_object_stored_in_a_live_one_is_reported)
{
    SKIP("audits run in debug builds only");
}
#endif

TEST(finalise, runs_on_the_right_heap_and_restores_the_current_one)
{
    world *w = world_open();
    wr_heap *other;
    EXPECT_OK(wr_heap_create(w, &world_hooks, NULL, 0, &other));
    make(0);
    on_close = allocate_and_keep;
    wr_heap_enter(other);
    wr_heap_collect(w->heap);
    EXPECT(wr_heap_current() == other);
    EXPECT(wr_heap_owns(w->heap, (uintptr_t)kept));
    on_close = NULL;
    wr_heap_destroy(w->heap);
    EXPECT(wr_heap_current() == other);
    wr_heap_destroy(other);
    EXPECT(wr_heap_current() == NULL);
    wr_arena_close();
}
