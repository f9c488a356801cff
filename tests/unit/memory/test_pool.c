/* SPDX-License-Identifier: MIT */
/* tests/unit/memory/test_pool.c: blocks of the runtime's own, caches and the depot, also across threads. */
#include "world.h"

#include <stdlib.h>

static size_t pool_bytes(void)
{
    wr_arena_stats stats;
    wr_arena_get_stats(&stats);
    return stats.pool_bytes;
}

TEST(pool, blocks_are_aligned_apart_and_found_from_inside)
{
    EXPECT_OK(wr_arena_open());
    wr_pool_cache cache;
    wr_pool_cache_init(&cache);
    for (size_t size = 1; size < 200000; size = size < 700 ? size + 1 : size * 9 / 8) {
        wr_pool_cache *via = size % 2 ? &cache : NULL;
        char *a = wr_pool_take(via, size), *b = wr_pool_take(via, size);
        EXPECT_EQ((uintptr_t)a % 16, 0);
        EXPECT_EQ((uintptr_t)b % 16, 0);
        memset(a, 1, size);
        memset(b, 2, size);
        EXPECT_EQ(a[0], 1);
        EXPECT_EQ(a[size - 1], 1);
        for (size_t at = 0; at < size; at += size / 13 + 1) {
            EXPECT(wr_pool_block_of((uintptr_t)a + at) == a);
            EXPECT(wr_pool_block_of((uintptr_t)b + at) == b);
        }
        EXPECT(wr_pool_block_of((uintptr_t)a + size - 1) == a);
        EXPECT(!wr_heap_is_heap_word((uintptr_t)a));
        wr_pool_give(via, a, size);
        wr_pool_give(via, b, size);
    }
    EXPECT(wr_pool_block_of(0) == NULL);
    EXPECT(wr_pool_block_of((uintptr_t)&cache) == NULL);
    wr_pool_cache_flush(&cache);
    wr_arena_check();
    wr_arena_close();
}

TEST(pool, heap_words_are_no_blocks)
{
    world *w = world_open();
    char *small = weir_new_bytes(10), *large = weir_new_bytes(500000);
    EXPECT(wr_pool_block_of((uintptr_t)small) == NULL);
    EXPECT(wr_pool_block_of((uintptr_t)large + 400000) == NULL);
    world_close(w);
}

/* Blocks against a plain list: never two owners, contents kept, memory flat once the peak was reached. */
TEST(pool, random_use_of_three_caches_hands_each_block_out_once)
{
    EXPECT_OK(wr_arena_open());
    enum { HELD = 3000, KINDS = 6 };
    static const size_t sizes[KINDS] = {1, 48, 130, 1000, 9000, 30000};
    static unsigned char *held[HELD];
    static size_t size[HELD];
    static unsigned char fill[HELD];
    wr_pool_cache caches[2];
    wr_pool_cache_init(&caches[0]);
    wr_pool_cache_init(&caches[1]);
    unsigned steps = WR_SANITIZED ? 60000 : 300000;
    size_t settled = 0;
    for (unsigned step = 0; step < steps; step++) {
        unsigned i = (unsigned)(test_random() % HELD), via = (unsigned)(test_random() % 3);
        wr_pool_cache *cache = via == 2 ? NULL : &caches[via];
        if (held[i] == NULL) {
            size[i] = sizes[i % KINDS];
            held[i] = wr_pool_take(cache, size[i]);
            EXPECT(held[i] != NULL);
            fill[i] = (unsigned char)test_random();
            memset(held[i], fill[i], size[i] < 64 ? size[i] : 64);
            held[i][size[i] - 1] = fill[i];
        } else {
            EXPECT(held[i][0] == fill[i] && held[i][size[i] - 1] == fill[i]);
            EXPECT(size[i] < 64 || held[i][63] == fill[i]);
            wr_pool_give(cache, held[i], size[i]);
            held[i] = NULL;
        }
        if (step == steps / 2)
            settled = pool_bytes();
    }
    EXPECT(pool_bytes() <= settled + settled / 4);
    wr_pool_cache_flush(&caches[0]);
    wr_pool_cache_flush(&caches[1]);
    wr_arena_check();
    wr_arena_close();
}

TEST(pool, flushed_blocks_are_used_again)
{
    EXPECT_OK(wr_arena_open());
    wr_pool_cache cache;
    void *blocks[1000];
    size_t first = 0;
    for (int round = 0; round < 100; round++) {
        wr_pool_cache_init(&cache);
        for (unsigned i = 0; i < 1000; i++)
            EXPECT((blocks[i] = wr_pool_take(&cache, 64)) != NULL);
        for (unsigned i = 1; i < 1000; i++) /* one stays out, so that a magazine is flushed partly filled */
            wr_pool_give(&cache, blocks[i], 64);
        wr_pool_cache_flush(&cache);
        if (round == 0)
            first = pool_bytes();
        EXPECT(pool_bytes() <= first + WR_GRANULE);
    }
    wr_arena_close();
}

