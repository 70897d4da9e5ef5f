"""Requests that are no gRPC, no protobuf, or too much of it. The call fails with the right code,
and the connection goes on."""

import gzip
import zlib

import pytest
from google.cloud.bigtable_v2 import types
from harness.rpc import INSTANCE
from raw import Answer, Reset, message

ADMIN = "/google.bigtable.admin.v2.BigtableTableAdmin/"
OK, UNKNOWN, INVALID, NOT_FOUND, EXHAUSTED, UNIMPLEMENTED, INTERNAL = 0, 2, 3, 5, 8, 12, 13
MB = 1 << 20


def field(number, body):
    """A length-delimited field."""
    return varint(number << 3 | 2) + varint(len(body)) + body


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def mutate_row(table, family=b"f", key=b"hostile"):
    """MutateRowRequest with one SetCell, from bytes, since the client's library refuses some."""
    cell = field(1, family) + field(2, b"q") + b"\x18\xe8\x07" + field(4, b"v")
    return field(1, table.encode()) + field(2, key) + field(3, field(1, cell))


def answer(raw, method, body, extra=()):
    outcome = raw.outcome(raw.call(method, body, extra))
    assert isinstance(outcome, Answer), outcome
    return outcome


def sends(raw, method, body):
    """The same for what is larger than a window."""
    stream = raw.open(method)
    data = message(body)
    raw.upload(stream, [data[i : i + MB] for i in range(0, len(data), MB)])
    outcome = raw.outcome(stream)
    assert isinstance(outcome, Answer), outcome
    return outcome


def goes_on(raw, victim):
    assert answer(raw, "MutateRow", mutate_row(victim.table)).status == OK


# --- protobuf ---


def test_truncated_protobuf(victim, attack):
    """Cut at every byte: none of it does anything but fail, or is by chance a request."""
    whole = mutate_row(victim.table)
    with victim.attacked():
        raw = attack()
        for size in range(len(whole)):
            assert answer(raw, "MutateRow", whole[:size]).status == INVALID
        goes_on(raw, victim)


def test_lengths_that_lie(victim, attack):
    lies = [
        b"\x0a\xff\xff\xff\xff\x0f",  # 4 GB
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # -1
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # no varint at all
        b"\x0b\x0c",  # a group
        b"\x0f",  # a wire type that does not exist
        b"\x00\x00",  # field 0
    ]
    with victim.attacked():
        raw = attack()
        for lie in lies:
            for method in ("MutateRow", "ReadRows", "MutateRows", ADMIN + "CreateTable"):
                assert answer(raw, method, lie).status == INVALID, (method, lie)
        goes_on(raw, victim)


@pytest.mark.parametrize("kind", [1, 2], ids=["chain", "interleave"])
def test_10000_nested_filters(victim, attack, kind):
    body = field(1, b"\x01")
    for _ in range(10_000):
        body = field(kind, field(1, body))
    request = field(1, victim.table.encode()) + field(3, body)
    with victim.attacked():
        raw = attack()
        assert answer(raw, "ReadRows", request).status == INVALID
        request = field(1, victim.table.encode()) + field(2, b"k") + field(6, body)
        assert answer(raw, "CheckAndMutateRow", request).status == INVALID
        goes_on(raw, victim)


def test_10000_nested_gc_rules(victim, attack):
    rule = b"\x08\x01"
    for _ in range(10_000):
        rule = field(3, field(1, rule))
    families = field(3, field(1, b"f") + field(2, field(1, rule)))
    request = field(1, INSTANCE.encode()) + field(2, b"nested") + field(3, families)
    with victim.attacked():
        raw = attack()
        assert answer(raw, ADMIN + "CreateTable", request).status == INVALID
        goes_on(raw, victim)


def test_64_mib_of_unknown_fields(victim, attack):
    """They say nothing, so the request is fine; they cost what they weigh."""
    with victim.attacked(megabytes=320):
        raw = attack()
        body = mutate_row(victim.table) + b"\x78\x00" * (32 * MB)
        assert sends(raw, "MutateRow", body).status == OK
        goes_on(raw, victim)


