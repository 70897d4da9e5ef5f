"""cbt, Google's command-line tool for Bigtable: each of its commands, over the wire as it comes."""

import os
import shlex
import shutil
import subprocess

import pytest
from harness.patience import PATIENCE_SECONDS
from harness.server import EXTERNAL, binary

CBT = shutil.which("cbt")
# Of which nothing reaches a server.
ABOUT_ITSELF = {"doc", "help", "mddoc", "notices", "version"}
TESTED = {
    "addtocell", "count", "createappprofile", "createcluster", "createfamily", "createinstance",
    "createtable", "deleteallrows", "deleteappprofile", "deletecluster", "deletecolumn",
    "deletefamily", "deleteinstance", "deleterow", "deletetable", "getappprofile", "import",
    "listappprofile", "listclusters", "listinstances", "lookup", "ls", "read", "set",
    "setgcpolicy", "setvaluetype", "updateappprofile", "updatecluster", "waitforreplication",
}  # fmt: skip

pytestmark = [
    pytest.mark.skipif(CBT is None, reason="there is no cbt here"),
    pytest.mark.skipif(EXTERNAL is not None, reason="needs a server of its own"),
]


@pytest.fixture
def cbt(server, tmp_path):
    """A function that runs a command in the project cbt, and gives what it printed."""
    (tmp_path / ".cbtrc").write_text("creds = /dev/null\nproject = cbt\ninstance = i\n")

    def run(line, succeeds=True):
        done = subprocess.run(
            [CBT, *shlex.split(line)],
            env={**os.environ, "BIGTABLE_EMULATOR_HOST": server.host, "HOME": str(tmp_path)},
            cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_SECONDS,
        )  # fmt: skip
        assert (done.returncode == 0) == succeeds, f"cbt {line}\n{done.stdout}{done.stderr}"
        return done.stdout if succeeds else done.stderr

    return run


def names(listing):
    """The first column of a table that cbt prints, without its heading."""
    firsts = [line.split()[0] for line in listing.splitlines() if line.strip()]
    return [each for each in firsts if each not in ("Instance", "Cluster") and each[0] != "-"]


def test_all_commands_are_tested():
    told = subprocess.run([CBT, "help"], capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    lines = (told.stdout + told.stderr).splitlines()
    commands = {line.split()[1] for line in lines if line.startswith("cbt ") and "\t" in line}
    assert commands - ABOUT_ITSELF == TESTED


def test_instances_and_clusters(cbt, admin):
    cbt("createinstance first 'The First' c1 us-east1-b 1 SSD")
    name = "projects/cbt/instances/first"
    assert admin.instances.get_instance(name=name).display_name == "The First"
    assert names(cbt("listinstances")) == ["first"]

    cbt("-instance first createcluster c2 us-west1-a 2 SSD")
    assert names(cbt("-instance first listclusters")) == ["c1", "c2"]
    cbt("-instance first updatecluster c2 num-nodes=4")
    assert admin.instances.get_cluster(name=f"{name}/clusters/c2").serve_nodes == 4

    cbt("createappprofile first ap everywhere route-any")
    assert "everywhere" in cbt("getappprofile first ap")
    cbt("updateappprofile first ap there route-to=c2 force=true")
    told = admin.instances.get_app_profile(name=f"{name}/appProfiles/ap")
    assert told.single_cluster_routing.cluster_id == "c2"
    listed = cbt("listappprofile first")
    assert "there" in listed and "default" in listed
    cbt("deleteappprofile first ap")
    assert "not found" in cbt("getappprofile first ap", succeeds=False).lower()

    cbt("-instance first deletecluster c2")
    assert names(cbt("-instance first listclusters")) == ["c1"]
    cbt("deleteinstance first")
    assert names(cbt("listinstances")) == []


def test_tables_and_rows(cbt, tmp_path):
    cbt("createtable t 'families=f:maxversions=2,sum:never:intsum' splits=m")
    assert cbt("ls").split() == ["t"]
    cbt("createfamily t g")
    cbt("setgcpolicy t g maxage=10d or maxversions=1")
    cbt("setvaluetype t g stringutf8bytes")
    told = cbt("ls t")
    assert "(age() > 10d || versions() > 1)" in told and "versions() > 2" in told
    assert "stringutf8bytes" in told.lower() or "utf8" in told.lower()

    cbt("set t r1 f:q=v1@1000")
    cbt("set t r2 f:q=v2@1000 g:q=w")
    cbt("addtocell t r1 sum:n=3@12000")
    cbt("addtocell t r1 sum:n=4@12000")
    assert cbt("count t").strip() == "2"
    told = cbt("lookup t r1")
    assert '"v1"' in told and r"\x00\x00\x00\x00\x00\x00\x00\a" in told
    assert '"v2"' in cbt("read t start=r2")
    assert '"v1"' not in cbt("read t start=r2")

    (tmp_path / "rows.csv").write_text(",f,\n,a,b\ni1,1,2\ni2,3,4\n")
    cbt("import t rows.csv")
    assert cbt("count t prefix=i").strip() == "2"

    cbt("deletecolumn t r2 g q")
    assert '"w"' not in cbt("lookup t r2")
    cbt("deleterow t r2")
    assert cbt("count t").strip() == "3"
    cbt("waitforreplication t")
    cbt("deletefamily t g")
    assert " g " not in cbt("ls t")
    cbt("deleteallrows t")
    assert cbt("count t").strip() == "0"
    cbt("deletetable t")
    assert cbt("ls").split() == []


def test_import(cbt, server, rpc, tmp_path):
    """With all its options; of what `trestle export` writes for it, and of what it leaves out."""
    cbt("createtable t families=f,g")
    table = "projects/cbt/instances/i/tables/t"
    (tmp_path / "one.csv").write_text(",a,b\n" + "".join(f"r{i:04},{i},x\n" for i in range(1200)))
    cbt("import t one.csv column-family=f batch-size=100 workers=3")
    rows = rpc.read(table)
    assert [(key, [cell.value for cell in cells]) for key, cells in rows] == [
        (b"r%04d" % i, [b"%d" % i, b"x"]) for i in range(1200)
    ]
    cbt("deleteallrows t")

    text = ',f,,g\n,a,"b,c",d\nr1,1@1000,,3\nr2,"x ""y""\nz@2000",,@3000\nr3,,,\n'
    (tmp_path / "two.csv").write_text(text)
    cbt("import t two.csv timestamp=value-encoded app-profile=default")
    rows = dict(rpc.read(table))
    now = rows[b"r1"][1].timestamp
    assert {key: [tuple(cell[:4]) for cell in cells] for key, cells in rows.items()} == {
        b"r1": [("f", b"a", 1000, b"1"), ("g", b"d", now, b"3")],
        b"r2": [("f", b"a", 2000, b'x "y"\nz'), ("g", b"d", 3000, b"")],
    }

    trestle = [binary(), "--endpoint", server.host, "--project", "cbt"]
    exported = subprocess.run(
        [trestle[0], "export", "csv", "t", "out.csv", *trestle[1:], "--form", "cbt",
         "--columns", "a=f:a,b=f:b", "--value-timestamps"],
        cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    assert exported.returncode == 0, exported.stderr
    wanted = {key: [c for c in cells if c.family == "f"] for key, cells in rows.items()}
    cbt("deleteallrows t")
    cbt("import t out.csv timestamp=value-encoded")
    assert dict(rpc.read(table)) == wanted
    cbt("deletetable t")
