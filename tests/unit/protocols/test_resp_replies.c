/* SPDX-License-Identifier: MIT */
/* tests/unit/protocols/test_resp_replies.c: the reply parser, the encoder, and the one against the other. */
#include "harness.h"
#include "protocols/resp_number.h"
#include "resp_cuts.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *const good[] = {
    "+OK\r\n-ERR no\r\n:42\r\n:-9223372036854775808\r\n$3\r\na\r\n\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n",
    "*3\r\n$1\r\na\r\n*2\r\n:1\r\n*0\r\n$-1\r\n+next\r\n",
    "*2\r\n*1\r\n*1\r\n*1\r\n+deep\r\n*3\r\n:1\r\n:2\r\n:3\r\n",
    "+\r\n-\r\n$2\r\n\r\n\r\n",
};

static void expect_same(const char *input, size_t size, cut *next, void *arg)
{
    story whole = replies_in_pieces(NULL, input, size, cut_whole, NULL);
    story pieces = replies_in_pieces(NULL, input, size, next, arg);
    EXPECT_EQ(pieces.size, whole.size);
    EXPECT_MEM(pieces.text, whole.text, whole.size);
    story_free(&whole);
    story_free(&pieces);
}

static void expect_story(const weir_resp_limits *limits, const char *input, const char *wanted)
{
    story s = replies_in_pieces(limits, input, strlen(input), cut_whole, NULL);
    EXPECT_STR(s.text, wanted);
    story_free(&s);
    s = replies_in_pieces(limits, input, strlen(input), cut_bytes, NULL);
    EXPECT_STR(s.text, wanted);
    story_free(&s);
}

static void body_good(void)
{
    expect_story(NULL, "*3\r\n$1\r\na\r\n*2\r\n:1\r\n*0\r\n$-1\r\n",
                 "[6|5@0 3 0:|3@1 0 1:a|5@1 2 0:|2@2 1 0:|5@2 0 0:|4@1 0 0:]+0");
    for (size_t i = 0; i < COUNT(good); i++) {
        size_t size = strlen(good[i]);
        for (size_t place = 1; place < size; place++)
            expect_same(good[i], size, cut_at, &place);
        expect_same(good[i], size, cut_bytes, NULL);
        for (int round = 0; round < 200; round++)
            expect_same(good[i], size, cut_random, NULL);
    }
}

TEST(resp, replies_are_the_same_however_they_are_cut)
{
    in_a_run(body_good);
}

static void body_broken(void)
{
    static const char *const rows[] = {"x\r\n",
                                       "\r\n",
                                       "+a\rb\r\n",
                                       ":1x\r\n",
                                       ":\r\n",
                                       ":01\r\n",
                                       ":9223372036854775808\r\n",
                                       "$-2\r\n",
                                       "$01\r\n",
                                       "$536870913\r\n",
                                       "$1\r\nab\r\n",
                                       "$1\r\na\r\r",
                                       "*-2\r\n",
                                       "*1048577\r\n",
                                       "*1\r\nx\r\n",
                                       "*2\r\n:1\r\n?\r\n"};
    for (size_t i = 0; i < COUNT(rows); i++)
        expect_story(NULL, rows[i], "!");
}

TEST(resp, broken_replies_are_refused)
{
    in_a_run(body_broken);
}

static void body_nesting(void)
{
    story s = {0};
    for (int i = 0; i < WEIR_RESP_DEPTH_MAX; i++)
        story_add(&s, "*1\r\n");
    story_add(&s, "*0\r\n");
    story got = replies_in_pieces(NULL, s.text, s.size, cut_whole, NULL);
    EXPECT_MEM(got.text, "[33|", 4);
    EXPECT_MEM(got.text + got.size - 12, "5@32 0 0:]+0", 12);
    story_free(&got);
    story_free(&s);
    for (int i = 0; i < 1000000; i++)
        story_add(&s, "*1\r\n");
    got = replies_in_pieces(NULL, s.text, s.size, cut_whole, NULL);
    EXPECT_STR(got.text, "!");
    story_free(&got);
    story_free(&s);
}

TEST(resp, replies_nest_to_the_limit_and_no_deeper)
{
    in_a_run(body_nesting);
}

static void body_limits(void)
{
    expect_story(&(weir_resp_limits){.bulk_max = 2}, "$2\r\nab\r\n", "[1|3@0 0 2:ab]+0");
    expect_story(&(weir_resp_limits){.bulk_max = 2}, "$3\r\nabc\r\n", "!");
    expect_story(&(weir_resp_limits){.args_max = 3}, "*2\r\n:1\r\n:2\r\n", "[3|5@0 2 0:|2@1 1 0:|2@1 2 0:]+0");
    expect_story(&(weir_resp_limits){.args_max = 2}, "*2\r\n:1\r\n:2\r\n", "!");
    expect_story(&(weir_resp_limits){.inline_max = 4}, "+abc\r\n", "[1|0@0 0 3:abc]+0");
    expect_story(&(weir_resp_limits){.inline_max = 4}, "+abcd\r\n", "!");
    expect_story(&(weir_resp_limits){.command_max = 9}, "$3\r\nabc\r\n", "[1|3@0 0 3:abc]+0");
    expect_story(&(weir_resp_limits){.command_max = 8}, "$3\r\nabc\r\n", "!");
}

TEST(resp, reply_limits_hold_exactly)
{
    in_a_run(body_limits);
}

static void body_mutated(void)
{
    static const char pieces[] = "*$:+-0123456789\r\nx";
    for (int round = 0; round < 3000; round++) {
        const char *origin = good[test_random() % COUNT(good)];
        size_t size = strlen(origin);
        char *bytes = malloc(size);
        EXPECT(bytes != NULL);
        memcpy(bytes, origin, size);
        for (uint64_t changes = 1 + test_random() % 3; changes > 0; changes--)
            bytes[test_random() % size] = pieces[test_random() % (sizeof(pieces) - 1)];
        expect_same(bytes, size, cut_random, NULL);
        expect_same(bytes, size, cut_bytes, NULL);
        free(bytes);
    }
}

