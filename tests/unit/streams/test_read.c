/* SPDX-License-Identifier: MIT */
/* The way in, and both ways together: echo, pause, keep, space, ends and errors in order. */
#include "kit.h"
#include "platform/fail.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- echo of random data in random pieces ---- */

static struct {
    uint64_t sent, received, total;
} echo;

static void echo_server_data(weir_stream *stream, void *arg, const char *bytes, size_t size)
{
    weir_buf *buf;
    (void)arg;
    int code;
    if (size > 4096 && size % 2) {
        EXPECT_OK(weir_stream_keep(stream, bytes, size, &buf));
        code = weir_stream_write_buf(stream, buf);
    } else {
        code = weir_stream_write(stream, bytes, size);
    }
    EXPECT(code >= 0);
    if (code == 1)
        weir_stream_pause(stream);
}

static void echo_server_drain(weir_stream *stream, void *arg)
{
    (void)arg;
    weir_stream_resume(stream);
}

static void echo_client_write(weir_stream *stream, void *arg)
{
    int code = 0;
    (void)arg;
    while (echo.sent < echo.total && code == 0) {
        size_t size = (size_t)(test_random() % (test_random() % 4 ? 3000 : 60000)) + 1;
        size = size < echo.total - echo.sent ? size : (size_t)(echo.total - echo.sent);
        weir_buf *buf;
        EXPECT_OK(weir_buf_new_uninitialised(size, &buf));
        kit_fill(weir_buf_data(buf), echo.sent, size);
        code = weir_stream_write_buf(stream, buf);
        EXPECT(code >= 0);
        echo.sent += size;
    }
    if (echo.sent == echo.total)
        weir_stream_end(stream);
}

static void echo_client_ready(weir_stream *stream)
{
    echo_client_write(stream, NULL);
}

static void echo_client_data(weir_stream *stream, void *arg, const char *bytes, size_t size)
{
    (void)stream, (void)arg;
    kit_expect(bytes, echo.received, size);
    echo.received += size;
}

static void reset_echo(void)
{
    echo.sent = echo.received = 0;
}

static void check_echo(void)
{
    EXPECT_EQ(echo.sent, echo.total);
    EXPECT_EQ(echo.received, echo.total);
}

TEST(streams, ten_mebibytes_come_back_unchanged)
{
    kit_setup setup = {.server = {.data = echo_server_data, .drain = echo_server_drain},
                       .client = {.data = echo_client_data, .drain = echo_client_write},
                       .client_ready = echo_client_ready};
    echo.total = (uint64_t)1 << 20;
    kit_run_all(setup, reset_echo, check_echo);
    echo.total = (uint64_t)10 << 20;
    reset_echo();
    kit_run(&setup);
    check_echo();
    setup.apart = true;
    setup.threads = 2;
    setup.kind = KIT_TCP4;
    reset_echo();
    kit_run(&setup);
    check_echo();
}

/* ---- an order of events, written down as letters ---- */

static struct {
    char letters[64];
    uint64_t bytes;
    int code;
} seen;

static void note(char letter)
{
    size_t size = strlen(seen.letters);
    if (size > 0 && seen.letters[size - 1] == 'd' && letter == 'd')
        return; /* data may come in any number of pieces */
    EXPECT(size < sizeof seen.letters - 1);
    seen.letters[size] = letter;
}

static void see_open(weir_stream *stream, void *arg)
{
    (void)stream, (void)arg;
    note('o');
}

static void see_data(weir_stream *stream, void *arg, const char *bytes, size_t size)
{
    (void)stream, (void)arg;
    kit_expect(bytes, seen.bytes, size);
    seen.bytes += size;
    note('d');
}

static void see_end(weir_stream *stream, void *arg)
{
    (void)stream, (void)arg;
    note('e');
}

static void see_error(weir_stream *stream, void *arg, int code)
{
    (void)stream, (void)arg;
    seen.code = code;
    note('x');
}

static void see_close(weir_stream *stream, void *arg)
{
    (void)stream, (void)arg;
    note('c');
}

#define SEE_ALL \
    { \
        .open = see_open, .data = see_data, .end = see_end, .error = see_error, .close = see_close \
    }

