"""Authorized views: who reads and writes through one has its rows and its columns, and for the rest
it is as if it were not there. That a random request through a random view does what it would do
to a copy of the table's part is shown by tests/model.

What production does is in the tests of Google's clients: a read outside the view finds nothing, a
write outside is refused in these words, samples end where the view's rows end.
"""

import pytest
from google.api_core import exceptions
from google.cloud.bigtable.data import (
    DeleteAllFromFamily,
    DeleteAllFromRow,
    DeleteRangeFromColumn,
    ReadRowsQuery,
    RowMutationEntry,
    SetCell,
)
from google.cloud.bigtable.data.exceptions import MutationsExceptionGroup
from google.cloud.bigtable.data.read_modify_write_rules import (
    AppendValueRule,
    IncrementRule,
)
from google.cloud.bigtable_admin_v2 import types as admin_types
from google.cloud.bigtable_v2 import types
from grpc import StatusCode
from harness.admin import mask
from harness.patience import PATIENCE_SECONDS
from harness.rpc import ALL_FEATURES, fails_with, set_cell

EVERYTHING = {"qualifier_prefixes": [b""]}
# Of the rows "a…" and "user#…": the columns f:name, f:tel…, and the whole family g.
SUBSET = {
    "row_prefixes": [b"a", b"user#"],
    "family_subsets": {
        "f": {"qualifiers": [b"name"], "qualifier_prefixes": [b"tel"]},
        "g": EVERYTHING,
    },
}
INSIDE = ["f:name", "f:tel", "f:tel2", "g:", "g:x"]
OUTSIDE = ["f:nam", "f:name2", "f:te", "h:name"]
KEYS = [b"a", b"ab", b"b", b"user", b"user#1", b"user#2", b"user$"]
VISIBLE_KEYS = [b"a", b"ab", b"user#1", b"user#2"]


def all_rows(**families):
    return {"row_prefixes": [b""], "family_subsets": families}


def refusal(view):
    """Google's Node client compares the whole of it."""
    return (
        f"Cannot mutate from {view} because the mutation contains cells outside the Authorized "
        "View."
    )


def column_of(text):
    family, qualifier = text.split(":")
    return family, qualifier.encode()


def cell(text, value=b"v", timestamp=1000):
    return set_cell(*column_of(text), value, timestamp)


def create_view(admin, table, view_id="v", subset=None, **fields):
    return admin.tables.create_authorized_view(
        parent=table, authorized_view_id=view_id,
        authorized_view={"subset_view": SUBSET if subset is None else subset, **fields},
    ).result().name  # fmt: skip


def update_view(admin, view, subset):
    admin.tables.update_authorized_view(
        authorized_view={"name": view, "subset_view": subset}, update_mask=mask("subset_view")
    ).result()


def names(cells):
    return [f"{each.family}:{each.qualifier.decode()}" for each in cells]


@pytest.fixture
def parent(rpc, make_table):
    """A table with every column in every row."""
    table = make_table(["f", "g", "h"])
    every_cell = [cell(each) for each in [*INSIDE, *OUTSIDE]]
    rpc.mutate_rows(table, [(key, every_cell) for key in KEYS])
    return table


@pytest.fixture
def view(admin, parent):
    return create_view(admin, parent)


@pytest.fixture
def opened(client, view):
    """The view, in Google's data client."""
    parts = view.split("/")
    with client.get_authorized_view(parts[3], parts[5], parts[7]) as authorized_view:
        yield authorized_view


# --- reads ---


def test_reads_show_what_the_view_has(opened, rpc, view):
    rows = opened.read_rows(ReadRowsQuery())
    assert [row.row_key for row in rows] == VISIBLE_KEYS
    assert all(names(row.cells) == INSIDE for row in rows)
    assert names(opened.read_row(b"user#1").cells) == INSIDE
    assert opened.read_row(b"b") is None
    assert opened.row_exists(b"ab") and not opened.row_exists(b"user")
    assert [key for key, _ in rpc.read(view, reversed=True)] == VISIBLE_KEYS[::-1]


