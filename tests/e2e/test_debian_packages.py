"""examples/debian-packages: the whole package index goes in and comes out again."""

import os
import random
import subprocess
import sys

import pytest
from google.cloud.bigtable.data import BigtableDataClient, ReadRowsQuery
from harness.server import ROOT

EXAMPLE = ROOT / "examples/debian-packages"
sys.path.append(str(EXAMPLE))

import packages  # noqa: E402

ROWS_COMPARED = 1000
pytestmark = pytest.mark.timeout(900)  # the first test that needs the table loads it


# --- the parser ---


def test_stanzas():
    lines = ["Package: a", "Description: first", " second", " .", "", "", "Package: b", "Empty:"]
    assert list(packages.stanzas(lines)) == [
        {"Package": "a", "Description": "first\nsecond\n."},
        {"Package": "b", "Empty": ""},
    ]


def test_dependencies():
    text = "libc6 (>= 2.14), python3:any, perl | perl-base (<< 5), g++-12 (= 12.2.0-14)"
    assert packages.dependencies(text) == {
        "libc6": ">= 2.14",
        "python3": "",
        "perl": "",
        "perl-base": "<< 5",
        "g++-12": "= 12.2.0-14",
    }
    assert packages.dependencies("a (>= 1), a (<< 2), a") == {"a": ">= 1, << 2"}
    assert packages.dependencies("") == {}


def test_rows():
    lines = [
        "Package: a", "Version: 1", "Depends: b (>= 2)", "Pre-Depends: v", "Size: 3", "",
        "Package: b", "Version: 2", "",
        "Package: a", "Version: 9", "",
    ]  # fmt: skip
    assert packages.rows(lines) == {
        "a": {"meta": {"version": "1"}, "dep": {"b": ">= 2", "v": ""}},
        "b": {"meta": {"version": "2"}, "rdep": {"a": ">= 2"}},
        "v": {"rdep": {"a": ""}},
    }


# --- the table ---


@pytest.fixture(scope="module")
def source():
    table = packages.rows(packages.index())
    assert sum("meta" in row for row in table.values()) > 50_000, "run apt-get update"
    return table


@pytest.fixture(scope="module")
def loaded(server, source):
    """The environment of the example's programs, once its table has been loaded."""
    environment = {**os.environ, "BIGTABLE_EMULATOR_HOST": server.host}
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / "load.py")],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{len(source)} rows with ")
    return environment


@pytest.fixture(scope="module")
def table(loaded, emulator_host):
    with (
        BigtableDataClient(project="p") as client,
        client.get_table("i", packages.TABLE, default_read_rows_operation_timeout=600) as opened,
    ):
        yield opened


def row_of(read):
    row = {}
    for cell in read.cells:
        columns = row.setdefault(cell.family, {})
        assert cell.qualifier.decode() not in columns, "a column with two cells"
        columns[cell.qualifier.decode()] = cell.value.decode()
    return row


def test_every_row_is_there(table, source):
    """In the order of their names' bytes, each with as many columns as in the source."""
    expected = [(name, sum(map(len, source[name].values()))) for name in sorted(source)]
    read = table.read_rows_stream(ReadRowsQuery())
    assert [(row.row_key.decode(), len(row.cells)) for row in read] == expected


def test_random_rows(table, source):
    names = random.Random(1).sample(sorted(source), ROWS_COMPARED)
    read = table.read_rows(ReadRowsQuery(row_keys=names))
    assert {row.row_key.decode(): row_of(row) for row in read} == {
        name: source[name] for name in names
    }


def test_widest_row(table, source):
    name = max(source, key=lambda name: len(source[name].get("rdep", {})))
    assert len(source[name]["rdep"]) > 10_000
    assert row_of(table.read_row(name)) == source[name]


# --- the queries ---


@pytest.fixture
def query(loaded):
    """A function that runs query.py and gives its lines."""

    def run(*arguments):
        done = subprocess.run(
            [sys.executable, str(EXAMPLE / "query.py"), *arguments],
            env=loaded, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


def names_in(lines):
    return [line.split()[0] for line in lines]


def packages_of(source, condition):
    return [name for name in sorted(source) if "meta" in source[name] and condition(name)]


def test_show(query, source):
    lines = query("show", "bash")
    assert f"{'version':16} {source['bash']['meta']['version']}" in lines
    assert names_in(query("show", "bash", "--family", "dep")) == sorted(source["bash"]["dep"])
    assert query("show", "no-such-package") == []


def test_prefix(query, source):
    expected = packages_of(source, lambda name: name.startswith("python3-z"))
    assert names_in(query("--limit", "20", "prefix", "python3-z")) == expected[:20]


def test_range(query, source):
    expected = packages_of(source, lambda name: "gcc" <= name < "gcd")
    assert names_in(query("--limit", "1000", "range", "gcc", "gcd")) == expected


def test_regex(query, source):
    expected = packages_of(
        source, lambda name: name.startswith("lib") and "ssl" in name and name.endswith("-dev")
    )
    assert names_in(query("--limit", "1000", "regex", "lib.*ssl.*-dev")) == expected


def test_section(query, source):
    count = sum(row.get("meta", {}).get("section") == "games" for row in source.values())
    (line,) = query("section", "games")
    assert line.startswith(f"{count} packages: ")


def test_before(query, source):
    expected = packages_of(source, lambda name: name < "bash")[::-1]
    assert names_in(query("--limit", "15", "before", "bash")) == expected[:15]


def test_one_column_of_a_wide_row(query, source):
    constraint = source["libc6"]["rdep"]["bash"]
    assert query("needs", "bash", "libc6") == [f"bash needs libc6 ({constraint})"]
    assert query("needs", "bash", "bash") == ["bash needs no bash"]


def test_range_of_columns_of_a_wide_row(query, source):
    expected = sorted(name for name in source["libc6"]["rdep"] if name.startswith("zs"))
    lines = query("--limit", "1000", "rdeps", "libc6", "--prefix", "zs")
    assert names_in(lines[:-1]) == expected
    assert lines[-1] == f"{len(expected)} packages"


def test_count(query, source):
    assert query("count") == [f"{len(source)} rows"]
