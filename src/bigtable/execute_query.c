/* ExecuteQuery: rows of a result as batches of values.
 *
 *     on the pool: rows are computed into a batch, which goes out when it is full
 *     on the loop: while the client does not keep up, and to check again whether it may ask;
 *                  and all of a query of one row by its key, whose plan was kept (plan_cache.h)
 *                  and whose row is in memory. One that has to wait goes on on the pool
 *
 *  1. A batch ends with the first row that brings it to BATCH_BYTES. It carries its checksum, and
 *     the first of all says `reset`.
 *  2. A resume token comes where the result can be taken up again so that each row comes once: at
 *     the end; and after each batch, if rows come in the order of the table's keys, one of the
 *     result from one of the table (sql_execution_place). A client holds the rows back until it
 *     has one.
 *  3. A turn on the pool ends with its batch, or after QUERY_TURN_US if the query can pause: then
 *     others that wait have theirs first. One that cannot (it sorts, or is within one row) is ended
 *     after QUERY_MOST_TURN_CPU_US, so that no query keeps others waiting for ever.
 *  4. The execution is used by one thread at a time, and holds nothing of the store while it waits
 *     for the client: what is read next is read as it is then, as by ReadRows. */
#include "base/budget.h"
#include "base/crc32c.h"
#include "bigtable/data_call.h"
#include "bigtable/data_methods.h"
#include "bigtable/plan_cache.h"
#include "bigtable/query.h"
#include "bigtable/query_access.h"
#include "bigtable/query_materialized.h"
#include "bigtable/query_messages.h"
#include "sql/run/execute.h"
#include "wire/proto_call.h"

enum { BATCH_BYTES = 2 << 20, LARGE_BATCH_BYTES = 2 * BATCH_BYTES };

struct execute_query {
    struct data_call data;
    const Bt__ExecuteQueryRequest *request;
    struct kept_plan *kept; /* held: of the token, until the query has it; NULL: none */
    struct query query;
    struct sql_value *values; /* of the parameters */
    struct sql_execution *execution;
    struct task task;
    struct query_memory memory; /* with --memory */
    struct buffer batch;
    struct buffer place; /* of the last row: a key of the table */
    size_t sent_bytes;   /* that the client may not have read yet */
    uint64_t rows;       /* of the result so far, earlier calls' included */
    size_t paused_bytes; /* that it holds while others have their turn: see hold_memory */
    bool has_sent;       /* a batch */
    bool is_done;        /* all is sent, and too much waits to be read as to forget it */
    bool is_waiting;     /* for the client; loop's thread only */
    bool is_on_loop;     /* it runs there, and must not wait */
    status result;
};

/* --- messages --- */

static void send_results(struct execute_query *self, Bt__PartialResultSet *results)
{
    Bt__ExecuteQueryResponse response = BT__EXECUTE_QUERY_RESPONSE__INIT;
    response.response_case = BT__EXECUTE_QUERY_RESPONSE__RESPONSE_RESULTS;
    response.results = results;
    results->reset = !self->has_sent;
    self->has_sent = true;
    grpc_call_send_proto(self->data.call, &response.base);
}

static void encode_token(struct execute_query *self, bool is_end, struct buffer *out)
{
    Query__ResumeToken token = QUERY__RESUME_TOKEN__INIT;
    token.row_key = proto_data(buffer_bytes(&self->place));
    token.rows = self->rows;
    token.is_end = is_end;
    proto_encode(&token.base, out);
}

/* --- what a batch takes --- */

/* With what goes out, which is a copy, until the client has read it. */
static status hold_sent(struct execute_query *self)
{
    size_t size = self->batch.size;
    if (!budget_take(self->batch.budget, size))
        return status_out_of_memory();
    self->sent_bytes += size;
    return status_ok();
}

static void let_go_of_sent(struct execute_query *self)
{
    budget_give_back(self->batch.budget, self->sent_bytes);
    self->sent_bytes = 0;
}

