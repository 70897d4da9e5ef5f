"""The schema advisor: for each rule a table that breaks it and one that does not, asked by
`trestle advise`, which is a client, and by Insight.Advise, where the server looks itself."""

import hashlib
import json
import random
import re
import time

import pytest
from google.cloud.bigtable_admin_v2 import types as admin_types
from google.cloud.bigtable_v2 import types
from harness.advice import advice_document
from harness.fake_heat import FakeHeat
from harness.hot_load import scanning
from harness.patience import PATIENCE_SECONDS
from harness.plain import plain_bigtable
from harness.rest import Rest
from harness.rpc import INSTANCE, delete_row, set_cell
from harness.server import ROOT, run_trestle

MS = 1000
DAY = 86400 * 1000 * MS
YEAR = 365 * DAY
NEWEST = admin_types.GcRule(max_num_versions=1)
WORDS = "amber basil cedar delta ember fable grove hazel ivory jade koala lemon maple".split()


def digest(number):
    return hashlib.md5(b"%d" % number).hexdigest()


def user(number):
    """A key that no rule has anything to say about."""
    return f"{WORDS[number % 13]}-{WORDS[number // 13 % 13]}-{number}".encode()


def says_what_it_reads(done, what, host):
    """All that stands on stderr."""
    rows, size = r"\d+ rows at most", r"no more after \d+\.\d MiB,"
    line = rf"trestle advise: reads {rows} of {what}, and {size} at {host}\n"
    return re.fullmatch(line, done.stderr)


