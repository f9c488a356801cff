/* SPDX-License-Identifier: MIT */
/* actors/io.c: from a ready descriptor to a behaviour of its owner.
 *
 * Job        The table that turns a poller's key back into a source, the message that carries readiness, opening,
 *            arming and closing of sources.
 * Invariants A key is generation and index, never a pointer; the entry's generation changes when the source closes, so
 *            a late event finds nobody. `ready` holds the events not yet handled and UNDER_WAY while a message of the
 *            source is queued: at most one is. A source whose message is under way when it closes is freed when the
 *            message arrives (or is dropped). alive counts the sources with an interest, over all actors; actor->armed
 *            those of one actor.
 * Threads    The table: any scheduler, under io_lock. A source: its owner's scheduler, except `ready`.
 * Cost       An event: the lock once a batch, an atomic or, a message.
 */
#include "actors/io.h"
#include "actors/scheduler.h"

#define UNDER_WAY 0x80000000u
#define NO_ENTRY UINT32_MAX

struct wr_source {
    weir_actor *owner;
    wr_source *next, *previous; /* the owner's list */
    void *object;
    wr_source_ready *on_ready;
    int fd;
    uint32_t index, generation;
    unsigned interest;
    bool closed;
    _Atomic uint32_t ready;
};

typedef struct source_message {
    wr_source *source;
} source_message;

static uint64_t key_of(const wr_source *source)
{
    return (uint64_t)source->generation << 32 | source->index;
}

/* What must hold of a source that its owner uses. */
static void source_check(const wr_source *source)
{
    WR_ASSERT(wr_here != NULL && source->owner == wr_here->actor);
    WR_ASSERT(!source->closed);
    WR_ASSERT(source->previous != NULL || source->owner->sources == source);
    WR_ASSERT(source->next == NULL || source->next->previous == source);
    WR_ASSERT(source->interest == 0 || source->owner->armed > 0);
    (void)source;
}

static void source_free(wr_scheduler *scheduler, wr_source *source)
{
    wr_pool_give(scheduler->pool, source, sizeof *source);
}

/* ---- events ---- */

/* Adds events; the first since the last handling sends the message. Under io_lock, or by the owner. */
static void add_events(wr_scheduler *scheduler, wr_source *source, uint32_t events)
{
    WR_ASSERT(!source->closed);
    uint32_t before = atomic_fetch_or_explicit(&source->ready, events | UNDER_WAY, memory_order_acq_rel);
    if ((before & UNDER_WAY) != 0)
        return;
    wr_message *message = wr_message_take(scheduler->pool, &wr_behaviour_source, sizeof(source_message), 0);
    if (message == NULL)
        wr_fatal("no memory to tell actor %llu that descriptor %d is ready", (unsigned long long)source->owner->id,
                 source->fd);
    *(source_message *)wr_message_payload(message) = (source_message){source};
    wr_actor_push(scheduler, source->owner, message);
}

static void source_behaviour(void *state, const void *msg)
{
    wr_source *source = ((const source_message *)msg)->source;
    (void)state;
    uint32_t events = atomic_exchange_explicit(&source->ready, 0, memory_order_acq_rel) & ~UNDER_WAY;
    if (source->closed) {
        source_free(wr_here, source);
        return;
    }
    WR_ASSERT(source->owner == wr_here->actor);
    events &= source->interest | WR_SOURCE_POSTED | (source->interest != 0 ? WR_POLL_HANGUP : 0);
    if (events != 0)
        source->on_ready(source->object, events);
}

const weir_behaviour wr_behaviour_source = {"stream.ready", NULL, sizeof(source_message), source_behaviour, NULL};

void wr_source_message_dropped(void *payload)
{
    wr_source *source = ((source_message *)payload)->source;
    WR_ASSERT(source->closed);
    source_free(wr_here, source);
}

