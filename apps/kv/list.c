/* SPDX-License-Identifier: MIT */
/* kv/list.c: see list.h. */
#include "list.h"
#include <string.h>

#define NODE_MIN 64
#define NODE_MAX 1024
#define LIST_ELEMENT_MAX 512
#define MARKS (2 * sizeof(uint32_t)) /* the sizes around an element */
#define NODE_COST (int64_t)(sizeof(list_node) + 8)

struct list_node {
    list_node *previous, *next;
    void *alone; /* bytes or a buffer: the only element; NULL: the elements are in bytes[begin, end) */
    const char *alone_bytes;
    size_t alone_size;
    uint32_t count;
    uint32_t begin, end, capacity;
    char bytes[];
};
WEIR_TYPE(list_node, previous, next, alone, alone_bytes);
WEIR_TYPE(list, first, last);

list *list_new(void)
{
    return weir_new(list);
}

int64_t list_cost(const list *l)
{
    return l->cost + (int64_t)sizeof(list) + 8;
}

static uint32_t read_size(const char *at)
{
    uint32_t size;
    memcpy(&size, at, sizeof(size));
    return size;
}

static void write_element(char *at, const char *bytes, uint32_t size)
{
    memcpy(at, &size, sizeof(size));
    if (size > 0)
        memcpy(at + sizeof(size), bytes, size);
    memcpy(at + sizeof(size) + size, &size, sizeof(size));
}

static list_node *add_node(list *l, list_end end, size_t capacity)
{
    list_node *node = weir_new_sized(list_node, sizeof(list_node) + capacity);
    node->capacity = (uint32_t)capacity;
    if (l->first == NULL) {
        l->first = l->last = node;
    } else if (end == LIST_FRONT) {
        node->next = l->first;
        l->first = l->first->previous = node;
    } else {
        node->previous = l->last;
        l->last = l->last->next = node;
    }
    l->cost += NODE_COST + (int64_t)capacity;
    return node;
}

static void drop_node(list *l, list_node *node)
{
    *(node->previous != NULL ? &node->previous->next : &l->first) = node->next;
    *(node->next != NULL ? &node->next->previous : &l->last) = node->previous;
    l->cost -= NODE_COST + (int64_t)node->capacity + (int64_t)node->alone_size;
}

static void push_alone(list *l, list_end end, const char *bytes, size_t size, weir_buf *own)
{
    list_node *node = add_node(l, end, 0);
    node->count = 1;
    node->alone_size = size;
    l->cost += (int64_t)size;
    if (own != NULL) {
        node->alone = own;
        node->alone_bytes = weir_buf_data(own);
    } else {
        char *copy = weir_new_bytes(size);
        memcpy(copy, bytes, size);
        node->alone = copy;
        node->alone_bytes = copy;
    }
}

/* The node at the end, if it has room there for `room` more bytes; else a new one, twice as large as its neighbour.
 * */
static list_node *node_with_room(list *l, list_end end, uint32_t room)
{
    list_node *node = end == LIST_FRONT ? l->first : l->last;
    if (node != NULL && node->alone == NULL && (end == LIST_FRONT ? node->begin : node->capacity - node->end) >= room)
        return node;
    size_t capacity = NODE_MIN;
    if (node != NULL && node->capacity >= NODE_MIN)
        capacity = node->capacity >= NODE_MAX / 2 ? NODE_MAX : (size_t)node->capacity * 2;
    if (capacity < room)
        capacity = room;
    node = add_node(l, end, capacity);
    if (end == LIST_FRONT)
        node->begin = node->end = node->capacity;
    return node;
}

void list_push(list *l, list_end end, const char *bytes, size_t size, weir_buf *own)
{
    l->count++;
    if (own != NULL || size >= LIST_ELEMENT_MAX) {
        push_alone(l, end, bytes, size, own);
        return;
    }
    uint32_t room = (uint32_t)(size + MARKS);
    list_node *node = node_with_room(l, end, room);
    if (end == LIST_FRONT) {
        node->begin -= room;
        write_element(node->bytes + node->begin, bytes, (uint32_t)size);
    } else {
        write_element(node->bytes + node->end, bytes, (uint32_t)size);
        node->end += room;
    }
    node->count++;
}

static list_element element_at(const char *at)
{
    return (list_element){at + sizeof(uint32_t), read_size(at)};
}

list_element list_peek(const list *l, list_end end)
{
    const list_node *node = end == LIST_FRONT ? l->first : l->last;
    if (node->alone != NULL)
        return (list_element){node->alone_bytes, node->alone_size};
    if (end == LIST_FRONT)
        return element_at(node->bytes + node->begin);
    uint32_t size = read_size(node->bytes + node->end - sizeof(uint32_t));
    return element_at(node->bytes + node->end - size - MARKS);
}

void list_drop(list *l, list_end end)
{
    list_node *node = end == LIST_FRONT ? l->first : l->last;
    l->count--;
    if (--node->count == 0) {
        drop_node(l, node);
        return;
    }
    if (end == LIST_FRONT)
        node->begin += read_size(node->bytes + node->begin) + (uint32_t)MARKS;
    else
        node->end -= read_size(node->bytes + node->end - sizeof(uint32_t)) + (uint32_t)MARKS;
}

/* The node of element `from`, searched from the nearer end; *skip elements of it come before. */
static const list_node *node_of(const list *l, uint64_t from, uint64_t *skip)
{
    if (from < l->count / 2) {
        const list_node *node = l->first;
        for (; from >= node->count; node = node->next)
            from -= node->count;
        *skip = from;
        return node;
    }
    const list_node *node = l->last;
    uint64_t behind = l->count - from; /* elements from `from` on */
    for (; behind > node->count; node = node->previous)
        behind -= node->count;
    *skip = node->count - behind;
    return node;
}

void list_each(const list *l, uint64_t from, uint64_t count, void (*each)(void *arg, const char *bytes, size_t size),
               void *arg)
{
    uint64_t skip = 0;
    const list_node *node = count > 0 ? node_of(l, from, &skip) : NULL;
    for (; count > 0; node = node->next, skip = 0) {
        if (node->alone != NULL) {
            each(arg, node->alone_bytes, node->alone_size);
            count--;
            continue;
        }
        const char *at = node->bytes + node->begin;
        for (uint64_t i = 0; i < node->count && count > 0; i++) {
            list_element e = element_at(at);
            if (i >= skip) {
                each(arg, e.bytes, e.size);
                count--;
            }
            at += e.size + MARKS;
        }
    }
}
