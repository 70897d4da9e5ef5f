"""gcloud's commands on tables, and what tables have: authorized views and schema bundles."""

import base64

import pytest
from gcloud_chapters import check_iam, gone, only, shown
from google.cloud.bigtable_admin_v2 import types
from google.protobuf import descriptor_pb2

VIEW = types.Table.View
FULL_VIEW = types.AuthorizedView.ResponseView.FULL


def b64(text):
    return base64.b64encode(text.encode()).decode()


def test_tables(gcloud, admin, rpc, instance):
    """The chapter that ./dev test has time for."""
    name = f"{instance}/tables/t"

    def now(view=VIEW.SCHEMA_VIEW):
        return shown(admin.tables.get_table(request={"name": name, "view": view}))

    gcloud(
        "instances tables create t --instance=i --splits=car,key"
        " --column-families='f1:maxage=10d||maxversions=5,f2:maxage=1d&&maxversions=2,f3'"
    )
    rules = now()["columnFamilies"]
    assert rules["f1"]["gcRule"] == {
        "union": {"rules": [{"maxAge": "864000s"}, {"maxNumVersions": 5}]}
    }
    assert rules["f2"]["gcRule"] == {
        "intersection": {"rules": [{"maxAge": "86400s"}, {"maxNumVersions": 2}]}
    }
    assert rules["f3"] == {}
    assert [key for key, _ in rpc.sample_row_keys(name)] == [b"car", b"key", b""]

    assert gcloud("instances tables describe t --instance=i") == now()
    assert gcloud("instances tables list --instances=i") == [{"name": name}]
    gcloud("instances tables update t --instance=i --deletion-protection")
    assert now()["deletionProtection"]
    assert "FAILED_PRECONDITION" in gcloud.refused("instances tables delete t --instance=i")
    gcloud("instances tables update t --instance=i --no-deletion-protection")
    gcloud("instances tables delete t --instance=i")
    gone(lambda: now())


@pytest.mark.slow_gcloud
def test_automated_backups(gcloud, admin, instance):
    def policy(table):
        got = shown(admin.tables.get_table(name=f"{instance}/tables/{table}"))
        return got.get("automatedBackupPolicy")

    words = "--instance=i --column-families=f"
    daily = {"retentionPeriod": "604800s", "frequency": "86400s"}
    gcloud(f"instances tables create t {words} --enable-automated-backup")
    assert policy("t") == daily
    gcloud(f"instances tables create u {words} --automated-backup-retention-period=30d")
    assert policy("u")["retentionPeriod"] == "2592000s"
    gcloud("instances tables update t --instance=i --automated-backup-retention-period=10d")
    assert policy("t") == {**daily, "retentionPeriod": "864000s"}
    gcloud("instances tables update t --instance=i --disable-automated-backup")
    assert policy("t") is None
    gcloud("instances tables update t --instance=i --enable-automated-backup")
    assert policy("t") == daily


@pytest.mark.slow_gcloud
def test_change_streams(gcloud, admin, instance):
    def period(table):
        got = shown(admin.tables.get_table(name=f"{instance}/tables/{table}"))
        return got.get("changeStreamConfig")

    words = "--instance=i --column-families=f"
    gcloud(f"instances tables create t {words} --change-stream-retention-period=2d")
    assert period("t") == {"retentionPeriod": "172800s"}
    update = "instances tables update t --instance=i"
    gcloud(f"{update} --change-stream-retention-period=7d")
    assert period("t") == {"retentionPeriod": "604800s"}
    assert "FAILED_PRECONDITION" in gcloud.refused("instances tables delete t --instance=i")
    gcloud(f"{update} --clear-change-stream-retention-period")
    assert period("t") is None
    gcloud("instances tables delete t --instance=i")


@pytest.mark.slow_gcloud
def test_views_of_tables(gcloud, admin, table):
    for word, view in {
        "name": VIEW.NAME_ONLY,
        "replication": VIEW.REPLICATION_VIEW,
        "encryption": VIEW.ENCRYPTION_VIEW,
        "full": VIEW.FULL,
    }.items():
        told = gcloud(f"instances tables describe t --instance=i --view={word}")
        assert told == shown(admin.tables.get_table(request={"name": table, "view": view})), word
        assert word == "name" or told["clusterStates"].keys() == {"c"}


