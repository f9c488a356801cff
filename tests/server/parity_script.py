# SPDX-License-Identifier: MIT
"""parity_script.py: the commands whose replies have to equal a real redis-server's.

Job        SCRIPT runs in order on one connection: a command a line, quoted as for redis-cli. INLINE and BROKEN are raw
           bytes, for what redis-cli cannot send.
Rules      `#` starts a remark. `~` before a command: raw sockets only, since redis-cli keeps the command for itself or
           would have to read an enormous line. <A100> stands for 100 letters A.
Timing     Times to live are long, so that both servers round to the same second.
"""

import re

SCRIPT = r'''
# --- connection commands
FLUSHALL
DBSIZE
PING
ping
PING hello
PING ""
PING "two words"
PING a b
ECHO hello
ECHO ""
ECHO "\x00\x01\xff\r\n"
ECHO
ECHO a b
eChO MiXeD
~SELECT 0
~SELECT 1
~SELECT -1
~SELECT abc
~SELECT
~SELECT 0 0
~HELLO
~HELLO 2
~HELLO 1
~HELLO 4
~HELLO abc
~HELLO 2 bogus
CLIENT ID
CLIENT SETNAME weir
CLIENT SETNAME ""
CLIENT SETNAME "a b"
CLIENT SETNAME "a\nb"
CLIENT SETNAME
CLIENT SETINFO LIB-NAME tests
CLIENT SETINFO LIB-VER 1.0
CLIENT ID extra
CLIENT BOGUS
CLIENT
CONFIG GET maxmemory
CONFIG GET save
CONFIG GET appendonly
CONFIG GET MAXMEMORY
CONFIG GET nosuchparameter
CONFIG GET
CONFIG BOGUS
CONFIG
COMMAND COUNT
COMMAND COUNT extra
COMMAND BOGUS
COMMAND INFO nosuchcommand

# --- unknown commands and their texts
NOSUCH
nosuch
NoSuch a b c
NOSUCH ""
NOSUCH "a b" 'c'
NOSUCH "line\r\nbreak"
NOSUCH "\x00\x01\x80\xff"
NOSUCH <A200>
NOSUCH <A60> <B60> <C60>
NOSUCH <A127>
NOSUCH <A128> B
NOSUCH <A129> B
<N300> a
<N128>
"" a
""
"GET\x00" k
"GE T" k
GETT k
GE k

# --- SET and GET
GET missing
SET k v
GET k
get k
SET k ""
GET k
SET k "\x00\r\n\xff\x80 binary"
GET k
SET "" emptykey
GET ""
SET "\x00\xff key" binarykey
GET "\x00\xff key"
SET k <V1000>
GET k
SET k <V100000>
GET k
STRLEN k
SET k v NX
GET k
SET fresh v NX
GET fresh
SET fresh w XX
GET fresh
SET missing v XX
GET missing
SET k v2 GET
SET missing2 v GET
GET missing2
SET k v3 XX GET
SET missing3 v XX GET
SET k v4 NX GET
GET k
SET missing4 v NX GET
GET missing4
SET k v NX XX
SET k v XX NX
SET k v EX 100
TTL k
SET k v
TTL k
SET k v PX 100000
TTL k
SET k v PX 1500
SET k v EX 100
SET k w KEEPTTL
TTL k
GET k
SET k w
TTL k
SET k v KEEPTTL
TTL k
SET k v ex 100 nx
SET k v xx ex 100
TTL k
SET k v GET EX 200
TTL k
SET k v get keepttl xx
TTL k
SET k v EX 0
SET k v EX -1
SET k v EX abc
SET k v EX ""
SET k v EX 1.5
SET k v EX
SET k v EX 9223372036854775807
SET k v EX 9223372036854775808
SET k v EX 9223372036854775
SET k v PX 0
SET k v PX -5
SET k v PX abc
SET k v PX
SET k v PX 9223372036854775807
SET k v PX 9223372036854775808
SET k v EX 10 PX 10000
SET k v PX 10000 EX 10
SET k v EX 10 EX 10
SET k v EX 10 KEEPTTL
SET k v KEEPTTL EX 10
SET k v KEEPTTL KEEPTTL
SET k v NX NX
SET k v GET GET
SET k v BOGUS
SET k v EX 10 BOGUS
SET k v NX BOGUS
SET k v ""
SET k v 10
SET k
SET
GET k
GET
GET a b
TTL k

# --- counters
DEL n
INCR n
INCR n
INCRBY n 10
DECR n
DECRBY n 5
GET n
DECR fresh0
INCRBY fresh1 -7
DECRBY fresh2 7
INCRBY n 0
INCRBY n -0
INCRBY n +1
INCRBY n 01
INCRBY n " 1"
INCRBY n "1 "
INCRBY n 1.0
INCRBY n 1e3
INCRBY n abc
INCRBY n ""
INCRBY n 9223372036854775808
INCRBY n -9223372036854775809
DECRBY n abc
DECRBY n 9223372036854775808
DECRBY n -9223372036854775808
DECRBY n -9223372036854775807
SET n 9223372036854775807
INCR n
INCRBY n 1
GET n
DECRBY n -1
DECR n
INCRBY n 9223372036854775807
SET n -9223372036854775808
DECR n
DECRBY n 1
INCRBY n -1
INCR n
DECRBY n 9223372036854775807
GET n
SET n 0
DECRBY n -9223372036854775808
DECRBY n 9223372036854775807
DECR n
DECR n
SET n 9223372036854775800
INCRBY n 7
INCRBY n 9223372036854775807
SET n abc
INCR n
DECR n
INCRBY n 1
SET n ""
INCR n
SET n " 5"
INCR n
SET n "5 "
INCR n
SET n +5
INCR n
SET n 05
INCR n
SET n -0
INCR n
SET n 5.0
INCR n
SET n 0x10
INCR n
SET n "5\x00"
INCR n
SET n 9223372036854775808
INCR n
SET n -9223372036854775809
DECR n
SET n 00
INCR n
SET n -
INCR n
SET n -5
INCR n
INCR
INCR a b
DECR
DECR a b
INCRBY n
INCRBY
INCRBY n 1 2
DECRBY n
DECRBY n 1 2

# --- APPEND and STRLEN
DEL s
APPEND s hello
APPEND s ""
APPEND s " world"
GET s
STRLEN s
STRLEN missing
APPEND s "\x00\xff"
GET s
STRLEN s
APPEND fresh3 ""
EXISTS fresh3
STRLEN fresh3
SET s 10
APPEND s 5
INCR s
APPEND s <V5000>
STRLEN s
APPEND s
APPEND
APPEND s a b
STRLEN
STRLEN a b

# --- MSET, MGET, DEL, EXISTS
MSET a 1 b 2 c 3
MGET a b c
MGET a missing c
MGET missing
MGET a a a
MSET a x a y
GET a
MSET a ""
GET a
MSET
MSET a
MSET a 1 b
MSET a 1 b 2 c
MGET
MSET t 1
EXPIRE t 100
MSET t 2
TTL t
EXISTS a
EXISTS missing
EXISTS a b c missing a
EXISTS
DEL a
DEL a
DEL a b c
DEL b missing b
DEL b b
DEL
SET d v
DEL d d
EXISTS d

# --- EXPIRE and TTL
SET k v
TTL k
TTL missing
EXPIRE k 100
TTL k
EXPIRE missing 100
EXPIRE k 0
EXISTS k
GET k
SET k v
EXPIRE k -1
EXISTS k
SET k v
EXPIRE k abc
EXPIRE k ""
EXPIRE k 1.5
EXPIRE k 9223372036854775807
EXPIRE k -9223372036854775808
EXPIRE k 9223372036854775808
EXPIRE k
EXPIRE
EXPIRE k 100 BOGUS
TTL k
EXPIRE k 100 NX
EXPIRE k 200 NX
EXPIRE k 300 XX
TTL k
EXPIRE k 200 GT
TTL k
EXPIRE k 400 gt
TTL k
EXPIRE k 500 LT
EXPIRE k 100 LT
TTL k
EXPIRE k 100 NX XX
EXPIRE k 100 GT LT
TTL
TTL k k
SET n 5 EX 100
INCR n
TTL n
APPEND n 1
TTL n
SET n 6 XX
TTL n
RPUSH ttllist a b
EXPIRE ttllist 100
RPUSH ttllist c
TTL ttllist
DEL ttllist
RPUSH ttllist a
TTL ttllist
EXPIRE ttllist 50
LPOP ttllist
TTL ttllist
RPUSH ttllist a
TTL ttllist
DEL ttllist

# --- lists
DEL l
LPUSH l a
LPUSH l b c
RPUSH l d e
LLEN l
LRANGE l 0 -1
LRANGE l 0 0
LRANGE l 1 3
LRANGE l -2 -1
LRANGE l -100 100
LRANGE l -100 -100
LRANGE l 3 1
LRANGE l -1 -2
LRANGE l 5 10
LRANGE l 4 4
LRANGE l 4 100
LRANGE l 0 -6
LRANGE l 0 -5
LRANGE l -5 0
LRANGE l 9223372036854775807 -9223372036854775808
LRANGE l -9223372036854775808 9223372036854775807
LRANGE l 9223372036854775808 1
LRANGE l abc 1
LRANGE l 0 abc
LRANGE l "" 1
LRANGE l 0 1.5
LRANGE missing 0 -1
LRANGE missing abc 0
LRANGE l 0
LRANGE l
LRANGE
LRANGE l 0 1 2
LPOP l
RPOP l
LPOP l 2
LRANGE l 0 -1
RPUSH l 1 2 3 4 5 6
RPOP l 3
LRANGE l 0 -1
LPOP l 0
RPOP l 0
LPOP l 100
EXISTS l
LLEN l
TYPE l
LPOP l
RPOP l
LPOP l 1
RPOP l 5
LPOP l 0
LPOP missing abc
LPOP l -1
RPOP l -1
RPUSH l x
LPOP l -1
LPOP l abc
LPOP l ""
LPOP l 1.5
LPOP l 9223372036854775807
RPUSH l x
RPOP l 9223372036854775808
RPOP l abc
LPOP l 1 2
RPOP l 1 2
LPOP
RPOP
LPUSH l
LPUSH
RPUSH l
RPUSH
LLEN
LLEN l l
RPUSH l "" "\x00\xff" "\r\n" <V3000>
LRANGE l 0 -1
LPUSH l 1 1 1
LLEN l
LRANGE l 0 2
DEL l
LLEN l
RPUSH l 1
RPOP l
TYPE l
EXISTS l

# --- wrong types
SET str v
RPUSH lst a b c
GET lst
INCR lst
DECR lst
INCRBY lst 1
DECRBY lst 1
INCRBY lst abc
APPEND lst x
STRLEN lst
MGET lst str
SET lst v GET
SET lst v NX
LRANGE lst 0 -1
LPUSH str a
RPUSH str a
LPOP str
RPOP str
LPOP str 2
LPOP str 0
LPOP str abc
LLEN str
LRANGE str 0 -1
LRANGE str abc 0
TYPE str
TYPE lst
TYPE missing
TYPE
TYPE a b
EXPIRE lst 100
TTL lst
SET lst nowstring
TYPE lst
GET lst
TTL lst
DEL str
RPUSH str nowlist
TYPE str
MSET str again
TYPE str

# --- names in other cases, the whole data set
sEt CaSe 1
gEt CaSe
GET case
incrBY CaSe 5
lPuSh CaseList 1
type CaseList
INFO
INFO server
DBSIZE extra
FLUSHALL BOGUS
FLUSHALL ASYNC SYNC
DBSIZE
FLUSHALL ASYNC
DBSIZE
SET one 1
MSET two 2 three 3
RPUSH four 4
DBSIZE
FLUSHALL SYNC
DBSIZE
GET one
LLEN four
SHUTDOWN BOGUS
SHUTDOWN NOSAVE SAVE
~SET big <V1000000>
~GET big
~STRLEN big
~APPEND big <W1000000>
~STRLEN big
~GET big
~RPUSH biglist <V200000> <W200000> <X200000>
~LRANGE biglist 0 -1
FLUSHALL
'''

