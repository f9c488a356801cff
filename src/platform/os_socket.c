/* SPDX-License-Identifier: MIT */
/* platform/os_socket.c: descriptors and sockets on Linux.
 *
 * Job        Receive and send on any descriptor; listen, accept, connect, pair for Unix (path and abstract) and TCP
 *            sockets; the few questions about paths that a server has.
 * Invariants Descriptors are born SOCK_CLOEXEC | SOCK_NONBLOCK. A failed call leaves no descriptor and no socket file
 *            behind.
 *            No call blocks, also on a descriptor that another process made blocking (MSG_DONTWAIT; pipes are the
 *            exception).
 *            Interrupted calls are repeated; an injected failure takes the place of the system call, so it is treated
 *            the same way.
 * Threads    Any; the kernel orders calls on one descriptor.
 * Cost       One system call for receive and send (two on what is no socket: the socket call is tried first), one for
 *            accept: TCP_NODELAY is set on the listener and inherited.
 */
#include "platform/check.h"
#include "platform/fail.h"
#include "platform/os.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

/* What the kernel takes in one call: INT_MAX rounded down to a page. */
#define CALL_BYTES_MAX ((size_t)INT_MAX & ~(size_t)4095)

#define SOCKET_FLAGS (SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC)

_Static_assert(sizeof(wr_slice) == sizeof(struct iovec), "wr_slice is handed to the kernel as an iovec");
_Static_assert(offsetof(wr_slice, base) == offsetof(struct iovec, iov_base), "same order of fields");
_Static_assert(offsetof(wr_slice, size) == offsetof(struct iovec, iov_len), "same order of fields");
_Static_assert(sizeof(((struct sockaddr_un *)0)->sun_path) == WR_UNIX_PATH_MAX + 1,
               "room for the longest path and its end");

/* ---- descriptors ---- */

void wr_fd_close(int fd)
{
    WR_ASSERT(fd >= 0);
    /* Never repeated after EINTR: Linux has closed the descriptor by then, and the number may be somebody else's. */
    int rc = close(fd);
    WR_CHECK(rc == 0 || errno != EBADF, "descriptor %d is not open; it was closed twice or never opened", fd);
}

ssize_t wr_fd_receive(int fd, void *out, size_t size)
{
    WR_ASSERT(size > 0);
    if (size > CALL_BYTES_MAX)
        size = CALL_BYTES_MAX;
    ssize_t got;
    do {
        got = wr_fail_point(WR_FAIL_RECEIVE);
        if (got == 0) {
            got = recv(fd, out, size, MSG_DONTWAIT);
            if (got < 0 && errno == ENOTSOCK)
                got = read(fd, out, size);
            if (got < 0)
                got = -errno;
        }
    } while (got == -EINTR);
    return got;
}

/* How many of the slices fit into one call. The first always counts, even when it has to be cut. */
static unsigned slices_that_fit(const wr_slice *slices, unsigned count)
{
    size_t total = slices[0].size;
    for (unsigned i = 1; i < count; i++) {
        if (WR_ADD_OVERFLOWS(total, slices[i].size, &total) || total > CALL_BYTES_MAX)
            return i;
    }
    return count;
}

ssize_t wr_fd_send(int fd, const wr_slice *slices, unsigned count)
{
    WR_ASSERT(count >= 1 && count <= WR_SLICES_MAX);
    count = slices_that_fit(slices, count);
    wr_slice cut = {slices[0].base, CALL_BYTES_MAX};
    struct msghdr message = {
        .msg_iov = (struct iovec *)(uintptr_t)(slices[0].size > CALL_BYTES_MAX ? &cut : slices),
        .msg_iovlen = count,
    };
    ssize_t sent;
    do {
        sent = wr_fail_point(WR_FAIL_SEND);
        if (sent == 0) {
            sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (sent < 0 && errno == ENOTSOCK)
                sent = writev(fd, message.msg_iov, (int)count);
            if (sent < 0)
                sent = -errno;
        }
    } while (sent == -EINTR);
    return sent;
}

int wr_fd_reserve(int *out_fd)
{
    *out_fd = -1;
    int code = wr_fail_point(WR_FAIL_FD_RESERVE);
    if (code != 0)
        return code;
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    *out_fd = fd;
    return 0;
}

/* ---- addresses ---- */

typedef struct system_address {
    union {
        struct sockaddr any;
        struct sockaddr_un local;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } as;
    socklen_t size;
} system_address;

static int to_system_local(const wr_address *address, system_address *out)
{
    bool abstract = address->kind == WR_ADDRESS_ABSTRACT;
    if (address->path_size == 0)
        return -EINVAL;
    if (address->path_size > WR_UNIX_PATH_MAX)
        return -ENAMETOOLONG;
    if (!abstract && memchr(address->path, '\0', address->path_size) != NULL)
        return -EINVAL;
    out->as.local.sun_family = AF_UNIX;
    memcpy(out->as.local.sun_path + (abstract ? 1 : 0), address->path, address->path_size);
    out->size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + address->path_size + 1);
    return 0;
}

