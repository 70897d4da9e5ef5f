/* Where rows lie in their keyspace: see key_bounds.h. */
#include "tablet/key_bounds.h"

#include "base/check.h"
#include "row/row_key.h"

bool record_bounds(bytes from, bytes to, struct key_bounds *out)
{
    *out = (struct key_bounds){0};
    row_record_key(&out->lower, from);
    if (to.size == 0)
        buffer_append_byte(&out->upper, ROW_SPACE + 1);
    else
        row_record_key(&out->upper, to);
    return !out->lower.failed && !out->upper.failed;
}

bool overflow_bounds(bytes from, bytes to, struct key_bounds *out)
{
    *out = (struct key_bounds){0};
    overflow_range_start(&out->lower, from);
    overflow_range_end(&out->upper, to);
    return !out->lower.failed && !out->upper.failed;
}

void key_bounds_free(struct key_bounds *bounds)
{
    buffer_free(&bounds->lower);
    buffer_free(&bounds->upper);
}

static status check_bounds(struct keyspace *keyspace, const struct key_bounds *bounds)
{
    DCHECK(bytes_compare(buffer_bytes(&bounds->lower), buffer_bytes(&bounds->upper)) < 0);
    return keyspace_check_open(keyspace, buffer_bytes(&bounds->lower),
                               buffer_bytes(&bounds->upper));
}

/* Its own keys and no others: a damaged block may end, or begin, just beside them. */
static bool bounds_of_row(bytes row_key, struct key_bounds *record, struct key_bounds *overflow)
{
    *record = *overflow = (struct key_bounds){0};
    row_record_key(&record->lower, row_key);
    row_record_key(&record->upper, row_key);
    buffer_append_byte(&record->upper, 0);
    overflow_row_prefix(&overflow->lower, row_key);
    if (!overflow->lower.failed)
        key_after_prefix(&overflow->upper, buffer_bytes(&overflow->lower));
    return !record->lower.failed && !record->upper.failed && !overflow->lower.failed &&
           !overflow->upper.failed;
}

status row_check_open(struct keyspace *keyspace, bytes row_key)
{
    DCHECK(row_key.size > 0);
    if (!keyspace_has_damage(keyspace))
        return status_ok();
    struct key_bounds record, overflow;
    bool is_bounded = bounds_of_row(row_key, &record, &overflow);
    status s = is_bounded ? check_bounds(keyspace, &record) : status_out_of_memory();
    if (status_is_ok(s))
        s = check_bounds(keyspace, &overflow);
    key_bounds_free(&record);
    key_bounds_free(&overflow);
    return s;
}

static status compact_bounds(struct keyspace *keyspace, const struct key_bounds *bounds)
{
    return keyspace_compact(keyspace, buffer_bytes(&bounds->lower), buffer_bytes(&bounds->upper));
}

status rows_compact(struct keyspace *keyspace, bytes from, bytes to)
{
    DCHECK(to.size == 0 || bytes_compare(from, to) < 0);
    struct key_bounds records, overflow;
    bool is_bounded = record_bounds(from, to, &records);
    is_bounded = overflow_bounds(from, to, &overflow) && is_bounded;
    status s = is_bounded ? compact_bounds(keyspace, &records) : status_out_of_memory();
    if (status_is_ok(s))
        s = compact_bounds(keyspace, &overflow);
    key_bounds_free(&records);
    key_bounds_free(&overflow);
    return s;
}

static uint64_t bounds_size(struct keyspace *keyspace, const struct key_bounds *bounds)
{
    return keyspace_size(keyspace, buffer_bytes(&bounds->lower), buffer_bytes(&bounds->upper));
}

uint64_t rows_overflow_size(struct keyspace *keyspace, bytes from, bytes to)
{
    struct key_bounds overflow;
    uint64_t size = overflow_bounds(from, to, &overflow) ? bounds_size(keyspace, &overflow) : 0;
    key_bounds_free(&overflow);
    return size;
}

uint64_t rows_size(struct keyspace *keyspace, bytes from, bytes to)
{
    struct key_bounds records;
    uint64_t size = record_bounds(from, to, &records) ? bounds_size(keyspace, &records) : 0;
    key_bounds_free(&records);
    return size + rows_overflow_size(keyspace, from, to);
}

status record_cursor_create(struct keyspace *keyspace, bytes from, bytes to,
                            struct store_cursor **out)
{
    struct key_bounds bounds;
    *out = NULL;
    status s = record_bounds(from, to, &bounds) ? status_ok() : status_out_of_memory();
    const struct store_cursor_options options = {.lower = buffer_bytes(&bounds.lower),
                                                 .upper = buffer_bytes(&bounds.upper),
                                                 .read_tier = STORE_READ_ANY,
                                                 .bypasses_cache = true};
    if (status_is_ok(s))
        s = store_cursor_create(keyspace, &options, out);
    key_bounds_free(&bounds);
    return s;
}
