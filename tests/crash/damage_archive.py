"""Rounds of `./dev crash damage --kind archive`: damage to an archive, and to the whole backups
that it goes on from. See damage.py for what they claim.

A server lives some seconds under load, with restarts and kills, so that its archive has many
pieces, and makes whole backups meanwhile. A round takes copies of the two places, damages one file
in them, asks both commands that verify, and has seconds of that life restored.

`Places` says what a restore to a second needs, by the places as they were: the newest whole backup
that is not younger, its files, and the pieces of the archive from there to that second.
"""

import argparse
import itertools
import random
import re
import shutil
import struct
import threading
import time

import google_crc32c
from archive import SECOND, Clients, Drill, Table, text_of
from archive import Failure as Differs
from damage_bounds import Reader
from damage_model import Failure, check
from damage_ways import PAGE, Hit
from harness.server import Server, run_trestle

TABLES, WRITERS = 6, 2
BACKED_UP = 3  # of so many lives one ends with a whole backup, besides that at the beginning
LIFE_SECONDS = 0.7
RESTORES = 2  # of each round
COUNTER_BITS = 12  # of a version: the rest is microseconds
FIELD_VERSION, FIELD_FILES, FIELD_SHA256 = 2, 7, 3  # of a manifest
DIGEST = 32
PIECE = re.compile(r"([0-9a-f]{16})-([0-9a-f]{16})")
NEAREST = re.compile(
    r"the nearest moments are \S+ \(version (\d+)\), and(, with a whole backup made since,)? "
    r"\S+ \(version (\d+)\)"
)


# --- the life ---


class CalmTable(Table):
    """No restart comes while it goes, or comes back: a server goes on with that by itself."""

    def __init__(self, number, seed, calm):
        super().__init__(number, seed)
        self.calm = calm

    def go(self, *arguments):
        with self.calm:
            super().go(*arguments)

    def come_back(self, clients):
        with self.calm:
            super().come_back(clients)


class Life(Drill):
    """`first` and `last`: between these any second can be had."""

    def __init__(self, directory, seed, count):
        self.count = count
        options = argparse.Namespace(tables=TABLES, writers=WRITERS, seed=seed, bucket=False)
        super().__init__(options, directory)
        calm = threading.Lock()
        self.calm = calm
        self.lives[:TABLES] = [CalmTable(i, seed, calm) for i in range(TABLES)]

    def restart(self):
        with self.calm, self.pause:
            if self.random.random() < 0.25:  # what it leaves the next life archives
                self.server.kill()
            else:
                self.server.stop()
            self.start()

    def live(self):
        self.start()
        self.clients.admin.create_instance("i")
        with self.load():
            self.back_up()
            self.first = time.time_ns() // 1000
            for number in range(self.count):
                self.random_sleep(LIFE_SECONDS)
                self.restart()
                if number % BACKED_UP == 1:
                    self.back_up()
            self.last = time.time_ns() // 1000
        self.lives[0].step(self.clients)  # so that the archive goes beyond the last second
        self.clients.close()
        self.server.stop()
        self.places_as_they_were = Places(self.archive, self.whole)
        return self


# --- what is needed for what ---


def fields(message):
    """(number, value) of each; a message in it is bytes."""
    reader = Reader(message)
    while not reader.is_done():
        tag = reader.varint()
        sizes = {0: None, 1: 8, 2: "varint", 5: 4}
        size = sizes[tag & 7]
        if size is None:
            yield tag >> 3, reader.varint()
        else:
            yield tag >> 3, reader.bytes(reader.varint() if size == "varint" else size)


class Base:
    """A whole backup."""

    def __init__(self, manifest):
        self.name = manifest.name
        message = manifest.read_bytes().split(b"\n", 1)[1][:-DIGEST]
        found = list(fields(message))
        self.version = dict(found)[FIELD_VERSION]
        files = [dict(fields(value)) for number, value in found if number == FIELD_FILES]
        self.contents = {each[FIELD_SHA256].hex() for each in files}


class Piece:
    def __init__(self, path, after):
        name = PIECE.fullmatch(path.name)
        self.name = path.name
        self.number, self.last = int(name[1], 16), int(name[2], 16)
        self.after = after  # 0: it is the first, and begins anywhere
        self.text = path.read_bytes()


class Places:
    """As they were before any damage."""

    def __init__(self, archive, whole):
        self.bases = [Base(path) for path in sorted(whole.glob("backups/*"))]
        self.pieces = []
        for path in sorted(archive.glob("archive/*/*-*")):
            after = self.pieces[-1].last if self.pieces else 0
            self.pieces.append(Piece(path, after))
        self.pieces_of_file = {
            path.name: [piece for piece in self.pieces if stands_in(path, piece)]
            for path in archive.glob("archive/*/files/*")
        }

    def base(self, until, but=None):
        """The newest that is not younger."""
        older = [base for base in self.bases if base.version <= until and base.name != but]
        return max(older, key=lambda base: base.version, default=None)

    def needed(self, base, until):
        """The pieces."""
        return [each for each in self.pieces if each.last > base.version and each.after < until]


