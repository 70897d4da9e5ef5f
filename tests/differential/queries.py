"""Random queries: a block is a SELECT over a table, a view, an array or another block.

Each prints itself as GoogleSQL, in the classic or in the pipe form, and as SQLite's SQL. What is
not determined is not made, or not compared: rows are ordered only by what orders them totally
before a LIMIT, and compared as a multiset where the order is not total.
"""

from differential import operators as op
from differential import tree
from differential.expressions import Expressions
from differential.tables import WORDS
from differential.tree import (
    BOOL, BYTES, CLASSIC, FLOAT, INT, PIPE, SQLITE, STRING, TYPES, Leaf, Node, Op, Ref,
)  # fmt: skip

MAX_ROWS = 1 << 13  # of any relation: sums of bounded numbers cannot overflow
NULLS = ["", "", "", " NULLS FIRST", " NULLS LAST"]


def column_of(name, node):
    """A column that has this node's values."""
    leaf = Leaf(name, name, node.type, node.bound, node.scale, column=name)
    leaf.is_unique = node.is_unique if isinstance(node, (Leaf, Ref)) else False
    leaf.is_key = node.is_key if isinstance(node, Leaf) else False
    return leaf


class Source:
    """A table or a view by its name."""

    def __init__(self, name, columns, extra=(), keys=(), is_view=False):
        self.name, self.columns, self.extra, self.keys = name, columns, extra, keys
        self.is_view = is_view
        self.nested = []

    def google(self, full):
        del full
        return self.name

    def sqlite(self):
        return self.name

    def features(self):
        yield "FROM a view" if self.is_view else "FROM a table"

    def slots(self):
        return ()


class Array:
    """UNNEST: as a source, or joined to one. Its elements may use columns of what it joins."""

    keys, extra = (), ()

    def __init__(self, name, elements, offset=None, join=None, condition=None):
        self.name, self.elements, self.offset = name, elements, offset
        self.join, self.condition = join, condition  # " CROSS JOIN ", …; of ON
        self.element_type = elements[0].type
        hidden = f"o_{name}"
        self.hidden = hidden
        element = self.elements[0]
        bound = max(each.bound for each in elements)
        scales = [each.scale for each in elements]
        scale = None if None in scales else max(scales)
        self.element = Leaf(name, "", element.type, bound, scale, column=name)
        self.columns = [self.element]
        if offset:
            place = Leaf(offset, hidden, INT, len(elements), column=offset)
            place.is_unique = join is None
            self.columns.append(place)

    def google(self, full):
        texts = ", ".join(each.text(CLASSIC, full) for each in self.elements)
        offset = f" WITH OFFSET AS {self.offset}" if self.offset else ""
        return f"UNNEST([{texts}]) AS {self.name}{offset}"

    def sqlite(self):
        """SQLite's arrays know nothing of the row beside them: the places are joined, and an
        element is chosen by its place wherever its name stands."""
        arms = " ".join(
            f"WHEN {i} THEN {each.text(SQLITE, False)}" for i, each in enumerate(self.elements)
        )
        self.element.sqlite = f"(CASE {self.hidden} {arms} END)"
        places = " UNION ALL ".join(
            f"SELECT {i} AS {self.hidden}" for i in range(len(self.elements))
        )
        return f"({places})"

    def joined(self, form, full):
        text = self.join + (self.sqlite() if form == SQLITE else self.google(full))
        if self.condition is not None:
            text += f" ON {self.condition.text(CLASSIC if form == PIPE else form, full)}"
        return text

    def features(self):
        yield (self.join or "FROM ").strip() + " UNNEST"
        if self.offset:
            yield "WITH OFFSET"
        for each in self.elements:
            yield from each.features()
        if self.condition is not None:
            yield "JOIN ON"
            yield from self.condition.features()

    def slots(self):
        for index in range(len(self.elements)):
            yield self.elements, index
        if self.condition is not None:
            yield self, "condition"


class Order:
    """`node` is an expression over the source, or `index` an item."""

    def __init__(self, index=None, node=None, direction="", nulls="", by_place=False):
        self.index, self.node = index, node
        self.direction, self.nulls, self.by_place = direction, nulls, by_place

    def text(self, form, full, names):
        if self.node is not None:
            what = self.node.text(form, full)
        else:
            what = str(self.index + 1) if self.by_place and form != PIPE else names[self.index]
        return f"{what}{self.direction}{self.nulls}"


