/* SPDX-License-Identifier: MIT */
/* tests/unit/platform/test_poll.c: one poller contract, proved for both backends by the same statements. */
#include "unit/platform/kit.h"

#include "platform/poll.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

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
#define KEY (UINT64_C(0xfedcba9876543210))

static void with_poller(wr_poll_backend backend, void (*body)(wr_poller *p))
{
    unsigned before = open_descriptors();
    wr_poller *p;
    EXPECT_OK(wr_poller_open(backend, &p));
    EXPECT_STR(p->operations->name, backend == WR_POLL_EPOLL ? "epoll" : "poll");
    body(p);
    EXPECT_EQ(wr_poller_waiting(p), 0);
    wr_poller_close(p);
    EXPECT_EQ(open_descriptors(), before);
}

static void expect_event(wr_poller *p, uint64_t key, unsigned events)
{
    wr_poll_event event;
    EXPECT_EQ(wr_poller_wait(p, &event, 1, -1), 1);
    EXPECT_EQ(event.key, key);
    EXPECT_EQ(event.events & events, events);
}

static void expect_silence(wr_poller *p)
{
    wr_poll_event events[8];
    EXPECT_EQ(wr_poller_wait(p, events, 8, 0), 0);
}

/* What a user does after each handled report. */
static void rearm(wr_poller *p, int fd, uint64_t key, unsigned events)
{
    if (wr_poller_rearm_needed(p))
        EXPECT_OK(wr_poller_arm(p, fd, key, events));
}

static void new_pair(int ends[2])
{
    EXPECT_OK(wr_socket_pair(ends));
}

static void close_pair(int ends[2])
{
    wr_fd_close(ends[0]);
    wr_fd_close(ends[1]);
}

BOTH(nothing_ready_is_silent)
{
    int ends[2];
    new_pair(ends);
    EXPECT_OK(wr_poller_add(p, ends[0], KEY, WR_POLL_IN));
    expect_silence(p);
    EXPECT_OK(wr_poller_remove(p, ends[0]));
    close_pair(ends);
}

BOTH(unread_data_is_reported_once_until_armed)
{
    int ends[2];
    new_pair(ends);
    EXPECT_OK(wr_poller_add(p, ends[0], KEY, WR_POLL_IN));
    send_text(ends[1], "x");
    expect_event(p, KEY, WR_POLL_IN);
    expect_silence(p);
    EXPECT_OK(wr_poller_arm(p, ends[0], KEY, WR_POLL_IN));
    expect_event(p, KEY, WR_POLL_IN);
    expect_silence(p);
    EXPECT_OK(wr_poller_remove(p, ends[0]));
    close_pair(ends);
}

BOTH(data_that_was_there_before_adding_is_reported)
{
    int ends[2];
    new_pair(ends);
    send_text(ends[1], "x");
    EXPECT_OK(wr_poller_add(p, ends[0], KEY, WR_POLL_IN));
    expect_event(p, KEY, WR_POLL_IN);
    EXPECT_OK(wr_poller_remove(p, ends[0]));
    close_pair(ends);
}

BOTH(reader_to_the_end_hears_of_each_new_arrival)
{
    int ends[2];
    new_pair(ends);
    EXPECT_OK(wr_poller_add(p, ends[0], KEY, WR_POLL_IN));
    for (int i = 0; i < 5; i++) {
        send_text(ends[1], "x");
        expect_event(p, KEY, WR_POLL_IN);
        EXPECT_EQ(drain(ends[0]), 1);
        rearm(p, ends[0], KEY, WR_POLL_IN);
        expect_silence(p);
    }
    EXPECT_OK(wr_poller_remove(p, ends[0]));
    close_pair(ends);
}

BOTH(arming_replaces_key_and_set)
{
    int ends[2];
    new_pair(ends);
    send_text(ends[1], "x");
    EXPECT_OK(wr_poller_add(p, ends[0], 1, WR_POLL_IN));
    EXPECT_OK(wr_poller_arm(p, ends[0], 2, WR_POLL_OUT));
    wr_poll_event event;
    EXPECT_EQ(wr_poller_wait(p, &event, 1, -1), 1);
    EXPECT_EQ(event.key, 2);
    EXPECT_EQ(event.events, WR_POLL_OUT);
    EXPECT_OK(wr_poller_arm(p, ends[0], 0, WR_POLL_IN | WR_POLL_OUT));
    expect_event(p, 0, WR_POLL_IN | WR_POLL_OUT);
    EXPECT_OK(wr_poller_remove(p, ends[0]));
    close_pair(ends);
}

BOTH(closed_peer_is_hangup_with_in)
{
    int ends[2];
    new_pair(ends);
    EXPECT_OK(wr_poller_add(p, ends[0], KEY, WR_POLL_IN));
    wr_fd_close(ends[1]);
    expect_event(p, KEY, WR_POLL_IN | WR_POLL_HANGUP);
    expect_silence(p);
    EXPECT_OK(wr_poller_remove(p, ends[0]));
    wr_fd_close(ends[0]);
}

