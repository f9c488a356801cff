/* SPDX-License-Identifier: MIT */
/* platform/poll_epoll.c: readiness by one edge-triggered epoll instance that all waiting threads share.
 *
 * Job        The poller contract on epoll; wakes through an eventfd that is registered edge-triggered and never read.
 * Invariants Each write to the eventfd makes one edge, even while its counter stands above zero, and epoll hands one
 *            edge to one waiter. The edge only says "look": which thread is freed is decided by the count in
 *            poll_wait.h, so edges that melted together or were fetched by a thread that only looks are made good by
 *            another write.
 *            A descriptor with an empty wanted set is not registered at all: epoll would report its
 *            hang-up without being asked.
 * Threads    Any. `published` orders what add and arm saw before what wait returns: the way through the kernel is none
 *            that the C memory model or ThreadSanitizer knows.
 * Cost       One system call each. Timeouts in nanoseconds need epoll_pwait2 (Linux 5.11); without it they are rounded
 *            up to milliseconds.
 * Tried      To let the edges alone decide: of two writes before anybody looked, one woken thread slept on.
 */
#include "platform/poll.h"
#include "platform/check.h"
#include "platform/os.h"
#include "platform/poll_wait.h"

#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define BATCH_MAX 256
#define NS_PER_MS 1000000
#define NS_PER_S 1000000000

typedef struct epoll_poller {
    wr_poller base;
    int epoll_fd;
    int wake_fd;
    atomic_bool no_pwait2; /* set once by whoever finds out; relaxed, a late reader only tries again */
    WR_ALIGNED(WR_CACHE_LINE) wr_poll_waiters waiters;
    WR_ALIGNED(WR_CACHE_LINE) _Atomic uint32_t published;
} epoll_poller;

static epoll_poller *epoll_of(wr_poller *base)
{
    WR_ASSERT(base->operations == &wr_poll_epoll);
    return WR_CONTAINER(epoll_poller, base, base);
}

static void epoll_close(wr_poller *base)
{
    epoll_poller *poller = epoll_of(base);
    if (poller->wake_fd >= 0)
        wr_fd_close(poller->wake_fd);
    if (poller->epoll_fd >= 0)
        wr_fd_close(poller->epoll_fd);
    wr_os_free(poller);
}

static int control(epoll_poller *poller, int operation, int fd, uint64_t key, uint32_t system_events)
{
    struct epoll_event event = {.events = system_events, .data.u64 = key};
    return epoll_ctl(poller->epoll_fd, operation, fd, &event) == 0 ? 0 : -errno;
}

static int epoll_open(wr_poller **out)
{
    epoll_poller *poller = wr_os_alloc(sizeof *poller);
    if (poller == NULL)
        return -ENOMEM;
    poller->base.operations = &wr_poll_epoll;
    poller->wake_fd = -1;
    int code = 0;
    poller->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (poller->epoll_fd < 0)
        code = -errno;
    if (code == 0) {
        poller->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        code = poller->wake_fd < 0 ? -errno
                                   : control(poller, EPOLL_CTL_ADD, poller->wake_fd, WR_POLL_NO_KEY, EPOLLIN | EPOLLET);
    }
    if (code != 0)
        epoll_close(&poller->base);
    else
        *out = &poller->base;
    return code;
}

static uint32_t to_system(unsigned events)
{
    uint32_t system_events = EPOLLET;
    if (events & WR_POLL_IN)
        system_events |= EPOLLIN | EPOLLRDHUP;
    if (events & WR_POLL_OUT)
        system_events |= EPOLLOUT;
    if (events & WR_POLL_HANGUP)
        system_events |= EPOLLRDHUP;
    return system_events;
}

static unsigned from_system(uint32_t system_events)
{
    unsigned events = 0;
    if (system_events & EPOLLIN)
        events |= WR_POLL_IN;
    if (system_events & EPOLLOUT)
        events |= WR_POLL_OUT;
    if (system_events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP))
        events |= WR_POLL_HANGUP | WR_POLL_IN;
    return events;
}

static void publish(epoll_poller *poller)
{
    atomic_fetch_add_explicit(&poller->published, 1, memory_order_release);
}

static int epoll_remove(wr_poller *base, int fd)
{
    int code = control(epoll_of(base), EPOLL_CTL_DEL, fd, WR_POLL_NO_KEY, 0);
    return code == -ENOENT ? 0 : code;
}

static int epoll_add(wr_poller *base, int fd, uint64_t key, unsigned events)
{
    epoll_poller *poller = epoll_of(base);
    publish(poller);
    int code = control(poller, EPOLL_CTL_ADD, fd, key, to_system(events));
    /* Registered and taken out again, so that an unusable descriptor is refused now and not when it is first armed. */
    if (code == 0 && events == 0)
        code = epoll_remove(base, fd);
    return code;
}

