/* Commit: see commit.h for how. */
#include "datastore/commit/commit.h"

#include "base/check.h"
#include "datastore/commit/reading.h"
#include "datastore/commit/transaction.h"
#include "datastore/entity_result.h"
#include "datastore/index/indexes.h"
#include "datastore/methods.h"
#include "datastore/usage_note.h"

/* --- the answer --- */

static status make_result(const struct ds_commit *commit, const struct ds_work *work,
                          Ds__MutationResult **out)
{
    struct arena *arena = commit->call->arena;
    const struct ds_written *written = work->written;
    bool is_left = written->old != NULL && !written->is_changed;
    Ds__MutationResult *result;
    PROTO_NEW(arena, result, DS__MUTATION_RESULT__INIT);
    *out = result;
    result->key = work->has_new_id ? work->key : NULL;
    result->conflict_detected = work->is_conflict;
    result->version =
        work->is_conflict || is_left ? written->old_version_us : commit->writing.moment.at_us;
    result->transform_results = work->transform_results;
    result->n_transform_results = work->transform_count;
    if (written->now == NULL)
        return status_ok();
    int64_t create_us = written->create_us == 0 ? commit->writing.moment.at_us : written->create_us;
    TRY(ds_time_message(create_us, arena, &result->create_time));
    return ds_time_message(result->version, arena, &result->update_time);
}

static status answer(const struct ds_commit *commit, ProtobufCMessage **out)
{
    DCHECK(status_is_ok(commit->writing.result));
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
    grpc_call_count(commit->call->call, (int64_t)commit->work_count, (int64_t)commit->work_count);
    *out = &response->base;
    if (!commit->is_transactional)
        return status_ok();
    return ds_time_message(commit->writing.moment.at_us, arena, &response->commit_time);
}

/* --- the transaction --- */

static status check_mode(const Ds__CommitRequest *request)
{
    bool has_none =
        request->transaction_selector_case == DS__COMMIT_REQUEST__TRANSACTION_SELECTOR__NOT_SET;
    bool is_transactional = request->mode != DS__COMMIT_REQUEST__MODE__NON_TRANSACTIONAL;
    if (is_transactional && has_none)
        return status_make(STATUS_INVALID_ARGUMENT, "transactional commit requires a transaction");
    if (!is_transactional && !has_none)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "non-transaction commit cannot specify a transaction");
    if (request->transaction_selector_case ==
            DS__COMMIT_REQUEST__TRANSACTION_SELECTOR_SINGLE_USE_TRANSACTION &&
        request->single_use_transaction->mode_case == DS__TRANSACTION_OPTIONS__MODE_READ_ONLY)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "single_use_transaction in a commit request must be READ_WRITE.");
    return status_ok();
}

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

static status check_request(const struct ds_commit *commit, const Ds__CommitRequest *request)
{
    const struct ds_transaction *transaction = commit->transaction;
    if (transaction != NULL && transaction->is_read_only && request->n_mutations > 0)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Cannot modify entities in a read-only transaction.");
    return status_ok();
}

/* --- all of it --- */

/* A commit that fails ends its transaction, too: it has to be begun again. */
static void let_go(struct ds_commit *commit)
{
    if (commit->open != NULL)
        ds_commit_unlock(commit);
    if (commit->open != NULL && commit->indexes != NULL)
        ds_indexes_give_back(commit->open->indexes, commit->indexes);
    if (commit->transaction != NULL)
        ds_transaction_end(commit->call->datastore->transactions, commit->transaction);
}

static void finish(struct task *task)
{
    struct ds_commit *commit = LIST_ENTRY(task, struct ds_commit, finish);
    DCHECK(!commit->is_own);
    ProtobufCMessage *response = NULL;
    ds_call_step(commit->call, CALL_WORKS);
    if (status_is_ok(commit->writing.result) && commit->transaction != NULL)
        metrics_add(commit->call->datastore->metrics, METRIC_datastore_transactions_committed_total,
                    1);
    ds_usage_note_commit(commit, commit->writing.result.code);
    ds_commit_tell(commit);
    let_go(commit);
    status s = commit->writing.result;
    if (status_is_ok(s))
        s = answer(commit, &response);
    ds_call_finish(commit->call, s, response);
}

