/* SPDX-License-Identifier: MIT */
/* kv/dispatch.c: commands on their way from a session to the shards.
 *
 * Job        Finds the key's shard, packs the arguments into one message, and takes a slot for the answer.
 * Invariants One slot a command; one answer for each request, be it that the message could not be sent.
 * Cost       Small arguments are copied twice (packed, then into the message). One large argument a request is not:
 *            it is handed over as part of the store it was read into, or copied once into a store of its size.
 */
#include "app.h"
#include "hash.h"
#include "session.h"
#include <string.h>

#define KEEP_PACK ((size_t)64 << 10)
#define SIZE sizeof(uint32_t)

/* The bytes of a large argument as part of a store. Where most of the input buffer is this argument, the buffer is
 * given away. */
static weir_buf *as_store(session *self, const weir_resp_arg *arg)
{
    weir_buf *buf = NULL;
    if (self->input != NULL) {
        const char *start = weir_buf_data(self->input);
        size_t length = weir_buf_length(self->input);
        if (arg->bytes >= start && arg->bytes < start + length && arg->size >= length / 2) {
            if (weir_buf_slice(self->input, (size_t)(arg->bytes - start), arg->size, &buf) < 0)
                return NULL;
            self->input_is_shared = true;
            return buf;
        }
    }
    if (weir_buf_new_store(arg->size, &buf) == 0)
        memcpy(weir_buf_data(buf), arg->bytes, arg->size);
    return buf;
}

/* The first large argument behind the key; `count` if there is none. */
static size_t large_of(const weir_resp_arg *args, size_t count)
{
    size_t i = 1;
    while (i < count && args[i].size < KV_LARGE)
        i++;
    return i < count ? i : count;
}

/* Packs args into self->pack: sizes, then bytes, without argument `left_out`. */
static void pack(session *self, const weir_resp_arg *args, size_t count, size_t left_out)
{
    self->pack.size = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t size = i == left_out ? 0 : (uint32_t)args[i].size;
        weir_resp_put(&self->pack, &size, SIZE);
    }
    for (size_t i = 0; i < count; i++) {
        if (i != left_out)
            weir_resp_put(&self->pack, args[i].bytes, args[i].size);
    }
}

/* The shard's answer when it cannot be asked. */
static void answer_for_shard(session *self, uint32_t number, uint32_t part, const char *message)
{
    gather *g = slots_at(self, number)->gather;
    weir_resp_put_error(session_begin_reply(self), message);
    payload p = {.kind = ANSWER_TEXT, .bytes = self->out.bytes, .size = (uint32_t)self->out.size};
    if (g != NULL) {
        gather_add(g, part, &p, 0);
        if (g->left > 0)
            return;
        p = gather_result(self, g);
    }
    slots_settle(self, number, &p);
}

static void send_request(session *self, shard_ref to, request *r, const weir_resp_arg *args, size_t count)
{
    weir_buf *large = NULL;
    size_t large_index = large_of(args, count);
    if (large_index < count) {
        large = as_store(self, &args[large_index]);
        if (large == NULL) {
            answer_for_shard(self, r->slot, r->part, ERROR_NO_MEMORY);
            return;
        }
        r->large = weir_buf_store(large);
        r->large_offset = weir_buf_store_offset(large);
        r->large_size = args[large_index].size;
    }
    r->session = weir_self(session);
    r->count = (uint32_t)count;
    r->large_index = (uint32_t)large_index;
    pack(self, args, count, large_index);
    int rc = weir_send_copy(weir_any(shard, to), &shard_request_weir, r, self->pack.bytes, self->pack.size);
    if (rc < 0)
        answer_for_shard(self, r->slot, r->part,
                         rc == WEIR_EMSGSIZE ? "ERR the command is too large" : ERROR_NO_MEMORY);
    if (self->pack.capacity > KEEP_PACK)
        self->pack = (weir_resp_text){0};
}

static void send_to_key(session *self, request *r, const weir_resp_arg *args, size_t count)
{
    r->hash = hash_bytes(app.seed, args[0].bytes, args[0].size);
    send_request(self, self->shards[(r->hash >> 32) % app.shards], r, args, count);
}

/* A slot for a command with these arguments. */
static uint32_t new_slot(session *self, const weir_resp_arg *args, size_t count, gather *g)
{
    uint32_t number = slots_push(self);
    slot *s = slots_at(self, number);
    size_t cost = 0;
    for (size_t i = 0; i < count; i++)
        cost += args[i].size;
    s->cost = cost < UINT32_MAX ? (uint32_t)cost : UINT32_MAX;
    s->gather = g;
    self->arguments += s->cost;
    return number;
}

void session_send(session *self, const command *c, const weir_resp_arg *args, size_t count)
{
    request r = {.command = command_index(c), .slot = new_slot(self, args, count, NULL)};
    send_to_key(self, &r, args + 1, count - 1);
}

void session_send_each(session *self, const command *c, const weir_resp_arg *args, size_t count)
{
    size_t step = (size_t)c->key_step, parts = (count - 1) / step;
    if ((c->flags & COMMAND_DENYOOM) &&
        app_memory_is_short()) { /* before the first part, so that all or nothing is done */
        session_reply_error(self, ERROR_MEMORY);
        return;
    }
    uint32_t number = new_slot(self, args, count, gather_new(c->gather, parts));
    for (size_t i = 0; i < parts; i++) {
        request r = {.command = command_index(c), .slot = number, .part = (uint32_t)i};
        send_to_key(self, &r, args + 1 + i * step, step);
    }
}

void session_send_all(session *self, size_t row, gather_kind kind, char *section)
{
    gather *g = gather_new(kind, app.shards);
    g->section = section;
    uint32_t number = new_slot(self, NULL, 0, g);
    for (unsigned i = 0; i < app.shards; i++) {
        request r = {.command = (uint32_t)row, .slot = number, .part = i};
        send_request(self, self->shards[i], &r, NULL, 0);
    }
}
