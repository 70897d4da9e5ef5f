/* `trestle import dynamodb`, of a full export:
 *
 *     check the files ─► look at the table ─► read, lay out, write ─► verify
 *
 * What can be known before a row is written is: the MD5 of each file that a manifest names. */
#include "cmd/import.h"
#include "cmd/row_writer.h"
#include "move/dynamo_export.h"
#include "move/input.h"
#include "os/digest.h"
#include "wire/grpc_text.h"
#include "wire/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SETUP_LIMIT = 64 << 20,
    RECORD_LIMIT = 256 << 20,
    UNDER_WAY = 4,
    CHECKPOINT_US = 2 * 1000 * 1000,
    LINES_BETWEEN_LOOKS = 64, /* at the clock */
    MD5_BYTES = 16,
};

struct import {
    const struct import_options *options;
    struct arena *setup;  /* of what lasts */
    struct arena *record; /* of one record */
    struct dynamo_export export;
    struct item_layout layout;
    struct buffer identity;
    struct buffer checkpoint; /* paths, and a NUL */
    struct buffer rejects_path;
    struct buffer table;
    FILE *rejects; /* NULL: there are none yet */
    struct import_state state;
    struct import_progress progress;
    struct client_session *session;
    struct row_writer *writer; /* NULL: a dry run */
    struct import_verification *verification;
    int64_t checkpoint_us;
    uint64_t bytes_before; /* of the files before */
    status failure;        /* of what was called back; owned */
};

/* --- rejects --- */

static status open_rejects(struct import *import)
{
    const char *path = (const char *)import->rejects_path.data;
    if (import->rejects != NULL)
        return status_ok();
    import->rejects = fopen(path, import->state.rejects_bytes > 0 ? "r+e" : "we");
    if (import->rejects == NULL)
        return status_from_errno(errno, "cannot write %s", path);
    if (ftruncate(fileno(import->rejects), (off_t)import->state.rejects_bytes) != 0 ||
        fseeko(import->rejects, 0, SEEK_END) != 0)
        return status_from_errno(errno, "cannot write %s", path);
    return status_ok();
}

static status flush_rejects(struct import *import)
{
    if (import->rejects == NULL)
        return status_ok();
    if (fflush(import->rejects) != 0 || fsync(fileno(import->rejects)) != 0)
        return status_from_errno(errno, "cannot write %s", (const char *)import->rejects_path.data);
    import->state.rejects_bytes = (uint64_t)ftello(import->rejects);
    return status_ok();
}

static status reject(struct import *import, uint64_t file, uint64_t line, const char *reason)
{
    struct buffer text = {0};
    TRY(open_rejects(import));
    buffer_append_bytes(&text, bytes_of("{\"file\":"));
    json_encode_string(bytes_of(import->export.files[file].path), &text);
    buffer_append_format(&text, ",\"line\":%" PRIu64 ",\"reason\":", line);
    json_encode_string(bytes_of(reason), &text);
    buffer_append_bytes(&text, bytes_of("}\n"));
    bool is_written = !text.failed && fwrite(text.data, 1, text.size, import->rejects) == text.size;
    buffer_free(&text);
    import->state.counts.rejected++;
    return is_written ? status_ok()
                      : status_from_errno(errno, "cannot write %s",
                                          (const char *)import->rejects_path.data);
}

/* Tags are files and lines. */
enum { LINE_BITS = 40 };

static void refused(void *context, uint64_t tag, status why)
{
    struct import *import = context;
    if (status_is_ok(import->failure))
        import->failure =
            reject(import, tag >> LINE_BITS, tag & ((1ull << LINE_BITS) - 1), status_message(why));
}

/* --- checkpoints --- */

static status checkpoint(struct import *import)
{
    if (import->writer == NULL)
        return status_ok();
    TRY(row_writer_flush(import->writer));
    TRY(status_copy(import->failure));
    TRY(flush_rejects(import));
    import->checkpoint_us = clock_steady_us(clock_system());
    return import_state_write((const char *)import->checkpoint.data,
                              (const char *)import->identity.data, &import->state);
}

static status look_at_clock(struct import *import)
{
    if (import->state.line % LINES_BETWEEN_LOOKS != 0)
        return status_ok();
    import_progress_show(&import->progress, &import->state.counts);
    if (clock_steady_us(clock_system()) - import->checkpoint_us < CHECKPOINT_US)
        return status_ok();
    return checkpoint(import);
}

/* --- records --- */

