/* SPDX-License-Identifier: MIT */
/* platform/poll_wait.h: what both poller backends share: who waits, which wakes are still owed, and deadlines.
 *
 * Job        Count wakes in user space, so that each wake frees a waiter of its own. The system's own counters cannot:
 *            two writes to an eventfd before anybody looked become one edge, and one of the two threads the kernel woke
 *            goes back to sleep.
 * Invariants One word holds both numbers, so that "owed while somebody waits" is decided at one instant. owed <= max(1,
 *            waiting) when a wake is posted: wakes that nobody waits for melt into one. A thread is counted in
 *            `waiting` from the instant it saw that nothing is owed until it leaves or takes a wake. After posting, the
 *            caller makes the system wake one waiter (eventfd, pipe); after taking one while more are owed and others
 *            wait, the taker does.
 * Threads    Any; posting also from signal handlers (a compare-and-swap loop, no lock).
 * Cost       One atomic operation to enter, one to leave.
 */
#ifndef WR_PLATFORM_POLL_WAIT_H
#define WR_PLATFORM_POLL_WAIT_H

#include "platform/check.h"
#include "platform/os.h"

typedef struct wr_poll_waiters {
    _Atomic uint64_t
        state; /* high half: wakes owed; low half: threads waiting. Release by the poster, acquire by the taker. */
} wr_poll_waiters;

#define WR_POLL_ONE_WAITING UINT64_C(1)
#define WR_POLL_ONE_OWED (UINT64_C(1) << 32)

WR_INLINE uint32_t wr_poll_waiting(uint64_t state)
{
    return (uint32_t)state;
}

WR_INLINE uint32_t wr_poll_owed(uint64_t state)
{
    return (uint32_t)(state >> 32);
}

/* Before sleeping. True: a wake was owed and is taken, do not sleep. False: counted as waiting from now on. */
WR_INLINE bool wr_poll_waiters_enter(wr_poll_waiters *waiters)
{
    uint64_t state = atomic_load_explicit(&waiters->state, memory_order_relaxed);
    uint64_t next;
    do {
        next = wr_poll_owed(state) > 0 ? state - WR_POLL_ONE_OWED : state + WR_POLL_ONE_WAITING;
    } while (!atomic_compare_exchange_weak_explicit(&waiters->state, &state, next, memory_order_acq_rel,
                                                    memory_order_relaxed));
    return wr_poll_owed(state) > 0;
}

/* By a thread that waits and was told to look: true when a wake was owed, which is taken and ends the waiting. */
WR_INLINE bool wr_poll_waiters_take(wr_poll_waiters *waiters)
{
    uint64_t state = atomic_load_explicit(&waiters->state, memory_order_relaxed);
    do {
        WR_ASSERT(wr_poll_waiting(state) > 0);
        if (wr_poll_owed(state) == 0)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&waiters->state, &state,
                                                    state - WR_POLL_ONE_OWED - WR_POLL_ONE_WAITING,
                                                    memory_order_acq_rel, memory_order_relaxed));
    return true;
}

/* By a thread that waits: it returns for another reason than a wake. */
WR_INLINE void wr_poll_waiters_leave(wr_poll_waiters *waiters)
{
    uint64_t before = atomic_fetch_sub_explicit(&waiters->state, WR_POLL_ONE_WAITING, memory_order_acq_rel);
    WR_ASSERT(wr_poll_waiting(before) > 0);
    (void)before;
}

/* Owes one more wake; true when the system has to be told. The word is written even when enough is owed already:
 * whoever takes the wake that stands for this one must see what our caller wrote. */
WR_INLINE bool wr_poll_waiters_post(wr_poll_waiters *waiters)
{
    uint64_t state = atomic_load_explicit(&waiters->state, memory_order_relaxed);
    uint64_t next;
    do {
        uint32_t most = wr_poll_waiting(state) > 0 ? wr_poll_waiting(state) : 1;
        next = wr_poll_owed(state) < most ? state + WR_POLL_ONE_OWED : state;
    } while (!atomic_compare_exchange_weak_explicit(&waiters->state, &state, next, memory_order_acq_rel,
                                                    memory_order_relaxed));
    return next != state;
}

/* Is a wake owed that a sleeping thread has to be told of? */
WR_INLINE bool wr_poll_waiters_stranded(wr_poll_waiters *waiters)
{
    uint64_t state = atomic_load_explicit(&waiters->state, memory_order_acquire);
    return wr_poll_owed(state) > 0 && wr_poll_waiting(state) > 0;
}

/* ---- deadlines: < 0 never, otherwise a time of wr_clock_ns ---- */

WR_INLINE int64_t wr_poll_deadline(int64_t timeout_ns)
{
    int64_t deadline;
    if (timeout_ns <= 0)
        return timeout_ns;
    return WR_ADD_OVERFLOWS((int64_t)wr_clock_ns(), timeout_ns, &deadline) ? -1 : deadline;
}

/* What is left until the deadline: 0 when it is over, < 0 when there is none. */
WR_INLINE int64_t wr_poll_remaining(int64_t deadline)
{
    if (deadline <= 0)
        return deadline;
    int64_t now = (int64_t)wr_clock_ns();
    return now >= deadline ? 0 : deadline - now;
}

#endif
