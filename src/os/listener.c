/* See listener.h. */
#include "os/listener.h"

#include "base/check.h"
#include "base/limits.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { PAUSE_US = 100 * 1000 };

struct listener {
    uint32_t magic;
    struct loop *loop;
    struct watch watch;
    /* Always set, at the end of time while nothing is wrong: moving it needs no memory, which may
     * be what is short. */
    struct timer pause;
    struct address address;
    listener_accepted *accepted;
    void *context;
};

#define LISTENER_MAGIC 0x4c53544eu

static void set_pause(struct listener *listener, int64_t due_us)
{
    status s = loop_timer_set(listener->loop, &listener->pause, due_us);
    CHECK(status_is_ok(s));
}

static void watch_for(struct listener *listener, uint32_t events)
{
    status s = loop_watch_change(listener->loop, &listener->watch, events);
    CHECK(status_is_ok(s)); /* a change needs no memory */
}

static void end_pause(struct timer *timer)
{
    struct listener *listener = LIST_ENTRY(timer, struct listener, pause);
    set_pause(listener, INT64_MAX); /* the slot that just became free is there */
    watch_for(listener, EPOLLIN);
}

static void begin_pause(struct listener *listener)
{
    watch_for(listener, 0);
    set_pause(listener, clock_steady_us(loop_clock(listener->loop)) + PAUSE_US);
}

/* Whether accept(2) failed for want of something that others may give back. Other errors are those
 * of one connection, which is gone. */
static bool is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

static void accept_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    struct listener *listener = LIST_ENTRY(watch, struct listener, watch);
    for (int i = 0; i < LIMIT_ACCEPTS_A_TURN; i++) {
        struct address peer = {.size = sizeof peer.storage};
        int fd = accept4(watch->fd, (struct sockaddr *)&peer.storage, &peer.size,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && errno == EAGAIN)
            return;
        if (fd < 0 && is_shortage(errno)) {
            begin_pause(listener);
            return;
        }
        if (fd < 0)
            continue;
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* only speed depends on it */
        listener->accepted(listener->context, fd, &peer);
    }
}

static status bind_to(int fd, const struct address *address)
{
    char text[ADDRESS_TEXT_SIZE];
    address_format(address, text);
    int on = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0)
        return status_from_errno(errno, "cannot prepare a socket for %s", text);
    if (bind(fd, (const struct sockaddr *)&address->storage, address->size) == 0)
        return status_ok();
    if (errno == EADDRINUSE)
        return status_make(STATUS_ALREADY_EXISTS, "cannot bind %s: %s", text,
                           strerrordesc_np(errno));
    return status_from_errno(errno, "cannot bind %s", text);
}

static status bind_and_listen(int fd, const struct address *address)
{
    char text[ADDRESS_TEXT_SIZE];
    address_format(address, text);
    TRY(bind_to(fd, address));
    if (listen(fd, SOMAXCONN) != 0)
        return status_from_errno(errno, "cannot listen on %s", text);
    return status_ok();
}

static status start(struct listener *listener)
{
    struct address *bound = &listener->address;
    TRY(bind_and_listen(listener->watch.fd, bound));
    bound->size = sizeof bound->storage;
    if (getsockname(listener->watch.fd, (struct sockaddr *)&bound->storage, &bound->size) != 0)
        return status_from_errno(errno, "cannot ask for a socket's address");
    TRY(loop_timer_set(listener->loop, &listener->pause, INT64_MAX));
    status s = loop_watch(listener->loop, &listener->watch, EPOLLIN);
    if (!status_is_ok(s))
        loop_timer_clear(listener->loop, &listener->pause);
    return s;
}

status listener_open(struct loop *loop, const struct address *address, listener_accepted *accepted,
                     void *context, struct listener **out)
{
    *out = NULL;
    struct listener *listener = malloc(sizeof *listener);
    if (listener == NULL)
        return status_out_of_memory();
    *listener = (struct listener){.magic = LISTENER_MAGIC,
                                  .loop = loop,
                                  .watch.ready = accept_ready,
                                  .pause.run = end_pause,
                                  .address = *address,
                                  .accepted = accepted,
                                  .context = context};
    listener->watch.fd =
        socket(address->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener->watch.fd < 0) {
        status s = status_from_errno(errno, "cannot make a socket");
        free(listener);
        return s;
    }
    status s = start(listener);
    if (!status_is_ok(s)) {
        close(listener->watch.fd);
        free(listener);
        return s;
    }
    *out = listener;
    return status_ok();
}

status listener_check(const struct address *address)
{
    int fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return status_from_errno(errno, "cannot make a socket");
    status s = bind_to(fd, address);
    close(fd);
    return s;
}

void listener_close(struct listener *listener)
{
    if (listener == NULL)
        return;
    CHECK_MAGIC(listener, LISTENER_MAGIC);
    loop_unwatch(listener->loop, &listener->watch);
    loop_timer_clear(listener->loop, &listener->pause);
    close(listener->watch.fd);
    listener->magic = 0;
    free(listener);
}

const struct address *listener_address(const struct listener *listener)
{
    return &listener->address;
}
