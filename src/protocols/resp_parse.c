/* SPDX-License-Identifier: MIT */
/* protocols/resp_parse.c: commands out of a growing input, as a server receives them.
 *
 * Job        Find the arguments of one command, multibulk or inline, and say where they lie; a caller with an
 *            incomplete one comes back with the same bytes and more.
 * Invariants The result depends on the bytes only, never on how they were cut. No byte is looked at twice. Memory
 *            grows with what has arrived, never with what a length line claims. Positions are offsets until the
 *            command is whole, so the caller may move its input.
 * Threads    Inside a behaviour; the arrays live in the actor's heap.
 * Cost       About 15 ns an argument; arrays are reused from command to command and dropped after an unusually large
 *            one.
 * Leniency   What Redis does not check is not checked here: the second byte of a line end and the two bytes after a
 *            bulk string. What it does check is refused with the same text.
 */
#include "platform/check.h"
#include "protocols/resp_line.h"
#include "protocols/resp_number.h"
#include "weir/heap.h"
#include "weir/resp.h"
#include <string.h>

#define SPANS_FIRST 8
#define KEEP_CAPACITY 1024 /* arrays for more arguments than this are not kept for the next command */
#define KEEP_TEXT 4096

static size_t limit_or(size_t limit, size_t usual)
{
    return limit != 0 ? limit : usual;
}

static int broken(weir_resp_commands *p, const char *what)
{
    static const char head[] = "Protocol error: ";
    size_t size = strlen(what);
    WR_ASSERT(sizeof(head) + size <= sizeof(p->error));
    memcpy(p->error, head, sizeof(head) - 1);
    memcpy(p->error + sizeof(head) - 1, what, size + 1);
    return WEIR_EPROTO;
}

static int broken_dollar(weir_resp_commands *p, char got)
{
    char what[] = "expected '$', got '?'";
    what[sizeof(what) - 3] =
        got == '\0' || got == '\r' || got == '\n' ? ' ' : got; /* it must fit a line and a C string */
    return broken(p, what);
}

WR_NOINLINE static void grow_spans(weir_resp_commands *p)
{
    size_t capacity = p->capacity == 0 ? SPANS_FIRST : p->capacity * 2;
    size_t *spans = weir_new_bytes(capacity * 2 * sizeof(size_t));
    if (p->count > 0)
        memcpy(spans, p->spans, p->count * 2 * sizeof(size_t));
    p->spans = spans;
    p->capacity = capacity;
}

WR_INLINE void add_span(weir_resp_commands *p, size_t offset, size_t size)
{
    if (WR_UNLIKELY(p->count == p->capacity))
        grow_spans(p);
    p->spans[2 * p->count] = offset;
    p->spans[2 * p->count + 1] = size;
    p->count++;
}

/* The command in input[0, used) is whole: offsets become pointers (relative to `base`), and the parser is ready for
 * the next. */
static int whole(weir_resp_commands *p, const char *base, size_t used_here, size_t *used)
{
    if (p->args_capacity < p->count) {
        p->args = weir_new_bytes(p->capacity * sizeof(weir_resp_arg));
        p->args_capacity = p->capacity;
    }
    for (size_t i = 0; i < p->count; i++) {
        p->args[i].bytes = base + p->spans[2 * i];
        p->args[i].size = p->spans[2 * i + 1];
    }
    *used = used_here;
    p->at = p->line = p->need = 0;
    WR_ASSERT(p->args_left == 0 && p->bulk_size == 0);
    return WEIR_RESP_COMMAND;
}

static void begin(weir_resp_commands *p)
{
    p->count = 0;
    if (WR_UNLIKELY(p->capacity > KEEP_CAPACITY)) {
        p->spans = NULL;
        p->args = NULL;
        p->capacity = p->args_capacity = 0;
    }
    if (WR_UNLIKELY(p->text_capacity > KEEP_TEXT)) {
        p->text = NULL;
        p->text_capacity = 0;
    }
}

/* ---- inline commands ---- */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The character that a backslash sequence at line[*at] stands for; *at moves behind it. */
static char unescape(const char *line, size_t size, size_t *at)
{
    char c = line[*at + 1];
    if (c == 'x' && *at + 3 < size && hex_digit(line[*at + 2]) >= 0 && hex_digit(line[*at + 3]) >= 0) {
        c = (char)(hex_digit(line[*at + 2]) * 16 + hex_digit(line[*at + 3]));
        *at += 4;
        return c;
    }
    *at += 2;
    switch (c) {
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case 'b': return '\b';
    case 'a': return '\a';
    default: return c;
    }
}

/* A quoted piece that begins behind the quote at *at: its bytes go to out. Returns false if the quote is not closed
 * by one that a space or the line's end follows. */
static bool read_quoted(const char *line, size_t size, size_t *at, char quote, char *out, size_t *out_size)
{
    while (*at < size && line[*at] != quote) {
        if (line[*at] == '\\' && *at + 1 < size && quote == '"') {
            out[(*out_size)++] = unescape(line, size, at);
        } else if (line[*at] == '\\' && *at + 1 < size && line[*at + 1] == '\'') {
            out[(*out_size)++] = '\'';
            *at += 2;
        } else {
            out[(*out_size)++] = line[(*at)++];
        }
    }
    if (*at == size)
        return false;
    *at += 1;
    return *at == size || is_space(line[*at]);
}

