/* The index rows of an entity: see index_rows.h.
 *
 * First all indexed values are collected, each with the path of its property, sorted and without
 * duplicates: *entries*. Rows are made of those, those of built-in indexes in the order of their
 * keys: A, C, K. */
#include "datastore/index/index_rows.h"

#include "base/limits.h"
#include "base/siphash.h"
#include "base/vector.h"

#include <stdlib.h>

/* An indexed value. */
struct entry {
    bytes name;  /* "outer.inner" */
    bytes value; /* encoded, ascending */
    uint8_t type;
};

struct making {
    struct arena *arena;
    struct buffer scratch; /* for whatever is being encoded */
    bytes name_space;
    bytes kind;
    bytes kind_texts; /* ds_kind_texts */
    bytes path;
    size_t ancestors; /* elements of the path */
    struct vector entries;
    size_t values; /* entries that are the entity's own: what is counted against the limit */
    struct vector rows;
    size_t composite_rows;
    size_t composite_bytes;
    bool is_old; /* nothing is refused */
};

/* Copies the encoded bytes into the arena. */
static status keep(struct making *making, bytes *out)
{
    *out = arena_copy(making->arena, buffer_bytes(&making->scratch));
    if (making->scratch.failed || out->data == NULL)
        return status_out_of_memory();
    return status_ok();
}

static status refuse_count(void)
{
    return status_make(STATUS_INVALID_ARGUMENT, "too many index entries for entity");
}

/* --- entries --- */

static status collect_value(struct making *making, bytes name, const Ds__Value *value);

static status collect_properties(struct making *making, bytes outer, const Ds__Entity *entity)
{
    for (size_t i = 0; i < entity->n_properties; i++) {
        const Ds__Entity__PropertiesEntry *property = entity->properties[i];
        bytes name = bytes_of(property->key);
        if (outer.size > 0) {
            buffer_clear(&making->scratch);
            buffer_append_bytes(&making->scratch, outer);
            buffer_append_byte(&making->scratch, '.');
            buffer_append_bytes(&making->scratch, name);
            TRY(keep(making, &name));
        }
        TRY(collect_value(making, name, property->value));
    }
    return status_ok();
}

static status collect_array(struct making *making, bytes name, const Ds__Value *value)
{
    if (value->meaning == DS_MEANING_VECTOR)
        return status_ok();
    for (size_t i = 0; i < value->array_value->n_values; i++)
        TRY(collect_value(making, name, value->array_value->values[i]));
    return status_ok();
}

static status collect_entry(struct making *making, bytes name, const Ds__Value *value)
{
    struct entry entry = {.name = name, .type = ds_value_type(value)};
    if (name.size > LIMIT_DS_NAME_BYTES && !making->is_old)
        return status_make(STATUS_INVALID_ARGUMENT, "The %s is longer than %d bytes.",
                           "property.name", LIMIT_DS_NAME_BYTES);
    buffer_clear(&making->scratch);
    ds_value_append(&making->scratch, value, DS_ASCENDING);
    TRY(keep(making, &entry.value));
    return vector_add(&making->entries, making->arena, &entry, sizeof entry);
}

static status collect_value(struct making *making, bytes name, const Ds__Value *value)
{
    if (value->exclude_from_indexes)
        return status_ok();
    if (value->value_type_case == DS__VALUE__VALUE_TYPE_ARRAY_VALUE)
        return collect_array(making, name, value);
    if (value->value_type_case == DS__VALUE__VALUE_TYPE_ENTITY_VALUE)
        return collect_properties(making, name, value->entity_value);
    return ds_value_has_bytes(value) ? collect_entry(making, name, value) : status_ok();
}

static int compare_entries(const void *a, const void *b)
{
    const struct entry *first = a, *second = b;
    int order = bytes_compare(first->name, second->name);
    if (order == 0)
        order = bytes_compare(first->value, second->value);
    return order == 0 ? first->type - second->type : order;
}

