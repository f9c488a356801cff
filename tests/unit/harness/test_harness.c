/* SPDX-License-Identifier: MIT */
/* tests/unit/harness/test_harness.c: the harness tells good from bad.
 *
 * Job        Each test runs an inner weir-tests on one fixture below and compares its verdict and its text.
 * Invariants Fixtures run only with --fixtures, so those that fail never count in a normal run.
 * Threads    One, but for the fixture that fails in another.
 * Cost       A few milliseconds each; the time-limit test takes a second.
 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- fixtures ---- */

TEST(fixture, passes)
{
    EXPECT(1 + 1 == 2);
    EXPECT_EQ(UINT64_MAX, UINT64_MAX);
    EXPECT_EQ((char)-1, -1L);
    EXPECT_STR("a", "a");
    EXPECT_MEM("abc", "abd", 2);
    EXPECT_OK(0);
    must_called(must_call_new("once", 1));
}

TEST(fixture, untrue)
{
    EXPECT(1 + 1 == 3);
}

TEST(fixture, unequal)
{
    EXPECT_EQ(6 * 7, 43);
}

TEST(fixture, signs)
{
    EXPECT_EQ(UINT64_MAX, -1);
}

TEST(fixture, text)
{
    EXPECT_STR("left side", "right side");
}

TEST(fixture, bytes)
{
    EXPECT_MEM("abcd", "abXd", 4);
}

TEST(fixture, crashes)
{
    raise(SIGSEGV);
}

TEST(fixture, is_killed)
{
    raise(SIGKILL);
}

TEST(fixture, exits)
{
    exit(0);
}

TEST(fixture, hangs)
{
    if (fork() == 0) {
        FILE *file = fopen(getenv("FIXTURE_FILE"), "w");
        fprintf(file, "%d\n", (int)getpid());
        fclose(file);
    }
    for (;;) {
        pause();
    }
}

TEST(fixture, called_too_little)
{
    must_called(must_call_new("twice", 2));
}

TEST(fixture, called_too_often)
{
    must_call *m = must_call_new("never", 0);
    must_called(m);
}

TEST(fixture, skips)
{
    SKIP("no such device");
}

TEST(fixture, death_survives)
{
    EXPECT_DEATH((void)0, "");
}

TEST(fixture, death_other_text)
{
    EXPECT_DEATH(abort(), "farewell");
}

TEST(fixture, death_other_signal)
{
    EXPECT_DEATH(raise(SIGKILL), "");
}

static void *fail_here(void *arg)
{
    EXPECT(arg != NULL);
    return NULL;
}

TEST(fixture, fails_in_thread)
{
    pthread_t thread;
    EXPECT_EQ(pthread_create(&thread, NULL, fail_here, NULL), 0);
    pthread_join(thread, NULL);
}

TEST(fixture, talks)
{
    puts("idle talk");
}

TEST(fixture, prints_numbers)
{
    FILE *file = fopen(getenv("FIXTURE_FILE"), "w");
    fprintf(file, "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", test_seed(), test_random(), test_random());
    fclose(file);
}

