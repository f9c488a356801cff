/* SPDX-License-Identifier: MIT */
/* tests/harness.c: weir-tests, the runner, and the expectations of harness.h.
 *
 * Job        The parent starts each test by fork and exec of itself (`--one NAME`), some at a time, and judges how it ended.
 * Invariants A test's output goes to a file and is shown only if it failed. Its process group is killed while its leader is
 *            still a zombie, so the number cannot have passed to somebody else. The last line is `N passed, N failed, N skipped`.
 * Threads    The parent has one, and waits only in sigtimedwait. In the child, any thread may fail the test.
 * Cost       See harness.h.
 * Tried      Output through pipes: a grandchild that keeps one open makes its end unusable as a sign that the test has ended.
 */
#include "harness.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <weir/base.h>

enum { EXIT_PASS = 0, EXIT_FAIL = 1, EXIT_USAGE = 2, EXIT_SKIP = 77 };
enum { JOBS_MAX = 64, FILTERS_MAX = 32, MUST_CALLS_MAX = 256, PATH_BYTES = 96, OUTPUT_SHOWN_MAX = 64 * 1024 };

typedef struct test {
    const char *group;
    const char *name;
    void (*run)(void);
    bool fixture; /* a specimen for the harness's own tests, run with --fixtures only */
} test;

#define T(group, name) {#group, #name, test_##group##_##name, false},
static const test tests[] = {
#include "list.h"
#undef T
#define T(group, name) {#group, #name, test_##group##_##name, true},
#include "unit/harness/fixtures.h"
};
#undef T

enum { TESTS = sizeof tests / sizeof *tests };

static uint64_t seed;

/* ---- inside a test ---- */

struct must_call {
    const char *what;
    unsigned expected;
    atomic_uint called;
};

static must_call must_calls[MUST_CALLS_MAX];
static atomic_uint must_calls_used;
static _Atomic uint64_t random_state;
static char temp_dir[PATH_BYTES];
static bool temp_dir_is_mine; /* run by hand with --one: no parent will remove it */
static pid_t test_pid;        /* a death test's child must not clean up after its parent */

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

static void remove_tree(const char *path)
{
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Ends the process without atexit handlers: other threads may be running. */
__attribute__((noreturn)) static void end_test(int code)
{
    fflush(NULL);
    if (temp_dir_is_mine && getpid() == test_pid) {
        remove_tree(temp_dir);
    }
    _exit(code);
}

void test_fail(const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    flockfile(stderr);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    funlockfile(stderr);
    va_end(args);
    end_test(EXIT_FAIL);
}

void test_skip(const char *file, int line, const char *reason)
{
    printf("%s:%d: skipped\nSKIP %s\n", file, line, reason);
    end_test(EXIT_SKIP);
}

static const char *integer_text(test_integer x, char *out, size_t size)
{
    if (x.negative) {
        snprintf(out, size, "%" PRId64, (int64_t)x.bits);
    } else {
        snprintf(out, size, "%" PRIu64 " (0x%" PRIx64 ")", x.bits, x.bits);
    }
    return out;
}

void test_expect_eq(test_integer a, test_integer b, const char *a_text, const char *b_text, const char *file, int line)
{
    if (a.bits != b.bits || a.negative != b.negative) {
        char left[64], right[64];
        test_fail(file, line, "EXPECT_EQ(%s, %s): %s is not %s", a_text, b_text, integer_text(a, left, sizeof left),
                  integer_text(b, right, sizeof right));
    }
}

void test_expect_str(const char *a, const char *b, const char *a_text, const char *b_text, const char *file, int line)
{
    if (a == NULL || b == NULL || strcmp(a, b) != 0) {
        test_fail(file, line, "EXPECT_STR(%s, %s):\n  left  \"%s\"\n  right \"%s\"", a_text, b_text,
                  a == NULL ? "(null)" : a, b == NULL ? "(null)" : b);
    }
}

static const char *bytes_text(const uint8_t *p, size_t n, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < n && used + 4 < size; i++) {
        used += (size_t)snprintf(out + used, size - used, " %02x", p[i]);
    }
    return out;
}

void test_expect_mem(const void *a, const void *b, size_t size, const char *a_text, const char *b_text,
                     const char *file, int line)
{
    const uint8_t *left = a, *right = b;
    for (size_t i = 0; i < size; i++) {
        if (left[i] != right[i]) {
            size_t shown = size - i < 16 ? size - i : 16;
            char left_text[64], right_text[64];
            test_fail(file, line, "EXPECT_MEM(%s, %s, %zu): first difference at byte %zu\n  left %s\n  right%s", a_text,
                      b_text, size, i, bytes_text(left + i, shown, left_text, sizeof left_text),
                      bytes_text(right + i, shown, right_text, sizeof right_text));
        }
    }
}

