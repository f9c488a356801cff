/* SPDX-License-Identifier: MIT */
/* tests/unit/platform/test_fail.c: every call that can fail can be made to fail, and leaves nothing behind then. */
#include "unit/platform/kit.h"

#include "platform/fail.h"
#include "platform/poll.h"

#include <errno.h>
#include <sys/syscall.h>

typedef struct plan {
    wr_fail_kind kind;
    uint64_t nth;
    int code;
    uint64_t asked;
} plan;

static int decide(void *arg, wr_fail_kind kind, uint64_t nth)
{
    plan *p = arg;
    if (kind != p->kind)
        return 0;
    p->asked = nth + 1;
    return nth == p->nth ? p->code : 0;
}

/* What the calls need to exist beforehand. */
typedef struct stage {
    unsigned char *range;
    size_t page;
    int ends[2];
    int listener;
    wr_address address;
    wr_poller *poller;
} stage;

static void do_nothing(void *arg)
{
    (void)arg;
}

static int call_memory(wr_fail_kind kind, stage *s)
{
    void *start;
    switch ((int)kind) {
    case WR_FAIL_RESERVE: return wr_os_reserve(s->page, s->page, &start);
    case WR_FAIL_COMMIT: return wr_os_commit(s->range, s->page);
    case WR_FAIL_DECOMMIT: return wr_os_decommit(s->range, s->page) == wr_os_uncommit(s->range, s->page) ? 0 : -EIO;
    case WR_FAIL_ALLOC:
        start = wr_os_alloc(1);
        wr_os_free(start);
        return start == NULL ? -EIO : 0;
    default: return 1;
    }
}

static int call_sockets(wr_fail_kind kind, stage *s)
{
    int fd, fds[2];
    char byte;
    wr_slice slice = {&byte, 1};
    wr_address bound;
    switch ((int)kind) {
    case WR_FAIL_RECEIVE: return (int)wr_fd_receive(s->ends[0], &byte, 1);
    case WR_FAIL_SEND: return (int)wr_fd_send(s->ends[0], &slice, 1);
    case WR_FAIL_LISTEN: return wr_socket_listen(&s->address, 1, &fd);
    case WR_FAIL_ACCEPT: return wr_socket_accept(s->listener, &fd);
    case WR_FAIL_CONNECT: return wr_socket_connect(&s->address, &fd);
    case WR_FAIL_PAIR: return wr_socket_pair(fds);
    case WR_FAIL_SHUTDOWN: return wr_socket_shutdown_write(s->ends[0]);
    case WR_FAIL_LOCAL_ADDRESS: return wr_socket_local_address(s->listener, &bound);
    case WR_FAIL_PATH: return wr_path_remove("/nonexistent/weir");
    case WR_FAIL_FD_RESERVE: return wr_fd_reserve(&fd);
    default: return 1;
    }
}

static int call_rest(wr_fail_kind kind, stage *s)
{
    wr_poller *poller;
    wr_thread thread;
    switch ((int)kind) {
    case WR_FAIL_THREAD: return wr_thread_start(&thread, "never", do_nothing, NULL);
    case WR_FAIL_POLLER: return wr_poller_open(WR_POLL_BEST, &poller);
    case WR_FAIL_POLL_ADD: return wr_poller_add(s->poller, s->ends[1], 1, WR_POLL_IN);
    case WR_FAIL_POLL_ARM: return wr_poller_arm(s->poller, s->ends[0], 1, WR_POLL_OUT);
    case WR_FAIL_RANDOM:
        /* Never fails for the caller: another source steps in. */
        return wr_random_seed() != wr_random_seed() ? -EIO : 0;
    default: return 1;
    }
}

static int call(wr_fail_kind kind, stage *s)
{
    int code = call_memory(kind, s);
    if (code == 1)
        code = call_sockets(kind, s);
    return code == 1 ? call_rest(kind, s) : code;
}