/* Forgets the batch; that of a large row gives its memory back. */
static void forget_batch(struct execute_query *self)
{
    struct budget *budget = self->batch.budget;
    if (self->batch.capacity > LARGE_BATCH_BYTES) {
        buffer_free(&self->batch);
        self->batch.budget = budget;
    }
    buffer_clear(&self->batch);
}

/* Room for a large row at once: what grows by the way is there twice meanwhile. */
static void make_room(struct execute_query *self, const struct sql_value *row, size_t count)
{
    size_t size = sql_weigh(row, count) * (size_t)SQL_WEIGHT_BYTES;
    if (size > LARGE_BATCH_BYTES)
        buffer_reserve(&self->batch, size + BATCH_BYTES);
}

/* --- */

/* The batch in hand, with a token if the result can be resumed behind it. */
static status send_batch(struct execute_query *self)
{
    Bt__ProtoRowsBatch rows = BT__PROTO_ROWS_BATCH__INIT;
    Bt__PartialResultSet results = BT__PARTIAL_RESULT_SET__INIT;
    struct buffer token = {0};
    if (self->batch.failed || self->place.failed)
        return status_out_of_memory();
    rows.batch_data = proto_data(buffer_bytes(&self->batch));
    results.partial_rows_case = BT__PARTIAL_RESULT_SET__PARTIAL_ROWS_PROTO_ROWS_BATCH;
    results.proto_rows_batch = &rows;
    if (self->batch.size > 0) {
        results.has_batch_checksum_case = BT__PARTIAL_RESULT_SET__HAS_BATCH_CHECKSUM_BATCH_CHECKSUM;
        results.batch_checksum = crc32c_of(buffer_bytes(&self->batch));
    }
    if (self->place.size > 0) {
        encode_token(self, false, &token);
        results.resume_token = proto_data(buffer_bytes(&token));
    }
    status s = token.failed ? status_out_of_memory() : hold_sent(self);
    if (status_is_ok(s))
        send_results(self, &results);
    buffer_free(&token);
    forget_batch(self);
    return s;
}

/* Sends the rest, and the token that says that this was all. */
static status send_end(struct execute_query *self)
{
    Bt__PartialResultSet results = BT__PARTIAL_RESULT_SET__INIT;
    struct buffer token = {0};
    buffer_clear(&self->place);
    if (self->batch.size > 0 || !self->has_sent)
        TRY(send_batch(self));
    encode_token(self, true, &token);
    results.resume_token = proto_data(buffer_bytes(&token));
    if (!token.failed)
        send_results(self, &results);
    status s = token.failed ? status_out_of_memory() : status_ok();
    buffer_free(&token);
    return s;
}

static status send_metadata(struct execute_query *self)
{
    Bt__ExecuteQueryResponse response = BT__EXECUTE_QUERY_RESPONSE__INIT;
    response.response_case = BT__EXECUTE_QUERY_RESPONSE__RESPONSE_METADATA;
    TRY(query_metadata(query_result(&self->query), self->data.arena, &response.metadata));
    grpc_call_send_proto(self->data.call, &response.base);
    return status_ok();
}

/* --- the request --- */

static const Bt__Value *find_value(const struct execute_query *self, const char *name)
{
    for (size_t i = 0; i < self->request->n_params; i++)
        if (strcmp(self->request->params[i]->key, name) == 0)
            return self->request->params[i]->value;
    return NULL;
}

/* Google's clients give each value its type, for a prepared query, too; production refuses one
 * without, though the API's comment says that it is then the prepared query's. */
static status check_has_type(const char *name, const Bt__Value *value)
{
    if (value->type != NULL && value->type->kind_case != BT__TYPE__KIND__NOT_SET)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT, "params '%s' has no type", name);
}

static status check_type(const char *name, const Bt__Value *value, const struct sql_type *expected,
                         struct arena *arena)
{
    const struct sql_type *type;
    TRY(check_has_type(name, value));
    TRY(query_type_from_message(value->type, arena, &type));
    if (sql_type_equal(type, expected))
        return status_ok();
    if (type->kind != expected->kind)
        return query_parameter_mismatch(name, type->kind, expected->kind);
    return status_make(STATUS_INVALID_ARGUMENT,
                       "params '%s' has another type than the prepared query expects", name);
}

