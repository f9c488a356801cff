/* SPDX-License-Identifier: MIT */
/* kv/session.c: see session.h. The connection: input, flow control, the end.
 *
 * Cost       Commands are parsed where the stream has read them. Only an incomplete rest is copied, into a buffer
 *            that grows towards what the parser says is needed; what follows is read straight behind it.
 */
#include "session.h"
#include "app.h"
#include "session_commands.h"
#include <stdio.h>
#include <string.h>

WEIR_ACTOR_DEFINE(session, stream, input, slots, name, shards, parser.spans, parser.args, parser.text, out.bytes,
                  pack.bytes);

#define WINDOW_FIRST 64
#define WINDOW_MIN 4
#define WINDOW_MAX 1024
#define WINDOW_BYTES ((size_t)16 << 20) /* answers made for one client are expected to be this much at most */
#define ARGUMENTS_MAX ((size_t)64 << 20)
#define INPUT_FIRST ((size_t)4 << 10)
#define DISCARD_MAX ((size_t)1 << 20) /* input after the end of a conversation; then the connection is closed */

/* ---- commands ---- */

static void process(session *self, const weir_resp_arg *args, size_t count)
{
    const command *c = command_find(&args[0]);
    if (c == NULL) {
        session_unknown_command(self, args, count);
    } else if ((c->arity > 0 && count != (size_t)c->arity) || (c->arity < 0 && count < (size_t)-c->arity) ||
               (c->routing == ROUTE_EACH_KEY && (count - 1) % (size_t)c->key_step != 0)) {
        session_wrong_arity(self, c->name);
    } else if (c->routing == ROUTE_KEY) {
        session_send(self, c, args, count);
    } else if (c->routing == ROUTE_EACH_KEY) {
        session_send_each(self, c, args, count);
    } else {
        c->at_session(self, args, count);
    }
}

static bool is_full(const session *self)
{
    return self->slot_count >= self->window || self->arguments >= ARGUMENTS_MAX;
}

static bool has_room(const session *self)
{
    return self->slot_count <= self->window / 2 && self->arguments <= ARGUMENTS_MAX / 2;
}

/* Hands on the whole commands in bytes[0, size), as many as the window allows; returns how many bytes they were. */
static size_t take_commands(session *self, const char *bytes, size_t size)
{
    size_t at = 0;
    uint64_t commands = 0;
    while (!self->deaf && !is_full(self)) {
        size_t used = 0;
        int rc = weir_resp_next_command(&self->parser, bytes + at, size - at, &used);
        if (rc == WEIR_RESP_MORE)
            break;
        if (rc < 0) {
            char message[96];
            snprintf(message, sizeof(message), "ERR %s", self->parser.error);
            self->deaf = true;
            session_reply_error(self, message);
            session_reply_kind(self, PAYLOAD_END);
            break;
        }
        if (self->parser.count > 0) {
            process(self, self->parser.args, self->parser.count);
            commands++;
        }
        at += used;
    }
    if (commands > 0)
        atomic_fetch_add_explicit(&app.commands, commands, memory_order_relaxed);
    return self->deaf ? size : at;
}

/* ---- input ---- */

static void drop_connection(session *self)
{
    self->deaf = self->ended = true;
    weir_stream_close(self->stream);
}

/* Room for `room` more bytes behind the input kept, in a buffer of our own. */
static bool grow_input(session *self, size_t room)
{
    size_t capacity = self->input != NULL ? weir_buf_length(self->input) : 0;
    if (self->input != NULL && !self->input_is_shared && capacity - self->input_size >= room)
        return true;
    size_t need = self->parser.need, wanted = self->input_size + room;
    size_t step =
        need > wanted ? self->input_size * 4 : self->input_size * 2; /* by what has arrived, not by what is claimed */
    if (step < INPUT_FIRST)
        step = INPUT_FIRST;
    if (need > wanted && step > need)
        step = need;
    weir_buf *grown = NULL;
    if (weir_buf_new_store(wanted > step ? wanted : step, &grown) < 0)
        return false;
    if (self->input_size > 0)
        memcpy(weir_buf_data(grown), weir_buf_data(self->input), self->input_size);
    self->input = grown;
    self->input_is_shared = false;
    return true;
}

static void keep_rest(session *self, const char *rest, size_t size)
{
    weir_buf *before = self->input; /* `rest` may lie in it */
    self->input_size = 0;
    if (size == 0) {
        if (before != NULL && (self->input_is_shared || weir_buf_length(before) > INPUT_FIRST))
            self->input = NULL;
        self->input_is_shared = false;
        return;
    }
    if (!grow_input(self, size)) {
        drop_connection(self);
        return;
    }
    memmove(weir_buf_data(self->input), rest, size);
    self->input_size = size;
}

/* The end of this side, once the client has said all and has been told all. */
static void end_if_done(session *self)
{
    if (self->peer_ended && !self->paused && self->slot_count == 0)
        session_end(self);
}

