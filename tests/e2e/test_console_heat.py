"""The console's key visualizer in Chromium: the map and what moves over it, its sentences and
tables, and what it says when there is nothing to show or something is wrong. What ReadHeat answers
is in test_heat.py, what loads look like in test_hotspots.py."""

import contextlib
import itertools
import time

import pytest
from harness.browser import ALWAYS, Visitor, chromium, looks
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest
from harness.rpc import Rpc, set_cell
from harness.server import Server

PAGE = "#/p/p/i/i/t/{}/heat"


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture
def visitor(browser, own_servers):
    """A function that makes a visitor: visitor(host, size=…, scheme=…)."""
    with contextlib.ExitStack() as stack:

        def arrive(host, **more):
            somebody = Visitor(browser, host, **more)
            stack.callback(somebody.leave)
            return somebody

        yield arrive


def write(rpc, table, keys):
    rows = [(key, [set_cell("f", b"q", bytes(100), 1000)]) for key in keys]
    assert set(rpc.mutate_rows(table, rows)) == {0}


def windows(host, table):
    """Those that have ended."""
    times = Rest(host).call("GET", f"/v1/{table}:heat?maxRanges=1").get("times", [])
    return [each for each in times if "isOpen" not in each]


def wait_for_windows(host, table, count):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(windows(host, table)) < count:
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    """A server with windows of a second, on which one prefix of three gets nine tenths of the
    writes for some windows: (host, name of the table). Rows stay as large as they are."""
    server = Server(tmp_path_factory.mktemp("busy"), ["--heat-window", "1s"]).start()
    rpc = Rpc(server.host)
    table = rpc.create_table("events")
    prefixes = (b"customer/%05d", b"order/%05d", b"visit/%05d")
    for prefix in prefixes:
        write(rpc, table, (prefix % (i * 37 % 1000) for i in range(1000)))
    wait_for_windows(server.host, table, 1)
    while len(windows(server.host, table)) < 6:
        hot = [b"order/%05d" % (i * 7 % 100 + 300) for i in range(2700)]
        others = [prefix % (i * 91 % 1000) for prefix in prefixes for i in range(100)]
        write(rpc, table, [*hot, *others])
    yield server.host, table
    rpc.close()
    server.close()


def open_map(somebody, table="events"):
    somebody.visit(PAGE.format(table))
    somebody.page.wait_for_selector(".heat-map canvas")
    somebody.page.wait_for_selector(".heat-picture:not([hidden])")
    return somebody.page


@looks("phone", "desktop", "4k")
def test_the_page_is_whole(visitor, busy, size, scheme):
    somebody = visitor(busy[0], size=size, scheme=scheme)
    page = open_map(somebody)
    box = page.locator(".heat-map").bounding_box()
    page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 0.5 * box["height"])
    page.wait_for_selector(".heat-tip:not([hidden])")
    somebody.screenshot("heat")
    assert somebody.overflow() <= 0
    if (size, scheme) in ALWAYS:
        assert somebody.violations() == []


# Whether the part of the canvas where the cells are has some colours.
HAS_COLOURS = """() => {
  const canvas = document.querySelector('.heat-map canvas');
  const x = Math.floor(canvas.width * 0.28);
  const { data } = canvas.getContext('2d').getImageData(
    x, 0, canvas.width - x, canvas.height - 40);
  const seen = new Set();
  for (let i = 0; i < data.length; i += 4) seen.add(`${data[i]} ${data[i + 1]} ${data[i + 2]}`);
  return seen.size > 3;
}"""


def test_the_hot_range_is_named(visitor, busy):
    """In the sentence, in the table of ranges, and by the cursor that goes to it."""
    somebody = visitor(busy[0])
    page = open_map(somebody)
    page.wait_for_function(HAS_COLOURS)
    sign = page.locator(".heat-signs li").first
    assert "Hot range" in sign.inner_text()
    assert "order/" in sign.inner_text()
    first = page.locator("tr", has=page.get_by_role("button", name="Show on the map")).first
    assert first.locator("td.key").first.inner_text().startswith("order/")
    sign.get_by_role("button").click()
    tip = page.locator(".heat-tip")
    tip.wait_for()
    assert "order/" in tip.inner_text()
    assert "rows/s" in tip.inner_text()
    assert page.locator(".heat-map.zoomed").count() == 1
    sign.get_by_role("link", name="Data").click()
    page.wait_for_selector("th.key a")
    assert page.locator("th.key a").first.inner_text().startswith("order/")


