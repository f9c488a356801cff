/* SPDX-License-Identifier: MIT */
/* ping_pong.c: two actors that know each other play a ball to and fro.
 *
 * Prints      left hit the ball 500 times, right 500 times
 * Shows       Handles in messages: WEIR_BEHAVIOUR names the fields that hold them. A handle type that its own struct
 *             needs is declared first. The run ends by itself although the two hold each other: no message is under way
 *             any more.
 */
#include <stdio.h>
#include <weir/weir.h>

#define HITS 1000

typedef struct player player;
WEIR_ACTOR_DECLARE(player);
struct player {
    const char *name;
    player_ref other;
    unsigned hits;
};
WEIR_ACTOR_DEFINE(player, other);

typedef struct meet {
    player_ref other;
} meet;

typedef struct ball {
    unsigned left; /* hits until the game is over */
} ball;

typedef struct finish {
    unsigned other_hits;
} finish;

WEIR_BEHAVIOUR(player, meet, other)
{
    self->other = msg->other;
}

WEIR_BEHAVIOUR(player, finish)
{
    printf("%s hit the ball %u times, right %u times\n", self->name, self->hits, msg->other_hits);
    weir_set_exit_code(self->hits == HITS / 2 && msg->other_hits == HITS / 2 ? 0 : 1);
}

WEIR_BEHAVIOUR(player, ball)
{
    self->hits++;
    if (msg->left > 1)
        weir_send(self->other, player, ball, .left = msg->left - 1);
    else
        weir_send(self->other, player, finish, .other_hits = self->hits);
}

static void start(void *arg)
{
    (void)arg;
    player_ref left = weir_spawn(player, .name = "left");
    player_ref right = weir_spawn(player, .name = "right", .other = left);
    weir_send(left, player, meet, .other = right);
    weir_send(left, player, ball, .left = HITS);
}

int main(void)
{
    return weir_run(NULL, start, NULL);
}
