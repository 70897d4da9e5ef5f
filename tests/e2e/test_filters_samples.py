"""The row filters of Google's Python samples ("Using filters"), on the samples' data, with both of
Google's Python clients."""

import datetime

import pytest
from google.cloud.bigtable import row_filters as classic_filters
from google.cloud.bigtable.data import ReadRowsQuery, row_filters
from harness.rpc import set_cell

HOUR = 3_600_000_000
NOW = 1_600_000_000_000_000
BEFORE = NOW - HOUR
PLAN, STATS = "cell_plan", "stats_summary"

# phone#<id>#<date>: connected_cell, connected_wifi, os_build, data plans with their cells
PHONES = {
    b"phone#4c410523#20190501": (
        1, 1, b"PQ2A.190405.003", {b"01gb": [b"false", b"true"], b"05gb": [b"true"]}
    ),
    b"phone#4c410523#20190502": (1, 1, b"PQ2A.190405.004", {b"05gb": [b"true"]}),
    b"phone#4c410523#20190505": (0, 1, b"PQ2A.190406.000", {b"05gb": [b"true"]}),
    b"phone#5c10102#20190501": (1, 1, b"PQ2A.190401.002", {b"10gb": [b"true"]}),
    b"phone#5c10102#20190502": (1, 0, b"PQ2A.190406.000", {b"10gb": [b"true"]}),
}  # fmt: skip


def int64(number):
    return number.to_bytes(8, "big")


def cells_of(phone):
    """(family, qualifier, timestamp, value) as a read gives them: sorted, newest first."""
    connected_cell, connected_wifi, build, plans = phone
    cells = [
        (PLAN, b"data_plan_" + plan, NOW - i * HOUR, value)
        for plan, values in sorted(plans.items())
        for i, value in enumerate(values)
    ]
    return [
        *cells,
        (STATS, b"connected_cell", NOW, int64(connected_cell)),
        (STATS, b"connected_wifi", NOW, int64(connected_wifi)),
        (STATS, b"os_build", NOW, build),
    ]


ALL = {key: cells_of(phone) for key, phone in PHONES.items()}


def keeping(predicate):
    """ALL, with the cells for which predicate(key, family, qualifier, timestamp, value) holds."""
    kept = {key: [cell for cell in cells if predicate(key, *cell)] for key, cells in ALL.items()}
    return {key: cells for key, cells in kept.items() if cells}


def first(count, start=0):
    return {key: cells[start : start + count] for key, cells in ALL.items()}


def at(microseconds):
    return datetime.datetime.fromtimestamp(microseconds / 1e6, datetime.timezone.utc)