static bool ends_word(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\0';
}

/* Splits a line into words with Redis's quoting rules. The words go to p->text one behind the other. */
static bool split_line(weir_resp_commands *p, const char *line, size_t size)
{
    size_t out = 0;
    if (p->text_capacity < size) {
        p->text_capacity = size < 128 ? 128 : size;
        p->text = weir_new_bytes(p->text_capacity);
    }
    for (size_t at = 0;;) {
        while (at < size && (is_space(line[at]) || line[at] == '\0'))
            at++;
        if (at == size)
            return true;
        size_t start = out;
        while (at < size && !ends_word(line[at])) {
            char c = line[at++];
            if (c != '"' && c != '\'')
                p->text[out++] = c;
            else if (!read_quoted(line, size, &at, c, p->text, &out))
                return false;
        }
        add_span(p, start, out - start);
        WR_ASSERT(out <= size);
    }
}

static int next_inline(weir_resp_commands *p, const char *input, size_t size, size_t *used)
{
    switch (wr_line_find(input, size, 0, &p->at, '\n', limit_or(p->limits.inline_max, WR_RESP_LINE_MAX_USUAL))) {
    case WR_LINE_MORE: return WEIR_RESP_MORE;
    case WR_LINE_TOO_LONG: return broken(p, "too big inline request");
    case WR_LINE_FOUND: break;
    }
    size_t length = p->at;
    if (length > 0 && input[length - 1] == '\r')
        length--;
    begin(p);
    if (!split_line(p, input, length))
        return broken(p, "unbalanced quotes in request");
    return whole(p, p->text, p->at + 1, used);
}

/* ---- multibulk commands ---- */

/* One line "<mark><number>\r\n" at p->line: WEIR_RESP_COMMAND and its number, WEIR_RESP_MORE, or what is wrong with
 * it. */
WR_INLINE int next_number(weir_resp_commands *p, const char *input, size_t size, const char *too_long,
                          const char *invalid, int64_t *out)
{
    switch (wr_line_find(input, size, p->line, &p->at, '\r', limit_or(p->limits.inline_max, WR_RESP_LINE_MAX_USUAL))) {
    case WR_LINE_MORE: return WEIR_RESP_MORE;
    case WR_LINE_TOO_LONG: return broken(p, too_long);
    case WR_LINE_FOUND: break;
    }
    if (size - p->at < 2)
        return WEIR_RESP_MORE;
    if (p->args_left > 0 && input[p->line] != '$')
        return broken_dollar(p, input[p->line]);
    if (!wr_resp_read_integer(input + p->line + 1, p->at - p->line - 1, out))
        return broken(p, invalid);
    p->at += 2;
    p->line = p->at;
    return WEIR_RESP_COMMAND;
}

static int begin_multibulk(weir_resp_commands *p, const char *input, size_t size)
{
    int64_t count = 0;
    int rc = next_number(p, input, size, "too big mbulk count string", "invalid multibulk length", &count);
    if (rc != WEIR_RESP_COMMAND)
        return rc;
    if (count > 0 && (uint64_t)count > limit_or(p->limits.args_max, WR_RESP_COUNT_MAX_USUAL))
        return broken(p, "invalid multibulk length");
    begin(p);
    p->args_left = count > 0 ? (size_t)count : 0;
    return WEIR_RESP_COMMAND;
}

static int next_length(weir_resp_commands *p, const char *input, size_t size)
{
    int64_t length = 0;
    int rc = next_number(p, input, size, "too big bulk count string", "invalid bulk length", &length);
    if (rc != WEIR_RESP_COMMAND)
        return rc;
    if (length < 0 || (uint64_t)length > limit_or(p->limits.bulk_max, WR_RESP_BULK_MAX_USUAL))
        return broken(p, "invalid bulk length");
    p->bulk_size = (size_t)length + 2;
    if (p->at + p->bulk_size > limit_or(p->limits.command_max, WR_RESP_TOTAL_MAX_USUAL))
        return broken(p, "too big request");
    return WEIR_RESP_COMMAND;
}

int weir_resp_next_command(weir_resp_commands *p, const char *input, size_t size, size_t *used)
{
    WR_CHECK(p->at <= size, "the input is shorter (%zu) than at the last call (%zu): give all of it again", size,
             p->at);
    p->need = 0;
    if (p->args_left == 0) {
        if (size == 0)
            return WEIR_RESP_MORE;
        if (input[0] != '*')
            return next_inline(p, input, size, used);
        int rc = begin_multibulk(p, input, size);
        if (rc != WEIR_RESP_COMMAND)
            return rc;
    }
    while (p->args_left > 0) {
        if (p->bulk_size == 0) {
            int rc = next_length(p, input, size);
            if (rc != WEIR_RESP_COMMAND)
                return rc;
        }
        if (size - p->at < p->bulk_size) {
            p->need = p->at + p->bulk_size;
            return WEIR_RESP_MORE;
        }
        add_span(p, p->at, p->bulk_size - 2);
        p->at += p->bulk_size;
        p->line = p->at;
        p->bulk_size = 0;
        p->args_left--;
    }
    return whole(p, input, p->at, used);
}
