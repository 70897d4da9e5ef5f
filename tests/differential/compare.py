"""Runs queries on both sides and holds the answers against each other, in rounds: each has tables
and views of its own, which follow from the seed and the round's number alone, as each query does
from those and its place."""

import collections
import math
import os
import random

from differential.queries import Generator, Source
from differential.shrink import shrink
from differential.sides import PYTHON_TYPES, Refused, Server, SQLite
from differential.tables import COLUMNS, KEY, Table, column

QUERIES_A_ROUND = 250
INEXACT = 1e-12
MOST_SHOWN = 12  # rows of a difference
ROWS_OF_VIEWS = 5  # at least
EMPTY = 0.3  # of the queries without rows are asked


class Difference(Exception):
    """What the sides said of a query: `google` and `sqlite` are its texts."""

    def __init__(self, what, block, server=None, sqlite=None):
        super().__init__(what)
        self.what, self.server, self.sqlite = what, server, sqlite
        self.google_text, self.sqlite_text = block.google(), block.sqlite()

    def __str__(self):
        lines = [f"GoogleSQL: {self.google_text}", f"SQLite: {self.sqlite_text}", self.what]
        server, sqlite = self.server, self.sqlite
        if isinstance(server, list) and isinstance(sqlite, list):
            ours, theirs = collections.Counter(server), collections.Counter(sqlite)
            lines.append(f"{len(server)} rows of the server, {len(sqlite)} of SQLite")
            if ours != theirs:
                server, sqlite = list((ours - theirs).elements()), list((theirs - ours).elements())
                lines[-1] += "; those that the other has not:"
        return "\n".join([*lines, f"server: {shown(server)}", f"SQLite: {shown(sqlite)}"])


def shown(answer):
    if isinstance(answer, list):
        more = f"\n  … {len(answer)} rows" if len(answer) > MOST_SHOWN else ""
        return "".join(f"\n  {row}" for row in answer[:MOST_SHOWN]) + more
    return str(answer)


# --- answers ---


def rank(value):
    """An order of values of one type, with NULL."""
    return (value is not None, value)


def is_same(a, b, is_inexact):
    if type(a) is not type(b):
        return False
    if is_inexact and isinstance(a, float):
        return math.isclose(a, b, rel_tol=INEXACT, abs_tol=INEXACT)
    return a == b


def same_rows(left, right, block):
    if len(left) != len(right):
        return False
    if not block.is_total:
        left, right = (
            sorted(rows, key=lambda row: [rank(each) for each in row]) for rows in (left, right)
        )
    return all(
        is_same(a, b, block.is_inexact)
        for row, other in zip(left, right, strict=True)
        for a, b in zip(row, other, strict=True)
    )


def answer(side, *arguments):
    try:
        return side.run(*arguments)
    except Refused as refusal:
        return refusal


