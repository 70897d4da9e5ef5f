"""REST: the interface by HTTP and JSON, as Google's REST transports, gcloud and curl use it."""

import base64
import concurrent.futures
import contextlib
import http.client
import json
import os
import re
import shutil
import socket
import subprocess

import pytest
from google.api_core import exceptions
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigtable_admin_v2
from google.cloud.bigtable_admin_v2.services.bigtable_table_admin.transports.rest import (
    BigtableTableAdminRestTransport,
)
from google.cloud.bigtable_v2 import types as data_types
from google.cloud.location import locations_pb2
from harness.patience import PATIENCE_SECONDS
from harness.rest import WAYS, Rest, b64
from harness.rpc import set_cell as rpc_set_cell

INSTANCE = "/v2/projects/p/instances/i"


@pytest.fixture(params=WAYS)
def rest(server, request):
    return Rest(server.host, request.param)


@pytest.fixture
def rest_table(table_name):
    """The path of a table with the families f and g."""
    return f"/v2/{table_name}"


def set_cell(value=b"v", timestamp="1000", family="f", qualifier=b"q"):
    return {
        "setCell": {
            "familyName": family,
            "columnQualifier": b64(qualifier),
            "timestampMicros": timestamp,
            "value": b64(value),
        }
    }


def mutate(rest, table, key, *mutations):
    return rest.call("POST", f"{table}:mutateRow", {"rowKey": b64(key), "mutations": mutations})


def read_cells(messages):
    """(key, value) of each cell; the chunks of a row name it once."""
    key, cells = None, []
    for message in messages:
        for chunk in message.get("chunks", []):
            key = chunk.get("rowKey", key)
            cells.append((base64.b64decode(key), base64.b64decode(chunk.get("value", ""))))
    return cells


# --- tables, with the requests that gcloud was recorded to send ---


def test_tables_as_gcloud_asks(rest, new_table_id):
    name = new_table_id()
    table = f"{INSTANCE}/tables/{name}"
    created = rest.call(
        "POST",
        f"{INSTANCE}/tables?alt=json",
        '{"initialSplits": [{"key": "YQ=="}, {"key": "Yg=="}], "table": {"columnFamilies": {"f1": '
        '{"gcRule": {"union": {"rules": [{"maxAge": "864000s"}, {"maxNumVersions": 5}]}}}, "f2": '
        '{}}, "deletionProtection": false}, "tableId": "%s"}' % name,
    )
    rules = {"union": {"rules": [{"maxAge": "864000s"}, {"maxNumVersions": 5}]}}
    assert created["name"] == table.removeprefix("/v2/")
    assert created["columnFamilies"] == {"f1": {"gcRule": rules}, "f2": {}}

    listed = rest.call("GET", f"{INSTANCE}/tables?alt=json")
    assert {"name": created["name"]} in listed["tables"]

    full = rest.call("GET", f"{table}?alt=json&view=FULL")
    assert full["granularity"] == "MILLIS"
    assert full["clusterStates"]

    operation = rest.call(
        "PATCH", f"{table}?alt=json&updateMask=deletionProtection", {"deletionProtection": True}
    )
    assert operation["name"].startswith("operations/")
    assert operation["response"]["deletionProtection"] is True
    assert operation["response"]["@type"].endswith("google.bigtable.admin.v2.Table")
    refusal = rest.call("DELETE", f"{table}?alt=json", expect=400)
    assert refusal["error"]["status"] == "FAILED_PRECONDITION"

    rest.call("PATCH", f"{table}?updateMask=deletion_protection", {"deletionProtection": False})
    assert rest.call("DELETE", f"{table}?alt=json") == {}
    assert rest.call("GET", f"{table}?alt=json", expect=404) == {
        "error": {
            "code": 404,
            "message": f"Not found: {created['name']}",
            "status": "NOT_FOUND",
        }
    }


