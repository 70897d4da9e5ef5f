"""Backups that are cut short: cancelled, deleted while they are made, or killed with the server."""

import random
import shutil
import time

import pytest
from google.api_core import exceptions
from google.cloud.bigtable_admin_v2 import types
from google.longrunning import operations_pb2
from harness.backups import Backups, check_doctor, finish, from_now
from harness.rpc import fails_with, set_cell
from grpc import StatusCode

State = types.Backup.State
SLOW = ["--backup-rate", "8KB"]
ROWS = {b"%04d" % each: b"%d" % each * 200 for each in range(500)}


class Story:
    """A server with a table, a backup of it, and what a test needs to go on after a crash."""

    def __init__(self, server, administer, connect):
        self.server = server
        self.administer = administer
        self.connect = connect
        self.reach()
        self.instance = self.admin.create_instance("i")
        self.backups = Backups(self.admin, self.instance)
        self.admin.create_table(self.instance, "t")
        rows = [(key, [set_cell("f", b"q", value, 1000)]) for key, value in ROWS.items()]
        self.rpc.mutate_rows(self.backups.table("t"), rows)
        self.source = finish(self.backups.begin("source", "t"))

    def reach(self):
        self.admin = self.administer(self.server.host)
        self.rpc = self.connect(self.server.host)

    def restart(self, *arguments):
        """The server is dead; the next one has these arguments."""
        self.server.arguments = list(arguments)
        self.server.start()
        self.reach()
        self.backups = Backups(self.admin, self.instance)

    def begin(self, kind, name):
        """The name of the operation that makes `name`, by one of three kinds."""
        if kind == "create":
            return self.backups.begin(name, "t").operation.name
        if kind == "copy":
            return self.backups.copy(name, self.source.name).operation.name
        return self.backups.restore(name, self.source.name).operation.name

    def operation(self, name):
        return self.admin.operations.GetOperation(operations_pb2.GetOperationRequest(name=name))

    def wait(self, name):
        request = operations_pb2.WaitOperationRequest(name=name)
        while not (operation := self.admin.operations.WaitOperation(request)).done:
            pass
        return operation

    def exists(self, kind, name):
        try:
            if kind == "restore":
                self.admin.tables.get_table(name=self.backups.table(name))
                return True
            return self.backups.get(name).state == State.READY
        except exceptions.NotFound:
            return False

    def check(self, kind, name):
        """What was made has all the rows."""
        table = name
        if kind != "restore":
            table = f"{name}-restored"
            finish(self.backups.restore(table, self.backups.name(name)))
        rows = self.rpc.read(self.backups.table(table))
        assert {key: cells[0].value for key, cells in rows} == ROWS

    def check_disk(self):
        self.server.stop()
        check_doctor(self.server.data)
        assert not list((self.server.data / "restore").iterdir())


@pytest.fixture
def story(fresh_server, administer, connect):
    return Story(fresh_server(), administer, connect)


@pytest.fixture
def slow(story):
    """The same, with a server that takes half a minute for each backup: more than a test waits, on
    whatever machine."""
    story.server.kill()
    story.restart(*SLOW)
    return story


