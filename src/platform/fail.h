/* SPDX-License-Identifier: MIT */
/* platform/fail.h: the one place that every call that can fail passes, so that a test can make it fail.
 *
 * Job        `wr_fail_point(WR_FAIL_x)` returns 0, or the negative code the call shall fail with. Nothing is chosen
 *            here: a test (later the simulation) installs a function that decides. Points are numbered by kind and by
 *            how often the kind was passed.
 * Threads    Any. Installing: only while nothing else runs.
 * Cost       One relaxed load and a predicted branch.
 */
#ifndef WR_PLATFORM_FAIL_H
#define WR_PLATFORM_FAIL_H

#include "platform/compiler.h"
#include <stdatomic.h>

typedef enum wr_fail_kind {
    WR_FAIL_RESERVE,
    WR_FAIL_COMMIT,
    WR_FAIL_DECOMMIT,
    WR_FAIL_ALLOC,
    WR_FAIL_THREAD,
    WR_FAIL_POLLER,
    WR_FAIL_POLL_ADD,
    WR_FAIL_POLL_ARM,
    WR_FAIL_RECEIVE,
    WR_FAIL_SEND,
    WR_FAIL_LISTEN,
    WR_FAIL_ACCEPT,
    WR_FAIL_CONNECT,
    WR_FAIL_PAIR,
    WR_FAIL_RANDOM,
    WR_FAIL_SHUTDOWN,
    WR_FAIL_LOCAL_ADDRESS,
    WR_FAIL_PATH,
    WR_FAIL_FD_RESERVE,
    WR_FAIL_KINDS
} wr_fail_kind;

/* Decides for the `nth` (from 0) passing of `kind`: 0 goes on, a negative code fails the call. May be entered by
 * several threads. */
typedef int wr_fail_decide(void *arg, wr_fail_kind kind, uint64_t nth);

void wr_fail_install(wr_fail_decide *decide, void *arg); /* NULL: never fail */
int wr_fail_ask(wr_fail_kind kind);
const char *wr_fail_kind_name(wr_fail_kind kind);
extern _Atomic(wr_fail_decide *) wr_fail_decider;

WR_INLINE int wr_fail_point(wr_fail_kind kind)
{
    if (WR_LIKELY(atomic_load_explicit(&wr_fail_decider, memory_order_relaxed) == NULL))
        return 0;
    return wr_fail_ask(kind);
}

#endif
