#!/usr/bin/python3
"""What materialized views cost: a table's writers, and the processor behind them.

All figures are CPU seconds of one release server with its default settings, flushes and
compactions included; latencies and lags are the exception. --settings --write-buffer=16MB makes
flushes eight times as frequent.

Writes: a server has three tables, one without anything, one with a change stream, one with a view,
whose upkeep stands still meanwhile. `trestle bench` makes as many MutateRows on each, turn about; a
turn ends when the server is at rest. What all turns took is divided, since flushes fall into one
or another.
Then each table is written to at a steady pace, the view being kept up, for the latencies; how late
a thread wakes that does nothing but sleep tells what the machine does to all of it.

Upkeep: rows are changed while upkeep stands still, then it goes on; what it takes until the view
has all and the server is at rest is divided by the source rows that it looked at, or by the changes
where rows are changed ten times, and by what a MutateRow of the same minutes takes. Flushes fall
into one turn or another, so what all turns took counts.

Lag: as many MutateRows as the server takes are made for a while, then half as many a second. Rows
with values that nobody else writes are written beside, and looked for in the view, which has them
as keys: the time from the answer of the write to the answer of the read that has it.

Backfill: a table is read as a whole by one ReadRows, and then views of it are made: rows for each
CPU second, until the view is READY and the server at rest.

Storage: what files grow by when views of a table are made, beside what the metrics say of them.
"""

import argparse
import base64
import contextlib
import json
import os
import statistics
import sys
import threading
import time
import urllib.request

from client import Client, rows_per_cpu_second
from page import at_least, at_most, goals_met
from servers import Server, trestle_command
from stream_cost import Sleeper, percentile

INSTANCE = "projects/p/instances/i"
SMALL_BUFFER = ("--write-buffer", "4MB")
AWAIT_SECONDS = 1800
LOOK_SECONDS = 0.5
HOLD_SECONDS = 3  # the server looks each second whether views are held
# All groups differ, and 256 of them: values are random bytes.
BY_VALUE = "SELECT cf['c0'] AS v, COUNT(*) AS n FROM {} GROUP BY v"
BY_BYTE = "SELECT SUBSTR(cf['c0'], 1, 1) AS b, COUNT(*) AS n FROM {} GROUP BY b"
INDEX = "SELECT cf['c0'] AS v, _key AS k FROM {} ORDER BY v, k"
UPKEEP = [
    # what it is, queries, whether each row is changed ten times, the goal in MutateRows
    ("a view, all rows and groups differ", [BY_VALUE], False, 2.5),
    ("a view, rows changed ten times", [BY_VALUE], True, 0.5),
    ("a view of 256 groups", [BY_BYTE], False, 0.5),
    ("five views, all rows and groups differ", [BY_VALUE] * 5, False, 8),
    ("an index, all rows differ", [INDEX], False, None),
]
MARK_SECONDS = 0.02  # between two
LOOKED_FOR = 500  # marks at once
P99_RISE = 1.1
BACKFILL_SHARE = 0.3
LAG_SECONDS = 1
STORAGE_SHARE = 0.2


# --- a server with views ---


class ViewServer(Server):
    """Its views are not kept up while `held`. It is at rest when it took nothing in two looks of a
    second: on a machine that is full, a thread that has work gets more than nothing in one."""

    look_seconds = 1

    def __enter__(self):
        super().__enter__()
        self.number = 0
        return self

    def start(self, command):
        self.hold_file = self.data.parent / "hold"
        super().start([*command, "--debug-hold-views", str(self.hold_file)])

    @contextlib.contextmanager
    def held(self):
        self.hold_file.touch()
        time.sleep(HOLD_SECONDS)
        looked_at = self.rows_looked_at()
        try:
            yield
            if self.rows_looked_at() != looked_at:  # it looked later than that
                print("views were kept up amid writes: that run says nothing", file=sys.stderr)
        finally:
            self.hold_file.unlink()

    def ask(self, method, path, message=None):
        body = None if message is None else json.dumps(message).encode()
        request = urllib.request.Request(f"http://{self.endpoint}/v2/{path}", body, method=method)
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read())

    def create_view(self, query, table):
        """Its full name, when it is populated."""
        self.number += 1
        name = f"v{self.number}"
        operation = self.ask("POST", f"{INSTANCE}/materializedViews?materializedViewId={name}",
                             {"query": query.format(table)})  # fmt: skip
        until = time.monotonic() + AWAIT_SECONDS
        while not operation.get("done") and time.monotonic() < until:
            time.sleep(LOOK_SECONDS)
            operation = self.ask("GET", operation["name"])
        return operation["response"]["name"]

    def delete_view(self, name):
        self.ask("DELETE", name)
        self.await_rest(AWAIT_SECONDS)

    def settle(self):
        """Until views have all, and the server is at rest."""
        until = time.monotonic() + AWAIT_SECONDS
        self.await_rest(AWAIT_SECONDS)
        while self.metric("views_lag_seconds") > 0 and time.monotonic() < until:
            self.await_rest(AWAIT_SECONDS)

    def rows_looked_at(self):
        metrics = self.metrics().items()
        return sum(value for name, value in metrics if name.startswith("view_changes_total"))


