/* Tests of the check of indexes, over a store whose rows are written as commits write them, and
 * then broken. */
#include "cluster/catalog.h"
#include "datastore/testing/index_testing.h"
#include "tablet/drop_records.h"

static void test_what_commits_write_is_whole(void **state)
{
    struct fixture *f = *state;
    put_entity(f, "K/1", "'a': {'integerValue': '5'}, 'b': {'stringValue': 'x'}");
    put_entity(f, "K/1/J/'n'",
               "'tags': {'arrayValue': {'values': [{'stringValue': 'x'}, {'blobValue': 'eA=='}, "
               "{'integerValue': '1'}]}}");
    put_entity(f, "K/2", "'a': {'stringValue': 'no', 'excludeFromIndexes': true}");
    assert_reported(f, "");
    assert_int_equal(f->check.entities, 3);
    assert_int_equal(f->check.index_rows, 3 + (2 + 2));
}

static void test_what_was_does_not_count(void **state)
{
    struct fixture *f = *state;
    const Ds__Entity *entity = put_entity(f, "K/1", "'a': {'integerValue': '5'}");
    struct ds_index_rows rows = index_rows(f, entity);
    remove_row(f, row_of(f, entity));
    for (size_t i = 0; i < rows.count; i++)
        remove_row(f, rows.rows[i].key);
    assert_reported(f, "");
    assert_int_equal(f->check.entities + f->check.index_rows, 0);
}

static void drop_all(struct fixture *f)
{
    struct keyspace *catalog = make_keyspace(f->store, CATALOG_KEYSPACE_ID);
    const struct row_drop_words everything = {.version = 0};
    struct store_batch *batch = store_batch_create();
    struct buffer value = {0};
    uint64_t version = ++f->version;
    assert_ok(drop_record_value(&everything, &value));
    drop_record_put(batch, catalog, KEYSPACE, version, version, &value);
    assert_ok(store_write(f->store, batch, STORE_ASYNC));
    store_batch_destroy(batch);
    buffer_free(&value);
}

static void test_what_was_dropped_does_not_count(void **state)
{
    struct fixture *f = *state;
    put_entity(f, "K/1", "'a': {'integerValue': '5'}");
    drop_all(f);
    assert_reported(f, "");
    assert_int_equal(f->check.entities + f->check.index_rows, 0);
    put_entity(f, "K/2", "'a': {'integerValue': '5'}");
    assert_reported(f, "");
    assert_int_equal(f->check.entities, 1);
}

static void test_a_missing_row_is_found(void **state)
{
    struct fixture *f = *state;
    for (const char *letter = "KA"; *letter != '\0'; letter++) {
        const Ds__Entity *entity = put_entity(f, "K/1", "'a': {'integerValue': '5'}");
        struct ds_index_row row = index_row(f, entity, *letter);
        char expected[100];
        snprintf(expected, sizeof expected, "%c: an index row that its entity should have\n",
                 *letter);
        remove_row(f, row.key);
        assert_reported(f, expected);
        write_row(f, row.key, &row.types);
        assert_reported(f, "");
    }
}

static void test_a_row_too_many_is_found(void **state)
{
    struct fixture *f = *state;
    const Ds__Entity *other = make_entity(f, "K/1", "'a': {'integerValue': '6'}");
    put_entity(f, "K/1", "'a': {'integerValue': '5'}");
    struct ds_index_row row = index_row(f, other, 'A');
    write_row(f, row.key, &row.types);
    assert_reported(f, "A: an index row that its entity should not have\n");
}

static void test_rows_without_an_entity_are_found(void **state)
{
    struct fixture *f = *state;
    const Ds__Entity *entity = put_entity(f, "K/1", "'a': {'integerValue': '5'}");
    remove_row(f, row_of(f, entity));
    assert_reported(f, "A: an index row without its entity\n"
                       "K: an index row without its entity\n");
}

/* The numbers of rows are right, and so is every key. */
static void test_wrong_types_are_found(void **state)
{
    struct fixture *f = *state;
    const Ds__Entity *entity = put_entity(f, "K/1", "'a': {'stringValue': 'x'}");
    struct ds_index_row row = index_row(f, entity, 'A');
    const bytes blob = bytes_make("\x12", 1);
    write_row(f, row.key, &blob);
    assert_reported(f, "A: an index row with other types than its entity's\n");
}

