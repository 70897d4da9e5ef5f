"""Random expressions of a type over the columns in sight, none of which may fail."""

from differential import operators as op
from differential import tree
from differential.tables import EXTREMES, LETTERS, WORDS
from differential.tree import BOOL, BYTES, FLOAT, INT, STRING, TYPES, Node

ALL_INTS = 2**63
EXACT_IN_FLOAT = 2**53
LIKE_PATTERNS = ["%", "", "a%", "%b", "%a%", "_", "__", "_%", "\\%%", "%\\_%", "a_c", "%é%", "A%",
                 "%,%", "\\a%"]  # fmt: skip
REGEXES = ["a", "^a", "b$", "[a-c]+", "a|é", "[^a-z]", "x?y", "^$", "[0-9]{2}", "(?i)ab", "."]
FORMATS = ["%d|%s", "%05d:%s", "%+d %s", "%-4d.%s", "%d%%%s"]


class Expressions:
    """`columns`: leaves. `keys`: what _key may be compared with, if it is in sight."""

    def __init__(self, dice, columns, keys=()):
        self.dice = dice
        self.columns = list(columns)
        self.keys = keys
        self.by_type = {type: [c for c in self.columns if c.type == type] for type in TYPES}
        known = [each for each in self.columns if isinstance(each, tree.Leaf) and each.is_key]
        self.key = dice.choice(known) if known and keys else None

    def chance(self, share):
        return self.dice.random() < share

    def make(self, type, depth=2):
        return {
            BOOL: self.condition, INT: self.integer, FLOAT: self.float,
            STRING: self.string, BYTES: self.bytes,
        }[type](depth)  # fmt: skip

    def any(self, depth=2):
        return self.make(self.dice.choices(TYPES, [2, 5, 3, 4, 2])[0], depth)

    def with_column(self, make):
        """Tries a few times for an expression that is not constant; a column otherwise."""
        for _ in range(4):
            node = make()
            if node.has_column():
                return node
        return self.dice.choice(self.columns)

    def column(self, type=None):
        columns = self.columns if type is None else self.by_type[type]
        return self.dice.choice(columns) if columns else None

    def leaf(self, type, literal):
        columns = self.by_type[type]
        if columns and self.chance(0.8):
            return self.dice.choice(columns)
        if self.chance(0.06):
            return tree.null(type)
        return literal()

    # --- of any type: NULLs and choices ---

    def choice(self, type, depth, make):
        """CASE and its like: `make` gives an operand of the type."""
        kind = self.dice.choice([op.IF, op.CASE, op.CASE_OF, op.IFNULL, op.COALESCE, op.NULLIF])
        if kind is op.IF:
            values = [make(), make()]
            args = [self.condition(depth - 1), *values]
        elif kind is op.CASE:
            arms = self.dice.randint(1, 3)
            values = [make() for _ in range(arms + 1)]
            args = [each for value in values[:-1] for each in (self.condition(depth - 1), value)]
            args.append(values[-1])
        elif kind is op.CASE_OF:
            of = self.dice.choice([INT, STRING])
            arms = self.dice.randint(1, 3)
            values = [make() for _ in range(arms)]
            args = [self.make(of, depth - 1)]
            args += [each for value in values for each in (self.make(of, 0), value)]
        elif kind is op.COALESCE:
            values = [make() for _ in range(self.dice.randint(2, 4))]
            args = [*values]
            if self.chance(0.1):
                args.insert(0, tree.bare_null(type))
        else:
            values = [make(), make()]
            args = values
        return self.joined(kind, args, type, values)

    def joined(self, kind, args, type, values):
        scales = [value.scale for value in values]
        scale = None if None in scales else max(scales)
        return Node(kind, args, type, max(value.bound for value in values), scale)

    # --- integers ---

    def integer_literal(self, limit=ALL_INTS):
        value = self.dice.choice([0, 1, -1, 2, 3, 7, 10, -4, 100, 255])
        if self.chance(0.15):
            value = self.dice.choice(EXTREMES)
        return tree.integer(value if abs(value) <= limit else 1)

    def integer_leaf(self, limit):
        columns = [each for each in self.by_type[INT] if each.bound <= limit]
        if columns and self.chance(0.8):
            return self.dice.choice(columns)
        return tree.null(INT) if self.chance(0.06) else self.integer_literal(limit)

    def integer(self, depth, limit=ALL_INTS):
        """`limit`: of the absolute value."""
        if depth <= 0 or self.chance(0.2):
            return self.integer_leaf(limit)
        for _ in range(3):
            node = self.dice.choice(INTEGERS)(self, depth - 1)
            if node is not None and node.bound <= limit:
                return node
        return self.integer_leaf(limit)

    def arithmetic(self, depth):
        kind = self.dice.choice([op.ADD, op.SUBTRACT, op.MULTIPLY])
        a, b = self.integer(depth, 2**61), self.integer(depth, 2**61)
        bound = a.bound * b.bound if kind is op.MULTIPLY else a.bound + b.bound
        return Node(kind, [a, b], INT, bound) if bound < ALL_INTS else None

    def safe_arithmetic(self, depth):
        kind = self.dice.choice([op.SAFE_ADD, op.SAFE_SUBTRACT, op.SAFE_MULTIPLY, op.SAFE_NEGATE])
        args = [self.integer(depth) for _ in range(1 if kind is op.SAFE_NEGATE else 2)]
        return Node(kind, args, INT, ALL_INTS)

    def division(self, depth):
        kind = self.dice.choice([op.DIV, op.MOD])
        a, b = self.integer(depth, ALL_INTS - 1), self.integer(depth)
        return Node(kind, [a, b], INT, a.bound)

    def signs(self, depth):
        kind = self.dice.choice([op.NEGATE, op.ABS, op.SIGN, op.PLUS_SIGN])
        a = self.integer(depth, ALL_INTS - 1)
        return Node(kind, [a], INT, 1 if kind is op.SIGN else a.bound)

    def bits(self, depth):
        kind = self.dice.choice([op.BITS_AND, op.BITS_OR, op.BITS_XOR])
        return Node(kind, [self.integer(depth), self.integer(depth)], INT, ALL_INTS)

    def other_bits(self, depth):
        a = self.integer(depth)
        kind = self.dice.choice([op.NEGATE_BITS, op.BIT_COUNT, op.SHIFT_LEFT, op.SHIFT_RIGHT])
        if kind is op.BIT_COUNT:
            return Node(kind, [a], INT, 64)
        if kind is op.NEGATE_BITS:
            return Node(kind, [a], INT, ALL_INTS)
        return Node(kind, [a, tree.integer(self.dice.choice([0, 1, 3, 31, 63, 64, 70]))], INT,
                    ALL_INTS)  # fmt: skip

    def extreme(self, depth):
        kind = self.dice.choice([op.GREATEST, op.LEAST])
        args = [self.integer(depth) for _ in range(self.dice.randint(2, 3))]
        return self.joined(kind, args, INT, args)

    def measure(self, depth):
        kind = self.dice.choice([op.LENGTH, op.CHAR_LENGTH, op.BYTE_LENGTH, op.STRPOS, op.UNICODE])
        if kind in (op.LENGTH, op.BYTE_LENGTH) and self.chance(0.3):
            return Node(kind, [self.bytes(depth)], INT, 1 << 16)
        args = [self.string(depth)] + ([self.string(0)] if kind is op.STRPOS else [])
        return Node(kind, args, INT, 1 << 21)

    def position(self, depth):
        part = tree.string(self.dice.choice(["a", "b", "é", ",", "ab", "日"]))
        args = [self.string(depth), part]
        if self.chance(0.5):
            return Node(op.INSTR, args, INT, 1 << 16)
        args += [tree.integer(self.dice.choice([1, 2, 4, -1, -2])), tree.integer(
            self.dice.randint(1, 3))]  # fmt: skip
        return Node(op.INSTR_4, args, INT, 1 << 16)

    def cast_to_integer(self, depth):
        kind = self.dice.choice([op.BOOL_TO_INT, op.FLOAT_TO_INT, op.STRING_TO_INT])
        if kind is op.BOOL_TO_INT:
            return Node(kind, [self.condition(depth)], INT, 1)
        if kind is op.STRING_TO_INT:
            return Node(kind, [self.string(depth)], INT, ALL_INTS)
        a = self.float(depth)
        return Node(kind, [a], INT, int(a.bound) + 1) if a.bound < 2**40 else None

    def choice_of_integers(self, depth):
        return self.choice(INT, depth, lambda: self.integer(depth))

    # --- floats ---

    def float_literal(self):
        return tree.float_(self.dice.choice([0.0, 0.5, 1.0, -1.0, 2.0, -2.25, 10.125, 1000.0]), 3)

    def exact(self, bound, scale):
        """The scale, if every such value is held exactly."""
        is_exact = scale is not None and bound * 2**scale < 2**50
        return scale if is_exact else None

    def float(self, depth):
        if depth > 0 and self.chance(0.8):
            for _ in range(3):
                node = self.dice.choice(FLOATS)(self, depth - 1)
                if node is not None and node.bound < 2**200:
                    return node
        return self.leaf(FLOAT, self.float_literal)

    def as_float(self, depth):
        a = self.integer(depth, 2**40)
        return Node(op.INT_TO_FLOAT, [a], FLOAT, a.bound, 0)

    def float_arithmetic(self, depth):
        kind = self.dice.choice([op.ADD, op.SUBTRACT, op.MULTIPLY])
        a = self.float(depth)
        b = self.integer(depth, 2**40) if self.chance(0.2) else self.float(depth)
        scales = (a.scale, 0 if b.type == INT else b.scale)
        is_exact = None not in scales
        if kind is op.MULTIPLY:
            bound, scale = a.bound * b.bound, sum(scales) if is_exact else None
        else:
            bound, scale = a.bound + b.bound, max(scales) if is_exact else None
        args = [a, b] if self.chance(0.5) else [b, a]
        return Node(kind, args, FLOAT, bound, self.exact(bound, scale))

    def float_division(self, depth):
        """The divisor is of few bits, so that the quotient is not too large."""
        kind = self.dice.choice([op.DIVIDE, op.SAFE_DIVIDE])
        a = self.float(depth) if self.chance(0.6) else self.integer(depth)
        b = self.float(depth) if self.chance(0.6) else self.integer(depth)
        scale = 0 if b.type == INT else b.scale
        return None if scale is None else Node(kind, [a, b], FLOAT, a.bound * 2**scale)

    def rounding(self, depth):
        kind = self.dice.choice([op.ROUND, op.CEIL, op.FLOOR, op.TRUNC])
        a = self.integer(depth, 2**40) if self.chance(0.2) else self.float(depth)
        if a.bound >= 2**40:
            return None
        scale = 0 if a.type == INT else a.scale
        if kind is op.ROUND and scale is not None and scale <= 3 and self.chance(0.5):
            digits = tree.integer(self.dice.randint(0, 2))
            return Node(kind, [a, digits], FLOAT, a.bound + 1) if a.bound < 2**20 else None
        return Node(kind, [a], FLOAT, a.bound + 1, 0)

    def float_signs(self, depth):
        kind = self.dice.choice([op.NEGATE, op.ABS, op.SIGN_FLOAT, op.PLUS_SIGN, op.SQRT])
        a = self.float(depth)
        if kind is op.SQRT:
            return Node(kind, [a], FLOAT, a.bound + 1)
        if kind is op.SIGN_FLOAT:
            return Node(kind, [a], FLOAT, 1, 0)
        return Node(kind, [a], FLOAT, a.bound, a.scale)

    def float_extreme(self, depth):
        kind = self.dice.choice([op.GREATEST, op.LEAST])
        args = [self.float(depth) for _ in range(self.dice.randint(2, 3))]
        return self.joined(kind, args, FLOAT, args)

    def choice_of_floats(self, depth):
        made = []

        def operand():
            """Integers beside a float are made floats."""
            if made and self.chance(0.2):
                a = self.integer(depth, 2**40)
                return Node(op.COERCED, [a], FLOAT, a.bound, 0)
            made.append(self.float(depth))
            return made[-1]

        return self.choice(FLOAT, depth, operand)

    # --- texts ---

    def string_literal(self):
        if self.chance(0.5):
            return tree.string(self.dice.choice(WORDS))
        return tree.string("".join(self.dice.choices(LETTERS, k=self.dice.randint(0, 3))))

    def string(self, depth):
        if depth > 0 and self.chance(0.75):
            node = self.dice.choice(STRINGS)(self, depth - 1)
            if node is not None:
                return node
        return self.leaf(STRING, self.string_literal)

    def concat(self, depth):
        if self.chance(0.6):
            return Node(op.CONCAT_SIGN, [self.string(depth), self.string(depth)], STRING)
        args = [self.string(depth) for _ in range(self.dice.randint(2, 4))]
        return Node(op.CONCAT, args, STRING)

    def part_of(self, make, type):
        """SUBSTR, LEFT, RIGHT of texts and bytes."""
        text, place, length = make(), self.dice.randint(1, 4), tree.integer(self.dice.randint(0, 4))
        substr, left = (op.SUBSTR_BYTES, op.LEFT_BYTES) if type == BYTES else (op.SUBSTR, op.LEFT)
        kind = self.dice.choice([substr, substr, op.SUBSTR_ANY, left, op.RIGHT])
        if kind in (left, op.RIGHT):
            return Node(kind, [text, length], type)
        if kind is op.SUBSTR_ANY:
            where = self.integer(1, 1 << 40)
            return Node(kind, [text, where, length][: self.dice.randint(2, 3)], type)
        if self.chance(0.3):
            return Node(kind, [text, tree.integer(-place)], type)
        return Node(kind, [text, tree.integer(place), length][: self.dice.randint(2, 3)], type)

    def substring(self, depth):
        return self.part_of(lambda: self.string(depth), STRING)

    def other_case(self, depth):
        kind = self.dice.choice([op.UPPER, op.LOWER, op.REVERSE])
        return Node(kind, [self.string(depth)], STRING)

    def trimmed(self, depth):
        text = self.string(depth)
        if self.chance(0.5):
            return Node(self.dice.choice(op.SPACE_TRIMS), [text], STRING)
        signs = tree.string(self.dice.choice(["a", "ab", " ", "éa", "", "%_"]))
        return Node(self.dice.choice([op.TRIM, op.LTRIM, op.RTRIM]), [text, signs], STRING)

    def replaced(self, depth):
        return Node(op.REPLACE, [self.string(depth), self.string_literal(), self.string(0)], STRING)

    def padded(self, depth):
        kind = self.dice.choice([op.LPAD, op.RPAD, op.REPEAT])
        args = [self.string(depth), tree.integer(self.dice.choice([0, 1, 2, 5]))]
        if kind is not op.REPEAT:
            args.append(tree.string(self.dice.choice([" ", "ab", "é"])))
        return Node(kind, args, STRING)

    def split(self, depth):
        delimiter = tree.string(self.dice.choice([",", "a", "", "ab", " "]))
        index = tree.integer(self.dice.choice([0, 0, 1, 2]))
        return Node(op.SPLIT, [self.string(depth), delimiter, index], STRING)

    def translated(self, depth):
        args = [tree.string(self.dice.choice(["a", "abé", ",a"])), tree.string(
            self.dice.choice(["", "x", "éb"]))]  # fmt: skip
        return Node(op.TRANSLATE, [self.string(depth), *args], STRING)

    def formatted(self, depth):
        form = tree.string(self.dice.choice(FORMATS))
        return Node(op.FORMAT, [form, self.integer(depth), self.string(0)], STRING)

    def cast_to_string(self, depth):
        kind = self.dice.choice([op.INT_TO_STRING, op.BOOL_TO_STRING, op.TO_HEX,
                                 op.BYTES_TO_STRING])  # fmt: skip
        if kind is op.INT_TO_STRING:
            return Node(kind, [self.integer(depth)], STRING)
        if kind is op.BOOL_TO_STRING:
            return Node(kind, [self.condition(depth)], STRING)
        return Node(kind, [self.bytes(depth)], STRING)

    def regexp_replaced(self, depth):
        args = [tree.string(self.dice.choice(["a", "[a-c]", "b|é", "^a", "[0-9]+"])),
                tree.string(self.dice.choice(["", "x", "é-"]))]  # fmt: skip
        return Node(op.REGEXP_REPLACE, [self.string(depth), *args], STRING)

    def choice_of_strings(self, depth):
        if self.chance(0.3):
            args = [self.string(depth) for _ in range(2)]
            return Node(self.dice.choice([op.GREATEST, op.LEAST]), args, STRING)
        return self.choice(STRING, depth, lambda: self.string(depth))

    # --- bytes ---

    def bytes_literal(self):
        return tree.bytes_(bytes(self.dice.choices([0, 97, 98, 255], k=self.dice.randint(0, 2))))

    def bytes(self, depth):
        if depth > 0 and self.chance(0.6):
            return self.dice.choice(BYTESES)(self, depth - 1)
        return self.leaf(BYTES, self.bytes_literal)

    def bytes_concat(self, depth):
        kind = self.dice.choice([op.CONCAT_SIGN_BYTES, op.CONCAT_BYTES])
        return Node(kind, [self.bytes(depth), self.bytes(depth)], BYTES)

    def bytes_part(self, depth):
        return self.part_of(lambda: self.bytes(depth), BYTES)

    def bytes_of(self, depth):
        kind = self.dice.choice([op.STRING_TO_BYTES, op.REVERSE, op.FROM_HEX, op.UPPER_BYTES,
                                 op.SHA1, op.MD5])  # fmt: skip
        if kind is op.STRING_TO_BYTES or (kind in (op.SHA1, op.MD5) and self.chance(0.5)):
            return Node(kind, [self.string(depth)], BYTES)
        if kind is op.UPPER_BYTES:  # SQLite's stops at a zero: texts have none
            return Node(kind, [Node(op.STRING_TO_BYTES, [self.string(depth)], BYTES)], BYTES)
        return Node(kind, [self.bytes(depth)], BYTES)

    def choice_of_bytes(self, depth):
        return self.choice(BYTES, depth, lambda: self.bytes(depth))

    # --- conditions ---

    def condition(self, depth):
        if depth <= 0:
            return self.simple_condition()
        return self.dice.choice(CONDITIONS)(self, depth - 1)

    def simple_condition(self):
        if self.by_type[BOOL] and self.chance(0.4):
            return self.dice.choice(self.by_type[BOOL])
        if self.chance(0.04):
            return tree.null(BOOL) if self.chance(0.3) else tree.boolean(self.chance(0.5))
        return self.comparison(0)

    def operands(self, depth, count, shallow=False):
        """So many expressions that may be compared. `shallow`: all but the first."""
        type = self.dice.choices(TYPES, [1, 6, 3, 4, 3])[0]
        depths = [depth] + [0 if shallow else depth] * (count - 1)
        if type == FLOAT and self.chance(0.3):
            mixed = [self.integer(each, EXACT_IN_FLOAT) for each in depths]
            mixed[self.dice.randrange(count)] = self.float(depth)
            return mixed
        operands = [self.make(type, each) for each in depths]
        if self.by_type[type] and not operands[0].has_column():
            operands[0] = self.column(type)
        return operands

    def comparison(self, depth):
        operands = self.operands(depth, 2)
        if self.chance(0.25):
            kind = self.dice.choice([op.DISTINCT_FROM, op.NOT_DISTINCT_FROM])
        else:
            kind = self.dice.choice(op.COMPARISONS)
        return Node(kind, operands, BOOL)

    def pairs(self, depth):
        kind = self.dice.choice([op.SAME_PAIRS, op.OTHER_PAIRS, op.PAIR_IN])
        types = self.dice.choices(TYPES, k=2)
        count = 2 if kind is op.PAIR_IN else 1
        args = [self.column(type) or self.make(type, depth) for type in types]
        args += [self.make(type, 0) for _ in range(count) for type in types]
        return Node(kind, args, BOOL)

    def between(self, depth):
        kind = self.dice.choice([op.BETWEEN, op.NOT_BETWEEN])
        return Node(kind, self.operands(depth, 3), BOOL)

    def in_list(self, depth):
        kind = self.dice.choice([op.IN, op.NOT_IN, op.IN_UNNEST, op.NOT_IN_UNNEST])
        args = self.operands(depth, self.dice.randint(2, 5), shallow=True)
        if args[0].type == FLOAT and all(each.type == INT for each in args[1:]):
            kind = op.IN  # arrays of integers are not coerced
        if self.chance(0.15):
            args.insert(1, tree.bare_null(args[-1].type))
        return Node(kind, args, BOOL)

    def is_null(self, depth):
        kind = self.dice.choice([op.IS_NULL, op.IS_NOT_NULL])
        return Node(kind, [self.any(depth)], BOOL)

    def is_true(self, depth):
        return Node(self.dice.choice(op.IS_TESTS), [self.condition(depth)], BOOL)

    def negated(self, depth):
        return Node(op.NOT_, [self.condition(depth)], BOOL)

    def both(self, depth):
        kind = self.dice.choice([op.AND_, op.OR_])
        return Node(kind, [self.condition(depth), self.condition(depth)], BOOL)

    def like(self, depth):
        text = self.string(depth)
        patterns = [tree.string(self.dice.choice(LIKE_PATTERNS)) for _ in range(3)]
        if self.chance(0.2):
            kind = self.dice.choice([op.LIKE_ANY, op.LIKE_ALL])
            return Node(kind, [text, *patterns[: self.dice.randint(1, 3)]], BOOL)
        return Node(self.dice.choice([op.LIKE, op.NOT_LIKE]), [text, patterns[0]], BOOL)

    def begins(self, depth):
        kind = self.dice.choice([op.STARTS_WITH, op.ENDS_WITH])
        if self.chance(0.3):
            kind = op.STARTS_WITH_BYTES if kind is op.STARTS_WITH else kind
            return Node(kind, [self.bytes(depth), self.bytes(0)], BOOL)
        return Node(kind, [self.string(depth), self.string(0)], BOOL)

    def regexp(self, depth):
        args = [self.string(depth), tree.string(self.dice.choice(REGEXES))]
        return Node(op.REGEXP_CONTAINS, args, BOOL)

    def as_condition(self, depth):
        return Node(op.INT_TO_BOOL, [self.integer(depth)], BOOL)

    def choice_of_conditions(self, depth):
        return self.choice(BOOL, depth, lambda: self.condition(depth))

    # --- keys ---

    def key_literal(self):
        """A key, its beginning, or one beside it; now and then as the text that it is."""
        key = self.dice.choice(self.keys)
        key = self.dice.choice([key, key, key[:1], key[:-1], key + b"\x00", key + b"a", b"\xff"])
        literal = tree.bytes_(key)
        if self.chance(0.4) and b"\x00" not in key:
            try:
                literal.google = tree.quote_google(key.decode())
            except UnicodeDecodeError:
                pass
        return literal

    def key_condition(self, depth=2):
        """What the planner makes ranges of, and what it must not."""
        if depth > 0 and self.chance(0.55):
            return self.joined_key_conditions(depth - 1)
        low, high = sorted([self.key_literal(), self.key_literal()], key=lambda each: each.sqlite)
        if self.chance(0.05):
            low = high
        return self.dice.choice([self.compared_key, self.compared_key, self.listed_key,
                                 self.matched_key, self.key_prefix,
                                 self.key_between])(low, high)  # fmt: skip

    def joined_key_conditions(self, depth):
        if self.chance(0.2):
            return Node(op.NOT_, [self.key_condition(depth)], BOOL)
        other = self.condition(1) if self.chance(0.2) else self.key_condition(depth)
        kind = self.dice.choice([op.AND_, op.OR_, op.OR_])
        return Node(kind, [self.key_condition(depth), other], BOOL)

    def compared_key(self, low, high):
        del high
        args = [self.key, tree.bare_null(BYTES) if self.chance(0.03) else low]
        if self.chance(0.2):
            args.reverse()
        return Node(self.dice.choice(op.COMPARISONS + [op.NOT_DISTINCT_FROM]), args, BOOL)

    def key_between(self, low, high):
        if self.chance(0.05):
            low = tree.null(BYTES)
        kind = self.dice.choices([op.BETWEEN, op.NOT_BETWEEN], [3, 1])[0]
        return Node(kind, [self.key, low, high], BOOL)

    def listed_key(self, low, high):
        kinds = [op.IN, op.IN, op.IN, op.NOT_IN, op.IN_UNNEST, op.IN_UNNEST, op.NOT_IN_UNNEST]
        kind = self.dice.choice(kinds)
        items = [low, high] + [self.key_literal() for _ in range(self.dice.randint(0, 6))]
        if kind in (op.IN_UNNEST, op.NOT_IN_UNNEST):  # an array of texts is none of bytes
            items = [tree.Leaf(f"b{each.google}", each.sqlite, BYTES)
                     if each.google[0] == "'" and each.google.isascii() else each
                     for each in items]  # fmt: skip
            items = [each for each in items if each.google[0] == "b"] or [tree.bytes_(b"a")]
        return Node(kind, [self.key, *items], BOOL)

    def matched_key(self, low, high):
        del high
        prefix = bytes.fromhex(low.sqlite[2:-1]).replace(b"\\", b"\\\\")
        if self.chance(0.5):
            prefix = prefix.replace(b"%", b"\\%").replace(b"_", b"\\_")
        pattern = tree.bytes_(prefix + self.dice.choice([b"%", b"", b"_", b"%a", b"_%"]))
        kind = self.dice.choices([op.LIKE_BYTES, op.NOT_LIKE_BYTES], [4, 1])[0]
        return Node(kind, [self.key, pattern], BOOL)

    def key_prefix(self, low, high):
        del high
        return Node(op.STARTS_WITH_BYTES, [self.key, low], BOOL)