static int to_system(const wr_address *address, system_address *out)
{
    memset(out, 0, sizeof *out);
    switch (address->kind) {
    case WR_ADDRESS_UNIX:
    case WR_ADDRESS_ABSTRACT: return to_system_local(address, out);
    case WR_ADDRESS_IPV4:
        out->as.v4.sin_family = AF_INET;
        out->as.v4.sin_port = htons(address->port);
        memcpy(&out->as.v4.sin_addr, address->ip, 4);
        out->size = sizeof out->as.v4;
        return 0;
    case WR_ADDRESS_IPV6:
        out->as.v6.sin6_family = AF_INET6;
        out->as.v6.sin6_port = htons(address->port);
        out->as.v6.sin6_scope_id = address->scope;
        memcpy(&out->as.v6.sin6_addr, address->ip, 16);
        out->size = sizeof out->as.v6;
        return 0;
    }
    return -EINVAL;
}

/* The name of a Unix socket that was never bound is empty: kind Unix, size 0. */
static void from_system_local(const system_address *from, wr_address *out)
{
    size_t head = offsetof(struct sockaddr_un, sun_path);
    size_t size = from->size > head ? from->size - head : 0;
    const char *path = from->as.local.sun_path;
    out->kind = WR_ADDRESS_UNIX;
    if (size > 0 && path[0] == '\0') {
        out->kind = WR_ADDRESS_ABSTRACT;
        path++;
        size--;
    } else {
        size = strnlen(path, size);
    }
    out->path_size = size < WR_UNIX_PATH_MAX ? size : WR_UNIX_PATH_MAX;
    memcpy(out->path, path, out->path_size);
}

static int from_system(const system_address *from, wr_address *out)
{
    memset(out, 0, sizeof *out);
    switch (from->as.any.sa_family) {
    case AF_UNIX: from_system_local(from, out); return 0;
    case AF_INET:
        out->kind = WR_ADDRESS_IPV4;
        out->port = ntohs(from->as.v4.sin_port);
        memcpy(out->ip, &from->as.v4.sin_addr, 4);
        return 0;
    case AF_INET6:
        out->kind = WR_ADDRESS_IPV6;
        out->port = ntohs(from->as.v6.sin6_port);
        out->scope = from->as.v6.sin6_scope_id;
        memcpy(out->ip, &from->as.v6.sin6_addr, 16);
        return 0;
    default: return -EAFNOSUPPORT;
    }
}

int wr_socket_local_address(int fd, wr_address *out)
{
    int code = wr_fail_point(WR_FAIL_LOCAL_ADDRESS);
    if (code != 0)
        return code;
    system_address name;
    memset(&name, 0, sizeof name);
    name.size = sizeof name.as;
    if (getsockname(fd, &name.as.any, &name.size) != 0)
        return -errno;
    return from_system(&name, out);
}

/* ---- opening ---- */

static int set_flag(int fd, int level, int option)
{
    int on = 1;
    return setsockopt(fd, level, option, &on, sizeof on) == 0 ? 0 : -errno;
}

/* A socket of the address's family with the options every one of ours has. */
static int open_socket(const system_address *address, int *out_fd)
{
    int family = address->as.any.sa_family;
    int fd = socket(family, SOCKET_FLAGS, 0);
    if (fd < 0)
        return -errno;
    int code = family != AF_UNIX ? set_flag(fd, IPPROTO_TCP, TCP_NODELAY) : 0;
    if (code == 0 && family == AF_INET6)
        code = set_flag(fd, IPPROTO_IPV6, IPV6_V6ONLY);
    if (code != 0)
        wr_fd_close(fd);
    else
        *out_fd = fd;
    return code;
}

static int bind_and_listen(int fd, const system_address *address, bool is_path, int backlog)
{
    if (address->as.any.sa_family != AF_UNIX) {
        int code = set_flag(fd, SOL_SOCKET, SO_REUSEADDR);
        if (code != 0)
            return code;
    }
    if (bind(fd, &address->as.any, address->size) != 0)
        return -errno;
    if (listen(fd, backlog) == 0)
        return 0;
    int code = -errno;
    if (is_path)
        unlink(address->as.local.sun_path);
    return code;
}

int wr_socket_listen(const wr_address *address, int backlog, int *out_fd)
{
    WR_ASSERT(backlog >= 1 && backlog <= 65535);
    *out_fd = -1;
    system_address name;
    int fd = -1;
    int code = wr_fail_point(WR_FAIL_LISTEN);
    if (code == 0)
        code = to_system(address, &name);
    if (code == 0)
        code = open_socket(&name, &fd);
    if (code != 0)
        return code;
    code = bind_and_listen(fd, &name, address->kind == WR_ADDRESS_UNIX, backlog);
    if (code != 0)
        wr_fd_close(fd);
    else
        *out_fd = fd;
    return code;
}

