"""C1 of docs/reference/conformance.md: what is refused, with which code and words."""

import pytest
from google.api_core import exceptions
from google.cloud.bigtable.data import (
    FailedMutationEntryError,
    MutationsExceptionGroup,
    ReadRowsQuery,
    RowMutationEntry,
    SetCell,
    row_filters,
)
from google.cloud.bigtable_admin_v2 import types as admin_types
from google.cloud.bigtable_v2 import types
from grpc import StatusCode
from harness.backups import Backups
from harness.patience import PATIENCE_SECONDS
from harness.rpc import ADMIN_SECONDS, INSTANCE, delete_row, fails_with, set_cell

KEY = b"k"
NOWHERE = f"{INSTANCE}/tables/nowhere"
CELL = set_cell("f", b"q", b"v", 1000)


def rule(family="f"):
    return types.ReadModifyWriteRule(
        family_name=family, column_qualifier=b"q", append_value=b"v"
    )


def modification(name, **change):
    return {"id": name, **change}


def aggregate(kind):
    int64 = {"int64_type": {"encoding": {"big_endian_bytes": {}}}}
    return admin_types.ColumnFamily(value_type={"aggregate_type": {"input_type": int64, kind: {}}})


# --- 18: where a mistake is ---

IN_MUTATION = "Error in field 'Mutation list' : Error in element #1 : "
BAD_FAMILY = "Error in field 'family_name' : Invalid id for collection columnFamilies : "


def in_sum(kind, value):
    return {
        "family_name": "s", "column_qualifier": {"raw_value": b"q"},
        "timestamp": {"raw_timestamp_micros": 1000}, "input": {kind: value},
    }  # fmt: skip


