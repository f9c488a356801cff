/* SPDX-License-Identifier: MIT */
/* streams/address.h: addresses as text: "unix:PATH", "unix:@NAME" (abstract), "tcp:1.2.3.4:PORT", "tcp:[IPV6]:PORT",
 * "tcp:[IPV6%SCOPE]:PORT". */
#ifndef WR_STREAMS_ADDRESS_H
#define WR_STREAMS_ADDRESS_H

#include "platform/os.h"

/* 0, WEIR_EINVAL (not an address) or WEIR_ENAMETOOLONG (a Unix path or name over WR_UNIX_PATH_MAX bytes). Names are
 * never looked up. */
int wr_address_parse(const char *text, wr_address *out);
/* Writes the text, zero-ended, cut to `size` bytes. Returns the length of the whole, always < WR_ADDRESS_TEXT_MAX. */
size_t wr_address_format(const wr_address *address, char *out, size_t size);

#endif
