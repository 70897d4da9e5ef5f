#!/usr/bin/env python3
"""Asks, and changes, invoices and their payments, which are columns of the invoice's row.

    BIGTABLE_EMULATOR_HOST=127.0.0.1:8086 ./invoices.py show 0123
"""

import argparse
import datetime
import json

from google.cloud.bigtable.data import DeleteAllFromRow, ReadRowsQuery, SetCell
from google.cloud.bigtable.data.row_filters import (
    CellsColumnLimitFilter,
    ColumnQualifierRegexFilter,
    FamilyNameRegexFilter,
    RowFilterChain,
)
from tables import open_table

NEWEST = CellsColumnLimitFilter(1)


def day(cell):
    return datetime.datetime.fromtimestamp(cell.timestamp_micros / 10**6, datetime.UTC).date()


def show(table, options):
    """The invoice with all its payments: one read of one row."""
    row = table.read_row(options.id, row_filter=NEWEST)
    [details] = row.get_cells("Invoice", "Details")
    invoice = json.loads(details.value)
    print(f"{options.id} of {day(details)}: {invoice['Customer']}, {invoice['Total']}")
    paid = 0
    for cell in row.get_cells("Payment"):
        amount = json.loads(cell.value)["Amount"]
        paid += amount
        print(f"  payment {cell.qualifier.decode()} of {day(cell)}: {amount}")
    print(f"  due: {invoice['Total'] - paid}")


def find(table, options):
    """Whose payment is it? What was an index turned round is a filter of columns."""
    row_filter = RowFilterChain(
        [FamilyNameRegexFilter("Payment"), ColumnQualifierRegexFilter(options.id), NEWEST]
    )
    for row in table.read_rows(ReadRowsQuery(row_filter=row_filter)):
        print(f"invoice {row.row_key.decode()}: {row.cells[0].value.decode()}")


def pay(table, options):
    """A payment is one more column, whose qualifier is its id."""
    value = json.dumps({"Amount": options.amount})
    table.mutate_row(options.id, SetCell("Payment", options.payment, value.encode()))
    print("paid")


def delete(table, options):
    """The invoice and its payments go at once. (DynamoDB: an item at a time.)"""
    table.mutate_row(options.id, DeleteAllFromRow())
    print("deleted")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for run in (show, find, pay, delete):
        added = commands.add_parser(run.__name__, help=run.__doc__)
        added.set_defaults(run=run)
        added.add_argument("id")
        if run is pay:
            added.add_argument("payment")
            added.add_argument("amount", type=int)
    options = parser.parse_args()
    with open_table("invoices") as table:
        options.run(table, options)


if __name__ == "__main__":
    main()
