"""Exports of ours that Google's own emulators import, and theirs that we import, where they are
installed. `TRESTLE_RECORD_EXPORT=1` puts the classic one's export into tests/data/datastore_export.
"""

import os
import shutil

import pytest
from harness.datastore import client_of
from harness.datastore_emulators import CLASSIC, FIRESTORE, Emulator, missing
from harness.exports import SUFFIX, Transfers, entities, plain_of, post, put, read
from harness.server import ROOT

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "both emulators are there")
DATA = ROOT / "tests/data/datastore_export"


@pytest.fixture(scope="module", params=[CLASSIC, FIRESTORE])
def emulator(request, tmp_path_factory):
    started = Emulator(request.param, tmp_path_factory.mktemp(request.param)).start()
    yield started
    started.close()


@pytest.fixture
def transfers(fresh_server, tmp_path):
    server = fresh_server("--export-directory", tmp_path / "exports")
    made = Transfers(server, tmp_path / "exports")
    made.api = client_of(server.host, "p")._datastore_api
    yield made
    made.close()


def export_of_emulator(emulator, project, directory):
    """Returns the overall metadata's path; the classic emulator puts a directory of its own in
    between."""
    if emulator.name == CLASSIC:
        post(emulator.host, f"/v1/projects/{project}:export", {"outputUrlPrefix": str(directory)})
    else:
        request = {
            "database": f"projects/{project}/databases/",
            "export_directory": str(directory.parent),
            "export_name": directory.name,
        }
        post(emulator.host, f"/emulator/v1/projects/{project}:export", request)
    (overall,) = directory.rglob(f"*{SUFFIX}")
    return overall


def import_by_emulator(emulator, project, overall):
    if emulator.name == CLASSIC:
        post(emulator.host, f"/v1/projects/{project}:import", {"inputUrl": str(overall)})
        return
    request = {
        "database": f"projects/{project}/databases/",
        "export_directory": str(overall),
    }
    post(emulator.host, f"/emulator/v1/projects/{project}:import", request)


def test_the_emulator_imports_what_we_export(emulator, transfers):
    made = entities("p")
    put(transfers.api, "p", made)
    url = transfers.export("p", "gs://b/ours")
    import_by_emulator(emulator, "p", transfers.path(url))
    theirs = client_of(emulator.host, "p")._datastore_api
    assert read(theirs, "p", [each.key for each in made]) == sorted(map(plain_of, made))


def test_we_import_what_the_emulator_exports(emulator, transfers):
    made = entities("r")
    theirs = client_of(emulator.host, "r")._datastore_api
    put(theirs, "r", made)
    (transfers.directory / "b").mkdir(parents=True)
    overall = export_of_emulator(emulator, "r", transfers.directory / "b" / "emulator")
    url = f"gs://{overall.relative_to(transfers.directory)}"
    assert transfers.import_("r", url) == len(made)
    assert read(transfers.api, "r", [each.key for each in made]) == sorted(map(plain_of, made))
    if os.environ.get("TRESTLE_RECORD_EXPORT") and emulator.name == CLASSIC:
        shutil.rmtree(DATA, ignore_errors=True)
        shutil.copytree(overall.parent, DATA / "emulator")
        (DATA / "emulator" / overall.name).rename(DATA / "emulator" / f"emulator{SUFFIX}")
