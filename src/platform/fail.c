/* SPDX-License-Identifier: MIT */
/* platform/fail.c: ask the installed function whether a call shall fail.
 *
 * Job        Count how often each kind of call was passed and hand kind and number to whoever decides.
 * Invariants Counting starts at 0 with each installation, so that a recorded (kind, nth) repeats.
 * Threads    wr_fail_ask from any; wr_fail_install only while nothing else runs. The argument is published by the
 *            release store of the function.
 * Cost       Nothing is counted while no function is installed.
 */
#include "platform/fail.h"
#include "platform/check.h"

_Atomic(wr_fail_decide *) wr_fail_decider;

static void *decider_argument;
static _Atomic uint64_t passed[WR_FAIL_KINDS];

static const char *const kind_names[WR_FAIL_KINDS] = {
    [WR_FAIL_RESERVE] = "reserve",
    [WR_FAIL_COMMIT] = "commit",
    [WR_FAIL_DECOMMIT] = "decommit",
    [WR_FAIL_ALLOC] = "alloc",
    [WR_FAIL_THREAD] = "thread",
    [WR_FAIL_POLLER] = "poller",
    [WR_FAIL_POLL_ADD] = "poll_add",
    [WR_FAIL_POLL_ARM] = "poll_arm",
    [WR_FAIL_RECEIVE] = "receive",
    [WR_FAIL_SEND] = "send",
    [WR_FAIL_LISTEN] = "listen",
    [WR_FAIL_ACCEPT] = "accept",
    [WR_FAIL_CONNECT] = "connect",
    [WR_FAIL_PAIR] = "pair",
    [WR_FAIL_RANDOM] = "random",
    [WR_FAIL_SHUTDOWN] = "shutdown",
    [WR_FAIL_LOCAL_ADDRESS] = "local_address",
    [WR_FAIL_PATH] = "path",
    [WR_FAIL_FD_RESERVE] = "fd_reserve",
};

void wr_fail_install(wr_fail_decide *decide, void *arg)
{
    decider_argument = arg;
    for (int kind = 0; kind < WR_FAIL_KINDS; kind++)
        atomic_store_explicit(&passed[kind], 0, memory_order_relaxed);
    atomic_store_explicit(&wr_fail_decider, decide, memory_order_release);
}

int wr_fail_ask(wr_fail_kind kind)
{
    WR_ASSERT((unsigned)kind < WR_FAIL_KINDS);
    wr_fail_decide *decide = atomic_load_explicit(&wr_fail_decider, memory_order_acquire);
    if (decide == NULL)
        return 0;
    int code = decide(decider_argument, kind, atomic_fetch_add_explicit(&passed[kind], 1, memory_order_relaxed));
    WR_CHECK(code <= 0, "a failure point was answered with %d; answer 0 or a negative error code", code);
    return code;
}

const char *wr_fail_kind_name(wr_fail_kind kind)
{
    return (unsigned)kind < WR_FAIL_KINDS ? kind_names[kind] : "unknown";
}
