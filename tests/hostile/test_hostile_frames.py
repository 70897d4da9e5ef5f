"""Frames that HTTP/2 forbids. Each ends its stream or its connection, with the code of RFC 9113."""

import struct

import pytest
from hyperframe.frame import SettingsFrame, WindowUpdateFrame
from raw import (
    CANCEL,
    COMPRESSION_ERROR,
    ENHANCE_YOUR_CALM,
    FLOW_CONTROL_ERROR,
    FRAME_SIZE_ERROR,
    PROTOCOL_ERROR,
    REFUSED_STREAM,
    STREAM_CLOSED,
    Answer,
    Gone,
    Reset,
    frame,
    message,
)

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW, CONTINUATION = (
    range(10)
)
END_STREAM, END_HEADERS, PADDED, WITH_PRIORITY = 1, 4, 8, 32

BROKEN = {
    "frame too long": (frame(DATA, 0, 1, bytes(16385)), FRAME_SIZE_ERROR),
    "data on stream 0": (frame(DATA, 0, 0, b"x"), PROTOCOL_ERROR),
    "data on a stream that is not open": (frame(DATA, 0, 9, b"x"), PROTOCOL_ERROR),
    "headers on stream 0": (frame(HEADERS, END_HEADERS, 0, b"\x83"), PROTOCOL_ERROR),
    "headers on a server's stream": (frame(HEADERS, END_HEADERS, 2, b"\x83"), PROTOCOL_ERROR),
    "header block that is no HPACK": (
        frame(HEADERS, END_HEADERS, 1, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
        COMPRESSION_ERROR,
    ),
    "index outside the header table": (
        frame(HEADERS, END_HEADERS, 1, b"\xff\x80\x01"),
        COMPRESSION_ERROR,
    ),
    "padding longer than the frame": (
        frame(HEADERS, END_HEADERS | PADDED, 1, b"\x0a\x83"),
        PROTOCOL_ERROR,
    ),
    "reset on stream 0": (frame(RST_STREAM, 0, 0, bytes(4)), PROTOCOL_ERROR),
    "reset of an idle stream": (frame(RST_STREAM, 0, 9, bytes(4)), PROTOCOL_ERROR),
    "reset of the wrong size": (frame(RST_STREAM, 0, 1, bytes(3)), FRAME_SIZE_ERROR),
    "settings of a stream": (frame(SETTINGS, 0, 1, b""), PROTOCOL_ERROR),
    "settings of the wrong size": (frame(SETTINGS, 0, 0, bytes(5)), FRAME_SIZE_ERROR),
    "acknowledged settings with a body": (frame(SETTINGS, 1, 0, bytes(6)), FRAME_SIZE_ERROR),
    "window setting over 2^31-1": (
        frame(SETTINGS, 0, 0, struct.pack(">HI", SettingsFrame.INITIAL_WINDOW_SIZE, 1 << 31)),
        FLOW_CONTROL_ERROR,
    ),
    "frame size setting too small": (
        frame(SETTINGS, 0, 0, struct.pack(">HI", SettingsFrame.MAX_FRAME_SIZE, 1)),
        PROTOCOL_ERROR,
    ),
    "push promise from a client": (
        frame(PUSH_PROMISE, END_HEADERS, 1, struct.pack(">I", 2)),
        PROTOCOL_ERROR,
    ),
    "ping of the wrong size": (frame(PING, 0, 0, bytes(7)), FRAME_SIZE_ERROR),
    "ping of a stream": (frame(PING, 0, 1, bytes(8)), PROTOCOL_ERROR),
    "window update of nothing": (frame(WINDOW, 0, 0, bytes(4)), PROTOCOL_ERROR),
    "window update of the wrong size": (frame(WINDOW, 0, 0, bytes(3)), FRAME_SIZE_ERROR),
    "window over 2^31-1": (
        frame(WINDOW, 0, 0, struct.pack(">I", 0x7FFFFFFF)),
        FLOW_CONTROL_ERROR,
    ),
    "continuation of nothing": (frame(CONTINUATION, END_HEADERS, 1, b"\x83"), PROTOCOL_ERROR),
    "another frame between headers": (
        frame(HEADERS, 0, 1, b"\x83") + frame(PING, 0, 0, bytes(8)),
        PROTOCOL_ERROR,
    ),
}


@pytest.mark.parametrize(("broken", "code"), BROKEN.values(), ids=BROKEN)
def test_broken_frame_ends_the_connection(victim, attack, broken, code):
    with victim.attacked():
        raw = attack()
        raw.write(broken)
        # nghttp2 counts a padding or a block that is wrong as either of two errors.
        assert raw.end() in (Gone(code), Gone(PROTOCOL_ERROR))


def test_first_frame_is_no_settings(victim, attack):
    with victim.attacked():
        raw = attack(preface=b"")
        raw.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(PING, 0, 0, bytes(8)))
        assert raw.end() == Gone(PROTOCOL_ERROR)


