/* See follow.h. */
#include "transfer/follow.h"

#include "client/change_feed.h"
#include "client/change_writer.h"
#include "transfer/mark_resolver.h"
#include "transfer/progress.h"
#include "transfer/replay.h"
#include "transfer/stop_signals.h"

enum {
    UNDER_WAY = 4,
    MEMORY_LIMIT = 1 << 30, /* for one change */
    FEED_WAIT_US = 100 * 1000,
    SETTLE_US = 1000 * 1000,           /* while there are changes */
    IDLE_SETTLE_US = 10 * 1000 * 1000, /* so that the place gets no older than what is kept */
    CHANGES_BETWEEN_LOOKS = 64,        /* at the clock */
};

struct follower {
    const struct follow_options *options;
    struct follow_position *position;
    struct clock *clock;
    struct change_feed *feed;
    struct change_writer *writer;
    struct cell_marks *marks;
    struct replay *replay;
    struct arena *arena; /* of a change */
    struct progress progress;
    struct stop_signals signals;
    bool is_stopped;
    int64_t asked_us;   /* by the wall clock: when this was asked for */
    int64_t ahead_us;   /* the most by which the source's clock was seen to be ahead */
    int64_t settled_us; /* by the steady clock */
    uint64_t settled_changes;
};

/* --- the place --- */

static status wait_for_place(struct change_feed *feed)
{
    while (change_feed_watermark_us(feed) == 0) {
        const struct feed_change *change; /* it is in the rows that are read later */
        bool is_end;
        TRY(change_feed_next(feed, FEED_WAIT_US, &change, &is_end));
    }
    return status_ok();
}

status follow_take_place(struct client_session *source, const char *table, struct buffer *out)
{
    const struct change_feed_options options = {
        .session = source, .table = table, .app_profile = client_session_app_profile(source)};
    struct change_feed *feed;
    TRY(change_feed_create(&options, &feed));
    status s = wait_for_place(feed);
    if (status_is_ok(s))
        s = change_feed_save(feed, out);
    change_feed_destroy(feed);
    return s;
}

/* --- making and ending --- */

static void stop(void *context)
{
    struct follower *follower = context;
    follower->is_stopped = true;
    loop_stop(client_session_loop(follower->options->source));
}

static status open_feed(struct follower *follower)
{
    const struct follow_options *options = follower->options;
    const struct change_feed_options feed = {.session = options->source,
                                             .table = options->source_table,
                                             .app_profile =
                                                 client_session_app_profile(options->source),
                                             .state = buffer_bytes(&follower->position->feed)};
    return change_feed_create(&feed, &follower->feed);
}

static status open_writer(struct follower *follower)
{
    struct client_session *target = follower->options->target;
    const struct change_writer_options writer = {
        .loop = client_session_loop(target),
        .endpoint = client_session_endpoint(target),
        .table = follower->options->target_table,
        .app_profile = client_session_app_profile(target),
        .under_way = UNDER_WAY,
    };
    return change_writer_create(&writer, &follower->writer);
}

static status open_replay(struct follower *follower)
{
    const struct follow_options *options = follower->options;
    const struct replay_options replay = {.source = options->source_schema,
                                          .target = options->target_schema,
                                          .start = options->start,
                                          .end = options->end,
                                          .with_collections = options->with_collections,
                                          .marks = follower->marks};
    return replay_create(&replay, &follower->replay);
}

static status open_all(struct follower *follower)
{
    follower->marks = cell_marks_create();
    follower->arena = arena_create(MEMORY_LIMIT);
    if (follower->marks == NULL || follower->arena == NULL)
        return status_out_of_memory();
    TRY(open_feed(follower));
    TRY(open_writer(follower));
    TRY(open_replay(follower));
    return stop_signals_watch(&follower->signals, client_session_loop(follower->options->source),
                              stop, follower);
}

static void close_all(struct follower *follower)
{
    stop_signals_end(&follower->signals);
    change_feed_destroy(follower->feed);
    change_writer_destroy(follower->writer);
    replay_destroy(follower->replay);
    cell_marks_destroy(follower->marks);
    arena_destroy(follower->arena);
}

/* --- settling --- */

