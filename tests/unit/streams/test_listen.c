/* SPDX-License-Identifier: MIT */
/* Listeners, connecting, descriptors and their ends. */
#include "kit.h"
#include "platform/fail.h"
#include "streams/address.h"
#include "streams/socket.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static void in_run(void (*body)(void *arg), void *arg)
{
    weir_options options = {.threads = 1};
    int before = kit_open_descriptors();
    EXPECT_OK(weir_run(&options, body, arg));
    EXPECT_EQ(kit_open_descriptors(), before);
}

static void nobody(weir_listener *listener, void *arg, weir_descriptor *descriptor)
{
    (void)listener, (void)arg, (void)descriptor;
    test_fail(__FILE__, __LINE__, "nobody was to come");
}

static void no_event(weir_stream *stream, void *arg)
{
    (void)stream, (void)arg;
    test_fail(__FILE__, __LINE__, "no event was to come");
}

static void no_error(weir_stream *stream, void *arg, int code)
{
    (void)stream, (void)arg, (void)code;
    test_fail(__FILE__, __LINE__, "no error was to come");
}

static const weir_stream_events no_events = {.open = no_event, .end = no_event, .error = no_error, .close = no_event};

/* ---- errors known at once ---- */

static void refused_at_once(void *arg)
{
    weir_stream *stream = (weir_stream *)&stream;
    weir_listener *listener;
    char text[300], other[300];
    (void)arg;
    memset(text, 'x', sizeof text);
    memcpy(text, "unix:/", 6);
    text[299] = '\0';
    EXPECT_EQ(weir_stream_connect(text, &no_events, NULL, &stream), WEIR_ENAMETOOLONG);
    EXPECT(stream == NULL);
    EXPECT_EQ(weir_listen(text, NULL, nobody, NULL, &listener), WEIR_ENAMETOOLONG);
    EXPECT(listener == NULL);
    EXPECT_EQ(weir_stream_connect("unix:", &no_events, NULL, &stream), WEIR_EINVAL);
    EXPECT_EQ(weir_listen("tcp:localhost:1", NULL, nobody, NULL, &listener), WEIR_EINVAL);
    EXPECT_EQ(weir_listen("unix:@x", &(weir_listen_options){.backlog = -1}, nobody, NULL, &listener), WEIR_EINVAL);
    EXPECT_EQ(weir_stream_connect("unix:/nowhere/at/all", &no_events, NULL, &stream), WEIR_ENOENT);
    EXPECT_EQ(weir_stream_connect("unix:@nobody-listens-here", &no_events, NULL, &stream), WEIR_ECONNREFUSED);
    EXPECT_EQ(weir_listen("unix:/nowhere/at/all", NULL, nobody, NULL, &listener), WEIR_ENOENT);
    snprintf(other, sizeof other, "unix:%s/s", test_temp_dir());
    EXPECT_OK(weir_listen(other, NULL, nobody, NULL, &listener));
    weir_listener_close(listener);
    weir_listener_close(listener);
}

TEST(streams, errors_known_at_once_are_returned_and_nothing_is_called)
{
    in_run(refused_at_once, NULL);
}

static must_call *error_called, *close_called;

static void refused_error(weir_stream *stream, void *arg, int code)
{
    (void)arg;
    EXPECT_EQ(code, WEIR_ECONNREFUSED);
    EXPECT_EQ(weir_stream_write(stream, "x", 1), WEIR_EPIPE);
    must_called(error_called);
}

static void refused_close(weir_stream *stream, void *arg)
{
    (void)stream, (void)arg;
    must_called(close_called);
}

/* A port that was free a moment ago. Whether the refusal comes at once or later is the system's business. */
static void refused_later(void *arg)
{
    static const weir_stream_events events = {
        .open = no_event, .end = no_event, .error = refused_error, .close = refused_close};
    weir_listener *listener;
    weir_stream *stream;
    char address[256];
    (void)arg;
    EXPECT_OK(weir_listen("tcp:127.0.0.1:0", NULL, nobody, NULL, &listener));
    weir_listener_address(listener, address, sizeof address);
    weir_listener_close(listener);
    int code = weir_stream_connect(address, &events, NULL, &stream);
    if (code == WEIR_ECONNREFUSED) {
        must_called(error_called);
        must_called(close_called);
        return;
    }
    EXPECT_OK(code);
    EXPECT_OK(weir_stream_write(stream, "waits for the connection", 24));
    EXPECT_EQ(weir_stream_queued(stream), 24);
}

