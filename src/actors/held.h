/* SPDX-License-Identifier: MIT */
/* actors/held.h: the held list: the shared things an actor may reach, one count each.
 *
 * Job        Everything outside its heap that a message lets an actor reach is put here at receipt; a collection marks
 *            the entries it finds in use and gives the others back.
 * Invariants At most one count for each thing. The actor itself is never on its own list. A word read conservatively
 *            counts only if it names an entry.
 * Threads    The owner's scheduler.
 * Cost       A short scan up to 8 entries, one hash operation beyond; a new entry is charged to the collection trigger.
 */
#ifndef WR_ACTORS_HELD_H
#define WR_ACTORS_HELD_H

#include "actors/shared.h"
#include <stdbool.h>

/* Takes over one count the caller has on `shared` for `actor`: kept if the thing is new to the list, given back if it
 * is there already (or is the actor itself). */
void wr_held_take(weir_actor *actor, wr_shared *shared);
bool wr_held_has(const weir_actor *actor, const void *shared); /* also true for the actor itself */
/* a held thing: kept, and the run kept going, until unpinned as often */
void wr_held_pin(weir_actor *actor, const void *shared);
void wr_held_unpin(weir_actor *actor, const void *shared);
void wr_held_mark(weir_actor *actor, const void *block); /* collection: found in use, if it is on the list */
void wr_held_give_back(weir_actor *actor);               /* collection: drops what was not marked */
void wr_held_clear(weir_actor *actor);                   /* the actor ends: drops all */

#endif