@pytest.mark.parametrize(
    ("method", "number"),
    [
        ("MutateRow", 3),
        pytest.param("MutateRows", 2, marks=pytest.mark.long),
        pytest.param("ReadModifyWriteRow", 3, marks=pytest.mark.long),
    ],
)
def test_64_mib_of_empty_fields(victim, attack, method, number):
    """Two bytes each, which would be a structure each."""
    with victim.attacked(megabytes=1024):
        raw = attack()
        body = field(1, victim.table.encode()) + field(number, b"") * (32 * MB)
        assert sends(raw, method, body).status in (INVALID, EXHAUSTED)
        goes_on(raw, victim)


@pytest.mark.long
def test_64_mib_of_empty_row_sets(victim, attack):
    """There is one, which is merged from all of them."""
    with victim.attacked(megabytes=320):
        raw = attack()
        body = field(1, victim.table.encode()) + field(2, b"") * (32 * MB)
        assert sends(raw, "ReadRows", body).status in (OK, EXHAUSTED)
        goes_on(raw, victim)


@pytest.mark.long
def test_64_mib_of_empty_row_keys(victim, attack):
    with victim.attacked(megabytes=1024):
        raw = attack()
        rows = field(1, b"") * (32 * MB)
        body = field(1, victim.table.encode()) + field(2, rows)
        assert sends(raw, "ReadRows", body).status in (INVALID, EXHAUSTED)
        goes_on(raw, victim)


INVALID_UTF8 = [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"\xc0\x80"]


@pytest.mark.parametrize("wrong", INVALID_UTF8, ids=bytes.hex)
def test_invalid_utf8(victim, attack, wrong):
    with victim.attacked():
        raw = attack()
        table = field(1, victim.table.encode() + wrong)
        assert answer(raw, "ReadRows", table).status == INVALID
        assert answer(raw, "MutateRow", mutate_row(victim.table, wrong)).status == INVALID
        assert answer(raw, ADMIN + "GetTable", table).status == INVALID
        goes_on(raw, victim)


@pytest.mark.parametrize("family", [b"f\x00", b"\x00", b"f\x00g"])
def test_nul_inside_a_family_name(victim, attack, family):
    with victim.attacked():
        raw = attack()
        request = mutate_row(victim.table, family, key=b"nul")
        assert answer(raw, "MutateRow", request).status in (INVALID, NOT_FOUND)
        read = field(1, victim.table.encode()) + field(2, field(1, b"nul"))
        assert answer(raw, "ReadRows", read).data == b""


def test_nul_in_bytes_is_data(victim, attack):
    key = b"nul\x00\x00key"
    with victim.attacked():
        raw = attack()
        assert answer(raw, "MutateRow", mutate_row(victim.table, key=key)).status == OK
        read = field(1, victim.table.encode()) + field(2, field(1, key))
        (body,) = answer(raw, "ReadRows", read).messages()
        assert types.ReadRowsResponse.deserialize(body).chunks[0].row_key == key


HUGE_REGEXES = [
    b"((((a{100}){100}){100}){100})",
    b"(" * 5000 + b")" * 5000,
    b"(a|b)*" * 3000,
    b"[" + b"a-z" * 5000 + b"]",
    b"\\C{1000}" * 100,
    b"\xff\xfe(",
    b"a**",
    b"\\8",
]


@pytest.mark.parametrize("regex", HUGE_REGEXES, ids=lambda regex: repr(regex[:20]))
def test_regex_that_is_a_bomb(victim, attack, regex):
    """Refused, or linear."""
    with victim.attacked(megabytes=128):
        raw = attack()
        for number in (4, 6, 7):  # row key, qualifier, value
            request = field(1, victim.table.encode()) + field(3, field(number, regex))
            assert answer(raw, "ReadRows", request).status in (OK, INVALID)


def test_100000_row_ranges(victim, attack):
    ranges = b"".join(
        field(2, field(1, b"%06d" % (i * 7 % 100_000)) + field(4, b"%06d" % (i + 1)))
        for i in range(100_000)
    )
    with victim.attacked(megabytes=256):
        raw = attack()
        request = field(1, victim.table.encode()) + field(2, ranges)
        assert sends(raw, "ReadRows", request).status in (OK, INVALID, EXHAUSTED)
        goes_on(raw, victim)


