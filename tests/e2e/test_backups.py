"""Backups as a client sees them: made, found, changed, copied, restored, deleted."""

import datetime
import http.client
import json

import pytest
from google.api_core import exceptions
from google.cloud.bigtable_admin_v2 import types
from google.iam.v1 import policy_pb2
from google.longrunning import operations_pb2
from harness.admin import mask
from harness.backups import Backups, finish, from_now
from harness.patience import PATIENCE_SECONDS
from harness.rpc import set_cell

State = types.Backup.State
Type = types.Backup.BackupType


@pytest.fixture
def backups(admin, new_instance):
    """An instance with the table `t`, which has some rows in three tablets."""
    made = Backups(admin, new_instance())
    splits = [{"key": b"h"}, {"key": b"p"}]
    request = {
        "parent": made.instance,
        "table_id": "t",
        "table": {"column_families": {"f": {"gc_rule": {"max_num_versions": 2}}}},
        "initial_splits": splits,
    }
    admin.tables.create_table(request=request)
    yield made
    for each in made.list(f"{made.instance}/clusters/-"):
        admin.tables.delete_backup(name=each.name)
    admin.instances.delete_instance(name=made.instance)


def fill(rpc, table, rows):
    for key, value in rows.items():
        rpc.mutate(table, key, set_cell("f", b"q", value))


def rows_of(rpc, table):
    return {key: cells[0].value for key, cells in rpc.read(table)}


ROWS = {b"a": b"1", b"i": b"2", b"z": b"3"}


# --- the life of one ---


def test_life_of_a_backup(backups, rpc):
    fill(rpc, backups.table("t"), ROWS)
    before = from_now()
    operation = backups.begin("b", "t")
    made = finish(operation)
    assert made.name == backups.name("b")
    assert made.source_table == backups.table("t")
    assert made.state == State.READY and made.backup_type == Type.STANDARD
    assert before - datetime.timedelta(seconds=1) <= made.start_time <= made.end_time <= from_now()
    assert made.size_bytes > 0
    kinds = types.EncryptionInfo.EncryptionType
    assert made.encryption_info.encryption_type == kinds.GOOGLE_DEFAULT_ENCRYPTION
    metadata = operation.metadata
    assert (metadata.name, metadata.source_table) == (made.name, made.source_table)
    assert (metadata.start_time, metadata.end_time) == (made.start_time, made.end_time)
    assert backups.get("b") == made
    assert backups.list() == [made]
    backups.delete("b")
    with pytest.raises(exceptions.NotFound, match="Not found: projects"):
        backups.get("b")
    with pytest.raises(exceptions.NotFound):
        backups.delete("b")
    assert backups.list() == []


def test_a_backup_outlives_its_table_and_is_restored(backups, admin, rpc):
    fill(rpc, backups.table("t"), ROWS)
    source = admin.tables.get_table(name=backups.table("t"))
    made = backups.create("b", "t")
    admin.tables.delete_table(name=backups.table("t"))
    operation = backups.restore("t2", made.name)
    restored = finish(operation)
    assert restored.name == backups.table("t2")
    assert restored.column_families == source.column_families
    info = restored.restore_info
    assert info.source_type == types.RestoreSourceType.BACKUP
    assert (info.backup_info.backup, info.backup_info.source_table) == (
        made.name, backups.table("t"),
    )  # fmt: skip
    assert (info.backup_info.start_time, info.backup_info.end_time) == (
        made.start_time, made.end_time,
    )  # fmt: skip
    assert admin.tables.get_table(name=restored.name) == restored
    assert operation.metadata.name == restored.name
    assert operation.metadata.backup_info == info.backup_info
    assert operation.metadata.progress.progress_percent == 100
    assert operation.metadata.optimize_table_operation_name == ""
    assert operation.optimize_restored_table_operation() is None
    assert rows_of(rpc, restored.name) == ROWS
    assert [key for key, _ in rpc.sample_row_keys(restored.name)] == [b"h", b"p", b""]
    fill(rpc, restored.name, {b"a": b"new"})
    assert rows_of(rpc, restored.name)[b"a"] == b"new"


# --- what is refused ---


