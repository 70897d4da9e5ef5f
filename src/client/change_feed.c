/* See change_feed.h.
 *
 *     begins ──► a call ──(it broke)──► waits ──┐        a *stream*: of each partition that is read
 *                  ▲                            │
 *                  └────────────────────────────┘
 *
 * Calls only gather messages (change_calls.h) and put their stream in line. All else is done in
 * change_feed_next: a stream that is in line gives one change and goes to the end of the line; when
 * none has one, partitions are looked after, and the loop runs. */
#include "client/change_feed.h"

#include "base/check.h"
#include "client/change_calls.h"
#include "client/change_listing.h"
#include "client/change_partitions.h"
#include "client/change_retry.h"
#include "client/change_state.h"
#include "wire/timestamps.h"

#include <stdlib.h>

#define READ_CHANGE_STREAM "/google.bigtable.v2.Bigtable/ReadChangeStream"

enum {
    AHEAD_BYTES = 64 << 20,       /* of messages that wait, of all streams */
    AHEAD_LEAST_BYTES = 64 << 10, /* of one */
    LARGE_MESSAGE = 256 << 10,    /* that may be the piece of a value */
    REQUEST_LIMIT = 64 << 20,
    HEARTBEAT_US = 1000 * 1000,
    SILENT_US = 60 * 1000 * 1000, /* without a heartbeat: the connection is dead */
    PROBE_US = 5 * 1000 * 1000,   /* that a partition waits for others */
};

struct change_stream {
    struct link link; /* in line */
    bool is_in_line;
    struct change_feed *feed;
    struct feed_partition *partition;
    struct change_call *call; /* NULL: it waits to be made again */
    struct change_assembly assembly;
    struct change_retry retry;
};

struct change_feed {
    struct change_feed_options options;
    struct change_state state;
    struct buffer routing; /* the header x-goog-request-params */
    struct change_links links;
    struct change_partitions partitions;
    struct change_listing listing; /* while there are none */
    struct list line;              /* of streams that may have something */
    struct change_stream *large;   /* the one that puts large values together; NULL: none */
    bool is_waiting;               /* the loop runs for us */
    int64_t begun_us;              /* clock_steady_us */
};

static struct loop *loop_of(const struct change_feed *feed)
{
    return client_session_loop(feed->options.session);
}

static int64_t steady_us(const struct change_feed *feed)
{
    return clock_steady_us(loop_clock(loop_of(feed)));
}

static void wake(void *context)
{
    const struct change_feed *feed = context;
    if (feed->is_waiting)
        loop_stop(loop_of(feed));
}

/* --- the line --- */

static void get_in_line(struct change_stream *stream)
{
    if (!stream->is_in_line)
        list_append(&stream->feed->line, &stream->link);
    stream->is_in_line = true;
}

static void leave_line(struct change_stream *stream)
{
    if (stream->is_in_line)
        list_remove(&stream->feed->line, &stream->link);
    stream->is_in_line = false;
}

static void stream_has_news(void *context)
{
    struct change_stream *stream = context;
    get_in_line(stream);
    wake(stream->feed);
}

/* --- a stream --- */

static void drop_call(struct change_stream *stream)
{
    change_call_destroy(stream->call);
    stream->call = NULL;
    leave_line(stream);
    change_assembly_reset(&stream->assembly);
    if (stream->feed->large == stream)
        stream->feed->large = NULL;
}

static void destroy_stream(struct change_stream *stream)
{
    if (stream == NULL)
        return;
    drop_call(stream);
    change_assembly_free(&stream->assembly);
    free(stream);
}

/* What has come of a change that is not whole comes again. */
static status fail_stream(struct change_stream *stream, status s)
{
    drop_call(stream);
    return change_retry_after(&stream->retry, s, steady_us(stream->feed));
}

static status create_stream(struct change_feed *feed, struct feed_partition *partition)
{
    struct change_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return status_out_of_memory();
    stream->feed = feed;
    stream->partition = partition;
    status s = change_assembly_init(&stream->assembly);
    if (!status_is_ok(s)) {
        free(stream);
        return s;
    }
    partition->stream = stream;
    return s;
}

