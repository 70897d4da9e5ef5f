/* Counting: see statistics.h. */
#include "datastore/admin/statistics.h"

#include "datastore/admin/statistics_private.h"
#include "datastore/model/storage_size.h"
#include "row/key_text.h"

struct counting {
    struct ds_statistics *statistics;
    struct arena *arena;
    const Ds__Entity *entity;
    struct ds_tally_name name; /* of its kind */
    size_t key_size;
};

status ds_statistics_init(struct ds_statistics *statistics, size_t memory)
{
    *statistics = (struct ds_statistics){.memory = memory};
    return ds_tallies_init(&statistics->tallies, memory);
}

void ds_statistics_free(struct ds_statistics *statistics)
{
    ds_tallies_free(&statistics->tallies);
}

/* --- less detail --- */

static void leave_out(enum ds_statistics_detail detail, struct ds_tally_name *name)
{
    if (detail >= DS_NOT_BY_PROPERTY)
        name->property = "";
    if (detail >= DS_NOT_BY_NAMESPACE)
        name->name_space = "";
    if (detail >= DS_NOT_BY_KIND && name->what != DS_TALLY_INDEX)
        name->kind = "";
}

static status move_tallies(const struct ds_tallies *from, enum ds_statistics_detail detail,
                           struct ds_tallies *to)
{
    for (const struct ds_tally *each = from->first; each != NULL; each = each->next) {
        struct ds_tally_name name = each->name;
        struct ds_tally *sum;
        leave_out(detail, &name);
        TRY(ds_tally_find(to, &name, &sum));
        for (size_t i = 0; i < DS_AMOUNTS; i++)
            ds_amount_add(&sum->amounts[i], each->amounts[i]);
    }
    return status_ok();
}

static status sum_up_anew(struct ds_statistics *statistics)
{
    struct ds_tallies less;
    TRY(ds_tallies_init(&less, statistics->memory));
    status s = move_tallies(&statistics->tallies, statistics->detail, &less);
    struct ds_tallies *useless = status_is_ok(s) ? &statistics->tallies : &less;
    ds_tallies_free(useless);
    if (status_is_ok(s))
        statistics->tallies = less;
    return s;
}

/* Leaves out one detail after the other until what there is fits. */
static status make_room(struct ds_statistics *statistics)
{
    while (statistics->detail < DS_NOT_BY_KIND) {
        statistics->detail++;
        status s = sum_up_anew(statistics);
        if (status_is_ok(s))
            return s;
        status_free(s);
    }
    return status_make(STATUS_RESOURCE_EXHAUSTED, "The statistics take too much memory.");
}

static status add(struct ds_statistics *statistics, const struct ds_tally_name *name,
                  enum ds_amount_kind kind, struct ds_amount amount)
{
    for (;;) {
        struct ds_tally_name found = *name;
        struct ds_tally *tally;
        leave_out(statistics->detail, &found);
        status s = ds_tally_find(&statistics->tallies, &found, &tally);
        if (status_is_ok(s)) {
            ds_amount_add(&tally->amounts[kind], amount);
            return s;
        }
        status_free(s);
        TRY(make_room(statistics));
    }
}

/* --- values --- */

static status join(struct arena *arena, const char *outer, const char *inner, const char **out)
{
    struct buffer path = {0};
    *out = inner;
    if (outer[0] == '\0')
        return status_ok();
    buffer_append_format(&path, "%s.%s", outer, inner);
    *out = path.failed ? NULL : arena_string(arena, buffer_bytes(&path));
    buffer_free(&path);
    return *out == NULL ? status_out_of_memory() : status_ok();
}

static status count_value(struct counting *counting, const char *name, const Ds__Value *value,
                          bool is_excluded);

static status count_properties(struct counting *counting, const char *outer,
                               const Ds__Entity *entity, bool is_excluded)
{
    for (size_t i = 0; i < entity->n_properties; i++) {
        const char *name;
        TRY(join(counting->arena, outer, entity->properties[i]->key, &name));
        TRY(count_value(counting, name, entity->properties[i]->value, is_excluded));
    }
    return status_ok();
}

static status count_value(struct counting *counting, const char *name, const Ds__Value *value,
                          bool is_excluded)
{
    is_excluded = is_excluded || value->exclude_from_indexes;
    if (value->value_type_case == DS__VALUE__VALUE_TYPE_ENTITY_VALUE)
        return count_properties(counting, name, value->entity_value, is_excluded);
    if (value->value_type_case == DS__VALUE__VALUE_TYPE_ARRAY_VALUE) {
        for (size_t i = 0; i < value->array_value->n_values; i++)
            TRY(count_value(counting, name, value->array_value->values[i], is_excluded));
        return status_ok();
    }
    struct ds_tally_name of = counting->name;
    of.what = DS_TALLY_VALUES;
    of.property = name;
    of.type = ds_statistic_type((int)value->value_type_case, is_excluded);
    size_t size = ds_text_storage(strlen(name)) + ds_value_storage(value);
    return add(counting->statistics, &of, DS_VALUES, (struct ds_amount){1, (int64_t)size});
}

/* --- rows of indexes --- */

