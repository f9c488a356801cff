/* SPDX-License-Identifier: MIT */
/* counter.c: an actor that adds up what it is sent, and says so when asked.
 *
 * Prints      45
 * Shows       State and messages are plain structs; messages from one actor to another arrive in the order they were
 *             sent, so the report comes after all the additions.
 */
#include <inttypes.h>
#include <stdio.h>
#include <weir/weir.h>

typedef struct counter { /* an actor is a plain struct */
    uint64_t total;
} counter;
WEIR_ACTOR(counter);

typedef struct add { /* a message is a plain struct */
    uint64_t by;
} add;

typedef struct report {
    int to_fd;
} report;

WEIR_BEHAVIOUR(counter, add)
{
    self->total += msg->by;
}

WEIR_BEHAVIOUR(counter, report)
{
    dprintf(msg->to_fd, "%" PRIu64 "\n", self->total);
    weir_set_exit_code(self->total == 45 ? 0 : 1);
}

static void start(void *arg)
{
    (void)arg;
    counter_ref c = weir_spawn(counter, .total = 0); /* a typed handle */
    for (uint64_t i = 0; i < 10; i++)
        weir_send(c, counter, add, .by = i); /* typed, named arguments */
    weir_send(c, counter, report, .to_fd = 1);
}

int main(void)
{
    return weir_run(NULL, start, NULL); /* ends when nothing can happen any more */
}
