/* How a transfer shows on stderr how far it has come. */
#ifndef TRESTLE_TRANSFER_PROGRESS_H
#define TRESTLE_TRANSFER_PROGRESS_H

#include "base/clock.h"

#include <stdbool.h>

struct transfer_counts {
    uint64_t records;  /* that were read */
    uint64_t rejected; /* of them */
    uint64_t ended;    /* of them: they are over, and were left out */
    uint64_t bytes;    /* of the source, as it lies there */
};

struct progress {
    struct clock *clock;
    const char *noun; /* "items" */
    bool is_quiet;
    bool is_terminal;
    int64_t start_us;
    int64_t shown_us;
    struct transfer_counts at_start; /* what an earlier run has done */
};

void progress_begin(struct progress *progress, struct clock *clock, const char *noun,
                    bool is_quiet);
/* Shows them, if it is time to. `total`: the bytes of the source; 0: not known. */
void progress_show(struct progress *progress, const struct transfer_counts *counts, uint64_t total);
/* Ends the line. */
void progress_end(struct progress *progress, const struct transfer_counts *counts, uint64_t total);

#endif
