/* `trestle import`: which of the sources, and what becomes of it. */
#include "cmd/transfer/import.h"

#include "cmd/command.h"
#include "transfer/endpoint_sink.h"

#include <inttypes.h>
#include <stdio.h>

enum { SETUP_LIMIT = 16 << 20 };

/* --- running --- */

struct import {
    const struct transfer_options *options;
    const struct import_target *target;
    const struct transfer_source *source;
    struct transfer_job *job;
    struct arena *setup;
    struct client_session *session;
    const BtAdmin__Table *schema;  /* of the families that rows have */
    const BtAdmin__Table *present; /* of the table as it is there */
    struct buffer table;           /* its full name, and a NUL */
    struct endpoint_sink *sink;
    struct verification *verification; /* NULL: none is asked for */
};

/* Reads the table's schema, for sources that do not tell what families rows will have. */
static status find_table(struct import *import)
{
    const char *table_id = import->target->table_id;
    status s = transfer_get_schema(import->session, table_id, import->setup, &import->schema);
    import->present = import->schema;
    if (s.code != STATUS_NOT_FOUND)
        return s;
    status_free(s);
    return status_make(STATUS_FAILED_PRECONDITION,
                       "there is no table %s: --families says what it is to be made with",
                       table_id);
}

static status prepare_table(struct import *import)
{
    const struct import_target *target = import->target;
    if (target->schema == NULL && target->family_count == 0)
        return find_table(import);
    struct transfer_table table = {.id = target->table_id,
                                   .schema = target->schema,
                                   .splits = target->splits,
                                   .split_count = target->split_count};
    if (table.schema == NULL)
        TRY(transfer_make_schema(target->families, target->family_count, import->setup,
                                 &table.schema));
    import->schema = table.schema;
    bool is_made;
    TRY(transfer_prepare_table(import->session, &table, import->setup, &is_made, &import->present));
    if (is_made)
        transfer_job_note_made(import->job);
    return status_ok();
}

/* Looks at the server, except for a dry run. */
static status connect_import(struct import *import)
{
    const struct import_target *target = import->target;
    const struct client_session_options server = {.target = *target->server, .loop = target->loop};
    if (import->options->dry_run)
        return status_ok();
    TRY(client_session_create(&server, &import->session));
    buffer_append_format(&import->table, "%s/tables/%s%c", client_session_instance(import->session),
                         target->table_id, 0);
    if (import->table.failed)
        return status_out_of_memory();
    TRY(prepare_table(import));
    const char *table = (const char *)import->table.data;
    const struct endpoint_sink_options sink = {.session = import->session,
                                               .table = table,
                                               .schema = import->schema,
                                               .rows_per_second = import->options->rate,
                                               .refusal = transfer_job_refusal(import->job)};
    TRY(endpoint_sink_create(&sink, &import->sink));
    if (import->options->verify == VERIFY_NONE)
        return status_ok();
    TRY(verification_create(import->session, table, import->options->verify == VERIFY_SAMPLE,
                            &import->verification));
    if (target->records_add)
        verification_know_schema(import->verification, import->present);
    return status_ok();
}

static void print_verification(const struct transfer_result *result)
{
    if (result->is_verified)
        printf("%" PRIu64 " rows compared, %" PRIu64 " different\n", result->compared,
               result->different);
    if (result->strays > 0)
        printf("%" PRIu64 " rows are in the table, and not in the source\n", result->strays);
}

static status run(struct import *import, bool *is_perfect)
{
    struct transfer_result result;
    import->setup = arena_create(SETUP_LIMIT);
    if (import->setup == NULL)
        return status_out_of_memory();
    TRY(transfer_job_create(import->options, import->target->table_id, import->target->identity,
                            import->source, &import->job));
    TRY(connect_import(import));
    struct transfer_sink rows = {0};
    if (import->sink != NULL)
        rows = endpoint_sink_interface(import->sink);
    TRY(transfer_job_run(import->job, import->sink == NULL ? NULL : &rows, import->verification,
                         &result));
    TRY(transfer_job_end(import->job));
    transfer_job_print(import->job, stdout);
    print_verification(&result);
    *is_perfect = result.counts.rejected == 0 && result.different == 0 && result.strays == 0;
    return status_ok();
}

status import_run(const struct transfer_options *options, const struct import_target *target,
                  const struct transfer_source *source, bool *is_perfect)
{
    struct import import = {.options = options, .target = target, .source = source};
    *is_perfect = false;
    status s = run(&import, is_perfect);
    endpoint_sink_destroy(import.sink);
    verification_destroy(import.verification);
    client_session_destroy(import.session);
    transfer_job_destroy(import.job);
    buffer_free(&import.table);
    arena_destroy(import.setup);
    return s;
}

/* --- which --- */

static const struct command_kind all[] = {
    {"dynamodb", import_dynamodb_command, "what DynamoDB has exported"},
    {"csv", import_csv_command, "comma-separated values, as cbt import takes them, or of your own"},
    {"jsonl", import_jsonl_command, "JSON, an object a line"},
    {"avro", import_avro_command, "Avro, as Google's Dataflow templates write it, or of your own"},
};

static const struct command_kinds kinds = {.command = "import",
                                           .arguments = "SOURCE [OPTION…]",
                                           .question = "what from?",
                                           .all = all,
                                           .count = sizeof all / sizeof *all};

int import_command(const char *const *arguments)
{
    return command_run_kind(&kinds, arguments);
}