@pytest.mark.parametrize(
    "row_range, expected",
    [
        ({}, VISIBLE_KEYS),
        ({"start_key_open": b"a", "end_key_closed": b"user#1"}, [b"ab", b"user#1"]),
        ({"start_key_closed": b"aa", "end_key_open": b"user#"}, [b"ab"]),
        ({"start_key_closed": b"b", "end_key_closed": b"user"}, []),
        ({"end_key_open": b"ab"}, [b"a"]),
        ({"start_key_closed": b"user#2"}, [b"user#2"]),
    ],
)
def test_ranges_are_met_with_the_views(rpc, view, row_range, expected):
    rows = {"row_ranges": [row_range], "row_keys": [b"b", b"user"]}
    assert [key for key, _ in rpc.read(view, rows=rows)] == expected


def chain(*filters):
    return types.RowFilter(chain={"filters": [types.RowFilter(each) for each in filters]})


PASS_ALL = {"pass_all_filter": True}


def test_limits_count_what_is_visible(rpc, parent, view):
    # The first cell of the row that is visible, not the first one if it is visible.
    limit = {"cells_per_row_limit_filter": 1}
    for each in (types.RowFilter(limit), chain(PASS_ALL, limit)):
        found = rpc.read(view, filter=each)
        assert [names(cells) for _, cells in found] == [INSIDE[:1]] * len(VISIBLE_KEYS)
    # Of rows: those without a visible cell do not count.
    rpc.mutate(parent, b"aa", cell("h:name"))
    assert [key for key, _ in rpc.read(view, rows_limit=2)] == VISIBLE_KEYS[:2]
    offset = types.RowFilter(cells_per_row_offset_filter=len(INSIDE) - 1)
    assert [names(cells) for _, cells in rpc.read(view, filter=offset)] == [INSIDE[-1:]] * 4


def test_a_sink_shows_no_more_than_there_is(rpc, view):
    found = rpc.read(view, filter=chain({"sink": True}, PASS_ALL))
    assert [key for key, _ in found] == VISIBLE_KEYS
    assert all(names(cells) == INSIDE for _, cells in found)


def test_versions_are_those_of_visible_columns(rpc, parent, view):
    rpc.mutate(parent, b"a", cell("f:name", b"new", 2000), cell("f:name2", b"new", 2000))
    newest = types.RowFilter(cells_per_column_limit_filter=1)
    cells = rpc.read_row(view, b"a", filter=newest)
    assert names(cells) == INSIDE and cells[0].value == b"new"


def test_statistics_count_what_is_visible(rpc, parent, view):
    rpc.mutate(parent, b"aa", cell("h:name"))
    full = types.ReadRowsRequest.RequestStatsView.REQUEST_STATS_FULL
    *_, last = rpc.read_stream(view, request_stats_view=full)
    counts = last.request_stats.full_read_stats_view.read_iteration_stats
    visible = len(VISIBLE_KEYS) * len(INSIDE)
    assert (counts.rows_seen_count, counts.cells_seen_count) == (len(VISIBLE_KEYS), visible)
    assert (counts.rows_returned_count, counts.cells_returned_count) == (
        counts.rows_seen_count, counts.cells_seen_count,
    )  # fmt: skip


def test_progress_names_no_row_that_is_not_visible(rpc, admin, make_table):
    """Of 3,000 rows without a visible column only those count that pass by before the first."""
    table = make_table()
    view = create_view(admin, table, subset=all_rows(g=EVERYTHING))
    rpc.mutate_rows(table, [(b"%05d" % i, [cell("f:q")]) for i in range(3000)])
    nothing = types.RowFilter(value_regex_filter=b"nothing")
    told = [each.last_scanned_row_key for each in rpc.read_stream(table, filter=nothing)]
    assert told and all(told)  # or the next line says nothing
    assert not list(rpc.read_stream(view, filter=nothing))


