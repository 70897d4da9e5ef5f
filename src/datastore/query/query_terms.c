/* Comparisons, from a list to a conjunction: see query_terms.h. */
#include "datastore/query/query_terms.h"

#include "base/vector.h"
#include "datastore/model/value.h"

#include <stdlib.h>

#define INVALID(...) status_make(STATUS_INVALID_ARGUMENT, __VA_ARGS__)

struct gathering {
    struct arena *arena;
    struct vector equalities;
    struct vector ranges;
    struct ds_conjunction *out;
    bool is_empty; /* nothing fits */
};

static status encode(struct arena *arena, const char *property, const Ds__Value *value, bytes *out)
{
    struct buffer encoded = {0};
    if (ds_is_key(property))
        ds_path_append(&encoded, value->key_value);
    else
        ds_value_append(&encoded, value, DS_ASCENDING);
    *out = arena_copy(arena, buffer_bytes(&encoded));
    bool failed = encoded.failed || out->data == NULL;
    buffer_free(&encoded);
    return failed ? status_out_of_memory() : status_ok();
}

static void raise_low(struct ds_range *range, bytes value, bool is_open)
{
    int order = range->low.size == 0 ? -1 : bytes_compare(range->low, value);
    if (order < 0 || (order == 0 && is_open)) {
        range->low = value;
        range->is_low_open = is_open;
    }
}

static void lower_high(struct ds_range *range, bytes value, bool is_open)
{
    int order = range->high.size == 0 ? 1 : bytes_compare(range->high, value);
    if (order > 0 || (order == 0 && is_open)) {
        range->high = value;
        range->is_high_open = is_open;
    }
}

static status exclude(struct arena *arena, struct ds_range *range, const struct ds_term *term)
{
    const Ds__Value *const one[] = {term->value};
    bool is_list = term->op == DS_OP(NOT_IN);
    size_t count = is_list ? term->value->array_value->n_values : 1;
    bytes *excluded = arena_alloc(arena, count * sizeof *excluded);
    if (excluded == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        const Ds__Value *value = is_list ? term->value->array_value->values[i] : one[0];
        TRY(encode(arena, term->property, value, &excluded[i]));
    }
    range->excluded = excluded;
    range->excluded_count = count;
    return status_ok();
}

static status narrow(struct arena *arena, struct ds_range *range, const struct ds_term *term)
{
    bytes value;
    if (term->op == DS_OP(NOT_EQUAL) || term->op == DS_OP(NOT_IN))
        return exclude(arena, range, term);
    TRY(encode(arena, term->property, term->value, &value));
    if (term->op == DS_OP(LESS_THAN) || term->op == DS_OP(LESS_THAN_OR_EQUAL) ||
        term->op == DS_OP(EQUAL))
        lower_high(range, value, term->op == DS_OP(LESS_THAN));
    if (term->op == DS_OP(GREATER_THAN) || term->op == DS_OP(GREATER_THAN_OR_EQUAL) ||
        term->op == DS_OP(EQUAL))
        raise_low(range, value, term->op == DS_OP(GREATER_THAN));
    return status_ok();
}

static status find_range(struct gathering *gathering, const char *property, struct ds_range **out)
{
    struct ds_range *ranges = gathering->ranges.items, range = {.property = property};
    for (size_t i = 0; i < gathering->ranges.count; i++)
        if (strcmp(ranges[i].property, property) == 0) {
            *out = &ranges[i];
            return status_ok();
        }
    TRY(vector_add(&gathering->ranges, gathering->arena, &range, sizeof range));
    *out = (struct ds_range *)gathering->ranges.items + gathering->ranges.count - 1;
    return status_ok();
}

static status add_ancestor(struct gathering *gathering, const struct ds_term *term)
{
    bytes path;
    TRY(encode(gathering->arena, DS_KEY_PROPERTY, term->value, &path));
    if (gathering->out->ancestor.size > 0 && !bytes_equal(gathering->out->ancestor, path))
        return INVALID("A query can have only one ancestor.");
    gathering->out->ancestor = path;
    return status_ok();
}