/* --- its request --- */

static status make_range(bytes start, bytes end, struct arena *arena, Bt__StreamPartition **out)
{
    Bt__RowRange *range;
    PROTO_NEW(arena, *out, BT__STREAM_PARTITION__INIT);
    PROTO_NEW(arena, range, BT__ROW_RANGE__INIT);
    range->start_key_case = BT__ROW_RANGE__START_KEY_START_KEY_CLOSED;
    range->start_key_closed = proto_data(start);
    range->end_key_case = BT__ROW_RANGE__END_KEY_END_KEY_OPEN;
    range->end_key_open = proto_data(end);
    (*out)->row_range = range;
    return status_ok();
}

static status make_token(const struct partition_token *from, struct arena *arena,
                         Bt__StreamContinuationToken **out)
{
    PROTO_NEW(arena, *out, BT__STREAM_CONTINUATION_TOKEN__INIT);
    (*out)->token = from->text;
    return make_range(from->start, from->end, arena, &(*out)->partition);
}

static status fill_tokens(const struct feed_partition *partition, struct arena *arena,
                          Bt__ReadChangeStreamRequest *request)
{
    Bt__StreamContinuationTokens *tokens;
    size_t count = partition->token_count;
    PROTO_NEW(arena, tokens, BT__STREAM_CONTINUATION_TOKENS__INIT);
    tokens->tokens = arena_alloc(arena, count * sizeof(void *));
    if (tokens->tokens == NULL)
        return status_out_of_memory();
    for (; tokens->n_tokens < count; tokens->n_tokens++)
        TRY(make_token(&partition->tokens[tokens->n_tokens], arena,
                       &tokens->tokens[tokens->n_tokens]));
    request->start_from_case = BT__READ_CHANGE_STREAM_REQUEST__START_FROM_CONTINUATION_TOKENS;
    request->continuation_tokens = tokens;
    return status_ok();
}

static status fill_start(const struct change_stream *stream, struct arena *arena,
                         Bt__ReadChangeStreamRequest *request)
{
    const struct feed_partition *partition = stream->partition;
    int64_t from_us =
        partition->has_ended ? stream->feed->options.end_us : stream->feed->state.from_us;
    if (partition->token_count > 0)
        return fill_tokens(partition, arena, request);
    if (from_us == 0)
        return status_ok();
    request->start_from_case = BT__READ_CHANGE_STREAM_REQUEST__START_FROM_START_TIME;
    return timestamp_message(from_us, arena, &request->start_time);
}

static status fill_request(const struct change_stream *stream, struct arena *arena,
                           Bt__ReadChangeStreamRequest *request)
{
    const struct change_feed_options *options = &stream->feed->options;
    request->table_name = options->table;
    request->app_profile_id = options->app_profile;
    TRY(make_range(stream->partition->start, stream->partition->end, arena, &request->partition));
    TRY(fill_start(stream, arena, request));
    if (options->end_us != 0)
        TRY(timestamp_message(options->end_us, arena, &request->end_time));
    return duration_message(options->heartbeat_us, arena, &request->heartbeat_duration);
}

static struct change_call_options call_options(struct change_feed *feed)
{
    return (struct change_call_options){.session = feed->options.session,
                                        .links = &feed->links,
                                        .routing = buffer_bytes(&feed->routing)};
}

static status make_call(struct change_stream *stream)
{
    Bt__ReadChangeStreamRequest request = BT__READ_CHANGE_STREAM_REQUEST__INIT;
    struct change_call_options options = call_options(stream->feed);
    struct arena *arena = arena_create(REQUEST_LIMIT);
    if (arena == NULL)
        return status_out_of_memory();
    options.path = READ_CHANGE_STREAM;
    options.request = &request.base;
    options.context = stream;
    options.on_news = stream_has_news;
    status s = fill_request(stream, arena, &request);
    if (status_is_ok(s))
        s = change_call_create(&options, &stream->call);
    arena_destroy(arena);
    return s;
}

/* --- what a stream brings --- */

