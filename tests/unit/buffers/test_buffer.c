/* SPDX-License-Identifier: MIT */
/* Buffers and stores: constant addresses, slices, sharing, release exactly once. */
#include "actors/services.h"
#include "harness.h"
#include "platform/fail.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <weir/weir.h>

#define KINDS 6
#define N 3 /* a user's own short name: WEIR_ACTOR, weir_send and their like must not meet it */

static void run(unsigned threads, void (*start)(void *arg), void *arg)
{
    weir_options options = {.threads = threads};
    EXPECT_OK(weir_run(&options, start, arg));
}

/* Zeroed, with `left` collections between here and `then`: an actor that sends to itself. */
typedef struct later {
    void **keep; /* what must stay reachable */
    void (*then)(void **keep);
} later;
WEIR_ACTOR(later, keep);

typedef struct again {
    unsigned left;
} again;

WEIR_BEHAVIOUR(later, again)
{
    if (msg->left == 0) {
        self->then(self->keep);
        return;
    }
    for (unsigned i = 0; i < 1000; i++) /* what dies shall be written over if it is freed */
        memset(weir_new_bytes(16 + i), 0xAA, 16 + i);
    weir_collect_soon();
    weir_send(weir_self(later), later, again, .left = msg->left - 1);
}

typedef struct prepare {
    void **(*make)(void);
} prepare;

WEIR_BEHAVIOUR(later, prepare)
{
    self->keep = msg->make();
    weir_collect_soon();
    weir_send(weir_self(later), later, again, .left = 3);
}

typedef struct plan {
    void **(*make)(void);
    void (*then)(void **keep);
} plan;

static void start_later(void *arg)
{
    const plan *p = arg;
    later_ref actor = weir_spawn(later, .then = p->then);
    EXPECT_OK(weir_send(actor, later, prepare, .make = p->make));
}

/* make() in one behaviour, three collections, then(what make returned). */
static void over_collections(void **(*make)(void), void (*then)(void **keep))
{
    plan p = {make, then};
    run(1, start_later, &p);
}

static void fill_pattern(weir_buf *buf, unsigned seed)
{
    unsigned char *bytes = weir_buf_data(buf);
    for (size_t i = 0; i < weir_buf_length(buf); i++)
        bytes[i] = (unsigned char)(i * 31 + seed);
}

static bool has_pattern(weir_buf *buf, size_t offset, unsigned seed)
{
    const unsigned char *bytes = weir_buf_data(buf);
    for (size_t i = 0; i < weir_buf_length(buf); i++) {
        if (bytes[i] != (unsigned char)((i + offset) * 31 + seed))
            return false;
    }
    return true;
}

static char foreign[5000];

static const size_t kind_lengths[KINDS] = {1, 2048, 2049, 100000, 5000, 300};

static void **make_kinds(void)
{
    void **keep = weir_new_refs(3 * KINDS);
    weir_buf *buf[KINDS];
    EXPECT_OK(weir_buf_new(kind_lengths[0], &buf[0]));
    EXPECT_OK(weir_buf_new(kind_lengths[1], &buf[1]));
    EXPECT_OK(weir_buf_new(kind_lengths[2], &buf[2]));
    EXPECT_OK(weir_buf_new_store(kind_lengths[3], &buf[3]));
    EXPECT_OK(weir_buf_wrap(foreign, sizeof foreign, NULL, NULL, &buf[4]));
    for (unsigned i = 0; i < 5; i++)
        fill_pattern(buf[i], i);
    EXPECT_OK(weir_buf_slice(buf[1], 700, 300, &buf[5]));
    for (unsigned i = 0; i < KINDS; i++) {
        keep[3 * i] = buf[i];
        /* Addresses are noted in disguise, so that they keep nothing alive. */
        keep[3 * i + 1] = (void *)~(uintptr_t)weir_buf_data(buf[i]);
        keep[3 * i + 2] = (void *)~(uintptr_t)weir_buf_store(buf[i]);
    }
    EXPECT(weir_buf_store(buf[0]) == NULL && weir_buf_store(buf[1]) == NULL && weir_buf_store(buf[5]) == NULL);
    EXPECT(weir_buf_store(buf[2]) != NULL && weir_buf_store(buf[3]) != NULL && weir_buf_store(buf[4]) != NULL);
    return keep;
}

