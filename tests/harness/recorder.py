"""An HTTP proxy that stands before a server and keeps what goes through."""

import contextlib
import http.client
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness.patience import PATIENCE_SECONDS


class Recorder:
    """Forwards to `host`, and has its own address in `host`. Requests and answers are JSON, or
    empty."""

    def __init__(self, host):
        self.target = host
        self.exchanges = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.host = "127.0.0.1:%d" % self.server.server_port
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def take(self):
        """What has gone through since the last time."""
        taken, self.exchanges = self.exchanges, []
        return taken

    def forward(self, method, path, body):
        connection = http.client.HTTPConnection(self.target, timeout=PATIENCE_SECONDS)
        with contextlib.closing(connection):
            headers = {"Content-Type": "application/json"} if body else {}
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            status, reply = answer.status, answer.read()
        self.exchanges.append({
            "method": method,
            "path": path,
            **({"body": json.loads(body)} if body else {}),
            "status": status,
            "reply": json.loads(reply),
        })  # fmt: skip
        return status, reply

    def handler(self):
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self):
                size = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(size)
                status, reply = recorder.forward(self.command, self.path, body)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any

            def log_message(self, *arguments):
                pass

        return Handler
