"""The server's sketches and Google's own library, in turn: each reads, writes and merges what the
other has made, to the same bytes. Runs where a JDK and Maven are."""

import contextlib
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from harness.counts import add, create_counts, merge, state_in
from harness.rpc import delete_row

PEER = Path(__file__).parent / "zetasketch"
FETCH_SECONDS = 100
KEY = b"k"
SEED = 20261121
ROUNDS = 40


class Library:
    """Zetasketch in a process of its own: see Peer.java."""

    def __init__(self, classpath):
        command = ["java", "-cp", classpath, str(PEER / "Peer.java")]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def close(self):
        self.process.stdin.close()
        self.process.wait()

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        assert answer, "the library's process has ended"
        assert not answer.startswith("error"), answer
        return answer

    def longs(self, first, last, precision=15, sparse_precision=20):
        return bytes.fromhex(self.ask("longs", precision, sparse_precision, first, last))

    def strings(self, first, last):
        return bytes.fromhex(self.ask("strings", 15, 20, first, last))

    def rewrite(self, state):
        return bytes.fromhex(self.ask("rewrite", state.hex()))

    def merge(self, left, right):
        return bytes.fromhex(self.ask("merge", left.hex(), right.hex()))

    def estimate(self, state):
        return int(self.ask("estimate", state.hex()))


def fetch_classpath(directory):
    """Maven's list of jars, which it fetches if it has not yet."""
    for program in ["javac", "java", "mvn"]:
        if shutil.which(program) is None:
            pytest.skip(f"Zetasketch's library needs {program}, which is not installed")
    listing = directory / "classpath"
    command = ["mvn", "-q", "-B", "-f", PEER / "pom.xml", "dependency:build-classpath"]
    try:
        done = subprocess.run(
            [*command, f"-Dmdep.outputFile={listing}"],
            capture_output=True, text=True, timeout=FETCH_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        pytest.skip(f"Maven has not got Zetasketch's library in {FETCH_SECONDS} s")
    if done.returncode != 0:
        reason = next((line for line in done.stdout.splitlines() if "ERROR" in line), "no reason")
        pytest.skip(f"Maven does not get Zetasketch's library: {reason}")
    return listing.read_text()


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    with contextlib.closing(Library(fetch_classpath(tmp_path_factory.mktemp("maven")))) as peer:
        yield peer


@pytest.fixture
def counts(rpc, new_table_id):
    name = create_counts(rpc, new_table_id())
    yield name
    rpc.delete_table(name)


def write(rpc, table, *mutations):
    """What the cell of numbers holds when it begins with these."""
    rpc.mutate(table, KEY, delete_row(), *mutations)
    return state_in(rpc, table, KEY, "ints")


# On both sides of where a list becomes registers. Between them, at 22,658, the list takes just the
# room that is the limit: the library's source and we make registers of it, its release does not.
@pytest.mark.parametrize("n", [1, 10, 1000, 22657, 22659, 40000])
def test_it_reads_what_we_write(rpc, counts, library, n):
    ours = write(rpc, counts, *(add("ints", number) for number in range(1, n + 1)))
    assert ours == library.longs(1, n)
    assert library.rewrite(ours) == ours
    assert abs(library.estimate(ours) - n) <= 0.03 * n


@pytest.mark.parametrize("n", [1, 1000])
def test_it_reads_our_strings(rpc, counts, library, n):
    for family, form in [("strings", str), ("bytes", lambda number: str(number).encode())]:
        rpc.mutate(counts, KEY, *(add(family, form(number)) for number in range(1, n + 1)))
        assert state_in(rpc, counts, KEY, family) == library.strings(1, n)


@pytest.mark.parametrize("n", [10, 1000, 40000])
def test_it_merges_our_states_and_we_its(rpc, counts, library, n):
    ours = write(rpc, counts, *(add("ints", number) for number in range(1, n + 1)))
    its = library.longs(n // 2, 2 * n)
    both = library.merge(ours, its)
    assert both == library.merge(its, ours)
    rpc.mutate(counts, KEY, merge("ints", its))
    assert state_in(rpc, counts, KEY, "ints") == both
    assert abs(library.estimate(both) - 2 * n) <= 0.03 * 2 * n


def random_state(chance, library):
    precision = chance.choice([10, 11, 12, 14, 15, 15, 15])
    sparse_precision = chance.choice([0, precision + 5, precision + 5, precision + 5])
    first = chance.randrange(1000)
    last = first + chance.randrange(2 ** chance.randrange(4, 16))
    return library.longs(first, last, precision, sparse_precision)


def test_merges_of_any_precision(rpc, counts, library):
    for seed in range(SEED, SEED + ROUNDS):
        chance = random.Random(seed)
        left, right = random_state(chance, library), random_state(chance, library)
        merged = write(rpc, counts, merge("ints", left), merge("ints", right))
        assert merged == library.merge(left, right), f"seed {seed}"
        assert library.rewrite(merged) == merged, f"seed {seed}"
