/* SPDX-License-Identifier: MIT */
/* streams/descriptor.h: a connection on its way to the actor that will own it. */
#ifndef WR_STREAMS_DESCRIPTOR_H
#define WR_STREAMS_DESCRIPTOR_H

#include "weir/stream.h"

/* A descriptor that owns `fd`, held by the running actor. 0 or WEIR_ENOMEM (then the caller still owns fd). */
int wr_descriptor_new(int fd, weir_descriptor **out);

#endif