/* Errors of the connection that was about to be accepted, not of the listener (Linux hands them to accept). */
static bool is_dead_connection(int code)
{
    switch (code) {
    case -ECONNABORTED:
    case -EPROTO:
    case -ENETDOWN:
    case -ENOPROTOOPT:
    case -EHOSTDOWN:
    case -ENONET:
    case -EHOSTUNREACH:
    case -ENETUNREACH: return true;
    default: return false;
    }
}

int wr_socket_accept(int listener, int *out_fd)
{
    *out_fd = -1;
    int fd;
    do {
        fd = wr_fail_point(WR_FAIL_ACCEPT);
        if (fd == 0) {
            fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (fd < 0)
                fd = -errno;
        }
    } while (fd == -EINTR || is_dead_connection(fd));
    if (fd < 0)
        return fd;
    *out_fd = fd;
    return 0;
}

int wr_socket_connect(const wr_address *address, int *out_fd)
{
    *out_fd = -1;
    system_address name;
    int fd = -1;
    int code = wr_fail_point(WR_FAIL_CONNECT);
    if (code == 0)
        code = to_system(address, &name);
    if (code == 0)
        code = open_socket(&name, &fd);
    if (code != 0)
        return code;
    if (connect(fd, &name.as.any, name.size) != 0)
        code = errno == EINTR ? -EINPROGRESS : -errno;
    if (code != 0 && code != -EINPROGRESS)
        wr_fd_close(fd);
    else
        *out_fd = fd;
    return code;
}

int wr_socket_pair(int out_fds[2])
{
    out_fds[0] = out_fds[1] = -1;
    int code = wr_fail_point(WR_FAIL_PAIR);
    if (code != 0)
        return code;
    return socketpair(AF_UNIX, SOCKET_FLAGS, 0, out_fds) == 0 ? 0 : -errno;
}

int wr_socket_error(int fd)
{
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        return -errno;
    return -error;
}

int wr_socket_shutdown_write(int fd)
{
    int code = wr_fail_point(WR_FAIL_SHUTDOWN);
    if (code != 0)
        return code;
    return shutdown(fd, SHUT_WR) == 0 ? 0 : -errno;
}

/* ---- paths ---- */

/* Somebody answers 1, nobody does 0. A full backlog and a socket of another type (datagram) are somebody too. */
static int probe_connect(const wr_address *address)
{
    int fd;
    int code = wr_socket_connect(address, &fd);
    if (fd >= 0)
        wr_fd_close(fd);
    switch (code) {
    case 0:
    case -EINPROGRESS:
    case -EAGAIN:
    case -EPROTOTYPE: return 1;
    case -ECONNREFUSED: return 0;
    default: return code;
    }
}

int wr_socket_probe(const wr_address *address)
{
    WR_ASSERT(address->kind == WR_ADDRESS_UNIX || address->kind == WR_ADDRESS_ABSTRACT);
    if (address->kind == WR_ADDRESS_ABSTRACT) {
        int answer = probe_connect(address);
        return answer == 0 ? -ENOENT : answer;
    }
    system_address name;
    int code = wr_fail_point(WR_FAIL_PATH);
    if (code == 0)
        code = to_system(address, &name);
    if (code != 0)
        return code;
    struct stat file;
    if (stat(name.as.local.sun_path, &file) != 0)
        return -errno;
    return S_ISSOCK(file.st_mode) ? probe_connect(address) : -ENOTSOCK;
}

int wr_path_remove(const char *path)
{
    int code = wr_fail_point(WR_FAIL_PATH);
    if (code != 0)
        return code;
    return unlink(path) == 0 ? 0 : -errno;
}

int wr_path_identity(const char *path, uint64_t *out_device, uint64_t *out_inode)
{
    int code = wr_fail_point(WR_FAIL_PATH);
    if (code != 0)
        return code;
    struct stat file;
    if (lstat(path, &file) != 0)
        return -errno;
    *out_device = file.st_dev;
    *out_inode = file.st_ino;
    return 0;
}

static int family_of(wr_address_kind kind)
{
    WR_ASSERT(kind == WR_ADDRESS_IPV4 || kind == WR_ADDRESS_IPV6);
    return kind == WR_ADDRESS_IPV6 ? AF_INET6 : AF_INET;
}

int wr_ip_parse(const char *text, wr_address_kind kind, uint8_t out[16])
{
    return inet_pton(family_of(kind), text, out) == 1 ? 0 : -EINVAL;
}

void wr_ip_format(wr_address_kind kind, const uint8_t ip[16], char out[WR_IP_TEXT_MAX])
{
    const char *text = inet_ntop(family_of(kind), ip, out, WR_IP_TEXT_MAX);
    WR_ASSERT(text == out);
    (void)text;
}