def test_preface_gone_wrong(victim, attack):
    """Whoever sends it reads frames: no answer in HTTP/1.1, and the connection ends."""
    with victim.attacked():
        raw = attack(preface=b"")
        raw.write(b"INVALID CONNECTION PREFACE\r\n\r\n")
        assert raw.end() == Gone(None)
        assert raw.buffer == b""


def again(raw, stream):
    """A frame of each kind that must not come on a stream that its client has ended or reset."""
    return {
        "HEADERS": frame(HEADERS, END_HEADERS | END_STREAM, stream, raw.header_block("MutateRow")),
        "DATA": frame(DATA, END_STREAM, stream, b"more"),
    }


@pytest.mark.parametrize("kind", ["HEADERS", "DATA"])
def test_ended_stream_goes_on(victim, attack, kind):
    """There is no second answer on it."""
    with victim.attacked():
        raw = attack()
        raw.outcome(raw.call("NoSuchMethod", b""))
        raw.streams[1] = [{}, b"", False]
        raw.write(again(raw, 1)[kind])
        assert raw.end() == Gone(STREAM_CLOSED)
        assert raw.streams[1] == [{}, b"", False]


@pytest.mark.parametrize("kind", ["HEADERS", "DATA"])
def test_stream_that_was_reset_goes_on(victim, attack, kind):
    with victim.attacked():
        raw = attack()
        stream = raw.open("MutateRow")
        raw.write(frame(RST_STREAM, 0, stream, struct.pack(">I", CANCEL)))
        raw.write(again(raw, stream)[kind])
        assert raw.outcome(stream) == Reset(STREAM_CLOSED)
        assert goes_on(raw)


def test_stream_id_that_goes_back(victim, attack):
    with victim.attacked():
        raw = attack()
        raw.next_stream = 5
        raw.outcome(raw.call("NoSuchMethod", b""))
        raw.write(frame(HEADERS, END_HEADERS | END_STREAM, 3, raw.header_block("NoSuchMethod")))
        assert raw.end() == Gone(PROTOCOL_ERROR)


def test_stream_that_the_server_ended_goes_on(victim, attack):
    """What was on its way when the answer came is no offence."""
    with victim.attacked():
        raw = attack()
        stream = raw.open("NoSuchMethod")
        assert raw.outcome(stream).status == 12
        raw.data(stream, b"more", end=False)
        raw.data(stream, b"more")
        assert goes_on(raw)


def test_headers_end_before_their_frame_does(victim, attack):
    """The connection ends in the middle of everything: a header block, a message, a frame."""
    with victim.attacked():
        for cut in (
            frame(HEADERS, 0, 1, b"\x83"),
            frame(HEADERS, END_HEADERS, 1, b"\x83")[:-1],
            b"\x00\x00",
        ):
            raw = attack()
            raw.write(cut)
            raw.close()
        raw = attack()
        stream = raw.open("MutateRow")
        raw.data(stream, message(b"x", size=1000), end=False)
        raw.close()


# --- streams that end, on a connection that goes on ---


def goes_on(raw):
    answer = raw.outcome(raw.call("NoSuchMethod", b""))
    return isinstance(answer, Answer) and answer.status == 12


BAD_HEADERS = {
    "no path": {"path": None},
    "no method": {"method": None},
    "no scheme": {"scheme": None},
    "connection header": {"extra": [("connection", "keep-alive")]},
    "upper case": {"extra": [("X-Upper", "a")]},
    "newline in a value": {"extra": [("x-evil", "a\r\nb: c")]},
    "pseudo header at the end": {"extra": [(":path", "/b")]},
    "unknown pseudo header": {"extra": [(":evil", "1")]},
    "te with something else": {"te": "gzip"},
}


