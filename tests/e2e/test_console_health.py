"""The console's banner, in Chromium: on every page, red where the server takes no writes, amber
where it is degraded, with the reasons; gone when they are. And a failed operation's end."""

import datetime
import re
import ssl

import pytest
from harness.browser import Visitor, chromium
from harness.moved_server import MovedServer
from harness.rest import Rest
from harness.rpc import Rpc, set_cell
from harness.secured import Secured
from harness.server import EXTERNAL, Server, http_get

pytestmark = pytest.mark.skipif(bool(EXTERNAL), reason="needs servers of its own")
ALL_OF_IT = "16TB"
TABLE = "#/p/p/i/i/t/t"
PAGES = ["#/", "#/p/p/i/i", "#/p/p/i/i/query", "#/p/p/i/i/clusters", "#/p/p/i/i/backups",
         "#/p/p/i/i/advice", TABLE, f"{TABLE}/rows", f"{TABLE}/heat", "#/datastore",
         "#/d/p/(default)", "#/operations", "#/audit", "#/slow", "#/metrics",
         "#/settings", "#/nowhere"]  # fmt: skip
BANNER = "aside[aria-label=Health]"


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """A server with a table and an entity, and less space than it keeps in reserve."""
    server = Server(tmp_path_factory.mktemp("full")).start()
    rpc = Rpc(server.host)
    rpc.mutate(rpc.create_table("t"), b"k", set_cell("f", b"q", b"v"))
    entity = {"key": {"path": [{"kind": "Task", "name": "one"}]}}
    body = {"mode": "NON_TRANSACTIONAL", "mutations": [{"insert": entity}]}
    Rest(server.host).call("POST", "/v1/projects/p:commit", body)
    rpc.close()
    server.stop()
    server.arguments += ["--disk-reserve", ALL_OF_IT]
    yield server.start()
    server.close()


def colour(somebody):
    return somebody.page.locator(BANNER).evaluate("e => getComputedStyle(e).color")


@pytest.mark.parametrize("page", PAGES)
def test_every_page_says_so(browser, full, page):
    somebody = Visitor(browser, full.host)
    somebody.visit(page)
    banner = somebody.page.locator(BANNER)
    banner.wait_for()
    text = banner.inner_text()
    assert "The server takes no writes." in text
    assert re.search(r"refused: \d+ MB are free on the disk .* since 20\S+ \S+ UTC", text)
    assert somebody.overflow() <= 0
    somebody.leave()


@pytest.mark.parametrize("size, scheme", [("phone", "light"), ("desktop", "dark")])
def test_it_can_be_read_by_all(browser, full, size, scheme):
    somebody = Visitor(browser, full.host, size=size, scheme=scheme)
    for page in ("#/", f"{TABLE}/rows", "#/metrics"):
        somebody.visit(page)
        somebody.page.locator(BANNER).wait_for()
        assert somebody.violations() == [], page
        assert somebody.overflow() <= 0
    somebody.screenshot("no-writes")
    somebody.leave()


def test_it_comes_and_goes_while_a_page_is_open(browser, tmp_path):
    """Amber: a clock that was ahead. Nobody loads a page again."""
    server = MovedServer(tmp_path)
    server.start()
    somebody = Visitor(browser, server.host)
    try:
        rpc = Rpc(server.host)
        name = rpc.create_table("t")
        somebody.visit("#/")
        assert somebody.page.locator(BANNER).count() == 0
        server.move(3600)
        rpc.mutate(name, b"k", set_cell("f", b"q", b"v"))
        server.move(0)
        somebody.page.locator(BANNER).wait_for()
        assert "The server needs looking after." in somebody.page.locator(BANNER).inner_text()
        assert "minutes ahead of the wall clock" in somebody.page.locator(BANNER).inner_text()
        assert colour(somebody) == "rgb(125, 82, 0)"
        assert somebody.violations() == []
        server.move(2 * 3600)
        somebody.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        somebody.page.locator(BANNER).wait_for(state="detached")
        somebody.leave()
    finally:
        server.close()


