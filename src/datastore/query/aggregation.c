/* Aggregations: see aggregation.h. */
#include "datastore/query/aggregation.h"

#include "base/check.h"
#include "datastore/model/validate.h"
#include "datastore/query/aggregation_private.h"
#include "datastore/query/query_cursor.h"
#include "wire/timestamps.h"

#include <stdio.h>
#include <stdlib.h>

#define INVALID(...)   status_make(STATUS_INVALID_ARGUMENT, __VA_ARGS__)
#define OPERATOR(name) DS__AGGREGATION_QUERY__AGGREGATION__OPERATOR_##name

struct ds_aggregation {
    Ds__AggregationQuery__Aggregation__OperatorCase operator;
    const char *alias;
    const char *property; /* NULL: of a count */
    size_t place;         /* of the property, among all */
    int64_t most;         /* what a count is up to */
    int64_t count;        /* of results, or of numbers */
    __int128 integers;    /* their sum */
    double doubles;
    bool has_double;
};

/* --- checking --- */

static status check_property(struct ds_aggregation *out, const Ds__PropertyReference *property)
{
    if (property == NULL)
        return INVALID("An aggregation has no property.");
    TRY(ds_property_check(property->name));
    if (ds_name_is_reserved(property->name))
        return INVALID("Aggregations are not supported for the property: %s", property->name);
    out->property = property->name;
    return status_ok();
}

static status check_operator(const Ds__AggregationQuery__Aggregation *request,
                             struct ds_aggregation *out)
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
        return check_property(out, request->sum->property);
    case OPERATOR(AVG):
        return check_property(out, request->avg->property);
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

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct ds_aggregated *)a)->name, ((const struct ds_aggregated *)b)->name);
}

static status add_property(struct ds_aggregations *out, const char *name, struct arena *arena)
{
    struct ds_aggregated *property = &out->properties[out->property_count];
    for (size_t i = 0; i < out->property_count; i++)
        if (strcmp(out->properties[i].name, name) == 0)
            return status_ok();
    property->name = name;
    out->property_count++;
    return ds_property_path_parse(name, arena, &property->path);
}

static status find_properties(struct ds_aggregations *out, struct arena *arena)
{
    for (size_t i = 0; i < out->count; i++)
        if (out->items[i].property != NULL)
            TRY(add_property(out, out->items[i].property, arena));
    qsort(out->properties, out->property_count, sizeof *out->properties, compare_names);
    for (size_t i = 0; i < out->count; i++)
        for (size_t j = 0; j < out->property_count && out->items[i].property != NULL; j++)
            if (strcmp(out->properties[j].name, out->items[i].property) == 0)
                out->items[i].place = j;
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
        TRY(check_operator(request->aggregations[out->count], item));
        TRY(set_alias(item, request->aggregations[out->count]->alias, &unnamed, arena));
        TRY(check_alias(out, item->alias));
    }
    return find_properties(out, arena);
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

/* --- one result, or those of an entity --- */

static void add_number(struct ds_aggregation *aggregation, const Ds__Value *value, int64_t times)
{
    bool is_double = value->value_type_case == DS__VALUE__VALUE_TYPE_DOUBLE_VALUE;
    if (times == 0 || (!is_double && value->value_type_case != DS__VALUE__VALUE_TYPE_INTEGER_VALUE))
        return;
    aggregation->count += times;
    aggregation->has_double = aggregation->has_double || is_double;
    if (is_double)
        aggregation->doubles += value->double_value * (double)times;
    else
        aggregation->integers += (__int128)value->integer_value * times;
}

static void add_results(struct ds_aggregations *aggregations, int64_t times)
{
    for (size_t i = 0; i < aggregations->count; i++) {
        struct ds_aggregation *item = &aggregations->items[i];
        if (item->property == NULL)
            item->count = times < item->most - item->count ? item->count + times : item->most;
    }
}

/* A value of the property at this place, in so many of the results. */
static void add_value(struct ds_aggregations *aggregations, size_t place, const Ds__Value *value,
                      int64_t times)
{
    for (size_t i = 0; i < aggregations->count; i++)
        if (aggregations->items[i].property != NULL && aggregations->items[i].place == place)
            add_number(&aggregations->items[i], value, times);
}

/* Of the combinations of values, which come like numbers whose last digit changes first, how many
 * of the first `size` have the digit; `inner` combinations of what is behind it. */
static int64_t count_digit(int64_t size, int64_t digit, int64_t digits, int64_t inner)
{
    CHECK(digits > 0 && inner > 0);
    int64_t rest = size % (digits * inner) - digit * inner;
    return size / (digits * inner) * inner + (rest < 0 ? 0 : rest < inner ? rest : inner);
}

