"""`trestle copy`: tables between endpoints, whole and in part; killed, cut off, refused."""

import json
import random
import signal
import subprocess
import time

import pytest
from google.cloud.bigtable_admin_v2 import types as admin_types
from harness.counts import add, create_counts
from harness.drops import VALUE, drop_meanwhile, fill_and_drop, fill_before
from harness.killing import kill_some_times
from harness.patience import PATIENCE_SECONDS
from harness.proxy import FailingProxy
from harness.rpc import Rpc, set_cell
from harness.secured import account_key
from harness.server import binary
from harness.tokens import Key

MS = 1000


class Copier:
    """Copies a table of the shared server to a server of the test's own."""

    def __init__(self, source, target, directory, table_id):
        self.source, self.target = source, target
        self.directory, self.table_id = directory, table_id
        self.rpc = Rpc(target)

    def command(self, *options):
        return [
            binary(), "copy", self.table_id, "--from-endpoint", self.source,
            "--endpoint", self.target, *map(str, options),
        ]  # fmt: skip

    def run(self, *options):
        return subprocess.run(
            self.command(*options), cwd=self.directory, capture_output=True, text=True,
            timeout=PATIENCE_SECONDS,
        )  # fmt: skip

    def run_well(self, *options):
        done = self.run(*options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def rows(self, table_id=None):
        return self.rpc.read(f"projects/p/instances/i/tables/{table_id or self.table_id}")


@pytest.fixture
def copier(server, fresh_server, tmp_path):
    made = []

    def make(table_name):
        made.append(Copier(server.host, fresh_server().host, tmp_path, table_name.split("/")[-1]))
        return made[-1]

    yield make
    for each in made:
        each.rpc.close()


def fill(rpc, table, count, seed=1):
    """Rows of different sizes, some cells of several versions; keys of all bytes."""
    chance = random.Random(seed)
    rows = []
    for number in range(count):
        key = bytes([number % 256]) + b"%07d" % number
        cells = [
            set_cell(
                chance.choice(["f", "g"]), bytes([chance.randrange(256)]) * chance.randrange(3),
                chance.randbytes(chance.randrange(200)), MS * chance.randrange(1000),
            )
            for _ in range(chance.randrange(1, 6))
        ]  # fmt: skip
        rows.append((key, cells))
    for first in range(0, count, 500):
        assert set(rpc.mutate_rows(table, rows[first : first + 500])) == {0}


def test_a_table_arrives_whole(rpc, make_table, copier):
    rule = admin_types.GcRule(max_num_versions=7)
    splits = [b"\x20", b"\x80", b"\xf0"]
    table = make_table({"f": rule, "g": None}, splits)
    fill(rpc, table, 2999)
    rpc.mutate(table, b"large", set_cell("f", b"q", random.Random(2).randbytes(5 << 20), MS))
    copy = copier(table)
    assert copy.run_well("--verify", "full") == (
        "3000 rows read, 3000 written, 0 rejected\n3000 rows compared, 0 different\n"
    )
    assert copy.rows() == rpc.read(table)
    there = copy.rpc.get_table(table)
    assert there.column_families["f"].gc_rule == rule
    assert [key for key, _ in copy.rpc.sample_row_keys(table)] == [*splits, b""]


def test_a_row_of_more_cells_than_a_request_has(rpc, make_table, copier):
    table = make_table()
    for first in range(0, 130_000, 65_000):
        cells = [set_cell("f", b"%d" % i, b"", MS) for i in range(first, first + 65_000)]
        rpc.mutate(table, b"wide", *cells)
    rpc.mutate(table, b"next", set_cell("f", b"q", b"v", MS))
    copy = copier(table)
    assert copy.run_well("--verify", "full") == (
        "2 rows read, 2 written, 0 rejected\n2 rows compared, 0 different\n"
    )
    assert copy.rows() == rpc.read(table)


def test_again_it_changes_nothing(rpc, make_table, copier):
    table = make_table()
    fill(rpc, table, 100)
    copy = copier(table)
    for _ in range(2):
        assert copy.run_well("--verify", "full") == (
            "100 rows read, 100 written, 0 rejected\n100 rows compared, 0 different\n"
        )
    assert copy.rows() == rpc.read(table)


def test_aggregates_keep_their_states(rpc, new_table_id, copier):
    """Twice, because what is merged twice must count once."""
    table = create_counts(rpc, new_table_id())
    for number in range(50):
        rpc.mutate(table, b"a", add("ints", number), add("strings", f"s{number % 7}"))
        rpc.mutate(table, b"a", add("sum", number), set_cell("f", b"q", b"v", MS))
    copy = copier(table)
    for _ in range(2):
        assert "1 rows compared, 0 different" in copy.run_well("--verify", "full")
    assert copy.rows() == rpc.read(table)
    rpc.mutate(table, b"a", add("sum", 1))
    copy.rpc.mutate(table, b"a", add("sum", 1))
    assert copy.rows() == rpc.read(table)
    rpc.delete_table(table)


@pytest.mark.parametrize(
    "options, query",
    [
        (["--prefix", "b"], {"rows": {"row_ranges": [
            {"start_key_closed": b"b", "end_key_open": b"c"}]}}),
        (["--start", "a5", "--end", "b3"], {"rows": {"row_ranges": [
            {"start_key_closed": b"a5", "end_key_open": b"b3"}]}}),
        (["--families", "g"], {"filter": {"family_name_regex_filter": "g"}}),
        (["--versions", 1], {"filter": {"cells_per_column_limit_filter": 1}}),
        (["--families", "f|g", "--versions", 2, "--prefix", "a"], {
            "rows": {"row_ranges": [{"start_key_closed": b"a", "end_key_open": b"b"}]},
            "filter": {"cells_per_column_limit_filter": 2}}),
    ],
)  # fmt: skip
def test_a_part_of_it(rpc, make_table, copier, options, query):
    table = make_table(splits=[b"a7", b"b"])
    for number in range(90):
        key = b"%c%d" % (97 + number // 30, number % 30)
        cells = [set_cell(f, b"q", b"%d" % v, v * MS) for f in "fg" for v in range(3)]
        rpc.mutate(table, key, *cells)
    copy = copier(table)
    copy.run_well("--to-table", "part", "--verify", "full", *options)
    assert copy.rows("part") == rpc.read(table, **query)


def test_what_the_target_alone_has_is_found(rpc, make_table, copier):
    """Rows and cells that came to the copy by another hand while it was made: the checkpoint says
    that the table is the copy's own. Into a table that was there they belong."""
    table = make_table()
    fill(rpc, table, 1200)
    rpc.mutate(table, b"large", set_cell("f", b"q", b"v", MS))
    copy = copier(table)
    kill_behind_its_checkpoint(copy)
    there = f"projects/p/instances/i/tables/{copy.table_id}"
    copy.rpc.mutate(there, b"nobody's\xff", set_cell("f", b"q", b"v", MS))
    copy.rpc.mutate(there, b"large", set_cell("g", b"more", b"v", MS))
    copy.rpc.mutate(there, b"large", set_cell("f", b"q", b"v", MS))
    done = copy.run("--verify", "full")
    assert done.returncode == 1
    assert done.stdout == (
        "1201 rows read, 1201 written, 0 rejected\n1201 rows compared, 1 different\n"
        "1 rows are in the table, and not in the source\n"
    )
    assert "the row nobody's\\xff is in the table, and not in the source\n" in done.stderr
    assert "1201 rows compared, 0 different\n" in copy.run_well("--verify", "full")


def kill_behind_its_checkpoint(copy):
    """When the table is made and noted."""
    checkpoint = copy.directory / f"{copy.table_id}.checkpoint"
    running = subprocess.Popen(
        copy.command("--rate", 10), cwd=copy.directory, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline and running.poll() is None and not checkpoint.exists():
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    running.wait(PATIENCE_SECONDS)
    assert json.loads(checkpoint.read_text())["made_target"]


def test_a_killed_copy_goes_on(rpc, make_table, copier, tmp_path):
    table = make_table(splits=[b"\x40", b"\x80", b"\xc0"])
    fill(rpc, table, 8000)
    copy = copier(table)
    checkpoint = tmp_path / f"{copy.table_id}.checkpoint"
    done = kill_some_times(copy.command(), tmp_path, checkpoint, 3)
    out = copy.run("--verify", "full")
    assert out.returncode == 0, out.stderr
    assert f"{done} rows are done" in out.stderr
    assert out.stdout == (
        "8000 rows read, 8000 written, 0 rejected\n8000 rows compared, 0 different\n"
    )
    assert copy.rows() == rpc.read(table)
    assert not checkpoint.exists()


def test_connections_that_break(rpc, server, make_table, copier):
    table = make_table()
    fill(rpc, table, 3000)
    copy = copier(table)
    proxy = FailingProxy(server.host, 300_000)
    try:
        copy.source = proxy.host
        assert copy.run_well("--streams", 1, "--verify", "full").startswith("3000 rows read")
        assert proxy.connections > 1
    finally:
        proxy.close()
    assert copy.rows() == rpc.read(table)


def values(copy):
    return {key: cells[0].value for key, cells in copy.rows()}


def test_rows_that_were_dropped_are_not_copied(rpc, make_table, copier):
    table = make_table()
    left = fill_and_drop(rpc, table)
    copy = copier(table)
    assert copy.run_well("--verify", "full") == (
        "4 rows read, 4 written, 0 rejected\n4 rows compared, 0 different\n"
    )
    assert values(copy) == left


def test_rows_that_are_dropped_meanwhile_are_not_copied(rpc, server, make_table, copier):
    table = make_table()
    before = fill_before(rpc, table)
    copy = copier(table)
    with drop_meanwhile(rpc, table, server.host) as (copy.source, drop):
        running = subprocess.Popen(
            copy.command("--streams", 1, "--verify", "full"), cwd=copy.directory,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        drop()
        said, _ = running.communicate(timeout=PATIENCE_SECONDS)
    count = len(before) + 1
    assert (running.returncode, said) == (0,
        f"{count} rows read, {count} written, 0 rejected\n{count} rows compared, 0 different\n"
    )  # fmt: skip
    assert values(copy) == {**dict.fromkeys(before, VALUE), b"z5": b"new"}


def test_families_that_the_target_lacks(make_table, copier):
    copy = copier(make_table())
    copy.rpc.create_table(copy.table_id, ["f"])
    done = copy.run()
    assert done.returncode == 1
    assert "has no column family g" in done.stderr


def test_a_dry_run_writes_nothing(rpc, make_table, copier):
    table = make_table()
    fill(rpc, table, 10)
    copy = copier(table)
    assert copy.run_well("--dry-run") == "10 rows read, 10 fine, 0 rejected\n"
    parent = {"parent": "projects/p/instances/i"}
    tables = copy.rpc.admin.list_tables(parent, timeout=PATIENCE_SECONDS)
    assert list(tables.tables) == []


@pytest.mark.parametrize(
    "options, words",
    [
        (["--streams", 0], "--streams is 1 at least"),
        (["--prefix", "a", "--start", "b"], "exclude each other"),
        (["--from-tables", "x"], "--from-tables"),
    ],
)
def test_options_that_make_no_sense(copier, server, options, words):
    copy = Copier(server.host, server.host, None, "t")
    done = copy.run("--to-table", "u", *options)
    assert done.returncode == 2 and words in done.stderr


def test_a_table_is_not_copied_to_itself(server):
    done = Copier(server.host, server.host, None, "t").run()
    assert done.returncode == 2 and "the same table" in done.stderr


def test_a_table_that_is_not_there(copier, server):
    done = Copier(server.host, server.host, None, "nothing").run("--to-table", "u")
    assert done.returncode == 1 and "not found" in done.stderr.lower()


# --- who copies ---

@pytest.fixture
def account(secure, tmp_path):
    """A server that believes a service account's key; the file is as Google hands it out."""
    return account_key(secure, tmp_path), tmp_path / "account.json"


def test_a_service_account(account, fresh_server, tmp_path):
    secured, file = account
    rpc = secured.rpc("admin")
    fill(rpc, rpc.create_table("t", ["f", "g"]), 10)
    copy = Copier(secured.server.host.replace("127.0.0.1", "localhost"), fresh_server().host,
                  tmp_path, "t")  # fmt: skip
    ca = ["--from-ca", secured.authority.certificate]
    assert "credential" in copy.run(*ca).stderr
    copy.run_well(*ca, "--from-account", file)
    assert copy.rows() == rpc.read("projects/p/instances/i/tables/t")
    other = Key(tmp_path, "RS256", "other")
    file.write_text(file.read_text().replace(
        json.dumps((tmp_path / "key1.pem").read_text()), json.dumps(other.path.read_text())
    ))  # fmt: skip
    done = copy.run(*ca, "--from-account", file)
    assert done.returncode == 1 and "invalid authentication credentials" in done.stderr


def test_files_that_are_no_accounts(copier, server, tmp_path):
    copy = Copier(server.host, server.host, tmp_path, "t")
    file = tmp_path / "account.json"
    for text, words in [
        ("{", "is no JSON"),
        ("{}", "lacks client_email"),
        (json.dumps({"client_email": "a", "private_key_id": "b", "private_key": "c"}),
         "no private RSA key"),
    ]:  # fmt: skip
        file.write_text(text)
        done = copy.run("--to-table", "u", "--from-account", file)
        assert done.returncode == 1 and words in done.stderr


def test_administrative_calls_to_another_server(rpc, make_table, copier, fresh_server):
    """As Google has it: rows are at the one, the table's families are asked for at the other."""
    table = make_table(["f"])
    rpc.mutate(table, b"k", set_cell("f", b"q", b"v", MS))
    copy = copier(table)
    host = fresh_server().host
    other = Rpc(host)
    other.create_table(copy.table_id, ["f", "only-there"])
    copy.run_well("--from-admin-endpoint", host)
    assert copy.rows() == rpc.read(table)
    assert "only-there" in copy.rpc.get_table(table).column_families
    other.close()
