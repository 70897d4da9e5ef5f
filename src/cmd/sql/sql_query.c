/* A query: prepared, executed, taken up again when the connection breaks, printed as it comes.
 *
 *     prepare ──► execute ──► done
 *        ▲           │ UNAVAILABLE: again, with the last resume token (RESUMES_MOST times in a row
 *        │           │ without one that is new), after a wait
 *        └───────────┘ the prepared query has expired, and nothing has come: again, once */
#include "cmd/sql/sql_batches.h"
#include "cmd/sql/sql_shell.h"
#include "google/bigtable/v2/bigtable.pb-c.h"

#include <errno.h>
#include <stdlib.h>

enum {
    ARENA_LIMIT = 256 << 20,
    RESUMES_MOST = 5,
    FIRST_WAIT_US = 100 * 1000, /* twice as long each time */
};

#define PREPARE_QUERY "/google.bigtable.v2.Bigtable/PrepareQuery"
#define EXECUTE_QUERY "/google.bigtable.v2.Bigtable/ExecuteQuery"

static const char *const explain_words[] = {
    [EXPLAIN_NONE] = NULL, [EXPLAIN_PLAN] = "plan", [EXPLAIN_ANALYZE] = "analyze"};

struct query_run {
    struct shell *shell;
    const char *text;
    enum shell_explain explain;
    struct arena *arena;         /* of what was prepared */
    struct arena *message_arena; /* of one message */
    bytes prepared;
    const Bt__ProtoSchema *schema;
    struct sql_batches batches;
    struct shell_printer printer;
    bool is_printing;
};

/* --- output --- */

status shell_flush(struct shell *shell)
{
    struct buffer *out = &shell->out;
    if (out->failed) {
        buffer_clear(out);
        return status_out_of_memory();
    }
    bool fine = fwrite(out->data, 1, out->size, shell->to) == out->size && fflush(shell->to) == 0;
    int error = errno;
    buffer_clear(out);
    if (fine)
        return status_ok();
    shell->has_no_reader = error == EPIPE;
    char words[128];
    return status_make(STATUS_ABORTED, "cannot write the result: %s",
                       strerror_r(error, words, sizeof words));
}

/* --- preparing --- */

static status add_types(Bt__PrepareQueryRequest *request, const struct shell_parameters *parameters,
                        struct arena *arena)
{
    size_t i = 0;
    request->n_param_types = parameters->count;
    request->param_types = arena_alloc(arena, parameters->count * sizeof *request->param_types);
    if (request->param_types == NULL)
        return status_out_of_memory();
    for (const struct shell_parameter *at = parameters->first; at != NULL; at = at->next) {
        Bt__PrepareQueryRequest__ParamTypesEntry *entry;
        PROTO_NEW(arena, entry, BT__PREPARE_QUERY_REQUEST__PARAM_TYPES_ENTRY__INIT);
        entry->key = at->name;
        entry->value = at->type;
        request->param_types[i++] = entry;
    }
    return status_ok();
}

static status call_prepare(struct shell *shell, const char *query, enum shell_explain explain,
                           struct arena *arena, const Bt__PrepareQueryResponse **out)
{
    Bt__PrepareQueryRequest request = BT__PREPARE_QUERY_REQUEST__INIT;
    Bt__ProtoFormat format = BT__PROTO_FORMAT__INIT;
    request.instance_name = client_session_instance(shell->session);
    request.app_profile_id = client_session_app_profile(shell->session);
    request.query = query;
    request.data_format_case = BT__PREPARE_QUERY_REQUEST__DATA_FORMAT_PROTO_FORMAT;
    request.proto_format = &format;
    const ProtobufCMessage *message;
    TRY(add_types(&request, &shell->parameters, arena));
    TRY(client_session_call(shell->session, PREPARE_QUERY, explain_words[explain], &request.base,
                            &bt__prepare_query_response__descriptor, arena, &message));
    *out = (const void *)message;
    return status_ok();
}