MISTAKES = {
    "a kind that is not added": (
        types.Mutation(add_to_cell=in_sum("bytes_value", b"8")),
        "Error in field 'input' : must use `int_value`",
    ),
    "a kind that is no state": (
        types.Mutation(merge_to_cell=in_sum("int_value", 8)),
        "Error in field 'input' : must use `bytes_value`",
    ),
    "a time of no kind": (
        types.Mutation(add_to_cell={**in_sum("int_value", 8), "timestamp": {}}),
        "Error in field 'timestamp' : must use `raw_timestamp_micros`",
    ),
    "a family that cannot be": (
        set_cell("f *(", b"q", b"v"), f"{BAD_FAMILY}Should match [-_.a-zA-Z0-9]+ but found 'f *('"
    ),
    "a family without a name": (
        set_cell("", b"q", b"v"), f"{BAD_FAMILY}Length should be between [1,64], but found 0"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("mutation", "what"), MISTAKES.values(), ids=MISTAKES)
def test_c1_18_mutations(rpc, make_table, mutation, what):
    table = make_table({"f": None})
    rpc.modify_families(table, modification("s", create=aggregate("sum")))

    def details(call, *arguments, **fields):
        with fails_with(StatusCode.INVALID_ARGUMENT) as failure:
            call(table, *arguments, **fields)
        return failure.error.details()

    wrong, right = [CELL, mutation], [CELL]
    assert details(rpc.mutate, KEY, *wrong) == IN_MUTATION + what
    entries = [(b"a", right), (b"b", right), (b"c", wrong)]
    in_entry = "Error in field 'Entry list' : Error in element #2 : "
    assert details(rpc.mutate_rows, entries) == in_entry + IN_MUTATION + what
    for branch in ("true", "false"):
        branches = {"true": right, "false": right, branch: wrong}
        in_branch = IN_MUTATION.replace("Mutation list", f"{branch} mutation list")
        assert details(rpc.check_and_mutate, KEY, **branches) == in_branch + what
    assert rpc.read(table) == []


def test_c1_18_families(rpc, table_name):
    changes = [modification("x", create={}), modification("y", create={"gc_rule": {"max_age": {}}})]
    with fails_with(
        StatusCode.INVALID_ARGUMENT,
        "Error in field 'Modifications list' : Error in element #1 : "
        "max_age must be at least one millisecond",
    ):
        rpc.modify_families(table_name, *changes)


@pytest.mark.parametrize(
    ("instance_id", "what"),
    [
        ("i" * 34, f"Length should be between [6,33], but found 34 '{'i' * 34}'"),
        ("Wandb1", "Should match [a-z][-a-z0-9]*[a-z0-9] but found 'Wandb1'"),
    ],
)
def test_c1_18_instances(admin, instance_id, what):
    words = f"Error in field 'instance_id' : Invalid id for collection instances : {what}"
    with pytest.raises(exceptions.InvalidArgument) as failure:
        admin.create_instance(instance_id)
    assert failure.value.message == words


# --- 1: what is not there ---

DATA_CALLS = {
    "ReadRows": lambda rpc: rpc.read(NOWHERE),
    "SampleRowKeys": lambda rpc: rpc.sample_row_keys(NOWHERE),
    "MutateRow": lambda rpc: rpc.mutate(NOWHERE, KEY, CELL),
    "MutateRows": lambda rpc: rpc.mutate_rows(NOWHERE, [(KEY, [CELL])]),
    "CheckAndMutateRow": lambda rpc: rpc.check_and_mutate(NOWHERE, KEY, true=[CELL]),
    "ReadModifyWriteRow": lambda rpc: rpc.read_modify_write(NOWHERE, KEY, rule()),
}
ADMIN_CALLS = {
    "GetTable": lambda rpc: rpc.get_table(NOWHERE),
    "ModifyColumnFamilies": lambda rpc: rpc.modify_families(NOWHERE, modification("f", create={})),
    "DropRowRange": lambda rpc: rpc.drop_row_range(NOWHERE, prefix=b"a"),
    "GenerateConsistencyToken": lambda rpc: rpc.admin.generate_consistency_token(
        admin_types.GenerateConsistencyTokenRequest(name=NOWHERE), timeout=ADMIN_SECONDS
    ),
}
CALLS = {**DATA_CALLS, **ADMIN_CALLS}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_c1_1_missing_table(rpc, call):
    with fails_with(StatusCode.NOT_FOUND, f"Not found: {NOWHERE}"):
        call(rpc)


def test_c1_1_missing_table_is_deleted(rpc):
    with fails_with(StatusCode.NOT_FOUND, f"Failed to read: {NOWHERE}"):
        rpc.delete_table(NOWHERE)


def test_c1_1_missing_table_in_the_client(client, table):
    """Neither client retries it."""
    with client.get_table("i", "nowhere") as nowhere:
        with pytest.raises(exceptions.NotFound):
            nowhere.read_row(KEY)
        with pytest.raises(exceptions.NotFound):
            nowhere.mutate_row(KEY, SetCell("f", b"q", b"v"))
    with pytest.raises(exceptions.NotFound):
        table.mutate_row(KEY, SetCell("no-family", b"q", b"v"))


NO_FAMILY = "Error while reading table '{}' : Requested column family not found"
COLUMN = {"qualifiers": [], "qualifier_prefixes": [b""]}


def family_filters(name):
    """What clients make of a family's name, wherever in a filter it stands."""
    literal = {"family_name_regex_filter": name}
    everything = {"pass_all_filter": True}
    return {
        "literal": literal,
        "chain": {"chain": {"filters": [everything, literal]}},
        "interleave": {"interleave": {"filters": [everything, literal]}},
        "condition": {"condition": {"predicate_filter": everything, "false_filter": literal}},
        "range": {"column_range_filter": {"family_name": name.replace("\\", "")}},
    }


@pytest.mark.parametrize("name", ["nope", "no\\-pe\\.x_1"], ids=["plain", "quoted"])
@pytest.mark.parametrize("where", family_filters(""))
def test_c1_19_unknown_family(rpc, table_name, name, where):
    """Before any row is read: the table has none."""
    with fails_with(StatusCode.NOT_FOUND, NO_FAMILY.format(table_name)):
        rpc.read(table_name, filter=family_filters(name)[where])


PATTERNS = ["^nope$", "^no pe$", "nope.*", "no.pe", "nope|none", "(nope)", "[n]ope", "\\Qnope\\E"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_c1_19_patterns_may_match_nothing(rpc, table_name, pattern):
    rpc.mutate(table_name, KEY, set_cell("f", b"q", b"v"))
    assert rpc.read(table_name, filter={"family_name_regex_filter": pattern}) == []


def test_c1_19_predicates_may_name_what_is_not_there(rpc, table_name):
    """Not known of production, so left alone."""
    rpc.mutate(table_name, KEY, set_cell("f", b"q", b"v"))
    named = types.RowFilter(family_name_regex_filter="nope")
    assert not rpc.check_and_mutate(
        table_name, KEY, named, true=[set_cell("f", b"q", b"x")], false=[set_cell("f", b"r", b"y")]
    )


def test_c1_19_families_of_a_view(rpc, admin):
    name = rpc.create_table("families-of-a-view", ["f", "g"])
    subset = {"row_prefixes": [b""], "family_subsets": {"f": COLUMN}}
    made = admin.tables.create_authorized_view(
        parent=name, authorized_view_id="v", authorized_view={"subset_view": subset}
    )
    view = made.result(PATIENCE_SECONDS).name
    for family in ("g", "nope"):
        for each in family_filters(family).values():
            with fails_with(StatusCode.PERMISSION_DENIED, f"Cannot read from {view} because"):
                rpc.read(view, filter=each)
    assert rpc.read(view, filter={"family_name_regex_filter": "f"}) == []
    assert rpc.read(view, filter={"family_name_regex_filter": "^g$"}) == []
    admin.tables.delete_authorized_view(name=view)
    rpc.delete_table(name)


# --- 2 and 3: making and deleting tables and families ---


def test_c1_2_table_exists(rpc, table_name):
    with fails_with(StatusCode.ALREADY_EXISTS):
        rpc.create_table(table_name.rsplit("/", 1)[-1])


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (modification("f", create={}), StatusCode.ALREADY_EXISTS),
        (modification("nope", update={}), StatusCode.NOT_FOUND),
        (modification("nope", drop=True), StatusCode.NOT_FOUND),
    ],
    ids=["create again", "update unknown", "drop unknown"],
)
def test_c1_2_families(rpc, table_name, change, code):
    with fails_with(code):
        rpc.modify_families(table_name, change)


