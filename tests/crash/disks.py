#!/usr/bin/env python3
"""Disks that are short of space, full, read-only, or fail now and then: who says what, each second?
`./dev crash disks`.

A server runs through a day of bad disks: less than the reserve is free; nothing is; nothing is free
where its backups go; reads, writes and syncs fail at random; the disk has become read-only, also
for a start. The disks are made so by a library that the server is loaded with (disk/disk.c), which
takes no rights of a root's. Each second of it is recorded: whether a write is taken, /readyz,
/metrics, `trestle status`, and what the log has said so far. Then

- all of them say the same at each second, and of a write the same as the write itself; seconds in
  which the state changed while it was looked at are left out;
- in each part the server comes to the state that it should come to, and leaves it when the disk is
  sound again, by itself or by a restart;
- what was acknowledged is there at the end;
- the expressions of the alerts, evaluated by Prometheus's promtool over the recorded series, are
  true at those seconds at which the write was refused, or the reason was told; and the alerts
  fire, with a minute for each second, so that their waiting is over.

With --record FILE the seconds are written there, a JSON object a line.
"""

import argparse
import contextlib
import json
import os
import re
import struct
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests")]

import grpc  # noqa: E402
from harness import promtool  # noqa: E402
from harness.patience import PATIENCE_SECONDS  # noqa: E402
from harness.rpc import Rpc, set_cell  # noqa: E402
from harness.server import Server, binary, run_trestle  # noqa: E402

LIBRARY = Path(binary()).resolve().parent / "tests/crash/disk/libdisk.so"
KINDS = ["sound", "low", "full", "read_only", "failing"]  # of disk.c, in its order
MB = 1 << 20
RESERVE, LEFT = "512MB", 100 * MB
PERMILLE = 400  # of what is done on a disk that fails at random
TABLE = "projects/p/instances/i/tables/t"


class Failure(Exception):
    pass


class Disks:
    """The disk of the data and that of the backups, for the library."""

    def __init__(self, directory):
        self.roots = [directory / "data", directory / "backups"]
        self.file = directory / "disks"
        self.file.write_bytes(bytes(16 * len(self.roots)))
        self.present = ["sound", "sound"]

    def environment(self):
        return {
            "LD_PRELOAD": str(LIBRARY),
            "DISK_ROOTS": ":".join(map(str, self.roots)),
            "DISK_STATE": str(self.file),
        }

    def make(self, disk, kind, number=0):
        """In place: the server looks at it all the time. The kind needs the number, so that is
        written first."""
        with open(self.file, "r+b", buffering=0) as file:
            for at, value in ((8, number), (0, KINDS.index(kind))):
                file.seek(16 * disk + at)
                file.write(struct.pack("=q", value))
        self.present[disk] = kind


class Second:
    """What everybody said at one."""

    def __init__(self, part):
        self.part = part
        self.writes = []  # whether one was taken, at first and at last
        self.ready = []  # the same: (HTTP status, level, reasons)
        self.metrics = None  # {series: value}
        self.status = None  # (exit status, level, reasons)
        self.log = None  # the reasons that have come, and not gone

    @property
    def is_up(self):
        return self.metrics is not None

    def is_stable(self):
        """Nothing changed while it was looked at."""
        return self.is_up and self.writes[0] == self.writes[1] and self.ready[0] == self.ready[1]

    def reasons_of_metrics(self):
        return {
            name[1]
            for series, value in self.metrics.items()
            if (name := re.fullmatch(r'trestle_health\{reason="(\w+)"\}', series)) and value == 1
        }

    def as_dict(self):
        return {
            "part": self.part,
            "writes": self.writes,
            "ready": self.ready,
            "status": self.status,
            "log": self.log,
            "metrics": self.metrics,
        }

    def __str__(self):
        told = {name: value for name, value in self.as_dict().items() if name != "metrics"}
        return json.dumps(told | {"metrics": sorted(self.reasons_of_metrics())}, default=sorted)


