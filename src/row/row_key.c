/* Keys inside a keyspace: see row_key.h. */
#include "row/row_key.h"

#include <endian.h>

enum { ESCAPE = 0x00, ESCAPED_ZERO = 0xff, END_OF_PART = 0x01 };
enum { FAMILY_SIZE = 4, TIMESTAMP_SIZE = 8 };

static void append_escaped(struct buffer *out, bytes part)
{
    while (part.size > 0) {
        const uint8_t *zero = memchr(part.data, ESCAPE, part.size);
        size_t clean = zero == NULL ? part.size : (size_t)(zero - part.data) + 1;
        buffer_append(out, part.data, clean);
        if (zero != NULL)
            buffer_append_byte(out, ESCAPED_ZERO);
        part = bytes_from(part, clean);
    }
}

static void append_part(struct buffer *out, bytes part)
{
    append_escaped(out, part);
    buffer_append(out, (const uint8_t[]){ESCAPE, END_OF_PART}, 2);
}

void row_record_key(struct buffer *out, bytes row_key)
{
    buffer_append_byte(out, ROW_SPACE);
    buffer_append_bytes(out, row_key);
}

void spill_row_prefix(struct buffer *out, bytes row_key)
{
    buffer_append_byte(out, SPILL_SPACE);
    append_part(out, row_key);
}

void spill_family_prefix(struct buffer *out, bytes row_key, uint32_t family)
{
    uint32_t number = htobe32(family);
    spill_row_prefix(out, row_key);
    buffer_append(out, &number, sizeof number);
}

void spill_column_prefix(struct buffer *out, bytes row_key, uint32_t family, bytes qualifier)
{
    spill_family_prefix(out, row_key, family);
    append_part(out, qualifier);
}

void spill_cell_key(struct buffer *out, bytes row_key, uint32_t family, bytes qualifier,
                    int64_t timestamp_us)
{
    uint64_t inverted = htobe64((uint64_t)timestamp_us ^ INT64_MAX);
    spill_column_prefix(out, row_key, family, qualifier);
    buffer_append(out, &inverted, sizeof inverted);
}

void spill_range_start(struct buffer *out, bytes from)
{
    buffer_append_byte(out, SPILL_SPACE);
    append_escaped(out, from);
}

void spill_range_end(struct buffer *out, bytes to)
{
    if (to.size == 0)
        buffer_append_byte(out, SPILL_SPACE + 1);
    else
        spill_range_start(out, to);
}

bool key_after_prefix(struct buffer *out, bytes prefix)
{
    while (prefix.size > 0 && prefix.data[prefix.size - 1] == 0xff)
        prefix.size--;
    if (prefix.size == 0)
        return false;
    buffer_append(out, prefix.data, prefix.size - 1);
    buffer_append_byte(out, (uint8_t)(prefix.data[prefix.size - 1] + 1));
    return true;
}

bool key_successor(struct arena *arena, bytes key, bytes *out)
{
    const char *copy = arena_string(arena, key);
    *out = bytes_make(copy, key.size + 1);
    return copy != NULL;
}

/* Where the escaped part at the start of `key` ends, its end mark included; 0 if it does not. */
static size_t part_size(bytes key)
{
    for (size_t at = 0; at < key.size;) {
        const uint8_t *zero = memchr(key.data + at, ESCAPE, key.size - at);
        if (zero == NULL)
            return 0;
        at = (size_t)(zero - key.data) + 2;
        if (at > key.size || (zero[1] != ESCAPED_ZERO && zero[1] != END_OF_PART))
            return 0;
        if (zero[1] == END_OF_PART)
            return at;
    }
    return 0;
}

struct spill_parts {
    bytes row_key; /* escaped, with end mark */
    bytes qualifier;
    uint32_t family;
    int64_t timestamp_us;
};

static bool split(bytes key, struct spill_parts *out)
{
    if (key.size == 0 || key.data[0] != SPILL_SPACE)
        return false;
    key = bytes_from(key, 1);
    out->row_key = bytes_make(key.data, part_size(key));
    key = bytes_from(key, out->row_key.size);
    if (out->row_key.size == 0 || key.size < FAMILY_SIZE)
        return false;
    memcpy(&out->family, key.data, FAMILY_SIZE);
    out->family = be32toh(out->family);
    key = bytes_from(key, FAMILY_SIZE);
    out->qualifier = bytes_make(key.data, part_size(key));
    key = bytes_from(key, out->qualifier.size);
    if (out->qualifier.size == 0 || key.size != TIMESTAMP_SIZE)
        return false;
    uint64_t inverted;
    memcpy(&inverted, key.data, TIMESTAMP_SIZE);
    out->timestamp_us = (int64_t)(be64toh(inverted) ^ INT64_MAX);
    return true;
}

bool spill_key_tail(bytes key, uint32_t *family, int64_t *timestamp_us)
{
    struct spill_parts parts;
    if (!split(key, &parts))
        return false;
    *family = parts.family;
    *timestamp_us = parts.timestamp_us;
    return true;
}

/* Never writes more than the part has bytes. */
static bytes unescape(bytes part, uint8_t *to)
{
    uint8_t *start = to;
    for (size_t at = 0; at < part.size - 2; at++) {
        *to++ = part.data[at];
        at += part.data[at] == ESCAPE;
    }
    return bytes_make(start, (size_t)(to - start));
}

bool spill_key_parse(bytes key, struct buffer *scratch, struct spill_key *out)
{
    struct spill_parts parts;
    buffer_clear(scratch);
    if (!split(key, &parts))
        return false;
    uint8_t *to = buffer_reserve(scratch, parts.row_key.size + parts.qualifier.size);
    if (to == NULL)
        return false;
    *out = (struct spill_key){.row_key = unescape(parts.row_key, to),
                              .family = parts.family,
                              .qualifier = unescape(parts.qualifier, to + parts.row_key.size),
                              .timestamp_us = parts.timestamp_us};
    return true;
}
