/* Filters, from a tree to a union of conjunctions: see query_check.h.
 *
 * IN is a union of equalities. NOT_EQUAL and NOT_IN are a range with values that it excludes, not a
 * union of the ranges between: the results are the same, and one scan gives them. */
#include "datastore/query/query_terms.h"

#include "base/limits.h"
#include "datastore/model/validate.h"

#define INVALID(...) status_make(STATUS_INVALID_ARGUMENT, __VA_ARGS__)

/* Some of which one is to be true: a list of terms. */
struct parts {
    struct ds_terms *parts;
    size_t count;
};

struct filtering {
    struct arena *arena;
    struct ds_query *query;
    bool has_exclusion; /* a NOT_EQUAL or NOT_IN was there */
    bool has_not_in;
    bool has_union; /* an IN or OR was there */
};

/* --- checks of a comparison --- */

static status check_key(const struct filtering *filtering, const Ds__Value *value)
{
    const struct ds_query *query = filtering->query;
    if (value->value_type_case != DS__VALUE__VALUE_TYPE_KEY_VALUE)
        return INVALID("%s filter value must be a Key", DS_KEY_PROPERTY);
    TRY(ds_key_check(value->key_value, &query->database, DS_KEY_READ));
    const char *name_space = value->key_value->partition_id->namespace_id;
    if (strcmp(name_space, query->name_space) != 0)
        return INVALID("%s filter namespace is %s but query namespace is %s", DS_KEY_PROPERTY,
                       name_space, query->name_space);
    return status_ok();
}

static status check_value(const struct filtering *filtering, const char *property,
                          const Ds__Value *value)
{
    if (value->value_type_case == DS__VALUE__VALUE_TYPE_ENTITY_VALUE)
        return INVALID("An entity value is not allowed");
    if (value->value_type_case == DS__VALUE__VALUE_TYPE_ARRAY_VALUE)
        return INVALID("A list value is not allowed");
    TRY(ds_value_check(value, property));
    return ds_is_key(property) ? check_key(filtering, value) : status_ok();
}

static status check_list(const struct filtering *filtering, const char *property,
                         const Ds__PropertyFilter *filter)
{
    bool is_in = filter->op == DS_OP(IN);
    const char *name = is_in ? "IN" : "NOT_IN";
    size_t most = is_in ? LIMIT_DS_IN_VALUES : LIMIT_DS_NOT_IN_VALUES;
    if (filter->value->value_type_case != DS__VALUE__VALUE_TYPE_ARRAY_VALUE)
        return INVALID("%s requires an array value.", name);
    const Ds__ArrayValue *array = filter->value->array_value;
    if (array->n_values == 0)
        return INVALID("%s requires at least one value.", name);
    if (array->n_values > most)
        return INVALID("%s supports up to %zu values. There are %zu values in the %s filter in "
                       "your query.",
                       name, most, array->n_values, name);
    for (size_t i = 0; i < array->n_values; i++)
        TRY(check_value(filtering, property, array->values[i]));
    return status_ok();
}

static status check_ancestor(const struct filtering *filtering, const char *property,
                             const Ds__Value *value)
{
    if (!ds_is_key(property))
        return INVALID("property must be %s", DS_KEY_PROPERTY);
    if (value->value_type_case != DS__VALUE__VALUE_TYPE_KEY_VALUE)
        return INVALID("HAS_ANCESTOR requires a key value");
    return check_value(filtering, property, value);
}

static status check_exclusion(struct filtering *filtering)
{
    if (filtering->has_exclusion)
        return INVALID("Only a single 'NOT_EQUAL' or 'NOT_IN' is allowed per query.");
    filtering->has_exclusion = true;
    return status_ok();
}

static status check_operator(struct filtering *filtering, const char *property,
                             const Ds__PropertyFilter *filter)
{
    switch (filter->op) {
    case DS_OP(NOT_IN):
        filtering->has_not_in = true;
        TRY(check_exclusion(filtering));
        return check_list(filtering, property, filter);
    case DS_OP(IN):
        filtering->has_union = true;
        return check_list(filtering, property, filter);
    case DS_OP(HAS_ANCESTOR):
        return check_ancestor(filtering, property, filter->value);
    case DS_OP(NOT_EQUAL):
        TRY(check_exclusion(filtering));
        return check_value(filtering, property, filter->value);
    case DS_OP(LESS_THAN):
    case DS_OP(LESS_THAN_OR_EQUAL):
    case DS_OP(GREATER_THAN):
    case DS_OP(GREATER_THAN_OR_EQUAL):
    case DS_OP(EQUAL):
        return check_value(filtering, property, filter->value);
    default:
        return INVALID("a property filter must specify an operator");
    }
}

static status check_comparison(struct filtering *filtering, const Ds__PropertyFilter *filter)
{
    struct ds_query *query = filtering->query;
    if (filter->property == NULL)
        return INVALID("A filter has no property.");
    const char *property = filter->property->name;
    TRY(ds_property_check(property));
    if (query->kind == NULL && !ds_is_key(property))
        return INVALID("kind is required for non-%s filters", DS_KEY_PROPERTY);
    if (filter->value == NULL)
        return INVALID("The filter on the property \"%s\" has no value.", property);
    TRY(ds_value_normalise(filter->value, &query->database, filtering->arena));
    return check_operator(filtering, property, filter);
}

/* --- from the tree to terms --- */

