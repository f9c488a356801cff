/* SPDX-License-Identifier: MIT */
/* platform/poll.h: readiness of descriptors behind one small interface with two backends; where idle threads sleep.
 *
 * Job        Tell which descriptors became ready. Several threads may wait on one poller; each event goes to exactly
 *            one of them.
 * Contract   A report is edge-like: after WR_POLL_IN was reported for a descriptor it is reported again only after (a)
 *            the user has read until -EAGAIN and more arrived, or (b) the user armed it again. Users therefore read
 *            until -EAGAIN (or remember that they stopped) and arm again whenever they want a report; spurious reports
 *            are allowed.
 *            `arm` replaces key and set of wanted events; if one of them holds already, it is reported, also when the
 *            set is the one it had. wr_poller_rearm_needed says whether a report disarms the descriptor as a whole:
 *            where it is true, call `arm` with the whole set still wanted after each handled report; where it is
 *            false, call `arm` only to change the set, or to be told again of what was left unread. So one user
 *            serves both: `if (set changed || left unread || rearm_needed) arm`.
 *            WR_POLL_HANGUP (peer closed or error) may be reported with any wanted set that is not empty, always
 *            together with WR_POLL_IN, wanted or not, so that a reader reads to the end; with an empty set nothing is
 *            reported.
 *            `key` is handed back verbatim (any value but WR_POLL_NO_KEY): never a pointer, so that a late event can
 *            be recognised (slot and generation). What the thread that added or armed wrote before is visible to the
 *            thread that gets the report.
 *            `add` of a descriptor that is there is -EEXIST, of a regular file or folder -EPERM; `arm` of one that was
 *            never added is a misuse; `remove` of one that is not there is harmless (0).
 *            `remove` before the descriptor is closed. After `remove` returned, a wait that is under way in another
 *            thread may still hand out an event with the old key: the generation in the key is for that.
 * Backends   epoll (edge-triggered, one instance shared by all waiting threads) and poll(2) (portable: one thread
 *            polls, the others wait for their turn). Chosen at open: WR_POLL_BEST, or WEIR_POLL=epoll|poll in the
 *            environment (read by the caller).
 * Threads    All functions from any thread. wr_poller_wake also from signal handlers.
 * Cost       epoll: add, changed arm and remove one system call each; wait one. poll(2): wait is linear in the
 *            descriptors.
 */
#ifndef WR_PLATFORM_POLL_H
#define WR_PLATFORM_POLL_H

#include "platform/compiler.h"
#include <stdbool.h>
#include <stdint.h>

#define WR_POLL_IN 1u
#define WR_POLL_OUT 2u
#define WR_POLL_HANGUP 4u

#define WR_POLL_NO_KEY UINT64_MAX

typedef enum wr_poll_backend { WR_POLL_BEST, WR_POLL_EPOLL, WR_POLL_POLL } wr_poll_backend;

typedef struct wr_poll_event {
    uint64_t key;
    unsigned events;
} wr_poll_event;

typedef struct wr_poller wr_poller;

/* What a backend provides; poll_epoll.c and poll_poll.c each define one of these. */
typedef struct wr_poll_operations {
    const char *name;
    bool rearm_needed; /* a report disarms the descriptor until it is armed again */
    int (*open)(wr_poller **out);
    void (*close)(wr_poller *poller);
    int (*add)(wr_poller *poller, int fd, uint64_t key, unsigned events);
    int (*arm)(wr_poller *poller, int fd, uint64_t key, unsigned events);
    int (*remove)(wr_poller *poller, int fd);
    int (*wait)(wr_poller *poller, wr_poll_event *events, int max, int64_t timeout_ns);
    void (*wake)(wr_poller *poller);
    unsigned (*waiting)(wr_poller *poller);
} wr_poll_operations;

struct wr_poller { /* first member of each backend's own struct */
    const wr_poll_operations *operations;
};

extern const wr_poll_operations wr_poll_epoll, wr_poll_poll;

int wr_poller_open(wr_poll_backend backend, wr_poller **out);
void wr_poller_close(wr_poller *poller);
int wr_poller_add(wr_poller *poller, int fd, uint64_t key, unsigned events);
int wr_poller_arm(wr_poller *poller, int fd, uint64_t key, unsigned events);
int wr_poller_remove(wr_poller *poller, int fd);

WR_INLINE bool wr_poller_rearm_needed(const wr_poller *poller)
{
    return poller->operations->rearm_needed;
}

/* Waits at most timeout_ns (0: looks only; < 0: for ever). Returns the number of events (0 .. max); 0 also when woken
 * or interrupted by a signal. `max` 1 .. 1024. */
int wr_poller_wait(wr_poller *poller, wr_poll_event *events, int max, int64_t timeout_ns);
/* Makes exactly one thread return from wr_poller_wait: one that waits now or, if none does, the next that would sleep
 * (a call with timeout 0 takes no wake away). Calls add up at least to one: two wakes may free one or two waiters when
 * nobody was waiting; each wake frees a waiter of its own when several wait. What the caller wrote before is visible to
 * the thread that returns. */
void wr_poller_wake(wr_poller *poller);
/* How many threads wait at this instant; a wake from now on finds them. For statistics, audits and tests. */
unsigned wr_poller_waiting(wr_poller *poller);

#endif
