"""What instances of several clusters, and app profiles, refuse as production does.

One process serves all clusters as one copy, but applications meet the rules of replication: which
profiles have single-row transactions, what may become of rules by age, which clusters and profiles
may come and go. Texts that are quoted are production's."""

from datetime import timedelta

import pytest
from google.api_core import exceptions
from google.cloud.bigtable.data import SetCell
from google.cloud.bigtable.data.read_modify_write_rules import IncrementRule
from google.cloud.bigtable_admin_v2 import types
from google.cloud.bigtable_v2 import types as data_types
from harness.admin import OTHER_ZONE, PROJECT, ZONE, ZONES, mask
from harness.patience import PATIENCE_SECONDS
from harness.rpc import INSTANCE

NO_TRANSACTIONS = "Single-row transactions are not allowed by this app profile"
NO_RELAXING = (
    r"Cannot relax pure age-based GC for a replicated family \(f\). If you must relax the age "
    "constraint, unreplicate the instance and try again."
)
SAME_ZONE = "Cannot create multiple clusters in the same zone."
DELETED_PROFILE = "Deleting an app profile will cause all requests using it to fail."

ANY = {"multi_cluster_routing_use_any": {}}
SINGLE = {"single_cluster_routing": {"cluster_id": "a"}}
TRANSACTIONS = {"single_cluster_routing": {"cluster_id": "a", "allow_transactional_writes": True}}


def create_profile(admin, instance, profile_id, fields):
    return admin.instances.create_app_profile(
        parent=instance, app_profile_id=profile_id, app_profile=fields
    )


def update_profile(admin, profile, fields, **more):
    request = {
        "app_profile": {"name": profile.name, **fields},
        "update_mask": mask(*fields),
        **more,
    }
    return admin.instances.update_app_profile(request=request).result()


# --- single-row transactions ---


def increment(table):
    table.read_modify_write_row(b"k", IncrementRule("f", b"n", 1))


def check(table):
    table.check_and_mutate_row(b"k", None, false_case_mutations=SetCell("f", b"c", b"v"))


def open_table(client, table, profile_id):
    instance_id, table_id = table.split("/")[3::2]
    return client.get_table(instance_id, table_id, app_profile_id=profile_id)


@pytest.fixture
def replicated(admin, new_instance):
    """A table of an instance of two clusters, with profiles of each routing."""
    instance = new_instance("a", "b")
    for profile_id, fields in (("any", ANY), ("single", SINGLE), ("with", TRANSACTIONS)):
        create_profile(admin, instance, profile_id, fields)
    return admin.create_table(instance, "t")


@pytest.mark.parametrize("profile_id", ["any", "single"])
def test_transactions_that_the_profile_does_not_allow(client, replicated, profile_id):
    with open_table(client, replicated, profile_id) as table:
        for call in (increment, check):
            with pytest.raises(exceptions.FailedPrecondition, match=NO_TRANSACTIONS):
                call(table)
        table.mutate_row(b"k", SetCell("f", b"q", b"v"))
        assert [cell.qualifier for cell in table.read_row(b"k")] == [b"q"]


@pytest.mark.parametrize("profile_id", [None, "default", "with", "nobody-made-this"])
def test_transactions_that_it_allows(client, replicated, profile_id):
    """The profile `default` of two clusters routes to any, and both are one copy."""
    with open_table(client, replicated, profile_id) as table:
        increment(table)
        check(table)
        assert [cell.qualifier for cell in table.read_row(b"k")] == [b"n"]


def test_a_profile_that_is_changed_is_heard_at_once(admin, client, replicated):
    profile = admin.instances.get_app_profile(
        name=f"{replicated.rsplit('/tables/', 1)[0]}/appProfiles/with"
    )
    with open_table(client, replicated, "with") as table:
        increment(table)
        update_profile(admin, profile, ANY, ignore_warnings=True)
        with pytest.raises(exceptions.FailedPrecondition, match=NO_TRANSACTIONS):
            increment(table)
        update_profile(admin, profile, TRANSACTIONS)
        increment(table)
        assert int(table.read_row(b"k").cells[0]) == 2


# --- profiles ---


def test_an_update_that_takes_transactions_away_is_warned_of(admin, new_instance):
    profile = create_profile(admin, new_instance("a", "b"), "p", TRANSACTIONS)
    for fields in (ANY, SINGLE):
        with pytest.raises(exceptions.FailedPrecondition, match="transactions"):
            update_profile(admin, profile, fields)
    assert admin.instances.get_app_profile(name=profile.name) == profile
    update_profile(admin, profile, {"description": "more"})
    elsewhere = {"single_cluster_routing": {"cluster_id": "b", "allow_transactional_writes": True}}
    update_profile(admin, profile, elsewhere)
    update_profile(admin, profile, ANY, ignore_warnings=True)
    update_profile(admin, profile, SINGLE)
    update_profile(admin, profile, TRANSACTIONS)


def test_a_profile_is_deleted_by_who_says_so(admin, new_instance):
    profile = create_profile(admin, new_instance("a"), "p", ANY)
    with pytest.raises(exceptions.FailedPrecondition, match=DELETED_PROFILE):
        admin.instances.delete_app_profile(request={"name": profile.name})
    admin.instances.delete_app_profile(name=profile.name, ignore_warnings=True)
    with pytest.raises(exceptions.NotFound):
        admin.instances.delete_app_profile(request={"name": profile.name})


# --- where the server is ---


