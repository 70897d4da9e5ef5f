"""The console's pages in Chromium: how they look (screenshots are left in build-test/screenshots),
what can be done on them by mouse and by keyboard, and what they say when something is wrong.
Logging in by HTTP is in test_console_access.py."""

import base64
import contextlib
import csv
import io
import json
import struct
import time

import pytest
from harness.browser import ALWAYS, Visitor, chromium
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest, b64

INSTANCE = "projects/demo/instances/shop"
SHOP = "#/p/demo/i/shop"
PAGES = {
    "instances": "#/instances",
    "tables": SHOP,
    "clusters": f"{SHOP}/clusters",
    "backups": f"{SHOP}/backups",
    "query": f"{SHOP}/query?table=orders",
    "table": f"{SHOP}/t/orders",
    "rows": f"{SHOP}/t/orders/rows",
    "no-rows": f"{SHOP}/t/empty/rows",
    "operations": "#/operations",
    "nowhere": "#/nowhere",
}
ORDERS = 130


def cell(family, qualifier, value, micros):
    return {
        "setCell": {
            "familyName": family,
            "columnQualifier": b64(qualifier),
            "timestampMicros": str(micros),
            "value": b64(value),
        }
    }


def order(number):
    now = int(time.time() * 1000) * 1000
    price = {"sku": f"A-{number}", "amount": 12345678901234567}
    mutations = [
        cell("info", b"customer", "Zoë Müller".encode(), now),
        cell("info", b"items", json.dumps(price).encode(), now),
        cell("info", b"total", struct.pack(">q", number * 100), now),
        cell("raw", b"\x00\xff", bytes([0xFE, number % 256, 1]), now - 1000),
        cell("raw", b"\x00\xff", bytes([0xFF, number % 256, 2]), now),
    ]
    return {"rowKey": b64(f"order#{number:04d}".encode()), "mutations": mutations}


def fill(rest):
    rules = {"union": {"rules": [{"maxAge": "864000s"}, {"maxNumVersions": 5}]}}
    body = {
        "instanceId": "shop",
        "instance": {"displayName": "Shop"},
        "clusters": {"c1": {"location": "projects/demo/locations/local", "serveNodes": 3}},
    }
    rest.call("POST", "/v2/projects/demo/instances", body)
    families = {"info": {"gcRule": {"maxNumVersions": 3}}, "raw": {"gcRule": rules}}
    tables = {"orders": families, "edits": families, "empty": {"f": {}}}
    for name, columns in tables.items():
        splits = [{"key": b64(b"order#0050")}, {"key": b64(b"order#0100")}]
        table = {"tableId": name, "table": {"columnFamilies": columns}, "initialSplits": splits}
        rest.call("POST", f"/v2/{INSTANCE}/tables", table)
    entries = [order(number) for number in range(ORDERS)]
    rest.call("POST", f"/v2/{INSTANCE}/tables/orders:mutateRows", {"entries": entries})
    rest.call("POST", f"/v2/{INSTANCE}/tables/edits:mutateRows", {"entries": entries[:3]})


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def shop(server):
    """The host of a server with an instance, and its REST interface."""
    rest = Rest(server.host)
    fill(rest)
    return rest


@pytest.fixture
def visitor(browser, shop):
    """A function that makes a visitor: visitor(size=…, scheme=…)."""
    with contextlib.ExitStack() as stack:

        def arrive(**more):
            visitor = Visitor(browser, shop.host, **more)
            stack.callback(visitor.leave)
            return visitor

        yield arrive


# --- how it looks ---


def look_at(somebody, name):
    """A violation does not hang on both size and scheme, and to look for some takes a second."""
    somebody.screenshot(name)
    assert somebody.overflow() <= 0, name
    if (somebody.size, somebody.scheme) in ALWAYS:
        assert somebody.violations() == [], name


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", ["phone", "desktop", "4k"])
def test_every_page_is_whole(visitor, size, scheme):
    """Without violations of accessibility, without scrolling sideways, and without a word in the
    browser's log."""
    somebody = visitor(size=size, scheme=scheme)
    for name, path in PAGES.items():
        somebody.visit(path)
        if name == "query":
            somebody.page.click("main button[type=submit]")
            somebody.page.wait_for_selector(".results tbody tr")
        look_at(somebody, name)


