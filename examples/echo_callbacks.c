/* SPDX-License-Identifier: MIT */
/* An echo server and its client with plain callbacks: no actor but the first, one thread, as in an event loop.
 *
 *     $ echo_callbacks
 *     listening on tcp:127.0.0.1:43211
 *     echoed: hello, weir
 */
#include <stdio.h>
#include <string.h>
#include <weir/weir.h>

static void server_data(weir_stream *stream, void *arg, const char *bytes, size_t size)
{
    (void)arg;
    weir_stream_write(stream, bytes,
                      size); /* leaves at the end of the turn, together with whatever else is written in it */
}

/* No `end` callback: when the client ends its side, this side ends as well, and the stream closes. */
static const weir_stream_events server_events = {.data = server_data};

static void connection(weir_listener *listener, void *arg, weir_descriptor *descriptor)
{
    weir_stream *stream;
    (void)arg;
    weir_stream_open(descriptor, &server_events, NULL, &stream);
    weir_listener_close(listener); /* one client is enough here; otherwise the program would go on */
}

typedef struct answer {
    char text[64];
    size_t size;
} answer;
WEIR_TYPE(answer);

static void client_open(weir_stream *stream, void *arg)
{
    (void)arg;
    weir_stream_write(stream, "hello, ", 7);
    weir_stream_write(stream, "weir", 4);
    weir_stream_end(stream);
}

static void client_data(weir_stream *stream, void *arg, const char *bytes, size_t size)
{
    answer *all = arg;
    (void)stream;
    if (size > sizeof all->text - all->size)
        size = sizeof all->text - all->size;
    memcpy(all->text + all->size, bytes, size);
    all->size += size;
}

static void client_close(weir_stream *stream, void *arg)
{
    answer *all = arg;
    (void)stream;
    printf("echoed: %.*s\n", (int)all->size, all->text);
    if (all->size != 11 || memcmp(all->text, "hello, weir", 11) != 0)
        weir_set_exit_code(1);
}

static const weir_stream_events client_events = {.open = client_open, .data = client_data, .close = client_close};

static void start(void *arg)
{
    weir_listener *listener;
    weir_stream *client;
    char address[256];
    (void)arg;
    int code = weir_listen("tcp:127.0.0.1:0", NULL, connection, NULL, &listener);
    if (code == 0) {
        weir_listener_address(listener, address, sizeof address);
        printf("listening on %s\n", address);
        code = weir_stream_connect(address, &client_events, weir_new(answer),
                                   &client); /* the stream keeps the answer alive */
    }
    if (code < 0) {
        fprintf(stderr, "echo_callbacks: %s\n", weir_strerror(code));
        weir_set_exit_code(1);
        weir_stop();
    }
}

int main(void)
{
    return weir_run(NULL, start, NULL);
}
