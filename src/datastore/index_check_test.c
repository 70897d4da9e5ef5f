/* Tests of the check of indexes, over a store whose rows are written as commits write them, and
 * then broken. */
#include "datastore/index_check.h"

#include "base/testing.h"
#include "datastore/database.h"
#include "datastore/index_definition.h"
#include "datastore/testing.h"
#include "row/fold.h"
#include "row/fragment.h"
#include "row/row_key.h"
#include "store/testing.h"
#include "trestle/datastore.pb-c.h"
#include "wire/proto.h"

enum { IS = 1, WAS = 2, KEYSPACE = 7 };

struct fixture {
    char *directory;
    struct store *store;
    struct keyspace *keyspace;
    struct schema *schema;
    struct arena *arena;
    struct buffer reported; /* "letter: what\n" for each damage */
    struct ds_index_check check;
    struct ds_index index; /* what entities have rows in: index_count of them */
    size_t index_count;
    uint64_t version;
};

static void note(void *context, bytes row_key, const char *what)
{
    struct fixture *f = context;
    buffer_append_format(&f->reported, "%c: %s\n", row_key.data[0], what);
}

static int setup(void **state)
{
    struct fixture *f = *state = calloc(1, sizeof *f);
    const struct family families[] = {{.id = IS, .name = bytes_of(DS_FAMILY_IS)},
                                      {.id = WAS, .name = bytes_of(DS_FAMILY_WAS)}};
    assert_non_null(f);
    f->directory = make_directory();
    struct store_options options = test_options(f->directory);
    options.fold = &row_fold;
    assert_ok(store_open(&options, &f->store));
    f->keyspace = make_keyspace(f->store, KEYSPACE);
    assert_ok(schema_create(GRANULARITY_MICROS, families, 2, 3, &f->schema));
    f->arena = arena_create(1 << 26);
    f->check = (struct ds_index_check){.store = f->store,
                                       .keyspace = f->keyspace,
                                       .schema = f->schema,
                                       .context = f,
                                       .report = note};
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    store_close(f->store);
    schema_destroy(f->schema);
    arena_destroy(f->arena);
    buffer_free(&f->reported);
    remove_directory(f->directory);
    free(f);
    return 0;
}

/* --- rows --- */

static void write_row(struct fixture *f, bytes row_key, const bytes *is)
{
    struct row_change *change = row_change_create(f->arena);
    struct store_batch *batch = store_batch_create();
    struct packed_change packed;
    struct buffer key = {0};
    const bytes column = bytes_make(NULL, 0);
    int64_t at_us = (int64_t)++f->version;
    if (is != NULL)
        row_change_set(change, IS, column, at_us, *is);
    else
        row_change_delete_family(change, IS);
    row_change_set(change, WAS, column, at_us, bytes_of("what was"));
    assert_ok(row_change_pack(change, SIZE_MAX, &packed));
    fragment_set_version(packed.fragment.data, f->version);
    row_record_key(&key, row_key);
    store_batch_merge(batch, f->keyspace, buffer_bytes(&key), buffer_bytes(&packed.fragment));
    assert_ok(store_write(f->store, batch, STORE_ASYNC));
    store_batch_destroy(batch);
    buffer_free(&packed.fragment);
    buffer_free(&key);
}

static void remove_row(struct fixture *f, bytes row_key)
{
    write_row(f, row_key, NULL);
}

static bytes encode_record(struct fixture *f, const Ds__Entity *entity)
{
    Datastore__Record record = DATASTORE__RECORD__INIT;
    struct buffer encoded = {0}, whole = {0};
    proto_encode(&entity->base, &encoded);
    record.entity = proto_data(buffer_bytes(&encoded));
    proto_encode(&record.base, &whole);
    bytes out = arena_copy(f->arena, buffer_bytes(&whole));
    buffer_free(&encoded);
    buffer_free(&whole);
    return out;
}

static bytes row_of(struct fixture *f, const Ds__Entity *entity)
{
    struct buffer key = {0};
    ds_entity_row(&key, entity->key);
    bytes out = arena_copy(f->arena, buffer_bytes(&key));
    buffer_free(&key);
    return out;
}

static const Ds__Entity *make_entity(struct fixture *f, const char *path, const char *properties)
{
    struct buffer json = {0};
    buffer_append_format(&json, "{'properties': {%s}}%c", properties, 0);
    Ds__Entity *entity = test_entity(f->arena, (const char *)json.data);
    entity->key = test_key(f->arena, "n", path);
    buffer_free(&json);
    return entity;
}

static struct ds_index_rows index_rows(struct fixture *f, const Ds__Entity *entity)
{
    struct ds_index_rows rows;
    assert_ok(ds_index_rows(entity, &f->index, f->index_count, f->arena, &rows));
    return rows;
}

/* On (a, -b) of the kind K, with ancestors. */
static void put_index(struct fixture *f, const char *state)
{
    struct buffer json = {0}, key = {0};
    Datastore__CompositeIndex *definition;
    bytes value;
    buffer_append_format(&json,
                         "{'kind': 'K', 'ancestor': 'ALL_ANCESTORS', 'state': '%s', 'properties': ["
                         "{'name': 'a', 'direction': 'ASCENDING'}, "
                         "{'name': 'b', 'direction': 'DESCENDING'}]}%c",
                         state, 0);
    const DsAdmin__Index *asked =
        (const void *)test_message(f->arena, &ds_admin__index__descriptor, (const char *)json.data);
    assert_ok(ds_definition_make(asked, "p", f->arena, &definition));
    definition->id = 7;
    definition->state = (uint32_t)asked->state;
    assert_ok(ds_definition_encode(definition, f->arena, &value));
    ds_index_row(&key, 7);
    write_row(f, buffer_bytes(&key), &value);
    assert_ok(ds_definition_index(definition, f->arena, &f->index));
    f->index_count = 1;
    buffer_free(&json);
    buffer_free(&key);
}

/* The entity, with its index rows. */
static const Ds__Entity *put_entity(struct fixture *f, const char *path, const char *properties)
{
    const Ds__Entity *entity = make_entity(f, path, properties);
    bytes record = encode_record(f, entity);
    struct ds_index_rows rows = index_rows(f, entity);
    write_row(f, row_of(f, entity), &record);
    for (size_t i = 0; i < rows.count; i++)
        write_row(f, rows.rows[i].key, &rows.rows[i].types);
    return entity;
}

/* The first index row of the letter. */
static struct ds_index_row index_row(struct fixture *f, const Ds__Entity *entity, char letter)
{
    struct ds_index_rows rows = index_rows(f, entity);
    for (size_t i = 0; i < rows.count; i++)
        if (rows.rows[i].key.data[0] == (uint8_t)letter)
            return rows.rows[i];
    fail_msg("no row %c", letter);
    return (struct ds_index_row){.key = bytes_make(NULL, 0)};
}

static void assert_reported(struct fixture *f, const char *expected)
{
    buffer_clear(&f->reported);
    assert_ok(ds_index_check_run(&f->check));
    buffer_append_byte(&f->reported, 0);
    assert_string_equal((const char *)f->reported.data, expected);
}

/* --- tests --- */

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

/* One too few and one too many of a kind: only the sums tell. */
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

/* Of one that is not ready any row may be there. */
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
