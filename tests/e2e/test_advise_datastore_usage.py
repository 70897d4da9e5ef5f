"""The schema advisor on what clients of a Datastore database do: each rule with a use that breaks
it, and one that looks alike and is good. What of it depends on how fast calls come is in the unit
tests (usage_sums_test.c)."""

import random
import re
import time

import grpc
import pytest
from google.api_core.exceptions import Aborted
from google.cloud.datastore.query import PropertyFilter
from google.cloud.datastore_v1 import types
from harness.advice import advice_document
from harness.datastore import Raw, client_of, entity, fresh_client
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest

LookupRequest = types.LookupRequest.pb()


def look(host, client):
    """What is found, by rule."""
    path = f"/v1/projects/{client.project}/databases/(default):advise"
    report = advice_document(Rest(host).call("GET", path)["tables"][0])
    return {each["rule"]: each for each in report["findings"]}


@pytest.fixture
def client(server):
    return fresh_client(server.host)


def scattered(number):
    return random.Random(number).randrange(1, 10**12)


def fill(client, kind, count, properties=("n",)):
    """Keys of the entities."""
    raw = Raw(client)
    ids = [scattered(n) for n in range(count)]
    for first in range(0, count, 100):
        raw.commit(*(
            {"upsert": raw.entity(kind, each, **{name: each % 97 for name in properties})}
            for each in ids[first : first + 100]
        ))  # fmt: skip
    return [client.key(kind, each) for each in ids]


def test_offsets(server, client):
    fill(client, "Order", 700)
    for _ in range(25):
        list(client.query(kind="Order").fetch(limit=20))
        list(client.query(kind="Order").fetch(limit=20, offset=20))
    assert look(server.host, client) == {}
    for _ in range(25):
        list(client.query(kind="Order").fetch(limit=5, offset=600))
    found = look(server.host, client)
    assert set(found) == {"query-offsets"}
    words = "50 queries of the kind Order skipped 15500 results"
    assert words in found["query-offsets"]["evidence"]
    assert found["query-offsets"]["keys"] == ["Order"]


def test_whole_kinds(server, client):
    fill(client, "Small", 20)
    fill(client, "Order", 120)
    for _ in range(25):
        list(client.query(kind="Small").fetch())
        list(client.query(kind="Order").fetch(limit=100))
        keys = client.query(kind="Order")
        keys.keys_only()
        list(keys.fetch())
    assert look(server.host, client) == {}
    for _ in range(20):
        list(client.query(kind="Order").fetch())
    found = look(server.host, client)
    assert set(found) == {"kind-scans"}
    assert "the kind Order was read" in found["kind-scans"]["evidence"]
    assert "20 times, and 4900 whole entities" in found["kind-scans"]["evidence"]


def look_up(host, client, pairs):
    """Lookups of two keys each, as messages that are made before."""
    raw = Raw(client)
    paths = {key: raw.key(*key.flat_path)._pb for pair in pairs for key in pair}
    requests = [
        LookupRequest(project_id=client.project, keys=[paths[key] for key in pair])
        for pair in pairs
    ]
    with grpc.insecure_channel(host) as channel:
        call = channel.unary_unary("/google.datastore.v1.Datastore/Lookup")
        answers = [call.future(request.SerializeToString()) for request in requests]
        assert all(answer.result() for answer in answers)


def test_one_entity_in_every_lookup(server, client):
    first, *others = fill(client, "Page", 300)
    look_up(server.host, client, list(zip(others, [*others[7:], *others[:7]], strict=True)))
    assert "hot-entity" not in look(server.host, client)
    pairs = [(other, first) for other in others] + [(first, other) for other in others]
    look_up(server.host, client, pairs * 4)
    found = look(server.host, client)
    assert found["hot-entity"]["keys"] == [f"Page {first.id}"]


def pages(client, body_bytes, properties):
    """With an index for each of the properties."""
    made = [
        entity(client, "Page", scattered(i), exclude=("body",), body="x" * body_bytes,
               **dict.fromkeys(properties, scattered(i) % 1000))
        for i in range(400)
    ]  # fmt: skip
    client.put_multi(made)


def read_index(client, first, end):
    """All of an index that is between these, by projections."""
    query = client.query(kind="Page", projection=["n"])
    query.add_filter(filter=PropertyFilter("n", ">=", first))
    query.add_filter(filter=PropertyFilter("n", "<", end))
    return len(list(query.fetch()))


