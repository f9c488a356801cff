/* SPDX-License-Identifier: MIT */
/* protocols/resp_reply.c: replies out of a growing input, as a client receives them.
 *
 * Job        List the elements of one reply in reading order, pointing into the input; a caller with an incomplete
 *            one comes back with the same bytes and more.
 * Invariants As for commands (resp_parse.c): independent of the cuts, no byte twice, memory by what has arrived.
 *            Nesting is a counter a level, not recursion, and bounded by WEIR_RESP_DEPTH_MAX.
 * Threads    Inside a behaviour; the state is an object of the actor's heap.
 * Cost       About 15 ns an element; the array of values is reused from reply to reply.
 */
#include "platform/check.h"
#include "protocols/resp_line.h"
#include "protocols/resp_number.h"
#include "weir/heap.h"
#include "weir/resp.h"
#include <string.h>

#define VALUES_FIRST 8
#define KEEP_CAPACITY 4096

struct weir_resp_replies {
    weir_resp_value *values; /* while incomplete, `integer` of one with bytes holds their offset */
    weir_resp_limits limits; /* filled in */
    size_t at, line, need;
    size_t count, capacity;
    size_t bulk_size;                  /* with its line end; 0: a line comes next */
    uint32_t depth;                    /* arrays that are open */
    int64_t left[WEIR_RESP_DEPTH_MAX]; /* elements still to come in each */
};
WEIR_TYPE(weir_resp_replies, values);

weir_resp_replies *weir_resp_replies_new(const weir_resp_limits *limits)
{
    weir_resp_replies *p = weir_new(weir_resp_replies);
    if (limits != NULL)
        p->limits = *limits;
    if (p->limits.bulk_max == 0)
        p->limits.bulk_max = WR_RESP_BULK_MAX_USUAL;
    if (p->limits.args_max == 0)
        p->limits.args_max = WR_RESP_COUNT_MAX_USUAL;
    if (p->limits.inline_max == 0)
        p->limits.inline_max = WR_RESP_LINE_MAX_USUAL;
    if (p->limits.command_max == 0)
        p->limits.command_max = WR_RESP_TOTAL_MAX_USUAL;
    return p;
}

size_t weir_resp_replies_need(const weir_resp_replies *p)
{
    return p->need;
}

static bool has_bytes(weir_resp_kind kind)
{
    return kind == WEIR_RESP_SIMPLE || kind == WEIR_RESP_ERROR || kind == WEIR_RESP_BULK;
}

WR_NOINLINE static void grow_values(weir_resp_replies *p)
{
    size_t capacity = p->capacity == 0 ? VALUES_FIRST : p->capacity * 2;
    weir_resp_value *values = weir_new_bytes(capacity * sizeof(weir_resp_value));
    if (p->count > 0)
        memcpy(values, p->values, p->count * sizeof(weir_resp_value));
    p->values = values;
    p->capacity = capacity;
}

/* Appends an element and closes the arrays that it completes. */
static void add_value(weir_resp_replies *p, weir_resp_kind kind, int64_t integer, size_t size)
{
    if (p->count == p->capacity)
        grow_values(p);
    p->values[p->count++] = (weir_resp_value){.kind = kind, .depth = p->depth, .integer = integer, .size = size};
    if (p->depth > 0)
        p->left[p->depth - 1]--;
    if (kind == WEIR_RESP_ARRAY && integer > 0)
        p->left[p->depth++] = integer;
    while (p->depth > 0 && p->left[p->depth - 1] == 0)
        p->depth--;
}

/* The number behind `$` and `*`: -1 means null; a length or count up to max is put into *out. Returns false if it is
 * neither. */
static bool read_length(const char *text, size_t size, size_t max, int64_t *out)
{
    return wr_resp_read_integer(text, size, out) && *out >= -1 && (*out < 0 || (uint64_t)*out <= max);
}

