/* See live_source.h.
 *
 *     scanning ──► following ──► the end
 *         └───────(or not)──────────┘
 *
 * SIGINT and SIGTERM stop it while it follows (transfer/stop_signals.h). */
#include "transfer/live_source.h"

#include "aws/dynamo_stream.h"
#include "base/clock.h"
#include "formats/dynamo_change.h"
#include "transfer/stop_signals.h"

#include <stdlib.h>

enum { SETUP_LIMIT = 1 << 20, US_PER_MS = 1000 };

struct live_source {
    struct live_source_options options;
    struct arena *setup;
    struct loop *loop;
    struct aws_credentials credentials;
    struct dynamo_client *client;
    struct dynamo_table table;
    struct item_layout layout;
    json_t *noted;            /* the point of the stream from which it is followed; NULL: none */
    struct dynamo_scan *scan; /* NULL: it is over */
    struct dynamo_stream *stream; /* NULL: it is not followed yet, or not at all */
    bool is_again;                /* the scan is made again, to compare */
    bool was_stopped;             /* by a signal */
    uint64_t records;
    uint64_t bytes; /* of a scan that is over */
    struct stop_signals signals;
};

/* --- making and ending --- */

static status open_table(struct live_source *source)
{
    const struct live_source_options *options = &source->options;
    source->setup = arena_create(SETUP_LIMIT);
    if (source->setup == NULL)
        return status_out_of_memory();
    TRY(loop_create(clock_system(), &source->loop));
    TRY(aws_credentials_find(options->region, source->setup, &source->credentials));
    const struct dynamo_client_options client = {
        .loop = source->loop, .endpoint = options->endpoint, .credentials = &source->credentials};
    TRY(dynamo_client_create(&client, &source->client));
    return dynamo_table_describe(source->client, options->table, source->setup, &source->table);
}

status live_source_create(const struct live_source_options *options, struct live_source **out)
{
    struct live_source *source = *out = calloc(1, sizeof *source);
    if (source == NULL)
        return status_out_of_memory();
    source->options = *options;
    status s = open_table(source);
    if (status_is_ok(s))
        return s;
    live_source_destroy(source);
    *out = NULL;
    return s;
}

void live_source_destroy(struct live_source *source)
{
    if (source == NULL)
        return;
    stop_signals_end(&source->signals);
    dynamo_scan_destroy(source->scan);
    dynamo_stream_destroy(source->stream);
    dynamo_client_destroy(source->client);
    loop_destroy(source->loop);
    json_decref(source->noted);
    arena_destroy(source->setup);
    free(source);
}

const struct dynamo_table *live_source_table(const struct live_source *source)
{
    return &source->table;
}

struct loop *live_source_loop(const struct live_source *source)
{
    return source->loop;
}

/* --- beginning --- */

static status begin_scan(struct live_source *source)
{
    const struct dynamo_scan_options options = {.client = source->client,
                                                .table = &source->table,
                                                .segments = source->options.segments,
                                                .is_consistent = source->options.is_consistent};
    return dynamo_scan_create(&options, &source->scan);
}

status live_source_begin(struct live_source *source, const struct item_layout *layout)
{
    source->layout = *layout;
    source->layout.now_us = clock_wall_us(clock_system());
    source->layout.default_us = source->table.server_us / US_PER_MS * US_PER_MS;
    if (source->options.follow != LIVE_FOLLOW_NONE) {
        TRY(dynamo_change_check(layout, DYNAMO_IN_ORDER));
        TRY(dynamo_stream_note(source->client, &source->table, &source->noted));
    }
    return begin_scan(source);
}

static void stop(void *context)
{
    struct live_source *source = context;
    dynamo_stream_stop(source->stream);
}

static status begin_stream(struct live_source *source)
{
    const struct dynamo_stream_options options = {.client = source->client,
                                                  .stream = source->table.stream};
    if (source->table.stream == NULL)
        return status_make(STATUS_FAILED_PRECONDITION, "the table %s has no stream any more",
                           source->table.name);
    TRY(dynamo_stream_create(&options, source->noted, &source->stream));
    return stop_signals_watch(&source->signals, source->loop, stop, source);
}

/* --- records --- */

/* An item is all of its row, where a row is of one item. */
static status lay_out_item(const struct live_source *source, bytes text, struct arena *arena,
                           struct move_change *change)
{
    const struct item_mapping *mapping = source->layout.mapping;
    struct item_value item;
    TRY(item_read_json_map(text, arena, &item));
    TRY(item_lay_out(&source->layout, &item, arena, change));
    change->replaces = mapping == NULL || !mapping->has_items;
    change->is_undated = source->is_again;
    return status_ok();
}

static status next_item(struct live_source *source, struct arena *arena,
                        struct transfer_record *out, bool *is_end)
{
    bytes text;
    TRY(dynamo_scan_next(source->scan, &text, is_end));
    if (*is_end)
        return status_ok();
    out->tag = source->records++;
    out->text = text;
    out->failure = lay_out_item(source, text, arena, &out->change);
    return status_ok();
}

