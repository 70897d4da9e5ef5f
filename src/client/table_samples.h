/* A table's sample of row keys, as SampleRowKeys of an endpoint tells it. */
#ifndef TRESTLE_CLIENT_TABLE_SAMPLES_H
#define TRESTLE_CLIENT_TABLE_SAMPLES_H

#include "client/client_session.h"

struct table_sample {
    bytes key;       /* behind the rows; empty: the end of the table */
    uint64_t offset; /* bytes of the table before it */
};

/* In the order in which they came: whose logic needs it to be that of the keys checks that. */
struct table_samples {
    struct arena *arena;
    struct table_sample *all; /* the arena's, as the keys are */
    size_t count;
    size_t capacity;
};

/* `table`: its full name. Errors are those of the call. */
status table_samples_read(struct client_session *session, const char *table, struct arena *arena,
                          struct table_samples *out);

/* Bytes of the whole table, as the server guesses them. */
uint64_t table_samples_size(const struct table_samples *samples);

#endif
