"""The console's page of the clusters that copy each other's changes, in Chromium: who they are, how
far each is behind, what waits; that a server without peers has nothing of it; and that the numbers
that have a query are what it gives."""

import time

import pytest
from harness.browser import ALWAYS, Visitor, chromium, looks
from harness.patience import PATIENCE_SECONDS
from harness.peers import wait_for_peers
from harness.rest import Rest
from test_console_home import fact, queries, run_query, visit_home


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture
def visitor(browser, own_servers):
    arrived = []

    def arrive(host, **more):
        arrived.append(Visitor(browser, host, **more))
        return arrived[-1]

    yield arrive
    for each in arrived:
        each.leave()


def wait_for_history(host):
    deadline = time.monotonic() + PATIENCE_SECONDS
    path = "/v1/servers/self/metricHistory?since=3600s&lines=peers"
    while not any(
        float(value) >= 2
        for line in Rest(host).call("GET", path).get("lines", [])
        for value in line["values"]
    ):
        assert time.monotonic() < deadline
        time.sleep(0.2)


def followed(servers):
    """Until each is a copy, and says so."""
    def is_one(said):
        return all(s.get("appliedUntilUs") and not s.get("parked") for s in said["states"])

    for server in servers:
        wait_for_peers(server, is_one)
    return servers


def rows_of(page):
    """The table as text, by what it calls each."""
    rows = page.locator("main tbody tr").all()
    return {row.locator("strong").inner_text(): row.inner_text() for row in rows}


def test_a_server_without_peers_has_no_such_page(visitor, fresh_server):
    somebody = visitor(fresh_server().host)
    page = somebody.page
    visit_home(somebody)
    assert page.get_by_role("link", name="Clusters", exact=True).count() == 0
    assert page.locator(".home-facts dt", has_text="Clusters").count() == 0
    page.keyboard.press("g")
    page.keyboard.press("c")
    assert page.locator("h1").inner_text() == "Home"
    somebody.visit("#/clusters")
    page.get_by_text("This server has no peers").wait_for()


def test_who_they_are_and_how_they_are(visitor, peers_of):
    servers = followed(peers_of(3))
    somebody = visitor(servers[0].host)
    page = somebody.page
    visit_home(somebody)
    assert fact(page, "Clusters").startswith("3, all answer, ")
    page.keyboard.press("g")
    page.keyboard.press("c")
    page.wait_for_url("**#/clusters")
    somebody.settle()
    told = rows_of(page)
    assert list(told) == ["zone-1", "zone-2", "zone-3"]
    assert "leads" in told["zone-1"] and "this server" in told["zone-1"]
    assert f"number 2, {servers[1].host}" in told["zone-2"] and "answers" in told["zone-2"]
    servers[2].kill()
    row = page.locator("main tbody tr", has_text="zone-3")
    row.get_by_text("silent for").wait_for()
    page.get_by_text("3, 1 silent").wait_for()
    visit_home(somebody)
    assert fact(page, "Clusters").startswith("3, 1 silent, ")


def test_numbers_have_queries(visitor, peers_of):
    servers = followed(peers_of(2))
    host = servers[0].host
    wait_for_history(host)
    somebody = visitor(host)
    somebody.visit("#/clusters")
    somebody.page.locator(".chart svg").first.wait_for()
    asked = queries(somebody.page)
    assert list(asked) == ["Clusters", "Behind, at most", "Not sent", "Behind", "Queue"]
    told = {what: run_query(host, query) for what, query in asked.items()}
    assert float(told["Clusters"][0]["peers"]) == 2
    assert float(told["Behind, at most"][0]["replication_delay_seconds"]) >= 0
    assert float(told["Not sent"][0]["replication_queue_bytes"]) >= 0
    visit_home(somebody)
    assert float(run_query(host, queries(somebody.page)["Clusters"])[0]["peers"]) == 2


@looks("narrow", "phone", "tablet", "desktop")
def test_the_page_is_whole(visitor, peers_of, size, scheme):
    servers = followed(peers_of(3))
    servers[2].kill()
    wait_for_peers(servers[0], lambda said: any(s.get("failure") for s in said["states"]))
    somebody = visitor(servers[0].host, size=size, scheme=scheme)
    somebody.visit("#/clusters")
    somebody.page.locator(".chart").first.wait_for()
    somebody.screenshot("server-clusters")
    assert somebody.overflow() <= 0
    if (size, scheme) in ALWAYS:
        assert somebody.violations() == []
