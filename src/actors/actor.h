/* SPDX-License-Identifier: MIT */
/* actors/actor.h: what an actor is inside, and its turn.
 *
 * Job        The structure behind weir_actor, creation, the turn a scheduler gives it, its end.
 * Invariants An actor is in exactly one of these states: asleep (mailbox marked empty, in no queue), queued (in one run
 *            queue or slot), running (one scheduler), ended. Everything below `mailbox` belongs to the scheduler that
 *            runs it.
 * Threads    Shared header and mailbox: any. The rest: who runs it.
 * Cost       About 250 bytes and the state; no heap until the first allocation.
 */
#ifndef WR_ACTORS_ACTOR_H
#define WR_ACTORS_ACTOR_H

#include "actors/held.h"
#include "actors/io.h"
#include "actors/mailbox.h"
#include "actors/shared.h"
#include "memory/heap.h"
#include "memory/ptrset.h"
#include "weir/actor.h"
#include <stdbool.h>

#define WR_TURN_MESSAGES_MAX 100 /* messages in one turn, so that others get theirs */

typedef struct wr_scheduler wr_scheduler;
typedef struct wr_runtime wr_runtime;

struct weir_actor {
    wr_shared shared; /* first: handles point here; kind == &wr_actor_kind */
    wr_mailbox mailbox;
    weir_actor *queue_next; /* link in the shared run queue */

    const weir_type *type;
    wr_heap *heap;        /* NULL until the first allocation */
    wr_ptrset held;       /* mark 1: found in use by the collection under way; count: pins */
    size_t charge;        /* for receipts while there is no heap */
    wr_source *sources;   /* all open sources, doubly linked */
    wr_turn_hook *hooks;  /* to do at the end of this turn */
    uint32_t armed;       /* sources that are watched */
    uint32_t self_pins;   /* how many of them are its own handle's */
    uint32_t handle_pins; /* pinned handles */
    bool stub_queued;     /* the stub is in the mailbox */
    bool finishing;       /* its finalisers run; its handle is given to nobody any more */
    uint16_t home;        /* scheduler on whose list it is */
    uint32_t block_size;
    uint64_t id;                         /* sequence number in the run */
    weir_actor *all_next, *all_previous; /* list of its home */
    wr_message stub;
    WR_ALIGNED(16) char state[];
};

extern const wr_shared_kind wr_actor_kind;
extern const weir_type wr_first_actor_type;    /* the implicit actor of `start` */
extern const weir_behaviour wr_behaviour_reap; /* the message that carries the last count */

/* A new actor asleep, with one count for the caller; NULL when memory is short. `state` is copied as it is (handles:
 * the caller's work). */
weir_actor *wr_actor_create(wr_scheduler *scheduler, const weir_type *type, const void *state);

typedef enum wr_turn_result { WR_TURN_ASLEEP, WR_TURN_MORE, WR_TURN_ENDED } wr_turn_result;

/* Runs messages of `actor` until there are none or the turn is over. MORE: the caller queues it again. Otherwise the
 * actor may be gone. */
wr_turn_result wr_actor_turn(wr_scheduler *scheduler, weir_actor *actor);

/* Pushes a message; schedules the actor if it was asleep. */
void wr_actor_push(wr_scheduler *scheduler, weir_actor *actor, wr_message *message);

/* The heap of an actor, made on demand; NULL when memory is short. */
wr_heap *wr_actor_heap(wr_scheduler *scheduler, weir_actor *actor);

/* End of an actor in two steps, since at the end of a run actors still name each other: first everything that may run
 * user code and give back counts, then the block itself. */
void wr_actor_finish(wr_scheduler *scheduler, weir_actor *actor);
void wr_actor_free(wr_scheduler *scheduler, weir_actor *actor);

#endif
