/* See siphash.h. Names of variables and constants are those of the paper. */
#include "base/siphash.h"

#include <endian.h>

enum { WORD_SIZE = 8, COMPRESSION_ROUNDS = 2, FINALIZATION_ROUNDS = 4 };

static uint64_t rotate(uint64_t word, unsigned bits)
{
    return word << bits | word >> (64 - bits);
}

static void run_rounds(uint64_t v[4], int count)
{
    for (int i = 0; i < count; i++) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] = rotate(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[2] = rotate(v[2], 32);
    }
}

static void compress(struct siphash *hash, uint64_t word)
{
    hash->v[3] ^= word;
    run_rounds(hash->v, COMPRESSION_ROUNDS);
    hash->v[0] ^= word;
}

void siphash_start(struct siphash *hash)
{
    /* The key is that of the specification's examples, bytes 0 to 15. */
    const uint64_t k0 = 0x0706050403020100;
    const uint64_t k1 = 0x0f0e0d0c0b0a0908;
    const uint64_t for_128_bits = 0xee;
    *hash = (struct siphash){.v = {k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d ^ for_128_bits,
                                   k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573}};
}

static void add_byte(struct siphash *hash, uint8_t byte)
{
    hash->tail |= (uint64_t)byte << (hash->size % WORD_SIZE * 8);
    if (++hash->size % WORD_SIZE != 0)
        return;
    compress(hash, hash->tail);
    hash->tail = 0;
}

void siphash_add(struct siphash *hash, bytes part)
{
    size_t at = 0;
    while (at < part.size && hash->size % WORD_SIZE != 0)
        add_byte(hash, part.data[at++]);
    for (; at + WORD_SIZE <= part.size; at += WORD_SIZE, hash->size += WORD_SIZE) {
        uint64_t word;
        memcpy(&word, part.data + at, WORD_SIZE);
        compress(hash, le64toh(word));
    }
    while (at < part.size)
        add_byte(hash, part.data[at++]);
}

static uint64_t fold_state(const struct siphash *hash)
{
    return hash->v[0] ^ hash->v[1] ^ hash->v[2] ^ hash->v[3];
}

struct fingerprint siphash_finish(struct siphash *hash)
{
    struct fingerprint out;
    compress(hash, hash->tail | hash->size << 56);
    hash->v[2] ^= 0xee;
    run_rounds(hash->v, FINALIZATION_ROUNDS);
    out.words[0] = fold_state(hash);
    hash->v[1] ^= 0xdd;
    run_rounds(hash->v, FINALIZATION_ROUNDS);
    out.words[1] = fold_state(hash);
    return out;
}