# The pixels just before the cells that have the colour of the page's variable.
MARKED = """(name) => {
  const canvas = document.querySelector('.heat-map canvas');
  const copy = document.createElement('canvas');
  copy.width = canvas.width;
  copy.height = canvas.height;
  const pen = copy.getContext('2d', { willReadFrequently: true });
  pen.fillStyle = getComputedStyle(canvas.parentElement).getPropertyValue(name).trim();
  pen.fillRect(0, 0, 1, 1);
  const wanted = pen.getImageData(0, 0, 1, 1).data.join();
  pen.drawImage(canvas, 0, 0);
  const { data } = pen.getImageData(0, 0, canvas.width, canvas.height - 30);
  const rows = new Set();
  for (let i = 0; i < data.length; i += 4)
    if (data.slice(i, i + 4).join() === wanted) rows.add(Math.floor(i / 4 / canvas.width));
  return rows.size / (canvas.height - 30);
}"""


def test_what_the_advisor_found_has_its_place_on_the_map(visitor, busy):
    """A bar beside the range that it is about and no other, a line in words that leads there, and
    a line of what the cursor says."""
    somebody = visitor(busy[0])
    page = open_map(somebody)
    found = page.get_by_label("What the advisor found").locator("li").first
    found.wait_for()
    assert "order/" in found.inner_text()
    title = found.locator("strong").inner_text()
    page.wait_for_function(f"(name) => 0 < ({MARKED})(name)", arg="--warn")
    assert page.evaluate(MARKED, "--warn") < 0.9
    found.get_by_role("button").click()
    assert title in page.locator(".heat-tip").inner_text()
    somebody.screenshot("heat-advice")
    page.get_by_role("link", name="of the whole table").click()
    page.wait_for_selector(".finding")


