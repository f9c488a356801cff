# SPDX-License-Identifier: MIT
"""test_memory.py: overwriting values for long does not make the server grow.

Job        10 million SETs of 100-byte values over 100 000 keys; resident memory after the last million is compared with
           that after the third, and with a redis-server's; then every value is read back.
Load       A value says its key and its round, so that a value from another key or an old round is found. All commands
           have one length: a round's commands are the last round's with the digits of the round replaced, column by
           column, which costs Python little.
"""

import time

import kit
import procfs
import resp

KEYS = 100_000
ROUNDS_A_MILLION = 10
MILLIONS = 10
MILLIONS_SHORT = 5
WITHIN_S = 60
WINDOW_KEYS = 1000
MIB = 1 << 20


class Load:
    """Commands and expected replies of a round, with the round's number written into each value."""
    FILLER = b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ!?" * 2
    DIGITS = 6

    def __init__(self):
        value_of = [b"r000000 k%06d " % key + self.FILLER[key % 44:key % 44 + 84] for key in range(KEYS)]
        assert all(len(value) == 100 for value in value_of)
        self.sets = bytearray(b"".join(resp.encode("SET", b"key:%06d" % key, value_of[key]) for key in range(KEYS)))
        self.gets = b"".join(resp.encode("GET", b"key:%06d" % key) for key in range(KEYS))
        self.values = bytearray(b"".join(b"$100\r\n%b\r\n" % value for value in value_of))
        self.set_bytes = len(self.sets) // KEYS
        self.get_bytes = len(self.gets) // KEYS
        self.value_bytes = len(self.values) // KEYS

    def write_round(self, number):
        for data, stride in ((self.sets, self.set_bytes), (self.values, self.value_bytes)):
            at = data.index(b" k000000 ") - self.DIGITS
            for column, digit in enumerate(b"%06d" % number):
                data[at + column::stride] = bytes([digit]) * len(range(at + column, len(data), stride))


def in_mib(sizes):
    return " ".join(str(size // MIB) for size in sizes)


def windows(data, stride):
    size = stride * WINDOW_KEYS
    view = memoryview(data)
    return [view[at:at + size] for at in range(0, len(view), size)]


def set_all(t, connection, load, number):
    load.write_round(number)
    wanted = b"+OK\r\n" * WINDOW_KEYS
    for window in windows(load.sets, load.set_bytes):
        got = connection.exchange(window, len(wanted))
        if got != wanted:
            t.expect_eq(got, wanted, f"replies in round {number}")


def verify_all(t, connection, load):
    expected = windows(load.values, load.value_bytes)
    for number, window in enumerate(windows(load.gets, load.get_bytes)):
        got = connection.exchange(window, len(expected[number]))
        if got != expected[number]:
            t.expect_eq(got, bytes(expected[number]), f"values of the keys from {number * WINDOW_KEYS} on")


def run_load(t, server, load, millions, within_s):
    """Returns resident bytes after each million; ends early, but not before MILLIONS_SHORT, to stay within the time."""
    start = time.monotonic()
    resident = []
    with server.connect() as connection:
        for million in range(millions):
            for part in range(ROUNDS_A_MILLION):
                set_all(t, connection, load, million * ROUNDS_A_MILLION + part + 1)
            resident.append(procfs.rss_bytes(server.pid))
            a_million_s = (time.monotonic() - start) / len(resident)
            if within_s and len(resident) >= MILLIONS_SHORT and a_million_s * millions > within_s:
                t.note(f"{len(resident)} million SETs only, at {a_million_s:.1f} s a million; the soak runs {millions}")
                break
        t.expect_eq(connection.value("DBSIZE"), KEYS, "DBSIZE")
        verify_all(t, connection, load)
    return resident


@kit.test(limit_s=600, one_thread={"threads": 1}, two_threads={"threads": 2})
def overwriting_100_000_values_for_long_does_not_grow(t, threads):
    t.needs_plain_build("resident memory")
    load = Load()
    server = t.kv(threads=threads)
    resident = run_load(t, server, load, MILLIONS, None if t.soak else WITHIN_S)
    # Redis stops growing in the first million (its own allocator, no collection): more would only take time.
    redis = t.redis()
    redis_resident = run_load(t, redis, load, MILLIONS if t.soak else 1, None)[-1]
    t.note(f"MiB after each million: {in_mib(resident)}; Redis {in_mib([redis_resident])}")
    t.expect_at_most(resident[-1], int(resident[2] * 1.1), "resident bytes after the last million, 1.1 x the third's")
    t.expect_at_most(resident[-1], 3 * redis_resident, "resident bytes, 3 x a redis-server's with the same load")


@kit.test(limit_s=120, one_thread={"threads": 1}, two_threads={"threads": 2})
def deleting_everything_gives_memory_back_for_the_next_data(t, threads):
    """Filling, FLUSHALL and filling again three times needs no more than filling once and a half."""
    t.needs_plain_build("resident memory")
    load = Load()
    server = t.kv(threads=threads)
    with server.connect() as connection:
        resident = []
        for number in range(4):
            set_all(t, connection, load, number)
            resident.append(procfs.rss_bytes(server.pid))
            t.expect_eq(connection.raw("FLUSHALL"), b"+OK\r\n", "FLUSHALL")
    t.note(f"MiB after each filling: {in_mib(resident)}")
    t.expect_at_most(resident[-1], int(resident[0] * 1.5), "resident bytes after the fourth filling, 1.5 x the first's")
