/* SPDX-License-Identifier: MIT */
/* Tests of actors/io.c: sources and turn hooks. */
#include "actors/io.h"
#include "actors/scheduler.h"
#include "harness.h"
#include "platform/os.h"
#include "weir/weir.h"

static int fds[2];
static must_call *called, *hooked;
static _Atomic uint64_t collected;

typedef struct reader {
    wr_source *source;
    uint64_t bytes;
} reader;
static void reader_gone(reader *self)
{
    (void)self;
    atomic_fetch_add(&collected, 1);
}
WEIR_UNTYPED_FINAL(reader, reader_gone);

static void send_byte(void)
{
    char byte = 'x';
    wr_slice slice = {&byte, 1};
    EXPECT_EQ(wr_fd_send(fds[1], &slice, 1), 1);
}

static void on_ready(void *object, unsigned events)
{
    reader *self = object;
    char bytes[16];
    EXPECT((events & WR_POLL_IN) != 0);
    must_called(called);
    EXPECT_EQ(wr_fd_receive(fds[0], bytes, sizeof bytes), (ssize_t)self->bytes);
    wr_source_close(self->source);
}

static void run(void (*start)(void *arg))
{
    static const char *backends[] = {"epoll", "poll"};
    for (unsigned i = 0; i < 4; i++) {
        weir_options options = {.threads = 1 + i % 2, .poll_backend = backends[i / 2]};
        EXPECT_OK(wr_socket_pair(fds));
        EXPECT_OK(weir_run(&options, start, NULL));
        wr_fd_close(fds[0]);
        wr_fd_close(fds[1]);
    }
}

typedef struct writer {
    uint64_t count;
} writer;
WEIR_ACTOR(writer);
typedef struct go {
    char unused;
} go;
WEIR_BEHAVIOUR(writer, go)
{
    for (uint64_t i = 0; i < self->count; i++)
        send_byte();
}

static void start_readiness(void *arg)
{
    (void)arg;
    reader *r = weir_new(reader);
    r->bytes = 1;
    EXPECT_OK(wr_source_open(fds[0], r, on_ready, WR_POLL_IN, &r->source));
    EXPECT_OK(weir_send(weir_spawn(writer, .count = 1), writer, go));
}

TEST(io, readiness_reaches_the_owner)
{
    called = must_call_new("on_ready", 4);
    run(start_readiness);
}

static void start_merged(void *arg)
{
    (void)arg;
    reader *r = weir_new(reader);
    r->bytes = 3;
    for (int i = 0; i < 3; i++)
        send_byte();
    EXPECT_OK(wr_source_open(fds[0], r, on_ready, WR_POLL_IN, &r->source));
}

TEST(io, events_before_the_handling_are_one_call)
{
    called = must_call_new("on_ready", 4);
    run(start_merged);
}

static uint64_t depth;

static void on_post(void *object, unsigned events)
{
    reader *self = object;
    EXPECT_EQ(events, WR_SOURCE_POSTED);
    EXPECT_EQ(depth, 0); /* not inside the post */
    must_called(called);
    if (++self->bytes < 3) {
        depth++;
        wr_source_post(self->source);
        wr_source_post(self->source);
        depth--;
    } else {
        wr_source_close(self->source);
    }
}

static void start_posts(void *arg)
{
    (void)arg;
    reader *r = weir_new(reader);
    EXPECT_OK(wr_source_open(-1, r, on_post, 0, &r->source));
    wr_source_post(r->source);
}

TEST(io, posts_run_in_a_turn_of_their_own)
{
    called = must_call_new("on_post", 12);
    run(start_posts);
}

static void start_closing(void *arg)
{
    (void)arg;
    reader *r = weir_new(reader);
    EXPECT_OK(wr_source_open(fds[0], r, on_post, WR_POLL_IN, &r->source));
    wr_source_post(r->source);
    wr_source_close(r->source);
}

