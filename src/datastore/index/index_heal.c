/* See index_heal.h. */
#include "datastore/index/index_heal.h"

#include "base/check.h"
#include "base/key_range.h"
#include "base/limits.h"
#include "base/vector.h"
#include "cluster/rows.h"
#include "datastore/commit/allocate.h"
#include "datastore/commit/rows_write.h"
#include "datastore/commit/snapshot.h"
#include "datastore/database_name.h"
#include "datastore/index/indexes.h"
#include "datastore/model/ids.h"
#include "row/row_key.h"

enum {
    LOT_ROWS = 1000,
    LOT_BYTES = 4 << 20,
    MEMORY = 512 << 20, /* of an arena: an entity as it is and was, and its index rows */
};

/* No server has given so many ids: a counter beyond is of an id that a client has chosen. And how
 * far beyond those of entities it goes on, since there may be ids without one. */
#define MOST_GIVEN (UINT64_C(1) << 40)
#define LEAP       (UINT64_C(1) << 32)

struct healing {
    struct ds_heal *heal;
    struct cluster *cluster;
    const struct given_up *ranges;
    size_t count;
    const struct ds_index_set *set; /* of a database that is open; else NULL */
    struct vector definitions;      /* without it: of Datastore__CompositeIndex * */
    struct vector indexes;          /* of struct ds_index: that are kept, the ready ones first */
    size_t ready_count;
    bool has_lost_marks;
    uint64_t claimed;   /* counters up to this are claimed; 0: unknown */
    uint64_t greatest;  /* of an entity, up to MOST_GIVEN */
    struct vector rows; /* of struct ds_row_write: to be written together */
    size_t row_bytes;
    struct arena *lasting; /* what these arenas have lasts: all the time */
    struct arena *lot;     /* until `rows` are written */
    struct arena *row;     /* for one row of the table */
};

/* --- what is given up --- */

static bool has_key(const struct given_up *range, bytes key)
{
    return bytes_compare(key, range->from) >= 0 && key_is_before_end(key, range->to);
}

/* Whether something of the row is given up. Of large cells the bounds are wider than what is
 * closed; other rows within may be written. */
static bool is_hit(const struct healing *healing, bytes key)
{
    for (size_t i = 0; i < healing->count; i++)
        if (has_key(&healing->ranges[i], key))
            return table_row_is_closed(healing->heal->table, key);
    return false;
}

/* All of it is. */
static bool is_given_up(const struct healing *healing, bytes key)
{
    for (size_t i = 0; i < healing->count; i++)
        if (!healing->ranges[i].is_large_cells && has_key(&healing->ranges[i], key))
            return true;
    return false;
}

static bool has_letter(bytes from, bytes to, uint8_t letter)
{
    const uint8_t next = letter + 1;
    bool ends_before = to.size > 0 && bytes_compare(to, bytes_make(&letter, 1)) <= 0;
    return !ends_before && bytes_compare(from, bytes_make(&next, 1)) < 0;
}

/* Some rows with this letter are. */
static bool has_hit(const struct healing *healing, uint8_t letter)
{
    for (size_t i = 0; i < healing->count; i++)
        if (has_letter(healing->ranges[i].from, healing->ranges[i].to, letter))
            return true;
    return false;
}

/* --- writing --- */

static status write_lot(struct healing *healing)
{
    struct ds_heal *heal = healing->heal;
    struct ds_sequencer *sequencer = heal->open == NULL ? NULL : &heal->open->sequencer;
    status s = status_ok();
    if (healing->rows.count > 0)
        s = ds_rows_write_repair(heal->table, healing->rows.items, healing->rows.count, sequencer,
                                 cluster_version_us(healing->cluster), healing->lot);
    healing->rows = (struct vector){0};
    healing->row_bytes = 0;
    arena_reset(healing->lot);
    return s;
}

static status copy(struct arena *arena, bytes b, bytes *out)
{
    *out = arena_copy(arena, b);
    return b.size > 0 && out->data == NULL ? status_out_of_memory() : status_ok();
}

