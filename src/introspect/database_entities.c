/* Entities of a database, sampled as rows of tables are: at places that are made up from the keys
 * known so far (advisor/place.h), and where a single entity is hot.
 *
 * Of each the commits of the last hour are seen, whose times are those of its cells, and its index
 * rows are built again, which say which values are in which index. */
#include "advisor/key_time.h"
#include "base/clock.h"
#include "datastore/commit/snapshot.h"
#include "datastore/database.h"
#include "introspect/database_look.h"
#include "introspect/database_text.h"
#include "row/row_key.h"

#include <stdio.h>

enum {
    PLACES = 100,
    ENTITIES = 10, /* at each */
    IN_VAIN_MOST = 30,
    LARGE_ROWS_MOST = 4,
    SERIES_MOST = 200,
    POINTS_MOST = 300,
};

#define HOUR_US (INT64_C(3600) * 1000000)

static const uint8_t ENTITIES_FROM[] = {DS_ENTITY_ROW}, ENTITIES_TO[] = {DS_ENTITY_ROW + 1};

static status text_at(struct looking *l, bytes encoded, const char **out, size_t *size)
{
    bytes rest = encoded;
    TRY(ds_text_read(&rest, DS_ASCENDING, l->arena, out));
    *size = encoded.size - rest.size;
    return status_ok();
}

/* --- values in indexes --- */

static bool is_time(const struct looking *l, bytes value, uint8_t type)
{
    size_t size;
    if (type == DS__VALUE__VALUE_TYPE_TIMESTAMP_VALUE)
        return true;
    if (type == DS__VALUE__VALUE_TYPE_STRING_VALUE && value.size > 1)
        return key_time_at(bytes_from(value, 1), l->now_us, &size) != KEY_TIME_NONE;
    return false;
}

/* An integer's, which may be a count since 1970. */
static status take_number(struct looking *l, struct advice_point *point)
{
    Ds__Value *value;
    char digits[32];
    size_t size;
    if (point->type != DS__VALUE__VALUE_TYPE_INTEGER_VALUE)
        return status_ok();
    TRY(ds_number_decode(point->value, DS_ASCENDING, point->type, l->scratch, &value));
    if (value == NULL || value->value_type_case != DS__VALUE__VALUE_TYPE_INTEGER_VALUE)
        return status_ok();
    point->is_number = true;
    point->number = value->integer_value;
    snprintf(digits, sizeof digits, "%lld", (long long)point->number);
    point->is_time = key_time_at(bytes_of(digits), l->now_us, &size) != KEY_TIME_NONE;
    return status_ok();
}

static status take_value(struct looking *l, const struct ds_index_row *row, int64_t written_us)
{
    struct ds_row parts;
    struct part *series;
    size_t size;
    if (row->key.data[0] != DS_ASCENDING_ROW)
        return status_ok();
    if (!ds_row_parse(row->key, NULL, &parts))
        return ds_damaged("a row key");
    size_t prefix = (size_t)(parts.values.data - row->key.data);
    TRY(database_find_part(l, &l->series, SERIES_MOST, bytes_make(row->key.data, prefix), &series));
    if (series == NULL)
        return status_ok();
    if (series->kind == NULL) {
        TRY(text_at(l, parts.kind_name, &series->kind, &size));
        TRY(text_at(l, parts.property, &series->property, &size));
    }
    series->row_count++;
    series->row_bytes += row->key.size;
    if (series->points.count == POINTS_MOST)
        return status_ok();
    uint8_t type = row->types.data[0];
    struct advice_point point = {.written_us = written_us,
                                 .value = arena_copy(l->arena, parts.values),
                                 .type = type,
                                 .is_time = is_time(l, parts.values, type)};
    if (point.value.data == NULL)
        return status_out_of_memory();
    TRY(take_number(l, &point));
    return vector_add(&series->points, l->arena, &point, sizeof point);
}

/* --- an entity by itself --- */

