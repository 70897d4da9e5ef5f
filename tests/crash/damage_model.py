"""What was written to a server whose files are damaged: the rows, and where in the logs each change
of them is."""

import time

from harness.patience import PATIENCE_SECONDS
from harness.rpc import delete_row, set_cell

INSTANCE = "projects/p/instances/i"
TABLES = {f"{INSTANCE}/tables/{letter}": letter for letter in "abc"}
LARGE_VALUE = 6000  # bytes: a record of its own
AT_ONCE = 50
SINCE_EVER = (0, 0)  # before all logs
NOWHERE = (-1, 0)  # of a write that may have been refused


class Failure(Exception):
    pass


def check(is_so, *words):
    if not is_so:
        raise Failure(" ".join(map(str, words)))


class Model:
    """Rows, which begin with the letter of their table: {row: value}. Of each what it was, too: a
    list of (place, value), in which None is no row, and a place is (number of the log, where the
    change ends in it)."""

    def __init__(self, dice, count):
        self.random = dice
        self.count = count  # of rows that each table may have
        self.history = {row: [(SINCE_EVER, None)] for name in TABLES for row in self.rows(name)}
        self.made = {}  # {table: place}
        self.drops = set()  # the places of DropRowRanges, whose records the catalog has
        self.or_before = {}  # {place: another, in an earlier log, where the change may lie}
        self.backup, self.then = None, {}  # a whole backup, and {row: value} as it has them

    def copy(self, dice):
        other = Model(dice, self.count)
        other.history = {row: list(changes) for row, changes in self.history.items()}
        other.made, other.drops = dict(self.made), set(self.drops)
        other.or_before = dict(self.or_before)
        other.backup, other.then = self.backup, self.then
        return other

    def rows(self, name):
        """All that there may be, in order."""
        return [f"{TABLES[name]}{n:05}".encode() for n in range(self.count)]

    def value(self, row):
        return self.history[row][-1][1]

    def there(self, name):
        """[(row, value)], in order."""
        pairs = [(row, self.value(row)) for row in self.rows(name)]
        return [(row, value) for row, value in pairs if value is not None]

    def possible(self, row, is_kept):
        """What the row may be if a change is there for certain only where `is_kept(place)`."""
        values = []
        for place, value in self.history[row]:
            places = {place, self.or_before.get(place, place)}
            values = [value] if all(map(is_kept, places)) else [*values, value]
        return values

    def describe(self, row, value):
        """Which of its values it is."""
        past = [each for _, each in self.history[row]]
        size = 0 if value is None else len(value)
        which = past.index(value) if value in past else "none"
        return f"{size} bytes, number {which} of {len(past)} of its values"

    def settle(self, row, value):
        """From here on it is that."""
        self.history[row] = [(SINCE_EVER, value)]

    # --- writing ---

    def new_value(self):
        """None: the row goes."""
        dice = self.random.random()
        if dice < 0.1:
            return None
        return self.random.randbytes(LARGE_VALUE if dice < 0.12 else 900)

    def write(self, server, rows):
        """Of one table. Returns those that were refused: they are as they were."""
        refused = set()
        for at in range(0, len(rows), AT_ONCE):
            values = {row: self.new_value() for row in rows[at : at + AT_ONCE]}
            codes = write_now(server, values)
            place = server.place()
            for (row, value), code in zip(values.items(), codes, strict=True):
                check(code in (0, DATA_LOSS), row, "refused:", code)
                if code != DATA_LOSS:
                    self.history[row].append((place, value))
                else:
                    refused.add(row)
        return refused

    def write_some(self, server, count, but=()):
        """So many rows of each table, of which none may be refused."""
        for name in self.made:
            rows = [row for row in self.rows(name) if row not in but]
            refused = self.write(server, self.random.sample(rows, min(len(rows), count)))
            check(not refused, refused, "refused for no reason")

    def make_table(self, server, name):
        server.rpc.create_table(TABLES[name])
        self.made[name] = server.place()

    def drop(self, server, name, prefix):
        """The drop's pass may begin another log before anybody asks for the place."""
        before, _ = server.place()
        server.rpc.drop_row_range(name, prefix)
        place = server.place()
        if place[0] != before:
            self.or_before[place] = (before, float("inf"))
        self.drops.add(place)
        for row in self.rows(name):
            if row.startswith(prefix):
                self.history[row].append((place, None))


UNAVAILABLE, DATA_LOSS = 14, 15


def write_now(server, values):
    """The codes. A server on a busy machine may ask to be asked again."""
    changes = [(row, [change(value)]) for row, value in values.items()]
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        codes = server.rpc.mutate_rows(name_of(changes[0][0]), changes)
        if UNAVAILABLE not in codes or time.monotonic() > end:
            return codes


def name_of(row):
    return f"{INSTANCE}/tables/{row[:1].decode()}"


def change(value):
    """Without the deletion of the row it is refused where that is out of service."""
    return delete_row() if value is None else set_cell("f", b"q", value, 1000)
