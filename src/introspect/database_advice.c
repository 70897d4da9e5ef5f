/* See database_advice.h.
 *
 * Entities are sampled (database_entities.c), which says which kinds and indexes there are. Then
 * the beginnings of these indexes are read, and what was counted by ranges of keys is added up by
 * kinds. */
#include "introspect/database_advice.h"

#include "base/clock.h"
#include "bigtable/names.h"
#include "cluster/heat/heat_matrix.h"
#include "datastore/database.h"
#include "datastore/index/index_definition.h"
#include "datastore/model/ids.h"
#include "datastore/model/key.h"
#include "introspect/advice_message.h"
#include "introspect/database_look.h"
#include "introspect/database_text.h"
#include "introspect/heat_minutes.h"
#include "introspect/mutes.h"
#include "introspect/table_source.h"
#include "row/row_key.h"

#include <stdlib.h>

enum {
    MEMORY = 256 << 20,
    SCAN_MEMORY = 1 << 20,
    ROW_BYTES = 4 << 20,
    CELLS = 2000,
    INDEX_ROWS = 1000, /* that are read of an index */
};

#define LOOK_US (INT64_C(5) * 1000000)

static const uint8_t ENTITIES_FROM[] = {DS_ENTITY_ROW}, ENTITIES_TO[] = {DS_ENTITY_ROW + 1};

/* --- rows --- */

static status visit_rows(struct looking *l, const struct range_reading *reading, struct scan *scan)
{
    struct scan_row row;
    enum row_outcome outcome;
    for (size_t read = 0; read < reading->limit;) {
        TRY(insight_check_call(l->request));
        TRY(scan_next(scan, STORE_READ_ANY, &row, &outcome));
        if (outcome == ROW_END || clock_steady_us(clock_system()) > l->until_us)
            return status_ok();
        read++;
        if (outcome == ROW_TOO_LARGE)
            row.cells = NULL;
        if (outcome == ROW_FOUND || outcome == ROW_TOO_LARGE)
            TRY(reading->visit(l, reading->context, &row));
    }
    return status_ok();
}

status database_read_range(struct looking *l, const struct range_reading *reading)
{
    const struct key_range range = {.from = reading->from, .to = reading->to};
    const struct read_scope scope = {
        .cells_per_column = CELLS, .cells_per_row = CELLS, .wants_values = reading->wants_values};
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
                                               .is_background = true,
                                               .size_limit = reading->takes_large ? 0 : ROW_BYTES,
                                               .arena = arena},
                           &scan);
    if (status_is_ok(s)) {
        s = visit_rows(l, reading, scan);
        scan_destroy(scan);
    }
    arena_destroy(arena);
    return s;
}

const struct cell *database_present(const struct cell_list *cells)
{
    for (size_t i = 0; i < cells->count; i++)
        if (bytes_equal(cells->items[i].family->name, bytes_of(DS_FAMILY_IS)))
            return &cells->items[i];
    return NULL;
}

/* Finds where a part lies: what its prefix begins with, behind its letter. */
static status find_where(struct looking *l, bytes prefix, const char **out)
{
    bytes rest = bytes_from(prefix, 1);
    const char *name_space;
    struct buffer text = {0};
    *out = "";
    TRY(ds_text_read(&rest, DS_ASCENDING, l->arena, &name_space));
    if (name_space[0] == '\0')
        return status_ok();
    buffer_append_format(&text, " (namespace %s)", name_space);
    *out = text.failed ? NULL : arena_string(l->arena, buffer_bytes(&text));
    buffer_free(&text);
    return *out == NULL ? status_out_of_memory() : status_ok();
}

status database_find_part(struct looking *l, struct vector *parts, size_t most, bytes prefix,
                          struct part **out)
{
    struct part *all = parts->items, part = {.prefix = arena_copy(l->arena, prefix)};
    *out = NULL;
    for (size_t i = 0; i < parts->count; i++)
        if (bytes_equal(all[i].prefix, prefix)) {
            *out = &all[i];
            return status_ok();
        }
    if (parts->count == most)
        return status_ok();
    if (part.prefix.data == NULL || !key_prefix_end(l->arena, prefix, &part.after))
        return status_out_of_memory();
    TRY(find_where(l, prefix, &part.where));
    TRY(vector_add(parts, l->arena, &part, sizeof part));
    *out = &((struct part *)parts->items)[parts->count - 1];
    return status_ok();
}

