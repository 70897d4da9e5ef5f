"""The console's page of running requests, in Chromium."""

import contextlib

import grpc
import pytest
from harness.browser import Visitor, chromium, looks
from harness.rpc import set_cell

PAGE = "#/running"
ROWS, VALUE = 60, bytes(512 << 10)  # more than waits on the way to a client


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture
def visit(browser, own_servers):
    with contextlib.ExitStack() as stack:

        def arrive(host, **more):
            somebody = Visitor(browser, host, **more)
            stack.callback(somebody.leave)
            somebody.visit(PAGE)
            return somebody

        yield arrive


@pytest.fixture
def stream(server, rpc, make_table):
    """A scan that waits for its client, which is this."""
    name = make_table()
    for number in range(ROWS):
        rpc.mutate(name, b"%03d" % number, set_cell("f", b"q", VALUE, 1000))
    begun = rpc.read_stream(name)
    begun.table = name
    assert next(begun).chunks
    yield begun
    begun.cancel()


def test_one_is_found_and_ended(server, visit, stream):
    somebody = visit(server.host)
    page = somebody.page
    row = page.locator(".running tbody tr", has_text=stream.table.split("/")[-1])
    row.get_by_text("waits for its client").wait_for()
    page.get_by_label("Search").fill("READROWS no-such-table")
    page.get_by_text("No request is like that").wait_for()
    page.get_by_label("Search").fill("readrows " + stream.table)
    row.get_by_role("button", name="End ReadRows").click()
    page.get_by_role("button", name="End it").click()
    page.get_by_text("The request has been cancelled.").wait_for()
    row.wait_for(state="detached")
    with pytest.raises(grpc.RpcError) as error:
        list(stream)
    assert error.value.code() == grpc.StatusCode.CANCELLED
    assert somebody.violations() == []


@looks("phone", "desktop")
def test_it_is_whole(server, visit, stream, size, scheme):
    somebody = visit(server.host, size=size, scheme=scheme)
    somebody.page.locator(".running tbody tr").first.wait_for()
    somebody.screenshot("running")
    assert somebody.overflow() <= 0
    assert somebody.violations() == []


def test_words_where_there_is_none(server, visit):
    somebody = visit(server.host)
    somebody.page.get_by_text("Nothing runs").wait_for()
    for keys, heading in (("gi", "Instances"), ("gr", "Running requests")):
        for key in keys:
            somebody.page.keyboard.press(key)
        somebody.page.get_by_role("heading", name=heading).wait_for()


def test_who_may_not_see_them_is_told(visit, secure):
    host = secure().server.host.replace("127.0.0.1", "localhost")
    somebody = visit(host, is_secure=True)
    somebody.log_in("reader")
    somebody.page.get_by_text("You may not see this").wait_for()
    somebody.page.get_by_text("runningRequests.list").wait_for()
    somebody.expect_trouble("403")