def place_of_answer(rpc, instance):
    """The zone and the cluster that ResponseParams name."""
    _, call = rpc.data.ping_and_warm.with_call(
        data_types.PingAndWarmRequest(name=instance), timeout=PATIENCE_SECONDS
    )
    headers = dict(call.initial_metadata())
    params = data_types.ResponseParams.deserialize(headers["x-goog-ext-425905942-bin"])
    return params.zone_id, params.cluster_id


def test_a_server_is_in_a_zone(fresh_server, administer, connect):
    """Of clusters that nobody named; those that were made stay where they are."""
    server = fresh_server("--location", "europe-west3-b")
    admin = administer(server.host)
    named = admin.create_instance("named")
    admin.create_table(INSTANCE, "t")
    cluster = admin.instances.get_cluster(name=f"{INSTANCE}/clusters/trestle")
    assert cluster.location == f"{PROJECT}/locations/europe-west3-b"
    assert admin.instances.get_cluster(name=f"{named}/clusters/c").location == ZONE
    rpc = connect(server.host)
    for instance in (INSTANCE, f"{PROJECT}/instances/never-made"):
        assert place_of_answer(rpc, instance) == ("europe-west3-b", "trestle")
    assert place_of_answer(rpc, named) == (ZONE.rsplit("/", 1)[1], "c")


# --- clusters ---


def test_one_cluster_a_zone(admin, new_instance, new_table_id):
    instance = new_instance("a", "b")
    for zone, found in ((ZONE, "c"), (OTHER_ZONE, "d")):
        with pytest.raises(exceptions.FailedPrecondition, match=SAME_ZONE):
            admin.instances.create_cluster(
                parent=instance, cluster_id=found, cluster={"location": zone, "serve_nodes": 1}
            )
    admin.instances.create_cluster(
        parent=instance, cluster_id="c", cluster={"location": ZONES[2], "serve_nodes": 1}
    ).result()
    twice = f"i{new_table_id()}"
    with pytest.raises(exceptions.FailedPrecondition, match=SAME_ZONE):
        admin.instances.create_instance(
            parent=PROJECT, instance_id=twice, instance={"display_name": "x"},
            clusters={each: {"location": ZONE, "serve_nodes": 1} for each in "ab"},
        )  # fmt: skip
    with pytest.raises(exceptions.NotFound):
        admin.instances.get_instance(name=f"{PROJECT}/instances/{twice}")


def test_a_cluster_of_a_group_stays(admin, new_instance):
    instance = new_instance("a", "b", "c")
    group = {"multi_cluster_routing_use_any": {"cluster_ids": ["a", "b"]}}
    profile = create_profile(admin, instance, "p", group)
    for cluster in "ab":
        with pytest.raises(exceptions.FailedPrecondition, match=profile.name):
            admin.instances.delete_cluster(name=f"{instance}/clusters/{cluster}")
    admin.instances.delete_cluster(name=f"{instance}/clusters/c")
    update_profile(admin, profile, {"multi_cluster_routing_use_any": {"cluster_ids": ["b"]}})
    admin.instances.delete_cluster(name=f"{instance}/clusters/a")


# --- rules by age ---


def age(days):
    return types.GcRule(max_age=timedelta(days=days))


def versions(count):
    return types.GcRule(max_num_versions=count)


def union(*rules):
    return types.GcRule(union=types.GcRule.Union(rules=rules))


def intersection(*rules):
    return types.GcRule(intersection=types.GcRule.Intersection(rules=rules))


def set_rule(admin, table, rule, **more):
    change = {"id": "f", "update": {"gc_rule": rule}}
    request = {"name": table, "modifications": [change], **more}
    return admin.tables.modify_column_families(request=request).column_families["f"].gc_rule


def aged_table(admin, instance, rule):
    table = admin.create_table(instance, "t")
    set_rule(admin, table, rule)
    return table


LAXER = [
    age(11),
    None,
    versions(1),
    union(age(10), versions(1)),
    union(age(11), age(12)),
    intersection(age(10), age(11)),
]
STRICTER = [age(10), age(9), union(age(10), age(20)), intersection(age(9), age(10))]


@pytest.mark.parametrize("rule", LAXER, ids=str)
def test_a_rule_by_age_does_not_become_laxer(admin, new_instance, rule):
    table = aged_table(admin, new_instance("a", "b"), age(10))
    with pytest.raises(exceptions.FailedPrecondition, match=NO_RELAXING):
        set_rule(admin, table, rule)
    assert admin.tables.get_table(name=table).column_families["f"].gc_rule == age(10)
    set_rule(admin, table, rule, ignore_warnings=True)


@pytest.mark.parametrize("rule", STRICTER, ids=str)
def test_it_may_become_stricter(admin, new_instance, rule):
    table = aged_table(admin, new_instance("a", "b"), age(10))
    assert set_rule(admin, table, rule) == rule


@pytest.mark.parametrize("rule", LAXER, ids=str)
def test_with_one_cluster_any_rule_may_change(admin, new_instance, rule):
    table = aged_table(admin, new_instance("a"), age(10))
    set_rule(admin, table, rule)


@pytest.mark.parametrize("rule", [versions(2), union(age(1), versions(2)), None], ids=str)
def test_other_rules_may_change_both_ways(admin, new_instance, rule):
    table = aged_table(admin, new_instance("a", "b"), rule)
    for other in (None, versions(3), rule, age(1)):
        set_rule(admin, table, other)
