"""HTTP/2 and gRPC by hand: a client that sends whatever it is told to, in frames or in bytes.

`Raw(host)` is a connection. It answers the server's SETTINGS and PING when it reads them, and never
gives credit by itself. `outcome(stream)` says how a stream ended: an Answer, a Reset, or the end of
the whole connection, a Gone.
"""

import dataclasses
import select
import socket
import struct
import time

import hpack
from harness.patience import PATIENCE_SECONDS
from hyperframe.frame import (
    DataFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAME_BYTES = 16384
DATA = "/google.bigtable.v2.Bigtable/"

# HTTP/2's error codes
NO_ERROR = 0
PROTOCOL_ERROR = 1
FLOW_CONTROL_ERROR = 3
STREAM_CLOSED = 5
FRAME_SIZE_ERROR = 6
REFUSED_STREAM = 7
CANCEL = 8
COMPRESSION_ERROR = 9
ENHANCE_YOUR_CALM = 11


@dataclasses.dataclass
class Answer:
    """A stream that ended with END_STREAM."""

    headers: dict
    data: bytes

    @property
    def status(self):
        """gRPC's code."""
        return int(self.headers["grpc-status"])

    @property
    def text(self):
        return self.headers.get("grpc-message", "")

    def messages(self):
        data = self.data
        while data:
            flag, size = struct.unpack_from(">BI", data)
            assert flag == 0
            yield data[5 : 5 + size]
            data = data[5 + size :]


@dataclasses.dataclass
class Reset:
    code: int


@dataclasses.dataclass
class Gone:
    """The connection ended; `code` is GOAWAY's, or None if there was none."""

    code: int | None


def message(body, flag=0, size=None):
    """A gRPC message, or what pretends to be one."""
    return struct.pack(">BI", flag, len(body) if size is None else size) + body


def frame(kind, flags, stream, body):
    """Any frame at all."""
    return struct.pack(">IBBI", len(body), kind, flags, stream)[1:] + body


class Raw:
    def __init__(self, host, settings=None, preface=PREFACE, window=None):
        address, port = host.rsplit(":", 1)
        self.socket = socket.create_connection((address, int(port)), PATIENCE_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.encoder = hpack.Encoder()
        self.decoder = hpack.Decoder(max_header_list_size=1 << 20)
        self.buffer = b""
        self.replies = b""  # to SETTINGS and PING
        self.next_stream = 1
        self.streams = {}  # id: [headers, data, END_STREAM seen]
        self.resets = {}
        self.credits = {}
        self.initial_window = None
        self.goaway = None
        self.is_closed = False
        self.acknowledged_pings = 0
        if preface:
            self.write(preface)
            self.send(SettingsFrame(0, settings=settings or {}))
        if window:
            self.send(WindowUpdateFrame(0, window_increment=window))

    def close(self):
        self.socket.close()

    # --- writing ---

    def write(self, data):
        """All of it, after the answers that are due, reading meanwhile, so that neither side blocks
        the other. False: the server has closed the connection."""
        unsent = memoryview(self.replies + data)
        self.replies = b""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while unsent and not self.is_closed:
            assert time.monotonic() < deadline, "the server takes no bytes"
            readable, writable, _ = select.select([self.socket], [self.socket], [], 1)
            if readable:
                self.receive()
            if writable:
                unsent = unsent[self.write_some(unsent[: 1 << 20]) :]
        return not self.is_closed

    def write_some(self, data):
        try:
            return self.socket.send(data, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0
        except OSError:
            self.is_closed = True
            return len(data)

    def write_until_stuck(self, data):
        """As much as the socket takes, without reading; False once the server has hung up or will
        take no more."""
        try:
            while data:
                if not select.select([], [self.socket], [], 2)[1]:
                    return False
                data = data[self.socket.send(data, socket.MSG_DONTWAIT) :]
        except OSError:
            return False
        return True

    def send(self, *frames):
        return self.write(b"".join(each.serialize() for each in frames))

    def header_block(self, method, /, extra=(), **replaced):
        """Replaced: `path=`, `content_type=` ..., None leaves one out."""
        fields = {
            ":method": "POST",
            ":scheme": "http",
            ":path": method if method.startswith("/") else DATA + method,
            ":authority": "localhost",
            "content-type": "application/grpc",
            "te": "trailers",
        }
        for name, value in replaced.items():
            key = name.replace("_", "-")
            fields[":" + key if ":" + key in fields else key] = value
        kept = [(name, value) for name, value in fields.items() if value is not None]
        return self.encoder.encode([*kept, *extra])

    def open(self, method, /, extra=(), end=False, **replaced):
        """HEADERS of a new call; its stream."""
        stream = self.new_stream()
        block = self.header_block(method, extra, **replaced)
        pieces = [block[i : i + FRAME_BYTES] for i in range(0, len(block), FRAME_BYTES)]
        frames = [frame(1, 1 if end else 0, stream, pieces[0])]
        frames += [frame(9, 0, stream, piece) for piece in pieces[1:]]
        last = bytearray(frames[-1])
        last[4] |= 4  # END_HEADERS
        self.write(b"".join([*frames[:-1], bytes(last)]))
        return stream

    def new_stream(self):
        stream = self.next_stream
        self.next_stream += 2
        self.streams[stream] = [{}, b"", False]
        return stream

    def data(self, stream, data, end=True):
        """DATA without a look at windows, in the largest frames."""
        pieces = [data[i : i + FRAME_BYTES] for i in range(0, len(data), FRAME_BYTES)] or [b""]
        out = [frame(0, 0, stream, piece) for piece in pieces[:-1]]
        out.append(frame(0, 1 if end else 0, stream, pieces[-1]))
        return self.write(b"".join(out))

    def call(self, method, body, /, extra=(), **replaced):
        """A whole request with one message; its stream."""
        stream = self.open(method, extra, **replaced)
        self.data(stream, message(body))
        return stream

    def upload(self, stream, pieces):
        """DATA within the windows that the server gives; stops early once the stream has ended."""
        credit = Credit(self, stream)
        for piece in pieces:
            while piece:
                if not credit.wait():
                    return
                size = min(len(piece), credit.available(), FRAME_BYTES)
                self.write(frame(0, 0, stream, piece[:size]))
                credit.spend(size)
                piece = piece[size:]
        self.write(frame(0, 1, stream, b""))

    # --- reading ---

    def receive(self):
        """What has come; waits for something."""
        try:
            data = self.socket.recv(1 << 20)
        except OSError:
            data = b""
        if not data:
            self.is_closed = True
        self.buffer += data
        while len(self.buffer) >= 9:
            header, size = Frame.parse_frame_header(memoryview(self.buffer[:9]))
            if len(self.buffer) < 9 + size:
                break
            header.parse_body(memoryview(self.buffer[9 : 9 + size]))
            self.buffer = self.buffer[9 + size :]
            self.take(header)

    def take(self, got):
        if isinstance(got, SettingsFrame) and "ACK" not in got.flags:
            self.initial_window = got.settings.get(SettingsFrame.INITIAL_WINDOW_SIZE, 65535)
            self.replies += SettingsFrame(0, flags=["ACK"]).serialize()
        elif isinstance(got, PingFrame):
            self.take_ping(got)
        elif isinstance(got, HeadersFrame):
            self.streams[got.stream_id][0].update(self.decoder.decode(got.data))
            self.streams[got.stream_id][2] |= "END_STREAM" in got.flags
        elif isinstance(got, DataFrame):
            self.streams[got.stream_id][1] += got.data
            self.streams[got.stream_id][2] |= "END_STREAM" in got.flags
        elif isinstance(got, RstStreamFrame):
            self.resets.setdefault(got.stream_id, got.error_code)
        elif isinstance(got, GoAwayFrame):
            self.goaway = got.error_code
        elif isinstance(got, WindowUpdateFrame):
            credit = self.credits.get(got.stream_id, 0)
            self.credits[got.stream_id] = credit + got.window_increment

    def take_ping(self, got):
        if "ACK" in got.flags:
            self.acknowledged_pings += 1
        else:
            self.replies += PingFrame(0, opaque_data=got.opaque_data, flags=["ACK"]).serialize()

    def wait(self, condition):
        """Reads until the condition holds or the connection is closed."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            self.write(b"")  # it may read, too, and so what is waited for may have come
            if condition() or self.is_closed:
                break
            left = deadline - time.monotonic()
            assert left > 0, "the server does not answer"
            if select.select([self.socket], [], [], left)[0]:
                self.receive()
        return condition()

    def outcome(self, stream):
        state = self.streams[stream]
        self.wait(lambda: state[2] or stream in self.resets or self.goaway is not None)
        if state[2]:
            return Answer(dict(state[0]), state[1])
        if stream in self.resets:
            return Reset(self.resets[stream])
        return self.end()

    def end(self):
        """Waits until the server has closed the connection."""
        self.wait(lambda: self.is_closed)
        return Gone(self.goaway)

    def ping(self):
        """A round trip: whatever was sent before has been seen."""
        wanted = self.acknowledged_pings + 1
        self.send(PingFrame(0, opaque_data=b"hostile!"))
        self.wait(lambda: self.acknowledged_pings >= wanted or self.goaway is not None)
        return self.acknowledged_pings >= wanted


class Credit:
    """How much may be sent on a stream, by the server's SETTINGS and WINDOW_UPDATEs; on a
    connection whose other streams send nothing."""

    def __init__(self, raw, stream):
        self.raw = raw
        self.stream = stream
        self.spent = 0
        raw.wait(lambda: raw.initial_window is not None)

    def available(self):
        credits = self.raw.credits
        in_connection = 65535 + credits.get(0, 0) - self.spent
        in_stream = self.raw.initial_window + credits.get(self.stream, 0) - self.spent
        return min(in_connection, in_stream)

    def spend(self, size):
        self.spent += size

    def is_over(self):
        raw = self.raw
        return raw.streams[self.stream][2] or self.stream in raw.resets or raw.goaway is not None

    def wait(self):
        """False: the stream, or the connection, is over."""
        self.raw.wait(lambda: self.available() > 0 or self.is_over())
        return not self.is_over() and not self.raw.is_closed
