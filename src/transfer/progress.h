/* How a transfer shows on stderr how far it has come. */
#ifndef TRESTLE_TRANSFER_PROGRESS_H
#define TRESTLE_TRANSFER_PROGRESS_H

#include "base/clock.h"

#include <stdbool.h>
#include <stddef.h>

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

/* The same of a table that is followed. */
struct follow_counts {
    uint64_t changes; /* that were replayed, by former runs, too */
    size_t partitions;
    int64_t behind_us; /* now, less the time up to which all is replayed */
};

/* `changes`: of former runs. */
void progress_begin_following(struct progress *progress, struct clock *clock, uint64_t changes,
                              bool is_quiet);
/* Shows them, if it is time to; the first at once. */
void progress_show_following(struct progress *progress, const struct follow_counts *counts);
void progress_end_following(struct progress *progress);

#endif
