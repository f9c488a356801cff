/* SPDX-License-Identifier: MIT */
/* kv/list_commands.c: LPUSH RPUSH LPOP RPOP LLEN LRANGE at the shard.
 *
 * Job        Lists are made by the first push and removed with their last element. An answer with many elements is
 *            measured first and then written once, into a store if it is large, so that it goes to the client without
 *            another copy.
 */
#include "app.h"
#include "shard_commands.h"
#include <string.h>

/* The key's list in *out (NULL if there is none); false and the answer if it holds something else. */
static bool find_list(shard *self, call *c, entry **out)
{
    *out = store_find(self, c);
    if (*out == NULL || (*out)->kind == VALUE_LIST)
        return true;
    answer_error(c, ERROR_TYPE);
    return false;
}

static void push(shard *self, call *c, list_end end)
{
    entry *e = NULL;
    bool made = false;
    if (!find_list(self, c, &e))
        return;
    if (e == NULL) {
        e = store_find_or_add(self, c, &made);
        e->kind = VALUE_LIST;
        e->value = list_new();
        store_account(self, store_value_cost(e));
    }
    list *l = e->value;
    int64_t before = list_cost(l);
    for (size_t i = 1; i < c->count; i++)
        list_push(l, end, c->args[i].bytes, c->args[i].size, c->large != NULL && i == c->large_index ? c->large : NULL);
    store_account(self, list_cost(l) - before);
    answer_integer(c, (int64_t)l->count);
}

void list_lpush(shard *self, call *c)
{
    push(self, c, LIST_FRONT);
}

void list_rpush(shard *self, call *c)
{
    push(self, c, LIST_BACK);
}

void list_llen(shard *self, call *c)
{
    entry *e = NULL;
    if (find_list(self, c, &e))
        answer_integer(c, e != NULL ? (int64_t)((list *)e->value)->count : 0);
}

/* ---- answers with many elements ---- */

typedef struct writer {
    size_t size; /* measured */
    char *out;   /* where the next byte goes */
} writer;

static void measure(void *arg, const char *bytes, size_t size)
{
    writer *w = arg;
    char header[32];
    (void)bytes;
    w->size += weir_resp_bulk_header(header, size) + size + 2;
}

static void write_bulk(void *arg, const char *bytes, size_t size)
{
    writer *w = arg;
    char header[32];
    size_t header_size = weir_resp_bulk_header(header, size);
    memcpy(w->out, header, header_size);
    if (size > 0)
        memcpy(w->out + header_size, bytes, size);
    memcpy(w->out + header_size + size, "\r\n", 2);
    w->out += header_size + size + 2;
}

static void to_text(void *arg, const char *bytes, size_t size)
{
    weir_resp_put_bulk(arg, bytes, size);
}

static void answer_elements(call *c, const list *l, uint64_t from, uint64_t count)
{
    writer w = {0};
    weir_resp_put_array(c->text, count);
    c->kind = ANSWER_TEXT;
    list_each(l, from, count, measure, &w);
    if (w.size < KV_LARGE) {
        list_each(l, from, count, to_text, c->text);
        return;
    }
    weir_buf *whole = NULL;
    if (weir_buf_new_store(c->text->size + w.size, &whole) < 0) {
        answer_error(c, ERROR_NO_MEMORY);
        return;
    }
    w.out = weir_buf_data(whole);
    memcpy(w.out, c->text->bytes, c->text->size);
    w.out += c->text->size;
    list_each(l, from, count, write_bulk, &w);
    c->text->size = 0;
    c->kind = ANSWER_STORE;
    c->store = whole;
}

void list_lrange(shard *self, call *c)
{
    entry *e = NULL;
    int64_t from = 0, to = 0;
    if (!arg_integer(&c->args[1], &from) || !arg_integer(&c->args[2], &to)) {
        answer_error(c, ERROR_INTEGER);
        return;
    }
    if (!find_list(self, c, &e))
        return;
    int64_t count = e != NULL ? (int64_t)((list *)e->value)->count : 0;
    from = from < 0 ? (from < -count ? 0 : from + count) : from;
    to = to < 0 ? (to < -count ? -1 : to + count) : to;
    to = to < count ? to : count - 1;
    if (e == NULL || from > to) {
        c->kind = ANSWER_TEXT;
        weir_resp_put_array(c->text, 0);
        return;
    }
    answer_elements(c, e->value, (uint64_t)from, (uint64_t)(to - from + 1));
}

/* ---- pops ---- */

static void drop_elements(shard *self, entry *e, list_end end, uint64_t count)
{
    list *l = e->value;
    int64_t before = list_cost(l);
    if (count == l->count) {
        store_remove(self, e);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        list_drop(l, end);
    store_account(self, list_cost(l) - before);
}

/* Several elements from the back come in the order they are popped: last first. */
static void answer_popped(shard *self, call *c, entry *e, list_end end, uint64_t count)
{
    list *l = e->value;
    if (end == LIST_FRONT) {
        answer_elements(c, l, 0, count);
        drop_elements(self, e, end, count);
        return;
    }
    c->kind = ANSWER_TEXT;
    weir_resp_put_array(c->text, count);
    for (uint64_t i = 0; i < count; i++) {
        list_element element = list_peek(l, end);
        weir_resp_put_bulk(c->text, element.bytes, element.size);
        drop_elements(self, e, end, 1);
    }
}

static void pop(shard *self, call *c, list_end end)
{
    entry *e = NULL;
    int64_t count = 0;
    bool many = c->count == 2;
    if (c->count > 2) {
        answer_error(c, end == LIST_FRONT ? "ERR wrong number of arguments for 'lpop' command"
                                          : "ERR wrong number of arguments for 'rpop' command");
        return;
    }
    if (many && (!arg_integer(&c->args[1], &count) || count < 0)) {
        answer_error(c, "ERR value is out of range, must be positive");
        return;
    }
    if (!find_list(self, c, &e))
        return;
    if (e == NULL && !many) {
        answer_null(c);
    } else if (e == NULL) {
        c->kind = ANSWER_TEXT;
        weir_resp_put_null_array(c->text);
    } else if (!many) {
        list_element element = list_peek(e->value, end);
        answer_bulk(c, element.bytes, element.size);
        drop_elements(self, e, end, 1);
    } else {
        uint64_t there = ((list *)e->value)->count;
        answer_popped(self, c, e, end, (uint64_t)count < there ? (uint64_t)count : there);
    }
}

void list_lpop(shard *self, call *c)
{
    pop(self, c, LIST_FRONT);
}

void list_rpop(shard *self, call *c)
{
    pop(self, c, LIST_BACK);
}
