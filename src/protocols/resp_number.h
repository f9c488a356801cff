/* SPDX-License-Identifier: MIT */
/* protocols/resp_number.h: the one way RESP spells integers.
 *
 * Job        Text to int64_t and back, for parser and encoder.
 * Invariants Only the canonical spelling is read, as Redis does: no plus sign, no leading zeros, no "-0", nothing
 *            around it.
 * Threads    Any; no state.
 * Cost       About a nanosecond a digit.
 */
#ifndef WR_PROTOCOLS_RESP_NUMBER_H
#define WR_PROTOCOLS_RESP_NUMBER_H

#include "platform/compiler.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WR_RESP_INTEGER_MAX 20 /* characters of INT64_MIN */

WR_INLINE bool wr_resp_read_integer(const char *text, size_t size, int64_t *out)
{
    bool negative = size > 0 && text[0] == '-';
    size_t at = negative;
    if (size <= at || size > WR_RESP_INTEGER_MAX)
        return false;
    if (text[at] == '0') { /* zero stands alone, without a sign */
        *out = 0;
        return size == 1;
    }
    uint64_t value = 0;
    for (; at < size; at++) {
        unsigned digit = (unsigned)(unsigned char)text[at] - '0';
        if (digit > 9 || WR_MUL_OVERFLOWS(value, 10u, &value) || WR_ADD_OVERFLOWS(value, digit, &value))
            return false;
    }
    if (value > (uint64_t)INT64_MAX + negative)
        return false;
    *out = (int64_t)(negative ? 0 - value : value);
    return true;
}

/* Writes at most WR_RESP_INTEGER_MAX characters; returns how many. */
WR_INLINE size_t wr_resp_write_integer(char *out, int64_t value)
{
    char reversed[WR_RESP_INTEGER_MAX];
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    size_t digits = 0, size = 0;
    do {
        reversed[digits++] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0)
        out[size++] = '-';
    while (digits > 0)
        out[size++] = reversed[--digits];
    return size;
}

#endif
