"""A collector of OpenTelemetry's spans on loopback, which decodes what comes with the project's own
messages."""

import contextlib
import http.server
import threading

from harness.patience import PATIENCE_SECONDS
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2


class Collector:
    """`answer` is the code of what it says next; `requests` what came: (path, headers)."""

    def __init__(self):
        self.answer = 200
        self.requests, self.spans, self.resources = [], [], []
        self.news = threading.Condition()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                collector.take(self.path, dict(self.headers), body)
                self.send_response(collector.answer)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def take(self, path, headers, body):
        request = trace_service_pb2.ExportTraceServiceRequest.FromString(body)
        with self.news:
            self.requests.append((path, headers))
            if self.answer == 200:
                for resource in request.resource_spans:
                    self.resources.append(attributes_of(resource.resource))
                    self.spans += [
                        span for scope in resource.scope_spans for span in scope.spans
                    ]
            self.news.notify_all()

    def wait(self, is_enough):
        """Until what has come is enough."""
        with self.news:
            assert self.news.wait_for(lambda: is_enough(self), PATIENCE_SECONDS), self.requests

    def named(self, end):
        return [span for span in self.spans if span.name.endswith(end)]

    def within(self, span):
        """The spans of its steps, in the order that they began."""
        found = [each for each in self.spans if each.parent_span_id == span.span_id]
        return sorted(found, key=lambda each: each.start_time_unix_nano)

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def attributes_of(message):
    """{key: value} of a span or a resource."""
    return {
        each.key: getattr(each.value, each.value.WhichOneof("value"))
        for each in message.attributes
    }


@contextlib.contextmanager
def collecting():
    collector = Collector()
    try:
        yield collector
    finally:
        collector.close()
