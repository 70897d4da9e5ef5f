"""What each page of the console takes over the wire, in Chromium: with nothing kept, as on a first
visit, and on the next one. All is counted: the page's files, what it asks of the server until it is
there, and the heads of the answers."""

import functools
import gzip
import json
import math
import random
import struct
import time
from datetime import datetime, timedelta
from urllib.parse import parse_qs, urlparse

import pytest
from harness.browser import chromium
from harness.patience import PATIENCE_SECONDS
from harness.rest import WAYS, Rest, b64
from harness.server import Server

FIRST_BYTES = 100 << 10
NEXT_BYTES = 10 << 10
MOST_METHODS = 17  # that a point has: the busiest, and the rest as one
INSTANCE = "projects/demo/instances/shop"
SHOP = "#/p/demo/i/shop"
ORDERS = f"{SHOP}/t/orders"
DATABASE = "#/d/demo/(default)"
PAGES = {
    "home": "#/",
    "instances": "#/instances",
    "tables": SHOP,
    "clusters": f"{SHOP}/clusters",
    "backups": f"{SHOP}/backups",
    "query": f"{SHOP}/query?table=orders",
    "advice": f"{SHOP}/advice",
    "table": ORDERS,
    "rows": f"{ORDERS}/rows",
    "row": f"{ORDERS}/rows?key=b3JkZXIjMDAwMQ&versions=10",
    "history": f"{ORDERS}/rows?key=b3JkZXIjMDAwMQ&by=time",
    "heat": f"{ORDERS}/heat",
    "table advice": f"{ORDERS}/advice",
    "databases": "#/datastore",
    "kinds": DATABASE,
    "entities": f"{DATABASE}/entities?kind=Task",
    "gql": f"{DATABASE}/gql",
    "indexes": f"{DATABASE}/indexes",
    "database advice": f"{DATABASE}/advice",
    "operations": "#/operations",
    "audit": "#/audit",
    "running": "#/running",
    "slow": "#/slow",
    "metrics": "#/metrics",
    "settings": "#/settings",
    "server clusters": "#/clusters",
}
ROWS = 130
LEVELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def order(number):
    """A row as of a shop: two texts, an integer, and something else."""
    now = int(time.time() * 1000) * 1000
    values = [
        ("info", b"customer", f"Customer {number * 7919 % 997}".encode()),
        ("info", b"items", json.dumps({"sku": f"A-{number}", "amount": number * 31}).encode()),
        ("info", b"total", struct.pack(">q", number * 100)),
        ("raw", b"check", bytes([number * 37 % 256, number % 256, 1])),
    ]
    cells = [{"setCell": {"familyName": family, "columnQualifier": b64(qualifier),
                          "timestampMicros": str(now), "value": b64(value)}}
             for family, qualifier, value in values]  # fmt: skip
    return {"rowKey": b64(f"order#{number:04d}".encode()), "mutations": cells}


def fill(rest):
    body = {
        "instanceId": "shop",
        "instance": {"displayName": "Shop"},
        "clusters": {"c1": {"location": "projects/demo/locations/local", "serveNodes": 3}},
    }
    rest.call("POST", "/v2/projects/demo/instances", body)
    table = {"columnFamilies": {"info": {"gcRule": {"maxNumVersions": 3}}, "raw": {}}}
    splits = [{"key": b64(b"order#0050")}, {"key": b64(b"order#0100")}]
    body = {"tableId": "orders", "table": table, "initialSplits": splits}
    rest.call("POST", f"/v2/{INSTANCE}/tables", body)
    entries = [order(number) for number in range(ROWS)]
    rest.call("POST", f"/v2/{INSTANCE}/tables/orders:mutateRows", {"entries": entries})
    puts = [{"upsert": {"key": {"path": [{"kind": "Task", "name": f"task-{number}"}]},
                        "properties": {"done": {"booleanValue": number % 2 == 0},
                                       "title": {"stringValue": f"Task {number}"}}}}
            for number in range(ROWS)]  # fmt: skip
    body = {"mode": "NON_TRANSACTIONAL", "mutations": puts}
    rest.call("POST", "/v1/projects/demo:commit", body)


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A server of its own: others' operations and tables would be in the pages, too."""
    server = Server(tmp_path_factory.mktemp("shop")).start()
    rest = Rest(server.host)
    fill(rest)
    yield rest.host
    server.stop()