static void check_kinds(void **keep)
{
    for (unsigned i = 0; i < KINDS; i++) {
        weir_buf *buf = keep[3 * i];
        EXPECT_EQ(weir_buf_length(buf), kind_lengths[i]);
        EXPECT(weir_buf_data(buf) == (void *)~(uintptr_t)keep[3 * i + 1]);
        EXPECT(weir_buf_store(buf) == (void *)~(uintptr_t)keep[3 * i + 2]);
        EXPECT_EQ((uintptr_t)weir_buf_data(buf) % 4, i == 4 ? (uintptr_t)foreign % 4 : 0);
        EXPECT(i == 5 ? has_pattern(buf, 700, 1) : has_pattern(buf, 0, i));
    }
}

TEST(buffers, every_kind_keeps_address_length_and_bytes)
{
    over_collections(make_kinds, check_kinds);
}

static void create_each(void *arg)
{
    (void)arg;
    static const char zeros[5000];
    char text[5000];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)test_random();
    const size_t lengths[] = {0, 1, 7, 8, 100, 2047, 2048, 2049, 5000};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        weir_buf *zeroed, *copied, *raw, *store;
        EXPECT_OK(weir_buf_new(lengths[i], &zeroed));
        EXPECT_MEM(weir_buf_data(zeroed), zeros, lengths[i]);
        memset(weir_buf_data(zeroed), 1, lengths[i]);
        EXPECT_OK(weir_buf_from(text, lengths[i], &copied));
        EXPECT_MEM(weir_buf_data(copied), text, lengths[i]);
        EXPECT_OK(weir_buf_new_uninitialised(lengths[i], &raw));
        memset(weir_buf_data(raw), 2, lengths[i]);
        EXPECT_OK(weir_buf_new_store(lengths[i], &store));
        memset(weir_buf_data(store), 3, lengths[i]);
        EXPECT_EQ((uintptr_t)weir_buf_data(store) % 16, 0);
        EXPECT_EQ(weir_store_size(weir_buf_store(store)), lengths[i]);
        EXPECT_EQ((uintptr_t)weir_buf_data(copied) % 8, 0);
        EXPECT_MEM(weir_buf_data(copied), text, lengths[i]);
    }
}

TEST(buffers, creation_is_zeroed_or_copied_as_named)
{
    run(1, create_each, NULL);
}

static void expect_outside(void *arg)
{
    (void)arg;
    weir_buf *buf;
    EXPECT_OK(weir_buf_new(1, &buf));
    EXPECT(weir_buf_store(buf) != NULL);
    EXPECT_EQ(*(char *)weir_buf_data(buf), 0);
}

TEST(buffers, inline_limit_zero_puts_all_outside)
{
    weir_options options = {.buffer_inline_max = WEIR_BUFFERS_OUTSIDE};
    EXPECT_OK(weir_run(&options, expect_outside, NULL));
    EXPECT_EQ(setenv("WEIR_BUFFER_INLINE_MAX", "0", 1), 0);
    run(1, expect_outside, NULL);
}

static void ask_too_much(void *arg)
{
    (void)arg;
    weir_buf *buf = (weir_buf *)&buf;
    EXPECT_EQ(weir_buf_new(WEIR_BUF_MAX + 1, &buf), WEIR_ERANGE);
    EXPECT(buf == NULL);
    EXPECT_EQ(weir_buf_new_store(SIZE_MAX, &buf), WEIR_ERANGE);
    EXPECT_EQ(weir_buf_wrap(foreign, WEIR_BUF_MAX + 1, NULL, NULL, &buf), WEIR_ERANGE);
    EXPECT_EQ(weir_buf_from(foreign, SIZE_MAX, &buf), WEIR_ERANGE);
}

