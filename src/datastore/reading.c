/* See reading.h. */
#include "datastore/reading.h"

#include "datastore/indexes.h"
#include "datastore/transaction.h"

#include "datastore/value.h"

static struct ds_database database_of(const struct ds_call *call)
{
    return (struct ds_database){call->project_id, call->database_id};
}

static int64_t now_us(const struct ds_call *call)
{
    return cluster_now_us(call->datastore->cluster);
}

static int64_t present_us(const struct ds_call *call, struct ds_open_database *open)
{
    return open == NULL ? now_us(call) : ds_moments_present(&open->moments, now_us(call));
}

/* --- moments --- */

/* A time that a client asks for: in the past, but not further than is kept. */
static status check_read_time(const struct ds_call *call, const Pb__Timestamp *time, int64_t *out)
{
    *out = ds_timestamp_us(time);
    if (time->nanos % 1000 != 0)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "The requested 'read_time' must have microsecond precision.");
    if (*out > now_us(call))
        return status_make(STATUS_INVALID_ARGUMENT,
                           "The requested 'read_time' cannot be in the future.");
    if (*out < now_us(call) - DS_HISTORY_US)
        return status_make(STATUS_FAILED_PRECONDITION, "The requested 'read_time' is too old.");
    return status_ok();
}

/* Commits up to the time are applied, and none will come to be before it. */
static void reach(struct ds_open_database *open, int64_t at_us)
{
    if (open != NULL)
        ds_moments_reach(&open->moments, at_us);
}

/* --- transactions --- */

static status moment_of(struct ds_call *call, const Ds__TransactionOptions *options,
                        struct ds_open_database *open, int64_t *out)
{
    const Pb__Timestamp *time = NULL;
    if (options != NULL && options->mode_case == DS__TRANSACTION_OPTIONS__MODE_READ_ONLY)
        time = options->read_only->read_time;
    if (time == NULL) {
        *out = present_us(call, open);
        return status_ok();
    }
    TRY(check_read_time(call, time, out));
    reach(open, *out);
    return status_ok();
}

status ds_begin(struct ds_call *call, const Ds__TransactionOptions *options,
                struct ds_transaction **out)
{
    struct ds_database database = database_of(call);
    struct ds_open_database *open;
    int64_t at_us;
    bool is_read_only =
        options != NULL && options->mode_case == DS__TRANSACTION_OPTIONS__MODE_READ_ONLY;
    TRY(ds_database_open(call->datastore, &database, false, &open));
    TRY(moment_of(call, options, open, &at_us));
    return ds_transaction_begin(call->datastore->transactions, &database, is_read_only, at_us, out);
}

/* --- a reading --- */

static status read_in_transaction(struct ds_call *call, const Ds__ReadOptions *options,
                                  struct ds_reading *out)
{
    struct ds_database database = database_of(call);
    bool is_new =
        options->consistency_type_case == DS__READ_OPTIONS__CONSISTENCY_TYPE_NEW_TRANSACTION;
    if (is_new)
        TRY(ds_begin(call, options->new_transaction, &out->transaction));
    else
        TRY(ds_transaction_take(call->datastore->transactions, proto_bytes(options->transaction),
                                &database, &out->transaction));
    out->snapshot.at_us = out->transaction->at_us;
    if (is_new)
        out->new_transaction =
            arena_copy(call->arena, bytes_make(out->transaction->id, DS_TRANSACTION_ID_SIZE));
    return is_new && out->new_transaction.data == NULL ? status_out_of_memory() : status_ok();
}

static status choose_moment(struct ds_call *call, const Ds__ReadOptions *options,
                            struct ds_open_database *open, struct ds_reading *out)
{
    switch (options == NULL ? DS__READ_OPTIONS__CONSISTENCY_TYPE__NOT_SET
                            : options->consistency_type_case) {
    case DS__READ_OPTIONS__CONSISTENCY_TYPE_TRANSACTION:
    case DS__READ_OPTIONS__CONSISTENCY_TYPE_NEW_TRANSACTION:
        return read_in_transaction(call, options, out);
    case DS__READ_OPTIONS__CONSISTENCY_TYPE_READ_TIME:
        TRY(check_read_time(call, options->read_time, &out->snapshot.at_us));
        reach(open, out->snapshot.at_us);
        return status_ok();
    default:
        out->snapshot.at_us = present_us(call, open);
        return status_ok();
    }
}

status ds_read_begin(struct ds_call *call, const Ds__ReadOptions *options, struct ds_reading *out)
{
    struct ds_open_database *open;
    *out = (struct ds_reading){.datastore = call->datastore};
    out->snapshot.database = database_of(call);
    out->snapshot.call = call->call;
    TRY(ds_database_open(call->datastore, &out->snapshot.database, false, &open));
    out->open = open;
    out->snapshot.table = open == NULL ? NULL : open->table;
    status s = choose_moment(call, options, open, out);
    out->read_time_us = out->snapshot.at_us;
    if (!status_is_ok(s))
        ds_read_end(out);
    return s;
}

void ds_read_indexes(struct ds_reading *reading)
{
    if (reading->open == NULL || reading->indexes != NULL)
        return;
    reading->indexes = ds_indexes_take(reading->open->indexes);
    reading->snapshot.indexes = reading->indexes->indexes;
    reading->snapshot.index_count = ds_index_set_ready(reading->indexes, reading->snapshot.at_us);
}

void ds_read_end(struct ds_reading *reading)
{
    if (reading->indexes != NULL)
        ds_indexes_give_back(reading->open->indexes, reading->indexes);
    reading->indexes = NULL;
    if (reading->transaction != NULL)
        ds_transaction_give_back(reading->datastore->transactions, reading->transaction);
    reading->transaction = NULL;
}

status ds_reading_note_range(struct ds_reading *reading, bytes from, bytes to)
{
    return reading->transaction == NULL ? status_ok()
                                        : ds_transaction_note(reading->transaction, from, to);
}
