"""The mutation batchers of Google's Python clients, by which applications bring in many rows: all
arrives, whatever they flush by, and what is refused is told of its row alone."""

import pytest
from google.cloud.bigtable import Client
from google.cloud.bigtable.data import (
    BigtableDataClient,
    MutationsExceptionGroup,
    RowMutationEntry,
    SetCell,
)

ROWS = 6000


def id_of(table):
    return table.split("/")[-1]


def entries(count, family="f"):
    for number in range(count):
        value = b"%d" % number * (number % 50)
        yield RowMutationEntry(b"k%06d" % number, [SetCell(family, b"q", value, 1000)])


def check(rpc, table, count):
    assert [(key, cells[0].value) for key, cells in rpc.read(table)] == [
        (b"k%06d" % number, b"%d" % number * (number % 50)) for number in range(count)
    ]


@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"flush_limit_mutation_count": 7, "flow_control_max_mutation_count": 50},
        {"flush_limit_bytes": 20_000, "flush_interval": 0.05},
    ],
)
def test_the_data_clients(emulator_host, rpc, make_table, limits):
    table = make_table()
    with (
        BigtableDataClient(project="p") as client,
        client.get_table("i", id_of(table)) as opened,
        opened.mutations_batcher(**limits) as batcher,
    ):
        for entry in entries(ROWS):
            batcher.append(entry)
    check(rpc, table, ROWS)


def test_one_that_is_refused_is_told_alone(emulator_host, rpc, make_table):
    table = make_table()
    wrong = RowMutationEntry(b"wrong", [SetCell("no-family", b"q", b"v", 1000)])
    with (
        BigtableDataClient(project="p") as client,
        client.get_table("i", id_of(table)) as opened,
    ):
        with pytest.raises(MutationsExceptionGroup) as raised:
            with opened.mutations_batcher(batch_retryable_errors=()) as batcher:
                for entry in [*entries(50), wrong]:
                    batcher.append(entry)
    (failure,) = raised.value.exceptions
    assert failure.entry is wrong
    check(rpc, table, 50)


def test_the_older_clients(emulator_host, rpc, make_table):
    table = make_table()
    client = Client(project="p", admin=True)
    opened = client.instance("i").table(id_of(table))
    with opened.mutations_batcher(flush_count=100) as batcher:
        for entry in entries(ROWS):
            row = opened.direct_row(entry.row_key)
            row.set_cell("f", b"q", entry.mutations[0].new_value)
            batcher.mutate(row)
    client.close()
    check(rpc, table, ROWS)
