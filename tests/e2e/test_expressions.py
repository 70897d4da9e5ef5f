"""What expressions come to, asked by Google's data client: the cases of tests/data/sql, whose
README says how they are written. Each value is held against its literal, its column against its
type."""

import re
import struct

import pytest
from google.api_core.exceptions import GoogleAPICallError
from google.cloud.bigtable.data.execute_query.metadata import SqlType
from harness.patience import PATIENCE_SECONDS
from harness.server import ROOT

FILES = sorted((ROOT / "tests/data/sql").glob("*.txt"))
TOGETHER = 50  # cases in one query
CODE = re.compile(r"[A-Z_]+: ")


class Case:
    """`expected` is a list of literals, one a row, and `type` theirs; or a message, and None."""

    def __init__(self, line):
        self.expression, rest = (part.strip() for part in line.split("  => ", 1))
        result, self.rule = (part.strip() for part in rest.rsplit("  -- ", 1))
        self.expected, self.type = result, None
        if not CODE.match(result):
            result, self.type = result.rsplit(" : ", 1)
            self.expected = result.split(" ; ")

    def stands_alone(self):
        """Whether it needs a query of its own: other expressions would have other rows."""
        return self.type is None or " FROM " in self.expression


def cases_of(path):
    lines = path.read_text().replace("\n ", "  ").split("\n")
    return [Case(line) for line in lines if line and not line.startswith("#")]


# --- what the client gives, as literals ---

ESCAPES = {'"': '\\"', "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}


def quoted(characters, last):
    """Characters from 0x7f to `last` are escaped as those below the blank are."""

    def shown(character):
        is_odd = character < " " or "\x7f" <= character <= last
        return ESCAPES.get(character, f"\\x{ord(character):02x}" if is_odd else character)

    return '"' + "".join(map(shown, characters)) + '"'


def float_literal(value, is_float32):
    name = "FLOAT32" if is_float32 else "FLOAT64"
    if value != value or value in (float("inf"), float("-inf")):
        return f'CAST("{value}" AS {name})'

    def is_same(text):
        narrow = struct.pack("f", float(text)) == struct.pack("f", value)
        return narrow if is_float32 else float(text) == value

    texts = (f"{value + 0.0:.{digits}g}" for digits in range(6 if is_float32 else 15, 18))
    text = "0" if value == 0 else next(filter(is_same, texts))
    return text if "." in text or "e" in text else f"{text}.0"


def timestamp_literal(value):
    micros = f"{value.microsecond:06}"
    fraction = "" if micros == "000000" else "." + micros.removesuffix("000")
    return f'TIMESTAMP "{value.year:04}-{value:%m-%d %H:%M:%S}{fraction}+00"'


SCALARS = {
    SqlType.Bool: ("BOOL", lambda value: "true" if value else "false"),
    SqlType.Int64: ("INT64", str),
    SqlType.Float32: ("FLOAT32", lambda value: float_literal(value, True)),
    SqlType.Float64: ("FLOAT64", lambda value: float_literal(value, False)),
    SqlType.String: ("STRING", lambda value: quoted(value, "\x7f")),
    SqlType.Bytes: ("BYTES", lambda value: "b" + quoted(value.decode("latin-1"), "\xff")),
    SqlType.Date: ("DATE", lambda value: f'DATE "{value.year:04}-{value.month:02}-{value.day:02}"'),
    SqlType.Timestamp: ("TIMESTAMP", timestamp_literal),
}


def type_name(type_):
    """As GoogleSQL writes the type."""
    if isinstance(type_, SqlType.Array):
        return f"ARRAY<{type_name(type_.element_type)}>"
    if isinstance(type_, SqlType.Map):
        return f"MAP<{type_name(type_.key_type)}, {type_name(type_.value_type)}>"
    if isinstance(type_, SqlType.Struct):
        fields = (f"{name} {type_name(each)}".lstrip() for name, each in type_.fields)
        return f"STRUCT<{', '.join(fields)}>"
    return SCALARS[type(type_)][0]


def literal(value, type_):
    """As a query would have the value."""
    if value is None:
        return "NULL"
    if isinstance(type_, SqlType.Array):
        return "[" + ", ".join(literal(each, type_.element_type) for each in value) + "]"
    if isinstance(type_, SqlType.Map):
        pairs = (
            f"{literal(key, type_.key_type)}: {literal(each, type_.value_type)}"
            for key, each in value.items()
        )
        return "{" + ", ".join(pairs) + "}"
    if isinstance(type_, SqlType.Struct):
        fields = zip(value.fields, type_.fields)
        return "(" + ", ".join(literal(each, kind) for (_, each), (_, kind) in fields) + ")"
    return SCALARS[type(type_)][1](value)


# --- asking ---


def answers(client, expressions):
    """For each expression its rows' literals and its type; or the error of them all."""
    try:
        result = client.execute_query(
            f"SELECT {expressions}", "i", attempt_timeout=PATIENCE_SECONDS
        )
        rows = list(result)
    except GoogleAPICallError as error:
        return f"{error.grpc_status_code.name}: {error.message}".rstrip()
    types = [column.column_type for column in result.metadata.columns]
    return [
        ([literal(row[place], type_) for row in rows], type_name(type_))
        for place, type_ in enumerate(types)
    ]


def differences(client, cases):
    """Asks them all at once, or one by one if one fails."""
    answer = answers(client, ", ".join(case.expression for case in cases))
    if isinstance(answer, str) and len(cases) > 1:
        return [each for case in cases for each in differences(client, [case])]
    if isinstance(answer, str):
        (case,) = cases
        return [] if answer == case.expected else [(case, answer)]
    return [
        (case, f"{' ; '.join(rows)} : {type_}")
        for case, (rows, type_) in zip(cases, answer, strict=True)
        if (rows, type_) != (case.expected, case.type)
    ]


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_expressions(client, path):
    cases = cases_of(path)
    joined = [case for case in cases if not case.stands_alone()]
    wrong = []
    for case in (case for case in cases if case.stands_alone()):
        wrong += differences(client, [case])
    for first in range(0, len(joined), TOGETHER):
        wrong += differences(client, joined[first : first + TOGETHER])
    assert not wrong, "\n" + "\n".join(
        f"{case.expression}\n    is       {answer}\n    and not  {case.expected} : {case.type}"
        f" ({case.rule})"
        for case, answer in wrong
    )


def test_there_are_enough():
    assert sum(len(cases_of(path)) for path in FILES) > 1500
