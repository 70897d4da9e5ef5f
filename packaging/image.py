#!/usr/bin/python3
"""Makes an OCI image of a Debian package, as an archive of its layout:

    image.py PACKAGE.deb IMAGE.tar

No daemon, no root and no network are needed. The file system is one layer: the package, the
libraries of this machine's Debian that its programs load, time zones, certificates, and what a
scanner asks for (/etc/os-release, /var/lib/dpkg/status.d, copyrights). There is no shell in it.

The same package and libraries make the same bytes: names are sorted, all times are the package's.
"""

import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

USER = 10001  # of the server inside; Kubernetes' runAsNonRoot wants a number
DATA = "/var/lib/trestle"
PORT = 8086
PROGRAM = "usr/bin/trestle"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
# Of the package itself; service, manual and completion have no use there.
FROM_PACKAGE = (PROGRAM, "etc/trestle/", "usr/share/doc/")
MERGED = ("bin", "lib", "lib64", "sbin")  # links into usr/, as in every Debian
CONFIG = {
    "User": f"{USER}:{USER}",
    "ExposedPorts": {f"{PORT}/tcp": {}},
    "Env": [
        "PATH=/usr/bin",
        f"SSL_CERT_FILE={CERTIFICATES}",
        f"TRESTLE_DATA_DIR={DATA}",
        f"TRESTLE_LISTEN=0.0.0.0:{PORT}",
    ],
    "Entrypoint": [f"/{PROGRAM}", "serve"],
    "Volumes": {DATA: {}},
    "WorkingDir": DATA,
    "StopSignal": "SIGTERM",
}
ACCOUNTS = {
    "etc/passwd": f"root:x:0:0:root:/:/usr/sbin/nologin\n"
    f"trestle:x:{USER}:{USER}:trestle:{DATA}:/usr/sbin/nologin\n",
    "etc/group": f"root:x:0:\ntrestle:x:{USER}:\n",
}


def output_of(*words):
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    return subprocess.run(words, check=True, capture_output=True, env=environment).stdout


def field(package, name):
    return output_of("dpkg-deb", "--field", package, name).decode().strip()


# --- what goes in ---


class Files:
    """The file system by path, without the first slash: bytes, or a link's target."""

    def __init__(self):
        self.files = {}  # path: (mode, bytes)
        self.links = {}
        self.folders = {}  # path: (mode, owner); those above are made as well

    def add(self, path, content, mode=0o644):
        self.files[path] = (mode, content)

    def copy(self, path):
        """A file of this machine under the same name, a link as a link."""
        source = Path("/", path)
        if source.is_symlink():
            self.links[path] = os.readlink(source)
        elif source.is_file():
            self.add(path, source.read_bytes(), source.stat().st_mode & 0o755)

    def paths(self):
        """All of them, each folder before what is in it."""
        known = {*self.files, *self.links, *self.folders}
        for path in list(known):
            known.update(str(each) for each in Path(path).parents if str(each) != ".")
        return sorted(known)


def libraries_of(program):
    """Paths as the loader finds them, its own among them."""
    listed = output_of("ldd", str(program)).decode()
    return sorted(set(re.findall(r"(/\S+) \(0x", listed)))


def owners_of(paths):
    """The Debian packages that have these files, some listed from before /lib was /usr/lib."""
    names = {path: path.removeprefix("/usr") for path in paths}
    both = [each for short in names.values() for each in (short, f"/usr{short}")]
    found = subprocess.run(["dpkg", "-S", *both], capture_output=True, text=True).stdout
    owners = {
        path.removeprefix("/usr"): package.split(":")[0]
        for package, path in (line.split(": ", 1) for line in found.splitlines())
    }
    for path, short in names.items():
        if short not in owners:
            raise SystemExit(f"{path}: no package has it")
    return {owners[short] for short in names.values()}


def add_debian(files, package):
    """What says that a package's files are there, and whose they are."""
    status = output_of("dpkg-query", "--status", package)
    files.add(f"var/lib/dpkg/status.d/{package}", status)
    copyright_ = Path(f"/usr/share/doc/{package}/copyright")
    if copyright_.exists():
        files.add(str(copyright_)[1:], copyright_.read_bytes())


def add_package(files, package):
    """Returns its time, in seconds."""
    archive = output_of("dpkg-deb", "--fsys-tarfile", package)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            path = member.name.removeprefix("./")
            if member.isfile() and path.startswith(FROM_PACKAGE):
                files.add(path, tar.extractfile(member).read(), member.mode)
        newest = int(tar.getmember(f"./{PROGRAM}").mtime)
    files.add("var/lib/dpkg/status.d/trestle", output_of("dpkg-deb", "--field", package))
    return newest


