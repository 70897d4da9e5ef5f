#!/usr/bin/env python3
"""Asks the table of Debian packages that load.py made.

    BIGTABLE_EMULATOR_HOST=127.0.0.1:8086 ./query.py show bash
"""

import argparse
import base64
import itertools
import os

import grpc
import packages
from google.cloud.bigtable.data import BigtableDataClient, ReadRowsQuery, RowRange
from google.cloud.bigtable.data.row_filters import (
    CellsColumnLimitFilter,
    CellsRowLimitFilter,
    ColumnQualifierRegexFilter,
    ColumnRangeFilter,
    FamilyNameRegexFilter,
    RowFilterChain,
    RowKeyRegexFilter,
    StripValueTransformerFilter,
    ValueRegexFilter,
)
from google.cloud.bigtable_v2 import FeatureFlags, ReadRowsRequest
from google.cloud.bigtable_v2.services.bigtable.transports import BigtableGrpcTransport

# The newest cell of each column: garbage collection may not have come by yet.
NEWEST = CellsColumnLimitFilter(1)
# So that a list of packages costs no more than it shows.
DESCRIPTION = RowFilterChain(
    [FamilyNameRegexFilter("meta"), ColumnQualifierRegexFilter("description"), NEWEST]
)


def text(cell):
    return cell.value.decode().split("\n")[0]


def list_packages(rows, limit):
    """A line for each package: its name and the first line of its description."""
    for row in itertools.islice(rows, limit):
        print(f"{row.row_key.decode():32} {text(row.cells[0])}")


# --- one row ---


def show(table, options):
    """One family of one row."""
    row_filter = RowFilterChain([FamilyNameRegexFilter(options.family), NEWEST])
    row = table.read_row(options.package, row_filter=row_filter)
    for cell in row.cells if row else []:
        print(f"{cell.qualifier.decode():16} {text(cell)}")


def rdeps(table, options):
    """Columns of a wide row, by a range: who depends on a package, from a name on."""
    start, end = options.prefix.encode(), options.prefix.encode() + b"\xff"
    row_filter = RowFilterChain([ColumnRangeFilter("rdep", start, end), NEWEST])
    row = table.read_row(options.package, row_filter=row_filter)
    cells = row.cells if row else []
    for cell in cells[: options.limit]:
        print(f"{cell.qualifier.decode():32} {text(cell)}")
    print(f"{len(cells)} packages")


def needs(table, options):
    """One column of a wide row: what a package asks of another."""
    row_filter = ColumnRangeFilter("rdep", options.package.encode(), options.package.encode())
    row = table.read_row(options.other, row_filter=RowFilterChain([row_filter, NEWEST]))
    answer = f"{options.other} ({text(row.cells[0])})" if row else f"no {options.other}"
    print(f"{options.package} needs {answer}")


# --- many rows ---


def prefix(table, options):
    start = options.prefix.encode()
    key_range = RowRange(start, start + b"\xff")
    query = ReadRowsQuery(row_ranges=key_range, limit=options.limit, row_filter=DESCRIPTION)
    list_packages(table.read_rows(query), options.limit)


def key_range(table, options):
    query = ReadRowsQuery(
        row_ranges=RowRange(options.start, options.end),
        limit=options.limit,
        row_filter=DESCRIPTION,
    )
    list_packages(table.read_rows(query), options.limit)


def regex(table, options):
    """By an RE2 expression that must match the whole key; reads all keys."""
    row_filter = RowFilterChain([RowKeyRegexFilter(options.regex), *DESCRIPTION.filters])
    query = ReadRowsQuery(limit=options.limit, row_filter=row_filter)
    list_packages(table.read_rows(query), options.limit)


def section(table, options):
    """By a value: the keys of packages in a section."""
    row_filter = RowFilterChain([
        FamilyNameRegexFilter("meta"),
        ColumnQualifierRegexFilter("section"),
        NEWEST,
        ValueRegexFilter(options.section),
        StripValueTransformerFilter(True),
    ])  # fmt: skip
    rows = table.read_rows(ReadRowsQuery(row_filter=row_filter))
    names = [row.row_key.decode() for row in rows]
    print(f"{len(names)} packages: {', '.join(names[: options.limit])} ...")


def before(table, options):
    """The packages before a name, backwards. Google's Python client has no method for reverse
    scans, only the request; and the client must say that it can read such an answer."""
    flags = FeatureFlags.serialize(FeatureFlags(reverse_scans=True))
    metadata = [("bigtable-features", base64.urlsafe_b64encode(flags).decode())]
    request = ReadRowsRequest(
        table_name=table.table_name,
        rows={"row_ranges": [{"end_key_open": options.package.encode()}]},
        rows_limit=options.limit,
        filter={
            "chain": {
                "filters": [
                    {"family_name_regex_filter": "meta"},
                    {"column_qualifier_regex_filter": b"description"},
                    {"cells_per_column_limit_filter": 1},
                ]
            }
        },
        reversed=True,
    )
    with grpc.insecure_channel(os.environ["BIGTABLE_EMULATOR_HOST"]) as channel:
        stubs = BigtableGrpcTransport(channel=channel)
        for response in stubs.read_rows(request, metadata=metadata):
            for chunk in response.chunks:
                print(f"{chunk.row_key.decode():32} {text(chunk)}")


def count(table, options):
    """All rows; of each only its first cell, without the value."""
    row_filter = RowFilterChain([CellsRowLimitFilter(1), StripValueTransformerFilter(True)])
    print(sum(1 for _ in table.read_rows(ReadRowsQuery(row_filter=row_filter))), "rows")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--project", default="p")
    parser.add_argument("--instance", default="i")
    parser.add_argument("--limit", type=int, default=10)
    commands = parser.add_subparsers(required=True, metavar="QUERY")

    def command(run, name, help_text, *names):
        added = commands.add_parser(name, help=help_text)
        added.set_defaults(run=run)
        for each in names:
            added.add_argument(each)
        return added

    added = command(show, "show", "one family of one package", "package")
    added.add_argument("--family", default="meta", choices=packages.FAMILIES)
    added = command(rdeps, "rdeps", "who depends on a package", "package")
    added.add_argument("--prefix", default="")
    command(needs, "needs", "what a package asks of another", "package", "other")
    command(prefix, "prefix", "packages by the start of their name", "prefix")
    command(key_range, "range", "packages from a name up to another", "start", "end")
    command(regex, "regex", "packages by an expression for the whole name", "regex")
    command(section, "section", "packages of a section", "section")
    command(before, "before", "the packages before a name, backwards", "package")
    command(count, "count", "how many rows there are")
    return parser.parse_args()


def main():
    options = arguments()
    with (
        BigtableDataClient(project=options.project) as client,
        client.get_table(options.instance, packages.TABLE) as table,
    ):
        options.run(table, options)


if __name__ == "__main__":
    main()
