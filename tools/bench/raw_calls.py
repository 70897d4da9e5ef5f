"""Calls of gRPC by hand, one a connection: for cells that are larger than `trestle bench` writes,
and for clients that do what no library lets them, such as to stop reading within a message.

No header of an answer is looked at: a call has gone well if a message came.
"""

import socket
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
INITIAL_WINDOW_SIZE = 4
STREAM = 1
FRAME_BYTES = 16384
WIDE = (1 << 31) - 1 - 65535
PATIENCE_SECONDS = 600

# --- messages ---


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(content)) + content


def create_table(instance, table, family):
    families = field(3, field(1, family) + field(2, b""))
    body = field(1, instance) + field(2, table) + field(3, families)
    return "/google.bigtable.admin.v2.BigtableTableAdmin/CreateTable", body


def set_cell(table, key, family, value, qualifier="q"):
    cell = field(1, family) + field(2, qualifier) + varint(3 << 3) + varint(1000) + field(4, value)
    body = field(1, table) + field(2, key) + field(3, field(1, cell))
    return "/google.bigtable.v2.Bigtable/MutateRow", body


def read_row(table, key, row_filter=b""):
    body = field(1, table) + field(2, field(1, key))
    return "/google.bigtable.v2.Bigtable/ReadRows", body + row_filter


def looks_at_values(table, key, family):
    """{what: request} of all values of a row. All begin with "0"."""
    all_of_it, none = (field(15, field(1, low) + field(4, high)) for low, high in ("01", "12"))
    mutation = field(1, field(1, family) + field(2, "looked") + field(4, "1"))
    append = field(1, family) + field(2, "q0") + field(3, "1")
    row, service = field(1, table) + field(2, key), "/google.bigtable.v2.Bigtable"
    check = row + field(6, none) + field(5, mutation)
    return {
        "read by value": read_row(table, key, field(3, all_of_it)),
        "sifted by value": read_row(table, key, field(3, none)),
        "checked by value": (f"{service}/CheckAndMutateRow", check),
        "appended to": (f"{service}/ReadModifyWriteRow", row + field(3, append)),
    }


# --- a call ---


class Call:
    """One call, on a connection of its own, for a `with` statement."""

    def __init__(self, endpoint, request):
        host, port = endpoint.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), PATIENCE_SECONDS)
        self.room = {0: 65535, STREAM: 65535}  # what may be sent
        self.initial = 65535
        self.received = 0  # bytes of DATA
        self.is_over = False
        path, message = request
        self.socket.sendall(PREFACE)
        self.send(SETTINGS, 0, 0, b"")
        self.send(HEADERS, END_HEADERS, STREAM, self.headers(endpoint, path))
        self.send_body(b"\0" + struct.pack(">I", len(message)) + message)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    @staticmethod
    def headers(endpoint, path):
        fields = {":method": "POST", ":scheme": "http", ":path": path, ":authority": endpoint,
                  "content-type": "application/grpc", "te": "trailers"}  # fmt: skip
        out = bytearray()
        for name, value in fields.items():
            out += bytes([0, len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
        return bytes(out)

    def send(self, kind, flags, stream, payload):
        head = struct.pack(">I", len(payload))[1:] + bytes([kind, flags])
        self.socket.sendall(head + struct.pack(">I", stream) + payload)

    def send_body(self, body):
        body = memoryview(body)
        while body and not self.is_over:
            size = min(FRAME_BYTES, len(body), *self.room.values())
            if size <= 0:
                self.receive()
                continue
            self.send(DATA, 0, STREAM, body[:size].tobytes())
            for stream in self.room:
                self.room[stream] -= size
            body = body[size:]
        if not self.is_over:
            self.send(DATA, END_STREAM, STREAM, b"")

    def take(self, size):
        out = bytearray()
        while len(out) < size:
            got = self.socket.recv(size - len(out))
            if not got:
                raise ConnectionError("the server has closed the connection")
            out += got
        return bytes(out)

    def receive(self):
        """The next frame; what it says is done."""
        head = self.take(9)
        kind, flags, stream = head[3], head[4], struct.unpack(">I", head[5:])[0]
        payload = self.take(int.from_bytes(head[:3], "big"))
        if kind == DATA:
            self.received += len(payload)
        elif kind == SETTINGS and not flags & ACK:
            self.settle(payload)
        elif kind == PING and not flags & ACK:
            self.send(PING, ACK, 0, payload)
        elif kind == WINDOW_UPDATE:
            self.room[stream] += struct.unpack(">I", payload)[0]
        elif kind in (RST_STREAM, GOAWAY):
            self.is_over = True
        self.is_over |= kind in (DATA, HEADERS) and bool(flags & END_STREAM)

    def settle(self, payload):
        for at in range(0, len(payload), 6):
            name, value = struct.unpack(">HI", payload[at : at + 6])
            if name == INITIAL_WINDOW_SIZE:
                self.room[STREAM] += value - self.initial
                self.initial = value
        self.send(SETTINGS, ACK, 0, b"")

    def stop_after(self, size):
        """Reads so much, at most a window; the rest has to wait."""
        while self.received < size and not self.is_over:
            self.receive()

    def finish(self):
        """The bytes of all messages; 0: it has failed."""
        for stream in (0, STREAM):
            self.send(WINDOW_UPDATE, 0, stream, struct.pack(">I", WIDE))
        while not self.is_over:
            self.receive()
        return self.received


def ask(endpoint, request):
    with Call(endpoint, request) as call:
        return call.finish()
