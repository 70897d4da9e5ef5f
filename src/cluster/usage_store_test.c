/* Tests of records of usage: over windows, starts, splits, merges and deletions. Time passes when a
 * test says so. */
#include "cluster/usage_store.h"

#include "base/testing/failmalloc.h"
#include "cluster/heat/heat_store.h"
#include "cluster/testing/heat_testing.h"

static int setup(void **state)
{
    setup_windows(state);
    struct cluster_fixture *f = *state;
    f->options.undelete_window_us = DAY_US;
    reopen_test_cluster(f);
    maintenance_run_once(f->cluster->maintenance);
    return 0;
}

static void put(struct cluster_fixture *f, uint8_t kind, const char *value)
{
    assert_ok(usage_put(f->table, kind, bytes_of(value)));
}

static void assert_usage(struct cluster_fixture *f, uint8_t kind, int64_t since_us,
                         const char *value)
{
    struct usage_record record;
    assert_ok(usage_get(f->table, kind, f->arena, &record));
    assert_int_equal(record.since_us, since_us);
    assert_true(bytes_equal(record.value, bytes_of(value)));
}

static bool count_record(void *context, uint64_t table_id, uint8_t kind, bytes value)
{
    (void)table_id, (void)kind;
    assert_true(value.size > 0);
    ++*(unsigned *)context;
    return true;
}

static unsigned stored(struct cluster_fixture *f)
{
    unsigned count = 0;
    assert_ok(heat_store_usage(f->cluster, 0, UINT64_MAX, count_record, &count));
    return count;
}

static void a_put_record_is_there_at_once(void **state)
{
    struct cluster_fixture *f = *state;
    assert_usage(f, USAGE_REQUESTS, 0, "");
    put(f, USAGE_REQUESTS, "one");
    hands.now_us += 1;
    put(f, USAGE_REQUESTS, "two");
    assert_usage(f, USAGE_REQUESTS, BEGIN_US, "two");
    assert_usage(f, USAGE_WEIGHTS, 0, "");
    assert_int_equal(stored(f), 0);
}

static void a_window_writes_it_and_a_start_finds_it(void **state)
{
    struct cluster_fixture *f = *state;
    put(f, USAGE_REQUESTS, "one");
    put(f, USAGE_DATASTORE, "other");
    pass(f, MINUTE_US / 2); /* a look, not the end of a window */
    assert_int_equal(stored(f), 0);
    pass(f, MINUTE_US / 2);
    assert_int_equal(stored(f), 2);
    assert_usage(f, USAGE_REQUESTS, BEGIN_US, "one");
    put(f, USAGE_REQUESTS, "two"); /* written by the stop */
    reopen_test_cluster(f);
    assert_usage(f, USAGE_REQUESTS, BEGIN_US, "two");
    assert_usage(f, USAGE_DATASTORE, BEGIN_US, "other");
    put(f, USAGE_REQUESTS, "three");
    assert_usage(f, USAGE_REQUESTS, BEGIN_US, "three");
}

/* The stop makes the table that it is kept in. */
static void a_stop_in_the_first_window_writes_it(void **state)
{
    struct cluster_fixture *f = *state;
    put(f, USAGE_DATASTORE, "one");
    reopen_test_cluster(f);
    assert_usage(f, USAGE_DATASTORE, BEGIN_US, "one");
}

static void heat_goes_and_usage_stays(void **state)
{
    struct cluster_fixture *f = *state;
    set_cell(f, "a", "v");
    put(f, USAGE_REQUESTS, "one");
    pass(f, MINUTE_US);
    for (unsigned i = 0; i < 3; i++)
        pass(f, 30 * DAY_US);
    split_at(f, "m");
    pass(f, MINUTE_US);
    merge_at(f, "m");
    reopen_test_cluster(f);
    assert_usage(f, USAGE_REQUESTS, BEGIN_US, "one");
}

static void records_are_listed_by_kind(void **state)
{
    struct cluster_fixture *f = *state;
    struct usage_record *records;
    size_t count;
    put(f, 'x', "of x");
    put(f, 'a', "of a");
    put(f, 'm', "of m");
    pass(f, MINUTE_US);
    put(f, 'b', "of b");
    assert_ok(usage_put(f->table, 'm', bytes_of("")));
    assert_ok(usage_list(f->table, f->arena, &records, &count));
    assert_int_equal(count, 3);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(records[i].kind, "abx"[i]);
    assert_true(bytes_equal(records[1].value, bytes_of("of b")));
    assert_true(bytes_equal(records[2].value, bytes_of("of x")));
    pass(f, MINUTE_US);
    assert_int_equal(stored(f), 3);
    reopen_test_cluster(f);
    assert_usage(f, 'm', 0, "");
    assert_usage(f, 'x', BEGIN_US, "of x");
}

