/* In which order the values stand in keys: what is common first, what belongs together side by
 * side.
 *
 * All of it goes by how many different values a part has. A first part that tells nothing but the
 * row, with common values behind it, is in the wrong place; so is one that is drawn for each row of
 * an owner that stands behind it; and rows of one cell, whose keys differ in a few words at the
 * end, are one row. */
#include "advisor/key_parts.h"
#include "advisor/key_start.h"
#include "advisor/key_time.h"

#include <ctype.h>
#include <stdlib.h>

static bool have_parts(const struct key_parts *parts, size_t least)
{
    return parts->seen->row_count >= KEYS_PREFIX_LEAST && parts->count >= least &&
           key_start_fits(parts->fitting, parts->seen->row_count);
}

/* --- a granular value first --- */

static status count_values(struct advisor *advisor, const struct key_parts *parts, size_t part,
                           size_t *distinct)
{
    bytes *values;
    return key_part_values(advisor, parts, part, &values, distinct);
}

/* Whether each part behind the first has few values, and some very few, but not all one. */
static status is_common_behind(struct advisor *advisor, const struct key_parts *parts, bool *out)
{
    size_t fewest = SIZE_MAX;
    *out = true;
    for (size_t part = 1; part < parts->count && *out; part++) {
        size_t distinct;
        TRY(count_values(advisor, parts, part, &distinct));
        *out = distinct * COMMON_TIMES <= parts->fitting;
        if (distinct > 1)
            fewest = distinct < fewest ? distinct : fewest;
    }
    *out = *out && fewest != SIZE_MAX && fewest * VERY_COMMON_TIMES <= parts->fitting;
    return status_ok();
}

/* The parts in the other order. */
static status reverse_parts(struct advisor *advisor, const struct key_parts *parts, bytes key,
                            bytes *out)
{
    struct buffer text = {0};
    for (size_t part = key_parts_of(parts, key); part-- > 0;) {
        buffer_append_bytes(&text, key_part(parts, key, part));
        if (part > 0)
            buffer_append_byte(&text, parts->delimiter);
    }
    return keep_text(advisor, &text, out);
}

/* Without the first part. */
static status drop_first(struct advisor *advisor, const struct key_parts *parts, bytes key,
                         bytes *out)
{
    (void)advisor;
    bytes first = key_part(parts, key, 0);
    *out = key.size > first.size ? bytes_from(key, first.size + 1) : bytes_make(NULL, 0);
    return status_ok();
}

/* Without the last one. */
static status drop_last(struct advisor *advisor, const struct key_parts *parts, bytes key,
                        bytes *out)
{
    (void)advisor;
    bytes last = key_part(parts, key, key_parts_of(parts, key) - 1);
    *out =
        key.size > last.size ? bytes_make(key.data, key.size - last.size - 1) : bytes_make(NULL, 0);
    return status_ok();
}

static status add_keys(struct advisor *advisor, const struct key_parts *parts,
                       status (*make)(struct advisor *, const struct key_parts *, bytes, bytes *),
                       struct advice_finding *finding)
{
    for (size_t i = 0; i < ADVICE_KEYS_SHOWN; i++) {
        bytes key = row_to_show(parts->seen, i)->key, better;
        finding_add_key(finding, key);
        TRY(make(advisor, parts, key, &better));
        if (better.size > 0)
            finding_add_better(finding, key, better);
    }
    return status_ok();
}

static status advise_on_order(struct advisor *advisor, const struct key_parts *parts)
{
    enum { PARTS_LEAST = 3 };
    struct advice_finding *finding;
    size_t first, last;
    bool is_common;
    if (!have_parts(parts, PARTS_LEAST))
        return status_ok();
    TRY(count_values(advisor, parts, 0, &first));
    TRY(count_values(advisor, parts, parts->count - 1, &last));
    TRY(is_common_behind(advisor, parts, &is_common));
    if (first * 100 < parts->fitting * GRANULAR_PERCENT || !is_common)
        return status_ok();
    TRY(advise(
        advisor, RULE_key_order, &finding,
        "Of %zu sampled keys with %zu parts, the first part has %zu different values and the "
        "last one %zu.",
        parts->fitting, parts->count, first, last));
    return add_keys(advisor, parts, reverse_parts, finding);
}

