"""Entities that expire: which property says so, by google.firestore.admin.v1.FirestoreAdmin over
REST and gRPC (gcloud: tests/gcloud/test_gcloud_page.py), and that they are deleted then, with their
index rows, and no others."""

import datetime
import threading
import time

import grpc
import pytest
from google.api_core import exceptions
from google.cloud.datastore.query import PropertyFilter
from google.cloud.datastore_v1 import types
from google.protobuf import message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from harness.datastore import Raw, client_of, entity, fresh_client
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest

UTC = datetime.timezone.utc
PAST = datetime.datetime(2020, 1, 1, tzinfo=UTC)
FUTURE = datetime.datetime(2100, 1, 1, tzinfo=UTC)
SERVICE = "google.firestore.admin.v1.FirestoreAdmin"


@pytest.fixture
def server(fresh_server):
    return fresh_server("--datastore-ttl-interval", "1s")


@pytest.fixture
def client(server):
    return fresh_client(server.host)


class Fields:
    """The fields of one database, by REST."""

    def __init__(self, server, client, database="(default)"):
        self.rest = Rest(server.host)
        self.parent = f"projects/{client.project}/databases/{database}/collectionGroups"

    def name(self, field, kind="K"):
        return f"{self.parent}/{kind}/fields/{field}"

    def update(self, field, kind="K", body=None, mask="ttlConfig"):
        path = f"/v1/{self.name(field, kind)}?updateMask={mask}"
        return self.rest.call("PATCH", path, body if body is not None else {"ttlConfig": {}})

    def get(self, field, kind="K"):
        return self.rest.call("GET", f"/v1/{self.name(field, kind)}")

    def list(self, kind="-", query="filter=ttlConfig:*"):
        return self.rest.call("GET", f"/v1/{self.parent}/{kind}/fields?{query}")


@pytest.fixture
def fields(server, client):
    return Fields(server, client)


def until(is_so, seconds=60):
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it did not come to be"
        time.sleep(0.1)


def ids(client, kind="K", *filters):
    query = client.query(kind=kind)
    query.keys_only()
    for each in filters:
        query.add_filter(filter=PropertyFilter(*each))
    return sorted(found.key.id for found in query.fetch())


# --- which property ---


def test_a_fields_life(client, fields):
    assert fields.get("expiry") == {"name": fields.name("expiry")}
    operation = fields.update("expiry")
    enabled = {"name": fields.name("expiry"), "ttlConfig": {"state": "ACTIVE"}}
    kind = "type.googleapis.com/google.firestore.admin.v1."
    assert operation["done"]
    assert operation["response"] == {"@type": f"{kind}Field", **enabled}
    metadata = operation["metadata"]
    assert metadata["@type"] == f"{kind}FieldOperationMetadata"
    assert (metadata["field"], metadata["state"]) == (fields.name("expiry"), "SUCCESSFUL")
    assert metadata["ttlConfigDelta"] == {"changeType": "ADD"}
    database = f"projects/{client.project}/databases/(default)"
    assert operation["name"].startswith(f"{database}/operations/")
    assert fields.rest.call("GET", f"/v1/{operation['name']}") == operation
    listed = fields.rest.call("GET", f"/v1/{database}/operations")
    assert listed == {"operations": [operation]}
    assert fields.get("expiry") == enabled
    assert fields.update("expiry")["done"]  # again
    fields.update("when", kind="L")
    assert fields.list() == {
        "fields": [enabled, {**enabled, "name": fields.name("when", kind="L")}]
    }
    assert fields.list(kind="K") == {"fields": [enabled]}
    gone = fields.update("expiry", body={})
    assert gone["metadata"]["ttlConfigDelta"] == {"changeType": "REMOVE"}
    assert fields.get("expiry") == {"name": fields.name("expiry")}
    assert fields.list(kind="K") == {}


def test_lists_have_pages(fields):
    for number in range(5):
        fields.update("t", kind=f"K{number}")
    first = fields.list(query="pageSize=2")
    second = fields.list(query=f"pageSize=3&pageToken={first['nextPageToken']}")
    names = [each["name"] for page in (first, second) for each in page["fields"]]
    assert names == [fields.name("t", kind=f"K{number}") for number in range(5)]
    assert "nextPageToken" not in second
    assert fields.list(query="filter=indexConfig.usesAncestorConfig:false") == {}


def test_databases_have_their_own(server, client, fields):
    other = Fields(server, client, database="second")
    fields.update("expiry")
    assert other.list() == {}
    other.update("when")
    assert other.get("when")["ttlConfig"] == {"state": "ACTIVE"}
    assert len(fields.list()["fields"]) == 1


def test_what_is_refused(fields):
    def refused(call, status, words):
        with pytest.raises(AssertionError) as error:
            call()
        assert status in str(error.value) and words in str(error.value)

    fields.update("expiry")
    refused(lambda: fields.update("other"), "FAILED_PRECONDITION", "expire by the property expiry")
    refused(lambda: fields.update("a", mask="indexConfig"), "UNIMPLEMENTED", "ttl_config")
    offset = {"ttlConfig": {"expirationOffset": "3600s"}}
    refused(lambda: fields.update("a", body=offset), "UNIMPLEMENTED", "expiration_offset")
    refused(lambda: fields.update("a", kind="__x__"), "INVALID_ARGUMENT", "is reserved")
    refused(lambda: fields.get("*"), "INVALID_ARGUMENT", "Invalid field path")
    refused(lambda: fields.list(query="filter=nonsense"), "INVALID_ARGUMENT", "nonsense")


def test_fields_survive_a_kill(server, client, fields):
    fields.update("expiry")
    server.kill()
    server.start()
    again = Fields(server, client)
    assert len(again.list()["fields"]) == 1
    client = client_of(server.host, client.project)
    client.put(entity(client, "K", 1, expiry=PAST))
    until(lambda: ids(client) == [])


