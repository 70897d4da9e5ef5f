"""The console's page of metrics, in Chromium: that its lines follow what the server does, how it
looks, and what it says when the server is gone or the caller may not see it."""

import contextlib

import pytest
from harness.browser import ALWAYS, Visitor, chromium, looks
from harness.rest import Rest
from harness.rpc import Rpc, set_cell

PAGE = "#/metrics"
CHARTS = ["Requests", "Latency", "Traffic", "Connections", "Cache hits", "Disk",
          "Flushes and compactions", "Stalls", "Queues", "Processors"]  # fmt: skip


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture
def visitor(browser, own_servers):
    """A function that makes a visitor of a host: visitor(host, size=…, scheme=…)."""
    with contextlib.ExitStack() as stack:

        def arrive(host, **more):
            visitor = Visitor(browser, host, **more)
            stack.callback(visitor.leave)
            return visitor

        yield arrive


def write(rpc, table, count=20):
    for i in range(count):
        rpc.mutate(table, f"k{i}".encode(), set_cell("f", b"q", b"v" * 500))
        rpc.read_row(table, f"k{i}".encode())


def wait_for_samples(page, count):
    """Until each line of the chart of connections has so many points."""
    page.wait_for_function(
        """count => {
            const path = document.querySelector("[aria-label=Connections] .line-1");
            return (path?.getAttribute("d").match(/[ML]/g) ?? []).length >= count;
        }""",
        arg=count,
    )


@looks("phone", "desktop", "4k")
def test_the_page_is_whole(visitor, server, rpc, table_name, size, scheme):
    somebody = visitor(server.host, size=size, scheme=scheme)
    write(rpc, table_name)
    somebody.visit(PAGE)
    for count in (2, 3, 4):
        write(rpc, table_name, 10 * count)
        wait_for_samples(somebody.page, count)
    somebody.screenshot("metrics")
    assert somebody.overflow() <= 0
    assert [each.inner_text() for each in somebody.page.locator(".chart h2").all()] == CHARTS
    lefts = "texts => texts.map((text) => text.getBBox().x)"
    assert min(somebody.page.locator(".drawing text").evaluate_all(lefts)) >= 0  # none is cut off
    for title in CHARTS[:3]:
        open_figures(somebody.page, title)
    if (size, scheme) in ALWAYS:
        assert somebody.violations() == []
    somebody.screenshot("metrics-figures")
    assert somebody.overflow() <= 0


def test_charts_are_side_by_side_where_there_is_room(visitor, server):
    """The rules of this page are not among those of telephones, as they have been."""
    for size, expected in (("phone", 1), ("desktop", 4), ("4k", 5)):
        somebody = visitor(server.host, size=size)
        somebody.visit(PAGE)
        tops = [chart.bounding_box()["y"] for chart in somebody.page.locator(".chart").all()]
        assert tops.count(tops[0]) == expected, size


def open_figures(page, chart):
    """The table below a chart, which is made when the browser tells that its part was opened."""
    page.locator(f"[aria-label='{chart}'] summary").click()
    figures = page.get_by_role("table", name=f"{chart}, in figures")
    figures.wait_for()
    return figures


def legend(page, chart, name):
    item = page.locator(f"[aria-label='{chart}'] .legend li").filter(has_text=name)
    return item.locator("b")


def test_lines_follow_what_the_server_does(fresh_server, visitor):
    server = fresh_server()
    rpc = Rpc(server.host)
    table = rpc.create_table("t")
    somebody = visitor(server.host)
    page = somebody.page
    somebody.visit(PAGE)
    wait_for_samples(page, 2)
    write(rpc, table, 40)
    row = page.get_by_role("row").filter(has_text="Bigtable/MutateRow").first
    row.get_by_role("cell").nth(6).get_by_text("40", exact=True).wait_for()  # some come before
    assert row.get_by_role("cell").nth(1).inner_text() == "default"
    page.locator("[aria-label=Requests] .legend").get_by_text("Bigtable/MutateRow").wait_for()
    described = page.locator("[aria-label=Latency] svg").get_attribute("aria-label")
    assert described.startswith("Latency: median ")
    assert legend(page, "Connections", "connections").inner_text() != "0"
    assert "Insight" not in page.locator("main").inner_text()
    assert open_figures(page, "Traffic").get_by_role("row").count() == 3
    assert page.get_by_text(f"trestle {version(server.host)}, up").count() == 1
    rpc.close()


