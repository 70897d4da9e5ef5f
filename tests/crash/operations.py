#!/usr/bin/env python3
"""Kills the server in the middle of every kind of administrative change. `./dev crash operations`.

Each change is called with the server set to be killed at its Nth moment from then on, a sync or a
change of names (POWERCUT_KILL, README.md); who survives that is killed when it has answered and the
operation is done. Before the next start the power is cut, in some lives; then

- the doctor finds nothing;
- what there is, resource by resource and row by row, is as it was before the change, or as after it
  and only that: never in between, and after it if the client had an answer;
- the operation's record says which: done with a response, or else an error, or there is none.

A change that has not happened is made again, since the next ones build on it. With --rounds N there
are N rounds over all changes; in round n the moment is n, or one by the seed in the last one.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests")]

import grpc  # noqa: E402
from google.api_core import exceptions  # noqa: E402
from google.iam.v1 import policy_pb2  # noqa: E402
from google.longrunning import operations_pb2 as lro  # noqa: E402
from google.protobuf import descriptor_pb2, timestamp_pb2  # noqa: E402
from harness.admin import OTHER_ZONE, PROJECT, ZONE, Admin, mask  # noqa: E402
from harness.rpc import Rpc, set_cell  # noqa: E402
from harness.server import UNDAMAGED, Server, binary  # noqa: E402

SETTINGS = {"--cache": "8MB", "--write-buffer": "4MB", "--disk-reserve": "0", "--backup-rate": "0"}
CUTS = ["keep", "lose", "tear", "holes"]
CALL_SECONDS = 180  # a DropRowRange demands two minutes
DEATH_SECONDS = 30
MOST_MOMENTS = 24

INSTANCE = f"{PROJECT}/instances/i"
CLUSTER = f"{INSTANCE}/clusters/a"
TABLE = f"{INSTANCE}/tables/t"
BACKUP = f"{CLUSTER}/backups/b"
NEW_TABLE = f"{INSTANCE}/tables/restored"
GONE, MADE, CHANGED = "gone", "made", "changed"


class Failure(Exception):
    pass


# --- what there is ---


class World:
    """Clients of one life of the server."""

    def __init__(self, host):
        self.admin, self.rpc = Admin(host), Rpc(host)
        self.instances, self.tables = self.admin.instances, self.admin.tables

    def close(self):
        self.admin.close()
        self.rpc.close()

    def look(self):
        """All resources by name, as text, with policies and rows."""
        found = {}
        for instance in self.instances.list_instances(parent=PROJECT).instances:
            self.look_at_instance(instance, found)
        return found

    def put(self, found, client, resource):
        found[resource.name] = str(resource)
        if client is not None:
            policy = client.get_iam_policy(request={"resource": resource.name})
            found[f"{resource.name} policy"] = str(policy)

    def look_at_instance(self, instance, found):
        name = instance.name
        self.put(found, self.instances, instance)
        for each in (
            *self.instances.list_clusters(parent=name).clusters,
            *self.instances.list_app_profiles(parent=name),
            *self.instances.list_logical_views(parent=name),
            *self.instances.list_materialized_views(parent=name),
        ):
            self.put(found, None, each)
        for each in self.tables.list_backups(parent=f"{name}/clusters/-"):
            self.put(found, self.tables, each)
        for each in self.tables.list_tables(request={"parent": name, "view": 4}):
            self.put(found, self.tables, each)
            found[f"{each.name} rows"] = str(self.rpc.read(each.name))
            self.look_at_table(each.name, found)

    def look_at_table(self, table, found):
        views = self.tables.list_authorized_views(request={"parent": table, "view": 3})
        for each in (*views, *self.tables.list_schema_bundles(parent=table)):
            self.put(found, self.tables, each)

    def operations(self):
        """By name. Waits for those that run."""
        page = self.admin.operations.ListOperations(
            lro.ListOperationsRequest(name=f"operations/{PROJECT}")
        )
        return {each.name: self.finished(each) for each in page.operations}

    def finished(self, operation):
        until = time.monotonic() + CALL_SECONDS
        while not operation.done and time.monotonic() < until:
            request = lro.WaitOperationRequest(name=operation.name)
            operation = self.admin.operations.WaitOperation(request)
        return operation


# --- the changes ---


def below(state, name):
    """All that `name` has, and itself."""
    return [key for key in state if key == name or key.startswith((f"{name}/", f"{name} "))]


def with_policy(name):
    return {name: MADE, f"{name} policy": MADE}


class Change:
    """One RPC. `expect(history)` says what of the state it changes, and to what: GONE, MADE,
    CHANGED, or the text that it will have. `metadata` is what its operation's is called; None: it
    has none.
    """

    def __init__(self, title, call, expect, metadata=None, is_long=False, prepare=None):
        self.title, self.call, self.metadata, self.is_long = title, call, metadata, is_long
        self.prepare = prepare or (lambda world: None)
        self.expect = expect if callable(expect) else lambda history: expect


def policy(name, role="roles/bigtable.reader"):
    bindings = [policy_pb2.Binding(role=role, members=["user:a@example.com"])]
    return {"resource": name, "policy": policy_pb2.Policy(version=1, bindings=bindings)}


def expiry(days):
    return timestamp_pb2.Timestamp(seconds=int(time.time()) + days * 86400)


def schema(field):
    message = descriptor_pb2.DescriptorProto(name="M")
    for number in range(1, field + 1):
        message.field.add(name=f"f{number}", number=number, type=3, label=1)
    file = descriptor_pb2.FileDescriptorProto(name="a.proto", package="a", message_type=[message])
    files = descriptor_pb2.FileDescriptorSet(file=[file])
    return {"proto_schema": {"proto_descriptors": files.SerializeToString()}}


def once(client, method, **request):
    """A call without the client's retries: its answer, or the kill."""
    return lambda world: getattr(getattr(world, client), method)(
        request=request, retry=None, timeout=CALL_SECONDS
    )


