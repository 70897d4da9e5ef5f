"""Datastore's statistics by Google's client, which reads them as any entities: counted in the
background, of one moment, made anew and survived by a restart."""

import random
import threading
import time

import pytest
from google.api_core import exceptions
from google.cloud.datastore.query import PropertyFilter
from harness.datastore import Raw, client_of, entity, fresh_client
from harness.indexes import Indexes, definition
from harness.patience import PATIENCE_SECONDS

INTERVAL = "1s"


@pytest.fixture
def server(fresh_server):
    return fresh_server("--datastore-statistics-interval", INTERVAL)


@pytest.fixture
def client(server):
    return fresh_client(server.host)


def until(what, seconds=60):
    """What it returns, once it is something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := what():
            return found
        time.sleep(0.1)
    raise AssertionError("it did not come to be")


def total_of(client):
    return client.get(client.key("__Stat_Total__", "total_entity_usage"))


def total(client, count):
    """The total, once it has counted so many."""

    def counted():
        found = total_of(client)
        return found if found is not None and found["count"] == count else None

    return until(counted)


def kinds(client, kind, **filters):
    query = client.query(kind=kind)
    for name, value in filters.items():
        query.add_filter(filter=PropertyFilter(name, "=", value))
    return list(query.fetch())


def test_what_is_counted(client):
    client.put_multi([entity(client, "Task", n + 1, prio=n, done=n % 2 == 0) for n in range(20)])
    client.put_multi([entity(client, "Task", 1, "Note", n + 1, text="abc") for n in range(5)])
    found = total(client, 25)
    assert found["bytes"] == (
        found["entity_bytes"] + found["builtin_index_bytes"] + found["composite_index_bytes"]
    )
    assert found["builtin_index_count"] == 20 * 5 + 5 * 3
    (task,) = kinds(client, "__Stat_Kind__", kind_name="Task")
    # A key of 29; prio with 5 + 8, done with 5 + 1; and 32.
    assert task["count"] == 20 and task["entity_bytes"] == 20 * (29 + 13 + 6 + 32)
    (roots,) = kinds(client, "__Stat_Kind_IsRootEntity__")
    assert (roots["kind_name"], roots["count"]) == ("Task", 20)
    (others,) = kinds(client, "__Stat_Kind_NotRootEntity__")
    assert (others["kind_name"], others["count"]) == ("Note", 5)
    named = kinds(client, "__Stat_PropertyType_PropertyName_Kind__", kind_name="Task")
    assert {(one["property_name"], one["property_type"], one["count"]) for one in named} == {
        ("prio", "Integer", 20),
        ("done", "Boolean", 20),
    }
    assert {one["timestamp"] for one in named} == {named[0]["timestamp"]}


def test_as_any_entities(client):
    """Orders, the newest first as production's documentation advises, keys, GQL."""
    client.put_multi([entity(client, f"K{n}", i + 1) for n in range(3) for i in range(n + 1)])
    total(client, 6)
    query = client.query(kind="__Stat_Kind__", order=["-bytes"])
    assert [one["kind_name"] for one in query.fetch()] == ["K2", "K1", "K0"]
    query = client.query(kind="__Stat_Total__", order=["-timestamp"])
    assert [one["count"] for one in query.fetch(limit=1)] == [6]
    assert client.get(client.key("__Stat_Kind__", "K1"))["count"] == 2
    batch = Raw(client).gql("SELECT * FROM __Stat_Kind__ WHERE kind_name = 'K0'").batch
    assert len(batch.entity_results) == 1
    query = client.query(kind="__kind__")
    query.keys_only()
    assert {"K0", "__Stat_Kind__"} <= {found.key.name for found in query.fetch()}


def test_composite_indexes_are_counted(server, client):
    client.put_multi([entity(client, "K", n + 1, a=n, b=[1, 2]) for n in range(5)])
    opened = Indexes(server.host, client.project)
    index = opened.begin(definition("K", "a", "-b")).result(timeout=PATIENCE_SECONDS)
    (counted,) = until(lambda: kinds(client, "__Stat_Kind_CompositeIndex__"))
    assert (counted["kind_name"], counted["alphanumeric_id"]) == ("K", index.index_id)
    # Of each entity two rows: a key of 16 + 2 + 8, two values of 8, and 32.
    assert (counted["count"], counted["bytes"]) == (10, 10 * 74)
    until(lambda: (total_of(client) or {}).get("composite_index_count") == 10)
    opened.begin_deletion(index.index_id).result(timeout=PATIENCE_SECONDS)
    until(lambda: not kinds(client, "__Stat_Kind_CompositeIndex__"))
    opened.close()


def test_each_namespace_has_its_own(server, client):
    other = client_of(server.host, client.project, namespace="n")
    client.put(entity(client, "K", 1))
    total(client, 1)
    assert kinds(client, "__Stat_Ns_Total__") == []
    other.put_multi([entity(other, "K", n + 1) for n in range(3)])
    total(client, 4)
    until(lambda: kinds(other, "__Stat_Ns_Total__"))
    spaces = kinds(client, "__Stat_Namespace__")
    assert {one["subject_namespace"]: one["count"] for one in spaces} == {"": 1, "n": 3}
    assert [one["count"] for one in kinds(other, "__Stat_Ns_Kind__")] == [3]
    assert kinds(other, "__Stat_Kind__") == []


def test_what_is_gone_has_none(client):
    client.put_multi([entity(client, "K", 1, n=1), entity(client, "L", 1)])
    total(client, 2)
    client.delete(client.key("K", 1))
    total(client, 1)
    until(lambda: [one["kind_name"] for one in kinds(client, "__Stat_Kind__")] == ["L"])
    assert kinds(client, "__Stat_PropertyName_Kind__") == []


def test_nobody_else_writes_them(client):
    with pytest.raises(exceptions.InvalidArgument, match="is reserved"):
        client.put(entity(client, "__Stat_Kind__", "K", count=7))
    with pytest.raises(exceptions.InvalidArgument, match="is reserved"):
        client.delete(client.key("__Stat_Total__", "total_entity_usage"))


def test_a_count_is_of_one_moment(client):
    """While entities move from one kind to the other, each in a transaction, there are always as
    many as there were: none is counted twice or never."""
    raw, entities = Raw(client), 4000
    for start in range(0, entities, 500):
        client.put_multi([entity(client, "A", start + n + 1) for n in range(500)])
    total(client, entities)
    stopped = threading.Event()

    def move():
        for n in random.Random(1).sample(range(1, entities + 1), entities):
            if stopped.is_set():
                return
            raw.transact({"delete": raw.key("A", n)}, {"insert": raw.entity("B", n)})

    mover = threading.Thread(target=move)
    mover.start()
    seen = {}

    def has_seen_some():
        found = total_of(client)
        seen[found["timestamp"]] = found["count"]
        return len(seen) > 3

    try:
        until(has_seen_some)
    finally:
        stopped.set()
        mover.join()
    assert set(seen.values()) == {entities}


def test_they_survive_a_restart(fresh_server):
    server = fresh_server("--datastore-statistics-interval", INTERVAL)
    client = fresh_client(server.host)
    client.put(entity(client, "K", 1))
    before = total(client, 1)["timestamp"]
    server.kill()
    server.start()
    client = client_of(server.host, client.project)
    assert total_of(client)["timestamp"] >= before
    until(lambda: total_of(client)["timestamp"] > before)


def test_none_are_made_if_it_is_off(fresh_server):
    server = fresh_server("--datastore-statistics-interval", "0")
    client = fresh_client(server.host)
    client.put(entity(client, "K", 1))
    time.sleep(2.5)
    assert total_of(client) is None
