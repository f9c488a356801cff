/* SPDX-License-Identifier: MIT */
/* platform/poll_poll.c: readiness by poll(2), for systems without epoll.
 *
 * Job        The poller contract on poll(2): one waiting thread leads and sleeps in poll, the others follow and sleep
 *            on a futex until they are made leader. A change of the table or a wake interrupts the leader through a
 *            pipe.
 * Invariants `lock` guards everything but the snapshot, which belongs to the leader, and `waiters`, which is atomic.
 *            At most one leader. Whoever stops leading promotes a follower if there is one, so that a readable pipe, an
 *            owed wake and a ready descriptor always find a thread.
 *            A reported descriptor is disarmed and leaves the snapshot: poll(2) would report it again at once, hang-up
 *            even unasked. A report counts only if the descriptor is still armed in the version that the snapshot was
 *            taken from.
 * Threads    Any. wake takes no lock: it may run in a signal handler that interrupted a holder.
 * Cost       add, arm, remove: a lock, and one write when a leader sleeps. wait: linear in the highest descriptor. A
 *            wake that finds several waiters is handed on by the leader, a futex wake for each.
 * Tried      To let the leader sleep on when a descriptor is removed: poll holds on to each open file while it sleeps,
 *            so a closed connection did not end for the peer before the leader returned.
 */
#include "platform/poll.h"
#include "platform/check.h"
#include "platform/os.h"
#include "platform/poll_wait.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000
#define TABLE_MIN 64

/* One descriptor; the table is indexed by its number, which the system keeps small. */
typedef struct poll_entry {
    uint64_t key;
    uint32_t version; /* raised by each change, never reset: tells a report of an earlier life from one of this */
    bool present;
    short armed; /* POLLIN ..., 0 when disarmed */
} poll_entry;

/* What the leader hands to poll. Place 0 is the pipe. One allocation with both arrays behind it. */
typedef struct poll_snapshot {
    int room;
    int count;
    int from; /* where the next harvest starts, so that a busy low place cannot starve a high one */
    struct pollfd *polled;
    uint32_t *versions;
} poll_snapshot;

typedef struct poll_poller {
    wr_poller base;
    wr_poll_waiters waiters;
    int pipe_read;
    int pipe_write;
    wr_lock lock;
    bool leader;   /* somebody leads */
    bool sleeping; /* the leader is in poll or about to be: changes have to interrupt it */
    bool changed;  /* the snapshot is out of date */
    int table_size;
    int used; /* highest descriptor ever present, plus one */
    unsigned followers;
    _Atomic uint32_t turn; /* futex of the followers; raised under the lock with each promotion */
    poll_entry *table;
    poll_snapshot *next;     /* a larger one that the next leader shall use; NULL when the present one has room */
    poll_snapshot *snapshot; /* the leader's */
} poll_poller;

static poll_poller *poller_of(wr_poller *base)
{
    WR_ASSERT(base->operations == &wr_poll_poll);
    return WR_CONTAINER(poll_poller, base, base);
}

/* ---- life ---- */

static poll_snapshot *new_snapshot(int room)
{
    size_t places = (size_t)room;
    poll_snapshot *snapshot = wr_os_alloc(sizeof *snapshot + places * (sizeof(struct pollfd) + sizeof(uint32_t)));
    if (snapshot == NULL)
        return NULL;
    snapshot->room = room;
    snapshot->polled = (struct pollfd *)(void *)(snapshot + 1);
    snapshot->versions = (uint32_t *)(void *)(snapshot->polled + places);
    return snapshot;
}

static void poll_close(wr_poller *base)
{
    poll_poller *poller = poller_of(base);
    WR_ASSERT(!poller->leader && poller->followers == 0);
    if (poller->pipe_read >= 0)
        wr_fd_close(poller->pipe_read);
    if (poller->pipe_write >= 0)
        wr_fd_close(poller->pipe_write);
    wr_os_free(poller->table);
    wr_os_free(poller->next);
    wr_os_free(poller->snapshot);
    wr_os_free(poller);
}

static int poll_open(wr_poller **out)
{
    poll_poller *poller = wr_os_alloc(sizeof *poller);
    if (poller == NULL)
        return -ENOMEM;
    int ends[2] = {-1, -1};
    int code = pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0 ? 0 : -errno;
    poller->base.operations = &wr_poll_poll;
    poller->pipe_read = ends[0];
    poller->pipe_write = ends[1];
    poller->changed = true;
    if (code == 0) {
        poller->table_size = TABLE_MIN;
        poller->table = wr_os_alloc(TABLE_MIN * sizeof *poller->table);
        poller->snapshot = new_snapshot(TABLE_MIN + 1);
        if (poller->table == NULL || poller->snapshot == NULL)
            code = -ENOMEM;
    }
    if (code != 0)
        poll_close(&poller->base);
    else
        *out = &poller->base;
    return code;
}

/* ---- the table ---- */

