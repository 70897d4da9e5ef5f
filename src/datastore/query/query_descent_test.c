/* Descents, held against all rows of the index with their values inverted, sorted: over a database
 * in memory, with values that one, a few, as many as are held, and more entities have. */
#include "base/check.h"
#include "base/testing/testing.h"
#include "datastore/query/query_descent.h"
#include "datastore/testing/query_fake.h"
#include "datastore/testing/query_random.h"
#include "datastore/testing/testing.h"
#include "row/row_key.h"

#include <stdio.h>
#include <stdlib.h>

/* --- the rows --- */

/* Values and how many entities have them. Between those of one type that lie side by side there is
 * nothing; some begin like others. */
static const struct {
    const char *json;
    int entities;
} groups[] = {
    {"{'nullValue': 'NULL_VALUE'}", 3},
    {"{'integerValue': '-1'}", DS_DESCENT_ROWS},
    {"{'integerValue': '0'}", DS_DESCENT_ROWS + 1},
    {"{'integerValue': '1'}", 1},
    {"{'integerValue': '255'}", 2 * DS_DESCENT_ROWS},
    {"{'integerValue': '256'}", 2},
    {"{'booleanValue': false}", DS_DESCENT_ROWS + 1},
    {"{'booleanValue': true}", 100},
    {"{'stringValue': ''}", DS_DESCENT_ROWS - 1},
    {"{'blobValue': 'AA=='}", DS_DESCENT_ROWS + 2}, /* a zero byte */
    {"{'blobValue': 'AAE='}", 1},
    {"{'stringValue': 'a'}", 40},
    {"{'blobValue': '/w=='}", 2},
    {"{'blobValue': '////'}", 33},
    {"{'doubleValue': 0.5}", 5},
    {"{'keyValue': {'path': [{'kind': 'K', 'id': '1'}]}}", 20},
    {"{'keyValue': {'path': [{'kind': 'K', 'id': '1'}, {'kind': 'K', 'id': '1'}]}}", 2},
};
enum { GROUPS = sizeof groups / sizeof groups[0], MOST_ROWS = 1000 };

struct fixture {
    struct fake *fake;
    struct ds_reading reading;
    bytes prefix;
    bytes behind;              /* what begins with it */
    bytes rows[MOST_ROWS];     /* of the index, that are there or could be */
    bytes mirrored[MOST_ROWS]; /* of those that are there, sorted */
    size_t row_count;
    size_t count;
};

static bytes keep(struct fixture *f, struct buffer *out)
{
    bytes kept = arena_copy(f->fake->arena, buffer_bytes(out));
    assert_true(kept.data != NULL && !out->failed);
    buffer_free(out);
    return kept;
}

/* The key that a row would have if the index were a descending one. */
static bytes mirror(struct fixture *f, bytes row_key)
{
    struct buffer out = {0};
    bytes rest = bytes_from(row_key, f->prefix.size);
    size_t size = ds_value_size(rest, DS_ASCENDING);
    buffer_append_bytes(&out, f->prefix);
    ds_bytes_append(&out, bytes_make(rest.data, size), DS_DESCENDING);
    buffer_append_bytes(&out, bytes_from(rest, size));
    return keep(f, &out);
}

static int compare(const void *a, const void *b)
{
    const bytes *first = a, *second = b;
    return bytes_compare(*first, *second);
}

static void put_groups(struct fixture *f)
{
    char path[32], properties[256];
    for (int i = 0; i < GROUPS; i++)
        for (int j = 0; j < groups[i].entities; j++) {
            snprintf(path, sizeof path, j % 3 == 0 ? "K/%d" : "K/1/K/%d", 1 + 7 * j * GROUPS + i);
            snprintf(properties, sizeof properties, "'a': %s, 'A': {'integerValue': '%d'}",
                     groups[i].json, j);
            fake_put(f->fake, path, properties);
        }
    fake_put(f->fake, "J/1", "'a': {'integerValue': '1'}");
    fake_put(f->fake, "L/1", "'a': {'integerValue': '1'}");
}

