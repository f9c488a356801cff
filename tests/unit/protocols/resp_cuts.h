/* SPDX-License-Identifier: MIT */
/* tests/unit/protocols/resp_cuts.h: feeds bytes to a parser in pieces and writes down what came out.
 *
 * Job        Both parsers promise that the result does not depend on how the input was cut. `cuts_...` gives the
 *            pieces; each call sees the unconsumed bytes in a block of their own size at a new address, so that a
 *            sanitizer sees a byte read too far or kept too long.
 */
#ifndef WEIR_TESTS_RESP_CUTS_H
#define WEIR_TESTS_RESP_CUTS_H

#include "weir/weir.h"
#include <stdbool.h>
#include <stddef.h>

typedef struct story { /* what came out, as text */
    char *text;
    size_t size, capacity;
} story;

void story_add(story *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void story_add_bytes(story *s, const char *bytes, size_t size);
void story_free(story *s);

/* The size of the next piece when `at` of `size` bytes have been given. */
typedef size_t cut(void *arg, size_t at, size_t size);
size_t cut_whole(void *arg, size_t at, size_t size);
size_t cut_bytes(void *arg, size_t at, size_t size);
size_t cut_at(void *arg, size_t at, size_t size); /* arg: size_t *, the place of the only cut */
size_t cut_random(void *arg, size_t at, size_t size);

/* Parses to the end, or to the first error. */
story commands_in_pieces(const weir_resp_limits *limits, const char *input, size_t size, cut *next, void *arg);
story replies_in_pieces(const weir_resp_limits *limits, const char *input, size_t size, cut *next, void *arg);

/* Runs `body` as the start function of a run with one thread. */
void in_a_run(void (*body)(void));

#endif
