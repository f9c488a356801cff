/* SPDX-License-Identifier: MIT */
/* actors/scheduler.h: the run and its schedulers.
 *
 * Job        A scheduler is a thread that gives actors their turns. Its queues: the last-in slot (the actor that got a
 *            message last: its data is warm), a ring, and the run's shared queue for overflow and for messages from
 *            outside. Idle schedulers steal, then sleep in the poller.
 * Invariants Slot: filled by its owner; emptied by exchange, by the owner or by a thief who saw the owner stuck in one
 *            turn for a millisecond. `idle` counts schedulers that look for an end of the run or sleep; who makes it
 *            complete and finds no work and nothing watched or pinned ends the run. `watcher`: at most one sleeper
 *            keeps a 1 ms deadline, and only while another scheduler is running.
 * Threads    Fields are marked; `owner` means the scheduler's own thread.
 * Cost       See docs/internals/actors.md.
 */
#ifndef WR_ACTORS_SCHEDULER_H
#define WR_ACTORS_SCHEDULER_H

#include "actors/actor.h"
#include "actors/deque.h"
#include "actors/services.h"
#include "memory/pool.h"
#include "platform/os.h"
#include "platform/poll.h"
#include "platform/random.h"
#include "weir/runtime.h"

#define WR_SCHEDULERS_MAX 64
#define WR_SLOT_RUNS_MAX 3  /* turns from the slot in a row while others wait */
#define WR_LOOK_ASIDE 61    /* every so many turns the shared queue and the poller come first */
#define WR_WATCH_NS 1000000 /* deadline of the watcher */
#define WR_WATCH_PATIENCE 8 /* deadlines at which a single waiting actor was seen before it is taken */
#define WR_POLL_EVENTS 128

typedef struct wr_scheduler_stats { /* written by the owner, read by anybody */
    _Atomic uint64_t actors_created, actors_ended, messages, behaviours, steals, wakes, sleeps, polls;
} wr_scheduler_stats;

struct wr_scheduler {
    wr_runtime *runtime;
    weir_actor *actor; /* owner: running now */
    const weir_behaviour *behaviour;
    const wr_message *message;
    wr_pool_cache *pool; /* owner: &pool_cache */
    wr_pool_cache pool_cache;
    unsigned index;
    unsigned tick, slot_runs; /* owner */
    wr_random random_scheduling, random_user;
    wr_scheduler_stats stats;
    wr_counters counters;
    void *stream_block; /* wr_scheduler_slot */
    wr_thread thread;
    bool was_asleep;                           /* owner: has run nobody since its last sleep */
    bool watch_expired;                        /* owner: its last sleep was the watcher's and ran to its deadline */
    bool left_alone;                           /* owner: it saw a waiting actor and did not take it */
    unsigned watch_patience;                   /* owner: how often it left a single waiting actor alone */
    uint64_t watched_turns[WR_SCHEDULERS_MAX]; /* owner: turns the others had begun when it last looked */
    wr_lock actors_lock;                       /* guards the list below */
    weir_actor *actors_first, *actors_last;
    WR_ALIGNED(WR_CACHE_LINE) _Atomic(weir_actor *) slot;
    _Atomic uint64_t turns_begun; /* owner writes: how the watcher sees that it is stuck */
    wr_deque ring;
};

typedef struct wr_io_entry { /* a descriptor's place: key = generation << 32 | index */
    wr_source *source;
    uint32_t generation;
    uint32_t free_next;
} wr_io_entry;

struct wr_runtime {
    unsigned threads;
    wr_scheduler *schedulers[WR_SCHEDULERS_MAX];
    wr_poller *poller;
    size_t buffer_inline_max, collect_after;
    int exit_code;
    _Atomic uint64_t next_actor_id;
    void (*_Atomic release_stream_block)(void *value);

    wr_lock queue_lock; /* guards the shared queue */
    weir_actor *queue_first, *queue_last;
    _Atomic uint32_t queue_length;

    wr_lock io_lock; /* guards the table below */
    wr_io_entry *io_entries;
    uint32_t io_capacity, io_free;

    WR_ALIGNED(WR_CACHE_LINE) _Atomic uint32_t idle;
    _Atomic uint32_t watcher;  /* 1: somebody keeps the deadline */
    _Atomic uint32_t waking;   /* 1: a wake is under way: no need for another */
    _Atomic uint32_t stopping; /* weir_stop was called */
    _Atomic uint32_t finished; /* nothing can happen any more, or stopping */
    _Atomic uint32_t ending;   /* schedulers are gone, actors are being finished */
    /* watched sources and pinned handles: what keeps a run going when no actor is runnable */
    _Atomic int64_t alive;
};

extern WR_THREAD_LOCAL wr_scheduler *wr_here; /* NULL on threads that are no schedulers */

void wr_scheduler_loop(wr_scheduler *scheduler);
/* Queues an actor that is the caller's and not in a queue. `warm`: it just got a message from the running actor: the
 * slot. */
void wr_schedule(wr_scheduler *scheduler, weir_actor *actor, bool warm);
void wr_schedule_shared(wr_runtime *runtime, weir_actor *actor); /* from anywhere */

/* idle.c */
void wr_wake_one(wr_scheduler *scheduler);
/* Sleeps until there may be work. False: the run is over. */
bool wr_idle_wait(wr_scheduler *scheduler);
void wr_wake_all(wr_runtime *runtime);

/* io.c: looks for readiness (timeout 0) or sleeps for it; delivers what came. Returns how many events. */
int wr_io_poll(wr_scheduler *scheduler, int64_t timeout_ns);
void wr_io_deliver(wr_scheduler *scheduler, const wr_poll_event *events, int count);
void wr_io_close(wr_runtime *runtime);
void wr_sources_close_all(weir_actor *actor);
void wr_sources_mark(weir_actor *actor, wr_heap *heap);
extern const weir_behaviour wr_behaviour_source; /* carries readiness to the owner of a source */
void wr_source_message_dropped(void *payload);   /* its message will not be received */

#endif