def resource(client, kind, parent, collection, made, changed, paths, is_operation=True,
             is_long=False, **of_deletion):  # fmt: skip
    """Create, update, delete of a resource that is all by itself."""
    title = "".join(word.capitalize() for word in kind.split("_"))
    name = f"{parent}/{collection}/x"
    has_policy = client == "tables"
    create = {"parent": parent, f"{kind}_id": "x", kind: made}
    update = {kind: {"name": name, **changed}, "update_mask": mask(*paths)}
    gone = {name: GONE, **({f"{name} policy": GONE} if has_policy else {})}
    return [
        Change(f"Create{title}", once(client, f"create_{kind}", **create),
               with_policy(name) if has_policy else {name: MADE},
               f"Create{title}Metadata" if is_operation else None, is_long),
        Change(f"Update{title}", once(client, f"update_{kind}", **update), {name: CHANGED},
               f"Update{title}Metadata"),
        Change(f"Delete{title}", once(client, f"delete_{kind}", name=name, **of_deletion), gone),
    ]  # fmt: skip


def set_policy(client, name, title):
    return Change(f"SetIamPolicy of {title}", once(client, "set_iam_policy", **policy(name)),
                  {f"{name} policy": CHANGED})  # fmt: skip


def table_gone(history):
    return dict.fromkeys(below(history[-1], TABLE), GONE)


def table_back(history):
    """As it was before the change that deleted it, operations not counted."""
    before = next(state for state in reversed(history) if TABLE in state)
    return {key: before[key] for key in below(before, TABLE)}


def instance_gone(history):
    return dict.fromkeys(below(history[-1], INSTANCE), GONE)


