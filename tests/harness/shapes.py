"""Tables whose rows fill messages of ReadRows: those on which clients in Go broke."""

from harness.rpc import set_cell

MB = 10**6

# Rows, cells of each, bytes of a cell.
SHAPES = {
    "narrow": (1000, 10, 100),
    "middle": (1000, 10, 1000),
    "wide": (200, 50, 1000),
    "wider": (20, 100, 1000),
    "cell-of-3-mb": (3, 1, 3 * MB),
    "cell-of-5-mb": (3, 1, 5 * MB),
    "cell-of-60-mb": (1, 1, 60 * MB),
}
ENTRIES = 100


def make_shape(rpc, table_id, shape):
    """The table's name."""
    rows, cells, size = SHAPES[shape]
    name = rpc.create_table(table_id)
    value = bytes(range(256)) * (size // 256 + 1)
    row = [set_cell("f", b"%05d" % i, value[:size], 1000) for i in range(cells)]
    at_once = ENTRIES if rows * cells * size < 20 * MB else 1
    for first in range(0, rows, at_once):
        keys = [b"r%06d" % i for i in range(first, min(first + at_once, rows))]
        assert set(rpc.mutate_rows(name, [(key, row) for key in keys])) == {0}
    return name
