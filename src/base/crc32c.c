/* See crc32c.h. By the processor's instruction where it has one; else by a table of sixteen, half a
 * byte at a time. */
#include "base/crc32c.h"

static const uint32_t TABLE[16] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
    0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

static uint32_t add_by_table(uint32_t sum, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        sum ^= data[i];
        sum = sum >> 4 ^ TABLE[sum & 15];
        sum = sum >> 4 ^ TABLE[sum & 15];
    }
    return sum;
}

#ifdef __x86_64__

__attribute__((target("sse4.2"))) static uint32_t
add_by_instruction(uint32_t sum, const uint8_t *data, size_t size)
{
    uint64_t words = sum;
    size_t at = 0;
    for (uint64_t word; size - at >= sizeof word; at += sizeof word) {
        memcpy(&word, data + at, sizeof word);
        words = __builtin_ia32_crc32di(words, word);
    }
    sum = (uint32_t)words;
    for (; at < size; at++)
        sum = __builtin_ia32_crc32qi(sum, data[at]);
    return sum;
}

static uint32_t add(uint32_t sum, const uint8_t *data, size_t size)
{
    return __builtin_cpu_supports("sse4.2") ? add_by_instruction(sum, data, size)
                                            : add_by_table(sum, data, size);
}

#else

static uint32_t add(uint32_t sum, const uint8_t *data, size_t size)
{
    return add_by_table(sum, data, size);
}

#endif

uint32_t crc32c_by_table(bytes b)
{
    return ~add_by_table(~(uint32_t)0, b.data, b.size);
}

uint32_t crc32c_of(bytes b)
{
    return ~add(~(uint32_t)0, b.data, b.size);
}
