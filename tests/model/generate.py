"""Random keys, cells, regular expressions, filters, mutations and requests, from a seed.

Names and values come from small pools, so that filters hit. About one request in twenty has
something wrong with it.
"""

import copy

from filters import contains
from google.cloud.bigtable_admin_v2 import types as admin_types
from google.cloud.bigtable_v2 import types

MINUTE = 60_000_000
HOUR = 60 * MINUTE
LATEST = 9_223_372_036_854_775_000  # the greatest timestamp in milliseconds
LARGEST = (1 << 63) - 1

RowFilter = types.RowFilter.pb()
Mutation = types.Mutation.pb()
RowRange = types.RowRange.pb()
GcRule = admin_types.GcRule.pb()

QUALIFIERS = [
    b"", b"a", b"b", b"ab", b"abc", b"b\n", b"\x00", b"\x00\xff", b"\xff", b"\xe9", b"\xc3\xa9",
    b"a.b", b"a\\b", b"A", b"q1", b"q10", b"q2", b"_x",
]  # fmt: skip
VALUES = [
    b"", b"a", b"ab", b"abab", b"aaaaaaaaaaaaaaaaaaaaaaaa", b"\n", b"a\nb", b"\x00", b"\xff\xfe",
    b"\xe2\x98\x83", b"\xe9t\xc9", b"true", b"false", b"a b_c", bytes(8), b"\xff" * 8,
    (5).to_bytes(8, "big"), b"v" * 300, b"\x7f" + b"\xff" * 7,
]  # fmt: skip
KEYS = [
    prefix + bytes([n]) for prefix in (b"r", b"r\x00", b"user#", b"\xff") for n in range(48, 64)
]
KEYS += [b"\x00", b"r", b"r\n", b"\xff\xff", b"\xe9", b"user#1\xff"]

PREFIXES = [b"r", b"r\x00", b"user#", b"user#1", b"\xff", b"\xff\xff", b"\x00", b"r0", b"r1", b"u"]

# What each of these means to RE2 is easy to get wrong.
PATTERNS = (
    rb"""
    . .* \C* .+ a* (a*)* (a|aa)+ (a*)*b ((a?){9}){9}b? (.*)(.*)(.*)(.*)x? (\C+\C+)+ [^a]* [^\n]*
    (?s).* (?i)A.* (?i)\xe9.* (?i:A)B? (?m)^a$\n^b$ a$ ^a ^*a \ba\b.* .*\B.* \x00 \x{e9}.* \377*
    [[:alpha:]]+ [[:^alpha:]]* [\d\s_]+ \pL+ \P{Lu}* []a]+ [a-]+ \Qa.b\E a\.b a\\b a{,2} a{2}
    (ab){2,} (ab){1,2}? a{0} a|b| \_x (?P<n>a)b \Aab\z [\x00-\x7f]* [^\x00-\x7f]* \W* q\d{1,2}
    [a-c]{0,3} (?U)a+ (?-s).* { x{ (|a)+ () [^[:^ascii:]]*
""".split()
    + [b"", b"\xe9", b"\xc3\xa9", b"\xff+", b"(?i)\xe9", b"[\x00-\xe8]*", b"a b\x00?"]
)
BAD_PATTERNS = (
    rb"""
    ( ) [ [a * a** a{2}{3} a{1001} ((a{100}){100}) \ \8 \1 \e \x \xg0 \x{100} (?=a) (?P<>a) [b-a]
    [[:word \pX a{3,2} |* \400 (?z) [\b] \Z
""".split()
    + [b"\\\xe9"]
)
ATOMS = rb"a b . \C [ab] [^b] \n \xff \d \w \x00 q [\x80-\xff] t".split() + [b"", b"\xe9"]
BAD_LABELS = ["", "A", "a_b", "sixteen-letters-", "\u00e9", "a b"]


def version_rule(count):
    return GcRule(max_num_versions=count)


def age_rule(microseconds):
    rule = GcRule()
    rule.max_age.FromMicroseconds(microseconds)
    return rule


def any_of(*rules):
    return GcRule(union=GcRule.Union(rules=rules))


def all_of(*rules):
    return GcRule(intersection=GcRule.Intersection(rules=rules))


