# SPDX-License-Identifier: MIT
"""test_life.py: weir-kv's command line, its start and its end.

Job        Clean ends (SIGTERM, SHUTDOWN), clear errors at the start, taking over from a killed server, and what happens
           when descriptors run out.
"""

import os
import signal
import socket
import stat
import subprocess

import kit
import procfs
import resp

THREADS = {"one_thread": {"threads": 1}, "two_threads": {"threads": 2}}
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def run_to_end(t, *arguments, seconds=15):
    """Runs weir-kv with arguments that should make it end by itself; returns (exit code, stdout, stderr)."""
    t.needs_weir_kv("the command line")
    process = subprocess.Popen([t.options.kv, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        t.fail(f"weir-kv {' '.join(arguments)} has not ended by itself; stdout {out!r}, stderr {err!r}")
    return process.returncode, out, err


def expect_clean_end(t, server, code):
    t.expect_eq(code, 0, f"exit code; stderr: {server.stderr()}")
    if server.unix_path:
        t.expect(not os.path.lexists(server.unix_path), f"{server.unix_path} is left behind")


def expect_closed(t, connection, who):
    t.expect_eq(connection.until_closed(), b"", f"what {who} receives at the end")
    connection.close()


# --- the end ------------------------------------------------------------------------------------------------------
@kit.test(**THREADS)
def sigterm_ends_an_idle_server_cleanly(t, threads):
    server = t.kv(threads=threads)
    t.expect(stat.S_ISSOCK(os.stat(server.unix_path).st_mode), f"{server.unix_path} is a socket")
    expect_clean_end(t, server, server.terminate())


@kit.test(**THREADS)
def sigterm_before_any_client_and_sigint_end_cleanly(t, threads):
    server = t.kv(tcp=True, threads=threads)
    server.signal(signal.SIGINT)
    expect_clean_end(t, server, server.wait())


@kit.test()
def sigterm_before_the_run_is_not_forgotten(t):
    """strace delivers it right after the second handler, SIGINT's, is installed: before the run could be stopped."""
    t.needs_weir_kv("the order of its handlers")
    t.needs_plain_build("the order of the handlers")
    command = [t.needs_tool("strace"), "-qq", "-o", "/dev/null", "-e", "inject=rt_sigaction:signal=SIGTERM:when=2",
               t.options.kv, "--unix", os.path.join(t.directory, "kv.sock")]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        out, _ = process.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        for child in procfs.children(process.pid):
            os.kill(child, signal.SIGKILL)
        process.communicate()
        t.fail("the server runs on")
    t.expect_eq((process.returncode, out), (0, b""), "exit code and output")


@kit.test(**THREADS)
def sigterm_ends_a_server_with_50_clients_cleanly(t, threads):
    server = t.kv(tcp=True, threads=threads)
    clients = [server.connect(("unix", "tcp")[number % 2]) for number in range(50)]
    for connection in clients[:40]:  # the others never say a word
        t.expect_eq(connection.raw("PING"), b"+PONG\r\n", "PING")
    clients[0].send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100\r\nhalf")
    expect_clean_end(t, server, server.terminate())
    for number, connection in enumerate(clients):
        expect_closed(t, connection, f"client {number}")


@kit.test(**THREADS)
def sigterm_under_load_ends_cleanly(t, threads):
    """Four client processes send pipelines until the server hangs up; none may be left without an answer or an end."""
    server = t.kv(threads=threads)
    reader, writer = os.pipe()
    pids = []
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            load_until_closed(server, writer)
        pids.append(pid)
    os.close(writer)
    arrived = b""
    while len(arrived) < 4:
        data = os.read(reader, 4)
        t.expect(data, f"only {len(arrived)} clients were served")
        arrived += data
    expect_clean_end(t, server, server.terminate())
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    t.expect_eq(codes, [0] * 4, "exit codes of the clients (0: served, then closed)")


def load_until_closed(server, writer):
    """Body of a client process; does not return."""
    code = 1
    try:
        connection = server.connect()
        data = resp.encode("SET", "k", "v" * 1000) * 50 + resp.encode("GET", "k") * 50
        wanted = b"+OK\r\n" * 50 + (b"$1000\r\n" + b"v" * 1000 + b"\r\n") * 50
        served = connection.exchange(data, len(wanted)) == wanted
        os.write(writer, b"r")
        while served:
            connection.send(data)
            if not connection.socket.recv(1 << 20):
                code = 0
                break
    except (ConnectionResetError, BrokenPipeError):
        code = 0
    finally:
        os._exit(code)


@kit.test(plain={"words": ["SHUTDOWN"]}, nosave={"words": ["SHUTDOWN", "NOSAVE"]}, lower_case={"words": ["shutdown"]})
def shutdown_ends_the_server_cleanly(t, words):
    server = t.kv()
    with server.connect() as other, server.connect() as connection:
        t.expect_eq(other.raw("PING"), b"+PONG\r\n", "PING")
        connection.send(resp.encode(*words))
        expect_clean_end(t, server, server.wait())
        t.expect_eq(connection.until_closed(), b"", f"reply to {words}")
        expect_closed(t, other, "another client")


@kit.test()
def shutdown_over_tcp_frees_the_port(t):
    t.needs_weir_kv("--port")
    first = t.kv(unix=False, tcp=True)
    with first.connect("tcp") as connection:
        connection.send(resp.encode("SHUTDOWN"))
        t.expect_eq(first.wait(), 0, "exit code")
    second = t.kv(unix=False, extra=["--port", str(first.port), "--bind", "127.0.0.1"], lines_wanted=1)
    with second.connect("tcp") as connection:
        t.expect_eq(connection.raw("PING"), b"+PONG\r\n", "a new server on the same port, at once")


# --- the start ----------------------------------------------------------------------------------------------------
@kit.test()
def a_second_server_on_a_living_path_names_it_and_ends(t):
    first = t.kv()
    code, out, err = run_to_end(t, "--unix", first.unix_path)
    t.expect(code > 0, f"exit code {code}, stdout {out!r}")
    t.expect(first.unix_path in err, f"the error does not name the path: {err!r}")
    t.expect("ready" not in out, f"it said it was ready: {out!r}")
    with first.connect() as connection:
        t.expect_eq(connection.raw("PING"), b"+PONG\r\n", "the first server, afterwards")


@kit.test()
def a_second_server_takes_over_from_a_killed_one(t):
    t.needs_weir_kv("taking over")
    first = t.kv()
    first.signal(signal.SIGKILL)
    t.expect_eq(first.wait(), -signal.SIGKILL, "exit code of the killed server")
    t.expect(os.path.lexists(first.unix_path), "the killed server's socket file is still there")
    second = t.kv(unix_path=first.unix_path)
    with second.connect() as connection:
        t.expect_eq(connection.raw("PING"), b"+PONG\r\n", "PING")
    expect_clean_end(t, second, second.terminate())


@kit.test()
def a_path_that_is_no_socket_is_never_removed(t):
    path = os.path.join(t.directory, "precious")
    with open(path, "w", encoding="ascii") as file:
        file.write("data")
    code, out, err = run_to_end(t, "--unix", path)
    t.expect(code > 0 and path in err, f"exit code {code}, stdout {out!r}, stderr {err!r}")
    with open(path, encoding="ascii") as file:
        t.expect_eq(file.read(), "data", "contents of the file")


@kit.test()
def a_path_that_is_too_long_names_the_limit(t):
    """sun_path has 108 bytes on Linux, the last of them for the terminating zero."""
    base = os.path.join(t.directory, "")
    longest = base + "s" * (107 - len(base))
    code, out, err = run_to_end(t, "--unix", longest + "s")
    t.expect(code > 0, f"exit code {code}, stdout {out!r}")
    t.expect("107" in err or "108" in err, f"the error does not name the limit: {err!r}")
    server = t.kv(unix_path=longest)
    with server.connect() as connection:
        t.expect_eq(connection.raw("PING"), b"+PONG\r\n", "over a path of exactly 107 bytes")


@kit.test()
def a_path_in_a_missing_folder_is_named(t):
    path = os.path.join(t.directory, "missing", "kv.sock")
    code, out, err = run_to_end(t, "--unix", path)
    t.expect(code > 0 and path in err, f"exit code {code}, stdout {out!r}, stderr {err!r}")


@kit.test()
def a_port_in_use_is_named(t):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = str(holder.getsockname()[1])
        path = os.path.join(t.directory, "kv.sock")
        code, out, err = run_to_end(t, "--unix", path, "--port", port, "--bind", "127.0.0.1")
        t.expect(code > 0 and port in err, f"exit code {code}, stdout {out!r}, stderr {err!r}")
        t.expect(not os.path.lexists(path), "the socket file of the server that could not start is left behind")


@kit.test()
def wrong_options_print_the_usage_and_exit_with_2(t):
    path = os.path.join(t.directory, "kv.sock")
    for arguments in (["--bogus"], ["--unix"], ["--port"], ["--port", "abc"], ["--port", "65536"], ["--port", "-1"],
                      ["--port", ""], ["--port", "80x"], ["--threads", "abc"], ["--threads", "-1"], ["--maxmemory",
                                                                                                     "abc"],
                      ["--maxmemory", "-1"], ["--maxmemory", "99999999999999999999"], ["--threads"], ["stray"], ["-x"]):
        words = (["--unix", path] if arguments != ["--unix"] else []) + arguments
        code, out, err = run_to_end(t, *words)
        t.expect_eq(code, 2, f"exit code of weir-kv {words}; stdout {out!r}, stderr {err!r}")
        t.expect("--unix" in err and "--maxmemory" in err, f"weir-kv {words} prints no usage on stderr: {err!r}")
        t.expect(not os.path.lexists(path), f"weir-kv {words} left a socket file")


@kit.test()
def help_prints_every_option_on_stdout(t):
    code, out, err = run_to_end(t, "--help")
    t.expect_eq((code, err), (0, ""), "exit code and stderr")
    for option in ("--unix", "--port", "--bind", "--threads", "--maxmemory"):
        t.expect(option in out, f"{option} is missing from {out!r}")


@kit.test()
def ready_lines_name_what_is_listened_on(t):
    t.needs_weir_kv("the form of the ready lines")
    server = t.kv(tcp=True)
    t.expect_eq(sorted(server.ready_lines), [f"ready tcp:127.0.0.1:{server.port}", f"ready unix:{server.unix_path}"],
                "ready lines")
    t.expect(server.port > 0, "the port chosen for port 0 is printed")


# --- no descriptors left ------------------------------------------------------------------------------------------
def greeted(connection):
    """True if the server answers PING, False if it hangs up or says that it is full, None if it says nothing."""
    try:
        connection.send(resp.encode("PING"))
        return connection.reply() == b"+PONG\r\n"
    except (ConnectionResetError, BrokenPipeError):
        return False
    except kit.Failure as failure:
        return None if "no complete reply" in str(failure) else False


@kit.test(limit_s=120, unix_two_threads={"transport": "unix", "threads": 2, "poll": "epoll"},
          tcp_one_thread={"transport": "tcp", "threads": 1, "poll": "epoll"},
          unix_poll={"transport": "unix", "threads": 2, "poll": "poll"})
def running_out_of_descriptors_neither_spins_nor_stops_the_service(t, transport, threads, poll):
    server = t.kv(unix=transport == "unix", tcp=transport == "tcp", threads=threads, poll=poll, nofile=64)
    clients, served = [], []
    for _ in range(100):
        connection = server.connect(transport, limit_s=1 if len(served) < len(clients) else 5)
        clients.append(connection)
        if greeted(connection):
            served.append(connection)
        elif len(clients) - len(served) > 5:
            break  # full: the rest only has to be there, each second spent on its silence is lost
    clients += [server.connect(transport) for _ in range(100 - len(clients))]
    t.expect(20 <= len(served) <= 64, f"{len(served)} of 100 clients were served with 64 descriptors")
    ticks = procfs.cpu_ticks(server.pid)
    measured_s = 2
    watch_for(measured_s)
    spent = procfs.cpu_ticks(server.pid) - ticks
    t.expect_at_most(spent, measured_s * TICKS_PER_S // 10, f"CPU ticks in {measured_s} s while clients wait in vain")
    for connection in served:
        t.expect_eq(connection.raw("ECHO", "still"), b"$5\r\nstill\r\n", "a client served before, now")
    for connection in clients[:-1]:
        if connection not in served or connection in served[::2]:
            connection.close()
    fresh = t.eventually(lambda: connected_and_greeted(server, transport),
                         "a new client is served once others have left")
    fresh.close()
    t.note(f"{len(served)} served with 64 descriptors, {spent} CPU ticks in {measured_s} s")


def watch_for(seconds):
    """Lets a span of time pass in which the server is watched: the span is what is measured, nothing is waited for."""
    import time
    time.sleep(seconds)


def connected_and_greeted(server, transport):
    connection = server.connect(transport, limit_s=2)
    if greeted(connection):
        return connection, connection
    connection.close()
    return None, "not served"
