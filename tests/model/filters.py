"""Row filters: what is wrong with one (`faults`), and what it makes of a row (`Filter`).

A filter is a function from a list of cells to a list of cells. Cells are in the API's order: by
family, qualifier, newest first; among equals, which the API leaves open, in the order of the
branches that they came through, those from a sink first.
"""

import operator
import re

from regex import BadPattern, Regex

MOST_BYTES = 20480
DEEPEST = 20
LABEL = re.compile(r"[a-z0-9\-]{1,15}")
TO_THE_END = 1 << 63


# --- what is wrong ---


def faults(message):
    """The texts with which the filter may be refused as INVALID_ARGUMENT; none: it is fine."""
    size = message.ByteSize()
    if size > MOST_BYTES:
        yield f"Row filter exceeds maximum size of {MOST_BYTES} bytes"
    yield from faults_within(message, 1)


def faults_within(message, depth):
    kind = message.WhichOneof("filter")
    if kind in FLAGS and not getattr(message, kind):
        yield f"{kind} must be true if set"
    elif kind in CHECKS:
        yield from CHECKS[kind](getattr(message, kind), kind)
    parts = parts_of(message)
    if parts and depth > DEEPEST:
        yield "nested deeper than"
    for part in parts:
        yield from faults_within(part, depth + 1)


def parts_of(message):
    """The filters in a filter."""
    kind = message.WhichOneof("filter")
    if kind in ("chain", "interleave"):
        return list(getattr(message, kind).filters)
    if kind == "condition":
        names = ("predicate_filter", "true_filter", "false_filter")
        condition = message.condition
        return [getattr(condition, name) for name in names if condition.HasField(name)]
    return []


def named_families(message):
    """Those that the filter names, not by a pattern."""
    kind = message.WhichOneof("filter")
    if kind == "column_range_filter":
        yield message.column_range_filter.family_name
    pattern = getattr(message, "family_name_regex_filter", "")
    if re.fullmatch(r"([-_a-zA-Z0-9]|\\[-_.])+", pattern):
        yield re.sub(r"\\(.)", r"\1", pattern)
    for part in parts_of(message):
        yield from named_families(part)


def contains(message, kind):
    return message.WhichOneof("filter") == kind or any(
        contains(part, kind) for part in parts_of(message)
    )


def chain_faults(chain, _):
    if len(chain.filters) < 2:
        yield "Chain must contain at least two RowFilters"
    labels = [part for part in chain.filters if part.WhichOneof("filter") == LABEL_KIND]
    if len(labels) > 1:
        yield "at most one apply_label_transformer"


def interleave_faults(interleave, _):
    if len(interleave.filters) < 2:
        yield "Interleave must contain at least two RowFilters"


def condition_faults(condition, _):
    if not condition.HasField("predicate_filter"):
        yield "Condition must have a predicate_filter"
    for name in ("predicate_filter", "true_filter", "false_filter"):
        if contains(getattr(condition, name), "sink"):
            yield "sink cannot be nested in a condition filter"


def regex_faults(pattern, kind):
    try:
        Regex(as_bytes(pattern))
    except BadPattern:
        yield f"Error in field '{kind}' : "


def name_regex_faults(pattern, kind):
    if not pattern:
        yield f"Error in field '{kind}' : argument must not be empty"
    yield from regex_faults(pattern, kind)


def family_regex_faults(pattern, kind):
    if ":" in pattern:
        yield f"Error in field '{kind}' : "
    yield from name_regex_faults(pattern, kind)


def range_faults(limits, kind):
    if kind == "column_range_filter" and not limits.family_name:
        yield f"Error in field '{kind}' : Invalid id for collection columnFamilies"
    start, end = bounds(limits, RANGE_NAMES[kind])
    if start and end and start[0] > end[0]:
        yield f"Error in field '{kind}' : "


def time_faults(limits, kind):
    start, end = limits.start_timestamp_micros, limits.end_timestamp_micros
    if start < 0 or end < 0 or (end != 0 and start > end):
        yield f"Error in field '{kind}' : "


def limit_faults(count, kind):
    if count <= 0:
        yield f"Error in field '{kind}' : argument must be > 0"


def offset_faults(count, kind):
    if count < 0:
        yield f"Error in field '{kind}' : "


def sample_faults(probability, _):
    if not 0 < probability < 1:
        yield "row_sample_filter argument must be between 0.0 and 1.0"


def label_faults(label, kind):
    if not LABEL.fullmatch(label):
        yield rf"{kind} must match RE2([a-z0-9\-]+), but found {label}"


FLAGS = ("sink", "pass_all_filter", "block_all_filter", "strip_value_transformer")
LABEL_KIND = "apply_label_transformer"
CHECKS = {
    "chain": chain_faults,
    "interleave": interleave_faults,
    "condition": condition_faults,
    "row_key_regex_filter": name_regex_faults,
    "family_name_regex_filter": family_regex_faults,
    "column_qualifier_regex_filter": regex_faults,
    "value_regex_filter": regex_faults,
    "column_range_filter": range_faults,
    "value_range_filter": range_faults,
    "timestamp_range_filter": time_faults,
    "cells_per_row_offset_filter": offset_faults,
    "cells_per_row_limit_filter": limit_faults,
    "cells_per_column_limit_filter": limit_faults,
    "row_sample_filter": sample_faults,
    LABEL_KIND: label_faults,
}
RANGE_NAMES = {"column_range_filter": "qualifier", "value_range_filter": "value"}


def as_bytes(pattern):
    return pattern.encode() if isinstance(pattern, str) else pattern


