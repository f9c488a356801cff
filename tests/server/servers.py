# SPDX-License-Identifier: MIT
"""servers.py: starts and ends a server, weir-kv or redis-server, behind one face.

Job        One adapter for each kind turns (unix, tcp, threads, maxmemory) into a command line and knows which lines on
           stdout say that the server listens. A binary whose name starts with `redis-server` gets Redis's adapter, so
           that every test that is not about weir-kv's own command line also runs against a real Redis.
Invariants `pid` is the server's own id, also below strace. `end` leaves no process behind.
Threads    One reader thread for each of stdout and stderr, so that no pipe fills up.
"""

import os
import queue
import resource
import signal
import socket
import subprocess
import threading
import time

import kit
import procfs
import resp

READY_WITHIN_S = 20
END_WITHIN_S = 20
SANITIZER_REPORTS = ("AddressSanitizer", "ThreadSanitizer", "LeakSanitizer", "runtime error:")


def is_redis(binary):
    return os.path.basename(binary).startswith("redis-server")


def free_port():
    """A port nobody listens on at this moment. weir-kv picks its own with port 0; Redis cannot."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def weir_command(binary, unix_path, tcp, threads, maxmemory, extra):
    command = [binary]
    if unix_path:
        command += ["--unix", unix_path]
    if tcp:
        command += ["--port", "0", "--bind", "127.0.0.1"]
    if threads:
        command += ["--threads", str(threads)]
    if maxmemory:
        command += ["--maxmemory", str(maxmemory)]
    return command + list(extra), int(bool(unix_path)) + int(tcp), "ready "


def redis_command(binary, directory, unix_path, port, maxmemory, extra):
    command = [binary, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir",
               directory,
               "--databases", "1", "--client-output-buffer-limit", "normal 64mb 0 0"]
    if unix_path:
        command += ["--unixsocket", unix_path]
    if maxmemory:
        command += ["--maxmemory", str(maxmemory), "--maxmemory-policy", "noeviction"]
    return command + list(extra), int(bool(unix_path)) + int(bool(port)), "eady to accept connections"


def environment(poll):
    result = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")}
    if poll:
        result["WEIR_POLL"] = poll
    return result


def start(binary, directory, unix=True, tcp=False, threads=None, maxmemory=None, poll=None, nofile=None, below=(),
          unix_path=None, extra=(), lines_wanted=None):
    """Starts a server and returns once it listens.

    below         words put before the command line (strace and its options)
    nofile        limit of open descriptors for the server
    extra         further options, in the server's own spelling; lines_wanted: how many ready lines that makes
    """
    path = unix_path or (os.path.join(directory, "kv.sock") if unix else None)
    port = 0
    if is_redis(binary):
        port = free_port() if tcp else 0
        command, lines, mark = redis_command(binary, directory, path, port, maxmemory, extra)
    else:
        command, lines, mark = weir_command(binary, path, tcp, threads, maxmemory, extra)
    server = Server(list(below) + command, directory, path, port, environment(poll), nofile, below=bool(below))
    try:
        server.wait_ready(lines_wanted or lines, mark)
    except BaseException:
        server.end(graceful=False)
        raise
    return server


class Server:
    def __init__(self, command, directory, unix_path, port, env, nofile, below):
        def limit_descriptors():
            if nofile:
                resource.setrlimit(resource.RLIMIT_NOFILE, (nofile, nofile))

        self.command = command
        self.unix_path = unix_path
        self.port = port
        self.ready_lines = []
        self.stopped_on_purpose = False
        self._lines = queue.Queue()
        self._stderr = []
        self._below = below
        self.process = subprocess.Popen(command, cwd=directory, env=env, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, preexec_fn=limit_descriptors)
        self.pid = self.process.pid
        self._readers = [threading.Thread(target=self._read_stdout, daemon=True),
                         threading.Thread(target=self._read_stderr, daemon=True)]
        for reader in self._readers:
            reader.start()

    def _read_stdout(self):
        for line in self.process.stdout:
            self._lines.put(line.decode("utf-8", "replace").rstrip("\n"))
        self._lines.put(None)

    def _read_stderr(self):
        for line in self.process.stderr:
            self._stderr.append(line.decode("utf-8", "replace").rstrip("\n"))

    def wait_ready(self, lines_wanted, mark):
        end = time.monotonic() + READY_WITHIN_S
        while len(self.ready_lines) < lines_wanted:
            try:
                line = self._lines.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                raise kit.Failure(f"{self.command[0]} not ready within {READY_WITHIN_S} s: {self.story()}") from None
            if line is None:
                code = self.process.wait()
                self._readers[1].join()
                raise kit.Failure(f"{' '.join(self.command)} ended with {code} before it was ready: {self.stderr()}")
            if mark in line:
                self.ready_lines.append(line)
                if line.startswith("ready tcp:"):
                    self.port = int(line.rsplit(":", 1)[1])
        if self._below:
            self.pid = procfs.children(self.process.pid)[0]

    def stderr(self):
        return "\n".join(self._stderr)

    def story(self):
        return f"stderr of {self.command[0]}:\n{self.stderr()[-3000:]}" if self._stderr else ""

    # --- connections --------------------------------------------------------------------------------------------
    def address(self, transport="unix"):
        if transport == "unix":
            return socket.AF_UNIX, self.unix_path
        return socket.AF_INET, ("127.0.0.1", self.port)

    def connect(self, transport="unix", **how):
        family, address = self.address(transport)
        return resp.Connection(family, address, **how)

    def cli_arguments(self, transport):
        return ["-s", self.unix_path] if transport == "unix" else ["-h", "127.0.0.1", "-p", str(self.port)]

    # --- the end ------------------------------------------------------------------------------------------------
    def alive(self):
        return self.process.poll() is None

    def signal(self, number):
        os.kill(self.pid, number)

    def wait(self, seconds=END_WITHIN_S):
        """Waits for the end by itself or by a signal already sent; returns the exit code (negative: the signal)."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise kit.Failure(f"{self.command[0]} has not ended within {seconds} s") from None
        self.stopped_on_purpose = True
        for reader in self._readers:
            reader.join()
        return code

    def terminate(self):
        self.signal(signal.SIGTERM)
        return self.wait()

    def end(self, graceful):
        """Ends the server if it still runs; returns what was wrong with its end, or None."""
        problem = None
        if not self.stopped_on_purpose:
            if not self.alive():
                problem = f"{self.command[0]} had ended by itself with {self.process.returncode}: {self.stderr()}"
            elif graceful:
                try:
                    code = self.terminate()
                    if code != 0:
                        problem = f"SIGTERM at the end of the test: exit code {code}: {self.stderr()}"
                except kit.Failure as failure:
                    problem = str(failure)
        if self.alive():
            if self.pid != self.process.pid:
                os.kill(self.pid, signal.SIGKILL)
            else:
                self.process.kill()
            self.process.wait()
        if any(report in self.stderr() for report in SANITIZER_REPORTS):
            problem = f"a sanitizer reported: {self.stderr()}"
        return problem