/* Rows that could be: in the middle of each group and at its ends, and of values in between. */
static void add_possible(struct fixture *f)
{
    static const char *const others[] = {"{'integerValue': '2'}", "{'stringValue': 'aa'}",
                                         "{'doubleValue': 0.6}"};
    static const char *const paths[] = {"A/1", "K/2", "K/1/K/700", "K/3000", "Z/1"};
    struct buffer row = {0};
    for (int i = 0; i < GROUPS + 3; i++)
        for (int j = 0; j < 5; j++) {
            const char *json = i < GROUPS ? groups[i].json : others[i - GROUPS];
            buffer_append_bytes(&row, f->prefix);
            ds_value_append(&row, test_value(f->fake->arena, json), DS_ASCENDING);
            ds_path_append(&row, test_key(f->fake->arena, "", paths[j]));
            assert_true(f->row_count < MOST_ROWS);
            f->rows[f->row_count++] = keep(f, &row);
        }
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    void *fake;
    struct buffer out = {0};
    assert_non_null(f);
    assert_int_equal(fake_setup(&fake), 0);
    f->fake = fake;
    put_groups(f);
    f->reading = fake_reading(f->fake);
    ds_property_prefix(&out, bytes_of(""), bytes_of("K"), bytes_of("a"));
    f->prefix = keep(f, &out);
    key_after_prefix(&out, f->prefix);
    f->behind = keep(f, &out);
    const struct ds_index_row *rows = f->fake->rows.items;
    for (size_t i = 0; i < f->fake->rows.count; i++)
        if (bytes_start_with(rows[i].key, f->prefix)) {
            assert_true(f->row_count < MOST_ROWS);
            f->mirrored[f->count++] = mirror(f, rows[i].key);
            f->rows[f->row_count++] = rows[i].key;
        }
    add_possible(f);
    qsort(f->mirrored, f->count, sizeof(bytes), compare);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    void *fake = f->fake;
    assert_int_equal(f->fake->opened, 0);
    free(f);
    return fake_teardown(&fake);
}

/* --- reading --- */

/* The first at or after a key. */
static size_t first_from(const struct fixture *f, bytes key)
{
    size_t at = 0;
    while (at < f->count && bytes_compare(f->mirrored[at], key) < 0)
        at++;
    return at;
}

static struct ds_descent *open_descent(struct fixture *f, bytes from, bytes to)
{
    struct ds_descent *descent;
    assert_ok(ds_descent_open(&f->reading.snapshot, f->prefix, from, to, f->fake->arena, &descent));
    return descent;
}

/* The next is the one at `at`, or none if that is not before `end`. */
static void assert_next(struct fixture *f, struct ds_descent *descent, size_t at, size_t end)
{
    struct ds_row_found row;
    bool found;
    assert_ok(ds_descent_next(descent, &row, &found));
    assert_int_equal(found, at < end);
    if (!found)
        return;
    assert_true(bytes_equal(row.key, f->mirrored[at]));
    assert_int_equal(row.value.size, 1);
}

/* Keys to begin at, end before, or seek: those of rows, and what is made of them. */
static bytes random_key(struct fixture *f)
{
    struct buffer out = {0};
    bytes key = mirror(f, f->rows[random_below((unsigned)f->row_count)]);
    size_t value = ds_value_size(bytes_from(key, f->prefix.size), DS_DESCENDING);
    size_t size = f->prefix.size + value;
    switch (random_below(6)) {
    case 0: /* the value */
        buffer_append(&out, key.data, size);
        break;
    case 1: /* behind the value */
        key_after_prefix(&out, bytes_make(key.data, size));
        break;
    case 2: /* behind the row */
        buffer_append_bytes(&out, key);
        buffer_append_byte(&out, 0);
        break;
    case 3: /* any beginning */
        buffer_append(&out, key.data, f->prefix.size + random_below((unsigned)(value + 4)));
        break;
    case 4: /* with any byte */
        buffer_append(&out, key.data, f->prefix.size + random_below((unsigned)value));
        buffer_append_byte(&out, (uint8_t)random_below(256));
        break;
    default:
        buffer_append_bytes(&out, key);
        break;
    }
    return keep(f, &out);
}

/* --- tests --- */

static void test_values_fall_and_keys_rise(void **state)
{
    struct fixture *f = *state;
    struct ds_descent *descent = open_descent(f, f->prefix, f->behind);
    for (size_t i = 0; i <= f->count; i++)
        assert_next(f, descent, i, f->count);
    assert_next(f, descent, f->count, f->count);
    ds_descent_close(descent);
}

