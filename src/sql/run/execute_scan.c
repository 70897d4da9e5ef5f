/* SCAN: rows of a table as columns of a query.
 *
 * Cells come sorted by family, then by column; so do the slots that want them, once they are put in
 * that order: each row is one walk along both. */
#include "row/row_key.h"
#include "sql/plan/key_schema.h"
#include "sql/plan/optimize.h"
#include "sql/run/execute_private.h"
#include "sql/run/versions.h"
#include "sql/run/view_cell.h"

#include <stdlib.h>

/* A slot that wants cells, and where its value goes. */
struct wanted {
    const struct sql_slot *slot;
    bytes qualifier; /* of a column */
    size_t index;    /* in the row; SIZE_MAX: it is read, and has no place there */
};

struct scanner {
    struct sql_scan *scan;
    struct sql_scan_spec spec;
    struct wanted *wanted; /* by family; whole families before their columns */
    size_t wanted_count;
    struct sql_value *parts; /* of the key; NULL: not wanted */
    bool with_history;
    struct versions *versions; /* NULL: a row of the table is one of the scan */
};

/* --- what is read --- */

/* Of a view whose rows have versions: the marker, by which each of them is known. */
static const struct sql_slot marker_slot = {
    .kind = SQL_SLOT_CELL, .type = &sql_bytes, .family = {(const uint8_t *)"default", 7}};

static bool is_one_column(const struct sql_slot *slot)
{
    return slot->kind == SQL_SLOT_COLUMN || slot->kind == SQL_SLOT_CELL;
}

static int compare_wanted(const void *a, const void *b)
{
    const struct wanted *left = a;
    const struct wanted *right = b;
    int order = bytes_compare(left->slot->family, right->slot->family);
    if (order != 0 || left->slot->kind != right->slot->kind)
        return order != 0 ? order : (int)left->slot->kind - (int)right->slot->kind;
    return bytes_compare(left->qualifier, right->qualifier);
}

static status collect_wanted(struct iterator *iterator, struct scanner *scanner)
{
    const struct sql_scan_plan *plan = iterator->operator_->scan;
    struct arena *own = iterator->execution->own;
    scanner->wanted = arena_alloc(own, (plan->slot_count + 1) * sizeof *scanner->wanted);
    if (scanner->wanted == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < plan->slot_count; i++) {
        const struct sql_slot *slot = &plan->slots[i];
        struct wanted wanted = {.slot = slot, .qualifier = slot->cell, .index = i};
        if (slot->kind != SQL_SLOT_FAMILY && !is_one_column(slot))
            continue;
        if (slot->qualifier != NULL) {
            struct sql_value qualifier;
            TRY(evaluate(iterator, slot->qualifier, &qualifier));
            if (qualifier.is_null) /* no column has that name: the value is always NULL */
                continue;
            wanted.qualifier = arena_copy(own, qualifier.text);
            if (wanted.qualifier.data == NULL)
                return status_out_of_memory();
        }
        scanner->wanted[scanner->wanted_count++] = wanted;
    }
    if (scanner->versions != NULL)
        scanner->wanted[scanner->wanted_count++] =
            (struct wanted){.slot = &marker_slot, .index = SIZE_MAX};
    qsort(scanner->wanted, scanner->wanted_count, sizeof *scanner->wanted, compare_wanted);
    return status_ok();
}

/* What is wanted of one family: all if any slot wants all. Moves on to the next family's. */
static status need_family(struct iterator *iterator, const struct scanner *scanner, size_t *at,
                          struct sql_family_need *need)
{
    bytes family = scanner->wanted[*at].slot->family;
    bytes *qualifiers =
        arena_alloc(iterator->execution->own, (scanner->wanted_count - *at) * sizeof *qualifiers);
    if (qualifiers == NULL)
        return status_out_of_memory();
    *need = (struct sql_family_need){.family = family, .qualifiers = qualifiers};
    for (; *at < scanner->wanted_count; ++*at) {
        const struct wanted *wanted = &scanner->wanted[*at];
        if (!bytes_equal(wanted->slot->family, family))
            break;
        need->needs_all = need->needs_all || wanted->slot->kind == SQL_SLOT_FAMILY;
        bool is_again = need->qualifier_count > 0 &&
                        bytes_equal(qualifiers[need->qualifier_count - 1], wanted->qualifier);
        if (is_one_column(wanted->slot) && !is_again)
            qualifiers[need->qualifier_count++] = wanted->qualifier;
    }
    return status_ok();
}

static status collect_needs(struct iterator *iterator, const struct scanner *scanner,
                            struct sql_scan_spec *spec)
{
    struct sql_family_need *needs =
        arena_alloc(iterator->execution->own, scanner->wanted_count * sizeof *needs);
    if (needs == NULL)
        return status_out_of_memory();
    for (size_t at = 0; at < scanner->wanted_count; spec->family_count++)
        TRY(need_family(iterator, scanner, &at, &needs[spec->family_count]));
    spec->families = needs;
    return status_ok();
}

