/* GQL's WHERE: see gql_private.h. */
#include "datastore/gql/gql_private.h"

/* The comparators, and what they are when the value stands before the property. */
static const struct comparator {
    enum gql_kind kind;
    Ds__PropertyFilter__Operator forward, backward;
} comparators[] = {
    {GQL_EQUAL, DS__PROPERTY_FILTER__OPERATOR__EQUAL, DS__PROPERTY_FILTER__OPERATOR__EQUAL},
    {GQL_NOT_EQUAL, DS__PROPERTY_FILTER__OPERATOR__NOT_EQUAL,
     DS__PROPERTY_FILTER__OPERATOR__NOT_EQUAL},
    {GQL_LESS, DS__PROPERTY_FILTER__OPERATOR__LESS_THAN,
     DS__PROPERTY_FILTER__OPERATOR__GREATER_THAN},
    {GQL_LESS_OR_EQUAL, DS__PROPERTY_FILTER__OPERATOR__LESS_THAN_OR_EQUAL,
     DS__PROPERTY_FILTER__OPERATOR__GREATER_THAN_OR_EQUAL},
    {GQL_GREATER, DS__PROPERTY_FILTER__OPERATOR__GREATER_THAN,
     DS__PROPERTY_FILTER__OPERATOR__LESS_THAN},
    {GQL_GREATER_OR_EQUAL, DS__PROPERTY_FILTER__OPERATOR__GREATER_THAN_OR_EQUAL,
     DS__PROPERTY_FILTER__OPERATOR__LESS_THAN_OR_EQUAL},
};

/* Takes one of the six; NULL if none comes next. */
static status take_comparator(struct gql_parser *parser, const struct comparator **out)
{
    *out = NULL;
    for (size_t i = 0; i < sizeof comparators / sizeof comparators[0] && *out == NULL; i++)
        if (gql_sees(parser, comparators[i].kind))
            *out = &comparators[i];
    return *out == NULL ? status_ok() : gql_advance(parser);
}

/* --- one condition --- */

static status is_null(struct gql_parser *parser, Ds__PropertyFilter *filter)
{
    TRY(gql_need(parser, GQL_NULL));
    PROTO_NEW(parser->arena, filter->value, DS__VALUE__INIT);
    filter->value->value_type_case = DS__VALUE__VALUE_TYPE_NULL_VALUE;
    filter->op = DS__PROPERTY_FILTER__OPERATOR__EQUAL;
    return status_ok();
}

/* IN and NOT IN: behind them an array, however it is written. */
static status is_in(struct gql_parser *parser, Ds__PropertyFilter *filter,
                    Ds__PropertyFilter__Operator op)
{
    filter->op = op;
    return gql_sees(parser, GQL_OPEN) ? gql_value_list(parser, &filter->value)
                                      : gql_value(parser, &filter->value);
}

/* A comparator that is a word, and what follows. */
static status word_comparison(struct gql_parser *parser, Ds__PropertyFilter *filter)
{
    bool taken;
    TRY(gql_take(parser, GQL_IS, &taken));
    if (taken)
        return is_null(parser, filter);
    TRY(gql_take(parser, GQL_IN, &taken));
    if (taken)
        return is_in(parser, filter, DS__PROPERTY_FILTER__OPERATOR__IN);
    TRY(gql_take(parser, GQL_NOT, &taken));
    if (taken) {
        TRY(gql_need(parser, GQL_IN));
        return is_in(parser, filter, DS__PROPERTY_FILTER__OPERATOR__NOT_IN);
    }
    filter->op = DS__PROPERTY_FILTER__OPERATOR__EQUAL;
    TRY(gql_take(parser, GQL_CONTAINS, &taken));
    if (taken)
        return gql_value(parser, &filter->value);
    filter->op = DS__PROPERTY_FILTER__OPERATOR__HAS_ANCESTOR;
    TRY(gql_take(parser, GQL_HAS, &taken));
    if (!taken)
        return gql_unexpected(parser);
    TRY(gql_need(parser, GQL_ANCESTOR));
    return gql_value(parser, &filter->value);
}

