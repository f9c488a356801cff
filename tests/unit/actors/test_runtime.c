/* SPDX-License-Identifier: MIT */
/* Tests of actors/runtime.c: a run's beginning, its end, its options. */
#include "harness.h"
#include "memory/arena.h"
#include "platform/fail.h"
#include "platform/os.h"
#include "weir/weir.h"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static _Atomic uint64_t ran, finalised;

typedef struct worker {
    uint64_t left;
} worker;
WEIR_ACTOR(worker);
typedef struct work {
    uint64_t unused;
} work;
WEIR_BEHAVIOUR_DECLARE(worker, work);
WEIR_BEHAVIOUR(worker, work)
{
    atomic_fetch_add(&ran, 1);
    if (self->left-- > 0)
        EXPECT_OK(weir_send(weir_self(worker), worker, work));
}

typedef struct thing {
    void *next;
} thing;
static void thing_gone(thing *self)
{
    (void)self;
    atomic_fetch_add(&finalised, 1);
}
WEIR_TYPE_FINAL(thing, thing_gone, next);

static void start_workers(void *arg)
{
    for (int i = 0; i < 10; i++)
        EXPECT_OK(weir_send(weir_spawn(worker, .left = 99), worker, work));
    for (uintptr_t i = 0; i < (uintptr_t)arg; i++)
        (void)weir_new(thing);
}

TEST(runtime, ends_when_nothing_can_happen_any_more)
{
    EXPECT_EQ(weir_run(NULL, start_workers, NULL), 0);
    EXPECT_EQ(ran, 1000);
}

TEST(runtime, runs_again_and_again_in_one_process)
{
    for (unsigned i = 0; i < 40; i++) {
        weir_options options = {.threads = 1 + i % 3};
        ran = finalised = 0;
        EXPECT_EQ(weir_run(&options, start_workers, (void *)7), 0);
        EXPECT_EQ(ran, 1000);
        EXPECT_EQ(finalised, 7);
    }
}

static void start_nothing(void *arg)
{
    (void)arg;
}

TEST(runtime, two_thousand_short_runs)
{
    weir_options options = {.threads = 2};
    unsigned runs = WR_SANITIZED ? 200 : 2000;
    for (unsigned i = 0; i < runs; i++)
        EXPECT_EQ(weir_run(&options, i % 2 == 0 ? start_nothing : start_workers, NULL), 0);
}

static void start_second(void *arg)
{
    (void)arg;
    EXPECT_EQ(weir_run(NULL, start_nothing, NULL), WEIR_EBUSY);
}

TEST(runtime, a_second_run_at_the_same_time_is_refused)
{
    EXPECT_OK(weir_run(NULL, start_second, NULL));
}

/* An actor that works for ever. */
typedef struct forever {
    uint64_t rounds;
} forever;
WEIR_ACTOR(forever);
typedef struct round {
    uint64_t unused;
} round;
static _Atomic uint32_t going;
WEIR_BEHAVIOUR_DECLARE(forever, round);
WEIR_BEHAVIOUR(forever, round)
{
    self->rounds++;
    atomic_store(&going, 1);
    wr_futex_wake(&going, 1);
    EXPECT_OK(weir_send(weir_self(forever), forever, round));
}

static void start_forever(void *arg)
{
    (void)arg;
    for (int i = 0; i < 3; i++)
        EXPECT_OK(weir_send(weir_spawn(forever), forever, round));
}

static void wait_until_going(void)
{
    while (atomic_load(&going) == 0)
        wr_futex_wait(&going, 0, -1);
}

static void stopper(void *arg)
{
    (void)arg;
    wait_until_going();
    weir_stop();
}

TEST(runtime, stop_from_a_foreign_thread)
{
    for (unsigned threads = 1; threads <= 2; threads++) {
        wr_thread thread;
        weir_options options = {.threads = threads};
        atomic_store(&going, 0);
        weir_stop(); /* without a run: nothing */
        EXPECT_OK(wr_thread_start(&thread, "stopper", stopper, NULL));
        EXPECT_EQ(weir_run(&options, start_forever, NULL), 0);
        wr_thread_join(thread);
    }
}

static void on_signal(int number)
{
    (void)number;
    weir_stop();
}

static void signaller(void *arg)
{
    wait_until_going();
    pthread_kill(*(pthread_t *)arg, SIGUSR1);
}

TEST(runtime, stop_from_a_signal_handler)
{
    struct sigaction action = {.sa_handler = on_signal};
    pthread_t self = pthread_self();
    sigaction(SIGUSR1, &action, NULL);
    for (unsigned threads = 1; threads <= 2; threads++) {
        wr_thread thread;
        weir_options options = {.threads = threads};
        atomic_store(&going, 0);
        EXPECT_OK(wr_thread_start(&thread, "signaller", signaller, &self));
        EXPECT_EQ(weir_run(&options, start_forever, NULL), 0);
        wr_thread_join(thread);
    }
}

static _Atomic uint64_t released;
static void count_release(void *data, size_t length, void *arg)
{
    (void)data;
    (void)length;
    (void)arg;
    atomic_fetch_add(&released, 1);
}

