"""Each page of the console, in Chromium, when it may not be seen, when somebody has to log in, when
the server is gone, and when there is no such thing: what the page says, that axe finds no fault
with it, and that it goes on when the trouble is over."""

import pytest
from harness.browser import Visitor, chromium
from harness.console import Caller
from harness.rest import Rest
from harness.secured import Secured
from harness.server import EXTERNAL, Server

INSTANCE, DATABASE = "#/p/p/i/i", "#/d/p/(default)"
PATH = "path=%5B%7B%22kind%22%3A%22Task%22%2C%22name%22%3A%22{}%22%7D%5D"
PAGES = {
    "instances": "#/instances",
    "tables": INSTANCE,
    "query": f"{INSTANCE}/query?table=t",
    "clusters": f"{INSTANCE}/clusters",
    "backups": f"{INSTANCE}/backups",
    "advice": f"{INSTANCE}/advice",
    "table": f"{INSTANCE}/t/t",
    "rows": f"{INSTANCE}/t/t/rows",
    "heat": f"{INSTANCE}/t/t/heat",
    "table advice": f"{INSTANCE}/t/t/advice",
    "databases": "#/datastore",
    "kinds": DATABASE,
    "entities": f"{DATABASE}/entities?kind=Task",
    "entity": f"{DATABASE}/entity?{PATH.format('one')}",
    "gql": f"{DATABASE}/gql?kind=Task",
    "indexes": f"{DATABASE}/indexes",
    "operations": "#/operations",
    "audit": "#/audit",
    "slow": "#/slow",
    "metrics": "#/metrics",
    "settings": "#/settings",
}
REFRESHED = ["backups", "rows", "entities", "entity", "audit", "slow"]
MISSING = {
    "table": f"{INSTANCE}/t/nothing",
    "rows": f"{INSTANCE}/t/nothing/rows",
    "heat": f"{INSTANCE}/t/nothing/heat",
    "table advice": f"{INSTANCE}/t/nothing/advice",
}
# An instance without anything and one that is not there are the same to lists.
EMPTY = {
    "#/p/p/i/nothing": "There is no table yet",
    "#/p/p/i/nothing/clusters": "There is no cluster",
    "#/p/p/i/nothing/backups": "There is no backup yet",
    "#/p/p/i/nothing/advice": "There is no table to look at",
    "#/d/p/nothing": "There is no entity here",
    "#/d/p/nothing/entities?kind=Task": "No entity is here",
    "#/d/p/nothing/indexes": "There is no composite index",
}
NOWHERE = "#/nowhere"  # a page that asks nobody
# The console hears of a new address a moment after it is there.
GO = """path => new Promise(done => {
  addEventListener('hashchange', done, { once: true });
  location.hash = path;
})"""


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


def fill(secured):
    secured.rpc("admin").create_table("t")
    caller = Caller(secured, "HTTP/1.1")
    rest = Rest(caller.host, context=caller.context())
    entity = {"key": {"path": [{"kind": "Task", "name": "one"}]}}
    body = {"mode": "NON_TRANSACTIONAL", "mutations": [{"insert": entity}]}
    rest.call("POST", "/v1/projects/p:commit", body, headers={"authorization": "Bearer admin"})


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """A server with access control, a table and an entity."""
    if EXTERNAL:
        pytest.skip("needs a server of its own")
    directory = tmp_path_factory.mktemp("secured")
    running = Secured(directory, lambda *more: Server(directory, more).start())
    fill(running)
    yield running
    running.close()
    running.server.close()


@pytest.fixture(scope="module")
def waiting():
    """Visitors between two tests, by their tokens: a window for each test costs more than what the
    test does in it."""
    visitors = {}
    yield visitors
    for each in visitors.values():
        each.leave()


