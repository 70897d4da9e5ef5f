/* See statistics_pass.h. */
#include "datastore/admin/statistics_pass.h"

#include "base/limits.h"
#include "base/log.h"
#include "control/control.h"
#include "datastore/admin/entity_walk.h"
#include "datastore/admin/statistics.h"
#include "datastore/commit/commit.h"
#include "datastore/index/indexes.h"
#include "datastore/model/property_path.h"
#include "row/key_text.h"
#include "row/row_key.h"

enum { MUTATIONS_A_COMMIT = 100, COMMIT_BYTES = 64 << 20 };

struct pass {
    struct datastore *datastore;
    struct ds_open_database *open;
    struct ds_background *background;
    struct ds_database database;
    struct ds_statistics statistics;
    int64_t at_us;           /* the statistics' timestamp */
    struct arena *arena;     /* of the commit that is being made */
    struct vector mutations; /* its, Ds__Mutation * */
};

/* --- counting --- */

/* The indexes are those of the present. They are given back at once: a thread that changes them
 * waits for that. */
static status count_entity(struct ds_walk *walk, const struct ds_row_found *row)
{
    struct pass *pass = walk->context;
    const Ds__Entity *entity;
    TRY(ds_record_entity(row->value, walk->arena, &entity));
    const struct ds_index_set *set = ds_indexes_take(pass->open->indexes);
    status s = ds_statistics_count(&pass->statistics, entity, set->indexes,
                                   ds_index_set_ready(set, walk->snapshot.at_us), walk->arena);
    ds_indexes_give_back(pass->open->indexes, set);
    return s;
}

/* --- commits --- */

static status commit(struct pass *pass)
{
    TRY(ds_commit_mutations(pass->datastore, &pass->database, &pass->mutations, pass->arena));
    return ds_background_rest(pass->background);
}

static status add_mutation(struct pass *pass, Ds__Entity *upserted, Ds__Key *deleted)
{
    Ds__Mutation *mutation;
    PROTO_NEW(pass->arena, mutation, DS__MUTATION__INIT);
    mutation->operation_case =
        upserted != NULL ? DS__MUTATION__OPERATION_UPSERT : DS__MUTATION__OPERATION_DELETE;
    if (upserted != NULL)
        mutation->upsert = upserted;
    else
        mutation->delete_ = deleted;
    TRY(vector_add(&pass->mutations, pass->arena, &mutation, sizeof mutation));
    return pass->mutations.count < MUTATIONS_A_COMMIT ? status_ok() : commit(pass);
}

/* Writes the statistics of one kind: a database has no more than its statistics' memory holds. */
static status write_kind(struct pass *pass, size_t kind, struct arena *arena)
{
    struct vector made = {0}; /* of Ds__Entity * */
    TRY(ds_statistics_make(&pass->statistics, kind, &pass->database, pass->at_us, arena, &made));
    for (size_t i = 0; i < made.count; i++)
        TRY(add_mutation(pass, ((Ds__Entity **)made.items)[i], NULL));
    return commit(pass);
}

static status write_all(struct pass *pass)
{
    struct arena *arena = arena_create(LIMIT_ARENA_DATASTORE_BYTES);
    status s = arena == NULL ? status_out_of_memory() : status_ok();
    for (size_t i = 0; status_is_ok(s) && i < ds_statistic_kinds(); i++) {
        s = write_kind(pass, i, arena);
        arena_reset(arena);
    }
    arena_destroy(arena);
    return s;
}

/* --- older ones --- */

/* The range of a namespace's statistics. */
static status range_of(const struct ds_row *row, struct buffer *from, struct buffer *behind)
{
    struct buffer space = {0};
    buffer_append_byte(from, DS_ENTITY_ROW);
    buffer_append_bytes(from, row->name_space);
    key_text_append_open(from, bytes_of(DS_STATISTIC_PREFIX));
    buffer_append_byte(&space, DS_ENTITY_ROW);
    buffer_append_bytes(&space, row->name_space);
    bool has_end = key_after_prefix(behind, buffer_bytes(&space));
    bool failed = from->failed || behind->failed || space.failed || !has_end;
    buffer_free(&space);
    return failed ? status_out_of_memory() : status_ok();
}

