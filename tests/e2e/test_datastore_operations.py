"""Datastore's long-running operations: projects/P/operations/N, by gRPC and by REST."""

import grpc
import pytest
from google.longrunning import operations_pb2 as lro
from google.longrunning import operations_pb2_grpc
from harness.rest import Rest
from harness.rpc import fails_with

NOT_FOUND, INVALID_ARGUMENT = grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT


@pytest.fixture
def operations(server):
    with grpc.insecure_channel(server.host) as channel:
        yield operations_pb2_grpc.OperationsStub(channel)


def test_what_is_not_there(operations, server):
    name = "projects/p/operations/1"
    for call, request in (
        (operations.GetOperation, lro.GetOperationRequest),
        (operations.WaitOperation, lro.WaitOperationRequest),
        (operations.CancelOperation, lro.CancelOperationRequest),
        (operations.DeleteOperation, lro.DeleteOperationRequest),
    ):
        with fails_with(NOT_FOUND, f"Operation not found: {name}"):
            call(request(name=name))
    rest = Rest(server.host)
    for verb, suffix in (("GET", ""), ("DELETE", ""), ("POST", ":cancel"), ("POST", ":wait")):
        body = "{}" if verb == "POST" else None
        refusal = rest.call(verb, f"/v1/{name}{suffix}", body, expect=404)
        assert refusal["error"]["message"] == f"Operation not found: {name}"


def test_lists_are_of_a_project(operations, server):
    def listed(name, **fields):
        return operations.ListOperations(lro.ListOperationsRequest(name=name, **fields)).operations

    assert not listed("projects/nobodys")
    assert Rest(server.host).call("GET", "/v1/projects/nobodys/operations") == {}
    assert not listed("projects/nobodys", filter="done=false AND metadata.common.state=PROCESSING")
    for name in ("projects/", "projects/p/q", "p", "projects/p/operations/1"):
        with fails_with(INVALID_ARGUMENT, "expected operations/projects/{project}"):
            listed(name)
    with fails_with(INVALID_ARGUMENT, "filter: "):
        listed("projects/nobodys", filter="x = 1")
