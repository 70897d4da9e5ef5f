/* See catalog.h. */
#include "cluster/catalog.h"

#include "base/check.h"
#include "trestle/catalog.pb-c.h"
#include "wire/proto.h"

#include <stdio.h>

enum record_type {
    RECORD_COUNTERS = 'C',
    RECORD_DAMAGE = 'D',
    RECORD_PREALLOCATED = 'K',
    RECORD_MUTES = 'M',
    RECORD_TABLE = 'T',
    RECORD_TABLET = 't',
    RECORD_UNCLAIMED = 'U',
    RECORD_KEPT = 'r',
    RECORD_FORMER = 'f',
};

enum {
    ID_SIZE = 8,
    /* One record's memory while it is read or written: 100 families with rules take some 100 KB. */
    RECORD_MEMORY = 64 << 20,
};

/* --- keys --- */

struct id_key {
    uint8_t data[1 + ID_SIZE];
};

static struct id_key make_id_key(enum record_type type, uint64_t id)
{
    struct id_key key = {.data = {(uint8_t)type}};
    for (int i = ID_SIZE; i > 0; i--, id >>= 8)
        key.data[i] = (uint8_t)id;
    return key;
}

static bytes id_key_bytes(const struct id_key *key)
{
    return bytes_make(key->data, sizeof key->data);
}

static uint64_t id_at(bytes key, size_t at)
{
    uint64_t id = 0;
    for (size_t i = at; i < at + ID_SIZE; i++)
        id = id << 8 | key.data[i];
    return id;
}

static uint64_t id_of_key(bytes key)
{
    return id_at(key, 1);
}

uint64_t catalog_id_of_key(bytes key)
{
    return key.size < 1 + ID_SIZE ? 0 : id_of_key(key);
}

/* Keyspace, file, block. */
struct damage_key {
    uint8_t data[1 + 3 * ID_SIZE];
};

static struct damage_key make_damage_key(const struct damage_record *record)
{
    const uint64_t ids[] = {record->keyspace_id, record->file, record->block};
    struct damage_key key = {.data = {RECORD_DAMAGE}};
    for (size_t i = 0; i < 3; i++) {
        struct id_key part = make_id_key(RECORD_DAMAGE, ids[i]);
        memcpy(key.data + 1 + i * ID_SIZE, part.data + 1, ID_SIZE);
    }
    return key;
}

struct former_key {
    uint8_t data[1 + 2 * ID_SIZE];
};

static struct former_key make_former_key(uint64_t table_id, uint64_t tablet_id)
{
    const struct id_key table = make_id_key(RECORD_FORMER, table_id);
    const struct id_key tablet = make_id_key(RECORD_FORMER, tablet_id);
    struct former_key key;
    memcpy(key.data, table.data, sizeof table.data);
    memcpy(key.data + sizeof table.data, tablet.data + 1, ID_SIZE);
    return key;
}

static void append_tablet_key(struct buffer *key, uint64_t table_id, bytes start)
{
    struct id_key prefix = make_id_key(RECORD_TABLET, table_id);
    buffer_append_bytes(key, id_key_bytes(&prefix));
    buffer_append_bytes(key, start);
}

/* --- messages --- */

static status put_message(struct store_batch *batch, struct keyspace *catalog, bytes key,
                          const ProtobufCMessage *message)
{
    struct buffer value = {0};
    proto_encode(message, &value);
    bool failed = value.failed;
    if (!failed)
        store_batch_put(batch, catalog, key, buffer_bytes(&value));
    buffer_free(&value);
    return failed ? status_out_of_memory() : status_ok();
}

/* A record is never empty, as the store demands, even if its message is. */
static const char preallocated_value[] = "-";

static status rule_to_message(const struct gc_rule *rule, struct arena *arena,
                              Catalog__GcRule **out)
{
    Catalog__GcRule *message;
    PROTO_NEW(arena, message, CATALOG__GC_RULE__INIT);
    message->kind = (Catalog__GcRule__Kind)rule->kind;
    message->max_versions = rule->max_versions;
    message->max_age_us = rule->max_age_us;
    message->children = arena_alloc(arena, rule->child_count * sizeof(*message->children));
    if (message->children == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < rule->child_count; i++)
        TRY(rule_to_message(&rule->children[i], arena, &message->children[i]));
    message->n_children = rule->child_count;
    *out = message;
    return status_ok();
}