def test_c1_3_protected_table(rpc, make_table):
    name = make_table(["f", "g"], deletion_protection=True)
    with fails_with(StatusCode.FAILED_PRECONDITION, "protected from deletion"):
        rpc.delete_table(name)
    with fails_with(StatusCode.FAILED_PRECONDITION, "protected from deletion"):
        rpc.modify_families(name, modification("g", drop=True))
    assert sorted(rpc.get_table(name).column_families) == ["f", "g"]
    unprotect = admin_types.UpdateTableRequest(
        table={"name": name, "deletion_protection": False},
        update_mask={"paths": ["deletion_protection"]},
    )
    rpc.admin.update_table(unprotect, timeout=ADMIN_SECONDS)
    rpc.delete_table(name)
    with fails_with(StatusCode.NOT_FOUND):
        rpc.get_table(name)


# --- 4: MutateRow and MutateRows ---


def test_c1_4_no_mutations(rpc, table_name):
    with fails_with(StatusCode.INVALID_ARGUMENT, "No mutations provided"):
        rpc.mutate(table_name, KEY)
    with fails_with(StatusCode.INVALID_ARGUMENT, "No mutations provided"):
        rpc.mutate_rows(table_name, [])
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.mutate_rows(table_name, [(b"a", [CELL]), (b"b", [])])
    assert rpc.read(table_name) == []


def test_c1_4_empty_key(rpc, table_name):
    with fails_with(StatusCode.INVALID_ARGUMENT, "Row keys must be non-empty"):
        rpc.mutate(table_name, b"", CELL)


def test_c1_4_unknown_family_fails_its_entry_alone(table):
    unknown = RowMutationEntry(b"a", SetCell("no-family", b"q", b"v"))
    with pytest.raises(MutationsExceptionGroup) as caught:
        table.bulk_mutate_rows([unknown, RowMutationEntry(b"b", SetCell("f", b"q", b"v"))])
    (failure,) = caught.value.exceptions
    assert isinstance(failure, FailedMutationEntryError)
    assert (failure.index, failure.entry) == (0, unknown)
    assert isinstance(failure.__cause__, exceptions.NotFound)
    assert not table.row_exists(b"a")
    assert table.row_exists(b"b")


# --- 5: CheckAndMutateRow ---


