/* SPDX-License-Identifier: MIT */
/* streams.c: completes the fragments of docs/guide/streams.md.
 *
 * Two connected sockets lead to a session with the echo that cannot be flooded. What is written there is corked until
 * another client has been answered by the echo program, many turns later; then far more follows than the queue holds.
 */
#define main echo_main
#define start echo_start
#include "streams/echo.c"
#undef main
#undef start

#include <string.h>

static int failures;

#define MUST(condition) ((condition) ? (void)0 : failed(#condition, __LINE__))

static void failed(const char *what, int line)
{
    fprintf(stderr, "line %d: not so: %s\n", line, what);
    failures++;
}

#define data calm_data
#include "streams/calm_echo.c"
#undef data

/* ---- a session that echoes calmly ---- */

typedef struct session {
    weir_stream *stream;
} session;
WEIR_ACTOR(session, stream);

static const weir_stream_events session_events = {.data = calm_data, .drain = drain};

#include "streams/begin.c"

/* ---- a client that sends and expects the same back ---- */

#define BYTES (4u << 20) /* more than the echo's queue and the sockets hold */

static char sent[BYTES];
static unsigned clients_closed;

typedef struct client {
    size_t received, size;
    void (*finished)(void);
} client;
WEIR_TYPE(client);

static void client_data(weir_stream *stream, void *arg, const char *bytes, size_t size)
{
    client *self = arg;
    MUST(self->received + size <= self->size && memcmp(sent + self->received, bytes, size) == 0);
    self->received += size;
    if (self->received == self->size)
        weir_stream_end(stream);
}

static void client_close(weir_stream *stream, void *arg)
{
    client *self = arg;
    (void)stream;
    MUST(self->received == self->size);
    clients_closed++;
    if (self->finished != NULL)
        self->finished();
}

static const weir_stream_events client_events = {.data = client_data, .close = client_close};

static client *client_new(size_t size, void (*finished)(void))
{
    client *self = weir_new(client);
    self->size = size;
    self->finished = finished;
    return self;
}

/* ---- what is tried ---- */

static void cork_first(weir_stream *stream)
{
#include "streams/cork.c"
}

static void uncork_last(weir_stream *stream)
{
#include "streams/uncork.c"
}

static weir_stream *to_session; /* kept by being watched */

static void talk_to_session(void)
{
    weir_descriptor *pair[2];
    MUST(weir_descriptor_pair(pair) == 0);
    MUST(weir_stream_open(pair[0], &client_events, client_new(BYTES, weir_stop), &to_session) == 0);
    MUST(weir_send(weir_spawn(session), session, begin, .connection = pair[1]) == 0);
    cork_first(to_session);
    MUST(weir_stream_write(to_session, sent, 100) == 0);
}

static void go_on(void)
{
    MUST(weir_stream_queued(to_session) == 100);
    uncork_last(to_session);
    MUST(weir_stream_write(to_session, sent + 100, BYTES - 100) == 1);
}

static void start(void *arg)
{
    weir_stream *stream;
    echo_start(arg);
    talk_to_session();
    MUST(weir_stream_connect("unix:echo.sock", &client_events, client_new(5, go_on), &stream) == 0);
    MUST(weir_stream_write(stream, sent, 5) == 0);
}

int main(void)
{
    for (size_t i = 0; i < BYTES; i++)
        sent[i] = (char)(i * 31 >> 3);
    MUST(weir_run(NULL, start, NULL) == 0);
    MUST(clients_closed == 2);
    MUST(fopen("echo.sock", "r") == NULL && errno == ENOENT);
    return failures != 0;
}
