/* SPDX-License-Identifier: MIT */
/* The write queue against a plain array of bytes. */
#include "harness.h"
#include "platform/fail.h"
#include "streams/write_queue.h"

#include <stdlib.h>
#include <string.h>
#include <weir/weir.h>

typedef struct holder {
    wr_write_queue queue;
} holder;
static const weir_field holder_fields[] = {WR_QUEUE_FIELDS(offsetof(holder, queue)), {0, 0}};
static const weir_type holder_type = {"holder", sizeof(holder), 8, 0, holder_fields, NULL};

static void in_run(void (*body)(void *arg))
{
    weir_options options = {.threads = 1};
    EXPECT_OK(weir_run(&options, body, NULL));
}

static void small_writes(void *arg)
{
    (void)arg;
    holder *h = weir_alloc(&holder_type, sizeof *h);
    wr_slice slices[4];
    size_t total;
    for (unsigned i = 0; i < 100; i++)
        EXPECT_OK(wr_queue_copy(&h->queue, "0123456789", 10));
    EXPECT_EQ(wr_queue_slices(&h->queue, slices, 4, &total), 1);
    EXPECT_EQ(total, 1000);
    EXPECT(h->queue.ring == NULL);
    wr_queue_consume(&h->queue, 1000);
    EXPECT(h->queue.first == NULL);
    wr_queue_check(&h->queue);
}

TEST(write_queue, small_writes_become_one_piece_and_leave_nothing)
{
    in_run(small_writes);
}

static void mixed(void *arg)
{
    (void)arg;
    holder *h = weir_alloc(&holder_type, sizeof *h);
    wr_slice slices[8];
    size_t total;
    char *large = weir_new_bytes(5000);
    EXPECT_OK(wr_queue_copy(&h->queue, "head", 4));
    wr_queue_reference(&h->queue, large, 5000, large);
    EXPECT_OK(wr_queue_copy(&h->queue, "tail", 4));
    EXPECT_OK(wr_queue_copy(&h->queue, "more", 4));
    EXPECT_EQ(wr_queue_slices(&h->queue, slices, 8, &total), 3);
    EXPECT_EQ(total, 5012);
    EXPECT_MEM(slices[0].base, "head", 4);
    EXPECT(slices[1].base == large);
    EXPECT_EQ(slices[2].size, 8);
    EXPECT_MEM(slices[2].base, "tailmore", 8);
    wr_queue_consume(&h->queue, 4 + 4999);
    EXPECT_EQ(wr_queue_slices(&h->queue, slices, 8, &total), 2);
    EXPECT(slices[0].base == large + 4999 && slices[0].size == 1);
    wr_queue_check(&h->queue);
    wr_queue_clear(&h->queue);
    wr_queue_check(&h->queue);
    EXPECT_EQ(h->queue.bytes, 0);
}

TEST(write_queue, references_stay_in_order_between_copies)
{
    in_run(mixed);
}

#define MODEL_MAX ((size_t)1 << 20)

static void against_model(void *arg)
{
    (void)arg;
    holder *h = weir_alloc(&holder_type, sizeof *h);
    char *model = malloc(MODEL_MAX), *text = malloc(70000);
    size_t begin = 0, end = 0;
    for (unsigned step = 0; step < 30000; step++) {
        uint64_t r = test_random();
        size_t size = 1 + (r >> 8) % (r % 16 == 0 ? 70000 : r % 4 == 0 ? 5000 : 100);
        if (r % 3 != 0 && end + size <= MODEL_MAX) {
            for (size_t i = 0; i < size; i++)
                text[i] = (char)(r >> i % 56);
            memcpy(model + end, text, size);
            end += size;
            if (r % 5 == 0) {
                char *owned = weir_new_bytes(size);
                memcpy(owned, text, size);
                wr_queue_reference(&h->queue, owned, size, owned);
            } else {
                EXPECT_OK(wr_queue_copy(&h->queue, text, size));
            }
        } else {
            wr_slice slices[64];
            size_t total, checked = 0;
            unsigned count = wr_queue_slices(&h->queue, slices, 64, &total);
            for (unsigned i = 0; i < count; i++) {
                EXPECT_MEM(slices[i].base, model + begin + checked, slices[i].size);
                checked += slices[i].size;
            }
            EXPECT_EQ(checked, total);
            size_t taken = r % 7 == 0 ? total : total == 0 ? 0 : (r >> 16) % total;
            wr_queue_consume(&h->queue, taken);
            begin += taken;
        }
        EXPECT_EQ(h->queue.bytes, end - begin);
        wr_queue_check(&h->queue);
        if (end > MODEL_MAX / 2) {
            memmove(model, model + begin, end - begin);
            end -= begin;
            begin = 0;
        }
        if (end > MODEL_MAX / 2 || r % 1000 == 0) {
            wr_queue_clear(&h->queue);
            begin = end = 0;
        }
    }
    free(model);
    free(text);
    wr_queue_clear(&h->queue);
}

TEST(write_queue, random_use_equals_a_plain_array)
{
    in_run(against_model);
}

static int fail_commit(void *arg, wr_fail_kind kind, uint64_t nth)
{
    (void)arg;
    (void)nth;
    return kind == WR_FAIL_COMMIT ? -ENOMEM : 0;
}

static void without_memory(void *arg)
{
    (void)arg;
    holder *h = weir_alloc(&holder_type, sizeof *h);
    char *large = malloc((size_t)256 << 20);
    memset(large, 'x', (size_t)256 << 20);
    EXPECT_OK(wr_queue_copy(&h->queue, "before", 6));
    wr_fail_install(fail_commit, NULL);
    int code = 0;
    size_t bytes = 6;
    while (code == 0) {
        bytes = h->queue.bytes;
        code = wr_queue_copy(&h->queue, large, (size_t)256 << 20);
    }
    wr_fail_install(NULL, NULL);
    EXPECT_EQ(code, WEIR_ENOMEM);
    EXPECT_EQ(h->queue.bytes, bytes);
    wr_queue_check(&h->queue);
    wr_queue_clear(&h->queue);
    free(large);
}

TEST(write_queue, without_memory_nothing_is_queued)
{
    in_run(without_memory);
}