def server_of(options):
    return ViewServer(trestle_command(*options.settings))


def table_of(server, name, options, **own):
    client = Client(server, table=f"{INSTANCE}/tables/{name}", **{"rows": options.rows, **own})
    client.run("load")
    return client


def new_seed(options):
    """With that of the run before a row would get the value that it has."""
    options.seed += 1
    return options.seed


def written(client, options):
    """Microseconds of CPU a MutateRow, with no view being kept up."""
    server = client.server
    before = server.cpu_seconds()
    client.run("write", operations=options.changes, duration=AWAIT_SECONDS, seed=new_seed(options))
    server.await_rest(AWAIT_SECONDS)
    return 1e6 * (server.cpu_seconds() - before) / options.changes


def in_turn(things, run):
    """The same in another order for each run."""
    at = run % len(things)
    return things[at:] + things[:at]


def median_ratio(pairs):
    return statistics.median(one / other for one, other in pairs)


# --- the write itself ---


def three_tables(server, options):
    """{what is with it: the client of a table}"""
    clients = {
        "nothing": table_of(server, "plain", options),
        "a change stream": table_of(server, "streamed", options, stream=True),
        "a view": table_of(server, "viewed", options),
    }
    server.create_view(BY_VALUE, "viewed")
    server.settle()
    return clients


def mean_of(runs, what):
    return statistics.mean(cpu[what] for cpu in runs)


def ratio_of(runs, what):
    return mean_of(runs, what) / mean_of(runs, "nothing")


def measure_cpu(server, clients, options):
    runs = []
    for run in range(options.runs + 1):  # of which the first is for warming up
        cpu = {}
        for what in in_turn(list(clients), run):
            with server.held():
                cpu[what] = written(clients[what], options)
            server.settle()
        runs.append(cpu)
    print("| MutateRow on a table with | us of CPU | ratio | least–most |")
    print("|---|---:|---:|---:|")
    for what in clients:
        ratios = [cpu[what] / cpu["nothing"] for cpu in runs[1:]]
        print(f"| {what} | {mean_of(runs[1:], what):.1f} | {ratio_of(runs[1:], what):.2f} "
              f"| {min(ratios):.2f}–{max(ratios):.2f} |")  # fmt: skip
    streamed, viewed = ratio_of(runs[1:], "a change stream"), ratio_of(runs[1:], "a view")
    yield at_most("CPU of a MutateRow with a view, beside none: no more than with a stream",
                  streamed, viewed, " ×")  # fmt: skip


def paced(client, options):
    """(p50, p99 of a load at a steady pace, p99 of a sleeper beside it), ms."""
    sleeper = Sleeper()
    sleeper.start()
    seed = new_seed(options)
    result = client.run("write", rate=options.rate, duration=options.seconds, seed=seed)
    sleeper.is_over.set()
    sleeper.join()
    late = 1000 * percentile(sleeper.late, 0.99)
    return result["p50_us"] / 1000, result["p99_us"] / 1000, late


def measure_latency(server, clients, options):
    print(f"\n{options.rate} MutateRows a second, ms: p50, p99 (p99 of how late a sleeper is)\n")
    print(f"| run | {' | '.join(clients)} |")
    print("|---|" + "---:|" * len(clients))
    runs = []
    for run in range(options.runs):
        found = {}
        for what in in_turn(list(clients), run):
            found[what] = paced(clients[what], options)
            server.settle()
        cells = ("{:.2f}, {:.2f} ({:.2f})".format(*found[what]) for what in clients)
        print(f"| {run + 1} | {' | '.join(cells)} |", flush=True)
        runs.append((found["a view"][1], found["nothing"][1]))
    yield at_most("p99 of MutateRow with a view, beside none", P99_RISE, median_ratio(runs), " ×")


def measure_writes(options):
    with server_of(options) as server:
        clients = three_tables(server, options)
        yield from measure_cpu(server, clients, options)
        yield from measure_latency(server, clients, options)


# --- upkeep ---


def upkeep_of(plain, viewed, is_by_change, options):
    """Microseconds of CPU (a MutateRow, upkeep of a changed row)."""
    server = viewed.server
    own_us = written(plain, options)
    with server.held():
        written(viewed, options)
        looked_at, before = server.rows_looked_at(), server.cpu_seconds()
    server.settle()
    seconds = server.cpu_seconds() - before
    rows = (server.rows_looked_at() - looked_at) / server.metric("views")
    return own_us, 1e6 * seconds / (options.changes if is_by_change else rows)


