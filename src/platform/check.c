/* SPDX-License-Identifier: MIT */
/* platform/check.c: the report of a failed check, and the end of the process.
 *
 * Job        Say what was wrong, what did not hold, who was running and how it got there; then abort, so that a
 *            debugger or a core dump shows the state as it was.
 * Invariants One report a process: the first failing thread writes it, others that fail meanwhile wait for the end. A
 *            check that fails while its own thread reports (a broken context function) ends the process at once,
 *            without recursion.
 *            Nothing is written through stdio: its locks may be held by the failing code.
 * Threads    Any. Not in signal handlers: formatting and the first back-trace of a process may allocate.
 * Cost       Nothing until a check fails.
 * Tried      Names of static functions need debug information that the process does not read; the report prints module
 *            and offset for addr2line instead.
 */
#include "platform/check.h"
#include "platform/os.h"

#include <execinfo.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FRAMES_MAX 64
#define LINE_MAX_BYTES 2048

static _Atomic(wr_check_context *) context_function;
static atomic_flag report_begun = ATOMIC_FLAG_INIT;
static WR_THREAD_LOCAL bool reporting;

void wr_check_set_context(wr_check_context *context)
{
    atomic_store_explicit(&context_function, context, memory_order_release);
}

static void say(const char *text)
{
    wr_os_write_stderr(text, strlen(text));
}

WR_PRINTF(1, 2) static void say_format(const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(line, sizeof line, format, arguments) > 0)
        say(line);
    va_end(arguments);
}

/* Returns in the one thread that shall report. */
static void begin_report(void)
{
    if (reporting) {
        say("weir: another check failed while the first was being reported\n");
        abort();
    }
    reporting = true;
    while (atomic_flag_test_and_set_explicit(&report_begun, memory_order_acq_rel))
        pause();
}

WR_NORETURN static void end_report(void)
{
    wr_check_context *context = atomic_load_explicit(&context_function, memory_order_acquire);
    if (context != NULL) {
        char text[512] = "";
        context(text, sizeof text);
        text[sizeof text - 1] = '\0';
        say_format("  running    %s\n", text);
    }
    void *frames[FRAMES_MAX];
    int count = backtrace(frames, FRAMES_MAX);
    say("  back-trace\n");
    if (count > 1)
        backtrace_symbols_fd(frames + 1, count - 1, STDERR_FILENO);
    abort();
}

void wr_check_failed(const char *file, int line, const char *expression, const char *format, ...)
{
    begin_report();
    char message[LINE_MAX_BYTES];
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(message, sizeof message, format, arguments) < 0)
        message[0] = '\0';
    va_end(arguments);
    say("weir: check failed: ");
    say(message);
    say("\n");
    say_format("  condition  %s\n  at         %s:%d\n", expression, file, line);
    end_report();
}

void wr_fatal(const char *format, ...)
{
    begin_report();
    char message[LINE_MAX_BYTES];
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(message, sizeof message, format, arguments) < 0)
        message[0] = '\0';
    va_end(arguments);
    say("weir: fatal: ");
    say(message);
    say("\n");
    end_report();
}
