/* SPDX-License-Identifier: MIT */
/* kv/gather.c: one answer out of the answers of several shards.
 *
 * Job        Adds up, collects in order, or waits for all, as the command's row in the table says. The first error
 *            wins.
 * Threads    The session's behaviours.
 */
#include "session.h"
#include "session_commands.h"
#include <string.h>

WEIR_TYPE_DEFINE(gather, parts, error, section);

gather *gather_new(gather_kind kind, size_t count)
{
    gather *g = weir_new(gather);
    g->kind = kind;
    g->count = g->left = (uint32_t)count;
    if (kind == GATHER_LIST)
        g->parts = weir_new_array(payload, count);
    return g;
}

void gather_add(gather *g, uint32_t part, const payload *p, int64_t second)
{
    g->left--;
    g->sum += p->number;
    g->second += second;
    if (g->kind == GATHER_LIST) {
        payload_keep(&g->parts[part], p);
        g->bytes += p->size + (p->kind == ANSWER_STORE ? weir_buf_length(p->large) : 0);
    } else if (g->error == NULL && p->kind == ANSWER_TEXT && p->size > 3 && p->bytes[0] == '-') {
        g->error = weir_new_bytes(p->size - 2); /* without the mark and the line end */
        memcpy(g->error, p->bytes + 1, p->size - 3);
    }
}

payload gather_result(session *self, gather *g)
{
    weir_resp_text *out = session_begin_reply(self);
    if (g->error != NULL)
        weir_resp_put_error(out, g->error);
    else if (g->kind == GATHER_SUM)
        return (payload){.kind = ANSWER_INTEGER, .number = g->sum};
    else if (g->kind == GATHER_OK)
        return (payload){.kind = ANSWER_OK};
    else if (g->kind == GATHER_LIST)
        return (payload){.kind = PAYLOAD_LIST};
    else
        info_write(out, g->section, g->sum, g->second);
    return (payload){.kind = ANSWER_TEXT, .bytes = out->bytes, .size = (uint32_t)out->size};
}