@pytest.mark.long
@pytest.mark.parametrize(("size", "scheme"), ALWAYS)
def test_every_dialog_is_whole(visitor, size, scheme):
    somebody = visitor(size=size, scheme=scheme)
    page = somebody.page
    somebody.visit(PAGES["rows"])
    openers = {
        "cell": page.locator("button.value.json").first,
        "edit": page.get_by_role("button", name="Edit info:items of row order#0000"),
        "add": page.get_by_role("button", name="Add a row"),
        "delete": page.get_by_role("button", name="Delete row order#0000"),
        "keys": page.get_by_role("button", name="Keyboard shortcuts"),
    }
    menu = page.get_by_role("button", name="Menu")
    for name, opener in openers.items():
        if name == "keys" and menu.is_visible():  # on a phone it is in the menu
            menu.click()
        opener.click()
        page.wait_for_selector("dialog[open]")
        look_at(somebody, f"dialog-{name}")
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog", state="detached")


NARROW = ("phone", "light"), ("narrow", "dark"), ("tablet", "light")


@pytest.mark.parametrize(("size", "scheme"), NARROW)
def test_where_the_header_has_no_room_there_is_a_menu(visitor, size, scheme):
    """Its entries can be reached by keys, and are not there to be tabbed to while it is closed."""
    somebody = visitor(size=size, scheme=scheme)
    page = somebody.page
    somebody.visit(PAGES["tables"])
    menu = page.get_by_role("button", name="Menu")
    assert menu.get_attribute("aria-expanded") == "false"
    assert page.get_by_role("link", name="Settings").count() == 0
    menu.focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Instances"  # the page's own
    menu.focus()
    page.keyboard.press("Enter")
    assert menu.get_attribute("aria-expanded") == "true"
    look_at(somebody, "menu")
    assert somebody.violations() == []
    page.keyboard.press("Escape")
    assert menu.get_attribute("aria-expanded") == "false"
    assert page.evaluate("document.activeElement.textContent") == "Menu"
    menu.click()
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("heading", name="Settings").wait_for()
    assert menu.get_attribute("aria-expanded") == "false"


@pytest.mark.parametrize("size", ["desktop", "4k"])
def test_where_the_header_has_room_it_is_one_line(visitor, size):
    somebody = visitor(size=size)
    page = somebody.page
    somebody.visit(PAGES["tables"])
    assert not page.get_by_role("button", name="Menu").is_visible()
    entries = page.locator("header nav a").all()
    assert len({entry.bounding_box()["y"] for entry in entries}) == 1
    left = page.locator("header .brand").bounding_box()["x"]
    assert left == pytest.approx(page.locator("main h1").bounding_box()["x"], abs=1)


def test_the_switch_of_themes_lasts(visitor):
    somebody = visitor(scheme="light")
    background = "getComputedStyle(document.documentElement).backgroundColor"
    somebody.visit()
    light = somebody.page.evaluate(background)
    somebody.page.get_by_label("Theme").select_option("dark")
    dark = somebody.page.evaluate(background)
    assert dark != light
    somebody.visit()
    assert somebody.page.evaluate(background) == dark
    somebody.page.get_by_label("Theme").select_option("")
    assert somebody.page.evaluate(background) == light


# --- what there is ---


def test_instances_lead_to_tables_and_tables_to_rows(visitor):
    somebody = visitor()
    page = somebody.page
    somebody.visit("#/instances")
    page.get_by_role("link", name="shop", exact=True).click()
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="orders", exact=True))
    row.get_by_text("KiB").wait_for()
    assert row.get_by_role("cell").nth(2).inner_text() == "3"
    row.get_by_role("link", name="orders", exact=True).click()
    page.get_by_text("what is older than 10 days, or all but the newest 5 versions").wait_for()
    page.get_by_role("heading", name="Tablets").scroll_into_view_if_needed()
    page.get_by_text("in 3 tablets").wait_for()
    tablet = page.get_by_role("row").filter(has_text="order#0100").last
    tablet.get_by_role("link", name="Data").click()
    page.get_by_role("link", name="order#0100").wait_for()
    assert page.locator("th.key a").first.inner_text() == "order#0100"


