/* SPDX-License-Identifier: MIT */
/* streams/listen.c: listeners: accept connections and hand them on as descriptors.
 *
 * Job        Watch a listening socket, accept a bounded number a turn, call the user for each.
 * Invariants Never spins: when the process is out of descriptors, a reserve descriptor is given up for a moment to
 *            accept the connection and close it, so that the peer learns at once and the queue shrinks. After close no
 *            callback runs; the callback itself may close.
 * Threads    The owner's scheduler.
 * Cost       One system call a connection and one more when the queue is empty.
 * Limits     Another thread may take the freed number before the reserve is back. With epoll, connections then wait
 *            until a later one is reported; with poll(2), whose reports repeat, the listener looks again and again
 *            until a descriptor is free.
 */
#include "actors/io.h"
#include "platform/check.h"
#include "streams/address.h"
#include "streams/descriptor.h"
#include "streams/socket.h"
#include "streams/stream.h"

#include <string.h>

#define ACCEPTS_MAX 64
#define BACKLOG_USUAL 511
#define BACKLOG_MAX 65535

struct weir_listener {
    wr_source *source; /* NULL: closed */
    weir_actor *owner;
    void *arg;
    void (*connection)(weir_listener *listener, void *arg, weir_descriptor *descriptor);
    int fd;
    int reserve; /* given up when the process is out of descriptors; -1: none */
    wr_socket_file file;
    wr_address address; /* with the real port */
};

static void release_all(weir_listener *listener)
{
    wr_source_close(listener->source);
    listener->source = NULL;
    wr_socket_remove_file(&listener->address, &listener->file);
    wr_fd_close(listener->fd);
    if (listener->reserve >= 0)
        wr_fd_close(listener->reserve);
    listener->fd = listener->reserve = -1;
}

static void listener_finalise(void *object)
{
    weir_listener *listener = object;
    if (listener->source != NULL)
        release_all(listener);
}

static const weir_field listener_fields[] = {{offsetof(struct weir_listener, arg), 1}, {0, 0}};
static const weir_type listener_type = {"weir_listener", sizeof(weir_listener), _Alignof(weir_listener), 0,
                                        listener_fields, listener_finalise};

static bool is_out_of_descriptors(int code)
{
    return code == -EMFILE || code == -ENFILE;
}

/* Accepts one connection with the reserve's number and closes it. Returns what accept said. */
static int refuse_one(weir_listener *listener)
{
    if (listener->reserve < 0)
        (void)wr_fd_reserve(&listener->reserve);
    if (listener->reserve < 0)
        return -EMFILE;
    wr_fd_close(listener->reserve);
    listener->reserve = -1;
    int fd;
    int code = wr_socket_accept(listener->fd, &fd);
    if (code == 0)
        wr_fd_close(fd);
    (void)wr_fd_reserve(&listener->reserve);
    return code;
}

/* 0: one connection was dealt with, go on; negative: stop. */
static int accept_one(weir_listener *listener)
{
    int fd;
    int code = wr_socket_accept(listener->fd, &fd);
    if (is_out_of_descriptors(code))
        return refuse_one(listener);
    if (code != 0)
        return code;
    weir_descriptor *descriptor;
    if (wr_descriptor_new(fd, &descriptor) != 0) {
        wr_fd_close(fd);
        return 0;
    }
    listener->connection(listener, listener->arg, descriptor);
    return 0;
}

static void listener_ready(void *object, unsigned events)
{
    (void)events;
    weir_listener *listener = object;
    int code = 0;
    for (unsigned i = 0; i < ACCEPTS_MAX && listener->source != NULL && code == 0; i++)
        code = accept_one(listener);
    if (listener->source == NULL)
        return;
    if (code == 0)
        wr_source_post(listener->source);
    wr_source_arm(listener->source, WR_POLL_IN);
}

/* The listener exists; makes it the owner of the socket. */
static int watch(weir_listener *listener, int fd)
{
    wr_source *source;
    int code = wr_source_open(fd, listener, listener_ready, WR_POLL_IN, &source);
    if (code != 0)
        return code;
    listener->source = source;
    listener->fd = fd;
    listener->owner = wr_current_actor();
    (void)wr_fd_reserve(&listener->reserve); /* without one: tried again when it is needed */
    return 0;
}

int weir_listen(const char *address, const weir_listen_options *options,
                void (*connection)(weir_listener *listener, void *arg, weir_descriptor *descriptor), void *arg,
                weir_listener **out)
{
    WR_CHECK(connection != NULL, "weir_listen: the connection callback is NULL; nobody would get the connections");
    weir_listen_options o = options != NULL ? *options : (weir_listen_options){0};
    *out = NULL;
    wr_address parsed;
    int code = wr_stream_may_open();
    if (code == 0)
        code = wr_address_parse(address, &parsed);
    if (code == 0 && (o.backlog < 0 || o.backlog > BACKLOG_MAX))
        code = WEIR_EINVAL;
    if (code != 0)
        return code;

    weir_listener *listener = weir_alloc(&listener_type, sizeof *listener);
    listener->reserve = -1;
    listener->arg = arg;
    listener->connection = connection;
    listener->address = parsed;
    int fd;
    code = wr_socket_open_listener(&parsed, o.backlog != 0 ? o.backlog : BACKLOG_USUAL, o.replace_dead, &listener->file,
                                   &fd);
    if (code != 0)
        return code;
    if (parsed.kind == WR_ADDRESS_IPV4 || parsed.kind == WR_ADDRESS_IPV6)
        code = wr_socket_local_address(fd, &listener->address);
    if (code == 0)
        code = watch(listener, fd);
    if (code != 0) {
        wr_socket_remove_file(&parsed, &listener->file);
        wr_fd_close(fd);
        return code;
    }
    *out = listener;
    return 0;
}

void weir_listener_close(weir_listener *listener)
{
    WR_CHECK(listener != NULL, "weir_listener_close: no listener");
    if (listener->source == NULL)
        return;
    WR_CHECK(listener->owner == wr_current_actor(), "weir_listener_close: the listener belongs to another actor");
    release_all(listener);
}

size_t weir_listener_address(const weir_listener *listener, char *out, size_t size)
{
    return wr_address_format(&listener->address, out, size);
}
