# SPDX-License-Identifier: MIT
"""resp.py: a small RESP2 client that keeps every byte.

Job        Encodes commands, finds where a reply ends, and carries bytes both ways at once.
Invariants Replies are handed on as the raw bytes that arrived; `value` decodes them where a test wants numbers.
           No call waits longer than the connection's time limit.
Tried      redis-py and hiredis: both hide exactly what these tests compare (bytes, order, the moment of the close).
"""

import array
import fcntl
import select
import socket
import time

import kit

SIOCOUTQ = 0x5411
RECEIVE_BYTES = 1 << 18


def as_bytes(word):
    if isinstance(word, str):
        return word.encode("latin-1")
    if isinstance(word, int):
        return b"%d" % word
    return bytes(word)


def encode(*words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        word = as_bytes(word)
        parts.append(b"$%d\r\n%b\r\n" % (len(word), word))
    return b"".join(parts)


def reply_end(data, start=0):
    """Offset just behind the reply that begins at `start`, or -1 while it is incomplete."""
    at = start
    pending = 1
    while pending:
        line_end = data.find(b"\r\n", at)
        if line_end < 0:
            return -1
        kind = data[at:at + 1]
        if kind not in b"+-:$*" or kind == b"":
            raise kit.Failure(f"not a RESP2 reply: {kit.shown(bytes(data[at:at + 80]))}")
        pending -= 1
        number = int(data[at + 1:line_end]) if kind in b"$*" else 0
        at = line_end + 2
        if kind == b"$" and number >= 0:
            at += number + 2
            if at > len(data):
                return -1
        elif kind == b"*" and number > 0:
            pending += number
    return at


class ErrorReply(str):
    """An error reply's text, without the leading minus."""


def decode(raw):
    value, end = _decode_at(raw, 0)
    assert end == len(raw)
    return value


def _decode_at(raw, at):
    line_end = raw.index(b"\r\n", at)
    kind, text = raw[at:at + 1], bytes(raw[at + 1:line_end])
    after = line_end + 2
    if kind == b"+":
        return text, after
    if kind == b"-":
        return ErrorReply(text.decode("latin-1")), after
    if kind == b":":
        return int(text), after
    length = int(text)
    if length < 0:
        return None, after
    if kind == b"$":
        return bytes(raw[after:after + length]), after + length + 2
    items = []
    for _ in range(length):
        item, after = _decode_at(raw, after)
        items.append(item)
    return items, after


class Connection:
    def __init__(self, family, address, limit_s=30.0, receive_buffer=None):
        self.limit_s = limit_s
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        # Connects while blocking: a non-blocking connect to a Unix socket whose backlog is full fails with EAGAIN.
        self.socket.connect(address)
        if family == socket.AF_INET:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(limit_s)
        self._received = bytearray()

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # --- one command --------------------------------------------------------------------------------------------
    def send(self, data):
        try:
            self.socket.sendall(data)
        except TimeoutError:
            raise kit.Failure(f"the server took no bytes for {self.limit_s:g} s") from None

    def reply(self):
        """The raw bytes of one reply."""
        while True:
            end = reply_end(self._received)
            if end >= 0:
                raw = bytes(self._received[:end])
                del self._received[:end]
                return raw
            try:
                data = self.socket.recv(RECEIVE_BYTES)
            except TimeoutError:
                raise kit.Failure(f"no complete reply within {self.limit_s:g} s; so far "
                                  f"{kit.shown(self._received)}") from None
            if not data:
                raise kit.Failure(f"the server closed in the middle of a reply; so far {kit.shown(self._received)}")
            self._received += data

    def raw(self, *words):
        self.send(encode(*words))
        return self.reply()

    def value(self, *words):
        return decode(self.raw(*words))

    # --- many commands ------------------------------------------------------------------------------------------
    def exchange(self, data, reply_bytes, cuts=None):
        """Sends `data` while it reads, until `reply_bytes` bytes have come back; returns them.

        cuts    offsets at which a write ends, to break the data up; None: as much as the socket takes
        """
        received = self._received
        view = memoryview(data)
        sent, cut = 0, 0
        poller = select.poll()
        self.socket.setblocking(False)
        try:
            last_progress = time.monotonic()
            while sent < len(view) or len(received) < reply_bytes:
                poller.register(self.socket, select.POLLIN | (select.POLLOUT if sent < len(view) else 0))
                events = poller.poll(1000)
                if not events:
                    if time.monotonic() - last_progress > self.limit_s:
                        raise kit.Failure(f"stuck for {self.limit_s:g} s: {sent} of {len(view)} bytes sent, "
                                          f"{len(received)} of {reply_bytes} received")
                    continue
                last_progress = time.monotonic()
                if events[0][1] & (select.POLLIN | select.POLLHUP | select.POLLERR):
                    chunk = self.socket.recv(RECEIVE_BYTES)
                    if not chunk:
                        raise kit.Failure(f"closed after {sent} of {len(view)} bytes sent and {len(received)} of "
                                          f"{reply_bytes} received: {kit.shown(received[-200:])}")
                    received += chunk
                if events[0][1] & select.POLLOUT and sent < len(view):
                    stop = len(view)
                    if cuts is not None:
                        while cut < len(cuts) and cuts[cut] <= sent:
                            cut += 1
                        stop = cuts[cut] if cut < len(cuts) else stop
                    sent += self.socket.send(view[sent:min(stop, sent + (1 << 17))])
        except (ConnectionResetError, BrokenPipeError) as error:
            raise kit.Failure(f"{error} after {sent} of {len(view)} bytes sent, {len(received)} received: "
                              f"{kit.shown(received[-200:])}") from None
        finally:
            self.socket.settimeout(self.limit_s)
        result = bytes(received[:reply_bytes])
        del received[:reply_bytes]
        return result

    def until_closed(self, at_most=1 << 24):
        """Everything that comes before the server closes; a reset counts as a close."""
        while len(self._received) < at_most:
            try:
                data = self.socket.recv(RECEIVE_BYTES)
            except TimeoutError:
                raise kit.Failure(f"the server has not closed within {self.limit_s:g} s; received "
                                  f"{kit.shown(self._received)}") from None
            except ConnectionResetError:
                data = b""
            if not data:
                break
            self._received += data
        result = bytes(self._received)
        self._received.clear()
        return result

    def wait_taken(self):
        """Waits until the server has read all that was sent (Unix sockets only: there SIOCOUTQ counts what the peer
        has not read). The kernel announces this to nobody, so it is polled, with a deadline."""
        left = array.array("i", [0])
        end = time.monotonic() + self.limit_s
        while True:
            fcntl.ioctl(self.socket, SIOCOUTQ, left)
            if left[0] == 0:
                return
            if time.monotonic() > end:
                raise kit.Failure(f"the server has left {left[0]} bytes unread for {self.limit_s:g} s")
            time.sleep(0.00002)
