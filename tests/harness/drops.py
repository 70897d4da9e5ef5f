"""Tables of which rows are dropped before they are read by a command, or while they are."""

import contextlib

from harness.patience import PATIENCE_SECONDS
from harness.proxy import HoldingProxy
from harness.rpc import set_cell

MS = 1000
VALUE = b"v" * (64 << 10)
# More than the server sends while nobody reads: a stream's window and what waits behind it.
ROWS_BEFORE = 160
PART_SENT = 1 << 20


def put(rpc, table, keys, value=VALUE):
    for key in keys:
        rpc.mutate(table, key, set_cell("f", b"q", value, MS))


def fill_and_drop(rpc, table):
    """Rows that stay, that are dropped, and that come after the drop, with older timestamps, too;
    returns {key: value} of what there is."""
    put(rpc, table, [b"a", b"b1", b"b2", b"b2/large", b"b3", b"c"])
    rpc.drop_row_range(table, prefix=b"b")
    put(rpc, table, [b"b2"], b"new")
    rpc.mutate(table, b"b4", set_cell("f", b"q", b"old", 0))
    return {b"a": VALUE, b"b2": b"new", b"b4": b"old", b"c": VALUE}


def fill_before(rpc, table):
    """Rows that are read first, and then those that are to be dropped meanwhile."""
    before = [b"a%04d" % i for i in range(ROWS_BEFORE)]
    put(rpc, table, [*before, *(b"z%d" % i for i in range(10))])
    return before


@contextlib.contextmanager
def drop_meanwhile(rpc, table, host):
    """The address of a proxy of the server, through which somebody reads the table of fill_before.
    When a part of it has come, `drop` of what is yielded drops the rest, and lets it go on."""
    proxy = HoldingProxy(host, lambda: proxy.sent > PART_SENT)

    def drop():
        assert proxy.holds.wait(PATIENCE_SECONDS)
        rpc.drop_row_range(table, prefix=b"z")
        put(rpc, table, [b"z5"], b"new")
        proxy.release()

    try:
        yield proxy.host, drop
    finally:
        proxy.close()
