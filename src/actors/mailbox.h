/* SPDX-License-Identifier: MIT */
/* actors/mailbox.h: an actor's queue of messages: many producers, one consumer, intrusive, unbounded (the sender pays
 * for the block).
 *
 * Job        Push with one exchange; the same exchange tells the pusher whether the actor was asleep and must be
 *            scheduled.
 * Invariants `head` is the message consumed last (at first the stub in the actor): its successor is the oldest one not
 *            consumed. It is given back when the next one is taken. Bit 0 of `tail` says: empty and nobody runs the
 *            actor. Only the consumer sets it (when tail is head), only the exchange of a push clears it, and that
 *            pusher alone schedules the actor.
 * Threads    Push: any. The rest: who runs the actor. A consumer that has marked the mailbox empty must not touch the
 *            actor again.
 * Cost       One exchange per push, none per pop, one compare-exchange to fall asleep.
 * Source     D. Vyukov, "Intrusive MPSC node-based queue" (2010); the empty mark as in Pony's message queue.
 * Tried      A stack that the consumer reverses needs no stub, but must not free or reuse the top while it is processed
 *            (ABA), and touches each message twice.
 */
#ifndef WR_ACTORS_MAILBOX_H
#define WR_ACTORS_MAILBOX_H

#include "actors/message.h"

typedef struct wr_mailbox {
    _Atomic uintptr_t tail; /* wr_message *, bit 0: empty */
    wr_message *head;       /* consumer's */
} wr_mailbox;

WR_INLINE void wr_mailbox_open(wr_mailbox *mailbox, wr_message *stub)
{
    WR_ASSERT(((uintptr_t)stub & 1) == 0);
    atomic_init(&stub->next, NULL);
    stub->block_size = 0;
    mailbox->head = stub;
    atomic_init(&mailbox->tail, (uintptr_t)stub | 1);
}

/* True: the mailbox was empty and its actor asleep: the caller must schedule it. The message may be consumed and gone
 * when this returns. */
WR_INLINE bool wr_mailbox_push(wr_mailbox *mailbox, wr_message *message)
{
    atomic_store_explicit(&message->next, NULL, memory_order_relaxed);
    uintptr_t before = atomic_exchange_explicit(&mailbox->tail, (uintptr_t)message, memory_order_acq_rel);
    wr_message *previous = (wr_message *)(before & ~(uintptr_t)1);
    WR_ASSERT(previous != message);
    atomic_store_explicit(&previous->next, message, memory_order_release);
    return (before & 1) != 0;
}

/* The oldest message, NULL if there is none (or its producer has not linked it yet). It stays valid until the next pop.
 * `pool` takes the one before back. */
WR_INLINE wr_message *wr_mailbox_pop(wr_mailbox *mailbox, wr_pool_cache *pool)
{
    wr_message *consumed = mailbox->head;
    WR_ASSERT(consumed != NULL);
    wr_message *message = atomic_load_explicit(&consumed->next, memory_order_acquire);
    if (message == NULL)
        return NULL;
    mailbox->head = message;
    wr_message_give(pool, consumed);
    return message;
}

/* Falls asleep if nothing is queued: true, and the actor is no longer the caller's. False: something came. */
WR_INLINE bool wr_mailbox_mark_empty(wr_mailbox *mailbox)
{
    uintptr_t expected = (uintptr_t)mailbox->head;
    WR_ASSERT((expected & 1) == 0);
    return atomic_compare_exchange_strong_explicit(&mailbox->tail, &expected, expected | 1, memory_order_acq_rel,
                                                   memory_order_relaxed);
}

#endif
