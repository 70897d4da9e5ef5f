"""value_type on families: what is kept and shown, what is refused, what may change."""

import pytest
from google.cloud.bigtable_admin_v2 import types as admin_types
from google.protobuf import field_mask_pb2
from grpc import StatusCode
from harness.rpc import ADMIN_SECONDS, INSTANCE, fails_with, set_cell

SCHEMA_VIEW = 2
IMMUTABLE = "Immutable fields 'value_type.aggregate_type' cannot be updated"

RAW_BYTES = {"bytes_type": {"encoding": {"raw": {}}}}
TEXT = {"string_type": {"encoding": {"utf8_bytes": {}}}}
INT64 = {"int64_type": {"encoding": {"big_endian_bytes": {}}}}
ORDERED_INT64 = {"int64_type": {"encoding": {"ordered_code_bytes": {}}}}
TWO_FIELDS = [{"field_name": "a", "type_": TEXT}, {"type_": INT64}]


def struct(fields, **encoding):
    return {"struct_type": {"fields": fields, "encoding": encoding}}


def aggregate(aggregator, input_type=None, **fields):
    if input_type is not None:
        fields["input_type"] = input_type
    return {"aggregate_type": {aggregator: {}, **fields}}


def family(value_type):
    return admin_types.ColumnFamily(value_type=value_type)


def create(rpc, table_id, **value_types):
    families = {name: family(value_type) for name, value_type in value_types.items()}
    request = admin_types.CreateTableRequest(
        parent=INSTANCE, table_id=table_id, table={"column_families": families}
    )
    return rpc.admin.create_table(request, timeout=ADMIN_SECONDS)


def type_of(rpc, table, name):
    return rpc.get_table(table, SCHEMA_VIEW).column_families[name].value_type


def update(rpc, table, name, value_type, paths=("value_type",)):
    modification = admin_types.ModifyColumnFamiliesRequest.Modification(
        id=name,
        update=family(value_type),
        update_mask=field_mask_pb2.FieldMask(paths=list(paths)),
    )
    return rpc.modify_families(table, modification)


@pytest.fixture
def typed(rpc, new_table_id):
    """A function that makes a table with a family for each value_type given by name."""
    names = []

    def make(**value_types):
        names.append(create(rpc, new_table_id(), **value_types).name)
        return names[-1]

    yield make
    for name in names:
        rpc.delete_table(name)


# --- types that are kept as they were given ---

KEPT = {
    "raw bytes": RAW_BYTES,
    "bytes that say no encoding": {"bytes_type": {}},
    "string": TEXT,
    "string, the deprecated way": {"string_type": {"encoding": {"utf8_raw": {}}}},
    "int64": INT64,
    "int64, deprecated bytes_type": {
        "int64_type": {"encoding": {"big_endian_bytes": {"bytes_type": {}}}}
    },
    "ordered int64": ORDERED_INT64,
    "bool": {"bool_type": {}},
    "float32": {"float32_type": {}},
    "float64": {"float64_type": {}},
    "date": {"date_type": {}},
    "timestamp": {
        "timestamp_type": {"encoding": {"unix_micros_int64": {"ordered_code_bytes": {}}}}
    },
    "singleton struct": struct([{"type_": TEXT}], singleton={}),
    "delimited struct": struct(TWO_FIELDS, delimited_bytes={"delimiter": b"#" * 50}),
    "ordered struct": struct(TWO_FIELDS, ordered_code_bytes={}),
    "empty struct": struct([], ordered_code_bytes={}),
    "array": {"array_type": {"element_type": INT64}},
    "array of structs": {"array_type": {"element_type": struct(TWO_FIELDS, ordered_code_bytes={})}},
    "map": {"map_type": {"key_type": TEXT, "value_type": {"array_type": {"element_type": TEXT}}}},
    "map with bytes as keys": {"map_type": {"key_type": RAW_BYTES, "value_type": INT64}},
}


