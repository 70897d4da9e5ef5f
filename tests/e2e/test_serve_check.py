"""`trestle serve --check`: all that is wrong with settings, and what they name; nothing is changed.
And that serve makes nothing before it knows that they are good."""

import pytest
from harness.server import run_trestle


def there(directory):
    """What is in it, but for what a server that runs makes in its own."""
    paths = directory.rglob("*")
    return sorted(path for path in paths if not (path.parent / "LOCK").exists())


@pytest.fixture
def check(tmp_path):
    """A function that checks settings: the lines, each `wrong`, a `note` or the last."""

    def run(*arguments, code, env=None):
        before = there(tmp_path)
        done = run_trestle("serve", "--check", *arguments, env=env)
        assert (done.returncode, done.stderr) == (code, "")
        assert there(tmp_path) == before
        return done.stdout.splitlines()

    return run


def test_all_that_is_wrong_is_told(check, tmp_path):
    config, nothing = tmp_path / "trestle.conf", tmp_path / "no" / "such"
    config.write_text(f"cache = much\ncolour = blue\ndata-dir = {nothing}\nauth = on\n")
    lines = check(
        "--config", config, "--auth-tokens", nothing, "--auth-policy", config,
        "--audit-log", nothing, "--backup-dir", nothing.parent / "b", "--archive", tmp_path / "a",
        "--otlp-endpoint", "nowhere", "--listen", "0.0.0.0:0", "--split-size", "1",
        env={"TRESTLE_TLS_CERT": str(nothing), "TRESTLE_TLS_KEY": str(nothing)}, code=1,
    )  # fmt: skip
    wrong = [line.removeprefix("wrong: ") for line in lines if line.startswith("wrong: ")]
    assert [line.split(": ")[0] for line in wrong] == [
        str(config) + ":1", str(config) + ":2", "--split-size", "TRESTLE_TLS_CERT",
        "--otlp-endpoint", "--auth-tokens", "--auth-policy", "--audit-log",
        str(config) + ":3", "--backup-dir",
    ]  # fmt: skip
    assert wrong[9] == f"--backup-dir: cannot look at {nothing.parent}/: No such file or directory"
    assert wrong[0] == f'{config}:1: cache: "much" is not a size from 8MB to 16TB'
    assert wrong[5] == f"--auth-tokens: cannot open {nothing}: No such file or directory"
    notes = [line for line in lines if line.startswith("note: ")]
    assert len(notes) == 1 and f"the archive: cannot look at {tmp_path}/a: No such" in notes[0]
    assert len(lines) == len(wrong) + len(notes)


def test_nothing_is_wrong(check, tmp_path):
    data = tmp_path / "data"
    assert check("--data-dir", data, "--listen", "127.0.0.1:0", code=0) == [
        f"note: the data directory {data} is not there: serve makes it",
        "nothing is wrong: serve would start",
    ]
    full = check("--data-dir", data, "--listen", "127.0.0.1:0", "--disk-reserve", "16TB", code=0)
    assert full[1].endswith(f" MB are free at {tmp_path}/, less than disk-reserve: "
                            "no writes are taken")  # fmt: skip
    left_on = check("--data-dir", data, "--listen", "127.0.0.1:0", "--salvage", code=0)
    assert left_on[1].startswith("note: salvage is not needed")
    (line,) = check("--data-dir", data, "--listen", "0.0.0.0:0", code=1)[:1]
    assert line.startswith("wrong: --listen: 0.0.0.0:0 is not loopback")


