"""gcloud's commands on instances, clusters, app profiles, operations, hot tablets. Answers are
compared with what gRPC says of the same resource."""

import time

import pytest
from gcloud_chapters import check_iam, gone, only, shown
from harness.gcloud import PROGRAM, Gcloud
from harness.patience import PATIENCE_SECONDS
from harness.rpc import set_cell

pytestmark = pytest.mark.slow_gcloud


def test_instances(gcloud, admin):
    name = f"projects/{gcloud.project}/instances/first"

    def now():
        return shown(admin.instances.get_instance(name=name))

    made = only(gcloud(
        "instances create first --display-name='The First' --instance-type=DEVELOPMENT"
        " --cluster=c1 --cluster-zone=us-east1-b --cluster-storage-type=HDD"
    ))  # fmt: skip
    assert made == now()
    assert made["displayName"] == "The First" and made["type"] == "DEVELOPMENT"
    cluster = shown(admin.instances.get_cluster(name=f"{name}/clusters/c1"))
    assert cluster["defaultStorageType"] == "HDD"
    assert cluster["location"] == f"projects/{gcloud.project}/locations/us-east1-b"

    gcloud(
        "instances create second --display-name=Second"
        " --cluster-config=id=c1,zone=us-east1-b,nodes=3"
        " --cluster-config=id=c2,zone=europe-west1-c,autoscaling-min-nodes=1,"
        "autoscaling-max-nodes=4,autoscaling-cpu-target=60"
    )
    one, two = admin.instances.list_clusters(parent=name.replace("first", "second")).clusters
    assert (one.serve_nodes, two.serve_nodes) == (3, 1)
    autoscaling = two.cluster_config.cluster_autoscaling_config
    assert autoscaling.autoscaling_limits.max_serve_nodes == 4

    assert gcloud("instances describe first") == now()
    assert [each["displayName"] for each in gcloud("instances list")] == ["The First", "Second"]

    assert gcloud("instances update first --display-name=Erste")["displayName"] == "Erste"
    assert now()["displayName"] == "Erste" and now()["type"] == "DEVELOPMENT"
    gcloud("instances upgrade first")
    assert now()["type"] == "PRODUCTION"

    assert "Instance already exists" in gcloud.refused(
        "instances create first --display-name=F --cluster-config=id=c1,zone=us-east1-b"
    )
    gcloud("instances delete first second")
    assert gcloud("instances list") == []
    assert "NOT_FOUND" in gcloud.refused("instances describe first")
    gone(lambda: now())


def test_instance_policies(gcloud, admin, instance):
    check_iam(gcloud, "instances", "i", lambda: admin.instances.get_iam_policy(resource=instance))


def test_clusters(gcloud, admin, instance):
    def now(cluster="c2"):
        return shown(admin.instances.get_cluster(name=f"{instance}/clusters/{cluster}"))

    gcloud("clusters create c2 --instance=i --zone=europe-west1-c --num-nodes=2")
    assert now()["serveNodes"] == 2
    assert gcloud("clusters describe c2 --instance=i") == now()
    assert gcloud("clusters list --instances=i") == [now("c"), now()]
    assert gcloud("clusters list") == [now("c"), now()]

    gcloud("clusters update c2 --instance=i --num-nodes=4")
    assert now()["serveNodes"] == 4
    gcloud(
        "clusters update c2 --instance=i --autoscaling-min-nodes=2 --autoscaling-max-nodes=5"
        " --autoscaling-cpu-target=70 --autoscaling-storage-target=3000"
    )
    assert now()["clusterConfig"] == {"clusterAutoscalingConfig": {
        "autoscalingLimits": {"minServeNodes": 2, "maxServeNodes": 5},
        "autoscalingTargets": {"cpuUtilizationPercent": 70, "storageUtilizationGibPerNode": 3000},
    }}  # fmt: skip
    gcloud("clusters update c2 --instance=i --disable-autoscaling --num-nodes=3")
    assert "clusterConfig" not in now() and now()["serveNodes"] == 3

    gcloud("clusters delete c2 --instance=i")
    gone(lambda: now())
    assert "FAILED_PRECONDITION" in gcloud.refused("clusters delete c --instance=i")


