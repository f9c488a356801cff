/* SPDX-License-Identifier: MIT */
/* Tests of actors/scheduler.c and idle.c: who runs, where, and that nobody waits for ever. */
#include "harness.h"
#include "platform/compiler.h"
#include "weir/weir.h"
#include <stdatomic.h>

static _Atomic uint64_t flags[2], received;

typedef struct spinner {
    uint64_t index;
} spinner;
WEIR_ACTOR(spinner);
typedef struct meet {
    char unused;
} meet;
/* Returns only when the other is running at the same time. */
WEIR_BEHAVIOUR(spinner, meet)
{
    atomic_store(&flags[self->index], 1);
    while (atomic_load(&flags[1 - self->index]) == 0)
        wr_cpu_relax();
}

static void start_two(void *arg)
{
    (void)arg;
    EXPECT_OK(weir_send(weir_spawn(spinner, .index = 0), spinner, meet));
    EXPECT_OK(weir_send(weir_spawn(spinner, .index = 1), spinner, meet));
}

TEST(scheduler, two_threads_run_two_actors_at_once)
{
    weir_options options = {.threads = 2};
    for (int i = 0; i < 20; i++) {
        flags[0] = flags[1] = 0;
        EXPECT_OK(weir_run(&options, start_two, NULL));
    }
}

static void start_stuck(void *arg)
{
    (void)arg;
    EXPECT_OK(weir_send(weir_spawn(spinner, .index = 0), spinner, meet)); /* into the slot */
    atomic_store(&flags[1], 1);
    while (atomic_load(&flags[0]) == 0) /* this behaviour never ends before the other scheduler has taken it */
        wr_cpu_relax();
}

TEST(scheduler, the_slot_of_a_stuck_scheduler_is_robbed)
{
    weir_options options = {.threads = 2};
    for (int i = 0; i < 10; i++) {
        flags[0] = flags[1] = 0;
        EXPECT_OK(weir_run(&options, start_stuck, NULL));
    }
}

typedef struct pair {
    weir_ref peer;
} pair;
WEIR_ACTOR(pair, peer);
typedef struct ball {
    char unused;
} ball;
typedef struct serve {
    weir_ref peer;
    uint64_t begin;
} serve;
WEIR_BEHAVIOUR_DECLARE(pair, ball);
/* Plays until the third has been heard. */
WEIR_BEHAVIOUR(pair, ball)
{
    if (atomic_load(&received) == 0)
        EXPECT_OK(weir_send(weir_cast(pair, self->peer), pair, ball));
}
WEIR_BEHAVIOUR(pair, serve, peer)
{
    self->peer = msg->peer;
    if (msg->begin)
        EXPECT_OK(weir_send(weir_cast(pair, self->peer), pair, ball));
}

typedef struct third {
    uint64_t unused;
} third;
WEIR_ACTOR(third);
typedef struct hear {
    char unused;
} hear;
WEIR_BEHAVIOUR(third, hear)
{
    atomic_fetch_add(&received, 1);
}
typedef struct middle {
    weir_ref to;
} middle;
WEIR_ACTOR(middle, to);
typedef struct pass {
    uint64_t hops;
} pass;
WEIR_BEHAVIOUR_DECLARE(middle, pass);
WEIR_BEHAVIOUR(middle, pass)
{
    if (msg->hops > 0)
        EXPECT_OK(weir_send(weir_self(middle), middle, pass, .hops = msg->hops - 1));
    else
        EXPECT_OK(weir_send(weir_cast(third, self->to), third, hear));
}

static void start_starve(void *arg)
{
    (void)arg;
    pair_ref a = weir_spawn(pair), b = weir_spawn(pair);
    third_ref c = weir_spawn(third);
    EXPECT_OK(weir_send(a, pair, serve, .peer = b.any));
    EXPECT_OK(weir_send(b, pair, serve, .peer = a.any, .begin = 1));
    EXPECT_OK(weir_send(weir_spawn(middle, .to = c.any), middle, pass, .hops = 1000));
}

TEST(scheduler, a_busy_pair_starves_nobody)
{
    for (unsigned threads = 1; threads <= 2; threads++) {
        weir_options options = {.threads = threads};
        received = 0;
        EXPECT_OK(weir_run(&options, start_starve, NULL));
        EXPECT_EQ(received, 1);
    }
}

#define SENDERS 10
#define EACH 20000u

