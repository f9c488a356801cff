/* SPDX-License-Identifier: MIT */
/* tests/unit/memory/test_arena.c: the address range, its free runs, memory back to the system, failing system calls. */
#include "world.h"

#include "platform/fail.h"
#include <stdlib.h>
#include <sys/mman.h>

static wr_arena_stats stats_now(void)
{
    wr_arena_stats stats;
    wr_arena_get_stats(&stats);
    EXPECT_EQ(stats.committed_bytes, stats.used_bytes + stats.dirty_bytes);
    EXPECT_EQ(stats.used_bytes, stats.heap_bytes + stats.pool_bytes);
    return stats;
}

static wr_chunk *take(uint32_t granules)
{
    bool zero;
    wr_chunk *c = wr_arena_take(granules, WR_CHUNK_POOL, NULL, &zero);
    if (c != NULL) {
        size_t size = (size_t)granules * WR_GRANULE;
        WR_UNPOISON(c->start, size);
        if (zero)
            for (size_t i = 0; i < size; i += 4096)
                EXPECT(c->start[i] == 0 && c->start[i + 4095] == 0);
        memset(c->start, 0x77, size);
    }
    return c;
}

static void give(wr_chunk *c)
{
    c->next = NULL;
    wr_arena_give(c);
}

/* Resident bytes of a chunk's range. */
static size_t resident(const wr_chunk *c)
{
    static unsigned char pages[100000];
    size_t page = wr_os_page_size(), count = (size_t)c->granules * WR_GRANULE / page, found = 0;
    EXPECT(count <= sizeof pages);
    EXPECT_EQ(mincore(c->start, count * page, pages), 0);
    for (size_t i = 0; i < count; i++)
        found += pages[i] & 1;
    return found * page;
}

TEST(arena, words_lead_to_their_record)
{
    EXPECT_OK(wr_arena_open());
    EXPECT(!wr_arena_holds(0) && !wr_arena_holds(UINTPTR_MAX) && !wr_arena_holds((uintptr_t)&take));
    wr_chunk *a = take(1), *b = take(5);
    EXPECT(a != NULL && b != NULL);
    EXPECT_EQ((uintptr_t)a->start % WR_GRANULE, 0);
    for (size_t i = 0; i < 5 * WR_GRANULE; i += 1000) {
        uintptr_t w = (uintptr_t)b->start + i;
        EXPECT(wr_arena_holds(w));
        EXPECT(wr_arena_head(wr_arena_record(w)) == b);
    }
    EXPECT(wr_arena_head(wr_arena_record((uintptr_t)a->start + WR_GRANULE - 1)) == a);
    give(a);
    give(b);
    wr_arena_check();
    wr_arena_close();
    EXPECT(!wr_arena_holds((uintptr_t)b));
}

TEST(arena, random_takes_and_gives_keep_every_invariant)
{
    EXPECT_OK(wr_arena_open());
    enum { HELD = 200 };
    wr_chunk *held[HELD] = {NULL};
    uint32_t size[HELD] = {0};
    size_t used = 0;
    unsigned steps = WR_SANITIZED ? 3000 : 10000;
    for (unsigned step = 0; step < steps; step++) {
        unsigned i = (unsigned)(test_random() % HELD);
        if (held[i] == NULL) {
            size[i] = test_random() % 4 ? 1 : 1 + (uint32_t)(test_random() % 40);
            bool zero;
            held[i] = wr_arena_take(size[i], WR_CHUNK_POOL, NULL, &zero);
            EXPECT(held[i] != NULL && held[i]->granules == size[i]);
            WR_UNPOISON(held[i]->start, (size_t)size[i] * WR_GRANULE);
            for (size_t at = 0; at < (size_t)size[i] * WR_GRANULE; at += WR_GRANULE) {
                EXPECT(!zero || *(uint64_t *)(void *)(held[i]->start + at) == 0);
                *(uint64_t *)(void *)(held[i]->start + at) = i + 1;
            }
            used += size[i];
        } else {
            for (size_t at = 0; at < (size_t)size[i] * WR_GRANULE; at += WR_GRANULE)
                EXPECT_EQ(*(uint64_t *)(void *)(held[i]->start + at), i + 1);
            give(held[i]);
            held[i] = NULL;
            used -= size[i];
        }
        EXPECT_EQ(stats_now().used_bytes, used * WR_GRANULE);
        if (test_random() % 100 == 0)
            wr_arena_trim();
        if (step % 16 == 0)
            wr_arena_check();
    }
    for (unsigned i = 0; i < HELD; i++)
        if (held[i] != NULL)
            give(held[i]);
    wr_arena_check();
    wr_arena_close();
}

