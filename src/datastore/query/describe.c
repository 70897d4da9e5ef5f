/* Words on Datastore's requests: see describe.h. */
#include "datastore/query/describe.h"

#include "base/utf8.h"
#include "datastore/query/query_explain.h"
#include "google/datastore/v1/datastore.pb-c.h"

#include <inttypes.h>

enum { SHOWN_MOST = 3, BYTES_MOST = 60, LIST_MOST = 8, FILTER_MOST = 1000, GQL_MOST = 4000 };

static void append(struct buffer *out, const char *words)
{
    buffer_append_bytes(out, bytes_of(words));
}

static void append_text(struct buffer *out, const char *text)
{
    buffer_append_readable(out, bytes_of(text), BYTES_MOST);
}

static void append_count(struct buffer *out, size_t count, const char *what)
{
    buffer_append_format(out, "%zu %s%s", count, what, count == 1 ? "" : "s");
}

/* --- keys --- */

/* Country "de" / City 7 */
static void append_key(struct buffer *out, const Ds__Key *key)
{
    for (size_t i = 0; key != NULL && i < key->n_path && i < LIST_MOST; i++) {
        const Ds__Key__PathElement *element = key->path[i];
        append(out, i == 0 ? "" : " / ");
        append_text(out, element->kind);
        if (element->id_type_case == DS__KEY__PATH_ELEMENT__ID_TYPE_ID)
            buffer_append_format(out, " %" PRId64, element->id);
        if (element->id_type_case == DS__KEY__PATH_ELEMENT__ID_TYPE_NAME) {
            append(out, " \"");
            append_text(out, element->name);
            append(out, "\"");
        }
    }
}

static void append_keys(struct buffer *out, Ds__Key *const *keys, size_t count)
{
    append_count(out, count, "key");
    for (size_t i = 0; i < count && i < SHOWN_MOST; i++) {
        append(out, i == 0 ? ": " : ", ");
        append_key(out, keys[i]);
    }
    if (count > SHOWN_MOST)
        buffer_append_format(out, " and %zu more", count - SHOWN_MOST);
    append(out, "\n");
}

/* --- queries --- */

static const char *operator_name(int operator_)
{
    switch (operator_) {
    case DS__PROPERTY_FILTER__OPERATOR__LESS_THAN:
        return "<";
    case DS__PROPERTY_FILTER__OPERATOR__LESS_THAN_OR_EQUAL:
        return "<=";
    case DS__PROPERTY_FILTER__OPERATOR__GREATER_THAN:
        return ">";
    case DS__PROPERTY_FILTER__OPERATOR__GREATER_THAN_OR_EQUAL:
        return ">=";
    case DS__PROPERTY_FILTER__OPERATOR__EQUAL:
        return "=";
    case DS__PROPERTY_FILTER__OPERATOR__IN:
        return "in";
    case DS__PROPERTY_FILTER__OPERATOR__NOT_EQUAL:
        return "!=";
    case DS__PROPERTY_FILTER__OPERATOR__HAS_ANCESTOR:
        return "has ancestor";
    case DS__PROPERTY_FILTER__OPERATOR__NOT_IN:
        return "not in";
    default:
        return "?";
    }
}

static const char *property_name(const Ds__PropertyReference *property)
{
    return property == NULL ? "" : property->name;
}

static void append_filter(struct buffer *out, const Ds__Filter *filter, size_t start);

static void append_filters(struct buffer *out, const Ds__CompositeFilter *filters, size_t start)
{
    bool is_or = filters->op == DS__COMPOSITE_FILTER__OPERATOR__OR;
    append(out, "(");
    for (size_t i = 0; i < filters->n_filters; i++) {
        if (i > 0)
            append(out, is_or ? " or " : " and ");
        if (out->size - start > FILTER_MOST || out->failed) {
            buffer_append_format(out, "%zu more", filters->n_filters - i);
            break;
        }
        append_filter(out, filters->filters[i], start);
    }
    append(out, ")");
}

/* No deeper than a message is decoded. */
static void append_filter(struct buffer *out, const Ds__Filter *filter, size_t start)
{
    if (filter->filter_type_case == DS__FILTER__FILTER_TYPE_COMPOSITE_FILTER) {
        append_filters(out, filter->composite_filter, start);
    } else if (filter->filter_type_case == DS__FILTER__FILTER_TYPE_PROPERTY_FILTER) {
        append_text(out, property_name(filter->property_filter->property));
        buffer_append_format(out, " %s ...", operator_name(filter->property_filter->op));
    }
}

static void append_order(struct buffer *out, const Ds__Query *query)
{
    if (query->n_order == 0)
        return;
    append(out, "order: ");
    for (size_t i = 0; i < query->n_order && i < LIST_MOST; i++) {
        append(out, i == 0 ? "" : ", ");
        append_text(out, property_name(query->order[i]->property));
        if (query->order[i]->direction == DS__PROPERTY_ORDER__DIRECTION__DESCENDING)
            append(out, " descending");
    }
    append(out, query->n_order > LIST_MOST ? ", ...\n" : "\n");
}

static void append_query(struct buffer *out, const Ds__Query *query)
{
    append(out, "kind: ");
    append_text(out, query->n_kind == 0 ? "(any)" : query->kind[0]->name);
    append(out, "\n");
    if (query->filter != NULL) {
        append(out, "filter: ");
        append_filter(out, query->filter, out->size);
        append(out, "\n");
    }
    append_order(out, query);
    if (query->offset > 0)
        buffer_append_format(out, "offset: %d\n", query->offset);
    if (query->limit != NULL)
        buffer_append_format(out, "limit: %d\n", query->limit->value);
    if (query->find_nearest != NULL) {
        append(out, "nearest to a vector in ");
        append_text(out, property_name(query->find_nearest->vector_property));
        append(out, "\n");
    }
}

