/* SPDX-License-Identifier: MIT */
/* actors/runtime.c: a run from its options to its last finaliser.
 *
 * Job        weir_run, weir_stop, options and their environment variables, statistics, pins, and the services for the
 *            layers above.
 * Invariants One run at a time: `current` is set by the run that won. Everything a run made is gone when it returns:
 *            threads, actors, finalisers run, descriptors closed, memory back at the arena and the arena closed. End of
 *            the run: schedulers are joined first; then every actor is finished (user code, counts), then every actor
 *            is freed.
 * Threads    weir_run: the program's. weir_stop, weir_get_stats, clocks: any; `visitors` keeps the run from going away
 *            under them.
 * Cost       Start and end: threads, one poller, the reservation.
 */
#include "actors/scheduler.h"
#include "memory/arena.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Atomic(wr_runtime *) current; /* the run under way, for callers that are not part of it */
static _Atomic uint32_t busy;         /* 1 from the first line of weir_run to its last */
static _Atomic uint32_t visitors;     /* calls that look at `current` */

/* ---- options ---- */

static WR_COLD int refuse(const char *name, const char *value, const char *wanted)
{
    char line[256];
    int size = snprintf(line, sizeof line, "weir: %s is \"%s\", but must be %s\n", name, value, wanted);
    wr_os_write_stderr(line, size < (int)sizeof line ? (size_t)size : sizeof line - 1);
    return WEIR_EINVAL;
}

/* A number from the options, else from the environment, else `usual`. */
static int choose_number(const char *name, uint64_t option, uint64_t usual, uint64_t low, uint64_t high, uint64_t *out)
{
    char text[32], wanted[64];
    const char *from_environment = wr_os_getenv(name);
    uint64_t value = usual;
    snprintf(wanted, sizeof wanted, "a number from %llu to %llu", (unsigned long long)low, (unsigned long long)high);
    if (option != 0) {
        value = option;
    } else if (from_environment != NULL && *from_environment != '\0') {
        char *end;
        errno = 0;
        value = strtoull(from_environment, &end, 10);
        if (*end != '\0' || errno != 0 || *from_environment == '-')
            return refuse(name, from_environment, wanted);
        if (value < low || value > high)
            return refuse(name, from_environment, wanted);
    }
    if (value < low || value > high) {
        snprintf(text, sizeof text, "%llu", (unsigned long long)value);
        return refuse(name, text, wanted);
    }
    *out = value;
    return 0;
}

static int choose_backend(const char *option, wr_poll_backend *out)
{
    const char *name = option != NULL ? option : wr_os_getenv("WEIR_POLL");
    if (name == NULL || *name == '\0')
        *out = WR_POLL_BEST;
    else if (strcmp(name, "epoll") == 0)
        *out = WR_POLL_EPOLL;
    else if (strcmp(name, "poll") == 0)
        *out = WR_POLL_POLL;
    else
        return refuse("WEIR_POLL", name, "epoll or poll");
    return 0;
}

static int read_options(wr_runtime *runtime, const weir_options *given, wr_poll_backend *backend)
{
    static const weir_options none;
    const weir_options *options = given != NULL ? given : &none;
    bool outside = options->buffer_inline_max == WEIR_BUFFERS_OUTSIDE;
    unsigned cpus = wr_os_cpu_count();
    uint64_t threads = 0, inline_max = 0, collect_after = 0;
    int rc = choose_number("WEIR_THREADS", options->threads, cpus < WR_SCHEDULERS_MAX ? cpus : WR_SCHEDULERS_MAX, 1,
                           WR_SCHEDULERS_MAX, &threads);
    if (rc == 0)
        rc = choose_number("WEIR_BUFFER_INLINE_MAX", outside ? 1 : options->buffer_inline_max, 2048, 0, 16384,
                           &inline_max);
    if (rc == 0)
        rc = choose_number("WEIR_COLLECT_AFTER", options->collect_after, (size_t)1 << 20, 4096, (uint64_t)1 << 36,
                           &collect_after);
    if (rc == 0)
        rc = choose_backend(options->poll_backend, backend);
    runtime->threads = (unsigned)threads;
    runtime->buffer_inline_max = outside ? 0 : (size_t)inline_max;
    runtime->collect_after = (size_t)collect_after;
    return rc;
}

/* ---- what reports and the heap ask of the actor layer ---- */

