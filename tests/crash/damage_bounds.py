"""What may be out of service, or lost, after damage: by the damaged file's own words.

Of a table file `Table` tells which keys lie in the bytes that are not what they were. It reads the
format by itself, and takes nothing from what the server says of the damage: tables of format 5,
whose blocks are LZ4 or not compressed, without partitions in the index.

    data blocks … meta blocks, index    each with a byte, how it is compressed, and a checksum
    footer                              where the index and the list of meta blocks are

Of a write-ahead log `synced_lengths` tells how far it had been synced, by the file SYNCED; what was
written up to where, who writes has to know (`damage_model.py`).
"""

import struct

import google_crc32c

TRAILER = 5  # bytes: how a block is compressed, its checksum
FOOTER = 53
SEQUENCE = 8  # bytes behind each key of a data block
MAGIC = bytes.fromhex("f7cff485b741e288")


# --- blocks of a table file ---


class Reader:
    def __init__(self, data):
        self.data = data
        self.at = 0

    def varint(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def bytes(self, count):
        self.at += count
        return self.data[self.at - count : self.at]

    def handle(self):
        return self.varint(), self.varint()

    def is_done(self):
        return self.at >= len(self.data)


def length(reader, nibble):
    """Of a sequence of LZ4's: four bits that are all set go on."""
    byte = 255 if nibble == 15 else 0
    while byte == 255:
        byte = reader.bytes(1)[0]
        nibble += byte
    return nibble


def expand_lz4(data):
    reader, out = Reader(data), bytearray()
    reader.varint()  # its size
    while True:
        token = reader.bytes(1)[0]
        out += reader.bytes(length(reader, token >> 4))
        if reader.is_done():
            return bytes(out)
        back = int.from_bytes(reader.bytes(2), "little")
        for _ in range(length(reader, token & 15) + 4):
            out.append(out[-back])


def entries(block, is_index=False):
    """(key, value) of each; of an index the value is the block's (offset, size)."""
    restarts = struct.unpack("<I", block[-4:])[0] & 0x7FFFFFFF
    reader = Reader(block[: len(block) - 4 * (restarts + 1)])
    key, place = b"", (0, 0)
    while not reader.is_done():
        shared, more = reader.varint(), reader.varint()
        size = None if is_index else reader.varint()
        key = key[:shared] + reader.bytes(more)
        if not is_index:
            yield key, reader.bytes(size)
            continue
        if shared == 0:
            place = reader.handle()
        else:  # by how much it is larger than the one before
            zigzag = reader.varint()
            place = place[0] + place[1] + TRAILER, place[1] + ((zigzag >> 1) ^ -(zigzag & 1))
        yield key, place


class Table:
    """A table file as it was before the damage. ValueError, IndexError: it is not whole yet."""

    def __init__(self, data):
        self.data = data
        if data[-8:] != MAGIC:
            raise ValueError("no table")
        footer = Reader(data[-FOOTER + 1 :])
        lists, index = footer.handle(), footer.handle()
        meta = dict(entries(self.block(lists)))
        properties = dict(entries(self.block(Reader(meta[b"rocksdb.properties"]).handle())))
        self.keyspace = properties[b"rocksdb.column.family.name"]
        self.has_sequences = properties[b"rocksdb.index.key.is.user.key"] != b"\1"
        self.blocks = list(self.data_blocks(index))  # (first byte, end, first key, behind the last)
        self.whole = self.all_keys(meta)

    def block(self, place):
        offset, size = place
        raw = self.data[offset : offset + size]
        return expand_lz4(raw) if self.data[offset + size] == 4 else raw

    def data_blocks(self, index):
        begin = b""
        for key, (offset, size) in entries(self.block(index), True):
            last = key[:-SEQUENCE] if self.has_sequences else key
            yield offset, offset + size + TRAILER, begin, last + b"\0"
            begin = last if self.has_sequences else last + b"\0"

    def all_keys(self, meta):
        """From the first to behind the last, of what it deletes by ranges, too."""
        ranges = []
        if self.blocks:
            offset, end, _, _ = self.blocks[0]
            first, _ = next(entries(self.block((offset, end - offset - TRAILER))))
            ranges.append((first[:-SEQUENCE], self.blocks[-1][3]))
        if b"rocksdb.range_del" in meta:
            deleted = entries(self.block(Reader(meta[b"rocksdb.range_del"]).handle()))
            ranges += [(key[:-SEQUENCE], end + b"\0") for key, end in deleted]
        return min(begin for begin, _ in ranges), max(end for _, end in ranges)

    def hit(self, after):
        """[(first key, behind the last)] of what is not what it was; None: the file is gone."""
        if after is None or len(after) != len(self.data):
            return [self.whole]
        changed = changes(self.data, after)
        data_end = self.blocks[-1][1] if self.blocks else 0
        if any(at >= data_end for at in changed):
            return [self.whole]
        return [
            (max(begin, self.whole[0]), end)
            for first, behind, begin, end in self.blocks
            if any(first <= at < behind for at in changed)
        ]


def changes(before, after):
    """Where bytes are not what they were; up to the end of the shorter one."""
    step = 4096
    return [
        at
        for page in range(0, min(len(before), len(after)), step)
        if before[page : page + step] != after[page : page + step]
        for at in range(page, min(page + step, len(before), len(after)))
        if before[at] != after[at]
    ]


def first_change(before, after):
    """From where on it is not what it was."""
    if after is None:
        return 0
    return min([len(after), *changes(before, after)])


# --- rows ---


def keys_of(row):
    """The ranges of keys that a row has: its record, and its large cells. No byte of it is 0."""
    return (b"R" + row, b"R" + row + b"\0"), (b"S" + row + b"\0\1", b"S" + row + b"\0\2")


def rows_in(ranges, rows):
    """Those that have, or could have, a key in one of the ranges."""
    return {
        row
        for row in rows
        if any(a < end and begin < b for a, b in keys_of(row) for begin, end in ranges)
    }


# --- logs ---


def synced_slot(slot):
    """(sequence number, {log: bytes}), or None: it is not whole."""
    try:
        sequence, _, logs, tables = struct.unpack_from(">QQII", slot, 8)
        at = 8 + 24 + 24
        lengths = {}
        for _ in range(logs):
            number, size, _ = struct.unpack_from(">QQB", slot, at)
            lengths[number] = size
            at += 17
        for _ in range(tables):
            at += 18 + struct.unpack_from(">H", slot, at + 16)[0]
        (expected,) = struct.unpack_from(">I", slot, at)
    except struct.error:
        return None
    is_whole = slot[:8] == b"trestleS" and google_crc32c.value(slot[:at]) == expected
    return (sequence, lengths) if is_whole else None


def synced_lengths(data):
    """{log: how many bytes of it SYNCED says were synced}."""
    text = (data / "SYNCED").read_bytes()
    half = len(text) // 2
    slots = [slot for slot in (synced_slot(text[:half]), synced_slot(text[half:])) if slot]
    return max(slots, key=lambda slot: slot[0])[1]
