/* SPDX-License-Identifier: MIT */
/* Tests of src/actors at its edges: what finalisers and release functions may do, the first and the last instant of a
 * run, and who watches while others work. */
#include "actors/actor.h"
#include "actors/io.h"
#include "harness.h"
#include "platform/compiler.h"
#include "weir/weir.h"
#include <stdatomic.h>

static void run(void (*start)(void *arg))
{
    weir_options options = {.threads = 1};
    EXPECT_OK(weir_run(&options, start, NULL));
}

/* ---- the first instant ---- */

static void start_early(void *arg)
{
    weir_stats stats;
    (void)arg;
    EXPECT_OK(weir_get_stats(&stats));
    EXPECT_EQ(stats.threads, 64);
    weir_stop();
}

TEST(edges, start_sees_its_run_however_many_threads_are_being_started)
{
    weir_options options = {.threads = 64};
    for (int i = 0; i < 20; i++)
        EXPECT_OK(weir_run(&options, start_early, NULL));
}

/* ---- dying actors ---- */

static _Atomic uint64_t heirs_spawned, peeked;

typedef struct heir {
    weir_ref of;
} heir;
WEIR_ACTOR(heir);
typedef struct peek {
    char unused;
} peek;
WEIR_BEHAVIOUR(heir, peek)
{
    atomic_fetch_add(&peeked, 1);
}

typedef struct dying {
    uint64_t unused;
} dying;
static void dying_ended(dying *self)
{
    (void)self;
    if (!weir_is_null(heir, weir_spawn(heir, .of = weir_self_any())))
        atomic_fetch_add(&heirs_spawned, 1);
    heir_ref other = weir_spawn(heir); /* without its handle it may */
    EXPECT_OK(weir_send(other, heir, peek));
}
WEIR_ACTOR_FINAL(dying, dying_ended);

static void start_dying(void *arg)
{
    (void)arg;
    for (int i = 0; i < 5; i++)
        (void)weir_spawn(dying);
    weir_collect_soon();
}

TEST(edges, a_dying_actor_gives_its_handle_to_no_new_actor)
{
    run(start_dying);
    EXPECT_EQ(heirs_spawned, 0);
    EXPECT_EQ(peeked, 5);
}

/* ---- release functions ---- */

static void spawning_release(void *data, size_t length, void *arg)
{
    (void)data;
    (void)length;
    (void)arg;
    (void)weir_spawn(heir);
}

static void start_release(void *arg)
{
    static char bytes[100];
    weir_buf *buf;
    (void)arg;
    EXPECT_OK(weir_buf_wrap(bytes, sizeof bytes, spawning_release, NULL, &buf));
    weir_collect_soon();
}

static void start_release_at_end(void *arg)
{
    start_release(arg);
    weir_stop();
}

TEST(edges, a_release_function_runs_outside_behaviours)
{
    EXPECT_DEATH(run(start_release), "weir_spawn(heir) outside a behaviour");
    EXPECT_DEATH(run(start_release_at_end), "weir_spawn(heir) outside a behaviour");
}

/* ---- finalisers in a collection ---- */

typedef struct note {
    heir_ref to;
    uint64_t generation;
} note;
static void note_gone(note *self);
WEIR_TYPE_FINAL(note, note_gone, to);
static void note_gone(note *self)
{
    if (self->generation == 0) {
        note *fresh = weir_new(note);
        fresh->generation = 1;
        fresh->to = weir_spawn(heir);
    } else if (!weir_is_null(heir, self->to)) {
        EXPECT(weir_any(heir, self->to).actor->shared.kind == &wr_actor_kind);
        int rc = weir_send(self->to, heir, peek);
        EXPECT(rc == 0 || rc == WEIR_ESHUTDOWN);
    }
}

typedef struct rounder {
    uint64_t left;
} rounder;
WEIR_ACTOR(rounder);
typedef struct again {
    char unused;
} again;
WEIR_BEHAVIOUR_DECLARE(rounder, again);
WEIR_BEHAVIOUR(rounder, again)
{
    (void)weir_new(note);
    weir_collect_soon();
    if (self->left-- > 0)
        EXPECT_OK(weir_send(weir_self(rounder), rounder, again));
}

