/* SPDX-License-Identifier: MIT */
/* tests/unit/platform/test_socket.c: descriptors and sockets of all kinds. */
#include "unit/platform/kit.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static void expect_born_right(int fd)
{
    EXPECT(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    EXPECT(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

static int option(int fd, int level, int name)
{
    int value = -1;
    socklen_t size = sizeof value;
    EXPECT_EQ(getsockopt(fd, level, name, &value, &size), 0);
    return value;
}

/* Connects to a listener of ours and accepts; checks what every pair of connected sockets must have. */
static void connected(int listener, int *out_client, int *out_server)
{
    wr_address bound;
    EXPECT_OK(wr_socket_local_address(listener, &bound));
    int code = wr_socket_connect(&bound, out_client);
    EXPECT(code == 0 || code == -EINPROGRESS);
    wait_until_readable(listener);
    EXPECT_OK(wr_socket_accept(listener, out_server));
    EXPECT_OK(wr_socket_error(*out_client));
    expect_born_right(*out_client);
    expect_born_right(*out_server);
}

static void talk(int a, int b)
{
    char bytes[8] = "";
    send_text(a, "to b");
    wait_until_readable(b);
    EXPECT_EQ(wr_fd_receive(b, bytes, sizeof bytes), 4);
    EXPECT_MEM(bytes, "to b", 4);
    EXPECT_EQ(wr_fd_receive(b, bytes, sizeof bytes), -EAGAIN);
    EXPECT_OK(wr_socket_shutdown_write(a));
    wait_until_readable(b);
    EXPECT_EQ(wr_fd_receive(b, bytes, sizeof bytes), 0);
    send_text(b, "to a");
    wait_until_readable(a);
    EXPECT_EQ(wr_fd_receive(a, bytes, sizeof bytes), 4);
    EXPECT_MEM(bytes, "to a", 4);
}

static void listen_connect_talk(wr_address address, bool tcp)
{
    unsigned before = open_descriptors();
    int listener, client, server;
    EXPECT_OK(wr_socket_listen(&address, 16, &listener));
    expect_born_right(listener);
    EXPECT_EQ(wr_socket_accept(listener, &server), -EAGAIN);
    EXPECT_EQ(server, -1);
    connected(listener, &client, &server);
    if (tcp) {
        EXPECT_EQ(option(client, IPPROTO_TCP, TCP_NODELAY) != 0, 1);
        EXPECT_EQ(option(server, IPPROTO_TCP, TCP_NODELAY) != 0, 1);
    }
    talk(client, server);
    wr_fd_close(client);
    wr_fd_close(server);
    wr_fd_close(listener);
    EXPECT_EQ(open_descriptors(), before);
}

static bool has_ipv6(void)
{
    wr_address address = loopback(WR_ADDRESS_IPV6, 0);
    int fd;
    if (wr_socket_listen(&address, 1, &fd) != 0)
        return false;
    wr_fd_close(fd);
    return true;
}

TEST(os_socket, tcp_v4_listens_connects_talks)
{
    listen_connect_talk(loopback(WR_ADDRESS_IPV4, 0), true);
}

TEST(os_socket, tcp_v6_listens_connects_talks)
{
    if (!has_ipv6())
        SKIP("this machine has no IPv6 loopback");
    listen_connect_talk(loopback(WR_ADDRESS_IPV6, 0), true);
}

TEST(os_socket, unix_path_listens_connects_talks)
{
    listen_connect_talk(temp_socket_address("talk"), false);
}

TEST(os_socket, abstract_name_listens_connects_talks)
{
    char name[64];
    snprintf(name, sizeof name, "weir-test-%d", wr_os_process_id());
    listen_connect_talk(unix_address(WR_ADDRESS_ABSTRACT, name), false);
}

TEST(os_socket, pair_talks)
{
    int ends[2];
    EXPECT_OK(wr_socket_pair(ends));
    expect_born_right(ends[0]);
    expect_born_right(ends[1]);
    talk(ends[0], ends[1]);
    wr_fd_close(ends[0]);
    wr_fd_close(ends[1]);
}

TEST(os_socket, v6_listener_leaves_the_port_to_v4)
{
    if (!has_ipv6())
        SKIP("this machine has no IPv6 loopback");
    wr_address any6 = {.kind = WR_ADDRESS_IPV6};
    wr_address bound;
    int six, four;
    EXPECT_OK(wr_socket_listen(&any6, 1, &six));
    EXPECT_EQ(option(six, IPPROTO_IPV6, IPV6_V6ONLY), 1);
    EXPECT_OK(wr_socket_local_address(six, &bound));
    wr_address any4 = {.kind = WR_ADDRESS_IPV4, .port = bound.port};
    EXPECT_OK(wr_socket_listen(&any4, 1, &four));
    wr_fd_close(six);
    wr_fd_close(four);
}

TEST(os_socket, local_address_tells_what_was_bound)
{
    wr_address asked[3] = {loopback(WR_ADDRESS_IPV4, 0), temp_socket_address("bound"),
                           unix_address(WR_ADDRESS_ABSTRACT, "weir-test-bound\x01name")};
    for (int i = 0; i < 3; i++) {
        wr_address bound;
        int fd;
        EXPECT_OK(wr_socket_listen(&asked[i], 1, &fd));
        EXPECT_OK(wr_socket_local_address(fd, &bound));
        EXPECT_EQ(bound.kind, asked[i].kind);
        if (i == 0)
            EXPECT(bound.port != 0);
        EXPECT_MEM(bound.ip, asked[i].ip, sizeof bound.ip);
        EXPECT_EQ(bound.path_size, asked[i].path_size);
        EXPECT_MEM(bound.path, asked[i].path, asked[i].path_size);
        wr_fd_close(fd);
    }
    int ends[2];
    wr_address unnamed;
    EXPECT_OK(wr_socket_pair(ends));
    EXPECT_OK(wr_socket_local_address(ends[0], &unnamed));
    EXPECT_EQ(unnamed.kind, WR_ADDRESS_UNIX);
    EXPECT_EQ(unnamed.path_size, 0);
    wr_fd_close(ends[0]);
    wr_fd_close(ends[1]);
}

TEST(os_socket, longest_path_works_and_a_longer_is_refused)
{
    wr_address address = temp_socket_address("x");
    int fd;
    while (address.path_size < WR_UNIX_PATH_MAX)
        address.path[address.path_size++] = 'x';
    EXPECT_OK(wr_socket_listen(&address, 1, &fd));
    EXPECT_EQ(wr_socket_probe(&address), 1);
    wr_fd_close(fd);
    address.path_size++;
    EXPECT_EQ(wr_socket_listen(&address, 1, &fd), -ENAMETOOLONG);
    EXPECT_EQ(wr_socket_connect(&address, &fd), -ENAMETOOLONG);
    address.path_size = 0;
    EXPECT_EQ(wr_socket_listen(&address, 1, &fd), -EINVAL);
    address.path_size = 5;
    address.path[2] = '\0';
    EXPECT_EQ(wr_socket_listen(&address, 1, &fd), -EINVAL);
}

TEST(os_socket, second_listener_on_a_path_is_refused)
{
    wr_address address = temp_socket_address("taken");
    int first, second;
    EXPECT_OK(wr_socket_listen(&address, 1, &first));
    unsigned before = open_descriptors();
    EXPECT_EQ(wr_socket_listen(&address, 1, &second), -EADDRINUSE);
    EXPECT_EQ(second, -1);
    EXPECT_EQ(open_descriptors(), before);
    wr_fd_close(first);
}

TEST(os_socket, refused_connection_leaves_no_descriptor)
{
    wr_address address = temp_socket_address("nobody");
    int fd;
    unsigned before = open_descriptors();
    EXPECT_EQ(wr_socket_connect(&address, &fd), -ENOENT);
    EXPECT_EQ(fd, -1);
    EXPECT_EQ(open_descriptors(), before);
}

TEST(os_socket, refused_tcp_connection_shows_in_socket_error)
{
    wr_address address = loopback(WR_ADDRESS_IPV4, 0);
    int listener, client;
    EXPECT_OK(wr_socket_listen(&address, 1, &listener));
    EXPECT_OK(wr_socket_local_address(listener, &address));
    wr_fd_close(listener);
    int code = wr_socket_connect(&address, &client);
    if (code == -EINPROGRESS) {
        wait_until_readable(client);
        code = wr_socket_error(client);
        wr_fd_close(client);
    }
    EXPECT_EQ(code, -ECONNREFUSED);
}

TEST(os_socket, full_backlog_of_a_unix_socket_says_try_again)
{
    wr_address address = temp_socket_address("full");
    int listener, clients[8];
    EXPECT_OK(wr_socket_listen(&address, 1, &listener));
    int count = 0;
    int code = 0;
    while (code == 0) {
        EXPECT(count < 8);
        code = wr_socket_connect(&address, &clients[count]);
        count += code == 0;
    }
    EXPECT_EQ(code, -EAGAIN);
    EXPECT_EQ(clients[count], -1);
    EXPECT_EQ(wr_socket_probe(&address), 1);
    while (count-- > 0)
        wr_fd_close(clients[count]);
    wr_fd_close(listener);
}

TEST(os_socket, probe_tells_living_dead_absent_and_other)
{
    wr_address address = temp_socket_address("probed");
    int listener;
    EXPECT_EQ(wr_socket_probe(&address), -ENOENT);
    EXPECT_OK(wr_socket_listen(&address, 4, &listener));
    EXPECT_EQ(wr_socket_probe(&address), 1);
    wr_fd_close(listener);
    EXPECT_EQ(wr_socket_probe(&address), 0);
    EXPECT_OK(wr_path_remove(address.path));
    EXPECT_EQ(wr_socket_probe(&address), -ENOENT);
    int file = open(address.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    EXPECT(file >= 0);
    EXPECT_EQ(wr_socket_probe(&address), -ENOTSOCK);
    wr_fd_close(file);
    wr_address abstract = unix_address(WR_ADDRESS_ABSTRACT, "weir-test-nobody-here");
    EXPECT_EQ(wr_socket_probe(&abstract), -ENOENT);
}

TEST(os_socket, identity_tells_the_own_file_from_a_successor)
{
    wr_address address = temp_socket_address("mine");
    uint64_t device[2], inode[2];
    int first, second;
    EXPECT_OK(wr_socket_listen(&address, 1, &first));
    EXPECT_OK(wr_path_identity(address.path, &device[0], &inode[0]));
    EXPECT_OK(wr_path_identity(address.path, &device[1], &inode[1]));
    EXPECT_EQ(device[0], device[1]);
    EXPECT_EQ(inode[0], inode[1]);
    wr_address other = temp_socket_address("other");
    EXPECT_OK(wr_socket_listen(&other, 1, &second));
    EXPECT_EQ(rename(other.path, address.path), 0);
    EXPECT_OK(wr_path_identity(address.path, &device[1], &inode[1]));
    EXPECT(inode[0] != inode[1]);
    EXPECT_EQ(wr_path_identity(other.path, &device[1], &inode[1]), -ENOENT);
    EXPECT_EQ(wr_path_remove(other.path), -ENOENT);
    wr_fd_close(first);
    wr_fd_close(second);
}

TEST(os_socket, vectored_send_takes_part_and_the_rest_follows_in_order)
{
    enum { PIECES = 300, PIECE = 3000 };
    int ends[2];
    EXPECT_OK(wr_socket_pair(ends));
    uint8_t *sent = malloc(PIECES * PIECE);
    uint8_t *got = malloc(PIECES * PIECE);
    EXPECT(sent != NULL && got != NULL);
    for (size_t i = 0; i < PIECES * PIECE; i++)
        sent[i] = (uint8_t)test_random();
    size_t out = 0, in = 0;
    unsigned partial = 0;
    while (out < PIECES * PIECE) {
        wr_slice slices[PIECES];
        unsigned count = 0;
        for (size_t at = out; at < PIECES * PIECE;) {
            size_t size = PIECE - at % PIECE;
            slices[count++] = (wr_slice){sent + at, size};
            at += size;
        }
        ssize_t taken = wr_fd_send(ends[0], slices, count);
        if (taken == -EAGAIN) {
            ssize_t received = wr_fd_receive(ends[1], got + in, 70000);
            EXPECT(received > 0);
            in += (size_t)received;
            continue;
        }
        EXPECT(taken > 0);
        partial += (size_t)taken < PIECES * PIECE - out;
        out += (size_t)taken;
    }
    while (in < PIECES * PIECE) {
        ssize_t received = wr_fd_receive(ends[1], got + in, PIECES * PIECE - in);
        EXPECT(received > 0);
        in += (size_t)received;
    }
    EXPECT(partial > 0);
    EXPECT(memcmp(sent, got, PIECES * PIECE) == 0);
    free(sent);
    free(got);
    wr_fd_close(ends[0]);
    wr_fd_close(ends[1]);
}

TEST(os_socket, most_slices_go_in_one_call)
{
    int ends[2];
    static wr_slice slices[WR_SLICES_MAX];
    static char got[WR_SLICES_MAX + 1];
    EXPECT_OK(wr_socket_pair(ends));
    for (int i = 0; i < WR_SLICES_MAX; i++)
        slices[i] = (wr_slice){(void *)(uintptr_t) "x", 1};
    EXPECT_EQ(wr_fd_send(ends[0], slices, WR_SLICES_MAX), WR_SLICES_MAX);
    EXPECT_EQ(wr_fd_receive(ends[1], got, sizeof got), WR_SLICES_MAX);
    wr_fd_close(ends[0]);
    wr_fd_close(ends[1]);
}

TEST(os_socket, more_than_two_gib_is_cut_not_refused)
{
    /* The kernel would refuse sums that do not fit; the bytes need not exist, since the socket takes far fewer. */
    size_t huge = (size_t)3 << 30;
    void *start;
    int ends[2];
    EXPECT_OK(wr_os_reserve(huge, wr_os_page_size(), &start));
    EXPECT_OK(wr_os_commit(start, huge));
    EXPECT_OK(wr_socket_pair(ends));
    wr_slice one[1] = {{start, huge}};
    wr_slice three[3] = {{start, 1}, {start, huge}, {start, SIZE_MAX}};
    EXPECT(wr_fd_send(ends[0], one, 1) > 0);
    drain(ends[1]);
    EXPECT_EQ(wr_fd_send(ends[0], three, 3), 1);
    drain(ends[1]);
    EXPECT(wr_fd_send(ends[0], &three[2], 1) > 0);
    wr_fd_close(ends[0]);
    wr_fd_close(ends[1]);
    wr_os_release(start, huge);
}

TEST(os_socket, send_to_a_closed_peer_is_an_error_not_a_signal)
{
    int ends[2];
    wr_slice slice = {(void *)(uintptr_t) "x", 1};
    EXPECT(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    EXPECT_OK(wr_socket_pair(ends));
    wr_fd_close(ends[1]);
    EXPECT_EQ(wr_fd_send(ends[0], &slice, 1), -EPIPE);
    wr_fd_close(ends[0]);
}

TEST(os_socket, sockets_do_not_block_even_when_the_descriptor_would)
{
    int ends[2];
    char byte;
    EXPECT_OK(wr_socket_pair(ends));
    EXPECT_EQ(fcntl(ends[0], F_SETFL, 0), 0);
    EXPECT_EQ(wr_fd_receive(ends[0], &byte, 1), -EAGAIN);
    EXPECT(fill(ends[0]) > 0);
    wr_fd_close(ends[0]);
    wr_fd_close(ends[1]);
}

TEST(os_socket, pipes_and_files_are_sent_and_received_too)
{
    int ends[2];
    char bytes[16];
    wr_slice slices[2] = {{(void *)(uintptr_t) "ab", 2}, {(void *)(uintptr_t) "cd", 2}};
    EXPECT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    EXPECT_EQ(wr_fd_receive(ends[0], bytes, sizeof bytes), -EAGAIN);
    EXPECT_EQ(wr_fd_send(ends[1], slices, 2), 4);
    EXPECT_EQ(wr_fd_receive(ends[0], bytes, sizeof bytes), 4);
    EXPECT_MEM(bytes, "abcd", 4);
    EXPECT(fill(ends[1]) > 0);
    wr_fd_close(ends[1]);
    EXPECT(drain(ends[0]) > 0);
    wr_fd_close(ends[0]);
}

TEST(os_socket, reserve_descriptor_makes_room_at_the_limit)
{
    wr_address address = temp_socket_address("limit");
    int held, listener, client, server;
    EXPECT_OK(wr_socket_listen(&address, 4, &listener));
    EXPECT_OK(wr_socket_connect(&address, &client));
    EXPECT_OK(wr_fd_reserve(&held));
    EXPECT(fcntl(held, F_GETFD) & FD_CLOEXEC);
    struct rlimit limit = {.rlim_cur = (rlim_t)held + 1, .rlim_max = (rlim_t)held + 1};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    EXPECT_EQ(wr_socket_accept(listener, &server), -EMFILE);
    wr_fd_close(held);
    EXPECT_OK(wr_socket_accept(listener, &server));
    EXPECT_EQ(wr_fd_reserve(&held), -EMFILE);
    EXPECT_EQ(held, -1);
    wr_fd_close(server);
    wr_fd_close(client);
    wr_fd_close(listener);
}

TEST(os_socket, listener_that_fails_half_way_leaves_no_descriptor_and_no_file)
{
    wr_address address = temp_socket_address("half");
    unsigned before = open_descriptors();
    int fd;
    forbid_system_call(SYS_listen, ENOBUFS);
    EXPECT_EQ(wr_socket_listen(&address, 1, &fd), -ENOBUFS);
    EXPECT_EQ(fd, -1);
    EXPECT_EQ(open_descriptors(), before);
    EXPECT_EQ(wr_socket_probe(&address), -ENOENT);
}

TEST(os_socket, socket_without_its_options_is_refused)
{
    wr_address address = loopback(WR_ADDRESS_IPV4, 0);
    unsigned before = open_descriptors();
    int fd;
    forbid_system_call(SYS_setsockopt, EPERM);
    EXPECT_EQ(wr_socket_listen(&address, 1, &fd), -EPERM);
    EXPECT_EQ(wr_socket_connect(&address, &fd), -EPERM);
    EXPECT_EQ(fd, -1);
    EXPECT_EQ(open_descriptors(), before);
}

TEST(os_socket, closing_twice_is_reported)
{
    int held;
    EXPECT_OK(wr_fd_reserve(&held));
    wr_fd_close(held);
    EXPECT_DEATH(wr_fd_close(held), "closed twice");
}
