/* SPDX-License-Identifier: MIT */
/* streams/read_block.c: one 64 KiB store per scheduler, into which everything is read that nobody asked to have
 * elsewhere.
 *
 * Job        Give each read room, without an idle connection owning any. What a user keeps becomes a buffer on the
 *            block's store, and reading goes on behind it.
 * Invariants The scheduler has one count on its block, so the block outlives every read. Bytes below `used` may be
 *            reached by actors and are never written again while any of them may hold the block (count > 1).
 * Threads    The scheduler's own. Kept parts are read by whoever holds the store.
 * Cost       A read: two loads. Keeping: an object of 32 bytes, and a place on the held list. A new block every 48 KiB
 *            kept or more.
 */
#include "streams/read_block.h"

#include "actors/held.h"
#include "actors/io.h"
#include "actors/services.h"

#define BLOCK_BYTES 65536u
#define ROOM_MIN 16384u /* with less left a new block is taken: a busy stream needs room */
#define KEPT_ALIGN 64u  /* the next read starts on a line of its own */

/* The first bytes of the store. */
typedef struct block_head {
    size_t used; /* from the start of the store, this head included */
    char unused_[KEPT_ALIGN - sizeof(size_t)];
} block_head;

static block_head *head_of(weir_store *store)
{
    return (block_head *)(void *)store->data;
}

static void release_slot(void *value)
{
    weir_store *store = value;
    wr_shared_drop(&store->shared);
}

static int replace(void **slot)
{
    weir_store *fresh;
    int code = wr_store_new(BLOCK_BYTES - sizeof *fresh - 1, &fresh);
    if (code != 0)
        return code;
    if (*slot != NULL)
        release_slot(*slot);
    else
        wr_scheduler_slot_release(release_slot);
    *slot = fresh;
    head_of(fresh)->used = sizeof(block_head);
    return 0;
}

char *wr_read_block_room(size_t *size)
{
    void **slot = wr_scheduler_slot();
    if (*slot == NULL && replace(slot) != 0)
        return NULL;
    weir_store *store = *slot;
    block_head *head = head_of(store);
    if (head->used > sizeof(block_head)) {
        /* Only this thread raises the count of a block that nobody else holds. */
        if (atomic_load_explicit(&store->shared.count, memory_order_acquire) == 1) {
            head->used = sizeof(block_head);
        } else if (store->length - head->used < ROOM_MIN) {
            if (replace(slot) != 0)
                return NULL;
            store = *slot;
            head = head_of(store);
        }
    }
    *size = store->length - head->used;
    return store->data + head->used;
}

bool wr_read_block_has(const char *start, size_t size)
{
    weir_store *store = *wr_scheduler_slot();
    if (store == NULL || start < store->data)
        return false;
    size_t offset = (size_t)(start - store->data);
    return offset <= store->length && size <= store->length - offset;
}

weir_buf *wr_read_block_keep(const char *start, size_t size)
{
    WR_ASSERT(wr_read_block_has(start, size));
    weir_store *store = *wr_scheduler_slot();
    block_head *head = head_of(store);
    size_t end = (size_t)(start - store->data) + size;
    end = (end + KEPT_ALIGN - 1) / KEPT_ALIGN * KEPT_ALIGN;
    if (end > head->used)
        head->used = end < store->length ? end : store->length;
    wr_shared_raise(&store->shared, 1);
    wr_held_take(wr_current_actor(), &store->shared);
    return wr_buf_of(store, store->data + (start - store->data), size);
}