class Block:
    """A SELECT. What is not there is None, or an empty list."""

    extra = ()

    def __init__(self, source):
        self.source = source
        self.keys = source.keys
        self.joins = []
        self.where = self.having = self.qualify = None
        self.is_grouped = False
        self.group_keys, self.aggregates = [], []
        self.items, self.names = [], []
        self.hidden = None  # a Ref: what QUALIFY computes for itself
        self.is_distinct = False
        self.order = []
        self.is_total = False  # the order tells everything
        self.is_inexact = False  # a float in it may differ in its last digits
        self.may_fail = False  # both sides refuse it, or none
        self.limit = self.offset = None
        self.form = CLASSIC
        self.pipe_style = "SELECT"
        self.groups_by = "text"  # or "name", "place", "all"
        self.by_star = False  # SELECT * EXCEPT around it, which tells no order
        self.hides_order = False  # by the key, which is a scan's own
        self.alias = ""
        self.name = ""  # as a source of another

    # --- GoogleSQL ---

    def google(self, full=False):
        text = self.pipe(full) if self.form == PIPE else self.classic(full)
        return f"({text}) AS {self.name}" if self.name else text

    def from_(self, form, full):
        text = self.source.sqlite() if form == SQLITE else self.source.google(full)
        if form == SQLITE and isinstance(self.source, Block):
            text = f"({text})"
        joins = [each.joined(form, full) for each in self.joins]
        return text + (f" AS {self.alias}" if self.alias else "") + "".join(joins)

    def classic(self, full):
        items = [f"{item.text(CLASSIC, full)} AS {name}"
                 for item, name in zip(self.items, self.names, strict=True)]  # fmt: skip
        if self.by_star:
            items.append("1 AS z1")
        text = f"SELECT {'DISTINCT ' if self.is_distinct else ''}{', '.join(items)}"
        text += f" FROM {self.from_(CLASSIC, full)}"
        if self.where is not None:
            text += f" WHERE {self.where.text(CLASSIC, full)}"
        if self.group_keys and self.groups_by == "all":
            text += " GROUP BY ALL"
        elif self.group_keys:
            text += f" GROUP BY {', '.join(self.group_key(key, full) for key in self.group_keys)}"
        if self.having is not None:
            text += f" HAVING {self.having.text(CLASSIC, full)}"
        if self.qualify is not None:
            text += f" QUALIFY {self.qualify.text(CLASSIC, full)}"
        text += self.tail(CLASSIC, full)
        return f"SELECT * EXCEPT (z1) FROM ({text})" if self.by_star else text

    def group_key(self, key, full):
        if self.groups_by != "text" and key in self.items:
            at = self.items.index(key)
            return self.names[at] if self.groups_by == "name" else str(at + 1)
        return key.text(CLASSIC, full)

    def tail(self, form, full):
        text = ""
        if self.order and (form == SQLITE or not self.hides_order):
            text += " ORDER BY " + ", ".join(
                each.text(form, full, self.names) for each in self.order
            )
        if self.limit is not None:
            text += f" LIMIT {self.limit}"
            if self.offset is not None:
                text += f" OFFSET {self.offset}"
        return text

    def pipe(self, full):
        steps = [f"FROM {self.from_(PIPE, full)}"]
        if self.where is not None:
            steps.append(f"WHERE {self.where.text(CLASSIC, full)}")
        if self.is_grouped:
            steps.append(self.pipe_aggregate(full))
        if self.having is not None:
            steps.append(f"WHERE {self.having.text(PIPE, full)}")
        steps += self.pipe_items([each.text(PIPE, full) for each in self.items])
        if self.qualify is not None:
            steps.append(f"WHERE {self.qualify.text(CLASSIC, full)}")
        if self.order:
            texts = [each.text(PIPE, full, self.names) for each in self.order]
            steps.append(f"ORDER BY {', '.join(texts)}")
        if self.limit is not None:
            offset = "" if self.offset is None else f" OFFSET {self.offset}"
            steps.append(f"LIMIT {self.limit}{offset}")
        return " |> ".join(steps)

    def pipe_items(self, texts):
        """What SELECT does, by other operators."""
        items = [f"{text} AS {name}" for text, name in zip(texts, self.names, strict=True)]
        if self.pipe_style == "SELECT" and self.is_distinct:
            return [f"SELECT DISTINCT {', '.join(items)}"]
        steps = {
            "SELECT": lambda: [f"SELECT {', '.join(items)}"],
            "EXTEND": lambda: [f"EXTEND {', '.join(items)}", f"SELECT {', '.join(self.names)}"],
            "DROP": lambda: [f"SELECT {', '.join(items)}, 1 AS z1, 'z' AS z2", "DROP z2, z1"],
            "RENAME": lambda: [f"SELECT {texts[0]} AS z1{''.join(', ' + i for i in items[1:])}",
                               f"RENAME z1 AS {self.names[0]}"],
            "SET": lambda: [f"EXTEND {texts[0]} AS z1",
                            f"SELECT 1 AS {', '.join([self.names[0], *items[1:], 'z1'])}",
                            f"SET {self.names[0]} = z1", "DROP z1"],
        }[self.pipe_style]()  # fmt: skip
        return steps + ["DISTINCT"] * self.is_distinct

    def pipe_aggregate(self, full):
        texts = [f"{each.target.text(CLASSIC, full)} AS {each.name}" for each in self.aggregates]
        text = f"AGGREGATE {', '.join(texts)}"
        if self.group_keys:
            keys = [f"{key.target.text(CLASSIC, full)} AS {key.name}" for key in self.group_keys]
            text += f" GROUP BY {', '.join(keys)}"
        return text

    # --- SQLite ---

    def sqlite(self):
        source = self.from_(SQLITE, False)  # first: it says what its columns are
        items = [f"{item.text(SQLITE, False)} AS {name}"
                 for item, name in zip(self.items, self.names, strict=True)]  # fmt: skip
        if self.hidden is not None:
            items.append(f"{self.hidden.target.text(SQLITE, False)} AS {self.hidden.name}")
        text = f"SELECT {'DISTINCT ' if self.is_distinct else ''}{', '.join(items)} FROM {source}"
        if self.where is not None:
            text += f" WHERE {self.where.text(SQLITE, False)}"
        if self.group_keys:
            keys = [key.text(SQLITE, False) for key in self.group_keys]
            text += f" GROUP BY {', '.join(keys)}"
        if self.having is not None:
            text += f" HAVING {self.having.text(SQLITE, False)}"
        if self.qualify is not None:  # SQLite has no QUALIFY
            names = ", ".join(self.names)
            text = f"SELECT {names} FROM ({text}) WHERE {self.qualify.text(SQLITE, False)}"
        return text + self.tail(SQLITE, False)

    # --- what is in it ---

    def columns_out(self):
        columns = [column_of(*pair) for pair in zip(self.names, self.items, strict=True)]
        for each in columns:
            each.is_unique = each.is_unique and not self.joins and not self.is_grouped
        if self.is_grouped and len(self.group_keys) == 1:
            for column, item in zip(columns, self.items, strict=True):
                column.is_unique = item is self.group_keys[0]
        if self.is_distinct and len(columns) == 1:
            columns[0].is_unique = True
        return columns

    def features(self):
        yield from self.source.features()
        if isinstance(self.source, Block):
            yield "FROM a query"
        for each in self.joins:
            yield from each.features()
        yield "classic form" if self.form == CLASSIC else f"pipe form by {self.pipe_style}"
        if self.group_keys:
            yield f"GROUP BY by {self.groups_by}"
        for name, has in {
            "WHERE": self.where, "HAVING": self.having, "QUALIFY": self.qualify,
            "DISTINCT": self.is_distinct or None, "LIMIT": self.limit, "OFFSET": self.offset,
            "GROUP BY": self.group_keys or None, "ORDER BY": self.order or None,
            "SELECT * EXCEPT": self.by_star or None, "scan's order": self.hides_order or None,
            "ORDER BY … NULLS": [1 for each in self.order if each.nulls] or None,
        }.items():  # fmt: skip
            if has is not None:
                yield name
        refs = self.refs()
        nodes = [self.where, self.having, self.qualify, *self.items]
        nodes += [each.target for each in refs] + [each.node for each in self.order]
        for node in nodes:
            if node is not None:
                yield from node.features()

    def refs(self):
        hidden = [] if self.hidden is None else [self.hidden]
        return [*self.group_keys, *self.aggregates, *hidden]

    def slots(self):
        """Every place at which a node stands: (an object or a list, attribute or index)."""
        yield from self.source.slots()
        for join in self.joins:
            yield from join.slots()
        for name in ("where", "having", "qualify"):
            if getattr(self, name) is not None:
                yield self, name
        for index in range(len(self.items)):
            yield self.items, index
        for each in self.refs():
            yield each, "target"
        for each in self.order:
            if each.node is not None:
                yield each, "node"


