/* SPDX-License-Identifier: MIT */
/* tests/consumer/consumer.c: a user's program in C, built against the installed library only.
 *
 * Prints what it found; exit 0 only if actor, messages, objects and the end of the run did what the headers promise, twice.
 */
#include <stdio.h>
#include <string.h>
#include <weir/weir.h>

typedef struct node {
    struct node *next;
    unsigned value;
} node;
WEIR_TYPE(node, next);

typedef struct tally {
    node *list;
    unsigned expected;
} tally;
WEIR_ACTOR(tally, list);

typedef struct add {
    unsigned value;
} add;

typedef struct finish {
    char unused;
} finish;

WEIR_BEHAVIOUR(tally, add)
{
    node *n = weir_new(node);
    n->value = msg->value;
    n->next = self->list;
    self->list = n;
}

WEIR_BEHAVIOUR(tally, finish)
{
    unsigned sum = 0;
    for (const node *n = self->list; n != NULL; n = n->next) {
        sum += n->value;
    }
    printf("sum %u, expected %u\n", sum, self->expected);
    weir_set_exit_code(sum == self->expected ? 42 : 1);
}

static void start(void *arg)
{
    tally_ref t = weir_spawn(tally, .expected = *(const unsigned *)arg);
    for (unsigned i = 1; i <= 10; i++) {
        weir_send(t, tally, add, .value = i);
    }
    weir_send(t, tally, finish);
}

int main(void)
{
    unsigned expected = 55;
    if (strcmp(weir_version(), WEIR_VERSION) != 0) {
        printf("headers of %s, library of %s\n", WEIR_VERSION, weir_version());
        return 1;
    }
    for (int run = 1; run <= 2; run++) {
        int code = weir_run(NULL, start, &expected);
        if (code != 42) {
            printf("run %d returned %d\n", run, code);
            return 1;
        }
    }
    return 0;
}
