"""The console's section of a table's change stream, in Chromium."""

import pytest
from google.protobuf.duration_pb2 import Duration
from harness.browser import chromium, visitors
from harness.change_streams import Reader, stream_config, update_stream
from harness.rpc import delete_row, set_cell

DAYS = 24 * 3600


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture
def visit(browser, own_servers):
    with visitors(browser) as arrive:
        yield arrive


def stream_section(page):
    """It is asked for when it comes into sight."""
    page.get_by_role("heading", name="Change stream").scroll_into_view_if_needed()
    return page.locator(".change-stream")


def test_a_stream_is_shown_as_it_goes(server, rpc, make_table, visit):
    name = make_table(splits=[b"m"], change_stream_config=stream_config(days=2))
    with Reader(rpc, name, b"", b"m", heartbeat_duration=Duration(seconds=600)):
        page = visit(server.host, name).page
        section = stream_section(page)
        section.get_by_text("2 days").wait_for()
        readers = section.locator(".readers tbody tr")
        readers.get_by_text("waits for changes").wait_for()
        section.get_by_text("None since this came into sight").wait_for()
        rpc.mutate(name, b"apple", set_cell("f", b"q", b"v", 1000))
        changes = section.locator(".changes tbody tr")
        changes.filter(has_text="apple").get_by_text("setCell f:q").wait_for()
        rpc.mutate(name, b"zebra", set_cell("f", b"r", b"v" * (3 << 20), 1000))
        changes.filter(has_text="zebra").get_by_text("setCell f:r", exact=True).wait_for()
        rpc.mutate(name, b"zebra", delete_row())
        changes.filter(has_text="deleteFromFamily f").wait_for()
        assert "zebra" in changes.first.inner_text()
        assert changes.count() == 3
    readers.wait_for(state="detached")
    section.get_by_text("none at the moment").wait_for()
    update_stream(rpc, name, None)


def test_a_stream_that_the_default_profile_may_not_read(server, rpc, new_instance, visit):
    """It routes to both clusters: what there is to know is shown all the same."""
    instance = new_instance("ca", "cb")
    name = rpc.create_table("t", ["f"], instance=instance, change_stream_config=stream_config())
    somebody = visit(server.host, name)
    section = stream_section(somebody.page)
    section.get_by_text("Not shown here: ").wait_for()
    section.get_by_text("1 day").wait_for()
    section.get_by_text("none at the moment").wait_for()
    update_stream(rpc, name, None)
    rpc.delete_table(name)
    somebody.expect_trouble("400")


def test_a_stream_is_switched_on_changed_and_off(server, rpc, make_table, visit):
    name = make_table()
    page = visit(server.host, name).page
    page.get_by_text("what happens to the rows is not kept").wait_for()
    page.get_by_role("button", name="Switch on").click()
    page.get_by_label("Retention").select_option("3")
    page.get_by_role("button", name="Set").click()
    page.get_by_role("button", name="Change retention").wait_for()
    section = stream_section(page)
    section.get_by_text("3 days").wait_for()
    retention = rpc.get_table(name).change_stream_config.retention_period
    assert retention.total_seconds() == 3 * DAYS
    page.get_by_role("button", name="Change retention").click()
    page.get_by_label("Retention").select_option("")
    page.get_by_role("button", name="Set").click()
    page.get_by_role("button", name="Switch on").wait_for()
    assert "change_stream_config" not in rpc.get_table(name)