status database_composite_words(struct looking *l, const struct ds_index *index, const char **out)
{
    struct buffer text = {0};
    for (size_t i = 0; i < index->shape.values; i++)
        buffer_append_format(&text, "%s%s", i == 0 ? "(" : ", ", index->properties[i]);
    buffer_append_byte(&text, ')');
    *out = text.failed ? NULL : arena_string(l->arena, buffer_bytes(&text));
    buffer_free(&text);
    return *out == NULL ? status_out_of_memory() : status_ok();
}

static struct composite_rows rows_of_composite(const struct ds_index_rows *rows, uint64_t id)
{
    struct composite_rows found = {0};
    uint64_t of;
    for (size_t i = 0; i < rows->count; i++) {
        if (!ds_composite_row_index(rows->rows[i].key, &of) || of != id)
            continue;
        found.count++;
        found.bytes += rows->rows[i].key.size;
    }
    return found;
}

static status find_widest(struct looking *l, const struct ds_index_rows *rows,
                          struct advice_entity *out)
{
    const struct ds_index *widest = NULL;
    for (size_t i = 0; i < l->composite_count; i++) {
        struct composite_rows found = rows_of_composite(rows, l->composites[i].id);
        l->composite_rows[i].count += found.count;
        l->composite_rows[i].bytes += found.bytes;
        if (found.count <= out->widest_rows)
            continue;
        widest = &l->composites[i];
        out->widest_rows = found.count;
    }
    return widest == NULL ? status_ok() : database_composite_words(l, widest, &out->widest);
}

static status odd_words(struct looking *l, const char *what, const char *name, const char **out)
{
    struct buffer text = {0};
    buffer_append_format(&text, "%s %s", what, name);
    *out = text.failed ? NULL : arena_string(l->arena, buffer_bytes(&text));
    buffer_free(&text);
    return *out == NULL ? status_out_of_memory() : status_ok();
}

/* What tools stumble over in the entity's names, the first of it. */
static status find_odd(struct looking *l, const Ds__Entity *entity, const char **out)
{
    char number[32];
    for (size_t i = 0; i < entity->key->n_path; i++) {
        const Ds__Key__PathElement *element = entity->key->path[i];
        bool is_name = element->id_type_case == DS__KEY__PATH_ELEMENT__ID_TYPE_NAME;
        snprintf(number, sizeof number, "%lld", is_name ? 0LL : (long long)element->id);
        if (strchr(element->kind, '/') != NULL)
            return odd_words(l, "the kind", element->kind, out);
        if (is_name && strchr(element->name, '/') != NULL)
            return odd_words(l, "the name", element->name, out);
        if (!is_name && element->id < 0)
            return odd_words(l, "the id", number, out);
    }
    for (size_t i = 0; i < entity->n_properties; i++)
        if (strchr(entity->properties[i]->key, '.') != NULL)
            return odd_words(l, "the property", entity->properties[i]->key, out);
    return status_ok();
}

/* An entity that an index being made would give too many rows is told without the indexes. */
static status index_rows_of(struct looking *l, const Ds__Entity *entity, struct ds_index_rows *out)
{
    status s = ds_index_rows(entity, l->composites, l->composite_count, l->scratch, out);
    if (s.code != STATUS_INVALID_ARGUMENT)
        return s;
    status_free(s);
    return ds_index_rows(entity, NULL, 0, l->scratch, out);
}

static status take_entity(struct looking *l, bytes key, const Ds__Entity *entity,
                          int64_t written_us)
{
    struct advice_entity seen = {.size = protobuf_c_message_get_packed_size(&entity->base)};
    struct ds_index_rows rows;
    TRY(index_rows_of(l, entity, &rows));
    seen.index_rows = rows.count;
    for (size_t i = 0; i < rows.count; i++)
        TRY(take_value(l, &rows.rows[i], written_us));
    TRY(database_row_text(key, l->arena, &seen.words));
    TRY(find_widest(l, &rows, &seen));
    TRY(find_odd(l, entity, &seen.odd));
    for (size_t i = 0; i < entity->n_properties; i++)
        personal_count(&l->properties, bytes_of(entity->properties[i]->key));
    return vector_add(&l->entities, l->arena, &seen, sizeof seen);
}

