/* Variable-length integers, as protobuf writes them: seven bits a byte, the lowest first, the top
 * bit set on all bytes but the last; signed values zigzag first (0, -1, 1, -2, … → 0, 1, 2, 3, …).
 */
#ifndef TRESTLE_BASE_VARINT_H
#define TRESTLE_BASE_VARINT_H

#include "base/bytes.h"

enum { VARINT_MAX_SIZE = 10 };

/* Writes at most VARINT_MAX_SIZE bytes and returns the end of them. */
static inline uint8_t *varint_write(uint8_t *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *to++ = (uint8_t)(value | 0x80);
    *to++ = (uint8_t)value;
    return to;
}

static inline size_t varint_size(uint64_t value)
{
    size_t size = 1;
    for (; value >= 0x80; value >>= 7)
        size++;
    return size;
}

/* varint_read of more than a byte. */
const uint8_t *varint_read_long(const uint8_t *from, const uint8_t *end, uint64_t *value);

/* Reads a value and returns where it ended; NULL if it runs past `end` or over 64 bits. */
static inline const uint8_t *varint_read(const uint8_t *from, const uint8_t *end, uint64_t *value)
{
    if (from >= end || *from >= 0x80)
        return varint_read_long(from, end, value);
    *value = *from;
    return from + 1;
}

static inline uint64_t zigzag_encode(int64_t value)
{
    return ((uint64_t)value << 1) ^ (value < 0 ? UINT64_MAX : 0);
}

static inline int64_t zigzag_decode(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static inline void buffer_append_varint(struct buffer *buffer, uint64_t value)
{
    uint8_t *to = buffer_reserve(buffer, VARINT_MAX_SIZE);
    if (to != NULL)
        buffer->size += (size_t)(varint_write(to, value) - to);
}

#endif
