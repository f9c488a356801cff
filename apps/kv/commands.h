/* SPDX-License-Identifier: MIT */
/* kv/commands.h: the table of commands: name, arity, flags, where the keys are, who carries it out.
 *
 * Job        One row a command; everything that depends on a command reads it here: dispatch, arity errors, COMMAND's
 *            answer.
 * Threads    Any: the table is constant, its index is built before the run.
 */
#ifndef KV_COMMANDS_H
#define KV_COMMANDS_H

#include "shard_commands.h"

typedef enum command_routing {
    ROUTE_HERE,    /* the session carries it out itself, or asks all shards */
    ROUTE_KEY,     /* to the shard of its key, whole */
    ROUTE_EACH_KEY /* one request for each key (and its value); the answers are gathered */
} command_routing;

typedef enum gather_kind { GATHER_SUM, GATHER_OK, GATHER_LIST, GATHER_INFO } gather_kind;

#define COMMAND_WRITE 1u
#define COMMAND_READONLY 2u
#define COMMAND_DENYOOM 4u /* may need more memory: refused above the limit */
#define COMMAND_ADMIN 8u
#define COMMAND_NOSCRIPT 16u
#define COMMAND_LOADING 32u
#define COMMAND_STALE 64u
#define COMMAND_FAST 128u
#define COMMAND_NO_AUTH 256u
#define COMMAND_NO_MULTI 512u
#define COMMAND_ALLOW_BUSY 1024u
#define COMMAND_FLAGS 11 /* names in the order of the bits: commands.c */

typedef void session_command(session *self, const weir_resp_arg *args, size_t count);

typedef struct command {
    const char *name;
    int arity; /* with the name; negative: at least as many */
    unsigned flags;
    int first_key, last_key, key_step;
    command_routing routing;
    gather_kind gather;
    shard_command *at_shard;
    session_command *at_session;
} command;

extern const command command_table[];
extern const size_t command_count;
extern const char *const command_flag_names[COMMAND_FLAGS];

/* Rows that are no commands of their own: what shards do for DBSIZE, INFO and FLUSHALL. */
extern const size_t command_count_keys, command_flush;

void commands_init(void); /* before the run */
const command *command_find(const weir_resp_arg *name);
static inline uint32_t command_index(const command *c)
{
    return (uint32_t)(c - command_table);
}

#endif