TEST(arena, freed_neighbours_become_one_run)
{
    EXPECT_OK(wr_arena_open());
    wr_chunk *parts[64], *first = NULL;
    for (unsigned i = 0; i < 64; i++) {
        parts[i] = take(1);
        EXPECT(i == 0 || parts[i] == parts[i - 1] + 1);
    }
    wr_chunk *wall = take(1);
    for (unsigned i = 0; i < 64; i++)
        give(parts[(i * 37) % 64]);
    wr_arena_check();
    first = take(64);
    EXPECT(first == parts[0]);
    give(first);
    give(wall);
    wr_arena_close();
}

TEST(arena, last_freed_single_granule_comes_back_first)
{
    EXPECT_OK(wr_arena_open());
    wr_chunk *c[9];
    for (unsigned i = 0; i < 9; i++)
        c[i] = take(1);
    give(c[1]);
    give(c[5]);
    give(c[3]);
    EXPECT(take(1) == c[3]);
    EXPECT(take(1) == c[5]);
    EXPECT(take(1) == c[1]);
    wr_arena_close();
}

TEST(arena, memory_beyond_the_reserve_goes_back_to_the_system)
{
    EXPECT_OK(wr_arena_open());
    enum { CHUNKS = 25 };
    static wr_chunk *c[CHUNKS];
    wr_chunk *all = take(CHUNKS * 64); /* 100 MiB */
    wr_chunk range = {.start = all->start, .granules = all->granules};
    EXPECT_EQ(resident(&range), CHUNKS * 64 * WR_GRANULE);
    give(all);
    for (unsigned i = 0; i < CHUNKS; i++)
        EXPECT((c[i] = take(64)) != NULL);
    EXPECT_EQ(resident(&range), CHUNKS * 64 * WR_GRANULE);
    for (unsigned i = 0; i < CHUNKS; i++)
        give(c[(i * 7) % CHUNKS]);
    EXPECT(stats_now().dirty_bytes <= (size_t)16 << 20);
    EXPECT_EQ(resident(&range), stats_now().dirty_bytes);
    wr_arena_trim();
    EXPECT_EQ(stats_now().dirty_bytes, 0);
    EXPECT_EQ(resident(&range), 0);
    wr_arena_check();
    EXPECT(take(500) != NULL); /* checks that clean memory reads as zero */
    wr_arena_close();
}

/* A heap that makes a little more garbage than the reserve holds would otherwise fault all of it in each time. */
TEST(arena, reserve_is_kept_when_more_than_it_is_freed)
{
    EXPECT_OK(wr_arena_open());
    for (uint32_t granules = 256; granules <= 2048; granules += 256 + (uint32_t)(test_random() % 100)) {
        wr_chunk *all = take(granules), *wall = take(1);
        wr_chunk range = {.start = all->start, .granules = all->granules};
        give(all);
        size_t dirty = stats_now().dirty_bytes;
        EXPECT(dirty >= (size_t)8 << 20 && dirty <= (size_t)16 << 20);
        EXPECT_EQ(resident(&range), dirty);
        wr_arena_check();
        wr_chunk *again = take(granules); /* checks that it reads as zero where it says so */
        EXPECT(again != NULL);
        give(again);
        give(wall);
        wr_arena_trim();
        wr_arena_check();
    }
    wr_arena_close();
}

