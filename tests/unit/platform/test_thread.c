/* SPDX-License-Identifier: MIT */
/* tests/unit/platform/test_thread.c: threads, futex, lock, clocks, seed. */
#include "unit/platform/kit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>

#define THREADS 4
#define ROUNDS 20000

typedef struct tally {
    wr_lock lock;
    uint64_t count; /* plain: only the lock keeps it whole */
} tally;

static void count_under_the_lock(void *arg)
{
    tally *t = arg;
    for (int i = 0; i < ROUNDS; i++) {
        wr_lock_take(&t->lock);
        t->count++;
        wr_lock_give(&t->lock);
    }
}

TEST(os_thread, lock_keeps_a_counter_whole_under_contention)
{
    tally t = {0};
    wr_thread threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        EXPECT_OK(wr_thread_start(&threads[i], "count", count_under_the_lock, &t));
    for (int i = 0; i < THREADS; i++)
        wr_thread_join(threads[i]);
    EXPECT_EQ(t.count, (uint64_t)THREADS * ROUNDS);
    EXPECT_EQ(atomic_load(&t.lock.state), 0);
}

static void take_and_give(void *lock)
{
    wr_lock_take(lock);
    wr_lock_give(lock);
}

TEST(os_thread, waiter_sleeps_on_a_taken_lock_and_is_woken)
{
    wr_lock lock = {0};
    wr_thread thread;
    wr_lock_take(&lock);
    EXPECT_OK(wr_thread_start(&thread, "waiter", take_and_give, &lock));
    while (atomic_load_explicit(&lock.state, memory_order_relaxed) != 2)
        wr_futex_wait(&lock.state, 1, 1000000);
    wr_lock_give(&lock);
    wr_thread_join(thread);
    EXPECT_EQ(atomic_load(&lock.state), 0);
}

TEST(os_thread, futex_wait_ends_at_its_time)
{
    _Atomic uint32_t word = 7;
    uint64_t before = wr_clock_ns();
    EXPECT_EQ(wr_futex_wait(&word, 7, 20000000), -ETIMEDOUT);
    EXPECT(wr_clock_ns() - before >= 20000000);
    EXPECT_EQ(wr_futex_wait(&word, 7, 0), -ETIMEDOUT);
}

TEST(os_thread, futex_wait_returns_at_once_when_the_value_differs)
{
    _Atomic uint32_t word = 7;
    EXPECT_EQ(wr_futex_wait(&word, 8, -1), 0);
}

static void answer(void *arg)
{
    _Atomic uint32_t *word = arg;
    while (atomic_load_explicit(word, memory_order_acquire) != 1)
        wr_futex_wait(word, 0, -1);
    atomic_store_explicit(word, 2, memory_order_release);
    wr_futex_wake(word, 1);
}

TEST(os_thread, futex_wake_reaches_a_sleeper)
{
    _Atomic uint32_t word = 0;
    wr_thread thread;
    EXPECT_OK(wr_thread_start(&thread, "sleeper", answer, &word));
    atomic_store_explicit(&word, 1, memory_order_release);
    wr_futex_wake(&word, 1);
    while (atomic_load_explicit(&word, memory_order_acquire) != 2)
        wr_futex_wait(&word, 1, -1);
    wr_thread_join(thread);
}

typedef struct seen {
    sigset_t mask;
    char name[16];
    uint64_t id;
} seen;

static void look_around(void *arg)
{
    seen *s = arg;
    pthread_sigmask(SIG_SETMASK, NULL, &s->mask);
    pthread_getname_np(pthread_self(), s->name, sizeof s->name);
    s->id = wr_os_thread_id();
}

TEST(os_thread, thread_blocks_signals_but_those_it_causes_itself)
{
    seen s = {0};
    wr_thread thread;
    EXPECT_OK(wr_thread_start(&thread, "exactly15bytes!", look_around, &s));
    wr_thread_join(thread);
    EXPECT_STR(s.name, "exactly15bytes!");
    EXPECT(s.id != wr_os_thread_id());
    static const int blocked[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD, SIGUSR1, SIGALRM};
    static const int open[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGPROF};
    for (size_t i = 0; i < sizeof blocked / sizeof blocked[0]; i++)
        EXPECT_EQ(sigismember(&s.mask, blocked[i]), 1);
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++)
        EXPECT_EQ(sigismember(&s.mask, open[i]), 0);
}

TEST(os_thread, starting_a_thread_leaves_the_own_mask_alone)
{
    seen s = {0};
    sigset_t before, after;
    wr_thread thread;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    EXPECT_OK(wr_thread_start(&thread, "t", look_around, &s));
    wr_thread_join(thread);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int i = 1; i < 32; i++)
        EXPECT_EQ(sigismember(&before, i), sigismember(&after, i));
}

TEST(os_thread, clocks_go_forward)
{
    uint64_t wall = wr_clock_ns();
    uint64_t cpu = wr_clock_cpu_ns();
    int64_t unix_ms = wr_clock_unix_ms();
    while (wr_clock_cpu_ns() - cpu < 2000000)
        wr_cpu_relax();
    EXPECT(wr_clock_ns() > wall);
    EXPECT(unix_ms > INT64_C(1600000000000));
}

TEST(os_thread, seeds_differ)
{
    EXPECT(wr_random_seed() != wr_random_seed());
}

TEST(os_thread, seed_without_a_generator_still_differs)
{
    forbid_system_call(SYS_getrandom, ENOSYS);
    EXPECT(wr_random_seed() != wr_random_seed());
}

TEST(os_thread, environment_and_process)
{
    EXPECT_EQ(setenv("WEIR_TEST_VARIABLE", "value", 1), 0);
    EXPECT_STR(wr_os_getenv("WEIR_TEST_VARIABLE"), "value");
    EXPECT(wr_os_getenv("WEIR_TEST_NOT_SET") == NULL);
    EXPECT(wr_os_process_id() > 0);
    EXPECT(wr_os_cpu_count() >= 1);
}