def changes_of_instances():
    cluster = {"location": ZONE, "serve_nodes": 1}
    second = f"{INSTANCE}/clusters/c"
    profile = {"multi_cluster_routing_use_any": {}}
    return [
        Change("CreateInstance",
               once("instances", "create_instance", parent=PROJECT, instance_id="i",
                    instance={"display_name": "i"}, clusters={"a": cluster}),
               {**with_policy(INSTANCE), CLUSTER: MADE, f"{INSTANCE}/appProfiles/default": MADE},
               "CreateInstanceMetadata"),
        Change("UpdateInstance",
               once("instances", "update_instance", name=INSTANCE, display_name="other"),
               {INSTANCE: CHANGED}),
        Change("PartialUpdateInstance",
               once("instances", "partial_update_instance",
                    instance={"name": INSTANCE, "display_name": "third"},
                    update_mask=mask("display_name")),
               {INSTANCE: CHANGED}, "UpdateInstanceMetadata"),
        Change("CreateCluster",
               once("instances", "create_cluster", parent=INSTANCE, cluster_id="c",
                    cluster={**cluster, "location": OTHER_ZONE}),
               {second: MADE}, "CreateClusterMetadata"),
        Change("UpdateCluster",
               once("instances", "update_cluster", name=second, serve_nodes=2),
               {second: CHANGED}, "UpdateClusterMetadata"),
        Change("PartialUpdateCluster",
               once("instances", "partial_update_cluster",
                    cluster={"name": second, "serve_nodes": 3}, update_mask=mask("serve_nodes")),
               {second: CHANGED}, "PartialUpdateClusterMetadata"),
        Change("DeleteCluster", once("instances", "delete_cluster", name=second), {second: GONE}),
        *resource("instances", "app_profile", INSTANCE, "appProfiles", profile,
                  {"description": "new"}, ["description"], is_operation=False,
                  ignore_warnings=True),
        *resource("instances", "logical_view", INSTANCE, "logicalViews", {"query": "SELECT 1"},
                  {"query": "SELECT 2"}, ["query"]),
        set_policy("instances", INSTANCE, "an instance"),
    ]  # fmt: skip


def changes_of_tables():
    families = {"f": {}, "g": {}}
    subset = {"subset_view": {"row_prefixes": [b"a"]}}
    counts = {"query": "SELECT _key, COUNT(*) AS n FROM t GROUP BY _key"}
    return [
        Change("CreateTable",
               once("tables", "create_table", parent=INSTANCE, table_id="t",
                    table={"column_families": families}, initial_splits=[{"key": b"m"}]),
               {**with_policy(TABLE), f"{TABLE} rows": MADE}),
        Change("ModifyColumnFamilies",
               once("tables", "modify_column_families", name=TABLE,
                    modifications=[{"id": "h", "create": {}}, {"id": "g", "drop": True}]),
               {TABLE: CHANGED}),
        *(Change("UpdateTable",
                 once("tables", "update_table", table={"name": TABLE, "deletion_protection": on},
                      update_mask=mask("deletion_protection")),
                 {TABLE: CHANGED}, "UpdateTableMetadata")
          for on in (True, False)),
        Change("DropRowRange",
               once("tables", "drop_row_range", name=TABLE, row_key_prefix=b"a"),
               {f"{TABLE} rows": CHANGED}, prepare=write_rows),
        *resource("tables", "authorized_view", TABLE, "authorizedViews", subset,
                  {"subset_view": {"row_prefixes": [b"b"]}}, ["subset_view"]),
        *resource("tables", "schema_bundle", TABLE, "schemaBundles", schema(1), schema(2),
                  ["proto_schema"]),
        *resource("instances", "materialized_view", INSTANCE, "materializedViews", counts,
                  {"deletion_protection": False}, ["deletion_protection"], is_long=True),
        resource("tables", "authorized_view", TABLE, "authorizedViews", subset, {}, [])[0],
        set_policy("tables", TABLE, "a table"),
    ]  # fmt: skip


def write_rows(world):
    for key in (b"a", b"z"):
        world.rpc.mutate(TABLE, key, set_cell("f", b"q", b"1", 1000))


