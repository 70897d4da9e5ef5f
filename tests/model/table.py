"""A Bigtable table: rows as dicts, and every call of the data API as a method.

A row is {(family, qualifier): {timestamp: value}}. Methods take the API's messages. What the API
refuses raises Refused, with all the reasons there are: which of them a server finds first is open.

The time of the server (`now`) is an argument: whoever compares knows it only afterwards, from what
the server did.
"""

import dataclasses

from filters import Filter, bounds, faults, named_families, within
from harness.rpc import Cell

OK, INVALID_ARGUMENT, NOT_FOUND, FAILED_PRECONDITION = 0, 3, 5, 9
SERVER_TIME = -1
LATEST = (1 << 63) - 2  # ends are exclusive: no range could hold a later one
LONGEST_KEY = 4096
LONGEST_QUALIFIER = 16384
MISMATCH = "Column family type mismatch"
NO_MUTATIONS = "No mutations provided"
NO_KEY = "Row keys must be non-empty"


class Refused(Exception):
    """`reasons`: (code, text) pairs, of which the answer must be one; it may say more than text."""

    def __init__(self, reasons):
        super().__init__(reasons)
        self.reasons = list(reasons)

    def __repr__(self):
        return f"one of {self.reasons}"


def refuse_if(reasons):
    reasons = list(reasons)
    if reasons:
        raise Refused(reasons)


@dataclasses.dataclass
class Family:
    gc: object = None  # a GcRule, or None
    aggregate: str = None  # "sum", "min", "max"


def signed(value):
    return int.from_bytes(value, "big", signed=True)


def big_endian(number):
    """As 8 bytes; sums wrap."""
    return (number % (1 << 64)).to_bytes(8, "big")


COMBINE = {"sum": lambda a, b: a + b, "min": min, "max": max}


