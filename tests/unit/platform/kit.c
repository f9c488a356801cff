/* SPDX-License-Identifier: MIT */
/* tests/unit/platform/kit.c: see kit.h. */
#include "unit/platform/kit.h"

#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <sys/prctl.h>

unsigned open_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    EXPECT(folder != NULL);
    unsigned count = 0;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count - 1; /* the folder's own */
}

unsigned lines_of(const char *path)
{
    FILE *file = fopen(path, "re");
    EXPECT(file != NULL);
    unsigned lines = 0;
    for (int c = getc(file); c != EOF; c = getc(file))
        lines += c == '\n';
    fclose(file);
    return lines;
}

wr_address unix_address(wr_address_kind kind, const char *name)
{
    wr_address address = {.kind = kind, .path_size = strlen(name)};
    memcpy(address.path, name, strnlen(name, WR_UNIX_PATH_MAX));
    return address;
}

wr_address loopback(wr_address_kind kind, uint16_t port)
{
    wr_address address = {.kind = kind, .port = port};
    if (kind == WR_ADDRESS_IPV4)
        memcpy(address.ip, (uint8_t[]){127, 0, 0, 1}, 4);
    else
        address.ip[15] = 1;
    return address;
}

wr_address temp_socket_address(const char *file)
{
    char path[WR_UNIX_PATH_MAX + 1];
    int length = snprintf(path, sizeof path, "%s/%s", test_temp_dir(), file);
    EXPECT(length > 0 && (size_t)length < sizeof path);
    return unix_address(WR_ADDRESS_UNIX, path);
}

void send_text(int fd, const char *text)
{
    wr_slice slice = {(void *)(uintptr_t)text, strlen(text)};
    EXPECT_EQ(wr_fd_send(fd, &slice, 1), strlen(text));
}

size_t drain(int fd)
{
    char bytes[4096];
    size_t total = 0;
    for (;;) {
        ssize_t got = wr_fd_receive(fd, bytes, sizeof bytes);
        if (got <= 0) {
            EXPECT(got == 0 || got == -EAGAIN || got == -ECONNRESET);
            return total;
        }
        total += (size_t)got;
    }
}

size_t fill(int fd)
{
    static char bytes[65536];
    wr_slice slice = {bytes, sizeof bytes};
    size_t total = 0;
    for (;;) {
        ssize_t sent = wr_fd_send(fd, &slice, 1);
        if (sent < 0) {
            EXPECT_EQ(sent, -EAGAIN);
            return total;
        }
        total += (size_t)sent;
    }
}

void wait_until_readable(int fd)
{
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    EXPECT_EQ(poll(&polled, 1, -1), 1);
}

void forbid_system_call(long number, int error)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = 4, .filter = program};
    EXPECT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    EXPECT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}
