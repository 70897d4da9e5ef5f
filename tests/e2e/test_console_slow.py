"""The console's page of slow requests, in Chromium. Every request is slow here."""

import contextlib

import pytest
from harness.browser import Visitor, chromium, looks
from harness.rpc import set_cell
from harness.sql import execute, prepare

PAGE = "#/slow"
QUERY = "SELECT _key, f['q'] FROM orders WHERE _key > 'order-2' LIMIT 3"


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture
def visit(browser, own_servers):
    """A function that makes somebody who looks at the page: visit(host, size=…, scheme=…)."""
    with contextlib.ExitStack() as stack:

        def arrive(host, **more):
            somebody = Visitor(browser, host, **more)
            stack.callback(somebody.leave)
            somebody.visit(PAGE)
            return somebody

        yield arrive


@pytest.fixture
def slow_server(fresh_server, connect):
    """A server that has had a write, a query and a read, and describes them all."""
    server = fresh_server("--slow-request", "1us")
    rpc = connect(server.host)
    table = rpc.create_table("orders")
    rpc.mutate_rows(
        table, [(b"order-%d" % i, [set_cell("f", b"q", b"value")]) for i in range(9)]
    )
    execute(rpc, prepare(rpc, QUERY))
    rpc.read(
        table,
        rows={"row_ranges": [{"start_key_closed": b"order-3"}]},
        filter={"cells_per_column_limit_filter": 1},
    )
    return server


def methods(page):
    return [each.inner_text() for each in page.locator(".slow td.what strong").all()]


def test_a_row_opens_with_its_plan(visit, slow_server):
    somebody = visit(slow_server.host)
    page = somebody.page
    shown = methods(page)
    assert shown.index("ReadRows") < shown.index("ExecuteQuery") < shown.index("MutateRows")
    button = page.get_by_role("button", name="ExecuteQuery")
    button.focus()
    page.keyboard.press("Enter")
    plan = page.locator("tr.more pre")
    assert plan.inner_text().startswith(QUERY)
    assert "read: " in plan.inner_text()
    assert button.get_attribute("aria-expanded") == "true"
    page.get_by_text("google.bigtable.v2.Bigtable/ExecuteQuery").wait_for()
    assert somebody.violations() == []
    page.keyboard.press("Enter")
    plan.wait_for(state="detached")


def test_orders_and_refresh(visit, slow_server, connect):
    somebody = visit(slow_server.host)
    page = somebody.page
    page.get_by_label("Order").select_option("most rows read first")
    assert methods(page)[0] == "MutateRows"
    page.get_by_label("Order").select_option("latest first")
    connect(slow_server.host).create_table("more")
    count = len(methods(page))
    page.get_by_role("button", name="Refresh").click()
    page.wait_for_function(
        "count => document.querySelectorAll('.slow td.what').length > count", arg=count
    )
    assert "CreateTable" in methods(page)


def test_words_where_there_is_none(visit, fresh_server):
    somebody = visit(fresh_server("--slow-request", "1h").host)
    somebody.page.get_by_text("No request was slow").wait_for()
    somebody.page.get_by_text("None has taken 1 hour or longer").wait_for()
    assert somebody.violations() == []
    other = visit(fresh_server("--slow-request", "0").host)
    other.page.get_by_text("No request counts as slow").wait_for()


def test_the_keyboard_leads_there(visit, server):
    somebody = visit(server.host)
    for keys, heading in (("gi", "Instances"), ("gl", "Slow requests")):
        for key in keys:
            somebody.page.keyboard.press(key)
        somebody.page.get_by_role("heading", name=heading).wait_for()


@looks("phone", "desktop", "4k")
def test_it_is_whole(visit, slow_server, size, scheme):
    somebody = visit(slow_server.host, size=size, scheme=scheme)
    somebody.page.get_by_role("button", name="ExecuteQuery").click()
    somebody.screenshot("slow")
    assert somebody.overflow() <= 0
    assert somebody.violations() == []


def test_who_may_not_see_them_is_told(visit, secure):
    host = secure().server.host.replace("127.0.0.1", "localhost")
    somebody = visit(host, is_secure=True)
    page = somebody.page
    somebody.log_in("stranger")
    page.get_by_text("You may not see this").wait_for()
    page.get_by_text("slowRequests.list").wait_for()
    somebody.expect_trouble("403")
