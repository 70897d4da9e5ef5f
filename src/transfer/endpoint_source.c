#include "transfer/endpoint_source.h"

#include "base/check.h"
#include "client/row_stream.h"
#include "client/table_samples.h"
#include "wire/grpc_text.h"

#include <stdlib.h>

enum {
    RANGES_MOST = 256,
    SAMPLES_LIMIT = 256 << 20, /* of memory, for all sampled keys */
};

struct range {
    bytes start; /* the first key; of an arena */
    bytes end;   /* the one behind; empty: there is none */
    uint64_t size;
    uint64_t read; /* bytes of rows given out */
    struct buffer last_key;
    bool has_last_key;
    bool is_done;
    struct row_stream *stream; /* NULL: it is not being read */
};

struct endpoint_source {
    struct endpoint_source_options options;
    struct arena *arena; /* of keys */
    struct range *ranges;
    size_t count;
    size_t active; /* ranges that have streams */
    size_t turn;   /* the range that gave the last row */
    uint64_t rows;
    bool is_waiting; /* the loop runs for us */
};

/* --- cutting the table --- */

/* Checks the order of the keys, without the end of the table. */
static status check_order(const struct table_samples *samples)
{
    for (size_t i = 1; i < samples->count; i++) {
        bytes key = samples->all[i].key;
        if (key.size > 0 && bytes_compare(key, samples->all[i - 1].key) <= 0)
            return status_make(STATUS_DATA_LOSS, "the server's sample of row keys is in no order");
    }
    return status_ok();
}

/* Whether the key is a place to cut: within the rows that are wanted, and not at their edge. */
static bool cuts(const struct endpoint_source_options *options, bytes key)
{
    return key.size > 0 && bytes_compare(key, options->start) > 0 &&
           (options->end.size == 0 || bytes_compare(key, options->end) < 0);
}

static void add_range(struct endpoint_source *source, bytes start, uint64_t from)
{
    if (source->count > 0) {
        struct range *before = &source->ranges[source->count - 1];
        before->end = start;
        before->size = from - before->size;
    }
    source->ranges[source->count++] = (struct range){.start = start, .size = from};
}

/* `size` of a range is where it begins until the next one does. */
static void cut(struct endpoint_source *source, const struct table_samples *samples)
{
    const struct endpoint_source_options *options = &source->options;
    size_t each = samples->count / RANGES_MOST + 1;
    uint64_t offset = 0;
    add_range(source, options->start, 0);
    for (size_t i = 0; i < samples->count; i++) {
        const struct table_sample *sample = &samples->all[i];
        if (options->end.size == 0 || bytes_compare(sample->key, options->end) <= 0)
            offset = sample->offset;
        if (cuts(options, sample->key) && i % each == 0 && source->count < RANGES_MOST)
            add_range(source, sample->key, sample->offset);
    }
    struct range *last = &source->ranges[source->count - 1];
    last->end = options->end;
    last->size = offset > last->size ? offset - last->size : 0;
}

static status prepare(struct endpoint_source *source)
{
    struct table_samples samples;
    source->arena = arena_create(SAMPLES_LIMIT);
    source->ranges = calloc(RANGES_MOST, sizeof *source->ranges);
    if (source->arena == NULL || source->ranges == NULL)
        return status_out_of_memory();
    TRY(table_samples_read(source->options.session, source->options.table, source->arena,
                           &samples));
    TRY(check_order(&samples));
    cut(source, &samples);
    return status_ok();
}

status endpoint_source_create(const struct endpoint_source_options *options,
                              struct endpoint_source **out)
{
    struct endpoint_source *source = *out = calloc(1, sizeof *source);
    if (source == NULL)
        return status_out_of_memory();
    CHECK(options->at_a_time > 0);
    source->options = *options;
    status s = prepare(source);
    if (status_is_ok(s))
        return s;
    endpoint_source_destroy(source);
    *out = NULL;
    return s;
}

static void close_stream(struct endpoint_source *source, struct range *range)
{
    if (range->stream == NULL)
        return;
    row_stream_destroy(range->stream);
    range->stream = NULL;
    source->active--;
}

static void close_ranges(struct endpoint_source *source)
{
    for (size_t i = 0; i < source->count; i++) {
        close_stream(source, &source->ranges[i]);
        buffer_free(&source->ranges[i].last_key);
    }
}