static bool is_same_entry(const struct entry *a, const struct entry *b)
{
    return bytes_equal(a->name, b->name) && bytes_equal(a->value, b->value);
}

/* Sorts entries; of equal values, as the string and the blob abc, the first type stays. */
static void sort_entries(struct vector *entries)
{
    struct entry *items = entries->items;
    size_t count = 0;
    if (entries->count == 0)
        return;
    qsort(items, entries->count, sizeof *items, compare_entries);
    for (size_t i = 0; i < entries->count; i++)
        if (count == 0 || !is_same_entry(&items[count - 1], &items[i]))
            items[count++] = items[i];
    entries->count = count;
}

/* --- the sample --- */

/* Appends an entry that is no value of the entity, if it is in the sample: they are then to be
 * sorted again. */
static status add_scatter_entry(struct making *making)
{
    struct siphash hash;
    siphash_start(&hash);
    siphash_add(&hash, making->path);
    struct fingerprint print = siphash_finish(&hash);
    if (print.words[0] % DS_SCATTER_SHARE != 0)
        return status_ok();
    struct buffer blob = {0};
    Ds__Value value = DS__VALUE__INIT;
    ds_number_append(&blob, print.words[1]);
    value.value_type_case = DS__VALUE__VALUE_TYPE_BLOB_VALUE;
    value.blob_value = (ProtobufCBinaryData){.len = blob.size, .data = blob.data};
    status s = blob.failed ? status_out_of_memory()
                           : collect_entry(making, bytes_of(DS_SCATTER_PROPERTY), &value);
    buffer_free(&blob);
    return s;
}

/* --- rows of the built-in indexes --- */

static status add_row(struct making *making, bytes types)
{
    struct ds_index_row row = {.types = types};
    TRY(keep(making, &row.key));
    return vector_add(&making->rows, making->arena, &row, sizeof row);
}

static status add_property_row(struct making *making, const struct entry *entry)
{
    struct buffer *out = &making->scratch;
    buffer_clear(out);
    ds_property_prefix_after(out, making->kind_texts, entry->name);
    buffer_append_bytes(out, entry->value);
    buffer_append_bytes(out, making->path);
    return add_row(making, bytes_make(&entry->type, 1));
}

static status add_property_rows(struct making *making)
{
    const struct entry *entries = making->entries.items;
    for (size_t i = 0; i < making->entries.count; i++)
        TRY(add_property_row(making, &entries[i]));
    return status_ok();
}

static status add_kind_row(struct making *making)
{
    buffer_clear(&making->scratch);
    ds_kind_prefix(&making->scratch, making->name_space, making->kind);
    buffer_append_bytes(&making->scratch, making->path);
    return add_row(making, bytes_make(NULL, 0));
}

/* --- rows of composite indexes --- */

/* The entries of one property of an index, and which of them is in the row being made. */
struct column {
    const struct entry *entries;
    size_t count;
    size_t at;
};

