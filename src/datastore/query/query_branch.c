/* Branches: see query_branch.h. */
#include "datastore/query/query_branch.h"

#include "datastore/query/query_cursor.h"
#include "datastore/query/query_descent.h"
#include "row/row_key.h"

struct scan {
    const struct ds_scan_plan *plan;
    struct ds_rows_reader *reader; /* one of the two; NULL: nothing has been read yet */
    struct ds_descent *descent;    /* of a built-in index downwards: its keys are mirrored */
    struct buffer opened;          /* the first row key that was asked for */
    struct buffer key;             /* of the row where it is; empty: none */
    struct buffer types;
    bool is_at_end;
};

struct ds_branch {
    const struct ds_query *query;
    const struct ds_branch_plan *plan;
    struct ds_reading *reading;
    struct arena *arena;
    struct scan *scans;   /* as many as the plan's */
    struct buffer target; /* the suffix that is looked for */
    struct buffer scratch;
    struct buffer position;
    struct buffer types;
    int64_t rows;
    bool has_begun;
    bool is_at_end;
    bool has_failed;
};

/* --- scans --- */

static bytes suffix_of(const struct scan *scan)
{
    return bytes_from(buffer_bytes(&scan->key), scan->plan->prefix.size);
}

static bool is_open(const struct scan *scan)
{
    return scan->reader != NULL || scan->descent != NULL;
}

static status open_reader(struct ds_branch *branch, struct scan *scan, bytes from)
{
    const struct ds_scan_plan *plan = scan->plan;
    const struct ds_snapshot *snapshot = &branch->reading->snapshot;
    if (plan->flip == DS_DESCENDING)
        return ds_descent_open(snapshot, plan->prefix, from, plan->to, branch->arena,
                               &scan->descent);
    return ds_rows_open(snapshot, DS_FORWARDS, from, plan->to, branch->arena, &scan->reader);
}

static status next_row(struct scan *scan, struct ds_row_found *row, bool *found)
{
    return scan->descent != NULL ? ds_descent_next(scan->descent, row, found)
                                 : ds_rows_next(scan->reader, row, found);
}

static status send_reader(struct scan *scan, bytes key)
{
    return scan->descent != NULL ? ds_descent_seek(scan->descent, key)
                                 : ds_rows_seek(scan->reader, key);
}

static status take_row(struct ds_branch *branch, struct scan *scan)
{
    struct ds_row_found row;
    bool found;
    TRY(next_row(scan, &row, &found));
    scan->is_at_end = !found;
    if (!found)
        return status_ok();
    branch->rows++;
    buffer_clear(&scan->key);
    buffer_clear(&scan->types);
    buffer_append_bytes(&scan->key, row.key);
    buffer_append_bytes(&scan->types, row.value);
    if (scan->key.failed || scan->types.failed)
        return status_out_of_memory();
    if (!bytes_start_with(row.key, scan->plan->prefix))
        return ds_damaged("a row outside of its range");
    return status_ok();
}

static status open_scan(struct ds_branch *branch, struct scan *scan, bytes from)
{
    const struct ds_scan_plan *plan = scan->plan;
    if (bytes_compare(from, plan->from) < 0)
        from = plan->from;
    scan->is_at_end = plan->to.size > 0 && bytes_compare(from, plan->to) >= 0;
    if (scan->is_at_end)
        return status_ok();
    buffer_append_bytes(&scan->opened, from);
    if (scan->opened.failed)
        return status_out_of_memory();
    TRY(open_reader(branch, scan, from));
    return take_row(branch, scan);
}

/* On to the first row whose suffix is not before the target. The next row often is it: only if it
 * is not, the reader is sent there. */
static status seek_scan(struct ds_branch *branch, struct scan *scan)
{
    bytes target = buffer_bytes(&branch->target);
    if (scan->is_at_end || (scan->key.size > 0 && bytes_compare(suffix_of(scan), target) >= 0))
        return status_ok();
    if (is_open(scan)) {
        TRY(take_row(branch, scan));
        if (scan->is_at_end || bytes_compare(suffix_of(scan), target) >= 0)
            return status_ok();
    }
    struct buffer *key = &branch->scratch;
    buffer_clear(key);
    buffer_append_bytes(key, scan->plan->prefix);
    buffer_append_bytes(key, target);
    if (key->failed)
        return status_out_of_memory();
    if (!is_open(scan))
        return open_scan(branch, scan, buffer_bytes(key));
    TRY(send_reader(scan, buffer_bytes(key)));
    return take_row(branch, scan);
}

