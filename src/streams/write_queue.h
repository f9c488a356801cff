/* SPDX-License-Identifier: MIT */
/* streams/write_queue.h: bytes that wait to be sent, as few pieces as can be.
 *
 * Job        Keep what a stream has been given in order: small writes copied one behind the other into tail blocks
 *            (neighbours become one piece), large buffers by reference. Hand out slices for a vectored call, drop what
 *            the system took.
 * Invariants bytes == sum of the sizes of the pieces; no piece is empty; bytes == 0 means: no piece and no block.
 *            Copied pieces lie in the blocks in queue order, so the first block always holds the oldest copied bytes.
 *            A referenced piece names its buffer (`keep`), so that the collector finds it; a copied piece names none.
 * Threads    The owner's scheduler; clear also in a finaliser.
 * Cost       Copying: a memcpy and some 5 ns. A reference: about 10 ns, and a slice in the call.
 */
#ifndef WR_STREAMS_WRITE_QUEUE_H
#define WR_STREAMS_WRITE_QUEUE_H

#include "platform/os.h"
#include "weir/heap.h"

#define WR_QUEUE_FEW 2        /* pieces that need no memory of their own: copied bytes are mostly one piece */
#define WR_QUEUE_COPY_MAX 512 /* up to here copying is cheaper than a slice (docs/internals/streams.md) */

typedef struct wr_piece {
    char *base;
    size_t size;
    void *keep; /* the buffer that owns the bytes; NULL: a tail block of the queue does */
} wr_piece;

typedef struct wr_tail_block wr_tail_block;

typedef struct wr_write_queue {
    wr_piece few[WR_QUEUE_FEW];
    wr_piece *ring;    /* in the heap; NULL: `few` is used */
    uint32_t capacity; /* of `ring`, a power of two */
    uint32_t head, count;
    size_t bytes;
    wr_tail_block *first, *last;
} wr_write_queue;

/* What the collector has to know of a queue at byte `at` of a struct: WR_QUEUE_FIELDS(offsetof(T, queue)), followed by
 * more fields or the end. */
#define WR_QUEUE_FIELDS(at) \
    {(uint32_t)((at) + offsetof(wr_write_queue, few[0].keep)), 1}, \
        {(uint32_t)((at) + offsetof(wr_write_queue, few[1].keep)), 1}, \
    { \
        (uint32_t)((at) + offsetof(wr_write_queue, ring)), 1 \
    }

/* Zeroed memory is an empty queue. `size` > 0. 0, or WEIR_ENOMEM and nothing was queued. */
int wr_queue_copy(wr_write_queue *queue, const void *bytes, size_t size);
void wr_queue_reference(wr_write_queue *queue, char *base, size_t size, void *keep);
/* The oldest pieces, at most `max`. Returns how many; their bytes in *total. */
unsigned wr_queue_slices(const wr_write_queue *queue, wr_slice *out, unsigned max, size_t *total);
/* The oldest `size` bytes are out. */
void wr_queue_consume(wr_write_queue *queue, size_t size);
void wr_queue_clear(wr_write_queue *queue);
/* Walks everything; trips an assertion where an invariant is broken. */
void wr_queue_check(const wr_write_queue *queue);

#endif