def changes_of_backups():
    copy = f"{CLUSTER}/backups/copy"
    backup = {"source_table": TABLE, "expire_time": expiry(7)}
    return [
        Change("CreateBackup",
               once("tables", "create_backup", parent=CLUSTER, backup_id="b", backup=backup),
               with_policy(BACKUP), "CreateBackupMetadata", is_long=True),
        Change("UpdateBackup",
               once("tables", "update_backup", backup={"name": BACKUP, "expire_time": expiry(9)},
                    update_mask=mask("expire_time")),
               {BACKUP: CHANGED}),
        set_policy("tables", BACKUP, "a backup"),
        Change("CopyBackup",
               once("tables", "copy_backup", parent=CLUSTER, backup_id="copy",
                    source_backup=BACKUP, expire_time=expiry(8)),
               with_policy(copy), "CopyBackupMetadata", is_long=True),
        Change("RestoreTable",
               once("tables", "restore_table", parent=INSTANCE, table_id="restored",
                    backup=BACKUP),
               {**with_policy(NEW_TABLE), f"{NEW_TABLE} rows": MADE},
               "RestoreTableMetadata", is_long=True),
        Change("DeleteBackup", once("tables", "delete_backup", name=copy),
               {copy: GONE, f"{copy} policy": GONE}),
        Change("DeleteBackup", once("tables", "delete_backup", name=BACKUP),
               {BACKUP: GONE, f"{BACKUP} policy": GONE}),
    ]  # fmt: skip


def all_changes():
    return [
        *changes_of_instances(),
        *changes_of_tables(),
        *changes_of_backups(),
        Change("DeleteTable", once("tables", "delete_table", name=TABLE), table_gone),
        Change("UndeleteTable", once("tables", "undelete_table", name=TABLE), table_back,
               "UndeleteTableMetadata"),
        Change("DeleteInstance", once("instances", "delete_instance", name=INSTANCE),
               instance_gone),
    ]  # fmt: skip


# --- one story of them ---


