# SPDX-License-Identifier: MIT
"""test_bench.py: weir-bench's command line and the shape of its JSON, with the redis suite against a running server."""

import json
import os
import subprocess

import kit

ROW_KEYS = ("suite", "id", "impl", "threads", "unit", "median", "min", "max", "runs")


def run_bench(t, *arguments, seconds=280):
    if not t.options.bench:
        raise kit.Skipped("no --bench was given")
    run = subprocess.run([t.options.bench, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, timeout=seconds, check=False, text=True)
    return run.returncode, run.stdout, run.stderr


def check_row(t, row):
    for key in ROW_KEYS:
        t.expect(key in row, f"{key} is missing in {row}")
    for key in ("suite", "id", "impl", "unit"):
        t.expect(isinstance(row[key], str) and row[key], f"{key} is no text in {row}")
    for key in ("threads", "runs"):
        t.expect(isinstance(row[key], int), f"{key} is no whole number in {row}")
    for key in ("median", "min", "max"):
        t.expect(isinstance(row[key], (int, float)) and not isinstance(row[key], bool), f"{key} is no number in {row}")
    t.expect(row["min"] <= row["median"] <= row["max"], f"min, median, max out of order in {row}")
    t.expect(row["min"] >= 0, f"negative in {row}")
    t.expect(row["runs"] >= 5, f"fewer than five runs in {row}")


@kit.test(limit_s=300)
def the_redis_suite_writes_the_documented_json(t):
    server = t.kv()
    path = os.path.join(t.directory, "rows.json")
    code, out, err = run_bench(t, "run", "redis", "--socket", server.unix_path, "--json", path)
    t.expect_eq(code, 0, f"exit code; stdout {out[-500:]!r}, stderr {err[-500:]!r}")
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    t.expect_eq(sorted(document), ["machine", "rows"], "top level of the JSON")
    t.expect(isinstance(document["machine"], dict) and document["machine"], f"machine is {document['machine']!r}")
    rows = document["rows"]
    t.expect(isinstance(rows, list) and rows, f"rows is {rows!r}")
    for row in rows:
        check_row(t, row)
        t.expect_eq(row["suite"], "redis", f"suite of {row}")
    names = [(row["id"], row["impl"], row["threads"], row["unit"]) for row in rows]
    t.expect_eq(len(set(names)), len(names), f"rows that differ in id, impl, threads or unit, of {names}")
    ids = " ".join(row["id"].lower() for row in rows)
    for word in ("ping", "set", "get", "incr", "lpush", "lrange"):
        t.expect(word in ids, f"no row about {word}: {ids}")
    t.expect("weir" in {row["impl"] for row in rows}, f"no row of weir itself: {names}")
    t.note(f"{len(rows)} rows")
    with server.connect() as connection:
        t.expect_eq(connection.raw("PING"), b"+PONG\r\n", "the server, afterwards")


@kit.test()
def bench_lists_its_suites(t):
    code, out, err = run_bench(t, "list", seconds=30)
    t.expect_eq((code, err), (0, ""), "exit code and stderr")
    for suite in ("heap", "messages", "redis"):
        t.expect(suite in out, f"{suite} is missing from {out!r}")


@kit.test()
def bench_names_a_socket_that_nobody_serves(t):
    path = os.path.join(t.directory, "nobody.sock")
    code, out, err = run_bench(t, "run", "redis", "--socket", path, seconds=30)
    t.expect(code > 0 and path in err, f"exit code {code}, stdout {out!r}, stderr {err!r}")


@kit.test()
def bench_refuses_an_unknown_suite(t):
    code, out, err = run_bench(t, "run", "nosuchsuite", seconds=30)
    t.expect(code > 0 and "nosuchsuite" in err, f"exit code {code}, stdout {out!r}, stderr {err!r}")
