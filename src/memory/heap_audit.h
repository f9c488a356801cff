/* SPDX-License-Identifier: MIT */
/* memory/heap_audit.h: walk a heap and trip a check when something is wrong.
 *
 * Job        wr_heap_check; runs after each collection in debug builds and from tests.
 * Invariants Changes nothing.
 * Threads    The heap's. Not during a collection.
 * Cost       Reads every object.
 */
#ifndef WR_MEMORY_HEAP_AUDIT_H
#define WR_MEMORY_HEAP_AUDIT_H

#include "memory/heap.h"

void wr_heap_check(wr_heap *heap);

#endif
