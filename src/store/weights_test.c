/* Whose values take most, as far as the store notes it. Owners are what comes before a slash. */
#include "store/testing/testing.h"

enum { KEYSPACE = 7, MIB = 1 << 20 };

static size_t owner_of(bytes key)
{
    const uint8_t *slash = memchr(key.data, '/', key.size);
    return slash == NULL ? 0 : (size_t)(slash - key.data) + 1;
}

static const struct store_fold owned_fold = {
    .whole = fold_full, .part = fold_part, .tidy = fold_filter, .owner = owner_of};

struct fixture {
    char *directory;
    struct store *store;
    struct keyspace *keyspace;
};

static void open_store(struct fixture *f)
{
    struct store_options options = test_options(f->directory);
    options.fold = &owned_fold;
    options.write_buffer_bytes = 256 << 20; /* nothing is flushed by itself */
    assert_ok(store_open(&options, &f->store));
    f->keyspace = store_keyspace_find(f->store, KEYSPACE);
}

static struct fixture make_fixture(void)
{
    struct fixture f = {.directory = make_directory()};
    open_store(&f);
    f.keyspace = make_keyspace(f.store, KEYSPACE);
    return f;
}

static void end_fixture(struct fixture *f)
{
    store_close(f->store);
    remove_directory(f->directory);
}

static void put_large(struct fixture *f, const char *key, size_t size)
{
    struct store_batch *batch = store_batch_create();
    uint8_t *value = malloc(size);
    assert_non_null(batch);
    assert_non_null(value);
    memset(value, 'x', size);
    store_batch_put(batch, f->keyspace, bytes_of(key), bytes_make(value, size));
    assert_ok(store_write(f->store, batch, STORE_ASYNC));
    store_batch_destroy(batch);
    free(value);
}

/* "a/ 3 2;": of a/ there are 3 MiB, and the largest value has 2. */
static bool tell(void *context, const struct store_weight *weight)
{
    buffer_append_format(context, "%.*s %u %u;", (int)weight->owner.size,
                         (const char *)weight->owner.data, (unsigned)(weight->size / MIB),
                         (unsigned)(weight->largest_value / MIB));
    return true;
}

static void assert_told(struct fixture *f, const char *expected)
{
    struct buffer told = {0};
    assert_ok(keyspace_weigh(f->keyspace, bytes_of("a"), bytes_of("y"), tell, &told));
    buffer_append_byte(&told, 0);
    assert_false(told.failed);
    assert_string_equal((const char *)told.data, expected);
    buffer_free(&told);
}

static void put_three_owners(struct fixture *f)
{
    put_large(f, "a/1", 3 * MIB);
    put_large(f, "b/1", MIB / 2);
    put_large(f, "c/1", 4 * MIB);
    put_large(f, "c/2", 4 * MIB);
    put_large(f, "no owner", 9 * MIB);
}

static void test_write_buffers_are_walked_over(void **state)
{
    (void)state;
    struct fixture f = make_fixture();
    put_large(&f, "a/1", 3 * MIB);
    assert_told(&f, ""); /* it is not worth the walk */
    put_three_owners(&f);
    assert_told(&f, "c/ 8 4;a/ 3 3;");
    end_fixture(&f);
}

static void test_tables_say_who_is_heavy(void **state)
{
    (void)state;
    struct fixture f = make_fixture();
    put_three_owners(&f);
    assert_ok(keyspace_flush(f.keyspace));
    assert_told(&f, "c/ 8 4;a/ 3 3;");
    end_fixture(&f);
}

static void test_parts_of_an_owner_add_up(void **state)
{
    (void)state;
    struct fixture f = make_fixture();
    put_three_owners(&f);
    assert_ok(keyspace_flush(f.keyspace));
    put_large(&f, "a/2", 5 * MIB);
    assert_told(&f, "a/ 8 5;c/ 8 4;");
    assert_ok(keyspace_flush(f.keyspace));
    assert_told(&f, "a/ 8 5;c/ 8 4;");
    end_fixture(&f);
}

static void test_the_heaviest_come_first_and_are_few(void **state)
{
    (void)state;
    struct fixture f = make_fixture();
    char key[] = "a/1";
    for (int c = 'a'; c < 'k'; c++) {
        key[0] = (char)c;
        put_large(&f, key, (size_t)(c - 'a' + 1) * MIB);
    }
    assert_ok(keyspace_flush(f.keyspace));
    assert_told(&f, "j/ 10 10;i/ 9 9;h/ 8 8;g/ 7 7;f/ 6 6;e/ 5 5;d/ 4 4;c/ 3 3;");
    end_fixture(&f);
}

static void test_compactions_forget_what_is_gone(void **state)
{
    (void)state;
    struct fixture f = make_fixture();
    put_three_owners(&f);
    assert_ok(keyspace_flush(f.keyspace));
    assert_ok(write_one(f.store, f.keyspace, DELETE, "c/1", NULL, STORE_ASYNC));
    assert_told(&f, "c/ 8 4;a/ 3 3;"); /* it is not known yet */
    assert_ok(keyspace_compact(f.keyspace, bytes_of(""), bytes_of("")));
    assert_told(&f, "c/ 4 4;a/ 3 3;");
    end_fixture(&f);
}

static void test_notes_survive_a_restart(void **state)
{
    (void)state;
    struct fixture f = make_fixture();
    put_three_owners(&f);
    assert_ok(keyspace_flush(f.keyspace));
    put_large(&f, "d/1", 6 * MIB);
    store_close(f.store);
    open_store(&f);
    assert_told(&f, "d/ 6 6;c/ 8 4;a/ 3 3;"); /* d/ is in a write buffer again */
    end_fixture(&f);
}

static void test_a_table_written_apart_has_notes(void **state)
{
    (void)state;
    struct fixture f = make_fixture();
    struct table_writer *writer;
    struct buffer path = {0}, value = {0};
    struct keyspace *made;
    buffer_append_format(&path, "%s/apart.sst%c", f.directory, 0);
    const char *name = (const char *)path.data;
    uint8_t *to = buffer_reserve(&value, 2 * MIB);
    assert_non_null(to);
    memset(to, 'x', 2 * MIB);
    assert_ok(table_writer_create(f.store, name, &writer));
    assert_ok(table_writer_add(writer, bytes_of("a/1"), bytes_make(to, 2 * MIB)));
    assert_ok(table_writer_finish(writer));
    table_writer_destroy(writer);
    assert_ok(store_keyspace_import(f.store, KEYSPACE + 1, &name, 1, &made));
    f.keyspace = made;
    assert_told(&f, "a/ 2 2;");
    buffer_free(&path);
    buffer_free(&value);
    end_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write_buffers_are_walked_over),
        cmocka_unit_test(test_tables_say_who_is_heavy),
        cmocka_unit_test(test_parts_of_an_owner_add_up),
        cmocka_unit_test(test_the_heaviest_come_first_and_are_few),
        cmocka_unit_test(test_compactions_forget_what_is_gone),
        cmocka_unit_test(test_notes_survive_a_restart),
        cmocka_unit_test(test_a_table_written_apart_has_notes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