def test_reads_and_writes_through_an_authorized_view(rest, rest_table):
    parts = {"f": {"qualifierPrefixes": [""]}}
    rest.call(
        "POST",
        f"{rest_table}/authorizedViews?authorizedViewId=v",
        {"subsetView": {"rowPrefixes": [b64(b"a")], "familySubsets": parts}},
    )
    view = f"{rest_table}/authorizedViews/v"
    for key in (b"a", b"b"):
        mutate(rest, rest_table, key, set_cell(), set_cell(family="g"))
    assert read_cells(rest.call("POST", f"{view}:readRows", {})) == [(b"a", b"v")]
    assert [each["rowKey"] for each in rest.call("GET", f"{view}:sampleRowKeys")] == [b64(b"b")]
    mutate(rest, view, b"a", set_cell(b"w", "2000"))
    entries = [{"rowKey": b64(key), "mutations": [set_cell(b"x", "3000")]} for key in (b"a", b"b")]
    (answer,) = rest.call("POST", f"{view}:mutateRows", {"entries": entries})
    codes = {each.get("index", "0"): each["status"].get("code", 0) for each in answer["entries"]}
    assert codes == {"0": 0, "1": 7}
    change = {"rowKey": b64(b"a"), "trueMutations": [set_cell(b"y", "4000")]}
    assert rest.call("POST", f"{view}:checkAndMutateRow", change) == {"predicateMatched": True}
    rule = {"familyName": "f", "columnQualifier": b64(b"q"), "appendValue": b64(b"!")}
    rest.call("POST", f"{view}:readModifyWriteRow", {"rowKey": b64(b"a"), "rules": [rule]})
    found = read_cells(rest.call("POST", f"{view}:readRows", {}))
    assert [value for _, value in found] == [b"y!", b"y", b"x", b"w", b"v"]
    refusal = {"rowKey": b64(b"b"), "mutations": [set_cell()]}
    error = rest.call("POST", f"{view}:mutateRow", refusal, expect=403)["error"]
    assert error["status"] == "PERMISSION_DENIED" and "Authorized View" in error["message"]


def test_the_path_has_the_last_word(rest, rest_table):
    change = {"name": "projects/p/instances/i/tables/another", "deletionProtection": True}
    rest.call("PATCH", f"{rest_table}?updateMask=deletionProtection", change)
    assert rest.call("GET", rest_table)["deletionProtection"] is True
    rest.call("PATCH", f"{rest_table}?updateMask=deletionProtection", {})


def test_families_and_tokens(rest, rest_table):
    change = {"modifications": [{"id": "h", "create": {"gcRule": {"maxNumVersions": 1}}}]}
    table = rest.call("POST", f"{rest_table}:modifyColumnFamilies", change)
    assert table["columnFamilies"]["h"] == {"gcRule": {"maxNumVersions": 1}}
    token = rest.call("POST", f"{rest_table}:generateConsistencyToken", {})
    assert rest.call("POST", f"{rest_table}:checkConsistency", token) == {"consistent": True}


# --- data ---


def test_a_row_there_and_back(rest, rest_table):
    assert mutate(rest, rest_table, b"\xff key", set_cell(b"\x00\xff")) == {}
    [message] = rest.call("POST", f"{rest_table}:readRows", {})
    assert message == {
        "chunks": [
            {
                "rowKey": b64(b"\xff key"),
                "familyName": "f",
                "qualifier": b64(b"q"),
                "timestampMicros": "1000",
                "value": b64(b"\x00\xff"),
                "commitRow": True,
            }
        ]
    }


def test_reading_what_is_not_there(rest, rest_table):
    assert rest.call("POST", f"{rest_table}:readRows", {}) == []


def test_other_methods(rest, rest_table):
    entries = [{"rowKey": b64(key), "mutations": [set_cell(key)]} for key in (b"a", b"b")]
    answers = rest.call("POST", f"{rest_table}:mutateRows", {"entries": entries})
    assert [e.get("index", "0") for a in answers for e in a["entries"]] == ["0", "1"]
    checked = rest.call(
        "POST",
        f"{rest_table}:checkAndMutateRow",
        {"rowKey": b64(b"a"), "trueMutations": [set_cell(b"changed")]},
    )
    assert checked == {"predicateMatched": True}
    rule = {"familyName": "g", "columnQualifier": b64(b"n"), "incrementAmount": "5"}
    changed = rest.call(
        "POST", f"{rest_table}:readModifyWriteRow", {"rowKey": b64(b"b"), "rules": [rule]}
    )
    cell = changed["row"]["families"][0]["columns"][0]["cells"][0]
    assert base64.b64decode(cell["value"]) == (5).to_bytes(8, "big")
    samples = rest.call("GET", f"{rest_table}:sampleRowKeys")
    assert samples[-1].keys() <= {"offsetBytes"}
    assert rest.call("POST", f"{INSTANCE}:ping", {}) == {}


