"""Avro object container files, written and read by the letter of the specification and by nothing
of ours, for tests of what is ours."""

import json
import struct
import zlib

MARK = b"a mark of blocks"
BIGTABLE_ROW = {
    "name": "BigtableRow",
    "type": "record",
    "namespace": "com.google.cloud.teleport.bigtable",
    "fields": [
        {"name": "key", "type": "bytes"},
        {"name": "cells", "type": {"type": "array", "items": {
            "name": "BigtableCell", "type": "record", "fields": [
                {"name": "family", "type": "string"},
                {"name": "qualifier", "type": "bytes"},
                {"name": "timestamp", "type": "long", "logicalType": "timestamp-micros"},
                {"name": "value", "type": "bytes"},
            ]}}},
    ],
}  # fmt: skip


def long(number):
    word = (number << 1) ^ (number >> 63)
    out = b""
    while word >= 0x80:
        out += bytes([word & 0x7F | 0x80])
        word >>= 7
    return out + bytes([word])


def text(value):
    data = value.encode() if isinstance(value, str) else value
    return long(len(data)) + data


def encode(schema, value):
    """Of the types that tests have. A value of a union is a pair: its branch and itself."""
    if isinstance(schema, list):
        branch, inner = value
        return long(branch) + encode(schema[branch], inner)
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind == "record":
        return b"".join(encode(each["type"], value[each["name"]]) for each in schema["fields"])
    if kind == "array":
        items = b"".join(encode(schema["items"], each) for each in value)
        return (long(len(value)) + items if value else b"") + long(0)
    if kind == "map":
        items = b"".join(text(k) + encode(schema["values"], v) for k, v in value.items())
        return (long(len(value)) + items if value else b"") + long(0)
    if kind == "enum":
        return long(schema["symbols"].index(value))
    if kind == "fixed":
        return value
    return {
        "null": lambda _: b"",
        "boolean": lambda v: bytes([v]),
        "int": long,
        "long": long,
        "float": lambda v: struct.pack("<f", v),
        "double": lambda v: struct.pack("<d", v),
        "bytes": text,
        "string": text,
    }[kind](value)


def pack(data):
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def write_file(path, schema, blocks, codec="null"):
    """`blocks`: lists of objects."""
    out = b"Obj\x01" + long(2)
    out += text("avro.codec") + text(codec) + text("avro.schema") + text(json.dumps(schema))
    out += long(0) + MARK
    for objects in blocks:
        data = b"".join(encode(schema, each) for each in objects)
        packed = pack(data) if codec == "deflate" else data
        out += long(len(objects)) + text(packed) + MARK
    path.write_bytes(out)


# --- reading what is a BigtableRow ---


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        assert self.at + size <= len(self.data)
        self.at += size
        return self.data[self.at - size : self.at]

    def long(self):
        word = shift = 0
        while True:
            byte = self.take(1)[0]
            word |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (word >> 1) ^ -(word & 1)

    def text(self):
        return self.take(self.long())

    def map(self):
        found = {}
        while count := self.long():
            assert count > 0
            for _ in range(count):
                name = self.text().decode()
                found[name] = self.text()
        return found


def read_row(reader):
    key, cells = reader.text(), []
    while count := reader.long():
        for _ in range(count):
            family, qualifier = reader.text().decode(), reader.text()
            cells.append((family, qualifier, reader.long(), reader.text()))
    return key, cells


def read_rows(path):
    """(key, [(family, qualifier, timestamp, value)]) of each BigtableRow of the file."""
    reader = Reader(path.read_bytes())
    assert reader.take(4) == b"Obj\x01"
    metadata = reader.map()
    assert json.loads(metadata["avro.schema"]) == BIGTABLE_ROW
    mark = reader.take(16)
    rows = []
    while reader.at < len(reader.data):
        count, data = reader.long(), reader.text()
        assert reader.take(16) == mark
        if metadata["avro.codec"] == b"deflate":
            data = zlib.decompress(data, wbits=-15)
        block = Reader(data)
        rows += [read_row(block) for _ in range(count)]
        assert block.at == len(data)
    return rows