static status find_schema(const Bt__PrepareQueryResponse *response, const Bt__ProtoSchema **out)
{
    const Bt__ResultSetMetadata *metadata = response->metadata;
    if (metadata == NULL || metadata->schema_case != BT__RESULT_SET_METADATA__SCHEMA_PROTO_SCHEMA)
        return status_make(STATUS_INTERNAL, "the server did not say which columns there are");
    *out = metadata->proto_schema;
    for (size_t i = 0; i < (*out)->n_columns; i++)
        if ((*out)->columns[i]->type == NULL)
            return status_make(STATUS_INTERNAL, "the server sent a column without a type");
    return status_ok();
}

status shell_columns(struct shell *shell, const char *query, struct arena *arena,
                     const Bt__ProtoSchema **out)
{
    const Bt__PrepareQueryResponse *response;
    TRY(call_prepare(shell, query, EXPLAIN_NONE, arena, &response));
    return find_schema(response, out);
}

/* An explanation has one column of lines; a server that does not know the header runs the query. */
static status check_plan(const Bt__ProtoSchema *schema)
{
    if (schema->n_columns == 1 && strcmp(schema->columns[0]->name, "plan") == 0 &&
        schema->columns[0]->type->kind_case == BT__TYPE__KIND_STRING_TYPE)
        return status_ok();
    return status_make(STATUS_UNIMPLEMENTED, "the server does not explain queries");
}

static status prepare(struct query_run *run)
{
    const Bt__PrepareQueryResponse *response;
    struct shell *shell = run->shell;
    arena_reset(run->arena);
    TRY(call_prepare(shell, run->text, run->explain, run->arena, &response));
    TRY(find_schema(response, &run->schema));
    if (run->explain != EXPLAIN_NONE)
        TRY(check_plan(run->schema));
    run->prepared = proto_bytes(response->prepared_query);
    return sql_batches_create(run->schema, shell_printer_row, &run->printer, &run->batches);
}

/* --- executing --- */

static status add_values(Bt__ExecuteQueryRequest *request,
                         const struct shell_parameters *parameters, struct arena *arena)
{
    size_t i = 0;
    request->n_params = parameters->count;
    request->params = arena_alloc(arena, parameters->count * sizeof *request->params);
    if (request->params == NULL)
        return status_out_of_memory();
    for (const struct shell_parameter *at = parameters->first; at != NULL; at = at->next) {
        Bt__ExecuteQueryRequest__ParamsEntry *entry;
        PROTO_NEW(arena, entry, BT__EXECUTE_QUERY_REQUEST__PARAMS_ENTRY__INIT);
        entry->key = at->name;
        PROTO_NEW(arena, entry->value, BT__VALUE__INIT);
        *entry->value = *at->value;
        entry->value->type = at->type;
        request->params[i++] = entry;
    }
    return status_ok();
}

/* Not before a message comes: until then the query may have to be prepared again. */
static status begin_printing(struct query_run *run)
{
    struct shell *shell = run->shell;
    struct shell_style style = shell->style;
    if (run->is_printing)
        return status_ok();
    run->is_printing = true;
    if (run->explain != EXPLAIN_NONE)
        style.format = FORMAT_PLAIN;
    return shell_printer_begin(&run->printer, style, run->schema, run->arena, &shell->out);
}

static status take_message(void *context, bytes wire)
{
    struct query_run *run = context;
    ProtobufCMessage *message;
    TRY(begin_printing(run));
    arena_reset(run->message_arena);
    TRY(proto_decode(&bt__execute_query_response__descriptor, wire, run->message_arena, &message));
    const Bt__ExecuteQueryResponse *response = (const void *)message;
    if (response->response_case != BT__EXECUTE_QUERY_RESPONSE__RESPONSE_RESULTS)
        return status_make(STATUS_INTERNAL, "the server sent what is no part of a result");
    TRY(sql_batches_add(&run->batches, response->results));
    return run->shell->out.size > 0 ? shell_flush(run->shell) : status_ok();
}