/* --- times --- */

/* A time that is given, moved by `step` microseconds; `missing` if it is not given. */
static status bound_time(struct iterator *iterator, const struct sql_expr *expr, int64_t step,
                         int64_t missing, int64_t *out)
{
    struct sql_value value = {.int64 = missing};
    *out = missing;
    if (expr == NULL)
        return status_ok();
    TRY(evaluate(iterator, expr, &value));
    if (value.is_null)
        return status_make(STATUS_OUT_OF_RANGE, "A temporal argument of a table must not be NULL");
    *out = value.int64 + step; /* the calendar leaves room */
    return status_ok();
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static status collect_times(struct iterator *iterator, struct sql_scan_spec *spec)
{
    const struct sql_temporal *temporal = &iterator->operator_->scan->temporal;
    int64_t after, after_or_equal, before, before_or_equal, as_of, latest;
    TRY(bound_time(iterator, temporal->after, 1, INT64_MIN, &after));
    TRY(bound_time(iterator, temporal->after_or_equal, 0, INT64_MIN, &after_or_equal));
    TRY(bound_time(iterator, temporal->before, 0, INT64_MAX, &before));
    TRY(bound_time(iterator, temporal->before_or_equal, 1, INT64_MAX, &before_or_equal));
    TRY(bound_time(iterator, temporal->as_of, 1, INT64_MAX, &as_of));
    TRY(bound_time(iterator, temporal->latest_n, 0, INT32_MAX, &latest));
    if (latest < 1)
        return status_make(STATUS_OUT_OF_RANGE, "latest_n must be at least 1");
    spec->from_us = later(after, after_or_equal);
    spec->to_us = earlier(earlier(before, before_or_equal), as_of);
    spec->cells_per_column = temporal->with_history ? (int32_t)earlier(latest, INT32_MAX) : 1;
    if (sql_relation_has_versions(iterator->operator_->scan->table))
        spec->cells_per_column = INT32_MAX;
    return status_ok();
}

/* --- the beginning --- */

static bool wants_parts(const struct sql_scan_plan *plan)
{
    for (size_t i = 0; i < plan->slot_count; i++)
        if (plan->slots[i].kind == SQL_SLOT_KEY_PART)
            return true;
    return false;
}

/* UNNEST and UNPACK make several rows of one, and keep what it was meanwhile. */
static bool takes_rows_apart(const struct sql_execution *execution)
{
    struct iterator *const *iterators = execution->iterators.items;
    for (size_t i = 0; i < execution->iterators.count; i++) {
        enum sql_operator_kind kind = iterators[i]->operator_->kind;
        if (kind == SQL_OP_UNNEST || kind == SQL_OP_UNPACK)
            return true;
    }
    return false;
}

static status row_limit(struct iterator *iterator, struct sql_scan_spec *spec)
{
    int64_t limit;
    if (iterator->operator_->scan->row_limit == NULL)
        return status_ok();
    TRY(evaluate_count(iterator, iterator->operator_->scan->row_limit, &limit));
    spec->row_limit = (uint64_t)limit;
    return status_ok();
}

/* Leaves of the ranges what is from `from` on and before `to` (empty: no bound). */
static status leave_between(struct iterator *iterator, bytes from, bytes to,
                            struct sql_scan_spec *spec)
{
    size_t left = 0;
    struct sql_key_range *ranges =
        arena_alloc(iterator->execution->own, spec->range_count * sizeof *ranges);
    if (ranges == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < spec->range_count; i++) {
        struct sql_key_range range = spec->ranges[i];
        if (bytes_compare(range.from, from) < 0)
            range.from = from;
        if (to.size > 0 && (range.to.size == 0 || bytes_compare(range.to, to) > 0))
            range.to = to;
        if (range.to.size == 0 || bytes_compare(range.from, range.to) < 0)
            ranges[left++] = range;
    }
    spec->ranges = ranges;
    spec->range_count = left;
    return status_ok();
}

/* Leaves of the ranges what comes after the place where another execution stopped. */
static status go_on_behind(struct iterator *iterator, struct sql_scan_spec *spec)
{
    bytes key = iterator->execution->after_key;
    bytes from = bytes_make(NULL, 0);
    if (key.size == 0)
        return status_ok();
    if (!spec->is_reversed && !key_successor(iterator->execution->own, key, &from))
        return status_out_of_memory();
    return leave_between(iterator, from, spec->is_reversed ? key : bytes_make(NULL, 0), spec);
}

static status leave_part(struct iterator *iterator, struct sql_scan_spec *spec)
{
    const struct sql_key_range *within = iterator->execution->within;
    return within == NULL ? status_ok() : leave_between(iterator, within->from, within->to, spec);
}

static status scan_begin(struct iterator *iterator)
{
    struct scanner *scanner = iterator->state;
    const struct sql_scan_plan *plan = iterator->operator_->scan;
    const struct sql_catalog *catalog = iterator->execution->catalog;
    struct arena *own = iterator->execution->own;
    struct sql_scan_spec *spec = &scanner->spec;
    spec->is_reversed = plan->is_reversed;
    bool has_versions = sql_relation_has_versions(plan->table);
    spec->keeps_row = has_versions || takes_rows_apart(iterator->execution);
    scanner->with_history = plan->temporal.with_history;
    if (has_versions)
        TRY(versions_create(own, &scanner->versions));
    TRY(collect_wanted(iterator, scanner));
    TRY(collect_needs(iterator, scanner, spec));
    TRY(collect_times(iterator, spec));
    TRY(row_limit(iterator, spec));
    struct sql_frame frame = iterator->frame;
    frame.arena = own; /* ranges stay */
    TRY(sql_scan_ranges(plan, &frame, &spec->ranges, &spec->range_count));
    TRY(go_on_behind(iterator, spec));
    TRY(leave_part(iterator, spec));
    iterator->execution->reading = spec;
    if (wants_parts(plan)) {
        size_t count = sql_key_schema_count(plan->table->key_schema);
        scanner->parts = arena_alloc(own, count * sizeof *scanner->parts);
        if (scanner->parts == NULL)
            return status_out_of_memory();
    }
    return catalog->scan(catalog->context, plan->table, spec, own, &scanner->scan);
}

static void scan_rest(struct iterator *iterator)
{
    struct scanner *scanner = iterator->state;
    if (scanner->scan != NULL && scanner->scan->rest != NULL)
        scanner->scan->rest(scanner->scan);
}

static void scan_end(struct iterator *iterator)
{
    struct scanner *scanner = iterator->state;
    if (scanner->scan != NULL)
        scanner->scan->destroy(scanner->scan);
    versions_end(scanner->versions);
}

/* --- cells as values --- */

static struct sql_value cell_value(const struct sql_type *type, const struct cell *cell)
{
    uint64_t number = 0;
    if (type->kind != SQL_INT64)
        return sql_of_text(cell->value);
    for (size_t i = 0; i < cell->value.size; i++)
        number = number << 8 | cell->value.data[i];
    return sql_of_int64((int64_t)number);
}

/* How many cells from `at` on are of the same column. */
static size_t column_size(const struct cell *cells, size_t count)
{
    size_t size = 1;
    while (size < count && bytes_equal(cells[size].qualifier, cells[0].qualifier))
        size++;
    return size;
}

/* [{timestamp, value}, …]; `type` is the array's. */
static status history_value(struct arena *arena, const struct sql_type *type,
                            const struct cell *cells, size_t count, struct sql_value *out)
{
    struct sql_value *items = arena_alloc(arena, count * sizeof *items);
    struct sql_value *fields = arena_alloc(arena, 2 * count * sizeof *fields);
    if (items == NULL || fields == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        fields[2 * i] = sql_of_int64(cells[i].timestamp_us);
        fields[2 * i + 1] = cell_value(type->element->fields[1].type, &cells[i]);
        items[i] = sql_of_items(&fields[2 * i], 2);
    }
    *out = sql_of_items(items, count);
    return status_ok();
}

static status column_value(struct iterator *iterator, const struct sql_type *type,
                           const struct cell *cells, size_t count, struct sql_value *out)
{
    const struct scanner *scanner = iterator->state;
    if (scanner->with_history)
        return history_value(iterator->frame.arena, type, cells, count, out);
    *out = cell_value(type, &cells[0]);
    return status_ok();
}

static status family_value(struct iterator *iterator, const struct sql_type *type,
                           const struct cell *cells, size_t count, struct sql_value *out)
{
    struct sql_value *items = arena_alloc(iterator->frame.arena, 2 * count * sizeof *items);
    size_t filled = 0;
    if (items == NULL)
        return status_out_of_memory();
    for (size_t at = 0; at < count; filled += 2) {
        size_t size = column_size(cells + at, count - at);
        items[filled] = sql_of_text(cells[at].qualifier);
        TRY(column_value(iterator, type->element, cells + at, size, &items[filled + 1]));
        at += size;
    }
    *out = sql_of_items(items, filled);
    return status_ok();
}

/* --- rows --- */

/* Cells of one family, and the slots that want some of them, both by column. */
static status fill_columns(struct iterator *iterator, const struct wanted *wanted,
                           size_t wanted_count, const struct cell *cells, size_t count)
{
    size_t at = 0;
    for (size_t i = 0; i < wanted_count; i++) {
        if (wanted[i].index == SIZE_MAX)
            continue;
        struct sql_value *out = &iterator->row[wanted[i].index];
        if (wanted[i].slot->kind == SQL_SLOT_FAMILY) {
            TRY(family_value(iterator, wanted[i].slot->type, cells, count, out));
            continue;
        }
        while (at < count && bytes_compare(cells[at].qualifier, wanted[i].qualifier) < 0)
            at++;
        bool is_there = at < count && bytes_equal(cells[at].qualifier, wanted[i].qualifier);
        if (is_there && wanted[i].slot->kind == SQL_SLOT_CELL)
            *out = view_cell_value(wanted[i].slot->type, cells[at].value);
        else if (is_there)
            TRY(column_value(iterator, wanted[i].slot->type, cells + at,
                             column_size(cells + at, count - at), out));
        else
            *out = sql_null();
    }
    return status_ok();
}

static status fill_families(struct iterator *iterator, const struct cell_list *cells)
{
    const struct scanner *scanner = iterator->state;
    size_t at = 0;
    for (size_t i = 0, next; i < scanner->wanted_count; i = next) {
        bytes family = scanner->wanted[i].slot->family;
        for (next = i; next < scanner->wanted_count; next++)
            if (!bytes_equal(scanner->wanted[next].slot->family, family))
                break;
        while (at < cells->count && bytes_compare(cells->items[at].family->name, family) < 0)
            at++;
        size_t end = at;
        while (end < cells->count && bytes_equal(cells->items[end].family->name, family))
            end++;
        TRY(fill_columns(iterator, &scanner->wanted[i], next - i,
                         end == at ? NULL : &cells->items[at], end - at));
        at = end;
    }
    return status_ok();
}

static status fill_key(struct iterator *iterator, bytes key)
{
    const struct sql_scan_plan *plan = iterator->operator_->scan;
    struct scanner *scanner = iterator->state;
    if (scanner->parts != NULL)
        TRY(sql_key_decode(plan->table->key_schema, key, iterator->frame.arena, scanner->parts));
    for (size_t i = 0; i < plan->slot_count; i++) {
        const struct sql_slot *slot = &plan->slots[i];
        bool is_part = slot->kind == SQL_SLOT_KEY_PART && scanner->parts != NULL;
        if (slot->kind == SQL_SLOT_KEY)
            iterator->row[i] = sql_of_text(key);
        else if (is_part)
            iterator->row[i] = scanner->parts[slot->part];
        else if (slot->kind == SQL_SLOT_TIMESTAMP)
            iterator->row[i] = sql_of_int64(versions_time(scanner->versions));
        else
            iterator->row[i] = sql_null();
    }
    return status_ok();
}

/* What it takes to read a row, next to a call of a function. */
enum { STEPS_A_ROW = 32 };

/* The next row of the table. */
static status read_row(struct iterator *iterator, struct sql_scan_row *row, bool *found)
{
    struct scanner *scanner = iterator->state;
    TRY(scanner->scan->next(scanner->scan, row, found));
    if (scanner->scan->must_wait)
        return pause_query(iterator->execution);
    if (!*found)
        return status_ok();
    iterator->execution->counts.rows_read++;
    iterator->execution->counts.cells_read += row->cells->count;
    return status_ok();
}

/* The next version of the row in hand, or the first of the next row. */
static status read_version(struct iterator *iterator, struct sql_scan_row *row, bool *found)
{
    struct versions *versions = ((struct scanner *)iterator->state)->versions;
    for (*found = versions_next(versions, row); !*found; *found = versions_next(versions, row)) {
        bool is_there;
        TRY(read_row(iterator, row, &is_there));
        if (!is_there)
            return status_ok();
        TRY(versions_begin(versions, row));
    }
    return status_ok();
}

static status scan_row_next(struct iterator *iterator, const struct sql_value **row)
{
    struct scanner *scanner = iterator->state;
    struct sql_scan_row found;
    bool is_there;
    *row = NULL;
    TRY(count_row(iterator, STEPS_A_ROW));
    if (scanner->versions == NULL)
        TRY(read_row(iterator, &found, &is_there));
    else
        TRY(read_version(iterator, &found, &is_there));
    if (!is_there)
        return status_ok();
    iterator->execution->place = found.key;
    begin_row(iterator, NULL);
    TRY(sql_work(iterator->execution->session, found.cells->count));
    TRY(fill_key(iterator, found.key));
    TRY(fill_families(iterator, found.cells));
    *row = iterator->row;
    return status_ok();
}

const struct iterator_kind scan_kind = {.state_size = sizeof(struct scanner),
                                        .begin = scan_begin,
                                        .next = scan_row_next,
                                        .rest = scan_rest,
                                        .end = scan_end};
