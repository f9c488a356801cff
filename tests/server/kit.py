# SPDX-License-Identifier: MIT
"""kit.py: what a server test is given, and how it says that something is wrong.

Job        Registers tests (`@test`), and hands each one a `Context`: a private folder, servers, connections, a seeded
           generator, expectations that print their values.
Invariants A test is named by the property it shows. A server that a test starts is ended by the context, and has to end
           with exit code 0 and without a sanitizer's report, also in tests about something else.
Processes  Each test runs in a child process and a process group of its own (run.py); nothing here is shared.
Waiting    For a readiness line, a reply, an end of file or a process exit. `eventually` polls, for states of another
           process that the kernel shows in /proc only and announces to nobody; it always has a deadline.
"""

import os
import random
import re
import shutil
import time

TESTS = []


class Failure(Exception):
    """The property does not hold."""


class Skipped(Exception):
    """The machine lacks what the test needs, or the server under test is not weir-kv."""


class Test:
    def __init__(self, function, name, limit_s, soak, arguments):
        self.function = function
        self.name = name
        self.limit_s = limit_s
        self.soak = soak
        self.arguments = arguments


def test(limit_s=60, soak=False, name=None, **variants):
    """Registers a test. `variants`: suffix -> keyword arguments, one registered test for each."""
    def register(function):
        base = name or function.__name__
        if variants:
            for suffix, arguments in variants.items():
                TESTS.append(Test(function, f"{base}.{suffix}", limit_s, soak, arguments))
        else:
            TESTS.append(Test(function, base, limit_s, soak, {}))
        return function
    return register


def shown(value, most=300):
    """A value as a failure prints it: cut in the middle when it is long."""
    text = repr(bytes(value) if isinstance(value, bytearray) else value)
    if len(text) <= most:
        return text
    return f"{text[:most // 2]} ...({len(text)} characters)... {text[-most // 2:]}"


class Context:
    def __init__(self, options, directory, seed):
        self.options = options
        self.directory = directory
        self.seed = seed
        self.random = random.Random(seed)
        self.soak = options.soak
        with open(options.kv, "rb") as program:
            self.sanitized = re.search(rb"__[at]san_init", program.read()) is not None
        self._servers = []
        self._cleanups = []
        self._folders = 0

    # --- servers ------------------------------------------------------------------------------------------------
    def folder(self):
        self._folders += 1
        path = os.path.join(self.directory, str(self._folders))
        os.mkdir(path)
        return path

    def kv(self, **how):
        """Starts the server under test and waits until it listens."""
        import servers
        return self._started(servers.start(self.options.kv, self.folder(), **how))

    def redis(self, **how):
        """Starts the reference server, with the same options as `kv`."""
        import servers
        binary = self.needs_tool(self.options.redis_server)
        for weir_only in ("threads", "poll"):
            how.pop(weir_only, None)
        return self._started(servers.start(binary, self.folder(), **how))

    def _started(self, server):
        self._servers.append(server)
        return server

    def needs_tool(self, tool):
        path = shutil.which(tool)
        if path is None:
            raise Skipped(f"{tool} is not installed")
        return path

    def needs_weir_kv(self, why):
        import servers
        if servers.is_redis(self.options.kv):
            raise Skipped(f"{why} is weir-kv's own; the server under test is a redis-server")

    def needs_plain_build(self, what):
        if self.sanitized:
            raise Skipped(f"{what} of a build with a sanitizer says nothing")

    def at_end(self, function):
        self._cleanups.append(function)

    def close(self, passed):
        """Ends what the test left running. Only a test that passed so far can fail by how its servers end."""
        for function in reversed(self._cleanups):
            function()
        problems = []
        for server in self._servers:
            problem = server.end(graceful=passed)
            if problem:
                problems.append(problem)
        if passed and problems:
            raise Failure("; ".join(problems))

    def stories(self):
        return "\n".join(text for text in (server.story() for server in self._servers) if text)

    # --- expectations -------------------------------------------------------------------------------------------
    def note(self, text):
        """A figure or fact printed below the test's line, also when it passes."""
        print(f"@note {text}", flush=True)

    def fail(self, text):
        raise Failure(text)

    def expect(self, condition, text):
        if not condition:
            raise Failure(text)

    def expect_eq(self, got, wanted, what):
        if got != wanted:
            where = ""
            if isinstance(got, (bytes, bytearray)) and isinstance(wanted, (bytes, bytearray)):
                at = next((i for i, (a, b) in enumerate(zip(got, wanted)) if a != b), min(len(got), len(wanted)))
                where = (f"\n    lengths {len(got)} and {len(wanted)}, first difference at byte {at}: "
                         f"{shown(bytes(got[max(0, at - 40):at + 60]))} instead of "
                         f"{shown(bytes(wanted[max(0, at - 40):at + 60]))}")
            raise Failure(f"{what}\n    got    {shown(got)}\n    wanted {shown(wanted)}{where}")

    def expect_at_most(self, got, limit, what):
        if got > limit:
            raise Failure(f"{what}: {got} is more than {limit}")

    def eventually(self, condition, what, deadline_s=10.0):
        """Polls `condition`, which returns (holds, value to print)."""
        end = time.monotonic() + deadline_s
        while True:
            holds, value = condition()
            if holds:
                return value
            if time.monotonic() > end:
                raise Failure(f"not within {deadline_s:g} s: {what}; last value {shown(value)}")
            time.sleep(0.01)
