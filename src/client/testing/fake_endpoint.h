/* A gRPC server on 127.0.0.1, on the loop of the client that is tested: one thread, no database.
 * Its services are the test's. */
#ifndef TRESTLE_CLIENT_TESTING_FAKE_ENDPOINT_H
#define TRESTLE_CLIENT_TESTING_FAKE_ENDPOINT_H

#include "os/listener.h"
#include "wire/grpc_server.h"

struct fake_endpoint {
    struct loop *loop;
    struct listener *listener;
    struct grpc_server *server;
    struct grpc_spares *spares;
    struct list connections;
    char address[64]; /* HOST:PORT */
};

void fake_endpoint_start(struct fake_endpoint *endpoint, struct loop *loop,
                         const struct grpc_service *service);

/* Cuts all connections; clients may connect again. Not from within a call's handler. */
void fake_endpoint_cut(struct fake_endpoint *endpoint);

/* Takes no more calls on the connections that there are. */
void fake_endpoint_drain(struct fake_endpoint *endpoint);

/* When each call has been finished. Runs the loop for what is left of them. */
void fake_endpoint_stop(struct fake_endpoint *endpoint);

#endif
