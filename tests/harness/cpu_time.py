"""The CPU time that a test takes, of its own process and of those below it. Clocks on the wall tell
little on a machine that is shared; this says where the time of a run goes, and of which programs.

A process below that ends between two looks is counted as soon as it was waited for (the kernel adds
it to its parent's), then under its parent's name. What nobody waits for is lost with it.
"""

import collections
import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
KINDS = {"trestle": "server", "chromium": "browser", "chrome": "browser"}


def kind_of(name):
    return KINDS.get(name, "tests")


def read_stat(pid):
    """(parent, name, own seconds and those of children that were waited for), or None."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:  # it has ended
        return None
    name = text[text.index("(") + 1 : text.rindex(")")]
    fields = text[text.rindex(")") + 2 :].split()
    return int(fields[1]), name, sum(map(int, fields[11:15])) / TICKS


def below(root):
    """{pid: (parent, name, seconds)} of `root` and all that descend from it."""
    seen = {int(entry): read_stat(entry) for entry in os.listdir("/proc") if entry.isdigit()}
    children = {}
    for pid, stat in seen.items():
        if stat:
            children.setdefault(stat[0], []).append(pid)
    found, waiting = {}, [root]
    while waiting:
        pid = waiting.pop()
        if seen.get(pid):
            found[pid] = seen[pid]
            waiting += children.get(pid, ())
    return found


class CpuTime:
    """take() gives {kind: seconds} since the take before: kinds are server, browser and tests."""

    def __init__(self):
        self.before = below(os.getpid())

    def take(self):
        now = below(os.getpid())
        spent = collections.Counter()
        for pid, (_, name, seconds) in now.items():
            was = self.before.get(pid, (0, name, 0.0))[2]
            spent[kind_of(name)] += seconds - was
        # A child that ended is in its parent's time now: what was counted before is taken off.
        for pid, (_, _, seconds) in self.before.items():
            if pid not in now:
                spent[self.kind_of_heir(pid, now)] -= seconds
        self.before = now
        return {kind: round(seconds, 2) for kind, seconds in spent.items() if seconds >= 0.01}

    def kind_of_heir(self, pid, now):
        """Of the process that waited for this one, which is gone, and whose own parent may be."""
        while pid not in now and pid in self.before:
            pid = self.before[pid][0]
        return kind_of(now[pid][1]) if pid in now else "tests"
