/* SPDX-License-Identifier: MIT */
/* An echo server on a Unix socket with one actor a connection, and three clients that talk to it.
 *
 * The listener's actor gets each connection as a descriptor, a handle that a message may carry, and sends it to a fresh
 * session actor, which opens it: from then on the connection is read and written on whichever core that session runs.
 *
 *     $ echo_unix
 *     client 1: 100000 bytes came back
 *     client 2: 100000 bytes came back
 *     client 3: 100000 bytes came back
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <weir/weir.h>

#define CLIENTS 3
#define BYTES 100000

/* ---- a session ---- */

typedef struct session {
    weir_stream *stream;
} session;
WEIR_ACTOR(session, stream);

typedef struct begin {
    weir_descriptor *connection;
} begin;

static void session_data(weir_stream *stream, void *arg, const char *bytes, size_t size)
{
    (void)arg;
    if (weir_stream_write(stream, bytes, size) == 1)
        weir_stream_pause(stream); /* the client does not read: stop reading from it */
}

static void session_drain(weir_stream *stream, void *arg)
{
    (void)arg;
    weir_stream_resume(stream);
}

static const weir_stream_events session_events = {.data = session_data, .drain = session_drain};

WEIR_BEHAVIOUR(session, begin, connection)
{
    weir_stream_open(msg->connection, &session_events, NULL, &self->stream);
}

static void connection(weir_listener *listener, void *arg, weir_descriptor *descriptor)
{
    int *accepted = arg;
    weir_send(weir_spawn(session), session, begin, .connection = descriptor);
    if (++*accepted == CLIENTS)
        weir_listener_close(listener);
}

/* ---- a client ---- */

typedef struct client {
    int number;
    size_t received;
} client;
WEIR_ACTOR(client);

typedef struct talk {
    int nothing;
} talk;

static void client_data(weir_stream *stream, void *arg, const char *bytes, size_t size)
{
    client *self = arg;
    (void)stream;
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != (char)self->number)
            weir_set_exit_code(1);
    }
    self->received += size;
}

static void client_close(weir_stream *stream, void *arg)
{
    client *self = arg;
    (void)stream;
    printf("client %d: %zu bytes came back\n", self->number, self->received);
    if (self->received != BYTES)
        weir_set_exit_code(1);
}

static const weir_stream_events client_events = {.data = client_data, .close = client_close};

static char path[100];

WEIR_BEHAVIOUR(client, talk)
{
    weir_stream *stream;
    int code = weir_stream_connect(path, &client_events, self, &stream);
    if (code < 0) {
        fprintf(stderr, "echo_unix: %s\n", weir_strerror(code));
        weir_set_exit_code(1);
        return;
    }
    char *bytes = weir_new_bytes(BYTES);
    memset(bytes, self->number, BYTES);
    weir_stream_write(stream, bytes, BYTES);
    weir_stream_end(stream);
}

typedef struct count {
    int accepted;
} count;
WEIR_TYPE(count);

static void start(void *arg)
{
    weir_listener *listener;
    (void)arg;
    snprintf(path, sizeof path, "unix:/tmp/weir-echo-%d.sock", (int)getpid());
    int code = weir_listen(path, NULL, connection, &weir_new(count)->accepted, &listener);
    if (code < 0) {
        fprintf(stderr, "echo_unix: %s: %s\n", path, weir_strerror(code));
        weir_set_exit_code(1);
        return;
    }
    for (int i = 1; i <= CLIENTS; i++)
        weir_send(weir_spawn(client, .number = i), client, talk);
}

int main(void)
{
    return weir_run(NULL, start, NULL);
}
