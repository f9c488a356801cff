/* SPDX-License-Identifier: MIT */
/* streams/write_queue.c: see write_queue.h.
 *
 * Job        Keep what was written and not yet sent: small pieces copied into tail blocks, large buffers referenced.
 * Invariants Pieces leave in the order they came. A referenced buffer is reachable through the ring until its last byte
 *            is out; `bytes` is the sum of what the pieces still hold.
 * Threads    The stream's owner.
 * Cost       A small write: a copy. A large one: an entry in the ring. Sending: one system call for up to
 *            WR_SLICES_MAX pieces.
 *
 * Blocks     4 KiB for the first, 16 KiB while more is queued, 32 KiB inside one large write. They come from the pool,
 *            not from the actor's heap: a server's whole output passes through them, and as heap objects they would
 *            make it collect once a megabyte sent. A block whose bytes are out is given back, or used again from its
 *            start if it is the only one: an empty queue owns no block.
 * Tried      Blocks as heap bytes: needed no finaliser, but see above. One piece a write and no joining: 24 ns a small
 *            write instead of 7.
 */
#include "streams/write_queue.h"

#include "actors/services.h"
#include "platform/check.h"

#include <string.h>

#define BLOCK_FIRST 4096u
#define BLOCK_MORE 16384u
#define BLOCK_LARGE 32768u
#define RING_FIRST 16u
#define RING_KEPT 64u /* a larger ring is left to the collector once the queue is empty */

struct wr_tail_block {
    wr_tail_block *next;
    uint32_t size; /* of the whole block */
    uint32_t used; /* bytes filled */
    uint32_t sent; /* bytes of these that are out */
    uint32_t unused_;
    char bytes[];
};

_Static_assert(sizeof(wr_tail_block) == 24, "no padding before the bytes");

static const weir_field piece_fields[] = {{offsetof(wr_piece, keep), 1}, {0, 0}};
static const weir_type piece_type = {"write_queue.piece", sizeof(wr_piece), _Alignof(wr_piece), 0, piece_fields, NULL};

static wr_piece *piece_at(const wr_write_queue *queue, uint32_t i)
{
    WR_ASSERT(i < queue->count);
    if (queue->ring == NULL)
        return (wr_piece *)(uintptr_t)&queue->few[(queue->head + i) % WR_QUEUE_FEW];
    return &queue->ring[(queue->head + i) & (queue->capacity - 1)];
}

static void grow(wr_write_queue *queue)
{
    uint32_t capacity = queue->ring == NULL ? RING_FIRST : queue->capacity * 2;
    wr_piece *ring = weir_alloc_array(&piece_type, capacity);
    for (uint32_t i = 0; i < queue->count; i++)
        ring[i] = *piece_at(queue, i);
    memset(queue->few, 0, sizeof queue->few);
    queue->ring = ring;
    queue->capacity = capacity;
    queue->head = 0;
}

static void append(wr_write_queue *queue, wr_piece piece)
{
    WR_ASSERT(piece.size > 0);
    uint32_t room = queue->ring == NULL ? WR_QUEUE_FEW : queue->capacity;
    if (queue->count == room)
        grow(queue);
    queue->count++;
    *piece_at(queue, queue->count - 1) = piece;
    queue->bytes += piece.size;
}

static size_t block_room(const wr_tail_block *block)
{
    return block == NULL ? 0 : block->size - sizeof *block - block->used;
}

static wr_tail_block *block_new(uint32_t size)
{
    wr_tail_block *block = wr_block_take(size);
    if (block != NULL)
        *block = (wr_tail_block){.size = size};
    return block;
}

static void give_blocks(wr_tail_block *block)
{
    while (block != NULL) {
        wr_tail_block *next = block->next;
        wr_block_give(block, block->size);
        block = next;
    }
}

/* Fresh blocks, linked, with room for `size` bytes in all; NULL when memory is short. */
static wr_tail_block *blocks_for(const wr_write_queue *queue, size_t size)
{
    wr_tail_block *first = NULL, **link = &first;
    uint32_t block_size = queue->first == NULL ? BLOCK_FIRST : BLOCK_MORE;
    while (size > 0) {
        if (size > block_size - sizeof *first)
            block_size = size > BLOCK_MORE - sizeof *first ? BLOCK_LARGE : BLOCK_MORE;
        *link = block_new(block_size);
        if (*link == NULL) {
            give_blocks(first);
            return NULL;
        }
        size_t room = block_room(*link);
        size -= size < room ? size : room;
        link = &(*link)->next;
        block_size = BLOCK_MORE;
    }
    return first;
}

