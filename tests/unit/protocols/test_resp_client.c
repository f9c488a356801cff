/* SPDX-License-Identifier: MIT */
/* tests/unit/protocols/test_resp_client.c: the client connection against a server in the same run.
 *
 * Job        The server echoes the last argument of each command as a bulk string; some words make it misbehave.
 *            Client and server live in the first actor, with plain callbacks. Every run ends by itself: when it does
 *            not, the time limit says so.
 */
#include "harness.h"
#include "resp_cuts.h"
#include <stdio.h>
#include <string.h>

/* ---- the server ---- */

typedef struct resp_peer {
    weir_stream *stream;
    char *input;
    size_t size, capacity;
    weir_resp_commands parser;
} resp_peer;
WEIR_UNTYPED(resp_peer);

static bool is_word(const weir_resp_arg *arg, const char *word)
{
    return arg->size == strlen(word) && memcmp(arg->bytes, word, arg->size) == 0;
}

static void answer(resp_peer *p, const weir_resp_arg *last)
{
    weir_resp_text text = {0};
    if (is_word(last, "garbage"))
        weir_stream_write(p->stream, "hello\r\n", 7);
    else if (is_word(last, "twice"))
        weir_stream_write(p->stream, "+1\r\n+2\r\n", 8);
    else if (is_word(last, "hang-up"))
        weir_stream_close(p->stream);
    else if (is_word(last, "half")) {
        weir_stream_write(p->stream, "$100\r\nabc", 9);
        weir_stream_end(p->stream);
    } else if (!is_word(last, "silence")) {
        weir_resp_put_bulk(&text, last->bytes, last->size);
        weir_stream_write(p->stream, text.bytes, text.size);
    }
}

static void peer_data(weir_stream *stream, void *arg, const char *bytes, size_t size)
{
    resp_peer *p = arg;
    size_t at = 0, used = 0;
    (void)stream;
    if (p->capacity - p->size < size) {
        p->capacity = (p->size + size) * 2;
        char *grown = weir_new_bytes(p->capacity);
        if (p->size > 0)
            memcpy(grown, p->input, p->size);
        p->input = grown;
    }
    memcpy(p->input + p->size, bytes, size);
    p->size += size;
    while (weir_resp_next_command(&p->parser, p->input + at, p->size - at, &used) == WEIR_RESP_COMMAND) {
        if (p->parser.count > 0)
            answer(p, &p->parser.args[p->parser.count - 1]);
        at += used;
    }
    memmove(p->input, p->input + at, p->size - at);
    p->size -= at;
}

static const weir_stream_events peer_events = {.data = peer_data};

static void peer_accept(weir_listener *listener, void *arg, weir_descriptor *descriptor)
{
    resp_peer *p = weir_new(resp_peer);
    (void)arg;
    EXPECT_OK(weir_stream_open(descriptor, &peer_events, p, &p->stream));
    weir_listener_close(listener);
}

/* ---- the client's side ---- */

static struct {
    char address[256];
    must_call *closed;
    int closed_code;
    void (*script)(weir_resp_client *client);
} now;

static void on_closed(weir_resp_client *client, void *arg, int code)
{
    (void)client;
    EXPECT_STR(arg, "client");
    EXPECT_EQ(code, now.closed_code);
    must_called(now.closed);
}

static void start(void *arg)
{
    weir_listener *listener = NULL;
    weir_resp_client *client = NULL;
    (void)arg;
    EXPECT_OK(weir_listen(now.address, NULL, peer_accept, NULL, &listener));
    char *name = weir_new_bytes(8);
    memcpy(name, "client", 7);
    EXPECT_OK(weir_resp_client_connect(now.address, on_closed, name, &client));
    now.script(client);
}

/* Runs the script against the server; `code` is what `closed` must be told. */
static void run_client(void (*script)(weir_resp_client *client), int code)
{
    weir_options options = {.threads = 1};
    snprintf(now.address, sizeof(now.address), "unix:%s/resp.sock", test_temp_dir());
    now.closed = must_call_new("closed", 1);
    now.closed_code = code;
    now.script = script;
    EXPECT_EQ(weir_run(&options, start, NULL), 0);
}

static int command(weir_resp_client *client, const char *word, weir_resp_on_reply *reply, void *arg)
{
    weir_resp_arg args[2] = {{"SAY", 3}, {word, strlen(word)}};
    return weir_resp_client_command(client, 2, args, reply, arg);
}

/* Expects the reply to be the text it was given as argument. */
static must_call *replied;

static void on_text(weir_resp_client *client, void *arg, int code, const weir_resp_value *values, size_t count)
{
    (void)client;
    EXPECT_EQ(code, 0);
    EXPECT_EQ(count, 1);
    EXPECT_EQ(values[0].kind, WEIR_RESP_BULK);
    EXPECT_EQ(values[0].size, strlen(arg));
    EXPECT_MEM(values[0].bytes, arg, values[0].size);
    must_called(replied);
}

static must_call *failed;
static int failed_code;

