/* SPDX-License-Identifier: MIT */
/* actors/idle.c: sleep, wake-up, and the end of a run.
 *
 * Job        A scheduler without work sleeps in the poller: readiness, a wake or the watcher's deadline end the sleep.
 *            The last one awake that finds nothing that could still happen ends the run.
 * Invariants A scheduler raises `idle` first and looks for work again after that; so the last one to go idle sees all
 *            work there is. Work is added by schedulers that are awake, which run it themselves if nobody takes it: a
 *            missed wake-up costs time, never work, and the watcher bounds the time to a millisecond. While anybody
 *            runs and somebody sleeps, one sleeper is the watcher or a wake is under way. When nobody runs there is no
 *            watcher: an idle program makes no wake-ups at all. End: all are idle, no queue holds anything, `alive` is
 *            0. Only running behaviours change `alive`, so the state is final.
 * Threads    Schedulers; wr_wake_all from any and from signal handlers.
 * Cost       Sleep and wake are what the kernel takes.
 */
#include "actors/scheduler.h"

/* The last look before sleeping. In the shared queue nothing may be missed; a ring's owner is awake and runs what is
 * there. */
static bool work_for(const wr_scheduler *scheduler)
{
    const wr_runtime *runtime = scheduler->runtime;
    if (atomic_load_explicit(&runtime->queue_length, memory_order_seq_cst) != 0)
        return true;
    if (scheduler->left_alone)
        return false;
    for (unsigned i = 0; i < runtime->threads; i++) {
        if (!wr_deque_empty(&runtime->schedulers[i]->ring))
            return true;
    }
    return false;
}

void wr_wake_one(wr_scheduler *scheduler)
{
    wr_runtime *runtime = scheduler->runtime;
    if (atomic_load_explicit(&runtime->waking, memory_order_relaxed) != 0 ||
        atomic_exchange_explicit(&runtime->waking, 1, memory_order_acq_rel) != 0)
        return;
    wr_counter_add(&scheduler->stats.wakes, 1);
    wr_poller_wake(runtime->poller);
}

void wr_wake_all(wr_runtime *runtime)
{
    for (unsigned i = 0; i < runtime->threads; i++)
        wr_poller_wake(runtime->poller);
}

static bool run_is_over(const wr_runtime *runtime)
{
    return atomic_load_explicit(&runtime->finished, memory_order_seq_cst) != 0 ||
           atomic_load_explicit(&runtime->stopping, memory_order_seq_cst) != 0;
}

/* How long this sleeper may sleep: for ever, or as the watcher. */
static int64_t choose_timeout(wr_scheduler *scheduler, bool *out_watcher)
{
    wr_runtime *runtime = scheduler->runtime;
    uint32_t none = 0;
    *out_watcher = atomic_compare_exchange_strong_explicit(&runtime->watcher, &none, 1, memory_order_seq_cst,
                                                           memory_order_seq_cst);
    if (!*out_watcher)
        return -1;
    if (atomic_load_explicit(&runtime->idle, memory_order_seq_cst) < runtime->threads)
        return WR_WATCH_NS;
    /* Nobody runs. Who begins to run later sees that there is no watcher and wakes one. */
    atomic_store_explicit(&runtime->watcher, 0, memory_order_seq_cst);
    *out_watcher = false;
    return -1;
}

bool wr_idle_wait(wr_scheduler *scheduler)
{
    wr_runtime *runtime = scheduler->runtime;
    WR_ASSERT(scheduler->actor == NULL);
    /* work_for does not look there */
    WR_ASSERT(atomic_load_explicit(&scheduler->slot, memory_order_relaxed) == NULL);
    scheduler->watch_expired = false;
    uint32_t idle = atomic_fetch_add_explicit(&runtime->idle, 1, memory_order_seq_cst) + 1;
    WR_ASSERT(idle >= 1 && idle <= runtime->threads);
    if (work_for(scheduler)) {
        atomic_fetch_sub_explicit(&runtime->idle, 1, memory_order_seq_cst);
        return true;
    }
    WR_ASSERT(wr_deque_empty(&scheduler->ring)); /* its own work would have been seen */
    if (idle == runtime->threads && atomic_load_explicit(&runtime->alive, memory_order_seq_cst) == 0)
        atomic_store_explicit(&runtime->finished, 1, memory_order_seq_cst);
    if (run_is_over(runtime))
        return false; /* stays counted as idle: nobody waits for it any more */
    bool watcher;
    int64_t timeout_ns = choose_timeout(scheduler, &watcher);
    wr_poll_event events[WR_POLL_EVENTS];
    wr_counter_add(&scheduler->stats.sleeps, 1);
    int count = wr_poller_wait(runtime->poller, events, WR_POLL_EVENTS, timeout_ns);
    WR_ASSERT(count >= 0 && count <= WR_POLL_EVENTS);
    scheduler->was_asleep = true;
    atomic_fetch_sub_explicit(&runtime->idle, 1, memory_order_seq_cst);
    if (watcher)
        atomic_store_explicit(&runtime->watcher, 0, memory_order_seq_cst);
    bool woken = atomic_exchange_explicit(&runtime->waking, 0, memory_order_seq_cst) != 0;
    scheduler->watch_expired = watcher && count == 0 && !woken;
    if (run_is_over(runtime))
        return false;
    wr_io_deliver(scheduler, events, count);
    return true;
}
