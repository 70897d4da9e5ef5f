"""The schema advisor on Datastore databases: for each rule one that breaks it and one that does
not."""

import datetime
import json
import random
import time

import pytest
from harness.datastore import Raw, entity, fresh_client
from harness.rest import Rest

WAIT_SECONDS = 100
BEGIN = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)


def look(host, client):
    """What is found, by rule."""
    path = f"/v1/projects/{client.project}/databases/(default):advise"
    status, text = Rest(host).ask("GET", path)
    assert status == 200, text
    answer = json.loads(json.loads(text)["json"])
    [report] = answer["tables"]
    assert (report["table"], answer["notLookedAt"]) == ("(default)", [])
    return {each["rule"]: each for each in report["findings"]}


@pytest.fixture
def client(server):
    return fresh_client(server.host)


def put(client, entities, at_once=20):
    for first in range(0, len(entities), at_once):
        client.put_multi(entities[first : first + at_once])


def some_time(number):
    return BEGIN + datetime.timedelta(seconds=random.Random(number).randrange(30_000_000))


def test_values_that_rise(server, client):
    put(client, [entity(client, "Birth", n, at=some_time(n), n=n) for n in range(1, 300)])
    assert look(server.host, client) == {}
    events = [
        entity(client, "Event", f"e{n * 7919 % 997}", at=BEGIN + datetime.timedelta(seconds=n))
        for n in range(300)
    ]
    put(client, events)
    found = look(server.host, client)
    assert set(found) == {"index-rising"}
    assert "at of the kind Event" in found["index-rising"]["evidence"]
    assert found["index-rising"]["evidence"].startswith("1 indexed property")


def test_groups_that_are_written_often(server, client):
    put(client, [entity(client, "Page", f"p{n}", n=n * 7919 % 997) for n in range(200)])
    counter = entity(client, "Counter", "all", exclude=("n",), n=0)
    for n in range(50):
        counter["n"] = n
        client.put(counter)
    assert look(server.host, client) == {}
    deadline = time.monotonic() + WAIT_SECONDS
    while "group-writes" not in (found := look(server.host, client)):
        assert time.monotonic() < deadline
        for n in range(100):
            counter["n"] = n
            client.put(counter)
    assert set(found) == {"group-writes"}
    assert 'Counter "all"' in found["group-writes"]["evidence"]


def test_indexes_that_begin_with_what_was_deleted(server, client):
    keys = [client.key("Job", n) for n in range(1, 1001)]
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
    deadline = time.monotonic() + WAIT_SECONDS
    while "kind-ramp" not in (found := look(server.host, client)):
        assert time.monotonic() < deadline
        write(20)
    assert "the kind New" in found["kind-ramp"]["evidence"]


def test_a_database_that_is_not_there(server):
    status, text = Rest(server.host).ask("GET", "/v1/projects/nobody/databases/(default):advise")
    assert (status, json.loads(text)["error"]["status"]) == (404, "NOT_FOUND")
