/* Row keys of a Datastore's table: see rows.h. */
#include "datastore/model/rows.h"

#include "base/check.h"
#include "row/key_text.h"
#include "wire/proto.h"

enum { INDEX_SIZE = 8, MARK_SIZE = 2 };

/* --- writing --- */

static void append_start(struct buffer *out, enum ds_row_kind kind, bytes name_space)
{
    buffer_append_byte(out, (uint8_t)kind);
    key_text_append(out, name_space);
}

void ds_entity_prefix(struct buffer *out, bytes name_space)
{
    append_start(out, DS_ENTITY_ROW, name_space);
}

void ds_kind_prefix(struct buffer *out, bytes name_space, bytes kind)
{
    append_start(out, DS_KIND_ROW, name_space);
    key_text_append(out, kind);
}

void ds_property_prefix(struct buffer *out, bytes name_space, bytes kind, bytes property)
{
    buffer_append_byte(out, DS_ASCENDING_ROW);
    ds_kind_texts(out, name_space, kind);
    key_text_append(out, property);
}

void ds_kind_texts(struct buffer *out, bytes name_space, bytes kind)
{
    key_text_append(out, name_space);
    key_text_append(out, kind);
}

void ds_property_prefix_after(struct buffer *out, bytes kind_texts, bytes property)
{
    buffer_append_byte(out, DS_ASCENDING_ROW);
    buffer_append_bytes(out, kind_texts);
    key_text_append(out, property);
}

void ds_composite_prefix(struct buffer *out, bytes name_space, uint64_t index, bytes ancestor)
{
    append_start(out, DS_COMPOSITE_ROW, name_space);
    ds_number_append(out, index);
    if (ancestor.size > 0)
        ds_ancestor_append(out, ancestor);
}

void ds_row_path_append(struct buffer *out, bytes path, enum ds_flip key_flip)
{
    size_t start = out->size;
    if (key_flip == DS_ASCENDING) {
        buffer_append_bytes(out, path);
    } else {
        ds_ancestor_append(out, path);
        ds_flip_from(out, start, key_flip);
    }
}

void ds_entity_row(struct buffer *out, const Ds__Key *key)
{
    ds_entity_prefix(out, ds_key_namespace(key));
    ds_path_append(out, key);
}

void ds_kind_row(struct buffer *out, const Ds__Key *key)
{
    ds_kind_prefix(out, ds_key_namespace(key), ds_key_kind(key));
    ds_path_append(out, key);
}

void ds_property_row(struct buffer *out, bytes name_space, bytes kind, bytes property, bytes value,
                     bytes path)
{
    ds_property_prefix(out, name_space, kind, property);
    buffer_append_bytes(out, value);
    buffer_append_bytes(out, path);
}

void ds_numbers_row(struct buffer *out, bytes name_space, bytes kind)
{
    append_start(out, DS_NUMBERS_ROW, name_space);
    key_text_append(out, kind);
}

void ds_index_row(struct buffer *out, uint64_t index)
{
    buffer_append_byte(out, DS_INDEX_ROW);
    ds_number_append(out, index);
}

bool ds_is_one_entity(bytes from, bytes to)
{
    return from.size > 0 && from.data[0] == DS_ENTITY_ROW && to.size == from.size + 1 &&
           to.data[from.size] == 0 && bytes_start_with(to, from);
}

/* --- reading: each takes its part from the front of `*rest`; false if it is not there --- */

static bool take(bytes *rest, size_t size, bytes *out)
{
    *out = bytes_make(rest->data, size);
    *rest = bytes_from(*rest, size);
    return size > 0;
}

static bool take_text(bytes *rest, bytes *out)
{
    return take(rest, key_text_size(*rest, DS_ASCENDING), out);
}

static bool take_index(bytes *rest, uint64_t *out)
{
    if (rest->size < INDEX_SIZE)
        return false;
    *out = ds_number_read(rest->data, DS_ASCENDING);
    *rest = bytes_from(*rest, INDEX_SIZE);
    return true;
}

static bool take_ancestor(bytes *rest, bytes *out)
{
    if (!take(rest, ds_ancestor_size(*rest, DS_ASCENDING), out))
        return false;
    out->size -= MARK_SIZE;
    return true;
}

static bool take_values(bytes *rest, const struct ds_index_shape *shape, bytes *out)
{
    bytes all = *rest, value;
    for (size_t i = 0; i < shape->values; i++)
        if (!take(rest, ds_value_size(*rest, shape->flips[i]), &value))
            return false;
    *out = bytes_make(all.data, all.size - rest->size);
    return true;
}

static bool is_path(bytes rest, enum ds_flip flip)
{
    if (flip == DS_ASCENDING)
        return ds_path_is_valid(rest);
    return rest.size > 0 && ds_ancestor_size(rest, flip) == rest.size;
}