static status bind_values(struct execute_query *self)
{
    struct query *query = &self->query;
    struct arena *arena = self->data.arena;
    self->values = arena_alloc(arena, query->parameter_count * sizeof *self->values);
    if (self->values == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < query->parameter_count; i++) {
        const struct sql_parameter *parameter = &query->parameters[i];
        const Bt__Value *value = find_value(self, parameter->name);
        if (value == NULL)
            return status_make(STATUS_INVALID_ARGUMENT, "params does not contain key '%s'",
                               parameter->name);
        TRY(check_type(parameter->name, value, parameter->type, arena));
        TRY(query_value_from_message(parameter->name, value, parameter->type, arena,
                                     &self->values[i]));
    }
    return status_ok();
}

/* Binds the parameters that views are asked with. All are STRINGs. */
static status bind_view_parameters(struct execute_query *self)
{
    const Bt__ExecuteQueryRequest *request = self->request;
    struct sql_view_parameter *parameters =
        arena_alloc(self->data.arena, request->n_view_parameters * sizeof *parameters);
    if (parameters == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < request->n_view_parameters; i++) {
        const Bt__Value *value = request->view_parameters[i]->value;
        parameters[i].name = request->view_parameters[i]->key;
        parameters[i].value = sql_null();
        if (value != NULL)
            TRY(query_value_from_message(parameters[i].name, value, &sql_string, self->data.arena,
                                         &parameters[i].value));
    }
    self->query.session.view_parameters = parameters;
    self->query.session.view_parameter_count = request->n_view_parameters;
    return status_ok();
}

/* Declares the values of a query that was not prepared. */
static status declare_values(struct execute_query *self)
{
    const Bt__ExecuteQueryRequest *request = self->request;
    struct arena *arena = self->data.arena;
    struct sql_parameter *parameters = arena_alloc(arena, request->n_params * sizeof *parameters);
    if (parameters == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < request->n_params; i++) {
        static const Bt__Value nothing = BT__VALUE__INIT;
        const Bt__Value *given = request->params[i]->value;
        const Bt__Value *value = given == NULL ? &nothing : given;
        parameters[i].name = request->params[i]->key;
        TRY(check_has_type(parameters[i].name, value));
        TRY(query_type_from_message(value->type, arena, &parameters[i].type));
    }
    self->query.parameters = parameters;
    self->query.parameter_count = request->n_params;
    return status_ok();
}

static status plan_prepared(struct execute_query *self)
{
    struct query *query = &self->query;
    if (self->request->data_format_case != BT__EXECUTE_QUERY_REQUEST__DATA_FORMAT__NOT_SET)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "data_format must not be set together with prepared_query");
    TRY(query_plan_prepared(query, proto_bytes(self->request->prepared_query)));
    TRY(query_catalog_check(&query->catalog, &query->plan));
    return query_check_readable(&query->catalog, &query->plan);
}

static status plan_text(struct execute_query *self)
{
    TRY(declare_values(self));
    TRY(query_plan(&self->query, self->request->query));
    TRY(query_check_readable(&self->query.catalog, &self->query.plan));
    return self->request->resume_token.len > 0 ? status_ok() : send_metadata(self);
}

static status plan(struct execute_query *self)
{
    bool has_text = self->request->query[0] != '\0';
    bool has_token = self->request->prepared_query.len > 0;
    if (has_text == has_token)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Exactly one of query and prepared_query must be set");
    return has_token ? plan_prepared(self) : plan_text(self);
}

/* --- taking up again --- */

static status read_resume_token(struct execute_query *self, struct sql_execution_spec *spec,
                                bool *is_end)
{
    bytes token = proto_bytes(self->request->resume_token);
    ProtobufCMessage *message;
    *is_end = false;
    if (token.size == 0)
        return status_ok();
    TRY(proto_decode(&query__resume_token__descriptor, token, self->data.arena, &message));
    const Query__ResumeToken *resume = (const void *)message;
    *is_end = resume->is_end;
    spec->after_key = proto_bytes(resume->row_key);
    spec->after_rows = self->rows = resume->rows;
    self->has_sent = true;
    return status_ok();
}

