/* A database in memory: see query_fake.h. */
#include "datastore/testing/query_fake.h"

#include "base/check.h"
#include "base/testing/testing.h"
#include "datastore/model/validate.h"
#include "datastore/query/query_cursor.h"
#include "datastore/testing/testing.h"

#include <stdlib.h>

struct ds_rows_reader {
    struct fake *fake;
    enum ds_way way;
    size_t at;      /* backwards: behind the row that is next */
    bytes end;      /* of the range; backwards its beginning */
    uint8_t *shown; /* a copy, so that what is used too late shows */
};

/* --- what is in it --- */

int fake_setup(void **state)
{
    struct arena *arena = arena_create(256 << 20);
    struct fake *fake = arena == NULL ? NULL : arena_zalloc(arena, sizeof *fake);
    if (fake == NULL)
        return 1;
    fake->arena = arena;
    *state = fake;
    return 0;
}

int fake_teardown(void **state)
{
    struct fake *fake = *state;
    arena_destroy(fake->arena);
    return 0;
}

static void add_entity(struct fake *fake, struct vector *list, const Ds__Entity *entity)
{
    assert_ok(vector_add(list, fake->arena, &entity, sizeof(const Ds__Entity *)));
}

void fake_add(struct fake *fake, const Ds__Entity *entity)
{
    add_entity(fake, &fake->entities, entity);
}

void fake_put(struct fake *fake, const char *path, const char *properties)
{
    struct buffer json = {0};
    buffer_append_format(&json, "{'properties': {%s}}", properties);
    buffer_append_byte(&json, '\0');
    Ds__Entity *entity = test_entity(fake->arena, (const char *)json.data);
    entity->key = test_key(fake->arena, "", path);
    assert_ok(
        ds_entity_normalise(entity, &(struct ds_database){.project = "p", .id = ""}, fake->arena));
    fake_add(fake, entity);
    buffer_free(&json);
}

void fake_add_past(struct fake *fake, const Ds__Entity *entity)
{
    add_entity(fake, &fake->past, entity);
}

void fake_add_index(struct fake *fake, const char *text)
{
    enum { MOST = 16 };
    char *copy = arena_string(fake->arena, bytes_of(text)), *rest = NULL;
    const char **properties = arena_alloc(fake->arena, MOST * sizeof *properties);
    enum ds_flip *flips = arena_alloc(fake->arena, MOST * sizeof *flips);
    CHECK(copy != NULL && properties != NULL && flips != NULL);
    struct ds_index index = {.id = fake->indexes.count + 1,
                             .properties = properties,
                             .shape = {.flips = flips, .has_ancestors = copy[0] == '^'}};
    index.kind = strtok_r(copy + (copy[0] == '^'), " ", &rest);
    for (char *name; (name = strtok_r(NULL, " ", &rest)) != NULL;) {
        enum ds_flip flip = name[0] == '-' ? DS_DESCENDING : DS_ASCENDING;
        name += name[0] == '-';
        if (strcmp(name, "__key__") == 0) {
            index.shape.key_flip = flip;
            continue;
        }
        CHECK(index.shape.values < MOST);
        properties[index.shape.values] = name;
        flips[index.shape.values++] = flip;
    }
    assert_ok(vector_add(&fake->indexes, fake->arena, &index, sizeof index));
}

/* --- rows --- */

static void add_rows(struct fake *fake, const Ds__Entity *entity)
{
    struct ds_index_rows rows;
    assert_ok(ds_index_rows(entity, fake->indexes.items, fake->indexes.count, fake->arena, &rows));
    for (size_t i = 0; i < rows.count; i++)
        assert_ok(vector_add(&fake->rows, fake->arena, &rows.rows[i], sizeof rows.rows[i]));
}

static void add_entity_row(struct fake *fake, const Ds__Entity *entity)
{
    struct buffer key = {0};
    ds_entity_row(&key, entity->key);
    struct ds_index_row row = {.key = arena_copy(fake->arena, buffer_bytes(&key))};
    CHECK(row.key.data != NULL);
    assert_ok(vector_add(&fake->rows, fake->arena, &row, sizeof row));
    buffer_free(&key);
}

static int compare_rows(const void *a, const void *b)
{
    const struct ds_index_row *first = a, *second = b;
    return bytes_compare(first->key, second->key);
}

