/* SPDX-License-Identifier: MIT */
/* tests/unit/memory/test_model.c: random programs against a plain model that knows what must be alive.
 *
 * The model is a table of objects outside the heap: kind, number, what each reference names. After each collection
 * the model's own reachability must agree with the heap: reachable objects intact, the others finalised once if they
 * have a finaliser, and their bytes gone from the live count.
 */
#include "world.h"

#include <stdlib.h>

enum { OBJECTS = 4000, ROOTS = 60, REFS = 4, KINDS = 6 };

typedef struct precise {
    uint64_t id;
    void *refs[REFS];
} precise;
WEIR_TYPE(precise, refs);

typedef struct guessed {
    uint64_t id;
    void *refs[REFS];
} guessed;
WEIR_UNTYPED(guessed);

typedef struct closing {
    uint64_t id;
    void *refs[REFS];
} closing;
static void close_closing(closing *self);
WEIR_TYPE_FINAL(closing, close_closing, refs);

typedef struct entry {
    char *object;  /* NULL: free entry */
    unsigned kind; /* 0 precise, 1 guessed, 2 closing, 3 large precise, 4 large closing, 5 array of references */
    size_t size;
    int refs[REFS]; /* entry numbers, -1 none */
    bool finalised, reachable;
} entry;

static entry entries[OBJECTS];
static int roots[ROOTS];
static unsigned finalised_wrongly;

static void close_closing(closing *self)
{
    entry *e = &entries[self->id % OBJECTS];
    if (e->object != (char *)self || e->finalised)
        finalised_wrongly++;
    e->finalised = true;
}

static void **refs_of(entry *e)
{
    return e->kind == 5 ? (void **)(void *)e->object : (void **)(void *)(e->object + 8);
}

static void make_object(entry *e, unsigned number)
{
    *e = (entry){.kind = (unsigned)(test_random() % 40)};
    e->kind = e->kind < 36 ? e->kind % 3 : 3 + e->kind % 3;
    size_t more = test_random() % 3 == 0 ? test_random() % 500 : 0, much = 32000 + test_random() % 100000;
    switch (e->kind) {
    case 0: e->object = (char *)weir_new_sized(precise, e->size = sizeof(precise) + more); break;
    case 1: e->object = (char *)weir_new_sized(guessed, e->size = sizeof(guessed) + more); break;
    case 2: e->object = (char *)weir_new(closing), e->size = sizeof(closing); break;
    case 3: e->object = (char *)weir_new_sized(precise, e->size = much); break;
    case 4: e->object = (char *)weir_new_sized(closing, e->size = much); break;
    default: e->object = (char *)weir_new_refs(much / 8), e->size = much / 8 * 8; break;
    }
    for (size_t i = 0; i < e->size; i += 8)
        EXPECT_EQ(*(e->object + i), 0);
    if (e->kind != 5)
        *(uint64_t *)(void *)e->object = number + (test_random() % 1000) * OBJECTS;
    for (unsigned i = 0; i < REFS; i++)
        e->refs[i] = -1;
}

/* A pointer to the object, to its inside or to its end. */
static void *somewhere_in(const entry *e)
{
    switch (test_random() % 4) {
    case 0: return e->object + test_random() % (e->size + 1);
    case 1: return e->object + e->size;
    default: return e->object;
    }
}

static void reach(void)
{
    static int stack[OBJECTS];
    unsigned depth = 0;
    for (unsigned i = 0; i < OBJECTS; i++)
        entries[i].reachable = false;
    for (unsigned i = 0; i < ROOTS; i++)
        if (roots[i] >= 0 && !entries[roots[i]].reachable) {
            entries[roots[i]].reachable = true;
            stack[depth++] = roots[i];
        }
    while (depth > 0) {
        const entry *e = &entries[stack[--depth]];
        for (unsigned i = 0; i < REFS; i++)
            if (e->refs[i] >= 0 && !entries[e->refs[i]].reachable) {
                entries[e->refs[i]].reachable = true;
                stack[depth++] = e->refs[i];
            }
    }
}