static void on_failure(weir_resp_client *client, void *arg, int code, const weir_resp_value *values, size_t count)
{
    (void)client;
    (void)arg;
    EXPECT_EQ(code, failed_code);
    EXPECT(values == NULL);
    EXPECT_EQ(count, 0);
    must_called(failed);
}

static char *heap_text(unsigned number)
{
    char *text = weir_new_bytes(16);
    snprintf(text, 16, "%u", number);
    return text;
}

static void script_order(weir_resp_client *client)
{
    for (unsigned i = 0; i < 5000; i++) {
        char *text = heap_text(i);
        EXPECT(command(client, text, on_text, text) >= 0);
    }
    weir_collect_soon(); /* what waits for replies is kept alive by the client */
    weir_resp_client_end(client);
}

TEST(resp_client, replies_come_in_the_order_of_the_commands)
{
    replied = must_call_new("reply", 5000);
    run_client(script_order, 0);
}

static void on_last_of_turn(weir_resp_client *client, void *arg, int code, const weir_resp_value *values, size_t count)
{
    weir_stream_stats stats;
    on_text(client, arg, code, values, count);
    weir_get_stream_stats(weir_resp_client_stream(client), &stats);
    EXPECT_EQ(stats.write_calls, 1);
}

static void script_one_write(weir_resp_client *client)
{
    for (unsigned i = 0; i < 49; i++) {
        char *text = heap_text(i);
        EXPECT_OK(command(client, text, on_text, text));
    }
    EXPECT_OK(command(client, "last", on_last_of_turn, "last"));
    weir_resp_client_end(client);
}

TEST(resp_client, commands_of_one_turn_leave_in_one_write)
{
    replied = must_call_new("reply", 50);
    run_client(script_one_write, 0);
}

#define LARGE (4u << 20)

static void on_large(weir_resp_client *client, void *arg, int code, const weir_resp_value *values, size_t count)
{
    weir_stream_stats stats;
    EXPECT_EQ(code, 0);
    EXPECT_EQ(count, 1);
    EXPECT_EQ(values[0].size, LARGE);
    EXPECT_MEM(values[0].bytes, weir_buf_data(arg), LARGE);
    weir_get_stream_stats(weir_resp_client_stream(client), &stats);
    EXPECT(stats.referenced_bytes >= LARGE);
    EXPECT(stats.copied_bytes < 1000);
    must_called(replied);
}

static weir_buf *random_buf(void)
{
    weir_buf *buf = NULL;
    EXPECT_OK(weir_buf_new_store(LARGE, &buf));
    char *bytes = weir_buf_data(buf);
    uint64_t word = test_random();
    for (size_t i = 0; i < LARGE; i++) {
        word = word * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = (char)(word >> 56);
    }
    return buf;
}

static void script_buf(weir_resp_client *client)
{
    weir_buf *buf = random_buf();
    weir_resp_arg name = {"SAY", 3};
    EXPECT(weir_resp_client_command_buf(client, 1, &name, buf, on_large, buf) >= 0);
    weir_resp_client_end(client);
}

static void script_larger_than_the_queue(weir_resp_client *client)
{
    weir_buf *buf = NULL;
    weir_resp_arg name = {"SAY", 3};
    EXPECT_OK(weir_buf_new_store((size_t)65 << 20, &buf));
    EXPECT(weir_resp_client_command_buf(client, 1, &name, buf, on_failure, NULL) >= 0);
    EXPECT(weir_stream_queued(weir_resp_client_stream(client)) > (size_t)65 << 20);
    EXPECT_EQ(command(client, "x", on_failure, NULL), WEIR_ENOBUFS); /* the limit holds for the next command */
}

TEST(resp_client, an_argument_may_be_larger_than_the_queue)
{
    failed = must_call_new("failure", 1);
    failed_code = WEIR_ENOBUFS;
    run_client(script_larger_than_the_queue, WEIR_ENOBUFS);
}

TEST(resp_client, a_large_last_argument_is_not_copied)
{
    replied = must_call_new("reply", 1);
    run_client(script_buf, 0);
}

static void on_large_between(weir_resp_client *client, void *arg, int code, const weir_resp_value *values, size_t count)
{
    (void)client;
    EXPECT_EQ(code, 0);
    EXPECT_EQ(count, 1);
    EXPECT_EQ(values[0].size, LARGE);
    EXPECT_MEM(values[0].bytes, weir_buf_data(arg), LARGE);
    must_called(replied);
}

static void script_mixed_sizes(weir_resp_client *client)
{
    weir_resp_arg name = {"SAY", 3};
    for (unsigned i = 0; i < 3; i++) {
        weir_buf *buf = random_buf();
        char *text = heap_text(i);
        EXPECT(command(client, text, on_text, text) >= 0);
        EXPECT(weir_resp_client_command_buf(client, 1, &name, buf, on_large_between, buf) >= 0);
        EXPECT(command(client, text, on_text, text) >= 0);
    }
    weir_resp_client_end(client);
}

TEST(resp_client, large_replies_arrive_whole)
{
    replied = must_call_new("reply", 9);
    run_client(script_mixed_sizes, 0);
}

