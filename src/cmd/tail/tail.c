/* See tail.h.
 *
 *     a change ─► a line ─► the sink ──(nothing more is here, or much has gathered)──► flushed
 *                                        └──► once a second: where the feed stands, to --token-file
 *
 * Invariant: the place that is kept is one that the feed had when all before it was flushed. So who
 * goes on there has each change at least once, whatever was killed. There is one before the sink
 * has the first change.
 *
 * SIGINT and SIGTERM are blocked, looked for between changes, and stay pending. */
#include "cmd/tail/tail.h"

#include "client/change_feed.h"
#include "cmd/command.h"
#include "cmd/tail/tail_options.h"
#include "cmd/tail/tail_place.h"
#include "cmd/tail/tail_sinks.h"
#include "cmd/tail/tail_status.h"
#include "row/regex.h"
#include "transfer/change_json.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    WAIT_US = 100 * 1000,         /* until signals are looked for again */
    GATHERED_MOST = 1000,         /* changes that wait to be flushed */
    GATHERED_BYTES = 4 << 20,     /* of them */
    KEEP_EVERY_US = 1000 * 1000,  /* where the feed stands */
    TROUBLE_US = 5 * 1000 * 1000, /* after which what fails is told */
};

struct tail {
    const struct tail_options *options;
    struct client_session *session;
    struct buffer table; /* its full name, and a NUL */
    struct change_feed *feed;
    struct change_sink sink;
    struct tail_place place;
    struct regex *families; /* NULL: all */
    struct buffer line;
    size_t gathered; /* changes that are not flushed */
    size_t gathered_bytes;
    bool has_place;          /* one was kept, by a former run or this one */
    bool is_ahead;           /* the feed: the sink has not taken its last change */
    int64_t kept_us;         /* when: clock_steady_us */
    int64_t told_trouble_us; /* the trouble that was told: when it began */
    struct tail_status status;
};

static int64_t steady_us(void)
{
    return clock_steady_us(clock_system());
}

/* --- signals --- */

static status block_signals(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    signal(SIGPIPE, SIG_IGN); /* a write says so */
    if (pthread_sigmask(SIG_BLOCK, &signals, NULL) != 0)
        return status_make(STATUS_INTERNAL, "cannot block signals");
    return status_ok();
}

/* Of a signal that is left where it is: whoever waits for the sink after the last change has to
 * hear of it too. */
static bool is_told_to_stop(void)
{
    sigset_t pending;
    return sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1);
}

/* --- beginning --- */

static status open_feed(struct tail *tail, bytes state)
{
    const struct tail_options *o = tail->options;
    const struct client_session_options session = {.target = o->target};
    TRY(client_session_create(&session, &tail->session));
    buffer_append_format(&tail->table, "%s/tables/%s%c", client_session_instance(tail->session),
                         o->table, 0);
    if (tail->table.failed)
        return status_out_of_memory();
    const struct change_feed_options feed = {.session = tail->session,
                                             .table = (const char *)tail->table.data,
                                             .app_profile = o->target.app_profile,
                                             .from_us = o->from_us,
                                             .end_us = o->until_us,
                                             .state = state};
    return change_feed_create(&feed, &tail->feed);
}

/* Where the file says. */
static status go_on(struct tail *tail)
{
    struct buffer state = {0};
    status s = tail_place_open(tail->options, &tail->place, &state);
    tail->has_place = state.size > 0;
    if (status_is_ok(s))
        s = open_feed(tail, buffer_bytes(&state));
    buffer_free(&state);
    return s;
}

static status begin(struct tail *tail)
{
    const struct tail_options *o = tail->options;
    TRY(block_signals());
    TRY(go_on(tail));
    tail->kept_us = steady_us();
    tail_status_begin(&tail->status, o, tail->kept_us);
    return tail_sink_open(o, is_told_to_stop, &tail->sink);
}

static void end(struct tail *tail)
{
    change_sink_destroy(&tail->sink);
    change_feed_destroy(tail->feed);
    client_session_destroy(tail->session);
    tail_place_close(&tail->place);
    regex_destroy(tail->families);
    buffer_free(&tail->table);
    buffer_free(&tail->line);
}

/* --- the place --- */

/* What was flushed is all that the feed has given. */
static status keep_place(struct tail *tail)
{
    if (change_feed_start_us(tail->feed) == 0)
        return status_ok();
    tail->kept_us = steady_us();
    tail->has_place = true;
    return tail_place_keep(&tail->place, tail->feed);
}

/* Before the sink has a change. Whoever is started again would begin at a later time. */
static status keep_start(struct tail *tail)
{
    if (tail->has_place)
        return status_ok();
    TRY(tail_place_keep_start(&tail->place, tail->feed));
    tail->has_place = true;
    return status_ok();
}

static status flush(struct tail *tail)
{
    if (tail->gathered > 0)
        TRY(tail->sink.flush(tail->sink.object));
    tail->gathered = tail->gathered_bytes = 0;
    return status_ok();
}

