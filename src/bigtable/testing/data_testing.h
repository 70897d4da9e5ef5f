/* A fake server, against which the tests of the data service's methods run: a loop, a pool, a clock
 * and a client that do what the test says. */
#ifndef TRESTLE_BIGTABLE_TESTING_DATA_TESTING_H
#define TRESTLE_BIGTABLE_TESTING_DATA_TESTING_H

#include "base/testing/testing.h"
#include "bigtable/services.h"
#include "cluster/rows.h"
#include "cluster/usage_counts.h"
#include "wire/proto.h"

#define TABLE_NAME "projects/p/instances/i/tables/t"

/* A call: what its client says, does and gets. */
struct grpc_call {
    struct arena *arena;
    const char *features; /* headers; NULL: none */
    const char *routing;
    bool is_congested;
    size_t congests_after; /* messages; 0: never */
    bool is_cancelled;
    bool is_refused; /* when it is put before the server's `admit` again */
    void *context;
    void (*on_writable)(void *context);
    void (*on_cancel)(void *context);
    void (*on_drain)(void *context);
    /* Called with each message. */
    void (*receive)(struct grpc_call *call, bytes message);
    size_t messages;
    size_t largest;     /* bytes of one, or of a piece of one */
    bool wants_small;   /* messages */
    struct buffer body; /* of a message that comes in pieces, so far */
    size_t body_left;   /* 0: none does */
    size_t pieces;
    bool is_finished;
    enum status_code code;
    bool has_details;
    size_t headers;     /* how often grpc_call_share_headers was called */
    const char *cookie; /* NULL: none was sent */
};

struct fake_server {
    struct grpc_call call;
    struct list loop;
    struct list pool;
    bool pool_is_full;
    struct timer *timer; /* the one that is set; NULL: none */
    bool timers_fail;
    struct request_room *values; /* the server's; NULL: no bound */
    size_t largest_cell;
    int64_t now_us;
    int64_t lead_us; /* by which the versions' clock is ahead of it */
    int64_t tick_us; /* that each look at the clock takes */
    int tables_held;
    double write_load;
    const struct schema *schema;
    struct resource *view;      /* the one that there is; NULL: none */
    struct {                    /* what has been told of requests */
        struct usage_scan scan; /* the last */
        size_t scans;
        size_t reads;
        size_t writes;
        size_t increments;
    } usage;
};

extern struct fake_server fake;

void fake_reset(const struct schema *schema);
void fake_free(void); /* everything must have been given back */

/* Makes an authorized view of the table: of rows with the prefix, and all of the family. */
#define VIEW_NAME         TABLE_NAME "/authorizedViews/v"
#define MATERIALIZED_NAME "projects/p/instances/i/materializedViews/v"
void fake_add_view(const char *row_prefix, const char *family);

/* Calls a method with the request. */
void fake_call(grpc_handler *method, const ProtobufCMessage *request);

/* The timer's time has come. */
void fake_time_is_over(void);

/* Runs tasks until none is left. */
void fake_run(void);

#endif
