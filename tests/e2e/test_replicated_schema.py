"""What is administered at the peer that leads is administered at all others, exactly: it appears
there by itself, and each test waits for that, and for nothing else."""

import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from google.api_core import exceptions
from google.cloud.bigtable_admin_v2 import types
from google.iam.v1 import policy_pb2
from google.protobuf import descriptor_pb2, duration_pb2
from grpc import StatusCode
from harness.admin import PROJECT, mask
from harness.patience import PATIENCE_SECONDS
from harness.peers import ask, join, know_each_other, peer_server
from harness.rpc import fails_with, set_cell
from harness.views import becomes, comes_to, number_cell, put

INSTANCE = f"{PROJECT}/instances/i"
TABLE = f"{INSTANCE}/tables/t"
BINDING = policy_pb2.Binding(role="roles/bigtable.reader", members=["user:a@example.com"])
BUNDLE = descriptor_pb2.FileDescriptorSet(file=[{"name": "a.proto", "package": "a"}])


def listed(page, field=None):
    """As texts, which compare; they have versions, as etags."""
    items = getattr(page, field) if field else page
    return [str(each) for each in items]


def children(admin, parent):
    """What a table has."""
    tables, name = admin.tables, parent
    request = {"parent": name, "view": types.AuthorizedView.ResponseView.FULL}
    return [
        str(tables.get_table(request={"name": name, "view": types.Table.View.SCHEMA_VIEW})),
        listed(tables.list_authorized_views(request=request)),
        listed(tables.list_schema_bundles(parent=name)),
        str(tables.get_iam_policy(request={"resource": name})),
    ]


def all_of(admin):
    """All that is administered there."""
    seen = {}
    for instance in admin.instances.list_instances(parent=PROJECT).instances:
        name = instance.name
        seen[name] = [
            str(instance),
            listed(admin.instances.list_clusters(parent=name), "clusters"),
            listed(admin.instances.list_app_profiles(parent=name)),
            listed(admin.instances.list_logical_views(parent=name)),
            listed(admin.instances.list_materialized_views(parent=name)),
            str(admin.instances.get_iam_policy(request={"resource": name})),
        ]
        for table in admin.tables.list_tables(parent=name):
            seen[table.name] = children(admin, table.name)
    return seen


class Peers:
    """Two servers with clients of both: the first leads."""

    def __init__(self, servers, administer, connect):
        self.servers = servers
        self.leader, self.follower = (administer(each.host) for each in servers)
        self.rpc, self.follower_rpc = (connect(each.host) for each in servers)

    def are_alike(self):
        def both():
            try:
                return all_of(self.leader), all_of(self.follower)
            except (exceptions.NotFound, exceptions.ServiceUnavailable) as error:
                return str(error), None  # it went, or came, between two calls

        seen = both()
        return seen[0] == seen[1]

    def wait(self):
        becomes(self.are_alike)


@pytest.fixture
def peers(peers_of, administer, connect):
    return Peers(peers_of(2), administer, connect)


def rule(days=None, versions=None):
    if versions:
        return types.GcRule(max_num_versions=versions)
    return types.GcRule(max_age=duration_pb2.Duration(seconds=days * 24 * 3600))


def modify(admin, table, **changes):
    """FAMILY=None drops it, "new" makes it, anything else is a rule that it gets."""
    modifications = []
    for family, change in changes.items():
        if change is None:
            modifications.append({"id": family, "drop": True})
        elif change == "new":
            modifications.append({"id": family, "create": {}})
        else:
            modifications.append({"id": family, "update": {"gc_rule": change}})
    admin.tables.modify_column_families(
        request={"name": table, "modifications": modifications, "ignore_warnings": True}
    )


def make_table(admin, table_id, *families):
    return admin.create_table(INSTANCE, table_id, families or ("f", "g"))


