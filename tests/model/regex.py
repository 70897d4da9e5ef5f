"""Regular expressions as Bigtable has them: RE2's syntax over bytes (Latin-1), whole match.

Slow and obvious. Parsing gives functions; each takes a text and a set of positions at which a match
may start, and gives the set of positions at which it may end. Nothing is tried twice, so no pattern
explodes. What RE2 refuses raises BadPattern.
"""

import functools
import string
import unicodedata

LONGEST_REPEAT = 1000
ANY = frozenset(range(256))
NEWLINE = frozenset(b"\n")
DIGITS = frozenset(string.digits.encode())
WORD = frozenset((string.ascii_letters + string.digits + "_").encode())
SPACE = frozenset(b"\t\n\f\r ")
PERL_CLASSES = {"d": DIGITS, "s": SPACE, "w": WORD}
PUNCTUATION = frozenset(string.punctuation.encode())
LETTERS = frozenset(string.ascii_letters.encode())
NAMED_CLASSES = {
    "alnum": LETTERS | DIGITS,
    "alpha": LETTERS,
    "ascii": frozenset(range(128)),
    "blank": frozenset(b"\t "),
    "cntrl": frozenset(range(32)) | {127},
    "digit": DIGITS,
    "graph": frozenset(range(33, 127)),
    "lower": frozenset(string.ascii_lowercase.encode()),
    "print": frozenset(range(32, 127)),
    "punct": PUNCTUATION,
    "space": SPACE | {11},
    "upper": frozenset(string.ascii_uppercase.encode()),
    "word": WORD,
    "xdigit": frozenset(string.hexdigits.encode()),
}
CONTROL = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
OCTAL = "01234567"


class BadPattern(Exception):
    pass


class Regex:
    """`pattern`: bytes."""

    def __init__(self, pattern):
        self.node, _ = Parser(pattern.decode("latin-1")).parse()
        self.known = {}

    def matches(self, text):
        if text not in self.known:
            self.known[text] = len(text) in self.node(text, {0})
        return self.known[text]


# --- nodes ---


def one_of(allowed):
    return lambda text, starts: {i + 1 for i in starts if i < len(text) and text[i] in allowed}


def where(holds):
    return lambda text, starts: {i for i in starts if holds(text, i)}


def sequence(nodes):
    return lambda text, starts: functools.reduce(lambda at, node: node(text, at), nodes, starts)


def either(nodes):
    return lambda text, starts: set().union(*(node(text, starts) for node in nodes))


def star(node):
    def match(text, starts):
        reached, fresh = set(starts), starts
        while fresh:
            fresh = node(text, fresh) - reached
            reached |= fresh
        return reached

    return match


def repeat(node, least, most):
    tail = [star(node)] if most is None else [either([sequence([]), node])] * (most - least)
    return sequence([node] * least + tail)


def is_word(text, i):
    return 0 <= i < len(text) and text[i] in WORD


def at_boundary(text, i):
    return is_word(text, i - 1) != is_word(text, i)


at_start = where(lambda _, i: i == 0)
at_end = where(lambda text, i: i == len(text))
at_line_start = where(lambda text, i: i == 0 or text[i - 1] in NEWLINE)
at_line_end = where(lambda text, i: i == len(text) or text[i] in NEWLINE)
ASSERTIONS = {
    "A": at_start,
    "z": at_end,
    "b": where(at_boundary),
    "B": where(lambda text, i: not at_boundary(text, i)),
}


@functools.cache
def cases_of(byte):
    """The bytes that are the same letter, in Latin-1."""
    lower = chr(byte).lower()
    return frozenset(other for other in range(256) if chr(other).lower() == lower)


def in_any_case(allowed):
    return frozenset().union(*(cases_of(byte) for byte in allowed))


@functools.cache
def category(name):
    return frozenset(b for b in range(256) if unicodedata.category(chr(b)).startswith(name))


# --- parsing ---