/* A row too few and a row too many of a kind: only the sums tell. */
static void test_a_row_in_place_of_another_is_found(void **state)
{
    struct fixture *f = *state;
    const Ds__Entity *entity = put_entity(f, "K/1", "'a': {'integerValue': '5'}");
    const Ds__Entity *other = make_entity(f, "K/2", "'a': {'integerValue': '5'}");
    struct ds_index_row row = index_row(f, other, 'A');
    remove_row(f, index_row(f, entity, 'A').key);
    write_row(f, row.key, &row.types);
    assert_reported(f, "A: an index row without its entity\n"
                       "A: an index row that its entity should have\n");
}

static void test_a_damaged_entity_is_found(void **state)
{
    struct fixture *f = *state;
    const bytes damaged = bytes_of("\x0a\x7fno record");
    const Ds__Entity *entity = make_entity(f, "K/1", "'a': {'integerValue': '5'}");
    write_row(f, row_of(f, entity), &damaged);
    buffer_clear(&f->reported);
    assert_ok(ds_index_check_run(&f->check));
    assert_true(bytes_start_with(buffer_bytes(&f->reported), bytes_of("E: ")));
}

static void test_an_entity_in_anothers_place_is_found(void **state)
{
    struct fixture *f = *state;
    const Ds__Entity *entity = make_entity(f, "K/1", "");
    bytes record = encode_record(f, entity);
    write_row(f, row_of(f, make_entity(f, "K/2", "")), &record);
    assert_reported(f,
                    "E: The datastore is damaged: an entity that has another key than its row\n");
}

static const char both[] = "'a': {'integerValue': '5'}, 'b': {'integerValue': '6'}";

static void test_composite_indexes_are_held_against_entities(void **state)
{
    struct fixture *f = *state;
    put_index(f, "READY");
    const Ds__Entity *entity = put_entity(f, "P/1/K/1", both);
    put_entity(f, "K/2", "'a': {'integerValue': '5'}");
    assert_reported(f, "");
    assert_int_equal(f->check.index_rows, (1 + 2 + 2) + (1 + 1));
    struct ds_index_row row = index_row(f, entity, 'C');
    remove_row(f, row.key);
    assert_reported(f, "C: an index row that its entity should have\n");
    write_row(f, row.key, &row.types);
    remove_row(f, row_of(f, entity));
    f->index_count = 0;
    struct ds_index_rows rows = index_rows(f, entity);
    for (size_t i = 0; i < rows.count; i++)
        remove_row(f, rows.rows[i].key);
    assert_reported(f, "C: an index row without its entity\n"
                       "C: an index row without its entity\n");
}

/* An index that is not ready may have any of its rows. */
static void test_unready_indexes_may_have_some_rows(void **state)
{
    static const char *const states[] = {"CREATING", "DELETING", "ERROR"};
    struct fixture *f = *state;
    for (size_t i = 0; i < 3; i++) {
        put_index(f, states[i]);
        const Ds__Entity *entity = put_entity(f, "P/1/K/1", both);
        assert_reported(f, "");
        remove_row(f, index_row(f, entity, 'C').key);
        assert_reported(f, "");
    }
}

static void test_rows_of_a_deleted_index_are_found(void **state)
{
    struct fixture *f = *state;
    struct buffer key = {0};
    put_index(f, "DELETING");
    put_entity(f, "P/1/K/1", both);
    ds_index_row(&key, 7);
    remove_row(f, buffer_bytes(&key));
    buffer_free(&key);
    assert_reported(f, "C: a row of a composite index that is not there\n"
                       "C: a row of a composite index that is not there\n");
}

static void test_strange_rows_are_found(void **state)
{
    struct fixture *f = *state;
    const bytes nothing = bytes_make(NULL, 0);
    write_row(f, bytes_of("Zebra"), &nothing);
    write_row(f, bytes_of("Ano value"), &nothing);
    write_row(f, bytes_of("Cno index"), &nothing);
    buffer_clear(&f->reported);
    assert_reported(f, "A: a row key that is none of Datastore's\n"
                       "C: a row of a composite index that is not there\n"
                       "Z: a row key that is none of Datastore's\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_commits_write_is_whole),
        TEST(what_was_does_not_count),
        TEST(what_was_dropped_does_not_count),
        TEST(a_missing_row_is_found),
        TEST(a_row_too_many_is_found),
        TEST(rows_without_an_entity_are_found),
        TEST(wrong_types_are_found),
        TEST(a_row_in_place_of_another_is_found),
        TEST(a_damaged_entity_is_found),
        TEST(an_entity_in_anothers_place_is_found),
        TEST(composite_indexes_are_held_against_entities),
        TEST(unready_indexes_may_have_some_rows),
        TEST(rows_of_a_deleted_index_are_found),
        TEST(strange_rows_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
