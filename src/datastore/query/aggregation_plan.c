/* The sources of an aggregation's values: see aggregation.h. */
#include "datastore/query/aggregation_private.h"
#include "datastore/query/query_metadata.h"
#include "datastore/query/query_parts.h"
#include "datastore/query/query_terms.h"

/* --- from an index --- */

static bool has_equality(const struct ds_query *query, const char *property)
{
    for (size_t i = 0; i < query->conjunction_count; i++)
        if (ds_equality_find(&query->conjunctions[i], property, DS_ASCENDING) != NULL)
            return true;
    return false;
}

/* Whether the query bounds keys: then it is best served in their order. */
static bool has_keys(const struct ds_query *query)
{
    for (size_t i = 0; i < query->conjunction_count; i++) {
        const struct ds_range *keys = &query->conjunctions[i].keys;
        if (keys->low.size > 0 || keys->high.size > 0 || keys->excluded_count > 0)
            return true;
    }
    return false;
}

static bool is_ordered_by_key(const Ds__Query *request)
{
    for (size_t i = 0; i < request->n_order; i++)
        if (ds_is_key(request->order[i]->property->name))
            return true;
    return false;
}

/* A cursor says where to go on in the query's own order, and DISTINCT ON takes the first of each
 * group in it. */
static bool may_be_projected(const struct ds_aggregations *aggregations, const Ds__Query *request,
                             const struct ds_query *query)
{
    if (query->result_type != DS__ENTITY_RESULT__RESULT_TYPE__FULL || query->kind == NULL ||
        ds_is_metadata(query) || query->distinct_count > 0 || has_keys(query) ||
        is_ordered_by_key(request) || request->start_cursor.len > 0 || request->end_cursor.len > 0)
        return false;
    for (size_t i = 0; i < aggregations->property_count; i++)
        if (has_equality(query, aggregations->properties[i].name))
            return false;
    return true;
}

static size_t find_order(const struct ds_order *orders, size_t count, const char *property)
{
    size_t i = 0;
    while (i < count && strcmp(orders[i].property, property) != 0)
        i++;
    return i;
}

/* The query with the aggregated properties projected: behind its own order, which they may be in
 * already. */
static status project(const struct ds_aggregations *aggregations, struct arena *arena,
                      struct ds_query *query)
{
    size_t most = query->order_count + aggregations->property_count;
    const char **names = arena_alloc(arena, aggregations->property_count * sizeof *names);
    struct ds_order *orders = arena_alloc(arena, most * sizeof *orders);
    if (names == NULL || orders == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < query->order_count; i++)
        orders[i] = query->orders[i];
    query->orders = orders;
    for (size_t i = 0; i < aggregations->property_count; i++) {
        names[i] = aggregations->properties[i].name;
        size_t at = find_order(orders, query->order_count, names[i]);
        if (at == query->order_count) {
            orders[query->order_count++] = (struct ds_order){names[i], DS_ASCENDING, true};
            query->free_count++;
        }
        orders[at].is_projected = true;
    }
    query->projected = names;
    query->projected_count = aggregations->property_count;
    return status_ok();
}

static void set_orders(struct ds_aggregations *aggregations, const struct ds_query *query)
{
    aggregations->by_position = true;
    for (size_t i = 0; i < aggregations->property_count; i++)
        aggregations->properties[i].order =
            find_order(query->orders, query->order_count, aggregations->properties[i].name);
}

status ds_aggregations_plan(struct ds_aggregations *aggregations, const Ds__Query *request,
                            const struct ds_index *indexes, size_t count, struct arena *arena,
                            struct ds_query *query, struct ds_plan *out)
{
    bool is_projection = query->result_type == DS__ENTITY_RESULT__RESULT_TYPE__PROJECTION;
    struct ds_query projected = *query;
    aggregations->by_position = false;
    if (aggregations->property_count > 0 && may_be_projected(aggregations, request, query)) {
        TRY(project(aggregations, arena, &projected));
        status s = ds_plan_make(&projected, indexes, count, arena, out);
        if (status_is_ok(s)) {
            *query = projected;
            set_orders(aggregations, query);
        }
        if (s.code != STATUS_FAILED_PRECONDITION)
            return s;
        status_free(s);
    }
    TRY(ds_plan_make(query, indexes, count, arena, out));
    if (is_projection && aggregations->property_count > 0)
        set_orders(aggregations, query);
    return status_ok();
}

/* --- from an entity --- */

static status one_value(const Ds__Value *value, struct arena *arena, struct ds_value_list *out)
{
    out->values = arena_alloc(arena, sizeof *out->values);
    if (out->values == NULL)
        return status_out_of_memory();
    out->values[out->count++] = value;
    return status_ok();
}

/* The values of a property as its rows have them: of arrays, and of what is within entities. */
static status values_of_rows(const Ds__Entity *entity, const char *property, struct arena *arena,
                             struct ds_value_list *out)
{
    struct ds_index_rows rows;
    struct buffer made = {0};
    bytes prefix;
    ds_property_prefix(&made, ds_key_namespace(entity->key), ds_key_kind(entity->key),
                       bytes_of(property));
    TRY(ds_plan_keep(arena, &made, &prefix));
    TRY(ds_index_rows(entity, NULL, 0, arena, &rows));
    out->values = arena_alloc(arena, rows.count * sizeof *out->values);
    if (out->values == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < rows.count; i++) {
        if (!bytes_start_with(rows.rows[i].key, prefix))
            continue;
        bytes rest = bytes_from(rows.rows[i].key, prefix.size);
        Ds__Value *value;
        TRY(ds_value_decode(bytes_make(rest.data, ds_value_size(rest, DS_ASCENDING)), DS_ASCENDING,
                            rows.rows[i].types.data[0], arena, &value));
        if (value->meaning == DS_MEANING_TIMESTAMP)
            value->value_type_case = DS__VALUE__VALUE_TYPE_TIMESTAMP_VALUE; /* no number */
        out->values[out->count++] = value;
    }
    return status_ok();
}

status ds_aggregated_values(const Ds__Entity *entity, const struct ds_aggregated *property,
                            struct arena *arena, struct ds_value_list *out)
{
    bool is_within = property->path.count > 1;
    const Ds__Value *value = ds_property_find(entity, property->name);
    *out = (struct ds_value_list){0};
    if (!is_within && (value == NULL || value->exclude_from_indexes))
        return status_ok();
    if (!is_within && ds_value_has_bytes(value))
        return one_value(value, arena, out);
    return values_of_rows(entity, property->name, arena, out);
}
