"""Who may use the console, by HTTP: logging in, the cookie, and what it does not do. The pages are
in test_console.py."""

import json
import signal
import time

import pytest
from harness.console import Caller, ask_console
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest
from harness.secured import POLICY, TABLE

INSTANCES = "/v2/projects/p/instances"


@pytest.fixture
def secured(secure):
    return secure()


@pytest.fixture(params=["HTTP/1.1", "HTTP/2"])
def call(secured, request):
    """A browser that does not log in by itself."""
    return Caller(secured, request.param)


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def session(call):
    return json.loads(call("GET", "session")[2])


def test_a_session_is_who_logged_in(call):
    assert session(call) == {"authentication": True, "session": False, "principal": ""}
    assert call.log_in("reader") == 204
    assert session(call) == {
        "authentication": True,
        "session": True,
        "principal": "user:reader@example.com",
    }


def test_the_cookie_is_out_of_reach(call):
    assert call.log_in("reader") == 204
    name_and_value, *attributes = call.cookie_line.split("; ")
    assert name_and_value.startswith("trestle-session=") and "reader" not in name_and_value
    assert set(attributes) == {"Path=/console", "HttpOnly", "SameSite=Strict", "Secure"}


@pytest.mark.parametrize("token", ["wrong", "late", "", "two words", "x" * 9000, "line\nfeed"])
def test_what_is_no_token_does_not_log_in(call, token):
    assert call.log_in(token) == 401
    assert call.cookie is None


def test_the_session_may_do_what_its_token_may(call):
    """roles/bigtable.reader reads and does not write, with the session as with the token."""
    assert call("GET", f"api{INSTANCES}")[0] == 401
    call.log_in("admin")
    body = json.dumps({"tableId": "t", "table": {"columnFamilies": {"f": {}}}})
    created = call("POST", f"api{INSTANCES}/i/tables", body)
    assert created[0] in (200, 404), created  # there is no instance: the caller may ask, though
    call.log_in("reader")
    assert call("GET", f"api{INSTANCES}")[0] == 200
    status, _, text = call("POST", f"api{INSTANCES}/i/tables", body)
    assert status == 403 and "bigtable.tables.create" in text


def test_a_withdrawn_token_ends_what_its_session_may(call, secured):
    def status():
        return call("GET", f"api{INSTANCES}")[0]

    call.log_in("reader")
    assert status() == 200
    secured.write_policy({"*": POLICY["*"]})
    secured.server.signal(signal.SIGHUP)
    wait_until(lambda: status() == 403)
    lines = secured.token_file.read_text().splitlines(keepends=True)
    secured.token_file.write_text("".join(line for line in lines if "reader" not in line))
    secured.server.signal(signal.SIGHUP)
    wait_until(lambda: status() == 401)
    assert session(call)["principal"] == ""


def test_who_logs_out_is_nobody(call):
    call.log_in("reader")
    stolen = call.cookie
    assert call("POST", "logout")[0] == 204
    assert call.cookie is None
    call.cookie = stolen
    assert call("GET", f"api{INSTANCES}")[0] == 401


def test_another_login_ends_the_session_before_it(call):
    call.log_in("reader")
    first = call.cookie
    call.log_in("viewer")
    assert session(call)["principal"] == "user:viewer@example.com"
    call.cookie = first
    assert session(call)["session"] is False


def test_rest_knows_no_cookies(call, secured):
    """A page from elsewhere that gets the browser to send the cookie has nothing of it there."""
    call.log_in("admin")
    rest = Rest(secured.server.host.replace("127.0.0.1", "localhost"), call.way, call.context())
    status, _ = rest.ask("GET", INSTANCES, headers={"cookie": f"trestle-session={call.cookie}"})
    assert status == 401


def test_other_pages_cannot_use_the_session(call):
    call.log_in("admin")
    own, path = {"x-trestle-console": "1"}, f"api/v2/{TABLE}:mutateRow"
    for headers in (
        {"sec-fetch-site": "same-origin"},
        {**own, "sec-fetch-site": "cross-site"},
        {**own, "sec-fetch-site": "same-site"},
        {**own, "sec-fetch-site": "none"},
        {**own, "origin": "https://evil.example"},
        own,
    ):
        status, _, text = call("POST", path, "{}", headers)
        assert status == 403, headers
        assert text in (
            "only the console's own pages may ask this\n",
            "A page from elsewhere may not ask this server for anything.\n",
        )


def test_without_access_control_nobody_logs_in(server):
    def ask(verb, path, body=None):
        headers = {"x-trestle-console": "1", "sec-fetch-site": "same-origin"}
        return ask_console(server.host, "HTTP/1.1", verb, path, body, headers)

    _, _, text = ask("GET", "session")
    assert json.loads(text) == {"authentication": False, "session": False, "principal": ""}
    assert ask("POST", "login", "admin")[0] == 401
    assert ask("GET", f"api{INSTANCES}")[0] == 200
    assert ask("GET", "api/v2/projects/p/nothing")[0] == 404
