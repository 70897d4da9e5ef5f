/* Tests of the records of drops: what is written is read, by keyspace; what cannot be a record is
 * damage; memory that runs out. */
#include "tablet/drop_records.h"

#include "base/testing/failmalloc.h"
#include "tablet/testing/testing.h"

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

static struct keyspace *system_of(const struct tablet_fixture *f)
{
    return f->options.catalog;
}

static struct row_drop_words words_of(uint64_t sequence, const char *from, const char *to)
{
    return (struct row_drop_words){.version = sequence + 1000,
                                   .sequence = sequence,
                                   .bytes = sequence * 3,
                                   .newest_table = sequence * 5,
                                   .from = bytes_of(from),
                                   .to = bytes_of(to)};
}

static void write_batch(struct tablet_fixture *f, struct store_batch *batch)
{
    assert_ok(store_write(f->store, batch, STORE_ASYNC));
    store_batch_destroy(batch);
}

static status put_into(struct tablet_fixture *f, struct store_batch *batch, uint64_t keyspace_id,
                       const struct row_drop_words *words)
{
    struct buffer value = {0};
    status s = drop_record_value(words, &value);
    if (status_is_ok(s))
        drop_record_put(batch, system_of(f), keyspace_id, words->version, words->sequence, &value);
    buffer_free(&value);
    return s;
}

static void put_drop(struct tablet_fixture *f, uint64_t keyspace_id, uint64_t sequence,
                     const char *from, const char *to)
{
    struct store_batch *batch = store_batch_create();
    struct row_drop_words words = words_of(sequence, from, to);
    assert_ok(put_into(f, batch, keyspace_id, &words));
    write_batch(f, batch);
}

static struct row_drops *load(struct tablet_fixture *f, uint64_t keyspace_id)
{
    struct row_drops *drops;
    assert_ok(row_drops_create(&drops));
    assert_ok(drop_records_load(system_of(f), keyspace_id, drops));
    return drops;
}

static void assert_next(struct row_drops *drops, uint64_t after, const struct row_drop_words *words)
{
    struct row_drop_words found;
    assert_true(row_drops_next(drops, after, &found));
    assert_int_equal(found.sequence, words->sequence);
    assert_int_equal(found.version, words->version);
    assert_int_equal(found.bytes, words->bytes);
    assert_int_equal(found.newest_table, words->newest_table);
    assert_true(bytes_equal(found.from, words->from));
    assert_true(bytes_equal(found.to, words->to));
}

static void assert_count(struct tablet_fixture *f, uint64_t keyspace_id, size_t count)
{
    struct row_drops *drops = load(f, keyspace_id);
    assert_int_equal(row_drops_count(drops), count);
    row_drops_destroy(drops);
}

static void what_is_written_is_read_by_its_keyspace(void **state)
{
    struct tablet_fixture *f = *state;
    put_drop(f, 7, 300, "", "");
    put_drop(f, 7, 5, "a", "b");
    put_drop(f, 8, 6, "x", "");
    struct row_drop_words first = words_of(5, "a", "b"), second = words_of(300, "", "");
    struct row_drops *drops = load(f, 7);
    assert_int_equal(row_drops_count(drops), 2);
    assert_next(drops, 0, &first);
    assert_next(drops, 5, &second);
    row_drops_destroy(drops);
    assert_count(f, 8, 1);
    assert_count(f, 6, 0);
    assert_count(f, 9, 0);
}

static status note_id(void *context, uint64_t id)
{
    buffer_append_format(context, "%d ", (int)id);
    return status_ok();
}

static void keyspaces_are_visited_once(void **state)
{
    struct tablet_fixture *f = *state;
    struct buffer ids = {0};
    put_drop(f, 9, 5, "a", "b");
    put_drop(f, 7, 5, "a", "b");
    put_drop(f, 7, 6, "a", "b");
    assert_ok(drop_records_visit(system_of(f), note_id, &ids));
    assert_true(bytes_equal(buffer_bytes(&ids), bytes_of("7 9 ")));
    buffer_free(&ids);
}

static void records_are_deleted_one_by_one_and_all_of_a_keyspace(void **state)
{
    struct tablet_fixture *f = *state;
    put_drop(f, 7, 5, "a", "b");
    put_drop(f, 7, 6, "a", "b");
    put_drop(f, 7, 9, "a", "b");
    put_drop(f, 8, 6, "a", "b");
    struct store_batch *batch = store_batch_create();
    drop_record_delete(batch, system_of(f), 7, 6);
    write_batch(f, batch);
    assert_count(f, 7, 2);
    batch = store_batch_create();
    drop_records_delete(batch, system_of(f), 7);
    write_batch(f, batch);
    assert_count(f, 7, 0);
    assert_count(f, 8, 1);
}

