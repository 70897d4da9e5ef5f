"""Expressions as trees that print themselves twice: as GoogleSQL and as SQLite's SQL.

A node knows its type and how large its value can be, so that the generator need not make sums that
overflow, and knows which sums of floats are exact. What an operator is in either language stands in
operators.py.
"""

BOOL, INT, FLOAT, STRING, BYTES = "BOOL", "INT64", "FLOAT64", "STRING", "BYTES"
TYPES = [BOOL, INT, FLOAT, STRING, BYTES]
ANY_LEVEL = 99  # an operand that needs no parentheses whatever it is

# The three ways to print: what a grouped query calls its keys differs in the two Google forms.
CLASSIC, PIPE, SQLITE = "classic", "pipe", "sqlite"


class Op:
    """An operator or function. `google` and `sqlite`: a format for the operands' texts ("*" stands
    for all, by commas), or a function of their list. `level`: how loosely it binds in GoogleSQL, 0
    for what needs no parentheses. `needs`: the loosest that each operand may be without them."""

    def __init__(self, name, google, sqlite=None, level=0, needs=None):
        self.name = name
        self.google = google
        self.sqlite = google if sqlite is None else sqlite
        self.level = level
        self.needs = needs

    def need(self, index):
        if self.needs is None:
            return ANY_LEVEL
        return self.needs[min(index, len(self.needs) - 1)]


def fill(form, texts):
    if callable(form):
        return form(texts)
    if "{*}" in form:
        return form.replace("{*}", ", ".join(texts))
    return form.format(*texts)


class Node:
    """An operator with operands. `bound`: of numbers, the largest absolute value; `scale`: of
    floats, the bits behind the point, None if sums of them may be rounded."""

    def __init__(self, op, args, type, bound=0, scale=None):
        self.op = op
        self.args = list(args)
        self.type = type
        self.bound = bound
        self.scale = scale

    @property
    def level(self):
        return self.op.level

    def has_column(self):
        return any(arg.has_column() for arg in self.args)

    def features(self):
        yield self.op.name
        for arg in self.args:
            yield from arg.features()

    def text(self, form, full):
        """`full`: GoogleSQL with all parentheses, not only those that it needs."""
        texts = [arg.text(form, full) for arg in self.args]
        if form == SQLITE:
            text = fill(self.op.sqlite, texts)
            return f"({text})" if self.op.level else text
        for index, arg in enumerate(self.args):
            need = self.op.need(index)
            if need < ANY_LEVEL and arg.level > (0 if full else need):
                texts[index] = f"({texts[index]})"
        return fill(self.op.google, texts)


class Leaf:
    """A literal or a column."""

    args = ()

    def __init__(self, google, sqlite, type, bound=0, scale=None, level=0, column=None):
        self.google = google
        self.sqlite = sqlite
        self.type = type
        self.bound = bound
        self.scale = scale
        self.level = level
        self.column = column
        self.is_unique = False
        self.is_key = False  # of a row of the table, whatever it is called by now

    def has_column(self):
        return self.column is not None

    def features(self):
        return ()

    def text(self, form, full):
        del full
        return self.sqlite if form == SQLITE else self.google


class Ref:
    """A key or an aggregate of a grouped query: by name in the pipe form, else spelt out."""

    args = ()

    def __init__(self, target, name):
        self.target = target
        self.name = name
        self.type, self.bound, self.scale = target.type, target.bound, target.scale
        self.is_unique = False

    @property
    def level(self):
        """AND and OR take in those on their left: they would be other expressions than the key."""
        is_list = isinstance(self.target, Node) and self.target.op.name in ("AND", "OR")
        return ANY_LEVEL - 1 if is_list else self.target.level

    def has_column(self):
        return True

    def features(self):
        return ()

    def text(self, form, full):
        if form == PIPE:
            return self.name
        return self.target.text(form, full)


# --- literals ---


def quote_google(text):
    """Printable as it is, whatever stands in it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def quote_bytes(data):
    shown = "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b"'\\" else f"\\x{byte:02x}" for byte in data
    )
    return f"b'{shown}'"


def quote_sqlite(text):
    return "'" + text.replace("'", "''") + "'"


def integer(value):
    if value < 0:
        return Leaf(str(value), f"({value})", INT, -value, level=2)
    return Leaf(str(value), str(value), INT, value)


def float_(value, scale):
    text = repr(value)
    if value < 0:
        return Leaf(text, f"({text})", FLOAT, -value, scale, level=2)
    return Leaf(text, text, FLOAT, value, scale)


def string(text):
    return Leaf(quote_google(text), quote_sqlite(text), STRING)


def bytes_(data):
    return Leaf(quote_bytes(data), f"x'{data.hex()}'", BYTES)


def boolean(value):
    return Leaf(str(value).upper(), str(value).upper(), BOOL)


def null(type):
    scale = 0 if type == FLOAT else None
    return Leaf(f"CAST(NULL AS {type})", "NULL", type, 0, scale)


def bare_null(type):
    """For a place whose other operands say the type."""
    return Leaf("NULL", "NULL", type, 0, 0 if type == FLOAT else None)
