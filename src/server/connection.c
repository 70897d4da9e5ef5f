/* See connection.h.
 *
 * Invariants
 *  1. A connection is in its group's list from `start` to `close_connection`, and its timer is set
 *     as long as it does not speak HTTP/1.1 (whose server has timeouts of its own).
 *  2. The object outlives its closing while its deferred flush is on the loop's list.
 *  3. A plain socket that speaks HTTP/2 is watched for edges (watched for its level, epoll would
 *     look at it once more after each request, to find nothing). So who leaves bytes unread in it,
 *     or its end, has it told again. */
#include "server/connection.h"

#include "base/check.h"
#include "base/limits.h"
#include "server/bridge.h"
#include "wire/sniff.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    READS_A_TURN = 4,      /* of CONNECTION_INPUT_SIZE each; then others have their turn */
    VECTORS = 64,          /* a writev takes so many */
    WRITES_A_TURN = 16,    /* likewise */
    RETRY_US = 100 * 1000, /* while waiting for a place */
    LINGER_US = 2 * 1000 * 1000,
    HANDSHAKE_US = LIMIT_HANDSHAKE_SECONDS * 1000 * 1000,
    RESERVED_IDLE_US = LIMIT_RESERVED_IDLE_SECONDS * 1000 * 1000,
};

enum state {
    SHAKING_HANDS,
    SNIFFING,
    WAITING, /* for a place at the HTTP/1.1 server */
    SPEAKING_HTTP2,
    SPEAKING_HTTP1,
    LINGERING,
    CLOSED,
};

struct connection {
    uint32_t magic;
    enum state state;
    struct connection_group *group;
    struct connection *next;
    struct connection *previous;
    struct stream *stream;
    struct grpc_connection *grpc;    /* while speaking HTTP/2 */
    struct access_peer *access_peer; /* beside `grpc` */
    struct bridge *bridge;           /* while speaking HTTP/1.1 */
    struct watch watch;
    uint32_t interest;  /* what `watch` is set to; 0: not watched */
    bool write_blocked; /* the socket took less than all: EPOLLOUT goes on */
    bool flush_deferred;
    bool told_to_leave; /* for being idle */
    bool is_reserved;
    struct task task;   /* first to start, then to flush */
    struct timer timer; /* the end of the handshake, or of being idle */
    int64_t begun_us;
    int64_t active_us; /* when bytes last came */
    int socket;        /* until `stream` has it */
    struct address peer;
    uint8_t first[SNIFF_SIZE]; /* what sniffing has read */
    size_t first_size;
};

#define CONNECTION_MAGIC 0x434f4e4eu

/* --- the group's list --- */

static void enlist(struct connection *connection)
{
    struct connection_group *group = connection->group;
    connection->next = group->first;
    if (group->first != NULL)
        group->first->previous = connection;
    group->first = connection;
}

static void delist(struct connection *connection)
{
    if (connection->previous == NULL)
        connection->group->first = connection->next;
    else
        connection->previous->next = connection->next;
    if (connection->next != NULL)
        connection->next->previous = connection->previous;
}

/* --- closing --- */

static void unwatch(struct connection *connection)
{
    if (connection->interest != 0)
        loop_unwatch(connection->group->loop, &connection->watch);
    connection->interest = 0;
}

static void free_connection(struct connection *connection)
{
    connection->magic = 0;
    free(connection);
}

static void close_connection(struct connection *connection)
{
    struct connection_group *group = connection->group;
    connection->state = CLOSED;
    loop_timer_clear(group->loop, &connection->timer);
    bridge_destroy(connection->bridge);
    grpc_connection_destroy(connection->grpc);
    access_peer_destroy(connection->access_peer);
    unwatch(connection);
    stream_close(connection->stream);
    delist(connection);
    metrics_add(group->metrics, METRIC_connections, -1);
    atomic_fetch_sub(group->open, 1);
    if (!connection->flush_deferred)
        free_connection(connection);
}

static void log_failure(struct connection *connection, const char *what, status why)
{
    char peer[ADDRESS_TEXT_SIZE];
    address_format(&connection->peer, peer);
    log_debug(connection->group->log, what, LOG_STR("peer", peer),
              LOG_STR("error", status_message(why)));
    status_free(why);
}