void endpoint_source_destroy(struct endpoint_source *source)
{
    if (source == NULL)
        return;
    close_ranges(source);
    free(source->ranges);
    arena_destroy(source->arena);
    free(source);
}

size_t endpoint_source_range_count(const struct endpoint_source *source)
{
    return source->count;
}

bytes endpoint_source_range_start(const struct endpoint_source *source, size_t index)
{
    return source->ranges[index].start;
}

/* --- reading --- */

static void has_changed(void *context)
{
    struct endpoint_source *source = context;
    if (source->is_waiting)
        loop_stop(client_session_loop(source->options.session));
}

static status open_stream(struct endpoint_source *source, struct range *range)
{
    const struct row_stream_options options = {
        .session = source->options.session,
        .table = source->options.table,
        .filter = source->options.filter,
        .start = range->has_last_key ? buffer_bytes(&range->last_key) : range->start,
        .start_is_closed = !range->has_last_key,
        .end = range->end,
        .context = source,
        .on_change = has_changed,
    };
    TRY(row_stream_create(&options, &range->stream));
    source->active++;
    return row_stream_begin(range->stream);
}

/* As many as may be read at a time; the first ones first. */
static status open_streams(struct endpoint_source *source)
{
    for (size_t i = 0; i < source->count && source->active < source->options.at_a_time; i++) {
        struct range *range = &source->ranges[i];
        if (!range->is_done && range->stream == NULL)
            TRY(open_stream(source, range));
    }
    return status_ok();
}

static status give_out(struct endpoint_source *source, struct range *range,
                       const struct move_change *row, struct transfer_record *out)
{
    buffer_clear(&range->last_key);
    buffer_append_bytes(&range->last_key, row->row_key);
    range->has_last_key = true;
    range->read += row->row_key.size + row->bytes;
    out->tag = ++source->rows;
    out->change = *row;
    return range->last_key.failed ? status_out_of_memory() : status_ok();
}

/* A row of this range; `*row` NULL if there is none now. */
static status next_of(struct endpoint_source *source, struct range *range,
                      const struct move_change **row)
{
    bool is_end;
    TRY(row_stream_next(range->stream, row, &is_end));
    if (!is_end)
        return status_ok();
    range->is_done = true;
    close_stream(source, range);
    return open_streams(source);
}

/* A row of any range whose turn it may be. `*is_end`: all ranges are done. */
static status next_of_any(struct endpoint_source *source, struct range **range,
                          const struct move_change **row, bool *is_end)
{
    size_t first = source->options.in_order ? 0 : source->turn;
    *row = NULL;
    *is_end = true;
    for (size_t i = 0; i < source->count; i++) {
        size_t index = (first + i) % source->count;
        *range = &source->ranges[index];
        if ((*range)->stream != NULL)
            TRY(next_of(source, *range, row));
        *is_end = *is_end && (*range)->is_done;
        source->turn = index;
        if (*row != NULL || (source->options.in_order && !(*range)->is_done))
            return status_ok();
    }
    return status_ok();
}

static status next(void *context, struct arena *arena, struct transfer_record *out, bool *is_end)
{
    struct endpoint_source *source = context;
    struct range *range;
    const struct move_change *row;
    (void)arena;
    TRY(open_streams(source));
    for (;;) {
        TRY(next_of_any(source, &range, &row, is_end));
        if (row != NULL)
            return give_out(source, range, row, out);
        if (*is_end)
            return status_ok();
        source->is_waiting = true;
        loop_run(client_session_loop(source->options.session));
        source->is_waiting = false;
    }
}

static status rewind_source(void *context)
{
    struct endpoint_source *source = context;
    for (size_t i = 0; i < source->count; i++) {
        struct range *range = &source->ranges[i];
        close_stream(source, range);
        range->has_last_key = range->is_done = false;
        range->read = 0;
    }
    source->rows = source->turn = 0;
    return status_ok();
}

static void describe(void *context, uint64_t tag, struct transfer_place *out)
{
    const struct endpoint_source *source = context;
    *out = (struct transfer_place){.file = source->options.table, .line = tag};
}

