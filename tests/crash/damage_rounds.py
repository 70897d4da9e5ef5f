"""Rounds of `./dev crash damage`: damage to table files, to a whole backup, to any other file. See
damage.py for what they claim."""

import base64
import random
import re
import shutil
import subprocess
import time

import grpc
from damage_bounds import rows_in, synced_lengths
from damage_model import TABLES, Failure, Model, check, name_of
from damage_ways import KINDS, PLACES, hit_some
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest
from harness.rpc import Rpc, decode_rows
from harness.server import UNDAMAGED, Server, binary, run_trestle

SMALL = ["--write-buffer", "4MB", "--cache", "8MB", "--disk-reserve", "0"]
SMALL += ["--overflow-threshold", "4KB"]
LARGE = ["--write-buffer", "64MB", *SMALL[2:]]
ROUNDS_OF_WRITES = 3
AT_ONCE = 100
FEW = 4  # rows, of many that are to be the same
LONGEST_LIFE_SECONDS = 0.5  # of a repair that is killed
LOST, MISSING = grpc.StatusCode.DATA_LOSS, grpc.StatusCode.NOT_FOUND


class Place:
    """A server on a directory, and where in its logs it is."""

    def __init__(self, directory, arguments):
        self.server = Server(directory, arguments)
        self.data = self.server.data
        self.gone = 0  # a log that was removed while it was written

    def start(self):
        self.server.start()
        self.rpc = Rpc(self.server.host)

    def end(self, is_killed=False):
        self.rpc.close()
        if is_killed:
            self.server.kill()
        else:
            self.server.stop()

    def restart(self):
        self.end()
        self.start()

    def place(self):
        """(number of the log, where what has been written ends in it)."""
        newest = max(self.data.glob("*.log"), key=lambda path: int(path.stem), default=None)
        number = int(newest.stem) if newest else 0
        if number <= self.gone:
            return self.gone, float("inf")
        return number, newest.stat().st_size


def make(directory, dice, count, has_catalog=False):
    """A directory at rest, with tables of several levels and logs, and what is in it. With
    `has_catalog` records of the catalog are in table files, too."""
    model = Model(dice, count)
    place = Place(directory, LARGE)
    for turn in range(ROUNDS_OF_WRITES):
        place.server.arguments = LARGE
        place.start()
        for name in TABLES:
            if turn == 0:
                model.make_table(place, name)
            some = [row for row in model.rows(name) if turn == 0 or dice.random() < 0.3]
            model.write(place, some)
        if turn > 0:
            model.drop(place, next(iter(TABLES)), b"a00%d" % turn)
        place.end()
        place.server.arguments = SMALL  # most of what is in the logs becomes tables
        place.start()
        place.end()
        if has_catalog:
            flush(place)
        if turn == ROUNDS_OF_WRITES - 2:
            back_up(place.data, directory / "backup", model)
    return place.data, model


def flush(place):
    """All that is in logs becomes tables, as in any start with something to salvage."""
    (place.data / "SYNCED").unlink()
    place.server.arguments = [*SMALL, "--salvage"]
    place.start()
    place.end()


def back_up(data, to, model):
    done = run_trestle("backup", "create", to, "--data-dir", data)
    check(done.returncode == 0, "backup:", done.stderr)
    model.backup = to
    model.then = {row: model.value(row) for row in model.history}


class Round:
    """`done` says what was damaged, `said` what the server, or a tool, said of it, and `outcome`
    how it ended, in a few words."""

    def __init__(self, directory, sound, model, seed):
        self.random = random.Random(seed)
        self.model = model.copy(self.random)
        self.place = Place(directory, self.arguments())
        self.server, self.data = self.place.server, self.place.data
        shutil.copytree(sound, self.data)
        self.hits, self.said = [], []
        self.files = 0  # that name what is lost
        self.outcome = ""
        self.kind = None  # of files; any

    def done(self):
        return [hit.words for hit in self.hits]

    def told(self):
        """How it ended, for the count at the end: of each damage."""
        return [f"{hit.kind}: {self.outcome}" for hit in self.hits]

    # --- reading ---

    def read(self, name, rows):
        """{row: value}, or None: DATA_LOSS."""
        try:
            found = self.place.rpc.read(name, rows={"row_keys": rows})
            return {row: cells[0].value for row, cells in found}
        except grpc.RpcError as error:
            check(error.code() == LOST, name, "answered", error)
            return None

    def scan(self, name):
        """Nothing is left out before the end; whether that is the table's."""
        is_reversed = self.random.random() < 0.3
        right = self.model.there(name)[:: -1 if is_reversed else 1]
        found = []
        try:
            stream = self.place.rpc.read_stream(name, reversed=is_reversed)
            for row, cells in decode_rows(stream, is_reversed):
                found.append((row, cells[0].value))
        except grpc.RpcError as error:
            check(error.code() == LOST, name, "answered", error)
            right = right[: len(found)]
        for got, wanted in zip(found, right, strict=False):
            check(got == wanted, "a scan gave", got[0], "for", wanted[0])
        check(len(found) == len(right), "a scan gave", len(found), "rows for", len(right))

    def check_whole(self):
        """All rows are there, as they were written."""
        for name in self.model.made:
            rows = self.read(name, [])
            check(rows == dict(self.model.there(name)), name, "is not what was written:",
                  [row for row in self.model.rows(name)
                   if (rows or {}).get(row) != self.model.value(row)][:20])  # fmt: skip

    def check_writes(self):
        self.model.write_some(self.place, 60)
        check(self.server.get("/readyz")[0] == 200, "it takes no writes")


