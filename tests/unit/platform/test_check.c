/* SPDX-License-Identifier: MIT */
/* tests/unit/platform/test_check.c: the report of a failed check. */
#include "unit/platform/kit.h"

#include "platform/check.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void actor_seven(char *out, size_t size)
{
    snprintf(out, size, "actor 7 counter, behaviour counter.add");
}

static void broken_context(char *out, size_t size)
{
    (void)out;
    WR_CHECK(size == 0, "the context function is broken");
}

static void check_that(int value)
{
    WR_CHECK(value == 1, "value is %d; give 1", value);
}

static void check_with_context(int value)
{
    wr_check_set_context(actor_seven);
    check_that(value);
}

TEST(check, report_names_message_condition_and_place)
{
    EXPECT_DEATH(check_that(2), "value is 2; give 1");
    EXPECT_DEATH(check_that(2), "value == 1");
    EXPECT_DEATH(check_that(2), "test_check.c:");
}

TEST(check, report_names_who_was_running)
{
    EXPECT_DEATH(check_with_context(2), "actor 7 counter, behaviour counter.add");
}

TEST(check, report_has_a_back_trace_with_this_program_in_it)
{
    EXPECT_DEATH(check_that(2), "back-trace\n");
    EXPECT_DEATH(check_that(2), "weir-tests(");
}

TEST(check, check_that_holds_costs_nothing_but_a_look)
{
    int looks = 0;
    WR_CHECK(++looks == 1, "never");
    EXPECT_EQ(looks, 1);
}

TEST(check, assertion_is_alive_in_debug_builds_only)
{
    int looks = 0;
    WR_ASSERT(++looks == 1);
    EXPECT_EQ(looks, WR_DEBUG);
#if WR_DEBUG
    EXPECT_DEATH(WR_ASSERT(looks == 5), "looks == 5");
#endif
}

TEST(check, fatal_error_prints_its_message)
{
    EXPECT_DEATH(wr_fatal("no memory for %d schedulers", 3), "weir: fatal: no memory for 3 schedulers");
}

static void fail_while_reporting(void)
{
    wr_check_set_context(broken_context);
    check_that(2);
}

TEST(check, failure_inside_the_report_ends_the_process)
{
    EXPECT_DEATH(fail_while_reporting(), "another check failed while the first was being reported");
}

/* Holds the first report up until a second one begins, or long enough to be sure that none does. */
static void slow_context(char *out, size_t size)
{
    static _Atomic uint32_t reports;
    if (atomic_fetch_add(&reports, 1) == 0)
        wr_futex_wait(&reports, 1, 300000000);
    else
        wr_futex_wake(&reports, 1);
    snprintf(out, size, "somebody");
}

static void fail_with_text(void *arg)
{
    (void)arg;
    wr_fatal("one of many threads");
}

static void many_threads_fail(void)
{
    wr_thread threads[4];
    wr_check_set_context(slow_context);
    for (int i = 0; i < 4; i++)
        EXPECT_OK(wr_thread_start(&threads[i], "failing", fail_with_text, NULL));
    for (int i = 0; i < 4; i++)
        wr_thread_join(threads[i]);
}

TEST(check, threads_that_fail_together_end_with_one_report)
{
    int ends[2];
    char text[16384];
    size_t size = 0;
    EXPECT_EQ(pipe(ends), 0);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        many_threads_fail();
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], text + size, sizeof text - 1 - size)) > 0;)
        size += (size_t)got;
    text[size] = '\0';
    int status;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    EXPECT(strstr(text, "weir: fatal: one of many threads\n  running    somebody\n  back-trace") != NULL);
    const char *first = strstr(text, "weir: fatal");
    EXPECT(strstr(first + 1, "weir: fatal") == NULL);
    close(ends[0]);
}

static void very_long_message(void)
{
    char text[8192];
    memset(text, 'y', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    wr_fatal("begin %s", text);
}

TEST(check, endless_message_is_cut)
{
    EXPECT_DEATH(very_long_message(), "yyy\n  back-trace");
}