TEST(fail, each_point_fails_its_call_and_leaves_nothing_behind)
{
    stage s = {.page = wr_os_page_size(), .address = temp_socket_address("fail")};
    void *range;
    EXPECT_OK(wr_os_reserve(s.page, s.page, &range));
    s.range = range;
    EXPECT_OK(wr_os_commit(range, s.page));
    EXPECT_OK(wr_socket_pair(s.ends));
    wr_address listened = temp_socket_address("listener");
    EXPECT_OK(wr_socket_listen(&listened, 1, &s.listener));
    EXPECT_OK(wr_poller_open(WR_POLL_BEST, &s.poller));
    EXPECT_OK(wr_poller_add(s.poller, s.ends[0], 1, WR_POLL_IN));
    for (int kind = 0; kind < WR_FAIL_KINDS; kind++) {
        plan p = {.kind = (wr_fail_kind)kind, .nth = 0, .code = -EIO};
        unsigned descriptors = open_descriptors();
        unsigned mappings = lines_of("/proc/self/maps");
        unsigned threads = lines_of("/proc/self/status");
        wr_fail_install(decide, &p);
        int code = call((wr_fail_kind)kind, &s);
        wr_fail_install(NULL, NULL);
        if (kind != WR_FAIL_DECOMMIT)
            EXPECT_EQ(code, -EIO);
        EXPECT(p.asked > 0);
        EXPECT_EQ(open_descriptors(), descriptors);
        EXPECT_EQ(lines_of("/proc/self/maps"), mappings);
        EXPECT_EQ(lines_of("/proc/self/status"), threads);
        EXPECT_EQ(wr_socket_probe(&s.address), -ENOENT);
        EXPECT(strcmp(wr_fail_kind_name((wr_fail_kind)kind), "unknown") != 0);
    }
    wr_poller_close(s.poller);
    wr_fd_close(s.listener);
    wr_fd_close(s.ends[0]);
    wr_fd_close(s.ends[1]);
    wr_os_release(range, s.page);
}

TEST(fail, decommit_and_uncommit_fail_alike_and_keep_the_bytes)
{
    size_t page = wr_os_page_size();
    void *range;
    EXPECT_OK(wr_os_reserve(page, page, &range));
    EXPECT_OK(wr_os_commit(range, page));
    *(char *)range = 'x';
    for (uint64_t nth = 0; nth < 2; nth++) {
        plan p = {.kind = WR_FAIL_DECOMMIT, .nth = 0, .code = -ENOMEM};
        wr_fail_install(decide, &p);
        EXPECT_EQ(nth == 0 ? wr_os_decommit(range, page) : wr_os_uncommit(range, page), -ENOMEM);
        wr_fail_install(NULL, NULL);
        EXPECT_EQ(*(char *)range, 'x');
    }
    wr_os_release(range, page);
}

TEST(fail, points_are_numbered_from_zero_with_each_installation)
{
    for (uint64_t nth = 0; nth < 5; nth++) {
        plan p = {.kind = WR_FAIL_ALLOC, .nth = nth, .code = -ENOMEM};
        wr_fail_install(decide, &p);
        for (uint64_t i = 0; i < 5; i++) {
            void *block = wr_os_alloc(1);
            EXPECT_EQ(block == NULL, i == nth);
            wr_os_free(block);
        }
        EXPECT_EQ(p.asked, 5);
        wr_fail_install(NULL, NULL);
    }
}

TEST(fail, opening_a_poller_without_memory_leaves_nothing_behind)
{
    for (int backend = WR_POLL_EPOLL; backend <= WR_POLL_POLL; backend++) {
        unsigned descriptors = open_descriptors();
        for (uint64_t nth = 0;; nth++) {
            plan p = {.kind = WR_FAIL_ALLOC, .nth = nth, .code = -ENOMEM};
            wr_poller *poller;
            wr_fail_install(decide, &p);
            int code = wr_poller_open((wr_poll_backend)backend, &poller);
            wr_fail_install(NULL, NULL);
            if (code == 0) {
                EXPECT_EQ(nth, p.asked);
                EXPECT(nth > 0);
                wr_poller_close(poller);
                break;
            }
            EXPECT_EQ(code, -ENOMEM);
            EXPECT(poller == NULL);
            EXPECT_EQ(open_descriptors(), descriptors);
        }
    }
}

