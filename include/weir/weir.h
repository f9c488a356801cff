/* SPDX-License-Identifier: MIT */
/* weir/weir.h: everything. */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

#include "weir/actor.h"
#include "weir/base.h"
#include "weir/buffer.h"
#include "weir/heap.h"
#include "weir/resp.h"
#include "weir/runtime.h"
#include "weir/stream.h"

#endif
