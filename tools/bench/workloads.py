"""What is run over small rows, and what issue 4 demands of it in rows per CPU second."""

from dataclasses import dataclass, field
from typing import Callable


@dataclass(frozen=True)
class Workload:
    name: str  # in the collected results
    words: str
    command: str  # of `trestle bench`
    # Microseconds of a request at the least, made of `parts.Parts`.
    least: Callable
    rows: int = 1  # of a request
    options: dict = field(default_factory=dict)
    goals: dict = field(default_factory=dict)  # by the cells of a row
    share_of_scan: float = 0  # or the goal is this share of the bounded scan

    def goal(self, cells, rate_of):
        """None if there is none. `rate_of`: what was measured of another workload."""
        if self.share_of_scan:
            return self.share_of_scan * rate_of("scan100")
        return self.goals.get(cells)


def scan(name, words, command, rows, **more):
    return Workload(
        name,
        words,
        command,
        lambda parts: parts.call + rows * parts.next,
        rows=rows,
        options={"scan_rows": rows},
        **more,
    )


READS = [
    Workload(
        "read", "point read", "read",
        lambda parts: parts.call + parts.get,
        goals={1: 125_000, 10: 90_000},
    ),
    scan("scan10", "scan of 10 rows", "scan", 10, goals={1: 600_000, 10: 270_000}),
    scan("scan100", "scan of 100 rows", "scan", 100, goals={1: 1_200_000, 10: 430_000}),
    scan("limit", "100 rows by rows_limit, no end", "limit", 100, share_of_scan=0.8),
    scan("reverse", "scan of 100 rows, reversed", "reverse", 100, share_of_scan=0.5),
]  # fmt: skip

WRITES = [
    Workload(
        "write", "MutateRow", "write",
        lambda parts: parts.call + parts.put,
        goals={1: 70_000, 10: 45_000},
    ),
    Workload(
        "mixed", "half reads, half writes", "mixed",
        lambda parts: parts.call + (parts.get + parts.put) / 2,
        goals={1: 60_000, 10: 38_000},
    ),
    Workload(
        "rmw", "ReadModifyWriteRow", "rmw",
        lambda parts: parts.call + parts.get + parts.put,
        goals={1: 50_000},
    ),
    Workload(
        "batch", "MutateRows of 100 rows", "batch",
        lambda parts: parts.call + 100 * parts.put_many,
        rows=100, options={"batch": 100}, goals={10: 75_000},
    ),
]  # fmt: skip

ADD = Workload(
    "add", "AddToCell", "add", lambda parts: parts.call + parts.put, goals={1: 70_000}
)  # fmt: skip

LOAD = Workload(
    "load", "load, MutateRows of 100 rows", "load",
    lambda parts: parts.call + 100 * parts.put_many,
    rows=100, options={"batch": 100},
)  # fmt: skip

FRESH = [LOAD, *READS, *WRITES, ADD]
AGAIN = [*READS, *WRITES]  # what is run on overwritten rows and over many tablets, too
