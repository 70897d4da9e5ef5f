"""RPCs as they are on the wire: no retries, no client-side checks, codes and metadata as they came.

`Rpc(host)` has the stubs of both services, and short forms for what many tests do. Tests of what an
application sees use the official client instead (fixtures `client` and `table`).
"""

import base64
import collections

import grpc
import pytest
from google.cloud.bigtable_admin_v2 import types as admin_types
from google.cloud.bigtable_admin_v2.services.bigtable_table_admin import transports as admin
from google.cloud.bigtable_v2 import types
from google.cloud.bigtable_v2.services.bigtable import transports
from harness.patience import PATIENCE_SECONDS
from harness.server import SHARDS

INSTANCE = "projects/p/instances/i"
# Production refuses a DropRowRange with less than two minutes left.
ADMIN_SECONDS = 900
MAX_MESSAGE = 256 << 20
CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    ("grpc.max_send_message_length", MAX_MESSAGE),
    ("grpc.enable_http_proxy", 0),
]

# Of tables for which a test wants none, if they are to lie in several shards.
SPREADING_SPLITS = [
    b"1", b"5", b"a", b"b", b"c", b"g", b"k", b"k1", b"m", b"r", b"r1", b"r5", b"row", b"row5",
    b"s", b"x",
]  # fmt: skip

Cell = collections.namedtuple("Cell", "family qualifier timestamp value labels", defaults=[()])


def features(**flags):
    """The metadata by which a client says what it understands."""
    serialised = types.FeatureFlags.serialize(types.FeatureFlags(**flags))
    return [("bigtable-features", base64.urlsafe_b64encode(serialised).decode())]


ALL_FEATURES = features(reverse_scans=True, last_scanned_row_responses=True)


def target(name):
    """The field of a request that names what it is for: a table, or a view."""
    if "/materializedViews/" in name:
        return {"materialized_view_name": name}
    field = "authorized_view_name" if "/authorizedViews/" in name else "table_name"
    return {field: name}


def set_cell(family, qualifier, value, timestamp=-1):
    cell = types.Mutation.SetCell(
        family_name=family, column_qualifier=qualifier, timestamp_micros=timestamp, value=value
    )
    return types.Mutation(set_cell=cell)


def delete_row():
    return types.Mutation(delete_from_row={})


def fails_with(code, text=""):
    """A context in which the RPC must fail with this status code, and this text in its message."""
    return RpcFailure(code, text)


class RpcFailure:
    def __init__(self, code, text):
        self.code = code if isinstance(code, (tuple, list, set)) else (code,)
        self.text = text

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if kind is None:
            pytest.fail(f"succeeded, expected {self.code}")
        if not issubclass(kind, grpc.RpcError):
            return False
        assert error.code() in self.code, f"{error.code()}: {error.details()}"
        assert self.text in error.details()
        self.error = error
        return True


class Rpc:
    """Stubs of one channel: `data` and `admin` have every method of their service."""

    def __init__(self, host, credentials=None):
        if credentials is None:
            self.channel = grpc.insecure_channel(host, options=CHANNEL_OPTIONS)
        else:
            self.channel = grpc.secure_channel(host, credentials, options=CHANNEL_OPTIONS)
        self.data = transports.BigtableGrpcTransport(channel=self.channel)
        self.admin = admin.BigtableTableAdminGrpcTransport(channel=self.channel)

    def close(self):
        self.channel.close()

    # --- admin ---

    def create_table(self, table_id, families=("f",), splits=(), instance=INSTANCE, **fields):
        """`families`: names, or names and GcRules. Returns the table's name."""
        if SHARDS > 1 and not splits:
            splits = SPREADING_SPLITS
        rules = families if isinstance(families, dict) else dict.fromkeys(families)
        request = admin_types.CreateTableRequest(
            parent=instance,
            table_id=table_id,
            table={
                "column_families": {
                    name: admin_types.ColumnFamily(gc_rule=rule) for name, rule in rules.items()
                },
                **fields,
            },
            initial_splits=[{"key": key} for key in splits],
        )
        return self.admin.create_table(request, timeout=ADMIN_SECONDS).name

    def get_table(self, name, view=0):
        request = admin_types.GetTableRequest(name=name, view=view)
        return self.admin.get_table(request, timeout=ADMIN_SECONDS)

    def delete_table(self, name):
        request = admin_types.DeleteTableRequest(name=name)
        self.admin.delete_table(request, timeout=ADMIN_SECONDS)

    def modify_families(self, name, *modifications):
        request = admin_types.ModifyColumnFamiliesRequest(
            name=name, modifications=list(modifications)
        )
        return self.admin.modify_column_families(request, timeout=ADMIN_SECONDS)

    def drop_row_range(self, name, prefix=None, everything=None):
        request = admin_types.DropRowRangeRequest(name=name)
        if prefix is not None:
            request.row_key_prefix = prefix
        if everything is not None:
            request.delete_all_data_from_table = everything
        self.admin.drop_row_range(request, timeout=ADMIN_SECONDS)

    # --- data ---

    def mutate(self, table, key, *mutations, **fields):
        request = types.MutateRowRequest(
            row_key=key, mutations=list(mutations), **target(table), **fields
        )
        return self.data.mutate_row(request, timeout=PATIENCE_SECONDS)

    def mutate_rows(self, table, rows):
        """`rows`: (key, mutations) pairs. Returns the entries' status codes in their order."""
        entries = [{"row_key": key, "mutations": list(mutations)} for key, mutations in rows]
        request = types.MutateRowsRequest(entries=entries, **target(table))
        codes = [None] * len(entries)
        for response in self.data.mutate_rows(request, timeout=PATIENCE_SECONDS):
            for entry in response.entries:
                assert codes[entry.index] is None, f"two answers for entry {entry.index}"
                codes[entry.index] = entry.status.code
        assert None not in codes, "an entry without an answer"
        return codes

    def read_stream(self, table, metadata=ALL_FEATURES, **query):
        request = types.ReadRowsRequest(**target(table), **query)
        return self.data.read_rows(request, timeout=PATIENCE_SECONDS, metadata=metadata)

    def read(self, table, metadata=ALL_FEATURES, **query):
        """[(key, [Cell])] in the order they came; every rule of the stream is checked."""
        stream = self.read_stream(table, metadata, **query)
        return list(decode_rows(stream, query.get("reversed", False)))

    def read_row(self, table, key, **query):
        rows = dict(self.read(table, rows={"row_keys": [key]}, **query))
        return rows.get(key, [])

    def sample_row_keys(self, table, **fields):
        request = types.SampleRowKeysRequest(**target(table), **fields)
        stream = self.data.sample_row_keys(request, timeout=PATIENCE_SECONDS)
        return [(sample.row_key, sample.offset_bytes) for sample in stream]

    def check_and_mutate(self, table, key, predicate=None, true=(), false=()):
        request = types.CheckAndMutateRowRequest(
            **target(table),
            row_key=key,
            predicate_filter=predicate,
            true_mutations=list(true),
            false_mutations=list(false),
        )
        response = self.data.check_and_mutate_row(request, timeout=PATIENCE_SECONDS)
        return response.predicate_matched

    def read_modify_write(self, table, key, *rules):
        """The changed cells, in the order of the answer."""
        request = types.ReadModifyWriteRowRequest(
            row_key=key, rules=list(rules), **target(table)
        )
        row = self.data.read_modify_write_row(request, timeout=PATIENCE_SECONDS).row
        assert row.key == key
        return [
            Cell(family.name, column.qualifier, cell.timestamp_micros, cell.value)
            for family in row.families
            for column in family.columns
            for cell in column.cells
        ]


