/* SPDX-License-Identifier: MIT */
/* kv/info.c: the text of INFO.
 *
 * Job        `# Section` and `name:value` lines, with the names that clients look for.
 */
#include "app.h"
#include "session_commands.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct page {
    weir_resp_text text;
    const char *wanted; /* NULL: all sections */
    bool writing;
} page;

PRINTF_LIKE(2, 3) static void line(page *p, const char *format, ...)
{
    char out[512];
    va_list values;
    if (!p->writing)
        return;
    va_start(values, format);
    int size = vsnprintf(out, sizeof(out), format, values);
    va_end(values);
    if (size > 0)
        weir_resp_put(&p->text, out, (size_t)size < sizeof(out) ? (size_t)size : sizeof(out) - 1);
    weir_resp_put(&p->text, "\r\n", 2);
}

static void section(page *p, const char *name)
{
    weir_resp_arg wanted = {p->wanted, p->wanted != NULL ? strlen(p->wanted) : 0};
    char lower[32] = {0};
    for (size_t i = 0; name[i] != '\0' && i + 1 < sizeof(lower); i++)
        lower[i] = (char)(name[i] | 0x20);
    p->writing = p->wanted == NULL || arg_is(&wanted, lower) || arg_is(&wanted, "all") || arg_is(&wanted, "default") ||
                 arg_is(&wanted, "everything");
    if (p->text.size > 0)
        line(p, "%s", "");
    line(p, "# %s", name);
}

static uint64_t load(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void server_section(page *p, const weir_stats *s)
{
    uint64_t seconds = (weir_now_ns() - app.start_ns) / 1000000000u;
    section(p, "Server");
    line(p, "redis_version:%s", KV_REDIS_VERSION);
    line(p, "redis_mode:standalone");
    line(p, "server_name:weir-kv");
    line(p, "weir_version:%s", weir_version());
    line(p, "tcp_port:%u", app.tcp ? app.port : 0);
    line(p, "schedulers:%u", s->threads);
    line(p, "shards:%u", app.shards);
    line(p, "uptime_in_seconds:%" PRIu64, seconds);
    line(p, "uptime_in_days:%" PRIu64, seconds / 86400);
}

static void memory_section(page *p, const weir_stats *s)
{
    section(p, "Memory");
    line(p, "used_memory:%" PRId64, atomic_load_explicit(&app.used_bytes, memory_order_relaxed));
    line(p, "maxmemory:%" PRIu64, app.memory_max);
    line(p, "maxmemory_policy:noeviction");
    line(p, "heap_bytes:%" PRIu64, s->heap_bytes);
    line(p, "store_bytes:%" PRIu64, s->store_bytes);
    line(p, "pool_bytes:%" PRIu64, s->pool_bytes);
    line(p, "committed_bytes:%" PRIu64, s->committed_bytes);
    line(p, "collections:%" PRIu64, s->collections);
}

static void stats_section(page *p, const weir_stats *s)
{
    section(p, "Stats");
    line(p, "total_connections_received:%" PRIu64, load(&app.connections));
    line(p, "total_commands_processed:%" PRIu64, load(&app.commands));
    line(p, "rejected_connections:%" PRIu64, load(&app.refused));
    line(p, "total_net_input_bytes:%" PRIu64, s->stream_bytes_read);
    line(p, "total_net_output_bytes:%" PRIu64, s->stream_bytes_written);
    line(p, "net_read_calls:%" PRIu64, s->stream_reads);
    line(p, "net_write_calls:%" PRIu64, s->stream_writes);
    line(p, "messages_sent:%" PRIu64, s->messages_sent);
    line(p, "behaviours_run:%" PRIu64, s->behaviours_run);
    line(p, "actors_alive:%" PRIu64, s->actors_alive);
}

void info_write(weir_resp_text *out, const char *wanted, int64_t keys, int64_t expiring)
{
    page p = {.wanted = wanted};
    weir_stats s = {0};
    weir_get_stats(&s);
    server_section(&p, &s);
    section(&p, "Clients");
    line(&p, "connected_clients:%" PRId64, atomic_load_explicit(&app.clients, memory_order_relaxed));
    line(&p, "maxclients:%d", KV_CLIENTS_MAX);
    memory_section(&p, &s);
    section(&p, "Persistence");
    line(&p, "loading:0");
    stats_section(&p, &s);
    section(&p, "Replication");
    line(&p, "role:master");
    line(&p, "connected_slaves:0");
    section(&p, "Cluster");
    line(&p, "cluster_enabled:0");
    section(&p, "Keyspace");
    if (keys > 0)
        line(&p, "db0:keys=%" PRId64 ",expires=%" PRId64 ",avg_ttl=0", keys, expiring);
    weir_resp_put_bulk(out, p.text.bytes, p.text.size);
}