static status family_to_message(const struct family *family, struct arena *arena,
                                Catalog__Family **out)
{
    Catalog__Family *message;
    PROTO_NEW(arena, message, CATALOG__FAMILY__INIT);
    message->id = family->id;
    message->name = arena_string(arena, family->name);
    message->aggregate = (Catalog__Family__Aggregate)family->aggregate;
    message->input = (Catalog__Family__Input)family->input;
    message->value_type = proto_data(family->value_type);
    if (message->name == NULL)
        return status_out_of_memory();
    if (family->gc != NULL)
        TRY(rule_to_message(family->gc, arena, &message->gc));
    *out = message;
    return status_ok();
}

static status families_to_messages(const struct schema *schema, struct arena *arena,
                                   Catalog__Table *table)
{
    table->families = arena_alloc(arena, schema->family_count * sizeof(*table->families));
    if (table->families == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < schema->family_count; i++)
        TRY(family_to_message(&schema->families[i], arena, &table->families[i]));
    table->n_families = schema->family_count;
    return status_ok();
}

static status rule_from_message(const Catalog__GcRule *message, struct arena *arena,
                                struct gc_rule *rule)
{
    struct gc_rule *children = arena_zalloc(arena, message->n_children * sizeof *children);
    if (children == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < message->n_children; i++)
        TRY(rule_from_message(message->children[i], arena, &children[i]));
    *rule = (struct gc_rule){.kind = (enum gc_kind)message->kind,
                             .max_versions = message->max_versions,
                             .max_age_us = message->max_age_us,
                             .children = children,
                             .child_count = message->n_children};
    return status_ok();
}

static status family_from_message(const Catalog__Family *message, struct arena *arena,
                                  struct family *family)
{
    *family = (struct family){.id = message->id,
                              .name = bytes_of(message->name),
                              .aggregate = (enum aggregate)message->aggregate,
                              .input = (enum aggregate_input)message->input,
                              .value_type = proto_bytes(message->value_type)};
    if (message->gc == NULL)
        return status_ok();
    struct gc_rule *rule = arena_alloc(arena, sizeof *rule);
    if (rule == NULL)
        return status_out_of_memory();
    family->gc = rule;
    return rule_from_message(message->gc, arena, rule);
}

static status schema_from_message(const Catalog__Table *message, struct arena *arena,
                                  struct schema **out)
{
    struct family *families = arena_alloc(arena, message->n_families * sizeof *families);
    if (families == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < message->n_families; i++)
        TRY(family_from_message(message->families[i], arena, &families[i]));
    return schema_create((enum granularity)message->granularity, families, message->n_families,
                         message->next_family_id, out);
}

/* --- writing --- */

static status encode_table(const struct table_record *record, struct arena *arena,
                           struct buffer *out)
{
    Catalog__Table message = CATALOG__TABLE__INIT;
    message.id = record->id;
    message.name = record->name;
    message.generation = record->generation;
    message.granularity = (Catalog__Table__Granularity)record->schema->granularity;
    message.next_family_id = record->schema->next_family_id;
    message.deletion_protection = record->deletion_protection;
    message.extra = proto_data(record->extra);
    message.deleted_us = record->deleted_us;
    message.records_deletions = record->records_deletions;
    Catalog__ChangeStream stream = CATALOG__CHANGE_STREAM__INIT;
    stream.retention_us = record->stream.retention_us;
    stream.life = record->stream.life;
    stream.from_us = record->stream.from_us;
    if (stream.retention_us != 0)
        message.change_stream = &stream;
    Catalog__View view = CATALOG__VIEW__INIT;
    view.source = record->view.source_id;
    view.records = record->view.records_id;
    view.shard = record->view.shard;
    if (view.source != 0)
        message.view = &view;
    message.is_viewed = record->is_viewed;
    message.uid = record->uid;
    TRY(families_to_messages(record->schema, arena, &message));
    proto_encode(&message.base, out);
    return out->failed ? status_out_of_memory() : status_ok();
}