class RowDecoder:
    """The client's side of ReadRows: cells and rows from chunks, with the rules of the stream."""

    def __init__(self, is_reversed):
        self.is_reversed = is_reversed
        self.last_key = None
        self.begin_row()

    def begin_row(self):
        self.key = self.family = self.qualifier = None
        self.cells = []
        self.begin_cell()

    def begin_cell(self):
        self.value = []
        self.is_split = False

    def check_key_order(self, key):
        if self.last_key is None:
            return
        rising = key > self.last_key
        assert rising != self.is_reversed and key != self.last_key, f"{key} after {self.last_key}"

    def take_position(self, chunk):
        if self.key is None:
            assert chunk.row_key, "the first chunk of a row has its key"
            assert chunk.HasField("family_name") and chunk.HasField("qualifier")
            self.check_key_order(chunk.row_key)
            self.key = chunk.row_key
        else:
            assert chunk.row_key in (b"", self.key), "a new key before the last row was committed"
        if chunk.HasField("family_name"):
            assert chunk.HasField("qualifier"), "a new family needs a qualifier"
            self.family = chunk.family_name.value
        if chunk.HasField("qualifier"):
            self.qualifier = chunk.qualifier.value
        self.timestamp, self.labels = chunk.timestamp_micros, tuple(chunk.labels)

    def take(self, chunk):
        """A finished row, or None."""
        if chunk.reset_row:
            assert self.key is not None and not chunk.value and not chunk.row_key
            self.begin_row()
            return None
        if self.is_split:
            assert not chunk.row_key and not chunk.HasField("family_name")
        else:
            self.take_position(chunk)
        self.value.append(chunk.value)
        self.is_split = chunk.value_size > 0
        if not self.is_split:
            value = b"".join(self.value)
            cell = Cell(self.family, self.qualifier, self.timestamp, value, self.labels)
            self.cells.append(cell)
            self.begin_cell()
        if not chunk.commit_row:
            return None
        assert not self.is_split, "a commit within a cell"
        row = (self.key, self.cells)
        self.last_key = self.key
        self.begin_row()
        return row


def decode_rows(stream, is_reversed=False):
    return decode_responses(map(types.ReadRowsResponse.pb, stream), is_reversed)


def decode_responses(responses, is_reversed=False):
    """`responses`: protobuf's own messages, without the wrapping of Google's library."""
    decoder = RowDecoder(is_reversed)
    for response in responses:
        if response.last_scanned_row_key:
            assert decoder.key is None, "last_scanned_row_key within a row"
            decoder.check_key_order(response.last_scanned_row_key)
            decoder.last_key = response.last_scanned_row_key
        if response.chunks and not decoder.is_split:
            assert response.chunks[0].row_key, "the official client wants a key in each message"
        for chunk in response.chunks:
            row = decoder.take(chunk)
            if row is not None:
                yield row
    assert decoder.key is None, "the stream ended within a row"
