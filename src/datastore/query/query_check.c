/* Queries, checked and completed: see query_check.h. */
#include "datastore/query/query_check.h"

#include "base/limits.h"
#include "base/vector.h"
#include "datastore/index/index_rows.h"
#include "datastore/model/validate.h"
#include "datastore/query/query_terms.h"

#include <stdlib.h>

#define INVALID(...) status_make(STATUS_INVALID_ARGUMENT, __VA_ARGS__)

struct checking {
    const Ds__Query *request;
    struct arena *arena;
    struct ds_query *query;
    struct vector orders;
    bool orders_by_key; /* what would come after it changes nothing */
};

/* --- names, each once --- */

static bool has_name(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static status check_reference(const Ds__PropertyReference *reference, const char *what)
{
    if (reference == NULL)
        return INVALID("A %s has no property.", what);
    return ds_property_check(reference->name);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* --- projections --- */

/* The key is in every result: asking for it too changes nothing. */
static status check_projection(const struct checking *checking)
{
    const Ds__Query *request = checking->request;
    struct ds_query *query = checking->query;
    const char **names = arena_alloc(checking->arena, request->n_projection * sizeof *names);
    if (names == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < request->n_projection; i++) {
        TRY(check_reference(request->projection[i]->property, "projection"));
        const char *name = request->projection[i]->property->name;
        if (ds_is_key(name))
            continue;
        if (strcmp(name, DS_SCATTER_PROPERTY) == 0)
            return INVALID("projections are not supported for the property: %s", name);
        if (has_name(names, query->projected_count, name))
            return INVALID("cannot project a property multiple times");
        names[query->projected_count++] = name;
    }
    if (query->projected_count > 1)
        qsort(names, query->projected_count, sizeof *names, compare_names);
    query->projected = names;
    if (request->n_projection > 0)
        query->result_type = query->projected_count > 0 ? DS__ENTITY_RESULT__RESULT_TYPE__PROJECTION
                                                        : DS__ENTITY_RESULT__RESULT_TYPE__KEY_ONLY;
    if (query->kind == NULL && query->projected_count > 0)
        return INVALID("kind is required for projections");
    return status_ok();
}

/* Whether the filter as it was sent has an equality: what is made of it may have no conjunction
 * left. As deep as messages may be. */
static bool has_equality(const Ds__Filter *filter, const char *property)
{
    if (filter == NULL)
        return false;
    if (filter->filter_type_case == DS__FILTER__FILTER_TYPE_PROPERTY_FILTER) {
        const Ds__PropertyFilter *one = filter->property_filter;
        bool is_equality = one->op == DS__PROPERTY_FILTER__OPERATOR__EQUAL ||
                           one->op == DS__PROPERTY_FILTER__OPERATOR__IN;
        return is_equality && strcmp(one->property->name, property) == 0;
    }
    for (size_t i = 0; i < filter->composite_filter->n_filters; i++)
        if (has_equality(filter->composite_filter->filters[i], property))
            return true;
    return false;
}

static status check_projected_filters(const struct checking *checking)
{
    const struct ds_query *query = checking->query;
    for (size_t i = 0; i < query->projected_count; i++)
        if (has_equality(checking->request->filter, query->projected[i]))
            return INVALID("cannot use projection on a property with an equality filter");
    return status_ok();
}

/* --- the order --- */

/* A property that is there already stays where it is. */
static status add_order(struct checking *checking, const char *property, enum ds_flip flip)
{
    const struct ds_order *orders = checking->orders.items;
    const struct ds_query *query = checking->query;
    struct ds_order order = {.property = property, .flip = flip};
    for (size_t i = 0; i < checking->orders.count; i++)
        if (strcmp(orders[i].property, property) == 0)
            return status_ok();
    order.is_projected = has_name(query->projected, query->projected_count, property);
    return vector_add(&checking->orders, checking->arena, &order, sizeof order);
}

static status check_order(struct checking *checking, const Ds__PropertyOrder *order)
{
    TRY(check_reference(order->property, "order"));
    const char *name = order->property->name;
    bool is_descending = order->direction == DS__PROPERTY_ORDER__DIRECTION__DESCENDING;
    enum ds_flip flip = is_descending ? DS_DESCENDING : DS_ASCENDING;
    if (checking->query->kind == NULL && (!ds_is_key(name) || is_descending))
        return INVALID("kind is required for all orders except __key__ ascending");
    if (checking->orders_by_key)
        return status_ok();
    if (!ds_is_key(name))
        return add_order(checking, name, flip);
    checking->orders_by_key = true;
    checking->query->key_flip = flip;
    return status_ok();
}

/* Adds the ranges of each conjunction, in the order of their names. */
static status add_ranges(struct checking *checking)
{
    const struct ds_query *query = checking->query;
    struct vector names = {0};
    for (size_t i = 0; i < query->conjunction_count; i++)
        for (size_t j = 0; j < query->conjunctions[i].range_count; j++)
            TRY(vector_add(&names, checking->arena, &query->conjunctions[i].ranges[j].property,
                           sizeof(const char *)));
    if (names.count > 1)
        qsort(names.items, names.count, sizeof(const char *), compare_names);
    for (size_t i = 0; i < names.count; i++) {
        size_t before = checking->orders.count;
        const char *name = ((const char *const *)names.items)[i];
        TRY(add_order(checking, name, DS_ASCENDING));
        if (checking->orders_by_key && checking->orders.count > before)
            return INVALID("The first sort property must be the same as the property to which the "
                           "inequality filter is applied. In your query the first sort property "
                           "is %s but the inequality filter is on %s",
                           before == 0 ? DS_KEY_PROPERTY
                                       : ((struct ds_order *)checking->orders.items)->property,
                           name);
    }
    return status_ok();
}

/* --- distinct results --- */

static status distinct_names(const struct checking *checking, const char ***out)
{
    const Ds__Query *request = checking->request;
    const char **names = arena_alloc(checking->arena, request->n_distinct_on * sizeof *names);
    if (names == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < request->n_distinct_on; i++) {
        TRY(check_reference(request->distinct_on[i], "distinct_on"));
        names[i] = request->distinct_on[i]->name;
        if (ds_is_key(names[i]))
            return INVALID("group by is not supported for the property: %s", names[i]);
        if (has_name(names, i, names[i]))
            return INVALID("cannot group by a property multiple times");
        if (has_equality(request->filter, names[i]))
            return INVALID("cannot use group by on a property with an equality filter");
    }
    if (checking->query->kind == NULL && request->n_distinct_on > 0)
        return INVALID("kind is required for group by");
    *out = names;
    return status_ok();
}

/* The orders that the request asks for are in `orders`: the first must be of these properties;
 * those that it lacks come behind. */
static status add_distinct(struct checking *checking)
{
    const char **names;
    size_t count = checking->request->n_distinct_on;
    TRY(distinct_names(checking, &names));
    const struct ds_order *orders = checking->orders.items;
    size_t first = 0;
    while (first < checking->orders.count && has_name(names, count, orders[first].property))
        first++;
    bool says_more = first < checking->orders.count || checking->orders_by_key;
    if (count > 0 && first < count && says_more)
        return INVALID("must specify all group by orderings before any non group by orderings");
    for (size_t i = 0; i < count; i++)
        TRY(add_order(checking, names[i], DS_ASCENDING));
    checking->query->distinct_count = count;
    return status_ok();
}

static bool asks_for_one_key(const struct ds_query *query)
{
    if (query->conjunction_count != 1)
        return false;
    const struct ds_range *keys = &query->conjunctions[0].keys;
    return keys->low.size > 0 && bytes_equal(keys->low, keys->high);
}

static status add_projected(struct checking *checking)
{
    const struct ds_query *query = checking->query;
    size_t before = checking->orders.count;
    for (size_t i = 0; i < query->projected_count; i++)
        TRY(add_order(checking, query->projected[i], DS_ASCENDING));
    if (checking->orders_by_key && checking->orders.count > before)
        return INVALID("A query that is ordered by %s must be ordered by all projected properties "
                       "before it",
                       DS_KEY_PROPERTY);
    checking->query->free_count = checking->orders.count - before;
    return status_ok();
}

static status complete_order(struct checking *checking)
{
    const Ds__Query *request = checking->request;
    struct ds_query *query = checking->query;
    if (!asks_for_one_key(query))
        for (size_t i = 0; i < request->n_order; i++)
            TRY(check_order(checking, request->order[i]));
    TRY(add_distinct(checking));
    TRY(add_ranges(checking));
    TRY(add_projected(checking));
    query->orders = checking->orders.items;
    query->order_count = checking->orders.count;
    return status_ok();
}

/* --- the rest --- */

static status check_kind(const Ds__Query *request, struct ds_query *query)
{
    if (request->n_kind > 1)
        return INVALID("multiple kinds not supported");
    if (request->n_kind == 0)
        return status_ok();
    TRY(ds_kind_check(request->kind[0]->name));
    query->kind = request->kind[0]->name;
    return status_ok();
}

static status check_numbers(const Ds__Query *request, struct ds_query *query)
{
    if (request->offset < 0)
        return INVALID("Offset must be non-negative.");
    if (request->limit != NULL && request->limit->value < 0)
        return INVALID("Limit must be non-negative.");
    query->offset = request->offset;
    query->limit = request->limit == NULL ? -1 : request->limit->value;
    return status_ok();
}

/* More than an index can have nothing could serve; and each of them is held against the others. */
static status check_count(const char *what, size_t count)
{
    if (count <= LIMIT_DS_QUERY_PROPERTIES)
        return status_ok();
    return INVALID("A query has up to %d %s. There are %zu in your query.",
                   LIMIT_DS_QUERY_PROPERTIES, what, count);
}

static status check_counts(const Ds__Query *request)
{
    TRY(check_count("projections", request->n_projection));
    TRY(check_count("orders", request->n_order));
    return check_count("properties that its results are distinct on", request->n_distinct_on);
}

status ds_query_check(const Ds__Query *request, const Ds__PartitionId *partition,
                      const struct ds_database *database, struct arena *arena, struct ds_query *out)
{
    struct checking checking = {.request = request, .arena = arena, .query = out};
    *out = (struct ds_query){.database = *database,
                             .name_space = partition == NULL ? "" : partition->namespace_id,
                             .key_flip = DS_ASCENDING,
                             .result_type = DS__ENTITY_RESULT__RESULT_TYPE__FULL};
    TRY(ds_partition_check(partition, database));
    TRY(check_kind(request, out));
    TRY(check_numbers(request, out));
    TRY(check_counts(request));
    TRY(ds_filter_check(request->filter, arena, out));
    TRY(check_projection(&checking));
    TRY(check_projected_filters(&checking));
    return complete_order(&checking);
}
