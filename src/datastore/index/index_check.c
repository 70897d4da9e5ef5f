/* See index_check.h.
 *
 * The definitions of composite indexes are read first. Those that are ready must have all their
 * rows; those that are being made or deleted may have some. */
#include "datastore/index/index_check.h"

#include "base/limits.h"
#include "base/siphash.h"
#include "base/vector.h"
#include "cluster/catalog.h"
#include "datastore/database.h"
#include "datastore/index/index_definition.h"
#include "google/datastore/v1/datastore.pb-c.h"
#include "row/row_key.h"
#include "tablet/drop_records.h"
#include "tablet/row_read.h"
#include "trestle/datastore.pb-c.h"
#include "wire/proto.h"

enum { MEMORY = 256 << 20 /* an entity, twice, and its index rows */, ROW_BUDGET = 1000 };

/* Rows, added up. */
struct tally {
    uint64_t count;
    uint64_t words[2];
};

enum { INDEXES = 3 }; /* kinds of index rows */
static const char index_letters[INDEXES + 1] = {DS_KIND_ROW, DS_ASCENDING_ROW, DS_COMPOSITE_ROW};

struct checking {
    struct ds_index_check *check;
    struct row_read_options options;
    struct family_scope families[2];
    struct read_scope scope;
    struct vector ready;        /* of struct ds_index */
    struct vector others;       /* of uint64_t: the ids of those that are not */
    bool lacks_definitions;     /* some are damaged: whose C rows are whose is not known */
    struct arena *definitions;  /* whose they are */
    struct arena *row_arena;    /* of the row that the reader is at */
    struct arena *lookup_arena; /* of one that is looked for meanwhile */
    struct arena *arena;        /* of what is made of the row */
    struct tally wanted[INDEXES];
    struct tally found[INDEXES];
};

bool ds_is_database_table(const char *table_name)
{
    return strstr(table_name, "/databases/") != NULL;
}

static status report(struct checking *checking, struct ds_index_damage damage)
{
    return checking->check->report(checking->check->context, &damage);
}

static status report_other(struct checking *checking, bytes row_key, const char *what)
{
    return report(checking, (struct ds_index_damage){
                                .kind = DS_DAMAGE_OTHER, .row_key = row_key, .what = what});
}

static status report_too_many(struct checking *checking, bytes row_key, bytes found,
                              const char *what)
{
    return report(checking, (struct ds_index_damage){.kind = DS_DAMAGE_TOO_MANY,
                                                     .row_key = row_key,
                                                     .what = what,
                                                     .found = found});
}

/* Damage does not end the reading; what else fails does. */
static bool is_damage(status s)
{
    return s.code == STATUS_INTERNAL || s.code == STATUS_INVALID_ARGUMENT;
}

static status report_damage(struct checking *checking, bytes row_key, status s)
{
    if (!is_damage(s))
        return s;
    status reported = report_other(checking, row_key, status_message(s));
    status_free(s);
    return reported;
}

/* --- rows --- */

/* Rows of an index that is not ready are not looked at. */
static bool is_of_other(const struct checking *checking, bytes row_key)
{
    const uint64_t *others = checking->others.items;
    uint64_t id;
    bool is_other = false;
    if (ds_composite_row_index(row_key, &id))
        for (size_t i = 0; i < checking->others.count; i++)
            is_other = is_other || others[i] == id;
    return is_other;
}

static bool is_index_row(const struct checking *checking, bytes row_key)
{
    return row_key.size > 0 && memchr(index_letters, row_key.data[0], INDEXES) != NULL &&
           !is_of_other(checking, row_key);
}

/* The shape of the row's index, needed to read it; NULL for built-in indexes, or none. */
static const struct ds_index_shape *shape_of(const struct checking *checking, bytes row_key)
{
    const struct ds_index *ready = checking->ready.items;
    uint64_t id;
    if (ds_composite_row_index(row_key, &id))
        for (size_t i = 0; i < checking->ready.count; i++)
            if (ready[i].id == id)
                return &ready[i].shape;
    return NULL;
}

static struct tally *tally_of(struct tally *tallies, bytes row_key)
{
    const char *letter = memchr(index_letters, row_key.data[0], INDEXES);
    return &tallies[letter - index_letters];
}