/* --- a salt that is another in each row --- */

/* The number that the part is, of digits or hexadecimal ones; false: it is none, or too wide. */
static bool salt_of(bytes part, uint64_t *out)
{
    enum { WIDTH_MOST = 6, LEAST = 2 };
    *out = 0;
    for (size_t i = 0; i < part.size; i++) {
        int c = tolower(part.data[i]);
        if (!isxdigit(c))
            return false;
        *out = *out << 4 | (uint64_t)(isdigit(c) ? c - '0' : c - 'a' + 10);
    }
    return part.size >= LEAST && part.size <= WIDTH_MOST;
}

struct salts {
    size_t salts;
    size_t owners;
    size_t pairs;   /* of both, that differ */
    uint64_t most;  /* the highest salt, as a number */
    bool are_salts; /* numbers of one width */
};

static bool are_of_one_width(const bytes *values, size_t count, struct salts *out)
{
    bool has_letters = false;
    for (size_t i = 0; i < count; i++) {
        uint64_t number;
        if (!salt_of(values[i], &number) || values[i].size != values[0].size)
            return false;
        for (size_t at = 0; at < values[i].size; at++)
            has_letters |= isalpha(values[i].data[at]) != 0;
    }
    for (size_t i = 0; i < values[count - 1].size; i++) { /* the last one is the highest */
        int c = tolower(values[count - 1].data[i]);
        int digit = isdigit(c) ? c - '0' : c - 'a' + 10;
        out->most = out->most * (has_letters ? 16 : 10) + (uint64_t)digit;
    }
    return true;
}

static int order_of_values(const void *a, const void *b)
{
    return bytes_compare(*(const bytes *)a, *(const bytes *)b);
}

/* The first two parts, with what is between them. */
static status count_pairs(struct advisor *advisor, const struct key_parts *parts, size_t *out)
{
    size_t count = 0;
    bytes *pairs = arena_alloc(advisor->arena, parts->seen->row_count * sizeof *pairs);
    *out = 0;
    if (pairs == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < parts->seen->row_count; i++) {
        bytes key = parts->seen->rows[i].key, second = key_part(parts, key, 1);
        if (key_parts_fit(parts, i))
            pairs[count++] = bytes_make(key.data, (size_t)(second.data - key.data) + second.size);
    }
    qsort(pairs, count, sizeof *pairs, order_of_values);
    for (size_t i = 0; i < count; i++)
        *out += i == 0 || !bytes_equal(pairs[i], pairs[i - 1]);
    return status_ok();
}

static status find_salts(struct advisor *advisor, const struct key_parts *parts, struct salts *out)
{
    bytes *values;
    *out = (struct salts){0};
    TRY(key_part_values(advisor, parts, 0, &values, &out->salts));
    out->are_salts = are_of_one_width(values, parts->fitting, out);
    TRY(count_values(advisor, parts, 1, &out->owners));
    return count_pairs(advisor, parts, &out->pairs);
}

/* Places of the sample, whose rows are neighbours. */
static size_t count_places(const struct advice_observations *seen)
{
    size_t count = 0;
    for (size_t i = 0; i < seen->row_count; i++)
        count += i == 0 || seen->rows[i].place != seen->rows[i - 1].place;
    return count;
}

/* Half of the numbers up to the highest are there, or one for each place that was read: a shop's
 * number is neither, for few of all possible ones are a shop's, and each has many rows. Each owner
 * has several rows, nearly each with another number. */
static bool are_scattered(const struct salts *salts, size_t rows, size_t places)
{
    return salts->are_salts && salts->salts >= SALTS_LEAST &&
           (2 * salts->salts >= salts->most + 1 || salts->salts >= places) &&
           salts->owners * SALTED_ROWS <= rows && salts->pairs * 100 >= rows * SALTED_PERCENT;
}

