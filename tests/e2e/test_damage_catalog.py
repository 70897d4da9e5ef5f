"""Damage to a table file of the catalog: a start refuses, and one that may go on without what is
lost serves the rest. Nobody may do more than before, and no rows go (docs/operating/repair.md)."""

import os
import re

import pytest
from google.iam.v1 import iam_policy_pb2, policy_pb2
from grpc import StatusCode
from harness.damage import CATALOG, flip, tables, tables_of
from harness.moved_server import DAY_SECONDS, MovedServer
from harness.rpc import Rpc, fails_with, set_cell
from harness.secured import OTHER_TABLE, POLICY, TABLE, Secured
from harness.server import EXTERNAL, Server, run_trestle

pytestmark = pytest.mark.skipif(bool(EXTERNAL), reason="needs servers of its own")

MODEL = {
    TABLE: {b"a%d" % n: b"1" for n in range(9)},
    OTHER_TABLE: {b"b%d" % n: b"2" for n in range(9)},
}
# Of the table no file says who may read it.
RULES = {name: policy for name, policy in POLICY.items() if name != TABLE}
KEPT = re.compile(r"^kept: keyspace (\d+)", re.MULTILINE)


def secure(place):
    """A server that is not yet started. It keeps no heat: that would be one keyspace more."""

    def prepare(*arguments):
        return Server(place, (*arguments, "--heat=false"))

    return Secured(place, prepare, policy=RULES)


def allow(secured, who):
    binding = policy_pb2.Binding(role="roles/bigtable.user", members=[f"user:{who}@example.com"])
    policy = policy_pb2.Policy(bindings=[binding])
    secured.rpc("admin").admin.set_iam_policy(
        iam_policy_pb2.SetIamPolicyRequest(resource=TABLE, policy=policy)
    )


def rows(secured, token, table):
    return {key: cells[0].value for key, cells in secured.rpc(token).read(table)}


@pytest.fixture
def hit(tmp_path):
    """(a server with a damaged catalog, the file): all that it had is in tables, and of that
    nothing can be read, since the file has no footer."""
    secured = secure(tmp_path)
    server = secured.server.start()
    admin = secured.rpc("admin")
    for table, content in MODEL.items():
        admin.create_table(table.rsplit("/")[-1], {"f": {"max_num_versions": 3}})
        for key, value in content.items():
            admin.mutate(table, key, set_cell("f", b"q", value, 1000))
    allow(secured, "stranger")
    assert rows(secured, "stranger", TABLE) == MODEL[TABLE]
    server.stop()
    (server.data / "SYNCED").unlink()
    salvage(server)
    server.stop()
    secured.place = tmp_path / "whole"
    made = run_trestle("backup", "create", secured.place, "--data-dir", server.data)
    assert made.returncode == 0, made.stderr
    path = max(tables_of(server.data, CATALOG), key=lambda each: each.stat().st_size)
    flip(path, -12, 8)
    yield secured, path
    server.close()
    secured.close()


def salvage(server):
    server.arguments.append("--salvage")
    server.start()
    server.arguments.remove("--salvage")


def expect_no_access(secured, *tables):
    for table in tables:
        with fails_with(StatusCode.PERMISSION_DENIED):
            secured.rpc("stranger").read(table)


def test_it_is_refused_and_told(hit):
    secured, path = hit
    server, sound = secured.server, {each: each.read_bytes() for each in path.parent.glob("*.sst")}
    for _ in range(2):
        with pytest.raises(RuntimeError) as refused:
            server.start()
        said = str(refused.value)
        assert re.search(f"the catalog is damaged.*tablets.*{path.name}.*--salvage", said)
        assert "access policies" in said
    check = ("serve", "--check", "--data-dir", server.data, "--listen", "127.0.0.1:0")
    told = run_trestle(*check)
    assert told.returncode == 1
    words = rf"the catalog is damaged, and may have lost .*{path.name}.*--salvage"
    assert re.search(rf"^wrong: --data-dir: {words}", told.stdout, re.MULTILINE)
    told = run_trestle(*check, "--salvage")
    assert told.returncode == 0
    assert re.search(rf"^note: {words}", told.stdout, re.MULTILINE)
    doctor = run_trestle("doctor", server.data)
    assert doctor.returncode == 1
    assert re.search(rf"damage: records of the catalog \(.*{path.name}", doctor.stderr)
    told = run_trestle("repair", server.data)
    assert told.returncode == 1
    assert re.search(rf"would lose: records of the catalog \(.*{path.name}", told.stdout)
    assert "nothing was changed" in told.stdout
    assert not (server.data / "lost.tsv").exists()
    assert sound == {each: each.read_bytes() for each in path.parent.glob("*.sst")}