class TableRound(Round):
    """Of four repairs one takes what it would give up from the whole backup: then rows that were
    hit are as they were there. So are large cells, or gone if they were written since."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.source = []
        if self.random.random() < 0.25:
            self.source = ["--from", str(self.model.backup)]
            self.server.arguments += ["--backup-places", str(self.model.backup)]

    @staticmethod
    def arguments():
        return list(SMALL)

    def ranges(self):
        path = "/v1/servers/self/damagedRanges"
        return Rest(self.server.host).call("GET", path).get("ranges", [])

    def lost(self, rows, closed):
        """Those that are out of service; all others are right. Where all are said to be closed a
        few are asked for."""
        if len(rows) > FEW and closed.issuperset(rows):
            some = self.random.sample(rows, FEW)
            return set(rows) - set(some) | self.lost(some, closed)
        found = self.read(name_of(rows[0]), rows)
        if found is not None:
            self.check_rows(rows, found)
            return set()
        half = len(rows) // 2
        return self.lost(rows[:half], closed) | self.lost(rows[half:], closed) if half else {*rows}

    def check_rows(self, rows, found):
        for row in rows:
            check(found.get(row) == self.model.value(row), row, "is not what was written")

    def settled(self):
        """(rows that are refused, rows in ranges that are said to be out of service), once all that
        was met is known. Who reads the row before a damaged block meets it, too, until it is; and
        what was read before a whole file was closed may be refused from then on."""
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            ranges = self.ranges()
            # Of rows whose large cells are out of service only those that have some are refused.
            closed = self.closed(each for each in ranges if not each.get("largeCells"))
            lost = set()
            for name in TABLES:
                for rows in batched(self.model.rows(name), AT_ONCE):
                    lost |= self.lost(rows, closed)
            may_be_closed = self.closed(ranges)
            differing = (closed - lost) | (lost - may_be_closed)
            if not differing:
                return lost, may_be_closed
            check(time.monotonic() < end, sorted(differing)[:20],
                  "refused in no range, or read in one", ranges)  # fmt: skip

    def closed(self, ranges):
        return {row for each in ranges for row in self.model.rows(each["table"])
                if covers(each, row)}  # fmt: skip

    def check_out_of_service(self):
        """What is out of service was hit, and no more. Returns the rows in ranges that are said to
        be."""
        lost, named = self.settled()
        check(lost <= self.bound, sorted(lost - self.bound)[:20],
              "were not hit, and are out of service:", self.ranges())  # fmt: skip
        files, hit = {each["file"] for each in self.ranges()}, {hit.name for hit in self.hits}
        check(files <= hit, files - hit, "are said to be damaged")
        return named

    def check_service(self):
        """All else is right, and takes writes. A scan meets damage that no read of one row does,
        where each row that the block has was written again later."""
        self.check_out_of_service()
        for name in TABLES:
            self.scan(name)
        named = self.check_out_of_service()
        self.model.write_some(self.place, 60, named)
        check(self.server.get("/readyz")[0] == 200, "it takes no writes")
        self.outcome = "rows out of service" if named else "nothing out of service"

    # --- repair ---

    def repair(self, is_online):
        """The lines of what was given up."""
        where = ["--endpoint", self.server.host] if is_online else [str(self.data)]
        command = [binary(), "repair", *where, *self.source, "--in-place", "--lost"]
        lines = []
        if not is_online:
            self.place.end()
        if not is_online and self.random.random() < 0.3:
            lines += self.cut_short([*command, self.new_file()])
        file = self.new_file()
        done = subprocess.run([*command, file], capture_output=True, text=True)
        self.said.append(done.stdout + done.stderr)
        lines += lines_of(file)
        if not is_online:
            self.place.start()
        elif done.returncode != 0 and "restart the server, then repair" in done.stderr:
            self.place.restart()  # RocksDB had the file open when it was damaged
            return lines + self.repair(False)
        check(done.returncode == 0, "repair:", done.stdout, done.stderr)
        return lines

    def new_file(self):
        self.files += 1
        return self.server.directory / f"lost-{self.files}"

    def cut_short(self, command):
        """The next one goes on with what is left."""
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as one:
            time.sleep(self.random.random() * LONGEST_LIFE_SECONDS)
            one.kill()
        return lines_of(command[-1])

    def check_repaired(self, lines):
        """Rows that were given up, of those that were hit, are not there, or as they were in the
        backup; all others are right."""
        for name in TABLES:
            found = self.read(name, [])
            check(found is not None, name, "is out of service after the repair")
            of_table = [line for line in lines if line[0] == name]
            for row in self.model.rows(name):
                value = found.get(row)
                over = [line for line in of_table if is_given_up(line, name, row)]
                is_lost = any(self.may_become(line, row, value) for line in over)
                check(value == self.model.value(row) or is_lost, row, "after the repair:",
                      self.model.describe(row, value))  # fmt: skip
                self.model.settle(row, value)
        check(self.ranges() == [], "something is out of service after the repair")
        check("damaged_range" not in self.server.get("/readyz")[1], "health is not well")

    def may_become(self, line, row, value):
        """By a line about rows that it is one of. What was deleted in between, and has no key in
        what was hit, is there again, too."""
        is_filled, then = "from the whole backup" in line[3], self.model.then[row]
        if is_filled and value == then:
            return True
        is_cut = not is_filled or (
            line[3].startswith("large cells") and self.model.value(row) != then
        )
        return is_cut and value is None and row in self.bound

    # --- the round ---

    def hit(self):
        self.hits = hit_some(self.data, "table", self.random.choice([1, 1, 2, 3]), self.random)
        rows = [row for name in TABLES for row in self.model.rows(name)]
        self.bound = set()
        for hit in self.hits:
            self.bound |= rows_in(hit.table.hit(hit.after), rows)

    def ask_doctor(self):
        doctor = run_trestle("doctor", self.data)
        words = doctor.stdout + doctor.stderr
        check(doctor.returncode == 1, "the doctor finds nothing:", words)
        for hit in self.hits:
            check(hit.name in words, "the doctor does not name", hit.name, words)

    def write_all(self):
        """Flushes and compactions meet it. Refused is what was hit."""
        for name in TABLES:
            refused = self.model.write(self.place, self.model.rows(name))
            check(refused <= self.bound, refused - self.bound, "refused, and was not hit")

    def run(self):
        is_under_load = self.random.random() < 0.3
        is_online = self.random.random() < 0.5
        if not is_under_load:
            self.hit()
            if self.random.random() < 0.2:
                self.ask_doctor()
            self.place.start()
        else:
            self.place.start()
            self.hit()
            self.write_all()
        self.check_service()
        if self.random.random() < 0.3:
            self.place.restart()
            self.check_service()
        lines = self.repair(is_online)
        if is_online and is_under_load:  # what the server has open may be gone
            lines += self.repair(False)
        self.check_repaired(lines)
        self.check_writes()
        self.place.restart()
        self.check_repaired([])
        self.place.end()


def batched(rows, count):
    return [rows[at : at + count] for at in range(0, len(rows), count)]


def decoded(text):
    return base64.b64decode(text)


def covers(each, row):
    """Whether a range of the server's list has the row, which is of its table."""
    start, end = decoded(each.get("startKey", "")), decoded(each.get("endKey", ""))
    is_last = each.get("largeCells") and row == end
    return start <= row and (not end or row < end or is_last)


