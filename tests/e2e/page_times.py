#!/usr/bin/env python3
"""How long each page of the console takes in Chromium, on loopback: `./dev bench console`.

A page is there when it has its heading, nothing in it is still loading, and no figure is awaited
any more; the time is the browser's own, from the address to that. On a first visit nothing is kept;
on the next ones the page's files are, and the page is opened anew. Told are the median and the
shortest, and the processor time that the page's own thread took on a next visit: what else runs on
the machine makes the times longer, that not.

    TRESTLE_BINARY=build/trestle tests/e2e/page_times.py [--rounds N] [PAGE...]

Only to look at: it never fails for a time."""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests/e2e"))

from harness.browser import chromium  # noqa: E402
from harness.rest import Rest  # noqa: E402
from harness.server import Server  # noqa: E402
from test_console_budget import PAGES, SHOP, fill, make_used, wait_until_remembered  # noqa: E402

# What the browser and the console's frame take by themselves.
BARE = {"no such page": "#/nothing"}
USED = {
    "used: tables": SHOP,
    "used: table": f"{SHOP}/t/large",
    "used: heat": f"{SHOP}/t/large/heat",
}
# When the page was there last, milliseconds since it was asked for.
WATCH = """
window.thereAt = null;
const isThere = () => {
    const main = document.querySelector("main");
    return main?.querySelector("h1") && !main.querySelector(".loading") &&
        ![...main.querySelectorAll("span")].some((each) => each.textContent === "…");
};
const look = () => {
    if (!isThere()) window.thereAt = null;
    else window.thereAt ??= performance.now();
};
new MutationObserver(look).observe(document, {childList: true, subtree: true, characterData: true});
"""
SETTLED_SECONDS = 0.3  # what is there for so long is there


class Window:
    """With a cache of its own."""

    def __init__(self, browser):
        self.context = browser.new_context()
        self.context.add_init_script(WATCH)
        self.page = self.context.new_page()
        self.devtools = self.context.new_cdp_session(self.page)
        self.devtools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def visit(self, address):
        """Milliseconds until it was there."""
        self.page.goto("about:blank")
        self.page.goto(address)
        told = None
        while True:
            now = self.page.evaluate("window.thereAt")
            if now is not None and now == told:
                return now
            told = now
            time.sleep(SETTLED_SECONDS)

    def processor(self):
        """Milliseconds of the page's thread since the address was asked for."""
        found = self.devtools.send("Performance.getMetrics")["metrics"]
        return next(1000 * each["value"] for each in found if each["name"] == "TaskDuration")


def measure(browser, address, rounds):
    first, following, processor = [], [], []
    for _ in range(rounds):
        window = Window(browser)
        first.append(window.visit(address))
        for _ in range(2):
            following.append(window.visit(address))
            processor.append(window.processor())
        window.context.close()
    return first, following, processor


def tell(name, first, following, processor):
    print(
        f"| {name} | {statistics.median(first):.0f} | {min(first):.0f} | "
        f"{statistics.median(following):.0f} | {min(following):.0f} | "
        f"{statistics.median(processor):.0f} |",
        flush=True,
    )


def measure_all(host, pages, only, rounds):
    with chromium() as browser:
        for name, address in pages.items():
            if not only or name in only:
                tell(name, *measure(browser, f"http://{host}/console/{address}", rounds))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("pages", nargs="*", help=", ".join([*BARE, *PAGES, *USED]))
    chosen = parser.parse_args()
    print("| page | first, ms | shortest | next, ms | shortest | thread, ms |")
    print("|---|---:|---:|---:|---:|---:|")
    servers = ((BARE | PAGES, [], fill), (USED, ["--heat-window", "1s"], make_used))
    for pages, arguments, make in servers:
        if chosen.pages and not set(chosen.pages) & set(pages):
            continue
        with tempfile.TemporaryDirectory() as directory:
            server = Server(Path(directory), arguments).start()
            rest = Rest(server.host)
            make(rest)
            wait_until_remembered(server.host, "servers/self/metricHistory")
            measure_all(server.host, pages, chosen.pages, chosen.rounds)
            server.stop()


if __name__ == "__main__":
    main()
