/* SPDX-License-Identifier: MIT */
/* Tests of actors/actor.c and message.c: what a message may carry, and how long an actor lives. */
#include "actors/held.h"
#include "actors/io.h"
#include "harness.h"
#include "platform/check.h"
#include "platform/os.h"
#include "weir/weir.h"
#include <string.h>

static _Atomic uint64_t ended, received;

static void run(void (*start)(void *arg))
{
    for (unsigned threads = 1; threads <= 2; threads++) {
        weir_options options = {.threads = threads, .collect_after = 4096};
        ended = received = 0;
        EXPECT_OK(weir_run(&options, start, (void *)(uintptr_t)threads));
    }
}

typedef struct list {
    uint64_t next;
    weir_ref other;
    void *object;
} list;
static void list_ended(list *self)
{
    (void)self;
    atomic_fetch_add(&ended, 1);
}
WEIR_ACTOR_FINAL(list, list_ended, other, object);

typedef struct put {
    uint64_t n;
} put;
WEIR_BEHAVIOUR(list, put)
{
    EXPECT_EQ(msg->n, self->next);
    self->next++;
    atomic_fetch_add(&received, 1);
}

typedef struct nothing {
    char unused;
} nothing;
WEIR_BEHAVIOUR(list, nothing)
{
    atomic_fetch_add(&received, 1);
}

typedef struct text {
    uint32_t salt;
} text;
WEIR_BEHAVIOUR(list, text)
{
    size_t size = weir_tail_size(msg);
    for (size_t i = 0; i < size; i++)
        EXPECT_EQ((unsigned char)weir_tail(msg)[i], (unsigned char)(i * 7 + msg->salt));
    atomic_fetch_add(&received, size);
}

typedef struct meet {
    weir_ref other;
} meet;
WEIR_BEHAVIOUR(list, meet, other)
{
    self->other = msg->other;
    EXPECT(weir_actor_id(self->other) != 0);
}

typedef struct forget {
    char unused;
} forget;
WEIR_BEHAVIOUR(list, forget)
{
    self->other.actor = NULL;
}

typedef struct greet {
    weir_ref whom;
    uint64_t n;
} greet;
WEIR_BEHAVIOUR(list, greet, whom)
{
    EXPECT_OK(weir_send(weir_cast(list, msg->whom), list, put, .n = msg->n));
}

static void start_order(void *arg)
{
    (void)arg;
    list_ref to = weir_spawn(list, .next = 5);
    for (uint64_t i = 5; i < 20005; i++)
        EXPECT_OK(weir_send(to, list, put, .n = i));
}

TEST(actor, messages_arrive_in_the_order_sent)
{
    run(start_order);
    EXPECT_EQ(received, 20000);
}

static void start_nothing(void *arg)
{
    (void)arg;
    EXPECT_OK(weir_send(weir_spawn(list), list, nothing));
}

TEST(actor, a_message_may_have_no_fields)
{
    run(start_nothing);
    EXPECT_EQ(received, 1);
}

#define BIG 3000000u

static void start_tail(void *arg)
{
    static unsigned char bytes[BIG];
    static const size_t sizes[] = {0, 1, 15, 16, 17, 1000, 40000, BIG};
    (void)arg;
    list_ref to = weir_spawn(list);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (size_t j = 0; j < sizes[i]; j++)
            bytes[j] = (unsigned char)(j * 7 + i);
        EXPECT_OK(weir_send_tail(to, list, bytes, sizes[i], text, .salt = (uint32_t)i));
    }
    EXPECT_EQ(weir_send_tail(to, list, bytes, WEIR_MESSAGE_MAX, text, .salt = 0), WEIR_EMSGSIZE);
}

TEST(actor, bytes_behind_the_struct_arrive)
{
    run(start_tail);
    EXPECT_EQ(received, 1 + 15 + 16 + 17 + 1000 + 40000 + BIG);
}

typedef struct loose {
    uint64_t a;
    weir_ref other;
    uint64_t b;
} loose;
WEIR_ACTOR(loose);
typedef struct call {
    uint64_t n;
} call;
WEIR_BEHAVIOUR(loose, call)
{
    EXPECT_EQ(self->a, 17);
    EXPECT_EQ(self->b, 18);
    EXPECT_OK(weir_send(weir_cast(list, self->other), list, put, .n = msg->n));
}

