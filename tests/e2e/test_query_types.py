"""Each type of SQL on its way through Google's data client: parameters that come back unchanged,
and results, messages and enums of a schema bundle among them."""

import datetime

import pytest
from google.api_core.exceptions import InvalidArgument, OutOfRange
from google.cloud.bigtable.data.execute_query.metadata import SqlType
from google.cloud.bigtable_v2 import types
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.type import date_pb2
from harness.rpc import INSTANCE, set_cell

UTC = datetime.timezone.utc
FIELD = descriptor_pb2.FieldDescriptorProto
INT64_ENDS = [-(2**63), 2**63 - 1]
MOMENTS = [
    datetime.datetime(1, 1, 1, tzinfo=UTC),
    datetime.datetime(2024, 2, 29, 12, 30, 0, 123456, UTC),
    datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
]
DAYS = [datetime.date(1, 1, 1), datetime.date(1969, 12, 31), datetime.date(9999, 12, 31)]

# Values of each type; each is asked for by itself, as an array with NULLs, and as NULL.
VALUES = {
    SqlType.Bool: [True, False],
    SqlType.Int64: [0, *INT64_ENDS],
    SqlType.Float32: [0.0, 1.5, -3.4028234663852886e38, float("inf")],
    SqlType.Float64: [0.1, -1.7976931348623157e308, 5e-324, float("-inf")],
    SqlType.String: ["", "é\U0001f600", "a\x01\x7f"],
    SqlType.Bytes: [b"", b"\0\xff", bytes(range(256))],
    SqlType.Timestamp: MOMENTS,
    SqlType.Date: DAYS,
}


@pytest.fixture
def one_row(client):
    """A function that runs a query: gives its only row's values, and their types."""

    def run(text, values=None, kinds=None, **more):
        result = client.execute_query(text, "i", parameters=values, parameter_types=kinds, **more)
        (row,) = list(result)
        columns = result.metadata.columns
        return [value for _, value in row.fields], [column.column_type for column in columns]

    return run


def plain(value):
    """Dates come as messages."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, date_pb2.Date):
        return datetime.date(value.year, value.month, value.day)
    return value


@pytest.mark.parametrize("kind", VALUES, ids=lambda kind: kind.__name__)
def test_a_parameter_comes_back(one_row, kind):
    wanted = [*VALUES[kind], None, [*VALUES[kind], None], [], None]
    kinds = [kind()] * (len(VALUES[kind]) + 1) + [SqlType.Array(kind())] * 3
    names = [f"p{number}" for number in range(len(wanted))]
    got, got_kinds = one_row(
        "SELECT " + ", ".join(f"@{name}" for name in names),
        dict(zip(names, wanted, strict=True)),
        dict(zip(names, kinds, strict=True)),
    )
    assert [plain(value) for value in got] == wanted
    assert got_kinds == kinds


@pytest.mark.parametrize("kind", [SqlType.Float32, SqlType.Float64])
def test_nan_comes_back(one_row, kind):
    (got,), _ = one_row("SELECT @nan", {"nan": float("nan")}, {"nan": kind()})
    assert got != got


def test_a_struct_comes_back(rpc):
    """The client cannot send one; the API can."""
    fields = [
        {"field_name": "a", "type_": {"int64_type": {}}},
        {"field_name": "", "type_": {"array_type": {"element_type": {"bool_type": {}}}}},
    ]
    kind = types.Type(struct_type={"fields": fields})
    items = [{"int_value": 5}, {"array_value": {"values": [{}, {"bool_value": True}]}}]
    struct = types.Value(array_value={"values": items})
    typed = types.Value(array_value={"values": items}, type_=kind)
    prepared = rpc.data.prepare_query(
        types.PrepareQueryRequest(
            instance_name=INSTANCE, query="SELECT @s, @n", proto_format={},
            param_types={"s": kind, "n": kind},
        )
    )  # fmt: skip
    assert [column.type_ for column in prepared.metadata.proto_schema.columns] == [kind, kind]
    batch, _ = rpc.data.execute_query(
        types.ExecuteQueryRequest(
            instance_name=INSTANCE, prepared_query=prepared.prepared_query,
            params={"s": typed, "n": types.Value(type_=kind)},
        )
    )  # fmt: skip
    got = types.ProtoRows.deserialize(batch.results.proto_rows_batch.batch_data).values
    assert list(got) == [struct, types.Value()]


def test_a_text_with_nul_is_refused(one_row):
    """Our messages end texts there; see sql.md."""
    with pytest.raises(InvalidArgument, match="contains a NUL character"):
        one_row("SELECT @s", {"s": "a\0b"})


def test_a_result_of_each_type(one_row):
    """The query that Google's clients test themselves with."""
    values, kinds = one_row(
        "SELECT 'stringVal', b'foo', 1, CAST(1.2 AS FLOAT32), CAST(1.3 AS FLOAT64), true, "
        "TIMESTAMP_FROM_UNIX_MILLIS(1000), DATE(2024, 06, 01), STRUCT(1 as a, \"foo\" as b), "
        "[1,2,3], MAP_FROM_ARRAY([(b'k', 'v')])"
    )
    assert values[:3] == ["stringVal", b"foo", 1] and values[3] == pytest.approx(1.2)
    assert values[4:6] == [1.3, True] and values[6].timestamp() == 1
    assert plain(values[7]) == datetime.date(2024, 6, 1)
    assert (values[8]["a"], values[8]["b"]) == (1, "foo")
    assert values[9:] == [[1, 2, 3], {b"k": "v"}]
    struct = SqlType.Struct([("a", SqlType.Int64()), ("b", SqlType.String())])
    assert kinds == [
        SqlType.String(), SqlType.Bytes(), SqlType.Int64(), SqlType.Float32(), SqlType.Float64(),
        SqlType.Bool(), SqlType.Timestamp(), SqlType.Date(), struct,
        SqlType.Array(SqlType.Int64()), SqlType.Map(SqlType.Bytes(), SqlType.String()),
    ]  # fmt: skip