@pytest.fixture
def arrive(request, secured, browser, waiting):
    """A function that brings somebody, logged in, to a page that asks nobody: arrive("admin")."""
    failed_before = request.session.testsfailed
    came = {}

    def come(token):
        somebody = came[token] = waiting.pop(token, None) or log_in(browser, secured, token)
        somebody.page.get_by_text("Nothing is at this address").wait_for()
        return somebody

    yield come
    for token, somebody in came.items():
        if request.session.testsfailed == failed_before:
            go(somebody, NOWHERE)
            assert somebody.troubles == []
            waiting[token] = somebody
        else:  # he may be anywhere
            somebody.leave()


def log_in(browser, secured, token):
    host = secured.server.host.replace("127.0.0.1", "localhost")
    somebody = Visitor(browser, host, is_secure=True)
    somebody.page.goto(f"{somebody.base}{NOWHERE}")
    somebody.log_in(token)
    return somebody


def go(somebody, path):
    """To a page, and to what it asks for by a button."""
    page = somebody.page
    page.evaluate(GO, path)
    page.wait_for_selector(".loading", state="detached")
    if "/query" in path or "/gql" in path:
        page.get_by_role("button", name="Run", exact=True).click()
        page.wait_for_selector(".loading", state="detached")


def wait_until_whole(somebody):
    somebody.page.wait_for_selector(".notice.error", state="detached")
    somebody.settle()


@pytest.mark.parametrize("name", PAGES)
def test_who_may_not_see_it_is_told(arrive, name):
    words = {
        "instances": "You may not list the instances of all projects",
        "databases": "You may not list the databases of all projects",
        "operations": "You may not list the operations of all projects",
    }
    somebody = arrive("stranger")
    go(somebody, PAGES[name])
    somebody.page.get_by_text(words.get(name, "You may not see this")).first.wait_for()
    assert somebody.overflow() <= 0
    assert somebody.violations() == []
    somebody.expect_trouble("403")


def test_who_may_not_list_all_operations_names_a_project(arrive):
    """He sees those that he may: of Bigtable, if he may not see Datastore's."""
    somebody = arrive("viewer")
    page = somebody.page
    go(somebody, PAGES["operations"])
    page.get_by_label("Project").fill("p")
    page.get_by_role("button", name="Show its operations").click()
    page.get_by_text("There is no operation").or_(page.get_by_role("region")).first.wait_for()
    assert page.locator(".notice.error").count() == 0
    somebody.expect_trouble("403")


def test_who_may_not_sample_a_table_sees_that_it_is_there(arrive):
    somebody = arrive("viewer")
    go(somebody, PAGES["tables"])
    row = somebody.page.get_by_role("row").filter(has_text="Data")
    row.get_by_text("not for you").first.wait_for()
    assert row.get_by_role("link", name="t", exact=True).count() == 1


@pytest.mark.parametrize("name", PAGES)
def test_whose_session_has_ended_logs_in_and_is_there(arrive, name):
    somebody = arrive("admin")
    somebody.context.clear_cookies()
    go(somebody, PAGES[name])
    somebody.page.get_by_label("Token").wait_for()
    assert somebody.violations() == []
    somebody.expect_trouble("401")
    somebody.log_in("admin")
    wait_until_whole(somebody)


def test_whose_session_ends_over_a_dialog_keeps_what_was_typed(arrive):
    """The login page came below the dialog, out of reach, and the dialog's text was lost."""
    somebody = arrive("admin")
    page = somebody.page
    go(somebody, PAGES["table"])
    wait_until_whole(somebody)
    page.get_by_role("button", name="New family").click()
    page.get_by_label("Name", exact=True).fill("typed")
    somebody.context.clear_cookies()
    page.get_by_role("dialog").get_by_role("button", name="Make the family").click()
    page.get_by_text("Your session has ended").wait_for()
    assert somebody.violations() == []
    somebody.screenshot("login-over")
    somebody.expect_trouble("401")
    somebody.try_token("wrong")
    page.locator(".login-over .notice.error").wait_for()
    somebody.expect_trouble("401")
    somebody.log_in("admin")
    page.locator(".login-over").wait_for(state="detached")
    assert page.get_by_label("Name", exact=True).input_value() == "typed"
    page.get_by_role("dialog").get_by_role("button", name="Make the family").click()
    page.get_by_role("dialog").wait_for(state="detached")


