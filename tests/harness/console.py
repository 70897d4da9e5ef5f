"""The console as a browser asks it, without a browser."""

import ssl

from harness.rest import WAYS


def ask_console(host, way, verb, path, body=None, headers=None, context=None):
    """(HTTP status, headers, text) of what is below /console/."""
    data = body.encode() if isinstance(body, str) else body
    if verb == "POST" and data is None:
        data = b""
    status, fields, text = WAYS[way](host, verb, f"/console/{path}", data, headers or {}, context)
    return status, fields, text.decode()


class Caller:
    """A browser on a page of the console of a server with TLS: it keeps the cookie."""

    def __init__(self, secured, way):
        self.secured, self.way = secured, way
        self.host = secured.server.host.replace("127.0.0.1", "localhost")
        self.cookie = self.cookie_line = None

    def context(self):
        return ssl.create_default_context(cafile=self.secured.authority.certificate)

    def __call__(self, verb, path, body=None, headers=None):
        if headers is None:
            headers = {"x-trestle-console": "1", "sec-fetch-site": "same-origin"}
        if self.cookie is not None:
            headers = {**headers, "cookie": f"other=1; trestle-session={self.cookie}"}
        status, fields, text = ask_console(
            self.host, self.way, verb, path, body, headers, self.context()
        )
        self.keep(fields.get("set-cookie"))
        return status, fields, text

    def keep(self, line):
        if line is None:
            return
        self.cookie_line = line
        value = line.split(";")[0].removeprefix("trestle-session=")
        self.cookie = value or None

    def log_in(self, token):
        """The HTTP status."""
        return self("POST", "login", token)[0]