status catalog_encode_table(const struct table_record *record, struct buffer *out)
{
    struct arena *arena = arena_create(RECORD_MEMORY);
    if (arena == NULL)
        return status_out_of_memory();
    status s = encode_table(record, arena, out);
    arena_destroy(arena);
    return s;
}

status catalog_put_table(struct store_batch *batch, struct keyspace *catalog,
                         const struct table_record *record)
{
    struct id_key key = make_id_key(RECORD_TABLE, record->id);
    struct buffer value = {0};
    status s = catalog_encode_table(record, &value);
    if (status_is_ok(s))
        store_batch_put(batch, catalog, id_key_bytes(&key), buffer_bytes(&value));
    buffer_free(&value);
    return s;
}

void catalog_delete_table(struct store_batch *batch, struct keyspace *catalog, uint64_t table_id)
{
    struct id_key key = make_id_key(RECORD_TABLE, table_id);
    struct catalog_mutes_key mutes = catalog_mutes_key(table_id);
    store_batch_delete(batch, catalog, id_key_bytes(&key));
    store_batch_delete(batch, catalog, bytes_make(mutes.data, sizeof mutes.data));
}

struct catalog_mutes_key catalog_mutes_key(uint64_t table_id)
{
    struct id_key key = make_id_key(RECORD_MUTES, table_id);
    struct catalog_mutes_key out;
    memcpy(out.data, key.data, sizeof out.data);
    return out;
}

status catalog_put_tablet(struct store_batch *batch, struct keyspace *catalog,
                          const struct tablet_record *record)
{
    Catalog__Tablet message = CATALOG__TABLET__INIT;
    message.id = record->id;
    message.keyspace = record->keyspace_id;
    message.shard = record->shard;
    message.end = proto_data(record->end);
    struct buffer key = {0};
    append_tablet_key(&key, record->table_id, record->start);
    status s = key.failed ? status_out_of_memory()
                          : put_message(batch, catalog, buffer_bytes(&key), &message.base);
    buffer_free(&key);
    return s;
}

status catalog_delete_tablet(struct store_batch *batch, struct keyspace *catalog, uint64_t table_id,
                             bytes start)
{
    struct buffer key = {0};
    append_tablet_key(&key, table_id, start);
    bool failed = key.failed;
    if (!failed)
        store_batch_delete(batch, catalog, buffer_bytes(&key));
    buffer_free(&key);
    return failed ? status_out_of_memory() : status_ok();
}

static void delete_all_of(struct store_batch *batch, struct keyspace *catalog,
                          enum record_type type, uint64_t table_id)
{
    struct id_key from = make_id_key(type, table_id);
    struct id_key to = make_id_key(type, table_id + 1);
    store_batch_delete_range(batch, catalog, id_key_bytes(&from), id_key_bytes(&to));
}

void catalog_delete_tablets(struct store_batch *batch, struct keyspace *catalog, uint64_t table_id)
{
    delete_all_of(batch, catalog, RECORD_TABLET, table_id);
    delete_all_of(batch, catalog, RECORD_FORMER, table_id);
}

status catalog_put_former(struct store_batch *batch, struct keyspace *catalog,
                          const struct former_tablet_record *record)
{
    Catalog__FormerTablet message = CATALOG__FORMER_TABLET__INIT;
    message.start = proto_data(record->start);
    message.end = proto_data(record->end);
    message.shard = record->shard;
    message.gone_us = record->gone_us;
    struct former_key key = make_former_key(record->table_id, record->id);
    return put_message(batch, catalog, bytes_make(key.data, sizeof key.data), &message.base);
}

void catalog_delete_former(struct store_batch *batch, struct keyspace *catalog, uint64_t table_id,
                           uint64_t tablet_id)
{
    struct former_key key = make_former_key(table_id, tablet_id);
    store_batch_delete(batch, catalog, bytes_make(key.data, sizeof key.data));
}

void catalog_append_kept_key(struct buffer *key, uint64_t table_id)
{
    struct id_key prefix = make_id_key(RECORD_KEPT, table_id);
    buffer_append_bytes(key, id_key_bytes(&prefix));
}

void catalog_delete_kept(struct store_batch *batch, struct keyspace *catalog, uint64_t table_id)
{
    delete_all_of(batch, catalog, RECORD_KEPT, table_id);
}