static void describe_context(char *out, size_t size)
{
    const wr_scheduler *scheduler = wr_here;
    if (scheduler == NULL || scheduler->actor == NULL) {
        snprintf(out, size, "no actor was running on this thread");
        return;
    }
    snprintf(out, size, "actor %llu (%s), %s%s, scheduler %u", (unsigned long long)scheduler->actor->id,
             scheduler->actor->type->name, scheduler->behaviour != NULL ? "behaviour " : "between behaviours",
             scheduler->behaviour != NULL ? scheduler->behaviour->name : "", scheduler->index);
}

static wr_heap *provide_heap(void)
{
    wr_scheduler *scheduler = wr_here;
    if (scheduler == NULL || scheduler->actor == NULL)
        return NULL;
    wr_heap *heap = wr_actor_heap(scheduler, scheduler->actor);
    if (heap == NULL)
        wr_fatal("no memory for the heap of actor %llu", (unsigned long long)scheduler->actor->id);
    wr_heap_enter(heap);
    return heap;
}

/* ---- start ---- */

typedef struct start_message {
    void (*start)(void *arg);
    void *arg;
} start_message;

static void run_start(void *state, const void *msg)
{
    const start_message *message = msg;
    (void)state;
    message->start(message->arg);
}

static const weir_behaviour behaviour_start = {"start", &wr_first_actor_type, sizeof(start_message), run_start, NULL};

static void scheduler_thread(void *arg)
{
    wr_scheduler *scheduler = arg;
    WR_ASSERT(wr_here == NULL);
    wr_here = scheduler;
    wr_heap_enter(NULL);
    wr_scheduler_loop(scheduler);
    wr_here = NULL;
}

static void free_schedulers(wr_runtime *runtime)
{
    for (unsigned i = 0; i < runtime->threads; i++) {
        wr_scheduler *scheduler = runtime->schedulers[i];
        if (scheduler == NULL)
            continue;
        wr_pool_cache_flush(scheduler->pool);
        wr_os_free(scheduler);
        runtime->schedulers[i] = NULL;
    }
}

static int make_schedulers(wr_runtime *runtime)
{
    uint64_t seed = wr_random_seed();
    for (unsigned i = 0; i < runtime->threads; i++) {
        wr_scheduler *scheduler = wr_os_alloc(sizeof *scheduler);
        if (scheduler == NULL)
            return WEIR_ENOMEM;
        runtime->schedulers[i] = scheduler;
        scheduler->runtime = runtime;
        scheduler->index = i;
        scheduler->random_scheduling = wr_random_stream(seed, 2 * i);
        scheduler->random_user = wr_random_stream(seed, 2 * i + 1);
        scheduler->pool = &scheduler->pool_cache;
        wr_pool_cache_init(scheduler->pool);
    }
    return 0;
}

/* Starts the other threads. On failure those that run are ended again. */
static int start_threads(wr_runtime *runtime)
{
    for (unsigned i = 1; i < runtime->threads; i++) {
        char name[16];
        snprintf(name, sizeof name, "weir-%u", i);
        int rc = wr_thread_start(&runtime->schedulers[i]->thread, name, scheduler_thread, runtime->schedulers[i]);
        if (rc < 0) {
            atomic_store_explicit(&runtime->stopping, 1, memory_order_seq_cst);
            wr_wake_all(runtime);
            while (--i >= 1)
                wr_thread_join(runtime->schedulers[i]->thread);
            return rc;
        }
    }
    return 0;
}

/* The first actor with its message, not scheduled yet: nobody runs `start` before all threads are there. */
static int make_first_actor(wr_runtime *runtime, void (*start)(void *arg), void *arg, weir_actor **out)
{
    wr_scheduler *scheduler = runtime->schedulers[0];
    weir_actor *actor = wr_actor_create(scheduler, &wr_first_actor_type, NULL);
    wr_message *message = wr_message_take(scheduler->pool, &behaviour_start, sizeof(start_message), 0);
    if (actor == NULL || message == NULL)
        return WEIR_ENOMEM;
    *(start_message *)wr_message_payload(message) = (start_message){start, arg};
    (void)wr_mailbox_push(&actor->mailbox, message);
    wr_shared_drop(&actor->shared); /* nobody holds it: it ends when it has nothing more to do */
    *out = actor;
    return 0;
}

/* ---- end ---- */

/* All threads but this one are gone. User code may run in finalisers and release functions; what it sends is refused.
 * */
