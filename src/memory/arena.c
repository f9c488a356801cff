/* SPDX-License-Identifier: MIT */
/* memory/arena.c: the reserved range, its free runs, and memory back to the system.
 *
 * Job        See arena.h. Free runs are found by boundary tags in the records, kept in bins by power of two, dirty
 *            and clean apart.
 * Invariants A1 the granules below `used_end` are tiled by chunks and free runs, without gap; A2 neighbouring free
 *            runs differ in kind; A3 each free run is in the bin of its size and kind; A4 everything in a clean run,
 *            and above used_end, reads as zero.
 * Threads    Any, under `lock`; it is held during system calls of the rare paths (growing, giving back).
 * Cost       Single granules: last in, first out, so that a heap that recycles 1 MiB stays in the cache.
 * Why apart  Runs of both kinds joined would need to know, after each split, which part still reads as zero.
 */
#include "memory/arena.h"

#include "memory/pool.h"
#include <errno.h>

#define RESERVE_MAX ((size_t)1 << 38)
#define RESERVE_MIN ((size_t)1 << 30)
#define COMMIT_STEP ((size_t)32 << 20)
#define DIRTY_MIN ((size_t)16 << 20)
#define BINS 24
#define LOOK_AT_MOST 8 /* runs of the own bin tried before a larger bin is opened; all when there is nothing else */

typedef struct free_runs {
    uint32_t filled;     /* bit b: bin b has a run */
    wr_chunk *bin[BINS]; /* runs of 2^b to 2^(b+1) - 1 granules, last freed first */
} free_runs;

wr_arena_range wr_arena;

static struct {
    WR_ALIGNED(WR_CACHE_LINE) wr_lock lock;
    bool open;
    size_t limit; /* bytes reserved */
    uint32_t limit_granules, used_end, committed_end;
    free_runs clean, dirty;
    size_t used, heap, pool, dirty_granules; /* granules */
} state;

static size_t meta_size(size_t granules)
{
    size_t page = wr_os_page_size();
    return (granules * sizeof(wr_chunk) + page - 1) / page * page;
}

int wr_arena_open(void)
{
    if (state.open)
        return -EBUSY;
    for (size_t size = RESERVE_MAX; size >= RESERVE_MIN; size /= 2) {
        void *base, *chunks;
        if (wr_os_reserve(size, WR_GRANULE, &base) != 0)
            continue;
        if (wr_os_reserve(meta_size(size / WR_GRANULE), wr_os_page_size(), &chunks) != 0) {
            wr_os_release(base, size);
            continue;
        }
        state.limit = size;
        state.limit_granules = (uint32_t)(size / WR_GRANULE);
        state.used_end = state.committed_end = 0;
        state.clean = state.dirty = (free_runs){0};
        state.used = state.heap = state.pool = state.dirty_granules = 0;
        wr_arena.base = (uintptr_t)base;
        wr_arena.chunks = chunks;
        atomic_store_explicit(&wr_arena.size, 0, memory_order_relaxed);
        state.open = true;
        return 0;
    }
    return -ENOMEM;
}

void wr_arena_close(void)
{
    WR_CHECK(state.open, "wr_arena_close without wr_arena_open");
    wr_pool_forget();
    WR_CHECK(state.heap == 0, "%zu granules of heaps are in use at the end of the run", state.heap);
    WR_UNPOISON((void *)wr_arena.base, (size_t)state.committed_end * WR_GRANULE);
    atomic_store_explicit(&wr_arena.size, 0, memory_order_relaxed);
    wr_os_release((void *)wr_arena.base, state.limit);
    wr_os_release(wr_arena.chunks, meta_size(state.limit_granules));
    wr_arena.base = 0;
    wr_arena.chunks = NULL;
    state.used = state.pool = state.dirty_granules = 0;
    state.open = false;
}

static uint32_t number_of(const wr_chunk *c)
{
    return (uint32_t)(c - wr_arena.chunks);
}

static char *start_of(const wr_chunk *c)
{
    return (char *)wr_arena.base + ((size_t)number_of(c) << WR_GRANULE_SHIFT);
}