/* One row is read too many for small groups; of large ones no more are read twice than are held. */
static void test_few_rows_are_read_in_vain(void **state)
{
    struct fixture *f = *state;
    for (size_t first = 0; first < f->count; first++) {
        struct ds_descent *descent = open_descent(f, f->mirrored[first], f->behind);
        f->fake->read = 0;
        for (size_t i = first; i < first + 5; i++)
            assert_next(f, descent, i, f->count);
        assert_in_range(f->fake->read, 1, 5 + 2 * (DS_DESCENT_ROWS + 1));
        ds_descent_close(descent);
    }
}

static void test_a_descent_begins_and_ends_anywhere(void **state)
{
    struct fixture *f = *state;
    for (int round = 0; round < 3000; round++) {
        bytes from = round % 5 == 0 ? f->prefix : random_key(f);
        bytes to = round % 5 == 1 ? f->behind : random_key(f);
        struct ds_descent *descent = open_descent(f, from, to);
        size_t end = first_from(f, to);
        for (size_t i = first_from(f, from); i < end; i++)
            assert_next(f, descent, i, end);
        assert_next(f, descent, end, end);
        ds_descent_close(descent);
    }
}

/* A few rows, a leap to any key that is not before them, and on. */
static void test_a_descent_can_be_sent_on(void **state)
{
    struct fixture *f = *state;
    for (int round = 0; round < 3000; round++) {
        struct ds_descent *descent = open_descent(f, f->prefix, f->behind);
        size_t at = 0;
        while (at < f->count) {
            for (unsigned steps = 1 + random_below(round % 2 == 0 ? 4 : 40); steps > 0; steps--) {
                assert_next(f, descent, at, f->count);
                at += at < f->count;
            }
            bytes key = random_key(f);
            if (at == f->count || bytes_compare(key, f->mirrored[at - 1]) <= 0)
                continue;
            assert_ok(ds_descent_seek(descent, key));
            size_t target = first_from(f, key);
            at = target > at ? target : at;
        }
        assert_next(f, descent, at, f->count);
        ds_descent_close(descent);
    }
}

/* Every row that is there or could be, and those of other indexes, is noted if and only if it is
 * looked at. */
static void test_what_is_noted_is_what_was_looked_at(void **state)
{
    struct fixture *f = *state;
    for (int round = 0; round < 3000; round++) {
        bytes from = random_key(f), to = random_key(f);
        if (bytes_compare(from, to) >= 0)
            continue;
        f->fake->ranges.count = 0;
        assert_ok(ds_descent_note(&f->reading, f->prefix, from, to));
        assert_in_range(f->fake->ranges.count, 0, 3);
        const struct ds_read_range *ranges = f->fake->ranges.items;
        for (size_t i = 0; i < f->row_count; i++) {
            bytes key = mirror(f, f->rows[i]);
            int times = 0;
            for (size_t j = 0; j < f->fake->ranges.count; j++)
                times += bytes_compare(ranges[j].from, f->rows[i]) <= 0 &&
                         bytes_compare(f->rows[i], ranges[j].to) < 0;
            assert_int_equal(times, bytes_compare(from, key) <= 0 && bytes_compare(key, to) < 0);
        }
        for (size_t j = 0; j < f->fake->ranges.count; j++)
            assert_true(bytes_compare(ranges[j].from, f->prefix) >= 0 &&
                        bytes_compare(ranges[j].to, f->behind) <= 0);
    }
}

static void test_an_empty_index_has_an_end(void **state)
{
    struct fixture *f = *state;
    struct buffer out = {0};
    ds_property_prefix(&out, bytes_of(""), bytes_of("K"), bytes_of("b"));
    f->prefix = keep(f, &out);
    key_after_prefix(&out, f->prefix);
    f->behind = keep(f, &out);
    struct ds_descent *descent = open_descent(f, f->prefix, f->behind);
    assert_next(f, descent, 0, 0);
    ds_descent_close(descent);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_values_fall_and_keys_rise),           TEST(test_few_rows_are_read_in_vain),
        TEST(test_a_descent_begins_and_ends_anywhere),  TEST(test_a_descent_can_be_sent_on),
        TEST(test_what_is_noted_is_what_was_looked_at), TEST(test_an_empty_index_has_an_end),
    };
    random_seed(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