void catalog_put_preallocated(struct store_batch *batch, struct keyspace *catalog,
                              uint64_t keyspace_id)
{
    struct id_key key = make_id_key(RECORD_PREALLOCATED, keyspace_id);
    store_batch_put(batch, catalog, id_key_bytes(&key), bytes_of(preallocated_value));
}

void catalog_delete_preallocated(struct store_batch *batch, struct keyspace *catalog,
                                 uint64_t keyspace_id)
{
    struct id_key key = make_id_key(RECORD_PREALLOCATED, keyspace_id);
    store_batch_delete(batch, catalog, id_key_bytes(&key));
}

void catalog_put_unclaimed(struct store_batch *batch, struct keyspace *catalog,
                           uint64_t keyspace_id, int64_t found_us)
{
    struct id_key key = make_id_key(RECORD_UNCLAIMED, keyspace_id);
    struct id_key time = make_id_key(RECORD_UNCLAIMED, (uint64_t)found_us);
    store_batch_put(batch, catalog, id_key_bytes(&key), bytes_from(id_key_bytes(&time), 1));
}

void catalog_delete_unclaimed(struct store_batch *batch, struct keyspace *catalog,
                              uint64_t keyspace_id)
{
    struct id_key key = make_id_key(RECORD_UNCLAIMED, keyspace_id);
    store_batch_delete(batch, catalog, id_key_bytes(&key));
}

status catalog_put_next_id(struct store_batch *batch, struct keyspace *catalog, uint64_t next_id)
{
    Catalog__Counters message = CATALOG__COUNTERS__INIT;
    message.next_id = next_id;
    uint8_t key = RECORD_COUNTERS;
    return put_message(batch, catalog, bytes_make(&key, sizeof key), &message.base);
}

status catalog_put_damage(struct store_batch *batch, struct keyspace *catalog,
                          const struct damage_record *record)
{
    Catalog__Damage message = CATALOG__DAMAGE__INIT;
    message.from = proto_data(record->from);
    message.to = proto_data(record->to);
    message.what = record->what;
    message.found_us = record->found_us;
    struct damage_key key = make_damage_key(record);
    return put_message(batch, catalog, bytes_make(key.data, sizeof key.data), &message.base);
}

void catalog_delete_damage(struct store_batch *batch, struct keyspace *catalog,
                           const struct damage_record *record)
{
    struct damage_key key = make_damage_key(record);
    store_batch_delete(batch, catalog, bytes_make(key.data, sizeof key.data));
}

/* --- reading ---
 *
 * A record that parses but says what cannot be is as damaged as one that does not: what the rules
 * of a family seem to condemn, compactions delete. */

static status damage(const char *what)
{
    return status_make(STATUS_DATA_LOSS, "%s", what);
}

static bool rule_is_sound(const struct gc_rule *rule)
{
    switch (rule->kind) {
    case GC_MAX_VERSIONS:
        return rule->max_versions > 0;
    case GC_MAX_AGE:
        return rule->max_age_us > 0;
    case GC_UNION:
    case GC_INTERSECTION:
        for (size_t i = 0; i < rule->child_count; i++)
            if (!rule_is_sound(&rule->children[i]))
                return false;
        return true;
    }
    return false;
}

/* Names and ids are each given once: a search for the family by either finds it. */
static bool family_is_sound(const struct schema *schema, const struct family *family)
{
    return family->id > 0 && family->id < schema->next_family_id &&
           family->aggregate <= AGGREGATE_HLL && schema_family(schema, family->id) == family &&
           schema_family_named(schema, family->name) == family &&
           (family->gc == NULL || rule_is_sound(family->gc));
}

static bool schema_is_sound(const struct schema *schema)
{
    for (size_t i = 0; i < schema->family_count; i++)
        if (!family_is_sound(schema, &schema->families[i]))
            return false;
    return schema->granularity <= GRANULARITY_MICROS;
}

/* A fault in a table's record, in words; NULL if all is sound. */
static const char *table_fault(const Catalog__Table *message, const struct schema *schema)
{
    const Catalog__ChangeStream *stream = message->change_stream;
    if (message->deleted_us < 0)
        return "it was deleted before 1970";
    if (stream != NULL && (stream->retention_us <= 0 || stream->life == 0 || stream->from_us < 0))
        return "its change stream cannot be";
    if (message->view != NULL && (message->view->source == 0 || message->view->records == 0))
        return "it is a view without a source, or without records";
    return schema_is_sound(schema) ? NULL : "its families cannot be";
}