/* --- changes --- */

static status take(struct tail *tail, const struct feed_change *change)
{
    const struct tail_options *o = tail->options;
    if (change->is_collection && !o->with_gc)
        return status_ok();
    if (o->prefix != NULL && !bytes_start_with(change->row_key, bytes_of(o->prefix)))
        return status_ok();
    buffer_clear(&tail->line);
    change_json_write(change, tail->families, &tail->line);
    if (tail->line.failed)
        return status_out_of_memory();
    if (tail->line.size == 0)
        return status_ok();
    TRY(keep_start(tail));
    tail->gathered++;
    tail->gathered_bytes += tail->line.size;
    tail->status.changes++;
    tail->status.bytes += tail->line.size;
    return tail->sink.add(tail->sink.object, change, buffer_bytes(&tail->line));
}

static status give(struct tail *tail, const struct feed_change *change)
{
    status s = take(tail, change);
    tail->is_ahead = !status_is_ok(s);
    return s;
}

static bool has_gathered_enough(const struct tail *tail)
{
    return tail->gathered >= GATHERED_MOST || tail->gathered_bytes >= GATHERED_BYTES;
}

/* Once of each trouble: whoever has a wrong port or name should not wait a minute to hear of it. */
static void tell_trouble(struct tail *tail, int64_t now_us)
{
    int64_t since_us;
    const char *words = change_feed_trouble(tail->feed, &since_us);
    if (words == NULL || now_us - since_us < TROUBLE_US || tail->told_trouble_us == since_us)
        return;
    tail->told_trouble_us = since_us;
    fprintf(stderr, "trestle tail: %s; tried again for a minute\n", words);
}

static status tell_and_keep(struct tail *tail)
{
    int64_t now_us = steady_us();
    tell_trouble(tail, now_us);
    TRY(tail_status_tell(&tail->status, change_feed_watermark_us(tail->feed),
                         change_feed_partitions(tail->feed), now_us));
    if (tail->gathered > 0 || now_us - tail->kept_us < KEEP_EVERY_US)
        return status_ok();
    return keep_place(tail);
}

/* One change, or a while without one. What has gathered is flushed when nothing more is here. */
static status step(struct tail *tail, bool *is_end)
{
    const struct feed_change *change;
    TRY(change_feed_next(tail->feed, tail->gathered > 0 ? 0 : WAIT_US, &change, is_end));
    if (change != NULL)
        TRY(give(tail, change));
    if (change == NULL || has_gathered_enough(tail))
        TRY(flush(tail));
    if (change == NULL && tail->sink.tend != NULL)
        TRY(tail->sink.tend(tail->sink.object));
    return change == NULL || tail->gathered == 0 ? tell_and_keep(tail) : status_ok();
}

/* A reader that is gone wants no more. */
static status as_quiet_end(status s)
{
    if (s.code != STATUS_CANCELLED)
        return s;
    status_free(s);
    return status_ok();
}

/* What was given before a failure is in order, and need not come again; but the place may not be
 * behind a change that was not taken. What was refused at once leaves no place: another --from
 * would not be heeded. */
static bool keeps_last_place(const struct tail *tail, bool has_failed)
{
    return !has_failed || (tail->has_place && !tail->is_ahead);
}

static status run(struct tail *tail)
{
    bool is_end = false;
    status s = begin(tail);
    while (status_is_ok(s) && !is_end && !is_told_to_stop())
        s = step(tail, &is_end);
    if (s.code == STATUS_CANCELLED || tail->sink.object == NULL)
        return as_quiet_end(s);
    status last = flush(tail);
    if (status_is_ok(last) && keeps_last_place(tail, !status_is_ok(s)))
        last = keep_place(tail);
    if (status_is_ok(last))
        last = tail_status_end(&tail->status, change_feed_watermark_us(tail->feed),
                               change_feed_partitions(tail->feed));
    if (status_is_ok(s))
        return as_quiet_end(last);
    status_free(last);
    return s;
}

/* What can be said of the options before anything is asked. */
static status prepare(struct tail *tail)
{
    const struct tail_options *o = tail->options;
    TRY(tail_sink_check(o));
    if (o->families == NULL)
        return status_ok();
    return regex_compile(bytes_of(o->families), &tail->families);
}

int tail_command(const char *const *arguments)
{
    struct tail_options options;
    struct tail tail = {.options = &options};
    if (command_asks_for(arguments, "--help"))
        return command_print(tail_options_write_help);
    status s = tail_options_read(arguments, clock_wall_us(clock_system()), &options);
    if (status_is_ok(s))
        s = prepare(&tail);
    if (!status_is_ok(s)) {
        end(&tail);
        return command_refuse("tail", s);
    }
    s = run(&tail);
    end(&tail);
    return command_end("tail", s, true);
}
