/* SPDX-License-Identifier: MIT */
/* weir/runtime.h: start a run, end it, look at it.
 *
 * One run at a time in a process, as often as wanted one after the other, beside any threads of the program's own.
 */
#ifndef WEIR_RUNTIME_H
#define WEIR_RUNTIME_H

#include "weir/base.h"

WEIR_BEGIN_C_

#define WEIR_BUFFERS_OUTSIDE SIZE_MAX

/* All zero means: everything as usual. A field set here wins over its environment variable. */
typedef struct weir_options {
    unsigned threads;         /* schedulers, 1 to 64; 0: WEIR_THREADS, else the CPUs this process may use */
    const char *poll_backend; /* "epoll", "poll"; NULL: WEIR_POLL, else the best there is */
    /* buffers up to this many bytes live inside the heap, at most 16384; WEIR_BUFFERS_OUTSIDE: none do;
     * 0: WEIR_BUFFER_INLINE_MAX (where 0 means none), else 2048 */
    size_t buffer_inline_max;
    /* bytes allocated by an actor that holds little before it is collected; 0: WEIR_COLLECT_AFTER, else 1 MiB */
    size_t collect_after;
} weir_options;

/* Runs `start(arg)` in a first actor, then everything that follows from it, and returns when nothing can happen any
 * more (no message is under way, no descriptor is watched, nothing is pinned) or after weir_stop. The calling thread
 * becomes the first scheduler; the others are started here and are gone on return. Before return every finaliser has
 * run and all descriptors are closed.
 *
 * options   NULL for the usual ones start     runs as a behaviour of the first actor, whose heap, buffers and streams
 * it may use with plain callbacks
 *
 * Returns the code given to weir_set_exit_code (0 if none), or a negative error when the run could not start:
 * WEIR_EBUSY (another run is under way), WEIR_EINVAL (an option or environment value is out of range; a line on stderr
 * names it), WEIR_ENOMEM. Since 0.1. */
WEIR_API int weir_run(const weir_options *options, void (*start)(void *arg), void *arg);

/* Ends the run: behaviours under way finish, messages not yet received are dropped, finalisers run. From any thread and
 * from signal handlers; without a run, nothing happens. Threads that Weir starts block signals, so handlers run on the
 * program's own. Since 0.1. */
WEIR_API void weir_stop(void);

/* What weir_run will return; 0 to 255 suits main. The last call wins. Inside a behaviour. Since 0.1. */
WEIR_API void weir_set_exit_code(int code);

/* Monotonic clock in nanoseconds, and wall clock in milliseconds since 1970. Any thread. Since 0.1. */
WEIR_API uint64_t weir_now_ns(void);
WEIR_API int64_t weir_unix_ms(void);

/* A number from the run's generator for user code: fast, not for secrets. Inside a behaviour. Since 0.1. */
WEIR_API uint64_t weir_random(void);

typedef struct weir_stats { /* since the run began unless said otherwise */
    unsigned threads;
    uint64_t actors_alive, actors_created;
    uint64_t messages_sent, behaviours_run, turns;
    uint64_t steals, wakes, sleeps, polls;
    uint64_t collections, finalised;
    uint64_t heap_bytes;                          /* chunks and large objects of all heaps, now */
    uint64_t pool_bytes;                          /* the runtime's own structures: actors, messages, now */
    uint64_t store_bytes;                         /* bytes outside the heaps, now */
    uint64_t committed_bytes;                     /* memory taken from the system, now */
    uint64_t stream_writes, stream_bytes_written; /* system calls and bytes */
    uint64_t stream_reads, stream_bytes_read;
} weir_stats;

/* Figures of the whole run, summed over the schedulers while they go on (each is exact, together they are not one
 * instant). Inside a run, any thread. Returns 0 or WEIR_EPERM when there is no run. Since 0.1. */
WEIR_API int weir_get_stats(weir_stats *out);

WEIR_END_C_

#endif
