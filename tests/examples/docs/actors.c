/* SPDX-License-Identifier: MIT */
/* actors.c: completes the fragments of docs/guide/actors.md, and uses what the page says in passing.
 *
 * The account must hold what was deposited, the players must meet, the log must get its line, the session's final
 * function must run. The metronome goes on for ever, so that only the signal can end the run.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <weir/weir.h>

static int failures;

#define MUST(condition) ((condition) ? (void)0 : failed(#condition, __LINE__))

static void failed(const char *what, int line)
{
    fprintf(stderr, "line %d: not so: %s\n", line, what);
    failures++;
}

#include "actors/account.c"

static uint64_t balance;
static _Atomic unsigned done; /* what the metronome waits for */

typedef struct ask_balance {
    char unused;
} ask_balance;

WEIR_BEHAVIOUR(account, ask_balance)
{
    balance = self->balance;
    done++;
}

WEIR_BEHAVIOUR_DECLARE(account, deposit);

#include "actors/player.c"

typedef struct meet {
    player_ref other;
} meet;

WEIR_BEHAVIOUR(player, meet, other)
{
    self->other = msg->other;
    done += !weir_is_null(player, self->other);
}

typedef struct logger {
    char unused;
} logger;
WEIR_ACTOR(logger);

typedef struct line {
    int level;
} line;

static char logged[16];

WEIR_BEHAVIOUR(logger, line)
{
    MUST(weir_tail_size(msg) < sizeof logged);
    memcpy(logged, weir_tail(msg), weir_tail_size(msg));
    done++;
}

typedef struct session {
    logger_ref log;
} session;

static _Atomic unsigned closed;

static void close_session(session *self)
{
    (void)self;
    closed++;
}

WEIR_ACTOR_FINAL(session, close_session);

typedef struct begin {
    logger_ref log;
} begin;

WEIR_BEHAVIOUR(session, begin, log)
{
    self->log = msg->log;
    weir_send_tail(self->log, logger, "hello", 5, line);
}

#include "actors/signal.c"

typedef struct metronome {
    unsigned ticks;
} metronome;
WEIR_ACTOR(metronome);

#include "actors/tick.c"

WEIR_BEHAVIOUR(metronome, tick)
{
    if (done == 4 && self->ticks++ == 0)
        kill(getpid(), SIGTERM);
    weir_send(weir_self(metronome), metronome, tick);
}

static void start(void *arg)
{
    (void)arg;
    account_ref a = weir_spawn(account);
    MUST(weir_send(a, account, deposit, .amount = 7) == 0);
    MUST(weir_send(a, account, ask_balance) == 0);

    player_ref left = weir_spawn(player);
    player_ref right = weir_spawn(player, .other = left);
    weir_send(left, player, meet, .other = right);
    weir_send(right, player, meet, .other = left);

    weir_send(weir_spawn(session), session, begin, .log = weir_spawn(logger));

    account_ref nobody = {{NULL}};
    MUST(weir_send(nobody, account, deposit, .amount = 1) == WEIR_EHANDLE);
    weir_store *own = weir_new_bytes(8);
    MUST(weir_send_copy(weir_any(session, weir_spawn(session)), &session_begin_weir, &own, NULL, 0) == WEIR_EOWNED);

    weir_send(weir_spawn(metronome), metronome, tick);
    weir_set_exit_code(1);
}

int main(void)
{
    signal(SIGTERM, on_signal);
    MUST(weir_run(NULL, start, NULL) == 1);
    MUST(balance == 7);
    MUST(strcmp(logged, "hello") == 0);
    MUST(closed == 2);
    return failures != 0;
}