class Table:
    def __init__(self, name, families, step=1000):
        """`families`: {name: Family}. `step`: the timestamps' granularity in microseconds."""
        self.name = name
        self.families = families
        self.step = step
        self.rows = {}

    # --- reading ---

    def visible(self, row, now):
        """What the garbage-collection rules leave of a row."""
        kept = {}
        for (family, qualifier), cells in row.items():
            rule = self.families[family].gc
            newest_first = sorted(cells, reverse=True)
            timestamps = [
                timestamp
                for index, timestamp in enumerate(newest_first)
                if rule is None or not is_condemned(rule, index, timestamp, now)
            ]
            if timestamps:
                kept[family, qualifier] = {each: cells[each] for each in timestamps}
        return kept

    def cells(self, key, now):
        return cells_of(self.visible(self.rows.get(key, {}), now))

    def read_rows(self, request, now):
        """[(key, [outcome])]: each outcome a list of cells, one of which the server must give."""
        refuse_if(self.read_reasons(request))
        row_filter = Filter(request.filter) if request.HasField("filter") else Filter()
        found = []
        for key in sorted(self.rows, reverse=request.reversed):
            if is_selected(request.rows, key):
                outcomes = row_filter.outcomes(key, self.cells(key, now))
                if any(outcomes):
                    found.append((key, outcomes))
        return found[: request.rows_limit or None]

    def read_reasons(self, request):
        if request.rows_limit < 0:
            yield INVALID_ARGUMENT, "rows_limit"
        if b"" in request.rows.row_keys:
            yield INVALID_ARGUMENT, NO_KEY
        for index, limits in enumerate(request.rows.row_ranges):
            start, end = bounds(limits, "key")
            if start and end and end[0] and start[0] == end[0] and not (start[1] and end[1]):
                yield INVALID_ARGUMENT, f"#{index}: start_key must be less than end_key"
            if start and end and end[0] and start[0] > end[0]:
                yield (
                    INVALID_ARGUMENT,
                    f"Error in element #{index}: {limits.WhichOneof('start_key')} must be less "
                    f"than {limits.WhichOneof('end_key')}",
                )
        if request.HasField("filter"):
            yield from filter_reasons(request.filter)
            if not set(named_families(request.filter)) <= set(self.families):
                yield NOT_FOUND, "Requested column family not found"

    # --- writing ---

    def mutate_row(self, request, now):
        refuse_if([*key_reasons(request.row_key), *self.list_reasons(request.mutations)])
        self.apply(request.row_key, request.mutations, now)

    def mutate_rows(self, request, now):
        """A code for each entry."""
        everything = [mutation for entry in request.entries for mutation in entry.mutations]
        reasons = [reason for mutation in everything for reason in self.kind_reasons(mutation)]
        if not request.entries or any(not entry.mutations for entry in request.entries):
            reasons.append((INVALID_ARGUMENT, NO_MUTATIONS))
        refuse_if(reasons)
        if any(self.is_mismatch(mutation) for mutation in everything):
            return [{INVALID_ARGUMENT}] * len(request.entries)
        return [self.mutate_entry(entry, now) for entry in request.entries]

    def mutate_entry(self, entry, now):
        try:
            self.mutate_row(entry, now)
        except Refused as refused:
            return {code for code, _ in refused.reasons}
        return {OK}

    def check_and_mutate_row(self, request, now):
        """Whether the predicate matched."""
        reasons = key_reasons(request.row_key)
        if not request.true_mutations and not request.false_mutations:
            reasons.append((INVALID_ARGUMENT, NO_MUTATIONS))
        for mutation in [*request.true_mutations, *request.false_mutations]:
            reasons += self.kind_reasons(mutation)
        predicate = None
        if request.HasField("predicate_filter"):
            predicate = request.predicate_filter
            reasons += filter_reasons(predicate)
        refuse_if(reasons)
        cells = self.cells(request.row_key, now)
        matched = bool(Filter(predicate).apply(request.row_key, cells))
        mutations = request.true_mutations if matched else request.false_mutations
        refuse_if(reason for mutation in mutations for reason in self.reasons(mutation))
        self.apply(request.row_key, mutations, now)
        return matched

    def read_modify_write_row(self, request, now):
        """The changed cells."""
        reasons = key_reasons(request.row_key)
        if not request.rules:
            reasons.append((INVALID_ARGUMENT, "No rules provided"))
        for rule in request.rules:
            reasons += self.rule_reasons(rule)
        refuse_if(reasons)
        row = {column: dict(cells) for column, cells in self.rows.get(request.row_key, {}).items()}
        old, changed = self.visible(row, now), {}
        for rule in request.rules:
            column = rule.family_name, rule.column_qualifier
            if column not in changed:
                newest = max(old.get(column, {}), default=None)
                value = None if newest is None else old[column][newest]
                changed[column] = max(newest or 0, now - now % self.step), value
            timestamp, value = changed[column]
            changed[column] = timestamp, apply_rule(rule, value)
        for column, (timestamp, value) in changed.items():
            row.setdefault(column, {})[timestamp] = value
        self.rows[request.row_key] = row
        return cells_of({column: dict([cell]) for column, cell in changed.items()})

    def drop_row_range(self, prefix):
        self.rows = {key: row for key, row in self.rows.items() if not key.startswith(prefix)}

    def drop_family(self, name):
        del self.families[name]
        for row in self.rows.values():
            for column in [column for column in row if column[0] == name]:
                del row[column]

    # --- mutations ---

    def list_reasons(self, mutations):
        if not mutations:
            yield INVALID_ARGUMENT, NO_MUTATIONS
        for mutation in mutations:
            yield from self.reasons(mutation)

    def reasons(self, mutation):
        """What is wrong with a mutation of this table."""
        yield from self.kind_reasons(mutation)
        kind = mutation.WhichOneof("mutation")
        if kind in (None, "delete_from_row"):
            return
        change = getattr(mutation, kind)
        if change.family_name not in self.families:
            yield NOT_FOUND, "Requested column family not found."
            return
        if self.is_mismatch(mutation):
            yield INVALID_ARGUMENT, MISMATCH
        if len(qualifier_of(change)) > LONGEST_QUALIFIER:
            yield INVALID_ARGUMENT, "Column qualifier is"
        may_truncate = mutation.timestamp_origin == mutation.CLIENT_AUTO_GENERATED
        for timestamp in timestamps_of(kind, change):
            if kind != "delete_from_column" and may_truncate:
                timestamp -= timestamp % self.step
            if not 0 <= timestamp <= LATEST or timestamp % self.step:
                yield INVALID_ARGUMENT, "imestamp"
        if kind == "delete_from_column" and is_inverted(change.time_range):
            yield INVALID_ARGUMENT, "inverted or invalid timestamp range"

    def kind_reasons(self, mutation):
        """What is wrong with the kinds of its values."""
        kind = mutation.WhichOneof("mutation")
        if kind is None:
            return [(INVALID_ARGUMENT, "Mutation does not say what to do")]
        if kind not in ("add_to_cell", "merge_to_cell"):
            return []
        change = getattr(mutation, kind)
        wanted = {"column_qualifier": ["raw_value"], "timestamp": ["raw_timestamp_micros"]}
        family = self.families.get(change.family_name)
        if kind == "merge_to_cell":
            wanted["input"] = [None, "bytes_value"]
        elif family and family.aggregate:
            wanted["input"] = [None, "int_value"]
        return [
            (INVALID_ARGUMENT, name)
            for name, kinds in wanted.items()
            if getattr(change, name).WhichOneof("kind") not in kinds
        ]

    def is_mismatch(self, mutation):
        kind = mutation.WhichOneof("mutation")
        if kind not in ("set_cell", "add_to_cell", "merge_to_cell"):
            return False
        change = getattr(mutation, kind)
        family = self.families.get(change.family_name)
        if family is None:
            return False
        if kind == "set_cell":
            return family.aggregate is not None
        bad_state = kind == "merge_to_cell" and len(change.input.bytes_value) not in (0, 8)
        return family.aggregate is None or bad_state

    def apply(self, key, mutations, now):
        row = {column: dict(cells) for column, cells in self.rows.get(key, {}).items()}
        for mutation in mutations:
            kind = mutation.WhichOneof("mutation")
            getattr(self, kind)(row, getattr(mutation, kind), now)
        self.rows[key] = row

    def set_cell(self, row, change, now):
        timestamp = now if change.timestamp_micros == SERVER_TIME else change.timestamp_micros
        cells = row.setdefault((change.family_name, change.column_qualifier), {})
        cells[timestamp - timestamp % self.step] = change.value

    def add_to_cell(self, row, change, _):
        self.combine(row, change, change.input.int_value)

    def merge_to_cell(self, row, change, _):
        if change.input.bytes_value:
            self.combine(row, change, signed(change.input.bytes_value))

    def combine(self, row, change, number):
        cells = row.setdefault((change.family_name, qualifier_of(change)), {})
        timestamp = change.timestamp.raw_timestamp_micros
        timestamp -= timestamp % self.step
        if timestamp in cells:
            aggregate = self.families[change.family_name].aggregate
            number = COMBINE[aggregate](signed(cells[timestamp]), number)
        cells[timestamp] = big_endian(number)

    def delete_from_column(self, row, change, _):
        start = change.time_range.start_timestamp_micros
        end = change.time_range.end_timestamp_micros
        cells = row.get((change.family_name, change.column_qualifier), {})
        for timestamp in [each for each in cells if each >= start and (not end or each < end)]:
            del cells[timestamp]

    def delete_from_family(self, row, change, _):
        for column in [column for column in row if column[0] == change.family_name]:
            del row[column]

    def delete_from_row(self, row, _, __):
        row.clear()

    def rule_reasons(self, rule):
        if rule.WhichOneof("rule") is None:
            yield INVALID_ARGUMENT, "Rule does not say what to do"
        family = self.families.get(rule.family_name)
        if family is None:
            yield NOT_FOUND, "Requested column family not found."
        elif family.aggregate:
            yield INVALID_ARGUMENT, MISMATCH


