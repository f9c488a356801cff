/* SPDX-License-Identifier: MIT */
/* actors/shared.h: the things outside the heaps that several actors may reach: actors, stores, descriptors.
 *
 * Job        One header with a count, so that messages and held lists treat all kinds alike.
 * Invariants Whoever may reach a thing has one count on it through its held list, or is a message or pin that owns one.
 *            The count of anything but an actor is never raised from zero. An actor's last count is not given back by
 *            the holder: it travels to the actor in a reap message (actor.c), so that nobody but the actor itself ever
 *            ends it.
 * Threads    Any.
 * Cost       One atomic operation to raise or give back.
 */
#ifndef WR_ACTORS_SHARED_H
#define WR_ACTORS_SHARED_H

#include "platform/check.h"
#include "platform/compiler.h"
#include "weir/base.h"
#include <stdatomic.h>

typedef struct wr_shared wr_shared;

typedef struct wr_shared_kind {
    const char *name;                   /* "store", for reports */
    void (*destroy)(wr_shared *shared); /* the count fell to zero: any scheduler, must not block; NULL for actors */
} wr_shared_kind;

struct wr_shared { /* first in a block of the pool */
    const wr_shared_kind *kind;
    _Atomic uint32_t count;
    /* bytes a holder's collector is charged for (capped): the more, the sooner it looks whether to let go */
    uint32_t size;
};

WR_INLINE void wr_shared_raise(wr_shared *shared, uint32_t by)
{
    uint32_t before = atomic_fetch_add_explicit(&shared->count, by, memory_order_relaxed);
    WR_CHECK(before < UINT32_MAX / 2, "a %s has too many holders", shared->kind->name);
}

void wr_shared_drop(wr_shared *shared); /* gives one count back */

#endif
