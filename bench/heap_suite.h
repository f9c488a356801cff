/* SPDX-License-Identifier: MIT */
/* bench/heap_suite.h: the sizes that Weir's rows and their peers share. */
#ifndef BENCH_HEAP_SUITE_H
#define BENCH_HEAP_SUITE_H

#define ALLOCATE_BATCH 1000  /* objects a behaviour */
#define COLLECT_BATCH 100000 /* objects a behaviour, 3.2 MB: each behaviour is followed by a collection */
#define TREE_DEPTH 16
#define TREE_NODES ((2u << TREE_DEPTH) - 1)

#endif
