/* SPDX-License-Identifier: MIT */
/* tests/unit/memory/test_ptrset.c: the set of pointers against a plain array. */
#include "world.h"

#include "memory/ptrset.h"
#include "platform/fail.h"

enum { POINTERS = 3000 };

static char space[POINTERS * 16];

static void *pointer(unsigned i)
{
    return &space[i * 16];
}

/* The model: pointers in the order of insertion. */
static void *model[POINTERS];
static uint32_t model_count[POINTERS];
static unsigned model_size;

static int model_find(const void *p)
{
    for (unsigned i = 0; i < model_size; i++)
        if (model[i] == p)
            return (int)i;
    return -1;
}

static void model_remove(unsigned at)
{
    model_size--;
    memmove(&model[at], &model[at + 1], (model_size - at) * sizeof model[0]);
    memmove(&model_count[at], &model_count[at + 1], (model_size - at) * sizeof model_count[0]);
}

static void expect_same(const wr_ptrset *set)
{
    unsigned at = 0;
    EXPECT_EQ(set->live, model_size);
    for (uint32_t i = 0; i < set->used; i++) {
        const wr_ptrset_entry *entry = wr_ptrset_at(set, i);
        if (entry == NULL)
            continue;
        EXPECT(entry->pointer == model[at]);
        EXPECT_EQ(entry->count, model_count[at]);
        at++;
    }
    EXPECT_EQ(at, model_size);
    wr_ptrset_check(set);
}

static bool keep_even(void *arg, wr_ptrset_entry *entry)
{
    (*(unsigned *)arg)++;
    return entry->count % 2 == 0;
}

TEST(ptrset, behaves_like_a_plain_list)
{
    EXPECT_OK(wr_arena_open());
    for (unsigned range = 4; range <= 400; range = range * 10 / 3) {
        wr_ptrset set = {0};
        model_size = 0;
        for (unsigned step = 0; step < 20000; step++) {
            void *p = pointer((unsigned)(test_random() % range));
            int at = model_find(p);
            wr_ptrset_entry *entry = wr_ptrset_find(&set, p);
            EXPECT_EQ(entry != NULL, at >= 0);
            unsigned action = (unsigned)(test_random() % 1000);
            if (action == 0) {
                unsigned asked = 0, before = model_size;
                wr_ptrset_retain(&set, keep_even, &asked);
                EXPECT_EQ(asked, before);
                for (unsigned i = model_size; i-- > 0;)
                    if (model_count[i] % 2 != 0)
                        model_remove(i);
                expect_same(&set);
            } else if (action < 500 && at >= 0) {
                wr_ptrset_remove(&set, entry);
                model_remove((unsigned)at);
            } else {
                bool is_new;
                entry = wr_ptrset_add(&set, NULL, p, &is_new);
                EXPECT(entry != NULL && entry->pointer == p);
                EXPECT_EQ(is_new, at < 0);
                if (at < 0) {
                    EXPECT_EQ(entry->count, 0);
                    EXPECT_EQ(entry->mark, 0);
                    at = (int)model_size++;
                    model[at] = p;
                    model_count[at] = (uint32_t)test_random();
                    entry->count = model_count[at];
                } else {
                    EXPECT_EQ(entry->count, model_count[at]);
                }
            }
            if (step % 64 == 0)
                expect_same(&set);
        }
        wr_ptrset_clear(&set, NULL);
        EXPECT(set.block == NULL && set.used == 0 && set.live == 0);
    }
    wr_arena_close();
}

TEST(ptrset, iterates_in_the_order_of_insertion)
{
    EXPECT_OK(wr_arena_open());
    wr_ptrset set = {0};
    for (unsigned i = 0; i < POINTERS; i++)
        EXPECT(wr_ptrset_add(&set, NULL, pointer((i * 1117) % POINTERS), NULL) != NULL);
    for (unsigned i = 0; i < POINTERS; i++)
        EXPECT(wr_ptrset_at(&set, i)->pointer == pointer((i * 1117) % POINTERS));
    wr_ptrset_check(&set);
    wr_ptrset_clear(&set, NULL);
    wr_arena_close();
}

/* Adding and removing one entry over and over must neither fill the index with removed slots nor let the set grow. */
TEST(ptrset, endless_adding_and_removing_stays_small)
{
    EXPECT_OK(wr_arena_open());
    wr_ptrset set = {0};
    for (unsigned i = 0; i < 10; i++)
        wr_ptrset_add(&set, NULL, pointer(i), NULL);
    for (unsigned i = 0; i < 100000; i++) {
        wr_ptrset_entry *entry = wr_ptrset_add(&set, NULL, pointer(10 + i % 2000), NULL);
        wr_ptrset_remove(&set, entry);
        EXPECT(wr_ptrset_find(&set, pointer(2500)) == NULL);
    }
    EXPECT_EQ(set.live, 10);
    EXPECT(set.used <= 32);
    wr_ptrset_check(&set);
    wr_ptrset_clear(&set, NULL);
    wr_arena_close();
}

TEST(ptrset, empty_set_costs_16_bytes)
{
    EXPECT_EQ(sizeof(wr_ptrset), 16);
}

static int never(void *arg, wr_fail_kind kind, uint64_t nth)
{
    (void)arg, (void)nth;
    return kind == WR_FAIL_COMMIT ? WEIR_ENOMEM : 0;
}

TEST(ptrset, without_memory_adding_fails_and_changes_nothing)
{
    EXPECT_OK(wr_arena_open());
    wr_fail_install(never, NULL);
    wr_ptrset set = {0};
    EXPECT(wr_ptrset_add(&set, NULL, pointer(0), NULL) == NULL);
    EXPECT(set.block == NULL && set.used == 0 && set.live == 0);
    wr_fail_install(NULL, NULL);
    EXPECT(wr_ptrset_add(&set, NULL, pointer(0), NULL) != NULL);
    wr_ptrset_check(&set);
    wr_ptrset_clear(&set, NULL);
    wr_arena_close();
}
