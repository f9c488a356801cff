/* SPDX-License-Identifier: MIT */
/* The way out: what leaves in how many system calls, limits, drain. */
#include "kit.h"
#include "platform/fail.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- two pieces under cork: the server writes in two pieces and ends, one call carries them ---- */

static struct {
    must_call *server_close, *client_open, *client_data, *client_end, *client_close;
    char text[64];
    size_t size;
    bool uncork;
} two;

static void two_server_ready(weir_stream *stream)
{
    weir_stream_cork(stream);
    EXPECT_OK(weir_stream_write(stream, "hello ", 6));
    EXPECT_OK(weir_stream_write(stream, "world", 5));
    if (two.uncork)
        weir_stream_uncork(stream);
    weir_stream_end(stream);
}

static void two_server_data(weir_stream *stream, void *arg, const char *bytes, size_t size)
{
    (void)stream, (void)arg, (void)bytes, (void)size;
    test_fail(__FILE__, __LINE__, "the client sent nothing");
}

static void two_server_close(weir_stream *stream, void *arg)
{
    weir_stream_stats stats;
    (void)arg;
    weir_get_stream_stats(stream, &stats);
    EXPECT_EQ(stats.write_calls, 1);
    EXPECT_EQ(stats.bytes_written, 11);
    must_called(two.server_close);
}

static void two_error(weir_stream *stream, void *arg, int code)
{
    (void)stream, (void)arg;
    EXPECT_OK(code);
    test_fail(__FILE__, __LINE__, "error without a code");
}

static void two_client_open(weir_stream *stream, void *arg)
{
    (void)stream, (void)arg;
    must_called(two.client_open);
}

static void two_client_data(weir_stream *stream, void *arg, const char *bytes, size_t size)
{
    (void)stream, (void)arg;
    EXPECT(size <= sizeof two.text - two.size);
    memcpy(two.text + two.size, bytes, size);
    two.size += size;
    must_called(two.client_data);
}

static void two_client_end(weir_stream *stream, void *arg)
{
    (void)arg;
    EXPECT_EQ(two.size, 11);
    EXPECT_MEM(two.text, "hello world", 11);
    must_called(two.client_end);
    weir_stream_end(stream);
}

static void two_client_close(weir_stream *stream, void *arg)
{
    weir_stream_stats stats;
    (void)arg;
    weir_get_stream_stats(stream, &stats);
    EXPECT_EQ(stats.write_calls, 0);
    EXPECT_EQ(stats.bytes_read, 11);
    must_called(two.client_close);
}

static void two_pieces(kit_kind kind)
{
    if (!kit_has(kind))
        SKIP("this machine has no IPv6");
    kit_setup setup = {.kind = kind,
                       .server = {.data = two_server_data, .error = two_error, .close = two_server_close},
                       .server_ready = two_server_ready,
                       .client = {.open = two_client_open,
                                  .data = two_client_data,
                                  .end = two_client_end,
                                  .error = two_error,
                                  .close = two_client_close}};
    for (unsigned i = 0; i < 8; i++) {
        two.server_close = must_call_new("close of the server's stream", 1);
        two.client_open = must_call_new("open of the client's stream", kind == KIT_PAIR ? 0 : 1);
        two.client_data = must_call_new("data of the client's stream", 1);
        two.client_end = must_call_new("end of the client's stream", 1);
        two.client_close = must_call_new("close of the client's stream", 1);
        two.size = 0;
        two.uncork = i & 4;
        setup.backend = i & 1 ? "poll" : "epoll";
        setup.apart = i & 2;
        setup.threads = i & 2 ? 2 : 1;
        kit_run(&setup);
        EXPECT_EQ(two.size, 11);
    }
}

TEST(streams, two_pieces_under_cork_leave_in_one_call_unix)
{
    two_pieces(KIT_UNIX);
}

TEST(streams, two_pieces_under_cork_leave_in_one_call_abstract)
{
    two_pieces(KIT_ABSTRACT);
}

TEST(streams, two_pieces_under_cork_leave_in_one_call_tcp4)
{
    two_pieces(KIT_TCP4);
}

TEST(streams, two_pieces_under_cork_leave_in_one_call_tcp6)
{
    two_pieces(KIT_TCP6);
}

TEST(streams, two_pieces_under_cork_leave_in_one_call_pair)
{
    two_pieces(KIT_PAIR);
}

