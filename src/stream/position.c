/* See position.h. What a token says, before base64url makes a string of it:
 *
 *     format: 1 | life: 8, big-endian | era: 8, big-endian, in format 2 alone | shard | time
 * (zigzag) | start | count | count parts | CRC32C of all that: 4, big-endian part      end |
 * sequence | ordinal start, end  their size, then their bytes
 *
 * Numbers are varints. The string has no padding. Era 0 is format 1, every other format 2. */
#include "stream/position.h"

#include "base/big_endian.h"
#include "base/crc32c.h"
#include "base/key_range.h"
#include "base/varint.h"
#include "wire/grpc_text.h"

#include <endian.h>
#include <stdlib.h>

enum {
    TOKEN_FORMAT = 1,
    TOKEN_FORMAT_ERA = 2,
    LIFE_BYTES = 8,
    ERA_BYTES = 8,
    CHECKSUM_BYTES = 4,
    LEAST_PART_BYTES = 3
};

static status no_token(void)
{
    return status_make(STATUS_INVALID_ARGUMENT, "The continuation token is not one of this server");
}

/* --- writing --- */

static void append_checksum(struct buffer *out)
{
    uint32_t word = htobe32(crc32c_of(buffer_bytes(out)));
    buffer_append(out, &word, sizeof word);
}

static void append_key(struct buffer *out, bytes key)
{
    buffer_append_varint(out, key.size);
    buffer_append_bytes(out, key);
}

/* At most, before base64url. Each change has a token: its memory comes at once. */
static size_t packed_most(const struct stream_token *token)
{
    size_t size = 1 + LIFE_BYTES + ERA_BYTES + 4 * VARINT_MAX_SIZE + token->start.size;
    for (size_t i = 0; i < token->part_count; i++)
        size += token->parts[i].end.size + 3 * VARINT_MAX_SIZE;
    return size + CHECKSUM_BYTES;
}

void stream_token_write(struct buffer *out, const struct stream_token *token)
{
    struct buffer packed = {0};
    (void)buffer_reserve(&packed, packed_most(token));
    buffer_append_byte(&packed, token->era == 0 ? TOKEN_FORMAT : TOKEN_FORMAT_ERA);
    big_endian_append(&packed, token->life);
    if (token->era != 0)
        big_endian_append(&packed, token->era);
    buffer_append_varint(&packed, token->shard);
    buffer_append_varint(&packed, zigzag_encode(token->time_us));
    append_key(&packed, token->start);
    buffer_append_varint(&packed, token->part_count);
    for (size_t i = 0; i < token->part_count; i++) {
        append_key(&packed, token->parts[i].end);
        buffer_append_varint(&packed, token->parts[i].after.sequence);
        buffer_append_varint(&packed, token->parts[i].after.ordinal);
    }
    append_checksum(&packed);
    if (packed.failed)
        out->failed = true;
    else
        base64url_encode(buffer_bytes(&packed), out);
    buffer_free(&packed);
}

/* --- reading --- */

struct token_reader {
    const uint8_t *at;
    const uint8_t *end;
    bool is_bad;
};

static uint64_t read_big_endian(struct token_reader *reader, unsigned size)
{
    uint64_t value = 0;
    reader->is_bad = reader->is_bad || (size_t)(reader->end - reader->at) < size;
    while (!reader->is_bad && size-- > 0)
        value = value << 8 | *reader->at++;
    return value;
}

/* 0 if it is bad, or above `most`. */
static uint64_t read_number(struct token_reader *reader, uint64_t most)
{
    uint64_t value = 0;
    const uint8_t *after = reader->is_bad ? NULL : varint_read(reader->at, reader->end, &value);
    reader->is_bad = after == NULL || value > most;
    if (reader->is_bad)
        return 0;
    reader->at = after;
    return value;
}

static bytes read_key(struct token_reader *reader)
{
    size_t size = read_number(reader, (uint64_t)(reader->end - reader->at));
    reader->is_bad = reader->is_bad || size > (size_t)(reader->end - reader->at);
    if (reader->is_bad)
        return bytes_make(NULL, 0);
    bytes key = bytes_make(reader->at, size);
    reader->at += size;
    return key;
}

