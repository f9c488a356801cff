/* SPDX-License-Identifier: MIT */
/* kv/options.c: see options.h.
 *
 * Job        Every option has a value, checked here with an error that names option and value; --help and --version
 *            have none.
 */
#include "options.h"
#include "app.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT_USUAL 6379
#define SHARDS_USUAL 32
#define THREADS_MAX 64

static const char usage[] =
    "usage: weir-kv [--unix PATH] [--port N] [--bind ADDR] [--threads N] [--shards N] [--maxmemory BYTES]\n"
    "\n"
    "A server that speaks the Redis protocol (RESP2) and keeps its data in memory.\n"
    "\n"
    "  --unix PATH        listen on a Unix socket\n"
    "  --port N           listen on TCP; 0: any free port (usual: 6379 if there is no --unix)\n"
    "  --bind ADDR        the TCP address (usual: 127.0.0.1)\n"
    "  --threads N        schedulers, 1 to 64 (usual: WEIR_THREADS, or a CPU each)\n"
    "  --shards N         actors that share the keys, 1 to 64 (usual: 32)\n"
    "  --maxmemory BYTES  refuse writes above this much data; also 100mb, 1gb (usual: no limit)\n"
    "  --help, --version\n"
    "\n"
    "Prints `ready unix:PATH` and `ready tcp:ADDR:PORT` once it listens. SIGTERM and SIGINT end it.\n";

static int wrong(const char *what, const char *option, const char *value)
{
    fprintf(stderr, "weir-kv: %s: %s%s%s\n%s", option, what, value != NULL ? ": " : "", value != NULL ? value : "",
            usage);
    return 2;
}

/* Digits only, up to max. */
static bool read_number(const char *text, const char **end, uint64_t max, uint64_t *out)
{
    uint64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (MUL_OVERFLOWS(value, 10u, &value) || ADD_OVERFLOWS(value, (unsigned)(*at - '0'), &value))
            return false;
    }
    *out = value;
    *end = at;
    return at != text && value <= max;
}

static bool read_count(const char *text, uint64_t min, uint64_t max, unsigned *out)
{
    const char *end = NULL;
    uint64_t value = 0;
    if (!read_number(text, &end, max, &value) || *end != '\0' || value < min)
        return false;
    *out = (unsigned)value;
    return true;
}

/* Bytes, with Redis's units: k is 1000, kb is 1024. */
static bool read_bytes(const char *text, uint64_t *out)
{
    static const struct {
        const char *name;
        uint64_t factor;
    } units[] = {{"", 1},        {"b", 1},        {"k", 1000},       {"kb", 1 << 10},
                 {"m", 1000000}, {"mb", 1 << 20}, {"g", 1000000000}, {"gb", 1 << 30}};
    const char *end = NULL;
    if (!read_number(text, &end, UINT64_MAX, out))
        return false;
    weir_resp_arg unit = {end, strlen(end)};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        size_t same = 0;
        while (same < unit.size && (unit.bytes[same] | 0x20) == units[i].name[same])
            same++;
        if (same == unit.size && units[i].name[same] == '\0')
            return !MUL_OVERFLOWS(*out, units[i].factor, out) && *out <= INT64_MAX;
    }
    return false;
}

static int read_option(const char *option, const char *value)
{
    if (strcmp(option, "--unix") == 0) {
        app.unix_path = value;
        return *value != '\0' ? -1 : wrong("an empty path", option, NULL);
    }
    if (strcmp(option, "--bind") == 0) {
        app.bind = value;
        return *value != '\0' ? -1 : wrong("an empty address", option, NULL);
    }
    if (strcmp(option, "--port") == 0) {
        app.tcp = true;
        return read_count(value, 0, 65535, &app.port) ? -1 : wrong("not a port number", option, value);
    }
    if (strcmp(option, "--threads") == 0)
        return read_count(value, 1, THREADS_MAX, &app.threads) ? -1 : wrong("not a number from 1 to 64", option, value);
    if (strcmp(option, "--shards") == 0)
        return read_count(value, 1, KV_SHARDS_MAX, &app.shards) ? -1
                                                                : wrong("not a number from 1 to 64", option, value);
    return read_bytes(value, &app.memory_max) ? -1 : wrong("not a number of bytes", option, value);
}

static bool is_known(const char *option)
{
    static const char *const known[] = {"--unix", "--bind", "--port", "--threads", "--shards", "--maxmemory"};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(option, known[i]) == 0)
            return true;
    }
    return false;
}

int options_read(int argc, char **argv)
{
    app.bind = "127.0.0.1";
    app.shards = SHARDS_USUAL;
    for (int i = 1; i < argc; i += 2) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            fputs(usage, stdout);
            return 0;
        }
        if (strcmp(argv[i], "--version") == 0) {
            printf("weir-kv %s\n", weir_version());
            return 0;
        }
        if (!is_known(argv[i]))
            return wrong("no such option", argv[i], NULL);
        if (i + 1 == argc)
            return wrong("a value is missing", argv[i], NULL);
        int code = read_option(argv[i], argv[i + 1]);
        if (code >= 0)
            return code;
    }
    if (app.unix_path == NULL && !app.tcp) {
        app.tcp = true;
        app.port = PORT_USUAL;
    }
    return -1;
}