/* ---- calls a turn ---- */

static struct {
    uint64_t received;
    weir_stream_stats server;
} count;

static void count_data(weir_stream *stream, void *arg, const char *bytes, size_t size)
{
    (void)stream, (void)arg;
    kit_expect(bytes, count.received, size);
    count.received += size;
}

static void count_close(weir_stream *stream, void *arg)
{
    (void)arg;
    weir_get_stream_stats(stream, &count.server);
}

static void write_range(weir_stream *stream, uint64_t from, size_t size, bool as_buf)
{
    weir_buf *buf;
    EXPECT_OK(weir_buf_new_uninitialised(size, &buf));
    kit_fill(weir_buf_data(buf), from, size);
    int code = as_buf ? weir_stream_write_buf(stream, buf) : weir_stream_write(stream, weir_buf_data(buf), size);
    EXPECT(code == 0 || code == 1);
}

static void fifty_writes(weir_stream *stream)
{
    for (unsigned i = 0; i < 50; i++)
        write_range(stream, i * 100, 100, false);
    weir_stream_end(stream);
}

static void reset_count(void)
{
    count.received = 0;
}

static void check_fifty(void)
{
    EXPECT_EQ(count.received, 5000);
    EXPECT_EQ(count.server.write_calls, 1);
    EXPECT_EQ(count.server.copied_bytes, 5000);
}

TEST(streams, writes_of_one_turn_leave_in_one_call)
{
    kit_setup setup = {.server = {.close = count_close}, .server_ready = fifty_writes, .client = {.data = count_data}};
    kit_run_all(setup, reset_count, check_fifty);
}

/* 3000 pieces are three calls of at most 1024; 100-byte buffers are copied, those of 600 are not. */
static void many_pieces(weir_stream *stream)
{
    uint64_t at = 0;
    for (unsigned i = 0; i < 1500; i++) {
        write_range(stream, at, 600, true);
        write_range(stream, at + 600, 50, i % 2);
        at += 650;
    }
    weir_stream_end(stream);
}

static void check_many(void)
{
    EXPECT_EQ(count.received, 1500 * 650);
    EXPECT_EQ(count.server.copied_bytes, 1500 * 50);
    EXPECT_EQ(count.server.referenced_bytes, 1500 * 600);
}

TEST(streams, large_buffers_are_referenced_small_ones_copied)
{
    kit_setup setup = {.server = {.close = count_close}, .server_ready = many_pieces, .client = {.data = count_data}};
    kit_run_all(setup, reset_count, check_many);
    EXPECT(count.server.write_calls >= 3);
}

/* ---- cork ---- */

typedef struct corker {
    weir_stream *stream;
    uint64_t at;
} corker;
WEIR_ACTOR(corker, stream);
typedef struct cork_begin {
    weir_descriptor *descriptor;
} cork_begin;
typedef struct cork_step {
    unsigned left;
} cork_step;

/* Each step is a message; 250 of them are more than one turn. */
WEIR_BEHAVIOUR(corker, cork_step)
{
    weir_stream_stats stats;
    write_range(self->stream, self->at, 10, false);
    self->at += 10;
    weir_get_stream_stats(self->stream, &stats);
    EXPECT_EQ(stats.write_calls, 0);
    if (msg->left > 0) {
        EXPECT_OK(weir_send(weir_self(corker), corker, cork_step, .left = msg->left - 1));
        return;
    }
    weir_stream_uncork(self->stream);
    EXPECT_EQ(weir_stream_queued(self->stream), 2500);
}

static must_call *cork_closed;

static void cork_close(weir_stream *stream, void *arg)
{
    weir_stream_stats stats;
    (void)arg;
    weir_get_stream_stats(stream, &stats);
    EXPECT_EQ(stats.write_calls, 1);
    EXPECT_EQ(stats.bytes_written, 2500);
    must_called(cork_closed);
}

WEIR_BEHAVIOUR(corker, cork_begin, descriptor)
{
    static const weir_stream_events events = {.close = cork_close};
    EXPECT_OK(weir_stream_open(msg->descriptor, &events, NULL, &self->stream));
    weir_stream_cork(self->stream);
    weir_stream_cork(self->stream);
    weir_stream_uncork(self->stream);
    EXPECT_OK(weir_send(weir_self(corker), corker, cork_step, .left = 249));
}