/* The bytes that the string stands for, in the arena: each string for others, so that no bit of it
 * can change unseen. */
static status unpack(bytes string, struct arena *arena, bytes *packed)
{
    size_t size;
    struct buffer again = {0};
    uint8_t *to = arena_alloc(arena, base64_decoded_most(string.size));
    if (to == NULL)
        return status_out_of_memory();
    if (!base64_decode(string, to, &size))
        return no_token();
    *packed = bytes_make(to, size);
    base64url_encode(*packed, &again);
    bool is_same = bytes_equal(buffer_bytes(&again), string), failed = again.failed;
    buffer_free(&again);
    if (failed)
        return status_out_of_memory();
    return is_same ? status_ok() : no_token();
}

static bool take_checksum(bytes *packed)
{
    if (packed->size < CHECKSUM_BYTES)
        return false;
    packed->size -= CHECKSUM_BYTES;
    struct token_reader reader = {.at = packed->data + packed->size,
                                  .end = packed->data + packed->size + CHECKSUM_BYTES};
    return read_big_endian(&reader, CHECKSUM_BYTES) == crc32c_of(*packed);
}

static void read_head(struct token_reader *reader, struct stream_token *out)
{
    uint64_t format = read_big_endian(reader, 1);
    reader->is_bad = reader->is_bad || (format != TOKEN_FORMAT && format != TOKEN_FORMAT_ERA);
    out->life = read_big_endian(reader, LIFE_BYTES);
    if (format == TOKEN_FORMAT_ERA) {
        out->era = read_big_endian(reader, ERA_BYTES);
        reader->is_bad = reader->is_bad || out->era == 0;
    }
    out->shard = (uint32_t)read_number(reader, UINT32_MAX);
    out->time_us = zigzag_decode(read_number(reader, UINT64_MAX));
    out->start = read_key(reader);
    uint64_t most = (uint64_t)(reader->end - reader->at) / LEAST_PART_BYTES;
    out->part_count = (size_t)read_number(reader, most);
    reader->is_bad = reader->is_bad || out->part_count == 0;
}

/* Only the last part may have no end. */
static bool is_in_order(const struct stream_token *token, size_t part)
{
    bytes before = part == 0 ? token->start : token->parts[part - 1].end;
    bytes end = token->parts[part].end;
    return bytes_compare(end, before) > 0 || (end.size == 0 && part + 1 == token->part_count);
}

static void read_parts(struct token_reader *reader, struct stream_token *out)
{
    for (size_t i = 0; i < out->part_count && !reader->is_bad; i++) {
        out->parts[i].end = read_key(reader);
        out->parts[i].after.sequence = read_number(reader, UINT64_MAX);
        out->parts[i].after.ordinal = (uint32_t)read_number(reader, UINT32_MAX);
        reader->is_bad = reader->is_bad || !is_in_order(out, i);
    }
    reader->is_bad = reader->is_bad || reader->at != reader->end;
}

status stream_token_read(bytes string, struct arena *arena, struct stream_token *out)
{
    bytes packed;
    *out = (struct stream_token){0};
    TRY(unpack(string, arena, &packed));
    if (!take_checksum(&packed))
        return no_token();
    struct token_reader reader = {.at = packed.data, .end = packed.data + packed.size};
    read_head(&reader, out);
    if (reader.is_bad)
        return no_token();
    out->parts = arena_alloc(arena, out->part_count * sizeof *out->parts);
    if (out->parts == NULL)
        return status_out_of_memory();
    read_parts(&reader, out);
    return reader.is_bad ? no_token() : status_ok();
}

/* --- advancing --- */

static void add_part(struct stream_token *token, struct stream_part part)
{
    struct stream_part *last = token->part_count == 0 ? NULL : &token->parts[token->part_count - 1];
    if (last != NULL && stream_position_compare(last->after, part.after) == 0)
        last->end = part.end;
    else
        token->parts[token->part_count++] = part;
}