class Round:
    """Tables and views, the same on both sides. Use it in a with statement."""

    def __init__(self, server, seed, number):
        self.server = server
        self.seed, self.number = seed, number
        self.sqlite = SQLite()
        self.dice = random.Random(f"{seed}/{number}")
        self.counts = collections.Counter()
        self.views, self.tables, self.sources = [], [], []

    def __enter__(self):
        name = f"d{os.getpid()}_{self.number}"
        for index, count in enumerate([self.dice.randint(20, 60), self.dice.randint(60, 300)]):
            table = Table(self.dice, f"{name}_{index}", count)
            table.create(self.server.rpc)
            table.create_in_sqlite(self.sqlite.connection)
            self.tables.append(table)
            keys = sorted(row[KEY] for row in table.rows)
            self.sources.append(Source(table.name, table.columns, table.extra, keys))
            self.add_plain_view(table, keys)
        for index in range(2):
            self.add_random_view(f"{name}_r{index}", f"v{index}")
        return self

    def __exit__(self, *error):
        for view in self.views:
            self.server.delete_view(view)
        for table in self.tables:
            self.server.rpc.delete_table(table.full_name)
        self.sqlite.close()

    def add_plain_view(self, table, keys):
        """The table's columns by their names, of some of its rows."""
        name, cut = f"{table.name}_v", self.dice.choice(keys)
        names = [each[0] for each in COLUMNS]
        items = ", ".join(f"{each[3]} AS {each[0]}" for each in COLUMNS)
        google_cut = "".join(f"\\x{byte:02x}" for byte in cut)
        self.add_view(
            name,
            f"SELECT {KEY}, {items} FROM {table.name} WHERE {KEY} != b'{google_cut}'",
            f"SELECT {KEY}, {', '.join(names)} FROM {table.name} WHERE {KEY} <> x'{cut.hex()}'",
            [table.columns[0], *(column(*each[:2], each[0], *each[4:]) for each in COLUMNS)],
            keys,
        )

    def add_random_view(self, name, prefix):
        plain = [each for each in self.sources if not each.is_view]
        generator = Generator(self.dice, plain, prefix)
        for _ in range(20):
            block = generator.block(self.dice.choice([0, 1]))
            if len(self.sqlite.run(block.sqlite())) >= ROWS_OF_VIEWS:
                break
        self.add_view(name, block.google(), block.sqlite(), block.columns_out())

    def add_view(self, name, google, sqlite, columns, keys=()):
        self.server.create_view(name, google)
        self.views.append(name)
        self.sqlite.create_view(name, sqlite)
        self.sources.append(Source(name, columns, (), keys, is_view=True))

    # --- queries ---

    def query(self, place):
        """Of those that SQLite gives no rows for, few are kept."""
        dice = random.Random(f"{self.seed}/{self.number}/{place}")
        while True:
            block = Generator(dice, self.sources).query()
            if answer(self.sqlite, block.sqlite()) or dice.random() < EMPTY:
                return block, dice.random() < 0.3

    def check(self, block, full=False):
        """Raises Difference. Gives the number of rows, None if both sides refuse."""
        kinds = [item.type for item in block.items]
        server = answer(self.server, block.google(full))
        sqlite = answer(self.sqlite, block.sqlite(), kinds)
        refusals = [each for each in (server, sqlite) if isinstance(each, Refused)]
        rows = server if isinstance(server, Refused) else server[1]
        if refusals:
            by_rule = all(each.is_by_rule for each in refusals)
            if len(refusals) == 2 and by_rule and block.may_fail:
                return None
            raise Difference("refused", block, rows, sqlite)
        if server[0] != kinds:
            raise Difference(f"types: {server[0]}, not {kinds}", block, rows, sqlite)
        for row in sqlite:
            for kind, value in zip(kinds, row, strict=True):
                if value is not None and type(value) is not PYTHON_TYPES[kind]:
                    raise Difference(f"SQLite's {value!r} is no {kind}", block, rows, sqlite)
        if not same_rows(rows, sqlite, block):
            raise Difference("other rows", block, rows, sqlite)
        return len(rows)

    def run(self, places):
        """A count of what was done, and differences with their places."""
        differences = []
        for place in places:
            block, full = self.query(place)
            try:
                self.count(block, self.check(block, full))
            except Difference as difference:
                self.counts["differences"] += 1
                small = shrink(self, block, difference, Difference)
                differences.append((place, str(difference), str(small)))
        return self.counts, differences

    def count(self, block, rows):
        self.counts["queries"] += 1
        self.counts["refused by both" if rows is None else "rows" if rows else "no rows"] += 1
        self.counts["rows in all"] += rows or 0
        self.counts["ordered"] += block.is_total
        for feature in set(block.features()):
            self.counts[("feature", feature)] += 1


def run_round(task):
    """In a process of its own, maybe: all that it gets and gives can be pickled."""
    host, seed, number, places = task
    server = Server(host)
    try:
        with Round(server, seed, number) as one:
            return number, *one.run(places)
    finally:
        server.close()