/* The highest bit set. */
static unsigned bin_of(uint32_t granules)
{
    WR_ASSERT(granules >= 1);
    unsigned bin = 0;
    for (unsigned step = 16; step > 0; step /= 2)
        if (granules >> (bin + step) != 0)
            bin += step;
    return bin;
}

static free_runs *runs_of(const wr_chunk *c)
{
    WR_ASSERT(WR_CHUNK_LOAD(c, kind) == WR_CHUNK_CLEAN || WR_CHUNK_LOAD(c, kind) == WR_CHUNK_DIRTY);
    return WR_CHUNK_LOAD(c, kind) == WR_CHUNK_CLEAN ? &state.clean : &state.dirty;
}

static void unlink_run(wr_chunk *c)
{
    free_runs *runs = runs_of(c);
    unsigned b = bin_of(c->granules);
    if (c->previous != NULL)
        c->previous->next = c->next;
    else {
        WR_ASSERT(runs->bin[b] == c);
        runs->bin[b] = c->next;
        if (c->next == NULL)
            runs->filled &= ~(1u << b);
    }
    if (c->next != NULL)
        c->next->previous = c->previous;
    c->next = c->previous = NULL;
}

/* Puts a free run, whose records have their kind already, into its bin and writes its tags. */
static void link_run(wr_chunk *c, uint32_t granules)
{
    free_runs *runs = runs_of(c);
    unsigned b = bin_of(granules);
    WR_ASSERT(b < BINS && number_of(c) + granules <= state.used_end);
    c->granules = granules;
    c[granules - 1].granules = granules;
    c->previous = NULL;
    c->next = runs->bin[b];
    if (c->next != NULL)
        c->next->previous = c;
    runs->bin[b] = c;
    runs->filled |= 1u << b;
}

/* Joins a free run that is in no bin with its neighbours of the same kind and puts the whole into its bin. */
static void join_and_link(wr_chunk *c, uint32_t granules)
{
    uint8_t kind = WR_CHUNK_LOAD(c, kind);
    wr_chunk *after = c + granules;
    if (number_of(after) < state.used_end && WR_CHUNK_LOAD(after, kind) == kind) {
        unlink_run(after);
        granules += after->granules;
    }
    if (number_of(c) > 0 && WR_CHUNK_LOAD(c - 1, kind) == kind) {
        uint32_t before = c[-1].granules;
        WR_ASSERT(before >= 1 && before <= number_of(c));
        c -= before;
        unlink_run(c);
        granules += before;
    }
    link_run(c, granules);
}

static wr_chunk *find_run(free_runs *runs, uint32_t granules, uint32_t looks)
{
    unsigned b = bin_of(granules);
    for (wr_chunk *c = runs->bin[b]; c != NULL && looks > 0; c = c->next, looks--)
        if (c->granules >= granules)
            return c;
    uint32_t larger = b + 1 >= 32 ? 0 : runs->filled & ~((2u << b) - 1);
    if (larger == 0)
        return NULL;
    wr_chunk *c = runs->bin[wr_lowest_bit(larger)];
    WR_ASSERT(c != NULL && c->granules >= granules);
    return c;
}

/* Makes the range accessible up to granule `end` at least. */
static int grow(uint32_t end)
{
    if (end > state.limit_granules)
        return -ENOMEM;
    uint32_t step = state.committed_end / 8;
    if (step < COMMIT_STEP / WR_GRANULE)
        step = COMMIT_STEP / WR_GRANULE;
    uint32_t wanted =
        state.limit_granules - state.committed_end < step ? state.limit_granules : state.committed_end + step;
    if (wanted < end)
        wanted = end;
    size_t meta_have = meta_size(state.committed_end);
    for (;;) {
        size_t meta_add = meta_size(wanted) - meta_have;
        int rc = meta_add == 0 ? 0 : wr_os_commit((char *)wr_arena.chunks + meta_have, meta_add);
        if (rc == 0)
            rc = wr_os_commit((char *)wr_arena.base + (size_t)state.committed_end * WR_GRANULE,
                              (size_t)(wanted - state.committed_end) * WR_GRANULE);
        if (rc == 0)
            break;
        if (wanted == end)
            return rc;
        wanted = end;
    }
    state.committed_end = wanted;
    atomic_store_explicit(&wr_arena.size, (size_t)wanted * WR_GRANULE, memory_order_relaxed);
    return 0;
}

