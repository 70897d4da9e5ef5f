"""Our .proto files (proto/) state the same facts as the descriptors inside Google's own packages:
names, numbers, types, labels, oneofs, enum values, methods, in both directions.

What differs on purpose:
- `optional` fields are one-member oneofs called has_<field>;
- ADDITIONS, which the packages leave out, and UNCOMPARED;
- the packages describe the services in code only: their methods come from the stubs.
"""

import ast
import importlib
import pathlib

import grpc
import pytest
from google.cloud import (
    bigtable_admin_v2,
    bigtable_v2,
    datastore_admin_v1,
    datastore_v1,
)
from google.cloud.bigtable_admin_v2.services.bigtable_instance_admin.transports.grpc import (
    BigtableInstanceAdminGrpcTransport,
)
from google.cloud.bigtable_admin_v2.services.bigtable_table_admin.transports.grpc import (
    BigtableTableAdminGrpcTransport,
)
from google.cloud.bigtable_v2.services.bigtable.transports.grpc import BigtableGrpcTransport
from google.cloud.datastore_admin_v1.services.datastore_admin.transports.grpc import (
    DatastoreAdminGrpcTransport,
)
from google.cloud.datastore_v1.services.datastore.transports.grpc import DatastoreGrpcTransport
from google.protobuf import descriptor_pb2
from harness.server import binary

# Facts that google-cloud-bigtable 2.50.2 leaves out, since nothing in it uses them; from the
# published google/bigtable/v2/session.proto and bigtable.proto.
ADDITIONS = {
    "google.bigtable.v2.GetClientConfigurationRequest",
    "google.bigtable.v2.ClientConfiguration",
    "google.bigtable.v2.ClientConfiguration.PollingConfiguration",
    "google.bigtable.v2.SessionRequest",
    "google.bigtable.v2.SessionResponse",
    "google.bigtable.v2.Bigtable/GetClientConfiguration",
    "google.bigtable.v2.Bigtable/OpenTable",
    "google.bigtable.v2.Bigtable/OpenAuthorizedView",
    "google.bigtable.v2.Bigtable/OpenMaterializedView",
}

# Of the first no package is installed; the others are our own.
UNCOMPARED = ("google.firestore.", "trestle.")

PLAIN_MODULES = [
    "google.cloud.location.locations_pb2",
    "google.iam.v1.iam_policy_pb2",
    "google.iam.v1.options_pb2",
    "google.iam.v1.policy_pb2",
    "google.longrunning.operations_proto_pb2",
    "google.protobuf.any_pb2",
    "google.protobuf.duration_pb2",
    "google.protobuf.empty_pb2",
    "google.protobuf.field_mask_pb2",
    "google.protobuf.struct_pb2",
    "google.protobuf.timestamp_pb2",
    "google.protobuf.wrappers_pb2",
    "google.rpc.error_details_pb2",
    "google.rpc.status_pb2",
    "google.type.date_pb2",
    "google.type.expr_pb2",
    "google.type.latlng_pb2",
    "grpc_health.v1.health_pb2",
    "grpc_reflection.v1alpha.reflection_pb2",
]

TRANSPORTS = [
    BigtableGrpcTransport,
    BigtableInstanceAdminGrpcTransport,
    BigtableTableAdminGrpcTransport,
    DatastoreAdminGrpcTransport,
    DatastoreGrpcTransport,
]

WRAPPED_MODULES = [bigtable_v2, bigtable_admin_v2, datastore_v1, datastore_admin_v1]


Field = descriptor_pb2.FieldDescriptorProto


def field_facts(message, field):
    # The Python package renames what Python reserves: `type_`.
    name = field.name.rstrip("_")
    if field.proto3_optional:
        oneof = f"has_{name}"
    elif field.HasField("oneof_index"):
        oneof = message.oneof_decl[field.oneof_index].name
    else:
        oneof = None
    kind = field.type_name or Field.Type.Name(field.type)
    return name, (field.number, kind, Field.Label.Name(field.label), oneof)


def message_facts(scope, message, facts):
    name = f"{scope}.{message.name}"
    facts[name] = dict(field_facts(message, field) for field in message.field)
    for nested in message.nested_type:
        message_facts(name, nested, facts)
    for enum in message.enum_type:
        enum_facts(name, enum, facts)