static void append_gql(struct buffer *out, const Ds__GqlQuery *gql)
{
    bytes shown = utf8_cut(bytes_of(gql->query_string), GQL_MOST);
    buffer_append_bytes(out, shown);
    append(out, gql->query_string[shown.size] == '\0' ? "\n" : "...\n");
}

static void describe_query(const ProtobufCMessage *message, struct buffer *out)
{
    const Ds__RunQueryRequest *request = (const void *)message;
    if (request->query_type_case == DS__RUN_QUERY_REQUEST__QUERY_TYPE_GQL_QUERY)
        append_gql(out, request->gql_query);
    else if (request->query_type_case == DS__RUN_QUERY_REQUEST__QUERY_TYPE_QUERY)
        append_query(out, request->query);
}

static void describe_aggregation(const ProtobufCMessage *message, struct buffer *out)
{
    const Ds__RunAggregationQueryRequest *request = (const void *)message;
    if (request->query_type_case == DS__RUN_AGGREGATION_QUERY_REQUEST__QUERY_TYPE_GQL_QUERY) {
        append_gql(out, request->gql_query);
        return;
    }
    const Ds__AggregationQuery *query = request->aggregation_query;
    if (request->query_type_case !=
            DS__RUN_AGGREGATION_QUERY_REQUEST__QUERY_TYPE_AGGREGATION_QUERY ||
        query->query_type_case != DS__AGGREGATION_QUERY__QUERY_TYPE_NESTED_QUERY)
        return;
    append_count(out, query->n_aggregations, "aggregation");
    append(out, "\n");
    append_query(out, query->nested_query);
}

/* --- the others --- */

static void describe_lookup(const ProtobufCMessage *message, struct buffer *out)
{
    const Ds__LookupRequest *request = (const void *)message;
    append_keys(out, request->keys, request->n_keys);
}

static const Ds__Key *changed_key(const Ds__Mutation *mutation)
{
    switch (mutation->operation_case) {
    case DS__MUTATION__OPERATION_INSERT:
        return mutation->insert->key;
    case DS__MUTATION__OPERATION_UPDATE:
        return mutation->update->key;
    case DS__MUTATION__OPERATION_UPSERT:
        return mutation->upsert->key;
    case DS__MUTATION__OPERATION_DELETE:
        return mutation->delete_;
    default:
        return NULL;
    }
}

static void describe_commit(const ProtobufCMessage *message, struct buffer *out)
{
    const Ds__CommitRequest *request = (const void *)message;
    append_count(out, request->n_mutations, "mutation");
    for (size_t i = 0; i < request->n_mutations && i < SHOWN_MOST; i++) {
        append(out, i == 0 ? ": " : ", ");
        append_key(out, changed_key(request->mutations[i]));
    }
    append(out, request->n_mutations > SHOWN_MOST ? ", ...\n" : "\n");
    append(out, request->mode == DS__COMMIT_REQUEST__MODE__NON_TRANSACTIONAL
                    ? "no transaction\n"
                    : "in a transaction\n");
}

struct describer {
    const char *method;
    const ProtobufCMessageDescriptor *request;
    void (*describe)(const ProtobufCMessage *message, struct buffer *out);
};

void ds_describe(const char *method, bytes request, struct arena *arena, struct buffer *out)
{
    static const struct describer describers[] = {
        {"Lookup", &ds__lookup_request__descriptor, describe_lookup},
        {"RunQuery", &ds__run_query_request__descriptor, describe_query},
        {"RunAggregationQuery", &ds__run_aggregation_query_request__descriptor,
         describe_aggregation},
        {"Commit", &ds__commit_request__descriptor, describe_commit},
    };
    for (size_t i = 0; i < sizeof describers / sizeof *describers; i++) {
        ProtobufCMessage *message;
        if (strcmp(describers[i].method, method) != 0)
            continue;
        status s = proto_decode(describers[i].request, request, arena, &message);
        if (status_is_ok(s))
            describers[i].describe(message, out);
        status_ignore(s);
    }
}

/* --- what a query read --- */

static void append_indexes(struct buffer *out, const Ds__PlanSummary *summary)
{
    for (size_t i = 0; i < summary->n_indexes_used; i++)
        buffer_append_format(out, "index: %s\n",
                             summary->indexes_used[i]->fields[1]->value->string_value);
}

void ds_tell_query(const struct ds_call *call, const struct ds_query *query,
                   const struct ds_plan *plan, const struct ds_reads *reads, int64_t results)
{
    Ds__ExplainMetrics *metrics;
    struct buffer text = {0};
    if (call->call == NULL)
        return;
    grpc_call_count(call->call, results, reads->rows);
    if (!grpc_call_is_slow(call->call))
        return;
    status s = ds_explain_plan(query, plan, call->arena, &metrics);
    if (status_is_ok(s))
        append_indexes(&text, metrics->plan_summary);
    status_ignore(s); /* then there is the query alone */
    buffer_append_format(&text, "read: %" PRId64 " rows of indexes, %" PRId64 " entities\n",
                         reads->rows, reads->entities);
    if (!text.failed)
        grpc_call_explain(call->call, arena_copy(call->arena, buffer_bytes(&text)));
    buffer_free(&text);
}
