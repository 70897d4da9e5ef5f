"""Protobuf messages of random content, of a schema that has every kind of field, and what is in a
message as a tree of plain values, made by Google's runtime."""

import ctypes
import math
import struct

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.duration_pb2 import DESCRIPTOR as DURATION_FILE
from google.protobuf.timestamp_pb2 import DESCRIPTOR as TIMESTAMP_FILE

FIELD = descriptor_pb2.FieldDescriptorProto
SCALARS = {
    "double": FIELD.TYPE_DOUBLE,
    "float": FIELD.TYPE_FLOAT,
    "int64": FIELD.TYPE_INT64,
    "uint64": FIELD.TYPE_UINT64,
    "int32": FIELD.TYPE_INT32,
    "fixed64": FIELD.TYPE_FIXED64,
    "fixed32": FIELD.TYPE_FIXED32,
    "bool": FIELD.TYPE_BOOL,
    "string": FIELD.TYPE_STRING,
    "bytes": FIELD.TYPE_BYTES,
    "uint32": FIELD.TYPE_UINT32,
    "sfixed32": FIELD.TYPE_SFIXED32,
    "sfixed64": FIELD.TYPE_SFIXED64,
    "sint32": FIELD.TYPE_SINT32,
    "sint64": FIELD.TYPE_SINT64,
}
NOT_PACKED = ("string", "bytes")
MAP_KEYS = ("int32", "sint64", "fixed32", "bool", "string")
TIMES = ("google.protobuf.Timestamp", "google.protobuf.Duration")


class Schema:
    """test.All, with every kind of field by itself, repeated, packed and not, in maps and in a
    oneof, and test.Empty, which knows no field."""

    def __init__(self):
        self.numbers = iter(range(1, 19000))
        self.file = descriptor_pb2.FileDescriptorProto(
            name="test.proto",
            package="test",
            syntax="proto3",
            dependency=[TIMESTAMP_FILE.name, DURATION_FILE.name],
        )
        self.all = self.file.message_type.add(name="All")
        self.file.message_type.add(name="Empty")
        color = self.file.enum_type.add(name="Color")
        for number, name in enumerate(["NONE", "RED", "BLUE"]):
            color.value.add(name=name, number=number)
        self.add_fields()

    def add(self, name, kind, label=FIELD.LABEL_OPTIONAL, **more):
        return self.all.field.add(
            name=name, number=next(self.numbers), type=kind, label=label, **more
        )

    def add_fields(self):
        kinds = [(name, kind, {}) for name, kind in SCALARS.items()]
        kinds.append(("color", FIELD.TYPE_ENUM, {"type_name": ".test.Color"}))
        kinds.append(("child", FIELD.TYPE_MESSAGE, {"type_name": ".test.All"}))
        kinds += [
            (name.rsplit(".", 1)[1].lower(), FIELD.TYPE_MESSAGE, {"type_name": f".{name}"})
            for name in TIMES
        ]
        self.all.oneof_decl.add(name="choice")
        for name, kind, more in kinds:
            self.add(f"one_{name}", kind, **more)
            self.add(f"choice_{name}", kind, oneof_index=0, **more)
            self.add(f"many_{name}", kind, FIELD.LABEL_REPEATED, **more)
            if kind not in (FIELD.TYPE_MESSAGE, FIELD.TYPE_STRING, FIELD.TYPE_BYTES):
                loose = self.add(f"loose_{name}", kind, FIELD.LABEL_REPEATED, **more)
                loose.options.packed = False
            self.add_map(f"map_{name}", MAP_KEYS[len(self.all.nested_type) % 5], kind, more)

    def add_map(self, name, key, kind, more):
        entry = "".join(part.capitalize() for part in name.split("_")) + "Entry"
        nested = self.all.nested_type.add(name=entry)
        nested.field.add(name="key", number=1, type=SCALARS[key], label=FIELD.LABEL_OPTIONAL)
        nested.field.add(name="value", number=2, type=kind, label=FIELD.LABEL_OPTIONAL, **more)
        nested.options.map_entry = True
        self.add(name, FIELD.TYPE_MESSAGE, FIELD.LABEL_REPEATED, type_name=f".test.All.{entry}")


def old_file():
    """test.Old, as proto2 has it, with a group and an extension."""
    file = descriptor_pb2.FileDescriptorProto(name="old.proto", package="test", syntax="proto2")
    old = file.message_type.add(name="Old")
    old.extension_range.add(start=100, end=200)
    group = old.nested_type.add(name="Part")
    group.field.add(name="x", number=1, type=FIELD.TYPE_INT32, label=FIELD.LABEL_OPTIONAL)
    old.field.add(
        name="part", number=2, type=FIELD.TYPE_GROUP, label=FIELD.LABEL_REPEATED,
        type_name=".test.Old.Part",
    )  # fmt: skip
    file.extension.add(
        name="more", number=100, type=FIELD.TYPE_STRING, label=FIELD.LABEL_OPTIONAL,
        extendee=".test.Old",
    )  # fmt: skip
    return file


def make():
    """(FileDescriptorSet, {name: message class})"""
    files = [descriptor_pb2.FileDescriptorProto() for _ in range(2)]
    TIMESTAMP_FILE.CopyToProto(files[0])
    DURATION_FILE.CopyToProto(files[1])
    files += [Schema().file, old_file()]
    pool = descriptor_pool.DescriptorPool()
    for file in files:
        pool.Add(file)
    classes = {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"test.{name}"))
        for name in ("All", "Old", "Empty")
    }
    return descriptor_pb2.FileDescriptorSet(file=files), classes


