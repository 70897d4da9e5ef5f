"""The frame of Datastore's services: what is the same of every method, by gRPC, by REST in JSON,
and by REST in protobuf, as Datastore's older clients speak."""

import contextlib
import http.client
import json

import grpc
import pytest
from google.cloud import datastore, datastore_admin_v1, datastore_v1, ndb
from google.cloud.datastore_admin_v1.services.datastore_admin.transports.grpc import (
    DatastoreAdminGrpcTransport,
)
from google.cloud.datastore_v1.services.datastore.transports.grpc import DatastoreGrpcTransport
from google.rpc import status_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from harness.patience import PATIENCE_SECONDS
from harness.rest import WAYS, Rest

METHODS = [
    "Lookup", "RunQuery", "RunAggregationQuery", "BeginTransaction", "Commit", "Rollback",
    "AllocateIds", "ReserveIds",
]  # fmt: skip
ADMIN_METHODS = [
    "ExportEntities", "ImportEntities", "CreateIndex", "DeleteIndex", "GetIndex", "ListIndexes",
]  # fmt: skip
INVALID_ARGUMENT = grpc.StatusCode.INVALID_ARGUMENT


def lower_camel(name):
    return name[0].lower() + name[1:]


def snake(name):
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


@pytest.fixture
def channel(server):
    with grpc.insecure_channel(server.host) as opened:
        yield opened


@pytest.fixture
def ask(channel):
    """A function that makes a call by its name, and gives the code and the words that come back."""
    data = DatastoreGrpcTransport(channel=channel)
    admin = DatastoreAdminGrpcTransport(channel=channel)

    def call(method, metadata=(), **fields):
        module, transport = (
            (datastore_v1, data) if method in METHODS else (datastore_admin_v1, admin)
        )
        request = getattr(module, f"{method}Request")(**fields)
        try:
            getattr(transport, snake(method))(request, timeout=PATIENCE_SECONDS, metadata=metadata)
        except grpc.RpcError as error:
            return error.code(), error.details()
        return grpc.StatusCode.OK, ""

    return call


# --- gRPC ---


@pytest.mark.parametrize("method", [*METHODS, *ADMIN_METHODS])
def test_a_project_must_be_named(ask, method):
    assert ask(method) == (INVALID_ARGUMENT, "The project_id is empty.")
    code, words = ask(method, project_id="a/b")
    assert (code, "project_id" in words) == (INVALID_ARGUMENT, True)
    code, words = ask(method, project_id="p" * 129)
    assert (code, "longer than 128 bytes" in words) == (INVALID_ARGUMENT, True)


@pytest.mark.parametrize("method", METHODS)
def test_the_default_database_has_no_name(ask, method):
    code, words = ask(method, project_id="p", database_id="(default)")
    assert (code, "leave it empty" in words) == (INVALID_ARGUMENT, True)
    code, words = ask(method, project_id="p", database_id="a/b")
    assert (code, "database_id" in words) == (INVALID_ARGUMENT, True)


@pytest.mark.parametrize(
    ("parameters", "is_refused"),
    [
        ("project_id=p&database_id=d", False),
        ("database_id=d", False),
        ("project_id=%70&other=x&", False),
        ("project_id=q&database_id=d", True),
        ("project_id=p&database_id=e", True),
        ("project_id=p&database_id=", True),
    ],
)
def test_the_routing_header_agrees(ask, parameters, is_refused):
    code, words = ask(
        "Lookup", [("x-goog-request-params", parameters)], project_id="p", database_id="d"
    )
    assert ("routing header" in words) == is_refused
    assert (code == INVALID_ARGUMENT) == is_refused


@pytest.mark.parametrize("speaks_grpc", [True, False])
@pytest.mark.parametrize("database", [None, "d"])
def test_the_client_finds_the_server(server, monkeypatch, speaks_grpc, database):
    """By DATASTORE_EMULATOR_HOST: a database of a name, and the default one."""
    monkeypatch.setenv("DATASTORE_EMULATOR_HOST", server.host)
    client = datastore.Client(project="p", database=database, _use_grpc=speaks_grpc)
    assert len(client.allocate_ids(client.key("K"), 2, retry=None, timeout=PATIENCE_SECONDS)) == 2


def test_ndb_finds_the_server(server, monkeypatch):
    monkeypatch.setenv("DATASTORE_EMULATOR_HOST", server.host)
    with ndb.Client(project="p").context():
        assert ndb.Key("not there", 1).get(retries=0, timeout=PATIENCE_SECONDS) is None


def test_reflection_knows_the_services(channel):
    names = set(ProtoReflectionDescriptorDatabase(channel).get_services())
    assert {
        "google.datastore.v1.Datastore",
        "google.datastore.admin.v1.DatastoreAdmin",
    } <= names


# --- REST ---