static void set_kind(wr_chunk *c, uint32_t granules, wr_chunk_kind kind)
{
    for (uint32_t i = 0; i < granules; i++)
        WR_CHUNK_STORE(&c[i], kind, (uint8_t)kind);
}

/* Gives large dirty runs back to the system until at most `most` dirty granules are left, and never so many that fewer
 * than `least` are: of a run that is too large for that only the end, since its beginning is taken first. */
static void trim_to(size_t most, size_t least)
{
    WR_ASSERT(least <= most);
    while (state.dirty_granules > most) {
        WR_ASSERT(state.dirty.filled != 0);
        wr_chunk *c = state.dirty.bin[bin_of(state.dirty.filled)];
        size_t excess = state.dirty_granules - least;
        uint32_t granules = c->granules < excess ? c->granules : (uint32_t)excess, kept = c->granules - granules;
        if (wr_os_decommit(start_of(c + kept), (size_t)granules * WR_GRANULE) != 0)
            return; /* it stays dirty, the next one who gives tries again */
        unlink_run(c);
        if (kept > 0)
            link_run(c, kept);
        state.dirty_granules -= granules;
        set_kind(c + kept, granules, WR_CHUNK_CLEAN);
        join_and_link(c + kept, granules);
    }
}

/* A run of exactly `granules` that is in no bin; its kind says whether it reads as zero. */
static wr_chunk *take_run(uint32_t granules, uint32_t looks)
{
    if (granules > state.limit_granules)
        return NULL;
    wr_chunk *c = find_run(&state.dirty, granules, looks);
    if (c == NULL)
        c = find_run(&state.clean, granules, looks);
    if (c != NULL) {
        unlink_run(c);
        if (WR_CHUNK_LOAD(c, kind) == WR_CHUNK_DIRTY)
            state.dirty_granules -= granules;
        if (c->granules > granules)
            link_run(c + granules, c->granules - granules);
        return c;
    }
    if (granules > state.limit_granules - state.used_end)
        return NULL;
    if (state.used_end + granules > state.committed_end && grow(state.used_end + granules) != 0)
        return NULL;
    c = wr_arena.chunks + state.used_end;
    state.used_end += granules;
    WR_CHUNK_STORE(c, kind, WR_CHUNK_CLEAN);
    return c;
}

static void count(wr_chunk_kind kind, size_t granules, bool taken)
{
    size_t *part = kind == WR_CHUNK_HEAP ? &state.heap : &state.pool;
    WR_ASSERT(taken || (*part >= granules && state.used >= granules));
    *part = taken ? *part + granules : *part - granules;
    state.used = taken ? state.used + granules : state.used - granules;
}

wr_chunk *wr_arena_take(uint32_t granules, wr_chunk_kind kind, wr_heap *owner, bool *out_zero)
{
    WR_ASSERT(granules >= 1 && kind >= WR_CHUNK_HEAP);
    WR_ASSERT((owner != NULL) == (kind == WR_CHUNK_HEAP));
    wr_lock_take(&state.lock);
    wr_chunk *c = state.open ? take_run(granules, LOOK_AT_MOST) : NULL;
    if (c == NULL && state.open) {
        trim_to(0, 0); /* dirty and clean neighbours become one run */
        c = take_run(granules, UINT32_MAX);
    }
    if (c != NULL) {
        *out_zero = WR_CHUNK_LOAD(c, kind) == WR_CHUNK_CLEAN;
        count(kind, granules, true);
        c->granules = granules;
        c->start = start_of(c);
        c->next = c->previous = NULL;
        for (uint32_t i = 0; i < granules; i++) {
            WR_CHUNK_STORE(&c[i], back, i);
            WR_CHUNK_STORE(&c[i], owner, owner);
            WR_CHUNK_STORE(&c[i], kind, (uint8_t)kind);
        }
    }
    wr_lock_give(&state.lock);
    return c;
}

