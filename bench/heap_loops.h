/* SPDX-License-Identifier: MIT */
/* bench/heap_loops.h: the innermost loops of the heap suite; see heap_loops.c. */
#ifndef BENCH_HEAP_LOOPS_H
#define BENCH_HEAP_LOOPS_H

#include <stdint.h>

/* Allocates `count` objects of 32 bytes, Weir's word included, and returns the last. Inside a behaviour. */
void *bench_allocate_plain(uint64_t count);
void *bench_allocate_final(uint64_t count);

/* How many of the second kind were finalised in this process. */
uint64_t bench_finalised(void);

/* Builds a complete binary tree and counts its nodes. */
uint64_t bench_build_tree(unsigned depth);

#endif
