"""A server that has Google's services of Bigtable and no others: what it is asked it asks ours."""

import concurrent.futures
import contextlib

import grpc

GOOGLE = "/google.bigtable."


class Forwarder(grpc.GenericRpcHandler):
    def __init__(self, channel):
        self.channel = channel

    def service(self, details):
        if not details.method.startswith(GOOGLE):
            return None

        def forward(request, context):
            call = self.channel.unary_stream(details.method)(
                request, metadata=context.invocation_metadata()
            )
            context.add_callback(call.cancel)
            try:
                yield from call
            except grpc.RpcError as error:
                context.abort(error.code(), error.details())

        return grpc.unary_stream_rpc_method_handler(forward)


@contextlib.contextmanager
def plain_bigtable(host):
    """Its address."""
    with grpc.insecure_channel(host) as channel:
        pool = concurrent.futures.ThreadPoolExecutor(4)
        server = grpc.server(pool, handlers=[Forwarder(channel)])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        yield f"127.0.0.1:{port}"
        server.stop(None).wait()