/* Notes the range that was looked at: up to the row where the scan is, or all of it. */
static status note_scan(struct ds_branch *branch, struct scan *scan)
{
    bytes to = scan->plan->to;
    bytes from = buffer_bytes(&scan->opened);
    if (!is_open(scan))
        return status_ok();
    if (!scan->is_at_end) {
        buffer_append_byte(&scan->key, 0);
        if (scan->key.failed)
            return status_out_of_memory();
        to = buffer_bytes(&scan->key);
    }
    if (scan->descent != NULL)
        return ds_descent_note(branch->reading, scan->plan->prefix, from, to);
    return ds_reading_note_range(branch->reading, from, to);
}

static void free_scan(struct scan *scan)
{
    ds_rows_close(scan->reader);
    ds_descent_close(scan->descent);
    buffer_free(&scan->opened);
    buffer_free(&scan->key);
    buffer_free(&scan->types);
}

/* --- where to go on: each sets the target --- */

enum where { HERE, FURTHER, NOWHERE };

/* The suffixes that begin with the first `size` bytes of this one, and `value`: to the first of
 * them, or behind the last. A path is the beginning of others, which are not passed. */
static enum where go_to(struct ds_branch *branch, bytes suffix, size_t size, bytes value)
{
    buffer_clear(&branch->target);
    buffer_append(&branch->target, suffix.data, size);
    buffer_append_bytes(&branch->target, value);
    return FURTHER;
}

static enum where go_behind(struct ds_branch *branch, bytes suffix, size_t size, bytes value,
                            bool is_path)
{
    struct buffer prefix = {0};
    buffer_append(&prefix, suffix.data, size);
    buffer_append_bytes(&prefix, value);
    buffer_clear(&branch->target);
    bool is_there = true;
    if (is_path) {
        buffer_append_bytes(&branch->target, buffer_bytes(&prefix));
        buffer_append_byte(&branch->target, 0);
    } else {
        is_there = key_after_prefix(&branch->target, buffer_bytes(&prefix));
    }
    branch->target.failed = branch->target.failed || prefix.failed;
    buffer_free(&prefix);
    return is_there ? FURTHER : NOWHERE;
}

static bool is_excluded(const struct ds_part *part, bytes value)
{
    for (size_t i = 0; i < part->excluded_count; i++)
        if (bytes_equal(part->excluded[i], value))
            return true;
    return false;
}

/* `value` stands at `at` of the suffix. */
static enum where check_part(struct ds_branch *branch, const struct ds_part *part, bytes suffix,
                             size_t at, bytes value, bool is_path)
{
    int start = part->start.size == 0 ? 1 : bytes_compare(value, part->start);
    int end = part->end.size == 0 ? -1 : bytes_compare(value, part->end);
    if (start < 0 && !part->is_start_open)
        return go_to(branch, suffix, at, part->start);
    if (start < 0 || (start == 0 && part->is_start_open))
        return go_behind(branch, suffix, at, part->start, is_path);
    if (end > 0 || (end == 0 && part->is_end_open))
        return at == 0 ? NOWHERE : go_behind(branch, suffix, at, bytes_make(NULL, 0), false);
    return is_excluded(part, value) ? go_behind(branch, suffix, at, value, is_path) : HERE;
}

/* Whether the suffix is within all ranges; makes its position on the way. */
static status check_suffix(struct ds_branch *branch, bytes suffix, enum where *out)
{
    const struct ds_query *query = branch->query;
    const struct ds_part *parts = branch->plan->parts;
    size_t at = 0;
    *out = HERE;
    buffer_clear(&branch->position);
    for (size_t i = 0; i < query->order_count && *out == HERE; i++) {
        bytes value = parts[i].constant;
        if (value.size == 0) {
            bytes rest = bytes_from(suffix, at);
            value = bytes_make(rest.data, ds_value_size(rest, query->orders[i].flip));
            if (value.size == 0)
                return ds_damaged("a row without its values");
            *out = check_part(branch, &parts[i], suffix, at, value, false);
            at += value.size;
        }
        buffer_append_bytes(&branch->position, value);
    }
    bytes path = bytes_from(suffix, at);
    if (*out == HERE)
        *out = check_part(branch, &parts[query->order_count], suffix, at, path, true);
    buffer_append_bytes(&branch->position, path);
    return branch->position.failed || branch->target.failed ? status_out_of_memory() : status_ok();
}

/* --- from the positions of the query to those of the branch --- */

