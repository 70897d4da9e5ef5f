"""Small rows: each workload on fresh rows, on rows overwritten ten times, over 16 tablets, and on
Google's emulator, each on a server of its own and in turn, so many runs of it."""

import sys

from client import Client, median, rows_per_cpu_second, rows_per_second
from page import at_least, milliseconds, number, spread, table
from servers import Server, emulator_command, trestle_command
from workloads import ADD, AGAIN, FRESH, LOAD, WRITES

VALUE_SIZE = 100
TABLETS = 16
OVERWRITTEN_SHARE, TABLETS_SHARE = 0.6, 0.85  # of the rate on fresh rows


class Stage:
    """What one fresh server goes through."""

    def __init__(self, name, command, workloads, share_of_time=1, overwrites=0, tablets=1):
        self.name = name
        self.command = command
        self.workloads = workloads
        self.share_of_time = share_of_time
        self.overwrites = overwrites
        self.tablets = tablets

    def run(self, options, cells):
        """{workload's name: what `trestle bench` says}"""
        with Server(self.command) as server:
            client = Client(
                server,
                rows=options.rows,
                cells=cells,
                value_size=VALUE_SIZE,
                duration=options.seconds * self.share_of_time,
            )
            results = {"load": client.run("load", tablets=self.tablets)}
            if self.overwrites:
                results["overwrite"] = client.run("overwrite", overwrites=self.overwrites)
            server.await_rest()
            for each in self.workloads:
                results[each.name] = client.run(each.command, **each.options)
            return results


def stages():
    serve = trestle_command()
    yield Stage("fresh", serve, FRESH[1:])
    yield Stage("overwritten", serve, AGAIN, share_of_time=0.5, overwrites=10)
    yield Stage("tablets", serve, AGAIN, share_of_time=0.5, tablets=TABLETS)
    emulator = emulator_command()
    if emulator:
        yield Stage("emulator", emulator, FRESH[1:], share_of_time=0.5)


class Collected:
    """All results of all runs."""

    def __init__(self, options):
        self.options = options
        self.results = {}

    def add(self, stage, cells, results):
        for workload, result in results.items():
            self.results.setdefault((stage, cells, workload), []).append(result)

    def of(self, stage, cells, workload):
        return self.results.get((stage, cells, workload), [])

    def rate(self, stage, cells, workload):
        """The median of rows per CPU second."""
        return median(self.of(stage, cells, workload), rows_per_cpu_second)

    def ratio(self, stage, other, cells, workload):
        """Of the rates in two stages: of those in the same run, then the median."""
        pairs = zip(self.of(stage, cells, workload), self.of(other, cells, workload), strict=True)
        rate = rows_per_cpu_second
        return median(pairs, lambda pair: rate(pair[0]) / rate(pair[1]))


def measure(options):
    collected = Collected(options)
    for run in range(options.runs):
        for cells in options.cells:
            for stage in stages():
                print(f"run {run + 1}, {cells} cells: {stage.name}", file=sys.stderr)
                collected.add(stage.name, cells, stage.run(options, cells))
    return collected


# --- goals ---


def goals(collected):
    for cells in collected.options.cells:
        for each in FRESH:
            demanded = each.goal(cells, lambda name, c=cells: collected.rate("fresh", c, name))
            if demanded is not None:
                what = f"{each.words}, {title(cells)}"
                yield at_least(what, demanded, collected.rate("fresh", cells, each.name))
        for stage, words, share in (
            ("overwritten", "overwritten", OVERWRITTEN_SHARE),
            ("tablets", f"{TABLETS} tablets", TABLETS_SHARE),
        ):
            for each in AGAIN:
                what = f"{each.words}, {title(cells)}, {words}: share of the fresh rate"
                yield at_least(what, share, collected.ratio(stage, "fresh", cells, each.name))


# --- the page ---


def title(cells):
    return f"{cells} cell{'s' * (cells != 1)}"


def section(collected, parts):
    yield "## Small rows"
    yield ""
    yield explanation(collected.options)
    yield ""
    for cells in collected.options.cells:
        yield f"### {title(cells)} of {VALUE_SIZE} bytes"
        yield ""
        yield from main_table(collected, cells, parts[cells])
        yield ""
        yield from shares_table(collected, cells)
        yield ""
    yield "### Disk and memory"
    yield ""
    yield from disk_table(collected)


def explanation(options):
    return (
        f"Tables of {options.rows:,} rows. Rates are rows per CPU second of the server (for calls "
        f"of one row, that is calls), medians of {options.runs} runs with the least and the most, "
        f"{options.seconds:g} s for each workload on fresh rows and half of it elsewhere, the "
        "servers in turn and new for each run; ratios are those of a run, and of them the median. "
        "*Limit* is what the parts of a request take by themselves ([below](#the-limit)). "
        "Latencies are those of 64 calls at once, and so include waiting for a processor."
    )


