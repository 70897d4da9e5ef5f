"""What the console shows of the past: the page of metrics and that of a table, in Chromium, of a
server that was killed in between."""

import time

import pytest
from harness.browser import ALWAYS, Visitor, chromium, looks
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest
from harness.rpc import INSTANCE, Rpc, set_cell
from harness.server import Server

TABLE = f"{INSTANCE}/tables/t"
PAGES = {"metrics": "#/metrics", "table": "#/p/p/i/i/t/t"}


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


def remembers_writes(rest):
    """Whether a point has some, of the table, too."""
    answer = rest.call("GET", f"/v1/{TABLE}:metricHistory?since=3600s")
    values = {line["name"]: line["values"] for line in answer.get("lines", [])}
    return any(value > 0 for value in values.get("rows_written", []) if value != "NaN")


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A server that was killed when it remembered what was written, and runs again."""
    server = Server(tmp_path_factory.mktemp("killed")).start()
    rpc, rest = Rpc(server.host), Rest(server.host)
    rpc.create_table("t")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not remembers_writes(rest):
        assert time.monotonic() < deadline
        for i in range(20):
            rpc.mutate(TABLE, b"%d" % i, set_cell("f", b"q", b"v" * 500))
        time.sleep(0.5)
    rpc.close()
    server.kill()
    yield server.start()
    server.close()


@pytest.fixture
def visitor(browser, killed):
    """A function that makes a visitor: visitor(size=…, scheme=…)."""
    arrived = []

    def arrive(**more):
        arrived.append(Visitor(browser, killed.host, **more))
        return arrived[-1]

    yield arrive
    for each in arrived:
        each.leave()


def most(page, chart, line):
    """What a line came to at most, of the chart's figures."""
    page.locator(f"[aria-label='{chart}'] summary").click()
    figures = page.get_by_role("table", name=f"{chart}, in figures")
    row = figures.get_by_role("row").filter(has_text=line)
    return row.get_by_role("cell").last.inner_text()


def test_metrics_of_before_the_kill_are_shown(visitor):
    somebody = visitor()
    page = somebody.page
    somebody.visit(PAGES["metrics"])
    page.get_by_text("Remembered for 14 days, over restarts.").wait_for()
    page.locator("[aria-label=Requests] .legend").get_by_text("Bigtable/MutateRow").wait_for()
    assert float(most(page, "Requests", "MutateRow").replace(",", "")) > 0
    assert most(page, "Latency", "median") not in ("–", "0 s")
    with page.expect_response("**/metricHistory?since=86400s*") as answered:
        page.get_by_label("How far back").select_option("a day")
    assert answered.value.json()["step"] == "720s"


def test_a_table_shows_what_was_written(visitor):
    somebody = visitor()
    page = somebody.page
    somebody.visit(PAGES["table"])
    page.locator("[aria-label=Rows] .legend").get_by_text("written").wait_for()
    assert float(most(page, "Rows", "written").replace(",", "")) > 0
    page.get_by_label("How far back").select_option("two weeks")
    page.locator("[aria-label=Size] svg").wait_for()


@looks("phone", "desktop")
@pytest.mark.parametrize("name", PAGES)
def test_pages_are_whole(visitor, name, size, scheme):
    somebody = visitor(size=size, scheme=scheme)
    somebody.visit(PAGES[name])
    somebody.page.locator(".chart svg").first.wait_for()
    somebody.screenshot(f"history-{name}")
    assert somebody.overflow() <= 0
    if (size, scheme) in ALWAYS:
        assert somebody.violations() == []
