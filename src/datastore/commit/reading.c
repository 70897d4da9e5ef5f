/* See reading.h. */
#include "datastore/commit/reading.h"

#include "datastore/commit/transaction.h"
#include "datastore/index/indexes.h"
#include "datastore/model/value.h"
#include "datastore/usage_note.h"

/* After that often it is left to others: they have changed it each time. */
enum { MOST_TIMES = 10 };

static struct ds_database database_of(const struct ds_call *call)
{
    return (struct ds_database){call->project_id, call->database_id};
}

/* On the clock that moments are drawn from: what is read was written at moments, and may have been
 * shown to the client as such. Nor does it go back: what the wall clock was ahead for, folds may
 * have taken away. */
static int64_t now_us(const struct ds_call *call)
{
    return cluster_version_us(call->datastore->cluster);
}

/* The present of a database that is not there is `before_us`, a moment before it was looked for:
 * whatever is written to it first is later. */
static int64_t present_us(const struct ds_call *call, struct ds_open_database *open,
                          int64_t before_us)
{
    return open == NULL ? before_us : ds_sequencer_read_timestamp(&open->sequencer, now_us(call));
}

/* Opens what is read, if it is there, and says what `before_us` is. */
static status open_database(const struct ds_call *call, struct ds_open_database **out,
                            int64_t *before_us)
{
    const struct ds_database database = database_of(call);
    *before_us = now_us(call) - 1;
    return ds_database_open(call->datastore, &database, false, out);
}

/* --- moments --- */

/* FAILED_PRECONDITION for a moment that is too long ago. Versions are kept for a while longer, in
 * which a request can come to its end. */
static status check_age(const struct ds_call *call, int64_t at_us)
{
    return ds_is_older(call->datastore->cluster, at_us, DS_HISTORY_US) ? ds_too_old() : status_ok();
}

/* A time that a client asks for: in the past, but not further than can be read. The versions' clock
 * is not behind the moment of any commit, also while the wall clock stands. */
static status check_read_time(const struct ds_call *call, const Pb__Timestamp *time, int64_t *out)
{
    *out = ds_timestamp_us(time);
    if (time->nanos % 1000 != 0)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "The requested 'read_time' must have microsecond precision.");
    if (*out > now_us(call))
        return status_make(STATUS_INVALID_ARGUMENT,
                           "The requested 'read_time' cannot be in the future.");
    return check_age(call, *out);
}

/* Commits up to the time are applied, and none will come to be before it. */
static void read_tier(struct ds_open_database *open, int64_t at_us)
{
    if (open != NULL)
        ds_sequencer_wait_until(&open->sequencer, at_us);
}

/* --- transactions --- */

static status moment_of(struct ds_call *call, const Ds__TransactionOptions *options,
                        struct ds_open_database *open, int64_t before_us, int64_t *out)
{
    const Pb__Timestamp *time = NULL;
    if (options != NULL && options->mode_case == DS__TRANSACTION_OPTIONS__MODE_READ_ONLY)
        time = options->read_only->read_time;
    if (time == NULL) {
        *out = present_us(call, open, before_us);
        return status_ok();
    }
    TRY(check_read_time(call, time, out));
    read_tier(open, *out);
    return status_ok();
}

static bytes previous_of(const Ds__TransactionOptions *options)
{
    if (options == NULL || options->mode_case != DS__TRANSACTION_OPTIONS__MODE_READ_WRITE)
        return bytes_make(NULL, 0);
    return proto_bytes(options->read_write->previous_transaction);
}

