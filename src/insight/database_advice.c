/* See database_advice.h.
 *
 * Entities are sampled as rows of tables are: at places that are made up from the keys known so far
 * (advice/place.h), and where a single entity is hot. Of each the commits of the last hour are
 * seen, whose times are those of its cells, and its index rows are made anew, which say which
 * values are in which index. Then the beginnings of these indexes are read, and what was counted by
 * ranges of keys is added up by kinds. */
#include "insight/database_advice.h"

#include "advice/database.h"
#include "advice/key_time.h"
#include "advice/place.h"
#include "advice/report.h"
#include "base/clock.h"
#include "bigtable/names.h"
#include "cluster/heat_matrix.h"
#include "cluster/rows.h"
#include "datastore/database.h"
#include "datastore/index_rows.h"
#include "datastore/snapshot.h"
#include "insight/table_source.h"
#include "row/row_key.h"
#include "sql/vector.h"

enum {
    MEMORY = 256 << 20,
    SCAN_MEMORY = 1 << 20,
    ROW_BYTES = 4 << 20,
    PLACES = 100,
    ENTITIES = 10, /* at each */
    CELLS = 2000,
    IN_VAIN_MOST = 30,
    SERIES_MOST = 200,
    POINTS_MOST = 300,
    KINDS_MOST = 100,
    INDEX_ROWS = 1000, /* that are read of an index */
};

#define LOOK_US   (INT64_C(5) * 1000000)
#define HOUR_US   (INT64_C(3600) * 1000000)
#define MINUTE_US (INT64_C(60) * 1000000)

static const uint8_t ENTITIES_FROM[] = {DS_ENTITY_ROW}, ENTITIES_TO[] = {DS_ENTITY_ROW + 1};

/* What is known of a part of the table: rows that begin alike. */
struct part {
    bytes prefix;
    bytes after;
    const char *kind;
    const char *property; /* NULL: the kind's index, or its root entities */
    struct vector points; /* struct advice_point */
};

struct group {
    bytes prefix; /* of the root's row key */
    const char *root;
    struct vector commits; /* int64_t */
};

struct looking {
    const struct admin_request *request;
    struct table *table;
    struct arena *arena;
    struct arena *scratch; /* of an entity */
    int64_t now_us;
    int64_t until_us; /* clock_steady_us */
    struct advice_random random;
    struct advice_sample sample;
    struct vector keys;    /* bytes, of rows that were seen */
    struct vector groups;  /* struct group */
    struct vector series;  /* struct part */
    struct vector kinds;   /* struct part: kinds' indexes */
    struct vector roots;   /* struct part: entities by the kinds of their roots */
    struct vector indexes; /* struct advice_index */
    struct vector ramps;   /* struct advice_kind */
};

/* --- rows --- */

struct range_reading {
    bytes from;
    bytes to;
    size_t limit;
    bool is_reversed;
    status (*visit)(struct looking *l, void *context, const struct scan_row *row);
    void *context;
};

static status visit_rows(struct looking *l, const struct range_reading *reading, struct scan *scan)
{
    struct scan_row row;
    enum row_outcome outcome;
    for (size_t read = 0; read < reading->limit;) {
        TRY(insight_check_call(l->request));
        TRY(scan_next(scan, STORE_ANYWHERE, &row, &outcome));
        if (outcome == ROW_END || clock_steady_us(clock_system()) > l->until_us)
            return status_ok();
        read++;
        if (outcome == ROW_FOUND)
            TRY(reading->visit(l, reading->context, &row));
    }
    return status_ok();
}

static status read_range(struct looking *l, const struct range_reading *reading, bool wants_values)
{
    const struct key_range range = {.from = reading->from, .to = reading->to};
    const struct read_scope scope = {
        .cells_per_column = CELLS, .cells_per_row = CELLS, .wants_values = wants_values};
    struct arena *arena = arena_create(SCAN_MEMORY);
    struct scan *scan;
    if (arena == NULL)
        return status_out_of_memory();
    status s = scan_create(&(struct scan_spec){.table = l->table,
                                               .ranges = &range,
                                               .range_count = 1,
                                               .reversed = reading->is_reversed,
                                               .schema = table_schema(l->table),
                                               .scope = &scope,
                                               .is_quiet = true,
                                               .size_limit = ROW_BYTES,
                                               .arena = arena},
                           &scan);
    if (status_is_ok(s)) {
        s = visit_rows(l, reading, scan);
        scan_destroy(scan);
    }
    arena_destroy(arena);
    return s;
}