/* --- composite indexes --- */

static status visit_definition(struct looking *l, void *context, const struct scan_row *row)
{
    struct vector *found = context;
    Datastore__CompositeIndex *definition;
    struct ds_index index;
    const struct cell *is = row->cells == NULL ? NULL : database_present(row->cells);
    if (is == NULL)
        return status_ok();
    bytes value = arena_copy(l->arena, is->value);
    if (value.data == NULL)
        return status_out_of_memory();
    TRY(ds_definition_decode(value, l->arena, &definition));
    bool is_kept = definition->state == DS_ADMIN__INDEX__STATE__READY ||
                   definition->state == DS_ADMIN__INDEX__STATE__CREATING;
    if (!is_kept)
        return status_ok();
    TRY(ds_definition_index(definition, l->arena, &index));
    return vector_add(found, l->arena, &index, sizeof index);
}

static status read_composites(struct looking *l)
{
    static const uint8_t from[] = {DS_INDEX_ROW}, to[] = {DS_INDEX_ROW + 1};
    struct vector found = {0};
    TRY(database_read_range(l, &(struct range_reading){.from = bytes_make(from, sizeof from),
                                                       .to = bytes_make(to, sizeof to),
                                                       .limit = SIZE_MAX,
                                                       .wants_values = true,
                                                       .visit = visit_definition,
                                                       .context = &found}));
    l->composites = found.items;
    l->composite_count = found.count;
    l->composite_rows = arena_zalloc(l->arena, found.count * sizeof *l->composite_rows);
    return l->composite_rows == NULL ? status_out_of_memory() : status_ok();
}

/* --- beginnings of indexes --- */

static status visit_index_row(struct looking *l, void *context, const struct scan_row *row)
{
    struct advice_index *index = context;
    if (row->cells != NULL && database_present(row->cells) != NULL) {
        index->live++;
        return status_ok();
    }
    index->dead++;
    index->last_dead = arena_copy(l->arena, row->key);
    if (index->first_dead.size == 0)
        index->first_dead = index->last_dead;
    return index->last_dead.data == NULL ? status_out_of_memory() : status_ok();
}

static status name_index(struct looking *l, const struct part *part, struct advice_index *index)
{
    struct buffer name = {0};
    if (part->property == NULL)
        buffer_append_format(&name, "of the kind %s%s", part->kind, part->where);
    else
        buffer_append_format(&name, "of %s.%s%s", part->kind, part->property, part->where);
    index->name = name.failed ? NULL : arena_string(l->arena, buffer_bytes(&name));
    buffer_free(&name);
    return index->name == NULL ? status_out_of_memory() : status_ok();
}

