/* SPDX-License-Identifier: MIT */
/* bench/heap_glibc.c: the heap suite's rows with glibc's malloc and free, the peer.
 *
 * Job        The same objects in the same batches. 24 bytes from malloc take 32 with its own word, as Weir's objects
 *            do. Nothing is zeroed but the field that close reads: a C programmer would not.
 * Invariants alloc32 rows time the calls of malloc alone, as Weir's rows time allocation alone; collect32 rows time
 *            malloc and free. The `-final` peer calls a close function through a pointer before it frees, as a program
 *            with destructors does.
 * Threads    One, and glibc knows: its single-threaded fast paths are on.
 */
#include "heap_glibc.h"
#include "heap_suite.h"
#include <stdlib.h>
#include <weir/weir.h>

typedef struct object {
    uint64_t number, second, third;
} object;

typedef struct tree {
    struct tree *left, *right;
} tree;

static uint64_t closed;

static void close_object(object *o)
{
    closed += 1 + o->third;
}

static void (*volatile closer)(object *) = close_object;

static void *must_malloc(size_t size)
{
    void *bytes = malloc(size);
    if (bytes == NULL)
        bench_fail("malloc: out of memory");
    return bytes;
}

static void allocate(object **objects, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        objects[i] = must_malloc(sizeof(object));
        objects[i]->number = i;
        objects[i]->third = 0;
    }
}

static void release(object **objects, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        free(objects[i]);
}

static void close_and_release(object **objects, uint64_t count)
{
    void (*close)(object *) = closer;
    for (uint64_t i = 0; i < count; i++) {
        close(objects[i]);
        free(objects[i]);
    }
}

void bench_glibc_allocate(const bench_job *job, bench_sample *sample)
{
    object **objects = must_malloc(ALLOCATE_BATCH * sizeof(object *));
    for (uint64_t done = 0; done < job->warm + job->ops; done += ALLOCATE_BATCH) {
        uint64_t began = weir_now_ns();
        allocate(objects, ALLOCATE_BATCH);
        if (done >= job->warm)
            sample->elapsed_ns += weir_now_ns() - began;
        release(objects, ALLOCATE_BATCH);
    }
    sample->ops = job->ops;
    free(objects);
}

static void allocate_and(const bench_job *job, bench_sample *sample,
                         void (*give_back)(object **objects, uint64_t count))
{
    object **objects = must_malloc(COLLECT_BATCH * sizeof(object *));
    uint64_t began = 0;
    for (uint64_t done = 0; done < job->warm + job->ops; done += COLLECT_BATCH) {
        if (done == job->warm)
            began = weir_now_ns();
        allocate(objects, COLLECT_BATCH);
        give_back(objects, COLLECT_BATCH);
    }
    sample->elapsed_ns = weir_now_ns() - began;
    sample->ops = job->ops;
    free(objects);
}

void bench_glibc_allocate_free(const bench_job *job, bench_sample *sample)
{
    allocate_and(job, sample, release);
}

void bench_glibc_allocate_close_free(const bench_job *job, bench_sample *sample)
{
    allocate_and(job, sample, close_and_release);
    if (closed != job->warm + job->ops)
        bench_fail("%llu of %llu objects were closed", (unsigned long long)closed,
                   (unsigned long long)(job->warm + job->ops));
}

static tree *build(unsigned depth)
{
    tree *node = must_malloc(sizeof(tree));
    node->left = node->right = NULL;
    if (depth > 0) {
        node->left = build(depth - 1);
        node->right = build(depth - 1);
    }
    return node;
}

static uint64_t count_nodes(const tree *node)
{
    return node == NULL ? 0 : 1 + count_nodes(node->left) + count_nodes(node->right);
}

static void free_tree(tree *node)
{
    if (node == NULL)
        return;
    free_tree(node->left);
    free_tree(node->right);
    free(node);
}

void bench_glibc_trees(const bench_job *job, bench_sample *sample)
{
    uint64_t began = 0;
    for (uint64_t done = 0; done < job->warm + job->ops; done += TREE_NODES) {
        if (done == job->warm)
            began = weir_now_ns();
        tree *root = build(TREE_DEPTH);
        if (count_nodes(root) != TREE_NODES)
            bench_fail("a tree has lost nodes");
        free_tree(root);
    }
    sample->elapsed_ns = weir_now_ns() - began;
    sample->ops = job->ops;
}
