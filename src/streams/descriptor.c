/* SPDX-License-Identifier: MIT */
/* streams/descriptor.c: connections as handles that messages carry.
 *
 * Job        A shared thing with a descriptor number in it, from accept (or pair, or elsewhere) to whoever opens it as
 *            a stream.
 * Invariants The number is taken by exactly one exchange: by the stream that opens it, or by the end of the handle,
 *            which closes it. -1: taken.
 * Threads    Any holder may open; the end runs on any scheduler.
 * Cost       A small pool block; opening: one atomic exchange and what a stream costs.
 */
#include "streams/descriptor.h"

#include "actors/services.h"
#include "platform/check.h"
#include "platform/os.h"
#include "streams/stream.h"

/* Descriptors are scarce: an actor that holds 256 it does not need is collected by the usual limit of 1 MiB. */
#define CHARGE_BYTES 4096u

struct weir_descriptor {
    wr_shared shared;
    _Atomic int fd;
};

static void descriptor_destroy(wr_shared *shared)
{
    weir_descriptor *descriptor = WR_CONTAINER(weir_descriptor, shared, shared);
    int fd = atomic_exchange_explicit(&descriptor->fd, -1, memory_order_acq_rel);
    if (fd >= 0)
        wr_fd_close(fd);
    wr_block_give(descriptor, sizeof *descriptor);
}

static const wr_shared_kind descriptor_kind = {"descriptor", descriptor_destroy};

int wr_descriptor_new(int fd, weir_descriptor **out)
{
    WR_ASSERT(fd >= 0);
    weir_descriptor *descriptor = wr_block_take(sizeof *descriptor);
    *out = descriptor;
    if (descriptor == NULL)
        return WEIR_ENOMEM;
    descriptor->shared.kind = &descriptor_kind;
    atomic_init(&descriptor->shared.count, 1);
    descriptor->shared.size = CHARGE_BYTES;
    atomic_init(&descriptor->fd, fd);
    wr_hold_here(&descriptor->shared);
    return 0;
}

int weir_stream_open(weir_descriptor *descriptor, const weir_stream_events *events, void *arg, weir_stream **out)
{
    *out = NULL;
    int code = wr_stream_may_open();
    if (code != 0)
        return code;
    if (descriptor == NULL || !wr_holds_here(descriptor) || descriptor->shared.kind != &descriptor_kind)
        return WEIR_EHANDLE;
    int fd = atomic_exchange_explicit(&descriptor->fd, -1, memory_order_acq_rel);
    if (fd < 0)
        return WEIR_EBUSY;
    code = wr_stream_new(fd, false, events, arg, out);
    if (code != 0)
        atomic_store_explicit(&descriptor->fd, fd, memory_order_release);
    return code;
}

int weir_descriptor_from_fd(int fd, weir_descriptor **out)
{
    *out = NULL;
    int code = wr_stream_may_open();
    if (code == 0)
        code = fd >= 0 ? wr_socket_error(fd) : WEIR_EINVAL; /* also says whether it is a socket at all */
    return code == 0 ? wr_descriptor_new(fd, out) : code;
}

int weir_descriptor_pair(weir_descriptor *out[2])
{
    out[0] = out[1] = NULL;
    int code = wr_stream_may_open();
    if (code != 0)
        return code;
    int fds[2];
    code = wr_socket_pair(fds);
    if (code != 0)
        return code;
    code = wr_descriptor_new(fds[0], &out[0]);
    if (code == 0) {
        fds[0] = -1;
        code = wr_descriptor_new(fds[1], &out[1]);
    }
    if (code == 0)
        return 0;
    /* A first one that was made already closes with its handle. */
    out[0] = out[1] = NULL;
    if (fds[0] >= 0)
        wr_fd_close(fds[0]);
    wr_fd_close(fds[1]);
    return code;
}
