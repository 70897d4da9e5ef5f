/* The fixture of the tests of index_check.h and index_repair.h: a store whose rows are written as
 * commits write them, and then broken. */
#ifndef TRESTLE_DATASTORE_TESTING_INDEX_TESTING_H
#define TRESTLE_DATASTORE_TESTING_INDEX_TESTING_H

#include "datastore/index/index_check.h"

#include "base/testing/testing.h"
#include "datastore/database.h"
#include "datastore/index/index_definition.h"
#include "datastore/testing/testing.h"
#include "row/fold.h"
#include "row/fragment.h"
#include "row/row_key.h"
#include "store/testing/testing.h"
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

static inline status note(void *context, const struct ds_index_damage *damage)
{
    struct fixture *f = context;
    buffer_append_format(&f->reported, "%c: %s\n", damage->row_key.data[0], damage->what);
    return status_ok();
}

static inline int setup(void **state)
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

static inline int teardown(void **state)
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

static inline void write_row(struct fixture *f, bytes row_key, const bytes *is)
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

static inline void remove_row(struct fixture *f, bytes row_key)
{
    write_row(f, row_key, NULL);
}

static inline bytes encode_record(struct fixture *f, const Ds__Entity *entity)
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

static inline bytes row_of(struct fixture *f, const Ds__Entity *entity)
{
    struct buffer key = {0};
    ds_entity_row(&key, entity->key);
    bytes out = arena_copy(f->arena, buffer_bytes(&key));
    buffer_free(&key);
    return out;
}

static inline const Ds__Entity *make_entity(struct fixture *f, const char *path,
                                            const char *properties)
{
    struct buffer json = {0};
    buffer_append_format(&json, "{'properties': {%s}}%c", properties, 0);
    Ds__Entity *entity = test_entity(f->arena, (const char *)json.data);
    entity->key = test_key(f->arena, "n", path);
    buffer_free(&json);
    return entity;
}

static inline struct ds_index_rows index_rows(struct fixture *f, const Ds__Entity *entity)
{
    struct ds_index_rows rows;
    assert_ok(ds_index_rows(entity, &f->index, f->index_count, f->arena, &rows));
    return rows;
}

/* On (a, -b) of the kind K, with ancestors. */
static inline void put_index(struct fixture *f, const char *state)
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
static inline const Ds__Entity *put_entity(struct fixture *f, const char *path,
                                           const char *properties)
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
static inline struct ds_index_row index_row(struct fixture *f, const Ds__Entity *entity,
                                            char letter)
{
    struct ds_index_rows rows = index_rows(f, entity);
    for (size_t i = 0; i < rows.count; i++)
        if (rows.rows[i].key.data[0] == (uint8_t)letter)
            return rows.rows[i];
    fail_msg("no row %c", letter);
    return (struct ds_index_row){.key = bytes_make(NULL, 0)};
}

static inline void assert_reported(struct fixture *f, const char *expected)
{
    buffer_clear(&f->reported);
    assert_ok(ds_index_check_run(&f->check));
    buffer_append_byte(&f->reported, 0);
    assert_string_equal((const char *)f->reported.data, expected);
}

#endif
