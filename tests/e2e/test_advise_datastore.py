"""The schema advisor on Datastore databases: for each rule one that breaks it and one that does
not."""

import datetime
import json
import random
import re
import time

import pytest
from google.cloud import datastore
from harness.advice import advice_document
from harness.datastore import Raw, entity, fresh_client
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest
from harness.server import run_trestle

BEGIN = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)


def look(host, client):
    """What is found, by rule."""
    path = f"/v1/projects/{client.project}/databases/(default):advise"
    answer = Rest(host).call("GET", path)
    report = advice_document(answer["tables"][0])
    assert (report["table"], answer.get("notLookedAt", [])) == ("(default)", [])
    assert len(answer["tables"]) == 1
    return {each["rule"]: each for each in report["findings"]}


@pytest.fixture
def client(server):
    return fresh_client(server.host)


def put(client, entities, at_once=20):
    for first in range(0, len(entities), at_once):
        client.put_multi(entities[first : first + at_once])


def scattered(number):
    """Another one for each, in no order: ids that do not rise."""
    return random.Random(number).randrange(10**12)


def some_time(number):
    return BEGIN + datetime.timedelta(seconds=random.Random(number).randrange(30_000_000))


def test_values_that_rise(server, client):
    put(client, [
        entity(client, "Birth", scattered(n), at=some_time(n), n=n % 7) for n in range(1, 300)
    ])
    assert look(server.host, client) == {}
    events = [
        entity(client, "Event", f"e{scattered(n)}", at=BEGIN + datetime.timedelta(seconds=n))
        for n in range(300)
    ]
    put(client, events)
    found = look(server.host, client)
    assert set(found) == {"index-rising"}
    assert "at of the kind Event" in found["index-rising"]["evidence"]
    assert found["index-rising"]["evidence"].startswith("1 indexed property")
    assert found["index-rising"]["range"]["start"].startswith("Event.at = 2024-01-01T00:04:")
    assert found["index-rising"]["range"]["end"] == "the end of Event.at"


def test_ids_that_rise_are_told_of_all_kinds_and_of_children(server, client):
    roots = [entity(client, kind, n, n=1) for n in range(1, 301) for kind in ("Order", "Invoice")]
    put(client, roots, at_once=200)
    found = look(server.host, client)
    assert set(found) == {"entity-keys"}
    assert all(kind in found["entity-keys"]["evidence"] for kind in ("Order", "Invoice"))
    other = fresh_client(server.host)
    parent = other.key("Order", "root")
    lines = []
    for n in range(1, 401):
        lines.append(datastore.Entity(other.key("Line", n, parent=parent)))
    put(other, lines, at_once=200)
    found = look(server.host, other)
    assert 'Order "root" / Line' in found["entity-keys"]["keys"][0]


def in_namespace(client, kind, which, namespace, **properties):
    made = datastore.Entity(client.key(kind, which, namespace=namespace))
    made.update(properties)
    return made


def test_namespaces_are_looked_at_and_named(server, client):
    """What is wrong in one namespace is told with its name, and not of the same kind elsewhere:
    each namespace has its own places for keys and in indexes."""
    put(client, [entity(client, "Order", scattered(n), at=some_time(n)) for n in range(200)])
    put(client, [
        in_namespace(client, "Order", f"o{scattered(n)}", "berlin",
                     at=BEGIN + datetime.timedelta(seconds=n))
        for n in range(300)
    ])  # fmt: skip
    found = look(server.host, client)
    assert set(found) == {"index-rising"}
    assert "at of the kind Order (namespace berlin): of" in found["index-rising"]["evidence"]
    told = found["index-rising"]["range"]
    assert told["end"] == "the end of Order.at (namespace berlin)"
    assert re.fullmatch(r"Order\.at = 2024-01-01T00:04:.* \(namespace berlin\)", told["start"])
    ids = [in_namespace(client, "Invoice", n, "paris", n=1) for n in range(1, 301)]
    put(client, ids, at_once=200)
    found = look(server.host, client)
    assert set(found) == {"index-rising", "entity-keys"}
    assert found["entity-keys"]["evidence"].startswith("Of the kind Invoice (namespace paris): ")
    assert all(each.endswith(" (namespace paris)") for each in found["entity-keys"]["keys"])
    assert all(
        each["better"].endswith(" (namespace paris)") for each in found["entity-keys"]["better"]
    )


def test_many_namespaces_are_many_places(server, client):
    """A tenant a namespace: new rows are at as many ends as there are tenants. What is wrong with
    an entity by itself is seen in each."""
    put(client, [
        in_namespace(client, "Order", f"o{scattered(n)}", f"tenant{n % 100}",
                     at=BEGIN + datetime.timedelta(seconds=n))
        for n in range(400)
    ])  # fmt: skip
    assert look(server.host, client) == {}
    put(client, [
        in_namespace(client, "Order", f"a/{scattered(n)}", f"tenant{n}", n=1) for n in range(100)
    ])  # fmt: skip
    found = look(server.host, client)
    assert set(found) == {"entity-names"}
    assert "(namespace tenant" in found["entity-names"]["keys"][0]


