# SPDX-License-Identifier: MIT
"""strace_log.py: reads what strace wrote about a server's system calls.

Job        Counts calls that write, and finds small sends that should have waited for more output.
Definition A *small send* on a client connection is a successful send that was asked to carry fewer than 64 bytes. It is
           wrong if the next successful call on that connection is another send: with no input read in between, the
           second send's output belongs to commands that the server had already read, so it should have gone along.
           (A read that returns nothing, EAGAIN or end of file, brings no new commands and so does not excuse it. A send
           that the kernel cut short was asked to carry more, and is not small.)
Format     `PID call(arguments) = result`, also split into `<unfinished ...>` and `<... call resumed>` when a call of
           another thread comes between.
Tried      Without `-v`: `-s 0` then shortens the list of pieces, too, to `[...]`, and no small sendmsg was ever found.
"""

import re

import kit

SMALL_BYTES = 64
WRITES = ("write", "writev", "sendmsg", "sendto")
READS = ("read", "readv", "recvfrom", "recvmsg")
TRACED = WRITES + READS + ("accept", "accept4", "close")

OPTIONS = ("-f", "--seccomp-bpf", "-v", "-s", "0", "-e", "signal=none", "-e", f"trace={','.join(TRACED)}")

_LINE = re.compile(r"^(\d+)\s+(.*)$")
_CALL = re.compile(r"^(\w+)\((.*)\)\s+= (-?\d+)")
_RESUMED = re.compile(r"^<\.\.\. (\w+) resumed>(.*)$")
_UNFINISHED = " <unfinished ...>"
_LENGTH = re.compile(r"iov_len=(\d+)")


def calls(lines):
    """Yields (name, arguments, result) in the order in which the calls ended; a close counts where it began, since
    another thread's accept may get the number, and say so, before the close is reported as ended."""
    unfinished = {}
    for line in lines:
        match = _LINE.match(line)
        if not match:
            continue
        pid, text = match.groups()
        if text.endswith(_UNFINISHED):
            text = text[:-len(_UNFINISHED)]
            if text.startswith("close("):
                yield "close", text[len("close("):].rstrip(")"), 0
            else:
                unfinished[pid] = text
            continue
        resumed = _RESUMED.match(text)
        if resumed:
            text = unfinished.pop(pid, "") + resumed[2]  # nothing to match where a close ends
        call = _CALL.match(text)
        if call:
            yield call[1], call[2], int(call[3])


def asked_bytes(name, arguments, result):
    """Bytes that a write was asked to carry."""
    if name in ("write", "sendto"):
        return int(arguments.split(", ")[2])
    lengths = _LENGTH.findall(arguments)
    if not lengths:
        raise kit.Failure(f"strace has not shown the pieces of {name}({arguments}) = {result}")
    return sum(int(length) for length in lengths)


class Summary:
    def __init__(self):
        self.writes = {name: 0 for name in WRITES}
        self.reads = 0
        self.connections = 0
        self.small_sends = 0
        self.wrong_sends = []

    def total_writes(self):
        return sum(self.writes.values())


def summarise(lines):
    summary = Summary()
    clients = {}  # descriptor -> the small send that may yet turn out wrong, or None
    for name, arguments, result in calls(lines):
        if name in WRITES:
            summary.writes[name] += 1
        if result < 0:
            continue
        if name in ("accept", "accept4"):
            clients[result] = None
            summary.connections += 1
            continue
        descriptor = int(arguments.split(",", 1)[0])
        if descriptor not in clients:
            continue
        if name == "close":
            del clients[descriptor]
        elif name in READS and result > 0:
            summary.reads += 1
            clients[descriptor] = None
        elif name in WRITES:
            text = f"{name}({arguments}) = {result}"
            if clients[descriptor]:
                summary.wrong_sends.append(f"{clients[descriptor]} was followed by {text}")
            small = asked_bytes(name, arguments, result) < SMALL_BYTES
            summary.small_sends += small
            clients[descriptor] = text if small else None
    return summary