static void end_when_all(weir_stream *stream, void *arg, const char *bytes, size_t size)
{
    count_data(stream, arg, bytes, size);
    if (count.received == 2500)
        weir_stream_end(stream);
}

static void start_corker(void *arg)
{
    static const weir_stream_events events = {.data = end_when_all};
    weir_descriptor *pair[2];
    weir_stream *reader;
    (void)arg;
    EXPECT_OK(weir_descriptor_pair(pair));
    EXPECT_OK(weir_send(weir_spawn(corker), corker, cork_begin, .descriptor = pair[0]));
    EXPECT_OK(weir_stream_open(pair[1], &events, NULL, &reader));
}

TEST(streams, cork_reaches_across_turns_and_counts)
{
    cork_closed = must_call_new("close", 2);
    for (unsigned threads = 1; threads <= 2; threads++) {
        weir_options options = {.threads = threads};
        count.received = 0;
        EXPECT_OK(weir_run(&options, start_corker, NULL));
        EXPECT_EQ(count.received, 2500);
    }
}

static void past_a_mebibyte(weir_stream *stream)
{
    weir_stream_stats stats;
    weir_stream_cork(stream);
    write_range(stream, 0, 1 << 20, false);
    weir_get_stream_stats(stream, &stats);
    EXPECT_EQ(stats.write_calls, 0);
    write_range(stream, 1 << 20, 1, false);
    weir_get_stream_stats(stream, &stats);
    EXPECT(stats.write_calls > 0);
    weir_stream_end(stream);
}

static void check_mebibyte(void)
{
    EXPECT_EQ(count.received, (1 << 20) + 1);
}

TEST(streams, cork_holds_one_mebibyte_at_most)
{
    kit_setup setup = {.server_ready = past_a_mebibyte, .client = {.data = count_data}};
    kit_run_all(setup, reset_count, check_mebibyte);
}

static void flush_twice(weir_stream *stream)
{
    weir_stream_stats stats;
    weir_stream_cork(stream);
    write_range(stream, 0, 10, false);
    weir_stream_flush(stream);
    weir_get_stream_stats(stream, &stats);
    EXPECT_EQ(stats.write_calls, 1);
    EXPECT_EQ(weir_stream_queued(stream), 0);
    weir_stream_flush(stream);
    write_range(stream, 10, 10, false);
    weir_stream_end(stream);
}

static void check_flush(void)
{
    EXPECT_EQ(count.received, 20);
    EXPECT_EQ(count.server.write_calls, 2);
}

TEST(streams, flush_sends_at_once_also_under_cork)
{
    kit_setup setup = {.server = {.close = count_close}, .server_ready = flush_twice, .client = {.data = count_data}};
    kit_run_all(setup, reset_count, check_flush);
}

static void uncork_too_often(weir_stream *stream)
{
    weir_stream_cork(stream);
    weir_stream_uncork(stream);
    EXPECT_DEATH(weir_stream_uncork(stream), "the stream is not corked");
    weir_stream_end(stream);
}

TEST(streams, uncork_without_cork_is_a_misuse)
{
    kit_run(&(kit_setup){.kind = KIT_PAIR, .server_ready = uncork_too_often});
}

/* ---- high water, drain, hard limit ---- */

static struct {
    must_call *drain, *end;
    bool filled;
    uint64_t written;
} water;

/* Fills the queue until it is over the mark; the client reads only once the server is blocked. */
static void fill_to_high_water(weir_stream *stream)
{
    weir_buf *buf;
    int code = 0;
    weir_stream_pause(kit_client);
    weir_stream_set_limits(stream, 100000, 0);
    while (code == 0) {
        EXPECT_OK(weir_buf_new_uninitialised(10000, &buf));
        kit_fill(weir_buf_data(buf), water.written, 10000);
        code = weir_stream_write_buf(stream, buf);
        water.written += 10000;
        weir_stream_flush(stream); /* so that only what the kernel does not take counts */
    }
    EXPECT_EQ(code, 1);
    EXPECT(weir_stream_queued(stream) > 90000 && weir_stream_queued(stream) <= 110000);
    EXPECT(weir_stream_writable(stream));
    water.filled = true;
    weir_stream_resume(kit_client);
}

