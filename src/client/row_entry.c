/* See row_entry.h.
 *
 *     Entry { row_key = 1, mutations = 2 }
 *     Mutation { set_cell = 1 or delete_from_row = 4 }
 *     SetCell { family_name = 1, column_qualifier = 2, timestamp_micros = 3, value = 4 }
 *
 * Lengths stand before what they are of, so each cell is measured twice: once for the whole, once
 * when it is written. */
#include "client/row_entry.h"

#include "base/check.h"
#include "base/varint.h"

/* A field's number and wire type; all are below 16, so a tag is one byte. */
enum { VARINT = 0, BYTES = 2 };
#define TAG(number, type) ((uint8_t)((number) << 3 | (type)))

enum { TAG_SIZE = 1 };

static const uint8_t delete_from_row[] = {TAG(2, BYTES), 2, TAG(4, BYTES), 0};

/* --- measuring --- */

static size_t bytes_field(size_t size)
{
    return TAG_SIZE + varint_size(size) + size;
}

static size_t set_cell_size(const struct move_cell *cell)
{
    return bytes_field(strlen(cell->family)) + bytes_field(cell->qualifier.size) + TAG_SIZE +
           varint_size((uint64_t)cell->timestamp_us) + bytes_field(cell->value.size);
}

static size_t entry_size(const struct move_change *change)
{
    size_t size = bytes_field(change->row_key.size);
    if (change->replaces)
        size += sizeof delete_from_row;
    for (size_t i = 0; i < change->count; i++)
        size += bytes_field(bytes_field(set_cell_size(&change->cells[i])));
    return size;
}

/* --- writing --- */

static uint8_t *write_length(uint8_t *to, uint8_t tag, size_t size)
{
    *to++ = tag;
    return varint_write(to, size);
}

static uint8_t *write_bytes(uint8_t *to, uint8_t tag, bytes b)
{
    to = write_length(to, tag, b.size);
    if (b.size > 0)
        memcpy(to, b.data, b.size);
    return to + b.size;
}

static uint8_t *write_cell(uint8_t *to, const struct move_cell *cell)
{
    size_t size = set_cell_size(cell);
    to = write_length(to, TAG(2, BYTES), bytes_field(size)); /* the mutation */
    to = write_length(to, TAG(1, BYTES), size);
    to = write_bytes(to, TAG(1, BYTES), bytes_of(cell->family));
    to = write_bytes(to, TAG(2, BYTES), cell->qualifier);
    *to++ = TAG(3, VARINT);
    to = varint_write(to, (uint64_t)cell->timestamp_us);
    return write_bytes(to, TAG(4, BYTES), cell->value);
}

status row_entry_encode(const struct move_change *change, struct arena *arena, bytes *out)
{
    size_t size = entry_size(change);
    uint8_t *start = arena_alloc(arena, size);
    if (start == NULL)
        return status_out_of_memory();
    uint8_t *to = write_bytes(start, TAG(1, BYTES), change->row_key);
    if (change->replaces) {
        memcpy(to, delete_from_row, sizeof delete_from_row);
        to += sizeof delete_from_row;
    }
    for (size_t i = 0; i < change->count; i++)
        to = write_cell(to, &change->cells[i]);
    CHECK((size_t)(to - start) == size);
    *out = bytes_make(start, size);
    return status_ok();
}