def test_a_repair_makes_one_that_starts(hit):
    secured, path = hit
    server = secured.server
    damaged = path.read_bytes()
    mended = run_trestle("repair", server.data, "--in-place")
    assert mended.returncode == 0, mended.stderr
    (line,) = (server.data / "lost.tsv").read_text().splitlines()
    assert line.startswith("the catalog\t") and path.name in line
    assert path.with_name(f"{path.name}.damaged").read_bytes() == damaged
    kept = KEPT.findall(mended.stdout)
    assert len(kept) == len(MODEL)

    server.start()
    assert rows(secured, "admin", secured.rpc("admin").create_table("new")) == {}
    with fails_with(StatusCode.NOT_FOUND):
        secured.rpc("admin").read(TABLE)
    expect_no_access(secured, TABLE, OTHER_TABLE)
    assert re.search('reason=salvaged why="2 keyspaces have rows but no table', server.stderr())
    server.stop()

    for keyspace, table in zip(kept, MODEL, strict=True):
        claim = f"{keyspace}={table}"
        done = run_trestle("repair", server.data, "--claim", claim, "--in-place")
        assert done.returncode == 0, done.stderr
    assert run_trestle("doctor", server.data).returncode == 0
    server.start()
    found = [rows(secured, "admin", table) for table in MODEL]
    assert sorted(found, key=str) == sorted(MODEL.values(), key=str)
    expect_no_access(secured, TABLE, OTHER_TABLE)
    allow(secured, "stranger")
    assert rows(secured, "stranger", TABLE) in found


def test_a_table_with_damage_of_its_own_is_claimed_and_repaired(hit):
    """It could not be claimed, nor repaired before it was."""
    secured, path = hit
    server = secured.server
    mended = run_trestle("repair", server.data, "--in-place")
    first, other = KEPT.findall(mended.stdout)
    (table,) = tables_of(server.data, first.encode())
    flip(table, 20, 8)
    for keyspace, name in ((first, TABLE), (other, OTHER_TABLE)):
        claim = ["--claim", f"{keyspace}={name}"]
        done = run_trestle("repair", server.data, *claim, "--in-place")
        assert done.returncode == 0, done.stderr
        assert ("others that are out of service" in done.stdout) == (keyspace == first)
    server.start()
    assert rows(secured, "admin", OTHER_TABLE) in MODEL.values()
    with fails_with(StatusCode.DATA_LOSS, table.name):
        rows(secured, "admin", TABLE)
    server.stop()
    repaired = run_trestle("repair", server.data, "--in-place")
    assert repaired.returncode == 0, repaired.stderr
    assert re.search(rf"lost: rows from .* of {TABLE} .*{table.name}", repaired.stdout)
    assert run_trestle("doctor", server.data).returncode == 0
    server.start()
    assert rows(secured, "admin", TABLE) == {}
    assert rows(secured, "admin", OTHER_TABLE) in MODEL.values()


def keyspace_of(server, keyspaces, table):
    """By what is in its files."""
    row = b"R" + min(MODEL[table])
    (found,) = (
        keyspace
        for keyspace in keyspaces
        if any(row in each.read_bytes() for each in tables_of(server.data, keyspace.encode()))
    )
    return found


