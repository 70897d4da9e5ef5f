"""C10 of docs/reference/conformance.md: what goes beside the messages."""

import base64
import re
import socket

import h2.config
import h2.connection
import h2.events
import pytest
from google.cloud.bigtable_admin_v2 import types as admin_types
from google.cloud.bigtable_v2 import types
from google.rpc import error_details_pb2
from grpc import StatusCode
from grpc_status import rpc_status
from harness.admin import mask
from harness.patience import PATIENCE_SECONDS
from harness.rpc import INSTANCE, decode_rows, fails_with, features, set_cell

KEY = b"k"
PARAMS = "x-goog-ext-425905942-bin"


@pytest.fixture
def filled(rpc, table_name):
    rpc.mutate_rows(table_name, [(key, [set_cell("f", b"q", b"v")]) for key in (b"a", b"b")])
    return table_name


def read_keys(rpc, name, metadata, is_reversed=False):
    stream = rpc.read_stream(name, metadata=metadata, reversed=is_reversed)
    return [key for key, _ in decode_rows(stream, is_reversed)]


def test_c10_1_request_headers(rpc, filled):
    """All that clients were seen to send, at once."""
    quoted = filled.replace("/", "%2F")
    metadata = [
        ("x-goog-request-params", f"table_name={quoted}&app_profile_id=default"),
        ("x-goog-api-client", "gl-python/3.11 grpc/1.85 gccl/2.50"),
        ("google-cloud-resource-prefix", filled),
        ("bigtable-attempt", "3"),
        ("bigtable-client-attempt-epoch-usec", "1700000000000000"),
        ("x-goog-cbt-cookie-routing", "whatever"),
        *features(reverse_scans=True),
    ]
    assert read_keys(rpc, filled, metadata, True) == [b"b", b"a"]


@pytest.mark.parametrize("strip", [False, True], ids=["padded", "not padded"])
@pytest.mark.parametrize("encode", [base64.urlsafe_b64encode, base64.standard_b64encode])
def test_c10_2_feature_flags(rpc, filled, encode, strip):
    flags = types.FeatureFlags(reverse_scans=True, routing_cookie=True)
    text = encode(types.FeatureFlags.serialize(flags)).decode()
    assert "=" in text
    metadata = [("bigtable-features", text.rstrip("=") if strip else text)]
    assert read_keys(rpc, filled, metadata, True) == [b"b", b"a"]


def test_c10_2_every_flag(rpc, filled):
    names = [name for name in types.FeatureFlags.meta.fields if name != "sessions_required"]
    metadata = features(**dict.fromkeys(names, True))
    assert read_keys(rpc, filled, metadata, True) == [b"b", b"a"]


@pytest.mark.parametrize("text", ["", "%%%", "AA", "/////w"])
def test_c10_2_flags_that_cannot_be_read_flag_nothing(rpc, filled, text):
    assert read_keys(rpc, filled, [("bigtable-features", text)]) == [b"a", b"b"]


def headers_of(call):
    """A stream without a message has its headers and trailers in one; clients look at both."""
    return dict([*call.initial_metadata(), *call.trailing_metadata()])


def calls(rpc, name):
    """One finished call of each method of the data service."""
    cell = set_cell("f", b"q", b"v")
    target = {"table_name": name, "row_key": KEY}
    rule = {"family_name": "f", "column_qualifier": b"q", "append_value": b"v"}
    mutation = types.MutateRowRequest(**target, mutations=[cell])
    check = types.CheckAndMutateRowRequest(**target, false_mutations=[cell])
    update = types.ReadModifyWriteRowRequest(**target, rules=[rule])
    ping = types.PingAndWarmRequest(name=INSTANCE)
    entries = [{"row_key": KEY, "mutations": [cell]}]
    data = rpc.data
    unary = {
        data.mutate_row: mutation,
        data.check_and_mutate_row: check,
        data.read_modify_write_row: update,
        data.ping_and_warm: ping,
    }
    streams = {
        data.read_rows: types.ReadRowsRequest(table_name=name),
        data.sample_row_keys: types.SampleRowKeysRequest(table_name=name),
        data.mutate_rows: types.MutateRowsRequest(table_name=name, entries=entries),
    }
    for method, request in unary.items():
        _, call = method.with_call(request, timeout=PATIENCE_SECONDS)
        yield headers_of(call)
    for method, request in streams.items():
        call = method(request, timeout=PATIENCE_SECONDS)
        list(call)
        yield headers_of(call)


