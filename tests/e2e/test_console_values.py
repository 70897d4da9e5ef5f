"""Values in the console's data browser: as messages of the types of the table's schema bundles, by
their fields' numbers, and by what was chosen for a column. What the page's modules make of messages
is held against Google's runtime."""

import contextlib
import random
import struct
import time

import pytest
from google.protobuf.message import DecodeError
from harness import messages
from harness.browser import Visitor, chromium, looks
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest, b64
from test_console import look_at

INSTANCE = "projects/demo/instances/music"
TABLE = f"{INSTANCE}/tables/albums"
ROWS = "#/p/demo/i/music/t/albums/rows"
BAD = b"\x0a\xff not a message"

# Decodes many, and says what they are as harness/messages.py has it.
DECODE = """async ({set, type, many, most}) => {
  const at = document.querySelector("script[type=module]").src.replace(/[^/]*$/, "");
  const { typesOf } = await import(`${at}proto_descriptors.js`);
  const { decode } = await import(`${at}proto_decode.js`);
  const { lineOf } = await import(`${at}proto_show.js`);
  const { fromBase64 } = await import(`${at}bytes.js`);
  const hex = (bytes) => Array.from(bytes, (each) => each.toString(16).padStart(2, "0")).join("");
  const plain = (value) =>
    value.kind === "message" ? tree(value)
    : value.kind === "bytes" ? ["bytes", hex(value.bytes)] : [value.kind, value.text];
  const tree = (message) => Object.fromEntries(message.fields.map((field) => [
    field.name ?? `#${field.number}`,
    field.value ? plain(field.value)
    : field.values ? field.values.map(plain)
    : Object.fromEntries(field.entries.map(([key, value]) => [key.text, plain(value)])),
  ]));
  const types = set === null ? new Map() : typesOf(fromBase64(set));
  return many.map((each) => {
    const message = decode(types, type, fromBase64(each), most ?? 5000);
    if (message !== null) lineOf(message, 160);
    return message && tree(message);
  });
}"""


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def schema():
    return messages.make()


@pytest.fixture(scope="module")
def modules(browser, server):
    """decode(type, [bytes], set) by the page's own modules."""
    somebody = Visitor(browser, server.host)
    somebody.visit()

    def decode(type_, many, set_=None, most=None):
        given = {
            "set": None if set_ is None else b64(set_.SerializeToString()),
            "type": type_,
            "many": [b64(each) for each in many],
            "most": most,
        }
        return somebody.page.evaluate(DECODE, given)

    yield decode
    somebody.leave()


# --- the modules ---


@pytest.mark.parametrize("seed", range(4))
def test_random_messages_are_what_googles_runtime_says(modules, schema, seed):
    rng = random.Random(seed)
    descriptors, classes = schema
    made = [messages.fill(rng, classes["All"]()) for _ in range(400)]
    found = modules("test.All", [each.SerializeToString() for each in made], descriptors)
    for message, tree in zip(made, found, strict=True):
        expected = messages.tree(message)
        assert messages.same(expected, tree), (expected, tree)


def test_parts_of_messages_are_put_together(modules, schema):
    """Two messages one after the other are merged: by the runtime as by the page."""
    rng = random.Random(5)
    descriptors, classes = schema
    pairs = []
    for _ in range(400):
        pair = [messages.fill(rng, classes["All"]()).SerializeToString() for _ in range(2)]
        pairs.append(b"".join(pair))
    found = modules("test.All", pairs, descriptors)
    for pair, tree in zip(pairs, found, strict=True):
        expected = messages.tree(classes["All"].FromString(pair))
        assert messages.same(expected, tree), (expected, tree)


def test_groups_and_extensions(modules, schema):
    descriptors, classes = schema
    bytes_ = bytes([0x13, 0x08, 7, 0x14, 0x13, 0x08, 8, 0x14, 0xA2, 0x06, 2]) + b"hi"
    (found,) = modules("test.Old", [bytes_], descriptors)
    assert found == {
        "part": [{"x": ["integer", "7"]}, {"x": ["integer", "8"]}],
        "[test.more]": ["text", "hi"],
    }
    assert messages.same(messages.tree(classes["Old"].FromString(bytes_))["part"], found["part"])