def test_a_table_that_is_not_there(visitor):
    somebody = visitor()
    somebody.visit(f"{SHOP}/t/nothing")
    somebody.page.get_by_text("There is no such thing").wait_for()
    assert somebody.violations() == []
    somebody.screenshot("not-found")
    somebody.expect_trouble("404")


def test_a_server_that_does_not_answer(visitor):
    """The page says so, and goes on when the server does."""
    somebody = visitor()
    somebody.visit("#/instances")
    somebody.context.set_offline(True)
    somebody.page.get_by_role("link", name="shop", exact=True).click()
    somebody.page.get_by_text("The server cannot be reached.").wait_for()
    assert somebody.violations() == []
    somebody.context.set_offline(False)
    somebody.page.get_by_role("button", name="Try again").click()
    somebody.page.get_by_role("link", name="orders", exact=True).wait_for()
    somebody.expect_trouble("ERR_INTERNET_DISCONNECTED")


# --- data ---


def keys(page):
    page.wait_for_selector(".results[aria-busy]", state="detached")
    return page.locator("th.key > a").all_inner_texts()


def names(first, last):
    return [f"order#{number:04d}" for number in range(first, last + 1)]


def test_pages_go_forwards_and_back(visitor):
    somebody = visitor()
    page = somebody.page
    somebody.visit(PAGES["rows"])
    assert keys(page) == names(0, 49)
    for first, last in ((50, 99), (100, 129)):
        page.get_by_role("button", name="Next").click()
        page.get_by_role("link", name=f"order#{first:04d}").wait_for()
        assert keys(page) == names(first, last)
    assert page.get_by_role("button", name="Next").is_disabled()
    page.keyboard.press("p")
    page.get_by_role("link", name="order#0050").wait_for()
    assert keys(page) == names(50, 99)
    page.go_back()
    page.get_by_role("link", name="order#0100").wait_for()
    page.get_by_role("button", name="First page").click()
    page.get_by_role("link", name="order#0000").wait_for()
    assert page.get_by_role("button", name="Previous").is_disabled()


def test_prefix_and_range(visitor):
    somebody = visitor()
    page = somebody.page
    somebody.visit(PAGES["rows"])
    page.get_by_label("Key prefix").fill("order#\\x30\\x311")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="order#0110").wait_for()
    assert keys(page) == names(110, 119)
    page.get_by_label("From key").fill("order#0112")
    page.get_by_label("To key").fill("order#0115")
    page.get_by_role("button", name="Read").click()
    page.get_by_text("3 rows, 12 cells on this page").wait_for()
    assert keys(page) == names(112, 114)
    page.get_by_label("To key").fill("order#0112")
    page.get_by_role("button", name="Read").click()
    page.get_by_text("No row is here").wait_for()
    page.get_by_label("To key").fill("\\x3")
    page.get_by_role("button", name="Read").click()
    page.get_by_text("A key cannot be read").wait_for()


def values(page, key):
    group = page.locator("tbody").filter(has=page.get_by_role("link", name=key))
    columns = group.locator("td.column").all_inner_texts()
    return list(zip(columns, group.locator("button.value").all_inner_texts(), strict=True))


def test_values_are_shown_by_what_they_are(visitor):
    somebody = visitor()
    page = somebody.page
    somebody.visit(PAGES["rows"])
    keys(page)
    items = '{ "sku": "A-7", "amount": 12345678901234567 }'
    raw = "raw:\\x00\\xff"
    assert values(page, "order#0007") == [
        ("info:customer", "Zoë Müller"),
        ("info:items", items),
        ("info:total", "700"),
        (raw, "ff 07 02"),
    ]
    page.get_by_label("Show values as").select_option("hex")
    page.get_by_label("Family").select_option("raw")
    page.get_by_label("Versions").fill("2")
    page.get_by_role("button", name="Read").click()
    page.get_by_text("50 rows, 100 cells").wait_for()
    assert values(page, "order#0007") == [(raw, "ff 07 02"), (raw, "fe 07 01")]