static status add(struct healing *healing, struct ds_row_write row)
{
    TRY(copy(healing->lot, row.key, &row.key));
    TRY(copy(healing->lot, row.now, &row.now));
    TRY(copy(healing->lot, row.past, &row.past));
    healing->row_bytes += row.key.size + row.now.size + row.past.size;
    return vector_add(&healing->rows, healing->lot, &row, sizeof row);
}

static status write_if_full(struct healing *healing)
{
    bool is_full = healing->rows.count >= LOT_ROWS || healing->row_bytes >= LOT_BYTES;
    return is_full ? write_lot(healing) : status_ok();
}

/* --- reading --- */

struct look {
    struct key_range range;
    status (*visit)(struct healing *healing, const struct scan_row *row);
};

static status visit_rows(struct healing *healing, const struct look *look, struct scan *scan)
{
    const struct ds_heal *heal = healing->heal;
    enum row_outcome outcome = ROW_ABSENT;
    struct scan_row row;
    while (outcome != ROW_END) {
        if (heal->goes_on != NULL && !heal->goes_on(heal->context))
            return status_make(STATUS_CANCELLED, "The repair was cancelled");
        TRY(scan_next(scan, STORE_READ_ANY, &row, &outcome));
        if (outcome == ROW_TOO_LARGE)
            return ds_damaged("a row that is too large");
        if (outcome != ROW_FOUND)
            continue;
        arena_reset(healing->row);
        TRY(look->visit(healing, &row));
        if (healing->rows.count == 0)
            continue;
        TRY(write_if_full(healing));
    }
    return status_ok();
}

static status look_at(struct healing *healing, const struct look *look)
{
    struct table *table = healing->heal->table;
    const struct scan_spec spec = {.table = table,
                                   .ranges = &look->range,
                                   .range_count = 1,
                                   .schema = table_schema(table),
                                   .is_background = true,
                                   .applies_gc = true,
                                   .arena = healing->lasting};
    struct scan *scan;
    TRY(scan_create(&spec, &scan));
    status s = visit_rows(healing, look, scan);
    scan_destroy(scan);
    return s;
}

static status look_at_rows(struct healing *healing, const uint8_t *letter,
                           status (*visit)(struct healing *healing, const struct scan_row *row))
{
    const uint8_t end[] = {(uint8_t)(*letter + 1)};
    const struct look look = {.range = {.from = bytes_make(letter, 1), .to = bytes_make(end, 1)},
                              .visit = visit};
    return look_at(healing, &look);
}

static bool is_of_present(const struct cell *cell)
{
    return bytes_equal(cell->family->name, bytes_of(DS_FAMILY_IS));
}

/* The cell of the row's present; NULL: it only was. */
static const struct cell *present_of(const struct scan_row *row)
{
    for (size_t i = 0; i < row->cells->count; i++)
        if (is_of_present(&row->cells->items[i]))
            return &row->cells->items[i];
    return NULL;
}

/* --- definitions --- */

static status add_kept(struct healing *healing, const Datastore__CompositeIndex *definition)
{
    struct ds_index index;
    TRY(ds_definition_index(definition, healing->lasting, &index));
    healing->ready_count += definition->state == DS_ADMIN__INDEX__STATE__READY;
    return vector_add(&healing->indexes, healing->lasting, &index, sizeof index);
}

static status add_those(struct healing *healing, Datastore__CompositeIndex *const *definitions,
                        size_t count, DsAdmin__Index__State state)
{
    for (size_t i = 0; i < count; i++)
        if (definitions[i]->state == (uint32_t)state)
            TRY(add_kept(healing, definitions[i]));
    return status_ok();
}

static status add_all(struct healing *healing, Datastore__CompositeIndex *const *definitions,
                      size_t count)
{
    TRY(add_those(healing, definitions, count, DS_ADMIN__INDEX__STATE__READY));
    return add_those(healing, definitions, count, DS_ADMIN__INDEX__STATE__CREATING);
}

