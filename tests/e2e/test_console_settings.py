"""The console's page of settings, in Chromium: what is in force, what would be, and from where."""

import contextlib

import pytest
from harness.browser import Visitor, chromium, looks

PAGE = "#/settings"


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture
def visit(browser, own_servers):
    """A function that makes somebody who looks at the settings: visit(host, size=…, scheme=…)."""
    with contextlib.ExitStack() as stack:

        def arrive(host, **more):
            somebody = Visitor(browser, host, **more)
            stack.callback(somebody.leave)
            somebody.visit(PAGE)
            return somebody

        yield arrive


@pytest.fixture
def configured(fresh_server, tmp_path):
    """A server with settings of each source."""
    file = tmp_path / "trestle.conf"
    file.write_text("# of this test\nsplit-size = 2GB\n")
    return fresh_server("--config", file, "--cache", "64MB", env={"TRESTLE_POOL_THREADS": "3"})


def shown(page):
    """{name: (value, default, where it came from)} of the rows, in their order."""
    found = {}
    for row in page.locator(".settings tbody tr").all():
        name = row.locator("td.setting code").inner_text()
        found[name] = tuple(cell.inner_text() for cell in row.locator("td").all()[1:])
    return found


def test_what_is_set_comes_first(visit, configured):
    somebody = visit(configured.host)
    rows = shown(somebody.page)
    file = configured.arguments[1]
    assert rows["cache"] == ("64MB", "512MB", "--cache")
    assert rows["pool-threads"] == ("3", "8", "TRESTLE_POOL_THREADS")
    assert rows["split-size"] == ("2GB", "1GB", f"{file}:2: split-size")
    assert rows["backup-dir"] == ("none", "none", "default")
    froms = [row[2] for row in rows.values()]
    count = len([text for text in froms if text != "default"])
    assert count >= 5  # the harness gives some, too
    assert "default" not in froms[:count]
    names = list(rows)
    assert names == sorted(names[:count]) + sorted(names[count:])
    somebody.page.get_by_text(f"{len(rows)} settings, {count} of them set").wait_for()


def test_words_find_settings(visit, configured):
    somebody = visit(configured.host)
    page = somebody.page
    page.locator("main").focus()
    page.keyboard.press("/")
    page.keyboard.type("BLOCKS disk")
    page.get_by_text("1 of ").wait_for()
    assert list(shown(page)) == ["cache"]
    page.get_by_label("Search").fill("pool_")
    page.get_by_text("TRESTLE_POOL_THREADS").wait_for()
    assert list(shown(page)) == ["pool-threads"]
    page.get_by_label("Search").fill("no such words")
    page.get_by_text("No setting has these words").wait_for()
    assert somebody.violations() == []


def test_the_keyboard_leads_there(visit, server):
    somebody = visit(server.host)
    somebody.page.keyboard.press("g")
    somebody.page.keyboard.press("i")
    somebody.page.get_by_role("heading", name="Instances").wait_for()
    somebody.page.keyboard.press("g")
    somebody.page.keyboard.press("s")
    somebody.page.get_by_role("heading", name="Settings").wait_for()


@looks("phone", "desktop", "4k")
def test_it_is_whole(visit, server, size, scheme):
    somebody = visit(server.host, size=size, scheme=scheme)
    somebody.screenshot("settings")
    assert somebody.overflow() <= 0
    assert somebody.violations() == []


def test_who_may_not_see_them_is_told(visit, secure):
    host = secure().server.host.replace("127.0.0.1", "localhost")
    somebody = visit(host, is_secure=True)
    page = somebody.page
    somebody.log_in("viewer")
    page.get_by_text("You may not see this").wait_for()
    page.get_by_text("settings.get").wait_for()
    assert somebody.violations() == []
    page.get_by_role("button", name="Log out").click()
    somebody.log_in("admin")
    page.locator(".settings").wait_for()
    somebody.expect_trouble("403")
