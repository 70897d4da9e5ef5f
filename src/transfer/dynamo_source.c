/* Files are read line by line. */
#include "transfer/dynamo_source.h"

#include "base/clock.h"
#include "formats/dynamo_change.h"
#include "formats/dynamo_check.h"
#include "formats/dynamo_export.h"
#include "formats/input.h"
#include "transfer/file_position.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    SETUP_LIMIT = 64 << 20,
    LINE_MOST = 64 << 20, /* bytes; an item has 400 KB, in whichever words */
    US_PER_MS = 1000,
};

struct dynamo_source {
    struct arena *setup;
    struct dynamo_export export;
    struct item_layout layout;
    uint64_t total; /* bytes of all files */
    struct file_position position;
    struct input *input;   /* of the position; NULL: it is not open */
    uint64_t items;        /* lines of it that are not blank */
    uint64_t bytes_before; /* of the files before */
};

/* --- before the first row --- */

static uint64_t size_of_files(const struct dynamo_source *source, uint64_t count)
{
    uint64_t size = 0;
    for (uint64_t i = 0; i < count; i++)
        size += file_size(source->export.files[i].path);
    return size;
}

/* Each file's sum, if there is a manifest; and the size of all. */
static status check_files(struct dynamo_source *source)
{
    source->total = size_of_files(source, source->export.count);
    return dynamo_files_check(source->export.files, source->export.count);
}

static status prepare(struct dynamo_source *source, const char *path)
{
    int64_t now_us = clock_wall_us(clock_system());
    source->setup = arena_create(SETUP_LIMIT);
    if (source->setup == NULL)
        return status_out_of_memory();
    TRY(dynamo_export_open(path, source->setup, &source->export));
    if (source->export.is_incremental)
        TRY(dynamo_change_check(&source->layout, DYNAMO_BY_TIME));
    source->position.timestamp_us = now_us / US_PER_MS * US_PER_MS;
    source->layout.now_us = now_us;
    return check_files(source);
}

status dynamo_source_create(const char *path, const struct item_layout *layout,
                            struct dynamo_source **out)
{
    struct dynamo_source *source = *out = calloc(1, sizeof *source);
    if (source == NULL)
        return status_out_of_memory();
    source->layout = *layout;
    status s = prepare(source, path);
    if (status_is_ok(s))
        return s;
    dynamo_source_destroy(source);
    *out = NULL;
    return s;
}

void dynamo_source_destroy(struct dynamo_source *source)
{
    if (source == NULL)
        return;
    input_close(source->input);
    arena_destroy(source->setup);
    free(source);
}

/* --- files --- */

static const struct dynamo_file *current(const struct dynamo_source *source)
{
    return &source->export.files[source->position.file];
}

static void close_file(struct dynamo_source *source)
{
    input_close(source->input);
    source->input = NULL;
    source->items = 0;
}

static status end_file(struct dynamo_source *source)
{
    const struct dynamo_file *file = current(source);
    uint64_t items = source->items;
    source->bytes_before += input_bytes_read(source->input);
    close_file(source);
    source->position.file++;
    source->position.line = 0;
    if (!file->has_manifest || file->items == items)
        return status_ok();
    return status_make(STATUS_DATA_LOSS, "%s has %" PRIu64 " items; the manifest says %" PRIu64,
                       file->path, items, file->items);
}

/* Names file and line in what the input says. */
static status place(const struct dynamo_source *source, status s)
{
    if (status_is_ok(s))
        return s;
    status placed = status_make(s.code, "%s, behind line %" PRIu64 ": %s", current(source)->path,
                                input_line_number(source->input), status_message(s));
    status_free(s);
    return placed;
}

/* The next line of the file that has something in it and has not been given out, or its `*fault`:
 * it is too long; `*is_end` of the file. Lines before are read, too: they count, and may be in one
 * gzip member with it. */
