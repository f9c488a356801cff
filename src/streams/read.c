/* SPDX-License-Identifier: MIT */
/* streams/read.c: the way in: read what has arrived and deliver it.
 *
 * Job        Bounded reading: at most READS_MAX calls or READ_BYTES_MAX bytes a turn, so that one busy peer does not
 *            hold up an actor's other work.
 * Invariants `readable` is cleared only when the system has nothing more: -EAGAIN, a count smaller than the room (a
 *            stream socket is then empty, and what arrives later is reported again), the end or an error. After a
 *            hang-up or a failure only the end, -EAGAIN or an error counts. Whoever stops earlier leaves it set, and
 *            `settle` asks for another turn.
 * Threads    The owner's scheduler.
 * Cost       A system call a read, usually one a turn. No memory: see read_block.c.
 */
#include "actors/services.h"
#include "platform/check.h"
#include "streams/read_block.h"
#include "streams/stream.h"

#define READS_MAX 16
#define READ_BYTES_MAX ((size_t)256 << 10)
#define SPACE_HINT ((size_t)64 << 10)

static bool may_read(const weir_stream *stream)
{
    return stream->readable && !stream->paused && !stream->input_ended && !stream->closing && !stream->closed;
}

static void count_call(weir_stream *stream, size_t bytes)
{
    wr_counters *counters = wr_counters_here();
    wr_counter_add(&counters->stream_reads, 1);
    wr_counter_add(&counters->stream_bytes_read, bytes);
    stream->stats.read_calls++;
    stream->stats.bytes_read += bytes;
}

/* The user's memory if there is some, else the scheduler's block. */
static char *room_for(weir_stream *stream, size_t *size)
{
    if (stream->events.space != NULL) {
        *size = SPACE_HINT;
        char *room = stream->events.space(stream, stream->arg, size);
        if (room != NULL && *size > 0)
            return room;
    }
    return wr_read_block_room(size);
}

static void deliver(weir_stream *stream, const char *bytes, size_t size)
{
    if (stream->events.data == NULL)
        return;
    stream->delivered = bytes;
    stream->delivered_size = size;
    stream->events.data(stream, stream->arg, bytes, size);
    stream->delivered = NULL;
    stream->delivered_size = 0;
}

static void input_over(weir_stream *stream)
{
    stream->input_ended = 1;
    stream->readable = 0;
    if (stream->events.end != NULL)
        stream->events.end(stream, stream->arg);
    else
        weir_stream_end(stream);
}

/* One read and its event. Returns the bytes read. */
static size_t read_once(weir_stream *stream)
{
    size_t room_size;
    char *room = room_for(stream, &room_size);
    if (!may_read(stream)) /* the user's `space` may have changed its mind */
        return 0;
    ssize_t got = room != NULL ? wr_fd_receive(stream->fd, room, room_size) : WEIR_ENOMEM;
    count_call(stream, got > 0 ? (size_t)got : 0);
    if (got > 0) {
        if ((size_t)got < room_size && !stream->hangup && stream->code == 0)
            stream->readable = 0;
        deliver(stream, room, (size_t)got);
        return (size_t)got;
    }
    if (got == 0) {
        input_over(stream);
    } else if (got == -EAGAIN) {
        stream->readable = 0;
    } else {
        stream->input_ended = 1;
        stream->readable = 0;
        wr_stream_fail(stream, (int)got);
    }
    return 0;
}

void wr_stream_read(weir_stream *stream)
{
    size_t bytes = 0;
    for (unsigned reads = 0; reads < READS_MAX && bytes < READ_BYTES_MAX && may_read(stream); reads++)
        bytes += read_once(stream);
    if (stream->code != 0)
        stream->read_after_failure += bytes;
}

int weir_stream_keep(weir_stream *stream, const char *bytes, size_t size, weir_buf **out)
{
    wr_stream_check_caller(stream, "weir_stream_keep");
    *out = NULL;
    if (stream->delivered == NULL || bytes < stream->delivered)
        return WEIR_ERANGE;
    size_t offset = (size_t)(bytes - stream->delivered);
    if (offset > stream->delivered_size || size > stream->delivered_size - offset)
        return WEIR_ERANGE;
    if (!wr_read_block_has(bytes, size))
        return WEIR_ERANGE;
    *out = wr_read_block_keep(bytes, size);
    return 0;
}
