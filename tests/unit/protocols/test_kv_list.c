/* SPDX-License-Identifier: MIT */
/* tests/unit/protocols/test_kv_list.c: weir-kv's list against a plain array.
 *
 * Job        The list is the one part of weir-kv with an inner structure that replies hardly show (nodes, packed
 *            elements, costs), so it is compiled in here and driven by itself.
 */
#include "../../../apps/kv/list.c"
#include "../../../apps/kv/list.h"
#include "harness.h"
#include "resp_cuts.h"

#define MODEL_MAX 4096

typedef struct model_list {
    list_element elements[MODEL_MAX];
    size_t count;
} model_list;

static model_list model;

static list_element random_element(void)
{
    static const size_t sizes[] = {0, 1, 3, 20, 100, LIST_ELEMENT_MAX - 1, LIST_ELEMENT_MAX, 3000};
    list_element e = {NULL, sizes[test_random() % (sizeof(sizes) / sizeof(sizes[0]))]};
    char *bytes = weir_new_bytes(e.size);
    memset(bytes, (int)(test_random() & 0xff), e.size);
    e.bytes = bytes;
    return e;
}

static void push_both(list *l, list_end end, list_element e)
{
    list_push(l, end, e.bytes, e.size, NULL);
    if (end == LIST_FRONT)
        memmove(model.elements + 1, model.elements, model.count * sizeof(list_element));
    model.elements[end == LIST_FRONT ? 0 : model.count] = e;
    model.count++;
}

static void drop_both(list *l, list_end end)
{
    list_element got = list_peek(l, end), wanted = model.elements[end == LIST_FRONT ? 0 : model.count - 1];
    EXPECT_EQ(got.size, wanted.size);
    EXPECT_MEM(got.bytes, wanted.bytes, got.size);
    list_drop(l, end);
    model.count--;
    if (end == LIST_FRONT)
        memmove(model.elements, model.elements + 1, model.count * sizeof(list_element));
}

typedef struct walk {
    size_t at;
} walk;

static void compare(void *arg, const char *bytes, size_t size)
{
    walk *w = arg;
    EXPECT(w->at < model.count);
    EXPECT_EQ(size, model.elements[w->at].size);
    EXPECT_MEM(bytes, model.elements[w->at].bytes, size);
    w->at++;
}

/* Every node has elements, the chain is whole in both directions, and the costs add up. */
static void audit(const list *l)
{
    uint64_t count = 0;
    int64_t cost = 0;
    const list_node *before = NULL;
    for (const list_node *node = l->first; node != NULL; node = node->next) {
        EXPECT(node->count > 0);
        EXPECT(node->previous == before);
        EXPECT(node->begin <= node->end && node->end <= node->capacity);
        count += node->count;
        cost += NODE_COST + (int64_t)node->capacity + (int64_t)node->alone_size;
        before = node;
    }
    EXPECT(l->last == before);
    EXPECT_EQ(count, l->count);
    EXPECT_EQ(cost, l->cost);
    EXPECT_EQ(l->count, model.count);
}

static void body_random(void)
{
    list *l = list_new();
    for (int step = 0; step < 20000; step++) {
        list_end end = test_random() % 2 ? LIST_FRONT : LIST_BACK;
        bool growing = step / 2000 % 2 == 0; /* so that it fills and empties several times */
        if (model.count == 0 || (model.count < MODEL_MAX && test_random() % 10 < (growing ? 6 : 4)))
            push_both(l, end, random_element());
        else
            drop_both(l, end);
        if (step % 50 == 0 && model.count > 0) {
            walk w = {(size_t)(test_random() % model.count)};
            size_t to = w.at + (size_t)(test_random() % (model.count - w.at)) + 1;
            list_each(l, w.at, to - w.at, compare, &w);
            EXPECT_EQ(w.at, to);
            audit(l);
        }
    }
    while (model.count > 0)
        drop_both(l, LIST_BACK);
    audit(l);
    EXPECT(l->first == NULL && l->last == NULL);
}

TEST(kv_list, random_operations_equal_a_plain_array)
{
    in_a_run(body_random);
}
