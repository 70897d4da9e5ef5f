/* Aggregations: see aggregation.h. */
#include "datastore/aggregation.h"

#include "base/limits.h"
#include "bigtable/timestamps.h"
#include "datastore/property_path.h"
#include "datastore/validate.h"

#include <stdio.h>

#define INVALID(...)   status_make(STATUS_INVALID_ARGUMENT, __VA_ARGS__)
#define OPERATOR(name) DS__AGGREGATION_QUERY__AGGREGATION__OPERATOR_##name

struct ds_aggregation {
    Ds__AggregationQuery__Aggregation__OperatorCase operator;
    const char *alias;
    const char *property;         /* NULL: of a count */
    struct ds_property_path path; /* the same, through entities */
    int64_t most;                 /* what a count is up to */
    int64_t count;                /* of results, or of numbers */
    __int128 integers;            /* their sum */
    double doubles;
    bool has_double;
};

/* --- checking --- */

static status check_property(struct ds_aggregation *out, const Ds__PropertyReference *property,
                             struct arena *arena)
{
    if (property == NULL)
        return INVALID("An aggregation has no property.");
    TRY(ds_property_check(property->name));
    if (ds_name_is_reserved(property->name))
        return INVALID("Aggregations are not supported for the property: %s", property->name);
    out->property = property->name;
    return ds_property_path_parse(property->name, arena, &out->path);
}

static status check_operator(const Ds__AggregationQuery__Aggregation *request,
                             struct ds_aggregation *out, struct arena *arena)
{
    *out = (struct ds_aggregation){.operator= request->operator_case, .most = INT64_MAX};
    switch (request->operator_case) {
    case OPERATOR(COUNT):
        if (request->count->up_to == NULL)
            return status_ok();
        if (request->count->up_to->value < 0)
            return INVALID("The `up_to` value in a COUNT aggregation must be greater than or equal "
                           "to zero.");
        out->most = request->count->up_to->value;
        return status_ok();
    case OPERATOR(SUM):
        return check_property(out, request->sum->property, arena);
    case OPERATOR(AVG):
        return check_property(out, request->avg->property, arena);
    default:
        return INVALID("An aggregation has no operator.");
    }
}

/* `*unnamed`: how many had no alias before. */
static status set_alias(struct ds_aggregation *out, const char *alias, int *unnamed,
                        struct arena *arena)
{
    enum { MOST = 32 };
    out->alias = alias;
    if (ds_name_is_reserved(alias))
        return INVALID("The property.name \"%s\" is reserved.", alias);
    if (alias[0] != '\0')
        return ds_property_check(alias);
    char *name = arena_alloc(arena, MOST);
    if (name == NULL)
        return status_out_of_memory();
    snprintf(name, MOST, "property_%d", ++*unnamed);
    out->alias = name;
    return status_ok();
}

static status check_alias(const struct ds_aggregations *aggregations, const char *alias)
{
    for (size_t i = 0; i < aggregations->count; i++)
        if (strcmp(aggregations->items[i].alias, alias) == 0)
            return INVALID("The alias \"%s\" is of more than one aggregation.", alias);
    return status_ok();
}

status ds_aggregations_check(const Ds__AggregationQuery *request, struct arena *arena,
                             struct ds_aggregations *out)
{
    int unnamed = 0;
    *out = (struct ds_aggregations){.count = 0};
    if (request->n_aggregations == 0)
        return INVALID("An aggregation query has at least one aggregation.");
    if (request->n_aggregations > LIMIT_DS_AGGREGATIONS)
        return INVALID("The maximum number of aggregations allowed in an aggregation query is %d. "
                       "Received: %zu",
                       LIMIT_DS_AGGREGATIONS, request->n_aggregations);
    out->items = arena_alloc(arena, request->n_aggregations * sizeof *out->items);
    if (out->items == NULL)
        return status_out_of_memory();
    for (; out->count < request->n_aggregations; out->count++) {
        struct ds_aggregation *item = &out->items[out->count];
        TRY(check_operator(request->aggregations[out->count], item, arena));
        TRY(set_alias(item, request->aggregations[out->count]->alias, &unnamed, arena));
        TRY(check_alias(out, item->alias));
    }
    return status_ok();
}