/* Where transactions are pessimistic every commit claims what it writes. */
static void choose_locker(struct ds_commit *commit)
{
    DCHECK(commit->open != NULL && commit->locker == NULL);
    struct datastore *datastore = commit->call->datastore;
    struct ds_transaction *transaction = commit->transaction;
    if (datastore->range_locks == NULL)
        return;
    bool is_of_transaction = transaction != NULL && transaction->is_pessimistic;
    commit->locker = is_of_transaction ? &transaction->locker : &commit->own_locker;
    if (!is_of_transaction)
        commit->own_locker = (struct ds_locker){.age = ds_transactions_age(datastore->transactions),
                                                .until_us = INT64_MAX};
    commit->locker->database = commit->open;
}

/* All that may fail before the commit has its moment. */
static status prepare(struct ds_commit *commit, const Ds__CommitRequest *request)
{
    TRY(check_request(commit, request));
    if (commit->transaction != NULL)
        TRY(ds_transaction_check(commit->transaction));
    TRY(ds_database_open(commit->call->datastore, &commit->database, true, &commit->open));
    choose_locker(commit);
    TRY(ds_commit_prepare(commit, request));
    TRY(ds_commit_look_at_reads(commit));
    TRY(ds_commit_read(commit));
    TRY(ds_commit_apply(commit));
    return ds_commit_find_rows(commit);
}

status ds_commit(struct ds_call *call, const ProtobufCMessage *message, ProtobufCMessage **response)
{
    const Ds__CommitRequest *request = (const Ds__CommitRequest *)message;
    struct ds_commit *commit = arena_alloc(call->arena, sizeof *commit);
    if (commit == NULL)
        return status_out_of_memory();
    *commit = (struct ds_commit){.call = call,
                                 .database = {call->project_id, call->database_id},
                                 .now_us = cluster_version_us(call->datastore->cluster),
                                 .is_transactional =
                                     request->mode != DS__COMMIT_REQUEST__MODE__NON_TRANSACTIONAL,
                                 .finish.run = finish};
    TRY(check_mode(request));
    TRY(take_transaction(call, request, &commit->transaction));
    status s = prepare(commit, request);
    if (status_is_ok(s)) {
        ds_commit_write(commit);
    } else {
        ds_usage_note_commit(commit, s.code);
        let_go(commit);
    }
    *response = NULL;
    return s;
}

static status run_own(struct ds_commit *commit, const Ds__CommitRequest *request)
{
    DCHECK(commit->is_own && commit->transaction == NULL);
    TRY(prepare(commit, request));
    ds_commit_write(commit);
    ds_sequencer_end(&commit->open->sequencer, &commit->writing.moment);
    ds_commit_tell(commit);
    return commit->writing.result;
}

status ds_commit_own(struct datastore *datastore, const struct ds_database *database,
                     const Ds__CommitRequest *request, struct arena *arena)
{
    struct ds_call call = {.datastore = datastore,
                           .arena = arena,
                           .project_id = database->project,
                           .database_id = database->id,
                           .deadline_us = INT64_MAX};
    struct ds_commit commit = {.call = &call,
                               .database = *database,
                               .now_us = cluster_version_us(datastore->cluster),
                               .is_own = true};
    status s = run_own(&commit, request);
    let_go(&commit);
    return s;
}

status ds_commit_mutations(struct datastore *datastore, const struct ds_database *database,
                           struct vector *mutations, struct arena *arena)
{
    Ds__CommitRequest request = DS__COMMIT_REQUEST__INIT;
    request.mode = DS__COMMIT_REQUEST__MODE__NON_TRANSACTIONAL;
    request.mutations = mutations->items;
    request.n_mutations = mutations->count;
    status s =
        mutations->count == 0 ? status_ok() : ds_commit_own(datastore, database, &request, arena);
    *mutations = (struct vector){0};
    arena_reset(arena);
    return s;
}