static status visit_counters(const struct catalog_visitor *visitor, bytes value,
                             struct arena *arena)
{
    ProtobufCMessage *message;
    TRY(proto_decode(&catalog__counters__descriptor, value, arena, &message));
    uint64_t next_id = ((const Catalog__Counters *)(void *)message)->next_id;
    return next_id == 0 ? damage("no id is left") : visitor->next_id(visitor->context, next_id);
}

status catalog_decode_table(bytes value, struct arena *arena, struct table_record *out,
                            struct schema **schema)
{
    ProtobufCMessage *base;
    *schema = NULL;
    TRY(proto_decode(&catalog__table__descriptor, value, arena, &base));
    const Catalog__Table *message = (const Catalog__Table *)(void *)base;
    TRY(schema_from_message(message, arena, schema));
    *out = (struct table_record){.id = message->id,
                                 .name = message->name,
                                 .generation = message->generation,
                                 .schema = *schema,
                                 .deletion_protection = message->deletion_protection,
                                 .extra = proto_bytes(message->extra),
                                 .deleted_us = message->deleted_us,
                                 .records_deletions = message->records_deletions,
                                 .is_viewed = message->is_viewed,
                                 .uid = message->uid};
    if (message->view != NULL)
        out->view = (struct view_record){.source_id = message->view->source,
                                         .records_id = message->view->records,
                                         .shard = message->view->shard};
    if (message->change_stream != NULL)
        out->stream = (struct table_stream){.retention_us = message->change_stream->retention_us,
                                            .life = message->change_stream->life,
                                            .from_us = message->change_stream->from_us};
    const char *fault = table_fault(message, *schema);
    if (fault == NULL)
        return status_ok();
    schema_destroy(*schema);
    *schema = NULL;
    return damage(fault);
}

static status visit_table(const struct catalog_visitor *visitor, bytes key, bytes value,
                          struct arena *arena)
{
    struct table_record record;
    struct schema *schema;
    TRY(catalog_decode_table(value, arena, &record, &schema));
    status s = record.id == 0 || record.id != id_of_key(key)
                   ? damage("it has no id, or not its key's")
                   : visitor->table(visitor->context, &record);
    schema_destroy(schema);
    return s;
}

static status visit_tablet(const struct catalog_visitor *visitor, bytes key, bytes value,
                           struct arena *arena)
{
    ProtobufCMessage *base;
    TRY(proto_decode(&catalog__tablet__descriptor, value, arena, &base));
    const Catalog__Tablet *message = (const Catalog__Tablet *)(void *)base;
    struct tablet_record record = {.table_id = id_of_key(key),
                                   .id = message->id,
                                   .shard = message->shard,
                                   .keyspace_id = message->keyspace,
                                   .start = bytes_from(key, 1 + ID_SIZE),
                                   .end = proto_bytes(message->end)};
    if (record.id == 0 || record.keyspace_id == 0)
        return damage("it has no id, or no keyspace");
    return visitor->tablet(visitor->context, &record);
}

static status visit_former(const struct catalog_visitor *visitor, bytes key, bytes value,
                           struct arena *arena)
{
    ProtobufCMessage *base;
    TRY(proto_decode(&catalog__former_tablet__descriptor, value, arena, &base));
    const Catalog__FormerTablet *message = (const Catalog__FormerTablet *)(void *)base;
    const struct former_tablet_record record = {.table_id = id_of_key(key),
                                                .id = id_at(key, 1 + ID_SIZE),
                                                .shard = message->shard,
                                                .start = proto_bytes(message->start),
                                                .end = proto_bytes(message->end),
                                                .gone_us = message->gone_us};
    return visitor->former(visitor->context, &record);
}

