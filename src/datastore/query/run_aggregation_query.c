/* RunAggregationQuery: what a query's results come to. */
#include "base/clock.h"
#include "datastore/gql/gql.h"
#include "datastore/query/aggregation.h"
#include "datastore/query/describe.h"
#include "datastore/query/queries.h"
#include "datastore/query/query_cursor.h"
#include "datastore/query/query_explain.h"
#include "datastore/usage_note.h"

static status check(const struct ds_call *call, const Ds__RunAggregationQueryRequest *request,
                    Ds__AggregationQuery **asked, struct ds_query *query,
                    struct ds_aggregations *aggregations)
{
    struct ds_database database = {.project = call->project_id, .id = call->database_id};
    TRY(ds_query_of_aggregation_request(request, &database, call->arena, asked));
    if ((*asked)->query_type_case != DS__AGGREGATION_QUERY__QUERY_TYPE_NESTED_QUERY)
        return status_make(STATUS_INVALID_ARGUMENT, "The request has no query.");
    TRY(ds_aggregations_check(*asked, call->arena, aggregations));
    if ((*asked)->nested_query->find_nearest != NULL)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "find_nearest cannot be combined with aggregations.");
    TRY(ds_query_check((*asked)->nested_query, request->partition_id, &database, call->arena,
                       query));
    return ds_aggregations_check_query(aggregations, query);
}

static bool wants_plan_only(const Ds__RunAggregationQueryRequest *request)
{
    return request->explain_options != NULL && !request->explain_options->analyze;
}

/* A client that wants the plan only gets a batch without results, and no transaction. */
static status explain(const struct ds_call *call, const struct ds_query *query,
                      const struct ds_plan *plan, ProtobufCMessage **response)
{
    Ds__RunAggregationQueryResponse *made;
    PROTO_NEW(call->arena, made, DS__RUN_AGGREGATION_QUERY_RESPONSE__INIT);
    PROTO_NEW(call->arena, made->batch, DS__AGGREGATION_RESULT_BATCH__INIT);
    made->batch->more_results = DS__QUERY_RESULT_BATCH__MORE_RESULTS_TYPE__NO_MORE_RESULTS;
    *response = &made->base;
    return ds_explain_plan(query, plan, call->arena, &made->explain_metrics);
}

static status answer(const struct ds_call *call, struct ds_aggregations *aggregations,
                     const struct ds_query *query, const struct ds_plan *plan, bool explains,
                     struct ds_reading *reading, ProtobufCMessage **response)
{
    Ds__RunAggregationQueryResponse *made;
    struct ds_reads reads;
    struct clock *clock = call->datastore->clock;
    int64_t started_us = clock_steady_us(clock);
    PROTO_NEW(call->arena, made, DS__RUN_AGGREGATION_QUERY_RESPONSE__INIT);
    TRY(ds_aggregations_run(aggregations, query, plan, reading, call->arena, &reads, &made->batch));
    ds_tell_query(call, query, plan, &reads, 1);
    ds_usage_note_query(call, reading, query, plan, NULL);
    made->transaction = proto_data(reading->new_transaction);
    *response = &made->base;
    if (!explains)
        return status_ok();
    TRY(ds_explain_plan(query, plan, call->arena, &made->explain_metrics));
    return ds_explain_run(&reads, DS_BILLED_AGGREGATION, 1, clock_steady_us(clock) - started_us,
                          call->arena, made->explain_metrics);
}

static status run(const struct ds_call *call, const Ds__RunAggregationQueryRequest *request,
                  const Ds__AggregationQuery *asked, struct ds_aggregations *aggregations,
                  const struct ds_query *checked, struct ds_reading *reading,
                  ProtobufCMessage **response)
{
    struct ds_query query = *checked; /* its plan says more of its order */
    struct ds_plan plan;
    ds_read_indexes(reading);
    TRY(ds_aggregations_plan(aggregations, asked->nested_query, reading->snapshot.indexes,
                             reading->snapshot.index_count, call->arena, &query, &plan));
    TRY(ds_cursors_read(asked->nested_query, &query));
    if (wants_plan_only(request))
        return explain(call, &query, &plan, response);
    return answer(call, aggregations, &query, &plan, request->explain_options != NULL, reading,
                  response);
}

status ds_run_aggregation_query(struct ds_call *call, const ProtobufCMessage *message,
                                ProtobufCMessage **response)
{
    const Ds__RunAggregationQueryRequest *request = (const Ds__RunAggregationQueryRequest *)message;
    struct ds_aggregations aggregations;
    struct ds_query query;
    struct ds_reading reading;
    Ds__AggregationQuery *asked;
    TRY(check(call, request, &asked, &query, &aggregations));
    TRY(ds_read_begin(call, wants_plan_only(request) ? NULL : request->read_options, &reading));
    status s;
    do
        s = run(call, request, asked, &aggregations, &query, &reading, response);
    while (ds_reading_again(&reading, &s));
    ds_read_end(&reading);
    return s;
}