def version(host):
    return Rest(host).call("GET", "/v1/servers/self/metrics")["version"]


def test_a_cursor_goes_over_a_chart(visitor, server, rpc, table_name):
    """By keys, which say what is there, and by the mouse."""
    somebody = visitor(server.host)
    page = somebody.page
    somebody.visit(PAGE)
    write(rpc, table_name)
    wait_for_samples(page, 3)
    page.get_by_role("button", name="Pause").click()
    chart = page.locator("section[aria-label=Connections]")
    drawing, tip = chart.locator(".drawing"), chart.locator(".tip")
    said = chart.locator("[aria-live=polite]")
    drawing.focus()
    assert tip.is_hidden()
    page.keyboard.press("Home")
    first = said.inner_text()
    assert "UTC, connections " in first and ", requests " in first
    assert tip.inner_text().replace("\n", ", ") == first
    page.keyboard.press("ArrowRight")
    assert said.inner_text() != first
    page.keyboard.press("ArrowLeft")
    assert said.inner_text() == first
    somebody.screenshot("metrics-cursor")
    assert somebody.violations() == []
    page.keyboard.press("Escape")
    assert tip.is_hidden()
    page.keyboard.press("End")
    assert tip.is_visible()
    page.keyboard.press("Tab")
    assert tip.is_hidden()
    box = drawing.bounding_box()
    page.mouse.move(box["x"] + box["width"] - 5, box["y"] + 40)
    assert tip.inner_text().replace("\n", ", ") == said.inner_text()  # the last one


def test_who_pauses_is_not_disturbed(visitor, server):
    somebody = visitor(server.host)
    page = somebody.page
    asked = []
    somebody.visit(PAGE)
    page.get_by_role("button", name="Pause").click()
    page.wait_for_timeout(100)  # one that was under way
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate("() => new Promise(go => setTimeout(go, 2500))")
    assert asked == []
    with page.expect_request("**/servers/self/metrics*"):
        page.get_by_role("button", name="Pause").click()


def test_the_keyboard_leads_there(visitor, server):
    somebody = visitor(server.host)
    somebody.visit()
    somebody.page.keyboard.press("g")
    somebody.page.keyboard.press("m")
    somebody.page.get_by_role("heading", name="Metrics", exact=True).wait_for()


def test_a_server_that_is_gone_and_comes_back(visitor, server):
    """What was seen stays, and goes on."""
    somebody = visitor(server.host)
    page = somebody.page
    somebody.visit(PAGE)
    somebody.context.set_offline(True)
    page.get_by_text("The server cannot be reached.").wait_for()
    assert page.locator(".chart").count() == len(CHARTS)
    assert somebody.violations() == []
    somebody.screenshot("metrics-gone")
    somebody.context.set_offline(False)
    page.get_by_text("The server cannot be reached.").wait_for(state="detached")
    somebody.expect_trouble("ERR_INTERNET_DISCONNECTED")


def test_who_may_not_see_them(visitor, server):
    somebody = visitor(server.host)
    page = somebody.page
    refusal = '{"error": {"code": 403, "status": "PERMISSION_DENIED", "message": "Access denied."}}'
    page.route("**/servers/self/metrics*", lambda route: route.fulfill(status=403, body=refusal))
    somebody.visit(PAGE)
    page.get_by_text("You may not see this").wait_for()
    assert page.get_by_text("Access denied.").count() == 1
    assert somebody.violations() == []
    somebody.screenshot("metrics-refused")
    somebody.expect_trouble("403")