def test_a_stream_of_many_messages(rest, rest_table):
    keys = [f"{i:04}".encode() for i in range(300)]
    entries = [{"rowKey": b64(k), "mutations": [set_cell(k * 1000)]} for k in keys]
    rest.call("POST", f"{rest_table}:mutateRows", {"entries": entries})
    messages = rest.call("POST", f"{rest_table}:readRows?prettyPrint=false", {})
    assert len(messages) > 1
    assert read_cells(messages) == [(k, k * 1000) for k in keys]


# --- what goes beside the messages ---

PARAMS = "x-goog-ext-425905942-bin"


def served_by(fields):
    """(zone, cluster) that an answer names; None: neither. Each has a timing."""
    assert re.fullmatch(r"gfet4t7; dur=\d+\.\d{3}", fields["server-timing"])
    if PARAMS not in fields:
        return None
    text = fields[PARAMS]
    data = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    params = data_types.ResponseParams.deserialize(data)
    return params.zone_id, params.cluster_id


def test_answers_name_the_cluster(rest, new_table_id):
    """That of the profile, else the first; of every method of the data service."""
    instance, zones = new_table_id(), {"b": "us-east1-b", "c": "us-east1-c"}
    clusters = {
        f"{instance}-{which}": {"location": f"projects/p/locations/{zone}", "serveNodes": 1}
        for which, zone in zones.items()
    }
    made = {"instanceId": instance, "instance": {"displayName": instance}, "clusters": clusters}
    rest.call("POST", "/v2/projects/p/instances", made)
    path = f"/v2/projects/p/instances/{instance}"
    routing = {"clusterId": f"{instance}-c", "allowTransactionalWrites": True}
    second = {"singleClusterRouting": routing, "description": "second"}
    rest.call("POST", f"{path}/appProfiles?appProfileId=second", second)
    table = f"{path}/tables/t"
    families = {"columnFamilies": {"f": {}}}
    rest.call("POST", f"{path}/tables", {"tableId": "t", "table": families})

    row, change = {"rowKey": b64(b"k")}, {"mutations": [set_cell()]}
    rule = {"familyName": "f", "columnQualifier": b64(b"q"), "appendValue": b64(b"!")}
    requests = {
        f"{table}:mutateRow": {**row, **change},
        f"{table}:mutateRows": {"entries": [{**row, **change}]},
        f"{table}:checkAndMutateRow": {**row, "trueMutations": [set_cell()]},
        f"{table}:readModifyWriteRow": {**row, "rules": [rule]},
        f"{table}:readRows": {},
        f"{path}:ping": {},
        f"{path}:executeQuery": {"query": "SELECT 1"},
    }
    wanted = {"": (zones["b"], f"{instance}-b"), "second": (zones["c"], f"{instance}-c")}
    for profile, place in wanted.items():
        for target, body in requests.items():
            status, fields, text = rest.ask_for_all(
                "POST", target, {**body, "appProfileId": profile}
            )
            assert (status, served_by(fields)) == (200, place), (target, text)
        status, fields, _ = rest.ask_for_all(
            "GET", f"{table}:sampleRowKeys?appProfileId={profile}"
        )
        assert (status, served_by(fields)) == (200, place)
    for body in ({}, {"filter": {"blockAllFilter": True}}, {"rows": {"rowKeys": [""]}}):
        _, fields, _ = rest.ask_for_all("POST", f"{table}:readRows", body)
        assert served_by(fields) == wanted[""]
    rest.call("DELETE", path)


def test_protobuf_answers_name_the_cluster(rest, rest_table):
    request = data_types.MutateRowRequest(
        row_key=b"k", mutations=[rpc_set_cell("f", b"q", b"v")]
    )
    body = data_types.MutateRowRequest.serialize(request)
    binary = {"content-type": "application/x-protobuf"}
    for table, code in ((rest_table, 200), (f"{rest_table}-nope", 404)):
        status, fields, _ = rest.ask_for_all("POST", f"{table}:mutateRow", body, binary)
        assert status == code
        assert fields["content-type"] == "application/x-protobuf"
        assert served_by(fields) == (("local", "trestle") if code == 200 else None)


def test_answers_that_name_no_cluster(rest, rest_table):
    """Of a table that is not there; and what is not of the data service tells no time either."""
    change = {"rowKey": b64(b"k"), "mutations": [set_cell()]}
    for method, body in (("readRows", {}), ("mutateRow", change)):
        status, fields, _ = rest.ask_for_all("POST", f"{rest_table}nope:{method}", body)
        assert (status, served_by(fields)) == (404, None)
    for verb, path, body in (
        ("GET", rest_table, None),
        ("GET", "/v2/nothing", None),
        ("POST", f"{rest_table}:readRows", "{"),
    ):
        _, fields, _ = rest.ask_for_all(verb, path, body)
        assert not {PARAMS, "server-timing"} & fields.keys()


