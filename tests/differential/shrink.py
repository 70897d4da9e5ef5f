"""Makes the query of a difference small: greedily, an edit at a time, as long as it differs."""

from differential import tree
from differential.queries import CLASSIC, Block
from differential.tree import BOOL, BYTES, FLOAT, INT, STRING

MOST_TRIES = 600
SIMPLE = {
    BOOL: tree.boolean(True), INT: tree.integer(1), FLOAT: tree.float_(1.0, 0),
    STRING: tree.string("a"), BYTES: tree.bytes_(b"a"),
}  # fmt: skip


class Shrinker:
    def __init__(self, one, block, difference, kind):
        self.one, self.block, self.best, self.kind = one, block, difference, kind
        self.tries = 0

    def differs(self, block):
        """In the same way: a query that is not one any more is no smaller case."""
        self.tries += 1
        if self.tries > MOST_TRIES:
            return False
        try:
            self.one.check(block)
        except self.kind as difference:
            if difference.what.split(":")[0] != self.best.what.split(":")[0]:
                return False
            if difference.what == "refused" and self.reason(difference) != self.reason(self.best):
                return False
            self.best = difference
            return True
        return False

    @staticmethod
    def reason(difference):
        """What was said, but for names and places."""
        return [
            "rows" if isinstance(each, list) else str(each).split(" ")[:4]
            for each in (difference.server, difference.sqlite)
        ]

    def attempt(self, holder, name, value):
        """Puts the value there; takes it back if the query does not differ any more."""
        is_list = isinstance(holder, list)
        old = holder[name] if is_list else getattr(holder, name)
        put = holder.__setitem__ if is_list else lambda key, what: setattr(holder, key, what)
        put(name, value)
        if self.differs(self.block):
            return True
        put(name, old)
        return False

    def blocks(self):
        block = self.block
        while isinstance(block, Block):
            yield block
            block = block.source

    def peel(self):
        """The inner block by itself."""
        inner = self.block.source
        if not isinstance(inner, Block):
            return False
        name, inner.name = inner.name, ""
        if self.differs(inner):
            self.block = inner
            return True
        inner.name = name
        return False

    def drop_clauses(self, block):
        dropped = False
        plain = {"where": None, "having": None, "qualify": None, "limit": None, "offset": None,
                 "is_distinct": False, "alias": "", "form": CLASSIC, "groups_by": "text",
                 "by_star": False}  # fmt: skip
        for name, value in plain.items():
            if getattr(block, name) != value:
                dropped |= self.attempt(block, name, value)
        if block.order and block.limit is None:
            order, total = block.order, block.is_total
            block.order, block.is_total = [], False
            if self.differs(self.block):
                dropped = True
            else:
                block.order, block.is_total = order, total
        if block.joins:
            dropped |= self.attempt(block, "joins", [])
        return dropped | self.drop_items(block)

    def drop_items(self, block):
        dropped = False
        for at in reversed(range(len(block.items))):
            if len(block.items) == 1 or any(each.index is not None for each in block.order):
                break
            items, names = block.items, block.names
            block.items, block.names = items[:at] + items[at + 1 :], names[:at] + names[at + 1 :]
            if self.differs(self.block):
                dropped = True
            else:
                block.items, block.names = items, names
        return dropped

    def simplify(self, holder, name):
        node = holder[name] if isinstance(holder, list) else getattr(holder, name)
        candidates = [each for each in node.args if each.type == node.type]
        if node.args:
            candidates.append(SIMPLE[node.type])
        for each in candidates:
            if self.attempt(holder, name, each):
                return True
        return any([self.simplify(node.args, at) for at in range(len(node.args))])

    def run(self):
        while self.tries < MOST_TRIES:
            while self.peel():
                pass
            changed = False
            for block in list(self.blocks()):
                changed |= self.drop_clauses(block)
            for holder, name in list(self.block.slots()):
                changed |= self.simplify(holder, name)
            if not changed:
                break
        return self.best


def shrink(one, block, difference, kind):
    """The smallest difference that was found."""
    return Shrinker(one, block, difference, kind).run()
