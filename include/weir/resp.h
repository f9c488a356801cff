/* SPDX-License-Identifier: MIT */
/* weir/resp.h: the Redis protocol, RESP2: incremental parser, encoder, and a client connection that pipelines by
 * itself.
 *
 * The parser never recurses, allocates nothing from a length that the peer merely claims, and is bounded in depth,
 * lengths and totals.
 */
#ifndef WEIR_RESP_H
#define WEIR_RESP_H

#include "weir/base.h"
#include "weir/buffer.h"
#include "weir/stream.h"
#include <stdbool.h>

WEIR_BEGIN_C_

/* ---- commands, as a server receives them ---- */

typedef struct weir_resp_arg {
    const char *bytes; /* in the input given to the parser (inline commands: in its own text); not zero-ended */
    size_t size;
} weir_resp_arg;

typedef struct weir_resp_limits { /* 0: the usual value; at most 1 << 40 */
    size_t bulk_max;              /* bytes of one bulk string; usual 512 MiB */
    size_t args_max;              /* arguments of one command; usual 1 048 576 */
    size_t inline_max;            /* bytes of an inline command or of a length line; usual 64 KiB */
    size_t command_max;           /* bytes of one whole command; usual 1 GiB */
} weir_resp_limits;

/* Finds one command at the start of a growing input. Keeps where it was, so that no byte is looked at twice when more
 * input comes (a caller may move the input in between: positions are offsets). Zeroed memory is a ready parser; only
 * `limits` is for the caller to write. It refers to heap memory through `spans`, `args` and `text`: keep it where the
 * collector sees them (in an object whose type names them, an untyped one, or an actor's state). */
typedef struct weir_resp_commands {
    weir_resp_limits limits;
    size_t at;        /* offset of the next byte to look at */
    size_t line;      /* offset of the line that is being looked at */
    size_t need;      /* after WEIR_RESP_MORE: the whole input so far needed at least, 0 if not known */
    size_t args_left; /* 0: no command begun */
    size_t bulk_size; /* of the argument that is arriving, with its line end; 0: a length line comes next */
    size_t count;     /* arguments so far */
    size_t capacity, args_capacity, text_capacity;
    size_t *spans; /* offset and size of each argument so far */
    weir_resp_arg *args;
    char *text;     /* what the quotes of an inline command stood for */
    char error[64]; /* after WEIR_EPROTO: what is wrong, as Redis words it ("Protocol error: ...") */
} weir_resp_commands;

#define WEIR_RESP_MORE 0
#define WEIR_RESP_COMMAND 1

/* Looks at input[0, size). WEIR_RESP_COMMAND: parser->args[0 .. count) is a command (count 0: an empty line, ignore
 * it), *used bytes belong to it; call again with the rest. WEIR_RESP_MORE: call again with the same bytes and more.
 * WEIR_EPROTO: parser->error, and the parser must not be used again. Inside a behaviour. The result does not depend
 * on how the input was cut. Cost: about 15 ns an argument, nothing allocated once the arrays have grown.
 * Since 0.1. */
WEIR_API int weir_resp_next_command(weir_resp_commands *parser, const char *input, size_t size, size_t *used);

/* ---- replies, as a client receives them ---- */

typedef enum weir_resp_kind {
    WEIR_RESP_SIMPLE,
    WEIR_RESP_ERROR,
    WEIR_RESP_INTEGER,
    WEIR_RESP_BULK,
    WEIR_RESP_NULL,
    WEIR_RESP_ARRAY
} weir_resp_kind;

/* One element of a reply in reading order: an array of n is followed by its n elements. */
typedef struct weir_resp_value {
    weir_resp_kind kind;
    uint32_t depth;    /* 0: the reply itself */
    int64_t integer;   /* WEIR_RESP_INTEGER: the value; WEIR_RESP_ARRAY: the count */
    const char *bytes; /* WEIR_RESP_SIMPLE, ERROR, BULK */
    size_t size;
} weir_resp_value;

#define WEIR_RESP_DEPTH_MAX 32

typedef struct weir_resp_replies weir_resp_replies; /* parser state, a heap object */

