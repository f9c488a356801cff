/* SPDX-License-Identifier: MIT */
/* platform/os_memory.c: memory of the Linux process: address ranges and general allocation.
 *
 * Job        Reserve, commit, decommit, uncommit and release page ranges; a zeroing, cache-line-aligned allocator for
 *            what is rare.
 * Invariants A reserved page costs address space only (PROT_NONE, MAP_NORESERVE). A page that was committed anew or
 *            decommitted reads as zero. A failed call leaves the range as it was.
 * Threads    Any; two threads may work on different ranges of one reservation.
 * Cost       One system call each, reserve up to three. Neighbouring ranges with different access cost a kernel mapping
 *            each, of which a process has 65 530: commit in large steps.
 */
#include "platform/check.h"
#include "platform/fail.h"
#include "platform/os.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ALLOC_MAX \
    ((size_t)1 << 40) /* a size beyond is a mistake, and an allocator's report of it would be less clear */

size_t wr_os_page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void check_range(void *start, size_t size)
{
    WR_ASSERT(start != NULL);
    WR_ASSERT((uintptr_t)start % wr_os_page_size() == 0);
    WR_ASSERT(size % wr_os_page_size() == 0);
    (void)start;
    (void)size;
}

int wr_os_reserve(size_t size, size_t alignment, void **out)
{
    size_t page = wr_os_page_size();
    WR_ASSERT(size > 0 && size % page == 0);
    WR_ASSERT(alignment >= page && (alignment & (alignment - 1)) == 0);
    *out = NULL;
    int code = wr_fail_point(WR_FAIL_RESERVE);
    if (code != 0)
        return code;
    size_t padded;
    if (WR_ADD_OVERFLOWS(size, alignment - page, &padded))
        return -ENOMEM;
    void *mapped = mmap(NULL, padded, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
        return -ENOMEM;
    char *first = mapped;
    size_t before = (alignment - (uintptr_t)first % alignment) % alignment;
    size_t after = padded - before - size;
    if (before > 0)
        wr_os_release(first, before);
    if (after > 0)
        wr_os_release(first + before + size, after);
    *out = first + before;
    return 0;
}

int wr_os_commit(void *start, size_t size)
{
    check_range(start, size);
    int code = wr_fail_point(WR_FAIL_COMMIT);
    if (code != 0 || size == 0)
        return code;
    return mprotect(start, size, PROT_READ | PROT_WRITE) == 0 ? 0 : -errno;
}

int wr_os_decommit(void *start, size_t size)
{
    check_range(start, size);
    int code = wr_fail_point(WR_FAIL_DECOMMIT);
    if (code != 0 || size == 0)
        return code;
    return madvise(start, size, MADV_DONTNEED) == 0 ? 0 : -errno;
}

int wr_os_uncommit(void *start, size_t size)
{
    check_range(start, size);
    int code = wr_fail_point(WR_FAIL_DECOMMIT);
    if (code != 0 || size == 0)
        return code;
    /* A fresh mapping over the old one: after madvise and mprotect a strictly counting system would still charge it. */
    void *mapped = mmap(start, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return mapped != MAP_FAILED ? 0 : -errno;
}

void wr_os_release(void *start, size_t size)
{
    check_range(start, size);
    int rc = munmap(start, size);
    WR_CHECK(rc == 0, "releasing %zu bytes of address space failed (errno %d)", size, errno);
}

void *wr_os_alloc(size_t size)
{
    if (wr_fail_point(WR_FAIL_ALLOC) != 0 || size > ALLOC_MAX)
        return NULL;
    size_t rounded = (size + WR_CACHE_LINE - 1) & ~(size_t)(WR_CACHE_LINE - 1);
    if (rounded == 0)
        rounded = WR_CACHE_LINE;
    void *p = aligned_alloc(WR_CACHE_LINE, rounded);
    return p != NULL ? memset(p, 0, rounded) : NULL;
}

void *wr_os_realloc(void *p, size_t old_size, size_t new_size)
{
    WR_ASSERT(p != NULL || old_size == 0);
    void *grown = wr_os_alloc(new_size);
    if (grown == NULL)
        return NULL;
    if (p != NULL) {
        memcpy(grown, p, old_size < new_size ? old_size : new_size);
        wr_os_free(p);
    }
    return grown;
}

void wr_os_free(void *p)
{
    free(p);
}