def test_a_table_that_was_claimed_comes_back_from_a_whole_backup(hit):
    """Under its own name: that is another number of a table, and the same rows. Its families get
    their names back, also those of which nobody has seen a cell, since all of it is damaged."""
    secured, _ = hit
    server = secured.server
    mended = run_trestle("repair", server.data, "--in-place")
    keyspace = keyspace_of(server, KEPT.findall(mended.stdout), TABLE)
    (table,) = tables_of(server.data, keyspace.encode())
    flip(table, 20, 8)

    words = rf"rows from .* of keyspace {keyspace} \(it has no table\) are out of service: "
    words += f".*{table.name}"
    for arguments in ((), ("--in-place",)):
        told = run_trestle("repair", server.data, *arguments)
        assert told.returncode == 1
        assert re.search(rf"^left: {words}", told.stderr, re.MULTILINE)
        assert told.stderr.endswith("1 thing is left, named above\n")
    assert re.search(f"^damage: {words}", run_trestle("doctor", server.data).stderr, re.MULTILINE)
    server.start()
    log = server.stderr().replace("\\", "")
    assert re.search(f'msg="rows are out of service" why="{words}', log)
    server.stop()

    claim = ("--claim", f"{keyspace}={TABLE}", "--in-place")
    assert run_trestle("repair", server.data, *claim).returncode == 0
    repaired = run_trestle("repair", server.data, "--from", secured.place, "--in-place")
    assert repaired.returncode == 0, repaired.stderr
    assert f"{len(MODEL[TABLE])} rows come from the whole backup" in repaired.stdout
    assert named(repaired.stdout) == [("named", TABLE)]
    server.start()
    assert rows(secured, "admin", TABLE) == MODEL[TABLE]
    assert versions_kept(secured, TABLE) == {"f": 3}
    secured.rpc("admin").mutate(TABLE, b"new", set_cell("f", b"q", b"v", 1000))
    assert rows(secured, "admin", TABLE) == {**MODEL[TABLE], b"new": b"v"}


def test_a_claimed_table_takes_writes_though_the_clock_was_ahead(tmp_path):
    """The ceiling of versions is lost with the table, and what was written has versions of
    tomorrow. A row that was written to was overwritten in vain, until tomorrow, and a server that
    checks itself ended when it moved large cells that were newer than the move."""
    server = MovedServer(tmp_path, ["--heat=false", "--overflow-threshold", "1KB"])
    server.move(DAY_SECONDS)
    rpc = Rpc(server.start().host)
    table = rpc.create_table("t")
    rpc.mutate(table, b"row", set_cell("f", b"large", b"-" * 3000, 1000))
    rpc.mutate(table, b"row", set_cell("f", b"q", b"of tomorrow", 1000))
    server.stop()
    (server.data / "SYNCED").unlink()
    salvage(server)
    server.stop()
    flip(max(tables_of(server.data, CATALOG), key=lambda each: each.stat().st_size), -12, 8)
    server.move(0)
    mended = run_trestle("repair", server.data, "--in-place")
    (keyspace,) = KEPT.findall(mended.stdout)
    claimed = run_trestle("repair", server.data, "--claim", f"{keyspace}={table}", "--in-place")
    assert claimed.returncode == 0, claimed.stderr

    rpc = Rpc(server.start().host)
    rpc.mutate(table, b"row", set_cell("f1", b"q", b"of today", 1000))
    rpc.mutate(table, b"row", set_cell("f1", b"other", b"+" * 3000, 1000))
    ((_, cells),) = rpc.read(table)
    values = {cell.qualifier: cell.value for cell in cells}
    assert values == {b"large": b"-" * 3000, b"other": b"+" * 3000, b"q": b"of today"}
    server.close()


def named(text):
    """[(what is or would be done, of which table)]"""
    return re.findall(r"^(named|would name): the families of (\S+), with their rules, as the whole "
                      r"backup \S+, of \S+ has them$", text, re.MULTILINE)  # fmt: skip


def versions_kept(secured, table):
    families = secured.rpc("admin").get_table(table).column_families
    return {name: family.gc_rule.max_num_versions for name, family in families.items()}


def test_tables_that_were_claimed_get_names_and_rules_from_a_whole_backup(hit):
    """Of which no row is out of service. A rule that was set since the claim stays."""
    secured, _ = hit
    server = secured.server
    mended = run_trestle("repair", server.data, "--in-place")
    kept = KEPT.findall(mended.stdout)
    for table in MODEL:
        claim = f"{keyspace_of(server, kept, table)}={table}"
        assert run_trestle("repair", server.data, "--claim", claim, "--in-place").returncode == 0
    server.start()
    update = {"id": "f1", "update": {"gc_rule": {"max_num_versions": 7}}}
    secured.rpc("admin").modify_families(OTHER_TABLE, update)
    assert [versions_kept(secured, table) for table in MODEL] == [{"f1": 0}, {"f1": 7}]
    server.stop()

    take = ("repair", server.data, "--from", secured.place)
    told = run_trestle(*take)
    assert (told.returncode, sorted(named(told.stdout))) == (
        1, sorted(("would name", table) for table in MODEL))  # fmt: skip
    assert "2 tables to name; nothing was changed" in told.stdout
    done = run_trestle(*take, "--in-place")
    assert (done.returncode, sorted(named(done.stdout))) == (
        0, sorted(("named", table) for table in MODEL))  # fmt: skip
    again = run_trestle(*take, "--in-place")
    assert (again.returncode, named(again.stdout)) == (0, [])
    assert "nothing to repair" in again.stdout
    server.start()
    assert [versions_kept(secured, table) for table in MODEL] == [{"f": 3}, {"f": 7}]
    assert [rows(secured, "admin", table) for table in MODEL] == list(MODEL.values())


