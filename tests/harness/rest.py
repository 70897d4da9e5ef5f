"""REST by hand, over either version of HTTP."""

import base64
import contextlib
import http.client
import json

from harness.http2 import Http2
from harness.patience import PATIENCE_SECONDS


def b64(data):
    return base64.b64encode(data).decode()


def ask_http1(host, verb, path, body, headers, context=None):
    if context is None:
        connection = http.client.HTTPConnection(host, timeout=PATIENCE_SECONDS)
    else:
        context.set_alpn_protocols(["http/1.1"])
        connection = http.client.HTTPSConnection(host, timeout=PATIENCE_SECONDS, context=context)
    with contextlib.closing(connection):
        connection.request(verb, path, body, headers)
        response = connection.getresponse()
        fields = {name.lower(): value for name, value in response.getheaders()}
        return response.status, fields, response.read()


def ask_http2(host, verb, path, body, headers, context=None):
    with contextlib.closing(Http2(host, context)) as connection:
        lowered = {name.lower(): value for name, value in headers.items()}
        answer = connection.ask(verb, path, body or b"", lowered)
        assert answer.is_whole, answer.reset
        return answer.status, answer.headers, answer.body


WAYS = {"HTTP/1.1": ask_http1, "HTTP/2": ask_http2}


class Rest:
    """Requests to one server, each on a connection of its own. `context`: an ssl.SSLContext."""

    def __init__(self, host, way="HTTP/1.1", context=None):
        self.host, self.way, self.context = host, way, context

    def ask_for_all(self, verb, path, body=None, headers=None):
        """(HTTP status, headers, text) of what comes back."""
        data = json.dumps(body) if isinstance(body, dict) else body
        if isinstance(data, str):
            data = data.encode()
        status, fields, text = WAYS[self.way](
            self.host, verb, path, data, headers or {}, self.context
        )
        return status, fields, text.decode()

    def ask(self, verb, path, body=None, headers=None):
        """(HTTP status, text) of what comes back."""
        status, _, text = self.ask_for_all(verb, path, body, headers)
        return status, text

    def call(self, verb, path, body=None, expect=200, headers=None):
        """The JSON that comes back."""
        status, text = self.ask(verb, path, body, headers)
        assert status == expect, text
        return json.loads(text)