static status resolve_marks(struct follower *follower)
{
    const struct follow_options *options = follower->options;
    const struct mark_resolver resolver = {.source = options->source,
                                           .table = options->source_table,
                                           .aggregates = replay_aggregates(follower->replay),
                                           .target = follower->writer,
                                           .marks = follower->marks};
    return marks_resolve(&resolver);
}

/* All that the feed has given so far is written, and so is its place. */
static status settle(struct follower *follower)
{
    struct follow_position *position = follower->position;
    buffer_clear(&position->feed);
    TRY(change_feed_save(follower->feed, &position->feed));
    TRY(resolve_marks(follower));
    TRY(change_writer_flush(follower->writer));
    TRY(position_store_write(follower->options->positions, position));
    follower->settled_us = clock_steady_us(follower->clock);
    follower->settled_changes = position->changes;
    return status_ok();
}

static bool must_settle(const struct follower *follower)
{
    int64_t since_us = clock_steady_us(follower->clock) - follower->settled_us;
    bool is_idle = follower->position->changes == follower->settled_changes;
    return since_us >= (is_idle ? IDLE_SETTLE_US : SETTLE_US) ||
           cell_marks_count(follower->marks) >= CELL_MARKS_MANY;
}

/* --- changes --- */

static status take_change(struct follower *follower, const struct feed_change *change)
{
    const struct row_change taken = {.row_key = change->row_key,
                                     .is_collection = change->is_collection,
                                     .mutations = change->mutations,
                                     .count = change->count};
    Bt__Mutation **written;
    size_t count;
    arena_reset(follower->arena);
    TRY(replay_take(follower->replay, &taken, follower->arena, &written, &count));
    follower->position->changes++;
    return change_writer_add(follower->writer, change->row_key, written, count);
}

/* The watermark is the source's clock of a while ago, at most: so it is never too far ahead. */
static void look_at_clocks(struct follower *follower)
{
    int64_t watermark_us = change_feed_watermark_us(follower->feed);
    int64_t now_us = clock_wall_us(follower->clock);
    if (watermark_us - now_us > follower->ahead_us)
        follower->ahead_us = watermark_us - now_us;
    if (watermark_us == 0)
        return;
    const struct follow_counts counts = {.changes = follower->position->changes,
                                         .partitions = change_feed_partitions(follower->feed),
                                         .behind_us = now_us - watermark_us};
    progress_show_following(&follower->progress, &counts);
}

static bool has_caught_up(const struct follower *follower)
{
    return follower->options->until_caught_up &&
           change_feed_watermark_us(follower->feed) >
               follower->asked_us + follower->ahead_us + FOLLOW_MARGIN_US;
}

static status step(struct follower *follower)
{
    const struct feed_change *change;
    bool is_end;
    TRY(change_feed_next(follower->feed, FEED_WAIT_US, &change, &is_end));
    if (change != NULL)
        TRY(take_change(follower, change));
    if (change != NULL && follower->position->changes % CHANGES_BETWEEN_LOOKS != 0)
        return status_ok();
    look_at_clocks(follower);
    return must_settle(follower) ? settle(follower) : status_ok();
}

static status follow(struct follower *follower)
{
    follower->settled_us = clock_steady_us(follower->clock);
    follower->settled_changes = follower->position->changes;
    progress_begin_following(&follower->progress, follower->clock, follower->position->changes,
                             follower->options->is_quiet);
    while (!follower->is_stopped && !has_caught_up(follower))
        TRY(step(follower));
    TRY(settle(follower));
    progress_end_following(&follower->progress);
    return status_ok();
}

status follow_run(const struct follow_options *options, struct follow_position *position,
                  struct follow_result *out)
{
    struct follower follower = {.options = options,
                                .position = position,
                                .clock = loop_clock(client_session_loop(options->source))};
    follower.asked_us = clock_wall_us(follower.clock);
    *out = (struct follow_result){0};
    status s = open_all(&follower);
    if (status_is_ok(s))
        s = follow(&follower);
    if (status_is_ok(s))
        *out = (struct follow_result){.changes = position->changes,
                                      .watermark_us = change_feed_watermark_us(follower.feed),
                                      .has_caught_up = has_caught_up(&follower)};
    close_all(&follower);
    return s;
}
