/* SPDX-License-Identifier: MIT */
/* platform/os.h: THE contract with the operating system: whatever differs per platform or does not repeat is behind it.
 *
 * Job        Memory ranges, general allocation, threads, futex, locks, clocks, random bytes, descriptors and sockets.
 * Invariants Failures are negative error codes (-errno), never errno. Every call that can fail first passes
 *            wr_fail_point (platform/fail.h) under its own name, so that a test can make it fail. Descriptors are
 *            close-on-exec and non-blocking from birth. A call interrupted by a signal is repeated here, not by the
 *            caller.
 * Threads    Any, unless said otherwise.
 * Cost       That of the system call; locks uncontended: two atomic operations, no call.
 */
#ifndef WR_PLATFORM_OS_H
#define WR_PLATFORM_OS_H

#include "platform/compiler.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- memory ranges ---- */

size_t wr_os_page_size(void);

/* Reserves `size` bytes of address space, no access, nothing committed, start aligned to `alignment` (a power of two,
 * at least a page). Returns 0 and the start in `out`, or -ENOMEM. */
int wr_os_reserve(size_t size, size_t alignment, void **out);
/* Makes [start, start + size) (page aligned, inside a reservation) readable and writable; fresh pages read as zero. */
int wr_os_commit(void *start, size_t size);
/* Gives the pages of a committed range back. The range stays accessible and reads as zero afterwards. */
int wr_os_decommit(void *start, size_t size);
/* Makes a committed range inaccessible and gives its pages back, as after wr_os_reserve. */
int wr_os_uncommit(void *start, size_t size);
void wr_os_release(void *start, size_t size);

/* ---- general allocation (only for what is rare and outlives a heap: schedulers, pollers, tables) ---- */

void *wr_os_alloc(size_t size); /* zeroed, aligned to WR_CACHE_LINE; NULL when there is no memory */
void *wr_os_realloc(void *p, size_t old_size, size_t new_size); /* grown part zeroed; NULL: `p` is untouched */
void wr_os_free(void *p);                                       /* NULL is allowed */

/* ---- threads ---- */

typedef struct wr_thread {
    uintptr_t handle;
} wr_thread;

/* Runs `entry(arg)` on a new thread with all signals blocked, so that handlers run on the program's own threads. `name`
 * at most 15 bytes. */
int wr_thread_start(wr_thread *out, const char *name, void (*entry)(void *arg), void *arg);
void wr_thread_join(wr_thread thread);
unsigned wr_os_cpu_count(void); /* CPUs this process may use, >= 1 */
uint64_t wr_os_thread_id(void);

/* ---- futex and lock ---- */

/* Sleeps while *word == expected, at most timeout_ns (< 0: for ever). 0 when woken (also spuriously) or the value
 * differs, -ETIMEDOUT when the time is over. */
int wr_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t timeout_ns);
void wr_futex_wake(_Atomic uint32_t *word, int count); /* safe in signal handlers */

/* A small lock: 0 free, 1 taken, 2 taken with waiters. Not recursive. Never held while user code runs. Zeroed = free.
 * */
typedef struct wr_lock {
    _Atomic uint32_t state;
} wr_lock;

void wr_lock_slow(wr_lock *lock);
void wr_unlock_slow(wr_lock *lock);

WR_INLINE void wr_lock_take(wr_lock *lock)
{
    uint32_t free_state = 0;
    if (WR_UNLIKELY(!atomic_compare_exchange_strong_explicit(&lock->state, &free_state, 1, memory_order_acquire,
                                                             memory_order_relaxed)))
        wr_lock_slow(lock);
}

WR_INLINE void wr_lock_give(wr_lock *lock)
{
    if (WR_UNLIKELY(atomic_exchange_explicit(&lock->state, 0, memory_order_release) == 2))
        wr_unlock_slow(lock);
}

/* ---- time and chance ---- */

uint64_t wr_clock_ns(void);     /* monotonic */
uint64_t wr_clock_cpu_ns(void); /* CPU time of this process */
int64_t wr_clock_unix_ms(void); /* wall clock, milliseconds since 1970 */
uint64_t wr_random_seed(void);  /* from the system's generator; the only call that is not repeatable */

