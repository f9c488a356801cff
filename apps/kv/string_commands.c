/* SPDX-License-Identifier: MIT */
/* kv/string_commands.c: SET GET MSET MGET INCR DECR INCRBY DECRBY APPEND STRLEN at the shard. */
#include "app.h"
#include "shard_commands.h"
#include <string.h>

#define ERROR_OVERFLOW "ERR increment or decrement would overflow"

/* The key's string in *out (NULL if there is none); false and the answer if it holds something else. */
static bool find_string(shard *self, call *c, entry **out)
{
    *out = store_find(self, c);
    if (*out == NULL || (*out)->kind != VALUE_LIST)
        return true;
    answer_error(c, ERROR_TYPE);
    return false;
}

void string_get(shard *self, call *c)
{
    entry *e = NULL;
    if (!find_string(self, c, &e))
        return;
    if (e == NULL)
        answer_null(c);
    else
        store_answer_string(e, c);
}

void string_mget_part(shard *self, call *c)
{
    entry *e = store_find(self, c);
    if (e == NULL || e->kind == VALUE_LIST)
        answer_null(c);
    else
        store_answer_string(e, c);
}

void string_strlen(shard *self, call *c)
{
    entry *e = NULL;
    size_t size = 0;
    if (!find_string(self, c, &e))
        return;
    if (e != NULL)
        store_string(e, &size);
    answer_integer(c, (int64_t)size);
}

/* ---- SET ---- */

typedef struct set_options {
    bool nx, xx, get, keep_ttl, ex, px;
    const weir_resp_arg *time;
} set_options;

static bool read_set_options(const call *c, set_options *o)
{
    for (size_t i = 2; i < c->count; i++) {
        const weir_resp_arg *word = &c->args[i];
        if (arg_is(word, "nx") && !o->xx)
            o->nx = true;
        else if (arg_is(word, "xx") && !o->nx)
            o->xx = true;
        else if (arg_is(word, "get"))
            o->get = true;
        else if (arg_is(word, "keepttl") && !o->ex && !o->px)
            o->keep_ttl = true;
        else if (arg_is(word, "ex") && !o->keep_ttl && !o->px && i + 1 < c->count)
            o->ex = true, o->time = &c->args[++i];
        else if (arg_is(word, "px") && !o->keep_ttl && !o->ex && i + 1 < c->count)
            o->px = true, o->time = &c->args[++i];
        else
            return false;
    }
    return true;
}

/* When the key shall expire; false and the answer if the option's value makes no sense. */
static bool read_expiry(call *c, const set_options *o, int64_t *expires_ms)
{
    int64_t time = 0;
    *expires_ms = 0;
    if (o->time == NULL)
        return true;
    if (!arg_integer(o->time, &time)) {
        answer_error(c, ERROR_INTEGER);
        return false;
    }
    if (time <= 0 || (o->ex && MUL_OVERFLOWS(time, 1000, &time)) || ADD_OVERFLOWS(time, call_now(c), expires_ms)) {
        answer_error(c, "ERR invalid expire time in 'set' command");
        return false;
    }
    return true;
}

void string_set(shard *self, call *c)
{
    set_options o = {0};
    int64_t expires_ms = 0;
    if (c->count > 2 && !read_set_options(c, &o)) {
        answer_error(c, ERROR_SYNTAX);
        return;
    }
    if (!read_expiry(c, &o, &expires_ms))
        return;
    entry *e = store_find(self, c);
    answer_ok(c);
    if (o.get) {
        if (e != NULL && e->kind == VALUE_LIST) {
            answer_error(c, ERROR_TYPE);
            return;
        }
        if (e != NULL)
            store_answer_string(e, c);
        else
            answer_null(c);
    }
    if ((o.nx && e != NULL) || (o.xx && e == NULL)) {
        if (!o.get)
            answer_null(c);
        return;
    }
    bool made = false;
    if (e == NULL)
        e = store_find_or_add(self, c, &made);
    store_set_string(self, e, c, 1);
    if (!o.keep_ttl)
        store_set_expiry(self, e, expires_ms);
}

void string_mset_part(shard *self, call *c)
{
    bool made = false;
    entry *e = store_find_or_add(self, c, &made);
    store_set_string(self, e, c, 1);
    store_set_expiry(self, e, 0);
    answer_ok(c);
}

/* ---- counters ---- */

static size_t write_integer(char out[24], int64_t value)
{
    char reversed[24];
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    size_t digits = 0, size = 0;
    do {
        reversed[digits++] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0)
        out[size++] = '-';
    while (digits > 0)
        out[size++] = reversed[--digits];
    return size;
}

static void add_to(shard *self, call *c, int64_t by)
{
    entry *e = NULL;
    int64_t value = 0;
    if (!find_string(self, c, &e))
        return;
    if (e != NULL) {
        weir_resp_arg text = {0};
        text.bytes = store_string(e, &text.size);
        if (!arg_integer(&text, &value)) {
            answer_error(c, ERROR_INTEGER);
            return;
        }
    }
    if (ADD_OVERFLOWS(value, by, &value)) {
        answer_error(c, ERROR_OVERFLOW);
        return;
    }
    bool made = false;
    char digits[24];
    if (e == NULL)
        e = store_find_or_add(self, c, &made);
    store_set_bytes(self, e, digits, write_integer(digits, value));
    answer_integer(c, value);
}

void string_incr(shard *self, call *c)
{
    add_to(self, c, 1);
}

void string_decr(shard *self, call *c)
{
    add_to(self, c, -1);
}

void string_incrby(shard *self, call *c)
{
    int64_t by = 0;
    if (arg_integer(&c->args[1], &by))
        add_to(self, c, by);
    else
        answer_error(c, ERROR_INTEGER);
}

void string_decrby(shard *self, call *c)
{
    int64_t by = 0;
    if (!arg_integer(&c->args[1], &by))
        answer_error(c, ERROR_INTEGER);
    else if (by == INT64_MIN)
        answer_error(c, "ERR decrement would overflow");
    else
        add_to(self, c, -by);
}

/* ---- APPEND ---- */

void string_append(shard *self, call *c)
{
    entry *e = NULL;
    bool made = false;
    size_t size = 0;
    if (!find_string(self, c, &e))
        return;
    if (e == NULL) {
        e = store_find_or_add(self, c, &made);
        store_set_string(self, e, c, 1);
    } else {
        store_string(e, &size);
        if (size + c->args[1].size > KV_STRING_MAX) {
            answer_error(c, "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
            return;
        }
        store_append(self, e, c->args[1].bytes, c->args[1].size);
    }
    store_string(e, &size);
    answer_integer(c, (int64_t)size);
}