static void water_drain(weir_stream *stream, void *arg)
{
    (void)arg;
    EXPECT(water.filled);
    EXPECT(weir_stream_queued(stream) <= 50000);
    must_called(water.drain);
    weir_stream_end(stream);
}

static void water_end(weir_stream *stream, void *arg)
{
    (void)arg;
    EXPECT_EQ(count.received, water.written);
    must_called(water.end);
    weir_stream_end(stream);
}

TEST(streams, high_water_is_told_and_drain_follows_once)
{
    for (unsigned i = 0; i < 2 * KIT_PAIR; i++) { /* not for pairs, where the server's side is made first */
        kit_setup setup = {.kind = (kit_kind)(i / 2),
                           .backend = i % 2 ? "poll" : "epoll",
                           .server = {.drain = water_drain},
                           .client = {.data = count_data, .end = water_end},
                           .server_ready = fill_to_high_water};
        if (!kit_has(setup.kind))
            continue;
        water.written = 0;
        water.filled = false;
        count.received = 0;
        water.drain = must_call_new("drain", 1);
        water.end = must_call_new("end", 1);
        kit_run(&setup);
    }
}

/* A write beyond 1 MiB is offered at once. Where the system takes all of it, 1 is returned nevertheless, so a drain is
 * owed although the queue never stood. */
static struct {
    must_call *drain, *close;
    int fds[2];
} taken;

static void taken_drain(weir_stream *stream, void *arg)
{
    (void)arg;
    must_called(taken.drain);
    EXPECT_EQ(weir_stream_queued(stream), 0);
    weir_stream_close(stream);
}

static void taken_close(weir_stream *stream, void *arg)
{
    (void)stream, (void)arg;
    must_called(taken.close);
}

static void write_what_is_taken_at_once(void *arg)
{
    static const weir_stream_events events = {.drain = taken_drain, .close = taken_close};
    weir_descriptor *descriptor;
    weir_stream *stream;
    weir_buf *buf;
    (void)arg;
    EXPECT_OK(weir_descriptor_from_fd(taken.fds[0], &descriptor));
    EXPECT_OK(weir_stream_open(descriptor, &events, NULL, &stream));
    EXPECT_OK(weir_buf_new_store((1 << 20) + 1, &buf));
    memset(weir_buf_data(buf), 'x', (1 << 20) + 1);
    EXPECT_EQ(weir_stream_write_buf(stream, buf), 1);
    EXPECT_EQ(weir_stream_queued(stream), 0);
    weir_stream_pause(stream); /* nothing but the drain that is due keeps the run going */
}

TEST(streams, drain_follows_a_write_that_left_at_once)
{
    int wanted = 4 << 20, got = 0;
    socklen_t size = sizeof got;
    EXPECT_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, taken.fds));
    EXPECT_OK(setsockopt(taken.fds[0], SOL_SOCKET, SO_SNDBUF, &wanted, sizeof wanted));
    EXPECT_OK(getsockopt(taken.fds[0], SOL_SOCKET, SO_SNDBUF, &got, &size));
    if (got < wanted)
        SKIP("the system allows no send buffer of 4 MiB");
    taken.drain = must_call_new("drain", 1);
    taken.close = must_call_new("close", 1);
    EXPECT_OK(weir_run(&(weir_options){.threads = 1}, write_what_is_taken_at_once, NULL));
    close(taken.fds[1]);
}

/* The system takes less than offered: that is the answer, and is not asked for a second time. */
static void fill_once(weir_stream *stream)
{
    weir_stream_stats stats;
    write_range(stream, 0, 1 << 20, true);
    weir_stream_flush(stream);
    weir_stream_flush(stream);
    weir_get_stream_stats(stream, &stats);
    EXPECT(weir_stream_queued(stream) > 0 && weir_stream_queued(stream) < 1 << 20);
    EXPECT_EQ(stats.write_calls, 1);
    weir_stream_end(stream);
}

TEST(streams, a_full_socket_is_not_asked_twice)
{
    kit_run(&(kit_setup){.kind = KIT_PAIR, .server_ready = fill_once, .client = {.data = count_data}});
    EXPECT_EQ(count.received, 1 << 20);
}

static struct {
    must_call *error, *close;
} hard;