TEST(streams, a_refused_connection_is_an_error_and_a_close)
{
    error_called = must_call_new("error", 1);
    close_called = must_call_new("close", 1);
    in_run(refused_later, NULL);
}

static void overfull_error(weir_stream *stream, void *arg, int code)
{
    (void)stream, (void)arg;
    EXPECT_EQ(code, WEIR_ENOBUFS);
    must_called(error_called);
}

/* Fails before the system has said whether the connection stands. */
static void overfull_connecting(void *arg)
{
    static const weir_stream_events events = {
        .open = no_event, .end = no_event, .error = overfull_error, .close = refused_close};
    weir_listener *listener;
    weir_stream *stream;
    char address[256];
    (void)arg;
    EXPECT_OK(weir_listen("tcp:127.0.0.1:0", NULL, nobody, NULL, &listener));
    weir_listener_address(listener, address, sizeof address);
    EXPECT_OK(weir_stream_connect(address, &events, NULL, &stream));
    weir_stream_set_limits(stream, 10, 100);
    EXPECT_EQ(weir_stream_write(stream, weir_new_bytes(101), 101), 1);
    EXPECT_EQ(weir_stream_write(stream, "x", 1), WEIR_ENOBUFS);
    weir_listener_close(listener);
}

TEST(streams, a_failure_while_connecting_is_told_at_once)
{
    error_called = must_call_new("error", 1);
    close_called = must_call_new("close", 1);
    in_run(overfull_connecting, NULL);
}

static void try_outside(void)
{
    weir_stream *stream;
    weir_listener *listener;
    weir_descriptor *pair[2];
    EXPECT_EQ(weir_stream_connect("unix:@x", &no_events, NULL, &stream), WEIR_EPERM);
    EXPECT_EQ(weir_listen("unix:@x", NULL, nobody, NULL, &listener), WEIR_EPERM);
    EXPECT_EQ(weir_descriptor_pair(pair), WEIR_EPERM);
    EXPECT_EQ(weir_stream_open(NULL, &no_events, NULL, &stream), WEIR_EPERM);
}

TEST(streams, nothing_opens_outside_a_behaviour)
{
    try_outside();
}

/* ---- addresses ---- */

static void tell_addresses(void *arg)
{
    static const char *const wanted[] = {"unix:@weir-told", "tcp:127.0.0.1:"};
    weir_listener *listener;
    char text[256], small[6];
    (void)arg;
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_OK(weir_listen(i == 0 ? wanted[0] : "tcp:127.0.0.1:0", NULL, nobody, NULL, &listener));
        size_t length = weir_listener_address(listener, text, sizeof text);
        EXPECT_EQ(length, strlen(text));
        EXPECT_MEM(text, wanted[i], strlen(wanted[i]));
        EXPECT_EQ(weir_listener_address(listener, small, sizeof small), length);
        EXPECT_EQ(strlen(small), 5);
        if (i == 1)
            EXPECT(atoi(text + strlen(wanted[1])) > 0);
        weir_listener_close(listener);
    }
}

TEST(streams, a_listener_tells_its_real_address)
{
    in_run(tell_addresses, NULL);
}

/* ---- socket files ---- */

static const char *socket_path(void)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/sock", test_temp_dir());
    return path;
}

static bool exists(const char *path)
{
    struct stat file;
    return lstat(path, &file) == 0;
}

