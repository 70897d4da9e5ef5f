#!/usr/bin/env python3
"""Asks, and changes, the videos: all of a video is one row.

    BIGTABLE_EMULATOR_HOST=127.0.0.1:8086 ./videos.py show 0123
"""

import argparse
import json

from google.cloud.bigtable.data import SetCell
from google.cloud.bigtable.data.read_modify_write_rules import IncrementRule
from google.cloud.bigtable.data.row_filters import (
    CellsColumnLimitFilter,
    FamilyNameRegexFilter,
    RowFilterChain,
)
from tables import columns, open_table


def show(table, options):
    """What was Query of a partition, and more than one item: one row."""
    row = table.read_row(options.video, row_filter=CellsColumnLimitFilter(1))
    [uploaded] = {cell.timestamp_micros for cell in row.get_cells("Video")}
    video = {cell.qualifier.decode(): cell.value.decode() for cell in row.get_cells("Video")}
    stats = {c.qualifier.decode(): int.from_bytes(c.value, "big") for c in row.get_cells("Stats")}
    print(f"{video['Title']} ({video['Format']}), uploaded at {uploaded // 10**6}")
    print(f"{stats['Likes']} likes, {stats['Views']} views")


def like(table, options):
    """UpdateItem ADD: the server increments the counter."""
    row = table.read_modify_write_row(options.video, IncrementRule("Stats", "Likes"))
    print(f"{int.from_bytes(row.cells[0].value, 'big')} likes")


def comments(table, options):
    """The newest versions of one cell. There is no sort key turned round for that."""
    newest = RowFilterChain(
        [FamilyNameRegexFilter("UserComments"), CellsColumnLimitFilter(options.last)]
    )
    row = table.read_row(options.video, row_filter=newest)
    for cell in row.cells if row else []:
        comment = json.loads(cell.value)
        print(f"{comment['User']}: {comment['Text']}")


def comment(table, options):
    """PutItem: one more version. The family keeps the fifty newest."""
    value = json.dumps({"Text": options.text, "User": options.user})
    table.mutate_row(options.video, SetCell("UserComments", "Comment", value.encode()))
    print("said")


def encode(table, options):
    """What was a copy of the item under v1_, v2_, … is another version of a cell."""
    table.mutate_row(options.video, SetCell("Video", "Format", options.format.encode()))
    row = table.read_row(options.video, row_filter=FamilyNameRegexFilter("Video"))
    formats = [cell.value.decode() for cell in row.get_cells("Video", "Format")]
    print("formats, the newest first:", *formats)
    print("now:", columns(row)["Format"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for run in (show, like, comments, comment, encode):
        added = commands.add_parser(run.__name__, help=run.__doc__)
        added.set_defaults(run=run)
        added.add_argument("video")
        if run is comments:
            added.add_argument("--last", type=int, default=10)
        if run is comment:
            added.add_argument("user")
            added.add_argument("text")
        if run is encode:
            added.add_argument("format")
    options = parser.parse_args()
    with open_table("videos") as table:
        options.run(table, options)


if __name__ == "__main__":
    main()
