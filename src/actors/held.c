/* SPDX-License-Identifier: MIT */
/* actors/held.c: the held list (see held.h) and the way counts are given back.
 *
 * Job        Keep at most one count for each thing an actor may reach; give counts back, the last one of an actor by
 *            way of a message to it.
 * Invariants See held.h. What is dropped here was on a list, in a message, or the caller's own.
 * Threads    The owner's scheduler; wr_shared_drop: any scheduler.
 * Cost       See held.h; a drop is one atomic operation.
 * Tried      Counting each reference in the heap to a shared thing: a barrier on every store, and the count of a cycle
 *            never falls. One count for each holder, found again by the collection, needs neither.
 */
#include "actors/held.h"
#include "actors/actor.h"
#include "actors/scheduler.h"

/* What one entry costs the collector's patience: the thing's size, within reason. */
#define ENTRY_CHARGE 64u
#define ENTRY_CHARGE_MAX (1u << 20)

static void charge(weir_actor *actor, const wr_shared *shared)
{
    size_t bytes = ENTRY_CHARGE + (shared->size < ENTRY_CHARGE_MAX ? shared->size : ENTRY_CHARGE_MAX);
    if (actor->heap != NULL)
        wr_heap_charge(actor->heap, bytes);
    else
        actor->charge += bytes;
}

void wr_held_take(weir_actor *actor, wr_shared *shared)
{
    WR_ASSERT(shared->kind != NULL);
    WR_ASSERT(atomic_load_explicit(&shared->count, memory_order_relaxed) > 0);
    if (shared == &actor->shared || wr_ptrset_find(&actor->held, shared) != NULL) {
        wr_shared_drop(shared);
        return;
    }
    wr_ptrset_entry *entry = wr_ptrset_add(&actor->held, wr_here->pool, shared, NULL);
    if (entry == NULL)
        wr_fatal("no memory for the held list of actor %llu (%u entries)", (unsigned long long)actor->id,
                 actor->held.live);
    entry->mark = actor->heap != NULL && actor->heap->collecting; /* a finaliser got it: for the next collection */
    charge(actor, shared);
    WR_ASSERT(wr_held_has(actor, shared));
}

bool wr_held_has(const weir_actor *actor, const void *shared)
{
    return shared == actor || wr_ptrset_find(&actor->held, shared) != NULL;
}

void wr_held_mark(weir_actor *actor, const void *block)
{
    wr_ptrset_entry *entry = wr_ptrset_find(&actor->held, block);
    if (entry != NULL)
        entry->mark = 1;
}

/* Keeps a marked or pinned entry and clears its mark; gives any other back. */
static bool keep_marked(void *arg, wr_ptrset_entry *entry)
{
    (void)arg;
    if (entry->mark != 0 || entry->count != 0) {
        entry->mark = 0;
        return true;
    }
    wr_shared_drop(entry->pointer);
    return false;
}

void wr_held_give_back(weir_actor *actor)
{
    wr_ptrset_retain(&actor->held, keep_marked, NULL);
}

void wr_held_pin(weir_actor *actor, const void *shared)
{
    wr_ptrset_entry *entry = wr_ptrset_find(&actor->held, shared);
    if (entry != NULL)
        entry->count++;
    else
        actor->self_pins++; /* its own handle is never on the list */
    actor->handle_pins++;
    atomic_fetch_add_explicit(&wr_here->runtime->alive, 1, memory_order_seq_cst);
}

void wr_held_unpin(weir_actor *actor, const void *shared)
{
    wr_ptrset_entry *entry = wr_ptrset_find(&actor->held, shared);
    WR_CHECK(entry != NULL ? entry->count > 0 : actor->self_pins > 0, "weir_unpin(%p) of a handle that is not pinned",
             shared);
    if (entry != NULL)
        entry->count--;
    else
        actor->self_pins--;
    actor->handle_pins--;
    atomic_fetch_sub_explicit(&wr_here->runtime->alive, 1, memory_order_seq_cst);
}

static bool keep_none(void *arg, wr_ptrset_entry *entry)
{
    (void)arg;
    wr_shared_drop(entry->pointer);
    return false;
}

void wr_held_clear(weir_actor *actor)
{
    wr_ptrset_retain(&actor->held, keep_none, NULL);
    WR_ASSERT(actor->held.live == 0);
    wr_ptrset_clear(&actor->held, wr_here->pool);
}

/* An actor's last count goes to the actor itself, in a message: it may still be working, and only it can know that it
 * is done. */
static void drop_actor(weir_actor *actor)
{
    uint32_t count = atomic_load_explicit(&actor->shared.count, memory_order_relaxed);
    wr_scheduler *scheduler = wr_here;
    bool ending = atomic_load_explicit(&scheduler->runtime->ending, memory_order_relaxed) != 0;
    while (count > 1 || ending) {
        WR_ASSERT(count > 0);
        if (atomic_compare_exchange_weak_explicit(&actor->shared.count, &count, count - 1, memory_order_acq_rel,
                                                  memory_order_relaxed))
            return;
    }
    WR_ASSERT(count == 1);
    wr_message *message = wr_message_take(scheduler->pool, &wr_behaviour_reap, 0, 0);
    if (message == NULL)
        wr_fatal("no memory to end actor %llu", (unsigned long long)actor->id);
    wr_actor_push(scheduler, actor, message);
}

/* A user's release function may run in here, perhaps in the middle of a walk over a held list: no actor runs meanwhile,
 * so that a call that needs one trips its check. */
static void destroy(wr_shared *shared)
{
    weir_actor *actor = wr_here->actor;
    wr_heap *heap = wr_heap_current();
    wr_here->actor = NULL;
    wr_heap_enter(NULL);
    shared->kind->destroy(shared);
    wr_heap_enter(heap);
    wr_here->actor = actor;
}

void wr_shared_drop(wr_shared *shared)
{
    WR_CHECK(wr_here != NULL, "a handle was given back on a thread that runs no actors");
    if (shared->kind == &wr_actor_kind) {
        drop_actor((weir_actor *)(void *)shared);
        return;
    }
    uint32_t before = atomic_fetch_sub_explicit(&shared->count, 1, memory_order_acq_rel);
    WR_CHECK(before > 0, "a %s was given back more often than held", shared->kind->name);
    if (before == 1)
        destroy(shared);
}
