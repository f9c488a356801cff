/* SPDX-License-Identifier: MIT */
/* protocols/resp_write.c: encoding replies and commands into a growing text.
 *
 * Job        One function for each RESP2 element; the text doubles, so a reply of n bytes costs O(n).
 * Invariants bytes[0, size) is written, size <= capacity. Simple strings and errors never contain a line end: it
 *            becomes a space.
 * Threads    Inside a behaviour; the text lives in the actor's heap.
 * Cost       A bounds test and a copy an element; allocation only when the text grows.
 */
#include "platform/check.h"
#include "platform/compiler.h"
#include "protocols/resp_number.h"
#include "weir/heap.h"
#include "weir/resp.h"
#include <string.h>

#define TEXT_FIRST 128

WR_NOINLINE static void grow(weir_resp_text *text, size_t room)
{
    size_t wanted = 0;
    WR_CHECK(!WR_ADD_OVERFLOWS(text->size, room, &wanted), "a text of %zu bytes cannot grow by %zu", text->size, room);
    size_t capacity = text->capacity == 0 ? TEXT_FIRST : text->capacity;
    while (capacity < wanted) {
        WR_CHECK(capacity <= WEIR_ALLOC_MAX / 2, "a text of %zu bytes is too large", wanted);
        capacity *= 2;
    }
    char *bytes = weir_new_bytes(capacity);
    if (text->size > 0)
        memcpy(bytes, text->bytes, text->size);
    text->bytes = bytes;
    text->capacity = capacity;
}

/* Room for `room` more bytes; the caller writes them and adds what it has written to text->size. */
WR_INLINE char *reserve(weir_resp_text *text, size_t room)
{
    if (WR_UNLIKELY(text->capacity - text->size < room))
        grow(text, room);
    return text->bytes + text->size;
}

void weir_resp_put(weir_resp_text *text, const void *bytes, size_t size)
{
    if (size == 0)
        return;
    memcpy(reserve(text, size), bytes, size);
    text->size += size;
}

static void put_line(weir_resp_text *text, char kind, const char *string)
{
    size_t size = strlen(string);
    char *out = reserve(text, size + 3);
    *out++ = kind;
    for (size_t i = 0; i < size; i++)
        *out++ = string[i] == '\r' || string[i] == '\n' ? ' ' : string[i];
    *out++ = '\r';
    *out = '\n';
    text->size += size + 3;
}

static size_t number_line(char *out, char kind, int64_t value)
{
    size_t size = 1 + wr_resp_write_integer(out + 1, value);
    out[0] = kind;
    out[size] = '\r';
    out[size + 1] = '\n';
    return size + 2;
}

static void put_number(weir_resp_text *text, char kind, int64_t value)
{
    text->size += number_line(reserve(text, WR_RESP_INTEGER_MAX + 3), kind, value);
}

void weir_resp_put_simple(weir_resp_text *text, const char *string)
{
    put_line(text, '+', string);
}

void weir_resp_put_error(weir_resp_text *text, const char *message)
{
    put_line(text, '-', message);
}

void weir_resp_put_integer(weir_resp_text *text, int64_t value)
{
    put_number(text, ':', value);
}

void weir_resp_put_bulk(weir_resp_text *text, const void *bytes, size_t size)
{
    WR_CHECK(size <= WEIR_BUF_MAX, "a bulk string of %zu bytes is too large", size);
    char *start = reserve(text, size + WR_RESP_INTEGER_MAX + 5);
    char *out = start + number_line(start, '$', (int64_t)size);
    if (size > 0)
        memcpy(out, bytes, size);
    out[size] = '\r';
    out[size + 1] = '\n';
    text->size += (size_t)(out - start) + size + 2;
}

void weir_resp_put_null(weir_resp_text *text)
{
    put_number(text, '$', -1);
}

void weir_resp_put_null_array(weir_resp_text *text)
{
    put_number(text, '*', -1);
}

void weir_resp_put_array(weir_resp_text *text, size_t count)
{
    WR_CHECK(count <= WEIR_BUF_MAX, "an array of %zu elements is too large", count);
    put_number(text, '*', (int64_t)count);
}

size_t weir_resp_bulk_header(char out[32], size_t size)
{
    WR_CHECK(size <= WEIR_BUF_MAX, "a bulk string of %zu bytes is too large", size);
    return number_line(out, '$', (int64_t)size);
}
