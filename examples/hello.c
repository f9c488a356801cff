/* SPDX-License-Identifier: MIT */
/* hello.c: the smallest program: an actor gets one message and answers with a line.
 *
 * Prints      Hello, world!
 */
#include <stdio.h>
#include <weir/weir.h>

typedef struct greeter {
    unsigned greeted;
} greeter;
WEIR_ACTOR(greeter);

/* The name is behind the struct: its length is known only when the message is sent. */
typedef struct greet {
    char mark;
} greet;

WEIR_BEHAVIOUR(greeter, greet)
{
    self->greeted++;
    printf("Hello, %.*s%c\n", (int)weir_tail_size(msg), weir_tail(msg), msg->mark);
}

static void start(void *arg)
{
    (void)arg;
    greeter_ref g = weir_spawn(greeter);
    weir_send_tail(g, greeter, "world", 5, greet, .mark = '!');
}

int main(void)
{
    return weir_run(NULL, start, NULL);
}
