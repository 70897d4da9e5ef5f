/* `trestle bench`, a load generator: what its parts share.
 *
 * One thread and one event loop; so many connections with so many streams each, of which every one
 * sends its next request when the last was answered (a closed loop), or at a given pace (`--rate`).
 * A workload makes requests and looks at what comes back, so that an answer that lacks rows counts
 * as an error and not as speed.
 *
 *     bench.c           the command: makes the table, runs the workloads, prints
 *     bench_options.c   its options
 *     bench_keys.c      the rows' keys
 *     bench_table.c     making the table
 *     bench_workload.c  requests and their answers; bench_range.c, bench_add.c, …: more
 *     bench_datastore.c those of Datastore's API
 *     bench_parts.c     what they are made of
 *     bench_run.c       the closed loop
 *     bench_process.c   what the server's process takes of the machine
 *
 * Rows: keys `user` and 20 digits, hashed, in the family `cf` with the columns `c0`, `c1`, …, one
 * cell each at a fixed timestamp: writing a row again replaces its cells, and the table stays as
 * large as it was loaded. `add` makes the family `sum`, `hot` and `wide` each add a row. */
#ifndef TRESTLE_CMD_BENCH_BENCH_H
#define TRESTLE_CMD_BENCH_BENCH_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/histogram.h"
#include "base/options.h"
#include "cmd/bench/bench_process.h"

/* `arguments`: those after "bench", ended by NULL. Returns the process's exit status. */
int bench_command(const char *const *arguments);

/* --- options --- */

struct bench_options {
    const char *endpoint; /* NULL: BIGTABLE_EMULATOR_HOST, or the default of `serve` */
    const char *ca;       /* PEM file of the server's authority; NULL: no TLS */
    const char *token;    /* a file with a bearer token; NULL: none */
    const char *table;    /* its full name */
    const char *workloads;
    uint64_t rows;
    uint64_t cells; /* of a row */
    uint64_t value_size;
    uint64_t connections;
    uint64_t streams;    /* of a connection */
    int64_t duration;    /* microseconds, of each workload but load and overwrite */
    uint64_t operations; /* the same; 0: as many as the time allows */
    uint64_t rate;       /* requests a second; 0: each as soon as the last was answered */
    uint64_t overwrites; /* of each row by overwrite */
    uint64_t batch;      /* rows of a MutateRows request */
    uint64_t scan_rows;
    uint64_t columns;    /* of the row of `wide` */
    uint64_t tablets;    /* that the table is made with */
    bool stream;         /* and has a change stream */
    uint64_t server_pid; /* 0: unknown, no CPU figures */
    uint64_t seed;
    bool json;
};

status bench_options_read(const char *const *arguments, struct bench_options *out);
void bench_options_write_help(struct buffer *out);

/* --- keys and names --- */

#define BENCH_FAMILY "cf"

enum { BENCH_KEY_SIZE = 24 };

struct bench_keys {
    uint64_t count;
    uint64_t *sorted; /* the numbers in the keys, rising; owned */
};

status bench_keys_create(uint64_t count, struct bench_keys *out);
void bench_keys_free(struct bench_keys *keys);

/* The number in the key of row `index`: all differ, in no order. */
uint64_t bench_key_number(uint64_t index);
void bench_key_format(uint64_t number, uint8_t key[BENCH_KEY_SIZE]);

/* The next of a sequence of random numbers; `state` may begin as anything. */
uint64_t bench_random(uint64_t *state);

/* --- workloads --- */

struct bench_context {
    const struct bench_options *options;
    struct bench_keys keys;
    uint8_t *values;        /* random bytes to cut values from; owned */
    struct buffer prepared; /* the query of `query`; owned */
    /* By the wall clock: when `load` made the table with a stream, or 0; up to when `changes` reads
     * it. */
    int64_t stream_from_us;
    int64_t stream_until_us;
    uint64_t random;
};

status bench_context_create(const struct bench_options *options, struct bench_context *out);
void bench_context_free(struct bench_context *context);

/* The answer that one request shall get, and got. */
struct bench_answer {
    uint64_t rows;          /* that the request touches */
    uint64_t rows_answered; /* so far, those that were read or acknowledged */
    /* Left by an answer for the request that comes after it. */
    uint8_t token[256];
    size_t token_size;
};

struct client_metadata; /* wire/grpc_client.h */

struct bench_workload {
    const char *name;
    const char *method; /* its path */
    /* Appends the request's bytes; `number` counts the workload's requests from 0. */
    status (*request)(struct bench_context *context, uint64_t number, struct arena *arena,
                      struct buffer *message, struct bench_answer *answer);
    /* Takes one message of the answer. */
    status (*response)(bytes message, struct arena *arena, struct bench_answer *answer);
    const struct client_metadata *header; /* beside the usual ones; NULL: none */
    /* What follows: a request of the same number, made when this one was answered; they count as
     * one. Its `answer` is that of the first, to be added to. NULL: nothing. */
    const struct bench_workload *then;
};

struct bench_client;

/* A mix of workloads: a mixed one alternates between two at random, others have one part. */
struct bench_mix {
    const char *name;
    const struct bench_workload *parts[2];
    /* The rows that it writes in all, a batch a request; NULL: it runs for a time. */
    uint64_t (*rows)(const struct bench_options *options);
    /* Makes what the workload needs beyond the loaded table; NULL: nothing. */
    status (*prepare)(struct bench_client *client, struct bench_context *context);
};

/* NULL if there is none of that name. */
const struct bench_mix *bench_mix_find(bytes name);

/* The names of those that run if none is named, of those of change streams, and of Datastore's;
 * separated by commas. */
extern const char bench_mix_names[];
extern const char bench_stream_names[];
extern const char bench_datastore_names[];

/* --- a run --- */

struct bench_result {
    uint64_t requests;
    uint64_t rows;
    uint64_t errors;
    int64_t duration_us;
    struct bench_usage server;  /* CPU time and bytes written during the run, memory at its end */
    struct histogram latencies; /* microseconds */
    status first_error;         /* owned */
};

/* Connects. */
status bench_client_create(const struct bench_options *options, struct bench_client **out);
void bench_client_destroy(struct bench_client *client);

/* Runs the workload. Errors of single requests are counted; the status is for what ends a run. */
status bench_run(struct bench_client *client, struct bench_context *context,
                 const struct bench_mix *mix, struct bench_result *out);

/* Makes one call by itself: its status, whatever it answers. */
status bench_call(struct bench_client *client, const char *method, struct buffer *message);

/* The same; appends the message that it answers. */
status bench_ask(struct bench_client *client, const char *method, struct buffer *message,
                 struct buffer *answer);

#endif
