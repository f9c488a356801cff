/* SPDX-License-Identifier: MIT */
/* kv/store.c: see store.h. The table; strings are in string_value.c. */
#include "store.h"
#include "app.h"
#include <string.h>

WEIR_TYPE_DEFINE(entry, next, value);

#define BUCKETS_FIRST 16
#define SWEEP_BUCKETS 2
#define OBJECT_COST 8  /* Weir's word */
#define BUFFER_COST 64 /* a buffer and the head of its store */

static int64_t entry_cost(const entry *e)
{
    return (int64_t)(sizeof(entry) + e->key_size + OBJECT_COST + sizeof(entry *));
}

int64_t store_value_cost(const entry *e)
{
    if (e->value == NULL)
        return 0;
    switch (e->kind) {
    case VALUE_TEXT: return (int64_t)(((text_value *)e->value)->capacity + sizeof(text_value) + OBJECT_COST);
    case VALUE_BUFFER: return (int64_t)weir_buf_length(e->value) + BUFFER_COST;
    case VALUE_LIST: return list_cost(e->value);
    }
    return 0;
}

void store_account(shard *self, int64_t bytes)
{
    self->used += bytes;
    atomic_fetch_add_explicit(&app.used_bytes, bytes, memory_order_relaxed);
}

static void resize(shard *self, size_t bucket_count)
{
    entry **buckets = (entry **)weir_new_refs(bucket_count);
    for (size_t i = 0; i < self->bucket_count; i++) {
        for (entry *e = self->buckets[i], *next; e != NULL; e = next) {
            next = e->next;
            entry **place = &buckets[e->hash & (bucket_count - 1)];
            e->next = *place;
            *place = e;
        }
    }
    self->buckets = buckets;
    self->bucket_count = bucket_count;
    self->sweep_at = 0;
}

static entry **place_of(shard *self, const call *c)
{
    uint32_t hash = (uint32_t)c->hash;
    entry **place = &self->buckets[hash & (self->bucket_count - 1)];
    for (; *place != NULL; place = &(*place)->next) {
        entry *e = *place;
        if (e->hash == hash && e->key_size == c->args[0].size && memcmp(e->key, c->args[0].bytes, e->key_size) == 0)
            break;
    }
    return place;
}

/* Takes the entry at *place out. Does not shrink the table, so that places stay valid. */
static void unlink_entry(shard *self, entry **place)
{
    entry *e = *place;
    store_account(self, -entry_cost(e) - store_value_cost(e));
    if (e->expires_ms != 0)
        self->expiring--;
    self->count--;
    *place = e->next;
}

static bool has_expired(const entry *e, call *c)
{
    return e->expires_ms != 0 && e->expires_ms <= call_now(c);
}

entry *store_find(shard *self, call *c)
{
    if (self->count == 0)
        return NULL;
    entry **place = place_of(self, c);
    if (*place != NULL && has_expired(*place, c))
        unlink_entry(self, place);
    else
        return *place;
    return NULL;
}

entry *store_find_or_add(shard *self, call *c, bool *made)
{
    entry *e = store_find(self, c);
    *made = e == NULL;
    if (e != NULL)
        return e;
    if (self->count >= self->bucket_count)
        resize(self, self->bucket_count == 0 ? BUCKETS_FIRST : self->bucket_count * 2);
    e = weir_new_sized(entry, sizeof(entry) + c->args[0].size);
    e->hash = (uint32_t)c->hash;
    e->key_size = (uint32_t)c->args[0].size;
    e->kind = VALUE_TEXT;
    if (e->key_size > 0)
        memcpy(e->key, c->args[0].bytes, e->key_size);
    entry **place = &self->buckets[e->hash & (self->bucket_count - 1)];
    e->next = *place;
    *place = e;
    self->count++;
    store_account(self, entry_cost(e));
    return e;
}

void store_remove(shard *self, entry *e)
{
    entry **place = &self->buckets[e->hash & (self->bucket_count - 1)];
    while (*place != e)
        place = &(*place)->next;
    unlink_entry(self, place);
    if (self->bucket_count > BUCKETS_FIRST && self->count < self->bucket_count / 8)
        resize(self, self->bucket_count / 4);
}

void store_clear(shard *self)
{
    store_account(self, -self->used);
    self->buckets = NULL;
    self->bucket_count = self->count = self->expiring = self->sweep_at = 0;
    weir_collect_soon();
}

void store_set_expiry(shard *self, entry *e, int64_t expires_ms)
{
    self->expiring += expires_ms != 0;
    self->expiring -= e->expires_ms != 0;
    e->expires_ms = expires_ms;
}

void store_sweep_some(shard *self, call *c)
{
    if (self->expiring == 0)
        return;
    for (int i = 0; i < SWEEP_BUCKETS; i++) {
        entry **place = &self->buckets[self->sweep_at];
        while (*place != NULL) {
            if (has_expired(*place, c))
                unlink_entry(self, place);
            else
                place = &(*place)->next;
        }
        self->sweep_at = (self->sweep_at + 1) & (self->bucket_count - 1);
    }
}
