/* See place.h. */
#include "advisor/place.h"

#include "base/check.h"

enum { LENGTH_MOST = 64, BEHIND = 16 };

/* xorshift64* by Vigna: period 2^64 - 1. */
size_t advice_random_below(struct advice_random *random, size_t bound)
{
    uint64_t x = random->state;
    CHECK(bound > 0);
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    random->state = x;
    return (size_t)((x * 0x2545f4914f6cdd1d >> 32) % bound);
}

static size_t shared_size(bytes a, bytes b)
{
    size_t size = 0;
    while (size < a.size && size < b.size && a.data[size] == b.data[size])
        size++;
    return size;
}

static void find_ends(const bytes *keys, size_t count, bytes *first, bytes *last)
{
    *first = *last = keys[0];
    for (size_t i = 1; i < count; i++) {
        if (bytes_compare(keys[i], *first) < 0)
            *first = keys[i];
        if (bytes_compare(keys[i], *last) > 0)
            *last = keys[i];
    }
}

/* The byte that some key has at this place, or from `start` on at any; 0 if it has none. */
static uint8_t byte_of_some(const bytes *keys, size_t count, size_t start, size_t at,
                            struct advice_random *random)
{
    bytes key = keys[advice_random_below(random, count)];
    bool is_here = advice_random_below(random, 2) == 0 && key.size > at;
    if (is_here)
        return key.data[at];
    return key.size <= start ? 0 : key.data[start + advice_random_below(random, key.size - start)];
}

/* From one to the other, both included: any, or one that some key has, which is likelier to be that
 * of a row. */
static uint8_t byte_between(uint8_t from, uint8_t to, const bytes *keys, size_t count, size_t start,
                            struct advice_random *random)
{
    enum { TRIES = 8 };
    bool is_any = advice_random_below(random, 4) == 0;
    for (size_t i = 0; i < TRIES && !is_any; i++) {
        uint8_t byte = byte_of_some(keys, count, start, start, random);
        if (byte >= from && byte <= to)
            return byte;
    }
    return (uint8_t)(from + advice_random_below(random, (size_t)(to - from) + 1));
}

/* A key between these two, of which the first is the lower. */
static void write_between(const bytes *keys, size_t count, bytes first, bytes last,
                          struct advice_random *random, struct buffer *out)
{
    bytes base = keys[advice_random_below(random, count)];
    buffer_clear(out);
    size_t start = shared_size(first, last), size = start + BEHIND;
    if (start > LENGTH_MOST || start >= last.size) {
        buffer_append_bytes(out, base);
        return;
    }
    buffer_append(out, first.data, start);
    uint8_t least = start < first.size ? first.data[start] : 0;
    buffer_append_byte(out, byte_between(least, last.data[start], keys, count, start, random));
    for (size_t at = start + 1; at < size; at++) {
        bool is_own = advice_random_below(random, 2) == 0 && at < base.size;
        buffer_append_byte(out,
                           is_own ? base.data[at] : byte_of_some(keys, count, start, at, random));
    }
}

void advice_place(const bytes *keys, size_t count, struct advice_random *random, struct buffer *out)
{
    bytes first, last;
    find_ends(keys, count, &first, &last);
    write_between(keys, count, first, last, random, out);
}

/* A byte that some key has there, or anywhere behind `start`, and that is greater; else the next.
 */
static uint8_t byte_above(uint8_t byte, const bytes *keys, size_t count, size_t start, size_t at,
                          struct advice_random *random)
{
    enum { TRIES = 8 };
    for (size_t i = 0; i < TRIES; i++) {
        uint8_t other = byte_of_some(keys, count, start, at, random);
        if (other > byte)
            return other;
    }
    return byte < UINT8_MAX ? (uint8_t)(byte + 1) : byte;
}

/* From where on keys that are like this one differ from it, as far as some of them tell. */
static size_t start_of_differences(const bytes *keys, size_t count, bytes key, size_t start,
                                   struct advice_random *random)
{
    enum { LOOKED_AT = 4 };
    for (size_t i = 0; i < LOOKED_AT; i++) {
        size_t shared = shared_size(keys[advice_random_below(random, count)], key);
        start = shared > start && shared < key.size ? shared : start;
    }
    return start;
}

/* Some way behind the key, among those that begin as it does. The earlier the byte that is raised,
 * the farther. */
static void write_jump(const bytes *keys, size_t count, bytes key, size_t start,
                       struct advice_random *random, struct buffer *out)
{
    start = start_of_differences(keys, count, key, start, random);
    size_t at = start + advice_random_below(random, key.size - start);
    buffer_clear(out);
    buffer_append(out, key.data, at);
    buffer_append_byte(out, byte_above(key.data[at], keys, count, start, at, random));
    for (size_t i = 1; i < BEHIND; i++)
        buffer_append_byte(out, byte_of_some(keys, count, start, at + i, random));
}

void advice_place_behind(const bytes *keys, size_t count, bytes key, struct advice_random *random,
                         struct buffer *out)
{
    const bytes *next = NULL;
    for (size_t i = 0; i < count; i++)
        if (bytes_compare(keys[i], key) > 0 && (next == NULL || bytes_compare(keys[i], *next) < 0))
            next = &keys[i];
    size_t start = next == NULL ? 0 : shared_size(key, *next);
    if (key.size > start && advice_random_below(random, 2) == 0)
        write_jump(keys, count, key, start, random, out);
    else if (next != NULL)
        write_between(keys, count, key, *next, random, out);
    else
        advice_place(keys, count, random, out);
}