def test_by_the_keyboard(visitor, busy):
    """The cursor's cell is said; zoom in, out, all; Enter opens the rows."""
    somebody = visitor(busy[0])
    page = open_map(somebody)
    page.locator(".heat-map").focus()
    said = page.locator("[aria-live=polite].hidden")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    before = said.inner_text()
    assert "UTC" in before
    page.keyboard.press("Shift+ArrowDown")
    after = said.inner_text()
    assert after != before
    assert "from " in after
    page.keyboard.press("+")
    page.wait_for_selector(".heat-map.zoomed")
    page.keyboard.press("0")
    page.wait_for_selector(".heat-map:not(.zoomed)")
    assert page.locator(".heat-tip:not([hidden])").count() == 1
    page.keyboard.press("Escape")
    assert page.locator(".heat-tip:not([hidden])").count() == 0
    page.keyboard.press("ArrowDown")
    page.keyboard.press("PageDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("th.key a")
    assert "/rows?from=" in page.url


def test_by_the_mouse(visitor, busy):
    somebody = visitor(busy[0])
    page = open_map(somebody)
    box = page.locator(".heat-map").bounding_box()
    middle = (box["x"] + 0.6 * box["width"], box["y"] + 0.5 * box["height"])
    page.mouse.move(*middle)
    page.mouse.wheel(0, -400)  # the page's, since nobody has gone into the map
    assert page.locator(".heat-map.zoomed").count() == 0
    page.mouse.dblclick(*middle)
    page.wait_for_selector(".heat-map.zoomed")
    tip = page.locator(".heat-tip")
    before = tip.inner_text()
    page.mouse.down()
    page.mouse.move(middle[0], middle[1] - 100, steps=4)
    page.mouse.up()
    page.mouse.move(*middle)
    assert tip.inner_text() != before
    page.mouse.wheel(0, 3000)
    page.wait_for_selector(".heat-map:not(.zoomed)")
    page.get_by_role("button", name="Zoom in").click()
    page.wait_for_selector(".heat-map.zoomed")
    page.get_by_role("button", name="Show all of it").click()
    page.wait_for_selector(".heat-map:not(.zoomed)")


def test_what_is_shown_can_be_chosen(visitor, busy):
    somebody = visitor(busy[0])
    page = open_map(somebody)
    page.get_by_label("Shown", exact=True).select_option("bytes-written")
    page.wait_for_function("location.hash.includes('metric=bytes-written')")
    assert "/s" in page.locator(".heat-legend-words").inner_text()
    page.get_by_label("Shown", exact=True).select_option("write-latency")
    page.get_by_role("columnheader", name="At most").wait_for()
    words = page.locator(".heat-legend-words")
    page.get_by_label("Shown", exact=True).select_option("rows")
    before = words.inner_text()
    page.get_by_label("Brightness").fill("3")
    assert words.inner_text() != before
    page.get_by_label("Of", exact=True).select_option("28d")
    page.wait_for_function("location.hash.includes('span=28d')")
    page.wait_for_selector(".heat-picture:not([hidden])")
    page.reload()
    somebody.settle()
    assert page.get_by_label("Of", exact=True).input_value() == "28d"


def test_it_refreshes_by_itself(fresh_server, visitor, connect):
    """From nothing to a map without a click, in the minute that has not ended."""
    server = fresh_server()
    rpc = connect(server.host)
    table = rpc.create_table("young")
    somebody = visitor(server.host)
    page = somebody.page
    somebody.visit(PAGE.format("young"))
    page.get_by_text("Nobody has read or written rows in this time").wait_for()
    somebody.screenshot("heat-empty")
    assert somebody.violations() == []
    write(rpc, table, (b"%010d" % i for i in range(2000)))
    page.wait_for_selector(".heat-picture:not([hidden])")
    page.locator(".heat-signs li").first.wait_for()
    assert "rising keys" in page.locator(".heat-signs").inner_text()
    assert "None in the last day" in page.locator("main").inner_text()


def test_with_heat_off(fresh_server, visitor, connect):
    server = fresh_server("--heat=false")
    write(connect(server.host), connect(server.host).create_table("t"), [b"a"])
    somebody = visitor(server.host)
    somebody.visit(PAGE.format("t"))
    somebody.page.get_by_text("Nothing is counted").wait_for()
    assert somebody.violations() == []


def test_a_table_that_is_not_there(visitor, busy):
    somebody = visitor(busy[0])
    somebody.visit(PAGE.format("nothing"))
    somebody.page.get_by_text("There is no such thing").wait_for()
    somebody.screenshot("heat-not-found")
    somebody.expect_trouble("404")


def test_who_may_not(visitor, secure):
    """A tablet's heat has keys in it: who may not see them is told so, and shown nothing."""
    secured = secure()
    secured.rpc("admin").create_table("t")
    somebody = visitor(secured.server.host.replace("127.0.0.1", "localhost"), is_secure=True)
    page = somebody.page
    page.goto(f"{somebody.base}{PAGE.format('t')}")
    somebody.log_in("stranger")
    page.get_by_text("bigtable.keyvisualizer.get").wait_for()
    assert page.locator(".heat-picture:not([hidden])").count() == 0
    assert somebody.violations() == []
    somebody.screenshot("heat-forbidden")
    somebody.expect_trouble("403")


def test_a_server_that_does_not_answer(visitor, busy):
    """What was shown stays, with a word about it, and goes on when the server does."""
    somebody = visitor(busy[0])
    page = open_map(somebody)
    somebody.context.set_offline(True)
    page.get_by_label("Of", exact=True).select_option("6h")
    page.get_by_text("The server cannot be reached.").wait_for()
    assert page.locator(".heat-picture:not([hidden])").count() == 1
    somebody.context.set_offline(False)
    page.get_by_role("button", name="Try again").click()
    page.get_by_text("The server cannot be reached.").wait_for(state="detached")
    somebody.expect_trouble("ERR_INTERNET_DISCONNECTED")


def test_colours_rise_evenly(visitor, busy):
    """Lightness (CIE L*) goes one way, in steps of about the same size, light and dark."""
    page = open_map(visitor(busy[0]))
    for scheme, sign in (("dark", 1), ("light", -1)):
        lightness = page.evaluate(
            """async (scheme) => {
              const main = document.querySelector('script[type=module]').src;
              const { coloursOf } = await import(main.replace('main.js', 'heat_scale.js'));
              const linear = (byte) => ((byte / 255 + 0.055) / 1.055) ** 2.4; // but for the darkest
              return coloursOf(scheme).map(([r, g, b]) => {
                const y = 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
                return y > 0.008856 ? 116 * Math.cbrt(y) - 16 : 903.3 * y;
              });
            }""",
            scheme,
        )
        tenths = [lightness[i] for i in range(0, 256, 25)]
        steps = [sign * (b - a) for a, b in itertools.pairwise(tenths)]
        assert min(steps) > 0.4 * max(steps) > 0
