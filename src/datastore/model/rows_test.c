/* Tests of row keys: as documented, in their ranges, and taken apart. */
#include "datastore/model/rows.h"

#include "base/testing/testing.h"
#include "datastore/testing/testing.h"
#include "row/row_key.h"

static int make_arena(void **state)
{
    *state = arena_create(16 << 20);
    return *state == NULL;
}

static int free_arena(void **state)
{
    arena_destroy(*state);
    return 0;
}

#define LITERAL(string) bytes_make(string, sizeof(string) - 1)
#define ONE             "\1\x80\0\0\0\0\0\0\1" /* an id of 1 behind its kind */

/* Copies the buffer's bytes into the arena, and frees it. */
static bytes keep(struct arena *arena, struct buffer *out)
{
    bytes kept = arena_copy(arena, buffer_bytes(out));
    buffer_free(out);
    *out = (struct buffer){0};
    assert_non_null(kept.data);
    return kept;
}

static bytes path(struct arena *arena, const char *text)
{
    struct buffer out = {0};
    ds_path_append(&out, test_key(arena, "", text));
    return keep(arena, &out);
}

static bytes value(struct arena *arena, const char *json, enum ds_flip flip)
{
    struct buffer out = {0};
    ds_value_append(&out, test_value(arena, json), flip);
    return keep(arena, &out);
}

static void test_row_keys_are_as_documented(void **state)
{
    struct arena *arena = *state;
    struct buffer out = {0};
    bytes n = LITERAL("n"), k = LITERAL("K"), p = LITERAL("p"), at = path(arena, "K/1");
    ds_entity_row(&out, test_key(arena, "n", "K/1"));
    assert_true(bytes_equal(keep(arena, &out), LITERAL("En\0\1K\0\1" ONE)));
    ds_kind_row(&out, test_key(arena, "n", "K/1/J/1"));
    assert_true(bytes_equal(keep(arena, &out), LITERAL("Kn\0\1J\0\1K\0\1" ONE "J\0\1" ONE)));
    ds_property_row(&out, n, k, p, value(arena, "{'booleanValue': true}", DS_ASCENDING), at);
    assert_true(bytes_equal(keep(arena, &out), LITERAL("An\0\1K\0\1p\0\1\x20\1K\0\1" ONE)));
    ds_composite_prefix(&out, n, 258, at);
    assert_true(bytes_equal(keep(arena, &out), LITERAL("Cn\0\1\0\0\0\0\0\0\1\2K\0\1" ONE "\0\1")));
    ds_composite_prefix(&out, n, 258, LITERAL(""));
    assert_true(bytes_equal(keep(arena, &out), LITERAL("Cn\0\1\0\0\0\0\0\0\1\2")));
    ds_numbers_row(&out, n, k);
    assert_true(bytes_equal(keep(arena, &out), LITERAL("In\0\1K\0\1")));
    ds_index_row(&out, 258);
    assert_true(bytes_equal(keep(arena, &out), LITERAL("X\0\0\0\0\0\0\1\2")));
}

/* Whether a row key is in the range of those that begin with the prefix. */
static bool is_in(struct arena *arena, bytes prefix, bytes row_key)
{
    struct buffer end = {0};
    assert_true(key_after_prefix(&end, prefix));
    bytes after = keep(arena, &end);
    return bytes_compare(prefix, row_key) <= 0 && bytes_compare(row_key, after) < 0;
}

static void test_a_kinds_range_has_that_kind(void **state)
{
    struct arena *arena = *state;
    struct buffer out = {0};
    const struct {
        const char *name_space;
        const char *path;
        bool is_in;
    } cases[] = {
        {"n", "K/1", true},   {"n", "A/1/K/'x'", true}, {"n", "K/1/J/1", false},
        {"n", "KK/1", false}, {"", "K/1", false},       {"nn", "K/1", false},
    };
    ds_kind_prefix(&out, LITERAL("n"), LITERAL("K"));
    bytes prefix = keep(arena, &out);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ds_kind_row(&out, test_key(arena, cases[i].name_space, cases[i].path));
        assert_int_equal(is_in(arena, prefix, keep(arena, &out)), cases[i].is_in);
    }
}

