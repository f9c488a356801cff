/* SPDX-License-Identifier: MIT */
/* actors/actor.c: creation, turns and end of an actor.
 *
 * Job        See actor.h.
 * Invariants A behaviour runs with wr_here->actor, ->behaviour and ->message set and the actor's heap entered.
 *            Collections run between behaviours. Hooks of the turn run before the actor falls asleep or is queued
 *            again. After wr_mailbox_mark_empty succeeded the actor is not touched. End: an actor with count 0 (its
 *            last count came home) and without messages, watched sources and pins ends at the close of its turn; as
 *            nobody can reach it any more, nothing can happen to it in between.
 * Threads    The scheduler that runs the actor.
 * Cost       A turn with one small message: about 10 ns beside the behaviour and the queues.
 */
#include "actors/actor.h"
#include "actors/scheduler.h"
#include "memory/arena.h"
#include <string.h>

const wr_shared_kind wr_actor_kind = {"actor", NULL};
const weir_type wr_first_actor_type = {"start", 0, 8, WEIR_TYPE_UNTYPED, NULL, NULL};

/* What an actor that somebody holds keeps beside its block: usually a heap and a few pages. Holders that receive many
 * handles look the sooner which ones they still need. */
#define HELD_ALIVE 8192u
#define LARGE_MESSAGE 512u /* bytes of a block that an idle actor does not keep */

/* ---- heap hooks ---- */

static void mark_roots(void *owner, wr_heap *heap)
{
    weir_actor *actor = owner;
    if ((actor->type->flags & WEIR_TYPE_UNTYPED) != 0)
        wr_mark_range(heap, actor->state, actor->type->size);
    else if (actor->type->refs != NULL)
        wr_mark_fields(heap, actor->state, actor->type->refs);
    for (wr_turn_hook *hook = actor->hooks; hook != NULL; hook = hook->next)
        wr_mark_word(heap, (uintptr_t)hook->object);
    wr_sources_mark(actor, heap);
}

static void mark_shared(void *owner, void *block, uintptr_t word)
{
    (void)word;
    wr_held_mark(owner, block);
}

static void give_back(void *owner)
{
    wr_held_give_back(owner);
}

static const wr_heap_hooks heap_hooks = {mark_roots, mark_shared, give_back};

wr_heap *wr_actor_heap(wr_scheduler *scheduler, weir_actor *actor)
{
    if (actor->heap == NULL) {
        wr_heap *heap;
        if (wr_heap_create(actor, &heap_hooks, scheduler->pool, scheduler->runtime->collect_after, &heap) < 0)
            return NULL;
        wr_heap_charge(heap, actor->charge);
        actor->charge = 0;
        actor->heap = heap;
    }
    return actor->heap;
}

static void collect_if_wanted(wr_scheduler *scheduler, weir_actor *actor)
{
    if (actor->heap == NULL) {
        if (WR_LIKELY(actor->charge < scheduler->runtime->collect_after))
            return;
        if (wr_actor_heap(scheduler, actor) == NULL)
            return;
        wr_heap_enter(actor->heap);
    } else if (WR_LIKELY(!wr_heap_wants_collection(actor->heap))) {
        return;
    }
    wr_heap_collect(actor->heap);
}

/* What must hold of an actor between two messages. */
static void actor_check(const wr_scheduler *scheduler, const weir_actor *actor)
{
    WR_ASSERT(actor->shared.kind == &wr_actor_kind);
    WR_ASSERT(actor->id != 0 && actor->home < scheduler->runtime->threads);
    WR_ASSERT(actor->block_size == sizeof(weir_actor) + actor->type->size);
    WR_ASSERT(actor->mailbox.head != NULL);
    WR_ASSERT(actor->mailbox.head != &actor->stub || actor->stub_queued);
    WR_ASSERT(actor->heap == NULL || actor->charge == 0);
    WR_ASSERT(actor->armed == 0 || actor->sources != NULL);
    WR_ASSERT(!actor->finishing);
    (void)scheduler;
    (void)actor;
}

/* ---- creation ---- */

