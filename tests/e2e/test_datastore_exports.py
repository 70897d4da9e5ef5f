"""Exports of Datastore's entities, and imports: ours, and one that Google's emulator made."""

import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest
from google.api_core import exceptions
from google.cloud.datastore_v1 import types
from google.longrunning import operations_pb2, operations_pb2_grpc
from harness.backups import check_doctor
from harness.datastore import client_of
from harness.exports import (
    SUFFIX,
    Transfers,
    entities,
    finish,
    plain_of,
    put,
    put_at_once,
    read,
)
from harness.exports import key as key_of
from harness.patience import PATIENCE_SECONDS
from harness.server import ROOT, Server, binary

EMULATORS = ROOT / "tests/data/datastore_export"


class Exporting:
    """A server with a directory for exports."""

    def __init__(self, fresh_server, directory):
        self.directory = directory / "exports"
        self.server = fresh_server("--export-directory", self.directory)
        self.connect()

    def connect(self):
        self.transfers = Transfers(self.server, self.directory)
        self.api = client_of(self.server.host, "p")._datastore_api

    def again(self):
        """After the server was started again."""
        self.transfers.close()
        self.connect()


@pytest.fixture
def exporting(fresh_server, tmp_path):
    made = Exporting(fresh_server, tmp_path)
    yield made
    made.transfers.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One for tests that ask little of it; each has projects of its own."""
    directory = tmp_path_factory.mktemp("exporting")
    made = Exporting(
        lambda *arguments: Server(directory, arguments).start(), directory
    )
    yield made
    made.transfers.close()
    made.server.close()


@pytest.fixture
def project(new_table_id):
    return new_table_id()


def small(project, count, kind="K", namespace=""):
    return [
        types.Entity(
            key=key_of(project, kind, i, namespace=namespace),
            properties={"n": {"integer_value": i}},
        )
        for i in range(1, count + 1)
    ]


def keys(made, project):
    """The same in another project."""
    moved = []
    for entity in made:
        key = types.Key(entity.key)
        key.partition_id.project_id = project
        moved.append(key)
    return moved


def wait_until(condition):
    """pytest ends what never comes."""
    while not condition():
        time.sleep(0.05)


# --- there and back ---


def test_all_types_come_back_in_another_project(shared, project):
    made = entities(project)
    put(shared.api, project, made)
    url = shared.transfers.export(project, f"gs://b/{project}", labels={"why": "a test"})
    assert url == f"gs://b/{project}/{project}{SUFFIX}"
    assert shared.transfers.import_(f"{project}-b", url) == len(made)
    copies = read(shared.api, f"{project}-b", keys(made, f"{project}-b"))
    assert copies == read(shared.api, project, keys(made, project))
    assert copies == sorted(map(plain_of, made))


def test_the_files_are_laid_out_as_googles(shared, project):
    put(shared.api, project, small(project, 3) + small(project, 2, "J/é", "n"))
    whole = shared.transfers.export(project, f"gs://b/{project}/whole")
    assert shared.transfers.files(whole) == [
        "all_namespaces/all_kinds/all_namespaces_all_kinds.export_metadata",
        "all_namespaces/all_kinds/output-0",
        f"whole{SUFFIX}",
    ]
    some = shared.transfers.export(
        project, f"gs://b/{project}/some", kinds=["J/é", "K", "not there"], namespaces=["n", ""]
    )
    assert shared.transfers.files(some) == [
        "default_namespace/kind_K/default_namespace_kind_K.export_metadata",
        "default_namespace/kind_K/output-0",
        "namespace_n/kind_J%2Fé/namespace_n_kind_J%2Fé.export_metadata",
        "namespace_n/kind_J%2Fé/output-0",
        f"some{SUFFIX}",
    ]
    assert shared.transfers.import_(f"{project}-b", some) == 5


def test_a_bucket_alone_gets_a_name_from_the_time(shared, project):
    put(shared.api, project, small(project, 1))
    urls = [shared.transfers.export(project, f"gs://{project}") for _ in range(2)]
    assert urls[0] != urls[1]
    for url in urls:
        _, _, _, name, file = url.split("/")
        assert file == name + SUFFIX
        assert shared.transfers.import_(project, url) == 1


def test_filters_of_exports_and_imports(shared, project):
    put(shared.api, project, small(project, 5, "K") + small(project, 4, "J"))
    put(shared.api, project, small(project, 3, "K", "n") + small(project, 2, "J", "n"))
    transfers = shared.transfers

    def exported(name, **options):
        url = transfers.export(project, f"gs://b/{project}/{name}", **options)
        return transfers.import_(f"{project}-b", url)

    assert exported("all") == 14
    assert exported("k", kinds=["K"]) == 8
    assert exported("default", namespaces=[""]) == 9
    assert exported("n", namespaces=["n"]) == 5
    assert exported("n-and-j", namespaces=["n"], kinds=["J"]) == 2
    assert exported("none", kinds=["none"]) == 0
    whole = f"gs://b/{project}/all/all{SUFFIX}"
    assert transfers.import_(f"{project}-c", whole, kinds=["J"], namespaces=[""]) == 4
    assert len(read(shared.api, f"{project}-c", keys(small(project, 5, "J"), f"{project}-c"))) == 4
    for kind, namespace in ("K", ""), ("J", "n"):
        others = keys(small(project, 5, kind, namespace), f"{project}-c")
        assert read(shared.api, f"{project}-c", others) == []


def test_many_entities_in_several_files(exporting):
    large = [
        types.Entity(
            key=key_of("p", "Large", i),
            properties={"x": {"blob_value": bytes([i]) * 900_000, "exclude_from_indexes": True}},
        )
        for i in range(1, 41)
    ]
    for start in range(0, 40, 5):
        put(exporting.api, "p", large[start : start + 5])
    put(exporting.api, "p", small("p", 400))
    url = exporting.transfers.export("p", "gs://b/x")
    outputs = [each for each in exporting.transfers.files(url) if "output-" in each]
    assert len(outputs) == 3
    assert exporting.transfers.import_("q", url) == 440
    for start in range(0, 40, 3):
        some = large[start : start + 3]
        assert read(exporting.api, "q", keys(some, "q")) == sorted(map(plain_of, some))
    exporting.server.stop()
    check_doctor(exporting.server.data)


def test_imports_replace_and_leave_the_rest(shared, project):
    put(shared.api, project, small(project, 3))
    url = shared.transfers.export(project, f"gs://b/{project}")
    changed = small(project, 5)
    for entity in changed:
        entity.properties["n"].integer_value += 100
    put(shared.api, project, changed)
    shared.transfers.import_(project, url)
    expected = small(project, 3) + changed[3:]
    assert read(shared.api, project, keys(changed, project)) == sorted(map(plain_of, expected))


def test_imported_ids_are_not_given_again(shared, project):
    client = client_of(shared.server.host, project)
    ids = [key.id for key in client.allocate_ids(client.key("K"), 5)]
    fresh = f"{project}-b"
    made = [types.Entity(key=key_of(fresh, "K", each)) for each in ids]
    put(shared.api, fresh, made)
    url = shared.transfers.export(fresh, f"gs://b/{project}")
    shared.transfers.import_(f"{project}-c", url)
    other = client_of(shared.server.host, f"{project}-c")
    assert not {key.id for key in other.allocate_ids(other.key("K"), 500)} & set(ids)


def test_an_export_is_of_one_moment(fresh_server, tmp_path):
    """Entities of two namespaces are changed together all the while; between them lie tablets full
    of others, since of one tablet all rows would be read at once."""
    small_parts = ["--split-size", "256KB", "--write-buffer", "4MB"]
    exporting = Exporting(lambda *arguments: fresh_server(*arguments, *small_parts), tmp_path)
    between = [
        types.Entity(
            key=key_of("p", "Between", i, namespace="bcdefghi"[i % 8]),
            properties={"x": {"blob_value": os.urandom(8000), "exclude_from_indexes": True}},
        )
        for i in range(1, 1001)
    ]
    for start in range(0, 1000, 200):
        put_at_once(exporting.api, "p", between[start : start + 200])
    wait_until(lambda: exporting.server.metric("tablets") >= 8)

    def changed(name_space, value):
        entities = small("p", 20, namespace=name_space)
        for entity in entities:
            entity.properties["n"].integer_value = value
        return entities

    def commit(value):
        put_at_once(exporting.api, "p", changed("a", value) + changed("z", value))

    commit(0)
    is_over = threading.Event()

    def change():
        value = 0
        while not is_over.is_set():
            value += 1
            commit(value)

    writer = threading.Thread(target=change)
    writer.start()
    try:
        urls = [exporting.transfers.export("p", f"gs://b/{i}") for i in range(5)]
    finally:
        is_over.set()
        writer.join()
    for number, url in enumerate(urls):
        copy = f"q{number}"
        exporting.transfers.import_(copy, url, namespaces=["a", "z"])
        halves = [
            read(exporting.api, copy, keys(changed(name_space, 0), copy)) for name_space in "az"
        ]
        assert len(halves[0]) == 20
        assert [each.replace('"a"', '"z"', 1) for each in halves[0]] == halves[1]


# --- what Google's emulator made ---


def test_an_export_of_the_emulator_is_imported(shared, project):
    """tests/e2e/test_datastore_export_emulators.py made it of the same entities."""
    made = entities(project)
    shutil.copytree(EMULATORS, shared.directory / project)
    url = f"gs://{project}/emulator/emulator{SUFFIX}"
    assert shared.transfers.import_(project, url) == len(made)
    assert read(shared.api, project, keys(made, project)) == sorted(map(plain_of, made))


# --- refusals ---


def test_what_is_no_place_is_refused(shared, project):
    put(shared.api, project, small(project, 1))
    for url in "", "gs://", "gs://b/../x", "gs://../b", "b/x", "gs://b//x", "file:///tmp/x":
        with pytest.raises(exceptions.InvalidArgument):
            shared.transfers.begin_export(project, url)
        with pytest.raises(exceptions.InvalidArgument):
            shared.transfers.begin_import(project, url + f"/x{SUFFIX}")
    with pytest.raises(exceptions.InvalidArgument, match="overall_export_metadata"):
        shared.transfers.begin_import(project, "gs://b/x")


def test_what_is_there_is_not_written_over(shared, project):
    put(shared.api, project, small(project, 1))
    url = shared.transfers.export(project, f"gs://b/{project}")
    with pytest.raises(exceptions.InvalidArgument, match="already exists"):
        shared.transfers.begin_export(project, f"gs://b/{project}/")
    assert shared.transfers.import_(project, url) == 1


def test_filters_that_say_nothing_are_refused(shared, project):
    for options in (
        {"kinds": ["K", "K"]},
        {"kinds": [""]},
        {"namespaces": ["n", "n"]},
        {"kinds": [f"k{i}" for i in range(101)]},
        {"kinds": [f"k{i}" for i in range(11)], "namespaces": [f"n{i}" for i in range(10)]},
    ):
        with pytest.raises(exceptions.InvalidArgument):
            shared.transfers.begin_export(project, f"gs://b/{project}", **options)
    assert not (shared.directory / "b" / project).exists()


def test_without_a_directory_there_are_no_exports(server, tmp_path):
    transfers = Transfers(server, tmp_path)
    with pytest.raises(exceptions.FailedPrecondition, match="--export-directory"):
        transfers.begin_export("p", "gs://b/x")
    with pytest.raises(exceptions.FailedPrecondition, match="--export-directory"):
        transfers.begin_import("p", f"gs://b/x/x{SUFFIX}")
    transfers.close()


def test_what_is_not_there_is_not_imported(shared, project):
    with pytest.raises(exceptions.NotFound):
        shared.transfers.begin_import(project, f"gs://b/{project}/x{SUFFIX}")


# --- damage ---


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def empty(path):
    """All that there is parses."""
    path.write_bytes(b"")


def turn(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def remove(path):
    path.unlink()


METADATA = "all_namespaces_all_kinds.export_metadata"


@pytest.mark.parametrize(
    ("file", "damage"),
    [("output-0", each) for each in (cut, empty, turn, remove)]
    + [(METADATA, each) for each in (cut, empty, remove)],
)
def test_damage_is_seen(shared, project, file, damage):
    """(Of a bit that is turned in a set's metadata nobody can know: they have no checksum.)"""
    put(shared.api, project, small(project, 20))
    url = shared.transfers.export(project, f"gs://b/{project}")
    damage(shared.transfers.path(url).parent / "all_namespaces/all_kinds" / file)
    operation = shared.transfers.begin_import(f"{project}-b", url)
    with pytest.raises(exceptions.DataLoss):
        finish(operation)
    assert operation.metadata.common.state.name == "FAILED"


def test_metadata_cannot_name_files_elsewhere(shared, project, tmp_path):
    put(shared.api, project, small(project, 2))
    url = shared.transfers.export(project, f"gs://b/{project}")
    metadata = (
        shared.transfers.path(url).parent
        / "all_namespaces/all_kinds/all_namespaces_all_kinds.export_metadata"
    )
    content = metadata.read_bytes()
    assert b"output-0" in content
    metadata.write_bytes(content.replace(b"output-0", b"../../ab"))
    operation = shared.transfers.begin_import(f"{project}-b", url)
    with pytest.raises(exceptions.GoogleAPICallError, match="cannot be one of its own"):
        finish(operation)


# --- crashes, stops, cancelling ---


def fill(exporting, count=3000):
    made = small("p", count)
    for start in range(0, count, 300):
        put_at_once(exporting.api, "p", made[start : start + 300])
    return made


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_an_export_goes_on_after_the_server_ended(exporting, end):
    made = fill(exporting)
    names = [
        exporting.transfers.begin_export("p", f"gs://b/{i}").operation.name for i in range(3)
    ]
    getattr(exporting.server, end)()
    exporting.server.start()
    exporting.again()
    for number, name in enumerate(names):
        operation = wait(exporting, name)
        assert not operation.HasField("error"), operation.error
        url = f"gs://b/{number}/{number}{SUFFIX}"
        assert "unfinished" not in " ".join(exporting.transfers.files(url))
        assert exporting.transfers.import_(f"q{number}", url) == len(made)


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_an_import_goes_on_after_the_server_ended(exporting, end):
    made = fill(exporting)
    url = exporting.transfers.export("p", "gs://b/x")
    name = exporting.transfers.begin_import("q", url).operation.name
    getattr(exporting.server, end)()
    check_doctor(exporting.server.data)
    exporting.server.start()
    exporting.again()
    operation = wait(exporting, name)
    assert not operation.HasField("error"), operation.error
    assert len(read(exporting.api, "q", keys(made, "q"))) == len(made)
    exporting.server.stop()
    check_doctor(exporting.server.data)


def wait(exporting, name):
    stub = operations_pb2_grpc.OperationsStub(exporting.transfers.channel)
    request = operations_pb2.WaitOperationRequest(name=name)
    request.timeout.FromSeconds(60)
    operation = stub.WaitOperation(request, timeout=PATIENCE_SECONDS)
    assert operation.done
    return operation


@pytest.mark.parametrize("mode", ["lose", "tear", "holes"])
def test_what_is_done_survives_a_power_cut(fresh_server, tmp_path, mode):
    library = Path(binary()).resolve().parent / "tests/crash/powercut/libpowercut.so"
    assert library.exists(), f"{library} is missing: build it with ninja"
    cut = {
        "LD_PRELOAD": str(library),
        "POWERCUT_ROOT": str(tmp_path),
        "POWERCUT_JOURNAL": f"{tmp_path}.journal",
        "POWERCUT_MODE": mode,
        "POWERCUT_SEED": "1",
    }

    def start(*arguments):
        return fresh_server(*arguments, env=cut)

    exporting = Exporting(start, tmp_path)
    made = fill(exporting, 600)
    url = exporting.transfers.export("p", "gs://b/x", kinds=["K"], namespaces=[""])
    exporting.server.kill()
    subprocess.run(["true"], env={**os.environ, **cut}, check=True)
    exporting.server.start()
    exporting.again()
    assert exporting.transfers.import_("q", url) == len(made)


def test_what_is_cancelled_leaves_nothing_or_was_done(exporting):
    made = fill(exporting)
    for number in range(5):
        operation = exporting.transfers.begin_export("p", f"gs://b/{number}")
        operation.cancel()
        try:
            url = finish(operation).output_url
        except exceptions.GoogleAPICallError:
            assert not (exporting.directory / "b" / str(number)).exists()
            assert operation.metadata.common.state.name == "CANCELLED"
        else:
            assert exporting.transfers.import_(f"q{number}", url) == len(made)
