"""The server against the reference model, in short, and the model against what is written down."""

import compare
import emulator
import pytest
import wire
from filters import Filter, contains, faults
from harness.rpc import Cell
from harness.server import ROOT
from regex import BadPattern, Regex

SEED = "26"  # any will do; one that is fixed says the same each time


def test_server_is_as_the_model(fresh_server, capfd):
    server = fresh_server(*compare.SERVER_OPTIONS)
    arguments = ["--address", server.host, "--seed", SEED, "--jobs", "1"]
    code = compare.main([*arguments, "--ops", "1200", "--evaluations", "12000"])
    shown = capfd.readouterr()
    assert code == 0, shown.err
    assert "as the model has it; " in shown.out


def test_a_clock_that_is_set_back_takes_no_time_from_the_server(monkeypatch):
    """A machine set its clock back by 3 ms amid the comparison. The server went on with the time
    that it had given, as it must, and that was no moment of the request for the model."""
    now = {"wall": 1_000_000_000, "steady": 5_000_000}
    monkeypatch.setattr(wire.time, "time_ns", lambda: now["wall"])
    monkeypatch.setattr(wire.time, "monotonic_ns", lambda: now["steady"])
    clock = wire.Clock()
    given_us = clock.now_us()
    now["wall"] -= 3_000_000
    now["steady"] += 1_000
    assert clock.now_us() == given_us - 3_000
    assert given_us <= clock.latest_us() <= given_us + 3


@pytest.mark.skipif(not emulator.find(), reason="Google's emulator is not on this machine")
def test_emulator_differs_only_as_known(capfd):
    arguments = ["--emulator", "--seed", SEED, "--jobs", "1"]
    code = compare.main([*arguments, "--ops", "300", "--evaluations", "300"])
    shown = capfd.readouterr()
    assert code == 0, shown.err
    named = {line.split(" times: ")[1] for line in shown.out.splitlines() if " times: " in line}
    page = (ROOT / "docs/reference/emulator_differences.md").read_text()
    assert named and all(f"| {name} |" in page for name in emulator.NAMES)
    assert named <= set(emulator.NAMES)


MATCHES = [
    (b"a.b", b"axb", True),
    (b"a.b", b"a\nb", False),
    (b"a\\Cb", b"a\nb", True),
    (b"a|bc", b"abc", False),
    (b"(?i)\xe9", b"\xc9", True),
    (b"\xc3\xa9", b"\xc3\xa9", True),
    (b"\xe9", b"\xc3\xa9", False),
    (b"a$", b"a\n", False),
    (b"(a*)*b", b"a" * 60, False),
    (b"[^\\d]{2,3}", b"xy\n", True),
    (b"\\Qa.b\\E+", b"a.bb", True),
    (b"a{,2}", b"aa", False),
]


@pytest.mark.parametrize("pattern, text, matches", MATCHES)
def test_regex(pattern, text, matches):
    assert Regex(pattern).matches(text) == matches


@pytest.mark.parametrize("pattern", compare.generate.BAD_PATTERNS)
def test_bad_regex(pattern):
    with pytest.raises(BadPattern):
        Regex(pattern)


def test_documented_sink():
    """The example that the API's documentation of `sink` draws."""
    w, x, z = Cell("A", b"A", 1, b"w"), Cell("A", b"B", 2, b"x"), Cell("B", b"B", 4, b"z")
    make = compare.generate.RowFilter
    labelled = make.Chain(filters=[make(apply_label_transformer="foo"), make(sink=True)])
    both = make.Interleave(filters=[make(pass_all_filter=True), make(chain=labelled)])
    whole = make(
        chain=make.Chain(
            filters=[
                make(family_name_regex_filter="A"),
                make(interleave=both),
                make(column_qualifier_regex_filter=b"B"),
            ]
        )
    )
    foo = ("foo",)
    sunk = [w._replace(labels=foo), x._replace(labels=foo)]
    assert not list(faults(whole)) and contains(whole, "sink")
    assert Filter(whole).apply(b"key", [w, x, z]) == [*sunk, x]