/* A socket file as a killed server leaves it. */
static void leave_dead_socket(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    strcpy(name.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_EQ(bind(fd, (struct sockaddr *)&name, sizeof name), 0);
    close(fd);
    EXPECT(exists(path));
}

static void use_files(void *arg)
{
    static const weir_listen_options replace = {.replace_dead = true};
    weir_listener *first, *second;
    const char *path = socket_path();
    char address[256];
    (void)arg;
    snprintf(address, sizeof address, "unix:%s", path);

    EXPECT_OK(weir_listen(address, NULL, nobody, NULL, &first));
    EXPECT(exists(path));
    EXPECT_EQ(weir_listen(address, NULL, nobody, NULL, &second), WEIR_EADDRINUSE);
    EXPECT_EQ(weir_listen(address, &replace, nobody, NULL, &second), WEIR_EADDRINUSE);
    EXPECT(exists(path));
    weir_listener_close(first);
    EXPECT(!exists(path));

    leave_dead_socket(path);
    EXPECT_EQ(weir_listen(address, NULL, nobody, NULL, &second), WEIR_EADDRINUSE);
    EXPECT(exists(path));
    EXPECT_OK(weir_listen(address, &replace, nobody, NULL, &second));
    EXPECT(exists(path));

    /* Somebody removes the file and puts another in its place: that one is not ours. */
    EXPECT_EQ(rename(path, strcat(strcpy(address, path), ".old")), 0);
    leave_dead_socket(path);
    weir_listener_close(second);
    EXPECT(exists(path));
    EXPECT_EQ(unlink(path), 0);

    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    close(fd);
    snprintf(address, sizeof address, "unix:%s", path);
    EXPECT_EQ(weir_listen(address, &replace, nobody, NULL, &second), WEIR_EADDRINUSE);
    EXPECT(exists(path));
}

TEST(streams, only_dead_socket_files_are_replaced_and_only_own_ones_removed)
{
    in_run(use_files, NULL);
}

/* Many processes want to take over one dead socket: exactly one gets it. */
static void take_over(void *arg)
{
    weir_listener *listener;
    char address[256];
    snprintf(address, sizeof address, "unix:%s", socket_path());
    *(int *)arg = weir_listen(address, &(weir_listen_options){.replace_dead = true}, nobody, NULL, &listener);
    if (*(int *)arg == 0) {
        char stay;
        EXPECT_EQ(read(STDIN_FILENO, &stay, 1), 0); /* until all have tried */
    }
    weir_stop();
}

TEST(streams, one_of_many_takes_over_a_dead_socket)
{
    (void)socket_path();
    for (unsigned round = 0; round < 10; round++) {
        int stay[2];
        leave_dead_socket(socket_path());
        EXPECT_EQ(pipe(stay), 0);
        for (unsigned i = 0; i < 6; i++) {
            pid_t child = fork();
            EXPECT(child >= 0);
            if (child == 0) {
                dup2(stay[0], STDIN_FILENO);
                close(stay[0]);
                close(stay[1]);
                int code = 1;
                weir_run(&(weir_options){.threads = 1}, take_over, &code);
                _exit(code == 0 ? 0 : code == WEIR_EADDRINUSE ? 1 : 2);
            }
        }
        close(stay[0]);
        /* The losers end by themselves; then the winner is told to go. */
        int status;
        for (unsigned i = 0; i < 5; i++) {
            EXPECT(waitpid(-1, &status, 0) > 0);
            EXPECT_EQ(WEXITSTATUS(status), 1);
        }
        EXPECT(exists(socket_path()));
        close(stay[1]);
        EXPECT(waitpid(-1, &status, 0) > 0);
        EXPECT_EQ(WEXITSTATUS(status), 0);
        EXPECT(!exists(socket_path()));
    }
}

/* At each step of a takeover after its first, another process tries the same: it must be turned away. */
static unsigned intrusions;

static int intrude(void *arg, wr_fail_kind kind, uint64_t nth)
{
    if ((kind != WR_FAIL_PATH && kind != WR_FAIL_LISTEN && kind != WR_FAIL_CONNECT) ||
        (kind != WR_FAIL_CONNECT && nth == 0))
        return 0; /* the first two steps are the folder's identity and the lock itself */
    intrusions++;
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        wr_socket_file file;
        int fd;
        wr_fail_install(NULL, NULL);
        _exit(wr_socket_open_listener(arg, 1, true, &file, &fd) == WEIR_EADDRINUSE ? 0 : 1);
    }
    int status;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    return 0;
}