static void start_first_state(void *arg)
{
    (void)arg;
    list_ref target = weir_spawn(list);
    loose_ref a = weir_spawn(loose, .a = 17, .b = 18, .other = target.any);
    list_ref b = weir_spawn(list, .other = target.any);
    EXPECT(!weir_is_null(loose, a));
    EXPECT(!weir_is_null(list, b));
    EXPECT_EQ(atomic_load(&((wr_shared *)(void *)target.any.actor)->count), 3);
    EXPECT_OK(weir_send(a, loose, call, .n = 0));
}

TEST(actor, first_state_is_copied_and_its_handles_are_held)
{
    run(start_first_state);
    EXPECT_EQ(received, 1);
    EXPECT_EQ(ended, 2);
}

typedef struct pebble {
    struct pebble *next;
} pebble;
WEIR_TYPE(pebble, next);
typedef struct carry {
    void *a;
    weir_ref b;
} carry;
WEIR_BEHAVIOUR(list, carry, a, b)
{
    atomic_fetch_add(&received, 1);
}

static void start_owned(void *arg)
{
    static int foreign;
    (void)arg;
    list_ref to = weir_spawn(list);
    pebble *object = weir_new(pebble);
    EXPECT_EQ(weir_send(to, list, carry, .a = object, .b = to.any), WEIR_EOWNED);
    EXPECT_EQ(weir_send(to, list, carry, .a = to.any.actor, .b = {(weir_actor *)(void *)object}), WEIR_EOWNED);
    EXPECT_EQ(atomic_load(&((wr_shared *)(void *)to.any.actor)->count), 1); /* nothing was raised */
    EXPECT_OK(weir_send(to, list, carry, .a = &foreign, .b = to.any));
    EXPECT_OK(weir_send(to, list, carry));
}

TEST(actor, an_object_of_the_sender_is_refused)
{
    run(start_owned);
    EXPECT_EQ(received, 2);
}

static void start_owned_state(void *arg)
{
    (void)arg;
    pebble *object = weir_new(pebble);
    EXPECT(weir_is_null(list, weir_spawn(list, .object = object)));
    EXPECT(weir_is_null(loose, weir_spawn(loose, .other = {(weir_actor *)(void *)object})));
}

TEST(actor, an_object_in_the_first_state_is_refused)
{
    run(start_owned_state);
}

static void start_not_held(void *arg)
{
    (void)arg;
    list_ref to = weir_spawn(list);
    char *inside = (char *)to.any.actor + 16; /* in the pool, but no handle */
    EXPECT_EQ(weir_send(to, list, carry, .a = inside), WEIR_EHANDLE);
    void *block = wr_current_actor(); /* its own handle is always held */
    EXPECT_OK(weir_send(to, list, carry, .a = block));
}

TEST(actor, a_handle_not_held_is_refused)
{
    run(start_not_held);
    EXPECT_EQ(received, 1);
}

static void start_null(void *arg)
{
    list_ref none = {{NULL}};
    (void)arg;
    EXPECT_EQ(weir_send(none, list, nothing), WEIR_EHANDLE);
    EXPECT_EQ(weir_actor_id(none.any), 0);
    EXPECT(weir_is_null(list, weir_cast(list, weir_self_any())));
}

TEST(actor, the_null_handle_is_refused)
{
    run(start_null);
}

static void start_wrong_type(void *arg)
{
    call message = {1};
    (void)arg;
    list_ref to = weir_spawn(list);
    weir_send_copy(to.any, &loose_call_weir, &message, NULL, 0);
}

TEST(actor, a_behaviour_of_another_type_trips_a_check)
{
    EXPECT_DEATH(weir_run(NULL, start_wrong_type, NULL), "loose.call sent to an actor of type list");
}

TEST(actor, a_send_outside_a_behaviour_trips_a_check)
{
    list_ref none = {{NULL}};
    EXPECT_DEATH(weir_send(none, list, nothing), "outside a behaviour");
    EXPECT_DEATH(weir_spawn(list), "outside a behaviour");
    EXPECT_DEATH(weir_new(pebble), "outside a behaviour");
}

typedef struct sly {
    uint64_t n;
    weir_ref hidden;
} sly;
WEIR_BEHAVIOUR(list, sly)
{
    (void)self;
}

