/* SPDX-License-Identifier: MIT */
/* kv/session_commands.c: PING ECHO SELECT HELLO QUIT SHUTDOWN DBSIZE FLUSHALL INFO CLIENT CONFIG COMMAND, and the
 * errors for what is none. */
#include "session_commands.h"
#include "app.h"
#include "session.h"
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define QUOTED_MAX 128 /* characters of a client's words in an error */
#define MESSAGE_MAX 512

static int quoted(const weir_resp_arg *arg)
{
    return arg->size < QUOTED_MAX ? (int)arg->size : QUOTED_MAX;
}

void session_unknown_command(session *self, const weir_resp_arg *args, size_t count)
{
    char message[MESSAGE_MAX], words[QUOTED_MAX + 8] = "";
    size_t size = 0;
    for (size_t i = 1; i < count && size < QUOTED_MAX; i++) {
        int room = (int)(QUOTED_MAX - size);
        int shown = args[i].size < (size_t)room ? (int)args[i].size : room;
        size += (size_t)snprintf(words + size, sizeof(words) - size, "'%.*s' ", shown, args[i].bytes);
    }
    snprintf(message, sizeof(message), "ERR unknown command '%.*s', with args beginning with: %s", quoted(&args[0]),
             args[0].bytes, words);
    session_reply_error(self, message);
}

void session_wrong_arity(session *self, const char *name)
{
    char message[MESSAGE_MAX];
    snprintf(message, sizeof(message), "ERR wrong number of arguments for '%s' command", name);
    session_reply_error(self, message);
}

static void unknown_subcommand(session *self, const char *name, const weir_resp_arg *word)
{
    char message[MESSAGE_MAX];
    snprintf(message, sizeof(message), "ERR unknown subcommand '%.*s'. Try %s HELP.", quoted(word), word->bytes, name);
    session_reply_error(self, message);
}

/* ---- connection ---- */

void session_ping(session *self, const weir_resp_arg *args, size_t count)
{
    if (count > 2) {
        session_wrong_arity(self, "ping");
        return;
    }
    if (count == 1)
        weir_resp_put_simple(session_begin_reply(self), "PONG");
    else
        weir_resp_put_bulk(session_begin_reply(self), args[1].bytes, args[1].size);
    session_reply(self);
}

void session_echo(session *self, const weir_resp_arg *args, size_t count)
{
    (void)count;
    weir_resp_put_bulk(session_begin_reply(self), args[1].bytes, args[1].size);
    session_reply(self);
}

void session_select(session *self, const weir_resp_arg *args, size_t count)
{
    int64_t number = 0;
    (void)count;
    if (!arg_integer(&args[1], &number))
        session_reply_error(self, ERROR_INTEGER);
    else if (number < INT_MIN || number > INT_MAX)
        session_reply_error(self, "ERR value is out of range, value must between -2147483648 and 2147483647");
    else if (number != 0)
        session_reply_error(self, "ERR DB index is out of range");
    else
        session_reply_ok(self);
}

static void put_text(weir_resp_text *out, const char *text)
{
    weir_resp_put_bulk(out, text, strlen(text));
}

void session_hello(session *self, const weir_resp_arg *args, size_t count)
{
    int64_t version = 2;
    if (count > 1 && !arg_integer(&args[1], &version)) {
        session_reply_error(self, "ERR Protocol version is not an integer or out of range");
        return;
    }
    if (version != 2) { /* RESP3 is not spoken: clients then stay with 2 */
        session_reply_error(self, "NOPROTO unsupported protocol version");
        return;
    }
    if (count > 2) {
        char message[MESSAGE_MAX];
        snprintf(message, sizeof(message), "ERR Syntax error in HELLO option '%.*s'", quoted(&args[2]), args[2].bytes);
        session_reply_error(self, message);
        return;
    }
    weir_resp_text *out = session_begin_reply(self);
    weir_resp_put_array(out, 14);
    put_text(out, "server");
    put_text(out, "weir-kv");
    put_text(out, "version");
    put_text(out, weir_version());
    put_text(out, "proto");
    weir_resp_put_integer(out, 2);
    put_text(out, "id");
    weir_resp_put_integer(out, (int64_t)self->id);
    put_text(out, "mode");
    put_text(out, "standalone");
    put_text(out, "role");
    put_text(out, "master");
    put_text(out, "modules");
    weir_resp_put_array(out, 0);
    session_reply(self);
}

void session_quit(session *self, const weir_resp_arg *args, size_t count)
{
    (void)args;
    (void)count;
    self->deaf = true;
    session_reply_ok(self);
    session_reply_kind(self, PAYLOAD_END);
}

