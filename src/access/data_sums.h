/* Sums of accesses to data: which principal used which resource by which method, how often, and for
 * how much.
 *
 * A line of the audit log for each point read would cost more than the read. So calls are added up,
 * in parts that each have a lock which is held for a few instructions, and the audit log takes the
 * sums from time to time. Beyond LIMIT_DATA_SUMS of them, and without memory, further calls are
 * added up without principal and resource: nothing is left out. Any thread. */
#ifndef TRESTLE_ACCESS_DATA_SUMS_H
#define TRESTLE_ACCESS_DATA_SUMS_H

#include "base/bytes.h"
#include "base/status.h"
#include "wire/grpc_server.h"

struct data_sums;

/* The calls of one principal, resource and method since the last time. */
struct data_sum {
    bytes principal;     /* empty: unknown */
    bytes resource;      /* empty: nothing that the request names */
    const char *service; /* NULL in what is added up beyond the bound, */
    const char *method;  /* of which principal and resource are empty */
    int64_t calls;
    int64_t failed; /* of these */
    int64_t items;  /* see grpc_call_count */
    int64_t request_bytes;
    int64_t response_bytes;
};

status data_sums_create(struct data_sums **out);
void data_sums_destroy(struct data_sums *sums); /* NULL is fine */

/* A call has ended. Copies what it keeps. */
void data_sums_add(struct data_sums *sums, bytes principal, bytes resource,
                   const struct grpc_call_record *record);

/* Hands over each sum, valid until `each` returns, and begins again from zero. */
void data_sums_take(struct data_sums *sums, void *context,
                    void (*each)(void *context, const struct data_sum *sum));

#endif
