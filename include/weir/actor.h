/* SPDX-License-Identifier: MIT */
/* weir/actor.h: actors, behaviours, messages.
 *
 * An actor is a plain struct with a mailbox and a heap of its own. A message is a plain struct. A behaviour is an
 * ordinary function named ACTOR_MESSAGE that gets both. Behaviours of one actor never run at the same time; different
 * actors run on all cores. Messages between one pair of actors arrive in the order they were sent.
 *
 *     typedef struct counter { uint64_t total; } counter;
 *     WEIR_ACTOR(counter);
 *     typedef struct add { uint64_t by; } add;
 *     WEIR_BEHAVIOUR(counter, add) { self->total += msg->by; }
 *     ...
 *     counter_ref c = weir_spawn(counter, .total = 0);
 *     weir_send(c, counter, add, .by = 1);
 *
 * A message carries values, bytes behind the struct (weir_send_tail) and handles (actors, stores, descriptors). Fields
 * that hold handles are named: WEIR_BEHAVIOUR(session, begin, connection, log). A pointer to an object of the sender's
 * own heap in a named field is refused with WEIR_EOWNED. An actor lives while anybody holds its handle, it has
 * messages, or a descriptor of its own is watched.
 */
#ifndef WEIR_ACTOR_H
#define WEIR_ACTOR_H

#include "weir/heap.h"

#if defined(__GNUC__) && !defined(WEIR_HEADER_CHECK)
#pragma GCC system_header
#endif

/* A handle of an actor of any type; typed handles (counter_ref) wrap one. The null handle has actor NULL. */
typedef struct weir_ref {
    weir_actor *actor;
} weir_ref;

typedef struct weir_behaviour {
    const char *name;       /* "counter.add" */
    const weir_type *actor; /* whose behaviour */
    size_t size;            /* of the message struct */
    void (*run)(void *self, const void *msg);
    const weir_field *refs; /* handle fields of the message; NULL: none */
} weir_behaviour;

/* WEIR_ACTOR(A, fields...): A becomes an actor type with the handle type A_ref. Fields named refer to objects and
 * handles and are the only ones that do; no field named: every word of the state may refer (always safe, a little
 * slower). WEIR_ACTOR_FINAL(A, ended, fields...): `void ended(A *self)` runs when the actor ends. Names are external:
 * in a header, for other files, WEIR_ACTOR_DECLARE(A), and in one source file WEIR_ACTOR_DEFINE(A, fields...) or
 * WEIR_ACTOR_DEFINE_FINAL(A, ended, fields...). */
#define WEIR_ACTOR_DECLARE(A) \
    typedef struct A##_ref { \
        weir_ref any; \
    } A##_ref; \
    WEIR_MAYBE_ static inline weir_ref A##_weir_any(A##_ref r) \
    { \
        return r.any; \
    } \
    WEIR_MAYBE_ static inline A##_ref A##_weir_ref(weir_ref r) \
    { \
        A##_ref t = {r}; \
        return t; \
    } \
    WEIR_C_ const weir_type A##_weir_actor
#define WEIR_ACTOR_DEFINE(...) WEIR_CAT_(WEIR_ACTOR_DEFINE, WEIR_PICK_(__VA_ARGS__))(__VA_ARGS__)
#define WEIR_ACTOR_DEFINE0(A) \
    const weir_type A##_weir_actor = {#A, sizeof(A), WEIR_ALIGNOF_(A), WEIR_TYPE_UNTYPED, NULL, NULL}
