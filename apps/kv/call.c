/* SPDX-License-Identifier: MIT */
/* kv/call.c: see call.h. Also reads words and numbers out of arguments, for shards and sessions alike. */
#include "call.h"
#include "app.h"
#include <string.h>

int64_t call_now(call *c)
{
    if (c->now_ms == 0)
        c->now_ms = weir_unix_ms();
    return c->now_ms;
}

void answer_ok(call *c)
{
    c->kind = ANSWER_OK;
}

void answer_null(call *c)
{
    c->kind = ANSWER_NULL;
}

void answer_integer(call *c, int64_t value)
{
    c->kind = ANSWER_INTEGER;
    c->number = value;
}

void answer_error(call *c, const char *message)
{
    c->kind = ANSWER_TEXT;
    c->text->size = 0;
    weir_resp_put_error(c->text, message);
}

void answer_bulk(call *c, const void *bytes, size_t size)
{
    char header[32];
    size_t header_size = weir_resp_bulk_header(header, size);
    c->kind = ANSWER_TEXT;
    if (size < KV_LARGE) {
        weir_resp_put_bulk(c->text, bytes, size);
    } else if (weir_buf_new_store(header_size + size + 2, &c->store) < 0) {
        answer_error(c, ERROR_NO_MEMORY);
    } else {
        char *out = weir_buf_data(c->store);
        memcpy(out, header, header_size);
        memcpy(out + header_size, bytes, size);
        memcpy(out + header_size + size, "\r\n", 2);
        c->kind = ANSWER_STORE;
    }
}

void answer_buf(call *c, weir_buf *value)
{
    char header[32];
    c->kind = ANSWER_BULK;
    c->store = value;
    weir_resp_put(c->text, header, weir_resp_bulk_header(header, weir_buf_length(value)));
}

bool arg_is(const weir_resp_arg *arg, const char *word)
{
    for (size_t i = 0; i < arg->size; i++) {
        char c = arg->bytes[i];
        if (c >= 'A' && c <= 'Z')
            c = (char)(c | 0x20);
        if (word[i] == '\0' || c != word[i])
            return false;
    }
    return word[arg->size] == '\0';
}

/* Only the canonical spelling is an integer: no plus sign, no spaces, no leading zeros. */
bool arg_integer(const weir_resp_arg *arg, int64_t *out)
{
    bool negative = arg->size > 0 && arg->bytes[0] == '-';
    size_t at = negative;
    uint64_t value = 0;
    if (arg->size <= at || arg->size > 20)
        return false;
    if (arg->bytes[at] == '0') {
        *out = 0;
        return arg->size == 1;
    }
    for (; at < arg->size; at++) {
        unsigned digit = (unsigned)(unsigned char)arg->bytes[at] - '0';
        if (digit > 9 || MUL_OVERFLOWS(value, 10u, &value) || ADD_OVERFLOWS(value, digit, &value))
            return false;
    }
    if (value > (uint64_t)INT64_MAX + negative)
        return false;
    *out = (int64_t)(negative ? 0 - value : value);
    return true;
}
