#include "transfer/dynamo_sink.h"

#include "base/clock.h"
#include "formats/item_layout.h"

#include <stdlib.h>

enum { ROW_LIMIT = 512 << 20 };

struct dynamo_sink {
    struct dynamo_sink_options options;
    struct dynamo_writer *writer; /* NULL: not begun */
    struct dynamo_position position;
    bool goes_on; /* from the position */
    int64_t started_us;
    int64_t next_us;     /* when the next row may come */
    struct arena *arena; /* of one item */
};

status dynamo_sink_create(const struct dynamo_sink_options *options, struct dynamo_sink **out)
{
    struct dynamo_sink *sink = *out = calloc(1, sizeof *sink);
    if (sink == NULL)
        return status_out_of_memory();
    sink->options = *options;
    sink->started_us = clock_wall_us(clock_system());
    sink->arena = arena_create(ROW_LIMIT);
    if (sink->arena != NULL)
        return status_ok();
    dynamo_sink_destroy(sink);
    *out = NULL;
    return status_out_of_memory();
}

void dynamo_sink_destroy(struct dynamo_sink *sink)
{
    if (sink == NULL)
        return;
    dynamo_writer_destroy(sink->writer);
    arena_destroy(sink->arena);
    free(sink);
}

static status begin(struct dynamo_sink *sink)
{
    if (sink->writer != NULL)
        return status_ok();
    return dynamo_writer_create(sink->options.directory, sink->goes_on ? &sink->position : NULL,
                                &sink->writer);
}

status dynamo_item_of_row(const struct move_change *row, struct arena *arena,
                          struct item_value *out)
{
    return item_pick_up(row->cells, row->count, arena, out);
}

/* Waits, where there is something to wait for: a moment at a time is enough. */
static status keep_pace(struct dynamo_sink *sink)
{
    enum { US_PER_S = 1000 * 1000, LEAST_WAIT_US = 10 * 1000 };
    uint64_t rate = sink->options.rows_per_second;
    if (rate == 0)
        return status_ok();
    int64_t now_us = clock_steady_us(clock_system());
    if (sink->next_us < now_us)
        sink->next_us = now_us;
    sink->next_us += (int64_t)(US_PER_S / rate);
    if (sink->next_us - now_us < LEAST_WAIT_US)
        return status_ok();
    return client_session_wait(sink->options.session, sink->next_us - now_us);
}

static status add(void *context, const struct transfer_record *record)
{
    struct dynamo_sink *sink = context;
    struct item_value item;
    TRY(begin(sink));
    TRY(keep_pace(sink));
    arena_reset(sink->arena);
    status s = dynamo_item_of_row(&record->change, sink->arena, &item);
    if (status_is_ok(s))
        return dynamo_writer_add(sink->writer, &item);
    if (s.code != STATUS_DATA_LOSS)
        return s;
    sink->options.refusal.refused(sink->options.refusal.context, record->tag, record->text, s);
    status_free(s);
    return status_ok();
}

static status flush(void *context)
{
    struct dynamo_sink *sink = context;
    TRY(begin(sink));
    return dynamo_writer_flush(sink->writer, &sink->position);
}

static json_t *save(void *context)
{
    const struct dynamo_sink *sink = context;
    const struct dynamo_position *at = &sink->position;
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "file", (json_int_t)at->file,
                     "file_bytes", (json_int_t)at->file_bytes, "file_items",
                     (json_int_t)at->file_items, "file_text", (json_int_t)at->file_text,
                     "manifest_bytes", (json_int_t)at->manifest_bytes, "items",
                     (json_int_t)at->items, "text", (json_int_t)at->text, "checksum",
                     (json_int_t)at->checksum, "started_us", (json_int_t)sink->started_us);
}

static status restore(void *context, const json_t *position)
{
    struct dynamo_sink *sink = context;
    json_int_t file, file_bytes, file_items, file_text, manifest_bytes, items, text, checksum, us;
    /* jansson does not change what it unpacks. */
    if (json_unpack((json_t *)(uintptr_t)position, "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
                    "file", &file, "file_bytes", &file_bytes, "file_items", &file_items,
                    "file_text", &file_text, "manifest_bytes", &manifest_bytes, "items", &items,
                    "text", &text, "checksum", &checksum, "started_us", &us) != 0)
        return status_make(STATUS_DATA_LOSS, "the checkpoint's position cannot be read");
    sink->position = (struct dynamo_position){.file = (uint64_t)file,
                                              .file_bytes = (uint64_t)file_bytes,
                                              .file_items = (uint64_t)file_items,
                                              .file_text = (uint64_t)file_text,
                                              .manifest_bytes = (uint64_t)manifest_bytes,
                                              .items = (uint64_t)items,
                                              .text = (uint64_t)text,
                                              .checksum = (uint64_t)checksum};
    sink->started_us = us;
    sink->goes_on = true;
    return status_ok();
}

static status finish(void *context)
{
    struct dynamo_sink *sink = context;
    TRY(begin(sink));
    return dynamo_writer_finish(sink->writer, sink->options.table, sink->started_us,
                                clock_wall_us(clock_system()));
}

struct transfer_sink dynamo_sink_interface(struct dynamo_sink *sink)
{
    return (struct transfer_sink){.context = sink,
                                  .claims_place = true,
                                  .add = add,
                                  .flush = flush,
                                  .save = save,
                                  .restore = restore,
                                  .finish = finish};
}

uint64_t dynamo_sink_items(const struct dynamo_sink *sink)
{
    return sink->position.items;
}

uint64_t dynamo_sink_checksum(const struct dynamo_sink *sink)
{
    return sink->position.checksum;
}
