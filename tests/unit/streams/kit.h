/* SPDX-License-Identifier: MIT */
/* tests/unit/streams/kit.h: a connection of any kind between two streams, in one line.
 *
 * Job        kit_connect(kind, server, client) inside a run makes a connection of that kind; kit_run does so in a run
 *            of its own. With `apart` the server's side lives in an actor of its own.
 */
#ifndef TESTS_STREAMS_KIT_H
#define TESTS_STREAMS_KIT_H

#include "harness.h"

#include <string.h>
#include <weir/weir.h>

typedef enum kit_kind { KIT_UNIX, KIT_ABSTRACT, KIT_TCP4, KIT_TCP6, KIT_PAIR, KIT_KINDS } kit_kind;

typedef struct kit_setup {
    kit_kind kind;
    unsigned threads;                          /* 0: 1 */
    const char *backend;                       /* NULL: the usual one */
    bool apart;                                /* the server's stream belongs to an actor of its own */
    weir_stream_events server, client;         /* the arg of both is NULL */
    void (*server_ready)(weir_stream *stream); /* right after the server's stream is made; may be NULL */
    void (*client_ready)(weir_stream *stream);
} kit_setup;

const char *kit_kind_name(kit_kind kind);
bool kit_has(kit_kind kind);            /* prints the reason if not */
const char *kit_address(kit_kind kind); /* to listen on, fresh each time */

/* The two streams as far as they are made; kit_server is for tests that are not `apart`. */
extern weir_stream *kit_server, *kit_client;

void kit_connect(const kit_setup *setup); /* inside a run; `setup` must stay valid */
void kit_run(const kit_setup *setup);
/* For all kinds, both backends, one thread and (apart) two. `reset` runs before each, `check` after it; both may be
 * NULL. */
void kit_run_all(kit_setup setup, void (*reset)(void), void (*check)(void));

int kit_open_descriptors(void); /* how many this process has */

/* Byte i of an endless random text that depends on the seed. */
unsigned char kit_byte(uint64_t i);
void kit_fill(void *out, uint64_t from, size_t size);
void kit_expect(const void *bytes, uint64_t from, size_t size);

#endif