/* ---- environment and output ---- */

const char *wr_os_getenv(const char *name);             /* NULL if unset */
void wr_os_write_stderr(const char *text, size_t size); /* best effort; for reports only */
int wr_os_process_id(void);

/* ---- descriptors ---- */

typedef struct wr_slice { /* laid out like struct iovec */
    void *base;
    size_t size;
} wr_slice;

#define WR_SLICES_MAX 1024 /* slices one vectored call may carry */

void wr_fd_close(int fd);
/* Read up to `size` bytes: > 0 count, 0 end of stream, -EAGAIN nothing there now, other negative codes as the system
 * gives them. */
ssize_t wr_fd_receive(int fd, void *out, size_t size);
/* Send slices in one system call (sendmsg with MSG_NOSIGNAL | MSG_DONTWAIT; writev where the descriptor is no socket):
 * bytes taken, -EAGAIN, -EPIPE ... Never blocks, never raises SIGPIPE on sockets. count 1 .. WR_SLICES_MAX. */
ssize_t wr_fd_send(int fd, const wr_slice *slices, unsigned count);

/* ---- sockets ---- */

#define WR_ADDRESS_TEXT_MAX 256
#define WR_UNIX_PATH_MAX 107 /* bytes of a Unix socket path or abstract name on Linux */

typedef enum wr_address_kind { WR_ADDRESS_UNIX, WR_ADDRESS_ABSTRACT, WR_ADDRESS_IPV4, WR_ADDRESS_IPV6 } wr_address_kind;

typedef struct wr_address { /* parsed form; the text form and its parser live in streams/address.c */
    wr_address_kind kind;
    uint16_t port;    /* IPv4, IPv6: host byte order */
    uint8_t ip[16];   /* IPv4: the first 4 bytes; network order */
    uint32_t scope;   /* IPv6 scope id */
    size_t path_size; /* Unix, abstract: bytes in path */
    char path[WR_UNIX_PATH_MAX + 1];
} wr_address;

/* The text of an IP address, without port or scope, to 4 or 16 bytes in network order: 0 or -EINVAL; and back, the
 * shortest text of it. Pure: no name is looked up. */
#define WR_IP_TEXT_MAX 46
int wr_ip_parse(const char *text, wr_address_kind kind, uint8_t out[16]);
void wr_ip_format(wr_address_kind kind, const uint8_t ip[16], char out[WR_IP_TEXT_MAX]);

/* A listening socket. TCP: SO_REUSEADDR. Unix path: fails with -EADDRINUSE if the path exists; removing a dead one is
 * the caller's decision (wr_socket_probe). `backlog` 1..65535. */
int wr_socket_listen(const wr_address *address, int backlog, int *out_fd);
/* 0 and a connected descriptor; -EAGAIN nothing to accept; -EMFILE, -ENFILE ...; a connection that died meanwhile is
 * skipped. */
int wr_socket_accept(int listener, int *out_fd);
/* 0: connected; -EINPROGRESS: wait for WR_POLL_OUT, then wr_socket_error; on other errors there is no descriptor. A
 * Unix socket whose backlog is full gives -EAGAIN. TCP sockets get TCP_NODELAY (accepted ones too). */
int wr_socket_connect(const wr_address *address, int *out_fd);
int wr_socket_error(int fd); /* SO_ERROR as 0 or negative code */
int wr_socket_shutdown_write(int fd);
int wr_socket_pair(int out_fds[2]); /* Unix stream pair */
int wr_socket_local_address(int fd, wr_address *out);
/* Is anybody listening on this Unix path? 1 yes, 0 no (the file is a dead socket), -ENOENT no file, -ENOTSOCK another
 * kind of file. */
int wr_socket_probe(const wr_address *address);
int wr_path_remove(const char *path); /* unlink */
/* Device and inode of a path, to remove only the socket file one made oneself. */
int wr_path_identity(const char *path, uint64_t *out_device, uint64_t *out_inode);
int wr_fd_reserve(
    int *out_fd); /* a descriptor to hold back (/dev/null), so that accept can refuse politely at EMFILE */

#endif
