"""Functions of GoogleSQL that SQLite lacks, or has with another meaning, in Python for SQLite."""

import functools
import hashlib
import re

MAX = 2**63 - 1
MIN = -(2**63)
WHITE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)


class Fails(Exception):
    """GoogleSQL's error; SQLite says that a function raised an exception."""


def strict(function):
    """NULL if any argument is."""

    @functools.wraps(function)
    def wrapped(*arguments):
        return None if None in arguments else function(*arguments)

    return wrapped


def checked(value):
    if not isinstance(value, int) or not MIN <= value <= MAX:
        raise Fails("overflow")
    return value


def signed(value):
    value &= 2**64 - 1
    return value - 2**64 if value > MAX else value


def if_integer(value):
    """SQLite makes a float of an integer that overflows."""
    return value if isinstance(value, int) else None


def div(a, b):
    if b == 0:
        raise Fails("division by zero")
    quotient = abs(a) // abs(b)
    return checked(quotient if (a < 0) == (b < 0) else -quotient)


def mod(a, b):
    if b == 0:
        raise Fails("division by zero")
    return abs(a) % abs(b) * (-1 if a < 0 else 1)


def divide(a, b):
    if b == 0:
        raise Fails("division by zero")
    return float(a) / float(b)


def shift_right(value, count):
    if count < 0:
        raise Fails("negative shift")
    return signed((value & (2**64 - 1)) >> count)


def bit_count(value):
    if isinstance(value, int):
        return (value & (2**64 - 1)).bit_count()
    return int.from_bytes(value, "big").bit_count()


def to_int(value):
    if isinstance(value, float):
        half_away = int(abs(value) + 0.5) if abs(value) < 2**52 else int(abs(value))
        return checked(half_away if value >= 0 else -half_away)
    found = re.fullmatch(r"\s*([+-]?)(0[xX][0-9a-fA-F]+|[0-9]+)\s*", value, re.ASCII)
    if not found:
        raise Fails("bad int64")
    digits = found[2]
    number = int(digits, 16) if digits[:2] in ("0x", "0X") else int(digits)
    return checked(-number if found[1] == "-" else number)


def to_text(value):
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Fails("invalid UTF-8") from None


def safe(function):
    def wrapped(*arguments):
        try:
            return function(*arguments)
        except Fails:
            return None

    return wrapped


def substr(text, position, length=None):
    if length is not None and length < 0:
        raise Fails("negative length")
    if position == 0 or position < -len(text):
        position = 1
    start = position - 1 if position > 0 else len(text) + position
    return text[start:] if length is None else text[start : start + length]


def right(text, length):
    return text[len(text) - length :] if length < len(text) else text


def instr(text, part, position, occurrence):
    """`position` may be negative: from the end, backwards."""
    starts = [at for at in range(len(text) - len(part) + 1) if text.startswith(part, at)]
    if position > 0:
        found = [at for at in starts if at >= position - 1]
    else:
        found = [at for at in reversed(starts) if at <= len(text) + position]
    return found[occurrence - 1] + 1 if len(found) >= occurrence else 0


def pad(text, length, pattern, is_left):
    if length <= len(text):
        return text[:length]
    filling = (pattern * length)[: length - len(text)]
    return filling + text if is_left else text + filling


def translate(text, source, target):
    return text.translate({ord(c): target[i : i + 1] for i, c in enumerate(source)})


def split(text, delimiter, index):
    parts = text.split(delimiter) if delimiter else list(text) or [text]
    return parts[index] if 0 <= index < len(parts) else None


def as_re(regex):
    """RE2's $ is the end only, not what comes before a last newline."""
    return regex.replace("$", r"\Z")


@functools.lru_cache(4096)
def like_pattern(pattern):
    """`pattern`: bytes, in which \\ escapes."""
    regex, at = b"", 0
    while at < len(pattern):
        byte = pattern[at : at + 1]
        if byte == b"\\":
            at += 1
            regex += re.escape(pattern[at : at + 1])
        else:
            regex += {b"%": b".*", b"_": b"."}.get(byte) or re.escape(byte)
        at += 1
    return re.compile(regex, re.DOTALL)