E_ = Expressions
INTEGERS = [E_.arithmetic, E_.arithmetic, E_.safe_arithmetic, E_.division, E_.signs, E_.bits,
            E_.other_bits, E_.extreme, E_.measure, E_.position, E_.cast_to_integer,
            E_.choice_of_integers, E_.choice_of_integers]  # fmt: skip
FLOATS = [E_.as_float, E_.float_arithmetic, E_.float_arithmetic, E_.float_division, E_.rounding,
          E_.float_signs, E_.float_extreme, E_.choice_of_floats]  # fmt: skip
STRINGS = [E_.concat, E_.concat, E_.substring, E_.other_case, E_.trimmed, E_.replaced, E_.padded,
           E_.split, E_.translated, E_.formatted, E_.cast_to_string, E_.regexp_replaced,
           E_.choice_of_strings, E_.choice_of_strings]  # fmt: skip
BYTESES = [E_.bytes_concat, E_.bytes_part, E_.bytes_of, E_.choice_of_bytes]
CONDITIONS = [E_.comparison, E_.comparison, E_.comparison, E_.between, E_.pairs, E_.in_list,
              E_.is_null, E_.is_true, E_.negated, E_.both, E_.both, E_.both, E_.like, E_.begins,
              E_.regexp, E_.as_condition, E_.choice_of_conditions]  # fmt: skip