static int epoll_arm(wr_poller *base, int fd, uint64_t key, unsigned events)
{
    if (events == 0)
        return epoll_remove(base, fd);
    epoll_poller *poller = epoll_of(base);
    publish(poller);
    int code = control(poller, EPOLL_CTL_MOD, fd, key, to_system(events));
    return code == -ENOENT ? control(poller, EPOLL_CTL_ADD, fd, key, to_system(events)) : code;
}

static void ring(epoll_poller *poller)
{
    int saved = errno;
    uint64_t one = 1;
    ssize_t written;
    do {
        written = write(poller->wake_fd, &one, sizeof one);
    } while (written < 0 && errno == EINTR);
    errno = saved;
}

static void epoll_wake(wr_poller *base)
{
    epoll_poller *poller = epoll_of(base);
    if (wr_poll_waiters_post(&poller->waiters))
        ring(poller);
}

/* The system call: number of events, 0 when the time is over, -EINTR. */
static int sleep_for_events(epoll_poller *poller, struct epoll_event *batch, int max, int64_t timeout_ns)
{
    int count = -1;
    errno = ENOSYS;
    if (timeout_ns > 0 && !atomic_load_explicit(&poller->no_pwait2, memory_order_relaxed)) {
        struct timespec timeout = {.tv_sec = timeout_ns / NS_PER_S, .tv_nsec = timeout_ns % NS_PER_S};
        count = epoll_pwait2(poller->epoll_fd, batch, max, &timeout, NULL);
        if (count < 0 && errno != EINTR)
            atomic_store_explicit(&poller->no_pwait2, true, memory_order_relaxed);
    }
    if (count < 0 && errno != EINTR) {
        int64_t rounded_ms = timeout_ns / NS_PER_MS + (timeout_ns % NS_PER_MS > 0);
        int timeout_ms =
            timeout_ns <= 0 ? (int)(timeout_ns < 0 ? -1 : 0) : (int)(rounded_ms < INT_MAX ? rounded_ms : INT_MAX);
        count = epoll_wait(poller->epoll_fd, batch, max, timeout_ms);
    }
    if (count < 0) {
        WR_CHECK(errno == EINTR, "waiting for events failed (errno %d)", errno);
        count = -EINTR;
    }
    atomic_load_explicit(&poller->published, memory_order_acquire);
    return count;
}

/* Hands the batch on; `out_rung` says whether the eventfd was among it. */
static int translate(const struct epoll_event *batch, int count, wr_poll_event *events, bool *out_rung)
{
    int kept = 0;
    *out_rung = false;
    for (int i = 0; i < count; i++) {
        if (batch[i].data.u64 == WR_POLL_NO_KEY)
            *out_rung = true;
        else
            events[kept++] = (wr_poll_event){.key = batch[i].data.u64, .events = from_system(batch[i].events)};
    }
    return kept;
}

static int epoll_wait_for(wr_poller *base, wr_poll_event *events, int max, int64_t timeout_ns)
{
    epoll_poller *poller = epoll_of(base);
    struct epoll_event batch[BATCH_MAX];
    int64_t deadline = wr_poll_deadline(timeout_ns);
    bool look = timeout_ns == 0 || wr_poll_waiters_enter(&poller->waiters);
    if (max > BATCH_MAX)
        max = BATCH_MAX;
    if (look)
        timeout_ns = 0;
    for (;;) {
        bool rung;
        int count = sleep_for_events(poller, batch, max, timeout_ns);
        int kept = translate(batch, count, events, &rung);
        bool freed = !look && rung && wr_poll_waiters_take(&poller->waiters);
        if (rung && wr_poll_waiters_stranded(&poller->waiters) && (look || freed))
            ring(poller);
        if (look || freed)
            return kept;
        if (kept > 0 || count <= 0) {
            wr_poll_waiters_leave(&poller->waiters);
            return kept;
        }
        timeout_ns = wr_poll_remaining(deadline);
    }
}

static unsigned epoll_waiting(wr_poller *base)
{
    return wr_poll_waiting(atomic_load_explicit(&epoll_of(base)->waiters.state, memory_order_acquire));
}

const wr_poll_operations wr_poll_epoll = {
    .name = "epoll",
    .rearm_needed = false,
    .open = epoll_open,
    .close = epoll_close,
    .add = epoll_add,
    .arm = epoll_arm,
    .remove = epoll_remove,
    .wait = epoll_wait_for,
    .wake = epoll_wake,
    .waiting = epoll_waiting,
};
