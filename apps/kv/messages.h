/* SPDX-License-Identifier: MIT */
/* kv/messages.h: what sessions and shards say to each other.
 *
 * Job        A session sends a command, or its part for one key, as a `request`; the shard sends what came of it as
 *            an `answer`.
 * Invariants One answer for each request. Requests of one session to one shard are carried out in order. Tail of a
 *            request: `count` sizes (uint32_t), then the bytes of the arguments. Argument `large_index` is not there
 *            if `large` is set: it is that part of the store. Tail of an answer: text for ANSWER_TEXT, the length
 *            line for ANSWER_BULK.
 */
#ifndef KV_MESSAGES_H
#define KV_MESSAGES_H

#include <weir/weir.h>

typedef struct session session;
typedef struct shard shard;
WEIR_ACTOR_DECLARE(session);
WEIR_ACTOR_DECLARE(shard);

typedef struct begin { /* the listener to a new session */
    weir_descriptor *connection;
} begin;

typedef struct request {
    session_ref session;
    weir_store *large;
    size_t large_offset, large_size;
    uint64_t hash; /* of the key */
    uint32_t slot; /* where the session waits for the answer: given back unchanged */
    uint32_t part;
    uint32_t count; /* arguments behind the command's name; the key is the first */
    uint32_t large_index;
    uint32_t command; /* index in the table of commands */
} request;

typedef enum answer_kind {
    ANSWER_OK,
    ANSWER_NULL,
    ANSWER_INTEGER,
    ANSWER_TEXT, /* encoded */
    ANSWER_BULK, /* length line, store, line end */
    ANSWER_STORE /* the store is the encoded answer */
} answer_kind;

typedef struct answer {
    weir_store *large;
    size_t large_offset, large_size;
    int64_t number;
    int64_t second; /* DBSIZE's parts: keys with a time to live */
    uint32_t slot, part;
    uint32_t kind;
} answer;

WEIR_BEHAVIOUR_DECLARE(session, begin);
WEIR_BEHAVIOUR_DECLARE(session, answer);
WEIR_BEHAVIOUR_DECLARE(shard, request);

#endif
