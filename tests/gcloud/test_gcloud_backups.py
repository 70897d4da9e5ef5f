"""gcloud's commands on backups, and on tables that come back."""

import base64
import datetime

import pytest
from gcloud_chapters import check_iam, gone, shown

pytestmark = pytest.mark.slow_gcloud

DAY = datetime.timedelta(days=1)
MINUTE = datetime.timedelta(minutes=1)


def b64(text):
    return base64.b64encode(text.encode()).decode()


@pytest.fixture
def row(gcloud, rpc, table):
    """A row in that table: its name, and what the row reads as."""
    cell = {"familyName": "f", "columnQualifier": b64("q"), "value": b64("v")}
    gcloud.post(f"{table}:mutateRow", {"rowKey": b64("r"), "mutations": [{"setCell": cell}]})
    return rpc.read(table)


def is_days_after(time, start, days):
    return abs(time - start - days * DAY) < MINUTE


def test_backups(gcloud, admin, rpc, instance, table, row):
    def now(name="b"):
        return admin.tables.get_backup(name=f"{instance}/clusters/c/backups/{name}")

    place = "--instance=i --cluster=c"
    gcloud(f"backups create b {place} --table=t --retention-period=3d")
    made = now()
    assert made.source_table == table and made.state.name == "READY"
    assert is_days_after(made.expire_time, made.start_time, 3)
    assert gcloud(f"backups describe b {place}") == shown(made)
    assert gcloud("backups list --instance=i") == [shown(made)]
    assert gcloud(f"backups list {place}") == [shown(made)]

    gcloud(f"backups update b {place} --retention-period=5d")
    assert is_days_after(now().expire_time, made.start_time, 5)

    gcloud(
        f"backups create hot {place} --table=t --retention-period=9d"
        " --backup-type=HOT --hot-to-standard-time=+P4d"
    )
    hot = now("hot")
    assert hot.backup_type.name == "HOT"
    assert is_days_after(hot.hot_to_standard_time, hot.start_time, 4)
    gcloud(f"backups update hot {place} --hot-to-standard-time=''")
    assert not now("hot").hot_to_standard_time

    gcloud(
        "backups copy --source-instance=i --source-cluster=c --source-backup=b"
        " --destination-instance=i --destination-cluster=c --destination-backup=copy"
        " --retention-period=2d"
    )
    assert now("copy").source_backup == made.name
    assert now("copy").source_table == table

    gcloud(
        "instances tables restore --source=copy --source-instance=i --source-cluster=c"
        " --destination=t2 --destination-instance=i"
    )
    assert rpc.read(f"{instance}/tables/t2") == row

    for name in "b", "hot", "copy":
        gcloud(f"backups delete {name} {place}")
        gone(lambda name=name: now(name))
    assert "NOT_FOUND" in gcloud.refused(f"backups describe b {place}")


def test_undelete(gcloud, rpc, table, row):
    gcloud("instances tables delete t --instance=i")
    assert gcloud("instances tables list --instances=i") == []
    gcloud("instances tables undelete t --instance=i")
    assert gcloud("instances tables list --instances=i") == [{"name": table}]
    assert rpc.read(table) == row


def test_backup_policies(gcloud, admin, instance, table):
    gcloud("backups create b --instance=i --cluster=c --table=t --retention-period=3d")
    name = f"{instance}/clusters/c/backups/b"
    check_iam(
        gcloud, "backups", "b --instance=i --cluster=c",
        lambda: admin.tables.get_iam_policy(resource=name),
    )  # fmt: skip
