/* SPDX-License-Identifier: MIT */
/* bench/heap_glibc.h: the heap suite's rows with malloc and free; see heap_glibc.c. */
#ifndef BENCH_HEAP_GLIBC_H
#define BENCH_HEAP_GLIBC_H

#include "bench.h"

bench_work bench_glibc_allocate, bench_glibc_allocate_free, bench_glibc_allocate_close_free, bench_glibc_trees;

#endif