def give_children(admin, table):
    admin.tables.create_authorized_view(
        parent=table, authorized_view_id="v",
        authorized_view={"subset_view": {"row_prefixes": [b"a"]}},
    ).result()  # fmt: skip
    bundle = {"proto_schema": {"proto_descriptors": BUNDLE.SerializeToString()}}
    admin.tables.create_schema_bundle(
        parent=table, schema_bundle_id="s", schema_bundle=bundle
    ).result()
    set_policy(admin.tables, table)


def set_policy(client, resource):
    policy = policy_pb2.Policy(version=1, bindings=[BINDING])
    return client.set_iam_policy(request={"resource": resource, "policy": policy})


def make_instance(admin, instance_id):
    return admin.instances.create_instance(
        parent=PROJECT, instance_id=instance_id, instance={"display_name": "made"},
        clusters={
            "one": {"location": f"{PROJECT}/locations/zone-1", "serve_nodes": 1},
            "two": {"location": f"{PROJECT}/locations/zone-2", "serve_nodes": 1},
        },
    ).result().name  # fmt: skip


def profile_of(routing):
    return {"description": "mine", **routing}


# --- what comes, changes and goes ---


def test_instance_with_all_it_has_comes_and_goes(peers):
    admin = peers.leader
    name = make_instance(admin, "made")
    admin.instances.create_app_profile(
        parent=name, app_profile_id="a",
        app_profile={"multi_cluster_routing_use_any": {"cluster_ids": ["one"]}},
    )  # fmt: skip
    set_policy(admin.instances, name)
    peers.wait()
    admin.instances.partial_update_instance(
        instance={"name": name, "display_name": "other"}, update_mask=mask("display_name")
    ).result()
    admin.instances.update_app_profile(
        app_profile={"name": f"{name}/appProfiles/a", "description": "d"},
        update_mask=mask("description"),
    ).result()
    peers.wait()
    admin.instances.delete_app_profile(
        request={"name": f"{name}/appProfiles/a", "ignore_warnings": True}
    )
    peers.wait()
    make = admin.create_table(name, "t")
    peers.wait()
    admin.instances.delete_instance(name=name)
    peers.wait()
    with pytest.raises(exceptions.NotFound):
        peers.follower.tables.get_table(name=make)


def test_families_and_rules_are_the_leaders(peers):
    table = make_table(peers.leader, "t")
    peers.wait()
    modify(peers.leader, table, f=rule(days=3), g=rule(versions=2))
    peers.wait()
    modify(peers.leader, table, h="new", i="new")
    modify(peers.leader, table, h=None)
    peers.wait()
    shown = peers.follower.tables.get_table(name=table)
    assert sorted(shown.column_families) == ["f", "g", "i"]
    assert shown.column_families["g"].gc_rule.max_num_versions == 2


def test_family_made_anew_has_no_old_cells_at_the_other(peers):
    table = make_table(peers.leader, "t")
    peers.wait()
    peers.follower_rpc.mutate(table, b"k", set_cell("f", b"q", b"old", 1000))
    peers.follower_rpc.mutate(table, b"k", set_cell("g", b"q", b"stays", 1000))
    modify(peers.leader, table, f=None)
    modify(peers.leader, table, f="new")
    peers.wait()
    comes_to(
        lambda: [(c.family, c.value) for _, cells in peers.follower_rpc.read(table) for c in cells],
        [("g", b"stays")],
    )


def test_settings_of_a_table_follow(peers):
    table = make_table(peers.leader, "t")
    stream = types.ChangeStreamConfig(retention_period=duration_pb2.Duration(seconds=24 * 3600))
    peers.leader.tables.update_table(
        table={"name": table, "deletion_protection": True, "change_stream_config": stream},
        update_mask=mask("deletion_protection", "change_stream_config"),
    ).result()
    peers.wait()
    shown = peers.follower.tables.get_table(name=table)
    assert shown.deletion_protection and shown.change_stream_config == stream
    peers.leader.tables.update_table(
        table={"name": table}, update_mask=mask("deletion_protection", "change_stream_config")
    ).result()
    peers.leader.tables.delete_table(name=table)
    peers.wait()