def test_what_the_type_does_not_know_is_there_by_number(modules, schema):
    descriptors, _ = schema
    inner = b"\x08\x96\x01\x12\x03\xff\xfe\xfd"
    bytes_ = (
        b"\x08\x05" + b"\x12\x05hello" + b"\x1a" + bytes([len(inner)]) + inner
        + b"\x21" + struct.pack("<d", 2.5) + b"\x2d" + struct.pack("<I", 3) + b"\x08\x06"
    )  # fmt: skip
    expected = {
        "#1": [["integer", "5"], ["integer", "6"]],
        "#2": ["text", "hello"],
        "#3": {"#1": ["integer", "150"], "#2": ["bytes", "fffefd"]},
        "#4": ["integer", f"{struct.unpack('<Q', struct.pack('<d', 2.5))[0]} or 2.5"],
        "#5": ["integer", "3"],
    }
    for type_, given in (("test.Empty", descriptors), ("", None)):
        assert modules(type_, [bytes_], given) == [expected]


HOSTILE = {
    "cut off": b"\x0a\x05abc",
    "field 0": b"\x00\x01",
    "no such kind": b"\x0f",
    "a varint without an end": b"\x08" + b"\xff" * 11,
    "a length of 2^63": b"\x0a" + b"\xff" * 9 + b"\x01",
    "a group without an end": b"\x0b" * 100_000,
    "an end without a group": b"\x0c",
    "another group's end": b"\x0b\x14",
}


def test_what_is_no_message_is_none(modules, schema):
    descriptors, _ = schema
    for type_, given in (("test.All", descriptors), ("", None)):
        assert modules(type_, list(HOSTILE.values()), given) == [None] * len(HOSTILE)


def test_deep_wide_and_endless_messages_are_cut(modules, schema):
    descriptors, classes = schema
    deep = b""
    for _ in range(3000):
        size = len(deep)
        varint = b""
        while size > 0x7F:
            varint, size = varint + bytes([size & 0x7F | 0x80]), size >> 7
        deep = b"\x0a" + varint + bytes([size]) + deep
    groups = b"\x0b" * 50_000 + b"\x0c" * 50_000
    wide = classes["All"](many_int32=range(300_000)).SerializeToString()
    for type_, given in (("test.All", descriptors), ("", None)):
        found = modules(type_, [deep, groups, wide], given, 100)
        assert None not in found
    assert len(modules("test.All", [wide], descriptors, 100)[0]["many_int32"]) == 99


def spoil(rng, data):
    data = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(data) + 1)
        how = rng.randrange(4)
        if how == 0:
            data[at : at + 1] = bytes([rng.randrange(256)])
        elif how == 1:
            del data[at:]
        elif how == 2:
            data[at:at] = rng.randbytes(rng.randrange(8))
        else:
            del data[at : at + rng.randrange(8)]
    return bytes(data)


@pytest.mark.parametrize("seed", range(2))
def test_spoilt_messages_do_no_harm(modules, schema, seed):
    """Nothing is thrown; and what Google's runtime reads the page does, too."""
    rng = random.Random(100 + seed)
    descriptors, classes = schema
    spoilt = []
    for _ in range(2000):
        whole = messages.fill(rng, classes["All"]()).SerializeToString()
        spoilt.append(spoil(rng, whole) if rng.random() < 0.9 else rng.randbytes(20))
    modules("", spoilt)
    found = modules("test.All", spoilt, descriptors)
    for data, tree in zip(spoilt, found, strict=True):
        with contextlib.suppress(DecodeError):
            classes["All"].FromString(data)
            assert tree is not None, data


