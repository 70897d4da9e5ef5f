/* Tests of what reads go through in vain (keyspace_waste): operands that had to be put together,
 * and entries that newer ones had replaced, but not what is there once. */
#include "store/testing/testing.h"

struct fixture {
    char *directory;
    struct store *store;
    struct keyspace *keyspace;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->directory = make_directory();
    struct store_options options = test_options(f->directory);
    assert_ok(store_open(&options, &f->store));
    f->keyspace = make_keyspace(f->store, 7);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    store_close(f->store);
    remove_directory(f->directory);
    free(f);
    return 0;
}

static void compact(struct fixture *f)
{
    assert_ok(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")));
}

/* Gets a key, and says what that went through in vain; the store's count has it, too. */
static uint64_t waste_of_get(struct fixture *f, const char *key, const char *expected)
{
    uint64_t before = keyspace_waste(f->keyspace), of_all = store_waste(f->store);
    assert_value(f->keyspace, key, expected);
    uint64_t waste = keyspace_waste(f->keyspace) - before;
    assert_int_equal(store_waste(f->store) - of_all, waste);
    return waste;
}

/* The same of a cursor over all keys. */
static uint64_t waste_of_walk(struct fixture *f, bool backwards, unsigned count)
{
    const struct store_cursor_options options = {.read_tier = STORE_READ_ANY, .notes_waste = true};
    struct store_cursor *cursor;
    uint64_t before = keyspace_waste(f->keyspace), of_all = store_waste(f->store);
    unsigned found = 0;
    assert_ok(store_cursor_create(f->keyspace, &options, &cursor));
    backwards ? store_cursor_last(cursor) : store_cursor_first(cursor);
    while (store_cursor_valid(cursor)) {
        found++;
        backwards ? store_cursor_previous(cursor) : store_cursor_next(cursor);
    }
    assert_ok(store_cursor_status(cursor));
    store_cursor_destroy(cursor);
    assert_int_equal(found, count);
    uint64_t waste = keyspace_waste(f->keyspace) - before;
    assert_int_equal(store_waste(f->store) - of_all, waste);
    return waste;
}

static void what_is_there_once_is_none(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "a", "value");
    merge(f->store, f->keyspace, "b", "operand");
    for (int i = 0; i < 2; i++) { /* in a write buffer, and in a table */
        assert_int_equal(waste_of_get(f, "a", "value"), 0);
        assert_int_equal(waste_of_get(f, "b", "operand"), 0);
        assert_int_equal(waste_of_get(f, "c", NULL), 0);
        assert_int_equal(waste_of_walk(f, false, 2), 0);
        assert_int_equal(waste_of_walk(f, true, 2), 0);
        assert_ok(keyspace_flush(f->keyspace));
    }
}

static void operands_are_until_they_are_put_together(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "a", "0");
    assert_ok(keyspace_flush(f->keyspace));
    merge(f->store, f->keyspace, "a", "1");
    uint64_t of_one = waste_of_get(f, "a", "01");
    assert_true(of_one >= 1);
    assert_int_equal(waste_of_walk(f, false, 1), of_one);
    merge(f->store, f->keyspace, "a", "2");
    assert_true(waste_of_get(f, "a", "012") > of_one);
    assert_true(waste_of_walk(f, true, 1) > of_one);
    compact(f);
    assert_int_equal(waste_of_get(f, "a", "012"), 0);
    assert_int_equal(waste_of_walk(f, false, 1), 0);
}

static void what_was_replaced_is_for_who_passes_over_it(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "a", "value");
    put(f->store, f->keyspace, "b", "value");
    for (int i = 0; i < 4; i++)
        put(f->store, f->keyspace, "a", "another");
    uint64_t of_four = waste_of_walk(f, false, 2);
    assert_true(of_four > 0);
    for (int i = 0; i < 2; i++)
        put(f->store, f->keyspace, "a", "last");
    assert_true(waste_of_walk(f, false, 2) > of_four);
    assert_int_equal(waste_of_get(f, "a", "last"), 0);
    compact(f);
    assert_int_equal(waste_of_walk(f, false, 2), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_there_once_is_none),
        TEST(operands_are_until_they_are_put_together),
        TEST(what_was_replaced_is_for_who_passes_over_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