typedef struct sink {
    weir_store *last;
} sink;
WEIR_ACTOR(sink, last);
typedef struct give {
    weir_store *store;
} give;
WEIR_BEHAVIOUR(sink, give, store)
{
    self->last = msg->store;
}

static void start_and_stop(void *arg)
{
    static char bytes[100];
    (void)arg;
    sink_ref to = weir_spawn(sink);
    for (int i = 0; i < 50; i++) {
        weir_buf *buf;
        EXPECT_OK(weir_buf_wrap(bytes, sizeof bytes, count_release, NULL, &buf));
        EXPECT_OK(weir_send(to, sink, give, .store = weir_buf_store(buf)));
        (void)weir_new(thing);
    }
    weir_stop();
}

TEST(runtime, stop_drops_messages_but_runs_finalisers_and_gives_back)
{
    weir_options options = {.threads = 1};
    EXPECT_OK(weir_run(&options, start_and_stop, NULL));
    EXPECT_EQ(finalised, 50);
    EXPECT_EQ(released, 50);
}

TEST(runtime, options_out_of_range_are_named)
{
    weir_options options = {.threads = 65};
    EXPECT_EQ(weir_run(&options, start_nothing, NULL), WEIR_EINVAL);
    options = (weir_options){.poll_backend = "kqueue"};
    EXPECT_EQ(weir_run(&options, start_nothing, NULL), WEIR_EINVAL);
    options = (weir_options){.collect_after = 1};
    EXPECT_EQ(weir_run(&options, start_nothing, NULL), WEIR_EINVAL);
    EXPECT_OK(weir_run(NULL, start_nothing, NULL));
}

TEST(runtime, environment_out_of_range_is_named)
{
    static const char *bad[] = {"0", "65", "-1", "two", "2x", "99999999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        setenv("WEIR_THREADS", bad[i], 1);
        EXPECT_EQ(weir_run(NULL, start_nothing, NULL), WEIR_EINVAL);
    }
    setenv("WEIR_THREADS", "2", 1);
    EXPECT_OK(weir_run(NULL, start_nothing, NULL));
    setenv("WEIR_POLL", "select", 1);
    EXPECT_EQ(weir_run(NULL, start_nothing, NULL), WEIR_EINVAL);
    setenv("WEIR_POLL", "poll", 1);
    EXPECT_OK(weir_run(NULL, start_nothing, NULL));
}

static void start_exit_code(void *arg)
{
    weir_set_exit_code((int)(intptr_t)arg);
}

TEST(runtime, exit_code_is_returned)
{
    EXPECT_EQ(weir_run(NULL, start_exit_code, (void *)7), 7);
    EXPECT_EQ(weir_run(NULL, start_nothing, NULL), 0);
}

typedef struct failure {
    wr_fail_kind kind;
    uint64_t nth;
    _Atomic uint32_t hits;
} failure;

static int fail_nth(void *arg, wr_fail_kind kind, uint64_t nth)
{
    failure *f = arg;
    if (kind != f->kind || nth != f->nth)
        return 0;
    atomic_fetch_add(&f->hits, 1);
    return WEIR_ENOMEM;
}

/* Each call that start-up makes fails once: the run is refused with its code, and the next run works. */
TEST(runtime, a_failed_start_leaves_nothing)
{
    static const wr_fail_kind kinds[] = {WR_FAIL_ALLOC, WR_FAIL_THREAD, WR_FAIL_POLLER, WR_FAIL_COMMIT};
    weir_options options = {.threads = 3};
    unsigned refused = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (uint64_t nth = 0;; nth++) {
            failure f = {.kind = kinds[k], .nth = nth};
            wr_fail_install(fail_nth, &f);
            int rc = weir_run(&options, start_nothing, NULL);
            wr_fail_install(NULL, NULL);
            EXPECT(rc == 0 || rc == WEIR_ENOMEM);
            refused += rc != 0;
            if (atomic_load(&f.hits) == 0)
                break;
            EXPECT_OK(weir_run(&options, start_nothing, NULL));
        }
    }
    EXPECT(refused >= 5);
}

static void start_statistics(void *arg)
{
    weir_stats *stats = arg;
    for (int i = 0; i < 5; i++)
        EXPECT_OK(weir_send(weir_spawn(worker), worker, work));
    EXPECT_OK(weir_get_stats(stats));
}

TEST(runtime, statistics_add_up)
{
    weir_stats stats;
    weir_options options = {.threads = 1};
    EXPECT_EQ(weir_get_stats(&stats), WEIR_EPERM);
    EXPECT_OK(weir_run(&options, start_statistics, &stats));
    EXPECT_EQ(stats.threads, 1);
    EXPECT_EQ(stats.actors_created, 6);
    EXPECT_EQ(stats.actors_alive, 6);
    EXPECT_EQ(stats.messages_sent, 5);
    EXPECT(stats.pool_bytes > 0);
    EXPECT(stats.committed_bytes >= stats.pool_bytes + stats.heap_bytes);
}