TEST(resp, mutated_replies_never_depend_on_the_cuts)
{
    in_a_run(body_mutated);
}

/* ---- numbers and the encoder ---- */

static bool reads(const char *text, int64_t *value)
{
    return wr_resp_read_integer(text, strlen(text), value);
}

TEST(resp, integers_are_read_in_their_only_spelling)
{
    static const int64_t values[] = {0, 1, -1, 9, 10, -10, INT64_MAX, INT64_MIN, INT64_MAX - 1, INT64_MIN + 1};
    static const char *const wrong[] = {"",
                                        "-",
                                        "+1",
                                        "01",
                                        "-0",
                                        "-01",
                                        "1 ",
                                        " 1",
                                        "1.0",
                                        "0x1",
                                        "9223372036854775808",
                                        "-9223372036854775809",
                                        "18446744073709551616",
                                        "99999999999999999999",
                                        "--1",
                                        "1-"};
    for (size_t i = 0; i < COUNT(values); i++) {
        char text[WR_RESP_INTEGER_MAX + 1] = {0}, wanted[32];
        int64_t back = 0;
        EXPECT_EQ(wr_resp_write_integer(text, values[i]), snprintf(wanted, sizeof(wanted), "%" PRId64, values[i]));
        EXPECT_STR(text, wanted);
        EXPECT(reads(text, &back));
        EXPECT_EQ(back, values[i]);
    }
    for (size_t i = 0; i < COUNT(wrong); i++) {
        int64_t value = 0;
        EXPECT(!reads(wrong[i], &value));
    }
}

/* Writes a random value and, into `s`, what the parser has to say about it; counts its elements. */
static size_t write_random(weir_resp_text *text, story *s, unsigned depth)
{
    char bytes[300];
    size_t size = (size_t)(test_random() % sizeof(bytes));
    int64_t number = (int64_t)test_random() >> (test_random() % 64);
    size_t count = 1;
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)test_random();
    switch (test_random() % (depth < 5 ? 5 : 4)) {
    case 0:
        weir_resp_put_integer(text, number);
        story_add(s, "|%d@%u %" PRId64 " 0:", WEIR_RESP_INTEGER, depth, number);
        break;
    case 1:
        weir_resp_put_bulk(text, bytes, size);
        story_add(s, "|%d@%u 0 %zu:", WEIR_RESP_BULK, depth, size);
        story_add_bytes(s, bytes, size);
        break;
    case 2:
        if (number & 1)
            weir_resp_put_null(text);
        else
            weir_resp_put_null_array(text);
        story_add(s, "|%d@%u 0 0:", WEIR_RESP_NULL, depth);
        break;
    case 3:
        weir_resp_put_error(text, "ERR x");
        story_add(s, "|%d@%u 0 5:ERR x", WEIR_RESP_ERROR, depth);
        break;
    default: {
        size_t elements = (size_t)(test_random() % 5);
        weir_resp_put_array(text, elements);
        story_add(s, "|%d@%u %zu 0:", WEIR_RESP_ARRAY, depth, elements);
        for (size_t i = 0; i < elements; i++)
            count += write_random(text, s, depth + 1);
    }
    }
    return count;
}

static void body_round_trip(void)
{
    for (int round = 0; round < 500; round++) {
        weir_resp_text text = {0};
        story inner = {0}, wanted = {0};
        size_t count = write_random(&text, &inner, 0);
        story_add(&wanted, "[%zu", count);
        story_add_bytes(&wanted, inner.text, inner.size);
        story_add(&wanted, "]+0");
        story got = replies_in_pieces(NULL, text.bytes, text.size, cut_random, NULL);
        EXPECT_EQ(got.size, wanted.size);
        EXPECT_MEM(got.text, wanted.text, wanted.size);
        story_free(&inner);
        story_free(&wanted);
        story_free(&got);
    }
}

TEST(resp, what_is_written_is_read_back)
{
    in_a_run(body_round_trip);
}

static void body_line_ends(void)
{
    weir_resp_text text = {0};
    weir_resp_put_error(&text, "ERR a\r\nb\nc");
    weir_resp_put_simple(&text, "x\ry");
    EXPECT_EQ(text.size, strlen("-ERR a  b c\r\n+x y\r\n"));
    EXPECT_MEM(text.bytes, "-ERR a  b c\r\n+x y\r\n", text.size);
    char header[32];
    EXPECT_EQ(weir_resp_bulk_header(header, 1234567), 10);
    EXPECT_MEM(header, "$1234567\r\n", 10);
}

TEST(resp, line_ends_in_errors_and_simple_strings_become_spaces)
{
    in_a_run(body_line_ends);
}

static void body_growth(void)
{
    weir_resp_text text = {0};
    size_t total = 0;
    weir_resp_put(&text, NULL, 0);
    EXPECT_EQ(text.size, 0);
    for (unsigned i = 0; i < 3000; i++) {
        char piece[64];
        memset(piece, (char)i, sizeof(piece));
        weir_resp_put(&text, piece, i % sizeof(piece));
        total += i % sizeof(piece);
    }
    EXPECT_EQ(text.size, total);
    size_t at = 0;
    for (unsigned i = 0; i < 3000; i++) {
        for (unsigned k = 0; k < i % 64; k++)
            EXPECT(text.bytes[at++] == (char)i);
    }
}

TEST(resp, a_text_grows_without_losing_bytes)
{
    in_a_run(body_growth);
}