# --- gRPC's framing ---


def whole(raw, method, data, extra=()):
    stream = raw.open(method, extra)
    raw.data(stream, data)
    return raw.outcome(stream)


@pytest.mark.parametrize(
    "data",
    [b"", b"\x00", b"\x00\x00\x00", message(b"12345", size=100), message(b"", flag=7)],
    ids=["nothing", "one byte", "half a prefix", "half a message", "unknown flag"],
)
def test_request_that_is_no_message(victim, attack, data):
    with victim.attacked():
        raw = attack()
        assert whole(raw, "MutateRow", data).status == INTERNAL
        goes_on(raw, victim)


def test_two_messages_where_one_is_expected(victim, attack):
    with victim.attacked():
        raw = attack()
        data = message(mutate_row(victim.table)) * 2
        assert whole(raw, "MutateRow", data).status in (INTERNAL, UNIMPLEMENTED)
        goes_on(raw, victim)


@pytest.mark.parametrize("size", [(256 << 20) + 1, 0xFFFFFFFF])
def test_message_larger_than_allowed_is_announced(victim, attack, size):
    """The answer comes before the message does."""
    with victim.attacked():
        raw = attack()
        stream = raw.open("MutateRow")
        raw.data(stream, message(b"x" * 1000, size=size), end=False)
        assert raw.outcome(stream).status == EXHAUSTED
        goes_on(raw, victim)


def test_large_messages_are_announced_and_never_sent(victim, attack):
    """1,000 streams promise 256 MiB each; no memory is set aside for promises."""
    with victim.attacked(megabytes=256):
        raw = attack()
        raw.ping()
        for _ in range(900):
            stream = raw.open("MutateRow")
            raw.data(stream, message(b"x" * 100, size=256 << 20), end=False)
        assert raw.ping()


def test_message_of_256_mib_is_too_large_for_what_it_is(victim, attack):
    """It fits the transport's limit; as a cell it is refused."""
    with victim.attacked(megabytes=1024):
        raw = attack()
        cell = field(1, b"f") + field(2, b"q") + b"\x18\xe8\x07" + field(4, bytes(200 * MB))
        mutation = field(3, field(1, cell))
        body = field(1, victim.table.encode()) + field(2, b"large") + mutation
        assert sends(raw, "MutateRow", body).status == INVALID
        goes_on(raw, victim)


# --- compression ---

GZIP = [("grpc-encoding", "gzip")]


def packed(raw, data, extra=GZIP):
    stream = raw.open("MutateRow", extra)
    raw.data(stream, message(data, flag=1))
    return raw.outcome(stream)


