/* SPDX-License-Identifier: MIT */
/* bench/redis.c: suite redis: a server that speaks the Redis protocol, through Weir's client.
 *
 * Job        Each row sends one command over and over on one connection: -p1 one at a time, -p50 fifty in a turn and
 *            the next fifty when all are answered. Any server will do; the second one, if given, gets the same commands
 *            from the same client, so rows compare servers.
 * Invariants Every reply is checked (kind, length, count, first and last byte); an error reply fails the repeat. All
 *            keys begin with weir-bench: and are deleted afterwards.
 * Threads    One scheduler; everything happens in the first actor, with callbacks.
 * Cost       The client encodes each command anew and parses each reply: that is part of what is measured, as in any
 *            real client.
 */
#include "bench.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <weir/weir.h>

#define KEYS 64
#define LARGE 4096 /* values from here on are given to the client as buffers, which it need not copy */
#define LIST_LENGTH 100
#define BATCH 50
#define VALUE_BYTE 'w'

typedef enum setup { SETUP_NONE, SETUP_VALUES, SETUP_LIST } setup;

/* What follows the command's name: nothing, a key, a key and a value, a key and a range. */
typedef enum verb { VERB_ALONE, VERB_KEY, VERB_VALUE, VERB_RANGE } verb;
typedef enum place { AT_KEYS, AT_LIST } place;

typedef struct redis_work {
    const char *command;
    verb verb;
    place place;
    size_t value_size;   /* of the values that are set or got */
    unsigned depth;      /* commands in a turn */
    setup setup;         /* what must be there before */
    weir_resp_kind kind; /* of the reply */
    int64_t count;       /* of an array reply */
    const char *last;    /* of a range */
} redis_work;

typedef struct load {
    weir_resp_client *client;
    weir_buf *value;
    const redis_work *work;
    uint64_t warm, total, sent, done;
    unsigned awaited; /* replies to the current turn's commands, or to setup's or cleanup's */
    bool cleaning;
    uint64_t began_ns, writes_before;
    char keys[KEYS][16];
} load;
WEIR_TYPE(load, client, value);

static bench_sample measured;
static bool finished;

static const char list_key[] = "weir-bench:list", list_element[] = "xxx";

static weir_resp_arg text(const char *bytes)
{
    return (weir_resp_arg){bytes, strlen(bytes)};
}

/* Small values are spread over keys, so that a server that spreads keys can show it; huge ones share one, so as not to
 * fill the machine. */
static size_t keys_of(const redis_work *work)
{
    return work->value_size > LARGE ? 1 : KEYS;
}

static uint64_t writes_of(load *l)
{
    weir_stream_stats stats;
    weir_get_stream_stats(weir_resp_client_stream(l->client), &stats);
    return stats.write_calls;
}

/* ---- checking replies ---- */

static void check_bytes(const char *command, const weir_resp_value *value, size_t size)
{
    if (value->size != size || (size > 0 && (value->bytes[0] != VALUE_BYTE || value->bytes[size - 1] != VALUE_BYTE)))
        bench_fail("%s answered %zu bytes that are not the %zu that were set", command, value->size, size);
}

static void check_not_error(const char *command, int code, const weir_resp_value *values)
{
    if (code < 0)
        bench_fail("%s was not answered: %s", command, weir_strerror(code));
    if (values[0].kind == WEIR_RESP_ERROR)
        bench_fail("%s answered the error '%.*s'", command, (int)(values[0].size < 200 ? values[0].size : 200),
                   values[0].bytes);
}

static void check_reply(const redis_work *work, int code, const weir_resp_value *values, size_t count)
{
    check_not_error(work->command, code, values);
    if (values[0].kind != work->kind)
        bench_fail("%s answered a reply of kind %d, not %d", work->command, (int)values[0].kind, (int)work->kind);
    if (work->kind == WEIR_RESP_BULK)
        check_bytes(work->command, &values[0], work->value_size);
    if (work->kind == WEIR_RESP_ARRAY && (values[0].integer != work->count || count != (size_t)work->count + 1))
        bench_fail("%s answered %" PRId64 " elements, not %" PRId64, work->command, values[0].integer, work->count);
}

/* ---- the measured commands ---- */

static void on_reply(weir_resp_client *client, void *arg, int code, const weir_resp_value *values, size_t count);

/* One argument list for each command: its name, where it works and with what. */
static size_t command_args(load *l, weir_resp_arg args[4])
{
    const redis_work *work = l->work;
    args[0] = text(work->command);
    args[1] = work->place == AT_LIST ? text(list_key) : text(l->keys[l->sent % keys_of(work)]);
    args[2] = text(work->place == AT_LIST ? list_element : "");
    switch (work->verb) {
    case VERB_ALONE: return 1;
    case VERB_KEY: return 2;
    case VERB_VALUE:
        if (work->place == AT_KEYS)
            args[2] = (weir_resp_arg){weir_buf_data(l->value), work->value_size};
        return 3;
    case VERB_RANGE:
        args[2] = text("0");
        args[3] = text(work->last);
        return 4;
    }
    return 0;
}

static void send_batch(load *l)
{
    const redis_work *work = l->work;
    weir_resp_arg args[4];
    bool as_buffer = work->verb == VERB_VALUE && work->value_size >= LARGE;
    l->awaited = work->depth;
    for (unsigned i = 0; i < work->depth; i++) {
        size_t count = command_args(l, args);
        l->sent++;
        bench_must(work->command, as_buffer
                                      ? weir_resp_client_command_buf(l->client, count - 1, args, l->value, on_reply, l)
                                      : weir_resp_client_command(l->client, count, args, on_reply, l));
    }
}

