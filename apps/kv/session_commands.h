/* SPDX-License-Identifier: MIT */
/* kv/session_commands.h: the commands that a session carries out itself, and those that ask all shards.
 *
 * Job        args[0] is the command's name as it was sent; `count` fits the table's arity.
 */
#ifndef KV_SESSION_COMMANDS_H
#define KV_SESSION_COMMANDS_H

#include "commands.h"

session_command session_ping, session_echo, session_dbsize, session_flushall, session_info, session_command_command,
    session_config, session_client, session_hello, session_select, session_quit, session_shutdown;

void session_unknown_command(session *self, const weir_resp_arg *args, size_t count);
void session_wrong_arity(session *self, const char *name);

/* INFO's text (info.c): only the section named, all if it is NULL. */
void info_write(weir_resp_text *out, const char *section, int64_t keys, int64_t expiring);

#endif
