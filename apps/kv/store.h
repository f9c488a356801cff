/* SPDX-License-Identifier: MIT */
/* kv/store.h: a shard: one actor with its part of the keys in its own heap.
 *
 * Job        A chained hash table from key bytes to values, with times to live, and an account of the bytes that are
 *            alive.
 * Invariants Every entry is in the bucket of its hash; `count` is the number of entries, `expiring` of those with a
 *            time to live. `used` is what the entries and their values cost, and part of app.used_bytes. A value in a
 *            store is never written: it may be on its way to a client.
 * Threads    The shard's behaviours.
 * Cost       A look-up: one hash comparison a chained entry. The table doubles when entries outnumber buckets, and
 *            shrinks to a quarter when it is eight times too large.
 */
#ifndef KV_STORE_H
#define KV_STORE_H

#include "call.h"
#include "list.h"

typedef enum value_kind { VALUE_TEXT, VALUE_BUFFER, VALUE_LIST } value_kind;

typedef struct text_value { /* a string that may be overwritten where it is */
    uint32_t size, capacity;
    char bytes[];
} text_value;
WEIR_TYPE_DECLARE(text_value);

typedef struct entry {
    struct entry *next;
    void *value;        /* text_value, weir_buf or list */
    int64_t expires_ms; /* 0: never */
    uint32_t hash;      /* the lower half */
    uint32_t key_size;
    value_kind kind;
    char key[];
} entry;
WEIR_TYPE_DECLARE(entry);

struct shard {
    entry **buckets; /* as many as a power of two */
    size_t bucket_count, count, expiring;
    size_t sweep_at; /* the next bucket to be looked through for keys that have expired */
    int64_t used;
    weir_resp_text text; /* the answer being made */
};

/* The entry of the call's key, if there is one that has not expired. */
entry *store_find(shard *self, call *c);
/* The same key's entry, made if there was none; *made says which. A new one has no value yet: set one at once. */
entry *store_find_or_add(shard *self, call *c, bool *made);
void store_remove(shard *self, entry *e);
void store_clear(shard *self);
void store_set_expiry(shard *self, entry *e, int64_t expires_ms);
/* Removes what has expired from the next few buckets. Every write pays a little of it. */
void store_sweep_some(shard *self, call *c);
/* The value is now worth `bytes` more (or fewer). */
void store_account(shard *self, int64_t bytes);
int64_t store_value_cost(const entry *e);

/* Strings. */
void store_set_string(shard *self, entry *e, const call *c, size_t arg); /* from an argument */
void store_set_bytes(shard *self, entry *e, const char *bytes, size_t size);
const char *store_string(const entry *e, size_t *size);
void store_append(shard *self, entry *e, const char *bytes, size_t size);
/* Answers with the string of an entry. */
void store_answer_string(entry *e, call *c);

#endif