def advise(host, table, *options):
    """What `trestle advise` finds as a client, by rule."""
    done = run_trestle(
        "advise", table.split("/")[-1], "--endpoint", host, "--format", "json", "--seed", 7,
        *(options or ("--by", "client")), timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    assert says_what_it_reads(done, table.split("/")[-1], host)
    report = json.loads(done.stdout)
    silent = 0 if report["sample"]["isEnough"] else 3
    assert done.returncode == (1 if report["findings"] else silent)
    return {each["rule"]: each for each in report["findings"]}


def insight(host, instance, *tables):
    """What Insight.Advise says: the documents and the names of tables that were left out."""
    query = "&".join(f"tables={table}" for table in tables)
    answer = Rest(host).call("GET", f"/v1/{instance}:advise?{query}")
    return [advice_document(each) for each in answer["tables"]], answer.get("notLookedAt", [])


def look(host, table):
    """What the server finds by itself, by rule."""
    instance, table_id = table.split("/tables/")
    [report], left_out = insight(host, instance, table_id)
    assert (report["table"], left_out) == (table_id, [])
    return {each["rule"]: each for each in report["findings"]}


def advise_twice(host, table):
    """What a client finds, which the server finds, too."""
    findings = advise(host, table)
    assert set(look(host, table)) == set(findings)
    return findings


@pytest.fixture
def found(server):
    return lambda table: advise_twice(server.host, table)


def fill_table(rpc, table, keys, value=b"value"):
    """Rows with one cell each, and these keys."""
    rows = [(key, [set_cell("f", b"q", value)]) for key in keys]
    for first in range(0, len(rows), 1000):
        assert set(rpc.mutate_rows(table, rows[first : first + 1000])) == {0}
    return table


@pytest.fixture
def fill(rpc, make_table):
    """Makes a table of such rows, with a family that has a rule."""
    return lambda keys, value=b"value": fill_table(rpc, make_table({"f": NEWEST}), keys, value)


@pytest.fixture
def unheated(fresh_server, connect):
    """What advises, and what fills a table, of a server that counts no heat: under a sanitizer a
    hundred MiB for one row are load enough to be hot."""
    server = fresh_server("--heat=false")
    rpc = connect(server.host)

    def fill(keys):
        return fill_table(rpc, rpc.create_table("t", {"f": NEWEST}), keys)

    return lambda table: advise_twice(server.host, table), rpc, fill


def test_nothing_is_wrong(found, fill):
    assert found(fill(user(i) for i in range(3000))) == {}
    assert found(fill([])) == {}


# --- keys ---


def some_date(i):
    return f"2024-{i % 12 + 1:02}-{i % 28 + 1:02}"


def test_personal_data_is_told_and_not_shown(server, fill):
    """Neither as a client nor from within, unless it is asked for."""
    table = fill(f"{some_date(i)}#jo.{i * 7919 % 9973}@example{i}.com".encode() for i in range(500))
    for by in ("client", "server"):
        hidden = advise(server.host, table, "--by", by)
        assert set(hidden) == {"personal-data", "key-time-first"}
        assert "@" not in json.dumps(hidden)
        assert all(key.endswith("#<e-mail>") for key in hidden["key-time-first"]["keys"])
        assert hidden["personal-data"]["better"][0]["better"].endswith("#<id>")
        shown = advise(server.host, table, "--by", by, "--show-values")
        assert all("@example" in key for key in shown["key-time-first"]["keys"])


@pytest.mark.parametrize(("rule", "key", "good"), [
    ("key-time-first", lambda i: f"{some_date(i)}#{i}", lambda i: f"{user(i)}#{some_date(i)}"),
    ("key-time-first", lambda i: 1700000000000 + 98765 * i,
     lambda i: f"{random.Random(i).randrange(10**13):013}"),
    ("key-sequential", lambda i: f"{i:010}", lambda i: f"{random.Random(i).randrange(10**10):010}"),
    ("key-sequential", lambda i: f"order{i}", lambda i: f"order-{user(i)}"),
    ("key-hashed", lambda i: f"{digest(i)}#{user(i)}", lambda i: f"{digest(i)[:2]}#{user(i)}"),
    # Numbers of one width: others are a fault of their own where a sample has few of the words.
    ("key-domain", lambda i: f"www.{WORDS[i % 13]}{i // 9 + 100}.com/{i:04}",
     lambda i: f"com.{WORDS[i % 13]}{i // 9 + 100}.www/{i:04}"),
    ("key-padding", lambda i: f"{user(i)}#{i}", lambda i: f"{user(i)}#{i:04}"),
    ("key-order", lambda i: f"{digest(i)[:7]}#city{i % 40:02}#land{i % 7}",
     lambda i: f"land{i % 7}#city{i % 40:02}#{digest(i)[:7]}"),
])  # fmt: skip
def test_how_keys_begin(found, fill, rule, key, good):
    bad = found(fill(str(key(i)).encode() for i in range(3000)))
    assert set(bad) == {rule}
    assert len(bad[rule]["keys"]) == 3
    assert all(field in bad[rule] for field in ("severity", "title", "evidence", "why", "remedy"))
    assert found(fill(str(good(i)).encode() for i in range(3000))) == {}


def test_where_new_rows_go(found, fill):
    """Behind the last row; behind the last of those with the word; before the first, if times
    fall."""
    def place(keys):
        [finding] = found(fill(str(key).encode() for key in keys)).values()
        return finding["range"]["start"], finding["range"]["end"]

    assert place(f"{i:010}" for i in range(3000)) == (f"{2999:010}", "")
    assert place(f"order#{i:010}" for i in range(3000)) == (f"order#{2999:010}", "order$")
    falling = [2**63 - 1 - 1700000000000 - 98765 * i for i in range(3000)]
    assert place(falling) == ("", str(min(falling)))


def test_better_keys(found, fill):
    """The other field first; the labels of a domain in their other order; digits reversed."""
    dates = found(fill(f"{some_date(i)}#sensor{i}".encode() for i in range(3000)))
    for each in dates["key-time-first"]["better"]:
        date, sensor = each["key"].split("#")
        assert each["better"] == f"{sensor}#{date}"
    numbers = found(fill(b"%010d" % i for i in range(3000)))
    for each in numbers["key-sequential"]["better"]:
        assert each["better"] == each["key"][::-1]
    hosts = found(fill(b"www.site%d.com/%d" % (i // 9, i) for i in range(3000)))
    for each in hosts["key-domain"]["better"]:
        host, path = each["key"].split("/")
        assert each["better"] == ".".join(host.split(".")[::-1]) + "/" + path


def test_random_bytes(found, fill):
    assert set(found(fill(random.Random(i).randbytes(16) for i in range(2000)))) == {"key-hashed"}


def test_long_keys(found, fill):
    keys = [user(i) for i in range(50)]
    assert found(fill([*keys, b"x" * 1024])) == {}
    assert set(found(fill([*keys, b"x" * 1025]))) == {"key-size"}


# --- sizes and names ---


def test_large_cells(found, rpc, fill):
    table = fill(user(i) for i in range(20))
    rpc.mutate(table, user(3), set_cell("f", b"large", bytes(10 << 20)))
    assert found(table) == {}
    rpc.mutate(table, user(3), set_cell("f", b"large", bytes((10 << 20) + 1)))
    assert set(found(table)) == {"cell-size"}


def test_large_rows_are_estimated(unheated):
    """Of a row of 100 MiB little is read: how large it is, the server says before it sends it."""
    found, rpc, fill = unheated
    table = fill(user(i) for i in range(20))
    parts = [set_cell("f", b"part%03d" % i, bytes(1 << 20)) for i in range(119)]
    for part in parts[:89]:
        rpc.mutate(table, user(3), part)
    assert found(table) == {}
    for part in parts[89:]:
        rpc.mutate(table, user(3), part)
    findings = found(table)
    assert set(findings) == {"row-size"}
    assert "has 119 MiB" in findings["row-size"]["evidence"]


def test_rows_that_cannot_be_read(unheated):
    """Which the server answers with an error, in whose words the key is."""
    found, rpc, fill = unheated
    table = fill([*(user(i) for i in range(20)), b"it's \\ \xff large"])
    for number in range(27):
        part = set_cell("f", b"part%d" % number, bytes(10 << 20))
        rpc.mutate(table, b"it's \\ \xff large", part)
    findings = found(table)
    assert set(findings) == {"row-size"}
    assert "about 256 MiB" in findings["row-size"]["evidence"]
    assert findings["row-size"]["keys"] == ["it's \\x5c \\xff large"]


def test_families(found, make_table):
    hundred = {f"f{i}": NEWEST for i in range(100)}
    assert found(make_table(hundred)) == {}
    assert set(found(make_table({**hundred, "g": NEWEST}))) == {"family-count"}
    assert found(make_table({"sixteen_bytes_ab": NEWEST})) == {}
    assert set(found(make_table({"seventeen_bytes_a": NEWEST}))) == {"family-name"}


def test_names_of_columns(found, rpc, make_table):
    def rows(qualifier):
        table = make_table({"f": NEWEST})
        cells = [(user(i), [set_cell("f", qualifier(i), b"v")]) for i in range(100)]
        assert set(rpc.mutate_rows(table, cells)) == {0}
        return table

    assert found(rows(lambda i: b"x" * 32)) == {}
    assert set(found(rows(lambda i: b"x" * 33))) == {"qualifier-name"}
    assert found(rows(lambda i: b"%050d" % i)) == {}  # data


# --- versions ---


def now():
    return time.time_ns() // 1000 // MS * MS


def versions(rpc, table, count, step, family="f", rows=30):
    """So many versions of a column in each row, that far apart, in place of those it had."""
    newest = now()
    for i in range(rows):
        rpc.mutate(table, user(i), types.Mutation(delete_from_family={"family_name": family}))
        cells = [set_cell(family, b"q", b"v", newest - step * j) for j in range(count)]
        rpc.mutate(table, user(i), *cells)


def test_cells_that_are_rewritten(found, rpc, make_table):
    table = make_table({"f": admin_types.GcRule(max_num_versions=500)})
    versions(rpc, table, 1, DAY)
    versions(rpc, table, 99, 1000 * MS, rows=1)
    assert found(table) == {}
    versions(rpc, table, 100, 1000 * MS, rows=1)
    assert set(found(table)) == {"cell-rewrites"}


def test_families_without_a_rule(found, rpc, make_table):
    table = make_table({"f": None, "g": admin_types.GcRule(max_num_versions=100)})
    versions(rpc, table, 1, DAY, "f")
    versions(rpc, table, 9, DAY, "g")
    assert found(table) == {}
    versions(rpc, table, 2, DAY, "f")
    assert set(found(table)) == {"gc-none"}


def test_many_versions(found, rpc, make_table):
    table = make_table({"f": admin_types.GcRule(max_num_versions=1000)})
    versions(rpc, table, 90, DAY)
    assert found(table) == {}
    versions(rpc, table, 110, DAY)
    assert set(found(table)) == {"gc-versions"}


def test_old_versions(found, rpc, make_table):
    ten = admin_types.GcRule(max_num_versions=10)
    age = admin_types.GcRule(max_age={"seconds": 10 * YEAR // MS // 1000})
    union = admin_types.GcRule(union={"rules": [ten, age]})
    tables = [make_table({"f": ten}), make_table({"f": union})]
    for table in tables:
        versions(rpc, table, 3, 2 * YEAR)
    assert set(found(tables[0])) == {"gc-old"}
    assert found(tables[1]) == {}


def test_ranges_that_are_mostly_gone(fresh_server, connect):
    """What was deleted takes its space until it is compacted, which this server does not get to."""
    server = fresh_server("--balance=false")
    rpc = connect(server.host)
    table = rpc.create_table("t", {"f": NEWEST})
    chance = random.Random(1)
    for i in range(40):
        rpc.mutate(table, user(i), set_cell("f", b"q", chance.randbytes(1 << 20)))
    assert advise_twice(server.host, table) == {}
    for i in range(39):
        rpc.mutate(table, user(i), delete_row())
    assert rpc.sample_row_keys(table)[-1][1] > 8 << 20
    rpc.mutate(table, user(39), delete_row())
    assert set(advise_twice(server.host, table)) == {"tombstones"}


def test_rows_that_hold_nothing_any_more(fresh_server, connect):
    """What only the server sees: a long way over deleted rows, among others."""
    server = fresh_server("--balance=false")
    rpc = connect(server.host)
    table = rpc.create_table("t", {"f": NEWEST})
    cell = set_cell("f", b"q", b"v")
    rows = [(b"queue-%06d" % (7 * i * i % 999983), [cell]) for i in range(9000)]
    for first in range(0, len(rows), 1000):
        assert set(rpc.mutate_rows(table, rows[first : first + 1000])) == {0}
    assert "tombstones" not in look(server.host, table)
    rows.sort()
    for first in range(0, 8000, 1000):
        gone = [(key, [delete_row()]) for key, _ in rows[first : first + 1000]]
        assert set(rpc.mutate_rows(table, gone)) == {0}
    finding = look(server.host, table)["tombstones"]
    assert "passed over" in finding["evidence"]
    assert finding["range"]["start"] < rows[8000][0].decode() <= finding["range"]["end"]


# --- heat ---


@pytest.fixture
def heated(server, rpc, fill):
    """What is found if ListHotTablets says that."""
    table = fill(user(i) for i in range(100))
    fakes = []

    def ask(*tablets, seconds=20):
        fakes.append(FakeHeat(rpc.get_table(table), tablets[0] and tablets, seconds))
        return advise(
            server.host, table, "--by", "client", "--admin-endpoint", fakes[-1].host
        )

    yield ask
    for each in fakes:
        each.close()


def test_hot_ranges(heated):
    assert heated(None) == {}
    assert heated(("b", "c", 0, 90), seconds=29) == {}
    assert set(heated(("b", "c", 0, 90), seconds=30)) == {"hot-range"}
    assert heated(("b", "c", 0, 9), ("b", "c", 60, 9)) == {}
    assert heated(("b", "c", 0, 30), ("b", "c", 60, 30), ("c", "d", 0, 30), ("d", "", 0, 31)) == {}
    findings = heated(("b", "c", 0, 30), ("b", "c", 60, 30), ("c", "d", 0, 30))
    assert set(findings) == {"hot-range"}
    assert findings["hot-range"]["range"] == {"start": "b", "end": "c"}
    assert all(key.startswith("basil") for key in findings["hot-range"]["keys"])
    assert findings["hot-range"]["keys"]


def test_hot_rows(heated):
    only, behind = user(0).decode(), user(0).decode() + "\\x00"
    findings = heated((only, behind, 0, 30))
    assert set(findings) == {"hot-key"}
    assert findings["hot-key"]["severity"] == "critical"
    better = [(each["key"], each["better"]) for each in findings["hot-key"]["better"]]
    assert better == [(only, f"{only}#{number}") for number in range(3)]
    assert heated((only, behind, 0, 9)) == {}
    assert heated(("amber", "basil", 0, 30)) == {}


def test_loads_that_rise(heated):
    others = [("c", "d", 0, 99), ("d", "e", 0, 99)]
    assert set(heated(("b", "c", 0, 20), ("b", "c", 300, 40), *others)) == {"ramp"}
    assert heated(("b", "c", 0, 20), ("b", "c", 301, 40), *others) == {}
    assert heated(("b", "c", 0, 21), ("b", "c", 300, 40), *others) == {}


def find_load(find, server, connect):
    """What `find` says of scans of the rows from g on, when it says that a range is hot."""
    rpc = connect(server.host)
    table = rpc.create_table("t", {"f": NEWEST}, splits=[b"g", b"\xff\x00"])
    fill_table(rpc, table, (user(i) for i in range(1000)), bytes(1000))
    assert advise(server.host, table) == {}
    deadline = time.monotonic() + PATIENCE_SECONDS
    with scanning(connect, server, table, b"g"):
        while "hot-range" not in (findings := find(server.host, table)):
            assert time.monotonic() < deadline
            time.sleep(1)  # each look is a process, and takes the processor from the load
    assert findings["hot-range"]["range"]["start"] >= "g"
    assert min(findings["hot-range"]["keys"]) >= "g"
    return findings


def test_a_load_is_found(fresh_server, connect):
    """By the server, which sees each window. A client is told of a range once in a quarter of an
    hour, and so for one, which is too short here to count. That the scans' filter lets nothing pass
    is told, too, once the scans have been counted."""
    findings = find_load(look, fresh_server("--heat-window", "1s", "--balance=false"), connect)
    rising = {"ramp"}  # as it may be to see from second to second on a machine with much else to do
    assert set(findings) - rising - {"filtered-scans"} == {"hot-range"}


def test_a_load_is_found_by_a_client(fresh_server, connect):
    """When it has lasted half a minute in one window."""
    find_load(advise, fresh_server("--heat-window", "1h", "--balance=false"), connect)


# --- tables ---


def test_small_tables(fresh_server, connect):
    server = fresh_server()
    rpc = connect(server.host)
    for month in range(5):
        rpc.create_table(f"events_2024_{month:02}", {"f": NEWEST})
        rpc.create_table(f"log{month}_{'x' * month}", {"f": NEWEST})
    for number in range(12):
        families = {"f": NEWEST, "g": NEWEST} if number % 2 else {"f": NEWEST}
        rpc.create_table(f"tenant{number}", families)
    tables = f"{INSTANCE}/tables"
    assert advise_twice(server.host, f"{tables}/events_2024_00") == {}
    rpc.create_table("events_2024_05", {"f": NEWEST})
    assert set(advise_twice(server.host, f"{tables}/events_2024_00")) == {"small-tables"}
    assert advise_twice(server.host, f"{tables}/log1_x") == {}  # they differ in more
    assert advise_twice(server.host, f"{tables}/tenant0") == {}  # their families differ
    for customer in ("acme", "globex", "initech", "hooli", "umbrella", "stark"):
        rpc.create_table(f"{customer}-orders", {"f": NEWEST})
    assert set(advise_twice(server.host, f"{tables}/acme-orders")) == {"small-tables"}


# --- asked of the server ---


def test_all_tables_of_an_instance(fresh_server, connect):
    server = fresh_server()
    rpc = connect(server.host)
    for name in ("b", "a", "c"):
        rpc.create_table(name, {"seventeen_bytes_a" if name == "c" else "f": NEWEST})
    rpc.create_table("d", instance="projects/p/instances/other")
    documents, left_out = insight(server.host, INSTANCE)
    assert [each["table"] for each in documents] == ["a", "b", "c"]
    assert [len(each["findings"]) for each in documents] == [0, 0, 1]
    assert left_out == []
    documents, _ = insight(server.host, INSTANCE, "c", "a")
    assert [each["table"] for each in documents] == ["c", "a"]
    for path, code in [
        (f"{INSTANCE}:advise?tables=nowhere", "NOT_FOUND"),
        (f"{INSTANCE}:advise?tables=no/name", "INVALID_ARGUMENT"),
    ]:
        assert Rest(server.host).ask("GET", f"/v1/{path}")[1].count(code) == 1


def test_loads_that_rise_are_counted(fresh_server, connect):
    """Over 750 writes a second in a minute, to the one tablet that there is."""
    server = fresh_server("--heat-window", "1s", "--balance=false")
    rpc = connect(server.host)
    table = rpc.create_table("t", {"f": NEWEST})

    def write(requests, chance=random.Random(1)):
        for _ in range(requests):
            keys = [user(chance.randrange(5000)) for _ in range(1000)]
            rows = [(key, [set_cell("f", b"q", b"v")]) for key in keys]
            assert set(rpc.mutate_rows(table, rows)) == {0}

    write(10)
    assert look(server.host, table) == {}
    deadline = time.monotonic() + PATIENCE_SECONDS
    while "ramp" not in (findings := look(server.host, table)):
        assert time.monotonic() < deadline
        write(10)
    assert findings["ramp"]["range"] == {"start": "", "end": ""}
    assert findings["ramp"]["keys"]


def test_rows_that_are_rewritten_are_counted(fresh_server, connect):
    """Under a rule that keeps one version nothing is left of it, but the server has counted."""
    server = fresh_server()
    rpc = connect(server.host)
    table = rpc.create_table("t", {"f": NEWEST})

    def write(keys):
        rows = [(key, [set_cell("f", b"q", b"v")]) for key in keys]
        assert set(rpc.mutate_rows(table, rows)) == {0}

    write([user(i) for i in range(1500)])
    assert look(server.host, table) == {}
    deadline = time.monotonic() + PATIENCE_SECONDS
    while "cell-rewrites" not in (findings := look(server.host, table)):
        assert time.monotonic() < deadline
        write([b"counter"] * 400 + [user(i) for i in range(100)])
    assert findings["cell-rewrites"]["keys"] == ["counter"]
    assert advise(server.host, table) == {}


def test_rising_keys_are_counted(fresh_server, connect):
    """A write frontier behind a word that keys share, which a sample does not show."""
    server = fresh_server("--heat-window", "1s")
    rpc = connect(server.host)
    table = rpc.create_table("t", {"f": NEWEST})
    shuffled = random.Random(1).sample(range(20000), 20000)
    for first in range(0, 10000, 1000):
        part = [(user(i), [set_cell("f", b"q", b"v")]) for i in shuffled[first : first + 1000]]
        assert set(rpc.mutate_rows(table, part)) == {0}
    deadline = time.monotonic() + PATIENCE_SECONDS
    assert look(server.host, table) == {}
    number = 0

    def is_named(findings):
        keys = findings["hot-range"]["keys"] if "hot-range" in findings else []
        return any(key.startswith("grove-z") for key in keys)

    while not is_named(findings := look(server.host, table)):
        assert time.monotonic() < deadline
        part = [(b"grove-z%09d" % (number + i), [set_cell("f", b"q", b"v")]) for i in range(5000)]
        assert set(rpc.mutate_rows(table, part)) == {0}
        number += len(part)
    assert "rise" in findings["hot-range"]["evidence"]
    assert findings["hot-range"]["range"]["end"] == "" or findings["hot-range"]["range"][
        "end"
    ] > "grove-z"


def test_how_much_is_looked_at(server, fill):
    table = fill(user(i) for i in range(1000))

    def sample(query):
        answer = Rest(server.host).call("GET", f"/v1/{INSTANCE}:advise?tables={table_id}&{query}")
        return int(answer["tables"][0]["sample"]["rows"])

    table_id = table.split("/")[-1]
    assert sample("places=5&rows=2&seed=7") <= 10
    assert 50 < sample("places=50&rows=20&seed=7") <= 1000
    for query in ("places=-1", "rows=1001", "seed=-1"):
        path = f"/v1/{INSTANCE}:advise?tables={table_id}&{query}"
        status, text = Rest(server.host).ask("GET", path)
        assert (status, "must be between 0 and" in text) == (400, True)


# --- the command ---


def report_of(host, table, *options):
    done = run_trestle(
        "advise", table.split("/")[-1], "--endpoint", host, "--format", "json", *options,
        timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    assert says_what_it_reads(done, table.split("/")[-1], host)
    return json.loads(done.stdout)


def test_the_command_asks_the_server(server, fill):
    table = fill(f"{some_date(i)}#{i}".encode() for i in range(1000))
    for by, is_by_server in [("auto", True), ("server", True), ("client", False)]:
        report = report_of(server.host, table, "--by", by, "--places", "20")
        assert report["sample"]["isByServer"] == is_by_server
        assert report["sample"]["places"] <= 20
        assert [each["rule"] for each in report["findings"]] == ["key-time-first"]
        assert report["table"] == table.split("/")[-1]


def test_the_command_looks_at_all_tables(fresh_server, connect):
    server = fresh_server()

    def run(*options):
        done = run_trestle(
            "advise", "--all", "--endpoint", server.host, *options, timeout=PATIENCE_SECONDS
        )
        assert says_what_it_reads(done, r"each of \d tables?", server.host)
        return done

    assert (run().stdout, run().returncode) == ("There are no tables.\n", 3)
    assert json.loads(run("--format", "json").stdout) == []
    rpc = connect(server.host)
    for name in ("b", "a", "c"):
        rpc.create_table(name, {"seventeen_bytes_a" if name == "b" else "f": NEWEST})
    for by in ("server", "client"):
        done = run("--format", "json", "--by", by)
        documents = json.loads(done.stdout)
        assert [each["table"] for each in documents] == ["a", "b", "c"]
        assert [len(each["findings"]) for each in documents] == [0, 1, 0]
        assert done.returncode == 1
    assert run("--fail-on", "critical").returncode == 3  # there are no rows
    for options, begin in ([], f"{INSTANCE}/tables/"), (["--instance", "i"], ""):
        lines = run(*options).stdout.splitlines()
        assert [line.split(":")[0] for line in lines if " sampled at " in line] == [
            f"{begin}{name}" for name in "abc"
        ]
    for wrong, words in [
        (["t", "--all"], "either a table, or --all tables, or a --database"),
        (["--all", "--database", "d"], "either a table, or --all tables, or a --database"),
        ([], "the table comes first; or --all tables, or a --database"),
    ]:
        done = run_trestle("advise", *wrong)
        assert done.returncode == 2
        assert words in done.stderr


def test_the_command_looks_itself_elsewhere(server, rpc, fill):
    """At a server that speaks Bigtable's API and no more."""
    table = fill(f"{some_date(i)}#{i}".encode() for i in range(1000))
    with plain_bigtable(server.host) as host:
        report = report_of(host, table)
        assert not report["sample"]["isByServer"]
        assert [each["rule"] for each in report["findings"]] == ["key-time-first"]
        for arguments in [
            (table.split("/")[-1], "--by", "server"),
            ("--database", "(default)"),
        ]:
            done = run_trestle("advise", *arguments, "--endpoint", host)
            assert done.returncode == 1
            assert "does not look itself, as a Trestle does" in done.stderr


def test_it_reads_little(server, rpc, fill):
    """A table of 60 MB: the bytes allowed bound what is read, and the report says so."""
    table = fill((user(i) for i in range(6000)), random.Random(1).randbytes(10000))
    report = json.loads(run_trestle(
        "advise", table.split("/")[-1], "--endpoint", server.host, "--format", "json",
        "--max-bytes", "1MB", "--by", "client",
    ).stdout)  # fmt: skip
    assert report["sample"]["isCut"]
    assert report["sample"]["bytes"] < 2 << 20
    assert report["sample"]["hasHotTablets"]
    assert report["findings"] == []


def test_the_report_as_text(server, fill):
    table = fill(f"{some_date(i)}#{i}".encode() for i in range(1000)).split("/")[-1]
    done = run_trestle("advise", table, "--endpoint", server.host)
    assert done.returncode == 1
    assert done.stdout.startswith(f"{table}: ")
    assert "warning: Row keys begin with a time (key-time-first)\n" in done.stdout
    for words in ("  Keys: 2024-", "  Why it matters: ", "  What to do: ", "  Better: "):
        assert words in done.stdout
    assert run_trestle(
        "advise", table, "--endpoint", server.host, "--fail-on", "critical"
    ).returncode == 0  # fmt: skip


def test_all_rules_are_listed():
    rules = json.loads(run_trestle("advise", "--rules", "--format", "json").stdout)
    written = (ROOT / "src/advisor/rules.def").read_text().count("\nRULE(")
    assert len({each["rule"] for each in rules}) == len(rules) == written
    text = run_trestle("advise", "--rules").stdout
    assert all(f"{each['rule']} ({each['severity']}): {each['title']}\n" in text for each in rules)
    told = {each["rule"]: each for each in rules}["key-time-first"]
    assert [(each["number"], each["heading"]) for each in told["practices"]] == [
        ("B21", "Row keys to avoid")
    ]
    assert "  Before: {before}\n  After: {after}\n".format(**told) in text


def test_practices_are_listed():
    page = run_trestle("advise", "--practices").stdout
    assert page == (ROOT / "docs/reference/practices.md").read_text()
    rows = [line.split(" | ") for line in page.splitlines() if re.match(r"\| [BD]\d", line)]
    assert len(rows) == 44 and all(len(row) == 7 for row in rows)
    tests = re.findall(r"`([\w/]+\.(?:c|py)):(\w+)`", page)
    assert len(tests) > 100
    for path, name in tests:
        is_python = path.endswith(".py")
        text = (ROOT / ("tests" if is_python else "src") / path).read_text()
        assert (f"def {name}(" if is_python else f"static void {name}(void **state)") in text


@pytest.mark.parametrize("arguments", [
    (),
    ("--format", "text"),
    ("t", "--rules"),
    ("t", "--practices"),
    ("t", "--format", "markdown"),
    ("t", "--places", "0"),
    ("t", "--fail-on", "never"),
    ("t", "u"),
    ("t", "--by", "nobody"),
    ("t", "--database", "d"),
    ("--database", "d", "--rules"),
    ("--database", "d", "--by", "client"),
])  # fmt: skip
def test_what_makes_no_sense(arguments):
    done = run_trestle("advise", *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("trestle advise: ")
    assert done.stdout == ""


def test_a_table_that_is_not_there(server):
    done = run_trestle("advise", "nowhere", "--endpoint", server.host)
    assert done.returncode == 1
    assert "nowhere" in done.stderr