void wr_arena_give(wr_chunk *list)
{
    wr_lock_take(&state.lock);
    WR_ASSERT(state.open);
    while (list != NULL) {
        wr_chunk *c = list;
        list = c->next;
        uint32_t granules = c->granules;
        WR_ASSERT(WR_CHUNK_LOAD(c, kind) >= WR_CHUNK_HEAP && WR_CHUNK_LOAD(c, back) == 0);
        WR_POISON(c->start, (size_t)granules * WR_GRANULE);
        count((wr_chunk_kind)WR_CHUNK_LOAD(c, kind), granules, false);
        for (uint32_t i = 0; i < granules; i++) {
            WR_CHUNK_STORE(&c[i], owner, NULL);
            WR_CHUNK_STORE(&c[i], kind, WR_CHUNK_DIRTY);
            WR_CHUNK_STORE(&c[i], back, 0);
        }
        state.dirty_granules += granules;
        join_and_link(c, granules);
    }
    size_t kept = state.used / 8;
    if (kept < DIRTY_MIN / WR_GRANULE)
        kept = DIRTY_MIN / WR_GRANULE;
    if (state.dirty_granules > kept)
        trim_to(kept, kept - kept / 4); /* the gives that follow need not call the system at once again */
    wr_lock_give(&state.lock);
}

void wr_arena_trim(void)
{
    wr_lock_take(&state.lock);
    trim_to(0, 0);
    wr_lock_give(&state.lock);
}

void wr_arena_get_stats(wr_arena_stats *out)
{
    wr_lock_take(&state.lock);
    *out = (wr_arena_stats){
        .committed_bytes = (state.used + state.dirty_granules) * WR_GRANULE,
        .used_bytes = state.used * WR_GRANULE,
        .dirty_bytes = state.dirty_granules * WR_GRANULE,
        .heap_bytes = state.heap * WR_GRANULE,
        .pool_bytes = state.pool * WR_GRANULE,
        .limit_bytes = state.open ? state.limit : 0,
    };
    wr_lock_give(&state.lock);
}

void wr_arena_check(void)
{
    wr_lock_take(&state.lock);
    size_t used = 0, dirty = 0;
    uint8_t before = WR_CHUNK_NEVER;
    for (uint32_t i = 0; i < state.used_end;) {
        wr_chunk *c = wr_arena.chunks + i;
        uint8_t kind = WR_CHUNK_LOAD(c, kind);
        bool is_free = kind == WR_CHUNK_CLEAN || kind == WR_CHUNK_DIRTY;
        WR_CHECK(kind != WR_CHUNK_NEVER && WR_CHUNK_LOAD(c, back) == 0, "granule %u is no head", i);
        WR_CHECK(c->granules >= 1 && i + c->granules <= state.used_end, "granule %u: size %u", i, c->granules);
        if (is_free) {
            WR_CHECK(kind != before, "granule %u: free runs of one kind side by side", i);
            WR_CHECK(c[c->granules - 1].granules == c->granules, "granule %u: tags differ", i);
            WR_CHECK((runs_of(c)->filled >> bin_of(c->granules)) & 1, "granule %u: bin not marked as filled", i);
            WR_CHECK(WR_CHUNK_LOAD(c, owner) == NULL, "granule %u: free but owned", i);
        }
        for (uint32_t j = 0; j < c->granules; j++)
            WR_CHECK(WR_CHUNK_LOAD(&c[j], kind) == kind && WR_CHUNK_LOAD(&c[j], back) == (is_free ? 0 : j),
                     "granule %u: record %u differs from its head", i, j);
        used += is_free ? 0 : c->granules;
        dirty += kind == WR_CHUNK_DIRTY ? c->granules : 0;
        before = is_free ? kind : WR_CHUNK_NEVER;
        i += c->granules;
    }
    WR_CHECK(used == state.used && used == state.heap + state.pool, "used granules: %zu counted, %zu noted", used,
             state.used);
    WR_CHECK(dirty == state.dirty_granules, "dirty granules: %zu counted, %zu noted", dirty, state.dirty_granules);
    wr_lock_give(&state.lock);
}
