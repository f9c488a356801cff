/* SPDX-License-Identifier: MIT */
/* platform/os_thread.c: threads, waiting, time, chance and the process's surroundings on Linux.
 *
 * Job        Start and join threads, futex and lock, clocks, the seed, environment, standard error.
 * Invariants A thread of ours takes no asynchronous signal: the program's handlers run on the program's threads.
 *            Signals that a thread causes itself (a bad access, an abort) and the profiler's stay open, else the kernel
 *            would kill the process without a report.
 * Threads    Any.
 * Cost       Clocks are vDSO calls (about 20 ns). A contended lock spins some 40 rounds before it sleeps: sections
 *            under it are shorter than a sleep and a wake (some 5 us).
 */
#include "platform/check.h"
#include "platform/fail.h"
#include "platform/os.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LOCK_SPINS 40
#define THREAD_NAME_BYTES 16
#define NS_PER_S 1000000000

/* ---- threads ---- */

typedef struct thread_start {
    void (*entry)(void *arg);
    void *arg;
    char name[THREAD_NAME_BYTES];
} thread_start;

static void *thread_main(void *start_block)
{
    thread_start start = *(thread_start *)start_block;
    wr_os_free(start_block);
    pthread_setname_np(pthread_self(), start.name);
    start.entry(start.arg);
    return NULL;
}

static void signals_of_a_thread(sigset_t *blocked)
{
    static const int open[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF};
    sigfillset(blocked);
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++)
        sigdelset(blocked, open[i]);
}

int wr_thread_start(wr_thread *out, const char *name, void (*entry)(void *arg), void *arg)
{
    WR_ASSERT(entry != NULL && strlen(name) < THREAD_NAME_BYTES);
    int code = wr_fail_point(WR_FAIL_THREAD);
    if (code != 0)
        return code;
    thread_start *start = wr_os_alloc(sizeof *start);
    if (start == NULL)
        return -ENOMEM;
    start->entry = entry;
    start->arg = arg;
    strncpy(start->name, name, sizeof start->name - 1);
    sigset_t blocked, before;
    pthread_t thread;
    signals_of_a_thread(&blocked);
    /* A new thread inherits its creator's mask; set from inside, a signal could arrive before. */
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    code = -pthread_create(&thread, NULL, thread_main, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0)
        wr_os_free(start);
    else
        out->handle = (uintptr_t)thread;
    return code;
}

void wr_thread_join(wr_thread thread)
{
    int rc = pthread_join((pthread_t)thread.handle, NULL);
    WR_CHECK(rc == 0, "joining a thread failed with %d; join each started thread once, from another thread", rc);
}

unsigned wr_os_cpu_count(void)
{
    /* The kernel refuses a mask smaller than its own: grow until it fits. */
    for (int cpus = CPU_SETSIZE; cpus <= (1 << 20); cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        if (set == NULL)
            break;
        size_t size = CPU_ALLOC_SIZE((size_t)cpus);
        int rc = sched_getaffinity(0, size, set);
        int count = rc == 0 ? CPU_COUNT_S(size, set) : 0;
        int error = errno;
        CPU_FREE(set);
        if (count > 0)
            return (unsigned)count;
        if (rc != 0 && error != EINVAL)
            break;
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

uint64_t wr_os_thread_id(void)
{
    return (uint64_t)gettid();
}

/* ---- futex and lock ---- */

int wr_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t timeout_ns)
{
    struct timespec timeout = {.tv_sec = timeout_ns / NS_PER_S, .tv_nsec = timeout_ns % NS_PER_S};
    long rc = syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout_ns < 0 ? NULL : &timeout, NULL, 0);
    if (rc == 0 || errno == EAGAIN || errno == EINTR)
        return 0;
    WR_CHECK(errno == ETIMEDOUT, "waiting on a futex failed (errno %d)", errno);
    return -ETIMEDOUT;
}

void wr_futex_wake(_Atomic uint32_t *word, int count)
{
    int saved = errno;
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
    errno = saved;
}

void wr_lock_slow(wr_lock *lock)
{
    for (int i = 0; i < LOCK_SPINS; i++) {
        uint32_t state = atomic_load_explicit(&lock->state, memory_order_relaxed);
        if (state == 0 &&
            atomic_compare_exchange_weak_explicit(&lock->state, &state, 1, memory_order_acquire, memory_order_relaxed))
            return;
        wr_cpu_relax();
    }
    /* From here on 2: we cannot know whether others sleep, so whoever gives the lock back has to wake. */
    while (atomic_exchange_explicit(&lock->state, 2, memory_order_acquire) != 0)
        wr_futex_wait(&lock->state, 2, -1);
}

void wr_unlock_slow(wr_lock *lock)
{
    wr_futex_wake(&lock->state, 1);
}

/* ---- time and chance ---- */

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;
    int rc = clock_gettime(clock, &now);
    WR_CHECK(rc == 0, "reading clock %d failed (errno %d)", (int)clock, errno);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t wr_clock_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t wr_clock_cpu_ns(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

int64_t wr_clock_unix_ms(void)
{
    return (int64_t)(read_clock(CLOCK_REALTIME) / 1000000);
}

uint64_t wr_random_seed(void)
{
    uint64_t seed;
    if (wr_fail_point(WR_FAIL_RANDOM) == 0) {
        ssize_t got;
        do {
            got = getrandom(&seed, sizeof seed, 0);
        } while (got < 0 && errno == EINTR);
        if (got == (ssize_t)sizeof seed)
            return seed;
    }
    /* No generator (a sandbox): what differs between processes and runs, stirred. Good for seeds, not for secrets. */
    seed = read_clock(CLOCK_REALTIME) ^ ((uint64_t)getpid() << 40) ^ (wr_clock_ns() << 20);
    seed = (seed ^ (seed >> 31)) * UINT64_C(0x9e3779b97f4a7c15);
    return seed ^ (seed >> 29);
}

/* ---- environment and output ---- */

const char *wr_os_getenv(const char *name)
{
    return getenv(name);
}

void wr_os_write_stderr(const char *text, size_t size)
{
    while (size > 0) {
        ssize_t written = write(STDERR_FILENO, text, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return;
        text += written;
        size -= (size_t)written;
    }
}

int wr_os_process_id(void)
{
    return (int)getpid();
}