/* Of a sound record: with the sizes of its parts changed, or its end before its beginning. */
static void what_cannot_be_is_damage(void **state)
{
    static const char key[] = "d\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0\5";
    static const char value[] = "\0\0\0\0\0\0\0\11\0\0\0\0\0\0\0\0"
                                "\0\0\0\0\0\0\0\3\0\0\0\1ab";
    bytes good_key = bytes_make(key, DROP_RECORD_KEY_SIZE), good = bytes_make(value, 30);
    struct row_drop_words words;
    uint64_t id;
    (void)state;
    assert_ok(drop_record_parse(good_key, good, &id, &words));
    assert_int_equal(id, 7);
    assert_int_equal(words.sequence, 5);
    assert_int_equal(words.version, 9);
    assert_int_equal(words.newest_table, 3);
    assert_true(bytes_equal(words.from, bytes_of("a")));
    assert_true(bytes_equal(words.to, bytes_of("b")));
    assert_status(drop_record_parse(bytes_make(key, 16), good, &id, &words), STATUS_DATA_LOSS);
    assert_status(drop_record_parse(good_key, bytes_make(value, 27), &id, &words),
                  STATUS_DATA_LOSS);
    assert_status(drop_record_parse(good_key, bytes_make(value, 28), &id, &words),
                  STATUS_DATA_LOSS);
    static const char turned[] = "\0\0\0\0\0\0\0\11\0\0\0\0\0\0\0\0"
                                 "\0\0\0\0\0\0\0\0\0\0\0\1ba";
    assert_status(drop_record_parse(good_key, bytes_make(turned, 30), &id, &words),
                  STATUS_DATA_LOSS);
    static const char unversioned[] = "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                                      "\0\0\0\0\0\0\0\0\0\0\0\1ab";
    assert_status(drop_record_parse(good_key, bytes_make(unversioned, 30), &id, &words),
                  STATUS_DATA_LOSS);
}

static void a_value_may_forget_its_table(void **state)
{
    struct row_drop_words words = words_of(5, "a", "b"), found;
    struct buffer value = {0};
    (void)state;
    assert_ok(drop_record_value(&words, &value));
    drop_record_forget_table(&value);
    value.data[7] = 9; /* the version */
    uint64_t id;
    const char key[] = "d\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0\5";
    assert_ok(drop_record_parse(bytes_make(key, DROP_RECORD_KEY_SIZE), buffer_bytes(&value), &id,
                                &found));
    assert_int_equal(found.newest_table, 0);
    assert_int_equal(found.bytes, words.bytes);
    assert_true(bytes_equal(found.from, words.from));
    buffer_free(&value);
}

static void a_record_that_does_not_parse_is_not_passed_over(void **state)
{
    struct tablet_fixture *f = *state;
    struct row_drops *drops;
    struct store_batch *batch = store_batch_create();
    put_drop(f, 7, 5, "a", "b");
    store_batch_put(batch, system_of(f), bytes_make("d\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0\6", 17),
                    bytes_of("x"));
    write_batch(f, batch);
    assert_ok(row_drops_create(&drops));
    assert_status(drop_records_load(system_of(f), 7, drops), STATUS_DATA_LOSS);
    row_drops_destroy(drops);
}

/* Puts a record, and reads and copies what there is; what fails leaves nothing half done. */
static void live_without_memory(void *context)
{
    struct tablet_fixture *f = context;
    struct row_drop_words words = words_of(6, "c", "d");
    struct store_batch *batch = store_batch_create();
    struct row_drops *drops = NULL, *copy = NULL;
    status s = batch == NULL ? status_out_of_memory() : put_into(f, batch, 7, &words);
    if (status_is_ok(s))
        s = row_drops_create(&drops);
    if (status_is_ok(s))
        s = drop_records_load(system_of(f), 7, drops);
    if (status_is_ok(s))
        s = row_drops_copy(drops, &copy);
    assert_true(status_is_ok(s) || s.code == STATUS_RESOURCE_EXHAUSTED);
    assert_true(!status_is_ok(s) || row_drops_count(copy) == 2);
    status_free(s);
    row_drops_destroy(copy);
    row_drops_destroy(drops);
    store_batch_destroy(batch);
}

static void memory_that_runs_out_is_said(void **state)
{
    struct tablet_fixture *f = *state;
    put_drop(f, 7, 5, "a", "b");
    put_drop(f, 7, 9, "c", "");
    failmalloc_each(live_without_memory, f);
    assert_count(f, 7, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_written_is_read_by_its_keyspace, setup, teardown),
        cmocka_unit_test_setup_teardown(records_are_deleted_one_by_one_and_all_of_a_keyspace, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(keyspaces_are_visited_once, setup, teardown),
        cmocka_unit_test(what_cannot_be_is_damage),
        cmocka_unit_test(a_value_may_forget_its_table),
        cmocka_unit_test_setup_teardown(a_record_that_does_not_parse_is_not_passed_over, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(memory_that_runs_out_is_said, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
