/* What a drop has left: see older_rows.h. */
#include "tablet/older_rows.h"

#include "row/fold.h"
#include "row/fragment.h"
#include "tablet/key_bounds.h"

static status bounds_of(const struct row_range *range, struct key_bounds *records,
                        struct key_bounds *overflow)
{
    bool is_bounded = record_bounds(range->from, range->to, records);
    is_bounded = overflow_bounds(range->from, range->to, overflow) && is_bounded;
    return is_bounded ? status_ok() : status_out_of_memory();
}

/* Marks and tombstones are of no account: without cells that are older they say nothing. */
static status find_in(bytes fragment, uint64_t version, bool *found)
{
    struct fragment_reader reader;
    struct entry entry;
    bool is_good = fragment_reader_start(&reader, fragment);
    while (is_good && !*found && fragment_reader_next(&reader, &entry))
        *found = entry_is_cell(entry.kind) && entry.version < version;
    return is_good && !reader.is_bad ? status_ok()
                                     : status_make(STATUS_DATA_LOSS, "A row does not parse");
}

static status check_goes_on(const struct row_range *range)
{
    return range->gives_up != NULL && range->gives_up(range->context)
               ? status_make(STATUS_CANCELLED, "no more rows are looked at")
               : status_ok();
}

static status walk(const struct row_range *range, struct store_cursor *cursor, uint64_t version,
                   bool *found)
{
    store_cursor_first(cursor);
    while (store_cursor_valid(cursor) && !*found) {
        TRY(check_goes_on(range));
        TRY(find_in(store_cursor_value(cursor), version, found));
        store_cursor_next(cursor);
    }
    return store_cursor_status(cursor);
}

/* By rules that collect nothing, know no drop, and leave older adds beside newer ones. */
static status find_between(const struct row_range *range, const struct key_bounds *bounds,
                           uint64_t version, bool *found)
{
    const struct row_rules rules = {.tombstones_from = version};
    struct store_cursor *cursor;
    struct store_cursor_options options = {.lower = buffer_bytes(&bounds->lower),
                                           .upper = buffer_bytes(&bounds->upper),
                                           .read_tier = STORE_READ_ANY,
                                           .bypasses_cache = true,
                                           .rules = &rules};
    TRY(store_cursor_create(range->keyspace, &options, &cursor));
    status s = walk(range, cursor, version, found);
    store_cursor_destroy(cursor);
    return s;
}

status rows_find_older(const struct row_range *range, uint64_t version, bool *found)
{
    struct key_bounds records, overflow;
    *found = false;
    status s = bounds_of(range, &records, &overflow);
    if (status_is_ok(s))
        s = find_between(range, &records, version, found);
    if (status_is_ok(s) && !*found)
        s = find_between(range, &overflow, version, found);
    key_bounds_free(&records);
    key_bounds_free(&overflow);
    return s;
}