struct stream_token stream_token_advanced(const struct stream_token *token,
                                          struct stream_position position, int64_t time_us,
                                          struct stream_part *parts)
{
    struct stream_token out = *token;
    out.parts = parts;
    out.part_count = 0;
    if (time_us > out.time_us)
        out.time_us = time_us;
    for (size_t i = 0; i < token->part_count; i++) {
        struct stream_part part = token->parts[i];
        if (stream_position_compare(part.after, position) < 0)
            part.after = position;
        add_part(&out, part);
    }
    return out;
}

/* --- cutting --- */

static int compare_ends(bytes a, bytes b)
{
    if (a.size == 0 || b.size == 0)
        return a.size == 0 ? b.size != 0 : -1;
    return bytes_compare(a, b);
}

status stream_token_cut(const struct stream_token *token, bytes start, bytes end,
                        struct arena *arena, struct stream_token *out)
{
    *out = *token;
    out->part_count = 0;
    out->parts = arena_alloc(arena, token->part_count * sizeof *out->parts);
    if (out->parts == NULL)
        return status_out_of_memory();
    if (bytes_compare(start, token->start) > 0)
        out->start = start;
    bytes from = token->start;
    for (size_t i = 0; i < token->part_count; i++) {
        struct stream_part part = token->parts[i];
        bool meets = key_ranges_meet(from, part.end, out->start, end);
        from = part.end;
        if (compare_ends(part.end, end) > 0)
            part.end = end;
        if (meets)
            out->parts[out->part_count++] = part;
    }
    return status_ok();
}

/* --- joining --- */

static int compare_starts(const void *a, const void *b)
{
    return bytes_compare(((const struct stream_token *)a)->start,
                         ((const struct stream_token *)b)->start);
}

static status no_tiling(void)
{
    return status_make(STATUS_INVALID_ARGUMENT,
                       "The partitions of the continuation tokens must be the request's partition, "
                       "without a gap or an overlap");
}

/* `tokens` by their starts. */
static status check_tiling(const struct stream_token *tokens, size_t count, bytes start, bytes end)
{
    for (size_t i = 0; i < count; i++) {
        bytes expected = i == 0 ? start : stream_token_end(&tokens[i - 1]);
        bool goes_on = i == 0 || expected.size > 0;
        if (!goes_on || !bytes_equal(tokens[i].start, expected))
            return no_tiling();
        if (tokens[i].life != tokens[0].life || tokens[i].shard != tokens[0].shard)
            return status_make(STATUS_INVALID_ARGUMENT,
                               "The continuation tokens are of different change streams");
    }
    if (count == 0 || !bytes_equal(stream_token_end(&tokens[count - 1]), end))
        return no_tiling();
    return status_ok();
}

static size_t count_parts(const struct stream_token *tokens, size_t count)
{
    size_t parts = 0;
    for (size_t i = 0; i < count; i++)
        parts += tokens[i].part_count;
    return parts;
}

status stream_token_join(const struct stream_token *tokens, size_t count, bytes start, bytes end,
                         struct arena *arena, struct stream_token *out)
{
    *out = (struct stream_token){0};
    struct stream_token *sorted = arena_alloc(arena, count * sizeof *sorted);
    struct stream_part *parts = arena_alloc(arena, count_parts(tokens, count) * sizeof *out->parts);
    if (sorted == NULL || parts == NULL)
        return status_out_of_memory();
    if (count > 0) {
        memcpy(sorted, tokens, count * sizeof *sorted);
        qsort(sorted, count, sizeof *sorted, compare_starts);
    }
    TRY(check_tiling(sorted, count, start, end));
    *out = sorted[0];
    out->parts = parts;
    out->part_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (sorted[i].time_us < out->time_us)
            out->time_us = sorted[i].time_us;
        for (size_t j = 0; j < sorted[i].part_count; j++)
            add_part(out, sorted[i].parts[j]);
    }
    return status_ok();
}
