"""What Google's own integration suites for Go, Java, Node and Python ask of the admin service, and
got otherwise from us.

Each is held to here by raw messages, by Google's client where it has a method, and over REST:
CreateInstance without serve_nodes (Python's admin suite); PrepareQuery without a data_format (no
query could be run by Java's and Node's clients); GetAuthorizedView without a view (Go's client
panicked, Java's threw); app profiles' etags (an update by an object read before the last one was
ABORTED); expiry in exactly six hours, hot for exactly a day, reckoned before the request was sent;
numbers of nodes and scaling factors that nobody gave; ids of clusters of 31 and 37 bytes; the etag
of a policy that nobody set; encryption_status; tiered storage; the operation that optimizes a table
restored from HDD to SSD."""

import base64
import datetime

import pytest
from google.api_core import exceptions
from google.cloud.bigtable_admin_v2 import types
from google.cloud.bigtable_v2 import types as data_types
from google.iam.v1 import policy_pb2
from google.longrunning import operations_pb2
from google.protobuf import duration_pb2
from grpc import StatusCode
from harness.admin import OTHER_ZONE, PROJECT, ZONE, mask
from harness.backups import Backups, finish, from_now
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest
from harness.rpc import INSTANCE, fails_with
from harness.sql import execute, values_of

FACTOR = types.Cluster.NodeScalingFactor
NO_POLICY = b"\x00\x20\x01"


@pytest.fixture
def rest(server):
    return Rest(server.host)


# --- SQL without a data_format ---


def test_a_query_is_prepared_without_a_data_format(rpc, server, rest):
    request = data_types.PrepareQueryRequest(instance_name=INSTANCE, query="SELECT 1 AS one")
    assert "proto_format" not in request
    prepared = rpc.data.prepare_query(request)
    assert prepared.metadata.proto_schema.columns[0].name == "one"
    assert values_of(execute(rpc, prepared))[0].int_value == 1
    answer = rest.call("POST", f"/v2/{INSTANCE}:prepareQuery", {"query": "SELECT 1 AS one"})
    assert answer["metadata"]["protoSchema"]["columns"][0]["name"] == "one"


# --- authorized views ---


def test_an_authorized_view_is_shown_whole(admin, rpc, new_instance, rest):
    table = admin.create_table(new_instance(), "t")
    subset = {"row_prefixes": [b"a"]}
    admin.tables.create_authorized_view(
        parent=table, authorized_view_id="v", authorized_view={"subset_view": subset}
    ).result()
    name = f"{table}/authorizedViews/v"
    by_client = admin.tables.get_authorized_view(name=name)
    assert by_client.subset_view.row_prefixes == [b"a"]
    raw = rpc.admin.get_authorized_view(types.GetAuthorizedViewRequest(name=name))
    assert raw == by_client
    assert rest.call("GET", f"/v2/{name}")["subsetView"] == {"rowPrefixes": ["YQ=="]}
    basic = types.AuthorizedView.ResponseView.BASIC
    shown = admin.tables.get_authorized_view(request={"name": name, "view": basic})
    assert shown.etag
    assert not shown.subset_view


# --- app profiles ---


def test_app_profiles_have_no_etag(admin, new_instance, rest):
    instance = new_instance()
    wanted = {"multi_cluster_routing_use_any": {}, "description": "1", "etag": "of the client's"}
    made = admin.instances.create_app_profile(
        parent=instance, app_profile_id="ap", app_profile=wanted
    )
    assert made.etag == ""
    listed = {each.name: each for each in admin.instances.list_app_profiles(parent=instance)}
    assert [each.etag for each in listed.values()] == ["", ""]
    for description in ("2", "3"):
        changed = admin.instances.update_app_profile(
            app_profile={"name": made.name, "etag": "stale", "description": description},
            update_mask=mask("description"),
        ).result()
        assert (changed.description, changed.etag) == (description, "")
    assert admin.instances.get_app_profile(name=made.name) == changed
    shown = rest.call("GET", f"/v2/{made.name}")
    assert "etag" not in shown
    body = {"description": "4", "etag": "stale"}
    rest.call("PATCH", f"/v2/{made.name}?updateMask=description", body)
    assert admin.instances.get_app_profile(name=made.name).description == "4"