# --- details ---


def cells_of(row):
    """A row's cells in the API's order."""
    return [
        Cell(family, qualifier, timestamp, value)
        for (family, qualifier), cells in sorted(row.items())
        for timestamp, value in sorted(cells.items(), reverse=True)
    ]


def is_condemned(rule, index, timestamp, now):
    """Whether a cell, the index-th newest of its column, is to be collected."""
    kind = rule.WhichOneof("rule")
    if kind == "max_num_versions":
        return index >= rule.max_num_versions
    if kind == "max_age":
        return timestamp < now - rule.max_age.ToMicroseconds()
    verdict = {"union": any, "intersection": all}[kind]
    return verdict(is_condemned(each, index, timestamp, now) for each in getattr(rule, kind).rules)


def is_selected(rows, key):
    if not rows.row_keys and not rows.row_ranges:
        return True
    return key in rows.row_keys or any(in_range(limits, key) for limits in rows.row_ranges)


def in_range(limits, key):
    start, end = bounds(limits, "key")
    if end == (b"", False):  # an empty open end is no end; an empty closed one lets nothing in
        end = None
    return within(start, end, key)


def filter_reasons(message):
    return [(INVALID_ARGUMENT, text) for text in faults(message)]


def key_reasons(key):
    if not key:
        return [(INVALID_ARGUMENT, NO_KEY)]
    return [(INVALID_ARGUMENT, "Row key is")] if len(key) > LONGEST_KEY else []


def qualifier_of(change):
    if change.DESCRIPTOR.name in ("AddToCell", "MergeToCell"):
        return change.column_qualifier.raw_value
    return getattr(change, "column_qualifier", b"")


def timestamps_of(kind, change):
    if kind == "set_cell":
        return [change.timestamp_micros] if change.timestamp_micros != SERVER_TIME else []
    if kind == "delete_from_column":
        limits = change.time_range
        return [limits.start_timestamp_micros, limits.end_timestamp_micros]
    if kind in ("add_to_cell", "merge_to_cell"):
        return [change.timestamp.raw_timestamp_micros]
    return []


def is_inverted(limits):
    start, end = limits.start_timestamp_micros, limits.end_timestamp_micros
    return end != 0 and start >= end


def apply_rule(rule, value):
    """`value` None: there is no cell."""
    if rule.WhichOneof("rule") == "append_value":
        return (value or b"") + rule.append_value
    if value is not None and len(value) != 8:
        raise Refused([(FAILED_PRECONDITION, "64-bit big-endian integer")])
    return big_endian(signed(value or b"") + rule.increment_amount)
