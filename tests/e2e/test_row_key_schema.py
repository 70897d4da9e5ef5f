"""Structured row keys: a table's row_key_schema by Google's client, and SQL over such keys."""

import datetime
import json
import urllib.request

import pytest
from google.api_core.exceptions import InvalidArgument
from google.cloud.bigtable_admin_v2 import types
from grpc import StatusCode
from harness.admin import mask
from harness.backups import Backups
from harness.rpc import INSTANCE, fails_with, set_cell
from harness.sql import execute, prepare, values_of

VIEW = types.Table.View
BYTES = {"bytes_type": {"encoding": {"raw": {}}}}
STRING = {"string_type": {"encoding": {"utf8_bytes": {}}}}
BIG_ENDIAN = {"int64_type": {"encoding": {"big_endian_bytes": {}}}}
ORDERED = {"int64_type": {"encoding": {"ordered_code_bytes": {}}}}
TIME = {"timestamp_type": {"encoding": {"unix_micros_int64": {"big_endian_bytes": {}}}}}
ORDERED_TIME = {"timestamp_type": {"encoding": {"unix_micros_int64": {"ordered_code_bytes": {}}}}}
HASH = {"delimited_bytes": {"delimiter": b"#"}}
ORDERED_CODE = {"ordered_code_bytes": {}}
SINGLETON = {"singleton": {}}


def schema(encoding, *fields):
    """Of (name, type) pairs."""
    return types.Type.Struct(
        fields=[{"field_name": name, "type_": kind} for name, kind in fields], encoding=encoding
    )


SALES = schema(HASH, ("user_id", BYTES), ("purchase_date", STRING), ("order_number", STRING))
# The example of Google's page on structured row keys.
PURCHASES = [
    (b"user1#2025-05-20#abcd1233", b"phone", b"iPhone16_pro_max"),
    (b"user1#2025-05-20#abcd1235", b"shoes", b"nike_hyperdunk"),
    (b"user2#2025-05-24#defg456", b"headphones", b"sony_wh_1000mx5"),
]


def sell(rpc, name):
    for key, kind, product in PURCHASES:
        cells = (b"product_type", kind), (b"product_name", product)
        rpc.mutate(name, key, *(set_cell("product", q, value, 1000) for q, value in cells))


@pytest.fixture
def make(admin, rpc, new_table_id):
    """A function that makes a table with a schema, and rows with these keys: gives its id."""
    names = []

    def run(row_key_schema, keys=(), families=("f",)):
        table_id = new_table_id()
        fields = {} if row_key_schema is None else {"row_key_schema": row_key_schema}
        names.append(admin.create_table(INSTANCE, table_id, families, **fields))
        for key in keys:
            rpc.mutate(names[-1], key, set_cell("f", b"q", b"v", 1000))
        return table_id

    yield run
    for name in names:
        admin.tables.delete_table(name=name)


@pytest.fixture
def query(client):
    def run(text, **parameters):
        rows = client.execute_query(text, "i", parameters=parameters)
        return [dict(row.fields) for row in rows]

    return run


def full(table_id):
    return f"{INSTANCE}/tables/{table_id}"


def update(admin, table_id, row_key_schema=None, paths=("row_key_schema",), **fields):
    table = {"name": full(table_id)}
    if row_key_schema is not None:
        table["row_key_schema"] = row_key_schema
    request = {"table": table, "update_mask": mask(*paths), **fields}
    return admin.tables.update_table(request=request).result()


def kept(admin, table_id, view=VIEW.SCHEMA_VIEW):
    got = admin.tables.get_table(request={"name": full(table_id), "view": view})
    return got.row_key_schema if "row_key_schema" in got else None


# --- administration ---


def test_a_table_is_made_with_a_schema(admin, make):
    table = make(SALES)
    assert kept(admin, table) == kept(admin, table, VIEW.FULL) == SALES
    assert kept(admin, table, VIEW.NAME_ONLY) is None
    listed = admin.tables.list_tables(request={"parent": INSTANCE, "view": VIEW.SCHEMA_VIEW})
    assert {each.name: each for each in listed}[full(table)].row_key_schema == SALES