/* Types are below the letters with which row keys begin: one cannot be taken for the other. */
static void add(struct tally *tallies, bytes row_key, bytes types)
{
    struct tally *tally = tally_of(tallies, row_key);
    struct siphash hash;
    siphash_start(&hash);
    siphash_add(&hash, types);
    siphash_add(&hash, row_key);
    struct fingerprint print = siphash_finish(&hash);
    tally->count++;
    for (int i = 0; i < 2; i++)
        tally->words[i] += print.words[i];
}

static bool is_same(const struct tally *a, const struct tally *b)
{
    return a->count == b->count && a->words[0] == b->words[0] && a->words[1] == b->words[1];
}

/* Calls `visit` for each row that is there, as it is. */
typedef status row_visitor(struct checking *checking, bytes row_key, bytes value);

static status visit_row(struct checking *checking, const struct row *row, row_visitor *visit)
{
    const struct cell *cell = &row->cells.items[0];
    if (cell->timestamp_us > checking->check->newest_us)
        checking->check->newest_us = cell->timestamp_us;
    return visit(checking, row->key, cell->value);
}

static status visit_rows(struct checking *checking, struct row_range_reader *reader,
                         struct row *row, row_visitor *visit)
{
    enum row_outcome outcome = ROW_ABSENT;
    while (outcome != ROW_END) {
        row_clear(row);
        arena_reset(checking->row_arena);
        arena_reset(checking->arena);
        TRY(row_range_reader_next(reader, STORE_READ_ANY, NULL, NULL, ROW_BUDGET, row, &outcome));
        if (outcome == ROW_TOO_LARGE)
            TRY(report_other(checking, row->key, "the row is too large to be one of Datastore's"));
        if (outcome == ROW_FOUND)
            TRY(visit_row(checking, row, visit));
    }
    return status_ok();
}

/* `from` and `to` empty: no bound. */
static status read_range(struct checking *checking, bytes from, bytes to, row_visitor *visit)
{
    struct row row = {.cells.arena = checking->row_arena};
    struct row_range_reader *reader;
    TRY(row_range_reader_create(checking->check->keyspace, &checking->options, from, to, false,
                                &reader));
    status s = visit_rows(checking, reader, &row, visit);
    row_clear(&row);
    row_range_reader_destroy(reader);
    return s;
}

static status read_all(struct checking *checking, row_visitor *visit)
{
    const bytes all = bytes_make(NULL, 0);
    return read_range(checking, all, all, visit);
}

/* Reads a row's value, copied; `*found` false if it is not there. */
static status look_up(struct checking *checking, bytes row_key, bytes *value, bool *found)
{
    struct row row = {.cells.arena = checking->lookup_arena};
    enum row_outcome outcome;
    arena_reset(checking->lookup_arena);
    status s = row_read(checking->check->keyspace, &checking->options, row_key, STORE_READ_ANY,
                        &row, &outcome);
    *found = status_is_ok(s) && outcome == ROW_FOUND;
    if (*found && row.cells.items[0].value.size > 0) {
        *value = arena_copy(checking->arena, row.cells.items[0].value);
        if (value->data == NULL)
            s = status_out_of_memory();
    } else {
        *value = bytes_make(NULL, 0);
    }
    row_clear(&row);
    return s;
}

/* --- definitions --- */

static status add_definition(struct checking *checking, bytes value)
{
    struct arena *arena = checking->definitions;
    Datastore__CompositeIndex *definition;
    struct ds_index index;
    bytes copy = arena_copy(arena, value);
    if (copy.data == NULL)
        return status_out_of_memory();
    TRY(ds_definition_decode(copy, arena, &definition));
    TRY(ds_definition_index(definition, arena, &index));
    if (definition->state == (uint32_t)DS_ADMIN__INDEX__STATE__READY)
        return vector_add(&checking->ready, arena, &index, sizeof index);
    return vector_add(&checking->others, arena, &index.id, sizeof index.id);
}

static status read_definition(struct checking *checking, bytes row_key, bytes value)
{
    status s = add_definition(checking, value);
    checking->lacks_definitions = checking->lacks_definitions || !status_is_ok(s);
    return report_damage(checking, row_key, s);
}

static status read_definitions(struct checking *checking)
{
    static const uint8_t from = DS_INDEX_ROW, to = DS_INDEX_ROW + 1;
    return read_range(checking, bytes_make(&from, 1), bytes_make(&to, 1), read_definition);
}

/* --- entities --- */

