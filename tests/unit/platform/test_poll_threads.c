/* SPDX-License-Identifier: MIT */
/* tests/unit/platform/test_poll_threads.c: several threads on one poller, for both backends.
 *
 * A test knows that a thread waits from wr_poller_waiting: whoever is counted there is found by the next wake.
 */
#include "unit/platform/kit.h"

#include "platform/fail.h"
#include "platform/poll.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>

#define BOTH(name) \
    static void name(wr_poller *p); \
    TEST(epoll, name) \
    { \
        with_poller(WR_POLL_EPOLL, name); \
    } \
    TEST(poll, name) \
    { \
        with_poller(WR_POLL_POLL, name); \
    } \
    static void name(wr_poller *p)

#define MS INT64_C(1000000)
#define WAITERS 5

static void with_poller(wr_poll_backend backend, void (*body)(wr_poller *p))
{
    wr_poller *p;
    EXPECT_OK(wr_poller_open(backend, &p));
    body(p);
    EXPECT_EQ(wr_poller_waiting(p), 0);
    wr_poller_close(p);
}

static void until_waiting(wr_poller *p, unsigned count)
{
    while (wr_poller_waiting(p) != count)
        sched_yield();
}

/* One wait on a thread of its own, with what came of it. */
typedef struct waiter {
    wr_poller *poller;
    int64_t timeout_ns;
    wr_thread thread;
    int count;
    wr_poll_event event;
    uint64_t took_ns;
    uint64_t *note; /* plain memory that the waker or adder wrote before */
    uint64_t note_read;
    _Atomic uint32_t *returned;
    _Atomic uint64_t thread_id;
} waiter;

static void wait_once(void *arg)
{
    waiter *w = arg;
    atomic_store(&w->thread_id, wr_os_thread_id());
    uint64_t before = wr_clock_ns();
    w->count = wr_poller_wait(w->poller, &w->event, 1, w->timeout_ns);
    w->took_ns = wr_clock_ns() - before;
    if (w->note != NULL)
        w->note_read = *w->note;
    if (w->returned != NULL) {
        atomic_fetch_add_explicit(w->returned, 1, memory_order_release);
        wr_futex_wake(w->returned, 1);
    }
}

static void start(waiter *w)
{
    EXPECT_OK(wr_thread_start(&w->thread, "waiter", wait_once, w));
}

/* Until the kernel says that the waiter sleeps: in its wait, since nothing else holds it up. */
static void until_asleep(waiter *w)
{
    until_waiting(w->poller, 1);
    for (char state = 0; state != 'S';) {
        char path[64];
        snprintf(path, sizeof path, "/proc/self/task/%" PRIu64 "/stat", atomic_load(&w->thread_id));
        FILE *file = fopen(path, "re");
        EXPECT(file != NULL);
        EXPECT_EQ(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
        fclose(file);
    }
}

static void until_returned(_Atomic uint32_t *returned, uint32_t count)
{
    for (uint32_t now; (now = atomic_load_explicit(returned, memory_order_acquire)) != count;) {
        EXPECT(now < count);
        wr_futex_wait(returned, now, -1);
    }
}

BOTH(each_wake_frees_a_waiter_of_its_own)
{
    waiter waiters[WAITERS];
    _Atomic uint32_t returned = 0;
    for (int round = 0; round < 20; round++) {
        atomic_store(&returned, 0);
        for (int i = 0; i < WAITERS; i++) {
            waiters[i] = (waiter){.poller = p, .timeout_ns = -1, .returned = &returned};
            start(&waiters[i]);
        }
        until_waiting(p, WAITERS);
        /* In a burst, so that the system may melt them: all but one, then the last. */
        for (int i = 0; i < WAITERS - 1; i++)
            wr_poller_wake(p);
        until_returned(&returned, WAITERS - 1);
        EXPECT_EQ(wr_poller_waiting(p), 1);
        wr_poller_wake(p);
        until_returned(&returned, WAITERS);
        for (int i = 0; i < WAITERS; i++) {
            wr_thread_join(waiters[i].thread);
            EXPECT_EQ(waiters[i].count, 0);
        }
    }
}

BOTH(one_wake_frees_only_one_of_several)
{
    waiter waiters[WAITERS];
    _Atomic uint32_t returned = 0;
    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = (waiter){.poller = p, .timeout_ns = -1, .returned = &returned};
        start(&waiters[i]);
    }
    for (uint32_t i = 1; i <= WAITERS; i++) {
        until_waiting(p, WAITERS - i + 1);
        wr_poller_wake(p);
        until_returned(&returned, i);
        /* Nobody else stirs: give a second thread the time to show itself. */
        EXPECT_EQ(wr_futex_wait(&returned, i, 2 * MS), -ETIMEDOUT);
        EXPECT_EQ(wr_poller_waiting(p), WAITERS - i);
    }
    for (int i = 0; i < WAITERS; i++)
        wr_thread_join(waiters[i].thread);
}