/* Reads the kept definitions alone: those that were given up are gone. */
static status read_kept(struct healing *healing)
{
    const struct ds_database *database = healing->heal->database;
    struct ds_open_database here = {.project =
                                        arena_string(healing->lasting, bytes_of(database->project)),
                                    .id = arena_string(healing->lasting, bytes_of(database->id)),
                                    .table = healing->heal->table};
    if (here.project == NULL || here.id == NULL)
        return status_out_of_memory();
    TRY(ds_indexes_list(&here, healing->lasting, &healing->definitions));
    return add_all(healing, healing->definitions.items, healing->definitions.count);
}

static status find_indexes(struct healing *healing)
{
    const struct ds_index_set *set = healing->set;
    return set != NULL ? add_all(healing, set->definitions, set->definition_count)
                       : read_kept(healing);
}

static status write_definitions(struct healing *healing)
{
    const struct ds_index_set *set = healing->set;
    for (size_t i = 0; set != NULL && i < set->definition_count; i++) {
        struct ds_row_write row;
        arena_reset(healing->row);
        TRY(ds_definition_row(set->definitions[i], healing->row, &row));
        if (is_given_up(healing, row.key))
            TRY(add(healing, row));
    }
    return write_lot(healing);
}

static const struct ds_index_shape *shape_of(const struct healing *healing, bytes row_key)
{
    const struct ds_index *indexes = healing->indexes.items;
    uint64_t id;
    if (ds_composite_row_index(row_key, &id))
        for (size_t i = 0; i < healing->indexes.count; i++)
            if (indexes[i].id == id)
                return &indexes[i].shape;
    return NULL;
}

/* --- the index rows of an entity --- */

static status rows_of(struct healing *healing, const Ds__Entity *entity, size_t index_count,
                      struct ds_index_rows *out)
{
    return ds_index_rows(entity, healing->indexes.items, index_count, healing->row, out);
}

/* With an index that is being made it may have too many entries: then that is not made. */
static status expected_rows(struct healing *healing, bytes record, struct ds_index_rows *out)
{
    const Ds__Entity *entity;
    TRY(ds_record_entity(record, healing->row, &entity));
    if (entity->key == NULL || !ds_key_is_complete(entity->key))
        return ds_damaged("an entity's key");
    status s = rows_of(healing, entity, healing->indexes.count, out);
    if (s.code != STATUS_INVALID_ARGUMENT || healing->ready_count == healing->indexes.count)
        return s;
    status_free(s);
    return rows_of(healing, entity, healing->ready_count, out);
}

/* --- index rows whose entities are gone --- */

static bool has_row(const struct ds_index_rows *rows, bytes key)
{
    for (size_t i = 0; i < rows->count; i++)
        if (bytes_equal(rows->rows[i].key, key))
            return true;
    return false;
}

/* Whether the entity has it: of those that are given up it is what a backup had, or nothing. */
static status is_own(struct healing *healing, const struct ds_row *row, bytes row_key, bool *out)
{
    const struct ds_heal *heal = healing->heal;
    const struct ds_snapshot newest = {
        .table = heal->table, .database = *heal->database, .at_us = INT64_MAX};
    struct ds_version version;
    struct ds_index_rows rows;
    Ds__Key *key;
    *out = false;
    TRY(ds_row_entity(row, heal->database->project, heal->database->id, healing->row, &key));
    TRY(ds_snapshot_get(&newest, key, healing->row, &version));
    if (version.entity == NULL)
        return status_ok();
    TRY(ds_index_rows(version.entity, healing->indexes.items, healing->indexes.count, healing->row,
                      &rows));
    *out = has_row(&rows, row_key);
    return status_ok();
}