# --- windows ---

TOTAL, PEERS = "total", "peers"  # what the order of a window must tell


class Hidden(Ref):
    """A window of QUALIFY: SQLite has it as one more column of the query within."""

    def text(self, form, full):
        return self.name if form == SQLITE else self.target.text(form, full)


class Window:
    """Makes an operator with OVER: operands, then partitions, then orders."""

    def __init__(self, function, count, partitions, directions, frame):
        self.function, self.count = function, count
        self.partitions, self.directions, self.frame = partitions, directions, frame

    def texts(self, form, texts):
        head = tree.fill(form, texts[: self.count])
        split = self.count + self.partitions
        parts = []
        if self.partitions:
            parts.append(f"PARTITION BY {', '.join(texts[self.count : split])}")
        if self.directions:
            orders = zip(texts[split:], self.directions, strict=True)
            parts.append("ORDER BY " + ", ".join(f"{text}{how}" for text, how in orders))
        if self.frame:
            parts.append(self.frame)
        return f"{head} OVER ({' '.join(parts)})"

    def op(self):
        function = self.function
        return Op(
            f"{function.name} OVER",
            lambda texts: self.texts(function.google, texts),
            lambda texts: self.texts(function.sqlite, texts),
        )


FRAMES = [
    "UNBOUNDED PRECEDING", "CURRENT ROW", "2 PRECEDING", "BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", "BETWEEN 3 PRECEDING AND 1 PRECEDING",
    "BETWEEN 1 FOLLOWING AND 2 FOLLOWING", "BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    "BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING", "BETWEEN 2 PRECEDING AND CURRENT ROW",
]  # fmt: skip
RANGES = [
    "BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "BETWEEN CURRENT ROW AND CURRENT ROW", "BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
]  # fmt: skip
RANGES_OF_NUMBERS = [
    "BETWEEN 2 PRECEDING AND CURRENT ROW", "BETWEEN 1 PRECEDING AND 3 FOLLOWING",
    "BETWEEN 1 FOLLOWING AND 4 FOLLOWING", "BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING",
    "BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING", "5 PRECEDING",
]  # fmt: skip
RANKS = [Op(name, f"{name}()") for name in ["RANK", "DENSE_RANK"]]
SHARES = [Op(name, f"{name}()") for name in ["PERCENT_RANK", "CUME_DIST"]]
ROW_NUMBER = Op("ROW_NUMBER", "ROW_NUMBER()")
NTILE = op.call("NTILE")
FIRSTS = [op.call(name) for name in ["FIRST_VALUE", "LAST_VALUE"]]
NTH_VALUE = op.call("NTH_VALUE")
NEIGHBOURS = [op.call(name) for name in ["LAG", "LEAD"]]