static status execute(struct query_run *run, bool *is_expired)
{
    struct shell *shell = run->shell;
    Bt__ExecuteQueryRequest request = BT__EXECUTE_QUERY_REQUEST__INIT;
    request.instance_name = client_session_instance(shell->session);
    request.app_profile_id = client_session_app_profile(shell->session);
    request.prepared_query = proto_data(run->prepared);
    request.resume_token = proto_data(buffer_bytes(&run->batches.token));
    const struct session_call call = {.path = EXECUTE_QUERY,
                                      .request = &request.base,
                                      .timeout_us = INT64_MAX,
                                      .on_message = take_message,
                                      .context = run};
    arena_reset(run->message_arena);
    TRY(add_values(&request, &shell->parameters, run->message_arena));
    return client_session_stream(shell->session, &call, is_expired);
}

static status prepare_anew(struct query_run *run)
{
    sql_batches_free(&run->batches);
    run->batches = (struct sql_batches){0};
    return prepare(run);
}

/* The attempts after failures. */
struct recovery {
    bool was_prepared_anew;
    unsigned resumes;    /* in a row, without a new token */
    uint64_t token_hash; /* of the token at the last failure */
};

static void note_progress(struct recovery *recovery, const struct query_run *run)
{
    uint64_t hash = bytes_hash(buffer_bytes(&run->batches.token));
    if (hash != recovery->token_hash)
        recovery->resumes = 0;
    recovery->token_hash = hash;
}

/* OK if the query was prepared again, or may be taken up again; else the failure, which it takes.
 */
static status recover(struct query_run *run, struct recovery *recovery, status failure,
                      bool is_expired)
{
    bool has_begun = run->batches.token.size > 0 || run->batches.is_ahead;
    note_progress(recovery, run);
    if (is_expired && !has_begun && !recovery->was_prepared_anew) {
        recovery->was_prepared_anew = true;
        status_free(failure);
        return prepare_anew(run);
    }
    if (failure.code != STATUS_UNAVAILABLE || recovery->resumes == RESUMES_MOST ||
        !sql_batches_rewind(&run->batches))
        return failure;
    status_free(failure);
    return client_session_wait(run->shell->session, (int64_t)FIRST_WAIT_US << recovery->resumes++);
}

static status run_to_end(struct query_run *run)
{
    struct recovery recovery = {0};
    TRY(prepare(run));
    for (;;) {
        bool is_expired = false;
        status s = execute(run, &is_expired);
        if (status_is_ok(s))
            return sql_batches_end(&run->batches);
        TRY(recover(run, &recovery, s, is_expired));
    }
}

/* --- a query as a whole --- */

static status run_and_print(struct query_run *run)
{
    status s = run_to_end(run);
    if (status_is_ok(s))
        s = begin_printing(run); /* if there was not even an empty batch */
    if (run->is_printing)
        shell_printer_end(&run->printer, status_is_ok(s));
    status flushed = shell_flush(run->shell);
    if (status_is_ok(s))
        return flushed;
    status_free(flushed);
    return s;
}

static void print_time(struct shell *shell, int64_t us)
{
    fprintf(shell->to, "Time: %.3f ms\n", (double)us / 1000);
    fflush(shell->to);
}

status shell_query(struct shell *shell, bytes text, enum shell_explain explain)
{
    struct query_run run = {.shell = shell,
                            .explain = explain,
                            .arena = arena_create(ARENA_LIMIT),
                            .message_arena = arena_create(ARENA_LIMIT)};
    struct clock *clock = clock_system();
    int64_t began_us = clock_steady_us(clock);
    char *query = bytes_to_string(text);
    status s = status_out_of_memory();
    if (run.arena != NULL && run.message_arena != NULL && query != NULL) {
        run.text = query;
        s = run_and_print(&run);
    }
    free(query);
    sql_batches_free(&run.batches);
    arena_destroy(run.message_arena);
    arena_destroy(run.arena);
    if (shell->has_timing)
        print_time(shell, clock_steady_us(clock) - began_us);
    return s;
}