TEST(pool, large_blocks_go_back_at_once)
{
    EXPECT_OK(wr_arena_open());
    void *block = wr_pool_take(NULL, 1 << 20);
    EXPECT_EQ(pool_bytes(), 1 << 20);
    wr_pool_give(NULL, block, 1 << 20);
    EXPECT_EQ(pool_bytes(), 0);
    EXPECT(wr_pool_take(NULL, SIZE_MAX) == NULL);
    wr_arena_close();
}

/* One thread takes, the other gives: what flows through must come back. */
typedef struct pipe_of_blocks {
    _Atomic(void *) slot[256];
    _Atomic uint32_t taken, given; /* counts; also what the threads sleep on */
    uint32_t total;
} pipe_of_blocks;

static void give_all(void *arg)
{
    pipe_of_blocks *p = arg;
    wr_pool_cache cache;
    wr_pool_cache_init(&cache);
    for (uint32_t i = 0; i < p->total; i++) {
        uint32_t taken;
        while ((taken = atomic_load(&p->taken)) == i)
            wr_futex_wait(&p->taken, taken, -1);
        uint64_t *block = atomic_load(&p->slot[i % 256]);
        EXPECT_EQ(*block, i);
        wr_pool_give(&cache, block, 120);
        atomic_store(&p->given, i + 1);
        if ((i + 1) % 64 == 0)
            wr_futex_wake(&p->given, 1);
    }
    wr_futex_wake(&p->given, 1);
    wr_pool_cache_flush(&cache);
}

TEST(pool, producer_and_consumer_on_two_threads_stay_flat)
{
    EXPECT_OK(wr_arena_open());
    static pipe_of_blocks p;
    p.total = 400000;
    wr_pool_cache cache;
    wr_pool_cache_init(&cache);
    wr_thread consumer;
    EXPECT_OK(wr_thread_start(&consumer, "consumer", give_all, &p));
    size_t early = 0;
    for (uint32_t i = 0; i < p.total; i++) {
        uint32_t given;
        while (i - (given = atomic_load(&p.given)) >= 256)
            wr_futex_wait(&p.given, given, -1);
        uint64_t *block = wr_pool_take(&cache, 120);
        EXPECT(block != NULL);
        *block = i;
        atomic_store(&p.slot[i % 256], block);
        atomic_store(&p.taken, i + 1);
        if ((i + 1) % 64 == 0 || i + 1 == p.total)
            wr_futex_wake(&p.taken, 1);
        if (i == 10000)
            early = pool_bytes();
    }
    wr_thread_join(consumer);
    EXPECT(pool_bytes() <= early + WR_GRANULE);
    wr_pool_cache_flush(&cache);
    wr_arena_check();
    wr_arena_close();
}

static void churn(void *arg)
{
    uint64_t random = (uint64_t)(uintptr_t)arg * 0x9E3779B97F4A7C15u + 1;
    wr_pool_cache cache;
    wr_pool_cache_init(&cache);
    uint64_t *held[64] = {NULL};
    size_t size[64] = {0};
    for (unsigned step = 0; step < 100000; step++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        unsigned i = (unsigned)(random >> 58);
        if (held[i] == NULL) {
            size[i] = 16 + (size_t)((random >> 40) % 3) * 100;
            held[i] = wr_pool_take(step % 5 ? &cache : NULL, size[i]);
            EXPECT(held[i] != NULL);
            *held[i] = (uint64_t)(uintptr_t)held[i] ^ (uintptr_t)arg;
            EXPECT(wr_pool_block_of((uintptr_t)held[i] + size[i] - 1) == held[i]);
        } else {
            EXPECT_EQ(*held[i], (uint64_t)(uintptr_t)held[i] ^ (uintptr_t)arg);
            wr_pool_give(step % 7 ? &cache : NULL, held[i], size[i]);
            held[i] = NULL;
        }
    }
    for (unsigned i = 0; i < 64; i++)
        if (held[i] != NULL)
            wr_pool_give(&cache, held[i], size[i]);
    wr_pool_cache_flush(&cache);
}

TEST(pool, threads_that_churn_do_not_meet)
{
    EXPECT_OK(wr_arena_open());
    wr_thread threads[3];
    for (uintptr_t i = 0; i < 3; i++)
        EXPECT_OK(wr_thread_start(&threads[i], "churn", churn, (void *)(i + 1)));
    for (unsigned i = 0; i < 3; i++)
        wr_thread_join(threads[i]);
    wr_arena_check();
    wr_arena_close();
}

#if WR_ASAN
TEST(pool, free_blocks_are_poisoned)
{
    EXPECT_OK(wr_arena_open());
    char *block = wr_pool_take(NULL, 100);
    EXPECT(!__asan_address_is_poisoned(block + 99));
    EXPECT(__asan_address_is_poisoned(block + 100));
    wr_pool_give(NULL, block, 100);
    EXPECT(__asan_address_is_poisoned(block));
    wr_arena_close();
}
#else
TEST(pool, free_blocks_are_poisoned)
{
    SKIP("needs AddressSanitizer");
}
#endif
