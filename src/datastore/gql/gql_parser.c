/* GQL's statements: names, aggregations, and the way in. See gql.h and gql_private.h. */
#include "datastore/gql/gql_private.h"

#define INVALID(...) status_make(STATUS_INVALID_ARGUMENT, __VA_ARGS__)

/* --- tokens --- */

status gql_advance(struct gql_parser *parser)
{
    parser->expected = 0;
    return gql_next(&parser->lexer, &parser->token);
}

bool gql_sees(struct gql_parser *parser, enum gql_kind kind)
{
    parser->expected |= (uint64_t)1 << kind;
    if (kind == GQL_FIRST || kind == GQL_OVER)
        return gql_is_word(&parser->token, gql_images[kind]);
    return parser->token.kind == kind;
}

status gql_take(struct gql_parser *parser, enum gql_kind kind, bool *taken)
{
    *taken = gql_sees(parser, kind);
    return *taken ? gql_advance(parser) : status_ok();
}

status gql_need(struct gql_parser *parser, enum gql_kind kind)
{
    return gql_sees(parser, kind) ? gql_advance(parser) : gql_unexpected(parser);
}

status gql_is_call(struct gql_parser *parser, bool *is)
{
    struct gql_lexer ahead = parser->lexer;
    struct gql_token next;
    TRY(gql_next(&ahead, &next));
    *is = next.kind == GQL_OPEN;
    return status_ok();
}

status gql_enter(struct gql_parser *parser)
{
    if (++parser->depth > DS_GQL_NESTING_LIMIT)
        return gql_refuse(parser->lexer.text, &parser->token, "The query is nested too deeply");
    return status_ok();
}

/* --- names --- */

status gql_name(struct gql_parser *parser, const char **out)
{
    bool is_name = gql_sees(parser, GQL_NAME);
    if (!gql_sees(parser, GQL_QUOTED_NAME) && !is_name)
        return gql_unexpected(parser);
    *out = parser->token.text;
    return gql_advance(parser);
}

/* A property of several names: should the first be the kind, the rest is what is meant. Which kind
 * it is may come later in the text. */
struct gql_qualified {
    Ds__PropertyReference *property;
    const char *first, *rest;
};

/* The names with dots between them. */
static const char *join(const struct vector *names, struct arena *arena)
{
    const char *const *items = names->items;
    size_t size = 0;
    for (size_t i = 0; i < names->count; i++)
        size += strlen(items[i]) + 1;
    char *joined = arena_alloc(arena, size), *to = joined;
    for (size_t i = 0; i < names->count && joined != NULL; i++) {
        to = stpcpy(to, items[i]);
        *to++ = i + 1 < names->count ? '.' : '\0';
    }
    return joined;
}

status gql_property(struct gql_parser *parser, Ds__PropertyReference **out)
{
    struct vector names = {0};
    const char *first = "";
    PROTO_NEW(parser->arena, *out, DS__PROPERTY_REFERENCE__INIT);
    for (bool more = true; more;) {
        const char *name = "";
        TRY(gql_name(parser, &name));
        first = names.count == 0 ? name : first;
        TRY(vector_add(&names, parser->arena, &name, sizeof(char *)));
        TRY(gql_take(parser, GQL_DOT, &more));
    }
    const char *joined = join(&names, parser->arena);
    if (joined == NULL)
        return status_out_of_memory();
    (*out)->name = joined;
    if (names.count == 1)
        return status_ok();
    struct gql_qualified qualified = {*out, first, joined + strlen(first) + 1};
    return vector_add(&parser->qualified, parser->arena, &qualified, sizeof qualified);
}

static void resolve_properties(const struct gql_parser *parser, const Ds__Query *query)
{
    const struct gql_qualified *qualified = parser->qualified.items;
    for (size_t i = 0; i < parser->qualified.count && query->n_kind > 0; i++)
        if (strcmp(qualified[i].first, query->kind[0]->name) == 0)
            qualified[i].property->name = qualified[i].rest;
}

