# SPDX-License-Identifier: MIT
"""test_benchmark.py: redis-benchmark runs through, and the server answers a pipeline with one system call.

Job        The issue's redis-benchmark line, plain and with the server below strace.
Counting   redis-benchmark prints a line for each of its tests; commands = lines x n, one for each LRANGE or MSET. Every
           write, writev, sendmsg and sendto of the server counts, failed ones and those that wake threads, too.
"""

import os
import re
import subprocess
import time

import kit
import strace_log

TESTS = "ping,set,get,incr,lpush,rpush,lpop,rpop,lrange_100,mset"
TEST_LINES = 12  # PING in two forms, the LPUSH that prepares LRANGE, and one for each of the others
PIPELINE = 50
WRITES_PER_COMMAND_MOST = 0.03
FULL_COUNT, SHORT_COUNT, STRACE_COUNT = 1_000_000, 200_000, 100_000
FULL_WITHIN_S = 90
THREADS = {"one_thread": {"threads": 1}, "two_threads": {"threads": 2}}

_RESULT = re.compile(r"^(.+): ([\d.]+) requests per second", re.MULTILINE)


def redis_benchmark(t, server, count, limit_s):
    """Runs it; returns {test: requests a second}."""
    command = [t.needs_tool("redis-benchmark"), "-s", server.unix_path, "-P", str(PIPELINE), "-c", "20", "-n",
               str(count),
               "-t", TESTS, "-q"]
    run = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         timeout=limit_s, check=False)
    text = run.stdout.decode("latin-1").replace("\r", "\n")
    t.expect_eq(run.returncode, 0, f"exit code of redis-benchmark: {kit.shown(text[-500:])}")
    t.expect(not re.search(r"error|ERR|WARN|refused|reset", text, re.IGNORECASE),
             f"redis-benchmark says {kit.shown(text[-800:])}")
    results = {name.strip(): float(rate) for name, rate in _RESULT.findall(text)}
    t.expect_eq(len(results), TEST_LINES, f"tests that redis-benchmark has run: {list(results)}")
    return results


@kit.test(limit_s=400, **THREADS)
def redis_benchmark_ends_without_error(t, threads):
    """A million of each; where the machine is too slow for that in the normal run, 200 000, and it says so."""
    server = t.kv(threads=threads)
    start = time.monotonic()
    results = redis_benchmark(t, server, SHORT_COUNT, 300)
    projected_s = (time.monotonic() - start) * FULL_COUNT / SHORT_COUNT
    if t.soak or projected_s < FULL_WITHIN_S:
        results = redis_benchmark(t, server, FULL_COUNT, 300)
    else:
        t.note(f"{SHORT_COUNT} of each: {FULL_COUNT} would take {projected_s:.0f} s here; the soak runs them")
    with server.connect() as connection:
        t.expect_eq(connection.raw("PING"), b"+PONG\r\n", "PING afterwards")
    t.note(", ".join(f"{name.split()[0]} {rate / 1000:.0f}k/s" for name, rate in results.items()))


@kit.test(limit_s=400, **THREADS)
def a_pipeline_is_answered_with_one_system_call(t, threads):
    t.needs_plain_build("the list of system calls")
    log = os.path.join(t.directory, "strace.log")
    server = t.kv(threads=threads, below=[t.needs_tool("strace"), *strace_log.OPTIONS, "-o", log])
    results = redis_benchmark(t, server, STRACE_COUNT, 350)
    t.expect_eq(server.terminate(), 0, f"exit code; stderr: {server.stderr()[-1000:]}")
    with open(log, encoding="latin-1") as lines:
        summary = strace_log.summarise(lines)
    commands = len(results) * STRACE_COUNT
    ratio = summary.total_writes() / commands
    t.note(f"{commands} commands, {summary.connections} connections, {summary.reads} reads, writes "
           f"{ {name: count for name, count in summary.writes.items() if count} }, {ratio:.4f} a command, "
           f"{summary.small_sends} below {strace_log.SMALL_BYTES} bytes")
    t.expect(summary.connections >= 20 * len(results),
             f"strace saw {summary.connections} connections: the log is not whole")
    t.expect(ratio >= 0.9 / PIPELINE, f"strace saw {summary.total_writes()} writes: the log is not whole")
    t.expect(not summary.wrong_sends,
             f"{len(summary.wrong_sends)} sends of less than {strace_log.SMALL_BYTES} bytes while more "
             f"output was queued, the first: {summary.wrong_sends[:1]}")
    t.expect_at_most(ratio, WRITES_PER_COMMAND_MOST, "writes a command")


SAMPLE = """\
10  accept4(3, NULL, NULL, SOCK_CLOEXEC|SOCK_NONBLOCK) = 7
10  recvfrom(7, ""..., 65536, 0, NULL, NULL) = 100
11  sendmsg(7, {msg_name=NULL, msg_iov=[{iov_base=""..., iov_len=20}, {iov_base=""..., iov_len=30}], msg_iovlen=2}, \
MSG_DONTWAIT|MSG_NOSIGNAL <unfinished ...>
10  write(4, ""..., 8) = 8
11  <... sendmsg resumed>) = 50
10  recvfrom(7, 0x7f00, 65536, 0, NULL, NULL) = -1 EAGAIN (Resource temporarily unavailable)
10  sendto(7, ""..., 63, MSG_NOSIGNAL, NULL, 0) = 63
10  recvfrom(7, ""..., 65536, 0, NULL, NULL) = 100
10  writev(7, [{iov_base=""..., iov_len=1000}, {iov_base=""..., iov_len=1000}], 2) = 30
10  sendto(7, ""..., 10, MSG_NOSIGNAL, NULL, 0) = -1 EAGAIN (Resource temporarily unavailable)
10  sendto(7, ""..., 10, MSG_NOSIGNAL, NULL, 0) = 10
10  close(7 <unfinished ...>
11  accept4(3, NULL, NULL, SOCK_CLOEXEC|SOCK_NONBLOCK) = 7
10  <... close resumed>) = 0
11  recvfrom(7, ""..., 65536, 0, NULL, NULL) = 100
"""


@kit.test()
def the_reader_of_strace_logs_finds_small_sends(t):
    """What the test above relies on: one wrong send, in a log where other lines come close."""
    summary = strace_log.summarise(SAMPLE.splitlines())
    t.expect_eq(summary.writes, {"write": 1, "writev": 1, "sendmsg": 1, "sendto": 3}, "calls counted")
    t.expect_eq((summary.connections, summary.reads, summary.small_sends), (2, 3, 3), "connections, reads, small sends")
    t.expect_eq(len(summary.wrong_sends), 1, f"wrong sends {summary.wrong_sends}")
    t.expect(summary.wrong_sends[0].startswith("sendmsg(7"), f"the wrong one is named: {summary.wrong_sends}")
