"""The practices of the two source pages, numbered as in the trial's table, and by which means each
can be seen broken."""

import typing

DATA, TRAFFIC, REFUSED, UNSEEN = "data", "traffic", "refused", "unseen"


class Practice(typing.NamedTuple):
    """`seen`: where a server can see it broken. `also`: practices that are broken with it, as a
    rule, so that a finding about one of them is right too."""

    number: str
    short: str
    heading: str  # the page's section and what stands there
    seen: tuple
    also: tuple = ()


ROWS = (
    # Bigtable: schema design best practices
    ("B1", "one table for alike data", "Tables: store datasets with similar schemas in the same "
     "table; multi-tenancy: prefix the row key with the tenant", (DATA,)),
    ("B2", "few tables", "Tables: avoid creating a large number of tables", (DATA,)),
    ("B3", "related columns in one family",
     "Column families: put related columns in the same column family", (TRAFFIC,)),
    ("B4", "at most 100 families",
     "Column families: create up to about 100 column families per table", (DATA,)),
    ("B5", "short family names",
     "Column families: choose short but meaningful names", (DATA,)),
    ("B6", "one retention a family", "Column families: put columns that have different data "
     "retention needs in different column families", (DATA,)),
    ("B7", "sparse rows", "Columns: a table is sparse; leave out what is absent", (DATA,)),
    ("B8", "not too many cells a row",
     "Columns: avoid using too many columns in any single row", (DATA,)),
    ("B9", "qualifiers as data", "Columns: treat column qualifiers as data", (DATA,)),
    ("B10", "short qualifiers", "Columns: keep names of columns short", (DATA,)),
    ("B11", "rows under 100 MB",
     "Rows: keep the size of all values in a single row under 100 MB", (DATA,)),
    ("B12", "an entity in one row", "Rows: keep all information for an entity in a single row; "
     "store related entities in adjacent rows", (DATA, TRAFFIC)),
    ("B13", "cells under 10 MB",
     "Cells: don't store more than 10 MB of data in a single cell", (DATA,)),
    ("B14", "aggregates in aggregate cells",
     "Cells: use aggregate cells for counters and running totals", (TRAFFIC,)),
    ("B15", "keys by queries", "Row keys: design your row key based on the queries you will use; "
     "other queries trigger a full table scan", (TRAFFIC,)),
    ("B16", "short keys", "Row keys: keep your row keys short", (DATA,)),
    ("B17", "delimited values",
     "Row keys: store multiple delimited values in each row key", (DATA,)),
    ("B18", "padded integers", "Row keys: pad integers with leading zeroes", (DATA,)),
    ("B19", "readable keys", "Row keys to avoid: values expressed as raw bytes rather than "
     "human-readable strings", (DATA,)),
    ("B20", "common value first", "Row keys: start with a common value and end with a granular "
     "value", (DATA,), ("B22",)),
    ("B21", "no time first",
     "Row keys to avoid: row keys that start with a timestamp", (DATA,), ("B23",)),
    ("B22", "related rows grouped", "Row keys to avoid: row keys that cause related data to not be "
     "grouped together", (DATA,), ("B20", "B26")),
    ("B23", "no sequential ids",
     "Row keys to avoid: sequential numeric IDs", (DATA,), ("B21",)),
    ("B24", "no row updated all the time",
     "Row keys to avoid: frequently updated identifiers", (DATA, TRAFFIC)),
    ("B25", "load spread evenly", "Performance: distribute reads and writes evenly; ramp up",
     (TRAFFIC,)),
    ("B26", "no hashes", "Row keys to avoid: hashed values", (DATA,), ("B22",)),
    ("B27", "no personal data", "Privacy: no personal data in row keys, column family names",
     (DATA,)),
    ("B28", "domains reversed", "Row keys to avoid: domain names, unless reversed and many",
     (DATA,)),
    # Datastore: best practices
    ("D1", "UTF-8 names", "General: UTF-8 for names of all kinds", (REFUSED,)),
    ("D2", "no / in names", "General: no forward slash in kind names or custom key names", (DATA,)),
    ("D3", "nothing sensitive in names",
     "General: no sensitive information in a key or a name", (DATA,)),
    ("D4", "batches", "API calls: use batch operations", (TRAFFIC,)),
    ("D5", "roll back", "API calls: if a transaction fails, roll it back", (TRAFFIC,)),
    ("D6", "asynchronous calls", "API calls: use asynchronous calls", (UNSEEN,)),
    ("D7", "one write a second a group",
     "Entities: don't write to an entity group more than once a second", (TRAFFIC,)),
    ("D8", "once in a commit",
     "Entities: don't include the same entity multiple times in a commit", (REFUSED,)),
    ("D9", "positive ids", "Keys: no negative number and no 0 for a numeric ID", (DATA,)),
    ("D10", "no rising ids",
     "Keys: avoid monotonically increasing IDs and names", (DATA,)),
    ("D11", "exclude from indexes",
     "Indexes: exclude properties that no query needs", (TRAFFIC,)),
    ("D12", "few composite indexes", "Indexes: avoid too many composite indexes", (DATA,)),
    ("D13", "no rising indexed values",
     "Indexes: don't index properties with monotonically increasing values", (DATA,)),
    ("D14", "no dots in names", "Properties: don't use dots in property names", (DATA,)),
    ("D15", "cursors, keys, projections", "Queries: keys-only and projection queries for what they "
     "give; cursors instead of offsets", (TRAFFIC,)),
    ("D16", "no narrow ranges", "Designing for scale: no high rates to a narrow key range; ramp "
     "up; deletions; hot keys", (TRAFFIC,)),
)  # fmt: skip

PRACTICES = {row[0]: Practice(*row) for row in ROWS}
assert len(PRACTICES) == 44
