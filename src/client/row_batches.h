/* Batches of rows that are under way to a table of a Bigtable endpoint, each in a call of its own:
 * MutateRows, or a CheckAndMutateRow of one row.
 *
 *     under way ──► each row was written or refused: gone
 *       ▲     │ some rows, or the call, failed for now
 *       └─wait┘
 *
 * What a batch has, and what becomes of its rows, is its owner's, who keeps one of these in front
 * of it. Rows whose failure may pass are sent again, alone. A failure of everything is remembered,
 * and nothing more is sent; so is one that has not passed for a minute without a row that ended.
 *
 * One thread, which runs the loop while it waits. */
#ifndef TRESTLE_CLIENT_ROW_BATCHES_H
#define TRESTLE_CLIENT_ROW_BATCHES_H

#include "base/varint.h"
#include "client/endpoint.h"

struct row_batches;

/* The first member of an owner's batch; all zeroes at first. */
struct row_batch {
    struct link link;
    struct row_batches *all;
    bool is_conditional;      /* a CheckAndMutateRow */
    struct client_call *call; /* NULL: waits, or was not sent yet */
    struct timer timer;
    int64_t wait_us;
    status failure; /* of what is to be tried again, the last; owned */
};

struct row_batches_options {
    struct loop *loop;
    const struct endpoint *endpoint; /* outlives the batches */
    const char *table;               /* its full name; outlives them */
    const char *app_profile;         /* "": none; outlives them */
    void *context;
    /* Appends the request: of MutateRows the entries (row_batches_append_entry), table and profile
     * are there. */
    void (*append)(struct row_batch *batch, struct buffer *message);
    /* The row of that number is written, or refused for good. Takes the status; or returns false if
     * there is no such row, or it has ended before. */
    bool (*ended)(struct row_batch *batch, uint64_t index, status s);
    /* Forgets the rows that have ended; how many are left, which keep their order. */
    size_t (*rest)(struct row_batch *batch);
    void (*destroy)(struct row_batch *batch); /* itself and what the owner has of it */
    void (*gone)(void *context);              /* one has no rows left; NULL: nobody wants to know */
};

struct row_batches {
    struct row_batches_options options;
    struct buffer routing; /* the header x-goog-request-params */
    struct grpc_link *grpc;
    struct list sent;
    unsigned count; /* of them */
    int64_t progress_us;
    status failure;  /* of everything; owned */
    bool is_waiting; /* the loop runs for us */
};

/* To be closed after a failure, too. */
status row_batches_open(const struct row_batches_options *options, struct row_batches *out);
void row_batches_close(struct row_batches *all); /* gives up what is under way */

/* Takes it. */
void row_batches_send(struct row_batches *all, struct row_batch *batch);

/* An encoded entry of MutateRowsRequest, with so many bytes before it at most. */
enum { ROW_BATCHES_ENTRY_HEAD = 1 + VARINT_MAX_SIZE };
void row_batches_append_entry(struct buffer *message, bytes entry);

/* Ends all with a failure, unless there is one. Takes the status. */
void row_batches_fail(struct row_batches *all, status s);
status row_batches_failure(const struct row_batches *all); /* a copy */

/* Runs the loop until something has come of a batch, or row_batches_wake; fails as above. */
status row_batches_wait(struct row_batches *all);
void row_batches_wake(struct row_batches *all);

/* clock_steady_us of the loop. */
int64_t row_batches_now_us(const struct row_batches *all);

#endif