weir_actor *wr_actor_create(wr_scheduler *scheduler, const weir_type *type, const void *state)
{
    size_t size = sizeof(weir_actor) + type->size;
    if (size > UINT32_MAX)
        return NULL;
    weir_actor *actor = wr_pool_take(scheduler->pool, size);
    if (actor == NULL)
        return NULL;
    memset(actor, 0, sizeof *actor);
    WR_ASSERT(((uintptr_t)actor & 15) == 0);
    actor->shared.kind = &wr_actor_kind;
    actor->shared.size = (uint32_t)size + HELD_ALIVE;
    atomic_init(&actor->shared.count, 1);
    wr_mailbox_open(&actor->mailbox, &actor->stub);
    actor->stub_queued = true;
    actor->type = type;
    actor->block_size = (uint32_t)size;
    actor->home = (uint16_t)scheduler->index;
    actor->id = 1 + atomic_fetch_add_explicit(&scheduler->runtime->next_actor_id, 1, memory_order_relaxed);
    if (type->size != 0)
        memcpy(actor->state, state, type->size);
    actor_check(scheduler, actor);
    wr_lock_take(&scheduler->actors_lock);
    WR_ASSERT((scheduler->actors_first == NULL) == (scheduler->actors_last == NULL));
    actor->all_previous = scheduler->actors_last;
    if (scheduler->actors_last != NULL)
        scheduler->actors_last->all_next = actor;
    else
        scheduler->actors_first = actor;
    scheduler->actors_last = actor;
    wr_lock_give(&scheduler->actors_lock);
    wr_counter_add(&scheduler->stats.actors_created, 1);
    return actor;
}

/* Handles in the first state become the new actor's: a declared field as in a message; in an untyped state each word
 * that is exactly a handle the spawner holds. A pointer to the spawner's own objects is refused in both. */
static int hand_over_state(weir_actor *spawner, weir_actor *actor)
{
    if ((actor->type->flags & WEIR_TYPE_UNTYPED) == 0) {
        int rc = wr_handles_raise(spawner, actor->state, actor->type->refs);
        if (rc == 0)
            wr_handles_receive(actor, actor->state, actor->type->refs);
        return rc;
    }
    size_t words = actor->type->size / sizeof(void *);
    void **state = (void **)(void *)actor->state;
    for (size_t i = 0; i < words; i++) {
        if (spawner->heap != NULL && wr_arena_holds((uintptr_t)state[i]) &&
            wr_heap_owns(spawner->heap, (uintptr_t)state[i]))
            return WEIR_EOWNED;
        if (state[i] == (void *)spawner && spawner->finishing)
            return WEIR_ESHUTDOWN; /* nobody gets a dying actor */
    }
    for (size_t i = 0; i < words; i++) {
        if (state[i] != NULL && wr_arena_holds((uintptr_t)state[i]) && wr_held_has(spawner, state[i])) {
            wr_shared_raise(state[i], 1);
            wr_held_take(actor, state[i]);
        }
    }
    return 0;
}

weir_ref weir_spawn_copy(const weir_type *type, const void *state)
{
    wr_scheduler *scheduler = wr_here;
    WR_CHECK(scheduler != NULL && scheduler->actor != NULL, "weir_spawn(%s) outside a behaviour", type->name);
    WR_CHECK(type->align <= 16, "actor type %s needs an alignment of %u; at most 16 is given", type->name, type->align);
    weir_ref none = {NULL};
    if (atomic_load_explicit(&scheduler->runtime->ending, memory_order_relaxed) != 0)
        return none;
    weir_actor *actor = wr_actor_create(scheduler, type, state);
    if (actor == NULL)
        return none;
    if (type->size != 0 && hand_over_state(scheduler->actor, actor) < 0) {
        wr_actor_free(scheduler, actor);
        return none;
    }
    wr_held_take(scheduler->actor, &actor->shared);
    weir_ref ref = {actor};
    return ref;
}

weir_ref weir_ref_check(weir_ref ref, const weir_type *type)
{
    weir_ref none = {NULL};
    return ref.actor != NULL && ref.actor->type == type ? ref : none;
}