static status decode_entity(struct checking *checking, bytes value, const Ds__Entity **out)
{
    ProtobufCMessage *message;
    TRY(proto_decode(&datastore__record__descriptor, value, checking->arena, &message));
    const Datastore__Record *record = (const void *)message;
    TRY(proto_decode(&ds__entity__descriptor, proto_bytes(record->entity), checking->arena,
                     &message));
    *out = (const void *)message;
    if ((*out)->key == NULL || !ds_key_is_complete((*out)->key))
        return ds_damaged("an entity's key");
    return status_ok();
}

static status check_place(const Ds__Entity *entity, bytes row_key)
{
    struct buffer own = {0};
    ds_entity_row(&own, entity->key);
    bool is_same_key = !own.failed && bytes_equal(buffer_bytes(&own), row_key);
    bool failed = own.failed;
    buffer_free(&own);
    if (failed)
        return status_out_of_memory();
    return is_same_key ? status_ok() : ds_damaged("an entity that has another key than its row");
}

/* The index rows that the entity of the row must have. */
static status expected_rows(struct checking *checking, bytes row_key, bytes value,
                            struct ds_index_rows *out)
{
    const Ds__Entity *entity;
    *out = (struct ds_index_rows){.count = 0};
    TRY(decode_entity(checking, value, &entity));
    TRY(check_place(entity, row_key));
    return ds_index_rows(entity, checking->ready.items, checking->ready.count, checking->arena,
                         out);
}

/* --- the first pass --- */

static status count_entity(struct checking *checking, bytes row_key, bytes value)
{
    struct ds_index_rows rows;
    checking->check->entities++;
    TRY(expected_rows(checking, row_key, value, &rows));
    for (size_t i = 0; i < rows.count; i++)
        add(checking->wanted, rows.rows[i].key, rows.rows[i].types);
    return status_ok();
}

/* Whether the row key has a known form. */
static bool is_row_key(const struct checking *checking, bytes row_key)
{
    struct ds_row row;
    return is_of_other(checking, row_key) ||
           ds_row_parse(row_key, shape_of(checking, row_key), &row);
}

/* A C row is of no index if there is none of its id; one that does not parse may be anything. */
static status report_strange_row(struct checking *checking, bytes row_key, bytes value)
{
    static const char no_index[] = "a row of a composite index that is not there";
    uint64_t id;
    if (row_key.data[0] != DS_COMPOSITE_ROW)
        return report_other(checking, row_key, "a row key that is none of Datastore's");
    bool has_index = !ds_composite_row_index(row_key, &id) || shape_of(checking, row_key) != NULL;
    if (has_index || checking->lacks_definitions)
        return report_other(checking, row_key, no_index);
    return report_too_many(checking, row_key, value, no_index);
}

static status count_row(struct checking *checking, bytes row_key, bytes value)
{
    if (!is_row_key(checking, row_key))
        return report_strange_row(checking, row_key, value);
    if (row_key.data[0] == DS_ENTITY_ROW)
        return report_damage(checking, row_key, count_entity(checking, row_key, value));
    if (is_index_row(checking, row_key)) {
        checking->check->index_rows++;
        add(checking->found, row_key, value);
    }
    return status_ok();
}

/* --- the second pass: what of it is wrong --- */

static status name_unless_right(struct checking *checking, const struct ds_index_row *row)
{
    struct ds_index_damage damage = {.row_key = row->key, .is = row->types};
    bool found;
    TRY(look_up(checking, row->key, &damage.found, &found));
    if (found && bytes_equal(damage.found, row->types))
        return status_ok();
    damage.kind = found ? DS_DAMAGE_TYPES : DS_DAMAGE_MISSING;
    damage.what = found ? "an index row with other types than its entity's"
                        : "an index row that its entity should have";
    return report(checking, damage);
}

static status name_missing(struct checking *checking, const struct ds_index_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        TRY(name_unless_right(checking, &rows->rows[i]));
    return status_ok();
}

static status row_of_entity(struct checking *checking, bytes index_key, bytes *out)
{
    struct ds_row row;
    struct buffer key = {0};
    bytes path;
    if (!ds_row_parse(index_key, shape_of(checking, index_key), &row))
        return ds_damaged("an index row of no index");
    TRY(ds_row_path(&row, checking->arena, &path));
    buffer_append_byte(&key, DS_ENTITY_ROW);
    buffer_append_bytes(&key, row.name_space);
    buffer_append_bytes(&key, path);
    *out = arena_copy(checking->arena, buffer_bytes(&key));
    buffer_free(&key);
    return out->data == NULL ? status_out_of_memory() : status_ok();
}