static bool is_given_up(const void *call)
{
    return grpc_call_is_cancelled(call);
}

static status begin(struct execute_query *self, bool *is_end)
{
    struct data_call *data = &self->data;
    status s = query_init(&self->query, data->bigtable, data->call, data->arena,
                          self->request->instance_name);
    self->query.kept = self->kept;
    self->query.catalog.must_not_wait = self->is_on_loop;
    self->kept = NULL;
    TRY(s);
    bool is_bounded = data->bigtable->values != NULL;
    self->batch.budget = query_memory_init(
        &self->memory, is_bounded ? &data->bigtable->query_room : NULL, is_given_up, data->call);
    self->query.session.budget = self->query.catalog.budget = self->batch.budget;
    query_take_helpers(&self->query);
    TRY(plan(self));
    TRY(bind_values(self));
    TRY(bind_view_parameters(self));
    struct sql_execution_spec spec = {.plan = &self->query.plan,
                                      .catalog = &self->query.catalog.catalog,
                                      .parameters = self->values,
                                      .session = &self->query.session,
                                      .memory_limit = data->bigtable->query_memory,
                                      .is_measured = self->query.explain == QUERY_ANALYZE};
    TRY(read_resume_token(self, &spec, is_end));
    return sql_execution_create(&spec, &self->execution);
}

/* --- running --- */

static void release_memory(struct execute_query *self)
{
    atomic_fetch_sub(&self->data.bigtable->paused_query_bytes, self->paused_bytes);
    self->paused_bytes = 0;
}

/* Queries whose turn is over may hold as much together as those may that run. */
static status hold_memory(struct execute_query *self)
{
    enum { THREADS_WORTH = 4 };
    struct bigtable *bigtable = self->data.bigtable;
    size_t bytes = sql_execution_footprint(self->execution);
    size_t others = atomic_fetch_add(&bigtable->paused_query_bytes, bytes);
    self->paused_bytes = bytes;
    if (others + bytes <= THREADS_WORTH * bigtable->query_memory)
        return status_ok();
    release_memory(self); /* now, or those that pause before this one has ended end with it */
    return status_make(STATUS_RESOURCE_EXHAUSTED,
                       "Too many long queries hold memory at a time; this one holds %zu MB",
                       bytes >> 20);
}

static void post_to_pool(struct execute_query *self);

static void end(struct task *task)
{
    struct execute_query *self = LIST_ENTRY(&task->link, struct execute_query, task.link);
    release_memory(self);
    let_go_of_sent(self);
    sql_execution_destroy(self->execution);
    query_free(&self->query);
    kept_plan_release(self->kept);
    buffer_free(&self->batch);
    buffer_free(&self->place);
    data_call_finish(&self->data, self->result);
}

/* Tells what the query read, and how, while the execution still knows it. */
static void tell_of_slowness(struct execute_query *self)
{
    struct clock *clock = cluster_clock(self->data.bigtable->cluster);
    struct explained_run run = {self->rows, clock_steady_us(clock) - self->data.started_us};
    struct buffer text = {0};
    status s = explain_words(self->execution, &run, &text);
    if (status_is_ok(s) && !text.failed)
        grpc_call_explain(self->data.call, arena_copy(self->data.arena, buffer_bytes(&text)));
    status_ignore(s); /* then there is the query alone */
    buffer_free(&text);
}

static void tell_of_run(struct execute_query *self)
{
    struct grpc_call *call = self->data.call;
    if (self->execution == NULL)
        return;
    struct sql_execution_counts counts = sql_execution_counts(self->execution);
    grpc_call_count(call, (int64_t)self->rows, (int64_t)counts.rows_read);
    if (grpc_call_is_slow(call))
        tell_of_slowness(self);
}

static void end_execution(struct execute_query *self)
{
    sql_execution_destroy(self->execution);
    self->execution = NULL;
}