TEST(fail, poller_without_descriptors_is_not_opened)
{
    unsigned before = open_descriptors();
    wr_poller *poller;
    forbid_system_call(SYS_eventfd2, EMFILE);
    forbid_system_call(SYS_pipe2, ENFILE);
    EXPECT_EQ(wr_poller_open(WR_POLL_EPOLL, &poller), -EMFILE);
    EXPECT_EQ(wr_poller_open(WR_POLL_POLL, &poller), -ENFILE);
    EXPECT_EQ(wr_poller_open(WR_POLL_BEST, &poller), -EMFILE);
    EXPECT(poller == NULL);
    EXPECT_EQ(open_descriptors(), before);
}

TEST(fail, system_without_epoll_gets_the_poll_backend)
{
    wr_poller *poller;
    forbid_system_call(SYS_epoll_create1, ENOSYS);
    EXPECT_EQ(wr_poller_open(WR_POLL_EPOLL, &poller), -ENOSYS);
    EXPECT_OK(wr_poller_open(WR_POLL_BEST, &poller));
    EXPECT_STR(poller->operations->name, "poll");
    wr_poller_close(poller);
}

TEST(fail, thread_without_memory_is_not_started)
{
    plan p = {.kind = WR_FAIL_ALLOC, .code = -ENOMEM};
    wr_thread thread;
    wr_fail_install(decide, &p);
    EXPECT_EQ(wr_thread_start(&thread, "never", do_nothing, NULL), -ENOMEM);
    wr_fail_install(NULL, NULL);
}

TEST(fail, interrupted_calls_are_repeated)
{
    int ends[2];
    char byte;
    wr_slice slice = {(void *)(uintptr_t) "x", 1};
    EXPECT_OK(wr_socket_pair(ends));
    plan p = {.kind = WR_FAIL_SEND, .code = -EINTR};
    wr_fail_install(decide, &p);
    EXPECT_EQ(wr_fd_send(ends[0], &slice, 1), 1);
    EXPECT_EQ(p.asked, 2);
    p = (plan){.kind = WR_FAIL_RECEIVE, .code = -EINTR};
    wr_fail_install(decide, &p);
    EXPECT_EQ(wr_fd_receive(ends[1], &byte, 1), 1);
    EXPECT_EQ(p.asked, 2);
    wr_fail_install(NULL, NULL);
    wr_fd_close(ends[0]);
    wr_fd_close(ends[1]);
}

TEST(fail, accept_skips_a_connection_that_died_meanwhile)
{
    static const int deaths[] = {-ECONNABORTED, -EPROTO, -EHOSTUNREACH, -ENETDOWN, -EINTR};
    wr_address address = temp_socket_address("skip");
    int listener, client, server;
    EXPECT_OK(wr_socket_listen(&address, 4, &listener));
    for (size_t i = 0; i < sizeof deaths / sizeof deaths[0]; i++) {
        plan p = {.kind = WR_FAIL_ACCEPT, .code = deaths[i]};
        EXPECT_OK(wr_socket_connect(&address, &client));
        wr_fail_install(decide, &p);
        EXPECT_OK(wr_socket_accept(listener, &server));
        EXPECT_EQ(p.asked, 2);
        wr_fail_install(NULL, NULL);
        wr_fd_close(client);
        wr_fd_close(server);
    }
    plan p = {.kind = WR_FAIL_ACCEPT, .code = -EMFILE};
    wr_fail_install(decide, &p);
    EXPECT_EQ(wr_socket_accept(listener, &server), -EMFILE);
    EXPECT_EQ(p.asked, 1);
    wr_fail_install(NULL, NULL);
    wr_fd_close(listener);
}
