/* Numbers of 8 bytes, the greatest first: as they order in keys, and stand in most records. */
#ifndef TRESTLE_BASE_BIG_ENDIAN_H
#define TRESTLE_BASE_BIG_ENDIAN_H

#include "base/bytes.h"

#include <endian.h>
#include <string.h>

enum { BIG_ENDIAN_SIZE = 8 };

/* Of as many bytes, wherever they lie. */
static inline uint64_t big_endian_read(const uint8_t *from)
{
    uint64_t word;
    memcpy(&word, from, sizeof word);
    return be64toh(word);
}

static inline void big_endian_write(uint8_t *to, uint64_t number)
{
    uint64_t word = htobe64(number);
    memcpy(to, &word, sizeof word);
}

static inline void big_endian_append(struct buffer *out, uint64_t number)
{
    uint64_t word = htobe64(number);
    buffer_append(out, &word, sizeof word);
}

#endif