/* --- aggregations --- */

typedef Ds__AggregationQuery__Aggregation aggregation_message;

/* COUNT(*); COUNT_UP_TO(n), whose integer no binding can stand for, so that it is allowed where
 * literals are not. */
static status count(struct gql_parser *parser, bool has_most, aggregation_message *out)
{
    PROTO_NEW(parser->arena, out->count, DS__AGGREGATION_QUERY__AGGREGATION__COUNT__INIT);
    out->operator_case = DS__AGGREGATION_QUERY__AGGREGATION__OPERATOR_COUNT;
    if (!has_most)
        return gql_need(parser, GQL_STAR);
    PROTO_NEW(parser->arena, out->count->up_to, PB__INT64_VALUE__INIT);
    return gql_integer(parser, &out->count->up_to->value);
}

static status sum(struct gql_parser *parser, aggregation_message *out)
{
    PROTO_NEW(parser->arena, out->sum, DS__AGGREGATION_QUERY__AGGREGATION__SUM__INIT);
    out->operator_case = DS__AGGREGATION_QUERY__AGGREGATION__OPERATOR_SUM;
    return gql_property(parser, &out->sum->property);
}

static status average(struct gql_parser *parser, aggregation_message *out)
{
    PROTO_NEW(parser->arena, out->avg, DS__AGGREGATION_QUERY__AGGREGATION__AVG__INIT);
    out->operator_case = DS__AGGREGATION_QUERY__AGGREGATION__OPERATOR_AVG;
    return gql_property(parser, &out->avg->property);
}

static bool sees_aggregation(struct gql_parser *parser)
{
    bool sees = false;
    static const enum gql_kind kinds[] = {GQL_AVG, GQL_COUNT, GQL_COUNT_UP_TO, GQL_SUM};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        sees |= gql_sees(parser, kinds[i]);
    return sees;
}

static status aggregation(struct gql_parser *parser, aggregation_message *out)
{
    bool has_alias;
    enum gql_kind kind = parser->token.kind;
    if (!sees_aggregation(parser))
        return gql_unexpected(parser);
    TRY(gql_advance(parser));
    TRY(gql_need(parser, GQL_OPEN));
    if (kind == GQL_SUM)
        TRY(sum(parser, out));
    else if (kind == GQL_AVG)
        TRY(average(parser, out));
    else
        TRY(count(parser, kind == GQL_COUNT_UP_TO, out));
    TRY(gql_need(parser, GQL_CLOSE));
    TRY(gql_take(parser, GQL_AS, &has_alias));
    return has_alias ? gql_name(parser, &out->alias) : status_ok();
}

/* aggregation, aggregation, … */
static status aggregations(struct gql_parser *parser, Ds__AggregationQuery *query)
{
    struct vector items = {0};
    for (bool more = true; more;) {
        aggregation_message *item;
        PROTO_NEW(parser->arena, item, DS__AGGREGATION_QUERY__AGGREGATION__INIT);
        TRY(aggregation(parser, item));
        TRY(vector_add(&items, parser->arena, &item, sizeof(aggregation_message *)));
        TRY(gql_take(parser, GQL_COMMA, &more));
    }
    query->n_aggregations = items.count;
    query->aggregations = items.items;
    return status_ok();
}

/* All behind AGGREGATE. */
static status aggregate_over(struct gql_parser *parser, Ds__AggregationQuery *query)
{
    TRY(aggregations(parser, query));
    TRY(gql_need(parser, GQL_OVER));
    TRY(gql_need(parser, GQL_OPEN));
    TRY(gql_need(parser, GQL_SELECT));
    TRY(gql_select(parser, query->nested_query));
    return gql_need(parser, GQL_CLOSE);
}

/* All behind SELECT, of the short form. */
static status select_aggregations(struct gql_parser *parser, Ds__AggregationQuery *query)
{
    TRY(aggregations(parser, query));
    TRY(gql_from(parser, query->nested_query));
    return gql_where(parser, query->nested_query);
}

