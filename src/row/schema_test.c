/* Tests of schemas and of the rules of garbage collection (reference C7). */
#include "row/schema.h"

#include "base/testing/testing.h"

static const struct gc_rule newest_two = {.kind = GC_MAX_VERSIONS, .max_versions = 2};
static const struct gc_rule a_second = {.kind = GC_MAX_AGE, .max_age_us = 1000000};
static const struct gc_rule both[] = {{.kind = GC_MAX_VERSIONS, .max_versions = 2},
                                      {.kind = GC_MAX_AGE, .max_age_us = 1000000}};
static const struct gc_rule any_of_both = {.kind = GC_UNION, .children = both, .child_count = 2};
static const struct gc_rule all_of_both = {
    .kind = GC_INTERSECTION, .children = both, .child_count = 2};

enum { NOW_US = 10000000, OLD_US = NOW_US - 1000001, AT_AGE_US = NOW_US - 1000000 };

static void test_families_are_found_by_name_and_by_number(void **state)
{
    (void)state;
    const struct family families[] = {
        {.id = 7, .name = bytes_of("b"), .gc = &any_of_both},
        {.id = 2, .name = bytes_of("c")},
        {.id = 5, .name = bytes_of("a"), .value_type = bytes_of("t")}};
    struct schema *schema;
    assert_ok(schema_create(GRANULARITY_MICROS, families, 3, 9, &schema));
    assert_int_equal(schema->family_count, 3);
    assert_true(bytes_equal(schema->families[0].name, bytes_of("a")));
    assert_int_equal(schema_family_named(schema, bytes_of("b"))->id, 7);
    assert_null(schema_family_named(schema, bytes_of("d")));
    assert_true(bytes_equal(schema_family(schema, 2)->name, bytes_of("c")));
    assert_null(schema_family(schema, 3));
    assert_true(bytes_equal(schema_family(schema, 5)->value_type, bytes_of("t")));
    const struct gc_rule *copy = schema_family(schema, 7)->gc;
    assert_ptr_not_equal(copy, &any_of_both);
    assert_int_equal(copy->children[1].max_age_us, 1000000);
    assert_false(schema->names_follow_ids);
    assert_true(schema->has_age_rules && schema->has_count_rules && schema->has_lost_families);
    schema_destroy(schema);
    schema_destroy(NULL);
}

static void test_dropped_families_are_not_new_ones(void **state)
{
    (void)state;
    const struct family families[] = {{.id = 1, .name = bytes_of("a")},
                                      {.id = 3, .name = bytes_of("b")}};
    struct schema *schema;
    assert_ok(schema_create(GRANULARITY_MILLIS, families, 2, 5, &schema));
    assert_false(schema_family_was_dropped(schema, 1));
    assert_true(schema_family_was_dropped(schema, 2));
    assert_true(schema_family_was_dropped(schema, 4));
    assert_false(schema_family_was_dropped(schema, 5)); /* made after this schema */
    schema_destroy(schema);
    assert_ok(schema_create(GRANULARITY_MILLIS, NULL, 0, 1, &schema));
    assert_false(schema->has_lost_families);
    schema_destroy(schema);
}

static void test_without_rules_all_else_is_the_same(void **state)
{
    (void)state;
    const struct family families[] = {{.id = 3, .name = bytes_of("a"), .gc = &any_of_both},
                                      {.id = 1, .name = bytes_of("b"), .gc = &a_second}};
    struct schema *schema, *without;
    assert_ok(schema_create(GRANULARITY_MICROS, families, 2, 4, &schema));
    assert_ok(schema_without_rules(schema, &without));
    schema_destroy(schema);
    assert_int_equal(without->granularity, GRANULARITY_MICROS);
    assert_int_equal(without->next_family_id, 4);
    assert_true(bytes_equal(schema_family(without, 3)->name, bytes_of("a")));
    assert_null(schema_family(without, 3)->gc);
    assert_null(schema_family(without, 1)->gc);
    assert_false(without->has_age_rules || without->has_count_rules);
    assert_true(schema_family_was_dropped(without, 2));
    schema_destroy(without);
}

static void test_max_versions_counts_newer_cells(void **state)
{
    (void)state;
    assert_false(gc_condemns(&newest_two, 0, 1, NOW_US));
    assert_true(gc_condemns(&newest_two, NOW_US, 2, NOW_US));
    assert_int_equal(gc_most_versions(&newest_two), 2);
}

static void test_max_age_looks_at_timestamps(void **state)
{
    (void)state;
    assert_true(gc_condemns(&a_second, OLD_US, 0, NOW_US));
    assert_false(gc_condemns(&a_second, AT_AGE_US, 99, NOW_US));
    assert_int_equal(gc_most_versions(&a_second), INT32_MAX);
}

static void test_union_condemns_what_any_condemns(void **state)
{
    (void)state;
    assert_true(gc_condemns(&any_of_both, OLD_US, 0, NOW_US));
    assert_true(gc_condemns(&any_of_both, NOW_US, 2, NOW_US));
    assert_false(gc_condemns(&any_of_both, AT_AGE_US, 1, NOW_US));
    assert_int_equal(gc_most_versions(&any_of_both), 2);
}

static void test_intersection_condemns_what_all_condemn(void **state)
{
    (void)state;
    assert_true(gc_condemns(&all_of_both, OLD_US, 2, NOW_US));
    assert_false(gc_condemns(&all_of_both, OLD_US, 1, NOW_US));
    assert_false(gc_condemns(&all_of_both, AT_AGE_US, 2, NOW_US));
    assert_int_equal(gc_most_versions(&all_of_both), INT32_MAX);
}

static void test_no_rule_keeps_everything(void **state)
{
    (void)state;
    const struct gc_rule nothing = {.kind = GC_UNION};
    const struct gc_rule nothing_either = {.kind = GC_INTERSECTION};
    assert_false(gc_condemns(NULL, 0, INT32_MAX, NOW_US));
    assert_false(gc_condemns(&nothing, 0, INT32_MAX, NOW_US));
    assert_false(gc_condemns(&nothing_either, 0, INT32_MAX, NOW_US));
    assert_int_equal(gc_most_versions(NULL), INT32_MAX);
    assert_int_equal(gc_most_versions(&nothing), INT32_MAX);
    assert_int_equal(gc_most_versions(&nothing_either), INT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_families_are_found_by_name_and_by_number),
        cmocka_unit_test(test_dropped_families_are_not_new_ones),
        cmocka_unit_test(test_without_rules_all_else_is_the_same),
        cmocka_unit_test(test_max_versions_counts_newer_cells),
        cmocka_unit_test(test_max_age_looks_at_timestamps),
        cmocka_unit_test(test_union_condemns_what_any_condemns),
        cmocka_unit_test(test_intersection_condemns_what_all_condemn),
        cmocka_unit_test(test_no_rule_keeps_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