static status take_close(struct change_stream *stream)
{
    struct change_feed *feed = stream->feed;
    struct feed_partition *partition = stream->partition;
    if (feed->options.end_us == 0 && stream->assembly.close->n_continuation_tokens == 0 &&
        (stream->assembly.close->status == NULL || stream->assembly.close->status->code == 0))
        return status_make(STATUS_DATA_LOSS, "the server ended a stream that has no end");
    partition->stream = NULL; /* the partition may be gone */
    status s = change_partitions_close(&feed->partitions, partition, stream->assembly.close,
                                       steady_us(feed));
    if (status_is_ok(s)) {
        destroy_stream(stream);
        return s;
    }
    partition->stream = stream;
    return fail_stream(stream, s);
}

/* Of the server's clock, which stood at that or later when the message was made: so the start is at
 * most the time when the feed was created. Partitions that have not answered go on there, and lose
 * nothing. */
static void learn_start(struct change_feed *feed, int64_t server_us)
{
    int64_t start_us = server_us - (steady_us(feed) - feed->begun_us);
    if (feed->state.from_us == 0)
        feed->state.from_us = start_us > 0 ? start_us : 1;
}

/* The stream has come to its assembly's token. */
static status advance(struct change_stream *stream, enum change_event event)
{
    const struct change_assembly *assembly = &stream->assembly;
    int64_t commit_us = event == CHANGE_WHOLE ? assembly->change.commit_us : 0;
    TRY(feed_partition_advance(stream->partition, assembly->token, assembly->watermark_us));
    learn_start(stream->feed,
                commit_us > assembly->watermark_us ? commit_us : assembly->watermark_us);
    return status_ok();
}

/* `*change` if the event is one. A stream that is closed exists no more. */
static status take_event(struct change_stream *stream, enum change_event event,
                         const struct feed_change **change)
{
    struct change_assembly *assembly = &stream->assembly;
    stream->retry = (struct change_retry){0};
    if (event == CHANGE_CLOSE)
        return take_close(stream);
    if (event != CHANGE_PART) {
        status s = advance(stream, event);
        if (!status_is_ok(s))
            return fail_stream(stream, s);
    }
    if (event != CHANGE_WHOLE)
        return status_ok();
    assembly->change.partition = stream->partition->start;
    *change = &assembly->change;
    if (stream->feed->large == stream)
        stream->feed->large = NULL;
    return status_ok();
}

/* Large values are put together by one stream at a time. Whether the message may be taken. */
static bool has_turn(struct change_stream *stream, bytes message)
{
    struct change_feed *feed = stream->feed;
    if (message.size < LARGE_MESSAGE && stream->assembly.valued == NULL)
        return true;
    if (feed->large == NULL)
        feed->large = stream;
    return feed->large == stream;
}

/* Takes the stream's first message. */
static status take_message(struct change_stream *stream, bytes message,
                           const struct feed_change **change)
{
    enum change_event event;
    status s = change_assembly_take(&stream->assembly, message, &event);
    if (!status_is_ok(s))
        return fail_stream(stream, s);
    change_call_drop_message(stream->call);
    return take_event(stream, event, change);
}

static status take_end(struct change_stream *stream, status how)
{
    if (!status_is_ok(how))
        return fail_stream(stream, how);
    TRY(change_assembly_end(&stream->assembly));
    return fail_stream(stream,
                       status_make(STATUS_UNAVAILABLE, "the server ended a stream unasked"));
}

/* One message of the stream, which is not in line. `*waits`: it may not go on now. */
static status take_from(struct change_stream *stream, const struct feed_change **change,
                        bool *waits)
{
    bytes message;
    status how;
    *waits = false;
    if (change_call_message(stream->call, &message)) {
        *waits = !has_turn(stream, message);
        get_in_line(stream); /* for what comes behind it */
        return *waits ? status_ok() : take_message(stream, message, change);
    }
    return change_call_has_ended(stream->call, &how) ? take_end(stream, how) : status_ok();
}

