#!/usr/bin/env python3
"""Damages files at random, at rest and under load, and looks at every row: `./dev crash damage`.

A data directory is made once, with tables whose rows were written, overwritten and deleted again
and again, some in pieces of their own, over files of several levels. Each round takes a copy and
damages it: bytes flipped, a page of zeros, a file cut off, emptied or removed; while the server is
down, or while it serves. Two of three rounds hit one to three table files. Then

- the server starts, serves and takes writes;
- every row is what it was, or it fails with DATA_LOSS, and then it lies in a range that the server
  says is out of service: never a wrong answer;
- the ranges are those of the files that were hit, and of one block each where only a block was:
  never more than what was hit;
- a repair, of the running server or of the stopped one, brings back all else: no row in a range
  that is given up is there, every other one is as it was, also after a restart, and health is well;
  some repairs of a stopped server are killed, and told again.

The others hit one file of another kind, a log, SYNCED, the manifest, its copy, CURRENT, FORMAT or a
table file of the catalog. Then

- the server starts and has lost nothing; or it says that the log's end may be torn, after a kill,
  and has lost no more than that; or it does not start, names what is damaged, and so does the
  doctor;
- with --salvage it starts: after damage to a log each row is what it was at some time, after any
  other nothing is lost. (Of the catalog the file is put back.)
- it takes writes, and starts as ever from then on.

With --seed the rounds are the same again.
"""

import argparse
import random
import shutil
import sys
import time
from pathlib import Path

import grpc
from damage_files import FileRound
from damage_rounds import Failure, Round, make
from harness.damage import tables

KINDS = [Round, Round, FileRound]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--keys", type=int, default=3000, help="of each table")
    parser.add_argument("--first", type=int, default=0, help="the number of the first round")
    parser.add_argument("--directory", type=Path, default=Path("/tmp/trestle-damage"))
    options = parser.parse_args()
    shutil.rmtree(options.directory, ignore_errors=True)
    (options.directory / "sound").mkdir(parents=True)
    sound, model = make(options.directory / "sound", random.Random(options.seed), options.keys)
    print(f"seed {options.seed}, {len(tables(sound))} table files", flush=True)
    hits, began = 0, time.monotonic()
    for number in range(options.first, options.first + options.rounds):
        place = options.directory / "round"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        kind = KINDS[number % len(KINDS)]
        one = kind(place, sound, model, f"{options.seed}/{number}")
        try:
            one.run()
        except (Failure, RuntimeError, AssertionError, grpc.RpcError) as error:
            print(f"round {number}: {one.done}: {error}", *one.said, file=sys.stderr)
            one.server.process and one.server.kill()
            return 1
        hits += len(one.done)
    took = time.monotonic() - began
    print(f"{options.rounds} rounds, {hits} damages, 0 wrong answers, {took:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