def measure_kind(kind, options):
    what, queries, is_by_change, goal = kind
    rows = options.changes // 10 if is_by_change else options.rows
    with server_of(options) as server:
        plain = table_of(server, "plain", options, rows=rows)
        viewed = table_of(server, "viewed", options, rows=rows)
        for query in queries:
            server.create_view(query, "viewed")
        server.settle()
        runs = [upkeep_of(plain, viewed, is_by_change, options) for _ in range(options.runs + 1)]
    runs = runs[1:]
    own_us, upkeep_us = (statistics.mean(side) for side in zip(*runs, strict=True))
    ratios = [upkeep / own for own, upkeep in runs]
    print(f"| {what} | {own_us:.1f} | {upkeep_us:.1f} | {upkeep_us / own_us:.2f} "
          f"| {min(ratios):.2f}–{max(ratios):.2f} |", flush=True)  # fmt: skip
    if goal is not None:
        yield at_most(f"upkeep: {what}", goal, upkeep_us / own_us, " × a MutateRow")


def measure_upkeep(options):
    print("\n| upkeep of a changed row | us of a MutateRow | us of upkeep | ratio "
          "| least–most |")  # fmt: skip
    print("|---|---:|---:|---:|---:|")
    for kind in UPKEEP:
        yield from measure_kind(kind, options)


# --- lag ---


def coded(text):
    return base64.b64encode(text.encode()).decode()


class Marks:
    """Rows whose values nobody else writes: when they were acknowledged, when the view had them."""

    def __init__(self, server, view, number):
        self.server, self.view, self.prefix = server, view, f"mark{number:03}"
        self.written, self.seen = {}, {}
        self.is_over = threading.Event()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def write(self):
        value = f"{self.prefix}{len(self.written):06}"
        cell = {"familyName": "cf", "columnQualifier": coded("c0"), "timestampMicros": "1000",
                "value": coded(value)}  # fmt: skip
        self.server.ask("POST", f"{INSTANCE}/tables/viewed:mutateRow",
                        {"rowKey": coded(value), "mutations": [{"setCell": cell}]})  # fmt: skip
        self.written[coded(value)] = time.monotonic()

    def waited_for(self):
        return [key for key in list(self.written) if key not in self.seen][:LOOKED_FOR]

    def read(self):
        while (waited_for := self.waited_for()) or not self.is_over.is_set():
            if waited_for:
                self.look_for(waited_for)
            time.sleep(0.002)

    def look_for(self, keys):
        message = {"rows": {"rowKeys": keys}}
        answers = self.server.ask("POST", f"{self.view}:readRows", message)
        at = time.monotonic()
        for answer in answers:
            for chunk in answer.get("chunks", []):
                if "rowKey" in chunk:
                    self.seen[chunk["rowKey"]] = at

    def lags(self):
        """Seconds; waits until the view has all."""
        self.is_over.set()
        self.reader.join()
        return [self.seen[key] - at for key, at in self.written.items()]


def one_lag(server, view, client, number, options):
    full = client.run("write", duration=options.seconds, seed=new_seed(options))
    server.settle()
    rate = int(full["requests"] / full["seconds"] / 2)
    seed = new_seed(options)
    running = client.start("write", rate=rate, duration=options.seconds, seed=seed)
    time.sleep(min(1, options.seconds / 4))
    marks = Marks(server, view, number)
    while running.process.poll() is None:
        marks.write()
        time.sleep(MARK_SECONDS)
    done = running.result()
    lags = marks.lags()
    server.settle()
    return rate, done["requests"] / done["seconds"], percentile(lags, 0.5), percentile(lags, 0.99)


def measure_lag(options):
    print("\n| run | MutateRows/s at half load | done/s | lag: p50, s | p99, s |")
    print("|---|---:|---:|---:|---:|")
    found = []
    with server_of(options) as server:
        client = table_of(server, "viewed", options)
        view = server.create_view(BY_VALUE, "viewed")
        server.settle()
        for run in range(options.runs):
            found.append(one_lag(server, view, client, run, options))
            print("| {} | {:,.0f} | {:,.0f} | {:.2f} | {:.2f} |".format(run + 1, *found[-1]),
                  flush=True)  # fmt: skip
    p99 = statistics.median(each[3] for each in found)
    yield at_most("lag of a view at half load, p99", LAG_SECONDS, p99, " s")


# --- backfill ---


