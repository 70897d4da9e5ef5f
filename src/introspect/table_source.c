/* See table_source.h. */
#include "introspect/table_source.h"

#include "advisor/schema.h"
#include "advisor/siblings.h"
#include "base/limits.h"
#include "base/vector.h"
#include "bigtable/names.h"
#include "bigtable/table_methods.h"
#include "cluster/heat/heat_hotspots.h"
#include "cluster/heat/heat_matrix.h"
#include "cluster/heat/heat_store.h"
#include "cluster/rows.h"
#include "introspect/heat_minutes.h"
#include "introspect/table_usage.h"
#include "introspect/table_weights.h"
#include "row/row_key.h"

enum {
    HEAT_RANGES = 256, /* by which it is looked at what was counted */
    SIZE_RANGES = 128, /* by which it is looked up whether a range has a tenth of the data */
    SIZE_ROWS = 20000, /* that are looked at for it */
    SCAN_MEMORY = 1 << 20,
    LARGE_ROWS_MOST = 4,   /* that are read whole, for their size */
    TURNS_MOST = 32,       /* of a reading, without a row */
    FAVOURITE_WRITES = 16, /* in a window, so that they count: 1,000 an hour, by the minute */
    FAVOURITES_MOST = 256,
};

#define HOUR_US (INT64_C(3600) * 1000000)

static struct table_source *table_source_of(const struct advice_source *source)
{
    return source->context;
}

static status read_schema(struct advice_source *source, struct advice_observations *out)
{
    struct table_source *table = table_source_of(source);
    struct admin_request request = *table->request;
    BtAdmin__Table *schema;
    request.arena = source->arena;
    TRY(table_message(&request, table->table, BT_ADMIN__TABLE__VIEW__SCHEMA_VIEW, &schema));
    table->schema = schema;
    return advice_set_families(schema, source->arena, out);
}

/* --- cuts --- */

struct cutting {
    struct advice_cuts *cuts;
    status failure;
};

static bool take_cut(void *context, bytes end, uint64_t offset)
{
    struct cutting *cutting = context;
    struct arena *arena = cutting->cuts->arena;
    const struct advice_cut cut = {.key = arena_copy(arena, end), .offset = offset};
    cutting->failure =
        cut.key.data == NULL ? status_out_of_memory() : advice_cuts_add(cutting->cuts, &cut);
    return status_is_ok(cutting->failure);
}

static status cut_table(struct table *table, struct advice_cuts *out)
{
    struct cutting cutting = {.cuts = out, .failure = status_ok()};
    TRY(table_sample(table, take_cut, &cutting));
    return cutting.failure;
}

static status read_cuts(struct advice_source *source, struct advice_cuts *out)
{
    return cut_table(table_source_of(source)->table, out);
}

/* --- rows --- */

/* One scan, and how far it came. */
struct reader {
    struct table_source *source;
    struct sample_rows *rows;
    const struct sample_reading *reading;
    struct arena *arena; /* of the scan */
    size_t read;
    uint64_t size;
    bool is_cut; /* some row was */
};

static status open_scan(struct reader *r, const struct key_range *range,
                        const struct read_scope *scope, uint64_t size_limit, struct scan **out)
{
    struct table *table = r->source->table;
    bool is_empty = range->to.size > 0 && bytes_compare(range->from, range->to) >= 0;
    const struct scan_spec spec = {.table = table,
                                   .ranges = range,
                                   .range_count = is_empty ? 0 : 1,
                                   .reversed = r->reading != NULL && r->reading->is_reversed,
                                   .schema = table_schema(table),
                                   .scope = scope,
                                   .is_background = true,
                                   .size_limit = size_limit,
                                   .arena = r->arena};
    return scan_create(&spec, out);
}

