"""`./dev crash indexes`, a few cycles of each mode; kills with the clock set ahead and back. What
the doctor says of a sound database."""

import subprocess
import sys

import pytest
from harness.backups import check_doctor
from harness.datastore import client_of, entity
from harness.server import ROOT, run_trestle

RUN = [sys.executable, str(ROOT / "tests/crash/indexes.py")]


@pytest.mark.parametrize("mode", ["kill", "powercut"])
def test_after_crashes_the_indexes_are_what_the_entities_say(tmp_path, mode):
    options = ["--cycles", "5", "--seed", "1", "--directory", tmp_path / "crash", "--mode", mode]
    options += ["--clock-steps"] if mode == "kill" else []
    done = subprocess.run([*RUN, *map(str, options)], capture_output=True, text=True)
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stderr
    assert "5 cycles, " in done.stdout
    assert " 0 lost; 6 times every index was made anew" in done.stdout
    assert " 0 acknowledged" not in done.stdout
    assert ", 0 comparisons" not in done.stdout
    assert "'optimistic': 0" not in done.stdout and "'pessimistic': 0" not in done.stdout


def test_the_doctor_counts_entities_and_index_rows(fresh_server):
    server = fresh_server()
    client = client_of(server.host, "p")
    client.put_multi([entity(client, "K", i, a=i, b="x") for i in range(1, 11)])
    client.put(entity(client, "K", 1, a=[1, 2, 2]))
    client.delete(client.key("K", 2))
    client.put(entity(client, "K", 3, exclude=("a",), a=3))
    other = client_of(server.host, "p", database="d")
    other.put(entity(other, "K", 1))
    for each in (client, other):
        each.close()
    server.stop()
    check_doctor(server.data)
    seen = run_trestle("doctor", server.data).stdout
    # One for its kind; of each value two: 7 entities have two values, one two of one, one has one.
    assert "projects/p/databases/d: 1 entities, 1 index rows" in seen
    assert f"projects/p/databases/(default): 9 entities, {9 + 7 * 2 + 2} index rows" in seen
