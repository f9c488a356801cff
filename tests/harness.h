/* SPDX-License-Identifier: MIT */
/* tests/harness.h: what a unit test is written with.
 *
 * Job        A test is a statement about one property: TEST(group, name) { ... } in tests/unit/<layer>/test_*.c and one line
 *            T(group, name) in that folder's list.h. weir-tests runs each in a process of its own, under a time limit.
 * Invariants A failed expectation ends the test's process at once; nothing after it runs. A test passes only by returning
 *            with every must_call met and, in sanitizer builds, with a clean report at exit.
 * Threads    Expectations, must_called and test_random may be used from any thread of the test.
 * Cost       A fork, an exec and two files a test: about 2 ms without sanitizers.
 */
#ifndef WEIR_TESTS_HARNESS_H
#define WEIR_TESTS_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Prototypes of all tests: one that is not listed fails to compile (-Wmissing-prototypes). */
#define T(group, name) void test_##group##_##name(void);
#include "list.h"
#include "unit/harness/fixtures.h"
#undef T

#define TEST(group, name) void test_##group##_##name(void)

/* Expectations: print file, line and both values, then end the test. Each argument is evaluated once. */
#define EXPECT(cond) ((cond) ? (void)0 : test_fail(__FILE__, __LINE__, "EXPECT(%s)", #cond))
#define EXPECT_EQ(a, b) test_expect_eq(TEST_INTEGER_(a), TEST_INTEGER_(b), #a, #b, __FILE__, __LINE__)
#define EXPECT_STR(a, b) test_expect_str(a, b, #a, #b, __FILE__, __LINE__)
#define EXPECT_MEM(a, b, n) test_expect_mem(a, b, n, #a, #b, __FILE__, __LINE__)
#define EXPECT_OK(rc) test_expect_ok(rc, #rc, __FILE__, __LINE__)

/* Ends the test as skipped; the reason is shown in the summary. */
#define SKIP(reason) test_skip(__FILE__, __LINE__, reason)

/* The statement runs in a forked child, which must end by abort() after writing `text` to standard error. */
#define EXPECT_DEATH(statement, text) \
    do { \
        test_death test_death_; \
        if (test_death_begin(&test_death_)) { \
            statement; \
            test_death_survived(); \
        } \
        test_death_expect(&test_death_, text, #statement, __FILE__, __LINE__); \
    } while (0)

/* A counter of calls: at the end of the test each must have been called exactly n times; one call too many fails at once.
 * At most 256 a test. `what` must stay valid. */
typedef struct must_call must_call;
must_call *must_call_new(const char *what, unsigned n);
void must_called(must_call *m);

/* The seed of the run (WEIR_TEST_SEED or --seed repeats it) and a generator that depends on it and on the test's name only. */
uint64_t test_seed(void);
uint64_t test_random(void);

/* A private folder, made at the first call, removed after the test; short enough for the path of a Unix socket. */
const char *test_temp_dir(void);

/* Behind the macros. */
typedef struct test_integer {
    uint64_t bits;
    bool negative;
} test_integer;

typedef struct test_death {
    int pid;
    int output;
} test_death;

#define TEST_INTEGER_(x) \
    _Generic((x), unsigned long : test_unsigned, unsigned long long : test_unsigned, default : test_signed)(x)

static inline test_integer test_unsigned(unsigned long long x)
{
    return (test_integer){.bits = x};
}

static inline test_integer test_signed(long long x)
{
    return (test_integer){.bits = (uint64_t)x, .negative = x < 0};
}

__attribute__((noreturn, format(printf, 3, 4))) void test_fail(const char *file, int line, const char *format, ...);
__attribute__((noreturn)) void test_skip(const char *file, int line, const char *reason);
void test_expect_eq(test_integer a, test_integer b, const char *a_text, const char *b_text, const char *file, int line);
void test_expect_str(const char *a, const char *b, const char *a_text, const char *b_text, const char *file, int line);
void test_expect_mem(const void *a, const void *b, size_t size, const char *a_text, const char *b_text,
                     const char *file, int line);
void test_expect_ok(int rc, const char *text, const char *file, int line);
bool test_death_begin(test_death *death); /* true in the child */
__attribute__((noreturn)) void test_death_survived(void);
void test_death_expect(test_death *death, const char *text, const char *statement, const char *file, int line);

#endif