def test_names_that_are_none(backups):
    for backup_id in ("", "-starts-badly", "b" * 51, "a/b"):
        with pytest.raises(exceptions.InvalidArgument):
            backups.begin(backup_id, "t")
    with pytest.raises(exceptions.InvalidArgument, match="not in the instance"):
        backups.begin("b", "t", source_table="projects/p/instances/other/tables/t")
    with pytest.raises(exceptions.InvalidArgument):
        backups.begin("b", "t", source_table="t")
    with pytest.raises(exceptions.InvalidArgument):
        backups.tables.get_backup(name=f"{backups.instance}/backups/b")
    with pytest.raises(exceptions.InvalidArgument):
        backups.restore("t2", "b")
    with pytest.raises(exceptions.InvalidArgument):
        backups.restore("no/slash", backups.name("b"))


def test_what_is_not_there(backups):
    with pytest.raises(exceptions.NotFound, match=f"Not found: {backups.table('u')}"):
        backups.begin("b", "u")
    with pytest.raises(exceptions.NotFound, match="clusters/other"):
        backups.tables.create_backup(
            parent=f"{backups.instance}/clusters/other",
            backup_id="b",
            backup={"source_table": backups.table("t"), "expire_time": from_now(days=1)},
        )
    missing = backups.name("missing")
    for call in (
        lambda: backups.get("missing"),
        lambda: backups.update("missing", "expire_time", expire_time=from_now(days=2)),
        lambda: backups.copy("b", missing),
        lambda: backups.restore("t2", missing),
    ):
        with pytest.raises(exceptions.NotFound, match=f"Not found: {missing}"):
            call()
    with pytest.raises(exceptions.NotFound):
        backups.list(f"{backups.instance}/clusters/other")


def test_what_is_there_already(backups):
    made = backups.create("b", "t")
    with pytest.raises(exceptions.AlreadyExists, match="Backup already exists"):
        backups.begin("b", "t")
    with pytest.raises(exceptions.AlreadyExists, match="Backup already exists"):
        backups.copy("b", made.name)
    with pytest.raises(exceptions.AlreadyExists, match="Table already exists"):
        backups.restore("t", made.name)
    backups.delete("b")  # nothing holds it


# --- times and types ---


def test_expire_times_of_creation(backups):
    for span, text in (
        ({"hours": 5.9}, "at least 6h"),
        ({"days": 91}, "at most 90 days"),
        ({"days": -1}, "6h"),
    ):
        with pytest.raises(exceptions.InvalidArgument, match=text):
            backups.begin("b", "t", expire_time=from_now(**span))


def test_an_expire_time_is_required(backups):
    with pytest.raises(exceptions.InvalidArgument, match="expire_time"):
        backups.begin("b", "t", expire_time=None)


def test_enterprise_plus_keeps_longer(admin, new_instance):
    plus = types.Instance.Edition.ENTERPRISE_PLUS
    backups = Backups(admin, new_instance(edition=plus))
    admin.create_table(backups.instance, "t")
    made = backups.create("b", "t", expire_time=from_now(days=300))
    assert made.expire_time > from_now(days=299)
    backups.delete("b")


def test_an_expire_time_can_be_changed(backups):
    made = backups.create("b", "t")
    later = from_now(days=80)
    changed = backups.update("b", "expire_time", expire_time=later)
    assert changed.expire_time == later
    assert backups.get("b") == changed
    made.expire_time = later
    assert made == changed
    assert backups.update("b", "expireTime", expire_time=from_now(days=2)) == backups.get("b")
    for span in ({"hours": 5}, {"days": 91}):
        with pytest.raises(exceptions.InvalidArgument):
            backups.update("b", "expire_time", expire_time=from_now(**span))
    for paths in ((), ("size_bytes",), ("source_table",), ("backup_type",), ("name",)):
        with pytest.raises(exceptions.InvalidArgument):
            backups.update("b", *paths, expire_time=later)


def test_hot_backups(backups):
    cooling = from_now(days=2)
    made = backups.create("b", "t", backup_type=Type.HOT, hot_to_standard_time=cooling)
    assert (made.backup_type, made.hot_to_standard_time) == (Type.HOT, cooling)
    later = from_now(days=3)
    changed = backups.update("b", "hot_to_standard_time", hot_to_standard_time=later)
    assert (changed.hot_to_standard_time, changed.expire_time) == (later, made.expire_time)
    copied = finish(backups.copy("copy", made.name))
    assert copied.backup_type == Type.STANDARD and not copied.hot_to_standard_time
    with pytest.raises(exceptions.InvalidArgument, match="at least 24h"):
        backups.update("b", "hot_to_standard_time", hot_to_standard_time=from_now(hours=23))
    with pytest.raises(exceptions.InvalidArgument, match="hot backups"):
        backups.begin("c", "t", hot_to_standard_time=cooling)
    with pytest.raises(exceptions.InvalidArgument, match="hot backups"):
        backups.update("copy", "hot_to_standard_time", hot_to_standard_time=cooling)


