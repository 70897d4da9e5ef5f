"""What the emulators have answered, as a file: made with them, and held against the server where
they are not.

A line is an operation, what each emulator said to it, and whether all transactions were rolled
back after it. Rounds are divided by empty lines."""

import json

from differential.datastore.compare import Round, operations_of


def line_of(operation, answers, ends):
    made = {"operation": operation, "ends": ends, **answers}
    return json.dumps(made, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


class Recording(Round):
    """A round that keeps what it hears."""

    def __init__(self, *sides):
        super().__init__(*sides)
        self.lines, self.has_ended = [], False

    def ask(self, operation):
        self.heard = {}
        super().ask(operation)

    def answers_of(self, operation):
        self.heard = super().answers_of(operation)
        return self.heard

    def run(self, operation):
        self.heard, self.has_ended = {}, False
        super().run(operation)
        if self.heard:
            self.lines.append(line_of(operation, self.heard, self.has_ended))

    def end_transactions(self):
        self.has_ended = True
        super().end_transactions()


def record(sides, seed, sizes, path):
    """Of rounds of so many operations. Returns the differences that no rule knows: there should be
    none."""
    texts, differences = [], []
    for number, size in enumerate(sizes):
        one = Recording(sides[0], sides[1:])
        for operation in operations_of(seed, number, size):
            one.run(operation)
        one.close()
        texts.append("\n".join(one.lines))
        differences += one.differences
    path.write_text("\n\n".join(texts) + "\n")
    return differences


class Replay(Round):
    """A round against what was heard."""

    def __init__(self, ours):
        super().__init__(ours, [])

    def hear(self, line):
        self.line = json.loads(line)
        self.ask(self.line["operation"])
        if self.line["ends"]:
            self.end_transactions()

    def answers_of(self, operation):
        return {name: self.line[name] for name in ("classic", "firestore")}

    def mend(self, operation, ours, answers):
        """They were, when they were heard."""


def replay(side, path):
    """The rounds, run."""
    for text in path.read_text().strip().split("\n\n"):
        one = Replay(side)
        for line in text.split("\n"):
            one.done.append(line)
            one.hear(line)
        one.close()
        yield one