/* --- all of it --- */

static status new_aggregation(struct gql_parser *parser, Ds__Query *nested, struct ds_gql *out)
{
    PROTO_NEW(parser->arena, out->aggregation, DS__AGGREGATION_QUERY__INIT);
    out->aggregation->query_type_case = DS__AGGREGATION_QUERY__QUERY_TYPE_NESTED_QUERY;
    out->aggregation->nested_query = nested;
    return status_ok();
}

/* `query` is what is asked of entities, and may then be aggregated. */
static status statement(struct gql_parser *parser, Ds__Query *query, struct ds_gql *out)
{
    bool is_aggregate;
    TRY(gql_take(parser, GQL_AGGREGATE, &is_aggregate));
    if (is_aggregate) {
        TRY(new_aggregation(parser, query, out));
        return aggregate_over(parser, out->aggregation);
    }
    TRY(gql_need(parser, GQL_SELECT));
    if (sees_aggregation(parser)) {
        TRY(new_aggregation(parser, query, out));
        return select_aggregations(parser, out->aggregation);
    }
    out->query = query;
    return gql_select(parser, query);
}

status ds_gql_parse(const Ds__GqlQuery *gql, const struct ds_database *database,
                    const char *name_space, struct arena *arena, struct ds_gql *out)
{
    struct gql_parser parser = {
        .lexer = {.text = bytes_of(gql->query_string), .arena = arena},
        .gql = gql,
        .database = database,
        .name_space = name_space,
        .arena = arena,
    };
    Ds__Query *query;
    *out = (struct ds_gql){0};
    TRY(gql_bindings_prepare(&parser));
    PROTO_NEW(arena, query, DS__QUERY__INIT);
    TRY(gql_advance(&parser));
    TRY(statement(&parser, query, out));
    if (!gql_sees(&parser, GQL_END))
        return gql_unexpected(&parser);
    resolve_properties(&parser, query);
    return gql_bindings_check(&parser);
}

/* --- of requests --- */

static const char *namespace_of(const Ds__PartitionId *partition)
{
    return partition == NULL ? "" : partition->namespace_id;
}

status ds_query_of_request(const Ds__RunQueryRequest *request, const struct ds_database *database,
                           struct arena *arena, Ds__Query **out)
{
    struct ds_gql gql = {0};
    if (request->query_type_case == DS__RUN_QUERY_REQUEST__QUERY_TYPE_QUERY)
        gql.query = request->query;
    else if (request->query_type_case == DS__RUN_QUERY_REQUEST__QUERY_TYPE_GQL_QUERY)
        TRY(ds_gql_parse(request->gql_query, database, namespace_of(request->partition_id), arena,
                         &gql));
    if (gql.query == NULL)
        return gql.aggregation == NULL
                   ? INVALID("One of the fields query and gql_query must be set.")
                   : INVALID("An aggregation query must be sent to RunAggregationQuery.");
    *out = gql.query;
    return status_ok();
}

status ds_query_of_aggregation_request(const Ds__RunAggregationQueryRequest *request,
                                       const struct ds_database *database, struct arena *arena,
                                       Ds__AggregationQuery **out)
{
    struct ds_gql gql = {0};
    if (request->query_type_case == DS__RUN_AGGREGATION_QUERY_REQUEST__QUERY_TYPE_AGGREGATION_QUERY)
        gql.aggregation = request->aggregation_query;
    else if (request->query_type_case == DS__RUN_AGGREGATION_QUERY_REQUEST__QUERY_TYPE_GQL_QUERY)
        TRY(ds_gql_parse(request->gql_query, database, namespace_of(request->partition_id), arena,
                         &gql));
    if (gql.aggregation == NULL)
        return gql.query == NULL
                   ? INVALID("One of the fields aggregation_query and gql_query must be set.")
                   : INVALID("A query without aggregations must be sent to RunQuery.");
    *out = gql.aggregation;
    return status_ok();
}