static void clean(load *l);

static void on_reply(weir_resp_client *client, void *arg, int code, const weir_resp_value *values, size_t count)
{
    load *l = arg;
    (void)client;
    check_reply(l->work, code, values, count);
    l->done++;
    if (--l->awaited > 0)
        return;
    if (l->done == l->warm) {
        l->writes_before = writes_of(l);
        l->began_ns = weir_now_ns();
    }
    if (l->done < l->total) {
        send_batch(l);
        return;
    }
    measured.elapsed_ns = weir_now_ns() - l->began_ns;
    measured.ops = l->total - l->warm;
    measured.writes = writes_of(l) - l->writes_before;
    clean(l);
}

/* ---- before and after ---- */

static void on_prepared(weir_resp_client *client, void *arg, int code, const weir_resp_value *values, size_t count)
{
    load *l = arg;
    (void)count;
    check_not_error("preparing", code, values);
    if (--l->awaited > 0)
        return;
    if (l->cleaning)
        weir_resp_client_end(client);
    else
        send_batch(l);
}

static void prepare(load *l, size_t count, const weir_resp_arg *args)
{
    l->awaited++;
    bench_must("preparing", weir_resp_client_command(l->client, count, args, on_prepared, l));
}

static void delete_keys(load *l)
{
    weir_resp_arg args[KEYS + 2] = {text("DEL"), text(list_key)};
    for (size_t i = 0; i < KEYS; i++)
        args[i + 2] = text(l->keys[i]);
    prepare(l, KEYS + 2, args);
}

static void clean(load *l)
{
    l->cleaning = true;
    delete_keys(l);
}

static void set_up(load *l)
{
    weir_resp_arg push[LIST_LENGTH + 2] = {text("RPUSH"), text(list_key)};
    delete_keys(l);
    for (size_t i = 0; i < keys_of(l->work) && l->work->setup == SETUP_VALUES; i++) {
        weir_resp_arg set[2] = {text("SET"), text(l->keys[i])};
        l->awaited++;
        bench_must("preparing", weir_resp_client_command_buf(l->client, 2, set, l->value, on_prepared, l));
    }
    if (l->work->setup == SETUP_LIST) {
        for (size_t i = 0; i < LIST_LENGTH; i++)
            push[i + 2] = text(list_element);
        prepare(l, LIST_LENGTH + 2, push);
    }
}

static void on_closed(weir_resp_client *client, void *arg, int code)
{
    load *l = arg;
    (void)client;
    if (code < 0)
        bench_fail("the connection failed: %s", weir_strerror(code));
    if (!l->cleaning || l->awaited > 0)
        bench_fail("the server closed the connection");
    finished = true;
}

static void start(void *arg)
{
    const bench_job *job = arg;
    load *l = weir_new(load);
    l->work = job->what;
    l->warm = job->warm;
    l->total = job->warm + job->ops;
    for (unsigned i = 0; i < KEYS; i++)
        snprintf(l->keys[i], sizeof(l->keys[i]), "weir-bench:%u", i);
    bench_must("weir_buf_new", weir_buf_new_uninitialised(l->work->value_size, &l->value));
    memset(weir_buf_data(l->value), VALUE_BYTE, l->work->value_size);
    int rc = weir_resp_client_connect(job->address, on_closed, l, &l->client);
    if (rc < 0)
        bench_fail("cannot connect to %s: %s", job->address, weir_strerror(rc));
    set_up(l);
}

static void run_redis(const bench_job *job, bench_sample *sample)
{
    bench_job copy = *job;
    bench_weir_run(1, start, &copy);
    if (!finished)
        bench_fail("the run ended before the connection was closed");
    *sample = measured;
}

#define MIB (1u << 20)
/* clang-format off */
#define ROW(id, in_turn, ...) \
    {id, "ops/s", in_turn, run_redis, NULL, &(const redis_work){__VA_ARGS__, .depth = in_turn}}
/* clang-format on */
#define PAIR(id, ...) ROW(id "-p1", 1, __VA_ARGS__), ROW(id "-p50", BATCH, __VA_ARGS__)
#define PING "PING", VERB_ALONE, .kind = WEIR_RESP_SIMPLE
#define SET(size) "SET", VERB_VALUE, AT_KEYS, size, .kind = WEIR_RESP_SIMPLE
#define GET(size) "GET", VERB_KEY, AT_KEYS, size, .setup = SETUP_VALUES, .kind = WEIR_RESP_BULK
#define INCR "INCR", VERB_KEY, .kind = WEIR_RESP_INTEGER
#define LPUSH "LPUSH", VERB_VALUE, AT_LIST, .kind = WEIR_RESP_INTEGER
#define LRANGE(n, end) \
    "LRANGE", VERB_RANGE, AT_LIST, .setup = SETUP_LIST, .kind = WEIR_RESP_ARRAY, .count = n, .last = end

static const bench_row rows[] = {
    PAIR("ping", PING),
    PAIR("set4", SET(4)),
    PAIR("get4", GET(4)),
    PAIR("set4k", SET(4096)),
    PAIR("get4k", GET(4096)),
    PAIR("incr", INCR),
    PAIR("lpush", LPUSH),
    PAIR("lrange10", LRANGE(10, "9")),
    PAIR("lrange100", LRANGE(100, "99")),
    ROW("set4m", 1, SET(4 * MIB)),
    ROW("get4m", 1, GET(4 * MIB)),
};

const bench_suite bench_redis = {
    .name = "redis",
    .about = "commands to a server over one connection, one at a time (p1) and fifty at a time (p50)",
    .rate = true,
    .server = true,
    .threads = 1u << 1,
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(rows[0]),
};
