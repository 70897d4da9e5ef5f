"""A table that takes writes is backed up, the server is killed, the directory is carried to a fresh
one, and what is restored there is the table at one instant of the backup's making, row by row;
deletions of ranges and families are there wholly or not at all.

Each actor does one thing after the other and notes when each was asked for and when it was
acknowledged. What is restored of an actor's rows must be what they were after its first k things,
which gives an interval of time: from the k-th was asked for, to the next was acknowledged. One
instant must lie in all actors' intervals, and in the backup's.
"""

import shutil
import threading
import time

from harness.backups import Backups, check_doctor, finish
from harness.rpc import Rpc, set_cell

WRITERS = 3
ROWS = 24  # of each writer
BATCH = 20  # rows that come and go together
BALLAST = 1500
SPLITS = [b"b", b"d", b"e", b"w1/", b"w2/12"]
NEVER = float("inf")


class Actor(threading.Thread):
    """Does what `act` yields, until it is stopped. `done` has (asked, acknowledged, what) of each
    thing; the last one may be without end."""

    def __init__(self, host):
        super().__init__(daemon=True)
        self.rpc = Rpc(host)
        self.stopping = threading.Event()
        self.done = []
        self.failure = None

    def run(self):
        try:
            for what, action in self.act():
                began = time.monotonic()
                self.done.append((began, NEVER, what))
                action()
                self.done[-1] = (began, time.monotonic(), what)
                if self.stopping.is_set():
                    return
        except Exception as error:  # shown by the test
            self.failure = error
        finally:
            self.rpc.close()

    def stop(self):
        self.stopping.set()
        self.join()
        assert self.failure is None, self.failure

    def span(self, count):
        """When the first `count` things had happened, and no more."""
        since = self.done[count - 1][0] if count > 0 else 0.0
        until = self.done[count][1] if count < len(self.done) else NEVER
        return since, until


class Writer(Actor):
    """Writes its rows in turn, each with the number of the write."""

    def __init__(self, host, table, number):
        super().__init__(host)
        self.table = table
        self.prefix = b"w%d/" % number

    def key(self, number):
        return b"%s%02d" % (self.prefix, number % ROWS)

    def act(self):
        number = 0
        while True:
            cell = set_cell("f", b"q", b"%d" % number, 1000)
            yield number, lambda: self.rpc.mutate(self.table, self.key(number), cell)
            number += 1

    def spans(self, rows):
        """Of the one moment at which the rows may have been so."""
        mine = {key: int(cells[0].value) for key, cells in rows.items() if key[:3] == self.prefix}
        count = max(mine.values()) + 1 if mine else 0
        expected = {self.key(each): each for each in range(max(0, count - ROWS), count)}
        assert mine == expected, f"no state of {self.prefix}: {mine}"
        return [self.span(count)]


class Reshaper(Actor):
    """Makes a family, fills it, drops it; fills a range of rows, drops it; again and again."""

    def __init__(self, host, table):
        super().__init__(host)
        self.table = table

    def batch(self, prefix, family, round_number):
        cell = set_cell(family, b"q", b"%d" % round_number, 1000)
        rows = [(b"%s%02d" % (prefix, each), [cell]) for each in range(BATCH)]
        return lambda: self.rpc.mutate_rows(self.table, rows)

    def act(self):
        round_number = 0
        while True:
            make = {"id": "x", "create": {}}
            drop = {"id": "x", "drop": True}
            yield ("made", round_number), lambda: self.rpc.modify_families(self.table, make)
            yield ("filled", round_number), self.batch(b"c/", "x", round_number)
            yield ("unmade", round_number), lambda: self.rpc.modify_families(self.table, drop)
            yield ("written", round_number), self.batch(b"c/", "f", round_number)
            yield ("dropped", round_number), lambda: self.rpc.drop_row_range(self.table, b"c/")
            round_number += 1

    def spans(self, rows, families):
        """Of all the moments at which rows and families may have been so."""
        cells = [
            (cell.family, int(cell.value))
            for key, cells in rows.items()
            for cell in cells
            if key[:2] == b"c/"
        ]
        assert len(set(cells)) <= 1, f"parts of several states: {set(cells)}"
        seen = ("x" in families, cells[0] if cells else None, len(cells))
        found = []
        for count in range(len(self.done) + 1):
            found += [self.span(count)] if self.state(count) == seen else []
            found += [self.done[count - 1][:2]] if self.is_part_of(count, seen) else []
        assert found, f"at no moment: {seen}"
        return found

    def state(self, count):
        """(whether there is the family, what the cells are, their number) after so many things."""
        if count == 0:
            return False, None, 0
        what, number = self.done[count - 1][2]
        return {
            "made": (True, None, 0),
            "filled": (True, ("x", number), BATCH),
            "unmade": (False, None, 0),
            "written": (False, ("f", number), BATCH),
            "dropped": (False, None, 0),
        }[what]

    def is_part_of(self, count, seen):
        """Rows that come one after the other may be there in part. (What goes, goes at once.)"""
        if count == 0 or self.done[count - 1][2][0] not in ("filled", "written"):
            return False
        whole = self.state(count)
        return seen[0] == whole[0] and seen[1] == whole[1] and seen[2] < BATCH


