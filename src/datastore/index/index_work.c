/* See index_work.h: what the operations do, except the rows (index_backfill.h). */
#include "datastore/index/index_work.h"

#include "base/check.h"
#include "base/limits.h"
#include "datastore/ds_operation.h"
#include "datastore/entity_result.h"
#include "datastore/index/index_backfill.h"
#include "datastore/index/indexes.h"
#include "wire/proto.h"

#include <inttypes.h>
#include <stdio.h>

enum { REPORT_EVERY_US = 1000000 };

struct index_work {
    struct datastore *datastore;
    struct operation *operation;
    struct arena *arena;
    struct ds_open_database *open;
    const Datastore__IndexWork *asked;
    Datastore__CompositeIndex *definition; /* as it stands */
    DsAdmin__IndexOperationMetadata *metadata;
    int64_t reported_us; /* clock_steady_us */
};

/* --- what clients see of it --- */

static status make_metadata(struct index_work *work, DsAdmin__OperationType type)
{
    enum { MOST = 24 };
    char *id = arena_alloc(work->arena, MOST);
    if (id == NULL)
        return status_out_of_memory();
    snprintf(id, MOST, "%" PRId64, work->asked->index->id);
    PROTO_NEW(work->arena, work->metadata, DS_ADMIN__INDEX_OPERATION_METADATA__INIT);
    work->metadata->index_id = id;
    PROTO_NEW(work->arena, work->metadata->progress_entities, DS_ADMIN__PROGRESS__INIT);
    PROTO_NEW(work->arena, work->metadata->common, DS_ADMIN__COMMON_METADATA__INIT);
    work->metadata->common->operation_type = type;
    work->metadata->common->state = DS_ADMIN__COMMON_METADATA__STATE__PROCESSING;
    return ds_time_message(work->asked->start_us, work->arena, &work->metadata->common->start_time);
}

static void show_progress(struct index_work *work)
{
    work->metadata->progress_entities->work_completed = work->definition->entities;
}

static void report_now_and_then(void *context)
{
    struct index_work *work = context;
    int64_t now_us = clock_steady_us(work->datastore->clock);
    show_progress(work);
    if (now_us - work->reported_us < REPORT_EVERY_US)
        return;
    work->reported_us = now_us;
    status_ignore(operation_report(work->operation, &work->metadata->base)); /* or next time */
}

/* Not before its begin, also when the wall clock was set back. */
static status set_ended(struct index_work *work, status outcome)
{
    int64_t now_us = cluster_wall_us(work->datastore->cluster);
    int64_t start_us = work->asked->start_us;
    show_progress(work);
    return ds_operation_ended(work->metadata->common, ds_operation_state_of(outcome),
                              now_us > start_us ? now_us : start_us, work->arena);
}

static status put_end(void *context, struct edit *edit)
{
    struct index_work *work = context;
    DsAdmin__Index *index;
    TRY(ds_definition_show(work->definition, work->asked->project, work->arena, &index));
    return operation_finish(work->operation, edit, &work->metadata->base, &index->base);
}

static status finish(struct index_work *work)
{
    TRY(set_ended(work, status_ok()));
    return control_edit(operation_control(work->operation), put_end, work);
}

/* Shows that it failed, before the operation ends with the failure. */
static status show_failure(struct index_work *work, status failure)
{
    status s = set_ended(work, failure);
    if (status_is_ok(s))
        s = operation_report(work->operation, &work->metadata->base);
    status_ignore(s);
    return failure;
}

/* --- the definition --- */

static status put_state(struct index_work *work, DsAdmin__Index__State state)
{
    work->definition->state = (uint32_t)state;
    ds_indexes_lock(work->open->indexes);
    status s = ds_indexes_put(work->datastore, work->open, work->definition, work->arena);
    ds_indexes_unlock(work->open->indexes);
    return s;
}

/* The definition as it is kept, with how far it is; NULL if it is not. The call that orders the
 * work makes it what it is to be after the operation, under the lock: unless a crash came between.
 */
static status read_kept(struct index_work *work, Datastore__CompositeIndex **out)
{
    ds_indexes_lock(work->open->indexes);
    status s = ds_indexes_read(work->open, (uint64_t)work->asked->index->id, work->arena, out);
    ds_indexes_unlock(work->open->indexes);
    return s;
}

/* --- create --- */

static status make_rows(struct index_work *work)
{
    struct ds_backfill backfill = {.datastore = work->datastore,
                                   .open = work->open,
                                   .definition = work->definition,
                                   .operation = work->operation,
                                   .progress = report_now_and_then,
                                   .context = work};
    ds_indexes_drain(work->open->indexes);
    return ds_backfill(&backfill);
}

