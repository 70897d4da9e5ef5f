"""The console's data browser, in Chromium: jumping to keys, also structured ones, and a row's
history by its timestamps. Pages, values, editing and deleting are in test_console.py."""

import datetime

import pytest
from harness.browser import ALWAYS, Visitor, chromium, looks
from harness.rest import Rest
from harness.rpc import INSTANCE, set_cell

BYTES = {"bytes_type": {"encoding": {"raw": {}}}}
STRING = {"string_type": {"encoding": {"utf8_bytes": {}}}}
BIG_ENDIAN = {"int64_type": {"encoding": {"big_endian_bytes": {}}}}
ORDERED = {"int64_type": {"encoding": {"ordered_code_bytes": {}}}}
TIME = {"timestamp_type": {"encoding": {"unix_micros_int64": {"ordered_code_bytes": {}}}}}
HASH = {"delimited_bytes": {"delimiter": b"#"}}
ORDERED_CODE = {"ordered_code_bytes": {}}


def schema(encoding, **fields):
    return {
        "fields": [{"field_name": name, "type_": kind} for name, kind in fields.items()],
        "encoding": encoding,
    }


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture
def visit(browser, server):
    """A function that opens a page of a table: visit(name, "rows", size=…, scheme=…)."""
    arrived = []

    def arrive(name, path="rows", **more):
        arrived.append(Visitor(browser, server.host, **more))
        project, instance, table = name.split("/")[1::2]
        arrived[-1].visit(f"#/p/{project}/i/{instance}/t/{table}/{path}")
        return arrived[-1]

    yield arrive
    for each in arrived:
        each.leave()


@pytest.fixture
def make(make_table, rpc):
    """A function that makes a table with a row in each of these keys."""

    def run(keys, **more):
        name = make_table(families=("f",), **more)
        rows = [(key, [set_cell("f", b"q", b"v", 1000)]) for key in keys]
        assert set(rpc.mutate_rows(name, rows)) == {0}
        return name

    return run


def keys(page):
    page.wait_for_selector("[aria-busy]", state="detached")
    return page.locator(".data th.key > a").all_inner_texts()


def jump(page, **fields):
    for label, text in fields.items():
        page.get_by_label(label.replace("_", " ")).fill(text)
    button = page.get_by_role("button", name="Jump")
    (button.last if button.count() > 1 else button).click()
    page.wait_for_selector(".results .loading", state="detached")


def test_a_jump_leads_to_a_key_or_behind_it(make, visit):
    page = visit(make([b"a", b"b1", b"b\x00", b"c"])).page
    assert keys(page) == ["a", "b\\x00", "b1", "c"]
    jump(page, Jump_to_a_key="b")
    page.get_by_text("3 rows").wait_for()
    assert keys(page) == ["b\\x00", "b1", "c"]
    jump(page, Jump_to_a_key="b\\x01")
    page.get_by_text("2 rows").wait_for()
    assert keys(page) == ["b1", "c"]
    jump(page, Jump_to_a_key="\\x0")
    page.get_by_text("That cannot be read").wait_for()


def test_keys_with_a_delimiter(make, visit):
    made = [b"ann#2025-01#1", b"ann#2025-01#2", b"ann#2025-02#1", b"anna#2025-01#1"]
    fields = schema(HASH, user=BYTES, month=STRING, order=STRING)
    page = visit(make(made, row_key_schema=fields)).page
    page.locator(".key-parts").first.wait_for()
    assert page.locator(".key-parts").first.inner_text().split() == [
        "user", "ann", "month", "2025-01", "order", "1",
    ]  # fmt: skip
    jump(page, user="ann")
    page.get_by_text("3 rows").wait_for()
    assert keys(page) == ["ann#2025-01#1", "ann#2025-01#2", "ann#2025-02#1"]
    jump(page, user="ann", month="2025-01")
    page.get_by_text("2 rows").wait_for()
    jump(page, user="ann", month="2025-01", order="2")
    page.get_by_text("1 row,").wait_for()
    assert keys(page) == ["ann#2025-01#2"]


@pytest.mark.parametrize(("encoding", "first"), [(HASH, b"#x"), (ORDERED_CODE, b"\0\0\0\1x")])
def test_a_part_may_be_empty_before_others(make, visit, encoding, first):
    """It was asked for, though keys may begin so; a number is asked for."""
    fields = schema(encoding, shop=BYTES, month=STRING)
    page = visit(make([first, b"a" + first], row_key_schema=fields)).page
    page.locator(".key-parts").nth(1).wait_for()
    jump(page, month="x")
    page.get_by_text("1 row,").wait_for()
    assert page.locator(".key-parts").inner_text().split() == ["shop", "month", "x"]


