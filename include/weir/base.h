/* SPDX-License-Identifier: MIT */
/* weir/base.h: version, errors, export marks and the small preprocessor tools that the other headers share.
 *
 * Errors are negative codes: -errno where the system knows the case, codes below -4000 where only Weir does.
 * weir_strerror names them all.
 */
#ifndef WEIR_BASE_H
#define WEIR_BASE_H

/* diagnostics about a macro's arguments then point at the caller's line */
#if defined(__GNUC__) && !defined(WEIR_HEADER_CHECK)
#pragma GCC system_header
#endif

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_VERSION_MAJOR 0
#define WEIR_VERSION_MINOR 1
#define WEIR_VERSION_PATCH 0
#define WEIR_VERSION "0.1.0"

#if defined(__GNUC__)
#define WEIR_API __attribute__((visibility("default")))
#define WEIR_MAYBE_ __attribute__((unused))
#define WEIR_ALWAYS_INLINE_ static inline __attribute__((always_inline))
#define WEIR_LIKELY_(x) __builtin_expect(!!(x), 1)
#define WEIR_TLS_ __thread __attribute__((tls_model("initial-exec")))
#else
#error "Weir needs gcc 12 or clang 14 (or newer)"
#endif

#ifdef __cplusplus
#define WEIR_C_ extern "C"
#define WEIR_ALIGNOF_(T) alignof(T)
#define WEIR_STATIC_ASSERT_(condition, text) static_assert(condition, text)
#define WEIR_BEGIN_C_ extern "C" {
#define WEIR_END_C_ }
#else
#define WEIR_C_ extern
#define WEIR_ALIGNOF_(T) _Alignof(T)
#define WEIR_STATIC_ASSERT_(condition, text) _Static_assert(condition, text)
#define WEIR_BEGIN_C_
#define WEIR_END_C_
#endif

typedef enum weir_error {
    WEIR_OK = 0,
    WEIR_EPERM = -EPERM, /* not allowed here (outside a behaviour, from another actor) */
    WEIR_ENOENT = -ENOENT,
    WEIR_EAGAIN = -EAGAIN,
    WEIR_ENOMEM = -ENOMEM,
    WEIR_EBUSY = -EBUSY, /* a run is already under way in this process */
    WEIR_EINVAL = -EINVAL,
    WEIR_EMFILE = -EMFILE,
    WEIR_EPIPE = -EPIPE,
    WEIR_ERANGE = -ERANGE,
    WEIR_ENAMETOOLONG = -ENAMETOOLONG,
    WEIR_EADDRINUSE = -EADDRINUSE,
    WEIR_ENOBUFS = -ENOBUFS, /* a queue is at its hard limit */
    WEIR_ECONNRESET = -ECONNRESET,
    WEIR_ECONNREFUSED = -ECONNREFUSED,
    WEIR_ECANCELED = -ECANCELED,
    WEIR_EPROTO = -EPROTO, /* the peer broke the protocol */
    WEIR_EMSGSIZE = -EMSGSIZE,
    WEIR_ESHUTDOWN = -ESHUTDOWN, /* the run is ending, or this side was ended already */
    /* a message names an object of the sender's own heap; send values, text or handles */
    WEIR_EOWNED = -4001,
    WEIR_EHANDLE = -4002 /* a handle is null or names something else than it must */
} weir_error;

WEIR_BEGIN_C_

/* A short English text for a code; never NULL, also for codes nobody defined. Any thread; static memory. Since 0.1. */
WEIR_API const char *weir_strerror(int error);

/* The version of the library that is linked, "0.1.0"; WEIR_VERSION is that of the headers. Since 0.1. */
WEIR_API const char *weir_version(void);

WEIR_END_C_

/* The handle kinds that messages may carry; each is defined where its functions are. */
typedef struct weir_actor weir_actor;
typedef struct weir_store weir_store;
typedef struct weir_descriptor weir_descriptor;

/* A run of reference fields in a struct: `count` pointers from byte `offset`. A list of them ends with count 0. */
typedef struct weir_field {
    uint32_t offset;
    uint32_t count;
} weir_field;

/* Preprocessor: WEIR_PICK_(...) is 0 for one argument, else 1 (digits: a letter could be a user's macro);
 * WEIR_EACH_(M, x, a, b) is M(x, a) M(x, b), up to 16. */
