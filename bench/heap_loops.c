/* SPDX-License-Identifier: MIT */
/* bench/heap_loops.c: the innermost loops of the heap suite.
 *
 * Job        What is measured, and nothing else. A file of its own, so that no compiler can see the loops from where
 *            they are timed, and so that tests/checks/callgrind_final.sh can count the instructions of exactly these
 *            functions by name.
 * Invariants The two allocation loops are the same text but for the type. The program sets one field; Weir zeroes the
 *            others.
 * Threads    Inside a behaviour.
 */
#include "heap_loops.h"
#include <weir/weir.h>

typedef struct object32 {
    uint64_t number, second, third;
} object32;
WEIR_TYPE(object32);

typedef struct object32_final {
    uint64_t number, second, third;
} object32_final;

/* One actor allocates, so one thread at a time finalises. */
static uint64_t finalised;

static void close_object(object32_final *object)
{
    finalised += 1 + object->third;
}
WEIR_TYPE_FINAL(object32_final, close_object);

typedef struct tree {
    struct tree *left, *right;
} tree;
WEIR_TYPE(tree, left, right);

uint64_t bench_finalised(void)
{
    return finalised;
}

void *bench_allocate_plain(uint64_t count)
{
    object32 *last = NULL;
    for (uint64_t i = 0; i < count; i++) {
        last = weir_new(object32);
        last->number = i;
    }
    return last;
}

void *bench_allocate_final(uint64_t count)
{
    object32_final *last = NULL;
    for (uint64_t i = 0; i < count; i++) {
        last = weir_new(object32_final);
        last->number = i;
    }
    return last;
}

static tree *build(unsigned depth)
{
    tree *node = weir_new(tree);
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

uint64_t bench_build_tree(unsigned depth)
{
    return count_nodes(build(depth));
}