/* What the row is at present; NULL: it is no more. */
static const struct cell *present(const struct cell_list *cells)
{
    for (size_t i = 0; i < cells->count; i++)
        if (bytes_equal(cells->items[i].family->name, bytes_of(DS_FAMILY_IS)))
            return &cells->items[i];
    return NULL;
}

/* --- parts --- */

static status text_at(struct looking *l, bytes encoded, const char **out, size_t *size)
{
    bytes rest = encoded;
    TRY(ds_text_read(&rest, DS_ASCENDING, l->arena, out));
    *size = encoded.size - rest.size;
    return status_ok();
}

/* The part of this prefix, which is made if it is not there; NULL: there are enough. */
static status find_part(struct looking *l, struct vector *parts, size_t most, bytes prefix,
                        struct part **out)
{
    struct part *all = parts->items, part = {0};
    struct buffer after = {0};
    *out = NULL;
    for (size_t i = 0; i < parts->count; i++)
        if (bytes_equal(all[i].prefix, prefix)) {
            *out = &all[i];
            return status_ok();
        }
    if (parts->count == most)
        return status_ok();
    part.prefix = arena_copy(l->arena, prefix);
    bool has_end = key_after_prefix(&after, prefix);
    part.after = has_end && !after.failed ? arena_copy(l->arena, buffer_bytes(&after)) : (bytes){0};
    buffer_free(&after);
    if (part.prefix.data == NULL || part.after.data == NULL)
        return status_out_of_memory();
    TRY(vector_add(parts, l->arena, &part, sizeof part));
    *out = &((struct part *)parts->items)[parts->count - 1];
    return status_ok();
}

/* --- entities --- */

static bool is_time(const struct looking *l, bytes value, uint8_t type)
{
    size_t size;
    if (type == DS__VALUE__VALUE_TYPE_TIMESTAMP_VALUE)
        return true;
    if (type == DS__VALUE__VALUE_TYPE_STRING_VALUE && value.size > 1)
        return key_time_at(bytes_from(value, 1), l->now_us, &size) != KEY_TIME_NONE;
    return false;
}

static status take_value(struct looking *l, const struct ds_index_row *row, int64_t written_us)
{
    struct ds_row parts;
    struct part *series;
    size_t size;
    if (!ds_row_parse(row->key, NULL, &parts))
        return ds_damaged("a row key");
    if (parts.kind != DS_ASCENDING_ROW || row->types.size == 0)
        return status_ok();
    size_t prefix = (size_t)(parts.values.data - row->key.data);
    TRY(find_part(l, &l->series, SERIES_MOST, bytes_make(row->key.data, prefix), &series));
    if (series == NULL)
        return status_ok();
    if (series->kind == NULL) {
        TRY(text_at(l, parts.kind_name, &series->kind, &size));
        TRY(text_at(l, parts.property, &series->property, &size));
    }
    if (series->points.count == POINTS_MOST)
        return status_ok();
    const struct advice_point point = {.written_us = written_us,
                                       .value = arena_copy(l->arena, parts.values),
                                       .is_time = is_time(l, parts.values, row->types.data[0])};
    if (point.value.data == NULL)
        return status_out_of_memory();
    return vector_add(&series->points, l->arena, &point, sizeof point);
}

static status take_entity(struct looking *l, const struct cell *cell)
{
    const Ds__Entity *entity;
    struct ds_index_rows rows;
    struct buffer prefix = {0};
    struct part *kind;
    arena_reset(l->scratch);
    TRY(ds_record_entity(cell->value, l->scratch, &entity));
    TRY(ds_index_rows(entity, NULL, 0, l->scratch, &rows));
    for (size_t i = 0; i < rows.count; i++)
        TRY(take_value(l, &rows.rows[i], cell->timestamp_us));
    ds_kind_prefix(&prefix, ds_key_namespace(entity->key), ds_key_kind(entity->key));
    status s = prefix.failed ? status_out_of_memory()
                             : find_part(l, &l->kinds, KINDS_MOST, buffer_bytes(&prefix), &kind);
    buffer_free(&prefix);
    TRY(s);
    if (kind != NULL && kind->kind == NULL) {
        kind->kind = arena_string(l->arena, ds_key_kind(entity->key));
        if (kind->kind == NULL)
            return status_out_of_memory();
    }
    return status_ok();
}

