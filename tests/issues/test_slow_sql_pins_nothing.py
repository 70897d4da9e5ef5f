"""A SQL query whose client does not read kept its scan, and with it every table file and write
buffer that was there when it began, for as long as the client liked: after 90 MB had been dropped,
written anew and dropped again, 79 MB of them were on the disk still, and none once the call was
cancelled.

It holds nothing of the store while it waits. What it says afterwards is whole and right, also of
queries that make several rows of one row of the table and had to wait in the middle of one."""

import random
import time

import pytest
from harness import sql
from harness.patience import PATIENCE_SECONDS
from harness.rpc import set_cell

COLUMNS, VALUE = 7, 700
KEPT, DROPPED = 1200, 3600  # rows: "a…", which the client asks for first, and "b…"
NAMES = ", ".join(f"q{number}" for number in range(COLUMNS))
HISTORIES = ", ".join(f"f['q{number}'] AS q{number}" for number in range(COLUMNS))
QUERIES = {
    "rows": "SELECT _key, f FROM t",
    "entries": "SELECT _key, e.key, e.value FROM t, UNNEST(MAP_ENTRIES(f)) AS e",
    "history": f"""SELECT _key, {NAMES}
        FROM UNPACK((SELECT _key, {HISTORIES} FROM t(with_history => TRUE)))""",
}


def key_of(letter, number):
    return b"%s%05d" % (letter, number)


def value_of(key, name):
    """Such that no compression makes less of it."""
    return random.Random(key + name).randbytes(VALUE)


def cells_of(key):
    names = [b"q%d" % number for number in range(COLUMNS)]
    return [set_cell("f", name, value_of(key, name), 1000) for name in names] + [
        set_cell("f", b"q0", value_of(key, b"old"), 0)
    ]


def fill(rpc, table):
    keys = [key_of(b"a", n) for n in range(KEPT)] + [key_of(b"b", n) for n in range(DROPPED)]
    for at in range(0, len(keys), 200):
        codes = rpc.mutate_rows(table, [(key, cells_of(key)) for key in keys[at : at + 200]])
        assert not any(codes)


def table_bytes(server):
    """Of the store's table files; one may go while they are looked at."""
    size = 0
    for path in server.data.rglob("*.sst"):
        try:
            size += path.stat().st_size
        except FileNotFoundError:
            continue
    return size


def wait_until_less(server, limit):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while table_bytes(server) > limit:
        assert time.monotonic() < deadline, f"{table_bytes(server)} bytes are kept"
        time.sleep(0.2)


def expected(key, kind):
    """What a query says of a row, as values without their wrapping."""
    names = [b"q%d" % number for number in range(COLUMNS)]
    entries = [(name, value_of(key, name)) for name in names]
    if kind == "history":
        newer = [value for _, value in entries]
        return [(key, *newer), (key, value_of(key, b"old"), *[b""] * (COLUMNS - 1))]
    return [(key, *entry) for entry in entries] if kind == "entries" else [(key, entries)]


def plain(value):
    if value.WhichOneof("kind") == "array_value":
        return [tuple(map(plain, pair.array_value.values)) for pair in value.array_value.values]
    return value.bytes_value


def rows_of(responses, width):
    values = [plain(type(value).pb(value)) for value in sql.values_of(responses)]
    return [tuple(values[at : at + width]) for at in range(0, len(values), width)]


@pytest.mark.parametrize("kind", QUERIES)
def test_slow_sql_pins_nothing(fresh_server, connect, kind):
    server = fresh_server("--write-buffer", "4MB")
    rpc = connect(server.host)
    table = rpc.create_table("t")
    fill(rpc, table)
    whole = (KEPT + DROPPED) * COLUMNS * VALUE
    stream = sql.begin(rpc, sql.prepare(rpc, QUERIES[kind]))
    responses = [next(stream)]  # and no more for now
    rpc.drop_row_range(table, prefix=b"b")
    wait_until_less(server, whole // 2)

    responses += stream
    rows = rows_of(responses, len(expected(b"", kind)[0]))
    kept = [row for n in range(KEPT) for row in expected(key_of(b"a", n), kind)]
    assert rows[: len(kept)] == kept
    # Those that were dropped are not there, but for what had been read by then: the first of them.
    rest = [row for n in range(DROPPED) for row in expected(key_of(b"b", n), kind)]
    assert rows[len(kept) :] == rest[: len(rows) - len(kept)]
    assert len(rows) < len(kept) + len(rest)