def test_what_is_no_descriptor_set_throws_and_ends(modules, schema):
    """readBundle() in value_ways.js takes that for a bundle without types."""
    rng = random.Random(7)
    whole = schema[0].SerializeToString()

    class Spoilt:
        def SerializeToString(self):  # noqa: N802
            return spoil(rng, whole)

    for _ in range(200):
        try:
            modules("test.Empty", [b""], Spoilt())
        except Exception as error:  # noqa: BLE001
            assert "WireError" in str(error) or "message" in str(error), error


# --- the pages ---


def album_file():
    field = messages.FIELD
    file = messages.descriptor_pb2.FileDescriptorProto(
        name="music.proto", package="music", syntax="proto3",
        dependency=["google/protobuf/timestamp.proto", "google/protobuf/duration.proto"],
    )  # fmt: skip
    genre = file.enum_type.add(name="Genre")
    for number, name in enumerate(["UNKNOWN", "JAZZ", "ROCK"]):
        genre.value.add(name=name, number=number)
    track = file.message_type.add(name="Track")
    album = file.message_type.add(name="Album")
    ratings = album.nested_type.add(name="RatingsEntry")
    ratings.options.map_entry = True
    one, many = field.LABEL_OPTIONAL, field.LABEL_REPEATED
    for message, name, kind, label, type_name in (
        (track, "title", field.TYPE_STRING, one, ""),
        (track, "length", field.TYPE_MESSAGE, one, ".google.protobuf.Duration"),
        (ratings, "key", field.TYPE_STRING, one, ""),
        (ratings, "value", field.TYPE_DOUBLE, one, ""),
        (album, "title", field.TYPE_STRING, one, ""),
        (album, "genre", field.TYPE_ENUM, one, ".music.Genre"),
        (album, "released", field.TYPE_MESSAGE, one, ".google.protobuf.Timestamp"),
        (album, "tracks", field.TYPE_MESSAGE, many, ".music.Track"),
        (album, "ratings", field.TYPE_MESSAGE, many, ".music.Album.RatingsEntry"),
        (album, "cover", field.TYPE_BYTES, one, ""),
        (album, "sold", field.TYPE_INT64, one, ""),
    ):
        number = len(message.field) + 1
        added = message.field.add(name=name, number=number, type=kind, label=label)
        if type_name:
            added.type_name = type_name
    return file


def album_class():
    """(FileDescriptorSet, the class of music.Album)"""
    files = [messages.descriptor_pb2.FileDescriptorProto() for _ in range(2)]
    messages.TIMESTAMP_FILE.CopyToProto(files[0])
    messages.DURATION_FILE.CopyToProto(files[1])
    files.append(album_file())
    pool = messages.descriptor_pool.DescriptorPool()
    for file in files:
        pool.Add(file)
    found = pool.FindMessageTypeByName("music.Album")
    return (
        messages.descriptor_pb2.FileDescriptorSet(file=files),
        messages.message_factory.GetMessageClass(found),
    )


def album(made, number):
    made.title, made.genre = f"Kind of Blue {number}", 1
    made.released.FromJsonString("1959-08-17T12:00:00.500Z")
    for title, seconds in (("So What", 562), ("Freddie Freeloader", 589), ("Blue in Green", 327)):
        track = made.tracks.add(title=title)
        track.length.FromSeconds(seconds)
    made.ratings["critics"], made.ratings["people"] = 4.5, 4.9
    made.cover = bytes(range(250, 256)) * 3
    made.sold = 9007199254740993
    # A field that this schema does not have yet.
    return made.SerializeToString(deterministic=True) + b"\x9a\x06\x04new!"


def cell(family, qualifier, value):
    return {
        "setCell": {
            "familyName": family,
            "columnQualifier": b64(qualifier),
            "timestampMicros": "1700000000000000",
            "value": b64(value),
        }
    }


def finish(rest, operation):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not operation.get("done"):
        assert time.monotonic() < deadline
        operation = rest.call("GET", f"/v2/{operation['name']}")
    assert "error" not in operation, operation