def common_instant(lists, window):
    """An interval of each list that overlaps one of each other, and the window; None if there is
    none."""
    candidates = [window]
    for spans in lists:
        candidates = [
            (max(a[0], b[0]), min(a[1], b[1]))
            for a in candidates
            for b in spans
            if max(a[0], b[0]) <= min(a[1], b[1])
        ]
    return candidates[0] if candidates else None


def make_table(backups, rpc):
    backups.tables.create_table(
        request={
            "parent": backups.instance,
            "table_id": "t",
            "table": {"column_families": {"f": {}}},
            "initial_splits": [{"key": key} for key in SPLITS],
        }
    )
    for start in range(0, BALLAST, 100):
        rows = [
            (b"b%04d" % each, [set_cell("f", b"q", b"%d" % each * 400, 1000)])
            for each in range(start, start + 100)
        ]
        rpc.mutate_rows(backups.table("t"), rows)


def test_a_restored_table_is_the_table_at_one_instant(
    fresh_server, administer, connect, tmp_path
):
    first, second = tmp_path / "first", tmp_path / "second"
    server = fresh_server("--backup-dir", first, "--backup-rate", "2MB")
    admin = administer(server.host)
    backups = Backups(admin, admin.create_instance("loaded"))
    make_table(backups, connect(server.host))
    table = backups.table("t")
    writers = [Writer(server.host, table, number) for number in range(WRITERS)]
    reshaper = Reshaper(server.host, table)
    for actor in (*writers, reshaper):
        actor.start()
    while min(len(actor.done) for actor in (*writers, reshaper)) < ROWS // 4:
        time.sleep(0.01)  # so that the backup begins in the middle
    began = time.monotonic()
    made = finish(backups.begin("b", "t"))
    ended = time.monotonic()
    for actor in (*writers, reshaper):
        actor.stop()
    server.kill()
    shutil.copytree(first, second)
    shutil.rmtree(first)

    other = fresh_server("--backup-dir", second)
    elsewhere = Backups(administer(other.host), backups.instance)
    assert elsewhere.list() == [made]
    finish(elsewhere.restore("t2", made.name))
    families = elsewhere.tables.get_table(name=backups.table("t2")).column_families
    rpc = connect(other.host)
    rows = dict(rpc.read(backups.table("t2")))
    ballast = {key: cells[0].value for key, cells in rows.items() if key[:1] == b"b"}
    assert ballast == {b"b%04d" % each: b"%d" % each * 400 for each in range(BALLAST)}
    spans = [writer.spans(rows) for writer in writers] + [reshaper.spans(rows, families)]
    print(f"{[len(actor.done) for actor in (*writers, reshaper)]} things done")
    assert common_instant(spans, (began, ended)), f"no instant: {spans}, {(began, ended)}"
    assert [key for key, _ in rpc.sample_row_keys(backups.table("t2"))] == [*SPLITS, b""]
    other.stop()
    check_doctor(server.data)
    check_doctor(other.data)
    assert "backups read, no damage found" in check_doctor("--backup-dir", second)
