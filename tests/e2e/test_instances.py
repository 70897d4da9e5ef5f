"""Instances, clusters, app profiles, by Google's own admin client."""

import pytest
from google.api_core import exceptions
from google.cloud.bigtable_admin_v2 import types
from harness.admin import OTHER_ZONE, PROJECT, ZONE, ZONES, mask
from harness.rpc import set_cell

TYPE = types.Instance.Type
PRIORITY = types.AppProfile.Priority


# --- instances ---


def test_life_of_an_instance(admin, new_table_id):
    instance_id = f"i{new_table_id()}"
    name = f"{PROJECT}/instances/{instance_id}"
    with pytest.raises(exceptions.NotFound):
        admin.instances.get_instance(name=name)
    operation = admin.instances.create_instance(
        parent=PROJECT, instance_id=instance_id,
        instance={"display_name": "An instance", "labels": {"a": "b"}},
        clusters={"c": {"location": ZONE, "serve_nodes": 3}},
    )  # fmt: skip
    made = operation.result()
    assert operation.operation.name.startswith(f"operations/{name}/locations/")
    assert operation.metadata.original_request.instance_id == instance_id
    assert operation.metadata.finish_time is not None
    found = admin.instances.get_instance(name=name)
    assert found == made
    assert (found.display_name, found.labels["a"]) == ("An instance", "b")
    assert found.state == types.Instance.State.READY
    assert (found.type_, found.edition) == (TYPE.PRODUCTION, types.Instance.Edition.ENTERPRISE)
    assert name in [each.name for each in admin.instances.list_instances(parent=PROJECT).instances]
    with pytest.raises(exceptions.AlreadyExists):
        admin.create_instance(instance_id)
    admin.instances.delete_instance(name=name)
    for call in (admin.instances.get_instance, admin.instances.delete_instance):
        with pytest.raises(exceptions.NotFound):
            call(name=name)


def test_the_classic_client_asks_and_makes(instance):
    fresh = instance._client.instance("classic-instance", display_name="x")
    assert not fresh.exists()
    cluster = fresh.cluster("c", location_id="us-east1-b", serve_nodes=1)
    fresh.create(clusters=[cluster]).result(60)
    assert fresh.exists()
    assert [each.cluster_id for each in fresh.list_clusters()[0]] == ["c"]
    fresh.delete()
    assert not fresh.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"instance_id": "Big"},
        {"instance_id": "i" * 34},
        {"parent": "projects"},
        {"clusters": {}},
        {"clusters": {"C": {"location": ZONE, "serve_nodes": 1}}},
        {"clusters": {"c": {"serve_nodes": 1}}},
        {"clusters": {"c": {"location": ZONE, "serve_nodes": -1}}},
        {"instance": {"display_name": ""}},
        {"instance": {"display_name": "x", "labels": {str(i): "" for i in range(65)}}},
    ],
    ids=str,
)
def test_what_no_instance_is(admin, change):
    request = {
        "parent": PROJECT, "instance_id": "refused", "instance": {"display_name": "x"},
        "clusters": {"c": {"location": ZONE, "serve_nodes": 1}},
    }  # fmt: skip
    with pytest.raises(exceptions.InvalidArgument):
        admin.instances.create_instance(request={**request, **change})


@pytest.mark.parametrize("path", ["display_name", "displayName"])
def test_update_of_what_the_mask_names(admin, new_instance, path):
    name = new_instance(labels={"kept": "1"})
    wanted = types.Instance(name=name, display_name="new", labels={"not": "wanted"})
    operation = admin.instances.partial_update_instance(instance=wanted, update_mask=mask(path))
    assert operation.result().display_name == "new"
    assert operation.metadata.original_request.update_mask.paths == [path]
    assert dict(admin.instances.get_instance(name=name).labels) == {"kept": "1"}
    wanted = types.Instance(name=name, display_name="whole", type_=TYPE.PRODUCTION)
    assert admin.instances.update_instance(wanted).display_name == "whole"
    assert dict(admin.instances.get_instance(name=name).labels) == {"kept": "1"}


@pytest.mark.parametrize("paths", [[], ["name"], ["no_such"], ["labels.x"], ["create_time"]])
def test_masks_that_name_nothing_to_update(admin, new_instance, paths):
    wanted = types.Instance(name=new_instance(), display_name="new")
    with pytest.raises(exceptions.InvalidArgument, match="update_mask"):
        admin.instances.partial_update_instance(instance=wanted, update_mask=mask(*paths))


