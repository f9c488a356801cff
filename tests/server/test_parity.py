# SPDX-License-Identifier: MIT
"""test_parity.py: weir-kv answers as a real redis-server does.

Job        Runs the parity script against both servers: through raw sockets (byte for byte), as one pipeline,
and through
           redis-cli; over both socket kinds, with one and two threads and with both poll backends.
Differences are those of differences.py and no others.
"""

import re
import subprocess

import differences
import kit
import parity_script
import resp

VARIANTS = {f"{transport}_{threads}t_{poll}": {"transport": transport, "threads": threads, "poll": poll}
            for transport in ("unix", "tcp") for threads in (1, 2) for poll in ("epoll", "poll")}
MARK = "--- next "
# What redis-cli says when it has lost the server; no reply of the script looks like it.
CLI_TROUBLE = re.compile(r"Could not connect|Server closed|Broken pipe|Connection reset")


def start_both(t, transport, threads=None, poll=None):
    how = {"unix": transport == "unix", "tcp": transport == "tcp", "threads": threads, "poll": poll}
    return t.kv(**how), t.redis(**how)


def side_by_side(title, kv, redis):
    return f"{title}\n      weir-kv {kit.shown(kv)}\n      redis   {kit.shown(redis)}"


def judge(t, pairs):
    """pairs: (command line, weir-kv's reply, Redis's reply). Fails with all lines that differ."""
    wrong = []
    used = set()
    for line, kv, redis in pairs:
        entry = differences.difference_for(line)
        if entry:
            used.add(entry)
            problem = entry.check(kv, redis) if kv != redis else None
            if problem:
                wrong.append(side_by_side(f"{kit.shown(line, 100)}: {problem}", kv, redis))
        elif kv != redis:
            wrong.append(side_by_side(kit.shown(line, 100), kv, redis))
    stale = [entry.pattern.pattern for entry in differences.DIFFERENCES if entry not in used]
    t.expect(not stale, f"intended differences that no command of the script meets: {stale}")
    shown = "\n    ".join(wrong[:40])
    t.expect(not wrong, f"{len(wrong)} of {len(pairs)} replies differ:\n    {shown}")


@kit.test(limit_s=60, **VARIANTS)
def parity_raw_replies_equal_redis(t, transport, threads, poll):
    kv, redis = start_both(t, transport, threads, poll)
    pairs = []
    with kv.connect(transport) as ours, redis.connect(transport) as theirs:
        for command in parity_script.COMMANDS:
            try:
                pairs.append((command.short, ours.raw(*command.words), theirs.raw(*command.words)))
            except kit.Failure as failure:
                raise kit.Failure(f"at {kit.shown(command.short, 100)}: {failure}") from None
    judge(t, pairs)
    t.note(f"{len(pairs)} commands")


@kit.test(limit_s=60, **VARIANTS)
def parity_inline_replies_equal_redis(t, transport, threads, poll):
    kv, redis = start_both(t, transport, threads, poll)
    wrong = []
    with kv.connect(transport) as ours, redis.connect(transport) as theirs:
        for number, data in enumerate(parity_script.INLINE):
            got = [replies_until_mark(connection, data, b"mark %d" % number) for connection in (ours, theirs)]
            if got[0] != got[1]:
                wrong.append(side_by_side(kit.shown(data, 80), *got))
    t.expect(not wrong, "inline commands answered otherwise:\n    " + "\n    ".join(wrong))
    t.note(f"{len(parity_script.INLINE)} inputs")


def replies_until_mark(connection, data, mark):
    connection.send(data + resp.encode("ECHO", mark))
    replies = []
    while True:
        reply = connection.reply()
        if reply == b"$%d\r\n%b\r\n" % (len(mark), mark):
            return b"".join(replies)
        replies.append(reply)


@kit.test(limit_s=60, **VARIANTS)
def parity_protocol_errors_equal_redis_and_close(t, transport, threads, poll):
    kv, redis = start_both(t, transport, threads, poll)
    wrong = []
    for data in parity_script.BROKEN:
        got = []
        for server in (kv, redis):
            with server.connect(transport, limit_s=10) as connection:
                try:
                    connection.send(data)
                    got.append(connection.until_closed())
                except kit.Failure as failure:
                    got.append(str(failure).encode())
                except (ConnectionResetError, BrokenPipeError) as error:
                    # The server may close before it has read the rest of a long line.
                    got.append(connection.until_closed() or str(error).encode())
        if got[0] != got[1]:
            wrong.append(f"{kit.shown(data, 80)}\n      weir-kv {kit.shown(got[0])}\n      redis   {kit.shown(got[1])}")
    t.expect(not wrong, "broken input answered otherwise:\n    " + "\n    ".join(wrong))
    t.note(f"{len(parity_script.BROKEN)} inputs")