class Window:
    """A window with a cache of its own, which is empty, and what came into it over the wire."""

    def __init__(self, browser):
        self.context = browser.new_context()
        self.page = self.context.new_page()
        self.received = {}  # by request
        self.addresses = {}
        network = self.context.new_cdp_session(self.page)
        network.send("Network.enable")
        network.on("Network.requestWillBeSent", self.note_request)
        network.on("Network.loadingFinished", self.note_end)

    def note_request(self, event):
        self.addresses[event["requestId"]] = event["request"]["url"]

    def note_end(self, event):
        self.received[event["requestId"]] = event["encodedDataLength"]

    def visit(self, address):
        """Bytes that came until the page is there; how long that took is for people to look at."""
        self.page.goto("about:blank")
        self.received.clear()
        began = time.monotonic()
        self.page.goto(address)
        self.page.wait_for_selector("main h1")
        self.page.wait_for_selector(".loading", state="detached")
        self.page.wait_for_function(
            "() => ![...document.querySelectorAll('main span')].some(s => s.innerText === '…')"
        )
        self.milliseconds = round(1000 * (time.monotonic() - began))
        self.page.wait_for_load_state("networkidle")
        return sum(self.received.values())

    def largest(self):
        """What there was, the largest first, for who looks for what to leave out."""
        found = sorted(self.received.items(), key=lambda each: -each[1])
        return [(size, self.addresses.get(request, "")) for request, size in found[:12]]


# Modules that no link had announced: they come when those that import them have been read.
LATE = """() => {
    const links = [...document.querySelectorAll("link[rel=modulepreload]")].map(({href}) => href);
    return performance.getEntriesByType("resource").map(({name}) => name)
        .filter((name) => name.endsWith(".js") && !links.includes(name))
        .map((name) => name.split("/").at(-1));
}"""


@pytest.mark.parametrize("name", PAGES)
def test_a_page_takes_no_more_than_it_may(browser, shop, name):
    window = Window(browser)
    window.page.set_default_timeout(1000 * PATIENCE_SECONDS)
    address = f"http://{shop}/console/{PAGES[name]}"
    first = window.visit(address)
    first_ms, whats_large = window.milliseconds, window.largest()
    late = set(window.page.evaluate(LATE)) - {"main.js", "theme.js"}
    assert len(late) <= 1, late  # the page's own
    following = window.visit(address)
    print(f"{name}: {first} bytes in {first_ms} ms, then {following} in {window.milliseconds} ms")
    assert 10_000 < first <= FIRST_BYTES, whats_large
    assert 0 < following <= NEXT_BYTES, window.largest()
    window.context.close()