typedef struct counter {
    uint64_t next[SENDERS];
    uint64_t total;
} counter;
static void counter_ended(counter *self)
{
    EXPECT_EQ(self->total, SENDERS * EACH);
    atomic_fetch_add(&received, self->total);
}
WEIR_ACTOR_FINAL(counter, counter_ended);
typedef struct tick {
    uint64_t from, n;
} tick;
WEIR_BEHAVIOUR(counter, tick)
{
    EXPECT_EQ(msg->n, self->next[msg->from]);
    self->next[msg->from]++;
    self->total++;
}
typedef struct sender {
    counter_ref to;
    uint64_t index, sent;
} sender;
WEIR_ACTOR(sender, to);
typedef struct go {
    char unused;
} go;
WEIR_BEHAVIOUR_DECLARE(sender, go);
WEIR_BEHAVIOUR(sender, go)
{
    for (int i = 0; i < 100; i++)
        EXPECT_OK(weir_send(self->to, counter, tick, .from = self->index, .n = self->sent++));
    if (self->sent < EACH)
        EXPECT_OK(weir_send(weir_self(sender), sender, go));
}

static void start_fan_in(void *arg)
{
    (void)arg;
    counter_ref to = weir_spawn(counter);
    for (uint64_t i = 0; i < SENDERS; i++)
        EXPECT_OK(weir_send(weir_spawn(sender, .to = to, .index = i), sender, go));
}

TEST(scheduler, ten_senders_lose_nothing)
{
    for (unsigned threads = 1; threads <= 4; threads++) {
        weir_options options = {.threads = threads};
        received = 0;
        EXPECT_OK(weir_run(&options, start_fan_in, NULL));
        EXPECT_EQ(received, SENDERS * EACH);
    }
}

static void start_many(void *arg)
{
    (void)arg;
    for (int i = 0; i < 5000; i++)
        EXPECT_OK(weir_send(weir_spawn(third), third, hear));
}

TEST(scheduler, more_actors_than_the_ring_holds)
{
    for (unsigned threads = 1; threads <= 3; threads++) {
        weir_options options = {.threads = threads};
        received = 0;
        EXPECT_OK(weir_run(&options, start_many, NULL));
        EXPECT_EQ(received, 5000);
    }
}

#define NODES 64

typedef struct hop {
    weir_ref next[4];
    uint64_t random;
} hop;
WEIR_ACTOR(hop, next);
typedef struct link {
    weir_ref next[4];
} link;
WEIR_BEHAVIOUR(hop, link, next)
{
    for (int i = 0; i < 4; i++)
        self->next[i] = msg->next[i];
}
typedef struct token {
    uint64_t left;
} token;
WEIR_BEHAVIOUR_DECLARE(hop, token);
WEIR_BEHAVIOUR(hop, token)
{
    self->random = self->random * 6364136223846793005u + 1442695040888963407u;
    if (msg->left > 0)
        EXPECT_OK(weir_send(weir_cast(hop, self->next[self->random >> 62]), hop, token, .left = msg->left - 1));
    else
        atomic_fetch_add(&received, 1);
}

static void start_forwarding(void *arg)
{
    hop_ref all[NODES];
    (void)arg;
    for (int i = 0; i < NODES; i++)
        all[i] = weir_spawn(hop, .random = test_random());
    for (int i = 0; i < NODES; i++) {
        weir_ref n[4];
        for (int j = 0; j < 4; j++)
            n[j] = all[test_random() % NODES].any;
        EXPECT_OK(weir_send(all[i], hop, link, .next = {n[0], n[1], n[2], n[3]}));
    }
    for (int i = 0; i < NODES; i++)
        EXPECT_OK(weir_send(all[i], hop, token, .left = 2000));
}

TEST(scheduler, random_forwarding_is_conserved)
{
    for (unsigned i = 0; i < 8; i++) {
        weir_options options = {.threads = 1 + i % 4};
        received = 0;
        EXPECT_OK(weir_run(&options, start_forwarding, NULL));
        EXPECT_EQ(received, NODES);
    }
}

static uint64_t wakes_so_far(uint64_t *sleeps)
{
    weir_stats stats;
    EXPECT_OK(weir_get_stats(&stats));
    if (sleeps != NULL)
        *sleeps = stats.sleeps;
    return stats.wakes;
}

/* The other scheduler sleeps most of the time, so one of many tries finds it asleep; how many depends on when the system
 * lets it run. */
static void start_displaced(void *arg)
{
    uint64_t sleeps = 0, tries = 0, woken = 0;
    (void)arg;
    while (sleeps == 0) /* its first sleep has begun: from then on it watches */
        (void)wakes_so_far(&sleeps);
    while (woken < 3 &&
           tries++ < 2000000) { /* more than once: a wake that has arrived does not stand in for the next */
        EXPECT_OK(weir_send(weir_spawn(third), third, hear)); /* into the slot */
        uint64_t before = wakes_so_far(NULL);
        EXPECT_OK(weir_send(weir_spawn(third), third, hear)); /* displaces it */
        woken += wakes_so_far(NULL) - before;
    }
    EXPECT(woken >= 3);
}

TEST(scheduler, a_displaced_actor_wakes_a_sleeper)
{
    weir_options options = {.threads = 2};
    EXPECT_OK(weir_run(&options, start_displaced, NULL));
}