TEST(arena, second_open_after_close_is_clean)
{
    for (int round = 0; round < 5; round++) {
        EXPECT_OK(wr_arena_open());
        EXPECT_EQ(stats_now().committed_bytes, 0);
        wr_chunk *c = take(100);
        EXPECT(c != NULL);
        void *block = wr_pool_take(NULL, 100);
        EXPECT(wr_pool_block_of((uintptr_t)block) == block);
        memset(block, 1, 100);
        wr_arena_check();
        wr_arena_close(); /* with a block and a chunk still out */
        EXPECT_EQ(stats_now().committed_bytes, 0);
        EXPECT(!wr_arena_holds((uintptr_t)block));
        EXPECT(wr_pool_block_of((uintptr_t)block) == NULL);
    }
}

TEST(arena, open_twice_is_refused)
{
    EXPECT_OK(wr_arena_open());
    EXPECT_EQ(wr_arena_open(), WEIR_EBUSY);
    wr_arena_close();
}

static void close_with_heap(void)
{
    world_open();
    weir_new_bytes(1);
    wr_arena_close();
}

TEST(arena, closing_below_a_heap_is_reported)
{
    EXPECT_DEATH(close_with_heap(), "are in use at the end of the run");
}

/* ---- failing system calls ---- */

typedef struct plan {
    wr_fail_kind kind;
    uint64_t from, count; /* passings [from, from + count) fail */
} plan;

static int follow(void *arg, wr_fail_kind kind, uint64_t nth)
{
    const plan *p = arg;
    return kind == p->kind && nth >= p->from && nth - p->from < p->count ? WEIR_ENOMEM : 0;
}

TEST(arena, reservation_is_halved_until_granted)
{
    for (uint64_t failing = 0; failing <= 8; failing++) {
        plan p = {WR_FAIL_RESERVE, 0, failing};
        wr_fail_install(follow, &p);
        EXPECT_OK(wr_arena_open());
        EXPECT_EQ(stats_now().limit_bytes, ((size_t)1 << 38) >> failing);
        EXPECT(take(1) != NULL);
        wr_fail_install(NULL, NULL);
        wr_arena_close();
    }
    plan all = {WR_FAIL_RESERVE, 0, UINT64_MAX};
    wr_fail_install(follow, &all);
    EXPECT_EQ(wr_arena_open(), WEIR_ENOMEM);
    EXPECT_EQ(wr_arena_open(), WEIR_ENOMEM);
    wr_fail_install(NULL, NULL);
    EXPECT_OK(wr_arena_open());
    wr_arena_close();
}

TEST(arena, failed_commit_is_an_error_and_can_be_tried_again)
{
    EXPECT_OK(wr_arena_open());
    plan all = {WR_FAIL_COMMIT, 0, UINT64_MAX};
    wr_fail_install(follow, &all);
    EXPECT(take(1) == NULL);
    EXPECT(wr_pool_take(NULL, 100) == NULL);
    EXPECT(wr_pool_take(NULL, 100000) == NULL);
    wr_heap *heap;
    EXPECT_EQ(wr_heap_create(NULL, &world_hooks, NULL, 0, &heap), WEIR_ENOMEM);
    EXPECT(heap == NULL);
    EXPECT_EQ(stats_now().used_bytes, 0);
    wr_fail_install(NULL, NULL);
    wr_arena_check();
    EXPECT(take(1) != NULL);
    void *block = wr_pool_take(NULL, 100);
    EXPECT(block != NULL);
    wr_pool_give(NULL, block, 100);
    wr_arena_check();
    wr_arena_close();
}

TEST(arena, large_commit_step_that_fails_is_tried_smaller)
{
    EXPECT_OK(wr_arena_open());
    plan first = {WR_FAIL_COMMIT, 0, 1};
    wr_fail_install(follow, &first);
    EXPECT(take(3) != NULL);
    wr_fail_install(NULL, NULL);
    EXPECT(take(700) != NULL);
    wr_arena_check();
    wr_arena_close();
}

TEST(arena, failed_decommit_keeps_memory_dirty)
{
    EXPECT_OK(wr_arena_open());
    wr_chunk *c = take(600);
    plan all = {WR_FAIL_DECOMMIT, 0, UINT64_MAX};
    wr_fail_install(follow, &all);
    give(c);
    wr_arena_trim();
    EXPECT_EQ(stats_now().dirty_bytes, 600 * WR_GRANULE);
    wr_fail_install(NULL, NULL);
    c = take(600); /* must not be taken for zeroed */
    give(c);
    wr_arena_trim();
    EXPECT_EQ(stats_now().dirty_bytes, 0);
    wr_arena_check();
    wr_arena_close();
}

