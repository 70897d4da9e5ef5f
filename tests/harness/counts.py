"""Tables with families of hllpp_unique_count, and what is written to them."""

from google.cloud.bigtable_admin_v2 import types as admin_types
from google.cloud.bigtable_v2 import types

from harness.rpc import ADMIN_SECONDS, INSTANCE

INPUT_TYPES = {
    "ints": {"int64_type": {"encoding": {"big_endian_bytes": {}}}},
    "strings": {"string_type": {"encoding": {"utf8_bytes": {}}}},
    "bytes": {"bytes_type": {"encoding": {"raw": {}}}},
    "raw": None,
}


def count_family(input_type):
    aggregate = {"hllpp_unique_count": {}}
    if input_type is not None:
        aggregate["input_type"] = input_type
    return admin_types.ColumnFamily(value_type={"aggregate_type": aggregate})


def create_counts(rpc, table_id):
    """A table with a family for each type of input, a sum, and the plain family f."""
    families = {name: count_family(input_type) for name, input_type in INPUT_TYPES.items()}
    families["f"] = admin_types.ColumnFamily()
    families["sum"] = admin_types.ColumnFamily(value_type={"aggregate_type": {"sum": {}}})
    request = admin_types.CreateTableRequest(
        parent=INSTANCE, table_id=table_id, table={"column_families": families}
    )
    return rpc.admin.create_table(request, timeout=ADMIN_SECONDS).name


def add(family, value, qualifier=b"q"):
    """Adds a number, a string, bytes, or what a Value says."""
    kinds = {int: "int_value", str: "string_value", bytes: "bytes_value"}
    return types.Mutation(
        add_to_cell={
            "family_name": family,
            "column_qualifier": {"raw_value": qualifier},
            "timestamp": {"raw_timestamp_micros": 1000},
            "input": value if isinstance(value, dict) else {kinds[type(value)]: value},
        }
    )


def merge(family, state):
    return types.Mutation(
        merge_to_cell={
            "family_name": family,
            "column_qualifier": {"raw_value": b"q"},
            "timestamp": {"raw_timestamp_micros": 1000},
            "input": {} if state is None else {"bytes_value": state},
        }
    )


def state_in(rpc, table, key, family, **query):
    """What the family's only cell holds."""
    (cell,) = [cell for cell in rpc.read_row(table, key, **query) if cell.family == family]
    return cell.value
