/* SPDX-License-Identifier: MIT */
/* tests/unit/memory/world.h: an arena with one heap and a few roots, in place of an actor.
 *
 * Job        Let a test say what is alive: what stands in world.roots.
 */
#ifndef WEIR_TESTS_MEMORY_WORLD_H
#define WEIR_TESTS_MEMORY_WORLD_H

#include "harness.h"
#include "memory/arena.h"
#include "memory/heap.h"
#include "memory/heap_audit.h"

#include <string.h>

#define WORLD_ROOTS 4096

typedef struct world {
    wr_heap *heap;
    void *roots[WORLD_ROOTS]; /* conservative */
    unsigned shared_calls, give_back_calls;
    void *shared_block;
} world;

static inline void world_roots(void *owner, wr_heap *heap)
{
    wr_mark_range(heap, ((world *)owner)->roots, sizeof((world *)owner)->roots);
}

static inline void world_shared(void *owner, void *block, uintptr_t word)
{
    (void)word;
    ((world *)owner)->shared_calls++;
    ((world *)owner)->shared_block = block;
}

static inline void world_give_back(void *owner)
{
    ((world *)owner)->give_back_calls++;
}

static const wr_heap_hooks world_hooks = {world_roots, world_shared, world_give_back};

static inline world *world_open(void)
{
    static world the_world;
    memset(&the_world, 0, sizeof the_world);
    EXPECT_OK(wr_arena_open());
    EXPECT_OK(wr_heap_create(&the_world, &world_hooks, NULL, 0, &the_world.heap));
    wr_heap_enter(the_world.heap);
    return &the_world;
}

static inline void world_collect(world *w)
{
    wr_heap_collect(w->heap);
    wr_heap_check(w->heap);
}

static inline void world_close(world *w)
{
    wr_heap_check(w->heap);
    wr_heap_destroy(w->heap);
    wr_arena_check();
    wr_arena_close();
}

#endif