BOTH(looks_beside_a_sleeper_leave_its_wake_alone)
{
    for (int round = 0; round < 200; round++) {
        _Atomic uint32_t returned = 0;
        waiter w = {.poller = p, .timeout_ns = -1, .returned = &returned};
        start(&w);
        until_waiting(p, 1);
        wr_poller_wake(p);
        wr_poll_event event;
        while (atomic_load(&returned) == 0)
            EXPECT_EQ(wr_poller_wait(p, &event, 1, 0), 0);
        wr_thread_join(w.thread);
    }
}

BOTH(waker_writes_are_seen_by_the_woken)
{
    for (uint64_t round = 1; round <= 100; round++) {
        uint64_t note = 0;
        waiter w = {.poller = p, .timeout_ns = -1, .note = &note};
        start(&w);
        note = round;
        wr_poller_wake(p);
        wr_thread_join(w.thread);
        EXPECT_EQ(w.note_read, round);
    }
}

BOTH(writes_before_adding_are_seen_with_the_event)
{
    for (uint64_t round = 1; round <= 50; round++) {
        uint64_t note = 0;
        int ends[2];
        waiter w = {.poller = p, .timeout_ns = -1, .note = &note};
        EXPECT_OK(wr_socket_pair(ends));
        send_text(ends[1], "x");
        start(&w);
        note = round;
        EXPECT_OK(wr_poller_add(p, ends[0], round, WR_POLL_IN));
        wr_thread_join(w.thread);
        EXPECT_EQ(w.note_read, round);
        EXPECT_EQ(w.count, 1);
        EXPECT_EQ(w.event.key, round);
        EXPECT_OK(wr_poller_remove(p, ends[0]));
        wr_fd_close(ends[0]);
        wr_fd_close(ends[1]);
    }
}

BOTH(descriptor_armed_while_another_thread_sleeps_is_watched)
{
    int ends[2];
    EXPECT_OK(wr_socket_pair(ends));
    EXPECT_OK(wr_poller_add(p, ends[0], 1, 0));
    send_text(ends[1], "x");
    waiter w = {.poller = p, .timeout_ns = -1};
    start(&w);
    until_asleep(&w);
    EXPECT_OK(wr_poller_arm(p, ends[0], 7, WR_POLL_IN));
    wr_thread_join(w.thread);
    EXPECT_EQ(w.count, 1);
    EXPECT_EQ(w.event.key, 7);
    EXPECT_OK(wr_poller_remove(p, ends[0]));
    wr_fd_close(ends[0]);
    wr_fd_close(ends[1]);
}

BOTH(connection_closed_while_another_thread_sleeps_ends_for_the_peer)
{
    int ends[2];
    EXPECT_OK(wr_socket_pair(ends));
    EXPECT_OK(wr_poller_add(p, ends[0], 1, WR_POLL_IN));
    waiter w = {.poller = p, .timeout_ns = -1};
    start(&w);
    until_asleep(&w);
    EXPECT_OK(wr_poller_remove(p, ends[0]));
    wr_fd_close(ends[0]);
    wait_until_readable(ends[1]);
    char byte;
    EXPECT_EQ(wr_fd_receive(ends[1], &byte, 1), 0);
    wr_poller_wake(p);
    wr_thread_join(w.thread);
    EXPECT_EQ(w.count, 0);
    wr_fd_close(ends[1]);
}