def scan_rate(client, options):
    """Rows for each CPU second of one ReadRows over all of the table."""
    scan = {"connections": 1, "streams": 1, "operations": 1, "duration": AWAIT_SECONDS}
    results = [client.run("scan", scan_rows=options.backfill_rows, **scan) for _ in range(3)]
    return statistics.median(map(rows_per_cpu_second, results))


def backfill_rate(server, query, options):
    before = server.cpu_seconds()
    view = server.create_view(query, "source")
    server.settle()
    seconds = server.cpu_seconds() - before
    server.delete_view(view)
    return options.backfill_rows / seconds


def measure_backfill(options):
    rows = options.backfill_rows
    print(f"\n{rows:,} rows of 10 cells\n")
    print("| read as a whole by | rows per CPU second | share of the scan's |")
    print("|---|---:|---:|")
    with ViewServer(trestle_command(*options.settings)) as server:
        client = table_of(server, "source", options, rows=rows, cells=10)
        server.await_rest(AWAIT_SECONDS)
        scanned = scan_rate(client, options)
        print(f"| ReadRows | {scanned:,.0f} | |", flush=True)
        for what, query in (("a view of 256 groups", BY_BYTE), ("an index", INDEX),
                            ("a view, all groups differ", BY_VALUE)):  # fmt: skip
            rate = backfill_rate(server, query, options)
            print(f"| {what} | {rate:,.0f} | {rate / scanned:.2f} |", flush=True)
            yield at_least(f"backfill of {what}, share of a scan's rate", BACKFILL_SHARE,
                           rate / scanned)  # fmt: skip


# --- storage ---


def in_files(server):
    """Bytes of all files of rows. Write buffers are so small that they have next to nothing."""
    server.settle()
    return sum(path.stat().st_size for path in server.data.rglob("*.sst"))


def measure_storage(options):
    print("\n| view | MB of files | MB its metrics tell: rows | and beside them "
          "| of what it reads |")  # fmt: skip
    print("|---|---:|---:|---:|---:|")
    with ViewServer(trestle_command(*SMALL_BUFFER, *options.settings)) as server:
        table_of(server, "source", options, rows=options.storage_rows)
        before = source = in_files(server)
        for what, query in (("all groups differ", BY_VALUE), ("256 groups", BY_BYTE),
                            ("an index", INDEX)):  # fmt: skip
            name = server.create_view(query, "source")
            grown = in_files(server) - before
            told = [server.metric(f'{metric}{{view="{name}"}}')
                    for metric in ("view_bytes", "view_intermediate_bytes")]  # fmt: skip
            print(f"| {what} | {grown / 1e6:.1f} | {told[0] / 1e6:.1f} | {told[1] / 1e6:.1f} "
                  f"| {grown / source:.2f} |", flush=True)  # fmt: skip
            yield at_most(f"storage of a view, {what}: what metrics tell is so far off",
                          STORAGE_SHARE, abs(sum(told) / grown - 1))  # fmt: skip
            before += grown


# --- all ---

PARTS = {"writes": measure_writes, "upkeep": measure_upkeep, "lag": measure_lag,
         "backfill": measure_backfill, "storage": measure_storage}  # fmt: skip


def print_goals(goals):
    print("\n| | goal | measured | |")
    print("|---|---:|---:|---|")
    for goal in goals:
        print(f"| {goal.what} | {goal.demanded} | {goal.measured} "
              f"| {'met' if goal.is_met else 'not met'} |")  # fmt: skip
    print()
    print(next(goals_met(goals, issue=24)))


def main():
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("./dev bench views", description=__doc__, formatter_class=form)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="what; all")
    parser.add_argument("--runs", type=int, default=5, help="of each turn")
    parser.add_argument("--rows", type=int, default=100_000, help="of tables that are written to")
    parser.add_argument("--changes", type=int, default=100_000, help="of rows, a turn")
    parser.add_argument("--rate", type=int, default=5_000, help="writes a second, for latencies")
    parser.add_argument("--seconds", type=float, default=10, help="of each load")
    parser.add_argument("--backfill-rows", type=int, default=1_000_000, help="1,000,000 at most")
    parser.add_argument("--storage-rows", type=int, default=200_000)
    parser.add_argument("--short", action="store_true", help="of all so little that it says little")
    parser.add_argument("--settings", nargs="*", default=[], help="of the server, beside")
    options = parser.parse_args()
    options.seed = 1
    if options.short:
        options.runs, options.rows, options.changes = 1, 2_000, 1_000
        options.rate, options.seconds = 500, 1
        options.backfill_rows, options.storage_rows = 2_000, 60_000
    print(f"load when it began: {os.getloadavg()[0]:.1f}\n")
    goals = []
    for part in options.parts or PARTS:
        goals += PARTS[part](options)
        sys.stdout.flush()
    print_goals(goals)


if __name__ == "__main__":
    main()