# No cell is ever between one and two hours old, so that none expires between two looks.
RULES = [
    None,
    version_rule(1),
    version_rule(2),
    age_rule(HOUR),
    any_of(version_rule(3), age_rule(HOUR)),
    all_of(version_rule(2), age_rule(HOUR)),
    any_of(version_rule(4), all_of(version_rule(1), age_rule(HOUR))),
]


def quoted(text):
    """As Google's clients quote a literal."""
    return b"".join(
        bytes([c]) if c >= 128 or chr(c).isalnum() or c == ord("_")
        else b"\\x00" if c == 0 else b"\\" + bytes([c])
        for c in text
    )  # fmt: skip


class Generator:
    """`families`: the table's, as they are at the time. `now`: microseconds, fixed."""

    def __init__(self, dice, table, now):
        self.dice = dice
        self.table = table
        self.now = now

    def chance(self, probability):
        return self.dice.random() < probability

    def pick(self, weights):
        """A key of {key: weight}."""
        return self.dice.choices(list(weights), list(weights.values()))[0]

    # --- names and values ---

    def key(self):
        if self.chance(0.004):
            return self.dice.choice([b"", b"k" * 4097])
        return self.dice.choice(KEYS)

    def family(self, wants_aggregate=False):
        if self.chance(0.005):
            return "nowhere"
        if self.chance(0.005):
            wants_aggregate = not wants_aggregate
        names = [
            name
            for name, family in sorted(self.table.families.items())
            if bool(family.aggregate) == wants_aggregate
        ]
        return self.dice.choice(names) if names else "nowhere"

    def qualifier(self):
        return self.dice.choice(QUALIFIERS)

    def value(self):
        if self.chance(0.005):
            return self.dice.randbytes(self.dice.randrange(4000))
        return self.dice.choice(VALUES)

    def timestamp(self):
        """One that any table takes: recent, or over two hours old."""
        choices = {"tiny": 8, "recent": 6, "old": 3, "latest": 0.3, "future": 0.3}
        kind = self.pick(choices)
        if kind == "tiny":
            return self.dice.randrange(10) * 1000
        if kind == "latest":
            return LATEST
        offset = self.dice.randrange(1, 10) * MINUTE
        if kind == "future":
            return self.now + HOUR + offset
        return self.now - offset - (2 * HOUR if kind == "old" else 0)

    def bad_timestamp(self):
        return self.dice.choice([-2, 1, 1500, LARGEST - 1, LARGEST, -(1 << 63), -1000])

    # --- regular expressions ---

    def regex(self, pool):
        kinds = {"quoted": 5, "raw": 2, "prefix": 3, "either": 2, "tree": 4, "known": 3, "bad": 0.1}
        kind = self.pick(kinds)
        if kind == "quoted":
            return quoted(self.dice.choice(pool))
        if kind == "raw":
            return self.dice.choice(pool)
        if kind == "prefix":
            text = self.dice.choice(pool)
            any_text = self.dice.choice([b".*", b"\\C*", b".+", b"\\C?"])
            return quoted(text[: self.dice.randrange(len(text) + 1)]) + any_text
        if kind == "either":
            return b"(" + self.regex(pool) + b"|" + quoted(self.dice.choice(pool)) + b")"
        if kind == "tree":
            return self.regex_tree(3)
        return self.dice.choice(PATTERNS if kind == "known" else BAD_PATTERNS)

    def regex_tree(self, depth):
        if depth == 0 or self.chance(0.3):
            return self.dice.choice(ATOMS)
        shape = self.dice.randrange(4)
        if shape == 0:
            return self.regex_tree(depth - 1) + self.regex_tree(depth - 1)
        if shape == 1:
            return b"(?:" + self.regex_tree(depth - 1) + b"|" + self.regex_tree(depth - 1) + b")"
        signs = [b"*", b"+", b"?", b"{2}", b"{1,3}", b"*?"]
        return b"(" + self.regex_tree(depth - 1) + b")" + self.dice.choice(signs)

    # --- filters ---

    def filter(self):
        if self.chance(0.003):
            return self.extreme_filter()
        self.nodes_left = 14
        return self.filter_node(self.dice.choice([0, 1, 2, 3, 5]), False)

    def steady_filter(self):
        """One that says the same each time."""
        while contains(found := self.filter(), "row_sample_filter"):
            pass
        return found

    def filter_node(self, depth, in_condition):
        self.nodes_left -= 1
        if depth > 0 and self.nodes_left > 0 and self.chance(0.75):
            kind = self.pick({"chain": 5, "interleave": 3, "condition": 2})
            return getattr(self, f"make_{kind}")(depth - 1, in_condition)
        return self.leaf(in_condition)

    def filter_list(self, depth, in_condition):
        count = 1 if self.chance(0.005) else self.dice.choice([2, 2, 2, 3, 4])
        return [self.filter_node(depth, in_condition) for _ in range(count)]

    def make_chain(self, depth, in_condition):
        return RowFilter(chain=RowFilter.Chain(filters=self.filter_list(depth, in_condition)))

    def make_interleave(self, depth, in_condition):
        parts = self.filter_list(depth, in_condition)
        if self.chance(0.2):
            parts[-1] = copy.deepcopy(parts[0])
        return RowFilter(interleave=RowFilter.Interleave(filters=parts))

    def make_condition(self, depth, _):
        names = ["predicate_filter", "true_filter", "false_filter"]
        likely = [0.995, 0.85, 0.6]
        parts = {
            name: self.filter_node(depth, True)
            for name, probability in zip(names, likely)
            if self.chance(probability)
        }
        return RowFilter(condition=RowFilter.Condition(**parts))

    def leaf(self, in_condition):
        kind = self.pick({
            "pass_all_filter": 2, "block_all_filter": 1, "strip_value_transformer": 2,
            "sink": 0.05 if in_condition else 2, "apply_label_transformer": 2,
            "row_key_regex_filter": 3, "family_name_regex_filter": 4,
            "column_qualifier_regex_filter": 5, "value_regex_filter": 5,
            "column_range_filter": 4, "value_range_filter": 3, "timestamp_range_filter": 3,
            "value_bitmask_filter": 2, "cells_per_row_offset_filter": 2,
            "cells_per_row_limit_filter": 3, "cells_per_column_limit_filter": 4,
            "row_sample_filter": 0.4, None: 0.5,
        })  # fmt: skip
        return RowFilter(**{kind: self.operand(kind)}) if kind else RowFilter()

    def operand(self, kind):
        makers = {
            "row_key_regex_filter": lambda: self.regex(KEYS),
            "family_name_regex_filter": self.family_regex,
            "column_qualifier_regex_filter": lambda: self.regex(QUALIFIERS),
            "value_regex_filter": lambda: self.regex(VALUES),
            "column_range_filter": self.column_range,
            "value_range_filter": self.value_range,
            "timestamp_range_filter": self.time_range,
            "value_bitmask_filter": self.bitmask,
            "apply_label_transformer": self.label,
            "cells_per_row_offset_filter": lambda: self.count([0, 1, 2, 3, 5, 10], [-1]),
            "cells_per_row_limit_filter": lambda: self.count([1, 2, 3, 5, 10, 1000], [0, -1]),
            "cells_per_column_limit_filter": lambda: self.count([1, 1, 2, 3, 100], [0, -5]),
            "row_sample_filter": lambda: self.count([0.1, 0.5, 0.9], [0.0, 1.0, -0.5, 7.0]),
        }
        return makers[kind]() if kind in makers else not self.chance(0.003)  # a flag

    def count(self, good, bad):
        return self.dice.choice(bad if self.chance(0.004) else good)

    def family_regex(self):
        names = [name.encode() for name in sorted(self.table.families)]
        pattern = self.regex(names).replace(b"\x00", b"") or self.dice.choice([b"", b".*"])
        if self.chance(0.003):
            pattern += b":"
        return pattern.decode("latin-1")

    def label(self):
        good = ["x", "label-2", "0", "-", "fifteen-letters"]
        return self.dice.choice(BAD_LABELS if self.chance(0.004) else good)

    def bounds(self, name, pool):
        """Fields of a message that has start_NAME_closed and its like."""
        ends = [self.dice.choice(pool), self.dice.choice(pool)]
        if not self.chance(0.01):
            ends.sort()
        fields = {}
        for side, text in zip(("start", "end"), ends):
            if self.chance(0.75):
                fields[f"{side}_{name}_{self.dice.choice(['open', 'closed'])}"] = text
        return fields

    def column_range(self):
        family = "" if self.chance(0.004) else self.family(self.chance(0.2))
        return types.ColumnRange.pb()(family_name=family, **self.bounds("qualifier", QUALIFIERS))

    def value_range(self):
        return types.ValueRange.pb()(**self.bounds("value", VALUES))

    def time_range(self):
        start, end = sorted([self.timestamp(), self.timestamp()])
        start += self.dice.choice([0, 0, 1])
        end = 0 if self.chance(0.2) else min(end + self.dice.choice([0, 1, 1000]), LARGEST)
        if self.chance(0.005):
            start, end = self.dice.choice([(2, 1), (-1, 0), (0, -1)])
        return types.TimestampRange.pb()(start_timestamp_micros=start, end_timestamp_micros=end)

    def bitmask(self):
        value = self.value()
        thin = self.dice.choice([0, 1, 0x0F, 0xFF, 0xFF])
        return types.ValueBitmask.pb()(mask=bytes(byte & thin for byte in value))

    def extreme_filter(self):
        """At a limit, or beyond it: depth 19 to 23, 20,480 bytes more or less."""
        if self.chance(0.5):
            pattern = b"v" * (20480 - self.dice.choice([-1, 3, 4, 5, 100]))
            return RowFilter(value_regex_filter=pattern)
        inner = self.leaf(True)
        for _ in range(self.dice.randrange(18, 23)):
            passes = RowFilter(pass_all_filter=True)
            shapes = [
                {"chain": RowFilter.Chain(filters=[passes, inner])},
                {
                    "interleave": RowFilter.Interleave(
                        filters=[inner, RowFilter(block_all_filter=True)]
                    )
                },
                {"condition": RowFilter.Condition(predicate_filter=passes, true_filter=inner)},
            ]
            inner = RowFilter(**self.dice.choice(shapes))
        return inner

    # --- views ---

    def view_subset(self):
        """(prefixes, {family: (qualifiers, prefixes)}): much of the table, or little."""
        prefixes = [b""] if self.chance(0.4) else self.some(PREFIXES, 5)
        families = {}
        for name in [*sorted(self.table.families), "nowhere"]:
            if self.chance(0.6):
                families[name] = self.some(QUALIFIERS, 2), [b""]
            elif self.chance(0.6):
                families[name] = self.some(QUALIFIERS, 6), self.some([b"a", b"q1", b"\xff"], 2)
        return prefixes, families

    def some(self, pool, most):
        return self.dice.sample(pool, self.dice.randrange(most + 1))

    # --- mutations ---

    def mutation(self):
        kinds = {"set_cell": 10, "delete_from_column": 3, "delete_from_family": 0.6}
        kinds |= {"delete_from_row": 0.4, "add_to_cell": 3, "merge_to_cell": 1, None: 0.01}
        kind = self.pick(kinds)
        mutation = Mutation()
        if kind is None:
            return mutation
        if kind == "delete_from_row":
            mutation.delete_from_row.SetInParent()
        else:
            getattr(self, f"fill_{kind}")(getattr(mutation, kind))
        if kind in ("set_cell", "add_to_cell", "merge_to_cell") and self.chance(0.05):
            mutation.timestamp_origin = self.dice.choice([1, 2, 2])
            if mutation.timestamp_origin == mutation.CLIENT_AUTO_GENERATED:
                self.make_finer(kind, getattr(mutation, kind))
        return mutation

    def make_finer(self, kind, change):
        if kind == "set_cell":
            change.timestamp_micros |= self.dice.choice([1, 7])
        else:
            change.timestamp.raw_timestamp_micros |= self.dice.choice([1, 7])

    def fill_set_cell(self, cell):
        cell.family_name = self.family()
        cell.column_qualifier = b"q" * 16385 if self.chance(0.001) else self.qualifier()
        cell.timestamp_micros = -1 if self.chance(0.1) else self.timestamp()
        if self.chance(0.004):
            cell.timestamp_micros = self.bad_timestamp()
        cell.value = self.value()

    def fill_delete_from_column(self, column):
        column.family_name = self.family(self.chance(0.2))
        column.column_qualifier = self.qualifier()
        if self.chance(0.6):
            start, end = sorted([self.timestamp(), self.timestamp()])
            column.time_range.start_timestamp_micros = start
            column.time_range.end_timestamp_micros = (
                0 if self.chance(0.3) else min(end + 1000, LATEST)
            )
            if self.chance(0.01):
                column.time_range.end_timestamp_micros = self.bad_timestamp()

    def fill_delete_from_family(self, family):
        family.family_name = self.family(self.chance(0.2))

    def fill_aggregate(self, cell):
        cell.family_name = self.family(wants_aggregate=True)
        cell.column_qualifier.raw_value = self.qualifier()
        cell.timestamp.raw_timestamp_micros = self.dice.randrange(4) * 1000
        if self.chance(0.005):
            cell.timestamp.raw_timestamp_micros = self.dice.choice([-1, 5])
        if self.chance(0.003):
            cell.column_qualifier.string_value = "q"

    def number(self):
        edges = [0, 1, -1, LARGEST, -(1 << 63)]
        return self.dice.choice([*edges, self.dice.randrange(-100, 100)])

    def fill_add_to_cell(self, cell):
        self.fill_aggregate(cell)
        if not self.chance(0.05):
            cell.input.int_value = self.number()
        if self.chance(0.003):
            cell.input.raw_value = bytes(8)

    def fill_merge_to_cell(self, cell):
        self.fill_aggregate(cell)
        if not self.chance(0.1):
            cell.input.bytes_value = (self.number() % (1 << 64)).to_bytes(8, "big")
        if self.chance(0.01):
            cell.input.bytes_value = bytes(self.dice.choice([3, 9]))

    def mutations(self):
        if self.chance(0.005):
            return []
        return [self.mutation() for _ in range(self.dice.choice([1, 1, 2, 3, 5, 9]))]

    # --- requests ---

    def mutate_row(self):
        return types.MutateRowRequest.pb()(
            table_name=self.table.name, row_key=self.key(), mutations=self.mutations()
        )

    def mutate_rows(self):
        entry = types.MutateRowsRequest.Entry.pb()
        count = 0 if self.chance(0.005) else self.dice.randrange(1, 9)
        entries = [entry(row_key=self.key(), mutations=self.mutations()) for _ in range(count)]
        return types.MutateRowsRequest.pb()(table_name=self.table.name, entries=entries)

    def check_and_mutate_row(self):
        fields = {"predicate_filter": self.steady_filter()} if self.chance(0.8) else {}
        return types.CheckAndMutateRowRequest.pb()(
            table_name=self.table.name,
            row_key=self.key(),
            true_mutations=self.mutations() if self.chance(0.7) else [],
            false_mutations=self.mutations() if self.chance(0.7) else [],
            **fields,
        )

    def rule(self):
        columns = {"family_name": self.family(), "column_qualifier": self.qualifier()}
        operation = {"append_value": self.value()}
        if self.chance(0.5):
            operation = {"increment_amount": self.number()}
        if self.chance(0.005):
            operation = {}
        return types.ReadModifyWriteRule.pb()(**columns, **operation)

    def read_modify_write_row(self):
        count = 0 if self.chance(0.01) else self.dice.choice([1, 1, 2, 3, 4])
        return types.ReadModifyWriteRowRequest.pb()(
            table_name=self.table.name,
            row_key=self.key(),
            rules=[self.rule() for _ in range(count)],
        )

    def key_bound(self):
        key = self.dice.choice([*KEYS, b""])
        return key[: self.dice.randrange(len(key) + 1)] if self.chance(0.3) else key

    def row_range(self):
        return RowRange(**self.bounds("key", [self.key_bound(), self.key_bound()]))

    def row_set(self):
        keys = [
            self.dice.choice([*KEYS, b"none"]) for _ in range(self.dice.choice([0, 0, 1, 2, 5]))
        ]
        if self.chance(0.005):
            keys.append(b"")
        ranges = [self.row_range() for _ in range(self.dice.choice([0, 1, 1, 2, 3]))]
        return types.RowSet.pb()(row_keys=keys, row_ranges=ranges)

    def read_rows(self):
        request = types.ReadRowsRequest.pb()(
            table_name=self.table.name, rows=self.row_set(), reversed=self.chance(0.4)
        )
        if self.chance(0.5):
            request.filter.CopyFrom(self.steady_filter())
        if self.chance(0.4):
            request.rows_limit = self.count([1, 2, 5, 100], [-1])
        if self.chance(0.2):
            request.request_stats_view = request.REQUEST_STATS_FULL
        return request
