"""`trestle sql`: the program, against a server of ours, and one that is told what to answer."""

import csv
import datetime
import io
import json
import os
import stat
import subprocess
import threading

import grpc
import pytest
from harness.counts import create_counts
from harness.fake_queries import BYTES, INT64, MAP, STRING, FakeQueries, batch, expired, prepared
from harness.patience import PATIENCE_SECONDS
from harness.rpc import INSTANCE, set_cell
from harness.server import binary
from harness.terminal import CONTROL_C, CONTROL_D, UP, Terminal


def run(host, *arguments, stdin=None, env=None):
    """Runs it to its end: text as it came, with CSV's ends of lines."""
    done = subprocess.run(
        [binary(), "sql", "--endpoint", host, *map(str, arguments)],
        input=None if stdin is None else stdin.encode(),
        stdin=subprocess.DEVNULL if stdin is None else None,
        env={**os.environ, **(env or {})}, capture_output=True, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    return done


@pytest.fixture
def sql(server):
    """A function that runs the shell on the shared server: gives what it printed."""

    def run_well(*arguments, stdin=None):
        done = run(server.host, *arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout

    return run_well


@pytest.fixture
def letters(rpc, make_table):
    """Rows a, b, c with f:x; b has g:y, too. Gives the table's id."""
    name = make_table()
    for key, text in (b"a", b"one"), (b"b", b"two"), (b"c", b"\xff\x00"):
        rpc.mutate(name, key, set_cell("f", b"x", text, 5000))
    rpc.mutate(name, b"b", set_cell("g", b"y", "grün".encode(), 7000))
    return name.rsplit("/", 1)[-1]


@pytest.fixture
def fake():
    """A function that starts a server that answers as it is told: see FakeQueries."""
    servers = []

    def start(*arguments, **options):
        servers.append(FakeQueries(*arguments, **options))
        return servers[-1]

    yield start
    for each in servers:
        each.close()


# --- one shot, and a pipe ---


def test_a_table_is_printed(sql, letters):
    out = sql("-e", f"SELECT _key, f['x'] AS x, g['y'] AS y FROM `{letters}`")
    assert out == (
        " _key | x        | y\n"
        "------+----------+------\n"
        " a    | one      | NULL\n"
        " b    | two      | grün\n"
        " c    | \\xff\\x00 | NULL\n"
        "(3 rows)\n"
    )
    assert sql("--no-header", "-e", "SELECT 1") == " 1\n"
    assert sql("-e", f"SELECT _key FROM `{letters}` WHERE _key = 'z'").endswith("(0 rows)\n")


def test_csv(sql, letters):
    out = sql("--format", "csv", "-e", f"SELECT * FROM `{letters}`; SELECT 'a,\"b\"' AS s, '' AS e")
    assert "\r\n" in out
    rows = list(csv.reader(io.StringIO(out, newline="")))
    assert rows[0] == ["_key", "f", "g"]
    assert rows[2] == ["b", '{b"x": b"two"}', '{b"y": b"grün"}']
    assert rows[3] == ["c", '{b"x": b"\\xff\\x00"}', "{}"]
    assert rows[5] == ['a,"b"', ""]


def test_json_of_every_type(sql):
    (line,) = sql(
        "--format", "json", "-e",
        "SELECT 'é' AS s, b'\\xff' AS b, -5 AS i, 9007199254740993 AS big, "
        "CAST(1.5 AS FLOAT32) AS f, 0.1 AS d, TRUE AS t, "
        "TIMESTAMP '2024-06-01 10:00:00.5+02' AS ts, DATE '2024-06-01' AS dt, "
        "[1, NULL] AS a, STRUCT(1 AS x, 'y' AS y) AS st, MAP_FROM_ARRAY([('k', 1)]) AS m, "
        "CAST(NULL AS STRING) AS n",
    ).splitlines()  # fmt: skip
    assert json.loads(line) == {
        "s": "é", "b": {"base64": "/w=="}, "i": -5, "big": "9007199254740993", "f": 1.5, "d": 0.1,
        "t": True, "ts": "2024-06-01T08:00:00.500Z", "dt": "2024-06-01", "a": [1, None],
        "st": {"x": 1, "y": "y"}, "m": {"k": 1}, "n": None,
    }  # fmt: skip


def test_a_pipe_runs_statement_after_statement(sql, letters):
    out = sql(
        stdin="-- a comment;\nSELECT ';' AS a; SELECT '''x\n;''' AS b;\n\\format csv\n"
        "/* ; */ SELECT\n  2 AS c;\nSELECT 3 AS d"
    )
    assert out == (
        " a\n---\n ;\n(1 row)\n b\n------\n x\\n;\n(1 row)\n" + "c\r\n2\r\nd\r\n3\r\n"
    )


def test_the_first_error_ends_a_pipe_and_says_where(server):
    done = run(server.host, stdin="SELECT 1;\n\n\nSELECT\nnosuch;\nSELECT 3;\n")
    assert done.returncode == 1
    assert "(1 row)" in done.stdout and "3" not in done.stdout
    assert done.stderr == (
        "trestle sql: INVALID_ARGUMENT: stdin:4: Unrecognized name: nosuch [at 2:1]\n"
    )


def test_files_and_files_in_files(server, sql, tmp_path):
    (tmp_path / "inner.sql").write_text("SELECT 1 AS second;\nSELECT 1 / 0;\n")
    (tmp_path / "outer.sql").write_text(f"SELECT 2 AS first;\n\\i {tmp_path}/inner.sql\n")
    done = run(server.host, "-f", tmp_path / "outer.sql", "-e", "SELECT 'never' AS x")
    assert done.returncode == 1
    assert "first" in done.stdout and "second" in done.stdout and "never" not in done.stdout
    assert f"{tmp_path}/outer.sql:2: {tmp_path}/inner.sql:2: division by zero" in done.stderr
    (tmp_path / "again.sql").write_text(f"\\i {tmp_path}/again.sql\n")
    done = run(server.host, "-f", tmp_path / "again.sql")
    assert done.returncode == 1 and "deep in one another" in done.stderr
    assert sql("-f", "-", stdin="SELECT 7 AS x").endswith(" 7\n(1 row)\n")


def test_errors_say_what_and_exit_with_1(server):
    done = run(server.host, "-e", "SELECT 1 / 0")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "trestle sql: OUT_OF_RANGE: division by zero: 1 / 0\n"
    done = run(server.host, "-e", "SELECT * FROM nowhere")
    assert done.returncode == 1 and "Table not found: nowhere" in done.stderr


def test_nobody_there(fake):
    closed = fake(prepared(("a", INT64)))
    closed.close()
    done = run(closed.host, "-e", "SELECT 1")
    assert done.returncode == 1
    assert done.stderr == f"trestle sql: UNAVAILABLE: {closed.host}: Connection refused\n"


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--nonsense"], "no such setting"),
        (["SELECT 1"], "unexpected argument"),
        (["--format", "xml"], "format"),
        (["--param", "x"], "NAME=TYPE:VALUE"),
        (["--param", "x=INT64:y"], "Bad int64 value: y"),
        (["--explain", "--analyze"], "exclude each other"),
        (["--tls=false", "--ca", "/dev/null"], "--ca needs TLS"),
        (["-e"], "unexpected argument"),
        (["", "x=INT64:1"], "unexpected argument"),
    ],
)
def test_usage_errors_exit_with_2(server, arguments, words):
    done = run(server.host, *arguments)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr


