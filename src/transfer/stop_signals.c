/* See stop_signals.h. */
#include "transfer/stop_signals.h"

#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

static void signal_came(struct watch *watch, uint32_t events)
{
    struct stop_signals *signals = LIST_ENTRY(watch, struct stop_signals, watch);
    struct signalfd_siginfo info;
    (void)events;
    if (read(watch->fd, &info, sizeof info) == sizeof info)
        signals->stop(signals->context);
}

status stop_signals_watch(struct stop_signals *signals, struct loop *loop,
                          void (*stop)(void *context), void *context)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    *signals = (struct stop_signals){.stop = stop, .context = context};
    pthread_sigmask(SIG_BLOCK, &ends, &signals->old_mask);
    signals->watch.ready = signal_came;
    signals->watch.fd = signalfd(-1, &ends, SFD_NONBLOCK | SFD_CLOEXEC);
    status s = signals->watch.fd < 0 ? status_from_errno(errno, "cannot wait for signals")
                                     : loop_watch(loop, &signals->watch, EPOLLIN);
    if (status_is_ok(s)) {
        signals->loop = loop;
        return s;
    }
    if (signals->watch.fd >= 0)
        close(signals->watch.fd);
    pthread_sigmask(SIG_SETMASK, &signals->old_mask, NULL);
    return s;
}

void stop_signals_end(struct stop_signals *signals)
{
    if (signals->loop == NULL)
        return;
    loop_unwatch(signals->loop, &signals->watch);
    close(signals->watch.fd);
    signals->loop = NULL;
    pthread_sigmask(SIG_SETMASK, &signals->old_mask, NULL);
}