static bool is_projected(const struct ds_query *query, const char *property)
{
    for (size_t i = 0; i < query->projected_count; i++)
        if (strcmp(query->projected[i], property) == 0)
            return true;
    return false;
}

status ds_aggregations_check_query(const struct ds_aggregations *aggregations,
                                   const struct ds_query *query)
{
    for (size_t i = 0; i < aggregations->count; i++) {
        const char *property = aggregations->items[i].property;
        if (property == NULL || query->result_type == DS__ENTITY_RESULT__RESULT_TYPE__FULL)
            continue;
        if (query->result_type == DS__ENTITY_RESULT__RESULT_TYPE__KEY_ONLY)
            return INVALID("Aggregation over non-key properties is not supported for base query "
                           "that only returns keys.");
        if (!is_projected(query, property))
            return INVALID("The aggregation property %s is not present in the base query's "
                           "projection.",
                           property);
    }
    return status_ok();
}

/* --- running --- */

static const Ds__Value *value_of(const struct ds_aggregation *aggregation, const Ds__Entity *entity)
{
    const Ds__Value *value = ds_property_find(entity, aggregation->property);
    return value == NULL ? ds_property_get(entity, &aggregation->path) : value;
}

static bool has_all(const struct ds_aggregations *aggregations, const Ds__Entity *entity)
{
    for (size_t i = 0; i < aggregations->count; i++) {
        if (aggregations->items[i].property == NULL)
            continue;
        const Ds__Value *value = value_of(&aggregations->items[i], entity);
        if (value == NULL || value->exclude_from_indexes)
            return false;
    }
    return true;
}

static void add_number(struct ds_aggregation *aggregation, const Ds__Value *value)
{
    bool is_double = value->value_type_case == DS__VALUE__VALUE_TYPE_DOUBLE_VALUE;
    if (!is_double && value->value_type_case != DS__VALUE__VALUE_TYPE_INTEGER_VALUE)
        return;
    aggregation->count++;
    aggregation->has_double = aggregation->has_double || is_double;
    if (is_double)
        aggregation->doubles += value->double_value;
    else
        aggregation->integers += value->integer_value;
}

static void add_result(struct ds_aggregations *aggregations, const Ds__Entity *entity)
{
    for (size_t i = 0; i < aggregations->count; i++) {
        struct ds_aggregation *item = &aggregations->items[i];
        if (item->property != NULL)
            add_number(item, value_of(item, entity));
        else if (item->count < item->most)
            item->count++;
    }
}

static bool needs_entities(const struct ds_aggregations *aggregations)
{
    for (size_t i = 0; i < aggregations->count; i++)
        if (aggregations->items[i].property != NULL)
            return true;
    return false;
}

/* Whether more results change nothing. */
static bool is_done(const struct ds_aggregations *aggregations)
{
    for (size_t i = 0; i < aggregations->count; i++)
        if (aggregations->items[i].property != NULL ||
            aggregations->items[i].count < aggregations->items[i].most)
            return false;
    return true;
}

/* It may run again, over a later snapshot. */
static void begin_anew(struct ds_aggregations *aggregations)
{
    for (size_t i = 0; i < aggregations->count; i++) {
        struct ds_aggregation *each = &aggregations->items[i];
        each->count = 0;
        each->integers = 0;
        each->doubles = 0;
        each->has_double = false;
    }
}

/* Offset and limit are of the results that have all properties. */
static status add_all(struct ds_aggregations *aggregations, const struct ds_query *query,
                      struct ds_results *results)
{
    bool wants_entity = needs_entities(aggregations), found = true;
    struct ds_result result;
    int64_t skipped = 0, added = 0;
    while ((query->limit < 0 || added < query->limit) && !is_done(aggregations)) {
        TRY(ds_results_next(results, wants_entity, NULL, &result, &found));
        if (!found)
            return status_ok();
        if (wants_entity && !has_all(aggregations, result.version.entity))
            continue;
        if (skipped++ < query->offset)
            continue;
        add_result(aggregations, result.version.entity);
        added++;
    }
    return status_ok();
}