def test_a_token_does_not_travel_in_the_open():
    env = {"BIGTABLE_EMULATOR_HOST": "192.0.2.1:443"}
    done = subprocess.run(
        [binary(), "sql", "--token", "secret", "-e", "SELECT 1"],
        env={**os.environ, **env}, capture_output=True, text=True, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    assert done.returncode == 2
    assert "without TLS" in done.stderr


def test_who_reads_may_leave(server):
    """`trestle sql | head`: it ends, and does not complain."""
    process = subprocess.Popen(
        [binary(), "sql", "--endpoint", server.host, "--format", "csv", "-e",
         "SELECT n, REPEAT('x', 1000) AS x FROM UNNEST(GENERATE_ARRAY(1, 30000)) AS n"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout.readline() == b"n,x\r\n"
    process.stdout.close()
    assert process.wait(PATIENCE_SECONDS) == 1
    assert process.stderr.read() == b""
    process.stderr.close()


def test_a_long_table_is_printed_whole(sql):
    out = sql("-e", "SELECT n, n * n AS square FROM UNNEST(GENERATE_ARRAY(1, 5000)) AS n")
    lines = out.splitlines()
    assert lines[2] == "    1 |       1"
    assert lines[-2] == " 5000 | 25000000"  # its column was as wide as what came first
    assert lines[-1] == "(5000 rows)"


# --- parameters ---


@pytest.mark.parametrize(
    "parameter, expected",
    [
        ("BOOL:true", "true"),
        ("INT64:-12", "-12"),
        ("FLOAT32:0.1", "0.1"),
        ("FLOAT64:2.5e300", "2.5e+300"),
        ("STRING:a:b=c", "a:b=c"),
        ("STRING", "NULL"),
        ("BYTES:k\\xff", "k\\xff"),
        ("DATE:2024-02-29", "2024-02-29"),
        ("TIMESTAMP:2024-06-01 10:00:00+02", "2024-06-01 08:00:00+00"),
        ("ARRAY<INT64>:[1, NULL]", "[1, NULL]"),
        ("ARRAY<STRING>:['a', \"b,\"]", '["a", "b,"]'),
        ("ARRAY<BYTES>:[b'\\xff']", '[b"\\xff"]'),
        ("ARRAY<BOOL>:[]", "[]"),
        ("ARRAY<DATE>", "NULL"),
    ],
)
def test_parameters_of_every_type(sql, parameter, expected):
    out = sql("--no-header", "--param", f"p={parameter}", "-e", "SELECT @p")
    assert out.strip() == expected


def test_parameters_are_set_and_forgotten(sql, server, letters):
    out = sql(
        "--no-header",
        stdin="\\set from BYTES b\n\\set most INT64 1\n\\set\n"
        f"SELECT _key FROM `{letters}` WHERE _key >= @from LIMIT @most;\n",
    )
    assert sorted(out.splitlines()) == [" b", "@from", "@most"]
    done = run(server.host, stdin="\\set a INT64 1\n\\unset a\nSELECT @a;\n")
    assert done.returncode == 1
    assert "stdin:3: " in done.stderr and "'a' not found" in done.stderr


# --- commands ---


def test_tables_and_views_are_listed_and_described(sql, letters, admin, rpc):
    view = f"v{letters}"
    query = f"SELECT _key, f['x'] AS x FROM `{letters}`"
    admin.instances.create_logical_view(
        parent=INSTANCE, logical_view_id=view, logical_view={"query": query}
    ).result()
    try:
        lines = [line.split("|") for line in sql("-e", "\\d").splitlines()]
        kinds = {line[0].strip(): line[1].strip() for line in lines if len(line) == 2}
        assert kinds[letters] == "table" and kinds[view] == "logical view"
        out = sql("-e", f"\\d {view}")
        assert " _key   | BYTES\n x      | BYTES\n" in out
        assert f"A logical view: {query}\n" in out
    finally:
        admin.instances.delete_logical_view(name=f"{INSTANCE}/logicalViews/{view}")


def test_a_materialized_view_is_made_read_and_dropped(sql, server, letters):
    view = f"v-{letters}"
    query = f"SELECT f['x'] AS x, COUNT(*) AS n FROM `{letters}` GROUP BY x"
    made = sql("-e", f"CREATE MATERIALIZED VIEW {view} OPTIONS (deletion_protection = FALSE)\n"
               f"AS -- how often\n{query}; SELECT SUM(n) AS n FROM `{view}`;")  # fmt: skip
    rows = sql("--no-header", "--format", "csv", "-e", f"SELECT COUNT(*) FROM `{letters}`")
    assert made == f"The view is populated.\n n\n---\n {rows.strip()}\n(1 row)\n"
    try:
        lines = [line.split("|") for line in sql("-e", "\\d").splitlines()]
        assert [view, "materialized view"] in [[part.strip() for part in line] for line in lines]
        assert f"A materialized view: {query}\n" in sql("-e", f"\\d `{view}`")
        again = f"MATERIALIZED VIEW IF NOT EXISTS {view} AS {query}"
        assert sql("-e", f"CREATE {again}") == "It is there already.\n"
        done = run(server.host, "-e", f"CREATE {again.replace('IF NOT EXISTS', '')}")
        assert done.returncode == 1 and "ALREADY_EXISTS" in done.stderr
    finally:
        assert sql("-e", f"DROP MATERIALIZED VIEW `{view}`") == "The view is gone.\n"
    gone = f"DROP MATERIALIZED VIEW IF EXISTS {view}"
    assert sql("-e", gone) == "There is no such view.\n"
    done = run(server.host, "-e", gone.replace("IF EXISTS", ""))
    assert done.returncode == 1 and "NOT_FOUND" in done.stderr
    done = run(server.host, "-e", f"CREATE MATERIALIZED VIEW {view} AS SELECT 1 AS x")
    assert done.returncode == 1 and "INVALID_ARGUMENT" in done.stderr
    done = run(server.host, "-e", f"CREATE MATERIALIZED VIEW {view}\nAS SELECT y FROM `{letters}`")
    assert done.returncode == 1 and "[at 2:11]" in done.stderr


def test_the_servers_own_table_is_described(sql):
    """The admin API, which knows the rules of tables, refuses its name."""
    assert " method  | MAP<BYTES, BYTES>\n" in sql("-e", "\\d system/metrics")


def test_a_table_is_described_with_its_rules(sql, rpc, admin, new_table_id):
    name = rpc.create_table(new_table_id(), families=("old", "sum"))
    both = {"rules": [{"max_age": datetime.timedelta(hours=2)}, {"max_num_versions": 1}]}
    rule = {"union": {"rules": [{"max_num_versions": 3}, {"intersection": both}]}}
    admin.tables.modify_column_families(
        request={"name": name, "modifications": [{"id": "old", "update": {"gc_rule": rule}}]}
    )
    assert sql("-e", f"\\d {name.rsplit('/', 1)[-1]}") == (
        " column | type              | garbage collection\n"
        "--------+-------------------+---------------------------------------------\n"
        " _key   | BYTES             |\n"
        " old    | MAP<BYTES, BYTES> | versions > 3 or (age > 2h and versions > 1)\n"
        " sum    | MAP<BYTES, BYTES> | never\n"
    )
    rpc.delete_table(name)


def test_a_table_is_described_with_what_adds_up(sql, rpc):
    name = create_counts(rpc, "described")
    lines = sql("-e", "\\d described").splitlines()
    kinds = [[part.strip() for part in line.split("|")][:2] for line in lines[2:]]
    assert dict(kinds) == {
        "_key": "BYTES",
        "f": "MAP<BYTES, BYTES>",
        "sum": "MAP<BYTES, INT64> (sum)",
        "ints": "MAP<BYTES, BYTES> (unique count of INT64)",
        "strings": "MAP<BYTES, BYTES> (unique count of STRING)",
        "bytes": "MAP<BYTES, BYTES> (unique count of BYTES)",
        "raw": "MAP<BYTES, BYTES> (unique count of BYTES)",
    }
    rpc.delete_table(name)


def test_commands(sql, letters):
    out = sql(
        stdin="\\x\nSELECT 1 AS one, 'b' AS bee;\n\\timing\nSELECT 2;\n\\q\nSELECT 'never';\n"
    )
    assert "-[ RECORD 1 ]-\none | 1\nbee | b\n(1 row)\n" in out
    assert "Time: " in out and "never" not in out
    assert "\\explain QUERY" in sql("-e", "\\?")


@pytest.mark.parametrize(
    "command, words",
    [
        ("\\nonsense", "there is no command \\nonsense"),
        ("\\format xml", "table, csv or json"),
        ("\\set a NUMERIC 1", "is no type of a parameter"),
        ("\\unset a", "there is no parameter"),
        ("\\i /nowhere/at/all", "No such file"),
        ("\\d nowhere", "Table not found"),
        ("\\d a`b", "is no name of a table"),
        ("\\explain", "needs a query"),
    ],
)
def test_commands_that_fail(server, command, words):
    done = run(server.host, "-e", command)
    assert done.returncode == 1
    assert words in done.stderr


# --- another server ---


def test_no_admin_api(fake):
    other = fake(prepared(("_key", BYTES), ("f", MAP)))
    done = run(other.host, "-e", "\\d")
    assert done.returncode == 1
    assert f"{other.host} does not serve the admin API" in done.stderr
    done = run(other.host, "-e", "\\d t")
    assert done.returncode == 0, done.stderr
    assert "does not serve the admin API" in done.stdout
    assert " _key   | BYTES\n f      | MAP<BYTES, BYTES>\n" in done.stdout


def test_what_is_sent(fake):
    other = fake(prepared(("a", INT64)), lambda request, context: [batch(1, token=b"end")])
    done = run(
        other.host, "--project", "my:p", "--instance", "inst", "--app-profile", "prof", "--token",
        "secret", "--param", "x=INT64:7", "-e", "SELECT @x AS a",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (_, prepare, metadata), (_, execute, _) = other.calls
    assert prepare.instance_name == execute.instance_name == "projects/my:p/instances/inst"
    assert prepare.app_profile_id == execute.app_profile_id == "prof"
    assert prepare.query == "SELECT @x AS a" and prepare.param_types["x"] == INT64
    assert execute.prepared_query == b"prepared" and execute.params["x"].int_value == 7
    assert metadata["authorization"] == "Bearer secret"
    assert metadata["x-goog-request-params"] == (
        "name=projects%2Fmy%3Ap%2Finstances%2Finst&app_profile_id=prof"
    )
    assert "trestle-explain" not in metadata


def test_a_broken_answer_is_taken_up_again(fake):
    def breaks(request, context):
        yield batch(1, token=b"one", reset=True)
        yield batch(2)
        context.abort(grpc.StatusCode.UNAVAILABLE, "gone")

    other = fake(
        prepared(("a", INT64)), breaks,
        lambda request, context: [batch(2, 3, token=b"two")],
    )  # fmt: skip
    done = run(other.host, "--no-header", "-e", "SELECT a")
    assert (done.returncode, done.stdout) == (0, " 1\n 2\n 3\n"), done.stderr
    assert [request.resume_token for _, request, _ in other.calls[1:]] == [b"", b"one"]


def test_it_gives_up_in_the_end(fake):
    def gone(request, context):
        context.abort(grpc.StatusCode.UNAVAILABLE, "gone")
        yield

    other = fake(prepared(("a", INT64)), *[gone] * 20)
    done = run(other.host, "-e", "SELECT a")
    assert done.returncode == 1
    assert done.stderr == "trestle sql: UNAVAILABLE: gone\n"
    assert other.methods().count("ExecuteQuery") == 6


def test_a_query_that_has_expired_is_prepared_anew_once(fake):
    def too_old(request, context):
        expired(context)
        yield

    def good(request, context):
        return [batch(1, token=b"end")]

    other = fake(prepared(("a", INT64)), too_old, good, too_old, too_old)
    done = run(other.host, "--no-header", "-e", "SELECT a")
    assert (done.returncode, done.stdout) == (0, " 1\n"), done.stderr
    assert other.methods() == ["PrepareQuery", "ExecuteQuery"] * 2
    done = run(other.host, "-e", "SELECT a")
    assert done.returncode == 1 and "FAILED_PRECONDITION: too old" in done.stderr


def test_a_wrong_checksum(fake):
    other = fake(
        prepared(("a", INT64)), lambda request, context: [batch(1, token=b"end", checksum=5)]
    )
    done = run(other.host, "-e", "SELECT a")
    assert done.returncode == 1 and "DATA_LOSS" in done.stderr
    assert " 1" not in done.stdout


def test_an_answer_of_another_type(fake):
    other = fake(
        prepared(("a", INT64)), lambda request, context: [batch("text", token=b"end")]
    )
    done = run(other.host, "-e", "SELECT a")
    assert done.returncode == 1 and "a value that is no INT64" in done.stderr


def plans(metadata):
    """A server that knows the header."""
    return prepared(("plan", STRING) if "trestle-explain" in metadata else ("a", INT64))


@pytest.mark.parametrize(
    "arguments, word",
    [
        (["--explain", "-e", "SELECT 1"], "plan"),
        (["--analyze", "-e", "SELECT 1"], "analyze"),
        (["-e", "\\explain SELECT 1;"], "plan"),
    ],
)
def test_plans_are_asked_for_and_printed(fake, arguments, word):
    lines = lambda request, context: [batch("scan t", "  filter\t", token=b"end")]  # noqa: E731
    other = fake(plans, lines)
    done = run(other.host, *arguments)
    assert (done.returncode, done.stdout) == (0, "scan t\n  filter\t\n"), done.stderr
    assert other.calls[0][1].query == "SELECT 1"
    assert other.calls[0][2]["trestle-explain"] == word
    assert "trestle-explain" not in other.calls[1][2]


def test_a_server_that_does_not_explain(fake):
    other = fake(prepared(("plan", INT64)))
    done = run(other.host, "--explain", "-e", "SELECT 1")
    assert (done.returncode, done.stdout) == (1, "")
    assert "does not explain" in done.stderr
    assert other.methods() == ["PrepareQuery"]


# --- TLS ---


def test_tls_and_a_token(secure, tmp_path):
    secured, token = secure(), tmp_path / "token"
    token.write_text("admin\n")
    trust = ["--ca", secured.authority.certificate]
    done = run(secured.server.host, *trust, "--token-file", token, "-e", "SELECT 5")
    assert done.returncode == 0, done.stderr
    assert "5" in done.stdout
    done = run(secured.server.host, *trust, "-e", "SELECT 5")
    assert done.returncode == 1 and "UNAUTHENTICATED" in done.stderr
    done = run(secured.server.host, "--tls", "--token", "admin", "-e", "SELECT 5")
    assert done.returncode == 1 and "certificate" in done.stderr


# --- a terminal ---

PROMPT, CONTINUED = r"sql> $", r"  -> $"


@pytest.fixture
def terminal(server, tmp_path):
    """A function that starts the shell on a terminal, waits for its prompt, and gives it."""
    opened = []

    def start(host=server.host, **env):
        opened.append(
            Terminal(
                [binary(), "sql", "--endpoint", host],
                {**os.environ, "TERM": "xterm", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8", **env},
            )
        )
        opened[-1].wait_for(PROMPT)
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def test_a_session(terminal, tmp_path):
    shell = terminal()
    shell.type("SELECT\n")
    shell.wait_for(CONTINUED)
    shell.type("'grün' AS a;\n")
    assert "grün\r\n(1 row)\r\n" in shell.wait_for(PROMPT)
    shell.type("SELECT nosuch;\n")
    assert "Unrecognized name: nosuch" in shell.wait_for(PROMPT)
    shell.type("\\timing\n")
    assert "Timing is on" in shell.wait_for(PROMPT)
    shell.type(CONTROL_D)
    assert shell.wait() == 0
    history = tmp_path / ".trestle_sql_history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert len(history.read_text().splitlines()) == 4  # with its heading

    shell = terminal()
    shell.type(UP * 3 + "\n")
    assert "grün\r\n(1 row)\r\n" in shell.wait_for(PROMPT)
    shell.type("\\q\n")
    assert shell.wait() == 0


def test_the_history_is_where_one_says(terminal, tmp_path):
    history = tmp_path / "elsewhere"
    history.write_text("")
    history.chmod(0o644)
    shell = terminal(TRESTLE_SQL_HISTORY=str(history))
    shell.type("SELECT 1;\n")
    shell.wait_for(PROMPT)
    shell.type("\\q\n")
    assert shell.wait() == 0
    assert "SELECT\\0401;" in history.read_text()
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert not (tmp_path / ".trestle_sql_history").exists()


def test_control_c_drops_what_was_typed(terminal):
    shell = terminal()
    shell.type("SELECT nonsense")
    shell.wait_for("nonsense")
    shell.type(CONTROL_C)
    shell.wait_for(PROMPT)
    shell.type("SELECT '''\n")
    shell.wait_for(CONTINUED)
    shell.type(CONTROL_C)
    shell.wait_for(PROMPT)
    shell.type("SELECT 40 + 2 AS x;\n")
    assert "42\r\n(1 row)" in shell.wait_for(PROMPT)


def test_control_c_cancels_a_query(terminal, fake):
    is_cancelled = threading.Event()

    def stuck(request, context):
        context.add_callback(is_cancelled.set)
        yield batch(41, token=b"one")
        is_cancelled.wait(PATIENCE_SECONDS)

    other = fake(
        prepared(("a", INT64)), stuck, lambda request, context: [batch(42, token=b"end")]
    )  # fmt: skip
    shell = terminal(other.host)
    shell.type("\\format csv\n")
    shell.wait_for(PROMPT)
    shell.type("SELECT a;\n")
    shell.wait_for("41\r")
    shell.type(CONTROL_C)
    assert "CANCELLED" in shell.wait_for(PROMPT)
    assert is_cancelled.wait(PATIENCE_SECONDS)
    shell.type("SELECT a;\n")
    assert "42\r" in shell.wait_for(PROMPT)


def test_a_server_that_was_restarted(terminal, fake):
    def answer(number):
        return lambda request, context: [batch(number, token=b"end")]

    first = fake(prepared(("a", INT64)), answer(41))
    shell = terminal(first.host)
    shell.type("SELECT a;\n")
    assert "41\r\n" in shell.wait_for(PROMPT)
    first.close()
    shell.type("SELECT a;\n")
    assert "Connection refused" in shell.wait_for(PROMPT)
    fake(prepared(("a", INT64)), answer(42), host=first.host)
    shell.type("SELECT a;\n")
    assert "42\r\n" in shell.wait_for(PROMPT)
