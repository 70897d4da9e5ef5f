/* Keys that begin with random bytes.
 *
 * Hexadecimal digits are told from numbers and words by their letters, and from numbers in base 16
 * by the information in each of their first digits. The thresholds leave room for how the sample
 * was drawn: its places are not as even as the keys. */
#include "advisor/key_start.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

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

static int order_of_starts(const void *a, const void *b)
{
    enum { START = 4 };
    return memcmp(((const bytes *)a)->data, ((const bytes *)b)->data, START);
}

/* Whether hardly two begin with the same four bytes: what is packed of several numbers looks
 * random, too, but begins with few values. */
static bool begin_apart(bytes *keys, size_t count)
{
    size_t distinct = 0;
    qsort(keys, count, sizeof *keys, order_of_starts);
    for (size_t i = 0; i < count; i++)
        distinct += i == 0 || order_of_starts(&keys[i], &keys[i - 1]) != 0;
    return key_start_fits(distinct, count);
}

static bool are_random_bytes(bytes *keys, size_t count)
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
    return whole == count && percent >= 35 && percent <= 65 &&
           have_entropy(keys, count, least, average) && begin_apart(keys, count);
}

/* Digits that stand alone, more than any counter or sequence reaches. */
static bool are_random_digits(const bytes *keys, size_t count)
{
    enum { DIGITS_LEAST = 18 };
    const double least = 1.5, average = 2.6; /* of 3.3 bits */
    struct key_digits {
        size_t all;
        size_t of_one_width;
    } found = {0};
    bytes behind[KEYS_HASHED_MOST];
    for (size_t i = 0; i < count && i < KEYS_HASHED_MOST; i++) {
        size_t size = 0;
        while (size < keys[i].size && isdigit(keys[i].data[size]))
            size++;
        bool is_one =
            size >= DIGITS_LEAST && (size == keys[i].size || !isalnum(keys[i].data[size]));
        found.all++;
        found.of_one_width += is_one;
        behind[i] = is_one ? bytes_from(keys[i], 1) : bytes_make(NULL, 0); /* the first is 0 or 1 */
    }
    return key_start_fits(found.of_one_width, found.all) &&
           have_entropy(behind, found.all, least, average);
}

static bool is_base64(bytes key)
{
    enum { LEAST = 22 };
    size_t size = key.size;
    while (size > 0 && key.data[size - 1] == '=')
        size--;
    for (size_t i = 0; i < size; i++)
        if (!isalnum(key.data[i]) && !is_one_of(key.data[i], "+/-_"))
            return false;
    return size >= LEAST && key.size - size <= 2;
}

/* Whether keys are as long as a hash, with capitals as often as small letters. */
static bool are_random_base64(const bytes *keys, size_t count)
{
    const double least = 4, average = 4.5; /* of 6 bits, as far as so many keys can show them */
    size_t fitting = 0, upper = 0, lower = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_base64(keys[i]))
            continue;
        fitting++;
        for (size_t at = 0; at < LOOKED_AT; at++) {
            upper += isupper(keys[i].data[at]) != 0;
            lower += islower(keys[i].data[at]) != 0;
        }
    }
    size_t all = fitting * LOOKED_AT; /* of 64 each are 26 */
    return fitting > 0 && key_start_fits(fitting, count) && upper * 4 >= all && lower * 4 >= all &&
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

/* In words; NULL: nothing is. */
static const char *what_is_random(bytes *keys, size_t count)
{
    if (are_hex(keys, count))
        return is_uuid(keys[0]) ? "a UUID" : "hexadecimal digits that look random";
    if (are_random_base64(keys, count))
        return "base 64 of bytes that look random";
    if (are_random_digits(keys, count))
        return "so many digits, which look random, that they are a hash";
    return are_random_bytes(keys, count) ? "bytes that look random" : NULL;
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
    const char *what = what_is_random(some, count);
    if (what == NULL)
        return status_ok();
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