@kit.test(limit_s=60, **VARIANTS)
def parity_holds_for_the_script_as_one_pipeline(t, transport, threads, poll):
    kv, redis = start_both(t, transport, threads, poll)
    commands = [command for command in parity_script.COMMANDS if not differences.difference_for(command.short)]
    data = b"".join(resp.encode(*command.words) for command in commands)
    with redis.connect(transport) as theirs:
        wanted = b"".join(theirs.raw(*command.words) for command in commands)
    with kv.connect(transport) as ours:
        t.expect_eq(ours.exchange(data, len(wanted)), wanted, "replies to the whole script in one write")
        t.expect_eq(ours.raw("PING"), b"+PONG\r\n", "reply behind the pipeline")


def through_redis_cli(t, server, transport, commands):
    """Each command's output as redis-cli prints it for people (types shown)."""
    lines = []
    for number, command in enumerate(commands):
        lines += [f'ECHO "{MARK}{number}"', command.line]
    run = subprocess.run([t.needs_tool("redis-cli"), *server.cli_arguments(transport), "--no-raw"],
                         input="\n".join(lines + [f'ECHO "{MARK}end"', ""]).encode(), stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, timeout=50, check=False)
    text = run.stdout.decode("latin-1")
    t.expect_eq(run.returncode, 0, f"exit code of redis-cli, which printed {kit.shown(text[-500:])}")
    parts = re.split(rf'^"{MARK}(?:\d+|end)"\n', text, flags=re.MULTILINE)
    t.expect(not CLI_TROUBLE.search(text), f"redis-cli lost the server: {kit.shown(text[-500:])}")
    t.expect_eq(len(parts), len(commands) + 2, f"marks in redis-cli's output {kit.shown(text[-500:])}")
    return parts[1:-1]


@kit.test(limit_s=60, **VARIANTS)
def parity_redis_cli_prints_the_same(t, transport, threads, poll):
    kv, redis = start_both(t, transport, threads, poll)
    commands = [command for command in parity_script.COMMANDS if not command.raw_only]
    ours = through_redis_cli(t, kv, transport, commands)
    theirs = through_redis_cli(t, redis, transport, commands)
    wrong = []
    for command, kv_text, redis_text in zip(commands, ours, theirs):
        if differences.difference_for(command.short):
            if kv_text.startswith("(error)") and kv_text != redis_text:
                wrong.append(f"{command.short}: {kv_text!r}")
        elif kv_text != redis_text:
            wrong.append(side_by_side(kit.shown(command.short, 100), kv_text, redis_text))
    t.expect(not wrong, f"{len(wrong)} of {len(commands)} outputs differ:\n    " + "\n    ".join(wrong[:40]))
    t.note(f"{len(commands)} commands")


@kit.test()
def hello_3_is_refused_with_noproto_and_the_connection_stays_usable(t):
    """Redis would switch to RESP3; weir-kv speaks RESP2 only, and answers as Redis does to versions it lacks."""
    t.needs_weir_kv("refusing HELLO 3")
    with t.kv().connect() as connection:
        t.expect_eq(connection.raw("HELLO", 3), b"-NOPROTO unsupported protocol version\r\n", "HELLO 3")
        t.expect_eq(connection.raw("PING"), b"+PONG\r\n", "PING afterwards")
        t.expect_eq(connection.raw("GET", "missing"), b"$-1\r\n", "nil is RESP2's")


OUR_COMMANDS = ("ping echo set get del exists incr decr incrby decrby append strlen mset mget expire ttl lpush rpush "
                "lpop rpop llen lrange type dbsize flushall info command config client hello select quit "
                "shutdown").split()


@kit.test()
def command_lists_name_arity_and_keys_as_redis_does(t):
    """Cluster-aware and pooling clients read COMMAND's first six fields."""
    kv, redis = start_both(t, "unix")
    with kv.connect() as ours, redis.connect() as theirs:
        theirs_by_name = {row[0].decode(): row for row in theirs.value("COMMAND")}
        rows = ours.value("COMMAND")
        ours_by_name = {row[0].decode().lower(): row for row in rows}
        wrong = [f"{name} is missing" for name in OUR_COMMANDS if name not in ours_by_name]
        for name in OUR_COMMANDS:
            if name in ours_by_name and name in theirs_by_name:
                got, wanted = ours_by_name[name], theirs_by_name[name]
                if [got[1]] + got[3:6] != [wanted[1]] + wanted[3:6]:
                    wrong.append(f"{name}: arity, keys {got[1]}, {got[3:6]} instead of {wanted[1]}, {wanted[3:6]}")
                for flag in (b"write", b"readonly"):
                    if (flag in got[2]) != (flag in wanted[2]):
                        wrong.append(f"{name}: flags {got[2]} instead of {wanted[2]}")
        t.expect(not wrong, "; ".join(wrong))
        t.expect_eq(ours.value("COMMAND", "COUNT"), len(rows), "COMMAND COUNT beside the length of COMMAND")
        info = ours.value("COMMAND", "INFO", "get", "nosuch", "SET")
        t.expect_eq([row and row[0] for row in info], [b"get", None, b"set"], "names of COMMAND INFO get nosuch SET")
        docs = ours.value("COMMAND", "DOCS")
        t.expect(isinstance(docs, list) and len(docs) % 2 == 0, f"COMMAND DOCS is no map: {kit.shown(docs)}")