static status entity_row_of(struct healing *healing, const struct ds_row *row, bytes *out)
{
    struct buffer key = {0};
    bytes path;
    TRY(ds_row_path(row, healing->row, &path));
    buffer_append_byte(&key, DS_ENTITY_ROW);
    buffer_append_bytes(&key, row->name_space);
    buffer_append_bytes(&key, path);
    status s = key.failed ? status_out_of_memory() : copy(healing->row, buffer_bytes(&key), out);
    buffer_free(&key);
    return s;
}

/* Whether definitions are lost for good, so that rows may be of none. */
static bool has_lost_definitions(const struct healing *healing)
{
    return healing->set == NULL && has_hit(healing, DS_INDEX_ROW);
}

static bool is_without_definition(const struct healing *healing, bytes row_key)
{
    Datastore__CompositeIndex *const *definitions = healing->definitions.items;
    uint64_t id;
    if (!has_lost_definitions(healing) || !ds_composite_row_index(row_key, &id))
        return false;
    for (size_t i = 0; i < healing->definitions.count; i++)
        if ((uint64_t)definitions[i]->id == id)
            return false;
    return true;
}

/* Whether the row is of an index that is not kept: it is never read. */
static bool is_of_no_index(const struct healing *healing, bytes row_key)
{
    return row_key.data[0] == DS_COMPOSITE_ROW && shape_of(healing, row_key) == NULL;
}

static status remove_row(struct healing *healing, bytes row_key, const struct cell *present)
{
    healing->heal->removed++;
    return add(healing, (struct ds_row_write){.key = row_key, .was = true, .past = present->value});
}

/* Its entity may be another one now. */
static bool is_of_a_backup(const struct healing *healing, bytes row_key)
{
    return healing->heal->is_filled && is_given_up(healing, row_key);
}

static status remove_if_orphan(struct healing *healing, const struct scan_row *found)
{
    const struct cell *present = present_of(found);
    struct ds_row row;
    bytes entity_row;
    bool has_entity;
    if (present != NULL && is_without_definition(healing, found->key))
        return remove_row(healing, found->key, present);
    if (present == NULL || is_of_no_index(healing, found->key))
        return status_ok();
    if (!ds_row_parse(found->key, shape_of(healing, found->key), &row))
        return ds_damaged("a row key");
    TRY(entity_row_of(healing, &row, &entity_row));
    if (!is_hit(healing, entity_row) && !is_of_a_backup(healing, found->key))
        return status_ok();
    TRY(is_own(healing, &row, found->key, &has_entity));
    return has_entity ? status_ok() : remove_row(healing, found->key, present);
}

/* Orphans go in one lot, unless they are many: a query meanwhile for keys or counts alone, which
 * needs no entity, is to find all of them or none. */
static status remove_orphans(struct healing *healing)
{
    static const uint8_t letters[] = {DS_ASCENDING_ROW, DS_COMPOSITE_ROW, DS_KIND_ROW};
    for (size_t i = 0; i < sizeof letters; i++)
        TRY(look_at_rows(healing, &letters[i], remove_if_orphan));
    return write_lot(healing);
}

/* --- index rows of entities that are there --- */

/* The past of an index row is kept for reads of the past, which ask the entity of then. */
static status add_index_row(struct healing *healing, struct vector *made,
                            const struct ds_index_row *index_row, bool is)
{
    const struct ds_row_write *rows = made->items;
    for (size_t i = 0; i < made->count; i++)
        if (bytes_equal(rows[i].key, index_row->key))
            return status_ok();
    struct ds_row_write row = {
        .key = index_row->key, .is = is, .was = true, .past = index_row->types};
    if (is)
        row.now = index_row->types;
    return vector_add(made, healing->row, &row, sizeof row);
}

/* All rows of a version that comes from a backup: which of them are there is unknown. */
static status add_version(struct healing *healing, const struct scan_row *found,
                          const struct cell *version, struct vector *made)
{
    bool is_all = is_hit(healing, found->key);
    struct ds_index_rows rows = {.count = 0};
    TRY(expected_rows(healing, version->value, &rows));
    for (size_t i = 0; i < rows.count; i++)
        if (is_all || is_given_up(healing, rows.rows[i].key))
            TRY(add_index_row(healing, made, &rows.rows[i], is_of_present(version)));
    return status_ok();
}

