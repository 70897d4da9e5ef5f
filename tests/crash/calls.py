"""Many calls of Datastore's API at a time from one thread, at a few microseconds each.

gRPC over HTTP/2 by hand: one connection, requests whose headers are bytes made once, and no dynamic
table, so that headers that were seen before are known by their bytes. Only what a test needs that
calls one server in good order: requests of some kilobytes, answers of any size.

A *client* is a generator: it yields (method, request), and gets what came of it, a Reply. Every
client of a `Calls` has one call under way at a time. When the connection ends, each gets Lost.
"""

import select
import socket
import struct
from typing import NamedTuple

import hpack
from google.cloud.datastore_v1 import types

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
MOST_WINDOW = 2**31 - 1
FIRST_WINDOW = 65535
FRAME = struct.Struct(">HBBBI")  # of the size, the two upper bytes; its third; type, flags, stream
READ_BYTES = 1 << 18
REMEMBERED = 10_000

METHODS = {
    "Lookup": types.LookupResponse.pb(),
    "RunQuery": types.RunQueryResponse.pb(),
    "RunAggregationQuery": types.RunAggregationQueryResponse.pb(),
    "BeginTransaction": types.BeginTransactionResponse.pb(),
    "Commit": types.CommitResponse.pb(),
    "Rollback": types.RollbackResponse.pb(),
}


class Lost(Exception):
    """The connection ended before the answer."""


class Reply(NamedTuple):
    code: int  # gRPC's; 0: all is well
    message: str
    answer: object  # of a call that succeeded


def frame(kind, flags, stream, body):
    size = len(body)
    return FRAME.pack(size >> 8, size & 255, kind, flags, stream) + body


def literal(name, value):
    """A header, not for the dynamic table."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def request_headers(host, method):
    path = f"/google.datastore.v1.Datastore/{method}".encode()
    named = {b":path": path, b":authority": host.encode(), b"te": b"trailers"}
    named[b"content-type"] = b"application/grpc"
    return b"\x83\x86" + b"".join(literal(*each) for each in named.items())  # POST, http


class Stream:
    __slots__ = ("body", "client", "method")

    def __init__(self, client, method):
        self.client, self.method, self.body = client, method, b""


class Calls:
    def __init__(self, host):
        self.headers = {method: request_headers(host, method) for method in METHODS}
        self.streams = {}
        self.next_stream = 1
        self.received = b""
        self.output = []
        self.known_headers = {}
        self.window = FIRST_WINDOW  # what the server takes
        self.stream_window = FIRST_WINDOW
        self.waiting = []  # clients that have a call for which the window is too small
        address, port = host.rsplit(":", 1)
        self.socket = socket.create_connection((address, int(port)), 60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ours = struct.pack(">HIHIHI", 1, 0, 2, 0, 4, MOST_WINDOW)  # no table, no push, wide windows
        wider = struct.pack(">I", MOST_WINDOW - FIRST_WINDOW)
        self.socket.sendall(PREFACE + frame(SETTINGS, 0, 0, ours) + frame(WINDOW, 0, 0, wider))

    def close(self):
        self.socket.close()

    @property
    def is_idle(self):
        return not self.streams and not self.waiting

    # --- clients ---

    def begin(self, client):
        """Runs it up to its first call."""
        self.resume(client, None)

    def resume(self, client, reply):
        try:
            method, request = client.send(reply)
        except StopIteration:
            return
        self.call(client, method, request)

    def call(self, client, method, request):
        body = request.SerializeToString()
        size = len(body) + 5
        assert size <= min(self.stream_window, 16384), "a request of many frames"
        if size > self.window:
            self.waiting.append((client, method, request))
            return
        self.window -= size
        number = self.next_stream
        self.next_stream += 2
        self.streams[number] = Stream(client, method)
        self.output += (
            frame(HEADERS, END_HEADERS, number, self.headers[method]),
            frame(DATA, END_STREAM, number, b"\0" + struct.pack(">I", len(body)) + body),
        )

    def lose(self):
        """The connection has ended: every client is told."""
        self.close()
        clients = [stream.client for stream in self.streams.values()]
        clients += [client for client, _, _ in self.waiting]
        self.streams, self.waiting = {}, []
        for client in clients:
            try:
                client.throw(Lost())
            except (StopIteration, Lost):
                continue
            raise AssertionError("a client goes on without its connection")

    # --- frames ---

    def turn(self, seconds, *others):
        """Sends what is to be sent, and takes in what comes within that time; gives those of
        `others` that can be read. OSError when the connection has ended."""
        if self.output:
            self.socket.sendall(b"".join(self.output))
            self.output = []
        readable, _, _ = select.select([self.socket, *others], [], [], seconds)
        if self.socket in readable:
            readable.remove(self.socket)
            data = self.socket.recv(READ_BYTES)
            if not data:
                raise ConnectionError("the server has ended the connection")
            self.take(self.received + data)
        return readable

    def take(self, data):
        at, end = 0, len(data)
        while end - at >= 9:
            high, low, kind, flags, number = FRAME.unpack_from(data, at)
            after = at + 9 + (high << 8 | low)
            if after > end:
                break
            self.take_frame(kind, flags, number, data[at + 9 : after])
            at = after
        self.received = data[at:]

    def take_frame(self, kind, flags, number, body):
        if kind == DATA:
            self.streams[number].body += body
        elif kind == HEADERS:
            assert flags & END_HEADERS, "headers of several frames"
            if flags & END_STREAM:
                self.answer(self.streams.pop(number), body)
        elif kind == SETTINGS and not flags & ACK:
            self.settle(body)
            self.output.append(frame(SETTINGS, ACK, 0, b""))
        elif kind == PING and not flags & ACK:
            self.output.append(frame(PING, ACK, 0, body))
        elif kind == WINDOW and number == 0:
            self.window += struct.unpack(">I", body)[0]
            again, self.waiting = self.waiting, []
            for each in again:
                self.call(*each)
        elif kind in (RESET, GOAWAY):
            raise ConnectionError("the server has ended a stream, or all")

    def settle(self, body):
        for name, value in struct.iter_unpack(">HI", body):
            if name == 4:
                self.stream_window = value

    def trailers(self, block):
        found = self.known_headers.get(block)
        if found is None:
            headers = {bytes(k): bytes(v) for k, v in hpack.Decoder().decode(block, raw=True)}
            found = int(headers[b"grpc-status"]), headers.get(b"grpc-message", b"").decode()
            if len(self.known_headers) < REMEMBERED:
                self.known_headers[block] = found
        return found

    def answer(self, stream, block):
        code, message = self.trailers(block)
        answer = METHODS[stream.method].FromString(stream.body[5:]) if code == 0 else None
        self.resume(stream.client, Reply(code, message, answer))


def call_once(host, method, request):
    """One call: its Reply."""
    replies = []

    def client():
        replies.append((yield method, request))

    calls = Calls(host)
    calls.begin(client())
    while not replies:
        calls.turn(60)
    calls.close()
    return replies[0]
