/* SPDX-License-Identifier: MIT */
/* examples/resp_ping.c: both ends of the Redis protocol in one small program.
 *
 * Job        A server that knows PING and ECHO, and a client that sends it a pipeline. The server parses whatever a
 *            read brought, answers it, and stops when the client is gone. Prints the replies.
 * Threads    None of its own: everything runs in the start function's actor, with plain callbacks.
 */
#include <stdio.h>
#include <string.h>
#include <weir/weir.h>

typedef struct connection {
    weir_stream *stream;
    weir_resp_commands parser;
    weir_resp_text rest; /* the beginning of a command whose end has not come */
    weir_resp_text reply;
} connection;
WEIR_UNTYPED(connection);

static void answer(connection *c, const weir_resp_arg *args, size_t count)
{
    c->reply.size = 0;
    if (count == 1 && args[0].size == 4 && memcmp(args[0].bytes, "PING", 4) == 0)
        weir_resp_put_simple(&c->reply, "PONG");
    else if (count == 2 && args[0].size == 4 && memcmp(args[0].bytes, "ECHO", 4) == 0)
        weir_resp_put_bulk(&c->reply, args[1].bytes, args[1].size);
    else
        weir_resp_put_error(&c->reply, "ERR this server knows PING and ECHO");
    weir_stream_write(c->stream, c->reply.bytes, c->reply.size); /* leaves with all others of this turn */
}

static void on_data(weir_stream *stream, void *arg, const char *bytes, size_t size)
{
    connection *c = arg;
    size_t at = 0, used = 0;
    int rc;
    (void)stream;
    weir_resp_put(&c->rest, bytes, size);
    while ((rc = weir_resp_next_command(&c->parser, c->rest.bytes + at, c->rest.size - at, &used)) ==
           WEIR_RESP_COMMAND) {
        if (c->parser.count > 0)
            answer(c, c->parser.args, c->parser.count);
        at += used;
    }
    if (rc < 0)
        weir_stream_close(c->stream);
    memmove(c->rest.bytes, c->rest.bytes + at, c->rest.size - at);
    c->rest.size -= at;
}

static void on_connection(weir_listener *listener, void *arg, weir_descriptor *descriptor)
{
    static const weir_stream_events events = {.data = on_data}; /* without `end`: ends when the client does */
    connection *c = weir_new(connection);
    (void)arg;
    if (weir_stream_open(descriptor, &events, c, &c->stream) < 0)
        weir_set_exit_code(1);
    weir_listener_close(listener); /* one client is enough: when it is gone, nothing can happen any more */
}

static void on_reply(weir_resp_client *client, void *arg, int code, const weir_resp_value *values, size_t count)
{
    const char *wanted = arg;
    (void)client;
    if (code < 0 || count != 1 || values[0].size != strlen(wanted) ||
        memcmp(values[0].bytes, wanted, values[0].size) != 0) {
        printf("wanted %s, but got something else\n", wanted);
        weir_set_exit_code(1);
        return;
    }
    printf("%.*s\n", (int)values[0].size, values[0].bytes);
}

static void command(weir_resp_client *client, const char *name, const char *value, const char *wanted)
{
    weir_resp_arg args[2] = {{name, strlen(name)}, {value, value != NULL ? strlen(value) : 0}};
    weir_resp_client_command(client, value != NULL ? 2 : 1, args, on_reply, (void *)wanted);
}

static void start(void *arg)
{
    weir_listener *listener = NULL;
    weir_resp_client *client = NULL;
    char address[64];
    (void)arg;
    if (weir_listen("tcp:127.0.0.1:0", NULL, on_connection, NULL, &listener) < 0) {
        weir_set_exit_code(1);
        return;
    }
    weir_listener_address(listener, address, sizeof(address));
    if (weir_resp_client_connect(address, NULL, NULL, &client) < 0) {
        weir_set_exit_code(1);
        weir_listener_close(listener);
        return;
    }
    command(client, "PING", NULL, "PONG"); /* three commands, one system call */
    command(client, "ECHO", "hello", "hello");
    command(client, "QUACK", NULL, "ERR this server knows PING and ECHO");
    weir_resp_client_end(client);
}

int main(void)
{
    return weir_run(NULL, start, NULL);
}