static void reset_seen(void)
{
    memset(&seen, 0, sizeof seen);
}

static void write_bytes(weir_stream *stream, uint64_t from, size_t size)
{
    void *bytes = weir_new_bytes(size);
    kit_fill(bytes, from, size);
    EXPECT(weir_stream_write(stream, bytes, size) >= 0);
}

/* ---- half close ---- */

static must_call *half_called;

static void half_client_ready(weir_stream *stream)
{
    write_bytes(stream, 0, 10);
    weir_stream_end(stream);
}

/* The client has ended; now the server answers, and ends in a later turn. */
static void half_server_end(weir_stream *stream, void *arg)
{
    (void)arg;
    must_called(half_called);
    write_bytes(stream, 0, 100000);
    weir_stream_flush(stream);
    write_bytes(stream, 100000, 100000);
    weir_stream_end(stream);
}

static void half_client_end(weir_stream *stream, void *arg)
{
    (void)stream, (void)arg;
    note('e'); /* both have ended: closes without being asked */
}

static void check_half(void)
{
    EXPECT_EQ(seen.bytes, 200000);
    EXPECT(strcmp(seen.letters, "odec") == 0 || strcmp(seen.letters, "dec") == 0);
}

TEST(streams, client_ends_first_and_still_gets_the_answer)
{
    kit_setup setup = {.server = {.end = half_server_end}, .client = SEE_ALL, .client_ready = half_client_ready};
    setup.client.end = half_client_end;
    half_called = must_call_new("end of the server's stream", kit_has(KIT_TCP6) ? 20 : 16);
    kit_run_all(setup, reset_seen, check_half);
}

static uint64_t server_got;

static void count_server(weir_stream *stream, void *arg, const char *bytes, size_t size)
{
    (void)stream, (void)arg;
    kit_expect(bytes, server_got, size);
    server_got += size;
}

static void server_ends_at_once(weir_stream *stream)
{
    write_bytes(stream, 0, 10);
    weir_stream_end(stream);
}

static void client_answers_the_end(weir_stream *stream, void *arg)
{
    (void)arg;
    note('e');
    write_bytes(stream, 0, 300000);
    weir_stream_end(stream);
}

static void reset_both(void)
{
    reset_seen();
    server_got = 0;
}

static void check_server_got(void)
{
    EXPECT_EQ(server_got, 300000);
    EXPECT_EQ(seen.bytes, 10);
}

TEST(streams, server_ends_first_and_still_gets_the_answer)
{
    kit_setup setup = {.server = {.data = count_server}, .server_ready = server_ends_at_once, .client = SEE_ALL};
    setup.client.end = client_answers_the_end;
    kit_run_all(setup, reset_both, check_server_got);
}

/* ---- pause ---- */

static bool paused_now;

typedef struct waker {
    weir_stream *stream;
} waker;
WEIR_ACTOR(waker, stream);
typedef struct wake {
    uint64_t left;
} wake;
typedef struct waker_open {
    weir_descriptor *descriptor;
} waker_open;

/* Resumes 150 messages after each pause: more than a turn. */
WEIR_BEHAVIOUR(waker, wake)
{
    if (msg->left > 0) {
        EXPECT_OK(weir_send(weir_self(waker), waker, wake, .left = msg->left - 1));
        return;
    }
    paused_now = false;
    weir_stream_resume(self->stream);
}

static void paused_data(weir_stream *stream, void *arg, const char *bytes, size_t size)
{
    EXPECT(!paused_now);
    see_data(stream, arg, bytes, size);
    weir_stream_pause(stream);
    paused_now = true;
    EXPECT_OK(weir_send(weir_self(waker), waker, wake, .left = 150));
}

WEIR_BEHAVIOUR(waker, waker_open, descriptor)
{
    static const weir_stream_events events = {.data = paused_data, .end = see_end, .close = see_close};
    EXPECT_OK(weir_stream_open(msg->descriptor, &events, NULL, &self->stream));
}

static void write_a_million(weir_stream *stream)
{
    write_bytes(stream, 0, 1000000);
    weir_stream_end(stream);
}

