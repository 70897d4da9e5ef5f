/* Calls of clients as events of their databases' usage (usage.h). Nothing is counted where counting
 * is off (`datastore->usage` NULL), and of the server's own commits. */
#ifndef TRESTLE_DATASTORE_USAGE_NOTE_H
#define TRESTLE_DATASTORE_USAGE_NOTE_H

#include "datastore/commit/commit.h"
#include "datastore/commit/reading.h"
#include "datastore/query/query_plan.h"
#include "datastore/usage.h"

/* Entities were looked up by their keys: the request's. */
void ds_usage_note_lookup(const struct ds_call *call, const struct ds_reading *reading,
                          Ds__Key *const *keys, size_t count);

/* A query was answered: a batch of it, or what it comes to (`batch` NULL). */
void ds_usage_note_query(const struct ds_call *call, const struct ds_reading *reading,
                         const struct ds_query *query, const struct ds_plan *plan,
                         const Ds__QueryResultBatch *batch);

/* A commit has ended so; before its locks are given back. */
void ds_usage_note_commit(const struct ds_commit *commit, enum status_code code);

/* A transaction was begun; one has expired, and is about to be destroyed. */
void ds_usage_note_begin(const struct ds_call *call, const struct ds_open_database *open);
void ds_usage_note_expired(struct ds_usage *usage, const struct ds_transaction *transaction,
                           int64_t now_us);

/* The kind of what it has read first: of the index, or of the entity's root. No other thread uses
 * the transaction meanwhile. */
void ds_usage_name_transaction(const struct ds_transaction *transaction, struct ds_usage_name *out);

#endif