# --- copies ---


def test_copies_go_anywhere(backups, admin, new_instance, rpc):
    fill(rpc, backups.table("t"), ROWS)
    source = backups.create("b", "t")
    elsewhere = Backups(admin, new_instance("c2"), "c2")
    operation = backups.copy("copy", source.name, parent=elsewhere.cluster)
    copied = finish(operation)
    assert copied.name == elsewhere.name("copy")
    assert (copied.source_backup, copied.source_table) == (source.name, source.source_table)
    assert copied.size_bytes == source.size_bytes
    assert operation.metadata.name == copied.name
    assert operation.metadata.source_backup_info.backup == source.name
    assert operation.metadata.progress.progress_percent == 100
    backups.delete("b")
    admin.tables.delete_table(name=backups.table("t"))
    restored = finish(elsewhere.restore("t", copied.name))
    assert restored.restore_info.backup_info.source_backup == source.name
    assert rows_of(rpc, restored.name) == ROWS
    with pytest.raises(exceptions.FailedPrecondition, match="copied"):
        elsewhere.copy("again", copied.name)
    elsewhere.delete("copy")


def test_copies_expire_within_30_days(backups):
    source = backups.create("b", "t")
    for span in ({"hours": 5}, {"days": 31}):
        with pytest.raises(exceptions.InvalidArgument):
            backups.copy("copy", source.name, expire_time=from_now(**span))
    finish(backups.copy("copy", source.name, expire_time=from_now(days=29)))
    with pytest.raises(exceptions.InvalidArgument, match="30 days"):
        backups.update("copy", "expire_time", expire_time=from_now(days=31))


def test_restoring_into_another_project(backups, admin, rpc):
    """Into an instance that nobody created: on loopback it comes with its first table."""
    fill(rpc, backups.table("t"), ROWS)
    made = backups.create("b", "t")
    name = backups.instance.replace("projects/p/", "projects/elsewhere/")
    restored = finish(backups.restore("t", made.name, instance=name))
    assert restored.name == f"{name}/tables/t"
    assert rows_of(rpc, restored.name) == ROWS
    assert admin.instances.get_instance(name=name).name == name


# --- what has backups is not deleted ---


def test_clusters_with_backups_stay(admin, new_instance):
    backups = Backups(admin, new_instance("c", "d"), "d")
    admin.create_table(backups.instance, "t")
    backups.create("b", "t")
    with pytest.raises(exceptions.FailedPrecondition, match="backups"):
        admin.instances.delete_cluster(name=backups.cluster)
    backups.delete("b")
    admin.instances.delete_cluster(name=backups.cluster)


# --- lists ---


@pytest.fixture
def several(backups, admin):
    """Backups b1, b2 of t, and b3 of u, in the order in which they were made."""
    admin.create_table(backups.instance, "u")
    for backup_id, table_id in (("b1", "t"), ("b2", "t"), ("b3", "u")):
        backups.create(backup_id, table_id)
    return backups


FILTERS = [
    ("", ["b3", "b2", "b1"]),
    ('name:"b2"', ["b2"]),
    ("name:backups/b2", ["b2"]),
    ('name:"backups/b2"', []),
    ("source_table:t", ["b3", "b2", "b1"]),
    ('source_table:"t"', ["b2", "b1"]),
    ("source_table = u", ["b3"]),
    ("state:READY", ["b3", "b2", "b1"]),
    ("state:creating", []),
    ("state != READY", []),
    ("size_bytes >= 0", ["b3", "b2", "b1"]),
    ("size_bytes > 1000000000", []),
    ('start_time > "2018-03-28T14:50:00Z"', ["b3", "b2", "b1"]),
    ("end_time<2018-03-28T14:50:00Z", []),
    ('(source_table:"t") AND (NOT name:"b1")', ["b2"]),
    ('name:"b1" OR name:"b3"', ["b3", "b1"]),
    ('source_table:"t" -name:"b2"', ["b1"]),
]


def test_filters(several):
    assert {chosen: several.ids(filter=chosen) for chosen, _ in FILTERS} == dict(FILTERS)


def test_filters_by_the_time_of_another(several):
    middle = several.get("b2").start_time.isoformat()
    assert several.ids(filter=f'start_time > "{middle}"') == ["b3"]
    assert several.ids(filter=f'start_time <= "{middle}"') == ["b2", "b1"]
    assert several.ids(filter=f'start_time = "{middle}"') == ["b2"]