def test_c10_3_server_timing(rpc, filled):
    found = [headers["server-timing"] for headers in calls(rpc, filled)]
    assert len(found) == 7
    timings = [re.fullmatch(r"gfet4t7; dur=(\d+\.\d+)", timing) for timing in found]
    assert all(timing and float(timing[1]) > 0 for timing in timings), found


def test_c10_3_server_timing_counts_injected_delays(fresh_server, connect):
    """A client that measures the server by it sees what it would see of a slow one."""
    server = fresh_server("--inject", "PingAndWarm: delay=50ms")
    ping = types.PingAndWarmRequest(name=INSTANCE)
    _, call = connect(server.host).data.ping_and_warm.with_call(ping, timeout=PATIENCE_SECONDS)
    timing = dict(call.initial_metadata())["server-timing"]
    assert float(timing.removeprefix("gfet4t7; dur=")) >= 50


def test_c10_4_response_params(rpc, filled):
    """Where the call was served: the zone and the cluster."""
    found = [types.ResponseParams.deserialize(headers[PARAMS]) for headers in calls(rpc, filled)]
    assert len(found) == 7
    assert all(params.zone_id and params.cluster_id for params in found)
    assert len({(params.zone_id, params.cluster_id) for params in found}) == 1


def test_c10_5_routing_cookies(rpc, filled):
    """Whoever does not say that it would send them back gets none."""
    assert not [
        name for headers in calls(rpc, filled) for name in headers if "cookie" in name
    ]
    echoed = [("x-goog-cbt-cookie-of-another-server", "opaque"), *features(routing_cookie=True)]
    assert read_keys(rpc, filled, echoed) == [b"a", b"b", KEY]


def places(call):
    """(zone, cluster) as the headers and as the trailers have it."""
    found = []
    for metadata in (dict(call.initial_metadata()), dict(call.trailing_metadata())):
        if PARAMS in metadata:
            params = types.ResponseParams.deserialize(metadata[PARAMS])
            found.append((params.zone_id, params.cluster_id))
    return found


@pytest.fixture
def made_instance(admin):
    """An instance of two clusters, and a profile that routes to the second."""
    instance = "projects/p/instances/served-by"
    zones = {"b-cluster": "us-east1-b", "c-cluster": "us-east1-c"}
    clusters = {
        name: admin_types.Cluster(location=f"projects/p/locations/{zone}", serve_nodes=1)
        for name, zone in zones.items()
    }
    admin.instances.create_instance(
        parent="projects/p", instance_id="served-by", clusters=clusters,
        instance=admin_types.Instance(display_name="Served by"),
    ).result(PATIENCE_SECONDS)  # fmt: skip
    admin.instances.create_app_profile(
        parent=instance, app_profile_id="second",
        app_profile=admin_types.AppProfile(
            single_cluster_routing={"cluster_id": "c-cluster"}, description="to the second"
        ),
    )  # fmt: skip
    yield instance
    admin.instances.delete_instance(name=instance)


