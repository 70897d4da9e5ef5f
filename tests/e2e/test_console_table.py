"""The console's page of a table, in Chromium: what is in it, its tablets by load, and changes of
its schema, each of which says what it will do before it is done."""

import re
import time

import pytest
from google.protobuf.duration_pb2 import Duration
from harness.browser import ALWAYS, Visitor, chromium, looks
from harness.patience import PATIENCE_SECONDS
from harness.rpc import set_cell

DAY_MS = 24 * 3600 * 1000
ROWS = 100


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture
def visit(browser, own_servers):
    """A function that opens a table's page: visit(host, name, size=…, scheme=…)."""
    arrived = []

    def arrive(host, name, **more):
        arrived.append(Visitor(browser, host, **more))
        project, instance, table = name.split("/")[1::2]
        arrived[-1].visit(f"#/p/{project}/i/{instance}/t/{table}")
        arrived[-1].page.wait_for_function(
            "() => ![...document.querySelectorAll('main span')].some(s => s.innerText === '…')"
        )
        return arrived[-1]

    yield arrive
    for each in arrived:
        each.leave()


@pytest.fixture
def table(make_table, rpc):
    """Three versions of f:q in each row, of today and before 10 and 20 days; g:r of 1,000 bytes in
    each second row; two tablets."""
    name = make_table(families=("f", "g"), splits=[b"k0050"])
    now = int(time.time() * 1000)
    rows = []
    for i in range(ROWS):
        cells = [set_cell("f", b"q", b"v" * 9, (now - age * DAY_MS) * 1000) for age in (0, 10, 20)]
        more = [set_cell("g", b"r", bytes(999), now * 1000)] if i % 2 else []
        rows.append((b"k%04d" % i, cells + more))
    assert set(rpc.mutate_rows(name, rows)) == {0}
    return name


def fact(page, name):
    return page.locator("main .facts dt", has_text=name).first.locator("xpath=../dd").inner_text()


def family(page, name):
    return page.locator(".families tbody tr").filter(has=page.get_by_text(name, exact=True))


def test_rows_sizes_cells_and_ages(server, table, visit):
    page = visit(server.host, table).page
    assert fact(page, "Rows") == "100"
    assert fact(page, "Cells a row") == "3.5"
    assert fact(page, "Bytes a row") == "535 bytes"  # 5 + 30 and, of each second, 1,000
    cells = family(page, "f").locator("td").all_inner_texts()
    assert cells[4:6] == ["100 %", "3"]
    assert re.fullmatch(r"\d+ (s|min) to 20 d 0 h, half over 10 d 0 h", cells[6])
    assert family(page, "g").locator("td").all_inner_texts()[4:6] == ["50 %", "0.5"]
    f, g = (family(page, each).locator("td").nth(3).inner_text() for each in "fg")
    assert f != g and "0 bytes" not in (f, g)


COLOUR = "each => getComputedStyle(each).backgroundColor"


def test_what_is_counted_of_a_wide_row_is_the_least(server, rpc, make_table, visit):
    name = make_table(families=("f",))
    cells = [set_cell("f", b"%05d" % i, b"v", 1000) for i in range(3000)]
    assert set(rpc.mutate_rows(name, [(b"wide", cells)])) == {0}
    page = visit(server.host, name).page
    assert fact(page, "Rows") == "1"
    assert fact(page, "Cells a row").startswith("at least ")
    assert fact(page, "Bytes a row").startswith("at least ")
    assert "at least" in page.locator(".families tbody tr").inner_text()
    page.get_by_role("button", name="Change the rule of f").click()
    page.get_by_text("Of at least ").wait_for()


def test_what_is_counted_together_is_said_to_be(fresh_server, connect, visit):
    """Before a window has ended one range is counted, over all tablets: no load is an empty one's,
    and none is called the busiest."""
    server = fresh_server("--heat-window", "1h", "--balance=false")
    rpc = connect(server.host)
    name = rpc.create_table("t", splits=[b"b", b"c", b"d", b"e"])
    rows = [(b"c%04d" % i, [set_cell("f", b"q", bytes(1000), 1000)]) for i in range(3000)]
    assert set(rpc.mutate_rows(name, rows)) == {0}
    page = visit(server.host, name).page
    page.get_by_role("heading", name="Tablets").scroll_into_view_if_needed()
    strip = page.get_by_role("img", name="5 tablets by size")
    strip.wait_for()
    assert "none is known to be the busiest" in strip.get_attribute("aria-label")
    page.get_by_text("The load of some is counted together").wait_for()
    loads = page.get_by_role("region", name="Tablets").locator("tbody td:nth-child(4)")
    said = loads.all_inner_texts()
    assert [each for each in said if each != "about 0 rows/s, by its size"] == [said[2]]
    colours = [each.evaluate(COLOUR) for each in strip.locator("span").all()]
    assert len(set(colours)) == 2 and colours.count(colours[2]) == 1


