/* SPDX-License-Identifier: MIT */
/* platform/compiler.h: every compiler extension Weir uses, under one name each.
 *
 * Job        Attributes, branch hints, thread-local storage and sanitizer hooks, so that the rest of the source is
 *            plain C11.
 * Invariants Nothing here has an effect at run time except WR_POISON/WR_UNPOISON, and those only in AddressSanitizer
 *            builds.
 */
#ifndef WR_PLATFORM_COMPILER_H
#define WR_PLATFORM_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#if !defined(__GNUC__)
#error "Weir needs gcc 12 or clang 14 (or newer)"
#endif

#define WR_INLINE static inline __attribute__((always_inline))
#define WR_NOINLINE __attribute__((noinline))
#define WR_COLD __attribute__((cold, noinline))
#define WR_NORETURN __attribute__((noreturn))
#define WR_UNUSED __attribute__((unused))
#define WR_PRINTF(place, first) __attribute__((format(printf, place, first)))
#define WR_LIKELY(x) __builtin_expect(!!(x), 1)
#define WR_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define WR_THREAD_LOCAL __thread __attribute__((tls_model("initial-exec")))
#define WR_PREFETCH(p) __builtin_prefetch(p)
#define WR_CACHE_LINE 64
#define WR_ALIGNED(n) __attribute__((aligned(n)))

/* The struct of type T whose field `f` is at `p`. */
#define WR_CONTAINER(T, f, p) ((T *)(void *)((char *)(p)-offsetof(T, f)))

#if !defined(__has_feature)
#define WR_HAS_FEATURE_(x) 0
#else
#define WR_HAS_FEATURE_(x) __has_feature(x)
#endif

#if defined(__SANITIZE_ADDRESS__) || WR_HAS_FEATURE_(address_sanitizer)
#define WR_ASAN 1
#include <sanitizer/asan_interface.h>
#define WR_POISON(p, n) __asan_poison_memory_region((p), (n))
#define WR_UNPOISON(p, n) __asan_unpoison_memory_region((p), (n))
#define WR_NO_SANITIZE_ADDRESS __attribute__((no_sanitize_address))
#else
#define WR_ASAN 0
#define WR_POISON(p, n) ((void)(p), (void)(n))
#define WR_UNPOISON(p, n) ((void)(p), (void)(n))
#define WR_NO_SANITIZE_ADDRESS
#endif

/* Sanitizer builds are 5 to 20 times slower: tests that count operations do fewer of them there. */
#if defined(__SANITIZE_THREAD__) || WR_HAS_FEATURE_(thread_sanitizer)
#define WR_SANITIZED 1
#else
#define WR_SANITIZED WR_ASAN
#endif

/* Overflow-checked arithmetic: true when the result did not fit. */
#define WR_ADD_OVERFLOWS(a, b, out) __builtin_add_overflow((a), (b), (out))
#define WR_MUL_OVERFLOWS(a, b, out) __builtin_mul_overflow((a), (b), (out))

/* Index of the lowest set bit; `x` must not be 0. */
WR_INLINE unsigned wr_lowest_bit(uint64_t x)
{
    return (unsigned)__builtin_ctzll(x);
}

/* Tells the processor that this is a waiting loop. */
WR_INLINE void wr_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
