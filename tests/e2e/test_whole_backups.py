"""Backups of a whole server: made by it or of its directory, verified, restored into another."""

import hashlib
import os
import re
import shutil
import subprocess
import time

from google.cloud.bigtable_admin_v2 import types
from google.cloud.datastore.query import PropertyFilter
from google.iam.v1 import iam_policy_pb2, policy_pb2
from grpc import StatusCode
from harness.damage import flip, tables_with
from harness.datastore import client_of, entity
from harness.indexes import Indexes
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest
from harness.rpc import fails_with, set_cell
from harness.server import Server, binary, run_trestle

NAME = r"\d{8}T\d{6}Z(?:-\d\d)?"


def backup(*arguments, code=0):
    done = run_trestle("backup", *map(str, arguments))
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr if code else done.stdout


def identity(server):
    return re.search(r"^server (\S+)$", run_trestle("status", "--endpoint", server.host).stdout,
                     re.MULTILINE)[1]  # fmt: skip


class Story:
    """A server with a place, and something of each kind in it."""

    def __init__(self, tmp_path, fresh_server, administer, connect, *options):
        self.place = tmp_path / "places" / "whole"
        self.place.parent.mkdir()
        self.fresh_server = fresh_server
        self.administer, self.connect = administer, connect
        self.server = fresh_server("--backup-places", str(self.place.parent), *options)
        self.admin = administer(self.server.host)
        self.rpc = connect(self.server.host)
        self.instance = self.admin.create_instance("i")
        self.admin.create_table(self.instance, "t")
        self.table = f"{self.instance}/tables/t"
        self.write(b"row", b"value")

    def write(self, key, value):
        self.rpc.mutate_rows(self.table, [(key, [set_cell("f", b"q", value, 1000)])])

    def restored(self, directory):
        """A server of its own on the restored directory."""
        server = self.fresh_server("--backup-places", str(self.place.parent))
        server.stop()
        shutil.rmtree(server.data)
        directory.rename(server.data)
        server.start()
        assert "another server" not in server.stderr()  # it is, and is to be
        return server


def assert_owners_alone(*directories):
    """Other users of the machine do not see the rows."""
    for directory in directories:
        for path in (directory, *directory.rglob("*")):
            assert path.stat().st_mode & 0o077 == 0, path


def values(rpc, table):
    return {key: cells[0].value for key, cells in rpc.read(table)}


def test_a_server_comes_back_as_another(tmp_path, fresh_server, administer, connect):
    story = Story(tmp_path, fresh_server, administer, connect)
    reader = {"role": "roles/bigtable.reader", "members": ["user:a@b.c"]}
    policy = policy_pb2.Policy(bindings=[reader])
    story.admin.tables.set_iam_policy(
        iam_policy_pb2.SetIamPolicyRequest(resource=story.table, policy=policy)
    )
    view = types.AuthorizedView(subset_view=types.AuthorizedView.SubsetView(row_prefixes=[b"r"]))
    story.admin.tables.create_authorized_view(
        parent=story.table, authorized_view=view, authorized_view_id="v"
    ).result()
    first = backup("create", story.place, "--endpoint", story.server.host)
    assert re.fullmatch(rf"{NAME}: \d+\.\d MB, of which \d+ files, \d+\.\d MB were not there yet\n",
                        first)  # fmt: skip
    story.write(b"row", b"later")
    second = backup("create", story.place, "--endpoint", story.server.host)
    assert len(backup("list", story.place).splitlines()) == 2
    assert backup("verify", story.place).count(": whole\n") == 2

    to = tmp_path / "restored"
    said = backup("restore", story.place, first.split(":")[0], "--to", to)
    assert f"restored into {to}" in said
    settings = (to / "settings-of-the-backup.txt").read_text()
    assert f"backup-places = {story.place.parent}" in settings
    other = story.restored(to)
    assert identity(other) != identity(story.server)
    assert identity(story.server) in backup("list", story.place)
    rpc, admin = connect(other.host), administer(other.host)
    assert values(rpc, story.table) == {b"row": b"value"}
    request = iam_policy_pb2.GetIamPolicyRequest(resource=story.table)
    assert admin.tables.get_iam_policy(request).bindings == policy.bindings
    assert admin.tables.get_authorized_view(name=f"{story.table}/authorizedViews/v")
    assert other.metric("whole_backups_made_total") == 0
    assert story.server.metric("whole_backups_made_total") == 2
    assert 'msg="whole backup made"' in story.server.stderr()

    third = backup("create", story.place, "--endpoint", other.host).split(":")[0]
    expire = ("expire", story.place, "--keep", "1")
    assert backup(*expire, "--server", identity(other)).startswith("0 backups and ")
    refused = backup(*expire, "--server", "no-such-server", code=1)
    assert identity(story.server) in refused and identity(other) in refused
    gone = f"{first.split(':')[0]}  server {identity(story.server)}: "
    would = backup(*expire, "--dry-run")
    counts = r"1 backups and \d+ files would be removed"
    assert re.fullmatch(rf"{gone}would be removed\n{counts}\n", would)
    assert backup(*expire) == would.replace("would be removed", "removed")
    names = [line.split(":")[0] for line in backup("verify", story.place).splitlines()]
    assert names == [second.split(":")[0], third]


