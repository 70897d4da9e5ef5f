"""The Debian package, looked into; boot.py beside this file installs it."""

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from harness.package import build, run
from harness.server import ROOT, run_trestle

# Where debhelper puts it, on Debian 12 and on Debian 13.
UNITS = ("lib/systemd/system/trestle.service", "usr/lib/systemd/system/trestle.service")
CONFIG = "etc/trestle/trestle.conf"
PLACEHOLDER = re.compile(r"#[\w-]+ = [A-Z:|/,.]+")  # "#tls-cert = FILE": there is no default


@pytest.fixture(scope="module")
def unpacked(package, tmp_path_factory):
    """What the package puts into the file system, and its control files in DEBIAN."""
    directory = tmp_path_factory.mktemp("unpacked") / "root"
    run("dpkg-deb", "--raw-extract", package, directory)
    return directory


def settings():
    """Names of all settings, from the reference page."""
    page = (ROOT / "docs/reference/settings.md").read_text()
    return re.findall(r"^\| `([\w-]+)` \|", page, re.MULTILINE)


def commands():
    """Commands that `trestle help` names, but for those that need no page."""
    names = re.findall(r"^  ([\w-]+) +\S", run_trestle("help").stdout, re.MULTILINE)
    return [name for name in names if name not in ("help", "version")]


def test_files(package):
    listing = [line.split() for line in run("dpkg-deb", "--contents", package).splitlines()]
    modes = {fields[5].removeprefix("."): (fields[0], fields[1]) for fields in listing}
    assert {owner for _, owner in modes.values()} == {"root/root"}
    assert modes["/usr/bin/trestle"][0] == "-rwxr-xr-x"
    (unit,) = modes.keys() & {f"/{place}" for place in UNITS}
    for file in unit, f"/{CONFIG}", "/usr/lib/sysusers.d/trestle.conf":
        assert modes[file][0] == "-rw-r--r--"
    documents = "/usr/share/doc/trestle"
    for file in "copyright", "changelog.gz", "changelog.Debian.gz":
        assert f"{documents}/{file}" in modes
    pages = ["trestle.1", "trestle.conf.5", *(f"trestle-{name}.1" for name in commands())]
    for page in pages:
        assert f"/usr/share/man/man{page[-1]}/{page}.gz" in modes


@pytest.mark.parametrize("file", ["grafana/trestle.json", "prometheus/trestle.rules.yml"])
def test_dashboard_and_alerts(unpacked, file):
    assert (unpacked / "usr/share/trestle" / file).read_text() == (
        ROOT / "packaging" / file
    ).read_text()  # fmt: skip


def test_control(package):
    def field(name):
        return run("dpkg-deb", "--field", package, name).strip()

    version = re.search(r"version: '([\d.]+)'", (ROOT / "meson.build").read_text())[1]
    release = platform.freedesktop_os_release()["VERSION_ID"]
    assert field("Version") == f"{version}-1+deb{release}"
    depends = re.findall(r"(?:^|, )([\w.+-]+)", field("Depends"))
    for library in "libc6", "libnghttp2", "libre2", "librocksdb", "libssl3", "libsystemd0":
        assert any(each.startswith(library) for each in depends), library
    assert "tzdata" in depends  # SQL's time zones


def test_only_the_configuration_is_the_administrators(unpacked):
    assert (unpacked / "DEBIAN/conffiles").read_text() == f"/{CONFIG}\n"


def test_scripts(unpacked):
    for script in "postinst", "prerm", "postrm":
        run("sh", "-n", unpacked / "DEBIAN" / script)
    postinst = (unpacked / "DEBIAN/postinst").read_text()
    assert postinst.index("systemd-sysusers") < postinst.index("deb-systemd-invoke")


def test_same_bytes_again(package, release_binary, tmp_path):
    again = build(release_binary, tmp_path)
    assert again.read_bytes() == package.read_bytes()


