"""The OCI image: what its layout says, and the server run from its unpacked file system."""

import gzip
import hashlib
import json
import os
import subprocess
import tarfile

import pytest
from harness.package import run
from harness.patience import PATIENCE_SECONDS
from harness.server import ROOT, Server

NAME = "org.opencontainers.image.ref.name"


@pytest.fixture(scope="module")
def image(package, tmp_path_factory):
    made = tmp_path_factory.mktemp("image") / "image.tar"
    run(ROOT / "packaging/image.py", package, made)
    return made


@pytest.fixture(scope="module")
def layout(image):
    """The files of the layout: {path: bytes}."""
    with tarfile.open(image) as tar:
        return {each.name: tar.extractfile(each).read() for each in tar if each.isfile()}


def blob(layout, descriptor):
    """What a descriptor names, if it is what it should be."""
    algorithm, digest = descriptor["digest"].split(":")
    content = layout[f"blobs/{algorithm}/{digest}"]
    assert algorithm == "sha256"
    assert hashlib.sha256(content).hexdigest() == digest
    assert len(content) == descriptor["size"]
    return content


def read_image(layout):
    """(the index's entry, the configuration, the layer unpacked)."""
    (entry,) = json.loads(layout["index.json"])["manifests"]
    manifest = json.loads(blob(layout, entry))
    config = json.loads(blob(layout, manifest["config"]))
    (layer,) = manifest["layers"]
    return entry, config, gzip.decompress(blob(layout, layer))


@pytest.fixture(scope="module")
def root(layout, tmp_path_factory):
    directory = tmp_path_factory.mktemp("image") / "root"
    directory.mkdir()
    archive = directory.with_suffix(".tar")
    archive.write_bytes(read_image(layout)[2])
    run("tar", "--extract", "--file", archive, "--directory", directory)
    return directory


def test_layout(layout, package):
    entry, config, layer = read_image(layout)
    assert json.loads(layout["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    assert len([path for path in layout if path.startswith("blobs/")]) == 3
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
    for platform in entry["platform"], config:
        assert platform["os"] == "linux"
        assert platform["architecture"] == run("dpkg", "--print-architecture").strip()
    version = run("dpkg-deb", "--field", package, "Version").strip()
    assert version.startswith(f"{entry['annotations'][NAME]}-1+deb")


def test_configuration(layout):
    config = read_image(layout)[1]["config"]
    assert config["Entrypoint"] == ["/usr/bin/trestle", "serve"]
    assert config["User"].split(":")[0] not in ("", "0", "root")
    assert list(config["Volumes"]) == ["/var/lib/trestle"]
    assert list(config["ExposedPorts"]) == ["8086/tcp"]


def test_same_bytes_again(image, package, tmp_path):
    again = tmp_path / "again.tar"
    run(ROOT / "packaging/image.py", package, again)
    assert again.read_bytes() == image.read_bytes()


def test_what_scanners_read(root, package):
    def version_of(fields):
        return [line for line in fields.splitlines() if line.startswith("Version:")]

    assert "ID=debian" in (root / "etc/os-release").read_text()
    for beginning in "libc6", "libssl3", "librocksdb", "trestle":
        (found,) = (root / "var/lib/dpkg/status.d").glob(f"{beginning}*")
        fields = found.read_text()
        assert f"Package: {found.name}\n" in fields
        assert version_of(fields)
        assert (root / "usr/share/doc" / found.name / "copyright").exists()


def test_data_is_the_servers_alone(layout, tmp_path):
    archive = tmp_path / "layer.tar"
    archive.write_bytes(read_image(layout)[2])
    with tarfile.open(archive) as tar:
        owners = {member.name: (member.uid, member.mode) for member in tar}
    user = int(read_image(layout)[1]["config"]["User"].split(":")[0])
    assert owners.pop("var/lib/trestle") == (user, 0o700)
    assert {owner for owner, _ in owners.values()} == {0}


def enter(root, layout):
    """Words that run a program in the image as its user; skips where that may not be."""
    user = read_image(layout)[1]["config"]["User"]
    words = ["chroot", f"--userspec={user}", str(root)]
    if os.geteuid() != 0:
        words = ["unshare", "--map-root-user", f"--root={root}"]
    probe = subprocess.run([*words, "/usr/bin/trestle", "version"], capture_output=True)
    if os.geteuid() != 0 and probe.returncode == 1:
        pytest.skip("neither root nor user namespaces")
    assert probe.returncode == 0, probe.stderr
    return words


def environment(layout):
    """The image's, but for the PATH, by which chroot is found."""
    lines = read_image(layout)[1]["config"]["Env"]
    return {**os.environ, **dict(line.split("=", 1) for line in lines), "PATH": os.environ["PATH"]}


def test_off_loopback_it_wants_credentials(root, layout):
    """Inside a container there is no other address; what others reach is not open by default."""
    entrypoint = read_image(layout)[1]["config"]["Entrypoint"]
    done = subprocess.run(
        [*enter(root, layout), *entrypoint], env=environment(layout),
        capture_output=True, text=True, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    assert done.returncode == 2
    assert "TRESTLE_LISTEN: 0.0.0.0:8086 is not loopback" in done.stderr


class ImageServer(Server):
    """The server in the image's file system, with its libraries."""

    def command(self, ready_fd):
        return [
            *self.entered, "/usr/bin/trestle", "serve", "--listen", "127.0.0.1:0",
            "--data-dir", "/var/lib/trestle", "--ready-fd", str(ready_fd),
        ]  # fmt: skip


def test_it_serves(root, layout, tmp_path, connect):
    """Rows, and a time zone, which is a file of the image."""
    if os.geteuid() == 0:
        user = int(read_image(layout)[1]["config"]["User"].split(":")[0])
        os.chown(root / "var/lib/trestle", user, user)
    server = ImageServer(tmp_path)
    server.entered = enter(root, layout)
    server.start()
    try:
        rpc = connect(server.host)
        assert rpc.read(rpc.create_table("t")) == []
        query = "SELECT EXTRACT(HOUR FROM TIMESTAMP '2026-07-01 12:00:00+00' AT TIME ZONE {}) AS h"
        words = ["sql", "--endpoint", server.host, "--format", "csv", "--execute"]
        said = run(root / "usr/bin/trestle", *words, query.format("'Europe/Berlin'"))
        assert said.split() == ["h", "14"]
        server.stop()
    finally:
        server.close()