static void start_undeclared(void *arg)
{
    (void)arg;
    list_ref to = weir_spawn(list);
    weir_send(to, list, sly, .n = 1, .hidden = to.any);
}

TEST(actor, undeclared_handles_are_reported)
{
#if WR_DEBUG
    EXPECT_DEATH(weir_run(NULL, start_undeclared, NULL), "message list.sly carries a handle at offset 8");
#else
    (void)start_undeclared;
    SKIP("only debug builds look for undeclared handles");
#endif
}

static void spawn_and_forget(void)
{
    list_ref a = weir_spawn(list), b = weir_spawn(list);
    EXPECT_OK(weir_send(a, list, meet, .other = b.any));
    EXPECT_OK(weir_send(b, list, put, .n = 0));
}

typedef struct watcher {
    uint64_t rounds;
} watcher;
WEIR_ACTOR(watcher);
typedef struct look {
    char unused;
} look;
WEIR_BEHAVIOUR_DECLARE(watcher, look);
/* Waits, a turn at a time, until both have ended while the run goes on. */
WEIR_BEHAVIOUR(watcher, look)
{
    self->rounds++;
    if (atomic_load(&ended) < 2)
        EXPECT_OK(weir_send(weir_self(watcher), watcher, look));
}

static void start_nobody(void *arg)
{
    (void)arg;
    spawn_and_forget();
    EXPECT_OK(weir_send(weir_spawn(watcher), watcher, look));
    weir_collect_soon();
}

TEST(actor, nobody_holds_it_so_it_ends)
{
    run(start_nobody);
    EXPECT_EQ(ended, 2);
}

static void start_in_message(void *arg)
{
    (void)arg;
    list_ref a = weir_spawn(list), b = weir_spawn(list);
    weir_collect_soon();
    EXPECT_OK(weir_send(a, list, greet, .whom = b.any, .n = 0));
}

TEST(actor, it_lives_while_its_handle_is_in_a_message)
{
    run(start_in_message);
    EXPECT_EQ(received, 1);
    EXPECT_EQ(ended, 2);
}

typedef struct wanderer {
    uint64_t left;
} wanderer;
static void wanderer_ended(wanderer *self)
{
    EXPECT_EQ(self->left, 0);
    atomic_fetch_add(&ended, 1);
}
WEIR_ACTOR_FINAL(wanderer, wanderer_ended);
typedef struct echo {
    weir_ref to;
} echo;
typedef struct step {
    char unused;
} step;
WEIR_BEHAVIOUR_DECLARE(wanderer, step);
typedef struct mirror {
    uint64_t unused;
} mirror;
WEIR_ACTOR(mirror);
/* Sends back to somebody whom nobody else holds, and lets go of it. */
WEIR_BEHAVIOUR(mirror, echo, to)
{
    (void)self;
    EXPECT_OK(weir_send(weir_cast(wanderer, msg->to), wanderer, step));
    weir_collect_soon();
}
WEIR_BEHAVIOUR(wanderer, step)
{
    if (self->left == 0)
        return;
    self->left--;
    mirror_ref m = weir_spawn(mirror);
    EXPECT_OK(weir_send(m, mirror, echo, .to = weir_self(wanderer).any));
    weir_collect_soon();
}

static void start_orphan(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20; i++)
        EXPECT_OK(weir_send(weir_spawn(wanderer, .left = 200), wanderer, step));
    weir_collect_soon();
}

TEST(actor, an_orphan_that_gives_its_handle_away_lives_on)
{
    run(start_orphan);
    EXPECT_EQ(ended, 20);
}

typedef struct giver {
    weir_ref to;
} giver;
static void giver_ended(giver *self)
{
    (void)self;
    atomic_fetch_add(&ended, 1);
}
WEIR_ACTOR_FINAL(giver, giver_ended, to);
typedef struct give {
    char unused;
} give;
WEIR_BEHAVIOUR_DECLARE(giver, give);
WEIR_BEHAVIOUR(giver, give)
{
    EXPECT_OK(weir_send(weir_cast(list, self->to), list, meet, .other = weir_self(giver).any));
    self->to.actor = NULL; /* no cycle */
    weir_collect_soon();
}