ADMIN_PATHS = {
    "ExportEntities": ("POST", "/v1/projects/{}:export"),
    "ImportEntities": ("POST", "/v1/projects/{}:import"),
    "CreateIndex": ("POST", "/v1/projects/{}/indexes"),
    "DeleteIndex": ("DELETE", "/v1/projects/{}/indexes/1"),
    "GetIndex": ("GET", "/v1/projects/{}/indexes/1"),
    "ListIndexes": ("GET", "/v1/projects/{}/indexes"),
}
PATHS = {
    **{method: ("POST", f"/v1/projects/{{}}:{lower_camel(method)}") for method in METHODS},
    **ADMIN_PATHS,
}


@pytest.fixture(params=WAYS)
def rest(server, request):
    return Rest(server.host, request.param)


@pytest.mark.parametrize("method", PATHS)
def test_rest_in_json(rest, method):
    verb, path = PATHS[method]
    body = "{}" if verb == "POST" else None
    refusal = rest.call(verb, path.format("a%2Fb"), body, expect=400)
    assert refusal["error"]["status"] == "INVALID_ARGUMENT"


def test_rest_takes_null_for_a_value(rest):
    entity = {
        "key": {"partitionId": {"projectId": "p"}, "path": [{"kind": "K", "name": "a"}]},
        "properties": {"nothing": {"nullValue": None}, "n": {"integerValue": "5"}},
    }
    request = {"mode": "NON_TRANSACTIONAL", "mutations": [{"upsert": entity}]}
    code, _ = rest.ask("POST", "/v1/projects/p:commit", request)
    assert code == 200
    entity["properties"]["nothing"] = {"nullValue": None, "integerValue": "5"}
    refusal = rest.call("POST", "/v1/projects/p:commit", request, expect=400)
    assert "'null_value' is already set" in refusal["error"]["message"]


@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("POST", "/v1/projects/p:nothing"),
        ("POST", "/v1/projects/:lookup"),
        ("POST", "/v1/projects/p/q:lookup"),
        ("POST", "/v1beta3/projects/p:lookup"),
        ("GET", "/v1/projects/p:lookup"),
        ("GET", "/v1/"),
    ],
)
def test_paths_that_lead_nowhere(rest, verb, path):
    code, _ = rest.ask(verb, path, "{}" if verb == "POST" else None)
    assert code == 404


# --- REST in protobuf ---


class Binary:
    """Requests as google-cloud-datastore sends them where it has no gRPC."""

    def __init__(self, host):
        self.connection = http.client.HTTPConnection(host, timeout=PATIENCE_SECONDS)

    def close(self):
        self.connection.close()

    def ask(self, path, body, content_type="application/x-protobuf"):
        """(HTTP status, content type, body)."""
        self.connection.request("POST", path, body, {"Content-Type": content_type})
        answer = self.connection.getresponse()
        return answer.status, answer.getheader("content-type"), answer.read()


@pytest.fixture
def binary(server):
    with contextlib.closing(Binary(server.host)) as opened:
        yield opened


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "content_type", ["application/x-protobuf", "Application/X-Protobuf; charset=utf-8"]
)
def test_rest_in_protobuf(binary, method, content_type):
    request_type = getattr(datastore_v1, f"{method}Request")
    body = request_type.serialize(request_type(project_id="ignored", database_id="(default)"))
    path = PATHS[method][1].format("p")
    status, answered_type, answer = binary.ask(path, body, content_type)
    refusal = status_pb2.Status.FromString(answer)
    assert (status, answered_type) == (400, "application/x-protobuf")
    assert refusal.code == INVALID_ARGUMENT.value[0]
    assert "leave it empty" in refusal.message


def test_a_field_in_protobuf(binary):
    """The body of CreateIndex is the index."""
    path = ADMIN_PATHS["CreateIndex"][1].format("p")
    status, _, answer = binary.ask(path, b"\x22\x05K")  # a kind, cut off
    assert status == 400
    assert "not a valid message" in status_pb2.Status.FromString(answer).message


def test_protobuf_that_is_none(binary):
    words = "The request's body is not a valid message"
    swallows_the_path = b"\x42\x03"  # a project of three bytes
    for body in (b"\xff", swallows_the_path):
        status, _, answer = binary.ask("/v1/projects/p:lookup", body)
        assert (status, status_pb2.Status.FromString(answer).message) == (400, words)
    status, _, answer = binary.ask("/v1/projects/p:nothing", b"")
    assert (status, status_pb2.Status.FromString(answer).message) == (404, "Method not found.")


def test_bigtable_in_protobuf(binary):
    """An answer that is no error; and a method that streams, which JSON alone can frame."""
    path = "/v2/projects/p/instances/i"
    status, answered_type, answer = binary.ask(f"{path}:ping", b"")
    assert (status, answered_type, answer) == (200, "application/x-protobuf", b"")
    status, answered_type, answer = binary.ask(f"{path}/tables/t:readRows", b"")
    [refusal] = json.loads(answer)
    assert (status, answered_type) == (400, "application/json; charset=UTF-8")
    assert "JSON only" in refusal["error"]["message"]
