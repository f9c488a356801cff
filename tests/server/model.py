# SPDX-License-Identifier: MIT
"""model.py: what the commands of the random mixes do, in plain Python, and a generator of such mixes.

Job        `Model.apply` returns the exact reply bytes; `Mix` draws commands over a set of keys from a seeded generator.
Scope      Strings, counters and lists without time to live; errors are those that the mixes can meet.
"""

import resp

WRONG_TYPE = b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
NOT_AN_INTEGER = b"-ERR value is not an integer or out of range\r\n"
OVERFLOW = b"-ERR increment or decrement would overflow\r\n"
NIL = b"$-1\r\n"
OK = b"+OK\r\n"
INT_MIN, INT_MAX = -(1 << 63), (1 << 63) - 1


def bulk(value):
    return NIL if value is None else b"$%d\r\n%b\r\n" % (len(value), value)


def number(value):
    return b":%d\r\n" % value


def array(values):
    return b"*%d\r\n" % len(values) + b"".join(bulk(value) for value in values)


def as_integer(text):
    """Redis's strict reading of a number, or None."""
    try:
        value = int(text)
    except ValueError:
        return None
    return value if b"%d" % value == text and INT_MIN <= value <= INT_MAX else None


class Model:
    def __init__(self):
        self.data = {}

    def apply(self, words):
        return getattr(self, words[0].decode().lower())(*words[1:])

    def _string(self, key, default=None):
        """(value, None) or (None, error)"""
        value = self.data.get(key, default)
        return (None, WRONG_TYPE) if isinstance(value, list) else (value, None)

    def _list(self, key):
        value = self.data.get(key, [])
        return (value, None) if isinstance(value, list) else (None, WRONG_TYPE)

    def ping(self):
        return b"+PONG\r\n"

    def echo(self, text):
        return bulk(text)

    def get(self, key):
        value, error = self._string(key)
        return error or bulk(value)

    def set(self, key, value, condition=b""):
        if (condition == b"NX" and key in self.data) or (condition == b"XX" and key not in self.data):
            return NIL
        self.data[key] = value
        return OK

    def incrby(self, key, amount):
        value, error = self._string(key, b"0")
        if error:
            return error
        current = as_integer(value)
        if current is None:
            return NOT_AN_INTEGER
        result = current + int(amount)
        if not INT_MIN <= result <= INT_MAX:
            return OVERFLOW
        self.data[key] = b"%d" % result
        return number(result)

    def incr(self, key):
        return self.incrby(key, b"1")

    def decr(self, key):
        return self.incrby(key, b"-1")

    def append(self, key, text):
        value, error = self._string(key, b"")
        if error:
            return error
        self.data[key] = value + text
        return number(len(self.data[key]))

    def strlen(self, key):
        value, error = self._string(key, b"")
        return error or number(len(value))

    def mset(self, *words):
        self.data.update(zip(words[::2], words[1::2]))
        return OK

    def mget(self, *keys):
        return array([None if isinstance(self.data.get(key), list) else self.data.get(key) for key in keys])

    def exists(self, *keys):
        return number(sum(key in self.data for key in keys))

    def _remove(self, key):
        return self.data.pop(key, None) is not None

    def __getattr__(self, name):
        if name == "del":  # a word that Python keeps for itself
            return lambda *keys: number(sum(self._remove(key) for key in keys))
        raise AttributeError(name)

    def type(self, key):
        value = self.data.get(key)
        return b"+none\r\n" if value is None else b"+list\r\n" if isinstance(value, list) else b"+string\r\n"

    def _push(self, key, items, at_left):
        value, error = self._list(key)
        if error:
            return error
        self.data[key] = list(reversed(items)) + value if at_left else value + list(items)
        return number(len(self.data[key]))

    def lpush(self, key, *items):
        return self._push(key, items, True)

    def rpush(self, key, *items):
        return self._push(key, items, False)

    def _pop(self, key, index):
        value, error = self._list(key)
        if error:
            return error
        if not value:
            return NIL
        item = value.pop(index)
        if not value:
            del self.data[key]
        return bulk(item)

    def lpop(self, key):
        return self._pop(key, 0)

    def rpop(self, key):
        return self._pop(key, -1)

    def llen(self, key):
        value, error = self._list(key)
        return error or number(len(value))

    def lrange(self, key, first, last):
        value, error = self._list(key)
        if error:
            return error
        first, last = int(first), int(last)
        first = max(0, first + len(value)) if first < 0 else first
        last = last + len(value) if last < 0 else last
        return array(value[first:last + 1] if last >= 0 else [])

    def dbsize(self):
        return number(len(self.data))

    def flushall(self):
        self.data.clear()
        return OK


class Mix:
    """Random commands. `alone`: nobody else uses the server, so commands on the whole data set can be in the mix."""

    def __init__(self, random, prefix, keys, alone, big=False):
        self.random = random
        self.keys = [b"%b:%d" % (prefix, i) for i in range(keys)]
        self.alone = alone
        self.big = big

    def key(self):
        return self.random.choice(self.keys)

    def value(self):
        pick = self.random.random()
        if pick < 0.3:
            return b"%d" % self.random.randrange(-1000, 1000)
        if pick < 0.4:
            return self.random.choice((b"", b"\r\n", b"$-1\r\n", b"*1\r\n$4\r\nPING\r\n", b"\x00", b"%d" % INT_MAX))
        most = 64 if pick < 0.95 or not self.big else 20000
        return self.random.randbytes(self.random.randrange(most))

    def command(self):
        pick = self.random.randrange
        key, value = self.key, self.value
        choice = pick(100)
        if choice < 22:
            return [b"SET", key(), value()]
        if choice < 42:
            return [b"GET", key()]
        if choice == 42 and self.alone:
            return [[b"DBSIZE"], [b"FLUSHALL"]][pick(10) == 0]
        makers = (lambda: [b"INCR", key()], lambda: [b"DECR", key()], lambda: [b"INCRBY", key(), b"%d" % pick(-9999,
                                                                                                              9999)],
                  lambda: [b"APPEND", key(), value()], lambda: [b"STRLEN", key()], lambda: [b"TYPE", key()],
                  lambda: [b"EXISTS"] + [key() for _ in range(pick(1, 5))],
                  lambda: [b"DEL"] + [key() for _ in range(pick(1, 4))],
                  lambda: [b"MGET"] + [key() for _ in range(pick(1, 9))],
                  lambda: [b"MSET"] + [word for _ in range(pick(1, 7)) for word in (key(), value())],
                  lambda: [b"LPUSH", key()] + [value() for _ in range(pick(1, 4))],
                  lambda: [b"RPUSH", key()] + [value() for _ in range(pick(1, 4))],
                  lambda: [b"LPOP", key()], lambda: [b"RPOP", key()], lambda: [b"LLEN", key()],
                  lambda: [b"LRANGE", key(), b"%d" % pick(-12, 12), b"%d" % pick(-12, 12)],
                  lambda: [b"SET", key(), value(), self.random.choice((b"NX", b"XX"))],
                  lambda: [b"PING"], lambda: [b"ECHO", value()])
        return self.random.choice(makers)()

    def pipeline(self, length):
        return [self.command() for _ in range(length)]


def encoded(commands):
    return b"".join(resp.encode(*words) for words in commands)
