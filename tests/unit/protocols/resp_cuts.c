/* SPDX-License-Identifier: MIT */
/* tests/unit/protocols/resp_cuts.c: see resp_cuts.h. */
#include "resp_cuts.h"
#include "harness.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void make_room(story *s, size_t room)
{
    while (s->capacity - s->size < room) {
        s->capacity = s->capacity == 0 ? 256 : s->capacity * 2;
        s->text = realloc(s->text, s->capacity);
        EXPECT(s->text != NULL);
    }
}

void story_add(story *s, const char *format, ...)
{
    char line[512];
    va_list values;
    va_start(values, format);
    int size = vsnprintf(line, sizeof(line), format, values);
    va_end(values);
    EXPECT(size >= 0 && (size_t)size < sizeof(line));
    story_add_bytes(s, line, (size_t)size);
}

void story_add_bytes(story *s, const char *bytes, size_t size)
{
    make_room(s, size + 1);
    if (size > 0)
        memcpy(s->text + s->size, bytes, size);
    s->size += size;
    s->text[s->size] = '\0';
}

void story_free(story *s)
{
    free(s->text);
    *s = (story){0};
}

size_t cut_whole(void *arg, size_t at, size_t size)
{
    (void)arg;
    return size - at;
}

size_t cut_bytes(void *arg, size_t at, size_t size)
{
    (void)arg;
    (void)at;
    (void)size;
    return 1;
}

size_t cut_at(void *arg, size_t at, size_t size)
{
    size_t place = *(size_t *)arg;
    return at < place ? place - at : size - at;
}

size_t cut_random(void *arg, size_t at, size_t size)
{
    (void)arg;
    size_t most = size - at < 40 ? size - at : 40;
    return 1 + (size_t)(test_random() % most);
}

/* What is still to be parsed, at a new address. */
typedef struct feed {
    char *bytes;
    size_t size;
} feed;

static void feed_replace(feed *f, const char *rest, size_t rest_size, const char *more, size_t more_size)
{
    char *bytes = malloc(rest_size + more_size > 0 ? rest_size + more_size : 1);
    EXPECT(bytes != NULL);
    if (rest_size > 0)
        memcpy(bytes, rest, rest_size);
    if (more_size > 0)
        memcpy(bytes + rest_size, more, more_size);
    free(f->bytes);
    *f = (feed){bytes, rest_size + more_size};
}

typedef struct resp_parsers {
    weir_resp_commands commands;
    weir_resp_replies *replies;
} resp_parsers;
WEIR_UNTYPED(resp_parsers);

static void tell_command(story *s, const weir_resp_commands *p)
{
    story_add(s, "[%zu", p->count);
    for (size_t i = 0; i < p->count; i++) {
        story_add(s, "|%zu:", p->args[i].size);
        story_add_bytes(s, p->args[i].bytes, p->args[i].size);
    }
    story_add(s, "]");
}

static void tell_reply(story *s, const weir_resp_value *values, size_t count)
{
    story_add(s, "[%zu", count);
    for (size_t i = 0; i < count; i++) {
        const weir_resp_value *v = &values[i];
        story_add(s, "|%d@%u %lld %zu:", (int)v->kind, v->depth, (long long)v->integer, v->size);
        if (v->size > 0)
            story_add_bytes(s, v->bytes, v->size);
    }
    story_add(s, "]");
}

/* One step of either parser: what weir_resp_next_... returned. */
static int step(resp_parsers *p, const feed *f, story *s, size_t *used, size_t *need)
{
    int rc;
    if (p->replies != NULL) {
        const weir_resp_value *values = NULL;
        size_t count = 0;
        rc = weir_resp_next_reply(p->replies, f->bytes, f->size, used, &values, &count);
        *need = weir_resp_replies_need(p->replies);
        if (rc > 0)
            tell_reply(s, values, count);
    } else {
        rc = weir_resp_next_command(&p->commands, f->bytes, f->size, used);
        *need = p->commands.need;
        if (rc > 0)
            tell_command(s, &p->commands);
        else if (rc < 0)
            story_add(s, "{%s}", p->commands.error);
    }
    return rc;
}

static story in_pieces(resp_parsers *p, const char *input, size_t size, cut *next, void *arg)
{
    story s = {0};
    feed f = {0};
    story_add(&s, "%s", "");
    for (size_t at = 0; at < size;) {
        size_t piece = next(arg, at, size), used = 0, need = 0;
        if (piece > size - at)
            piece = size - at;
        feed_replace(&f, f.bytes, f.size, input + at, piece);
        at += piece;
        int rc;
        while ((rc = step(p, &f, &s, &used, &need)) > 0) {
            EXPECT(used > 0 && used <= f.size);
            feed_replace(&f, f.bytes + used, f.size - used, NULL, 0);
        }
        if (rc < 0) {
            EXPECT_EQ(rc, WEIR_EPROTO);
            story_add(&s, "!");
            free(f.bytes);
            return s;
        }
        EXPECT(need == 0 || need > f.size);
    }
    story_add(&s, "+%zu", f.size);
    free(f.bytes);
    return s;
}

story commands_in_pieces(const weir_resp_limits *limits, const char *input, size_t size, cut *next, void *arg)
{
    resp_parsers *p = weir_new(resp_parsers);
    if (limits != NULL)
        p->commands.limits = *limits;
    return in_pieces(p, input, size, next, arg);
}

story replies_in_pieces(const weir_resp_limits *limits, const char *input, size_t size, cut *next, void *arg)
{
    resp_parsers *p = weir_new(resp_parsers);
    p->replies = weir_resp_replies_new(limits);
    return in_pieces(p, input, size, next, arg);
}

static void start(void *arg)
{
    void (*body)(void);
    memcpy(&body, arg, sizeof(body));
    body();
}

void in_a_run(void (*body)(void))
{
    weir_options options = {.threads = 1};
    EXPECT_EQ(weir_run(&options, start, &body), 0);
}
