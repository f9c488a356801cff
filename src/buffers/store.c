/* SPDX-License-Identifier: MIT */
/* buffers/store.c: make and end stores.
 *
 * Job        A store's life: one pool block (header and bytes, or header alone for foreign bytes) from creation until
 *            its count is zero.
 * Invariants A store is ended exactly once, by whoever gives back the last count, on any scheduler; `release` runs then
 *            and only then. store_bytes (statistics) is raised by `length` at creation and lowered by the same at the
 *            end, whichever scheduler does it. A spare byte follows the bytes, so that one past the end still names the
 *            store and never its neighbour.
 * Threads    Creation inside a behaviour; the end on any scheduler, also in finalisers and at the end of the run.
 * Cost       A pool block each (above 32 KiB: granules of the arena, under its lock). Bytes start at offset 48 of a
 *            block aligned to 16.
 * Tried      A pool block for the header and another for the bytes: two block operations, and a plain pointer into the
 *            bytes would not lead to the header.
 */
#include "buffers/store.h"

#include "actors/services.h"

_Static_assert(sizeof(struct weir_store) % 16 == 0, "the bytes behind the header are aligned to 16");

static void store_destroy(wr_shared *shared);

static const wr_shared_kind store_kind = {"store", store_destroy};

static void count_bytes(int64_t by)
{
    _Atomic int64_t *counter = &wr_counters_here()->store_bytes;
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + by, memory_order_relaxed);
}

#define SPARE_BYTES 1

static char *bytes_behind(weir_store *store)
{
    return (char *)(store + 1);
}

static void store_destroy(wr_shared *shared)
{
    weir_store *store = WR_CONTAINER(weir_store, shared, shared);
    WR_ASSERT(shared->kind == &store_kind);
    WR_ASSERT(store->length <= WEIR_BUF_MAX);
    size_t block_size = sizeof *store;
    if (store->data == bytes_behind(store))
        block_size += store->length + SPARE_BYTES;
    else if (store->release != NULL)
        store->release(store->data, store->length, store->release_arg);
    count_bytes(-(int64_t)store->length);
    wr_block_give(store, block_size);
}

static int store_begin(size_t block_size, size_t length, weir_store **out)
{
    WR_ASSERT(length <= WEIR_BUF_MAX);
    weir_store *store = wr_block_take(block_size);
    *out = store;
    if (store == NULL)
        return WEIR_ENOMEM;
    size_t charge = length + sizeof *store;
    store->shared.kind = &store_kind;
    atomic_init(&store->shared.count, 1);
    store->shared.size = charge < UINT32_MAX ? (uint32_t)charge : UINT32_MAX;
    store->data = bytes_behind(store);
    store->length = length;
    store->release = NULL;
    store->release_arg = NULL;
    count_bytes((int64_t)length);
    return 0;
}

int wr_store_new(size_t length, weir_store **out)
{
    return store_begin(sizeof **out + length + SPARE_BYTES, length, out);
}

int wr_store_wrap(void *data, size_t length, void (*release)(void *data, size_t length, void *arg), void *arg,
                  weir_store **out)
{
    int code = store_begin(sizeof **out, length, out);
    if (code != 0)
        return code;
    (*out)->data = data;
    (*out)->release = release;
    (*out)->release_arg = arg;
    return 0;
}

bool wr_store_is(const wr_shared *shared)
{
    return shared->kind == &store_kind;
}
