"""Pages of other sites that somebody's browser shows, against REST and the console of a server that
asks nobody who he is: by hand, and in Chromium. Those who are no browser pass by any name."""

import contextlib
import http.server
import json
import threading

import pytest
from harness.browser import CHROMIUM
from harness.rest import WAYS
from harness.rpc import INSTANCE, admin_types
from harness.server import run_trestle
from playwright.sync_api import sync_playwright

TABLES = "/v2/projects/p/instances/i/tables"
FOREIGN = "A page from elsewhere may not ask this server for anything."
BROWSER = {"accept-language": "en"}
PAGES = ("/console/", "/livez", f"{TABLES}")


def ask(server, way, verb="GET", path=TABLES, name=None, **headers):
    """(HTTP status, text) for a request by that name of the server's."""
    fields = {key.replace("_", "-"): value for key, value in headers.items()}
    if name is not None:
        fields["host" if way == "HTTP/1.1" else ":authority"] = name
    body = json.dumps({}).encode() if verb == "POST" else None
    status, _, text = WAYS[way](server.host, verb, path, body, fields, None)
    return status, text.decode()


@pytest.fixture(params=WAYS)
def way(request):
    return request.param


@pytest.mark.parametrize("name", ["evil.example", "evil.example:8086", "127.0.0.1.evil.example"])
def test_names_of_others_are_refused_to_browsers(server, way, name):
    for mark in (
        {"accept_language": "en"}, {"origin": f"http://{name}"}, {"referer": f"http://{name}/"},
        {"sec_fetch_site": "same-origin"}, {"user_agent": "Mozilla/5.0"},
    ):  # fmt: skip
        for path in PAGES:
            status, text = ask(server, way, path=path, name=name, **mark)
            assert status == 403 and "--allowed-hosts" in text, (mark, path)


@pytest.mark.parametrize(
    "name", [None, "localhost:8086", "trestle:8086", "x.localhost", "[::1]:8086", "10.0.0.7"]
)
def test_names_of_its_own_serve_browsers(server, way, name):
    for path in PAGES:
        assert ask(server, way, path=path, name=name, accept_language="en")[0] in (200, 404), path


def test_who_is_no_browser_may_use_any_name(server, way):
    """curl, Google's clients, gcloud, a probe: none of them sends what browsers do."""
    for path in PAGES:
        status, _ = ask(server, way, path=path, name="trestle.svc.cluster.local",
                        user_agent="google-cloud-sdk gcloud/500.0.0")  # fmt: skip
        assert status in (200, 404), path


def test_allowed_hosts(fresh_server, way):
    server = fresh_server("--allowed-hosts", "db.example.com, other.example.com")
    assert ask(server, way, name="db.example.com:8086", **BROWSER)[0] != 403
    assert ask(server, way, name="OTHER.example.com", **BROWSER)[0] != 403
    assert ask(server, way, name="evil.example.com", **BROWSER)[0] == 403


def test_allowed_hosts_are_names(tmp_path):
    done = run_trestle("serve", "--data-dir", tmp_path / "d", "--allowed-hosts", "http://a")
    assert done.returncode == 2
    assert done.stderr == (
        'trestle serve: --allowed-hosts: "http://a" is no name of a host, such as db.example.com\n'
    )


def test_requests_from_elsewhere_are_refused(server, way):
    for headers in (
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site", "sec_fetch_mode": "no-cors"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:1"},
    ):
        for verb, path in (("POST", TABLES), ("GET", TABLES), ("POST", "/console/api" + TABLES)):
            assert ask(server, way, verb, path, **headers) == (403, FOREIGN + "\n"), headers


def test_links_from_elsewhere_lead_here(server, way):
    link = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}
    assert ask(server, way, path="/console/", **link)[0] == 200
    assert ask(server, way, "POST", "/console/", **link)[0] == 403


def test_its_own_pages_may(server, way):
    own = {"sec_fetch_site": "same-origin"}
    assert ask(server, way, "GET", TABLES, **own)[0] != 403
    assert ask(server, way, "GET", TABLES, origin=f"http://{server.host}")[0] != 403


# --- a browser ---

ATTACK = """async ([url, body]) => {
  const answers = [];
  for (const type of ["text/plain", "application/x-www-form-urlencoded"]) {
    try {
      await fetch(url, {method: "POST", mode: "no-cors", body, headers: {"content-type": type}});
      answers.push("sent");
    } catch { answers.push("failed"); }
  }
  try {
    const answer = await fetch(url);
    answers.push(`${answer.status}`);
  } catch { answers.push("unreadable"); }
  return answers;
}"""


class Blank(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>elsewhere</title>")

    def log_message(self, *_):
        pass


@pytest.fixture
def elsewhere():
    """The port of another site."""
    site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Blank)
    thread = threading.Thread(target=site.serve_forever)
    thread.start()
    yield site.server_port
    site.shutdown()
    thread.join()
    site.server_close()


@contextlib.contextmanager
def browser(*arguments):
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=list(arguments))
        yield running.new_page()
        running.close()


def tables_of(rpc):
    request = admin_types.ListTablesRequest(parent=INSTANCE)
    return [each.name for each in rpc.admin.list_tables(request).tables]


def test_a_page_from_elsewhere_changes_nothing(fresh_server, connect, elsewhere):
    server = fresh_server()
    rpc = connect(server.host)
    rpc.create_table("t")
    body = json.dumps({"tableId": "stolen", "table": {}})
    with browser() as page:
        page.goto(f"http://localhost:{elsewhere}/")
        answers = page.evaluate(ATTACK, [f"http://{server.host}{TABLES}", body])
        assert answers == ["sent", "sent", "unreadable"]
    assert [name.rsplit("/", 1)[1] for name in tables_of(rpc)] == ["t"]


def test_a_name_that_comes_to_mean_this_server_reads_nothing(fresh_server, connect):
    """DNS rebinding: the browser takes the attacker's name for the server's own."""
    server = fresh_server()
    rpc = connect(server.host)
    rpc.create_table("t")
    address, port = server.host.split(":")
    with browser(f"--host-resolver-rules=MAP evil.example {address}") as page:
        answer = page.goto(f"http://evil.example:{port}/livez")
        assert answer.status == 403 and "--allowed-hosts" in answer.text()
        body = json.dumps({"tableId": "stolen", "table": {}})
        answers = page.evaluate(ATTACK, [TABLES, body])
        assert answers == ["sent", "sent", "403"]
    assert [name.rsplit("/", 1)[1] for name in tables_of(rpc)] == ["t"]
