/* SPDX-License-Identifier: MIT */
/* streams/read_block.h: the block that all streams of one scheduler read into. */
#ifndef WR_STREAMS_READ_BLOCK_H
#define WR_STREAMS_READ_BLOCK_H

#include "buffers/store.h"

/* Where the next read may put its bytes: at least 16 KiB. NULL when memory is short. Valid until this thread runs
 * another stream's read. */
char *wr_read_block_room(size_t *size);
/* Bytes [start, start + size) of the room as a buffer of the running actor; they are not read into again. */
weir_buf *wr_read_block_keep(const char *start, size_t size);
/* Does the range lie in this scheduler's block. */
bool wr_read_block_has(const char *start, size_t size);

#endif