def look_when_fine(host, client):
    """What is found once most requests were counted by ranges that are small enough."""
    path = f"/v1/projects/{client.project}/databases/(default):advise"
    advice = Rest(host).call("GET", path)["tables"][0]
    return None if advice.get("note") else {each["rule"] for each in advice.get("findings", ())}


def test_an_index_that_is_read_whole_is_no_hot_range(server):
    """It has a fourteenth of the rows, and less of the data, but no part of it is read more than
    others; where one is, that is told."""
    whole, part = fresh_client(server.host), fresh_client(server.host)
    pages(whole, 2000, ["n", *(f"other{number}" for number in range(11))])
    pages(part, 0, ["n"])
    deadline, read = time.monotonic() + PATIENCE_SECONDS, 0
    while (found := look_when_fine(server.host, whole)) is None or read < 8000:
        assert time.monotonic() < deadline
        read += read_index(whole, 0, 1000)
    assert "hot-range" not in found
    while "hot-range" not in (look_when_fine(server.host, part) or ()):
        assert time.monotonic() < deadline
        for _ in range(50):
            read_index(part, 500, 540)


def commit_against(raw, number):
    """Of two transactions that read the same and write it, one is aborted."""
    key = raw.key("Counter", "all")
    transactions = [raw.begin(read_write={}) for _ in range(2)]
    for each in transactions:
        raw.lookup(key, transaction=each)
    change = {"upsert": raw.entity("Counter", "all", n=number)}
    raw.commit(change, transaction=transactions[0], mode="TRANSACTIONAL")
    with pytest.raises(Aborted):
        raw.commit(change, transaction=transactions[1], mode="TRANSACTIONAL")


def test_contention(server, client):
    raw = Raw(client)
    raw.commit({"upsert": raw.entity("Counter", "all", n=0)})
    for number in range(1, 11):
        commit_against(raw, number)
    assert look(server.host, client) == {}
    for number in range(11, 26):
        commit_against(raw, number)
    found = look(server.host, client)
    assert set(found) - {"group-writes"} == {"contention"}
    assert "25 were aborted" in found["contention"]["evidence"]
    assert found["contention"]["keys"] == ['Counter "all"']


def test_transactions_that_are_left_open(server, client):
    keys = fill(client, "Order", 30)
    raw = Raw(client)
    paths = [raw.key(*key.flat_path) for key in keys]

    def begin(path):
        transaction = raw.begin(read_write={})
        raw.lookup(path, transaction=transaction)
        return transaction

    for path in paths:
        raw.api.rollback(
            request={"project_id": client.project, "transaction": begin(path)}, retry=None
        )
    for path in paths[:10]:
        begin(path)
    for path in paths:
        raw.begin(read_only={})
    assert look(server.host, client) == {}  # a client has crashed
    for path in paths[:25]:
        begin(path)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while "open-transactions" not in (found := look(server.host, client)):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    assert "Of 65 transactions" in found["open-transactions"]["evidence"]
    assert "the kind Order first" in found["open-transactions"]["evidence"]


def ask(client, name, count):
    query = client.query(kind="Wide")
    query.add_filter(filter=PropertyFilter(name, "=", 5))
    for _ in range(count):
        list(query.fetch(limit=5))


def test_indexes_that_no_query_uses_also_after_a_restart(fresh_server):
    server = fresh_server()
    client = fresh_client(server.host)
    fill(client, "Wide", 40, [f"p{number:02}" for number in range(60)])
    ask(client, "p01", 99)
    assert look(server.host, client) == {}
    list(client.query(kind="Wide", order=["-p02"]).fetch(limit=5))
    found = look(server.host, client)
    assert set(found) == {"index-unused"}
    evidence = found["index-unused"]["evidence"]
    assert "58 have answered no query since 20" in evidence
    assert re.search(r": (p\d\d \(\d+\.\d KiB\), ){4}p\d\d \(.*?\) and 53 more\.", evidence)
    assert not re.search("p01|p02", evidence)
    [each, unit] = re.search(r"p\d\d \((\d+\.\d) (.iB)\)", evidence).groups()
    [total, of_total] = re.search(r"They take about (\d+\.\d) (.iB) in all\.", evidence).groups()
    size = {"KiB": 1, "MiB": 1024}
    assert 40 * 58 * 30 / 1024 < float(total) * size[of_total] <= 58 * float(each) * size[unit]
    server.restart()
    client = client_of(server.host, client.project)
    assert look(server.host, client) == {}
    ask(client, "p00", 100)
    found = look(server.host, client)
    assert "57 have answered no query since 20" in found["index-unused"]["evidence"]
    assert "p00" not in found["index-unused"]["evidence"]