static void test_an_ancestors_range_has_its_descendants(void **state)
{
    struct arena *arena = *state;
    struct buffer out = {0};
    const struct {
        const char *path;
        bool is_in;
    } cases[] = {
        {"K/'a'", true},   {"K/'a'/J/1", true}, {"K/'a'/J/1/K/1", true},
        {"K/'ab'", false}, {"K/1", false},      {"J/1/K/'a'", false},
    };
    ds_entity_row(&out, test_key(arena, "n", "K/'a'"));
    bytes prefix = keep(arena, &out);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ds_entity_row(&out, test_key(arena, "n", cases[i].path));
        assert_int_equal(is_in(arena, prefix, keep(arena, &out)), cases[i].is_in);
    }
}

static void test_a_values_range_has_that_value(void **state)
{
    struct arena *arena = *state;
    const char *const values[] = {"{'stringValue': 'a'}", "{'stringValue': 'ab'}",
                                  "{'stringValue': ''}", "{'nullValue': 'NULL_VALUE'}",
                                  "{'integerValue': 3}"};
    enum { VALUES = sizeof values / sizeof values[0] };
    bytes n = LITERAL("n"), k = LITERAL("K"), p = LITERAL("p");
    struct buffer out = {0};
    for (int each = 0; each < VALUES * VALUES; each++) {
        bytes wanted = value(arena, values[each % VALUES], DS_ASCENDING);
        bytes other = value(arena, values[each / VALUES], DS_ASCENDING);
        ds_property_prefix(&out, n, k, p);
        buffer_append_bytes(&out, wanted);
        bytes prefix = keep(arena, &out);
        ds_property_row(&out, n, k, p, other, path(arena, "K/1"));
        assert_int_equal(is_in(arena, prefix, keep(arena, &out)), bytes_equal(wanted, other));
    }
}

/* The row's entity is the key, in the namespace "n". */
static void assert_entity(struct arena *arena, const struct ds_row *row, const char *expected)
{
    Ds__Key *key;
    assert_ok(ds_row_entity(row, "p", "", arena, &key));
    assert_int_equal(ds_key_value_compare(key, test_key(arena, "n", expected)), 0);
}

static void test_rows_come_apart(void **state)
{
    struct arena *arena = *state;
    struct buffer out = {0};
    struct ds_row row;
    ds_entity_row(&out, test_key(arena, "n", "K/1/J/'x'"));
    assert_true(ds_row_parse(keep(arena, &out), NULL, &row));
    assert_int_equal(row.kind, DS_ENTITY_ROW);
    assert_entity(arena, &row, "K/1/J/'x'");
    ds_kind_row(&out, test_key(arena, "n", "K/1"));
    assert_true(ds_row_parse(keep(arena, &out), NULL, &row));
    assert_true(bytes_equal(row.kind_name, LITERAL("K\0\1")));
    assert_entity(arena, &row, "K/1");
    bytes abc = value(arena, "{'stringValue': 'abc'}", DS_ASCENDING);
    ds_property_row(&out, LITERAL("n"), LITERAL("K"), LITERAL("p"), abc, path(arena, "K/1"));
    assert_true(ds_row_parse(keep(arena, &out), NULL, &row));
    assert_true(bytes_equal(row.property, LITERAL("p\0\1")));
    assert_true(bytes_equal(row.values, abc));
    assert_entity(arena, &row, "K/1");
    ds_numbers_row(&out, LITERAL("n"), LITERAL("K"));
    assert_true(ds_row_parse(keep(arena, &out), NULL, &row));
    ds_index_row(&out, 7);
    assert_true(ds_row_parse(keep(arena, &out), NULL, &row));
    assert_int_equal(row.index, 7);
    Ds__Key *key;
    assert_status(ds_row_entity(&row, "p", "", arena, &key), STATUS_INTERNAL);
}

static void test_composite_rows_come_apart(void **state)
{
    struct arena *arena = *state;
    struct buffer out = {0};
    struct ds_row row;
    const enum ds_flip flips[] = {DS_DESCENDING, DS_ASCENDING};
    struct ds_index_shape shape = {
        .flips = flips, .values = 2, .key_flip = DS_DESCENDING, .has_ancestors = true};
    bytes ancestor = path(arena, "K/1");
    ds_composite_prefix(&out, LITERAL("n"), 9, ancestor);
    buffer_append_bytes(&out, value(arena, "{'stringValue': 'abc'}", DS_DESCENDING));
    buffer_append_bytes(&out, value(arena, "{'integerValue': 3}", DS_ASCENDING));
    ds_row_path_append(&out, path(arena, "K/1/J/2"), DS_DESCENDING);
    bytes row_key = keep(arena, &out);
    assert_true(ds_row_parse(row_key, &shape, &row));
    assert_int_equal(row.index, 9);
    assert_true(bytes_equal(row.ancestor, ancestor));
    assert_int_equal(row.values.size, 1 + 5 + 1 + 8);
    assert_entity(arena, &row, "K/1/J/2");
    assert_false(ds_row_parse(row_key, NULL, &row));
    shape.has_ancestors = false;
    assert_false(ds_row_parse(row_key, &shape, &row));
}