def bounds(limits, name):
    """(bytes, whether it is in the range) for either end of a message with start_NAME_closed,
    start_NAME_open, end_NAME_closed and end_NAME_open; None where there is no bound."""
    found = []
    for end in ("start", "end"):
        field = limits.WhichOneof(f"{end}_{name}")
        found.append(field and (getattr(limits, field), field.endswith("closed")))
    return found


def within(start, end, text):
    if start and not (text > start[0] or (start[1] and text == start[0])):
        return False
    return not end or text < end[0] or (end[1] and text == end[0])


# --- what it makes of a row ---


class Row:
    """What a filter knows of a row besides its cells."""

    def __init__(self, key, coin):
        self.key = key
        self.coin = coin  # from 0 to 1: decides all row_sample_filters
        self.sunk = []


class Filter:
    """A filter without faults; None passes all."""

    def __init__(self, message=None):
        self.run = make(message) if message is not None else keep_all
        self.coins = coins(message) if message is not None else [0.5]

    def apply(self, key, cells, coin=0.5):
        row = Row(key, coin)
        passed = self.run(row, cells)
        return in_order(row.sunk + passed) if row.sunk else passed

    def outcomes(self, key, cells):
        """The different results that the coin may bring about."""
        return [self.apply(key, cells, coin) for coin in self.coins]


def coins(message):
    """One coin for each way in which the samples in the filter can fall."""
    edges = sorted({0.0, 1.0, *probabilities(message)})
    return [(low + high) / 2 for low, high in zip(edges, edges[1:])]


def probabilities(message):
    if message.WhichOneof("filter") == "row_sample_filter":
        return {message.row_sample_filter}
    return set().union(*(probabilities(part) for part in parts_of(message)))


def in_order(cells):
    return sorted(cells, key=lambda cell: (cell.family, cell.qualifier, -cell.timestamp))


def keep_all(_, cells):
    return cells


def make(message):
    """The filter as a function of a Row and its cells."""
    kind = message.WhichOneof("filter")
    if kind is None:
        return keep_all
    return MAKERS[kind](getattr(message, kind))


def make_chain(chain):
    parts = [make(part) for part in chain.filters]

    def run(row, cells):
        for part in parts:
            cells = part(row, cells)
        return cells

    return run


def make_interleave(interleave):
    parts = [make(part) for part in interleave.filters]
    return lambda row, cells: in_order([cell for part in parts for cell in part(row, cells)])


def make_condition(condition):
    predicate = make(condition.predicate_filter)
    then = make(condition.true_filter) if condition.HasField("true_filter") else block_all
    other = make(condition.false_filter) if condition.HasField("false_filter") else block_all
    return lambda row, cells: (then if predicate(row, cells) else other)(row, cells)


def block_all(_, __):
    return []


def sink(row, cells):
    row.sunk = row.sunk + cells
    return []


def strip_values(_, cells):
    return [cell._replace(value=b"") for cell in cells]


def make_label(label):
    return lambda _, cells: [cell._replace(labels=(*cell.labels, label)) for cell in cells]


def make_key_regex(pattern):
    regex = Regex(pattern)
    return lambda row, cells: cells if regex.matches(row.key) else []


def make_sample(probability):
    return lambda row, cells: cells if row.coin < probability else []


def keeping(holds):
    return lambda _, cells: [cell for cell in cells if holds(cell)]


def make_regex(pattern, field):
    regex, get = Regex(as_bytes(pattern)), operator.attrgetter(field)
    return keeping(lambda cell: regex.matches(as_bytes(get(cell))))


def make_column_range(limits):
    start, end = bounds(limits, "qualifier")
    family = limits.family_name
    return keeping(lambda cell: cell.family == family and within(start, end, cell.qualifier))


def make_value_range(limits):
    start, end = bounds(limits, "value")
    return keeping(lambda cell: within(start, end, cell.value))


def make_bitmask(limits):
    mask = limits.mask
    return keeping(
        lambda cell: (
            len(cell.value) == len(mask)
            and all(have & want == want for have, want in zip(cell.value, mask))
        )
    )


def make_time_range(limits):
    start = limits.start_timestamp_micros
    end = limits.end_timestamp_micros or TO_THE_END
    return keeping(lambda cell: start <= cell.timestamp < end)


def make_column_limit(count):
    def run(_, cells):
        kept, seen = [], {}
        for cell in cells:
            column = cell.family, cell.qualifier
            seen[column] = seen.get(column, 0) + 1
            if seen[column] <= count:
                kept.append(cell)
        return kept

    return run


MAKERS = {
    "chain": make_chain,
    "interleave": make_interleave,
    "condition": make_condition,
    "sink": lambda _: sink,
    "pass_all_filter": lambda _: keep_all,
    "block_all_filter": lambda _: block_all,
    "strip_value_transformer": lambda _: strip_values,
    "apply_label_transformer": make_label,
    "row_key_regex_filter": make_key_regex,
    "row_sample_filter": make_sample,
    "family_name_regex_filter": lambda pattern: make_regex(pattern, "family"),
    "column_qualifier_regex_filter": lambda pattern: make_regex(pattern, "qualifier"),
    "value_regex_filter": lambda pattern: make_regex(pattern, "value"),
    "column_range_filter": make_column_range,
    "value_range_filter": make_value_range,
    "value_bitmask_filter": make_bitmask,
    "timestamp_range_filter": make_time_range,
    "cells_per_row_offset_filter": lambda count: lambda _, cells: cells[count:],
    "cells_per_row_limit_filter": lambda count: lambda _, cells: cells[:count],
    "cells_per_column_limit_filter": make_column_limit,
}
