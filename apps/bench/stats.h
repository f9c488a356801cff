/* SPDX-License-Identifier: MIT */
/* bench/stats.h: what is said about the repeats of one row. Pure functions; see stats.c. */
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

#include <stddef.h>
#include <stdint.h>

#define BENCH_RUNS_MAX 101

typedef struct bench_stats {
    double median, min, max;
    double spread; /* (max - min) / median; 0 when the median is 0 */
    size_t runs;
} bench_stats;

/* `values` may be in any order and is left as it is; 1 to BENCH_RUNS_MAX of them. */
bench_stats bench_stats_of(const double *values, size_t count);

/* How many operations to ask for next, so that a repeat takes about `target_ns`, after `ops` of them took `elapsed_ns`:
 * a multiple of `step`, at least `step`, at most ten times as many as before (a first measurement may be far too short
 * to extrapolate from). */
uint64_t bench_scale_ops(uint64_t ops, uint64_t elapsed_ns, uint64_t target_ns, uint64_t step);

/* "0,2-3" as a set of at most 64 CPUs or counts; 0 when the text is not such a list. */
uint64_t bench_parse_set(const char *text);

#endif
