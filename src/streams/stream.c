/* SPDX-License-Identifier: MIT */
/* streams/stream.c: the life of a stream: its states and the order of its events.
 *
 * Job        Make streams, turn readiness and the user's calls into events in the promised order, close.
 * Invariants See stream.h. Everything that changes a stream leads to `settle` at the end of the turn, which alone
 *            decides: send, shut down, close, what to watch, whether the stream needs a turn of its own. Callbacks may
 *            do anything to the stream; after each one the state is looked at afresh.
 * Threads    The owner's scheduler. The finaliser runs there too, also at the end of the run.
 * Cost       About 450 bytes, a descriptor and a slot of the poller; an idle stream owns no block.
 * Tried      Changing the watched set inside pause and resume: two system calls each time a server pauses for a moment.
 *            At the end of the turn mostly nothing has changed.
 */
#include "streams/stream.h"

#include "streams/address.h"

#include "platform/check.h"
#include "weir/heap.h"

#include <string.h>

#define HIGH_WATER_USUAL ((size_t)256 << 10)
#define HARD_LIMIT_USUAL ((size_t)64 << 20)
#define READ_AFTER_FAILURE_MAX \
    ((size_t)16 << 20) /* a peer that goes on sending cannot put its own error off for ever */

static void stream_finalise(void *object);
static void stream_hook(wr_turn_hook *hook);
static void stream_ready(void *object, unsigned events);

static const weir_field stream_fields[] = {
    {offsetof(struct weir_stream, arg), 1}, WR_QUEUE_FIELDS(offsetof(struct weir_stream, queue)), {0, 0}};
static const weir_type stream_type = {"weir_stream", sizeof(weir_stream), _Alignof(weir_stream), 0,
                                      stream_fields, stream_finalise};

/* ---- making and ending ---- */

int wr_stream_may_open(void)
{
    if (!wr_in_behaviour())
        return WEIR_EPERM;
    return wr_is_ending() ? WEIR_ESHUTDOWN : 0;
}

void wr_stream_check_caller(const weir_stream *stream, const char *function)
{
    WR_CHECK(stream != NULL, "%s: no stream", function);
    WR_CHECK(stream->owner == wr_current_actor(), "%s: the stream belongs to another actor; send that one a message",
             function);
}

int wr_stream_new(int fd, bool connecting, const weir_stream_events *events, void *arg, weir_stream **out)
{
    WR_ASSERT(fd >= 0);
    weir_stream *stream = weir_alloc(&stream_type, sizeof *stream);
    stream->closed = 1; /* for the finaliser, should the next step fail */
    stream->fd = -1;
    int code = wr_source_open(fd, stream, stream_ready, connecting ? WR_POLL_OUT : WR_POLL_IN, &stream->source);
    *out = NULL;
    if (code != 0)
        return code;
    stream->closed = 0;
    stream->fd = fd;
    stream->owner = wr_current_actor();
    stream->arg = arg;
    stream->events = *events;
    stream->connecting = connecting;
    stream->high_water = HIGH_WATER_USUAL;
    stream->hard_limit = HARD_LIMIT_USUAL;
    stream->hook.run = stream_hook;
    stream->hook.object = stream;
    *out = stream;
    return 0;
}

static void release_all(weir_stream *stream)
{
    stream->closed = 1;
    wr_turn_hook_cancel(&stream->hook);
    wr_queue_clear(&stream->queue);
    wr_source_close(stream->source);
    stream->source = NULL;
    wr_fd_close(stream->fd);
    stream->fd = -1;
}

static void stream_finalise(void *object)
{
    weir_stream *stream = object;
    if (!stream->closed)
        release_all(stream);
}

static void finish(weir_stream *stream)
{
    release_all(stream);
    if (stream->events.close != NULL)
        stream->events.close(stream, stream->arg);
}

void wr_stream_fail(weir_stream *stream, int code)
{
    WR_ASSERT(code < 0);
    if (stream->code != 0 || stream->closed)
        return;
    stream->code = code;
    stream->output_ended = 1;
    stream->blocked = 0;
    if (stream->connecting) { /* nothing can have arrived, and nobody waits for the connection any more */
        stream->connecting = 0;
        stream->input_ended = 1;
    }
    stream->readable = !stream->input_ended;
    wr_queue_clear(&stream->queue);
}

/* ---- settling ---- */

static unsigned wanted_events(const weir_stream *stream)
{
    if (stream->connecting)
        return WR_POLL_OUT;
    unsigned events = 0;
    if (!stream->paused && !stream->input_ended)
        events |= WR_POLL_IN;
    if (stream->blocked)
        events |= WR_POLL_OUT;
    return events;
}

static bool needs_turn(const weir_stream *stream)
{
    return stream->code != 0 || stream->open_due || stream->drain_due ||
           (stream->readable && !stream->paused && !stream->input_ended);
}

static void end_output(weir_stream *stream)
{
    int code = wr_socket_shutdown_write(stream->fd);
    stream->output_ended = 1;
    if (code != 0 && code != -ENOTCONN) /* not connected: the peer is gone, and reading tells how */
        wr_stream_fail(stream, code);
}

/* Nothing of the user's has to be delivered any more before the stream may close. */
static bool is_over(const weir_stream *stream)
{
    return stream->closing || (stream->output_ended && stream->input_ended && stream->code == 0 && !stream->open_due);
}