static void start_paused(void *arg)
{
    static const weir_stream_events events = {.data = NULL};
    weir_descriptor *pair[2];
    weir_stream *writer;
    (void)arg;
    EXPECT_OK(weir_descriptor_pair(pair));
    EXPECT_OK(weir_stream_open(pair[0], &events, NULL, &writer));
    write_a_million(writer);
    EXPECT_OK(weir_send(weir_spawn(waker), waker, waker_open, .descriptor = pair[1]));
}

TEST(streams, no_data_between_pause_and_resume)
{
    for (unsigned i = 0; i < 4; i++) {
        weir_options options = {.threads = 1 + i / 2, .poll_backend = i % 2 ? "poll" : "epoll"};
        reset_seen();
        paused_now = false;
        EXPECT_OK(weir_run(&options, start_paused, NULL));
        EXPECT_EQ(seen.bytes, 1000000);
        EXPECT_STR(seen.letters, "de");
    }
}

static void pause_and_resume(weir_stream *stream, void *arg, const char *bytes, size_t size)
{
    see_data(stream, arg, bytes, size);
    weir_stream_pause(stream);
    weir_stream_resume(stream);
}

static void check_million(void)
{
    EXPECT_EQ(seen.bytes, 1000000);
}

TEST(streams, pause_and_resume_in_one_turn_loses_nothing)
{
    kit_setup setup = {.server_ready = write_a_million, .client = {.data = pause_and_resume, .close = see_close}};
    kit_run_all(setup, reset_seen, check_million);
}

/* ---- keep and space ---- */

typedef struct keeping {
    weir_buf *kept[64];
    size_t offset[64];
    unsigned count;
} keeping;
WEIR_TYPE(keeping, kept);

static void keep_data(weir_stream *stream, void *arg, const char *bytes, size_t size)
{
    keeping *all = arg;
    weir_buf *none = NULL;
    if (all->count < 64 && size >= 100) {
        size_t at = size / 3;
        EXPECT_OK(weir_stream_keep(stream, bytes + at, 50, &all->kept[all->count]));
        EXPECT(weir_buf_data(all->kept[all->count]) == bytes + at);
        all->offset[all->count++] = (size_t)seen.bytes + at;
        EXPECT_EQ(weir_stream_keep(stream, bytes + size - 1, 2, &none), WEIR_ERANGE);
        EXPECT_EQ(weir_stream_keep(stream, bytes - 1, 2, &none), WEIR_ERANGE);
        EXPECT_EQ(weir_stream_keep(stream, bytes, SIZE_MAX, &none), WEIR_ERANGE);
        EXPECT(none == NULL);
    }
    see_data(stream, NULL, bytes, size);
    weir_collect_soon();
    for (unsigned i = 0; i < all->count; i++) {
        const unsigned char *kept = weir_buf_data(all->kept[i]);
        for (size_t k = 0; k < 50; k++)
            EXPECT_EQ(kept[k], kit_byte(all->offset[i] + k));
    }
}

static void keep_end(weir_stream *stream, void *arg)
{
    keeping *all = arg;
    weir_buf *none;
    EXPECT(all->count > 3);
    EXPECT_EQ(weir_stream_keep(stream, weir_buf_data(all->kept[0]), 1, &none), WEIR_ERANGE);
    note('e');
    weir_stream_end(stream);
}

static void start_keep(void *arg)
{
    static const weir_stream_events reader_events = {.data = keep_data, .end = keep_end, .close = see_close};
    static const weir_stream_events writer_events = {.data = NULL};
    weir_descriptor *pair[2];
    weir_stream *writer, *reader;
    (void)arg;
    EXPECT_OK(weir_descriptor_pair(pair));
    EXPECT_OK(weir_stream_open(pair[0], &writer_events, NULL, &writer));
    EXPECT_OK(weir_stream_open(pair[1], &reader_events, weir_new(keeping), &reader));
    write_bytes(writer, 0, 2000000);
    weir_stream_end(writer);
}

TEST(streams, kept_bytes_are_not_read_over)
{
    EXPECT_OK(weir_run(NULL, start_keep, NULL));
    EXPECT_EQ(seen.bytes, 2000000);
    EXPECT_STR(seen.letters, "dec");
}

static char own_memory[5000];