static status add_term(struct gathering *gathering, const struct ds_term *term)
{
    struct ds_range *range;
    if (term->op == DS_OP(HAS_ANCESTOR))
        return add_ancestor(gathering, term);
    if (ds_is_key(term->property))
        return narrow(gathering->arena, &gathering->out->keys, term);
    if (term->op == DS_OP(EQUAL)) {
        struct ds_equality equality = {.property = term->property};
        TRY(encode(gathering->arena, term->property, term->value, &equality.value));
        return vector_add(&gathering->equalities, gathering->arena, &equality, sizeof equality);
    }
    TRY(find_range(gathering, term->property, &range));
    return narrow(gathering->arena, range, term);
}

static int compare_equalities(const void *a, const void *b)
{
    const struct ds_equality *first = a, *second = b;
    int order = strcmp(first->property, second->property);
    return order == 0 ? bytes_compare(first->value, second->value) : order;
}

static int compare_ranges(const void *a, const void *b)
{
    const struct ds_range *first = a, *second = b;
    return strcmp(first->property, second->property);
}

static void sort_equalities(struct vector *list)
{
    struct ds_equality *items = list->items;
    size_t count = 0;
    if (list->count > 1)
        qsort(items, list->count, sizeof *items, compare_equalities);
    for (size_t i = 0; i < list->count; i++)
        if (count == 0 || compare_equalities(&items[count - 1], &items[i]) != 0)
            items[count++] = items[i];
    list->count = count;
}

/* A range of a property that has equalities is to hold one of them, and is then no more needed. */
static void resolve_ranges(struct gathering *gathering)
{
    struct ds_equality *equalities = gathering->equalities.items;
    struct ds_range *ranges = gathering->ranges.items;
    size_t count = 0;
    for (size_t i = 0; i < gathering->ranges.count; i++) {
        bool has_equality = false, holds = false;
        for (size_t j = 0; j < gathering->equalities.count; j++) {
            if (strcmp(ranges[i].property, equalities[j].property) != 0)
                continue;
            has_equality = true;
            holds = holds || (ds_range_compare(&ranges[i], equalities[j].value) == 0 &&
                              !ds_range_excludes(&ranges[i], equalities[j].value));
        }
        if (!has_equality)
            ranges[count++] = ranges[i];
        gathering->is_empty = gathering->is_empty || (has_equality && !holds);
    }
    gathering->ranges.count = count;
}

status ds_terms_gather(struct arena *arena, struct ds_terms terms, struct ds_conjunction *out,
                       bool *is_empty)
{
    struct gathering gathering = {.arena = arena, .out = out};
    *out = (struct ds_conjunction){.keys.property = DS_KEY_PROPERTY};
    for (size_t i = 0; i < terms.count; i++)
        TRY(add_term(&gathering, &terms.terms[i]));
    sort_equalities(&gathering.equalities);
    resolve_ranges(&gathering);
    if (gathering.ranges.count > 1)
        qsort(gathering.ranges.items, gathering.ranges.count, sizeof(struct ds_range),
              compare_ranges);
    out->equalities = gathering.equalities.items;
    out->equality_count = gathering.equalities.count;
    out->ranges = gathering.ranges.items;
    out->range_count = gathering.ranges.count;
    *is_empty = gathering.is_empty;
    return status_ok();
}

/* --- ranges and equalities --- */

const struct ds_range *ds_range_find(const struct ds_conjunction *conjunction, const char *property)
{
    for (size_t i = 0; i < conjunction->range_count; i++)
        if (strcmp(conjunction->ranges[i].property, property) == 0)
            return &conjunction->ranges[i];
    return NULL;
}

const struct ds_equality *ds_equality_find(const struct ds_conjunction *conjunction,
                                           const char *property, enum ds_flip flip)
{
    const struct ds_equality *found = NULL;
    for (size_t i = 0; i < conjunction->equality_count; i++)
        if (strcmp(conjunction->equalities[i].property, property) == 0 &&
            (found == NULL || flip == DS_DESCENDING))
            found = &conjunction->equalities[i];
    return found;
}

int ds_range_compare(const struct ds_range *range, bytes value)
{
    int low = range->low.size == 0 ? 1 : bytes_compare(value, range->low);
    int high = range->high.size == 0 ? -1 : bytes_compare(value, range->high);
    if (low < 0 || (low == 0 && range->is_low_open))
        return -1;
    return high > 0 || (high == 0 && range->is_high_open);
}

bool ds_range_excludes(const struct ds_range *range, bytes value)
{
    for (size_t i = 0; i < range->excluded_count; i++)
        if (bytes_equal(range->excluded[i], value))
            return true;
    return false;
}