static void a_table_has_so_much_room(void **state)
{
    struct cluster_fixture *f = *state;
    uint8_t *large = calloc(1, USAGE_MOST_BYTES + 1);
    assert_non_null(large);
    assert_status(usage_put(f->table, 'a', bytes_make(large, USAGE_MOST_BYTES + 1)),
                  STATUS_RESOURCE_EXHAUSTED);
    assert_ok(usage_put(f->table, 'a', bytes_make(large, USAGE_MOST_BYTES - 2)));
    put(f, 'b', "bb");
    assert_status(usage_put(f->table, 'b', bytes_of("bbb")), STATUS_RESOURCE_EXHAUSTED);
    assert_usage(f, 'b', BEGIN_US, "bb");
    pass(f, MINUTE_US);
    reopen_test_cluster(f); /* what is stored counts, too */
    assert_status(usage_put(f->table, 'b', bytes_of("bbb")), STATUS_RESOURCE_EXHAUSTED);
    assert_ok(usage_put(f->table, 'a', bytes_make(large, 10)));
    put(f, 'b', "bbb");
    free(large);
}

static void a_record_that_cannot_be_written_waits(void **state)
{
    struct cluster_fixture *f = *state;
    put(f, USAGE_REQUESTS, "one");
    pass(f, MINUTE_US);
    put(f, USAGE_REQUESTS, "two");
    refuse_writes(f, true);
    pass(f, MINUTE_US);
    refuse_writes(f, false);
    assert_usage(f, USAGE_REQUESTS, BEGIN_US, "two");
    put(f, USAGE_WEIGHTS, "w");
    pass(f, MINUTE_US);
    assert_int_equal(stored(f), 2);
    reopen_test_cluster(f);
    assert_usage(f, USAGE_REQUESTS, BEGIN_US, "two");
}

static void usage_goes_with_its_table(void **state)
{
    struct cluster_fixture *f = *state;
    put(f, USAGE_REQUESTS, "one");
    pass(f, MINUTE_US);
    assert_ok(cluster_delete_table(f->cluster, bytes_of(TEST_TABLE), NULL));
    pass(f, MINUTE_US);
    assert_int_equal(stored(f), 1); /* it is kept, and may come back */
    assert_ok(cluster_undelete_table(f->cluster, f->table, NULL));
    assert_usage(f, USAGE_REQUESTS, BEGIN_US, "one");
    assert_ok(cluster_delete_table(f->cluster, bytes_of(TEST_TABLE), NULL));
    pass(f, 2 * DAY_US);
    pass(f, MINUTE_US);
    assert_int_equal(stored(f), 0);
    table_release(f->table);
    f->table = create_test_table(f->cluster, NULL);
    assert_usage(f, USAGE_REQUESTS, 0, "");
}

static void a_start_removes_what_a_crash_has_left(void **state)
{
    struct cluster_fixture *f = *state;
    struct own_batch batch = {.arena = f->arena};
    put(f, USAGE_REQUESTS, "one");
    pass(f, MINUTE_US);
    assert_ok(heat_batch_put_usage(&batch, 1000000, 'x', bytes_of("left")));
    assert_ok(heat_batch_write(&batch, f->cluster));
    assert_int_equal(stored(f), 2);
    reopen_test_cluster(f);
    pass(f, MINUTE_US);
    assert_int_equal(stored(f), 1);
    assert_usage(f, USAGE_REQUESTS, BEGIN_US, "one");
}

static void nothing_is_known_of_a_time_without_counting(void **state)
{
    struct cluster_fixture *f = *state;
    put(f, USAGE_REQUESTS, "one");
    pass(f, MINUTE_US);
    f->options.heat = false;
    reopen_test_cluster(f);
    put(f, USAGE_REQUESTS, "two");
    assert_usage(f, USAGE_REQUESTS, 0, "");
    pass(f, MINUTE_US);
    assert_int_equal(stored(f), 0);
    f->options.heat = true;
    reopen_test_cluster(f);
    assert_usage(f, USAGE_REQUESTS, 0, "");
}

