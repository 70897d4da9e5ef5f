"""Much of what is harmless once: resets, pings, settings, headers; and clients that do not read."""

import struct

import pytest
from google.cloud.bigtable_v2 import types
from harness.rpc import Rpc, RowDecoder, set_cell
from hyperframe.frame import PingFrame, RstStreamFrame, SettingsFrame, WindowUpdateFrame
from raw import CANCEL, ENHANCE_YOUR_CALM, PROTOCOL_ERROR, Answer, Gone, frame, message

HEADERS, CONTINUATION = 1, 9
END_STREAM, END_HEADERS = 1, 4
ROWS = 1000
ROW_BYTES = 1000


@pytest.fixture(scope="module")
def scanned(victim):
    """A table of 1 MB."""
    rpc = Rpc(victim.host)
    name = rpc.create_table("scanned")
    cell = set_cell("f", b"q", b"x" * ROW_BYTES, 1000)
    assert set(rpc.mutate_rows(name, [(b"%04d" % i, [cell]) for i in range(ROWS)])) == {0}
    yield name
    rpc.close()


def scan(table, **query):
    return types.ReadRowsRequest.serialize(types.ReadRowsRequest(table_name=table, **query))


def rows_of(answer):
    decoder = RowDecoder(is_reversed=False)
    assert answer.status == 0, answer.text
    chunks = [
        chunk
        for body in answer.messages()
        for chunk in types.ReadRowsResponse.pb(types.ReadRowsResponse.deserialize(body)).chunks
    ]
    return [row for row in map(decoder.take, chunks) if row is not None]


# --- floods that end the connection ---


def test_reset_flood(victim, attack):
    """HEADERS and RST_STREAM, over and over: "rapid reset"."""
    with victim.attacked():
        raw = attack()
        block = raw.header_block("MutateRow")
        reset = struct.pack(">I", CANCEL)
        for first in range(1, 200_000, 2000):
            piece = b"".join(
                frame(HEADERS, END_HEADERS, stream, block) + frame(3, 0, stream, reset)
                for stream in range(first, first + 2000, 2)
            )
            if not raw.write(piece) or raw.goaway is not None:
                break
        assert raw.end() in (Gone(ENHANCE_YOUR_CALM), Gone(None))


def test_reset_flood_of_whole_requests(victim, attack, scanned):
    """What they cost is bounded, whether the connection goes on or not."""
    with victim.attacked(megabytes=256):
        raw = attack()
        raw.ping()
        request = message(scan(scanned))
        for _ in range(10_000):
            stream = raw.open("ReadRows")
            raw.data(stream, request)
            raw.send(RstStreamFrame(stream, error_code=CANCEL))
            if raw.is_closed or raw.goaway is not None:
                break


def test_continuation_flood(victim, attack):
    with victim.attacked():
        raw = attack()
        raw.write(frame(HEADERS, 0, 1, raw.header_block("MutateRow")))
        literal = b"\x00\x01a\x7f\x00" + b"b" * 127  # never indexed
        for _ in range(5000):
            if not raw.write(frame(CONTINUATION, 0, 1, literal * 120)):
                break
        assert isinstance(raw.end(), Gone)


def test_empty_continuation_flood(victim, attack):
    with victim.attacked():
        raw = attack()
        raw.write(frame(HEADERS, 0, 1, raw.header_block("MutateRow")))
        raw.write(frame(CONTINUATION, 0, 1, b"") * 100_000)
        assert isinstance(raw.end(), Gone)


def test_hpack_bomb(victim, attack):
    """A header of 4,000 bytes enters the table; one byte refers to it, 16,000 times a frame."""
    with victim.attacked():
        raw = attack()
        raw.ping()
        stream = raw.new_stream()
        literal = b"\x40\x01a" + b"\x7f" + b"\xa1\x1e" + b"b" * 4000
        block = raw.header_block("MutateRow")
        raw.write(frame(HEADERS, END_HEADERS, stream, block + literal + b"\xbe" * 10_000))
        assert raw.end() == Gone(ENHANCE_YOUR_CALM)


