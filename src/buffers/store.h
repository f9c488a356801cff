/* SPDX-License-Identifier: MIT */
/* buffers/store.h: bytes outside the heaps, counted, shared between actors without a copy.
 *
 * Job        One header before the bytes (or naming foreign bytes), so that messages, held lists and buffers treat both
 *            alike.
 * Invariants data and length never change. The bytes behind a header lie in the header's own pool block, so a plain
 *            pointer into them leads the collector to the store; foreign bytes are kept by naming the header.
 * Threads    Any: whoever holds a count may read. Only the maker writes, and only before the first share.
 */
#ifndef WR_BUFFERS_STORE_H
#define WR_BUFFERS_STORE_H

#include "actors/shared.h"
#include "weir/buffer.h"
#include <stdbool.h>

struct weir_store {
    wr_shared shared;
    char *data;
    size_t length;
    void (*release)(void *data, size_t length, void *arg); /* foreign bytes only; NULL: nobody is told */
    void *release_arg;
};

/* A store with `length` bytes of its own, contents undefined. The caller has its one count: hand it to wr_hold_here or
 * keep it. 0 or WEIR_ENOMEM. */
int wr_store_new(size_t length, weir_store **out);
/* A store that names foreign bytes. The same otherwise; on failure `release` is never called. */
int wr_store_wrap(void *data, size_t length, void (*release)(void *data, size_t length, void *arg), void *arg,
                  weir_store **out);
/* Is this shared thing a store. */
bool wr_store_is(const wr_shared *shared);

/* A buffer object that names bytes of a store which the running actor holds. */
weir_buf *wr_buf_of(weir_store *store, char *data, size_t length);

#endif
