/* SPDX-License-Identifier: MIT */
/* weir/heap.h: objects in the calling actor's garbage-collected heap.
 *
 * An object is a plain C struct made with weir_new. It never moves and needs no free: it lives while the actor's
 * state, another live object, the current message or a pin refers to it, be it to its inside or to one past its end.
 * Memory is zeroed. Allocation is a few inlined instructions, the same with a finaliser as without. Objects belong to
 * one actor; other actors never see them.
 *
 * A collection runs between behaviours when enough was allocated since the last one. It calls the finaliser of every
 * dead object first, while all dead objects can still be read, and frees after that. A finaliser may allocate and
 * read other dead objects; it must not store a dead object, or a handle that it read from one, where a live object can
 * see it, and must not assume an order among finalisers.
 */
#ifndef WEIR_HEAP_H
#define WEIR_HEAP_H

#include "weir/base.h"

#if defined(__GNUC__) && !defined(WEIR_HEADER_CHECK)
#pragma GCC system_header
#endif

/* What the collector knows of a struct type. Made by the macros below; language implementers fill it in themselves.
 * Must outlive the run. */
typedef struct weir_type {
    const char *name;               /* for reports */
    uint32_t size;                  /* bytes of one object, without Weir's word */
    uint16_t align;                 /* 1 .. 16 */
    uint16_t flags;                 /* WEIR_TYPE_... */
    const weir_field *refs;         /* reference fields, ended by count 0; NULL: none */
    void (*finalise)(void *object); /* NULL: none */
} weir_type;

#define WEIR_TYPE_UNTYPED 1u /* every aligned word may be a reference: scanned conservatively, `refs` is ignored */

/* WEIR_TYPE(node, next, data): `node` refers to other objects through `next` and `data` and nothing else (traced
 * precisely); no field named: it refers to nothing. WEIR_UNTYPED(node): any word may refer. The _FINAL forms name a
 * function `void close(node *self)` that runs once when the object has died. Use the DECLARE forms in a header and
 * the DEFINE forms in one source file to share a type between files. */