def test_c10_4_response_params_name_the_cluster(rpc, admin, made_instance):
    """In headers and in trailers: of the profile's cluster, else of the first, as they are now."""
    table = rpc.create_table("t", instance=made_instance)
    first, second = ("us-east1-b", "b-cluster"), ("us-east1-c", "c-cluster")

    def read(**fields):
        request = types.ReadRowsRequest(table_name=table, **fields)
        call = rpc.data.read_rows(request, timeout=PATIENCE_SECONDS)
        list(call)
        return places(call)

    def write(**fields):
        cell = set_cell("f", b"q", b"v")
        request = types.MutateRowRequest(
            table_name=table, row_key=KEY, mutations=[cell], **fields
        )
        return places(rpc.data.mutate_row.with_call(request, timeout=PATIENCE_SECONDS)[1])

    assert write() == [first, first]
    assert read() == [first, first]
    assert read(app_profile_id="nobody-made-it") == [first, first]
    assert read(app_profile_id="second") == [second, second]
    assert write(app_profile_id="second") == [second, second]
    ping = types.PingAndWarmRequest(name=made_instance, app_profile_id="second")
    _, call = rpc.data.ping_and_warm.with_call(ping, timeout=PATIENCE_SECONDS)
    assert places(call) == [second, second]
    admin.instances.update_app_profile(
        app_profile=admin_types.AppProfile(
            name=f"{made_instance}/appProfiles/second",
            single_cluster_routing={"cluster_id": "b-cluster"},
        ),
        update_mask=mask("single_cluster_routing"),
    ).result(PATIENCE_SECONDS)
    assert read(app_profile_id="second") == [first, first]
    rpc.delete_table(table)


def test_c10_4_no_response_params_of_a_missing_table(rpc):
    request = types.ReadRowsRequest(table_name=f"{INSTANCE}/tables/nowhere")
    with fails_with(StatusCode.NOT_FOUND) as failure:
        list(rpc.data.read_rows(request, timeout=PATIENCE_SECONDS))
    headers = headers_of(failure.error)
    assert PARAMS not in headers
    assert "server-timing" in headers


@pytest.fixture
def full(fresh_server, connect):
    """Raw RPCs to a server whose disk has less room than it is to keep free."""
    server = fresh_server()
    name = connect(server.host).create_table("full")
    server.stop()
    server.arguments = ["--disk-reserve", "16TB"]
    return connect(server.start().host), name


def test_c10_6_retry_info(full):
    """Says when what was refused may be tried again."""
    rpc, name = full
    with fails_with(StatusCode.RESOURCE_EXHAUSTED) as failure:
        rpc.mutate(name, KEY, set_cell("f", b"q", b"v"))
    (detail,) = rpc_status.from_call(failure.error).details
    info = error_details_pb2.RetryInfo()
    assert detail.Unpack(info)
    assert info.retry_delay.ToTimedelta().total_seconds() > 0


def test_c10_7_rate_limits(rpc, filled):
    """Go to clients that flag them alone."""
    entries = [{"row_key": KEY, "mutations": [set_cell("f", b"q", b"v")]}]
    request = types.MutateRowsRequest(table_name=filled, entries=entries)
    for flags in ((), features(retry_info=True)):
        stream = rpc.data.mutate_rows(request, timeout=PATIENCE_SECONDS, metadata=flags)
        assert not any("rate_limit_info" in response for response in stream)


class PingingClient:
    """HTTP/2 without any call."""

    def __init__(self, host):
        address, port = host.rsplit(":", 1)
        self.socket = socket.create_connection((address, int(port)), PATIENCE_SECONDS)
        config = h2.config.H2Configuration(client_side=True)
        self.connection = h2.connection.H2Connection(config)
        self.connection.initiate_connection()
        self.events = []

    def ping(self, number):
        """Sends a ping, and reads until it has been answered or the connection is over."""
        opaque = number.to_bytes(8, "big")
        self.connection.ping(opaque)
        self.socket.sendall(self.connection.data_to_send())
        while True:
            data = self.socket.recv(65536)
            events = self.connection.receive_data(data) if data else []
            self.events += events
            acks = [e for e in events if isinstance(e, h2.events.PingAckReceived)]
            if any(ack.ping_data == opaque for ack in acks):
                return True
            if not data:
                return False


def test_c10_8_pings_without_calls(server):
    """More of them, and faster, than any client's keepalive sends."""
    client = PingingClient(server.host)
    assert all(client.ping(number) for number in range(100))
    gone = [e for e in client.events if isinstance(e, h2.events.ConnectionTerminated)]
    assert gone == []
    client.socket.close()


def test_c10_9_ping_and_warm(rpc):
    """Google's client warms each new channel with it, and will not work without."""
    response = rpc.data.ping_and_warm(
        types.PingAndWarmRequest(name=INSTANCE, app_profile_id="default"), timeout=PATIENCE_SECONDS
    )
    assert types.PingAndWarmResponse.serialize(response) == b""