status ds_begin(struct ds_call *call, const Ds__TransactionOptions *options,
                struct ds_transaction **out)
{
    struct ds_database database = database_of(call);
    struct ds_open_database *open;
    int64_t before_us, at_us;
    bool is_read_only =
        options != NULL && options->mode_case == DS__TRANSACTION_OPTIONS__MODE_READ_ONLY;
    TRY(open_database(call, &open, &before_us));
    TRY(moment_of(call, options, open, before_us, &at_us));
    const struct ds_beginning beginning = {.database = &database,
                                           .is_read_only = is_read_only,
                                           .at_us = at_us,
                                           .previous = previous_of(options)};
    TRY(ds_transaction_begin(call->datastore->transactions, &beginning, out));
    (*out)->locker.database = open;
    if (!is_read_only)
        ds_usage_note_begin(call, open);
    return status_ok();
}

/* --- a reading --- */

static bool shares(const struct ds_reading *reading)
{
    return reading->transaction != NULL && reading->transaction->is_pessimistic &&
           reading->open != NULL;
}

/* From now on it is read as of the present, if it is not of a moment of its own. */
static void to_present(struct ds_reading *reading)
{
    if (!reading->is_of_a_moment && reading->open != NULL)
        reading->snapshot.at_us = present_us(reading->call, reading->open, 0);
    reading->read_time_us = reading->snapshot.at_us;
}

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
    TRY(ds_transaction_check(out->transaction));
    out->is_of_a_moment = !out->transaction->is_pessimistic;
    if (out->is_of_a_moment)
        TRY(check_age(call, out->transaction->at_us));
    out->snapshot.at_us = out->transaction->at_us;
    out->transaction->locker.database = out->open;
    if (is_new)
        out->new_transaction =
            arena_copy(call->arena, bytes_make(out->transaction->id, DS_TRANSACTION_ID_SIZE));
    return is_new && out->new_transaction.data == NULL ? status_out_of_memory() : status_ok();
}

static status choose_moment(struct ds_call *call, const Ds__ReadOptions *options,
                            struct ds_open_database *open, int64_t before_us,
                            struct ds_reading *out)
{
    switch (options == NULL ? DS__READ_OPTIONS__CONSISTENCY_TYPE__NOT_SET
                            : options->consistency_type_case) {
    case DS__READ_OPTIONS__CONSISTENCY_TYPE_TRANSACTION:
    case DS__READ_OPTIONS__CONSISTENCY_TYPE_NEW_TRANSACTION:
        return read_in_transaction(call, options, out);
    case DS__READ_OPTIONS__CONSISTENCY_TYPE_READ_TIME:
        out->is_of_a_moment = true;
        TRY(check_read_time(call, options->read_time, &out->snapshot.at_us));
        read_tier(open, out->snapshot.at_us);
        return status_ok();
    default:
        out->snapshot.at_us = before_us; /* of a database that is there, it is the present */
        return status_ok();
    }
}