def test_a_schema_is_set_and_cleared_but_not_changed(admin, make):
    table = make(None)
    assert kept(admin, table) is None
    assert update(admin, table, SALES).row_key_schema == SALES
    update(admin, table, SALES)  # the same again
    other = schema(HASH, ("user", BYTES))
    in_place = "Row key schema in-place modification is not allowed."
    with pytest.raises(InvalidArgument, match=in_place):
        update(admin, table, other, ignore_warnings=True)
    with pytest.raises(InvalidArgument, match=in_place):
        update(admin, table, other, paths=["row_key_schema.fields"])
    with pytest.raises(InvalidArgument, match="cannot be cleared without setting ignore_warnings"):
        update(admin, table)
    assert kept(admin, table) == SALES
    update(admin, table, paths=["deletion_protection"])
    assert kept(admin, table) == SALES
    assert update(admin, table, ignore_warnings=True).row_key_schema == types.Type.Struct()
    assert kept(admin, table) is None
    update(admin, table)  # nothing to clear
    assert update(admin, table, other).row_key_schema == other


def test_a_schema_may_have_no_fields(admin, make, query):
    table = make(schema(ORDERED_CODE), [b"k"])
    assert kept(admin, table) == schema(ORDERED_CODE)
    assert query(f"SELECT * FROM `{table}`") == [{"_key": b"k", "f": {b"q": b"v"}}]


BAD = {
    "Missing encoding for STRUCT": schema({}, ("a", BYTES)),
    "Missing encoding for BYTES": schema(HASH, ("a", {"bytes_type": {}})),
    "Missing encoding for STRING": schema(HASH, ("a", {"string_type": {}})),
    "Missing encoding for INT64": schema(HASH, ("a", {"int64_type": {"encoding": {}}})),
    "Missing encoding for TIMESTAMP": schema(HASH, ("a", {"timestamp_type": {}})),
    "must be BYTES, STRING, INT64 or TIMESTAMP": schema(HASH, ("a", {"date_type": {}})),
    "'b' of the row key schema must be BYTES": schema(
        HASH, ("a", BYTES), ("b", {"array_type": {"element_type": BYTES}})
    ),
    "'c' of the row key schema must be BYTES": schema(HASH, ("c", {})),
    "Field 2 of the row key schema must have a name": schema(HASH, ("a", BYTES), ("", BYTES)),
    "'A' of the row key schema is there twice": schema(HASH, ("a", BYTES), ("A", BYTES)),
    "'_key' of the row key schema has a reserved name": schema(HASH, ("_key", BYTES)),
    "'_Timestamp' of the row key schema has a reserved": schema(HASH, ("_Timestamp", BYTES)),
    "'f' of the row key schema has the name of a column": schema(HASH, ("f", BYTES)),
    "must have one field, not 2": schema(SINGLETON, ("a", BYTES), ("b", BYTES)),
    "must have 1 to 50 bytes, not 0": schema({"delimited_bytes": {}}, ("a", BYTES)),
    "must have 1 to 50 bytes, not 51": schema(
        {"delimited_bytes": {"delimiter": b"x" * 51}}, ("a", BYTES)
    ),
}


@pytest.mark.parametrize("message", BAD)
def test_schemas_that_are_none(admin, make, message):
    table = make(None)
    with pytest.raises(InvalidArgument, match=message):
        update(admin, table, BAD[message])
    with pytest.raises(InvalidArgument, match=message):
        make(BAD[message])
    assert kept(admin, table) is None


def test_a_family_does_not_take_the_name_of_a_field(rpc, make):
    table = make(SALES)
    taken = {"id": "user_id", "create": {}}
    with fails_with(StatusCode.INVALID_ARGUMENT, "has the name of a column family"):
        rpc.modify_families(full(table), taken)
    rpc.modify_families(full(table), {"id": "user", "create": {}})
    assert sorted(rpc.get_table(full(table)).column_families) == ["f", "user"]


def test_it_survives_a_kill(fresh_server, administer):
    server = fresh_server()
    table = administer(server.host).create_table(INSTANCE, "t", row_key_schema=SALES)
    server.kill()
    server.start()
    admin = administer(server.host)
    assert kept(admin, "t") == SALES
    admin.tables.delete_table(name=table)
    assert admin.tables.undelete_table(name=table).result().row_key_schema == SALES