static status lay_out(struct import *import, const struct dynamo_file *file, bytes line,
                      struct move_change *change)
{
    struct dynamo_record record;
    TRY(dynamo_record_read(file->format, line, import->record, &record));
    if (record.is_incremental)
        return status_make(STATUS_INVALID_ARGUMENT, "the line is of an incremental export");
    return item_lay_out(&import->layout, &record.item, import->record, change);
}

/* What is wrong with the record is not wrong with the import. */
static status take_line(struct import *import, bytes line, struct move_change *change,
                        bool *is_sound)
{
    const struct dynamo_file *file = &import->export.files[import->state.file];
    arena_reset(import->record);
    status s = lay_out(import, file, line, change);
    *is_sound = status_is_ok(s);
    if (*is_sound)
        return s;
    status rejected = reject(import, import->state.file, import->state.line, status_message(s));
    status_free(s);
    return rejected;
}

static status import_line(struct import *import, bytes line)
{
    struct move_change change;
    bool is_sound;
    const char *path = import->export.files[import->state.file].path;
    TRY(take_line(import, line, &change, &is_sound));
    if (!is_sound || import->writer == NULL)
        return status_ok();
    TRY(row_writer_add(import->writer, &change,
                       import->state.file << LINE_BITS | import->state.line));
    if (import->options->verify != VERIFY_SAMPLE)
        return status_ok();
    return import_verification_add(import->verification, &change, path, import->state.line);
}

/* --- files --- */

static bool is_blank(bytes line)
{
    for (size_t i = 0; i < line.size; i++)
        if (strchr(" \t\r", line.data[i]) == NULL || line.data[i] == '\0')
            return false;
    return true;
}

/* Names file and line in what the input says. */
static status place(const struct import *import, const struct input *input, status s)
{
    if (status_is_ok(s))
        return s;
    status placed = status_make(s.code, "%s, behind line %" PRIu64 ": %s",
                                import->export.files[import->state.file].path,
                                input_line_number(input), status_message(s));
    status_free(s);
    return placed;
}

static status read_lines(struct import *import, struct input *input, uint64_t *items)
{
    uint64_t done = import->state.line;
    for (;;) {
        bytes line;
        bool is_end;
        TRY(place(import, input, input_line(input, &line, &is_end)));
        if (is_end)
            return status_ok();
        *items += !is_blank(line);
        if (input_line_number(input) <= done || is_blank(line))
            continue;
        import->state.line = input_line_number(input);
        import->state.counts.items++;
        import->state.counts.bytes = import->bytes_before + input_bytes_read(input);
        TRY(import_line(import, line));
        TRY(look_at_clock(import));
    }
}

static status check_count(const struct dynamo_file *file, uint64_t items)
{
    if (!file->has_manifest || file->items == items)
        return status_ok();
    return status_make(STATUS_DATA_LOSS, "%s has %" PRIu64 " items; the manifest says %" PRIu64,
                       file->path, items, file->items);
}

static status import_file(struct import *import)
{
    const struct dynamo_file *file = &import->export.files[import->state.file];
    struct input *input;
    uint64_t items = 0;
    TRY(input_open(file->path, &input));
    status s = read_lines(import, input, &items);
    if (status_is_ok(s))
        s = check_count(file, items);
    import->bytes_before += input_bytes_read(input);
    input_close(input);
    TRY(s);
    import->state.file++;
    import->state.line = 0;
    return status_ok();
}

static status import_files(struct import *import)
{
    while (import->state.file < import->export.count)
        TRY(import_file(import));
    return checkpoint(import);
}

/* --- before the first row --- */

static status check_digest(const struct dynamo_file *file, const uint8_t md5[MD5_BYTES])
{
    struct buffer actual = {0};
    base64_encode(bytes_make(md5, MD5_BYTES), &actual);
    bytes expected = bytes_of(file->md5);
    while (expected.size > 0 && expected.data[expected.size - 1] == '=')
        expected.size--;
    bool is_same = !actual.failed && bytes_equal(buffer_bytes(&actual), expected);
    status s =
        is_same ? status_ok()
                : status_make(STATUS_DATA_LOSS, "%s has the MD5 %.*s; the manifest says %s",
                              file->path, (int)actual.size, (const char *)actual.data, file->md5);
    buffer_free(&actual);
    return s;
}