def fill(rest):
    descriptors, made = album_class()
    body = {
        "instanceId": "music",
        "instance": {"displayName": "Music"},
        "clusters": {"c1": {"location": "projects/demo/locations/local", "serveNodes": 1}},
    }
    rest.call("POST", "/v2/projects/demo/instances", body)
    families = {
        "m": {},
        "n": {"valueType": {"int64Type": {"encoding": {"bigEndianBytes": {}}}}},
        "t": {"valueType": {"stringType": {"encoding": {"utf8Bytes": {}}}}},
    }
    table = {"tableId": "albums", "table": {"columnFamilies": families}}
    rest.call("POST", f"/v2/{INSTANCE}/tables", table)
    bundle = {"protoSchema": {"protoDescriptors": b64(descriptors.SerializeToString())}}
    path = f"/v2/{TABLE}/schemaBundles?schemaBundleId=music"
    finish(rest, rest.call("POST", path, bundle))
    entries = [
        {
            "rowKey": b64(f"album#{number}".encode()),
            "mutations": [
                cell("m", b"album", album(made(), number) if number < 5 else BAD),
                cell("m", b"bad", BAD),
                cell("n", b"plays", b"12345678"),  # text as well, if the family did not say
                cell("t", b"note", b'{"json": 1}'),
            ],
        }
        for number in range(1, 6)
    ]
    rest.call("POST", f"/v2/{TABLE}:mutateRows", {"entries": entries})


@pytest.fixture(scope="module")
def music(server):
    rest = Rest(server.host)
    fill(rest)
    return rest


@pytest.fixture
def visitor(browser, music):
    """A function that makes a visitor: visitor(size=…, scheme=…)."""
    with contextlib.ExitStack() as stack:

        def arrive(**more):
            visitor = Visitor(browser, music.host, **more)
            stack.callback(visitor.leave)
            return visitor

        yield arrive


def value_of(page, row, column):
    page.wait_for_selector(".results[aria-busy]", state="detached")
    group = page.locator("tbody").filter(has=page.get_by_role("link", name=row))
    line = group.locator("tr").filter(has=page.locator("td.column", has_text=column))
    return line.locator("button.value")


def open_cell(page, row="album#1", column="m:album"):
    value_of(page, row, column).click()
    page.wait_for_selector("dialog[open]")


def tree_lines(page):
    return page.locator(".tree li").filter(has_not=page.locator("ul")).all_inner_texts()


@looks("phone", "desktop", "4k")
def test_a_message_is_a_line_and_a_tree(visitor, size, scheme):
    somebody = visitor(size=size, scheme=scheme)
    page = somebody.page
    somebody.visit(ROWS)
    open_cell(page)
    page.get_by_label("Shown as").select_option(label="music.Album")
    page.get_by_text("1959-08-17T12:00:00.500Z").wait_for()
    look_at(somebody, "dialog-message")
    page.get_by_role("button", name="Show the column so").click()
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    line = value_of(page, "album#1", "m:album").inner_text()
    assert line.startswith(
        'title: "Kind of Blue 1", genre: JAZZ, released: 1959-08-17T12:00:00.500Z, '
        'tracks: [{title: "So What", length: 562s}, '
    )
    page.wait_for_selector(".toast", state="detached")
    look_at(somebody, "rows-message")


def test_the_tree_has_all_there_is(visitor):
    somebody = visitor()
    page = somebody.page
    somebody.visit(ROWS)
    open_cell(page)
    page.get_by_label("Shown as").select_option(label="music.Album")
    page.locator(".tree").wait_for()
    assert tree_lines(page) == [
        'title: "Kind of Blue 1"',
        "genre: JAZZ",
        "released: 1959-08-17T12:00:00.500Z",
        *[
            line
            for title, length in (
                ("So What", 562), ("Freddie Freeloader", 589), ("Blue in Green", 327)
            )
            for line in (f'title: "{title}"', f"length: {length}s")
        ],
        'ratings["critics"]: 4.5',
        'ratings["people"]: 4.9',
        "cover: " + r"\xfa\xfb\xfc\xfd\xfe\xff" * 3,
        "sold: 9007199254740993",
        '99: "new!"',
    ]  # fmt: skip
    page.get_by_label("Shown as").select_option(label="Protobuf, by number")
    page.get_by_text("[2]").wait_for()
    assert '1: "Kind of Blue 1"' in tree_lines(page)


