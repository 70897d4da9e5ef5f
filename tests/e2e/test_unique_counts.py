"""Families of hllpp_unique_count: cells that are sketches, byte for byte as Zetasketch has them.

The expected states are the library's own (tests/data/hll-vectors.json)."""

import hashlib
import json
import re
import time

import pytest
from google.api_core.exceptions import OutOfRange
from google.cloud.bigtable_v2 import types
from grpc import StatusCode
from harness.counts import add, create_counts, merge, state_in
from harness.patience import PATIENCE_SECONDS
from harness.rpc import delete_row, fails_with, set_cell
from harness.server import ROOT

KEY = b"k"
INVALID = StatusCode.INVALID_ARGUMENT.value[0]
VECTORS = json.loads((ROOT / "tests/data/hll-vectors.json").read_text())


@pytest.fixture
def counts(rpc, new_table_id):
    name = create_counts(rpc, new_table_id())
    yield name
    rpc.delete_table(name)


def vector(section, n):
    """The library's state of the numbers 1 to n."""
    (found,) = [
        each for each in VECTORS[section] if (each["p"], each["sp"], each["n"]) == (15, 20, n)
    ]
    return found


def assert_vector(state, section, n):
    assert hashlib.sha256(state).hexdigest() == vector(section, n)["sha256"]


# --- adding ---


@pytest.mark.parametrize("n", [1, 2, 10, 100])
def test_each_add_by_itself(rpc, counts, n):
    for number in range(1, n + 1):
        rpc.mutate(counts, KEY, add("ints", number))
    assert_vector(state_in(rpc, counts, KEY, "ints"), "int64_1_to_n", n)


def test_many_adds_in_one_request(rpc, counts):
    rpc.mutate(counts, KEY, *(add("ints", number) for number in range(1, 10001)))
    assert_vector(state_in(rpc, counts, KEY, "ints"), "int64_1_to_n", 10000)
    rpc.mutate(counts, KEY, *(add("ints", number) for number in range(10001, 30001)))
    assert_vector(state_in(rpc, counts, KEY, "ints"), "int64_1_to_n", 30000)


def test_adds_in_many_entries(rpc, counts):
    entries = [(KEY, [add("ints", number)]) for number in range(1, 1001)]
    assert rpc.mutate_rows(counts, entries) == [0] * 1000
    assert_vector(state_in(rpc, counts, KEY, "ints"), "int64_1_to_n", 1000)


def test_strings_and_bytes(rpc, counts):
    decimals = [str(number) for number in range(1, 1001)]
    rpc.mutate(counts, KEY, *(add("strings", text) for text in decimals))
    rpc.mutate(counts, KEY, *(add("bytes", text.encode()) for text in decimals))
    rpc.mutate(counts, KEY, *(add("raw", {"raw_value": text.encode()}) for text in decimals))
    for name in ["strings", "bytes", "raw"]:
        assert_vector(state_in(rpc, counts, KEY, name), "bytes_ascii_decimal_1_to_n", 1000)
    assert state_in(rpc, counts, KEY, "strings") == state_in(rpc, counts, KEY, "raw")


def test_nothing_added_is_a_value_too(rpc, counts):
    for name in ["ints", "strings"]:
        rpc.mutate(counts, KEY, add(name, {}))
    rpc.mutate(counts, b"zero", add("ints", 0))
    rpc.mutate(counts, b"zero", add("strings", ""))
    assert [cell.value for cell in rpc.read_row(counts, KEY)] == [
        cell.value for cell in rpc.read_row(counts, b"zero")
    ]


def test_a_deletion_starts_anew(rpc, counts):
    rpc.mutate(counts, KEY, *(add("ints", number) for number in range(50, 100)))
    rpc.mutate(counts, KEY, delete_row(), add("ints", 1))
    assert_vector(state_in(rpc, counts, KEY, "ints"), "int64_1_to_n", 1)


def test_states_outlive_the_server(fresh_server, connect):
    server = fresh_server()
    name = create_counts(connect(server.host), "t")
    connect(server.host).mutate(name, KEY, *(add("ints", number) for number in range(1, 6)))
    server.kill()
    server.start()
    rpc = connect(server.host)
    rpc.mutate(name, KEY, *(add("ints", number) for number in range(3, 11)))
    state = state_in(rpc, name, KEY, "ints")
    rpc.mutate(name, b"whole", *(add("ints", number) for number in [*range(1, 6), *range(3, 11)]))
    assert state == rpc.read_row(name, b"whole")[0].value


def overflow_rows(server):
    _, metrics = server.get("/metrics")
    (count,) = re.findall(r"^trestle_rows_spilled_total (\d+)$", metrics, re.M)
    return int(count)


