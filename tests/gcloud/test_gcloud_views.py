"""gcloud's commands on logical and materialized views."""

import pytest
from gcloud_chapters import gone, shown

pytestmark = pytest.mark.slow_gcloud

QUERY = "SELECT _key, f['q'] AS q FROM t"
GROUPED = "SELECT _key, COUNT(f['q']) AS n FROM t GROUP BY _key"


def test_logical_views(gcloud, admin, instance, table):
    def now():
        return shown(admin.instances.get_logical_view(name=f"{instance}/logicalViews/lv"))

    gcloud(f'logical-views create lv --instance=i --query="{QUERY}" --deletion-protection=true')
    assert now()["query"] == QUERY and now()["deletionProtection"]
    assert gcloud("logical-views describe lv --instance=i") == now()
    assert gcloud("logical-views list --instance=i") == [now()]
    assert "FAILED_PRECONDITION" in gcloud.refused("logical-views delete lv --instance=i")
    gcloud('logical-views update lv --instance=i --query="SELECT 1" --deletion-protection=false')
    assert now()["query"] == "SELECT 1" and "deletionProtection" not in now()
    gcloud("logical-views delete lv --instance=i")
    gone(now)


def test_materialized_views(gcloud, admin, instance, table):
    def now():
        name = f"{instance}/materializedViews/mv"
        return shown(admin.instances.get_materialized_view(name=name))

    made = f'mv --instance=i --query="{GROUPED}" --deletion-protection=true'
    gcloud(f"materialized-views create {made}")
    assert now()["query"] == GROUPED and now()["deletionProtection"]
    assert gcloud("materialized-views describe mv --instance=i") == now()
    assert gcloud("materialized-views list --instance=i") == [now()]
    gcloud("materialized-views update mv --instance=i --deletion-protection=false")
    assert "deletionProtection" not in now()
    gcloud("materialized-views delete mv --instance=i")
    gone(now)