def bomb(megabytes):
    """A gzip member that unpacks to zeroes."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    zeroes = bytes(MB)
    return b"".join([*(packer.compress(zeroes) for _ in range(megabytes)), packer.flush()])


def test_gzip_bomb(victim, attack):
    """1 GiB in 1 MB."""
    with victim.attacked(megabytes=640):
        raw = attack()
        stream = raw.open("MutateRow", GZIP)
        raw.upload(stream, [message(bomb(1024), flag=1)])
        assert raw.outcome(stream).status == EXHAUSTED
        goes_on(raw, victim)


@pytest.mark.long
def test_many_gzip_bombs(victim, attack):
    """Together they get what one connection may have."""
    with victim.attacked(megabytes=1200):
        raw = attack()
        raw.ping()
        body = message(bomb(200), flag=1)
        streams = [raw.open("MutateRow", GZIP) for _ in range(20)]
        for stream in streams:
            raw.data(stream, body[:200_000], end=False)
        for stream in streams:
            raw.data(stream, body[200_000:])
        outcomes = [raw.outcome(stream) for stream in streams]
        codes = {outcome.status for outcome in outcomes if isinstance(outcome, Answer)}
        assert codes <= {INVALID, EXHAUSTED}
        assert EXHAUSTED in codes


@pytest.mark.long
def test_gzip_of_gzip_bombs(victim, attack):
    """Only one layer is unpacked."""
    with victim.attacked():
        raw = attack()
        assert packed(raw, gzip.compress(bomb(512))).status == INVALID


def test_gzip_that_is_fine(victim, attack):
    with victim.attacked():
        raw = attack()
        assert packed(raw, gzip.compress(mutate_row(victim.table))).status == OK


def test_damaged_gzip(victim, attack):
    data = gzip.compress(mutate_row(victim.table))
    with victim.attacked():
        raw = attack()
        damaged = {
            "cut": data[:-4],
            "checksum": data[:-8] + bytes(8),
            "garbage": b"\x00" * 50,
            "nothing": b"",
            "more behind it": data + b"x",
            "zlib": zlib.compress(mutate_row(victim.table)),
        }
        for name, each in damaged.items():
            assert packed(raw, each).status in (INTERNAL, INVALID), name
        goes_on(raw, victim)


def test_compressed_without_saying_how(victim, attack):
    with victim.attacked():
        raw = attack()
        assert packed(raw, gzip.compress(b"x"), extra=()).status == INTERNAL
        goes_on(raw, victim)


def test_unknown_compression(victim, attack):
    with victim.attacked():
        raw = attack()
        outcome = packed(raw, b"x", extra=[("grpc-encoding", "snappy")])
        assert outcome.status == UNIMPLEMENTED
        goes_on(raw, victim)


# --- headers ---


@pytest.mark.parametrize(
    "timeout", ["", "S", "1", "1s", "-1S", "123456789S", "1.5S", "0x1S", " 1S", "1S ", "99X", "1SS"]
)
def test_malformed_timeout(victim, attack, timeout):
    with victim.attacked():
        raw = attack()
        extra = [("grpc-timeout", timeout)]
        outcome = raw.outcome(raw.call("MutateRow", mutate_row(victim.table), extra))
        assert outcome == Reset(1) or outcome.status == INTERNAL
        goes_on(raw, victim)


def test_longest_timeout(victim, attack):
    with victim.attacked():
        raw = attack()
        for unit in "HMSmun":
            extra = [("grpc-timeout", "99999999" + unit)]
            assert answer(raw, "MutateRow", mutate_row(victim.table), extra=extra).status == OK


def test_oversize_headers(victim, attack):
    with victim.attacked():
        raw = attack()
        for extra in ([("x-large", "a" * 20_000)], [(f"x-{i}", "a") for i in range(200)]):
            stream = raw.open("MutateRow", extra)
            raw.data(stream, message(mutate_row(victim.table)))
            assert raw.outcome(stream).status == EXHAUSTED
        goes_on(raw, victim)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"method": "GET"}, "405"),
        ({"method": "CONNECT"}, "405"),
        ({"content_type": "application/json"}, "415"),
        ({"content_type": "application/grpc-web"}, "415"),
        ({"content_type": None}, "415"),
    ],
)
def test_request_that_is_not_grpc(victim, attack, fields, code):
    with victim.attacked():
        raw = attack()
        outcome = raw.outcome(raw.open("MutateRow", end=True, **fields))
        assert outcome == Reset(1) or outcome.headers[":status"] == code
        goes_on(raw, victim)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/a",
        "/" + "a" * 8000,
        "/google.bigtable.v2.Bigtable/",
        "/google.bigtable.v2.Bigtable/MutateRow/",
        "//google.bigtable.v2.Bigtable/MutateRow",
        "/google.bigtable.v2.Bigtable/MutateRow?x=1",
        "/google.bigtable.v2.Bigtable/%4dutateRow",
        "/%s%n%x\x7f",
    ],
    ids=lambda path: repr(path[:40]),
)
def test_path_that_is_no_method(victim, attack, path):
    with victim.attacked():
        raw = attack()
        outcome = raw.outcome(raw.call("", b"", path=path))
        assert outcome == Reset(1) or outcome.status == UNIMPLEMENTED
        goes_on(raw, victim)


def test_status_message_does_not_smuggle(victim, attack):
    """What a client wrote comes back in a message, percent-encoded."""
    with victim.attacked():
        raw = attack()
        name = "projects/p/instances/i/tables/\r\ngrpc-status: 0\r\n"
        outcome = answer(raw, "ReadRows", field(1, name.encode()))
        assert outcome.status in (INVALID, NOT_FOUND)
        assert "\n" not in outcome.text
        assert "\r" not in outcome.text
        goes_on(raw, victim)
