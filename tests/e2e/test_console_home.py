"""The console's home page, in Chromium: what it says of a server without data, of one that is well,
and that what it shows of the past is what its queries give."""

import subprocess
import time

import pytest
from harness.browser import ALWAYS, Visitor, chromium, looks
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest
from harness.rpc import INSTANCE, Rpc, set_cell
from harness.server import Server, binary

TABLE = f"{INSTANCE}/tables/t"


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def used(tmp_path_factory):
    """A server with a table, which remembers a point of it."""
    server = Server(tmp_path_factory.mktemp("used")).start()
    rpc, rest = Rpc(server.host), Rest(server.host)
    rpc.create_table("t")
    rpc.mutate(TABLE, b"k", set_cell("f", b"q", b"v"))
    deadline = time.monotonic() + PATIENCE_SECONDS
    while "times" not in rest.call("GET", "/v1/servers/self/metricHistory?since=3600s"):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    rpc.close()
    yield server
    server.close()


@pytest.fixture
def visitor(browser, own_servers):
    """A function that makes a visitor of a host: visitor(host, size=…, scheme=…)."""
    arrived = []

    def arrive(host, **more):
        arrived.append(Visitor(browser, host, **more))
        return arrived[-1]

    yield arrive
    for each in arrived:
        each.leave()


def visit_home(somebody):
    somebody.visit("#/")
    somebody.page.locator(".verdict").wait_for()
    somebody.page.wait_for_function(
        "() => ![...document.querySelectorAll('.home-facts span')].some(s => s.innerText === '…')"
    )


def fact(page, name):
    return page.locator(".home-facts dt", has_text=name).locator("xpath=../dd").inner_text()


def test_a_server_that_is_well_says_so(visitor, used):
    somebody = visitor(used.host)
    page = somebody.page
    visit_home(somebody)
    assert page.locator(".verdict strong").inner_text() == "All is well."
    assert fact(page, "Growth") == "known after an hour"
    assert fact(page, "Newest backup") == "there is none"
    assert fact(page, "Operations") == "none runs"
    assert fact(page, "Hot ranges") == "none"
    assert fact(page, "Slow requests").split()[-1] in ("none", "request", "requests")
    page.locator("[aria-label=Requests] svg").wait_for()
    assert page.get_by_text("There is no data yet").count() == 0


def test_each_query_below_is_one_that_runs(visitor, used):
    """With the server's own words, and the lines that the charts show."""
    somebody = visitor(used.host)
    page = somebody.page
    visit_home(somebody)
    page.get_by_text("The same by SQL").click()
    queries = [each.inner_text() for each in page.locator(".asked pre").all()]
    assert len(queries) == 3
    for query in queries:
        done = subprocess.run(
            [binary(), "sql", "--endpoint", used.host], input=f"{query};\n", capture_output=True,
            text=True, timeout=PATIENCE_SECONDS, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


def test_growth_is_told_with_the_day_when_the_disk_is_full(visitor, used):
    somebody = visitor(used.host)
    visit_home(somebody)
    script = """async ([sizes, free]) => {
        const { growthText } = await import(document.querySelector("script[type=module]").src
            .replace("main.js", "home_growth.js"));
        const DAY = 86400000, now = Date.parse("2026-11-29T00:00:00Z");
        const samples = sizes.map((size, i) => ({time: now - (sizes.length - 1 - i) * DAY,
            values: {table_bytes: size, log_bytes: 0, write_buffer_bytes: 0}}));
        return growthText(samples, free, now);
    }"""
    gib = 1 << 30

    def told(sizes, free):
        return somebody.page.evaluate(script, [sizes, free])

    assert told([gib, 2 * gib, 3 * gib], 10 * gib) == (
        "1 GiB a day; at that rate the disk is full on 2026-12-09"
    )
    assert told([3 * gib, 2 * gib], 10 * gib) == "does not grow"
    assert told([gib], 10 * gib) == "known after an hour"
    assert told([], 10 * gib) == "known after an hour"
    assert told([0, 4096], 10 * gib).endswith("full in more than ten years")


def test_a_newcomer_is_shown_how_to_begin_and_sees_the_first_row(visitor, fresh_server):
    server = fresh_server()
    somebody = visitor(server.host)
    page = somebody.page
    visit_home(somebody)
    page.get_by_text("three ways to begin").wait_for()
    for language, words in (("Go", "NewAdminClient"), ("Java", "newBuilderForEmulator"),
                            ("Node", "@google-cloud/bigtable"), ("Python", "direct_row")):
        page.get_by_label("Language").select_option(language)
        shown = page.get_by_role("region", name=f"A row, in {language}").inner_text()
        assert words in shown and server.host.split(":")[1] in shown
    assert f"--endpoint {server.host}" in page.get_by_role("region", name="An import").inner_text()
    rpc = Rpc(server.host)
    rpc.create_table("t")
    rpc.mutate(TABLE, b"k", set_cell("f", b"q", b"v"))
    page.get_by_text("The first row has arrived").wait_for()
    page.get_by_role("link", name="See it in t").click()
    page.wait_for_url("**/i/i/t/t/rows")
    rpc.close()


@looks("phone", "desktop")
def test_the_page_is_whole(visitor, used, size, scheme):
    somebody = visitor(used.host, size=size, scheme=scheme)
    visit_home(somebody)
    somebody.page.locator(".chart svg").first.wait_for()
    somebody.screenshot("home")
    assert somebody.overflow() <= 0
    if (size, scheme) in ALWAYS:
        assert somebody.violations() == []


@looks("phone", "desktop")
def test_the_page_of_a_newcomer_is_whole(visitor, fresh_server, size, scheme):
    somebody = visitor(fresh_server().host, size=size, scheme=scheme)
    visit_home(somebody)
    somebody.screenshot("home-new")
    assert somebody.overflow() <= 0
    if (size, scheme) in ALWAYS:
        assert somebody.violations() == []
