/* The clauses of a query in GQL: see gql_private.h. */
#include "datastore/gql/gql_private.h"

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

status gql_from(struct gql_parser *parser, Ds__Query *query)
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

status gql_where(struct gql_parser *parser, Ds__Query *query)
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
        return gql_unexpected(parser);
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

status gql_select(struct gql_parser *parser, Ds__Query *query)
{
    TRY(selection(parser, query));
    TRY(gql_from(parser, query));
    TRY(gql_where(parser, query));
    TRY(order_clause(parser, query));
    TRY(limit_clause(parser, query));
    return offset_clause(parser, query);
}