def test_filters_that_are_none(backups):
    bad = ["b1", "color:red", "state:SOME", "size_bytes > many", "end_time < noon", "(name:b"]
    for chosen in bad:
        with pytest.raises(exceptions.InvalidArgument):
            backups.list(filter=chosen)


def test_orders(several):
    assert several.ids(order_by="start_time") == ["b1", "b2", "b3"]
    assert several.ids(order_by="name desc") == ["b3", "b2", "b1"]
    assert several.ids(order_by="source_table desc, end_time asc") == ["b3", "b1", "b2"]
    for refused in ("color", "name up", "name,", "name, name"):
        with pytest.raises(exceptions.InvalidArgument):
            several.list(order_by=refused)


def test_pages(several, admin):
    request = {"parent": several.cluster, "page_size": 1}
    pages = list(admin.tables.list_backups(request=request).pages)
    assert [[each.name[-2:] for each in page.backups] for page in pages] == [["b3"], ["b2"], ["b1"]]
    token = pages[0].next_page_token
    several.delete("b3")  # what the token tells of
    assert several.ids(page_token=token) == ["b2", "b1"]
    for token in ("!", "AAAA"):
        with pytest.raises(exceptions.InvalidArgument):
            several.list(page_token=token)
    with pytest.raises(exceptions.InvalidArgument):
        several.list(page_size=-1)


def test_lists_of_all_clusters(admin, new_instance):
    backups = Backups(admin, new_instance("c", "d"))
    admin.create_table(backups.instance, "t")
    backups.create("b1", "t")
    other = Backups(admin, backups.instance, "d")
    other.create("b2", "t")
    assert backups.ids() == ["b1"]
    assert backups.ids(f"{backups.instance}/clusters/-") == ["b2", "b1"]
    assert other.ids(f"{backups.instance}/clusters/-", order_by="name") == ["b1", "b2"]
    backups.delete("b1")
    other.delete("b2")
    assert backups.ids(f"{backups.instance}/clusters/-") == []


# --- policies ---


def test_a_backup_has_a_policy_of_its_own(backups, admin):
    name = backups.create("b", "t").name
    binding = policy_pb2.Binding(role="roles/bigtable.reader", members=["user:a@example.com"])
    policy = {"bindings": [binding]}
    admin.tables.set_iam_policy(request={"resource": name, "policy": policy})
    assert admin.tables.get_iam_policy(request={"resource": name}).bindings == [binding]
    permissions = ["bigtable.backups.get"]
    request = {"resource": name, "permissions": permissions}
    assert admin.tables.test_iam_permissions(request=request).permissions == permissions
    backups.delete("b")
    with pytest.raises(exceptions.NotFound):
        admin.tables.get_iam_policy(request={"resource": name})
    backups.create("b", "t")
    assert not admin.tables.get_iam_policy(request={"resource": name}).bindings


# --- automated backups ---

DAY = 24 * 3600


def policy_of(days, **fields):
    return {"retention_period": {"seconds": days * DAY}, **fields}


