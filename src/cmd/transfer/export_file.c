/* `trestle export csv`, `jsonl` and `avro`: rows of a table into a file, which is read again and
 * held against what was read. */
#include "cmd/command.h"
#include "cmd/transfer/export.h"
#include "cmd/transfer/export_filter.h"
#include "cmd/transfer/file_options.h"
#include "cmd/transfer/row_bounds.h"
#include "transfer/endpoint_source.h"
#include "transfer/file_check.h"
#include "transfer/file_sink.h"
#include "transfer/file_source.h"
#include "transfer/job.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { SETUP_LIMIT = 64 << 20 };

struct export_options {
    struct target_options target;
    struct transfer_options transfer;
    struct file_options file;
    const char *table;
    const char *out;
    const char *prefix;
    const char *start;
    const char *end;
    const char *filter;
    uint64_t versions;
    uint64_t streams;
    bool gzip;
};

/* --- options --- */

#define ROW(kind_, member_, preset_, most_, unit_, sentence_)                                      \
    {                                                                                              \
        .member = #member_, .kind = OPTION_##kind_,                                                \
        .offset = offsetof(struct export_options, member_), .preset = preset_, .most = most_,      \
        .unit = unit_, .sentence = sentence_                                                       \
    }

static const struct option rows[] = {
    TARGET_OPTION_ROWS(struct export_options, target),
    FILE_OPTION_ROWS(struct export_options, file),
    ROW(STRING, prefix, NULL, 0, "TEXT", "Only rows whose keys begin so."),
    ROW(STRING, start, NULL, 0, "KEY", "Only rows from this key on."),
    ROW(STRING, end, NULL, 0, "KEY", "Only rows before this key."),
    ROW(INTEGER, versions, "0", INT32_MAX, "N",
        "The N newest cells of each column; 0: all, and one in the forms cbt and fields."),
    ROW(STRING, filter, NULL, 0, "JSON",
        "A RowFilter of the API as JSON, {\"familyNameRegexFilter\":\"m.*\"}, applied first."),
    ROW(INTEGER, streams, "4", 64, "N", "Ranges of rows that are read at a time."),
    ROW(BOOLEAN, gzip, "false", 0, "",
        "Compresses the file, as is also done if its name ends with .gz."),
    TRANSFER_OPTION_ROWS(struct export_options, transfer),
};

enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

static const struct option_table table = {
    .rows = rows, .count = ROW_COUNT, .command = "trestle export csv|jsonl|avro TABLE OUT"};

static void write_help(struct buffer *out)
{
    options_write_help(&table, out);
}

static bool is_standard_output(const struct export_options *options)
{
    return strcmp(options->out, "-") == 0;
}

static bool ends_with(const char *text, const char *ending)
{
    size_t size = strlen(text), ending_size = strlen(ending);
    return size >= ending_size && strcmp(text + size - ending_size, ending) == 0;
}

static status resolve(enum row_kind kind, struct export_options *options)
{
    struct file_options *file = &options->file;
    if (file->form == ROWS_AUTO)
        file->form = ROWS_CELLS;
    if (options->streams == 0)
        return status_make(STATUS_INVALID_ARGUMENT, "--streams is 1 at least");
    if (file->types != NULL && file->form != ROWS_FIELDS)
        return status_make(STATUS_INVALID_ARGUMENT, "--types is for the form fields");
    if (file->form != ROWS_CELLS && options->versions > 1)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "the forms cbt and fields have one version of a cell");
    if (kind == ROWS_AVRO && file->form != ROWS_CELLS)
        return status_make(STATUS_INVALID_ARGUMENT, "Avro is written in the form cells alone");
    if (file->form != ROWS_CELLS)
        options->versions = 1;
    options->gzip |= ends_with(options->out, ".gz");
    return status_ok();
}