/* A hang-up seen before the number was reused must not be told of the new connection. */
BOTH(report_of_a_closed_connection_does_not_reach_its_successor)
{
    for (int round = 0; round < 100; round++) {
        int old[2], fresh[2];
        EXPECT_OK(wr_socket_pair(old));
        EXPECT_OK(wr_poller_add(p, old[0], 1, WR_POLL_IN));
        waiter w = {.poller = p, .timeout_ns = -1};
        start(&w);
        until_asleep(&w);
        wr_fd_close(old[1]);
        EXPECT_OK(wr_poller_remove(p, old[0]));
        wr_fd_close(old[0]);
        EXPECT_OK(wr_socket_pair(fresh));
        EXPECT_OK(wr_poller_add(p, fresh[0], 2, WR_POLL_IN));
        wr_poller_wake(p);
        wr_thread_join(w.thread);
        EXPECT(w.count == 0 || w.event.key == 1);
        EXPECT_OK(wr_poller_remove(p, fresh[0]));
        wr_fd_close(fresh[0]);
        wr_fd_close(fresh[1]);
        /* The wake, if the waiter returned with the old event before. */
        wr_poller_wait(p, &w.event, 1, 1);
    }
}

BOTH(closing_under_a_waiter_is_reported)
{
    waiter w = {.poller = p, .timeout_ns = -1};
    start(&w);
    until_waiting(p, 1);
    EXPECT_DEATH(wr_poller_close(p), "closed while threads wait");
    wr_poller_wake(p);
    wr_thread_join(w.thread);
}

BOTH(timeouts_hold_beside_a_thread_that_waits_for_ever)
{
    waiter forever = {.poller = p, .timeout_ns = -1};
    waiter timed[3];
    start(&forever);
    until_waiting(p, 1);
    for (int i = 0; i < 3; i++) {
        timed[i] = (waiter){.poller = p, .timeout_ns = (i + 1) * 10 * MS};
        start(&timed[i]);
    }
    for (int i = 0; i < 3; i++) {
        wr_thread_join(timed[i].thread);
        EXPECT_EQ(timed[i].count, 0);
        EXPECT(timed[i].took_ns >= (uint64_t)timed[i].timeout_ns);
    }
    EXPECT_EQ(wr_poller_waiting(p), 1);
    wr_poller_wake(p);
    wr_thread_join(forever.thread);
}

/* With poll(2) the first waiter leads; when it leaves the second has to take over, or what comes next finds nobody. */
BOTH(event_after_the_first_waiter_left_finds_the_second)
{
    for (int round = 0; round < 50; round++) {
        int ends[2][2];
        waiter waiters[2];
        _Atomic uint32_t returned = 0;
        for (int i = 0; i < 2; i++) {
            EXPECT_OK(wr_socket_pair(ends[i]));
            EXPECT_OK(wr_poller_add(p, ends[i][0], (uint64_t)i, WR_POLL_IN));
            waiters[i] = (waiter){.poller = p, .timeout_ns = -1, .returned = &returned};
            start(&waiters[i]);
            until_waiting(p, (unsigned)i + 1);
        }
        for (int i = 0; i < 2; i++) {
            send_text(ends[i][1], "x");
            until_returned(&returned, (uint32_t)i + 1);
        }
        for (int i = 0; i < 2; i++) {
            wr_thread_join(waiters[i].thread);
            EXPECT_EQ(waiters[i].count, 1);
        }
        EXPECT_EQ(waiters[0].event.key + waiters[1].event.key, 1);
        for (int i = 0; i < 2; i++) {
            EXPECT_OK(wr_poller_remove(p, ends[i][0]));
            wr_fd_close(ends[i][0]);
            wr_fd_close(ends[i][1]);
        }
    }
}