def wait_until_remembered(host, path):
    """A first point comes within ten seconds of the start: before, an answer has no lines."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while "times" not in Rest(host).call("GET", f"/v1/{path}?since=3600s"):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def full(answer):
    """The same, had there been an hour of it, with values as those of a busy server differ."""
    step = int(answer["step"][:-1])
    points = 3600 // step
    chance = random.Random(1)
    began = datetime.fromisoformat(answer["times"][0])
    times = [began + timedelta(seconds=step * i) for i in range(points)]
    answer["times"] = [time.isoformat().replace("+00:00", "Z") for time in times]
    for line in answer["lines"]:
        values = [chance.lognormvariate(5, 1) for _ in times]
        line["values"] = [float(f"{value:.2e}") for value in values]
    return answer


def packed_size(text):
    return len(gzip.compress(text, compresslevel=1))


def test_the_page_of_metrics_takes_no_more_when_much_is_remembered(browser, shop):
    """Its charts have all the points that they may have after an hour, and all methods are busy."""
    window = Window(browser)
    window.page.set_default_timeout(1000 * PATIENCE_SECONDS)
    wait_until_remembered(shop, "servers/self/metricHistory")
    address = f"http://{shop}/console/#/metrics"
    window.visit(address)
    with window.page.expect_response("**/metricHistory?*") as asked:
        following = window.visit(address)
    answer = asked.value.json()
    assert len(answer["lines"]) > 20
    methods = [line for line in answer["lines"] if line["name"].startswith("method/")]
    for i in range(len(methods), MOST_METHODS):
        other = f"method/google.bigtable.v2.Bigtable/Call{i}"
        answer["lines"].append({**methods[0], "name": other})
    before = packed_size(asked.value.body())
    later = packed_size(json.dumps(full(answer), separators=(",", ":")).encode())
    print(f"{following} bytes, of which {before}; {later} when there is an hour")
    assert following - before + later <= NEXT_BYTES
    window.context.close()


MANY = 600  # tablets


def load(rest, name):
    """Writes all over the table, so that each range of its heat has something."""
    for turn in range(4):
        entries = [order(number * 4 + turn) for number in range(1000)]
        rest.call("POST", f"/v2/{name}:mutateRows", {"entries": entries})


def write_all_families(rest, name, families):
    """Rows with cells of other sizes and ages in each."""
    chance = random.Random(1)
    now = int(time.time())
    for number in range(20):
        cells = [{"setCell": {"familyName": family, "columnQualifier": b64(b"q"),
                              "timestampMicros": str((now - chance.randrange(10**7)) * 1_000_000),
                              "value": b64(bytes(chance.randrange(1000)))}}
                 for family in families if chance.random() < 0.7]  # fmt: skip
        row = {"rowKey": b64(b"order#%04d" % (number * 200)), "mutations": cells}
        rest.call("POST", f"/v2/{name}:mutateRows", {"entries": [row]})


def make_used(rest):
    """A table of many tablets and families, with a change stream and a view, all over which rows
    are written: what fill() makes is small. Of a server with short windows of heat."""
    fill(rest)
    families = {f"family{i:02d}": {"gcRule": {"maxNumVersions": 1 + i}} for i in range(98)}
    body = {
        "tableId": "large",
        "table": {
            "columnFamilies": {"info": {}, "raw": {}, **families},
            "changeStreamConfig": {"retentionPeriod": "86400s"},
        },
        "initialSplits": [{"key": b64(b"order#%04d" % (i * 6 + 3))} for i in range(MANY - 1)],
    }
    rest.call("POST", f"/v2/{INSTANCE}/tables", body)
    query = "SELECT info['customer'] AS customer, COUNT(*) AS orders FROM large GROUP BY customer"
    rest.call("POST", f"/v2/{INSTANCE}/materializedViews?materializedViewId=orders_of",
              {"query": query})  # fmt: skip
    write_all_families(rest, f"{INSTANCE}/tables/large", families)
    deadline = time.monotonic() + PATIENCE_SECONDS
    wanted = "maxRanges=256&fields=times(isOpen)"
    while True:
        load(rest, f"{INSTANCE}/tables/large")
        heat = rest.call("GET", f"/v1/{INSTANCE}/tables/large:heat?{wanted}")
        if len(heat.get("times", [])) > 3:
            break
        assert time.monotonic() < deadline


@pytest.fixture(scope="module")
def used(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("used"), ["--heat-window", "1s"]).start()
    rest = Rest(server.host)
    make_used(rest)
    yield rest.host
    server.stop()


USED = {"tables": SHOP, "table": f"{SHOP}/t/large", "heat": f"{SHOP}/t/large/heat"}


@pytest.mark.parametrize("name", USED)
def test_a_page_of_a_used_server_takes_no_more(browser, used, name):
    window = Window(browser)
    window.page.set_default_timeout(1000 * PATIENCE_SECONDS)
    address = f"http://{used}/console/{USED[name]}"
    first = window.visit(address)
    whats_large = window.largest()
    following = window.visit(address)
    print(f"used, {name}: {first} bytes, then {following}")
    assert 10_000 < first <= FIRST_BYTES, whats_large
    assert 0 < following <= NEXT_BYTES, window.largest()
    window.context.close()


def test_the_page_of_a_table_takes_no_more_when_much_is_remembered(browser, used):
    """Its charts have all the points that they may have after an hour."""
    window = Window(browser)
    window.page.set_default_timeout(1000 * PATIENCE_SECONDS)
    wait_until_remembered(used, f"{INSTANCE}/tables/large:metricHistory")
    address = f"http://{used}/console/{USED['table']}"
    first = window.visit(address)
    with window.page.expect_response("**:metricHistory?*") as asked:
        following = window.visit(address)
    answer = asked.value.json()
    assert len(answer["lines"]) == 5
    before = packed_size(asked.value.body())
    later = packed_size(json.dumps(full(answer), separators=(",", ":")).encode())
    print(f"{first} and {following} bytes, of which {before}; {later} when there is an hour")
    assert first - before + later <= FIRST_BYTES
    assert following - before + later <= NEXT_BYTES
    window.context.close()



def hot(answer, ranges, times):
    """The same, had all of it something to tell: as many ranges and times, whose numbers differ."""
    chance = random.Random(1)
    began = datetime.fromisoformat(answer["startTime"])
    step = timedelta(hours=1) / times
    texts = [(began + i * step).isoformat().replace("+00:00", "Z") for i in range(times + 1)]
    keys = sorted(b64(b"order#%06d" % chance.randrange(1_000_000)) for _ in range(ranges - 1))
    values = [[chance.lognormvariate(5, 1) for _ in range(ranges)] for _ in range(times)]
    most = max(map(max, values))
    levels = ["".join(LEVELS[max(1, 63 + round(math.log(each / most, 1.2)))] for each in row)
              for row in values]  # fmt: skip
    found = [{"startTime": texts[i], "endTime": texts[i + 1], "levels": levels[i]}
             for i in range(times)]  # fmt: skip
    return {**answer, "startKeys": ["", *keys], "times": found}


def test_the_page_of_heat_takes_no_more_when_all_of_it_is_hot(browser, used):
    """With as many ranges and times as it asks for at most; that the server heeds that is in
    test_heat.py."""
    window = Window(browser)
    window.page.set_default_timeout(1000 * PATIENCE_SECONDS)
    address = f"http://{used}/console/{USED['heat']}"
    first = window.visit(address)
    with window.page.expect_response("**:heat?*levelsOf=*") as asked:
        following = window.visit(address)
    limits = {name: int(values[0]) for name, values in parse_qs(urlparse(asked.value.url).query)
              .items() if name.startswith("max")}  # fmt: skip
    before = packed_size(asked.value.body())
    for ranges in (1, 8, 32, 64, limits["maxRanges"]):
        times = min(limits["maxTimes"], limits["maxCells"] // ranges)
        text = json.dumps(hot(asked.value.json(), ranges, times), separators=(",", ":"))
        later = packed_size(text.encode())
        then = following - before + later
        print(f"{ranges} ranges, {times} times: {then} bytes, of which {later}")
        assert then <= NEXT_BYTES
        assert first - before + later <= FIRST_BYTES
    window.context.close()


def told(answer):
    """What it says; how many rows a message of a stream has goes by the server's turns."""
    said = json.loads(answer)
    if isinstance(said, dict):
        return said
    return [chunk for message in said for chunk in message.get("chunks", [])]


