/* SPDX-License-Identifier: MIT */
/* kv/string_value.c: strings as values of the table.
 *
 * Job        Small strings live in the shard's heap and are overwritten in place when they fit, so that setting a key
 *            again and again makes no garbage. From KV_LARGE on a string is a buffer on a store, which goes to
 *            clients without a copy.
 * Invariants A text has capacity for its size; one that is much too large for a new value is replaced. Buffers are
 *            never written.
 * Threads    The shard's behaviours.
 */
#include "app.h"
#include "store.h"
#include <string.h>

WEIR_TYPE_DEFINE(text_value);

static text_value *new_text(size_t capacity)
{
    capacity = (capacity + 7) & ~(size_t)7;
    text_value *text = weir_new_sized(text_value, sizeof(text_value) + capacity);
    text->capacity = (uint32_t)capacity;
    return text;
}

/* Replaces the value, whatever it was. */
static void put_value(shard *self, entry *e, value_kind kind, void *value)
{
    int64_t before = store_value_cost(e);
    e->kind = kind;
    e->value = value;
    store_account(self, store_value_cost(e) - before);
}

void store_set_bytes(shard *self, entry *e, const char *bytes, size_t size)
{
    text_value *text = e->kind == VALUE_TEXT ? e->value : NULL;
    if (text == NULL || text->capacity < size || text->capacity > 2 * size + 64) {
        text = new_text(size);
        put_value(self, e, VALUE_TEXT, text);
    }
    if (size > 0)
        memcpy(text->bytes, bytes, size);
    text->size = (uint32_t)size;
}

void store_set_string(shard *self, entry *e, const call *c, size_t arg)
{
    if (c->large != NULL && arg == c->large_index)
        put_value(self, e, VALUE_BUFFER, c->large);
    else
        store_set_bytes(self, e, c->args[arg].bytes, c->args[arg].size);
}

const char *store_string(const entry *e, size_t *size)
{
    if (e->kind == VALUE_BUFFER) {
        *size = weir_buf_length(e->value);
        return weir_buf_data(e->value);
    }
    const text_value *text = e->value;
    *size = text->size;
    return text->bytes;
}

void store_append(shard *self, entry *e, const char *bytes, size_t size)
{
    size_t old_size = 0;
    const char *old = store_string(e, &old_size);
    text_value *text = e->kind == VALUE_TEXT ? e->value : NULL;
    if (text == NULL || text->capacity - text->size < size) {
        size_t wanted = old_size + size;
        text = new_text(wanted < KV_STRING_MAX / 2 ? wanted + wanted / 2 : wanted);
        memcpy(text->bytes, old, old_size);
        text->size = (uint32_t)old_size;
        put_value(self, e, VALUE_TEXT, text);
    }
    if (size > 0)
        memcpy(text->bytes + text->size, bytes, size);
    text->size += (uint32_t)size;
}

void store_answer_string(entry *e, call *c)
{
    size_t size = 0;
    const char *bytes = store_string(e, &size);
    if (e->kind == VALUE_BUFFER)
        answer_buf(c, e->value);
    else
        answer_bulk(c, bytes, size);
}