/* The combinations from one to before another. */
static void add_combinations(struct ds_aggregations *aggregations,
                             const struct ds_value_list *lists, int64_t from, int64_t to)
{
    int64_t inner = 1;
    add_results(aggregations, to - from);
    for (size_t place = aggregations->property_count; place-- > 0;) {
        int64_t digits = (int64_t)lists[place].count;
        for (int64_t i = 0; i < digits; i++)
            add_value(aggregations, place, lists[place].values[i],
                      count_digit(to, i, digits, inner) - count_digit(from, i, digits, inner));
        inner *= digits;
    }
}

/* --- running --- */

struct running {
    struct ds_aggregations *aggregations;
    const struct ds_query *query;
    struct ds_results *results;
    struct arena *scratch; /* of one result at a time */
    bytes *values;         /* of a position */
    int64_t passed;        /* results, up to the offset */
    int64_t added;
};

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

/* Takes so many results: passes over what the offset wants, and says which are to be added. */
static void take(struct running *running, int64_t count, int64_t *from, int64_t *to)
{
    const struct ds_query *query = running->query;
    int64_t passed = query->offset - running->passed;
    *from = passed < count ? passed : count;
    running->passed += *from;
    *to = query->limit >= 0 && query->limit - running->added < count - *from
              ? *from + query->limit - running->added
              : count;
    running->added += *to - *from;
}

/* The values are in the position, and so is what type they had. */
static status add_position(struct running *running, const struct ds_result *result)
{
    struct ds_aggregations *aggregations = running->aggregations;
    const struct ds_query *query = running->query;
    bytes rest;
    add_results(aggregations, 1);
    if (aggregations->property_count == 0)
        return status_ok();
    if (!ds_position_values(query, result->position, query->order_count, running->values, &rest))
        return ds_damaged("a row without its values");
    for (size_t i = 0; i < aggregations->property_count; i++) {
        size_t order = aggregations->properties[i].order;
        Ds__Value *value;
        TRY(ds_number_decode(running->values[order], query->orders[order].flip,
                             result->types.data[order], running->scratch, &value));
        if (value != NULL)
            add_value(aggregations, i, value, 1);
    }
    return status_ok();
}

static status add_entity(struct running *running, const Ds__Entity *entity)
{
    struct ds_aggregations *aggregations = running->aggregations;
    struct ds_value_list lists[LIMIT_DS_AGGREGATIONS];
    int64_t count = 1, from, to;
    for (size_t i = 0; i < aggregations->property_count; i++) {
        TRY(ds_aggregated_values(entity, &aggregations->properties[i], running->scratch,
                                 &lists[i]));
        count *= (int64_t)lists[i].count;
    }
    take(running, count, &from, &to);
    if (from < to)
        add_combinations(aggregations, lists, from, to);
    return status_ok();
}

static status add_result(struct running *running, const struct ds_result *result)
{
    int64_t from, to;
    if (running->aggregations->property_count > 0 && !running->aggregations->by_position)
        return add_entity(running, result->version.entity);
    take(running, 1, &from, &to);
    return from < to ? add_position(running, result) : status_ok();
}

static status add_all(struct running *running)
{
    const struct ds_query *query = running->query;
    const struct ds_aggregations *aggregations = running->aggregations;
    bool wants_entity = aggregations->property_count > 0 && !aggregations->by_position;
    bool found = true;
    struct ds_result result;
    while ((query->limit < 0 || running->added < query->limit) && !is_done(aggregations)) {
        arena_reset(running->scratch);
        TRY(ds_results_next(running->results, wants_entity, NULL, &result, &found));
        if (!found)
            return status_ok();
        TRY(add_result(running, &result));
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

static status run(struct running *running, const struct ds_plan *plan, struct ds_reading *reading,
                  struct arena *arena, struct ds_reads *reads)
{
    running->values = arena_alloc(arena, running->query->order_count * sizeof *running->values);
    if (running->values == NULL || running->scratch == NULL)
        return status_out_of_memory();
    TRY(ds_results_open(running->query, plan, reading, arena, &running->results));
    status s = add_all(running);
    *reads = ds_results_reads(running->results);
    status closed = ds_results_close(running->results);
    if (status_is_ok(s))
        return closed;
    status_free(closed);
    return s;
}

status ds_aggregations_run(struct ds_aggregations *aggregations, const struct ds_query *query,
                           const struct ds_plan *plan, struct ds_reading *reading,
                           struct arena *arena, struct ds_reads *reads,
                           Ds__AggregationResultBatch **out)
{
    struct running running = {.aggregations = aggregations,
                              .query = query,
                              .scratch = arena_create(LIMIT_ARENA_DATASTORE_BYTES)};
    begin_anew(aggregations);
    status s = run(&running, plan, reading, arena, reads);
    arena_destroy(running.scratch);
    TRY(s);
    return make_batch(aggregations, reading, arena, out);
}
