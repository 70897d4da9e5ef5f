/* The first step of a commit: see commit.h. */
#include "base/check.h"
#include "datastore/commit/allocate.h"
#include "datastore/commit/commit.h"
#include "datastore/model/mask.h"
#include "datastore/model/transform.h"
#include "datastore/model/validate.h"

#include "datastore/model/rows.h"

#include <stdlib.h>

/* --- mutations --- */

static Ds__Entity *entity_of(const Ds__Mutation *mutation)
{
    switch (mutation->operation_case) {
    case DS__MUTATION__OPERATION_INSERT:
        return mutation->insert;
    case DS__MUTATION__OPERATION_UPDATE:
        return mutation->update;
    case DS__MUTATION__OPERATION_UPSERT:
        return mutation->upsert;
    default:
        return NULL;
    }
}

static enum ds_key_use use_of(const Ds__Mutation *mutation)
{
    bool may_be_new = mutation->operation_case == DS__MUTATION__OPERATION_INSERT ||
                      mutation->operation_case == DS__MUTATION__OPERATION_UPSERT;
    return may_be_new ? DS_KEY_INSERT : DS_KEY_WRITE;
}

static status check_entity(struct ds_commit *commit, Ds__Entity *entity, enum ds_key_use use,
                           bytes *stored)
{
    struct arena *arena = commit->call->arena;
    if (entity->key == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "Entity is missing key.");
    TRY(ds_entity_normalise(entity, &commit->database, arena));
    return commit->is_own ? status_ok()
                          : ds_entity_encode(entity, &commit->database, use, arena, stored);
}

static status check_delete(struct ds_commit *commit, Ds__Key *key)
{
    if (key == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "The mutation has no key.");
    TRY(ds_key_fill(key, &commit->database, commit->call->arena));
    return commit->is_own ? status_ok() : ds_key_check(key, &commit->database, DS_KEY_WRITE);
}

/* A version that an entity has: one that is to be new has none. */
static status check_base_version(const Ds__Mutation *mutation)
{
    bool has_base = mutation->conflict_detection_strategy_case ==
                    DS__MUTATION__CONFLICT_DETECTION_STRATEGY_BASE_VERSION;
    if (mutation->operation_case == DS__MUTATION__OPERATION_INSERT && has_base &&
        mutation->base_version > 0)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Cannot insert an entity with a base version greater than zero");
    return status_ok();
}

static status check_changes(struct ds_commit *commit, const Ds__Mutation *mutation)
{
    struct arena *arena = commit->call->arena;
    TRY(check_base_version(mutation));
    if (mutation->property_mask != NULL)
        TRY(ds_mask_check(mutation->property_mask, DS_MASK_WRITE, arena));
    for (size_t i = 0; i < mutation->n_property_transforms; i++)
        TRY(ds_transform_normalise(mutation->property_transforms[i], &commit->database, arena));
    return status_ok();
}

static status prepare_work(struct ds_commit *commit, Ds__Mutation *mutation, struct ds_work *work)
{
    Ds__Entity *entity = entity_of(mutation);
    *work = (struct ds_work){.mutation = mutation, .entity = entity};
    if (entity != NULL) {
        TRY(check_entity(commit, entity, use_of(mutation), &work->stored));
        TRY(check_changes(commit, mutation));
        work->key = entity->key;
    } else if (mutation->operation_case == DS__MUTATION__OPERATION_DELETE) {
        TRY(check_delete(commit, mutation->delete_));
        work->key = mutation->delete_;
    } else {
        return status_make(STATUS_INVALID_ARGUMENT, "Mutation is missing operation.");
    }
    work->has_new_id = !ds_key_is_complete(work->key);
    if (work->has_new_id)
        work->stored = bytes_make(NULL, 0); /* it has no id in there */
    return work->has_new_id ? ds_id_allocate(commit->call->datastore, commit->open, work->key,
                                             commit->call->arena)
                            : status_ok();
}

