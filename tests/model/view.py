"""An authorized view of a table: a request through it does what it would do to a copy of the part
of the table that the view has, and what it leaves there is put back. A write that touches more is
refused."""

import copy

from filters import named_families
from table import INVALID_ARGUMENT, NO_MUTATIONS, Refused, Table, key_reasons, refuse_if

PERMISSION_DENIED = 7


class View:
    """`families`: {name: (qualifiers, prefixes of qualifiers)}."""

    def __init__(self, name, prefixes, families):
        self.name = name
        self.prefixes = prefixes
        self.families = families
        self.refusal = PERMISSION_DENIED, (
            f"Cannot mutate from {name} because the mutation contains cells outside the Authorized "
            "View."
        )

    def has_key(self, key):
        return any(key.startswith(prefix) for prefix in self.prefixes)

    def has_column(self, family, qualifier):
        qualifiers, prefixes = self.families.get(family, ((), ()))
        return qualifier in qualifiers or any(qualifier.startswith(each) for each in prefixes)

    def has_family(self, family):
        return b"" in self.families.get(family, ((), ()))[1]

    def has_place(self, table, mutation):
        """Whether the view has all that the mutation touches, whatever is there."""
        kind = mutation.WhichOneof("mutation")
        if kind == "delete_from_row":
            return all(map(self.has_family, table.families))
        change = getattr(mutation, kind)
        if kind == "delete_from_family":
            return self.has_family(change.family_name)
        qualifier = change.column_qualifier
        if kind in ("add_to_cell", "merge_to_cell"):
            qualifier = qualifier.raw_value
        return self.has_column(change.family_name, qualifier)

    def has(self, table, key, mutations):
        return self.has_key(key) and all(self.has_place(table, each) for each in mutations)

    def split(self, row):
        """The columns of a row that the view has, and the others."""
        parts = {}, {}
        for column, cells in row.items():
            parts[not self.has_column(*column)][column] = cells
        return parts


class Viewed:
    """A table through a view, with the methods of the table."""

    def __init__(self, table, view):
        self.table = table
        self.view = view
        self.blind = Table(table.name, {}, table.step)  # what can be said without the families

    def part(self):
        part = copy.copy(self.table)
        part.rows = {
            key: self.view.split(row)[0]
            for key, row in self.table.rows.items()
            if self.view.has_key(key)
        }
        return part

    def cells(self, key, now):
        return self.part().cells(key, now)

    def read_rows(self, request, now):
        refuse_if(self.read_reasons(request))
        return self.part().read_rows(request, now)

    def read_reasons(self, request):
        yield from self.table.read_reasons(request)
        if set(named_families(request.filter)) - set(self.view.families):
            yield PERMISSION_DENIED, "names a column family outside the Authorized View."

    def change(self, kind, request, now):
        """Does it to the part, and puts that back."""
        part = self.part()
        answer = getattr(part, kind)(request, now)
        for key, row in part.rows.items():
            hidden = self.view.split(self.table.rows.get(key, {}))[1]
            self.table.rows[key] = hidden | row
        return answer

    def refuse_unless(self, is_inside):
        if not is_inside:
            raise Refused([self.view.refusal])

    def kind_reasons(self, *lists):
        """What is wrong with lists of mutations by themselves: that comes before the refusal."""
        mutations = [mutation for each in lists for mutation in each]
        reasons = [reason for each in mutations for reason in self.blind.kind_reasons(each)]
        return reasons if mutations else [(INVALID_ARGUMENT, NO_MUTATIONS)]

    def mutate_row(self, request, now):
        refuse_if([*key_reasons(request.row_key), *self.kind_reasons(request.mutations)])
        self.refuse_unless(self.view.has(self.table, request.row_key, request.mutations))
        self.change("mutate_row", request, now)

    def mutate_rows(self, request, now):
        """What is outside is refused by itself; the rest is as a request of its own."""
        lists = [entry.mutations for entry in request.entries]
        reasons = self.kind_reasons(*lists)
        if not all(lists):
            reasons.append((INVALID_ARGUMENT, NO_MUTATIONS))
        refuse_if(reasons)
        inside = [
            index
            for index, entry in enumerate(request.entries)
            if self.view.has(self.table, entry.row_key, entry.mutations)
        ]
        part = type(request)(entries=[request.entries[index] for index in inside])
        codes = [
            {PERMISSION_DENIED} | {code for code, _ in key_reasons(entry.row_key)}
            for entry in request.entries
        ]
        for index, found in zip(inside, self.change("mutate_rows", part, now) if inside else []):
            codes[index] = found
        return codes

    def check_and_mutate_row(self, request, now):
        lists = request.true_mutations, request.false_mutations
        refuse_if([*key_reasons(request.row_key), *self.kind_reasons(*lists)])
        self.refuse_unless(self.view.has(self.table, request.row_key, [*lists[0], *lists[1]]))
        return self.change("check_and_mutate_row", request, now)

    def read_modify_write_row(self, request, now):
        reasons = key_reasons(request.row_key)
        if not request.rules:
            reasons.append((INVALID_ARGUMENT, "No rules provided"))
        refuse_if(reasons)
        self.refuse_unless(
            self.view.has_key(request.row_key)
            and all(
                self.view.has_column(rule.family_name, rule.column_qualifier)
                for rule in request.rules
            )
        )
        return self.change("read_modify_write_row", request, now)
