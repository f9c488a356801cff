/* SPDX-License-Identifier: MIT */
/* protocols/resp_line.h: finding the end of a line in input that arrives in pieces.
 *
 * Job        One search for both parsers, bounded, that never looks at a byte twice.
 * Invariants The answer depends on the bytes only, not on how the input was cut: a line is too long exactly if none
 *            of its first `line_max` + 1 bytes is the end mark.
 * Threads    Any; no state.
 */
#ifndef WR_PROTOCOLS_RESP_LINE_H
#define WR_PROTOCOLS_RESP_LINE_H

#include "platform/compiler.h"
#include <stddef.h>
#include <string.h>

#define WR_RESP_LINE_MAX_USUAL ((size_t)64 << 10)
#define WR_RESP_BULK_MAX_USUAL ((size_t)512 << 20)
#define WR_RESP_COUNT_MAX_USUAL ((size_t)1 << 20)
#define WR_RESP_TOTAL_MAX_USUAL ((size_t)1 << 30)

typedef enum wr_line { WR_LINE_MORE, WR_LINE_FOUND, WR_LINE_TOO_LONG } wr_line;

/* Looks for `mark` in the line that starts at `line`, from *at on. FOUND: *at is the mark's offset; MORE: where to go
 * on. */
WR_INLINE wr_line wr_line_find(const char *input, size_t size, size_t line, size_t *at, char mark, size_t line_max)
{
    size_t end = size - line > line_max ? line + line_max + 1 : size;
    size_t quick = end - *at > 16 ? *at + 16 : end; /* length lines are short: no call for them */
    for (size_t i = *at; i < quick; i++) {
        if (input[i] == mark) {
            *at = i;
            return WR_LINE_FOUND;
        }
    }
    const char *found = quick < end ? memchr(input + quick, mark, end - quick) : NULL;
    if (found != NULL) {
        *at = (size_t)(found - input);
        return WR_LINE_FOUND;
    }
    *at = end;
    return end - line > line_max ? WR_LINE_TOO_LONG : WR_LINE_MORE;
}

#endif