def test_what_serve_would_meet(check, tmp_path):
    """Wrong is what it would not start with; a note, what it would."""
    within = f"is in the data directory {tmp_path}/data, and would be lost with it"
    usual = {"--listen": "127.0.0.1:0", "--data-dir": tmp_path / "data"}
    for setting, value, why in (
        ("--audit-log", tmp_path, f"cannot write to {tmp_path}: Is a directory"),
        ("--data-dir", "/proc/x", "nothing can be made in /proc/: it is the kernel's"),
        ("--listen", "127.0.0.1:99999", '"127.0.0.1:99999" is not ADDR:PORT'),
        ("--tls-cert", tmp_path, "needs tls-key beside it"),
        ("--backup-dir", tmp_path / "data", f"{tmp_path}/data {within}"),
        ("--backup-places", f"s3://b/p,{tmp_path}/data/p", f"{tmp_path}/data/p {within}"),
        ("--archive", tmp_path, f"{tmp_path} has the data directory {tmp_path}/data in it"),
        ("--memory", "100MB", "is less than 512 MB"),
        ("--inject", "Foo: delay=1s", 'no method has the name "Foo": it is one such as ReadRows, '
         "google.bigtable.v2.Bigtable/ReadRows, or *"),
        ("--archive", "ftp://b/p", "ftp://b/p: a place is a directory, or s3://BUCKET/PREFIX"),
    ):
        given = {**usual, setting: value}
        lines = check(*(each for pair in given.items() for each in pair), code=1)
        told = [line for line in lines if line.startswith("wrong: ")]
        assert told == [f"wrong: {setting}: {why}"]
    listen = (each for pair in usual.items() for each in pair)
    (tmp_path / "data").mkdir()
    letter = tmp_path / "data" / "letter"
    letter.write_text("something else")
    other = tmp_path / "other"
    other.write_text("no directory")
    assert check(
        *listen, "--export-directory", letter, "--backup-places", f"{other},ftp://b/p",
        "--backup-schedule", "1h", "--backup-dir", tmp_path / "data" / "backups",
        "--ready-fd", "77", code=0,
    ) == [
        f"note: {letter.parent} has files, but no data of Trestle: serve begins some among them",
        f"note: the backup directory {letter.parent}/backups is not there: serve makes it",
        f"note: backup-places: {other} is not a directory; the schedule makes no whole backup",
        "note: backup-places: ftp://b/p: a place is a directory, or s3://BUCKET/PREFIX; "
        "no whole backup is made there",
        f"note: export-directory: {letter} is not a directory; "
        "Datastore's exports and imports fail",
        "note: ready-fd: 77 is not open here: nobody would hear that it serves",
        "nothing is wrong: serve would start",
    ]  # fmt: skip


def test_before_a_restart(check, fresh_server, tmp_path):
    """The server that runs has the directory and the port; another one's port is no good."""
    server = fresh_server("--log-level", "warn", "--salvage")
    assert "--salvage was not needed" in server.stderr()
    assert check("--data-dir", server.data, "--listen", server.host, code=0) == [
        f"note: a server runs on {server.data} now",
        f"note: {server.host} is in use, by that server if it is the one to be restarted",
        "nothing is wrong: serve would start",
    ]
    lines = check("--data-dir", tmp_path / "new", "--listen", server.host, code=1)
    assert lines[0] == f"wrong: --listen: cannot bind {server.host}: Address already in use"
    theirs = server.data / "backups"
    lines = check("--data-dir", tmp_path / "new", "--backup-dir", theirs, "--listen", "127.0.0.1:0",
                  code=1)  # fmt: skip
    assert lines[0] == f"wrong: --backup-dir: {theirs} is in use by another process"
    refused = run_trestle("serve", "--data-dir", tmp_path / "new", "--listen", server.host)
    assert refused.returncode == 1 and "Address already in use" in refused.stderr
    assert not (tmp_path / "new").exists()


def test_serve_makes_nothing_before_it_knows(tmp_path):
    data, nothing = tmp_path / "data", tmp_path / "nothing"
    for setting, why in (
        ("--auth-tokens", f"--auth-tokens: cannot open {nothing}"),
        ("--backup-dir", f"--backup-dir: cannot look at {nothing}"),
        ("--audit-log", f"--audit-log: cannot look at {nothing}"),
    ):
        value = nothing if setting == "--auth-tokens" else nothing / "below"
        done = run_trestle(
            "serve", "--data-dir", data, "--listen", "127.0.0.1:0", "--auth", "on", setting, value
        )
        assert done.returncode == 1 and why in done.stderr, done.stderr
        assert list(tmp_path.iterdir()) == []


def test_serve_makes_nothing_with_rules_about_no_method(tmp_path):
    done = run_trestle("serve", "--data-dir", tmp_path / "data", "--listen", "127.0.0.1:0",
                       "--inject", "Foo: delay=1s")  # fmt: skip
    assert done.returncode != 0 and 'no method has the name "Foo"' in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_would_be_another_one(check, fresh_server):
    server = fresh_server()
    server.stop()
    (server.data / "IDENTITY").unlink()
    lines = check("--data-dir", server.data, "--listen", "127.0.0.1:0", code=0)
    assert [line for line in lines if "the file IDENTITY is missing" in line]


def test_a_directory_of_something_else(check, tmp_path):
    (tmp_path / "data").mkdir()
    table = tmp_path / "data" / "000001.sst"
    table.write_text("")
    (line,) = check("--data-dir", table.parent, "--listen", "127.0.0.1:0", code=1)
    assert line.startswith("wrong: --data-dir: ") and "data of another program" in line
    table.unlink()
    (tmp_path / "data" / "FORMAT").write_text("trestle 99\n")
    (line,) = check("--data-dir", table.parent, "--listen", "127.0.0.1:0", code=1)
    assert "has format 99; this program knows formats up to" in line