void test_expect_ok(int rc, const char *text, const char *file, int line)
{
    if (rc != 0) {
        test_fail(file, line, "EXPECT_OK(%s): %d, %s", text, rc, weir_strerror(rc));
    }
}

must_call *must_call_new(const char *what, unsigned n)
{
    unsigned i = atomic_fetch_add(&must_calls_used, 1);
    EXPECT(i < MUST_CALLS_MAX);
    must_calls[i].what = what;
    must_calls[i].expected = n;
    return &must_calls[i];
}

void must_called(must_call *m)
{
    unsigned called = atomic_fetch_add(&m->called, 1) + 1;
    if (called > m->expected) {
        test_fail(__FILE__, __LINE__, "must_call \"%s\": call %u, expected %u", m->what, called, m->expected);
    }
}

static void must_calls_check(void)
{
    unsigned used = atomic_load(&must_calls_used);
    for (unsigned i = 0; i < used; i++) {
        unsigned called = atomic_load(&must_calls[i].called);
        if (called != must_calls[i].expected) {
            test_fail(__FILE__, __LINE__, "must_call \"%s\": called %u times, expected %u", must_calls[i].what, called,
                      must_calls[i].expected);
        }
    }
}

uint64_t test_seed(void)
{
    return seed;
}

/* splitmix64: the state is one counter, so threads can share it. */
uint64_t test_random(void)
{
    uint64_t x = atomic_fetch_add(&random_state, UINT64_C(0x9e3779b97f4a7c15)) + UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t name_hash(const test *t)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (const char *part = t->group; part != NULL; part = part == t->group ? t->name : NULL) {
        for (const char *c = part; *c != '\0'; c++) {
            hash = (hash ^ (uint8_t)*c) * UINT64_C(1099511628211);
        }
    }
    return hash;
}

static const char *temp_root(void)
{
    /* A long TMPDIR would leave no room for the path of a Unix socket. */
    const char *root = getenv("TMPDIR");
    return root != NULL && root[0] == '/' && strlen(root) < 48 ? root : "/tmp";
}

static void temp_make(char *out, size_t size)
{
    snprintf(out, size, "%s/weir-tests-XXXXXX", temp_root());
    if (mkdtemp(out) == NULL) {
        perror(out);
        exit(EXIT_USAGE);
    }
}

const char *test_temp_dir(void)
{
    if (temp_dir[0] == '\0') {
        const char *given = getenv("WEIR_TEST_TEMP");
        if (given != NULL) {
            snprintf(temp_dir, sizeof temp_dir, "%s", given);
            EXPECT(mkdir(temp_dir, 0700) == 0);
        } else {
            temp_dir_is_mine = true;
            temp_make(temp_dir, sizeof temp_dir);
        }
    }
    return temp_dir;
}

bool test_death_begin(test_death *death)
{
    int ends[2];
    EXPECT(pipe2(ends, O_CLOEXEC) == 0);
    fflush(NULL);
    death->pid = fork();
    EXPECT(death->pid >= 0);
    if (death->pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        signal(SIGABRT, SIG_DFL);
        return true;
    }
    close(ends[1]);
    death->output = ends[0];
    return false;
}

void test_death_survived(void)
{
    _exit(EXIT_PASS);
}

void test_death_expect(test_death *death, const char *text, const char *statement, const char *file, int line)
{
    static char output[16 * 1024];
    char rest[1024];
    size_t used = 0;
    ssize_t n;
    do {
        size_t room = sizeof output - 1 - used;
        n = room > 0 ? read(death->output, output + used, room) : read(death->output, rest, sizeof rest);
        used += room > 0 && n > 0 ? (size_t)n : 0;
    } while (n > 0 || (n < 0 && errno == EINTR));
    output[used] = '\0';
    close(death->output);

    int status = 0;
    while (waitpid(death->pid, &status, 0) < 0) {
        EXPECT(errno == EINTR);
    }
    if (WIFEXITED(status)) {
        test_fail(file, line, "EXPECT_DEATH(%s): lived, exit code %d\n%s", statement, WEXITSTATUS(status), output);
    }
    if (WTERMSIG(status) != SIGABRT) {
        test_fail(file, line, "EXPECT_DEATH(%s): %s, not abort\n%s", statement, strsignal(WTERMSIG(status)), output);
    }
    if (strstr(output, text) == NULL) {
        test_fail(file, line, "EXPECT_DEATH(%s): output lacks \"%s\"\n%s", statement, text, output);
    }
}