void wr_io_deliver(wr_scheduler *scheduler, const wr_poll_event *events, int count)
{
    wr_runtime *runtime = scheduler->runtime;
    if (count == 0)
        return;
    wr_lock_take(&runtime->io_lock);
    for (int i = 0; i < count; i++) {
        uint32_t index = (uint32_t)events[i].key, generation = (uint32_t)(events[i].key >> 32);
        WR_ASSERT(index < runtime->io_capacity);
        wr_source *source = runtime->io_entries[index].source;
        if (source != NULL && source->generation == generation)
            add_events(scheduler, source, events[i].events);
    }
    wr_lock_give(&runtime->io_lock);
}

int wr_io_poll(wr_scheduler *scheduler, int64_t timeout_ns)
{
    wr_poll_event events[WR_POLL_EVENTS];
    wr_counter_add(&scheduler->stats.polls, 1);
    int count = wr_poller_wait(scheduler->runtime->poller, events, WR_POLL_EVENTS, timeout_ns);
    wr_io_deliver(scheduler, events, count);
    return count;
}

/* ---- the table ---- */

static int table_grow(wr_runtime *runtime)
{
    uint32_t old = runtime->io_capacity, capacity = old == 0 ? 64 : old * 2;
    if (capacity > 1u << 24)
        return WEIR_EMFILE;
    wr_io_entry *entries = wr_os_realloc(runtime->io_entries, old * sizeof *entries, capacity * sizeof *entries);
    if (entries == NULL)
        return WEIR_ENOMEM;
    for (uint32_t i = capacity; i-- > old;) {
        entries[i] = (wr_io_entry){NULL, 0, runtime->io_free};
        runtime->io_free = i;
    }
    runtime->io_entries = entries;
    runtime->io_capacity = capacity;
    return 0;
}

static int table_add(wr_runtime *runtime, wr_source *source)
{
    int rc = 0;
    wr_lock_take(&runtime->io_lock);
    if (runtime->io_capacity == 0)
        runtime->io_free = NO_ENTRY;
    if (runtime->io_free == NO_ENTRY)
        rc = table_grow(runtime);
    if (rc == 0) {
        wr_io_entry *entry = &runtime->io_entries[runtime->io_free];
        source->index = runtime->io_free;
        source->generation = entry->generation;
        runtime->io_free = entry->free_next;
        entry->source = source;
    }
    wr_lock_give(&runtime->io_lock);
    return rc;
}

static void table_remove(wr_runtime *runtime, wr_source *source)
{
    wr_lock_take(&runtime->io_lock);
    wr_io_entry *entry = &runtime->io_entries[source->index];
    WR_ASSERT(entry->source == source && entry->generation == source->generation);
    entry->source = NULL;
    entry->generation++;
    entry->free_next = runtime->io_free;
    runtime->io_free = source->index;
    wr_lock_give(&runtime->io_lock);
}

void wr_io_close(wr_runtime *runtime)
{
    for (uint32_t i = 0; i < runtime->io_capacity; i++)
        WR_ASSERT(runtime->io_entries[i].source == NULL);
    wr_os_free(runtime->io_entries);
    runtime->io_entries = NULL;
    runtime->io_capacity = 0;
}

/* ---- sources ---- */

static void count_interest(wr_source *source, unsigned interest)
{
    if ((source->interest != 0) == (interest != 0))
        return;
    wr_runtime *runtime = wr_here->runtime;
    if (interest != 0) {
        source->owner->armed++;
        atomic_fetch_add_explicit(&runtime->alive, 1, memory_order_seq_cst);
    } else {
        WR_ASSERT(source->owner->armed > 0);
        source->owner->armed--;
        atomic_fetch_sub_explicit(&runtime->alive, 1, memory_order_seq_cst);
    }
}

