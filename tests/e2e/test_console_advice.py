"""The console's pages of advice, in Chromium: of an instance, of a table, and of a database."""

import contextlib
import json

import pytest
from google.cloud.bigtable_admin_v2 import types as admin_types
from harness.browser import Visitor, chromium, looks
from harness.datastore import Raw, client_of, entity
from harness.rpc import set_cell
from harness.server import run_trestle

INSTANCE = "#/p/p/i/i"
PAGE = f"{INSTANCE}/advice"
NEWEST = admin_types.GcRule(max_num_versions=1)


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture
def visit(browser, own_servers):
    """A function that makes somebody who looks at the advice: visit(host, size=…, page=…)."""
    with contextlib.ExitStack() as stack:

        def arrive(host, page=PAGE, **more):
            somebody = Visitor(browser, host, **more)
            stack.callback(somebody.leave)
            somebody.visit(page)
            return somebody

        yield arrive


@pytest.fixture
def host(fresh_server, connect):
    """A server with a good table, one whose keys begin with a time, and one with long names."""
    server = fresh_server()
    rpc = connect(server.host)
    for name, family, key in [
        ("good", "f", lambda i: b"%04d-user" % (i * 7919 % 3001)),
        ("events", "f", lambda i: b"2024-%02d-%02d#%04d" % (i % 12 + 1, i % 28 + 1, i)),
        ("names", "family_with_a_long_name", lambda i: b"%04d/row" % (i * 7919 % 3001)),
    ]:
        table = rpc.create_table(name, {family: NEWEST})
        rows = [(key(i), [set_cell(family, b"q", b"v")]) for i in range(1000)]
        assert set(rpc.mutate_rows(table, rows)) == {0}
    return server.host


def look(somebody):
    """Waits until all was looked at: the number of findings by severity."""
    somebody.page.get_by_text("sampled,").wait_for()
    return {
        severity: somebody.page.locator(f".finding.{severity}").count()
        for severity in ("critical", "warning", "info")
    }


def test_an_instance(visit, host):
    somebody = visit(host)
    page = somebody.page
    assert look(somebody) == {"critical": 0, "warning": 1, "info": 1}
    page.get_by_text("rows of 3 tables sampled").wait_for()
    warning = page.locator(".finding.warning")
    assert warning.locator("h3").inner_text() == "Row keys begin with a time"
    assert "sampled keys begin with a date" in warning.locator(".evidence").inner_text()
    for words in ("Where", "Keys", "Why it matters", "What to do", "Better keys"):
        assert warning.get_by_text(words, exact=True).count() == 1
    key, better = warning.locator("dd").last.locator("li").first.locator("code").all_inner_texts()
    assert better.startswith("2024-")
    assert key == "#".join(reversed(better.split("#")))
    warning.get_by_text("The rule key-time-first").click()
    warning.get_by_text("Found when:").wait_for()
    warning.get_by_role("link", name="events").click()
    page.get_by_role("heading", name="events").wait_for()


def test_a_table_and_nothing_found(visit, host):
    somebody = visit(host, f"{INSTANCE}/t/good/advice")
    assert look(somebody) == {"critical": 0, "warning": 0, "info": 0}
    somebody.page.get_by_text("Nothing was found").wait_for()
    somebody.screenshot("advice-nothing")
    assert somebody.violations() == []
    somebody.page.get_by_role("link", name="Overview").click()
    somebody.page.get_by_role("heading", name="Column families").wait_for()
    somebody.page.get_by_role("link", name="Advice").click()
    somebody.page.get_by_text("Nothing was found").wait_for()


def overview(visit, host, table, **more):
    """Somebody who looks at the table's page when the advisor has answered."""
    somebody = visit(host, f"{INSTANCE}/t/{table}", **more)
    somebody.page.get_by_role("link", name="All that the advisor says").wait_for()
    return somebody


def first_findings(somebody):
    return somebody.page.get_by_label("First of what the advisor found").locator("li")


def test_the_page_of_a_table_says_what_was_found(visit, host):
    somebody = overview(visit, host, "events")
    page = somebody.page
    page.get_by_text("1 warning. ").wait_for()
    [found] = first_findings(somebody).all()
    assert found.get_attribute("class") == "warning"
    assert found.locator("strong").inner_text() == "Row keys begin with a time"
    assert "sampled keys begin with a date" in found.inner_text()
    assert somebody.violations() == []
    page.get_by_role("link", name="All that the advisor says").click()
    assert look(somebody) == {"critical": 0, "warning": 1, "info": 0}