/* "Kind 5", "Kind "name"" of the first element of the path. */
static const char *name_of_root(struct looking *l, bytes element, const char *kind)
{
    Ds__Key *key;
    struct buffer text = {0};
    status s = ds_path_decode(element, l->arena, &key);
    if (!status_is_ok(s)) {
        status_free(s);
        return kind;
    }
    const Ds__Key__PathElement *root = key->path[0];
    if (root->id_type_case == DS__KEY__PATH_ELEMENT__ID_TYPE_NAME)
        buffer_append_format(&text, "%s \"%s\"", kind, root->name);
    else
        buffer_append_format(&text, "%s %lld", kind, (long long)root->id);
    const char *out = text.failed ? NULL : arena_string(l->arena, buffer_bytes(&text));
    buffer_free(&text);
    return out;
}

static status find_group(struct looking *l, bytes prefix, bytes element, const char *kind,
                         struct group **out)
{
    struct group *all = l->groups.items;
    for (size_t i = 0; i < l->groups.count; i++)
        if (bytes_equal(all[i].prefix, prefix)) {
            *out = &all[i];
            return status_ok();
        }
    const struct group group = {.prefix = arena_copy(l->arena, prefix),
                                .root = name_of_root(l, element, kind)};
    if (group.prefix.data == NULL || group.root == NULL)
        return status_out_of_memory();
    TRY(vector_add(&l->groups, l->arena, &group, sizeof group));
    *out = &((struct group *)l->groups.items)[l->groups.count - 1];
    return status_ok();
}

/* The root of the entity's group, and when the entity was written within the hour. */
static status take_group(struct looking *l, bytes key, const struct cell_list *cells)
{
    struct ds_row row;
    struct part *root;
    struct group *group;
    const char *kind;
    size_t kind_size;
    if (!ds_row_parse(key, NULL, &row))
        return ds_damaged("a row key");
    size_t before = (size_t)(row.path.data - key.data);
    size_t element = ds_element_size(row.path, DS_ASCENDING);
    TRY(text_at(l, row.path, &kind, &kind_size));
    TRY(find_part(l, &l->roots, KINDS_MOST, bytes_make(key.data, before + kind_size), &root));
    if (root != NULL)
        root->kind = kind;
    TRY(find_group(l, bytes_make(key.data, before + element), bytes_make(row.path.data, element),
                   kind, &group));
    for (size_t i = 0; i < cells->count; i++) {
        int64_t at_us = cells->items[i].timestamp_us;
        if (at_us > l->now_us - HOUR_US)
            TRY(vector_add(&group->commits, l->arena, &at_us, sizeof at_us));
    }
    return status_ok();
}

static bool is_known(const struct looking *l, bytes key)
{
    const bytes *keys = l->keys.items;
    for (size_t i = 0; i < l->keys.count; i++)
        if (bytes_equal(keys[i], key))
            return true;
    return false;
}

static status visit_entity(struct looking *l, void *context, const struct scan_row *row)
{
    bool *is_new = context;
    if (is_known(l, row->key))
        return status_ok();
    bytes key = arena_copy(l->arena, row->key);
    if (key.data == NULL)
        return status_out_of_memory();
    TRY(vector_add(&l->keys, l->arena, &key, sizeof key));
    *is_new = true;
    TRY(take_group(l, key, row->cells));
    const struct cell *is = present(row->cells);
    for (size_t i = 0; i < row->cells->count; i++)
        l->sample.bytes += row->cells->items[i].value.size;
    return is == NULL ? status_ok() : take_entity(l, is);
}

static status read_entities(struct looking *l, bytes from, bool is_reversed, bool *is_new)
{
    *is_new = false;
    TRY(read_range(l,
                   &(struct range_reading){.from = from,
                                           .to = bytes_make(ENTITIES_TO, sizeof ENTITIES_TO),
                                           .limit = ENTITIES,
                                           .is_reversed = is_reversed,
                                           .visit = visit_entity,
                                           .context = is_new},
                   true));
    l->sample.places += *is_new;
    return status_ok();
}