def enum_facts(scope, enum, facts):
    facts[f"{scope}.{enum.name}"] = {value.name: value.number for value in enum.value}


def service_facts(scope, service, facts):
    for method in service.method:
        facts[f"{scope}.{service.name}/{method.name}"] = (
            method.input_type.lstrip("."),
            method.output_type.lstrip("."),
            method.client_streaming,
            method.server_streaming,
        )


def file_facts(file, facts):
    for message in file.message_type:
        message_facts(file.package, message, facts)
    for enum in file.enum_type:
        enum_facts(file.package, enum, facts)
    for service in file.service:
        service_facts(file.package, service, facts)


def proto_plus_files(module):
    """The files behind a package of wrapped messages; "overlay" holds inventions of the client."""
    files = {}
    for name in dir(module):
        wrapper = getattr(module, name)
        if hasattr(wrapper, "pb") and hasattr(wrapper, "meta"):
            file = wrapper.pb().DESCRIPTOR.file
            if "/overlay/" not in file.name:
                files[file.name] = file
    return files.values()


class RecordingChannel:
    """Takes the place of a transport's channel, and notes which methods its stubs are for."""

    def __init__(self):
        self.facts = {}

    def record(self, path, request_serializer, response_deserializer, streams):
        if path.startswith("/google.longrunning."):
            return  # a descriptor has them, with more
        request = getattr(request_serializer, "__self__", None)
        response = full_name(response_deserializer.__self__)
        # A plain protobuf class does not show through its serialiser: no request type then.
        self.facts[path.lstrip("/")] = (request and full_name(request), response, False, streams)

    def unary_unary(self, path, request_serializer, response_deserializer):
        self.record(path, request_serializer, response_deserializer, False)

    def unary_stream(self, path, request_serializer, response_deserializer):
        self.record(path, request_serializer, response_deserializer, True)


def full_name(message_class):
    plain = message_class.pb() if hasattr(message_class, "pb") else message_class
    return plain.DESCRIPTOR.full_name


def stub_facts(transport_class):
    with grpc.insecure_channel("localhost:1") as channel:  # never connected
        transport = transport_class(channel=channel)
        transport._logged_channel = RecordingChannel()
        transport._stubs.clear()  # and have them made again
        for name, member in vars(transport_class).items():
            if isinstance(member, property) and "_stubs" in member.fget.__code__.co_names:
                getattr(transport, name)
        return transport._logged_channel.facts


@pytest.fixture(scope="module")
def official():
    facts = {}
    files = [importlib.import_module(name).DESCRIPTOR for name in PLAIN_MODULES]
    files += [file for module in WRAPPED_MODULES for file in proto_plus_files(module)]
    for file in files:
        copy = descriptor_pb2.FileDescriptorProto()
        file.CopyToProto(copy)
        file_facts(copy, facts)
    for transport in TRANSPORTS:
        facts |= stub_facts(transport)
    # The package has reflection's first version only; the second differs by its name.
    text = repr({name: fact for name, fact in facts.items() if "reflection" in name})
    return facts | ast.literal_eval(text.replace("reflection.v1alpha", "reflection.v1"))


@pytest.fixture(scope="module")
def ours():
    built = pathlib.Path(binary()).parent / "proto/descriptors.pb"
    facts = {}
    for file in descriptor_pb2.FileDescriptorSet.FromString(built.read_bytes()).file:
        file_facts(file, facts)
    return facts


def test_nothing_is_missing(ours, official):
    assert official.keys() - ours.keys() == set()


def test_nothing_is_invented(ours, official):
    more = {name for name in ours.keys() - official.keys() if not name.startswith(UNCOMPARED)}
    assert more == ADDITIONS


def test_every_fact_agrees(ours, official):
    assert len(official) > 500
    different = {}
    for name in official.keys() & ours.keys():
        expected = official[name]
        if isinstance(expected, tuple) and expected[0] is None:
            expected = (ours[name][0], *expected[1:])
        if ours[name] != expected:
            different[name] = (ours[name], expected)
    assert different == {}
