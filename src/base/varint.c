/* See varint.h. */
#include "base/varint.h"

#include <endian.h>

/* The bits of up to eight bytes without the topmost of each, next to one another: of pairs, of
 * fours, of all. */
static uint64_t join_bits(uint64_t word)
{
    word = (word & 0x007f007f007f007fu) | (word & 0x7f007f007f007f00u) >> 1;
    word = (word & 0x00003fff00003fffu) | (word & 0x3fff00003fff0000u) >> 2;
    return (word & 0x000000000fffffffu) | (word & 0x0fffffff00000000u) >> 4;
}

static const uint8_t *read_bytewise(const uint8_t *from, const uint8_t *end, uint64_t *value)
{
    uint64_t result = 0;
    for (unsigned shift = 0; shift < 64 && from < end; shift += 7) {
        uint8_t byte = *from++;
        result |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = result;
            return shift == 63 && byte > 1 ? NULL : from;
        }
    }
    return NULL;
}

/* Times have eight bytes: a value that ends within a word is read as a word. */
const uint8_t *varint_read_long(const uint8_t *from, const uint8_t *end, uint64_t *value)
{
    uint64_t word;
    if (from >= end || (size_t)(end - from) < sizeof word)
        return read_bytewise(from, end, value);
    memcpy(&word, from, sizeof word);
    word = le64toh(word);
    uint64_t ends = ~word & 0x8080808080808080u;
    if (ends == 0)
        return read_bytewise(from, end, value);
    unsigned bits = (unsigned)__builtin_ctzll(ends) + 1; /* with that of the byte that ends it */
    *value = join_bits(bits == 64 ? word : word & (((uint64_t)1 << bits) - 1));
    return from + bits / 8;
}
