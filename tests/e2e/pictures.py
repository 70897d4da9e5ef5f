#!/usr/bin/env python3
"""Makes the pictures of README.md and docs/tour.md anew, of a real server and a real browser:
`./dev pictures`.

    TRESTLE_BINARY=build/trestle tests/e2e/pictures.py"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from harness.browser import SIZES, Visitor, chromium  # noqa: E402
from harness.server import Server  # noqa: E402

PICTURES = ROOT / "docs/pictures"
TABLE = "#/p/p/i/i/t/hotspot-prefix"
LOAD_SECONDS = 60
MOST_BYTES = 150_000
SIZES["picture"] = (1120, 800)


def load(host):
    """What the tour runs."""
    subprocess.run(
        [sys.executable, ROOT / "examples/hotspots/hotspot.py", "prefix",
         "--seconds", str(LOAD_SECONDS)],
        env={**os.environ, "BIGTABLE_EMULATOR_HOST": host},
        stderr=subprocess.DEVNULL,
        check=True,
    )  # fmt: skip


def take(page, name):
    path = PICTURES / f"{name}.png"
    page.screenshot(path=path)
    assert path.stat().st_size < MOST_BYTES, f"{path} has {path.stat().st_size} bytes"
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size} bytes")


def show_heat(page):
    """The map, with the cursor in the hot range."""
    page.wait_for_selector(".heat-picture:not([hidden])")
    page.locator(".heat-signs li").first.wait_for()
    box = page.locator(".heat-map").bounding_box()
    page.mouse.move(box["x"] + 0.75 * box["width"], box["y"] + 0.5 * box["height"])
    page.wait_for_selector(".heat-tip:not([hidden])")


def main():
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory, chromium() as browser:
        server = Server(directory, ["--heat-window", "5s"]).start()
        load(server.host)
        for scheme in ("light", "dark"):
            somebody = Visitor(browser, server.host, size="picture", scheme=scheme)
            somebody.visit(f"{TABLE}/heat")
            show_heat(somebody.page)
            take(somebody.page, f"heat-{scheme}")
            if scheme == "light":
                somebody.page.locator(".heat-signs li a").first.click()
                somebody.page.wait_for_selector("th.key a")
                take(somebody.page, "rows")
            somebody.leave()
        server.close()


if __name__ == "__main__":
    main()
