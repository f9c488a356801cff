/* SPDX-License-Identifier: MIT */
/* bench/run.c: repeats of rows, interleaved, each in a process of its own.
 *
 * Job        For each row and each number of schedulers: find how many operations fill a repeat (that is the warm-up of
 *            the machine too), then repeat 1 of Weir, repeat 1 of the peer, repeat 2 of Weir, ...
 * Invariants A repeat starts from a fresh process: no heap, cache of freed memory or thread of an earlier one can help
 *            or harm it. A repeat that crashes, fails or does not answer within TIME_LIMIT_S fails the run; nothing is
 *            reported for it.
 * Threads    One; never forks while another thread exists.
 * Cost       A fork and the start of a runtime a repeat, outside of what is measured.
 */
#include "bench.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weir/weir.h>

#define TIME_LIMIT_S 60

static const char *current = "weir-bench"; /* the row that is being run, for messages */

/* Ends the progress line of a terminal, so that a message begins a line of its own. */
static const char *line_end(void)
{
    return isatty(STDERR_FILENO) == 1 ? "\n" : "";
}

void bench_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%sweir-bench: %s: ", line_end(), current);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    _exit(1); /* not exit: other threads may be in the middle of something */
}

void bench_must(const char *what, int rc)
{
    if (rc < 0)
        bench_fail("%s: %s", what, weir_strerror(rc));
}

void bench_weir_run(unsigned threads, void (*start)(void *arg), void *arg)
{
    weir_options options = {.threads = threads};
    int rc = weir_run(&options, start, arg);
    if (rc != 0)
        bench_fail("the run ended with %d (%s)", rc, weir_strerror(rc));
}

/* An implementation of a row: Weir, the peer, or the same client on another server. */
typedef struct contestant {
    const char *name;
    bench_work *work;
    bench_job job;
    double values[BENCH_RUNS_MAX], writes[BENCH_RUNS_MAX];
    bool writes_counted;
} contestant;

/* Reads one sample; false when the writer ended without one or the time is over. */
static bool read_sample(int fd, bench_sample *sample)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    int rc;
    do {
        rc = poll(&ready, 1, TIME_LIMIT_S * 1000);
    } while (rc < 0 && errno == EINTR);
    if (rc == 0)
        fprintf(stderr, "%sweir-bench: %s: no result within %d s\n", line_end(), current, TIME_LIMIT_S);
    return rc == 1 && read(fd, sample, sizeof(*sample)) == (ssize_t)sizeof(*sample);
}

/* One repeat in a child. */
static bool run_once(const contestant *c, bench_sample *sample)
{
    int ends[2];
    if (pipe(ends) != 0) {
        perror("weir-bench: pipe");
        return false;
    }
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) {
        perror("weir-bench: fork");
        close(ends[0]);
        close(ends[1]);
        return false;
    }
    if (child == 0) {
        close(ends[0]);
        bench_sample mine = {0};
        c->work(&c->job, &mine);
        if (write(ends[1], &mine, sizeof(mine)) != (ssize_t)sizeof(mine))
            _exit(1);
        _exit(0);
    }
    close(ends[1]);
    bool good = read_sample(ends[0], sample);
    close(ends[0]);
    if (!good)
        kill(child, SIGKILL);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (good && status != 0)
        good = false;
    if (!good && WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
        fprintf(stderr, "%sweir-bench: %s: killed by signal %d\n", line_end(), current, WTERMSIG(status));
    return good;
}

/* Finds how many operations take about repeat_ms. The measured part then runs after a tenth as many unmeasured ones. */
static bool calibrate(contestant *c, uint64_t step, unsigned repeat_ms)
{
    uint64_t target = (uint64_t)repeat_ms * 1000000;
    bench_sample sample;
    c->job.ops = c->job.warm = step;
    for (;;) {
        if (!run_once(c, &sample))
            return false;
        c->job.ops = bench_scale_ops(sample.ops, sample.elapsed_ns, target, step);
        if (sample.elapsed_ns >= target / 5 || c->job.ops == sample.ops)
            break;
    }
    uint64_t warm = c->job.ops / 10;
    warm -= warm % step;
    c->job.warm = warm < step ? step : warm;
    return true;
}

