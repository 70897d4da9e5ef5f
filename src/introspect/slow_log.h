/* Requests that took too long: a line in the log for each, and the latest and slowest in memory.
 *
 * Too long is a time of the server's own: while a request was still coming in, or its answers were
 * not read, it is the client that took it. Methods that wait by design (health's Watch,
 * WaitOperation, bidirectional ones) are never slow.
 *
 * A request that is not slow costs one comparison here. What a slow one asked for is found out when
 * it has ended, from its message; so that a server that is slow altogether is not made slower, only
 * so many a second are described (LIMIT_SLOW_REQUESTS_A_SECOND), and the others counted.
 *
 * Any thread may use it. */
#ifndef TRESTLE_INTROSPECT_SLOW_LOG_H
#define TRESTLE_INTROSPECT_SLOW_LOG_H

#include "access/access.h"
#include "base/log.h"
#include "base/metrics.h"

#include <stdatomic.h>

struct slow_log;

struct slow_log_options {
    int64_t threshold_us; /* INT64_MAX: no request is slow */
    const struct log *log;
    struct clock *clock;
    struct metrics *metrics; /* may be NULL */
};

/* All of the options outlives it. */
status slow_log_create(const struct slow_log_options *options, struct slow_log **out);
void slow_log_destroy(struct slow_log *slow); /* NULL is fine */

int64_t slow_log_threshold_us(const struct slow_log *slow);

/* Whether the call that has ended is slow. */
bool slow_log_concerns(const struct slow_log *slow, const struct grpc_call_record *record);

/* Writes and keeps a call that is; on the call's loop. `access`: NULL with access control off. */
void slow_log_add(struct slow_log *slow, const struct grpc_call_record *record,
                  struct access *access);

/* A slow request. Never changes; freed with its last reference. */
struct slow_request {
    atomic_uint references;
    int64_t started_us; /* wall clock */
    int64_t duration_us;
    int64_t client_us; /* of these, the client's */
    enum status_code code;
    int64_t items;
    int64_t seen;
    size_t request_bytes;
    size_t answer_bytes;
    const char *method; /* "google.bigtable.v2.Bigtable/ReadRows"; these all are in `text` */
    const char *resource;
    const char *app_profile;
    const char *principal;
    const char *trace_id;
    const char *plan;
    struct buffer text;
};

enum { SLOW_REQUESTS_MOST = 256 + 64 }; /* that are kept: the latest, and the slowest of before */

/* The requests that are kept, the latest first; returns how many. Each is the caller's to
 * release. */
size_t slow_log_list(struct slow_log *slow, const struct slow_request *out[SLOW_REQUESTS_MOST]);
size_t slow_log_count(struct slow_log *slow); /* of those */
void slow_request_release(const struct slow_request *request);

#endif