TEST(streams, a_takeover_cannot_be_overtaken)
{
    wr_address address;
    wr_socket_file file;
    char text[256];
    int fd;
    leave_dead_socket(socket_path());
    snprintf(text, sizeof text, "unix:%s", socket_path());
    EXPECT_OK(wr_address_parse(text, &address));
    wr_fail_install(intrude, &address);
    EXPECT_OK(wr_socket_open_listener(&address, 1, true, &file, &fd));
    wr_fail_install(NULL, NULL);
    EXPECT(intrusions >= 5);
    EXPECT_EQ(wr_socket_probe(&address), 1);
    EXPECT(file.exists);
    wr_socket_remove_file(&address, &file);
    EXPECT(!exists(socket_path()));
    close(fd);
}

static void listen_and_stop(void *arg)
{
    weir_listener *listener;
    char address[256];
    (void)arg;
    snprintf(address, sizeof address, "unix:%s", socket_path());
    EXPECT_OK(weir_listen(address, NULL, nobody, NULL, &listener));
    EXPECT(exists(socket_path()));
    weir_stop();
}

TEST(streams, the_end_of_the_run_removes_the_socket_file)
{
    in_run(listen_and_stop, NULL);
    EXPECT(!exists(socket_path()));
}

/* ---- many connections ---- */

#define IN_TURN 1000

static struct {
    unsigned accepted, closed, wanted;
    char address[256];
    weir_listener *listener;
} many;

static void many_data(weir_stream *stream, void *arg, const char *bytes, size_t size)
{
    (void)arg;
    EXPECT(weir_stream_write(stream, bytes, size) >= 0);
}

static void many_connection(weir_listener *listener, void *arg, weir_descriptor *descriptor)
{
    static const weir_stream_events events = {.data = many_data};
    weir_stream *stream;
    (void)arg;
    EXPECT_OK(weir_stream_open(descriptor, &events, NULL, &stream));
    if (++many.accepted == many.wanted)
        weir_listener_close(listener);
}

static void next_client(void);

static void next_close(weir_stream *stream, void *arg)
{
    weir_stream_stats stats;
    (void)arg;
    weir_get_stream_stats(stream, &stats);
    EXPECT_EQ(stats.bytes_read, 5);
    many.closed++;
    EXPECT(kit_open_descriptors() < 40);
    if (many.closed < many.wanted)
        next_client();
}

static void next_client(void)
{
    static const weir_stream_events events = {.close = next_close};
    weir_stream *stream;
    EXPECT_OK(weir_stream_connect(many.address, &events, NULL, &stream));
    EXPECT_OK(weir_stream_write(stream, "hello", 5));
    weir_stream_end(stream);
}

static void start_many(void *arg)
{
    EXPECT_OK(weir_listen(arg, NULL, many_connection, NULL, &many.listener));
    weir_listener_address(many.listener, many.address, sizeof many.address);
    next_client();
}

TEST(streams, a_thousand_connections_in_turn_leak_no_descriptor)
{
    for (int kind = 0; kind < KIT_PAIR; kind++) {
        if (!kit_has((kit_kind)kind))
            continue;
        many.accepted = many.closed = 0;
        many.wanted = kind == KIT_UNIX ? IN_TURN : IN_TURN / 5;
        in_run(start_many, (void *)(uintptr_t)kit_address((kit_kind)kind));
        EXPECT_EQ(many.closed, many.wanted);
        EXPECT_EQ(many.accepted, many.wanted);
    }
}

/* 300 connections wait at once: more than a turn accepts. The callback closes the listener at the 250th. */
static void three_hundred(void *arg)
{
    static const weir_stream_events events = {.data = NULL};
    EXPECT_OK(weir_listen("unix:@weir-crowd", NULL, many_connection, NULL, &many.listener));
    for (unsigned i = 0; i < 300; i++) {
        weir_stream *stream;
        EXPECT_OK(weir_stream_connect("unix:@weir-crowd", &events, arg, &stream));
        weir_stream_end(stream);
    }
}