class Parser:
    """Each method takes what it parses off `rest`. A parsed node comes with its size: how often
    it repeats what is in it, which RE2 bounds."""

    def __init__(self, pattern):
        self.rest = pattern
        self.flags = frozenset()

    def parse(self):
        node = self.alternatives()
        if self.rest:
            raise BadPattern("unexpected )")
        return node

    def take(self, count=1):
        taken, self.rest = self.rest[:count], self.rest[count:]
        if len(taken) < count:
            raise BadPattern("ends too early")
        return taken

    def take_if(self, prefix):
        if not self.rest.startswith(prefix):
            return False
        self.take(len(prefix))
        return True

    def take_until(self, end):
        taken, found, rest = self.rest.partition(end)
        if not found:
            raise BadPattern(f"no {end}")
        self.rest = rest
        return taken

    def alternatives(self):
        branches = [self.branch()]
        while self.take_if("|"):
            branches.append(self.branch())
        return either([node for node, _ in branches]), max(size for _, size in branches)

    def branch(self):
        items = []
        is_repeated = False  # the item before
        while self.rest and self.rest[0] not in "|)":
            repetition = self.repetition()
            if repetition is None:
                items.extend(self.atoms())
                is_repeated = False
            elif is_repeated or not items:
                raise BadPattern("nothing to repeat")
            else:
                items.append(repeated(*items.pop(), *repetition))
                is_repeated = True
        return sequence([node for node, _ in items]), max((size for _, size in items), default=1)

    def repetition(self):
        """(least, most), or None if there is none."""
        for sign, counts in {"*": (0, None), "+": (1, None), "?": (0, 1)}.items():
            if self.take_if(sign):
                self.take_if("?")  # lazy
                return counts
        counts, brace, rest = self.rest.partition("}")
        numbers = counts[1:].split(",")
        if not (counts.startswith("{") and brace and numbers[0] and len(numbers) <= 2):
            return None  # a literal {
        if not all(is_number(number) for number in numbers if number):
            return None
        self.rest = rest
        self.take_if("?")
        least = int(numbers[0])
        return least, int(numbers[-1]) if numbers[-1] else None

    def atoms(self):
        """What the next token stands for: often one node, none for flags, several if quoted."""
        if self.take_if("(?"):
            return self.special_group()
        if self.take_if("("):
            return [self.group()]
        if self.take_if("\\Q"):
            quoted, _, self.rest = self.rest.partition("\\E")
            return [(self.literal(ord(char)), 1) for char in quoted]
        return [(self.single(), 1)]

    def group(self):
        flags = self.flags
        node = self.alternatives()
        self.flags = flags
        if not self.take_if(")"):
            raise BadPattern("missing )")
        return node

    def special_group(self):
        if self.take_if("P<"):
            name = self.take_until(">")
            if not name or not set(name.encode()) <= WORD:
                raise BadPattern("bad name")
            return [self.group()]
        before, flags, is_on = self.flags, set(self.flags), True
        while True:
            char = self.take()
            if char in "imsU":
                (flags.add if is_on else flags.discard)(char)
            elif char == "-" and is_on:
                is_on = False
            elif char in ":)":
                break
            else:
                raise BadPattern("bad flag")
        self.flags = frozenset(flags)
        if char == ")":
            return []
        node = self.group()
        self.flags = before
        return [node]

    def single(self):
        char = self.take()
        if char == "[":
            return one_of(self.char_class())
        if char == ".":
            return one_of(ANY if "s" in self.flags else ANY - NEWLINE)
        if char == "^":
            return at_line_start if "m" in self.flags else at_start
        if char == "$":
            return at_line_end if "m" in self.flags else at_end
        if char != "\\":
            return self.literal(ord(char))
        if self.rest[:1] == "C":
            self.take()
            return one_of(ANY)
        if self.rest[:1] in ASSERTIONS and self.rest:
            return ASSERTIONS[self.take()]
        known = self.escaped_class()
        return one_of(known) if known is not None else self.literal(self.escaped_byte())

    def literal(self, byte):
        return one_of(cases_of(byte) if "i" in self.flags else {byte})

    def escaped_class(self):
        r"""After a backslash: \d \D \s \S \w \W \pN \PN \p{Lu}; None if it is none of these."""
        char = self.rest[:1]
        if char.lower() in PERL_CLASSES and char:
            self.take()
            found = PERL_CLASSES[char.lower()]
            return found if char.islower() else ANY - found
        if char in ("p", "P"):
            self.take()
            name = self.take_until("}") if self.take_if("{") else self.take()
            is_negated = (char == "P") != name.startswith("^")
            name = name.removeprefix("^")
            if name not in CATEGORIES:
                raise BadPattern("unknown category")
            found = self.fold(category(name))
            return ANY - found if is_negated else found
        return None

    def escaped_byte(self):
        char = self.take()
        if char in CONTROL:
            return CONTROL[char]
        if char == "x":
            digits = self.take_until("}") if self.take_if("{") else self.take(2)
            return self.code(digits, 16)
        if char in OCTAL:
            digits = char
            while len(digits) < 3 and self.rest and self.rest[0] in OCTAL:
                digits += self.take()
            if len(digits) == 1 and char != "0":
                raise BadPattern("a back reference")
            return self.code(digits, 8)
        if ord(char) >= 128 or ord(char) in LETTERS | DIGITS:
            raise BadPattern("invalid escape")
        return ord(char)

    def code(self, digits, base):
        if not digits or not set(digits) <= set(string.hexdigits) or int(digits, base) > 255:
            raise BadPattern("bad number")
        return int(digits, base)

    def fold(self, allowed):
        return in_any_case(allowed) if "i" in self.flags else allowed

    def char_class(self):
        is_negated = self.take_if("^")
        found, is_first = frozenset(), True
        while is_first or not self.take_if("]"):
            found |= self.class_item()
            is_first = False
        found = self.fold(found)
        return ANY - found if is_negated else found

    def class_item(self):
        if self.rest.startswith("[:") and ":]" in self.rest[2:]:
            self.take(2)
            name = self.take_until(":]")
            if name.removeprefix("^") not in NAMED_CLASSES:
                raise BadPattern("unknown class")
            found = NAMED_CLASSES[name.removeprefix("^")]
            return ANY - found if name.startswith("^") else found
        if self.rest.startswith("\\"):
            self.take()
            known = self.escaped_class()
            if known is not None:
                return known
            first = self.escaped_byte()
        else:
            first = ord(self.take())
        if not self.rest.startswith("-") or self.rest.startswith("-]"):
            return frozenset({first})
        self.take()
        last = self.escaped_byte() if self.take_if("\\") else ord(self.take())
        if last < first:
            raise BadPattern("an inverted range")
        return frozenset(range(first, last + 1))


CATEGORIES = {unicodedata.category(chr(b)) for b in range(256)}
CATEGORIES |= {name[0] for name in CATEGORIES}


def is_number(digits):
    return digits.isascii() and digits.isdigit() and (digits == "0" or digits[0] != "0")


def repeated(node, size, least, most):
    counts = max(least, most or 0)
    if counts > LONGEST_REPEAT or (most is not None and most < least):
        raise BadPattern("bad repetition size")
    size *= max(counts, 1)
    if size > LONGEST_REPEAT:
        raise BadPattern("too many repetitions")
    if (least, most) == (0, None):
        return star(node), size
    return repeat(node, least, most), size
