/* Scans over a table: see rows.h.
 *
 * A scan walks its ranges, and each range through the tablets that it crosses, with one reader at a
 * time. Invariants
 *  1. `at` is the range that is being read, counted in the direction of the scan.
 *  2. `reader` is NULL, or reads what is left of that range in `tablet`.
 *  3. `edge` says how far the range has been read by former readers: reading goes on there,
 * forwards (inclusive) or backwards (exclusive). It is where a tablet ended, so a tablet that
 * splits or merges meanwhile changes nothing.
 *  4. `ahead` has records of the points from `ahead_at` on, of `ahead_tablet`; or none. */
#include "base/check.h"
#include "base/limits.h"
#include "cluster/cluster_private.h"
#include "cluster/row_jobs.h"
#include "cluster/row_rewrite.h"
#include "cluster/rows.h"
#include "row/row_key.h"

#include <stdlib.h>

enum {
    ROW_MEMORY = 1 << 30,    /* a row of the largest size, read, copied and filtered */
    ROW_BUDGET = 32,         /* steps without a row, of as many rows each, before a call returns */
    AHEAD_BYTES = 256 << 10, /* of records that are read at once; more: fewer are, next time */
    HEAT_STEPS = 16,         /* of a range, at most, that are counted together */
    RANGE_ROWS_FOR_A_REWRITE = 8, /* in pieces */
};

struct scan {
    struct table *table;
    const struct key_range *ranges;
    size_t range_count;
    bool reversed;
    bool is_restricted; /* to some columns */
    bool is_background;
    const struct filter *filter;
    struct value_source left; /* for the filter */
    bool (*is_given_up)(const void *context);
    const void *context;
    struct read_scope scope;
    struct row_read_options options;

    size_t at;
    struct tablet *tablet; /* retained while there is a reader */
    struct row_range_reader *reader;
    bool has_edge; /* else nothing of the range was read */
    struct buffer edge;

    struct arena *row_arena; /* reset for each row */
    struct row row;
    struct cell_list filtered;
    /* Before what the reader says, unless the scan is restricted: a key of the ranges, or in
     * `noted`. */
    bytes last_scanned;
    struct buffer noted;
    uint64_t random;
    struct scan_counts counts;
    struct heat_mark heat; /* of the single row that is being read */
    bool has_heat_mark;
    struct heat_passed passed; /* up to last_scanned, not yet counted */
    unsigned group_size;       /* in steps, when they are */

    /* Of a scan in the background; NULL: of no other. */
    struct row_records *ahead;
    size_t ahead_at;
    size_t ahead_most;
    struct tablet *ahead_tablet; /* retained while `ahead` has records */
};

/* --- life --- */

static status get_for_filter(struct value_source *source, const struct cell *cell, bytes *value)
{
    struct scan *scan = LIST_ENTRY(source, struct scan, left);
    enum row_outcome outcome;
    if (scan->is_given_up != NULL && scan->is_given_up(scan->context))
        return status_make(STATUS_CANCELLED, "The call was cancelled");
    struct store_read_bound bound = store_bound_reads((struct store_read_bound){.most = SIZE_MAX});
    status s = scan_load_value(scan, cell, STORE_READ_ANY, value, &outcome);
    store_bound_reads(bound);
    CHECK(!status_is_ok(s) || outcome == ROW_FOUND); /* anywhere, and of any size */
    return s;
}

static status prepare_ahead(struct scan *scan, const struct scan_spec *spec)
{
    struct buffer last = {0};
    scan->ahead_most = 1;
    scan->ahead = arena_zalloc(spec->arena, sizeof *scan->ahead);
    if (scan->ahead == NULL)
        return status_out_of_memory();
    scan->ahead->walk.never = spec->reversed;
    if (spec->range_count == 0)
        return status_ok();
    row_record_key(&last, spec->ranges[spec->range_count - 1].from);
    scan->ahead->walk.last = arena_copy(spec->arena, buffer_bytes(&last));
    bool failed = last.failed || scan->ahead->walk.last.data == NULL;
    buffer_free(&last);
    return failed ? status_out_of_memory() : status_ok();
}

