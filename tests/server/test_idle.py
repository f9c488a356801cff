# SPDX-License-Identifier: MIT
"""test_idle.py: a server with nothing to do does nothing.

Job        Counts context switches and CPU ticks of all threads over five seconds, for each number of threads and each
           poll backend at once: the servers are idle, so they do not disturb each other.
"""

import time

import kit
import procfs

MEASURED_S = 5
SWITCHES_MOST = 2 * MEASURED_S


@kit.test(limit_s=60)
def an_idle_server_with_ten_clients_sleeps(t):
    t.needs_plain_build("the idleness")  # ThreadSanitizer has a thread of its own that ticks
    servers = {}
    for threads in (1, 2):
        for poll in ("epoll", "poll"):
            server = t.kv(tcp=True, threads=threads, poll=poll)
            clients = [server.connect(("unix", "tcp")[number % 2]) for number in range(10)]
            for number, connection in enumerate(clients):
                t.expect_eq(connection.raw("SET", f"k{number}", "v"), b"+OK\r\n", "SET")
            servers[f"{threads} threads, {poll}"] = server, clients

    def all_sleep():
        awake = [name for name, (server, _) in servers.items() if not procfs.all_threads_sleep(server.pid)]
        return not awake, awake
    # Going to sleep is announced to nobody, so the threads' states are polled.
    t.eventually(all_sleep, "all threads sleep")
    before = {name: reading(server) for name, (server, _) in servers.items()}
    time.sleep(MEASURED_S)  # the span that is measured
    after = {name: reading(server) for name, (server, _) in servers.items()}
    wrong = []
    for name, (server, clients) in servers.items():
        switches, ticks = (b - a for a, b in zip(before[name], after[name]))
        t.note(f"{name}: {switches} context switches, {ticks} CPU ticks in {MEASURED_S} s")
        if switches > SWITCHES_MOST or ticks > 0:
            wrong.append(name)
        for connection in clients:
            t.expect_eq(connection.raw("PING"), b"+PONG\r\n", f"a client of {name} after the idle span")
    t.expect(not wrong, f"not idle (more than {SWITCHES_MOST} switches or any tick): {wrong}")


def reading(server):
    return procfs.context_switches(server.pid), procfs.cpu_ticks(server.pid)
