"""Random work of one client, and the record of what the server owes for it.

A writer has rows of its own, whose state it knows exactly, and one request under way at a time.
What was under way when the server died is in doubt: `Ledger.doubts` has for each such row both
states that it may be in. Rows that several writers share come in two forms: counters (each
acknowledged increment counts) and groups (each write puts one token into three families of a row,
with a timestamp of its own).
"""

import random
import threading

import grpc
from google.cloud.bigtable_admin_v2 import types as admin_types
from google.cloud.bigtable_v2 import types
from harness.rpc import ADMIN_SECONDS, ALL_FEATURES, Rpc, decode_rows
from harness.stubs import (
    CheckAndMutateRowRequest,
    DropRowRangeRequest,
    MutateRowRequest,
    MutateRowsRequest,
    ReadModifyWriteRowRequest,
    ReadRowsRequest,
    Stubs,
)

import model

REQUEST_SECONDS = 60
OWN_ROWS = 24
DROPPED_ROWS = 8  # of each writer: DropRowRange takes them by their common prefix
COUNTERS = 4
GROUPS = 3
GROUP_FAMILIES = ("g", "h", "w")
COLUMNS = 200
TIMESTAMPS = [1000 * i for i in range(1, 60)]  # few, so that writes meet


class Wrong(Exception):
    """The server did what it must not do."""


class Ledger:
    """What the server owes. A row belongs to one writer at a time, so only sums need the lock."""

    def __init__(self):
        self.lock = threading.Lock()
        self.rows = {}  # key: row
        self.doubts = {}  # key: [rows, any of which it may be]
        self.counters = {counter_key(i): 0 for i in range(COUNTERS)}
        self.counter_doubts = dict.fromkeys(self.counters, 0)
        self.groups = {}  # key: {timestamp: token}, acknowledged
        self.group_doubts = {}
        self.acknowledged = 0

    def row(self, key):
        return self.rows.get(key, {})

    def keep(self, key, row):
        self.rows[key] = row
        self.count(1)

    def doubt(self, key, *candidates):
        self.doubts[key] = list(candidates)

    def count(self, number):
        with self.lock:
            self.acknowledged += number


def counter_key(i):
    return b"n/%d" % i


def group_prefix(cycle):
    return b"x/%06d/" % cycle


