/* See ttl_pass.h. */
#include "datastore/admin/ttl_pass.h"

#include "datastore/admin/entity_walk.h"
#include "datastore/admin/ttl.h"
#include "datastore/commit/commit.h"
#include "row/key_text.h"
#include "row/row_key.h"

enum { MUTATIONS_A_COMMIT = 50, ARENA_BYTES = 64 << 20 };

struct pass {
    struct datastore *datastore;
    struct ds_open_database *open;
    struct ds_background *background;
    struct ds_database database;
    int64_t now_us;
    const struct ds_field_name *fields;
    size_t count;
    const struct ds_field_name *field; /* whose index is walked over */
    struct arena *arena;               /* of the commit that is being made */
    struct vector mutations;           /* its, Ds__Mutation * */
    int64_t deleted;
};

/* --- deleting --- */

/* A commit that is held up by others is left for the next pass. */
static status commit(struct pass *pass)
{
    size_t count = pass->mutations.count;
    status s = ds_commit_mutations(pass->datastore, &pass->database, &pass->mutations, pass->arena);
    pass->deleted += status_is_ok(s) ? (int64_t)count : 0;
    if (s.code == STATUS_ABORTED)
        status_free(s);
    else
        TRY(s);
    return ds_background_rest(pass->background);
}

/* Deletes the entity, if it still is what it was: a write in between may have made it live on. */
static status delete (struct pass *pass, bytes row_key, int64_t version_us)
{
    Ds__Mutation *mutation;
    PROTO_NEW(pass->arena, mutation, DS__MUTATION__INIT);
    mutation->operation_case = DS__MUTATION__OPERATION_DELETE;
    mutation->conflict_detection_strategy_case =
        DS__MUTATION__CONFLICT_DETECTION_STRATEGY_BASE_VERSION;
    mutation->base_version = version_us;
    TRY(ds_walk_key(&pass->database, row_key, pass->arena, &mutation->delete_));
    TRY(vector_add(&pass->mutations, pass->arena, &mutation, sizeof mutation));
    return pass->mutations.count < MUTATIONS_A_COMMIT ? status_ok() : commit(pass);
}

static status consider(struct ds_walk *walk, const struct ds_field_name *field, bytes row_key)
{
    struct pass *pass = walk->context;
    struct ds_version version;
    Ds__Key *key;
    TRY(ds_walk_key(&pass->database, row_key, walk->arena, &key));
    TRY(ds_snapshot_get(&walk->snapshot, key, walk->arena, &version));
    if (version.entity == NULL || !ds_ttl_has_expired(field, version.entity, pass->now_us))
        return status_ok();
    return delete (pass, row_key, version.version_us);
}

/* --- by the index --- */

/* The range of the field's index that has its moments in the row's namespace, and the namespace's
 * end. */
static status range_of(const struct ds_row *row, const struct ds_field_name *field,
                       struct buffer *from, struct buffer *behind)
{
    static const Ds__Value any = {.value_type_case = DS__VALUE__VALUE_TYPE_INTEGER_VALUE};
    struct buffer space = {0}, value = {0};
    buffer_append_byte(&space, DS_ASCENDING_ROW);
    buffer_append_bytes(&space, row->name_space);
    buffer_append_bytes(from, buffer_bytes(&space));
    key_text_append(from, bytes_of(field->kind));
    key_text_append(from, bytes_of(field->property));
    ds_value_append(&value, &any, DS_ASCENDING);
    buffer_append(from, value.data, 1); /* the type: numbers and moments */
    bool has_end = key_after_prefix(behind, buffer_bytes(&space));
    bool failed = from->failed || behind->failed || space.failed || value.failed || !has_end;
    buffer_free(&space);
    buffer_free(&value);
    return failed ? status_out_of_memory() : status_ok();
}

/* Numbers lie between the moments; behind the first moment that is to come is none that has been.
 */
static status look_at_value(struct ds_walk *walk, const struct ds_row_found *found,
                            const struct ds_row *row, bytes behind)
{
    struct pass *pass = walk->context;
    Ds__Value *value;
    uint8_t type = found->value.size > 0 ? found->value.data[0] : 0;
    TRY(ds_value_decode(row->values, DS_ASCENDING, type, walk->arena, &value));
    if (value->integer_value > pass->now_us)
        return ds_rows_seek(walk->reader, behind);
    return type == DS__VALUE__VALUE_TYPE_TIMESTAMP_VALUE ? consider(walk, pass->field, found->key)
                                                         : status_ok();
}

/* From one namespace to the next. */
static status look_at_index(struct ds_walk *walk, const struct ds_row_found *found)
{
    const struct pass *pass = walk->context;
    struct buffer from = {0}, behind = {0};
    struct ds_row row;
    if (!ds_row_parse(found->key, NULL, &row))
        return ds_damaged("a row key");
    status s = range_of(&row, pass->field, &from, &behind);
    if (status_is_ok(s) && bytes_start_with(found->key, buffer_bytes(&from)))
        s = look_at_value(walk, found, &row, buffer_bytes(&behind));
    else if (status_is_ok(s))
        s = ds_rows_seek(walk->reader, bytes_compare(found->key, buffer_bytes(&from)) < 0
                                           ? buffer_bytes(&from)
                                           : buffer_bytes(&behind));
    buffer_free(&from);
    buffer_free(&behind);
    return s;
}

/* --- by the entities --- */

static status look_at_entity(struct ds_walk *walk, const struct ds_row_found *found)
{
    struct pass *pass = walk->context;
    const Ds__Entity *entity;
    Ds__Key *key;
    TRY(ds_walk_key(&pass->database, found->key, walk->arena, &key));
    for (size_t i = 0; i < pass->count; i++) {
        const struct ds_field_name *field = &pass->fields[i];
        if (!bytes_equal(ds_key_kind(key), bytes_of(field->kind)))
            continue;
        TRY(ds_record_entity(found->value, walk->arena, &entity));
        if (ds_ttl_has_expired(field, entity, pass->now_us))
            TRY(consider(walk, field, found->key));
    }
    return status_ok();
}

/* --- all of it --- */

static status walk_over(struct pass *pass, enum ds_row_kind rows,
                        status (*visit)(struct ds_walk *walk, const struct ds_row_found *row))
{
    struct ds_walk walk = {.datastore = pass->datastore,
                           .open = pass->open,
                           .background = pass->background,
                           .rows = rows,
                           .visit = visit,
                           .context = pass};
    return ds_walk_run(&walk);
}

static status run(struct pass *pass, bool all)
{
    for (size_t i = 0; i < pass->count; i++) {
        pass->field = &pass->fields[i];
        TRY(walk_over(pass, DS_ASCENDING_ROW, look_at_index));
    }
    TRY(commit(pass));
    if (all)
        TRY(walk_over(pass, DS_ENTITY_ROW, look_at_entity));
    return commit(pass);
}

status ds_ttl_run(struct datastore *datastore, struct ds_open_database *open,
                  const struct vector *fields, bool all, struct ds_background *background,
                  int64_t *deleted)
{
    struct pass pass = {.datastore = datastore,
                        .open = open,
                        .background = background,
                        .database = {open->project, open->id},
                        .now_us = cluster_wall_us(datastore->cluster),
                        .fields = fields->items,
                        .count = fields->count,
                        .arena = arena_create(ARENA_BYTES)};
    status s = pass.arena == NULL ? status_out_of_memory() : run(&pass, all);
    arena_destroy(pass.arena);
    *deleted = pass.deleted;
    return s;
}
