/* SPDX-License-Identifier: MIT */
/* tests/unit/bench/test_stats.c: weir-bench's pure functions.
 *
 * Job        stats.c belongs to a program, not to the library, so it is compiled into the test itself.
 */
#include "../../../apps/bench/stats.c"
#include "harness.h"
#include <string.h>

TEST(bench, median_of_odd_and_even_counts)
{
    bench_stats odd = bench_stats_of((double[]){5, 1, 3}, 3), even = bench_stats_of((double[]){4, 1, 2, 9}, 4);
    EXPECT(odd.median == 3 && odd.min == 1 && odd.max == 5);
    EXPECT(even.median == 3 && even.min == 1 && even.max == 9);
    EXPECT(odd.spread > 1.33 && odd.spread < 1.34);
    EXPECT_EQ(odd.runs, 3);
    EXPECT_EQ(even.runs, 4);
}

static void draw(double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (double)(test_random() % 50);
}

TEST(bench, stats_do_not_depend_on_order)
{
    double values[BENCH_RUNS_MAX], before[BENCH_RUNS_MAX];
    for (size_t count = 1; count <= BENCH_RUNS_MAX; count++) {
        draw(values, count);
        bench_stats first = bench_stats_of(values, count);
        for (size_t i = count - 1; i > 0; i--) {
            size_t other = test_random() % (i + 1);
            double kept = values[i];
            values[i] = values[other];
            values[other] = kept;
        }
        memcpy(before, values, sizeof(before));
        bench_stats second = bench_stats_of(values, count);
        EXPECT(first.median == second.median && first.min == second.min && first.max == second.max);
        EXPECT_MEM(before, values, count * sizeof(values[0]));
    }
}

TEST(bench, stats_agree_with_a_count_of_smaller_values)
{
    double values[BENCH_RUNS_MAX];
    for (size_t count = 1; count <= BENCH_RUNS_MAX; count++) {
        draw(values, count);
        bench_stats stats = bench_stats_of(values, count);
        size_t below = 0, above = 0;
        for (size_t i = 0; i < count; i++) {
            below += values[i] < stats.median;
            above += values[i] > stats.median;
            EXPECT(values[i] >= stats.min && values[i] <= stats.max);
        }
        EXPECT(below <= count / 2 && above <= count / 2);
    }
}

TEST(bench, stats_of_nothing_are_zero)
{
    bench_stats none = bench_stats_of(NULL, 0), zeros = bench_stats_of((double[]){0, 0}, 2);
    EXPECT_EQ(none.runs, 0);
    EXPECT(zeros.median == 0 && zeros.spread == 0);
}

/* Work of `cost_ns` an operation is scaled until nothing changes any more, as the harness does. */
static uint64_t settle(double cost_ns, uint64_t target_ns, uint64_t step)
{
    uint64_t ops = step;
    for (unsigned i = 0; i < 40; i++)
        ops = bench_scale_ops(ops, (uint64_t)((double)ops * cost_ns), target_ns, step);
    return ops;
}

TEST(bench, scaled_ops_reach_the_target)
{
    uint64_t ops = settle(20, 100000000, 1000);
    EXPECT(ops >= 4900000 && ops <= 5001000);
    EXPECT_EQ(settle(5e9, 100000000, 1), 1);
}

TEST(bench, scaled_ops_are_multiples_of_the_step)
{
    for (unsigned i = 0; i < 1000; i++) {
        uint64_t step = 1 + test_random() % 10000, ops = step * (1 + test_random() % 1000);
        uint64_t next = bench_scale_ops(ops, test_random() % 1000000000, 100000000, step);
        EXPECT_EQ(next % step, 0);
        EXPECT(next >= step);
    }
}

TEST(bench, scaled_ops_never_jump)
{
    EXPECT_EQ(bench_scale_ops(1000, 0, 100000000, 10), 10000);
    EXPECT_EQ(bench_scale_ops(1000, 1, 100000000, 10), 10000);
    EXPECT_EQ(bench_scale_ops(1000, 50000000, 100000000, 10), 2000);
}

TEST(bench, lists_of_numbers)
{
    EXPECT_EQ(bench_parse_set("0"), 1);
    EXPECT_EQ(bench_parse_set("1,2"), 6);
    EXPECT_EQ(bench_parse_set("0,2-4"), 29);
    EXPECT_EQ(bench_parse_set("63"), (uint64_t)1 << 63);
    EXPECT_EQ(bench_parse_set("0-63"), UINT64_MAX);
}

TEST(bench, what_is_no_list_is_refused)
{
    static const char *const wrong[] = {"",   ",",  "1,",           ",1", "1,,2", "2-1", "1-",
                                        "-1", "64", "999999999999", "a",  "1 ",   "1;2"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        if (bench_parse_set(wrong[i]) != 0)
            test_fail(__FILE__, __LINE__, "'%s' was taken as a list", wrong[i]);
}
