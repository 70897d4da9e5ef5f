"""Reading change streams by raw stubs, as applications would: changes put together from their
messages, held against the rules that Google's client in Java has for them."""

import queue
import threading
import time

import grpc
from google.cloud.bigtable_admin_v2 import types as admin_types
from google.cloud.bigtable_v2 import types
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from harness.patience import PATIENCE_SECONDS
from harness.rpc import set_cell

DAY = 24 * 3600
USER = types.ReadChangeStreamResponse.DataChange.Type.USER
CONTINUATION = types.ReadChangeStreamResponse.DataChange.Type.CONTINUATION
MISALIGNED = "Partition boundaries are misaligned."
MIB = 1 << 20


def timestamp(micros):
    return Timestamp(seconds=micros // 1_000_000, nanos=micros % 1_000_000 * 1000)


def micros_of(stamp):
    return stamp.seconds * 1_000_000 + stamp.nanos // 1000


def now_micros():
    return time.time_ns() // 1000


def partition(start=b"", end=b""):
    return {"row_range": {"start_key_closed": start, "end_key_open": end}}


def bounds(stream_partition):
    row_range = types.StreamPartition.pb(stream_partition).row_range
    assert row_range.WhichOneof("start_key") == "start_key_closed"
    assert row_range.WhichOneof("end_key") == "end_key_open"
    return row_range.start_key_closed, row_range.end_key_open


def stream_config(days=1, seconds=0):
    return {"retention_period": Duration(seconds=days * DAY + seconds)}


def update_stream(rpc, name, config, path="change_stream_config"):
    table = {"name": name}
    if config is not None:
        table["change_stream_config"] = config
    request = admin_types.UpdateTableRequest(table=table, update_mask={"paths": [path]})
    operation = rpc.admin.update_table(request, timeout=PATIENCE_SECONDS)
    assert operation.done
    assert not operation.HasField("error")


class Change:
    """One change, of one message or several, held against the rules that Google's client in Java
    has for them."""

    def __init__(self, first):
        self.type = first.type_
        self.cluster = first.source_cluster_id
        self.key = first.row_key
        self.tiebreaker = first.tiebreaker
        raw = types.ReadChangeStreamResponse.DataChange.pb(first)
        self.micros = micros_of(raw.commit_timestamp)
        self.mutations = []
        self.pieces = 0
        self.token = self.watermark = None
        self.value = None
        self.size = 0
        assert self.key
        assert self.micros > 0
        assert first.chunks

    def add(self, message):
        assert message.chunks
        for place, chunk in enumerate(message.chunks):
            if not types.ReadChangeStreamResponse.MutationChunk.pb(chunk).HasField("chunk_info"):
                assert self.value is None
                self.mutations.append(chunk.mutation)
            else:
                self.add_piece(message, place, chunk)
        if message.done:
            assert self.value is None
            assert message.token
            self.token = message.token
            raw = types.ReadChangeStreamResponse.DataChange.pb(message)
            assert raw.HasField("estimated_low_watermark")
            self.watermark = micros_of(raw.estimated_low_watermark)
        return bool(message.done)

    def add_piece(self, message, place, chunk):
        info = chunk.chunk_info
        self.pieces += 1
        if self.value is None:
            assert info.chunked_value_offset == 0
            self.value, self.size = bytearray(), info.chunked_value_size
            self.first = chunk.mutation
        else:
            assert place == 0
        assert info.chunked_value_size == self.size > 0
        assert info.chunked_value_offset == len(self.value)
        self.value += chunk.mutation.set_cell.value
        if not info.last_chunk:
            assert place == len(message.chunks) - 1
            return
        assert len(self.value) == self.size
        self.first.set_cell.value = bytes(self.value)
        self.mutations.append(self.first)
        self.value = None


class Reader:
    """Reads a partition in a thread of its own. `events`: changes, heartbeats, a close, the end."""

    def __init__(self, rpc, name, start=b"", end=b"", **fields):
        fields.setdefault("partition", partition(start, end))
        fields.setdefault("heartbeat_duration", Duration(seconds=1))
        self.request = types.ReadChangeStreamRequest(table_name=name, **fields)
        self.events = queue.Queue()
        self.call = rpc.data.read_change_stream(self.request, timeout=5 * PATIENCE_SECONDS)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.call.cancel()
        self.thread.join(PATIENCE_SECONDS)

    def run(self):
        change = None
        try:
            for response in self.call:
                kind = types.ReadChangeStreamResponse.pb(response).WhichOneof("stream_record")
                if kind != "data_change":
                    assert change is None, "in the middle of a change"
                    self.events.put(getattr(response, kind))
                    continue
                message = response.data_change
                if change is None:
                    change = Change(message)
                else:
                    assert message.type_ == CONTINUATION
                if change.add(message):
                    self.events.put(change)
                    change = None
            self.events.put(None)
        except (grpc.RpcError, AssertionError) as error:
            self.events.put(error)

    def next(self):
        event = self.events.get(timeout=PATIENCE_SECONDS)
        if isinstance(event, Exception):
            raise event
        return event

    def begun(self):
        """Itself, once it reads: without a time to start from it is told of what comes then."""
        self.next_of(types.ReadChangeStreamResponse.Heartbeat)
        return self

    def next_of(self, kind):
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            event = self.next()
            assert time.monotonic() < end, f"no {kind.__name__}"
            assert event is not None, "the stream has ended"
            if isinstance(event, kind):
                return event

    def changes(self, count):
        return [self.next_of(Change) for _ in range(count)]

    def rest(self):
        """All changes up to a close, and that."""
        changes = []
        while True:
            event = self.next()
            if isinstance(event, Change):
                changes.append(event)
            elif isinstance(event, types.ReadChangeStreamResponse.CloseStream):
                assert self.next() is None  # gRPC's status is OK
                return changes, event


def one_token(start, end, token):
    return {"tokens": [{"partition": partition(start, end), "token": token}]}


def tokens_of(*parts):
    return {"tokens": [{"partition": partition(*part[:2]), "token": part[2]} for part in parts]}


def partitions_of(rpc, name, **fields):
    request = types.GenerateInitialChangeStreamPartitionsRequest(table_name=name, **fields)
    answers = rpc.data.generate_initial_change_stream_partitions(request, timeout=PATIENCE_SECONDS)
    return [bounds(answer.partition) for answer in answers]


class Writers:
    """Write rows of a few keys in turn, each with its number, until the end of the block."""

    def __init__(self, rpc, name, keys):
        self.rpc, self.name, self.keys = rpc, name, keys
        self.written = dict.fromkeys(keys, 0)
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        while not self.is_over.is_set():
            entries = []
            for key in self.keys:
                entries.append((key, [set_cell("f", b"q", b"%d" % self.written[key], 1000)]))
                self.written[key] += 1
            assert set(self.rpc.mutate_rows(self.name, entries)) == {0}

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *failure):
        self.is_over.set()
        self.thread.join(PATIENCE_SECONDS)
