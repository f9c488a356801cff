/* SPDX-License-Identifier: MIT */
/* kv/key_commands.c: DEL EXISTS EXPIRE TTL PTTL PERSIST TYPE, and a shard's part of DBSIZE, INFO and FLUSHALL. */
#include "app.h"
#include "shard_commands.h"
#include <stdio.h>

void key_del_part(shard *self, call *c)
{
    entry *e = store_find(self, c);
    if (e != NULL)
        store_remove(self, e);
    answer_integer(c, e != NULL);
}

void key_exists_part(shard *self, call *c)
{
    answer_integer(c, store_find(self, c) != NULL);
}

void key_type(shard *self, call *c)
{
    entry *e = store_find(self, c);
    c->kind = ANSWER_TEXT;
    weir_resp_put_simple(c->text, e == NULL ? "none" : e->kind == VALUE_LIST ? "list" : "string");
}

static void time_left(shard *self, call *c, int64_t unit_ms)
{
    entry *e = store_find(self, c);
    if (e == NULL)
        answer_integer(c, -2);
    else if (e->expires_ms == 0)
        answer_integer(c, -1);
    else
        answer_integer(c, (e->expires_ms - call_now(c) + unit_ms / 2) / unit_ms);
}

void key_ttl(shard *self, call *c)
{
    time_left(self, c, 1000);
}

void key_pttl(shard *self, call *c)
{
    time_left(self, c, 1);
}

void key_persist(shard *self, call *c)
{
    entry *e = store_find(self, c);
    bool had = e != NULL && e->expires_ms != 0;
    if (had)
        store_set_expiry(self, e, 0);
    answer_integer(c, had);
}

/* ---- EXPIRE ---- */

typedef struct expire_options {
    bool nx, xx, gt, lt;
} expire_options;

static bool read_expire_options(call *c, expire_options *o)
{
    for (size_t i = 2; i < c->count; i++) {
        const weir_resp_arg *word = &c->args[i];
        if (arg_is(word, "nx")) {
            o->nx = true;
        } else if (arg_is(word, "xx")) {
            o->xx = true;
        } else if (arg_is(word, "gt")) {
            o->gt = true;
        } else if (arg_is(word, "lt")) {
            o->lt = true;
        } else {
            char message[192];
            snprintf(message, sizeof(message), "ERR Unsupported option %.*s", word->size < 128 ? (int)word->size : 128,
                     word->bytes);
            answer_error(c, message);
            return false;
        }
    }
    if (o->nx && (o->xx || o->gt || o->lt))
        answer_error(c, "ERR NX and XX, GT or LT options at the same time are not compatible");
    else if (o->gt && o->lt)
        answer_error(c, "ERR GT and LT options at the same time are not compatible");
    else
        return true;
    return false;
}

/* Does a key whose time is `now` (0: none, which counts as endless) get the time `when`. */
static bool allowed_by(const expire_options *o, int64_t now, int64_t when)
{
    if ((o->nx && now != 0) || (o->xx && now == 0))
        return false;
    if (o->gt && (now == 0 || when <= now))
        return false;
    return !o->lt || now == 0 || when < now;
}

void key_expire(shard *self, call *c)
{
    expire_options o = {0};
    int64_t when = 0;
    if (!read_expire_options(c, &o))
        return;
    if (!arg_integer(&c->args[1], &when)) {
        answer_error(c, ERROR_INTEGER);
        return;
    }
    if (MUL_OVERFLOWS(when, 1000, &when) || ADD_OVERFLOWS(when, call_now(c), &when)) {
        answer_error(c, "ERR invalid expire time in 'expire' command");
        return;
    }
    entry *e = store_find(self, c);
    if (e == NULL || !allowed_by(&o, e->expires_ms, when)) {
        answer_integer(c, 0);
        return;
    }
    if (when <= call_now(c))
        store_remove(self, e);
    else
        store_set_expiry(self, e, when);
    answer_integer(c, 1);
}

/* ---- all keys of a shard ---- */

void key_count(shard *self, call *c)
{
    answer_integer(c, (int64_t)self->count);
    c->second = (int64_t)self->expiring;
}

void key_flush(shard *self, call *c)
{
    store_clear(self);
    answer_ok(c);
}
