/* SPDX-License-Identifier: MIT */
/* bench/heap.c: suite heap: what does an object cost?
 *
 * Job        alloc32          1000 objects of 32 bytes (Weir's word included) a behaviour; only the loops are timed.
 *            alloc32-final    the same with a finaliser.
 *            collect32        100 000 a behaviour, none survives; behaviours and the collections between them are
 *            timed.
 *            collect32-final  the same with a finaliser that runs.
 *            bintree16        a complete binary tree of depth 16 a behaviour, built, counted and dropped; per node.
 * Invariants Every finaliser has run exactly once when the run is over, or the repeat fails.
 * Threads    One actor on one scheduler. The result is read after weir_run has returned.
 */
#include "bench.h"
#include "heap_glibc.h"
#include "heap_loops.h"
#include "heap_suite.h"
#include <stdio.h>
#include <string.h>
#include <weir/weir.h>

typedef struct heap_work {
    void *(*allocate)(uint64_t count); /* NULL: build trees */
    uint64_t batch;
    bool loop_only;
    bool finalised;
} heap_work;

static struct {
    uint64_t elapsed_ns;
    void *last; /* of each batch, so that no compiler can tell that objects are dropped */
} measured;

typedef struct allocator {
    const heap_work *work;
    uint64_t warm, ops, done;
    uint64_t began_ns, loops_ns;
} allocator;
WEIR_ACTOR(allocator);

typedef struct next {
    char unused;
} next;

WEIR_BEHAVIOUR(allocator, next)
{
    const heap_work *work = self->work;
    uint64_t now = weir_now_ns();
    if (self->done == self->warm) {
        self->began_ns = now;
        self->loops_ns = 0;
    }
    if (self->done == self->warm + self->ops) {
        measured.elapsed_ns = work->loop_only ? self->loops_ns : now - self->began_ns;
        return;
    }
    if (work->allocate)
        measured.last = work->allocate(work->batch);
    else if (bench_build_tree(TREE_DEPTH) != TREE_NODES)
        bench_fail("a tree has lost nodes");
    self->loops_ns += weir_now_ns() - now;
    self->done += work->batch;
    bench_must("weir_send", weir_send(weir_self(allocator), allocator, next));
}

static void start(void *arg)
{
    const bench_job *job = arg;
    allocator_ref a = weir_spawn(allocator, .work = job->what, .warm = job->warm, .ops = job->ops);
    bench_must("weir_send", weir_send(a, allocator, next));
}

static void run_heap(const bench_job *job, bench_sample *sample)
{
    const heap_work *work = job->what;
    bench_job copy = *job;
    bench_weir_run(job->threads, start, &copy);
    if (work->finalised && bench_finalised() != job->warm + job->ops)
        bench_fail("%llu of %llu finalisers have run", (unsigned long long)bench_finalised(),
                   (unsigned long long)(job->warm + job->ops));
    *sample = (bench_sample){.elapsed_ns = measured.elapsed_ns, .ops = job->ops};
}

static const heap_work alloc32 = {bench_allocate_plain, ALLOCATE_BATCH, true, false};
static const heap_work alloc32_final = {bench_allocate_final, ALLOCATE_BATCH, true, true};
static const heap_work collect32 = {bench_allocate_plain, COLLECT_BATCH, false, false};
static const heap_work collect32_final = {bench_allocate_final, COLLECT_BATCH, false, true};
static const heap_work bintree16 = {NULL, TREE_NODES, false, false};

static const bench_row rows[] = {
    {"alloc32", "ns/object", ALLOCATE_BATCH, run_heap, bench_glibc_allocate, &alloc32},
    {"alloc32-final", "ns/object", ALLOCATE_BATCH, run_heap, bench_glibc_allocate, &alloc32_final},
    {"collect32", "ns/object", COLLECT_BATCH, run_heap, bench_glibc_allocate_free, &collect32},
    {"collect32-final", "ns/object", COLLECT_BATCH, run_heap, bench_glibc_allocate_close_free, &collect32_final},
    {"bintree16", "ns/node", TREE_NODES, run_heap, bench_glibc_trees, &bintree16},
};

const bench_suite bench_heap = {
    .name = "heap",
    .about = "what an object costs, allocated and collected",
    .peer = "glibc",
    .threads = 1u << 1,
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(rows[0]),
};

typedef struct exec_job {
    void *(*allocate)(uint64_t count);
    uint64_t count;
} exec_job;

static void exec_start(void *arg)
{
    const exec_job *job = arg;
    measured.last = job->allocate(job->count);
}

int bench_exec(const char *id, uint64_t count)
{
    exec_job job = {.count = count};
    if (strcmp(id, "alloc32") == 0)
        job.allocate = bench_allocate_plain;
    else if (strcmp(id, "alloc32-final") == 0)
        job.allocate = bench_allocate_final;
    if (job.allocate == NULL) {
        fprintf(stderr, "weir-bench: exec knows alloc32 and alloc32-final, not '%s'\n", id);
        return 2;
    }
    /* No collection while the instructions are counted. */
    weir_options options = {.threads = 1, .collect_after = (size_t)1 << 30};
    int rc = weir_run(&options, exec_start, &job);
    if (rc != 0)
        fprintf(stderr, "weir-bench: the run ended with %d (%s)\n", rc, weir_strerror(rc));
    return rc != 0;
}