status ds_read_begin(struct ds_call *call, const Ds__ReadOptions *options, struct ds_reading *out)
{
    int64_t before_us;
    *out = (struct ds_reading){.call = call};
    ds_call_step(call, CALL_READS);
    out->snapshot.database = database_of(call);
    out->snapshot.call = call->call;
    TRY(open_database(call, &out->open, &before_us));
    out->snapshot.table = out->open == NULL ? NULL : out->open->table;
    status s = choose_moment(call, options, out->open, before_us, out);
    to_present(out);
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

static void give_back_indexes(struct ds_reading *reading)
{
    if (reading->open != NULL && reading->indexes != NULL)
        ds_indexes_give_back(reading->open->indexes, reading->indexes);
    reading->indexes = NULL;
}

void ds_read_end(struct ds_reading *reading)
{
    struct ds_transactions *transactions = reading->call->datastore->transactions;
    struct ds_transaction *transaction = reading->transaction;
    ds_call_step(reading->call, CALL_WORKS);
    give_back_indexes(reading);
    reading->transaction = NULL;
    if (transaction == NULL)
        return;
    if (transaction->is_aborted && reading->new_transaction.size > 0) /* no client knows its id */
        ds_transaction_end(transactions, transaction);
    else
        ds_transaction_give_back(transactions, transaction);
}

static status charge(struct ds_reading *reading)
{
    return ds_transaction_charge(reading->call->datastore->transactions, reading->transaction);
}

status ds_reading_note_range(struct ds_reading *reading, bytes from, bytes to)
{
    if (reading->transaction == NULL)
        return status_ok();
    if (!shares(reading)) { /* also of a database that is not there yet: it has no locks */
        TRY(ds_transaction_note(reading->transaction, from, to));
        return charge(reading);
    }
    struct arena *arena = reading->call->arena;
    struct ds_read_range range = {arena_copy(arena, from), arena_copy(arena, to)};
    if ((range.from.data == NULL && from.size > 0) || (range.to.data == NULL && to.size > 0))
        return status_out_of_memory();
    return vector_add(&reading->noted, arena, &range, sizeof range);
}

/* --- what a pessimistic transaction reads --- */

static status share(struct ds_reading *reading, const struct ds_read_range *ranges, size_t count)
{
    TRY(ds_range_locks_share(reading->call->datastore->range_locks, &reading->transaction->locker,
                             ranges, count, reading->call->call));
    return charge(reading);
}

/* A transaction that has to give way frees what it holds at once. */
static status abort_if(struct ds_reading *reading, status s)
{
    if (s.code == STATUS_ABORTED)
        ds_transaction_abort(reading->call->datastore->transactions, reading->transaction);
    return s;
}

status ds_reading_announce(struct ds_reading *reading, const struct ds_read_range *ranges,
                           size_t count)
{
    if (shares(reading)) {
        TRY(abort_if(reading, share(reading, ranges, count)));
        to_present(reading);
        return status_ok();
    }
    if (reading->transaction == NULL)
        return status_ok();
    for (size_t i = 0; i < count; i++)
        TRY(ds_transaction_note(reading->transaction, ranges[i].from, ranges[i].to));
    return charge(reading);
}

/* Whether something of what was noted is no longer as it was read. */
static status has_changed(const struct ds_reading *reading, bool *out)
{
    const struct ds_read_range *ranges = reading->noted.items;
    *out = false;
    for (size_t i = 0; i < reading->noted.count && !*out; i++)
        TRY(ds_changed_since(&reading->snapshot, ranges[i].from, ranges[i].to, reading->call->arena,
                             out));
    return status_ok();
}

static void start_anew(struct ds_reading *reading)
{
    reading->noted.count = 0;
    give_back_indexes(reading); /* which can be used depends on the moment */
    to_present(reading);
}

static status validate(struct ds_reading *reading, bool *again)
{
    TRY(share(reading, reading->noted.items, reading->noted.count));
    TRY(has_changed(reading, again));
    if (!*again)
        return status_ok();
    if (++reading->times == MOST_TIMES)
        return ds_contended();
    start_anew(reading);
    return status_ok();
}

/* A call that asked for no moment can be answered as of a later one. */
static bool move_on(struct ds_reading *reading)
{
    if (reading->is_of_a_moment || ++reading->times == MOST_TIMES)
        return false;
    start_anew(reading);
    return true;
}

/* Versions of the moment may have gone while they were read: a clock that is set ahead ages them by
 * any time. Then what came of reading means nothing; an index row whose entity has gone is
 * INTERNAL. */
static bool is_in_vain(const struct ds_reading *reading, status s)
{
    bool may_be_told = status_is_ok(s) || s.code == STATUS_INTERNAL;
    status age = may_be_told ? ds_snapshot_check(&reading->snapshot) : status_ok();
    bool is_gone = !status_is_ok(age);
    status_ignore(age);
    return is_gone;
}

bool ds_reading_again(struct ds_reading *reading, status *s)
{
    bool again = false;
    if (is_in_vain(reading, *s)) {
        again = move_on(reading);
        status_ignore(*s);
        *s = again ? status_ok() : ds_too_old();
        return again;
    }
    if (status_is_ok(*s) && shares(reading))
        *s = abort_if(reading, validate(reading, &again));
    return again && status_is_ok(*s);
}
