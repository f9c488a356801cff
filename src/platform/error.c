/* SPDX-License-Identifier: MIT */
/* platform/error.c: names of the error codes, and the version.
 *
 * Job        weir_strerror for every code, Weir's own first, the system's after them.
 * Invariants A text is never NULL.
 * Threads    Any; static texts.
 * Cost       A switch.
 */
#include "weir/base.h"
#include <string.h>

const char *weir_strerror(int error)
{
    switch (error) {
    case WEIR_OK: return "no error";
    case WEIR_EBUSY: return "busy: a run is under way, or somebody else has taken it";
    case WEIR_ENOBUFS: return "a queue is at its hard limit";
    case WEIR_ESHUTDOWN: return "the run is ending, or this side was ended already";
    case WEIR_EOWNED: return "the message refers to an object of the sender's own heap; send values, text or handles";
    case WEIR_EHANDLE: return "a handle is null, not held by the caller, or of another kind";
    default: break;
    }
    const char *text = error < 0 && error > -4000 ? strerrordesc_np(-error) : NULL;
    return text != NULL ? text : "unknown error";
}

const char *weir_version(void)
{
    return WEIR_VERSION;
}