@pytest.mark.parametrize("fields", BAD_HEADERS.values(), ids=BAD_HEADERS)
def test_malformed_request_ends_its_stream(victim, attack, fields):
    with victim.attacked():
        raw = attack()
        assert raw.outcome(raw.open("MutateRow", end=True, **{"extra": [], **fields})) == Reset(
            PROTOCOL_ERROR
        )
        assert goes_on(raw)


def test_content_length_that_is_a_lie(victim, attack):
    with victim.attacked():
        raw = attack()
        stream = raw.call("MutateRow", b"abc", extra=[("content-length", "5")])
        assert raw.outcome(stream) == Reset(PROTOCOL_ERROR)
        assert goes_on(raw)


def test_window_update_of_nothing_on_a_stream(victim, attack):
    with victim.attacked():
        raw = attack()
        stream = raw.open("MutateRow")
        raw.write(frame(WINDOW, 0, stream, bytes(4)))
        assert raw.outcome(stream) in (Reset(PROTOCOL_ERROR), Gone(PROTOCOL_ERROR))


def test_window_over_the_limit_on_a_stream(victim, attack):
    with victim.attacked():
        raw = attack()
        stream = raw.open("MutateRow")
        raw.send(WindowUpdateFrame(stream, window_increment=0x7FFFFFFF))
        assert raw.outcome(stream) == Reset(FLOW_CONTROL_ERROR)
        assert goes_on(raw)


def test_more_data_than_the_window(victim, attack):
    """Two messages are promised that take all of the connection's budget: a third one's window
    stays small."""
    with victim.attacked():
        raw = attack()
        for _ in range(2):
            raw.data(raw.open("MutateRow"), message(b"x", size=256 << 20), end=False)
        stream = raw.open("MutateRow")
        raw.data(stream, message(bytes(1 << 20)))
        assert raw.outcome(stream) in (Reset(FLOW_CONTROL_ERROR), Gone(FLOW_CONTROL_ERROR))


def test_data_after_the_end_of_a_stream(victim, attack):
    """Whether the answer comes first or not."""
    with victim.attacked():
        raw = attack()
        raw.data(raw.call("NoSuchMethod", b""), b"more")
        assert raw.end() == Gone(STREAM_CLOSED)


def test_more_streams_than_allowed(victim, attack):
    """1,000 are. A client that has heard so and opens more has lost its count: the connection ends,
    or the surplus is refused."""
    with victim.attacked(megabytes=128):
        raw = attack()
        raw.ping()
        streams = [raw.open("MutateRow") for _ in range(1000)]
        assert raw.ping()
        assert not raw.resets
        streams = [raw.open("MutateRow") for _ in range(100)]
        outcomes = [raw.outcome(stream) for stream in streams]
        assert set(map(str, outcomes)) <= {
            str(Reset(REFUSED_STREAM)),
            str(Gone(PROTOCOL_ERROR)),
            str(Gone(ENHANCE_YOUR_CALM)),
        }


def test_frames_of_unknown_types_are_ignored(victim, attack):
    with victim.attacked():
        raw = attack()
        raw.write(b"".join(frame(0x20 + i % 64, 0xFF, 0, bytes(100)) for i in range(10_000)))
        assert goes_on(raw)


def test_priorities_are_ignored(victim, attack):
    with victim.attacked():
        raw = attack()
        raw.write(b"".join(frame(PRIORITY, 0, 2 * i + 1, bytes(5)) for i in range(1, 10_000)))
        assert goes_on(raw)


def test_cancel_of_a_request_that_is_not_whole(victim, attack):
    with victim.attacked():
        raw = attack()
        stream = raw.open("MutateRow")
        raw.data(stream, message(b"x", size=100), end=False)
        raw.write(frame(RST_STREAM, 0, stream, struct.pack(">I", CANCEL)))
        assert goes_on(raw)


def test_a_preface_twice(victim, attack):
    with victim.attacked():
        raw = attack()
        raw.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        assert raw.end().code in (FRAME_SIZE_ERROR, PROTOCOL_ERROR)