@pytest.mark.parametrize("way", ["HTTP/1.1", "HTTP/2"])
def test_answers_to_pages_are_packed_where_gzip_is_taken(shop, way):
    """One message, a stream, and an error; elsewhere nothing is packed."""
    asked = [
        ("GET", "/v1/servers/self/settings", None, 200),
        ("POST", f"/v2/{INSTANCE}/tables/orders:readRows", b"{}", 200),
        ("GET", f"/v2/{INSTANCE}/tables/none", None, 404),
    ]
    own = {"x-trestle-console": "1", "sec-fetch-site": "same-origin",
           "content-type": "application/json"}  # fmt: skip
    for verb, path, body, code in asked:
        ask = functools.partial(WAYS[way], shop, verb, f"/console/api{path}", body)
        status, fields, plain = ask({**own, "accept-encoding": "identity"})
        assert status == code and "content-encoding" not in fields
        status, fields, packed = ask({**own, "accept-encoding": "br, gzip"})
        assert status == code and fields["content-encoding"] == "gzip"
        assert fields["vary"] == "accept-encoding"
        assert told(gzip.decompress(packed)) == told(plain)
        status, fields, _ = WAYS[way](shop, verb, path, body, {"accept-encoding": "gzip"})
        assert status == code and "content-encoding" not in fields