static status visit_damage(const struct catalog_visitor *visitor, bytes key, bytes value,
                           struct arena *arena)
{
    ProtobufCMessage *base;
    TRY(proto_decode(&catalog__damage__descriptor, value, arena, &base));
    const Catalog__Damage *message = (const Catalog__Damage *)(void *)base;
    struct damage_record record = {.keyspace_id = id_at(key, 1),
                                   .file = id_at(key, 1 + ID_SIZE),
                                   .block = id_at(key, 1 + 2 * ID_SIZE),
                                   .from = proto_bytes(message->from),
                                   .to = proto_bytes(message->to),
                                   .what = message->what,
                                   .found_us = message->found_us};
    return visitor->damage(visitor->context, &record);
}

static status visit_unclaimed(const struct catalog_visitor *visitor, bytes key, bytes value)
{
    int64_t found_us = 0;
    if (value.size != ID_SIZE)
        return damage("it does not say when it was found");
    for (size_t i = 0; i < value.size; i++)
        found_us = found_us << 8 | value.data[i];
    return visitor->unclaimed(visitor->context, id_of_key(key), found_us);
}

static bool key_is_whole(bytes key)
{
    switch (key.data[0]) {
    case RECORD_DAMAGE:
        return key.size == sizeof(struct damage_key);
    case RECORD_FORMER:
        return key.size == sizeof(struct former_key);
    case RECORD_KEPT:
    case RECORD_TABLET:
        return key.size >= 1 + ID_SIZE;
    case RECORD_TABLE:
    case RECORD_PREALLOCATED:
    case RECORD_UNCLAIMED:
        return key.size == 1 + ID_SIZE;
    default:
        return true;
    }
}

/* Types that are not known here belong to others, or to a later release. */
static status visit_record(const struct catalog_visitor *visitor, bytes key, bytes value,
                           struct arena *arena)
{
    if (!key_is_whole(key))
        return status_make(STATUS_DATA_LOSS, "the key is too short");
    uint8_t type = key.data[0];
    if (type == RECORD_COUNTERS && visitor->next_id != NULL)
        return visit_counters(visitor, value, arena);
    if (type == RECORD_TABLE && visitor->table != NULL)
        return visit_table(visitor, key, value, arena);
    if (type == RECORD_TABLET && visitor->tablet != NULL)
        return visit_tablet(visitor, key, value, arena);
    if (type == RECORD_FORMER && visitor->former != NULL)
        return visit_former(visitor, key, value, arena);
    if (type == RECORD_PREALLOCATED && visitor->preallocated != NULL)
        return visitor->preallocated(visitor->context, id_of_key(key));
    if (type == RECORD_DAMAGE && visitor->damage != NULL)
        return visit_damage(visitor, key, value, arena);
    if (type == RECORD_UNCLAIMED && visitor->unclaimed != NULL)
        return visit_unclaimed(visitor, key, value);
    if (type == RECORD_KEPT && visitor->kept != NULL)
        return visitor->kept(visitor->context, id_of_key(key));
    return status_ok();
}

static status damaged(bytes key, status cause)
{
    char id[2 * (1 + ID_SIZE) + 1] = "";
    for (size_t i = 0; i < key.size && i < 1 + ID_SIZE; i++)
        snprintf(id + 2 * i, 3, "%02x", key.data[i]);
    status s = status_make(STATUS_DATA_LOSS, "the catalog's record %s is damaged: %s", id,
                           status_message(cause));
    status_free(cause);
    return s;
}

static status read_records(struct store_cursor *cursor, const struct catalog_visitor *visitor,
                           struct arena *arena)
{
    for (store_cursor_first(cursor); store_cursor_valid(cursor); store_cursor_next(cursor)) {
        bytes key = store_cursor_key(cursor);
        arena_reset(arena);
        status s = visit_record(visitor, key, store_cursor_value(cursor), arena);
        if (s.code == STATUS_INVALID_ARGUMENT || s.code == STATUS_DATA_LOSS)
            return damaged(key, s);
        TRY(s);
    }
    return store_cursor_status(cursor);
}

status catalog_read(struct keyspace *catalog, const struct catalog_visitor *visitor)
{
    struct store_cursor_options options = {.read_tier = STORE_READ_ANY};
    struct store_cursor *cursor;
    TRY(store_cursor_create(catalog, &options, &cursor));
    struct arena *arena = arena_create(RECORD_MEMORY);
    status s = arena == NULL ? status_out_of_memory() : read_records(cursor, visitor, arena);
    arena_destroy(arena);
    store_cursor_destroy(cursor);
    return s;
}
