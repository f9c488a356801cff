# SPDX-License-Identifier: MIT
"""test_maxmemory.py: above --maxmemory writes are refused as Redis refuses them, and nothing else is.

Job        Fills a server until it refuses, then compares each command's reply with a Redis in the same state.
"""

import kit
import procfs
import resp
import servers

MIB = 1 << 20
THREADS = {"one_thread": {"threads": 1}, "two_threads": {"threads": 2}}
OOM = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n"
VALUE_BYTES = 10_000


def content(number):
    return b"%06d" % number * (VALUE_BYTES // 6)


def fill(t, connection, limit_bytes, prefix="fill"):
    """SETs new keys until one is refused; returns how many were stored."""
    most = 4 * limit_bytes // VALUE_BYTES
    for number in range(most):
        reply = connection.raw("SET", f"{prefix}:{number}", content(number))
        if reply != b"+OK\r\n":
            t.expect_eq(reply, OOM, f"reply to SET number {number}")
            return number
    t.fail(f"{most} values of {VALUE_BYTES} bytes were taken with a limit of {limit_bytes}")
    return 0


def fill_the_gaps(t, connection):
    """Ever smaller values, until keys in every part of the server are refused: then any write is."""
    for size in (10_000, 1000, 100, 1):
        refused = 0
        for number in range(100_000):
            reply = connection.raw("SET", f"gap:{size}:{number}", b"g" * size)
            refused = refused + 1 if reply == OOM else 0
            if refused == 100:
                break
        else:
            t.fail(f"100000 values of {size} bytes were taken after the first refusal")


# What has to be refused when full, and what not; the same list goes to Redis.
WHEN_FULL = (("SET", "k", "v"), ("SET", "str", "v", "XX"), ("SET", "new", "v", "NX"), ("APPEND", "k", "v"), ("INCR",
                                                                                                             "n"),
             ("DECR", "n"), ("INCRBY", "n", "5"), ("DECRBY", "n", "5"), ("LPUSH", "l", "a"), ("RPUSH", "l", "a"),
             ("MSET", "a", "1", "b", "2"), ("SET", "k"), ("INCRBY", "n", "abc"), ("LPUSH", "str", "a"), ("GET", "k"),
             ("GET", "str"),
             ("MGET", "str", "k"), ("EXISTS", "str", "n"), ("STRLEN", "str"), ("TYPE", "kept"), ("TTL", "str"),
             ("LLEN", "kept"),
             ("LRANGE", "kept", "0", "-1"), ("LPOP", "kept"), ("RPOP", "kept", "1"), ("EXPIRE", "str", "100"), ("TTL",
                                                                                                                "str"),
             ("PING",), ("ECHO", "x"), ("SELECT", "0"), ("NOSUCH",), ("GET", "kept"), ("DEL", "str"), ("EXISTS", "str"))


@kit.test(limit_s=120, **THREADS)
def a_full_server_refuses_writes_only_with_the_text_of_redis(t, threads):
    limit = 32 * MIB
    answers, stored = [], []
    for server in (t.kv(threads=threads, maxmemory=limit), t.redis(maxmemory=limit)):
        with server.connect() as connection:
            connection.value("SET", "str", "text")
            connection.value("RPUSH", "kept", "a", "b", "c", "d")
            stored.append(fill(t, connection, limit))
            if servers.is_redis(server.command[0]):
                # Redis counts its clients' buffers, so that it would waver between full and not quite full.
                connection.value("CONFIG", "SET", "maxmemory", limit // 2)
            else:
                fill_the_gaps(t, connection)
            answers.append([(words, connection.raw(*words)) for words in WHEN_FULL])
            for number in range(stored[-1]):
                t.expect_eq(connection.value("GET", f"fill:{number}"), content(number), "a stored value")
    wrong = [f"{words}: {ours!r} instead of {theirs!r}" for (words, ours), (_,
                                                                            theirs) in zip(*answers) if ours != theirs]
    t.expect(not wrong, "; ".join(wrong))
    held = stored[0] * VALUE_BYTES
    t.expect(limit // 4 <= held <= limit, f"full with {held} bytes of values and a limit of {limit}")
    t.note(f"{stored[0]} values of {VALUE_BYTES} bytes fit into {limit // MIB} MiB; Redis holds {stored[1]}")


@kit.test(limit_s=120, **THREADS)
def writes_work_again_after_del_and_flushall(t, threads):
    limit = 32 * MIB
    server = t.kv(threads=threads, maxmemory=limit)
    with server.connect() as connection:
        count = fill(t, connection, limit)
        for number in range(0, count, 2):
            t.expect_eq(connection.raw("DEL", f"fill:{number}"), b":1\r\n", f"DEL fill:{number}")
        set_until_taken(t, connection, "DEL of half the values")
        # What a DEL frees can be used: at least half of what it freed.
        refilled = fill(t, connection, limit, "again")
        t.expect(refilled >= count // 4, f"{refilled} values fit after {count // 2} of {count} were deleted")
        t.expect_eq(connection.raw("FLUSHALL"), b"+OK\r\n", "FLUSHALL")
        set_until_taken(t, connection, "FLUSHALL")
        refilled = fill(t, connection, limit, "third")
        t.expect(refilled >= count * 3 // 4, f"{refilled} values fit after FLUSHALL, {count} at first")
        rss = procfs.rss_bytes(server.pid)
        if not t.sanitized:
            t.expect_at_most(rss // MIB, 4 * limit // MIB, "MiB of resident memory after filling three times")


def set_until_taken(t, connection, after_what):
    def attempt():
        reply = connection.raw("SET", "new", "value")
        return reply == b"+OK\r\n", reply
    # A collecting server frees a little later, which it announces to nobody.
    t.eventually(attempt, f"a SET is taken after {after_what}")


@kit.test(limit_s=120, **THREADS)
def overwritten_values_do_not_count(t, threads):
    """40 times the limit is written, but never more than a tenth of it is alive."""
    limit = 64 * MIB
    server = t.kv(threads=threads, maxmemory=limit)
    with server.connect() as connection:
        for size, keys in ((MIB, 6), (100, 10_000)):
            for number in range(keys):
                t.expect_eq(connection.raw("SET", f"{size}:{number}", b"x" * size), b"+OK\r\n", "a first value")
            turns = (20 if size == MIB else 4) * (4 if t.soak else 1)
            data = b"".join(resp.encode("SET", f"{size}:{number}", b"y" * size) for number in range(keys))
            for turn in range(turns):
                wanted = b"+OK\r\n" * keys
                t.expect_eq(connection.exchange(data, len(wanted)), wanted,
                            f"overwriting {keys} values of {size}, turn {turn}")


@kit.test()
def config_get_maxmemory_tells_the_limit(t):
    with t.kv(maxmemory=50_000_000).connect() as connection:
        t.expect_eq(connection.value("CONFIG", "GET", "maxmemory"), [b"maxmemory", b"50000000"], "CONFIG GET maxmemory")


@kit.test(**THREADS)
def keys_that_have_expired_make_room(t, threads):
    """Nobody touches them any more, and no write is taken that could come across them."""
    limit = 4 * MIB
    with t.kv(threads=threads, maxmemory=limit).connect() as connection:
        for number in range(4 * limit // VALUE_BYTES):
            if connection.raw("SET", f"fleeting:{number}", content(number), "PX", "2000") != b"+OK\r\n":
                break
        else:
            t.fail("everything was taken")
        set_until_taken(t, connection, "all keys have expired")
