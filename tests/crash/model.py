"""What the database must hold: rows outside the server, and how mutations change them.

A row is a dict {(family, qualifier): {timestamp: value}}; a row that is not there is an empty one.
Rows are never changed in place: `apply` makes a new one, so the old one stays as the other
possibility while a write is in doubt.

A mutation is a tuple:

    ("set", family, qualifier, timestamp, value)      timestamp ANY: the server chooses
    ("column", family, qualifier, start, end)         deletes cells in [start, end); end 0: all
    ("family", family)                                deletes
    ("row",)                                          deletes

Where the server chooses a timestamp the model says ANY, and such a column has one visible cell:
each write with ANY has a qualifier of its own (family "s"), or goes to a family that keeps one
version (family "c").
"""

from google.cloud.bigtable_v2 import types

ANY = -1
# Families and how many versions of a column they keep. No cell of a family that collects versions
# is ever deleted alone: whether an older one shows again would depend on when it was collected.
FAMILIES = {"c": 1, "f": 3, "g": None, "h": None, "s": None, "w": None}

Mutation = types.Mutation.pb()


def apply(row, mutations):
    """The row after the mutations, in order."""
    row = dict(row)
    for mutation in mutations:
        CHANGES[mutation[0]](row, *mutation[1:])
    return {column: cells for column, cells in row.items() if cells}


def change_set(row, family, qualifier, timestamp, value):
    column = family, qualifier
    row[column] = keep_newest(family, {**row.get(column, {}), timestamp: value})


def change_column(row, family, qualifier, start, end):
    column = family, qualifier
    cells = row.get(column, {}) if start or end else {}  # ANY lies in no range
    row[column] = {t: v for t, v in cells.items() if t < start or (end and t >= end)}


def change_family(row, family):
    for column in [column for column in row if column[0] == family]:
        del row[column]


def change_row(row):
    row.clear()


CHANGES = {
    "set": change_set,
    "column": change_column,
    "family": change_family,
    "row": change_row,
}


def keep_newest(family, cells):
    most = FAMILIES[family]
    if most is None or len(cells) <= most:
        return cells
    return {t: cells[t] for t in sorted(cells, reverse=True)[:most]}


def append(row, qualifier, value):
    """The row after ReadModifyWrite appended to a column of family "c", and the column's value."""
    old = next(iter(row.get(("c", qualifier), {}).values()), b"")
    return {**row, ("c", qualifier): {ANY: old + value}}, old + value


def increment(row, qualifier, amount):
    old = int.from_bytes(newest(row, "c", qualifier) or b"", "big", signed=True)
    value = (old + amount).to_bytes(8, "big", signed=True)
    return {**row, ("c", qualifier): {ANY: value}}, value


def newest(row, family, qualifier):
    """The value of the newest cell of a column, or None."""
    cells = row.get((family, qualifier))
    return cells[max(cells)] if cells else None


def message(mutation):
    """The mutation as the API's message."""
    kind, *fields = mutation
    out = Mutation()
    if kind == "set":
        cell = out.set_cell
        cell.family_name, cell.column_qualifier, cell.timestamp_micros, cell.value = fields
    elif kind == "column":
        column = out.delete_from_column
        column.family_name, column.column_qualifier, start, end = fields
        if start or end:
            column.time_range.start_timestamp_micros = start
            column.time_range.end_timestamp_micros = end
    elif kind == "family":
        (out.delete_from_family.family_name,) = fields
    else:
        out.delete_from_row.SetInParent()
    return out


# --- what was read ---


def observed(cells):
    """The row of a ReadRows answer: harness.rpc's Cells."""
    row = {}
    for cell in cells:
        versions = row.setdefault((cell.family, cell.qualifier), {})
        assert cell.timestamp not in versions, f"a cell twice: {cell.family}:{cell.qualifier}"
        versions[cell.timestamp] = cell.value
    return row


def matches(expected, seen):
    """Whether what was read is what is expected; ANY stands for any one timestamp."""
    if expected.keys() != seen.keys():
        return False
    return all(cells_match(cells, seen[column]) for column, cells in expected.items())


def cells_match(expected, seen):
    if ANY in expected:
        return list(expected.values()) == list(seen.values())
    return expected == seen


def differences(expected, seen, most=5):
    """What is wrong with what was read, in words."""
    lines = []
    for column in sorted(expected.keys() | seen.keys()):
        want, got = expected.get(column, {}), seen.get(column, {})
        if not cells_match(want, got):
            name = f"{column[0]}:{column[1].decode(errors='backslashreplace')}"
            lines.append(f"{name}: expected {shown(want)}, read {shown(got)}")
    return lines[:most] + [f"and {len(lines) - most} more columns"] * (len(lines) > most)


def shown(cells):
    items = [f"@{t} {v[:24]!r}({len(v)})" for t, v in sorted(cells.items(), reverse=True)]
    return "{" + ", ".join(items[:4]) + (", ..." if len(items) > 4 else "") + "}"