def test_spilled_states_merge_with_what_is_added(fresh_server, connect):
    server = fresh_server("--overflow-threshold", "256")
    rpc = connect(server.host)
    name = create_counts(rpc, "t")
    qualifiers = [b"%02d" % i for i in range(20)]
    for number in range(1, 101):
        rpc.mutate(name, KEY, *(add("ints", number, qualifier) for qualifier in qualifiers))
        if number % 10 == 0:
            rpc.read_row(name, KEY)
    until = time.monotonic() + PATIENCE_SECONDS
    while overflow_rows(server) == 0 and time.monotonic() < until:
        rpc.read_row(name, KEY)
    assert overflow_rows(server) > 0
    cells = rpc.read_row(name, KEY)
    assert [cell.qualifier for cell in cells] == qualifiers
    for cell in cells:
        assert_vector(cell.value, "int64_1_to_n", 100)


# --- merging ---


def test_merging_the_librarys_states(rpc, counts):
    tried = 0
    for each in VECTORS["merges"]:
        if "left_hex" not in each or "right_hex" not in each or each["value_type"] != 8:
            continue
        for order in [["left_hex", "right_hex"], ["right_hex", "left_hex"]]:
            rpc.mutate(counts, KEY, delete_row())
            for side in order:
                rpc.mutate(counts, KEY, merge("ints", bytes.fromhex(each[side])))
            merged = state_in(rpc, counts, KEY, "ints")
            assert hashlib.sha256(merged).hexdigest() == each["sha256"], each["desc"]
        tried += 1
    assert tried > 3


def test_a_merged_state_is_read_as_it_was(rpc, counts):
    state = bytes.fromhex(vector("int64_1_to_n", 10)["hex"])
    rpc.mutate(counts, KEY, merge("ints", state))
    assert state_in(rpc, counts, KEY, "ints") == state
    rpc.mutate(counts, KEY, merge("ints", b""))
    assert state_in(rpc, counts, KEY, "ints") == state


def test_a_state_is_copied_by_deleting_and_merging(rpc, counts):
    rpc.mutate(counts, b"other", *(add("ints", number) for number in range(1, 11)))
    rpc.mutate(counts, KEY, *(add("ints", number) for number in range(1000, 2000)))
    state = rpc.read_row(counts, b"other")[0].value
    rpc.mutate(counts, KEY, delete_row(), merge("ints", state))
    assert state_in(rpc, counts, KEY, "ints") == state


# --- what is refused ---

OF_ONE = {
    "int64": bytes.fromhex("087010011802200882070b1001180f2014320396a32e"),
    "string": bytes.fromhex("087010011802200b82070b1001180f20143203e78927"),
}
MISFITS = {
    "a cell set in a count": (set_cell("ints", b"q", OF_ONE["int64"], 1000), "type mismatch"),
    "a number merged": (merge("ints", bytes(8)), "not a whole protobuf message"),
    "a cut sketch": (merge("ints", OF_ONE["int64"][:-1]), "not a whole protobuf message"),
    "a sketch of strings": (
        merge("ints", OF_ONE["string"]),
        "Aggregator of type [LONG] is incompatible with aggregator of type [STRING, BYTES]",
    ),
    "a sketch of numbers": (merge("strings", OF_ONE["int64"]), "is incompatible with"),
    "a sketch merged into a sum": (merge("sum", OF_ONE["int64"]), "type mismatch"),
    "a sketch merged into a plain family": (merge("f", OF_ONE["int64"]), "type mismatch"),
}


@pytest.mark.parametrize(("misfit", "words"), MISFITS.values(), ids=MISFITS)
def test_what_does_not_fit_the_type(rpc, counts, misfit, words):
    with fails_with(StatusCode.INVALID_ARGUMENT, f"Error while mutating the row 'k' ({counts}) : "):
        rpc.mutate(counts, KEY, misfit)
    with fails_with(StatusCode.INVALID_ARGUMENT, words):
        rpc.mutate(counts, KEY, misfit)
    fine = [set_cell("f", b"q", b"v")]
    codes = rpc.mutate_rows(counts, [(b"a", fine), (b"b", [misfit]), (b"c", fine)])
    assert codes == [INVALID] * 3
    assert rpc.read(counts) == []


WRONG_KINDS = {
    "bytes for int64": (add("ints", b"\0" * 8), "`int_value`"),
    "raw for int64": (add("ints", {"raw_value": b"\0" * 8}), "`int_value`"),
    "int for string": (add("strings", 1), "`string_value`"),
    "bytes for string": (add("strings", b"a"), "`string_value`"),
    "string for bytes": (add("bytes", "a"), "`bytes_value` or `raw_value`"),
    "int for raw": (add("raw", 1), "`bytes_value` or `raw_value`"),
}