def test_a_trial_while_the_server_runs_names_nothing(hit, tmp_path):
    """Of a table that was claimed, and of which rows are out of service."""
    secured, _ = hit
    server, token = secured.server, tmp_path / "token"
    mended = run_trestle("repair", server.data, "--in-place")
    keyspace = keyspace_of(server, KEPT.findall(mended.stdout), TABLE)
    claim = ("--claim", f"{keyspace}={TABLE}", "--in-place")
    assert run_trestle("repair", server.data, *claim).returncode == 0
    (table,) = tables_of(server.data, keyspace.encode())
    flip(table, 20, 8)
    server.arguments += ["--backup-places", str(secured.place)]
    server.start()
    with fails_with(StatusCode.DATA_LOSS, table.name):
        rows(secured, "admin", TABLE)
    token.write_text("admin")
    repair = ("repair", "--endpoint", server.host, "--ca", secured.authority.certificate,
              "--token-file", token, "--from", secured.place,
              "--lost", tmp_path / "lost.tsv")  # fmt: skip
    trial = run_trestle(*repair)
    assert trial.returncode == 1 and f"{len(MODEL[TABLE])} rows come from" in trial.stdout
    assert versions_kept(secured, TABLE) == {"f1": 0}
    done = run_trestle(*repair, "--in-place")
    assert done.returncode == 0, done.stderr
    assert versions_kept(secured, TABLE) == {"f": 3}
    assert rows(secured, "admin", TABLE) == MODEL[TABLE]


def test_a_salvage_serves_the_rest(hit):
    secured, path = hit
    server = secured.server
    salvage(server)
    assert re.search(r'reason=salvaged why="[^"]*records of the catalog \(', server.stderr())
    expect_no_access(secured, TABLE)
    new = secured.rpc("admin").create_table("new")
    secured.rpc("admin").mutate(new, b"k", set_cell("f", b"q", b"v", 1000))
    for end in (server.stop, server.kill):
        end()
        server.start()
        assert rows(secured, "admin", new) == {b"k": b"v"}
        expect_no_access(secured, TABLE, new)
    server.stop()
    repaired = run_trestle("repair", server.data)
    assert (repaired.returncode, "nothing to repair" in repaired.stdout) == (0, True)


def test_damage_of_what_waits_for_the_archive_is_named(tmp_path):
    """It is in a keyspace that no table has, and no row is: a repair was silent of it."""
    server = Server(tmp_path, ["--archive", str(tmp_path / "away"), "--write-buffer", "4MB",
                               "--disk-reserve", "1MB"])  # fmt: skip
    server.start()
    rpc = Rpc(server.host)
    table = rpc.create_table("t")
    for number in range(60):
        rpc.mutate(table, b"k%02d" % number, set_cell("f", b"q", os.urandom(100_000), 1000))
    rpc.close()
    server.stop()
    server.start()
    server.stop()
    found = []
    for path in tables(server.data):
        was = path.read_bytes()
        flip(path, 100, 8)
        told = run_trestle("repair", server.data)
        if "changes that wait" in told.stdout:
            found.append(path)
            break
        path.write_bytes(was)
    (path,) = found
    words = rf"changes that wait for the archive: the table file {path.name} is damaged"
    assert told.returncode == 1 and re.search(f"^would lose: {words}", told.stdout, re.MULTILINE)
    doctor = run_trestle("doctor", server.data)
    assert doctor.returncode == 1 and re.search(f"^damage: {words}", doctor.stderr, re.MULTILINE)
    done = run_trestle("repair", server.data, "--in-place")
    assert done.returncode == 0 and re.search(f"^lost: {words}", done.stdout, re.MULTILINE)
    assert "the change log\t" in (server.data / "lost.tsv").read_text()
    assert "nothing to repair" in run_trestle("repair", server.data).stdout
    server.close()
