#!/usr/bin/env python3
"""Damages files at random, at rest and under load, and looks at every row: `./dev crash damage`.

A data directory is made once: three tables whose rows were written, overwritten and deleted again
and again, some with large cells, over table files of several levels and logs of several starts.
Each round takes a copy and damages it: bytes flipped, a page of zeros, a file cut, emptied or
removed; while the server is down, or while it serves and is written to, after a stop or a kill.
What is claimed depends on the kind of file.

Up to three table files of tables:
- the server starts, serves and takes writes;
- each row is what was written, or fails with DATA_LOSS; a scan leaves out nothing before it fails;
- what fails, and what the server says is out of service, are rows that have a key in a block whose
  bytes were changed, by the index of the file as it was; or between the first and the last key of
  the file, if its index, a meta block, its footer or its size was changed, or it is gone;
- the doctor names each of the files;
- a repair, of the running server or of the stopped one, or one that was killed and is told again,
  brings back all else: of the rows that were hit those that are given up are not there, every other
  one is right, also after a restart, and health is well.

A table file of the catalog: the server starts and has lost nothing, or does not, and names it, as
the doctor does; with the file back it has lost nothing. Without it (damage_pairs.py) a start with
--salvage, or a repair and a start, goes on: each table is there, under its name or, once it is
claimed, another, with all of its rows.

A log: the server starts and has all changes that lie before the damage, in another log, or before
the end by SYNCED; or it does not start, names the log and --salvage, as the doctor does. Then it
starts with --salvage and has all changes that lie before the damage or in another log. Of any other
change each row has one side or the other. A table is not there only if that is where it was made.

SYNCED, MANIFEST, its copy, CURRENT, FORMAT, IDENTITY: the server starts, or does not, and names the
file and --salvage, as the doctor does, and starts with that; nothing is lost.

A file of a whole backup: `trestle backup verify` finds no whole backup, and names the file, unless
there is no backup left; a restore makes nothing, or all.

Two at once (--kind pair, damage_pairs.py), of the same kind or not: a start that is refused names
one of them and what to do, the doctor, too, and after that a later one serves; each row is what one
of the two may make of it, no more is out of service than the table files had, and after a repair
the doctor finds nothing. What may show deleted data is served for reading, with a mark on each
answer, until it is taken for true. If the list of tables is lost, and the catalog has lost
something as well, only a whole backup helps, and the start says so.

An archive, and the whole backups that it goes on from (--kind archive, damage_archive.py): each
restore to a second gives all that was there then, or makes nothing, and is refused only if it needs
what was hit, which it names, with the nearest moments that can be had, and these can; or an older
backup does. What is changed, or missing, and could be known to be, `verify` names.

But for backups, the server then takes writes, and after the next start, a plain one, all is as it
was. With --seed the rounds are the same again, but for what the server's own threads do.
"""

import argparse
import collections
import random
import shutil
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests")]

import grpc  # noqa: E402
from damage_archive import ArchiveRound, Life  # noqa: E402
from damage_model import Failure  # noqa: E402
from damage_pairs import CatalogRound, PairRound  # noqa: E402
from damage_rounds import BackupRound, FileRound, TableRound, make  # noqa: E402
from damage_ways import KINDS  # noqa: E402


CLASSES = {
    "table": TableRound,
    "backup": BackupRound,
    "archive": ArchiveRound,
    "pair": PairRound,
    "catalog": CatalogRound,
}


def round_of(kind, number):
    """The class of that round: of eight four damage tables, one a backup, and three other files,
    one of them, each other time, the catalog's."""
    if kind is None and number % 16 == 5:
        kind = "catalog"
    if kind is None:
        kind = "table" if number % 2 == 0 else "backup" if number % 8 == 7 else "any other"
    if kind == "catalog" and number % 3 == 0:  # and the file is put back
        return FileRound
    return CLASSES.get(kind, FileRound)


def make_sound(options):
    """What the rounds take copies of, and what is in it: of an archive both are the life."""
    directory = options.directory / "sound"
    if options.kind == "archive":
        return Life(directory, options.seed, options.lives).live(), None
    dice, has_catalog = random.Random(options.seed), options.kind in ("pair", "catalog")
    return make(directory, dice, options.keys, has_catalog)


def run(one):
    """Whether it did as it should."""
    try:
        one.run()
        return True
    except (Failure, RuntimeError, AssertionError, grpc.RpcError) as error:
        print(*one.done(), f"{type(error).__name__}: {error}", *one.said, sep="\n", file=sys.stderr)
        one.server.process and one.server.kill()
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=86400, help="then no round is begun")
    parser.add_argument("--keys", type=int, default=3000, help="of each table")
    parser.add_argument("--lives", type=int, default=9, help="of the server that has an archive")
    parser.add_argument("--first", type=int, default=0, help="the number of the first round")
    kinds = [*KINDS, "pair", "archive"]
    parser.add_argument("--kind", choices=kinds, help="damage files of this kind alone")
    parser.add_argument("--directory", type=Path, default=Path("/tmp/trestle-damage"))
    options = parser.parse_args()
    shutil.rmtree(options.directory, ignore_errors=True)
    (options.directory / "sound").mkdir(parents=True)
    sound, model = make_sound(options)
    counts, damages, rounds, began = collections.Counter(), 0, 0, time.monotonic()
    for number in range(options.first, options.first + options.rounds):
        if time.monotonic() - began > options.seconds:
            break
        rounds += 1
        place = options.directory / "round"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        one = round_of(options.kind, number)(place, sound, model, f"{options.seed}/{number}")
        one.kind = options.kind
        if not run(one):
            print(f"round {number} of seed {options.seed} failed", file=sys.stderr)
            return 1
        counts.update(one.told())
        damages += len(one.hits)
    for words, count in sorted(counts.items()):
        print(f"{count:6} {words}")
    seconds = time.monotonic() - began
    print(f"{rounds} rounds, {damages} damages, 0 wrong answers, {seconds:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