@pytest.mark.parametrize(("wrong", "wanted"), WRONG_KINDS.values(), ids=WRONG_KINDS)
def test_input_of_the_wrong_kind_fails_the_call(rpc, counts, wrong, wanted):
    words = f"Error in element #0 : Error in field 'input' : must use {wanted}"
    fine = [set_cell("f", b"q", b"v")]
    with fails_with(StatusCode.INVALID_ARGUMENT, words):
        rpc.mutate(counts, KEY, wrong)
    with fails_with(StatusCode.INVALID_ARGUMENT, words):
        rpc.mutate_rows(counts, [(b"a", fine), (b"b", [wrong])])
    with fails_with(StatusCode.INVALID_ARGUMENT, words):
        rpc.check_and_mutate(counts, KEY, true=[wrong], false=fine)
    assert rpc.read(counts) == []


def test_read_modify_write_is_refused(rpc, counts):
    rule = types.ReadModifyWriteRule(
        family_name="ints", column_qualifier=b"q", append_value=b"x"
    )
    with fails_with(StatusCode.INVALID_ARGUMENT, "Column family type mismatch"):
        rpc.read_modify_write(counts, KEY, rule)


# --- filters see the sketch's bytes ---


def test_filters_see_the_state(rpc, counts):
    rpc.mutate(counts, KEY, add("ints", 1))
    state = OF_ONE["int64"]
    matching = {
        "value_regex_filter": rb"\x08p\C*",
        "value_range_filter": {"start_value_closed": state, "end_value_closed": state},
    }
    for name, filter_value in matching.items():
        assert state_in(rpc, counts, KEY, "ints", filter={name: filter_value}) == state
    above = {"value_range_filter": {"start_value_open": state}}
    assert rpc.read_row(counts, KEY, filter=above) == []
    assert state_in(rpc, counts, KEY, "ints", filter={"strip_value_transformer": True}) == b""


# --- SQL sees them, too ---


def query(client, table, columns, rest=""):
    name = table.rsplit("/", 1)[-1]
    (row,) = client.execute_query(f"SELECT {columns} FROM `{name}` {rest}", "i")
    return [value for _, value in row.fields]


def test_sql_counts_what_cells_hold(client, rpc, counts):
    rpc.mutate(counts, b"a", *(add("ints", number) for number in range(1, 101)))
    rpc.mutate(counts, b"b", *(add("ints", number) for number in range(51, 151)))
    rpc.mutate(counts, b"b", *(add("strings", text) for text in ["x", "y", "x"]))
    both = "HLL_COUNT.MERGE(ints['q']), HLL_COUNT.EXTRACT(HLL_COUNT.MERGE_PARTIAL(ints['q']))"
    assert query(client, counts, f"{both}, HLL_COUNT.MERGE(strings['q'])") == [150, 150, 2]
    extract = "HLL_COUNT.EXTRACT(ints['q']), HLL_COUNT.EXTRACT(strings['q'])"
    assert query(client, counts, extract, "WHERE _key = 'a'") == [100, 0]
    assert query(client, counts, "HLL_COUNT.MERGE(ints['no'])") == [0]
    assert query(client, counts, "HLL_COUNT.MERGE_PARTIAL(ints['no'])") == [None]


@pytest.mark.parametrize("n", [1, 10, 1000, 20000])
def test_sql_makes_the_librarys_sketches(client, rpc, counts, n):
    rpc.mutate(counts, KEY, set_cell("f", b"q", b"a row to begin with"))
    numbers = f", UNNEST(GENERATE_ARRAY(1, {n})) AS x"
    (state,) = query(client, counts, "HLL_COUNT.INIT(x)", numbers)
    assert_vector(state, "int64_1_to_n", n)
    rpc.mutate(counts, KEY, merge("ints", state))
    assert state_in(rpc, counts, KEY, "ints", filter={"family_name_regex_filter": "ints"}) == state


def test_sql_merges_as_cells_do(client, rpc, counts):
    for key, numbers in (b"a", range(1, 2001)), (b"b", range(2001, 5001)):
        rpc.mutate(counts, key, *(add("ints", number) for number in numbers))
    (state,) = query(client, counts, "HLL_COUNT.MERGE_PARTIAL(ints['q'])")
    assert hashlib.sha256(state).hexdigest() == vector("int64_1_to_n", 5000)["sha256"]


def test_sql_refuses_what_is_no_sketch(client, rpc, counts):
    rpc.mutate(counts, KEY, set_cell("f", b"q", b"xyz"))
    with pytest.raises(OutOfRange, match="Invalid or incompatible sketch in HLL_COUNT.MERGE"):
        query(client, counts, "HLL_COUNT.MERGE(f['q'])")
    rpc.mutate(counts, KEY, add("ints", 1), add("strings", "a"))
    with pytest.raises(OutOfRange, match="Invalid or incompatible sketch in HLL_COUNT.MERGE"):
        query(client, counts, "HLL_COUNT.MERGE(s)", ", UNNEST([ints['q'], strings['q']]) AS s")
