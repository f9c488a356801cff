/* SPDX-License-Identifier: MIT */
/* bench/messages.c: suite messages: what does a message cost, and what does an actor?
 *
 * Job        self       an actor sends itself one message after the other.
 *            ping-pong  two actors, one message under way.
 *            counting   one actor floods another, four windows of 1000 messages ahead at most.
 *            ring       100 actors in a ring, one message goes round; per hop.
 *            fan-in-10  ten actors flood one, as in counting.
 *            create     an actor is made, gets one message, ends; the clock stops when all are gone.
 *            fan-out    ten actors compute; the time for 1000 steps of all their work, so 2 schedulers should halve it.
 * Invariants Each row counts what arrived; a lost or doubled message fails or hangs the repeat.
 * Threads    1 and 2 schedulers. `clock_of_run` is written by one behaviour after another (messages order them) and
 *            read after the run.
 * Tried      Flooding without windows: a repeat of counting held up to 286 MB of backlog instead of 2 MB in all, so that the
 *            row said more about page faults than about messages.
 */
#include "bench.h"
#include <weir/weir.h>

#define WINDOW 1000
#define WINDOWS_AHEAD 4
#define RING 100
#define FAN 10

static struct {
    uint64_t began_ns, ended_ns;
} clock_of_run;

static void begin_clock(void)
{
    clock_of_run.began_ns = weir_now_ns();
}

static void end_clock(void)
{
    clock_of_run.ended_ns = weir_now_ns();
}

static void sent(int rc)
{
    bench_must("weir_send", rc);
}

/* For messages that say nothing. */
typedef struct nothing {
    char unused;
} nothing;

/* ---- self ---- */

typedef struct looper {
    uint64_t left, ops;
} looper;
WEIR_ACTOR(looper);

typedef nothing again;

WEIR_BEHAVIOUR(looper, again)
{
    if (self->left == self->ops)
        begin_clock();
    if (self->left-- == 0)
        end_clock();
    else
        sent(weir_send(weir_self(looper), looper, again));
}

static void start_self(void *arg)
{
    const bench_job *job = arg;
    looper_ref l = weir_spawn(looper, .left = job->warm + job->ops, .ops = job->ops);
    sent(weir_send(l, looper, again));
}

/* ---- ping-pong and ring ---- */

typedef struct node node;
WEIR_ACTOR_DECLARE(node);
struct node {
    node_ref next;
    uint64_t ops;
};
WEIR_ACTOR_DEFINE(node, next);

typedef struct link {
    node_ref next;
} link;

typedef struct token {
    uint64_t left;
} token;

WEIR_BEHAVIOUR(node, link, next)
{
    self->next = msg->next;
}

WEIR_BEHAVIOUR(node, token)
{
    if (msg->left == self->ops)
        begin_clock();
    if (msg->left == 0)
        end_clock();
    else
        sent(weir_send(self->next, node, token, .left = msg->left - 1));
}

static void start_circle(const bench_job *job, unsigned size)
{
    node_ref first = weir_spawn(node, .ops = job->ops), last = first;
    for (unsigned i = 1; i < size; i++) {
        node_ref n = weir_spawn(node, .ops = job->ops);
        sent(weir_send(last, node, link, .next = n));
        last = n;
    }
    sent(weir_send(last, node, link, .next = first));
    sent(weir_send(last, node, token, .left = job->warm + job->ops));
}

static void start_ping_pong(void *arg)
{
    start_circle(arg, 2);
}

static void start_ring(void *arg)
{
    start_circle(arg, RING);
}

/* ---- counting and fan-in-10 ---- */

typedef struct tally {
    uint64_t count, warm, ops;
} tally;
WEIR_ACTOR(tally);

typedef struct producer {
    tally_ref to;
    uint64_t left;
} producer;
WEIR_ACTOR(producer, to);

typedef struct add {
    uint64_t by;
} add;

/* The last message of a window asks for the next one. */
typedef struct add_last {
    producer_ref from;
    uint64_t by;
} add_last;

typedef nothing more;

static void tally_up(tally *self, uint64_t by)
{
    self->count += by;
    if (self->count == self->warm)
        begin_clock();
    if (self->count == self->warm + self->ops)
        end_clock();
    if (self->count > self->warm + self->ops)
        bench_fail("more messages arrived than were sent");
}

WEIR_BEHAVIOUR(tally, add)
{
    tally_up(self, msg->by);
}

WEIR_BEHAVIOUR_DECLARE(producer, more);

WEIR_BEHAVIOUR(tally, add_last, from)
{
    tally_up(self, msg->by);
    sent(weir_send(msg->from, producer, more));
}

WEIR_BEHAVIOUR(producer, more)
{
    if (self->left == 0)
        return;
    for (unsigned i = 1; i < WINDOW; i++)
        sent(weir_send(self->to, tally, add, .by = 1));
    sent(weir_send(self->to, tally, add_last, .from = weir_self(producer), .by = 1));
    self->left -= WINDOW;
}

