/* Acknowledged commits of Datastore were lost at a restart after the clock was set back.
 *
 * Found in a review, by a script that set the clock back for an hour. Moments went on by a
 * microsecond a commit, the versions of the same commits by a 4096th of one, and the durable
 * ceiling covers versions. So moments passed it, and after a restart began below those of stored
 * cells: of two entities the one with the greater moment counts, so new ones were hidden behind old
 * ones, and the last commits before the restart were in the future. A commit's version is of its
 * moment or later. */
#include "base/testing/testing_clock.h"
#include "cluster/testing/testing.h"
#include "datastore/commit/rows_write.h"
#include "datastore/database.h"

#define HOUR_US (INT64_C(3600) * 1000000)

enum { COMMITS = 1000 };

static struct hands_clock hands = {.clock = HANDS_CLOCK};

static struct table *create_database(struct cluster *cluster)
{
    const struct family families[] = {{.id = 1, .name = bytes_of(DS_FAMILY_IS)},
                                      {.id = 2, .name = bytes_of(DS_FAMILY_WAS)}};
    struct schema *schema;
    struct table *table;
    assert_ok(schema_create(GRANULARITY_MICROS, families, 2, 3, &schema));
    const struct table_spec spec = {.name = TEST_TABLE, .schema = schema};
    assert_ok(cluster_create_table(cluster, &spec, &table));
    schema_destroy(schema);
    return table;
}

static void commit_at_a_moment(struct cluster_fixture *f, struct ds_sequencer *moments)
{
    const struct ds_row_write row = {
        .key = bytes_of("Ek"), .is = true, .now = bytes_of("x"), .was = true, .past = bytes_of("")};
    struct arena *arena = arena_create(1 << 20);
    assert_non_null(arena);
    assert_ok(
        ds_rows_write_in_order(f->table, &row, 1, moments, cluster_version_us(f->cluster), arena));
    arena_destroy(arena);
}

static void moments_begin_above_those_of_stored_cells(void **state)
{
    struct cluster_fixture *f = cluster_fixture_create(NULL);
    struct ds_sequencer moments;
    (void)state;
    table_release(f->table);
    close_test_cluster(f);
    remove_test_directory(f->directory);
    int64_t begun_us = clock_wall_us(clock_system());
    atomic_store(&hands.wall_us, begun_us);
    atomic_store(&hands.steady_us, HOUR_US);
    f->options.clock = &hands.clock;
    open_test_cluster(f);
    f->table = create_database(f->cluster);
    ds_sequencer_init(&moments);
    commit_at_a_moment(f, &moments); /* brings a ceiling a second above it, at most */
    atomic_store(&hands.wall_us, begun_us + 999500);
    commit_at_a_moment(f, &moments);
    atomic_store(&hands.wall_us, begun_us - HOUR_US);
    for (int i = 0; i < COMMITS; i++)
        commit_at_a_moment(f, &moments);
    int64_t last_us = moments.last_us;
    assert_true(last_us >= begun_us + 999500 + COMMITS);
    ds_sequencer_free(&moments);
    reopen_test_cluster(f);
    assert_true(cluster_version_us(f->cluster) > last_us);
    cluster_fixture_destroy(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moments_begin_above_those_of_stored_cells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