def test_unit(unpacked, release_binary, tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / "trestle.service"
    (installed,) = filter(Path.exists, (unpacked / place for place in UNITS))
    text = installed.read_text()
    unit.write_text(text.replace("=/usr/bin/trestle ", f"={release_binary} "))
    run("systemd-analyze", "verify", "--man=no", unit)
    run("systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", unit)


def test_configuration_documents_every_setting(unpacked):
    lines = (unpacked / CONFIG).read_text().splitlines()
    names = [match[1] for line in lines if (match := re.match(r"#?([\w-]+) = ", line))]
    assert names == [name for name in settings() if name != "config"]
    assert [line for line in lines if line and not line.startswith("#")] == [
        "data-dir = /var/lib/trestle"
    ]


def test_defaults_in_the_configuration_are_taken(unpacked, fresh_server, tmp_path):
    """The server starts with every setting that has a default said to it."""
    text = (unpacked / CONFIG).read_text()
    lines = [
        re.sub(r"^#(?=[\w-]+ = )", "", line)
        for line in text.splitlines()
        if not PLACEHOLDER.fullmatch(line)
    ]
    assert len([line for line in lines if line and line[0] != "#"]) > 30
    config = tmp_path / "trestle.conf"
    config.write_text("\n".join(lines))
    fresh_server("--config", config).stop()


@pytest.mark.parametrize("page", ["trestle.1", "trestle-serve.1", "trestle.conf.5"])
def test_manual(unpacked, page):
    if shutil.which("man") is None:
        pytest.skip("man-db is not installed")
    file = unpacked / f"usr/share/man/man{page[-1]}/{page}.gz"
    done = subprocess.run(
        ["man", "--warnings", "--encoding", "ascii", "--local-file", file],
        env={**os.environ, "MANWIDTH": "300", "LC_ALL": "C.UTF-8"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.stderr == ""
    assert "NAME\n       trestle" in done.stdout
    if page != "trestle.1":
        marks = "--" if page == "trestle-serve.1" else ""
        for name in settings():
            assert name == "config" or f"\n       {marks}{name}" in done.stdout


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("trestle doc", ["doctor"]),
        ("trestle sta", ["status"]),
        ("trestle sup", ["support-bundle"]),
        ("trestle adv", ["advise"]),
        ("trestle copy --from-end", ["--from-endpoint"]),
        ("trestle tail --bear", ["--bearer-file"]),
        ("trestle export dyn", ["dynamodb"]),
        ("trestle serve --otlp-h", ["--otlp-headers"]),
        ("trestle serve --data-", ["--data-dir"]),
        ("trestle serve --durability ", ["sync", "async"]),
        ("trestle serve --durability = a", ["async"]),
        ("trestle import dyn", ["dynamodb"]),
        ("trestle import dynamodb --part", ["--partition-key"]),
        ("trestle serve --data-dir pack", ["packaging"]),
        ("trestle serve --config LIC", ["LICENSE"]),
        ("trestle sql --pa", ["--param"]),
        ("trestle nothing doc", []),
    ],
)
def test_completion(unpacked, typed, found):
    """As bash calls it: it splits at "=", and a blank at the end begins a new word."""
    script = unpacked / "usr/share/bash-completion/completions/trestle"
    words = " ".join(f"'{word}'" for word in typed.split(" "))
    program = f"""
        source {script}
        COMP_WORDS=({words}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _trestle
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = run("bash", "-c", program, cwd=ROOT)
    assert done.split() == found


def test_every_help_is_understood(release_binary, tmp_path):
    """A command whose help has another form would be missed in silence."""
    run(ROOT / "packaging/pages.py", release_binary, tmp_path)
    script = (tmp_path / "completions/trestle").read_text()
    for name in commands():
        help_ = run_trestle(name, "--help").stdout
        flags = set(re.findall(r"^ .*?[ ,](--[a-z][\w-]*)", help_, re.MULTILINE))
        (line,) = re.findall(rf'^    "{name}"\) echo "(.*)"', script, re.MULTILINE)
        assert flags <= set(line.split())
        assert Path(tmp_path / f"trestle-{name}.1").exists()
