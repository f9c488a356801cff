# SPDX-License-Identifier: MIT
"""test_pipeline.py: replies come in the order of the commands, however the bytes of the input are cut up.

Job        Random mixes are compared with the model (model.py) and with a real redis-server, in pipelines of 1 to 1000
           commands, with writes cut at random, at every byte boundary of a command, and byte by byte.
"""

import kit
import model
import resp

BACKENDS = {f"{threads}t_{poll}": {"threads": threads, "poll": poll} for threads in (1, 2) for poll in ("epoll",
                                                                                                        "poll")}


def pipeline_length(random):
    """1 to 1000, short and long ones alike."""
    return min(1000, int(10 ** (random.random() * 3.001)))


def first_wrong(commands, wanted_each, got):
    """Which command's reply is the first that differs."""
    at = 0
    for number, (words, wanted) in enumerate(zip(commands, wanted_each)):
        if got[at:at + len(wanted)] != wanted:
            return (f"reply {number} of {len(commands)}, to {kit.shown(words, 200)}:\n    got    "
                    f"{kit.shown(got[at:at + 200])}\n    wanted {kit.shown(wanted)}")
        at += len(wanted)
    return "no difference"


def random_cuts(random, length):
    pieces = random.choice((1, 2, 5, 50, 500))
    return sorted(random.randrange(length) for _ in range(pieces))


@kit.test(limit_s=120, **{f"{transport}_{name}": {"transport": transport, **how} for transport in ("unix", "tcp")
                          for name, how in BACKENDS.items()})
def random_pipelines_equal_model_and_redis(t, transport, threads, poll):
    kv = t.kv(unix=transport == "unix", tcp=transport == "tcp", threads=threads, poll=poll)
    redis = t.redis()
    mix = model.Mix(t.random, b"key", 60, alone=True, big=True)
    reference = model.Model()
    total = 0
    with kv.connect(transport) as ours, redis.connect() as theirs:
        while total < (200_000 if t.soak else 10_000):
            commands = mix.pipeline(pipeline_length(t.random))
            data = model.encoded(commands)
            each = [reference.apply(words) for words in commands]
            wanted = b"".join(each)
            t.expect_eq(theirs.exchange(data, len(wanted)), wanted, "the model is wrong: Redis answers otherwise")
            got = ours.exchange(data, len(wanted), random_cuts(t.random, len(data)))
            if got != wanted:
                t.fail(f"after {total} commands: {first_wrong(commands, each, got)}")
            total += len(commands)
        t.expect_eq(ours.raw("ECHO", "end"), b"$3\r\nend\r\n", "reply behind the last pipeline")


@kit.test(limit_s=120, **BACKENDS)
def many_clients_each_get_their_own_replies_in_order(t, threads, poll):
    """Clients take turns at random places of their pipelines, so that the server holds half of many at a time."""
    kv = t.kv(threads=threads, poll=poll)
    clients = [(kv.connect(), model.Mix(t.random, b"client%d" % i, 20, alone=False), model.Model()) for i in range(20)]
    for _ in range(40 if t.soak else 5):
        work = []
        for connection, mix, reference in clients:
            commands = mix.pipeline(pipeline_length(t.random))
            each = [reference.apply(words) for words in commands]
            work.append([connection, commands, each, memoryview(model.encoded(commands))])
        unfinished = list(work)
        while unfinished:
            item = t.random.choice(unfinished)
            connection, rest = item[0], item[3]
            piece = t.random.randrange(1, 2 + min(len(rest), 4000))
            # Reads, too, while it writes: or both ends might be full and wait for each other.
            connection.exchange(rest[:piece], 0)
            item[3] = rest[piece:]
            if not item[3]:
                unfinished.remove(item)
        for connection, commands, each, _ in work:
            wanted = b"".join(each)
            got = connection.exchange(b"", len(wanted))
            if got != wanted:
                t.fail(first_wrong(commands, each, got))
    for connection, _, _ in clients:
        connection.close()