/* The next change of what has come. Who waits for a turn stays in line. */
static status next_here(struct change_feed *feed, const struct feed_change **change)
{
    size_t waiting = 0, most = feed->partitions.count;
    while (*change == NULL && waiting <= most && !list_is_empty(&feed->line)) {
        struct change_stream *stream =
            LIST_ENTRY(list_take(&feed->line), struct change_stream, link);
        bool waits;
        stream->is_in_line = false;
        TRY(take_from(stream, change, &waits));
        waiting = waits ? waiting + 1 : 0;
    }
    return status_ok();
}

/* --- looking after partitions --- */

static void earlier(int64_t *due_us, int64_t us)
{
    if (us < *due_us)
        *due_us = us;
}

static int64_t silence_us(const struct change_feed *feed)
{
    int64_t heartbeats_us = 3 * feed->options.heartbeat_us;
    return heartbeats_us > SILENT_US ? heartbeats_us : SILENT_US;
}

static size_t allowance(const struct change_feed *feed)
{
    size_t part = AHEAD_BYTES / feed->partitions.count;
    return part > AHEAD_LEAST_BYTES ? part : AHEAD_LEAST_BYTES;
}

static status look_after_call(struct change_stream *stream, int64_t now_us, int64_t *due_us)
{
    int64_t silent_us = change_call_heard_us(stream->call) + silence_us(stream->feed);
    change_call_allow(stream->call, allowance(stream->feed));
    if (stream->is_in_line || now_us < silent_us) {
        earlier(due_us, silent_us > now_us ? silent_us : now_us + HEARTBEAT_US);
        return status_ok();
    }
    status s = status_make(STATUS_DEADLINE_EXCEEDED, "nothing was heard of the server for %d s",
                           (int)(silence_us(stream->feed) / 1000000));
    *due_us = now_us;
    return fail_stream(stream, s);
}

static status look_after_stream(struct change_stream *stream, int64_t now_us, int64_t *due_us)
{
    if (stream->call == NULL && stream->retry.at_us <= now_us) {
        status s = make_call(stream);
        if (!status_is_ok(s))
            TRY(fail_stream(stream, s));
    }
    if (stream->call != NULL)
        return look_after_call(stream, now_us, due_us);
    earlier(due_us, stream->retry.at_us);
    return status_ok();
}

static status look_after_partition(struct change_feed *feed, struct feed_partition *partition,
                                   int64_t now_us, int64_t *due_us)
{
    if (partition->state == PARTITION_WAITING)
        earlier(due_us, partition->waits_since_us + PROBE_US);
    if (partition->state != PARTITION_READING)
        return status_ok();
    if (partition->stream == NULL)
        TRY(create_stream(feed, partition));
    return look_after_stream(partition->stream, now_us, due_us);
}

static status list_partitions(struct change_feed *feed, int64_t now_us, int64_t *due_us)
{
    struct change_call_options options = call_options(feed);
    bool is_whole;
    options.context = feed;
    options.on_news = wake;
    TRY(change_listing_take(&feed->listing, &feed->partitions, now_us, &is_whole));
    if (is_whole)
        return status_ok();
    TRY(change_listing_begin(&feed->listing, &options, feed->options.table,
                             feed->options.app_profile, now_us));
    earlier(due_us, feed->listing.call == NULL ? feed->listing.retry.at_us : now_us + HEARTBEAT_US);
    return status_ok();
}

/* Begins what is due; `*due_us` is when there will be something to look after again. */
static status look_after(struct change_feed *feed, int64_t *due_us)
{
    int64_t now_us = steady_us(feed);
    if (feed->partitions.count == 0)
        TRY(list_partitions(feed, now_us, due_us));
    change_partitions_probe(&feed->partitions, now_us - PROBE_US);
    for (size_t i = 0; i < feed->partitions.count; i++)
        TRY(look_after_partition(feed, feed->partitions.items[i], now_us, due_us));
    return status_ok();
}

/* --- the feed --- */

