/* Tests of names.h and field_mask.h. */
#include "bigtable/field_mask.h"
#include "bigtable/names.h"

#include "base/testing/testing.h"
#include "google/bigtable/admin/v2/instance.pb-c.h"

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

static void test_forms(void **state)
{
    (void)state;
    const char *form = "projects/{project}/locations/{zone}";
    assert_true(is_fine(name_check_form("location", "projects/p/locations/z", form)));
    assert_true(is_refused(name_check_form("location", "projects/p/locations/", form)));
    assert_true(is_refused(name_check_form("location", "projects/p/locations", form)));
    assert_true(is_refused(name_check_form("location", "projects/p/locations/z/", form)));
    assert_true(is_refused(name_check_form("location", "projects/p/zones/z", form)));
    assert_true(is_refused(name_check_form("location", "", form)));
}

static void test_zonal_ids(void **state)
{
    (void)state;
    assert_true(is_fine(name_check_zonal_id("clusters", "c", 3)));
    assert_true(is_fine(name_check_zonal_id("clusters", "c-1", 3)));
    assert_true(is_refused(name_check_zonal_id("clusters", "", 3)));
    assert_true(is_refused(name_check_zonal_id("clusters", "1c", 3)));
    assert_true(is_refused(name_check_zonal_id("clusters", "c-", 3)));
    assert_true(is_refused(name_check_zonal_id("clusters", "cC", 3)));
    assert_true(is_refused(name_check_zonal_id("clusters", "cccc", 3)));
}

/* --- masks --- */

static status apply(const char *path, const BtAdmin__Cluster *source, BtAdmin__Cluster *target,
                    struct arena *arena)
{
    static const char *const allowed[] = {"serve_nodes", "cluster_config", NULL};
    Pb__FieldMask mask = PB__FIELD_MASK__INIT;
    mask.paths = &path;
    mask.n_paths = 1;
    return field_mask_apply(&mask, allowed, &source->base, &target->base, arena);
}

static void test_masks_reach_into_messages(void **state)
{
    (void)state;
    struct arena *arena = arena_create(1 << 16);
    BtAdmin__AutoscalingLimits limits = BT_ADMIN__AUTOSCALING_LIMITS__INIT;
    BtAdmin__Cluster__ClusterAutoscalingConfig scaling =
        BT_ADMIN__CLUSTER__CLUSTER_AUTOSCALING_CONFIG__INIT;
    BtAdmin__Cluster__ClusterConfig config = BT_ADMIN__CLUSTER__CLUSTER_CONFIG__INIT;
    BtAdmin__Cluster source = BT_ADMIN__CLUSTER__INIT, target = BT_ADMIN__CLUSTER__INIT;
    limits.min_serve_nodes = 2;
    limits.max_serve_nodes = 5;
    scaling.autoscaling_limits = &limits;
    config.cluster_autoscaling_config = &scaling;
    source.config_case = BT_ADMIN__CLUSTER__CONFIG_CLUSTER_CONFIG;
    source.cluster_config = &config;
    source.serve_nodes = 3;
    target.serve_nodes = 1;
    assert_ok(apply("clusterConfig.clusterAutoscalingConfig.autoscalingLimits.maxServeNodes",
                    &source, &target, arena));
    assert_int_equal(target.serve_nodes, 1);
    assert_int_equal(target.config_case, BT_ADMIN__CLUSTER__CONFIG_CLUSTER_CONFIG);
    const BtAdmin__AutoscalingLimits *made =
        target.cluster_config->cluster_autoscaling_config->autoscaling_limits;
    assert_int_equal(made->max_serve_nodes, 5);
    assert_int_equal(made->min_serve_nodes, 0);
    source.config_case = BT_ADMIN__CLUSTER__CONFIG__NOT_SET; /* what is not there clears */
    assert_ok(apply("cluster_config.cluster_autoscaling_config", &source, &target, arena));
    assert_null(target.cluster_config->cluster_autoscaling_config);
    assert_ok(apply("cluster_config", &source, &target, arena));
    assert_int_equal(target.config_case, BT_ADMIN__CLUSTER__CONFIG__NOT_SET);
    arena_destroy(arena);
}

static void test_paths_that_lead_nowhere(void **state)
{
    (void)state;
    static const char *const paths[] = {
        "",           "name", "serve_nodes.x",   "serve_nodes2",
        "serveNodeS", "*",    "cluster_config.", "cluster_config.x"};
    struct arena *arena = arena_create(1 << 16);
    BtAdmin__Cluster source = BT_ADMIN__CLUSTER__INIT, target = BT_ADMIN__CLUSTER__INIT;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        assert_true(is_refused(apply(paths[i], &source, &target, arena)));
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_zonal_ids),
        cmocka_unit_test(test_masks_reach_into_messages),
        cmocka_unit_test(test_paths_that_lead_nowhere),
        cmocka_unit_test(test_instance_names),
        cmocka_unit_test(test_table_names),
        cmocka_unit_test(test_table_ids),
        cmocka_unit_test(test_family_ids),
        cmocka_unit_test(test_table_name_and_id),
        cmocka_unit_test(test_mask_paths_in_both_spellings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