static status next_change(struct live_source *source, struct arena *arena,
                          struct transfer_record *out, bool *is_end)
{
    struct dynamo_change change;
    enum dynamo_streamed what;
    TRY(dynamo_stream_next(source->stream, arena, &change, &what));
    bool goes_on = what == STREAM_RESTS ||
                   (what == STREAM_CAUGHT_UP && source->options.follow == LIVE_FOLLOW_FOREVER);
    source->was_stopped = what == STREAM_STOPPED;
    out->is_pause = goes_on;
    *is_end = what != STREAM_CHANGE && !goes_on;
    if (what != STREAM_CHANGE)
        return status_ok();
    out->tag = source->records++;
    out->text = change.text;
    out->is_update = true;
    out->failure = change.failure;
    if (status_is_ok(out->failure))
        out->failure = dynamo_change_lay_out(&source->layout, DYNAMO_IN_ORDER, &change.record,
                                             arena, &out->change);
    return status_ok();
}

static status next(void *context, struct arena *arena, struct transfer_record *out, bool *is_end)
{
    struct live_source *source = context;
    *is_end = true;
    if (source->scan != NULL) {
        TRY(next_item(source, arena, out, is_end));
        if (!*is_end)
            return status_ok();
        source->bytes += dynamo_scan_bytes(source->scan);
        dynamo_scan_destroy(source->scan);
        source->scan = NULL;
    }
    if (source->is_again || source->options.follow == LIVE_FOLLOW_NONE)
        return status_ok();
    if (source->stream == NULL)
        TRY(begin_stream(source));
    TRY(next_change(source, arena, out, is_end));
    if (*is_end)
        stop_signals_end(&source->signals);
    return status_ok();
}

/* --- positions --- */

static json_t *save(void *context)
{
    const struct live_source *source = context;
    json_t *scan = source->scan == NULL ? json_null() : dynamo_scan_save(source->scan);
    json_t *stream =
        source->stream != NULL ? dynamo_stream_save(source->stream) : json_incref(source->noted);
    return json_pack("{s:I, s:I, s:o, s:o*}", "timestamp_us", (json_int_t)source->layout.default_us,
                     "records", (json_int_t)source->records, "scan", scan, "stream", stream);
}

static status restore(void *context, const json_t *position)
{
    struct live_source *source = context;
    const json_t *time = json_object_get(position, "timestamp_us");
    const json_t *records = json_object_get(position, "records");
    const json_t *scan = json_object_get(position, "scan");
    json_t *stream = json_object_get(position, "stream");
    if (!json_is_integer(time) || !json_is_integer(records) || scan == NULL ||
        (stream == NULL) != (source->noted == NULL))
        return status_make(STATUS_DATA_LOSS, "the checkpoint's position cannot be read");
    source->layout.default_us = json_integer_value(time);
    source->records = (uint64_t)json_integer_value(records);
    json_decref(source->noted);
    source->noted = json_incref(stream);
    if (!json_is_null(scan))
        return dynamo_scan_restore(source->scan, scan);
    dynamo_scan_destroy(source->scan);
    source->scan = NULL;
    return status_ok();
}

/* A job that was stopped goes on later; one that has caught up has done all there was to do. */
static bool goes_on(void *context)
{
    const struct live_source *source = context;
    return source->was_stopped;
}

/* The table as it is now, to compare: what is written to it meanwhile differs. */
static status rewind_source(void *context)
{
    struct live_source *source = context;
    source->is_again = true;
    return begin_scan(source);
}

static void describe(void *context, uint64_t tag, struct transfer_place *out)
{
    const struct live_source *source = context;
    *out = (struct transfer_place){.file = source->options.place, .line = tag + 1};
}

static void progress(void *context, struct transfer_progress *out)
{
    const struct live_source *source = context;
    *out = (struct transfer_progress){.bytes = source->bytes};
    if (source->scan != NULL)
        out->bytes += dynamo_scan_bytes(source->scan);
    if (source->stream != NULL)
        out->bytes += dynamo_stream_bytes(source->stream);
}

static bool is_same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Rows of the table's own keys are as different as its items are. */
static enum transfer_unique uniqueness(const struct live_source *source)
{
    const struct item_layout *layout = &source->layout;
    if (layout->mapping != NULL)
        return layout->mapping->has_items ? UNIQUE_CELLS : UNIQUE_ROWS;
    bool has_own_keys = is_same(layout->partition_key, source->table.partition_key) &&
                        is_same(layout->sort_key, source->table.sort_key);
    return has_own_keys ? UNIQUE_NOTHING : UNIQUE_ROWS;
}

struct transfer_source live_source_interface(struct live_source *source)
{
    return (struct transfer_source){.context = source,
                                    .noun = "items",
                                    .unique = uniqueness(source),
                                    .is_live = true,
                                    .next = next,
                                    .save = save,
                                    .restore = restore,
                                    .goes_on = goes_on,
                                    .rewind = rewind_source,
                                    .describe = describe,
                                    .progress = progress};
}
