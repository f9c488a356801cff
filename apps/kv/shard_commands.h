/* SPDX-License-Identifier: MIT */
/* kv/shard_commands.h: what each command does at the shard that has its key. The table in commands.c names them.
 *
 * Job        Each answers exactly once, with the texts of Redis 7.0. Arguments are counted and the memory limit is
 *            checked before.
 */
#ifndef KV_SHARD_COMMANDS_H
#define KV_SHARD_COMMANDS_H

#include "store.h"

typedef void shard_command(shard *self, call *c);

shard_command string_set, string_get, string_mset_part, string_mget_part, string_incr, string_decr, string_incrby,
    string_decrby, string_append, string_strlen;
shard_command list_lpush, list_rpush, list_lpop, list_rpop, list_llen, list_lrange;
shard_command key_del_part, key_exists_part, key_expire, key_ttl, key_pttl, key_persist, key_type, key_count, key_flush;

#endif