static status check_file(const struct dynamo_file *file)
{
    FILE *stream = fopen(file->path, "re");
    struct digest *digest = NULL;
    uint8_t piece[16 << 10], md5[DIGEST_MOST_BYTES];
    size_t size = 0, taken;
    if (stream == NULL)
        return status_from_errno(errno, "cannot open %s", file->path);
    status s = digest_create(DIGEST_MD5, &digest);
    while (status_is_ok(s) && (taken = fread(piece, 1, sizeof piece, stream)) > 0)
        s = digest_add(digest, bytes_make(piece, taken));
    if (status_is_ok(s) && ferror(stream))
        s = status_from_errno(errno, "cannot read %s", file->path);
    if (status_is_ok(s))
        s = digest_finish(digest, md5, &size);
    digest_destroy(digest);
    fclose(stream);
    return status_is_ok(s) ? check_digest(file, md5) : s;
}

/* Each file's sum, if there is a manifest; and the size of all. */
static status check_files(struct import *import)
{
    for (size_t i = 0; i < import->export.count; i++) {
        const struct dynamo_file *file = &import->export.files[i];
        struct stat about;
        if (stat(file->path, &about) == 0 && i < import->state.file)
            import->bytes_before += (uint64_t)about.st_size;
        if (stat(file->path, &about) == 0)
            import->progress.bytes_total += (uint64_t)about.st_size;
        if (file->has_manifest)
            TRY(check_file(file));
    }
    return status_ok();
}

/* What a checkpoint is of: the same, and it may be gone on with. */
static status name_identity(struct import *import)
{
    const struct import_options *o = import->options;
    const struct target_options *target = &o->target;
    buffer_append_format(&import->identity,
                         "%s to %s projects/%s/instances/%s/tables/%s as %s of %s", o->source,
                         target->server.address, target->project, target->instance, o->table,
                         o->compat == COMPAT_GOOGLE ? "google"
                         : o->lossless              ? "lossless"
                                                    : "columns",
                         o->partition_key);
    buffer_append_format(
        &import->identity, ", %s; %s %s %s %s %s %" PRIu64 "%s%c",
        o->sort_key == NULL ? "" : o->sort_key, o->delimiter, import->layout.family,
        o->timestamp == NULL ? "" : o->timestamp, o->counters == NULL ? "" : o->counters,
        o->families == NULL ? "" : o->families, o->salts, o->ordered_numbers ? " ordered" : "", 0);
    return import->identity.failed ? status_out_of_memory() : status_ok();
}

static status name_files(struct import *import)
{
    const struct import_options *o = import->options;
    if (o->checkpoint != NULL)
        buffer_append_format(&import->checkpoint, "%s%c", o->checkpoint, 0);
    else
        buffer_append_format(&import->checkpoint, "%s.checkpoint%c", o->table, 0);
    if (o->rejects != NULL)
        buffer_append_format(&import->rejects_path, "%s%c", o->rejects, 0);
    else
        buffer_append_format(&import->rejects_path, "%s.rejects.jsonl%c", o->table, 0);
    bool failed = import->checkpoint.failed || import->rejects_path.failed;
    return failed ? status_out_of_memory() : status_ok();
}

/* A time that stays the same when the import goes on after a kill. */
static status find_state(struct import *import)
{
    bool found = false;
    if (!import->options->dry_run)
        TRY(import_state_read((const char *)import->checkpoint.data,
                              (const char *)import->identity.data, &import->state, &found));
    if (!found) {
        int64_t now_us = clock_wall_us(clock_system());
        int64_t exported_us = import->export.export_time_us;
        import->state.default_us = (exported_us >= 0 ? exported_us : now_us) / 1000 * 1000;
    } else if (!import->options->quiet) {
        fprintf(stderr, "going on where %s says: %" PRIu64 " items are done\n",
                (const char *)import->checkpoint.data, import->state.counts.items);
    }
    import->layout.default_us = import->state.default_us;
    import->progress.at_start = import->state.counts;
    return status_ok();
}

static status prepare_table(struct import *import)
{
    const struct item_layout *layout = &import->layout;
    size_t count = layout->families.count + 1;
    const char **families = arena_alloc(import->setup, count * sizeof *families);
    if (families == NULL)
        return status_out_of_memory();
    families[0] = layout->family;
    for (size_t i = 1; i < count; i++)
        families[i] = layout->families.names[i - 1];
    return import_prepare_table(import->session, import->options->table, families, count,
                                layout->form == ITEM_AS_GOOGLE ? 0 : 1, import->setup);
}