static void post_end(struct execute_query *self, status result)
{
    tell_of_run(self);
    end_execution(self); /* its memory is this thread's */
    self->result = result;
    self->task.run = end;
    grpc_call_step(self->data.call, CALL_WORKS);
    loop_post(grpc_call_loop(self->data.call), &self->task);
}

static status take_row(struct execute_query *self, const struct sql_value *row)
{
    const struct sql_operator *root = self->query.plan.root;
    self->rows++;
    if (self->query.explain != QUERY_RUN)
        return status_ok();
    if (sql_weigh(row, root->column_count) > SQL_WEIGHT_LIMIT)
        return status_make(STATUS_RESOURCE_EXHAUSTED, "A row of the result is larger than %d MB",
                           (SQL_WEIGHT_LIMIT >> 20) * SQL_WEIGHT_BYTES);
    make_room(self, row, root->column_count);
    for (size_t i = 0; i < root->column_count; i++)
        query_value_append(&self->batch, root->columns[i].type, &row[i]);
    buffer_clear(&self->place);
    buffer_append_bytes(&self->place, sql_execution_place(self->execution));
    return self->batch.failed ? status_out_of_memory() : status_ok();
}

/* Sends the plan, which was asked for instead of the rows. */
static status send_plan(struct execute_query *self)
{
    struct clock *clock = cluster_clock(self->data.bigtable->cluster);
    struct explained_run run = {self->rows, clock_steady_us(clock) - self->data.started_us};
    bool has_run = self->query.explain == QUERY_ANALYZE;
    TRY(explain_query(self->execution, has_run ? &run : NULL, &self->batch));
    return send_end(self);
}

static status end_rows(struct execute_query *self)
{
    return self->query.explain == QUERY_RUN ? send_end(self) : send_plan(self);
}

/* Fills one batch, or what there is of it at the end of the turn; `*is_end` says that there is no
 * more. */
static status fill_batch(struct execute_query *self, bool *is_end)
{
    *is_end = self->query.explain == QUERY_PLAN;
    if (*is_end)
        return send_plan(self);
    while (self->batch.size < BATCH_BYTES) {
        const struct sql_value *row;
        if (grpc_call_is_cancelled(self->data.call))
            return status_make(STATUS_CANCELLED, "The call was cancelled");
        TRY(sql_execution_next(self->execution, &row));
        if (sql_execution_is_paused(self->execution))
            return hold_memory(self);
        *is_end = row == NULL;
        if (row == NULL)
            return end_rows(self);
        TRY(take_row(self, row));
    }
    if (self->batch.size > LARGE_BATCH_BYTES)
        sql_execution_rest(self->execution);
    return send_batch(self);
}

static void go_on_or_end(struct execute_query *self)
{
    let_go_of_sent(self);
    if (self->is_done)
        end(&self->task);
    else
        post_to_pool(self);
}

static void end_execution_of(struct task *task)
{
    struct execute_query *self = LIST_ENTRY(&task->link, struct execute_query, task.link);
    post_end(self, self->result);
}

/* Threads that help with the query are waited for, which a loop must not; but when the pool has no
 * room, for the few milliseconds between two looks of their watches. */
static void end_on_thread(struct execute_query *self, status result)
{
    self->result = result;
    self->task.run = self->execution == NULL ? end : end_execution_of;
    if (self->execution == NULL || !pool_submit(self->data.bigtable->queries, &self->task))
        end(&self->task);
}

static void wait_for_client(struct task *task)
{
    struct execute_query *self = LIST_ENTRY(&task->link, struct execute_query, task.link);
    status s = self->is_done ? status_ok() : grpc_call_admit_again(self->data.call);
    if (status_is_ok(s) && !self->is_done)
        s = query_access_again(&self->query.catalog);
    if (!status_is_ok(s)) {
        end_on_thread(self, s);
        return;
    }
    bool must_wait =
        grpc_call_is_congested(self->data.call) && !grpc_call_is_cancelled(self->data.call);
    if (must_wait) {
        if (self->execution != NULL)
            sql_execution_rest(self->execution);
        self->is_waiting = true;
        grpc_call_step(self->data.call, CALL_AWAITS_CLIENT);
    } else {
        go_on_or_end(self);
    }
}