TEST(arena, address_space_that_is_used_up_is_an_error)
{
    plan most = {WR_FAIL_RESERVE, 0, 8};
    wr_fail_install(follow, &most);
    EXPECT_OK(wr_arena_open());
    wr_fail_install(NULL, NULL);
    uint32_t limit = (uint32_t)(stats_now().limit_bytes / WR_GRANULE);
    bool zero;
    EXPECT(wr_arena_take(limit + 1, WR_CHUNK_POOL, NULL, &zero) == NULL);
    EXPECT(wr_arena_take(UINT32_MAX, WR_CHUNK_POOL, NULL, &zero) == NULL);
    wr_chunk *half = wr_arena_take(limit / 2, WR_CHUNK_POOL, NULL, &zero);
    wr_chunk *rest = wr_arena_take(limit - limit / 2, WR_CHUNK_POOL, NULL, &zero);
    EXPECT(half != NULL && rest != NULL);
    EXPECT(wr_arena_take(1, WR_CHUNK_POOL, NULL, &zero) == NULL);
    give(half);
    EXPECT(wr_arena_take(1, WR_CHUNK_POOL, NULL, &zero) != NULL);
    give(rest);
    wr_arena_check();
    wr_arena_close();
}

/* One run is large enough, in the middle of many of its bin that are not. */
TEST(arena, last_run_that_fits_is_found_when_space_is_short)
{
    enum { SMALL = 40 };
    plan most = {WR_FAIL_RESERVE, 0, 8};
    wr_fail_install(follow, &most);
    EXPECT_OK(wr_arena_open());
    wr_fail_install(NULL, NULL);
    wr_chunk *runs[SMALL + 1];
    bool zero;
    uint32_t taken = 0;
    for (unsigned i = 0; i <= SMALL; i++) {
        runs[i] = take(i == SMALL / 2 ? 7 : 4);
        EXPECT(runs[i] != NULL && take(1) != NULL);
        taken += runs[i]->granules + 1;
    }
    uint32_t limit = (uint32_t)(stats_now().limit_bytes / WR_GRANULE);
    EXPECT(wr_arena_take(limit - taken, WR_CHUNK_POOL, NULL, &zero) != NULL);
    for (unsigned i = 0; i <= SMALL; i++)
        give(runs[i]);
    EXPECT(take(8) == NULL);
    EXPECT(take(7) == runs[SMALL / 2]);
    EXPECT(take(7) == NULL);
    wr_arena_check();
    wr_arena_close();
}

/* Half of the range dirty beside a clean half: together they are one run. */
TEST(arena, dirty_and_clean_neighbours_are_joined_when_space_is_short)
{
    plan most = {WR_FAIL_RESERVE, 0, 8};
    wr_fail_install(follow, &most);
    EXPECT_OK(wr_arena_open());
    wr_fail_install(NULL, NULL);
    uint32_t limit = (uint32_t)(stats_now().limit_bytes / WR_GRANULE);
    bool zero;
    wr_chunk *small = wr_arena_take(10, WR_CHUNK_POOL, NULL, &zero);
    wr_chunk *rest = wr_arena_take(limit - 10, WR_CHUNK_POOL, NULL, &zero);
    give(rest); /* far above the reserve: given back, clean */
    give(small);
    EXPECT(stats_now().dirty_bytes > 0);
    wr_chunk *all = wr_arena_take(limit, WR_CHUNK_POOL, NULL, &zero);
    EXPECT(all != NULL && zero);
    give(all);
    wr_arena_check();
    wr_arena_close();
}

static void exhaust(void)
{
    plan most = {WR_FAIL_RESERVE, 0, 8};
    wr_fail_install(follow, &most);
    world_open();
    weir_new_bytes((size_t)1 << 31);
}

TEST(arena, heap_out_of_memory_is_reported_with_sizes)
{
    EXPECT_DEATH(exhaust(), "out of memory: 2147483648 bytes for a bytes");
}