PIPE_STYLES = ["SELECT", "SELECT", "EXTEND", "DROP", "RENAME", "SET"]


class Generator:
    """Makes queries over the sources of a round."""

    def __init__(self, dice, sources, prefix=""):
        self.dice = dice
        self.sources = sources
        self.prefix = prefix
        self.count = 0  # of names

    def chance(self, share):
        return self.dice.random() < share

    def name(self, letter="c"):
        self.count += 1
        return f"{self.prefix}{letter}{self.count}"

    # --- where rows come from ---

    def source(self, depth):
        if depth > 0 and self.chance(0.35):
            block = self.block(depth - 1)
            block.name = self.name("q")
            return block
        if self.chance(0.03):
            return self.array(Expressions(self.dice, []), None)
        return self.dice.choice(self.sources)

    def array(self, expressions, join):
        type = self.dice.choice(TYPES)
        size = self.dice.randint(1, 3) if join else self.dice.randint(2, 8)
        elements = [expressions.make(type, 1 if join else 0) for _ in range(size)]
        offset = self.name("o") if self.chance(0.4) else None
        return Array(self.name("e"), elements, offset, join)

    def join(self, block, expressions):
        """Sometimes an UNNEST beside the source; gives the expressions over both."""
        if isinstance(block.source, Array) or not self.chance(0.12):
            return expressions
        kind = self.dice.choice([", ", " CROSS JOIN ", " JOIN ", " LEFT JOIN "])
        array = self.array(expressions, kind)
        block.joins.append(array)
        columns = [*expressions.columns, *array.columns]
        both = Expressions(self.dice, columns, expressions.keys)
        array.sqlite()
        if kind == " JOIN ":  # a LEFT JOIN with UNNEST has no condition: docs/reference/sql.md
            array.condition = both.condition(1)
        return both

    # --- a block ---

    def query(self):
        if self.chance(0.03):
            return self.failing()
        return self.block(self.dice.choice([0, 0, 1, 1, 2]), is_outer=True)

    def block(self, depth, is_outer=False):
        block = Block(self.source(depth))
        source = block.source
        columns = source.columns_out() if isinstance(source, Block) else source.columns
        if isinstance(source, Source) and not source.is_view and self.chance(0.1):
            block.alias = self.name("t")
        expressions = Expressions(self.dice, [*columns, *source.extra], source.keys)
        if isinstance(source, Array):
            source.sqlite()
        expressions = self.join(block, expressions)
        self.set_where(block, expressions)
        if self.chance(0.3):
            self.set_groups(block, expressions, is_outer)
        else:
            self.set_items(block, expressions, columns)
        if not block.is_grouped or block.group_keys:
            self.set_order(block, expressions, is_outer)
        self.set_form(block)
        return block

    def set_form(self, block):
        uses_source = any(each.node is not None for each in block.order)
        if not uses_source and block.hidden is None and self.chance(0.3):
            block.form = PIPE
            block.pipe_style = self.dice.choice(PIPE_STYLES)
        elif not block.is_total and self.chance(0.1):
            block.by_star = True
        block.groups_by = self.dice.choice(["text", "text", "name", "place"])
        refs = [*block.group_keys, *block.aggregates]
        if not block.by_star and len(block.items) == len(refs) and self.chance(0.2):
            block.groups_by = "all"
        if any(not key.target.has_column() for key in block.group_keys):
            block.groups_by = "text"

    def set_where(self, block, expressions):
        if expressions.key is not None and self.chance(0.4):
            block.where = expressions.key_condition()
            if self.chance(0.2):
                block.where = Node(op.AND_, [block.where, expressions.condition(1)], BOOL)
        elif self.chance(0.45):
            condition = expressions.condition(2)
            if self.chance(0.4):  # most conditions are true of few rows
                condition = Node(op.OR_, [condition, expressions.condition(1)], BOOL)
            block.where = condition

    def set_items(self, block, expressions, columns):
        windows = self.chance(0.2)
        uniques = [each for each in columns if each.is_unique]
        block.is_distinct = not windows and self.chance(0.15)
        count = self.dice.choice([1, 1, 2] if block.is_distinct else [1, 2, 3, 4])
        for _ in range(count):
            block.items.append(expressions.any(self.dice.choice([0, 1, 2, 2, 3])))
        if windows:
            unique = None if block.joins else uniques
            for _ in range(self.dice.randint(1, 2)):
                block.items.append(self.window(expressions, unique))
        if uniques and not block.is_distinct and self.chance(0.6):
            block.items.insert(self.dice.randint(0, count), self.dice.choice(uniques))
        block.names = [self.name() for _ in block.items]
        if windows and self.chance(0.25):
            columns = block.columns_out()
            if self.chance(0.5):
                block.hidden = Hidden(self.window(expressions, unique), self.name("z"))
                columns = [block.hidden]
            outputs = Expressions(self.dice, columns)
            block.qualify = outputs.with_column(lambda: outputs.condition(1))
            if block.qualify.type != BOOL:
                block.qualify = Node(op.IS_NOT_NULL, [block.qualify], BOOL)

    # --- groups ---

    def set_groups(self, block, expressions, is_outer):
        block.is_grouped = True
        keys = self.dice.choice([0, 1, 1, 1, 2])
        for _ in range(keys):
            depth = self.dice.choice([0, 0, 1, 2])
            node = expressions.with_column(lambda d=depth: expressions.any(d))
            block.group_keys.append(Ref(node, self.name("k")))
        for _ in range(self.dice.randint(0 if keys else 1, 3)):
            if is_outer and not keys and self.chance(0.2):
                block.is_inexact = True
                node = self.inexact_of(expressions)
            else:
                node = self.aggregate(expressions)
            block.aggregates.append(Ref(node, self.name("a")))
        if not block.aggregates:  # the pipe form wants one
            block.aggregates.append(Ref(Node(op.COUNT_ALL, [], INT, MAX_ROWS), self.name("a")))
        refs = [*block.group_keys, *block.aggregates]
        block.items = self.dice.sample(refs, len(refs))
        over = Expressions(self.dice, refs)
        if self.chance(0.3) and not block.is_inexact:
            block.items.append(over.any(1))
        block.names = [self.name() for _ in block.items]
        if keys and self.chance(0.3):
            block.having = over.with_column(lambda: over.condition(1))
            if block.having.type != BOOL:
                block.having = Node(op.IS_NOT_NULL, [block.having], BOOL)

    def inexact_of(self, expressions):
        """Rounded by the way, so that the order of the rows shows in the last digits."""
        kind = self.dice.choice([op.SUM, op.AVG])
        return Node(kind, [expressions.float(2)], FLOAT, 2**200)

    def aggregate(self, expressions):
        make = self.dice.choice([
            self.count_of, self.count_of, self.sum_of, self.sum_of, self.extreme_of,
            self.extreme_of, self.average_of, self.logical_of, self.bits_of, self.texts_of,
        ])  # fmt: skip
        return make(expressions)

    def count_of(self, expressions):
        kind = self.dice.choice([op.COUNT_ALL, op.COUNT, op.COUNT_DISTINCT, op.COUNTIF,
                                 op.AGG_LENGTH])  # fmt: skip
        if kind is op.COUNT_ALL:
            args = []
        else:
            args = [expressions.condition(1) if kind is op.COUNTIF else expressions.any(1)]
        return Node(kind, args, INT, MAX_ROWS)

    def summed(self, expressions):
        """What has exact sums, of whatever order."""
        if self.chance(0.6):
            return expressions.integer(2, 2**40)
        node = expressions.float(1)
        if node.scale is None or node.bound * 2**node.scale >= 2**40:
            return expressions.as_float(0)
        return node

    def sum_of(self, expressions, kinds=(op.SUM, op.SUM, op.SUM_DISTINCT)):
        node = self.summed(expressions)
        kind = self.dice.choice(kinds)
        return Node(kind, [node], node.type, node.bound * MAX_ROWS, node.scale)

    def average_of(self, expressions, kinds=(op.AVG, op.AVG, op.AVG_DISTINCT)):
        node = self.summed(expressions)
        return Node(self.dice.choice(kinds), [node], FLOAT, node.bound)

    def extreme_of(self, expressions, kinds=(op.MIN, op.MIN, op.MAX, op.MAX, op.ANY_VALUE,
                                             op.AGG_FIRST, op.AGG_LAST)):  # fmt: skip
        node = expressions.any(1)
        return Node(self.dice.choice(kinds), [node], node.type, node.bound, node.scale)

    def logical_of(self, expressions):
        kind = self.dice.choice([op.LOGICAL_AND, op.LOGICAL_OR])
        return Node(kind, [expressions.condition(1)], BOOL)

    def bits_of(self, expressions):
        node = expressions.integer(1)
        return Node(self.dice.choice(op.BIT_AGGREGATES), [node], INT, 2**63)

    def texts_of(self, expressions):
        """Rows of the same key and value are the same to it."""
        is_distinct = self.chance(0.3)
        limit = self.dice.choice([0, 0, 0, 3])
        kind = op.string_agg_op(self.dice.choice(["", " DESC", " ASC"]), limit, is_distinct,
                                self.chance(0.2))  # fmt: skip
        key = expressions.with_column(lambda: expressions.any(1))
        delimiter = tree.string(self.dice.choice([",", "", "; ", "é"]))
        return Node(kind, [expressions.string(1), delimiter, key], STRING)

    # --- windows ---

    def window(self, expressions, uniques):
        """`uniques`: columns that tell a row from all others."""
        partitions = []
        if self.chance(0.6):
            count = self.dice.choice([1, 1, 2])
            partitions = [expressions.with_column(lambda: expressions.any(
                self.dice.choice([0, 0, 1]))) for _ in range(count)]  # fmt: skip
        kind = self.dice.choice([TOTAL, PEERS]) if uniques else PEERS
        make = self.window_of_rows if kind == TOTAL else self.window_of_peers
        function, args, orders, frame, shape = make(expressions)
        if kind == TOTAL:
            orders.append(self.dice.choice(uniques))
        directions = [self.dice.choice(["", " ASC", " DESC"]) + self.dice.choice(NULLS)
                      for _ in orders]  # fmt: skip
        over = Window(function, len(args), len(partitions), directions, frame).op()
        return Node(over, [*args, *partitions, *orders], *shape)

    def orders(self, expressions, least):
        count = self.dice.randint(least, 2)
        return [expressions.with_column(lambda: expressions.any(self.dice.choice([0, 0, 1])))
                for _ in range(count)]  # fmt: skip

    def window_of_rows(self, expressions):
        """What tells the rows of a frame apart."""
        orders, frame = self.orders(expressions, 0), ""
        kind = self.dice.choice(["number", "tile", "first", "first", "nth", "beside", "beside",
                                 "sum", "sum"])  # fmt: skip
        if kind == "number":
            return ROW_NUMBER, [], orders, frame, (INT, MAX_ROWS)
        if kind == "tile":
            return NTILE, [tree.integer(self.dice.randint(1, 5))], orders, frame, (INT, 5)
        if kind == "sum":
            node, frame = self.window_aggregate(expressions), f"ROWS {self.dice.choice(FRAMES)}"
            return node.op, node.args, orders, frame, (node.type, node.bound, node.scale)
        value = expressions.any(1)
        shape = (value.type, value.bound, value.scale)
        if kind == "beside":
            args = [value]
            if self.chance(0.5):
                args.append(tree.integer(self.dice.randint(0, 3)))
                default = self.constant(value.type)
                if self.chance(0.4):
                    args.append(default)
                    bound = max(value.bound, default.bound)
                    scale = None if value.scale is None else max(value.scale, default.scale or 0)
                    shape = (value.type, bound, scale)
            return self.dice.choice(NEIGHBOURS), args, orders, frame, shape
        if self.chance(0.7):
            frame = f"ROWS {self.dice.choice(FRAMES)}"
        if kind == "nth":
            return NTH_VALUE, [value, tree.integer(self.dice.randint(1, 3))], orders, frame, shape
        return self.dice.choice(FIRSTS), [value], orders, frame, shape

    def constant(self, type):
        return {
            BOOL: lambda: tree.boolean(True), INT: lambda: tree.integer(-1),
            FLOAT: lambda: tree.float_(0.5, 1), BYTES: lambda: tree.bytes_(b"\xff"),
            STRING: lambda: tree.string(self.dice.choice(WORDS)),
        }[type]()  # fmt: skip

    def window_of_peers(self, expressions):
        """What is the same for rows that the order does not tell apart."""
        kind = self.dice.choice(["rank", "share", "sum", "sum", "sum", "range"])
        if kind == "rank":
            return self.dice.choice(RANKS), [], self.orders(expressions, 1), "", (INT, MAX_ROWS)
        if kind == "share":
            return self.dice.choice(SHARES), [], self.orders(expressions, 1), "", (FLOAT, 1)
        node = self.window_aggregate(expressions)
        orders, frame = self.orders(expressions, 0), ""
        if kind == "range":
            order = expressions.with_column(lambda: expressions.integer(1, 2**40))
            if order.type == INT and order.bound <= 2**40:
                orders, frame = [order], f"RANGE {self.dice.choice(RANGES_OF_NUMBERS)}"
        elif orders and self.chance(0.5):
            frame = f"RANGE {self.dice.choice(RANGES)}"
        return node.op, node.args, orders, frame, (node.type, node.bound, node.scale)

    def window_aggregate(self, expressions):
        make = self.dice.choice([
            lambda: Node(op.COUNT_ALL, [], INT, MAX_ROWS),
            lambda: Node(op.COUNT, [expressions.any(1)], INT, MAX_ROWS),
            lambda: Node(op.COUNTIF, [expressions.condition(1)], INT, MAX_ROWS),
            lambda: self.sum_of(expressions, (op.SUM,)),
            lambda: self.average_of(expressions, (op.AVG,)),
            lambda: self.extreme_of(expressions, (op.MIN, op.MAX)),
            lambda: self.logical_of(expressions),
        ])  # fmt: skip
        return make()

    # --- the end ---

    def order_by(self, index=None, **fields):
        direction = self.dice.choice(["", " ASC", " DESC"])
        return Order(index, direction=direction, nulls=self.dice.choice(NULLS), **fields)

    def set_order(self, block, expressions, is_outer):
        """A total order if there is a LIMIT, or if it is to be compared."""
        columns = block.columns_out()
        if not self.chance(0.55 if is_outer else 0.3):
            return
        uniques = [at for at, each in enumerate(columns) if each.is_unique]
        plain = not block.is_grouped and not block.is_distinct and block.qualify is None
        source_uniques = [each for each in expressions.columns if each.is_unique]
        by_place = self.chance(0.2)
        is_scan = isinstance(block.source, Source) and not block.source.is_view and not any(
            feature.endswith(" OVER") for item in block.items for feature in item.features()
        )
        if plain and is_scan and expressions.key and not block.joins and self.chance(0.15):
            block.order, block.hides_order = [Order(None, expressions.key)], True
            block.is_total, block.limit = True, self.dice.choice([1, 3, 10, 40])
            return
        if plain and source_uniques and not block.joins and self.chance(0.6):
            if self.chance(0.4):
                node = expressions.with_column(lambda: expressions.any(1))
                block.order.append(self.order_by(node=node))
            last = self.dice.choice(source_uniques)
            block.order.append(self.order_by(node=last))
        elif uniques and self.chance(0.5):
            block.order = [self.order_by(self.dice.choice(uniques), by_place=by_place)]
        else:
            places = self.dice.sample(range(len(columns)), len(columns))
            block.order = [self.order_by(at, by_place=by_place) for at in places]
        block.is_total = True
        if self.chance(0.5):
            block.limit = self.dice.choice([1, 2, 5, 10, 20, 50])
            if self.chance(0.01):
                block.limit = 0
            if self.chance(0.3):
                block.offset = self.dice.choice([0, 1, 3, 10])


    # --- what may fail ---

    def failing(self):
        """Operators that may fail, under nothing that could leave them out; over a table's rows
        that only their keys choose."""
        source = self.dice.choice([each for each in self.sources if not each.is_view])
        block = Block(source)
        block.may_fail = True
        expressions = Expressions(self.dice, source.columns, source.keys)
        if self.chance(0.8):
            block.where = expressions.key_between(*sorted(
                [expressions.key_literal(), expressions.key_literal()],
                key=lambda each: each.sqlite))  # fmt: skip
        if self.chance(0.15):
            block.is_grouped = True
            total = Node(op.STRICT_SUM, [self.risky_integer(expressions, 1)], INT)
            block.aggregates = [Ref(total, self.name("a"))]
            block.items = list(block.aggregates)
        else:
            block.items = [self.risky(expressions) for _ in range(self.dice.randint(1, 2))]
        block.names = [self.name() for _ in block.items]
        return block

    def risky(self, expressions):
        kind = self.dice.choice(["integer", "integer", "divide", "text", "substr"])
        if kind == "integer":
            return self.risky_integer(expressions, 2)
        if kind == "divide":
            args = [self.risky_integer(expressions, 0), self.risky_integer(expressions, 0)]
            return Node(op.STRICT_DIVIDE, args, FLOAT)
        if kind == "text":
            return Node(op.STRICT_TEXT, [self.dice.choice(expressions.by_type[BYTES])], STRING)
        args = [expressions.string(0), self.risky_integer(expressions, 0),
                self.risky_integer(expressions, 0)]  # fmt: skip
        return Node(op.STRICT_SUBSTR, args, STRING)

    def risky_integer(self, expressions, depth):
        if depth <= 0:
            return self.dice.choice(expressions.by_type[INT])
        name = self.dice.choice(list(op.STRICT_INT))
        first = self.risky_integer(expressions, depth - 1)
        if name in ("negate", "abs"):
            return Node(op.STRICT_INT[name], [first], INT)
        if name == "cast":
            type = self.dice.choice([STRING, FLOAT])  # of a literal, it is refused unseen
            return Node(op.STRICT_INT[name], [self.dice.choice(expressions.by_type[type])], INT)
        return Node(op.STRICT_INT[name], [first, self.risky_integer(expressions, depth - 1)], INT)