class Writer(threading.Thread):
    """Works until the server is gone. `failure` then says what it did wrong, if anything."""

    def __init__(self, number, seed, cycle, host, table, ledger, dying):
        super().__init__(name=f"writer-{number}")
        self.random = random.Random(f"{seed}/{cycle}/{number}")
        self.prefix = b"w%02d/" % number
        self.number = number
        self.cycle = cycle
        self.stubs = Stubs(host)
        self.table = table
        self.ledger = ledger
        self.dying = dying  # set before the server is made to go
        self.tokens = 0
        self.failure = None

    def run(self):
        try:
            while True:
                self.step()
        except grpc.RpcError as error:
            if not self.dying.is_set():
                self.failure = f"{error.code()}: {error.details()}"
        except Exception as error:
            self.failure = str(error) or repr(error)
        finally:
            self.stubs.close()

    def step(self):
        works, weights = zip(*WORK, strict=True)
        (work,) = self.random.choices(works, weights)
        work(self)

    # --- choices ---

    def own_key(self):
        """One row in three requests is the same: it is hot."""
        if self.random.random() < 0.3:
            return self.prefix + b"00"
        number = self.random.randrange(OWN_ROWS + DROPPED_ROWS)
        if number < OWN_ROWS:
            return self.prefix + b"%02d" % number
        return self.prefix + b"d/%02d" % (number - OWN_ROWS)

    def keys_with(self, prefix):
        """Of a copy, made in one step: others add their rows meanwhile."""
        return [key for key in list(self.ledger.rows) if key.startswith(prefix)]

    def token(self):
        self.tokens += 1
        return b"%06d.%02d.%06d" % (self.cycle, self.number, self.tokens)

    def value(self, token):
        size = self.random.choices(
            [0, 20, 200, 5_000, 100_000, 600_000], [300, 500, 300, 60, 4, 1]
        )[0]  # fmt: skip
        return token + b"." * size

    def group(self):
        """Cells that must be there together, or not at all."""
        token, time = self.token(), self.random.choice(TIMESTAMPS)
        mutations = [
            ("set", "f", b"token", time, token),
            ("set", "g", b"token", time, token),
        ]
        for _ in range(self.random.choice([0, 0, 1, 2, 5])):
            column = b"%03d" % self.random.randrange(COLUMNS)
            mutations.append(("set", "w", column, time, self.value(token)))
        if self.random.random() < 0.2:
            mutations.append(("set", "s", token, model.ANY, token))
        return mutations

    def wide(self):
        token, time = self.token(), self.random.choice(TIMESTAMPS)
        return [("set", "w", b"%03d" % i, time, token) for i in range(COLUMNS)]

    def delete(self):
        column = b"%03d" % self.random.randrange(COLUMNS)
        start = self.random.choice(TIMESTAMPS)
        return self.random.choice([
            [("column", "f", b"token", 0, 0), ("column", "g", b"token", 0, 0)],
            [("column", "w", column, 0, 0)],
            [("column", "g", b"token", start, self.random.choice([0, start + 9000]))],
            [("column", "w", column, start, start + 20000)],
            [("column", "c", b"text", 0, 0)],
            [("family", "w")],
            [("family", "s")],
            [("family", "c")],
            [("row",)],
        ])  # fmt: skip

    def mutations(self):
        kind = self.random.random()
        if kind < 0.7:
            return self.group()
        if kind < 0.75:
            return self.wide()
        if kind < 0.9:
            return self.delete()
        return self.delete() + self.group()

    # --- writes ---

    def settle(self, key, after, call):
        """Calls; the row is then in the new state, or in doubt."""
        before = self.ledger.row(key)
        try:
            answer = call()
        except grpc.RpcError:
            self.ledger.doubt(key, before, after)
            raise
        self.ledger.keep(key, after)
        return answer

    def mutate_row(self):
        key, mutations = self.own_key(), self.mutations()
        request = MutateRowRequest(
            table_name=self.table, row_key=key, mutations=map(model.message, mutations)
        )
        after = model.apply(self.ledger.row(key), mutations)
        self.settle(key, after, lambda: self.stubs.mutate_row(request, timeout=REQUEST_SECONDS))

    def mutate_rows(self):
        keys = list({self.own_key(): None for _ in range(self.random.randrange(1, 16))})
        changes = [(key, self.mutations()) for key in keys]
        request = MutateRowsRequest(table_name=self.table)
        for key, mutations in changes:
            request.entries.add(row_key=key, mutations=map(model.message, mutations))
        waiting = {
            i: (key, model.apply(self.ledger.row(key), mutations))
            for i, (key, mutations) in enumerate(changes)
        }
        try:
            for response in self.stubs.mutate_rows(request, timeout=REQUEST_SECONDS):
                self.take_entries(response, waiting)
        except grpc.RpcError:
            for key, after in waiting.values():
                self.ledger.doubt(key, self.ledger.row(key), after)
            raise
        if waiting:
            raise Wrong(f"MutateRows left {len(waiting)} entries without an answer")

    def take_entries(self, response, waiting):
        for entry in types.MutateRowsResponse.pb(response).entries:
            key, after = waiting.pop(entry.index)
            if entry.status.code == 0:
                self.ledger.keep(key, after)
                continue
            self.ledger.doubt(key, self.ledger.row(key), after)
            if not self.dying.is_set():
                raise Wrong(f"MutateRows: {key}: {entry.status.code} {entry.status.message}")

    def check_and_mutate(self):
        """The predicate: there is a token in family g."""
        key = self.own_key()
        choices = {True: self.mutations(), False: self.group()}
        request = CheckAndMutateRowRequest(
            table_name=self.table,
            row_key=key,
            true_mutations=map(model.message, choices[True]),
            false_mutations=map(model.message, choices[False]),
        )
        filters = request.predicate_filter.chain.filters
        filters.add(family_name_regex_filter="g")
        filters.add(column_qualifier_regex_filter=b"token")
        row = self.ledger.row(key)
        holds = ("g", b"token") in row
        after = model.apply(row, choices[holds])
        answer = self.settle(
            key, after, lambda: self.stubs.check_and_mutate(request, timeout=REQUEST_SECONDS)
        )
        if answer.predicate_matched != holds:
            raise Wrong(f"CheckAndMutate: {key}: the predicate held: {answer.predicate_matched}")

    def read_modify_write(self):
        key, text, amount = self.own_key(), self.token(), self.random.randrange(-9, 100)
        request = ReadModifyWriteRowRequest(table_name=self.table, row_key=key)
        request.rules.add(family_name="c", column_qualifier=b"text", append_value=text)
        request.rules.add(family_name="c", column_qualifier=b"sum", increment_amount=amount)
        after, whole_text = model.append(self.ledger.row(key), b"text", text)
        after, total = model.increment(after, b"sum", amount)
        answer = self.settle(
            key, after, lambda: self.stubs.read_modify_write(request, timeout=REQUEST_SECONDS)
        )
        got = sorted(column.cells[0].value for f in answer.row.families for column in f.columns)
        if got != sorted([whole_text, total]):
            raise Wrong(f"ReadModifyWrite: {key}: expected {whole_text}, {total}; answer {got}")

    def drop_rows(self):
        prefix = self.prefix + b"d/"
        if self.number == 0 and self.random.random() < 0.5:
            prefix = group_prefix(self.cycle - 2)
        keys = self.keys_with(prefix)
        request = DropRowRangeRequest(name=self.table, row_key_prefix=prefix)
        try:
            self.stubs.drop_row_range(request, timeout=ADMIN_SECONDS)
        except grpc.RpcError:
            for key in keys:
                self.ledger.doubt(key, self.ledger.row(key), {})
            raise
        for key in keys:
            self.ledger.rows[key] = {}
        self.ledger.count(1)

    # --- shared rows ---

    def increment_counter(self):
        key = counter_key(self.random.randrange(COUNTERS))
        request = ReadModifyWriteRowRequest(table_name=self.table, row_key=key)
        request.rules.add(family_name="c", column_qualifier=b"n", increment_amount=1)
        try:
            self.stubs.read_modify_write(request, timeout=REQUEST_SECONDS)
        except grpc.RpcError:
            with self.ledger.lock:
                self.ledger.counter_doubts[key] += 1
            raise
        with self.ledger.lock:
            self.ledger.counters[key] += 1
            self.ledger.acknowledged += 1

    def write_group(self):
        key = group_prefix(self.cycle) + b"%d" % self.random.randrange(GROUPS)
        token = self.token()
        time = 1000 * (1000 * self.tokens + self.number)
        request = MutateRowRequest(table_name=self.table, row_key=key)
        for family in GROUP_FAMILIES:
            request.mutations.append(model.message(("set", family, b"x", time, token)))
        try:
            self.stubs.mutate_row(request, timeout=REQUEST_SECONDS)
        except grpc.RpcError:
            with self.ledger.lock:
                self.ledger.group_doubts.setdefault(key, {})[time] = token
            raise
        with self.ledger.lock:
            self.ledger.groups.setdefault(key, {})[time] = token
            self.ledger.acknowledged += 1

    # --- reads: a writer sees its own writes ---

    def read_own(self):
        is_reversed = self.random.random() < 0.5
        request = ReadRowsRequest(table_name=self.table, reversed=is_reversed)
        if self.random.random() < 0.8:
            keys = [self.own_key()]
            request.rows.row_keys.extend(keys)
        else:
            keys = self.keys_with(self.prefix)
            request.rows.row_ranges.add(
                start_key_closed=self.prefix, end_key_open=self.prefix[:-1] + b"0"
            )
        stream = self.stubs.read_rows(request, timeout=REQUEST_SECONDS, metadata=ALL_FEATURES)
        seen = dict(decode_rows(stream, is_reversed))
        for key in {*keys, *seen}:
            expected, row = self.ledger.row(key), model.observed(seen.get(key, []))
            if not model.matches(expected, row):
                problems = "; ".join(model.differences(expected, row))
                raise Wrong(f"a writer does not see its own writes: {key}: {problems}")


WORK = [
    (Writer.mutate_row, 40),
    (Writer.mutate_rows, 12),
    (Writer.check_and_mutate, 10),
    (Writer.read_modify_write, 10),
    (Writer.increment_counter, 8),
    (Writer.write_group, 12),
    (Writer.read_own, 6),
    (Writer.drop_rows, 0.4),
]


def create_table(host, table_id):
    """The table that the writers use."""
    rules = {
        family: most and admin_types.GcRule(max_num_versions=most)
        for family, most in model.FAMILIES.items()
    }
    rpc = Rpc(host)
    try:
        return rpc.create_table(table_id, rules, splits=[b"w02/", b"x/"])
    finally:
        rpc.close()
