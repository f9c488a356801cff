/* SPDX-License-Identifier: MIT */
/* buffers/buffer.c: buffers: an object of the actor's heap that names bytes with a constant address.
 *
 * Job        Make buffers of every kind, slice them, answer where their bytes are.
 * Invariants data, length and store never change after the constructor. The collector finds the bytes through `data`:
 *            inside the heap it is an inner pointer to the object that contains them (this one, or for a slice the
 *            buffer it was cut from), in a store's block it leads to the store. `store` is named as well, for foreign
 *            bytes and for a slice that starts at the very end.
 * Threads    The owner's scheduler; bytes of a store may be read by every holder.
 * Cost       Inside the heap: one allocation, bytes behind the object, aligned to 8. Outside: an object of 32 bytes and
 *            a store.
 */
#include "actors/services.h"
#include "buffers/store.h"
#include "memory/heap.h"
#include "weir/heap.h"

#include <string.h>

struct weir_buf {
    char *data;
    size_t length;
    weir_store *store; /* NULL: the bytes are inside the heap */
};

static const weir_field buf_fields[] = {
    {offsetof(struct weir_buf, data), 1}, {offsetof(struct weir_buf, store), 1}, {0, 0}};
static const weir_type buf_type = {"weir_buf", sizeof(weir_buf), _Alignof(weir_buf), 0, buf_fields, NULL};

/* The bytes behind the struct are not zeroed. */
static weir_buf *buf_object(size_t bytes_behind)
{
    return wr_heap_alloc_uninitialised(&buf_type, sizeof(weir_buf) + bytes_behind);
}

/* `data` may be NULL for empty foreign bytes, where adding 0 is undefined. */
static char *at(char *data, size_t offset)
{
    return data != NULL ? data + offset : NULL;
}

weir_buf *wr_buf_of(weir_store *store, char *data, size_t length)
{
    WR_ASSERT(store == NULL || (data >= store->data && length <= store->length - (size_t)(data - store->data)));
    weir_buf *buf = buf_object(0);
    if (store != NULL)
        wr_hold_on_here(store);
    buf->data = data;
    buf->length = length;
    buf->store = store;
    return buf;
}

/* Limit 0 asks for stores always. */
static bool fits_inline(size_t length)
{
    size_t limit = wr_option_buffer_inline_max();
    return limit != 0 && length <= limit;
}

static weir_buf *make_inline(size_t length)
{
    weir_buf *buf = buf_object(length);
    buf->data = (char *)(buf + 1);
    buf->length = length;
    return buf;
}

static int make_outside(size_t length, weir_buf **out)
{
    weir_store *store;
    int code = wr_store_new(length, &store);
    if (code != 0)
        return code;
    wr_hold_here(&store->shared);
    *out = wr_buf_of(store, store->data, length);
    return 0;
}

int weir_buf_new_uninitialised(size_t length, weir_buf **out)
{
    *out = NULL;
    if (length > WEIR_BUF_MAX)
        return WEIR_ERANGE;
    if (!fits_inline(length))
        return make_outside(length, out);
    *out = make_inline(length);
    return 0;
}

int weir_buf_new(size_t length, weir_buf **out)
{
    int code = weir_buf_new_uninitialised(length, out);
    if (code == 0 && length > 0)
        memset((*out)->data, 0, length);
    return code;
}

int weir_buf_from(const void *bytes, size_t length, weir_buf **out)
{
    WR_CHECK(bytes != NULL || length == 0, "weir_buf_from: %zu bytes at NULL", length);
    int code = weir_buf_new_uninitialised(length, out);
    if (code == 0 && length > 0)
        memcpy((*out)->data, bytes, length);
    return code;
}

int weir_buf_new_store(size_t length, weir_buf **out)
{
    *out = NULL;
    return length > WEIR_BUF_MAX ? WEIR_ERANGE : make_outside(length, out);
}

int weir_buf_wrap(void *data, size_t length, void (*release)(void *data, size_t length, void *arg), void *arg,
                  weir_buf **out)
{
    WR_CHECK(data != NULL || length == 0, "weir_buf_wrap: %zu bytes at NULL", length);
    *out = NULL;
    if (length > WEIR_BUF_MAX)
        return WEIR_ERANGE;
    weir_store *store;
    int code = wr_store_wrap(data, length, release, arg, &store);
    if (code != 0)
        return code;
    wr_hold_here(&store->shared);
    *out = wr_buf_of(store, data, length);
    return 0;
}

static bool is_inside(size_t offset, size_t length, size_t whole)
{
    return offset <= whole && length <= whole - offset;
}

int weir_buf_slice(weir_buf *buf, size_t offset, size_t length, weir_buf **out)
{
    *out = NULL;
    if (!is_inside(offset, length, buf->length))
        return WEIR_ERANGE;
    *out = wr_buf_of(buf->store, at(buf->data, offset), length);
    return 0;
}

int weir_buf_of_store(weir_store *store, size_t offset, size_t length, weir_buf **out)
{
    *out = NULL;
    if (store == NULL || !wr_holds_here(store) || !wr_store_is(&store->shared))
        return WEIR_EHANDLE;
    if (!is_inside(offset, length, store->length))
        return WEIR_ERANGE;
    *out = wr_buf_of(store, at(store->data, offset), length);
    return 0;
}

void *weir_buf_data(const weir_buf *buf)
{
    return buf->data;
}

size_t weir_buf_length(const weir_buf *buf)
{
    return buf->length;
}

weir_store *weir_buf_store(const weir_buf *buf)
{
    return buf->store;
}

size_t weir_buf_store_offset(const weir_buf *buf)
{
    return buf->store != NULL ? (size_t)(buf->data - buf->store->data) : 0;
}

size_t weir_store_size(const weir_store *store)
{
    return store->length;
}