/* Whether the log may have a line about a refused handshake; else it is counted. */
static bool may_tell_refusal(struct connection_group *group, int64_t now_us)
{
    int64_t second = now_us / 1000000;
    if (second != group->refusal_second)
        group->refusals = 0;
    group->refusal_second = second;
    bool may = group->refusals++ < LIMIT_TLS_REFUSALS_A_SECOND;
    group->untold += !may;
    return may;
}

/* A client that only went is not logged: probes do that. */
static void log_refusal(struct connection *connection, status why)
{
    struct connection_group *group = connection->group;
    char peer[ADDRESS_TEXT_SIZE];
    int64_t now = clock_steady_us(loop_clock(group->loop));
    if (!stream_is_refused(connection->stream) || !may_tell_refusal(group, now))
        return;
    address_format(&connection->peer, peer);
    log_warn(group->log, "TLS handshake failed", LOG_STR("peer", peer),
             LOG_STR("error", status_message(why)), LOG_INT("untold", group->untold));
    group->untold = 0;
}

/* Closes for want of memory, or for what the status says. */
static void abandon(struct connection *connection, status why)
{
    log_failure(connection, "connection abandoned", why);
    close_connection(connection);
}

/* --- waiting --- */

/* Closes the connection if there is no memory for it: to be called last. */
static void wait_for(struct connection *connection, uint32_t events)
{
    if (events == connection->interest)
        return;
    struct loop *loop = connection->group->loop;
    status s = connection->interest == 0 ? loop_watch(loop, &connection->watch, events)
                                         : loop_watch_change(loop, &connection->watch, events);
    if (!status_is_ok(s)) {
        abandon(connection, s);
        return;
    }
    connection->interest = events;
}

static int64_t now_us(const struct connection *connection)
{
    return clock_steady_us(loop_clock(connection->group->loop));
}

/* The timer is set from the start, so that moving it cannot fail. */
static void set_timer(struct connection *connection, int64_t due_us)
{
    status s = loop_timer_set(connection->group->loop, &connection->timer, due_us);
    CHECK(status_is_ok(s));
}

/* Lets the client go without losing what it has not read yet: closing a socket that has unread
 * input resets the connection, and the reset may overtake our last bytes. */
static void linger(struct connection *connection)
{
    /* The timer is new to a connection that spoke HTTP/1.1, and may fail. */
    status s =
        loop_timer_set(connection->group->loop, &connection->timer, now_us(connection) + LINGER_US);
    if (!status_is_ok(s) || stream_end_writing(connection->stream) == STREAM_FAILED) {
        status_free(s);
        close_connection(connection);
        return;
    }
    connection->state = LINGERING;
    wait_for(connection, EPOLLIN);
}

static void drop_input(struct connection *connection)
{
    size_t done;
    enum stream_result result =
        stream_read(connection->stream, connection->group->input, CONNECTION_INPUT_SIZE, &done);
    if (result == STREAM_ENDED || result == STREAM_FAILED)
        close_connection(connection);
}

/* --- HTTP/2 --- */

static void defer_flush(struct connection *connection)
{
    if (connection->flush_deferred)
        return;
    connection->flush_deferred = true;
    loop_defer(connection->group->loop, &connection->task);
}

static void output_ready(void *context)
{
    struct connection *connection = context;
    if (!connection->write_blocked) /* else room in the socket leads to a flush */
        defer_flush(connection);
}

static void wait_for_http2(struct connection *connection)
{
    uint32_t events = stream_read_interest(connection->stream);
    if (connection->write_blocked)
        events |= stream_write_interest(connection->stream);
    if (connection->group->tls == NULL)
        events |= (uint32_t)EPOLLET | EPOLLRDHUP;
    wait_for(connection, events);
}

/* STREAM_ENDED: all is written; STREAM_OK: there is more, and the socket may take it. */
static enum stream_result write_output(struct connection *connection)
{
    for (int i = 0; i < WRITES_A_TURN; i++) {
        struct iovec vectors[VECTORS];
        size_t done, count = grpc_connection_output(connection->grpc, vectors, VECTORS);
        if (count == 0)
            return STREAM_ENDED;
        enum stream_result result = stream_write(connection->stream, vectors, (int)count, &done);
        if (result != STREAM_OK)
            return result;
        grpc_connection_sent(connection->grpc, done);
        metrics_add(connection->group->metrics, METRIC_sent_bytes_total, (int64_t)done);
    }
    return STREAM_OK;
}