def test_deleting_an_instance_takes_all_that_it_has(admin, new_instance, rpc):
    name = new_instance()
    table = admin.create_table(name, "t")
    rpc.mutate(table, b"k", set_cell("f", b"q", b"v", 1000))
    admin.instances.delete_instance(name=name)
    with pytest.raises(exceptions.NotFound):
        admin.instances.get_cluster(name=f"{name}/clusters/c")
    with pytest.raises(exceptions.NotFound):
        admin.tables.get_table(name=table)
    admin.create_instance(name.rsplit("/", 1)[-1])
    assert not list(admin.tables.list_tables(parent=name))
    admin.create_table(name, "t")
    assert not rpc.read(table)


def test_a_protected_table_protects_its_instance(admin, new_instance):
    name = new_instance()
    admin.create_table(name, "a")
    table = admin.create_table(name, "b", deletion_protection=True)
    with pytest.raises(exceptions.FailedPrecondition, match="protected"):
        admin.instances.delete_instance(name=name)
    assert len(list(admin.tables.list_tables(parent=name))) == 2
    unprotected = types.Table(name=table, deletion_protection=False)
    admin.tables.update_table(table=unprotected, update_mask=mask("deletion_protection")).result()
    admin.instances.delete_instance(name=name)


def test_instances_that_nobody_created(fresh_server, administer):
    admin = administer(fresh_server().host)
    name = f"{PROJECT}/instances/used"
    with pytest.raises(exceptions.NotFound):
        admin.instances.get_instance(name=name)
    assert not list(admin.tables.list_tables(parent=name))
    assert not admin.instances.list_clusters(parent=name).clusters
    admin.create_table(name, "t")
    assert admin.instances.get_instance(name=name).display_name == "used"
    (cluster,) = admin.instances.list_clusters(parent=name).clusters
    (profile,) = admin.instances.list_app_profiles(parent=name)
    assert profile.single_cluster_routing.cluster_id == cluster.name.rsplit("/", 1)[-1]


def test_without_auto_create_an_instance_must_exist(fresh_server, administer):
    admin = administer(fresh_server("--auto-create", "off").host)
    name = f"{PROJECT}/instances/i"
    for call in (
        lambda: admin.create_table(name, "t"),
        lambda: admin.tables.list_tables(parent=name),
        lambda: admin.instances.list_clusters(parent=name),
        lambda: admin.instances.list_app_profiles(parent=name),
    ):
        with pytest.raises(exceptions.NotFound, match=name):
            call()
    admin.create_instance("i")
    admin.create_table(name, "t")
    assert [table.name for table in admin.tables.list_tables(parent=name)] == [f"{name}/tables/t"]


# --- clusters ---


def create_cluster(admin, instance, cluster_id="d", **fields):
    fields = {"location": OTHER_ZONE, "serve_nodes": 1, **fields}
    return admin.instances.create_cluster(
        parent=instance, cluster_id=cluster_id, cluster=fields
    ).result()


def autoscaling(least=1, most=3, cpu=60, **targets):
    return {
        "cluster_autoscaling_config": {
            "autoscaling_limits": {"min_serve_nodes": least, "max_serve_nodes": most},
            "autoscaling_targets": {"cpu_utilization_percent": cpu, **targets},
        }
    }


def test_life_of_a_cluster(admin, new_instance):
    instance = new_instance()
    made = create_cluster(admin, instance, serve_nodes=2)
    assert made.default_storage_type == types.StorageType.SSD
    assert made.node_scaling_factor == 0
    assert (made.state, made.location) == (types.Cluster.State.READY, OTHER_ZONE)
    assert admin.instances.get_cluster(name=made.name) == made
    listed = admin.instances.list_clusters(parent=instance).clusters
    assert [each.name for each in listed] == [f"{instance}/clusters/c", made.name]
    everywhere = admin.instances.list_clusters(parent=f"{PROJECT}/instances/-").clusters
    assert made in everywhere
    with pytest.raises(exceptions.AlreadyExists):
        create_cluster(admin, instance)
    changed = admin.instances.update_cluster(
        request=types.Cluster(name=made.name, location=OTHER_ZONE, serve_nodes=5)
    ).result()
    assert changed.serve_nodes == 5
    admin.instances.delete_cluster(name=made.name)
    with pytest.raises(exceptions.NotFound):
        admin.instances.get_cluster(name=made.name)