# --- clusters ---


def autoscaling(least, most):
    return {
        "cluster_autoscaling_config": {
            "autoscaling_limits": {"min_serve_nodes": least, "max_serve_nodes": most},
            "autoscaling_targets": {"cpu_utilization_percent": 60},
        }
    }


def create_cluster(admin, instance, cluster_id, **fields):
    return admin.instances.create_cluster(
        parent=instance, cluster_id=cluster_id, cluster={"location": OTHER_ZONE, **fields}
    ).result()


@pytest.mark.parametrize("factor, nodes", [(0, 1), (1, 1), (2, 2)])
def test_clusters_of_which_nobody_says_how_many_nodes(admin, new_table_id, factor, nodes):
    instance = f"{PROJECT}/instances/i{new_table_id()}"
    cluster = {"location": ZONE, "node_scaling_factor": factor}
    admin.instances.create_instance(
        parent=PROJECT, instance_id=instance.rsplit("/", 1)[1], instance={"display_name": "x"},
        clusters={"c": cluster},
    ).result()  # fmt: skip
    made = admin.instances.get_cluster(name=f"{instance}/clusters/c")
    assert (made.serve_nodes, made.node_scaling_factor) == (nodes, factor)
    other = create_cluster(admin, instance, "d", node_scaling_factor=factor)
    assert (other.serve_nodes, other.node_scaling_factor) == (nodes, factor)
    with pytest.raises(exceptions.InvalidArgument):
        create_cluster(admin, instance, "e", serve_nodes=-1)
    with pytest.raises(exceptions.InvalidArgument):
        admin.instances.update_cluster(request=types.Cluster(name=made.name)).result()
    admin.instances.delete_instance(name=instance)


def test_an_instance_without_nodes_by_rest(rest, new_table_id):
    instance_id = f"i{new_table_id()}"
    body = {
        "instanceId": instance_id, "instance": {"displayName": "x"},
        "clusters": {"c": {"location": ZONE}},
    }  # fmt: skip
    rest.call("POST", f"/v2/{PROJECT}/instances", body)
    name = f"{PROJECT}/instances/{instance_id}"
    shown = rest.call("GET", f"/v2/{name}/clusters/c")
    assert shown["serveNodes"] == 1
    assert "nodeScalingFactor" not in shown
    rest.call("DELETE", f"/v2/{name}")


def test_nodes_of_clusters_that_scale_themselves(admin, new_instance):
    instance = new_instance()
    answer = create_cluster(admin, instance, "d", cluster_config=autoscaling(3, 4))
    assert answer.serve_nodes == 0
    assert admin.instances.get_cluster(name=answer.name).serve_nodes == 3

    def scale(name, least, most):
        wanted = {"name": name, "cluster_config": autoscaling(least, most)}
        return admin.instances.partial_update_cluster(
            cluster=wanted, update_mask=mask("cluster_config.cluster_autoscaling_config")
        ).result()

    assert scale(answer.name, 5, 6).serve_nodes == 3
    assert admin.instances.get_cluster(name=answer.name).serve_nodes == 3
    assert scale(f"{instance}/clusters/c", 3, 4).serve_nodes == 1
    assert scale(f"{instance}/clusters/c", 1, 4).serve_nodes == 1


def test_long_ids_of_clusters(admin, new_instance):
    instance = new_instance("c" * 31)
    assert create_cluster(admin, instance, "c" * 63).name.endswith("/" + "c" * 63)
    with pytest.raises(exceptions.InvalidArgument):
        create_cluster(admin, instance, "c" * 64)


# --- policies ---