def test_a_restored_table_has_it(admin, new_instance, new_table_id):
    instance = new_instance()
    backups = Backups(admin, instance)
    admin.create_table(instance, "t", row_key_schema=SALES)
    backups.create("b", "t")
    admin.tables.update_table(
        request={
            "table": {"name": f"{instance}/tables/t"},
            "update_mask": mask("row_key_schema"),
            "ignore_warnings": True,
        }
    ).result()
    assert backups.restore("r", backups.name("b")).result().row_key_schema == SALES
    got = admin.tables.get_table(name=f"{instance}/tables/r")
    assert got.row_key_schema == SALES and got.restore_info.backup_info.backup.endswith("/b")


def test_rest(server, admin, make):
    """What `gcloud bigtable instances tables update --row-key-schema-definition-file` sends."""
    table = make(None)
    url = f"http://{server.host}/v2/{full(table)}"
    body = {
        "rowKeySchema": {
            "encoding": {"delimitedBytes": {"delimiter": "Iw=="}},
            "fields": [{"fieldName": "a", "type": {"bytesType": {"encoding": {"raw": {}}}}}],
        }
    }

    def patch(arguments, body):
        request = urllib.request.Request(
            f"{url}?updateMask=row_key_schema{arguments}", json.dumps(body).encode(),
            {"content-type": "application/json"}, method="PATCH",
        )  # fmt: skip
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    assert patch("", body)["response"]["rowKeySchema"] == body["rowKeySchema"]
    assert kept(admin, table) == schema(HASH, ("a", BYTES))
    patch("&ignoreWarnings=True", {})
    assert kept(admin, table) is None


# --- queries ---


@pytest.fixture
def sales(rpc, make):
    table = make(SALES, families=("product",))
    sell(rpc, full(table))
    return table


def test_fields_are_columns(query, sales):
    rows = query(f"SELECT * FROM `{sales}`")
    assert [list(row) for row in rows] == [
        ["user_id", "purchase_date", "order_number", "product"]
    ] * 3
    assert rows[1] == {
        "user_id": b"user1", "purchase_date": "2025-05-20", "order_number": "abcd1235",
        "product": {b"product_type": b"shoes", b"product_name": b"nike_hyperdunk"},
    }  # fmt: skip
    assert query(
        f"SELECT user_id, purchase_date, product['product_name'] AS name FROM `{sales}` "
        "WHERE user_id = b'user2'"
    ) == [{"user_id": b"user2", "purchase_date": "2025-05-24", "name": b"sony_wh_1000mx5"}]
    assert query(f"SELECT _key FROM `{sales}` WHERE _key > 'user2'") == [{"_key": PURCHASES[2][0]}]


def test_conditions_on_fields(query, sales):
    def orders(condition, **parameters):
        text = f"SELECT order_number FROM `{sales}` WHERE {condition}"
        return [row["order_number"] for row in query(text, **parameters)]

    assert orders("user_id = @u AND order_number > 'abcd1233'", u=b"user1") == ["abcd1235"]
    assert orders("user_id IN (b'user2', b'nobody')") == ["defg456"]
    assert orders("user_id = b'user1' AND purchase_date BETWEEN '2025-05-21' AND '2026'") == []
    assert orders("purchase_date LIKE '2025-05-2_' AND STARTS_WITH(user_id, b'user2')") == [
        "defg456"
    ]
    assert orders("user_id = b'user2' OR order_number = 'abcd1233'") == ["abcd1233", "defg456"]


def code(number):
    """A small number in the ordered code."""
    return bytes([0x80 + number])