static status make_parts(const struct filtering *filtering, size_t count, struct parts *out)
{
    if (count > LIMIT_DS_DISJUNCTIONS)
        return INVALID("The query has more than %d disjunctions in disjunctive normal form.",
                       LIMIT_DS_DISJUNCTIONS);
    out->parts = arena_zalloc(filtering->arena, count * sizeof *out->parts);
    out->count = count;
    return out->parts == NULL ? status_out_of_memory() : status_ok();
}

static status set_terms(const struct filtering *filtering, struct ds_terms a, struct ds_terms b,
                        struct ds_terms *out)
{
    if (a.count + b.count > LIMIT_DS_QUERY_PROPERTIES)
        return INVALID("A query has up to %d filters of one conjunction.",
                       LIMIT_DS_QUERY_PROPERTIES);
    struct ds_term *terms = arena_alloc(filtering->arena, (a.count + b.count) * sizeof *terms);
    if (terms == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < a.count; i++)
        terms[i] = a.terms[i];
    for (size_t i = 0; i < b.count; i++)
        terms[a.count + i] = b.terms[i];
    *out = (struct ds_terms){.terms = terms, .count = a.count + b.count};
    return status_ok();
}

static status expand_comparison(struct filtering *filtering, const Ds__PropertyFilter *filter,
                                struct parts *out)
{
    TRY(check_comparison(filtering, filter));
    bool is_in = filter->op == DS_OP(IN);
    size_t count = is_in ? filter->value->array_value->n_values : 1;
    TRY(make_parts(filtering, count, out));
    for (size_t i = 0; i < count; i++) {
        struct ds_term term = {.property = filter->property->name,
                               .op = is_in ? DS_OP(EQUAL) : filter->op,
                               .value =
                                   is_in ? filter->value->array_value->values[i] : filter->value};
        struct ds_terms one = {.terms = &term, .count = 1};
        TRY(set_terms(filtering, one, (struct ds_terms){.count = 0}, &out->parts[i]));
    }
    return status_ok();
}

static status expand(struct filtering *filtering, const Ds__Filter *filter, struct parts *out);

static status unite(const struct filtering *filtering, struct parts a, struct parts b,
                    struct parts *out)
{
    TRY(make_parts(filtering, a.count + b.count, out));
    for (size_t i = 0; i < out->count; i++)
        out->parts[i] = i < a.count ? a.parts[i] : b.parts[i - a.count];
    return status_ok();
}

static status combine(const struct filtering *filtering, struct parts a, struct parts b,
                      struct parts *out)
{
    TRY(make_parts(filtering, a.count * b.count, out));
    for (size_t i = 0; i < out->count; i++)
        TRY(set_terms(filtering, a.parts[i / b.count], b.parts[i % b.count], &out->parts[i]));
    return status_ok();
}

static status expand_composite(struct filtering *filtering, const Ds__CompositeFilter *filter,
                               struct parts *out)
{
    bool is_or = filter->op == DS__COMPOSITE_FILTER__OPERATOR__OR;
    if (!is_or && filter->op != DS__COMPOSITE_FILTER__OPERATOR__AND)
        return INVALID("a composite filter must specify an operator");
    if (filter->n_filters == 0)
        return INVALID("A composite filter must have at least one sub-filter.");
    filtering->has_union = filtering->has_union || (is_or && filter->n_filters > 1);
    TRY(expand(filtering, filter->filters[0], out));
    for (size_t i = 1; i < filter->n_filters; i++) {
        struct parts before = *out, next;
        TRY(expand(filtering, filter->filters[i], &next));
        TRY((is_or ? unite : combine)(filtering, before, next, out));
    }
    return status_ok();
}

/* Expands filters as deep as messages may be. */
static status expand(struct filtering *filtering, const Ds__Filter *filter, struct parts *out)
{
    switch (filter->filter_type_case) {
    case DS__FILTER__FILTER_TYPE_COMPOSITE_FILTER:
        return expand_composite(filtering, filter->composite_filter, out);
    case DS__FILTER__FILTER_TYPE_PROPERTY_FILTER:
        return expand_comparison(filtering, filter->property_filter, out);
    default:
        return INVALID("a filter must have exactly one of its fields set");
    }
}

/* --- all of it --- */

status ds_filter_check(const Ds__Filter *filter, struct arena *arena, struct ds_query *out)
{
    struct filtering filtering = {.arena = arena, .query = out};
    struct parts parts;
    TRY(make_parts(&filtering, 1, &parts));
    if (filter != NULL)
        TRY(expand(&filtering, filter, &parts));
    if (filtering.has_not_in && filtering.has_union)
        return INVALID("'NOT_IN' cannot be used in the same query with 'IN' or 'OR'.");
    struct ds_conjunction *made = arena_alloc(arena, parts.count * sizeof *made);
    if (made == NULL)
        return status_out_of_memory();
    bytes ancestor = {0};
    size_t count = 0;
    for (size_t i = 0; i < parts.count; i++) {
        bool is_empty;
        TRY(ds_terms_gather(arena, parts.parts[i], &made[count], &is_empty));
        if (i > 0 && !bytes_equal(made[count].ancestor, ancestor))
            return INVALID("All disjunctions must have a common and unique ancestor "
                           "constraint.");
        ancestor = made[count].ancestor;
        count += !is_empty;
    }
    out->conjunctions = made;
    out->conjunction_count = count;
    return status_ok();
}