/* Days of things whose numbers stand in front are no owners. */
static bool are_times(const struct key_parts *parts)
{
    size_t times = 0, size;
    for (size_t i = 0; i < parts->seen->row_count; i++) {
        bytes second = key_part(parts, parts->seen->rows[i].key, 1);
        times += key_time_at(second, parts->seen->now_us, &size) != KEY_TIME_NONE;
    }
    return 2 * times > parts->seen->row_count;
}

static status advise_on_salt(struct advisor *advisor, const struct key_parts *parts)
{
    enum { PARTS_LEAST = 3 }; /* the salt, the owner, and which of its rows it is */
    struct advice_finding *finding;
    struct salts salts;
    if (!have_parts(parts, PARTS_LEAST) || are_times(parts))
        return status_ok();
    TRY(find_salts(advisor, parts, &salts));
    if (!are_scattered(&salts, parts->fitting, count_places(parts->seen)))
        return status_ok();
    TRY(advise(advisor, RULE_key_scattered, &finding,
               "%zu sampled keys begin with one of %zu numbers; behind these stand %zu values, "
               "whose rows begin with %.1f different numbers each.",
               parts->fitting, salts.salts, salts.owners,
               (double)salts.pairs / (double)salts.owners));
    return add_keys(advisor, parts, drop_first, finding);
}

/* --- a row for each attribute --- */

/* Whether all rows have one column, and the same. */
static bool have_one_column(const struct advice_observations *seen)
{
    const struct advice_cell *first = NULL;
    for (size_t i = 0; i < seen->row_count; i++) {
        const struct advice_row *row = &seen->rows[i];
        if (row->cell_count == 0)
            return false;
        first = first == NULL ? row->cells : first;
        for (size_t j = 0; j < row->cell_count; j++)
            if (row->cells[j].family != first->family ||
                !bytes_equal(row->cells[j].qualifier, first->qualifier))
                return false;
    }
    return first != NULL;
}

/* The number of different keys without their last part. */
static size_t count_owners(const struct key_parts *parts)
{
    size_t owners = 0;
    bytes before = {0};
    for (size_t i = 0; i < parts->seen->row_count; i++) {
        bytes key = parts->seen->rows[i].key, last = key_part(parts, key, parts->count - 1);
        if (!key_parts_fit(parts, i))
            continue;
        bytes owner = bytes_make(key.data, key.size - last.size);
        owners += !bytes_equal(owner, before);
        before = owner;
    }
    return owners;
}

static bool are_words(const bytes *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (values[i].size == 0 || !isalpha(values[i].data[0]))
            return false;
    return true;
}

static status advise_on_attributes(struct advisor *advisor, const struct key_parts *parts)
{
    struct advice_finding *finding;
    bytes *values;
    size_t words, owners;
    if (!have_parts(parts, 2) || !have_one_column(parts->seen))
        return status_ok();
    TRY(key_part_values(advisor, parts, parts->count - 1, &values, &words));
    owners = count_owners(parts);
    if (words < ATTRIBUTES_LEAST || words > ATTRIBUTES_MOST || !are_words(values, parts->fitting) ||
        owners * ATTRIBUTES_LEAST > parts->fitting)
        return status_ok();
    TRY(advise(advisor, RULE_row_per_attribute, &finding,
               "%zu sampled rows have a single column each, the same in all, and end with one of "
               "%zu words; without these there are %zu different keys.",
               parts->fitting, words, owners));
    return add_keys(advisor, parts, drop_last, finding);
}

status advise_on_grouping(struct advisor *advisor)
{
    struct key_parts parts;
    key_parts_find(advisor->seen, &parts);
    TRY(advise_on_order(advisor, &parts));
    TRY(advise_on_salt(advisor, &parts));
    return advise_on_attributes(advisor, &parts);
}