/* Makes the leader look again. A full pipe is as good as a written one. */
static void interrupt_leader(poll_poller *poller)
{
    int saved = errno;
    ssize_t written;
    do {
        written = write(poller->pipe_write, "", 1);
    } while (written < 0 && errno == EINTR);
    errno = saved;
}

static void table_changed(poll_poller *poller)
{
    poller->changed = true;
    if (poller->sleeping) {
        poller->sleeping = false;
        interrupt_leader(poller);
    }
}

/* Room for `fd` in the table and in a snapshot, made here so that waiting cannot fail for want of memory. */
static int grow(poll_poller *poller, int fd)
{
    if (fd < poller->table_size)
        return 0;
    int size = poller->table_size;
    while (size <= fd) {
        if (WR_MUL_OVERFLOWS(size, 2, &size))
            return -ENOMEM;
    }
    poll_snapshot *next = new_snapshot(size + 1);
    poll_entry *table = next == NULL ? NULL
                                     : wr_os_realloc(poller->table, (size_t)poller->table_size * sizeof *table,
                                                     (size_t)size * sizeof *table);
    if (table == NULL) {
        wr_os_free(next);
        return -ENOMEM;
    }
    wr_os_free(poller->next);
    poller->next = next;
    poller->table = table;
    poller->table_size = size;
    return 0;
}

static short to_system(unsigned events)
{
    short system_events = 0;
    if (events & WR_POLL_IN)
        system_events |= POLLIN | POLLRDHUP;
    if (events & WR_POLL_OUT)
        system_events |= POLLOUT;
    if (events & WR_POLL_HANGUP)
        system_events |= POLLRDHUP;
    return system_events;
}

static unsigned from_system(short system_events)
{
    unsigned events = 0;
    if (system_events & POLLIN)
        events |= WR_POLL_IN;
    if (system_events & POLLOUT)
        events |= WR_POLL_OUT;
    if (system_events & (POLLHUP | POLLERR | POLLRDHUP | POLLNVAL))
        events |= WR_POLL_HANGUP | WR_POLL_IN;
    return events;
}

static void set_entry(poll_poller *poller, int fd, uint64_t key, unsigned events)
{
    poll_entry *entry = &poller->table[fd];
    entry->present = true;
    entry->key = key;
    entry->armed = to_system(events);
    entry->version++;
    if (fd >= poller->used)
        poller->used = fd + 1;
    table_changed(poller);
}

static int poll_add(wr_poller *base, int fd, uint64_t key, unsigned events)
{
    poll_poller *poller = poller_of(base);
    struct stat file;
    if (fstat(fd, &file) != 0)
        return -errno;
    /* poll would call them ready for ever; epoll refuses them. One contract. */
    if (S_ISREG(file.st_mode) || S_ISDIR(file.st_mode))
        return -EPERM;
    wr_lock_take(&poller->lock);
    int code = grow(poller, fd);
    if (code == 0 && poller->table[fd].present)
        code = -EEXIST;
    if (code == 0)
        set_entry(poller, fd, key, events);
    wr_lock_give(&poller->lock);
    return code;
}

static int poll_arm(wr_poller *base, int fd, uint64_t key, unsigned events)
{
    poll_poller *poller = poller_of(base);
    wr_lock_take(&poller->lock);
    bool present = fd < poller->table_size && poller->table[fd].present;
    if (present)
        set_entry(poller, fd, key, events);
    wr_lock_give(&poller->lock);
    return present ? 0 : -ENOENT;
}

static int poll_remove(wr_poller *base, int fd)
{
    poll_poller *poller = poller_of(base);
    wr_lock_take(&poller->lock);
    if (fd < poller->table_size && poller->table[fd].present) {
        poller->table[fd].present = false;
        poller->table[fd].armed = 0;
        poller->table[fd].version++;
        table_changed(poller);
    }
    wr_lock_give(&poller->lock);
    return 0;
}

static void poll_wake(wr_poller *base)
{
    poll_poller *poller = poller_of(base);
    if (wr_poll_waiters_post(&poller->waiters))
        interrupt_leader(poller);
}

/* ---- leading; the lock is held on entry and exit of each function ---- */

static void refresh(poll_poller *poller)
{
    if (poller->next != NULL) {
        wr_os_free(poller->snapshot);
        poller->snapshot = poller->next;
        poller->next = NULL;
        WR_ASSERT(poller->changed);
    }
    if (!poller->changed)
        return;
    poll_snapshot *snapshot = poller->snapshot;
    WR_ASSERT(poller->used < snapshot->room);
    snapshot->polled[0] = (struct pollfd){.fd = poller->pipe_read, .events = POLLIN};
    snapshot->count = 1;
    for (int fd = 0; fd < poller->used; fd++) {
        if (poller->table[fd].armed == 0)
            continue;
        WR_ASSERT(poller->table[fd].present);
        snapshot->polled[snapshot->count] = (struct pollfd){.fd = fd, .events = poller->table[fd].armed};
        snapshot->versions[snapshot->count] = poller->table[fd].version;
        snapshot->count++;
    }
    poller->changed = false;
}