static void script_end(weir_resp_client *client)
{
    EXPECT_OK(command(client, "one", on_text, "one"));
    weir_resp_client_end(client);
    EXPECT_EQ(command(client, "two", on_text, "two"), WEIR_ESHUTDOWN);
    weir_resp_client_end(client);
}

TEST(resp_client, end_waits_for_the_replies)
{
    replied = must_call_new("reply", 1);
    run_client(script_end, 0);
}

static void on_text_then_close(weir_resp_client *client, void *arg, int code, const weir_resp_value *values,
                               size_t count)
{
    on_text(client, arg, code, values, count);
    weir_resp_client_close(client);
    weir_resp_client_close(client);
    EXPECT_EQ(command(client, "more", on_failure, NULL), WEIR_ESHUTDOWN);
}

static void script_close(weir_resp_client *client)
{
    EXPECT_OK(command(client, "one", on_text_then_close, "one"));
    EXPECT_OK(command(client, "silence", on_failure, NULL));
    EXPECT_OK(command(client, "two", on_failure, NULL));
}

TEST(resp_client, close_fails_what_is_outstanding_once)
{
    replied = must_call_new("reply", 1);
    failed = must_call_new("failure", 2);
    failed_code = WEIR_ECANCELED;
    run_client(script_close, WEIR_ECANCELED);
}

static void script_half(weir_resp_client *client)
{
    EXPECT_OK(command(client, "one", on_text, "one"));
    EXPECT_OK(command(client, "half", on_failure, NULL));
    EXPECT_OK(command(client, "two", on_failure, NULL));
}

TEST(resp_client, a_server_that_hangs_up_fails_what_is_outstanding)
{
    replied = must_call_new("reply", 1);
    failed = must_call_new("failure", 2);
    failed_code = WEIR_ECONNRESET;
    run_client(script_half, WEIR_ECONNRESET);
}

static void script_garbage(weir_resp_client *client)
{
    EXPECT_OK(command(client, "one", on_text, "one"));
    EXPECT_OK(command(client, "garbage", on_failure, NULL));
    EXPECT_OK(command(client, "two", on_failure, NULL));
}

TEST(resp_client, a_reply_that_is_none_ends_the_connection)
{
    replied = must_call_new("reply", 1);
    failed = must_call_new("failure", 2);
    failed_code = WEIR_EPROTO;
    run_client(script_garbage, WEIR_EPROTO);
}

static void script_twice(weir_resp_client *client)
{
    EXPECT_OK(command(client, "twice", NULL, NULL));
}

TEST(resp_client, a_reply_nobody_asked_for_ends_the_connection)
{
    run_client(script_twice, WEIR_EPROTO);
}

static void on_chain(weir_resp_client *client, void *arg, int code, const weir_resp_value *values, size_t count)
{
    unsigned *left = arg;
    (void)values;
    EXPECT_EQ(code, 0);
    EXPECT_EQ(count, 1);
    must_called(replied);
    if (--*left == 0)
        weir_resp_client_end(client);
    else
        EXPECT_OK(command(client, "again", on_chain, left));
}

static void script_chain(weir_resp_client *client)
{
    unsigned *left = weir_new_bytes(sizeof(unsigned));
    *left = 300;
    EXPECT_OK(command(client, "again", on_chain, left));
}

TEST(resp_client, commands_from_a_reply_callback_are_sent)
{
    replied = must_call_new("reply", 300);
    run_client(script_chain, 0);
}

/* Each reply brings two more commands, so that the ring of those waiting grows while its first is not at the start. */
static unsigned planted;

static void on_branch(weir_resp_client *client, void *arg, int code, const weir_resp_value *values, size_t count)
{
    on_text(client, arg, code, values, count);
    for (int i = 0; i < 2 && planted < 2000; i++) {
        char *text = heap_text(planted++);
        EXPECT(command(client, text, on_branch, text) >= 0);
    }
    if (planted == 2000)
        weir_resp_client_end(client);
}

static void script_branch(weir_resp_client *client)
{
    EXPECT_OK(command(client, "seed", on_branch, "seed"));
}

TEST(resp_client, commands_that_multiply_keep_their_order)
{
    planted = 0;
    replied = must_call_new("reply", 2001);
    run_client(script_branch, 0);
}

static void on_never(weir_resp_client *client, void *arg, int code)
{
    (void)client;
    (void)arg;
    EXPECT_EQ(code, 1); /* a call that failed never calls back */
}

static void body_nobody(void)
{
    weir_resp_client *client = (weir_resp_client *)&now;
    EXPECT_EQ(weir_resp_client_connect("unix:/nonexistent/resp.sock", on_never, NULL, &client), WEIR_ENOENT);
    EXPECT(client == NULL);
    EXPECT_EQ(weir_resp_client_connect("nonsense", on_never, NULL, &client), WEIR_EINVAL);
    EXPECT(client == NULL);
}

TEST(resp_client, connecting_to_nobody_fails_at_once)
{
    in_a_run(body_nobody);
}