def read(shop, table, key):
    body = {"rows": {"rowKeys": [b64(key)]}, "filter": {"cellsPerColumnLimitFilter": 1}}
    messages = shop.call("POST", f"/v2/{INSTANCE}/tables/{table}:readRows", body)
    found, family, qualifier = {}, None, None
    for chunk in (chunk for message in messages for chunk in message.get("chunks", [])):
        family = chunk.get("familyName", family)
        qualifier = chunk.get("qualifier", qualifier)
        name = f"{family}:{base64.b64decode(qualifier or '').decode('latin1')}"
        found[name] = base64.b64decode(chunk.get("value", ""))
    return found


def test_a_cell_is_edited(visitor, shop):
    somebody = visitor()
    page = somebody.page
    somebody.visit(f"{SHOP}/t/edits/rows")
    page.get_by_role("button", name="Edit info:total of row order#0001").click()
    assert page.get_by_role("textbox", name="Value").input_value() == "100"
    page.get_by_role("textbox", name="Value").fill("12 apples")
    page.get_by_role("button", name="Write", exact=True).click()
    page.get_by_text("An integer is digits").wait_for()
    page.get_by_role("textbox", name="Value").fill("-12")
    page.get_by_role("button", name="Write", exact=True).click()
    page.get_by_text("The cell has been written.").wait_for()
    keys(page)
    assert ("info:total", "-12") in values(page, "order#0001")
    assert read(shop, "edits", b"order#0001")["info:total"] == struct.pack(">q", -12)


def test_a_row_is_added_and_deleted(visitor, shop):
    somebody = visitor()
    page = somebody.page
    somebody.visit(f"{SHOP}/t/edits/rows")
    page.get_by_role("button", name="Add a row").click()
    page.get_by_label("Row key").fill("new\\x00row")
    page.get_by_label("Family").last.select_option("raw")
    page.get_by_label("Column").fill("q")
    page.get_by_role("textbox", name="Value").fill("value")
    page.get_by_role("button", name="Write", exact=True).click()
    page.get_by_role("link", name="new\\x00row").wait_for()
    assert read(shop, "edits", b"new\0row") == {"raw:q": b"value"}

    delete = page.get_by_role("button", name="Delete row new\\x00row")
    delete.click()
    assert page.evaluate("document.activeElement.textContent") == "Cancel"
    page.keyboard.press("Enter")  # what deletes is not what Enter does
    page.wait_for_selector("dialog", state="detached")
    assert page.evaluate("document.activeElement.ariaLabel") == "Delete row new\\x00row"
    assert read(shop, "edits", b"new\0row") != {}
    delete.click()
    page.get_by_role("button", name="Delete the row").click()
    page.get_by_text("The row has been deleted.").wait_for()
    assert read(shop, "edits", b"new\0row") == {}


def test_a_cell_and_a_column_are_deleted(visitor, shop):
    somebody = visitor()
    page = somebody.page
    somebody.visit(f"{SHOP}/t/edits/rows")
    name = "raw:\\x00\\xff of row order#0002"
    page.get_by_role("button", name=f"Delete this version of {name}").click()
    page.get_by_role("button", name="Delete the cell").click()
    page.get_by_text("The cell has been deleted.").wait_for()
    assert read(shop, "edits", b"order#0002")["raw:\0\xff"] == bytes([0xFE, 2, 1])
    page.get_by_role("link", name="order#0002").click()
    page.get_by_role("button", name="Delete all versions of raw:\\x00\\xff").first.click()
    page.get_by_role("button", name="Delete the column").click()
    page.get_by_text("The column has been deleted.").wait_for()
    assert set(read(shop, "edits", b"order#0002")) == {"info:customer", "info:items", "info:total"}


# --- SQL ---


def run(page, sql, button="Run"):
    page.get_by_label("SQL").fill(sql)
    page.get_by_role("button", name=button, exact=True).click()
    page.wait_for_selector(".results .loading", state="detached")


