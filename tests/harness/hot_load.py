"""A load that makes a range of rows hot: whole scans of it, through a filter that costs the server
much and lets nothing pass. So the server works, not the client, however little the machine has left
for either.

A tenth of all processors makes a range hot: the load is three tenths of them where there are so
many, by one scan after the other with rests between them. If the server gets less, more scans run
beside that one, without rests, so that it does not stand back behind what else is done there."""

import contextlib
import os
import threading
import time

from harness.cpu_time import read_stat

SCANS = 4  # at most at a time: more than the server has threads to run them on
SHARE = 0.3
BEHIND_SECONDS = 0.5  # so much less than its share: one scan does not do
FILTER = {"interleave": {"filters": [{"value_regex_filter": b"[^x]*x"}] * 50}}


class Share:
    """What the server has had of the processors' time, beside what it is to have."""

    def __init__(self, pid):
        self.pid = pid
        self.begin = time.monotonic()
        self.had_before = self.seconds()

    def seconds(self):
        _, _, spent = read_stat(self.pid)
        return spent

    def is_due(self, scan):
        """Whether this one of the scans is to run now."""
        wanted = (time.monotonic() - self.begin) * SHARE * os.cpu_count()
        had = self.seconds() - self.had_before
        return had < wanted - (BEHIND_SECONDS if scan > 0 else 0)


@contextlib.contextmanager
def scanning(connect, server, name, start, end=b""):
    """The rows from `start` up to `end` are scanned until the block is left."""
    over = threading.Event()
    rows = {"row_ranges": [{"start_key_closed": start, **({"end_key_open": end} if end else {})}]}
    share = Share(server.process.pid)

    def scan(number):
        rpc = connect(server.host)
        while not over.is_set():
            if share.is_due(number):
                rpc.read(name, rows=rows, filter=FILTER)
            else:
                over.wait(0.02)

    threads = [threading.Thread(target=scan, args=[number]) for number in range(SCANS)]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        over.set()
        for each in threads:
            each.join()
