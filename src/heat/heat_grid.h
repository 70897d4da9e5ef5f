/* Ranges of keys that suit several records of heat at once, whose own ranges differ.
 *
 *     heat_grid_fit      each record: its borders become the grid's
 *     heat_grid_finish   and few enough remain: neighbours with little traffic become one
 *     heat_grid_spread   each record again: what it has, by the grid's ranges
 *
 * A range of a record that covers several of the grid's is shared out evenly among them, since
 * ranges had about the same size when they were chosen. */
#ifndef TRESTLE_HEAT_HEAT_GRID_H
#define TRESTLE_HEAT_HEAT_GRID_H

#include "heat/heat_record.h"

struct heat_grid {
    size_t count;
    bytes *starts; /* of its ranges, rising; the first is empty. They point where the records' do */
    double *traffic; /* rows in each so far */
};

status heat_grid_create(struct heat_grid *grid);
void heat_grid_free(struct heat_grid *grid);

/* `most`: how many ranges there are to be in the end. */
status heat_grid_fit(struct heat_grid *grid, const struct heat_record *record, size_t most);
void heat_grid_finish(struct heat_grid *grid, size_t most);

/* Which of its ranges has the key. */
size_t heat_grid_find(const struct heat_grid *grid, bytes key);
bytes heat_grid_end(const struct heat_grid *grid, size_t range); /* empty: no bound */

/* Adds to `sums`, a pointer for each range, NULL where there is nothing yet: sums are made in the
 * arena. */
status heat_grid_spread(const struct heat_grid *grid, const struct heat_record *record,
                        struct arena *arena, struct heat_sum **sums);

/* All records as one, of `most` ranges or fewer, from the beginning of the first to the end of the
 * last. Its processor time is their mean over that time. */
status heat_records_combine(const struct heat_record *records, size_t count, size_t most,
                            struct arena *arena, struct heat_record *out);

#endif
