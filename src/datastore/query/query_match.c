/* Entities held against queries: see query_match.h.
 *
 * Properties are independent of one another, so the first position is that of the first value of
 * each. */
#include "datastore/query/query_match.h"

#include "datastore/index/index_rows.h"
#include "datastore/query/query_cursor.h"

struct matching {
    const struct ds_query *query;
    const Ds__Entity *entity;
    struct arena *arena;
    struct ds_index_rows rows;
    bytes path;
    bytes *hit; /* the values of the position that is asked for */
    struct buffer scratch;
    struct buffer first; /* the first position of all conjunctions; empty: none fits */
    struct buffer types;
    struct buffer position; /* of the conjunction being looked at */
    struct buffer position_types;
};

/* The entity's rows with this prefix, which is in `scratch`. */
static struct ds_index_rows rows_with_prefix(const struct matching *matching)
{
    bytes prefix = buffer_bytes(&matching->scratch);
    const struct ds_index_rows *rows = &matching->rows;
    size_t low = 0, high = rows->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (bytes_compare(rows->rows[middle].key, prefix) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    struct ds_index_rows found = {.rows = rows->rows + low};
    while (low + found.count < rows->count && bytes_start_with(found.rows[found.count].key, prefix))
        found.count++;
    return found;
}

/* The entity's rows of the property, by its values, ascending. */
static struct ds_index_rows rows_of(struct matching *matching, const char *property)
{
    buffer_clear(&matching->scratch);
    ds_property_prefix(&matching->scratch, ds_key_namespace(matching->entity->key),
                       ds_key_kind(matching->entity->key), bytes_of(property));
    return rows_with_prefix(matching);
}

static bool has_value(struct matching *matching, const struct ds_equality *equality)
{
    struct ds_index_rows rows = rows_of(matching, equality->property);
    size_t prefix = matching->scratch.size;
    for (size_t i = 0; i < rows.count; i++) {
        bytes rest = bytes_from(rows.rows[i].key, prefix);
        if (bytes_equal(bytes_make(rest.data, ds_value_size(rest, DS_ASCENDING)), equality->value))
            return true;
    }
    return false;
}

/* Whether the bytes, turned into the direction, are those. */
static bool is_turned(bytes value, enum ds_flip flip, bytes turned)
{
    bool is_same = value.size == turned.size;
    for (size_t i = 0; i < value.size && is_same; i++)
        is_same = (value.data[i] ^ (uint8_t)flip) == turned.data[i];
    return is_same;
}

static bool is_in_range(const struct ds_range *range, bytes value)
{
    return range == NULL ||
           (ds_range_compare(range, value) == 0 && !ds_range_excludes(range, value));
}

/* Appends the first value of an ordered property that is in its range, of one that is projected the
 * one that is asked for. False: there is none. */
static bool append_first(struct matching *matching, const struct ds_conjunction *conjunction,
                         size_t at)
{
    const struct ds_order *order = &matching->query->orders[at];
    const struct ds_range *range = ds_range_find(conjunction, order->property);
    struct ds_index_rows rows = rows_of(matching, order->property);
    size_t prefix = matching->scratch.size;
    for (size_t i = 0; i < rows.count; i++) {
        size_t next = order->flip == DS_ASCENDING ? i : rows.count - 1 - i;
        bytes rest = bytes_from(rows.rows[next].key, prefix);
        bytes value = bytes_make(rest.data, ds_value_size(rest, DS_ASCENDING));
        if ((order->is_projected && !is_turned(value, order->flip, matching->hit[at])) ||
            !is_in_range(range, value))
            continue;
        ds_bytes_append(&matching->position, value, order->flip);
        buffer_append_byte(&matching->position_types, rows.rows[next].types.data[0]);
        return true;
    }
    return false;
}

static bool fits(struct matching *matching, const struct ds_conjunction *conjunction)
{
    if (!bytes_start_with(matching->path, conjunction->ancestor) ||
        ds_range_compare(&conjunction->keys, matching->path) != 0 ||
        ds_range_excludes(&conjunction->keys, matching->path))
        return false;
    for (size_t i = 0; i < conjunction->equality_count; i++)
        if (!has_value(matching, &conjunction->equalities[i]))
            return false;
    return true;
}

static bool append_value(struct matching *matching, const struct ds_conjunction *conjunction,
                         size_t at)
{
    const struct ds_order *order = &matching->query->orders[at];
    const struct ds_equality *equality =
        ds_equality_find(conjunction, order->property, order->flip);
    if (equality == NULL)
        return append_first(matching, conjunction, at);
    ds_bytes_append(&matching->position, equality->value, order->flip);
    buffer_append_byte(&matching->position_types, 0);
    return true;
}

static void keep_first(struct matching *matching)
{
    struct buffer *first = &matching->first;
    if (first->size > 0 &&
        bytes_compare(buffer_bytes(&matching->position), buffer_bytes(first)) >= 0)
        return;
    buffer_clear(first);
    buffer_append_bytes(first, buffer_bytes(&matching->position));
    buffer_clear(&matching->types);
    buffer_append_bytes(&matching->types, buffer_bytes(&matching->position_types));
}

static void match_conjunction(struct matching *matching, const struct ds_conjunction *conjunction)
{
    buffer_clear(&matching->position);
    buffer_clear(&matching->position_types);
    if (!fits(matching, conjunction))
        return;
    for (size_t i = 0; i < matching->query->order_count; i++)
        if (!append_value(matching, conjunction, i))
            return;
    ds_row_path_append(&matching->position, matching->path, matching->query->key_flip);
    keep_first(matching);
}

static status match(struct matching *matching, bytes position, struct ds_match *out)
{
    const struct ds_query *query = matching->query;
    bytes rest;
    ds_path_append(&matching->scratch, matching->entity->key);
    matching->path = arena_copy(matching->arena, buffer_bytes(&matching->scratch));
    matching->hit = arena_alloc(matching->arena, query->order_count * sizeof(bytes));
    if (matching->path.data == NULL || matching->hit == NULL)
        return status_out_of_memory();
    if (!ds_position_values(query, position, query->order_count, matching->hit, &rest))
        return ds_damaged("a row without its values");
    TRY(ds_index_rows(matching->entity, NULL, 0, matching->arena, &matching->rows));
    for (size_t i = 0; i < query->conjunction_count; i++)
        match_conjunction(matching, &query->conjunctions[i]);
    if (matching->first.failed || matching->types.failed || matching->position.failed ||
        matching->position_types.failed || matching->scratch.failed)
        return status_out_of_memory();
    out->is_first = bytes_equal(position, buffer_bytes(&matching->first));
    out->types = arena_copy(matching->arena, buffer_bytes(&matching->types));
    return out->types.data == NULL ? status_out_of_memory() : status_ok();
}

status ds_query_match(const struct ds_query *query, const Ds__Entity *entity, bytes position,
                      struct arena *arena, struct ds_match *out)
{
    struct matching matching = {.query = query, .entity = entity, .arena = arena};
    status s = match(&matching, position, out);
    buffer_free(&matching.scratch);
    buffer_free(&matching.first);
    buffer_free(&matching.types);
    buffer_free(&matching.position);
    buffer_free(&matching.position_types);
    return s;
}