TEST(io, closing_with_a_message_under_way_is_silent)
{
    called = must_call_new("on_post", 0);
    run(start_closing);
}

static void start_unwatched(void *arg)
{
    (void)arg;
    reader *r = weir_new(reader);
    EXPECT_OK(wr_source_open(fds[0], r, on_ready, WR_POLL_IN, &r->source));
    wr_source_arm(r->source, 0);
    send_byte();
}

TEST(io, an_unwatched_source_does_not_keep_the_run)
{
    called = must_call_new("on_ready", 0);
    run(start_unwatched);
}

typedef struct prober {
    uint64_t left;
} prober;
WEIR_ACTOR(prober);
typedef struct probe {
    char unused;
} probe;
WEIR_BEHAVIOUR_DECLARE(prober, probe);
WEIR_BEHAVIOUR(prober, probe)
{
    EXPECT_EQ(atomic_load(&collected), 0);
    if (--self->left > 0)
        EXPECT_OK(weir_send(weir_self(prober), prober, probe));
    else
        send_byte();
}

static void start_watched(void *arg)
{
    (void)arg;
    atomic_store(&collected, 0);
    reader *r = weir_new(reader); /* named by nothing but its source from here on */
    r->bytes = 1;
    EXPECT_OK(wr_source_open(fds[0], r, on_ready, WR_POLL_IN, &r->source));
    weir_collect_soon();
    EXPECT_OK(weir_send(weir_spawn(prober, .left = 10), prober, probe));
}

TEST(io, watched_objects_are_kept_alive)
{
    called = must_call_new("on_ready", 4);
    run(start_watched);
    EXPECT_EQ(collected, 1);
}

static _Atomic uint64_t heard;

static void on_heard(void *object, unsigned events)
{
    (void)events;
    wr_source_close(((reader *)object)->source);
    atomic_store(&heard, 1);
}

typedef struct busy {
    char unused;
} busy;
WEIR_ACTOR(busy);
typedef struct work {
    char unused;
} work;
WEIR_BEHAVIOUR_DECLARE(busy, work);
/* Keeps its scheduler busy until the event has been delivered. */
WEIR_BEHAVIOUR(busy, work)
{
    if (atomic_load(&heard) == 0)
        EXPECT_OK(weir_send(weir_self(busy), busy, work));
}

static void start_busy(void *arg)
{
    (void)arg;
    atomic_store(&heard, 0);
    reader *r = weir_new(reader);
    EXPECT_OK(wr_source_open(fds[0], r, on_heard, WR_POLL_IN, &r->source));
    EXPECT_OK(weir_send(weir_spawn(busy), busy, work));
    send_byte();
}

TEST(io, a_busy_scheduler_still_polls)
{
    run(start_busy);
}

typedef struct at_end {
    wr_turn_hook hook;
    uint64_t behaviours_seen;
} at_end;
WEIR_UNTYPED(at_end);
static uint64_t behaviours;

static void on_turn_end(wr_turn_hook *hook)
{
    at_end *self = hook->object;
    must_called(hooked);
    EXPECT_EQ(behaviours, 1);
    if (self->behaviours_seen++ == 0)
        wr_turn_hook_add(hook); /* a hook may add a hook, itself too */
}

static void start_hooks(void *arg)
{
    (void)arg;
    behaviours = 0;
    at_end *e = weir_new(at_end);
    e->hook = (wr_turn_hook){.run = on_turn_end, .object = e};
    wr_turn_hook_add(&e->hook);
    wr_turn_hook_add(&e->hook);
    weir_collect_soon(); /* it is kept alive until it has run */
    behaviours = 1;
}

TEST(io, turn_hooks_run_once_at_the_end_of_the_turn)
{
    hooked = must_call_new("turn hook", 8);
    run(start_hooks);
}

