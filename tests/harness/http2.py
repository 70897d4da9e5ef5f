"""A client of HTTP/2: with prior knowledge, or over TLS that has agreed on h2.

One connection; requests one after the other, or started together and awaited later."""

import socket

import h2.config
import h2.connection
import h2.events
import h2.settings
from harness.patience import PATIENCE_SECONDS

READ_BYTES = 1 << 16
FRAME_HEADER, GOAWAY = 9, 7


class Answer:
    """What has come on a stream so far."""

    def __init__(self):
        self.headers = {}
        self.body = bytearray()
        self.is_whole = False
        self.reset = None  # the error code

    @property
    def status(self):
        return int(self.headers[":status"])


class Http2:
    """`context`: an ssl.SSLContext, or None. Without `reads` windows are not opened again once they
    are used up."""

    def __init__(self, host, context=None, reads=True):
        self.host = host
        address, port = host.rsplit(":", 1)
        self.socket = socket.create_connection((address, int(port)), PATIENCE_SECONDS)
        if context is not None:
            context.set_alpn_protocols(["h2"])
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
            assert self.socket.selected_alpn_protocol() == "h2"
        self.reads = reads
        self.received = b""  # less than a frame
        self.answers = {}
        self.is_leaving = False  # the server has said GOAWAY
        self.is_closed = False
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.flush()

    def close(self):
        self.socket.close()

    def flush(self):
        self.socket.sendall(self.h2.data_to_send())

    def read(self):
        """Waits for something to come, and takes it in."""
        data = self.socket.recv(READ_BYTES)
        self.is_closed = not data
        self.received += data
        for frame in self.frames():
            for event in self.h2.receive_data(frame):
                self.take(event)
        if not self.is_closed:
            self.flush()

    def frames(self):
        """What has come, frame by frame. The library's connection ends with GOAWAY, at which ours
        has answers to read: it does not hear of it."""
        while len(self.received) >= FRAME_HEADER:
            size = FRAME_HEADER + int.from_bytes(self.received[:3], "big")
            if len(self.received) < size:
                return
            frame, self.received = self.received[:size], self.received[size:]
            if frame[3] == GOAWAY:
                self.is_leaving = True
            else:
                yield frame

    def take(self, event):
        answer = self.answers.get(getattr(event, "stream_id", None))
        if isinstance(event, (h2.events.ResponseReceived, h2.events.TrailersReceived)):
            answer.headers.update(event.headers)
        elif isinstance(event, h2.events.DataReceived):
            answer.body += event.data
            if self.reads:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            answer.is_whole = True
        elif isinstance(event, h2.events.StreamReset):
            answer.reset = event.error_code

    def start(self, verb, path, headers=(), ends=True):
        """The stream of a new request; `ends`: it has no body."""
        stream = self.h2.get_next_available_stream_id()
        fields = {":method": verb, ":scheme": "http", ":authority": self.host, ":path": path}
        fields.update(headers)
        self.answers[stream] = Answer()
        self.h2.send_headers(stream, fields.items(), end_stream=ends)
        self.flush()
        return stream

    def send(self, stream, body):
        """The whole body, or as much of it as the server wants before it answers."""
        answer = self.answers[stream]
        body = memoryview(body)
        while body:
            size = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
            if size == 0:
                self.read()
                if answer.headers or answer.reset is not None:
                    return
                continue
            self.h2.send_data(stream, bytes(body[:size]))
            body = body[size:]
            self.flush()
        self.h2.end_stream(stream)
        self.flush()

    def wait(self, stream):
        """The answer, whole or reset."""
        answer = self.answers[stream]
        while not answer.is_whole and answer.reset is None and not self.is_closed:
            self.read()
        return answer

    def ask(self, verb, path, body=b"", headers=()):
        stream = self.start(verb, path, headers, ends=not body)
        if body:
            self.send(stream, body)
        return self.wait(stream)