static void go_on(void *context)
{
    struct execute_query *self = context;
    if (!self->is_waiting)
        return;
    self->is_waiting = false;
    go_on_or_end(self);
}

/* Publishes the call's counts so far, for the list of running requests. */
static void count_so_far(struct execute_query *self)
{
    if (self->execution == NULL)
        return;
    struct sql_execution_counts counts = sql_execution_counts(self->execution);
    grpc_call_count(self->data.call, (int64_t)self->rows, (int64_t)counts.rows_read);
}

/* Nothing is left to do, but what is sent counts until it is read. */
static void finish_large(struct execute_query *self)
{
    tell_of_run(self);
    end_execution(self);
    self->is_done = true;
}

/* Begins if it has not begun, and fills a batch. `*is_end`: all is sent. */
static status compute(struct execute_query *self, bool *is_end)
{
    *is_end = false;
    if (self->execution == NULL)
        TRY(begin(self, is_end));
    return *is_end ? send_end(self) : fill_batch(self, is_end);
}

static void run(struct task *task)
{
    struct execute_query *self = LIST_ENTRY(&task->link, struct execute_query, task.link);
    bool is_end;
    grpc_call_step(self->data.call, CALL_QUERIES);
    count_so_far(self);
    release_memory(self);
    if (self->execution != NULL)
        query_begin_turn(&self->query);
    status s = compute(self, &is_end);
    if (!status_is_ok(s) || (is_end && self->sent_bytes <= LARGE_BATCH_BYTES)) {
        post_end(self, query_memory_tell(&self->memory, s));
        return;
    }
    if (is_end)
        finish_large(self);
    self->task.run = wait_for_client;
    grpc_call_step(self->data.call, CALL_AWAITS_LOOP);
    loop_post(grpc_call_loop(self->data.call), &self->task);
}

static void post_to_pool(struct execute_query *self)
{
    self->task.run = run;
    grpc_call_step(self->data.call, CALL_AWAITS_THREAD);
    if (pool_submit(self->data.bigtable->queries, &self->task))
        return;
    self->result = pool_full();
    end(&self->task);
}

/* With --memory a query may have to wait for room, too. */
static bool may_run_on_loop(const struct execute_query *self)
{
    return self->kept != NULL && self->kept->is_quick && self->data.bigtable->values == NULL;
}

/* A few microseconds of work are not worth the way to another thread and back. */
static void run_on_loop(struct execute_query *self)
{
    bool is_end;
    grpc_call_step(self->data.call, CALL_QUERIES);
    self->is_on_loop = true;
    self->result = compute(self, &is_end);
    self->is_on_loop = self->query.catalog.must_not_wait = false;
    if (status_is_ok(self->result) && !is_end) {
        post_to_pool(self);
        return;
    }
    tell_of_run(self);
    grpc_call_step(self->data.call, CALL_WORKS);
    end(&self->task);
}

void execute_query(void *context, struct grpc_call *call, bytes request)
{
    struct execute_query *self = data_call_create(context, call, sizeof *self);
    ProtobufCMessage *message;
    if (self == NULL)
        return;
    status s =
        proto_decode(&bt__execute_query_request__descriptor, request, self->data.arena, &message);
    if (!status_is_ok(s)) {
        data_call_finish(&self->data, s);
        return;
    }
    self->request = (const void *)message;
    grpc_call_set_profile(call, self->request->app_profile_id);
    data_call_serve(&self->data, self->request->instance_name, self->request->app_profile_id);
    data_call_add_headers(&self->data);
    grpc_call_set_callbacks(call, self, go_on, go_on);
    self->kept =
        plan_cache_find(self->data.bigtable->plans, proto_bytes(self->request->prepared_query));
    if (may_run_on_loop(self))
        run_on_loop(self);
    else
        post_to_pool(self);
}