def test_a_wide_row(rpc, admin, table_name):
    """One that is spread over records of its own, of which the view has four columns."""
    wanted = [b"000000", b"000777", b"019990", b"019999"]
    prefixes = [wanted[0], wanted[1]]
    columns = {"qualifiers": wanted[2:] + [b"none"], "qualifier_prefixes": prefixes}
    view = create_view(admin, table_name, subset=all_rows(f=columns))
    for start in range(0, 20000, 5000):
        cells = [set_cell("f", b"%06d" % i, b"v" * 100, 1000) for i in range(start, start + 5000)]
        rpc.mutate(table_name, b"k", *cells)
    assert [each.qualifier for each in rpc.read_row(view, b"k")] == wanted
    rpc.mutate(view, b"k", cell("f:000777", b"new", 2000))
    cells = rpc.read_row(view, b"k", filter=types.RowFilter(cells_per_column_limit_filter=1))
    assert [(each.qualifier, each.value[:3]) for each in cells] == list(
        zip(wanted, [b"vvv", b"new", b"vvv", b"vvv"])
    )


@pytest.mark.parametrize(
    "subset",
    [
        {},
        all_rows(),
        {"family_subsets": {"f": EVERYTHING}},
        all_rows(f={}),
        all_rows(unknown=EVERYTHING),
    ],
    ids=str,
)
def test_what_is_not_named_is_not_there(rpc, admin, parent, subset):
    view = create_view(admin, parent, subset=subset)
    assert not rpc.read(view)
    with fails_with(StatusCode.PERMISSION_DENIED, refusal(view)):
        rpc.mutate(view, b"a", cell("f:name"))


def test_everything(rpc, admin, parent):
    view = create_view(admin, parent, subset=all_rows(f=EVERYTHING, g=EVERYTHING, h=EVERYTHING))
    assert rpc.read(view) == rpc.read(parent)
    assert rpc.sample_row_keys(view) == rpc.sample_row_keys(parent)


# --- samples ---


def sampled(rpc, target, **fields):
    return [key for key, _ in rpc.sample_row_keys(target, **fields)]


SPLITS = [b"apple", b"food", b"fool", b"good"]


@pytest.mark.parametrize(
    "prefixes, expected",
    [
        ([b"foo"], [b"food", b"fool", b"fop"]),
        ([b"a", b"g"], [b"apple", b"b", b"good", b"h"]),
        ([b"a", b"b"], [b"apple", b"c"]),
        ([b"apple"], [b"applf"]),
        ([b"food"], [b"fooe"]),
        ([b"z", b"x"], [b"y", b"{"]),
        ([b"good", b"\xff"], [b"gooe", b""]),
        ([b""], [*SPLITS, b""]),
        ([], []),
    ],
)
def test_samples_lie_in_the_views_rows(rpc, admin, make_table, prefixes, expected):
    """The first is a test of Google's Java client."""
    view = create_view(admin, make_table(splits=SPLITS), subset={"row_prefixes": prefixes})
    assert sampled(rpc, view) == expected


@pytest.mark.parametrize(
    "row_range, expected",
    [
        ({"end_key_open": b"foolish"}, [b"food", b"fool", b"foolish"]),
        ({"start_key_closed": b"food", "end_key_closed": b"fool"}, [b"fool"]),
        ({"start_key_open": b"fop"}, []),
        ({"end_key_closed": b"foo"}, [b"foo"]),
    ],
)
def test_samples_of_a_range(rpc, admin, make_table, row_range, expected):
    view = create_view(admin, make_table(splits=SPLITS), subset={"row_prefixes": [b"foo"]})
    assert sampled(rpc, view, row_range=row_range) == expected


def test_samples_through_the_client(opened):
    assert [key for key, _ in opened.sample_row_keys()] == [b"b", b"user$"]


# --- writes ---


def test_writes_in_the_view(opened, rpc, parent):
    opened.mutate_row(b"a-new", [SetCell("f", "tel9", "1"), SetCell("g", "", "2")])
    assert names(rpc.read_row(parent, b"a-new")) == ["f:tel9", "g:"]
    opened.mutate_row(b"a", [DeleteRangeFromColumn("f", b"name"), DeleteAllFromFamily("g")])
    assert names(rpc.read_row(parent, b"a")) == [
        "f:nam", "f:name2", "f:te", "f:tel", "f:tel2", "h:name",
    ]  # fmt: skip