# Each with the replies it has to bring: both servers get the bytes, then an ECHO whose reply marks the end.
INLINE = (
    b"PING\r\n", b"PING\n", b"  PING  \r\n", b"ping hello\r\n", b"PING 'single quoted' \r\n",
    b"PING \"a b\\x41\\n\\t\\\\\"\r\n",
    b"PING 'it\\'s'\r\n", b"SET inl v1\r\n", b"GET inl\r\n", b"SET inl \"\"\r\n", b"GET inl\n",
    b"SET inl \"\\x00\\xff\"\r\n",
    b"GET inl\r\n", b"GET\r\n", b"NOSUCH a b\r\n", b"\r\n", b"\n", b"\r\n\r\nPING\r\n", b"   \r\n", b"\t\r\n",
    b"SET inl\tv2\r\n", b"GET inl\r\n", b"LRANGE inl 0 -1\r\n", b"PING\r\nPING\r\nECHO x\r\n", b"*0\r\n", b"*-1\r\n",
    b"*0\r\n*0\r\nPING\r\n", b"*-10\r\n", b"*1\r\n$4\r\nPING\r\nPING\r\n*1\r\n$4\r\nPING\r\n", b"PING \"\"\r\n",
    b"PING a\"b\"\r\n",
    b"PING " + b"x" * 30000 + b"\r\n", b"\"PING\"\r\n", b"$4\r\nPING\r\n", b"+PING\r\n", b"-1\r\n", b":1\r\n",
    b"GET / HTTP/1.0\r\n",
)