#define WEIR_ACTOR_DEFINE1(A, ...) \
    WEIR_FIELDS_(A##_weir_actor_fields, A, __VA_ARGS__); \
    const weir_type A##_weir_actor = {#A, sizeof(A), WEIR_ALIGNOF_(A), 0, A##_weir_actor_fields, NULL}
#define WEIR_ACTOR(...) \
    WEIR_ACTOR1_(__VA_ARGS__, ~); \
    WEIR_ACTOR_DEFINE(__VA_ARGS__)
#define WEIR_ACTOR1_(A, ...) WEIR_ACTOR_DECLARE(A)
#define WEIR_ACTOR_FINAL(A, ...) \
    WEIR_ACTOR_DECLARE(A); \
    WEIR_ACTOR_DEFINE_FINAL(A, __VA_ARGS__)
#define WEIR_ACTOR_DEFINE_FINAL(A, ...) WEIR_CAT_(WEIR_ACTOR_FINAL, WEIR_PICK_(__VA_ARGS__))(A, __VA_ARGS__)
#define WEIR_ACTOR_FINALISE_(A, close) \
    static void A##_weir_actor_finalise(void *state) \
    { \
        close((A *)state); \
    }
#define WEIR_ACTOR_FINAL0(A, close) \
    WEIR_ACTOR_FINALISE_(A, close) \
    const weir_type A##_weir_actor = {#A, sizeof(A), WEIR_ALIGNOF_(A), WEIR_TYPE_UNTYPED, NULL, A##_weir_actor_finalise}
#define WEIR_ACTOR_FINAL1(A, close, ...) \
    WEIR_ACTOR_FINALISE_(A, close) \
    WEIR_FIELDS_(A##_weir_actor_fields, A, __VA_ARGS__); \
    const weir_type A##_weir_actor = { \
        #A, sizeof(A), WEIR_ALIGNOF_(A), 0, A##_weir_actor_fields, A##_weir_actor_finalise}

/* WEIR_BEHAVIOUR(A, M, fields...) { body }: what A does with a message M; the body sees `A *self` and `const M *msg`,
 * valid until it returns. The fields named hold handles. Defined twice is a link error. In a header, for other files to
 * send: WEIR_BEHAVIOUR_DECLARE(A, M). */
#define WEIR_BEHAVIOUR_DECLARE(A, M) WEIR_C_ const weir_behaviour A##_##M##_weir
#define WEIR_BEHAVIOUR(A, ...) WEIR_CAT_(WEIR_BEHAVIOUR, WEIR_PICK_(__VA_ARGS__))(A, __VA_ARGS__)
#define WEIR_BEHAVIOUR0(A, M) WEIR_BEHAVIOUR_(A, M, NULL)
#define WEIR_BEHAVIOUR1(A, M, ...) \
    WEIR_FIELDS_(A##_##M##_weir_fields, M, __VA_ARGS__); \
    WEIR_BEHAVIOUR_(A, M, A##_##M##_weir_fields)
#define WEIR_BEHAVIOUR_(A, M, fields) \
    static void A##_##M(A *self, const M *msg); \
    static void A##_##M##_weir_run(void *self, const void *msg) \
    { \
        A##_##M((A *)self, (const M *)msg); \
    } \
    WEIR_BEHAVIOUR_DECLARE(A, M); \
    const weir_behaviour A##_##M##_weir = {#A "." #M, &A##_weir_actor, sizeof(M), A##_##M##_weir_run, fields}; \
    static void A##_##M(WEIR_MAYBE_ A *self, WEIR_MAYBE_ const M *msg)

/* A new actor with this state; fields not named are zero. The caller holds the handle. A handle in the state counts as
 * held by the new actor; a pointer to the caller's own objects is refused (null handle), as in messages. Null handle
 * when memory is short or the run ends. Cost: about 200 ns with its end. Since 0.1. */
#define weir_spawn(...) WEIR_CAT_(WEIR_SPAWN, WEIR_PICK_(__VA_ARGS__))(__VA_ARGS__)
#define WEIR_SPAWN0(A) A##_weir_ref(weir_spawn_copy(&A##_weir_actor, WEIR_PTR_(A, (WEIR_LIT0(A)))))
#define WEIR_SPAWN1(A, ...) A##_weir_ref(weir_spawn_copy(&A##_weir_actor, WEIR_PTR_(A, (WEIR_LIT1(A, __VA_ARGS__)))))

/* Sends a message to an actor: weir_send(c, counter, add, .by = 1). Never blocks. Returns 0, or and nothing was sent:
 * WEIR_EHANDLE (null handle), WEIR_EOWNED, WEIR_EMSGSIZE, WEIR_ENOMEM, WEIR_ESHUTDOWN (the run is ending). Inside a
 * behaviour. Cost: about 15 ns. Since 0.1. */
#define weir_send(to, A, ...) WEIR_CAT_(WEIR_SEND, WEIR_PICK_(__VA_ARGS__))(to, A, __VA_ARGS__)
#define WEIR_SEND0(to, A, M) weir_send_copy(A##_weir_any(to), &A##_##M##_weir, WEIR_PTR_(M, (WEIR_LIT0(M))), NULL, 0)
#define WEIR_SEND1(to, A, M, ...) \
    weir_send_copy(A##_weir_any(to), &A##_##M##_weir, WEIR_PTR_(M, (WEIR_LIT1(M, __VA_ARGS__))), NULL, 0)

/* The same with `size` bytes behind the struct, read there with weir_tail(msg) and weir_tail_size(msg). Since 0.1. */
#define weir_send_tail(to, A, bytes, size, ...) \
    WEIR_CAT_(WEIR_SENDT, WEIR_PICK_(__VA_ARGS__))(to, A, bytes, size, __VA_ARGS__)
#define WEIR_SENDT0(to, A, bytes, size, M) \
    weir_send_copy(A##_weir_any(to), &A##_##M##_weir, WEIR_PTR_(M, (WEIR_LIT0(M))), bytes, size)
#define WEIR_SENDT1(to, A, bytes, size, M, ...) \
    weir_send_copy(A##_weir_any(to), &A##_##M##_weir, WEIR_PTR_(M, (WEIR_LIT1(M, __VA_ARGS__))), bytes, size)
/* The bytes behind the struct; no zero is added to them. */
#define weir_tail(msg) ((const char *)((msg) + 1))

#define WEIR_MESSAGE_MAX ((size_t)1 << 30) /* bytes of a message with its tail */

/* weir_self(counter): the running actor's own handle. weir_any(counter, c): the untyped handle. weir_cast(counter, r):
 * the typed one, null if r is of another type. weir_is_null(counter, c). */
#define weir_self(A) A##_weir_ref(weir_self_check(&A##_weir_actor))
#define weir_any(A, r) A##_weir_any(r)
#define weir_cast(A, r) A##_weir_ref(weir_ref_check(r, &A##_weir_actor))
#define weir_is_null(A, r) (A##_weir_any(r).actor == NULL)

WEIR_BEGIN_C_

/* The plain functions behind the macros, for generated code. `state`, `msg` and `tail` are copied. */
WEIR_API weir_ref weir_spawn_copy(const weir_type *type, const void *state);
WEIR_API int weir_send_copy(weir_ref to, const weir_behaviour *behaviour, const void *msg, const void *tail,
                            size_t tail_size);
WEIR_API weir_ref weir_ref_check(weir_ref ref, const weir_type *type);
WEIR_API weir_ref weir_self_check(const weir_type *type); /* trips a check if the running actor is of another type */
WEIR_API weir_ref weir_self_any(void);                    /* null handle outside a behaviour */
/* sequence number in this run, for logs; 0 for the null handle */
WEIR_API uint64_t weir_actor_id(weir_ref ref);

/* Bytes behind the message struct of the behaviour that runs now. Since 0.1. */
WEIR_API size_t weir_tail_size(const void *msg);

WEIR_END_C_

#endif
