"""`./dev differential datastore` found these, each where both of Google's emulators do otherwise
than the server did. Beside the code, with unit tests: words, meanings of values, aggregations."""

import uuid

import pytest
from google.api_core import exceptions
from google.cloud.datastore_v1 import types
from harness.datastore import Raw, fresh_client


@pytest.fixture
def raw(server):
    return Raw(fresh_client(server.host))


def test_a_key_in_an_array_that_is_appended_gets_its_project(raw):
    """It was refused: only keys in entities were completed."""
    key = {"path": [{"kind": "K", "id": 2}]}
    transform = {"property": "k", "append_missing_elements": {"values": [{"key_value": key}]}}
    raw.commit({"upsert": raw.entity("K", 1), "property_transforms": [transform]})
    entity = raw.lookup(raw.key("K", 1)).found[0].entity
    (value,) = entity.properties["k"].array_value.values
    assert value.key_value == raw.key("K", 2)


def test_an_array_is_never_excluded_itself(raw):
    """What an append makes of an excluded number was an array that says so, and cannot be put."""
    entity = raw.entity("K", 1, n=1)
    entity.properties["n"].exclude_from_indexes = True
    transform = {"property": "n", "append_missing_elements": {"values": [{"integer_value": 3}]}}
    raw.commit({"upsert": entity, "property_transforms": [transform]})
    value = raw.lookup(raw.key("K", 1)).found[0].entity.properties["n"]
    assert [each.integer_value for each in value.array_value.values] == [3]
    assert not value.exclude_from_indexes


def test_what_changes_nothing_keeps_the_version(raw):
    """As the API has it. It was a new version, and transactions that had read the entity failed."""
    first = raw.commit({"upsert": raw.entity("K", 1, n=1)}).mutation_results[0]
    transaction = raw.begin()
    raw.lookup(raw.key("K", 1), transaction=transaction)
    for mutation in (
        {"upsert": raw.entity("K", 1, n=1)},
        {"update": raw.entity("K", 1, n=7), "property_mask": {"paths": []}},
    ):
        again = raw.commit(mutation).mutation_results[0]
        assert (again.version, again.update_time) == (first.version, first.update_time)
    raw.commit({"upsert": raw.entity("K", 2)}, transaction=transaction, mode="TRANSACTIONAL")
    changed = raw.commit({"upsert": raw.entity("K", 1, n=2)}).mutation_results[0]
    assert changed.version > first.version
    gone = [raw.commit({"delete": raw.key("K", 1)}).mutation_results[0] for _ in range(2)]
    assert changed.version < gone[0].version < gone[1].version


def test_timestamps_are_of_microseconds(raw):
    """Nanoseconds were kept, though the index, and so the order, has none."""
    entity = raw.entity("K", 1)
    types.Entity.pb(entity).properties["t"].timestamp_value.FromNanoseconds(-1)
    raw.commit({"upsert": entity})
    read = raw.lookup(raw.key("K", 1)).found[0].entity
    assert types.Entity.pb(read).properties["t"].timestamp_value.nanos == 999_999_000


def test_what_is_new_has_no_version(raw):
    """An insert with a base version was looked up, and told as a conflict, or as none."""
    with pytest.raises(exceptions.InvalidArgument, match="with a base version greater than zero"):
        raw.commit({"insert": raw.entity("K", 1), "base_version": 1})
    raw.commit({"insert": raw.entity("K", 1), "base_version": 0})


def test_of_one_entity_one_version_is_wanted(raw):
    first = {"upsert": raw.entity("K", 1, n=1), "base_version": 0}
    second = {"upsert": raw.entity("K", 1, n=2), "base_version": 1}
    with pytest.raises(exceptions.InvalidArgument, match="must have the same base version"):
        raw.transact(first, second)
    second.update(base_version=0, conflict_resolution_strategy="FAIL")
    with pytest.raises(exceptions.InvalidArgument, match="the same conflict resolution strategy"):
        raw.transact(first, second)
    raw.transact({**first, "conflict_resolution_strategy": "FAIL"}, second)


@pytest.mark.parametrize("path", ["", ".a", "a.", "a..b", "a\\", "__x__"])
def test_masks_are_looked_at_before_anything_is_found(raw, path):
    """Where nothing was there, any mask did; and one of reserved names did anywhere."""
    request = {"project_id": raw.project, "keys": [raw.key("K", 1)]}
    with pytest.raises(exceptions.InvalidArgument):
        raw.api.lookup(request={**request, "property_mask": {"paths": [path]}}, retry=None)
    with pytest.raises(exceptions.InvalidArgument):
        raw.commit({"upsert": raw.entity("K", 1), "property_mask": {"paths": [path]}})


def test_a_key_of_another_database_is_refused_without_a_project(raw):
    """Its database was put right silently."""
    key = types.Key(
        partition_id={"database_id": f"d{uuid.uuid4().hex[:8]}"}, path=[{"kind": "K", "id": 1}]
    )
    with pytest.raises(exceptions.InvalidArgument, match="mismatched databases within request"):
        raw.lookup(key)


def test_not_in_stands_alone(raw):
    query = "SELECT * FROM K WHERE a IN ARRAY(1, 2) AND b NOT IN ARRAY(1)"
    with pytest.raises(exceptions.InvalidArgument, match="'NOT_IN' cannot be used"):
        raw.gql(query)


def test_a_commit_says_its_mode_and_its_transaction(raw):
    """A transaction that nobody has begun was looked for first."""
    request = {"project_id": raw.project, "mutations": []}
    with pytest.raises(exceptions.InvalidArgument, match="cannot specify a transaction"):
        raw.api.commit(
            request={**request, "mode": "NON_TRANSACTIONAL", "transaction": b"none"}, retry=None
        )
    with pytest.raises(exceptions.InvalidArgument, match="transaction required"):
        raw.api.rollback(request={"project_id": raw.project}, retry=None)
    once = {"single_use_transaction": {"read_only": {}}, "mode": "TRANSACTIONAL"}
    with pytest.raises(exceptions.InvalidArgument, match="must be READ_WRITE"):
        raw.api.commit(request={**request, **once}, retry=None)
