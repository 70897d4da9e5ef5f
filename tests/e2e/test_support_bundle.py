"""`trestle support-bundle`: what is in it, what is not, and what does not stop it."""

import stat
import tarfile

import pytest
from harness.rpc import set_cell
from harness.server import run_trestle

SECRETS = ("secret-row", "secret-value", "secret-qualifier", "secret-audience", "secret-token")


@pytest.fixture
def bundle(tmp_path):
    """A function that makes a bundle: {name: text} of its files."""

    def make(*arguments, env=None):
        path = tmp_path / "bundle.tar.gz"
        path.unlink(missing_ok=True)
        done = run_trestle("support-bundle", "--output", path, *arguments, env=env)
        assert done.returncode == 0, done.stderr
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with tarfile.open(path, "r:gz") as tar:
            files = {each.name: tar.extractfile(each).read().decode() for each in tar}
        assert len({name.split("/")[0] for name in files}) == 1
        files = {name.split("/")[1]: text for name, text in files.items()}
        assert done.stdout == f"{files['summary.txt']}{path}\n"
        return files

    return make


def missing(files):
    """{name: why} of the parts that are not there."""
    words = (line.split(None, 1) for line in files["summary.txt"].splitlines())
    absent = {name: rest for name, rest in words if rest.startswith("not there: ")}
    assert not absent.keys() & files.keys()
    return absent


@pytest.fixture
def filled(fresh_server, connect, tmp_path):
    """A server whose rows, settings and files have what must not be told, and its configuration."""
    config = tmp_path / "trestle.conf"
    keys, tokens = tmp_path / "keys.json", tmp_path / "tokens"
    keys.write_text('{"keys": []}')
    tokens.write_text("")
    server = fresh_server()
    rpc = connect(server.host)
    name = rpc.create_table("orders", splits=[b"secret-row-5"])
    for i in range(10):
        rpc.mutate(name, b"secret-row-%d" % i, set_cell("f", b"secret-qualifier", b"secret-value"))
    config.write_text(
        f"data-dir = {server.data}\nlisten = {server.host}\ncache = 64MB\nauth = on\n"
        f"auth-tokens = {tokens}\nauth-jwks = {keys}\nauth-issuer = i\n"
        "auth-audience = secret-audience\n"
    )
    return server, config


def check_no_secrets(files):
    for name, text in files.items():
        for secret in SECRETS:
            assert secret not in text, name


def test_of_a_running_server(filled, bundle, tmp_path):
    server, config = filled
    token = tmp_path / "token"
    token.write_text("secret-token\n")
    files = bundle("--config", config, "--log", server.stderr_path, "--token-file", token)
    check_no_secrets(files)
    assert set(missing(files)) == {"stored-tables.txt"}
    assert "is in use" in files["summary.txt"]
    assert files["version.txt"] == run_trestle("version").stdout
    assert files["server-live.txt"].startswith("200\n")
    assert files["server-ready.txt"].startswith("200\n")
    assert "trestle_rows_read_total" in files["server-metrics.txt"]
    assert "    serve_command\n" in files["server-stacks.txt"]
    for line in files["server-profile.txt"].splitlines():
        assert line.rsplit(" ", 1)[1].isdigit()
    lines = files["server-tables.txt"].splitlines()
    assert lines[:2] == ["instance projects/p/instances/i",
                         "table projects/p/instances/i/tables/orders"]  # fmt: skip
    assert [line.split(" ends")[0] for line in lines[2:]] == ["  tablet 1", "  tablet 2"]
    assert files["log.txt"] == server.stderr()
    assert "MemTotal:" in files["system.txt"]
    assert "Max open files" in files["limits.txt"]
    assert "bytes in all" in files["disk.txt"]
    assert "MANIFEST-" in files["files.txt"]


def test_settings_say_where_they_are_from(filled, bundle):
    _, config = filled
    files = bundle("--config", config, env={"TRESTLE_SPLIT_SIZE": "2GB"})
    lines = files["settings.txt"].splitlines()
    assert f"cache = 64MB  ({config}:3: cache)" in lines
    assert "split-size = 2GB  (TRESTLE_SPLIT_SIZE)" in lines
    assert "durability = sync" in lines
    assert "gc-interval = 1d" in lines
    assert "tls-cert = none" in lines
    assert f"auth-audience = (given, and not shown)  ({config}:8: auth-audience)" in lines


def test_of_a_stopped_server(filled, bundle):
    server, config = filled
    server.stop()
    files = bundle("--config", config)
    check_no_secrets(files)
    assert set(missing(files)) == {
        "server-live.txt", "server-ready.txt", "server-metrics.txt", "server-tables.txt",
        "server-stacks.txt", "server-profile.txt", "log.txt",
    }  # fmt: skip
    table, *others = files["stored-tables.txt"].splitlines()
    assert "projects/p/instances/i/tables/orders, families: 1" in table
    number = table.split()[1]  # there is the server's own table of heat, too
    assert len([line for line in others if f" of table {number}:" in line]) == 2
    server.start()  # nothing was changed that it would mind


def test_with_settings_that_are_refused(filled, bundle):
    """It is needed most when the server does not start: what can be read of them counts."""
    server, config = filled
    config.write_text(
        f"data-dir = {server.data}\nlisten = {server.host}\ncache = much\nauth-tokens = x\n"
    )
    files = bundle("--config", config)
    text = files["settings.txt"]
    assert text.startswith(
        "# The server does not start with these:\n"
        f'{config}:3: cache: "much" is not a size from 8MB to 16TB\n'
        f"{config}:4: auth-tokens: needs auth=on beside it\n"
        "# The others:\n"
    )
    assert f"data-dir = {server.data}  ({config}:1: data-dir)\n" in text
    assert "\ncache = 512MB\n" in text
    assert files["server-live.txt"].startswith("200\n") and "MANIFEST-" in files["files.txt"]


def test_of_a_secured_server(secure, bundle, tmp_path):
    """Who may not see the tables gets the rest."""
    secured = secure("--metrics-auth")
    secured.rpc("admin").create_table("t")
    token = tmp_path / "token"
    options = ["--endpoint", secured.server.host, "--ca", secured.authority.certificate,
               "--token-file", token]  # fmt: skip
    token.write_text("admin\n")
    files = bundle(*options)
    assert "instances/i/tables/t\n" in files["server-tables.txt"]
    assert "trestle_" in files["server-metrics.txt"]
    token.write_text("stranger\n")
    files = bundle(*options)
    assert files["server-live.txt"].startswith("200\n")
    assert "/metrics answered 403" in missing(files)["server-metrics.txt"]
    assert "tables/t" not in files.get("server-tables.txt", "")


def test_where_nothing_is(bundle, tmp_path):
    nothing = tmp_path / "nothing"
    files = bundle(
        "--config", nothing, "--data-dir", nothing, "--endpoint", "127.0.0.1:1",
        "--log", nothing, "--token-file", nothing,
    )  # fmt: skip
    assert {"version.txt", "system.txt", "limits.txt", "summary.txt"} == set(files)
    assert "settings.txt" in missing(files)
    assert not nothing.exists()


def test_another_archive_is_left(tmp_path):
    path = tmp_path / "bundle.tar.gz"
    path.write_text("precious")
    done = run_trestle("support-bundle", "--output", path)
    assert done.returncode == 1
    assert "exists" in done.stderr
    assert path.read_text() == "precious"
