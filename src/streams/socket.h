/* SPDX-License-Identifier: MIT */
/* streams/socket.h: listening sockets and the files of Unix ones. */
#ifndef WR_STREAMS_SOCKET_H
#define WR_STREAMS_SOCKET_H

#include "platform/os.h"

/* The file of a Unix socket, to be removed by whoever made it and by nobody else. */
typedef struct wr_socket_file {
    bool exists;
    uint64_t device, inode;
} wr_socket_file;

/* A listening descriptor. For a Unix path: the file that was made, in *file. `replace_dead`: a socket file that nobody
 * listens on is removed first; the socket of a living server never is, also when several servers start at once.
 * Negative codes as weir_listen gives them. */
int wr_socket_open_listener(const wr_address *address, int backlog, bool replace_dead, wr_socket_file *file,
                            int *out_fd);
/* Removes the file if it is still the one that was made. Before the descriptor is closed: nobody takes the file for
 * dead meanwhile. */
void wr_socket_remove_file(const wr_address *address, wr_socket_file *file);

#endif