def test_a_query_and_its_files(visitor):
    somebody = visitor()
    page = somebody.page
    somebody.visit(f"{SHOP}/query")
    run(page, "SELECT _key, CAST(info['customer'] AS STRING) AS who, 2.5 AS x, NULL AS none, "
              "ARRAY[1, 2] AS list, TIMESTAMP '2026-01-02 03:04:05.6 UTC' AS moment, "
              "DATE '2026-01-02' AS day, TRUE AS yes "
              "FROM orders ORDER BY _key LIMIT 2")  # fmt: skip
    page.get_by_text("2 rows in").wait_for()
    head = page.locator(".results thead th").all_inner_texts()
    assert head == ["_key", "who", "x", "none", "list", "moment", "day", "yes"]
    cells = page.locator(".results tbody tr").nth(1).locator("td").all_inner_texts()
    expected = ["order#0001", "Zoë Müller", "2.5", "NULL", "[1,2]",
                "2026-01-02 03:04:05.600", "2026-01-02", "true"]  # fmt: skip
    assert cells == expected

    with page.expect_download() as saved:
        page.get_by_role("button", name="Export CSV").click()
    text = saved.value.path().read_text()
    assert list(csv.reader(io.StringIO(text)))[2] == [*expected[:3], "", *expected[4:]]
    with page.expect_download() as saved:
        page.get_by_role("button", name="Export JSON").click()
    assert saved.value.suggested_filename == "shop-query.json"
    row = json.loads(saved.value.path().read_text())[1]
    assert row["list"] == [1, 2] and row["none"] is None and row["yes"] is True


def test_more_rows_than_are_shown(visitor):
    """What is drawn is a page of the result, and the result is no more than was asked for."""
    somebody = visitor()
    page = somebody.page
    somebody.visit(f"{SHOP}/query")
    run(page, "SELECT a._key FROM orders AS a, UNNEST(GENERATE_ARRAY(1, 50)) AS n")
    page.get_by_text("1,000 rows in").wait_for()
    page.get_by_text("there are more: it was stopped there").wait_for()
    assert page.locator(".results tbody tr").count() == 200
    page.get_by_role("button", name="Next").click()
    page.get_by_text("rows 201 to 400").wait_for()


def test_a_plan(visitor):
    somebody = visitor()
    page = somebody.page
    somebody.visit(f"{SHOP}/query")
    run(page, "SELECT _key FROM orders WHERE _key = b'order#0001'", "Plan")
    page.locator(".plan").get_by_text("order#0001").first.wait_for()
    somebody.screenshot("plan")
    run(page, "SELECT _key FROM orders", "Run and explain")
    page.locator(".plan").get_by_text("130").first.wait_for()


def test_a_query_that_is_wrong(visitor):
    somebody = visitor()
    page = somebody.page
    somebody.visit(f"{SHOP}/query")
    run(page, "SELECT nothing FROM orders")
    page.get_by_text("at 1:8").wait_for()
    assert somebody.violations() == []
    somebody.screenshot("query-wrong")
    somebody.expect_trouble("400")


# --- operations and backups ---


def test_a_backup_is_made_and_restored(visitor, shop):
    somebody = visitor()
    page = somebody.page
    somebody.visit(PAGES["backups"])
    page.get_by_role("button", name="Make a backup").click()
    page.get_by_label("Of table").select_option(f"{INSTANCE}/tables/orders")
    page.get_by_label("Name").fill("monday")
    page.get_by_role("button", name="Make it").click()
    page.get_by_text("The backup is being made.").wait_for()
    restore = page.get_by_role("button", name="Restore monday")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (restore.count() and restore.is_enabled()):
        assert time.monotonic() < deadline
        page.get_by_role("button", name="Refresh").click()
        page.wait_for_selector("[aria-busy]", state="detached")
    somebody.screenshot("backups-one")
    assert somebody.violations() == []
    restore.click()
    page.get_by_label("New table").fill("restored")
    page.get_by_role("button", name="Restore", exact=True).click()
    page.get_by_text("The table is being restored.").wait_for()

    somebody.visit(PAGES["operations"])
    row = page.get_by_role("row").filter(has_text="restore table")
    done = row.filter(has_text=f"{INSTANCE}/tables/restored").filter(has_text="done")
    done.wait_for()
    somebody.screenshot("operations-some")
    assert somebody.violations() == []
    assert read(shop, "restored", b"order#0001") == read(shop, "orders", b"order#0001")

    somebody.visit(PAGES["backups"])
    page.get_by_role("button", name="Delete monday").click()
    page.get_by_role("button", name="Delete the backup").click()
    page.get_by_text("There is no backup yet").wait_for()