/* What the line text[0, size) says, without its first byte `kind`. `offset` is where the text lies in the input. */
static int take_line(weir_resp_replies *p, char kind, const char *text, size_t size, size_t offset)
{
    int64_t number = 0;
    switch (kind) {
    case '+': add_value(p, WEIR_RESP_SIMPLE, (int64_t)offset, size); return 0;
    case '-': add_value(p, WEIR_RESP_ERROR, (int64_t)offset, size); return 0;
    case ':':
        if (!wr_resp_read_integer(text, size, &number))
            return WEIR_EPROTO;
        add_value(p, WEIR_RESP_INTEGER, number, 0);
        return 0;
    case '$':
        if (!read_length(text, size, p->limits.bulk_max, &number))
            return WEIR_EPROTO;
        if (number < 0)
            add_value(p, WEIR_RESP_NULL, 0, 0);
        else
            p->bulk_size = (size_t)number + 2;
        return 0;
    case '*':
        if (!read_length(text, size, p->limits.args_max, &number))
            return WEIR_EPROTO;
        if (number > 0 && p->depth == WEIR_RESP_DEPTH_MAX)
            return WEIR_EPROTO;
        add_value(p, number < 0 ? WEIR_RESP_NULL : WEIR_RESP_ARRAY, number < 0 ? 0 : number, 0);
        return 0;
    default: return WEIR_EPROTO;
    }
}

/* One line or one bulk string further: 1, 0 when more input is needed, WEIR_EPROTO. */
static int step(weir_resp_replies *p, const char *input, size_t size)
{
    if (p->bulk_size > 0) {
        if (p->bulk_size > p->limits.command_max - p->at)
            return WEIR_EPROTO;
        if (size - p->at < p->bulk_size) {
            p->need = p->at + p->bulk_size;
            return 0;
        }
        size_t length = p->bulk_size - 2;
        if (input[p->at + length] != '\r' || input[p->at + length + 1] != '\n')
            return WEIR_EPROTO;
        add_value(p, WEIR_RESP_BULK, (int64_t)p->at, length);
        p->at += p->bulk_size;
        p->line = p->at;
        p->bulk_size = 0;
        return 1;
    }
    switch (wr_line_find(input, size, p->line, &p->at, '\r', p->limits.inline_max)) {
    case WR_LINE_MORE: return 0;
    case WR_LINE_TOO_LONG: return WEIR_EPROTO;
    case WR_LINE_FOUND: break;
    }
    if (size - p->at < 2)
        return 0;
    if (input[p->at + 1] != '\n' || p->at == p->line)
        return WEIR_EPROTO;
    int rc = take_line(p, input[p->line], input + p->line + 1, p->at - p->line - 1, p->line + 1);
    p->at += 2;
    p->line = p->at;
    return rc == 0 ? 1 : rc;
}

int weir_resp_next_reply(weir_resp_replies *p, const char *input, size_t size, size_t *used,
                         const weir_resp_value **values, size_t *count)
{
    WR_CHECK(p->at <= size, "the input is shorter (%zu) than at the last call (%zu): give all of it again", size,
             p->at);
    p->need = 0;
    if (p->at == 0) {
        p->count = 0;
        if (p->capacity > KEEP_CAPACITY) {
            p->values = NULL;
            p->capacity = 0;
        }
    }
    do {
        int rc = step(p, input, size);
        if (rc <= 0)
            return rc;
        if (p->at > p->limits.command_max || p->count > p->limits.args_max)
            return WEIR_EPROTO;
    } while (p->depth > 0 || p->bulk_size > 0);
    for (size_t i = 0; i < p->count; i++) {
        if (has_bytes(p->values[i].kind)) {
            p->values[i].bytes = input + p->values[i].integer;
            p->values[i].integer = 0;
        }
    }
    *used = p->at;
    *values = p->values;
    *count = p->count;
    p->at = p->line = 0;
    return 1;
}
