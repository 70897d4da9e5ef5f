#!/usr/bin/env python3
"""Loads Debian's package index into a table, through Google's own client.

    BIGTABLE_EMULATOR_HOST=127.0.0.1:8086 ./load.py
"""

import argparse
import time

import packages
from google.api_core.exceptions import AlreadyExists
from google.cloud.bigtable import Client
from google.cloud.bigtable.column_family import MaxVersionsGCRule
from google.cloud.bigtable.data import BigtableDataClient, RowMutationEntry, SetCell

MUTATIONS_A_REQUEST = 10_000


def create_table(project, instance):
    """The table; each column keeps its newest version, so that loading again changes nothing."""
    admin = Client(project=project, admin=True)
    table = admin.instance(instance).table(packages.TABLE)
    try:
        table.create(column_families=dict.fromkeys(packages.FAMILIES, MaxVersionsGCRule(1)))
    except AlreadyExists:
        pass
    finally:
        admin.close()


def entry(name, row, timestamp):
    """A row's cells as one mutation of the row: all of it or nothing."""
    cells = [
        SetCell(family, column, value, timestamp_micros=timestamp)
        for family, columns in row.items()
        for column, value in columns.items()
    ]
    return RowMutationEntry(name, cells)


def load(project, instance, only):
    """All packages, or only those. Returns numbers of rows and cells."""
    table_rows = packages.rows(packages.index())
    if only:
        table_rows = {name: table_rows[name] for name in only if name in table_rows}
    timestamp = time.time_ns() // 1_000_000 * 1000
    create_table(project, instance)
    with (
        BigtableDataClient(project=project) as client,
        client.get_table(instance, packages.TABLE) as table,
        table.mutations_batcher(flush_limit_mutation_count=MUTATIONS_A_REQUEST) as batcher,
    ):
        for name, row in table_rows.items():
            batcher.append(entry(name, row, timestamp))
    cells = sum(len(columns) for row in table_rows.values() for columns in row.values())
    return len(table_rows), cells


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--project", default="p", help="any name will do")
    parser.add_argument("--instance", default="i", help="any name will do")
    parser.add_argument("--only", metavar="NAME", nargs="+", help="load these packages again")
    options = parser.parse_args()
    began = time.monotonic()
    rows, cells = load(options.project, options.instance, options.only)
    print(f"{rows} rows with {cells} cells in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
