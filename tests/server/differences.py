# SPDX-License-Identifier: MIT
"""differences.py: where weir-kv answers otherwise than Redis on purpose, with the reason and what holds instead.

Job        `difference_for(line)` finds the entry of a parity command. Its `check(kv, redis)` gets both raw replies and
           returns what is wrong, or None.
Invariants A reply without an entry is compared byte for byte. An entry that no command meets fails the parity test, so
           the table cannot outlive its reason. UNCOMPARED names what a single connection's replies cannot show.
"""

import re

import resp

UNCOMPARED = (
    ("MSET",
     "keys live in several stores, each of which applies its part at once: another connection may see some of the "
             "keys set before the others. On one connection commands take effect in order, as with Redis."),
    ("SELECT 1",
     "weir-kv has one database; the reference runs with --databases 1, so that the error texts are compared."),
    ("SET EXAT, PXAT", "not among weir-kv's options; they bring Redis's syntax error."),
    ("HELLO AUTH, SETNAME", "not among weir-kv's options."),
    ("other subcommands", "of CONFIG, CLIENT and COMMAND bring Redis's error for unknown subcommands."),
)


class Difference:
    def __init__(self, pattern, reason, check):
        self.pattern = re.compile(pattern)
        self.reason = reason
        self.check = check


def both_integers(kv, redis):
    if isinstance(resp.decode(kv), int) and isinstance(resp.decode(redis), int):
        return None
    return "not an integer"


def accepted(kv, _redis):
    return None if kv == b"+OK\r\n" else "not +OK"


def info_lines(kv, _redis):
    value = resp.decode(kv)
    if not isinstance(value, bytes) or not value.startswith(b"# "):
        return "not a bulk string that starts with a section's title"
    for line in value.rstrip(b"\r\n").split(b"\r\n"):
        if line and not line.startswith(b"# ") and b":" not in line:
            return f"neither `# title` nor `name:value`: {line!r}"
    return None


def hello_fields(kv, redis):
    ours, theirs = resp.decode(kv), resp.decode(redis)
    if not isinstance(ours, list) or len(ours) % 2:
        return "not an array of names and values"
    ours, theirs = dict(zip(ours[::2], ours[1::2])), dict(zip(theirs[::2], theirs[1::2]))
    missing = set(theirs) - set(ours)
    if missing:
        return f"fields are missing: {missing}"
    for name in (b"proto", b"mode", b"role"):
        if ours[name] != theirs[name]:
            return f"field {name!r} is {ours[name]!r} instead of {theirs[name]!r}"
    return None


DIFFERENCES = (
    Difference(r"CLIENT ID$", "ids are handed out in each server's own order", both_integers),
    Difference(r"CLIENT SETINFO ", "Redis has it from 7.2 on, the reference is 7.0; clients send it unasked", accepted),
    Difference(r"COMMAND COUNT$", "weir-kv has fewer commands; compared with its own list by another test",
               both_integers),
    Difference(r"INFO( server)?$", "the contents are weir-kv's own", info_lines),
    Difference(r"HELLO( 2)?$", "server name, version and id differ", hello_fields),
)


def difference_for(line):
    return next((entry for entry in DIFFERENCES if entry.pattern.match(line)), None)
