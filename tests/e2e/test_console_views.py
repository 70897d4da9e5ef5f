"""The console's section of a table's materialized views, in Chromium."""

import contextlib

import pytest
from harness.browser import chromium, visitors
from harness.rpc import INSTANCE, set_cell
from harness.views import Views

QUERY = "SELECT f['q'] AS q, COUNT(*) AS n, SUM(LENGTH(f['q'])) AS s FROM `{}` GROUP BY q"


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture
def visit(browser, own_servers):
    with visitors(browser) as arrive:
        yield arrive


def test_a_view_is_made_shown_and_deleted(server, rpc, client, make_table, visit):
    name = make_table()
    table = name.rsplit("/", 1)[1]
    for i in range(20):
        rpc.mutate(name, b"k%d" % i, set_cell("f", b"q", b"v%d" % (i % 3), 1000))
    somebody = visit(server.host, name)
    page = somebody.page
    section = page.locator(".materialized-views")
    section.get_by_text("nothing is kept beside the table").wait_for()
    page.get_by_role("button", name="New view").click()
    offered = page.get_by_label("Query").input_value()
    assert len(list(client.execute_query(offered, "i"))) == 20
    page.get_by_label("Name").fill(f"v-{table}")
    page.get_by_label("Query").fill(f"SELECT * FROM `{table}`")
    page.get_by_role("button", name="Make").click()
    page.get_by_text("GROUP BY or ORDER BY").first.wait_for()  # what the server says is wrong
    somebody.expect_trouble("400")
    page.get_by_label("Query").fill(QUERY.format(table))
    page.get_by_role("button", name="Make").click()
    row = section.locator(".views tbody tr")
    row.get_by_text("up to date").wait_for()
    told = row.inner_text()
    assert somebody.violations() == [] and somebody.overflow() <= 0
    somebody.screenshot("views")
    assert f"v-{table}" in told and "GROUP BY q" in told and "none" in told
    assert rpc.read(f"{INSTANCE}/materializedViews/v-{table}")
    row.get_by_role("button").click()
    page.get_by_role("button", name="Delete", exact=True).last.click()
    section.get_by_text("nothing is kept beside the table").wait_for()


def test_what_is_left_out_is_counted(server, rpc, admin, make_table, new_table_id, visit):
    name = make_table()
    table = name.rsplit("/", 1)[1]
    for i in range(3):
        rpc.mutate(name, b"k%d" % i, set_cell("f", b"q", b"1" if i else b"no number", 1000))
    with contextlib.closing(Views(admin, rpc, new_table_id)) as views:
        views.create(
            f"SELECT CAST(CAST(f['q'] AS STRING) AS INT64) AS n FROM `{table}` GROUP BY n"
        )
        page = visit(server.host, name).page
        page.locator(".materialized-views .views tbody tr").get_by_text("1 rows").wait_for()