static bool parse_composite(bytes rest, const struct ds_index_shape *shape, struct ds_row *row)
{
    if (shape == NULL || !take_text(&rest, &row->name_space) || !take_index(&rest, &row->index))
        return false;
    if (shape->has_ancestors && !take_ancestor(&rest, &row->ancestor))
        return false;
    row->key_flip = shape->key_flip;
    row->path = rest;
    if (!take_values(&row->path, shape, &row->values))
        return false;
    return is_path(row->path, row->key_flip);
}

bool ds_composite_row_index(bytes row_key, uint64_t *out)
{
    bytes name_space;
    if (row_key.size == 0 || row_key.data[0] != DS_COMPOSITE_ROW)
        return false;
    bytes rest = bytes_from(row_key, 1);
    return take_text(&rest, &name_space) && take_index(&rest, out);
}

static bool parse_property(bytes rest, struct ds_row *row)
{
    if (!take_text(&rest, &row->name_space) || !take_text(&rest, &row->kind_name) ||
        !take_text(&rest, &row->property) ||
        !take(&rest, ds_value_size(rest, DS_ASCENDING), &row->values))
        return false;
    row->path = rest;
    return ds_path_is_valid(rest);
}

static bool parse_entity(bytes rest, struct ds_row *row)
{
    if (!take_text(&rest, &row->name_space))
        return false;
    if (row->kind == DS_KIND_ROW && !take_text(&rest, &row->kind_name))
        return false;
    row->path = rest;
    return ds_path_is_valid(rest);
}

bool ds_row_parse(bytes row_key, const struct ds_index_shape *shape, struct ds_row *out)
{
    *out = (struct ds_row){.key_flip = DS_ASCENDING};
    if (row_key.size == 0)
        return false;
    bytes rest = bytes_from(row_key, 1);
    out->kind = (enum ds_row_kind)row_key.data[0];
    switch (out->kind) {
    case DS_ENTITY_ROW:
    case DS_KIND_ROW:
        return parse_entity(rest, out);
    case DS_ASCENDING_ROW:
        return parse_property(rest, out);
    case DS_COMPOSITE_ROW:
        return parse_composite(rest, shape, out);
    case DS_NUMBERS_ROW:
        return take_text(&rest, &out->name_space) && take_text(&rest, &out->kind_name) &&
               rest.size == 0;
    case DS_INDEX_ROW:
        return take_index(&rest, &out->index) && rest.size == 0;
    default:
        return false;
    }
}

/* How many texts name the section, behind the letter. */
static unsigned texts_of_section(enum ds_row_kind kind)
{
    switch (kind) {
    case DS_ASCENDING_ROW:
        return 3;       /* namespace, kind, property */
    case DS_ENTITY_ROW: /* a path begins with the kind */
    case DS_KIND_ROW:
        return 2;
    case DS_COMPOSITE_ROW:
        return 1;
    default:
        return 0;
    }
}

bytes ds_row_section(bytes row_key)
{
    if (row_key.size == 0)
        return row_key;
    enum ds_row_kind kind = (enum ds_row_kind)row_key.data[0];
    bytes rest = bytes_from(row_key, 1), text;
    uint64_t index;
    bool is_whole = true;
    for (unsigned i = texts_of_section(kind); is_whole && i > 0; i--)
        is_whole = take_text(&rest, &text);
    if (is_whole && kind == DS_COMPOSITE_ROW)
        is_whole = take_index(&rest, &index);
    return is_whole ? bytes_make(row_key.data, row_key.size - rest.size) : row_key;
}

status ds_row_path(const struct ds_row *row, struct arena *arena, bytes *out)
{
    *out = row->path;
    if (row->key_flip == DS_ASCENDING)
        return status_ok();
    size_t size = row->path.size - MARK_SIZE;
    uint8_t *path = arena_alloc(arena, size);
    if (path == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < size; i++)
        path[i] = (uint8_t)~row->path.data[i];
    *out = bytes_make(path, size);
    return status_ok();
}

status ds_row_entity(const struct ds_row *row, const char *project, const char *database,
                     struct arena *arena, Ds__Key **out)
{
    bytes path, name_space = row->name_space;
    Ds__PartitionId *partition;
    if (row->path.size == 0)
        return ds_damaged("a row of no entity");
    PROTO_NEW(arena, partition, DS__PARTITION_ID__INIT);
    partition->project_id = project;
    partition->database_id = database;
    TRY(ds_text_read(&name_space, DS_ASCENDING, arena, &partition->namespace_id));
    TRY(ds_row_path(row, arena, &path));
    TRY(ds_path_decode(path, arena, out));
    (*out)->partition_id = partition;
    return status_ok();
}
