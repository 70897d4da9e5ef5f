"""Exports of DynamoDB tables, as DynamoDB lays them down: manifests, data files, both formats.

An attribute is a pair of type and value, ("S", "text"): see ALL_TYPES."""

import base64
import gzip
import hashlib
import json
import random

ALL_TYPES = {
    "text": ("S", 'na\u00efve "quoted"\n\t\\ \U0001f600'),
    "empty": ("S", ""),
    "number": ("N", "-12.5"),
    "large": ("N", "123456789012345678901234567890.12345678"),
    "power": ("N", "1.5E3"),
    "bytes": ("B", b"\x00\xff\x7f"),
    "yes": ("BOOL", True),
    "no": ("BOOL", False),
    "nothing": ("NULL", True),
    "strings": ("SS", ["b", "a", "\u00e9"]),
    "numbers": ("NS", ["3", "1.50"]),
    "blobs": ("BS", [b"\x01", b""]),
    "list": ("L", [("N", "1"), ("S", "x"), ("L", []), ("M", {"k": ("NULL", True)})]),
    "map": ("M", {"inner": ("M", {"deep": ("B", b"!")}), "a.b c": ("N", "7"), "": ("S", "e")}),
}


def b64(data):
    return base64.b64encode(data).decode()


def typed(kind, value):
    """The value as in DynamoDB's JSON."""
    if kind == "B":
        value = b64(value)
    elif kind == "BS":
        value = [b64(each) for each in value]
    elif kind == "L":
        value = [typed(*each) for each in value]
    elif kind == "M":
        value = item_json(value)
    return {kind: value}


def item_json(item):
    return {name: typed(*value) for name, value in item.items()}


def plain(kind, value):
    """The value as plain JSON, with numbers as they are."""
    if kind == "N":
        return RawNumber(value)
    if kind == "B":
        return b64(value)
    if kind in ("SS", "NS", "BS"):
        return [plain(kind[0], each) for each in value]
    if kind == "L":
        return [plain(*each) for each in value]
    if kind == "M":
        return {name: plain(*each) for name, each in value.items()}
    return None if kind == "NULL" else value


class RawNumber(float):
    """A number that is written with the digits that it came with."""

    def __new__(cls, text):
        made = super().__new__(cls, text)
        made.text = text
        return made

    def __repr__(self):
        return self.text


def ion_text(text):
    escaped = "".join(
        {'"': '\\"', "\\": "\\\\", "\n": "\\n"}.get(c, c if c.isprintable() else f"\\x{ord(c):02x}")
        for c in text
    )
    return f'"{escaped}"'


def ion_number(text):
    return text.replace("E", "d") if "E" in text else text if "." in text else f"{text}."


def ion(kind, value):
    """The value as Ion text."""
    if kind == "S":
        return ion_text(value)
    if kind == "N":
        return ion_number(value)
    if kind == "B":
        return "{{" + b64(value) + "}}"
    if kind == "BOOL":
        return "true" if value else "false"
    if kind == "NULL":
        return "null"
    if kind in ("SS", "NS", "BS"):
        return f"$dynamodb_{kind}::[{','.join(ion(kind[0], each) for each in value)}]"
    if kind == "L":
        return f"[{','.join(ion(*each) for each in value)}]"
    return ion_struct(value)


def ion_struct(item):
    return "{" + ",".join(f"{ion_text(name)}:{ion(*each)}" for name, each in item.items()) + "}"


def line(item, form="json"):
    if form == "ion":
        return "$ion_1_0 {Item:" + ion_struct(item) + "}\n"
    return json.dumps({"Item": item_json(item)}, ensure_ascii=False) + "\n"


def write_export(directory, files, form="json"):
    """Writes an export of lists of items, one a file; gives the paths of the files."""
    paths = []
    (directory / "data").mkdir(parents=True)
    for number, items in enumerate(files):
        path = directory / "data" / f"part{number:02}.{form}.gz"
        path.write_bytes(gzip.compress("".join(line(item, form) for item in items).encode()))
        paths.append(path)
    write_manifest(directory, paths, [len(items) for items in files])
    return paths


