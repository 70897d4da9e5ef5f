/* Rows that a repair gives up: named to whoever runs it, and in a file. */
#ifndef TRESTLE_CMD_LOST_ROWS_H
#define TRESTLE_CMD_LOST_ROWS_H

#include "base/bytes.h"
#include "base/status.h"

#include <stdio.h>

struct lost_rows_report {
    bool is_trial;    /* they would be given up: nothing is written to a file */
    const char *path; /* of the file, to which a line each is added; made with the first */
    FILE *file;       /* private */
    size_t count;     /* that were told */
};

/* A line on standard output, and one in the file, which is on the disk when this returns: a repair
 * gives nothing up before. `to` is empty where there is no bound. */
status lost_rows_tell(struct lost_rows_report *report, const char *table, bytes from, bytes to,
                      const char *words);
void lost_rows_close(struct lost_rows_report *report);

#endif
