"""TCP proxies that lose connections, hold what is sent, or count it: what a client sees when a
network fails under it."""

import contextlib
import select
import socket
import threading

from harness.patience import PATIENCE_SECONDS

PIECE = 16384


class FailingProxy:
    """Forwards to `host`. On the first connection the server's first `after` bytes come through,
    then it is cut; later ones are left alone."""

    def __init__(self, host, after):
        address, port = host.rsplit(":", 1)
        self.target = (address, int(port))
        self.after = after
        self.connections = 0
        self.sockets = []
        self.threads = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.host = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.spawn(self.accept)

    def close(self):
        for each in [self.listener, *self.sockets]:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join()
        for each in [self.listener, *self.sockets]:
            each.close()

    def spawn(self, function, *arguments):
        self.threads.append(threading.Thread(target=function, args=arguments))
        self.threads[-1].start()

    def accept(self):
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(self.target)
                self.sockets += [client, server]
                self.connections += 1
                left = self.after if self.connections == 1 else None
                self.spawn(self.forward, client, server, left)

    def forward(self, client, server, left):
        """Both directions, until either side ends it or no byte of the server's is left."""
        with contextlib.suppress(OSError):
            while left != 0:
                readable, _, _ = select.select([client, server], [], [])
                for source in readable:
                    data = source.recv(PIECE)
                    if not data:
                        left = 0
                    elif source is client:
                        self.send_to_server(server, data)
                    else:
                        self.send_to_client(client, data[:left])
                        left = left and max(left - len(data), 0)
        for each in (client, server):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def send_to_server(self, server, data):
        server.sendall(data)

    def send_to_client(self, client, data):
        client.sendall(data)


class CountingProxy(FailingProxy):
    """Forwards to `host`, and counts the bytes that it sends."""

    def __init__(self, host):
        self.sent = 0
        super().__init__(host, None)

    def send_to_client(self, client, data):
        self.sent += len(data)
        super().send_to_client(client, data)


class HoldingProxy(CountingProxy):
    """Forwards to `host`, but holds what the client sends once `is_time()`, until the release: the
    server sends no more then than the windows have room for."""

    def __init__(self, host, is_time):
        self.is_time = is_time
        self.holds = threading.Event()
        self.is_released = threading.Event()
        super().__init__(host)

    def send_to_server(self, server, data):
        if not self.is_released.is_set() and self.is_time():
            self.holds.set()
            self.is_released.wait(PATIENCE_SECONDS)
        super().send_to_server(server, data)

    def release(self):
        self.is_released.set()

    def close(self):
        self.release()
        super().close()


class FollowingProxy(FailingProxy):
    """Forwards to a server that is started again elsewhere: `follow`. Connections are lost while
    it is away."""

    def __init__(self, host):
        super().__init__(host, None)

    def follow(self, host):
        address, port = host.rsplit(":", 1)
        self.target = (address, int(port))

    def accept(self):
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _ = self.listener.accept()
                self.sockets.append(client)
                self.connections += 1
                try:
                    server = socket.create_connection(self.target)
                except OSError:
                    client.shutdown(socket.SHUT_RDWR)
                    continue
                self.sockets.append(server)
                self.spawn(self.forward, client, server, None)