static int run_one(const test *t)
{
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    test_pid = getpid();
    setvbuf(stdout, NULL, _IOLBF, 0);
    atomic_store(&random_state, seed ^ name_hash(t));
    t->run();
    must_calls_check();
    /* Told apart from a test that called exit(0) itself. By exit(), so that sanitizers report what they find at the end. */
    puts("TEST RETURNED");
    fflush(NULL);
    if (temp_dir_is_mine) {
        remove_tree(temp_dir);
    }
    exit(EXIT_PASS);
}

/* ---- the runner ---- */

typedef struct options {
    const char *filters[FILTERS_MAX];
    unsigned filter_count;
    unsigned jobs;
    unsigned timeout_s;
    bool list;
    bool fixtures;
    bool verbose;
    const char *one;
} options;

typedef struct job {
    const test *t; /* NULL: free */
    pid_t pid;
    unsigned number;
    int64_t started_ms;
    bool timed_out;
} job;

typedef struct runner {
    const options *opt;
    const char *program;
    char dir[PATH_BYTES];
    job jobs[JOBS_MAX];
    const test *failures[TESTS];
    const test *skips[TESTS];
    char skip_reasons[TESTS][128];
    unsigned next; /* index into tests[] */
    unsigned started, running, passed, failed, skipped;
    bool progress; /* standard output is a terminal */
} runner;

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool selected(const options *opt, const test *t)
{
    if (t->fixture != opt->fixtures) {
        return false;
    }
    char full[256];
    snprintf(full, sizeof full, "%s.%s", t->group, t->name);
    for (unsigned i = 0; i < opt->filter_count; i++) {
        if (strstr(full, opt->filters[i]) != NULL) {
            return true;
        }
    }
    return opt->filter_count == 0;
}

static void file_path(const runner *r, const job *j, const char *kind, char *out, size_t size)
{
    snprintf(out, size, "%.64s/%s%u", r->dir, kind, j->number);
}

