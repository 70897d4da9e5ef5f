"""A process of several clients, driven by run.py: client.py TABLE ROWS SEED HISTORY NUMBER...

Each NUMBER is a client: a thread with a connection of its own, one request under way at a time.
What they did goes into the file HISTORY, a line of JSON for each operation on a row:

    {"row": "r03", "client": 7, "call": ["add", 2], "invoked": 123, "returned": 456, "answer": 9}

with the calls and answers of row.py and times of CLOCK_MONOTONIC in nanoseconds, which is the same
clock for all processes. If the connection died before the answer, `answer` is null, and `returned`
the time at which the server was known to be dead.

When the process can begin it says "ready". Standard input has a command a line:

    work HOST   begin; a client ends when its connection does
    rest        end: said when the server is dead, or to end requests in good order. Answered by
                {"operations": N, "failed_at": T, "failure": TEXT}: operations of this time of work,
                when the first connection died (null if none did), and what was wrong (null if
                nothing was): an error of another kind, or an answer that no server may give
"""

import json
import random
import sys
import threading
import time
from pathlib import Path

import grpc

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from harness.rpc import ALL_FEATURES, decode_rows, delete_row, set_cell  # noqa: E402
from harness.stubs import (  # noqa: E402
    CheckAndMutateRowRequest,
    MutateRowRequest,
    ReadModifyWriteRowRequest,
    ReadRowsRequest,
    Stubs,
)

REQUEST_SECONDS = 60
SCANNED_ROWS = 6
LONGEST_PADDING = 150  # bytes: rows pass the spill threshold and fall below it again
CONSTANT = "not a number"  # what t:text says; eight bytes would be one
FAMILIES = ("f", "g", "t")
DEATHS = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)


class Wrong(Exception):
    """The server did what it must not do."""


def row_key(number):
    return f"r{number:02}"


def set_constant():
    return set_cell("t", b"text", CONSTANT.encode(), 0)


def set_texts(**texts):
    """Always at the same time: the new text takes the place of the old one."""
    return [set_cell(family, family.encode(), text.encode(), 0) for family, text in texts.items()]


def row_of(cells):
    """[a, b, n] of what was read; each column has one cell."""
    columns = {}
    for cell in cells:
        column = cell.family + ":" + cell.qualifier.decode()
        if column in columns:
            raise Wrong(f"two cells of {column}")
        columns[column] = cell.value
    if columns.pop("t:text", b"").decode() != CONSTANT:
        raise Wrong(f"the constant is gone: {cells}")
    a, b, n = columns.pop("f:f", None), columns.pop("g:g", None), columns.pop("f:n", b"")
    if columns:
        raise Wrong(f"columns that nobody wrote: {sorted(columns)}")
    return [a and a.decode(), b and b.decode(), int.from_bytes(n, "big", signed=True)]