# --- errors ---


def test_mistakes_in_json(rest, rest_table):
    for body, words in [
        ("{", "Invalid JSON payload received. Unexpected token."),
        ('{"rowKey":"a*"}', "Invalid value at 'row_key' (TYPE_BYTES), \"a*\""),
        (
            '{"mutations":[{"setCell":{"x":1}}]}',
            'Invalid JSON payload received. Unknown name "x" at \'mutations[0].set_cell\': '
            "Cannot find field.",
        ),
        ("[]", 'Invalid JSON payload received. Unknown name "": Root element must be a message.'),
    ]:
        answer = rest.call("POST", f"{rest_table}:mutateRow", body, expect=400)
        error = {"code": 400, "message": words, "status": "INVALID_ARGUMENT"}
        assert answer == {"error": error}


def test_mistakes_in_the_query(rest, rest_table):
    answer = rest.call("GET", f"{rest_table}?nope=1", expect=400)
    assert "Cannot bind query parameter. Field 'nope'" in answer["error"]["message"]
    answer = rest.call("GET", f"{rest_table}?view=FULLER", expect=400)
    assert "google.bigtable.admin.v2.Table.View" in answer["error"]["message"]
    rest.call("GET", f"{rest_table}?$.xgafv=2&key=k&fields=name&quotaUser=u&view=full", expect=400)
    rest.call("GET", f"{rest_table}?%24.xgafv=2&key=k&fields=name&quotaUser=u&view=FULL&")


def test_streams_put_errors_into_their_array(rest, rest_table):
    [answer] = rest.call("POST", f"{rest_table}nope:readRows", {}, expect=404)
    assert answer["error"]["status"] == "NOT_FOUND"


def test_paths_that_stand_for_nothing(rest, rest_table):
    for verb, path in [("GET", "/v2/nothing"), ("POST", rest_table), ("PUT", rest_table)]:
        error = {"code": 404, "message": "Method not found.", "status": "NOT_FOUND"}
        assert rest.call(verb, path, expect=404) == {"error": error}


def test_a_body_that_is_too_large(server, rest_table):
    rest = Rest(server.host)
    headers = {"Content-Length": str(1 << 40)}
    status, text = rest.ask("POST", f"{rest_table}:mutateRow", "x", headers)
    assert (status, json.loads(text)["error"]["code"]) == (413, 413)


def test_one_line_and_numbers_for_enums(rest, rest_table):
    pretty = rest.ask("GET", rest_table)[1]
    assert pretty.startswith('{\n  "name": "projects/')
    status, text = rest.ask("GET", f"{rest_table}?prettyPrint=false&$alt=json;enum-encoding=int")
    assert text == json.dumps(json.loads(text), separators=(",", ":")) + "\n"
    assert json.loads(text)["granularity"] == 1


# --- parameters of all methods ---


def test_parts_of_an_answer(rest, rest_table):
    name = rest_table.removeprefix("/v2/")
    for fields, expected in [
        ("name", {"name": name}),
        ("name,columnFamilies(f)", {"name": name, "columnFamilies": {"f": {}}}),
        ("column_families.g,granularity", {"columnFamilies": {"g": {}}, "granularity": "MILLIS"}),
        ("columnFamilies/*/gcRule", {"columnFamilies": {"f": {}, "g": {}}}),
        ("restoreInfo", {}),
    ]:
        assert rest.call("GET", f"{rest_table}?fields={fields}") == expected
    listed = rest.call("GET", f"{INSTANCE}/tables?$fields=tables/name")
    assert {"name": name} in listed["tables"]
    change = f"{rest_table}?updateMask=deletionProtection&fields=response(name),done"
    operation = rest.call("PATCH", change, {})
    assert operation["done"] and operation["response"].keys() == {"@type", "name"}
    for wrong in ["nope", "name/x", "columnFamilies/f/nope", "name("]:
        answer = rest.call("GET", f"{rest_table}?fields={wrong}", expect=400)
        assert answer["error"]["message"].startswith("Error expanding 'fields' parameter. ")
    refusal = rest.call("GET", f"{rest_table}nope?fields=name", expect=404)
    assert refusal["error"]["status"] == "NOT_FOUND"