def test_small_hpack_bombs(victim, attack):
    """Each of a size that is refused and not fatal: 160 KB of headers, on 100 streams."""
    with victim.attacked():
        raw = attack()
        raw.ping()
        first = raw.new_stream()
        literal = b"\x40\x01a" + b"\x7f" + b"\xa1\x1e" + b"b" * 4000
        raw.write(frame(HEADERS, END_HEADERS, first, raw.header_block("MutateRow") + literal))
        # POST, http, three literals, then the header of 4,000 bytes 40 times
        block = b"\x83\x86\x01\x01x\x04\x02/b\x0f\x10\x10application/grpc" + b"\xbe" * 40
        streams = [raw.new_stream() for _ in range(100)]
        for stream in streams:
            raw.write(frame(HEADERS, END_HEADERS, stream, block))
        for stream in streams:
            outcome = raw.outcome(stream)
            assert isinstance(outcome, (Gone, Answer))
            assert not isinstance(outcome, Answer) or outcome.status in (8, 12)


def test_ping_flood_that_is_read(victim, attack):
    with victim.attacked():
        raw = attack()
        for _ in range(100):
            raw.write(PingFrame(0, opaque_data=b"12345678").serialize() * 100)
            if not raw.ping():
                break
        assert raw.goaway in (None, ENHANCE_YOUR_CALM)


@pytest.mark.parametrize(
    "flood",
    [
        PingFrame(0, opaque_data=b"12345678").serialize(),
        SettingsFrame(0, settings={SettingsFrame.MAX_CONCURRENT_STREAMS: 1}).serialize(),
    ],
    ids=["ping", "settings"],
)
def test_flood_that_wants_answers_which_nobody_reads(victim, attack, flood):
    with victim.attacked():
        raw = attack()
        for _ in range(1000):
            if not raw.write_until_stuck(flood * 1000):
                break
        assert isinstance(raw.end(), Gone)


def test_settings_flood(victim, attack):
    with victim.attacked():
        raw = attack()
        one = SettingsFrame(0, settings={SettingsFrame.HEADER_TABLE_SIZE: 4096}).serialize()
        for _ in range(100):
            if not raw.write(one * 1000):
                break
        assert isinstance(raw.end(), Gone)


def test_flood_of_empty_data(victim, attack):
    with victim.attacked():
        raw = attack()
        stream = raw.open("MutateRow")
        for _ in range(100):
            if not raw.write(frame(0, 0, stream, b"") * 1000):
                break
        assert raw.end() in (Gone(ENHANCE_YOUR_CALM), Gone(None))


def test_window_updates_of_one_byte(victim, attack):
    """A million: a waste, but no harm."""
    with victim.attacked():
        raw = attack()
        for _ in range(100):
            raw.write(WindowUpdateFrame(0, window_increment=1).serialize() * 10_000)
        assert raw.ping() or raw.goaway == ENHANCE_YOUR_CALM


# --- clients that do not read ---


def test_zero_windows(victim, attack, scanned):
    """500 scans of 1 MB whose client lets nothing through; then it does."""
    with victim.attacked(megabytes=256):
        raw = attack(settings={SettingsFrame.INITIAL_WINDOW_SIZE: 0})
        raw.ping()
        streams = [raw.call("ReadRows", scan(scanned)) for _ in range(500)]
        raw.ping()
        assert not any(raw.streams[stream][1] for stream in streams)
        raw.send(
            WindowUpdateFrame(0, window_increment=1 << 30),
            WindowUpdateFrame(streams[7], window_increment=1 << 30),
        )
        rows = rows_of(raw.outcome(streams[7]))
        assert [key for key, _ in rows] == [b"%04d" % i for i in range(ROWS)]


def test_zero_window_of_the_connection(victim, attack, scanned):
    with victim.attacked(megabytes=256):
        raw = attack(settings={SettingsFrame.INITIAL_WINDOW_SIZE: (1 << 31) - 1})
        raw.ping()
        streams = [raw.call("ReadRows", scan(scanned)) for _ in range(500)]
        assert raw.ping()
        assert sum(len(raw.streams[stream][1]) for stream in streams) <= 65535


