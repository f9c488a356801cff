/* SPDX-License-Identifier: MIT */
/* actors/io.h: readiness of descriptors, delivered to the actor that owns them; and work for the end of a turn.
 *
 * Job        A source watches one descriptor for one actor. When the poller reports it, a message carries the event to
 *            the owner, whose `on_ready` runs as a behaviour: on the thread the owner runs on anyway.
 * Invariants At most one readiness message of a source is under way; events that come meanwhile are added to it. While
 *            `interest` is not 0 the source keeps the run going, its actor alive, and `object` reachable. After
 *            wr_source_close no callback runs any more and the source may not be used. The caller closes the descriptor
 *            after wr_source_close, never before.
 * Threads    The owner's scheduler (inside its behaviours and finalisers). Events come from whichever scheduler polls.
 * Cost       Opening and closing: a lock and a system call. An event: a message.
 *
 * Use        Read until -EAGAIN, then wr_source_arm again with the events wanted (cheap if they did not change).
 *            Whoever stops before -EAGAIN must post to itself (wr_source_post) or remember it, since no new report
 *            comes for what was there before.
 */
#ifndef WR_ACTORS_IO_H
#define WR_ACTORS_IO_H

#include "platform/poll.h"
#include "weir/base.h"

#define WR_SOURCE_POSTED 8u /* beside WR_POLL_IN, OUT, HANGUP: the owner asked for the call itself */

typedef struct wr_source wr_source;
typedef void wr_source_ready(void *object, unsigned events);

/* A source of the running actor for `fd`. `object` (of its heap) is handed to `on_ready` and kept alive while watched.
 * interest: WR_POLL_ bits, 0: not watched yet. 0 or a negative code. fd -1: no descriptor, only posts. */
int wr_source_open(int fd, void *object, wr_source_ready *on_ready, unsigned interest, wr_source **out);
/* Changes or renews the interest. A failure of the poller ends the process with a report (it is out of memory). */
void wr_source_arm(wr_source *source, unsigned interest);
/* Calls on_ready(object, WR_SOURCE_POSTED) in a turn of its own, soon; several posts may become one call. Keeps run,
 * actor and object until then. */
void wr_source_post(wr_source *source);
void wr_source_close(wr_source *source);

/* Work for the end of the running actor's turn (flush). Queued at most once; `object` is kept alive until `run` was
 * called. Hooks may add hooks. */
typedef struct wr_turn_hook {
    struct wr_turn_hook *next;
    void (*run)(struct wr_turn_hook *hook);
    void *object;
    int queued;
} wr_turn_hook;

void wr_turn_hook_add(wr_turn_hook *hook);
/* Takes it off again, queued or not. A finaliser of what holds the hook must: another finaliser may have queued it. */
void wr_turn_hook_cancel(wr_turn_hook *hook);

/* Is a behaviour (or start, callback, finaliser) of an actor running on this thread. */
int wr_in_behaviour(void);
weir_actor *wr_current_actor(void);
/* The run is being torn down: finalisers run, nothing new may be opened. */
int wr_is_ending(void);

#endif