def test_a_number_before_others_is_needed(make, visit):
    fields = schema(ORDERED_CODE, number=ORDERED, month=STRING)
    page = visit(make([b"\x81\0\1x"], row_key_schema=fields)).page
    page.locator(".key-parts").first.wait_for()
    jump(page, month="x")
    page.get_by_text("“number” is needed, too.").wait_for()


NUMBERS = [-(2**63), -65, -64, -1, 0, 63, 64, 8191, 8192, 2**31, 2**62, 2**63 - 1]


def ordered_code(number):
    """As the server has it, by another way: bits as text."""
    value = ~number if number < 0 else number
    size = next(n for n in range(1, 11) if n == 10 or value < 2 ** (7 * n - 1))
    bits = "1" * size + bin(value)[2:].rjust(7 * size, "0")
    code = bytes(int(bits[at : at + 8], 2) for at in range(0, 8 * size, 8))
    return bytes(~byte & 0xFF for byte in code) if number < 0 else code


def escaped(part):
    return part.replace(b"\0", b"\0\xff")


def test_numbers_and_times_in_the_ordered_code(make, visit, client):
    """Also by SQL, so that the codes are the server's."""
    moment = datetime.datetime(2026, 11, 29, 15, 0, 0, 250000, datetime.UTC)
    micros = int(moment.timestamp() * 1e6)
    made = {number: b"\0\1".join([escaped(ordered_code(number)), escaped(ordered_code(micros))])
            for number in NUMBERS}  # fmt: skip
    name = make(made.values(), row_key_schema=schema(ORDERED_CODE, n=ORDERED, t=TIME))
    rows = client.execute_query(f"SELECT n FROM `{name.rsplit('/', 1)[1]}`", "i")
    assert [row["n"] for row in rows] == NUMBERS
    somebody = visit(name)
    page = somebody.page
    page.locator(".key-parts").first.wait_for()
    told = [each.split() for each in page.locator(".key-parts").all_inner_texts()]
    assert [int(each[1]) for each in told] == NUMBERS
    assert told[0][3:] == ["2026-11-29", "15:00:00.250"]
    inputs = page.get_by_role("form", name="By the parts of keys").get_by_role("textbox")
    for number in (-65, 0, 2**62):
        inputs.nth(0).fill(str(number))
        inputs.nth(1).fill("2026-11-29 15:00:00.25" if number else "")
        page.get_by_role("button", name="Jump").last.click()
        page.get_by_text("1 row,").wait_for()
        assert page.locator(".key-parts").inner_text().split()[1] == str(number)
        page.go_back()
        page.locator(".key-parts").nth(11).wait_for()


# --- history ---


@pytest.fixture
def row(make_table, rpc):
    """A row that was written at three times."""
    name = make_table(families=("f", "g"))
    for time, family, qualifier, value in [
        (1_700_000_000_000_000, "f", b"a", b"one"),
        (1_700_000_000_000_000, "g", b"c", b"see"),
        (1_700_000_001_000_000, "f", b"a", b"two"),
        (1_700_000_002_000_000, "f", b"a", b"three"),
        (1_700_000_002_000_000, "f", b"b", b"bee"),
    ]:
        rpc.mutate(name, b"k", set_cell(family, qualifier, value, time))
    return name


def test_a_rows_history_is_told_by_time(row, visit):
    page = visit(row).page
    page.get_by_role("link", name="k", exact=True).click()
    page.get_by_role("link", name="History").click()
    table = page.get_by_role("region", name="History of the row")
    table.wait_for()
    told = [[cell.inner_text().split("\n")[0] for cell in line.locator("td").all()]
            for line in table.locator("tbody tr").all()]  # fmt: skip
    assert told == [
        ["f:a", "three", "two"],
        ["f:b", "bee", "nothing that is known"],
        ["f:a", "two", "one"],
        ["f:a", "one", "nothing that is known"],
        ["g:c", "see", "nothing that is known"],
    ]
    times = [each.split(".")[0] for each in table.locator("th.key").all_inner_texts()]
    assert times == [f"2023-11-14 22:13:2{second}" for second in (2, 1, 0)]
    page.get_by_role("link", name="The row as it was at 2023-11-14 22:13:21").click()
    page.get_by_text("The row k as it was at 2023-11-14 22:13:21").wait_for()
    page.wait_for_selector("[aria-busy]", state="detached")
    cells = page.locator(".data tbody tr").all()
    assert [each.locator("button.value").inner_text() for each in cells] == ["two", "see"]


@looks("phone", "desktop")
def test_the_history_is_whole(row, visit, size, scheme):
    somebody = visit(row, "rows?key=aw&by=time", size=size, scheme=scheme)
    somebody.page.get_by_role("region", name="History of the row").wait_for()
    somebody.screenshot("row-history")
    assert somebody.overflow() <= 0
    if (size, scheme) in ALWAYS:
        assert somebody.violations() == []