def test_a_cluster_needs_an_instance(admin):
    with pytest.raises(exceptions.NotFound):
        create_cluster(admin, f"{PROJECT}/instances/nowhere")


def test_the_last_cluster_stays(admin, new_instance):
    instance = new_instance("a", "b")
    admin.instances.delete_cluster(name=f"{instance}/clusters/a")
    with pytest.raises(exceptions.FailedPrecondition, match="last"):
        admin.instances.delete_cluster(name=f"{instance}/clusters/b")


def test_a_cluster_to_which_a_profile_routes_stays(admin, new_instance):
    instance = new_instance("a", "b")
    routing = {"single_cluster_routing": {"cluster_id": "a"}}
    profile = create_profile(admin, instance, **routing)
    with pytest.raises(exceptions.FailedPrecondition, match=profile.name):
        admin.instances.delete_cluster(name=f"{instance}/clusters/a")
    admin.instances.delete_app_profile(name=profile.name, ignore_warnings=True)
    admin.instances.delete_cluster(name=f"{instance}/clusters/a")


@pytest.mark.parametrize(
    "fields",
    [
        {"serve_nodes": -1},
        {"location": "us-east1-b"},
        {"cluster_config": autoscaling(cpu=9)},
        {"cluster_config": autoscaling(cpu=81)},
        {"cluster_config": autoscaling(least=0)},
        {"cluster_config": autoscaling(least=4, most=3)},
        {"cluster_config": autoscaling(storage_utilization_gib_per_node=2559)},
        {"cluster_config": autoscaling(storage_utilization_gib_per_node=8192)},
        {"cluster_config": autoscaling(), "node_scaling_factor": 2},
        {"serve_nodes": 3, "node_scaling_factor": 2},
        {"encryption_config": {"kms_key_name": "key"}},
    ],
    ids=str,
)
def test_what_no_cluster_is(admin, new_instance, fields):
    with pytest.raises(exceptions.InvalidArgument):
        create_cluster(admin, new_instance(), **fields)


def test_autoscaling_on_and_off(admin, new_instance):
    name = f"{new_instance()}/clusters/c"
    prefix = "cluster_config.cluster_autoscaling_config"
    on = admin.instances.partial_update_cluster(
        cluster={"name": name, "cluster_config": autoscaling(2, 4), "serve_nodes": 9},
        update_mask=mask(
            f"{prefix}.autoscaling_limits.min_serve_nodes",
            "clusterConfig.clusterAutoscalingConfig.autoscalingLimits.maxServeNodes",
            f"{prefix}.autoscaling_targets.cpu_utilization_percent",
        ),
    ).result()
    config = on.cluster_config.cluster_autoscaling_config
    assert (config.autoscaling_limits.min_serve_nodes, on.serve_nodes) == (2, 1)
    assert config.autoscaling_limits.max_serve_nodes == 4
    assert config.autoscaling_targets.storage_utilization_gib_per_node == 2560
    off = admin.instances.partial_update_cluster(
        cluster={"name": name, "serve_nodes": 7}, update_mask=mask("serve_nodes", prefix)
    ).result()
    assert off.serve_nodes == 7
    assert not off.cluster_config
    for path in ("location", "default_storage_type", "serve_nodes.x", "cluster_config.x"):
        with pytest.raises(exceptions.InvalidArgument, match=path):
            admin.instances.partial_update_cluster(cluster=off, update_mask=mask(path))


def test_tables_are_in_all_clusters(admin, new_instance):
    table = admin.create_table(new_instance("a", "b"), "t")
    states = admin.tables.get_table(
        request={"name": table, "view": types.Table.View.FULL}
    ).cluster_states
    assert sorted(states) == ["a", "b"]
    for state in states.values():
        assert state.replication_state == types.Table.ClusterState.ReplicationState.READY
        assert state.encryption_info[0].encryption_type == 1


def test_hot_tablets_are_asked_of_a_cluster(admin, new_instance):
    cluster = f"{new_instance()}/clusters/c"
    assert not list(admin.instances.list_hot_tablets(parent=cluster))
    with pytest.raises(exceptions.NotFound):
        admin.instances.list_hot_tablets(parent=f"{cluster}2")