static status take_cell(struct reader *r, const struct cell *cell, struct advice_row *row)
{
    struct advice_cell *kept = &row->cells[row->cell_count];
    row->size += cell->qualifier.size + cell->value.size;
    if (row->cell_count == SAMPLE_CELLS_MOST ||
        !sample_rows_family(r->rows, cell->family->name, &kept->family))
        return status_ok();
    kept->timestamp_us = cell->timestamp_us;
    kept->size = cell->value.size;
    kept->hash = advice_hash(cell->value);
    bool is_same = row->cell_count > 0 && kept[-1].family == kept->family &&
                   bytes_equal(kept[-1].qualifier, cell->qualifier);
    kept->qualifier = is_same ? kept[-1].qualifier : arena_copy(r->rows->arena, cell->qualifier);
    if (kept->qualifier.data == NULL)
        return status_out_of_memory();
    row->cell_count++;
    return status_ok();
}

static status take_row(struct reader *r, const struct scan_row *found)
{
    size_t count = found->cells->count,
           most = count < SAMPLE_CELLS_MOST ? count : SAMPLE_CELLS_MOST;
    struct advice_row row = {.key = arena_copy(r->rows->arena, found->key),
                             .place = r->reading->place,
                             .cells = arena_alloc(r->rows->arena, (most + 1) * sizeof *row.cells),
                             .size = found->key.size,
                             .is_cut = count >= SAMPLE_CELLS_MOST};
    if (row.key.data == NULL || row.cells == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        TRY(take_cell(r, &found->cells->items[i], &row));
    r->read++;
    r->is_cut |= row.is_cut;
    uint64_t counted = row.size < SAMPLE_ROW_MOST ? row.size : SAMPLE_ROW_MOST;
    r->size += counted;
    r->rows->bytes += counted;
    return sample_rows_add(r->rows, &row);
}

/* A row that is larger than is read for a sample: the first few are read whole, once. Its size is
 * exact then. */
static status read_whole(struct reader *r, bytes key)
{
    struct reader one = *r;
    struct key_range range = {.from = key, .is_point = true};
    struct scan_row row;
    struct scan *scan;
    enum row_outcome outcome;
    one.arena = arena_create(SCAN_MEMORY);
    if (one.arena == NULL || !key_successor(one.arena, key, &range.to)) {
        arena_destroy(one.arena);
        return status_out_of_memory();
    }
    status s = open_scan(&one, &range, NULL, 0, &scan);
    if (status_is_ok(s)) {
        s = scan_next(scan, STORE_READ_ANY, &row, &outcome);
        if (status_is_ok(s) && outcome == ROW_FOUND)
            s = take_row(r, &row);
        else if (status_is_ok(s) && outcome == ROW_TOO_LARGE)
            s = sample_rows_add_unreadable(r->rows, r->reading->place, key);
        scan_destroy(scan);
    }
    arena_destroy(one.arena);
    return s;
}

static status take_large_row(struct reader *r, bytes found)
{
    bytes key = arena_copy(r->rows->arena, found);
    const struct advice_row row = {
        .key = key, .place = r->reading->place, .is_cut = true, .size = SAMPLE_ROW_MOST};
    if (key.data == NULL)
        return status_out_of_memory();
    r->is_cut = true;
    r->read++;
    if (r->source->large_rows++ < LARGE_ROWS_MOST)
        return read_whole(r, key);
    r->rows->bytes += SAMPLE_ROW_MOST;
    return sample_rows_add(r->rows, &row);
}

/* Until there is enough. What was deleted is passed over, up to a point. */
static status read_on(struct reader *r, struct scan *scan, bool *is_whole)
{
    struct scan_row row;
    enum row_outcome outcome;
    *is_whole = false;
    for (size_t turns = 0; turns < TURNS_MOST && r->read < r->reading->limit;) {
        TRY(insight_check_call(r->source->request));
        TRY(scan_next(scan, STORE_READ_ANY, &row, &outcome));
        if (outcome == ROW_END) {
            *is_whole = !r->is_cut;
            return status_ok();
        }
        if (outcome == ROW_FOUND)
            TRY(take_row(r, &row));
        if (outcome == ROW_TOO_LARGE)
            TRY(take_large_row(r, row.key));
        if (r->size > SAMPLE_READ_MOST)
            return status_ok();
        turns += outcome == ROW_ABSENT;
        r->rows->passed += outcome == ROW_ABSENT ? SCAN_ROWS_PASSED : 0;
    }
    return status_ok();
}

static status read_rows(struct advice_source *source, struct sample_rows *rows,
                        const struct sample_reading *reading, bool *is_whole)
{
    struct reader r = {.source = table_source_of(source),
                       .rows = rows,
                       .reading = reading,
                       .arena = arena_create(SCAN_MEMORY)};
    const struct key_range range = {.from = reading->start, .to = reading->end};
    const struct read_scope scope = {
        .cells_per_column = INT32_MAX, .cells_per_row = SAMPLE_CELLS_MOST, .wants_values = true};
    struct scan *scan;
    if (r.arena == NULL)
        return status_out_of_memory();
    status s = open_scan(&r, &range, &scope, SAMPLE_ROW_MOST, &scan);
    if (status_is_ok(s)) {
        s = read_on(&r, scan, is_whole);
        scan_destroy(scan);
    }
    arena_destroy(r.arena);
    return s;
}

/* Rows that were read whole are as large as they are; of others nothing more is known. */
static status estimate_row(struct advice_source *source, struct sample_rows *rows,
                           struct advice_row *row)
{
    (void)source;
    (void)rows;
    (void)row;
    return status_ok();
}

static status is_one_row(struct advice_source *source, struct sample_rows *rows, bytes start,
                         bytes end, bool *is_one)
{
    struct sample_rows two = {
        .arena = source->arena, .families = rows->families, .family_count = rows->family_count};
    const struct sample_reading reading = {.start = start, .end = end, .limit = 2};
    bool is_whole;
    TRY(read_rows(source, &two, &reading, &is_whole));
    *is_one = two.count == 1 && (is_whole || two.rows[0].is_cut);
    return status_ok();
}

/* --- heat --- */

struct hot_list {
    struct arena *arena;
    bytes table;
    int64_t since_us;    /* those that ended before are none */
    struct buffer found; /* struct advice_heat */
};

/* Under a lock: it only copies. */
static bool take_hot_tablet(void *context, const struct hot_tablet *hot)
{
    struct hot_list *list = context;
    if (!bytes_equal(bytes_of(hot->table), list->table) || hot->until_us < list->since_us)
        return true;
    const struct advice_heat heat = {.start = arena_copy(list->arena, hot->start),
                                     .end = arena_copy(list->arena, hot->end),
                                     .from_us = hot->from_us,
                                     .until_us = hot->until_us,
                                     .cpu_percent = hot->cpu_percent};
    list->found.failed |= heat.start.data == NULL || heat.end.data == NULL;
    buffer_append(&list->found, &heat, sizeof heat);
    return !list->found.failed;
}

static status read_hot_tablets(struct table_source *table, struct arena *arena,
                               struct advice_observations *out)
{
    struct hot_list list = {
        .arena = arena, .table = bytes_of(table_name(table->table)), .since_us = table->since_us};
    cluster_hot_tablets(table->request->bigtable->cluster, take_hot_tablet, &list);
    bytes kept =
        list.found.failed ? bytes_make(NULL, 0) : arena_copy(arena, buffer_bytes(&list.found));
    buffer_free(&list.found);
    if (kept.data == NULL)
        return status_out_of_memory();
    out->heat = (struct advice_heat *)(uintptr_t)kept.data;
    out->heat_count = kept.size / sizeof *out->heat;
    return status_ok();
}

static bool kind_of_hotspot(enum heat_hotspot_kind kind, enum advice_hotspot_kind *out)
{
    static const enum advice_hotspot_kind kinds[] = {
        [HEAT_HOTSPOT_WRITE_FRONTIER] = ADVICE_WRITE_FRONTIER,
        [HEAT_HOTSPOT_HOT_WRITES] = ADVICE_HOT_WRITES,
        [HEAT_HOTSPOT_HOT_READS] = ADVICE_HOT_READS,
        [HEAT_HOTSPOT_HOT_KEY] = ADVICE_HOT_ROW,
    };
    if ((size_t)kind >= sizeof kinds / sizeof *kinds)
        return false;
    *out = kinds[kind];
    return true;
}

static int64_t looked_at_from(struct table *table, int64_t since_us)
{
    return since_us > 0 ? since_us : cluster_wall_us(table_cluster(table)) - HOUR_US;
}

status table_read_matrix(struct table *table, int64_t since_us, size_t most_ranges,
                         struct arena *arena, struct heat_matrix *out)
{
    int64_t now_us = cluster_wall_us(table_cluster(table));
    return heat_matrix_read(table, looked_at_from(table, since_us), now_us, most_ranges, arena,
                            out);
}

status table_read_hotspots(struct table *table, const struct heat_matrix *matrix,
                           heat_section *section_of, struct arena *arena,
                           struct advice_hotspot **out, size_t *count, bool *is_coarse)
{
    const struct heat_looking looking = {.section_of = section_of,
                                         .most_ranges = SIZE_RANGES,
                                         .most_walked = SIZE_ROWS,
                                         .wants_lasting = true};
    struct heat_hotspot *hotspots;
    size_t all;
    *count = 0;
    *is_coarse = false;
    TRY(heat_hotspots_of_matrix(table, matrix, &looking, arena, &hotspots, &all));
    *out = arena_alloc(arena, (all + 1) * sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < all; i++) {
        struct advice_hotspot *hotspot = &(*out)[*count];
        *hotspot = (struct advice_hotspot){.start = hotspots[i].start,
                                           .end = hotspots[i].end,
                                           .key = hotspots[i].key,
                                           .share = hotspots[i].share,
                                           .total = hotspots[i].total,
                                           .part = hotspots[i].part,
                                           .windows = hotspots[i].windows,
                                           .from_us = hotspots[i].from_us};
        *count += kind_of_hotspot(hotspots[i].kind, &hotspot->kind);
        *is_coarse |= hotspots[i].kind == HEAT_HOTSPOT_FEW_RANGES;
    }
    return status_ok();
}

/* Which tablet each range of the matrix begins in: they are the ends of cuts. */
static const void **owners_of(const struct heat_matrix *matrix, const struct advice_cuts *cuts,
                              struct arena *arena)
{
    const void **owners = arena_alloc(arena, matrix->range_count * sizeof *owners);
    size_t tablet = 0;
    for (size_t i = 0; owners != NULL && i < matrix->range_count; i++) {
        while (tablet + 1 < cuts->count &&
               bytes_compare(matrix->starts[i], cuts->all[tablet].key) >= 0)
            tablet++;
        owners[i] = &cuts->all[tablet];
    }
    return owners;
}

static status read_tablets(struct table_source *table, const struct heat_matrix *matrix,
                           struct arena *arena, struct advice_observations *out)
{
    struct advice_cuts cuts = {.arena = arena};
    TRY(cut_table(table->table, &cuts));
    struct advice_tablet *tablets = arena_alloc(arena, cuts.count * sizeof *tablets);
    const void **owners = owners_of(matrix, &cuts, arena);
    if (tablets == NULL || owners == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < cuts.count; i++) {
        struct heat_minutes minutes;
        TRY(heat_minutes_of(matrix, owners, &cuts.all[i], arena, &minutes));
        tablets[i] = (struct advice_tablet){.start = i == 0 ? (bytes){0} : cuts.all[i - 1].key,
                                            .end = cuts.all[i].key,
                                            .minutes = minutes.all,
                                            .count = minutes.count};
    }
    out->tablets = tablets;
    out->tablet_count = cuts.count;
    return status_ok();
}

static uint64_t single_reads(const struct heat_matrix *matrix, const struct heat_time *time)
{
    uint64_t reads = 0;
    for (size_t i = 0; i < matrix->range_count; i++)
        if (time->sums[i] != NULL)
            reads += time->sums[i]->numbers[HEAT_TIMED_READS];
    return reads;
}

/* Of favourites with few writes in a window there may be one for each range and window, and none of
 * them comes to what matters; of others there are few. */
static status count_writes(struct vector *rows, bytes key, uint64_t writes, struct arena *arena)
{
    struct advice_rewritten *all = rows->items;
    const struct advice_rewritten one = {.key = key, .writes = writes};
    if (writes < FAVOURITE_WRITES)
        return status_ok();
    for (size_t i = 0; i < rows->count; i++)
        if (bytes_equal(all[i].key, key)) {
            all[i].writes += writes;
            return status_ok();
        }
    return rows->count < FAVOURITES_MOST ? vector_add(rows, arena, &one, sizeof one) : status_ok();
}

/* The votes for a range's favourite are requests for it, of which as many as all that read single
 * rows may have been reads. (Those of the range alone are not known: they are shared out.) */
static status find_rewritten(const struct heat_matrix *matrix, struct arena *arena,
                             struct advice_rewritten *most)
{
    struct vector rows = {0};
    for (size_t i = 0; i < matrix->time_count; i++) {
        const struct heat_time *time = &matrix->times[i];
        uint64_t reads = single_reads(matrix, time);
        for (size_t j = 0; j < matrix->range_count; j++) {
            const struct heat_sum *sum = time->sums[j];
            if (sum != NULL && sum->votes > reads)
                TRY(count_writes(&rows, sum->favourite, sum->votes - reads, arena));
        }
    }
    const struct advice_rewritten *all = rows.items;
    for (size_t i = 0; i < rows.count; i++)
        if (all[i].writes > most->writes)
            *most = all[i];
    return status_ok();
}

/* Whether something is kept of what was asked for before the last hour. */
static status was_asked_for(struct table *table, int64_t before_us, bool *was)
{
    *was = false;
    for (int level = HEAT_WINDOWS; level < HEAT_LEVELS && !*was; level++) {
        int64_t from_us;
        TRY(heat_store_oldest(table_cluster(table), table_id(table), (enum heat_level)level,
                              &from_us));
        *was = from_us > 0 && from_us < before_us;
    }
    return status_ok();
}

/* Rows: what a scan passes is no request for one, but a load of its own. */
static bool mostly_writes(const struct heat_matrix *matrix)
{
    uint64_t reads = 0, writes = 0;
    for (size_t i = 0; i < matrix->time_count; i++)
        for (size_t j = 0; j < matrix->range_count; j++) {
            const struct heat_sum *sum = matrix->times[i].sums[j];
            reads += sum == NULL ? 0 : sum->numbers[HEAT_READS];
            writes += sum == NULL ? 0 : sum->numbers[HEAT_WRITES];
        }
    return writes > 0 && writes >= (reads + writes) / 10 * 9;
}

/* Of few rows that come in no order most may rise by chance. */
static bool has_risen(const struct heat_matrix *matrix, const struct heat_time *time)
{
    uint64_t writes = 0, rising = 0;
    for (size_t i = 0; i < matrix->range_count; i++) {
        const struct heat_sum *sum = time->sums[i];
        writes += sum == NULL ? 0 : sum->numbers[HEAT_WRITES];
        rising += sum == NULL ? 0 : sum->numbers[HEAT_RISING];
    }
    return rising >= HEAT_HOTSPOT_LEAST_ROWS && rising * 2 >= writes;
}

static status find_first_load(const struct table_source *source, const struct heat_matrix *matrix,
                              struct advice_observations *out)
{
    bool was_before;
    TRY(was_asked_for(source->table, looked_at_from(source->table, source->since_us), &was_before));
    out->is_young = !was_before;
    out->is_first_load = !was_before && mostly_writes(matrix);
    for (size_t i = 0; i < matrix->time_count; i++)
        if (has_risen(matrix, &matrix->times[i]))
            out->risen_until_us = matrix->times[i].until_us;
    out->unwritten_us = heat_unwritten_us(source->table);
    return status_ok();
}

static status read_counts(struct table_source *table, struct arena *arena,
                          struct advice_observations *out)
{
    struct heat_matrix matrix;
    struct advice_hotspot *hotspots;
    TRY(table_read_matrix(table->table, table->since_us, HEAT_RANGES, arena, &matrix));
    TRY(table_read_hotspots(table->table, &matrix, NULL, arena, &hotspots, &out->hotspot_count,
                            &out->is_heat_coarse));
    out->hotspots = hotspots;
    TRY(find_rewritten(&matrix, arena, &out->rewritten));
    TRY(find_first_load(table, &matrix, out));
    return read_tablets(table, &matrix, arena, out);
}

static status read_heat(struct advice_source *source, struct advice_observations *out,
                        bool *is_answered)
{
    struct table_source *table = table_source_of(source);
    *is_answered = true;
    TRY(read_hot_tablets(table, source->arena, out));
    TRY(table_read_usage(table->table, table->since_us, source->arena, &out->usage));
    return read_counts(table, source->arena, out);
}

/* --- other tables --- */

struct sibling_list {
    struct arena *arena;
    const char *table_id;
    struct buffer found; /* struct advice_sibling */
    size_t tables;
};

static bool take_sibling(void *context, struct table *table)
{
    struct sibling_list *list = context;
    const char *id = name_id(table_name(table));
    list->tables++;
    if (!may_be_parts(list->table_id, id))
        return true;
    const struct advice_sibling sibling = {.id = arena_string(list->arena, bytes_of(id))};
    list->found.failed |= sibling.id == NULL;
    buffer_append(&list->found, &sibling, sizeof sibling);
    return !list->found.failed;
}

/* One that has gone meanwhile stays unknown. */
static status look_at_sibling(struct advice_source *source, struct advice_sibling *sibling)
{
    struct table_source *table = table_source_of(source);
    struct admin_request request = *table->request;
    struct advice_cuts cuts = {.arena = source->arena};
    BtAdmin__Table *schema;
    struct table *other;
    char *name = name_of_table(source->arena, table->instance, sibling->id);
    if (name == NULL)
        return status_out_of_memory();
    status s = cluster_table(request.bigtable->cluster, bytes_of(name), &other);
    if (s.code == STATUS_NOT_FOUND) {
        status_free(s);
        return status_ok();
    }
    TRY(s);
    request.arena = source->arena;
    s = table_message(&request, other, BT_ADMIN__TABLE__VIEW__SCHEMA_VIEW, &schema);
    if (status_is_ok(s))
        s = cut_table(other, &cuts);
    table_release(other);
    TRY(s);
    sibling->has_same_families = advice_has_same_families(table->schema, schema);
    sibling->size = advice_cuts_size(&cuts);
    sibling->is_known = true;
    return status_ok();
}

static status read_siblings(struct advice_source *source, struct advice_observations *out)
{
    struct table_source *table = table_source_of(source);
    struct sibling_list list = {.arena = source->arena,
                                .table_id = name_id(table_name(table->table))};
    char *prefix = name_of_table(source->arena, table->instance, "");
    if (prefix == NULL)
        return status_out_of_memory();
    status s = cluster_list_tables(table->request->bigtable->cluster, bytes_of(prefix),
                                   bytes_make(NULL, 0), take_sibling, &list);
    bytes kept = list.found.failed ? bytes_make(NULL, 0)
                                   : arena_copy(source->arena, buffer_bytes(&list.found));
    buffer_free(&list.found);
    TRY(s);
    if (kept.data == NULL)
        return status_out_of_memory();
    struct advice_sibling *siblings = (struct advice_sibling *)(uintptr_t)kept.data;
    out->siblings = siblings;
    out->sibling_count = kept.size / sizeof *siblings;
    out->table_count = list.tables;
    for (size_t i = 0; i < out->sibling_count && i < SIBLINGS_KNOWN; i++)
        TRY(look_at_sibling(source, &siblings[i]));
    return status_ok();
}

void table_source_init(struct table_source *table, struct arena *arena, struct advice_source *out)
{
    static const struct advice_source_calls calls = {.read_schema = read_schema,
                                                     .read_cuts = read_cuts,
                                                     .read_rows = read_rows,
                                                     .estimate_row = estimate_row,
                                                     .is_one_row = is_one_row,
                                                     .read_weights = table_read_weights,
                                                     .read_heat = read_heat,
                                                     .read_siblings = read_siblings};
    *out = (struct advice_source){.arena = arena, .context = table, .calls = &calls};
}