@looks("phone")
def test_structured_keys_are_whole(make, visit, size, scheme):
    fields = schema(HASH, user=BYTES, month=STRING, order=STRING)
    name = make([b"ann#2025-01#1", b"bob#2025-01#2"], row_key_schema=fields)
    somebody = visit(name, size=size, scheme=scheme)
    somebody.page.locator(".key-parts").first.wait_for()
    somebody.screenshot("rows-structured")
    assert somebody.overflow() <= 0
    if (size, scheme) in ALWAYS:
        assert somebody.violations() == []


# --- changing a row ---


def finish_dialog(page, button):
    page.get_by_role("dialog").get_by_role("button", name=button, exact=True).click()
    page.get_by_role("dialog").wait_for(state="detached")
    page.wait_for_selector("[aria-busy]", state="detached")


def test_a_version_is_deleted_and_no_other(server, rpc, new_table_id, visit):
    """Of a table that counts microseconds a version can be less than a millisecond before the
    next, and at a whole one."""
    table = new_table_id()
    made = {"columnFamilies": {"f": {}}, "granularity": "MICROS"}
    Rest(server.host).call("POST", f"/v2/{INSTANCE}/tables", {"tableId": table, "table": made})
    name = f"{INSTANCE}/tables/{table}"
    times = [5_000_000, 5_000_500, 5_000_999, 5_001_000]
    rpc.mutate(name, b"k", *(set_cell("f", b"q", b"v", time) for time in times))
    page = visit(name, "rows?key=aw&versions=10").page
    page.get_by_role("button", name="Delete this version of f:q").last.click()
    finish_dialog(page, "Delete the cell")
    kept = [cell.timestamp for cell in rpc.read_row(name, b"k")]
    assert sorted(kept) == times[1:]
    rpc.delete_table(name)


@pytest.mark.parametrize(
    "value", [b"a\r\nb\rc\n", b"a\nb\n", b'{"a": 1,\r\n "b": 2}', b"\xff\r", b"12345678"], ids=repr
)
def test_a_value_that_nobody_changes_stays_as_it_is(make_table, rpc, visit, value):
    """A field for text turns each kind of line's end into one."""
    name = make_table(families=("f",))
    rpc.mutate(name, b"k", set_cell("f", b"q", value, 1000))
    page = visit(name, "rows?key=aw&versions=10").page
    page.get_by_role("button", name="Edit f:q").click()
    page.get_by_label("Write it as").select_option("same")
    finish_dialog(page, "Write")
    assert [cell.value for cell in rpc.read_row(name, b"k")] == [value]


def test_the_keyboard_keeps_its_place(make_table, rpc, visit):
    name = make_table(families=("f",))
    for key in (b"a", b"b"):
        rpc.mutate(name, key, set_cell("f", b"q", b"v", 1000))
    page = visit(name).page

    def focused():
        return page.evaluate(
            "document.activeElement.getAttribute('aria-label') ?? document.activeElement.className"
        )

    page.get_by_role("button", name="Edit f:q of row a").click()
    finish_dialog(page, "Write")
    page.wait_for_function("() => document.activeElement !== document.body")
    assert focused() == "Edit f:q of row a"
    page.get_by_role("button", name="Delete row a").click()
    finish_dialog(page, "Delete the row")
    page.wait_for_function("() => document.activeElement !== document.body")
    assert focused() == "results"


def test_a_history_that_is_cut_says_so(make_table, rpc, visit):
    name = make_table(families=("f",))
    changes = [set_cell("f", b"q", b"v%d" % i, 1000 * (i + 1)) for i in range(1001)]
    rpc.mutate(name, b"k", *changes)
    page = visit(name, "rows?key=aw&by=time").page
    page.get_by_text("The row has more cells than these 1000.").wait_for()
    rpc.mutate(name, b"k2", *changes[:1000])
    page = visit(name, "rows?key=azI&by=time").page
    page.get_by_text("1,000 timestamps").wait_for()
    assert page.get_by_text("more cells").count() == 0


def test_large_values_are_shown_by_their_beginning(make_table, rpc, visit):
    name = make_table(families=("f",))
    values = {b"bytes": b"\xff" * (3 << 20), b"text": b"t" * (3 << 20), b"short": b"\xfe\xff"}
    for qualifier, value in values.items():
        rpc.mutate(name, b"k", set_cell("f", qualifier, value, 1000))
    page = visit(name, "rows?key=aw").page
    shown = dict(
        zip(
            page.locator("td.column").all_inner_texts(),
            page.locator("button.value").all_inner_texts(),
            strict=True,
        )
    )
    assert shown["f:short"] == "fe ff"
    for name, word in (("f:bytes", "ff ff "), ("f:text", "ttt")):
        assert shown[name].startswith(word) and shown[name].endswith("…")
        assert 150 < len(shown[name]) < 170
