/* RunQuery: a batch of a query's results. */
#include "base/clock.h"
#include "datastore/gql/gql.h"
#include "datastore/query/describe.h"
#include "datastore/query/queries.h"
#include "datastore/query/query_batch.h"
#include "datastore/query/query_cursor.h"
#include "datastore/query/query_explain.h"
#include "datastore/query/query_nearest.h"
#include "datastore/usage_note.h"

/* `*asked`: the request's query, or what its text says. */
static status check(const struct ds_call *call, const Ds__RunQueryRequest *request,
                    Ds__Query **asked, struct ds_query *query, struct ds_nearest *nearest)
{
    struct ds_database database = {.project = call->project_id, .id = call->database_id};
    TRY(ds_query_of_request(request, &database, call->arena, asked));
    Ds__Query *candidates = *asked;
    if ((*asked)->find_nearest != NULL)
        TRY(ds_nearest_check(*asked, call->arena, nearest, &candidates));
    TRY(ds_query_check(candidates, request->partition_id, &database, call->arena, query));
    if (request->property_mask != NULL &&
        (query->result_type != DS__ENTITY_RESULT__RESULT_TYPE__FULL || (*asked)->n_projection > 0))
        return status_make(STATUS_INVALID_ARGUMENT,
                           "A projection query cannot have a property_mask.");
    return status_ok();
}

static bool wants_plan_only(const Ds__RunQueryRequest *request)
{
    return request->explain_options != NULL && !request->explain_options->analyze;
}

/* A client that wants the plan only gets a batch without results, and no transaction. */
static status explain(const struct ds_call *call, const struct ds_query *query,
                      const struct ds_plan *plan, ProtobufCMessage **response)
{
    Ds__RunQueryResponse *made;
    PROTO_NEW(call->arena, made, DS__RUN_QUERY_RESPONSE__INIT);
    PROTO_NEW(call->arena, made->batch, DS__QUERY_RESULT_BATCH__INIT);
    made->batch->entity_result_type = query->result_type;
    made->batch->more_results = DS__QUERY_RESULT_BATCH__MORE_RESULTS_TYPE__NO_MORE_RESULTS;
    *response = &made->base;
    return ds_explain_plan(query, plan, call->arena, &made->explain_metrics);
}

static status answer(const struct ds_call *call, const Ds__RunQueryRequest *request,
                     Ds__Query *asked, const struct ds_query *query,
                     const struct ds_nearest *nearest, const struct ds_plan *plan,
                     struct ds_reading *reading, ProtobufCMessage **response)
{
    bool is_text = request->query_type_case == DS__RUN_QUERY_REQUEST__QUERY_TYPE_GQL_QUERY;
    Ds__RunQueryResponse *made;
    struct ds_reads reads;
    struct clock *clock = call->datastore->clock;
    int64_t started_us = clock_steady_us(clock);
    PROTO_NEW(call->arena, made, DS__RUN_QUERY_RESPONSE__INIT);
    TRY(asked->find_nearest != NULL ? ds_nearest_batch(nearest, query, request->property_mask, plan,
                                                       reading, call->arena, &reads, &made->batch)
                                    : ds_batch_make(query, request->property_mask, plan, reading,
                                                    call->arena, &reads, &made->batch));
    ds_tell_query(call, query, plan, &reads, (int64_t)made->batch->n_entity_results);
    ds_usage_note_query(call, reading, query, plan, made->batch);
    made->transaction = proto_data(reading->new_transaction);
    made->query = is_text ? asked : NULL;
    *response = &made->base;
    if (request->explain_options == NULL)
        return status_ok();
    TRY(ds_explain_plan(query, plan, call->arena, &made->explain_metrics));
    bool is_whole = query->result_type == DS__ENTITY_RESULT__RESULT_TYPE__FULL;
    return ds_explain_run(&reads, is_whole ? DS_BILLED_ENTITIES : DS_BILLED_SMALL,
                          (int64_t)made->batch->n_entity_results,
                          clock_steady_us(clock) - started_us, call->arena, made->explain_metrics);
}

static status run(const struct ds_call *call, const Ds__RunQueryRequest *request, Ds__Query *asked,
                  const struct ds_query *checked, const struct ds_nearest *nearest,
                  struct ds_reading *reading, ProtobufCMessage **response)
{
    struct ds_query query = *checked; /* its plan says more of its order */
    struct ds_plan plan;
    ds_read_indexes(reading);
    TRY(ds_plan_make(&query, reading->snapshot.indexes, reading->snapshot.index_count, call->arena,
                     &plan));
    TRY(ds_cursors_read(asked, &query));
    if (wants_plan_only(request))
        return explain(call, &query, &plan, response);
    return answer(call, request, asked, &query, nearest, &plan, reading, response);
}

status ds_run_query(struct ds_call *call, const ProtobufCMessage *message,
                    ProtobufCMessage **response)
{
    const Ds__RunQueryRequest *request = (const Ds__RunQueryRequest *)message;
    struct ds_query query;
    struct ds_nearest nearest = {.limit = 0};
    struct ds_reading reading;
    Ds__Query *asked;
    TRY(check(call, request, &asked, &query, &nearest));
    TRY(ds_read_begin(call, wants_plan_only(request) ? NULL : request->read_options, &reading));
    status s;
    do
        s = run(call, request, asked, &query, &nearest, &reading, response);
    while (ds_reading_again(&reading, &s));
    ds_read_end(&reading);
    return s;
}