def test_parts_of_a_stream(rest, rest_table):
    mutate(rest, rest_table, b"k", set_cell())
    [message] = rest.call("POST", f"{rest_table}:readRows?fields=chunks(rowKey,commitRow)", {})
    assert message == {"chunks": [{"rowKey": b64(b"k"), "commitRow": True}]}


def test_a_post_that_stands_for_another_method(rest, rest_table):
    """For clients that can do no other; a GET may have its query in the body."""

    def call(verb, path, body=None, expect=200, **headers):
        headers = {"X-HTTP-Method-Override": verb, **headers}
        return rest.call("POST", path, body, expect, headers)

    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert call("GET", rest_table, "fields=name&view=FULL", **form).keys() == {"name"}
    assert call("GET", rest_table, "view=FULLER", 400, **form)["error"]["code"] == 400
    assert call("PATCH", f"{rest_table}?updateMask=deletionProtection", {})["done"]
    assert call("DELETE", rest_table) == {}
    call("GET", rest_table, expect=404)
    call("BREW" * 10, rest_table, expect=404)


def test_what_is_taken_and_changes_nothing(rest, rest_table):
    plain = rest.call("GET", rest_table)
    for query in ["alt=json", "$alt=json", "alt=media", "callback=f", "$.xgafv=1", "quotaUser=u",
                  "key=k", "uploadType=x", "upload_protocol=x", "userProject=p"]:  # fmt: skip
        assert rest.call("GET", f"{rest_table}?{query}") == plain
    assert rest.call("GET", f"{rest_table}?alt=proto", expect=400)["error"]["code"] == 400


# --- locations ---


def test_locations(rest, new_instance, admin):
    """Those of the clusters, and our own; any other is as good, if it is asked for."""
    new_instance("c")
    places = rest.call("GET", "/v2/projects/p/locations")["locations"]
    zone = {
        "name": "projects/p/locations/us-east1-b",
        "locationId": "us-east1-b",
        "displayName": "us-east1-b",
    }
    assert zone in places
    names = [place["name"] for place in places]
    assert names == sorted(set(names)) and "projects/p/locations/local" in names
    assert rest.call("GET", "/v2/projects/p/locations/us-east1-b") == zone
    assert rest.call("GET", "/v2/projects/p/locations/x")["locationId"] == "x"
    page, found = {"nextPageToken": ""}, []
    while "nextPageToken" in page:
        token = page["nextPageToken"]
        page = rest.call("GET", f"/v2/projects/p/locations?pageSize=1&pageToken={token}")
        found += [place["name"] for place in page["locations"]]
    assert found == names
    stub = admin.channel.unary_unary(
        "/google.cloud.location.Locations/GetLocation",
        locations_pb2.GetLocationRequest.SerializeToString, locations_pb2.Location.FromString,
    )  # fmt: skip
    assert stub(locations_pb2.GetLocationRequest(name=zone["name"])).location_id == "us-east1-b"


def test_access_control(fresh_server):
    """Callers are told apart though their calls share one connection inside the server."""
    server = fresh_server("--auth", "on")
    rest = Rest(server.host)
    token = (server.data / "admin-token").read_text().strip()
    for _ in range(2):
        status, text = rest.ask("GET", f"{INSTANCE}/tables")
        assert (status, json.loads(text)["error"]["status"]) == (401, "UNAUTHENTICATED")
        status, text = rest.ask("GET", f"{INSTANCE}/tables", None, {"Authorization": "Bearer x"})
        assert status == 401
        headers = {"Authorization": f"Bearer {token}"}
        status, text = rest.ask("GET", f"{INSTANCE}/tables", None, headers)
        assert status == 200, text
        assert rest.ask("GET", f"{INSTANCE}/tables?access_token={token}")[0] == status


# --- clients that misbehave, or are many ---


def test_a_client_that_goes_away(fresh_server, connect):
    """Its call is cancelled: the server has no calls then."""
    server = fresh_server("--threads", "1")
    rest, rpc = Rest(server.host), connect(server.host)
    name = rpc.create_table("t", ("f",), ())
    for part in range(20):
        entries = [
            {"rowKey": b64(b"%d-%d" % (part, i)), "mutations": [set_cell(bytes(100_000))]}
            for i in range(20)
        ]
        rest.call("POST", f"/v2/{name}:mutateRows", {"entries": entries})
    request = f"POST /v2/{name}:readRows HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{{}}"
    host, port = server.host.rsplit(":", 1)
    for _ in range(5):
        with socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS) as client:
            client.sendall(request.encode())
            assert client.recv(1000).startswith(b"HTTP/1.1 200 OK\r\n")
    while server.metric("rpcs_running") > 0:
        pass
    assert server.get("/livez")[0] == 200