static status prepare(struct scan *scan, const struct scan_spec *spec)
{
    struct cluster *cluster = spec->table->cluster;
    if (spec->is_background)
        TRY(prepare_ahead(scan, spec));
    scan->row_arena = arena_create(ROW_MEMORY);
    if (scan->row_arena == NULL)
        return status_out_of_memory();
    if (spec->scope != NULL)
        scan->scope = *spec->scope;
    else
        TRY(filter_scope(spec->filter, spec->schema, spec->arena, &scan->scope));
    if (scan->is_restricted)
        TRY(columns_restrict(spec->columns, spec->schema, spec->arena, &scan->scope));
    scan->options = (struct row_read_options){
        .schema = spec->schema,
        .scope = &scan->scope,
        .now_us = cluster_wall_us(cluster),
        .apply_gc = spec->applies_gc || cluster->options.gc_on_read,
        .size_limit = spec->size_limit > 0 ? spec->size_limit : LIMIT_ROW_BYTES,
        .overflow_bytes = spec->is_background ? 0 : cluster->options.overflow_bytes,
        .defer_after = spec->defers_values ? SCAN_VALUES_KEPT : 0,
        .looks_at_left = spec->loads_values || filter_looks_at_values(spec->filter)};
    /* A coin for row_sample: different for each scan. */
    scan->random = (uint64_t)scan->options.now_us ^ (uintptr_t)scan;
    return status_ok();
}

status scan_create(const struct scan_spec *spec, struct scan **out)
{
    struct scan *scan = *out = arena_zalloc(spec->arena, sizeof *scan);
    if (scan == NULL)
        return status_out_of_memory();
    scan->table = spec->table;
    scan->ranges = spec->ranges;
    scan->range_count = spec->range_count;
    scan->reversed = spec->reversed;
    scan->is_restricted = spec->columns != NULL;
    scan->is_background = spec->is_background;
    scan->filter = spec->filter;
    scan->left.get = get_for_filter;
    scan->is_given_up = spec->is_given_up;
    scan->context = spec->context;
    table_retain(scan->table);
    status s = prepare(scan, spec);
    if (!status_is_ok(s)) {
        scan_destroy(scan);
        *out = NULL;
    }
    return s;
}

static void count_passed(struct scan *scan)
{
    if (scan->passed.rows == 0)
        return;
    DCHECK(scan->reader != NULL && scan->tablet != NULL);
    atomic_fetch_add_explicit(&scan->tablet->bytes_read, scan->passed.bytes, memory_order_relaxed);
    heat_note_passed(scan->table, row_range_reader_last_scanned(scan->reader), &scan->passed);
    scan->passed = (struct heat_passed){0};
}

static void drop_reader(struct scan *scan)
{
    if (scan->reader == NULL)
        return;
    DCHECK(scan->tablet != NULL);
    count_passed(scan);
    row_range_reader_destroy(scan->reader);
    tablet_release(scan->tablet);
    scan->reader = NULL;
    scan->tablet = NULL;
}

static void leave_ahead_tablet(struct scan *scan)
{
    if (scan->ahead_tablet != NULL)
        tablet_release(scan->ahead_tablet);
    scan->ahead_tablet = NULL;
}

static void drop_ahead(struct scan *scan)
{
    if (scan->ahead != NULL)
        row_records_rest(scan->ahead);
    leave_ahead_tablet(scan);
}

void scan_destroy(struct scan *scan)
{
    if (scan == NULL)
        return;
    metrics_add(scan->table->cluster->options.metrics, METRIC_rows_read_total,
                scan->counts.rows_seen);
    DCHECK(scan->reader == NULL || scan->tablet != NULL);
    row_clear(&scan->row);
    drop_reader(scan);
    drop_ahead(scan);
    if (scan->ahead != NULL)
        row_records_free(scan->ahead);
    buffer_free(&scan->edge);
    buffer_free(&scan->noted);
    arena_destroy(scan->row_arena);
    table_release(scan->table);
}