#define WEIR_TYPE_DECLARE(T) \
    enum { T##_weir_final = 0 }; \
    WEIR_C_ const weir_type T##_weir_type
#define WEIR_TYPE_DECLARE_FINAL(T) \
    enum { T##_weir_final = 1 }; \
    WEIR_C_ const weir_type T##_weir_type
#define WEIR_TYPE_DEFINE(...) WEIR_CAT_(WEIR_TYPE_DEFINE, WEIR_PICK_(__VA_ARGS__))(__VA_ARGS__)
#define WEIR_TYPE_DEFINE0(T) const weir_type T##_weir_type = {#T, sizeof(T), WEIR_ALIGNOF_(T), 0, NULL, NULL}
#define WEIR_TYPE_DEFINE1(T, ...) \
    WEIR_FIELDS_(T##_weir_fields, T, __VA_ARGS__); \
    const weir_type T##_weir_type = {#T, sizeof(T), WEIR_ALIGNOF_(T), 0, T##_weir_fields, NULL}
#define WEIR_TYPE_DEFINE_FINAL(T, ...) WEIR_CAT_(WEIR_TYPE_FINAL, WEIR_PICK_(__VA_ARGS__))(T, __VA_ARGS__)
#define WEIR_FINALISE_(T, close) \
    static void T##_weir_finalise(void *object) \
    { \
        close((T *)object); \
    }
#define WEIR_TYPE_FINAL0(T, close) \
    WEIR_FINALISE_(T, close) \
    const weir_type T##_weir_type = {#T, sizeof(T), WEIR_ALIGNOF_(T), 0, NULL, T##_weir_finalise}
#define WEIR_TYPE_FINAL1(T, close, ...) \
    WEIR_FINALISE_(T, close) \
    WEIR_FIELDS_(T##_weir_fields, T, __VA_ARGS__); \
    const weir_type T##_weir_type = {#T, sizeof(T), WEIR_ALIGNOF_(T), 0, T##_weir_fields, T##_weir_finalise}
#define WEIR_TYPE(...) \
    WEIR_TYPE1_(__VA_ARGS__, ~); \
    WEIR_TYPE_DEFINE(__VA_ARGS__)
#define WEIR_TYPE1_(T, ...) WEIR_TYPE_DECLARE(T)
#define WEIR_TYPE_FINAL(T, ...) \
    WEIR_TYPE_DECLARE_FINAL(T); \
    WEIR_TYPE_DEFINE_FINAL(T, __VA_ARGS__)
#define WEIR_UNTYPED(T) \
    WEIR_TYPE_DECLARE(T); \
    const weir_type T##_weir_type = {#T, sizeof(T), WEIR_ALIGNOF_(T), WEIR_TYPE_UNTYPED, NULL, NULL}
#define WEIR_UNTYPED_FINAL(T, close) \
    WEIR_TYPE_DECLARE_FINAL(T); \
    WEIR_FINALISE_(T, close) \
    const weir_type T##_weir_type = {#T, sizeof(T), WEIR_ALIGNOF_(T), WEIR_TYPE_UNTYPED, NULL, T##_weir_finalise}

/* A zeroed T in the calling actor's heap. Never NULL: memory that cannot be had ends the process with a report. Call
 * inside a behaviour (or the start function, a callback, a finaliser). Cost: about 2 ns for a small struct. Since
 * 0.1. */
#define weir_new(T) ((T *)weir_alloc_(&T##_weir_type, sizeof(T), WEIR_ALIGNOF_(T), T##_weir_final))

/* A zeroed T of `size` bytes, at least sizeof(T): a struct with bytes behind it. The bytes behind are not traced
 * (WEIR_TYPE) or are (WEIR_UNTYPED). `size` up to WEIR_ALLOC_MAX, otherwise the process ends with a report. Since
 * 0.1. */
#define weir_new_sized(T, bytes) ((T *)weir_alloc(&T##_weir_type, (bytes)))

/* `count` zeroed Ts in a row, each traced as T says; T must have no finaliser. Since 0.1. */
#define weir_new_array(T, count) ((T *)weir_alloc_array(&T##_weir_type, (count)))

#define WEIR_ALLOC_MAX ((size_t)1 << 36)

WEIR_BEGIN_C_

/* `bytes` zeroed bytes that refer to nothing: text, numbers, tables of integers. Aligned to 16. 0 to WEIR_ALLOC_MAX.
 * Since 0.1. */
WEIR_API void *weir_new_bytes(size_t bytes);

/* `count` NULL references in a row. Since 0.1. */
WEIR_API void **weir_new_refs(size_t count);

/* The plain functions behind the macros: one object of `type` with `size` bytes (>= type->size), and `count` objects
 * in a row. */
WEIR_API void *weir_alloc(const weir_type *type, size_t size);
WEIR_API void *weir_alloc_array(const weir_type *type, size_t count);

/* Keeps an object alive, or keeps hold of a handle, although only memory the collector cannot see refers to it
 * (globals, structs from malloc, a foreign library's user data). Pins count: unpin as often as pinned. Call inside a
 * behaviour of the actor that owns the object (or holds the handle). A pinned handle keeps the run going. weir_unpin
 * of something not pinned trips a check. Cost: a hash operation. Since 0.1. */
WEIR_API void weir_pin(void *object);
WEIR_API void weir_unpin(void *object);

/* Collects the calling actor's heap when the current behaviour has returned, whatever was allocated. Since 0.1. */
WEIR_API void weir_collect_soon(void);

/* Tells the collector of memory outside the heap that lives and dies with heap objects: `bytes` more (or fewer, when
 * negative). Counts towards the next collection. Since 0.1. */
WEIR_API void weir_external_bytes(int64_t bytes);

typedef struct weir_heap_stats {
    uint64_t live_bytes;      /* found alive by the last collection */
    uint64_t allocated_bytes; /* handed out since then (in runs, so up to 8 KiB a size class more than used) */
    uint64_t held_bytes;      /* chunks and large objects the heap owns now */
    uint64_t external_bytes;
    uint64_t collections;
    uint64_t finalised; /* finalisers run so far */
    uint64_t collect_ns_total, collect_ns_longest;
} weir_heap_stats;

/* Statistics of the calling actor's heap. Since 0.1. */
WEIR_API void weir_get_heap_stats(weir_heap_stats *out);

/* ---- what the inlined allocation is made of; not for direct use ---- */

#define WEIR_WORD_ 8          /* Weir's word before each object */
#define WEIR_SMALL_MAX_ 32768 /* largest stride (object and word) that comes from a size class */
#define WEIR_CLASSES_ 47

struct weir_cursor_ {
    char *next; /* the next object's word */
    char *end;  /* end of the free run */
};

struct weir_heap_head_ {
    struct weir_cursor_ cursor[2][WEIR_CLASSES_]; /* [has finaliser][size class] */
};

WEIR_API extern WEIR_TLS_ struct weir_heap_head_ *weir_heap_;

WEIR_API void *weir_alloc_slow_(const weir_type *type, size_t size, unsigned size_class, int final);

WEIR_END_C_

/* Strides: 16, 24 ... 128, then four a doubling: 160, 192, 224, 256, 320 ... 32768. Folded at compile time for a
 * constant `total`. */
WEIR_ALWAYS_INLINE_ unsigned weir_size_class_(size_t total)
{
    if (total <= 128)
        return total <= 16 ? 0 : (unsigned)((total + 7) / 8 - 2);
    unsigned top = 63u - (unsigned)__builtin_clzll((unsigned long long)(total - 1));
    return 15 + 4 * (top - 7) + (unsigned)(((total - 1) >> (top - 2)) & 3);
}

WEIR_ALWAYS_INLINE_ size_t weir_class_stride_(unsigned c)
{
    if (c < 15)
        return 16 + 8 * (size_t)c;
    unsigned doubling = (c - 15) / 4, quarter = (c - 15) % 4;
    return ((size_t)128 << doubling) + ((size_t)(quarter + 1) << (doubling + 5));
}

WEIR_ALWAYS_INLINE_ void *weir_alloc_(const weir_type *type, size_t size, size_t align, int final)
{
    size_t total = size + WEIR_WORD_;
    if (align > 8)
        total = (total + 15) & ~(size_t)15; /* only strides that are multiples of 16 keep 16-byte alignment */
    if (total > WEIR_SMALL_MAX_)
        return weir_alloc_slow_(type, size, WEIR_CLASSES_, final);
    unsigned c = weir_size_class_(total);
    struct weir_cursor_ *cursor = &weir_heap_->cursor[final][c];
    char *p = cursor->next;
    size_t stride = weir_class_stride_(c);
    if (!WEIR_LIKELY_((size_t)(cursor->end - p) >= stride))
        return weir_alloc_slow_(type, size, c, final);
    cursor->next = p + stride;
    *(const weir_type **)(void *)p = type;
    return __builtin_memset(p + WEIR_WORD_, 0, size);
}

#endif
