/* FarmHash's Fingerprint64: see fingerprint.h.
 *
 * One formula for texts of up to 16 bytes, of up to 32, of up to 64, and a loop over blocks of 64
 * bytes with 56 bytes of state for longer ones. Words are little-endian; where a text has no whole
 * number of words, those at its end overlap those before. */
#include "sql/functions/fingerprint.h"

#include <endian.h>

#define K0 UINT64_C(0xc3a5c85c97cb3127)
#define K1 UINT64_C(0xb492b66fbe98f273)
#define K2 UINT64_C(0x9ae16a3b2f90404f)

enum { SEED = 81, BLOCK = 64 };

static uint64_t word_at(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return le64toh(word);
}

static uint64_t half_at(const uint8_t *at)
{
    uint32_t half;
    memcpy(&half, at, sizeof half);
    return le32toh(half);
}

static uint64_t rotate(uint64_t word, int bits)
{
    return word >> bits | word << (64 - bits);
}

static uint64_t fold_high(uint64_t word)
{
    return word ^ word >> 47;
}

static uint64_t mix(uint64_t a, uint64_t b, uint64_t factor)
{
    uint64_t first = fold_high((a ^ b) * factor);
    return fold_high((b ^ first) * factor) * factor;
}

static uint64_t factor_of(size_t size)
{
    return K2 + 2 * (uint64_t)size;
}

static uint64_t of_up_to_16(const uint8_t *at, size_t size)
{
    if (size >= 8) {
        uint64_t factor = factor_of(size);
        uint64_t a = word_at(at) + K2, b = word_at(at + size - 8);
        return mix(rotate(b, 37) * factor + a, (rotate(a, 25) + b) * factor, factor);
    }
    if (size >= 4)
        return mix(size + (half_at(at) << 3), half_at(at + size - 4), factor_of(size));
    if (size == 0)
        return K2;
    uint32_t low = at[0] + ((uint32_t)at[size / 2] << 8);
    uint32_t high = (uint32_t)size + ((uint32_t)at[size - 1] << 2);
    return fold_high(low * K2 ^ high * K0) * K2;
}

static uint64_t of_up_to_32(const uint8_t *at, size_t size)
{
    uint64_t factor = factor_of(size);
    uint64_t a = word_at(at) * K1, b = word_at(at + 8);
    uint64_t c = word_at(at + size - 8) * factor, d = word_at(at + size - 16) * K2;
    return mix(rotate(a + b, 43) + rotate(c, 30) + d, a + rotate(b + K2, 18) + c, factor);
}

static uint64_t of_up_to_64(const uint8_t *at, size_t size)
{
    uint64_t factor = factor_of(size);
    uint64_t a = word_at(at) * K2, b = word_at(at + 8);
    uint64_t c = word_at(at + size - 8) * factor, d = word_at(at + size - 16) * K2;
    uint64_t y = rotate(a + b, 43) + rotate(c, 30) + d;
    uint64_t z = mix(y, a + rotate(b + K2, 18) + c, factor);
    uint64_t e = word_at(at + 16) * factor, f = word_at(at + 24);
    uint64_t g = (y + word_at(at + size - 32)) * factor;
    uint64_t h = (z + word_at(at + size - 24)) * factor;
    return mix(rotate(e + f, 43) + rotate(g, 30) + h, e + rotate(f + a, 18) + g, factor);
}

struct pair {
    uint64_t first;
    uint64_t second;
};

/* Half a block into two words. */
static struct pair half_block(const uint8_t *at, uint64_t a, uint64_t b)
{
    a += word_at(at);
    b = rotate(b + a + word_at(at + 24), 21);
    uint64_t sum = a + word_at(at + 8) + word_at(at + 16);
    return (struct pair){sum + word_at(at + 24), b + rotate(sum, 44) + a};
}

struct state {
    uint64_t x, y, z;
    struct pair v, w;
};

/* The last block has another factor, and counts two parts of the state nine times. */
static void add_block(struct state *s, const uint8_t *at, uint64_t factor, uint64_t times)
{
    uint64_t x = rotate(s->x + s->y + s->v.first + word_at(at + 8), 37) * factor;
    uint64_t y = rotate(s->y + s->v.second + word_at(at + 48), 42) * factor;
    x ^= s->w.second * times;
    y += s->v.first * times + word_at(at + 40);
    uint64_t z = rotate(s->z + s->w.first, 33) * factor;
    s->v = half_block(at, s->v.second * factor, x + s->w.first);
    s->w = half_block(at + 32, z + s->w.second, y + word_at(at + 16));
    s->x = z;
    s->y = y;
    s->z = x;
}

static uint64_t of_blocks(const uint8_t *at, size_t size)
{
    size_t rest = (size - 1) % BLOCK; /* of the last block, but one byte */
    const uint8_t *end = at + (size - 1 - rest);
    struct state s = {.y = SEED * K1 + 113};
    s.z = fold_high(s.y * K2 + 113) * K2;
    s.x = SEED * K2 + word_at(at);
    for (; at < end; at += BLOCK)
        add_block(&s, at, K1, 1);
    uint64_t factor = K1 + ((s.z & 0xff) << 1);
    s.w.first += rest;
    s.v.first += s.w.first;
    s.w.first += s.v.first;
    add_block(&s, end + rest + 1 - BLOCK, factor, 9);
    return mix(mix(s.v.first, s.w.first, factor) + fold_high(s.y) * K0 + s.z,
               mix(s.v.second, s.w.second, factor) + s.x, factor);
}

uint64_t farm_fingerprint(bytes text)
{
    if (text.size <= 16)
        return of_up_to_16(text.data, text.size);
    if (text.size <= 32)
        return of_up_to_32(text.data, text.size);
    return text.size <= 64 ? of_up_to_64(text.data, text.size) : of_blocks(text.data, text.size);
}
