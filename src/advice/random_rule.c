/* Keys that begin with random bytes.
 *
 * Hexadecimal digits are told from numbers and words by their letters, and from numbers in base 16
 * by the information in each of their first digits. The thresholds leave room for how the sample
 * was drawn: its places are not as even as the keys. */
#include "advice/key_start.h"

#include <ctype.h>
#include <math.h>

enum { LOOKED_AT = 8 }; /* bytes */

/* The keys of which one may expect that they are independent: the first of each place. Neighbours
 * in a large table have their first bytes in common, whatever they are. */
static status independent_keys(struct advisor *advisor, const struct key_start *keys, bytes **out,
                               size_t *count)
{
    const struct advice_observations *seen = keys->seen;
    uint32_t most = 0;
    *count = 0;
    for (size_t i = 0; i < seen->row_count; i++)
        most = seen->rows[i].place > most ? seen->rows[i].place : most;
    bool *has = arena_zalloc(advisor->arena, (size_t)most + 1);
    *out = arena_alloc(advisor->arena, seen->row_count * sizeof **out);
    if (has == NULL || *out == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < seen->row_count; i++) {
        if (has[seen->rows[i].place])
            continue;
        has[seen->rows[i].place] = true;
        (*out)[(*count)++] = key_start_field(keys, i);
    }
    if (*count >= KEYS_HASHED_LEAST)
        return status_ok();
    for (*count = 0; *count < seen->row_count; (*count)++)
        (*out)[*count] = key_start_field(keys, *count);
    return status_ok();
}

/* Bits of information in that byte of the keys. */
static double entropy_at(const bytes *keys, size_t count, size_t at)
{
    size_t counts[UINT8_MAX + 1] = {0}, all = 0;
    double bits = 0;
    for (size_t i = 0; i < count; i++)
        if (keys[i].size > at) {
            counts[tolower(keys[i].data[at])]++;
            all++;
        }
    for (size_t i = 0; i <= UINT8_MAX; i++)
        if (counts[i] > 0)
            bits -= (double)counts[i] / (double)all * log2((double)counts[i] / (double)all);
    return bits;
}

static bool have_entropy(const bytes *keys, size_t count, double least, double average)
{
    double sum = 0;
    for (size_t at = 0; at < LOOKED_AT; at++) {
        double bits = entropy_at(keys, count, at);
        if (bits < least)
            return false;
        sum += bits;
    }
    return sum >= average * LOOKED_AT;
}

/* Hexadecimal digits that stand alone, at least eight. */
static size_t hex_at(bytes key)
{
    size_t size = 0;
    while (size < key.size && isxdigit(key.data[size]))
        size++;
    return size >= LOOKED_AT && (size == key.size || !isalnum(key.data[size])) ? size : 0;
}

static bool are_hex(const bytes *keys, size_t count)
{
    const double least = 1.5, average = 2.5; /* of 4 bits */
    size_t hex = 0, letters = 0, all;
    for (size_t i = 0; i < count; i++) {
        if (hex_at(keys[i]) == 0)
            continue;
        hex++;
        for (size_t at = 0; at < LOOKED_AT; at++)
            letters += isalpha(keys[i].data[at]) != 0;
    }
    all = hex * LOOKED_AT; /* of 16 digits 6 are letters */
    return hex > 0 && key_start_fits(hex, count) && letters * 5 >= all && letters * 5 <= 3 * all &&
           have_entropy(keys, count, least, average);
}

static bool are_random_bytes(const bytes *keys, size_t count)
{
    const double least = 4, average = 4.5; /* of log2 of the keys' number */
    size_t whole = 0, high = 0;
    for (size_t i = 0; i < count; i++) {
        if (keys[i].size < LOOKED_AT)
            continue;
        whole++;
        for (size_t at = 0; at < LOOKED_AT; at++)
            high += keys[i].data[at] >> 7;
    }
    size_t percent = whole == 0 ? 0 : high * 100 / (whole * LOOKED_AT);
    return key_start_fits(whole, count) && percent >= 35 && percent <= 65 &&
           have_entropy(keys, count, least, average);
}

/* 8-4-4-4-12 digits */
static bool is_uuid(bytes key)
{
    enum { SIZE = 36 };
    if (key.size < SIZE)
        return false;
    for (size_t i = 0; i < SIZE; i++) {
        bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (is_dash ? key.data[i] != '-' : !isxdigit(key.data[i]))
            return false;
    }
    return true;
}

/* Bytes of a key that are random, as far as one can tell; 0: it cannot be told. */
static size_t random_size(bytes key)
{
    enum { UUID_SIZE = 36 };
    return is_uuid(key) ? UUID_SIZE : hex_at(key);
}

/* The key without what is random in it, if something is left. */
static void add_better_than_random(struct advice_finding *finding, const struct key_start *keys,
                                   bytes key)
{
    bytes field = bytes_from(key, keys->start);
    size_t size = random_size(field);
    if (size > 0 && field.size > size + 1 && is_one_of_delimiters(field.data[size]))
        finding_add_better(finding, key, bytes_from(field, size + 1));
}

status look_for_randomness(struct advisor *advisor, const struct key_start *keys)
{
    struct advice_finding *finding;
    bytes *some;
    size_t count;
    char opening[KEY_START_OPENING];
    if (keys->seen->row_count < KEYS_HASHED_LEAST)
        return status_ok();
    TRY(independent_keys(advisor, keys, &some, &count));
    bool is_hex = are_hex(some, count);
    if (!is_hex && !are_random_bytes(some, count))
        return status_ok();
    const char *what = !is_hex            ? "bytes that look random"
                       : is_uuid(some[0]) ? "a UUID"
                                          : "hexadecimal digits that look random";
    key_start_opening(keys, opening);
    TRY(advise(advisor, RULE_key_hashed, &finding, "The %zu sampled keys %s %s.",
               keys->seen->row_count, opening, what));
    for (size_t i = 0; i < ADVICE_KEYS_SHOWN; i++) {
        bytes key = row_to_show(keys->seen, i)->key;
        finding_add_key(finding, key);
        add_better_than_random(finding, keys, key);
    }
    return status_ok();
}
