/* Names of what lies in a database. */
#include "datastore/database_name.h"

#include "base/testing/testing.h"

static void assert_parsed(struct arena *arena, const char *name, const char *expected)
{
    struct ds_database_name parsed;
    struct buffer text = {0};
    assert_ok(ds_database_name_parse(name, arena, &parsed));
    buffer_append_format(&text, "%s,%s,%s,%s%c", parsed.project, parsed.database,
                         parsed.kind == NULL ? "-" : parsed.kind,
                         parsed.index == NULL ? "-" : parsed.index, 0);
    assert_string_equal((const char *)text.data, expected);
    buffer_free(&text);
}

static void test_what_is_in_a_name(void **state)
{
    struct arena *arena = arena_create(1 << 16);
    (void)state;
    assert_parsed(arena, "projects/p/databases/d", "p,d,-,-");
    assert_parsed(arena, "projects/p/databases/(default)", "p,,-,-");
    assert_parsed(arena, "projects/p/databases/d/collectionGroups/K", "p,d,K,-");
    assert_parsed(arena, "projects/p/databases/d/collectionGroups/K/indexes/7", "p,d,K,7");
    assert_parsed(arena, "projects/projects/databases/databases", "projects,databases,-,-");
    arena_destroy(arena);
}

static void test_what_is_no_name(void **state)
{
    static const char *const names[] = {
        "",
        "projects/p",
        "projects/p/databases",
        "projects/p/databases/",
        "projects//databases/d",
        "projects/p/instances/i",
        "project/p/databases/d",
        "/projects/p/databases/d",
        "projects/p/databases/d/",
        "projects/p/databases/d/collectionGroups",
        "projects/p/databases/d/collectionGroups/K/",
        "projects/p/databases/d/indexes/7",
        "projects/p/databases/d/collectionGroups/K/indexes/7/more",
        "projects/p/databases/d/collectionGroups/K/fields/f",
    };
    struct arena *arena = arena_create(1 << 16);
    struct ds_database_name parsed;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_status(ds_database_name_parse(names[i], arena, &parsed), STATUS_INVALID_ARGUMENT);
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_in_a_name),
        cmocka_unit_test(test_what_is_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