WRITES_OUTSIDE = [
    (b"b", SetCell("f", "name", "v")),
    (b"user", DeleteAllFromFamily("g")),
    *((b"a", SetCell(*column_of(each), b"v")) for each in OUTSIDE),
    *((b"a", DeleteRangeFromColumn(*column_of(each))) for each in OUTSIDE),
    (b"a", SetCell("nowhere", b"q", b"v")),
    (b"a", DeleteAllFromFamily("f")),
    (b"a", DeleteAllFromFamily("h")),
    (b"a", DeleteAllFromRow()),
]


@pytest.mark.parametrize("key, mutation", WRITES_OUTSIDE, ids=range(len(WRITES_OUTSIDE)))
def test_writes_outside_the_view_are_refused(opened, rpc, parent, view, key, mutation):
    before = rpc.read(parent)
    with pytest.raises(exceptions.PermissionDenied) as refused:
        opened.mutate_row(key, [SetCell("f", "name", "all or none"), mutation])
    assert refused.value.message == refusal(view)
    assert rpc.read(parent) == before


def test_a_row_is_deleted_by_who_has_all_of_it(rpc, admin, parent):
    whole = dict.fromkeys(["f", "g"], EVERYTHING)
    view = create_view(admin, parent, subset={"row_prefixes": [b"a"], "family_subsets": whole})
    delete = types.Mutation(delete_from_row={})
    with fails_with(StatusCode.PERMISSION_DENIED, refusal(view)):
        rpc.mutate(view, b"a", delete)
    update_view(admin, view, {"row_prefixes": [b"a"], "family_subsets": {**whole, "h": EVERYTHING}})
    rpc.mutate(view, b"a", delete)
    assert b"a" not in dict(rpc.read(parent))
    with fails_with(StatusCode.PERMISSION_DENIED, refusal(view)):
        rpc.mutate(view, b"b", delete)


def test_batches_are_refused_by_the_entry(opened, rpc, parent, view):
    entries = [
        RowMutationEntry(b"ab", [SetCell("f", "name", "new")]),
        RowMutationEntry(b"ab", [SetCell("f", "name2", "new")]),
        RowMutationEntry(b"b", [SetCell("f", "name", "new")]),
    ]
    with pytest.raises(MutationsExceptionGroup) as refused:
        opened.bulk_mutate_rows(entries)
    causes = {each.index: each.__cause__ for each in refused.value.exceptions}
    assert sorted(causes) == [1, 2]
    for cause in causes.values():
        assert isinstance(cause, exceptions.PermissionDenied) and cause.message == refusal(view)
    assert [each.value for each in rpc.read_row(parent, b"ab")[:3]] == [b"v", b"new", b"v"]


def add_to(family, kind="int_value"):
    return types.Mutation(
        add_to_cell={
            "family_name": family,
            "column_qualifier": {"raw_value": b"q"},
            "timestamp": {"raw_timestamp_micros": 0},
            "input": {kind: 1 if kind == "int_value" else b"1"},
        }
    )


@pytest.fixture
def sums(rpc, make_table):
    """A table with two families of sums, beside f."""
    kind = admin_types.Type(aggregate_type={"input_type": {"int64_type": {}}, "sum": {}})
    family = admin_types.ColumnFamily(value_type=kind)
    return make_table((), column_families={"mine": family, "theirs": family, "f": {}})


def test_additions(rpc, admin, sums):
    subset = all_rows(mine={"qualifiers": [b"q"]}, f=EVERYTHING)
    view = create_view(admin, sums, subset=subset)
    rpc.mutate(view, b"k", add_to("mine"))
    for mutation in (add_to("theirs"), add_to("theirs", "raw_value")):
        with fails_with(StatusCode.PERMISSION_DENIED, refusal(view)):
            rpc.mutate(view, b"k", mutation)
    # What is wrong with an entry outside fails no other: it would tell the kind of a hidden family.
    denied = StatusCode.PERMISSION_DENIED.value[0]
    good, misfit = (b"1", [add_to("mine")]), (b"2", [cell("theirs:q")])
    wrong_kind = (b"3", [add_to("theirs", "raw_value")])
    assert rpc.mutate_rows(view, [good, misfit, wrong_kind]) == [0, denied, denied]
    # One of his own does, as without a view; what is outside still is.
    invalid = StatusCode.INVALID_ARGUMENT.value[0]
    own = (b"4", [cell("mine:q")])
    assert rpc.mutate_rows(view, [good, misfit, own]) == [invalid, denied, invalid]