static status take_kind(struct looking *l, const Ds__Key *key)
{
    struct buffer prefix = {0};
    struct part *kind;
    ds_kind_prefix(&prefix, ds_key_namespace(key), ds_key_kind(key));
    status s = prefix.failed ? status_out_of_memory()
                             : database_find_part(l, &l->kinds, DATABASE_KINDS_MOST,
                                                  buffer_bytes(&prefix), &kind);
    buffer_free(&prefix);
    TRY(s);
    if (kind == NULL)
        return status_ok();
    kind->entity_count++;
    if (kind->kind != NULL)
        return status_ok();
    kind->kind = arena_string(l->arena, ds_key_kind(key));
    kind->name_space = arena_copy(l->arena, ds_key_namespace(key));
    bool failed = kind->kind == NULL || kind->name_space.data == NULL;
    return failed ? status_out_of_memory() : status_ok();
}

/* --- roots and their groups --- */

/* The id or name of the path's only element, as text. */
static status text_of_element(struct looking *l, bytes element, bytes *out, bool *is_name)
{
    Ds__Key *key;
    char number[32];
    TRY(ds_path_decode(element, l->arena, &key));
    const Ds__Key__PathElement *only = key->path[0];
    *is_name = only->id_type_case == DS__KEY__PATH_ELEMENT__ID_TYPE_NAME;
    if (*is_name) {
        *out = bytes_of(only->name);
        return status_ok();
    }
    snprintf(number, sizeof number, "%lld", (long long)only->id);
    *out = arena_copy(l->arena, bytes_of(number));
    return out->data == NULL ? status_out_of_memory() : status_ok();
}

static status add_root(struct looking *l, struct part *roots, bytes element, bytes words)
{
    struct root root = {
        .element = arena_copy(l->arena, element),
        .words = words,
        .row = {.place = (uint32_t)l->sample.places,
                .cells = arena_zalloc(l->arena, sizeof *root.row.cells),
                .cell_count = 1},
    };
    if (root.element.data == NULL || root.row.cells == NULL)
        return status_out_of_memory();
    TRY(text_of_element(l, root.element, &root.row.key, &root.is_name));
    return vector_add(&roots->keys, l->arena, &root, sizeof root);
}

static status find_group(struct looking *l, bytes prefix, struct group **out, bool *is_new)
{
    struct group *all = l->groups.items;
    *is_new = false;
    for (size_t i = 0; i < l->groups.count; i++)
        if (bytes_equal(all[i].prefix, prefix)) {
            *out = &all[i];
            return status_ok();
        }
    struct group group = {.prefix = arena_copy(l->arena, prefix)};
    if (group.prefix.data == NULL)
        return status_out_of_memory();
    TRY(database_row_text(prefix, l->arena, &group.words));
    TRY(vector_add(&l->groups, l->arena, &group, sizeof group));
    *out = &((struct group *)l->groups.items)[l->groups.count - 1];
    *is_new = true;
    return status_ok();
}

/* The kind of the root of a path, and its group: `*roots` is NULL if there are too many kinds. */
static status take_root(struct looking *l, bytes key, bytes path, struct part **roots,
                        struct group **group)
{
    const char *kind;
    size_t kind_size;
    bool is_new;
    size_t before = (size_t)(path.data - key.data);
    size_t element = ds_element_size(path, DS_ASCENDING);
    TRY(text_at(l, path, &kind, &kind_size));
    TRY(database_find_part(l, &l->roots, DATABASE_KINDS_MOST,
                           bytes_make(key.data, before + kind_size), roots));
    TRY(find_group(l, bytes_make(key.data, before + element), group, &is_new));
    if (*roots == NULL)
        return status_ok();
    (*roots)->kind = kind;
    TRY(vector_add(&(*roots)->rows, l->arena, &key, sizeof key));
    return is_new ? add_root(l, *roots, bytes_make(path.data, element), (*group)->words)
                  : status_ok();
}

