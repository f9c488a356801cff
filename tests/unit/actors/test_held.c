/* SPDX-License-Identifier: MIT */
/* Tests of actors/held.c: counts on shared things. */
#include "actors/held.h"
#include "actors/services.h"
#include "harness.h"
#include "weir/weir.h"

/* A shared thing of our own kind, which counts its ends. */
typedef struct token {
    wr_shared shared;
} token;

static _Atomic uint64_t made, destroyed;

static void token_destroy(wr_shared *shared)
{
    atomic_fetch_add(&destroyed, 1);
    wr_block_give(shared, sizeof(token));
}

static const wr_shared_kind token_kind = {"token", token_destroy};

static token *token_new(uint32_t size)
{
    token *t = wr_block_take(sizeof *t);
    t->shared.kind = &token_kind;
    t->shared.size = size;
    atomic_init(&t->shared.count, 1);
    atomic_fetch_add(&made, 1);
    wr_hold_here(&t->shared);
    return t;
}

static uint32_t count_of(const void *shared)
{
    return atomic_load(&((const wr_shared *)shared)->count);
}

typedef struct keeper {
    token *kept;
    uint64_t seen;
} keeper;
WEIR_ACTOR(keeper, kept);
typedef struct offer {
    token *thing;
    uint64_t keep, expected_count;
} offer;
WEIR_BEHAVIOUR(keeper, offer, thing)
{
    self->seen++;
    if (msg->keep)
        self->kept = msg->thing;
    if (msg->expected_count)
        EXPECT_EQ(count_of(msg->thing), msg->expected_count);
}

typedef struct ask {
    uint64_t expect_destroyed;
} ask;
WEIR_BEHAVIOUR(keeper, ask)
{
    EXPECT_EQ(atomic_load(&destroyed), msg->expect_destroyed);
}
typedef struct tidy {
    char unused;
} tidy;
WEIR_BEHAVIOUR(keeper, tidy)
{
    weir_collect_soon();
}

static void run(void (*start)(void *arg), unsigned threads)
{
    weir_options options = {.threads = threads, .collect_after = 65536};
    made = destroyed = 0;
    EXPECT_OK(weir_run(&options, start, NULL));
    EXPECT_EQ(destroyed, made);
}

static void start_once(void *arg)
{
    (void)arg;
    keeper_ref k = weir_spawn(keeper);
    token *t = token_new(0);
    EXPECT_EQ(count_of(t), 1);
    /* One for each message under way, the first of which becomes the keeper's; ours goes with the end of the first
     * actor. */
    for (uint64_t i = 0; i < 5; i++)
        EXPECT_OK(weir_send(k, keeper, offer, .thing = t, .keep = 1, .expected_count = 5 - i));
    EXPECT_EQ(count_of(t), 6);
}

TEST(held, one_count_however_often_received)
{
    run(start_once, 1);
}

static void start_give_back(void *arg)
{
    (void)arg;
    keeper_ref k = weir_spawn(keeper);
    for (int i = 0; i < 20; i++)
        EXPECT_OK(weir_send(k, keeper, offer, .thing = token_new(0), .keep = 0));
    EXPECT_OK(weir_send(k, keeper, tidy));
    weir_collect_soon(); /* ours go at the end of this behaviour, before the keeper runs */
    EXPECT_OK(weir_send(k, keeper, ask, .expect_destroyed = 20));
}

TEST(held, a_collection_gives_back_what_is_not_found)
{
    run(start_give_back, 1);
    EXPECT_EQ(made, 20);
}

static void start_no_heap(void *arg)
{
    (void)arg;
    keeper_ref k = weir_spawn(keeper);
    for (int i = 0; i < 8; i++)
        EXPECT_OK(weir_send(k, keeper, offer, .thing = token_new(65536), .keep = 0));
    weir_collect_soon();
    EXPECT_OK(weir_send(k, keeper, ask, .expect_destroyed = 8)); /* receipts alone made the keeper collect */
}

