"""examples/debian-packages: the whole package index goes in and comes out again."""

import collections
import csv
import datetime
import os
import random
import re
import subprocess
import sys
import time

import pytest
from google.cloud.bigtable.data import BigtableDataClient, ReadRowsQuery, SetCell
from harness.patience import PATIENCE_SECONDS
from harness.rpc import INSTANCE, Rpc
from harness.server import ROOT, binary

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


# --- elsewhere ---


@pytest.fixture(scope="module")
def all_rows(loaded, rpc):
    return rpc.read(f"{INSTANCE}/tables/{packages.TABLE}")


def test_a_copy_is_equal(loaded, server, fresh_server, all_rows, tmp_path):
    """By `trestle copy`, to another server: row by row, with timestamps."""
    target = fresh_server().host
    done = subprocess.run(
        [binary(), "copy", packages.TABLE, "--from-endpoint", server.host, "--endpoint", target],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    there = Rpc(target)
    assert there.read(f"{INSTANCE}/tables/{packages.TABLE}") == all_rows
    there.close()


# A million cells each. Fewer come and go in every run: test_files.py.
@pytest.mark.long
@pytest.mark.parametrize("kind", ["avro", "csv", "jsonl"])
def test_files_bring_it_back(loaded, rpc, all_rows, tmp_path, kind):
    """Out by `trestle export`, and back by `trestle import`: row by row, with timestamps."""
    again, families = f"{packages.TABLE}-{kind}", ",".join(packages.FAMILIES)
    for words in (
        ["export", kind, packages.TABLE, f"rows.{kind}"],
        ["import", kind, f"rows.{kind}", "--table", again, "--families", families],
    ):
        done = subprocess.run(
            [binary(), *words], env=loaded, cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    assert rpc.read(f"{INSTANCE}/tables/{again}") == all_rows
    rpc.delete_table(f"{INSTANCE}/tables/{again}")


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


# --- views ---


@pytest.fixture(scope="module")
def views(loaded):
    """Rows of a query of one of views.sql, which have been made."""
    done = subprocess.run(
        [binary(), "sql", "-f", str(EXAMPLE / "views.sql")],
        env=loaded, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "The view is populated.\n" * 3), done.stderr

    def ask(query):
        done = subprocess.run(
            [binary(), "sql", "--format", "csv", "--no-header", "-e", query],
            env=loaded, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return list(csv.reader(done.stdout.splitlines()))

    yield ask
    for name in ("packages-by-maintainer", "most-needed", "sections"):
        drop = f"DROP MATERIALIZED VIEW `{name}`"
        subprocess.run([binary(), "sql", "-e", drop], env=loaded, check=True)


def test_views_have_what_their_queries_say(views, source):
    maintained = sorted(
        (row["meta"]["maintainer"].encode(), name.encode())
        for name, row in source.items() if "meta" in row
    )  # fmt: skip
    rows = views("SELECT maintainer, package FROM `packages-by-maintainer`")
    assert [(a.encode(), b.encode()) for a, b in rows] == maintained
    needed = sorted((len(row.get("rdep", {})), name.encode()) for name, row in source.items())
    rows = views("SELECT needed_by, package FROM `most-needed`")
    assert [(int(n), name.encode()) for n, name in rows] == needed
    sections = {}
    for row in source.values():
        if "meta" in row:
            sizes = sections.setdefault(row["meta"]["section"], [])
            sizes.append(int(row["meta"].get("installed-size", 0)))
    rows = views("SELECT section, packages, kilobytes, largest FROM sections")
    assert {section: list(map(int, rest)) for section, *rest in rows} == {
        section: [len(sizes), sum(sizes), max(sizes)] for section, sizes in sections.items()
    }


def test_views_follow_their_table(views, table, source):
    """A package moves to another maintainer, and back."""
    name = next(name for name in sorted(source) if "meta" in source[name])
    before = source[name]["meta"]["maintainer"]

    def packages_of(maintainer):
        query = "SELECT package FROM `packages-by-maintainer` WHERE maintainer = "
        return views(f"{query}b'''{maintainer}'''")

    for to, other in (("Nobody <nobody@example.org>", before), (before, "Nobody")):
        table.mutate_row(name, SetCell("meta", b"maintainer", to))
        deadline = time.monotonic() + PATIENCE_SECONDS
        while [name] not in packages_of(to) or [name] in packages_of(other):
            assert time.monotonic() < deadline


# --- the ten questions ---


@pytest.fixture
def ask(loaded):
    """A function that runs a file of questions/ and gives its rows, without the head."""

    def run(name, **parameters):
        command = [binary(), "sql", "--format", "csv", "-f", str(EXAMPLE / "questions" / name)]
        for parameter, value in parameters.items():
            command += ["--param", f"{parameter}={value}"]
        done = subprocess.run(
            command, env=loaded, capture_output=True, text=True, timeout=PATIENCE_SECONDS
        )
        assert done.returncode == 0, done.stderr
        return list(csv.reader(done.stdout.splitlines()))[1:]

    return run


def top(counts, at_least=0):
    """The five largest, by name where they are as large."""
    rows = [(key, count) for key, count in counts.items() if count >= at_least]
    return [[key, str(count)] for key, count in sorted(rows, key=lambda row: (-row[1], row[0]))[:5]]


def metas(source, column):
    return [row["meta"][column] for row in source.values() if column in row.get("meta", {})]


def test_how_many(ask, source):
    packages_there = sum("meta" in row for row in source.values())
    assert ask("01-how-many.sql") == [[str(packages_there), str(len(source) - packages_there)]]


def test_largest_sections(ask, source):
    answer = ask("02-largest-sections.sql")
    counts = collections.Counter(metas(source, "section"))
    assert [row[1] for row in answer] == [row[1] for row in top(counts)]
    for section, _, gigabytes in answer:
        sizes = [
            int(row["meta"].get("installed-size", 0))
            for row in source.values()
            if row.get("meta", {}).get("section") == section
        ]
        assert int(gigabytes) == sum(sizes) // 1024**2


def test_most_depended_on(ask, source):
    counts = {name: len(row.get("rdep", {})) for name, row in source.items()}
    answer = ask("03-most-depended-on.sql")
    assert [row[1] for row in answer] == [row[1] for row in top(counts)]
    assert all(counts[name] == int(count) for name, count in answer)


def test_what_bash_needs(ask, source):
    needs = [list(need) for need in sorted(source["bash"]["dep"].items())]
    assert ask("04-what-bash-needs.sql") == needs


def test_numpy(ask, source):
    names = packages_of(source, lambda name: name.startswith("python3-numpy"))
    assert ask("05-numpy.sql") == [[name, source[name]["meta"]["version"]] for name in names]


def test_maintainers(ask, source):
    names = [re.match(r"^([^<]*[^ <]) *<", text) for text in metas(source, "maintainer")]
    counts = collections.Counter(name.group(1) if name else "" for name in names)
    assert ask("06-maintainers.sql") == top(counts)


def test_virtual_packages(ask, source):
    counts = {name: len(row["rdep"]) for name, row in source.items() if "meta" not in row}
    assert ask("07-virtual-packages.sql") == top(counts)


def test_typical_size(ask, source):
    sizes = collections.defaultdict(list)
    for row in source.values():
        if "section" in row.get("meta", {}):
            sizes[row["meta"]["section"]].append(int(row["meta"].get("installed-size", 0)))
    answer = ask("08-typical-size.sql")
    assert len(answer) == 5
    for section, median, largest in answer:
        of = sorted(sizes[section])
        assert len(of) >= 1000 and int(largest) == of[-1]
        middle = len(of) // 2  # between the two, whichever APPROX_QUANTILES takes
        assert of[middle - 1] <= int(median) <= of[min(middle + 1, len(of) - 1)]


def test_exact_versions(ask, source):
    users = sorted(source["libsqlite3-0"]["rdep"].items())
    assert ask("09-exact-versions.sql") == [list(user) for user in users if user[1].startswith("=")]


def test_changed_since(ask, source, loaded):
    before = datetime.datetime.now(datetime.timezone.utc)
    moment = f"TIMESTAMP:{before:%Y-%m-%d %H:%M:%S.%f}"
    assert ask("10-changed-since.sql", since=moment) == []
    names = ["bash", "dash"]
    subprocess.run(
        [sys.executable, str(EXAMPLE / "load.py"), "--only", *names],
        env=loaded, check=True, capture_output=True,
    )  # fmt: skip
    assert ask("10-changed-since.sql", since=moment) == [
        [name, source[name]["meta"]["version"]] for name in names
    ]


def test_the_page_has_each_question(loaded):
    """What questions.py prints has the structure of the page; the answers are the index's."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / "questions.py"), "--trestle", binary()],
        env=loaded, capture_output=True, text=True, check=True, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    page = (EXAMPLE / "questions.md").read_text()
    for heading in re.findall("^## .*$", done.stdout, re.MULTILINE):
        assert heading in page
    for query in (EXAMPLE / "questions").glob("*.sql"):
        text = query.read_text().split("\n", 1)[1]
        shown = "".join(f"    {line}".rstrip() + "\n" for line in text.splitlines())
        assert shown in page and shown in done.stdout