def like(data, pattern):
    return bool(like_pattern(pattern).fullmatch(data))


def digest_of(function):
    return lambda data: function(data.encode() if isinstance(data, str) else data).digest()


SCALARS = {
    "integer": (1, strict(checked)),
    "if_integer": (1, if_integer),
    "div": (2, strict(div)),
    "mod": (2, strict(mod)),
    "divide": (2, strict(divide)),
    "shift_right": (2, strict(shift_right)),
    "bit_count": (1, strict(bit_count)),
    "int": (1, strict(to_int)),
    "safe_int": (1, safe(strict(to_int))),
    "text": (1, strict(to_text)),
    "safe_text": (1, safe(strict(to_text))),
    "substr": (-1, strict(substr)),
    "right": (2, strict(right)),
    "instr": (4, strict(instr)),
    "upper": (1, strict(str.upper)),
    "replace_bytes": (3, strict(lambda data, old, new: data.replace(old, new.encode()))),
    "lower": (1, strict(str.lower)),
    "trim": (1, strict(lambda text: text.strip(WHITE))),
    "ltrim": (1, strict(lambda text: text.lstrip(WHITE))),
    "rtrim": (1, strict(lambda text: text.rstrip(WHITE))),
    "reverse": (1, strict(lambda text: text[::-1])),
    "repeat": (2, strict(lambda text, count: text * count)),
    "lpad": (3, strict(lambda text, length, filling: pad(text, length, filling, True))),
    "rpad": (3, strict(lambda text, length, filling: pad(text, length, filling, False))),
    "translate": (3, strict(translate)),
    "split": (3, strict(split)),
    "like": (2, strict(like)),
    "starts_with": (2, strict(lambda text, start: text.startswith(start))),
    "ends_with": (2, strict(lambda text, end: text.endswith(end))),
    "regexp": (2, strict(lambda text, regex: re.search(as_re(regex), text) is not None)),
    "regexp_replace": (3, strict(lambda text, regex, new: re.sub(as_re(regex), new, text))),
    "sha1": (1, strict(digest_of(hashlib.sha1))),
    "md5": (1, strict(digest_of(hashlib.md5))),
}


# --- aggregates ---


class Sum:
    """The sum is what may overflow, not what it goes through."""

    def __init__(self):
        self.values = []

    def step(self, value):
        if value is not None:
            self.values.append(value)

    def finalize(self):
        return checked(sum(self.values)) if self.values else None


def bits(combine):
    class Bits(Sum):
        def finalize(self):
            return functools.reduce(combine, self.values) if self.values else None

    return Bits


class StringAgg:
    """Values in the order of a key (NULL is least) and then of themselves."""

    def __init__(self):
        self.rows = []

    def step(self, value, delimiter, key, direction, limit, is_distinct):
        self.delimiter, self.direction = delimiter, direction
        self.limit, self.is_distinct = limit, is_distinct
        if value is not None:
            self.rows.append((value, key))

    def finalize(self):
        if not self.rows:
            return None
        is_descending = "DESC" in self.direction
        if self.is_distinct:
            values = sorted({value for value, _ in self.rows}, reverse=is_descending)
        else:
            rows = sorted(self.rows, key=lambda row: row[0])
            rows.sort(key=lambda row: (row[1] is not None, row[1]), reverse=is_descending)
            values = [value for value, _ in rows]
        return self.delimiter.join(values[: self.limit or None])


AGGREGATES = {
    "sum": (1, Sum),
    "bit_and": (1, bits(lambda a, b: a & b)),
    "bit_or": (1, bits(lambda a, b: a | b)),
    "bit_xor": (1, bits(lambda a, b: a ^ b)),
    "string_agg": (6, StringAgg),
}


def register(connection):
    for name, (count, function) in SCALARS.items():
        connection.create_function(f"g_{name}", count, function, deterministic=True)
    for name, (count, aggregate) in AGGREGATES.items():
        connection.create_aggregate(f"g_{name}", count, aggregate)
