/* SPDX-License-Identifier: MIT */
/* actors/scheduler.c: which actor runs next.
 *
 * Job        The loop of a scheduler thread, the queues, stealing.
 * Invariants Order of the search: the slot (at most WR_SLOT_RUNS_MAX times in a row while the ring waits, then its
 *            actor goes to the end), the ring, the shared queue, readiness, other schedulers, sleep. Every
 *            WR_LOOK_ASIDE turns the shared queue and readiness come first, so that neither starves behind a busy pair.
 *            A scheduler never goes to sleep with its slot filled: the slot is emptied first, whatever runs then.
 * Threads    The scheduler's own; wr_schedule_shared from any.
 * Cost       An actor from the slot: one exchange. From the ring: one compare-exchange.
 * Why two schedulers do not lose: a message to a sleeping actor puts it into the sender's slot and wakes nobody, so a
 *            pair that talks stays on one core. Only an actor displaced from the slot is worth a wake-up of another
 *            core. A slot is robbed only when its owner has been in one turn for a millisecond.
 */
#include "actors/scheduler.h"

WR_THREAD_LOCAL wr_scheduler *wr_here;

void wr_schedule_shared(wr_runtime *runtime, weir_actor *actor)
{
    WR_ASSERT(actor != NULL);
    actor->queue_next = NULL;
    wr_lock_take(&runtime->queue_lock);
    if (runtime->queue_last != NULL)
        runtime->queue_last->queue_next = actor;
    else
        runtime->queue_first = actor;
    runtime->queue_last = actor;
    atomic_fetch_add_explicit(&runtime->queue_length, 1, memory_order_seq_cst);
    wr_lock_give(&runtime->queue_lock);
}

static weir_actor *take_shared(wr_runtime *runtime)
{
    if (atomic_load_explicit(&runtime->queue_length, memory_order_relaxed) == 0)
        return NULL;
    wr_lock_take(&runtime->queue_lock);
    weir_actor *actor = runtime->queue_first;
    WR_ASSERT((actor == NULL) == (atomic_load_explicit(&runtime->queue_length, memory_order_relaxed) == 0));
    if (actor != NULL) {
        runtime->queue_first = actor->queue_next;
        if (runtime->queue_first == NULL)
            runtime->queue_last = NULL;
        atomic_fetch_sub_explicit(&runtime->queue_length, 1, memory_order_relaxed);
    }
    wr_lock_give(&runtime->queue_lock);
    return actor;
}

static void queue_cold(wr_scheduler *scheduler, weir_actor *actor)
{
    if (WR_UNLIKELY(!wr_deque_push(&scheduler->ring, actor)))
        wr_schedule_shared(scheduler->runtime, actor);
}

/* Is somebody asleep who could help. Relaxed looks suffice: a missed one costs at most the watcher's millisecond. */
static bool somebody_idle(const wr_runtime *runtime)
{
    return atomic_load_explicit(&runtime->idle, memory_order_relaxed) != 0;
}

void wr_schedule(wr_scheduler *scheduler, weir_actor *actor, bool warm)
{
    wr_runtime *runtime = scheduler->runtime;
    WR_ASSERT(scheduler == wr_here);
    WR_ASSERT((atomic_load_explicit(&actor->mailbox.tail, memory_order_relaxed) & 1) == 0); /* awake, the caller's */
    if (!warm) {
        queue_cold(scheduler, actor);
        if (somebody_idle(runtime))
            wr_wake_one(scheduler);
        return;
    }
    /* Only the owner fills the slot, so an empty one may be filled with a plain store. */
    if (atomic_load_explicit(&scheduler->slot, memory_order_relaxed) == NULL) {
        atomic_store_explicit(&scheduler->slot, actor, memory_order_release);
        return; /* whoever watches takes it if this turn is a long one */
    }
    weir_actor *displaced = atomic_exchange_explicit(&scheduler->slot, actor, memory_order_acq_rel);
    if (displaced == NULL)
        return;
    queue_cold(scheduler, displaced);
    if (somebody_idle(runtime))
        wr_wake_one(scheduler);
}

static weir_actor *take_slot(wr_scheduler *scheduler)
{
    if (atomic_load_explicit(&scheduler->slot, memory_order_relaxed) == NULL)
        return NULL;
    return atomic_exchange_explicit(&scheduler->slot, NULL, memory_order_acq_rel);
}

/* An actor that has had its share goes behind everybody who waits, also behind those who found the ring full. */
static void queue_last(wr_scheduler *scheduler, weir_actor *actor)
{
    if (WR_UNLIKELY(atomic_load_explicit(&scheduler->runtime->queue_length, memory_order_relaxed) != 0))
        wr_schedule_shared(scheduler->runtime, actor);
    else
        queue_cold(scheduler, actor);
}