/* Copies what fits behind the bytes of `block` and makes it a piece, or part of the last one. */
static size_t fill(wr_write_queue *queue, wr_tail_block *block, const char *bytes, size_t size)
{
    size_t room = block_room(block);
    size_t n = size < room ? size : room;
    if (n == 0)
        return 0;
    char *to = block->bytes + block->used;
    memcpy(to, bytes, n);
    block->used += (uint32_t)n;
    wr_piece *last = queue->count > 0 ? piece_at(queue, queue->count - 1) : NULL;
    if (last != NULL && last->keep == NULL && last->base + last->size == to) {
        last->size += n;
        queue->bytes += n;
    } else {
        append(queue, (wr_piece){to, n, NULL});
    }
    return n;
}

int wr_queue_copy(wr_write_queue *queue, const void *bytes, size_t size)
{
    WR_ASSERT(size > 0);
    size_t room = block_room(queue->last);
    wr_tail_block *more = NULL;
    if (size > room) {
        more = blocks_for(queue, size - room);
        if (more == NULL)
            return WEIR_ENOMEM;
    }
    const char *from = bytes;
    if (room > 0)
        from += fill(queue, queue->last, from, size);
    for (wr_tail_block *block = more; block != NULL; block = block->next) {
        if (queue->last == NULL)
            queue->first = block;
        else
            queue->last->next = block;
        queue->last = block;
        from += fill(queue, block, from, size - (size_t)(from - (const char *)bytes));
    }
    WR_ASSERT(from == (const char *)bytes + size);
    return 0;
}

void wr_queue_reference(wr_write_queue *queue, char *base, size_t size, void *keep)
{
    WR_ASSERT(keep != NULL);
    append(queue, (wr_piece){base, size, keep});
}

unsigned wr_queue_slices(const wr_write_queue *queue, wr_slice *out, unsigned max, size_t *total)
{
    unsigned count = queue->count < max ? queue->count : max;
    size_t bytes = 0;
    for (unsigned i = 0; i < count; i++) {
        const wr_piece *piece = piece_at(queue, i);
        out[i] = (wr_slice){piece->base, piece->size};
        bytes += piece->size;
    }
    *total = bytes;
    return count;
}

/* `size` copied bytes, the oldest, are out: they are in the first block. */
static void consume_copied(wr_write_queue *queue, size_t size)
{
    wr_tail_block *block = queue->first;
    WR_ASSERT(block != NULL && size <= block->used - block->sent);
    block->sent += (uint32_t)size;
    if (block->sent < block->used)
        return;
    if (block == queue->last) {
        block->used = block->sent = 0;
        return;
    }
    queue->first = block->next;
    wr_block_give(block, block->size);
}

void wr_queue_consume(wr_write_queue *queue, size_t size)
{
    WR_ASSERT(size <= queue->bytes);
    queue->bytes -= size;
    while (size > 0) {
        wr_piece *piece = piece_at(queue, 0);
        size_t n = size < piece->size ? size : piece->size;
        piece->base += n;
        piece->size -= n;
        size -= n;
        if (piece->keep == NULL)
            consume_copied(queue, n);
        if (piece->size == 0) {
            *piece = (wr_piece){0};
            queue->head++;
            queue->count--;
        }
    }
    if (queue->bytes == 0)
        wr_queue_clear(queue);
}

void wr_queue_clear(wr_write_queue *queue)
{
    give_blocks(queue->first);
    queue->first = queue->last = NULL;
    while (queue->count > 0) {
        *piece_at(queue, 0) = (wr_piece){0};
        queue->head++;
        queue->count--;
    }
    queue->head = 0;
    queue->bytes = 0;
    if (queue->capacity > RING_KEPT) {
        queue->ring = NULL;
        queue->capacity = 0;
    }
}

void wr_queue_check(const wr_write_queue *queue)
{
    size_t bytes = 0, copied = 0, unsent = 0;
    for (uint32_t i = 0; i < queue->count; i++) {
        const wr_piece *piece = piece_at(queue, i);
        WR_CHECK(piece->size > 0 && piece->base != NULL, "piece %u of %u is empty", i, queue->count);
        bytes += piece->size;
        copied += piece->keep == NULL ? piece->size : 0;
    }
    for (const wr_tail_block *block = queue->first; block != NULL; block = block->next) {
        WR_CHECK(block->sent <= block->used && block->used <= block->size - sizeof *block, "a tail block is overfull");
        WR_CHECK((block->next == NULL) == (block == queue->last), "the list of tail blocks is broken");
        unsent += block->used - block->sent;
    }
    WR_CHECK(bytes == queue->bytes, "%zu bytes in pieces, %zu counted", bytes, queue->bytes);
    WR_CHECK(copied == unsent, "%zu copied bytes in pieces, %zu in blocks", copied, unsent);
    WR_CHECK(queue->bytes > 0 || (queue->count == 0 && queue->first == NULL), "an empty queue owns something");
}
