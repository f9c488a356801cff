/* SPDX-License-Identifier: MIT */
/* weir/stream.h: byte streams over Unix sockets and TCP, and listeners.
 *
 * A stream belongs to the actor that opened it; its events are callbacks that run as behaviours of that actor.
 * Everything written in one turn leaves in one system call at the end of the turn, without being asked; cork and uncork
 * stretch that over several turns.
 *
 * Addresses are text: "unix:/run/app.sock", "unix:@name" (abstract), "tcp:127.0.0.1:6379", "tcp:[::1]:6379", port 0 for
 * any free one. Names are not looked up: that would block.
 *
 * Events of one stream, in this order: open (connect only), data any number of times, end when the peer has ended its
 * side, error at most once, close exactly once and last. Data that arrived before the end or the error is always
 * delivered before it. No event before the function that made the stream has returned, and none from inside any other
 * call of the user's. If that function fails, no callback is ever called.
 *
 * A stream that waits for nothing (paused or ended by the peer, nothing queued) and that nothing refers to is closed by
 * the collection, as all streams are at the end of the run; no event is called then.
 *
 * A connection travels between actors as a weir_descriptor, a handle that a message may carry; whoever opens it first
 * owns it, and if nobody does, it is closed with the last handle.
 */
#ifndef WEIR_STREAM_H
#define WEIR_STREAM_H

#include "weir/base.h"
#include "weir/buffer.h"
#include <stdbool.h>

WEIR_BEGIN_C_

typedef struct weir_stream weir_stream;
typedef struct weir_listener weir_listener;

/* Any callback may be NULL. `arg` is what the constructor was given; if it is an object of the actor's heap, the stream
 * keeps it alive. */
typedef struct weir_stream_events {
    void (*open)(weir_stream *stream, void *arg);
    /* `bytes` are valid until the callback returns; weir_stream_keep makes them last without a copy. */
    void (*data)(weir_stream *stream, void *arg, const char *bytes, size_t size);
    /* Where the next read shall put its bytes: *size (in: a hint; out: room there, 0: use the stream's own block). The
     * memory is the actor's and must stay valid until the data callback that delivers it. NULL callback: the stream's
     * own block. */
    void *(*space)(weir_stream *stream, void *arg, size_t *size);
    /* The queue fell to half the high-water mark after a write had returned 1. */
    void (*drain)(weir_stream *stream, void *arg);
    void (*end)(weir_stream *stream, void *arg); /* NULL: this side is ended as well */
    void (*error)(weir_stream *stream, void *arg, int code);
    void (*close)(weir_stream *stream, void *arg);
} weir_stream_events;

/* Connects. Errors that are known at once are returned (WEIR_EINVAL: address, WEIR_ENAMETOOLONG, WEIR_ENOENT,
 * WEIR_ECONNREFUSED ...), later ones come as error and close. Since 0.1. */
WEIR_API int weir_stream_connect(const char *address, const weir_stream_events *events, void *arg, weir_stream **out);

/* Takes the descriptor over as a stream of the calling actor. WEIR_EBUSY if somebody has already. Since 0.1. */
WEIR_API int weir_stream_open(weir_descriptor *descriptor, const weir_stream_events *events, void *arg,
                              weir_stream **out);

/* Two connected Unix sockets, as descriptors held by the calling actor. Since 0.1. */
WEIR_API int weir_descriptor_pair(weir_descriptor *out[2]);

/* A descriptor number made elsewhere (a connected stream socket), ownership given on success. It need not be
 * non-blocking: no call on it blocks, and other processes that share it see no change. WEIR_EINVAL or another code if
 * it is no socket. Since 0.1. */
WEIR_API int weir_descriptor_from_fd(int fd, weir_descriptor **out);

/* Inside a data callback: [bytes, bytes + size) of what was delivered as a buffer, without a copy; the block it lies in
 * is not read into again. Small values are better copied (weir_buf_from): a kept one holds its whole block, in which
 * bytes of other streams may lie, and whoever is sent its store can read all of it. WEIR_ERANGE if the bytes are not
 * what is being delivered, or lie in memory that `space` gave. Since 0.1. */
