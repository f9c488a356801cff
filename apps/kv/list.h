/* SPDX-License-Identifier: MIT */
/* kv/list.h: a list value: a chain of nodes with packed elements.
 *
 * Job        Push and pop at both ends in constant time, walking in order at the speed of memory.
 * Invariants Every node has at least one element; `count` is their sum over the nodes. An element in a node is its
 *            size, its bytes, its size again, so that both ends can be read. Elements from LIST_ELEMENT_MAX on are
 *            objects of their own, alone in their node.
 * Threads    The shard's behaviours.
 * Cost       8 bytes an element beside its own; a node doubles from 64 bytes to 1 KiB.
 */
#ifndef KV_LIST_H
#define KV_LIST_H

#include <stdbool.h>
#include <weir/weir.h>

typedef struct list_node list_node;

typedef struct list {
    list_node *first, *last;
    uint64_t count;
    int64_t cost;
} list;

typedef struct list_element {
    const char *bytes;
    size_t size;
} list_element;

typedef enum list_end { LIST_FRONT, LIST_BACK } list_end;

list *list_new(void);
int64_t list_cost(const list *l);
/* `own`: the element's bytes are in this buffer, which the list keeps instead of copying; else NULL. */
void list_push(list *l, list_end end, const char *bytes, size_t size, weir_buf *own);
/* The element at an end of a list that is not empty; its bytes stay readable until the behaviour ends, also when it
 * is dropped. */
list_element list_peek(const list *l, list_end end);
void list_drop(list *l, list_end end);

/* Walks elements [from, from + count), which must exist, in order. */
void list_each(const list *l, uint64_t from, uint64_t count, void (*each)(void *arg, const char *bytes, size_t size),
               void *arg);

#endif
