"""Materialized views in tests: made, waited for, read, and held against their queries."""

import contextlib
import struct
import time

import grpc
from google.cloud.bigtable_admin_v2 import types
from harness.rpc import INSTANCE, Cell, set_cell
from harness.sql import execute, prepare, values_of

# For what must come to be so, unasked: what is never so fails after as long.
BOUND_SECONDS = 60
MARKER = Cell("default", b"", 0, b"")


def big_endian(number):
    return struct.pack(">q", number)


def number_cell(qualifier, number, family="default", timestamp=0):
    """How a view keeps an INT64."""
    return Cell(family, qualifier, timestamp, big_endian(number))


def put(rpc, table, key, timestamp=1000, family="f", **values):
    """Sets a cell for each value: a number as 8 bytes, big-endian, a text as UTF-8."""

    def encoded(value):
        if isinstance(value, int):
            return big_endian(value)
        return value.encode() if isinstance(value, str) else value

    cells = (set_cell(family, q.encode(), encoded(v), timestamp) for q, v in values.items())
    rpc.mutate(table, key, *cells)


def comes_to(look, expected, seconds=BOUND_SECONDS):
    """Waits until `look` gives what is expected; fails with what it gave last."""
    deadline = time.monotonic() + seconds
    while (seen := look()) != expected and time.monotonic() < deadline:
        time.sleep(0.02)
    assert seen == expected


def becomes(condition):
    """Waits until it is true."""
    comes_to(lambda: bool(condition()), True)


def rows_of(rpc, text, **parameters):
    """The rows of a query's result: tuples of protobuf Values, as texts, which can be compared."""
    prepared = prepare(rpc, text)
    width = len(prepared.metadata.proto_schema.columns)
    values = [str(value) for value in values_of(execute(rpc, prepared, **parameters))]
    return [tuple(values[i : i + width]) for i in range(0, len(values), width)]


class Views:
    """Views of one instance, by their ids."""

    def __init__(self, admin, rpc, new_id, instance=INSTANCE):
        self.admin, self.rpc, self.new_id, self.instance = admin, rpc, new_id, instance
        self.made = []

    def name(self, view_id):
        return f"{self.instance}/materializedViews/{view_id}"

    def begin(self, query, view_id=None, **fields):
        """The operation that makes it."""
        view_id = view_id or self.new_id()
        operation = self.admin.instances.create_materialized_view(
            parent=self.instance, materialized_view_id=view_id,
            materialized_view=types.MaterializedView(query=query, **fields),
        )  # fmt: skip
        self.made.append(self.name(view_id))
        return operation

    def create(self, query, view_id=None, **fields):
        """Its full name, when it is populated."""
        return self.begin(query, view_id, **fields).result(timeout=BOUND_SECONDS).name

    def delete(self, name, **fields):
        self.admin.instances.delete_materialized_view(request={"name": name, **fields})

    def close(self):
        for name in self.made:
            with contextlib.suppress(Exception):  # the test may have deleted or protected it
                self.delete(name)

    # --- reading ---

    def comes_to(self, name, rows):
        """`rows`: [(key, [Cell])] without the marker cells, which are looked for."""
        marked = [(key, sorted([MARKER, *cells])) for key, cells in rows]
        comes_to(lambda: [(k, sorted(cells)) for k, cells in self.rpc.read(name)], marked)

    def keys_come_to(self, name, keys):
        comes_to(lambda: [key for key, _ in self.rpc.read(name)], list(keys))

    def equals(self, name, query):
        """Waits until the view has what its query gives, in whatever order."""
        view_id = name.rsplit("/", 1)[-1]

        def both():
            return (
                sorted(rows_of(self.rpc, f"SELECT * FROM `{view_id}`")),
                sorted(rows_of(self.rpc, query)),
            )

        becomes(lambda: len(set(map(tuple, both()))) == 1)
        assert both()[0] == both()[1]


def is_refused(call, code, text=""):
    """Whether an admin client's call fails so; gRPC's code, whatever the client makes of it."""
    try:
        call()
    except grpc.RpcError as error:
        return error.code() == code and text in error.details()
    except Exception as error:  # google.api_core's, which has the code beside
        return getattr(error, "grpc_status_code", None) == code and text in str(error)
    return False
