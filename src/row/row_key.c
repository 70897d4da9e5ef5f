/* Keys inside a keyspace: see row_key.h. */
#include "row/row_key.h"

#include "base/check.h"
#include "row/key_text.h"

#include <endian.h>

enum { FAMILY_SIZE = 4, TIMESTAMP_SIZE = 8 };

void row_record_key(struct buffer *out, bytes row_key)
{
    DCHECK(out->size == 0);
    buffer_append_byte(out, ROW_SPACE);
    buffer_append_bytes(out, row_key);
}

void overflow_row_prefix(struct buffer *out, bytes row_key)
{
    buffer_append_byte(out, OVERFLOW_SPACE);
    key_text_append(out, row_key);
}

void overflow_family_prefix(struct buffer *out, bytes row_key, uint32_t family)
{
    uint32_t number = htobe32(family);
    overflow_row_prefix(out, row_key);
    buffer_append(out, &number, sizeof number);
}

void overflow_column_prefix(struct buffer *out, bytes row_key, uint32_t family, bytes qualifier)
{
    overflow_family_prefix(out, row_key, family);
    key_text_append(out, qualifier);
}

void overflow_cell_key(struct buffer *out, bytes row_key, uint32_t family, bytes qualifier,
                       int64_t timestamp_us)
{
    DCHECK(out->size == 0);
    uint64_t inverted = htobe64((uint64_t)timestamp_us ^ INT64_MAX);
    overflow_column_prefix(out, row_key, family, qualifier);
    buffer_append(out, &inverted, sizeof inverted);
}

void overflow_range_start(struct buffer *out, bytes from)
{
    buffer_append_byte(out, OVERFLOW_SPACE);
    key_text_append_open(out, from);
}

void overflow_range_end(struct buffer *out, bytes to)
{
    DCHECK(out->size == 0);
    if (to.size == 0)
        buffer_append_byte(out, OVERFLOW_SPACE + 1);
    else
        overflow_range_start(out, to);
}

/* FF has no next byte. */
static bytes without_last_ffs(bytes prefix)
{
    while (prefix.size > 0 && prefix.data[prefix.size - 1] == 0xff)
        prefix.size--;
    return prefix;
}

bool key_after_prefix(struct buffer *out, bytes prefix)
{
    prefix = without_last_ffs(prefix);
    if (prefix.size == 0)
        return false;
    buffer_append(out, prefix.data, prefix.size - 1);
    buffer_append_byte(out, (uint8_t)(prefix.data[prefix.size - 1] + 1));
    DCHECK(bytes_compare(prefix, buffer_bytes(out)) < 0 || out->failed);
    return true;
}

bool key_prefix_end(struct arena *arena, bytes prefix, bytes *out)
{
    prefix = without_last_ffs(prefix);
    uint8_t *copy = arena_alloc(arena, prefix.size + 1);
    if (copy == NULL)
        return false;
    if (prefix.size > 0) {
        memcpy(copy, prefix.data, prefix.size);
        copy[prefix.size - 1]++;
    }
    *out = bytes_make(copy, prefix.size);
    return true;
}

bool key_successor(struct arena *arena, bytes key, bytes *out)
{
    const char *copy = arena_string(arena, key);
    *out = bytes_make(copy, key.size + 1);
    return copy != NULL;
}

struct overflow_parts {
    bytes row_key; /* escaped, with end mark */
    bytes qualifier;
    uint32_t family;
    int64_t timestamp_us;
};

static bool split(bytes key, struct overflow_parts *out)
{
    if (key.size == 0 || key.data[0] != OVERFLOW_SPACE)
        return false;
    key = bytes_from(key, 1);
    out->row_key = bytes_make(key.data, key_text_size(key, 0));
    key = bytes_from(key, out->row_key.size);
    if (out->row_key.size == 0 || key.size < FAMILY_SIZE)
        return false;
    memcpy(&out->family, key.data, FAMILY_SIZE);
    out->family = be32toh(out->family);
    key = bytes_from(key, FAMILY_SIZE);
    out->qualifier = bytes_make(key.data, key_text_size(key, 0));
    key = bytes_from(key, out->qualifier.size);
    if (out->qualifier.size == 0 || key.size != TIMESTAMP_SIZE)
        return false;
    uint64_t inverted;
    memcpy(&inverted, key.data, TIMESTAMP_SIZE);
    out->timestamp_us = (int64_t)(be64toh(inverted) ^ INT64_MAX);
    return true;
}

size_t overflow_owner_size(bytes key)
{
    if (key.size == 0 || key.data[0] != OVERFLOW_SPACE)
        return 0;
    size_t size = key_text_size(bytes_from(key, 1), 0);
    return size == 0 ? 0 : 1 + size;
}

bool overflow_owner_row(bytes prefix, struct buffer *out)
{
    if (overflow_owner_size(prefix) != prefix.size || prefix.size == 0)
        return false;
    bytes text = bytes_from(prefix, 1);
    uint8_t *to = buffer_reserve(out, text.size);
    if (to == NULL)
        return false;
    out->size += key_text_read(text, 0, to).size;
    return true;
}

bool overflow_key_tail(bytes key, uint32_t *family, int64_t *timestamp_us)
{
    struct overflow_parts parts;
    if (!split(key, &parts))
        return false;
    *family = parts.family;
    *timestamp_us = parts.timestamp_us;
    return true;
}

bool overflow_key_parse(bytes key, struct buffer *scratch, struct overflow_key *out)
{
    struct overflow_parts parts;
    buffer_clear(scratch);
    if (!split(key, &parts))
        return false;
    uint8_t *to = buffer_reserve(scratch, parts.row_key.size + parts.qualifier.size);
    if (to == NULL)
        return false;
    *out = (struct overflow_key){.row_key = key_text_read(parts.row_key, 0, to),
                                 .family = parts.family,
                                 .qualifier =
                                     key_text_read(parts.qualifier, 0, to + parts.row_key.size),
                                 .timestamp_us = parts.timestamp_us};
    return true;
}