def write_manifest(directory, paths, counts, **more):
    lines = []
    for path, count in zip(paths, counts, strict=True):
        digest = hashlib.md5(path.read_bytes(), usedforsecurity=False).digest()
        key = f"prefix/AWSDynamoDB/01-abc/data/{path.name}"
        lines.append({"itemCount": count, "md5Checksum": b64(digest), "dataFileS3Key": key})
    summary = {"version": "2020-06-30", "exportTime": "2024-11-08T10:00:00Z",
               "itemCount": sum(counts), "outputFormat": "DYNAMODB_JSON", **more}  # fmt: skip
    (directory / "manifest-files.json").write_text("".join(json.dumps(x) + "\n" for x in lines))
    (directory / "manifest-summary.json").write_text(json.dumps(summary))


def write_checksums(directory):
    """What DynamoDB lays beside its manifests."""
    for manifest in directory.glob("manifest-*.json"):
        digest = hashlib.md5(manifest.read_bytes(), usedforsecurity=False).digest()
        manifest.with_suffix(".checksum").write_text(b64(digest))


def random_items(count, seed=1):
    """Items whose keys are different, with some attributes of each kind."""
    chance = random.Random(seed)
    for number in range(count):
        item = {"Id": ("S", f"item-{number:06}"), "Rank": ("N", str(number % 7))}
        for name in chance.sample(sorted(ALL_TYPES), 4):
            item[name] = ALL_TYPES[name]
        item["pad"] = ("S", "x" * chance.randrange(200))
        yield item


def edge_items():
    """Items at the edges of what DynamoDB takes."""
    deep = ("S", "bottom")
    for level in range(31):
        deep = ("L", [deep]) if level % 2 else ("M", {"k": deep})
    edges = [
        {},  # nothing but its key
        {"digits": ("N", "1" * 38), "least": ("N", "1E-130"), "most": ("N", "9.9E+125"),
         "small": ("N", "-0.000000000000000000000000000000000000001"), "zero": ("N", "0")},
        {"": ("S", "an empty name"), "a.b": ("S", "x"), "a:b": ("S", "y"),
         "\u00e9\U0001f600": ("N", "1"), 'q"\\': ("S", "\x01\x7f")},
        {"deep": deep},
        {"empty list": ("L", []), "empty map": ("M", {}), "nulls": ("L", [("NULL", True)] * 3)},
        {"long": ("S", "\u6f22" * 100000)},
        {"bytes": ("B", bytes(range(256)) * 100), "one": ("B", b"\0"), "none": ("B", b"")},
        {"many": ("SS", [f"member {i}" for i in range(2000)]),
         "numbers": ("NS", [str(i / 8) for i in range(500)]),
         "blobs": ("BS", [bytes([i, i]) for i in range(256)])},
        {f"attribute {i}": ("N", str(i)) for i in range(1000)},
    ]  # fmt: skip
    for number, attributes in enumerate(edges):
        yield {"Id": ("S", f"edge-{number}"), **attributes}


def change_line(key, at_us, new=None, old=None, form="json"):
    """A line of an incremental export: what became of the item with this key."""
    images = {"Keys": key, "OldImage": old, "NewImage": new}
    images = {name: image for name, image in images.items() if image is not None}
    if form == "ion":
        parts = [f"Metadata:{{WriteTimestampMicros:{at_us}.}}"]
        parts += [f"{name}:{ion_struct(image)}" for name, image in images.items()]
        return "$ion_1_0 {" + ",".join(parts) + "}\n"
    made = {"Metadata": {"WriteTimestampMicros": {"N": str(at_us)}}}
    made |= {name: item_json(image) for name, image in images.items()}
    return json.dumps(made, ensure_ascii=False) + "\n"


def write_incremental(root, name, start, end, lines, form="json"):
    """An incremental export of the window from `start` to `end` (as RFC 3339) in a directory of
    exports, which share `data`."""
    (root / name).mkdir(parents=True)
    (root / "data").mkdir(exist_ok=True)
    path = root / "data" / f"{name}.{form}.gz"
    path.write_bytes(gzip.compress("".join(lines).encode()))
    write_manifest(
        root / name, [path], [len(lines)], exportType="INCREMENTAL_EXPORT", exportTime=end,
        exportFromTime=start, exportToTime=end, outputView="NEW_AND_OLD_IMAGES",
    )  # fmt: skip
    return path