@kit.test()
def redis_cli_starts_without_complaint(t):
    """At its start redis-cli asks for COMMAND DOCS, to complete names; a server may not stumble over that."""
    kv = t.kv(tcp=True)
    for transport in ("unix", "tcp"):
        run = subprocess.run([t.needs_tool("redis-cli"), *kv.cli_arguments(transport)], input=b"PING\nSET a b\nGET a\n",
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30, check=False)
        t.expect_eq((run.returncode, run.stdout), (0, b"PONG\nOK\nb\n"), f"redis-cli over {transport}")


@kit.test(limit_s=60, one_thread={"threads": 1}, two_threads={"threads": 2})
def expired_keys_are_gone_for_every_command(t, threads):
    kv, redis = start_both(t, "unix", threads)
    afterwards = (["GET", "x1"], ["EXISTS", "x2"], ["TYPE", "x3"], ["TTL", "x4"], ["STRLEN", "x5"], ["INCR", "x6"],
                  ["APPEND", "x7", "new"], ["SET", "x8", "v", "NX"], ["SET", "x9", "v", "XX"], ["SET", "x10", "v",
                                                                                                "GET"],
                  ["DEL", "x11"], ["EXPIRE", "x12", "100"], ["MGET", "x13", "x14"], ["SET", "x15", "v", "KEEPTTL"],
                  ["TTL", "x15"], ["TTL", "x6"], ["RPUSH", "x16", "a"], ["LLEN", "x17"], ["LRANGE", "x18", "0", "-1"],
                  ["LPOP", "x19"])
    replies = []
    for server in (kv, redis):
        with server.connect() as connection:
            for number in range(1, 20):
                connection.value("SET", f"x{number}", "10", "PX", "20")
            connection.value("SET", "last", "10", "PX", "20")
            t.eventually(lambda c=connection: (c.value("GET", "last") is None, "still there"),
                         "a key with PX 20 expires")
            replies.append([(command, connection.raw(*command)) for command in afterwards])
    t.expect_eq(replies[0], replies[1], "replies once the keys have expired")


@kit.test(limit_s=60)
def keys_do_not_expire_early(t):
    """The client's clock starts before the command leaves, so a key seen missing too early is the server's fault."""
    import time
    with t.kv().connect() as connection:
        for limit_ms in (50, 200, 1000):
            connection.value("SET", "k", "v", "PX", limit_ms)
            stored_at = time.monotonic()
            t.eventually(lambda: (connection.value("GET", "k") is None, "still there"),
                         f"a key with PX {limit_ms} expires")
            elapsed_ms = (time.monotonic() - stored_at) * 1000
            # Whole milliseconds on both ends: one may be lost to rounding, another between reply and the first look.
            t.expect(elapsed_ms >= limit_ms - 5, f"PX {limit_ms}: gone after {elapsed_ms:.1f} ms")
            t.expect_at_most(elapsed_ms, limit_ms + 2000, f"PX {limit_ms}: milliseconds until it was gone")


@kit.test()
def both_sockets_serve_the_same_data(t):
    kv = t.kv(tcp=True)
    t.expect_eq(len(kv.ready_lines), 2, f"ready lines {kv.ready_lines}")
    with kv.connect("unix") as one, kv.connect("tcp") as other:
        one.value("SET", "k", "v")
        t.expect_eq(other.value("GET", "k"), b"v", "a value set over the Unix socket, read over TCP")


@kit.test(epoll={"poll": None, "epoll_wanted": True}, poll={"poll": "poll", "epoll_wanted": False})
def the_poll_backend_asked_for_is_the_one_used(t, poll, epoll_wanted):
    """Without this, the variants named `poll` would prove nothing."""
    import procfs
    t.needs_weir_kv("WEIR_POLL")
    kinds = procfs.descriptors(t.kv(poll=poll).pid).values()
    t.expect_eq(any("eventpoll" in kind for kind in kinds), epoll_wanted, f"an epoll descriptor among {sorted(kinds)}")
