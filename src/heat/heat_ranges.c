/* See heat_ranges.h. A key is looked for by eight of its bytes, as a number, in an array that fits
 * into a processor's first cache; whole keys are compared among borders alone that agree in them.
 */
#include "heat/heat_ranges.h"

#include "base/check.h"

#include <stdlib.h>

enum { HEAD_BYTES = 8 };

/* The first eight bytes; what is missing counts as zeroes. */
static uint64_t head_of(bytes key)
{
    uint64_t head = 0;
    size_t size = key.size < HEAD_BYTES ? key.size : HEAD_BYTES;
    if (size == HEAD_BYTES) {
        memcpy(&head, key.data, HEAD_BYTES);
        return __builtin_bswap64(head);
    }
    for (size_t i = 0; i < HEAD_BYTES; i++)
        head = head << 8 | (i < size ? key.data[i] : 0);
    return head;
}

static size_t shared_size(const bytes *borders, size_t count)
{
    DCHECK(count < 2 || bytes_compare(borders[0], borders[count - 1]) < 0);
    if (count == 0)
        return 0;
    bytes first = borders[0], last = borders[count - 1]; /* all others lie between them */
    size_t size = 0;
    while (size < first.size && size < last.size && first.data[size] == last.data[size])
        size++;
    return size;
}

static size_t size_of_all(const bytes *borders, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += borders[i].size;
    return size;
}

/* --- where things lie behind the ranges: numbers first, then the borders' bytes --- */

static size_t size_of_weights(const struct heat_weights *weights, size_t border_count)
{
    size_t sizes = weights->sizes == NULL ? 0 : sizeof *weights->sizes;
    size_t rows = weights->rows == NULL ? 0 : sizeof *weights->rows;
    return (border_count + 1) * (sizes + rows);
}

static void *copy_numbers(uint8_t **at, const void *numbers, size_t size)
{
    if (numbers == NULL)
        return NULL;
    void *copy = *at;
    memcpy(copy, numbers, size);
    *at += size;
    return copy;
}

static void copy_borders(struct heat_ranges *ranges, const bytes *borders, uint8_t *at)
{
    size_t border_count = ranges->count - 1;
    size_t shared = shared_size(borders, border_count);
    for (size_t i = 0; i < border_count; i++) {
        CHECK(borders[i].size > 0 && (i == 0 || bytes_compare(borders[i - 1], borders[i]) < 0));
        memcpy(at, borders[i].data, borders[i].size);
        ranges->borders[i] = bytes_make(at, borders[i].size);
        ranges->heads[i] = head_of(bytes_from(ranges->borders[i], shared));
        at += borders[i].size;
    }
    ranges->shared =
        border_count == 0 ? bytes_make(NULL, 0) : bytes_make(ranges->borders[0].data, shared);
}

status heat_ranges_create(const bytes *borders, size_t border_count,
                          const struct heat_weights *weights, struct heat_ranges **out)
{
    static const struct heat_weights none = {.sizes = NULL};
    const struct heat_weights *known = weights == NULL ? &none : weights;
    size_t arrays = border_count * (sizeof(bytes) + sizeof(uint64_t));
    struct heat_ranges *ranges = *out =
        malloc(sizeof *ranges + arrays + size_of_weights(known, border_count) +
               size_of_all(borders, border_count));
    if (ranges == NULL)
        return status_out_of_memory();
    ranges->count = border_count + 1;
    ranges->heads = (uint64_t *)(ranges + 1);
    ranges->borders = (bytes *)(ranges->heads + border_count);
    uint8_t *at = (uint8_t *)(ranges->borders + border_count);
    ranges->sizes = copy_numbers(&at, known->sizes, ranges->count * sizeof *known->sizes);
    ranges->rows = copy_numbers(&at, known->rows, ranges->count * sizeof *known->rows);
    copy_borders(ranges, borders, at);
    return status_ok();
}

status heat_ranges_copy(const struct heat_ranges *ranges, struct heat_ranges **out)
{
    const struct heat_weights weights = {.sizes = ranges->sizes, .rows = ranges->rows};
    return heat_ranges_create(ranges->borders, ranges->count - 1, &weights, out);
}

void heat_ranges_destroy(struct heat_ranges *ranges)
{
    free(ranges);
}

/* How many of the heads are less. */
static size_t heads_below(const uint64_t *heads, size_t count, uint64_t head)
{
    size_t low = 0;
    while (count > 1) {
        size_t half = count / 2;
        low += heads[low + half - 1] < head ? half : 0;
        count -= half;
    }
    return low + (count == 1 && heads[low] < head);
}

/* The first border after the key, from `low` on. */
static size_t first_after(const struct heat_ranges *ranges, size_t low, bytes key)
{
    size_t high = ranges->count - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (bytes_compare(ranges->borders[middle], key) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t heat_ranges_find(const struct heat_ranges *ranges, bytes key)
{
    DCHECK(ranges->count > 0);
    size_t borders = ranges->count - 1;
    bytes shared = ranges->shared;
    if (!bytes_start_with(key, shared))
        return bytes_compare(key, shared) < 0 ? 0 : borders;
    uint64_t head = head_of(bytes_from(key, shared.size));
    size_t at = heads_below(ranges->heads, borders, head);
    return at < borders && ranges->heads[at] == head ? first_after(ranges, at, key) : at;
}

bytes heat_range_start(const struct heat_ranges *ranges, size_t range)
{
    DCHECK(range < ranges->count);
    return range == 0 ? bytes_make(NULL, 0) : ranges->borders[range - 1];
}

bytes heat_range_end(const struct heat_ranges *ranges, size_t range)
{
    DCHECK(range < ranges->count);
    return range == ranges->count - 1 ? bytes_make(NULL, 0) : ranges->borders[range];
}