# --- random content ---

LIMITS = {
    FieldDescriptor.CPPTYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(1 << 63), (1 << 63) - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, (1 << 32) - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, (1 << 64) - 1),
}
WORDS = ("", "a", "Zoë", "two\nlines", 'with "quotes"', "\\", "😀", "\0", "\ufeffx")
REALS = (0.1, -0.0, 1.5, 1e300, -2.5e-10, float("inf"), float("-inf"), float("nan"), 16777217.0)


def integer(random, low, high):
    return random.choice(
        [low, high, 1, random.randint(low, high), random.randint(max(low, -200), 200)]
    )


def scalar(random, field):
    if field.type == field.TYPE_FLOAT:
        return struct.unpack("<f", struct.pack("<I", random.getrandbits(32)))[0]
    if field.type == field.TYPE_DOUBLE:
        return random.choice([*REALS, struct.unpack("<d", random.randbytes(8))[0]])
    if field.type == field.TYPE_BOOL:
        return random.random() < 0.5
    if field.type == field.TYPE_STRING:
        return random.choice(WORDS)
    if field.type == field.TYPE_BYTES:
        return random.randbytes(random.randrange(6))
    if field.type == field.TYPE_ENUM:
        return random.choice([0, 1, 2, 7, -1])
    return integer(random, *LIMITS[field.cpp_type])


def fill_time(random, message):
    kind = message.DESCRIPTOR.name
    if kind == "Timestamp":
        message.seconds = random.randint(-62135596800, 253402300799)
        message.nanos = random.choice([0, 5, 120000000, 999999999, 1500])
        return
    sign = random.choice([1, -1])
    message.seconds = sign * random.choice([0, 1, random.randint(0, 315576000000 - 1)])
    message.nanos = sign * random.choice([0, 5, 120000000, 999999999, 1500])


def fill_message(random, message, depth):
    if message.DESCRIPTOR.full_name in TIMES:
        fill_time(random, message)
    else:
        fill(random, message, depth + 1)


def fill_map(random, message, field, depth):
    key, value = field.message_type.fields
    entries = getattr(message, field.name)
    for _ in range(random.randrange(4)):
        which = scalar(random, key)
        if value.type == value.TYPE_MESSAGE:
            fill_message(random, entries[which], depth)
        else:
            entries[which] = scalar(random, value)


def fill(random, message, depth=0):
    """Puts random values into some of the message's fields."""
    fields = message.DESCRIPTOR.fields
    for field in random.sample(list(fields), min(len(fields), random.randrange(12))):
        is_message = field.type == field.TYPE_MESSAGE
        if depth > 4 and is_message:
            continue
        if is_message and field.message_type.GetOptions().map_entry:
            fill_map(random, message, field, depth)
        elif field.is_repeated and is_message:
            for _ in range(random.randrange(3)):
                fill_message(random, getattr(message, field.name).add(), depth)
        elif field.is_repeated:
            getattr(message, field.name).extend(
                scalar(random, field) for _ in range(random.randrange(5))
            )
        elif is_message:
            getattr(message, field.name).SetInParent()
            fill_message(random, getattr(message, field.name), depth)
        else:
            setattr(message, field.name, scalar(random, field))
    return message


# --- what is in it ---


def plain(field, value):
    """[kind, value], or what is in a message."""
    if field.type in (field.TYPE_FLOAT, field.TYPE_DOUBLE):
        return ["real", value]
    if field.type == field.TYPE_BOOL:
        return ["boolean", str(value).lower()]
    if field.type == field.TYPE_STRING:
        return ["text", value]
    if field.type == field.TYPE_BYTES:
        return ["bytes", value.hex()]
    if field.type == field.TYPE_ENUM:
        known = field.enum_type.values_by_number.get(value)
        return ["enum", known.name if known else str(value)]
    if field.message_type:
        if field.message_type.full_name in TIMES:
            return ["time", value.ToJsonString()]
        return tree(value)
    return ["integer", str(value)]


def tree(message):
    """{name: value, [values], or {key: value}} of the fields that are set."""
    found = {}
    for field, value in message.ListFields():
        name = f"[{field.full_name}]" if field.is_extension else field.name
        if field.message_type and field.message_type.GetOptions().map_entry:
            key, item = field.message_type.fields
            found[name] = {plain(key, which)[1]: plain(item, value[which]) for which in value}
        elif field.is_repeated:
            found[name] = [plain(field, each) for each in value]
        else:
            found[name] = plain(field, value)
    return found


def same_real(value, shown):
    """A float's digits are the fewest that tell it from other floats."""
    if math.isnan(value) or math.isnan(shown):
        return math.isnan(value) and math.isnan(shown)
    is_float = ctypes.c_float(value).value == value
    is_same = shown == value or (is_float and ctypes.c_float(shown).value == value)
    return is_same and math.copysign(1, shown) == math.copysign(1, value)


def same(expected, found):
    """Whether what the page found is that; a real number by the digits that the page shows."""
    if isinstance(expected, dict):
        return (
            isinstance(found, dict)
            and expected.keys() == found.keys()
            and all(same(value, found[name]) for name, value in expected.items())
        )
    if expected[:1] == ["real"]:
        return found[0] == "real" and same_real(expected[1], float(found[1]))
    if expected and isinstance(expected[0], (list, dict)):
        return len(expected) == len(found) and all(map(same, expected, found))
    return expected == found