/* Ranges are as large as the server guesses. */
static void progress(void *context, struct transfer_progress *out)
{
    const struct endpoint_source *source = context;
    *out = (struct transfer_progress){0};
    for (size_t i = 0; i < source->count; i++) {
        const struct range *range = &source->ranges[i];
        out->bytes += range->is_done || range->read > range->size ? range->size : range->read;
        out->total += range->size;
    }
}

/* --- positions --- */

static json_t *json_of_key(bytes key)
{
    struct buffer text = {0};
    base64_encode(key, &text);
    buffer_append_byte(&text, '\0'); /* of an empty key there is no text else */
    json_t *json = text.failed ? NULL : json_stringn((const char *)text.data, text.size - 1);
    buffer_free(&text);
    return json;
}

static json_t *json_of_range(const struct range *range)
{
    return json_pack("{s:o, s:o, s:o?, s:b, s:I, s:I}", "start", json_of_key(range->start), "end",
                     json_of_key(range->end), "last",
                     range->has_last_key ? json_of_key(buffer_bytes(&range->last_key)) : NULL,
                     "done", range->is_done, "size", (json_int_t)range->size, "read",
                     (json_int_t)range->read);
}

static json_t *save(void *context)
{
    const struct endpoint_source *source = context;
    json_t *ranges = json_array();
    for (size_t i = 0; i < source->count; i++)
        if (json_array_append_new(ranges, json_of_range(&source->ranges[i])) != 0) {
            json_decref(ranges);
            return NULL;
        }
    return json_pack("{s:I, s:o}", "rows", (json_int_t)source->rows, "ranges", ranges);
}

static status key_of_json(struct endpoint_source *source, const json_t *json, bytes *out)
{
    bytes text = bytes_make(json_string_value(json), json_string_length(json));
    uint8_t *data = arena_alloc(source->arena, base64_decoded_most(text.size) + 1);
    if (data == NULL)
        return status_out_of_memory();
    out->data = data;
    return base64_decode(text, data, &out->size)
               ? status_ok()
               : status_make(STATUS_DATA_LOSS, "the checkpoint's row keys cannot be read");
}

static status range_of_json(struct endpoint_source *source, const json_t *json, struct range *out)
{
    json_t *start, *end, *last = NULL;
    int is_done;
    json_int_t size, read;
    bytes last_key;
    *out = (struct range){0};
    /* jansson does not change what it unpacks. */
    if (json_unpack((json_t *)(uintptr_t)json, "{s:o, s:o, s?o, s:b, s:I, s:I}", "start", &start,
                    "end", &end, "last", &last, "done", &is_done, "size", &size, "read",
                    &read) != 0)
        return status_make(STATUS_DATA_LOSS, "the checkpoint's ranges cannot be read");
    TRY(key_of_json(source, start, &out->start));
    TRY(key_of_json(source, end, &out->end));
    out->is_done = is_done;
    out->size = (uint64_t)size;
    out->read = (uint64_t)read;
    out->has_last_key = json_is_string(last);
    if (!out->has_last_key)
        return status_ok();
    TRY(key_of_json(source, last, &last_key));
    buffer_append_bytes(&out->last_key, last_key);
    return out->last_key.failed ? status_out_of_memory() : status_ok();
}

/* The table may have other samples by now: the ranges are the checkpoint's. */
static status restore(void *context, const json_t *position)
{
    struct endpoint_source *source = context;
    json_int_t rows;
    json_t *ranges;
    if (json_unpack((json_t *)(uintptr_t)position, "{s:I, s:o}", "rows", &rows, "ranges",
                    &ranges) != 0 ||
        json_array_size(ranges) == 0 || json_array_size(ranges) > RANGES_MOST)
        return status_make(STATUS_DATA_LOSS, "the checkpoint's position cannot be read");
    close_ranges(source);
    source->count = 0;
    source->rows = (uint64_t)rows;
    for (size_t i = 0; i < json_array_size(ranges); i++) {
        source->count++;
        TRY(range_of_json(source, json_array_get(ranges, i), &source->ranges[i]));
    }
    return status_ok();
}

struct transfer_source endpoint_source_interface(struct endpoint_source *source)
{
    return (struct transfer_source){.context = source,
                                    .noun = "rows",
                                    .has_whole_rows = true,
                                    .next = next,
                                    .save = save,
                                    .restore = restore,
                                    .rewind = rewind_source,
                                    .describe = describe,
                                    .progress = progress};
}
