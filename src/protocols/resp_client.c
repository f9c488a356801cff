/* SPDX-License-Identifier: MIT */
/* protocols/resp_client.c: a client connection that pipelines by itself.
 *
 * Job        Encode commands into the stream, match replies to commands in order, tell each command's owner what
 *            became of it.
 * Invariants `pending` holds, in the order of the commands, one entry for each command whose bytes were accepted and
 *            whose callback has not run; each callback runs exactly once, `closed` after all of them. After `closing`
 *            is set no input is parsed. The input kept here is always the beginning of an incomplete reply.
 * Threads    Behaviours and callbacks of the actor that connected.
 * Cost       A command: an encoding, a copy into the stream's queue, no system call of its own (the queue leaves at
 *            the end of the turn). A reply is parsed where the stream has read it; only an incomplete one is copied,
 *            and the rest of a large one is read straight behind it.
 */
#include "platform/check.h"
#include "weir/heap.h"
#include "weir/resp.h"
#include <string.h>

#define PENDING_FIRST 64
#define INPUT_FIRST ((size_t)16 << 10)
#define QUEUE_MAX ((size_t)64 << 20)
#define KEEP_BYTES ((size_t)64 << 10) /* buffers up to this size are kept while the connection is idle */

typedef struct wr_resp_pending {
    weir_resp_on_reply *reply;
    void *arg;
} wr_resp_pending;
WEIR_TYPE(wr_resp_pending, arg);

struct weir_resp_client {
    weir_stream *stream;
    weir_resp_replies *parser;
    wr_resp_pending *ring; /* capacity is a power of two */
    weir_buf *input;       /* begins with `input_size` bytes of an incomplete reply; NULL: none */
    void (*closed)(weir_resp_client *client, void *arg, int code);
    void *arg;
    weir_resp_text text; /* a command being encoded */
    size_t ring_capacity, ring_first, ring_count;
    size_t input_size;
    int code;     /* what `closed` will be told */
    bool ending;  /* no more commands; end when the last reply is there */
    bool closing; /* no more input is looked at */
};
WEIR_TYPE(weir_resp_client, stream, parser, ring, input, arg, text.bytes);

static wr_resp_pending *ring_at(const weir_resp_client *c, size_t i)
{
    return &c->ring[(c->ring_first + i) & (c->ring_capacity - 1)];
}

static void ring_push(weir_resp_client *c, weir_resp_on_reply *reply, void *arg)
{
    if (c->ring_count == c->ring_capacity) {
        size_t capacity = c->ring_capacity == 0 ? PENDING_FIRST : c->ring_capacity * 2;
        wr_resp_pending *ring = weir_new_array(wr_resp_pending, capacity);
        for (size_t i = 0; i < c->ring_count; i++)
            ring[i] = *ring_at(c, i);
        c->ring = ring;
        c->ring_first = 0;
        c->ring_capacity = capacity;
    }
    *ring_at(c, c->ring_count++) = (wr_resp_pending){.reply = reply, .arg = arg};
}

static wr_resp_pending ring_pop(weir_resp_client *c)
{
    wr_resp_pending first = *ring_at(c, 0);
    *ring_at(c, 0) = (wr_resp_pending){0};
    c->ring_first = (c->ring_first + 1) & (c->ring_capacity - 1);
    c->ring_count--;
    return first;
}

static void fail(weir_resp_client *c, int code)
{
    if (c->code == 0)
        c->code = code;
    c->closing = true;
    weir_stream_close(c->stream);
}

/* Ends the stream once nothing is outstanding. */
static void end_if_done(weir_resp_client *c)
{
    if (c->ending && !c->closing && c->ring_count == 0) {
        c->closing = true;
        weir_stream_end(c->stream);
    }
}