def test_policies_of_tables(backups, admin):
    """When they make backups, src/bigtable/backup_scheduler_test.c tests by a clock of its own."""
    table = {"automated_backup_policy": policy_of(3)}
    request = {"parent": backups.instance, "table_id": "u", "table": table}
    made = admin.tables.create_table(request=request)
    kept = types.Table.AutomatedBackupPolicy(
        retention_period=datetime.timedelta(days=3), frequency=datetime.timedelta(days=1)
    )
    assert made.automated_backup_policy == kept
    assert made.effective_automated_backup_policy == kept
    assert admin.tables.get_table(name=made.name) == made

    def update(path, **fields):
        wanted = {"name": made.name, "automated_backup_policy": fields}
        if not fields:
            del wanted["automated_backup_policy"]
        operation = admin.tables.update_table(table=wanted, update_mask=mask(path))
        return finish(operation).automated_backup_policy

    longer = policy_of(9)
    kept.retention_period = datetime.timedelta(days=9)
    assert update("automated_backup_policy.retention_period", **longer) == kept
    assert update("automatedBackupPolicy", **policy_of(9, disabled=True)).disabled
    assert not admin.tables.get_table(name=made.name).effective_automated_backup_policy
    assert not update("automated_backup_policy")
    assert not admin.tables.get_table(name=made.name).automated_backup_policy
    for refused in (
        policy_of(2),
        policy_of(91),
        policy_of(3, frequency={"seconds": DAY // 2}),
        policy_of(3, keep_hot_duration={"seconds": 4 * DAY}),
        policy_of(3, locations=["here"]),
        {"frequency": {"seconds": DAY}},
    ):
        with pytest.raises(exceptions.InvalidArgument):
            update("automated_backup_policy", **refused)
        with pytest.raises(exceptions.InvalidArgument):
            table = {"automated_backup_policy": refused}
            request = {"parent": backups.instance, "table_id": "v", "table": table}
            admin.tables.create_table(request=request)


def test_a_policy_makes_backups(fresh_server, administer, connect):
    """At the start at the latest; and what an operator watches."""
    server = fresh_server()
    admin = administer(server.host)
    backups = Backups(admin, admin.create_instance("i"))
    table = {"column_families": {"f": {}}, "automated_backup_policy": policy_of(3)}
    request = {"parent": backups.instance, "table_id": "t", "table": table}
    admin.tables.create_table(request=request)
    fill(connect(server.host), backups.table("t"), ROWS)
    server.restart()
    admin = administer(server.host)
    backups = Backups(admin, backups.instance)
    while not (made := backups.list(filter="state:READY")):
        pass
    assert len(made) == 1
    assert made[0].name.startswith(f"{backups.cluster}/backups/auto-2")
    span = made[0].expire_time - made[0].start_time
    assert datetime.timedelta(days=3) - span < datetime.timedelta(seconds=10)
    finish(backups.restore("t2", made[0].name))
    assert rows_of(connect(server.host), backups.table("t2")) == ROWS
    assert server.metric("backups") == 1
    assert server.metric("backup_bytes") == made[0].size_bytes
    assert server.metric("backup_newest_timestamp_seconds") == int(made[0].start_time.timestamp())
    assert server.metric("backups_made_total") == 1
    assert server.metric("backup_failures_total") == 0


# --- by REST ---


def test_a_backup_may_be_deleted_once_its_restore_is_done(backups):
    """The restore used to let go of its backup only after its operation was done."""
    for number in range(10):
        backup, table = f"gone{number}", f"restored{number}"
        backups.create(backup, "t")
        restoring = backups.restore(table, backups.name(backup)).operation
        request = operations_pb2.GetOperationRequest(name=restoring.name)
        while not (restoring := backups.admin.operations.GetOperation(request)).done:
            pass
        backups.delete(backup)
        assert restoring.HasField("response")


def test_backups_by_rest(backups, server):
    def call(verb, path, body=None):
        connection = http.client.HTTPConnection(server.host, timeout=PATIENCE_SECONDS)
        connection.request(verb, f"/v2/{path}", json.dumps(body) if body else None)
        response = connection.getresponse()
        answer = json.loads(response.read())
        connection.close()
        assert response.status == 200, answer
        return answer

    def done(operation):
        while not operation.get("done"):
            operation = call("GET", operation["name"])
        return operation["response"]

    expiry = from_now(days=7).isoformat()
    body = {"sourceTable": backups.table("t"), "expireTime": expiry}
    made = done(call("POST", f"{backups.cluster}/backups?backupId=b", body))
    assert made["@type"] == "type.googleapis.com/google.bigtable.admin.v2.Backup"
    assert (made["name"], made["state"]) == (backups.name("b"), "READY")
    body = {"backupId": "b2", "sourceBackup": made["name"], "expireTime": expiry}
    copied = done(call("POST", f"{backups.cluster}/backups:copy", body))
    assert copied["sourceBackup"] == made["name"]
    listed = call("GET", f"{backups.instance}/clusters/-/backups?orderBy=name%20desc&pageSize=1")
    assert [each["name"] for each in listed["backups"]] == [copied["name"]]
    chosen = call("GET", f"{backups.cluster}/backups?filter=name%3A%22b%22")
    assert [each["name"] for each in chosen["backups"]] == [made["name"]]
    later = from_now(days=8).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    changed = call("PATCH", f"{made['name']}?updateMask=expireTime", {"expireTime": later})
    assert changed["expireTime"] == later
    assert call("GET", made["name"]) == changed
    body = {"backup": made["name"], "tableId": "t2"}
    restored = done(call("POST", f"{backups.instance}/tables:restore", body))
    assert restored["restoreInfo"]["backupInfo"]["backup"] == made["name"]
    assert call("POST", f"{made['name']}:getIamPolicy", {"options": {}})["etag"]
    assert call("DELETE", copied["name"]) == {}