def test_one_byte_windows(victim, attack, scanned):
    """An answer in frames of one byte is the same answer."""
    with victim.attacked():
        raw = attack(settings={SettingsFrame.INITIAL_WINDOW_SIZE: 1})
        raw.ping()
        stream = raw.call("ReadRows", scan(scanned, rows_limit=2))
        state = raw.streams[stream]
        while not state[2]:
            before = len(state[1])
            raw.wait(lambda seen=before: len(state[1]) > seen or state[2])
            raw.send(WindowUpdateFrame(stream, window_increment=1))
            if len(state[1]) == before:
                break
        rows = rows_of(raw.outcome(stream))
        assert [key for key, _ in rows] == [b"0000", b"0001"]


def test_windows_that_shrink_below_zero(victim, attack, scanned):
    with victim.attacked():
        raw = attack()
        stream = raw.call("ReadRows", scan(scanned))
        raw.send(SettingsFrame(0, settings={SettingsFrame.INITIAL_WINDOW_SIZE: 0}))
        raw.ping()
        raw.send(SettingsFrame(0, settings={SettingsFrame.INITIAL_WINDOW_SIZE: 1 << 30}))
        raw.send(WindowUpdateFrame(0, window_increment=1 << 30))
        assert len(rows_of(raw.outcome(stream))) == ROWS


def test_clients_that_stop_reading_their_sockets(victim, attack, scanned):
    """20 connections of 50 scans, every window wide open, nobody reads."""
    with victim.attacked(megabytes=256):
        for _ in range(20):
            raw = attack(
                settings={SettingsFrame.INITIAL_WINDOW_SIZE: (1 << 31) - 1}, window=(1 << 30)
            )
            request = message(scan(scanned))
            for _ in range(50):
                stream = raw.new_stream()
                block = raw.header_block("ReadRows")
                raw.write_until_stuck(
                    frame(HEADERS, END_HEADERS, stream, block) + frame(0, 1, stream, request)
                )


# --- cancelling is no attack ---


def test_5000_cancelled_scans_keep_their_connection(victim, attack, scanned):
    """Each is cancelled when its first bytes have come, as clients do that have seen enough."""
    with victim.attacked(megabytes=128):
        raw = attack(window=1 << 30)
        for _ in range(5000):
            stream = raw.call("ReadRows", scan(scanned))
            state = raw.streams[stream]
            raw.wait(lambda state=state: state[1])
            raw.send(
                RstStreamFrame(stream, error_code=CANCEL),
                WindowUpdateFrame(0, window_increment=100_000),
            )
            assert raw.goaway is None
            assert not raw.is_closed
        assert len(rows_of(raw.outcome(raw.call("ReadRows", scan(scanned, rows_limit=3))))) == 3


def test_5000_scans_cancelled_at_once_keep_their_connection(victim, attack, scanned):
    """In groups of 100, before anything has come."""
    with victim.attacked(megabytes=256):
        raw = attack(window=1 << 30)
        for _ in range(50):
            streams = [raw.call("ReadRows", scan(scanned)) for _ in range(100)]
            raw.send(*(RstStreamFrame(stream, error_code=CANCEL) for stream in streams))
            assert raw.ping()
        assert raw.goaway is None
        raw.send(WindowUpdateFrame(0, window_increment=1 << 29))
        assert len(rows_of(raw.outcome(raw.call("ReadRows", scan(scanned, rows_limit=3))))) == 3


def test_5000_scans_cancelled_by_grpc(victim, scanned):
    """By Google's own implementation, which keeps to one connection."""
    with victim.attacked(megabytes=128):
        rpc = Rpc(victim.host)
        states = []
        rpc.channel.subscribe(states.append)
        for _ in range(5000):
            stream = rpc.read_stream(scanned)
            next(iter(stream))
            stream.cancel()
        assert len(rpc.read(scanned, rows_limit=3)) == 3
        assert "TRANSIENT_FAILURE" not in [state.name for state in states]
        assert [state.name for state in states].count("READY") <= 1
        rpc.close()


def test_acknowledgements_that_nobody_asked_for(victim, attack):
    with victim.attacked():
        raw = attack()
        raw.write(PingFrame(0, opaque_data=bytes(8), flags=["ACK"]).serialize() * 10_000)
        assert raw.ping() or raw.goaway == ENHANCE_YOUR_CALM
        raw.write(SettingsFrame(0, flags=["ACK"]).serialize() * 10_000)
        raw.ping()
        assert raw.goaway in (None, PROTOCOL_ERROR, ENHANCE_YOUR_CALM)