@pytest.mark.parametrize("value_type", KEPT.values(), ids=KEPT)
def test_types_are_kept(rpc, typed, value_type):
    table = typed(f=value_type)
    assert type_of(rpc, table, "f") == admin_types.Type(value_type)


def test_types_outlive_the_server(fresh_server, connect):
    server = fresh_server()
    given = {f"f{i}": value_type for i, value_type in enumerate(KEPT.values())}
    given["hll"] = aggregate("hllpp_unique_count", TEXT)
    table = create(connect(server.host), "t", **given)
    server.kill()
    server.start()
    rpc = connect(server.host)
    assert rpc.get_table(table.name, SCHEMA_VIEW).column_families == table.column_families


def test_values_of_plain_types_are_not_looked_at(rpc, typed):
    table = typed(text=TEXT, number=INT64)
    not_utf8, not_8_bytes = b"\xff\xfe", b"abc"
    rpc.mutate(table, b"k", set_cell("text", b"q", not_utf8), set_cell("number", b"q", not_8_bytes))
    assert [cell.value for cell in rpc.read_row(table, b"k")] == [not_8_bytes, not_utf8]


# --- types that make no sense ---

NOT_TYPES = {
    "array of arrays": (
        {"array_type": {"element_type": {"array_type": {"element_type": TEXT}}}},
        "The elements of an ARRAY must not be arrays",
    ),
    "array of nothing": ({"array_type": {}}, "Missing type of the elements of an ARRAY"),
    "map with floats as keys": (
        {"map_type": {"key_type": {"float64_type": {}}, "value_type": TEXT}},
        "The keys of a MAP must be BYTES, STRING or INT64",
    ),
    "map without keys": ({"map_type": {"value_type": TEXT}}, "The keys of a MAP must be"),
    "map to nothing": ({"map_type": {"key_type": TEXT}}, "Missing type of the values of a MAP"),
    "struct without encoding": (struct(TWO_FIELDS), "Missing encoding for STRUCT"),
    "struct of nothing": (
        struct([{"field_name": "a"}], ordered_code_bytes={}),
        "Missing type of the fields of a STRUCT",
    ),
    "singleton of two": (
        struct(TWO_FIELDS, singleton={}),
        "A STRUCT encoded as a singleton must have one field, not 2",
    ),
    "no delimiter": (
        struct(TWO_FIELDS, delimited_bytes={}),
        "The delimiter of a STRUCT must have 1 to 50 bytes, not 0",
    ),
    "long delimiter": (
        struct(TWO_FIELDS, delimited_bytes={"delimiter": b"#" * 51}),
        "The delimiter of a STRUCT must have 1 to 50 bytes, not 51",
    ),
    "aggregate in an array": (
        {"array_type": {"element_type": aggregate("sum")}},
        "An aggregate cannot be the type of the elements of an ARRAY",
    ),
    "aggregate of nothing": ({"aggregate_type": {}}, "An aggregate type must name its aggregator"),
    "sum of strings": (aggregate("sum", TEXT), "The input_type of a sum, min or max aggregate"),
    "max of ordered numbers": (
        aggregate("max_", ORDERED_INT64),
        "must be Int64, encoded as big_endian_bytes",
    ),
    "count of floats": (
        aggregate("hllpp_unique_count", {"float64_type": {}}),
        "The input_type of an hllpp_unique_count aggregate must be Int64, Bytes or String",
    ),
}


@pytest.mark.parametrize(("value_type", "words"), NOT_TYPES.values(), ids=NOT_TYPES)
def test_what_is_no_type_is_refused(rpc, typed, new_table_id, value_type, words):
    with fails_with(StatusCode.INVALID_ARGUMENT, words):
        create(rpc, new_table_id(), f=value_type)
    table = typed(f=TEXT)
    with fails_with(StatusCode.INVALID_ARGUMENT, words):
        update(rpc, table, "f", value_type)
    assert type_of(rpc, table, "f") == admin_types.Type(TEXT)


