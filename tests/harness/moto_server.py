"""moto's services, DynamoDB with streams and S3, as a process: prints its port, serves on loopback
until killed.

    moto_server.py [CERTIFICATE KEY]      with them by TLS

One request at a time: moto's tables are dicts, which do not bear being scanned and written to at
once."""

import sys
import threading
from decimal import Decimal

from moto.dynamodb.models.table import Table
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server


class Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_request(self, *arguments):
        pass


def one_at_a_time(application):
    lock = threading.Lock()

    def call(environ, start_response):
        with lock:
            return list(application(environ, start_response))

    return call


def item_order(item):
    """What moto sorts a table by, as plain values: by its own it takes seconds for each page of a
    large table."""
    return tuple(
        Decimal(each.value) if each.type == "N" else each.value
        for each in (item.hash_key, item.range_key)
        if each is not None
    )


def all_items(table):
    parts = table.items.values()
    found = [item for part in parts for item in part.values()] if table.range_key_attr else parts
    return sorted(found, key=item_order)


def main(certificate=None, key=None):
    Table.all_items = all_items
    application = one_at_a_time(DomainDispatcherApplication(create_backend_app))
    tls = (certificate, key) if certificate else None
    server = make_server(
        "127.0.0.1", 0, application, threaded=True, request_handler=Handler, ssl_context=tls
    )
    print(server.port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
