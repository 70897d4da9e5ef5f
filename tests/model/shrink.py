"""Makes a difference in a read small: one row, then the least filter and the fewest cells for which
the server still answers something else than the model."""

import copy

from filters import Filter, faults, parts_of
from google.cloud.bigtable_v2 import types
from table import Family, Table
from wire import Failed

Mutation = types.Mutation.pb()


def shrink(difference, wire, table):
    """The same difference, or a smaller one."""
    ((key, cells),) = difference.row.items()
    case = Case(wire, table, key, cells, difference.request.filter)
    if not case.differs():  # it takes more than one row
        return difference
    while case.take_smaller(case.with_smaller_filters()):
        pass
    difference.note(case)
    case.move_to_scratch_table()
    if case.differs():
        while case.take_smaller(case.with_fewer_cells()):
            pass
        difference.note(case)
    wire.delete_table(case.table)
    return difference


class Case:
    """A filter on one row of a table of the server."""

    def __init__(self, wire, table, key, cells, row_filter):
        self.wire, self.table, self.key, self.cells = wire, table, key, cells
        self.filter = row_filter

    def request(self):
        request = self.wire.read_request(self.table, [self.key])
        request.filter.CopyFrom(self.filter)
        return request

    def expected(self):
        return Filter(self.filter).outcomes(self.key, self.cells)

    def answered(self):
        answer = self.wire.read(self.request())
        return answer if isinstance(answer, Failed) else answer[0].get(self.key, [])

    def differs(self):
        return self.answered() not in self.expected()

    def take_smaller(self, cases):
        """Becomes the first of the cases that differs."""
        for case in cases:
            if case.differs():
                self.filter, self.cells = case.filter, case.cells
                return True
        return False

    def with_smaller_filters(self):
        for smaller in smaller_filters(self.filter):
            if not any(faults(smaller)):
                yield Case(self.wire, self.table, self.key, self.cells, smaller)

    def move_to_scratch_table(self):
        families = {name: Family(aggregate=f.aggregate) for name, f in self.table.families.items()}
        self.table = Table(self.table.name + "-small", families, self.table.step)
        self.wire.create_table(self.table, [])
        self.write()

    def write(self):
        self.wire.delete_row(self.table, self.key)
        self.wire.mutate(
            self.table, self.key, *(mutation_for(self.table, cell) for cell in self.cells)
        )

    def with_fewer_cells(self):
        for i in range(len(self.cells)):
            cells = self.cells[:i] + self.cells[i + 1 :]
            case = Case(self.wire, self.table, self.key, cells, self.filter)
            if cells:
                case.write()
                yield case


def mutation_for(table, cell):
    mutation = Mutation()
    if table.families[cell.family].aggregate:
        add = mutation.add_to_cell
        add.family_name = cell.family
        add.column_qualifier.raw_value = cell.qualifier
        add.timestamp.raw_timestamp_micros = cell.timestamp
        add.input.int_value = int.from_bytes(cell.value, "big", signed=True)
    else:
        set_cell = mutation.set_cell
        set_cell.family_name, set_cell.column_qualifier = cell.family, cell.qualifier
        set_cell.timestamp_micros, set_cell.value = cell.timestamp, cell.value
    return mutation


def smaller_filters(message):
    """Each filter that takes one step less: a part alone, or with a part left out or made
    smaller."""
    parts = parts_of(message)
    yield from parts
    kind = message.WhichOneof("filter")
    if kind in ("chain", "interleave"):
        for i in range(len(parts) if len(parts) > 2 else 0):
            smaller = copy.deepcopy(message)
            del getattr(smaller, kind).filters[i]
            yield smaller
    for i, part in enumerate(parts):
        for less in smaller_filters(part):
            smaller = copy.deepcopy(message)
            parts_of(smaller)[i].CopyFrom(less)
            yield smaller