static bool is_old(const struct pass *pass, const Ds__Entity *entity)
{
    const Ds__Value *time = ds_property_find(entity, "timestamp");
    return time == NULL || time->value_type_case != DS__VALUE__VALUE_TYPE_TIMESTAMP_VALUE ||
           ds_timestamp_us(time->timestamp_value) != pass->at_us;
}

static status delete_if_old(struct ds_walk *walk, const struct ds_row_found *row)
{
    struct pass *pass = walk->context;
    const Ds__Entity *entity;
    Ds__Key *key;
    TRY(ds_record_entity(row->value, walk->arena, &entity));
    if (!is_old(pass, entity))
        return status_ok();
    TRY(ds_walk_key(&pass->database, row->key, pass->arena, &key));
    return add_mutation(pass, NULL, key);
}

/* From one namespace's statistics to the next one's. */
static status look_at(struct ds_walk *walk, const struct ds_row_found *row)
{
    struct buffer from = {0}, behind = {0};
    struct ds_row parsed;
    if (!ds_row_parse(row->key, NULL, &parsed))
        return ds_damaged("a row key");
    status s = range_of(&parsed, &from, &behind);
    if (status_is_ok(s) && bytes_start_with(row->key, buffer_bytes(&from)))
        s = delete_if_old(walk, row);
    else if (status_is_ok(s))
        s = ds_rows_seek(walk->reader, bytes_compare(row->key, buffer_bytes(&from)) < 0
                                           ? buffer_bytes(&from)
                                           : buffer_bytes(&behind));
    buffer_free(&from);
    buffer_free(&behind);
    return s;
}

/* --- all of it --- */

static status walk_with(struct pass *pass,
                        status (*visit)(struct ds_walk *walk, const struct ds_row_found *row))
{
    struct ds_walk walk = {.datastore = pass->datastore,
                           .open = pass->open,
                           .background = pass->background,
                           .rows = DS_ENTITY_ROW,
                           .visit = visit,
                           .context = pass};
    return ds_walk_run(&walk);
}

static status run(struct pass *pass)
{
    TRY(walk_with(pass, count_entity));
    TRY(write_all(pass));
    TRY(walk_with(pass, look_at));
    return commit(pass);
}

status ds_statistics_run(struct datastore *datastore, struct ds_open_database *open,
                         struct ds_background *background)
{
    struct pass pass = {.datastore = datastore,
                        .open = open,
                        .background = background,
                        .database = {open->project, open->id},
                        .at_us = cluster_wall_us(datastore->cluster),
                        .arena = arena_create(COMMIT_BYTES)};
    status s = pass.arena == NULL ? status_out_of_memory()
                                  : ds_statistics_init(&pass.statistics, LIMIT_DS_STATISTICS_BYTES);
    if (status_is_ok(s))
        s = run(&pass);
    ds_statistics_free(&pass.statistics);
    arena_destroy(pass.arena);
    return s;
}

/* --- when they were made --- */

static status read_time(struct ds_open_database *open, struct arena *arena, int64_t *out)
{
    Ds__Key__PathElement element = DS__KEY__PATH_ELEMENT__INIT, *path[] = {&element};
    Ds__Key key = DS__KEY__INIT;
    const struct ds_snapshot newest = {
        .table = open->table, .database = {open->project, open->id}, .at_us = INT64_MAX};
    struct ds_version version;
    element.kind = DS_STATISTIC_PREFIX "Total__";
    element.id_type_case = DS__KEY__PATH_ELEMENT__ID_TYPE_NAME;
    element.name = DS_STATISTIC_TOTAL;
    key.path = path;
    key.n_path = 1;
    TRY(ds_snapshot_get(&newest, &key, arena, &version));
    const Ds__Value *time =
        version.entity == NULL ? NULL : ds_property_find(version.entity, "timestamp");
    if (time != NULL && time->value_type_case == DS__VALUE__VALUE_TYPE_TIMESTAMP_VALUE)
        *out = ds_timestamp_us(time->timestamp_value);
    return status_ok();
}

status ds_statistics_time(struct ds_open_database *open, int64_t *out)
{
    struct arena *arena = arena_create(COMMIT_BYTES);
    *out = 0;
    status s = arena == NULL ? status_out_of_memory() : read_time(open, arena, out);
    arena_destroy(arena);
    return s;
}
