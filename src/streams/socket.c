/* SPDX-License-Identifier: MIT */
/* streams/socket.c: listening on addresses, and taking over the socket file of a dead server.
 *
 * Job        A listening descriptor for any address. A Unix socket's file outlives a killed server; removing it must
 *            never hit a living one.
 * Invariants Between "nobody answers" and "removed" no other Weir program may put its own socket there, nor be between
 *            bind and listen, where it does not answer yet. So all of this happens under a lock: an abstract socket
 *            named after folder and file, which the kernel frees whatever becomes of the process. Whoever finds it
 *            taken reports WEIR_EADDRINUSE: somebody is just taking the path. At the end the file is removed only if it
 *            is the one made here, and before the descriptor is closed.
 * Threads    Any.
 * Cost       Two sockets and some calls on paths, once a listener.
 * Tried      Bind to another name and rename over the path: also renames over a living server's socket. A lock file:
 *            stays behind.
 * Limits     Programs in different network namespaces do not see each other's lock; other people's programs never do.
 */
#include "streams/socket.h"

#include "platform/check.h"
#include "weir/base.h"

#include <stdio.h>
#include <string.h>

static uint64_t text_hash(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (; *text != '\0'; text++)
        hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    return hash;
}

/* The lock of a path: one name however the folder is spelled. 0 and a descriptor; 0 and -1 where no lock can be had
 * (the folder does not exist, the system has no abstract names); WEIR_EADDRINUSE: taken. */
static int lock_path(const wr_address *address, int *out_fd)
{
    *out_fd = -1;
    char folder[WR_UNIX_PATH_MAX + 4];
    const char *slash = strrchr(address->path, '/');
    const char *file = slash != NULL ? slash + 1 : address->path;
    /* The dot makes a link to a folder count as that folder. */
    snprintf(folder, sizeof folder, "%.*s.", (int)(file - address->path), address->path);
    uint64_t device, inode;
    if (wr_path_identity(folder, &device, &inode) != 0)
        return 0;
    wr_address name = {.kind = WR_ADDRESS_ABSTRACT};
    int length = snprintf(name.path, sizeof name.path, "weir-listen-%llx-%llx-%llx", (unsigned long long)device,
                          (unsigned long long)inode, (unsigned long long)text_hash(file));
    name.path_size = (size_t)length;
    return wr_socket_listen(&name, 1, out_fd) == -EADDRINUSE ? WEIR_EADDRINUSE : 0;
}

static int listen_on_path(const wr_address *address, int backlog, bool replace_dead, int *out_fd)
{
    int code = wr_socket_listen(address, backlog, out_fd);
    if (code != -EADDRINUSE || !replace_dead || wr_socket_probe(address) != 0)
        return code;
    code = wr_path_remove(address->path);
    return code != 0 && code != -ENOENT ? code : wr_socket_listen(address, backlog, out_fd);
}

int wr_socket_open_listener(const wr_address *address, int backlog, bool replace_dead, wr_socket_file *file,
                            int *out_fd)
{
    file->exists = false;
    *out_fd = -1;
    if (address->kind != WR_ADDRESS_UNIX)
        return wr_socket_listen(address, backlog, out_fd);
    int lock;
    int code = lock_path(address, &lock);
    if (code != 0)
        return code;
    code = listen_on_path(address, backlog, replace_dead, out_fd);
    if (code == 0)
        file->exists = wr_path_identity(address->path, &file->device, &file->inode) == 0;
    if (lock >= 0)
        wr_fd_close(lock);
    return code;
}

void wr_socket_remove_file(const wr_address *address, wr_socket_file *file)
{
    if (!file->exists)
        return;
    WR_ASSERT(address->kind == WR_ADDRESS_UNIX);
    file->exists = false;
    uint64_t device, inode;
    if (wr_path_identity(address->path, &device, &inode) == 0 && device == file->device && inode == file->inode)
        (void)wr_path_remove(address->path); /* somebody else did: as good */
}