static void keep(contestant *c, unsigned run, bool rate, const bench_sample *sample)
{
    double ns = (double)(sample->elapsed_ns ? sample->elapsed_ns : 1), ops = (double)sample->ops;
    c->values[run] = rate ? ops * 1e9 / ns : ns / ops;
    c->writes[run] = (double)sample->writes / ops;
    if (sample->writes)
        c->writes_counted = true;
}

static size_t contestants_of(const bench_suite *suite, const bench_row *row, const bench_options *options,
                             unsigned threads, contestant out[2])
{
    bench_job job = {.threads = threads, .address = options->address, .what = row->what};
    out[0] = (contestant){.name = "weir", .work = row->weir, .job = job};
    if (suite->server && options->peer_address) {
        job.address = options->peer_address;
        out[1] = (contestant){.name = options->peer_name, .work = row->weir, .job = job};
        return 2;
    }
    if (row->peer) {
        out[1] = (contestant){.name = suite->peer, .work = row->peer, .job = job};
        return 2;
    }
    return 1;
}

static bool run_row(const bench_suite *suite, const bench_row *row, const bench_options *options, unsigned threads,
                    bench_result *out, size_t *count)
{
    contestant both[2];
    size_t contestants = contestants_of(suite, row, options, threads, both);
    for (size_t i = 0; i < contestants; i++)
        if (!calibrate(&both[i], row->step, options->repeat_ms))
            return false;
    for (unsigned run = 0; run < options->runs; run++) {
        for (size_t i = 0; i < contestants; i++) {
            bench_sample sample;
            if (!run_once(&both[i], &sample))
                return false;
            keep(&both[i], run, suite->rate, &sample);
        }
    }
    for (size_t i = 0; i < contestants; i++) {
        bench_result *result = &out[(*count)++];
        *result = (bench_result){.row = row, .impl = both[i].name, .threads = threads};
        result->stats = bench_stats_of(both[i].values, options->runs);
        if (both[i].writes_counted)
            result->writes = bench_stats_of(both[i].writes, options->runs);
    }
    return true;
}

static bool wanted(const bench_row *row, const bench_options *options)
{
    return options->filter == NULL || strstr(row->id, options->filter) != NULL;
}

/* One line a row: rewritten in place on a terminal, one below the other in a log. */
static void progress(const bench_suite *suite, const bench_row *row, unsigned threads, size_t at, size_t total)
{
    static char name[80];
    bool terminal = isatty(STDERR_FILENO) == 1;
    snprintf(name, sizeof(name), "%s/%s on %u %s", suite->name, row->id, threads, threads == 1 ? "thread" : "threads");
    current = name;
    fprintf(stderr, "%s[%zu/%zu] %s%s", terminal ? "\r\033[K" : "", at, total, name, terminal ? "" : "\n");
}

int bench_run_suite(const bench_suite *suite, const bench_options *options, bench_result **out, size_t *matched)
{
    uint64_t threads = options->threads && !suite->server ? options->threads & suite->threads : suite->threads;
    size_t rows = 0, at = 0, count = 0;
    for (size_t i = 0; i < suite->row_count; i++)
        rows += wanted(&suite->rows[i], options);
    *matched = rows;
    size_t total = rows * (size_t)__builtin_popcountll(threads);
    *out = calloc(2 * total + 1, sizeof(**out));
    if (*out == NULL) {
        fputs("weir-bench: out of memory\n", stderr);
        return -1;
    }
    for (size_t i = 0; i < suite->row_count; i++) {
        if (!wanted(&suite->rows[i], options))
            continue;
        for (unsigned t = 1; t < 64; t++) {
            if (!(threads >> t & 1))
                continue;
            progress(suite, &suite->rows[i], t, ++at, total);
            if (!run_row(suite, &suite->rows[i], options, t, *out, &count)) {
                fprintf(stderr, "%sweir-bench: %s failed\n", line_end(), current);
                return -1;
            }
        }
    }
    if (isatty(STDERR_FILENO) == 1)
        fputs("\r\033[K", stderr);
    return (int)count;
}