def test_c1_5_no_mutations(table):
    with pytest.raises(exceptions.InvalidArgument, match="No mutations provided"):
        table.check_and_mutate_row(
            KEY, None, true_case_mutations=None, false_case_mutations=None
        )


def test_c1_5_no_predicate_asks_for_any_cell(rpc, table_name):
    assert rpc.check_and_mutate(table_name, KEY, false=[CELL]) is False
    assert rpc.check_and_mutate(table_name, KEY, true=[delete_row()]) is True
    assert rpc.read(table_name) == []
    assert rpc.check_and_mutate(table_name, KEY, true=[CELL]) is False


def test_c1_5_predicate_matches_if_it_lets_a_cell_through(table):
    table.mutate_row(KEY, SetCell("f", b"q", b"v", 1000))
    through = row_filters.ValueRegexFilter(b"v")
    nothing = row_filters.BlockAllFilter(True)
    changes = {"true_case_mutations": SetCell("g", b"true", b"")}
    assert table.check_and_mutate_row(KEY, nothing, **changes) is False
    assert table.check_and_mutate_row(KEY, through, **changes) is True
    assert [cell.qualifier for cell in table.read_row(KEY)] == [b"q", b"true"]


def test_c1_5_the_empty_list_does_nothing(rpc, table_name):
    assert rpc.check_and_mutate(table_name, KEY, true=[CELL]) is False
    assert rpc.read(table_name) == []


# --- 6, 7: rows asked for ---


def test_c1_6_empty_key_is_asked_for(table):
    with pytest.raises(exceptions.InvalidArgument, match="Row keys must be non-empty"):
        table.row_exists(b"")
    with pytest.raises(exceptions.InvalidArgument, match="Row keys must be non-empty"):
        table.read_rows(ReadRowsQuery(row_keys=[b"a", b""]))


@pytest.fixture
def letters(rpc, table_name):
    rpc.mutate_rows(table_name, [(key, [CELL]) for key in (b"a", b"b", b"c")])
    return table_name


def keys(rpc, name, *ranges):
    return b"".join(key for key, _ in rpc.read(name, rows={"row_ranges": list(ranges)}))


@pytest.mark.parametrize("start", ["closed", "open"])
@pytest.mark.parametrize("end", ["closed", "open"])
def test_c1_7_start_behind_end(rpc, letters, start, end):
    words = f"Error in element #1: start_key_{start} must be less than end_key_{end}"
    inverted = {f"start_key_{start}": b"c", f"end_key_{end}": b"a"}
    with fails_with(StatusCode.INVALID_ARGUMENT, words):
        keys(rpc, letters, {"start_key_closed": b"a"}, inverted)


def test_c1_7_start_at_end(rpc, letters):
    at_b = {"start_key_closed": b"b", "end_key_closed": b"b"}
    assert keys(rpc, letters, at_b) == b"b"


@pytest.mark.parametrize("start, end", [("open", "closed"), ("closed", "open"), ("open", "open")])
def test_c1_7_start_at_end_that_is_not_in_it(rpc, letters, start, end):
    """As production answers `(b, b]`; the emulator finds nothing."""
    words = "Error in element #1: start_key must be less than end_key"
    at_b = {f"start_key_{start}": b"b", f"end_key_{end}": b"b"}
    with fails_with(StatusCode.INVALID_ARGUMENT, words):
        keys(rpc, letters, {"start_key_closed": b"a"}, at_b)


def test_c1_7_empty_bounds(rpc, letters):
    assert keys(rpc, letters, {"start_key_closed": b"", "end_key_open": b""}) == b"abc"
    assert keys(rpc, letters, {"start_key_open": b"", "end_key_open": b"c"}) == b"ab"
    assert keys(rpc, letters, {"start_key_closed": b"b", "end_key_open": b""}) == b"bc"
    assert keys(rpc, letters, {"end_key_closed": b""}) == b""


# --- 8: filters ---