/* For the entity's kind, and for what it is a row of besides. */
static status add_rows(struct counting *counting, const struct ds_tally_name *of,
                       enum ds_amount_kind kind, int64_t rows, size_t size)
{
    const struct ds_amount amount = {rows, rows * (int64_t)size};
    if (of != NULL)
        TRY(add(counting->statistics, of, kind, amount));
    return add(counting->statistics, &counting->name, kind, amount);
}

/* Counted twice: production has a row in each direction, and they have the same size. */
static status count_property_row(struct counting *counting, const struct ds_row *row, bytes types)
{
    Ds__Value *value;
    struct ds_tally_name of = counting->name;
    bytes rest = row->property;
    of.what = DS_TALLY_VALUES;
    TRY(ds_text_read(&rest, DS_ASCENDING, counting->arena, &of.property));
    if (strcmp(of.property, DS_SCATTER_PROPERTY) == 0)
        return status_ok();
    of.type = ds_statistic_type(types.data[0], false);
    TRY(ds_value_decode(row->values, DS_ASCENDING, types.data[0], counting->arena, &value));
    size_t size = counting->key_size + ds_text_storage(strlen(of.kind)) +
                  ds_text_storage(strlen(of.property)) + ds_value_storage(value) +
                  DS_STORAGE_OVERHEAD;
    return add_rows(counting, &of, DS_BUILT_IN, 2, size);
}

static status values_size(struct counting *counting, const struct ds_index *index, bytes values,
                          bytes types, size_t *out)
{
    *out = 0;
    for (size_t i = 0; i < index->shape.values; i++) {
        Ds__Value *value;
        size_t size = ds_value_size(values, index->shape.flips[i]);
        TRY(ds_value_decode(bytes_make(values.data, size), index->shape.flips[i], types.data[i],
                            counting->arena, &value));
        *out += ds_value_storage(value);
        values = bytes_from(values, size);
    }
    return status_ok();
}

/* Behind the letter and the namespace a composite row has the number of its index. */
static const struct ds_index *index_of(bytes row_key, const struct ds_index *indexes, size_t count)
{
    size_t space = key_text_size(bytes_from(row_key, 1), DS_ASCENDING);
    uint64_t id = ds_number_read(row_key.data + 1 + space, DS_ASCENDING);
    for (size_t i = 0; i < count; i++)
        if (indexes[i].id == id)
            return &indexes[i];
    return NULL;
}

static status count_composite_row(struct counting *counting, const struct ds_index_row *found,
                                  const struct ds_index *index)
{
    struct ds_row row;
    struct ds_tally_name of = counting->name;
    size_t size;
    if (index == NULL || !ds_row_parse(found->key, &index->shape, &row))
        return ds_damaged("a row of a composite index");
    of.what = DS_TALLY_INDEX;
    of.index = index->id;
    TRY(values_size(counting, index, row.values, found->types, &size));
    return add_rows(counting, &of, DS_COMPOSITE, 1,
                    counting->key_size + size + DS_STORAGE_OVERHEAD);
}

static status count_row(struct counting *counting, const struct ds_index_row *found,
                        const struct ds_index *indexes, size_t count)
{
    struct ds_row row;
    switch (found->key.data[0]) {
    case DS_KIND_ROW:
        return add_rows(counting, NULL, DS_BUILT_IN, 1,
                        counting->key_size + ds_text_storage(strlen(counting->name.kind)) +
                            DS_STORAGE_OVERHEAD);
    case DS_ASCENDING_ROW:
        return ds_row_parse(found->key, NULL, &row)
                   ? count_property_row(counting, &row, found->types)
                   : ds_damaged("a row of an index");
    default:
        return count_composite_row(counting, found, index_of(found->key, indexes, count));
    }
}

static status count_rows(struct counting *counting, const struct ds_index *indexes, size_t count)
{
    struct ds_index_rows rows;
    TRY(ds_index_rows(counting->entity, indexes, count, counting->arena, &rows));
    for (size_t i = 0; i < rows.count; i++)
        TRY(count_row(counting, &rows.rows[i], indexes, count));
    return status_ok();
}

/* --- an entity --- */

status ds_statistics_count(struct ds_statistics *statistics, const Ds__Entity *entity,
                           const struct ds_index *indexes, size_t index_count, struct arena *arena)
{
    const Ds__Key *key = entity->key;
    const char *name_space = key->partition_id == NULL ? "" : key->partition_id->namespace_id;
    struct counting counting = {.statistics = statistics,
                                .arena = arena,
                                .entity = entity,
                                .key_size = ds_key_storage(key),
                                .name = {.what = DS_TALLY_KIND,
                                         .name_space = name_space,
                                         .kind = key->path[key->n_path - 1]->kind,
                                         .property = "",
                                         .type = ""}};
    if (bytes_start_with(ds_key_kind(key), bytes_of(DS_STATISTIC_PREFIX)))
        return status_ok();
    statistics->has_namespaces = statistics->has_namespaces || name_space[0] != '\0';
    TRY(add(statistics, &counting.name, key->n_path == 1 ? DS_ROOTS : DS_CHILDREN,
            (struct ds_amount){1, (int64_t)ds_entity_storage(entity)}));
    TRY(count_properties(&counting, "", entity, false));
    return count_rows(&counting, indexes, index_count);
}