def unescape(text):
    return text.encode().decode("unicode_escape").encode("latin-1")


def lines_of(file):
    text = file.read_text() if file.exists() else ""
    return [line.split("\t") for line in text.splitlines(keepends=True) if line.endswith("\n")]


def is_given_up(line, name, row):
    table, start, end, words = line
    start, end = unescape(start), unescape(end)
    is_last = words.startswith("large cells") and row == end
    return table == name and start <= row and (not end or row < end or is_last)


# --- other files ---

TORN = "the log ends at byte"
# What a start that is refused says of each, and the doctor too.
WORDS = {
    "log": r"write-ahead log \d+\.log",
    "SYNCED": r"SYNCED",
    "MANIFEST": r"MANIFEST|CURRENT",
    "copy": r"MANIFEST",
    "CURRENT": r"CURRENT|MANIFEST",
    "FORMAT": r"FORMAT|format",
    "IDENTITY": r"IDENTITY",
    "catalog": r"the catalog is damaged",
}
FILE_KINDS = [kind for kind in [*KINDS, "log", "log"] if kind not in ("table", "backup")]


class FileRound(Round):
    """The server's buffers are large: what is written stays in the log."""

    @staticmethod
    def arguments():
        return LARGE

    def hit(self):
        self.hits = hit_some(self.data, self.kind, 1, self.random)
        [self.file] = self.hits
        if self.kind == "log" and self.file.after is None:
            self.place.gone = int(self.file.path.stem)

    # --- what may be so ---

    def is_kept(self, place, synced):
        """Whether a change that ends there is there for certain after damage to a log: if it lies
        in another one, or before the damage. Without a salvage, if it had been synced, too."""
        number, end = place
        if self.kind != "log" or number != int(self.file.path.stem):
            return True
        if end <= self.file.first_change():
            return True
        return synced is not None and end <= synced.get(number, 0 if number > max(synced) else end)

    def look(self, synced):
        """All rows are what they may be; what they are now they stay."""
        for name in TABLES:
            try:
                found = self.read(name, [])
            except Failure as failure:
                may_be_gone = not self.is_kept(self.model.made[name], synced)
                if may_be_gone and "NOT_FOUND" in str(failure):
                    self.model.made.pop(name)
                    continue
                raise
            for row in self.model.rows(name):
                value = found.get(row)
                possible = self.model.possible(row, lambda place: self.is_kept(place, synced))
                check(value in possible, row, "is not what it may be:", len(possible),
                      "history:", [place for place, _ in self.model.history[row]],
                      "synced:", synced, "there:", value is not None)  # fmt: skip
                self.model.settle(row, value)

    # --- a start ---

    def check_refused(self, said):
        words = WORDS[self.kind]
        check(re.search(words, said), "refused without a name:", said[-1000:])
        check(self.kind == "catalog" or "--salvage" in said, "refused without a way out:", said)
        doctor = run_trestle("doctor", self.data)
        said = doctor.stdout + doctor.stderr
        check(doctor.returncode not in UNDAMAGED, "the doctor finds nothing:", said)
        check(re.search(f"{words}|{re.escape(self.file.name)}", said), "not named:", said)

    def begin_again(self):
        """Starts somehow, and looks."""
        synced = synced_lengths(self.data) if self.kind == "log" else None
        before = len(self.server.stderr())
        try:
            self.place.start()
            self.outcome = "served"
            if self.kind == "log" and TORN in self.server.stderr()[before:]:
                self.outcome = "served, told of a torn end"
            self.look(synced or {})
            return
        except RuntimeError as error:
            self.check_refused(str(error)[before:])
        if self.kind == "catalog":
            self.file.put_back()
            self.outcome = "refused, served with the file"
        else:
            self.server.arguments = [*LARGE, "--salvage"]
            self.outcome = "refused, salvaged"
        self.place.start()
        self.server.arguments = LARGE
        self.look(None)

    def run(self):
        there = [kind for kind in FILE_KINDS if PLACES[kind](self.data)]
        self.kind = self.kind or self.random.choice(there)
        is_killed = self.random.random() < 0.5
        is_under_load = self.random.random() < 0.4
        self.place.start()
        self.model.write_some(self.place, 100)
        if is_under_load:
            self.hit()
            self.model.write_some(self.place, 100)
        self.place.end(is_killed)
        if not is_under_load:
            self.hit()
        self.said.append(f"killed: {is_killed}, under load: {is_under_load}")
        self.begin_again()
        self.check_writes()
        self.place.restart()
        self.check_whole()
        self.place.end()


# --- whole backups ---


class BackupRound(Round):
    @staticmethod
    def arguments():
        return SMALL

    def verify(self):
        """No backup with the file is said to be whole."""
        done = run_trestle("backup", "verify", self.backups)
        said = done.stdout + done.stderr
        check(": whole" not in said, "verify finds nothing:", said)
        is_named = done.returncode == 1 and self.hits[0].name in said
        check(is_named or not any(self.backups.glob("backups/*")), "verify does not name it:", said)

    def restore(self):
        """All of it, or none."""
        done = run_trestle("backup", "restore", self.backups, "--to", self.data)
        check((done.returncode == 0) == self.data.exists(), "restore:", done.stdout, done.stderr)
        self.outcome = "restored whole" if self.data.exists() else "restore refused"
        if self.data.exists():
            self.place.start()
            self.check_whole()
            self.place.end()

    def run(self):
        self.backups = self.server.directory / "backups"
        done = run_trestle("backup", "create", self.backups, "--data-dir", self.data)
        check(done.returncode == 0, "create:", done.stdout, done.stderr)
        self.hits = hit_some(self.backups, "backup", 1, self.random)
        shutil.rmtree(self.data)
        self.verify()
        self.restore()