/* A parser for replies; limits NULL: usual ones. Inside a behaviour. */
WEIR_API weir_resp_replies *weir_resp_replies_new(const weir_resp_limits *limits);
/* Like weir_resp_next_command: 1: a whole reply, *values[0 .. *count) in reading order, pointing into the input; 0:
 * more input; WEIR_EPROTO. */
WEIR_API int weir_resp_next_reply(weir_resp_replies *parser, const char *input, size_t size, size_t *used,
                                  const weir_resp_value **values, size_t *count);
/* Bytes of input needed at least before the next call can succeed; 0 if not known. */
WEIR_API size_t weir_resp_replies_need(const weir_resp_replies *parser);

/* ---- writing ---- */

/* A growing piece of text in the actor's heap. Zeroed memory is an empty one. */
typedef struct weir_resp_text {
    char *bytes;
    size_t size, capacity;
} weir_resp_text;

/* Raw bytes; +string; -message. Line ends in a string or message become spaces. */
WEIR_API void weir_resp_put(weir_resp_text *text, const void *bytes, size_t size);
WEIR_API void weir_resp_put_simple(weir_resp_text *text, const char *string);
WEIR_API void weir_resp_put_error(weir_resp_text *text, const char *message);
WEIR_API void weir_resp_put_integer(weir_resp_text *text, int64_t value);
WEIR_API void weir_resp_put_bulk(weir_resp_text *text, const void *bytes, size_t size);
WEIR_API void weir_resp_put_null(weir_resp_text *text);                /* $-1 */
WEIR_API void weir_resp_put_null_array(weir_resp_text *text);          /* *-1 */
WEIR_API void weir_resp_put_array(weir_resp_text *text, size_t count); /* the header; elements follow */
/* "$123\r\n" for a body that is written apart. Returns its length. */
WEIR_API size_t weir_resp_bulk_header(char out[32], size_t size);

/* ---- a client connection ---- */

typedef struct weir_resp_client weir_resp_client;

/* `reply` is called once for each command in the order of the commands: with the reply, or with code < 0 and no
 * values when the connection failed before it came (WEIR_ECANCELED: after weir_resp_client_close). Values are valid
 * until the callback returns. NULL: the reply is not of interest. */
typedef void weir_resp_on_reply(weir_resp_client *client, void *arg, int code, const weir_resp_value *values,
                                size_t count);

/* Connects to "unix:..." or "tcp:..."; commands may be given at once. `closed(client, arg, code)` is called once and
 * last, unless NULL: code 0 after weir_resp_client_end, WEIR_ECANCELED after weir_resp_client_close, WEIR_ECONNRESET
 * when the server ended the connection, WEIR_EPROTO when it sent what is no reply, or what the stream failed with.
 * Returns what weir_stream_connect does. `arg` of the heap is kept alive. Since 0.1. */
WEIR_API int weir_resp_client_connect(const char *address,
                                      void (*closed)(weir_resp_client *client, void *arg, int code), void *arg,
                                      weir_resp_client **out);
/* Sends a command; all commands of one turn leave in one system call. Returns 0, 1 (over the high-water mark: better
 * wait for replies) or a negative code (then `reply` is never called). `arg` of the heap is kept alive until the
 * reply. */
WEIR_API int weir_resp_client_command(weir_resp_client *client, size_t count, const weir_resp_arg *args,
                                      weir_resp_on_reply *reply, void *arg);
/* The same for a command that is already encoded (one whole command; not checked). */
WEIR_API int weir_resp_client_encoded(weir_resp_client *client, const void *bytes, size_t size,
                                      weir_resp_on_reply *reply, void *arg);
/* The last argument is a buffer that is not copied if it is large. */
WEIR_API int weir_resp_client_command_buf(weir_resp_client *client, size_t count, const weir_resp_arg *args,
                                          weir_buf *last, weir_resp_on_reply *reply, void *arg);
WEIR_API void weir_resp_client_end(weir_resp_client *client);            /* after the replies that are still to come */
WEIR_API void weir_resp_client_close(weir_resp_client *client);          /* now */
WEIR_API weir_stream *weir_resp_client_stream(weir_resp_client *client); /* for statistics */

WEIR_END_C_

#endif
