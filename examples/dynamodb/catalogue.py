#!/usr/bin/env python3
"""Asks the product catalogue: rows are hats#fedoras#brandA.

    BIGTABLE_EMULATOR_HOST=127.0.0.1:8086 ./catalogue.py list hats
"""

import argparse

from google.cloud.bigtable.data import ReadRowsQuery, RowRange
from google.cloud.bigtable.data.row_filters import CellsColumnLimitFilter, FamilyNameRegexFilter
from tables import columns, open_table

NEWEST = CellsColumnLimitFilter(1)


def show(table, key):
    """GetItem: one product, its sizes (a set) beside it."""
    row = table.read_row(key, row_filter=NEWEST)
    for cell in row.get_cells("SKU"):
        if cell.qualifier != b"Thumbnail":
            print(f"{cell.qualifier.decode():12} {cell.value.decode()}")
    sizes = [cell.qualifier.decode() for cell in row.get_cells("Sizes")]
    print(f"{'Sizes':12} {' '.join(sizes)}")


def list_products(table, prefix):
    """A prefix, which may span what were partitions: in DynamoDB that took an index."""
    start = f"{prefix}#".encode()
    query = ReadRowsQuery(
        row_ranges=RowRange(start, start + b"\xff"), row_filter=FamilyNameRegexFilter("SKU")
    )
    for row in table.read_rows(query):
        found = columns(row)
        print(f"{row.row_key.decode():24} {found['Price']:>4}  {found['Description']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("query", choices=["show", "list"])
    parser.add_argument("key", help="hats#fedoras#brandA, or the beginning of keys: hats")
    options = parser.parse_args()
    with open_table("catalogue") as table:
        (show if options.query == "show" else list_products)(table, options.key)


if __name__ == "__main__":
    main()