BOTH(event_after_the_first_waiter_timed_out_finds_the_second)
{
    for (int round = 0; round < 10; round++) {
        int ends[2];
        EXPECT_OK(wr_socket_pair(ends));
        EXPECT_OK(wr_poller_add(p, ends[0], 9, WR_POLL_IN));
        waiter first = {.poller = p, .timeout_ns = 2 * MS};
        waiter second = {.poller = p, .timeout_ns = -1};
        start(&first);
        start(&second);
        wr_thread_join(first.thread);
        EXPECT_EQ(first.count, 0);
        send_text(ends[1], "x");
        wr_thread_join(second.thread);
        EXPECT_EQ(second.count, 1);
        EXPECT_EQ(second.event.key, 9);
        EXPECT_OK(wr_poller_remove(p, ends[0]));
        wr_fd_close(ends[0]);
        wr_fd_close(ends[1]);
    }
}

/* ---- every byte is heard of, by whichever thread ---- */

enum { PAIRS = 8, BYTES = 3000 };

typedef struct traffic {
    wr_poller *poller;
    int ends[PAIRS][2];
    _Atomic uint32_t received;
} traffic;

static void serve(void *arg)
{
    traffic *t = arg;
    while (atomic_load(&t->received) < BYTES) {
        wr_poll_event events[4];
        int count = wr_poller_wait(t->poller, events, 4, -1);
        for (int i = 0; i < count; i++) {
            int fd = t->ends[events[i].key][0];
            uint32_t got = (uint32_t)drain(fd);
            if (wr_poller_rearm_needed(t->poller))
                EXPECT_OK(wr_poller_arm(t->poller, fd, events[i].key, WR_POLL_IN));
            if (got > 0 && atomic_fetch_add(&t->received, got) + got == BYTES)
                wr_futex_wake(&t->received, 1);
        }
    }
}

BOTH(every_byte_is_heard_of_by_one_of_many_threads)
{
    traffic t = {.poller = p};
    wr_thread threads[WAITERS];
    for (int i = 0; i < PAIRS; i++) {
        EXPECT_OK(wr_socket_pair(t.ends[i]));
        EXPECT_OK(wr_poller_add(p, t.ends[i][0], (uint64_t)i, WR_POLL_IN));
    }
    for (int i = 0; i < WAITERS; i++)
        EXPECT_OK(wr_thread_start(&threads[i], "serve", serve, &t));
    for (int i = 0; i < BYTES; i++) {
        send_text(t.ends[test_random() % PAIRS][1], "x");
        /* Now and then all is quiet: the threads go to sleep, and a lost report is not made good by the next. */
        if (i % 20 == 0) {
            uint32_t now;
            while ((now = atomic_load(&t.received)) < (uint32_t)i + 1)
                wr_futex_wait(&t.received, now, MS / 10);
        }
    }
    for (uint32_t now; (now = atomic_load(&t.received)) < BYTES;)
        wr_futex_wait(&t.received, now, -1);
    for (int i = 0; i < WAITERS; i++)
        wr_poller_wake(p);
    for (int i = 0; i < WAITERS; i++) {
        /* A server that was not waiting when the wakes came may have slept since. */
        wr_poller_wake(p);
        wr_thread_join(threads[i]);
    }
    EXPECT_EQ(atomic_load(&t.received), BYTES);
    wr_poll_event event;
    while (wr_poller_wait(p, &event, 1, 1) > 0)
        continue;
    for (int i = 0; i < PAIRS; i++) {
        EXPECT_OK(wr_poller_remove(p, t.ends[i][0]));
        wr_fd_close(t.ends[i][0]);
        wr_fd_close(t.ends[i][1]);
    }
}

BOTH(table_grows_while_another_thread_sleeps)
{
    enum { MANY = 300 };
    static int ends[MANY][2];
    waiter w = {.poller = p, .timeout_ns = -1};
    start(&w);
    until_asleep(&w);
    for (int i = 0; i < MANY; i++) {
        EXPECT_OK(wr_socket_pair(ends[i]));
        EXPECT_OK(wr_poller_add(p, ends[i][0], (uint64_t)i, WR_POLL_IN));
    }
    send_text(ends[MANY - 1][1], "x");
    wr_thread_join(w.thread);
    EXPECT_EQ(w.count, 1);
    EXPECT_EQ(w.event.key, MANY - 1);
    for (int i = 0; i < MANY; i++) {
        EXPECT_OK(wr_poller_remove(p, ends[i][0]));
        wr_fd_close(ends[i][0]);
        wr_fd_close(ends[i][1]);
    }
}

