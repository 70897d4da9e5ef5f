/* `trestle export dynamodb`: the items of rows that were imported with --lossless, as an export of
 * DynamoDB's.
 *
 *     ReadRows ─► items ─► files, manifests ─► verify: the files; with full, the table once more
 *
 * Rows come in any order, so what is held against each other are sums over all items. */
#include "cmd/command.h"
#include "cmd/transfer/export.h"
#include "transfer/dynamo_sink.h"
#include "transfer/endpoint_source.h"
#include "transfer/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROW_LIMIT = 512 << 20 };

struct export_options {
    struct target_options target;
    struct transfer_options transfer;
    const char *directory;
    const char *table;
    uint64_t streams;
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
    ROW(INTEGER, streams, "4", 64, "N", "Ranges of rows that are read at a time."),
    TRANSFER_OPTION_ROWS(struct export_options, transfer),
};

enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

static const struct option_table table = {
    .rows = rows, .count = ROW_COUNT, .command = "trestle export dynamodb TABLE OUT"};

static void write_help(struct buffer *out)
{
    options_write_help(&table, out);
}

static status read_options(const char *const *arguments, struct export_options *out)
{
    struct option_origin origins[ROW_COUNT] = {0};
    struct option_values values = {.object = out, .origins = origins};
    const char *const no_environment[] = {NULL};
    *out = (struct export_options){0};
    TRY(command_need_words(arguments, 2, "table and directory come first"));
    TRY(options_read(&table, arguments + 2, no_environment, &values));
    out->table = arguments[0];
    out->directory = arguments[1];
    if (out->streams == 0)
        return status_make(STATUS_INVALID_ARGUMENT, "--streams is 1 at least");
    return target_options_resolve(&table, origins, &out->target);
}

/* --- the export --- */

struct export
{
    const struct export_options *options;
    struct client_session *session;
    struct buffer table; /* its full name, and a NUL, as the next */
    struct buffer identity;
    struct endpoint_source *source;
    struct transfer_job *job;
    struct dynamo_sink *sink; /* NULL: a dry run */
};

static status name_things(struct export *export)
{
    const struct export_options *o = export->options;
    const char *instance = client_session_instance(export->session);
    buffer_append_format(&export->table, "%s/tables/%s%c", instance, o->table, 0);
    buffer_append_format(&export->identity, "%s %s/tables/%s to %s as dynamodb%c",
                         o->target.server.address, instance, o->table, o->directory, 0);
    bool failed = export->table.failed || export->identity.failed;
    return failed ? status_out_of_memory() : status_ok();
}

/* The newest version of each cell is the item's. */
static status open_source(struct export *export)
{
    static const Bt__RowFilter newest = {
        .base = PROTOBUF_C_MESSAGE_INIT(&bt__row_filter__descriptor),
        .filter_case = BT__ROW_FILTER__FILTER_CELLS_PER_COLUMN_LIMIT_FILTER,
        .cells_per_column_limit_filter = 1,
    };
    const struct client_session_options server = {.target = export->options->target};
    TRY(client_session_create(&server, &export->session));
    TRY(name_things(export));
    const struct endpoint_source_options wanted = {.session = export->session,
                                                   .table = (const char *)export->table.data,
                                                   .filter = &newest,
                                                   .at_a_time = (unsigned)export->options->streams};
    return endpoint_source_create(&wanted, &export->source);
}

/* --- verifying --- */

/* Sums up what the table has now. */
static status sum_table(struct export *export, uint64_t *items, uint64_t *checksum)
{
    const struct transfer_source source = endpoint_source_interface(export->source);
    struct arena *arena = arena_create(ROW_LIMIT);
    bool is_end = false;
    status s = arena == NULL ? status_out_of_memory() : source.rewind(source.context);
    while (status_is_ok(s)) {
        struct transfer_record record = {0};
        struct item_value item;
        arena_reset(arena);
        s = source.next(source.context, arena, &record, &is_end);
        if (is_end || !status_is_ok(s))
            break;
        status picked = dynamo_item_of_row(&record.change, arena, &item);
        if (status_is_ok(picked)) { /* else it was rejected */
            ++*items;
            *checksum += dynamo_item_checksum(&item);
        }
        status_free(picked);
    }
    arena_destroy(arena);
    return s;
}

static bool is_as_written(const struct export *export, uint64_t items, uint64_t checksum)
{
    return items == dynamo_sink_items(export->sink) &&
           checksum == dynamo_sink_checksum(export->sink);
}

static status verify(struct export *export, bool *is_perfect)
{
    uint64_t items = 0, checksum = 0;
    int how = export->options->transfer.verify;
    if (export->sink == NULL || how == VERIFY_NONE)
        return status_ok();
    TRY(dynamo_writer_check(export->options->directory, &items, &checksum));
    bool is_same = is_as_written(export, items, checksum);
    printf("%" PRIu64 " items read again from the files: %s\n", items,
           is_same ? "the same" : "others than were written");
    *is_perfect &= is_same;
    if (how != VERIFY_FULL)
        return status_ok();
    items = checksum = 0;
    TRY(sum_table(export, &items, &checksum));
    is_same = is_as_written(export, items, checksum);
    printf("%" PRIu64 " items read again from the table: %s\n", items,
           is_same ? "the same" : "others than were written");
    *is_perfect &= is_same;
    return status_ok();
}

/* --- running --- */

static status run(struct export *export, bool *is_perfect)
{
    const struct export_options *o = export->options;
    struct transfer_sink sink = {0};
    struct transfer_result result;
    TRY(open_source(export));
    const struct transfer_source source = endpoint_source_interface(export->source);
    TRY(transfer_job_create(&o->transfer, o->table, (const char *)export->identity.data, &source,
                            &export->job));
    if (!o->transfer.dry_run) {
        const struct dynamo_sink_options wanted = {.directory = o->directory,
                                                   .table = (const char *)export->table.data,
                                                   .session = export->session,
                                                   .rows_per_second = o->transfer.rate,
                                                   .refusal = transfer_job_refusal(export->job)};
        TRY(dynamo_sink_create(&wanted, &export->sink));
        sink = dynamo_sink_interface(export->sink);
    }
    TRY(transfer_job_run(export->job, export->sink == NULL ? NULL : &sink, NULL, &result));
    transfer_job_print(export->job, stdout);
    *is_perfect = result.counts.rejected == 0;
    TRY(verify(export, is_perfect));
    return transfer_job_end(export->job);
}

int export_dynamodb_command(const char *const *arguments)
{
    struct export_options options;
    struct export export = {.options = &options};
    bool is_perfect = false;
    if (command_asks_for(arguments, "--help"))
        return command_print(write_help);
    status s = read_options(arguments, &options);
    if (!status_is_ok(s))
        return command_refuse("export", s);
    s = run(&export, &is_perfect);
    dynamo_sink_destroy(export.sink);
    transfer_job_destroy(export.job);
    endpoint_source_destroy(export.source);
    client_session_destroy(export.session);
    buffer_free(&export.table);
    buffer_free(&export.identity);
    return command_end("export", s, is_perfect);
}
