/* SPDX-License-Identifier: MIT */
/* kv/replies.c: the ring of slots, and writing answers to the stream in order.
 *
 * Invariants A slot is written when it is the first and ready; then it is gone. Whatever is answered at once while
 *            nothing is outstanding never enters the ring.
 * Cost       An answer in order goes straight to the stream; an early one of up to SLOT_INLINE bytes is kept in its
 *            slot.
 */
#include "app.h"
#include "session.h"
#include <string.h>

WEIR_TYPE_DEFINE(payload, large, bytes);
WEIR_TYPE_DEFINE(slot, answer.large, answer.bytes, gather);

#define SLOTS_FIRST 16
#define SLOTS_KEPT 128
#define SHARED_MIN ((size_t)1 << 20)   /* while a value from this size on waits, all that waits may be */
#define SHARED_MAX ((size_t)256 << 20) /* this much */

uint32_t slots_push(session *self)
{
    if (self->slot_count == self->slot_capacity) {
        uint32_t capacity = self->slot_capacity == 0 ? SLOTS_FIRST : self->slot_capacity * 2;
        slot *slots = weir_new_array(slot, capacity);
        for (uint32_t i = 0; i < self->slot_count; i++)
            slots[(self->first_slot + i) & (capacity - 1)] = *slots_at(self, self->first_slot + i);
        self->slots = slots;
        self->slot_capacity = capacity;
    }
    uint32_t number = self->first_slot + self->slot_count++;
    *slots_at(self, number) = (slot){0};
    if (!self->corked) {
        self->corked = true;
        weir_stream_cork(self->stream);
    }
    return number;
}

slot *slots_at(session *self, uint32_t number)
{
    return &self->slots[number & (self->slot_capacity - 1)];
}

/* Before an answer of `size` bytes: has the client let too much wait, of what is only for it, or in all. The answer
 * itself does not count: one of any size can be fetched. */
static bool too_much_waits(session *self, size_t size, bool is_shared)
{
    size_t queued = weir_stream_queued(self->stream);
    if (self->private_queued > queued)
        self->private_queued = queued;
    if (queued < OUTPUT_MAX / 2)
        self->large_waits = false;
    if (is_shared && size >= SHARED_MIN)
        self->large_waits = true;
    if (self->private_queued > OUTPUT_MAX || queued > (self->large_waits ? SHARED_MAX : OUTPUT_MAX))
        return true;
    self->private_queued += is_shared ? 0 : size;
    return false;
}

void session_end(session *self)
{
    if (self->ended)
        return;
    self->ended = self->deaf = true;
    weir_stream_end(self->stream);
}

static void write_bytes(session *self, const void *bytes, size_t size)
{
    if (!self->ended && weir_stream_write(self->stream, bytes, size) < 0)
        self->deaf = true; /* the stream fails by itself: close comes */
}

/* The answer's text, made of constants or in self->out where it is not there yet. */
static const char *text_of(session *self, const payload *p, size_t *size)
{
    weir_resp_text *out = &self->out;
    switch (p->kind) {
    case ANSWER_TEXT:
    case ANSWER_BULK: *size = p->size; return p->bytes != NULL ? p->bytes : p->small;
    case ANSWER_INTEGER:
        out->size = 0;
        weir_resp_put_integer(out, p->number);
        *size = out->size;
        return out->bytes;
    case ANSWER_NULL: *size = 5; return "$-1\r\n";
    case ANSWER_OK: *size = 5; return "+OK\r\n";
    default: *size = 0; return NULL;
    }
}

static void write_answer(session *self, const payload *p)
{
    size_t size = 0;
    if (p->kind == PAYLOAD_SHUTDOWN) {
        weir_stream_flush(self->stream);
        weir_stop();
        return;
    }
    const char *text = text_of(self, p, &size);
    if (too_much_waits(self, size + (p->large != NULL ? weir_buf_length(p->large) : 0), p->kind == ANSWER_BULK)) {
        self->deaf = self->ended = true;
        weir_stream_close(self->stream);
        return;
    }
    if (size > 0)
        write_bytes(self, text, size);
    if (p->large != NULL && !self->ended && weir_stream_write_buf(self->stream, p->large) < 0)
        self->deaf = true;
    if (p->kind == ANSWER_BULK)
        write_bytes(self, "\r\n", 2);
    if (p->kind == PAYLOAD_END)
        session_end(self);
}

static void write_slot(session *self, const payload *p, const gather *g)
{
    if (p->kind != PAYLOAD_LIST) {
        write_answer(self, p);
        return;
    }
    self->out.size = 0;
    weir_resp_put_array(&self->out, g->count);
    write_bytes(self, self->out.bytes, self->out.size);
    for (uint32_t i = 0; i < g->count; i++)
        write_answer(self, &g->parts[i]);
}

void payload_keep(payload *to, const payload *from)
{
    *to = *from;
    to->bytes = NULL;
    if (from->bytes == NULL)
        return;
    if (from->size <= SLOT_INLINE) {
        memcpy(to->small, from->bytes, from->size);
    } else {
        char *copy = weir_new_bytes(from->size);
        memcpy(copy, from->bytes, from->size);
        to->bytes = copy;
    }
}

/* Forgets the first slot, whose answer has been written. */
static void pop_first(session *self)
{
    slot *s = slots_at(self, self->first_slot);
    self->arguments -= s->cost;
    *s = (slot){0};
    self->first_slot++;
    self->slot_count--;
}

/* Lets what was answered leave: all of it when nothing is outstanding, and what was read together as soon as it is
 * complete. */
static void let_leave(session *self)
{
    if (self->slot_count == 0) {
        self->corked = self->flush_set = false;
        weir_stream_uncork(self->stream);
        if (self->slot_capacity > SLOTS_KEPT) {
            self->slots = NULL;
            self->slot_capacity = 0;
        }
    } else if (self->flush_set && (int32_t)(self->first_slot - self->flush_at) >= 0) {
        self->flush_set = !self->paused; /* what was read after that, if all of it is under way */
        self->flush_at = self->first_slot + self->slot_count;
        weir_stream_flush(self->stream);
    }
}

void slots_settle(session *self, uint32_t number, payload *p)
{
    slot *s = slots_at(self, number);
    if (number != self->first_slot) {
        payload_keep(&s->answer, p);
        s->ready = true;
        return;
    }
    write_slot(self, p, s->gather);
    pop_first(self);
    while (self->slot_count > 0 && (s = slots_at(self, self->first_slot))->ready) {
        write_slot(self, &s->answer, s->gather);
        pop_first(self);
    }
    if (!self->ended)
        let_leave(self);
}

/* ---- answers made here ---- */

static void settle_at_once(session *self, payload *p)
{
    if (self->slot_count == 0)
        write_answer(self, p);
    else
        slots_settle(self, slots_push(self), p);
}

weir_resp_text *session_begin_reply(session *self)
{
    self->out.size = 0;
    return &self->out;
}

void session_reply(session *self)
{
    payload p = {.kind = ANSWER_TEXT, .bytes = self->out.bytes, .size = (uint32_t)self->out.size};
    settle_at_once(self, &p);
    if (self->out.capacity > KV_LARGE)
        self->out = (weir_resp_text){0};
}

void session_reply_error(session *self, const char *message)
{
    weir_resp_put_error(session_begin_reply(self), message);
    session_reply(self);
}

void session_reply_ok(session *self)
{
    session_reply_kind(self, ANSWER_OK);
}

void session_reply_kind(session *self, int kind)
{
    payload p = {.kind = (uint8_t)kind};
    settle_at_once(self, &p);
}