def test_the_etag_of_a_policy_that_nobody_has_set(admin, new_instance, rest):
    table = admin.create_table(new_instance(), "t")
    empty = admin.tables.get_iam_policy(request={"resource": table})
    assert empty.etag == NO_POLICY
    shown = rest.call("POST", f"/v2/{table}:getIamPolicy", {})
    assert base64.b64decode(shown["etag"]) == NO_POLICY
    kept = admin.tables.set_iam_policy(
        request={"resource": table, "policy": policy_pb2.Policy(etag=NO_POLICY)}
    )
    assert kept.etag != NO_POLICY
    with pytest.raises(exceptions.Aborted):
        admin.tables.set_iam_policy(
            request={"resource": table, "policy": policy_pb2.Policy(etag=NO_POLICY)}
        )


# --- encryption ---


def test_encryption_status(admin, new_instance, rest):
    instance = new_instance()
    key = f"{PROJECT}/locations/us-east1/keyRings/r/cryptoKeys/k"
    create_cluster(admin, instance, "d", serve_nodes=1, encryption_config={"kms_key_name": key})
    table = admin.create_table(instance, "t")
    request = {"name": table, "view": types.Table.View.ENCRYPTION_VIEW}
    states = admin.tables.get_table(request=request).cluster_states
    (info,) = states["d"].encryption_info
    assert "encryption_status" in info
    assert info.encryption_status.code == StatusCode.OK.value[0]
    assert "encryption_status" not in states["c"].encryption_info[0]
    shown = rest.call("GET", f"/v2/{table}?view=ENCRYPTION_VIEW")
    assert shown["clusterStates"]["d"]["encryptionInfo"][0]["encryptionStatus"] == {}


def test_encryption_status_of_a_backup(admin, new_instance):
    """UNKNOWN: production does not look at the key again."""
    instance = new_instance()
    key = f"{PROJECT}/locations/us-east1/keyRings/r/cryptoKeys/k"
    create_cluster(admin, instance, "d", serve_nodes=1, encryption_config={"kms_key_name": key})
    table = admin.create_table(instance, "t")
    backup = admin.tables.create_backup(
        parent=f"{instance}/clusters/d",
        backup_id="b",
        backup={"source_table": table, "expire_time": from_now(hours=7)},
    ).result()
    assert backup.encryption_info.kms_key_version == key
    assert backup.encryption_info.encryption_status.code == StatusCode.UNKNOWN.value[0]


# --- tiers ---


def tiers(days):
    age = duration_pb2.Duration(seconds=days * 24 * 3600)
    return {"infrequent_access": {"include_if_older_than": age}}


def update_table(admin, path, **fields):
    return admin.tables.update_table(table=fields, update_mask=mask(path)).result()


def test_tiered_storage_is_kept_and_shown(admin, new_instance, rest):
    instance = new_instance()
    name = admin.create_table(instance, "t", tiered_storage_config=tiers(30))

    def days():
        rule = admin.tables.get_table(name=name).tiered_storage_config.infrequent_access
        return rule.include_if_older_than.days

    assert days() == 30
    wanted = {"name": name, "tiered_storage_config": tiers(60)}
    answer = update_table(admin, "tiered_storage_config", **wanted)
    assert answer.tiered_storage_config.infrequent_access.include_if_older_than.days == 60
    update_table(admin, "deletion_protection", name=name)
    admin.tables.modify_column_families(
        name=name, modifications=[{"id": "g", "create": {}}]
    )  # fmt: skip
    assert days() == 60
    path = "tiered_storage_config.infrequent_access.include_if_older_than"
    update_table(admin, path, name=name, tiered_storage_config=tiers(90))
    assert days() == 90
    shown = rest.call("GET", f"/v2/{name}")["tieredStorageConfig"]
    assert shown == {"infrequentAccess": {"includeIfOlderThan": f"{90 * 24 * 3600}s"}}
    for wrong in (tiers(29), {"infrequent_access": {}}):
        with pytest.raises(exceptions.InvalidArgument, match="at least 30 days"):
            update_table(admin, "tiered_storage_config", name=name, tiered_storage_config=wrong)
        with pytest.raises(exceptions.InvalidArgument, match="at least 30 days"):
            admin.create_table(instance, "u", tiered_storage_config=wrong)
    update_table(admin, "tiered_storage_config", name=name)
    assert not admin.tables.get_table(name=name).tiered_storage_config