static status connect_import(struct import *import)
{
    const struct client_session_options server = {.target = import->options->target};
    TRY(client_session_create(&server, &import->session));
    buffer_append_format(&import->table, "%s/tables/%s%c", client_session_instance(import->session),
                         import->options->table, 0);
    if (import->table.failed)
        return status_out_of_memory();
    TRY(prepare_table(import));
    const struct row_writer_options writer = {
        .loop = client_session_loop(import->session),
        .endpoint = client_session_endpoint(import->session),
        .table = (const char *)import->table.data,
        .app_profile = import->options->target.app_profile,
        .under_way = UNDER_WAY,
        .rows_per_second = import->options->rate,
        .context = import,
        .refused = refused,
    };
    TRY(row_writer_create(&writer, &import->writer));
    return import_verification_create(import->session, (const char *)import->table.data,
                                      import->options->verify == VERIFY_SAMPLE,
                                      &import->verification);
}

static status prepare(struct import *import)
{
    const struct import_options *options = import->options;
    import_progress_begin(&import->progress, clock_system(), options->quiet);
    TRY(dynamo_export_open(options->source, import->setup, &import->export));
    if (import->export.is_incremental)
        return status_make(STATUS_UNIMPLEMENTED, "%s is an incremental export", options->source);
    TRY(import_layout(options, import->setup, &import->layout));
    TRY(name_identity(import));
    TRY(name_files(import));
    TRY(find_state(import));
    TRY(check_files(import));
    import->checkpoint_us = clock_steady_us(clock_system());
    return options->dry_run ? status_ok() : connect_import(import);
}

/* --- after the last --- */

/* Every record once more, as it should be. */
static status verify_line(struct import *import, const struct dynamo_file *file, bytes line,
                          uint64_t number)
{
    struct move_change change;
    arena_reset(import->record);
    status s = lay_out(import, file, line, &change);
    if (s.code == STATUS_INVALID_ARGUMENT) { /* it was rejected */
        status_free(s);
        return status_ok();
    }
    TRY(s);
    return import_verification_add(import->verification, &change, file->path, number);
}

static status verify_file(struct import *import, const struct dynamo_file *file)
{
    struct input *input;
    bytes line;
    bool is_end = false;
    TRY(input_open(file->path, &input));
    status s = status_ok();
    while (status_is_ok(s)) {
        s = input_line(input, &line, &is_end);
        if (is_end)
            break;
        if (status_is_ok(s) && !is_blank(line))
            s = verify_line(import, file, line, input_line_number(input));
    }
    input_close(input);
    return s;
}

static status verify(struct import *import, uint64_t *different)
{
    uint64_t compared = 0;
    *different = 0;
    if (import->writer == NULL || import->options->verify == VERIFY_NONE)
        return status_ok();
    if (import->options->verify == VERIFY_FULL)
        for (size_t i = 0; i < import->export.count; i++)
            TRY(verify_file(import, &import->export.files[i]));
    TRY(import_verification_finish(import->verification, &compared, different));
    printf("%" PRIu64 " rows compared, %" PRIu64 " different\n", compared, *different);
    return status_ok();
}

static status finish(struct import *import, bool *is_perfect)
{
    const struct import_counts *counts = &import->state.counts;
    uint64_t different;
    import_progress_end(&import->progress, counts);
    printf("%" PRIu64 " items read, %" PRIu64 " %s, %" PRIu64 " rejected%s%s\n", counts->items,
           counts->items - counts->rejected, import->writer == NULL ? "fine" : "written",
           counts->rejected, counts->rejected > 0 ? ": see " : "",
           counts->rejected > 0 ? (const char *)import->rejects_path.data : "");
    TRY(verify(import, &different));
    if (import->writer != NULL && unlink((const char *)import->checkpoint.data) != 0)
        return status_from_errno(errno, "cannot remove %s", (const char *)import->checkpoint.data);
    *is_perfect = counts->rejected == 0 && different == 0;
    return status_ok();
}

static void clean_up(struct import *import)
{
    row_writer_destroy(import->writer);
    import_verification_destroy(import->verification);
    client_session_destroy(import->session);
    if (import->rejects != NULL)
        fclose(import->rejects);
    status_free(import->failure);
    buffer_free(&import->identity);
    buffer_free(&import->checkpoint);
    buffer_free(&import->rejects_path);
    buffer_free(&import->table);
    arena_destroy(import->setup);
    arena_destroy(import->record);
}

status import_dynamodb(const struct import_options *options, bool *is_perfect)
{
    struct import import = {.options = options,
                            .setup = arena_create(SETUP_LIMIT),
                            .record = arena_create(RECORD_LIMIT)};
    *is_perfect = false;
    bool has_memory = import.setup != NULL && import.record != NULL;
    status s = has_memory ? prepare(&import) : status_out_of_memory();
    if (status_is_ok(s))
        s = import_files(&import);
    if (status_is_ok(s))
        s = finish(&import, is_perfect);
    clean_up(&import);
    return s;
}
