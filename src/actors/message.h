/* SPDX-License-Identifier: MIT */
/* actors/message.h: the envelope of a message.
 *
 * Job        One block of the pool: this header, the message struct (aligned to 16), the bytes behind it.
 * Invariants Each declared handle field of a message under way owns one count on what it names, until receipt moves it
 *            to the receiver's held list. A declared field that lies in the arena names a shared thing: the sender has
 *            checked.
 * Threads    Made by the sender, then the receiver's alone.
 * Cost       A pool block: about 5 ns to take and give.
 */
#ifndef WR_ACTORS_MESSAGE_H
#define WR_ACTORS_MESSAGE_H

#include "memory/pool.h"
#include "platform/check.h"
#include "weir/actor.h"
#include <stdatomic.h>
#include <stdbool.h>

typedef struct wr_message wr_message;

struct wr_message {
    _Atomic(wr_message *) next; /* mailbox link, written once by the producer that follows */
    const weir_behaviour *behaviour;
    /* bytes of the pool block; 0: the stub inside the actor, never given back */
    uint32_t block_size;
    uint32_t tail_size;
    uint64_t unused_; /* keeps the payload aligned to 16 */
};

_Static_assert(sizeof(wr_message) == 32, "the payload must be aligned to 16");

WR_INLINE void *wr_message_payload(wr_message *message)
{
    return message + 1;
}

WR_INLINE const wr_message *wr_message_of_payload(const void *payload)
{
    return (const wr_message *)payload - 1;
}

/* An envelope with room for `size` bytes of payload, NULL when memory is short. */
WR_INLINE wr_message *wr_message_take(wr_pool_cache *pool, const weir_behaviour *behaviour, size_t size,
                                      size_t tail_size)
{
    size_t block_size = sizeof(wr_message) + size + tail_size;
    wr_message *message = wr_pool_take(pool, block_size);
    if (WR_UNLIKELY(message == NULL))
        return NULL;
    message->behaviour = behaviour;
    message->block_size = (uint32_t)block_size;
    message->tail_size = (uint32_t)tail_size;
    return message;
}

WR_INLINE void wr_message_give(wr_pool_cache *pool, wr_message *message)
{
    if (message->block_size != 0)
        wr_pool_give(pool, message, message->block_size);
}

/* The values of the declared handle fields, one after the other: while (wr_field_next(&walk, base, &word)). */
typedef struct wr_field_walk {
    const weir_field *field;
    uint32_t index;
} wr_field_walk;

WR_INLINE bool wr_field_next(wr_field_walk *walk, const void *base, void **out)
{
    while (walk->field != NULL && walk->field->count != 0) {
        if (walk->index < walk->field->count) {
            *out = ((void *const *)(const void *)((const char *)base + walk->field->offset))[walk->index++];
            return true;
        }
        walk->field++;
        walk->index = 0;
    }
    return false;
}

/* Checks the handle fields of a struct about to be sent by `sender` (NULL: nobody) and raises a count for each: 0,
 * WEIR_EOWNED or WEIR_EHANDLE with nothing raised. */
int wr_handles_raise(weir_actor *sender, const void *base, const weir_field *fields);
/* Moves the counts of a received struct to the held list of `receiver`. */
void wr_handles_receive(weir_actor *receiver, const void *base, const weir_field *fields);
/* Gives the counts of a message that nobody will receive back. */
void wr_handles_drop(const void *base, const weir_field *fields);

#endif
