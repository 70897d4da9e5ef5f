/* See record.h. */
#include "stream/record.h"

#include "base/varint.h"

#include <endian.h>

enum { HEAD_BYTES = 1 + 8 /* kind, version */ };

/* --- keys --- */

void stream_record_key(uint8_t out[STREAM_KEY_BYTES], uint64_t tablet,
                       struct stream_position position, uint32_t piece)
{
    const uint64_t words[] = {htobe64(tablet), htobe64(position.sequence)};
    const uint32_t halves[] = {htobe32(position.ordinal), htobe32(piece)};
    memcpy(out, words, sizeof words);
    memcpy(out + sizeof words, halves, sizeof halves);
}

bool stream_record_key_read(bytes key, uint64_t *tablet, struct stream_position *position,
                            uint32_t *piece)
{
    uint64_t words[2];
    uint32_t halves[2];
    if (key.size != STREAM_KEY_BYTES)
        return false;
    memcpy(words, key.data, sizeof words);
    memcpy(halves, key.data + sizeof words, sizeof halves);
    *tablet = be64toh(words[0]);
    position->sequence = be64toh(words[1]);
    position->ordinal = be32toh(halves[0]);
    *piece = be32toh(halves[1]);
    return *tablet != 0;
}

/* --- values --- */

void stream_record_write(struct buffer *out, const struct stream_record *record)
{
    uint64_t version = htobe64(record->version);
    buffer_append_byte(out, (uint8_t)record->kind);
    buffer_append(out, &version, sizeof version);
    buffer_append_varint(out, record->row_key.size);
    buffer_append_bytes(out, record->row_key);
    buffer_append_bytes(out, record->list);
}

static bool read_value(bytes value, struct stream_record *out)
{
    if (value.size < HEAD_BYTES)
        return false;
    const uint8_t *end = value.data + value.size;
    uint64_t version, size = 0;
    memcpy(&version, value.data + 1, sizeof version);
    const uint8_t *at = varint_read(value.data + HEAD_BYTES, end, &size);
    if (at == NULL || size == 0 || size > (size_t)(end - at))
        return false;
    out->kind = (enum stream_record_kind)value.data[0];
    out->version = be64toh(version);
    out->row_key = bytes_make(at, (size_t)size);
    out->list = bytes_make(at + size, (size_t)(end - at) - (size_t)size);
    return out->kind >= STREAM_USER && out->kind <= STREAM_DROPPED;
}

status stream_record_read(bytes key, bytes value, struct stream_record *out)
{
    uint32_t piece = 0;
    bool is_one = stream_record_key_read(key, &out->tablet, &out->position, &piece) && piece == 0 &&
                  read_value(value, out);
    return is_one ? status_ok()
                  : status_make(STATUS_DATA_LOSS, "a record of a change stream does not parse");
}
