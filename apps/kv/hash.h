/* SPDX-License-Identifier: MIT */
/* kv/hash.h: the keyed hash that spreads keys over shards and buckets.
 *
 * Job        SipHash-1-3 (Aumasson and Bernstein): whoever does not know the seed cannot make keys that collide.
 * Cost       About 1 ns a byte for short keys.
 */
#ifndef KV_HASH_H
#define KV_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t hash_bytes(const uint64_t seed[2], const char *bytes, size_t size);

#endif
