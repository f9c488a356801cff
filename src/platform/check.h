/* SPDX-License-Identifier: MIT */
/* platform/check.h: what must hold, in two strengths, and the one way to end the process.
 *
 * Job        WR_CHECK guards the borders of the API and is always compiled in; WR_ASSERT guards inner promises and is
 *            compiled in where WR_DEBUG is 1 (dev, asan, tsan builds). Both print the expression, a message with
 *            values, the actor and behaviour that were running and a back-trace, then abort.
 * Threads    Any. The first failing thread reports; others wait for the end.
 * Cost       WR_CHECK: one predicted branch, the report is out of line. WR_ASSERT in release builds: nothing, and its
 *            operands still compile.
 * Why not assert.h: it names neither the actor nor the behaviour and prints no back-trace.
 */
#ifndef WR_PLATFORM_CHECK_H
#define WR_PLATFORM_CHECK_H

#include "platform/compiler.h"

#ifndef WR_DEBUG
#define WR_DEBUG 0
#endif

/* WR_CHECK(condition, "format", values...): the message says what was wrong and what the caller should do instead. */
#define WR_CHECK(condition, ...) \
    do { \
        if (WR_UNLIKELY(!(condition))) \
            wr_check_failed(__FILE__, __LINE__, #condition, __VA_ARGS__); \
    } while (0)

#if WR_DEBUG
#define WR_ASSERT(condition) \
    do { \
        if (WR_UNLIKELY(!(condition))) \
            wr_check_failed(__FILE__, __LINE__, #condition, "internal"); \
    } while (0)
#else
#define WR_ASSERT(condition) ((void)sizeof((condition) ? 1 : 0))
#endif

/* Prints the report for a failed check and aborts. `format` may not be NULL. Async-signal-unsafe. */
WR_COLD WR_NORETURN WR_PRINTF(4, 5) void wr_check_failed(const char *file, int line, const char *expression,
                                                         const char *format, ...);

/* An error that is not a bug but cannot be survived (out of address space, say): message, context, no expression;
 * aborts. */
WR_COLD WR_NORETURN WR_PRINTF(1, 2) void wr_fatal(const char *format, ...);

/* Who says what was running: writes a short description ("actor 7 counter, behaviour counter.add") into `out`, at most
 * `size` bytes with the ending zero. Handed in by the actor layer, which platform must not know; NULL takes it back. */
typedef void wr_check_context(char *out, size_t size);
void wr_check_set_context(wr_check_context *context);

#endif
