/* Tests of the names of fields. */
#include "datastore/model/field_name.h"

#include "base/testing/testing.h"

#define PARENT "projects/p/databases/(default)/collectionGroups/K"

static int make_arena(void **state)
{
    *state = arena_create(1 << 20);
    return *state == NULL;
}

static int destroy_arena(void **state)
{
    arena_destroy(*state);
    return 0;
}

static struct ds_field_name parsed(struct arena *arena, const char *name)
{
    struct ds_field_name field;
    assert_ok(ds_field_parse(name, arena, &field));
    return field;
}

static void test_a_field_has_its_parts(void **state)
{
    struct ds_field_name field = parsed(*state, PARENT "/fields/expiry");
    assert_string_equal(field.database.project, "p");
    assert_string_equal(field.database.id, "");
    assert_string_equal(field.kind, "K");
    assert_int_equal(field.path.count, 1);
    assert_string_equal(field.path.names[0], "expiry");
    assert_string_equal(field.property, "expiry");
    assert_string_equal(field.name, PARENT "/fields/expiry");
    assert_string_equal(field.database_name, "projects/p/databases/(default)");
    field = parsed(*state, "projects/p/databases/d/collectionGroups/K/fields/e");
    assert_string_equal(field.database.id, "d");
}

/* Equal paths have one name. */
static void test_paths_have_one_name(void **state)
{
    struct ds_field_name field = parsed(*state, PARENT "/fields/`outer`.inner");
    assert_int_equal(field.path.count, 2);
    assert_string_equal(field.property, "outer.inner");
    assert_string_equal(field.name, PARENT "/fields/outer.inner");
    field = parsed(*state, PARENT "/fields/`a.b`.`c\\`d\\\\`");
    assert_int_equal(field.path.count, 2);
    assert_string_equal(field.path.names[0], "a.b");
    assert_string_equal(field.path.names[1], "c`d\\");
    assert_string_equal(field.name, PARENT "/fields/`a.b`.`c\\`d\\\\`");
    assert_string_equal(parsed(*state, PARENT "/fields/1a").name, PARENT "/fields/`1a`");
    assert_string_equal(parsed(*state, PARENT "/fields/ü").name, PARENT "/fields/ü");
}

static void test_what_is_no_field(void **state)
{
    static const char *const wrong[] = {
        "",
        "projects/p",
        PARENT,
        PARENT "/fields",
        PARENT "/fields/",
        PARENT "/fields/a/b",
        PARENT "/indexes/a",
        "projects//databases/d/collectionGroups/K/fields/a",
        PARENT "/fields/*",
        PARENT "/fields/a..b",
        PARENT "/fields/a.",
        PARENT "/fields/.a",
        PARENT "/fields/a b",
        PARENT "/fields/`a",
        PARENT "/fields/``",
        PARENT "/fields/`a`b",
        PARENT "/fields/`a\\",
        PARENT "/fields/__a__",
        "projects/p/databases/(default)/collectionGroups/__default__/fields/a",
        "projects/p/databases/(default)/collectionGroups/__Stat_Kind__/fields/timestamp",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct ds_field_name field;
        assert_status(ds_field_parse(wrong[i], *state, &field), STATUS_INVALID_ARGUMENT);
    }
}

static void test_parents(void **state)
{
    struct ds_field_name field;
    assert_ok(ds_field_parent_parse("projects/p/databases/d/collectionGroups/-", *state, &field));
    assert_string_equal(field.kind, "-");
    assert_string_equal(field.name, "projects/p/databases/d/collectionGroups/-");
    assert_status(ds_field_parent_parse(PARENT "/fields/a", *state, &field),
                  STATUS_INVALID_ARGUMENT);
    assert_status(ds_field_parent_parse("projects/p/databases/d", *state, &field),
                  STATUS_INVALID_ARGUMENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_arena, destroy_arena)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_field_has_its_parts),
        TEST(test_paths_have_one_name),
        TEST(test_what_is_no_field),
        TEST(test_parents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
