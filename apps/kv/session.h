/* SPDX-License-Identifier: MIT */
/* kv/session.h: a session: one actor a connection.
 *
 * Job        Parses what the client sends, hands each command on, and sends the answers in the order of the commands.
 * Invariants Each command takes one slot; `first_slot` is the oldest without an answer written, `slot_count` are
 *            outstanding. An answer that comes early waits in its slot. While slots are outstanding the stream is
 *            corked, so that what was read together is answered together. `input` begins with the `input_size` bytes
 *            that have not been consumed.
 * Bounds     At most `window` commands are outstanding, at most ARGUMENTS_MAX bytes of their arguments; beyond, the
 *            session stops parsing and reading. At most OUTPUT_MAX bytes of answers wait for the client (more if they
 *            are large values that the data holds anyway); beyond, it is disconnected.
 * Threads    The session's behaviours and callbacks.
 */
#ifndef KV_SESSION_H
#define KV_SESSION_H

#include "app.h"
#include "commands.h"

#define SLOT_INLINE 36                /* bytes of an early answer that need no memory of their own */
#define OUTPUT_MAX ((size_t)64 << 20) /* answers for this client only that may wait */

typedef struct payload { /* an answer */
    weir_buf *large;
    const char *bytes; /* its text; NULL: in `small`, or made when it is written */
    int64_t number;
    uint32_t size;
    uint8_t kind; /* answer_kind, or one of the session's own */
    char small[SLOT_INLINE];
} payload;
WEIR_TYPE_DECLARE(payload);

enum {
    PAYLOAD_LIST = 100, /* the parts of the slot's gather */
    PAYLOAD_END,        /* nothing: all before has been answered, end the connection */
    PAYLOAD_SHUTDOWN    /* ... end the server */
};

typedef struct gather { /* answers of several shards that make one */
    payload *parts;     /* GATHER_LIST: in the order of the keys */
    char *error;        /* the first there was, with an ending zero */
    char *section;      /* GATHER_INFO: what was asked for */
    int64_t sum, second;
    size_t bytes; /* of the parts that exist for this answer only */
    uint32_t count, left;
    gather_kind kind;
} gather;
WEIR_TYPE_DECLARE(gather);

typedef struct slot {
    payload answer;
    gather *gather; /* NULL: one answer */
    uint32_t cost;  /* bytes of its arguments under way */
    bool ready;
} slot;
WEIR_TYPE_DECLARE(slot);

struct session {
    weir_stream *stream; /* NULL: not begun or closed */
    weir_buf *input;
    slot *slots; /* a ring; capacity is a power of two */
    char *name;
    shard_ref shards[KV_SHARDS_MAX];
    weir_resp_commands parser;
    weir_resp_text out;  /* an answer made here */
    weir_resp_text pack; /* a request being packed */
    size_t input_size;
    uint64_t id;
    size_t arguments;      /* sum of the slots' costs */
    size_t discarded;      /* input after the last command */
    size_t private_queued; /* at most so many bytes of the stream's queue exist for this client only */
    uint32_t first_slot, slot_count, slot_capacity;
    uint32_t flush_at; /* if flush_set: once this slot is the first, what was answered leaves */
    uint32_t window;
    bool input_is_shared; /* part of the input buffer was sent to a shard: it is not written any more */
    bool corked, paused, flush_set;
    bool large_waits; /* since the queue was short there was a large answer that is part of the data */
    bool deaf;        /* no more commands are taken (QUIT, a protocol error) */
    bool peer_ended;  /* no more input will come */
    bool ended;       /* this side is ended */
};

/* Answers from here (session_commands.c): put the answer into self->out, then call session_reply. */
weir_resp_text *session_begin_reply(session *self);
void session_reply(session *self);
void session_reply_error(session *self, const char *message);
void session_reply_ok(session *self);
/* +OK, or something to be done when all before it has been answered: PAYLOAD_END, PAYLOAD_SHUTDOWN. */
void session_reply_kind(session *self, int kind);

/* To shards (dispatch.c). */
void session_send(session *self, const command *c, const weir_resp_arg *args, size_t count);
void session_send_each(session *self, const command *c, const weir_resp_arg *args, size_t count);
void session_send_all(session *self, size_t row, gather_kind kind, char *section);

/* The ring (replies.c). */
uint32_t slots_push(session *self); /* a new slot at the end; returns its number */
slot *slots_at(session *self, uint32_t number);
void slots_settle(session *self, uint32_t number,
                  payload *p);                       /* a slot's answer: written, or kept until it is its turn */
void payload_keep(payload *to, const payload *from); /* copies what is only valid now */
void session_end(session *self);                     /* ends this side once all that is queued has left */

/* Answers of several shards (gather.c). */
gather *gather_new(gather_kind kind, size_t count);
void gather_add(gather *g, uint32_t part, const payload *p, int64_t second);
payload gather_result(session *self, gather *g); /* valid until self->out is used again */

#endif