SPLIT_COMMANDS = ([b"SET", b"split", b"a\r\nb"], [b"GET", b"split"], [b"RPUSH", b"l", b"", b"\r\n", b"$3\r\n"],
                  [b"LRANGE", b"l", b"0", b"-1"], [b"INCRBY", b"n", b"1"], [b"DEL", b"l", b"n", b"split"])


@kit.test(limit_s=120, **BACKENDS)
def a_command_split_at_any_byte_is_understood(t, threads, poll):
    """Each boundary: the server has read the first part before the second is sent."""
    kv = t.kv(threads=threads, poll=poll)
    inline = b"PING inline\r\n" + b"GET \"quoted \\x41\"\r\n" + b"*0\r\n\r\n" + resp.encode("ECHO", "e")
    data = model.encoded(SPLIT_COMMANDS) + inline
    with kv.connect() as connection:
        connection.send(data)
        wanted = b"".join(connection.reply() for _ in range(len(SPLIT_COMMANDS) + 3))
        reference = model.Model()
        modelled = b"".join(reference.apply(words) for words in SPLIT_COMMANDS)
        t.expect_eq(wanted, modelled + b"$6\r\ninline\r\n$-1\r\n$1\r\ne\r\n",
                    "replies to the unsplit commands")
        for boundary in range(1, len(data)):
            connection.send(data[:boundary])
            connection.wait_taken()
            t.expect_eq(connection.exchange(data[boundary:], len(wanted)), wanted, f"split at byte {boundary}")
        for byte in data:
            connection.send(bytes([byte]))
            connection.wait_taken()
        t.expect_eq(connection.exchange(b"", len(wanted)), wanted, "sent byte by byte")
        # Each part of a command that is three reads long: no boundary is special only in pairs.
        for _ in range(300):
            first, second = sorted(t.random.sample(range(1, len(data)), 2))
            for part in (data[:first], data[first:second]):
                connection.send(part)
                connection.wait_taken()
            t.expect_eq(connection.exchange(data[second:], len(wanted)), wanted, f"split at bytes {first} and {second}")


@kit.test(limit_s=120, **BACKENDS)
def large_values_cut_anywhere_arrive_whole(t, threads, poll):
    """Sizes around powers of two, where parsers change from copying to referring."""
    kv = t.kv(threads=threads, poll=poll)
    with kv.connect() as connection:
        for power in range(6, 23 if t.soak else 21, 1):
            for size in ((1 << power) - 1, 1 << power, (1 << power) + 1):
                value = t.random.randbytes(size)
                data = resp.encode("SET", "big", value) + resp.encode("GET", "big") + resp.encode("STRLEN", "big")
                wanted = model.OK + model.bulk(value) + model.number(size)
                got = connection.exchange(data, len(wanted), random_cuts(t.random, len(data)))
                t.expect_eq(got, wanted, f"a value of {size} bytes")


@kit.test(limit_s=120, **BACKENDS)
def more_than_64_mib_of_replies_arrive_whole(t, threads, poll):
    """To a client that reads: many large values at once, and one value and one list that are larger than that."""
    kv = t.kv(threads=threads, poll=poll)
    with kv.connect() as connection:
        large = b"v" * (4 << 20)
        t.expect_eq(connection.raw("SET", "large", large), b"+OK\r\n", "SET of 4 MiB")
        wanted = b"$%d\r\n%b\r\n" % (len(large), large) * 50
        t.expect(connection.exchange(resp.encode("GET", "large") * 50, len(wanted)) == wanted, "50 GETs of 4 MiB")
        huge = b"h" * (100 << 20)
        t.expect_eq(connection.raw("SET", "huge", huge), b"+OK\r\n", "SET of 100 MiB")
        wanted = b"$%d\r\n%b\r\n" % (len(huge), huge)
        t.expect(connection.exchange(resp.encode("GET", "huge"), len(wanted)) == wanted, "GET of 100 MiB")
        element = b"e" * 10_000
        for _ in range(70):
            connection.value("RPUSH", "list", *[element] * 100)
        wanted = b"*7000\r\n" + b"$10000\r\n%b\r\n" % element * 7000
        t.expect(connection.exchange(resp.encode("LRANGE", "list", 0, -1), len(wanted)) == wanted, "LRANGE of 70 MB")
