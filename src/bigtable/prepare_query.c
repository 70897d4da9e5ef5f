/* PrepareQuery: a query is looked at, and comes back as a token for ExecuteQuery. */
#include "bigtable/data_call.h"
#include "bigtable/data_methods.h"
#include "bigtable/query.h"
#include "bigtable/query_messages.h"

struct prepare_query {
    struct data_call data;
    const Bt__PrepareQueryRequest *request;
    struct query query;
    enum query_explain explain;
    struct task task;
    Bt__PrepareQueryResponse *response;
    status result;
};

static status declare_parameters(struct prepare_query *self)
{
    const Bt__PrepareQueryRequest *request = self->request;
    struct arena *arena = self->data.arena;
    struct sql_parameter *parameters =
        arena_alloc(arena, request->n_param_types * sizeof *parameters);
    if (parameters == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < request->n_param_types; i++) {
        parameters[i].name = request->param_types[i]->key;
        TRY(query_type_from_message(request->param_types[i]->value, arena, &parameters[i].type));
    }
    self->query.parameters = parameters;
    self->query.parameter_count = request->n_param_types;
    return status_ok();
}

static status answer(struct prepare_query *self)
{
    struct arena *arena = self->data.arena;
    int64_t now_us = self->query.session.now_us;
    bytes token;
    Bt__PrepareQueryResponse *response;
    PROTO_NEW(arena, response, BT__PREPARE_QUERY_RESPONSE__INIT);
    TRY(query_metadata(query_result(&self->query), arena, &response->metadata));
    TRY(query_token_write(&self->query, self->request->query,
                          now_us + QUERY_EXPIRES_MS * INT64_C(1000), arena, &token));
    response->prepared_query = proto_data(token);
    PROTO_NEW(arena, response->valid_until, PB__TIMESTAMP__INIT);
    int64_t until_us = now_us + QUERY_VALID_MS * INT64_C(1000);
    response->valid_until->seconds = until_us / 1000000;
    response->valid_until->nanos = (int32_t)(until_us % 1000000 * 1000);
    self->response = response;
    return status_ok();
}

/* A data_format that is not given is the only one there is, proto_format: Google's clients for Java
 * and Node never give one. */
static status prepare(struct prepare_query *self)
{
    struct data_call *data = &self->data;
    TRY(query_init(&self->query, data->bigtable, data->call, data->arena,
                   self->request->instance_name));
    self->query.explain = self->explain;
    TRY(declare_parameters(self));
    TRY(query_plan(&self->query, self->request->query));
    return query_tell_limit(answer(self));
}

static void end(struct task *task)
{
    struct prepare_query *self = LIST_ENTRY(&task->link, struct prepare_query, task.link);
    query_free(&self->query);
    if (status_is_ok(self->result))
        data_call_respond(&self->data, &self->response->base);
    else
        data_call_finish(&self->data, self->result);
}

/* On the pool: a query may take its time, and a loop must not wait for it. */
static void run(struct task *task)
{
    struct prepare_query *self = LIST_ENTRY(&task->link, struct prepare_query, task.link);
    grpc_call_step(self->data.call, CALL_QUERIES);
    self->result = prepare(self);
    self->task.run = end;
    grpc_call_step(self->data.call, CALL_WORKS);
    loop_post(grpc_call_loop(self->data.call), &self->task);
}

static status start(struct prepare_query *self, bytes wire)
{
    ProtobufCMessage *message;
    TRY(proto_decode(&bt__prepare_query_request__descriptor, wire, self->data.arena, &message));
    self->request = (const void *)message;
    grpc_call_set_profile(self->data.call, self->request->app_profile_id);
    data_call_serve(&self->data, self->request->instance_name, self->request->app_profile_id);
    TRY(explain_asked(self->data.call, &self->explain));
    self->task.run = run;
    grpc_call_step(self->data.call, CALL_AWAITS_THREAD);
    bool is_accepted = pool_submit(self->data.bigtable->queries, &self->task);
    return is_accepted ? status_ok() : pool_full();
}

void prepare_query(void *context, struct grpc_call *call, bytes request)
{
    struct prepare_query *self = data_call_create(context, call, sizeof *self);
    if (self == NULL)
        return;
    status s = start(self, request);
    if (!status_is_ok(s))
        data_call_finish(&self->data, s);
}
