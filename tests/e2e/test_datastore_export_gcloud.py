"""`gcloud datastore export` and `import` as an operator uses them, where gcloud is installed."""

import subprocess

import pytest
from harness.datastore import client_of, entity
from harness.gcloud import PROGRAM, environment
from harness.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="gcloud is not installed")


def test_gcloud_exports_and_imports(fresh_server, tmp_path):
    server = fresh_server("--export-directory", tmp_path / "exports")
    client = client_of(server.host, "p")
    client.put_multi([entity(client, "Task", i, a=i) for i in range(1, 6)])
    client.put(entity(client, "Other", 1))
    sees = environment(
        tmp_path / "gcloud",
        CORE_PROJECT="p",
        AUTH_DISABLE_CREDENTIALS="true",
        API_ENDPOINT_OVERRIDES_DATASTORE=f"http://{server.host}/",
    )

    def gcloud(*words):
        return subprocess.run(
            [PROGRAM, "datastore", *words], env=sees, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=PATIENCE_SECONDS,
        )  # fmt: skip

    exported = gcloud("export", "gs://b/monday", "--kinds=Task", "--namespaces=(default)")
    assert exported.returncode == 0, exported.stderr
    client.delete_multi([client.key("Task", i) for i in range(1, 4)])
    imported = gcloud("import", "gs://b/monday/monday.overall_export_metadata")
    assert imported.returncode == 0, imported.stderr
    assert [each["a"] for each in client.query(kind="Task").fetch()] == [1, 2, 3, 4, 5]
    again = gcloud("export", "gs://b/monday")
    assert again.returncode == 1
    assert "already exists" in again.stderr
    listed = gcloud("operations", "list", "--format=value(metadata.progressEntities.workCompleted)")
    assert listed.stdout.split() == ["5", "5"]