static status add_made(struct healing *healing, const struct vector *made)
{
    const struct ds_row_write *rows = made->items;
    for (size_t i = 0; i < made->count; i++)
        TRY(add(healing, rows[i]));
    healing->heal->written += made->count;
    return status_ok();
}

/* The present version is first: an older one's row of the same key is the same row. */
static status make_index_rows(struct healing *healing, const struct scan_row *found)
{
    const struct cell *present = present_of(found);
    struct vector made = {0};
    if (present != NULL)
        TRY(add_version(healing, found, present, &made));
    for (size_t i = 0; i < found->cells->count; i++)
        if (!is_of_present(&found->cells->items[i]))
            TRY(add_version(healing, found, &found->cells->items[i], &made));
    return add_made(healing, &made);
}

/* --- ids --- */

static status entity_key(struct healing *healing, bytes row_key, Ds__Key **out)
{
    const struct ds_database *database = healing->heal->database;
    struct ds_row row;
    bytes kept;
    TRY(copy(healing->row, row_key, &kept));
    if (!ds_row_parse(kept, NULL, &row))
        return ds_damaged("a row key");
    return ds_row_entity(&row, database->project, database->id, healing->row, out);
}

static uint64_t counter_of(const Ds__Key__PathElement *element)
{
    return element->id_type_case == DS__KEY__PATH_ELEMENT__ID_TYPE_ID
               ? ds_counter_of_id(element->id)
               : 0;
}

/* Ancestors may have ids and no entity. */
static void note_counters(struct healing *healing, const Ds__Key *key)
{
    for (size_t i = 0; i < key->n_path; i++) {
        uint64_t counter = counter_of(key->path[i]);
        if (counter <= MOST_GIVEN && counter > healing->greatest)
            healing->greatest = counter;
    }
}

static bool has_row_key(const struct healing *healing, bytes key)
{
    const struct ds_row_write *rows = healing->rows.items;
    for (size_t i = healing->rows.count; i-- > 0;)
        if (bytes_equal(rows[i].key, key))
            return true;
    return false;
}

/* Entities with different parents may have the same mark. */
static status make_mark(struct healing *healing, const Ds__Key *key)
{
    uint64_t counter = counter_of(key->path[key->n_path - 1]);
    struct ds_row_write row = {.is = true};
    if (counter <= (healing->claimed > 0 ? healing->claimed : MOST_GIVEN))
        return status_ok();
    TRY(ds_id_mark_row(key, healing->row, &row.key));
    if (!is_given_up(healing, row.key) || has_row_key(healing, row.key))
        return status_ok();
    return add(healing, row);
}

static status look_at_id(struct healing *healing, bytes row_key)
{
    Ds__Key *key = NULL;
    TRY(entity_key(healing, row_key, &key));
    CHECK(key != NULL);
    note_counters(healing, key);
    return make_mark(healing, key);
}

static status look_at_entity(struct healing *healing, const struct scan_row *found)
{
    TRY(make_index_rows(healing, found));
    return healing->has_lost_marks ? look_at_id(healing, found->key) : status_ok();
}

static status take_counter(struct healing *healing, const struct scan_row *found)
{
    const struct cell *present = present_of(found);
    return present == NULL ? status_ok() : ds_id_counter_read(present->value, &healing->claimed);
}

/* The number in memory may be beyond a backup's. */
static status find_claimed(struct healing *healing, bytes row)
{
    struct look look = {.range = {.from = row, .is_point = true}, .visit = take_counter};
    if (!key_successor(healing->lasting, row, &look.range.to))
        return status_out_of_memory();
    if (healing->heal->open != NULL)
        healing->claimed = ds_ids_claimed(healing->heal->open);
    return healing->claimed > 0 || is_given_up(healing, row) ? status_ok()
                                                             : look_at(healing, &look);
}