/* Hands out the whole replies in bytes[0, size); returns how many bytes they were. */
static size_t take_replies(weir_resp_client *c, const char *bytes, size_t size)
{
    size_t at = 0;
    while (!c->closing) {
        const weir_resp_value *values = NULL;
        size_t used = 0, count = 0;
        int rc = weir_resp_next_reply(c->parser, bytes + at, size - at, &used, &values, &count);
        if (rc == 0)
            return at;
        if (rc < 0 || c->ring_count == 0) { /* a reply that nobody asked for is as wrong as one that is none */
            fail(c, WEIR_EPROTO);
            break;
        }
        wr_resp_pending p = ring_pop(c);
        if (p.reply != NULL)
            p.reply(c, p.arg, 0, values, count);
        at += used;
        end_if_done(c);
    }
    return size;
}

/* Makes room for `room` more bytes of input, towards what the parser says it needs at least, but at most doubling. */
static int grow_input(weir_resp_client *c, size_t room)
{
    size_t capacity = c->input != NULL ? weir_buf_length(c->input) : 0;
    if (capacity - c->input_size >= room && capacity > 0)
        return 0;
    size_t wanted = capacity * 2 > INPUT_FIRST ? capacity * 2 : INPUT_FIRST;
    size_t need = weir_resp_replies_need(c->parser);
    if (need > c->input_size && need < wanted)
        wanted = need;
    if (wanted < c->input_size + room)
        wanted = c->input_size + room;
    weir_buf *grown = NULL;
    int rc = weir_buf_new_store(wanted, &grown);
    if (rc < 0)
        return rc;
    if (c->input_size > 0)
        memcpy(weir_buf_data(grown), weir_buf_data(c->input), c->input_size);
    c->input = grown;
    return 0;
}

/* Keeps bytes[at, size) for later, which may already lie in the input buffer. */
static void keep_rest(weir_resp_client *c, const char *bytes, size_t at, size_t size)
{
    size_t rest = size - at;
    if (rest == 0 || c->closing) {
        c->input_size = 0;
        if (c->input != NULL && weir_buf_length(c->input) > KEEP_BYTES && c->ring_count == 0)
            c->input = NULL;
        return;
    }
    if (c->input == NULL || bytes != weir_buf_data(c->input)) {
        c->input_size = 0;
        int rc = grow_input(c, rest);
        if (rc < 0) {
            fail(c, rc);
            return;
        }
        memcpy(weir_buf_data(c->input), bytes + at, rest);
    } else if (at > 0) {
        memmove(weir_buf_data(c->input), bytes + at, rest);
    }
    c->input_size = rest;
}

static void on_data(weir_stream *stream, void *arg, const char *bytes, size_t size)
{
    weir_resp_client *c = arg;
    (void)stream;
    if (c->closing)
        return;
    if (c->input_size > 0) {
        char *end = (char *)weir_buf_data(c->input) + c->input_size;
        if (bytes != end) {
            int rc = grow_input(c, size);
            if (rc < 0) {
                fail(c, rc);
                return;
            }
            memcpy((char *)weir_buf_data(c->input) + c->input_size, bytes, size);
        }
        bytes = weir_buf_data(c->input);
        size += c->input_size;
    }
    keep_rest(c, bytes, take_replies(c, bytes, size), size);
}

/* Behind an incomplete reply the rest is read into its place; otherwise the stream's own block will do. */
static void *on_space(weir_stream *stream, void *arg, size_t *size)
{
    weir_resp_client *c = arg;
    (void)stream;
    if (c->input_size == 0 || c->closing || grow_input(c, 1) < 0) {
        *size = 0;
        return NULL;
    }
    *size = weir_buf_length(c->input) - c->input_size;
    return (char *)weir_buf_data(c->input) + c->input_size;
}

static void on_end(weir_stream *stream, void *arg)
{
    weir_resp_client *c = arg;
    (void)stream;
    if (!c->closing)
        fail(c, WEIR_ECONNRESET);
}

static void on_error(weir_stream *stream, void *arg, int code)
{
    weir_resp_client *c = arg;
    (void)stream;
    if (c->code == 0 && !(c->ending && c->ring_count == 0))
        c->code = code;
}

