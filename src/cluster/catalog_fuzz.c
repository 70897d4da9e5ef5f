/* Fuzzer: any records as a catalog. What is read, and written again, reads the same; a record that
 * is damaged is named. The store is a few records in memory.
 *
 * Input: choices (base/testing/fuzzing.h): keys and values. */
#include "base/testing/fuzzing.h"
#include "cluster/catalog.h"

#include <stdlib.h>

enum { MOST_RECORDS = 8, MOST_KEY = 16, MOST_VALUE = 255 };

/* --- the store --- */

struct record {
    struct buffer key;
    struct buffer value;
};

struct keyspace {
    struct record records[MOST_RECORDS];
    size_t count;
};

static void put(struct keyspace *keyspace, bytes key, bytes value)
{
    size_t at = 0;
    while (at < keyspace->count && !bytes_equal(buffer_bytes(&keyspace->records[at].key), key))
        at++;
    CHECK(at < MOST_RECORDS);
    struct record *record = &keyspace->records[at];
    keyspace->count += at == keyspace->count;
    buffer_clear(&record->key);
    buffer_clear(&record->value);
    buffer_append_bytes(&record->key, key);
    buffer_append_bytes(&record->value, value);
}

static void clear(struct keyspace *keyspace)
{
    for (size_t i = 0; i < MOST_RECORDS; i++) {
        buffer_free(&keyspace->records[i].key);
        buffer_free(&keyspace->records[i].value);
    }
    keyspace->count = 0;
}

/* The catalog's records go straight to their keyspace; there is no batch. */
void store_batch_put(struct store_batch *batch, struct keyspace *keyspace, bytes key, bytes value)
{
    CHECK(batch == NULL && value.size > 0);
    put(keyspace, key, value);
}

void store_batch_delete(struct store_batch *batch, struct keyspace *keyspace, bytes key)
{
    (void)batch, (void)keyspace, (void)key;
}

void store_batch_delete_range(struct store_batch *batch, struct keyspace *keyspace, bytes from,
                              bytes to)
{
    (void)batch, (void)keyspace, (void)from, (void)to;
}

struct store_cursor {
    const struct keyspace *keyspace;
    size_t at;
};

status store_cursor_create(struct keyspace *keyspace, const struct store_cursor_options *options,
                           struct store_cursor **out)
{
    (void)options;
    *out = calloc(1, sizeof **out);
    CHECK(*out != NULL);
    (*out)->keyspace = keyspace;
    return status_ok();
}

void store_cursor_destroy(struct store_cursor *cursor)
{
    free(cursor);
}

void store_cursor_first(struct store_cursor *cursor)
{
    cursor->at = 0;
}

bool store_cursor_valid(const struct store_cursor *cursor)
{
    return cursor->at < cursor->keyspace->count;
}

void store_cursor_next(struct store_cursor *cursor)
{
    cursor->at++;
}

bytes store_cursor_key(const struct store_cursor *cursor)
{
    return buffer_bytes(&cursor->keyspace->records[cursor->at].key);
}

bytes store_cursor_value(const struct store_cursor *cursor)
{
    return buffer_bytes(&cursor->keyspace->records[cursor->at].value);
}

status store_cursor_status(const struct store_cursor *cursor)
{
    (void)cursor;
    return status_ok();
}

/* --- records --- */

/* Keys are never empty. */
static void choose_record(struct choices *choices, struct keyspace *keyspace)
{
    static const char types[] = {'C', 'K', 'T', 't'};
    unsigned type = choose(choices, 1 + sizeof types);
    bytes rest = choose_bytes(choices, MOST_KEY);
    struct buffer key = {0};
    buffer_append_byte(&key, type == 0 ? choose_byte(choices) : (uint8_t)types[type - 1]);
    buffer_append_bytes(&key, rest);
    put(keyspace, buffer_bytes(&key), choose_bytes(choices, MOST_VALUE));
    buffer_free(&key);
}

/* --- reading, to write it to another keyspace --- */

static void check_rule(const struct gc_rule *rule)
{
    CHECK(rule->kind <= GC_INTERSECTION);
    CHECK(rule->kind != GC_MAX_VERSIONS || rule->max_versions > 0);
    CHECK(rule->kind != GC_MAX_AGE || rule->max_age_us > 0);
    for (size_t i = 0; i < rule->child_count; i++)
        check_rule(&rule->children[i]);
}

static void check_schema(const struct schema *schema)
{
    CHECK(schema->granularity <= GRANULARITY_MICROS);
    for (size_t i = 0; i < schema->family_count; i++) {
        const struct family *family = &schema->families[i];
        CHECK(family->id > 0 && family->id < schema->next_family_id);
        CHECK(schema_family(schema, family->id) == family);
        CHECK(schema_family_named(schema, family->name) == family);
        CHECK(family->aggregate <= AGGREGATE_HLL);
        if (family->gc != NULL)
            check_rule(family->gc);
    }
}

static status copy_table(void *context, const struct table_record *record)
{
    check_schema(record->schema);
    return catalog_put_table(NULL, context, record);
}

static status copy_tablet(void *context, const struct tablet_record *record)
{
    return catalog_put_tablet(NULL, context, record);
}

static status copy_preallocated(void *context, uint64_t keyspace_id)
{
    catalog_put_preallocated(NULL, context, keyspace_id);
    return status_ok();
}

static status copy_next_id(void *context, uint64_t next_id)
{
    return catalog_put_next_id(NULL, context, next_id);
}

static status copy_damage(void *context, const struct damage_record *record)
{
    return catalog_put_damage(NULL, context, record);
}

static bool copy(struct keyspace *from, struct keyspace *to)
{
    const struct catalog_visitor visitor = {.context = to,
                                            .table = copy_table,
                                            .tablet = copy_tablet,
                                            .preallocated = copy_preallocated,
                                            .next_id = copy_next_id,
                                            .damage = copy_damage};
    status s = catalog_read(from, &visitor);
    bool ok = status_is_ok(s);
    CHECK(ok || s.code == STATUS_DATA_LOSS || s.code == STATUS_RESOURCE_EXHAUSTED);
    CHECK(ok || status_message(s)[0] != '\0');
    status_free(s);
    return ok;
}

static void check_same(const struct keyspace *a, const struct keyspace *b)
{
    CHECK(a->count == b->count);
    for (size_t i = 0; i < a->count; i++) {
        CHECK(bytes_equal(buffer_bytes(&a->records[i].key), buffer_bytes(&b->records[i].key)));
        CHECK(bytes_equal(buffer_bytes(&a->records[i].value), buffer_bytes(&b->records[i].value)));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct choices choices = choices_of(data, size);
    struct keyspace given = {.count = 0}, read = {.count = 0}, again = {.count = 0};
    while (given.count < MOST_RECORDS && choices.left.size > 0)
        choose_record(&choices, &given);
    if (copy(&given, &read)) {
        CHECK(copy(&read, &again));
        check_same(&read, &again);
    }
    clear(&given);
    clear(&read);
    clear(&again);
    return 0;
}
