# SPDX-License-Identifier: MIT
"""test_bad_input.py: whatever a client sends or fails to do, the server lives and serves the others.

Job        A test for each kind of bad client. `Watched` is what all share: a witness client that is served before,
while
           and after; the number of open descriptors has to come back to what it was; memory has to stay bounded.
Memory     The limits are far above what a correct server needs and far below what the bad client asks for.
"""

import os
import select
import signal
import socket
import time

import kit
import procfs
import resp
import servers

MIB = 1 << 20
VARIANTS = {"unix_2t_epoll": {"transport": "unix", "threads": 2, "poll": "epoll"},
            "tcp_1t_poll": {"transport": "tcp", "threads": 1, "poll": "poll"}}
BIG_COMMAND = resp.encode("SET", "bad", "x" * 300)


class Watched:
    def __init__(self, t, transport, threads, poll):
        self.t = t
        self.transport = transport
        self.server = t.kv(unix=transport == "unix", tcp=transport == "tcp", threads=threads, poll=poll)
        self.witness = self.connect()
        t.expect_eq(self.witness.raw("SET", "witness", "alive"), b"+OK\r\n", "the witness before")
        self.descriptors_before = procfs.descriptors(self.server.pid)
        self.rss_before = procfs.rss_bytes(self.server.pid)

    def connect(self, **how):
        return self.server.connect(self.transport, **how)

    def others_are_served(self):
        self.t.expect(self.server.alive(), f"the server has ended: {self.server.stderr()}")
        self.t.expect_eq(self.witness.raw("GET", "witness"), b"$5\r\nalive\r\n", "the witness's reply")

    def expect_memory_grew_less_than(self, limit_bytes, what):
        """A sanitizer keeps freed memory for a while, so its builds are not held to the limit."""
        grown = procfs.peak_rss_bytes(self.server.pid) - self.rss_before
        if not self.t.sanitized:
            self.t.expect_at_most(grown // MIB, limit_bytes // MIB, f"{what}: MiB of resident memory grown at the peak")
        return grown

    def all_is_as_before(self):
        """The moment at which a server closes a descriptor is announced to nobody, so /proc is polled."""
        def same_descriptors():
            now = procfs.descriptors(self.server.pid)
            added = {n: kind for n, kind in now.items() if n not in self.descriptors_before}
            return len(now) == len(self.descriptors_before), f"{len(now)} open, among them {list(added.items())[:8]}"
        self.others_are_served()
        self.t.eventually(same_descriptors, f"{len(self.descriptors_before)} descriptors are open as before")
        with self.connect() as fresh:
            self.t.expect_eq(fresh.raw("PING"), b"+PONG\r\n", "a new client's PING")
        self.others_are_served()


def send_and_forget(connection, data):
    """Sends what the server lets through: it may close while the client still talks. True: all was taken."""
    try:
        connection.socket.sendall(data)
        return True
    except (ConnectionResetError, BrokenPipeError):
        return False


def talk_until_closed(connection, data):
    """Sends, half-closes, and reads to the end."""
    if send_and_forget(connection, data):
        try:
            connection.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the server was first
    return connection.until_closed()


@kit.test(**VARIANTS)
def random_garbage_ends_with_its_connection(t, transport, threads, poll):
    watched = Watched(t, transport, threads, poll)
    for _ in range(2000 if t.soak else 150):
        with watched.connect() as connection:
            talk_until_closed(connection, t.random.randbytes(int(10 ** (t.random.random() * 4.5))))
    watched.all_is_as_before()


@kit.test(**VARIANTS)
def damaged_commands_end_with_their_connection(t, transport, threads, poll):
    """Correct pipelines with a few bytes changed, dropped or doubled: the parser gets far before it stumbles."""
    watched = Watched(t, transport, threads, poll)
    correct = b"".join(resp.encode(*words) for words in (
        ("SET", "bad", "value"), ("GET", "bad"), ("RPUSH", "badlist", "a", "b", "c"), ("LRANGE", "badlist", 0, -1),
        ("MGET", "bad", "badlist", "x"), ("INCRBY", "badn", 17), ("APPEND", "bad", "\r\n$5\r\n"), ("PING",))) * 4
    for _ in range(3000 if t.soak else 300):
        data = bytearray(correct)
        for _ in range(t.random.randrange(1, 5)):
            at = t.random.randrange(len(data))
            change = t.random.randrange(3)
            if change == 0:
                data[at] = t.random.randrange(256)
            elif change == 1:
                del data[at]
            else:
                data.insert(at, t.random.choice(b"*$0123456789\r\n-+:"))
        with watched.connect() as connection:
            talk_until_closed(connection, data)
    watched.all_is_as_before()


@kit.test(**VARIANTS)
def a_512_mb_length_that_never_comes_costs_no_memory(t, transport, threads, poll):
    watched = Watched(t, transport, threads, poll)
    address_space = procfs.address_space_bytes(watched.server.pid)
    clients = [watched.connect() for _ in range(20)]
    for connection in clients:
        connection.send(b"*3\r\n$3\r\nSET\r\n$3\r\nbad\r\n$536870912\r\n0123456789")
        if transport == "unix":
            connection.wait_taken()
    watched.others_are_served()
    for connection in clients:
        send_and_forget(connection, b"x" * 10000)
        if transport == "unix":
            connection.wait_taken()
    watched.others_are_served()
    watched.expect_memory_grew_less_than(32 * MIB, "20 clients that claim 512 MB each")
    if not t.sanitized and not servers.is_redis(t.options.kv):  # Redis reserves what is claimed, untouched
        grown = procfs.address_space_bytes(watched.server.pid) - address_space
        t.expect_at_most(grown // MIB, 1024, "MiB of address space grown by 20 claims of 512 MB")
    for connection in clients:
        connection.close()
    watched.all_is_as_before()


IMPOSSIBLE = [b"*9223372036854775807\r\n", b"*9223372036854775808\r\n", b"*18446744073709551615\r\n",
              b"*18446744073709551616\r\n",
              b"*-9223372036854775808\r\n", b"*-9223372036854775809\r\n", b"*4294967296\r\n",
              b"*4294967297\r\n$4\r\nPING\r\n",
              b"*2147483647\r\n", b"*2147483648\r\n"] + [
    b"*2\r\n$3\r\nGET\r\n$" + length + b"\r\n" for length in (
        b"9223372036854775807", b"9223372036854775808", b"18446744073709551615", b"18446744073709551616",
        b"4294967295", b"4294967296", b"4294967299", b"-2", b"-1", b"-9223372036854775808", b"-9223372036854775809",
        b"99999999999999999999999999999999", b"0x10",
        b"1e3", b" 3", b"3 ", b"", b"-", b"--1", b"\x00")]


@kit.test(**VARIANTS)
def impossible_lengths_are_refused(t, transport, threads, poll):
    """No such length is ever taken for a small one. A negative count of words is an empty command, as with Redis."""
    watched = Watched(t, transport, threads, poll)
    for data in IMPOSSIBLE:
        with watched.connect() as connection:
            send_and_forget(connection, data + b"bad\r\n")
            connection.socket.shutdown(socket.SHUT_WR)
            reply = connection.until_closed()
            harmless = reply == b"" or reply.startswith(b"-ERR")
            t.expect(harmless, f"{data!r} was answered {kit.shown(reply)}")
    watched.expect_memory_grew_less_than(64 * MIB, "impossible lengths")
    watched.all_is_as_before()


@kit.test(**VARIANTS)
def a_million_nested_arrays_do_no_harm(t, transport, threads, poll):
    watched = Watched(t, transport, threads, poll)
    for data in (b"*1\r\n" * 1_000_000, b"*2\r\n$4\r\nPING\r\n" + b"*1\r\n" * 1_000_000, b"*1000\r\n" * 500_000):
        with watched.connect() as connection:
            reply = talk_until_closed(connection, data)
            t.expect(reply == b"" or reply.startswith(b"-ERR Protocol error"), f"answered {kit.shown(reply)}")
        watched.others_are_served()
    watched.expect_memory_grew_less_than(64 * MIB, "a million nested arrays")
    watched.all_is_as_before()


@kit.test(**VARIANTS)
def half_a_command_then_close_leaves_nothing(t, transport, threads, poll):
    watched = Watched(t, transport, threads, poll)
    command = resp.encode("SET", "half", "value") + b"PING\r\n"
    for abrupt in (False, True):
        for boundary in range(len(command) - 6):
            with watched.connect() as connection:
                connection.send(command[:boundary])
                if abrupt:
                    # Linger 0: close() sends a reset over TCP; on a Unix socket it is an ordinary close.
                    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    watched.all_is_as_before()
    whole = command.index(b"value") + len(b"value\r\n")
    t.expect(whole <= len(command), "the script above is wrong")
    for boundary in range(whole - 2):
        with watched.connect() as connection:
            watched.witness.raw("DEL", "half")
            talk_until_closed(connection, command[:boundary])
            t.expect_eq(watched.witness.raw("EXISTS", "half"), b":0\r\n", f"half exists after {boundary} of its bytes")
    watched.all_is_as_before()


def store_big(connection, key, size_bytes):
    return connection.value("SET", key, b"v" * size_bytes)


@kit.test(**VARIANTS)
def closing_while_replies_are_queued_leaves_nothing(t, transport, threads, poll):
    watched = Watched(t, transport, threads, poll)
    store_big(watched.witness, "big", 100_000)
    for number in range(200 if t.soak else 40):
        with watched.connect() as connection:
            connection.send(resp.encode("GET", "big") * 200)
            if number % 2:  # the first bytes have come: the rest is in the server's queue
                t.expect_eq(connection.socket.recv(1), b"$", "first byte of the replies")
    watched.others_are_served()
    watched.expect_memory_grew_less_than(256 * MIB, "replies that nobody fetched")
    watched.all_is_as_before()


def never_reads(t, watched, command):
    """Sends the command on and on and reads nothing, until the server hangs up; returns the commands taken."""
    block = command * max(1, 20_000 // len(command))
    connection = watched.connect(limit_s=30)
    sent = 0
    end = time.monotonic() + 40
    poller = select.poll()
    connection.socket.setblocking(False)
    poller.register(connection.socket, select.POLLOUT)
    offset = 0
    while sent < min(2_000_000 * len(command), 10_000 * MIB):
        if time.monotonic() > end:
            t.fail(f"not disconnected although it reads nothing; {sent // len(command)} commands were taken")
        # Where the server has stopped reading, only its hang-up ends the wait.
        for _, events in poller.poll(1000):
            if events & (select.POLLHUP | select.POLLERR):
                connection.close()
                return sent // len(command)
            try:
                count = connection.socket.send(block[offset:])
            except (ConnectionResetError, BrokenPipeError):
                connection.close()
                return sent // len(command)
            except BlockingIOError:
                continue
            sent += count
            offset = (offset + count) % len(block)
    t.fail(f"the server took {sent // len(command)} commands from a client that does not read")
    return 0


@kit.test(limit_s=120, **VARIANTS)
def a_client_that_never_reads_costs_bounded_memory_and_is_disconnected(t, transport, threads, poll):
    watched = Watched(t, transport, threads, poll)
    store_big(watched.witness, "big", 1_000_000)
    watched.witness.value("RPUSH", "biglist", *[b"e" * 1000 for _ in range(1000)])
    # In the last each reply is a value of its own, which nobody but the queue of replies holds any more.
    replaced = resp.encode("SET", "big", "n" * (4 * MIB)) + resp.encode("GET", "big")
    # And here each reply is a copy, since a value that can be appended to is not handed out.
    for _ in range(4):
        watched.witness.value("APPEND", "grown", b"g" * MIB)
    for command in (resp.encode("GET", "big"), resp.encode("LRANGE", "biglist", 0, -1), resp.encode("GET", "grown"),
                    replaced):
        taken = never_reads(t, watched, command)
        grown = watched.expect_memory_grew_less_than(512 * MIB,
                                                     f"a client that reads no reply to {kit.shown(command, 60)}")
        name = command.split(b"\r\n")[2].decode()
        t.note(f"{name}: disconnected after {taken} commands, {grown // MIB} MiB grown at the peak")
        watched.others_are_served()
    watched.all_is_as_before()


@kit.test(limit_s=120, **VARIANTS)
def one_command_cannot_gather_more_than_may_wait(t, transport, threads, poll):
    """1 MB of MGET asks for 1.6 GB of copies. None of them can be sent before the last has come."""
    watched = Watched(t, transport, threads, poll)
    store_big(watched.witness, "value", 16_000)
    with watched.connect() as connection:
        talk_until_closed(connection, resp.encode("MGET", *["value"] * 100_000))
    grown = watched.expect_memory_grew_less_than(384 * MIB, "an MGET of one value 100 000 times")
    t.note(f"{grown // MIB} MiB grown at the peak")
    watched.all_is_as_before()


def crowd_member(watched, talks, ready):
    """Body of a client process that is killed: half a command, or pipelines without end."""
    connection = watched.connect()
    connection.send(resp.encode("SET", "bad", "x") + BIG_COMMAND[:-100])
    connection.reply()
    os.write(ready, b"r")
    if not talks:
        signal.pause()
    connection.send(BIG_COMMAND[-100:])
    while True:
        connection.exchange(BIG_COMMAND * 50, 5 * 50)


@kit.test(limit_s=120, **VARIANTS)
def killing_200_clients_in_mid_command_leaves_nothing(t, transport, threads, poll):
    watched = Watched(t, transport, threads, poll)
    reader, writer = os.pipe()
    pids = []

    def kill_all():
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        for pid in pids:
            os.waitpid(pid, 0)
        pids.clear()
    t.at_end(kill_all)
    for number in range(200):
        pid = os.fork()
        if pid == 0:
            try:
                watched.witness.close()
                crowd_member(watched, number % 4 == 0, writer)
            finally:
                os._exit(1)
        pids.append(pid)
    os.close(writer)
    arrived = 0
    while arrived < 200:
        data = os.read(reader, 200)
        t.expect(data, f"only {arrived} of 200 clients were served")
        arrived += len(data)
    kill_all()
    watched.all_is_as_before()


@kit.test(**VARIANTS)
def claiming_too_many_words_costs_no_memory(t, transport, threads, poll):
    watched = Watched(t, transport, threads, poll)
    for data in (b"*1000000000\r\n" + b"$1\r\na\r\n" * 10, b"*1048577\r\n$4\r\nMGET\r\n",
                 b"*2147483647\r\n$4\r\nECHO\r\n"):
        clients = [watched.connect() for _ in range(20)]
        for connection in clients:
            send_and_forget(connection, data)
            if transport == "unix":
                connection.wait_taken()
        watched.others_are_served()
        for connection in clients:
            connection.close()
    watched.expect_memory_grew_less_than(64 * MIB, "clients that claim a thousand million words")
    with watched.connect() as connection:  # a claim that comes true: answered in full, or refused as a whole
        send_and_forget(connection, b"*200001\r\n$4\r\nMGET\r\n" + b"$1\r\na\r\n" * 200_000)
        first = connection.reply()
        t.expect(first == b"*200000\r\n" + b"$-1\r\n" * 200_000 or first.startswith(b"-ERR"),
                 f"answered {kit.shown(first)}")
    watched.all_is_as_before()


@kit.test(**VARIANTS)
def a_line_without_end_is_refused(t, transport, threads, poll):
    watched = Watched(t, transport, threads, poll)
    for data in (b"a" * 20_000_000, b"*" + b"1" * 20_000_000, b"*1\r\n$" + b"1" * 20_000_000, b" " * 20_000_000,
                 b"\x00" * 20_000_000, b"'" + b"a" * 20_000_000):
        with watched.connect() as connection:
            taken = send_and_forget(connection, data)
            reply = connection.until_closed() if not taken else b""
            t.expect(not taken, f"20 MB of {data[:6]!r}... without a line's end were taken; reply {kit.shown(reply)}")
            t.expect(reply == b"" or reply.startswith(b"-ERR Protocol error"), f"answered {kit.shown(reply)}")
        watched.others_are_served()
    watched.expect_memory_grew_less_than(32 * MIB, "lines of 20 MB")
    watched.all_is_as_before()


@kit.test(limit_s=120, **VARIANTS)
def two_thousand_clients_at_once_are_all_served(t, transport, threads, poll):
    watched = Watched(t, transport, threads, poll)
    clients = [watched.connect() for _ in range(2000)]
    for number, connection in enumerate(clients):
        connection.send(resp.encode("SET", f"client:{number}", number) + resp.encode("GET", f"client:{number}"))
    for number, connection in enumerate(clients):
        digits = b"%d" % number
        t.expect_eq(connection.exchange(b"", 5 + 4 + len(b"%d" % len(digits)) + len(digits) + 1),
                    b"+OK\r\n$%d\r\n%b\r\n" % (len(digits), digits), f"client {number}'s replies")
    watched.others_are_served()
    for connection in clients:
        connection.close()
    watched.all_is_as_before()


@kit.test(limit_s=120, **VARIANTS)
def connections_that_come_and_go_leave_nothing(t, transport, threads, poll):
    watched = Watched(t, transport, threads, poll)
    for number in range(20_000 if t.soak else 3000):
        connection = watched.connect()
        if number % 3 == 1:
            connection.send(resp.encode("PING"))
        elif number % 3 == 2:
            t.expect_eq(connection.raw("PING"), b"+PONG\r\n", "PING")
        connection.close()
    watched.all_is_as_before()
    watched.expect_memory_grew_less_than(64 * MIB, "connections that are gone")


@kit.test(**VARIANTS)
def a_half_closed_client_still_gets_all_its_replies(t, transport, threads, poll):
    """`printf ... | nc -N` works so: all commands, then the end of the input. Redis drops what it has queued then."""
    t.needs_weir_kv("answering after the end of the input")
    watched = Watched(t, transport, threads, poll)
    store_big(watched.witness, "big", 100_000)
    with watched.connect() as connection:
        connection.send(resp.encode("GET", "big") * 50 + resp.encode("PING"))
        connection.socket.shutdown(socket.SHUT_WR)
        got = connection.until_closed()
        t.expect_eq(got, (b"$100000\r\n" + b"v" * 100_000 + b"\r\n") * 50 + b"+PONG\r\n",
                    "replies after the half-close")
    watched.all_is_as_before()