TEST(streams, a_listener_closed_in_its_callback_calls_no_more)
{
    many.accepted = 0;
    many.wanted = 250;
    in_run(three_hundred, NULL);
    EXPECT_EQ(many.accepted, 250);
}

/* ---- out of descriptors ---- */

static struct {
    unsigned accepted, refused;
    struct rlimit before;
} scarce;

static void scarce_connection(weir_listener *listener, void *arg, weir_descriptor *descriptor)
{
    (void)listener, (void)arg, (void)descriptor;
    scarce.accepted++;
}

static void scarce_refused(weir_stream *stream, void *arg)
{
    (void)stream, (void)arg;
    scarce.refused++;
    if (scarce.refused == 2) {
        EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &scarce.before), 0);
        weir_stop();
    }
}

/* The limit leaves room for three clients' own ends and no accepted one; they wait before the server looks. */
static void start_scarce(void *arg)
{
    static const weir_stream_events events = {.close = scarce_refused};
    weir_listener *listener;
    weir_stream *stream;
    (void)arg;
    EXPECT_OK(weir_listen("unix:@weir-scarce", NULL, scarce_connection, NULL, &listener));
    EXPECT_OK(weir_stream_connect("unix:@weir-scarce", &events, NULL, &stream));
    EXPECT_OK(weir_stream_connect("unix:@weir-scarce", &events, NULL, &stream));
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &scarce.before), 0);
    int lowest = dup(0);
    close(lowest);
    struct rlimit tight = {(rlim_t)lowest, scarce.before.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
    EXPECT_EQ(dup(0), -1);
}

TEST(streams, without_descriptors_connections_are_refused_politely)
{
    for (unsigned i = 0; i < 2; i++) {
        weir_options options = {.threads = 1, .poll_backend = i ? "poll" : "epoll"};
        memset(&scarce, 0, sizeof scarce);
        EXPECT_OK(weir_run(&options, start_scarce, NULL));
        EXPECT_EQ(scarce.refused, 2);
        EXPECT_EQ(scarce.accepted, 0);
    }
}

/* ---- descriptors ---- */

static must_call *first_closed;

static void note_close(weir_stream *stream, void *arg)
{
    (void)stream, (void)arg;
    must_called(first_closed);
}

static void open_twice(void *arg)
{
    static const weir_stream_events events = {.close = note_close};
    weir_descriptor *pair[2], *none;
    weir_stream *first, *second = (weir_stream *)&second;
    weir_buf *buf;
    (void)arg;
    EXPECT_OK(weir_descriptor_pair(pair));
    EXPECT_OK(weir_stream_open(pair[0], &events, NULL, &first));
    EXPECT_EQ(weir_stream_open(pair[0], &no_events, NULL, &second), WEIR_EBUSY);
    EXPECT(second == NULL);
    EXPECT_EQ(weir_stream_open(NULL, &no_events, NULL, &second), WEIR_EHANDLE);
    EXPECT_OK(weir_buf_new_store(100, &buf));
    EXPECT_EQ(weir_stream_open((weir_descriptor *)(void *)weir_buf_store(buf), &no_events, NULL, &second),
              WEIR_EHANDLE);
    EXPECT_EQ(weir_descriptor_from_fd(-1, &none), WEIR_EINVAL);
    EXPECT(none == NULL);
    EXPECT(weir_descriptor_from_fd(STDIN_FILENO, &none) < 0);
    weir_stream_close(first);
}

TEST(streams, a_descriptor_is_opened_once)
{
    first_closed = must_call_new("close", 1);
    in_run(open_twice, NULL);
}

/* The other end of a pair is given to nobody: the collection closes it and the stream sees the end. */
typedef struct forgetful {
    weir_stream *stream;
} forgetful;
WEIR_ACTOR(forgetful, stream);
typedef struct forget {
    int nothing;
} forget;

WEIR_BEHAVIOUR(forgetful, forget)
{
    static const weir_stream_events events = {.close = note_close};
    weir_descriptor *pair[2];
    EXPECT_OK(weir_descriptor_pair(pair));
    EXPECT_OK(weir_stream_open(pair[0], &events, NULL, &self->stream));
    weir_collect_soon();
}