static void *own_space(weir_stream *stream, void *arg, size_t *size)
{
    (void)stream, (void)arg;
    EXPECT(*size > 0);
    *size = seen.bytes % 3 == 0 ? 0 : sizeof own_memory;
    return own_memory;
}

static void own_data(weir_stream *stream, void *arg, const char *bytes, size_t size)
{
    weir_buf *buf;
    bool is_own = seen.bytes % 3 != 0;
    EXPECT_EQ(bytes == own_memory, is_own);
    EXPECT_EQ(weir_stream_keep(stream, bytes, size, &buf), is_own ? WEIR_ERANGE : 0);
    see_data(stream, arg, bytes, size);
}

TEST(streams, space_names_where_the_bytes_go)
{
    kit_setup setup = {.server_ready = write_a_million, .client = {.data = own_data, .space = own_space}};
    kit_run_all(setup, reset_seen, check_million);
}

static int raw[2]; /* a pair whose second end is no stream */

/* A count below the room says that nothing more is there. The next byte is sent by another actor: in a later turn. */
typedef struct feeder {
    uint64_t sent;
} feeder;
WEIR_ACTOR(feeder);
typedef struct feed {
    uint64_t nothing;
} feed;

WEIR_BEHAVIOUR(feeder, feed)
{
    unsigned char next = kit_byte(self->sent++);
    EXPECT_EQ(send(raw[1], &next, 1, 0), 1);
}

typedef struct feeding {
    feeder_ref feeder;
} feeding;
WEIR_TYPE(feeding, feeder);

static void ask_once_each(weir_stream *stream, void *arg, const char *bytes, size_t size)
{
    const feeding *f = arg;
    weir_stream_stats stats;
    see_data(stream, arg, bytes, size);
    weir_get_stream_stats(stream, &stats);
    EXPECT_EQ(stats.read_calls, seen.bytes);
    if (seen.bytes < 20)
        EXPECT_OK(weir_send(f->feeder, feeder, feed));
    else
        weir_stream_close(stream);
}

static void start_ask_once(void *arg)
{
    static const weir_stream_events events = {.data = ask_once_each, .close = see_close};
    weir_descriptor *descriptor;
    weir_stream *stream;
    feeding *f = weir_new(feeding);
    (void)arg;
    f->feeder = weir_spawn(feeder);
    EXPECT_OK(weir_descriptor_from_fd(raw[0], &descriptor));
    EXPECT_OK(weir_stream_open(descriptor, &events, f, &stream));
    EXPECT_OK(weir_send(f->feeder, feeder, feed));
}

TEST(streams, a_read_that_empties_the_socket_is_not_repeated)
{
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, raw), 0);
    EXPECT_OK(weir_run(&(weir_options){.threads = 1}, start_ask_once, NULL));
    EXPECT_STR(seen.letters, "dc");
    close(raw[1]);
}

/* ---- errors ---- */

/* More reads than one turn makes. */
static void *little_space(weir_stream *stream, void *arg, size_t *size)
{
    static char room[300];
    (void)stream, (void)arg;
    *size = sizeof room;
    return room;
}

/* The peer has written 10 000 bytes and gone before the stream looks: a write fails, but what had arrived is first. */
static void start_dead_peer(void *arg)
{
    weir_stream_events events = SEE_ALL; /* copied by the constructor */
    weir_descriptor *descriptor;
    weir_stream *stream;
    unsigned char text[10000];
    events.space = little_space;
    kit_fill(text, 0, sizeof text);
    EXPECT_EQ(send(raw[1], text, sizeof text, 0), (ssize_t)sizeof text);
    close(raw[1]);
    EXPECT_OK(weir_descriptor_from_fd(raw[0], &descriptor));
    EXPECT_OK(weir_stream_open(descriptor, &events, NULL, &stream));
    EXPECT_OK(weir_stream_write(stream, "nobody reads this", 17));
    weir_stream_flush(stream);
    EXPECT_STR(seen.letters, ""); /* nothing is called from inside the user's calls */
    EXPECT_EQ(weir_stream_write(stream, "x", 1), WEIR_EPIPE);
    if (arg != NULL)
        weir_stream_pause(stream);
}

