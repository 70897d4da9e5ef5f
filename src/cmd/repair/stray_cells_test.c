/* Tests of what removes large cells that their row's record does not name. The story: the catalog
 * had lost the record of a drop, and the doctor found rows that were dropped and written anew, "it
 * has overflow cells, but its record does not say so", with nothing to do about it (a round of
 * `./dev crash damage --kind catalog`). */
#include "cmd/repair/stray_cells.h"

#include "base/testing/failmalloc.h"
#include "row/row_key.h"
#include "tablet/drop_records.h"
#include "tablet/testing/testing.h"

enum { LARGE = 8, MANY = 2005 };

static int setup(void **state)
{
    *state = tablet_fixture_create();
    return 0;
}

static int teardown(void **state)
{
    tablet_fixture_destroy(*state);
    return 0;
}

static uint64_t write_large(struct tablet_fixture *f, const char *row_key)
{
    struct row_change *change = new_change(f);
    row_change_set(change, FAMILY_F, bytes_of("q"), 1000, bytes_of("a large value"));
    return write_change(f, row_key, pack(change, LARGE));
}

/* What a drop's fold does with the record. */
static void forget_record(struct tablet_fixture *f, const char *row_key)
{
    struct buffer key = {0};
    struct store_batch *batch = store_batch_create();
    row_record_key(&key, bytes_of(row_key));
    store_batch_delete(batch, f->rows, buffer_bytes(&key));
    assert_ok(store_write(f->store, batch, STORE_ASYNC));
    store_batch_destroy(batch);
    buffer_free(&key);
}

static void make_stray(struct tablet_fixture *f, const char *row_key)
{
    write_large(f, row_key);
    forget_record(f, row_key);
}

static void drop(struct tablet_fixture *f, uint64_t version, const char *from, const char *to)
{
    const struct row_drop_words words = {
        .version = version, .sequence = 1000000, .from = bytes_of(from), .to = bytes_of(to)};
    struct buffer value = {0};
    struct store_batch *batch = store_batch_create();
    assert_ok(drop_record_value(&words, &value));
    drop_record_put(batch, f->options.catalog, ROWS_KEYSPACE, version, 1000000, &value);
    assert_ok(store_write(f->store, batch, STORE_ASYNC));
    store_batch_destroy(batch);
    buffer_free(&value);
}

static uint64_t strays(const struct tablet_fixture *f)
{
    uint64_t rows;
    assert_ok(stray_cells_count(f->rows, f->options.catalog, &rows));
    return rows;
}

static uint64_t remove_strays(const struct tablet_fixture *f)
{
    uint64_t rows;
    assert_ok(stray_cells_remove(f->store, f->rows, f->options.catalog, &rows));
    return rows;
}

/* --- tests --- */

static void what_the_record_names_stays(void **state)
{
    struct tablet_fixture *f = *state;
    write_large(f, "a");
    write_large(f, "c");
    make_stray(f, "b");
    make_stray(f, "d");
    assert_int_equal(strays(f), 2);
    assert_int_equal(remove_strays(f), 2);
    assert_int_equal(strays(f), 0);
    assert_row(f, "a", "f:q@1000=a large value");
    assert_row(f, "c", "f:q@1000=a large value");
}

static void what_is_removed_does_not_come_back_with_the_next_large_cell(void **state)
{
    struct tablet_fixture *f = *state;
    struct row_change *change = new_change(f);
    make_stray(f, "a");
    write_change(f, "a", set_cell(f, FAMILY_G, "small", 1000, "x"));
    assert_row(f, "a", "g:small@1000=x");
    assert_int_equal(remove_strays(f), 1);
    row_change_set(change, FAMILY_F, bytes_of("other"), 1000, bytes_of("as large a value"));
    write_change(f, "a", pack(change, LARGE));
    assert_row(f, "a", "f:other@1000=as large a value g:small@1000=x");
}

static void what_was_dropped_waits_for_its_pass(void **state)
{
    struct tablet_fixture *f = *state;
    uint64_t version = write_large(f, "b");
    forget_record(f, "b");
    drop(f, version + 1, "a", "c");
    assert_int_equal(strays(f), 0);
    make_stray(f, "b"); /* by a newer cell of the same place */
    assert_int_equal(strays(f), 1);
}

static void there_may_be_many(void **state)
{
    struct tablet_fixture *f = *state;
    char key[16];
    for (int i = 0; i < MANY; i++) {
        snprintf(key, sizeof key, "row%04d", i);
        make_stray(f, key);
    }
    assert_int_equal(remove_strays(f), MANY);
    assert_int_equal(strays(f), 0);
}

static void a_key_that_does_not_parse_is_damage(void **state)
{
    struct tablet_fixture *f = *state;
    struct store_batch *batch = store_batch_create();
    uint64_t rows;
    store_batch_put(batch, f->rows, bytes_of("Sx"), bytes_of(""));
    assert_ok(store_write(f->store, batch, STORE_ASYNC));
    store_batch_destroy(batch);
    assert_status(stray_cells_count(f->rows, f->options.catalog, &rows), STATUS_DATA_LOSS);
}

static void count_or_fail(void *context)
{
    struct tablet_fixture *f = context;
    uint64_t rows = 0;
    status s = stray_cells_count(f->rows, f->options.catalog, &rows);
    if (status_is_ok(s))
        assert_int_equal(rows, 1);
    else
        assert_int_equal(s.code, STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
}

static void memory_may_run_out(void **state)
{
    struct tablet_fixture *f = *state;
    make_stray(f, "a");
    drop(f, 1, "x", "z");
    failmalloc_each(count_or_fail, f);
    assert_int_equal(remove_strays(f), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_the_record_names_stays),
        TEST(what_is_removed_does_not_come_back_with_the_next_large_cell),
        TEST(what_was_dropped_waits_for_its_pass),
        TEST(there_may_be_many),
        TEST(a_key_that_does_not_parse_is_damage),
        TEST(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