def stands_in(path, piece):
    """A piece names a file by its checksum, too."""
    return struct.pack(">I", google_crc32c.value(path.read_bytes())) in piece.text


def version_at(us):
    """The last of that microsecond."""
    return us << COUNTER_BITS | (1 << COUNTER_BITS) - 1


def name_at(version):
    """Of the first whole backup of that second."""
    return re.sub("[-:]", "", text_of(version >> COUNTER_BITS))


# --- damage ---


def pieces(place):
    return sorted(each for each in place.glob("archive/archive/*/*-*") if each.is_file())


PLACES = {
    "piece": pieces,
    "archived file": lambda place: sorted(place.glob("archive/archive/*/files/*")),
    "manifest": lambda place: sorted(place.glob("whole/backups/*")),
    "content": lambda place: sorted(place.glob("whole/files/*")),
}


class PlaceHit(Hit):
    """`names`: of the file, and of what has its bytes now. `is_alien`: a name that another could
    have has them."""

    def __init__(self, path, kind, dice):
        self.is_alien = False
        self.names = {path.name}
        super().__init__(path, kind, dice)

    def damage(self, dice):
        how = dice.choice(["damage", "damage", "damage", "remove", "double", "rename"])
        if how == "damage":
            return super().damage(dice)
        words = f"{self.name} ({self.kind}): {how}"
        if how != "remove":
            other = self.path.with_name(self.other_name(dice))
            shutil.copyfile(self.path, other)
            self.names.add(other.name)
            words += f", {other.name}"
        if how != "double":
            self.path.unlink()
        self.after = self.path.read_bytes() if self.path.exists() else None
        return words

    def other_name(self, dice):
        self.is_alien = dice.random() < 0.8
        if not self.is_alien:
            return f"{self.name}.bak"
        taken = {each.name for each in self.path.parent.iterdir()}
        return next(name for name in self.other_names(dice) if name not in taken)

    def other_names(self, dice):
        piece = PIECE.fullmatch(self.name)
        while True:
            if piece:
                number, last = int(piece[1], 16), int(piece[2], 16)
                number = max(1, number + dice.choice([0, 0, -1, 1, 2, 3, 9]))
                last += dice.choice([0, -1, 1, 1 << 20, 1 << 34])
                yield f"{number:016x}-{last:016x}" + dice.choice(["", "", "", "-gap"])
            elif self.kind == "manifest":
                yield self.name[:-3] + f"{dice.randrange(60):02}Z" + dice.choice(["", "-02"])
            else:
                at = dice.randrange(len(self.name))
                digit = f"{dice.randrange(16):x}"
                yield self.name[:at] + digit + self.name[at + 1 :]

    @property
    def is_gone(self):
        return self.after is None

    @property
    def is_changed(self):
        return self.after is not None and self.after != self.before


# --- a round ---


