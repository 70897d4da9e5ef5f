"""Rounds of `./dev crash damage --kind pair`, two damages at once, and of `--kind catalog` in which
what the catalog has lost is given up. See damage.py for what they claim."""

import itertools
import re

import grpc
from damage_bounds import rows_in, synced_lengths
from damage_model import NOWHERE, SINCE_EVER, TABLES, Failure, check
from damage_rounds import LARGE, WORDS, TableRound, is_given_up
from damage_ways import PLACES, NoFile, hit_some
from harness.patience import PATIENCE_SECONDS
from harness.rpc import delete_row, target
from harness.server import UNDAMAGED, run_trestle

ALONE = ["table", "catalog", "log", "SYNCED", "MANIFEST", "copy", "CURRENT", "FORMAT"]
PAIRS = [*itertools.combinations(ALONE, 2), ("log", "log"), ("catalog", "catalog"),
         ("table", "IDENTITY"), ("log", "IDENTITY")]  # fmt: skip
UNDER_LOAD = ("table", "log")  # what may be hit while it is written to, without the catalog
MOST_STEPS = 8  # from damage to service
NO_TABLE = re.compile(r"damage: keyspace (\d+) .*has no table.* has \d+ rows")
OLD = "old_data"  # a reason of health
MARK = "trestle-old-data"  # a header
WORDS = {**WORDS, "table": r"\d+\.sst"}
NOTHING_LEFT = "nothing of the catalog is left"


