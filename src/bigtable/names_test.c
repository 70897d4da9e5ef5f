/* Tests of names.h and field_mask.h. */
#include "bigtable/field_mask.h"
#include "bigtable/names.h"

#include "base/testing.h"

static bool is_refused(status s)
{
    bool refused = s.code == STATUS_INVALID_ARGUMENT && status_message(s)[0] != '\0';
    status_free(s);
    return refused;
}

static bool is_fine(status s)
{
    bool fine = status_is_ok(s);
    status_free(s);
    return fine;
}

static void test_instance_names(void **state)
{
    (void)state;
    assert_true(is_fine(name_check_instance("projects/p/instances/i")));
    assert_true(is_fine(name_check_instance("projects/example.com:p/instances/i")));
    assert_true(is_refused(name_check_instance("")));
    assert_true(is_refused(name_check_instance("projects//instances/i")));
    assert_true(is_refused(name_check_instance("projects/p/instances/")));
    assert_true(is_refused(name_check_instance("projects/p/instances/i/tables/t")));
    assert_true(is_refused(name_check_instance("projects/p")));
}

static void test_table_names(void **state)
{
    (void)state;
    assert_true(is_fine(name_check_table("projects/p/instances/i/tables/t")));
    assert_true(is_refused(name_check_table("projects/p/instances/i/tables/")));
    assert_true(is_refused(name_check_table("projects/p/instances/i/tables/t/")));
    assert_true(is_refused(name_check_table("projects/p/instances/i")));
    assert_true(is_refused(name_check_table("t")));
}

static void test_table_ids(void **state)
{
    (void)state;
    const char fifty[] = "a123456789b123456789c123456789d123456789e123456789";
    const char more[] = "a123456789b123456789c123456789d123456789e123456789f";
    assert_true(is_fine(name_check_table_id("_t-1.x")));
    assert_true(is_fine(name_check_table_id("9t")));
    assert_true(is_fine(name_check_table_id(fifty)));
    assert_true(is_refused(name_check_table_id(more)));
    assert_true(is_refused(name_check_table_id("")));
    assert_true(is_refused(name_check_table_id("-t")));
    assert_true(is_refused(name_check_table_id(".t")));
    assert_true(is_refused(name_check_table_id("a/b")));
    assert_true(is_refused(name_check_table_id("\xc3\xa4")));
}

static void test_family_ids(void **state)
{
    (void)state;
    assert_true(is_fine(name_check_family("-f.1_")));
    assert_true(is_refused(name_check_family("")));
    assert_true(is_refused(name_check_family("a:b")));
    assert_true(is_refused(name_check_family("a b")));
}

static void test_table_name_and_id(void **state)
{
    (void)state;
    struct arena *arena = arena_create(1 << 20);
    assert_non_null(arena);
    char *name = name_of_table(arena, "projects/p/instances/i", "t");
    assert_string_equal(name, "projects/p/instances/i/tables/t");
    assert_string_equal(name_id(name), "t");
    arena_destroy(arena);
}

static void test_mask_paths_in_both_spellings(void **state)
{
    (void)state;
    assert_true(field_path_is("gc_rule", "gc_rule"));
    assert_true(field_path_is("gcRule", "gc_rule"));
    assert_true(field_path_is("changeStreamConfig.retentionPeriod",
                              "change_stream_config.retention_period"));
    assert_false(field_path_is("gcrule", "gc_rule"));
    assert_false(field_path_is("gc_rule2", "gc_rule"));
    assert_false(field_path_is("gc_rul", "gc_rule"));
    assert_false(field_path_is("", "gc_rule"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_instance_names),
        cmocka_unit_test(test_table_names),
        cmocka_unit_test(test_table_ids),
        cmocka_unit_test(test_family_ids),
        cmocka_unit_test(test_table_name_and_id),
        cmocka_unit_test(test_mask_paths_in_both_spellings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