# --- app profiles ---


def create_profile(admin, instance, profile_id="ap", **fields):
    return admin.instances.create_app_profile(
        parent=instance, app_profile_id=profile_id, app_profile=fields
    )


def test_every_instance_has_a_default_profile(admin, new_instance):
    one, two = new_instance(), new_instance("a", "b")
    (default,) = admin.instances.list_app_profiles(parent=one)
    assert default.name == f"{one}/appProfiles/default"
    assert default.single_cluster_routing.cluster_id == "c"
    assert default.single_cluster_routing.allow_transactional_writes
    (default,) = admin.instances.list_app_profiles(parent=two)
    assert "multi_cluster_routing_use_any" in default
    assert default.standard_isolation.priority == PRIORITY.PRIORITY_HIGH
    with pytest.raises(exceptions.FailedPrecondition):
        admin.instances.delete_app_profile(name=default.name, ignore_warnings=True)


def test_life_of_a_profile(admin, new_instance):
    instance = new_instance()
    made = create_profile(admin, instance, multi_cluster_routing_use_any={}, description="d")
    assert made.standard_isolation.priority == PRIORITY.PRIORITY_HIGH
    assert admin.instances.get_app_profile(name=made.name) == made
    with pytest.raises(exceptions.AlreadyExists):
        create_profile(admin, instance, multi_cluster_routing_use_any={})
    changed = admin.instances.update_app_profile(
        app_profile={
            "name": made.name, "description": "not in the mask",
            "single_cluster_routing": {"cluster_id": "c"},
            "standard_isolation": {"priority": PRIORITY.PRIORITY_LOW},
        },
        update_mask=mask("single_cluster_routing", "standardIsolation.priority"),
    ).result()  # fmt: skip
    assert changed.single_cluster_routing.cluster_id == "c"
    assert (changed.description, changed.standard_isolation.priority) == ("d", 1)
    with pytest.raises(exceptions.InvalidArgument, match="A non-empty 'update_mask' must be"):
        admin.instances.update_app_profile(app_profile=changed, update_mask=mask())
    admin.instances.delete_app_profile(name=made.name, ignore_warnings=True)
    with pytest.raises(exceptions.NotFound):
        admin.instances.get_app_profile(name=made.name)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"single_cluster_routing": {"cluster_id": "nowhere"}},
        {"multi_cluster_routing_use_any": {"cluster_ids": ["c", "nowhere"]}},
        {"multi_cluster_routing_use_any": {}, "data_boost_isolation_read_only": {}},
        {
            "multi_cluster_routing_use_any": {},
            "data_boost_isolation_read_only": {"compute_billing_owner": 1},
        },
        {"multi_cluster_routing_use_any": {}, "standard_isolation": {"priority": 9}},
    ],
    ids=str,
)
def test_what_no_profile_is(admin, new_instance, fields):
    with pytest.raises(exceptions.InvalidArgument):
        create_profile(admin, new_instance(), **fields)


def test_data_boost(admin, new_instance):
    made = create_profile(
        admin, new_instance(), single_cluster_routing={"cluster_id": "c"},
        data_boost_isolation_read_only={"compute_billing_owner": 1},
    )  # fmt: skip
    assert made.data_boost_isolation_read_only.compute_billing_owner == 1
    assert "standard_isolation" not in made


def test_pages_of_profiles(admin, new_instance):
    instance = new_instance()
    for number in range(5):
        create_profile(admin, instance, f"p{number}", multi_cluster_routing_use_any={})
    names = [f"{instance}/appProfiles/{each}" for each in ("default", "p0", "p1", "p2", "p3", "p4")]
    request = {"parent": instance, "page_size": 2}
    assert [each.name for each in admin.instances.list_app_profiles(request=request)] == names
    pages = admin.instances.list_app_profiles(request=request).pages
    assert len(next(pages).app_profiles) == 2
    admin.instances.delete_app_profile(name=names[1], ignore_warnings=True)  # the page's last
    assert [each.name for each in next(pages).app_profiles] == names[2:4]
    with pytest.raises(exceptions.InvalidArgument):
        admin.instances.list_app_profiles(request={"parent": instance, "page_size": -1})