weir_ref weir_self_any(void)
{
    weir_ref ref = {wr_here != NULL ? wr_here->actor : NULL};
    return ref;
}

weir_ref weir_self_check(const weir_type *type)
{
    WR_CHECK(wr_here != NULL && wr_here->actor != NULL, "weir_self(%s) outside a behaviour", type->name);
    WR_CHECK(wr_here->actor->type == type, "weir_self(%s) in an actor of type %s", type->name,
             wr_here->actor->type->name);
    weir_ref ref = {wr_here->actor};
    return ref;
}

uint64_t weir_actor_id(weir_ref ref)
{
    return ref.actor != NULL ? ref.actor->id : 0;
}

/* ---- messages ---- */

void wr_actor_push(wr_scheduler *scheduler, weir_actor *actor, wr_message *message)
{
    if (wr_mailbox_push(&actor->mailbox, message))
        wr_schedule(scheduler, actor, true);
}

/* A last count has come home. If meanwhile the actor gave its own handle away others hold it, and the last of them
 * sends theirs. */
static void reap(void *state, const void *msg)
{
    (void)msg;
    weir_actor *actor = WR_CONTAINER(weir_actor, state, state);
    WR_ASSERT(wr_here->actor == actor);
    uint32_t before = atomic_fetch_sub_explicit(&actor->shared.count, 1, memory_order_acq_rel);
    WR_ASSERT(before > 0);
    (void)before;
}

const weir_behaviour wr_behaviour_reap = {"actor.reap", NULL, 0, reap, NULL};

static void run_message(wr_scheduler *scheduler, weir_actor *actor, wr_message *message)
{
    const weir_behaviour *behaviour = message->behaviour;
    void *payload = wr_message_payload(message);
    WR_ASSERT(behaviour->actor == NULL || behaviour->actor == actor->type);
    scheduler->behaviour = behaviour;
    scheduler->message = message;
    if (behaviour->refs != NULL)
        wr_handles_receive(actor, payload, behaviour->refs);
    behaviour->run(actor->state, payload);
    scheduler->message = NULL;
    scheduler->behaviour = NULL;
}

/* The consumed message stays in the mailbox as its stub. A large one is exchanged for the small stub in the actor, so
 * that an idle actor holds no large block. */
static bool let_go_of_large(weir_actor *actor)
{
    if (actor->mailbox.head->block_size <= LARGE_MESSAGE || actor->stub_queued)
        return false;
    actor->stub_queued = true;
    bool asleep = wr_mailbox_push(&actor->mailbox, &actor->stub);
    WR_ASSERT(!asleep);
    (void)asleep;
    return true;
}

static void run_hooks(weir_actor *actor)
{
    while (actor->hooks != NULL) {
        wr_turn_hook *hook = actor->hooks;
        actor->hooks = hook->next;
        hook->next = NULL;
        hook->queued = 0;
        hook->run(hook);
    }
}

/* Nobody holds it, so nobody can send to it, and it waits for nothing. Its mailbox was found empty just now. */
static bool is_done(const weir_actor *actor)
{
    return atomic_load_explicit(&actor->shared.count, memory_order_acquire) == 0 && actor->armed == 0 &&
           actor->handle_pins == 0;
}