/* --- the entities, each once, by their row keys --- */

static int compare_written(const void *a, const void *b)
{
    const struct ds_written *left = a, *right = b;
    return bytes_compare(left->row_key, right->row_key);
}

static status row_key_of(const Ds__Key *key, struct arena *arena, bytes *out)
{
    struct buffer row = {0};
    ds_entity_row(&row, key);
    *out = arena_copy(arena, buffer_bytes(&row));
    bool failed = row.failed || out->data == NULL;
    buffer_free(&row);
    return failed ? status_out_of_memory() : status_ok();
}

static status collect_written(struct ds_commit *commit)
{
    struct arena *arena = commit->call->arena;
    struct ds_written *all = arena_zalloc(arena, commit->work_count * sizeof *all);
    if (all == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < commit->work_count; i++) {
        all[i].key = commit->works[i].key;
        TRY(row_key_of(all[i].key, arena, &all[i].row_key));
    }
    if (commit->work_count > 0)
        qsort(all, commit->work_count, sizeof *all, compare_written);
    for (size_t i = 0; i < commit->work_count; i++)
        if (i == 0 || compare_written(&all[commit->written_count - 1], &all[i]) != 0)
            all[commit->written_count++] = all[i];
    DCHECK(commit->written_count <= commit->work_count);
    commit->written = all;
    return status_ok();
}

static status find_written(struct ds_commit *commit, struct ds_work *work)
{
    struct ds_written wanted = {0};
    TRY(row_key_of(work->key, commit->call->arena, &wanted.row_key));
    work->written = bsearch(&wanted, commit->written, commit->written_count,
                            sizeof *commit->written, compare_written);
    DCHECK(work->written != NULL);
    return status_ok();
}

static status check_alike(const Ds__Mutation *a, const Ds__Mutation *b)
{
    bool have_both = a->conflict_detection_strategy_case ==
                         DS__MUTATION__CONFLICT_DETECTION_STRATEGY_BASE_VERSION &&
                     b->conflict_detection_strategy_case == a->conflict_detection_strategy_case;
    if (!have_both)
        return status_ok();
    if (a->base_version != b->base_version)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Mutations for the same entity must have the same base version.");
    if (a->conflict_resolution_strategy != b->conflict_resolution_strategy)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Mutations for the same entity must have the same conflict resolution "
                           "strategy.");
    return status_ok();
}

/* Checks the mutations of each entity, one after the other, that want it to have a version. */
static status check_versions(const struct ds_commit *commit)
{
    for (size_t i = 0; i < commit->work_count; i++) {
        const struct ds_work *work = &commit->works[i];
        if (work->mutation->conflict_detection_strategy_case ==
            DS__MUTATION__CONFLICT_DETECTION_STRATEGY__NOT_SET)
            continue;
        if (work->written->versioned != NULL)
            TRY(check_alike(work->written->versioned, work->mutation));
        work->written->versioned = work->mutation;
    }
    return status_ok();
}

static status check_mode(const struct ds_commit *commit)
{
    if (commit->is_transactional || commit->written_count == commit->work_count)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT,
                       "A non-transactional commit may not contain multiple mutations affecting "
                       "the same entity.");
}

status ds_commit_prepare(struct ds_commit *commit, const Ds__CommitRequest *request)
{
    DCHECK(commit->works == NULL && commit->written == NULL);
    commit->works = arena_zalloc(commit->call->arena, request->n_mutations * sizeof *commit->works);
    if (commit->works == NULL)
        return status_out_of_memory();
    commit->work_count = request->n_mutations;
    for (size_t i = 0; i < request->n_mutations; i++)
        TRY(prepare_work(commit, request->mutations[i], &commit->works[i]));
    TRY(collect_written(commit));
    for (size_t i = 0; i < commit->work_count; i++)
        TRY(find_written(commit, &commit->works[i]));
    TRY(check_versions(commit));
    return check_mode(commit);
}