static void take_input(session *self, const char *bytes, size_t size)
{
    size_t used = take_commands(self, bytes, size);
    keep_rest(self, bytes + used, size - used);
    if (self->ended)
        return;
    if (is_full(self)) {
        self->paused = true;
        weir_stream_pause(self->stream);
    } else if (!self->flush_set && self->slot_count > 0) { /* all that was read is under way */
        self->flush_set = true;
        self->flush_at = self->first_slot + self->slot_count;
    }
}

/* After an answer: goes on with the input that had to wait. */
static void go_on(session *self)
{
    if (self->ended || !self->paused || !has_room(self))
        return;
    self->paused = false;
    if (self->input_size > 0)
        take_input(self, weir_buf_data(self->input), self->input_size);
    if (!self->paused && !self->ended)
        weir_stream_resume(self->stream);
}

static void on_data(weir_stream *stream, void *arg, const char *bytes, size_t size)
{
    session *self = arg;
    (void)stream;
    if (self->deaf) {
        self->discarded += size;
        if (self->discarded > DISCARD_MAX)
            drop_connection(self);
        return;
    }
    if (self->input_size > 0 || self->paused) {
        const char *end = self->input != NULL ? (char *)weir_buf_data(self->input) + self->input_size : NULL;
        if (bytes != end) {
            if (!grow_input(self, size)) {
                drop_connection(self);
                return;
            }
            memcpy((char *)weir_buf_data(self->input) + self->input_size, bytes, size);
        }
        self->input_size += size;
        if (self->paused) /* it waits with the rest */
            return;
        bytes = weir_buf_data(self->input);
        size = self->input_size;
    }
    take_input(self, bytes, size);
}

/* Behind an incomplete command the rest is read into its place; otherwise the stream's own block will do. */
static void *on_space(weir_stream *stream, void *arg, size_t *size)
{
    session *self = arg;
    (void)stream;
    if (self->deaf || self->input_size == 0 || !grow_input(self, 1)) {
        *size = 0;
        return NULL;
    }
    *size = weir_buf_length(self->input) - self->input_size;
    return (char *)weir_buf_data(self->input) + self->input_size;
}

static void on_end(weir_stream *stream, void *arg)
{
    session *self = arg;
    (void)stream;
    self->peer_ended = true;
    end_if_done(self);
}

static void on_close(weir_stream *stream, void *arg)
{
    session *self = arg;
    (void)stream;
    self->stream = NULL;
    self->input = NULL;
    self->slots = NULL;
    self->slot_count = self->slot_capacity = 0;
    self->parser = (weir_resp_commands){0};
    self->out = self->pack = (weir_resp_text){0};
    self->deaf = self->ended = true;
    memset(self->shards, 0, sizeof(self->shards));
    atomic_fetch_sub_explicit(&app.clients, 1, memory_order_relaxed);
    weir_collect_soon(); /* shards may hold the session's handle for a while: it shall cost little until then */
}

static const weir_stream_events events = {.data = on_data, .space = on_space, .end = on_end, .close = on_close};

WEIR_BEHAVIOUR(session, begin, connection)
{
    self->window = WINDOW_FIRST;
    if (weir_stream_open(msg->connection, &events, self, &self->stream) < 0)
        atomic_fetch_sub_explicit(&app.clients, 1, memory_order_relaxed);
    else /* how much output may wait is decided before each answer, never in the middle of one (replies.c) */
        weir_stream_set_limits(self->stream, 0, SIZE_MAX);
}

/* ---- answers ---- */

/* Answers that were made for this client alone and are large let fewer commands be under way; small ones let more. */
static void adapt_window(session *self, const answer *msg)
{
    size_t size = msg->kind == ANSWER_STORE ? msg->large_size : msg->kind == ANSWER_TEXT ? weir_tail_size(msg) : 0;
    if (size >= KV_LARGE) {
        size_t window = WINDOW_BYTES / size;
        if (window < self->window)
            self->window = window > WINDOW_MIN ? (uint32_t)window : WINDOW_MIN;
    } else if (self->window < WINDOW_MAX) {
        self->window++;
    }
}

WEIR_BEHAVIOUR(session, answer, large)
{
    if (self->stream == NULL)
        return;
    payload p = {.kind = (uint8_t)msg->kind,
                 .number = msg->number,
                 .bytes = weir_tail(msg),
                 .size = (uint32_t)weir_tail_size(msg)};
    gather *g = slots_at(self, msg->slot)->gather;
    adapt_window(self, msg);
    if (msg->large != NULL && weir_buf_of_store(msg->large, msg->large_offset, msg->large_size, &p.large) < 0) {
        weir_resp_put_error(session_begin_reply(self), ERROR_NO_MEMORY);
        p = (payload){.kind = ANSWER_TEXT, .bytes = self->out.bytes, .size = (uint32_t)self->out.size};
    }
    if (g != NULL) {
        gather_add(g, msg->part, &p, msg->second);
        if (g->bytes > OUTPUT_MAX)
            drop_connection(self);
        if (g->left > 0)
            return;
        p = gather_result(self, g);
    }
    slots_settle(self, msg->slot, &p);
    go_on(self);
    end_if_done(self);
}
