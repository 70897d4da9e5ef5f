"""A load that makes a range of rows hot: whole scans of it, through a filter that costs the server
much and lets nothing pass. So the server works, not the client, however little the machine has left
for either."""

import contextlib
import threading

SCANS = 4  # at a time: more than the server has threads to run them on
FILTER = {"interleave": {"filters": [{"value_regex_filter": b"[^x]*x"}] * 50}}


@contextlib.contextmanager
def scanning(connect, host, name, start, end=b""):
    """The rows from `start` up to `end` are scanned until the block is left."""
    over = threading.Event()
    rows = {"row_ranges": [{"start_key_closed": start, **({"end_key_open": end} if end else {})}]}

    def scan():
        rpc = connect(host)
        while not over.is_set():
            rpc.read(name, rows=rows, filter=FILTER)

    threads = [threading.Thread(target=scan) for _ in range(SCANS)]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        over.set()
        for each in threads:
            each.join()