class Run:
    def __init__(self, options, directory):
        self.options, self.directory = options, directory
        self.disks = Disks(directory)
        self.server = Server(directory, env=self.disks.environment())
        self.rpc, self.seconds, self.taken = None, [], {}
        self.next_write, self.log_from = 0, 0

    # --- the server ---

    def start(self, *arguments, reserve=RESERVE):
        self.server.arguments = ["--disk-reserve", reserve, "--write-buffer", "8MB", "--cache",
                                 "8MB", *arguments]  # fmt: skip
        self.log_from = len(self.server.stderr())
        self.server.start()
        self.rpc = Rpc(self.server.host)

    def stop(self):
        """By a kill: what a sick disk makes of an orderly stop is another matter."""
        if self.server.process is not None:
            self.rpc.close()
            self.server.kill()

    def write(self):
        self.next_write += 1
        key, value = b"%06d" % self.next_write, os.urandom(20_000)
        try:
            self.rpc.mutate(TABLE, key, set_cell("f", b"q", value))
        except grpc.RpcError as error:
            codes = (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE)
            if error.code() not in codes:
                raise Failure(f"a write ends with {error.code()}: {error.details()}") from error
            return False
        self.taken[key] = value
        return True

    def fill(self):
        """Writes until one is refused: there is room in the log for some megabytes. Of one size:
        else it would be full for some and not for others, and the log tell of that now and then."""
        if not any(not self.write() for _ in range(1000)):
            raise Failure("a full disk takes 20 MB")

    # --- looking ---

    def ready(self):
        status, body = self.server.get("/readyz")
        level, *reasons = body.splitlines()
        return status, level, {line.split(": ")[0] for line in reasons}

    def metrics(self):
        page = self.server.get("/metrics")[1]
        series = re.findall(r"^(\w+(?:\{.*\})?) (\S+)$", page, re.MULTILINE)
        return {name: float(value) for name, value in series if "_bucket{" not in name}

    def status(self):
        done = run_trestle("status", "--endpoint", self.server.host, "--interval", "100ms",
                           "--format", "json")  # fmt: skip
        if not done.stdout:
            raise Failure(f"trestle status: {done.stderr}")
        health = json.loads(done.stdout)["health"]
        return done.returncode, health["level"], {each["name"] for each in health["reasons"]}

    def log_reasons(self):
        """Those that have come and not gone, by the lines since the start."""
        there = set()
        text = self.server.stderr()[self.log_from :]
        for message, reason in re.findall(
            r'msg="?(takes no writes|degraded|no longer so)"? reason=(\w+)', text
        ):
            (there.discard if message == "no longer so" else there.add)(reason)
        return there

    def look(self, part):
        second = Second(part)
        if self.server.process is None:
            self.seconds.append(second)
            return second
        second.writes.append(self.write())
        second.ready.append(self.ready())
        second.metrics = self.metrics()
        second.status = self.status()
        second.log = self.log_reasons()
        second.ready.append(self.ready())
        second.writes.append(self.write())
        self.seconds.append(second)
        check(second)
        return second

    def watch(self, part, is_reached, seconds=None):
        """Until that is so of a second in which nothing changed, and for some seconds more."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        left = seconds or self.options.seconds
        while left > 0:
            began = time.monotonic()
            second = self.look(part)
            if not second.is_up or (second.is_stable() and is_reached(second)):
                left -= 1
            elif left < (seconds or self.options.seconds) and second.is_stable():
                raise Failure(f"{part}: no longer what it was: {second}")
            elif time.monotonic() > deadline:
                raise Failure(f"{part}: not reached: {second}")
            time.sleep(max(0, 1 - (time.monotonic() - began)))
        print(f"{part}: {self.seconds[-1].log or 'well'}", flush=True)

    # --- the day ---

    def run(self):
        for disk in self.disks.roots:
            disk.mkdir()
        self.start()
        self.rpc.create_table("t")
        self.watch("well", is_well)
        self.little_space()
        self.no_space()
        self.no_space_for_backups()
        self.errors()
        self.read_only()
        self.compare()

    def little_space(self):
        self.disks.make(0, "low", LEFT)
        self.watch("less than the reserve", says("no_writes", "disk_reserve"))
        self.disks.make(0, "sound")
        self.watch("enough again", is_well)

    def no_space(self):
        """Without a reserve, so that the store finds out."""
        self.stop()
        self.start(reserve="0")
        self.watch("without a reserve", is_well, 1)
        self.disks.make(0, "full")
        self.fill()
        self.watch("nothing is free", says("no_writes", "disk_full"))
        self.disks.make(0, "sound")
        self.watch("space again", is_well)

    def no_space_for_backups(self):
        self.stop()
        self.disks.make(1, "full")
        place = self.disks.roots[1]
        self.start("--backup-places", place, "--backup-schedule", "2s", "--backup-keep", "2")
        self.watch("no space for backups", says("degraded", "whole_backup_overdue"))
        self.disks.make(1, "sound")
        self.watch("space for backups", is_well)

    def errors(self):
        self.stop()
        self.start()
        self.disks.make(0, "failing", PERMILLE)
        self.watch("errors at random", says("no_writes", "fenced"))
        self.disks.make(0, "sound")
        self.watch("fenced until a restart", says("no_writes", "fenced"), 1)
        self.stop()
        self.start()
        self.watch("started anew", is_well)

    def read_only(self):
        self.disks.make(0, "read_only")
        self.watch("read-only", says("no_writes", "fenced"))
        self.stop()
        with contextlib.suppress(RuntimeError):
            self.start()
            raise Failure("a server starts on a disk that is read-only")
        self.watch("down", None)
        said = self.server.stderr()[self.log_from :]
        if not re.search(r'level=error msg="cannot serve" .*Read-only file system', said):
            raise Failure(f"a start on a disk that is read-only says: {said}")
        self.disks.make(0, "sound")
        self.start()
        self.watch("writable again", is_well)

    def compare(self):
        rows = {key: cells[0].value for key, cells in self.rpc.read(TABLE)}
        lost = [key for key, value in self.taken.items() if rows.get(key) != value]
        if lost:
            raise Failure(f"acknowledged and not there: {lost}")
        print(f"{len(self.taken)} writes were taken, and are there")


def is_well(second):
    return second.ready[0][1] == "ok"


def says(level, reason):
    return lambda second: second.ready[0][1] == level and reason in second.ready[0][2]


def check(second):
    """All say the same of it."""
    if not second.is_stable():
        return
    takes, (http, level, reasons) = second.writes[0], second.ready[0]
    code, status_level, status_reasons = second.status
    metrics = second.metrics
    levels = ("ok", "degraded", "no_writes")
    agree = {
        "readyz": (http == 200) == takes == (level != "no_writes"),
        "trestle_store_healthy": (metrics["trestle_store_healthy"] == 1) == takes,
        "trestle_health_level": levels[int(metrics["trestle_health_level"])] == level,
        "trestle_health": second.reasons_of_metrics() == reasons,
        "status": (code == 0) == takes and (status_level, status_reasons) == (level, reasons),
        "the log": second.log == reasons,
    }
    if not all(agree.values()):
        wrong = [name for name, is_so in agree.items() if not is_so]
        raise Failure(f"{', '.join(wrong)} say something else: {second}")


# --- the alerts ---


class Alerts:
    """Their expressions, over the recorded seconds."""

    def __init__(self, run):
        self.seconds, self.directory = run.seconds, run.directory

    def series(self):
        """Of what the alerts ask for; after a stop they are stale, as a scrape makes them."""
        asked = " ".join(alert["expr"] for alert in promtool.alerts().values())
        names = {name for second in self.seconds if second.is_up for name in second.metrics
                 if name.partition("{")[0] in asked}  # fmt: skip
        told = [{"series": labelled(name), "values": self.values(name)} for name in sorted(names)]
        up = " ".join("1" if second.is_up else "0" for second in self.seconds)
        return [*told, {"series": labelled("up"), "values": up}]

    def values(self, name):
        told, was_there = [], False
        for second in self.seconds:
            is_there = second.is_up and name in second.metrics
            missing = "stale" if was_there else "_"
            told.append(f"{second.metrics[name]:.0f}" if is_there else missing)
            was_there = is_there
        return " ".join(told)

    def wanted(self, second):
        """{alert: whether its expression is true}, by what else was seen of that second."""
        if not second.is_up:
            return {"TrestleDown": True, "TrestleTakesNoWrites": False}
        if not second.is_stable():
            return {"TrestleDown": False}
        reasons = second.ready[0][2]
        by_reason = {
            name: reason[1] in reasons
            for name, alert in promtool.alerts().items()
            if (reason := re.fullmatch(r'trestle_health\{reason="(\w+)"\} == 1', alert["expr"]))
        }
        # The disk is asked ten times a second: how much was free may be told a second too late.
        is_late = self.seconds[self.seconds.index(second) - 1].part != second.part
        low = second.part in ("less than the reserve", "nothing is free") and not is_late
        return {"TrestleDown": False, "TrestleTakesNoWrites": not second.writes[0],
                **({"TrestleDiskLow": True} if low else {}), **by_reason}  # fmt: skip

    def expressions(self):
        for at, second in enumerate(self.seconds):
            for name, is_true in self.wanted(second).items():
                yield truth(promtool.alerts()[name]["expr"], f"{at}s", is_true)
        for name, part in (("TrestleRefusesMutations", "less than the reserve"),
                           ("TrestleBackupFailed", "no space for backups")):  # fmt: skip
            last = max(at for at, second in enumerate(self.seconds) if second.part == part)
            yield truth(promtool.alerts()[name]["expr"], f"{last}s", True)

    def firing(self):
        """At the last second of a part that is long enough for the alert to wait."""
        for at, second in enumerate(self.seconds[1:], start=1):
            part = [each for each in self.seconds[:at] if each.part == second.part]
            is_last = at + 1 == len(self.seconds) or self.seconds[at + 1].part != second.part
            for name, is_true in self.wanted(second).items() if is_last else ():
                waits = int(promtool.alerts()[name].get("for", "0m")[:-1])
                if is_true and all(self.wanted(each).get(name) for each in part[-waits - 1 :]):
                    yield at, name, len(part) > waits + 1

    def evaluate(self):
        """What promtool complains about."""
        series, expressions = self.series(), list(self.expressions())
        seconds = {"interval": "1s", "input_series": series, "promql_expr_test": expressions}
        fires = [(at, name) for at, name, is_over in self.firing() if is_over]
        minutes = {
            "interval": "1m",
            "input_series": series,
            "promql_expr_test": [
                {"expr": f'count(ALERTS{{alertname="{name}", alertstate="firing"}}) or vector(0)',
                 "eval_time": f"{at}m", "exp_samples": [{"labels": "{}", "value": 1}]}
                for at, name in fires
            ],
        }  # fmt: skip
        print(f"{len(expressions)} evaluations of expressions, {len(fires)} alerts that fire: "
              f"{', '.join(sorted({name for _, name in fires}))}", flush=True)  # fmt: skip
        return (promtool.check_rules(self.directory, [seconds], "1s")
                + promtool.check_rules(self.directory, [minutes]))  # fmt: skip


def labelled(name):
    name, _, labels = name.partition("{")
    own = f"{labels[:-1]}," if labels else ""
    return f'{name}{{{own}instance="one",job="trestle"}}'


def truth(expression, at, is_true):
    """1 if the expression has any sample then, else 0."""
    return {"expr": f"(count({expression}) > bool 0) or vector(0)", "eval_time": at,
            "exp_samples": [{"labels": "{}", "value": int(is_true)}]}  # fmt: skip


def arguments():
    parser = argparse.ArgumentParser(prog="./dev crash disks", description=__doc__)
    add = parser.add_argument
    add("--seconds", type=int, default=12, help="that each part is watched, once it is there")
    add("--record", type=Path, metavar="FILE", help="where the seconds are written")
    return parser.parse_args()


def play(options, directory):
    """The whole of it; what was recorded."""
    day = Run(options, Path(directory))
    try:
        day.run()
    finally:
        day.stop()
        if options.record is not None:
            lines = [json.dumps(second.as_dict(), default=sorted) for second in day.seconds]
            options.record.write_text("\n".join(lines) + "\n")
    return day


def main():
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="trestle-disks-") as directory:
        try:
            day = play(options, directory)
            if promtool.PROMTOOL is None:
                print("there is no promtool: alerts were not evaluated")
            elif complaints := Alerts(day).evaluate():
                raise Failure(complaints)
        except Failure as failure:
            print(f"FAILED: {failure}", file=sys.stderr)
            return 1
    stable = sum(second.is_stable() for second in day.seconds)
    print(f"{len(day.seconds)} seconds, in {stable} of which nothing changed: all said the same")
    return 0


if __name__ == "__main__":
    sys.exit(main())