/* ---- signal handlers ---- */

static wr_poller *signalled_poller;

static void wake_in_handler(int signal_number)
{
    (void)signal_number;
    wr_poller_wake(signalled_poller);
}

static void interrupt_when_waiting(void *arg)
{
    until_waiting(signalled_poller, 1);
    EXPECT_EQ(pthread_kill(*(pthread_t *)arg, SIGUSR1), 0);
}

BOTH(handler_can_wake_before_and_during_the_wait)
{
    struct sigaction action = {.sa_handler = wake_in_handler, .sa_flags = SA_RESTART};
    pthread_t self = pthread_self();
    wr_poll_event event;
    wr_thread thread;
    signalled_poller = p;
    EXPECT_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    EXPECT_EQ(raise(SIGUSR1), 0);
    EXPECT_EQ(wr_poller_wait(p, &event, 1, -1), 0);
    EXPECT_OK(wr_thread_start(&thread, "signal", interrupt_when_waiting, &self));
    EXPECT_EQ(wr_poller_wait(p, &event, 1, -1), 0);
    wr_thread_join(thread);
    /* The interrupted wait may have returned without taking the handler's wake. */
    wr_poller_wait(p, &event, 1, 1);
}

/* ---- an old kernel ---- */

TEST(epoll, kernel_without_nanosecond_timeouts_waits_whole_milliseconds)
{
    wr_poller *p;
    wr_poll_event event;
    forbid_system_call(SYS_epoll_pwait2, ENOSYS); /* as before Linux 5.11 */
    EXPECT_OK(wr_poller_open(WR_POLL_EPOLL, &p));
    for (int64_t timeout_ns = 1; timeout_ns < 10 * MS; timeout_ns = timeout_ns * 7 + 3) {
        uint64_t before = wr_clock_ns();
        EXPECT_EQ(wr_poller_wait(p, &event, 1, timeout_ns), 0);
        EXPECT(wr_clock_ns() - before >= (uint64_t)timeout_ns);
    }
    wr_poller_wake(p);
    EXPECT_EQ(wr_poller_wait(p, &event, 1, INT64_MAX), 0);
    wr_poller_close(p);
}

/* ---- memory ---- */

static int no_memory(void *arg, wr_fail_kind kind, uint64_t nth)
{
    return kind == WR_FAIL_ALLOC && nth == *(uint64_t *)arg ? -ENOMEM : 0;
}

TEST(poll, memory_that_runs_out_while_growing_leaves_the_poller_usable)
{
    wr_poller *p;
    wr_poll_event event;
    int ends[2];
    EXPECT_OK(wr_poller_open(WR_POLL_POLL, &p));
    EXPECT_OK(wr_socket_pair(ends));
    int high = fcntl(ends[0], F_DUPFD_CLOEXEC, 500);
    EXPECT(high >= 500);
    EXPECT_OK(wr_poller_add(p, ends[0], 1, WR_POLL_IN));
    for (uint64_t nth = 0; nth < 2; nth++) {
        wr_fail_install(no_memory, &nth);
        EXPECT_EQ(wr_poller_add(p, high, 2, WR_POLL_IN), -ENOMEM);
        wr_fail_install(NULL, NULL);
    }
    send_text(ends[1], "x");
    EXPECT_EQ(wr_poller_wait(p, &event, 1, -1), 1);
    EXPECT_EQ(event.key, 1);
    EXPECT_OK(wr_poller_add(p, high, 2, WR_POLL_IN));
    EXPECT_EQ(wr_poller_wait(p, &event, 1, -1), 1);
    EXPECT_EQ(event.key, 2);
    EXPECT_OK(wr_poller_remove(p, ends[0]));
    EXPECT_OK(wr_poller_remove(p, high));
    wr_fd_close(high);
    wr_fd_close(ends[0]);
    wr_fd_close(ends[1]);
    wr_poller_close(p);
}