TEST(fixture, fills_temp_dir)
{
    char path[256];
    struct stat status;
    EXPECT_EQ(stat(test_temp_dir(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700);
    snprintf(path, sizeof path, "%s/sub", test_temp_dir());
    EXPECT_EQ(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/sub/file", test_temp_dir());
    close(open(path, O_CREAT | O_WRONLY, 0600));
    FILE *file = fopen(getenv("FIXTURE_FILE"), "w");
    fprintf(file, "%s\n", test_temp_dir());
    fclose(file);
}

/* Each opens its end of a FIFO, which blocks until the other does. */
TEST(fixture, meets_a)
{
    EXPECT(open(getenv("FIXTURE_FILE"), O_RDONLY) >= 0);
}

TEST(fixture, meets_b)
{
    EXPECT(open(getenv("FIXTURE_FILE"), O_WRONLY) >= 0);
}

/* ---- the inner run ---- */

static char output[32 * 1024];

/* Runs weir-tests with the arguments, a space between each; returns its exit code, its text in `output`. */
__attribute__((format(printf, 1, 2))) static int run(const char *format, ...)
{
    char command[512], arguments[256];
    va_list args;
    va_start(args, format);
    vsnprintf(arguments, sizeof arguments, format, args);
    va_end(args);
    snprintf(command, sizeof command, "exec /proc/%d/exe --fixtures %s 2>&1", (int)getpid(), arguments);
    FILE *pipe = popen(command, "re");
    EXPECT(pipe != NULL);
    output[fread(output, 1, sizeof output - 1, pipe)] = '\0';
    int status = pclose(pipe);
    EXPECT(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void expect_output(const char *text)
{
    if (strstr(output, text) == NULL) {
        test_fail(__FILE__, __LINE__, "no \"%s\" in:\n%s", text, output);
    }
}

static void expect_last_line(const char *line)
{
    size_t length = strlen(output), line_length = strlen(line);
    EXPECT(length > line_length + 1 && output[length - line_length - 2] == '\n' && output[length - 1] == '\n');
    output[length - 1] = '\0';
    EXPECT_STR(output + length - line_length - 1, line);
    output[length - 1] = '\n';
}

static void expect_failure(const char *fixture, const char *text)
{
    EXPECT_EQ(run("--filter fixture.%s", fixture), 1);
    expect_output("FAILED fixture.");
    expect_output(text);
    expect_output("repeat: WEIR_TEST_SEED=");
    expect_last_line("0 passed, 1 failed, 0 skipped");
}

/* A path for a fixture to write to. */
static const char *fixture_file(void)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/file", test_temp_dir());
    setenv("FIXTURE_FILE", path, 1);
    return path;
}

static const char *fixture_wrote(char *line, int size)
{
    FILE *file = fopen(getenv("FIXTURE_FILE"), "re");
    EXPECT(file != NULL && fgets(line, size, file) != NULL);
    fclose(file);
    line[strcspn(line, "\n")] = '\0';
    return line;
}

/* ---- tests ---- */

TEST(harness, passing_test_passes)
{
    EXPECT_EQ(run("--filter fixture.passes"), 0);
    expect_last_line("1 passed, 0 failed, 0 skipped");
}

TEST(harness, failed_expectation_fails_with_place_and_text)
{
    expect_failure("untrue", "test_harness.c:");
    expect_output("EXPECT(1 + 1 == 3)");
}

TEST(harness, unequal_integers_fail_with_both_values)
{
    expect_failure("unequal", "EXPECT_EQ(6 * 7, 43): 42 (0x2a) is not 43 (0x2b)");
}

TEST(harness, negative_and_large_unsigned_are_unequal)
{
    expect_failure("signs", "18446744073709551615 (0xffffffffffffffff) is not -1");
}

TEST(harness, unequal_text_fails_with_both_texts)
{
    expect_failure("text", "\"left side\"");
    expect_output("\"right side\"");
}

TEST(harness, unequal_bytes_fail_at_first_difference)
{
    expect_failure("bytes", "first difference at byte 2");
    expect_output(" 63 64");
    expect_output(" 58 64");
}

TEST(harness, crash_fails_and_names_the_signal)
{
    expect_failure("crashes", ""); /* a sanitizer makes an exit code of this signal, but not of the next */
    expect_failure("is_killed", "killed by signal 9 (Killed)");
}

TEST(harness, plain_exit_is_not_a_pass)
{
    expect_failure("exits", "left by exit(0) before its end");
}

TEST(harness, hang_ends_at_the_time_limit_with_its_children)
{
    char line[32];
    fixture_file();
    EXPECT_EQ(run("--timeout 3 --filter fixture.hangs"), 1);
    expect_output("over its time limit of 3 s");
    expect_last_line("0 passed, 1 failed, 0 skipped");

    /* The signal has been sent; the child may still be on its way out. Its end is an event on its descriptor. */
    int child = atoi(fixture_wrote(line, sizeof line));
    EXPECT(child > 0);
    struct pollfd ended = {.fd = pidfd_open(child, 0), .events = POLLIN};
    if (ended.fd >= 0) {
        int ready = poll(&ended, 1, 10000);
        kill(child, SIGKILL); /* only if the runner has not done so */
        EXPECT_EQ(ready, 1);
    } else {
        EXPECT_EQ(errno, ESRCH);
    }
}

TEST(harness, call_too_few_and_call_too_many_fail)
{
    expect_failure("called_too_little", "must_call \"twice\": called 1 times, expected 2");
    expect_failure("called_too_often", "must_call \"never\": call 1, expected 0");
}

TEST(harness, skip_shows_its_reason)
{
    EXPECT_EQ(run("--filter fixture.skips"), 0);
    expect_output("skipped fixture.skips: no such device\n");
    expect_last_line("0 passed, 0 failed, 1 skipped");
}

TEST(harness, death_needs_abort_and_text)
{
    expect_failure("death_survives", "lived, exit code 0");
    expect_failure("death_other_text", "output lacks \"farewell\"");
    expect_failure("death_other_signal", "Killed, not abort");
}

static void die_loudly(void)
{
    fputs("last words\n", stderr);
    abort();
}

TEST(harness, death_test_passes_on_abort_with_text)
{
    EXPECT_DEATH(die_loudly(), "last words");
    EXPECT_DEATH(die_loudly(), "last");
}

TEST(harness, failure_in_another_thread_fails)
{
    expect_failure("fails_in_thread", "EXPECT(arg != NULL)");
}

TEST(harness, output_is_shown_only_on_failure)
{
    EXPECT_EQ(run("--filter fixture.talks"), 0);
    EXPECT(strstr(output, "idle talk") == NULL);
}

TEST(harness, same_seed_gives_same_numbers)
{
    char first[128], second[128], third[128];
    fixture_file();
    EXPECT_EQ(run("--seed 7 --filter fixture.prints_numbers"), 0);
    expect_output("seed 7\n");
    fixture_wrote(first, sizeof first);
    EXPECT_EQ(run("--seed 7 --filter fixture.prints_numbers"), 0);
    fixture_wrote(second, sizeof second);
    EXPECT_EQ(run("--seed 8 --filter fixture.prints_numbers"), 0);
    fixture_wrote(third, sizeof third);
    EXPECT_STR(first, second);
    EXPECT(strncmp(first, "7 ", 2) == 0);
    EXPECT(strcmp(strchr(first, ' '), strchr(third, ' ')) != 0);
}

TEST(harness, temp_dir_is_private_and_removed)
{
    char line[256];
    fixture_file();
    EXPECT_EQ(run("--filter fixture.fills_temp_dir"), 0);
    EXPECT(access(fixture_wrote(line, sizeof line), F_OK) != 0);
}

TEST(harness, filter_that_matches_nothing_is_an_error)
{
    EXPECT_EQ(run("--filter no.such.test"), 1);
    expect_last_line("0 passed, 0 failed, 0 skipped");
}

TEST(harness, jobs_run_beside_each_other)
{
    EXPECT_EQ(mkfifo(fixture_file(), 0600), 0);
    EXPECT_EQ(run("--jobs 1 --timeout 1 --filter fixture.meets"), 1);
    expect_last_line("0 passed, 2 failed, 0 skipped");
    EXPECT_EQ(run("--jobs 2 --timeout 20 --filter fixture.meets"), 0);
    expect_last_line("2 passed, 0 failed, 0 skipped");
}
