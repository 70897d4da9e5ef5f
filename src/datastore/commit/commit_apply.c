/* The second and the third step of a commit: see commit.h. */
#include "base/check.h"
#include "datastore/commit/commit.h"
#include "datastore/commit/snapshot.h"
#include "datastore/model/mask.h"
#include "datastore/model/transform.h"
#include "datastore/model/validate.h"

enum { LOCK_WAIT_US = 2 * 1000 * 1000 };

/* --- reading --- */

/* Whether rows rise: threads that take several locks take them in this order. For DCHECKs. */
static bool rows_rise(const struct ds_commit *commit)
{
    for (size_t i = 1; i < commit->written_count; i++)
        if (bytes_compare(commit->written[i - 1].row_key, commit->written[i].row_key) >= 0)
            return false;
    return true;
}

static status claim_entities(struct ds_commit *commit)
{
    DCHECK(rows_rise(commit));
    bytes *rows = arena_alloc(commit->call->arena, commit->written_count * sizeof *rows);
    if (rows == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < commit->written_count; i++)
        rows[i] = commit->written[i].row_key;
    return ds_range_locks_claim(commit->call->datastore->range_locks, commit->locker,
                                (struct ds_claim){rows, commit->written_count}, commit->call->call);
}

static status take_locks(struct ds_commit *commit)
{
    DCHECK(commit->lock_count == 0 && rows_rise(commit));
    size_t count = commit->written_count;
    if (commit->locker != NULL)
        return claim_entities(commit);
    commit->locks = arena_zalloc(commit->call->arena, count * sizeof *commit->locks);
    if (commit->locks == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        commit->locks[i].key = commit->written[i].row_key;
    status s = ds_locks_take(commit->open->locks, commit->locks, count, LOCK_WAIT_US);
    if (s.code == STATUS_ABORTED)
        metrics_add(commit->call->datastore->metrics, METRIC_datastore_lock_timeouts_total, 1);
    TRY(s);
    commit->lock_count = count;
    return status_ok();
}

void ds_commit_unlock(struct ds_commit *commit)
{
    ds_locks_release(commit->open->locks, commit->locks, commit->lock_count);
    commit->lock_count = 0;
    ds_ids_release(commit->open, &commit->held_ids);
    ds_in_flight_unwatch(&commit->open->in_flight, &commit->watch);
    ds_in_flight_remove(&commit->open->in_flight, &commit->flight);
    if (commit->locker != NULL)
        ds_range_locks_release(commit->call->datastore->range_locks, commit->locker);
}

static status get_version(const struct ds_commit *commit, const struct ds_written *written,
                          struct ds_version *out)
{
    struct arena *arena = commit->call->arena;
    const struct ds_snapshot newest = {.table = commit->open->table,
                                       .database = commit->database,
                                       .at_us = INT64_MAX,
                                       .call = commit->call->call};
    struct ds_recent_entity recent;
    if (!ds_recent_find(&commit->open->recent, commit->open->table, written->row_key, arena,
                        &recent))
        return ds_snapshot_get(&newest, written->key, arena, out);
    TRY(ds_record_version(recent.record, arena, out));
    out->version_us = recent.at_us;
    return status_ok();
}

/* All that wrote the entity before have been applied: they held its lock until then. */
static status read_entity(struct ds_commit *commit, struct ds_written *written)
{
    DCHECK(commit->locker != NULL || commit->lock_count == commit->written_count);
    struct ds_version version;
    TRY(get_version(commit, written, &version));
    written->old = written->now = version.entity;
    written->old_stored = version.stored;
    written->old_version_us = version.version_us;
    written->create_us = version.create_us;
    return status_ok();
}

status ds_commit_read(struct ds_commit *commit)
{
    ds_call_step(commit->call, CALL_AWAITS_LOCK);
    TRY(take_locks(commit));
    ds_call_step(commit->call, CALL_READS);
    for (size_t i = 0; i < commit->written_count; i++)
        TRY(read_entity(commit, &commit->written[i]));
    ds_call_step(commit->call, CALL_WORKS);
    return status_ok();
}

/* --- what may come after what --- */

static const char *name_of(int operation)
{
    switch (operation) {
    case DS__MUTATION__OPERATION_INSERT:
        return "insert";
    case DS__MUTATION__OPERATION_UPDATE:
        return "update";
    case DS__MUTATION__OPERATION_UPSERT:
        return "upsert";
    default:
        return "delete";
    }
}

static status check_sequence(const struct ds_written *written, int operation)
{
    int before = written->last_operation;
    bool was_made = before == DS__MUTATION__OPERATION_INSERT ||
                    before == DS__MUTATION__OPERATION_UPDATE ||
                    before == DS__MUTATION__OPERATION_UPSERT;
    bool is_wrong =
        (operation == DS__MUTATION__OPERATION_INSERT && was_made) ||
        (operation == DS__MUTATION__OPERATION_UPDATE && before == DS__MUTATION__OPERATION_DELETE);
    if (!is_wrong)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT, "Cannot %s then %s an entity in the same request.",
                       name_of(before), name_of(operation));
}

