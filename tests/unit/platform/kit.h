/* SPDX-License-Identifier: MIT */
/* tests/unit/platform/kit.h: what several platform tests need.
 *
 * Job        Count what a failed call could have left behind; connected sockets; filling and draining them.
 */
#ifndef WEIR_TESTS_PLATFORM_KIT_H
#define WEIR_TESTS_PLATFORM_KIT_H

#include "harness.h"
#include "platform/os.h"

#include <stdio.h>
#include <string.h>

unsigned open_descriptors(void);     /* of this process */
unsigned lines_of(const char *path); /* of a file under /proc */
wr_address unix_address(wr_address_kind kind, const char *name);
wr_address loopback(wr_address_kind kind, uint16_t port);
wr_address temp_socket_address(const char *file); /* in the test's private folder */
void send_text(int fd, const char *text);
size_t drain(int fd);             /* reads to -EAGAIN or the end; bytes */
size_t fill(int fd);              /* sends to -EAGAIN; bytes */
void wait_until_readable(int fd); /* sleeps in the kernel, not in the code under test */
/* From here on the system call answers with the error in this process (a seccomp filter; cannot be taken back). */
void forbid_system_call(long number, int error);

#endif