void session_shutdown(session *self, const weir_resp_arg *args, size_t count)
{
    bool save = false, nosave = false, abort_it = false, other = false;
    for (size_t i = 1; i < count; i++) {
        if (arg_is(&args[i], "save"))
            save = true;
        else if (arg_is(&args[i], "nosave"))
            nosave = true;
        else if (arg_is(&args[i], "abort"))
            abort_it = true;
        else if (arg_is(&args[i], "now") || arg_is(&args[i], "force"))
            other = true;
        else
            save = nosave = true;
    }
    if ((save && nosave) || (abort_it && (save || nosave || other)))
        session_reply_error(self, ERROR_SYNTAX);
    else if (abort_it)
        session_reply_error(self, "ERR No shutdown in progress.");
    else
        session_reply_kind(self, PAYLOAD_SHUTDOWN);
}

/* ---- all shards ---- */

void session_dbsize(session *self, const weir_resp_arg *args, size_t count)
{
    (void)args;
    (void)count;
    session_send_all(self, command_count_keys, GATHER_SUM, NULL);
}

void session_flushall(session *self, const weir_resp_arg *args, size_t count)
{
    if (count > 2 || (count == 2 && !arg_is(&args[1], "async") && !arg_is(&args[1], "sync")))
        session_reply_error(self, ERROR_SYNTAX);
    else
        session_send_all(self, command_flush, GATHER_OK, NULL);
}

void session_info(session *self, const weir_resp_arg *args, size_t count)
{
    char *section = NULL;
    if (count > 1) { /* of several sections, the first */
        section = weir_new_bytes(args[1].size + 1);
        memcpy(section, args[1].bytes, args[1].size);
    }
    session_send_all(self, command_count_keys, GATHER_INFO, section);
}

/* ---- CLIENT ---- */

static bool is_name(const weir_resp_arg *arg)
{
    for (size_t i = 0; i < arg->size; i++) {
        if (arg->bytes[i] < '!' || arg->bytes[i] > '~')
            return false;
    }
    return true;
}

static void client_setname(session *self, const weir_resp_arg *name)
{
    if (!is_name(name)) {
        session_reply_error(self, "ERR Client names cannot contain spaces, newlines or special characters.");
        return;
    }
    self->name = NULL;
    if (name->size > 0) {
        self->name = weir_new_bytes(name->size + 1);
        memcpy(self->name, name->bytes, name->size);
    }
    session_reply_ok(self);
}

static void client_getname(session *self)
{
    if (self->name == NULL)
        weir_resp_put_null(session_begin_reply(self));
    else
        put_text(session_begin_reply(self), self->name);
    session_reply(self);
}

void session_client(session *self, const weir_resp_arg *args, size_t count)
{
    const weir_resp_arg *word = &args[1];
    if (arg_is(word, "id")) {
        if (count != 2) {
            session_wrong_arity(self, "client|id");
            return;
        }
        weir_resp_put_integer(session_begin_reply(self), (int64_t)self->id);
        session_reply(self);
    } else if (arg_is(word, "setname")) {
        if (count != 3)
            session_wrong_arity(self, "client|setname");
        else
            client_setname(self, &args[2]);
    } else if (arg_is(word, "getname")) {
        if (count != 2)
            session_wrong_arity(self, "client|getname");
        else
            client_getname(self);
    } else if (arg_is(word, "setinfo")) {
        if (count != 4)
            session_wrong_arity(self, "client|setinfo");
        else
            session_reply_ok(self);
    } else {
        unknown_subcommand(self, "CLIENT", word);
    }
}

/* ---- CONFIG ---- */

/* Does `name` match the pattern: * any characters, ? any one, all else itself without regard to case. */
static bool matches(const weir_resp_arg *pattern, const char *name)
{
    size_t at = 0, star = SIZE_MAX, star_name = 0, i = 0;
    while (name[i] != '\0') {
        char c = at < pattern->size ? pattern->bytes[at] : '\0';
        if (at < pattern->size && c == '*') {
            star = at++;
            star_name = i;
        } else if (at < pattern->size && (c == '?' || (c | 0x20) == (name[i] | 0x20))) {
            at++;
            i++;
        } else if (star != SIZE_MAX) {
            at = star + 1;
            i = ++star_name;
        } else {
            return false;
        }
    }
    while (at < pattern->size && pattern->bytes[at] == '*')
        at++;
    return at == pattern->size;
}

static bool is_pattern(const weir_resp_arg *arg)
{
    return arg->size > 0 && (memchr(arg->bytes, '*', arg->size) != NULL || memchr(arg->bytes, '?', arg->size) != NULL);
}