static void start_child(const runner *r, const job *j)
{
    char path[PATH_BYTES], text[32], name[256];
    setpgid(0, 0);
    file_path(r, j, "out", path, sizeof path);
    int out = open(path, O_CREAT | O_EXCL | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    file_path(r, j, "t", path, sizeof path);
    setenv("WEIR_TEST_TEMP", path, 1);
    snprintf(text, sizeof text, "%" PRIu64, seed);
    setenv("WEIR_TEST_SEED", text, 1);
    snprintf(name, sizeof name, "%s.%s", j->t->group, j->t->name);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execl("/proc/self/exe", r->program, "--one", name, (char *)NULL);
    perror("exec");
    _exit(EXIT_USAGE);
}

static void start_job(runner *r, const test *t)
{
    job *j = r->jobs;
    while (j->t != NULL) {
        j++;
    }
    *j = (job){.t = t, .number = r->started++, .started_ms = now_ms()};
    fflush(NULL);
    j->pid = fork();
    if (j->pid < 0) {
        perror("fork");
        exit(EXIT_USAGE);
    }
    if (j->pid == 0) {
        start_child(r, j);
    }
    setpgid(j->pid, j->pid); /* in the child as well: whoever comes first */
    r->running++;
}

/* The end of the output, at most OUTPUT_SHOWN_MAX bytes; the caller frees it. */
static char *read_output(const runner *r, const job *j)
{
    char path[PATH_BYTES];
    file_path(r, j, "out", path, sizeof path);
    char *text = calloc(1, OUTPUT_SHOWN_MAX + 1);
    FILE *file = fopen(path, "re");
    if (text == NULL || file == NULL) {
        perror(path);
        exit(EXIT_USAGE);
    }
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    fseek(file, size > OUTPUT_SHOWN_MAX ? size - OUTPUT_SHOWN_MAX : 0, SEEK_SET);
    size_t got = fread(text, 1, OUTPUT_SHOWN_MAX, file);
    for (size_t i = 0; i < got; i++) {
        text[i] = text[i] == '\0' ? '?' : text[i];
    }
    fclose(file);
    return text;
}

static void clear_progress(const runner *r)
{
    if (r->progress) {
        fputs("\r\033[K", stdout);
    }
}

static void show_failure(const runner *r, const job *j, int status, const char *output)
{
    clear_progress(r);
    printf("FAILED %s.%s: ", j->t->group, j->t->name);
    if (j->timed_out) {
        printf("over its time limit of %u s\n", r->opt->timeout_s);
    } else if (WIFSIGNALED(status)) {
        printf("killed by signal %d (%s)\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else if (WEXITSTATUS(status) == EXIT_PASS) {
        printf("left by exit(0) before its end\n");
    } else {
        printf("exit code %d\n", WEXITSTATUS(status));
    }
    for (const char *line = output; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        printf("    %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
    printf("    repeat: WEIR_TEST_SEED=%" PRIu64 " %s%s --filter %s.%s\n", seed, r->program,
           r->opt->fixtures ? " --fixtures" : "", j->t->group, j->t->name);
}

static void judge(runner *r, const job *j, int status)
{
    char *output = read_output(r, j);
    const char *verdict = "passed";
    if (!j->timed_out && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_PASS && strstr(output, "TEST RETURNED\n")) {
        r->passed++;
    } else if (!j->timed_out && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIP) {
        const char *reason = strstr(output, "\nSKIP ");
        reason = reason != NULL ? reason + strlen("\nSKIP ") : "exit code 77";
        snprintf(r->skip_reasons[r->skipped], sizeof r->skip_reasons[0], "%.*s", (int)strcspn(reason, "\n"), reason);
        r->skips[r->skipped++] = j->t;
        verdict = "skipped";
    } else {
        show_failure(r, j, status, output);
        r->failures[r->failed++] = j->t;
        verdict = "FAILED";
    }
    if (r->opt->verbose) {
        printf("%-7s %6.2f s  %s.%s\n", verdict, (double)(now_ms() - j->started_ms) / 1000, j->t->group, j->t->name);
    }
    free(output);
}

static void finish_job(runner *r, job *j)
{
    int status = 0;
    kill(-j->pid, SIGKILL); /* what the test left running; its leader is still a zombie */
    waitpid(j->pid, &status, 0);
    judge(r, j, status);
    char path[PATH_BYTES];
    file_path(r, j, "out", path, sizeof path);
    unlink(path);
    file_path(r, j, "t", path, sizeof path);
    remove_tree(path);
    j->t = NULL;
    r->running--;
}

static void finish_ended(runner *r)
{
    for (unsigned i = 0; i < r->opt->jobs; i++) {
        siginfo_t info = {0};
        if (r->jobs[i].t != NULL && waitid(P_PID, (id_t)r->jobs[i].pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            info.si_pid != 0) {
            finish_job(r, &r->jobs[i]);
        }
    }
}

/* Kills what is over its limit; returns the milliseconds to the next limit. */
static int64_t check_limits(runner *r)
{
    int64_t now = now_ms(), limit_ms = (int64_t)r->opt->timeout_s * 1000, next_ms = limit_ms;
    for (unsigned i = 0; i < r->opt->jobs; i++) {
        job *j = &r->jobs[i];
        if (j->t == NULL || j->timed_out) {
            continue;
        }
        int64_t left_ms = j->started_ms + limit_ms - now;
        if (left_ms <= 0) {
            j->timed_out = true;
            kill(-j->pid, SIGKILL);
        } else if (left_ms < next_ms) {
            next_ms = left_ms;
        }
    }
    return next_ms;
}

static void show_progress(const runner *r)
{
    if (r->progress) {
        const job *j = r->jobs;
        while (j < r->jobs + JOBS_MAX - 1 && j->t == NULL) {
            j++;
        }
        printf("\r\033[K%u done, %u failed  %s.%s", r->passed + r->failed + r->skipped, r->failed,
               j->t != NULL ? j->t->group : "", j->t != NULL ? j->t->name : "");
        fflush(stdout);
    }
}

__attribute__((noreturn)) static void interrupted(runner *r, int signal_number)
{
    for (unsigned i = 0; i < r->opt->jobs; i++) {
        if (r->jobs[i].t != NULL) {
            kill(-r->jobs[i].pid, SIGKILL);
            waitpid(r->jobs[i].pid, NULL, 0);
        }
    }
    remove_tree(r->dir);
    printf("\nstopped by signal %d\n", signal_number);
    fflush(NULL);
    signal(signal_number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    raise(signal_number);
    _exit(EXIT_FAIL);
}

static void run_all(runner *r)
{
    sigset_t waited;
    sigemptyset(&waited);
    sigaddset(&waited, SIGCHLD);
    sigaddset(&waited, SIGINT);
    sigaddset(&waited, SIGTERM);
    sigaddset(&waited, SIGHUP);
    sigprocmask(SIG_BLOCK, &waited, NULL);
    for (;;) {
        for (; r->next < TESTS && r->running < r->opt->jobs; r->next++) {
            if (selected(r->opt, &tests[r->next])) {
                start_job(r, &tests[r->next]);
            }
        }
        if (r->running == 0) {
            break;
        }
        show_progress(r);
        int64_t wait_ms = check_limits(r);
        struct timespec wait = {.tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000};
        int got = sigtimedwait(&waited, NULL, &wait);
        if (got > 0 && got != SIGCHLD) {
            interrupted(r, got);
        }
        finish_ended(r);
    }
    clear_progress(r);
}

static int run_selected(const options *opt, const char *program)
{
    static runner r;
    r.opt = opt;
    r.program = program;
    r.progress = isatty(STDOUT_FILENO) && !opt->verbose;
    temp_make(r.dir, sizeof r.dir);
    run_all(&r);
    remove_tree(r.dir);
    for (unsigned i = 0; i < r.skipped; i++) {
        printf("skipped %s.%s: %s\n", r.skips[i]->group, r.skips[i]->name, r.skip_reasons[i]);
    }
    for (unsigned i = 0; i < r.failed; i++) {
        printf("failed  %s.%s\n", r.failures[i]->group, r.failures[i]->name);
    }
    if (r.started == 0) {
        printf("no test matches the filter\n");
    }
    printf("seed %" PRIu64 "\n%u passed, %u failed, %u skipped\n", seed, r.passed, r.failed, r.skipped);
    return r.failed > 0 || r.started == 0 ? EXIT_FAIL : EXIT_PASS;
}

/* ---- command line ---- */

static const char usage_text[] =
    "usage: weir-tests [--list] [--filter TEXT]... [--jobs N] [--seed N] [--timeout SECONDS] [--verbose]\n"
    "       weir-tests --one GROUP.NAME     runs one test in this process (for a debugger)\n"
    "Each test runs in a process of its own. --filter takes a part of GROUP.NAME. WEIR_TEST_SEED=N is --seed N.\n";

__attribute__((noreturn)) static void usage(const char *problem)
{
    fprintf(stderr, "weir-tests: %s\n%s", problem, usage_text);
    exit(EXIT_USAGE);
}

static uint64_t number(const char *text, uint64_t min, uint64_t max)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end != '\0' || errno != 0 || value < min || value > max) {
        usage("not a number in range");
    }
    return value;
}

static void parse(options *opt, int argc, char **argv)
{
    const char *given_seed = getenv("WEIR_TEST_SEED");
    if (given_seed != NULL && given_seed[0] != '\0') {
        seed = number(given_seed, 0, UINT64_MAX);
    } else if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) {
        usage("no random seed");
    } else {
        seed %= 1000000000; /* short enough to type */
    }
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        if (strcmp(arg, "--list") == 0) {
            opt->list = true;
        } else if (strcmp(arg, "--fixtures") == 0) {
            opt->fixtures = true;
        } else if (strcmp(arg, "--verbose") == 0) {
            opt->verbose = true;
        } else if (strcmp(arg, "--help") == 0) {
            fputs(usage_text, stdout);
            exit(EXIT_PASS);
        } else if (i + 1 == argc) {
            usage("unknown option or missing value");
        } else if (strcmp(arg, "--filter") == 0 && opt->filter_count < FILTERS_MAX) {
            opt->filters[opt->filter_count++] = argv[++i];
        } else if (strcmp(arg, "--jobs") == 0) {
            opt->jobs = (unsigned)number(argv[++i], 1, JOBS_MAX);
        } else if (strcmp(arg, "--seed") == 0) {
            seed = number(argv[++i], 0, UINT64_MAX);
        } else if (strcmp(arg, "--timeout") == 0) {
            opt->timeout_s = (unsigned)number(argv[++i], 1, 1000000);
        } else if (strcmp(arg, "--one") == 0) {
            opt->one = argv[++i];
        } else {
            usage("unknown option");
        }
    }
}

int main(int argc, char **argv)
{
    options opt = {.jobs = 2, .timeout_s = 60};
    parse(&opt, argc, argv);
    for (unsigned i = 0; i < TESTS; i++) {
        char full[256];
        snprintf(full, sizeof full, "%s.%s", tests[i].group, tests[i].name);
        if (opt.one != NULL && strcmp(full, opt.one) == 0) {
            return run_one(&tests[i]);
        }
        if (opt.list && selected(&opt, &tests[i])) {
            puts(full);
        }
    }
    if (opt.one != NULL) {
        usage("no such test");
    }
    return opt.list ? EXIT_PASS : run_selected(&opt, argv[0]);
}