/* Of a row that is in past and present the types are lost, as they are when an old cell shows. */
static void sort_rows(struct vector *list)
{
    struct ds_index_row *rows = list->items;
    size_t count = 0;
    if (list->count > 1)
        qsort(rows, list->count, sizeof *rows, compare_rows);
    for (size_t i = 0; i < list->count; i++)
        if (count == 0 || !bytes_equal(rows[count - 1].key, rows[i].key))
            rows[count++] = rows[i];
    list->count = count;
}

static int compare_entities(const void *a, const void *b)
{
    const Ds__Entity *const *first = a, *const *second = b;
    return ds_key_value_compare((*first)->key, (*second)->key);
}

struct ds_reading fake_reading(struct fake *fake)
{
    if (fake->entities.count > 1)
        qsort(fake->entities.items, fake->entities.count, sizeof(const Ds__Entity *),
              compare_entities);
    const Ds__Entity *const *entities = fake->entities.items, *const *past = fake->past.items;
    fake->rows = (struct vector){.count = 0};
    for (size_t i = 0; i < fake->entities.count; i++) {
        add_rows(fake, entities[i]);
        add_entity_row(fake, entities[i]);
    }
    for (size_t i = 0; i < fake->past.count; i++)
        add_rows(fake, past[i]);
    sort_rows(&fake->rows);
    return (struct ds_reading){.snapshot = {.table = (struct table *)fake,
                                            .database = {.project = "p", .id = ""},
                                            .at_us = 7,
                                            .is_past = fake->past.count > 0},
                               .read_time_us = 7};
}

/* --- snapshot.h and reading.h --- */

static struct fake *fake_of(const struct ds_snapshot *snapshot)
{
    return (struct fake *)snapshot->table;
}

status ds_snapshot_get(const struct ds_snapshot *snapshot, const Ds__Key *key, struct arena *arena,
                       struct ds_version *out)
{
    const struct fake *fake = fake_of(snapshot);
    const Ds__Entity *const *entities = fake->entities.items;
    (void)arena;
    *out = (struct ds_version){.version_us = 3, .create_us = 2};
    size_t low = 0, high = fake->entities.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ds_key_value_compare(entities[middle]->key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < fake->entities.count && ds_key_value_compare(entities[low]->key, key) == 0)
        out->entity = entities[low];
    return status_ok();
}

status ds_rows_open(const struct ds_snapshot *snapshot, enum ds_way way, bytes from, bytes to,
                    struct arena *arena, struct ds_rows_reader **out)
{
    struct fake *fake = fake_of(snapshot);
    struct ds_rows_reader *reader = malloc(sizeof *reader);
    CHECK(reader != NULL && (to.size == 0 || bytes_compare(from, to) < 0));
    *reader = (struct ds_rows_reader){.fake = fake,
                                      .way = way,
                                      .at = way == DS_FORWARDS ? 0 : fake->rows.count,
                                      .end = arena_copy(arena, way == DS_FORWARDS ? to : from)};
    CHECK(reader->end.data != NULL);
    fake->opened++;
    *out = reader;
    return ds_rows_seek(reader, way == DS_FORWARDS ? from : to);
}

void ds_rows_close(struct ds_rows_reader *reader)
{
    if (reader == NULL)
        return;
    reader->fake->opened--;
    free(reader->shown);
    free(reader);
}

/* The next row and, if there is one, on to the one after it. */
static const struct ds_index_row *take_row(struct ds_rows_reader *reader)
{
    const struct ds_index_row *rows = reader->fake->rows.items;
    if (reader->way == DS_BACKWARDS)
        return reader->at > 0 && bytes_compare(rows[reader->at - 1].key, reader->end) >= 0
                   ? &rows[--reader->at]
                   : NULL;
    return reader->at < reader->fake->rows.count &&
                   (reader->end.size == 0 || bytes_compare(rows[reader->at].key, reader->end) < 0)
               ? &rows[reader->at++]
               : NULL;
}

status ds_rows_next(struct ds_rows_reader *reader, struct ds_row_found *row, bool *found)
{
    const struct ds_index_row *at = take_row(reader);
    reader->fake->read += at != NULL;
    free(reader->shown);
    reader->shown = NULL;
    *found = at != NULL;
    if (!*found)
        return status_ok();
    reader->shown = malloc(at->key.size);
    CHECK(reader->shown != NULL);
    memcpy(reader->shown, at->key.data, at->key.size);
    *row = (struct ds_row_found){.key = bytes_make(reader->shown, at->key.size),
                                 .value = reader->fake->past.count > 0 ? (bytes){0} : at->types};
    return status_ok();
}

