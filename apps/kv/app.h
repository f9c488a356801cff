/* SPDX-License-Identifier: MIT */
/* kv/app.h: what the whole program shares: its options, and a few counters.
 *
 * Job        The only global state. Options are written before the run and the seed at its start; from then on they
 *            are read only.
 * Threads    The counters are atomic and relaxed: each is exact, together they are not one instant.
 */
#ifndef KV_APP_H
#define KV_APP_H

#include <stdatomic.h>
#include <stdint.h>
#include <weir/weir.h>

/* The compiler's extensions that the program uses, under one name each. Overflow: true when the result did not fit. */
#define ADD_OVERFLOWS(a, b, out) __builtin_add_overflow((a), (b), (out))
#define MUL_OVERFLOWS(a, b, out) __builtin_mul_overflow((a), (b), (out))
#define PRINTF_LIKE(place, first) __attribute__((format(printf, place, first)))

#define KV_SHARDS_MAX 64
#define KV_CLIENTS_MAX 10000
#define KV_REDIS_VERSION "7.0.15"   /* whose behaviour is followed; clients read it from INFO */
#define KV_LARGE ((size_t)16 << 10) /* arguments and values from this size on travel as stores, not copied */
#define KV_STRING_MAX ((size_t)512 << 20)

typedef struct app_state {
    const char *unix_path; /* NULL: none */
    const char *bind;
    unsigned port;
    bool tcp;
    unsigned threads; /* 0: as the runtime likes */
    unsigned shards;
    uint64_t memory_max; /* 0: no limit */
    uint64_t seed[2];    /* of the key hash */
    uint64_t start_ns;
    _Atomic int64_t used_bytes; /* live data of all shards, by their own account */
    _Atomic int64_t clients;
    _Atomic uint64_t connections, refused, commands;
} app_state;

extern app_state app;

static inline bool app_memory_is_short(void)
{
    return app.memory_max != 0 && atomic_load_explicit(&app.used_bytes, memory_order_relaxed) > (int64_t)app.memory_max;
}

#endif