PASS = {"pass_all_filter": True}
BAD_FILTERS = {
    "chain of none": ({"chain": {}}, "Chain must contain at least two RowFilters"),
    "chain of one": ({"chain": {"filters": [PASS]}}, "Chain must contain at least two RowFilters"),
    "interleave of none": ({"interleave": {}}, "Interleave must contain at least two RowFilters"),
    "interleave of one": (
        {"interleave": {"filters": [PASS]}}, "Interleave must contain at least two RowFilters"
    ),
    "pass_all false": ({"pass_all_filter": False}, "pass_all_filter must be true if set"),
    "block_all false": ({"block_all_filter": False}, "block_all_filter must be true if set"),
    "row limit 0": (
        {"cells_per_row_limit_filter": 0},
        "Error in field 'cells_per_row_limit_filter' : argument must be > 0",
    ),
    "row limit negative": (
        {"cells_per_row_limit_filter": -1},
        "Error in field 'cells_per_row_limit_filter' : argument must be > 0",
    ),
    "column limit 0": (
        {"cells_per_column_limit_filter": 0},
        "Error in field 'cells_per_column_limit_filter' : argument must be > 0",
    ),
    "negative offset": ({"cells_per_row_offset_filter": -1}, "cells_per_row_offset_filter"),
    "sample of nothing": (
        {"row_sample_filter": 0.0}, "row_sample_filter argument must be between 0.0 and 1.0"
    ),
    "sample of all": (
        {"row_sample_filter": 1.0}, "row_sample_filter argument must be between 0.0 and 1.0"
    ),
    "empty key regex": (
        {"row_key_regex_filter": b""},
        "Error in field 'row_key_regex_filter' : argument must not be empty",
    ),
    "bad key regex": ({"row_key_regex_filter": b"["}, "Error in field 'row_key_regex_filter' :"),
    "bad family regex": (
        {"family_name_regex_filter": "["}, "Error in field 'family_name_regex_filter' :"
    ),
    "bad qualifier regex": (
        {"column_qualifier_regex_filter": b"["}, "Error in field 'column_qualifier_regex_filter' :"
    ),
    "bad value regex": ({"value_regex_filter": b"["}, "Error in field 'value_regex_filter' :"),
    "bad label": (
        {"apply_label_transformer": "A B"},
        "apply_label_transformer must match RE2([a-z0-9\\-]+), but found A B",
    ),
    "long label": ({"apply_label_transformer": "x" * 16}, "apply_label_transformer"),
}  # fmt: skip


@pytest.mark.parametrize(("bad", "words"), BAD_FILTERS.values(), ids=BAD_FILTERS)
def test_c1_8_bad_filters(rpc, table_name, bad, words):
    """At the top, inside another filter, and as a predicate."""
    bad = types.RowFilter(bad)
    inner = types.RowFilter(chain={"filters": [PASS, bad]})
    for row_filter in (bad, inner):
        with fails_with(StatusCode.INVALID_ARGUMENT, words):
            rpc.read(table_name, filter=row_filter)
        with fails_with(StatusCode.INVALID_ARGUMENT, words):
            rpc.check_and_mutate(table_name, KEY, row_filter, true=[CELL])


def test_c1_8_an_offset_of_0_is_fine(rpc, letters):
    assert len(rpc.read(letters, filter={"cells_per_row_offset_filter": 0})) == 3


def test_c1_9_reversed_without_the_flag(rpc, letters):
    with fails_with(StatusCode.UNIMPLEMENTED, "Client doesn't support reverse scans yet"):
        rpc.read(letters, metadata=(), reversed=True)


# --- 10 to 15: administration ---


@pytest.mark.parametrize("mask", [[], ["no_such_field"], ["*"], ["name"]])
def test_c1_10_update_masks(rpc, table_name, mask):
    update = admin_types.UpdateTableRequest(
        table={"name": table_name, "deletion_protection": True}, update_mask={"paths": mask}
    )
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.admin.update_table(update, timeout=ADMIN_SECONDS)


def test_c1_10_aggregate_types_stay(rpc, table_name):
    rpc.modify_families(table_name, modification("sum", create=aggregate("sum")))
    for other in (aggregate("max_"), admin_types.ColumnFamily()):
        change = modification("sum", update=other, update_mask={"paths": ["value_type"]})
        words = "Immutable fields 'value_type.aggregate_type' cannot be updated"
        with fails_with(StatusCode.INVALID_ARGUMENT, words):
            rpc.modify_families(table_name, change)


def test_c1_11_app_profiles(admin, new_instance):
    update = {"app_profile": {"name": f"{new_instance()}/appProfiles/default"}}
    with pytest.raises(exceptions.InvalidArgument, match="A non-empty 'update_mask' must be"):
        admin.instances.update_app_profile(request=update)