status ds_rows_seek(struct ds_rows_reader *reader, bytes key)
{
    const struct ds_index_row *rows = reader->fake->rows.items;
    bool is_up = reader->way == DS_FORWARDS;
    size_t count = reader->fake->rows.count;
    size_t low = is_up ? reader->at : 0, high = is_up ? count : reader->at;
    CHECK(!is_up || low == 0 || bytes_compare(rows[low - 1].key, key) < 0);
    CHECK(is_up || high == count || key.size == 0 || bytes_compare(key, rows[high].key) <= 0);
    if (!is_up && key.size == 0)
        return status_ok();
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (bytes_compare(rows[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    reader->at = low;
    return status_ok();
}

status ds_reading_note_range(struct ds_reading *reading, bytes from, bytes to)
{
    struct fake *fake = fake_of(&reading->snapshot);
    CHECK(to.size == 0 || bytes_compare(from, to) < 0);
    fake->noted++;
    if (from.data[0] == DS_ENTITY_ROW)
        return status_ok();
    struct ds_read_range range = {arena_copy(fake->arena, from), arena_copy(fake->arena, to)};
    return vector_add(&fake->ranges, fake->arena, &range, sizeof range);
}

/* --- running --- */

status fake_run(struct fake *fake, const Ds__Query *request, const char *name_space,
                Ds__QueryResultBatch **out)
{
    Ds__PartitionId *partition = arena_alloc(fake->arena, sizeof *partition);
    struct ds_query *query = arena_alloc(fake->arena, sizeof *query);
    struct ds_database database = {.project = "p", .id = ""};
    struct ds_plan plan;
    CHECK(partition != NULL && query != NULL);
    *partition = (Ds__PartitionId)DS__PARTITION_ID__INIT;
    partition->namespace_id = name_space;
    TRY(ds_query_check(request, partition, &database, fake->arena, query));
    TRY(ds_plan_make(query, fake->indexes.items, fake->indexes.count, fake->arena, &plan));
    TRY(ds_cursors_read(request, query));
    struct ds_reading reading = fake_reading(fake);
    status s = ds_batch_make(query, NULL, &plan, &reading, fake->arena, &fake->reads, out);
    assert_int_equal(fake->opened, 0);
    return s;
}

static void describe_value(const Ds__Value *value, struct buffer *out)
{
    switch (value->value_type_case) {
    case DS__VALUE__VALUE_TYPE_INTEGER_VALUE:
        buffer_append_format(out, "%lld", (long long)value->integer_value);
        break;
    case DS__VALUE__VALUE_TYPE_STRING_VALUE:
        buffer_append_format(out, "%s", value->string_value);
        break;
    case DS__VALUE__VALUE_TYPE_DOUBLE_VALUE:
        buffer_append_format(out, "%.1f", value->double_value);
        break;
    default:
        buffer_append_format(out, "?%d", (int)value->value_type_case);
    }
}

static void describe(const Ds__QueryResultBatch *batch, struct buffer *out)
{
    for (size_t i = 0; i < batch->n_entity_results; i++) {
        const Ds__Entity *entity = batch->entity_results[i]->entity;
        const Ds__Key__PathElement *last = entity->key->path[entity->key->n_path - 1];
        buffer_append_format(out, out->size > 0 ? " %lld" : "%lld", (long long)last->id);
        if (batch->entity_result_type != DS__ENTITY_RESULT__RESULT_TYPE__PROJECTION)
            continue;
        for (size_t j = 0; j < entity->n_properties; j++) {
            buffer_append_byte(out, j == 0 ? '(' : ',');
            describe_value(entity->properties[j]->value, out);
        }
        buffer_append_byte(out, ')');
    }
}

status fake_list(struct fake *fake, Ds__Query *request, int page, struct buffer *out)
{
    Pb__Int32Value limit = PB__INT32_VALUE__INIT;
    limit.value = page;
    for (int rounds = 0; rounds < 1000; rounds++) {
        Ds__QueryResultBatch *batch;
        if (page > 0)
            request->limit = &limit;
        status s = fake_run(fake, request, "", &batch);
        if (page > 0)
            request->limit = NULL;
        TRY(s);
        describe(batch, out);
        if (batch->more_results == DS__QUERY_RESULT_BATCH__MORE_RESULTS_TYPE__NO_MORE_RESULTS ||
            batch->more_results ==
                DS__QUERY_RESULT_BATCH__MORE_RESULTS_TYPE__MORE_RESULTS_AFTER_CURSOR)
            return status_ok();
        request->offset -= batch->skipped_results;
        request->start_cursor = batch->end_cursor;
    }
    fail_msg("the query does not end");
    return status_ok();
}