wr_turn_result wr_actor_turn(wr_scheduler *scheduler, weir_actor *actor)
{
    WR_ASSERT(scheduler->actor == NULL && scheduler == wr_here);
    WR_ASSERT((atomic_load_explicit(&actor->mailbox.tail, memory_order_relaxed) & 1) == 0);
    actor_check(scheduler, actor);
    scheduler->actor = actor;
    wr_heap_enter(actor->heap);
    wr_turn_result result = WR_TURN_MORE;
    unsigned ran = 0, unlinked = 0;
    while (ran < WR_TURN_MESSAGES_MAX) {
        bool stub_is_head = actor->mailbox.head == &actor->stub;
        wr_message *message = wr_mailbox_pop(&actor->mailbox, scheduler->pool);
        if (message != NULL) {
            if (stub_is_head)
                actor->stub_queued = false; /* displaced */
            if (message == &actor->stub)
                continue;
            ran++;
            run_message(scheduler, actor, message);
            collect_if_wanted(scheduler, actor);
            continue;
        }
        if (actor->hooks != NULL) {
            run_hooks(actor);
            collect_if_wanted(scheduler, actor);
            continue;
        }
        if (let_go_of_large(actor))
            continue;
        if (is_done(actor)) {
            result = WR_TURN_ENDED;
            break;
        }
        if (wr_mailbox_mark_empty(&actor->mailbox)) {
            result = WR_TURN_ASLEEP;
            break;
        }
        if (++unlinked > 100)
            break; /* a producer was stopped between its exchange and its link: others first */
        wr_cpu_relax();
    }
    wr_counter_add(&scheduler->stats.behaviours, ran);
    WR_ASSERT(scheduler->message == NULL && scheduler->behaviour == NULL);
    if (result == WR_TURN_MORE) {
        run_hooks(actor);
        collect_if_wanted(scheduler, actor);
    } else if (result == WR_TURN_ENDED) {
        wr_actor_finish(scheduler, actor);
        wr_actor_free(scheduler, actor);
    }
    scheduler->actor = NULL;
    wr_heap_enter(NULL);
    return result;
}

/* ---- end ---- */

static void drop_messages(wr_scheduler *scheduler, weir_actor *actor)
{
    wr_message *message;
    while ((message = wr_mailbox_pop(&actor->mailbox, scheduler->pool)) != NULL) {
        if (message == &actor->stub || message->behaviour == NULL)
            continue;
        if (message->behaviour == &wr_behaviour_reap)
            atomic_fetch_sub_explicit(&actor->shared.count, 1, memory_order_relaxed);
        else if (message->behaviour == &wr_behaviour_source)
            wr_source_message_dropped(wr_message_payload(message));
        else
            wr_handles_drop(wr_message_payload(message), message->behaviour->refs);
    }
    wr_message_give(scheduler->pool, actor->mailbox.head);
    actor->mailbox.head = &actor->stub;
}

void wr_actor_finish(wr_scheduler *scheduler, weir_actor *actor)
{
    weir_actor *before = scheduler->actor;
    WR_ASSERT(before == NULL || before == actor);
    actor_check(scheduler, actor);
    scheduler->actor = actor;
    actor->finishing = true;
    wr_heap_enter(actor->heap);
    if (actor->type->finalise != NULL)
        actor->type->finalise(actor->state);
    run_hooks(actor);
    if (actor->heap != NULL) {
        wr_heap_destroy(actor->heap);
        actor->heap = NULL;
    }
    wr_heap_enter(NULL);
    wr_sources_close_all(actor);
    drop_messages(scheduler, actor);
    wr_held_clear(actor);
    if (actor->handle_pins != 0)
        atomic_fetch_sub_explicit(&scheduler->runtime->alive, actor->handle_pins, memory_order_relaxed);
    actor->handle_pins = 0;
    WR_ASSERT(actor->sources == NULL && actor->armed == 0);
    WR_ASSERT(actor->hooks == NULL);
    WR_ASSERT(actor->held.live == 0);
    scheduler->actor = before;
}

void wr_actor_free(wr_scheduler *scheduler, weir_actor *actor)
{
    WR_ASSERT(actor->heap == NULL);
    WR_ASSERT(actor->shared.kind == &wr_actor_kind);
    wr_scheduler *home = scheduler->runtime->schedulers[actor->home];
    wr_lock_take(&home->actors_lock);
    if (actor->all_previous != NULL)
        actor->all_previous->all_next = actor->all_next;
    else
        home->actors_first = actor->all_next;
    if (actor->all_next != NULL)
        actor->all_next->all_previous = actor->all_previous;
    else
        home->actors_last = actor->all_previous;
    wr_lock_give(&home->actors_lock);
    wr_counter_add(&scheduler->stats.actors_ended, 1);
    actor->shared.kind = NULL; /* a stale handle shows itself in debug builds */
    wr_pool_give(scheduler->pool, actor, actor->block_size);
}
