/* SPDX-License-Identifier: MIT */
/* memory.c: completes the fragments of docs/guide/memory.md, and uses what the page says in passing.
 *
 * The pinned connection must survive the first collection and not the second; finalisers must run once each and be able
 * to allocate, read a dead object and send; the reader must get the store's bytes.
 */
#include <stdio.h>
#include <string.h>
#include <weir/weir.h>

static int failures;

#define MUST(condition) ((condition) ? (void)0 : failed(#condition, __LINE__))

static void failed(const char *what, int line)
{
    fprintf(stderr, "line %d: not so: %s\n", line, what);
    failures++;
}

#include "memory/node.c"

typedef struct sample {
    double value;
} sample;
WEIR_TYPE(sample);

typedef union word {
    void *pointer;
    uint64_t number;
} word;
WEIR_UNTYPED(word);

struct database {
    int open;
};

static unsigned databases_closed;

static void database_close(struct database *handle)
{
    handle->open--;
    databases_closed++;
}

#include "memory/connection.c"

typedef struct reader {
    char unused;
} reader;
WEIR_ACTOR(reader);

typedef struct take {
    weir_store *store;
} take;

static unsigned long long sum;

static void read_bytes(const weir_buf *b)
{
    const unsigned char *bytes = weir_buf_data(b);
    for (size_t i = 0; i < weir_buf_length(b); i++)
        sum += bytes[i];
}

#include "memory/take.c"

typedef struct server {
    node *table;
    reader_ref log;
} server;
WEIR_ACTOR(server, table, log);

typedef struct hello {
    char unused;
} hello;

static unsigned hellos;

WEIR_BEHAVIOUR(server, hello)
{
    hellos++;
}

static server_ref *greeted; /* in the state of `steps` */

typedef struct parting {
    const sample *other; /* dies with it */
    server_ref to;
} parting;

static void part(parting *self)
{
    sample *s = weir_new(sample);
    s->value = self->other->value;
    MUST(s->value == 2.5);
    MUST(weir_send(*greeted, server, hello) == 0);
}
WEIR_TYPE_FINAL(parting, part, other);

static struct database database = {3};

static connection *connect_to_database(void)
{
    connection *c = weir_new(connection);
    c->handle = &database;
    weir_external_bytes(+1000);
    return c;
}

static void make_garbage(void)
{
#include "memory/new.c"
    MUST(n->next == NULL && n->length == 0 && n->text[99] == 0);

    connect_to_database();
    sample *s = weir_new(sample);
    s->value = 2.5;
    parting *p = weir_new(parting);
    p->other = s;
}

static void share(reader_ref to)
{
    size_t size = 4096;
#include "memory/share.c"
}

static void pin(void *object)
{
#include "memory/pin.c"
}

static void unpin(void *object)
{
#include "memory/unpin.c"
}

/* One behaviour a step: collections run in between. */
typedef struct steps {
    connection *pinned;
    unsigned count;
    server_ref greeted;
    reader_ref reading;
} steps;
WEIR_ACTOR(steps, greeted, reading); /* `pinned` is where the collector does not look */

typedef struct step {
    char unused;
} step;

WEIR_BEHAVIOUR(steps, step)
{
    weir_heap_stats stats;
    weir_get_heap_stats(&stats);
    MUST(stats.collections == self->count);
    switch (self->count++) {
    case 0:
        greeted = &self->greeted;
        self->pinned = connect_to_database();
        pin(self->pinned);
        make_garbage();
        break;
    case 1:
        MUST(stats.finalised == 2);
        MUST(databases_closed == 1);
        MUST(stats.external_bytes == 2000);
        weir_external_bytes(-1000);
        share(self->reading);
        unpin(self->pinned);
        break;
    default:
        MUST(databases_closed == 2);
        MUST(stats.external_bytes == 1000);
        connect_to_database(); /* still there when its actor ends */
        return;
    }
    weir_collect_soon();
    weir_send(weir_self(steps), steps, step);
}

static void start(void *arg)
{
    (void)arg;
    node *nodes = weir_new_array(node, 3);
    void **refs = weir_new_refs(3);
    node *long_node = weir_new_sized(node, sizeof(node) + 100);
    word *w = weir_new(word);
    MUST(nodes[2].text == NULL && refs[2] == NULL && long_node->length == 0 && w->pointer == NULL);
    weir_send(weir_spawn(steps, .greeted = weir_spawn(server), .reading = weir_spawn(reader)), steps, step);
}

int main(void)
{
    MUST(weir_run(&(weir_options){.collect_after = 1 << 20}, start, NULL) == 0);
    MUST(databases_closed == 3);
    MUST(database.open == 0);
    MUST(hellos == 1);
    MUST(sum == 4096 * 3);
    return failures != 0;
}