def test_app_profiles(gcloud, admin, instance):
    def now(profile="ap"):
        return shown(admin.instances.get_app_profile(name=f"{instance}/appProfiles/{profile}"))

    gcloud("app-profiles create ap --instance=i --route-any --description=everywhere")
    assert now()["multiClusterRoutingUseAny"] == {}
    assert gcloud("app-profiles describe ap --instance=i") == now()
    listed = gcloud("app-profiles list --instance=i")
    assert sorted(each["name"].rsplit("/")[-1] for each in listed) == ["ap", "default"]

    gcloud(
        "app-profiles update ap --instance=i --route-to=c --transactional-writes"
        " --priority=PRIORITY_LOW --description=here --force"
    )
    assert now()["singleClusterRouting"] == {"clusterId": "c", "allowTransactionalWrites": True}
    assert now()["standardIsolation"] == {"priority": "PRIORITY_LOW"}
    assert now()["description"] == "here"
    gcloud("app-profiles update ap --instance=i --route-any --row-affinity --force")
    assert now()["multiClusterRoutingUseAny"] == {"rowAffinity": {}}
    gcloud("app-profiles update ap --instance=i --route-any --restrict-to=c --force")
    assert now()["multiClusterRoutingUseAny"]["clusterIds"] == ["c"]
    gcloud(
        "app-profiles create boost --instance=i --route-to=c --data-boost"
        " --data-boost-compute-billing-owner=HOST_PAYS"
    )
    assert now("boost")["dataBoostIsolationReadOnly"] == {"computeBillingOwner": "HOST_PAYS"}

    gcloud("app-profiles delete ap --instance=i --force")
    gone(lambda: now())


def test_operations(gcloud, admin, instance):
    gcloud("clusters create c2 --instance=i --zone=europe-west1-c --num-nodes=1 --async")
    listed = gcloud("operations list --instance=i")
    assert [each["metadata"]["@type"].rsplit(".")[-1] for each in listed].count(
        "CreateClusterMetadata") == 1  # fmt: skip
    assert all(each["done"] for each in listed)
    assert gcloud("operations list") == listed
    name = listed[0]["name"]
    assert gcloud(f"operations describe {name}") == listed[0]
    missing = name.rsplit("/", 1)[0] + "/9"
    assert "NOT_FOUND" in gcloud.refused(f"operations describe {missing}")


def test_hot_tablets(gcloud, instance):
    assert gcloud("hot-tablets list c --instance=i") == []
    between = "--start-time='2026-01-02 03:30:00' --end-time=2026-01-05"
    assert gcloud(f"hot-tablets list c --instance=i {between}") == []
    assert "NOT_FOUND" in gcloud.refused("hot-tablets list c2 --instance=i")


def test_hot_tablets_of_a_load(fresh_server, connect, administer, tmp_path):
    """A server of its own, of which nothing is recorded: what is hot is not the same twice."""
    if PROGRAM is None:
        pytest.skip("there is no gcloud here")
    server = fresh_server("--heat-window", "1s")
    rpc, admin = connect(server.host), administer(server.host)
    table = rpc.create_table("t")
    cluster = f"{table.rsplit('/', 2)[0]}/clusters/trestle"
    rows = [(b"m%04d" % i, [set_cell("f", b"q", bytes(1000), 1000)]) for i in range(1000)]
    assert set(rpc.mutate_rows(table, rows)) == {0}
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := list(admin.instances.list_hot_tablets(parent=cluster))):
        assert time.monotonic() < deadline
        rpc.read(table)
    gcloud = Gcloud(tmp_path, f"http://{server.host}", table.split("/")[1])
    listed = gcloud("hot-tablets list trestle --instance=i")
    assert listed[: len(found)] == [shown(each) for each in found]
    assert {each["tableName"] for each in listed} == {table}
