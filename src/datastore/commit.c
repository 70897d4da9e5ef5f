/* Commit: see commit.h for how. */
#include "datastore/commit.h"

#include "datastore/entity_result.h"
#include "datastore/methods.h"
#include "datastore/reading.h"
#include "datastore/transaction.h"

/* --- the answer --- */

static status make_result(const struct ds_commit *commit, const struct ds_work *work,
                          Ds__MutationResult **out)
{
    struct arena *arena = commit->call->arena;
    const struct ds_written *written = work->written;
    Ds__MutationResult *result;
    PROTO_NEW(arena, result, DS__MUTATION_RESULT__INIT);
    *out = result;
    result->key = work->has_new_id ? work->key : NULL;
    result->conflict_detected = work->is_conflict;
    result->version = work->is_conflict ? written->old_version_us : commit->moment_us;
    result->transform_results = work->transform_results;
    result->n_transform_results = work->transform_count;
    if (written->now == NULL)
        return status_ok();
    int64_t create_us = written->create_us == 0 ? commit->moment_us : written->create_us;
    TRY(ds_time_message(create_us, arena, &result->create_time));
    return ds_time_message(result->version, arena, &result->update_time);
}

static status answer(const struct ds_commit *commit, ProtobufCMessage **out)
{
    struct arena *arena = commit->call->arena;
    Ds__CommitResponse *response;
    PROTO_NEW(arena, response, DS__COMMIT_RESPONSE__INIT);
    response->mutation_results = arena_alloc(arena, commit->work_count * sizeof(void *));
    if (response->mutation_results == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < commit->work_count; i++)
        TRY(make_result(commit, &commit->works[i], &response->mutation_results[i]));
    response->n_mutation_results = commit->work_count;
    response->index_updates = commit->index_updates;
    *out = &response->base;
    return ds_time_message(commit->moment_us, arena, &response->commit_time);
}

/* --- the transaction --- */

static status take_transaction(struct ds_call *call, const Ds__CommitRequest *request,
                               struct ds_transaction **out)
{
    struct ds_database database = {call->project_id, call->database_id};
    switch (request->transaction_selector_case) {
    case DS__COMMIT_REQUEST__TRANSACTION_SELECTOR_TRANSACTION:
        return ds_transaction_take(call->datastore->transactions, proto_bytes(request->transaction),
                                   &database, out);
    case DS__COMMIT_REQUEST__TRANSACTION_SELECTOR_SINGLE_USE_TRANSACTION:
        return ds_begin(call, request->single_use_transaction, out);
    default:
        *out = NULL;
        return status_ok();
    }
}

static status check_request(const Ds__CommitRequest *request,
                            const struct ds_transaction *transaction)
{
    bool has_none = transaction == NULL;
    bool is_transactional = request->mode != DS__COMMIT_REQUEST__MODE__NON_TRANSACTIONAL;
    if (is_transactional && has_none)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "A transactional commit must have a transaction.");
    if (!is_transactional && !has_none)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "A non-transactional commit may not have a transaction.");
    if (!has_none && transaction->is_read_only && request->n_mutations > 0)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Cannot modify entities in a read-only transaction.");
    return status_ok();
}

/* --- all of it --- */

static status commit_locked(struct ds_commit *commit, const struct ds_transaction *transaction)
{
    TRY(ds_commit_read(commit));
    TRY(ds_commit_apply(commit));
    return ds_commit_write(commit, transaction);
}

static status run(struct ds_commit *commit, const Ds__CommitRequest *request,
                  const struct ds_transaction *transaction)
{
    TRY(check_request(request, transaction));
    TRY(ds_database_open(commit->call->datastore, &commit->database, true, &commit->open));
    TRY(ds_commit_prepare(commit, request));
    status s = commit_locked(commit, transaction);
    ds_commit_unlock(commit);
    return s;
}

/* A commit that fails ends its transaction, too: it has to be begun anew. */
status ds_commit(struct ds_call *call, const ProtobufCMessage *message, ProtobufCMessage **response)
{
    const Ds__CommitRequest *request = (const Ds__CommitRequest *)message;
    struct ds_transaction *transaction;
    struct ds_commit commit = {.call = call,
                               .database = {call->project_id, call->database_id},
                               .now_us = cluster_now_us(call->datastore->cluster),
                               .is_transactional =
                                   request->mode != DS__COMMIT_REQUEST__MODE__NON_TRANSACTIONAL};
    TRY(take_transaction(call, request, &transaction));
    status s = run(&commit, request, transaction);
    if (transaction != NULL)
        ds_transaction_end(call->datastore->transactions, transaction);
    return status_is_ok(s) ? answer(&commit, response) : s;
}