# --- backups ---


@pytest.fixture
def backups(admin, new_table_id):
    """An instance with one cluster of hard disks, and a table."""
    instance_id = f"i{new_table_id()}"
    instance = f"{PROJECT}/instances/{instance_id}"
    cluster = {
        "location": ZONE, "serve_nodes": 1, "default_storage_type": types.StorageType.HDD
    }  # fmt: skip
    admin.instances.create_instance(
        parent=PROJECT, instance_id=instance_id, instance={"display_name": "x"},
        clusters={"c": cluster},
    ).result()  # fmt: skip
    made = Backups(admin, instance)
    admin.create_table(instance, "t")
    yield made
    for each in made.list(made.cluster):
        admin.tables.delete_backup(name=each.name)
    admin.instances.delete_instance(name=instance)


def test_times_that_were_reckoned_a_moment_ago(backups):
    moment = datetime.timedelta(seconds=20)
    expiry, cooling = from_now(hours=6) - moment, from_now(days=1) - moment
    hot = types.Backup.BackupType.HOT
    made = backups.create("b", "t", expire_time=expiry)
    assert made.expire_time == expiry
    backups.create("hot", "t", backup_type=hot, hot_to_standard_time=cooling)
    finish(backups.copy("copy", made.name, expire_time=expiry))
    assert backups.update("copy", "expire_time", expire_time=expiry).expire_time == expiry
    for wrong in (
        {"expire_time": from_now(hours=5, minutes=58)},
        {"backup_type": hot, "hot_to_standard_time": from_now(hours=23, minutes=58)},
    ):
        with pytest.raises(exceptions.InvalidArgument, match="at least"):
            backups.begin("late", "t", **wrong)


def restore(admin, instance, backup, table_id):
    operation = admin.tables.restore_table(
        request={"parent": instance, "table_id": table_id, "backup": backup},
        timeout=PATIENCE_SECONDS,
    )
    finish(operation)
    return operation


def test_a_table_from_hdd_to_ssd_is_optimized_at_once(admin, backups, new_instance, rest):
    made = backups.create("b", "t")
    instance = new_instance()  # of solid-state disks
    operation = restore(admin, instance, made.name, "u")
    name = operation.metadata.optimize_table_operation_name
    assert name.startswith(f"operations/{instance}/")
    request = operations_pb2.GetOperationRequest(name=name)
    optimizing = admin.operations.GetOperation(request)
    assert optimizing.done
    assert optimizing.response.TypeName() == "google.protobuf.Empty"
    metadata = types.OptimizeRestoredTableMetadata.deserialize(optimizing.metadata.value)
    assert metadata.name == f"{instance}/tables/u"
    assert metadata.progress.progress_percent == 100
    assert rest.call("GET", f"/v2/{name}")["done"]
    assert operation.optimize_restored_table_operation().result() is not None
    # Where nothing changes, nothing is named.
    same = restore(admin, backups.instance, made.name, "u")
    assert same.metadata.optimize_table_operation_name == ""
    admin.tables.delete_table(name=f"{backups.instance}/tables/u")


def test_refusals_stay(rpc, admin, new_instance):
    """What the same requests must not say."""
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.data.prepare_query(data_types.PrepareQueryRequest(instance_name=INSTANCE))
    with pytest.raises(exceptions.NotFound):
        admin.tables.get_authorized_view(name=f"{new_instance()}/tables/t/authorizedViews/v")