static status check_presence(const struct ds_written *written, int operation)
{
    if (operation == DS__MUTATION__OPERATION_INSERT && written->now != NULL)
        return status_make(STATUS_ALREADY_EXISTS, "entity already exists");
    if (operation == DS__MUTATION__OPERATION_UPDATE && written->now == NULL)
        return status_make(STATUS_NOT_FOUND, "no entity to update");
    return status_ok();
}

/* --- versions --- */

/* The version that the mutation wants the entity to have; false if it wants none. */
static bool wants_version(const Ds__Mutation *mutation, int64_t *out)
{
    switch (mutation->conflict_detection_strategy_case) {
    case DS__MUTATION__CONFLICT_DETECTION_STRATEGY_BASE_VERSION:
        *out = mutation->base_version;
        return true;
    case DS__MUTATION__CONFLICT_DETECTION_STRATEGY_UPDATE_TIME:
        *out = ds_timestamp_us(mutation->update_time);
        return true;
    default:
        return false;
    }
}

static status check_version(const struct ds_written *written, const Ds__Mutation *mutation,
                            bool *is_conflict)
{
    int64_t wanted;
    int64_t stored = written->old == NULL ? 0 : written->old_version_us;
    *is_conflict = wants_version(mutation, &wanted) && wanted != stored;
    if (!*is_conflict ||
        mutation->conflict_resolution_strategy != DS__MUTATION__CONFLICT_RESOLUTION_STRATEGY__FAIL)
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION,
                       "the stored version (%lld) does not match the required base version (%lld)",
                       (long long)stored, (long long)wanted);
}

/* --- one mutation --- */

/* Makes the entity that the mutation leaves. `*out` may be where the present one stands. */
static status make_entity(struct ds_commit *commit, struct ds_work *work, const Ds__Entity **out)
{
    const Ds__Mutation *mutation = work->mutation;
    const Ds__Entity *before = work->written->now;
    struct arena *arena = commit->call->arena;
    Ds__Entity *made;
    *out = work->entity;
    if (*out != NULL && mutation->property_mask != NULL) {
        TRY(ds_mask_write(before, work->entity, mutation->property_mask, arena, &made));
        *out = made;
    }
    if (*out != NULL && mutation->n_property_transforms > 0) {
        TRY(ds_transform(*out, mutation->property_transforms, mutation->n_property_transforms,
                         commit->now_us, arena, &made, &work->transform_results));
        work->transform_count = mutation->n_property_transforms;
        *out = made;
    }
    return *out == work->entity || *out == NULL
               ? status_ok()
               : ds_entity_encode(*out, &commit->database, DS_KEY_WRITE, arena, &work->stored);
}

static status apply(struct ds_commit *commit, struct ds_work *work)
{
    struct ds_written *written = work->written;
    DCHECK(written != NULL);
    int operation = (int)work->mutation->operation_case;
    TRY(check_sequence(written, operation));
    TRY(check_presence(written, operation));
    TRY(check_version(written, work->mutation, &work->is_conflict));
    written->last_operation = operation;
    if (work->is_conflict)
        return status_ok();
    TRY(make_entity(commit, work, &written->now));
    written->now_stored = work->stored;
    written->is_changed = written->is_changed || written->now != written->old;
    return status_ok();
}

/* --- what has changed --- */

static status encode(const Ds__Entity *entity, struct arena *arena, bytes *out)
{
    *out = proto_encode_in(arena, &entity->base);
    return out->data == NULL ? status_out_of_memory() : status_ok();
}

/* An entity that has become what it was is left alone, and keeps its version. */
static status drop_unchanged(struct ds_commit *commit, struct ds_written *written)
{
    DCHECK(written->old == NULL || written->old_stored.data != NULL);
    if (!written->is_changed || written->now == NULL)
        return status_ok();
    if (written->now_stored.data == NULL)
        TRY(encode(written->now, commit->call->arena, &written->now_stored));
    if (written->old != NULL)
        written->is_changed = !bytes_equal(written->now_stored, written->old_stored);
    return status_ok();
}

status ds_commit_apply(struct ds_commit *commit)
{
    DCHECK(commit->locker != NULL || commit->lock_count == commit->written_count);
    for (size_t i = 0; i < commit->work_count; i++)
        TRY(apply(commit, &commit->works[i]));
    for (size_t i = 0; i < commit->written_count; i++)
        TRY(drop_unchanged(commit, &commit->written[i]));
    return status_ok();
}