KEYS = {
    "singleton": (
        schema(SINGLETON, ("s", STRING)),
        {b"a": {"s": "a"}, "é".encode(): {"s": "é"}},
    ),
    "singleton number": (
        schema(SINGLETON, ("n", ORDERED)),
        {b"\x7f": {"n": -1}, b"\x85": {"n": 5}},
    ),
    "delimited": (
        schema({"delimited_bytes": {"delimiter": b"::"}}, ("b", BYTES), ("n", BIG_ENDIAN)),
        {b"x::" + (258).to_bytes(8, "big"): {"b": b"x", "n": 258}},
    ),
    "delimited times": (
        schema(HASH, ("t", TIME), ("s", STRING)),
        {
            (1_700_000_000_000_001).to_bytes(8, "big") + b"#z": {
                "t": datetime.datetime(2023, 11, 14, 22, 13, 20, 1, datetime.timezone.utc),
                "s": "z",
            }
        },
    ),
    "ordered": (
        schema(ORDERED_CODE, ("s", STRING), ("n", ORDERED), ("b", BYTES)),
        {
            b"\0\0\0\1" + code(5) + b"\0\1\0\xffb": {"s": "", "n": 5, "b": b"\0b"},
            b"a\0\1" + code(3): {"s": "a", "n": 3, "b": b""},
        },
    ),
    "ordered times": (
        schema(ORDERED_CODE, ("t", ORDERED_TIME), ("n", BIG_ENDIAN)),
        {
            b"\x7f\0\1" + b"\0\xff" * 7 + b"\x07": {
                "t": datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, datetime.timezone.utc),
                "n": 7,
            }
        },
    ),
}


@pytest.mark.parametrize("name", KEYS)
def test_all_encodings(query, make, name):
    """Each row is found by all its parts, and by bounds around the first of them."""
    row_key_schema, rows = KEYS[name]
    table = make(row_key_schema, rows)
    names = [field.field_name for field in row_key_schema.fields]
    assert query(f"SELECT * EXCEPT (f) FROM `{table}`") == list(rows.values())
    for key, parts in rows.items():
        found = f"SELECT _key FROM `{table}` WHERE "
        equal = " AND ".join(f"{each} = @{each}" for each in names)
        assert query(found + equal, **parts) == [{"_key": key}]
        first = names[0]
        around = {first: parts[first]}
        inside = f"{first} >= @{first} AND {first} <= @{first}"
        assert query(found + inside, **around) == [{"_key": key}]
        outside = f"{first} > @{first} OR {first} < @{first}"
        assert {"_key": key} not in query(found + outside, **around)


def test_a_key_of_another_form_fails_the_query(query, rpc, sales):
    rpc.mutate(full(sales), b"user9", set_cell("product", b"q", b"v", 1000))
    message = "A row key of the table does not have the form of its row_key_schema"
    with pytest.raises(InvalidArgument, match=message):
        query(f"SELECT user_id FROM `{sales}`")
    assert len(query(f"SELECT user_id FROM `{sales}` WHERE user_id < b'user9'")) == 3
    assert len(query(f"SELECT _key FROM `{sales}`")) == 4
    assert len(rpc.read(full(sales))) == 4


# --- prepared queries ---


def test_a_prepared_query_keeps_its_meaning(admin, rpc, make):
    """Whatever becomes of the schema afterwards."""
    table = make(None, families=("product",))
    sell(rpc, full(table))
    first = types.Type.Struct(SALES)
    before = prepare(rpc, f"SELECT * FROM `{table}` LIMIT 1")
    update(admin, table, first)
    after = prepare(rpc, f"SELECT * EXCEPT (product) FROM `{table}` WHERE user_id = b'user2'")

    def check():
        key, _ = values_of(execute(rpc, before))
        assert key.bytes_value == PURCHASES[0][0]
        user, date, order = values_of(execute(rpc, after))
        assert (user.bytes_value, date.string_value, order.string_value) == (
            b"user2", "2025-05-24", "defg456",
        )  # fmt: skip

    check()
    update(admin, table, ignore_warnings=True)
    check()
    update(admin, table, schema(SINGLETON, ("user_id", STRING)))
    check()
    (user,) = values_of(execute(rpc, prepare(rpc, f"SELECT user_id FROM `{table}` LIMIT 1")))
    assert user.string_value == PURCHASES[0][0].decode()


def test_a_data_client_sees_the_schema_of_its_next_query(admin, client, make, rpc):
    table = make(None, families=("product",))
    sell(rpc, full(table))

    def columns():
        rows = client.execute_query(f"SELECT * FROM `{table}`", "i")
        return [name for name, _ in next(iter(rows)).fields]

    assert columns() == ["_key", "product"]
    update(admin, table, SALES)
    assert columns() == ["user_id", "purchase_date", "order_number", "product"]