static status read_options(enum row_kind kind, const char *const *arguments,
                           struct export_options *out)
{
    struct option_origin origins[ROW_COUNT] = {0};
    struct option_values values = {.object = out, .origins = origins};
    const char *const no_environment[] = {NULL};
    *out = (struct export_options){0};
    TRY(command_need_words(arguments, 2, "the table comes first, and then the file, or -"));
    TRY(options_read(&table, arguments + 2, no_environment, &values));
    out->table = arguments[0];
    out->out = arguments[1];
    TRY(resolve(kind, out));
    return target_options_resolve(&table, origins, &out->target);
}

/* --- the export --- */

struct export
{
    const struct export_options *options;
    struct row_format format;
    bool has_timestamps; /* the file */
    struct arena *arena;
    struct client_session *session;
    struct buffer table; /* its full name, and a NUL */
    struct buffer identity;
    struct endpoint_source *source;
    struct transfer_job *job;
    struct file_sink *sink;
};

static const char *or_nothing(const char *text)
{
    return text == NULL ? "" : text;
}

static status name_things(struct export *export)
{
    const struct export_options *o = export->options;
    buffer_append_format(&export->table, "%s/tables/%s%c", client_session_instance(export->session),
                         o->table, 0);
    buffer_append_format(&export->identity, "%s projects/%s/instances/%s/tables/%s to %s %s%s",
                         o->target.server.address, o->target.project, o->target.instance, o->table,
                         file_kind_name(export->format.kind), o->out, o->gzip ? " gzip" : "");
    file_options_append(&o->file, &export->identity);
    buffer_append_format(&export->identity, "; %s %s %s %" PRIu64 " %s%c", or_nothing(o->prefix),
                         or_nothing(o->start), or_nothing(o->end), o->versions,
                         or_nothing(o->filter), 0);
    bool failed = export->table.failed || export->identity.failed;
    return failed ? status_out_of_memory() : status_ok();
}

/* Rows come in the order of their keys, so that files that have the same rows are the same. */
static status open_source(struct export *export)
{
    const struct export_options *o = export->options;
    const struct client_session_options server = {.target = o->target};
    TRY(client_session_create(&server, &export->session));
    TRY(name_things(export));
    struct endpoint_source_options wanted = {.session = export->session,
                                             .table = (const char *)export->table.data,
                                             .at_a_time = (unsigned)o->streams,
                                             .in_order = true};
    TRY(row_bounds_find(o->prefix, o->start, o->end, export->arena, &wanted.start, &wanted.end));
    TRY(export_filter_make(o->filter, &export->format.layout, o->versions, export->arena,
                           &wanted.filter));
    return endpoint_source_create(&wanted, &export->source);
}

static status open_sink(struct export *export)
{
    const struct export_options *o = export->options;
    const struct file_sink_options options = {.path = o->out,
                                              .is_gzip = o->gzip,
                                              .format = &export->format,
                                              .has_timestamps = export->has_timestamps,
                                              .session = export->session,
                                              .rows_per_second = o->transfer.rate,
                                              .refusal = transfer_job_refusal(export->job)};
    return file_sink_create(&options, &export->sink);
}

/* Standard output cannot be gone on with: what a killed export of it left behind means nothing. */
static status forget_checkpoint(const struct export *export)
{
    const struct export_options *o = export->options;
    struct buffer path = {0};
    if (!is_standard_output(o) || o->transfer.checkpoint != NULL)
        return status_ok();
    buffer_append_format(&path, "%s.checkpoint%c", o->table, 0);
    status s = path.failed ? status_out_of_memory() : status_ok();
    if (status_is_ok(s) && unlink((const char *)path.data) != 0 && errno != ENOENT)
        s = status_from_errno(errno, "cannot remove %s", (const char *)path.data);
    buffer_free(&path);
    return s;
}

/* --- verifying --- */

/* How the file is read again: where rows have fields, the key is one of them. */
static status reading_format(const struct export *export, struct row_format *out)
{
    const struct file_options *file = &export->options->file;
    const struct field_words words = {.row_key = "{row_key}",
                                      .columns = file->columns,
                                      .types = file->types,
                                      .family = file->family};
    *out = export->format;
    if (out->form == ROWS_FIELDS)
        return field_layout_parse(&words, export->arena, &out->layout);
    out->layout = (struct field_layout){0};
    return status_ok();
}

