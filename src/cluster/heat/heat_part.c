/* See heat_part.h. */
#include "cluster/heat/heat_part.h"

#include "base/check.h"
#include "row/row_key.h"

/* One of the ranges of even size has as many as it has rows, or bytes; one, if these are not known.
 */
static double weight_of(const struct heat_ranges *data, size_t range, bool by_rows)
{
    DCHECK(range < data->count && (!by_rows || data->rows != NULL));
    if (by_rows)
        return data->rows[range];
    return data->sizes == NULL ? 1 : (double)data->sizes[range];
}

static double weight_between(const struct heat_ranges *data, size_t from, size_t to, bool by_rows)
{
    DCHECK(from <= to && to <= data->count);
    double sum = 0;
    for (size_t i = from; i < to; i++)
        sum += weight_of(data, i, by_rows);
    return sum;
}

/* A range that has only the first rows of one of them, or none but rows within it, has half. */
static double weight_in(const struct heat_ranges *data, bytes start, bytes end, bool by_rows)
{
    size_t from = heat_ranges_find(data, start);
    size_t to = end.size == 0 ? data->count : heat_ranges_find(data, end);
    double sum = weight_between(data, from, to, by_rows);
    bool has_half = to < data->count && bytes_compare(heat_range_start(data, to), end) < 0;
    return has_half ? sum + weight_of(data, to, by_rows) / 2 : sum;
}

static double share_of(const struct heat_ranges *data, bytes start, bytes end, size_t from,
                       size_t to, bool by_rows)
{
    DCHECK(from <= to && to <= data->count);
    double whole = weight_between(data, from, to, by_rows);
    return whole > 0 ? weight_in(data, start, end, by_rows) / whole : 0;
}

double heat_part_of_data(const struct heat_ranges *data, bytes start, bytes end)
{
    return share_of(data, start, end, 0, data->count, false);
}

/* The part in the ranges from `from` up to `to`. */
static double part_of(const struct heat_ranges *data, bytes start, bytes end, size_t from,
                      size_t to)
{
    double by_bytes = share_of(data, start, end, from, to, false);
    double by_rows = data->rows == NULL ? 0 : share_of(data, start, end, from, to, true);
    return by_rows > by_bytes ? by_rows : by_bytes;
}

/* The first that begins with the key or behind it. */
static size_t first_from(const struct heat_ranges *data, bytes key)
{
    size_t range = heat_ranges_find(data, key);
    return bytes_equal(heat_range_start(data, range), key) ? range : range + 1;
}

/* What of [start, end) lies in the section, which ends before `after`; all of it if no range begins
 * there. */
static double part_of_section(const struct heat_ranges *data, bytes prefix, bytes after,
                              bytes start, bytes end)
{
    size_t from = first_from(data, prefix);
    size_t to = after.size == 0 ? data->count : first_from(data, after);
    if (from >= to)
        return 1;
    bytes first = heat_range_start(data, from), last = heat_range_end(data, to - 1);
    return part_of(data, bytes_compare(start, prefix) >= 0 ? start : first,
                   key_ends_before(end, last) ? end : last, from, to);
}

/* Where the first range begins that does so at `after` or behind it; empty if none does. */
static bytes next_border(const struct heat_ranges *data, bytes after)
{
    size_t range = first_from(data, after);
    return range < data->count ? heat_range_start(data, range) : bytes_make(NULL, 0);
}

/* Of the section that has `*at`, which then is the next border behind it. */
static status measure_section(const struct heat_ranges *data, bytes prefix, bytes start, bytes end,
                              bytes *at, double *out)
{
    struct buffer after = {0};
    bool has_end = key_after_prefix(&after, prefix);
    if (after.failed) {
        buffer_free(&after);
        return status_out_of_memory();
    }
    *out = part_of_section(data, prefix, buffer_bytes(&after), start, end);
    *at = has_end ? next_border(data, buffer_bytes(&after)) : bytes_make(NULL, 0);
    buffer_free(&after);
    return status_ok();
}

/* Whose rows there are before the first border is not known. */
static status measure_sections(const struct heat_ranges *data, heat_section *section_of,
                               bytes start, bytes end, double *most)
{
    bytes at = start.size > 0 ? start : heat_range_end(data, 0);
    while (at.size > 0 && (end.size == 0 || bytes_compare(at, end) < 0)) {
        double part;
        TRY(measure_section(data, section_of(at), start, end, &at, &part));
        *most = part > *most ? part : *most;
    }
    return status_ok();
}

status heat_part_of_sections(const struct heat_ranges *data, heat_section *section_of, bytes start,
                             bytes end, double *out)
{
    *out = section_of == NULL ? part_of(data, start, end, 0, data->count) : 0;
    if (section_of != NULL)
        TRY(measure_sections(data, section_of, start, end, out));
    if (*out == 0)
        *out = 1;
    return status_ok();
}