def test_groups_that_are_written_often(server, client):
    put(client, [entity(client, "Page", f"p{scattered(n)}", n=n * 7919 % 997) for n in range(200)])
    counter = entity(client, "Counter", "all", exclude=("n",), n=0)
    for n in range(50):
        counter["n"] = n
        client.put(counter)
    assert look(server.host, client) == {}
    deadline = time.monotonic() + PATIENCE_SECONDS
    while "group-writes" not in (found := look(server.host, client)):
        assert time.monotonic() < deadline
        for n in range(100):
            counter["n"] = n
            client.put(counter)
    assert set(found) == {"group-writes"}
    assert 'Counter "all"' in found["group-writes"]["evidence"]
    assert found["group-writes"]["keys"] == ['Counter "all"']


def test_indexes_that_begin_with_what_was_deleted(server, client):
    keys = [client.key("Job", 1000 * n + scattered(n) % 1000) for n in range(1, 1001)]
    raw = Raw(client)
    for first in range(0, 1000, 250):
        raw.commit(*({"upsert": raw.entity("Job", key.id)} for key in keys[first : first + 250]))
    client.delete_multi(keys[500:900])
    assert look(server.host, client) == {}
    for first in range(0, 900, 300):
        client.delete_multi(keys[first : first + 300])
    found = look(server.host, client)
    assert set(found) == {"index-deletes"}
    assert "of the kind Job" in found["index-deletes"]["evidence"]
    assert found["index-deletes"]["range"] == {
        "start": f"the index of the kind Job, Job {keys[0].id}",
        "end": f"the index of the kind Job, Job {keys[899].id}",
    }  # fmt: skip


def test_kinds_that_ramp(fresh_server):
    server = fresh_server("--heat-window", "1s")
    client = fresh_client(server.host)
    raw = Raw(client)
    number = 0

    def write(commits):
        nonlocal number
        for _ in range(commits):
            names = [f"n{(number + i) * 2654435761 % 2**32}" for i in range(500)]
            raw.commit(*({"upsert": raw.entity("New", name)} for name in names))
            number += 500

    write(10)
    assert "kind-ramp" not in look(server.host, client)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while "kind-ramp" not in (found := look(server.host, client)):
        assert time.monotonic() < deadline
        write(20)
    assert "the kind New" in found["kind-ramp"]["evidence"]
    assert found["kind-ramp"]["keys"] == ["New"]


def test_groups_of_large_entities(server, client):
    """What was is kept with the entity, beyond what is read of others."""
    page = entity(client, "Page", "large", exclude=("text",), text="")
    for n in range(100):
        page["text"] = f"{n}" + "x" * 60_000
        client.put(page)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while "group-writes" not in (found := look(server.host, client)):
        assert time.monotonic() < deadline
        for n in range(100):
            page["text"] = f"{n}" + "x" * 60_000
            client.put(page)
    assert found["group-writes"]["keys"] == ['Page "large"']


@pytest.mark.parametrize(("name", "good", "key"), [
    (lambda n: n, lambda n: n * 2654435761 % 2**32 + 1, "Order "),
    (lambda n: f"order-{n:06}", lambda n: f"{n * 2654435761 % 2**32:010}", 'Order "order-'),
    (lambda n: f"{BEGIN + datetime.timedelta(hours=n):%Y-%m-%dT%H}", lambda n: f"{n % 7}-{n}",
     'Order "2024-'),
])  # fmt: skip
def test_keys_that_rise(server, client, name, good, key):
    raw = Raw(client)

    def fill(kind, count, name_of):
        for first in range(1, count, 250):
            commit = [{"upsert": raw.entity(kind, name_of(n))} for n in range(first, first + 250)]
            raw.commit(*commit)

    fill("Good", 750, good)
    assert look(server.host, client) == {}
    fill("Order", 1250, name)
    found = look(server.host, client)
    assert set(found) == {"entity-keys"}
    assert found["entity-keys"]["evidence"].startswith("Of the kind Order: ")
    assert len(found["entity-keys"]["keys"]) == 3
    assert all(each.startswith(key) for each in found["entity-keys"]["keys"])
    for better in found["entity-keys"]["better"]:
        assert better["better"].startswith("Order ")
        assert better["better"] != better["key"]
    assert found["entity-keys"]["better"]


def test_large_entities(server, client):
    client.put(entity(client, "Page", 1, exclude=("text",), text="x" * 500_000))
    assert look(server.host, client) == {}
    client.put(entity(client, "Page", 2, exclude=("text",), text="x" * 550_000))
    found = look(server.host, client)
    assert set(found) == {"entity-size"}
    assert found["entity-size"]["keys"] == ["Page 2"]


