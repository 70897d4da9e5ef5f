"""What the three programs share: a table of this server, and cells as text."""

import contextlib

from google.cloud.bigtable.data import BigtableDataClient


@contextlib.contextmanager
def open_table(name):
    """The server is that of BIGTABLE_EMULATOR_HOST."""
    with BigtableDataClient(project="p") as client, client.get_table("i", name) as table:
        yield table


def columns(row):
    """{qualifier: text} of the newest cells; what is no text is left out."""
    found = {}
    for cell in row.cells:
        with contextlib.suppress(UnicodeDecodeError):
            found.setdefault(cell.qualifier.decode(), cell.value.decode())
    return found