TEST(buffers, too_long_is_refused)
{
    run(1, ask_too_much, NULL);
}

static void slice_each(void *arg)
{
    (void)arg;
    for (unsigned outside = 0; outside < 2; outside++) {
        weir_buf *whole, *part, *inner, *none = (weir_buf *)&none;
        EXPECT_OK(outside ? weir_buf_new_store(1000, &whole) : weir_buf_new(1000, &whole));
        fill_pattern(whole, 9);
        EXPECT_OK(weir_buf_slice(whole, 100, 800, &part));
        EXPECT_OK(weir_buf_slice(part, 50, 10, &inner));
        EXPECT(has_pattern(inner, 150, 9));
        ((char *)weir_buf_data(whole))[150] = 'x';
        EXPECT_EQ(*(char *)weir_buf_data(inner), 'x');
        EXPECT_EQ(weir_buf_store_offset(inner), outside ? 150 : 0);
        EXPECT_OK(weir_buf_slice(part, 800, 0, &inner));
        EXPECT_EQ(weir_buf_length(inner), 0);
        EXPECT_EQ(weir_buf_slice(part, 0, 801, &none), WEIR_ERANGE);
        EXPECT(none == NULL);
        EXPECT_EQ(weir_buf_slice(part, 801, 0, &none), WEIR_ERANGE);
        EXPECT_EQ(weir_buf_slice(part, 800, 1, &none), WEIR_ERANGE);
        EXPECT_EQ(weir_buf_slice(part, SIZE_MAX, 2, &none), WEIR_ERANGE);
        EXPECT_EQ(weir_buf_slice(part, 2, SIZE_MAX, &none), WEIR_ERANGE);
    }
}

TEST(buffers, slices_share_bytes_and_check_bounds)
{
    run(1, slice_each, NULL);
}

static void **make_slices(void)
{
    void **keep = weir_new_refs(4);
    weir_buf *whole, *part;
    for (unsigned i = 0; i < 4; i++) {
        EXPECT_OK(i % 2 ? weir_buf_new_store(40000, &whole) : weir_buf_new(2000, &whole));
        fill_pattern(whole, i);
        EXPECT_OK(weir_buf_slice(whole, 500, 600, &part));
        EXPECT_OK(weir_buf_slice(part, 100, i < 2 ? 500 : 0, (weir_buf **)&keep[i]));
    }
    return keep;
}

static void check_slices(void **keep)
{
    weir_stats stats;
    for (unsigned i = 0; i < 4; i++) {
        EXPECT_EQ(weir_buf_length(keep[i]), i < 2 ? 500 : 0);
        EXPECT(has_pattern(keep[i], 600, i));
    }
    EXPECT_OK(weir_get_stats(&stats));
    EXPECT_EQ(stats.store_bytes, 80000);
}

TEST(buffers, slices_keep_their_parents_over_collections)
{
    over_collections(make_slices, check_slices);
}

static void **make_plain_pointer(void)
{
    void **keep = weir_new_refs(1);
    weir_buf *buf;
    EXPECT_OK(weir_buf_new_store(40000, &buf));
    memset(weir_buf_data(buf), 'p', 40000);
    keep[0] = (char *)weir_buf_data(buf) + 39999;
    return keep;
}

static void check_plain_pointer(void **keep)
{
    weir_stats stats;
    EXPECT_EQ(*(char *)keep[0], 'p');
    EXPECT_EQ(*((char *)keep[0] - 39999), 'p');
    EXPECT_OK(weir_get_stats(&stats));
    EXPECT_EQ(stats.store_bytes, 40000);
}

TEST(buffers, plain_pointer_into_a_store_keeps_it)
{
    over_collections(make_plain_pointer, check_plain_pointer);
}

static void **make_and_forget(void)
{
    weir_stats stats;
    weir_buf *buf;
    for (unsigned i = 0; i < 20; i++)
        EXPECT_OK(weir_buf_new_store(10000, &buf));
    EXPECT_OK(weir_get_stats(&stats));
    EXPECT_EQ(stats.store_bytes, 200000);
    return NULL;
}