def make_index(host, client, kind, *properties):
    """A composite index, which is ready when this returns."""
    rest = Rest(host)
    path = f"/v1/projects/{client.project}/indexes"
    wanted = [{"name": name, "direction": "ASCENDING"} for name in properties]
    rest.call("POST", path, {"kind": kind, "ancestor": "NONE", "properties": wanted})
    deadline = time.monotonic() + PATIENCE_SECONDS
    while any(each["state"] != "READY" for each in rest.call("GET", path)["indexes"]):
        assert time.monotonic() < deadline


def test_indexes_that_explode(server, client):
    make_index(server.host, client, "Photo", "tags", "people")
    client.put(entity(client, "Photo", 1, tags=list(range(20)), people=list(range(20))))
    client.put(entity(client, "Photo", 2, tags=list(range(450))))
    assert look(server.host, client) == {}
    client.put(entity(client, "Photo", 3, tags=list(range(40)), people=list(range(30))))
    found = look(server.host, client)
    assert set(found) == {"index-rows"}
    assert found["index-rows"]["keys"] == ["Photo 3"]
    words = "1271 rows in indexes, 1200 of them in the composite index (tags, people)"
    assert words in found["index-rows"]["evidence"]


def test_many_composite_indexes(server, client):
    client.put(entity(client, "Item", 1, a=1))
    for n in range(19):
        make_index(server.host, client, "Item", "a", f"p{n}")
    make_index(server.host, client, "Other", "a", "b")
    assert look(server.host, client) == {}
    make_index(server.host, client, "Item", "b", "c")
    found = look(server.host, client)
    assert set(found) == {"index-count"}
    assert found["index-count"]["keys"] == ["Item"]


@pytest.mark.parametrize(("path", "properties", "words"), [
    (("a/b", 1), {}, "the kind a/b"),
    (("A", "b/c"), {}, "the name b/c"),
    (("A", -5), {}, "the id -5"),
    (("A", 1), {"b.c": 1}, "the property b.c"),
])  # fmt: skip
def test_odd_names(server, client, path, properties, words):
    client.put(entity(client, "A-b", "c-d", e=1))
    assert look(server.host, client) == {}
    raw = Raw(client)
    raw.commit({"upsert": raw.entity(*path, **properties)})
    found = look(server.host, client)
    assert set(found) == {"entity-names"}
    assert words in found["entity-names"]["evidence"]


def test_entities_that_are_hot(fresh_server):
    """By reads: nobody writes it."""
    server = fresh_server("--heat-window", "1s")
    client = fresh_client(server.host)
    names = [f"p{scattered(n)}" for n in range(200)]
    put(client, [entity(client, "Page", name) for name in names])
    raw = Raw(client)
    everywhere = [raw.key("Page", name) for name in names]
    for _ in range(30):
        raw.lookup(*everywhere)
    assert look(server.host, client) == {}
    deadline = time.monotonic() + PATIENCE_SECONDS
    while "hot-key" not in (found := look(server.host, client)):
        assert time.monotonic() < deadline
        for _ in range(500):
            raw.lookup(everywhere[7])
    assert found["hot-key"]["keys"] == [f'Page "{names[7]}"']


def test_names_in_other_scripts(server, client):
    client.put(entity(client, "Größe", "日本/語"))
    found = look(server.host, client)
    assert found["entity-names"]["keys"] == ['Größe "日本/語"']
    done = run_trestle(
        "advise", "--database", "(default)", "--project", client.project, "--endpoint", server.host
    )
    assert 'Größe "日本/語"' in done.stdout
    assert done.returncode == 1


# --- the command ---


def test_the_command(server, client):
    database = ("--database", "(default)", "--project", client.project, "--endpoint", server.host)
    client.put(entity(client, "Page", 1, exclude=("text",), text="x" * 500_000))
    done = run_trestle("advise", *database)
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert "reads some thousand entities of (default), and the first rows of" in done.stderr
    assert done.stdout.startswith("(default): 1 entities sampled at ")
    client.put(entity(client, "Page", 2, exclude=("text",), text="x" * 550_000))
    done = run_trestle("advise", *database, "--format", "json")
    assert done.returncode == 1
    [finding] = json.loads(done.stdout)["findings"]
    assert (finding["rule"], finding["keys"]) == ("entity-size", ["Page 2"])


def test_the_command_without_a_database(server):
    done = run_trestle(
        "advise", "--database", "d", "--project", "nobody", "--endpoint", server.host
    )
    assert done.returncode == 1
    assert "projects/nobody/databases/d" in done.stderr


def test_a_database_that_is_not_there(server):
    status, text = Rest(server.host).ask("GET", "/v1/projects/nobody/databases/(default):advise")
    assert (status, json.loads(text)["error"]["status"]) == (404, "NOT_FOUND")