# Each on a connection of its own: the server answers with a protocol error and closes.
BROKEN = (
    b"PING \"unbalanced\r\n", b"PING 'unbalanced\r\n", b"PING \"a\"b\r\n", b"PING 'a'b\r\n", b"*abc\r\n", b"*\r\n",
    b"*1x\r\n", b"*+1\r\n",
    b"* 1\r\n", b"*01\r\n", b"*9223372036854775808\r\n", b"*-9223372036854775809\r\n", b"*18446744073709551616\r\n",
    b"*2147483648\r\n",
    b"*1\r\nPING\r\n", b"*1\r\n+PING\r\n", b"*1\r\n:1\r\n", b"*1\r\n*1\r\n$4\r\nPING\r\n", b"*1\r\n\r\n",
    b"*1\r\n$abc\r\n", b"*1\r\n$\r\n", b"*1\r\n$-1\r\n", b"*1\r\n$-5\r\n", b"*1\r\n$+4\r\nPING\r\n",
    b"*1\r\n$4x\r\nPING\r\n",
    b"*1\r\n$9223372036854775807\r\n", b"*1\r\n$9223372036854775808\r\n", b"*1\r\n$-9223372036854775808\r\n",
    b"*1\r\n$536870913\r\n",
    b"*2\r\n$4\r\nPING\r\n$-1\r\n", b"PING\r\n*x\r\n", b"*1\r\n$4\r\nPING\r\n*1\r\n$x\r\n", b"QUIT\r\n",
    b"*1\r\n$4\r\nQUIT\r\n",
    b"*1\r\n$4\r\nQUIT\r\n*1\r\n$4\r\nPING\r\n", b"*2\r\n$4\r\nquit\r\n$1\r\nx\r\n", b"a" * 70000, b"*1" + b"1" * 70000,
    b"*1\r\n$" + b"1" * 70000,
)

_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "b": b"\b", "a": b"\a"}


def expanded(line):
    return re.sub(r"<([A-Z])(\d+)>", lambda match: match[1] * int(match[2]), line)


def split_words(line):
    """The words of a line in redis-cli's quoting."""
    words, at = [], 0
    while at < len(line):
        if line[at] == " ":
            at += 1
            continue
        word = b""
        if line[at] in "\"'":
            quote, at = line[at], at + 1
            while line[at] != quote:
                if quote == '"' and line[at] == "\\":
                    if line[at + 1] == "x":
                        word += bytes([int(line[at + 2:at + 4], 16)])
                        at += 4
                    else:
                        word += _ESCAPES.get(line[at + 1], line[at + 1].encode())
                        at += 2
                else:
                    word += line[at].encode()
                    at += 1
            at += 1
        else:
            end = line.find(" ", at)
            end = len(line) if end < 0 else end
            word, at = line[at:end].encode(), end
        words.append(word)
    return words


class Command:
    def __init__(self, line):
        self.raw_only = line.startswith("~")
        self.short = line.lstrip("~")
        self.line = expanded(self.short)
        self.words = split_words(self.line)


COMMANDS = [Command(line) for line in SCRIPT.splitlines() if line and not line.startswith("#")]
