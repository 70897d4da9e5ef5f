/* See bridge.h.
 *
 * Invariants
 *  1. A flow reads only when its buffer is empty, and writes only when it is not.
 *  2. A socket that nothing is wanted of is not watched at all: epoll reports a hang-up even where
 *     no event is watched for, and would do so without end while the other side is slow. */
#include "server/bridge.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BUFFER_SIZE = 16 << 10,
    ROUNDS_A_TURN = 16, /* then other connections have their turn */
    ANSWER_US = 10 * 1000 * 1000,
};

/* One direction. */
struct flow {
    size_t start; /* what waits is from here … */
    size_t end;   /* … up to here */
    bool ended;   /* its source has no more */
    uint8_t buffer[BUFFER_SIZE];
};

struct bridge {
    uint32_t magic;
    struct loop *loop;
    struct stream *stream;
    bridge_ended *ended;
    void *context;
    struct watch client;
    struct watch local;
    uint32_t client_interest; /* 0: not watched */
    uint32_t local_interest;
    bool told_end;    /* the server knows that the client will send no more … */
    struct timer end; /* … and has until then to answer: not every server gives up on its own */
    struct flow up;   /* client to server */
    struct flow down; /* server to client */
};

#define BRIDGE_MAGIC 0x42524447u

/* --- the two ends, in one shape --- */

static enum stream_result local_result(ssize_t count, size_t *done)
{
    *done = count > 0 ? (size_t)count : 0;
    if (count > 0)
        return STREAM_OK;
    if (count == 0)
        return STREAM_ENDED;
    return errno == EAGAIN || errno == EINTR ? STREAM_BLOCKED : STREAM_FAILED;
}

/* A server that closes its end before it has read all resets the socket, behind its last word. */
static enum stream_result read_local(struct bridge *bridge, void *to, size_t size, size_t *done)
{
    enum stream_result result = local_result(recv(bridge->local.fd, to, size, 0), done);
    return result == STREAM_FAILED ? STREAM_ENDED : result;
}

/* What a server that has closed its end does not read any more is dropped: it answers a request
 * whose body it does not want before that has come. */
static enum stream_result write_local(struct bridge *bridge, uint8_t *from, size_t size,
                                      size_t *done)
{
    enum stream_result result =
        local_result(send(bridge->local.fd, from, size, MSG_NOSIGNAL), done);
    if (result != STREAM_FAILED)
        return result;
    *done = size;
    return STREAM_OK;
}

static enum stream_result read_client(struct bridge *bridge, void *to, size_t size, size_t *done)
{
    return stream_read(bridge->stream, to, size, done);
}

static enum stream_result write_client(struct bridge *bridge, uint8_t *from, size_t size,
                                       size_t *done)
{
    struct iovec part = {.iov_base = from, .iov_len = size};
    return stream_write(bridge->stream, &part, 1, done);
}

/* --- moving --- */

typedef enum stream_result read_end(struct bridge *bridge, void *to, size_t size, size_t *done);
typedef enum stream_result write_end(struct bridge *bridge, uint8_t *from, size_t size,
                                     size_t *done);

static bool has_waiting(const struct flow *flow)
{
    return flow->start < flow->end;
}

/* One step of a flow. `*moved` is set if it got anywhere; false if the bridge cannot go on. */
static bool step(struct bridge *bridge, struct flow *flow, read_end *read, write_end *write,
                 bool *moved)
{
    size_t done;
    if (!has_waiting(flow) && !flow->ended) {
        enum stream_result result = read(bridge, flow->buffer, BUFFER_SIZE, &done);
        flow->start = 0;
        flow->end = done;
        flow->ended = result == STREAM_ENDED;
        *moved |= result == STREAM_OK;
        if (result == STREAM_FAILED)
            return false;
    }
    if (has_waiting(flow)) {
        enum stream_result result =
            write(bridge, flow->buffer + flow->start, flow->end - flow->start, &done);
        flow->start += done;
        *moved |= result == STREAM_OK;
        if (result != STREAM_OK && result != STREAM_BLOCKED)
            return false;
    }
    return true;
}

static bool tell_end(struct bridge *bridge)
{
    bridge->told_end = true;
    if (shutdown(bridge->local.fd, SHUT_WR) != 0)
        return false;
    int64_t now = clock_steady_us(loop_clock(bridge->loop));
    status s = loop_timer_set(bridge->loop, &bridge->end, now + ANSWER_US);
    bool is_set = status_is_ok(s);
    status_free(s);
    return is_set;
}