def check_consistency(rpc, name, token):
    request = admin_types.CheckConsistencyRequest(name=name, consistency_token=token)
    return rpc.admin.check_consistency(request, timeout=ADMIN_SECONDS).consistent


def test_c1_12_consistency_tokens(rpc, table_name):
    request = admin_types.GenerateConsistencyTokenRequest(name=table_name)
    token = rpc.admin.generate_consistency_token(request, timeout=ADMIN_SECONDS).consistency_token
    assert check_consistency(rpc, table_name, token) is True
    for bad in ("", "dummy", token[::-1]):
        with fails_with(StatusCode.INVALID_ARGUMENT):
            check_consistency(rpc, table_name, bad)


def test_c1_13_instances(admin, new_instance):
    instance = new_instance()
    admin.create_table(instance, "t", deletion_protection=True)
    with pytest.raises(exceptions.FailedPrecondition):
        admin.instances.delete_instance(name=instance)


def test_c1_13_instances_with_backups(admin, new_instance):
    backups = Backups(admin, new_instance())
    admin.create_table(backups.instance, "t")
    backups.create("b", "t")
    with pytest.raises(exceptions.FailedPrecondition, match="backups"):
        admin.instances.delete_instance(name=backups.instance)
    backups.delete("b")
    admin.instances.delete_instance(name=backups.instance)


def test_c1_14_drop_row_range(rpc, letters):
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.drop_row_range(letters)
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.drop_row_range(letters, prefix=b"")
    rpc.drop_row_range(letters, prefix=b"no row has it")
    rpc.drop_row_range(letters, everything=False)
    assert keys(rpc, letters, {}) == b"abc"


def test_c1_14_drop_row_range_wants_two_minutes(rpc, letters):
    request = admin_types.DropRowRangeRequest(name=letters, row_key_prefix=b"a")
    with fails_with(StatusCode.FAILED_PRECONDITION):
        rpc.admin.drop_row_range(request, timeout=110)
    assert keys(rpc, letters, {}) == b"abc"


def test_c1_15_views(rpc, admin, letters):
    subset = {"row_prefixes": [b"a"], "family_subsets": {"f": {"qualifiers": [b"q"]}}}
    view = admin.tables.create_authorized_view(
        parent=letters, authorized_view_id="v", authorized_view={"subset_view": subset}
    ).result().name  # fmt: skip
    assert keys(rpc, view, {}) == b"a"
    words = (
        f"Cannot mutate from {view} because the mutation contains cells outside the Authorized "
        "View."
    )
    for key, qualifier in ((b"b", b"q"), (b"a", b"other")):
        with fails_with(StatusCode.PERMISSION_DENIED, words):
            rpc.mutate(view, key, set_cell("f", qualifier, b"v"))
    assert rpc.mutate_rows(view, [(b"b", [CELL]), (b"a", [CELL])]) == [7, 0]
    assert [key for key, _ in rpc.sample_row_keys(view)] == [b"b"]


# --- 16: types of families ---


def add(family, timestamp=1000):
    return types.Mutation(
        add_to_cell={
            "family_name": family,
            "column_qualifier": {"raw_value": b"q"},
            "timestamp": {"raw_timestamp_micros": timestamp},
            "input": {"int_value": 1},
        }
    )


def test_c1_16_types(rpc, table_name):
    rpc.modify_families(table_name, modification("sum", create=aggregate("sum")))
    words = f"Error while mutating the row 'k' ({table_name}) : Column family type mismatch"
    for misfit in (add("f"), set_cell("sum", b"q", b"12345678", 1000)):
        with fails_with(StatusCode.INVALID_ARGUMENT, words):
            rpc.mutate(table_name, KEY, misfit)
    rpc.mutate(table_name, KEY, add("sum"))
    (cell,) = rpc.read_row(table_name, KEY)
    assert cell.value == (1).to_bytes(8, "big")


def test_c1_16_server_time_is_not_for_adding(rpc, table_name):
    rpc.modify_families(table_name, modification("sum", create=aggregate("sum")))
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.mutate(table_name, KEY, add("sum", timestamp=-1))
    rpc.mutate(table_name, KEY, add("sum", timestamp=0))