/* Such as former programs made it. */
static void make_former_table(struct cluster_fixture *f)
{
    static const char *const names[] = {"m", "t", "h", "H"};
    struct family families[4];
    struct schema *schema;
    struct table *table;
    for (uint32_t i = 0; i < 4; i++)
        families[i] = (struct family){.id = i + 1, .name = bytes_of(names[i])};
    assert_ok(schema_create(GRANULARITY_MICROS, families, 4, 5, &schema));
    struct table_spec spec = {.name = HEAT_TABLE, .schema = schema};
    assert_ok(cluster_create_table(f->cluster, &spec, &table));
    schema_destroy(schema);
    table_release(table);
}

static void a_former_table_of_heat_gets_the_family(void **state)
{
    struct cluster_fixture *f = *state;
    struct table *heat;
    make_former_table(f);
    put(f, USAGE_REQUESTS, "one");
    pass(f, MINUTE_US);
    assert_ok(cluster_table(f->cluster, bytes_of(HEAT_TABLE), &heat));
    assert_int_equal(table_schema(heat)->family_count, 5);
    table_release(heat);
    reopen_test_cluster(f);
    assert_usage(f, USAGE_REQUESTS, BEGIN_US, "one");
}

/* --- without memory --- */

static void use_all(void *context)
{
    struct cluster_fixture *f = context;
    struct usage_record *records;
    size_t count;
    struct arena *arena = arena_create(1 << 20);
    if (arena == NULL)
        return;
    status_ignore(usage_put(f->table, 'b', bytes_of("bb")));
    status_ignore(usage_put(f->table, 'a', bytes_of("aa")));
    status s = usage_list(f->table, arena, &records, &count);
    if (status_is_ok(s))
        for (size_t i = 0; i < count; i++)
            assert_int_equal(records[i].value.size, records[i].kind == 'o' ? 3 : 2);
    status_free(s);
    arena_destroy(arena);
}

/* What is known before stays so, whatever fails. */
static void the_store_gets_along_without_memory(void **state)
{
    struct cluster_fixture *f = *state;
    put(f, 'o', "old");
    pass(f, MINUTE_US);
    reopen_test_cluster(f);
    failmalloc_each(use_all, f);
    assert_usage(f, 'o', BEGIN_US, "old");
    assert_usage(f, 'a', hands.now_us, "aa");
    assert_usage(f, 'b', hands.now_us, "bb");
}

static void write_all(void *context)
{
    struct cluster_fixture *f = context;
    struct own_batch batch = {.arena = arena_create(1 << 20)};
    if (batch.arena == NULL)
        return;
    status_ignore(usage_store_write(&f->table, 1, &batch));
    own_batch_drop(&batch);
    atomic_store(&f->cluster->usage_is_to_sweep, true);
    status_ignore(usage_store_sweep(f->cluster, &batch));
    own_batch_drop(&batch);
    arena_destroy(batch.arena);
}

static void a_record_waits_while_memory_is_short(void **state)
{
    struct cluster_fixture *f = *state;
    put(f, 'o', "old");
    pass(f, MINUTE_US);
    put(f, 'o', "new");
    put(f, 'p', "more");
    failmalloc_each(write_all, f);
    assert_int_equal(stored(f), 2);
    reopen_test_cluster(f);
    assert_usage(f, 'o', BEGIN_US, "new");
    assert_usage(f, 'p', BEGIN_US + MINUTE_US, "more");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_put_record_is_there_at_once, setup, teardown_windows),
        cmocka_unit_test_setup_teardown(a_window_writes_it_and_a_start_finds_it, setup,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(a_stop_in_the_first_window_writes_it, setup,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(heat_goes_and_usage_stays, setup, teardown_windows),
        cmocka_unit_test_setup_teardown(records_are_listed_by_kind, setup, teardown_windows),
        cmocka_unit_test_setup_teardown(a_table_has_so_much_room, setup, teardown_windows),
        cmocka_unit_test_setup_teardown(a_record_that_cannot_be_written_waits, setup,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(usage_goes_with_its_table, setup, teardown_windows),
        cmocka_unit_test_setup_teardown(a_start_removes_what_a_crash_has_left, setup,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(nothing_is_known_of_a_time_without_counting, setup,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(a_former_table_of_heat_gets_the_family, setup,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(the_store_gets_along_without_memory, setup,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(a_record_waits_while_memory_is_short, setup,
                                        teardown_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