static void end_actors(wr_runtime *runtime)
{
    wr_scheduler *scheduler = runtime->schedulers[0];
    WR_ASSERT(scheduler == wr_here && scheduler->actor == NULL);
    atomic_store_explicit(&runtime->ending, 1, memory_order_seq_cst);
    for (unsigned i = 0; i < runtime->threads; i++) {
        for (weir_actor *actor = runtime->schedulers[i]->actors_first; actor != NULL; actor = actor->all_next)
            wr_actor_finish(scheduler, actor);
    }
    for (unsigned i = 0; i < runtime->threads; i++) {
        while (runtime->schedulers[i]->actors_first != NULL)
            wr_actor_free(scheduler, runtime->schedulers[i]->actors_first);
    }
    for (unsigned i = 0; i < runtime->threads; i++) {
        if (runtime->schedulers[i]->stream_block != NULL && runtime->release_stream_block != NULL)
            runtime->release_stream_block(runtime->schedulers[i]->stream_block);
    }
}

static int run(wr_runtime *runtime, wr_poll_backend backend, void (*start)(void *arg), void *arg)
{
    int rc = make_schedulers(runtime);
    if (rc == 0)
        rc = wr_poller_open(backend, &runtime->poller);
    if (rc < 0) {
        free_schedulers(runtime);
        return rc;
    }
    wr_here = runtime->schedulers[0];
    wr_heap_enter(NULL);
    weir_actor *first = NULL;
    rc = make_first_actor(runtime, start, arg, &first);
    atomic_store_explicit(&current, runtime, memory_order_seq_cst);
    if (rc == 0)
        rc = start_threads(runtime);
    if (rc == 0) {
        wr_schedule(wr_here, first, true);
        wr_scheduler_loop(wr_here);
        for (unsigned i = 1; i < runtime->threads; i++)
            wr_thread_join(runtime->schedulers[i]->thread);
        rc = runtime->exit_code;
    }
    end_actors(runtime);
    atomic_store_explicit(&current, NULL, memory_order_seq_cst);
    while (atomic_load_explicit(&visitors, memory_order_seq_cst) != 0)
        wr_cpu_relax();
    WR_ASSERT(atomic_load_explicit(&runtime->alive, memory_order_relaxed) == 0);
    wr_here = NULL;
    wr_io_close(runtime);
    wr_poller_close(runtime->poller);
    free_schedulers(runtime);
    return rc;
}

int weir_run(const weir_options *options, void (*start)(void *arg), void *arg)
{
    WR_CHECK(start != NULL, "weir_run needs a start function");
    uint32_t idle = 0;
    if (!atomic_compare_exchange_strong(&busy, &idle, 1))
        return WEIR_EBUSY;
    wr_poll_backend backend = WR_POLL_BEST;
    wr_runtime *runtime = wr_os_alloc(sizeof *runtime);
    int rc = runtime == NULL ? WEIR_ENOMEM : read_options(runtime, options, &backend);
    if (rc == 0)
        rc = wr_arena_open();
    if (rc == 0) {
        wr_heap_totals_reset();
        wr_check_set_context(describe_context);
        wr_heap_set_provider(provide_heap);
        rc = run(runtime, backend, start, arg);
        wr_heap_set_provider(NULL);
        wr_check_set_context(NULL);
        wr_arena_close();
    }
    wr_os_free(runtime);
    atomic_store(&busy, 0);
    return rc;
}

/* ---- from outside ---- */

static wr_runtime *visit(void)
{
    atomic_fetch_add_explicit(&visitors, 1, memory_order_seq_cst);
    return atomic_load_explicit(&current, memory_order_seq_cst);
}

static void leave(void)
{
    atomic_fetch_sub_explicit(&visitors, 1, memory_order_seq_cst);
}

void weir_stop(void)
{
    wr_runtime *runtime = visit();
    if (runtime != NULL) {
        atomic_store_explicit(&runtime->stopping, 1, memory_order_seq_cst);
        wr_wake_all(runtime);
    }
    leave();
}

void weir_set_exit_code(int code)
{
    WR_CHECK(wr_here != NULL, "weir_set_exit_code outside a behaviour");
    wr_lock_take(&wr_here->runtime->queue_lock);
    wr_here->runtime->exit_code = code;
    wr_lock_give(&wr_here->runtime->queue_lock);
}

uint64_t weir_now_ns(void)
{
    return wr_clock_ns();
}

int64_t weir_unix_ms(void)
{
    return wr_clock_unix_ms();
}

uint64_t weir_random(void)
{
    WR_CHECK(wr_here != NULL, "weir_random outside a behaviour");
    return wr_random_next(&wr_here->random_user);
}

