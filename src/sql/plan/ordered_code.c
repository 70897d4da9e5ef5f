/* OrderedCode of signed integers: see ordered_code.h. */
#include "sql/plan/ordered_code.h"

enum { MOST_BYTES = 10 };

/* n bytes have n bits that say so, and the sign, of 8 n: 7 n - 1 for the number. */
static unsigned size_of(uint64_t magnitude)
{
    unsigned size = 1;
    while (size < MOST_BYTES && magnitude >> (7 * size - 1 > 63 ? 63 : 7 * size - 1) != 0 &&
           7 * size - 1 < 64)
        size++;
    return size;
}

/* The number, which is not negative, behind `size` ones and a zero: the first of the ones is the
 * sign's. */
static void write_code(uint64_t magnitude, unsigned size, uint8_t code[MOST_BYTES])
{
    memset(code, 0, MOST_BYTES);
    for (unsigned i = 0; i < size && i < 8; i++)
        code[size - 1 - i] = (uint8_t)(magnitude >> (8 * i));
    for (unsigned bit = 0; bit < size; bit++)
        code[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
}

void ordered_code_append(struct buffer *out, int64_t value)
{
    uint8_t code[MOST_BYTES];
    bool is_negative = value < 0;
    uint64_t magnitude = (uint64_t)(is_negative ? ~value : value);
    unsigned size = size_of(magnitude);
    write_code(magnitude, size, code);
    for (unsigned i = 0; i < size; i++)
        buffer_append_byte(out, is_negative ? (uint8_t)~code[i] : code[i]);
}

/* How many ones come first, at most as many as bytes can be. */
static unsigned leading_ones(const uint8_t *code, size_t size)
{
    unsigned ones = 0;
    while (ones < MOST_BYTES && ones / 8 < size && (code[ones / 8] & 0x80 >> ones % 8) != 0)
        ones++;
    return ones;
}

size_t ordered_code_read(bytes text, int64_t *out)
{
    uint8_t code[MOST_BYTES] = {0};
    size_t given = text.size < MOST_BYTES ? text.size : MOST_BYTES;
    if (given == 0)
        return 0;
    bool is_negative = (text.data[0] & 0x80) == 0;
    for (size_t i = 0; i < given; i++)
        code[i] = is_negative ? (uint8_t)~text.data[i] : text.data[i];
    unsigned size = leading_ones(code, given);
    if (size == 0 || size > given)
        return 0;
    for (unsigned bit = 0; bit < size; bit++)
        code[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
    uint64_t magnitude = 0;
    for (unsigned i = 0; i < size; i++) {
        if (magnitude >> 56 != 0)
            return 0;
        magnitude = magnitude << 8 | code[i];
    }
    if (magnitude > INT64_MAX || size_of(magnitude) != size)
        return 0;
    *out = is_negative ? ~(int64_t)magnitude : (int64_t)magnitude;
    return size;
}
