/* SPDX-License-Identifier: MIT */
/* streams/write.c: the way out: what a write does, and when the queue is handed to the system.
 *
 * Job        Writes go to the queue; one vectored call at the end of the turn carries them. Earlier only on request
 *            (flush) or when over 1 MiB is queued.
 * Invariants Corked and not ending: nothing is sent up to FLUSH_BYTES. Blocked: nothing is offered until the system
 *            says OUT. A failure in here is only remembered (S3, S4 in stream.h).
 * Threads    The owner's scheduler.
 * Cost       A small write about 10 ns; one system call a turn and 1024 pieces.
 * Tried      Offering again after every short count, until -EAGAIN: one more call for nothing. Watching for OUT anew
 *            reports at once if there is room after all; only where OUT is watched already does the next report depend
 *            on -EAGAIN.
 */
#include "actors/services.h"
#include "platform/check.h"
#include "streams/stream.h"

#define FLUSH_BYTES ((size_t)1 << 20)

bool wr_stream_wants_send(const weir_stream *stream)
{
    if (stream->queue.bytes == 0 || stream->blocked || stream->connecting || stream->open_due || stream->code != 0)
        return false;
    return stream->corks == 0 || stream->ending || stream->queue.bytes > FLUSH_BYTES;
}

static void count_call(weir_stream *stream, size_t bytes)
{
    wr_counters *counters = wr_counters_here();
    wr_counter_add(&counters->stream_writes, 1);
    wr_counter_add(&counters->stream_bytes_written, bytes);
    stream->stats.write_calls++;
    stream->stats.bytes_written += bytes;
}

void wr_stream_send(weir_stream *stream)
{
    WR_ASSERT(!stream->connecting && !stream->closed);
    wr_slice slices[WR_SLICES_MAX];
    while (stream->queue.bytes > 0 && !stream->blocked) {
        size_t offered;
        unsigned count = wr_queue_slices(&stream->queue, slices, WR_SLICES_MAX, &offered);
        ssize_t taken = wr_fd_send(stream->fd, slices, count);
        if (taken < 0 && taken != -EAGAIN) {
            wr_stream_fail(stream, (int)taken);
            return;
        }
        size_t bytes = taken > 0 ? (size_t)taken : 0;
        count_call(stream, bytes);
        wr_queue_consume(&stream->queue, bytes);
        stream->blocked = taken < 0 || (bytes < offered && !stream->out_armed);
    }
    if (stream->above && stream->queue.bytes <= stream->high_water / 2) {
        stream->above = 0;
        stream->drain_due = 1;
    }
}

static int may_write(weir_stream *stream)
{
    if (stream->ending || stream->closing || stream->closed)
        return WEIR_ESHUTDOWN;
    if (stream->code != 0)
        return WEIR_EPIPE;
    if (stream->queue.bytes <= stream->hard_limit)
        return 0;
    if (wr_stream_wants_send(stream))
        wr_stream_send(stream);
    if (stream->code != 0)
        return WEIR_EPIPE;
    if (stream->queue.bytes <= stream->hard_limit)
        return 0;
    wr_stream_fail(stream, WEIR_ENOBUFS);
    return WEIR_ENOBUFS;
}

static int queued(weir_stream *stream)
{
    bool over = stream->queue.bytes > stream->high_water;
    if (over) /* before sending: should all of it leave now, drain is due at once */
        stream->above = 1;
    if (stream->queue.bytes > FLUSH_BYTES && wr_stream_wants_send(stream))
        wr_stream_send(stream);
    return over ? 1 : 0;
}

int weir_stream_write(weir_stream *stream, const void *bytes, size_t size)
{
    wr_stream_check_caller(stream, "weir_stream_write");
    int code = may_write(stream);
    if (!stream->closed)
        wr_turn_hook_add(&stream->hook);
    if (code != 0)
        return code;
    if (size == 0)
        return 0;
    code = wr_queue_copy(&stream->queue, bytes, size);
    if (code != 0)
        return code;
    stream->stats.copied_bytes += size;
    return queued(stream);
}

int weir_stream_write_buf(weir_stream *stream, weir_buf *buf)
{
    wr_stream_check_caller(stream, "weir_stream_write_buf");
    size_t size = weir_buf_length(buf);
    if (size <= WR_QUEUE_COPY_MAX)
        return weir_stream_write(stream, weir_buf_data(buf), size);
    int code = may_write(stream);
    if (!stream->closed)
        wr_turn_hook_add(&stream->hook);
    if (code != 0)
        return code;
    wr_queue_reference(&stream->queue, weir_buf_data(buf), size, buf);
    stream->stats.referenced_bytes += size;
    return queued(stream);
}

void weir_stream_flush(weir_stream *stream)
{
    wr_stream_check_caller(stream, "weir_stream_flush");
    if (stream->closing || stream->closed || stream->blocked || stream->connecting || stream->open_due ||
        stream->code != 0 || stream->queue.bytes == 0)
        return;
    wr_turn_hook_add(&stream->hook);
    wr_stream_send(stream);
}

void weir_stream_cork(weir_stream *stream)
{
    wr_stream_check_caller(stream, "weir_stream_cork");
    WR_CHECK(stream->corks < UINT32_MAX, "weir_stream_cork: corked 2^32 times without an uncork");
    stream->corks++;
}

void weir_stream_uncork(weir_stream *stream)
{
    wr_stream_check_caller(stream, "weir_stream_uncork");
    WR_CHECK(stream->corks > 0, "weir_stream_uncork: the stream is not corked");
    stream->corks--;
    if (stream->corks == 0 && stream->queue.bytes > 0)
        wr_turn_hook_add(&stream->hook);
}