static void test_the_range_of_one_entity(void **state)
{
    (void)state;
    assert_true(ds_is_one_entity(LITERAL("En\0\1K"), LITERAL("En\0\1K\0")));
    assert_false(ds_is_one_entity(LITERAL("Kn\0\1K"), LITERAL("Kn\0\1K\0")));
    assert_false(ds_is_one_entity(LITERAL("En\0\1K"), LITERAL("En\0\1K\1")));
    assert_false(ds_is_one_entity(LITERAL("En\0\1K"), LITERAL("En\0\1L\0")));
    assert_false(ds_is_one_entity(LITERAL("En\0\1K"), LITERAL("En\0\1K")));
    assert_false(ds_is_one_entity(LITERAL("E"), LITERAL("")));
}

static void test_the_section_of_a_row(void **state)
{
    (void)state;
    const bytes sections[][2] = {
        {LITERAL("An\0\1K\0\1p\0\1\x20\1K\0\1" ONE), LITERAL("An\0\1K\0\1p\0\1")},
        {LITERAL("A\0\1K\0\1p\0\1"), LITERAL("A\0\1K\0\1p\0\1")},
        {LITERAL("Kn\0\1J\0\1K\0\1" ONE "J\0\1" ONE), LITERAL("Kn\0\1J\0\1")},
        {LITERAL("En\0\1K\0\1" ONE "J\0\1" ONE), LITERAL("En\0\1K\0\1")},
        {LITERAL("Cn\0\1\0\0\0\0\0\0\1\2K\0\1"), LITERAL("Cn\0\1\0\0\0\0\0\0\1\2")},
        {LITERAL("In\0\1K\0\1"), LITERAL("I")},
        {LITERAL("X12345678"), LITERAL("X")},
        /* cut off */
        {LITERAL("An\0\1K\0\1prope"), LITERAL("An\0\1K\0\1prope")},
        {LITERAL("Cn\0\1\0\0\0"), LITERAL("Cn\0\1\0\0\0")},
        {LITERAL("E"), LITERAL("E")},
        {LITERAL("?"), LITERAL("?")},
        {LITERAL(""), LITERAL("")},
    };
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        assert_true(bytes_equal(ds_row_section(sections[i][0]), sections[i][1]));
}

static void test_what_is_no_row_key_is_refused(void **state)
{
    (void)state;
    const bytes bad[] = {
        LITERAL(""),
        LITERAL("E"),
        LITERAL("E\0\1"),
        LITERAL("En\0\1K"),
        LITERAL("Bn\0\1K"),
        LITERAL("K\0\1K\0\1"),
        LITERAL("X1234567"),
        LITERAL("X123456789"),
        LITERAL("A\0\1K\0\1p\0\1\x20"),
        LITERAL("A\0\1K\0\1p\0\1\x20\1"),
        LITERAL("In\0\1"),
        LITERAL("In\0\1K\0\1+"),
        LITERAL("Cn\0\1"),
    };
    struct ds_index_shape shape = {.values = 0};
    struct ds_row row;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(ds_row_parse(bad[i], &shape, &row));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_row_keys_are_as_documented),
        cmocka_unit_test(test_a_kinds_range_has_that_kind),
        cmocka_unit_test(test_an_ancestors_range_has_its_descendants),
        cmocka_unit_test(test_a_values_range_has_that_value),
        cmocka_unit_test(test_rows_come_apart),
        cmocka_unit_test(test_composite_rows_come_apart),
        cmocka_unit_test(test_the_range_of_one_entity),
        cmocka_unit_test(test_the_section_of_a_row),
        cmocka_unit_test(test_what_is_no_row_key_is_refused),
    };
    return cmocka_run_group_tests(tests, make_arena, free_arena);
}