def test_by_grpc(server, client):
    """The messages that Google's client of Firestore sends, whose package the tests do not have."""
    with grpc.insecure_channel(server.host) as channel:
        pool = DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
        methods = pool.FindServiceByName(SERVICE).methods_by_name

        def call(method, **fields):
            described = methods[method]
            request = message_factory.GetMessageClass(described.input_type)(**fields)
            answer = message_factory.GetMessageClass(described.output_type)
            return channel.unary_unary(
                f"/{SERVICE}/{method}",
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=answer.FromString,
            )(request, timeout=PATIENCE_SECONDS)

        parent = f"projects/{client.project}/databases/(default)/collectionGroups"
        name = f"{parent}/K/fields/expiry"
        operation = call(
            "UpdateField",
            field={"name": name, "ttl_config": {}},
            update_mask={"paths": ["ttl_config"]},
        )
        assert operation.done and operation.response.type_url.endswith("admin.v1.Field")
        assert call("GetField", name=name).ttl_config.state == 2
        listed = call("ListFields", parent=f"{parent}/-", filter="ttlConfig:*")
        assert [field.name for field in listed.fields] == [name]
        with pytest.raises(grpc.RpcError) as error:
            channel.unary_unary(f"/{SERVICE}/CreateDatabase")(b"", timeout=PATIENCE_SECONDS)
        assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED


# --- what goes ---


def test_what_has_expired_goes(client, fields):
    soon = datetime.datetime.now(UTC) + datetime.timedelta(seconds=4)
    client.put_multi(
        [
            entity(client, "K", 1, expiry=PAST, n=1),
            entity(client, "K", 2, expiry=FUTURE, n=1),
            entity(client, "K", 3, n=1),
            entity(client, "K", 4, expiry=5, n=1),
            entity(client, "K", 5, expiry="2020-01-01", n=1),
            entity(client, "K", 6, expiry=soon, n=1),
            entity(client, "P", 1, "K", 7, expiry=PAST, n=1),
            entity(client, "L", 8, expiry=PAST),
            entity(client, "K", 9, expiry=[PAST], n=1),
            entity(client, "K", 10, expiry=-(2**60), n=1),
        ]
    )
    fields.update("expiry")
    until(lambda: ids(client) == [2, 3, 4, 5, 9, 10])
    assert datetime.datetime.now(UTC) >= soon
    assert ids(client, "K", ("n", "=", 1)) == [2, 3, 4, 5, 9, 10]
    assert ids(client, "L") == [8]
    assert client.get(client.key("K", 1)) is None


def test_what_no_index_has_goes_too(client, fields):
    """A property that is excluded from indexes, and one of an entity in a property."""
    client.put(entity(client, "K", 1, exclude=["expiry"], expiry=PAST))
    client.put(entity(client, "K", 2, exclude=["expiry"], expiry=FUTURE))
    inner = entity(client, "I", 1, until=PAST)
    client.put(entity(client, "L", 3, inner=inner))
    fields.update("expiry")
    fields.update("inner.until", kind="L")
    until(lambda: ids(client) == [2] and ids(client, "L") == [])


def test_in_each_namespace(server, client, fields):
    others = [client_of(server.host, client.project, namespace=f"n{number}") for number in range(9)]
    for other in others:
        other.put(entity(other, "K", 1, expiry=PAST))
        other.put(entity(other, "A", 1, n=1))
        other.put(entity(other, "Z", 1, n=1))
    client.put(entity(client, "K", 1, expiry=PAST))
    fields.update("expiry")
    until(lambda: all(ids(each) == [] for each in (client, *others)))
    assert all(ids(other, "A") == ids(other, "Z") == [1] for other in others)


def test_many_go(client, fields):
    """More than a commit, or a turn of the walk, has."""
    for start in range(0, 3000, 500):
        client.put_multi(
            [
                entity(client, "K", start + n + 1, expiry=PAST if n % 2 else FUTURE)
                for n in range(500)
            ]
        )
    fields.update("expiry")
    kept = [n + 1 for n in range(3000) if n % 2 == 0]
    until(lambda: ids(client) == kept)


def test_nothing_goes_without_a_field(client, fields):
    client.put_multi([entity(client, "K", n + 1, expiry=PAST) for n in range(3)])
    fields.update("expiry")
    fields.update("expiry", body={})
    client.put(entity(client, "K", 9, expiry=PAST))
    time.sleep(2.5)
    assert 9 in ids(client)


def test_who_renews_in_time_keeps_his_entity(client, fields):
    """Several clients renew entities while those that have expired are being deleted: whenever one
    succeeds, its entity stays."""
    raw, count = Raw(client), 4000
    for start in range(0, count, 500):
        client.put_multi([entity(client, "K", start + n + 1, expiry=PAST) for n in range(500)])
    kept, lost = set(), set()

    def renew(numbers):
        for number in numbers:
            renewed = types.Entity(
                key=raw.key("K", number), properties={"expiry": {"timestamp_value": FUTURE}}
            )
            try:
                raw.commit({"update": renewed})
                kept.add(number)
            except exceptions.NotFound:
                lost.add(number)

    # Once the first are gone, from the other end: some are there, whoever is faster.
    turns = [range(count + 1 - n, 0, -4) for n in range(1, 5)]
    threads = [threading.Thread(target=renew, args=(numbers,)) for numbers in turns]
    fields.update("expiry")
    until(lambda: len(ids(client)) < count)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    until(lambda: len(ids(client)) <= len(kept))
    assert lost and kept | lost == set(range(1, count + 1))
    assert ids(client) == sorted(kept)
