"""Debian's Chromium, driven by Playwright, as somebody at the console.

Whatever a page says to its log, asks of anybody but the server, or throws is remembered; a visitor
who leaves without having expected it fails the test.

A window is a process that reads the console's scripts first, which costs more than most tests do in
it. So the window of a visitor who left in good order, empty again, is the next one's."""

import contextlib
import re
import time
import weakref
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from harness.patience import PATIENCE_SECONDS
from harness.server import ROOT
from playwright.sync_api import sync_playwright

CHROMIUM = "/usr/bin/chromium"
SCREENSHOTS = ROOT / "build-test/screenshots"
SIZES = {
    "narrow": (360, 740),
    "phone": (390, 844),
    "tablet": (820, 1180),
    "desktop": (1440, 900),
    "4k": (3840, 2160),
}
# What is wrong with a page hangs on the size of its window or on the scheme, seldom on both: these
# differ in both.
ALWAYS = ("phone", "light"), ("desktop", "dark")


def looks(*sizes):
    """Runs a test of how a page looks with each of the sizes and both schemes: with those two in
    each run, with the others by date."""
    return pytest.mark.parametrize(("size", "scheme"), [
        pytest.param(size, scheme, marks=() if (size, scheme) in ALWAYS else pytest.mark.long)
        for size in sizes for scheme in ("light", "dark")
    ])  # fmt: skip


EMPTY = weakref.WeakKeyDictionary()  # {browser: {is_secure: [page]}}: nobody's windows


@contextlib.contextmanager
def chromium():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


def new_window(browser, is_secure):
    context = browser.new_context(ignore_https_errors=is_secure)
    context.set_default_timeout(1000 * PATIENCE_SECONDS)
    return context.new_page()


class Visitor:
    """Somebody with a window of a size, who likes it light or dark."""

    def __init__(self, browser, host, size="desktop", scheme="light", is_secure=False):
        width, height = SIZES[size]
        self.host, self.size, self.scheme = host, size, scheme
        self.base = f"{'https' if is_secure else 'http'}://{host}/console/"
        self.empty = EMPTY.setdefault(browser, {}).setdefault(is_secure, [])
        self.page = self.empty.pop() if self.empty else new_window(browser, is_secure)
        self.context = self.page.context
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.emulate_media(color_scheme=scheme)
        self.troubles = []
        self.asked = set()  # requests that are under way
        self.listeners = {
            "console": self.note_message,
            "pageerror": self.note_error,
            "request": self.note_request,
            "requestfinished": self.note_end,
            "requestfailed": self.note_end,
        }
        for event, listener in self.listeners.items():
            self.page.on(event, listener)

    def note_message(self, message):
        if message.type in ("error", "warning"):
            self.troubles.append(f"{message.type}: {message.text}")

    def note_error(self, error):
        self.troubles.append(f"thrown: {error}")

    def note_request(self, request):
        self.asked.add(request)
        address = urlsplit(request.url)
        if address.scheme in ("http", "https") and address.netloc != self.host:
            self.troubles.append(f"asked elsewhere: {request.url}")

    def note_end(self, request):
        self.asked.discard(request)

    def hear_all(self):
        """Waits for the ends of requests, and for what the browser says of them. It tells of a
        request that failed twice, first that it has, then as a line of the log: on a busy machine
        the line came when the test was over. Both are on their way in that order before the page
        answers a question that is put after the first."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.asked:
            assert time.monotonic() < deadline, self.asked
            self.page.wait_for_timeout(10)
        self.page.evaluate("null")

    def expect_trouble(self, *patterns):
        """Takes back what was expected: the browser logs each answer that is an error, also one
        that comes when the page has said what another was."""
        self.hear_all()
        for pattern in patterns:
            assert any(re.search(pattern, trouble) for trouble in self.troubles), self.troubles
        self.troubles = [
            trouble for trouble in self.troubles
            if not any(re.search(pattern, trouble) for pattern in patterns)
        ]  # fmt: skip

    def visit(self, hash_path=""):
        """Opens a page as a link from elsewhere would: another one of the console is left. By way
        of an empty page that would take a new process, and twice the CPU time."""
        address = f"{self.base}{hash_path}"
        if self.page.url.startswith(self.base):
            self.page.evaluate("address => history.replaceState(null, '', address)", address)
            self.page.reload()
        else:
            self.page.goto(address)
        self.settle()

    def settle(self):
        """Waits until the page is there."""
        self.page.wait_for_selector("main h1")
        self.page.wait_for_selector(".loading", state="detached")

    def log_in(self, token):
        """Comes in, and waits for the page that was asked for."""
        self.try_token(token)
        self.page.wait_for_selector("main.login", state="detached")
        self.settle()

    def try_token(self, token):
        """Gives a token, whatever comes of it."""
        self.page.get_by_label("Token").fill(token)
        self.page.get_by_role("button", name="Log in").click()

    def violations(self):
        """What axe finds: (rule, elements)."""
        found = Axe().run(self.page).response["violations"]
        return [(each["id"], [node["html"] for node in each["nodes"]]) for each in found]

    def screenshot(self, name):
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}-{self.size}-{self.scheme}.png")

    def overflow(self):
        """Pixels by which the page is wider than its window."""
        return self.page.evaluate("document.documentElement.scrollWidth - innerWidth")

    def leave(self):
        try:
            assert self.troubles == [], self.troubles
            self.tidy_up()
            self.empty.append(self.page)
        except BaseException:
            self.context.close()
            raise

    def tidy_up(self):
        """Leaves the window as a new one is: without a page, what pages keep, and listeners. What a
        page may say of requests that its end cuts short is nobody's trouble: it is not heard."""
        self.context.set_offline(False)
        self.page.unroute_all()
        self.page.evaluate("() => { localStorage.clear(); sessionStorage.clear() }")
        for event, listener in self.listeners.items():
            self.page.remove_listener(event, listener)
        assert self.troubles == [], self.troubles
        self.context.clear_cookies()
        self.page.goto("about:blank")


@contextlib.contextmanager
def visitors(browser):
    """A function that opens a table's page on a host: a Visitor, who leaves in the end."""
    with contextlib.ExitStack() as stack:

        def arrive(host, table):
            somebody = Visitor(browser, host)
            stack.callback(somebody.leave)
            project, instance, name = table.split("/")[1::2]
            somebody.visit(f"#/p/{project}/i/{instance}/t/{name}")
            return somebody

        yield arrive
