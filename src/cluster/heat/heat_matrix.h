/* A table's heat to look at: times by ranges of keys. For the console and for advice. */
#ifndef TRESTLE_CLUSTER_HEAT_HEAT_MATRIX_H
#define TRESTLE_CLUSTER_HEAT_HEAT_MATRIX_H

#include "heat/heat_record.h"

struct table;

struct heat_time {
    int64_t from_us; /* since 1970 */
    int64_t until_us;
    double cpu_percent; /* that the table took, of all processors of the machine; estimated */
    /* For each of the matrix's ranges; NULL: nothing was counted. */
    const struct heat_sum *const *sums;
};

struct heat_matrix {
    size_t range_count;
    const bytes *starts; /* of the ranges; the first is empty, and the last has no end */
    bool ends_open;      /* the last time is a window that has not ended */
    size_t time_count;
    const struct heat_time *times; /* rising; a time in which nothing was counted is not there */
};

/* What was kept of the time from `from_us` up to `until_us`, as fine as it still is there for all
 * of it, by `most_ranges` ranges at most, which are the same for all times: those with traffic are
 * told apart first. The window that has not ended is the last of them, up to now, if it began in
 * that time; what it takes of the processors is the mean up to the last look (heat.h). All of it is
 * in the arena. Blocks: for threads that may. */
status heat_matrix_read(struct table *table, int64_t from_us, int64_t until_us, size_t most_ranges,
                        struct arena *arena, struct heat_matrix *out);

/* Times become one where they begin in the same of `most_times` even parts of that time. */
status heat_matrix_join(struct heat_matrix *matrix, int64_t from_us, int64_t until_us,
                        size_t most_times, struct arena *arena);

/* All times of the matrix in one record. */
status heat_matrix_sum(const struct heat_matrix *matrix, struct arena *arena,
                       struct heat_record *out);

#endif