class Client(threading.Thread):
    def __init__(self, process, number, life, host):
        super().__init__(name=f"client-{number}")
        self.process = process
        self.number = number
        self.random = random.Random(f"{process.seed}/{life}/{number}")
        self.texts = f"{life}.{number}"
        self.text_count = 0
        self.stubs = Stubs(host)
        self.history = []  # (row, call, invoked, returned or None, answer or None)
        self.operations = 0
        self.failed_at = None
        self.failure = None

    def run(self):
        works, weights = zip(*WORK, strict=True)
        try:
            while not self.process.resting.is_set():
                (work,) = self.random.choices(works, weights)
                work(self)
                self.operations += 1
        except grpc.RpcError as error:
            self.failed_at = time.monotonic_ns()
            if error.code() not in DEATHS:
                self.failure = f"{error.code()}: {error.details()}"
        except Exception as error:
            self.failure = repr(error)
        finally:
            self.stubs.close()

    # --- choices ---

    def row(self):
        return row_key(self.random.randrange(self.process.rows))

    def text(self):
        """One that nobody else writes."""
        self.text_count += 1
        padding = "." * self.random.randrange(LONGEST_PADDING)
        return f"{self.texts}.{self.text_count}{padding}"

    # --- calls ---

    def record(self, row, call, request):
        """Calls `request`; the answer is what it returns."""
        invoked = time.monotonic_ns()
        try:
            answer = request()
        except grpc.RpcError:
            self.history.append((row, call, invoked, None, None))
            raise
        self.history.append((row, call, invoked, time.monotonic_ns(), answer))
        return answer

    def mutate(self, row, call, mutations):
        request = MutateRowRequest(
            table_name=self.process.table, row_key=row.encode(), mutations=map(pb, mutations)
        )

        def mutate():
            self.stubs.mutate_row(request, timeout=REQUEST_SECONDS)
            return "ok"

        self.record(row, call, mutate)

    def write(self):
        text = self.text()
        self.mutate(self.row(), ["write", text], set_texts(f=text, g=text))

    def delete(self):
        self.mutate(self.row(), ["delete"], [delete_row(), set_constant()])

    def add(self):
        row, amount = self.row(), self.random.randrange(1, 10)
        request = ReadModifyWriteRowRequest(
            table_name=self.process.table, row_key=row.encode()
        )
        request.rules.add(family_name="f", column_qualifier=b"n", increment_amount=amount)

        def add():
            answer = self.stubs.read_modify_write(request, timeout=REQUEST_SECONDS)
            cell = answer.row.families[0].columns[0].cells[0]
            return int.from_bytes(cell.value, "big", signed=True)

        self.record(row, ["add", amount], add)

    def refused(self):
        row, amount = self.row(), self.random.randrange(1, 10)
        request = ReadModifyWriteRowRequest(
            table_name=self.process.table, row_key=row.encode()
        )
        request.rules.add(family_name="f", column_qualifier=b"n", increment_amount=amount)
        request.rules.add(family_name="t", column_qualifier=b"text", increment_amount=amount)

        def refused():
            try:
                self.stubs.read_modify_write(request, timeout=REQUEST_SECONDS)
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.FAILED_PRECONDITION:
                    raise
                return "refused"
            raise Wrong("a text was incremented")

        self.record(row, ["refused", amount], refused)

    def swap(self):
        """The text looked for is the last one that a client of this process saw, as a rule."""
        row, then, otherwise = self.row(), self.text(), self.text()
        text = self.process.seen.get(row) or "none"
        request = CheckAndMutateRowRequest(
            table_name=self.process.table,
            row_key=row.encode(),
            true_mutations=map(pb, set_texts(f=then, g=then)),
            false_mutations=map(pb, set_texts(g=otherwise)),
        )
        filters = request.predicate_filter.chain.filters
        filters.add(family_name_regex_filter="f")
        filters.add(column_qualifier_regex_filter=b"f")
        filters.add(
            value_range_filter={
                "start_value_closed": text.encode(), "end_value_closed": text.encode()
            }
        )  # fmt: skip

        def swap():
            answer = self.stubs.check_and_mutate(request, timeout=REQUEST_SECONDS)
            return answer.predicate_matched

        if self.record(row, ["swap", text, then, otherwise], swap):
            self.process.seen[row] = then

    def read(self):
        self.read_rows([self.row()], is_scan=False)

    def scan(self):
        first = self.random.randrange(self.process.rows)
        last = min(first + SCANNED_ROWS, self.process.rows)
        self.read_rows([row_key(i) for i in range(first, last)], is_scan=True)

    def read_rows(self, rows, is_scan):
        """Each row of a scan is a read of its own; between rows nothing is promised."""
        request = ReadRowsRequest(
            table_name=self.process.table, reversed=is_scan and self.random.random() < 0.5
        )
        if is_scan:
            request.rows.row_ranges.add(
                start_key_closed=rows[0].encode(), end_key_closed=rows[-1].encode()
            )
        else:
            request.rows.row_keys.append(rows[0].encode())
        invoked = time.monotonic_ns()
        stream = self.stubs.read_rows(request, timeout=REQUEST_SECONDS, metadata=ALL_FEATURES)
        answer = dict(decode_rows(stream, request.reversed))
        returned = time.monotonic_ns()
        if sorted(answer) != [row.encode() for row in rows]:
            raise Wrong(f"asked for {rows}, read {sorted(answer)}")
        for row in rows:
            seen = row_of(answer[row.encode()])
            self.process.seen[row] = seen[0]
            self.history.append((row, ["read"], invoked, returned, seen))


WORK = [
    (Client.write, 22),
    (Client.delete, 4),
    (Client.add, 22),
    (Client.refused, 2),
    (Client.swap, 22),
    (Client.read, 23),
    (Client.scan, 5),
]


def pb(message):
    return type(message).pb(message)


class Process:
    def __init__(self, table, rows, seed, history, *numbers):
        self.table = table
        self.rows = int(rows)
        self.seed = seed
        self.history = history
        self.numbers = [int(number) for number in numbers]
        self.seen = {}  # by row: the text that was in f:f last; only to make swaps succeed
        self.resting = threading.Event()
        self.clients = []
        self.lives = 0

    def obey(self, command, *arguments):
        {"work": self.work, "rest": self.rest}[command](*arguments)

    def work(self, host):
        self.resting.clear()
        self.lives += 1
        self.clients = [Client(self, number, self.lives, host) for number in self.numbers]
        for client in self.clients:
            client.start()

    def rest(self):
        now = time.monotonic_ns()
        self.resting.set()
        for client in self.clients:
            client.join()
        with open(self.history, "a", encoding="utf-8") as file:
            for client in self.clients:
                write_history(file, client, now)
        summary = {
            "operations": sum(client.operations for client in self.clients),
            "failed_at": min((c.failed_at for c in self.clients if c.failed_at), default=None),
            "failure": next((f"{c.name}: {c.failure}" for c in self.clients if c.failure), None),
        }
        print(json.dumps(summary), flush=True)


def write_history(file, client, dead_at):
    for row, call, invoked, returned, answer in client.history:
        operation = {
            "row": row,
            "client": client.number,
            "call": call,
            "invoked": invoked,
            "returned": returned or dead_at,
            "answer": answer,
        }
        file.write(json.dumps(operation) + "\n")


def main():
    process = Process(*sys.argv[1:])
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        process.obey(*line.split())


if __name__ == "__main__":
    main()