static status fill_feed(struct change_feed *feed, const struct change_feed_options *options)
{
    feed->options = *options;
    if (options->heartbeat_us == 0)
        feed->options.heartbeat_us = HEARTBEAT_US;
    feed->begun_us = steady_us(feed);
    feed->state = (struct change_state){.table = options->table, .from_us = options->from_us};
    feed->partitions.end_us = options->end_us;
    endpoint_append_routing(&feed->routing, "table_name", options->table);
    endpoint_append_routing(&feed->routing, "app_profile_id", options->app_profile);
    if (feed->routing.failed)
        return status_out_of_memory();
    if (options->state.size == 0)
        return status_ok();
    return change_state_read(options->state, &feed->state, &feed->partitions);
}

status change_feed_create(const struct change_feed_options *options, struct change_feed **out)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    status s = fill_feed(*out, options);
    if (status_is_ok(s))
        return s;
    change_feed_destroy(*out);
    *out = NULL;
    return s;
}

void change_feed_destroy(struct change_feed *feed)
{
    if (feed == NULL)
        return;
    for (size_t i = 0; i < feed->partitions.count; i++) {
        destroy_stream(feed->partitions.items[i]->stream);
        feed->partitions.items[i]->stream = NULL;
    }
    change_partitions_free(&feed->partitions);
    change_listing_free(&feed->listing);
    change_links_free(&feed->links);
    buffer_free(&feed->routing);
    free(feed);
}

static status wait_until(struct change_feed *feed, int64_t until_us)
{
    int64_t left_us = until_us - steady_us(feed);
    feed->is_waiting = true;
    status s = client_session_wait(feed->options.session, left_us > 0 ? left_us : 0);
    feed->is_waiting = false;
    return s;
}

status change_feed_next(struct change_feed *feed, int64_t wait_us,
                        const struct feed_change **change, bool *is_end)
{
    int64_t begun_us = steady_us(feed);
    int64_t last_us = wait_us > INT64_MAX - begun_us ? INT64_MAX : begun_us + wait_us;
    *change = NULL;
    *is_end = false;
    for (bool has_waited = false;; has_waited = true) {
        int64_t due_us = last_us;
        TRY(next_here(feed, change));
        if (*change != NULL)
            return status_ok();
        TRY(look_after(feed, &due_us));
        *is_end = feed->partitions.count > 0 && change_partitions_have_ended(&feed->partitions);
        if (*is_end || (has_waited && steady_us(feed) >= last_us))
            return status_ok();
        TRY(wait_until(feed, due_us));
    }
}

status change_feed_save(const struct change_feed *feed, struct buffer *out)
{
    change_state_write(&feed->state, &feed->partitions, out);
    return out->failed ? status_out_of_memory() : status_ok();
}

int64_t change_feed_start_us(const struct change_feed *feed)
{
    return feed->state.from_us;
}

status change_feed_save_start(const struct change_feed *feed, struct buffer *out)
{
    const struct change_partitions none = {0};
    CHECK(feed->state.from_us != 0);
    change_state_write(&feed->state, &none, out);
    return out->failed ? status_out_of_memory() : status_ok();
}

int64_t change_feed_watermark_us(const struct change_feed *feed)
{
    return change_partitions_watermark_us(&feed->partitions);
}

static void see_trouble(const struct change_retry *retry, const struct change_retry **longest)
{
    if (retry->since_us > 0 && (*longest == NULL || retry->since_us < (*longest)->since_us))
        *longest = retry;
}

const char *change_feed_trouble(const struct change_feed *feed, int64_t *since_us)
{
    const struct change_retry *longest = NULL;
    see_trouble(&feed->listing.retry, &longest);
    for (size_t i = 0; i < feed->partitions.count; i++)
        if (feed->partitions.items[i]->stream != NULL)
            see_trouble(&feed->partitions.items[i]->stream->retry, &longest);
    *since_us = longest == NULL ? 0 : longest->since_us;
    return longest == NULL ? NULL : longest->words;
}

size_t change_feed_partitions(const struct change_feed *feed)
{
    size_t count = 0;
    for (size_t i = 0; i < feed->partitions.count; i++)
        count += feed->partitions.items[i]->state != PARTITION_ENDED;
    return count;
}