static void start_notes(void *arg)
{
    (void)arg;
    EXPECT_OK(weir_send(weir_spawn(rounder, .left = 9), rounder, again));
}

TEST(edges, what_a_finaliser_spawns_lives_as_long_as_what_it_allocates)
{
    run(start_notes);
    EXPECT(peeked >= 8);
}

typedef struct session {
    weir_stream *stream;
} session;
static void session_gone(session *self)
{
    (void)weir_stream_write(self->stream, "bye", 3);
}
WEIR_TYPE_FINAL(session, session_gone, stream);

static void collect_late(wr_turn_hook *hook)
{
    (void)hook;
    weir_collect_soon();
}

/* Two paused streams that nobody names any more when the turn's hooks have run. */
static void start_sessions(void *arg)
{
    static const weir_stream_events none;
    static wr_turn_hook late;
    weir_descriptor *pair[2];
    (void)arg;
    late = (wr_turn_hook){.run = collect_late};
    wr_turn_hook_add(&late); /* before the streams' own, so it runs after them */
    EXPECT_OK(weir_descriptor_pair(pair));
    for (int i = 0; i < 2; i++) {
        session *s = weir_new(session);
        EXPECT_OK(weir_stream_open(pair[i], &none, NULL, &s->stream));
        weir_stream_pause(s->stream);
    }
}

TEST(edges, a_finaliser_may_write_to_a_stream_that_dies_with_it)
{
    run(start_sessions);
}

/* ---- actors that generated code describes ---- */

static void plain_run(void *self, const void *msg)
{
    (void)self;
    (void)msg;
    (void)weir_new_bytes(10);
    weir_collect_soon();
}
static const weir_type plain_type = {"plain", 8, 8, 0, NULL, NULL};
static const weir_behaviour plain_go = {"plain.go", &plain_type, 0, plain_run, NULL};

static void start_plain(void *arg)
{
    uint64_t state = 1;
    (void)arg;
    EXPECT_OK(weir_send_copy(weir_spawn_copy(&plain_type, &state), &plain_go, NULL, NULL, 0));
}

TEST(edges, a_state_without_references_and_a_message_without_bytes)
{
    run(start_plain);
}

static void start_pin_nothing(void *arg)
{
    (void)arg;
    weir_pin(NULL);
}

TEST(edges, pinning_nothing_trips_a_check)
{
    EXPECT_DEATH(run(start_pin_nothing), "weir_pin(NULL)");
}

/* ---- the watcher ---- */

static _Atomic uint32_t second_ran;

typedef struct toiler {
    uint64_t is_second;
} toiler;
WEIR_ACTOR(toiler);
typedef struct work {
    char unused;
} work;
WEIR_BEHAVIOUR(toiler, work)
{
    if (self->is_second)
        atomic_store(&second_ran, 1);
    while (atomic_load(&second_ran) == 0)
        wr_cpu_relax();
}

/* This behaviour and the first toiler end only when the second has run, which must leave the slot for that: whoever was
 * the watcher and took the first must have made somebody else watch. */
static void start_watched(void *arg)
{
    weir_stats stats;
    (void)arg;
    toiler_ref first = weir_spawn(toiler), second = weir_spawn(toiler, .is_second = 1);
    do {
        EXPECT_OK(weir_get_stats(&stats));
    } while (stats.sleeps < 2);
    EXPECT_OK(weir_send(first, toiler, work));
    EXPECT_OK(weir_send(second, toiler, work)); /* into the slot; the first to the ring */
    while (atomic_load(&second_ran) == 0)
        wr_cpu_relax();
}

TEST(edges, somebody_watches_while_one_sleeps_and_the_others_work)
{
    weir_options options = {.threads = 3};
    for (int i = 0; i < 100; i++) {
        atomic_store(&second_ran, 0);
        EXPECT_OK(weir_run(&options, start_watched, NULL));
    }
}
