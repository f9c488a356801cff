/* SPDX-License-Identifier: MIT */
/* tests/wrong/wrong.c: programs that must not compile.
 *
 * Job        One wrong program a case. The line after `CASE == n` is the mistake: run.sh expects each compiler's first error at exactly
 *            that line, and the word after the colon in its report. Without CASE the file is right and must compile, as C and as C++.
 * Invariants right() shows each mistake's right form, so a case fails for its own reason.
 */
#include <weir/weir.h>

typedef struct counter {
    uint64_t total;
} counter;
WEIR_ACTOR(counter);

typedef struct speaker {
    int volume;
} speaker;
WEIR_ACTOR(speaker);

typedef struct add {
    uint64_t by;
} add;

typedef struct reset {
    char unused;
} reset;

typedef struct shout {
    int volume;
} shout;

typedef struct point {
    int x, y;
} point;
WEIR_TYPE(point);

typedef struct plain {
    int x;
} plain;

typedef struct node {
    struct node *next;
    char tag;
} node;

WEIR_BEHAVIOUR(counter, add)
{
    self->total += msg->by;
#if CASE == 1 /* a behaviour changes its message: by */
    msg->by = 0;
#elif CASE == 2 /* a behaviour uses a field its actor lacks: volume */
    self->volume = 0;
#endif
}

WEIR_BEHAVIOUR(counter, reset)
{
    self->total = 0;
}

WEIR_BEHAVIOUR(speaker, shout)
{
    self->volume = msg->volume;
}

#if CASE == 3 /* a behaviour twice: counter_add */
WEIR_BEHAVIOUR(counter, add)
{
    self->total = msg->by;
}
#elif CASE == 4 /* a behaviour of what is no actor: plain_weir_actor */
WEIR_BEHAVIOUR(plain, add)
{
    self->x = (int)msg->by;
}
#elif CASE == 5 /* a type names a field it lacks: previous */
WEIR_TYPE(node, previous);
#elif CASE == 6 /* a type names a field that cannot refer: tag */
WEIR_TYPE(node, tag);
#else
WEIR_TYPE(node, next);
#endif

void right(void);
void right(void)
{
    counter_ref c = weir_spawn(counter, .total = 1);
    speaker_ref s = weir_spawn(speaker);
    weir_ref any = weir_any(counter, c);
    weir_send(c, counter, add, .by = 1);
    weir_send(c, counter, reset);
    weir_send(s, speaker, shout, .volume = 11);
    weir_send_tail(c, counter, "ab", 2, add, .by = 1);
    c = weir_cast(counter, any);
    point *p = weir_new(point);
    p->x = 1;
}

void wrong(counter_ref c, speaker_ref s, weir_ref any);
void wrong(counter_ref c, speaker_ref s, weir_ref any)
{
    (void)c;
    (void)s;
    (void)any;
#if CASE == 10 /* a message the actor does not take: counter_shout_weir */
    weir_send(c, counter, shout, .volume = 1);
#elif CASE == 11 /* a field the message lacks: volume */
    weir_send(c, counter, add, .volume = 1);
#elif CASE == 12 /* another actor's handle: speaker_ref */
    weir_send(s, counter, add, .by = 1);
#elif CASE == 13 /* an untyped handle: weir_ref */
    weir_send(any, counter, add, .by = 1);
#elif CASE == 14 /* a message that does not exist: nonsense */
    weir_send(c, counter, nonsense);
#elif CASE == 15 /* an actor type that does not exist: nobody */
    weir_send(c, nobody, add, .by = 1);
#elif CASE == 16 /* a value of the wrong type: char */
    weir_send(c, counter, add, .by = "one");
#elif CASE == 17 /* a message of another actor, with bytes: counter_shout_weir */
    weir_send_tail(c, counter, "ab", 2, shout, .volume = 1);
#elif CASE == 18 /* a field the message lacks, with bytes: volume */
    weir_send_tail(c, counter, "ab", 2, add, .volume = 1);
#elif CASE == 20 /* a state field the actor lacks: volume */
    c = weir_spawn(counter, .volume = 1);
#elif CASE == 21 /* a spawn of what is no actor: plain */
    weir_spawn(plain, .x = 1);
#elif CASE == 22 /* one actor's handle kept as another's: speaker_ref */
    s = weir_spawn(counter);
#elif CASE == 23 /* a handle cast to one type and kept as another: speaker_ref */
    s = weir_cast(counter, any);
#elif CASE == 30 /* an object of what is no type: plain */
    plain *p = weir_new(plain);
#elif CASE == 31 /* an object kept as another type: point */
    plain *p = weir_new(point);
#endif
}