static void settle(weir_stream *stream)
{
    if (stream->closed)
        return;
    if (!stream->closing && wr_stream_wants_send(stream))
        wr_stream_send(stream);
    if (stream->ending && !stream->output_ended && !stream->closing && !stream->connecting && stream->queue.bytes == 0)
        end_output(stream);
    if (is_over(stream)) {
        finish(stream);
        return;
    }
    unsigned wanted = wanted_events(stream);
    wr_source_arm(stream->source, wanted);
    stream->out_armed = (wanted & WR_POLL_OUT) != 0;
    if (needs_turn(stream))
        wr_source_post(stream->source);
}

static void stream_hook(wr_turn_hook *hook)
{
    settle(hook->object);
}

/* ---- readiness ---- */

static void connection_known(weir_stream *stream)
{
    int code = wr_socket_error(stream->fd);
    if (code != 0) {
        wr_stream_fail(stream, code);
        return;
    }
    stream->connecting = 0;
    stream->open_due = 1;
}

static void deliver_open(weir_stream *stream)
{
    stream->open_due = 0;
    if (stream->events.open != NULL)
        stream->events.open(stream, stream->arg);
}

static void deliver_drain(weir_stream *stream)
{
    stream->drain_due = 0;
    if (stream->code == 0 && !stream->ending && stream->events.drain != NULL)
        stream->events.drain(stream, stream->arg);
}

/* A failed stream has delivered what had arrived, or will not: its reader is paused, or the peer sends without end. */
static bool may_report_failure(const weir_stream *stream)
{
    return stream->code != 0 && !stream->closing &&
           (stream->input_ended || !stream->readable || stream->paused ||
            stream->read_after_failure > READ_AFTER_FAILURE_MAX);
}

static void stream_ready(void *object, unsigned events)
{
    weir_stream *stream = object;
    if (stream->closed)
        return;
    if (stream->connecting && (events & (WR_POLL_OUT | WR_POLL_HANGUP)))
        connection_known(stream);
    else if (events & (WR_POLL_IN | WR_POLL_HANGUP))
        stream->readable = !stream->input_ended;
    if (events & WR_POLL_HANGUP)
        stream->hangup = 1;
    if (stream->open_due && !stream->closing)
        deliver_open(stream);
    if (stream->blocked && (events & (WR_POLL_OUT | WR_POLL_HANGUP))) {
        stream->blocked = 0;
        if (wr_stream_wants_send(stream))
            wr_stream_send(stream);
    }
    if (stream->drain_due && !stream->closing)
        deliver_drain(stream);
    if (!stream->connecting)
        wr_stream_read(stream);
    if (may_report_failure(stream)) {
        if (stream->events.error != NULL)
            stream->events.error(stream, stream->arg, stream->code);
        stream->closing = 1;
    }
    wr_turn_hook_add(&stream->hook);
}

/* ---- the user's calls ---- */

int weir_stream_connect(const char *address, const weir_stream_events *events, void *arg, weir_stream **out)
{
    *out = NULL;
    wr_address parsed;
    int fd;
    int code = wr_stream_may_open();
    if (code == 0)
        code = wr_address_parse(address, &parsed);
    if (code != 0)
        return code;
    code = wr_socket_connect(&parsed, &fd);
    if (code != 0 && code != -EINPROGRESS)
        return code;
    bool connecting = code != 0;
    code = wr_stream_new(fd, connecting, events, arg, out);
    if (code != 0) {
        wr_fd_close(fd);
        return code;
    }
    if (!connecting) {
        (*out)->open_due = 1;
        wr_source_post((*out)->source);
    }
    return 0;
}

void weir_stream_end(weir_stream *stream)
{
    wr_stream_check_caller(stream, "weir_stream_end");
    if (stream->ending || stream->closing || stream->closed)
        return;
    stream->ending = 1;
    wr_turn_hook_add(&stream->hook);
}

void weir_stream_close(weir_stream *stream)
{
    wr_stream_check_caller(stream, "weir_stream_close");
    if (stream->closing || stream->closed)
        return;
    stream->closing = 1;
    wr_queue_clear(&stream->queue);
    wr_turn_hook_add(&stream->hook);
}

void weir_stream_pause(weir_stream *stream)
{
    wr_stream_check_caller(stream, "weir_stream_pause");
    if (stream->paused || stream->closed)
        return;
    stream->paused = 1;
    wr_turn_hook_add(&stream->hook);
}

void weir_stream_resume(weir_stream *stream)
{
    wr_stream_check_caller(stream, "weir_stream_resume");
    if (!stream->paused || stream->closed)
        return;
    stream->paused = 0;
    wr_turn_hook_add(&stream->hook);
}

size_t weir_stream_queued(const weir_stream *stream)
{
    return stream->queue.bytes;
}

bool weir_stream_writable(const weir_stream *stream)
{
    return !stream->ending && !stream->closing && !stream->closed && stream->code == 0;
}

void weir_stream_set_limits(weir_stream *stream, size_t high_water, size_t hard_limit)
{
    wr_stream_check_caller(stream, "weir_stream_set_limits");
    if (high_water != 0)
        stream->high_water = high_water;
    if (hard_limit != 0)
        stream->hard_limit = hard_limit;
}

void weir_get_stream_stats(const weir_stream *stream, weir_stream_stats *out)
{
    *out = stream->stats;
}