void scan_pause(struct scan *scan)
{
    row_clear(&scan->row);
    drop_ahead(scan);
    if (scan->reader != NULL)
        row_range_reader_pause(scan->reader);
}

/* --- ranges and tablets --- */

static const struct key_range *range_at(const struct scan *scan, size_t at)
{
    DCHECK(at < scan->range_count);
    return &scan->ranges[scan->reversed ? scan->range_count - 1 - at : at];
}

static const struct key_range *current_range(const struct scan *scan)
{
    return range_at(scan, scan->at);
}

static void next_range(struct scan *scan)
{
    DCHECK(scan->reader == NULL);
    scan->at++;
    scan->has_edge = false;
}

/* The rows that are read next are this tablet's. */
static const struct row_read_options *options_for(struct scan *scan, const struct tablet *tablet)
{
    scan->options.store = tablet->shard->store;
    scan->options.drops = table_drops(scan->table, tablet->keyspace);
    scan->options.commits = scan->is_background ? NULL : tablet->shard->commits;
    return &scan->options;
}

/* Opens a reader on what is left of the range in the tablet where reading goes on. */
static status open_reader(struct scan *scan)
{
    DCHECK(scan->reader == NULL && scan->tablet == NULL);
    const struct key_range *range = current_range(scan);
    bytes from = range->from;
    bytes to = range->to;
    if (scan->has_edge && scan->reversed)
        to = buffer_bytes(&scan->edge);
    else if (scan->has_edge)
        from = buffer_bytes(&scan->edge);
    scan->tablet =
        scan->reversed ? table_route_before(scan->table, to) : table_route(scan->table, from);
    if (bytes_compare(from, scan->tablet->start) < 0)
        from = scan->tablet->start;
    if (key_ends_before(scan->tablet->end, to))
        to = scan->tablet->end;
    DCHECK(to.size == 0 || bytes_compare(from, to) <= 0);
    status s = row_range_reader_create(scan->tablet->keyspace, options_for(scan, scan->tablet),
                                       from, to, scan->reversed, &scan->reader);
    if (!status_is_ok(s)) {
        tablet_release(scan->tablet);
        scan->tablet = NULL;
    }
    return s;
}

static status note_scanned(struct scan *scan, bytes row_key)
{
    buffer_clear(&scan->noted);
    buffer_append_bytes(&scan->noted, row_key);
    scan->last_scanned = buffer_bytes(&scan->noted);
    return scan->noted.failed ? status_out_of_memory() : status_ok();
}

/* What the reader says, as long as it is there; empty: it has nothing to say. A row that a
 * restricted scan does not find may be none of the caller's business. */
static bytes scanned_by_reader(const struct scan *scan)
{
    if (scan->reader == NULL || scan->is_restricted)
        return bytes_make(NULL, 0);
    return row_range_reader_last_scanned(scan->reader);
}

/* The tablet has nothing more for the range: on to the next tablet, or the next range. */
static status leave_tablet(struct scan *scan)
{
    DCHECK(scan->tablet != NULL && scan->reader != NULL);
    bytes last = scanned_by_reader(scan);
    if (last.size > 0)
        TRY(note_scanned(scan, last));
    const struct key_range *range = current_range(scan);
    bytes border = scan->reversed ? scan->tablet->start : scan->tablet->end;
    bool goes_on = scan->reversed ? bytes_compare(range->from, border) < 0
                                  : key_ends_before(border, range->to);
    buffer_clear(&scan->edge);
    buffer_append_bytes(&scan->edge, border);
    scan->has_edge = goes_on;
    drop_reader(scan);
    if (!goes_on)
        next_range(scan);
    return scan->edge.failed ? status_out_of_memory() : status_ok();
}

/* --- rows --- */

