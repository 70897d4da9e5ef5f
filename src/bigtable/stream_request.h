/* A request of ReadChangeStream, checked, as far as it can be before the table is looked at; and
 * what the table's stream has to say to it. */
#ifndef TRESTLE_BIGTABLE_STREAM_REQUEST_H
#define TRESTLE_BIGTABLE_STREAM_REQUEST_H

#include "cluster/stream/table_stream.h"
#include "google/bigtable/v2/bigtable.pb-c.h"

enum {
    STREAM_HEARTBEAT_US = 5000000,      /* where the request does not say */
    STREAM_LEAST_HEARTBEAT_US = 100000, /* shorter ones are taken for this */
    STREAM_SKEW_US = 10000000, /* by which a client's clock may be ahead: its "now" is ours */
};

struct stream_request {
    bytes start; /* the partition: [start, end), an empty end is none */
    bytes end;
    int64_t heartbeat_us;
    bool has_tokens;
    struct stream_token token;   /* if so: all of them together */
    struct stream_token *tokens; /* each of them */
    size_t token_count;
    bool has_start_time;
    int64_t start_us; /* what was committed before is passed over; INT64_MIN: nothing is */
    int64_t end_us;   /* and so is what was committed after; INT64_MAX */
};

/* Slices point into the message. INVALID_ARGUMENT. */
status stream_request_read(const Bt__ReadChangeStreamRequest *message, struct arena *arena,
                           struct stream_request *out);

/* FAILED_PRECONDITION: there is no stream. */
status stream_facts_check(const struct stream_facts *facts, const char *table);

struct stream_now {
    int64_t version_us; /* cluster_version_us: streams go by it */
    int64_t wall_us;    /* cluster_wall_us: clients do */
};

/* Holds the request against the stream. The versions' now becomes the start time where the
 * request's is after it, or there is neither that nor a token. INVALID_ARGUMENT. */
status stream_request_check(struct stream_request *request, const struct stream_facts *facts,
                            const struct stream_now *now);

/* OUT_OF_RANGE: the token is older than what is kept. */
status stream_token_check_age(const struct stream_token *token, const struct stream_facts *facts);

#endif