/* The first entry whose name is not before this one. */
static size_t first_entry(const struct making *making, bytes name)
{
    const struct entry *entries = making->entries.items;
    size_t low = 0, high = making->entries.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (bytes_compare(entries[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Behind the last entry with the name of this one. */
static size_t end_of_name(const struct making *making, size_t first)
{
    const struct entry *entries = making->entries.items;
    size_t end = first + 1;
    while (end < making->entries.count && bytes_equal(entries[end].name, entries[first].name))
        end++;
    return end;
}

static struct column find_column(const struct making *making, bytes name)
{
    const struct entry *entries = making->entries.items;
    size_t first = first_entry(making, name);
    if (first == making->entries.count || !bytes_equal(entries[first].name, name))
        return (struct column){.count = 0};
    return (struct column){.entries = entries + first, .count = end_of_name(making, first) - first};
}

/* How many rows there are to be; at most one more than may be. */
static size_t count_rows(const struct column *columns, size_t count, size_t ancestors)
{
    size_t rows = ancestors;
    for (size_t i = 0; i < count; i++) {
        rows *= columns[i].count;
        if (rows > LIMIT_DS_INDEX_ENTRIES)
            rows = LIMIT_DS_INDEX_ENTRIES + 1;
    }
    return rows;
}

/* The next combination; false after the last. */
static bool next_combination(struct column *columns, size_t count)
{
    for (size_t i = count; i-- > 0;) {
        if (++columns[i].at < columns[i].count)
            return true;
        columns[i].at = 0;
    }
    return false;
}

static status keep_types(struct making *making, const struct column *columns, size_t count,
                         bytes *out)
{
    uint8_t *types = arena_alloc(making->arena, count);
    if (types == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        types[i] = columns[i].entries[columns[i].at].type;
    *out = bytes_make(types, count);
    return status_ok();
}

static status add_composite_row(struct making *making, const struct ds_index *index,
                                const struct column *columns, bytes ancestor, bytes types)
{
    struct buffer *out = &making->scratch;
    buffer_clear(out);
    ds_composite_prefix(out, making->name_space, index->id, ancestor);
    for (size_t i = 0; i < index->shape.values; i++)
        ds_bytes_append(out, columns[i].entries[columns[i].at].value, index->shape.flips[i]);
    ds_row_path_append(out, making->path, index->shape.key_flip);
    making->composite_bytes += out->size;
    if (making->composite_bytes > LIMIT_DS_COMPOSITE_BYTES && !making->is_old)
        return refuse_count();
    return add_row(making, types);
}

/* The rows of one combination: one, or one for each ancestor. */
static status add_combination(struct making *making, const struct ds_index *index,
                              const struct column *columns)
{
    bytes types, ancestor = bytes_make(making->path.data, 0);
    TRY(keep_types(making, columns, index->shape.values, &types));
    if (!index->shape.has_ancestors)
        return add_composite_row(making, index, columns, ancestor, types);
    for (size_t i = 0; i < making->ancestors; i++) {
        ancestor.size += ds_element_size(bytes_from(making->path, ancestor.size), DS_ASCENDING);
        TRY(add_composite_row(making, index, columns, ancestor, types));
    }
    return status_ok();
}

static status add_composite_rows(struct making *making, const struct ds_index *index)
{
    size_t count = index->shape.values;
    struct column *columns = arena_alloc(making->arena, count * sizeof *columns);
    if (columns == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        columns[i] = find_column(making, bytes_of(index->properties[i]));
    size_t rows = count_rows(columns, count, index->shape.has_ancestors ? making->ancestors : 1);
    if (rows == 0 || (making->is_old && rows > LIMIT_DS_INDEX_ENTRIES))
        return status_ok();
    making->composite_rows += rows;
    if (making->composite_rows + making->values > LIMIT_DS_INDEX_ENTRIES && !making->is_old)
        return refuse_count();
    do
        TRY(add_combination(making, index, columns));
    while (next_combination(columns, count));
    return status_ok();
}

static int compare_rows(const void *a, const void *b)
{
    const struct ds_index_row *first = a, *second = b;
    return bytes_compare(first->key, second->key);
}

static status add_all_composite_rows(struct making *making, const struct ds_index *indexes,
                                     size_t count)
{
    size_t before = making->rows.count;
    for (size_t i = 0; i < count; i++)
        if (bytes_equal(bytes_of(indexes[i].kind), making->kind))
            TRY(add_composite_rows(making, &indexes[i]));
    size_t added = making->rows.count - before;
    if (added > 1)
        qsort((struct ds_index_row *)making->rows.items + before, added,
              sizeof(struct ds_index_row), compare_rows);
    return status_ok();
}

/* --- all of them --- */

static status encode_key(struct making *making, const Ds__Key *key)
{
    buffer_clear(&making->scratch);
    ds_kind_texts(&making->scratch, making->name_space, making->kind);
    TRY(keep(making, &making->kind_texts));
    buffer_clear(&making->scratch);
    ds_path_append(&making->scratch, key);
    return keep(making, &making->path);
}

static status collect_entries(struct making *making, const Ds__Entity *entity)
{
    TRY(collect_properties(making, bytes_make(NULL, 0), entity));
    sort_entries(&making->entries);
    making->values = making->entries.count;
    if (making->values > LIMIT_DS_INDEX_ENTRIES && !making->is_old)
        return refuse_count();
    TRY(add_scatter_entry(making));
    if (making->entries.count > making->values)
        sort_entries(&making->entries);
    return status_ok();
}

static status make_rows(struct making *making, const Ds__Entity *entity,
                        const struct ds_index *indexes, size_t count)
{
    TRY(encode_key(making, entity->key));
    TRY(collect_entries(making, entity));
    TRY(add_property_rows(making));
    TRY(add_all_composite_rows(making, indexes, count));
    return add_kind_row(making);
}

static status rows_of(const Ds__Entity *entity, const struct ds_index *indexes, size_t count,
                      bool is_old, struct arena *arena, struct ds_index_rows *out)
{
    struct making making = {.arena = arena,
                            .name_space = ds_key_namespace(entity->key),
                            .kind = ds_key_kind(entity->key),
                            .ancestors = entity->key->n_path,
                            .is_old = is_old};
    status s = make_rows(&making, entity, indexes, count);
    buffer_free(&making.scratch);
    *out = (struct ds_index_rows){.rows = making.rows.items, .count = making.rows.count};
    return s;
}

status ds_index_rows(const Ds__Entity *entity, const struct ds_index *indexes, size_t count,
                     struct arena *arena, struct ds_index_rows *out)
{
    return rows_of(entity, indexes, count, false, arena, out);
}

/* --- differences --- */

/* Where two sorted lists are compared. */
struct merge {
    struct ds_index_rows old;
    struct ds_index_rows new_ones;
    size_t old_at;
    size_t new_at;
};

/* NULL behind the last. */
static const struct ds_index_row *row_at(const struct ds_index_rows *rows, size_t at)
{
    return at < rows->count ? &rows->rows[at] : NULL;
}

/* Takes the next row, an old one, a new one, or one of both; false if there is none. */
static bool take_row(struct merge *merge, struct ds_index_change *out, bool *is_change)
{
    const struct ds_index_row *old = row_at(&merge->old, merge->old_at);
    const struct ds_index_row *new_one = row_at(&merge->new_ones, merge->new_at);
    if (old == NULL && new_one == NULL)
        return false;
    int order = old == NULL ? 1 : new_one == NULL ? -1 : bytes_compare(old->key, new_one->key);
    *is_change = order != 0 || !bytes_equal(old->types, new_one->types);
    *out = (struct ds_index_change){.was = order <= 0, .is = order >= 0};
    out->key = order <= 0 ? old->key : new_one->key;
    if (out->was)
        out->past = old->types;
    if (out->is)
        out->now = new_one->types;
    merge->old_at += out->was;
    merge->new_at += out->is;
    return true;
}

static status find_changes(struct merge *merge, struct arena *arena, struct ds_index_changes *out)
{
    size_t most = merge->old.count + merge->new_ones.count;
    struct ds_index_change change;
    bool is_change;
    out->changes = arena_alloc(arena, most * sizeof *out->changes);
    if (out->changes == NULL)
        return status_out_of_memory();
    while (take_row(merge, &change, &is_change))
        if (is_change)
            out->changes[out->count++] = change;
    return status_ok();
}

status ds_index_difference(const Ds__Entity *old, const Ds__Entity *new_one,
                           const struct ds_index *indexes, size_t count, struct arena *arena,
                           struct ds_index_changes *out)
{
    struct merge merge = {.old_at = 0};
    *out = (struct ds_index_changes){.count = 0};
    if (old != NULL)
        TRY(rows_of(old, indexes, count, true, arena, &merge.old));
    if (new_one != NULL)
        TRY(rows_of(new_one, indexes, count, false, arena, &merge.new_ones));
    return find_changes(&merge, arena, out);
}