#define WEIR_CAT_(a, b) WEIR_CAT2_(a, b)
#define WEIR_CAT2_(a, b) a##b
#define WEIR_PICK_(...) WEIR_PICK2_(__VA_ARGS__, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, ~)
#define WEIR_PICK2_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, n_, ...) n_
#define WEIR_COUNT_(...) WEIR_PICK2_(__VA_ARGS__, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, ~)
#define WEIR_EACH_(M, x, ...) WEIR_CAT_(WEIR_EACH, WEIR_COUNT_(__VA_ARGS__))(M, x, __VA_ARGS__)
#define WEIR_EACH1(M, x, a) M(x, a)
#define WEIR_EACH2(M, x, a, ...) M(x, a) WEIR_EACH1(M, x, __VA_ARGS__)
#define WEIR_EACH3(M, x, a, ...) M(x, a) WEIR_EACH2(M, x, __VA_ARGS__)
#define WEIR_EACH4(M, x, a, ...) M(x, a) WEIR_EACH3(M, x, __VA_ARGS__)
#define WEIR_EACH5(M, x, a, ...) M(x, a) WEIR_EACH4(M, x, __VA_ARGS__)
#define WEIR_EACH6(M, x, a, ...) M(x, a) WEIR_EACH5(M, x, __VA_ARGS__)
#define WEIR_EACH7(M, x, a, ...) M(x, a) WEIR_EACH6(M, x, __VA_ARGS__)
#define WEIR_EACH8(M, x, a, ...) M(x, a) WEIR_EACH7(M, x, __VA_ARGS__)
#define WEIR_EACH9(M, x, a, ...) M(x, a) WEIR_EACH8(M, x, __VA_ARGS__)
#define WEIR_EACH10(M, x, a, ...) M(x, a) WEIR_EACH9(M, x, __VA_ARGS__)
#define WEIR_EACH11(M, x, a, ...) M(x, a) WEIR_EACH10(M, x, __VA_ARGS__)
#define WEIR_EACH12(M, x, a, ...) M(x, a) WEIR_EACH11(M, x, __VA_ARGS__)
#define WEIR_EACH13(M, x, a, ...) M(x, a) WEIR_EACH12(M, x, __VA_ARGS__)
#define WEIR_EACH14(M, x, a, ...) M(x, a) WEIR_EACH13(M, x, __VA_ARGS__)
#define WEIR_EACH15(M, x, a, ...) M(x, a) WEIR_EACH14(M, x, __VA_ARGS__)
#define WEIR_EACH16(M, x, a, ...) M(x, a) WEIR_EACH15(M, x, __VA_ARGS__)

/* One entry of a field list. A field is a pointer, a handle struct, or an array of those. */
#define WEIR_FIELD_(T, f) {(uint32_t)offsetof(T, f), (uint32_t)(sizeof(((T *)0)->f) / sizeof(void *))},
#define WEIR_FIELD_CHECK_(T, f) \
    WEIR_STATIC_ASSERT_(sizeof(((T *)0)->f) % sizeof(void *) == 0, \
                        #T "." #f " is not a reference, a handle or an array of them");
#define WEIR_FIELDS_(name, T, ...) \
    WEIR_EACH_(WEIR_FIELD_CHECK_, T, __VA_ARGS__) \
    static const weir_field name[] = {WEIR_EACH_(WEIR_FIELD_, T, __VA_ARGS__){0, 0}}

/* A struct value from designated initialisers, and its address for the length of the full expression. C++17 has no
 * designated initialisers: there the fields are assigned in a lambda. */
#ifdef __cplusplus
#define WEIR_SET_(v, init) v init;
#define WEIR_LIT0(T) T()
#define WEIR_LIT1(T, ...) \
    [&] { \
        T weir_v_ = T(); \
        WEIR_EACH_(WEIR_SET_, weir_v_, __VA_ARGS__) return weir_v_; \
    }()
#define WEIR_PTR_(T, x) weir_addr_<T>(x)
template <class T>
static inline const T *weir_addr_(const T &v)
{
    return &v;
}
#else
#define WEIR_LIT0(T) \
    (T) \
    { \
        0 \
    }
#define WEIR_LIT1(T, ...) \
    (T) \
    { \
        __VA_ARGS__ \
    }
#define WEIR_PTR_(T, x) &x
#endif

#endif
