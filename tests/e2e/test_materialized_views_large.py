"""Continuous materialized views of many rows: those of the 20 checks of Bigtable's interface that
say how many, over a release build. All are marked `long`: a day's share has a tenth of the rows or
fewer, `./dev test --long` all that the checks say. With few rows each is in
test_materialized_views*.py, in each run."""

import os
import subprocess

import pytest
from google.longrunning import operations_pb2 as lro
from harness.release import release_binary  # noqa: F401 (a fixture)
from harness.rpc import INSTANCE, delete_row, set_cell
from harness.server import EXTERNAL
from harness.views import Views, big_endian, comes_to, number_cell, put, rows_of

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(bool(EXTERNAL), reason="needs servers of its own"),
]

IS_WHOLE = os.environ.get("TRESTLE_LONG") == "all"
ROWS = 1_000_000 if IS_WHOLE else 100_000
POPULATED_ROWS = 10_000_000 if IS_WHOLE else 1_000_000
AT_ONCE = 10_000  # rows of a call
POPULATION_SECONDS = 1800
KILLS = 5
PIECE_ROWS = 4096  # of one commit of a view's, at most
BENCH = f"{INSTANCE}/tables/bench"


@pytest.fixture
def large(fresh_views, release_binary, monkeypatch):  # noqa: F811
    monkeypatch.setenv("TRESTLE_BINARY", release_binary)
    return fresh_views()


def fill(rpc, name, number_of):
    """ROWS rows, `%07d`, each with f:n, the number that is given for the row's."""
    for first in range(0, ROWS, AT_ONCE):
        rows = [
            (b"%07d" % n, [set_cell("f", b"n", big_endian(number_of(n)), 1000)])
            for n in range(first, first + AT_ONCE)
        ]
        assert set(rpc.mutate_rows(name, rows)) == {0}


def bench(server, release, workloads, **options):
    """`trestle bench` over the table BENCH, to its end."""
    words = [release, "bench", "--endpoint", server.host, "--workloads", workloads, "--json"]
    for name, value in options.items():
        words += [f"--{name.replace('_', '-')}", str(value)]
    subprocess.run(words, check=True, capture_output=True)


def created(views, query):
    return views.begin(query).result(timeout=POPULATION_SECONDS).name


def looked_at(server, view):
    """Source rows that its upkeep looked at, since the server's start."""
    return server.metric(f'view_changes_total{{view="{view}"}}')


def test_check_5_extremes_of_a_group_of_many_rows(large):
    server, views, rpc = large
    table = rpc.create_table("t", ["f"])
    fill(rpc, table, lambda n: n * 7919 % ROWS)
    view = created(
        views,
        "SELECT 'all' AS _key, MIN(TO_INT64(f['n'])) AS low, MAX(TO_INT64(f['n'])) AS high "
        "FROM t GROUP BY _key",
    )
    key_of = {n * 7919 % ROWS: b"%07d" % n for n in range(ROWS)}
    before = looked_at(server, view)
    for least, most in ((1, ROWS - 2), (2, ROWS - 3), (3, ROWS - 4)):
        rpc.mutate(table, key_of[least - 1], delete_row())
        rpc.mutate(table, key_of[most + 1], delete_row())
        cells = [number_cell(b"high", most), number_cell(b"low", least)]
        views.comes_to(view, [(b"all", cells)])
    # Each of the six is looked at, and no other row of the source.
    assert looked_at(server, view) - before <= 12