static status read_places(struct looking *l)
{
    const bytes first = bytes_make(ENTITIES_FROM, sizeof ENTITIES_FROM);
    struct buffer place = {0};
    bool is_new;
    TRY(read_entities(l, first, false, &is_new));
    status s = read_entities(l, first, true, &is_new);
    for (size_t in_vain = 0; status_is_ok(s) && in_vain < IN_VAIN_MOST && l->keys.count > 0;) {
        l->sample.is_cut = clock_steady_us(clock_system()) > l->until_us;
        if (l->sample.places >= PLACES || l->sample.is_cut)
            break;
        advice_place(l->keys.items, l->keys.count, &l->random, &place);
        bool is_before = bytes_compare(buffer_bytes(&place), first) < 0;
        s = place.failed
                ? status_out_of_memory()
                : read_entities(l, is_before ? first : buffer_bytes(&place), false, &is_new);
        in_vain = is_new ? 0 : in_vain + 1;
    }
    buffer_free(&place);
    return s;
}

static status read_hot_entities(struct looking *l)
{
    struct advice_sign *signs;
    size_t count;
    bool is_new;
    TRY(table_read_signs(l->table, l->arena, &signs, &count));
    for (size_t i = 0; i < count; i++)
        if (signs[i].kind == ADVICE_HOT_ROW && signs[i].key.size > 0 &&
            signs[i].key.data[0] == DS_ENTITY_ROW)
            TRY(read_entities(l, signs[i].key, false, &is_new));
    return status_ok();
}

/* --- indexes --- */

static status visit_index_row(struct looking *l, void *context, const struct scan_row *row)
{
    struct advice_index *index = context;
    (void)l;
    if (present(row->cells) != NULL)
        index->live++;
    else
        index->dead++;
    return status_ok();
}

static status read_index(struct looking *l, const struct part *part)
{
    struct buffer name = {0};
    struct advice_index index = {0};
    buffer_append_format(&name, part->property == NULL ? "of the kind %s" : "of %s.%s", part->kind,
                         part->property == NULL ? "" : part->property);
    index.name = name.failed ? NULL : arena_string(l->arena, buffer_bytes(&name));
    buffer_free(&name);
    if (index.name == NULL)
        return status_out_of_memory();
    TRY(read_range(l,
                   &(struct range_reading){.from = part->prefix,
                                           .to = part->after,
                                           .limit = INDEX_ROWS,
                                           .visit = visit_index_row,
                                           .context = &index},
                   false));
    return vector_add(&l->indexes, l->arena, &index, sizeof index);
}

static status read_indexes(struct looking *l)
{
    const struct part *kinds = l->kinds.items, *series = l->series.items;
    for (size_t i = 0; i < l->kinds.count; i++)
        TRY(read_index(l, &kinds[i]));
    for (size_t i = 0; i < l->series.count; i++)
        if (strncmp(series[i].property, "__", 2) != 0)
            TRY(read_index(l, &series[i]));
    return status_ok();
}

/* --- kinds --- */

static bool overlaps(const struct part *part, bytes start, bytes end)
{
    return bytes_compare(start, part->after) < 0 && bytes_compare(end, part->prefix) > 0;
}

/* Whose entities the range has; NULL if that is not sure. */
static const struct part *owner_of(const struct looking *l, bytes start, bytes end)
{
    const struct part *roots = l->roots.items, *owner = NULL;
    bool is_entities = bytes_compare(start, bytes_make(ENTITIES_FROM, 1)) >= 0 && end.size > 0 &&
                       bytes_compare(end, bytes_make(ENTITIES_TO, 1)) <= 0;
    for (size_t i = 0; is_entities && i < l->roots.count; i++) {
        if (!overlaps(&roots[i], start, end))
            continue;
        if (owner != NULL)
            return NULL;
        owner = &roots[i];
    }
    return owner;
}

static double requests_of(const struct heat_matrix *matrix, const struct heat_time *time,
                          const struct part *const *owners, const struct part *part)
{
    double sum = 0;
    for (size_t i = 0; i < matrix->range_count; i++)
        if (time->sums[i] != NULL && owners[i] == part)
            sum += (double)(time->sums[i]->numbers[HEAT_WRITES] +
                            time->sums[i]->numbers[HEAT_TIMED_READS]);
    return sum;
}