static void start_forgetful(void *arg)
{
    (void)arg;
    EXPECT_OK(weir_send(weir_spawn(forgetful), forgetful, forget));
}

TEST(streams, an_unopened_descriptor_closes_with_its_last_handle)
{
    first_closed = must_call_new("close", 1);
    in_run(start_forgetful, NULL);
}

/* A paused stream that nobody can reach any more is closed by the collection, without events. */
typedef struct dropper {
    uint64_t nothing;
} dropper;
WEIR_TYPE(dropper);
typedef struct dropping {
    uint64_t nothing;
} dropping;
WEIR_ACTOR(dropping);
typedef struct drop {
    weir_descriptor *descriptor;
} drop;
typedef struct collect {
    unsigned left;
} collect;

/* 150 messages later the turn in which the stream was opened is over. */
WEIR_BEHAVIOUR(dropping, collect)
{
    if (msg->left > 0)
        EXPECT_OK(weir_send(weir_self(dropping), dropping, collect, .left = msg->left - 1));
    else
        weir_collect_soon();
}

WEIR_BEHAVIOUR(dropping, drop, descriptor)
{
    weir_stream *stream;
    EXPECT_OK(weir_stream_open(msg->descriptor, &no_events, weir_new(dropper), &stream));
    EXPECT_OK(weir_stream_write(stream, "x", 1));
    weir_stream_pause(stream);
    EXPECT_OK(weir_send(weir_self(dropping), dropping, collect, .left = 150));
}

static void start_drop(void *arg)
{
    static const weir_stream_events events = {.close = note_close};
    weir_descriptor *pair[2];
    weir_stream *stream;
    (void)arg;
    EXPECT_OK(weir_descriptor_pair(pair));
    EXPECT_OK(weir_stream_open(pair[0], &events, NULL, &stream));
    EXPECT_OK(weir_send(weir_spawn(dropping), dropping, drop, .descriptor = pair[1]));
}

TEST(streams, an_unreachable_paused_stream_is_closed_by_the_collection)
{
    first_closed = must_call_new("close of the other side", 1);
    in_run(start_drop, NULL);
}

static void open_and_stop(void *arg)
{
    static const weir_stream_events events = {.data = NULL};
    weir_descriptor *pair[2];
    weir_stream *a, *b;
    (void)arg;
    for (unsigned i = 0; i < 50; i++) {
        EXPECT_OK(weir_descriptor_pair(pair));
        EXPECT_OK(weir_stream_open(pair[0], &events, NULL, &a));
        if (i % 2)
            EXPECT_OK(weir_stream_open(pair[1], &events, NULL, &b));
        EXPECT(weir_stream_write(a, weir_new_bytes(1 << 20), 1 << 20) == 1);
    }
    weir_stop();
}

TEST(streams, stop_closes_all_descriptors)
{
    in_run(open_and_stop, NULL);
}

typedef struct thief {
    uint64_t nothing;
} thief;
WEIR_ACTOR(thief);
typedef struct steal {
    uint64_t disguised;
} steal; /* a plain pointer would be refused */

WEIR_BEHAVIOUR(thief, steal)
{
    EXPECT_DEATH(weir_stream_write((weir_stream *)(uintptr_t)~msg->disguised, "x", 1), "belongs to another actor");
    weir_stop();
}

static void start_thief(void *arg)
{
    weir_descriptor *pair[2];
    weir_stream *stream;
    (void)arg;
    EXPECT_OK(weir_descriptor_pair(pair));
    EXPECT_OK(weir_stream_open(pair[0], &no_events, NULL, &stream));
    EXPECT_OK(weir_send(weir_spawn(thief), thief, steal, .disguised = ~(uint64_t)(uintptr_t)stream));
}

TEST(streams, a_stream_of_another_actor_is_a_misuse)
{
    in_run(start_thief, NULL);
}

/* ---- failures of the system ---- */

