"""Makes the case of a difference small: operations go, then parts of them, as long as it differs
in the same way."""

import copy

from google.protobuf import json_format

from differential.datastore.compare import Round, kind_of

MOST_TRIES = 250
KEEP = {"rpc", "path", "kind", "id", "name", "op", "mode"}


class Shrinker:
    def __init__(self, sides, difference):
        self.sides, self.best = sides, difference
        self.kind = kind_of(difference.case)
        self.tries = 0

    def differs(self, operations):
        if self.tries >= MOST_TRIES:
            return False
        self.tries += 1
        one = Round(self.sides[0], self.sides[1:])
        try:
            for operation in operations:
                one.differences = []
                one.run(operation)
        except (json_format.ParseError, KeyError, TypeError, ValueError):  # it is none any more
            return False
        finally:
            one.close()
        for difference in one.differences:
            if kind_of(difference.case) == self.kind:
                self.best = difference
                return True
        return False

    def drop_operations(self):
        """In ever smaller runs; the last, which differs, stays."""
        size = max(1, len(self.best.operations) // 2)
        while size:
            at = len(self.best.operations) - 1 - size
            while at >= 0:
                operations = self.best.operations
                self.differs(operations[:at] + operations[at + size :])
                at -= size
            if size > len(self.best.operations):
                size = len(self.best.operations)
            size //= 2

    def run(self):
        if self.differs(self.best.operations):
            self.drop_operations()
            self.drop_more_parts()
        return self.best

    def drop_more_parts(self):
        changed = True
        while changed and self.tries < MOST_TRIES:
            changed = False
            for place in reversed(range(len(self.best.operations))):
                changed |= self.drop_parts_of(place)

    def drop_parts_of(self, place):
        changed, refused = False, set()
        while self.tries < MOST_TRIES:
            paths = [p for p in parts(self.best.operations[place]) if repr(p) not in refused]
            if not paths:
                return changed
            operations = copy.deepcopy(self.best.operations)
            remove(operations[place], paths[0])
            if self.differs(operations):
                changed = True
            else:
                refused.add(repr(paths[0]))
        return changed


def parts(thing, path=()):
    """Paths of what may go, outer ones first."""
    if isinstance(thing, dict):
        for name, value in thing.items():
            if name not in KEEP:
                if path:
                    yield (*path, name)
                yield from parts(value, (*path, name))
    elif isinstance(thing, list):
        for at in reversed(range(len(thing))):
            if len(thing) > 1:
                yield (*path, at)
            yield from parts(thing[at], (*path, at))


def remove(thing, path):
    for step in path[:-1]:
        thing = thing[step]
    del thing[path[-1]]


def shrink(sides, difference):
    return Shrinker(sides, difference).run()
