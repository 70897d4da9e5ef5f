/* The columns of a sample's rows, each with what its cells have in common. */
#ifndef TRESTLE_ADVISOR_COLUMNS_H
#define TRESTLE_ADVISOR_COLUMNS_H

#include "advisor/advice_private.h"

struct column_summary {
    uint32_t family;
    bytes qualifier;
    size_t rows;         /* that have it */
    size_t cells;        /* versions */
    size_t most;         /* of one row */
    uint64_t size;       /* of all values */
    uint64_t usual_hash; /* of the value that most of the newest cells have; 0: it is not known */
    size_t usual;        /* of them that have it */
    int64_t youngest_us; /* times of cells; 0: unknown */
    int64_t oldest_us;
};

struct column_summaries {
    struct column_summary *all; /* by family and qualifier */
    size_t count;
    size_t rows; /* that were looked at: all, or some of wide ones */
};

status columns_summarize(struct advisor *advisor, struct column_summaries *out);

#endif