def test_the_page_of_a_table_has_the_gravest_first_and_no_more_than_three(visit, host, connect):
    rpc = connect(host)
    table = rpc.create_table("all", dict.fromkeys(["family_with_a_long_name"], None))
    names = [b"a_name_of_a_column_that_is_far_too_long_%d" % i for i in range(3)]
    cells = [set_cell("family_with_a_long_name", name, b"") for name in names]
    rows = [(b"2024-%02d-%02d#%04d" % (i % 12 + 1, i % 28 + 1, i), cells) for i in range(200)]
    assert set(rpc.mutate_rows(table, rows)) == {0}
    somebody = overview(visit, host, "all")
    somebody.page.get_by_text("1 warning, 3 to know. ").wait_for()
    kinds = [each.get_attribute("class") for each in first_findings(somebody).all()]
    assert kinds == ["warning", "info", "info"]


def test_the_page_of_a_table_tells_muted_and_nothing(visit, host):
    done = run_trestle(
        "advise", "events", "--mute", "key-time-first", "--reason", "few", "--endpoint", host
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    somebody = overview(visit, host, "events")
    somebody.page.get_by_text("Nothing was found. 1 muted. ").wait_for()
    assert first_findings(somebody).count() == 0


def test_nobody_is_shown(visit, host, connect):
    """On no page that says what the advisor found, where keys tell who somebody is."""
    rpc = connect(host)
    table = rpc.create_table("people", {"f": NEWEST})
    rows = [
        (b"2024-%02d-%02d#jo.%d@example.com" % (i % 12 + 1, i % 28 + 1, i * 7919 % 9973),
         [set_cell("f", b"q", b"v")])
        for i in range(300)
    ]  # fmt: skip
    assert set(rpc.mutate_rows(table, rows)) == {0}
    somebody = visit(host, f"{INSTANCE}/t/people/advice")
    assert look(somebody)["warning"] == 2
    told = somebody.page.locator("main").inner_text()
    assert "#<e-mail>" in told and "@" not in told and "jo." not in told
    somebody = overview(visit, host, "people")
    told = [each.inner_text() for each in first_findings(somebody).all()]
    assert len(told) == 2 and "@" not in "".join(told)


def test_too_little_is_not_nothing(visit, host, connect):
    rpc = connect(host)
    table = rpc.create_table("large", {"f": NEWEST})
    for i in range(24):  # of which the advisor reads eight megabytes
        cell = set_cell("f", b"q", bytes(1_000_000))
        assert set(rpc.mutate_rows(table, [(b"%04d-user" % (i * 7919 % 3001), [cell])])) == {0}
    somebody = overview(visit, host, "large")
    somebody.page.get_by_text("Too little was seen to say something. ").wait_for()
    somebody.visit(f"{INSTANCE}/t/large/advice")
    look(somebody)
    somebody.page.get_by_text("Too little was seen").wait_for()
    assert somebody.page.get_by_text("Nothing was found").count() == 0


@looks("phone", "desktop", "4k")
def test_the_page_of_a_table_is_whole(visit, host, size, scheme):
    somebody = overview(visit, host, "events", size=size, scheme=scheme)
    somebody.screenshot("advice-of-table")
    assert somebody.overflow() <= 0
    assert somebody.violations() == []


def test_what_is_muted_is_told_apart(visit, host):
    reason = "read by the hour <b>only</b>"
    for rule, text in ("key-time-first", reason), ("row-size", "photographs"):
        done = run_trestle(
            "advise", "events", "--mute", rule, "--reason", text, "--endpoint", host
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    somebody = visit(host)
    assert look(somebody) == {"critical": 0, "warning": 0, "info": 1}
    told = somebody.page.get_by_role("region", name="Muted").locator("li").all_inner_texts()
    assert len(told) == 2
    assert "Row keys begin with a time (key-time-first): " + reason in told[0]
    assert "row-size, of which nothing was found: photographs" in told[1]


def test_it_can_be_saved(visit, host):
    somebody = visit(host)
    look(somebody)
    with somebody.page.expect_download() as download:
        somebody.page.get_by_role("button", name="Save as JSON").click()
    assert download.value.suggested_filename == "advice-i.json"
    saved = json.loads(download.value.path().read_text())
    assert {each["table"]: [found["rule"] for found in each["findings"]] for each in saved} == {
        "events": ["key-time-first"], "good": [], "names": ["family-name"],
    }  # fmt: skip


def test_it_looks_again(visit, host, connect):
    somebody = visit(host, f"{INSTANCE}/t/names/advice")
    assert look(somebody)["info"] == 1
    connect(host).delete_table("projects/p/instances/i/tables/names")
    somebody.page.get_by_role("button", name="Look again").click()
    somebody.page.get_by_text("There is no such thing").wait_for()
    assert somebody.violations() == []
    somebody.expect_trouble("404")


def test_keys_lead_to_their_rows(visit, host):
    somebody = visit(host, f"{INSTANCE}/t/events/advice")
    look(somebody)
    warning = somebody.page.locator(".finding.warning")
    key = warning.locator("dd li a").first
    name = key.inner_text()
    key.click()
    somebody.page.get_by_role("heading", name="events").wait_for()
    somebody.page.get_by_text(name).first.wait_for()
    somebody.visit(f"{INSTANCE}/t/events/advice")
    look(somebody)
    warning.get_by_role("link", name="its rows").click()
    somebody.page.get_by_role("heading", name="events").wait_for()


DATABASE = "#/d/shop/(default)/advice"


@pytest.fixture
def shop(fresh_server):
    """A server with a database whose orders are numbered, and that has a large page."""
    server = fresh_server()
    client = client_of(server.host, "shop")
    raw = Raw(client)
    for first in range(1, 1251, 250):
        raw.commit(*({"upsert": raw.entity("Order", n)} for n in range(first, first + 250)))
    client.put(entity(client, "Page", "home", exclude=("text",), text="x" * 600_000))
    return server.host


def look_at_entities(somebody):
    somebody.page.get_by_text("entities sampled,").wait_for()


def test_a_database(visit, shop):
    somebody = visit(shop, "#/d/shop/(default)")
    page = somebody.page
    page.get_by_role("link", name="Advice").click()
    look_at_entities(somebody)
    rules = page.locator(".finding summary").all_inner_texts()
    assert rules == ["The rule entity-keys", "The rule entity-size"]
    orders = page.locator(".finding").first
    assert orders.locator("dd li code").first.inner_text().startswith("Order ")
    assert orders.locator("dd li a").count() == 0
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as JSON").click()
    assert download.value.suggested_filename == "advice-shop (default).json"
    [saved] = json.loads(download.value.path().read_text())
    assert saved["findings"][1]["keys"] == ['Page "home"']


def test_an_instance_leads_to_databases(visit, shop, connect):
    connect(shop).create_table("t", instance="projects/shop/instances/i")
    somebody = visit(shop, "#/p/shop/i/i/advice")
    somebody.page.get_by_role("link", name="(default)").click()
    look_at_entities(somebody)


@looks("phone", "desktop", "4k")
def test_a_database_is_whole(visit, shop, size, scheme):
    somebody = visit(shop, DATABASE, size=size, scheme=scheme)
    look_at_entities(somebody)
    somebody.screenshot("advice-database")
    assert somebody.overflow() <= 0
    assert somebody.violations() == []


def test_an_instance_without_tables(visit, fresh_server, administer):
    server = fresh_server()
    somebody = visit(server.host)
    somebody.page.get_by_text("There is no table to look at").wait_for()
    assert somebody.violations() == []


@looks("phone", "desktop", "4k")
def test_it_is_whole(visit, host, size, scheme):
    somebody = visit(host, size=size, scheme=scheme)
    look(somebody)
    somebody.screenshot("advice")
    assert somebody.overflow() <= 0
    assert somebody.violations() == []


def test_who_may_see_the_table_but_no_keys_is_told(visit, secure):
    secured = secure()
    secured.rpc("admin").create_table("t")
    host = secured.server.host.replace("127.0.0.1", "localhost")
    somebody = visit(host, f"{INSTANCE}/t/t", is_secure=True)
    somebody.log_in("viewer")
    somebody.page.get_by_text("You may not see what the advisor finds").wait_for()
    somebody.expect_trouble("403")


def test_who_may_not_see_it_is_told(visit, secure):
    host = secure().server.host.replace("127.0.0.1", "localhost")
    somebody = visit(host, f"{INSTANCE}/t/t/advice", is_secure=True)
    page = somebody.page
    somebody.log_in("viewer")
    page.get_by_text("You may not see this").wait_for()
    assert somebody.violations() == []
    somebody.expect_trouble("403")
