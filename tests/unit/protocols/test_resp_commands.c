/* SPDX-License-Identifier: MIT */
/* tests/unit/protocols/test_resp_commands.c: the command parser. */
#include "harness.h"
#include "resp_cuts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct sample {
    const char *bytes;
    size_t size;
} sample;

#define SAMPLE(text) \
    { \
        text, sizeof(text) - 1 \
    }

static const sample good[] = {
    SAMPLE("*1\r\n$4\r\nPING\r\n"),
    SAMPLE("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"),
    SAMPLE("*2\r\n$3\r\nGET\r\n$6\r\n\r\n\0\xff$*\r\n"),
    SAMPLE("*0\r\n*-1\r\n*-77\r\n\r\n\n   \r\nPING\r\n*1\r\n$1\r\nx\r\n"),
    SAMPLE("*10\r\n$1\r\n0\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n4\r\n$1\r\n5\r\n$1\r\n6\r\n$1\r\n7\r\n$1\r\n8\r\n$"
           "2\r\n99\r\n"),
    SAMPLE("SET k \"a b\\x41\\n\" 'c\\'d'\r\nGET k\nPING \"\"\r\n"),
    SAMPLE("*1\rX$4\rXPINGabGET k\r\n"),
    SAMPLE("*2\r\n$4\r\nECHO\r\n$30\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\nPIN\r\n*1\r\n"),
};

static const sample bad[] = {
    SAMPLE("*1\r\n$4\r\nPING\r\n*x\r\n"),
    SAMPLE("*1\r\n$-1\r\n"),
    SAMPLE("*2\r\n$3\r\nGET\r\n:1\r\n"),
    SAMPLE("PING\r\nPING \"open\r\nPING\r\n"),
    SAMPLE("*9223372036854775808\r\n$1\r\n"),
    SAMPLE("*1\r\n$9223372036854775807\r\nx"),
    SAMPLE("*1\r\n\r\n"),
    SAMPLE("*\r\n"),
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void expect_same(const sample *s, cut *next, void *arg)
{
    story whole = commands_in_pieces(NULL, s->bytes, s->size, cut_whole, NULL);
    story pieces = commands_in_pieces(NULL, s->bytes, s->size, next, arg);
    EXPECT_EQ(pieces.size, whole.size);
    EXPECT_MEM(pieces.text, whole.text, whole.size);
    story_free(&whole);
    story_free(&pieces);
}

static void cut_everywhere(const sample *samples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t place = 1; place < samples[i].size; place++)
            expect_same(&samples[i], cut_at, &place);
        expect_same(&samples[i], cut_bytes, NULL);
        for (int round = 0; round < 200; round++)
            expect_same(&samples[i], cut_random, NULL);
    }
}

static void expect_story(const char *input, size_t size, const char *wanted)
{
    story s = commands_in_pieces(NULL, input, size, cut_whole, NULL);
    EXPECT_STR(s.text, wanted);
    story_free(&s);
}

static void body_good(void)
{
    expect_story(good[0].bytes, good[0].size, "[1|4:PING]+0");
    expect_story(good[1].bytes, good[1].size, "[3|3:SET|1:k|0:][2|3:GET|1:k]+0");
    expect_story(good[3].bytes, good[3].size, "[0][0][0][0][0][0][1|4:PING][1|1:x]+0");
    expect_story(good[6].bytes, good[6].size, "[1|4:PING][2|3:GET|1:k]+0");
    cut_everywhere(good, COUNT(good));
}

TEST(resp, commands_are_the_same_however_they_are_cut)
{
    in_a_run(body_good);
}

static void body_bad(void)
{
    expect_story(bad[0].bytes, bad[0].size, "[1|4:PING]{Protocol error: invalid multibulk length}!");
    expect_story(bad[3].bytes, bad[3].size, "[1|4:PING]{Protocol error: unbalanced quotes in request}!");
    cut_everywhere(bad, COUNT(bad));
}

TEST(resp, broken_commands_fail_the_same_however_they_are_cut)
{
    in_a_run(body_bad);
}