static void flush_http2(struct connection *connection)
{
    switch (write_output(connection)) {
    case STREAM_OK:
        defer_flush(connection);
        return;
    case STREAM_ENDED:
        if (grpc_connection_is_finished(connection->grpc))
            linger(connection);
        else
            wait_for_http2(connection);
        return;
    case STREAM_BLOCKED:
        connection->write_blocked = true;
        wait_for_http2(connection);
        return;
    case STREAM_FAILED:
        close_connection(connection);
        return;
    }
}

static void flush(struct task *task)
{
    struct connection *connection = LIST_ENTRY(task, struct connection, task);
    CHECK_MAGIC(connection, CONNECTION_MAGIC);
    connection->flush_deferred = false;
    if (connection->state == CLOSED)
        free_connection(connection);
    else if (connection->state == SPEAKING_HTTP2)
        flush_http2(connection);
}

static void received(struct connection *connection, bytes input)
{
    metrics_add(connection->group->metrics, METRIC_received_bytes_total, (int64_t)input.size);
    connection->active_us = now_us(connection);
    grpc_connection_receive(connection->grpc, input);
}

enum reading {
    READ_ALL,
    READ_PART, /* there may be more, or the end behind it */
    READ_END,  /* nothing comes any more */
};

/* `has_ended`: the client has sent its last byte, which a short read does not tell. */
static enum reading read_for_a_turn(struct connection *connection, bool has_ended)
{
    struct connection_group *group = connection->group;
    for (int i = 0; i < READS_A_TURN; i++) {
        size_t done;
        enum stream_result result =
            stream_read(connection->stream, group->input, CONNECTION_INPUT_SIZE, &done);
        if (result == STREAM_ENDED || result == STREAM_FAILED)
            return READ_END;
        if (result == STREAM_BLOCKED)
            return READ_ALL;
        received(connection, bytes_make(group->input, done));
        if (group->tls == NULL && done < CONNECTION_INPUT_SIZE)
            return has_ended ? READ_PART : READ_ALL; /* saves asking */
    }
    return READ_PART;
}

static void have_told_again(struct connection *connection)
{
    if ((connection->interest & EPOLLET) == 0)
        return;
    status s = loop_watch_change(connection->group->loop, &connection->watch, connection->interest);
    CHECK(status_is_ok(s)); /* a change needs no memory */
}

static void read_http2(struct connection *connection, bool has_ended)
{
    enum reading reading = read_for_a_turn(connection, has_ended);
    if (reading == READ_END) {
        close_connection(connection);
        return;
    }
    if (reading == READ_PART)
        have_told_again(connection);
    if (grpc_connection_is_finished(connection->grpc))
        defer_flush(connection);
    wait_for_http2(connection);
}

static void http2_ready(struct connection *connection, uint32_t events)
{
    uint32_t broken = events & (EPOLLHUP | EPOLLERR);
    if (connection->write_blocked &&
        (broken || events & stream_write_interest(connection->stream))) {
        connection->write_blocked = false;
        defer_flush(connection);
    }
    if (broken || events & stream_read_interest(connection->stream))
        read_http2(connection, broken || events & EPOLLRDHUP);
}

static bool is_fellow(const struct connection *connection)
{
    const struct connection_group *group = connection->group;
    if (group->tls != NULL)
        return stream_peer_is_fellow(connection->stream);
    return group->trusts_loopback && address_is_loopback(&connection->peer);
}

static status create_http2(struct connection *connection)
{
    struct connection_group *group = connection->group;
    TRY(grpc_connection_create(group->grpc, group->loop, group->spares, connection, output_ready,
                               &connection->grpc));
    char address[ADDRESS_TEXT_SIZE];
    address_format(&connection->peer, address);
    connection->access_peer = access_peer_create(stream_peer_subject(connection->stream), address);
    if (connection->access_peer == NULL)
        return status_out_of_memory();
    access_peer_set_fellow(connection->access_peer, is_fellow(connection));
    grpc_connection_set_peer(connection->grpc, connection->access_peer);
    if (connection->is_reserved)
        grpc_connection_set_reserved(connection->grpc);
    return status_ok();
}