#define SETTINGS 11

static void config_get(session *self, const weir_resp_arg *patterns, size_t count)
{
    char memory[24], port[12];
    snprintf(memory, sizeof(memory), "%" PRIu64, app.memory_max);
    snprintf(port, sizeof(port), "%u", app.tcp ? app.port : 0);
    const char *settings[SETTINGS][2] = {{"appendonly", "no"},
                                         {"bind", app.bind},
                                         {"databases", "1"},
                                         {"maxclients", "10000"},
                                         {"maxmemory", memory},
                                         {"maxmemory-policy", "noeviction"},
                                         {"port", port},
                                         {"proto-max-bulk-len", "536870912"},
                                         {"save", ""},
                                         {"timeout", "0"},
                                         {"unixsocket", app.unix_path != NULL ? app.unix_path : ""}};
    const weir_resp_arg *chosen[SETTINGS] = {NULL}; /* the pattern that named it */
    size_t found = 0;
    for (size_t i = 0; i < SETTINGS; i++) {
        for (size_t p = 0; p < count && chosen[i] == NULL; p++)
            chosen[i] = matches(&patterns[p], settings[i][0]) ? &patterns[p] : NULL;
        found += chosen[i] != NULL;
    }
    weir_resp_text *out = session_begin_reply(self);
    weir_resp_put_array(out, 2 * found);
    for (size_t i = 0; i < SETTINGS; i++) {
        if (chosen[i] == NULL)
            continue;
        if (is_pattern(chosen[i]))
            put_text(out, settings[i][0]);
        else
            weir_resp_put_bulk(out, chosen[i]->bytes, chosen[i]->size); /* a plain name comes back as it was spelled */
        put_text(out, settings[i][1]);
    }
    session_reply(self);
}

void session_config(session *self, const weir_resp_arg *args, size_t count)
{
    if (!arg_is(&args[1], "get"))
        unknown_subcommand(self, "CONFIG", &args[1]);
    else if (count < 3)
        session_wrong_arity(self, "config|get");
    else
        config_get(self, args + 2, count - 2);
}

/* ---- COMMAND ---- */

static void put_command(weir_resp_text *out, const command *c)
{
    size_t flags = 0;
    weir_resp_put_array(out, 10);
    put_text(out, c->name);
    weir_resp_put_integer(out, c->arity);
    for (unsigned i = 0; i < COMMAND_FLAGS; i++)
        flags += c->flags >> i & 1;
    weir_resp_put_array(out, flags);
    for (unsigned i = 0; i < COMMAND_FLAGS; i++) {
        if (c->flags >> i & 1)
            weir_resp_put_simple(out, command_flag_names[i]);
    }
    weir_resp_put_integer(out, c->first_key);
    weir_resp_put_integer(out, c->last_key);
    weir_resp_put_integer(out, c->key_step);
    for (int i = 0; i < 4; i++) /* categories, tips, key specifications, subcommands: not said */
        weir_resp_put_array(out, 0);
}

static void command_info(session *self, const weir_resp_arg *names, size_t count)
{
    weir_resp_text *out = session_begin_reply(self);
    weir_resp_put_array(out, count);
    for (size_t i = 0; i < count; i++) {
        const command *c = command_find(&names[i]);
        if (c != NULL)
            put_command(out, c);
        else
            weir_resp_put_null(out);
    }
    session_reply(self);
}

static void command_all(session *self, bool names_only)
{
    weir_resp_text *out = session_begin_reply(self);
    weir_resp_put_array(out, command_count);
    for (size_t i = 0; i < command_count; i++) {
        if (names_only)
            put_text(out, command_table[i].name);
        else
            put_command(out, &command_table[i]);
    }
    session_reply(self);
}

void session_command_command(session *self, const weir_resp_arg *args, size_t count)
{
    if (count == 1) {
        command_all(self, false);
    } else if (arg_is(&args[1], "count")) {
        if (count != 2) {
            session_wrong_arity(self, "command|count");
            return;
        }
        weir_resp_put_integer(session_begin_reply(self), (int64_t)command_count);
        session_reply(self);
    } else if (arg_is(&args[1], "info")) {
        if (count == 2)
            command_all(self, false);
        else
            command_info(self, args + 2, count - 2);
    } else if (arg_is(&args[1], "docs")) {
        weir_resp_put_array(session_begin_reply(self), 0);
        session_reply(self);
    } else if (arg_is(&args[1], "list") && count == 2) {
        command_all(self, true);
    } else {
        unknown_subcommand(self, "COMMAND", &args[1]);
    }
}
