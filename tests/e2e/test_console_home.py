"""The console's home page, in Chromium: what it says of a server without data, of one that is well,
and that what it shows of the past is what its queries give."""

import subprocess
import time
from urllib.parse import parse_qs, urlsplit

import pytest
from google.cloud.bigtable_admin_v2 import types
from harness.backups import Backups
from harness.browser import ALWAYS, Visitor, chromium, looks
from harness.hot_load import scanning
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
    told = page.locator(".home-facts dt", has_text=name).locator("xpath=../dd").inner_text()
    return told.removesuffix(" SQL")


def test_a_server_that_is_well_says_so(visitor, used):
    somebody = visitor(used.host)
    page = somebody.page
    visit_home(somebody)
    assert page.locator(".verdict strong").inner_text() == "All is well."
    assert fact(page, "Growth") == "known after an hour"
    assert fact(page, "Newest backup") == "none is known"
    assert fact(page, "Operations") == "none runs"
    assert fact(page, "Hot ranges") == "none"
    assert fact(page, "Slow requests").split()[-1] in ("none", "request", "requests")
    page.locator("[aria-label=Requests] svg").wait_for()
    assert page.get_by_text("There is no data yet").count() == 0


def run_query(host, query):
    """By the shell, as CSV: a dictionary for each row."""
    done = subprocess.run(
        [binary(), "sql", "--endpoint", host, "--format", "csv"], input=f"{query};\n",
        capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    head, *lines = [line.split(",") for line in done.stdout.splitlines()]
    return [dict(zip(head, line, strict=True)) for line in lines]


ASKED = ["Health", "Data", "Free on the disk", "Growth", "Newest backup", "Hot ranges",
         "Slow requests", "Advice that waits", "Operations", "Requests", "Latency",
         "Size"]  # fmt: skip


def queries(page):
    """What stands beside each number, by what the number is."""
    return {each.get_attribute("aria-label").removesuffix(", by SQL"):
            parse_qs(urlsplit(each.get_attribute("href")[1:]).query)["sql"][0]
            for each in page.locator("a.sql").all()}  # fmt: skip


def test_beside_each_number_is_a_query_that_gives_it(visitor, used):
    somebody = visitor(used.host)
    page = somebody.page
    visit_home(somebody)
    asked = queries(page)
    assert list(asked) == ASKED
    told = {what: run_query(used.host, query) for what, query in asked.items()}
    assert float(told["Health"][0]["health"]) == 0
    assert float(told["Hot ranges"][0]["hot_ranges"]) == 0
    assert float(told["Slow requests"][0]["slow_requests_kept"]) >= 0
    assert float(told["Operations"][0]["operations_running"]) == 0
    assert float(told["Free on the disk"][0]["disk_free_bytes"]) > 0
    assert told["Newest backup"][0].keys() > {"backup_newest_seconds"}


def wait_until_remembered(host, query, line, least):
    """A point comes every ten seconds."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while float(run_query(host, query)[0][line] or 0) < least:
        assert time.monotonic() < deadline
        time.sleep(0.2)


def dated(number):
    return b"2024-%02d-%02d#%04d" % (number % 12 + 1, number % 28 + 1, number)


def fill_badly(host):
    """A table whose keys begin with a time, which the advisor warns of."""
    rpc = Rpc(host)
    name = rpc.create_table("events", {"f": types.GcRule(max_num_versions=1)})
    rows = [(dated(i), [set_cell("f", b"q", b"%d" % i * 100)]) for i in range(500)]
    assert set(rpc.mutate_rows(name, rows)) == {0}
    rpc.close()


def test_operations_that_run_and_advice_that_waits_have_queries(
    visitor, fresh_server, administer
):
    server = fresh_server("--backup-rate", "1KB")
    admin = administer(server.host)
    instance = admin.create_instance("i")
    fill_badly(server.host)
    Backups(admin, instance).begin("slow", "events")
    Rest(server.host).call("GET", f"/v1/{INSTANCE}:advise?tables=events")
    somebody = visitor(server.host)
    page = somebody.page
    visit_home(somebody)
    assert fact(page, "Operations") == "1 run"
    assert fact(page, "Advice that waits") == "1 finding"
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (asked := queries(page)):  # nothing is remembered yet
        assert time.monotonic() < deadline
        page.reload()
        visit_home(somebody)
    wait_until_remembered(server.host, asked["Operations"], "operations_running", 0.5)
    wait_until_remembered(server.host, asked["Advice that waits"], "advice_waiting", 1)
    page.locator(".home-facts").get_by_role("link", name="1 finding").click()
    page.wait_for_url("**/p/p/i/i/advice")
    page.get_by_text("Row keys begin with a time").first.wait_for()


@pytest.mark.long
def test_nobody_has_to_ask_for_advice(visitor, fresh_server):
    """A table is looked at within two minutes of its creation, which this test waits for."""
    server = fresh_server()
    fill_badly(server.host)
    somebody = visitor(server.host)
    deadline = time.monotonic() + PATIENCE_SECONDS
    visit_home(somebody)
    while fact(somebody.page, "Advice that waits") != "1 finding":
        assert time.monotonic() < deadline
        time.sleep(1)
        somebody.page.reload()
        visit_home(somebody)


def test_without_history_there_is_nothing_to_ask(visitor, fresh_server):
    server = fresh_server("--metrics-retention", "0")
    rpc = Rpc(server.host)
    rpc.create_table("t")
    rpc.close()
    somebody = visitor(server.host)
    page = somebody.page
    visit_home(somebody)
    page.get_by_text("This server keeps no history (--metrics-retention 0)").wait_for()
    assert page.locator("a.sql").count() == 0
    assert page.get_by_text("The same by SQL").count() == 0
    page.locator("h1", has_text="Home").wait_for()


def test_before_the_first_point_there_is_nothing_to_ask(visitor, used):
    somebody = visitor(used.host)
    page = somebody.page

    def forget(route):
        answer = route.fetch().json()
        route.fulfill(json={**answer, "times": [], "lines": []})

    def overlook(route):
        answer = route.fetch().json()
        found = [each for each in answer["metrics"] if each["name"] != "trestle_advice_waiting"]
        route.fulfill(json={**answer, "metrics": found})

    page.route("**/metricHistory?*", forget)
    page.route("**/servers/self/metrics?*", overlook)
    visit_home(somebody)
    page.get_by_text("Nothing is remembered yet").wait_for()
    assert page.locator("a.sql").count() == 0
    assert fact(page, "Advice that waits") == "not looked for yet"
    page.unroute_all()


def test_a_server_without_instances_is_asked_itself(visitor, fresh_server):
    """One that has only Datastore's data had no ways to queries."""
    server = fresh_server("--auto-create", "off")
    rest = Rest(server.host)
    put = {"upsert": {"key": {"path": [{"kind": "Task", "name": "a"}]}}}
    rest.call("POST", "/v1/projects/demo:commit",
              {"mode": "NON_TRANSACTIONAL", "mutations": [put]})  # fmt: skip
    somebody = visitor(server.host)
    page = somebody.page
    deadline = time.monotonic() + PATIENCE_SECONDS
    while page.locator("a.sql").count() == 0:  # nothing is remembered yet
        assert time.monotonic() < deadline
        visit_home(somebody)
        page.reload()
        page.locator(".verdict").wait_for()
    assert list(queries(page)) == ASKED
    page.get_by_label("Operations, by SQL").click()
    page.wait_for_url("**/console/#/query?sql=*")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_text("1 row in").wait_for()
    editor = page.get_by_label("SQL", exact=True)
    editor.fill("SELECT * FROM sys")
    editor.press("End")
    page.get_by_role("option", name="system/metrics").click()
    assert editor.input_value() == "SELECT * FROM `system/metrics`"
    assert somebody.violations() == []
    somebody.screenshot("query-server")


def test_a_query_is_opened_and_run(visitor, used):
    somebody = visitor(used.host)
    page = somebody.page
    visit_home(somebody)
    page.get_by_label("Data, by SQL").click()
    page.get_by_label("SQL", exact=True).wait_for()
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_text("1 row in").wait_for()
    head = page.locator(".results thead th").all_inner_texts()
    assert head == ["_key", "table_bytes", "log_bytes"]


def test_all_queries_stand_below(visitor, used):
    somebody = visitor(used.host)
    page = somebody.page
    visit_home(somebody)
    page.get_by_text("The same by SQL").click()
    assert page.locator(".asked h3").all_inner_texts() == ASKED
    assert page.locator(".asked pre").all_inner_texts() == list(queries(page).values())


def test_hot_ranges_lead_to_their_place_on_the_map(visitor, fresh_server, connect):
    server = fresh_server("--heat-window", "1s", "--balance=false")
    rpc = connect(server.host)
    name = rpc.create_table("hot", splits=[b"m", b"\xff\x00"])
    rows = [(b"m%04d" % i, [set_cell("f", b"q", bytes(1000), 1000)]) for i in range(1000)]
    assert set(rpc.mutate_rows(name, rows)) == {0}
    somebody = visitor(server.host)
    page = somebody.page
    row = page.get_by_role("region", name="Hot ranges").get_by_role("row").filter(has_text="hot")
    with scanning(connect, server, name, b"m"):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while row.count() == 0:
            assert time.monotonic() < deadline
            visit_home(somebody)
            page.wait_for_timeout(300)
    told = row.first.inner_text()
    assert "m" in told.split() and "\\xff\\x00" in told and "%" in told
    assert somebody.violations() == []
    somebody.screenshot("home-hot")
    row.first.get_by_role("link", name="Heat of hot from m up to").click()
    page.locator(".heat-picture").wait_for()
    page.locator(".tip").get_by_text("from m").first.wait_for()


def test_the_verdict_changes_while_the_page_is_open(visitor, used):
    """It once said that all was well below a banner that said the contrary, and after a kill."""
    somebody = visitor(used.host)
    page = somebody.page
    visit_home(somebody)
    verdict = page.locator(".verdict strong")
    assert verdict.inner_text() == "All is well."

    reasons = [{"name": "disk_full", "text": "No space.", "since": "2026-11-30T00:00:00Z"}]

    def answer(level):
        page.unroute("**/health")
        told = {"level": level, "reasons": reasons}
        page.route("**/health", lambda route: route.fulfill(json=told))

    def ask_again():
        page.evaluate("() => document.dispatchEvent(new Event('visibilitychange'))")

    page.route("**/health", lambda route: route.abort())
    ask_again()
    page.get_by_text("The server does not answer.").wait_for()
    for level, words in (
        ("no_writes", "The server takes no writes."),
        ("degraded", "The server needs looking after."),
        ("ok", "All is well."),
    ):
        answer(level)
        ask_again()
        page.locator(f".verdict.{level} strong", has_text=words).wait_for()
    somebody.expect_trouble("ERR_FAILED")


def test_growth_is_told_with_the_day_when_the_disk_is_full(visitor, used):
    somebody = visitor(used.host)
    visit_home(somebody)
    script = """async ([sizes, free]) => {
        const { growthText } = await import(document.querySelector("script[type=module]").src
            .replace("main.js", "home_growth.js"));
        const DAY = 86400000, now = Date.parse("2026-11-29T00:00:00Z");
        const samples = sizes.map((size, i) => ({time: now - (sizes.length - 1 - i) * DAY,
            values: {table_bytes: size, log_bytes: 0}}));
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