def data_time_range(filters):
    return filters.TimestampRangeFilter(end=at(NOW - HOUR // 2))


def classic_time_range(filters):
    return filters.TimestampRangeFilter(classic_filters.TimestampRange(end=at(NOW - HOUR // 2)))


# Each sample: a function that makes the filter from either client's module, and what it leaves.
SAMPLES = {
    "row_regex": (
        lambda f: f.RowKeyRegexFilter(b".*#20190501$"),
        keeping(lambda key, *_: key.endswith(b"#20190501")),
    ),
    "cells_per_col": (
        lambda f: f.CellsColumnLimitFilter(1),
        keeping(lambda _, _family, _qualifier, timestamp, _value: timestamp == NOW),
    ),
    "cells_per_row": (lambda f: f.CellsRowLimitFilter(2), first(2)),
    "cells_per_row_offset": (lambda f: f.CellsRowOffsetFilter(2), first(99, start=2)),
    "family_regex": (
        lambda f: f.FamilyNameRegexFilter("stats_.*$"),
        keeping(lambda _, family, *__: family == STATS),
    ),
    "qualifier_regex": (
        lambda f: f.ColumnQualifierRegexFilter(b"connected_.*$"),
        keeping(lambda _, __, qualifier, *___: qualifier.startswith(b"connected_")),
    ),
    "column_range": (
        lambda f: f.ColumnRangeFilter(
            PLAN, b"data_plan_01gb", b"data_plan_10gb", inclusive_end=False
        ),
        keeping(lambda _, family, qualifier, *__: family == PLAN and qualifier < b"data_plan_10gb"),
    ),
    "value_range": (
        lambda f: f.ValueRangeFilter(b"PQ2A.190405", b"PQ2A.190406"),
        keeping(lambda *cell: b"PQ2A.190405" <= cell[-1] <= b"PQ2A.190406"),
    ),
    "value_regex": (
        lambda f: f.ValueRegexFilter(b"PQ2A.*$"),
        keeping(lambda *cell: cell[-1].startswith(b"PQ2A")),
    ),
    "timestamp_range": (
        lambda f: (data_time_range if f is row_filters else classic_time_range)(f),
        keeping(lambda _, _family, _qualifier, timestamp, _value: timestamp == BEFORE),
    ),
    "block_all": (lambda f: f.BlockAllFilter(True), {}),
    "pass_all": (lambda f: f.PassAllFilter(True), ALL),
    "strip_value": (
        lambda f: f.StripValueTransformerFilter(True),
        {key: [(*cell[:3], b"") for cell in cells] for key, cells in ALL.items()},
    ),
    "chain": (
        lambda f: f.RowFilterChain([f.CellsColumnLimitFilter(1), f.FamilyNameRegexFilter(PLAN)]),
        keeping(lambda _, family, _qualifier, timestamp, _v: family == PLAN and timestamp == NOW),
    ),
    "interleave": (
        lambda f: f.RowFilterUnion(
            [f.ValueRegexFilter(b"true"), f.ColumnQualifierRegexFilter(b"os_build")]
        ),
        keeping(lambda *cell: cell[-1] == b"true" or cell[2] == b"os_build"),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def phones(rpc):
    name = rpc.create_table("phones", [PLAN, STATS])
    for key, cells in ALL.items():
        rpc.mutate(name, key, *(set_cell(fam, qual, value, ts) for fam, qual, ts, value in cells))
    yield "phones"
    rpc.delete_table(name)


@pytest.fixture
def read_data(client, phones):
    def read(row_filter):
        with client.get_table("i", phones) as table:
            rows = table.read_rows(ReadRowsQuery(row_filter=row_filter))
        return {
            row.row_key: [(c.family, c.qualifier, c.timestamp_micros, c.value) for c in row]
            for row in rows
        }

    return read


@pytest.fixture
def read_classic(instance, phones):
    def read(row_filter):
        return {
            row.row_key: [
                (family, qualifier, cell.timestamp_micros, cell.value)
                for family, columns in sorted(row.cells.items())
                for qualifier, cells in sorted(columns.items())
                for cell in cells
            ]
            for row in instance.table(phones).read_rows(filter_=row_filter)
        }

    return read


@pytest.mark.parametrize("sample", SAMPLES)
def test_data_client(read_data, sample):
    make, expected = SAMPLES[sample]
    assert read_data(make(row_filters)) == expected


@pytest.mark.parametrize("sample", SAMPLES)
def test_classic_client(read_classic, sample):
    make, expected = SAMPLES[sample]
    assert read_classic(make(classic_filters)) == expected


def test_row_sample(read_data):
    """A sample is of whole rows, and over many reads it is neither all nor nothing."""
    counts = set()
    for _ in range(60):
        rows = read_data(row_filters.RowSampleFilter(0.5))
        assert all(cells == ALL[key] for key, cells in rows.items())
        counts.add(len(rows))
    assert len(counts) > 1


def labels_of(rows):
    return {row.row_key: [cell.labels for cell in row] for row in rows}


def test_apply_label(client, phones):
    query = ReadRowsQuery(row_filter=row_filters.ApplyLabelFilter("labelled"))
    with client.get_table("i", phones) as table:
        labels = labels_of(table.read_rows(query))
    assert labels == {key: [["labelled"]] * len(cells) for key, cells in ALL.items()}


def test_conditional(client, phones):
    condition = row_filters.ConditionalRowFilter(
        predicate_filter=row_filters.RowFilterChain(
            [
                row_filters.ColumnQualifierRegexFilter(b"data_plan_10gb"),
                row_filters.ValueRegexFilter(b"true"),
            ]
        ),
        true_filter=row_filters.ApplyLabelFilter("passed-filter"),
        false_filter=row_filters.ApplyLabelFilter("filtered-out"),
    )
    with client.get_table("i", phones) as table:
        labels = labels_of(table.read_rows(ReadRowsQuery(row_filter=condition)))
    for key, cells in ALL.items():
        label = "passed-filter" if b"5c10102" in key else "filtered-out"
        assert labels[key] == [[label]] * len(cells)


def test_sink(client, phones):
    """What went into the sink comes out whatever the rest of the chain does."""
    sink = row_filters.RowFilterChain(
        [
            row_filters.RowFilterUnion(
                [
                    row_filters.RowFilterChain(
                        [
                            row_filters.ColumnQualifierRegexFilter(b"os_build"),
                            row_filters.SinkFilter(True),
                        ]
                    ),
                    row_filters.PassAllFilter(True),
                ]
            ),
            row_filters.ColumnQualifierRegexFilter(b"connected_cell"),
        ]
    )
    with client.get_table("i", phones) as table:
        rows = table.read_rows(ReadRowsQuery(row_filter=sink))
    assert len(rows) == len(ALL)
    for row in rows:
        assert [cell.qualifier for cell in row] == [b"connected_cell", b"os_build"]
