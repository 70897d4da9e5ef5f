/* Tests of the records of tellings: what is written is read, by keyspace and drop; what cannot be a
 * record is damage; memory that runs out fails the batch. */
#include "tablet/telling_records.h"

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

static struct telling_record record_of(uint64_t keyspace, uint64_t sequence, const char *next)
{
    return (struct telling_record){.keyspace_id = keyspace,
                                   .sequence = sequence,
                                   .version = sequence + 1000,
                                   .life = sequence * 3,
                                   .end = sequence * 5,
                                   .from = bytes_of("a"),
                                   .to = bytes_of("bcd"),
                                   .next = bytes_of(next)};
}

static void write_batch(struct tablet_fixture *f, struct store_batch *batch)
{
    assert_ok(store_write(f->store, batch, STORE_ASYNC));
    store_batch_destroy(batch);
}

static void put_telling(struct tablet_fixture *f, const struct telling_record *record)
{
    struct store_batch *batch = store_batch_create();
    telling_record_put(batch, system_of(f), record);
    write_batch(f, batch);
}

static void put_row(struct tablet_fixture *f, uint64_t keyspace, uint64_t sequence,
                    const char *row_key)
{
    struct store_batch *batch = store_batch_create();
    struct buffer key = {0};
    uint8_t start[TELLING_KEY_SIZE];
    told_row_key(start, keyspace, sequence);
    buffer_append(&key, start, sizeof start);
    buffer_append_bytes(&key, bytes_of(row_key));
    store_batch_put(batch, system_of(f), buffer_bytes(&key), bytes_of("-"));
    buffer_free(&key);
    write_batch(f, batch);
}

static status note_record(void *context, const struct telling_record *record)
{
    const struct telling_record expected = record_of(record->keyspace_id, record->sequence, "any");
    assert_int_equal(record->version, expected.version);
    assert_int_equal(record->life, expected.life);
    assert_int_equal(record->end, expected.end);
    assert_true(bytes_equal(record->from, expected.from));
    assert_true(bytes_equal(record->to, expected.to));
    buffer_append_format(context, "%d:", (int)record->sequence);
    buffer_append_bytes(context, record->next);
    buffer_append_byte(context, ' ');
    return status_ok();
}

static status note_row(void *context, bytes row_key)
{
    buffer_append_bytes(context, row_key);
    buffer_append_byte(context, ' ');
    return status_ok();
}

static void assert_text(struct buffer *text, const char *expected)
{
    buffer_append_byte(text, 0);
    assert_string_equal((const char *)text->data, expected);
    buffer_free(text);
}

static void assert_tellings(struct tablet_fixture *f, uint64_t keyspace, const char *expected)
{
    struct buffer text = {0};
    assert_ok(telling_records_visit(system_of(f), keyspace, note_record, &text));
    assert_text(&text, expected);
}

static void assert_rows(struct tablet_fixture *f, uint64_t keyspace, uint64_t sequence,
                        const char *expected)
{
    struct buffer text = {0};
    assert_ok(told_rows_visit(system_of(f), keyspace, sequence, note_row, &text));
    assert_text(&text, expected);
}

static void fill(struct tablet_fixture *f)
{
    const struct telling_record records[] = {record_of(7, 300, "b"), record_of(7, 5, ""),
                                             record_of(8, 6, "bb")};
    for (size_t i = 0; i < 3; i++)
        put_telling(f, &records[i]);
    put_row(f, 7, 300, "b2");
    put_row(f, 7, 300, "b1");
    put_row(f, 7, 301, "b3");
    put_row(f, 8, 300, "b4");
}

static void what_is_written_is_read_by_its_keyspace(void **state)
{
    struct tablet_fixture *f = *state;
    fill(f);
    assert_tellings(f, 7, "5: 300:b ");
    assert_tellings(f, 8, "6:bb ");
    assert_tellings(f, 9, "");
    assert_rows(f, 7, 300, "b1 b2 ");
    assert_rows(f, 7, 301, "b3 ");
    assert_rows(f, 8, 5, "");
}

static void what_is_told_goes_by_drop_and_by_keyspace(void **state)
{
    struct tablet_fixture *f = *state;
    struct store_batch *batch = store_batch_create();
    fill(f);
    telling_record_delete(batch, system_of(f), 7, 5);
    told_rows_delete(batch, system_of(f), 7, 300);
    write_batch(f, batch);
    assert_tellings(f, 7, "300:b ");
    assert_rows(f, 7, 300, "");
    assert_rows(f, 7, 301, "b3 ");
    batch = store_batch_create();
    tellings_delete(batch, system_of(f), 7);
    write_batch(f, batch);
    assert_tellings(f, 7, "");
    assert_rows(f, 7, 301, "");
    assert_tellings(f, 8, "6:bb ");
    assert_rows(f, 8, 300, "b4 ");
}

/* The record of a drop of sequence 2, in a keyspace 1. */
static uint8_t key[TELLING_KEY_SIZE] = {[0] = TELLING_RECORD, [8] = 1, [16] = 2};

static void what_is_no_record_is_damage(void **state)
{
    (void)state;
    uint8_t value[35] = {[7] = 1, [27] = 1, [31] = 1, [32] = 'a', [33] = 'b', [34] = 'c'};
    struct telling_record record;
    assert_ok(telling_record_parse(bytes_make(key, sizeof key), bytes_make(value, sizeof value),
                                   &record));
    assert_int_equal(record.sequence, 2);
    assert_true(bytes_equal(record.next, bytes_of("c")));
    assert_true(telling_record_is_of(bytes_make(key, sizeof key), 1, 2));
    assert_false(telling_record_is_of(bytes_make(key, sizeof key), 1, 3));
    assert_false(telling_record_is_of(bytes_make(key, sizeof key - 1), 1, 2));
    for (size_t size = 0; size < 34; size++) /* its keys need two bytes */
        assert_status(
            telling_record_parse(bytes_make(key, sizeof key), bytes_make(value, size), &record),
            STATUS_DATA_LOSS);
    assert_status(telling_record_parse(bytes_make(key, sizeof key - 1),
                                       bytes_make(value, sizeof value), &record),
                  STATUS_DATA_LOSS);
    value[7] = 0; /* no version */
    assert_status(
        telling_record_parse(bytes_make(key, sizeof key), bytes_make(value, sizeof value), &record),
        STATUS_DATA_LOSS);
}

static void without_memory_the_batch_fails(void **state)
{
    struct tablet_fixture *f = *state;
    const struct telling_record record = record_of(7, 5, "b");
    struct store_batch *batch = store_batch_create();
    failmalloc_start(0);
    telling_record_put(batch, system_of(f), &record);
    assert_true(failmalloc_stop());
    assert_true(store_batch_failed(batch));
    store_batch_destroy(batch);
    assert_tellings(f, 7, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_written_is_read_by_its_keyspace, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_told_goes_by_drop_and_by_keyspace, setup, teardown),
        cmocka_unit_test(what_is_no_record_is_damage),
        cmocka_unit_test_setup_teardown(without_memory_the_batch_fails, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