def test_a_column_is_shown_so_from_now_on(visitor):
    """In this browser, until it is taken back; a value that is no such message is as found."""
    somebody = visitor()
    page = somebody.page
    somebody.visit(ROWS)
    as_found = value_of(page, "album#2", "m:album").inner_text()
    open_cell(page)
    page.get_by_label("Shown as").select_option(label="music.Album")
    page.get_by_role("button", name="Show the column so").click()
    page.keyboard.press("Escape")
    somebody.visit(f"{ROWS}?limit=25")
    assert value_of(page, "album#2", "m:album").inner_text().startswith('title: "Kind of')
    assert value_of(page, "album#5", "m:album").inner_text() == BAD.hex(" ")
    somebody.visit(f"{ROWS}?way=hex")  # what the whole page is asked for comes first
    assert value_of(page, "album#2", "m:album").inner_text().startswith("0a 0e 4b 69")
    somebody.visit(ROWS)
    open_cell(page, "album#2")
    assert page.get_by_label("Shown as").input_value() == "message music music.Album"
    page.get_by_role("button", name="As found again").click()
    page.keyboard.press("Escape")
    assert value_of(page, "album#2", "m:album").inner_text() == as_found
    somebody.visit(ROWS)
    assert value_of(page, "album#2", "m:album").inner_text() == as_found


def test_ways_that_the_bytes_do_not_allow_are_not_offered(visitor):
    somebody = visitor()
    page = somebody.page
    somebody.visit(ROWS)
    open_cell(page, column="m:bad")
    offered = page.get_by_label("Shown as").locator("option").all_inner_texts()
    assert offered == ["Hexadecimal"]


def test_a_family_says_what_its_values_are(visitor):
    somebody = visitor()
    page = somebody.page
    somebody.visit(ROWS)
    plays = str(struct.unpack(">q", b"12345678")[0])
    assert value_of(page, "album#1", "n:plays").inner_text() == plays
    assert value_of(page, "album#1", "t:note").inner_text() == '{"json": 1}'
    page.get_by_role("button", name="Edit n:plays of row album#1").click()
    assert page.get_by_role("textbox", name="Value").input_value() == plays


def test_a_message_by_the_keyboard_alone(visitor):
    somebody = visitor()
    page = somebody.page
    somebody.visit(ROWS)
    value_of(page, "album#1", "m:album").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open]")
    page.get_by_label("Shown as").focus()
    page.keyboard.type("music.A")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Show the column so"
    page.keyboard.press("Enter")
    page.get_by_text("is shown so from now on").wait_for()
    page.keyboard.press("Tab")  # Close, or the tree
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    assert value_of(page, "album#1", "m:album").inner_text().startswith("title:")


def test_a_remembered_choice_that_cannot_be_read_is_none(visitor):
    somebody = visitor()
    page = somebody.page
    somebody.visit(ROWS)
    for kept in ("{", "[]", '{"m YWxidW0": 5}', '{"m YWxidW0": "message gone music.Album"}'):
        page.evaluate(f"localStorage.setItem('trestle-columns {TABLE}', {kept!r})")
        somebody.visit(ROWS)
        assert "Kind of Blue" not in value_of(page, "album#1", "t:note").inner_text()
        assert value_of(page, "album#1", "m:album").is_visible()


def test_who_may_not_see_bundles_does_without(visitor):
    somebody = visitor()
    page = somebody.page
    refusal = '{"error": {"code": 403, "status": "PERMISSION_DENIED", "message": "no"}}'
    page.route("**/schemaBundles*", lambda route: route.fulfill(status=403, body=refusal))
    somebody.visit(ROWS)
    open_cell(page)
    groups = page.get_by_label("Shown as").locator("optgroup")
    assert [each.get_attribute("label") for each in groups.all()] == ["Values"]
    somebody.expect_trouble("403")