static status add_up(struct looking *l, const struct heat_matrix *matrix,
                     const struct part *const *owners, const struct part *part)
{
    struct vector minutes = {0};
    for (size_t i = 0; i < matrix->time_count; i++) {
        const struct heat_time *time = &matrix->times[i];
        int64_t span_us = time->until_us - time->from_us;
        double long_spans = span_us > MINUTE_US ? (double)span_us / MINUTE_US : 1;
        const struct advice_minute minute = {.minute = time->from_us / MINUTE_US,
                                             .requests = requests_of(matrix, time, owners, part) /
                                                         long_spans};
        struct advice_minute *last = minutes.items;
        last = minutes.count == 0 ? NULL : &last[minutes.count - 1];
        if (last != NULL && last->minute == minute.minute)
            last->requests += minute.requests;
        else
            TRY(vector_add(&minutes, l->arena, &minute, sizeof minute));
    }
    const struct advice_kind kind = {
        .name = part->kind, .minutes = minutes.items, .count = minutes.count};
    return vector_add(&l->ramps, l->arena, &kind, sizeof kind);
}

static status read_heat(struct looking *l)
{
    const struct part *roots = l->roots.items;
    struct heat_matrix matrix;
    TRY(heat_matrix_read(l->table, l->now_us - HOUR_US, l->now_us, HEAT_MOST_RANGES, l->arena,
                         &matrix));
    const struct part **owners = arena_alloc(l->arena, matrix.range_count * sizeof *owners);
    if (owners == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < matrix.range_count; i++)
        owners[i] = owner_of(l, matrix.starts[i],
                             i + 1 < matrix.range_count ? matrix.starts[i + 1] : (bytes){0});
    for (size_t i = 0; i < l->roots.count; i++)
        TRY(add_up(l, &matrix, owners, &roots[i]));
    return status_ok();
}

/* --- all --- */

static status describe(struct looking *l, struct advice_database *out)
{
    const struct part *series = l->series.items;
    const struct group *groups = l->groups.items;
    out->series = arena_alloc(l->arena, l->series.count * sizeof *out->series);
    out->groups = arena_alloc(l->arena, l->groups.count * sizeof *out->groups);
    if (out->series == NULL || out->groups == NULL)
        return status_out_of_memory();
    for (; out->series_count < l->series.count; out->series_count++) {
        const struct part *part = &series[out->series_count];
        out->series[out->series_count] = (struct advice_series){
            part->kind, part->property, part->points.items, part->points.count};
    }
    for (; out->group_count < l->groups.count; out->group_count++) {
        const struct group *group = &groups[out->group_count];
        out->groups[out->group_count] =
            (struct advice_group){group->root, group->commits.items, group->commits.count};
    }
    out->indexes = l->indexes.items;
    out->index_count = l->indexes.count;
    out->kinds = l->ramps.items;
    out->kind_count = l->ramps.count;
    return status_ok();
}

static bool add_size(void *context, bytes end, uint64_t offset)
{
    uint64_t *size = context;
    (void)end;
    *size = offset;
    return true;
}

static status look(struct looking *l, struct buffer *out)
{
    struct advice_observations seen = {.table_id = name_id(table_name(l->table)),
                                       .now_us = l->now_us};
    struct advice_database database = {0};
    struct advice advice;
    TRY(read_places(l));
    TRY(read_hot_entities(l));
    TRY(read_indexes(l));
    TRY(read_heat(l));
    TRY(table_sample(l->table, add_size, &seen.table_size));
    TRY(describe(l, &database));
    TRY(advice_find_in_database(&seen, &database, l->arena, &advice));
    seen.row_count = l->keys.count;
    l->sample.has_heat = true;
    advice_write_json(&seen, &l->sample, &advice, out);
    return out->failed ? status_out_of_memory() : status_ok();
}

status advise_on_database(const struct admin_request *request, const char *name, struct buffer *out)
{
    struct cluster *cluster = request->bigtable->cluster;
    struct looking l = {.request = request,
                        .arena = arena_create(MEMORY),
                        .scratch = arena_create(MEMORY),
                        .now_us = cluster_now_us(cluster),
                        .until_us = clock_steady_us(clock_system()) + LOOK_US};
    l.random.state = (uint64_t)l.now_us | 1;
    status s = l.arena == NULL || l.scratch == NULL
                   ? status_out_of_memory()
                   : cluster_table(cluster, bytes_of(name), &l.table);
    if (status_is_ok(s)) {
        s = look(&l, out);
        table_release(l.table);
    }
    arena_destroy(l.scratch);
    arena_destroy(l.arena);
    return s;
}
