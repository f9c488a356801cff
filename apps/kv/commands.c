/* SPDX-License-Identifier: MIT */
/* kv/commands.c: see commands.h. */
#include "commands.h"
#include "session_commands.h"

#define W COMMAND_WRITE
#define R COMMAND_READONLY
#define M COMMAND_DENYOOM
#define F COMMAND_FAST
#define LS (COMMAND_LOADING | COMMAND_STALE)
#define OPEN (COMMAND_NOSCRIPT | LS | F | COMMAND_NO_AUTH | COMMAND_ALLOW_BUSY)
#define STOP (COMMAND_ADMIN | COMMAND_NOSCRIPT | LS | COMMAND_NO_MULTI | COMMAND_ALLOW_BUSY)

#define AT_KEY(name, arity, flags, run) \
    { \
        name, arity, flags, 1, 1, 1, ROUTE_KEY, GATHER_OK, run, NULL \
    }
#define EACH(name, arity, flags, step, gather, run) \
    { \
        name, arity, flags, 1, -1, step, ROUTE_EACH_KEY, gather, run, NULL \
    }
#define HERE(name, arity, flags, run) \
    { \
        name, arity, flags, 0, 0, 0, ROUTE_HERE, GATHER_OK, NULL, run \
    }
#define INNER(run) \
    { \
        "", 0, 0, 0, 0, 0, ROUTE_HERE, GATHER_OK, run, NULL \
    }

const command command_table[] = {
    AT_KEY("get", 2, R | F, string_get),
    AT_KEY("set", -3, W | M, string_set),
    AT_KEY("incr", 2, W | M | F, string_incr),
    AT_KEY("decr", 2, W | M | F, string_decr),
    AT_KEY("incrby", 3, W | M | F, string_incrby),
    AT_KEY("decrby", 3, W | M | F, string_decrby),
    AT_KEY("append", 3, W | M | F, string_append),
    AT_KEY("strlen", 2, R | F, string_strlen),
    EACH("mset", -3, W | M, 2, GATHER_OK, string_mset_part),
    EACH("mget", -2, R | F, 1, GATHER_LIST, string_mget_part),
    EACH("del", -2, W, 1, GATHER_SUM, key_del_part),
    EACH("exists", -2, R | F, 1, GATHER_SUM, key_exists_part),
    AT_KEY("expire", -3, W | F, key_expire),
    AT_KEY("ttl", 2, R | F, key_ttl),
    AT_KEY("pttl", 2, R | F, key_pttl),
    AT_KEY("persist", 2, W | F, key_persist),
    AT_KEY("type", 2, R | F, key_type),
    AT_KEY("lpush", -3, W | M | F, list_lpush),
    AT_KEY("rpush", -3, W | M | F, list_rpush),
    AT_KEY("lpop", -2, W | F, list_lpop),
    AT_KEY("rpop", -2, W | F, list_rpop),
    AT_KEY("llen", 2, R | F, list_llen),
    AT_KEY("lrange", 4, R, list_lrange),
    HERE("ping", -1, F, session_ping),
    HERE("echo", 2, LS | F, session_echo),
    HERE("dbsize", 1, R | F, session_dbsize),
    HERE("flushall", -1, W, session_flushall),
    HERE("info", -1, LS, session_info),
    HERE("command", -1, LS, session_command_command),
    HERE("config", -2, 0, session_config),
    HERE("client", -2, 0, session_client),
    HERE("hello", -1, OPEN, session_hello),
    HERE("select", 2, LS | F, session_select),
    HERE("quit", -1, OPEN, session_quit),
    HERE("shutdown", -1, STOP, session_shutdown),
    INNER(key_count),
    INNER(key_flush),
};

#define ROWS (sizeof(command_table) / sizeof(command_table[0]))
const size_t command_count = ROWS - 2;
const size_t command_count_keys = ROWS - 2;
const size_t command_flush = ROWS - 1;

const char *const command_flag_names[COMMAND_FLAGS] = {"write",    "readonly", "denyoom",   "admin",
                                                       "noscript", "loading",  "stale",     "fast",
                                                       "no_auth",  "no_multi", "allow_busy"};

/* The index: open addressing over the names in lower case. Twice as many places as needed, so a search ends soon. */
#define PLACES 128
#define NAME_MAX_SIZE 16
static uint8_t index_of[PLACES]; /* row + 1; 0: free */

static unsigned place_of(const char *name, size_t size)
{
    unsigned hash = (unsigned)size;
    for (size_t i = 0; i < size; i++)
        hash = hash * 31 + ((unsigned char)name[i] | 0x20u);
    return hash % PLACES;
}

void commands_init(void)
{
    for (size_t row = 0; row < command_count; row++) {
        const char *name = command_table[row].name;
        size_t size = 0;
        while (name[size] != '\0')
            size++;
        unsigned place = place_of(name, size);
        while (index_of[place] != 0 && index_of[place] != row + 1)
            place = (place + 1) % PLACES;
        index_of[place] = (uint8_t)(row + 1);
    }
}

const command *command_find(const weir_resp_arg *name)
{
    if (name->size > NAME_MAX_SIZE)
        return NULL;
    for (unsigned place = place_of(name->bytes, name->size); index_of[place] != 0; place = (place + 1) % PLACES) {
        const command *c = &command_table[index_of[place] - 1];
        if (arg_is(name, c->name))
            return c;
    }
    return NULL;
}