/* To what comes after the position at which the query is to start. */
static enum where go_to_start(struct ds_branch *branch)
{
    const struct ds_query *query = branch->query;
    bytes rest = query->start, none = {0};
    struct buffer *target = &branch->target;
    for (size_t i = 0; i < query->order_count; i++) {
        bytes constant = branch->plan->parts[i].constant;
        bytes value = bytes_make(rest.data, ds_value_size(rest, query->orders[i].flip));
        rest = bytes_from(rest, value.size);
        int order = constant.size == 0 ? 0 : bytes_compare(value, constant);
        if (order < 0)
            return FURTHER;
        if (order > 0 && target->size == 0)
            return NOWHERE;
        if (order > 0) {
            struct buffer passed = *target;
            *target = (struct buffer){0};
            enum where where = go_behind(branch, buffer_bytes(&passed), passed.size, none, false);
            target->failed = target->failed || passed.failed;
            buffer_free(&passed);
            return where;
        }
        if (constant.size == 0)
            buffer_append_bytes(target, value);
    }
    buffer_append_bytes(target, rest);
    buffer_append_byte(target, 0);
    return FURTHER;
}

static enum where begin(struct ds_branch *branch)
{
    const struct ds_query *query = branch->query;
    branch->has_begun = true;
    if (query->start.size > 0)
        return go_to_start(branch);
    size_t i = 0;
    while (i < query->order_count && branch->plan->parts[i].constant.size > 0)
        i++;
    return go_to(branch, bytes_make(NULL, 0), 0, branch->plan->parts[i].start);
}

/* --- the merge --- */

/* On until all scans have the same suffix, the target or one behind it. */
static status merge_scans(struct ds_branch *branch)
{
    size_t count = branch->plan->scan_count;
    size_t agreed = 0;
    for (size_t i = 0; agreed < count; i = (i + 1) % count) {
        struct scan *scan = &branch->scans[i];
        TRY(seek_scan(branch, scan));
        branch->is_at_end = scan->is_at_end;
        if (branch->is_at_end)
            return status_ok();
        bytes suffix = suffix_of(scan);
        agreed = bytes_equal(suffix, buffer_bytes(&branch->target)) ? agreed + 1 : 1;
        buffer_clear(&branch->target);
        buffer_append_bytes(&branch->target, suffix);
        if (branch->target.failed)
            return status_out_of_memory();
    }
    return status_ok();
}

static status set_types(struct ds_branch *branch)
{
    const struct scan *scan = &branch->scans[0];
    size_t at = scan->plan->type_offset;
    buffer_clear(&branch->types);
    for (size_t i = 0; i < branch->query->order_count; i++) {
        bool varies = branch->plan->parts[i].constant.size == 0;
        uint8_t type = varies && at < scan->types.size ? scan->types.data[at] : 0;
        at += varies;
        buffer_append_byte(&branch->types, type);
    }
    return branch->types.failed ? status_out_of_memory() : status_ok();
}

static status find_next(struct ds_branch *branch)
{
    enum where where = FURTHER;
    if (branch->has_begun)
        buffer_append_byte(&branch->target, 0);
    else
        where = begin(branch);
    while (where == FURTHER) {
        if (branch->target.failed)
            return status_out_of_memory();
        TRY(merge_scans(branch));
        if (branch->is_at_end)
            return status_ok();
        TRY(check_suffix(branch, suffix_of(&branch->scans[0]), &where));
    }
    branch->is_at_end = where == NOWHERE;
    return set_types(branch);
}

status ds_branch_next(struct ds_branch *branch)
{
    if (branch->is_at_end)
        return status_ok();
    status s = find_next(branch);
    branch->has_failed = !status_is_ok(s);
    return s;
}

/* --- the rest --- */

status ds_branch_open(const struct ds_query *query, const struct ds_branch_plan *plan,
                      struct ds_reading *reading, struct arena *arena, struct ds_branch **out)
{
    struct ds_branch *branch = arena_zalloc(arena, sizeof *branch);
    struct scan *scans = arena_zalloc(arena, plan->scan_count * sizeof *scans);
    if (branch == NULL || scans == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < plan->scan_count; i++)
        scans[i].plan = &plan->scans[i];
    branch->query = query;
    branch->plan = plan;
    branch->reading = reading;
    branch->arena = arena;
    branch->scans = scans;
    *out = branch;
    return status_ok();
}

status ds_branch_close(struct ds_branch *branch)
{
    status s = status_ok();
    if (branch == NULL)
        return s;
    for (size_t i = 0; i < branch->plan->scan_count; i++) {
        if (status_is_ok(s) && !branch->has_failed)
            s = note_scan(branch, &branch->scans[i]);
        free_scan(&branch->scans[i]);
    }
    buffer_free(&branch->target);
    buffer_free(&branch->scratch);
    buffer_free(&branch->position);
    buffer_free(&branch->types);
    return s;
}

bool ds_branch_is_at_end(const struct ds_branch *branch)
{
    return branch->is_at_end;
}

bytes ds_branch_position(const struct ds_branch *branch)
{
    return buffer_bytes(&branch->position);
}

bytes ds_branch_types(const struct ds_branch *branch)
{
    return buffer_bytes(&branch->types);
}

int64_t ds_branch_rows(const struct ds_branch *branch)
{
    return branch->rows;
}