def test_check_8_an_index_of_many_rows(large):
    _, views, rpc = large
    table = rpc.create_table("t", ["f"])
    fill(rpc, table, lambda n: n % 50)
    view = created(views, "SELECT TO_INT64(f['n']) AS n, _key AS k FROM t ORDER BY n, _key")

    def entries(n):
        prefix = bytes([0x80 + n]) + b"\0"
        found = {"start_key_closed": prefix + b"\1", "end_key_open": prefix + b"\2"}
        return [key[3:] for key, _ in rpc.read(view, rows={"row_ranges": [found]})]

    for n in range(50):
        assert entries(n) == [b"%07d" % row for row in range(n, ROWS, 50)]
    for row in range(7, ROWS, ROWS // 10):
        put(rpc, table, b"%07d" % row, n=51)
    moved = [b"%07d" % row for row in range(7, ROWS, ROWS // 10)]
    comes_to(lambda: entries(51), moved)
    comes_to(lambda: len(entries(7)), ROWS // 50 - len(moved))


def test_check_12_five_views_follow_5000_rows_a_second(large, release_binary):  # noqa: F811
    server, views, rpc = large
    bench(server, release_binary, "load", rows=20_000)
    queries = [
        "SELECT '*' AS _key, COUNT(*) AS n, MIN(cf['c0']) AS low FROM bench GROUP BY _key",
        "SELECT SUBSTR(cf['c0'], 1, 1) AS b, COUNT(*) AS n FROM bench GROUP BY b",
        "SELECT cf['c0'] AS v, COUNT(*) AS n FROM bench GROUP BY v",
        "SELECT SUBSTR(cf['c0'], 1, 2) AS b, _key AS k FROM bench ORDER BY b, k",
        "SELECT SUBSTR(_key, 1, 6) AS p, MAX(cf['c0']) AS v FROM bench GROUP BY p",
    ]
    made = {created(views, query): query for query in queries}
    bench(server, release_binary, "write", rows=20_000, rate=5_000, duration="20s")
    for view, query in made.items():
        views.equals(view, query)


class Population:
    """Of a view of POPULATED_ROWS rows, in a server that is killed amid it."""

    def __init__(self, server, connect, administer):
        self.server, self.connect, self.administer = server, connect, administer
        self.view = f"{INSTANCE}/materializedViews/v"
        self.name = None  # of its operation
        self.written = self.looked_at = 0
        self.open()

    def open(self):
        self.rpc, self.admin = self.connect(self.server.host), self.administer(self.server.host)
        self.views = Views(self.admin, self.rpc, None)

    @property
    def operation(self):
        return self.admin.operations.GetOperation(lro.GetOperationRequest(name=self.name))

    def looks(self):
        """At some share of the source, in this life; False: it was done before."""
        share = POPULATED_ROWS / (KILLS + 3)

        def is_amid():
            return looked_at(self.server, self.view) > share

        comes_to(lambda: is_amid() or self.is_done(), True, POPULATION_SECONDS)
        return not self.is_done()

    def is_done(self):
        return self.operation.done

    def write(self):
        cell = set_cell("cf", b"c0", b"\1", 1000)
        rows = [(b"new%06d" % (self.written + n), [cell]) for n in range(100)]
        assert set(self.rpc.mutate_rows(BENCH, rows)) == {0}
        self.written += len(rows)

    def kill(self):
        assert rows_of(self.rpc, "@{allow_incomplete_view=true} SELECT * FROM v")
        self.looked_at += looked_at(self.server, self.view)
        self.server.kill()
        self.server.start()
        self.open()


def test_check_13_a_population_of_many_rows_survives_kills(
    large, release_binary, connect, administer  # noqa: F811
):
    """While clients write; it goes on where it was."""
    server, _, _ = large
    bench(server, release_binary, "load", rows=POPULATED_ROWS, value_size=1000)
    population = Population(server, connect, administer)
    query = "SELECT SUBSTR(cf['c0'], 1, 1) AS b, COUNT(*) AS n FROM bench GROUP BY b"
    population.name = population.views.begin(query, "v").operation.name
    kills = 0
    while kills < KILLS and population.looks():
        population.write()
        population.kill()
        kills += 1
    assert kills > 0
    comes_to(population.is_done, True, POPULATION_SECONDS)
    assert not population.operation.HasField("error")
    rows = POPULATED_ROWS + population.written
    comes_to(lambda: counted(population.rpc, population.view), rows)
    # What a life did that the next did not know of is no more than a few pieces.
    again = population.looked_at + looked_at(server, population.view) - POPULATED_ROWS
    assert again <= 2 * population.written + kills * 4 * PIECE_ROWS
    if not IS_WHOLE:
        population.views.equals(population.view, query)


def counted(rpc, view):
    """The sum of the counts n of all its rows."""
    return sum(
        int.from_bytes(cell.value) for _, cells in rpc.read(view) for cell in cells
        if cell.qualifier == b"n"
    )  # fmt: skip