static void start_flood(const bench_job *job, unsigned producers)
{
    tally_ref t = weir_spawn(tally, .warm = job->warm, .ops = job->ops);
    for (unsigned i = 0; i < producers; i++) {
        producer_ref p = weir_spawn(producer, .to = t, .left = (job->warm + job->ops) / producers);
        for (unsigned w = 0; w < WINDOWS_AHEAD; w++)
            sent(weir_send(p, producer, more));
    }
}

static void start_counting(void *arg)
{
    start_flood(arg, 1);
}

static void start_fan_in(void *arg)
{
    start_flood(arg, FAN);
}

/* ---- create ---- */

typedef struct child {
    uint64_t number;
} child;
WEIR_ACTOR(child);

typedef struct work {
    uint64_t number;
} work;

WEIR_BEHAVIOUR(child, work)
{
    if (self->number != msg->number)
        bench_fail("actor %llu got the message of actor %llu", (unsigned long long)self->number,
                   (unsigned long long)msg->number);
}

typedef struct parent {
    uint64_t made, warm, ops;
    uint64_t alive_before; /* actors, when the first child was not there yet */
} parent;
WEIR_ACTOR(parent);

typedef nothing make_more;

static uint64_t actors_alive(void)
{
    weir_stats stats;
    bench_must("weir_get_stats", weir_get_stats(&stats));
    return stats.actors_alive;
}

WEIR_BEHAVIOUR(parent, make_more)
{
    if (self->made == 0)
        self->alive_before = actors_alive();
    if (self->made == self->warm)
        begin_clock();
    if (self->made == self->warm + self->ops) {
        if (actors_alive() <= self->alive_before) {
            end_clock();
            return;
        }
        weir_collect_soon();
    } else {
        for (unsigned i = 0; i < WINDOW; i++) {
            uint64_t number = self->made++;
            child_ref c = weir_spawn(child, .number = number);
            sent(weir_send(c, child, work, .number = number));
        }
    }
    sent(weir_send(weir_self(parent), parent, make_more));
}

static void start_create(void *arg)
{
    const bench_job *job = arg;
    parent_ref p = weir_spawn(parent, .warm = job->warm, .ops = job->ops);
    sent(weir_send(p, parent, make_more));
}

/* ---- fan-out ---- */

#define STEPS_PER_OP 1000
#define OPS_PER_TURN 20

typedef struct gatherer {
    uint64_t done, sum;
} gatherer;
WEIR_ACTOR(gatherer);

typedef struct result {
    uint64_t sum;
} result;

WEIR_BEHAVIOUR(gatherer, result)
{
    if (self->done > 0 && self->sum != msg->sum)
        bench_fail("the same work gave different results");
    self->sum = msg->sum;
    if (++self->done == FAN)
        end_clock();
}

typedef struct computer {
    gatherer_ref to;
    uint64_t left, state;
} computer;
WEIR_ACTOR(computer, to);

typedef nothing compute;

WEIR_BEHAVIOUR(computer, compute)
{
    uint64_t x = self->state;
    uint64_t ops = self->left < OPS_PER_TURN ? self->left : OPS_PER_TURN;
    for (uint64_t i = 0; i < ops * STEPS_PER_OP; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    self->state = x;
    self->left -= ops;
    if (self->left == 0)
        sent(weir_send(self->to, gatherer, result, .sum = x));
    else
        sent(weir_send(weir_self(computer), computer, compute));
}

static void start_fan_out(void *arg)
{
    const bench_job *job = arg;
    gatherer_ref g = weir_spawn(gatherer, .done = 0);
    begin_clock();
    for (unsigned i = 0; i < FAN; i++) {
        computer_ref c = weir_spawn(computer, .to = g, .left = job->ops / FAN, .state = 88172645463325252u);
        sent(weir_send(c, computer, compute));
    }
}

/* ---- the table ---- */

typedef struct scenario {
    void (*start)(void *arg);
} scenario;

static void run_messages(const bench_job *job, bench_sample *sample)
{
    const scenario *s = job->what;
    bench_job copy = *job;
    bench_weir_run(job->threads, s->start, &copy);
    if (clock_of_run.ended_ns == 0)
        bench_fail("the run ended before the work was done");
    *sample = (bench_sample){.elapsed_ns = clock_of_run.ended_ns - clock_of_run.began_ns, .ops = job->ops};
}

static const scenario self = {start_self}, ping_pong = {start_ping_pong}, counting = {start_counting},
                      ring = {start_ring}, fan_in = {start_fan_in}, create = {start_create}, fan_out = {start_fan_out};

static const bench_row rows[] = {
    {"self", "ns/message", 1000, run_messages, NULL, &self},
    {"ping-pong", "ns/message", 1000, run_messages, NULL, &ping_pong},
    {"counting", "ns/message", WINDOW, run_messages, NULL, &counting},
    {"ring", "ns/hop", 1000, run_messages, NULL, &ring},
    {"fan-in-10", "ns/message", FAN *WINDOW, run_messages, NULL, &fan_in},
    {"create", "ns/actor", WINDOW, run_messages, NULL, &create},
    {"fan-out", "ns/1000 steps", FAN *OPS_PER_TURN, run_messages, NULL, &fan_out},
};

const bench_suite bench_messages = {
    .name = "messages",
    .about = "what a message and an actor cost",
    .threads = 1u << 1 | 1u << 2,
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(rows[0]),
};
