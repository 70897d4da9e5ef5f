"""What goes beside the messages: response headers that clients measure by, features that they flag
in request headers."""

import base64
import re

import pytest
from google.cloud.bigtable_v2 import types
from grpc import StatusCode
from harness.rpc import DATA_SECONDS, INSTANCE, decode_rows, fails_with, features, set_cell

PARAMS = "x-goog-ext-425905942-bin"


@pytest.fixture
def filled(rpc, table_name):
    rpc.mutate(table_name, b"a", set_cell("f", b"q", b"v"))
    rpc.mutate(table_name, b"b", set_cell("f", b"q", b"v"))
    return table_name


def check_headers(call):
    """A stream without a message has its headers and trailers in one; clients look at both."""
    headers = dict([*call.initial_metadata(), *call.trailing_metadata()])
    assert re.fullmatch(r"gfet4t7; dur=\d+", headers["server-timing"])
    params = types.ResponseParams.deserialize(headers[PARAMS])
    assert params.zone_id
    assert params.cluster_id


def set_cell_request(name):
    return types.MutateRowRequest(
        table_name=name, row_key=b"k", mutations=[set_cell("f", b"q", b"v")]
    )


def test_headers_of_a_unary_call(rpc, table_name):
    _, call = rpc.data.mutate_row.with_call(set_cell_request(table_name), timeout=DATA_SECONDS)
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


def test_routing_headers_are_ignored(rpc, table_name):
    metadata = [("x-goog-request-params", f"table_name={INSTANCE}"), ("x-goog-api-client", "x/1")]
    rpc.data.mutate_row(set_cell_request(table_name), timeout=DATA_SECONDS, metadata=metadata)