static size_t cost_of(const entry *e)
{
    size_t total = e->size + WEIR_WORD_;
    if (total > WEIR_SMALL_MAX_)
        return ((e->size + WR_PAYLOAD_OFFSET) / WR_GRANULE + 1) * WR_GRANULE;
    return weir_class_stride_(weir_size_class_(total));
}

static void collect_and_compare(world *w)
{
    size_t live = 0;
    reach();
    world_collect(w);
    for (unsigned i = 0; i < OBJECTS; i++) {
        entry *e = &entries[i];
        if (e->object == NULL)
            continue;
        bool closes = e->kind == 2 || e->kind == 4;
        EXPECT_EQ(e->finalised, closes && !e->reachable);
        if (!e->reachable) {
            e->object = NULL;
            continue;
        }
        live += cost_of(e);
        if (e->kind != 5)
            EXPECT_EQ(*(uint64_t *)(void *)e->object % OBJECTS, i);
        for (unsigned r = 0; r < REFS; r++) {
            const char *p = refs_of(e)[r];
            if (e->refs[r] < 0)
                EXPECT(p == NULL);
            else
                EXPECT(p >= entries[e->refs[r]].object && p <= entries[e->refs[r]].object + entries[e->refs[r]].size);
        }
    }
    EXPECT_EQ(w->heap->live_bytes, live);
    EXPECT_EQ(finalised_wrongly, 0);
}

/* An entry that the program can still reach; -1 if the walk ends nowhere. */
static int walk(void)
{
    int at = roots[test_random() % ROOTS];
    for (uint64_t steps = test_random() % 6; steps > 0 && at >= 0; steps--) {
        int next = entries[at].refs[test_random() % REFS];
        if (next < 0)
            return at;
        at = next;
    }
    return at;
}

static void set_root(world *w, unsigned root, int to)
{
    roots[root] = to;
    w->roots[root] = to < 0 ? NULL : somewhere_in(&entries[to]);
}

static void run(unsigned operations)
{
    world *w = world_open();
    unsigned free_at = 0;
    for (unsigned i = 0; i < ROOTS; i++)
        roots[i] = -1;
    for (unsigned step = 0; step < operations; step++) {
        uint64_t action = test_random() % 100;
        if (action < 50) {
            unsigned looked = 0;
            while (entries[free_at].object != NULL && looked++ < OBJECTS)
                free_at = (free_at + 1) % OBJECTS;
            if (entries[free_at].object != NULL) {
                collect_and_compare(w);
                for (unsigned i = 0; i < ROOTS / 2; i++)
                    set_root(w, (unsigned)(test_random() % ROOTS), -1);
                continue;
            }
            make_object(&entries[free_at], free_at);
            int parent = walk();
            unsigned slot = (unsigned)(test_random() % REFS);
            if (parent >= 0 && action < 40) {
                entries[parent].refs[slot] = (int)free_at;
                refs_of(&entries[parent])[slot] = somewhere_in(&entries[free_at]);
            } else {
                set_root(w, (unsigned)(test_random() % ROOTS), (int)free_at);
            }
        } else if (action < 95) {
            int from = walk(), to = action < 75 ? walk() : -1;
            if (from < 0)
                continue;
            unsigned slot = (unsigned)(test_random() % REFS);
            entries[from].refs[slot] = to;
            refs_of(&entries[from])[slot] = to < 0 ? NULL : somewhere_in(&entries[to]);
        } else if (action < 99) {
            set_root(w, (unsigned)(test_random() % ROOTS), walk());
        } else if (test_random() % 10 == 0) {
            collect_and_compare(w);
        }
    }
    collect_and_compare(w);
    for (unsigned i = 0; i < ROOTS; i++)
        set_root(w, i, -1);
    collect_and_compare(w);
    EXPECT_EQ(w->heap->held_bytes, 0);
    world_close(w);
}

TEST(heap, random_programs_agree_with_a_plain_model)
{
    bool soak = getenv("WEIR_SOAK") != NULL;
    unsigned operations = WR_SANITIZED ? 200000 : 2000000;
    run(soak ? operations * 10 : operations);
}
