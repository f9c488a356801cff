/* SPDX-License-Identifier: MIT */
/* actors/message.c: sending: what a message may carry, its counts, its way into the mailbox.
 *
 * Job        weir_send_copy and the checks of handle fields.
 * Invariants Either everything is checked, counted and pushed, or nothing has changed. A count is raised only for a
 *            thing the sender holds: never from a guess, never from zero.
 * Threads    Inside behaviours.
 * Cost       A block, a copy, an exchange: about 15 ns; each handle field a look at the held list and an atomic add.
 */
#include "actors/message.h"
#include "actors/scheduler.h"
#include "memory/arena.h"
#include <string.h>

/* 0: nothing to count (NULL or memory that is nobody's); 1: a shared thing the sender holds; else the error. */
static int classify(const weir_actor *sender, const void *word)
{
    if (word == NULL || !wr_arena_holds((uintptr_t)word))
        return 0;
    if (wr_heap_is_heap_word((uintptr_t)word))
        return WEIR_EOWNED;
    if (word == sender && sender->finishing)
        return WEIR_ESHUTDOWN;
    return sender != NULL && wr_held_has(sender, word) ? 1 : WEIR_EHANDLE;
}

int wr_handles_raise(weir_actor *sender, const void *base, const weir_field *fields)
{
    void *word;
    for (wr_field_walk walk = {fields, 0}; wr_field_next(&walk, base, &word);) {
        int kind = classify(sender, word);
        if (kind < 0)
            return kind;
    }
    for (wr_field_walk walk = {fields, 0}; wr_field_next(&walk, base, &word);) {
        if (classify(sender, word) != 1)
            continue;
        WR_ASSERT(wr_pool_block_of((uintptr_t)word) == word);
        wr_shared_raise(word, 1);
    }
    return 0;
}

void wr_handles_receive(weir_actor *receiver, const void *base, const weir_field *fields)
{
    void *word;
    for (wr_field_walk walk = {fields, 0}; wr_field_next(&walk, base, &word);) {
        if (word != NULL && wr_arena_holds((uintptr_t)word))
            wr_held_take(receiver, word);
    }
}

void wr_handles_drop(const void *base, const weir_field *fields)
{
    void *word;
    for (wr_field_walk walk = {fields, 0}; wr_field_next(&walk, base, &word);) {
        if (word != NULL && wr_arena_holds((uintptr_t)word))
            wr_shared_drop(word);
    }
}

#if WR_DEBUG
static bool declared(const weir_field *fields, size_t offset)
{
    for (const weir_field *field = fields; field != NULL && field->count != 0; field++) {
        if (offset >= field->offset && offset < field->offset + (size_t)field->count * sizeof(void *))
            return true;
    }
    return false;
}

/* A handle or object in a field that the behaviour does not name would not be kept alive: tell the programmer where. */
static void check_undeclared(const weir_actor *sender, const weir_behaviour *behaviour, const char *msg)
{
    for (size_t offset = 0; offset + sizeof(void *) <= behaviour->size; offset += sizeof(void *)) {
        void *word;
        memcpy(&word, msg + offset, sizeof word);
        if (word == NULL || declared(behaviour->refs, offset) || !wr_arena_holds((uintptr_t)word))
            continue;
        WR_CHECK(!wr_held_has(sender, word),
                 "message %s carries a handle at offset %zu that WEIR_BEHAVIOUR does not name", behaviour->name,
                 offset);
        WR_CHECK(sender->heap == NULL || !wr_heap_owns(sender->heap, (uintptr_t)word),
                 "message %s carries a pointer to an object of the sender's heap at offset %zu; send values, text or "
                 "handles",
                 behaviour->name, offset);
    }
}
#else
static void check_undeclared(const weir_actor *sender, const weir_behaviour *behaviour, const char *msg)
{
    (void)sender;
    (void)behaviour;
    (void)msg;
}
#endif

int weir_send_copy(weir_ref to, const weir_behaviour *behaviour, const void *msg, const void *tail, size_t tail_size)
{
    wr_scheduler *scheduler = wr_here;
    WR_CHECK(scheduler != NULL && scheduler->actor != NULL, "weir_send(%s) outside a behaviour", behaviour->name);
    weir_actor *receiver = to.actor;
    if (WR_UNLIKELY(receiver == NULL))
        return WEIR_EHANDLE;
    if (WR_UNLIKELY(atomic_load_explicit(&scheduler->runtime->ending, memory_order_relaxed) != 0))
        return WEIR_ESHUTDOWN;
    WR_ASSERT(wr_held_has(scheduler->actor, receiver));
    if (WR_UNLIKELY(receiver == scheduler->actor && receiver->finishing))
        return WEIR_ESHUTDOWN; /* itself, from its finaliser: nobody would receive it */
    WR_CHECK(receiver->type == behaviour->actor, "%s sent to an actor of type %s", behaviour->name,
             receiver->type->name);
    if (WR_UNLIKELY(tail_size > WEIR_MESSAGE_MAX - behaviour->size))
        return WEIR_EMSGSIZE;
    check_undeclared(scheduler->actor, behaviour, msg);
    wr_message *message = wr_message_take(scheduler->pool, behaviour, behaviour->size, tail_size);
    if (WR_UNLIKELY(message == NULL))
        return WEIR_ENOMEM;
    if (behaviour->refs != NULL) {
        int rc = wr_handles_raise(scheduler->actor, msg, behaviour->refs);
        if (WR_UNLIKELY(rc < 0)) {
            wr_message_give(scheduler->pool, message);
            return rc;
        }
    }
    char *payload = wr_message_payload(message);
    WR_ASSERT(((uintptr_t)payload & 15) == 0);
    WR_ASSERT(message->block_size == sizeof(wr_message) + behaviour->size + tail_size);
    if (behaviour->size != 0)
        memcpy(payload, msg, behaviour->size);
    if (tail_size != 0)
        memcpy(payload + behaviour->size, tail, tail_size);
    wr_counter_add(&scheduler->stats.messages, 1);
    wr_actor_push(scheduler, receiver, message);
    return 0;
}

size_t weir_tail_size(const void *msg)
{
    WR_CHECK(wr_here != NULL && wr_here->message != NULL && wr_message_of_payload(msg) == wr_here->message,
             "weir_tail_size is for the message of the behaviour that runs now");
    return wr_here->message->tail_size;
}