static status read_again(const struct export *export, struct verification *verification,
                         struct file_check *out)
{
    struct row_format format;
    struct file_source *source;
    TRY(reading_format(export, &format));
    TRY(file_source_create(&export->options->out, 1, &format, &source));
    const struct transfer_source records = file_source_interface(source);
    status s = file_check_run(&records, verification, export->has_timestamps, out);
    file_source_destroy(source);
    return s;
}

static status verify(const struct export *export, bool *is_same)
{
    const struct export_options *o = export->options;
    struct verification *verification = NULL;
    struct file_check check;
    *is_same = true;
    if (o->transfer.dry_run || o->transfer.verify == VERIFY_NONE || is_standard_output(o))
        return status_ok();
    /* Cells that a filter let through may not be a row's newest, to which files without times are
     * held. */
    if (export->has_timestamps || o->filter == NULL)
        TRY(verification_create(export->session, (const char *)export->table.data,
                                o->transfer.verify == VERIFY_SAMPLE, &verification));
    status s = read_again(export, verification, &check);
    bool is_compared = verification != NULL;
    verification_destroy(verification);
    TRY(s);
    bool is_whole = check.mistakes == 0 && row_sum_equal(&check.sum, file_sink_sum(export->sink));
    printf("%" PRIu64 " rows in the file, %s\n", check.sum.rows,
           is_whole ? "the same as were read" : "NOT the same as were read");
    if (is_compared)
        printf("%" PRIu64 " rows compared, %" PRIu64 " different\n", check.compared,
               check.different);
    *is_same = is_whole && check.different == 0;
    return status_ok();
}

/* --- all of it --- */

static status run(struct export *export, bool *is_perfect)
{
    const struct export_options *o = export->options;
    const char *name = is_standard_output(o) ? o->table : o->out;
    struct transfer_result result;
    TRY(open_source(export));
    TRY(forget_checkpoint(export));
    const struct transfer_source source = endpoint_source_interface(export->source);
    TRY(transfer_job_create(&o->transfer, name, (const char *)export->identity.data, &source,
                            &export->job));
    TRY(open_sink(export));
    const struct transfer_sink sink = file_sink_interface(export->sink);
    TRY(transfer_job_run(export->job, o->transfer.dry_run ? NULL : &sink, NULL, &result));
    transfer_job_print(export->job, is_standard_output(o) ? stderr : stdout);
    TRY(verify(export, is_perfect));
    *is_perfect &= result.counts.rejected == 0;
    return transfer_job_end(export->job);
}

static status prepare(struct export *export, enum row_kind kind)
{
    export->arena = arena_create(SETUP_LIMIT);
    if (export->arena == NULL)
        return status_out_of_memory();
    TRY(file_options_resolve(&export->options->file, kind, NULL, NULL, export->arena,
                             &export->format));
    export->has_timestamps =
        export->format.form == ROWS_CELLS ||
        (export->format.form == ROWS_CBT && export->format.has_value_timestamps);
    return status_ok();
}

static int export_file(enum row_kind kind, const char *const *arguments)
{
    struct export_options options;
    struct export export = {.options = &options};
    bool is_perfect = false;
    if (command_asks_for(arguments, "--help"))
        return command_print(write_help);
    status s = read_options(kind, arguments, &options);
    if (status_is_ok(s))
        s = prepare(&export, kind);
    if (!status_is_ok(s)) {
        arena_destroy(export.arena);
        return command_refuse("export", s);
    }
    s = run(&export, &is_perfect);
    file_sink_destroy(export.sink);
    transfer_job_destroy(export.job);
    endpoint_source_destroy(export.source);
    client_session_destroy(export.session);
    buffer_free(&export.table);
    buffer_free(&export.identity);
    arena_destroy(export.arena);
    return command_end("export", s, is_perfect);
}

int export_csv_command(const char *const *arguments)
{
    return export_file(ROWS_CSV, arguments);
}

int export_jsonl_command(const char *const *arguments)
{
    return export_file(ROWS_JSONL, arguments);
}

int export_avro_command(const char *const *arguments)
{
    return export_file(ROWS_AVRO, arguments);
}
