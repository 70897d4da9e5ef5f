/* Fuzzer: keys of overflow cells. What parses is what would be written, whatever the bytes; keys
 * sort as their parts do, and a row's prefixes and range hold its cells and no other's.
 *
 * Input: choices (base/testing/fuzzing.h): a key to be parsed, then the parts of two. */
#include "base/testing/fuzzing.h"
#include "row/row_key.h"

#include <stdlib.h>

enum { MOST_PART = 24, MOST_KEY = 64 };

static void write_key(struct buffer *out, const struct overflow_key *parts)
{
    overflow_cell_key(out, parts->row_key, parts->family, parts->qualifier, parts->timestamp_us);
    CHECK(!out->failed);
}

/* Whatever the bytes are, reading tells the truth about them. */
static void parse_anything(bytes key)
{
    struct buffer scratch = {0}, again = {0};
    struct overflow_key parts;
    if (overflow_key_parse(key, &scratch, &parts)) {
        uint32_t family;
        int64_t timestamp_us;
        write_key(&again, &parts);
        CHECK(bytes_equal(buffer_bytes(&again), key));
        CHECK(overflow_key_tail(key, &family, &timestamp_us));
        CHECK(family == parts.family && timestamp_us == parts.timestamp_us);
    }
    buffer_free(&scratch);
    buffer_free(&again);
}

static struct overflow_key choose_parts(struct choices *choices)
{
    struct overflow_key parts;
    parts.row_key = choose_bytes(choices, MOST_PART);
    parts.family = (uint32_t)choose_number(choices, sizeof parts.family);
    parts.qualifier = choose_bytes(choices, MOST_PART);
    parts.timestamp_us = (int64_t)choose_number(choices, sizeof parts.timestamp_us);
    return parts;
}

static int compare_parts(const struct overflow_key *a, const struct overflow_key *b)
{
    int order = bytes_compare(a->row_key, b->row_key);
    if (order == 0 && a->family != b->family)
        order = a->family < b->family ? -1 : 1;
    if (order == 0)
        order = bytes_compare(a->qualifier, b->qualifier);
    if (order == 0 && a->timestamp_us != b->timestamp_us)
        order = a->timestamp_us > b->timestamp_us ? -1 : 1;
    return order;
}

static int sign(int number)
{
    return (number > 0) - (number < 0);
}

/* `write` gives a prefix that `other`'s key has just if the parts that it is made of are the same.
 */
static void check_prefixes(const struct overflow_key *parts, bytes other,
                           const struct overflow_key *its)
{
    struct buffer prefix = {0};
    bool same = bytes_equal(parts->row_key, its->row_key);
    overflow_row_prefix(&prefix, parts->row_key);
    CHECK(bytes_start_with(other, buffer_bytes(&prefix)) == same);
    buffer_clear(&prefix);
    same = same && parts->family == its->family;
    overflow_family_prefix(&prefix, parts->row_key, parts->family);
    CHECK(bytes_start_with(other, buffer_bytes(&prefix)) == same);
    buffer_clear(&prefix);
    same = same && bytes_equal(parts->qualifier, its->qualifier);
    overflow_column_prefix(&prefix, parts->row_key, parts->family, parts->qualifier);
    CHECK(bytes_start_with(other, buffer_bytes(&prefix)) == same);
    buffer_free(&prefix);
}

/* The range of rows [from, to) in the overflow space holds the cells of those rows. */
static void check_range(bytes from, bytes to, bytes key, bytes row_key)
{
    struct buffer start = {0}, end = {0};
    overflow_range_start(&start, from);
    overflow_range_end(&end, to);
    CHECK((bytes_compare(key, buffer_bytes(&start)) >= 0) == (bytes_compare(row_key, from) >= 0));
    CHECK((bytes_compare(key, buffer_bytes(&end)) < 0) ==
          (to.size == 0 || bytes_compare(row_key, to) < 0));
    buffer_free(&start);
    buffer_free(&end);
}

/* The end of a prefix comes after all that start with it, and before all else that is greater. */
static void check_prefix_end(bytes prefix, bytes key)
{
    struct buffer end = {0};
    bool has_end = key_after_prefix(&end, prefix);
    bool is_below = !has_end || bytes_compare(key, buffer_bytes(&end)) < 0;
    CHECK(bytes_start_with(key, prefix) == (is_below && bytes_compare(key, prefix) >= 0));
    buffer_free(&end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct choices choices = choices_of(data, size);
    parse_anything(choose_bytes(&choices, MOST_KEY));
    struct overflow_key a = choose_parts(&choices), b = choose_parts(&choices);
    struct buffer key_a = {0}, key_b = {0};
    write_key(&key_a, &a);
    write_key(&key_b, &b);
    parse_anything(buffer_bytes(&key_a));
    CHECK(sign(bytes_compare(buffer_bytes(&key_a), buffer_bytes(&key_b))) ==
          sign(compare_parts(&a, &b)));
    check_prefixes(&a, buffer_bytes(&key_b), &b);
    check_range(a.row_key, b.qualifier, buffer_bytes(&key_b), b.row_key);
    check_range(a.row_key, a.qualifier, buffer_bytes(&key_b), b.row_key);
    check_prefix_end(a.row_key, b.row_key);
    buffer_free(&key_a);
    buffer_free(&key_b);
    return 0;
}