static int fail_one_kind(void *arg, wr_fail_kind kind, uint64_t nth)
{
    (void)nth;
    return kind == *(wr_fail_kind *)arg ? -ENOMEM : 0;
}

/* What each constructor gives while the calls of one kind fail; what it made is closed again. */
typedef struct attempt {
    int path, tcp, pair, connect;
} attempt;

static attempt try_while_failing(wr_fail_kind kind)
{
    static const weir_stream_events events = {.data = NULL};
    weir_listener *target, *path, *tcp;
    weir_descriptor *pair[2];
    weir_stream *stream;
    char address[256];
    attempt a;
    snprintf(address, sizeof address, "unix:%s", socket_path());
    EXPECT_OK(weir_listen("unix:@weir-target", NULL, nobody, NULL, &target));
    int before = kit_open_descriptors();
    wr_fail_install(fail_one_kind, &kind);
    a.path = weir_listen(address, NULL, nobody, NULL, &path);
    a.tcp = weir_listen("tcp:127.0.0.1:0", NULL, nobody, NULL, &tcp);
    a.pair = weir_descriptor_pair(pair);
    a.connect = weir_stream_connect("unix:@weir-target", &events, NULL, &stream);
    wr_fail_install(NULL, NULL);
    EXPECT_EQ(exists(socket_path()), a.path == 0);
    int made = 2 * (a.path == 0) + 2 * (a.tcp == 0) + 2 * (a.pair == 0) + (a.connect == 0);
    EXPECT_EQ(kit_open_descriptors(), before + made);
    EXPECT(a.path == 0 || path == NULL);
    EXPECT(a.tcp == 0 || tcp == NULL);
    EXPECT(a.pair == 0 || (pair[0] == NULL && pair[1] == NULL));
    EXPECT(a.connect == 0 || stream == NULL);
    if (a.path == 0)
        weir_listener_close(path);
    if (a.tcp == 0)
        weir_listener_close(tcp);
    weir_listener_close(target);
    return a;
}

static void fail_each(void *arg)
{
    (void)arg;
    attempt add = try_while_failing(WR_FAIL_POLL_ADD), opening = try_while_failing(WR_FAIL_LISTEN);
    attempt name = try_while_failing(WR_FAIL_LOCAL_ADDRESS), pair = try_while_failing(WR_FAIL_PAIR);
    attempt connecting = try_while_failing(WR_FAIL_CONNECT);
    EXPECT(add.path == WEIR_ENOMEM && add.tcp == WEIR_ENOMEM && add.pair == 0 && add.connect == WEIR_ENOMEM);
    EXPECT(opening.path == WEIR_ENOMEM && opening.tcp == WEIR_ENOMEM && opening.pair == 0 && opening.connect == 0);
    EXPECT(name.path == 0 && name.tcp == WEIR_ENOMEM && name.pair == 0 && name.connect == 0);
    EXPECT(pair.path == 0 && pair.tcp == 0 && pair.pair == WEIR_ENOMEM && pair.connect == 0);
    EXPECT(connecting.path == 0 && connecting.tcp == 0 && connecting.pair == 0 && connecting.connect == WEIR_ENOMEM);
    weir_stop();
}

TEST(streams, a_failed_constructor_leaves_nothing)
{
    in_run(fail_each, NULL);
}

static void open_after_failure(void *arg)
{
    static const weir_stream_events events = {.close = note_close};
    wr_fail_kind kind = WR_FAIL_POLL_ADD;
    weir_descriptor *pair[2];
    weir_stream *stream;
    (void)arg;
    EXPECT_OK(weir_descriptor_pair(pair));
    wr_fail_install(fail_one_kind, &kind);
    EXPECT_EQ(weir_stream_open(pair[0], &no_events, NULL, &stream), WEIR_ENOMEM);
    wr_fail_install(NULL, NULL);
    EXPECT_OK(weir_stream_open(pair[0], &events, NULL, &stream));
    weir_stream_close(stream);
}

TEST(streams, a_descriptor_whose_opening_failed_can_be_opened)
{
    first_closed = must_call_new("close", 1);
    in_run(open_after_failure, NULL);
}