def test_a_directory_that_is_not_served(tmp_path, fresh_server, administer, connect):
    story = Story(tmp_path, fresh_server, administer, connect)
    data = story.server.data
    assert "is in use" in backup("create", story.place, "--data-dir", data, code=1)
    story.server.kill()
    backup("create", story.place, "--data-dir", data)
    within = "is in the data directory"
    assert within in backup("create", data / "backups", "--data-dir", data, code=1)
    assert (data / "backups" / "LOCK").exists()
    assert "there is no whole backup in" in backup("list", data, code=1)
    to = tmp_path / "restored"
    backup("restore", story.place, "--to", to)
    assert_owners_alone(story.place, to)
    assert "is not empty" in backup("restore", story.place, "--to", to, code=1)
    (tmp_path / "real").mkdir()
    link = tmp_path / "link"
    link.symlink_to("real")
    assert f"restored into {tmp_path}/real\n" in backup("restore", story.place, "--to", link)
    assert link.is_symlink() and (link / "CURRENT").exists()
    assert "/proc is a mount point: " in backup("restore", story.place, "--to", "/proc", code=1)
    away = tmp_path / "no" / "such"
    assert f"{away} cannot be made: " in backup("restore", story.place, "--to", away, code=1)
    assert run_trestle("doctor", str(to)).returncode == 0
    assert values(connect(story.restored(to).host), story.table) == {b"row": b"value"}


def test_where_no_backup_is_nothing_is_whole(tmp_path):
    place = tmp_path / "place"
    (place / "backups").mkdir(parents=True)
    for kind in ("verify", "list"):
        assert "there is no whole backup in" in backup(kind, place, code=1)
        assert "there are no whole backups in" in backup(kind, tmp_path, code=1)
    for directory, words in (
        (place, "there is no backup in it"),
        (tmp_path / "gone", "is missing"),
        (place / "backups", "there is no backup in it"),
    ):
        seen = run_trestle("doctor", "--backup-dir", directory)
        assert seen.returncode == 1 and words in seen.stderr, seen.stdout + seen.stderr


def test_what_fails_is_told(tmp_path, fresh_server, administer, connect):
    story = Story(tmp_path, fresh_server, administer, connect)
    endpoint = ("--endpoint", story.server.host)
    for place in (tmp_path / "elsewhere", f"{story.place}/../../elsewhere"):
        assert "--backup-places" in backup("create", place, *endpoint, code=1)
    story.place.write_text("no directory")
    backup("create", story.place, *endpoint, code=1)
    line = rf'level=warn msg="a whole backup has failed" place={story.place} code=\S+ cause='
    assert re.search(line, story.server.stderr())
    assert story.server.metric("whole_backup_failures_total") == 1
    by_cause = r'^trestle_whole_backup_failures_by_cause_total\{work="(\w+)",code="(\w+)"\} (\d+)$'
    counted = re.findall(by_cause, story.server.get("/metrics")[1], re.MULTILINE)
    assert [(work, count) for work, _, count in counted] == [("create", "1")]
    assert f"code={counted[0][1]} " in re.search(line, story.server.stderr())[0]
    story.place.unlink()
    name = backup("create", story.place, *endpoint).split(":")[0]
    seen = run_trestle("doctor", "--backup-dir", story.place)
    assert seen.returncode == 1 and "`trestle backup verify`" in seen.stderr
    content = max((story.place / "files").iterdir(), key=lambda each: each.stat().st_size)
    content.write_bytes(b"x" + content.read_bytes()[1:])
    assert f"damage: {name}: files/{content.name}" in backup("verify", story.place, code=1)
    assert content.name in backup("restore", story.place, "--to", tmp_path / "r", code=1)
    assert not (tmp_path / "r").exists()
    for wrong in (["create"], ["restore", story.place], ["expire", story.place], ["list", "--x"]):
        backup(*wrong, code=2)