/* Reports and disarms what is ready. What does not fit into `max` stays armed and is found by the next look. */
static int harvest(poll_poller *poller, wr_poll_event *events, int max)
{
    poll_snapshot *snapshot = poller->snapshot;
    int places = snapshot->count - 1;
    int kept = 0;
    int step = 0;
    for (; step < places && kept < max; step++) {
        int place = 1 + (snapshot->from + step) % places;
        const struct pollfd *polled = &snapshot->polled[place];
        if (polled->revents == 0)
            continue;
        poll_entry *entry = &poller->table[polled->fd];
        if (entry->armed == 0 || entry->version != snapshot->versions[place])
            continue;
        events[kept++] = (wr_poll_event){.key = entry->key, .events = from_system(polled->revents)};
        entry->armed = 0;
        entry->version++;
        poller->changed = true;
    }
    snapshot->from = places > 0 ? (snapshot->from + step) % places : 0;
    return kept;
}

/* Empties the pipe; true when it was rung. */
static bool drain(poll_poller *poller)
{
    if (poller->snapshot->polled[0].revents == 0)
        return false;
    char bytes[64];
    ssize_t got;
    do {
        got = read(poller->pipe_read, bytes, sizeof bytes);
    } while (got == (ssize_t)sizeof bytes || (got < 0 && errno == EINTR));
    return true;
}

/* One sleep in poll, without the lock. Number of ready places, 0 when the time is over, -EINTR. */
static int sleep_in_poll(poll_poller *poller, int64_t timeout_ns)
{
    refresh(poller);
    poller->sleeping = true;
    wr_lock_give(&poller->lock);
    struct timespec timeout = {.tv_sec = timeout_ns / NS_PER_S, .tv_nsec = timeout_ns % NS_PER_S};
    int count =
        ppoll(poller->snapshot->polled, (nfds_t)poller->snapshot->count, timeout_ns < 0 ? NULL : &timeout, NULL);
    if (count < 0) {
        WR_CHECK(errno == EINTR, "waiting for events failed (errno %d)", errno);
        count = -EINTR;
    }
    wr_lock_take(&poller->lock);
    poller->sleeping = false;
    return count;
}

/* Leads until there is something to return for. `waits`: counted among the waiters, which ends here. */
static int lead(poll_poller *poller, wr_poll_event *events, int max, bool waits, int64_t deadline)
{
    for (;;) {
        if (waits && wr_poll_waiters_take(&poller->waiters))
            return 0;
        int count = sleep_in_poll(poller, waits ? wr_poll_remaining(deadline) : 0);
        bool rung = count > 0 && drain(poller);
        int kept = count > 0 ? harvest(poller, events, max) : 0;
        if (!waits)
            return kept;
        if (kept > 0 && rung && wr_poll_waiters_take(&poller->waiters))
            return kept;
        if (kept > 0 || count <= 0) {
            wr_poll_waiters_leave(&poller->waiters);
            return kept;
        }
    }
}

/* Sleeps until there is no leader. False when the time is over before. */
static bool follow(poll_poller *poller, int64_t deadline)
{
    while (poller->leader) {
        uint32_t turn = atomic_load_explicit(&poller->turn, memory_order_relaxed);
        poller->followers++;
        wr_lock_give(&poller->lock);
        int code = wr_futex_wait(&poller->turn, turn, wr_poll_remaining(deadline));
        wr_lock_take(&poller->lock);
        poller->followers--;
        /* A promotion goes to a sleeper, which we are no more: nothing is lost with us. */
        if (code == -ETIMEDOUT)
            return false;
    }
    return true;
}

static int poll_wait_for(wr_poller *base, wr_poll_event *events, int max, int64_t timeout_ns)
{
    poll_poller *poller = poller_of(base);
    int64_t deadline = wr_poll_deadline(timeout_ns);
    bool waits = timeout_ns != 0 && !wr_poll_waiters_enter(&poller->waiters);
    int kept = 0;
    bool promote = false;
    wr_lock_take(&poller->lock);
    if (waits && !follow(poller, deadline)) {
        wr_poll_waiters_leave(&poller->waiters);
    } else if (!poller->leader) {
        poller->leader = true;
        kept = lead(poller, events, max, waits, deadline);
        poller->leader = false;
        promote = poller->followers > 0;
        if (promote)
            atomic_fetch_add_explicit(&poller->turn, 1, memory_order_relaxed);
    }
    wr_lock_give(&poller->lock);
    if (promote)
        wr_futex_wake(&poller->turn, 1);
    return kept;
}

static unsigned poll_waiting(wr_poller *base)
{
    return wr_poll_waiting(atomic_load_explicit(&poller_of(base)->waiters.state, memory_order_acquire));
}

const wr_poll_operations wr_poll_poll = {
    .name = "poll",
    .rearm_needed = true,
    .open = poll_open,
    .close = poll_close,
    .add = poll_add,
    .arm = poll_arm,
    .remove = poll_remove,
    .wait = poll_wait_for,
    .wake = poll_wake,
    .waiting = poll_waiting,
};