def add_libraries(files):
    """Returns the packages they are of."""
    with tempfile.NamedTemporaryFile() as program:
        program.write(files.files[PROGRAM][1])
        program.flush()
        os.chmod(program.name, 0o700)
        libraries = libraries_of(program.name)
    for library in libraries:
        content = Path(library).read_bytes()
        path = library[1:] if library.startswith("/usr/") else f"usr{library}"
        files.add(path, content, 0o755)
    return owners_of([os.path.realpath(library) for library in libraries])


def add_zones(files):
    for path in output_of("dpkg-query", "--listfiles", "tzdata").decode().split():
        if path.startswith("/usr/share/zoneinfo/"):
            files.copy(path[1:])


def gather(package):
    """All files, and the time that they get."""
    files = Files()
    newest = add_package(files, package)
    packages = add_libraries(files) | {"base-files", "ca-certificates", "tzdata"}
    add_zones(files)
    files.copy(CERTIFICATES[1:])
    for each in sorted(packages):
        add_debian(files, each)
    files.copy("usr/lib/os-release")
    files.links["etc/os-release"] = "../usr/lib/os-release"
    files.links.update({name: f"usr/{name}" for name in MERGED})
    for name in MERGED:
        files.folders[f"usr/{name}"] = (0o755, 0)
    for path, text in ACCOUNTS.items():
        files.add(path, text.encode())
    files.folders["tmp"] = (0o1777, 0)
    files.folders[DATA[1:]] = (0o700, USER)
    return files, newest


# --- the archives ---


def member(path, newest, mode, kind=tarfile.REGTYPE, owner=0):
    made = tarfile.TarInfo(path)
    made.type, made.mode, made.mtime = kind, mode, newest
    made.uid = made.gid = owner
    return made


def layer_of(files, newest):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in files.paths():
            if path in files.files:
                mode, content = files.files[path]
                entry = member(path, newest, mode)
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
            elif path in files.links:
                entry = member(path, newest, 0o777, tarfile.SYMTYPE)
                entry.linkname = files.links[path]
                tar.addfile(entry)
            else:
                mode, owner = files.folders.get(path, (0o755, 0))
                tar.addfile(member(path, newest, mode, tarfile.DIRTYPE, owner))
    return archive.getvalue()


class Layout:
    """Blobs by their digests, and what names them."""

    def __init__(self):
        self.blobs = {}

    def add(self, kind, content, **more):
        """A descriptor of the blob."""
        digest = hashlib.sha256(content).hexdigest()
        self.blobs[f"blobs/sha256/{digest}"] = content
        media = f"application/vnd.oci.image.{kind}"
        return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(content), **more}

    def add_json(self, kind, value, **more):
        return self.add(f"{kind}.v1+json", as_json(value), **more)


def as_json(value):
    return json.dumps(value, indent=1).encode() + b"\n"


def make_layout(files, newest, package):
    layout = Layout()
    layer = layer_of(files, newest)
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(newest))
    architecture = field(package, "Architecture")  # amd64 and arm64 are called so there, too
    version = field(package, "Version").rsplit("-", 1)[0]
    labels = {"title": "trestle", "version": version, "licenses": "Apache-2.0"}
    labels = {f"org.opencontainers.image.{name}": value for name, value in labels.items()}
    config = layout.add_json("config", {
        "created": created,
        "architecture": architecture,
        "os": "linux",
        "config": {**CONFIG, "Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    })  # fmt: skip
    packed = layout.add("layer.v1.tar+gzip", gzip.compress(layer, 6, mtime=0))
    kind = {"mediaType": "application/vnd.oci.image.manifest.v1+json"}
    manifest = {"schemaVersion": 2, **kind, "config": config, "layers": [packed]}
    name = {"org.opencontainers.image.ref.name": version}
    index = layout.add_json("manifest", manifest, annotations=name)
    index["platform"] = {"architecture": architecture, "os": "linux"}
    layout.blobs["index.json"] = as_json({"schemaVersion": 2, "manifests": [index]})
    layout.blobs["oci-layout"] = as_json({"imageLayoutVersion": "1.0.0"})
    return layout.blobs


def write_archive(blobs, newest, to):
    files = Files()
    for path, content in blobs.items():
        files.add(path, content)
    Path(to).write_bytes(layer_of(files, newest))


def main():
    package, to = sys.argv[1:]
    files, newest = gather(package)
    write_archive(make_layout(files, newest, package), newest, to)


if __name__ == "__main__":
    main()
