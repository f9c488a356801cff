/* SPDX-License-Identifier: MIT */
/* bench/stats.c: medians, the length of a repeat, and lists of small numbers.
 *
 * Job        Everything of weir-bench that can be wrong without a clock: pure functions that tests/unit/bench calls.
 *            Median, min and spread rather than mean and deviation: one descheduled repeat moves those two.
 * Invariants min <= median <= max; the result depends on the values, not on their order.
 * Threads    Any.
 * Cost       Insertion sort of at most BENCH_RUNS_MAX numbers.
 */
#include "stats.h"

bench_stats bench_stats_of(const double *values, size_t count)
{
    double sorted[BENCH_RUNS_MAX];
    if (count > BENCH_RUNS_MAX)
        count = BENCH_RUNS_MAX;
    if (count == 0)
        return (bench_stats){0};
    for (size_t i = 0; i < count; i++) {
        size_t at = i;
        for (; at > 0 && sorted[at - 1] > values[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = values[i];
    }
    bench_stats stats = {.min = sorted[0], .max = sorted[count - 1], .runs = count};
    stats.median = count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
    if (stats.median > 0)
        stats.spread = (stats.max - stats.min) / stats.median;
    return stats;
}

uint64_t bench_scale_ops(uint64_t ops, uint64_t elapsed_ns, uint64_t target_ns, uint64_t step)
{
    double factor = elapsed_ns == 0 ? 10 : (double)target_ns / (double)elapsed_ns;
    if (factor > 10)
        factor = 10;
    uint64_t next = (uint64_t)((double)ops * factor);
    next -= next % step;
    return next < step ? step : next;
}

/* A number below 64 at *text, which moves behind it; -1 if there is none. */
static int parse_small(const char **text)
{
    int number = 0;
    const char *at = *text;
    for (; *at >= '0' && *at <= '9'; at++) {
        number = number * 10 + (*at - '0');
        if (number > 63)
            return -1;
    }
    if (at == *text)
        return -1;
    *text = at;
    return number;
}

uint64_t bench_parse_set(const char *text)
{
    uint64_t set = 0;
    for (;;) {
        int from = parse_small(&text), to = from;
        if (from < 0)
            return 0;
        if (*text == '-') {
            text++;
            to = parse_small(&text);
            if (to < from)
                return 0;
        }
        for (int i = from; i <= to; i++)
            set |= (uint64_t)1 << i;
        if (*text == 0)
            return set;
        if (*text++ != ',')
            return 0;
    }
}