static status make_ready(struct index_work *work)
{
    work->definition->position = (ProtobufCBinaryData){.len = 0};
    work->definition->ready_us = ds_sequencer_read_timestamp(
        &work->open->sequencer, cluster_version_us(work->datastore->cluster));
    TRY(put_state(work, DS_ADMIN__INDEX__STATE__READY));
    return finish(work);
}

static status give_up(struct index_work *work, status failure)
{
    status_ignore(put_state(work, DS_ADMIN__INDEX__STATE__ERROR)); /* if the disk fails, it is it */
    return show_failure(work, failure);
}

static status create_index(struct index_work *work)
{
    Datastore__CompositeIndex *kept;
    TRY(read_kept(work, &kept));
    if (kept == NULL)
        TRY(put_state(work, DS_ADMIN__INDEX__STATE__CREATING));
    else
        work->definition = kept;
    if (work->definition->state == (uint32_t)DS_ADMIN__INDEX__STATE__READY)
        return finish(work);
    if (work->definition->state != (uint32_t)DS_ADMIN__INDEX__STATE__CREATING)
        return show_failure(work, status_make(STATUS_ABORTED, "The index could not be made"));
    status s = make_rows(work);
    if (status_is_ok(s))
        return make_ready(work);
    return operation_is_stopping(work->operation) ? s : give_up(work, s);
}

/* --- delete --- */

static status delete_index(struct index_work *work)
{
    Datastore__CompositeIndex *kept;
    TRY(read_kept(work, &kept));
    if (kept != NULL && kept->state != (uint32_t)DS_ADMIN__INDEX__STATE__DELETING)
        TRY(put_state(work, DS_ADMIN__INDEX__STATE__DELETING));
    ds_indexes_drain(work->open->indexes);
    uint64_t id = (uint64_t)work->definition->id;
    TRY(ds_index_rows_remove(work->open, id, work->operation));
    ds_indexes_lock(work->open->indexes);
    status s = ds_indexes_remove(work->datastore, work->open, id, work->arena);
    ds_indexes_unlock(work->open->indexes);
    TRY(s);
    return finish(work);
}

/* --- both --- */

static status open_index(struct index_work *work, bytes argument)
{
    ProtobufCMessage *asked;
    TRY(proto_decode(&datastore__index_work__descriptor, argument, work->arena, &asked));
    work->asked = (const Datastore__IndexWork *)asked;
    work->definition = work->asked->index;
    if (work->definition == NULL)
        return ds_damaged("an operation on an index");
    struct ds_database database = {work->asked->project, work->asked->database};
    return ds_database_open(work->datastore, &database, true, &work->open);
}

static status begin(struct index_work *work, DsAdmin__OperationType type)
{
    TRY(open_index(work, operation_argument(work->operation)));
    return make_metadata(work, type);
}

static status run(void *context, struct operation *operation, DsAdmin__OperationType type,
                  status (*what)(struct index_work *work))
{
    struct index_work work = {.datastore = context,
                              .operation = operation,
                              .arena = arena_create(LIMIT_ARENA_DATASTORE_BYTES)};
    if (work.arena == NULL)
        return status_out_of_memory();
    status s = begin(&work, type);
    if (status_is_ok(s)) {
        CHECK(work.open != NULL);
        s = what(&work);
    }
    arena_destroy(work.arena);
    return s;
}

status ds_create_index_run(void *context, struct operation *operation)
{
    return run(context, operation, DS_ADMIN__OPERATION_TYPE__CREATE_INDEX, create_index);
}

status ds_delete_index_run(void *context, struct operation *operation)
{
    return run(context, operation, DS_ADMIN__OPERATION_TYPE__DELETE_INDEX, delete_index);
}

status ds_index_recover(void *context, const char *name, bytes argument)
{
    (void)context;
    (void)name;
    (void)argument;
    return status_ok();
}

/* --- not to go on --- */

static status leave_as_error(struct index_work *work, bytes argument)
{
    Datastore__CompositeIndex *kept;
    TRY(open_index(work, argument));
    CHECK(work->open != NULL);
    TRY(read_kept(work, &kept));
    if (kept == NULL || kept->state == (uint32_t)DS_ADMIN__INDEX__STATE__READY)
        return status_ok();
    work->definition = kept;
    return put_state(work, DS_ADMIN__INDEX__STATE__ERROR);
}

status ds_index_abandon(void *context, const char *name, bytes argument)
{
    struct index_work work = {.datastore = context,
                              .arena = arena_create(LIMIT_ARENA_DATASTORE_BYTES)};
    (void)name;
    if (work.arena == NULL)
        return status_out_of_memory();
    status s = leave_as_error(&work, argument);
    arena_destroy(work.arena);
    return s;
}
