/* SPDX-License-Identifier: MIT */
/* tests/fuzz/fuzz_resp.c: both RESP parsers under libFuzzer.
 *
 * Job        The first byte chooses parser and cuts; the rest is parsed whole and in pieces. What is checked: no
 *            sanitizer report, and the same commands, values and errors either way.
 * Use        clang -fsanitize=fuzzer,address,undefined; `./dev soak` builds and runs it.
 * Threads    One: each input is parsed in the start function of a run of its own, so that no memory is left from the
 *            last.
 */
#include "weir/weir.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct parsers {
    weir_resp_commands commands;
    weir_resp_replies *replies;
} parsers;
WEIR_UNTYPED(parsers);

typedef struct digest {
    uint64_t value;
} digest;

static void mix(digest *d, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        d->value = (d->value ^ at[i]) * 1099511628211u;
}

static void mix_number(digest *d, uint64_t number)
{
    mix(d, &number, sizeof(number));
}

/* One step: 1 when something whole was found, 0 for more, negative for an error; mixed into the digest unless 0. */
static int step(parsers *p, const char *input, size_t size, size_t *used, digest *d)
{
    int rc;
    if (p->replies != NULL) {
        const weir_resp_value *values = NULL;
        size_t count = 0;
        rc = weir_resp_next_reply(p->replies, input, size, used, &values, &count);
        for (size_t i = 0; rc > 0 && i < count; i++) {
            mix_number(d, (uint64_t)values[i].kind << 32 | values[i].depth);
            mix_number(d, (uint64_t)values[i].integer);
            mix(d, values[i].bytes, values[i].size);
        }
    } else {
        rc = weir_resp_next_command(&p->commands, input, size, used);
        for (size_t i = 0; rc > 0 && i < p->commands.count; i++) {
            mix_number(d, p->commands.args[i].size);
            mix(d, p->commands.args[i].bytes, p->commands.args[i].size);
        }
        if (rc < 0)
            mix(d, p->commands.error, strlen(p->commands.error));
    }
    if (rc != 0)
        mix_number(d, (uint64_t)rc);
    return rc;
}

static uint64_t parse(const uint8_t *data, size_t size, unsigned piece, int replies)
{
    parsers *p = weir_new(parsers);
    digest d = {1469598103934665603u};
    size_t start = 0, used = 0;
    if (replies)
        p->replies = weir_resp_replies_new(NULL);
    for (size_t given = 0; given < size;) {
        given = piece == 0 || size - given < piece ? size : given + piece;
        int rc = 1;
        while (rc > 0) {
            size_t now = given - start; /* a block of its own size, so that reading too far is seen */
            char *block = malloc(now > 0 ? now : 1);
            if (block == NULL)
                abort();
            memcpy(block, data + start, now);
            rc = step(p, block, now, &used, &d);
            free(block);
            if (rc > 0)
                start += used;
        }
        if (rc < 0)
            return d.value;
    }
    mix_number(&d, size - start);
    return d.value;
}

typedef struct input {
    const uint8_t *data;
    size_t size;
} input;

static void start(void *arg)
{
    const input *in = arg;
    unsigned piece = 1 + (in->data[0] >> 1) % 37;
    int replies = in->data[0] & 1;
    if (parse(in->data + 1, in->size - 1, 0, replies) != parse(in->data + 1, in->size - 1, piece, replies)) {
        fprintf(stderr, "the result depends on the cuts (pieces of %u bytes)\n", piece);
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weir_options options = {.threads = 1};
    input in = {data, size};
    if (size > 0 && weir_run(&options, start, &in) != 0)
        abort();
    return 0;
}