/* The last element of a path of several, as one among the others of its kind below its parent. */
static status take_child(struct looking *l, bytes key, bytes path, int64_t made_us)
{
    const char *kind;
    size_t kind_size, size = ds_element_size(path, DS_ASCENDING);
    struct part *children;
    bytes last = path, words;
    while (size < last.size) {
        last = bytes_from(last, size);
        size = ds_element_size(last, DS_ASCENDING);
    }
    if (last.data == path.data)
        return status_ok();
    TRY(text_at(l, last, &kind, &kind_size));
    TRY(database_find_part(l, &l->children, DATABASE_KINDS_MOST,
                           bytes_make(key.data, (size_t)(last.data - key.data) + kind_size),
                           &children));
    if (children == NULL)
        return status_ok();
    children->kind = kind;
    TRY(database_row_text(key, l->arena, &words));
    TRY(add_root(l, children, last, words));
    struct root *added = (struct root *)children->keys.items + children->keys.count - 1;
    added->row.cells->timestamp_us = made_us;
    return status_ok();
}

static status take_commits(struct looking *l, const struct cell_list *cells, struct group *group)
{
    for (size_t i = 0; i < cells->count; i++) {
        int64_t at_us = cells->items[i].timestamp_us;
        if (at_us > l->now_us - HOUR_US)
            TRY(vector_add(&group->commits, l->arena, &at_us, sizeof at_us));
    }
    return status_ok();
}

/* When the root itself was made. */
static void note_making(struct part *roots, const struct group *group, int64_t made_us)
{
    struct root *all = roots->keys.items;
    for (size_t i = roots->keys.count; i-- > 0;)
        if (all[i].words.data == group->words.data) {
            all[i].row.cells->timestamp_us = made_us;
            return;
        }
}

/* --- rows --- */

static bool is_known(const struct looking *l, bytes key)
{
    const bytes *keys = l->keys.items;
    for (size_t i = 0; i < l->keys.count; i++)
        if (bytes_equal(keys[i], key))
            return true;
    return false;
}

static status take_row(struct looking *l, bytes key, const struct cell_list *cells)
{
    struct ds_row row;
    struct part *roots;
    struct group *group;
    struct ds_version version;
    const struct cell *is = database_present(cells);
    if (!ds_row_parse(key, NULL, &row))
        return ds_damaged("a row key");
    TRY(take_root(l, key, row.path, &roots, &group));
    TRY(take_commits(l, cells, group));
    for (size_t i = 0; i < cells->count; i++)
        l->sample.bytes += cells->items[i].value.size;
    if (is == NULL)
        return status_ok();
    arena_reset(l->scratch);
    TRY(ds_record_version(is->value, l->scratch, &version));
    if (roots != NULL && bytes_equal(group->prefix, key))
        note_making(roots, group, version.create_us);
    TRY(take_child(l, key, row.path, version.create_us));
    TRY(take_kind(l, version.entity->key));
    return take_entity(l, key, version.entity, is->timestamp_us);
}

static status visit_entity(struct looking *l, void *context, const struct scan_row *row);

/* An entity with so much in the past hour that it was not read with the others. */
static status read_large(struct looking *l, bytes key, bool *is_new)
{
    bytes to;
    if (l->large_rows++ >= LARGE_ROWS_MOST)
        return status_ok();
    if (!key_successor(l->arena, key, &to))
        return status_out_of_memory();
    return database_read_range(l, &(struct range_reading){.from = key,
                                                          .to = to,
                                                          .limit = 1,
                                                          .wants_values = true,
                                                          .takes_large = true,
                                                          .visit = visit_entity,
                                                          .context = is_new});
}