static void check_forgotten(void **keep)
{
    weir_stats stats;
    (void)keep;
    EXPECT_OK(weir_get_stats(&stats));
    EXPECT_EQ(stats.store_bytes, 0);
}

TEST(buffers, unreachable_stores_are_given_back)
{
    over_collections(make_and_forget, check_forgotten);
}

/* ---- release functions ---- */

static must_call *release_expected;
static _Atomic int released;

static void release(void *data, size_t length, void *arg)
{
    if (data != (length != 0 ? foreign : NULL) || arg != &released)
        test_fail(__FILE__, __LINE__, "released with other values than wrapped");
    atomic_fetch_add(&released, 1);
    must_called(release_expected);
}

static void **wrap_and_forget(void)
{
    weir_buf *buf;
    EXPECT_OK(weir_buf_wrap(foreign, sizeof foreign, release, &released, &buf));
    return NULL;
}

static void expect_released(void **keep)
{
    (void)keep;
    EXPECT_EQ(atomic_load(&released), 1);
}

TEST(buffers, wrap_releases_once_when_unreachable)
{
    release_expected = must_call_new("release", 1);
    over_collections(wrap_and_forget, expect_released);
}

/* A finaliser that reads a dead buffer and lets a slice of it live on. */
typedef struct rescuer {
    weir_buf *buf;
    void **keep;
} rescuer;

static void rescue(rescuer *self)
{
    weir_buf *slice;
    EXPECT_OK(weir_buf_slice(self->buf, 1, 10, &slice));
    self->keep[0] = slice;
}
WEIR_TYPE_FINAL(rescuer, rescue, buf, keep);

static void **wrap_and_rescue(void)
{
    rescuer *r = weir_new(rescuer);
    EXPECT_OK(weir_buf_wrap(foreign, sizeof foreign, release, &released, &r->buf));
    return r->keep = weir_new_refs(1);
}

static void expect_rescued(void **keep)
{
    EXPECT_EQ(atomic_load(&released), 0);
    EXPECT(weir_buf_data(keep[0]) == foreign + 1);
}

TEST(buffers, slice_made_by_a_finaliser_keeps_its_store)
{
    release_expected = must_call_new("release", 1); /* at the end of the run */
    over_collections(wrap_and_rescue, expect_rescued);
}

static void **wrap_and_slice(void)
{
    void **keep = weir_new_refs(1);
    weir_buf *buf;
    EXPECT_OK(weir_buf_wrap(foreign, sizeof foreign, release, &released, &buf));
    EXPECT_OK(weir_buf_slice(buf, 10, 10, (weir_buf **)&keep[0]));
    return keep;
}

static void expect_not_released(void **keep)
{
    EXPECT(weir_buf_data(keep[0]) == foreign + 10);
    EXPECT_EQ(atomic_load(&released), 0);
}

TEST(buffers, wrap_releases_once_at_the_end_of_the_run)
{
    release_expected = must_call_new("release", 1);
    over_collections(wrap_and_slice, expect_not_released);
    EXPECT_EQ(atomic_load(&released), 1);
}

static void wrap_nothing(void *arg)
{
    (void)arg;
    weir_buf *buf, *slice;
    EXPECT_OK(weir_buf_wrap(NULL, 0, release, &released, &buf));
    EXPECT_OK(weir_buf_slice(buf, 0, 0, &slice));
    EXPECT_EQ(weir_buf_length(slice), 0);
}

TEST(buffers, wrap_of_nothing_is_a_buffer)
{
    release_expected = must_call_new("release", 1);
    run(1, wrap_nothing, NULL);
}

/* ---- sharing ---- */

typedef struct hand {
    weir_store *store;
    uint64_t hops;
    uintptr_t address;
} hand;

typedef struct player {
    weir_ref next;
    weir_buf *kept;
} player;
WEIR_ACTOR(player, next, kept);

typedef struct meet {
    weir_ref next;
} meet;
WEIR_BEHAVIOUR(player, meet, next)
{
    self->next = msg->next;
}

