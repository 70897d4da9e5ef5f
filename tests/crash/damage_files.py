"""Rounds of `./dev crash damage` that hit a file that is no table of the tables: a log, SYNCED, the
manifest, its copy, CURRENT, FORMAT, or a table file of the catalog."""

import re

from damage_rounds import LARGE, NAMES, Round, check, damage
from harness.damage import CATALOG, tables_of
from harness.server import UNDAMAGED, run_trestle

KINDS = ["log", "log", "SYNCED", "MANIFEST", "copy", "CURRENT", "FORMAT", "catalog"]
TORN = "the log's end may be a torn write"
# What a start that is refused says of each, and the doctor too.
WORDS = {
    "log": r"\.log|SYNCED",
    "SYNCED": r"SYNCED",
    "MANIFEST": r"MANIFEST|CURRENT",
    "copy": r"MANIFEST",
    "CURRENT": r"CURRENT|MANIFEST",
    "FORMAT": r"FORMAT|format",
    "catalog": r"the catalog is damaged",
}


def files_of(data, kind):
    if kind == "catalog":
        return tables_of(data, CATALOG)
    if kind == "log":
        return sorted(data.glob("*.log"))
    if kind == "MANIFEST":
        return [path for path in data.glob("MANIFEST-*") if path.suffix == ""]
    if kind == "copy":
        return list(data.glob("MANIFEST-*.copy"))
    return [data / kind]


class FileRound(Round):
    """The server's buffers are large here: what is written stays in the log."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.server.arguments = LARGE
        self.kind = self.random.choice(KINDS)
        self.is_killed = self.random.random() < 0.5

    def write_logged(self):
        for name in NAMES:
            self.model.write(self.rpc, name, self.random.sample(self.model.keys, 100))

    def hit(self):
        files = [path for path in files_of(self.server.data, self.kind) if path.stat().st_size > 0]
        check(files, "there is no", self.kind)
        self.path = self.random.choice(files)
        self.sound = self.path.read_bytes()
        self.done = [f"{damage(self.path, self.random)}, killed: {self.is_killed}"]

    def end(self):
        if self.is_killed:
            self.rpc.close()
            self.server.kill()
        else:
            self.stop()

    # --- what is so ---

    def may_be(self, name, key, value):
        """Of a log that has lost something: what the row was at some time."""
        past = self.model.past[name].get(key, set())
        return value == self.model.tables[name].get(key) or value in past

    def look(self, may_have_lost):
        """Reads all; what is there is true from here on, as long as it was so at some time."""
        for name in NAMES:
            found = {key: cells[0].value for key, cells in self.rpc.read(name)}
            for key in self.model.keys:
                value, right = found.get(key), self.model.tables[name].get(key)
                is_right = self.may_be(name, key, value) if may_have_lost else value == right
                check(is_right, name, key, "is not what was written, may have lost:", may_have_lost,
                      "is there:", value is not None)  # fmt: skip
            self.model.tables[name] = found

    def says_torn(self):
        return TORN in self.server.stderr()

    def check_refused(self, said):
        check(re.search(WORDS[self.kind], said), "refused without a name:", said[-1000:])
        doctor = run_trestle("doctor", self.server.data)
        words = doctor.stdout + doctor.stderr
        check(doctor.returncode not in UNDAMAGED, "the doctor finds nothing:", words)
        named = f"{WORDS[self.kind]}|{re.escape(self.path.name)}"
        check(re.search(named, words), "the doctor does not name it:", words)

    def begin_again(self):
        """Whether something may be lost; the server serves."""
        try:
            self.start()
            return self.kind == "log" and self.says_torn()
        except RuntimeError as error:
            self.check_refused(str(error))
        if self.kind == "catalog":
            self.path.write_bytes(self.sound)
            self.start()
            return False
        self.server.arguments = [*LARGE, "--salvage"]
        self.start()
        self.server.arguments = LARGE
        return self.kind == "log"

    def run(self):
        is_under_load = self.random.random() < 0.4
        self.start()
        self.write_logged()
        if is_under_load:
            self.hit()
            self.write_logged()
        self.end()
        if not is_under_load:
            self.hit()
        may_have_lost = self.begin_again()
        self.look(may_have_lost)
        self.write_logged()
        check(self.server.get("/readyz")[0] == 200, "it takes no writes")
        self.stop()
        self.start()
        self.look(False)
        self.stop()