TEST(held, a_receiver_that_allocates_nothing_gives_back)
{
    run(start_no_heap, 1);
}

static void start_state(void *arg)
{
    (void)arg;
    keeper_ref k = weir_spawn(keeper);
    EXPECT_OK(weir_send(k, keeper, offer, .thing = token_new(0), .keep = 0));
    EXPECT_OK(weir_send(k, keeper, offer, .thing = token_new(0), .keep = 1));
    weir_collect_soon();
    EXPECT_OK(weir_send(k, keeper, tidy));
    EXPECT_OK(weir_send(k, keeper, ask, .expect_destroyed = 1));
    EXPECT_OK(weir_send(k, keeper, tidy));
    EXPECT_OK(weir_send(k, keeper, ask, .expect_destroyed = 1));
}

TEST(held, what_the_state_names_stays)
{
    run(start_state, 1);
    EXPECT_EQ(made, 2);
}

typedef struct forget {
    char unused;
} forget;
WEIR_BEHAVIOUR(keeper, forget)
{
    self->kept = NULL;
}

static void start_marked_again(void *arg)
{
    (void)arg;
    keeper_ref k = weir_spawn(keeper);
    EXPECT_OK(weir_send(k, keeper, offer, .thing = token_new(0), .keep = 1));
    weir_collect_soon();
    EXPECT_OK(weir_send(k, keeper, tidy)); /* finds it */
    EXPECT_OK(weir_send(k, keeper, forget));
    EXPECT_OK(weir_send(k, keeper, tidy)); /* must not remember that */
    EXPECT_OK(weir_send(k, keeper, ask, .expect_destroyed = 1));
}

TEST(held, each_collection_finds_anew)
{
    run(start_marked_again, 1);
    EXPECT_EQ(made, 1);
}

typedef struct pin {
    token *thing;
    uint64_t times;
} pin;
WEIR_BEHAVIOUR(keeper, pin, thing)
{
    self->seen++;
    for (uint64_t i = 0; i < msg->times; i++)
        weir_pin(msg->thing);
}
typedef struct unpin {
    uintptr_t number; /* of a thing that nothing but the pin keeps */
} unpin;
WEIR_BEHAVIOUR(keeper, unpin)
{
    self->seen++;
    weir_unpin((void *)~msg->number);
}

static void start_pins(void *arg)
{
    (void)arg;
    keeper_ref k = weir_spawn(keeper);
    token *t = token_new(0);
    EXPECT_OK(weir_send(k, keeper, pin, .thing = t, .times = 2));
    weir_collect_soon();
    for (uint64_t i = 0; i < 2; i++) {
        EXPECT_OK(weir_send(k, keeper, tidy));
        EXPECT_OK(weir_send(k, keeper, ask, .expect_destroyed = 0));
        EXPECT_OK(weir_send(k, keeper, unpin, .number = ~(uintptr_t)t));
    }
    EXPECT_OK(weir_send(k, keeper, tidy));
    EXPECT_OK(weir_send(k, keeper, ask, .expect_destroyed = 1));
}

TEST(held, a_pinned_thing_stays_until_unpinned_as_often)
{
    run(start_pins, 1);
    EXPECT_EQ(made, 1);
}

typedef struct allocate {
    char unused;
} allocate;
WEIR_BEHAVIOUR(keeper, allocate)
{
    self->seen++;
    (void)weir_new_bytes(16);
}

static void start_charge(void *arg)
{
    (void)arg;
    keeper_ref k = weir_spawn(keeper);
    EXPECT_OK(weir_send(k, keeper, offer, .thing = token_new(65400)));
    weir_collect_soon();
    EXPECT_OK(weir_send(k, keeper, ask, .expect_destroyed = 0));
    EXPECT_OK(weir_send(k, keeper, allocate)); /* makes the heap; alone it would not be collected */
    EXPECT_OK(weir_send(k, keeper, ask, .expect_destroyed = 1));
}

