"""The count of CPU seconds: each once, whenever the process that took them ends."""

import shutil
import subprocess

from harness.cpu_time import CpuTime, read_stat

BUSY = "for ((i = 0; i < 300000; i++)); do :; done"


def test_a_child_of_a_browser_is_counted_once(tmp_path):
    """A renderer: seen while it runs, and then a part of what its parent took."""
    shell = tmp_path / "chromium"
    shell.symlink_to(shutil.which("bash"))
    script = f"({BUSY}; echo busy; read -r line); echo over; read -r line"
    watch = CpuTime()
    with subprocess.Popen(
        [shell, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as browser:
        spent = []
        for expected in "busy\n", "over\n":
            assert browser.stdout.readline() == expected
            spent.append(watch.take().get("browser", 0))
            whole = read_stat(browser.pid)[2]
            browser.stdin.write("go on\n")
            browser.stdin.flush()
    assert spent[0] > 0.1
    assert abs(sum(spent) - whole) < 0.1, (spent, whole)