/* Keeps the store for one hop, collects all the time, passes it on. */
WEIR_BEHAVIOUR(player, hand, store)
{
    EXPECT_OK(weir_buf_of_store(msg->store, 0, weir_store_size(msg->store), &self->kept));
    EXPECT_EQ((uintptr_t)weir_buf_data(self->kept), msg->address);
    EXPECT(weir_buf_store(self->kept) == msg->store);
    if (weir_store_size(msg->store) == 3000)
        EXPECT(has_pattern(self->kept, 0, 5));
    if (msg->hops > 0)
        EXPECT_OK(weir_send(weir_cast(player, self->next), player, hand, .store = msg->store, .hops = msg->hops - 1,
                            .address = msg->address));
    if (msg->hops % 3 == 0)
        self->kept = NULL;
    weir_collect_soon();
}

static void share_store(void *arg)
{
    player_ref a = weir_spawn(player), b = weir_spawn(player);
    EXPECT_OK(weir_send(a, player, meet, .next = weir_any(player, b)));
    EXPECT_OK(weir_send(b, player, meet, .next = weir_any(player, a)));
    weir_buf *buf;
    if (arg != NULL) {
        EXPECT_OK(weir_buf_wrap(foreign, sizeof foreign, release, &released, &buf));
    } else {
        EXPECT_OK(weir_buf_new_store(3000, &buf));
        fill_pattern(buf, 5);
    }
    EXPECT_OK(weir_send(a, player, hand, .store = weir_buf_store(buf), .hops = 1000,
                        .address = (uintptr_t)weir_buf_data(buf)));
}

TEST(buffers, store_is_shared_between_actors_without_a_copy)
{
    run(1, share_store, NULL);
    run(2, share_store, NULL);
}

TEST(buffers, store_passed_around_is_released_once)
{
    release_expected = must_call_new("release", 2);
    run(1, share_store, &released);
    EXPECT_EQ(atomic_load(&released), 1);
    run(2, share_store, &released);
    EXPECT_EQ(atomic_load(&released), 2);
}

static void open_strangers(void *arg)
{
    (void)arg;
    weir_buf *buf, *store;
    EXPECT_EQ(weir_buf_of_store(NULL, 0, 0, &buf), WEIR_EHANDLE);
    EXPECT_EQ(weir_buf_of_store((weir_store *)(void *)foreign, 0, 0, &buf), WEIR_EHANDLE);
    EXPECT(buf == NULL);
    EXPECT_OK(weir_buf_new_store(100, &store));
    EXPECT_EQ(weir_buf_of_store(weir_buf_store(store), 1, 100, &buf), WEIR_ERANGE);
    EXPECT_OK(weir_buf_of_store(weir_buf_store(store), 1, 99, &buf));
    EXPECT_EQ(weir_buf_store_offset(buf), 1);
    weir_descriptor *pair[2];
    EXPECT_OK(weir_descriptor_pair(pair));
    EXPECT_EQ(weir_buf_of_store((weir_store *)(void *)pair[0], 0, 0, &buf), WEIR_EHANDLE);
}

TEST(buffers, store_of_nobody_is_refused)
{
    run(1, open_strangers, NULL);
}

static int fail_commit(void *arg, wr_fail_kind kind, uint64_t nth)
{
    (void)arg;
    (void)nth;
    return kind == WR_FAIL_COMMIT ? -ENOMEM : 0;
}

static void run_out_of_memory(void *arg)
{
    (void)arg;
    weir_buf *buf = NULL;
    wr_fail_install(fail_commit, NULL);
    int code = 0;
    for (unsigned i = 0; i < 64 && code == 0; i++) /* what is committed already is used up first */
        code = weir_buf_new_store((size_t)64 << 20, &buf);
    wr_fail_install(NULL, NULL);
    EXPECT_EQ(code, WEIR_ENOMEM);
    EXPECT(buf == NULL);
}

TEST(buffers, no_memory_is_reported)
{
    run(1, run_out_of_memory, NULL);
}
