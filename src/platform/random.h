/* SPDX-License-Identifier: MIT */
/* platform/random.h: our own generator, so that a run repeats from its seed; separate streams for separate uses.
 *
 * Job        Fast numbers for scheduling, faults and user code. Not for secrets.
 * Threads    Each generator belongs to one thread.
 * Cost       A multiplication and a few shifts.
 * Source     splitmix64: G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators" (2014).
 */
#ifndef WR_PLATFORM_RANDOM_H
#define WR_PLATFORM_RANDOM_H

#include "platform/compiler.h"

typedef struct wr_random {
    uint64_t state;
} wr_random;

WR_INLINE uint64_t wr_random_next(wr_random *random)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* An independent generator: stream `number` of `seed`. */
WR_INLINE wr_random wr_random_stream(uint64_t seed, uint64_t number)
{
    wr_random random = {seed ^ (number + 1) * 0xd1342543de82ef95u};
    random.state = wr_random_next(&random);
    return random;
}

#endif