static void time_is_up(struct timer *timer)
{
    struct bridge *bridge = LIST_ENTRY(timer, struct bridge, end);
    CHECK_MAGIC(bridge, BRIDGE_MAGIC);
    bridge->ended(bridge->context, false);
}

/* The server is done, and the client has got all of it. */
static bool is_whole(const struct bridge *bridge)
{
    return bridge->down.ended && !has_waiting(&bridge->down);
}

/* Moves what can be moved; false when the bridge is broken. */
static bool pump(struct bridge *bridge)
{
    bool moved = true;
    for (int round = 0; moved && round < ROUNDS_A_TURN; round++) {
        moved = false;
        if (!step(bridge, &bridge->up, read_client, write_local, &moved) ||
            !step(bridge, &bridge->down, read_local, write_client, &moved))
            return false;
    }
    bool is_to_tell = bridge->up.ended && !has_waiting(&bridge->up) && !bridge->told_end;
    return !is_to_tell || tell_end(bridge);
}

/* --- waiting --- */

static bool watch_for(struct bridge *bridge, struct watch *watch, uint32_t *now, uint32_t wanted)
{
    status s = status_ok();
    if (wanted == *now)
        return true;
    if (wanted == 0)
        loop_unwatch(bridge->loop, watch);
    else if (*now == 0)
        s = loop_watch(bridge->loop, watch, wanted);
    else
        s = loop_watch_change(bridge->loop, watch, wanted);
    if (status_is_ok(s))
        *now = wanted;
    bool is_fine = status_is_ok(s);
    status_ignore(s);
    return is_fine;
}

static bool wait_for_more(struct bridge *bridge)
{
    const struct flow *up = &bridge->up, *down = &bridge->down;
    uint32_t client = 0, local = 0;
    if (!has_waiting(up) && !up->ended)
        client |= stream_read_interest(bridge->stream);
    if (has_waiting(down))
        client |= stream_write_interest(bridge->stream);
    if (!has_waiting(down) && !down->ended)
        local |= EPOLLIN;
    /* What TLS holds ready its socket does not tell of; the local end, which has room, comes back
     * at once. */
    if (has_waiting(up) || stream_has_pending(bridge->stream))
        local |= EPOLLOUT;
    return watch_for(bridge, &bridge->client, &bridge->client_interest, client) &&
           watch_for(bridge, &bridge->local, &bridge->local_interest, local);
}

static void go_on(struct bridge *bridge)
{
    CHECK_MAGIC(bridge, BRIDGE_MAGIC);
    bool goes_on = pump(bridge) && !is_whole(bridge) && wait_for_more(bridge);
    if (!goes_on)
        bridge->ended(bridge->context, is_whole(bridge));
}

static void client_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    go_on(LIST_ENTRY(watch, struct bridge, client));
}

static void local_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    go_on(LIST_ENTRY(watch, struct bridge, local));
}

/* --- beginning and end --- */

status bridge_create(struct loop *loop, struct stream *stream, bytes first, bridge_ended *ended,
                     void *context, int *server, struct bridge **out)
{
    *out = NULL;
    *server = -1;
    CHECK(first.size <= BRIDGE_FIRST_SIZE);
    struct bridge *bridge = malloc(sizeof *bridge);
    if (bridge == NULL)
        return status_out_of_memory();
    *bridge = (struct bridge){.magic = BRIDGE_MAGIC,
                              .loop = loop,
                              .stream = stream,
                              .ended = ended,
                              .context = context,
                              .client = {.fd = stream_socket(stream), .ready = client_ready},
                              .local = {.fd = -1, .ready = local_ready},
                              .end.run = time_is_up};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) {
        status s = status_from_errno(errno, "cannot make a socketpair");
        free(bridge);
        return s;
    }
    bridge->local.fd = ends[0];
    if (first.size > 0)
        memcpy(bridge->up.buffer, first.data, first.size);
    bridge->up.end = first.size;
    if (!wait_for_more(bridge)) {
        bridge_destroy(bridge);
        close(ends[1]);
        return status_out_of_memory();
    }
    *server = ends[1];
    *out = bridge;
    return status_ok();
}

void bridge_destroy(struct bridge *bridge)
{
    if (bridge == NULL)
        return;
    CHECK_MAGIC(bridge, BRIDGE_MAGIC);
    if (bridge->client_interest != 0)
        loop_unwatch(bridge->loop, &bridge->client);
    if (bridge->local_interest != 0)
        loop_unwatch(bridge->loop, &bridge->local);
    loop_timer_clear(bridge->loop, &bridge->end);
    close(bridge->local.fd);
    bridge->magic = 0;
    free(bridge);
}
