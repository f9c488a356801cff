/* SPDX-License-Identifier: MIT */
/* kv/shard.c: the shard as an actor: a request in, an answer out.
 *
 * Job        Unpack the arguments, refuse what needs memory above the limit, carry out the command, send the answer.
 * Invariants Exactly one answer a request, also when memory is short.
 * Cost       Nothing is allocated for commands with few arguments and small answers.
 */
#include "app.h"
#include "commands.h"
#include <string.h>

WEIR_ACTOR_DEFINE(shard, buckets, text.bytes);

#define FEW_ARGS 8
#define KEEP_TEXT ((size_t)64 << 10)

static void unpack(const request *msg, call *c, weir_resp_arg *args)
{
    const char *sizes = weir_tail(msg);
    const char *bytes = sizes + msg->count * sizeof(uint32_t);
    for (uint32_t i = 0; i < msg->count; i++) {
        uint32_t size;
        memcpy(&size, sizes + i * sizeof(size), sizeof(size));
        if (c->large != NULL && i == msg->large_index) {
            args[i] = (weir_resp_arg){weir_buf_data(c->large), weir_buf_length(c->large)};
            continue;
        }
        args[i] = (weir_resp_arg){bytes, size};
        bytes += size;
    }
    c->args = args;
}

static void send_answer(const request *msg, const call *c)
{
    answer a = {.slot = msg->slot, .part = msg->part, .kind = c->kind, .number = c->number, .second = c->second};
    if (c->kind == ANSWER_BULK || c->kind == ANSWER_STORE) {
        a.large = weir_buf_store(c->store);
        a.large_offset = weir_buf_store_offset(c->store);
        a.large_size = weir_buf_length(c->store);
    }
    bool with_text = c->kind == ANSWER_TEXT || c->kind == ANSWER_BULK;
    int rc = weir_send_copy(weir_any(session, msg->session), &session_answer_weir, &a, c->text->bytes,
                            with_text ? c->text->size : 0);
    if (rc == WEIR_ENOMEM || rc == WEIR_EMSGSIZE) {
        static const char sorry[] = "-" ERROR_NO_MEMORY "\r\n";
        weir_send_tail(msg->session, session, sorry, sizeof(sorry) - 1, answer, .slot = msg->slot, .part = msg->part,
                       .kind = ANSWER_TEXT);
    }
}

/* Above the limit each attempt looks for keys that have expired: writes alone would come across them, and are refused.
 */
static bool has_memory(shard *self, call *c)
{
    if (!app_memory_is_short())
        return true;
    store_sweep_some(self, c);
    return !app_memory_is_short();
}

WEIR_BEHAVIOUR(shard, request, session, large)
{
    weir_resp_arg few[FEW_ARGS];
    const command *row = &command_table[msg->command];
    call c = {
        .command = row, .count = msg->count, .hash = msg->hash, .large_index = msg->large_index, .text = &self->text};
    self->text.size = 0;
    if (msg->large != NULL && weir_buf_of_store(msg->large, msg->large_offset, msg->large_size, &c.large) < 0) {
        answer_error(&c, ERROR_NO_MEMORY);
    } else if ((row->flags & COMMAND_DENYOOM) && row->routing == ROUTE_KEY && !has_memory(self, &c)) {
        answer_error(&c, ERROR_MEMORY);
    } else {
        unpack(msg, &c, msg->count <= FEW_ARGS ? few : weir_new_bytes(msg->count * sizeof(weir_resp_arg)));
        row->at_shard(self, &c);
        if (row->flags & COMMAND_WRITE)
            store_sweep_some(self, &c);
    }
    send_answer(msg, &c);
    if (self->text.capacity > KEEP_TEXT)
        self->text = (weir_resp_text){0};
}