@pytest.mark.parametrize("kind", ["proto_type", "enum_type"])
def test_types_of_schema_bundles_are_not_there_yet(rpc, new_table_id, kind):
    with fails_with(StatusCode.UNIMPLEMENTED, "schema bundles"):
        create(rpc, new_table_id(), f={kind: {"schema_bundle_id": "b"}})


# --- aggregates ---

STATES = {
    "sum": ("sum", INT64, INT64, INT64),
    "min": ("min_", INT64, INT64, INT64),
    "max without a type": ("max_", None, INT64, INT64),
    "count of numbers": ("hllpp_unique_count", INT64, INT64, RAW_BYTES),
    "count of strings": ("hllpp_unique_count", TEXT, TEXT, RAW_BYTES),
    "count of raw values": ("hllpp_unique_count", None, None, RAW_BYTES),
}


@pytest.mark.parametrize(("aggregator", "given", "shown", "state"), STATES.values(), ids=STATES)
def test_the_states_type_is_filled_in(rpc, typed, aggregator, given, shown, state):
    table = typed(f=aggregate(aggregator, given))
    expected = admin_types.Type(aggregate(aggregator, shown, state_type=state))
    assert type_of(rpc, table, "f") == expected


def test_the_states_type_is_not_for_clients_to_say(rpc, typed):
    table = typed(f=aggregate("sum", INT64, state_type=TEXT))
    assert type_of(rpc, table, "f") == admin_types.Type(aggregate("sum", INT64, state_type=INT64))


# --- what may change ---


def test_plain_types_change(rpc, typed):
    table = typed(f=RAW_BYTES, g=None)
    rpc.mutate(table, b"k", set_cell("f", b"q", b"v", 1000))
    for value_type in [TEXT, INT64, {}]:
        changed = update(rpc, table, "f", value_type)
        assert changed.column_families["f"].value_type == admin_types.Type(value_type)
        assert type_of(rpc, table, "f") == admin_types.Type(value_type)
    update(rpc, table, "g", TEXT)
    assert type_of(rpc, table, "g") == admin_types.Type(TEXT)
    assert [cell.value for cell in rpc.read_row(table, b"k")] == [b"v"]


def test_a_type_changes_only_where_the_mask_says_so(rpc, typed):
    table = typed(f=TEXT)
    update(rpc, table, "f", INT64, paths=["gc_rule"])
    assert type_of(rpc, table, "f") == admin_types.Type(TEXT)


COUNT = aggregate("hllpp_unique_count", INT64)
FORBIDDEN = {
    "plain to aggregate": (TEXT, COUNT),
    "untyped to aggregate": ({}, COUNT),
    "aggregate to plain": (COUNT, TEXT),
    "aggregate to untyped": (COUNT, {}),
    "to another aggregator": (COUNT, aggregate("max_", INT64)),
    "to another input": (COUNT, aggregate("hllpp_unique_count", TEXT)),
    "to raw input": (COUNT, aggregate("hllpp_unique_count")),
}


@pytest.mark.parametrize(("before", "after"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_aggregates_stay_what_they_are(rpc, typed, before, after):
    table = typed(f=before)
    shown = type_of(rpc, table, "f")
    with fails_with(StatusCode.INVALID_ARGUMENT, IMMUTABLE):
        update(rpc, table, "f", after)
    assert type_of(rpc, table, "f") == shown


def test_an_aggregate_may_be_said_again(rpc, typed):
    table = typed(f=COUNT)
    shown = type_of(rpc, table, "f")
    update(rpc, table, "f", COUNT)
    update(rpc, table, "f", shown)
    assert type_of(rpc, table, "f") == shown


def test_a_family_made_anew_may_have_another_type(rpc, typed):
    table = typed(f=COUNT, g=TEXT)
    modification = admin_types.ModifyColumnFamiliesRequest.Modification
    rpc.modify_families(
        table,
        modification(id="f", drop=True),
        modification(id="f", create=family(aggregate("sum", INT64))),
    )
    assert "sum" in type_of(rpc, table, "f").aggregate_type