/* The giver's last count travels home behind `give`: it arrives when another holds the giver. */
static void start_giver(void *arg)
{
    (void)arg;
    list_ref holder = weir_spawn(list);
    EXPECT_OK(weir_send(weir_spawn(giver, .to = holder.any), giver, give));
    EXPECT_OK(weir_send(weir_spawn(watcher), watcher, look)); /* the run goes on until both have ended */
    weir_collect_soon();
}

TEST(actor, a_last_count_that_finds_others_is_given_back)
{
    run(start_giver);
    EXPECT_EQ(ended, 2);
}

typedef struct founder {
    uint64_t unused;
} founder;
static void founder_ended(founder *self)
{
    (void)self;
    EXPECT(weir_is_null(list, weir_spawn(list)));
    atomic_fetch_add(&ended, 1);
}
WEIR_ACTOR_FINAL(founder, founder_ended);

static void start_founder(void *arg)
{
    (void)arg;
    (void)weir_spawn(founder);
    weir_stop();
}

TEST(actor, nothing_is_spawned_when_the_run_ends)
{
    run(start_founder);
    EXPECT_EQ(ended, 1);
}

typedef struct wide {
    char text[100000];
    list_ref to;
} wide;
static void wide_ended(wide *self)
{
    EXPECT_EQ(self->text[99999], 'w');
    atomic_fetch_add(&ended, 1);
}
WEIR_ACTOR_FINAL(wide, wide_ended, to);
typedef struct tap {
    uint64_t n;
} tap;
WEIR_BEHAVIOUR(wide, tap)
{
    EXPECT_OK(weir_send(self->to, list, put, .n = msg->n));
    weir_collect_soon();
}
typedef struct tapper {
    wide_ref to;
} tapper;
WEIR_ACTOR(tapper, to);
WEIR_BEHAVIOUR_DECLARE(tapper, tap);
WEIR_BEHAVIOUR(tapper, tap)
{
    EXPECT_OK(weir_send(self->to, wide, tap, .n = msg->n));
    weir_collect_soon();
    if (msg->n < 9)
        EXPECT_OK(weir_send(weir_self(tapper), tapper, tap, .n = msg->n + 1));
}

static void start_wide(void *arg)
{
    static wide state;
    (void)arg;
    state.text[99999] = 'w';
    state.to = weir_spawn(list);
    wide_ref to = weir_cast(wide, weir_spawn_copy(&wide_weir_actor, &state));
    EXPECT_OK(weir_send(weir_spawn(tapper, .to = to), tapper, tap));
    weir_collect_soon();
}

TEST(actor, a_state_may_be_large)
{
    run(start_wide);
    EXPECT_EQ(received, 10);
    EXPECT_EQ(ended, 2);
}

typedef struct will {
    weir_ref heir;
    uint64_t n;
} will;
static void will_ended(will *self)
{
    int rc = weir_send(weir_cast(list, self->heir), list, put, .n = self->n);
    EXPECT(rc == 0 || rc == WEIR_ESHUTDOWN);
    /* nobody gets a dying actor */
    EXPECT_EQ(weir_send(weir_cast(list, self->heir), list, carry, .a = weir_self_any().actor), WEIR_ESHUTDOWN);
}
WEIR_ACTOR_FINAL(will, will_ended, heir);

static void start_wills(void *arg)
{
    (void)arg;
    list_ref heir = weir_spawn(list);
    (void)weir_spawn(will, .heir = heir.any, .n = 0);
    weir_collect_soon();
}

TEST(actor, finalisers_may_send)
{
    run(start_wills);
    EXPECT_EQ(received, 1);
}

static void start_cycle(void *arg)
{
    (void)arg;
    for (int i = 0; i < 10; i++) {
        list_ref a = weir_spawn(list), b = weir_spawn(list);
        EXPECT_OK(weir_send(a, list, meet, .other = b.any));
        EXPECT_OK(weir_send(b, list, meet, .other = a.any));
    }
    weir_collect_soon();
}

TEST(actor, a_cycle_ends_with_the_run)
{
    run(start_cycle);
    EXPECT_EQ(ended, 20);
}