/* --- the answer --- */

static void set_integer(Ds__Value *value, int64_t integer)
{
    value->value_type_case = DS__VALUE__VALUE_TYPE_INTEGER_VALUE;
    value->integer_value = integer;
}

static void set_double(Ds__Value *value, double number)
{
    value->value_type_case = DS__VALUE__VALUE_TYPE_DOUBLE_VALUE;
    value->double_value = number;
}

static void set_value(const struct ds_aggregation *aggregation, Ds__Value *value)
{
    bool fits = aggregation->integers >= INT64_MIN && aggregation->integers <= INT64_MAX;
    double sum = (double)aggregation->integers + aggregation->doubles;
    if (aggregation->operator== OPERATOR(COUNT))
        set_integer(value, aggregation->count);
    else if (aggregation->operator== OPERATOR(AVG) && aggregation->count == 0)
        value->value_type_case = DS__VALUE__VALUE_TYPE_NULL_VALUE;
    else if (aggregation->operator== OPERATOR(AVG))
        set_double(value, sum / (double)aggregation->count);
    else if (aggregation->has_double || !fits)
        set_double(value, sum);
    else
        set_integer(value, (int64_t)aggregation->integers);
}

static status make_result(const struct ds_aggregations *aggregations, struct arena *arena,
                          Ds__AggregationResult **out)
{
    Ds__AggregationResult *result;
    PROTO_NEW(arena, result, DS__AGGREGATION_RESULT__INIT);
    result->aggregate_properties =
        arena_alloc(arena, aggregations->count * sizeof *result->aggregate_properties);
    if (result->aggregate_properties == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < aggregations->count; i++) {
        Ds__AggregationResult__AggregatePropertiesEntry *entry;
        PROTO_NEW(arena, entry, DS__AGGREGATION_RESULT__AGGREGATE_PROPERTIES_ENTRY__INIT);
        PROTO_NEW(arena, entry->value, DS__VALUE__INIT);
        entry->key = aggregations->items[i].alias;
        set_value(&aggregations->items[i], entry->value);
        result->aggregate_properties[result->n_aggregate_properties++] = entry;
    }
    *out = result;
    return status_ok();
}

static status make_batch(const struct ds_aggregations *aggregations,
                         const struct ds_reading *reading, struct arena *arena,
                         Ds__AggregationResultBatch **out)
{
    Ds__AggregationResultBatch *batch;
    PROTO_NEW(arena, batch, DS__AGGREGATION_RESULT_BATCH__INIT);
    batch->aggregation_results = arena_alloc(arena, sizeof(Ds__AggregationResult *));
    if (batch->aggregation_results == NULL)
        return status_out_of_memory();
    TRY(make_result(aggregations, arena, &batch->aggregation_results[0]));
    batch->n_aggregation_results = 1;
    batch->more_results = DS__QUERY_RESULT_BATCH__MORE_RESULTS_TYPE__NO_MORE_RESULTS;
    *out = batch;
    return timestamp_message(reading->read_time_us, arena, &batch->read_time);
}

status ds_aggregations_run(struct ds_aggregations *aggregations, const struct ds_query *query,
                           const struct ds_plan *plan, struct ds_reading *reading,
                           struct arena *arena, struct ds_reads *reads,
                           Ds__AggregationResultBatch **out)
{
    struct ds_results *results;
    begin_anew(aggregations);
    TRY(ds_results_open(query, plan, reading, arena, &results));
    status s = add_all(aggregations, query, results);
    *reads = ds_results_reads(results);
    status closed = ds_results_close(results);
    if (!status_is_ok(s)) {
        status_free(closed);
        return s;
    }
    TRY(closed);
    return make_batch(aggregations, reading, arena, out);
}
