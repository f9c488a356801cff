/* SPDX-License-Identifier: MIT */
/* memory/type.c: the types that come with the runtime.
 *
 * Job        Bytes (a leaf) and references (always made as arrays).
 * Invariants Constant.
 * Threads    Any.
 * Cost       None.
 */
#include "memory/heap.h"

static const weir_field one_reference[] = {{0, 1}, {0, 0}};

const weir_type wr_type_bytes = {"bytes", 0, 16, 0, NULL, NULL};
const weir_type wr_type_refs = {"refs", sizeof(void *), _Alignof(void *), 0, one_reference, NULL};
