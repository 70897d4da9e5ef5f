/* Rows that a repair gives up: named to its user, and in a file. */
#ifndef TRESTLE_CMD_REPAIR_LOST_ROWS_H
#define TRESTLE_CMD_REPAIR_LOST_ROWS_H

#include "base/bytes.h"
#include "base/status.h"

#include <stdio.h>

struct lost_rows_report {
    bool is_trial;    /* they would be given up: nothing is written to a file */
    const char *path; /* of the file, to which a line each is added; made with the first */
    FILE *file;       /* private */
    size_t count;     /* that were printed */
};

struct lost_range {
    const char *table;
    bytes from;
    bytes to; /* empty: there is no bound */
    const char *words;
};

/* A line in the file, which is on the disk when this returns: a repair gives nothing up before, and
 * prints nothing as lost. */
status lost_rows_name(struct lost_rows_report *report, const struct lost_range *range);
/* A line on standard output, and counts. */
void lost_rows_print(struct lost_rows_report *report, const struct lost_range *range);
/* Takes a named range back, which is not given up as it was: a line in both. */
status lost_rows_take_back(struct lost_rows_report *report, const struct lost_range *range);
void lost_rows_close(struct lost_rows_report *report);

#endif