static status read_index(struct looking *l, const struct part *part)
{
    struct advice_index index = {0};
    TRY(name_index(l, part, &index));
    TRY(database_read_range(l, &(struct range_reading){.from = part->prefix,
                                                       .to = part->after,
                                                       .limit = INDEX_ROWS,
                                                       .visit = visit_index_row,
                                                       .context = &index}));
    TRY(database_row_text(index.first_dead, l->arena, &index.first_dead));
    TRY(database_row_text(index.last_dead, l->arena, &index.last_dead));
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

/* --- heat --- */

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

static status read_minutes(struct looking *l, const struct heat_matrix *matrix)
{
    const struct part *roots = l->roots.items;
    const void **owners = arena_alloc(l->arena, matrix->range_count * sizeof *owners);
    if (owners == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < matrix->range_count; i++)
        owners[i] = owner_of(l, matrix->starts[i],
                             i + 1 < matrix->range_count ? matrix->starts[i + 1] : (bytes){0});
    for (size_t i = 0; i < l->roots.count; i++) {
        struct heat_minutes minutes;
        TRY(heat_minutes_of(matrix, owners, &roots[i], l->arena, &minutes));
        const struct advice_kind kind = {.name = roots[i].kind,
                                         .where = roots[i].where,
                                         .minutes = minutes.all,
                                         .count = minutes.count};
        TRY(vector_add(&l->ramps, l->arena, &kind, sizeof kind));
    }
    return status_ok();
}

/* --- what was seen, for the rules --- */

/* A hotspot's keys are rows until entities have been looked for there. */
static status describe_hotspots(struct looking *l)
{
    for (size_t i = 0; i < l->hotspot_count; i++) {
        struct advice_hotspot *hotspot = &l->hotspots[i];
        TRY(database_row_text(hotspot->start, l->arena, &hotspot->start));
        TRY(database_row_text(hotspot->end, l->arena, &hotspot->end));
        TRY(database_row_text(hotspot->key, l->arena, &hotspot->key));
    }
    return status_ok();
}

static status describe_series(struct looking *l, struct advice_database *out)
{
    const struct part *parts = l->series.items;
    struct advice_series *series = arena_alloc(l->arena, l->series.count * sizeof *series);
    if (series == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < l->series.count; i++) {
        const struct advice_point *points = parts[i].points.items, *last = &points[0];
        for (size_t j = 1; j < parts[i].points.count; j++)
            if (bytes_compare(points[j].value, last->value) > 0)
                last = &points[j];
        series[i] = (struct advice_series){.kind = parts[i].kind,
                                           .where = parts[i].where,
                                           .property = parts[i].property,
                                           .points = points,
                                           .count = parts[i].points.count};
        TRY(database_value_text(parts[i].kind, parts[i].property, last->value, last->type,
                                parts[i].where, l->arena, &series[i].last));
    }
    out->series = series;
    out->series_count = l->series.count;
    return status_ok();
}

static int order_of_roots(const void *a, const void *b)
{
    const struct root *left = a, *right = b;
    return bytes_compare(left->element, right->element);
}

/* An id that the server might have given. */
static status automatic_id(struct looking *l, const struct part *part, uint64_t counter, bytes *out)
{
    struct buffer text = {0};
    buffer_append_format(&text, "%s %lld%s", part->kind, (long long)ds_scattered_id(counter),
                         part->where);
    *out = text.failed ? bytes_make(NULL, 0) : arena_copy(l->arena, buffer_bytes(&text));
    buffer_free(&text);
    return out->data == NULL ? status_out_of_memory() : status_ok();
}

/* Of `count` roots, which are all names or all ids. */
static status describe_keys(struct looking *l, const struct part *part, const struct root *roots,
                            size_t count, struct advice_roots *out)
{
    struct advice_row *rows = arena_alloc(l->arena, count * sizeof *rows);
    bytes *words = arena_alloc(l->arena, count * sizeof *words);
    bytes *better = arena_alloc(l->arena, count * sizeof *better);
    if (rows == NULL || words == NULL || better == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        rows[i] = roots[i].row;
        words[i] = roots[i].words;
        if (!roots[i].is_name)
            TRY(automatic_id(l, part, i + 1, &better[i]));
    }
    *out = (struct advice_roots){
        .kind = part->kind, .where = part->where, .keys = rows, .count = count, .words = words};
    out->better = count > 0 && !roots[0].is_name ? better : NULL;
    return status_ok();
}

/* Ids come before names, as in the order of keys. */
static status describe_parts(struct looking *l, const struct vector *from, struct advice_roots *out)
{
    struct part *parts = from->items;
    for (size_t i = 0; i < from->count; i++) {
        struct root *roots = parts[i].keys.items;
        size_t count = parts[i].keys.count, ids = 0;
        if (count > 0)
            qsort(roots, count, sizeof *roots, order_of_roots);
        while (ids < count && !roots[ids].is_name)
            ids++;
        TRY(describe_keys(l, &parts[i], roots, ids, &out[2 * i]));
        TRY(describe_keys(l, &parts[i], roots + ids, count - ids, &out[2 * i + 1]));
    }
    return status_ok();
}

static status describe_roots(struct looking *l, struct advice_database *out)
{
    size_t count = l->roots.count + l->children.count;
    struct advice_roots *all = arena_alloc(l->arena, 2 * count * sizeof *all);
    if (all == NULL)
        return status_out_of_memory();
    TRY(describe_parts(l, &l->roots, all));
    TRY(describe_parts(l, &l->children, all + 2 * l->roots.count));
    out->roots = all;
    out->roots_count = 2 * count;
    return status_ok();
}

static status describe_groups(struct looking *l, struct advice_database *out)
{
    const struct group *groups = l->groups.items;
    out->groups = arena_alloc(l->arena, l->groups.count * sizeof *out->groups);
    if (out->groups == NULL)
        return status_out_of_memory();
    for (; out->group_count < l->groups.count; out->group_count++) {
        const struct group *group = &groups[out->group_count];
        out->groups[out->group_count] =
            (struct advice_group){group->words, group->commits.items, group->commits.count};
    }
    return status_ok();
}

static status describe_composites(struct looking *l, struct advice_database *out)
{
    struct vector kinds = {0};
    for (size_t i = 0; i < l->composite_count; i++) {
        struct advice_composites *all = kinds.items, one = {l->composites[i].kind, 1};
        size_t at = 0;
        while (at < kinds.count && strcmp(all[at].kind, one.kind) != 0)
            at++;
        if (at < kinds.count)
            all[at].count++;
        else
            TRY(vector_add(&kinds, l->arena, &one, sizeof one));
    }
    out->composites = kinds.items;
    out->composites_count = kinds.count;
    return status_ok();
}

static status describe(struct looking *l, struct advice_database *out)
{
    TRY(describe_hotspots(l));
    TRY(describe_series(l, out));
    TRY(describe_roots(l, out));
    TRY(describe_groups(l, out));
    TRY(describe_composites(l, out));
    out->entities = l->entities.items;
    out->entity_count = l->entities.count;
    out->indexes = l->indexes.items;
    out->index_count = l->indexes.count;
    out->kinds = l->ramps.items;
    out->kind_count = l->ramps.count;
    out->properties = l->properties;
    return status_ok();
}

/* --- all --- */

static bool add_size(void *context, bytes end, uint64_t offset)
{
    uint64_t *size = context;
    (void)end;
    *size = offset;
    return true;
}

static status look(struct looking *l, Insight__TableAdvice **out)
{
    struct advice_observations seen = {.table_id = name_id(table_name(l->table)),
                                       .now_us = l->now_us};
    const Insight__AdviseRequest *message = (const void *)l->request->message;
    struct advice_database database = {0};
    struct heat_matrix matrix;
    struct advice advice;
    TRY(read_composites(l));
    TRY(insight_read_since(l->request, &seen.since_us));
    TRY(table_read_matrix(l->table, seen.since_us, HEAT_MOST_RANGES, l->arena, &matrix));
    TRY(table_read_hotspots(l->table, &matrix, ds_row_section, l->arena, &l->hotspots,
                            &l->hotspot_count, &seen.is_heat_coarse));
    TRY(database_read_entities(l));
    TRY(read_indexes(l));
    TRY(read_minutes(l, &matrix));
    TRY(table_sample(l->table, add_size, &seen.table_size));
    TRY(describe(l, &database));
    TRY(database_read_usage(l, table_name(l->table), seen.since_us, &database));
    seen.shows_values = message->show_values;
    seen.hotspots = l->hotspots;
    seen.hotspot_count = l->hotspot_count;
    TRY(advice_find_in_database(&seen, &database, l->arena, &advice));
    TRY(mute_findings(l->table, l->arena, &advice));
    seen.row_count = l->keys.count;
    return advice_message(&seen, &l->sample, &advice, l->request->arena, out);
}

status advise_on_database(const struct admin_request *request, const char *name,
                          Insight__TableAdvice **out)
{
    struct cluster *cluster = request->bigtable->cluster;
    struct looking l = {.request = request,
                        .arena = arena_create(MEMORY),
                        .scratch = arena_create(MEMORY),
                        .now_us = cluster_wall_us(cluster),
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