int wr_source_open(int fd, void *object, wr_source_ready *on_ready, unsigned interest, wr_source **out)
{
    wr_scheduler *scheduler = wr_here;
    *out = NULL;
    WR_CHECK(scheduler != NULL && scheduler->actor != NULL, "a descriptor was opened outside a behaviour");
    WR_ASSERT(on_ready != NULL);
    weir_actor *actor = scheduler->actor;
    if (actor->finishing)
        return WEIR_ESHUTDOWN;
    wr_source *source = wr_pool_take(scheduler->pool, sizeof *source);
    if (source == NULL)
        return WEIR_ENOMEM;
    *source = (wr_source){.owner = actor, .object = object, .on_ready = on_ready, .fd = fd};
    int rc = table_add(scheduler->runtime, source);
    if (rc == 0 && fd >= 0) {
        rc = wr_poller_add(scheduler->runtime->poller, fd, key_of(source), interest);
        if (rc < 0)
            table_remove(scheduler->runtime, source);
    }
    if (rc < 0) {
        source_free(scheduler, source);
        return rc;
    }
    count_interest(source, interest);
    source->interest = interest;
    source->next = actor->sources;
    if (actor->sources != NULL)
        actor->sources->previous = source;
    actor->sources = source;
    source_check(source);
    *out = source;
    return 0;
}

void wr_source_arm(wr_source *source, unsigned interest)
{
    source_check(source);
    WR_ASSERT((interest & ~(WR_POLL_IN | WR_POLL_OUT | WR_POLL_HANGUP)) == 0);
    wr_poller *poller = wr_here->runtime->poller;
    if (source->fd >= 0 && (interest != source->interest || wr_poller_rearm_needed(poller))) {
        int rc = wr_poller_arm(poller, source->fd, key_of(source), interest);
        if (rc < 0)
            wr_fatal("descriptor %d cannot be watched: %s", source->fd, weir_strerror(rc));
    }
    count_interest(source, interest);
    source->interest = interest;
}

void wr_source_post(wr_source *source)
{
    source_check(source);
    add_events(wr_here, source, WR_SOURCE_POSTED);
}

void wr_source_close(wr_source *source)
{
    wr_scheduler *scheduler = wr_here;
    source_check(source);
    table_remove(scheduler->runtime, source);
    if (source->fd >= 0)
        (void)wr_poller_remove(scheduler->runtime->poller, source->fd);
    count_interest(source, 0);
    source->interest = 0;
    source->closed = true;
    source->object = NULL;
    weir_actor *actor = source->owner;
    if (source->previous != NULL)
        source->previous->next = source->next;
    else
        actor->sources = source->next;
    if (source->next != NULL)
        source->next->previous = source->previous;
    if ((atomic_load_explicit(&source->ready, memory_order_acquire) & UNDER_WAY) == 0)
        source_free(scheduler, source);
}

void wr_sources_close_all(weir_actor *actor)
{
    while (actor->sources != NULL)
        wr_source_close(actor->sources);
}

void wr_sources_mark(weir_actor *actor, wr_heap *heap)
{
    for (wr_source *source = actor->sources; source != NULL; source = source->next) {
        if (source->interest != 0 || atomic_load_explicit(&source->ready, memory_order_relaxed) != 0)
            wr_mark_word(heap, (uintptr_t)source->object);
    }
}

void wr_turn_hook_add(wr_turn_hook *hook)
{
    weir_actor *actor = wr_here->actor;
    WR_ASSERT(actor != NULL && hook->run != NULL);
    if (hook->queued)
        return;
    hook->queued = 1;
    hook->next = actor->hooks;
    actor->hooks = hook;
}

void wr_turn_hook_cancel(wr_turn_hook *hook)
{
    if (!hook->queued)
        return;
    wr_turn_hook **link = &wr_here->actor->hooks;
    while (*link != hook) {
        WR_ASSERT(*link != NULL);
        link = &(*link)->next;
    }
    *link = hook->next;
    hook->next = NULL;
    hook->queued = 0;
}

int wr_in_behaviour(void)
{
    return wr_here != NULL && wr_here->actor != NULL;
}

weir_actor *wr_current_actor(void)
{
    return wr_here != NULL ? wr_here->actor : NULL;
}

int wr_is_ending(void)
{
    return wr_here == NULL || wr_here->actor == NULL || wr_here->actor->finishing;
}
