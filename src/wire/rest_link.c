/* A connection inside the process: a gRPC client and a gRPC server's connection, both without I/O,
 * that hand each other their bytes at the end of the loop's turn. See rest_private.h. */
#include "wire/rest_private.h"

#include <stdlib.h>

enum { VECTORS = 16, ROUNDS_A_TURN = 16 };

struct rest_link {
    struct loop *loop;
    struct grpc_client *client;
    struct grpc_connection *server;
    struct task pump;
    bool is_due;  /* `pump` is on the loop's list */
    bool is_done; /* to be freed when that has run */
};

static void output_ready(void *context)
{
    struct rest_link *link = context;
    if (link->is_due)
        return;
    link->is_due = true;
    loop_post(link->loop, &link->pump);
}

/* Each moves what there is in one direction; false if there is nothing. */
static bool carry_requests(struct rest_link *link)
{
    struct iovec vectors[VECTORS];
    size_t size = 0, count = grpc_client_output(link->client, vectors, VECTORS);
    for (size_t i = 0; i < count; i++) {
        grpc_connection_receive(link->server, bytes_make(vectors[i].iov_base, vectors[i].iov_len));
        size += vectors[i].iov_len;
    }
    grpc_client_sent(link->client, size);
    return count > 0;
}

static bool carry_answers(struct rest_link *link)
{
    struct iovec vectors[VECTORS];
    size_t size = 0, count = grpc_connection_output(link->server, vectors, VECTORS);
    for (size_t i = 0; i < count; i++) {
        grpc_client_receive(link->client, bytes_make(vectors[i].iov_base, vectors[i].iov_len));
        size += vectors[i].iov_len;
    }
    grpc_connection_sent(link->server, size);
    return count > 0;
}

static void pump(struct task *task)
{
    struct rest_link *link = LIST_ENTRY(task, struct rest_link, pump);
    if (link->is_done) {
        free(link);
        return;
    }
    bool moved = true;
    for (int round = 0; moved && round < ROUNDS_A_TURN; round++) {
        moved = carry_requests(link);
        moved |= carry_answers(link);
    }
    link->is_due = false;
    if (moved)
        output_ready(link);
}

status rest_link_create(struct grpc_server *grpc, void *peer, struct loop *loop,
                        struct grpc_spares *spares, struct rest_link **out)
{
    *out = NULL;
    struct rest_link *link = calloc(1, sizeof *link);
    if (link == NULL)
        return status_out_of_memory();
    link->loop = loop;
    link->pump.run = pump;
    status s = grpc_connection_create(grpc, loop, spares, link, output_ready, &link->server);
    if (status_is_ok(s))
        grpc_connection_want_small_messages(link->server);
    if (status_is_ok(s) && peer != NULL)
        grpc_connection_set_peer(link->server, peer);
    if (status_is_ok(s))
        s = grpc_client_create(loop, "localhost", link, output_ready, &link->client);
    if (!status_is_ok(s)) {
        rest_link_destroy(link);
        return s;
    }
    output_ready(link); /* both have settings to send */
    *out = link;
    return s;
}

void rest_link_destroy(struct rest_link *link)
{
    if (link == NULL)
        return;
    grpc_client_destroy(link->client);
    grpc_connection_destroy(link->server);
    if (link->is_due)
        link->is_done = true;
    else
        free(link);
}

struct grpc_client *rest_link_client(struct rest_link *link)
{
    return link->client;
}

struct grpc_connection *rest_link_connection(struct rest_link *link)
{
    return link->server;
}

bool rest_link_is_broken(const struct rest_link *link)
{
    return grpc_client_is_finished(link->client) || grpc_connection_is_finished(link->server);
}