BOTH(half_closed_peer_is_hangup_with_in_and_can_still_be_written_to)
{
    int ends[2];
    new_pair(ends);
    EXPECT_OK(wr_poller_add(p, ends[0], KEY, WR_POLL_IN));
    EXPECT_OK(wr_socket_shutdown_write(ends[1]));
    expect_event(p, KEY, WR_POLL_IN | WR_POLL_HANGUP);
    EXPECT(fill(ends[0]) > 0);
    EXPECT_OK(wr_poller_arm(p, ends[0], KEY, WR_POLL_OUT));
    expect_silence(p);
    drain(ends[1]);
    expect_event(p, KEY, WR_POLL_OUT);
    EXPECT_OK(wr_poller_remove(p, ends[0]));
    close_pair(ends);
}

BOTH(writer_of_a_closed_pipe_hears_hangup)
{
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    fill(ends[1]);
    EXPECT_OK(wr_poller_add(p, ends[1], KEY, WR_POLL_OUT));
    expect_silence(p);
    wr_fd_close(ends[0]);
    expect_event(p, KEY, WR_POLL_HANGUP);
    EXPECT_OK(wr_poller_remove(p, ends[1]));
    wr_fd_close(ends[1]);
}

BOTH(reader_of_a_closed_pipe_hears_in)
{
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    EXPECT_OK(wr_poller_add(p, ends[0], KEY, WR_POLL_IN));
    wr_fd_close(ends[1]);
    expect_event(p, KEY, WR_POLL_IN | WR_POLL_HANGUP);
    EXPECT_OK(wr_poller_remove(p, ends[0]));
    wr_fd_close(ends[0]);
}

BOTH(empty_set_is_silent_even_at_hangup)
{
    int ends[2], other[2];
    new_pair(ends);
    new_pair(other);
    EXPECT_OK(wr_poller_add(p, ends[0], KEY, WR_POLL_IN));
    EXPECT_OK(wr_poller_add(p, other[0], 2, 0));
    EXPECT_OK(wr_poller_arm(p, ends[0], KEY, 0));
    send_text(ends[1], "x");
    wr_fd_close(ends[1]);
    wr_fd_close(other[1]);
    expect_silence(p);
    EXPECT_OK(wr_poller_arm(p, ends[0], KEY, WR_POLL_IN));
    expect_event(p, KEY, WR_POLL_IN | WR_POLL_HANGUP);
    EXPECT_OK(wr_poller_arm(p, other[0], 2, WR_POLL_OUT));
    expect_event(p, 2, WR_POLL_HANGUP);
    EXPECT_OK(wr_poller_remove(p, ends[0]));
    EXPECT_OK(wr_poller_remove(p, other[0]));
    wr_fd_close(ends[0]);
    wr_fd_close(other[0]);
}

BOTH(room_in_a_full_socket_is_reported)
{
    int ends[2];
    new_pair(ends);
    EXPECT_OK(wr_poller_add(p, ends[0], KEY, WR_POLL_IN));
    fill(ends[0]);
    EXPECT_OK(wr_poller_arm(p, ends[0], KEY, WR_POLL_IN | WR_POLL_OUT));
    expect_silence(p);
    drain(ends[1]);
    expect_event(p, KEY, WR_POLL_OUT);
    EXPECT_OK(wr_poller_remove(p, ends[0]));
    close_pair(ends);
}

BOTH(removed_descriptor_is_silent_and_can_be_added_again)
{
    int ends[2];
    new_pair(ends);
    EXPECT_OK(wr_poller_remove(p, ends[0]));
    EXPECT_OK(wr_poller_add(p, ends[0], 1, WR_POLL_IN));
    send_text(ends[1], "x");
    EXPECT_OK(wr_poller_remove(p, ends[0]));
    EXPECT_OK(wr_poller_remove(p, ends[0]));
    expect_silence(p);
    EXPECT_OK(wr_poller_add(p, ends[0], 2, WR_POLL_IN));
    expect_event(p, 2, WR_POLL_IN);
    EXPECT_OK(wr_poller_remove(p, ends[0]));
    close_pair(ends);
}

BOTH(unusable_descriptors_are_refused)
{
    int ends[2];
    char path[128];
    new_pair(ends);
    snprintf(path, sizeof path, "%s/file", test_temp_dir());
    int file = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    EXPECT(file >= 0);
    EXPECT_EQ(wr_poller_add(p, file, KEY, WR_POLL_IN), -EPERM);
    EXPECT_EQ(wr_poller_add(p, file, KEY, 0), -EPERM);
    wr_fd_close(file);
    EXPECT_EQ(wr_poller_add(p, file, KEY, WR_POLL_IN), -EBADF);
    EXPECT_EQ(wr_poller_add(p, -1, KEY, WR_POLL_IN), -EBADF);
    EXPECT_OK(wr_poller_add(p, ends[0], KEY, WR_POLL_IN));
    EXPECT_EQ(wr_poller_add(p, ends[0], KEY, WR_POLL_IN), -EEXIST);
    EXPECT_OK(wr_poller_remove(p, ends[0]));
    EXPECT_DEATH(wr_poller_add(p, ends[0], WR_POLL_NO_KEY, WR_POLL_IN), "kept for wakes");
    close_pair(ends);
}