def test_tablets_begin_where_the_leaders_do(peers):
    table = peers.rpc.create_table("t", splits=[b"d", b"p"])
    peers.wait()
    keys = [key for key, _ in peers.follower_rpc.sample_row_keys(table)]
    assert keys[:2] == [b"d", b"p"]


def test_deleted_table_comes_back_at_both_with_all_it_had(peers):
    table = make_table(peers.leader, "t")
    give_children(peers.leader, table)
    peers.wait()
    peers.follower_rpc.mutate(table, b"k", set_cell("f", b"q", b"here", 1000))
    peers.leader.tables.delete_table(name=table)
    peers.wait()
    with pytest.raises(exceptions.NotFound):
        peers.follower.tables.get_table(name=table)
    peers.leader.tables.undelete_table(name=table).result()
    peers.wait()
    assert peers.follower_rpc.read_row(table, b"k")


def test_table_made_anew_is_empty_at_both(peers):
    table = make_table(peers.leader, "t")
    give_children(peers.leader, table)
    peers.wait()
    peers.follower_rpc.mutate(table, b"k", set_cell("f", b"q", b"old", 1000))
    peers.leader.tables.delete_table(name=table)
    make_table(peers.leader, "t")
    peers.wait()
    comes_to(lambda: peers.follower_rpc.read(table), [])


def test_views_are_at_both_each_from_its_own_rows(peers):
    table = make_table(peers.leader, "t")
    instances = peers.leader.instances
    instances.create_logical_view(
        parent=INSTANCE, logical_view_id="l", logical_view={"query": "SELECT _key FROM `t`"}
    ).result()
    instances.create_materialized_view(
        parent=INSTANCE, materialized_view_id="m",
        materialized_view={"query": "SELECT _key, COUNT(f['q']) AS c FROM `t` GROUP BY _key"},
    ).result()  # fmt: skip
    peers.wait()
    put(peers.follower_rpc, table, b"k", q="v")
    view = f"{INSTANCE}/materializedViews/m"

    def cells():
        try:
            return [cell for _, cells in peers.follower_rpc.read(view) for cell in cells]
        except (AssertionError, grpc.RpcError):
            return []

    becomes(lambda: number_cell(b"c", 1) in cells())
    for name in ("materialized", "logical"):
        getattr(instances, f"delete_{name}_view")(name=f"{INSTANCE}/{name}Views/{name[0]}")
    peers.leader.tables.delete_table(name=table)
    peers.wait()


# --- kills ---


def test_follower_that_was_off_has_all_of_it_then(peers):
    follower = peers.servers[1]
    table = make_table(peers.leader, "t")
    gone = make_table(peers.leader, "gone")
    again = make_table(peers.leader, "again")
    peers.wait()
    follower.kill()
    modify(peers.leader, table, f=None, h="new")
    modify(peers.leader, table, f="new")
    give_children(peers.leader, table)
    peers.leader.tables.delete_table(name=gone)
    peers.leader.tables.delete_table(name=again)
    make_table(peers.leader, "again", "other")
    make_instance(peers.leader, "made")
    follower.start()
    peers.wait()


def test_kills_in_the_midst_lose_nothing(peers):
    follower = peers.servers[1]
    for at in range(6):
        for which in range(4):
            table = make_table(peers.leader, f"t{which}")
            give_children(peers.leader, table)
        follower.kill()
        for which in range(4):
            if at % 2 == 0 or which % 2 == 0:
                peers.leader.tables.delete_table(name=f"{INSTANCE}/tables/t{which}")
            else:
                modify(peers.leader, f"{INSTANCE}/tables/t{which}", f=None)
                peers.leader.tables.delete_table(name=f"{INSTANCE}/tables/t{which}")
        follower.start()
    make_table(peers.leader, "last")
    peers.wait()


def test_leader_that_was_off_is_followed_again(peers):
    make_table(peers.leader, "t")
    peers.wait()
    peers.servers[0].kill()
    peers.servers[0].start()
    becomes(lambda: make_table(peers.leader, "after"))
    peers.wait()