static weir_actor *take_own(wr_scheduler *scheduler)
{
    weir_actor *actor = take_slot(scheduler);
    if (actor != NULL) {
        if (WR_LIKELY(scheduler->slot_runs < WR_SLOT_RUNS_MAX || wr_deque_empty(&scheduler->ring))) {
            scheduler->slot_runs++;
            return actor;
        }
        queue_last(scheduler, actor);
    }
    scheduler->slot_runs = 0;
    return wr_deque_pop(&scheduler->ring);
}

/* May this scheduler, which has nothing to do, take from the ring of `victim`? One that looked because a millisecond
 * was over leaves a single waiting actor to an owner that makes progress: it most likely talks to the one that runs
 * there, and the two are faster together. If it finds one waiting again and again, it takes it. */
static bool may_rob_ring(wr_scheduler *scheduler, wr_scheduler *victim, bool stuck)
{
    uint64_t waiting = wr_deque_length(&victim->ring);
    if (waiting == 0)
        return false;
    if (!scheduler->watch_expired || stuck || waiting > 1)
        return true;
    scheduler->left_alone = ++scheduler->watch_patience % WR_WATCH_PATIENCE != 0;
    return !scheduler->left_alone;
}

static weir_actor *rob(wr_scheduler *scheduler, wr_scheduler *victim)
{
    uint64_t turns = atomic_load_explicit(&victim->turns_begun, memory_order_relaxed);
    bool stuck = scheduler->watch_expired && scheduler->watched_turns[victim->index] == turns;
    scheduler->watched_turns[victim->index] = turns;
    if (may_rob_ring(scheduler, victim, stuck)) {
        unsigned count = wr_deque_steal(&scheduler->ring, &victim->ring);
        if (count > 1 && somebody_idle(scheduler->runtime))
            wr_wake_one(scheduler);
        if (count > 0)
            return wr_deque_pop(&scheduler->ring); /* NULL: a third one has taken it meanwhile */
    }
    if (stuck && atomic_load_explicit(&victim->slot, memory_order_relaxed) != NULL)
        return atomic_exchange_explicit(&victim->slot, NULL, memory_order_acq_rel);
    return NULL;
}

/* Half of somebody's ring, beginning with a random scheduler, or the slot of one that has been in the same turn since
 * this one last looked. */
static weir_actor *steal(wr_scheduler *scheduler)
{
    wr_runtime *runtime = scheduler->runtime;
    scheduler->left_alone = false;
    if (runtime->threads == 1)
        return NULL;
    unsigned start = (unsigned)(wr_random_next(&scheduler->random_scheduling) % runtime->threads);
    for (unsigned i = 0; i < runtime->threads; i++) {
        wr_scheduler *victim = runtime->schedulers[(start + i) % runtime->threads];
        weir_actor *actor = victim != scheduler ? rob(scheduler, victim) : NULL;
        if (actor != NULL) {
            wr_counter_add(&scheduler->stats.steals, 1);
            return actor;
        }
    }
    return NULL;
}

static weir_actor *next_actor(wr_scheduler *scheduler)
{
    if (++scheduler->tick >= WR_LOOK_ASIDE) {
        scheduler->tick = 0;
        if (atomic_load_explicit(&scheduler->runtime->alive, memory_order_relaxed) != 0)
            (void)wr_io_poll(scheduler, 0);
        weir_actor *actor = take_shared(scheduler->runtime);
        if (actor != NULL)
            return actor;
    }
    weir_actor *actor = take_own(scheduler);
    if (WR_LIKELY(actor != NULL))
        return actor;
    actor = take_shared(scheduler->runtime);
    if (actor != NULL)
        return actor;
    if (atomic_load_explicit(&scheduler->runtime->alive, memory_order_relaxed) != 0 && wr_io_poll(scheduler, 0) > 0) {
        actor = take_own(scheduler);
        if (actor != NULL)
            return actor;
    }
    return steal(scheduler);
}

/* Who begins to run after a sleep may have been the watcher, or the first awake of all: another sleeper takes over. */
static void hand_on_watch(wr_scheduler *scheduler)
{
    if (somebody_idle(scheduler->runtime) &&
        atomic_load_explicit(&scheduler->runtime->watcher, memory_order_seq_cst) == 0)
        wr_wake_one(scheduler);
}

void wr_scheduler_loop(wr_scheduler *scheduler)
{
    wr_runtime *runtime = scheduler->runtime;
    WR_ASSERT(wr_here == scheduler);
    for (;;) {
        if (WR_UNLIKELY(atomic_load_explicit(&runtime->stopping, memory_order_relaxed) != 0))
            break;
        weir_actor *actor = next_actor(scheduler);
        if (actor == NULL) {
            if (!wr_idle_wait(scheduler))
                break;
            continue;
        }
        if (scheduler->was_asleep) {
            scheduler->was_asleep = false;
            hand_on_watch(scheduler);
        }
        wr_counter_add(&scheduler->turns_begun, 1);
        if (wr_actor_turn(scheduler, actor) == WR_TURN_MORE)
            queue_last(scheduler, actor);
    }
    atomic_store_explicit(&runtime->finished, 1, memory_order_seq_cst);
    wr_wake_all(runtime);
}