def test_who_has_not_logged_in_sees_no_names(browser, tmp_path, fresh_server):
    """But sees that it is so, as /readyz tells it. Who has, sees all."""
    secured = Secured(tmp_path, fresh_server, "--disk-reserve", ALL_OF_IT)
    host = secured.server.host.replace("127.0.0.1", "localhost")
    somebody = Visitor(browser, host, is_secure=True)
    somebody.visit()
    banner = somebody.page.locator(BANNER)
    banner.wait_for()
    general = "Less space is free on the disk than is kept in reserve."
    assert general in banner.inner_text()
    assert somebody.page.get_by_label("Token").is_visible()
    assert colour(somebody) == "rgb(165, 40, 27)"
    assert somebody.violations() == []
    context = ssl.create_default_context(cafile=secured.authority.certificate)
    page = http_get(f"https://{host}/readyz", context)
    assert page == (503, f"no_writes\ndisk_reserve: {general}\n")
    somebody.log_in("admin")
    banner.get_by_text("MB are free on the disk of").wait_for()
    somebody.leave()
    secured.close()


def test_a_failed_operation_has_an_end(browser, fresh_server, administer, connect):
    server = fresh_server()
    name = connect(server.host).create_table("t")
    directory = server.data / "backups"
    directory.rename(server.data / "elsewhere")
    directory.write_text("no directory")
    expires = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=7)
    operation = administer(server.host).tables.create_backup(
        parent=name.replace("/tables/t", "/clusters/trestle"),
        backup_id="b",
        backup={"source_table": name, "expire_time": expires},
    )
    with pytest.raises(Exception, match="Not a directory"):
        operation.result()
    somebody = Visitor(browser, server.host)
    somebody.visit("#/operations")
    row = somebody.page.locator("tbody tr", has_text="create backup")
    began, ended = (row.locator("td.time").nth(i).inner_text() for i in range(2))
    assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d", ended) and began <= ended
    somebody.leave()
    series = f'trestle_table_backup_failures_total{{table="{name}",by="request"}} 1'
    assert series in http_get(f"http://{server.host}/metrics")[1].splitlines()


def test_whole_backups_and_the_archive_are_among_the_operations(browser, tmp_path, fresh_server):
    place, archive = tmp_path / "whole", tmp_path / "archive"
    place.mkdir()
    archive.mkdir()
    table = "projects/p/instances/i/tables/t"
    server = fresh_server("--backup-places", str(place), "--backup-schedule", "24h",
                          "--backup-scopes", f"{table}=2h/3",
                          "--archive", str(archive))  # fmt: skip
    somebody = Visitor(browser, server.host)
    somebody.visit("#/operations")
    section = somebody.page.locator("section.whole")
    row = section.locator("tbody tr", has_text="whole backup, by the schedule")
    row.get_by_text("done").wait_for()
    assert str(place) in row.inner_text()
    text = section.inner_text()
    assert f"each 1d, into {place}" in text
    assert re.search(r"Newest\s+20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC", text), text
    section.get_by_text("Archive behind").wait_for()
    section.get_by_text(f"{table}: each 2 hours, keeps 3, newest: none").wait_for()
    section.get_by_text(f"overdue: there is no table {table}").wait_for()
    assert somebody.violations() == []
    assert somebody.overflow() <= 0
    somebody.leave()


def test_a_server_without_an_archive_tells_of_none(browser, server):
    """Settings that are not set are "none": it said that all was archived."""
    somebody = Visitor(browser, server.host)
    with somebody.page.expect_response("**/servers/self/settings*"):
        somebody.visit("#/operations")
    somebody.page.wait_for_load_state("networkidle")
    assert somebody.page.locator("section.whole").inner_text() == ""
    somebody.leave()