static bool skip_key(void *context, bytes row_key)
{
    struct scan *scan = context;
    bool is_rejected = filter_rejects_key(scan->filter, row_key);
    scan->counts.keys_rejected += is_rejected;
    return is_rejected;
}

/* Says which tablet is damaged, for the operator who has to restore it. */
static status name_tablet(status s, const struct scan *scan, const struct tablet *tablet)
{
    if (s.code != STATUS_DATA_LOSS)
        return s;
    status named = status_make(STATUS_DATA_LOSS, "%s, tablet %llu: %s", table_name(scan->table),
                               (unsigned long long)tablet->id, status_message(s));
    status_free(s);
    return named;
}

static void start_row(struct scan *scan)
{
    row_clear(&scan->row);
    arena_reset(scan->row_arena);
    scan->row.cells.arena = scan->row_arena;
}

static uint64_t next_random(struct scan *scan)
{
    /* SplitMix64 (Steele, Lea, Flood 2014). */
    uint64_t z = scan->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Of a range's rows in pieces one in some is stored anew: that costs as much as to read it several
 * times over, and who goes through many rows may come once. */
static bool is_chosen(struct scan *scan)
{
    return next_random(scan) % RANGE_ROWS_FOR_A_REWRITE == 0;
}

/* The row's record may want something done, whatever comes of the row. */
static void look_after(struct scan *scan, struct tablet *tablet)
{
    if (scan->row.wants_maintenance)
        row_jobs_request(tablet->shard->row_jobs, scan->table, scan->row.key);
    else if (scan->row.wants_rewrite && (scan->reader == NULL || is_chosen(scan)))
        row_rewriter_offer(tablet->shard->row_rewriter, scan->table, tablet->keyspace, &scan->row);
}

/* Notes it for splits by load. An empty key: none yet. A row that is not in memory is read once
 * more, and counts then. */
static void note_asked_for(const struct scan *scan, struct tablet *tablet, bytes key,
                           enum row_outcome outcome)
{
    if (scan->is_background || outcome == ROW_NOT_CACHED)
        return;
    atomic_fetch_add_explicit(&tablet->rows_read, 1, memory_order_relaxed);
    if (key.size > 0)
        key_sample_note(&tablet->asked_for, key);
}

/* --- heat --- */

static uint64_t bytes_of_row(const struct row *row)
{
    uint64_t size = row->record.size;
    for (size_t i = 0; fragment_has_overflow(row->record) && i < row->cells.count; i++)
        size += row->cells.items[i].value.size;
    return size;
}

/* Also while the row is asked for once more, on another thread. */
static void begin_point(struct scan *scan)
{
    if (!scan->has_heat_mark && !scan->is_background)
        scan->heat = heat_begin(scan->table);
    scan->has_heat_mark = true;
}

static void end_point(struct scan *scan, bytes key)
{
    DCHECK(scan->has_heat_mark);
    if (scan->heat.weight > 0)
        heat_end_read(scan->table, scan->heat, key, bytes_of_row(&scan->row));
    scan->has_heat_mark = false;
}

/* A step of a range counts as a row, whether it found one or not. Of a short scan each is counted
 * by itself, and in longer ones other rows are the last of their group each time, so that a small
 * table's ranges all get theirs. */
static void note_passed(struct scan *scan, bool has_row)
{
    bool is_short = scan->counts.rows_seen < HEAT_STEPS;
    uint64_t bytes = has_row ? bytes_of_row(&scan->row) : 0;
    struct heat_passed *passed = &scan->passed;
    if (scan->is_background)
        return;
    passed->bytes += bytes;
    if (passed->largest_row < bytes)
        passed->largest_row = bytes;
    if (++passed->rows < scan->group_size && !is_short)
        return;
    count_passed(scan);
    scan->group_size = is_short ? 1 + (unsigned)(scan->random >> 8) % HEAT_STEPS : HEAT_STEPS;
}

static void count_point(const struct scan *scan, struct tablet *tablet, enum row_outcome outcome)
{
    if (outcome == ROW_FOUND && !scan->is_background)
        atomic_fetch_add_explicit(&tablet->bytes_read, bytes_of_row(&scan->row),
                                  memory_order_relaxed);
}

/* --- steps --- */

/* Whether records are read ahead of what is asked for: nobody waits for the first. */
static bool reads_ahead(const struct scan *scan, enum store_read_tier read_tier)
{
    return scan->ahead != NULL && read_tier == STORE_READ_ANY;
}

/* Points from here on that lie in the tablet. */
static size_t points_ahead(const struct scan *scan, const struct tablet *tablet, bytes *keys)
{
    size_t count = 0;
    for (size_t at = scan->at; count < scan->ahead_most && at < scan->range_count; at++) {
        const struct key_range *range = range_at(scan, at);
        if (!range->is_point || !tablet_contains(tablet, range->from))
            break;
        keys[count++] = range->from;
    }
    return count;
}

/* As many as have not too many bytes, if the next are as the last were. */
static void choose_most(struct scan *scan)
{
    if (scan->ahead->bytes > AHEAD_BYTES)
        scan->ahead_most = scan->ahead_most > 1 ? scan->ahead_most / 2 : 1;
    else if (2 * scan->ahead->bytes <= AHEAD_BYTES && scan->ahead_most < ROW_RECORDS_MOST)
        scan->ahead_most *= 2;
}

/* A failure is that of one of them: they are read one by one, then. */
static void look_ahead(struct scan *scan, bytes key)
{
    bytes keys[ROW_RECORDS_MOST];
    leave_ahead_tablet(scan);
    struct tablet *tablet = table_route(scan->table, key);
    size_t count = points_ahead(scan, tablet, keys);
    status s =
        row_records_read(scan->ahead, tablet->keyspace, options_for(scan, tablet), keys, count);
    if (!status_is_ok(s)) {
        tablet_release(tablet);
        status_free(s);
        return;
    }
    scan->ahead_at = scan->at;
    scan->ahead_tablet = tablet;
    choose_most(scan);
}

/* `*is_read`: it was; else it is to be read alone. */
static status read_ahead(struct scan *scan, bytes key, bool *is_read, enum row_outcome *outcome)
{
    if (scan->ahead_tablet == NULL || scan->at - scan->ahead_at >= scan->ahead->count)
        look_ahead(scan, key);
    *is_read =
        scan->ahead_tablet != NULL && row_records_has(scan->ahead, scan->at - scan->ahead_at);
    if (!*is_read)
        return status_ok();
    struct tablet *tablet = scan->ahead_tablet;
    status s = row_records_take(scan->ahead, scan->at - scan->ahead_at, tablet->keyspace,
                                options_for(scan, tablet), key, &scan->row, outcome);
    s = name_tablet(s, scan, tablet);
    if (status_is_ok(s))
        look_after(scan, tablet);
    return s;
}

static status read_alone(struct scan *scan, bytes key, enum store_read_tier read_tier,
                         enum row_outcome *outcome)
{
    struct tablet *tablet = table_route(scan->table, key);
    status s =
        row_read(tablet->keyspace, options_for(scan, tablet), key, read_tier, &scan->row, outcome);
    s = name_tablet(s, scan, tablet);
    if (status_is_ok(s))
        look_after(scan, tablet);
    note_asked_for(scan, tablet, key, *outcome);
    count_point(scan, tablet, *outcome);
    tablet_release(tablet);
    return s;
}

/* A range of one key: no reader, and a tablet only for the counting. */
static status read_point(struct scan *scan, enum store_read_tier read_tier,
                         enum row_outcome *outcome)
{
    DCHECK(scan->reader == NULL);
    bytes key = current_range(scan)->from;
    *outcome = ROW_ABSENT;
    if (!filter_rejects_key(scan->filter, key)) {
        bool is_read = false;
        begin_point(scan);
        if (reads_ahead(scan, read_tier))
            TRY(read_ahead(scan, key, &is_read, outcome));
        if (!is_read)
            TRY(read_alone(scan, key, read_tier, outcome));
        scan->row.key = key;
    }
    if (*outcome == ROW_NOT_CACHED)
        return status_ok();
    if (scan->has_heat_mark)
        end_point(scan, key);
    next_range(scan);
    scan->last_scanned = key;
    return status_ok();
}

static status read_in_range(struct scan *scan, enum store_read_tier read_tier,
                            enum row_outcome *outcome)
{
    if (scan->reader == NULL)
        TRY(open_reader(scan));
    TRY(name_tablet(row_range_reader_next(scan->reader, read_tier, skip_key, scan, ROW_BUDGET,
                                          &scan->row, outcome),
                    scan, scan->tablet));
    look_after(scan, scan->tablet);
    bytes last = row_range_reader_last_scanned(scan->reader);
    if (scan->is_restricted && *outcome == ROW_FOUND)
        TRY(note_scanned(scan, last));
    note_asked_for(scan, scan->tablet, last, *outcome);
    if (last.size > 0 && *outcome != ROW_NOT_CACHED && *outcome != ROW_END)
        note_passed(scan, *outcome == ROW_FOUND);
    if (*outcome != ROW_END)
        return status_ok();
    *outcome = ROW_ABSENT;
    return leave_tablet(scan);
}

/* The filter's part of the row that was read; `*cells` is what passes. */
static status filter_row(struct scan *scan, const struct cell_list **cells)
{
    scan->counts.rows_seen++;
    scan->counts.cells_seen += (int64_t)scan->row.cells.count;
    *cells = &scan->row.cells;
    if (scan->filter == NULL)
        return status_ok();
    scan->filtered = (struct cell_list){.arena = scan->row_arena};
    *cells = &scan->filtered;
    return filter_apply(scan->filter, scan->row.key, &scan->row.cells, next_random(scan),
                        scan->row.left == NULL ? NULL : &scan->left, &scan->filtered);
}

/* One step: gives a row, or nothing yet, or an error. */
static status step(struct scan *scan, enum store_read_tier read_tier, enum row_outcome *outcome)
{
    start_row(scan);
    return current_range(scan)->is_point ? read_point(scan, read_tier, outcome)
                                         : read_in_range(scan, read_tier, outcome);
}

status scan_next(struct scan *scan, enum store_read_tier read_tier, struct scan_row *row,
                 enum row_outcome *outcome)
{
    for (int steps = 0; steps < ROW_BUDGET; steps++) {
        if (scan->at == scan->range_count) {
            *outcome = ROW_END;
            return status_ok();
        }
        TRY(step(scan, read_tier, outcome));
        row->key = scan->row.key;
        if (*outcome == ROW_FOUND) {
            TRY(filter_row(scan, &row->cells));
            row->has_deferred = scan->row.left != NULL && cell_list_has_deferred(row->cells);
            if (row->cells->count > 0)
                return status_ok();
        } else if (*outcome != ROW_ABSENT) {
            return status_ok();
        }
    }
    *outcome = ROW_ABSENT;
    return status_ok();
}

status scan_load_value(struct scan *scan, const struct cell *cell, enum store_read_tier read_tier,
                       bytes *value, enum row_outcome *outcome)
{
    status s = row_load_value(&scan->row, cell, read_tier, value, outcome);
    if (s.code != STATUS_DATA_LOSS)
        return s;
    struct tablet *tablet = table_route(scan->table, scan->row.key);
    s = name_tablet(s, scan, tablet);
    tablet_release(tablet);
    return s;
}

void scan_release_value(struct scan *scan)
{
    row_release_value(&scan->row);
}

bytes scan_last_scanned(const struct scan *scan)
{
    bytes last = scanned_by_reader(scan);
    return last.size > 0 ? last : scan->last_scanned;
}

struct scan_counts scan_counts(const struct scan *scan)
{
    return scan->counts;
}