static int64_t idle_timeout_us(const struct connection *connection)
{
    int64_t timeout = connection->group->idle_timeout_us;
    return connection->is_reserved && timeout > RESERVED_IDLE_US ? RESERVED_IDLE_US : timeout;
}

static void begin_http2(struct connection *connection)
{
    status s = create_http2(connection);
    if (!status_is_ok(s)) {
        abandon(connection, s);
        return;
    }
    connection->state = SPEAKING_HTTP2;
    connection->active_us = now_us(connection);
    set_timer(connection, connection->active_us + idle_timeout_us(connection));
    defer_flush(connection); /* there are settings to send */
    if (connection->first_size > 0)
        received(connection, bytes_make(connection->first, connection->first_size));
    read_http2(connection, false); /* its end, if it is there, will be told */
}

/* --- HTTP/1.1 --- */

/* A stopping server does not linger: it closes the connection at once. */
static void end_http1(void *context, bool is_whole)
{
    struct connection *connection = context;
    bridge_destroy(connection->bridge);
    connection->bridge = NULL;
    if (is_whole && !connection->group->draining)
        linger(connection);
    else
        close_connection(connection);
}

static status enter_http1(struct connection *connection)
{
    struct connection_group *group = connection->group;
    int socket;
    TRY(bridge_create(group->loop, connection->stream,
                      bytes_make(connection->first, connection->first_size), end_http1, connection,
                      &socket, &connection->bridge));
    return http1_server_take(group->http1, socket, &connection->peer,
                             stream_peer_subject(connection->stream));
}

/* There are few places, and they may all be taken: then it tries again for a while. */
static void begin_http1(struct connection *connection)
{
    unwatch(connection);
    status s = enter_http1(connection);
    if (status_is_ok(s)) {
        connection->state = SPEAKING_HTTP1;
        loop_timer_clear(connection->group->loop, &connection->timer);
        return;
    }
    bridge_destroy(connection->bridge);
    connection->bridge = NULL;
    int64_t now = now_us(connection);
    if (now >= connection->begun_us + HANDSHAKE_US) {
        abandon(connection, s);
        return;
    }
    status_free(s);
    connection->state = WAITING;
    set_timer(connection, now + RETRY_US);
}

/* --- which of them --- */

static void find_protocol(struct connection *connection)
{
    size_t done;
    enum stream_result result =
        stream_read(connection->stream, connection->first + connection->first_size,
                    SNIFF_SIZE - connection->first_size, &done);
    if (result == STREAM_ENDED || result == STREAM_FAILED) {
        close_connection(connection);
        return;
    }
    connection->first_size += done;
    switch (sniff(bytes_make(connection->first, connection->first_size))) {
    case SNIFFED_NOTHING:
        wait_for(connection, stream_read_interest(connection->stream));
        return;
    case SNIFFED_HTTP2:
        begin_http2(connection);
        return;
    case SNIFFED_HTTP1:
        begin_http1(connection);
        return;
    case SNIFFED_NEITHER:
        linger(connection);
        return;
    }
}

static void fail_handshake(struct connection *connection)
{
    status why = stream_failure(connection->stream);
    metrics_add(connection->group->metrics, METRIC_tls_failures_total, 1);
    log_refusal(connection, why);
    abandon(connection, why);
}

static void shake_hands(struct connection *connection)
{
    switch (stream_handshake(connection->stream)) {
    case STREAM_BLOCKED:
        wait_for(connection, stream_read_interest(connection->stream));
        return;
    case STREAM_OK:
        break;
    default:
        fail_handshake(connection);
        return;
    }
    const char *protocol = stream_protocol(connection->stream);
    if (strcmp(protocol, "h2") == 0) {
        begin_http2(connection);
    } else if (strcmp(protocol, "http/1.1") == 0) {
        begin_http1(connection);
    } else {
        connection->state = SNIFFING;
        find_protocol(connection);
    }
}