TEST(held, receipts_before_the_first_allocation_count)
{
    run(start_charge, 1);
}

typedef struct waiter {
    char unused;
} waiter;
WEIR_ACTOR(waiter);
typedef struct wait {
    uint64_t until;
} wait;
WEIR_BEHAVIOUR_DECLARE(waiter, wait);
WEIR_BEHAVIOUR(waiter, wait)
{
    if (atomic_load(&destroyed) < msg->until)
        EXPECT_OK(weir_send(weir_self(waiter), waiter, wait, .until = msg->until));
}

static void start_end(void *arg)
{
    (void)arg;
    for (int i = 0; i < 10; i++)
        EXPECT_OK(weir_send(weir_spawn(keeper), keeper, offer, .thing = token_new(0), .keep = 1));
    EXPECT_OK(weir_send(weir_spawn(waiter), waiter, wait, .until = 10)); /* the run goes on until all are back */
    weir_collect_soon();
}

TEST(held, the_end_of_the_actor_gives_all_back)
{
    run(start_end, 1);
    run(start_end, 2);
}

static void start_stop(void *arg)
{
    (void)arg;
    keeper_ref k = weir_spawn(keeper);
    for (int i = 0; i < 10; i++)
        EXPECT_OK(weir_send(k, keeper, offer, .thing = token_new(0), .keep = 1));
    weir_stop();
}

TEST(held, messages_not_received_give_back)
{
    run(start_stop, 1);
    EXPECT_EQ(made, 10);
}

/* Nodes that know up to four others and two tokens, and pass handles on at random. */
typedef struct trader {
    weir_ref friends[4];
    token *tokens[2];
    uint64_t state, left;
} trader;
WEIR_ACTOR(trader, friends, tokens);
typedef struct deal {
    weir_ref friend_;
    token *thing;
    uint64_t left;
} deal;
WEIR_BEHAVIOUR_DECLARE(trader, deal);

static uint64_t draw(trader *self)
{
    self->state = self->state * 6364136223846793005u + 1442695040888963407u;
    return self->state >> 33;
}

WEIR_BEHAVIOUR(trader, deal, friend_, thing)
{
    self->friends[draw(self) % 4] = msg->friend_;
    self->tokens[draw(self) % 2] = msg->thing;
    (void)weir_new_bytes(64 + draw(self) % 512);
    if (draw(self) % 64 == 0)
        self->tokens[draw(self) % 2] = token_new((uint32_t)(draw(self) % 10000));
    if (draw(self) % 128 == 0)
        self->friends[draw(self) % 4] = weir_spawn(trader, .state = draw(self), .friends = {weir_self_any()}).any;
    if (msg->left == 0)
        return;
    weir_ref to = self->friends[draw(self) % 4];
    if (to.actor == NULL)
        to = weir_self_any();
    weir_ref whom = draw(self) % 2 ? self->friends[draw(self) % 4] : weir_self_any();
    EXPECT_OK(weir_send(weir_cast(trader, to), trader, deal, .friend_ = whom, .thing = self->tokens[draw(self) % 2],
                        .left = msg->left - 1));
    if (draw(self) % 4 == 0)
        self->friends[draw(self) % 4].actor = NULL;
}

static void start_random(void *arg)
{
    trader_ref all[8];
    (void)arg;
    for (int i = 0; i < 8; i++)
        all[i] = weir_spawn(trader, .state = test_random());
    for (int i = 0; i < 8; i++) {
        for (int j = 0; j < 4; j++)
            EXPECT_OK(weir_send(all[i], trader, deal, .friend_ = all[test_random() % 8].any, .thing = token_new(100),
                                .left = 5000));
    }
}

TEST(held, random_traffic_is_conserved)
{
    for (unsigned threads = 1; threads <= 3; threads++)
        run(start_random, threads);
}
