"""What a case is: tables or entities, and what an application does with them, as a description that
knows no client. `load.py` puts it into a server.

A row is a pair (key, cells); rows stand in the order in which they are written. Timestamps are
microseconds since 1970 and multiples of 1000.
"""

import dataclasses
import typing


class Rule(typing.NamedTuple):
    """When a family's cells go: beyond `versions`, or older than `days`; with both, when either is
    so, or with `both` when both are. `total` makes it an aggregate family of sums."""

    versions: int = 0
    days: float = 0
    both: bool = False
    total: bool = False


class Cell(typing.NamedTuple):
    """`value` is bytes; an integer is added to a cell of an aggregate family."""

    family: str
    qualifier: bytes
    value: bytes | int
    micros: int


class Read(typing.NamedTuple):
    """ReadRows of keys and of ranges (first, end), everything if there are none of either.
    `filter` is a dictionary as RowFilter has it."""

    keys: tuple = ()
    ranges: tuple = ()
    filter: dict | None = None
    limit: int = 0


class Write(typing.NamedTuple):
    """One row is a MutateRow, several are a MutateRows. A row without cells is deleted."""

    rows: tuple


class Increment(typing.NamedTuple):
    """ReadModifyWriteRow, by one."""

    key: bytes
    family: str
    qualifier: bytes


@dataclasses.dataclass
class Table:
    name: str
    families: dict  # {name: Rule}
    rows: typing.Iterable

    def keys(self):
        """Of a table whose rows are a list."""
        return [key for key, _ in self.rows]


class Entity(typing.NamedTuple):
    """`path` is kind, id or name, kind, …; `plain`: properties that are not indexed."""

    path: tuple
    properties: dict
    plain: tuple = ()


class Put(typing.NamedTuple):
    """One Commit without a transaction. `kind` is the mutation: upsert or delete."""

    entities: tuple
    kind: str = "upsert"


class Lookup(typing.NamedTuple):
    paths: tuple


class Query(typing.NamedTuple):
    """`where`: (property, operator, value) triples, all of which must hold. `pages`: the query goes
    on behind its cursor so often."""

    kind: str
    where: tuple = ()
    order: tuple = ()
    projection: tuple = ()
    offset: int = 0
    limit: int = 0
    pages: int = 1


class OpenTransaction(typing.NamedTuple):
    """Reads, fails, and is never rolled back."""

    paths: tuple


@dataclasses.dataclass
class Database:
    """`indexes`: (kind, property, …) of composite ones; a `-` in front: descending."""

    entities: list
    indexes: tuple = ()


@dataclasses.dataclass
class Case:
    """`practice` is the one that is broken, None where all are kept; `appearance` says how.
    `also`: practices that are broken necessarily, so that their findings are right as well.
    `asked`: how many of the tables are asked about. `refused`: the API must not take it."""

    appearance: str
    practice: str | None = None
    tables: list = dataclasses.field(default_factory=list)
    database: Database | None = None
    traffic: list = dataclasses.field(default_factory=list)
    also: frozenset = frozenset()
    asked: int = 1
    refused: bool = False