static status next_line(struct dynamo_source *source, bytes *line, status *fault, bool *is_end)
{
    *fault = status_ok();
    if (source->input == NULL) {
        TRY(input_open(current(source)->path, &source->input));
        input_limit_lines(source->input, LINE_MOST);
    }
    for (;;) {
        status_free(*fault);
        *fault = input_line(source->input, line, is_end);
        bool is_line = status_is_ok(*fault) || fault->code == STATUS_OUT_OF_RANGE;
        if (!is_line || *is_end)
            return place(source, *fault);
        if (status_is_ok(*fault) && input_line_is_blank(*line))
            continue;
        source->items++;
        if (input_line_number(source->input) > source->position.line)
            break;
    }
    source->position.line = input_line_number(source->input);
    return status_ok();
}

/* --- records --- */

/* An item as it is has the time of its export. */
static status lay_out(const struct dynamo_source *source, bytes line, struct arena *arena,
                      struct transfer_record *out)
{
    struct dynamo_record record;
    struct item_layout layout = source->layout;
    int64_t exported_us = current(source)->export_time_us;
    layout.default_us =
        exported_us >= 0 ? exported_us / US_PER_MS * US_PER_MS : source->position.timestamp_us;
    TRY(dynamo_record_read(current(source)->format, line, arena, &record));
    out->is_update = record.is_incremental;
    return dynamo_change_lay_out(&layout, DYNAMO_BY_TIME, &record, arena, &out->change);
}

static status next(void *context, struct arena *arena, struct transfer_record *out, bool *is_end)
{
    struct dynamo_source *source = context;
    bytes line;
    status fault;
    for (;;) {
        *is_end = source->position.file == source->export.count;
        if (*is_end)
            return status_ok();
        bool is_end_of_file;
        TRY(next_line(source, &line, &fault, &is_end_of_file));
        if (!is_end_of_file)
            break;
        TRY(end_file(source));
    }
    out->tag = file_position_tag(&source->position);
    if (!status_is_ok(fault)) {
        out->failure = fault;
        return status_ok();
    }
    out->text = line;
    out->failure = lay_out(source, line, arena, out);
    return status_ok();
}

static void describe(void *context, uint64_t tag, struct transfer_place *out)
{
    const struct dynamo_source *source = context;
    *out = (struct transfer_place){.file = source->export.files[file_of_tag(tag)].path,
                                   .line = line_of_tag(tag)};
}

static void progress(void *context, struct transfer_progress *out)
{
    const struct dynamo_source *source = context;
    uint64_t bytes = source->input == NULL ? 0 : input_bytes_read(source->input);
    *out =
        (struct transfer_progress){.bytes = source->bytes_before + bytes, .total = source->total};
}

/* --- positions --- */

static json_t *save(void *context)
{
    const struct dynamo_source *source = context;
    return file_position_save(&source->position);
}

static void go_to(struct dynamo_source *source, const struct file_position *position)
{
    close_file(source);
    source->position = *position;
    source->bytes_before = size_of_files(source, position->file);
}

static status restore(void *context, const json_t *position)
{
    struct dynamo_source *source = context;
    struct file_position found;
    TRY(file_position_restore(position, source->export.count, &found));
    go_to(source, &found);
    return status_ok();
}

static status rewind_source(void *context)
{
    struct dynamo_source *source = context;
    const struct file_position first = {.timestamp_us = source->position.timestamp_us};
    go_to(source, &first);
    return status_ok();
}

struct transfer_source dynamo_source_interface(struct dynamo_source *source)
{
    const struct item_mapping *mapping = source->layout.mapping;
    bool has_whole_rows = mapping == NULL || !mapping->has_items;
    return (struct transfer_source){.context = source,
                                    .noun = "items",
                                    .unique = has_whole_rows ? UNIQUE_ROWS : UNIQUE_CELLS,
                                    .has_whole_rows = has_whole_rows,
                                    .next = next,
                                    .save = save,
                                    .restore = restore,
                                    .rewind = rewind_source,
                                    .describe = describe,
                                    .progress = progress};
}
