"""A proxy before a service of HTTP whose answers a test alters: LyingProxy(url).alter = f, where
f(method, path, body) gives the body that is sent in place of the service's, with a length that
fits."""

import http.client
import http.server
import threading

HOP_BY_HOP = {"connection", "content-length", "expect", "transfer-encoding"}


class LyingProxy:
    def __init__(self, url):
        proxy, self.alter = self, None

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments):
                pass

            def forward(self):
                """(status, headers, body) of the service."""
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
                connection.request(self.command, self.path, body, kept(self.headers.items()))
                answer = connection.getresponse()
                found = answer.status, kept(answer.getheaders()), answer.read()
                connection.close()
                return found

            def answer(self):
                status, headers, body = self.forward()
                if proxy.alter is not None:
                    body = proxy.alter(self.command, self.path, body)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_PUT = do_POST = do_DELETE = answer

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, name="proxy")
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def kept(headers):
    return {name: value for name, value in headers if name.lower() not in HOP_BY_HOP}