# Of the emulator, point reads of one cell per CPU second, on the machine of the goals: the page of
# 2026-11-21.
EMULATOR_WHERE_GOALS_WERE_SET = 34_917


def machine(collected):
    """How fast the processors were beside those of the goals, which are rates."""
    if collected.of("emulator", 1, "read"):
        yield ""
        yield (
            "Goals in rows per second were set on a machine where the emulator answered "
            f"{number(EMULATOR_WHERE_GOALS_WERE_SET)} point reads of one cell for each second of "
            f"its CPU. On this machine it answered {number(collected.rate('emulator', 1, 'read'))}."
        )


def headline(collected):
    """Rates on fresh rows, and how many times the emulator's they are."""
    cells = collected.options.cells
    has_emulator = bool(collected.of("emulator", cells[0], "read"))
    head = ["rows per CPU second"]
    for count in cells:
        head += [title(count), "× emulator"] if has_emulator else [title(count)]
    rows = []
    for each in FRESH:
        row = [each.words]
        for count in cells:
            row.append(number(collected.rate("fresh", count, each.name)))
            if has_emulator:
                row.append(f"{collected.ratio('fresh', 'emulator', count, each.name):.1f}")
        rows.append(row)
    yield from table(head, rows)


def main_table(collected, cells, parts):
    has_emulator = bool(collected.of("emulator", cells, "read"))
    peer = ["emulator", "ratio"] if has_emulator else []
    head = ["workload", "rows per CPU s", "least–most", "goal", *peer, "limit", "rows/s"]
    yield from table(
        [*head, "p50 ms", "p99 ms", "p99.9 ms"],
        (main_row(collected, cells, parts, each, has_emulator) for each in FRESH),
    )


def main_row(collected, cells, parts, each, has_emulator):
    results = collected.of("fresh", cells, each.name)
    goal = each.goal(cells, lambda name: collected.rate("fresh", cells, name))
    rate = collected.rate("fresh", cells, each.name)
    row = [each.words, number(rate), spread([rows_per_cpu_second(r) for r in results])]
    row += [number(goal) if goal else ""]
    if has_emulator:
        row += [number(collected.rate("emulator", cells, each.name))]
        row += [f"{collected.ratio('fresh', 'emulator', cells, each.name):.1f}"]
    row += [number(each.rows / each.least(parts) * 1e6), number(median(results, rows_per_second))]
    for percentile in ("p50_us", "p99_us", "p999_us"):
        row += [milliseconds(median(results, lambda r, p=percentile: r[p]))]
    return row


def shares_table(collected, cells):
    yield from table(
        [
            "the same",
            "fresh",
            "overwritten ten times",
            f"share (goal {OVERWRITTEN_SHARE})",
            f"{TABLETS} tablets",
            f"share (goal {TABLETS_SHARE})",
        ],
        (
            [
                each.words,
                number(collected.rate("fresh", cells, each.name)),
                number(collected.rate("overwritten", cells, each.name)),
                f"{collected.ratio('overwritten', 'fresh', cells, each.name):.2f}",
                number(collected.rate("tablets", cells, each.name)),
                f"{collected.ratio('tablets', 'fresh', cells, each.name):.2f}",
            ]
            for each in AGAIN
        ),
    )


# Workloads that write whole rows, and the stage that they are looked at in.
WRITTEN = [
    ("fresh", LOAD.name, "load"),
    ("overwritten", "overwrite", "each row overwritten ten times"),
    ("fresh", "write", "MutateRow of random rows"),
    ("fresh", "batch", "MutateRows of 100 random rows"),
]


def disk_table(collected):
    cells = collected.options.cells
    yield (
        "Bytes that the server wrote to the disk during a workload for each byte of values that it "
        "was given: log, flushed tables and compactions, in whole pages as the system counts."
    )
    yield ""
    yield from table(
        ["bytes written for each byte", *(title(count) for count in cells)],
        (
            [
                words,
                *(
                    number(median(collected.of(stage, count, name), written_per_byte(count)))
                    for count in cells
                ),
            ]
            for stage, name, words in WRITTEN
        ),
    )
    yield ""
    yield "Resident memory of the server at most, in MB, after all workloads of the stage."
    yield ""
    shown = [("fresh", "fresh"), ("overwritten", "overwritten ten times"), ("emulator", "emulator")]
    yield from table(
        ["peak memory, MB", *(title(count) for count in cells)],
        (
            [words, *(number(peak_mb(collected, stage, count)) for count in cells)]
            for stage, words in shown
            if collected.of(stage, cells[0], "read")
        ),
    )


def written_per_byte(cells):
    return lambda r: r["server_written_bytes"] / (r["rows"] * cells * VALUE_SIZE)


def peak_mb(collected, stage, cells):
    last = WRITES[-1] if stage == "overwritten" else ADD
    return median(collected.of(stage, cells, last.name), lambda r: r["server_peak_bytes"] / 1e6)
