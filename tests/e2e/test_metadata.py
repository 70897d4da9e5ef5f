"""What goes beside the messages: response headers that clients measure by, features that they flag
in request headers."""

import base64
import re

import pytest
from google.cloud.bigtable_v2 import types
from google.rpc import error_details_pb2
from grpc import StatusCode
from grpc_status import rpc_status
from harness.patience import PATIENCE_SECONDS
from harness.rpc import INSTANCE, decode_rows, fails_with, features, set_cell

PARAMS = "x-goog-ext-425905942-bin"
READY_MS = [0.05, 0.1, 0.3, 0.6, 0.8, 1, 2, 3, 4, 5, 6, 8]  # what quick answers are rounded up to


@pytest.fixture
def filled(rpc, table_name):
    rpc.mutate(table_name, b"a", set_cell("f", b"q", b"v"))
    rpc.mutate(table_name, b"b", set_cell("f", b"q", b"v"))
    return table_name


def check_headers(call, has_params=True):
    """A stream without a message has its headers and trailers in one; clients look at both."""
    headers = dict([*call.initial_metadata(), *call.trailing_metadata()])
    [taken] = re.fullmatch(r"gfet4t7; dur=(\d+\.\d{3})", headers["server-timing"]).groups()
    assert float(taken) > 8 or float(taken) in READY_MS
    assert (PARAMS in headers) == has_params
    params = types.ResponseParams.deserialize(headers.get(PARAMS, b""))
    assert bool(params.zone_id) == has_params
    assert bool(params.cluster_id) == has_params


def set_cell_request(name):
    return types.MutateRowRequest(
        table_name=name, row_key=b"k", mutations=[set_cell("f", b"q", b"v")]
    )


def test_headers_of_a_unary_call(rpc, table_name):
    _, call = rpc.data.mutate_row.with_call(set_cell_request(table_name), timeout=PATIENCE_SECONDS)
    check_headers(call)


@pytest.mark.parametrize("keys", [[b"a"], [b"nobody"]], ids=["found", "not found"])
def test_headers_of_a_stream(rpc, filled, keys):
    stream = rpc.read_stream(filled, rows={"row_keys": keys})
    list(stream)
    check_headers(stream)


def test_reverse_scans_must_be_flagged(rpc, filled):
    with fails_with(StatusCode.UNIMPLEMENTED, "reverse scans"):
        list(rpc.read_stream(filled, metadata=(), reversed=True))


@pytest.mark.parametrize("strip", [False, True], ids=["padded", "not padded"])
@pytest.mark.parametrize("encode", [base64.urlsafe_b64encode, base64.standard_b64encode])
def test_features_in_every_spelling(rpc, filled, strip, encode):
    serialised = types.FeatureFlags.serialize(
        types.FeatureFlags(reverse_scans=True, routing_cookie=True)
    )
    flags = encode(serialised).decode()
    metadata = [("bigtable-features", flags.rstrip("=") if strip else flags)]
    rows = decode_rows(rpc.read_stream(filled, metadata=metadata, reversed=True), True)
    assert [key for key, _ in rows] == [b"b", b"a"]


def test_progress_is_told_to_who_understands_it(rpc, make_table):
    """A filter that lets nothing through, over more rows than one step of a scan looks at."""
    name = make_table()
    rows = [(b"%06d" % i, [set_cell("f", b"q", b"v")]) for i in range(5_000)]
    assert set(rpc.mutate_rows(name, rows)) == {0}
    nothing = {"value_regex_filter": b"no such value"}
    told = features(last_scanned_row_responses=True)
    keys = [
        response.last_scanned_row_key
        for response in rpc.read_stream(name, metadata=told, filter=nothing)
    ]
    assert keys
    assert keys == sorted(keys)
    assert b"" not in keys
    assert list(rpc.read_stream(name, metadata=(), filter=nothing)) == []


def routed(name):
    return [("x-goog-request-params", f"table_name={name}"), ("x-goog-api-client", "x/1")]


def test_a_request_is_for_what_it_was_routed_by(rpc, table_name):
    request = set_cell_request(table_name)
    for name in (table_name, table_name.replace("/", "%2F"), INSTANCE, ""):
        rpc.data.mutate_row(request, timeout=PATIENCE_SECONDS, metadata=routed(name))
    for name in (table_name + "x", INSTANCE + "2", "x"):
        with fails_with(StatusCode.INVALID_ARGUMENT, "routing header"):
            rpc.data.mutate_row(request, timeout=PATIENCE_SECONDS, metadata=routed(name))


def test_headers_of_refused_calls(rpc, table_name):
    """Those of a table that is not there have no cluster to name."""
    missing = f"{INSTANCE}/tables/no-such-table"
    with fails_with(StatusCode.NOT_FOUND) as failure:
        rpc.data.mutate_row(set_cell_request(missing), timeout=PATIENCE_SECONDS)
    check_headers(failure.error, has_params=False)
    with fails_with(StatusCode.NOT_FOUND) as failure:
        list(rpc.read_stream(missing))
    check_headers(failure.error, has_params=False)
    with fails_with(StatusCode.INVALID_ARGUMENT) as failure:
        list(rpc.read_stream(table_name, rows={"row_keys": [b""]}))
    check_headers(failure.error)


def retry_seconds(error):
    """What the google.rpc.RetryInfo of a failed call says."""
    (detail,) = rpc_status.from_call(error).details
    info = error_details_pb2.RetryInfo()
    assert detail.Unpack(info)
    return info.retry_delay.ToMicroseconds() / 1e6


def cookies_of(error):
    return [key for key, _ in error.trailing_metadata() if key.startswith("x-goog-cbt-cookie")]


def test_overload_says_when_and_where_to_try_again(fresh_server, connect):
    """A disk without room, since more than there is must stay free."""
    server = fresh_server()
    name = connect(server.host).create_table("t")
    server.arguments = ["--disk-reserve", "16TB"]
    rpc = connect(server.restart().host)
    request = set_cell_request(name)
    for flags, has_cookie in (features(routing_cookie=True), True), (features(), False):
        with fails_with(StatusCode.RESOURCE_EXHAUSTED) as failure:
            rpc.data.mutate_row(request, timeout=PATIENCE_SECONDS, metadata=flags)
        assert retry_seconds(failure.error) > 0
        assert bool(cookies_of(failure.error)) is has_cookie


def test_rows_read_are_counted(fresh_server, connect):
    server = fresh_server()
    rpc = connect(server.host)
    name = rpc.create_table("t")
    rpc.mutate_rows(name, [(b"%d" % i, [set_cell("f", b"q", b"v")]) for i in range(5)])
    rpc.read(name)
    rpc.read(name, rows_limit=2)
    rpc.read(name, filter={"value_regex_filter": b"x"}, rows={"row_keys": [b"1", b"nobody"]})
    assert server.metric("rows_read_total") == 5 + 2 + 1
    assert server.metric("commit_milliseconds") == server.metric("store_stalled") == 0