BOTH(wait_ends_at_its_time_not_before)
{
    wr_poll_event event;
    static const int64_t timeouts[] = {1, 100000, 5 * MS, 20 * MS + 1};
    for (size_t i = 0; i < sizeof timeouts / sizeof timeouts[0]; i++) {
        uint64_t before = wr_clock_ns();
        EXPECT_EQ(wr_poller_wait(p, &event, 1, timeouts[i]), 0);
        EXPECT(wr_clock_ns() - before >= (uint64_t)timeouts[i]);
    }
    wr_poller_wake(p);
    EXPECT_EQ(wr_poller_wait(p, &event, 1, INT64_MAX), 0);
}

BOTH(wake_before_wait_is_not_lost_and_frees_one_wait)
{
    wr_poll_event event;
    for (int i = 0; i < 3; i++) {
        wr_poller_wake(p);
        EXPECT_EQ(wr_poller_wait(p, &event, 1, -1), 0);
        uint64_t before = wr_clock_ns();
        EXPECT_EQ(wr_poller_wait(p, &event, 1, 10 * MS), 0);
        EXPECT(wr_clock_ns() - before >= 10 * MS);
    }
}

BOTH(look_takes_no_wake_away)
{
    wr_poll_event event;
    wr_poller_wake(p);
    for (int i = 0; i < 3; i++)
        expect_silence(p);
    EXPECT_EQ(wr_poller_wait(p, &event, 1, -1), 0);
}

BOTH(wakes_that_nobody_waits_for_melt)
{
    wr_poll_event event;
    for (int i = 0; i < 100; i++)
        wr_poller_wake(p);
    int returns = 0;
    for (;; returns++) {
        uint64_t before = wr_clock_ns();
        EXPECT_EQ(wr_poller_wait(p, &event, 1, 5 * MS), 0);
        if (wr_clock_ns() - before >= 5 * MS)
            break;
    }
    EXPECT(returns == 1 || returns == 2);
}

BOTH(wake_does_not_hide_an_event)
{
    int ends[2];
    new_pair(ends);
    EXPECT_OK(wr_poller_add(p, ends[0], KEY, WR_POLL_IN));
    wr_poller_wake(p);
    send_text(ends[1], "x");
    int found = 0;
    for (int i = 0; i < 2 && found == 0; i++) {
        wr_poll_event event;
        found = wr_poller_wait(p, &event, 1, -1);
    }
    EXPECT_EQ(found, 1);
    EXPECT_OK(wr_poller_remove(p, ends[0]));
    close_pair(ends);
}

BOTH(more_ready_than_asked_for_come_with_the_next_waits)
{
    enum { PAIRS = 20 };
    int ends[PAIRS][2];
    unsigned seen[PAIRS] = {0};
    for (int i = 0; i < PAIRS; i++) {
        new_pair(ends[i]);
        EXPECT_OK(wr_poller_add(p, ends[i][0], (uint64_t)i, WR_POLL_IN));
        send_text(ends[i][1], "x");
    }
    for (int total = 0; total < PAIRS;) {
        wr_poll_event events[3];
        int count = wr_poller_wait(p, events, 3, -1);
        EXPECT(count >= 1 && count <= 3);
        for (int i = 0; i < count; i++)
            seen[events[i].key]++;
        total += count;
    }
    expect_silence(p);
    for (int i = 0; i < PAIRS; i++) {
        EXPECT_EQ(seen[i], 1);
        EXPECT_OK(wr_poller_remove(p, ends[i][0]));
        close_pair(ends[i]);
    }
}

BOTH(busy_descriptor_does_not_starve_another)
{
    int ends[3][2];
    unsigned seen[3] = {0};
    for (int i = 0; i < 3; i++) {
        new_pair(ends[i]);
        EXPECT_OK(wr_poller_add(p, ends[i][0], (uint64_t)i, WR_POLL_IN));
        send_text(ends[i][1], "x");
    }
    /* Never read, so each is ready all the time. */
    for (int round = 0; round < 30; round++) {
        wr_poll_event event;
        EXPECT_EQ(wr_poller_wait(p, &event, 1, -1), 1);
        seen[event.key]++;
        EXPECT_OK(wr_poller_arm(p, ends[event.key][0], event.key, WR_POLL_IN));
    }
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(seen[i], 10);
        EXPECT_OK(wr_poller_remove(p, ends[i][0]));
        close_pair(ends[i]);
    }
}

BOTH(reused_descriptor_number_brings_its_new_key)
{
    for (uint64_t generation = 0; generation < 20; generation++) {
        int ends[2];
        new_pair(ends);
        EXPECT_OK(wr_poller_add(p, ends[0], generation, WR_POLL_IN));
        send_text(ends[1], "x");
        expect_event(p, generation, WR_POLL_IN);
        EXPECT_OK(wr_poller_remove(p, ends[0]));
        close_pair(ends);
    }
}
