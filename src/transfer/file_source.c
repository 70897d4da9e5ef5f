/* A record's line is its number in its file (row_file.h). Going on behind a record means to read
 * its file from the beginning, and to pass over what is not behind it. */
#include "transfer/file_source.h"

#include "transfer/file_position.h"

#include <stdlib.h>

struct file_source {
    const char *const *paths;
    size_t count;
    struct row_format format;
    enum transfer_unique unique;
    struct file_position position;
    struct row_file *open; /* of the position; NULL: it is not */
    uint64_t bytes_before; /* of the files before */
    uint64_t total;        /* bytes of all files; 0: not known */
};

static bool is_standard_input(const char *path)
{
    return strcmp(path, "-") == 0;
}

static uint64_t size_of_files(const struct file_source *source, uint64_t count)
{
    uint64_t size = 0;
    for (uint64_t i = 0; i < count; i++)
        size += file_size(source->paths[i]);
    return size;
}

static void close_file(struct file_source *source)
{
    row_file_close(source->open);
    source->open = NULL;
}

static status open_file(struct file_source *source)
{
    if (source->open != NULL || source->position.file == source->count)
        return status_ok();
    return row_file_open(source->paths[source->position.file], &source->format, &source->open);
}

status file_source_create(const char *const *paths, size_t count, const struct row_format *format,
                          struct file_source **out)
{
    struct file_source *source = *out = calloc(1, sizeof *source);
    if (source == NULL)
        return status_out_of_memory();
    source->paths = paths;
    source->count = count;
    source->format = *format;
    source->position.timestamp_us = format->layout.default_us;
    source->total = size_of_files(source, count);
    status s = open_file(source);
    if (status_is_ok(s))
        return s;
    file_source_destroy(source);
    *out = NULL;
    return s;
}

void file_source_destroy(struct file_source *source)
{
    if (source == NULL)
        return;
    close_file(source);
    free(source);
}

/* --- records --- */

static void end_file(struct file_source *source)
{
    source->bytes_before += row_file_bytes_read(source->open);
    close_file(source);
    source->position.file++;
    source->position.line = 0;
}

/* Of the file that is open: what has been given out is passed over. */
static status next_record(struct file_source *source, struct arena *arena, struct row_record *out,
                          bool *is_end)
{
    for (;;) {
        TRY(row_file_next(source->open, arena, out, is_end));
        if (*is_end || out->number > source->position.line)
            return status_ok();
        status_free(out->failure);
        arena_reset(arena);
    }
}

static status next(void *context, struct arena *arena, struct transfer_record *out, bool *is_end)
{
    struct file_source *source = context;
    struct row_record record = {0};
    for (;;) {
        bool is_end_of_file = false;
        *is_end = source->position.file == source->count;
        if (*is_end)
            return status_ok();
        TRY(open_file(source));
        TRY(next_record(source, arena, &record, &is_end_of_file));
        if (!is_end_of_file)
            break;
        end_file(source);
    }
    source->position.line = record.number;
    *out = (struct transfer_record){.tag = file_position_tag(&source->position),
                                    .text = record.text,
                                    .change = record.row,
                                    .failure = record.failure};
    out->change.in_order = source->unique == UNIQUE_LAST;
    return status_ok();
}

static void describe(void *context, uint64_t tag, struct transfer_place *out)
{
    const struct file_source *source = context;
    const char *path = source->paths[file_of_tag(tag)];
    *out = (struct transfer_place){.file = is_standard_input(path) ? "standard input" : path,
                                   .line = line_of_tag(tag)};
}

static void progress(void *context, struct transfer_progress *out)
{
    const struct file_source *source = context;
    uint64_t bytes = source->open == NULL ? 0 : row_file_bytes_read(source->open);
    *out =
        (struct transfer_progress){.bytes = source->bytes_before + bytes, .total = source->total};
}

/* --- positions --- */

static json_t *save(void *context)
{
    const struct file_source *source = context;
    return file_position_save(&source->position);
}

static status go_to(struct file_source *source, const struct file_position *position)
{
    close_file(source);
    source->position = *position;
    source->format.layout.default_us = position->timestamp_us;
    source->bytes_before = size_of_files(source, position->file);
    return open_file(source);
}

static status restore(void *context, const json_t *position)
{
    struct file_source *source = context;
    struct file_position found;
    TRY(file_position_restore(position, source->count, &found));
    return go_to(source, &found);
}

static status rewind_source(void *context)
{
    struct file_source *source = context;
    const struct file_position first = {.timestamp_us = source->position.timestamp_us};
    return go_to(source, &first);
}

void file_source_set_unique(struct file_source *source, enum transfer_unique unique)
{
    source->unique = unique;
}

struct transfer_source file_source_interface(struct file_source *source)
{
    struct transfer_source interface = {.context = source,
                                        .noun = "rows",
                                        .unique = source->unique,
                                        .next = next,
                                        .save = save,
                                        .restore = restore,
                                        .rewind = rewind_source,
                                        .describe = describe,
                                        .progress = progress};
    for (size_t i = 0; i < source->count; i++)
        if (is_standard_input(source->paths[i]))
            interface.rewind = NULL;
    return interface;
}
