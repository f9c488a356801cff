/* SPDX-License-Identifier: MIT */
/* streams/stream.h: what a stream is inside; shared by stream.c (states, events), write.c (the way out) and read.c (the
 * way in).
 *
 * Invariants S1 `source` is NULL and fd -1 exactly when `closed`. S2 after `closed` no callback runs. S3 `code` != 0
 *            means failed: nothing is queued or sent any more, what had arrived is still delivered, then error and
 *            close. S4 a user's call never runs a callback: what it brings about is done at the end of the turn (close)
 *            or in a turn of its own (everything else).
 * Threads    The owner's scheduler.
 */
#ifndef WR_STREAMS_STREAM_H
#define WR_STREAMS_STREAM_H

#include "actors/io.h"
#include "actors/shared.h"
#include "streams/write_queue.h"
#include "weir/stream.h"

struct weir_stream {
    wr_source *source;
    weir_actor *owner;
    void *arg;
    int fd;
    int code; /* why it failed; 0: it has not */
    weir_stream_events events;

    unsigned connecting : 1; /* the system has not said yet whether the connection stands */
    unsigned open_due : 1;   /* events that wait for a turn of their own */
    unsigned drain_due : 1;
    unsigned above : 1;        /* a write returned 1 and no drain was due since */
    unsigned blocked : 1;      /* the system took less than offered: wait for OUT */
    unsigned out_armed : 1;    /* OUT is watched already, so only the system's -EAGAIN promises another report */
    unsigned ending : 1;       /* end was called */
    unsigned output_ended : 1; /* and carried out */
    unsigned input_ended : 1;  /* nothing more to read: end of input seen, or reading failed */
    unsigned readable : 1;     /* there may be unread input */
    unsigned hangup : 1;       /* the peer will send no more: read until the system says so */
    unsigned paused : 1;
    unsigned closing : 1; /* close was called */
    unsigned closed : 1;
    uint32_t corks;

    wr_turn_hook hook; /* flush, shut down, close, change the interest: once at the end of a turn */
    wr_write_queue queue;
    size_t high_water, hard_limit;

    const char *delivered; /* while the data callback runs: what weir_stream_keep may name */
    size_t delivered_size;
    size_t read_after_failure;
    weir_stream_stats stats;
};

/* A stream of the running actor on `fd`, which it owns from now on (on failure the caller still does). */
int wr_stream_new(int fd, bool connecting, const weir_stream_events *events, void *arg, weir_stream **out);
/* The stream fails; the first failure counts. Nothing is called here. */
void wr_stream_fail(weir_stream *stream, int code);
/* Trips a check if another actor than the owner calls. */
void wr_stream_check_caller(const weir_stream *stream, const char *function);
/* May a new stream or listener be made here: 0, WEIR_EPERM (no behaviour), WEIR_ESHUTDOWN (the run is ending). */
int wr_stream_may_open(void);

/* write.c: offers the queue to the system until it is empty or the system takes no more. Runs no callback. */
void wr_stream_send(weir_stream *stream);
/* Is there something to send now, by the rules of cork. */
bool wr_stream_wants_send(const weir_stream *stream);

/* read.c: reads and delivers while there is input and nobody minds; a bounded amount. */
void wr_stream_read(weir_stream *stream);

#endif
