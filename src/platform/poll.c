/* SPDX-License-Identifier: MIT */
/* platform/poll.c: choose a poller backend and pass calls on to it.
 *
 * Job        One place where arguments are checked and where opening, adding and arming can be made to fail.
 * Invariants Arguments are within the contract when a backend sees them.
 * Threads    As poll.h says.
 * Cost       An indirect call beside the system call.
 */
#include "platform/poll.h"
#include "platform/check.h"
#include "platform/fail.h"

#include <errno.h>

#define EVENTS_ALL (WR_POLL_IN | WR_POLL_OUT | WR_POLL_HANGUP)

int wr_poller_open(wr_poll_backend backend, wr_poller **out)
{
    *out = NULL;
    int code = wr_fail_point(WR_FAIL_POLLER);
    if (code != 0)
        return code;
    if (backend == WR_POLL_POLL)
        return wr_poll_poll.open(out);
    code = wr_poll_epoll.open(out);
    if (code == -ENOSYS && backend == WR_POLL_BEST)
        code = wr_poll_poll.open(out);
    return code;
}

void wr_poller_close(wr_poller *poller)
{
    if (poller == NULL)
        return;
    WR_CHECK(wr_poller_waiting(poller) == 0, "a poller was closed while threads wait on it; wake and join them first");
    poller->operations->close(poller);
}

int wr_poller_add(wr_poller *poller, int fd, uint64_t key, unsigned events)
{
    WR_CHECK(key != WR_POLL_NO_KEY, "descriptor %d was added with the key that is kept for wakes", fd);
    WR_ASSERT((events & ~EVENTS_ALL) == 0);
    if (fd < 0)
        return -EBADF;
    int code = wr_fail_point(WR_FAIL_POLL_ADD);
    return code != 0 ? code : poller->operations->add(poller, fd, key, events);
}

int wr_poller_arm(wr_poller *poller, int fd, uint64_t key, unsigned events)
{
    WR_CHECK(key != WR_POLL_NO_KEY, "descriptor %d was armed with the key that is kept for wakes", fd);
    WR_ASSERT((events & ~EVENTS_ALL) == 0);
    if (fd < 0)
        return -EBADF;
    int code = wr_fail_point(WR_FAIL_POLL_ARM);
    return code != 0 ? code : poller->operations->arm(poller, fd, key, events);
}

int wr_poller_remove(wr_poller *poller, int fd)
{
    return fd < 0 ? -EBADF : poller->operations->remove(poller, fd);
}

int wr_poller_wait(wr_poller *poller, wr_poll_event *events, int max, int64_t timeout_ns)
{
    WR_ASSERT(max >= 1 && max <= 1024);
    return poller->operations->wait(poller, events, max, timeout_ns);
}

void wr_poller_wake(wr_poller *poller)
{
    poller->operations->wake(poller);
}

unsigned wr_poller_waiting(wr_poller *poller)
{
    return poller->operations->waiting(poller);
}