# --- messages and enums ---


def music():
    """`music.Album`, with a title, a genre, more genres and a player; `music.Genre`."""
    file = descriptor_pb2.FileDescriptorProto(name="m.proto", package="music", syntax="proto3")
    genre = file.enum_type.add(name="Genre")
    for number, name in enumerate(["UNKNOWN", "POP", "JAZZ"]):
        genre.value.add(name=name, number=number)
    of_genre = {"type": FIELD.TYPE_ENUM, "type_name": ".music.Genre"}
    fields = [
        FIELD(name="title", number=1, label=FIELD.LABEL_OPTIONAL, type=FIELD.TYPE_STRING),
        FIELD(name="genre", number=2, label=FIELD.LABEL_OPTIONAL, **of_genre),
        FIELD(name="more", number=3, label=FIELD.LABEL_REPEATED, **of_genre),
        FIELD(name="player", number=4, label=FIELD.LABEL_OPTIONAL, type=FIELD.TYPE_MESSAGE,
              type_name=".music.Player"),
    ]  # fmt: skip
    file.message_type.add(name="Album").field.extend(fields)
    name = FIELD(name="name", number=1, label=FIELD.LABEL_OPTIONAL, type=FIELD.TYPE_STRING)
    file.message_type.add(name="Player").field.append(name)
    return file


@pytest.fixture(scope="module")
def album():
    """The class of the message."""
    pool = descriptor_pool.DescriptorPool()
    pool.Add(music())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("music.Album"))


@pytest.fixture(scope="module")
def genre(album):
    return album.DESCRIPTOR.fields_by_name["genre"].enum_type


@pytest.fixture
def albums(rpc, admin, make_table, album):
    """The id of a table with the bundle b; f:x of its row a is an album, that of row z is none."""
    name = make_table()
    descriptors = descriptor_pb2.FileDescriptorSet(file=[music()]).SerializeToString()
    admin.tables.create_schema_bundle(
        parent=name, schema_bundle_id="b",
        schema_bundle={"proto_schema": {"proto_descriptors": descriptors}},
    ).result()  # fmt: skip
    message = album(title="Lover", genre=2, more=[1, 2], player={"name": "é"})
    rpc.mutate(name, b"a", set_cell("f", b"x", message.SerializeToString(), 1000))
    rpc.mutate(name, b"z", set_cell("f", b"x", b"\xff", 1000))
    return name.rsplit("/", 1)[-1]


def test_messages_and_enums(one_row, albums, album, genre):
    classes = {"a": album(), "g": EnumTypeWrapper(genre), "p": album().player}
    values, types_ = one_row(
        "SELECT a, a.genre AS g, a.player AS p, a.title, a.more, a.player.name, "
        "CAST(a.genre AS STRING), CAST(NULL AS `b.music.Album`), CAST('POP' AS b.music.Genre) "
        f"FROM (SELECT CAST(f['x'] AS `b.music.Album`) AS a FROM `{albums}` WHERE _key = 'a')",
        column_info=classes,
    )
    assert values[0] == album(title="Lover", genre=2, more=[1, 2], player={"name": "é"})
    assert values[1:3] == ["JAZZ", values[0].player]
    assert values[3:] == ["Lover", [1, 2], "é", "JAZZ", None, 1]
    assert [type(kind) for kind in types_] == [
        SqlType.Proto, SqlType.Enum, SqlType.Proto, SqlType.String, SqlType.Array, SqlType.String,
        SqlType.String, SqlType.Proto, SqlType.Enum,
    ]  # fmt: skip
    assert isinstance(types_[4].element_type, SqlType.Enum)


def test_messages_by_themselves(one_row, albums, album):
    """Without classes the client gives bytes and numbers."""
    message = album(title="Lover")
    (lover, jazz), _ = one_row(
        "SELECT CAST(b'\\012\\005Lover' AS `b.music.Album`), CAST('JAZZ' AS `b.music.Genre`) "
        f"FROM `{albums}` LIMIT 1"
    )
    assert (lover, jazz) == (message.SerializeToString(), 2)


ERRORS = {
    "CAST(f['x'] AS `b.music.Nosuch`)": (InvalidArgument, "Type not found"),
    "CAST(f['x'] AS `c.music.Album`)": (InvalidArgument, "Type not found"),
    "CAST(f['x'] AS `b.music.Album`).nosuch": (InvalidArgument, "nosuch"),
    "CAST('ROCK' AS `b.music.Genre`)": (InvalidArgument, "Could not cast literal"),
    "CAST(CAST(_key AS STRING) AS `b.music.Genre`)": (OutOfRange, "cast of string 'z' to enum"),
    "CAST(f['x'] AS `b.music.Album`).title": (OutOfRange, "orrupt"),
}


@pytest.mark.parametrize(("expression", "error"), ERRORS.items(), ids=ERRORS)
def test_what_is_no_message(one_row, albums, expression, error):
    with pytest.raises(error[0], match=error[1]):
        one_row(f"SELECT {expression} FROM `{albums}` WHERE _key = 'z'")