def test_tokens_count_once_through_view_and_table(rpc, admin, sums):
    view = create_view(admin, sums, subset=all_rows(mine=EVERYTHING))
    token = {"idempotency": {"token": b"once-and-for-all"}}
    with fails_with(StatusCode.PERMISSION_DENIED):  # claims nothing
        rpc.mutate(view, b"k", add_to("theirs"), **token)
    for target in (view, sums, view):
        rpc.mutate(target, b"k", add_to("mine"), **token)
    (total,) = rpc.read_row(sums, b"k")
    assert int.from_bytes(total.value, "big") == 1


# --- read, then write ---


def test_predicates_see_what_the_view_has(opened, rpc, parent):
    rpc.mutate(parent, b"a-hidden", cell("h:name"))
    seen = SetCell("f", "tel", "some")
    unseen = SetCell("f", "tel", "none")
    assert not opened.check_and_mutate_row(
        b"a-hidden", None, true_case_mutations=seen, false_case_mutations=unseen
    )
    assert names(rpc.read_row(parent, b"a-hidden")) == ["f:tel", "h:name"]
    assert opened.check_and_mutate_row(
        b"a-hidden", None, true_case_mutations=seen, false_case_mutations=unseen
    )
    more_than_visible = types.RowFilter(cells_per_row_offset_filter=len(INSIDE))
    visible = types.RowFilter(cells_per_row_offset_filter=len(INSIDE) - 1)
    view = opened.authorized_view_name
    assert not rpc.check_and_mutate(view, b"ab", more_than_visible, [cell("g:y")])
    assert rpc.check_and_mutate(view, b"ab", visible, [cell("g:y")])


def test_either_branch_must_be_in_the_view(rpc, parent, view):
    """As a test of Google's Java client has it: also the branch that is not going to be taken."""
    before = rpc.read(parent)
    inside, outside = [cell("f:tel", b"new")], [cell("h:name", b"new")]
    for branches in ({"true": outside}, {"false": outside}, {"true": outside, "false": inside}):
        with fails_with(StatusCode.PERMISSION_DENIED, refusal(view)):
            rpc.check_and_mutate(view, b"a", **branches)
    with fails_with(StatusCode.PERMISSION_DENIED, refusal(view)):
        rpc.check_and_mutate(view, b"b", true=inside)
    assert rpc.read(parent) == before


def test_rules(opened, rpc, parent, view):
    row = opened.read_modify_write_row(
        b"a", [AppendValueRule("f", "name", "!"), IncrementRule("g", "n", 5)]
    )
    assert [each.value for each in row.cells] == [b"v!", (5).to_bytes(8, "big")]
    before = rpc.read(parent)
    for key, rule in (
        (b"b", AppendValueRule("f", "name", "!")),
        (b"a", AppendValueRule("f", "name2", "!")),
        (b"a", IncrementRule("nowhere", "q", 1)),
    ):
        with pytest.raises(exceptions.PermissionDenied) as refused:
            opened.read_modify_write_row(key, [AppendValueRule("f", "name", "!"), rule])
        assert refused.value.message == refusal(view)
    assert rpc.read(parent) == before


# --- what a request names ---


def test_exactly_one_target(rpc, parent, view):
    both = {"table_name": parent, "authorized_view_name": view}
    for request, method in (
        (types.MutateRowRequest(row_key=b"a", mutations=[cell("f:name")], **both), "mutate_row"),
        (types.ReadRowsRequest(**both), "read_rows"),
        (types.ReadRowsRequest(), "read_rows"),
        (types.SampleRowKeysRequest(**both), "sample_row_keys"),
    ):
        with fails_with(StatusCode.INVALID_ARGUMENT):
            answer = getattr(rpc.data, method)(request, timeout=PATIENCE_SECONDS)
            list(answer)


