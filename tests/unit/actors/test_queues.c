/* SPDX-License-Identifier: MIT */
/* Tests of actors/deque.h and actors/mailbox.h, without a run around them. */
#include "actors/deque.h"
#include "actors/mailbox.h"
#include "harness.h"
#include "memory/arena.h"
#include "platform/os.h"

static weir_actor *item(uintptr_t n)
{
    return (weir_actor *)(n * 16);
}

TEST(deque, keeps_order_and_refuses_when_full)
{
    static wr_deque deque;
    uintptr_t pushed = 0, popped = 0;
    for (int i = 0; i < 100000; i++) {
        if (test_random() % 2 == 0) {
            bool took = wr_deque_push(&deque, item(pushed + 1));
            EXPECT_EQ(took, pushed - popped < WR_DEQUE_SIZE);
            pushed += took;
        } else {
            weir_actor *actor = wr_deque_pop(&deque);
            EXPECT(actor == (pushed == popped ? NULL : item(popped + 1)));
            popped += actor != NULL;
        }
        EXPECT_EQ(wr_deque_empty(&deque), pushed == popped);
    }
}

#define ITEMS 200000u

static wr_deque owner_ring;
static _Atomic uint32_t taken[ITEMS + 1], total_taken;

static void note(weir_actor *actor)
{
    atomic_fetch_add(&taken[(uintptr_t)actor / 16], 1);
    atomic_fetch_add(&total_taken, 1);
}

static void thief(void *arg)
{
    wr_deque *own = arg;
    while (atomic_load(&total_taken) < ITEMS) {
        unsigned count = wr_deque_steal(own, &owner_ring);
        for (unsigned i = 0; i < count; i++)
            note(wr_deque_pop(own));
    }
}

TEST(deque, each_item_is_taken_exactly_once_by_owner_and_thieves)
{
    static wr_deque rings[2];
    wr_thread threads[2];
    for (int i = 0; i < 2; i++)
        EXPECT_OK(wr_thread_start(&threads[i], "thief", thief, &rings[i]));
    for (uintptr_t n = 1; n <= ITEMS;) {
        if (wr_deque_push(&owner_ring, item(n)))
            n++;
        weir_actor *actor = n % 3 == 0 ? wr_deque_pop(&owner_ring) : NULL;
        if (actor != NULL)
            note(actor);
    }
    for (int i = 0; i < 2; i++)
        wr_thread_join(threads[i]);
    for (uintptr_t n = 1; n <= ITEMS; n++)
        EXPECT_EQ(atomic_load(&taken[n]), 1);
}

TEST(mailbox, tells_the_first_pusher_to_schedule)
{
    static wr_message stub, messages[3];
    wr_mailbox mailbox;
    wr_mailbox_open(&mailbox, &stub);
    EXPECT(wr_mailbox_push(&mailbox, &messages[0]));
    EXPECT(!wr_mailbox_push(&mailbox, &messages[1]));
    EXPECT(wr_mailbox_pop(&mailbox, NULL) == &messages[0]);
    EXPECT(!wr_mailbox_mark_empty(&mailbox));
    EXPECT(wr_mailbox_pop(&mailbox, NULL) == &messages[1]);
    EXPECT(wr_mailbox_pop(&mailbox, NULL) == NULL);
    EXPECT(wr_mailbox_mark_empty(&mailbox));
    EXPECT(wr_mailbox_push(&mailbox, &messages[2]));
    EXPECT(wr_mailbox_pop(&mailbox, NULL) == &messages[2]);
}

#define PRODUCERS 3
#define EACH 30000u

static wr_mailbox shared_mailbox;
static _Atomic uint32_t scheduled; /* how often a push said: schedule */

static void producer(void *arg)
{
    static const weir_behaviour none = {"none", NULL, 16, NULL, NULL};
    for (uint64_t i = 0; i < EACH; i++) {
        wr_message *message = wr_message_take(NULL, &none, 16, 0);
        ((uint64_t *)wr_message_payload(message))[0] = (uintptr_t)arg;
        ((uint64_t *)wr_message_payload(message))[1] = i;
        if (wr_mailbox_push(&shared_mailbox, message))
            atomic_fetch_add_explicit(&scheduled, 1, memory_order_release);
    }
}

TEST(mailbox, keeps_the_order_of_each_producer)
{
    static wr_message stub;
    wr_thread threads[PRODUCERS];
    uint64_t next[PRODUCERS] = {0}, received = 0;
    uint32_t slept = 0;
    EXPECT_OK(wr_arena_open());
    wr_mailbox_open(&shared_mailbox, &stub);
    for (uintptr_t i = 0; i < PRODUCERS; i++)
        EXPECT_OK(wr_thread_start(&threads[i], "producer", producer, (void *)i));
    while (received < PRODUCERS * (uint64_t)EACH) {
        while (atomic_load_explicit(&scheduled, memory_order_acquire) == slept) /* asleep until a pusher says so */
            wr_cpu_relax();
        for (;;) {
            wr_message *message = wr_mailbox_pop(&shared_mailbox, NULL);
            if (message != NULL) {
                const uint64_t *payload = wr_message_payload(message);
                EXPECT_EQ(payload[1], next[payload[0]]);
                next[payload[0]]++;
                received++;
            } else if (wr_mailbox_mark_empty(&shared_mailbox)) {
                break;
            }
        }
        slept++;
    }
    for (int i = 0; i < PRODUCERS; i++)
        wr_thread_join(threads[i]);
    EXPECT_EQ(atomic_load(&scheduled), slept);
    wr_message_give(NULL, shared_mailbox.head);
    wr_arena_close();
}