static void write_without_end(weir_stream *stream)
{
    int code;
    weir_stream_pause(kit_client);
    weir_stream_set_limits(stream, 1000, 1 << 20);
    do {
        code = weir_stream_write(stream, memset(weir_new_bytes(50000), 1, 50000), 50000);
        EXPECT(weir_stream_queued(stream) <= (1 << 20) + 50000);
    } while (code >= 0);
    EXPECT_EQ(code, WEIR_ENOBUFS);
    EXPECT(!weir_stream_writable(stream));
    EXPECT_EQ(weir_stream_queued(stream), 0);
    EXPECT_EQ(weir_stream_write(stream, "x", 1), WEIR_EPIPE);
}

static void hard_error(weir_stream *stream, void *arg, int code)
{
    (void)stream, (void)arg;
    EXPECT_EQ(code, WEIR_ENOBUFS);
    must_called(hard.error);
}

static void hard_close(weir_stream *stream, void *arg)
{
    (void)arg;
    EXPECT_EQ(weir_stream_write(stream, "x", 1), WEIR_ESHUTDOWN);
    must_called(hard.close);
    weir_stream_close(kit_client);
}

TEST(streams, hard_limit_fails_the_stream)
{
    for (int kind = 0; kind < KIT_PAIR; kind++) {
        if (!kit_has((kit_kind)kind))
            continue;
        hard.error = must_call_new("error", 1);
        hard.close = must_call_new("close", 1);
        kit_run(&(kit_setup){.kind = (kit_kind)kind,
                             .server = {.error = hard_error, .close = hard_close},
                             .server_ready = write_without_end});
    }
}

/* A small hard limit counts what the system does not take, not what one turn writes. */
static void write_past_small_limit(weir_stream *stream)
{
    weir_stream_set_limits(stream, 0, 1000);
    for (unsigned i = 0; i < 20; i++)
        write_range(stream, i * 1500, 1500, false);
    weir_stream_end(stream);
}

static void check_small_limit(void)
{
    EXPECT_EQ(count.received, 30000);
}

TEST(streams, hard_limit_does_not_count_what_can_be_sent)
{
    kit_setup setup = {.server_ready = write_past_small_limit, .client = {.data = count_data}};
    kit_run_all(setup, reset_count, check_small_limit);
}

/* ---- after the end ---- */

static void write_after_end(weir_stream *stream)
{
    weir_buf *buf;
    EXPECT_OK(weir_buf_new(5000, &buf));
    EXPECT_OK(weir_stream_write(stream, "", 0));
    write_range(stream, 0, 3, false);
    weir_stream_end(stream);
    EXPECT_EQ(weir_stream_write(stream, "x", 1), WEIR_ESHUTDOWN);
    EXPECT_EQ(weir_stream_write_buf(stream, buf), WEIR_ESHUTDOWN);
    EXPECT(!weir_stream_writable(stream));
    EXPECT_EQ(weir_stream_queued(stream), 3);
    weir_stream_end(stream);
    weir_stream_end(stream);
}

static void check_after_end(void)
{
    EXPECT_EQ(count.received, 3);
    EXPECT_EQ(count.server.write_calls, 1);
}

TEST(streams, nothing_is_taken_after_end)
{
    kit_setup setup = {
        .server = {.close = count_close}, .server_ready = write_after_end, .client = {.data = count_data}};
    kit_run_all(setup, reset_count, check_after_end);
}

/* ---- the system refuses ---- */

/* Every other call, so that the refusal is never the answer to a report of OUT (after which the system would owe
 * another one). */
static int send_refuses(void *arg, wr_fail_kind kind, uint64_t nth)
{
    (void)arg;
    if (kind != WR_FAIL_SEND)
        return 0;
    return nth % 4 == 0 ? -EINTR : nth % 4 == 1 ? -EAGAIN : 0;
}

static void check_refused(void)
{
    EXPECT_EQ(count.received, 5000);
    EXPECT_EQ(count.server.write_calls, 2);
}

TEST(streams, refused_sends_are_tried_again_when_the_system_says_so)
{
    kit_setup setup = {.server = {.close = count_close}, .server_ready = fifty_writes, .client = {.data = count_data}};
    for (int kind = 0; kind < KIT_KINDS; kind++) {
        setup.kind = (kit_kind)kind;
        if (!kit_has(setup.kind))
            continue;
        reset_count();
        wr_fail_install(send_refuses, NULL);
        kit_run(&setup);
        wr_fail_install(NULL, NULL);
        check_refused();
    }
}