class Story:
    def __init__(self, options):
        self.options = options
        options.directory.mkdir(parents=True)
        self.server = Server(options.directory, [w for each in SETTINGS.items() for w in each])
        self.kill_file = options.directory / "kill"
        self.dice = random.Random(options.seed)
        self.world = None
        self.outcomes = {"not happened": 0, "happened": 0, "answered": 0}

    def environment(self, cut):
        return {
            "POWERCUT_ROOT": str(self.server.data),
            "POWERCUT_JOURNAL": str(self.options.directory / "journal"),
            "POWERCUT_MODE": cut,
            "POWERCUT_SEED": str(self.dice.getrandbits(31)),
            "POWERCUT_NO_SYNC": "1",
            "POWERCUT_KILL": str(self.kill_file),
            "LD_PRELOAD": str(self.options.library),
        }

    def begin_life(self):
        """After a power cut, or none; the doctor comes first."""
        self.server.env = self.environment(self.dice.choice(CUTS))
        if self.server.data.exists():
            self.examine()
        self.server.start()
        self.world = World(self.server.host)

    def examine(self):
        done = subprocess.run(
            [binary(), "doctor", str(self.server.data)], env={**os.environ, **self.server.env},
            capture_output=True, text=True, timeout=DEATH_SECONDS,
        )  # fmt: skip
        if done.returncode not in UNDAMAGED:
            raise Failure(f"doctor: {done.stdout}{done.stderr}")

    def end_life(self):
        self.world.close()
        self.world = None
        if self.server.process.poll() is None:
            self.server.signal(9)
        self.server.wait()
        self.kill_file.unlink(missing_ok=True)
        self.server.check_log()

    def run(self):
        self.begin_life()
        try:
            for number in range(1, self.options.rounds + 1):
                history = []
                for change in all_changes():
                    self.hit(change, self.moment(number, change), history)
        finally:
            if self.server.process is not None:
                self.server.kill()

    def moment(self, number, change):
        by_seed = self.dice.randint(1, MOST_MOMENTS if change.is_long else 2)
        return number if number < self.options.rounds else by_seed

    def hit(self, change, moment, history):
        """The change with a kill, and without if that had come before it."""
        change.prepare(self.world)
        before, former = self.world.look(), set(self.world.operations())
        history.append(before)
        has_answered = self.call_and_die(change, moment)
        self.begin_life()
        try:
            has_happened = self.judge(change, history, former)
        except Failure as failure:
            raise Failure(f"{change.title}, moment {moment}: {failure}") from failure
        if has_answered and not has_happened and not change.is_long:
            raise Failure(f"{change.title}, moment {moment}: answered, and then lost")
        outcome = "happened" if has_happened else "not happened"
        self.outcomes["answered" if has_answered else outcome] += 1
        if not has_happened:
            change.call(self.world)
            if not self.judge(change, history, former):
                raise Failure(f"{change.title}: it does not happen")

    def call_and_die(self, change, moment):
        """Whether it was answered. The server is dead afterwards."""
        fresh = self.kill_file.with_suffix(".new")
        fresh.write_text(str(moment))
        fresh.rename(self.kill_file)
        has_answered = False
        try:
            change.call(self.world)
            has_answered = True
            self.world.operations()  # those that run end, or the server does
        except (exceptions.GoogleAPICallError, grpc.RpcError) as error:
            self.await_death(change, error)
        self.end_life()
        return has_answered

    def await_death(self, change, error):
        """An error is fine if it is the server's death, and nothing else."""
        try:
            self.server.process.wait(DEATH_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failure(f"{change.title}: {error}") from error

    # --- has it happened? ---

    def judge(self, change, history, former):
        operations = self.world.operations()
        after = self.world.look()
        fresh = [operations[name] for name in operations.keys() - former]
        has_happened = self.compare(change.expect(history), history[-1], after)
        self.check_record(change, fresh, has_happened)
        return has_happened

    def compare(self, expected, before, after):
        """Whether the state is as after the change; it may only be as before otherwise."""
        has_happened = all(
            self.is_as(expected[key], before.get(key), after.get(key)) for key in expected
        )
        touched = set(expected) if has_happened else set()
        keys = (before.keys() | after.keys()) - touched
        wrong = [key for key in sorted(keys) if before.get(key) != after.get(key)]
        if wrong:
            lines = [f"{key}: {before.get(key)!r} is now {after.get(key)!r}" for key in wrong]
            raise Failure("\n".join(["in between:", *lines]))
        return has_happened

    def is_as(self, wanted, before, after):
        if wanted is GONE:
            return before is not None and after is None
        if wanted is MADE:
            return before is None and after is not None
        if wanted is CHANGED:
            return before is not None and after is not None and before != after
        return after == wanted

    def check_record(self, change, fresh, has_happened):
        ours = [
            each
            for each in fresh
            if change.metadata and each.metadata.type_url.endswith(f".{change.metadata}")
        ]
        if any(not each.done for each in ours):
            raise Failure(f"an operation does not end: {ours}")
        succeeded = sum(each.HasField("response") for each in ours)
        if succeeded != (1 if has_happened and change.metadata else 0):
            raise Failure(f"happened: {has_happened}, but its records are {ours}")


def arguments():
    parser = argparse.ArgumentParser(
        prog="./dev crash operations",
        description="Kills the server in the middle of every kind of administrative change.",
    )
    add = parser.add_argument
    add("--rounds", type=int, default=24, metavar="N", help="default 24; 5 s each")
    add("--seed", type=int, metavar="N", help="default: chosen, and printed")
    add("--directory", type=Path, metavar="DIR", help="default build/crash/operations-SEED")
    add("--library", type=Path, metavar="FILE", help="libpowercut.so; default: beside the server")
    options = parser.parse_args()
    beside = Path(binary()).resolve().parent
    if options.seed is None:
        options.seed = random.SystemRandom().getrandbits(31)
    if options.directory is None:
        options.directory = beside / "crash" / f"operations-{options.seed}"
    options.directory = options.directory.resolve()
    if options.library is None:
        options.library = beside / "tests/crash/powercut/libpowercut.so"
    if not options.library.exists():
        parser.error(f"{options.library} is missing: build it with ninja")
    return options


def main():
    options = arguments()
    if options.directory.exists():
        shutil.rmtree(options.directory)
    story = Story(options)
    print(f"seed {options.seed}")
    try:
        story.run()
    except (Failure, AssertionError, RuntimeError) as failure:
        print(f"{failure}\nkept: {options.directory}", file=sys.stderr)
        print(f"again: ./dev crash operations --rounds {options.rounds} --seed {options.seed}",
              file=sys.stderr)  # fmt: skip
        return 1
    counts = ", ".join(f"{count} {outcome}" for outcome, count in story.outcomes.items())
    print(f"{len(all_changes())} changes in {options.rounds} rounds: {counts}")
    shutil.rmtree(options.directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