/* `*what` is wrong with the row; NULL: nothing. */
static status judge_index_row(struct checking *checking, bytes row_key, const char **what)
{
    struct ds_index_rows rows;
    bytes entity_key = bytes_make(NULL, 0), value;
    bool found, is_own = false;
    TRY(row_of_entity(checking, row_key, &entity_key));
    TRY(look_up(checking, entity_key, &value, &found));
    if (!found) {
        *what = "an index row without its entity";
        return status_ok();
    }
    TRY(expected_rows(checking, entity_key, value, &rows));
    for (size_t i = 0; i < rows.count; i++)
        is_own = is_own || bytes_equal(rows.rows[i].key, row_key);
    *what = is_own ? NULL : "an index row that its entity should not have";
    return status_ok();
}

/* Names an index row that its entity should not have; which rows a damaged entity has is unknown.
 */
static status name_orphan(struct checking *checking, bytes row_key, bytes value)
{
    const char *what = NULL;
    TRY(report_damage(checking, row_key, judge_index_row(checking, row_key, &what)));
    return what == NULL ? status_ok() : report_too_many(checking, row_key, value, what);
}

/* Names a row's faults. Rows that do not parse, and entities that are damaged, have been reported.
 */
static status name_row(struct checking *checking, bytes row_key, bytes value)
{
    struct ds_index_rows rows;
    if (is_index_row(checking, row_key) && is_row_key(checking, row_key))
        return name_orphan(checking, row_key, value);
    if (row_key.data[0] != DS_ENTITY_ROW)
        return status_ok();
    status s = expected_rows(checking, row_key, value, &rows);
    if (status_is_ok(s))
        return name_missing(checking, &rows);
    if (!is_damage(s))
        return s;
    status_free(s);
    return status_ok();
}

/* --- both --- */

static status compare(struct checking *checking)
{
    bool are_same = true;
    TRY(read_definitions(checking));
    TRY(read_all(checking, count_row));
    for (int i = 0; i < INDEXES; i++)
        are_same = are_same && is_same(&checking->wanted[i], &checking->found[i]);
    return are_same ? status_ok() : read_all(checking, name_row);
}

/* Sets the scope to the present alone, the family `e`. False if the table is none of Datastore's.
 */
static bool set_scope(struct checking *checking)
{
    const struct schema *schema = checking->check->schema;
    if (schema->family_count != 2 || schema_family_named(schema, bytes_of(DS_FAMILY_IS)) == NULL ||
        schema_family_named(schema, bytes_of(DS_FAMILY_WAS)) == NULL)
        return false;
    for (size_t i = 0; i < schema->family_count; i++)
        checking->families[i].is_wanted =
            bytes_equal(schema->families[i].name, bytes_of(DS_FAMILY_IS));
    checking->scope = (struct read_scope){.families = checking->families,
                                          .cells_per_column = 1,
                                          .cells_per_row = INT32_MAX,
                                          .wants_values = true};
    return true;
}

/* Who checks has the store alone, and no rules are set in it. */
static status load_drops(const struct ds_index_check *check, struct row_drops **out)
{
    struct keyspace *catalog = store_keyspace_find(check->store, CATALOG_KEYSPACE_ID);
    TRY(row_drops_create(out));
    return catalog == NULL ? status_ok()
                           : drop_records_load(catalog, keyspace_id(check->keyspace), *out);
}

status ds_index_check_run(struct ds_index_check *check)
{
    struct checking checking = {.check = check,
                                .options = {.store = check->store,
                                            .schema = check->schema,
                                            .scope = &checking.scope,
                                            .now_us = check->now_us,
                                            .apply_gc = true,
                                            .size_limit = LIMIT_ROW_BYTES},
                                .definitions = arena_create(MEMORY),
                                .row_arena = arena_create(MEMORY),
                                .lookup_arena = arena_create(MEMORY),
                                .arena = arena_create(MEMORY)};
    status s;
    if (!set_scope(&checking))
        s = report_other(&checking, bytes_make(NULL, 0),
                         "the families are not those of a database");
    else if (checking.definitions == NULL || checking.row_arena == NULL ||
             checking.lookup_arena == NULL || checking.arena == NULL)
        s = status_out_of_memory();
    else
        s = load_drops(check, &checking.options.drops);
    if (status_is_ok(s) && checking.options.drops != NULL)
        s = compare(&checking);
    row_drops_destroy(checking.options.drops);
    arena_destroy(checking.definitions);
    arena_destroy(checking.row_arena);
    arena_destroy(checking.lookup_arena);
    arena_destroy(checking.arena);
    return s;
}