static void on_close(weir_stream *stream, void *arg)
{
    weir_resp_client *c = arg;
    (void)stream;
    c->closing = c->ending = true;
    int code = c->code != 0 ? c->code : WEIR_ECONNRESET;
    while (c->ring_count > 0) {
        wr_resp_pending p = ring_pop(c);
        if (p.reply != NULL)
            p.reply(c, p.arg, code, NULL, 0);
    }
    if (c->closed != NULL)
        c->closed(c, c->arg, c->code);
}

static const weir_stream_events events = {
    .data = on_data, .space = on_space, .end = on_end, .error = on_error, .close = on_close};

int weir_resp_client_connect(const char *address, void (*closed)(weir_resp_client *client, void *arg, int code),
                             void *arg, weir_resp_client **out)
{
    WR_CHECK(out != NULL, "weir_resp_client_connect needs a place for the client");
    *out = NULL;
    weir_resp_client *c = weir_new(weir_resp_client);
    c->parser = weir_resp_replies_new(NULL);
    c->closed = closed;
    c->arg = arg;
    int rc = weir_stream_connect(address, &events, c, &c->stream);
    if (rc < 0)
        return rc;
    *out = c;
    return 0;
}

/* The stream's limit is asked before a command, never in the middle of one: an argument may be larger than it. */
static int send_last(weir_resp_client *c, weir_buf *last)
{
    weir_stream_set_limits(c->stream, 0, SIZE_MAX);
    int rc = weir_stream_write_buf(c->stream, last);
    if (rc >= 0)
        rc = weir_stream_write(c->stream, "\r\n", 2);
    weir_stream_set_limits(c->stream, 0, QUEUE_MAX);
    return rc;
}

/* Queues the encoded bytes in front of what comes, and the entry that waits for the reply. */
static int send_text(weir_resp_client *c, const void *bytes, size_t size, weir_buf *last, weir_resp_on_reply *reply,
                     void *arg)
{
    if (c->ending || c->closing)
        return WEIR_ESHUTDOWN;
    int rc = weir_stream_write(c->stream, bytes, size);
    if (rc >= 0 && last != NULL)
        rc = send_last(c, last);
    if (rc >= 0)
        ring_push(c, reply, arg);
    return rc;
}

static int send_command(weir_resp_client *c, size_t count, const weir_resp_arg *args, weir_buf *last,
                        weir_resp_on_reply *reply, void *arg)
{
    char header[32];
    c->text.size = 0;
    weir_resp_put_array(&c->text, count + (last != NULL));
    for (size_t i = 0; i < count; i++)
        weir_resp_put_bulk(&c->text, args[i].bytes, args[i].size);
    if (last != NULL)
        weir_resp_put(&c->text, header, weir_resp_bulk_header(header, weir_buf_length(last)));
    int rc = send_text(c, c->text.bytes, c->text.size, last, reply, arg);
    if (c->text.capacity > KEEP_BYTES)
        c->text = (weir_resp_text){0};
    return rc;
}

int weir_resp_client_command(weir_resp_client *c, size_t count, const weir_resp_arg *args, weir_resp_on_reply *reply,
                             void *arg)
{
    WR_CHECK(count > 0, "a command has a name at least");
    return send_command(c, count, args, NULL, reply, arg);
}

int weir_resp_client_encoded(weir_resp_client *c, const void *bytes, size_t size, weir_resp_on_reply *reply, void *arg)
{
    return send_text(c, bytes, size, NULL, reply, arg);
}

int weir_resp_client_command_buf(weir_resp_client *c, size_t count, const weir_resp_arg *args, weir_buf *last,
                                 weir_resp_on_reply *reply, void *arg)
{
    WR_CHECK(count > 0 && last != NULL, "a command has a name at least, and its last argument is the buffer");
    return send_command(c, count, args, last, reply, arg);
}

void weir_resp_client_end(weir_resp_client *c)
{
    c->ending = true;
    end_if_done(c);
}

void weir_resp_client_close(weir_resp_client *c)
{
    if (!c->closing)
        fail(c, WEIR_ECANCELED);
}

weir_stream *weir_resp_client_stream(weir_resp_client *c)
{
    return c->stream;
}