static status visit_entity(struct looking *l, void *context, const struct scan_row *row)
{
    bool *is_new = context;
    if (is_known(l, row->key))
        return status_ok();
    bytes key = arena_copy(l->arena, row->key);
    if (key.data == NULL)
        return status_out_of_memory();
    if (row->cells == NULL)
        return read_large(l, key, is_new);
    TRY(vector_add(&l->keys, l->arena, &key, sizeof key));
    *is_new = true;
    return take_row(l, key, row->cells);
}

/* --- places --- */

static status read_place(struct looking *l, bytes from, bool is_reversed, bool *is_new)
{
    *is_new = false;
    TRY(database_read_range(
        l, &(struct range_reading){.from = from,
                                   .to = bytes_make(ENTITIES_TO, sizeof ENTITIES_TO),
                                   .limit = ENTITIES,
                                   .is_reversed = is_reversed,
                                   .wants_values = true,
                                   .visit = visit_entity,
                                   .context = is_new}));
    l->sample.places += *is_new;
    if (!*is_new || is_reversed)
        return status_ok();
    const bytes *last = (const bytes *)l->keys.items + l->keys.count - 1;
    return frontier_note(&l->frontier, from, *last, false) ? status_ok() : status_out_of_memory();
}

/* Made of the keys of one kind, or of all: what kinds have in common takes up so much of a place
 * that little is left of it to find its way among the entities of one. */
static const struct vector *choose_keys(struct looking *l)
{
    const struct part *roots = l->roots.items;
    size_t chosen = advice_random_below(&l->random, 2 * l->roots.count + 1);
    bool is_one = chosen < l->roots.count && roots[chosen].rows.count > 0;
    return is_one ? &roots[chosen].rows : &l->keys;
}

/* After a place in vain, what comes behind an earlier reading. */
static status read_random_place(struct looking *l, struct buffer *place, bool *is_new)
{
    const bytes first = bytes_make(ENTITIES_FROM, sizeof ENTITIES_FROM);
    const struct vector *keys = choose_keys(l);
    bytes end;
    if (!*is_new && frontier_choose(&l->frontier, &l->random, &end)) {
        frontier_drop(&l->frontier, end);
        buffer_clear(place);
        buffer_append_bytes(place, end);
        buffer_append_byte(place, 0);
    } else {
        advice_place(keys->items, keys->count, &l->random, place);
    }
    if (place->failed)
        return status_out_of_memory();
    bytes at = buffer_bytes(place);
    return read_place(l, bytes_compare(at, first) < 0 ? first : at, false, is_new);
}

static status read_places(struct looking *l)
{
    struct buffer place = {0};
    bool is_new;
    TRY(read_place(l, bytes_make(ENTITIES_FROM, sizeof ENTITIES_FROM), false, &is_new));
    status s = read_place(l, bytes_make(ENTITIES_FROM, sizeof ENTITIES_FROM), true, &is_new);
    for (size_t in_vain = 0; status_is_ok(s) && in_vain < IN_VAIN_MOST && l->keys.count > 0;) {
        l->sample.is_cut = clock_steady_us(clock_system()) > l->until_us;
        if (l->sample.places >= PLACES || l->sample.is_cut)
            break;
        s = read_random_place(l, &place, &is_new);
        in_vain = is_new ? 0 : in_vain + 1;
    }
    buffer_free(&place);
    return s;
}

static status read_all(struct looking *l)
{
    bool is_new;
    TRY(read_places(l));
    for (size_t i = 0; i < l->hotspot_count; i++) {
        const struct advice_hotspot *hotspot = &l->hotspots[i];
        if (hotspot->kind == ADVICE_HOT_ROW && hotspot->key.size > 0 &&
            hotspot->key.data[0] == DS_ENTITY_ROW)
            TRY(read_place(l, hotspot->key, false, &is_new));
    }
    return status_ok();
}

status database_read_entities(struct looking *l)
{
    status s = read_all(l);
    frontier_free(&l->frontier);
    return s;
}
