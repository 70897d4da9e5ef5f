"""Backups by Google's admin client: one instance's, with short names for what is in it."""

import datetime

from google.api_core.future import polling
from harness.admin import mask
from harness.patience import PATIENCE_SECONDS
from harness.server import run_trestle

# The library's own first look at an operation is a second later.
SOON = polling.DEFAULT_POLLING.with_delay(initial=0.01, maximum=0.2).with_timeout(120)


def finish(operation):
    """What the operation comes to."""
    return operation.result(polling=SOON)


def from_now(**span):
    return datetime.datetime.now(datetime.UTC) + datetime.timedelta(**span)


def check_doctor(*arguments):
    """The doctor finds nothing; what it says."""
    seen = run_trestle("doctor", *arguments)
    assert seen.returncode == 0, seen.stdout + seen.stderr
    return seen.stdout


class Backups:
    """`cluster` is where backups go unless a test says otherwise."""

    def __init__(self, admin, instance, cluster="c"):
        self.admin = admin
        self.tables = admin.tables
        self.instance = instance
        self.cluster = f"{instance}/clusters/{cluster}"

    def name(self, backup_id):
        return f"{self.cluster}/backups/{backup_id}"

    def table(self, table_id):
        return f"{self.instance}/tables/{table_id}"

    def begin(self, backup_id, table_id, **fields):
        """The operation that makes the backup."""
        backup = {"source_table": self.table(table_id), "expire_time": from_now(days=7), **fields}
        return self.tables.create_backup(
            parent=self.cluster, backup_id=backup_id, backup=backup, timeout=PATIENCE_SECONDS
        )

    def create(self, backup_id, table_id, **fields):
        return finish(self.begin(backup_id, table_id, **fields))

    def copy(self, backup_id, source, parent=None, **fields):
        """The operation that copies the backup `source`, a full name."""
        return self.tables.copy_backup(
            request={
                "parent": parent or self.cluster,
                "backup_id": backup_id,
                "source_backup": source,
                "expire_time": from_now(days=7),
                **fields,
            }
        )

    def restore(self, table_id, backup, instance=None):
        """The operation that restores the backup, a full name."""
        return self.tables.restore_table(
            request={"parent": instance or self.instance, "table_id": table_id, "backup": backup}
        )

    def get(self, backup_id):
        return self.tables.get_backup(name=self.name(backup_id))

    def update(self, backup_id, *paths, **fields):
        return self.tables.update_backup(
            backup={"name": self.name(backup_id), **fields}, update_mask=mask(*paths)
        )

    def delete(self, backup_id):
        self.tables.delete_backup(name=self.name(backup_id))

    def list(self, parent=None, **fields):
        request = {"parent": parent or self.cluster, **fields}
        return list(self.tables.list_backups(request=request))

    def ids(self, parent=None, **fields):
        return [each.name.rsplit("/", 1)[-1] for each in self.list(parent, **fields)]