KINDS = ["create", "copy", "restore"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_kill_cuts_short_is_done_anew(slow, kind):
    operation = slow.begin(kind, "new")
    assert not slow.operation(operation).done
    slow.server.kill()
    slow.restart()
    done = slow.wait(operation)
    assert done.WhichOneof("result") == "response", done
    assert slow.exists(kind, "new")
    slow.check(kind, "new")
    slow.check_disk()


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_stop_cuts_short_is_done_anew(slow, kind):
    operation = slow.begin(kind, "new")
    slow.server.stop()
    slow.restart()
    assert slow.wait(operation).WhichOneof("result") == "response"
    slow.check(kind, "new")


def test_kills_at_random_moments(story):
    """Either it has happened or not, and the operation's record says which."""
    seed = 5
    dice = random.Random(seed)
    for cycle in range(6):
        kind, name = dice.choice(KINDS), f"new{cycle}"
        operation = story.begin(kind, name)
        for _ in range(dice.randrange(12)):
            story.operation(operation)
        story.server.kill()
        story.restart()
        done = story.wait(operation)
        happened = done.WhichOneof("result") == "response"
        assert story.exists(kind, name) == happened, (cycle, seed, done)
        if happened:
            story.check(kind, name)
    story.check_disk()


def test_a_source_that_is_gone_at_the_next_start(slow):
    """Somebody has taken the directory away meanwhile: the operation ends, and says why."""
    operation = slow.begin("copy", "new")
    slow.server.kill()
    (taken,) = (slow.server.data / "backups").glob("*,source")
    shutil.rmtree(taken)
    slow.restart()
    done = slow.wait(operation)
    assert done.error.code == StatusCode.NOT_FOUND.value[0], done
    assert not slow.exists("copy", "new")
    slow.check_disk()


@pytest.mark.parametrize("kind", KINDS)
def test_cancelling(slow, kind):
    operation = slow.begin(kind, "new")
    slow.admin.operations.CancelOperation(operations_pb2.CancelOperationRequest(name=operation))
    done = slow.wait(operation)
    assert done.error.code == StatusCode.CANCELLED.value[0], done
    assert not slow.exists(kind, "new")
    slow.backups.delete("source")  # nothing holds it
    slow.check_disk()


def test_a_backup_that_is_being_made(slow):
    operation = slow.begin("create", "new")
    made = slow.backups.get("new")
    assert made.state == State.CREATING
    assert made.start_time and not made.end_time and made.size_bytes == 0
    assert slow.backups.ids(filter="state:CREATING") == ["new"]
    for call in (
        lambda: slow.backups.restore("t2", made.name),
        lambda: slow.backups.copy("copy", made.name),
        lambda: slow.backups.update("new", "expire_time", expire_time=from_now(days=2)),
    ):
        with pytest.raises(exceptions.FailedPrecondition, match="being created"):
            call()
    with pytest.raises(exceptions.FailedPrecondition, match="backups"):
        slow.admin.instances.delete_instance(name=slow.instance)
    slow.backups.delete("new")
    assert slow.wait(operation).error.code == StatusCode.CANCELLED.value[0]
    assert not slow.exists("create", "new")


@pytest.mark.parametrize("kind", ["copy", "restore"])
def test_what_is_read_is_not_deleted(slow, kind):
    operation = slow.begin(kind, "new")
    with pytest.raises(exceptions.FailedPrecondition, match="copied or restored"):
        slow.backups.delete("source")
    slow.admin.operations.CancelOperation(operations_pb2.CancelOperationRequest(name=operation))
    slow.wait(operation)
    slow.backups.delete("source")


@pytest.mark.parametrize(
    ("kind", "message"),
    [("copy", types.CopyBackupMetadata), ("restore", types.RestoreTableMetadata)],
)
def test_progress_shows(slow, kind, message):
    def percent_of(now):
        return message.deserialize(now.metadata.value).progress.progress_percent

    operation = slow.begin(kind, "new")
    while not 0 < percent_of(now := slow.operation(operation)) < 100:
        assert not now.done
        time.sleep(0.02)
    slow.server.kill()
    slow.restart()
    assert percent_of(slow.wait(operation)) == 100


def test_a_table_that_goes_meanwhile(slow):
    """A backup that has begun has all of it; one that begins anew at the next start, nothing."""
    operation = slow.begin("create", "new")
    slow.admin.tables.delete_table(name=slow.backups.table("t"))
    slow.server.kill()
    slow.restart()
    done = slow.wait(operation)
    assert done.error.code == StatusCode.NOT_FOUND.value[0]
    assert not slow.exists("create", "new")
    with fails_with(StatusCode.NOT_FOUND):
        slow.rpc.get_table(slow.backups.table("t"))
    slow.check_disk()