class ArchiveRound:
    def __init__(self, directory, life, _model, seed):
        self.random = random.Random(seed)
        self.directory, self.life = directory, life
        self.as_they_were = life.places_as_they_were
        self.archive, self.whole = directory / "archive", directory / "whole"
        shutil.copytree(life.archive, self.archive)
        shutil.copytree(life.whole, self.whole)
        self.hits, self.said, self.outcomes = [], [], []
        self.server = Server(directory / "none")
        self.numbers = itertools.count()
        self.kind = None

    def done(self):
        return [hit.words for hit in self.hits]

    def told(self):
        return [f"{self.file.kind}: {', '.join(sorted(set(self.outcomes)))}"]

    def hit(self):
        there = [kind for kind in PLACES for _ in range(1 + 2 * (kind == "piece"))
                 if PLACES[kind](self.directory)]  # fmt: skip
        kind = self.random.choice(there)
        files = [path for path in PLACES[kind](self.directory) if path.stat().st_size > 0]
        self.file = PlaceHit(self.random.choice(files), kind, self.random)
        self.hits = [self.file]

    # --- what is said ---

    def run_command(self, *arguments):
        done = run_trestle(*arguments)
        words = done.stdout + done.stderr
        self.said.append(f"{' '.join(map(str, arguments))}: {done.returncode}\n{words}")
        return done.returncode, words

    def verify(self):
        """Each of the two finds what is wrong in its place, and nothing else is."""
        for name in ("archive", "backup"):
            place = self.archive if name == "archive" else self.whole
            code, words = self.run_command(name, "verify", place)
            must, may = self.is_to_be_found(name)
            check(code == 1 or not must, name, "verify finds nothing")
            check(code == 0 or may, name, "verify finds something")
            check(code == 0 or self.names_it(words), name, "verify does not name it")

    def is_to_be_found(self, name):
        """(whether it must, whether it may be)."""
        file = self.file
        if (file.kind in ("piece", "archived file")) != (name == "archive"):
            return False, False
        if file.is_changed:
            return True, True
        if file.kind == "manifest":  # of one that is not there nobody knows
            return False, file.is_alien or not any(self.whole.glob("backups/*"))
        if file.kind in ("content", "archived file"):
            return file.is_gone, file.is_gone
        ends = (self.as_they_were.pieces[0].name, self.as_they_were.pieces[-1].name)
        must = file.is_alien or (file.is_gone and file.name not in ends)
        return must, must

    def names_it(self, words):
        """By its name, or, of a piece, by its number."""
        if any(name in words for name in self.file.names):
            return True
        numbers = [int(PIECE.match(each)[1], 16) for each in self.file.names if PIECE.match(each)]
        said = re.findall(r"pieces? (\d+)(?: to (\d+))?", words)
        return any(int(a) <= n <= int(b or a) for a, b in said for n in numbers)

    # --- restores ---

    def restore(self, until, *name):
        """The directory if it was made; what was said."""
        place = self.directory / f"restored{next(self.numbers)}"
        place.mkdir()
        data = place / "data"
        code, words = self.run_command(
            "backup", "restore", self.whole, *name, "--archive", self.archive, "--until", until,
            "--to", data)  # fmt: skip
        check((code == 0) == data.exists(), "restore:", code, "but the directory:", data.exists())
        left = [each.name for each in place.iterdir()]
        check(code == 0 or not left, "a restore that was refused has left", left)
        return (data if code == 0 else None), words

    def check_answer(self, data, us):
        self.server = Server(data.parent)
        self.server.start()
        clients = Clients(self.server.host)
        try:
            self.life.compare(clients, us)
        except Differs as differs:
            raise Failure(f"a wrong answer: {differs}") from differs
        finally:
            clients.close()
        self.server.stop()
        shutil.rmtree(data.parent)

    def may_be_refused(self, until):
        """By what the restore would have needed."""
        file, places = self.file, self.as_they_were
        base = places.base(until)
        if not file.is_alien and not file.is_gone and not file.is_changed:
            return False
        if file.kind == "content":
            return file.name in base.contents and (file.is_gone or file.is_changed)
        if file.kind == "manifest":  # one that is gone is missed by nobody: an older one does
            is_missed = file.is_alien or file.is_changed or not places.base(until, but=file.name)
            # Of one that cannot be read only its second is known.
            may_be_it = file.is_changed and file.name[:16] == name_at(until)
            return may_be_it or (is_missed and file.name == base.name)
        if file.is_alien and file.kind == "piece":
            return True
        needed = places.needed(base, until)
        if file.kind == "archived file":
            return any(piece in needed for piece in places.pieces_of_file[file.name])
        return file.name in [piece.name for piece in needed]

    def check_refusal(self, us, words):
        """It names what is wrong; where another moment, or another backup, can be had, so it is."""
        until = version_at(us)
        check(self.may_be_refused(until), "refused for no reason:", words)
        is_told = self.names_it(words) or re.search(
            "begins after the backup|the archive ends with a change of", words
        ) or (self.file.is_gone and "no whole backup is as old as" in words)
        check(is_told, "refused without a name:", words)
        nearest = NEAREST.search(words)
        if nearest is not None:
            self.try_version(int(nearest[1]))
            if nearest[2] is None:
                self.try_version(int(nearest[3]))
        elif self.file.kind == "content" or self.file.kind == "manifest":
            self.try_older(us)
        else:
            end = re.search(r"ends with a change of \S+ \(version (\d+)\)", words)
            check(end, "refused without the nearest:", words)
            if end and not self.file.is_alien:
                self.try_version(int(end[1]))

    def try_version(self, version, turns=3):
        """Names alone do not tell that one of them is wrong: then another moment is named."""
        data, words = self.restore(version)
        nearest = NEAREST.search(words)
        if data is None and self.file.is_alien and nearest is not None and turns > 0:
            return self.try_version(int(nearest[1]), turns - 1)
        is_last_base = version < self.as_they_were.bases[0].version
        check(data is not None or is_last_base, "the nearest moment is refused:", words)
        if data is not None:
            self.check_answer(data, version >> COUNTER_BITS)
        return None

    def try_older(self, us):
        """A whole backup that has no need of the content, or another than the one that is hit."""
        others = [base for base in self.as_they_were.bases
                  if base.version <= version_at(us) and self.file.name not in base.contents
                  and self.file.name != base.name]  # fmt: skip
        if others:
            data, words = self.restore(text_of(us), self.random.choice(others).name)
            check(data is not None, "an older whole backup does not do:", words)
            self.check_answer(data, us)

    def try_second(self):
        first, last = self.life.first // SECOND + 1, self.life.last // SECOND
        us = self.random.randrange(first, last) * SECOND
        data, words = self.restore(text_of(us))
        if data is None:
            self.check_refusal(us, words)
            self.outcomes.append("refused")
        else:
            self.check_answer(data, us)
            self.outcomes.append("as it was")

    def run(self):
        self.hit()
        self.verify()
        for _ in range(RESTORES):
            self.try_second()
