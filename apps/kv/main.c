/* SPDX-License-Identifier: MIT */
/* kv/main.c: weir-kv starts here: options, signals, shards, listening.
 *
 * Job        The first actor makes the shards, listens, and makes a session for each connection.
 * Invariants `ready` lines are printed only when all sockets listen. When one cannot, the run ends, and with it the
 *            others.
 */
#include "app.h"
#include "commands.h"
#include "options.h"
#include "session.h"
#include "store.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define ADDRESS_MAX 256
#define UNIX_PATH_LIMIT 107

app_state app;

typedef struct server { /* what the listeners' callbacks need */
    shard_ref shards[KV_SHARDS_MAX];
    weir_listener *listeners[2];
    uint64_t next_id;
} server;
WEIR_TYPE(server, shards, listeners);

static atomic_bool asked_to_end; /* before the run there is nothing that weir_stop could stop */

static void on_signal(int number)
{
    (void)number;
    atomic_store_explicit(&asked_to_end, true, memory_order_seq_cst);
    weir_stop();
}

static void refuse(weir_descriptor *descriptor)
{
    static const char sorry[] = "-ERR max number of clients reached\r\n";
    static const weir_stream_events none = {0};
    weir_stream *stream = NULL;
    atomic_fetch_add_explicit(&app.refused, 1, memory_order_relaxed);
    if (weir_stream_open(descriptor, &none, NULL, &stream) < 0)
        return;
    weir_stream_write(stream, sorry, sizeof(sorry) - 1);
    weir_stream_flush(stream);
    weir_stream_close(stream);
}

static void on_connection(weir_listener *listener, void *arg, weir_descriptor *descriptor)
{
    server *s = arg;
    (void)listener;
    atomic_fetch_add_explicit(&app.connections, 1, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&app.clients, 1, memory_order_relaxed) >= KV_CLIENTS_MAX) {
        atomic_fetch_sub_explicit(&app.clients, 1, memory_order_relaxed);
        refuse(descriptor);
        return;
    }
    session state = {.id = ++s->next_id};
    memcpy(state.shards, s->shards, sizeof(state.shards));
    session_ref made = weir_cast(session, weir_spawn_copy(&session_weir_actor, &state));
    if (weir_send(made, session, begin, .connection = descriptor) <
        0) /* short of memory: the connection ends with its handle */
        atomic_fetch_sub_explicit(&app.clients, 1, memory_order_relaxed);
}

static bool is_socket(const char *path)
{
    struct stat status;
    return path[0] == '@' || (stat(path, &status) == 0 && S_ISSOCK(status.st_mode));
}

static void explain(const char *address, int code)
{
    const char *where = strchr(address, ':') + 1;
    if (code == WEIR_ENAMETOOLONG)
        fprintf(stderr, "weir-kv: %s: too long: the path of a Unix socket has at most %d bytes\n", where,
                UNIX_PATH_LIMIT);
    else if (code == WEIR_EINVAL)
        fprintf(stderr, "weir-kv: %s: not an address to listen on\n", where);
    else if (code == WEIR_EADDRINUSE && address[0] == 'u' && !is_socket(where))
        fprintf(stderr, "weir-kv: %s: there is something else than a socket\n", where);
    else if (code == WEIR_EADDRINUSE)
        fprintf(stderr, "weir-kv: a server is already listening on %s\n", where);
    else
        fprintf(stderr, "weir-kv: cannot listen on %s: %s\n", where, weir_strerror(code));
}

static bool listen_on(server *s, int place, const char *address)
{
    static const weir_listen_options options = {.replace_dead = true};
    int rc = weir_listen(address, &options, on_connection, s, &s->listeners[place]);
    if (rc < 0)
        explain(address, rc);
    return rc >= 0;
}

static bool listen_on_all(server *s)
{
    char address[ADDRESS_MAX + 4096];
    if (app.unix_path != NULL) {
        snprintf(address, sizeof(address), "unix:%s", app.unix_path);
        if (!listen_on(s, 0, address))
            return false;
    }
    if (app.tcp) {
        const char *form = strchr(app.bind, ':') != NULL && app.bind[0] != '[' ? "tcp:[%s]:%u" : "tcp:%s:%u";
        snprintf(address, sizeof(address), form, app.bind, app.port);
        return listen_on(s, 1, address);
    }
    return true;
}

static void say_ready(const server *s)
{
    char address[ADDRESS_MAX];
    for (int i = 0; i < 2; i++) {
        if (s->listeners[i] == NULL)
            continue;
        weir_listener_address(s->listeners[i], address, sizeof(address));
        if (i == 1)
            sscanf(strrchr(address, ':') + 1, "%u", &app.port);
        printf("ready %s\n", address);
    }
    fflush(stdout);
}

static void start(void *arg)
{
    server *s = weir_new(server);
    (void)arg;
    if (atomic_load_explicit(&asked_to_end, memory_order_seq_cst)) {
        weir_stop();
        return;
    }
    app.start_ns = weir_now_ns();
    app.seed[0] = weir_random();
    app.seed[1] = weir_random();
    for (unsigned i = 0; i < app.shards; i++)
        s->shards[i] = weir_spawn(shard);
    if (listen_on_all(s)) {
        say_ready(s);
        return;
    }
    weir_set_exit_code(1);
    weir_stop();
}

/* As many descriptors as KV_CLIENTS_MAX clients need, or as the system grants; with fewer, connections wait. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    const rlim_t wanted = KV_CLIENTS_MAX + 64;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char **argv)
{
    int code = options_read(argc, argv);
    if (code >= 0)
        return code;
    commands_init();
    raise_descriptor_limit();
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    weir_options options = {.threads = app.threads};
    code = weir_run(&options, start, NULL);
    if (code < 0)
        fprintf(stderr, "weir-kv: cannot start: %s\n", weir_strerror(code));
    return code < 0 ? 1 : code;
}
