/* SPDX-License-Identifier: MIT */
/* weir/buffer.h: bytes with an address that never changes.
 *
 * A weir_buf is an object of the calling actor's heap that names bytes: inside the heap with it (small ones), in a
 * store outside (large ones, foreign memory), or part of another buffer (slice). Neither address nor length ever
 * changes. Nobody frees a buffer.
 *
 * A store is what actors share: put weir_buf_store(b) into a message field (named in WEIR_BEHAVIOUR), make a buffer of
 * it with weir_buf_of_store on the other side. Nothing is copied. Bytes that were shared must not be written any more
 * by anybody.
 */
#ifndef WEIR_BUFFER_H
#define WEIR_BUFFER_H

#include "weir/base.h"

WEIR_BEGIN_C_

typedef struct weir_buf weir_buf;

#define WEIR_BUF_MAX ((size_t)1 << 32)

/* Constructors: 0 and the buffer in *out, or WEIR_ERANGE (length over WEIR_BUF_MAX) or WEIR_ENOMEM and *out NULL.
 * `new` is zeroed, `new_uninitialised` has undefined contents, `from` copies. `new_store` is always outside the heap,
 * so that it can be shared; contents undefined. Up to the option buffer_inline_max the others are inside the heap.
 * Bytes inside are aligned to 8, outside to 16. Inside a behaviour. Cost: an allocation; outside a pool block more.
 * Since 0.1. */
WEIR_API int weir_buf_new(size_t length, weir_buf **out);
WEIR_API int weir_buf_new_uninitialised(size_t length, weir_buf **out);
WEIR_API int weir_buf_from(const void *bytes, size_t length, weir_buf **out);
WEIR_API int weir_buf_new_store(size_t length, weir_buf **out);

/* Names foreign bytes without copying. `release(data, length, arg)` is called exactly once when no actor holds the
 * bytes any more, on any scheduler, outside any behaviour (it may not allocate, send or spawn), and must not block;
 * NULL: nobody is told. On failure it is never called. */
WEIR_API int weir_buf_wrap(void *data, size_t length, void (*release)(void *data, size_t length, void *arg), void *arg,
                           weir_buf **out);

/* Bytes [offset, offset + length) of `buf`, shared with it. WEIR_ERANGE if they are not inside. */
WEIR_API int weir_buf_slice(weir_buf *buf, size_t offset, size_t length, weir_buf **out);

/* Bytes of a store that came with a message. WEIR_EHANDLE if the calling actor does not hold the store. */
WEIR_API int weir_buf_of_store(weir_store *store, size_t offset, size_t length, weir_buf **out);

/* The bytes: the same address for the life of the buffer. The pointer alone, where the collector sees it, keeps bytes
 * of heap and store alive; foreign bytes are kept by the buffer. */
WEIR_API void *weir_buf_data(const weir_buf *buf);
WEIR_API size_t weir_buf_length(const weir_buf *buf);
/* The store behind it, NULL if the bytes are inside the heap; and where in the store they start. */
WEIR_API weir_store *weir_buf_store(const weir_buf *buf);
WEIR_API size_t weir_buf_store_offset(const weir_buf *buf);
WEIR_API size_t weir_store_size(const weir_store *store);

WEIR_END_C_

#endif