# --- the keyboard ---


def test_the_keyboard_gets_everywhere(visitor):
    somebody = visitor()
    page = somebody.page
    somebody.visit(PAGES["rows"])
    focused = "document.activeElement.textContent || document.activeElement.tagName"
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "jump"
    page.keyboard.type("g")  # typed, not a shortcut
    page.keyboard.press("Escape")
    assert page.get_by_label("Jump to a key").input_value() == "g"
    page.locator("main").focus()
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open]")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    page.keyboard.press("g")
    page.keyboard.press("o")
    page.get_by_role("heading", name="Operations").wait_for()
    page.keyboard.press("g")
    page.keyboard.press("i")
    page.get_by_role("link", name="shop", exact=True).wait_for()


def test_a_query_by_the_keyboard_alone(visitor):
    somebody = visitor()
    page = somebody.page
    somebody.visit(f"{SHOP}/query")
    page.keyboard.press("/")
    page.keyboard.type("SELECT 1 AS one FROM orders LIMIT 1")
    page.keyboard.press("Control+Enter")
    page.get_by_text("1 row in").wait_for()


# --- with access control ---


@pytest.fixture
def secured(secure, browser):
    """A visitor of a server that wants to know who he is."""
    server = secure()
    rpc = server.rpc("admin")
    rpc.create_table("t")
    host = server.server.host.replace("127.0.0.1", "localhost")
    somebody = Visitor(browser, host, is_secure=True)
    yield somebody
    somebody.leave()


def test_who_has_a_token_comes_in(secured):
    page = secured.page
    secured.visit("#/p/p/i/i")
    assert secured.violations() == []
    secured.screenshot("login")
    secured.try_token("wrong")
    page.get_by_text("invalid authentication credentials").wait_for()
    assert secured.violations() == []
    secured.expect_trouble("401")
    secured.log_in("admin")
    page.get_by_role("link", name="t", exact=True).wait_for()  # where he wanted to go
    page.get_by_text("user:ops@example.com").wait_for()
    assert secured.violations() == []
    secured.visit("#/p/p/i/i/t/t")
    page.get_by_role("heading", name="Tablets").wait_for()
    page.get_by_role("button", name="Log out").click()
    page.get_by_label("Token").wait_for()
    secured.visit("#/p/p/i/i")
    page.get_by_label("Token").wait_for()


def test_who_may_not_is_told(secured):
    """A reader sees rows, and cannot write them."""
    page = secured.page
    secured.visit("#/p/p/i/i/t/t/rows")
    secured.log_in("reader")
    page.get_by_role("button", name="Add a row").click()
    page.get_by_label("Row key").fill("r")
    page.get_by_role("button", name="Write", exact=True).click()
    page.get_by_text("bigtable.tables.mutateRows").wait_for()
    assert secured.violations() == []
    secured.screenshot("forbidden")
    page.keyboard.press("Escape")
    secured.expect_trouble("403")


def test_who_may_list_no_instances_names_a_project(secured):
    page = secured.page
    secured.visit("#/instances")
    secured.log_in("viewer")
    page.get_by_label("Project").fill("p")
    page.get_by_role("button", name="Show its instances").click()
    page.get_by_role("link", name="i", exact=True).wait_for()
    secured.expect_trouble("403")


def test_a_session_that_has_ended_asks_again(secured):
    page = secured.page
    secured.visit("#/p/p/i/i")
    secured.log_in("admin")
    page.get_by_role("link", name="t", exact=True).wait_for()
    secured.context.clear_cookies()
    page.get_by_role("link", name="Clusters").click()
    page.get_by_label("Token").wait_for()
    secured.expect_trouble("401")