static uint64_t read_counter(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void add_stats(weir_stats *out, const wr_scheduler *scheduler, int64_t *store_bytes)
{
    const wr_scheduler_stats *stats = &scheduler->stats;
    out->actors_created += read_counter(&stats->actors_created);
    out->actors_alive += read_counter(&stats->actors_created) - read_counter(&stats->actors_ended);
    out->messages_sent += read_counter(&stats->messages);
    out->behaviours_run += read_counter(&stats->behaviours);
    out->turns += read_counter(&scheduler->turns_begun);
    out->steals += read_counter(&stats->steals);
    out->wakes += read_counter(&stats->wakes);
    out->sleeps += read_counter(&stats->sleeps);
    out->polls += read_counter(&stats->polls);
    out->stream_writes += read_counter(&scheduler->counters.stream_writes);
    out->stream_bytes_written += read_counter(&scheduler->counters.stream_bytes_written);
    out->stream_reads += read_counter(&scheduler->counters.stream_reads);
    out->stream_bytes_read += read_counter(&scheduler->counters.stream_bytes_read);
    *store_bytes += atomic_load_explicit(&scheduler->counters.store_bytes, memory_order_relaxed);
}

int weir_get_stats(weir_stats *out)
{
    memset(out, 0, sizeof *out);
    wr_runtime *runtime = visit();
    if (runtime == NULL) {
        leave();
        return WEIR_EPERM;
    }
    int64_t store_bytes = 0;
    out->threads = runtime->threads;
    for (unsigned i = 0; i < runtime->threads; i++)
        add_stats(out, runtime->schedulers[i], &store_bytes);
    wr_heap_totals totals;
    wr_heap_get_totals(&totals);
    out->collections = totals.collections;
    out->finalised = totals.finalised;
    wr_arena_stats arena;
    wr_arena_get_stats(&arena);
    out->heap_bytes = arena.heap_bytes;
    out->pool_bytes = arena.pool_bytes;
    out->committed_bytes = arena.committed_bytes;
    out->store_bytes = store_bytes > 0 ? (uint64_t)store_bytes : 0;
    leave();
    return 0;
}

/* ---- pins: an object of the heap, or a handle the actor holds ---- */

static weir_actor *pinning_actor(const char *what, const void *object)
{
    WR_CHECK(wr_here != NULL && wr_here->actor != NULL, "%s outside a behaviour", what);
    WR_CHECK(object != NULL, "%s(NULL)", what);
    return wr_here->actor;
}

void weir_pin(void *object)
{
    weir_actor *actor = pinning_actor("weir_pin", object);
    if (wr_held_has(actor, object)) {
        wr_held_pin(actor, object);
        return;
    }
    WR_CHECK(actor->heap != NULL && wr_heap_owns(actor->heap, (uintptr_t)object),
             "weir_pin(%p): neither an object of this actor nor a handle it holds", object);
    wr_heap_pin(actor->heap, object);
}

void weir_unpin(void *object)
{
    weir_actor *actor = pinning_actor("weir_unpin", object);
    if (wr_held_has(actor, object)) {
        wr_held_unpin(actor, object);
        return;
    }
    WR_CHECK(actor->heap != NULL, "weir_unpin(%p) of something that is not pinned", object);
    wr_heap_unpin(actor->heap, object);
}

/* ---- services for the layers above ---- */

void *wr_block_take(size_t size)
{
    return wr_pool_take(wr_here != NULL ? wr_here->pool : NULL, size);
}

void wr_block_give(void *block, size_t size)
{
    wr_pool_give(wr_here != NULL ? wr_here->pool : NULL, block, size);
}

size_t wr_option_buffer_inline_max(void)
{
    WR_ASSERT(wr_here != NULL);
    return wr_here->runtime->buffer_inline_max;
}

wr_counters *wr_counters_here(void)
{
    WR_ASSERT(wr_here != NULL);
    return &wr_here->counters;
}

void **wr_scheduler_slot(void)
{
    WR_ASSERT(wr_here != NULL);
    return &wr_here->stream_block;
}

void wr_scheduler_slot_release(void (*release)(void *value))
{
    atomic_store_explicit(&wr_here->runtime->release_stream_block, release, memory_order_relaxed);
}

void wr_hold_here(wr_shared *shared)
{
    WR_ASSERT(wr_here != NULL && wr_here->actor != NULL);
    wr_held_take(wr_here->actor, shared);
}

bool wr_holds_here(const void *shared)
{
    return wr_here != NULL && wr_here->actor != NULL && wr_held_has(wr_here->actor, shared);
}

void wr_hold_on_here(const void *shared)
{
    WR_ASSERT(wr_holds_here(shared));
    wr_heap *heap = wr_here->actor->heap;
    if (WR_UNLIKELY(heap != NULL && heap->collecting))
        wr_held_mark(wr_here->actor, shared);
}
