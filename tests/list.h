/* SPDX-License-Identifier: MIT */
/* tests/list.h: every test of weir-tests, one line T(group, name) each, kept beside the tests of its layer.
 *
 * Included several times with different meanings of T, so it has no include guard. A test without a line here does not compile
 * (no prototype), a line without a test does not link.
 */
#include "unit/actors/list.h"
#include "unit/bench/list.h"
#include "unit/buffers/list.h"
#include "unit/harness/list.h"
#include "unit/memory/list.h"
#include "unit/platform/list.h"
#include "unit/protocols/list.h"
#include "unit/streams/list.h"