def test_names_of_views(rpc, parent, view):
    for bad in (view + "/x", f"{parent}/authorizedViews/", view.replace("tables", "clusters")):
        with fails_with(StatusCode.INVALID_ARGUMENT, "Invalid Authorized view name"):
            rpc.read(bad)
    for missing in (view + "2", view.replace("/authorized", "2/authorized")):
        with fails_with(StatusCode.NOT_FOUND, missing):
            rpc.read(missing)


@pytest.mark.parametrize("key", ["table_name", "authorized_view_name", "name"])
def test_routing_headers(rpc, parent, view, key):
    """Google's clients give the table's name, with a view's request as with the table's."""
    for name in (parent, view):
        assert rpc.read(view, [("x-goog-request-params", f"{key}={name}"), *ALL_FEATURES])
    for name in (parent + "2", view + "2"):
        with fails_with(StatusCode.INVALID_ARGUMENT, "routing header"):
            rpc.read(view, [("x-goog-request-params", f"{key}={name}"), *ALL_FEATURES])


# --- change and end ---


def test_a_changed_view_holds_from_the_next_call_on(rpc, admin, parent, view):
    assert len(rpc.read(view)) == 4
    update_view(admin, view, {"row_prefixes": [b"b"], "family_subsets": {"h": EVERYTHING}})
    assert [(key, names(cells)) for key, cells in rpc.read(view)] == [(b"b", ["h:name"])]
    rpc.mutate(view, b"b", cell("h:name"))
    with fails_with(StatusCode.PERMISSION_DENIED):
        rpc.mutate(view, b"a", cell("f:name"))


@pytest.mark.parametrize("end", ["update", "delete"])
def test_a_scan_ends_with_the_view_with_which_it_began(rpc, admin, table_name, end):
    rows = 400
    subset = {"row_prefixes": [b"a"], "family_subsets": {"f": EVERYTHING}}
    view = create_view(admin, table_name, subset=subset)
    rpc.mutate_rows(table_name, [(b"a%03d" % i, [cell("f:q", b"v" * 20000)]) for i in range(rows)])
    stream = rpc.read_stream(view)
    first = next(stream)  # the rest of 8 MB waits for us to read it
    if end == "update":
        update_view(admin, view, {"row_prefixes": [b"b"]})
    else:
        admin.tables.delete_authorized_view(name=view)
    responses = [first, *stream]
    assert sum(chunk.commit_row for each in responses for chunk in each.chunks) == rows
    if end == "update":
        assert not rpc.read(view)
    else:
        with fails_with(StatusCode.NOT_FOUND):
            rpc.read(view)


def test_a_view_goes_with_its_table(rpc, admin, make_table):
    table = make_table()
    view = create_view(admin, table)
    assert rpc.read(view) == []
    rpc.delete_table(table)
    with fails_with(StatusCode.NOT_FOUND):
        rpc.read(view)


def test_a_view_outlives_a_crash(fresh_server, connect, administer):
    server = fresh_server()
    rpc, admin = connect(server.host), administer(server.host)
    table = rpc.create_table("t", ["f", "g", "h"])
    view = create_view(admin, table)
    rpc.mutate(table, b"a", *map(cell, [*INSIDE, *OUTSIDE]))
    server.kill()
    server.start()
    assert names(connect(server.host).read_row(view, b"a")) == INSIDE


def test_rows_are_not_dropped_through_a_view(rpc, view):
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.drop_row_range(view, prefix=b"a")


# --- the view itself ---


def test_a_view_has_at_most_a_hundred_parameters(admin, parent):
    """As production documents it."""
    def subset(count):
        prefixes = [b"%d" % i for i in range(count - 3)]
        columns = {"qualifiers": [b"a"], "qualifier_prefixes": [b"b", b"c"]}
        return {"row_prefixes": prefixes, "family_subsets": {"f": columns}}

    view = create_view(admin, parent, subset=subset(100))
    with pytest.raises(exceptions.InvalidArgument, match="at most 100"):
        create_view(admin, parent, "w", subset=subset(101))
    with pytest.raises(exceptions.InvalidArgument, match="at most 100"):
        update_view(admin, view, subset(101))
