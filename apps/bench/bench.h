/* SPDX-License-Identifier: MIT */
/* bench/bench.h: what a suite gives to the harness and gets from it.
 *
 * Job        A suite is a table of rows; a row names one piece of work and the functions that do it, with Weir and with
 *            peers. The harness (run.c) finds out how many operations make a good repeat, runs the repeats interleaved,
 *            each in a process of its own, and reports them (report.c).
 * Invariants Ids are short and never change their meaning: results of different versions are compared by them.
 * Threads    Harness: one. A row's function may start what it likes, in its own process.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "stats.h"
#include <stdbool.h>
#include <stdint.h>

/* What one repeat has to do: `warm` operations unmeasured, then `ops` measured. Both are multiples of the row's
 * step. */
typedef struct bench_job {
    uint64_t warm, ops;
    unsigned threads;
    const char *address; /* of the server, for suites that need one */
    const void *what;    /* the row's own parameter */
} bench_job;

/* What it found. `writes`: system calls that wrote, 0 where nobody counts. */
typedef struct bench_sample {
    uint64_t elapsed_ns, ops, writes;
} bench_sample;

/* Does the job in the calling process and fills the sample, or ends the process with bench_fail. */
typedef void bench_work(const bench_job *job, bench_sample *sample);

typedef struct bench_row {
    const char *id, *unit;
    uint64_t step;    /* operations come in multiples of this */
    bench_work *weir; /* the work with Weir */
    bench_work *peer; /* the same with a peer in the same process; NULL: none */
    const void *what;
} bench_row;

typedef struct bench_suite {
    const char *name, *about;
    const char *peer; /* the name of the rows' peer */
    bool rate;        /* operations a second are reported (more is better), else nanoseconds an operation */
    bool server;      /* talks to a server; a second server is the peer, with the same work */
    uint64_t threads; /* set of scheduler counts it runs on */
    const bench_row *rows;
    size_t row_count;
} bench_suite;

extern const bench_suite bench_heap, bench_messages, bench_redis;

/* Says what went wrong and ends the process of this repeat; the harness then reports the row as failed. Any thread. */
_Noreturn void bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Fails when a call of the runtime has: bench_must("weir_send", rc). */
void bench_must(const char *what, int rc);

/* weir_run with that many schedulers; fails unless it returns 0. */
void bench_weir_run(unsigned threads, void (*start)(void *arg), void *arg);

typedef struct bench_options {
    const char *json, *filter, *cpus;
    const char *address, *peer_address, *peer_name;
    unsigned runs, repeat_ms;
    uint64_t threads; /* 0: as the suite says */
} bench_options;

/* One line of the result. */
typedef struct bench_result {
    const bench_row *row;
    const char *impl;
    unsigned threads;
    bench_stats stats;
    bench_stats writes; /* for each operation; runs == 0: not counted */
} bench_result;

/* run.c. Returns how many results were written to *out (malloc), or -1 after a failed repeat; *matched: rows that the
 * filter let through. */
int bench_run_suite(const bench_suite *suite, const bench_options *options, bench_result **out, size_t *matched);

/* report.c */
void bench_print_machine(const bench_options *options);
void bench_print_table(const bench_suite *suite, const bench_result *results, size_t count);
bool bench_can_write(const char *path); /* asked before minutes of work; makes an empty file if there is none */
int bench_write_json(const char *path, const bench_suite *suite, const bench_options *options,
                     const bench_result *results, size_t count);
void bench_note_machine(void); /* reads the load average before anything runs */

/* ../../bench/heap.c: `weir-bench exec`, for instruction counts. Returns an exit code. */
int bench_exec(const char *id, uint64_t count);

#endif
