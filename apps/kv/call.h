/* SPDX-License-Identifier: MIT */
/* kv/call.h: one command under way at a shard, and how its answer is given.
 *
 * Job        What a command's function gets: arguments, the key's hash, the clock, and a place for exactly one
 *            answer.
 * Threads    The shard's behaviour; a call lives on its stack.
 */
#ifndef KV_CALL_H
#define KV_CALL_H

#include "messages.h"
#include <stdbool.h>

typedef struct call {
    const struct command *command;
    const weir_resp_arg *args; /* behind the command's name: the key first */
    size_t count;
    uint64_t hash;
    weir_buf *large; /* the bytes of args[large_index]; NULL: none came as a store */
    size_t large_index;
    int64_t now_ms; /* 0: not asked yet; use call_now */
    answer_kind kind;
    int64_t number, second;
    weir_resp_text *text; /* empty at first */
    weir_buf *store;
} call;

int64_t call_now(call *c);

void answer_ok(call *c);
void answer_null(call *c);
void answer_integer(call *c, int64_t value);
void answer_error(call *c, const char *message);
void answer_bulk(call *c, const void *bytes, size_t size);
void answer_buf(call *c, weir_buf *value); /* a bulk string that is not copied: a part of the data */

#define ERROR_TYPE "WRONGTYPE Operation against a key holding the wrong kind of value"
#define ERROR_INTEGER "ERR value is not an integer or out of range"
#define ERROR_SYNTAX "ERR syntax error"
#define ERROR_MEMORY "OOM command not allowed when used memory > 'maxmemory'."
#define ERROR_NO_MEMORY "ERR out of memory"

/* Words and numbers in arguments. */
bool arg_is(const weir_resp_arg *arg, const char *word); /* without regard to case */
bool arg_integer(const weir_resp_arg *arg, int64_t *out);

#endif
