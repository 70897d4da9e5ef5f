/* GQL's clauses, and the way in: see gql.h and gql_private.h. */
#include "datastore/gql_private.h"

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

static status unexpected(const struct gql_parser *parser)
{
    return gql_unexpected(parser->lexer.text, &parser->token, parser->expected);
}

status gql_need(struct gql_parser *parser, enum gql_kind kind)
{
    return gql_sees(parser, kind) ? gql_advance(parser) : unexpected(parser);
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
        return unexpected(parser);
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

/* property, property, … */
static status property_list(struct gql_parser *parser, struct vector *out)
{
    for (bool more = true; more;) {
        Ds__PropertyReference *property;
        TRY(gql_property(parser, &property));
        TRY(vector_add(out, parser->arena, &property, sizeof(Ds__PropertyReference *)));
        TRY(gql_take(parser, GQL_COMMA, &more));
    }
    return status_ok();
}

/* --- what is selected --- */

static status project(struct gql_parser *parser, const struct vector *properties, Ds__Query *query)
{
    Ds__PropertyReference *const *items = properties->items;
    query->projection = arena_alloc(parser->arena, properties->count * sizeof(Ds__Projection *));
    if (query->projection == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < properties->count; i++) {
        PROTO_NEW(parser->arena, query->projection[i], DS__PROJECTION__INIT);
        query->projection[i]->property = items[i];
        query->n_projection = i + 1;
    }
    return status_ok();
}

static void set_distinct(const struct vector *properties, Ds__Query *query)
{
    query->n_distinct_on = properties->count;
    query->distinct_on = properties->items;
}

/* The names behind DISTINCT; or those of DISTINCT ON, and then `*more`, for what is selected
 * follows. */
static status distinct(struct gql_parser *parser, Ds__Query *query, bool *more)
{
    struct vector properties = {0};
    TRY(gql_take(parser, GQL_ON, more));
    if (*more)
        TRY(gql_need(parser, GQL_OPEN));
    TRY(property_list(parser, &properties));
    set_distinct(&properties, query);
    return *more ? gql_need(parser, GQL_CLOSE) : project(parser, &properties, query);
}

static status selection(struct gql_parser *parser, Ds__Query *query)
{
    struct vector properties = {0};
    bool taken, more = true;
    TRY(gql_take(parser, GQL_DISTINCT, &taken));
    if (taken)
        TRY(distinct(parser, query, &more));
    if (!more)
        return status_ok();
    TRY(gql_take(parser, GQL_STAR, &taken));
    if (taken)
        return status_ok();
    TRY(property_list(parser, &properties));
    return project(parser, &properties, query);
}

/* --- FROM, WHERE, ORDER BY --- */

static status from_clause(struct gql_parser *parser, Ds__Query *query)
{
    bool taken;
    TRY(gql_take(parser, GQL_FROM, &taken));
    if (!taken)
        return status_ok();
    query->kind = arena_alloc(parser->arena, sizeof(Ds__KindExpression *));
    if (query->kind == NULL)
        return status_out_of_memory();
    PROTO_NEW(parser->arena, query->kind[0], DS__KIND_EXPRESSION__INIT);
    query->n_kind = 1;
    return gql_name(parser, &query->kind[0]->name);
}

static status where_clause(struct gql_parser *parser, Ds__Query *query)
{
    bool taken;
    TRY(gql_take(parser, GQL_WHERE, &taken));
    return taken ? gql_compound(parser, &query->filter) : status_ok();
}

static status direction(struct gql_parser *parser, Ds__PropertyOrder *order)
{
    bool is_descending, is_ascending = false;
    TRY(gql_take(parser, GQL_DESC, &is_descending));
    if (!is_descending)
        TRY(gql_take(parser, GQL_ASC, &is_ascending));
    order->direction = is_descending ? DS__PROPERTY_ORDER__DIRECTION__DESCENDING
                                     : DS__PROPERTY_ORDER__DIRECTION__ASCENDING;
    return status_ok();
}

static status order_clause(struct gql_parser *parser, Ds__Query *query)
{
    struct vector orders = {0};
    bool more;
    TRY(gql_take(parser, GQL_ORDER, &more));
    if (!more)
        return status_ok();
    TRY(gql_need(parser, GQL_BY));
    while (more) {
        Ds__PropertyOrder *order;
        PROTO_NEW(parser->arena, order, DS__PROPERTY_ORDER__INIT);
        TRY(gql_property(parser, &order->property));
        TRY(direction(parser, order));
        TRY(vector_add(&orders, parser->arena, &order, sizeof(Ds__PropertyOrder *)));
        TRY(gql_take(parser, GQL_COMMA, &more));
    }
    query->n_order = orders.count;
    query->order = orders.items;
    return status_ok();
}

/* --- LIMIT and OFFSET --- */

/* A count or a cursor. */
struct position {
    struct gql_token token;
    bool is_cursor;
    ProtobufCBinaryData cursor;
    int64_t count;
};

static status bound_position(struct gql_parser *parser, struct position *out)
{
    const Ds__GqlQueryParameter *parameter;
    TRY(gql_binding(parser, &parameter));
    out->is_cursor =
        parameter->parameter_type_case == DS__GQL_QUERY_PARAMETER__PARAMETER_TYPE_CURSOR;
    if (out->is_cursor) {
        out->cursor = parameter->cursor;
        return status_ok();
    }
    if (parameter->value->value_type_case != DS__VALUE__VALUE_TYPE_INTEGER_VALUE)
        return gql_refuse(parser->lexer.text, &out->token,
                          "The site must be bound to an integer or a cursor");
    out->count = parameter->value->integer_value;
    return status_ok();
}

static status position(struct gql_parser *parser, struct position *out)
{
    *out = (struct position){.token = parser->token};
    if (gql_sees(parser, GQL_INTEGER)) {
        TRY(gql_allow_literal(parser, &parser->token));
        TRY(gql_integer(parser, &out->count));
    } else if (gql_sees(parser, GQL_NAMED_BINDING) || gql_sees(parser, GQL_POSITIONAL_BINDING)) {
        TRY(bound_position(parser, out));
    } else {
        return unexpected(parser);
    }
    if (out->count < INT32_MIN || out->count > INT32_MAX)
        return gql_refuse(parser->lexer.text, &out->token, "The number does not fit into 32 bits");
    return status_ok();
}

static status set_limit(struct gql_parser *parser, const struct position *limit, Ds__Query *query)
{
    if (limit->is_cursor) {
        query->end_cursor = limit->cursor;
        return status_ok();
    }
    PROTO_NEW(parser->arena, query->limit, PB__INT32_VALUE__INIT);
    query->limit->value = (int32_t)limit->count;
    return status_ok();
}

/* (position, position) */
static status first(struct gql_parser *parser, Ds__Query *query)
{
    struct position a, b;
    TRY(gql_need(parser, GQL_OPEN));
    TRY(position(parser, &a));
    TRY(gql_need(parser, GQL_COMMA));
    TRY(position(parser, &b));
    if (a.is_cursor == b.is_cursor)
        return gql_refuse(parser->lexer.text, &b.token,
                          "FIRST takes a cursor and an integer, not two of one sort");
    TRY(set_limit(parser, &a, query));
    TRY(set_limit(parser, &b, query));
    return gql_need(parser, GQL_CLOSE);
}

static status limit_clause(struct gql_parser *parser, Ds__Query *query)
{
    struct position limit;
    bool taken;
    TRY(gql_take(parser, GQL_LIMIT, &taken));
    if (!taken)
        return status_ok();
    TRY(gql_take(parser, GQL_FIRST, &taken));
    if (taken)
        return first(parser, query);
    TRY(position(parser, &limit));
    return set_limit(parser, &limit, query);
}

static status offset_clause(struct gql_parser *parser, Ds__Query *query)
{
    struct position offset;
    bool taken;
    TRY(gql_take(parser, GQL_OFFSET, &taken));
    if (!taken)
        return status_ok();
    TRY(position(parser, &offset));
    if (offset.is_cursor) {
        query->start_cursor = offset.cursor;
        TRY(gql_take(parser, GQL_PLUS, &taken));
        if (!taken)
            return status_ok();
        TRY(position(parser, &offset));
        if (offset.is_cursor)
            return gql_refuse(parser->lexer.text, &offset.token,
                              "An integer is wanted behind the cursor");
    } else if (gql_sees(parser, GQL_PLUS)) {
        return gql_refuse(parser->lexer.text, &offset.token, "A cursor is wanted before the +");
    }
    query->offset = (int32_t)offset.count;
    return status_ok();
}

/* All behind SELECT. */
static status select_query(struct gql_parser *parser, Ds__Query *query)
{
    TRY(selection(parser, query));
    TRY(from_clause(parser, query));
    TRY(where_clause(parser, query));
    TRY(order_clause(parser, query));
    TRY(limit_clause(parser, query));
    return offset_clause(parser, query);
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
        return unexpected(parser);
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
    TRY(select_query(parser, query->nested_query));
    return gql_need(parser, GQL_CLOSE);
}

/* All behind SELECT, of the short form. */
static status select_aggregations(struct gql_parser *parser, Ds__AggregationQuery *query)
{
    TRY(aggregations(parser, query));
    TRY(from_clause(parser, query->nested_query));
    return where_clause(parser, query->nested_query);
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
    return select_query(parser, query);
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
        return unexpected(&parser);
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
