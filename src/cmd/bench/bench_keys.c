#include "cmd/bench/bench.h"

#include <stdlib.h>

/* The output function of splitmix64: a permutation of the 64-bit numbers. */
static uint64_t scramble(uint64_t number)
{
    number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
    number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
    return number ^ (number >> 31);
}

uint64_t bench_random(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15;
    return scramble(*state);
}

uint64_t bench_key_number(uint64_t index)
{
    return scramble(index + 1);
}

void bench_key_format(uint64_t number, uint8_t key[BENCH_KEY_SIZE])
{
    enum { PREFIX_SIZE = 4 };
    memcpy(key, "user", PREFIX_SIZE);
    for (size_t i = BENCH_KEY_SIZE; i-- > PREFIX_SIZE; number /= 10)
        key[i] = (uint8_t)('0' + number % 10);
}

static int compare_numbers(const void *a, const void *b)
{
    uint64_t left, right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return left < right ? -1 : left > right;
}

status bench_keys_create(uint64_t count, struct bench_keys *out)
{
    *out = (struct bench_keys){.count = count, .sorted = malloc(count * sizeof(uint64_t))};
    if (out->sorted == NULL)
        return status_out_of_memory();
    for (uint64_t i = 0; i < count; i++)
        out->sorted[i] = bench_key_number(i);
    qsort(out->sorted, count, sizeof(uint64_t), compare_numbers);
    return status_ok();
}

void bench_keys_free(struct bench_keys *keys)
{
    free(keys->sorted);
    *keys = (struct bench_keys){0};
}
