/* A data call is what the methods of the data service have in common: the table that they are for,
 * the view through which they see it, and the metadata that they answer with.
 *
 * Each method keeps its state in a struct that begins with a data_call and lives in the call's
 * arena: it is gone when the call has ended. */
#ifndef TRESTLE_BIGTABLE_DATA_CALL_H
#define TRESTLE_BIGTABLE_DATA_CALL_H

#include "bigtable/services.h"
#include "bigtable/view.h"
#include "tablet/write_times.h"
#include "wire/call_steps.h"
#include "wire/proto.h"

struct data_call {
    struct bigtable *bigtable;
    struct grpc_call *call;
    struct arena *arena;     /* the call's */
    struct table *table;     /* held until the call ends; NULL: none yet */
    const struct view *view; /* held until the call ends; NULL: all of the table */
    int64_t started_us;      /* clock_steady_us, when the call came */
    const char *served;      /* name of what it is for: an instance's, or under it; NULL: nothing */
    const char *profile;     /* which of the instance's app profiles it names */
    const struct metadata *params; /* the place that its answer names; NULL: not yet looked up */
    bool has_headers;              /* data_call_add_headers has been called */
};

/* Zeroed state of `size` bytes. On failure ends the call and returns NULL. */
void *data_call_create(struct bigtable *bigtable, struct grpc_call *call, size_t size);

/* The target that a request names: exactly one is to be set. */
struct data_target {
    const char *table_name;
    const char *authorized_view_name;
    const char *materialized_view_name;
    const char *app_profile_id;
};

/* Sets `table`, which may be that of a materialized view's rows, and `view`. INVALID_ARGUMENT, also
 * if the request was routed for something else; NOT_FOUND; FAILED_PRECONDITION for a materialized
 * view that is not populated. */
status data_call_open(struct data_call *data, const struct data_target *target);

/* For a method whose request names an instance: whose cluster its answer names. Not for a name that
 * is none. data_call_open does so for the others. */
void data_call_serve(struct data_call *data, const char *instance, const char *profile);

/* For a method that is a single-row transaction, after data_call_open: whether the app profile lets
 * it. FAILED_PRECONDITION in production's words. */
status data_call_check_transaction(struct data_call *data);

/* How long a request took, in the form that clients look for in the header server-timing. */
enum { DATA_CALL_TIMING_SIZE = 48 };
bytes data_call_timing(int64_t us, char text[DATA_CALL_TIMING_SIZE]);

/* The times, in microseconds, that are said of answers as fast: what was taken, rounded up to one
 * of these. They are the bounds of the buckets in which Google's clients count latencies, so that
 * none is counted in another bucket for it. They are few, since each is a place in the table of a
 * connection's compression, which is searched one by one. */
extern const int64_t data_call_ready_us[BIGTABLE_READY_TIMINGS];

/* Metadata that clients measure and log by. Before the first message, on the loop's thread. */
void data_call_add_headers(struct data_call *data);

/* For the call's trace: what a write, or an update, has waited for. Its call is in the step
 * CALL_AWAITS_LOCK since before it was asked for. The first when an update has read its row, the
 * second when either is done. */
void data_call_tell_read(struct data_call *data, int64_t locked_us);
void data_call_tell_commit(struct data_call *data, int64_t locked_us,
                           const struct write_times *times);

/* Ends the call; takes the status. `data` is gone afterwards. On the loop's thread, unless headers
 * have been added. */
void data_call_finish(struct data_call *data, status s);

/* Headers, one message, and OK. On the loop's thread. */
void data_call_respond(struct data_call *data, const ProtobufCMessage *response);

#endif
