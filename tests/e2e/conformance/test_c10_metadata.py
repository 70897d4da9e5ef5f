"""C10 of docs/reference/conformance.md: what goes beside the messages."""

import base64
import re
import socket

import h2.config
import h2.connection
import h2.events
import pytest
from google.cloud.bigtable_v2 import types
from google.rpc import error_details_pb2
from grpc import StatusCode
from grpc_status import rpc_status
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
    assert all(re.fullmatch(r"gfet4t7; dur=\d+", timing) for timing in found), found


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