typedef struct flusher {
    wr_turn_hook hook; /* in the state: it is dequeued before the actor ends */
    uint64_t since_flush;
} flusher;
static void on_flush(wr_turn_hook *hook)
{
    flusher *self = WR_CONTAINER(flusher, hook, hook);
    must_called(hooked);
    EXPECT(self->since_flush > 0 && self->since_flush <= 100);
    self->since_flush = 0;
}
static void flusher_ended(flusher *self)
{
    if (self->since_flush > 0)
        return; /* a run that was stopped */
    self->since_flush++;
    wr_turn_hook_add(&self->hook); /* what a finaliser queues is done too */
}
WEIR_ACTOR_FINAL(flusher, flusher_ended);
typedef struct print {
    char unused;
} print;
WEIR_BEHAVIOUR(flusher, print)
{
    self->hook.run = on_flush;
    self->since_flush++;
    wr_turn_hook_add(&self->hook);
}

static void start_flusher(void *arg)
{
    (void)arg;
    flusher_ref f = weir_spawn(flusher);
    for (int i = 0; i < 250; i++)
        EXPECT_OK(weir_send(f, flusher, print));
}

TEST(io, turn_hooks_run_when_a_turn_is_cut_short_and_at_the_end)
{
    weir_options options = {.threads = 1};
    hooked = must_call_new("turn hook", 4); /* after 100, 200 and 250 messages, and for the finaliser */
    EXPECT_OK(weir_run(&options, start_flusher, NULL));
}

/* ---- events as the poller hands them out: the key is generation and index ---- */

static unsigned events_seen;

static void note_events(void *object, unsigned events)
{
    (void)object;
    events_seen = events;
    must_called(called);
}

static wr_source *first_source, *second_source;

static void deliver(uint64_t generation, unsigned events)
{
    wr_poll_event event = {.key = generation << 32, .events = events};
    wr_io_deliver(wr_here, &event, 1);
}

static void after_late_events(wr_turn_hook *hook)
{
    if (events_seen == 0) { /* the turn's end comes once more after the events */
        wr_turn_hook_add(hook);
        return;
    }
    EXPECT_EQ(events_seen, WR_POLL_IN);
    wr_source_close(second_source);
}

static void start_late(void *arg)
{
    static wr_turn_hook hook;
    (void)arg;
    events_seen = 0;
    EXPECT_OK(wr_source_open(-1, NULL, note_events, WR_POLL_IN, &first_source));
    wr_source_close(first_source);
    EXPECT_OK(wr_source_open(-1, NULL, note_events, WR_POLL_IN, &second_source)); /* at the same index */
    deliver(0, WR_POLL_IN | WR_POLL_HANGUP);                                      /* for the one that is closed */
    deliver(1, WR_POLL_OUT);                                                      /* nobody wants that */
    deliver(1, WR_POLL_IN);
    hook = (wr_turn_hook){.run = after_late_events};
    wr_turn_hook_add(&hook);
}

TEST(io, late_and_unwanted_events_find_nobody)
{
    weir_options options = {.threads = 1};
    called = must_call_new("ready", 1);
    EXPECT_OK(weir_run(&options, start_late, NULL));
    EXPECT_EQ(events_seen, WR_POLL_IN);
}

typedef struct opener {
    uint64_t unused;
} opener;
static void opener_ended(opener *self)
{
    wr_source *source;
    (void)self;
    EXPECT_EQ(wr_source_open(-1, NULL, note_events, WR_POLL_IN, &source), WEIR_ESHUTDOWN);
    EXPECT(source == NULL);
    atomic_fetch_add(&collected, 1);
}
WEIR_ACTOR_FINAL(opener, opener_ended);

static void start_opener(void *arg)
{
    (void)arg;
    (void)weir_spawn(opener);
    weir_collect_soon();
}

TEST(io, a_dying_actor_opens_nothing)
{
    weir_options options = {.threads = 1};
    called = must_call_new("ready", 0);
    EXPECT_OK(weir_run(&options, start_opener, NULL));
    EXPECT_EQ(collected, 1);
}