def test_one_that_joins_later_gets_all(peers, tmp_path, own_servers, administer):
    table = make_table(peers.leader, "t")
    give_children(peers.leader, table)
    third = peer_server(tmp_path / "peer-3", 3)
    own_servers.append(third)
    join(third, peers.servers[0])
    know_each_other([*peers.servers, third])
    admin = administer(third.host)
    comes_to(lambda: all_of(admin), all_of(peers.leader))


# --- asking the wrong one ---


def refused(peers):
    return pytest.raises(
        exceptions.FailedPrecondition,
        match=f"this server follows {peers.servers[0].host}: ask there",
    )


def test_changes_are_made_where_another_leads(peers):
    table = make_table(peers.leader, "t")
    peers.wait()
    admin = peers.follower
    other = make_table(admin, "other")
    assert admin.tables.get_table(name=other).name == other
    modify(admin, table, f=None)
    assert list(admin.tables.get_table(name=table).column_families) == ["g"]
    instance = make_instance(admin, "made")
    assert admin.instances.get_instance(name=instance).display_name == "made"
    set_policy(admin.tables, table)
    assert admin.tables.get_iam_policy(request={"resource": table}).bindings
    with pytest.raises(exceptions.NotFound):
        admin.instances.delete_app_profile(
            name=f"{INSTANCE}/appProfiles/none", ignore_warnings=True
        )
    admin.tables.delete_table(name=table)
    with pytest.raises(exceptions.NotFound):
        admin.tables.get_table(name=table)
    assert peers.are_alike()


def test_what_is_each_ones_own_is_not_refused(peers):
    table = make_table(peers.leader, "t")
    peers.wait()
    rpc, admin = peers.follower_rpc, peers.follower
    rpc.mutate(table, b"k", set_cell("f", b"q", b"v", 1000))
    rpc.drop_row_range(table, everything=True)
    assert admin.tables.generate_consistency_token(name=table).consistency_token
    cluster = admin.instances.list_clusters(parent=INSTANCE).clusters[0].name
    in_a_week = {"seconds": int(time.time()) + 7 * 24 * 3600}
    backup = admin.tables.create_backup(
        parent=cluster, backup_id="b", backup={"source_table": table, "expire_time": in_a_week}
    ).result()
    set_policy(admin.tables, backup.name)
    with refused(peers):
        admin.tables.restore_table(
            request={"parent": INSTANCE, "table_id": "restored", "backup": backup.name}
        )
    make_table(peers.leader, "next")
    peers.wait()
    assert admin.tables.get_backup(name=backup.name)
    assert admin.tables.get_iam_policy(request={"resource": backup.name}).bindings


# --- what is asked among peers ---


def pull(server, digest=b"", seconds=60):
    return ask(server.host, "PullSchema", {"from": 2, "digest": digest}, timeout=seconds)


def test_who_has_all_waits_until_something_is_changed(peers):
    make_table(peers.leader, "t")
    peers.wait()
    leader = peers.servers[0]
    digest = pull(leader)[-1].digest
    assert pull(leader, digest, seconds=2) == []
    with ThreadPoolExecutor(1) as threads:
        waits = threads.submit(pull, leader, digest)
        make_table(peers.leader, "other")
        pieces = waits.result()
    assert [table.name for piece in pieces for table in piece.tables] == [
        f"{INSTANCE}/tables/other", TABLE,
    ]  # fmt: skip
    assert pieces[-1].digest != digest


def test_stop_ends_calls_that_wait(peers):
    leader = peers.servers[0]
    digest = pull(leader)[-1].digest
    with ThreadPoolExecutor(1) as threads:
        waits = threads.submit(pull, leader, digest, PATIENCE_SECONDS)
        make_table(peers.leader, "t")
        assert waits.result()
        waits = threads.submit(pull, leader, pull(leader)[-1].digest, PATIENCE_SECONDS)
        leader.stop()
        with fails_with(StatusCode.UNAVAILABLE):
            waits.result()
