/* What the advisor looks at, asked of a Bigtable endpoint: the schema, a sample of rows, the sizes
 * of ranges, hot tablets, and tables with similar names.
 *
 * It is light: some hundred short reads, one at a time, and no more than the bytes allowed. What a
 * server does not answer (UNIMPLEMENTED, PERMISSION_DENIED) is no evidence. */
#ifndef TRESTLE_CMD_ADVISE_GATHER_H
#define TRESTLE_CMD_ADVISE_GATHER_H

#include "advice/report.h"
#include "client/client_session.h"

struct gather_options {
    struct client_session *session;
    const char *table_id;
    int64_t now_us;
    size_t places;  /* at least 1 */
    size_t rows;    /* at each; at least 1 */
    uint64_t bytes; /* after which no more is sampled */
    uint64_t seed;  /* of the places; not 0 */
};

/* What it finds is the arena's. NOT_FOUND if there is no such table. */
status gather(const struct gather_options *options, struct arena *arena,
              struct advice_observations *out, struct advice_sample *sample);

#endif