/* property comparator value */
static status forward_condition(struct gql_parser *parser, Ds__PropertyFilter *filter)
{
    const struct comparator *comparator;
    TRY(gql_property(parser, &filter->property));
    TRY(take_comparator(parser, &comparator));
    if (comparator == NULL)
        return word_comparison(parser, filter);
    filter->op = comparator->forward;
    return gql_value(parser, &filter->value);
}

/* value comparator property */
static status backward_condition(struct gql_parser *parser, Ds__PropertyFilter *filter)
{
    const struct comparator *comparator;
    bool taken;
    TRY(gql_value(parser, &filter->value));
    TRY(take_comparator(parser, &comparator));
    if (comparator != NULL) {
        filter->op = comparator->backward;
        return gql_property(parser, &filter->property);
    }
    filter->op = DS__PROPERTY_FILTER__OPERATOR__EQUAL;
    TRY(gql_take(parser, GQL_IN, &taken));
    if (taken)
        return gql_property(parser, &filter->property);
    filter->op = DS__PROPERTY_FILTER__OPERATOR__HAS_ANCESTOR;
    TRY(gql_take(parser, GQL_HAS, &taken));
    if (!taken)
        return gql_unexpected(parser);
    TRY(gql_need(parser, GQL_DESCENDANT));
    return gql_property(parser, &filter->property);
}

static status condition(struct gql_parser *parser, Ds__Filter **out)
{
    bool is_name = gql_sees(parser, GQL_QUOTED_NAME), is_call = false;
    PROTO_NEW(parser->arena, *out, DS__FILTER__INIT);
    (*out)->filter_type_case = DS__FILTER__FILTER_TYPE_PROPERTY_FILTER;
    PROTO_NEW(parser->arena, (*out)->property_filter, DS__PROPERTY_FILTER__INIT);
    if (gql_sees(parser, GQL_NAME)) {
        is_name = true;
        TRY(gql_is_call(parser, &is_call));
    }
    return is_name && !is_call ? forward_condition(parser, (*out)->property_filter)
                               : backward_condition(parser, (*out)->property_filter);
}

/* --- several --- */

/* A composition of one filter is that filter. */
static status compose(struct gql_parser *parser, const struct vector *filters,
                      Ds__CompositeFilter__Operator op, Ds__Filter **out)
{
    Ds__Filter **items = filters->items;
    if (filters->count == 1) {
        *out = items[0];
        return status_ok();
    }
    PROTO_NEW(parser->arena, *out, DS__FILTER__INIT);
    (*out)->filter_type_case = DS__FILTER__FILTER_TYPE_COMPOSITE_FILTER;
    PROTO_NEW(parser->arena, (*out)->composite_filter, DS__COMPOSITE_FILTER__INIT);
    (*out)->composite_filter->op = op;
    (*out)->composite_filter->n_filters = filters->count;
    (*out)->composite_filter->filters = items;
    return status_ok();
}

static status condition_or_group(struct gql_parser *parser, Ds__Filter **out)
{
    bool is_group;
    TRY(gql_take(parser, GQL_OPEN, &is_group));
    if (!is_group)
        return condition(parser, out);
    TRY(gql_enter(parser));
    TRY(gql_compound(parser, out));
    parser->depth--;
    return gql_need(parser, GQL_CLOSE);
}

static status conjunction(struct gql_parser *parser, Ds__Filter **out)
{
    struct vector filters = {0};
    for (bool more = true; more;) {
        Ds__Filter *filter;
        TRY(condition_or_group(parser, &filter));
        TRY(vector_add(&filters, parser->arena, &filter, sizeof(Ds__Filter *)));
        TRY(gql_take(parser, GQL_AND, &more));
    }
    return compose(parser, &filters, DS__COMPOSITE_FILTER__OPERATOR__AND, out);
}

status gql_compound(struct gql_parser *parser, Ds__Filter **out)
{
    struct vector filters = {0};
    for (bool more = true; more;) {
        Ds__Filter *filter;
        TRY(conjunction(parser, &filter));
        TRY(vector_add(&filters, parser->arena, &filter, sizeof(Ds__Filter *)));
        TRY(gql_take(parser, GQL_OR, &more));
    }
    return compose(parser, &filters, DS__COMPOSITE_FILTER__OPERATOR__OR, out);
}
