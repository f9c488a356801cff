#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run.py: tests a RESP server from outside, as its clients see it.

Job        Runs each registered test in a process and process group of its own, with a time limit and a private folder;
           prints progress, the values of a failure and the seed; last line `N passed, N failed, N skipped`.
Use        python3 tests/server/run.py --kv build/release/weir-kv --bench build/release/weir-bench
           [--redis-server redis-server] [--filter PART_OF_NAME] [--soak] [--list]
           --kv may also name a redis-server: then the tests check themselves. WEIR_TEST_SEED=n repeats a seed.
Invariants Nothing outlives a test: its process group is killed, by its id, before the id can be reused (the child is
           left unreaped until then), and its folder is removed.
"""

import argparse
import importlib
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import kit  # noqa: E402  (the folder has to be on the path first)
import procfs  # noqa: E402

MODULES = ("test_parity", "test_pipeline", "test_bad_input", "test_life", "test_maxmemory", "test_idle",
           "test_benchmark", "test_memory", "test_bench")
EXIT_FAILED = 1
EXIT_SKIPPED = 77


def run_in_child(test, options, directory, seed):
    """Body of the child process; returns its exit code."""
    context = kit.Context(options, directory, seed)
    code = 0
    try:
        try:
            test.function(context, **test.arguments)
            context.close(passed=True)
        except BaseException:
            context.close(passed=False)
            raise
    except kit.Skipped as skipped:
        print(f"@note {skipped}")
        code = EXIT_SKIPPED
    except kit.Failure as failure:
        line = traceback.extract_tb(failure.__traceback__)
        place = next((f for f in reversed(line) if os.path.basename(f.filename).startswith("test_")), line[-1])
        print(f"{os.path.basename(place.filename)}:{place.lineno}: {failure}\n{context.stories()}")
        code = EXIT_FAILED
    except BaseException:
        print(f"{traceback.format_exc()}\n{context.stories()}")
        code = EXIT_FAILED
    sys.stdout.flush()
    return code


def start_child(test, options, directory, seed):
    """Forks; the child's stdout and stderr come through the returned pipe."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.setpgid(0, 0)
        os.dup2(writer, 1)
        os.dup2(writer, 2)
        os.close(reader)
        os._exit(run_in_child(test, options, directory, seed))
    os.close(writer)
    try:
        os.setpgid(pid, pid)  # by whoever comes first, so that the group exists before it can be needed
    except (PermissionError, ProcessLookupError):
        pass
    os.set_blocking(reader, False)
    return pid, reader


def drain(reader, parts):
    while True:
        try:
            data = os.read(reader, 65536)
        except BlockingIOError:
            return True
        if not data:
            return False
        parts.append(data)


def run_one(test, options, seed):
    """Returns (exit code or None at the time limit, output)."""
    directory = tempfile.mkdtemp(prefix="weir-kv-test-")
    pid, reader = start_child(test, options, directory, seed)
    handle = os.pidfd_open(pid)
    parts, finished = [], False
    end = time.monotonic() + test.limit_s
    try:
        poller = select.poll()
        poller.register(handle, select.POLLIN)
        poller.register(reader, select.POLLIN)
        while not finished and time.monotonic() < end:
            ready = [fd for fd, _ in poller.poll(max(1, 1000 * (end - time.monotonic())))]
            if reader in ready and not drain(reader, parts):
                poller.unregister(reader)
            finished = handle in ready
    finally:
        os.killpg(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        drain(reader, parts)
        os.close(reader)
        os.close(handle)
        shutil.rmtree(directory, ignore_errors=True)
    output = b"".join(parts).decode("utf-8", "replace")
    return (os.waitstatus_to_exitcode(status) if finished else None), output


def report(test, code, output, elapsed_s, seed):
    verdicts = {0: "ok", EXIT_SKIPPED: "skipped", None: f"FAILED (time limit {test.limit_s} s)"}
    print(f"{verdicts.get(code, 'FAILED')}  {elapsed_s:.1f} s")
    for line in output.rstrip().splitlines():
        print(f"      {line[6:] if line.startswith('@note ') else line}")
    if code not in (0, EXIT_SKIPPED):
        print(f"      repeat: WEIR_TEST_SEED={seed} ... --filter {test.name}")
    sys.stdout.flush()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kv", help="the server under test: weir-kv, or a redis-server")
    parser.add_argument("--bench", help="weir-bench; its tests are skipped without it")
    parser.add_argument("--redis-server", default="redis-server", help="the reference server")
    parser.add_argument("--filter", default="", help="only tests whose name holds this text")
    parser.add_argument("--soak", action="store_true", help="the long form of every test")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    options = parser.parse_args()
    if not options.list and not options.kv:
        parser.error("--kv is needed")
    for name in ("kv", "bench"):
        path = getattr(options, name)
        if path and not options.list:
            found = shutil.which(path)
            if not found:
                parser.error(f"--{name}: no program {path}")
            setattr(options, name, os.path.abspath(found))
    return options


def main():
    options = parse_arguments()
    for module in MODULES:
        importlib.import_module(module)
    tests = [test for test in kit.TESTS if options.filter in test.name and (options.soak or not test.soak)]
    if options.list:
        print("\n".join(test.name for test in tests))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that the running test is ended, too
    procfs.raise_descriptor_limit()
    seed = int(os.environ.get("WEIR_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
    print(f"seed {seed}")
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    failed = []
    for number, test in enumerate(tests, 1):
        print(f"[{number:3}/{len(tests)}] {test.name} ... ", end="", flush=True)
        start = time.monotonic()
        code, output = run_one(test, options, seed)
        report(test, code, output, time.monotonic() - start, seed)
        kind = {0: "passed", EXIT_SKIPPED: "skipped"}.get(code, "failed")
        counts[kind] += 1
        if kind == "failed":
            failed.append(test.name)
    for name in failed:
        print(f"failed: {name}")
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return EXIT_FAILED if failed or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