class PairRound(TableRound):
    """In the model a row has all values that it may have, until it is read. `names`: of the tables
    now; one that is not known any more gets another name when it is claimed."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.source, self.server.arguments = [], list(LARGE)
        self.names = {name: name for name in TABLES}
        self.bound, self.steps = set(), []
        self.is_salvaged = self.is_old = False

    def choose(self):
        """The kinds of the files that are hit."""
        there = [kinds for kinds in PAIRS if all(PLACES[kind](self.data) for kind in kinds)]
        return list(self.random.choice(there))

    def done(self):
        return [*super().done(), *self.steps]

    def told(self):
        return [f"{' and '.join(sorted(self.kinds))}: {self.outcome}"]

    @property
    def kinds(self):
        return [hit.kind for hit in self.hits]

    # --- damage ---

    def hit_one(self, kind):
        """If there is another one."""
        try:
            names = [hit.name for hit in self.hits]
            [hit] = hit_some(self.data, kind, 1, self.random, names)
        except NoFile:
            return
        self.hits.append(hit)
        if kind == "table":
            rows = [row for name in TABLES for row in self.model.rows(name)]
            self.bound |= rows_in(hit.table.hit(hit.after), rows)
        if kind == "log" and hit.after is None:
            self.place.gone = max(self.place.gone, int(hit.path.stem))

    def hit_all(self):
        kinds = self.choose()
        self.random.shuffle(kinds)
        self.place.start()
        self.model.write_some(self.place, 100)
        if kinds[0] in UNDER_LOAD and "catalog" not in kinds and self.random.random() < 0.4:
            self.hit_one(kinds.pop(0))
            self.write_under_load()
        is_killed = self.random.random() < 0.5
        self.place.end(is_killed)
        self.said.append(f"killed: {is_killed}, at rest: {kinds}")
        for kind in kinds:
            self.hit_one(kind)

    def write_under_load(self):
        for name in TABLES:
            rows = self.random.sample(self.model.rows(name), 100)
            refused = self.model.write(self.place, rows)
            check(refused <= self.bound, refused - self.bound, "refused, and was not hit")

    # --- from there to service ---

    def is_kept(self, place, synced):
        """As of one log (FileRound), of each that is hit."""
        number, end = place
        if place in self.model.drops and "catalog" in self.kinds:
            return False  # rows that no compaction has met are back (docs/internals/drops.md)
        if place == NOWHERE:
            return False
        for hit in self.hits:
            is_lost = hit.kind == "log" and number == int(hit.path.stem)
            if is_lost and end > hit.first_change():
                return synced is not None and end <= synced.get(number, 0)
        return True

    def find_synced(self):
        try:
            return synced_lengths(self.data)
        except (OSError, ValueError, IndexError):
            return {}

    def start(self, *how):
        """None, or why it was refused."""
        before = len(self.server.stderr())
        self.server.arguments = [*LARGE, *how]
        try:
            self.place.start()
            self.steps.append(f"started {' '.join(how)}")
            return None
        except RuntimeError:
            self.steps.append(f"refused {' '.join(how)}")
            return self.server.stderr()[before:]
        finally:
            self.server.arguments = list(LARGE)

    def run_command(self, *arguments):
        done = run_trestle(*arguments)
        words = done.stdout + done.stderr
        self.said.append(f"{' '.join(map(str, arguments))}: {done.returncode}\n{words[-3000:]}")
        return done.returncode, words

    def check_refused(self, words):
        """It names one of the files, or what is in them; so does the doctor."""
        self.said.append(words[-2000:])
        pattern = "|".join([*(WORDS[kind] for kind in self.kinds),
                            *(re.escape(hit.name) for hit in self.hits)])  # fmt: skip
        check(re.search(pattern, words), "refused without a name:", words[-1000:])
        check(re.search("--salvage|trestle repair|backup", words), "no way out:", words[-1000:])
        code, found = self.run_command("doctor", self.data)
        check(code not in UNDAMAGED, "the doctor finds nothing:", found)
        check(re.search(pattern, found), "the doctor does not name it:", found)

    def begin_again(self):
        """Starts somehow: False: only a whole backup helps."""
        synced, how = self.find_synced(), ()
        for _ in range(MOST_STEPS):
            words = self.start(*how)
            if words is None:
                self.is_salvaged = self.is_salvaged or "--salvage" in how
                self.note_possible(None if self.is_salvaged else synced)
                return True
            self.check_refused(words)
            if how:
                check(NOTHING_LEFT in words, "--salvage does not help:", words)
                return False
            if "the catalog is damaged" in words and self.random.random() < 0.5:
                self.repair_catalog()
            else:
                how = ("--salvage",)
        raise Failure("there is no way out")

    def repair_catalog(self):
        """If it cannot, it says what else is damaged."""
        code, words = self.run_command(
            "repair", self.data, "--in-place", "--lost", self.new_file())  # fmt: skip
        self.steps.append(f"repair of the catalog: {code}")
        check(code == 0 or "--salvage" in words or "damaged" in words, "repair:", words)

    def note_possible(self, synced):
        for row in self.model.history:
            values = self.model.possible(row, lambda place: self.is_kept(place, synced))
            self.model.history[row] = [(NOWHERE, value) for value in values]

    # --- old data ---

    def see_old_data(self):
        """Served, if so, for reading, with a mark; then taken for true."""
        if OLD not in self.server.get("/readyz")[1]:
            return
        self.is_old = True
        needs = {"MANIFEST", "copy", "CURRENT", "SYNCED"}
        check(len(needs.intersection(self.kinds)) == 2, "old data for no reason")
        self.may_be_any()
        self.check_old_answers()
        self.place.end()
        code, words = self.run_command("repair", self.data, "--accept-old-data", "--in-place",
                                       "--lost", self.new_file())  # fmt: skip
        self.steps.append(f"repair of old data: {code}")
        check(code == 0 or self.hits_rows(), "repair of old data:", words)
        words = self.start()
        check(words is None, "after the repair of old data:", words)
        check(OLD not in self.server.get("/readyz")[1], "it is still old data")

    def may_be_any(self):
        """Of what it ever was, and what it was before."""
        for row, past in self.sound_history.items():
            values = [value for _, value in past]
            self.model.history[row] = [(NOWHERE, value) for value in values]

    def hits_rows(self):
        return "table" in self.kinds

    def check_old_answers(self):
        for name in TABLES:
            request = {**target(name), "rows": {"row_keys": self.model.rows(name)[:9]}}
            call = self.place.rpc.data.read_rows(request, timeout=PATIENCE_SECONDS)
            headers = dict(call.initial_metadata())
            check(MARK in headers, "old data without a mark", headers)
        try:
            self.place.rpc.mutate(next(iter(TABLES)), b"a00001", delete_row())
        except grpc.RpcError as error:
            code = error.code()
        else:
            raise Failure("old data takes writes")
        check(code == grpc.StatusCode.FAILED_PRECONDITION, "a write of old data:", code)

    # --- tables that nobody knows any more ---

    def claim_all(self):
        """Those that are not there are kept without a name; which is which their rows say."""
        gone = [name for name in TABLES if not self.is_known(name)]
        if not gone:
            return
        may_be_gone = "catalog" in self.kinds or self.is_old
        check(may_be_gone, gone, "are not there")
        self.place.end()
        _, words = self.run_command("doctor", self.data)
        kept = NO_TABLE.findall(words)
        for keyspace in kept:
            name = f"{next(iter(TABLES)).rpartition('/')[0]}/recovered{keyspace}"
            code, words = self.run_command(
                "repair", self.data, "--claim", f"{keyspace}={name}", "--in-place")  # fmt: skip
            self.steps.append(f"claim {keyspace}: {code}")
            check(code in (0, 1), "claim:", words)
        check(self.start() is None, "after the claims: no start")
        self.find_names(gone, kept)

    def is_known(self, name):
        try:
            self.place.rpc.read(self.names[name], rows={"row_keys": [b"none"]})
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.NOT_FOUND:
                return False
            check(error.code() == grpc.StatusCode.DATA_LOSS, name, "answered", error)
        return True

    def find_names(self, gone, kept):
        """One with nothing that can be read is what the others are not."""
        names = [f"{next(iter(TABLES)).rpartition('/')[0]}/recovered{each}" for each in kept]
        for table in list(gone):
            found = [name for name in names if self.has_rows_of(name, table)]
            if found:
                self.names[table] = found[0]
                names.remove(found[0])
                gone.remove(table)
        check(len(gone) <= len(names), gone, "are in no keyspace that was kept:", names)
        self.names.update(zip(gone, names, strict=False))
        for table, name in self.names.items():
            if table != name:
                self.model.made.pop(table)

    def has_rows_of(self, name, table):
        """By what is there, or out of service."""
        for row in self.model.rows(table)[::7]:
            try:
                if self.place.rpc.read(name, rows={"row_keys": [row]}):
                    return True
            except grpc.RpcError as error:
                check(error.code() == grpc.StatusCode.DATA_LOSS, name, "answered", error)
        return False

    # --- rows ---

    def read(self, name, rows):
        return super().read(self.names[name], rows)

    def ranges(self):
        """With the tables' first names."""
        first = {now: name for name, now in self.names.items()}
        found = super().ranges()
        for each in found:
            each["table"] = first.get(each["table"], each["table"])
        return [each for each in found if each["table"] in TABLES]

    def check_rows(self, rows, found):
        for row in rows:
            value = found.get(row)
            may_be = [each for _, each in self.model.history[row]]
            check(value in may_be, row, "is not what it may be:", len(may_be), "there:",
                  value is not None, "row was hit:", row in self.bound)  # fmt: skip
            if value is not None or not self.may_come_back(row):
                self.model.settle(row, value)

    def may_come_back(self, row):
        """A repair may lose the record of its drop yet."""
        places = {place for place, _ in self.sound_history[row]}
        return "catalog" in self.kinds and places & self.model.drops

    def check_service(self):
        named = self.check_out_of_service()
        check("table" in self.kinds or not named, "out of service:", self.ranges())
        self.write_some(named)

    def write_some(self, but=()):
        self.model.write_some(self.place, 60, but)
        for row, changes in self.model.history.items():
            place, value = changes[-1]
            if place not in (NOWHERE, SINCE_EVER):
                self.model.settle(row, value)

    def check_repaired(self, lines):
        for name in TABLES:
            found = self.read(name, [])
            check(found is not None, name, "is out of service after the repair")
            now = self.names[name]
            for row in self.model.rows(name):
                is_lost = row in self.bound and any(
                    is_given_up([name, *line[1:]], name, row) for line in lines if line[0] == now
                )
                if is_lost and found.get(row) is None:
                    self.model.settle(row, None)
                self.check_rows([row], found)
        check(self.ranges() == [], "something is out of service after the repair")
        check("damaged_range" not in self.server.get("/readyz")[1], "health is not well")

    # --- the round ---

    def run(self):
        self.hit_all()
        self.sound_history = {row: list(past) for row, past in self.model.history.items()}
        if not self.begin_again():
            self.outcome = "only a backup helps"
            check(set(self.kinds) & {"catalog"}, self.outcome)
            return
        self.see_old_data()
        self.claim_all()
        self.check_service()
        is_online = self.random.random() < 0.5
        lines = self.repair(is_online)
        if is_online:  # what the server has open may be gone
            lines += self.repair(False)
        self.claim_all()  # damage of the catalog that a start does not meet, a repair does
        self.check_repaired(lines)
        self.write_some()
        check(self.server.get("/readyz")[0] == 200, "it takes no writes")
        self.place.restart()
        self.check_repaired([])
        self.place.end()
        self.check_well()
        self.outcome = self.way()

    def way(self):
        """How it came back."""
        steps = [step.partition(":")[0].rstrip("0123456789 ") for step in self.steps
                 if not step.startswith("refused")]  # fmt: skip
        return ", ".join(dict.fromkeys(steps))

    def check_well(self):
        code, words = self.run_command("doctor", self.data)
        check(code in UNDAMAGED, "the doctor, at the end:", words)


class CatalogRound(PairRound):
    """What the catalog has lost is given up."""

    def choose(self):
        return ["catalog"]