def test_a_hundred_at_once(rest, rest_table):
    mutate(rest, rest_table, b"k", set_cell())
    with concurrent.futures.ThreadPoolExecutor(100) as pool:
        asked = [pool.submit(rest.call, "POST", f"{rest_table}:readRows", {}) for _ in range(100)]
        assert all(read_cells(each.result()) == [(b"k", b"v")] for each in asked)


def test_one_connection_for_many_requests(rest, rest_table):
    connection = http.client.HTTPConnection(rest.host, timeout=PATIENCE_SECONDS)
    with contextlib.closing(connection):
        for verb, path in [("GET", rest_table), ("GET", "/livez"), ("GET", "/v2/x")] * 5:
            connection.request(verb, path)
            connection.getresponse().read()
            sock = connection.sock
            assert sock is not None


# --- Google's own ---


@pytest.fixture
def rest_admin(server):
    transport = BigtableTableAdminRestTransport(
        host=server.host, url_scheme="http", credentials=AnonymousCredentials()
    )
    with bigtable_admin_v2.BaseBigtableTableAdminClient(
        transport=transport, client_options=ClientOptions()
    ) as client:
        yield client


def test_googles_rest_transport(rest_admin, new_table_id):
    parent, name = "projects/p/instances/i", new_table_id()
    rule = bigtable_admin_v2.GcRule(max_num_versions=3)
    table = bigtable_admin_v2.Table(
        column_families={"f": bigtable_admin_v2.ColumnFamily(gc_rule=rule)}
    )
    created = rest_admin.create_table(parent=parent, table_id=name, table=table)
    assert created.column_families["f"].gc_rule.max_num_versions == 3
    assert created.granularity == bigtable_admin_v2.Table.TimestampGranularity.MILLIS
    assert created.name in [each.name for each in rest_admin.list_tables(parent=parent)]
    rest_admin.drop_row_range(request={"name": created.name, "delete_all_data_from_table": True})
    operation = rest_admin.update_table(
        table={"name": created.name, "deletion_protection": True},
        update_mask={"paths": ["deletion_protection"]},
    )
    assert operation.result(timeout=PATIENCE_SECONDS).deletion_protection
    with pytest.raises(exceptions.BadRequest, match="protected from deletion"):
        rest_admin.delete_table(name=created.name)
    rest_admin.update_table(
        table={"name": created.name}, update_mask={"paths": ["deletion_protection"]}
    )
    rest_admin.delete_table(name=created.name)
    with pytest.raises(exceptions.NotFound):
        rest_admin.get_table(name=created.name)


@pytest.mark.skipif(shutil.which("gcloud") is None, reason="gcloud is not installed")
def test_gcloud(server, new_table_id, tmp_path):
    def gcloud(*arguments):
        return subprocess.run(
            ["gcloud", "bigtable", "instances", "tables", *arguments],
            env={
                **os.environ,
                "CLOUDSDK_API_ENDPOINT_OVERRIDES_BIGTABLEADMIN": f"http://{server.host}/",
                "CLOUDSDK_AUTH_DISABLE_CREDENTIALS": "true",
                "CLOUDSDK_CORE_PROJECT": "p",
                "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
                "CLOUDSDK_CONFIG": str(tmp_path),
            },
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )

    name = new_table_id()
    families = "f1:maxage=10d||maxversions=5,f2"
    made = gcloud("create", name, "--instance=i", f"--column-families={families}", "--splits=a,b")
    assert made.returncode == 0, made.stderr
    listed = gcloud("list", "--instances=i", "--format=json")
    assert name in listed.stdout, listed.stderr
    described = gcloud("describe", name, "--instance=i", "--view=full", "--format=json")
    assert json.loads(described.stdout)["columnFamilies"].keys() == {"f1", "f2"}
    deleted = gcloud("delete", name, "--instance=i")
    assert deleted.returncode == 0, deleted.stderr
    missing = gcloud("describe", name, "--instance=i")
    assert "NOT_FOUND" in missing.stderr
