/* Tests of nearness.h. */
#include "bigtable/nearness.h"

#include "base/testing/testing.h"

#include <stdio.h>

static void test_distances(void **state)
{
    (void)state;
    assert_int_equal(zone_distance("us-east1-b", "us-east1-b"), ZONE_SAME);
    assert_int_equal(zone_distance("us-east1-b", "us-east1-c"), ZONE_SAME_REGION);
    assert_int_equal(zone_distance("us-east1-b", "us-east12-b"), ZONE_SAME_CONTINENT);
    assert_int_equal(zone_distance("us-east1-b", "us-west4-a"), ZONE_SAME_CONTINENT);
    assert_int_equal(zone_distance("us-east1-b", "europe-west1-b"), ZONE_FAR);
    assert_int_equal(zone_distance("zone-1", "zone-2"), ZONE_SAME_REGION);
    assert_int_equal(zone_distance("here", "here"), ZONE_SAME);
    assert_int_equal(zone_distance("here", "there"), ZONE_FAR);
    assert_int_equal(zone_distance("", "there"), ZONE_FAR);
}

/* --- check 13 of replication: row affinity --- */

enum { KEYS = 10000 };

static const char *const clusters[] = {"c-east", "c-west", "c-europe", "c-asia"};

/* Of the first `count`. */
static unsigned choose(unsigned key, unsigned count)
{
    char text[32];
    unsigned best = 0;
    uint64_t best_weight = 0;
    snprintf(text, sizeof text, "user#%u", key);
    for (unsigned i = 0; i < count; i++) {
        uint64_t weight = row_affinity_weight(clusters[i], bytes_of(text));
        if (i == 0 || weight > best_weight) {
            best = i;
            best_weight = weight;
        }
    }
    return best;
}

static void assert_about(unsigned count, double share)
{
    double off = (double)count / KEYS - share;
    assert_true(off < 0.02 && off > -0.02);
}

static void test_each_cluster_has_its_share(void **state)
{
    unsigned counts[3] = {0};
    (void)state;
    for (unsigned i = 0; i < KEYS; i++)
        counts[choose(i, 3)]++;
    for (unsigned i = 0; i < 3; i++)
        assert_about(counts[i], 1.0 / 3);
}

static void test_a_fourth_cluster_moves_a_quarter(void **state)
{
    unsigned moved = 0;
    (void)state;
    for (unsigned i = 0; i < KEYS; i++) {
        unsigned before = choose(i, 3), after = choose(i, 4);
        assert_true(after == before || after == 3); /* none moves between those that were there */
        moved += after != before;
    }
    assert_about(moved, 0.25);
}

/* What was served somewhere yesterday is served there tomorrow, whatever the version. */
static void test_weights_are_for_ever(void **state)
{
    (void)state;
    assert_int_equal(row_affinity_weight("c", bytes_of("k")), UINT64_C(0xd2c843ed40d6f676));
    assert_true(row_affinity_weight("c", bytes_of("k")) != row_affinity_weight("ck", bytes_of("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distances),
        cmocka_unit_test(test_each_cluster_has_its_share),
        cmocka_unit_test(test_a_fourth_cluster_moves_a_quarter),
        cmocka_unit_test(test_weights_are_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
