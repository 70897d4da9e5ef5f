"""Servers that copy each other's changes: clusters of one process each, on loopback without TLS."""

import contextlib
import time

import grpc
from google.cloud.bigtable_v2 import types
from google.protobuf import message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest
from harness.rpc import CHANNEL_OPTIONS, set_cell
from harness.server import Server


def peer_server(directory, number, *arguments):
    """A server that serves the location zone-NUMBER, and has no peers yet. It keeps its port when
    it is started again."""
    directory.mkdir()
    server = Server(directory, ["--location", f"zone-{number}", *arguments])
    server.start()
    server.listen = server.host
    return server


def join(server, other, expect=200, **fields):
    """Has the server join those that the other one knows: what ListPeers says then."""
    body = {"address": other if isinstance(other, str) else other.host, **fields}
    return Rest(server.host).call("POST", "/v1/servers/self/peers:join", body, expect)


def list_peers(server):
    """What the server says of its peers: {"list": {…}, "ownNumber": …, "states": […]}."""
    return Rest(server.host).call("GET", "/v1/servers/self/peers")


def wait_for_peers(server, condition):
    """What it says of its peers once the condition is true of that."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition(said := list_peers(server)):
        assert time.monotonic() < deadline, said
        time.sleep(0.05)
    return said


def know_each_other(servers):
    """Waits until each has heard of each, and all have the same list."""
    lists = [
        wait_for_peers(server, lambda said: is_whole(said, len(servers)))["list"]
        for server in servers
    ]
    assert all(each == lists[0] for each in lists), lists


def is_whole(said, count):
    states = said.get("states", [])
    heard = [state for state in states if state.get("heardUs") and not state.get("failure")]
    return len(said.get("list", {}).get("peers", [])) == count and len(heard) == count - 1


def wait_for_table(rpc, name, cluster):
    """Until the cluster, to which the profile of its name routes, has all rows of the table, which
    was made at the server that leads. Before, others may answer."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    request = types.SampleRowKeysRequest(table_name=name, app_profile_id=cluster)
    while True:
        call = rpc.data.sample_row_keys(request, timeout=PATIENCE_SECONDS)
        with contextlib.suppress(grpc.RpcError):
            list(call)
            if cluster_of(call) == cluster:
                return
        assert time.monotonic() < deadline, name
        time.sleep(0.05)


def ask(host, method, fields=None, credentials=None, timeout=PATIENCE_SECONDS):
    """Asks as a peer would, by what the server says of the method: the messages that come back."""
    if credentials is None:
        channel = grpc.insecure_channel(host, options=CHANNEL_OPTIONS)
    else:
        channel = grpc.secure_channel(host, credentials, options=CHANNEL_OPTIONS)
    with channel:
        pool = DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
        service = pool.FindServiceByName("trestle.replica.v1.Replication")
        described = service.methods_by_name[method]
        request_type, answer_type = (
            message_factory.GetMessageClass(each)
            for each in (described.input_type, described.output_type)
        )
        call = channel.unary_stream(
            f"/{service.full_name}/{method}", response_deserializer=answer_type.FromString
        )
        request = request_type(**(fields or {})).SerializeToString()
        return list(call(request, timeout=timeout))


def spread_instance(admin, instance_id, count):
    """An instance with a cluster at each of so many locations, c1 and on, and a profile for each of
    them, of that name, that goes there alone; its profile `default` goes to any. Its name."""
    instance = admin.instances.create_instance(
        parent="projects/p", instance_id=instance_id, instance={"display_name": instance_id},
        clusters={
            f"c{number}": {"location": f"projects/p/locations/zone-{number}", "serve_nodes": 1}
            for number in range(1, count + 1)
        },
    ).result().name  # fmt: skip
    for number in range(1, count + 1):
        routing = {"cluster_id": f"c{number}", "allow_transactional_writes": True}
        profile = {"description": f"c{number}", "single_cluster_routing": routing}
        request = {"parent": instance, "app_profile_id": f"c{number}", "app_profile": profile}
        admin.instances.create_app_profile(request={**request, "ignore_warnings": True})
    return instance


def cluster_of(call):
    """Which cluster answered, by the answer's ResponseParams."""
    metadata = [*call.initial_metadata(), *call.trailing_metadata()]
    params = [value for name, value in metadata if name == "x-goog-ext-425905942-bin"]
    assert params, metadata
    return types.ResponseParams.deserialize(params[0]).cluster_id


def cluster_of_write(rpc, table, profile, key=b"k", *mutations, timeout=PATIENCE_SECONDS):
    """Which cluster took the mutations, of themselves a cell of the family f."""
    request = types.MutateRowRequest(
        table_name=table, app_profile_id=profile, row_key=key,
        mutations=mutations or [set_cell("f", b"q", b"v", 1000)],
    )  # fmt: skip
    _, call = rpc.data.mutate_row.with_call(request, timeout=timeout)
    return cluster_of(call)