typedef struct breeder {
    uint64_t left, alive_max;
} breeder;
WEIR_ACTOR(breeder);
typedef struct breed {
    char unused;
} breed;
WEIR_BEHAVIOUR_DECLARE(breeder, breed);
WEIR_BEHAVIOUR(breeder, breed)
{
    weir_stats stats;
    /* a turn makes at most a hundred times as many, then they run and end before the next */
    for (int i = 0; i < 100; i++)
        EXPECT_OK(weir_send(weir_spawn(list), list, nothing));
    EXPECT_OK(weir_get_stats(&stats));
    if (stats.actors_alive > self->alive_max)
        self->alive_max = stats.actors_alive;
    if (--self->left > 0)
        EXPECT_OK(weir_send(weir_self(breeder), breeder, breed));
    else
        EXPECT_EQ(self->alive_max < 40000 ? 0 : self->alive_max, 0);
}

static void start_storm(void *arg)
{
    (void)arg;
    EXPECT_OK(weir_send(weir_spawn(breeder, .left = 1000), breeder, breed));
}

TEST(actor, creation_storm_stays_small)
{
    run(start_storm);
    EXPECT_EQ(received, 100000);
    EXPECT_EQ(ended, 100000);
}

typedef struct holder {
    uint64_t before;
    list_ref to;
} holder;
WEIR_ACTOR(holder, to);
typedef struct check {
    uint64_t wait;
} check;
WEIR_BEHAVIOUR_DECLARE(holder, check);
WEIR_BEHAVIOUR(holder, check)
{
    weir_stats stats;
    if (atomic_load(&received) == 0) {
        EXPECT_OK(weir_send(weir_self(holder), holder, check, .wait = 5));
        /* the actor's turn ends meanwhile: it needs this scheduler, or is done with its message already */
    } else if (msg->wait > 0) {
        EXPECT_OK(weir_send(weir_self(holder), holder, check, .wait = msg->wait - 1));
    } else {
        EXPECT_OK(weir_get_stats(&stats));
        EXPECT(stats.pool_bytes < self->before + BIG / 2);
    }
}

static void start_large(void *arg)
{
    static char bytes[BIG];
    weir_stats stats;
    (void)arg;
    list_ref to = weir_spawn(list);
    EXPECT_OK(weir_get_stats(&stats));
    for (size_t i = 0; i < BIG; i++)
        bytes[i] = (char)(i * 7);
    EXPECT_OK(weir_send_tail(to, list, bytes, BIG, text, .salt = 0));
    holder_ref h = weir_spawn(holder, .before = stats.pool_bytes, .to = to);
    EXPECT_OK(weir_send(h, holder, check, .wait = 5));
}

TEST(actor, an_idle_actor_keeps_no_large_message)
{
    weir_options options = {.threads = 1};
    EXPECT_OK(weir_run(&options, start_large, NULL));
    EXPECT_EQ(received, BIG);
}

static _Atomic uint32_t pinned, slept;

static void start_pinned(void *arg)
{
    list_ref to = weir_spawn(list);
    weir_pin(to.any.actor);
    weir_pin(to.any.actor);
    weir_unpin(to.any.actor);
    if (arg == NULL)
        weir_unpin(to.any.actor);
    atomic_store(&pinned, 1);
}

/* Sees the run asleep, not ended, and stops it. */
static void stop_when_asleep(void *arg)
{
    weir_stats stats;
    (void)arg;
    while (atomic_load(&pinned) == 0)
        wr_cpu_relax();
    while (weir_get_stats(&stats) == 0) {
        if (stats.sleeps > 0) {
            atomic_store(&slept, 1);
            weir_stop();
            return;
        }
    }
}

TEST(actor, a_pinned_handle_keeps_the_run_going)
{
    weir_options options = {.threads = 1};
    wr_thread thread;
    EXPECT_OK(weir_run(&options, start_pinned, NULL)); /* unpinned: ends by itself */
    atomic_store(&pinned, 0);
    EXPECT_OK(wr_thread_start(&thread, "stopper", stop_when_asleep, NULL));
    EXPECT_OK(weir_run(&options, start_pinned, (void *)1));
    wr_thread_join(thread);
    EXPECT_EQ(slept, 1);
}

typedef struct bad {
    uint64_t unused;
} bad;
WEIR_BEHAVIOUR(list, bad)
{
    (void)self;
    WR_CHECK(false, "this is wrong on purpose");
}

static void start_bad(void *arg)
{
    (void)arg;
    EXPECT_OK(weir_send(weir_spawn(list), list, bad));
}

TEST(actor, reports_name_actor_and_behaviour)
{
    EXPECT_DEATH(weir_run(NULL, start_bad, NULL), "(list), behaviour list.bad");
}