@pytest.mark.parametrize("name", PAGES)
def test_a_server_that_is_gone_and_comes_back(arrive, name):
    """Also where the page's own module was to come from it."""
    somebody = arrive("admin")
    page = somebody.page
    if name in ("query", "gql"):  # their button is there already
        go(somebody, PAGES[name])
        go(somebody, NOWHERE)
    somebody.context.set_offline(True)
    go(somebody, PAGES[name])
    page.get_by_text("The server cannot be reached.").first.wait_for()
    assert somebody.violations() == []
    somebody.context.set_offline(False)
    retry = page.get_by_role("button", name="Try again")
    (retry if retry.count() else page.get_by_role("button", name="Run", exact=True)).click()
    wait_until_whole(somebody)
    somebody.expect_trouble("ERR_INTERNET_DISCONNECTED")


@pytest.mark.parametrize("name", REFRESHED)
def test_a_server_that_is_gone_when_it_is_asked_again(arrive, name):
    somebody = arrive("admin")
    page = somebody.page
    go(somebody, PAGES[name])
    wait_until_whole(somebody)
    somebody.context.set_offline(True)
    page.get_by_role("button", name="Refresh").click()
    page.get_by_text("The server cannot be reached.").wait_for()
    somebody.context.set_offline(False)
    page.get_by_role("button", name="Try again").click()
    wait_until_whole(somebody)
    somebody.expect_trouble("ERR_INTERNET_DISCONNECTED")


@pytest.mark.parametrize("name", MISSING)
def test_what_is_not_there(arrive, name):
    somebody = arrive("admin")
    go(somebody, MISSING[name])
    somebody.page.get_by_text("There is no such thing").wait_for()
    assert somebody.violations() == []
    somebody.expect_trouble("404")


def test_what_is_empty_says_so(arrive):
    somebody = arrive("admin")
    for path, words in EMPTY.items():
        go(somebody, path)
        somebody.page.get_by_text(words).wait_for()
    assert somebody.violations() == []
    go(somebody, "#/p/p/i/nothing/query?table=t")
    somebody.page.get_by_text("Table not found: t").wait_for()
    somebody.expect_trouble("400")


def test_an_entity_that_is_not_there_and_one_that_is_none(arrive):
    somebody = arrive("admin")
    page = somebody.page
    go(somebody, f"{DATABASE}/entity?{PATH.format('two')}")
    page.get_by_text("There is no such entity").wait_for()
    for path in ("", "?path=", "?path=%5B%5D", "?path=%7B"):
        go(somebody, f"{DATABASE}/entity{path}")
        page.get_by_text("The address names no entity.").wait_for()
    assert somebody.violations() == []


def test_addresses_that_nobody_made(arrive):
    """A percent sign that stands for itself, keys that are no base64, numbers that are none."""
    somebody = arrive("admin")
    page = somebody.page
    go(somebody, "#/p/p/i/100%/t/t")
    page.get_by_role("heading", name="t", exact=True).wait_for()
    page.locator(".notice.error").wait_for()
    somebody.expect_trouble("40[04]")
    for query in ("prefix=%25%25", "limit=many&versions=-1&way=none", "after=!"):
        go(somebody, f"{PAGES['rows']}?{query}")
        page.get_by_role("heading", level=1).wait_for()
    go(somebody, f"{PAGES['rows']}?family=none")
    page.get_by_text("Requested column family not found").wait_for()
    somebody.expect_trouble("404")
    for path in ("heat?metric=none&span=none", "rows?key=AA"):
        go(somebody, f"{INSTANCE}/t/t/{path}")
        wait_until_whole(somebody)