def test_tablets_are_a_strip_in_the_colours_of_their_load(fresh_server, connect, visit):
    """As soon as the table's ranges are counted one by one."""
    server = fresh_server("--heat-window", "1s", "--balance=false")
    rpc = connect(server.host)
    name = rpc.create_table("t", splits=[b"k0050"])
    rows = [(b"k%04d" % i, [set_cell("f", b"q", bytes(20000), 1000)]) for i in range(ROWS)]
    assert set(rpc.mutate_rows(name, rows)) == {0}
    somebody = visit(server.host, name)
    page = somebody.page
    strip = page.get_by_role("img", name="2 tablets by size")
    deadline = time.monotonic() + PATIENCE_SECONDS
    said = ""
    while "the busiest" not in said.replace("to be the busiest", ""):
        assert time.monotonic() < deadline
        for _ in range(50):
            rpc.read_row(name, b"k0010")
        page.reload()
        page.get_by_role("heading", name="Tablets").scroll_into_view_if_needed()
        strip.wait_for()
        said = strip.get_attribute("aria-label")
    assert "the busiest, from the first row up to k0050, has " in said
    colours = [each.evaluate(COLOUR) for each in strip.locator("span").all()]
    assert len(set(colours)) == 2
    assert "rows/s" in strip.locator("span").first.get_attribute("title")
    loads = page.get_by_role("region", name="Tablets").locator("tbody td:nth-child(4)")
    assert all("rows/s" in each for each in loads.all_inner_texts())
    page.get_by_label("Theme").select_option("dark")
    page.wait_for_function(
        f"before => ({COLOUR})(document.querySelector('.strip span')) !== before", arg=colours[0]
    )


def test_a_rule_says_what_it_removes_and_is_set(server, table, rpc, visit):
    somebody = visit(server.host, table)
    page = somebody.page
    page.get_by_role("button", name="Change the rule of f").click()
    will = page.locator("dialog .will")
    will.get_by_text("Of 300 cells in 100 rows that were looked at, none goes.").wait_for()
    page.get_by_label("Versions kept").fill("2")
    will.get_by_text("100 (33.3 %) go").wait_for()
    page.get_by_label("Kept for").fill("5")
    will.get_by_text("200 (66.7 %) go").wait_for()
    page.get_by_label("Removed is").select_option("intersection")
    will.get_by_text("100 (33.3 %) go").wait_for()
    assert somebody.violations() == []
    somebody.screenshot("dialog-rule")
    assert len(rpc.read_row(table, b"k0001")) == 4  # nothing has happened
    page.get_by_role("button", name="Set the rule").click()
    page.get_by_text("The rule of f has been set.").wait_for()
    family(page, "f").get_by_text("all but the newest 2 versions, and of that only").wait_for()
    rules = rpc.get_table(table).column_families["f"].gc_rule.intersection.rules
    assert {rule.max_num_versions for rule in rules} == {0, 2}


def test_a_rule_of_several_levels_is_edited_as_json(server, make_table, rpc, visit):
    both = [{"max_num_versions": 2}, {"max_age": Duration(seconds=60)}]
    rules = [{"max_num_versions": 9}, {"intersection": {"rules": both}}]
    name = make_table(families={"f": {"union": {"rules": rules}}})
    page = visit(server.host, name).page
    page.get_by_role("button", name="Change the rule of f").click()
    text = page.get_by_label("The rule, as JSON")
    text.fill(text.input_value().replace("9", "7"))
    page.get_by_role("button", name="Set the rule").click()
    family(page, "f").get_by_text("newest 7 versions").wait_for()
    assert rpc.get_table(name).column_families["f"].gc_rule.union.rules[0].max_num_versions == 7


def test_a_family_is_made_and_dropped(server, table, rpc, visit):
    somebody = visit(server.host, table)
    page = somebody.page
    page.get_by_role("button", name="New family").click()
    page.get_by_label("Name", exact=True).fill("sums")
    page.get_by_label("Values").select_option("sum")
    page.get_by_role("button", name="Make the family").click()
    family(page, "sums").get_by_text("sum of int64").wait_for()
    made = rpc.get_table(table).column_families["sums"]
    assert made.gc_rule.max_num_versions == 1
    page.get_by_role("button", name="Drop the family g").click()
    page.locator("dialog .will").get_by_text("out of 50 % of the table’s 100 rows").wait_for()
    somebody.screenshot("dialog-drop")
    assert "g" in rpc.get_table(table).column_families
    page.get_by_role("button", name="Drop the family", exact=True).click()
    page.get_by_text("The family g has been dropped.").wait_for()
    assert set(rpc.get_table(table).column_families) == {"f", "sums"}


def test_protection_is_switched(server, table, rpc, visit):
    page = visit(server.host, table).page
    for words, state in (("on", True), ("off", False)):
        page.get_by_role("button", name="Change deletion protection").click()
        page.locator("dialog .will").get_by_text("its families").first.wait_for()
        page.get_by_role("button", name=f"Switch it {words}").click()
        page.get_by_text(f"Deletion protection is {words}.").wait_for()
        assert rpc.get_table(table).deletion_protection == state
        page.wait_for_selector("dialog", state="detached")


def test_a_stream_and_a_view_say_what_they_will_do(server, table, visit):
    page = visit(server.host, table).page
    page.get_by_role("button", name="Switch on").click()
    will = page.locator("dialog .will")
    will.get_by_text("from now on is kept for 7 days").wait_for()
    page.get_by_label("Retention").select_option("")
    will.get_by_text("It stays off.").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="New view").click()
    will.get_by_text("reads the whole table once, 100 rows").wait_for()
    page.keyboard.press("Escape")


@looks("phone", "desktop")
def test_the_page_is_whole(server, table, visit, size, scheme):
    somebody = visit(server.host, table, size=size, scheme=scheme)
    somebody.page.get_by_role("heading", name="Tablets").scroll_into_view_if_needed()
    somebody.page.locator(".strip").wait_for()
    somebody.screenshot("table-full")
    assert somebody.overflow() <= 0
    if (size, scheme) in ALWAYS:
        assert somebody.violations() == []
