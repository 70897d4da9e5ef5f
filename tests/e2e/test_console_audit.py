"""ListAuditEntries, and the console's page of them in Chromium: who did what, and what came of
it."""

import contextlib
import json

import grpc
import pytest
from harness.browser import Visitor, chromium, looks
from harness.console import Caller
from harness.rest import Rest

PAGE = "#/audit"
PATH = "/v1/servers/self/auditEntries"
ADMIN = "user:ops@example.com"
TABLES = "google.bigtable.admin.v2.BigtableTableAdmin"
LIMIT = 1000
PLACE = "projects/p/instances/i/tables"


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


def act(secured):
    """A table made; two things that are refused, one of them of nobody known."""
    secured.rpc("admin").create_table("t")
    for token in ("viewer", None):
        with pytest.raises(grpc.RpcError):
            secured.rpc(token).create_table("other")


@pytest.fixture
def visit(browser, own_servers):
    with contextlib.ExitStack() as stack:

        def arrive(secured, token, **more):
            host = secured.server.host.replace("127.0.0.1", "localhost")
            somebody = Visitor(browser, host, is_secure=True, **more)
            stack.callback(somebody.leave)
            somebody.visit(PAGE)
            somebody.log_in(token)
            return somebody

        yield arrive


def entries_of(secured, query=""):
    caller = Caller(secured, "HTTP/1.1")
    headers = {"authorization": "Bearer admin"}
    rest = Rest(caller.host, context=caller.context())
    return rest.call("GET", PATH + query, headers=headers)


def brief(entry):
    return entry.get("principal", ""), entry["method"], entry["resource"], entry.get("code", 0)


def test_each_call_is_there_latest_first(secure, tmp_path):
    log = tmp_path / "audit.log"
    secured = secure("--audit-log", log, "--log-format", "json")
    act(secured)
    first = entries_of(secured)
    create, tables = f"{TABLES}/CreateTable", PLACE
    assert first["isAudited"] is True and first["logFile"] == str(log)
    assert [brief(entry) for entry in first["entries"][-3:]] == [
        ("", create, f"{tables}/other", 16),
        ("user:viewer@example.com", create, f"{tables}/other", 7),
        (ADMIN, create, f"{tables}/t", 0),
    ]
    for entry in first["entries"]:
        assert entry["address"].startswith("127.0.0.1:")
        assert entry["time"] >= first["since"] and entry["duration"].endswith("s")
    again = entries_of(secured, "?pageSize=1")
    listed = "trestle.insight.v1.Insight/ListAuditEntries"
    assert [brief(entry) for entry in again["entries"]] == [(ADMIN, listed, "servers/self", 0)]
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["method"] for line in lines][:3] == ["CreateTable"] * 3


def test_it_is_bounded(secure):
    secured = secure()
    rpc = secured.rpc("admin")
    rpc.create_table("t")
    for _ in range(LIMIT):
        rpc.get_table("projects/p/instances/i/tables/t")
    answer = entries_of(secured, f"?pageSize={2 * LIMIT}")
    assert len(answer["entries"]) == LIMIT
    assert {entry["method"] for entry in answer["entries"]} == {f"{TABLES}/GetTable"}


def test_wrong_questions(secure):
    secured = secure()
    caller = Caller(secured, "HTTP/1.1")
    rest = Rest(caller.host, context=caller.context())
    admin, viewer = ({"authorization": f"Bearer {who}"} for who in ("admin", "viewer"))
    rest.call("GET", f"{PATH}?pageSize=-1", expect=400, headers=admin)
    rest.call("GET", PATH.replace("self", "other"), expect=404, headers=admin)
    refusal = rest.call("GET", PATH, expect=403, headers=viewer)
    assert "auditEntries.list" in refusal["error"]["message"]
    rest.call("GET", PATH, expect=401)


# --- the page ---


def shown(page):
    rows = page.locator(".audit tbody tr").all()
    return [[cell.inner_text() for cell in row.locator("td").all()] for row in rows]


def test_the_page_shows_and_finds_them(secure, visit):
    secured = secure()
    act(secured)
    somebody = visit(secured, "admin")
    page = somebody.page
    rows = shown(page)
    assert [row[1:5] for row in rows[-3:]] == [
        ["nobody known", "CreateTable", f"{PLACE}/other", "UNAUTHENTICATED"],
        ["user:viewer@example.com", "CreateTable", f"{PLACE}/other", "PERMISSION_DENIED"],
        [ADMIN, "CreateTable", f"{PLACE}/t", "OK"],
    ]
    page.get_by_label("Search").fill("createtable VIEWER")
    page.get_by_text("1 of ").wait_for()
    assert [row[1] for row in shown(page)] == ["user:viewer@example.com"]
    page.get_by_label("Search").fill("")
    page.get_by_label("Calls").select_option("failed")
    assert {row[4] for row in shown(page)} == {"UNAUTHENTICATED", "PERMISSION_DENIED"}
    page.get_by_label("Calls").select_option("changes")
    assert {row[2] for row in shown(page)} == {"CreateTable"}
    page.get_by_label("Search").fill("nothing like it")
    page.get_by_text("No call is like that").wait_for()
    assert somebody.violations() == []
    page.get_by_label("Search").fill("ListAuditEntries")
    page.get_by_label("Calls").select_option("all")
    before = len(shown(page))
    page.get_by_role("button", name="Refresh").click()  # which is a call, too
    page.locator(".audit tbody tr").nth(before).wait_for()


@looks("phone", "desktop")
def test_it_is_whole(secure, visit, size, scheme):
    secured = secure()
    act(secured)
    somebody = visit(secured, "admin", size=size, scheme=scheme)
    somebody.screenshot("audit")
    assert somebody.overflow() <= 0
    assert somebody.violations() == []


def test_who_may_not_is_told(secure, visit):
    somebody = visit(secure(), "viewer")
    somebody.page.get_by_text("You may not see this").wait_for()
    somebody.page.get_by_text("auditEntries.list").wait_for()
    assert somebody.violations() == []
    somebody.expect_trouble("403")


def test_without_access_control_nothing_is_audited(server, browser):
    somebody = Visitor(browser, server.host)
    somebody.visit(PAGE)
    somebody.page.get_by_text("Nothing is audited").wait_for()
    assert somebody.violations() == []
    somebody.screenshot("audit-off")
    somebody.leave()
    answer = Rest(server.host).call("GET", PATH)
    assert "isAudited" not in answer and "entries" not in answer