static void body_inline(void)
{
    static const struct {
        const char *line, *wanted;
    } rows[] = {
        {"PING\r\n", "[1|4:PING]+0"},
        {"  a\t b \r\n", "[2|1:a|1:b]+0"},
        {"a\rb\n", "[2|1:a|1:b]+0"},
        {"\"a b\" c\r\n", "[2|3:a b|1:c]+0"},
        {"\"\\x41\\x7a\\xZZ\\n\\r\\t\\b\\a\\q\\\\\\\"\"\r\n", "[1|13:AzxZZ\n\r\t\b\aq\\\"]+0"},
        {"'a\\nb\\'c\"'\r\n", "[1|7:a\\nb'c\"]+0"},
        {"x\"y z\"\r\n", "[1|4:xy z]+0"},
        {"\"\" ''\r\n", "[2|0:|0:]+0"},
        {"back\\slash\r\n", "[1|10:back\\slash]+0"},
        {"\"a\"b\r\n", "{Protocol error: unbalanced quotes in request}!"},
        {"'a'b\r\n", "{Protocol error: unbalanced quotes in request}!"},
        {"\"a\r\n", "{Protocol error: unbalanced quotes in request}!"},
        {"'a\r\n", "{Protocol error: unbalanced quotes in request}!"},
        {"\"a\\\"\r\n", "{Protocol error: unbalanced quotes in request}!"},
        {"\"a\\\r\n", "{Protocol error: unbalanced quotes in request}!"},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        expect_story(rows[i].line, strlen(rows[i].line), rows[i].wanted);
}

TEST(resp, inline_commands_follow_the_quoting_rules)
{
    in_a_run(body_inline);
}

static void expect_long(const char *head, char filler, const char *wanted)
{
    size_t head_size = strlen(head), size = head_size + 70000;
    char *input = malloc(size);
    EXPECT(input != NULL);
    memcpy(input, head, head_size);
    memset(input + head_size, filler, size - head_size);
    expect_story(input, size, wanted);
    sample s = {input, size};
    size_t place = 65536;
    expect_same(&s, cut_at, &place);
    free(input);
}

static void body_errors(void)
{
    static const struct {
        const char *input, *text;
    } rows[] = {
        {"*abc\r\n", "invalid multibulk length"},
        {"*01\r\n", "invalid multibulk length"},
        {"*+1\r\n", "invalid multibulk length"},
        {"* 1\r\n", "invalid multibulk length"},
        {"*-0\r\n", "invalid multibulk length"},
        {"*1048577\r\n", "invalid multibulk length"},
        {"*18446744073709551617\r\n", "invalid multibulk length"},
        {"*1\r\n$-1\r\n", "invalid bulk length"},
        {"*1\r\n$\r\n", "invalid bulk length"},
        {"*1\r\n$4x\r\n", "invalid bulk length"},
        {"*1\r\n$536870913\r\n", "invalid bulk length"},
        {"*1\r\n$18446744073709551620\r\n", "invalid bulk length"},
        {"*1\r\nPING\r\n", "expected '$', got 'P'"},
        {"*1\r\n\r\n", "expected '$', got ' '"},
        {"*1\r\n*1\r\n", "expected '$', got '*'"},
    };
    char wanted[128];
    for (size_t i = 0; i < COUNT(rows); i++) {
        snprintf(wanted, sizeof(wanted), "{Protocol error: %s}!", rows[i].text);
        expect_story(rows[i].input, strlen(rows[i].input), wanted);
    }
    expect_story("*1\r\n\0\r\n", 7, "{Protocol error: expected '$', got ' '}!");
    expect_long("", 'a', "{Protocol error: too big inline request}!");
    expect_long("*", '1', "{Protocol error: too big mbulk count string}!");
    expect_long("*1\r\n$", '1', "{Protocol error: too big bulk count string}!");
}

TEST(resp, protocol_errors_have_the_texts_of_redis)
{
    in_a_run(body_errors);
}

/* ---- bounds ---- */

typedef struct resp_parser_holder {
    weir_resp_commands parser;
} resp_parser_holder;
WEIR_UNTYPED(resp_parser_holder);

static int next(weir_resp_commands *p, const char *input)
{
    size_t used = 0;
    return weir_resp_next_command(p, input, strlen(input), &used);
}

static void body_claims(void)
{
    static const char *const claims[] = {"*1048576\r\n", "*1\r\n$536870912\r\n", "*1048576\r\n$536870912\r\nabc"};
    for (size_t i = 0; i < COUNT(claims); i++) {
        weir_resp_commands *p = &weir_new(resp_parser_holder)->parser;
        EXPECT_EQ(next(p, claims[i]), WEIR_RESP_MORE);
        EXPECT_EQ(p->capacity, 0);
        EXPECT_EQ(p->args_capacity, 0);
        EXPECT(p->spans == NULL && p->args == NULL && p->text == NULL);
    }
    weir_resp_commands *p = &weir_new(resp_parser_holder)->parser;
    EXPECT_EQ(next(p, "*1048576\r\n$1\r\na\r\n$1\r\nb\r\n"), WEIR_RESP_MORE);
    EXPECT_EQ(p->count, 2);
    EXPECT(p->capacity <= 16);
}

TEST(resp, a_claimed_length_allocates_nothing)
{
    in_a_run(body_claims);
}

static void body_need(void)
{
    weir_resp_commands *p = &weir_new(resp_parser_holder)->parser;
    EXPECT_EQ(next(p, "*2\r\n$3\r\nGET\r\n"), WEIR_RESP_MORE);
    EXPECT_EQ(p->need, 0);
    EXPECT_EQ(next(p, "*2\r\n$3\r\nGET\r\n$1000\r\n"), WEIR_RESP_MORE);
    EXPECT_EQ(p->need, 13 + 7 + 1000 + 2);
    EXPECT_EQ(next(p, "*2\r\n$3\r\nGET\r\n$1000\r\nabc"), WEIR_RESP_MORE);
    EXPECT_EQ(p->need, 13 + 7 + 1000 + 2);
}

TEST(resp, need_is_what_the_current_argument_needs)
{
    in_a_run(body_need);
}

static void expect_limited(weir_resp_limits limits, const char *input, const char *wanted)
{
    story s = commands_in_pieces(&limits, input, strlen(input), cut_whole, NULL);
    EXPECT_STR(s.text, wanted);
    story_free(&s);
    s = commands_in_pieces(&limits, input, strlen(input), cut_bytes, NULL);
    EXPECT_STR(s.text, wanted);
    story_free(&s);
}

static void body_limits(void)
{
    expect_limited((weir_resp_limits){.bulk_max = 3}, "*1\r\n$3\r\nabc\r\n", "[1|3:abc]+0");
    expect_limited((weir_resp_limits){.bulk_max = 3}, "*1\r\n$4\r\nabcd\r\n", "{Protocol error: invalid bulk length}!");
    expect_limited((weir_resp_limits){.args_max = 2}, "*2\r\n$0\r\n\r\n$0\r\n\r\n", "[2|0:|0:]+0");
    expect_limited((weir_resp_limits){.args_max = 2}, "*3\r\n", "{Protocol error: invalid multibulk length}!");
    expect_limited((weir_resp_limits){.inline_max = 4}, "abcd\n", "[1|4:abcd]+0");
    expect_limited((weir_resp_limits){.inline_max = 4}, "abcde\n", "{Protocol error: too big inline request}!");
    expect_limited((weir_resp_limits){.command_max = 14}, "*1\r\n$4\r\nPING\r\n", "[1|4:PING]+0");
    expect_limited((weir_resp_limits){.command_max = 13}, "*1\r\n$4\r\nPING\r\n", "{Protocol error: too big request}!");
}

TEST(resp, limits_hold_exactly)
{
    in_a_run(body_limits);
}

static void body_line(void)
{
    weir_resp_commands *p = &weir_new(resp_parser_holder)->parser;
    static char line[5001];
    memset(line, 'a', 5000);
    for (size_t size = 1; size < 5000; size++) {
        size_t used = 0;
        EXPECT_EQ(weir_resp_next_command(p, line, size, &used), WEIR_RESP_MORE);
        EXPECT_EQ(p->at, size);
    }
}

TEST(resp, an_unfinished_line_is_not_read_twice)
{
    in_a_run(body_line);
}

static void body_huge(void)
{
    enum { ARGS = 100000 };
    story s = {0};
    story_add(&s, "*%d\r\n", ARGS);
    for (int i = 0; i < ARGS; i++)
        story_add(&s, "$1\r\n%d\r\n", i % 10);
    weir_resp_commands *p = &weir_new(resp_parser_holder)->parser;
    size_t used = 0;
    EXPECT_EQ(weir_resp_next_command(p, s.text, s.size, &used), WEIR_RESP_COMMAND);
    EXPECT_EQ(used, s.size);
    EXPECT_EQ(p->count, ARGS);
    for (size_t i = 0; i < ARGS; i++)
        EXPECT(p->args[i].size == 1 && p->args[i].bytes[0] == (char)('0' + i % 10));
    EXPECT_EQ(next(p, "*1\r\n$1\r\nx\r\n"), WEIR_RESP_COMMAND);
    EXPECT(p->capacity <= 1024 && p->args_capacity <= 1024);
    story_free(&s);
}

TEST(resp, arrays_of_a_huge_command_are_let_go)
{
    in_a_run(body_huge);
}

/* ---- random damage ---- */

static char *damaged(const sample *s, size_t *size)
{
    static const char pieces[] = "*$0123456789\r\n-+\"'\\ x\0\xff";
    char *bytes = malloc(s->size + 8);
    EXPECT(bytes != NULL);
    memcpy(bytes, s->bytes, s->size);
    *size = s->size;
    for (uint64_t changes = 1 + test_random() % 4; changes > 0; changes--) {
        size_t at = (size_t)(test_random() % *size);
        char c = pieces[test_random() % (sizeof(pieces) - 1)];
        switch (test_random() % 3) {
        case 0: bytes[at] = c; break;
        case 1:
            memmove(bytes + at + 1, bytes + at, *size - at);
            bytes[at] = c;
            *size += 1;
            break;
        default:
            if (*size > 1) {
                memmove(bytes + at, bytes + at + 1, *size - at - 1);
                *size -= 1;
            }
        }
    }
    return bytes;
}

static void body_mutated(void)
{
    for (int round = 0; round < 3000; round++) {
        size_t size = 0, which = (size_t)(test_random() % (COUNT(good) + COUNT(bad)));
        char *bytes = damaged(which < COUNT(good) ? &good[which] : &bad[which - COUNT(good)], &size);
        sample s = {bytes, size};
        expect_same(&s, cut_random, NULL);
        expect_same(&s, cut_bytes, NULL);
        free(bytes);
    }
}

TEST(resp, mutated_commands_never_depend_on_the_cuts)
{
    in_a_run(body_mutated);
}