WEIR_API int weir_stream_keep(weir_stream *stream, const char *bytes, size_t size, weir_buf **out);

/* Writes: the bytes are copied (write), or kept until they are out (write_buf; small ones are copied). Return 0; 1:
 * accepted, but the queue is over the high-water mark, so please wait for drain; negative and nothing was queued:
 * WEIR_ESHUTDOWN after end or close, WEIR_EPIPE after an error, WEIR_ENOBUFS when the queue was over its hard limit
 * already: the stream then fails with that error, so that a peer that never reads cannot fill the memory. Since 0.1. */
WEIR_API int weir_stream_write(weir_stream *stream, const void *bytes, size_t size);
WEIR_API int weir_stream_write_buf(weir_stream *stream, weir_buf *buf);

/* Between cork and uncork nothing leaves, across turns too, unless the queue passes 1 MiB. They count: as many uncorks
 * as corks. The last uncork lets the queue leave at the end of the turn. Since 0.1. */
WEIR_API void weir_stream_cork(weir_stream *stream);
WEIR_API void weir_stream_uncork(weir_stream *stream);

/* Sends what is queued now, without waiting for the end of the turn. Since 0.1. */
WEIR_API void weir_stream_flush(weir_stream *stream);

/* Ends this side: what is queued goes out first, then the peer sees the end. When both sides have ended, the stream
 * closes. Corks no longer count. close throws away what is queued and closes at the end of the turn. Both may be called
 * again; then nothing happens. Since 0.1. */
WEIR_API void weir_stream_end(weir_stream *stream);
WEIR_API void weir_stream_close(weir_stream *stream);

/* No data event between pause and resume; what arrives waits in the kernel, so the peer is slowed down. A failure is
 * told to a paused stream too; what was not read by then is lost. Since 0.1. */
WEIR_API void weir_stream_pause(weir_stream *stream);
WEIR_API void weir_stream_resume(weir_stream *stream);

/* Bytes queued and not yet taken by the kernel; whether the stream can still be written to. */
WEIR_API size_t weir_stream_queued(const weir_stream *stream);
WEIR_API bool weir_stream_writable(const weir_stream *stream);
/* Changes the marks (bytes): 0 keeps one. Usual: 256 KiB and 64 MiB. */
WEIR_API void weir_stream_set_limits(weir_stream *stream, size_t high_water, size_t hard_limit);

typedef struct weir_stream_stats {
    uint64_t write_calls, bytes_written, read_calls, bytes_read;
    uint64_t copied_bytes, referenced_bytes; /* how the writes were queued */
} weir_stream_stats;
WEIR_API void weir_get_stream_stats(const weir_stream *stream, weir_stream_stats *out);

typedef struct weir_listen_options {
    int backlog;       /* 0: 511 */
    bool replace_dead; /* Unix path: take over a socket file that nobody listens on */
} weir_listen_options;

/* Listens; `connection` gets each new connection as a descriptor that the calling actor holds. When descriptors run
 * out, connections wait or are closed politely; the process never spins. A Unix socket file is removed when the
 * listener closes. WEIR_EADDRINUSE: somebody listens there (or the file exists and replace_dead is not set);
 * WEIR_ENAMETOOLONG: a path over 107 bytes. options NULL: all zero. Since 0.1. */
WEIR_API int weir_listen(const char *address, const weir_listen_options *options,
                         void (*connection)(weir_listener *listener, void *arg, weir_descriptor *descriptor), void *arg,
                         weir_listener **out);
WEIR_API void weir_listener_close(weir_listener *listener);
/* The address as text with the real port; at most `size` bytes with the ending zero. Returns its length. */
WEIR_API size_t weir_listener_address(const weir_listener *listener, char *out, size_t size);

WEIR_END_C_

#endif