static void ready(struct watch *watch, uint32_t events)
{
    struct connection *connection = LIST_ENTRY(watch, struct connection, watch);
    CHECK_MAGIC(connection, CONNECTION_MAGIC);
    switch (connection->state) {
    case SHAKING_HANDS:
        shake_hands(connection);
        return;
    case SNIFFING:
        find_protocol(connection);
        return;
    case SPEAKING_HTTP2:
        http2_ready(connection, events);
        return;
    case LINGERING:
        drop_input(connection);
        return;
    case WAITING:        /* not watched */
    case SPEAKING_HTTP1: /* the bridge watches */
    case CLOSED:
        CHECK(false);
    }
}

/* --- time --- */

/* The timer of an idle connection is not moved with each byte that comes, but when it runs out. */
static void check_idle(struct connection *connection)
{
    int64_t now = now_us(connection), timeout = idle_timeout_us(connection);
    if (now - connection->active_us < timeout) {
        set_timer(connection, connection->active_us + timeout);
    } else if (!grpc_connection_is_idle(connection->grpc)) {
        set_timer(connection, now + timeout);
    } else {
        connection->told_to_leave = true;
        set_timer(connection, now + HANDSHAKE_US);
        grpc_connection_drain(connection->grpc);
    }
}

static void time_is_up(struct timer *timer)
{
    struct connection *connection = LIST_ENTRY(timer, struct connection, timer);
    if (connection->state == SPEAKING_HTTP2 && !connection->told_to_leave)
        check_idle(connection);
    else if (connection->state == WAITING)
        begin_http1(connection);
    else
        close_connection(connection);
}

/* --- beginning --- */

static void refuse(struct connection_group *group, int socket)
{
    close(socket);
    atomic_fetch_sub(group->open, 1);
}

/* Starts the connection; on the group's loop from here on. */
static void start(struct task *task)
{
    struct connection *connection = LIST_ENTRY(task, struct connection, task);
    struct connection_group *group = connection->group;
    connection->begun_us = now_us(connection);
    status s = group->draining ? status_make(STATUS_UNAVAILABLE, "the server stops")
                               : loop_timer_set(group->loop, &connection->timer,
                                                connection->begun_us + HANDSHAKE_US);
    if (!status_is_ok(s)) {
        status_free(s);
        refuse(group, connection->socket);
        free_connection(connection);
        return;
    }
    s = stream_accepted(connection->socket, group->tls, &connection->stream);
    if (!status_is_ok(s)) { /* it has closed the socket */
        status_free(s);
        loop_timer_clear(group->loop, &connection->timer);
        atomic_fetch_sub(group->open, 1);
        free_connection(connection);
        return;
    }
    connection->task.run = flush;
    connection->watch = (struct watch){.fd = connection->socket, .ready = ready};
    metrics_add(group->metrics, METRIC_connections, 1);
    enlist(connection);
    shake_hands(connection);
}

void connection_begin(struct connection_group *group, int socket, const struct address *peer,
                      bool is_reserved)
{
    struct connection *connection = malloc(sizeof *connection);
    atomic_fetch_add(group->open, 1);
    if (connection == NULL) {
        refuse(group, socket);
        return;
    }
    *connection = (struct connection){.magic = CONNECTION_MAGIC,
                                      .state = SHAKING_HANDS,
                                      .group = group,
                                      .task.run = start,
                                      .timer.run = time_is_up,
                                      .socket = socket,
                                      .is_reserved = is_reserved,
                                      .peer = *peer};
    loop_post(group->loop, &connection->task);
}

/* --- looking --- */

void connection_group_visit(const struct connection_group *group, void *context,
                            void (*each)(void *context, struct grpc_connection *connection))
{
    for (const struct connection *connection = group->first; connection != NULL;
         connection = connection->next)
        if (connection->state == SPEAKING_HTTP2)
            each(context, connection->grpc);
}

/* --- the end of all --- */

void connection_group_drain(struct connection_group *group)
{
    group->draining = true;
    struct connection *next;
    for (struct connection *connection = group->first; connection != NULL; connection = next) {
        next = connection->next;
        if (connection->state == SPEAKING_HTTP2)
            grpc_connection_drain(connection->grpc);
        else if (connection->state != SPEAKING_HTTP1 && connection->state != LINGERING)
            close_connection(connection);
    }
}

void connection_group_close(struct connection_group *group)
{
    group->draining = true;
    struct connection *next;
    for (struct connection *connection = group->first; connection != NULL; connection = next) {
        next = connection->next;
        close_connection(connection);
    }
}
