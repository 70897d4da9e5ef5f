"""C2 of docs/reference/conformance.md: the limits that applications rely on, at both sides."""

import base64

import pytest
from google.api_core import exceptions
from google.cloud.bigtable_admin_v2 import types as admin_types
from google.cloud.bigtable_v2 import types
from google.rpc import error_details_pb2
from grpc import StatusCode
from grpc_status import rpc_status
from harness.backups import Backups
from harness.rpc import Cell, fails_with, set_cell

KEY = b"k"
CELL = set_cell("f", b"q", b"v", 1000)
MOST_MUTATIONS = 100_000
MIB = 1 << 20


def test_c2_1_row_key(rpc, table_name):
    longest = b"k" * 4096
    rpc.mutate(table_name, longest, CELL)
    assert rpc.read(table_name) == [(longest, [Cell("f", b"q", 1000, b"v")])]
    for key in (b"", longest + b"k"):
        with fails_with(StatusCode.INVALID_ARGUMENT):
            rpc.mutate(table_name, key, CELL)
        assert rpc.mutate_rows(table_name, [(key, [CELL]), (b"a", [CELL])]) == [
            StatusCode.INVALID_ARGUMENT.value[0], 0,
        ]  # fmt: skip


def test_c2_2_family_name(rpc, table_name):
    for name in ("-_.aZ09", "x" * 64):
        rpc.modify_families(table_name, {"id": name, "create": {}})
        rpc.mutate(table_name, KEY, set_cell(name, b"q", b"v"))
    for name in ("", "x" * 65, "a:b", "a b", "ä"):
        with fails_with(StatusCode.INVALID_ARGUMENT):
            rpc.modify_families(table_name, {"id": name, "create": {}})


def test_c2_3_qualifier(rpc, table_name):
    longest = b"q" * (16 << 10)
    rpc.mutate(table_name, KEY, set_cell("f", longest, b"v", 1000))
    assert rpc.read_row(table_name, KEY) == [Cell("f", longest, 1000, b"v")]
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.mutate(table_name, KEY, set_cell("f", longest + b"q", b"v"))


def test_c2_4_cell_value(rpc, table_name):
    """In one message of 100 MiB, as HBase's client sends it."""
    largest = b"0123456789abcdef" * (100 * MIB // 16)
    rpc.mutate(table_name, KEY, set_cell("f", b"q", largest, 1000))
    (cell,) = rpc.read_row(table_name, KEY)
    assert cell.value == largest
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.mutate(table_name, KEY, set_cell("f", b"q", largest + b"x"))


# --- rows that are read: C1.17 as well ---

HUGE = [b"0", b"1", b"2"]
HUGE_VALUE = bytes(96 * MIB)


@pytest.fixture(scope="module")
def huge(rpc):
    """A table with the row "huge" of 288 MiB, after a small one."""
    name = rpc.create_table("huge-rows")
    rpc.mutate(name, b"before", CELL)
    for qualifier in HUGE:
        rpc.mutate(name, b"huge", set_cell("f", qualifier, HUGE_VALUE, 1000))
    yield name
    rpc.delete_table(name)


def test_c1_17_error_names_the_row(rpc, huge):
    with fails_with(StatusCode.FAILED_PRECONDITION) as failure:
        rpc.read(huge)
    (detail,) = rpc_status.from_call(failure.error).details
    info = error_details_pb2.ErrorInfo()
    assert detail.Unpack(info)
    assert info.reason == "LargeRowReadError"
    assert base64.b64decode(info.metadata["rowKeyBase64Encoded"]) == b"huge"


def test_c2_5_row_that_is_read(rpc, huge):
    """What counts is what the filter has to look at: two of the three cells are 201 MB."""
    two = {"family_name": "f", "start_qualifier_closed": b"0", "end_qualifier_closed": b"1"}
    cells = rpc.read_row(huge, b"huge", filter=types.RowFilter(column_range_filter=two))
    assert [(cell.qualifier, cell.value == HUGE_VALUE) for cell in cells] == [
        (b"0", True), (b"1", True),
    ]  # fmt: skip


def test_c2_6_mutations(rpc, table_name):
    most = [set_cell("f", b"q", b"", 0)] * MOST_MUTATIONS
    rpc.mutate(table_name, KEY, *most)
    assert rpc.mutate_rows(table_name, [(b"a", most[1:]), (b"b", most[:1])]) == [0, 0]
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.mutate(table_name, KEY, *most, most[0])
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.mutate_rows(table_name, [(b"a", most), (b"b", most[:1])])


def value_filter(size):
    """A filter of `size` bytes on the wire: a field's head of 4 bytes and a pattern."""
    made = types.RowFilter(value_regex_filter=b"x" * (size - 4))
    assert len(types.RowFilter.serialize(made)) == size
    return made


def nested(depth):
    made = types.RowFilter(pass_all_filter=True)
    for _ in range(depth):
        made = types.RowFilter(chain={"filters": [made, {"pass_all_filter": True}]})
    return made


def test_c2_7_filter(rpc, table_name):
    rpc.mutate(table_name, KEY, CELL)
    assert rpc.read(table_name, filter=value_filter(20480)) == []
    assert len(rpc.read(table_name, filter=nested(20))) == 1
    for too_much in (value_filter(20481), nested(21)):
        with fails_with(StatusCode.INVALID_ARGUMENT):
            rpc.read(table_name, filter=too_much)


def gc_rule(size):
    """A union of so many rules that it has `size` bytes or a few less."""
    one = admin_types.GcRule(max_num_versions=1)
    rules = [one] * ((size - 6) // 4)
    return admin_types.GcRule(union={"rules": rules})


def test_c2_8_gc_rule(rpc, table_name):
    for size, fits in ((500, True), (520, False)):
        rule = gc_rule(size)
        assert (len(admin_types.GcRule.serialize(rule)) <= 500) == fits
        change = {"id": "f", "update": admin_types.ColumnFamily(gc_rule=rule)}
        if fits:
            rpc.modify_families(table_name, change)
        else:
            with fails_with(StatusCode.INVALID_ARGUMENT):
                rpc.modify_families(table_name, change)


def test_c2_9_table_id(rpc, new_table_id):
    longest = (new_table_id() + "-" * 50)[:50]
    rpc.delete_table(rpc.create_table(longest))
    for refused in ("", longest + "x", "-starts-badly", "no/slash"):
        with fails_with(StatusCode.INVALID_ARGUMENT):
            rpc.create_table(refused)


def test_c2_10_backup_id(admin, new_instance):
    backups = Backups(admin, new_instance())
    admin.create_table(backups.instance, "t")
    longest = "b" * 50
    assert backups.create(longest, "t").name == backups.name(longest)
    for refused in ("", longest + "x", "-starts-badly", "no/slash"):
        with pytest.raises(exceptions.InvalidArgument):
            backups.create(refused, "t")
    backups.delete(longest)


def test_c2_11_large_messages(rpc, table_name):
    """120 MiB in one request, and as much in one answer's stream."""
    value = bytes(range(256)) * (60 * MIB // 256)
    rows = [(key, [set_cell("f", b"q", value, 1000)]) for key in (b"a", b"b")]
    assert rpc.mutate_rows(table_name, rows) == [0, 0]
    assert [cells[0].value == value for _, cells in rpc.read(table_name)] == [True, True]