@pytest.mark.slow_gcloud
def test_row_key_schemas(gcloud, admin, table):
    def kept():
        return shown(admin.tables.get_table(name=table)).get("rowKeySchema")

    raw = {"bytesType": {"encoding": {"raw": {}}}}
    fields = [{"fieldName": "user", "type": raw}, {"fieldName": "day", "type": raw}]
    schema = {"encoding": {"delimitedBytes": {"delimiter": b64("#")}}, "fields": fields}
    plain = {**schema, "encoding": {"delimitedBytes": {"delimiter": "#"}}}
    update = "instances tables update t --instance=i"
    gcloud(f"{update} --row-key-schema-definition-file={gcloud.file('plain.json', plain)}")
    assert kept() == schema
    assert gcloud("instances tables describe t --instance=i")["rowKeySchema"] == schema
    other = gcloud.file("other.json", {**schema, "fields": fields[:1]})
    words = f"{update} --row-key-schema-pre-encoded-bytes --row-key-schema-definition-file={other}"
    assert "in-place modification is not allowed" in gcloud.refused(words)
    gcloud(f"{update} --clear-row-key-schema")
    assert kept() is None
    gcloud(words)
    assert kept() == {**schema, "fields": fields[:1]}


@pytest.mark.slow_gcloud
def test_table_policies(gcloud, admin, table):
    check_iam(
        gcloud, "instances tables", "t --instance=i",
        lambda: admin.tables.get_iam_policy(resource=table),
    )  # fmt: skip


# --- authorized views ---

DEFINITION = {
    "subsetView": {
        "rowPrefixes": ["store1#"],
        "familySubsets": {"f": {"qualifiers": ["address"], "qualifierPrefixes": ["tel"]}},
    },
    "deletionProtection": True,
}


@pytest.mark.slow_gcloud
def test_authorized_views(gcloud, admin, table):
    name = f"{table}/authorizedViews/v"
    view = "v --instance=i --table=t"

    def now():
        request = {"name": name, "view": FULL_VIEW}
        return shown(admin.tables.get_authorized_view(request=request))

    file = gcloud.file("view.json", DEFINITION)
    gcloud(f"authorized-views create {view} --definition-file={file}")
    assert now()["subsetView"] == {
        "rowPrefixes": [b64("store1#")],
        "familySubsets": {"f": {"qualifiers": [b64("address")], "qualifierPrefixes": [b64("tel")]}},
    }
    assert now()["deletionProtection"]
    described = gcloud(f"authorized-views describe {view}")
    assert described["name"] == name and described["etag"] == now()["etag"]
    assert gcloud("authorized-views list --instance=i --table=t") == [{"name": name}]

    narrow = {"subsetView": {"rowPrefixes": ["store1#a"]}, "deletionProtection": False}
    file = gcloud.file("narrow.json", narrow)
    gcloud(f"authorized-views update {view} --definition-file={file} --ignore-warnings")
    assert now()["subsetView"] == {"rowPrefixes": [b64("store1#a")]}
    assert "deletionProtection" not in now()
    gcloud(f"authorized-views delete {view}")
    gone(now)


@pytest.mark.slow_gcloud
def test_authorized_view_policies(gcloud, admin, table):
    gcloud.post(f"{table}/authorizedViews?authorizedViewId=v", {"subsetView": {}})
    check_iam(
        gcloud, "authorized-views", "v --instance=i --table=t",
        lambda: admin.tables.get_iam_policy(resource=f"{table}/authorizedViews/v"),
    )  # fmt: skip


# --- schema bundles ---


@pytest.mark.slow_gcloud
def test_schema_bundles(gcloud, admin, table):
    name = f"{table}/schemaBundles/b"
    files = descriptor_pb2.FileDescriptorSet()
    message = files.file.add(name="a.proto", package="p", syntax="proto3").message_type.add()
    message.name = "Singer"
    message.field.add(name="name", number=1, label=1, type=9)

    file = gcloud.file("bundle.pb", files.SerializeToString())
    gcloud(f"schema-bundles create b --instance=i --table=t --proto-descriptors-file={file}")
    made = admin.tables.get_schema_bundle(name=name)
    assert made.proto_schema.proto_descriptors == files.SerializeToString()
    assert only(gcloud("schema-bundles describe b --instance=i --table=t")) == shown(made)
    assert 'name: "Singer"' in gcloud.run("schema-bundles describe b --instance=i --table=t").stderr
    gcloud("schema-bundles delete b --instance=i --table=t")
    gone(lambda: admin.tables.get_schema_bundle(name=name))
