/* SPDX-License-Identifier: MIT */
/* tests/unit/bench/list.h: tests of weir-bench's pure functions. */
T(bench, median_of_odd_and_even_counts)
T(bench, stats_do_not_depend_on_order)
T(bench, stats_agree_with_a_count_of_smaller_values)
T(bench, stats_of_nothing_are_zero)
T(bench, scaled_ops_reach_the_target)
T(bench, scaled_ops_are_multiples_of_the_step)
T(bench, scaled_ops_never_jump)
T(bench, lists_of_numbers)
T(bench, what_is_no_list_is_refused)
