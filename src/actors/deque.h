/* SPDX-License-Identifier: MIT */
/* actors/deque.h: a scheduler's queue of runnable actors: its owner pushes and pops in order, thieves take half.
 *
 * Job        A bounded ring. Full: the caller uses the shared queue of the run.
 * Invariants head <= tail <= head + WR_DEQUE_SIZE. Items in [head, tail) are each in no other queue. `tail` and the
 *            items are written by the owner only; `head` moves by compare-exchange, so each item is taken once. 64-bit
 *            positions never wrap.
 * Threads    push, pop: the owner. steal: any other scheduler, into its own ring.
 * Cost       Push: a store. Pop: one compare-exchange. Steal: one compare-exchange for up to half of the ring.
 * Source     The shape of Go's run queue (R. Cox, D. Vyukov): first in, first out for the owner too, so nobody starves.
 */
#ifndef WR_ACTORS_DEQUE_H
#define WR_ACTORS_DEQUE_H

#include "platform/check.h"
#include "platform/compiler.h"
#include "weir/base.h"
#include <stdatomic.h>
#include <stdbool.h>

#define WR_DEQUE_SIZE 256u

typedef struct wr_deque {
    WR_ALIGNED(WR_CACHE_LINE) _Atomic uint64_t head;
    WR_ALIGNED(WR_CACHE_LINE) _Atomic uint64_t tail;
    _Atomic(weir_actor *) items[WR_DEQUE_SIZE];
} wr_deque;

WR_INLINE bool wr_deque_push(wr_deque *deque, weir_actor *actor)
{
    uint64_t tail = atomic_load_explicit(&deque->tail, memory_order_relaxed);
    uint64_t head = atomic_load_explicit(&deque->head, memory_order_acquire);
    WR_ASSERT(tail - head <= WR_DEQUE_SIZE);
    if (tail - head == WR_DEQUE_SIZE)
        return false;
    atomic_store_explicit(&deque->items[tail % WR_DEQUE_SIZE], actor, memory_order_relaxed);
    atomic_store_explicit(&deque->tail, tail + 1, memory_order_release);
    return true;
}

WR_INLINE weir_actor *wr_deque_pop(wr_deque *deque)
{
    uint64_t tail = atomic_load_explicit(&deque->tail, memory_order_relaxed);
    uint64_t head = atomic_load_explicit(&deque->head, memory_order_acquire);
    while (head != tail) {
        weir_actor *actor = atomic_load_explicit(&deque->items[head % WR_DEQUE_SIZE], memory_order_relaxed);
        if (atomic_compare_exchange_weak_explicit(&deque->head, &head, head + 1, memory_order_acq_rel,
                                                  memory_order_acquire))
            return actor;
    }
    return NULL;
}

/* How many there are, for a decision: others may take some meanwhile. */
WR_INLINE uint64_t wr_deque_length(const wr_deque *deque)
{
    uint64_t head = atomic_load_explicit(&deque->head, memory_order_acquire);
    return atomic_load_explicit(&deque->tail, memory_order_acquire) - head;
}

WR_INLINE bool wr_deque_empty(const wr_deque *deque)
{
    return atomic_load_explicit(&deque->head, memory_order_acquire) ==
           atomic_load_explicit(&deque->tail, memory_order_acquire);
}

/* Moves half of `victim` (rounded up) into `own`, which is empty. Returns how many. */
WR_INLINE unsigned wr_deque_steal(wr_deque *own, wr_deque *victim)
{
    uint64_t to = atomic_load_explicit(&own->tail, memory_order_relaxed);
    WR_ASSERT(atomic_load_explicit(&own->head, memory_order_relaxed) == to);
    for (;;) {
        uint64_t head = atomic_load_explicit(&victim->head, memory_order_acquire);
        uint64_t tail = atomic_load_explicit(&victim->tail, memory_order_acquire);
        uint64_t count = tail - head;
        WR_ASSERT(head <= tail); /* read in this order, and both only grow */
        count -= count / 2;
        if (count == 0)
            return 0;
        if (count > WR_DEQUE_SIZE / 2)
            continue; /* head and tail were read at different times */
        for (uint64_t i = 0; i < count; i++) {
            weir_actor *actor = atomic_load_explicit(&victim->items[(head + i) % WR_DEQUE_SIZE], memory_order_relaxed);
            atomic_store_explicit(&own->items[(to + i) % WR_DEQUE_SIZE], actor, memory_order_relaxed);
        }
        if (atomic_compare_exchange_strong_explicit(&victim->head, &head, head + count, memory_order_acq_rel,
                                                    memory_order_relaxed)) {
            atomic_store_explicit(&own->tail, to + count, memory_order_release);
            return (unsigned)count;
        }
    }
}

#endif