# With a buffer this small what the log has is in tables' files after the next start.
SMALL = ("--write-buffer", "4MB", "--disk-reserve", "1MB")


def fill(server, write):
    """Rows of more than that, in tables' files."""
    for number in range(50):
        write(b"k%d" % number, os.urandom(100_000))
    server.stop()
    server.start()


def content_of_a_table(story):
    """What the place has of a table's file that the server has, too."""
    tables = {hashlib.sha256(each.read_bytes()).hexdigest(): each
              for each in story.server.data.glob("*.sst")}  # fmt: skip
    return max((each for each in (story.place / "files").iterdir() if each.name in tables),
               key=lambda each: each.stat().st_size)  # fmt: skip


def test_what_is_damaged_in_a_place_is_written_anew(tmp_path, fresh_server, administer, connect):
    """It was in all later backups, and in each of them was as good as lost."""
    story = Story(tmp_path, fresh_server, administer, connect, *SMALL)
    fill(story.server, story.write)
    create = ("create", story.place, "--endpoint", story.server.host)
    first = backup(*create).split(":")[0]
    content = content_of_a_table(story)
    flip(content, content.stat().st_size // 2)
    said = backup("verify", story.place, code=1)
    assert f"damage: {first}: files/{content.name}" in said and ": marked" not in said
    backup(*create)  # its turn comes within a month
    assert content.name in backup("verify", story.place, code=1)
    said = backup("verify", story.place, "--mark-damaged", code=1)
    assert said.count(f"files/{content.name}: ") == said.count(": marked") == 2
    assert "or were damaged there" in backup(*create)
    assert backup("verify", story.place).count(": whole") == 3

    story.server.stop()
    flip(content, content.stat().st_size // 2)
    each_time = ("--check-period", "1us")
    done = run_trestle("backup", "create", story.place, "--data-dir", story.server.data, *each_time)
    assert done.returncode == 0 and "or were damaged there" in done.stdout, done.stderr
    assert f"files/{content.name}: it is damaged" in done.stderr
    assert backup("verify", story.place).count(": whole") == 4


def test_a_server_reads_what_its_place_keeps(tmp_path, fresh_server, administer, connect):
    options = (*SMALL, "--backup-check-period", "1us")
    story = Story(tmp_path, fresh_server, administer, connect, *options)
    fill(story.server, story.write)
    create = ("create", story.place, "--endpoint", story.server.host)
    backup(*create)
    content = content_of_a_table(story)
    flip(content, content.stat().st_size // 2)
    assert "or were damaged there" in backup(*create)
    line = r'level=warn msg="a file in the place of whole backups is damaged, and is written anew"'
    assert re.search(f"{line} file={content.name} ", story.server.stderr())
    assert backup("verify", story.place).count(": whole") == 2


def test_a_newest_that_cannot_be_read_is_not_passed_over(
    tmp_path, fresh_server, administer, connect
):
    story = Story(tmp_path, fresh_server, administer, connect)
    endpoint = ("--endpoint", story.server.host)
    older = backup("create", story.place, *endpoint).split(":")[0]
    newest = backup("create", story.place, *endpoint).split(":")[0]
    flip(story.place / "backups" / newest, 40)
    of_table = ("--table", story.table, "--as", f"{story.table}-then")
    for arguments in (
        ["--to", tmp_path / "all"],
        ["--to", tmp_path / "one", "--table", story.table],
        [*of_table, *endpoint],
    ):
        said = backup("restore", story.place, *arguments, code=1)
        assert f"the whole backup {newest} cannot be read: the manifest is damaged: " in said
        assert f"The newest before it that can be is {older}: name that" in said
        done = backup("restore", story.place, older, *arguments)
        assert done.startswith(f"{older}: ")


def test_a_schedule_makes_them_and_removes_old_ones(tmp_path, fresh_server):
    place = tmp_path / "whole"
    place.mkdir()
    schedule = ("--backup-places", str(place), "--backup-schedule", "1s", "--backup-keep", "2")
    server = fresh_server(*schedule)
    deadline = time.monotonic() + PATIENCE_SECONDS
    by_hand = None
    while by_hand is None:  # one of the schedule's may be under way
        assert time.monotonic() < deadline
        done = run_trestle("backup", "create", str(place), "--endpoint", server.host)
        by_hand = None if done.returncode else done.stdout.split(":")[0]
    while server.metric("whole_backups_made_total") < 5:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    server.stop()
    assert 'msg="old whole backups removed"' in server.stderr()
    lines = backup("list", place).splitlines()
    scheduled = [line for line in lines if "scheduled" in line]
    assert len(scheduled) in (2, 3)  # the stop may have come between a backup and its expiry
    assert [line for line in lines if line not in scheduled][0].startswith(by_hand)
    assert backup("verify", place).count(": whole\n") == len(lines)


def test_only_an_admin_makes_them(tmp_path, secure):
    place = tmp_path / "place"
    secured = secure("--backup-places", str(place))
    host = ("--endpoint", secured.server.host, "--ca", secured.authority.certificate)
    for token in ("reader", "viewer", "alice"):
        refused = backup("create", place, *host, "--token", token, code=1)
        assert "bigtable.wholeBackups.create" in refused
        restore = ("restore", place, "--instance", "projects/p/instances/i")
        refused = backup(*restore, *host, "--token", token, code=1)
        assert "bigtable.wholeBackups.restore" in refused
    assert not place.exists()
    name = backup("create", place, *host, "--token", "admin").split(":")[0]
    audit = [line for line in secured.server.stderr().splitlines() if "msg=audit" in line]
    made = [line for line in audit if "method=CreateWholeBackup" in line]
    outcomes = [re.search(r"status=(\w+)", line)[1] for line in made]
    assert outcomes == ["PERMISSION_DENIED"] * 3 + ["OK"] * 2
    assert all("principal=user:ops@example.com" in line for line in made[3:])
    assert all("source=servers/self " in line for line in made[3:])  # of all
    assert all(f"resource=servers/self/places/{place} " in line for line in made[:-1])
    assert "event=ended" in made[-1]
    assert f"resource=servers/self/places/{place}/{name} " in made[-1]
    assert "method=ListWholeBackupRuns" not in "".join(audit)  # by which it has polled
    assert len([line for line in audit if "method=RestoreTables" in line]) == 3


def protect(story, policy):
    """A policy, a view and protection for the table."""
    story.admin.tables.set_iam_policy(
        iam_policy_pb2.SetIamPolicyRequest(resource=story.table, policy=policy)
    )
    view = types.AuthorizedView(subset_view=types.AuthorizedView.SubsetView(row_prefixes=[b"r"]))
    story.admin.tables.create_authorized_view(
        parent=story.table, authorized_view=view, authorized_view_id="v"
    ).result()
    story.admin.tables.update_table(
        table=types.Table(name=story.table, deletion_protection=True),
        update_mask={"paths": ["deletion_protection"]},
    ).result()


def policy_of(admin, name):
    return admin.tables.get_iam_policy(iam_policy_pb2.GetIamPolicyRequest(resource=name)).bindings


def test_tables_come_back_alone(tmp_path, fresh_server, administer, connect):
    """Into the server, under other names, and into a directory that has nothing else."""
    story = Story(tmp_path, fresh_server, administer, connect)
    endpoint = ("--endpoint", story.server.host)
    reader = {"role": "roles/bigtable.reader", "members": ["user:a@b.c"]}
    policy = policy_pb2.Policy(bindings=[reader])
    protect(story, policy)
    story.admin.create_table(story.instance, "other")
    name = backup("create", story.place, *endpoint).split(":")[0]
    story.write(b"row", b"later")

    plain, whole = f"{story.instance}/tables/plain", f"{story.instance}/tables/whole"
    restore = ("restore", story.place, "--table", story.table)
    assert backup(*restore, "--as", plain, *endpoint) == f"{name}: 1 table restored into {plain}\n"
    backup(*restore, "--as", whole, "--with-policies", *endpoint)
    for table in (plain, whole):
        assert values(story.rpc, table) == {b"row": b"value"}
    assert values(story.rpc, story.table) == {b"row": b"later"}
    assert not policy_of(story.admin, plain)
    assert policy_of(story.admin, whole) == policy.bindings
    assert story.admin.tables.get_authorized_view(name=f"{whole}/authorizedViews/v")
    assert not story.admin.tables.get_table(name=plain).deletion_protection
    assert story.admin.tables.get_table(name=whole).deletion_protection
    story.rpc.mutate_rows(plain, [(b"row", [set_cell("f", b"q", b"new", 1000)])])
    assert values(story.rpc, plain) == {b"row": b"new"}
    story.server.kill()
    story.server.start()
    endpoint = ("--endpoint", story.server.host)
    story.rpc = connect(story.server.host)
    assert values(story.rpc, plain) == {b"row": b"new"}

    other = story.instance[:-1] + "j"
    instance = ("restore", story.place, name, "--instance", story.instance)
    said = backup(*instance, "--as", other, *endpoint)
    assert said == f"{name}: 2 tables restored into {other}\n"
    assert values(story.rpc, f"{other}/tables/t") == {b"row": b"value"}
    assert "already exists" in backup(*instance, *endpoint, code=1)
    assert 'msg="tables were not all restored from a whole backup"' in story.server.stderr()
    assert "has no table" in backup("restore", story.place, "--table", f"{story.table}x", *endpoint,
                                    code=1)  # fmt: skip

    to = tmp_path / "alone"
    assert backup(*restore, "--to", to) == f"{name}: 1 table restored into {to}\n"
    assert "is not empty" in backup(*restore, "--to", to, code=1)
    assert run_trestle("doctor", str(to)).returncode == 0
    alone = story.restored(to)
    assert values(connect(alone.host), story.table) == {b"row": b"value"}
    tables = administer(alone.host).tables.list_tables(parent=story.instance)
    assert [each.name for each in tables] == [story.table]
    assert sorted(each.name for each in tmp_path.iterdir() if "restoring" in each.name) == []
    for wrong in (["--as", plain], ["--instance", story.instance, "--table", story.table],
                  [*endpoint], ["--to", to, *endpoint, "--table", story.table]):  # fmt: skip
        backup("restore", story.place, *wrong, code=2)


def assert_nothing_of(place, *words):
    """In the place. What is as short as these words is not compressed out of recognition."""
    for path in (each for each in place.rglob("*") if each.is_file()):
        content = path.read_bytes()
        assert not [word for word in words if word in content], path


def test_a_table_or_an_instance_alone(tmp_path, fresh_server, administer, connect):
    """In its backup there is nothing of others, and it comes back as out of one of all."""
    story = Story(tmp_path, fresh_server, administer, connect)
    endpoint = ("--endpoint", story.server.host)
    reader = {"role": "roles/bigtable.reader", "members": ["user:a@b.c"]}
    policy = policy_pb2.Policy(bindings=[reader])
    protect(story, policy)
    other = story.admin.create_instance("j")
    row = (b"foreign-row", [set_cell("f", b"q", b"foreign", 1000)])
    for instance in (story.instance, other):
        story.admin.create_table(instance, "unrelated")
        story.rpc.mutate_rows(f"{instance}/tables/unrelated", [row])
    create = ("create", story.place)
    table = backup(*create, "--table", story.table, *endpoint).split(":")[0]
    assert_nothing_of(story.place, b"foreign", b"unrelated", b"instances/j")
    story.write(b"row", b"later")
    assert f"only {story.table}" in backup("list", story.place)
    refused = backup("restore", story.place, "--to", tmp_path / "no", code=1)
    assert "there is no whole backup of a server in" in refused
    refused = backup("restore", story.place, table, "--to", tmp_path / "no", code=1)
    assert f"the backup is of {story.table} alone" in refused and "--table" in refused
    refused = backup("restore", story.place, "--instance", story.instance, *endpoint, code=1)
    assert f"that may have {story.instance}" in refused

    before = f"{story.instance}/tables/before"
    restore = ("restore", story.place, "--table", story.table, "--with-policies")
    said = backup(*restore, "--as", before, *endpoint)
    assert said == f"{table}: 1 table restored into {before}\n"
    assert values(story.rpc, before) == {b"row": b"value"}
    assert policy_of(story.admin, before) == policy.bindings
    assert story.admin.tables.get_authorized_view(name=f"{before}/authorizedViews/v")

    instance = backup(*create, "--instance", story.instance, *endpoint).split(":")[0]
    assert_nothing_of(story.place, b"instances/j")
    again = backup(*create, "--table", story.table, *endpoint).split(":")[0]
    whole = backup(*create, *endpoint).split(":")[0]
    refused = backup(*create, "--table", f"{story.table}x", *endpoint, code=1)
    assert f"there is no table {story.table}x" in refused
    backup(*create, "--table", story.instance, *endpoint, code=2)
    gone = backup("expire", story.place, "--keep", "1")
    assert gone.startswith(f"{table}  server ") and "\n1 backups and " in gone
    names = [line.split()[0] for line in backup("list", story.place).splitlines()]
    assert names == [instance, again, whole]
    third = f"{story.instance[:-1]}k"
    backup("restore", story.place, instance, "--instance", story.instance, "--as", third, *endpoint)
    tables = story.admin.tables.list_tables(parent=third)
    assert sorted(each.name.split("/")[-1] for each in tables) == ["before", "t", "unrelated"]
    assert values(story.rpc, f"{third}/tables/t") == {b"row": b"later"}
    empty = story.admin.create_instance("empty")
    backup(*create, "--instance", empty, *endpoint)
    again = ("--instance", empty, "--as", f"{empty}-again", *endpoint)
    assert "0 tables restored" in backup("restore", story.place, *again)
    assert story.admin.instances.get_instance(name=f"{empty}-again")

    story.server.kill()
    data = story.server.data
    offline = story.place.parent / "offline"
    backup("create", offline, "--data-dir", data, "--table", story.table)
    assert_nothing_of(offline, b"foreign", b"unrelated", b"instances/j")
    assert not (data / "checkpoint").exists()
    to = tmp_path / "alone"
    backup("restore", offline, "--table", story.table, "--to", to)
    alone = story.restored(to)
    assert values(connect(alone.host), story.table) == {b"row": b"later"}
    tables = administer(alone.host).tables.list_tables(parent=story.instance)
    assert [each.name for each in tables] == [story.table]


class Harmed:
    """A stopped server with a table, of which a block is damaged, and a backup of that table."""

    def __init__(self, tmp_path, fresh_server, connect, *options):
        places = tmp_path / "places"
        places.mkdir()
        self.place = places / "whole"
        buffers = ("--write-buffer", "4MB", "--disk-reserve", "1MB")
        self.server = fresh_server(*buffers, "--backup-places", str(places), *options)
        rpc = connect(self.server.host)
        self.table = rpc.create_table("t")
        self.rows = {b"k%05d" % number: os.urandom(2500) for number in range(1000)}
        changes = [(key, [set_cell("f", b"q", each, 1000)]) for key, each in self.rows.items()]
        assert set(rpc.mutate_rows(self.table, changes)) == {0}
        self.server.stop()
        self.server.start()  # flushes, the buffer being so small
        self.server.stop()
        flip(tables_with(self.server.data, b"k00000")[0], 400_000)
        create = ("create", self.place, "--data-dir", self.server.data, "--table", self.table)
        self.name = backup(*create).split(":")[0]

    def closed(self, words):
        """The keys between the two that the words name, which are among them."""
        found = re.search(r'out of service: rows from "([^"]+)" to "([^"]+)" of', words)
        first, last = (each.encode().decode("unicode_escape").encode() for each in found.groups())
        return {key for key in self.rows if first <= key <= last}

    def sound(self, closed):
        return {key: each for key, each in self.rows.items() if key not in closed}


def read_around(rpc, table, keys):
    found = {key: rpc.read_row(table, key) for key in keys}
    return {key: cells[0].value for key, cells in found.items() if cells}


def test_a_part_comes_back_around_damage(tmp_path, fresh_server, connect):
    """What is damaged in it is out of service where it comes to, by name; the rest is there."""
    harmed = Harmed(tmp_path, fresh_server, connect)
    to = tmp_path / "to"
    done = run_trestle("backup", "restore", harmed.place, "--table", harmed.table, "--to", to)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{harmed.name}: 1 table restored into {to}\n" in done.stdout
    assert "in the backup that it was restored from, the table file " in done.stdout
    closed = harmed.closed(done.stdout)
    assert 3 <= len(closed) <= 16
    shutil.rmtree(harmed.server.data)
    to.rename(harmed.server.data)
    rpc = connect(harmed.server.start().host)
    assert harmed.server.metric("damaged_ranges") == 1
    assert read_around(rpc, harmed.table, harmed.sound(closed)) == harmed.sound(closed)
    for key in closed:
        with fails_with(StatusCode.DATA_LOSS, "in the backup that it was restored from"):
            rpc.read_row(harmed.table, key)

    aside = f"{harmed.table}-aside"
    online = ("restore", harmed.place, "--table", harmed.table, "--as", aside)
    done = run_trestle("backup", *map(str, online), "--endpoint", harmed.server.host)
    assert done.returncode == 1 and "1 range of rows is out of service" in done.stdout
    assert harmed.server.metric("damaged_ranges") == 2
    lost = ("--in-place", "--lost", str(tmp_path / "lost"))
    assert run_trestle("repair", "--endpoint", harmed.server.host, *lost).returncode == 0
    for table in (harmed.table, aside):
        assert values(rpc, table) == harmed.sound(closed)
    harmed.server.stop()
    assert run_trestle("doctor", harmed.server.data).returncode == 0


def test_an_archive_knows_what_a_part_lacks(tmp_path, fresh_server, connect):
    """And that it was repaired since."""
    archive = tmp_path / "archive"
    archive.mkdir()
    harmed = Harmed(tmp_path, fresh_server, connect)
    shutil.rmtree(harmed.server.data)
    harmed.server.arguments += ["--archive", str(archive)]
    rpc = connect(harmed.server.start().host)
    endpoint = ("--endpoint", harmed.server.host)
    rpc.create_table("other")
    backup("create", harmed.place.parent / "base", *endpoint)
    restored = ("restore", str(harmed.place), "--table", harmed.table, *endpoint)
    assert run_trestle("backup", *restored).returncode == 1
    before, after = tmp_path / "before", tmp_path / "after"
    harmed.server.kill()
    harmed.server.start()
    harmed.server.stop()  # puts all
    backup("restore", harmed.place.parent / "base", "--archive", archive, "--to", before)
    harmed.server.start()
    lost = ("--in-place", "--lost", str(tmp_path / "lost"))
    assert run_trestle("repair", "--endpoint", harmed.server.host, *lost).returncode == 0
    rpc = connect(harmed.server.host)
    sound = values(rpc, harmed.table)
    key = next(key for key in harmed.rows if key not in sound)
    rpc.mutate_rows(harmed.table, [(key, [set_cell("f", b"q", b"new", 1000)])])
    harmed.server.stop()
    backup("restore", harmed.place.parent / "base", "--archive", archive, "--to", after)
    for directory, ranges in ((before, 1), (after, 0)):
        shutil.rmtree(harmed.server.data)
        directory.rename(harmed.server.data)
        harmed.server.arguments = [
            each for each in harmed.server.arguments if each not in ("--archive", str(archive))
        ]
        rpc = connect(harmed.server.start().host)
        assert harmed.server.metric("damaged_ranges") == ranges
        assert read_around(rpc, harmed.table, sound) == sound
        if ranges == 0:
            assert values(rpc, harmed.table) == {**sound, key: b"new"}
        harmed.server.stop()


def test_a_datastore_database_alone(tmp_path, fresh_server):
    """With its indexes, and what says when entities expire: out of all, or its own backup."""
    place = tmp_path / "places"
    server = fresh_server("--backup-places", str(place), "--datastore-ttl-interval", "1s")
    endpoint = ("--endpoint", server.host)
    client = client_of(server.host, "p")
    indexes = Indexes(server.host, "p")
    indexes.create("K", "a", "-b")
    indexes.close()
    field = "/v1/projects/{}/databases/(default)/collectionGroups/K/fields/until"
    rest = Rest(server.host)
    rest.call("PATCH", f"{field.format('p')}?updateMask=ttlConfig", {"ttlConfig": {}})
    entities = [entity(client, "K", 1 + each, a=each % 2, b=each) for each in range(6)]
    client.put_multi(entities)
    client_of(server.host, "p", database="other").put(
        entity(client_of(server.host, "p", database="other"), "Foreign", 1, a=1)
    )
    whole = backup("create", place, *endpoint).split(":")[0]
    part = backup("create", place / "part", "--database", "p", *endpoint).split(":")[0]
    assert_nothing_of(place / "part", b"Foreign", b"databases/other")
    assert "only projects/p/databases/(default)" in backup("list", place / "part")
    client.delete_multi([each.key for each in entities[:3]])

    restore = ("restore", place, whole, "--database", "p")
    assert "already exists" in backup(*restore, *endpoint, code=1)
    said = backup(*restore, "--as", "q", *endpoint)
    assert said == f"{whole}: 1 table restored into projects/q/databases/(default)\n"
    backup("restore", place / "part", part, "--database", "p/(default)", "--as", "r/d", *endpoint)
    backup("restore", place, "--database", "p", "--as", "p/i/n", *endpoint, code=2)
    for other in (client_of(server.host, "q"), client_of(server.host, "r", database="d")):
        query = other.query(kind="K", order=["-b"])
        query.add_filter(filter=PropertyFilter("a", "=", 1))
        found = list(query.fetch())
        assert [each.key.id for each in found] == [6, 4, 2]
        assert {each.key.project for each in found} == {other.project}
        other.put(entity(other, "K", 9, a=1, b=9))
        assert [each.key.id for each in query.fetch()] == [9, 6, 4, 2]
    assert rest.call("GET", field.format("q"))["ttlConfig"] == {"state": "ACTIVE"}
    assert len(list(client.query(kind="K").fetch())) == 3
    server.stop()
    assert run_trestle("doctor", str(server.data)).returncode == 0


def test_what_is_put_may_be_encrypted(tmp_path, fresh_server, connect):
    """Backups and the archive: without the key nothing of them is to be had, with it all."""
    key, other, place = tmp_path / "key", tmp_path / "other", tmp_path / "whole"
    archive = tmp_path / "archive"
    for path, digits in ((key, "0123456789abcdef" * 4), (other, "f" * 64)):
        path.write_text(f"{digits}\n")
        path.chmod(0o600)
    archive.mkdir()
    server = fresh_server("--backup-places", str(place), "--archive", str(archive),
                          "--backup-key", str(key))  # fmt: skip
    rpc = connect(server.host)
    table = rpc.create_table("table-with-a-name")
    name = backup("create", place, "--endpoint", server.host).split(":")[0]
    rpc.mutate_rows(table, [(b"row", [set_cell("f", b"q", b"something secret", 1000)])])
    server.stop()
    second = backup("create", place, "--data-dir", server.data, "--backup-key", key).split(":")[0]
    put = [path for path in [*place.rglob("*"), *archive.rglob("*")] if path.stat().st_size]
    for path in put:
        if path.is_file():
            content = path.read_bytes()
            assert content.startswith(b"trestle sealed 1\n"), path
            assert b"secret" not in content and b"table-with-a-name" not in content
    for wrong, words in (([], "is encrypted: --backup-key"),
                         (["--backup-key", other], "another key than that of")):  # fmt: skip
        assert words in backup("verify", place, *wrong, code=1)
        said = backup("list", place, *wrong, code=1)
        assert said.count(words) == 1 and "damage" not in said  # it is no damage
        assert words in backup("restore", place, "--to", tmp_path / "no", *wrong, code=1)
        assert words in backup("create", place, "--data-dir", server.data, *wrong, code=1)
        assert words in run_trestle("archive", "list", str(archive), *map(str, wrong)).stderr
    with_key = ("--backup-key", key)
    assert backup("verify", place, *with_key).count(": whole\n") == 2
    content = max((place / "files").iterdir(), key=lambda each: each.stat().st_size)
    whole = content.read_bytes()
    content.write_bytes(whole[:-1])
    assert f"files/{content.name}" in backup("verify", place, *with_key, code=1)
    content.write_bytes(whole)
    to = tmp_path / "restored"
    backup("restore", place, name, "--archive", archive, "--to", to, *with_key)
    alone = tmp_path / "alone"
    backup("restore", place, second, "--table", table, "--to", alone, *with_key)
    for directory in (to, alone):
        shutil.rmtree(server.data)
        directory.rename(server.data)
        restored = Server(server.directory).start()
        assert values(connect(restored.host), table) == {b"row": b"something secret"}
        restored.close()
    key.chmod(0o644)
    assert "backup-key" in run_trestle("serve", "--data-dir", str(tmp_path / "none"),
                                       "--backup-key", str(key)).stderr  # fmt: skip


def begin(*arguments, directory, until):
    """A command that works slowly, so far that a file is in the directory that `until` names."""
    process = subprocess.Popen([binary(), "backup", *map(str, arguments), "--rate", "1MB"],
                               stderr=subprocess.PIPE, text=True)  # fmt: skip
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not list(directory.glob(until)):
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return process


def kill(process):
    process.kill()
    process.wait()
    process.stderr.close()


def test_what_is_killed_or_cannot_be_renamed_leaves_nothing(tmp_path, fresh_server, connect):
    server = fresh_server()
    rpc = connect(server.host)
    table = rpc.create_table("t")
    value = os.urandom(1 << 20)
    rpc.mutate_rows(table, [(b"row", [set_cell("f", b"q", value, 1000)])])
    server.stop()
    place, to = tmp_path / "whole", tmp_path / "to"
    create = ("create", place, "--data-dir", server.data)
    kill(begin(*create, directory=tmp_path, until="whole/files/*.new"))
    assert "there is no whole backup" in backup("list", place, code=1)
    backup(*create)
    assert backup("verify", place).count(": whole\n") == 1
    assert not list(place.rglob("*.new"))

    for restore in (("restore", place, "--to", to),
                    ("restore", place, "--table", table, "--to", to)):  # fmt: skip
        process = begin(*restore, directory=tmp_path, until="to.restoring*/*")
        to.mkdir()
        (to / "kept").touch()  # which the name cannot be given to any more
        process.communicate()
        assert process.returncode == 1
        assert [each.name for each in to.iterdir()] == ["kept"]
        assert not list(tmp_path.glob("to.restoring*"))
        shutil.rmtree(to)
        kill(begin(*restore, directory=tmp_path, until="to.restoring*/*"))
        assert not to.exists()
        backup(*restore)
        assert not list(tmp_path.glob("to.restoring*"))
        shutil.rmtree(server.data)
        to.rename(server.data)
        server.start()
        assert values(connect(server.host), table) == {b"row": value}
        server.stop()
