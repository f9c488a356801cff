/* SPDX-License-Identifier: MIT */
/* tests/unit/platform/test_memory.c: address ranges and general allocation. */
#include "unit/platform/kit.h"

#include <errno.h>
#include <sys/mman.h>

#define RANGE ((size_t)1 << 20)

static unsigned char *reserved(size_t size, size_t alignment)
{
    void *start;
    EXPECT_OK(wr_os_reserve(size, alignment, &start));
    return start;
}

static bool all_zero(const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != 0)
            return false;
    }
    return true;
}

/* Pages of the range that have memory behind them. */
static size_t resident_pages(unsigned char *start, size_t size)
{
    static unsigned char map[65536];
    size_t pages = size / wr_os_page_size();
    size_t count = 0;
    EXPECT(pages <= sizeof map);
    EXPECT_EQ(mincore(start, size, map), 0);
    for (size_t i = 0; i < pages; i++)
        count += map[i] & 1;
    return count;
}

TEST(os_memory, reservation_is_aligned_as_asked)
{
    for (size_t alignment = wr_os_page_size(); alignment <= 64 * RANGE; alignment *= 4) {
        unsigned char *start = reserved(RANGE, alignment);
        EXPECT_EQ((uintptr_t)start % alignment, 0);
        wr_os_release(start, RANGE);
    }
}

/* Of the address space of this process. */
static unsigned long mapped_pages(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    EXPECT(file != NULL);
    EXPECT_EQ(fscanf(file, "%lu", &pages), 1);
    fclose(file);
    return pages;
}

TEST(os_memory, aligned_reservation_takes_no_more_than_its_size)
{
    void *starts[8];
    mapped_pages(); /* the first reading may allocate */
    unsigned long before = mapped_pages();
    for (int i = 0; i < 8; i++)
        starts[i] = reserved(RANGE, 16 * RANGE);
    EXPECT_EQ(mapped_pages(), before + 8 * RANGE / wr_os_page_size());
    for (int i = 0; i < 8; i++)
        wr_os_release(starts[i], RANGE);
    EXPECT_EQ(mapped_pages(), before);
}

TEST(os_memory, reserved_pages_cannot_be_touched)
{
    unsigned char *start = reserved(RANGE, RANGE);
    /* The kernel refuses to copy to a page without access, where a store of our own would end the test. */
    int ends[2];
    EXPECT_OK(wr_socket_pair(ends));
    send_text(ends[0], "x");
    EXPECT_EQ(wr_fd_receive(ends[1], start, 1), -EFAULT);
    wr_fd_close(ends[0]);
    wr_fd_close(ends[1]);
    wr_os_release(start, RANGE);
}

TEST(os_memory, committed_pages_are_zero_and_writable)
{
    unsigned char *start = reserved(RANGE, RANGE);
    EXPECT_OK(wr_os_commit(start, RANGE / 2));
    EXPECT(all_zero(start, RANGE / 2));
    memset(start, 0xab, RANGE / 2);
    EXPECT_EQ(start[RANGE / 2 - 1], 0xab);
    wr_os_release(start, RANGE);
}

TEST(os_memory, decommitted_pages_read_zero_and_hold_no_memory)
{
    unsigned char *start = reserved(RANGE, RANGE);
    EXPECT_OK(wr_os_commit(start, RANGE));
    memset(start, 0xab, RANGE);
    EXPECT_EQ(resident_pages(start, RANGE), RANGE / wr_os_page_size());
    EXPECT_OK(wr_os_decommit(start, RANGE / 2));
    EXPECT_EQ(resident_pages(start, RANGE / 2), 0);
    EXPECT(all_zero(start, RANGE / 2));
    EXPECT_EQ(start[RANGE / 2], 0xab);
    wr_os_release(start, RANGE);
}

TEST(os_memory, uncommitted_pages_are_as_reserved_and_can_come_back)
{
    unsigned char *start = reserved(RANGE, RANGE);
    EXPECT_OK(wr_os_commit(start, RANGE));
    memset(start, 0xab, RANGE);
    EXPECT_OK(wr_os_uncommit(start, RANGE));
    int ends[2];
    EXPECT_OK(wr_socket_pair(ends));
    send_text(ends[0], "x");
    EXPECT_EQ(wr_fd_receive(ends[1], start, 1), -EFAULT);
    wr_fd_close(ends[0]);
    wr_fd_close(ends[1]);
    EXPECT_OK(wr_os_commit(start, RANGE));
    EXPECT(all_zero(start, RANGE));
    wr_os_release(start, RANGE);
}

TEST(os_memory, empty_ranges_are_allowed)
{
    unsigned char *start = reserved(RANGE, RANGE);
    EXPECT_OK(wr_os_commit(start, 0));
    EXPECT_OK(wr_os_decommit(start, 0));
    EXPECT_OK(wr_os_uncommit(start, 0));
    wr_os_release(start, RANGE);
}

TEST(os_memory, reservation_beyond_the_address_space_fails_cleanly)
{
    void *start = &start;
    EXPECT_EQ(wr_os_reserve((size_t)1 << 62, RANGE, &start), -ENOMEM);
    EXPECT(start == NULL);
    EXPECT_EQ(wr_os_reserve(SIZE_MAX - wr_os_page_size() + 1, RANGE, &start), -ENOMEM);
}

TEST(os_memory, allocations_are_zeroed_and_aligned)
{
    static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, 100000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        /* Twice, so that the second finds what the first soiled. */
        for (int round = 0; round < 2; round++) {
            unsigned char *p = wr_os_alloc(sizes[i]);
            EXPECT(p != NULL);
            EXPECT_EQ((uintptr_t)p % WR_CACHE_LINE, 0);
            EXPECT(all_zero(p, sizes[i]));
            memset(p, 0xab, sizes[i]);
            wr_os_free(p);
        }
    }
    wr_os_free(NULL);
}

TEST(os_memory, impossible_allocation_returns_null)
{
    EXPECT(wr_os_alloc(SIZE_MAX) == NULL);
    EXPECT(wr_os_alloc(SIZE_MAX - WR_CACHE_LINE) == NULL);
}

TEST(os_memory, grown_allocation_keeps_bytes_and_zeroes_the_rest)
{
    unsigned char *p = wr_os_realloc(NULL, 0, 100);
    memset(p, 0xab, 100);
    p = wr_os_realloc(p, 100, 1000);
    for (size_t i = 0; i < 100; i++)
        EXPECT_EQ(p[i], 0xab);
    EXPECT(all_zero(p + 100, 900));
    EXPECT(wr_os_realloc(p, 1000, SIZE_MAX) == NULL);
    EXPECT_EQ(p[99], 0xab);
    p = wr_os_realloc(p, 1000, 10);
    EXPECT_EQ(p[9], 0xab);
    wr_os_free(p);
}
