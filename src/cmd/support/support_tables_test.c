/* The sizes of a stopped server's tables in a support bundle: without what was dropped. */
#include "cluster/testing/testing.h"
#include "cmd/support/support_private.h"
#include "tablet/drop_records.h"

#include <inttypes.h>

static int setup(void **state)
{
    struct cluster_fixture *f = cluster_fixture_create(NULL);
    f->options.maintenance_by_hand = true; /* nothing gives the space back */
    f->options.overflow_bytes = 1 << 20;
    reopen_test_cluster(f);
    *state = f;
    return 0;
}

static void write_rows(struct cluster_fixture *f, char prefix)
{
    enum { ROWS = 100, VALUE = 4000 };
    char key[16], value[VALUE + 1];
    memset(value, 'v', VALUE);
    value[VALUE] = 0;
    for (unsigned i = 0; i < ROWS; i++) {
        snprintf(key, sizeof key, "%c%04u", prefix, i);
        set_cell(f, key, value);
    }
    assert_ok(keyspace_flush(f->table->spaces[0].keyspace));
}

static void stop(struct cluster_fixture *f)
{
    table_release(f->table);
    close_test_cluster(f);
}

static int teardown_stopped(void **state)
{
    struct cluster_fixture *f = *state;
    pool_destroy(f->pool);
    arena_destroy(f->arena);
    remove_test_directory(f->directory);
    free(f);
    return 0;
}

/* What the bundle has of the table behind "of about ", while the server is stopped. The caller
 * frees it. */
static char *told_size(const struct cluster_fixture *f, uint64_t table_id)
{
    const struct support support = {.data_directory = f->directory};
    struct buffer told = {0};
    char tablet[64];
    snprintf(tablet, sizeof tablet, " of table %" PRIu64 ": ", table_id);
    assert_ok(support_write_stored_tables(&support, &told));
    buffer_append_byte(&told, 0);
    const char *line = strstr((const char *)told.data, tablet);
    assert_non_null(line);
    line = strstr(line, " of about ");
    assert_non_null(line);
    line += strlen(" of about ");
    char *size = strndup(line, strcspn(line, "\n"));
    assert_non_null(size);
    buffer_free(&told);
    return size;
}

static uint64_t size_of_table(struct cluster_fixture *f)
{
    uint64_t id = f->table->id;
    stop(f);
    char *told = told_size(f, id), *end;
    open_test_cluster(f);
    assert_ok(cluster_table(f->cluster, bytes_of(TEST_TABLE), &f->table));
    uint64_t size = strtoull(told, &end, 10);
    assert_string_equal(end, " bytes");
    free(told);
    return size;
}

static void what_is_dropped_has_no_size(void **state)
{
    struct cluster_fixture *f = *state;
    write_rows(f, 'a');
    write_rows(f, 'b');
    uint64_t before = size_of_table(f);
    assert_true(before > 0);
    assert_ok(table_drop_rows(f->table, bytes_of("a")));
    uint64_t half = size_of_table(f);
    assert_true(half > 0 && half < before);
    assert_ok(table_drop_rows(f->table, bytes_of("")));
    assert_int_equal(row_drops_count(f->table->spaces[0].drops), 2);
    assert_int_equal(size_of_table(f), 0);
}

/* It ends before it begins. */
static void put_unsound_record(struct cluster_fixture *f)
{
    const struct row_drop_words words = {.from = bytes_of("b"), .to = bytes_of("a")};
    struct store_batch *batch = store_batch_create();
    struct buffer value = {0};
    assert_non_null(batch);
    assert_ok(drop_record_value(&words, &value));
    drop_record_put(batch, f->cluster->home->system, keyspace_id(f->table->spaces[0].keyspace), 1,
                    1, &value);
    assert_ok(store_write(f->cluster->home->store, batch, STORE_ASYNC));
    store_batch_destroy(batch);
    buffer_free(&value);
}

/* Nor does the server start then: somebody wants to know what it has. */
static void a_size_is_told_where_drops_cannot_be_read(void **state)
{
    struct cluster_fixture *f = *state;
    write_rows(f, 'a');
    put_unsound_record(f);
    uint64_t id = f->table->id;
    stop(f);
    char *told = told_size(f, id);
    assert_string_equal(told + strspn(told, "0123456789"), " bytes, with what was dropped");
    assert_true(strtoull(told, NULL, 10) > 0);
    free(told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_dropped_has_no_size, setup,
                                        cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(a_size_is_told_where_drops_cannot_be_read, setup,
                                        teardown_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
