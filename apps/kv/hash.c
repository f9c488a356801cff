/* SPDX-License-Identifier: MIT */
/* kv/hash.c: see hash.h. */
#include "hash.h"
#include <string.h>

static uint64_t rotate(uint64_t x, unsigned by)
{
    return (x << by) | (x >> (64 - by));
}

static void round_of(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

static void absorb(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    round_of(v);
    v[0] ^= word;
}

uint64_t hash_bytes(const uint64_t seed[2], const char *bytes, size_t size)
{
    uint64_t v[4] = {seed[0] ^ 0x736f6d6570736575u, seed[1] ^ 0x646f72616e646f6du, seed[0] ^ 0x6c7967656e657261u,
                     seed[1] ^ 0x7465646279746573u};
    size_t at = 0;
    for (; size - at >= 8; at += 8) {
        uint64_t word;
        memcpy(&word, bytes + at, 8);
        absorb(v, word);
    }
    uint64_t last = (uint64_t)size << 56;
    for (unsigned shift = 0; at < size; at++, shift += 8)
        last |= (uint64_t)(unsigned char)bytes[at] << shift;
    absorb(v, last);
    v[2] ^= 0xff;
    for (unsigned i = 0; i < 3; i++)
        round_of(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