static status write_counter(struct healing *healing, bytes row_key)
{
    uint64_t claimed = healing->claimed > 0 ? healing->claimed : healing->greatest + LEAP;
    struct ds_row_write row = {.key = row_key, .is = true};
    if (!is_given_up(healing, row_key))
        return status_ok();
    TRY(ds_id_counter_value(claimed, healing->lasting, &row.now));
    TRY(add(healing, row));
    return write_lot(healing);
}

/* --- all of it --- */

static status heal_all(struct healing *healing)
{
    static const uint8_t entities = DS_ENTITY_ROW;
    bytes counter;
    healing->has_lost_marks = has_hit(healing, DS_NUMBERS_ROW);
    TRY(find_indexes(healing));
    TRY(ds_id_counter_row(healing->lasting, &counter));
    if (healing->has_lost_marks)
        TRY(find_claimed(healing, counter));
    if (has_hit(healing, DS_ENTITY_ROW) || has_lost_definitions(healing) ||
        healing->heal->is_filled)
        TRY(remove_orphans(healing));
    TRY(look_at_rows(healing, &entities, look_at_entity));
    TRY(write_lot(healing));
    TRY(write_counter(healing, counter));
    return write_definitions(healing);
}

/* A thread that deletes an index waits for this: its rows must not come back afterwards. */
static status heal_with_set(struct healing *healing)
{
    struct ds_open_database *open = healing->heal->open;
    if (open != NULL)
        healing->set = ds_indexes_take(open->indexes);
    status s = heal_all(healing);
    if (open != NULL)
        ds_indexes_give_back(open->indexes, healing->set);
    return s;
}

status ds_heal_run(void *heal, const struct given_up *ranges, size_t count)
{
    struct ds_heal *asked = heal;
    struct healing healing = {.heal = asked,
                              .cluster = table_cluster(asked->table),
                              .ranges = ranges,
                              .count = count,
                              .lasting = arena_create(MEMORY),
                              .lot = arena_create(MEMORY),
                              .row = arena_create(MEMORY)};
    bool has_memory = healing.lasting != NULL && healing.lot != NULL && healing.row != NULL;
    status s = has_memory ? heal_with_set(&healing) : status_out_of_memory();
    arena_destroy(healing.lasting);
    arena_destroy(healing.lot);
    arena_destroy(healing.row);
    return s;
}

status ds_heal_open(struct datastore *datastore, struct table *table, struct arena *arena,
                    struct ds_heal *heal)
{
    struct ds_database_name name;
    struct ds_database *database = arena_zalloc(arena, sizeof *database);
    *heal = (struct ds_heal){.table = table, .database = database};
    if (database == NULL)
        return status_out_of_memory();
    TRY(ds_database_name_parse(table_name(table), arena, &name));
    *database = (struct ds_database){name.project, name.database};
    if (datastore == NULL)
        return status_ok();
    status s = ds_database_open(datastore, database, false, &heal->open);
    if (s.code != STATUS_DATA_LOSS)
        return s;
    status_free(s);
    return status_ok();
}

/* --- words --- */

void ds_heal_describe(const struct lost_rows *lost, struct buffer *out)
{
    static const struct {
        uint8_t letter;
        const char *words;
    } parts[] = {
        {DS_ENTITY_ROW, "; of entities that are lost the index rows go, too"},
        {DS_NUMBERS_ROW, "; automatic ids go on beyond those of all entities, and ids that were "
                         "reserved and not used may be given"},
        {DS_INDEX_ROW, "; definitions of composite indexes are lost but for those that a running "
                       "server has in memory"},
    };
    size_t count = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (has_letter(lost->from, lost->to, parts[i].letter)) {
            buffer_append_format(out, "%s", parts[i].words);
            count++;
        }
    buffer_append_format(out, "; index rows among them are made anew from the entities%s",
                         count == 0 ? ": no entity is lost" : "");
}
