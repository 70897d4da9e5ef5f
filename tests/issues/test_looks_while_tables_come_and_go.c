/* Maintenance read the list of tables without its lock, and its own place before that was written.
 *
 * Found by ThreadSanitizer (./dev test --tsan). Once a second heat_run asked index_find_all for all
 * tables; that wanted `admin` held, which its header did not say, and heat_run did not hold it. A
 * table that was made or deleted at that moment moved the list, or freed it, under the reader's
 * eyes. And the first look of maintenance's thread asked cluster->maintenance whether it should
 * stop, while maintenance_start, on the thread that had made it, had yet to put it there: one such
 * start in some thousand died of a null pointer, in the test of backups' steps.
 *
 * Here: tables come and go while maintenance looks round after round; and a cluster with tables is
 * opened again and again. ThreadSanitizer sees both at once; without it the first test may end in
 * AddressSanitizer's. */
#include "cluster/testing/testing.h"

enum { TABLES = 8, TIMES = 40, OPENINGS = 30 };

static int set_up(void **state)
{
    *state = cluster_fixture_create(NULL);
    return 0;
}

static int tear_down(void **state)
{
    cluster_fixture_destroy(*state);
    return 0;
}

static void table_name_of(char name[64], unsigned number)
{
    snprintf(name, 64, "projects/p/instances/i/tables/a%u", number);
}

static void make_table(struct cluster_fixture *f, unsigned number)
{
    const struct family family = {.id = 1, .name = bytes_of("f")};
    char name[64];
    struct schema *schema;
    struct table *table;
    table_name_of(name, number);
    assert_ok(schema_create(GRANULARITY_MILLIS, &family, 1, 2, &schema));
    struct table_spec spec = {.name = name, .schema = schema};
    assert_ok(cluster_create_table(f->cluster, &spec, &table));
    schema_destroy(schema);
    table_release(table);
}

static void *make_and_delete_tables(void *argument)
{
    struct cluster_fixture *f = argument;
    char name[64];
    for (unsigned time = 0; time < TIMES; time++) {
        for (unsigned i = 0; i < TABLES; i++)
            make_table(f, i);
        for (unsigned i = 0; i < TABLES; i++) {
            table_name_of(name, i);
            assert_ok(cluster_delete_table(f->cluster, bytes_of(name), NULL));
        }
    }
    return NULL;
}

static void heat_is_looked_at_while_tables_come_and_go(void **state)
{
    struct cluster_fixture *f = *state;
    pthread_t thread;
    assert_ok(thread_start(&thread, "tables", make_and_delete_tables, f));
    for (unsigned i = 0; i < TIMES; i++)
        maintenance_run_once(f->cluster->maintenance);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void maintenance_knows_itself_from_the_start(void **state)
{
    struct cluster_fixture *f = *state;
    make_table(f, 0);
    for (unsigned i = 0; i < OPENINGS; i++)
        reopen_test_cluster(f);
    assert_non_null(f->cluster->maintenance);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(heat_is_looked_at_while_tables_come_and_go, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(maintenance_knows_itself_from_the_start, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