TEST(streams, data_comes_before_the_error)
{
    for (unsigned i = 0; i < 2; i++) {
        weir_options options = {.threads = 1, .poll_backend = i ? "poll" : "epoll"};
        reset_seen();
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, raw), 0);
        EXPECT_OK(weir_run(&options, start_dead_peer, NULL));
        EXPECT_STR(seen.letters, "dexc");
        EXPECT_EQ(seen.bytes, 10000);
        EXPECT_EQ(seen.code, WEIR_EPIPE);
    }
}

TEST(streams, a_paused_stream_hears_of_its_failure)
{
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, raw), 0);
    EXPECT_OK(weir_run(NULL, start_dead_peer, raw));
    EXPECT_STR(seen.letters, "xc");
    EXPECT_EQ(seen.code, WEIR_EPIPE);
}

/* The server leaves with unread input: the system resets the connection. */
static void close_unread(weir_stream *stream, void *arg, const char *bytes, size_t size)
{
    (void)arg, (void)bytes, (void)size;
    weir_stream_close(stream);
}

static void write_much(weir_stream *stream)
{
    write_bytes(stream, 0, 500000);
}

static void check_reset(void)
{
    EXPECT(seen.code == WEIR_ECONNRESET || seen.code == WEIR_EPIPE);
    size_t size = strlen(seen.letters);
    EXPECT(size >= 2);
    EXPECT_STR(seen.letters + size - 2, "xc");
}

TEST(streams, a_reset_is_an_error_and_then_a_close)
{
    kit_setup setup = {.server = {.data = close_unread}, .client = SEE_ALL, .client_ready = write_much};
    kit_run_all(setup, reset_seen, check_reset);
}

static void close_in_data(weir_stream *stream, void *arg, const char *bytes, size_t size)
{
    see_data(stream, arg, bytes, size);
    EXPECT_EQ(seen.bytes, size); /* the first is the last */
    weir_stream_write(stream, "thrown away", 11);
    weir_stream_close(stream);
    weir_stream_close(stream);
    weir_stream_end(stream);
    EXPECT_EQ(weir_stream_queued(stream), 0);
    EXPECT_EQ(weir_stream_write(stream, "x", 1), WEIR_ESHUTDOWN);
    EXPECT_MEM(bytes, bytes, size);
}

static void check_closed(void)
{
    EXPECT(strcmp(seen.letters, "odc") == 0 || strcmp(seen.letters, "dc") == 0);
}

TEST(streams, close_inside_data_is_the_last_event_but_close)
{
    kit_setup setup = {.server_ready = write_a_million, .client = SEE_ALL};
    setup.client.data = close_in_data;
    kit_run_all(setup, reset_seen, check_closed);
}

static void close_at_once(weir_stream *stream)
{
    weir_stream_close(stream);
}

static void check_only_close(void)
{
    EXPECT_STR(seen.letters, "c");
}

TEST(streams, close_right_after_the_constructor_brings_close_alone)
{
    kit_setup setup = {.server = {.data = see_data}, .client = SEE_ALL, .client_ready = close_at_once};
    kit_run_all(setup, reset_seen, check_only_close);
}

static int third_read_fails(void *arg, wr_fail_kind kind, uint64_t nth)
{
    (void)arg;
    return kind == WR_FAIL_RECEIVE && nth == 2 ? -EIO : 0;
}

static void start_failing_read(void *arg)
{
    static const weir_stream_events reader_events = SEE_ALL, writer_events = {.data = NULL};
    weir_descriptor *pair[2];
    weir_stream *writer, *reader;
    (void)arg;
    EXPECT_OK(weir_descriptor_pair(pair));
    EXPECT_OK(weir_stream_open(pair[1], &reader_events, NULL, &reader));
    EXPECT_OK(weir_stream_open(pair[0], &writer_events, NULL, &writer));
    write_bytes(writer, 0, 1000000);
}

TEST(streams, a_failed_read_is_an_error_and_a_close)
{
    wr_fail_install(third_read_fails, NULL);
    EXPECT_OK(weir_run(&(weir_options){.threads = 1}, start_failing_read, NULL));
    wr_fail_install(NULL, NULL);
    EXPECT_STR(seen.letters, "dxc");
    EXPECT_EQ(seen.code, -EIO);
}
