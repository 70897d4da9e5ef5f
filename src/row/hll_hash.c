/* Fingerprint2011, the 64-bit hash of Zetasketch's sketches: see hll.h.
 *
 * Its constants, rotations and order of operations are the definition; the names are ours. All
 * numbers are modulo 2^64, all loads little-endian. */
#include "row/hll.h"

#include <endian.h>

#define K0 0xa5b85c5e198ed849ULL
#define K1 0x8d58ac26afe12e47ULL
#define K2 0xc47b6e9e3a970ed3ULL
#define K3 0xc6a4a7935bd1e995ULL

enum { SHORT_BYTES = 32, MIDDLE_BYTES = 64, BLOCK_BYTES = 64 };

static uint64_t load(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return le64toh(word);
}

static uint64_t rotate(uint64_t x, unsigned right)
{
    return x >> right | x << (64 - right);
}

static uint64_t mix(uint64_t x)
{
    return x ^ (x >> 47);
}

static uint64_t join(uint64_t high, uint64_t low)
{
    uint64_t a = mix((low ^ high) * K3);
    return mix((high ^ a) * K3) * K3;
}

/* Up to 32 bytes. */
static uint64_t hash_short(bytes in)
{
    uint64_t h = (K0 ^ K1 ^ K2) ^ (in.size * K3);
    size_t at = 0;
    for (; at + sizeof h <= in.size; at += sizeof h)
        h = (h ^ mix(load(in.data + at) * K3) * K3) * K3;
    if (at < in.size) {
        uint64_t tail = 0;
        for (size_t i = in.size; i > at; i--)
            tail = tail << 8 | in.data[i - 1];
        h = (h ^ tail) * K3;
    }
    return mix(mix(h) * K3);
}

struct pair {
    uint64_t first;
    uint64_t second;
};

/* Half of a middle input: 32 bytes, of which the last 8 are given, with `a` to start from. */
static struct pair hash_half(const uint8_t *at, uint64_t a, uint64_t last)
{
    uint64_t b = rotate(a + last, 52);
    uint64_t c = rotate(a, 37);
    a += load(at + 8);
    c += rotate(a, 7);
    a += load(at + 16);
    return (struct pair){.first = a + last, .second = b + rotate(a, 31) + c};
}

/* 33 to 64 bytes. */
static uint64_t hash_middle(bytes in)
{
    size_t n = in.size;
    const uint8_t *end = in.data + n;
    struct pair v =
        hash_half(in.data, load(in.data) + (n + load(end - 16)) * K0, load(in.data + 24));
    struct pair w = hash_half(end - 32, load(in.data + 16) + load(end - 32), load(end - 8));
    uint64_t r = mix((v.first + w.second) * K2 + (w.first + v.second) * K0);
    return mix(r * K0 + v.second) * K2;
}

static struct pair hash_32(const uint8_t *at, uint64_t a, uint64_t b)
{
    a += load(at);
    b = rotate(b + a + load(at + 24), 51);
    uint64_t c = a;
    a += load(at + 8) + load(at + 16);
    b += rotate(a, 23);
    return (struct pair){.first = a + load(at + 24), .second = b + c};
}

/* More than 64 bytes. The last of them, up to 64, have gone into the start values. */
static uint64_t hash_long(bytes in)
{
    size_t n = in.size;
    const uint8_t *end = in.data + n;
    uint64_t x = load(in.data);
    uint64_t y = load(end - 16) ^ K1;
    uint64_t z = load(end - 56) ^ K0;
    struct pair v = hash_32(end - 64, n, y);
    struct pair w = hash_32(end - 32, n * K1, K0);
    z += mix(v.second) * K1;
    x = rotate(z + x, 39) * K1;
    y = rotate(y, 33) * K1;
    const uint8_t *stop = in.data + ((n - 1) & ~(size_t)(BLOCK_BYTES - 1));
    for (const uint8_t *at = in.data; at < stop; at += BLOCK_BYTES) {
        x = rotate(x + y + v.first + load(at + 16), 37) * K1;
        y = rotate(y + v.second + load(at + 48), 42) * K1;
        x ^= w.second;
        y ^= v.first;
        z = rotate(z ^ w.first, 33);
        v = hash_32(at, v.second * K1, x + w.first);
        w = hash_32(at + 32, z + w.second, y);
        uint64_t former = x;
        x = z;
        z = former;
    }
    return join(join(v.first, w.first) + mix(y) * K1 + z, join(v.second, w.second) + x);
}

static uint64_t hash_by_size(bytes in)
{
    if (in.size <= SHORT_BYTES)
        return hash_short(in);
    return in.size <= MIDDLE_BYTES ? hash_middle(in) : hash_long(in);
}

uint64_t hll_hash(bytes input)
{
    uint64_t first = input.size >= 8 ? load(input.data) : K0;
    uint64_t last = input.size >= 9 ? load(input.data + input.size - 8) : K0;
    uint64_t hash = join(hash_by_size(input) + last, first);
    return hash < 2 ? hash - 2 : hash; /* 0 and 1 are never given */
}

uint64_t hll_hash_int64(int64_t input)
{
    uint64_t word = htole64((uint64_t)input);
    return hll_hash(bytes_make(&word, sizeof word));
}
